//! Assembles afuc source into a firmware file.
//!
//! The language is that of Mesa's `afuc-asm`. Labels belong to their section. `.stripped`, `.firmware`, `.byte` and
//! `.empty` are this project's own: they let the text of any blob give the blob back. A source is read whole: every
//! mistake is reported, not the first. Never does I/O.

mod error;
mod lexer;
mod parser;

pub use error::{AfucError, AfucErrors, AfucProblem};
pub use lexer::register;

use super::firmware::{Firmware, TABLE_LEN, id_of};
use super::insn::{AfucOp, Insn, InsnField};
use super::{AfucNames, SqeSpace};
use parser::{Statement, StatementKind, ValueExpr};
use std::collections::HashMap;

/// How to assemble.
#[derive(Clone, Debug, Default)]
pub struct AfucAsmOptions {
    /// Name of the source, for error messages.
    pub file: String,
    /// The firmware where the source's version is not to be believed.
    pub firmware: Option<Firmware>,
}

/// Words that directives may add; real firmware has about 20,000 in all.
const MAX_FILL: usize = 1 << 22;
/// Mistakes reported at most.
const MAX_ERRORS: usize = 1000;

/// Assembles a source to the bytes of a firmware file: the dword the kernel strips, then what is loaded.
///
/// # Errors
///
/// [`AfucErrors`] with the problems of the source, by line: text that does not parse, names of registers, mnemonics
/// and labels that do not exist, operands without an encoding, a version of no known firmware, or more words than any
/// firmware has.
pub fn assemble(
    source: &str,
    options: &AfucAsmOptions,
    names: &dyn AfucNames,
) -> Result<Vec<u8>, AfucErrors> {
    let (statements, mut errors) = parser::parse(source);
    let mut assembler = AfucAssembler::new(&statements, options, names, &mut errors);
    let bytes = assembler.run();
    let mut list = std::mem::take(assembler.errors);
    if list.is_empty() {
        return Ok(bytes);
    }
    list.sort_by_key(|error| (error.line, error.column));
    if let Some(first_untold) = list.get_mut(MAX_ERRORS) {
        first_untold.problem = AfucProblem::TooMany;
        list.truncate(MAX_ERRORS + 1);
    }
    let source_lines: Vec<&str> = source.lines().collect();
    let line = |error: &AfucError| source_lines.get(error.line - 1).copied().unwrap_or_default().to_string();
    let lines = list.iter().map(line).collect();
    Err(AfucErrors { file: options.file.clone(), list, lines })
}

/// A label: where it is, from the start of its section, and on which line.
#[derive(Clone, Copy)]
struct LabelPosition {
    offset: u32,
    line: usize,
}

struct AfucAssembler<'s, 'e> {
    statements: &'s [Statement<'s>],
    names: &'s dyn AfucNames,
    firmware: Firmware,
    errors: &'e mut Vec<AfucError>,
    /// The labels of each section.
    labels: Vec<HashMap<&'s str, LabelPosition>>,
}

impl<'s, 'e> AfucAssembler<'s, 'e> {
    fn new(
        statements: &'s [Statement<'s>],
        options: &AfucAsmOptions,
        names: &'s dyn AfucNames,
        errors: &'e mut Vec<AfucError>,
    ) -> AfucAssembler<'s, 'e> {
        let firmware = match options.firmware {
            Some(firmware) => firmware,
            None => match version(statements) {
                Ok(firmware) => firmware,
                Err(error) => {
                    errors.push(error);
                    Firmware::A630
                }
            },
        };
        AfucAssembler { statements, names, firmware, errors, labels: Vec::new() }
    }

    fn run(&mut self) -> Vec<u8> {
        if self.layout().is_none() {
            return Vec::new();
        }
        let mut words: Vec<u32> = vec![0];
        let mut tail = Vec::new();
        let (mut section, mut start) = (0, 1);
        for statement in self.statements {
            let at = u32::try_from(words.len() - start).unwrap_or(u32::MAX);
            match &statement.what {
                StatementKind::Label(_) | StatementKind::Firmware(_) => {}
                StatementKind::Align(bytes) => self.align(&mut words, *bytes),
                StatementKind::Section => {
                    self.align(&mut words, SECTION_ALIGN);
                    start = words.len();
                    section += 1;
                }
                StatementKind::JumpTable => words.extend(self.jump_table(section)),
                StatementKind::Literal(word) => words.push(*word),
                StatementKind::Offset(label, column) => {
                    let place = self.label(section, label, statement.line, *column);
                    words.push(self.firmware.payload_nop(place));
                }
                StatementKind::Stripped(word) => {
                    if let Some(first) = words.first_mut() {
                        *first = *word;
                    }
                }
                StatementKind::Empty => {
                    words.clear();
                    start = 0;
                }
                StatementKind::Byte(byte) => tail.push(*byte),
                StatementKind::Insn(_) => words.push(self.insn(statement, section, at).unwrap_or(0)),
            }
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(tail);
        bytes
    }

    /// Finds where every label is. `None` when the whole is too long.
    fn layout(&mut self) -> Option<()> {
        let mut labels: HashMap<&'s str, LabelPosition> = HashMap::new();
        let (mut at, mut start) = (0usize, 0usize);
        let limit = self.statements.len() + MAX_FILL;
        for statement in self.statements {
            let aligned = |at: usize, bytes: u32| at.next_multiple_of((bytes as usize / 4).max(1));
            match &statement.what {
                StatementKind::Label(name) => {
                    let place = LabelPosition {
                        offset: u32::try_from(at - start).unwrap_or(u32::MAX),
                        line: statement.line,
                    };
                    if let Some(first) = labels.insert(name, place) {
                        let problem = AfucProblem::LabelTwice { label: name.to_string(), line: first.line };
                        self.errors.push(AfucError::at(statement.line, statement.column, problem));
                    }
                }
                StatementKind::Align(bytes) => at = aligned(at, *bytes),
                StatementKind::Section => {
                    self.labels.push(std::mem::take(&mut labels));
                    at = aligned(at, SECTION_ALIGN);
                    start = at;
                }
                StatementKind::JumpTable => at += TABLE_LEN,
                StatementKind::Literal(_) | StatementKind::Offset(..) | StatementKind::Insn(_) => at += 1,
                StatementKind::Stripped(_)
                | StatementKind::Firmware(_)
                | StatementKind::Empty
                | StatementKind::Byte(_) => {}
            }
            if at > limit {
                self.errors.push(AfucError::at(
                    statement.line,
                    statement.column,
                    AfucProblem::TooLong(limit),
                ));
                return None;
            }
        }
        self.labels.push(labels);
        Some(())
    }

    /// Fills with `nop`. The stripped dword does not count.
    fn align(&self, words: &mut Vec<u32>, bytes: u32) {
        let nop = self.firmware.payload_nop(0);
        let loaded = words.len().saturating_sub(1).next_multiple_of((bytes as usize / 4).max(1));
        words.resize(loaded + 1, nop);
    }

    /// For each opcode the offset of the label that names it.
    fn jump_table(&mut self, section: usize) -> [u32; TABLE_LEN] {
        let mut table = [0; TABLE_LEN];
        let Some(labels) = self.labels.get(section) else { return table };
        let mut by_line: Vec<(&str, LabelPosition)> =
            labels.iter().map(|(&name, &place)| (name, place)).collect();
        by_line.sort_by_key(|&(_, place)| (place.line, place.offset));
        for (name, place) in by_line {
            let opcode = match self.names.opcode(name) {
                Some(opcode) => usize::from(opcode),
                None => match unknown_packet(name) {
                    Some(opcode) => opcode,
                    None => continue,
                },
            };
            match table.get_mut(opcode) {
                Some(entry) => *entry = place.offset,
                None => {
                    let problem = AfucProblem::BeyondTable(name.to_string());
                    let error = AfucError::at(place.line, 1, problem);
                    if !self.errors.contains(&error) {
                        self.errors.push(error);
                    }
                }
            }
        }
        table
    }

    fn label(&mut self, section: usize, name: &str, line: usize, column: usize) -> u32 {
        match self.labels.get(section).and_then(|labels| labels.get(name)) {
            Some(place) => place.offset,
            None => {
                self.errors.push(AfucError::at(line, column, AfucProblem::NoLabel(name.to_string())));
                0
            }
        }
    }

    fn insn(&mut self, statement: &Statement<'s>, section: usize, at: u32) -> Option<u32> {
        let StatementKind::Insn(source) = &statement.what else { return None };
        let mut insn: Insn = source.insn;
        let mut whole = true;
        for &(field, ref value, column) in &source.values {
            match self.value(value, section, statement.line, column) {
                Some(number) => insn.set(field, number),
                None => whole = false,
            }
        }
        if let Some((label, column)) = source.label {
            let place = self.label(section, label, statement.line, column);
            match insn.op {
                AfucOp::SetSecure => {
                    let expected = at.saturating_add(3);
                    if place != expected {
                        let problem = AfucProblem::SecureTarget { expected, found: place };
                        self.errors.push(AfucError::at(statement.line, column, problem));
                    }
                }
                AfucOp::Call | AfucOp::Bl | AfucOp::Jumpa => insn.set(InsnField::Target, place),
                _ => insn.set(InsnField::Branch, place.wrapping_sub(at)),
            }
        }
        if !whole {
            return None;
        }
        match insn.encode(self.firmware.generation()) {
            Ok(word) => Some(word),
            Err(error) => {
                self.errors.push(AfucError::at(statement.line, statement.column, error.into()));
                None
            }
        }
    }

    fn value(&mut self, value: &ValueExpr<'s>, section: usize, line: usize, column: usize) -> Option<u32> {
        let mut named = |space, name: &str, problem: fn(String) -> AfucProblem| {
            let offset = self.names.offset(self.firmware, space, name);
            if offset.is_none() {
                self.errors.push(AfucError::at(line, column, problem(name.to_string())));
            }
            offset
        };
        match *value {
            ValueExpr::Number(number) => Some(number),
            ValueExpr::Control(name, more) => {
                Some(named(SqeSpace::Control, name, AfucProblem::NoControlRegister)?.saturating_add(more))
            }
            ValueExpr::Sqe(name, more) => {
                Some(named(SqeSpace::Sqe, name, AfucProblem::NoSqeRegister)?.saturating_add(more))
            }
            ValueExpr::Label(name) => {
                let before = self.errors.len();
                let place = self.label(section, name, line, column);
                (self.errors.len() == before).then_some(place)
            }
        }
    }
}

/// Processors start at a multiple of this many bytes.
const SECTION_ALIGN: u32 = 32;

/// `UNKN12`: the opcode of a packet without a name.
fn unknown_packet(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("UNKN")?;
    let len = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if len == 0 {
        return None;
    }
    Some(digits[..len].parse().unwrap_or(usize::MAX))
}

/// The firmware a source says it is: by `.firmware`, else by its first literal.
fn version(statements: &[Statement<'_>]) -> Result<Firmware, AfucError> {
    let said = statements.iter().find_map(|statement| match statement.what {
        StatementKind::Firmware(id) => Some((statement, id)),
        _ => None,
    });
    let literal = || {
        statements.iter().find_map(|statement| match statement.what {
            StatementKind::Literal(word) => Some((statement, id_of(word))),
            _ => None,
        })
    };
    let Some((statement, id)) = said.or_else(literal) else {
        return Err(AfucError::at(1, 1, AfucProblem::NoVersion));
    };
    let unknown = || AfucError::at(statement.line, statement.column, AfucProblem::UnknownFirmware(id));
    Firmware::from_id(id).ok_or_else(unknown)
}
