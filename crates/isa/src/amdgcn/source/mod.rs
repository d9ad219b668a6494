//! Files of assembly: labels, directives and instructions to sections of bytes.
//!
//! The language is what LLVM's assembler reads for AMD GPUs: `//`, `;` and `/* */` start comments, labels end in a colon,
//! `1b` and `1f` are the nearest label `1` before and after. Macros, repetitions and conditions are of `expand`. A file is
//! read twice: the first time for where its labels are. All errors of a file are told. Never: ELF (the sections and symbols are what a writer of ELF needs), relocations (a
//! name that the file does not define is an error).

mod data;
mod expand;
mod hsa_v2;
mod kernel;
mod lines;
mod recent;
mod statement;
mod target;

use super::descriptor::DescriptorError;
use super::kernel_code::{KernelCodeBuilder, KernelCodeError};
use super::text::{ParseError, SymbolValue, Symbols};
use super::{Gpu, codec, text};
use statement::LineRest;
pub use statement::quoted;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
pub use target::{SourceTarget, target_of};

/// No file grows past so many bytes: `.fill` and `.org` can ask for any number.
const MAX_BYTES: u64 = 256 << 20;
/// Errors of a file beyond these are counted, and not kept.
const MAX_ERRORS: usize = 1000;
/// Between the addresses of sections, so that an address tells its section.
const SECTION_SPAN: i64 = 1 << 40;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceSectionKind {
    /// Machine code.
    Code,
    /// Bytes that are only read.
    ReadOnly,
    /// Bytes that are written.
    Data,
    /// Memory without bytes in a file.
    Zeros,
    /// Notes.
    Note,
    /// Bytes that are not loaded, such as debug information.
    Unloaded,
}

/// A section of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSection {
    /// `.text`.
    pub name: String,
    /// What it holds.
    pub kind: SourceSectionKind,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What its address is a multiple of.
    pub align: u64,
}

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// A place.
    Label,
    /// Code (`.type name,@function`).
    Function,
    /// Data (`.type name,@object`).
    Object,
    /// A kernel of HSA v2, which starts with a header (`.amdgpu_hsa_kernel name`).
    HsaKernel,
}

/// A symbol of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinedSymbol {
    /// Its name.
    pub name: String,
    /// What it stands for.
    pub kind: SymbolKind,
    /// Seen by other files (`.globl`).
    pub global: bool,
    /// Its section, an index of [`Assembly::sections`]; `None`: its value is a number.
    pub section: Option<usize>,
    /// Offset into its section, or the number.
    pub value: i64,
    /// Bytes it covers (`.size`).
    pub size: u64,
}

/// Eight bytes that become the distance from themselves to a symbol, plus an addend, once sections have their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Index of the section they are in.
    pub section: usize,
    /// Their offset in it.
    pub offset: usize,
    /// The symbol.
    pub symbol: String,
    /// What is added.
    pub addend: i64,
}

/// A line of metadata: its number, its indentation and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataLine {
    /// Its number in the file, from 1.
    pub line: usize,
    /// Blanks before its text.
    pub indent: usize,
    /// Its text, without blanks at both ends.
    pub text: String,
}

/// What stands between `.amdgpu_metadata` and its end: YAML, which a code object holds as a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Index of the section that the note belongs to.
    pub section: usize,
    /// Where in that section, in bytes, without the notes before it.
    pub offset: usize,
    /// Its lines, without empty ones.
    pub lines: Vec<MetadataLine>,
}

/// The source line of code from an offset up to the next mark (`.loc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineMark {
    /// Index of the section.
    pub section: usize,
    /// The offset in the section, in bytes.
    pub offset: usize,
    /// The number of the file.
    pub file: u32,
    /// The line; 0: none.
    pub line: u32,
    /// The column; 0: not known.
    pub column: u32,
}

/// What a file of assembly makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembly {
    /// Sections, the code first.
    pub sections: Vec<SourceSection>,
    /// Symbols, in the order of their names; names that start with `.L` are not among them.
    pub symbols: Vec<DefinedSymbol>,
    /// Distances that are not known yet.
    pub relocations: Vec<Relocation>,
    /// Metadata, in the order of the file: see [`Assembly::encode_metadata`].
    pub metadata: Vec<Metadata>,
    /// Names of source files by their numbers (`.file`).
    pub files: BTreeMap<u32, String>,
    /// Lines of code, in the order of the file.
    pub lines: Vec<LineMark>,
    /// `.amdhsa_code_object_version`, or the first number of `.hsa_code_object_version`, if the file has either.
    pub version: Option<u32>,
    /// `.amdgcn_target`, if the file has it.
    pub target: Option<SourceTarget>,
    /// Errors, in the order of lines.
    pub errors: Vec<SourceError>,
    /// How many more there are than [`Assembly::errors`] holds.
    pub more_errors: usize,
}

impl Assembly {
    /// Puts the bytes that metadata becomes into the sections it belongs to. `encode` knows the format of notes: it gives
    /// the bytes for some lines, or the number of a line and what is wrong with it.
    pub fn encode_metadata(
        &mut self,
        encode: impl Fn(&[MetadataLine]) -> Result<Vec<u8>, (usize, &'static str)>,
    ) {
        let mut inserted = 0;
        for block in std::mem::take(&mut self.metadata) {
            match encode(&block.lines) {
                Ok(note) => {
                    let Some(section) = self.sections.get_mut(block.section) else { continue };
                    let at = (block.offset + inserted).min(section.bytes.len());
                    inserted += note.len();
                    section.bytes.splice(at..at, note);
                }
                Err(_) if self.errors.len() >= MAX_ERRORS => self.more_errors += 1,
                Err((line, wrong)) => {
                    let at = self.errors.partition_point(|error| error.line <= line);
                    let error =
                        SourceError { line, column: 1, what: SourceProblem::Metadata(wrong), used: None };
                    self.errors.insert(at, error);
                }
            }
        }
    }
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: SourceProblem,
    /// Where it stands in a macro or a repetition: the line that uses it.
    pub used: Option<usize>,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceProblem {
    /// An instruction, or a value.
    #[error("{}", .0.what())]
    Instruction(ParseError),
    /// An instruction that cannot be encoded.
    #[error("{0}")]
    Encoding(codec::InstEncodeError),
    /// A directive of a kernel descriptor.
    #[error("{0}")]
    Descriptor(DescriptorError),
    /// A directive that is not known.
    #[error("no directive of the name {0}")]
    Directive(String),
    /// What a directive takes is not there.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A line of a file that no `.file` names.
    #[error("file {0} is not defined by a .file directive before this line")]
    NoFile(u32),
    /// Something is left at a line's end.
    #[error("nothing more is expected on this line")]
    Rest,
    /// A label or symbol that is there already.
    #[error("`{0}` is defined a second time; first in line {1}")]
    Again(String, usize),
    /// A value that does not fit.
    #[error("{0} does not fit {1} bytes")]
    Fits(i64, u8),
    /// Instructions outside of code.
    #[error("instructions belong in a section of code; this is {0}")]
    NotCode(String),
    /// A file that grows without end.
    #[error("the file grows past {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// `.org` to a place before.
    #[error("this place is already past: the code is at {0:#x}")]
    Behind(u64),
    /// The file is for another GPU than what was asked for.
    #[error("this file is for {0}, not for {1}")]
    OtherGpu(String, &'static str),
    /// A kernel's directives are not ended.
    #[error(".end_amdhsa_kernel is missing")]
    OpenKernel,
    /// A comment is not ended.
    #[error("a comment that does not end")]
    OpenComment,
    /// A descriptor of a kernel that the file does not define.
    #[error("the kernel `{0}` is not defined in this file")]
    NoKernel(String),
    /// `.endif` and the like without their beginning.
    #[error("nothing is open that {0} belongs to")]
    NotOpen(String),
    /// A beginning without its end.
    #[error("{0} without {1}")]
    NotEnded(&'static str, &'static str),
    /// `.error`
    #[error("the file says: {0}")]
    Said(String),
    /// Macros and repetitions make too much.
    #[error("macros and repetitions make too much of this file")]
    Expansion,
    /// Macros and repetitions are too deep in each other.
    #[error("macros and repetitions more than 20 deep in each other")]
    Depth,
    /// A macro that is there already.
    #[error("the macro `{0}` is defined a second time (.purgem takes one away)")]
    AgainMacro(String),
    /// More arguments than a macro has parameters.
    #[error("the macro `{0}` has {1} parameters")]
    Arguments(String, usize),
    /// A parameter without a value.
    #[error("the macro `{0}` needs a value for `{1}`")]
    Lacks(String, String),
    /// Conditions depend on what comes later.
    #[error(
        "`{0}` is elsewhere each time the file is read: a condition or a size before it depends on what comes later"
    )]
    Moves(String),
    /// A field of the header of a kernel of HSA v2.
    #[error("{0}")]
    KernelCode(KernelCodeError),
    /// Metadata.
    #[error("{0}")]
    Metadata(&'static str),
}

/// Assembles a file.
pub fn assemble(source: &str, gpu: &Gpu) -> Assembly {
    let (clean, open) = statement::without_comments(source);
    let (names, locals) = (HashMap::new(), HashMap::new());
    let mut first = SourcePass::new(gpu, &names, &locals);
    first.run(&clean);
    let (names, locals) = (first.defined, first.locals);
    let mut last = SourcePass::new(gpu, &names, &locals);
    last.last = true;
    last.settled = first.settled;
    last.run(&clean);
    if open {
        last.error(1, SourceProblem::OpenComment);
    }
    last.finish()
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
struct SymbolDef {
    value: i64,
    /// A place in a section, not a number.
    address: bool,
    line: usize,
    /// May be set again (`=`, `.set`).
    variable: bool,
}

/// What is said of a symbol besides its value.
#[derive(Clone, Copy, Debug, Default)]
struct SymbolAttrs {
    global: bool,
    kind: Option<SymbolKind>,
    size: Option<i64>,
}

/// Instructions of the first reading that ask for no symbol: their bytes are settled. None of them is of a macro.
#[derive(Debug, Default)]
struct SettledInsts {
    /// By line: where its bytes start, and how many dwords they are (0: it has to be read again, as lines behind the last);
    /// whether nothing but the instruction is on the line.
    lines: Vec<(u32, u8, bool)>,
    /// The bytes of them all.
    bytes: Vec<u8>,
}

impl SettledInsts {
    fn add(&mut self, line: usize, words: &codec::InstWords, bare: bool) {
        let Ok(start) = u32::try_from(self.bytes.len()) else { return };
        self.lines.resize(line, (0, 0, false));
        if let Some(last) = self.lines.last_mut() {
            *last = (start, words.as_slice().len() as u8, bare);
        }
        words.write(&mut self.bytes);
    }

    /// A line that says what an earlier one does, which was settled as a whole; its bytes.
    fn again(&mut self, line: usize, earlier: usize) -> Option<&[u8]> {
        let known = *self.lines.get(earlier.checked_sub(1)?)?;
        self.lines.resize(line, (0, 0, false));
        *self.lines.last_mut()? = known;
        self.of(line)
    }

    /// Whether a line is settled as a whole.
    fn is_bare(&self, line: usize) -> bool {
        line.checked_sub(1)
            .and_then(|at| self.lines.get(at))
            .is_some_and(|(_, dwords, bare)| *dwords > 0 && *bare)
    }

    fn of(&self, line: usize) -> Option<&[u8]> {
        let &(start, dwords, _) = self.lines.get(line.checked_sub(1)?)?;
        self.bytes.get(start as usize..)?.get(..4 * usize::from(dwords)).filter(|bytes| !bytes.is_empty())
    }
}

/// One reading of a file.
struct SourcePass<'p> {
    gpu: &'p Gpu,
    /// What the reading before found.
    before: &'p HashMap<String, SymbolDef>,
    before_locals: &'p HashMap<(u32, usize), i64>,
    defined: HashMap<String, SymbolDef>,
    /// Addresses of numbered labels: number and how many there were before.
    locals: HashMap<(u32, usize), i64>,
    seen_locals: HashMap<u32, usize>,
    attrs: HashMap<String, SymbolAttrs>,
    sections: Vec<SourceSection>,
    section: usize,
    previous: usize,
    version: Option<u32>,
    target: Option<SourceTarget>,
    kernel: Option<kernel::OpenKernel>,
    kernels: Vec<kernel::EmittedKernel>,
    relocations: Vec<Relocation>,
    settled: SettledInsts,
    recent: recent::RecentLines,
    /// Nothing but a statement is on the line, and nothing decides whether it counts.
    bare: bool,
    /// Whether a symbol or the address has been asked for since it was last reset.
    asked: Cell<bool>,
    errors: Vec<SourceError>,
    more_errors: usize,
    line: usize,
    total: u64,
    last: bool,
    expansion: expand::ExpandState,
    /// The first label that is elsewhere than in the reading before, and its line.
    moved: Option<(String, usize)>,
    /// The header of a kernel of HSA v2 while it is read, and the line where it starts.
    header: Option<(KernelCodeBuilder, usize)>,
    /// Metadata of HSA v2, which stays text, while it is read.
    text_metadata: Option<String>,
    /// Lines of metadata, while they are read.
    metadata: Option<Vec<MetadataLine>>,
    /// Metadata that was read.
    blocks: Vec<Metadata>,
    lines: lines::LineState,
}

impl Symbols for SourcePass<'_> {
    fn symbol(&self, name: &str) -> Option<SymbolValue> {
        self.asked.set(true);
        if let Some(known) = self.defined.get(name) {
            return Some(if known.address {
                SymbolValue::Address(known.value)
            } else {
                SymbolValue::Absolute(known.value)
            });
        }
        if let Some(local) = statement::local_reference(name) {
            let seen = self.seen_locals.get(&local.0).copied().unwrap_or(0);
            let which = if local.1 { seen } else { seen.checked_sub(1)? };
            let found =
                self.locals.get(&(local.0, which)).or_else(|| self.before_locals.get(&(local.0, which)));
            return match found {
                Some(&at) => Some(SymbolValue::Address(at)),
                None if !self.last => Some(SymbolValue::Address(self.here())),
                None => None,
            };
        }
        if let Some(value) = self.builtin(name) {
            return Some(SymbolValue::Absolute(value));
        }
        // What comes later is never an inline constant: its size is the same in both readings.
        match self.before.get(name) {
            Some(known) => Some(SymbolValue::Address(known.value)),
            None if !self.last => Some(SymbolValue::Address(self.here())),
            None => None,
        }
    }

    fn here(&self) -> i64 {
        self.asked.set(true);
        let offset = self.sections.get(self.section).map_or(0, |s| s.bytes.len() as i64);
        self.section as i64 * SECTION_SPAN + offset
    }
}

fn put(bytes: &[u8], total: &mut u64, section: &mut SourceSection) {
    *total += bytes.len() as u64;
    if *total <= MAX_BYTES {
        section.bytes.extend_from_slice(bytes);
    }
}

impl<'p> SourcePass<'p> {
    fn new(
        gpu: &'p Gpu,
        before: &'p HashMap<String, SymbolDef>,
        before_locals: &'p HashMap<(u32, usize), i64>,
    ) -> SourcePass<'p> {
        let text = SourceSection {
            name: ".text".to_owned(),
            kind: SourceSectionKind::Code,
            bytes: Vec::new(),
            align: 4,
        };
        SourcePass {
            gpu,
            before,
            before_locals,
            defined: HashMap::new(),
            locals: HashMap::new(),
            seen_locals: HashMap::new(),
            attrs: HashMap::new(),
            sections: vec![text],
            section: 0,
            previous: 0,
            version: None,
            target: None,
            kernel: None,
            kernels: Vec::new(),
            relocations: Vec::new(),
            settled: SettledInsts::default(),
            recent: recent::RecentLines::default(),
            bare: false,
            asked: Cell::new(false),
            errors: Vec::new(),
            more_errors: 0,
            line: 0,
            total: 0,
            last: false,
            expansion: expand::ExpandState::default(),
            moved: None,
            header: None,
            text_metadata: None,
            metadata: None,
            blocks: Vec::new(),
            lines: lines::LineState::default(),
        }
    }

    fn run(&mut self, source: &str) {
        self.file(source);
        if self.is_too_large() {
            self.error(1, SourceProblem::TooLarge);
        }
        if self.kernel.is_some() {
            self.error(1, SourceProblem::OpenKernel);
        }
        if self.metadata.is_some() {
            self.error(1, SourceProblem::NotEnded(".amdgpu_metadata", ".end_amdgpu_metadata"));
        }
        if self.text_metadata.is_some() {
            let (start, end) = (".amd_amdgpu_hsa_metadata", hsa_v2::END_METADATA);
            self.error(1, SourceProblem::NotEnded(start, end));
        }
        if let Some((_, line)) = self.header {
            self.line = line;
            self.error(1, SourceProblem::NotEnded(".amd_kernel_code_t", ".end_amd_kernel_code_t"));
        }
    }

    fn is_too_large(&self) -> bool {
        self.total > MAX_BYTES
    }

    fn error(&mut self, column: usize, what: SourceProblem) {
        if !self.last {
            return;
        }
        if self.errors.len() < MAX_ERRORS {
            let piece = self.expansion.pieces.iter().rev().find(|piece| piece.0 <= column);
            let column = piece.map_or(
                column,
                |&(made, origin, put_in)| {
                    if put_in { origin } else { origin + column - made }
                },
            );
            self.errors.push(SourceError { line: self.line, column, what, used: self.expansion.use_line });
        } else {
            self.more_errors += 1;
        }
    }

    /// A directive, an assignment or an instruction.
    fn statement(&mut self, line: LineRest<'_>) {
        if self.header.is_some() {
            if let Err((column, wrong)) = self.header_line(line) {
                self.error(column, wrong);
            }
            return;
        }
        if let Some((name, value)) = line.assignment() {
            self.assign(name, value, line.column);
        } else if line.text.starts_with('.') {
            self.directive(line);
        } else {
            self.instruction(line);
        }
    }

    fn label(&mut self, name: &str, column: usize) {
        let here = self.here();
        if let Ok(number) = name.parse::<u32>() {
            let seen = self.seen_locals.entry(number).or_insert(0);
            let which = (number, *seen);
            *seen += 1;
            self.locals.insert(which, here);
            self.check_place(name, here, self.before_locals.get(&which).copied());
            return;
        }
        self.check_place(name, here, self.before.get(name).map(|known| known.value));
        self.define(name, SymbolDef { value: here, address: true, line: self.line, variable: false }, column);
    }

    /// In the last reading a label is where it was before.
    fn check_place(&mut self, name: &str, here: i64, before: Option<i64>) {
        if self.last && before != Some(here) && self.moved.is_none() {
            self.moved = Some((name.to_owned(), self.line));
        }
    }

    fn define(&mut self, name: &str, known: SymbolDef, column: usize) {
        match self.defined.get(name) {
            Some(old) if !(old.variable && known.variable) => {
                self.error(column, SourceProblem::Again(name.to_owned(), old.line));
            }
            _ => {
                self.defined.insert(name.to_owned(), known);
            }
        }
    }

    fn assign(&mut self, name: &str, value: LineRest<'_>, column: usize) {
        match self.whole_expression(value) {
            Ok((value, address)) => {
                let known = SymbolDef { value, address, line: self.line, variable: true };
                self.define(name, known, column);
            }
            Err((column, wrong)) => self.error(column, wrong),
        }
    }

    fn instruction(&mut self, line: LineRest<'_>) {
        let section = &self.sections[self.section];
        if section.kind != SourceSectionKind::Code {
            let name = section.name.clone();
            self.error(line.column, SourceProblem::NotCode(name));
            return;
        }
        // Code starts at whole dwords.
        self.pad_to(4);
        self.mark_line();
        let settles = self.expansion.depth == 0;
        if settles
            && self.last
            && let Some(bytes) = self.settled.of(self.line)
        {
            put(bytes, &mut self.total, &mut self.sections[self.section]);
            return;
        }
        self.asked.set(false);
        match text::parse_line(line.text, self.gpu, self) {
            Ok(inst) => match codec::encode(&inst, self.gpu) {
                Ok(words) => {
                    for word in words.as_slice() {
                        self.put(&word.to_le_bytes());
                    }
                    if settles && !self.last && !self.asked.get() {
                        self.settled.add(self.line, &words, self.bare);
                    }
                }
                Err(wrong) => self.error(line.column, SourceProblem::Encoding(wrong)),
            },
            Err(mut wrong) => {
                wrong.column += line.column - 1;
                self.error(wrong.column, SourceProblem::Instruction(wrong));
                // So that what follows is where it would be.
                self.put(&[0; 4]);
            }
        }
    }

    /// Does what was done with the same line lately, if that is certain to be the same; whether it was.
    fn known_line(&mut self, text: &str) -> bool {
        let Some(earlier) = self.recent.find(text) else { return false };
        if self.sections[self.section].kind != SourceSectionKind::Code {
            return false;
        }
        self.pad_to(4);
        let Some(bytes) = self.settled.again(self.line, earlier) else { return false };
        put(bytes, &mut self.total, &mut self.sections[self.section]);
        true
    }

    fn put(&mut self, bytes: &[u8]) {
        put(bytes, &mut self.total, &mut self.sections[self.section]);
    }

    /// Fills up to a multiple: code with its no-operation, anything else with zeros.
    fn pad_to(&mut self, align: u64) {
        let len = self.sections[self.section].bytes.len() as u64;
        let pad = len.next_multiple_of(align.max(1)) - len;
        self.fill(pad, None);
    }

    fn fill(&mut self, count: u64, with: Option<u8>) {
        if self.total.saturating_add(count) > MAX_BYTES {
            self.total = MAX_BYTES + 1;
            return;
        }
        self.total += count;
        let nop = codec::NOP.to_le_bytes();
        let section = &mut self.sections[self.section];
        let code = section.kind == SourceSectionKind::Code;
        for _ in 0..count {
            let at = section.bytes.len() % 4;
            section.bytes.push(with.unwrap_or(if code { nop[at] } else { 0 }));
        }
    }

    /// Symbols every file has.
    fn builtin(&self, name: &str) -> Option<i64> {
        let [major, minor, stepping] = self.gpu.version().map(i64::from);
        match name {
            ".amdgcn.gfx_generation_number" => Some(major),
            ".amdgcn.gfx_generation_minor" => Some(minor),
            ".amdgcn.gfx_generation_stepping" => Some(stepping),
            _ => None,
        }
    }

    /// An expression that is all of a text: its value, and whether it is an address.
    fn whole_expression(&self, line: LineRest<'_>) -> Result<(i64, bool), (usize, SourceProblem)> {
        match text::expression(line.text, self) {
            Ok((value, address, end)) if line.text[end..].trim().is_empty() => Ok((value, address)),
            Ok((_, _, end)) => Err((line.column_of(end), SourceProblem::Rest)),
            Err(mut wrong) => {
                wrong.column += line.column - 1;
                Err((wrong.column, SourceProblem::Instruction(wrong)))
            }
        }
    }

    fn finish(mut self) -> Assembly {
        self.place_kernels();
        // Where something else is wrong, labels may be anywhere.
        if let Some((name, line)) = self.moved.take().filter(|_| self.errors.is_empty()) {
            (self.line, self.expansion) = (line, expand::ExpandState::default());
            self.error(1, SourceProblem::Moves(name));
        }
        let mut symbols: Vec<DefinedSymbol> = self
            .defined
            .iter()
            .filter(|(name, _)| !name.starts_with(".L") && !name.starts_with(".amdgcn."))
            .map(|(name, known)| {
                let attrs = self.attrs.get(name).copied().unwrap_or_default();
                let section = known.address.then_some((known.value / SECTION_SPAN) as usize);
                DefinedSymbol {
                    name: name.clone(),
                    kind: attrs.kind.unwrap_or(SymbolKind::Label),
                    global: attrs.global,
                    section: section.filter(|&s| s < self.sections.len()),
                    value: if known.address { known.value % SECTION_SPAN } else { known.value },
                    size: attrs.size.and_then(|s| u64::try_from(s).ok()).unwrap_or(0),
                }
            })
            .collect();
        symbols.sort_by(|a, b| a.name.cmp(&b.name));
        self.errors.sort_by_key(|e| (e.line, e.column));
        Assembly {
            sections: self.sections,
            symbols,
            relocations: self.relocations,
            metadata: self.blocks,
            files: self.lines.files,
            lines: self.lines.marks,
            version: self.version,
            target: self.target,
            errors: self.errors,
            more_errors: self.more_errors,
        }
    }
}

#[cfg(test)]
mod tests;
