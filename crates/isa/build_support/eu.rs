//! Compiles `data/intel/eu` into the tables of `eu`.

use super::eu_key;
use crate::table_text::camel;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

type Failure = Box<dyn Error>;

/// The generations, in their order.
struct Generations(Vec<String>);

impl Generations {
    /// The positions that `8-11` or `12.5` means.
    fn range(&self, text: &str) -> Result<std::ops::RangeInclusive<usize>, Failure> {
        let position = |name: &str| {
            self.0.iter().position(|g| g == name).ok_or_else(|| format!("{name} is not a generation"))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Ok(position(first)?..=position(last)?)
    }
}

/// Reads the folder and writes `eu.rs` into `out`.
pub fn compile(folder: &Path, out: &Path) -> Result<(), Failure> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut text = String::new();
    let read = |name: &str| -> Result<String, Failure> {
        let path = folder.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        let source = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(source.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect())
    };
    let gens = platforms(&read("platforms.txt")?, &mut text)?;
    fields(&read("fields.txt")?, &gens, &mut text)?;
    opcodes(&read("opcodes.txt")?, &gens, &mut text)?;
    types(&read("types.txt")?, &gens, &mut text)?;
    names(&read("names.txt")?, &gens, &mut text)?;
    swsb(&read("swsb.txt")?, &gens, &mut text)?;
    compaction(&read("compaction.txt")?, &gens, &mut text)?;
    fs::write(out.join("eu.rs"), text)?;
    Ok(())
}

/// The words of a line, at least `count`.
fn words(line: &str, count: usize) -> Result<Vec<&str>, Failure> {
    let words: Vec<_> = line.split_whitespace().collect();
    if words.len() < count {
        return Err(format!("{line:?}: fewer than {count} words").into());
    }
    Ok(words)
}

fn platforms(source: &str, text: &mut String) -> Result<Generations, Failure> {
    let mut gens = Generations(Vec::new());
    let mut rows = Vec::new();
    for line in source.lines().filter(|l| !l.is_empty()) {
        let words = words(line, 2)?;
        if words[0] == "generations" {
            gens.0 = words[1..].iter().map(|&g| g.to_owned()).collect();
        } else {
            let generation = *gens.range(words[1])?.start();
            let has = |word| words[2..].contains(&word);
            rows.push(format!(
                "PlatformRow {{ name: {:?}, generation: {generation}, math_doubles: {}, doubles: {}, quads: {}, low_power: {} }}",
                words[0],
                has("math-doubles"),
                has("doubles"),
                has("quads"),
                has("low-power"),
            ));
        }
    }
    writeln!(
        text,
        "/// How many generations the tables have.\npub const GENERATIONS: usize = {};",
        gens.0.len()
    )?;
    writeln!(text, "/// Their names.\npub static GENERATION_NAMES: [&str; GENERATIONS] = {:?};", gens.0)?;
    writeln!(text, "/// The platforms.")?;
    writeln!(text, "pub static PLATFORMS: &[PlatformRow] = &[{}];", rows.join(", "))?;
    Ok(gens)
}

/// `31:28 4` as (lowest bit, width) pairs.
fn ranges(source: &str) -> Result<Vec<(u8, u8)>, Failure> {
    let mut parts = Vec::new();
    for range in source.split_whitespace() {
        let (high, low) = range.split_once(':').unwrap_or((range, range));
        let (high, low): (u8, u8) = (high.parse()?, low.parse()?);
        parts.push((low, high - low + 1));
    }
    Ok(parts)
}

fn fields(source: &str, gens: &Generations, text: &mut String) -> Result<(), Failure> {
    let mut names = Vec::new();
    let mut tables = vec![Vec::new(); gens.0.len()];
    for line in source.lines().filter(|l| !l.is_empty()) {
        let (name, rest) = line.split_once(char::is_whitespace).ok_or(line)?;
        names.push(name);
        for table in &mut tables {
            table.push(Vec::new());
        }
        for entry in rest.split(';') {
            let (range, bits) = entry.trim().split_once(' ').ok_or_else(|| format!("{line:?}: no bits"))?;
            let parts = ranges(bits)?;
            if parts.iter().any(|&(low, width)| low / 64 != (low + width - 1) / 64) {
                return Err(format!("{line:?}: a range in both halves").into());
            }
            for generation in gens.range(range)? {
                tables[generation][names.len() - 1].clone_from(&parts);
            }
        }
    }
    writeln!(text, "/// A field of an instruction, see `data/intel/eu/fields.txt`.")?;
    writeln!(
        text,
        "#[derive(Debug, Clone, Copy, PartialEq, Eq)]\n#[allow(missing_docs, dead_code)]\n#[repr(u8)]"
    )?;
    writeln!(text, "pub enum Field {{ {} }}", names.join(", "))?;
    writeln!(text, "/// The bits of each field, by generation.")?;
    writeln!(text, "pub static FIELDS: [[FieldBits; {}]; GENERATIONS] = [", names.len())?;
    let mut further: Vec<(u8, u8)> = Vec::new();
    for table in tables {
        text.push('[');
        for parts in table {
            let (&(low, first), rest) = parts.split_first().unwrap_or((&(0, 0), &[]));
            let mask = u64::MAX.checked_shr(64 - u32::from(first)).unwrap_or(0);
            let width: u8 = parts.iter().map(|part| part.1).sum();
            // The same ranges stand in the table once.
            let known = further.windows(rest.len().max(1)).position(|window| window == rest);
            let start = known.filter(|_| !rest.is_empty()).unwrap_or(further.len());
            if known.is_none() {
                further.extend(rest);
            }
            let place = if rest.is_empty() { 0 } else { u8::try_from(start)? };
            write!(
                text,
                "FieldBits {{ mask: {mask}, low: {low}, width: {width}, rest: ({place}, {}) }},",
                rest.len()
            )?;
        }
        text.push_str("],\n");
    }
    text.push_str("];\n");
    writeln!(text, "/// The ranges of fields after the first: (lowest bit, width).")?;
    writeln!(text, "pub static FIELD_PARTS: &[(u8, u8)] = &{further:?};")?;
    Ok(())
}

fn opcodes(source: &str, gens: &Generations, text: &mut String) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut variants: Vec<String> = Vec::new();
    let mut codes = vec![[None; 128]; gens.0.len()];
    for line in source.lines().filter(|l| !l.is_empty()) {
        let words = words(line, 4)?;
        let variant = camel(words[0]);
        let index = variants.iter().position(|v| *v == variant).unwrap_or_else(|| {
            variants.push(variant);
            variants.len() - 1
        });
        let mut by_gen = vec![None::<u8>; gens.0.len()];
        for place in &words[3..] {
            let (range, code) = place.split_once(':').ok_or_else(|| format!("{line:?}: no code"))?;
            for generation in gens.range(range)? {
                let code: u8 = code.parse()?;
                by_gen[generation] = Some(code);
                if codes[generation][usize::from(code)].replace(rows.len()).is_some() {
                    return Err(format!("{line:?}: opcode {code} has two names").into());
                }
            }
        }
        rows.push((index, words[0].to_owned(), words[1].parse::<u8>()?, words[2].parse::<u8>()?, by_gen));
    }
    writeln!(text, "/// What an instruction does.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]")?;
    writeln!(text, "#[allow(missing_docs, dead_code)]\npub enum Opcode {{ {} }}", variants.join(", "))?;
    writeln!(text, "/// The rows of `opcodes.txt`.\npub static OPCODES: &[OpcodeRow] = &[")?;
    for (index, name, sources, destinations, codes) in &rows {
        let opcode = &variants[*index];
        writeln!(
            text,
            "OpcodeRow {{ opcode: Opcode::{opcode}, name: {name:?}, sources: {sources}, destinations: {destinations}, codes: {codes:?} }},"
        )?;
    }
    let (multiplier, slots) = slots(&rows)?;
    writeln!(text, "];\n/// Multiplier of the key of a name, whose highest 8 bits are then its slot.")?;
    writeln!(text, "pub const OPCODE_NAME_MULTIPLIER: u64 = {multiplier};")?;
    writeln!(text, "/// By slot: rows of `OPCODES` of one name; `OPCODES.len()` twice for none.")?;
    writeln!(text, "pub static OPCODE_NAME_SLOTS: [(u8, u8); 256] = {slots:?};")?;
    writeln!(text, "/// By generation and code: an index of `OPCODES`, 255 for none.")?;
    writeln!(text, "pub static OPCODE_ROWS: [[u8; 128]; GENERATIONS] = [")?;
    for table in codes {
        let table: Vec<_> = table.iter().map(|row| row.unwrap_or(255)).collect();
        writeln!(text, "{table:?},")?;
    }
    text.push_str("];\n");
    Ok(())
}

/// A row of `opcodes.txt`: variant, name, sources, destinations, code by generation.
type Row = (usize, String, u8, u8, Vec<Option<u8>>);

/// A hash of the names without collisions: the multiplier, and (first, last) row of the name by slot. At most two rows
/// share a name.
fn slots(rows: &[Row]) -> Result<(u64, Vec<(u8, u8)>), Failure> {
    let mut places: BTreeMap<u64, (u8, u8)> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let index = u8::try_from(index)?;
        let key = eu_key::packed(row.1.as_bytes()).ok_or_else(|| format!("{}: a long name", row.1))?;
        let place = places.entry(key).or_insert((index, index));
        if place.1 != place.0 {
            return Err(format!("{}: more than two rows", row.1).into());
        }
        place.1 = index;
    }
    let none = u8::try_from(rows.len())?;
    let mut multiplier = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..1_000_000 {
        let mut slots = vec![(none, none); 256];
        let free = places.iter().all(|(&key, &place)| {
            let slot = eu_key::slot(key, multiplier);
            std::mem::replace(&mut slots[slot], place) == (none, none)
        });
        if free {
            return Ok((multiplier, slots));
        }
        multiplier = multiplier.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f) | 1;
    }
    Err("no hash of the names without collisions".into())
}

fn types(source: &str, gens: &Generations, text: &mut String) -> Result<(), Failure> {
    let mut types = Vec::new();
    let mut tables: BTreeMap<&str, Vec<[Option<usize>; 16]>> = BTreeMap::new();
    for line in source.lines().filter(|l| !l.is_empty()) {
        let words = words(line, 3)?;
        if words[0] == "type" {
            types.push((words[1].to_owned(), words[2].parse::<u8>()?));
            continue;
        }
        let index =
            types.iter().position(|(n, _)| n == words[1]).ok_or_else(|| format!("{line:?}: no such type"))?;
        let table = tables.entry(words[0]).or_insert_with(|| vec![[None; 16]; gens.0.len()]);
        for place in &words[2..] {
            let (range, code) = place.split_once(':').ok_or_else(|| format!("{line:?}: no code"))?;
            for generation in gens.range(range)? {
                table[generation][code.parse::<usize>()?] = Some(index);
            }
        }
    }
    let variants: Vec<_> = types.iter().map(|(name, _)| name.as_str()).collect();
    writeln!(text, "/// The type of an operand.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]")?;
    writeln!(
        text,
        "#[allow(missing_docs, clippy::upper_case_acronyms)]\npub enum Type {{ {} }}",
        variants.join(", ")
    )?;
    writeln!(text, "/// Type, name and bytes.\npub static TYPES: [(Type, &str, u8); {}] = [", types.len())?;
    for (name, bytes) in &types {
        writeln!(text, "(Type::{name}, {name:?}, {bytes}),")?;
    }
    text.push_str("];\n");
    let keys: Option<Vec<_>> = types.iter().map(|(name, _)| eu_key::packed(name.as_bytes())).collect();
    writeln!(text, "/// Names of the types as numbers.")?;
    writeln!(text, "pub static TYPE_KEYS: &[u64] = &{:?};", keys.ok_or("a long name of a type")?)?;
    for (name, table) in tables {
        let name = format!("{}_TYPES", name.to_uppercase());
        writeln!(
            text,
            "/// By generation and code.\npub static {name}: [[Option<Type>; 16]; GENERATIONS] = ["
        )?;
        for codes in table {
            text.push('[');
            for code in codes {
                match code {
                    Some(index) => write!(text, "Some(Type::{}),", types[index].0)?,
                    None => text.push_str("None,"),
                }
            }
            text.push_str("],\n");
        }
        text.push_str("];\n");
    }
    Ok(())
}

fn names(source: &str, gens: &Generations, text: &mut String) -> Result<(), Failure> {
    type Row<'a> = (usize, &'a str, &'a str);
    let mut tables: Vec<(&str, Vec<Row>)> = Vec::new();
    for line in source.lines().filter(|l| !l.is_empty()) {
        match line.strip_prefix("  ") {
            None => tables.push((line, Vec::new())),
            Some(row) => {
                let mut row = row.splitn(3, ' ');
                let (Some(code), Some(range), Some(name)) = (row.next(), row.next(), row.next()) else {
                    return Err(format!("{line:?}: no name").into());
                };
                tables.last_mut().ok_or("a name before its table")?.1.push((code.parse()?, range, name));
            }
        }
    }
    for (table, rows) in tables {
        let size = rows.iter().map(|row| row.0 + 1).max().unwrap_or(0);
        let mut by_gen = vec![vec![""; size]; gens.0.len()];
        for (code, range, name) in rows {
            for generation in gens.range(range)? {
                if !std::mem::replace(&mut by_gen[generation][code], name).is_empty() {
                    return Err(format!("{table}: code {code} has two names").into());
                }
            }
        }
        let name = table.to_uppercase();
        writeln!(text, "/// Names by generation and code, empty where there is none.")?;
        writeln!(text, "pub static {name}: [[&str; {size}]; GENERATIONS] = {by_gen:?};")?;
    }
    Ok(())
}

fn swsb(source: &str, gens: &Generations, text: &mut String) -> Result<(), Failure> {
    writeln!(text, "/// The rows of `swsb.txt`.\npub static SWSB: &[SwsbRow] = &[")?;
    for line in source.lines().filter(|l| !l.is_empty()) {
        let words = words(line, 5)?;
        let range = gens.range(words[0])?;
        let bits = words[1].as_bytes();
        let (mut mask, mut value, mut distance, mut token) = (0u16, 0u16, 0u16, 0u16);
        for (i, bit) in bits.iter().rev().enumerate() {
            let one = 1u16 << i;
            match bit {
                b'0' | b'1' => {
                    mask |= one;
                    value |= if *bit == b'1' { one } else { 0 };
                }
                b'd' => distance |= one,
                b's' => token |= one,
                b'x' => {}
                _ => return Err(format!("{line:?}: not a bit").into()),
            }
        }
        let class = camel(words[2]);
        let pipe = words[3].trim_matches('-');
        let mode =
            if words[4] == "-" { "None".to_owned() } else { format!("Some(TokenMode::{})", camel(words[4])) };
        writeln!(
            text,
            "SwsbRow {{ first: {}, last: {}, mask: {mask}, value: {value}, distance: {distance}, token: {token}, class: SwsbClass::{class}, pipe: {pipe:?}, mode: {mode} }},",
            range.start(),
            range.end()
        )?;
    }
    text.push_str("];\n");
    swsb_rows(source, gens, text)
}

/// Bits of the scoreboard's field where it is widest.
const SWSB_BITS: usize = 10;

/// For each generation, class of instruction and value of the scoreboard's field the row that is for it.
fn swsb_rows(source: &str, gens: &Generations, text: &mut String) -> Result<(), Failure> {
    // As `SwsbKind` in `tables.rs`: the classes of rows that are for such instructions.
    const KINDS: [[&str; 3]; 4] = [
        ["any", "send", "unordered"],
        ["any", "dpas", "unordered"],
        ["any", "other", "unordered"],
        ["any", "other", "ordered"],
    ];
    writeln!(text, "/// By generation, `SwsbKind` and value: an index of `SWSB`, 255 for none.")?;
    writeln!(text, "pub static SWSB_ROWS: [[[u8; {}]; {}]; GENERATIONS] = [", 1 << SWSB_BITS, KINDS.len())?;
    for generation in 0..gens.0.len() {
        text.push('[');
        for kind in KINDS {
            let mut rows = [255; 1 << SWSB_BITS];
            for (index, line) in source.lines().filter(|l| !l.is_empty()).enumerate() {
                let words = words(line, 5)?;
                if !gens.range(words[0])?.contains(&generation) || !kind.contains(&words[2]) {
                    continue;
                }
                let bit = |of: u8| words[1].bytes().fold(0, |bits, b| bits << 1 | usize::from(b == of));
                let (ones, fixed) = (bit(b'1'), bit(b'0') | bit(b'1'));
                for (value, row) in rows.iter_mut().enumerate() {
                    if value & fixed == ones && *row == 255 {
                        *row = u8::try_from(index)?;
                    }
                }
            }
            write!(text, "{rows:?},")?;
        }
        text.push_str("],\n");
    }
    text.push_str("];\n");
    Ok(())
}

fn compaction(source: &str, gens: &Generations, text: &mut String) -> Result<(), Failure> {
    let mut bits: BTreeMap<(String, usize), Vec<(u8, u8)>> = BTreeMap::new();
    let mut entries: BTreeMap<(String, usize), Vec<u64>> = BTreeMap::new();
    let mut names: Vec<String> = Vec::new();
    let mut current: Vec<(String, usize)> = Vec::new();
    for line in source.lines().filter(|l| !l.is_empty()) {
        let words = words(line, 1)?;
        match words[0] {
            "bits" if words.len() > 3 => {
                if !names.iter().any(|n| n == words[1]) {
                    names.push(words[1].to_owned());
                }
                for generation in gens.range(words[2])? {
                    bits.insert((words[1].to_owned(), generation), ranges(&words[3..].join(" "))?);
                }
            }
            "table" if words.len() == 3 => {
                current = gens.range(words[2])?.map(|g| (words[1].to_owned(), g)).collect();
            }
            entry => {
                for key in &current {
                    entries.entry(key.clone()).or_default().push(u64::from_str_radix(entry, 2)?);
                }
            }
        }
    }
    writeln!(
        text,
        "/// A table of compaction.\n#[derive(Debug, Clone, Copy, PartialEq, Eq)]\n#[allow(missing_docs)]"
    )?;
    writeln!(text, "pub enum CompactTable {{ {} }}", names.join(", "))?;
    writeln!(text, "/// By generation and table: bit ranges of the full instruction, and the entries.")?;
    writeln!(text, "pub static COMPACTION: [[CompactRows; {}]; GENERATIONS] = [", names.len())?;
    for generation in 0..gens.0.len() {
        text.push('[');
        for name in &names {
            let key = (name.clone(), generation);
            let parts = bits.get(&key).cloned().unwrap_or_default();
            let rows = entries.get(&key).cloned().unwrap_or_default();
            write!(text, "CompactRows {{ ranges: &{parts:?}, entries: &{rows:?} }},")?;
        }
        text.push_str("],\n");
    }
    text.push_str("];\n");
    Ok(())
}
