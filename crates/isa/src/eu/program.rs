//! Whole programs: labels at the targets of branches, and text that assembles to the same bytes.
//!
//! Mesa's text of an instruction leaves bits out. In a listing an instruction whose text does not assemble to its bytes
//! is written `.raw`, with what it reads as in a comment. So is what is not an instruction.

use super::asm::{self, AsmError, Assembled};
use super::compaction;
use super::disasm::{self, Targets, branch_targets};
use super::inst::{Instruction, Platform};
use super::operands::free_bits;
use super::tables::{Field, Opcode};
use super::text::{self, Text};
use std::collections::HashMap;

/// Where an instruction is, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Bytes from the start of the program.
    pub offset: usize,
    /// Its length: 8, 16, or what is left at the end.
    pub length: usize,
    /// The instruction in its full form, `None` where the bytes are not one.
    pub inst: Option<Instruction>,
}

impl Placed {
    /// Whether it has the form of 8 bytes.
    #[must_use]
    pub fn compacted(&self) -> bool {
        self.length == 8
    }

    /// The places a branch leads to: JIP, UIP.
    #[must_use]
    pub fn targets(&self) -> (Option<i64>, Option<i64>) {
        let Some((inst, row)) = self.inst.and_then(|inst| Some((inst, inst.row()?))) else {
            return (None, None);
        };
        let place = |field| self.offset as i64 + i64::from(inst.get(field) as u32 as i32);
        let (jip, uip) = branch_targets(row.opcode);
        (jip.then(|| place(Field::BranchJIP)), uip.then(|| place(Field::BranchUIP)))
    }
}

/// The instructions of a program, one after the other.
pub fn instructions(platform: Platform, bytes: &[u8]) -> impl Iterator<Item = Placed> {
    extents(bytes).map(move |(offset, length)| place(platform, bytes, offset, length))
}

/// Offset and length of each instruction: the first bytes say which of the two forms it has.
fn extents(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        let dword = rest.first_chunk::<4>().map_or(0, |b| u32::from_le_bytes(*b));
        let length = if compaction::is_compacted(dword) { 8 } else { 16 }.min(rest.len());
        let at = offset;
        offset += length;
        Some((at, length))
    })
}

/// The instruction of one of the [`extents`].
fn place(platform: Platform, bytes: &[u8], offset: usize, length: usize) -> Placed {
    let of = &bytes[offset..offset + length];
    let inst = if let Ok(full) = of.try_into() {
        let inst = Instruction::decode(platform, full);
        inst.row().map(|_| inst)
    } else if let Ok(compact) = of.try_into() {
        let compact = u64::from_le_bytes(compact);
        compaction::is_compacted(compact as u32).then(|| compaction::expand(platform, compact)).flatten()
    } else {
        None
    };
    Placed { offset, length, inst }
}

/// Whether the instruction with this first byte is a branch; the opcode is there in either form.
fn branches(platform: Platform, first: u8) -> bool {
    Instruction { bits: u128::from(first), platform }.row().is_some_and(|row| branch_targets(row.opcode).0)
}

/// How the code of a kernel ends: it has no length of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelEnd {
    /// A send ends the thread, and no jump leads past it.
    EndOfThread,
    /// The opcode `illegal`, which is 0, comes first.
    Illegal,
    /// Bytes that are not an instruction come first.
    NotCode,
    /// The bytes end first.
    Cut,
}

/// The code of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelExtent {
    /// Bytes of code.
    pub length: usize,
    /// What comes after them.
    pub end: KernelEnd,
}

/// The code of the kernel at the start of some bytes.
#[must_use]
pub fn kernel(platform: Platform, bytes: &[u8]) -> KernelExtent {
    let (mut furthest, mut ended, mut length) = (0, None, 0);
    let mut end = KernelEnd::Cut;
    for placed in instructions(platform, bytes) {
        let Some((inst, row)) = placed.inst.and_then(|inst| Some((inst, inst.row()?))) else {
            let rest = bytes.len() - placed.offset;
            end = if rest < 16 && rest == placed.length { KernelEnd::Cut } else { KernelEnd::NotCode };
            break;
        };
        if row.opcode == Opcode::Illegal {
            end = KernelEnd::Illegal;
            break;
        }
        length = placed.offset + placed.length;
        let (jip, uip) = placed.targets();
        furthest = [jip, uip].into_iter().flatten().fold(furthest, i64::max);
        let sends = matches!(row.opcode, Opcode::Send | Opcode::Sendc | Opcode::Sends | Opcode::Sendsc);
        if sends && inst.flag(Field::SendEndOfThread) {
            ended = Some(length);
            if furthest < length as i64 {
                break;
            }
        }
    }
    // A jump that leads out of the code does not make more of it.
    match ended {
        Some(length) => KernelExtent { length, end: KernelEnd::EndOfThread },
        None => KernelExtent { length, end },
    }
}

/// The code of the kernel at the start of dwords, of which at most `most` bytes are read, and how it ends. No more is copied than
/// a few times the code.
#[must_use]
pub fn kernel_in(platform: Platform, words: &[u32], most: usize) -> (Vec<u8>, KernelExtent) {
    let most = words.len().min(most / 4);
    let mut count = most.min(1024);
    loop {
        let mut bytes: Vec<u8> = words.iter().take(count).flat_map(|word| word.to_le_bytes()).collect();
        let extent = kernel(platform, &bytes);
        if extent.end != KernelEnd::Cut || count == most {
            bytes.truncate(extent.length);
            return (bytes, extent);
        }
        count = count.saturating_mul(4).min(most);
    }
}

/// The labels of a program, numbered in the order they are met, that of a UIP before that of the JIP.
#[derive(Debug, Default)]
struct Labels {
    /// For each 8 bytes of the program, and its end: the number of the label there, and one more; 0 for none. Empty for a program
    /// without branches.
    inside: Vec<u32>,
    /// The numbers of other places.
    outside: HashMap<i64, u32>,
    count: u32,
}

impl Labels {
    fn of(platform: Platform, bytes: &[u8]) -> Self {
        let mut labels = Self::default();
        for (offset, length) in extents(bytes) {
            if branches(platform, bytes[offset]) {
                if labels.inside.is_empty() {
                    labels.inside = vec![0; bytes.len() / 8 + 1];
                }
                let (jip, uip) = place(platform, bytes, offset, length).targets();
                for place in [uip, jip].into_iter().flatten() {
                    labels.meet(place);
                }
            }
        }
        labels
    }

    /// The slot of a place in `inside`.
    fn slot(&self, place: i64) -> Option<usize> {
        let slot = usize::try_from(place / 8).ok()?;
        (place % 8 == 0 && slot < self.inside.len()).then_some(slot)
    }

    fn meet(&mut self, place: i64) {
        let slot = self.slot(place);
        let number = match slot {
            Some(slot) => &mut self.inside[slot],
            None => self.outside.entry(place).or_default(),
        };
        if *number == 0 {
            self.count += 1;
            *number = self.count;
        }
    }

    /// The number of the label at a place.
    fn at(&self, place: i64) -> Option<usize> {
        let number = match self.slot(place) {
            Some(slot) => self.inside[slot],
            None => *self.outside.get(&place)?,
        };
        number.checked_sub(1).map(|number| number as usize)
    }

    fn number(&self, place: Option<i64>) -> usize {
        place.and_then(|place| self.at(place)).unwrap_or(0)
    }

    /// Writes the label of a place.
    fn push(&self, out: &mut Vec<u8>, place: usize) {
        if self.inside.is_empty() {
            return;
        }
        if let Some(number) = self.at(place as i64) {
            out.extend_from_slice(b"\nLABEL");
            Text::new(out).number(number as u64);
            out.extend_from_slice(b":\n");
        }
    }
}

/// Where instructions start, and the end of the program: a bit for each 8 bytes. An instruction starts at nothing else.
struct Starts(Vec<u64>);

impl Starts {
    fn of(bytes: &[u8]) -> Self {
        let mut starts = Self(vec![0; bytes.len() / 512 + 1]);
        let offsets = extents(bytes).map(|(offset, _)| offset);
        for slot in offsets.chain([bytes.len()]).filter(|place| place % 8 == 0).map(|place| place / 8) {
            starts.0[slot / 64] |= 1 << (slot % 64);
        }
        starts
    }

    fn has(&self, place: i64, length: usize) -> bool {
        // The end need not be a whole number of 8 bytes.
        if place == length as i64 {
            return true;
        }
        let Ok(slot) = usize::try_from(place / 8) else { return false };
        place % 8 == 0 && self.0.get(slot / 64).is_some_and(|bits| bits >> (slot % 64) & 1 != 0)
    }
}

/// The text of a program as Mesa prints it. Bytes that are not an instruction are shown as a comment.
#[must_use]
pub fn disassemble(platform: Platform, bytes: &[u8]) -> String {
    write_program(platform, bytes, false)
}

/// The text of a program that assembles to the same bytes.
#[must_use]
pub fn listing(platform: Platform, bytes: &[u8]) -> String {
    write_program(platform, bytes, true)
}

fn write_program(platform: Platform, bytes: &[u8], exact_bytes: bool) -> String {
    let labels = Labels::of(platform, bytes);
    let starts = (exact_bytes && !labels.inside.is_empty()).then(|| Starts::of(bytes));
    let mut out = Vec::with_capacity(bytes.len().saturating_mul(6));
    let mut known = Known::new(if exact_bytes { bytes.len() / 8 } else { 0 });
    let mut end = 0;
    for placed in instructions(platform, bytes) {
        end = placed.offset + placed.length;
        labels.push(&mut out, placed.offset);
        let start = out.len();
        if let Some(inst) = &placed.inst {
            let (jip, uip) = placed.targets();
            let targets = Targets { jip: labels.number(jip), uip: labels.number(uip) };
            disasm::write(&mut out, inst, placed.compacted(), &targets, exact_bytes);
            let defined = |place: Option<i64>| match (place, &starts) {
                (None, _) => true,
                (Some(place), Some(starts)) => starts.has(place, bytes.len()),
                (Some(_), None) => false,
            };
            let mut same = || {
                let of = &bytes[placed.offset..end];
                let text = &out[start..];
                defined(jip) && defined(uip) && known.assembles_to(text, inst, of)
            };
            if !exact_bytes || same() {
                out.push(b'\n');
                continue;
            }
        }
        let reading = out.split_off(start);
        push_raw(&mut out, &bytes[placed.offset..end], &reading);
    }
    // Mesa leaves out the label at the end.
    if exact_bytes {
        labels.push(&mut out, end);
    }
    text::string(out)
}

/// Instructions as lines, each by itself. What is needed for one line is kept for the next.
#[derive(Debug)]
pub struct LineWriter {
    known: Known,
    line: Vec<u8>,
}

impl Default for LineWriter {
    fn default() -> Self {
        Self { known: Known::new(usize::MAX), line: Vec::with_capacity(160) }
    }
}

impl LineWriter {
    /// The text of an instruction, or of bytes that are not one, with the white space that Mesa has. With `exact_bytes` it
    /// assembles to the same bytes: a branch is `.raw`, because alone a label has no distance.
    pub fn text(&mut self, placed: &Placed, bytes: &[u8], exact_bytes: bool) -> &str {
        self.line.clear();
        let branch = placed.targets() != (None, None);
        if let Some(inst) = &placed.inst {
            let exact = exact_bytes && !branch;
            disasm::write_alone(&mut self.line, inst, placed.compacted(), exact);
            let same = exact && self.known.assembles_to(&self.line, inst, bytes);
            if exact_bytes && !same {
                let reading = std::mem::take(&mut self.line);
                push_raw(&mut self.line, bytes, &reading);
            }
        } else {
            push_raw(&mut self.line, bytes, &[]);
        }
        std::str::from_utf8(&self.line).unwrap_or_default()
    }
}

/// Bytes as `.raw`, and what they read as in a comment.
fn push_raw(out: &mut Vec<u8>, bytes: &[u8], reading: &[u8]) {
    out.extend_from_slice(b".raw ");
    for &byte in bytes {
        Text::new(out).hex_digits(u64::from(byte), 2);
    }
    if !reading.is_empty() {
        out.extend_from_slice(b" //");
        for word in reading.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.push(b' ');
            out.extend_from_slice(word);
        }
    }
    out.push(b'\n');
}

/// Instructions whose text is known to assemble to their bits, without the numbers that any such text has as they are, and
/// without distances to labels. Code has few of them. A form has two places here, which it shares with others.
#[derive(Debug)]
struct Known {
    /// Bits; bit 29, which no instruction of 16 bytes has, says that the form is that of 8.
    forms: Vec<u128>,
    /// What [`compaction::selection`] has of forms of 8 bytes that are the one which compacting gives.
    selections: Vec<u64>,
}

/// A number to which every bit of two others counts.
fn mixed(first: u64, second: u64) -> usize {
    let product = u128::from(first ^ 0x9e37_79b9_7f4a_7c15) * u128::from(second ^ 0xd6e8_feb8_6659_fd93);
    (product >> 64) as usize ^ product as usize
}

/// No opcode has these bits.
const NO_FORM: u128 = u128::MAX;

/// Every form of 8 bytes has bit 29.
const NO_SELECTION: u64 = 0;

impl Known {
    /// For a program of at most so many instructions.
    fn new(instructions: usize) -> Self {
        const MOST: usize = 1 << 14;
        const MOST_SELECTIONS: usize = 1 << 11;
        let most = instructions.min(MOST).next_power_of_two().max(2);
        Self { forms: vec![NO_FORM; most], selections: vec![NO_SELECTION; most.min(MOST_SELECTIONS)] }
    }

    /// The first place of a form; the other differs from it in the lowest bit.
    fn slot(&self, form: u128) -> usize {
        mixed(form as u64, (form >> 64) as u64) & (self.forms.len() - 1)
    }

    /// Puts a form first of its two places. The one that was there goes to the other.
    fn remember(&mut self, slot: usize, form: u128) {
        self.forms[slot ^ 1] = std::mem::replace(&mut self.forms[slot], form);
    }

    /// Whether a text stands for exactly these bytes.
    fn assembles_to(&mut self, text: &[u8], inst: &Instruction, bytes: &[u8]) -> bool {
        // Several forms of 8 bytes may stand for the same instruction.
        let compact = bytes.try_into().ok().map(u64::from_le_bytes);
        self.assembles_to_bits(text, inst, compact.is_some())
            && compact.is_none_or(|compact| self.compacts_to(inst, compact))
    }

    /// Whether compacting an instruction gives the form that it was expanded from.
    fn compacts_to(&mut self, inst: &Instruction, compact: u64) -> bool {
        let Some(selection) = compaction::selection(inst.platform, compact) else { return false };
        let slot = mixed(selection, 0) & (self.selections.len() - 1);
        if self.selections[slot] == selection {
            return true;
        }
        let same = compaction::compact(inst) == Some(compact);
        if same {
            self.selections[slot] = selection;
        }
        same
    }

    fn assembles_to_bits(&mut self, text: &[u8], inst: &Instruction, compacted: bool) -> bool {
        let text = || std::str::from_utf8(text).unwrap_or_default();
        let Some(row) = inst.row() else { return assembles_to_bits(text(), inst, compacted) };
        let form = inst.bits & !free_bits(inst, row) | u128::from(compacted) << 29;
        let slot = self.slot(form);
        if self.forms[slot] == form || self.forms[slot ^ 1] == form {
            return true;
        }
        let same = assembles_to_bits(text(), inst, compacted);
        if same {
            self.remember(slot, form);
        }
        same
    }
}

/// Whether a text stands for the bits of an instruction and for the form it has.
fn assembles_to_bits(text: &str, inst: &Instruction, compacted: bool) -> bool {
    let Ok(mut assembled) = asm::assemble(inst.platform, text) else { return false };
    for (label, field) in [(assembled.jip, Field::BranchJIP), (assembled.uip, Field::BranchUIP)] {
        if label.is_some() {
            assembled.inst.set(field, inst.get(field));
        }
    }
    assembled.inst == *inst && assembled.compacted == compacted
}

/// A statement that is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {error}")]
pub struct ProgramError {
    /// The line, from 1.
    pub line: usize,
    /// The column the statement starts in, from 1.
    pub column: usize,
    /// What is wrong.
    pub error: AsmError,
}

impl ProgramError {
    /// An error of the statement at the start of `rest`, the end of `text`.
    fn at(text: &str, rest: &str, error: AsmError) -> Self {
        let before = &text[..text.len() - rest.len()];
        let line = before.bytes().filter(|&c| c == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { line, column, error }
    }
}

/// A statement of a program.
enum Statement<'a> {
    Instruction(Assembled<'a>),
    Raw(Vec<u8>),
}

/// Assembles a program: instructions that end with `;`, labels, `.raw` with hexadecimal digits, and comments.
///
/// # Errors
/// All statements that are not valid, or that the platform does not have.
pub fn assemble(platform: Platform, text: &str) -> Result<Vec<u8>, Vec<ProgramError>> {
    let mut errors = Vec::new();
    let mut statements = Vec::new();
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let mut offset = 0;
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some((_, after)) = rest.strip_prefix("/*").and_then(|rest| rest.split_once("*/")) {
            rest = after;
        } else if let Some(raw) = rest.strip_prefix(".raw") {
            let (line, after) = raw.split_once('\n').unwrap_or((raw, ""));
            let digits = line.split("//").next().unwrap_or("").trim();
            match raw_bytes(digits) {
                Some(bytes) => {
                    let length = bytes.len();
                    statements.push((offset, rest, Statement::Raw(bytes)));
                    offset += length;
                }
                None => {
                    let error = AsmError::Expected("bytes", digits.chars().take(24).collect());
                    errors.push(ProgramError::at(text, rest, error));
                }
            }
            rest = after;
        } else if let Some((label, after)) = label(rest) {
            labels.insert(label, offset);
            rest = after;
        } else {
            let Some((statement, after)) = rest.split_once(';') else {
                let error = AsmError::Expected(";", rest.chars().take(24).collect());
                errors.push(ProgramError::at(text, rest, error));
                break;
            };
            match asm::assemble(platform, statement) {
                Ok(assembled) => {
                    let length = if assembled.compacted { 8 } else { 16 };
                    statements.push((offset, rest, Statement::Instruction(assembled)));
                    offset += length;
                }
                Err(error) => errors.push(ProgramError::at(text, rest, error)),
            }
            rest = after;
        }
    }
    let mut bytes = Vec::with_capacity(offset);
    for (offset, at, statement) in statements {
        match statement {
            Statement::Raw(raw) => bytes.extend_from_slice(&raw),
            Statement::Instruction(mut assembled) => {
                let result =
                    resolve(&mut assembled, offset, &labels).and_then(|()| assembled.push_bytes(&mut bytes));
                if let Err(error) = result {
                    errors.push(ProgramError::at(text, at, error));
                }
            }
        }
    }
    if errors.is_empty() { Ok(bytes) } else { Err(errors) }
}

/// Sets the distances to the labels.
fn resolve(assembled: &mut Assembled, offset: usize, labels: &HashMap<&str, usize>) -> Result<(), AsmError> {
    for (label, field) in [(assembled.jip, Field::BranchJIP), (assembled.uip, Field::BranchUIP)] {
        if let Some(label) = label {
            let place = labels.get(label).ok_or_else(|| AsmError::Label(label.to_owned()))?;
            let distance = *place as i64 - offset as i64;
            assembled.inst.set(field, u64::from(distance as u32));
        }
    }
    Ok(())
}

/// A label and what follows it.
fn label(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|c| !c.is_ascii_alphanumeric() && c != b'_')?;
    let rest = text[end..].strip_prefix(':')?;
    (end > 0).then_some((&text[..end], rest))
}

/// The bytes of hexadecimal digits, `None` when they are not.
#[must_use]
pub fn raw_bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(digits.get(i..i + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of most formats; a platform has some of them.
    const TEXTS: &[&str] = &[
        "add(8) g40<1>D g38<8,8,1>D g36<8,8,1>D { align1 1Q };",
        "mov(8) g4<1>F 0x3f800000F { align1 1Q };",
        "mov(8) g4<1>UW 0x0808UW { align1 1Q };",
        "mul(8) g4<1>D g5<8,8,1>D 77D { align1 1Q };",
        "mad(8) g4<1>F g33<8,8,1>F g15<8,8,1>F g37<1,1,1>F { align1 1Q };",
        "mad(8) g4<1>.xF g33<4,4,1>.xF g15<4,4,1>.yF g37.0<0,1,0>F { align16 1Q };",
        "math sqrt(8) g14<1>F g53<8,8,1>F null<8,8,1>F { align1 1Q };",
        "mov(8) g[a0.2 16]<1>UD g[a0 32]<VxH,1,0>UD { align1 1Q };",
        "send(8) g96UD g104UD nullUD 0x0210b500 0x00000000 ugm MsgDesc: { align1 1Q $3 };",
        "send(8) g124<1>UW g13<8,8,1>UD 0x0643a001 sampler MsgDesc: { align1 1Q };",
        "sends(8) nullUD g104UD g4UD 0x02025efd 0x00000040 dp data 1 MsgDesc: { align1 1Q };",
        "(-f0.0) if(16) JIP: LABEL0 UIP: LABEL0 { align1 1H };",
        "while(8) JIP: LABEL0 { align1 1Q };",
    ];

    /// What a listing takes for right is right: a text that assembles to its bits does so with any other numbers in it.
    #[test]
    fn numbers_of_a_text_do_not_make_it_wrong() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let variants = if std::env::var_os("UNWEDGE_ALL").is_some() { 10_000 } else { 60 };
        let text = |inst: &Instruction| {
            let mut out = Vec::new();
            disasm::write_alone(&mut out, inst, false, true);
            text::string(out)
        };
        for name in Platform::names() {
            let platform = Platform::by_name(name).unwrap();
            let of_text = |text: &&str| asm::assemble(platform, text).ok().map(|of| of.inst);
            let of_opcode = |code: u128| Instruction { bits: code, platform };
            let mut bases: Vec<Instruction> = TEXTS.iter().filter_map(of_text).collect();
            bases.extend((0..128).map(of_opcode).filter(|inst| inst.row().is_some()));
            // An immediate as first source.
            let immediates: Vec<Instruction> = bases
                .iter()
                .map(|base| {
                    let mut inst = *base;
                    inst.set(Field::Src0RegisterFile, if platform.generation < 3 { 3 } else { 2 });
                    inst
                })
                .collect();
            bases.extend(immediates);
            let mut right = 0;
            for base in bases {
                for _ in 0..variants {
                    let mut inst = base;
                    for _ in 0..next() % 6 {
                        // Above the opcode.
                        inst.bits ^= 1 << (next() % 121 + 7);
                    }
                    let Some(row) = inst.row().filter(|_| assembles_to_bits(&text(&inst), &inst, false))
                    else {
                        continue;
                    };
                    right += 1;
                    let free = free_bits(&inst, row);
                    for _ in 0..4 {
                        let numbers = u128::from(next()) << 64 | u128::from(next());
                        let other = Instruction { bits: inst.bits & !free | numbers & free, platform };
                        let (text, first) = (text(&other), text(&inst));
                        // The halves of a word are two numbers of which the text has one.
                        let kept = free_bits(&other, row) == free;
                        assert!(
                            !kept || assembles_to_bits(&text, &other, false),
                            "{name}: {text}, but not {first}"
                        );
                    }
                }
            }
            assert!(right > 1000, "{name}: {right} texts are right");
        }
    }
}
