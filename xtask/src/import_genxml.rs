//! `import-genxml`: writes `data/intel/*.cmds` from the command, state and register descriptions of a Mesa tree.
//!
//! What only a generator of packing code needs (prefixes of C names, defaults of fields, hints) is skipped. The fields
//! that hold a command's opcode become its match and mask.

use roxmltree::{Document, Node};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// `DIR` holds `gen40.xml` and its like.
pub fn run(args: &[String]) -> Result<()> {
    let [dir] = args else { return Err("usage: cargo xtask import-genxml DIR".into()) };
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/intel");
    fs::create_dir_all(&out)?;
    let mut paths: Vec<_> = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "xml"));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let source = fs::read_to_string(&path)?;
        let document = Document::parse(&source)?;
        let text = file(document.root_element()).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("{name}.cmds: {} lines", text.lines().count());
        fs::write(out.join(format!("{name}.cmds")), text)?;
    }
    Ok(())
}

fn file(root: Node<'_, '_>) -> Result<String> {
    let mut out = format!("generation {}\n", attribute(root, "gen")?);
    for node in root.children().filter(Node::is_element) {
        match node.tag_name().name() {
            "import" => {
                let file = attribute(node, "name")?;
                writeln!(out, "import {}", file.strip_suffix(".xml").unwrap_or(file))?;
                for exclude in node.children().filter(Node::is_element) {
                    writeln!(out, "drop {}", quoted(attribute(exclude, "name")?))?;
                }
            }
            "enum" => {
                writeln!(out, "enum {}", quoted(attribute(node, "name")?))?;
                values(&mut out, node, 1)?;
            }
            "struct" => {
                let length = attribute(node, "length")?;
                writeln!(out, "struct {} dwords={length}", quoted(attribute(node, "name")?))?;
                items(&mut out, node, 1, 0)?;
            }
            "register" => {
                let offset = number(attribute(node, "num")?)?;
                write!(out, "register {} {offset:#x}", quoted(attribute(node, "name")?))?;
                writeln!(out, " dwords={}", attribute(node, "length")?)?;
                items(&mut out, node, 1, 0)?;
            }
            "instruction" => instruction(&mut out, node)?,
            other => return Err(format!("<{other}>").into()),
        }
    }
    Ok(out)
}

fn instruction(out: &mut String, node: Node<'_, '_>) -> Result<()> {
    let name = attribute(node, "name")?;
    let (mut matches, mut mask) = (0u32, 0u32);
    for field in fields(node) {
        if is_opcode(field)? {
            let (low, high) = bits(field)?;
            let ones = (u64::MAX >> (63 - (high - low)) << low) as u32;
            mask |= ones;
            matches |= (number(attribute(field, "default")?)? << low) as u32 & ones;
        }
    }
    write!(out, "instruction {} {matches:#010x}/{mask:#010x}", quoted(name))?;
    if let Some(dwords) = node.attribute("length") {
        write!(out, " dwords={dwords}")?;
    }
    let is_length = |field: &Node<'_, '_>| {
        matches!(field.attribute("name"), Some("DWord Length" | "Length"))
            && matches!(bits(*field), Ok((0, high)) if high < 16)
    };
    match fields(node).find(is_length) {
        Some(field) => {
            // Lengths count from the third dword. Commands that have but one may count from the second.
            let longer = fields(node).any(|field| matches!(bits(field), Ok((low, _)) if low >= 32));
            let bias = if longer { "2" } else { attribute(node, "bias")? };
            write!(out, " length={}:0+{bias}", bits(field)?.1)?;
        }
        None if node.attribute("length").is_none() => return Err(format!("{name}: no length").into()),
        None => {}
    }
    if let Some(engines) = node.attribute("engine") {
        write!(out, " engines={}", engines.replace('|', ","))?;
    }
    out.push('\n');
    items(out, node, 1, mask)
}

/// A field that tells commands apart: in the header's upper half, with the value it has in this command. What has a
/// default and is no part of the opcode is either below or has another name, but for the one flag that distinguishes a
/// longer form.
fn is_opcode(field: Node<'_, '_>) -> Result<bool> {
    let (low, high) = bits(field)?;
    let name = field.attribute("name").unwrap_or_default().to_ascii_lowercase();
    let default = field.attribute("default");
    let opcode = name.replace([' ', '-'], "").contains("opcode")
        || ["command type", "command subtype", "pipeline", "media command pipeline", "client"]
            .contains(&name.as_str())
        || name == "media instruction command";
    Ok(default.is_some()
        && ((opcode && (16..32).contains(&high))
            || (low < 16 && high < 16 && default == Some("1") && name == "extended parameters present")))
}

fn items(out: &mut String, node: Node<'_, '_>, depth: usize, opcode: u32) -> Result<()> {
    for item in node.children().filter(Node::is_element) {
        let indent = "  ".repeat(depth);
        match item.tag_name().name() {
            "field" => {
                let (low, high) = bits(item)?;
                if depth == 1 && high < 32 && opcode >> low & 1 == 1 {
                    continue;
                }
                let name = item.attribute("name").unwrap_or_default();
                let (dword, from) = (low / 32, low % 32);
                let to = high - dword * 32;
                out.push_str(&indent);
                if dword != 0 {
                    write!(out, "{dword}.")?;
                }
                if to == from {
                    write!(out, "{to}")?
                } else {
                    write!(out, "{to}:{from}")?
                }
                writeln!(out, " {} {}", quoted(name), quoted(attribute(item, "type")?))?;
                values(out, item, depth + 1)?;
            }
            "group" => {
                let start: u32 = attribute(item, "start")?.parse()?;
                write!(out, "{indent}group {}.{}", start / 32, start % 32)?;
                match attribute(item, "count")? {
                    "0" => {}
                    count => write!(out, " count={count}")?,
                }
                writeln!(out, " bits={}", attribute(item, "size")?)?;
                items(out, item, depth + 1, 0)?;
            }
            other => return Err(format!("<{other}>").into()),
        }
    }
    Ok(())
}

fn values(out: &mut String, node: Node<'_, '_>, depth: usize) -> Result<()> {
    for value in node.children().filter(Node::is_element) {
        let number = number(attribute(value, "value")?)?;
        writeln!(out, "{}{} = {number}", "  ".repeat(depth), quoted(attribute(value, "name")?))?;
    }
    Ok(())
}

fn fields<'a, 'i>(node: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(|n| n.has_tag_name("field"))
}

fn bits(field: Node<'_, '_>) -> Result<(u32, u32)> {
    let (low, high) = (attribute(field, "start")?.parse()?, attribute(field, "end")?.parse()?);
    if low > high {
        return Err(format!("bits {low} to {high}").into());
    }
    Ok((low, high))
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Result<&'a str> {
    let fail = || format!("<{}> without {name}", node.tag_name().name());
    Ok(node.attribute(name).ok_or_else(fail)?)
}

fn number(text: &str) -> Result<u64> {
    Ok(match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16)?,
        None => text.parse()?,
    })
}

fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '#' | '=' | '\\');
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
