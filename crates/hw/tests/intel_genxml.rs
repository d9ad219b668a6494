//! Every command, structure, register and enum of the genxml files of `UNWEDGE_DATA`, read here once more from the XML:
//! headers made of defaults decode to their command, and every field has its bits, its name and its meaning.

use roxmltree::{Document, Node};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use unwedge_hw::intel::{EngineClass, FieldLayout, FieldValue, IntelGpu, IntelValue};
use unwedge_testkit::data;

/// What one generation defines, by tag and name.
type Definitions<'a> = HashMap<(&'a str, &'a str), Node<'a, 'a>>;

fn sources() -> Vec<(String, String)> {
    let named =
        |path: PathBuf| (path.file_name().unwrap().to_str().unwrap().to_string(), data::read_text(&path));
    data::files("intel/genxml", ".xml").into_iter().map(named).collect()
}

/// Calls `check` with each generation of each file, imports resolved.
fn each_file(mut check: impl FnMut(&str, IntelGpu, &Definitions<'_>)) {
    let files = sources();
    let documents: BTreeMap<&str, Document<'_>> =
        files.iter().map(|(name, text)| (name.as_str(), Document::parse(text).unwrap())).collect();
    for (name, document) in &documents {
        let generation = document.root_element().attribute("gen").unwrap();
        let (major, minor) = generation.split_once('.').unwrap_or((generation, "0"));
        let (major, minor): (u32, u32) = (major.parse().unwrap(), minor.parse().unwrap());
        let gpu = IntelGpu::of(major, minor * 10);
        assert_eq!(gpu.number(), major * 10 + minor, "{name}");
        check(name, gpu, &flat(name, &documents));
    }
}

fn flat<'a>(name: &str, documents: &'a BTreeMap<&str, Document<'a>>) -> Definitions<'a> {
    let root = documents[name].root_element();
    let mut definitions = Definitions::new();
    for node in root.children().filter(Node::is_element) {
        if node.has_tag_name("import") {
            let dropped: BTreeSet<&str> = node.children().filter_map(|n| n.attribute("name")).collect();
            definitions = flat(node.attribute("name").unwrap(), documents);
            definitions.retain(|(_, name), _| !dropped.contains(name));
        }
    }
    for node in root.children().filter(|n| n.is_element() && !n.has_tag_name("import")) {
        let key = (node.tag_name().name(), node.attribute("name").unwrap());
        definitions.insert(key, node);
    }
    definitions
}

fn number(node: Node<'_, '_>, name: &str) -> Option<u64> {
    let text = node.attribute(name)?;
    Some(match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    })
}

fn bits(field: Node<'_, '_>) -> (u32, u32) {
    (number(field, "start").unwrap() as u32, number(field, "end").unwrap() as u32)
}

/// Fields of the header that are part of the opcode by what they are called.
fn is_opcode(field: Node<'_, '_>) -> bool {
    if bits(field).1 >= 32 || field.attribute("default").is_none() {
        return false;
    }
    let name = field.attribute("name").unwrap_or_default().to_lowercase();
    let words = [
        "command type",
        "subtype",
        "opcode",
        "sub-opcode",
        "pipeline",
        "client",
        "media instruction command",
    ];
    words.iter().any(|word| name.contains(word))
}

/// The header that a command's defaults make.
fn header(command: Node<'_, '_>) -> u32 {
    let fields = command.children().filter(|n| n.has_tag_name("field") && bits(*n).1 < 32);
    fields.fold(0, |header, field| header | (number(field, "default").unwrap_or(0) << bits(field).0) as u32)
}

/// What the length in a header leaves out: two dwords where there are fields behind it, whatever the XML says.
fn bias(command: Node<'_, '_>) -> u64 {
    let mut fields = command.children().filter(|n| n.has_tag_name("field"));
    if fields.any(|n| bits(n).0 >= 32) { 2 } else { number(command, "bias").unwrap() }
}

fn engines(command: Node<'_, '_>) -> Vec<EngineClass> {
    let all = || EngineClass::ALL.to_vec();
    command.attribute("engine").map_or_else(all, |text| {
        let names: Vec<_> = text.split('|').collect();
        EngineClass::ALL.into_iter().filter(|e| names.contains(&e.name())).collect()
    })
}

#[test]
fn headers_decode_to_their_commands() {
    let mut commands = 0;
    each_file(|file, gpu, definitions| {
        let all: Vec<_> = definitions.iter().filter(|((tag, _), _)| *tag == "instruction").collect();
        // Commands that share the opcode bits of their headers.
        let mut alike: HashMap<u32, Vec<(&str, Vec<EngineClass>)>> = HashMap::new();
        for ((_, name), node) in &all {
            alike.entry(header(**node) >> 16).or_default().push((name, engines(**node)));
        }
        for ((_, name), node) in &all {
            let value = header(**node);
            for engine in engines(**node) {
                let found =
                    gpu.instruction(value, engine).unwrap_or_else(|| panic!("{file}: {name} {value:#x}"));
                // Two commands of the same header: either may be the one.
                let fits = found.name() == *name
                    || alike[&(value >> 16)]
                        .iter()
                        .any(|(other, engines)| found.name() == *other && engines.contains(&engine));
                assert!(fits, "{file}: {value:#010x} on {engine:?} is {name}, not {}", found.name());
                if found.name() == *name {
                    commands += 1;
                    // The header has the last word: some defaults are not those of the length beside them.
                    let is_length = |n: &Node<'_, '_>| {
                        n.attribute("name").is_some_and(|n| n.ends_with("Length")) && bits(*n).0 == 0
                    };
                    let length = node.children().find(|n| n.has_tag_name("field") && is_length(n));
                    let length = match length {
                        Some(field) => number(field, "default").unwrap_or(0) + bias(**node),
                        None => number(**node, "length").unwrap(),
                    } as u32;
                    assert_eq!(found.length(value), length, "{file}: {name}");
                    assert_eq!(found.header(length).map(|h| found.length(h)), Some(length), "{name}");
                    assert_eq!(found.usual_length(), number(**node, "length").map(|n| n as u32), "{name}");
                }
            }
            if let Some(named) = gpu.instruction_named(name) {
                let field = node.children().find(|n| n.attribute("name") == Some("DWord Length"));
                let bias = bias(**node) as u32;
                if let Some((low, high)) = field.map(bits) {
                    let most = (1 << (high - low + 1)) - 1;
                    assert_eq!(named.length(value | most), most + bias, "{file}: {name}");
                }
                check_layout(&format!("{file}: {name}"), named.layout(), **node, definitions);
            }
        }
        // Nothing of the XML is missing but commands whose header is that of another.
        for ((_, name), node) in &all {
            let alone = alike[&(header(**node) >> 16)].len() == 1;
            assert!(gpu.instruction_named(name).is_some() || !alone, "{file}: {name}");
        }
    });
    assert!(commands > 0 || sources().is_empty());
}

#[test]
fn structures_registers_and_enums_are_those_of_the_xml() {
    each_file(|file, gpu, definitions| {
        for ((tag, name), node) in definitions {
            let what = format!("{file}: {name}");
            match *tag {
                "struct" => {
                    let found = gpu.structure(name).expect(&what);
                    assert_eq!(u64::from(found.dwords()), number(*node, "length").unwrap(), "{what}");
                    check_layout(&what, found.layout(), *node, definitions);
                }
                "register" => {
                    let found = gpu.register_named(name).expect(&what);
                    let offset = number(*node, "num").unwrap() as u32;
                    assert_eq!(found.offset(), offset, "{what}");
                    assert_eq!(u64::from(found.dwords()), number(*node, "length").unwrap(), "{what}");
                    assert_eq!(gpu.register(offset).expect(&what).offset(), offset, "{what}");
                    check_layout(&what, found.layout(), *node, definitions);
                }
                "enum" => {
                    let found = gpu.enumeration(name).expect(&what);
                    for value in node.children().filter(Node::is_element) {
                        let n = number(value, "value").unwrap();
                        assert!(found.name_of(n).is_some(), "{what}");
                        assert!(u64::from(u32::MAX) >= n);
                    }
                    assert_eq!(found.iter().count(), distinct(*node), "{what}");
                }
                _ => {}
            }
        }
    });
}

fn distinct(node: Node<'_, '_>) -> usize {
    let values = node.children().filter(Node::is_element).map(|v| number(v, "value").unwrap());
    values.collect::<BTreeSet<_>>().len()
}

/// A field as the XML says it.
#[derive(Debug, Clone)]
struct Expected<'a> {
    node: Node<'a, 'a>,
    start: u32,
    width: u32,
    depth: u32,
    indices: Vec<u32>,
}

/// Every field in order, groups and structures laid out flat, as far as `limit` bits reach.
fn expected<'a>(
    node: Node<'a, 'a>,
    definitions: &Definitions<'a>,
    base: u32,
    limit: u32,
    depth: u32,
    indices: &[u32],
    out: &mut Vec<Expected<'a>>,
) {
    for item in node.children().filter(Node::is_element) {
        if item.has_tag_name("group") {
            let first = base + number(item, "start").unwrap() as u32;
            let (count, size) = (number(item, "count").unwrap(), number(item, "size").unwrap() as u32);
            let mut element = 0;
            while (count == 0 || u64::from(element) < count) && first + element * size < limit {
                let indices = [indices, &[element]].concat();
                expected(item, definitions, first + element * size, limit, depth, &indices, out);
                element += 1;
            }
        } else if item.has_tag_name("field") {
            let (start, end) = bits(item);
            if base + start >= limit || (node.has_tag_name("instruction") && is_opcode(item)) {
                continue;
            }
            // The flag that makes 3DPRIMITIVE_EXTENDED of 3DPRIMITIVE is part of its opcode.
            let extended = item.attribute("name") == Some("Extended Parameters Present");
            if extended && item.attribute("default") == Some("1") {
                continue;
            }
            let width = (end - start + 1).min(limit - base - start);
            out.push(Expected { node: item, start: base + start, width, depth, indices: indices.to_vec() });
            let ty = item.attribute("type").unwrap();
            if let Some(inner) = definitions.get(&("struct", ty)) {
                let (base, limit) = (base + start, base + start + width);
                expected(*inner, definitions, base, limit, depth + 1, &[], out);
            }
        }
    }
}

fn check_layout(what: &str, layout: FieldLayout, node: Node<'_, '_>, definitions: &Definitions<'_>) {
    // Lengths that cut fields, that end behind the last, and the usual one.
    let usual = number(node, "length").unwrap_or(9) as u32;
    for length in [usual + 3, usual / 2] {
        let mut fields = Vec::new();
        expected(node, definitions, 0, length * 32, 0, &[], &mut fields);
        let words = noise(length);
        let found: Vec<FieldValue> = layout.values(&words, length).collect();
        assert_eq!(found.len(), fields.len(), "{what}: {found:?}");
        for (found, wanted) in found.iter().zip(&fields) {
            check_field(what, found, wanted, &words, definitions);
        }
        let known = length / 2;
        for value in layout.values(&words[..known as usize], length) {
            assert_eq!(value.raw.is_some(), value.start + value.width <= known * 32, "{what}: {value:?}");
        }
    }
}

/// Dwords without a pattern, the same each time.
fn noise(length: u32) -> Vec<u32> {
    let mut state = 0x9e37_79b9_u32;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..length).map(next).collect()
}

fn check_field(
    what: &str,
    found: &FieldValue,
    wanted: &Expected<'_>,
    words: &[u32],
    definitions: &Definitions<'_>,
) {
    let name = wanted.node.attribute("name").unwrap_or_default();
    assert_eq!((found.name, found.start, found.width), (name, wanted.start, wanted.width), "{what}: {name}");
    assert_eq!((found.depth, found.indices()), (wanted.depth, wanted.indices.as_slice()), "{what}: {name}");
    let bit = |n: u32| u64::from(words[n as usize / 32] >> (n % 32) & 1);
    let raw = (0..wanted.width.min(64)).fold(0, |raw, i| raw | bit(wanted.start + i) << i);
    assert_eq!(found.raw, Some(raw), "{what}: {name}");
    let ty = wanted.node.attribute("type").unwrap();
    let tag = |tag: &'static str| definitions.get(&(tag, ty));
    let plain = ["uint", "int", "bool", "address", "offset", "float"].contains(&ty);
    let name_of_value =
        if plain { name_of(wanted.node, raw) } else { tag("enum").and_then(|node| name_of(*node, raw)) };
    let signed = |width: u32| (raw as i64) << (64 - width.min(64)) >> (64 - width.min(64));
    let value = found.value().unwrap();
    if let Some(text) = name_of_value {
        assert!(matches!(value, IntelValue::Enum(n, found) if n == raw && found == text), "{what}: {name}");
        return;
    }
    // The XML has bare numbers where an addition names them.
    if let (IntelValue::Enum(n, found), "uint", Some(added)) = (value, ty, name_of_addition(name, raw)) {
        assert_eq!((n, found), (raw, added), "{what}: {name}");
        return;
    }
    let fixed = |text: &str| text.split_once('.').map(|(_, f)| 2f64.powi(f.parse::<i32>().unwrap()));
    let wanted_value = match ty {
        _ if tag("struct").is_some() => IntelValue::Struct,
        _ if wanted.width > 64 => IntelValue::Wide,
        "uint" => IntelValue::Uint(raw),
        "int" => IntelValue::Int(signed(wanted.width)),
        "bool" if wanted.width == 1 => IntelValue::Bool(raw == 1),
        "bool" => IntelValue::Uint(raw),
        "float" if wanted.width == 32 => {
            let IntelValue::Float(n) = value else { panic!("{what}: {name} {value:?}") };
            assert!((n as f32).to_bits() == raw as u32 || n.is_nan(), "{what}: {name}");
            return;
        }
        "float" => IntelValue::Uint(raw),
        "address" => IntelValue::Address(raw << (wanted.start % 32)),
        "offset" => IntelValue::Offset(raw << (wanted.start % 32)),
        "mbz" if raw == 0 => IntelValue::AsRequired,
        "mbz" => IntelValue::NotZero(raw),
        "mbo" if raw.count_ones() == wanted.width => IntelValue::AsRequired,
        "mbo" => IntelValue::NotOne(raw),
        _ if tag("enum").is_some() => IntelValue::Uint(raw),
        _ if ty.starts_with('u') => IntelValue::Float(raw as f64 / fixed(ty).unwrap()),
        _ => IntelValue::Float(signed(wanted.width) as f64 / fixed(ty).unwrap()),
    };
    assert_eq!(value, wanted_value, "{what}: {name}");
}

/// The name that the additions have for a value of a field: of the enum that a line `typed STRUCT "FIELD" ENUM` gives it.
fn name_of_addition(field: &str, raw: u64) -> Option<&'static str> {
    const FORMATS: &str = include_str!("../data/intel/formats.cmds");
    let typed = |line: &&str| line.starts_with("typed ") && line.contains(&format!("\"{field}\""));
    let of = FORMATS.lines().find(typed)?.rsplit(' ').next()?;
    let lines = FORMATS.lines().skip_while(|line| !line.starts_with(&format!("enum {of} "))).skip(1);
    let mut values = lines.map_while(|line| line.strip_prefix("  ")?.split_once(" = "));
    values.find(|(_, number)| number.parse() == Ok(raw)).map(|(name, _)| name)
}

fn name_of<'a>(node: Node<'a, '_>, raw: u64) -> Option<&'a str> {
    let mut values = node.children().filter(|v| v.has_tag_name("value"));
    values.find(|v| number(*v, "value") == Some(raw))?.attribute("name")
}
