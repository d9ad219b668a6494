//! `import-isaspec`: writes `data/adreno/isa` from the instruction set descriptions of a Mesa tree.
//!
//! Prose and the mappings to Mesa's own structures are skipped.

use roxmltree::{Document, Node};
use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use unwedge_isa::table::model::{Bitset, BitsetCase, CaseRow, Isa, IsaEnum, IsaField, IsaItem};
use unwedge_isa::table::text;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// `DIR` holds `ir3.xml` and `afuc.xml` and what they import.
pub fn run(args: &[String]) -> Result<()> {
    let [dir] = args else { return Err("usage: cargo xtask import-isaspec DIR".into()) };
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/adreno/isa");
    fs::create_dir_all(&out)?;
    for name in ["ir3", "afuc"] {
        let mut isa = Isa::default();
        read_file(Path::new(dir), &format!("{name}.xml"), &mut isa, &mut HashSet::new())?;
        plain_names(&mut isa);
        let written = text::write(&isa);
        if text::read(&written)? != isa {
            return Err(format!("{name}.isa does not read back as it was written").into());
        }
        println!("{name}.isa: {} definitions, {} lines", isa.items.len(), written.lines().count());
        fs::write(out.join(format!("{name}.isa")), written)?;
    }
    Ok(())
}

fn read_file(dir: &Path, file: &str, isa: &mut Isa, seen: &mut HashSet<String>) -> Result<()> {
    if !seen.insert(file.to_owned()) {
        return Ok(());
    }
    let source = fs::read_to_string(dir.join(file))?;
    let document = Document::parse(&source)?;
    for node in document.root_element().children().filter(Node::is_element) {
        match node.tag_name().name() {
            "import" => read_file(dir, attribute(node, "file")?, isa, seen)?,
            "enum" => isa.items.push(IsaItem::Enum(read_enum(node)?)),
            "expr" => isa.items.push(IsaItem::Expr {
                name: attribute(node, "name")?.to_owned(),
                source: source_of(node.text().unwrap_or_default()),
            }),
            "bitset" => isa.items.push(IsaItem::Bitset(read_bitset(node)?)),
            _ => {}
        }
    }
    Ok(())
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

fn read_enum(node: Node<'_, '_>) -> Result<IsaEnum> {
    let mut values = Vec::new();
    for value in node.children().filter(|n| n.has_tag_name("value")) {
        values.push((number(attribute(value, "val")?)?, attribute(value, "display")?.to_owned()));
    }
    Ok(IsaEnum { name: attribute(node, "name")?.to_owned(), values })
}

fn read_bitset(node: Node<'_, '_>) -> Result<Bitset> {
    let small = |name| node.attribute(name).map(str::parse).transpose();
    let mut bitset = Bitset {
        name: attribute(node, "name")?.to_owned(),
        title: node.attribute("displayname").map(str::to_owned),
        parent: node.attribute("extends").map(str::to_owned),
        size: small("size")?,
        ..Bitset::default()
    };
    for child in node.children() {
        match child.tag_name().name() {
            "override" => bitset.cases.push(read_case(child, true)?),
            "gen" => {
                bitset.min = child.attribute("min").map(str::parse).transpose()?;
                bitset.max = child.attribute("max").map(str::parse).transpose()?;
            }
            _ => {}
        }
    }
    bitset.cases.push(read_case(node, false)?);
    Ok(bitset)
}

fn read_case(node: Node<'_, '_>, conditional: bool) -> Result<BitsetCase> {
    let mut case = BitsetCase::default();
    if conditional {
        case.when = Some(expression(node)?);
    }
    for child in node.children().filter(Node::is_element) {
        match child.tag_name().name() {
            "display" => case.show = Some(child.text().unwrap_or_default().trim().to_owned()),
            // Mesa does not look at patterns inside overrides.
            "pattern" if conditional => {}
            "pattern" => {
                let (low, high) = range(child)?;
                let pattern = child.text().unwrap_or_default().trim().to_owned();
                case.rows.push(CaseRow::Bits { low, high, pattern });
            }
            "assert" => {
                let (low, high) = range(child)?;
                let pattern = child.text().unwrap_or_default().trim().to_owned();
                case.rows.push(CaseRow::Assert { low, high, pattern });
            }
            "field" => {
                let (low, high) = range(child)?;
                case.rows.push(CaseRow::Field { low, high, field: read_field(child)? });
            }
            "derived" => {
                let width = child.attribute("width").map(str::parse).transpose()?;
                let field = read_field(child)?;
                case.rows.push(CaseRow::Derived { width, field, source: expression(child)? });
            }
            _ => {}
        }
    }
    Ok(case)
}

fn range(node: Node<'_, '_>) -> Result<(u32, u32)> {
    match node.attribute("pos") {
        Some(pos) => Ok((pos.parse()?, pos.parse()?)),
        None => Ok((attribute(node, "low")?.parse()?, attribute(node, "high")?.parse()?)),
    }
}

fn read_field(node: Node<'_, '_>) -> Result<IsaField> {
    let mut field = IsaField {
        name: attribute(node, "name")?.to_owned(),
        ty: attribute(node, "type")?.to_owned(),
        display: node.attribute("display").map(str::to_owned),
        call: node.attribute("call") == Some("true"),
        params: Vec::new(),
    };
    for param in node.children().filter(|n| n.has_tag_name("param")) {
        let name = attribute(param, "name")?;
        field.params.push((name.to_owned(), param.attribute("as").unwrap_or(name).to_owned()));
    }
    Ok(field)
}

/// The `expr` attribute names an expression; an `<expr>` inside is one.
fn expression(node: Node<'_, '_>) -> Result<String> {
    if let Some(name) = node.attribute("expr") {
        return Ok(format!(":{name}"));
    }
    let inner = node.children().find(|n| n.has_tag_name("expr")).ok_or("no expression")?;
    Ok(source_of(inner.text().unwrap_or_default()))
}

/// One line, without comments and what only C needs.
fn source_of(text: &str) -> String {
    let mut source = String::new();
    let mut rest = text;
    while let Some((code, comment)) = rest.split_once("/*") {
        source.push_str(code);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    source.push_str(rest);
    let source = source.replace("ISA_GPU_ID()", "GEN");
    let words = source.split_whitespace().map(|word| match word.strip_suffix("ULL") {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Mesa marks what is no instruction with `#`. Here it has a plain name, with `-form` where an instruction is called so.
fn plain_names(isa: &mut Isa) {
    let taken: HashSet<String> = isa
        .items
        .iter()
        .filter_map(|item| match item {
            IsaItem::Bitset(b) if !b.name.starts_with('#') => Some(b.name.clone()),
            _ => None,
        })
        .collect();
    let plain = |name: &mut String| {
        if let Some(rest) = name.strip_prefix('#') {
            *name = if taken.contains(rest) { format!("{rest}-form") } else { rest.to_owned() };
        } else if let Some(rest) = name.strip_prefix(":#") {
            *name = format!(":{rest}");
        }
    };
    for item in &mut isa.items {
        match item {
            IsaItem::Enum(e) => plain(&mut e.name),
            IsaItem::Expr { name, .. } => plain(name),
            IsaItem::Bitset(b) => {
                plain(&mut b.name);
                b.parent.as_mut().into_iter().for_each(plain);
                for case in &mut b.cases {
                    case.when.as_mut().into_iter().for_each(plain);
                    for row in &mut case.rows {
                        match row {
                            CaseRow::Field { field, .. } => plain(&mut field.ty),
                            CaseRow::Derived { field, source, .. } => {
                                plain(&mut field.ty);
                                plain(source);
                            }
                            CaseRow::Bits { .. } | CaseRow::Assert { .. } => {}
                        }
                    }
                }
            }
        }
    }
}
