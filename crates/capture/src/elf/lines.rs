//! Source lines of machine code: the line tables of DWARF 2 to 5 in `.debug_line`, which compilers write with `-g`.
//!
//! Never: sources themselves, variables, inlined calls, compressed sections, or lines from `.debug_info`. A table that is cut or
//! malformed gives the lines before that place. Facts: DWARF 5, section 6.2, read by crate `gimli`.

use super::{CodeObject, ElfSectionKind, RelocationKind};
use gimli::{AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, LittleEndian};
use std::collections::HashMap;
use std::fmt;

/// Files that are named; lines of others are left out.
const FILES: usize = 1 << 14;
/// Bytes of a file's name and of its folder's that are kept.
const LONGEST: usize = 512;
/// What `R_AMDGPU_ABS32` is numbered: the offset of a string.
const ABS32: RelocationKind = RelocationKind(6);

type Bytes<'b> = EndianSlice<'b, LittleEndian>;
type Header<'b> = gimli::LineProgramHeader<Bytes<'b>>;

/// A line of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine<'l> {
    /// The file, as the compiler was given it.
    pub file: &'l str,
    /// Its line, from 1 on.
    pub line: u64,
    /// The column, from 1 on, if the table has it.
    pub column: Option<u64>,
}

impl fmt::Display for SourceLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name may hold anything, and this is written into listings.
        let file: String = self.file.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        write!(f, "{file}:{}", self.line)?;
        self.column.map_or(Ok(()), |column| write!(f, ":{column}"))
    }
}

/// Code of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineRange {
    start: u64,
    end: u64,
    file: usize,
    line: u64,
    column: u64,
}

/// The lines of an object's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLines {
    files: Vec<String>,
    /// By address. Sections of an object that is not linked have the addresses of `bases`.
    ranges: Vec<LineRange>,
    /// By section: its address.
    bases: Vec<u64>,
}

/// The lines of one section.
#[derive(Clone, Copy, Debug)]
pub struct SectionLines<'l> {
    lines: &'l SourceLines,
    section: usize,
}

impl<'l> SectionLines<'l> {
    /// The line of the code at an offset into the section.
    pub fn at(&self, offset: u64) -> Option<SourceLine<'l>> {
        self.lines.at(self.section, offset)
    }
}

impl SourceLines {
    /// Reads the line tables of an object. Without any there are no lines.
    pub fn of(object: &CodeObject<'_>) -> SourceLines {
        let mut lines = SourceLines { bases: bases(object), ..SourceLines::default() };
        let named = |name: &str| object.sections.iter().position(|section| section.name == name);
        let Some(table) = named(".debug_line") else { return lines };
        let placed = |name| named(name).map(|at| object.sections[at].bytes.to_vec()).unwrap_or_default();
        let table = relocated(object, table, &lines.bases);
        let (strings, line_strings) = (placed(".debug_str"), placed(".debug_line_str"));
        let strings = Strings {
            all: DebugStr::new(&strings, LittleEndian),
            of_lines: DebugLineStr::new(&line_strings, LittleEndian),
        };
        let mut offset = 0;
        while offset < table.len() {
            let program =
                DebugLine::new(&table, LittleEndian).program(DebugLineOffset(offset), 8, None, None);
            let Ok(program) = program else { break };
            let format = usize::from(program.header().format().initial_length_size());
            offset = offset.saturating_add(program.header().unit_length()).saturating_add(format);
            lines.add(program, &strings);
        }
        lines.ranges.sort_by_key(|range| range.start);
        lines
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The line of the code at an offset into a section: an index of [`CodeObject::sections`].
    pub fn at(&self, section: usize, offset: u64) -> Option<SourceLine<'_>> {
        let address = self.bases.get(section)?.checked_add(offset)?;
        let after = self.ranges.partition_point(|range| range.start <= address);
        let range = self.ranges.get(after.checked_sub(1)?).filter(|range| address < range.end)?;
        let column = Some(range.column).filter(|&column| column > 0);
        Some(SourceLine { file: self.files.get(range.file)?, line: range.line, column })
    }

    /// Those of one section.
    pub fn section(&self, section: usize) -> SectionLines<'_> {
        SectionLines { lines: self, section }
    }

    /// Adds the lines of a table, as far as it can be read.
    fn add(&mut self, program: gimli::IncompleteLineProgram<Bytes<'_>>, strings: &Strings<'_>) {
        let mut files: HashMap<u64, Option<usize>> = HashMap::new();
        let mut open: Option<LineRange> = None;
        let mut rows = program.rows();
        while let Ok(Some((header, row))) = rows.next_row() {
            if let Some(range) = open.take().filter(|range| range.start < row.address()) {
                self.ranges.push(LineRange { end: row.address(), ..range });
            }
            let Some(line) = row.line().filter(|_| !row.end_sequence()) else { continue };
            let file = *files.entry(row.file_index()).or_insert_with(|| {
                let name = strings.file(header, row.file_index())?;
                (self.files.len() < FILES).then(|| {
                    self.files.push(name);
                    self.files.len() - 1
                })
            });
            let column = match row.column() {
                gimli::ColumnType::LeftEdge => 0,
                gimli::ColumnType::Column(column) => column.get(),
            };
            let start = row.address();
            open = file.map(|file| LineRange { start, end: start, file, line: line.get(), column });
        }
    }
}

/// The strings that tables refer to.
struct Strings<'b> {
    all: DebugStr<Bytes<'b>>,
    of_lines: DebugLineStr<Bytes<'b>>,
}

impl<'b> Strings<'b> {
    fn text(&self, value: AttributeValue<Bytes<'b>>) -> Option<String> {
        let text = match value {
            AttributeValue::String(text) => Some(text),
            AttributeValue::DebugStrRef(offset) => self.all.get_str(offset).ok(),
            AttributeValue::DebugLineStrRef(offset) => self.of_lines.get_str(offset).ok(),
            _ => None,
        }?;
        let bytes = text.slice();
        Some(String::from_utf8_lossy(bytes.get(..LONGEST).unwrap_or(bytes)).into_owned())
    }

    /// The name of a file, below its folder unless that is the one the compiler ran in.
    fn file(&self, header: &Header<'b>, index: u64) -> Option<String> {
        let entry = header.file(index)?;
        let name = self.text(entry.path_name())?;
        let folder = Some(entry.directory_index()).filter(|&at| at != 0 && !name.starts_with('/'));
        let folder = folder.and_then(|at| self.text(header.directory(at)?));
        Some(folder.map_or(name.clone(), |folder| format!("{folder}/{name}")))
    }
}

/// The addresses of sections. Those of an object that is not linked are all 0: its code is laid out one after the other.
fn bases(object: &CodeObject<'_>) -> Vec<u64> {
    let linked = object.is_linked();
    let mut next = 0u64;
    let place = |section: &super::ElfSection<'_>| {
        if linked || section.kind != ElfSectionKind::Code {
            return section.address;
        }
        let at = next;
        next = next.saturating_add(section.bytes.len() as u64);
        at
    };
    object.sections.iter().map(place).collect()
}

/// The bytes of the table, with the addresses of code and the offsets of strings filled in that relocations tell.
fn relocated(object: &CodeObject<'_>, table: usize, bases: &[u64]) -> Vec<u8> {
    let mut bytes = object.sections[table].bytes.to_vec();
    if object.is_linked() {
        return bytes;
    }
    let first = object.relocations.partition_point(|relocation| relocation.section < table);
    for relocation in object.relocations[first..].iter().take_while(|r| r.section == table) {
        let size = match relocation.kind {
            RelocationKind::ABS64 => 8,
            ABS32 => 4,
            _ => continue,
        };
        let Some(symbol) = object.symbols.get(relocation.symbol) else { continue };
        let base = symbol.section.and_then(|section| bases.get(section)).copied().unwrap_or(0);
        let value = base.wrapping_add(symbol.value).wrapping_add_signed(relocation.addend);
        let at = usize::try_from(relocation.offset).ok();
        let place = at.and_then(|at| bytes.get_mut(at..at.checked_add(size)?));
        if let Some(place) = place {
            place.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    bytes
}
