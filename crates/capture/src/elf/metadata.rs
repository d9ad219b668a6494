//! Metadata of kernels and pipelines: `.amdgpu_metadata` to `.end_amdgpu_metadata` holds YAML, the code object a note of MessagePack.
//!
//! Facts: LLVM's `AMDGPUUsage` (Code Object V3 and Above Metadata, PAL Metadata). What is read of YAML is what compilers write: blocks,
//! scalars with and without quotes, empty lists and maps. Keys are ordered in the note, as LLVM orders them.

use super::note::{ElfNote, notes};
use std::fmt::Write;
use unwedge_isa::amdgcn::source::{MetadataLine, quoted};

/// Type of the note.
const NT_AMDGPU_METADATA: u32 = 32;
/// Whose note it is, with its zero byte.
const OWNER: &[u8] = b"AMDGPU\0";
/// Lists and maps in each other.
const MAX_DEPTH: usize = 16;

/// A value of metadata.
#[derive(Clone, Debug, PartialEq)]
enum MetadataValue {
    Nil,
    Flag(bool),
    Int(i64),
    Large(u64),
    Text(String),
    List(Vec<MetadataValue>),
    Map(Vec<(MetadataValue, MetadataValue)>),
}

/// What is wrong with metadata, and in which line.
pub type MetadataError = (usize, &'static str);

/// The note with this metadata, header included.
///
/// # Errors
/// The number of a line, and what is wrong there.
pub fn note(lines: &[MetadataLine]) -> Result<Vec<u8>, MetadataError> {
    let mut reader = MetadataReader { rows: lines.to_vec(), at: 0 };
    let value = reader.block(0, 0)?;
    if let Some(row) = reader.rows.get(reader.at) {
        return Err((row.line, "metadata: this line does not belong to what is above it"));
    }
    let mut body = Vec::new();
    write(&value, &mut body);
    let mut out = Vec::with_capacity(body.len() + 24);
    for number in [OWNER.len() as u32, body.len() as u32, NT_AMDGPU_METADATA] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for part in [OWNER, &body] {
        out.extend_from_slice(part);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    Ok(out)
}

struct MetadataReader {
    rows: Vec<MetadataLine>,
    at: usize,
}

impl MetadataReader {
    /// What stands at this indentation or deeper.
    fn block(&mut self, least: usize, depth: usize) -> Result<MetadataValue, MetadataError> {
        let Some(row) = self.rows.get(self.at).filter(|row| row.indent >= least) else {
            return Ok(MetadataValue::Nil);
        };
        if depth >= MAX_DEPTH {
            return Err((row.line, "metadata: lists and maps are too deep in each other"));
        }
        let indent = row.indent;
        match (item(&row.text), key(&row.text)) {
            (Some(_), _) => self.list(indent, depth),
            (None, Some(_)) => self.map(indent, depth),
            (None, None) => {
                let value = scalar(&row.text).ok_or((row.line, "metadata: a text without its end"));
                self.at += 1;
                value
            }
        }
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<MetadataValue, MetadataError> {
        let mut values = Vec::new();
        while let Some(row) = self.rows.get_mut(self.at).filter(|row| row.indent == indent) {
            let Some(skipped) = item(&row.text) else { break };
            let rest = row.text.split_off(skipped);
            if rest.is_empty() {
                self.at += 1;
                values.push(self.block(indent + 1, depth + 1)?);
            } else {
                // What stands behind the dash is a block at its own column.
                (row.text, row.indent) = (rest, indent + skipped);
                values.push(self.block(indent + 1, depth + 1)?);
            }
        }
        Ok(MetadataValue::List(values))
    }

    fn map(&mut self, indent: usize, depth: usize) -> Result<MetadataValue, MetadataError> {
        let mut entries = Vec::new();
        while let Some(row) = self.rows.get(self.at).filter(|row| row.indent == indent) {
            let line = row.line;
            let Some((name, rest)) = key(&row.text) else {
                return Err((line, "metadata: expected a name and a colon"));
            };
            let name = scalar(name).ok_or((line, "metadata: a text without its end"))?;
            let own = match rest {
                "" => None,
                rest => Some(scalar(rest).ok_or((line, "metadata: a text without its end"))?),
            };
            self.at += 1;
            let value = match own {
                Some(value) => value,
                None => {
                    // A list may stand at the column of its name.
                    let next = self.rows.get(self.at);
                    let same = next.is_some_and(|row| row.indent == indent && item(&row.text).is_some());
                    self.block(if same { indent } else { indent + 1 }, depth + 1)?
                }
            };
            entries.push((name, value));
        }
        Ok(MetadataValue::Map(entries))
    }
}

/// Bytes up to what a dash announces.
fn item(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('-')?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| text.len() - rest.trim_start().len())
}

/// `name: value`; a colon is one when a blank follows, or nothing.
fn key(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') if at == 0 => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, ':') => {
                let rest = text.get(at + 1..).unwrap_or_default();
                if rest.is_empty() || rest.starts_with([' ', '\t']) {
                    return Some((text.get(..at)?.trim_end(), rest.trim()));
                }
            }
            _ => {}
        }
    }
    None
}

/// A value on one line; `None` where a quote is not closed.
fn scalar(text: &str) -> Option<MetadataValue> {
    if let Some(rest) = text.strip_prefix('\'') {
        return Some(MetadataValue::Text(rest.strip_suffix('\'')?.replace("''", "'")));
    }
    if text.starts_with('"') {
        let bytes = quoted(text)?;
        return Some(MetadataValue::Text(String::from_utf8_lossy(&bytes).into_owned()));
    }
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    Some(match text {
        "" | "~" | "null" => MetadataValue::Nil,
        "true" => MetadataValue::Flag(true),
        "false" => MetadataValue::Flag(false),
        "[]" | "[ ]" => MetadataValue::List(Vec::new()),
        "{}" | "{ }" => MetadataValue::Map(Vec::new()),
        _ => match (text.parse(), text.parse(), text.strip_prefix("0x").and_then(hex)) {
            (Ok(number), ..) => MetadataValue::Int(number),
            (_, Ok(number), _) => MetadataValue::Large(number),
            (.., Some(number)) => {
                i64::try_from(number).map_or(MetadataValue::Large(number), MetadataValue::Int)
            }
            _ => MetadataValue::Text(text.to_owned()),
        },
    })
}

/// Appends a value as MessagePack, in its shortest form.
fn write(value: &MetadataValue, out: &mut Vec<u8>) {
    let head = |out: &mut Vec<u8>, len: usize, short: u8, most: usize, codes: [u8; 3]| match len {
        len if len <= most => out.push(short | len as u8),
        len if len < 1 << 8 && codes[0] != 0 => out.extend([codes[0], len as u8]),
        len if len < 1 << 16 => {
            out.push(codes[1]);
            out.extend((len as u16).to_be_bytes());
        }
        len => {
            out.push(codes[2]);
            out.extend((len as u32).to_be_bytes());
        }
    };
    match value {
        MetadataValue::Nil => out.push(0xc0),
        MetadataValue::Flag(flag) => out.push(0xc2 | u8::from(*flag)),
        MetadataValue::Int(number @ 0..) => unsigned(*number as u64, out),
        MetadataValue::Large(number) => unsigned(*number, out),
        MetadataValue::Int(number) => match number {
            -32.. => out.push(*number as u8),
            -0x80.. => out.extend([0xd0, *number as u8]),
            -0x8000.. => {
                out.push(0xd1);
                out.extend((*number as i16).to_be_bytes());
            }
            -0x8000_0000.. => {
                out.push(0xd2);
                out.extend((*number as i32).to_be_bytes());
            }
            _ => {
                out.push(0xd3);
                out.extend(number.to_be_bytes());
            }
        },
        MetadataValue::Text(text) => {
            head(out, text.len(), 0xa0, 31, [0xd9, 0xda, 0xdb]);
            out.extend_from_slice(text.as_bytes());
        }
        MetadataValue::List(values) => {
            head(out, values.len(), 0x90, 15, [0, 0xdc, 0xdd]);
            values.iter().for_each(|value| write(value, out));
        }
        MetadataValue::Map(entries) => {
            head(out, entries.len(), 0x80, 15, [0, 0xde, 0xdf]);
            let mut order: Vec<&(MetadataValue, MetadataValue)> = entries.iter().collect();
            order.sort_by_cached_key(|(name, _)| match name {
                MetadataValue::Text(name) => name.clone(),
                _ => String::new(),
            });
            for (name, value) in order {
                write(name, out);
                write(value, out);
            }
        }
    }
}

fn unsigned(number: u64, out: &mut Vec<u8>) {
    match number {
        0..0x80 => out.push(number as u8),
        0x80..0x100 => out.extend([0xcc, number as u8]),
        0x100..0x1_0000 => {
            out.push(0xcd);
            out.extend((number as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(0xce);
            out.extend((number as u32).to_be_bytes());
        }
        _ => {
            out.push(0xcf);
            out.extend(number.to_be_bytes());
        }
    }
}

/// The metadata of a section of notes as lines of YAML; `None` where none of them is such, or it cannot be read.
pub fn text(section: &[u8]) -> Option<String> {
    let value = parsed(section)?;
    let mut out = String::new();
    show(&value, 0, false, &mut out);
    Some(out)
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelArgument {
    /// Its name in the source; empty if not told.
    pub name: String,
    /// Bytes from the beginning of the arguments.
    pub offset: u32,
    /// Its bytes.
    pub size: u32,
    /// What it is: `by_value`, `global_buffer`, `hidden_block_count_x`.
    pub kind: String,
}

/// The arguments of a kernel by the metadata in a section of notes, in their order; `None` if it does not tell of the kernel.
/// Arguments that lack something are left out.
pub fn arguments(section: &[u8], kernel: &str) -> Option<Vec<KernelArgument>> {
    let metadata = parsed(section)?;
    let Some(MetadataValue::List(kernels)) = metadata.get("amdhsa.kernels") else { return None };
    let found = kernels
        .iter()
        .find(|k| matches!(k.get(".name"), Some(MetadataValue::Text(name)) if name == kernel))?;
    let Some(MetadataValue::List(all)) = found.get(".args") else { return Some(Vec::new()) };
    let text = |value: &MetadataValue, key: &str| match value.get(key) {
        Some(MetadataValue::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let number = |value: &MetadataValue, key: &str| value.get(key).and_then(MetadataValue::number);
    let of = |value: &MetadataValue| {
        Some(KernelArgument {
            name: text(value, ".name").unwrap_or_default(),
            offset: number(value, ".offset")?,
            size: number(value, ".size")?,
            kind: text(value, ".value_kind")?,
        })
    };
    Some(all.iter().filter_map(of).collect())
}

/// A hardware stage of a pipeline of PAL: where it starts, and what it starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PalStage {
    /// Its name: `cs`, `ps`, `gs`.
    pub name: String,
    /// The symbol of its code.
    pub entry: String,
    /// Whether its waves have 32 lanes, if told: by their number, or by the registers that are set for it.
    pub wave32: Option<bool>,
    /// User registers, if told.
    pub user_sgprs: Option<u32>,
    /// `COMPUTE_PGM_RSRC2` of a compute stage, if told.
    pub rsrc2: Option<u32>,
}

/// Registers that metadata of PAL set, by their number in dwords; a test holds them to the facts of `unwedge_hw`. Their
/// numbers are those of gfx10 to gfx11.5; gfx12 moved two of them.
const COMPUTE_DISPATCH_INITIATOR: u32 = 0x2e00;
pub(super) const COMPUTE_PGM_RSRC2: u32 = 0x2e13;
const SPI_PS_IN_CONTROL: u32 = 0xa1b6;
const VGT_SHADER_STAGES_EN: u32 = 0xa2d5;

/// Where each stage has the bit that says that its waves have 32 lanes.
const WAVE32: [(&str, u32, u32); 5] = [
    (".cs", COMPUTE_DISPATCH_INITIATOR, 15),
    (".ps", SPI_PS_IN_CONTROL, 15),
    (".hs", VGT_SHADER_STAGES_EN, 21),
    (".gs", VGT_SHADER_STAGES_EN, 22),
    (".vs", VGT_SHADER_STAGES_EN, 23),
];

/// The hardware stages of pipelines by the metadata of PAL in a section of notes; `None` if there is none.
pub fn stages(section: &[u8]) -> Option<Vec<PalStage>> {
    let metadata = parsed(section)?;
    let Some(MetadataValue::List(pipelines)) = metadata.get("amdpal.pipelines") else { return None };
    let mut all = Vec::new();
    for pipeline in pipelines {
        let Some(MetadataValue::Map(stages)) = pipeline.get(".hardware_stages") else { continue };
        let registers = pipeline.get(".registers");
        let register = |wanted: u32| {
            let Some(MetadataValue::Map(all)) = registers else { return None };
            all.iter()
                .find(|(key, _)| *key == MetadataValue::Int(wanted.into()))
                .and_then(|(_, value)| value.number())
        };
        for (key, stage) in stages {
            let (MetadataValue::Text(key), Some(MetadataValue::Text(entry))) =
                (key, stage.get(".entry_point"))
            else {
                continue;
            };
            let lanes = stage.get(".wavefront_size").and_then(MetadataValue::number).map(|lanes| lanes == 32);
            let bit = WAVE32.iter().find(|(name, ..)| name == key);
            // A register that is not told is 0.
            let set = bit.filter(|_| registers.is_some());
            let set = set.map(|(_, at, bit)| register(*at).unwrap_or(0) >> bit & 1 == 1);
            all.push(PalStage {
                name: key.trim_start_matches('.').to_owned(),
                entry: entry.clone(),
                wave32: lanes.or(set),
                user_sgprs: stage.get(".user_sgprs").and_then(MetadataValue::number),
                rsrc2: register(COMPUTE_PGM_RSRC2).filter(|_| key == ".cs"),
            });
        }
    }
    Some(all)
}

impl MetadataValue {
    /// A number of 32 bits.
    fn number(&self) -> Option<u32> {
        match self {
            MetadataValue::Int(number) => u32::try_from(*number).ok(),
            _ => None,
        }
    }

    /// What stands under a name.
    fn get(&self, name: &str) -> Option<&MetadataValue> {
        let MetadataValue::Map(entries) = self else { return None };
        let named = |key: &MetadataValue| matches!(key, MetadataValue::Text(text) if text == name);
        entries.iter().find(|(key, _)| named(key)).map(|(_, value)| value)
    }
}

/// The metadata of a section of notes.
fn parsed(section: &[u8]) -> Option<MetadataValue> {
    let ours = |note: &ElfNote<'_>| note.kind == NT_AMDGPU_METADATA && note.owner.starts_with(OWNER);
    let note = notes(section).find(ours)?;
    read(&mut { note.contents }, 0)
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn big_endian(bytes: &mut &[u8], count: usize) -> Option<u64> {
    Some(take(bytes, count)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn read(bytes: &mut &[u8], depth: usize) -> Option<MetadataValue> {
    if depth > MAX_DEPTH {
        return None;
    }
    let code = *take(bytes, 1)?.first()?;
    let text = |bytes: &mut &[u8], len: u64| {
        let taken = take(bytes, usize::try_from(len).ok()?)?;
        Some(MetadataValue::Text(String::from_utf8_lossy(taken).into_owned()))
    };
    let signed = |bytes: &mut &[u8], count: usize| {
        let shift = 64 - 8 * count as u32;
        Some(MetadataValue::Int((big_endian(bytes, count)? << shift) as i64 >> shift))
    };
    match code {
        0..0x80 => Some(MetadataValue::Int(code.into())),
        0x80..0x90 => map(bytes, u64::from(code & 15), depth),
        0x90..0xa0 => list(bytes, u64::from(code & 15), depth),
        0xa0..0xc0 => text(bytes, u64::from(code & 31)),
        0xc0 => Some(MetadataValue::Nil),
        0xc2 | 0xc3 => Some(MetadataValue::Flag(code == 0xc3)),
        0xcc..=0xcf => {
            let number = big_endian(bytes, 1 << (code - 0xcc))?;
            Some(i64::try_from(number).map_or(MetadataValue::Large(number), MetadataValue::Int))
        }
        0xd0..=0xd3 => signed(bytes, 1 << (code - 0xd0)),
        0xd9..=0xdb => {
            let len = big_endian(bytes, 1 << (code - 0xd9))?;
            text(bytes, len)
        }
        0xdc | 0xdd => {
            let len = big_endian(bytes, 2 << (code - 0xdc))?;
            list(bytes, len, depth)
        }
        0xde | 0xdf => {
            let len = big_endian(bytes, 2 << (code - 0xde))?;
            map(bytes, len, depth)
        }
        0xe0.. => Some(MetadataValue::Int(i64::from(code as i8))),
        _ => None,
    }
}

fn list(bytes: &mut &[u8], len: u64, depth: usize) -> Option<MetadataValue> {
    let mut values = Vec::new();
    for _ in 0..len {
        values.push(read(bytes, depth + 1)?);
    }
    Some(MetadataValue::List(values))
}

fn map(bytes: &mut &[u8], len: u64, depth: usize) -> Option<MetadataValue> {
    let mut entries = Vec::new();
    for _ in 0..len {
        entries.push((read(bytes, depth + 1)?, read(bytes, depth + 1)?));
    }
    Some(MetadataValue::Map(entries))
}

/// Appends a value as YAML. `inline`: behind a dash, whose column is two before.
fn show(value: &MetadataValue, indent: usize, inline: bool, out: &mut String) {
    let blanks = |first: bool, out: &mut String| {
        if !(first && inline) {
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match value {
        MetadataValue::Map(entries) if !entries.is_empty() => {
            for (i, (name, value)) in entries.iter().enumerate() {
                blanks(i == 0, out);
                out.push_str(&shown(name));
                out.push(':');
                match value {
                    MetadataValue::Map(inner) if !inner.is_empty() => {
                        out.push('\n');
                        show(value, indent + 2, false, out);
                    }
                    MetadataValue::List(inner) if !inner.is_empty() => {
                        out.push('\n');
                        show(value, indent + 2, false, out);
                    }
                    value => {
                        out.push(' ');
                        out.push_str(&shown(value));
                        out.push('\n');
                    }
                }
            }
        }
        MetadataValue::List(values) if !values.is_empty() => {
            for (i, value) in values.iter().enumerate() {
                blanks(i == 0, out);
                out.push_str("- ");
                show(value, indent + 2, true, out);
            }
        }
        value => {
            blanks(true, out);
            out.push_str(&shown(value));
            out.push('\n');
        }
    }
}

/// A value on one line.
fn shown(value: &MetadataValue) -> String {
    match value {
        MetadataValue::Nil => "~".to_owned(),
        MetadataValue::Flag(flag) => flag.to_string(),
        MetadataValue::Int(number) => number.to_string(),
        MetadataValue::Large(number) => number.to_string(),
        MetadataValue::List(_) => "[]".to_owned(),
        MetadataValue::Map(_) => "{}".to_owned(),
        MetadataValue::Text(text) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._@$/-*<>() ".contains(c);
            let same = scalar(text) == Some(MetadataValue::Text(text.clone()));
            let edges = text.starts_with([' ', '-', '*', '@', '>']) || text.ends_with(' ');
            if same && !edges && text.chars().all(plain) {
                return text.clone();
            }
            let mut out = String::from("\"");
            for byte in text.bytes() {
                match byte {
                    b'"' | b'\\' => {
                        out.push('\\');
                        out.push(char::from(byte));
                    }
                    b' '..=b'~' => out.push(char::from(byte)),
                    // Writing to a string does not fail.
                    _ => drop(write!(out, "\\{byte:03o}")),
                }
            }
            out.push('"');
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_base::Gfx;

    fn rows(text: &str) -> Vec<MetadataLine> {
        let row = |(i, line): (usize, &str)| MetadataLine {
            line: i + 1,
            indent: line.len() - line.trim_start().len(),
            text: line.trim().to_owned(),
        };
        text.lines().enumerate().map(row).collect()
    }

    const KERNEL: &str = "\
amdhsa.kernels:
  - .args:
      - .address_space: global
        .offset: 0
        .size: 8
      - .offset: 8
    .name: main
    .symbol: main.kd
    .uniform: true
    .vgpr_count: 300
amdhsa.target: amdgcn-amd-amdhsa--gfx1030
amdhsa.version:
  - 1
  - 2
";

    #[test]
    fn registers_are_those_of_the_facts() {
        let db = unwedge_hw::Db::amd();
        for gfx in [Gfx::Gfx10, Gfx::Gfx10_3, Gfx::Gfx11, Gfx::Gfx11_5] {
            for (name, number) in [
                ("COMPUTE_DISPATCH_INITIATOR", COMPUTE_DISPATCH_INITIATOR),
                ("COMPUTE_PGM_RSRC2", COMPUTE_PGM_RSRC2),
                ("SPI_PS_IN_CONTROL", SPI_PS_IN_CONTROL),
                ("VGT_SHADER_STAGES_EN", VGT_SHADER_STAGES_EN),
            ] {
                assert_eq!(db.amd_gpu(gfx).reg_offset(name), Some(number), "{gfx}: {name}");
            }
        }
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let made = note(&rows(KERNEL)).unwrap();
        assert_eq!((&made[..4], &made[8..20]), (&b"\x07\0\0\0"[..], &b"\x20\0\0\0AMDGPU\0\0"[..]));
        assert_eq!(text(&made).unwrap(), KERNEL);
        assert_eq!(made[20..36], *b"\x83\xaeamdhsa.kernels");
    }

    #[test]
    fn arguments_of_a_kernel() {
        let text = "amdhsa.kernels:\n  - .args:\n      - .offset: 0\n        .size: 8\n        .value_kind: global_buffer\n      \
                    - .offset: 8\n        .name: n\n        .size: 4\n        .value_kind: by_value\n      - .offset: 12\n    \
                    .name: main\n  - .name: other\n";
        let made = note(&rows(text)).unwrap();
        let argument = |name: &str, offset, size, kind: &str| KernelArgument {
            name: name.into(),
            offset,
            size,
            kind: kind.into(),
        };
        let expected = [argument("", 0, 8, "global_buffer"), argument("n", 8, 4, "by_value")];
        assert_eq!(arguments(&made, "main").unwrap(), expected);
        assert_eq!((arguments(&made, "other"), arguments(&made, "another")), (Some(vec![]), None));
        for end in 0..made.len() {
            assert_eq!(arguments(&made[..end], "main"), None, "{end} bytes");
        }
    }

    #[test]
    fn stages_of_a_pipeline() {
        let text = "amdpal.pipelines:\n  - .hardware_stages:\n      .cs:\n        .entry_point: cs\n        .user_sgprs: 6\n      \
                    .gs:\n        .entry_point: gs\n        .wavefront_size: 64\n    .registers:\n      11776: 0x8000\n      11795: \
                    0x8c\n";
        let made = note(&rows(text)).unwrap();
        let stage = |name: &str, wave32, user_sgprs, rsrc2| PalStage {
            name: name.into(),
            entry: name.into(),
            wave32: Some(wave32),
            user_sgprs,
            rsrc2,
        };
        assert_eq!(
            stages(&made).unwrap(),
            [stage("cs", true, Some(6), Some(0x8c)), stage("gs", false, None, None)]
        );
        assert_eq!(arguments(&made, "cs"), None);
        (0..made.len() - 3).for_each(|end| assert_eq!(stages(&made[..end]), None, "{end} bytes"));
    }

    #[test]
    fn lists_at_the_column_of_their_name() {
        let made = note(&rows("b:\n- 1\n- -70000\na: 'it''s'\nc: \"x\\ny\"\nd: []")).unwrap();
        assert_eq!(text(&made).unwrap(), "a: \"it's\"\nb:\n  - 1\n  - -70000\nc: \"x\\012y\"\nd: []\n");
    }

    #[test]
    fn mistakes_name_their_line() {
        assert_eq!(note(&rows("a:\n  b: 1\n c: 2\n")).unwrap_err().0, 3);
        assert_eq!(note(&rows("a: 'x\n")).unwrap_err().0, 1);
        assert_eq!(note(&rows("a: 1\nb\n")).unwrap_err().0, 2);
        let deep: String = (0..40).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert!(note(&rows(&deep)).unwrap_err().1.contains("too deep"));
    }

    #[test]
    fn any_note() {
        let made = note(&rows(KERNEL)).unwrap();
        for cut in 0..made.len() {
            let _ = text(&made[..cut]);
        }
        for at in 0..made.len() {
            for byte in [0, 0x80, 0x90, 0xdd, 0xdf, 0xff] {
                let mut broken = made.clone();
                broken[at] = byte;
                let _ = text(&broken);
            }
        }
    }
}
