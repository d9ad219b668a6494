//! Debug information of assembled code, as DWARF 5: a line table, and for each section of code a unit that refers to it.
//!
//! Never: functions, variables, types. Facts: DWARF 5, sections 6.2, 7.5 and 3.1.1.

use super::{ElfRelocation, ElfSection, ElfSectionKind, ElfSymbol, ElfSymbolKind, RelocationKind};
use std::borrow::Cow;
use std::collections::HashMap;

/// The source line of the code from an offset up to that of the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// The offset in the section, in bytes.
    pub offset: u64,
    /// The file, as an index into the files of the table.
    pub file: u32,
    /// The line; 0: none.
    pub line: u32,
    /// The column; 0: not known.
    pub column: u32,
}

/// The lines of a section of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSequence {
    /// The section, as an index into [`CodeObject::sections`](super::CodeObject::sections).
    pub section: usize,
    /// The size of the section in bytes.
    pub size: u64,
    /// Rows in the order of offsets.
    pub rows: Vec<LineRow>,
}

const VERSION: u16 = 5;
/// The minimum instruction length in bytes.
const INSTRUCTION: u64 = 4;
/// The smallest line advance of special opcodes, and the number of their line advances.
const LINE_BASE: i64 = -5;
const LINE_RANGE: i64 = 14;
/// The numbers of operands of the standard opcodes.
const OPERANDS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
const SPECIAL: i64 = OPERANDS.len() as i64 + 1;

const LNS_COPY: u8 = 1;
const LNS_ADVANCE_PC: u8 = 2;
const LNS_ADVANCE_LINE: u8 = 3;
const LNS_SET_FILE: u8 = 4;
const LNS_SET_COLUMN: u8 = 5;
const LNE_END_SEQUENCE: u8 = 1;
const LNE_SET_ADDRESS: u8 = 2;
const LNCT_PATH: u8 = 1;
const LNCT_DIRECTORY_INDEX: u8 = 2;
const FORM_ADDR: u8 = 0x01;
const FORM_DATA8: u8 = 0x07;
const FORM_STRING: u8 = 0x08;
const FORM_UDATA: u8 = 0x0f;
const FORM_SEC_OFFSET: u8 = 0x17;
const UT_COMPILE: u8 = 1;
const TAG_COMPILE_UNIT: u8 = 0x11;
const AT_NAME: u8 = 0x03;
const AT_STMT_LIST: u8 = 0x10;
const AT_LOW_PC: u8 = 0x11;
const AT_HIGH_PC: u8 = 0x12;
const AT_PRODUCER: u8 = 0x25;

/// `R_AMDGPU_ABS32`.
const ABS32: RelocationKind = RelocationKind(6);

/// Writes an unsigned number as LEB128.
fn unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a signed number as LEB128.
fn signed(mut value: i64, out: &mut Vec<u8>) {
    while !(-0x40..0x40).contains(&value) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}

/// Writes a string up to its first zero byte, and a terminator.
fn text(text: &str, out: &mut Vec<u8>) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}

/// Writes the length of some contents, and the contents.
fn with_length(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], body].concat()
}

/// The bytes of a section, and its references to other sections: offset, size, and the section referred to.
#[derive(Default)]
struct DebugSection {
    bytes: Vec<u8>,
    places: Vec<(u64, usize, usize)>,
}

impl DebugSection {
    /// Adds the address of a section, which is not known until it is linked.
    fn refer(&mut self, section: usize, size: usize) {
        self.places.push((self.bytes.len() as u64, size, section));
        self.bytes.resize(self.bytes.len() + size, 0);
    }
}

fn rows(sequence: &LineSequence, out: &mut DebugSection) {
    // An extended opcode with its length: the address of the section.
    out.bytes.extend([0, 9, LNE_SET_ADDRESS]);
    out.refer(sequence.section, 8);
    let code = &mut out.bytes;
    // The initial state of the line number program.
    let mut last = LineRow { offset: 0, file: 1, line: 1, column: 0 };
    for row in &sequence.rows {
        if row.file != last.file {
            code.push(LNS_SET_FILE);
            unsigned(row.file.into(), code);
        }
        if row.column != last.column {
            code.push(LNS_SET_COLUMN);
            unsigned(row.column.into(), code);
        }
        let advance = row.offset.saturating_sub(last.offset) / INSTRUCTION;
        let lines = i64::from(row.line) - i64::from(last.line);
        let special = i64::try_from(advance).ok().filter(|advance| *advance < 32).map(|advance| {
            let lines = lines - LINE_BASE;
            ((0..LINE_RANGE).contains(&lines), lines + LINE_RANGE * advance + SPECIAL)
        });
        match special {
            Some((true, opcode)) if opcode <= 255 => code.push(opcode as u8),
            _ => {
                if advance > 0 {
                    code.push(LNS_ADVANCE_PC);
                    unsigned(advance, code);
                }
                if lines != 0 {
                    code.push(LNS_ADVANCE_LINE);
                    signed(lines, code);
                }
                code.push(LNS_COPY);
            }
        }
        last = *row;
    }
    code.push(LNS_ADVANCE_PC);
    unsigned(sequence.size.saturating_sub(last.offset) / INSTRUCTION, code);
    code.extend([0, 1, LNE_END_SEQUENCE]);
}

fn line_table(files: &[String], sequences: &[LineSequence]) -> DebugSection {
    let mut header = vec![INSTRUCTION as u8, 1, 1, LINE_BASE as u8, LINE_RANGE as u8, SPECIAL as u8];
    header.extend(OPERANDS);
    // One directory, the one in which the compiler ran.
    header.extend([1, LNCT_PATH, FORM_STRING, 1]);
    text(".", &mut header);
    header.extend([2, LNCT_PATH, FORM_STRING, LNCT_DIRECTORY_INDEX, FORM_UDATA]);
    unsigned(files.len() as u64, &mut header);
    for file in files {
        text(file, &mut header);
        unsigned(0, &mut header);
    }
    let mut unit = DebugSection::default();
    unit.bytes.extend(VERSION.to_le_bytes());
    // The sizes of an address and of a segment selector.
    unit.bytes.extend([8, 0]);
    unit.bytes.extend(with_length(&header));
    sequences.iter().for_each(|sequence| rows(sequence, &mut unit));
    let moved = unit.places.iter().map(|&(at, size, section)| (at + 4, size, section)).collect();
    DebugSection { bytes: with_length(&unit.bytes), places: moved }
}

/// The abbreviation of the compile unit.
fn abbreviations() -> Vec<u8> {
    let attributes = [
        [AT_PRODUCER, FORM_STRING],
        [AT_NAME, FORM_STRING],
        [AT_STMT_LIST, FORM_SEC_OFFSET],
        [AT_LOW_PC, FORM_ADDR],
        [AT_HIGH_PC, FORM_DATA8],
        [0, 0],
    ];
    // Number, tag, no children; the end.
    [&[1, TAG_COMPILE_UNIT, 0][..], &attributes.concat(), &[0]].concat()
}

fn units(name: &str, sequences: &[LineSequence], [abbreviations, table]: [usize; 2]) -> DebugSection {
    let mut out = DebugSection::default();
    for sequence in sequences {
        let start = out.bytes.len();
        out.bytes.extend([0; 4]);
        out.bytes.extend(VERSION.to_le_bytes());
        out.bytes.extend([UT_COMPILE, 8]);
        out.refer(abbreviations, 4);
        out.bytes.push(1);
        text(concat!("unwedge ", env!("CARGO_PKG_VERSION")), &mut out.bytes);
        text(name, &mut out.bytes);
        out.refer(table, 4);
        out.refer(sequence.section, 8);
        out.bytes.extend(sequence.size.to_le_bytes());
        let length = (out.bytes.len() - start - 4) as u32;
        out.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
    out
}

impl super::CodeObject<'_> {
    /// Adds the source lines of code to a relocatable object, as debug information. An object that already has debug information stays as it is, and so does one without files.
    pub fn add_lines(&mut self, files: &[String], sequences: &[LineSequence]) {
        let has = self.sections.iter().any(|section| section.name.starts_with(".debug_"));
        let (Some(name), false, false) = (files.first(), has, self.is_linked()) else { return };
        let first = self.sections.len();
        let numbered = self.symbols.iter().enumerate().rev();
        let of_section = numbered
            .filter(|(_, symbol)| symbol.is_of_section())
            .filter_map(|(at, own)| Some((own.section?, at)));
        let mut symbols: HashMap<usize, usize> = of_section.collect();
        let parts = [
            (".debug_abbrev", DebugSection { bytes: abbreviations(), places: Vec::new() }),
            (".debug_info", units(name, sequences, [first, first + 2])),
            (".debug_line", line_table(files, sequences)),
        ];
        for (name, part) in parts {
            let section = self.sections.len();
            self.sections.push(ElfSection {
                name: Cow::Borrowed(name),
                kind: ElfSectionKind::Unloaded,
                address: 0,
                bytes: Cow::Owned(part.bytes),
                align: 1,
            });
            for (offset, size, of) in part.places {
                let symbol = self.section_symbol(of, &mut symbols);
                let kind = if size == 8 { RelocationKind::ABS64 } else { ABS32 };
                self.relocations.push(ElfRelocation { kind, section, offset, symbol, addend: 0 });
            }
        }
    }

    /// The symbol of the start of a section, of those that are known by their sections.
    fn section_symbol(&mut self, section: usize, known: &mut HashMap<usize, usize>) -> usize {
        *known.entry(section).or_insert_with(|| {
            self.symbols.push(ElfSymbol {
                name: Cow::Borrowed(""),
                kind: ElfSymbolKind::Other,
                global: false,
                section: Some(section),
                value: 0,
                size: 0,
            });
            self.symbols.len() - 1
        })
    }
}
