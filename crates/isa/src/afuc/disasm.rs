//! A whole firmware as text.
//!
//! [`ListingForm::Mesa`] writes what Mesa's `afuc-disasm` writes, including what that loses: bits without effect, a stripped
//! dword that is not 0, branches out of the section, table entries that point nowhere. [`ListingForm::Exact`] is the same text
//! wherever assembling it gives the input back, and raw words where it does not: each result is assembled and compared
//! before it is returned. The sections and packet tables of firmware since a6xx are an input,
//! because only running the bootstrap routine finds them.

use super::firmware::{Firmware, FirmwareBlob, Processor, TABLE_LEN, id_of};
use super::insn::Insn;
use super::text::{Label, push_comment, push_insn, push_register_comment, target};
use super::{AfucNames, asm};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What the text must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ListingForm {
    /// Mesa's text, byte for byte.
    #[default]
    Mesa,
    /// Text that assembles to the input, byte for byte.
    Exact,
}

/// How to disassemble.
#[derive(Clone, Debug, Default)]
pub struct AfucDisasmOptions {
    /// The firmware (`-g`) where the blob's own id is not to be believed.
    pub firmware: Option<Firmware>,
    /// Offset and word before each line (`-v`).
    pub verbose: bool,
    /// Words only, from the very first: no packet table, no sections (`-r`).
    pub raw: bool,
    /// Name of the file for the opening comment; `None` leaves that line out (`-u`).
    pub file: Option<String>,
    /// What the text must keep. Ignored when `verbose` or `raw`.
    pub form: ListingForm,
}

/// A blob that cannot be disassembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisasmError {
    /// There is no version dword.
    #[error("{0} bytes are too few for a firmware: it needs at least 8")]
    TooShort(usize),
    /// The version dword carries an id that nobody knows.
    #[error("unknown firmware id {0:03x}: name the firmware with -g")]
    UnknownFirmware(u32),
}

/// A part of a firmware that one processor runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareSection {
    /// Which processor.
    pub processor: Processor,
    /// First word, from the start of what is loaded.
    pub start: usize,
    /// One past the last word.
    pub end: usize,
    /// Packet table, as the bootstrap routine sets it up: for each opcode the handler's offset in the section.
    pub table: Vec<u32>,
    /// Where the packet table stands in the section, if it does.
    pub table_at: Option<usize>,
}

impl FirmwareSection {
    /// A section from `start` to `end` of what is loaded, with the table that its bootstrap routine sets up.
    pub fn new(
        words: &[u32],
        processor: Processor,
        start: usize,
        end: usize,
        table: Vec<u32>,
    ) -> FirmwareSection {
        let section = words.get(start..end).unwrap_or_default();
        let table_at = section.windows(TABLE_LEN).position(|window| window == table);
        FirmwareSection { processor, start, end, table, table_at }
    }

    /// The words of the section that hold code.
    pub(super) fn code<'w>(&self, words: &'w [u32]) -> &'w [u32] {
        let section = words.get(self.start..self.end).unwrap_or_default();
        section.get(..self.table_at.unwrap_or(section.len())).unwrap_or_default()
    }

    /// The packet handler an offset of the section belongs to: the nearest one at or before it, and its opcode.
    pub fn handler(&self, offset: u32) -> Option<(u8, u32)> {
        let entries = self.table.iter().enumerate();
        let before = entries.filter(|&(_, &entry)| entry != 0 && entry <= offset);
        let (opcode, &entry) = before.max_by_key(|&(opcode, &entry)| (entry, std::cmp::Reverse(opcode)))?;
        Some((u8::try_from(opcode).ok()?, entry))
    }
}

/// An instruction with its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfucLine {
    /// Offset from the start of the section, in words.
    pub offset: u32,
    /// The word.
    pub word: u32,
    /// Names of the packet handlers that begin here.
    pub handlers: Vec<String>,
    /// The instruction as text, with the comment behind it.
    pub text: String,
}

/// The instructions of a section around an offset: up to `context` before it, itself, up to `context` after it. Nothing
/// when the offset is not in the section's code.
pub fn around(
    words: &[u32],
    section: &FirmwareSection,
    firmware: Firmware,
    names: &dyn AfucNames,
    offset: u32,
    context: u32,
) -> Vec<AfucLine> {
    let code = section.code(words);
    let len = u32::try_from(code.len()).unwrap_or(u32::MAX);
    let listing = AfucLister { firmware, names, verbose: false, lossless: false };
    let table_at = section.table_at.and_then(|at| u32::try_from(at).ok());
    if offset >= len {
        return Vec::new();
    }
    let shown = offset.saturating_sub(context)..offset.saturating_add(context).saturating_add(1).min(len);
    let line = |offset: u32| {
        let word = *code.get(offset as usize)?;
        let mut text = String::new();
        listing.push_word(&mut text, offset, word, len, table_at);
        let begins = (0u8..).zip(&section.table).filter(|&(_, &entry)| entry == offset && offset != 0);
        let handlers = begins
            .map(|(opcode, _)| {
                let mut name = String::new();
                push_packet(&mut name, opcode, firmware, names);
                name
            })
            .collect();
        Some(AfucLine { offset, word, handlers, text })
    };
    shown.filter_map(line).collect()
}

/// Words of a blob that [`ListingForm::Exact`] takes for instructions; real firmware has about 20,000.
pub const LARGEST: usize = 1 << 20;

/// Disassembles a firmware file, of which `sections` are the sections. Neither a5xx nor [`AfucDisasmOptions::raw`] reads them.
///
/// # Errors
///
/// [`DisasmError`] where the file is too short or its firmware is not known, and the form asks for either.
pub fn disassemble(
    bytes: &[u8],
    sections: &[FirmwareSection],
    options: &AfucDisasmOptions,
    names: &dyn AfucNames,
) -> Result<String, DisasmError> {
    let blob = FirmwareBlob::new(bytes);
    let exact = options.form == ListingForm::Exact && !options.raw && !options.verbose;
    let known = match (options.firmware, blob.version()) {
        (Some(firmware), _) => Ok(firmware),
        (None, Some(version)) => {
            Firmware::from_version(version).ok_or(DisasmError::UnknownFirmware(id_of(version)))
        }
        (None, None) => Err(DisasmError::TooShort(bytes.len())),
    };
    if !exact {
        let version = blob.version().ok_or(DisasmError::TooShort(bytes.len()))?;
        return Ok(mesa(&blob, version, known?, sections, options, names));
    }
    let is_plausible = blob.words.len() <= LARGEST;
    if let (Ok(firmware), Some(version), true) = (known, blob.version(), is_plausible) {
        let restores = |text: &str| {
            let source = asm::AfucAsmOptions { file: String::new(), firmware: options.firmware };
            asm::assemble(text, &source, names).is_ok_and(|assembled| assembled == bytes)
        };
        let plain = mesa(&blob, version, firmware, sections, options, names);
        if restores(&plain) {
            return Ok(plain);
        }
        let text = careful(&blob, version, firmware, sections, options, names);
        if restores(&text) {
            return Ok(text);
        }
    }
    Ok(literal(&blob, known.ok()))
}

/// The opening comments.
fn opening(version: u32, firmware: Firmware, options: &AfucDisasmOptions) -> String {
    let mut out = format!("; a{}xx microcode\n", firmware.generation());
    if let Some(file) = &options.file {
        let _ = writeln!(out, "; Disassembling microcode: {file}");
    }
    let _ = write!(out, "; Version: {version:08x}\n\n");
    out
}

fn mesa(
    blob: &FirmwareBlob,
    version: u32,
    firmware: Firmware,
    sections: &[FirmwareSection],
    options: &AfucDisasmOptions,
    names: &dyn AfucNames,
) -> String {
    let mut out = opening(version, firmware, options);
    let listing = AfucLister { firmware, names, verbose: options.verbose, lossless: false };
    if options.raw {
        let all: Vec<u32> = blob.stripped.iter().chain(&blob.words).copied().collect();
        listing.write(&mut out, &all, &[], None);
    } else if firmware.generation() < 6 {
        let table_at = blob.words.get(1).map_or(0, |word| word & 0xffff) as usize;
        let table: Vec<u32> =
            blob.words.get(table_at..).unwrap_or_default().iter().take(TABLE_LEN).copied().collect();
        listing.write(&mut out, &blob.words, &table, None);
        if options.verbose {
            push_jump_table(&mut out, &table, firmware, names);
        }
    } else {
        listing.sections(&mut out, &blob.words, sections);
    }
    out
}

/// The table a5xx firmware ends with, one line per entry.
fn push_jump_table(out: &mut String, table: &[u32], firmware: Firmware, names: &dyn AfucNames) {
    let _ = writeln!(out, "{}\n; JUMP TABLE", ";".repeat(46));
    for (opcode, offset) in (0..0x7f_u8).zip(table) {
        let _ = write!(out, "{opcode:3} {opcode:02x}: {offset:04x}   ; ");
        push_packet(out, opcode, firmware, names);
        out.push('\n');
    }
}

fn push_packet(out: &mut String, opcode: u8, firmware: Firmware, names: &dyn AfucNames) {
    match names.packet(firmware, opcode) {
        Some(name) => out.push_str(&name),
        None => {
            let _ = write!(out, "UNKN{opcode}");
        }
    }
}

/// As [`mesa`], with raw words for the instructions whose text would not give them back.
fn careful(
    blob: &FirmwareBlob,
    version: u32,
    firmware: Firmware,
    sections: &[FirmwareSection],
    options: &AfucDisasmOptions,
    names: &dyn AfucNames,
) -> String {
    let mut out = opening(version, firmware, options);
    if let Some(stripped) = blob.stripped.filter(|&word| word != 0) {
        let _ = writeln!(out, ".stripped 0x{stripped:08x}");
    }
    if blob.firmware() != Some(firmware) {
        let _ = writeln!(out, ".firmware 0x{:03x}", firmware.id());
    }
    let listing = AfucLister { firmware, names, verbose: false, lossless: true };
    if firmware.generation() < 6 {
        listing.write(&mut out, &blob.words, &[], None);
    } else {
        listing.sections(&mut out, &blob.words, sections);
    }
    push_tail(&mut out, &blob.tail);
    out
}

/// Words only, none decoded.
fn literal(blob: &FirmwareBlob, firmware: Option<Firmware>) -> String {
    let mut out = String::new();
    match blob.stripped {
        Some(stripped) => {
            let _ = writeln!(out, ".stripped 0x{stripped:08x}");
        }
        None => out.push_str(".empty\n"),
    }
    let _ = writeln!(out, ".firmware 0x{:03x}", firmware.unwrap_or(Firmware::A630).id());
    for word in &blob.words {
        let _ = writeln!(out, "[{word:08x}]");
    }
    push_tail(&mut out, &blob.tail);
    out
}

fn push_tail(out: &mut String, tail: &[u8]) {
    for byte in tail {
        let _ = writeln!(out, ".byte 0x{byte:02x}");
    }
}

/// Writes words as instructions.
struct AfucLister<'n> {
    firmware: Firmware,
    names: &'n dyn AfucNames,
    verbose: bool,
    /// Instructions that do not encode to their word, and the table where labels do not give it, are raw words.
    lossless: bool,
}

impl AfucLister<'_> {
    fn sections(&self, out: &mut String, words: &[u32], sections: &[FirmwareSection]) {
        let has_bv = self.firmware.generation() >= 7;
        for section in sections {
            let name = match section.processor {
                Processor::Sqe => None,
                Processor::Bv => Some("BV"),
                Processor::Lpac => Some("LPAC"),
            };
            if let Some(name) = name {
                let _ = write!(out, "\n.section {name}\n;\n; {name} microcode:\n;\n");
            }
            let code = section.code(words);
            let reachable = |entry: &u32| (*entry as usize) < code.len() || *entry == 0;
            let keeps_table = !self.lossless || section.table.iter().all(reachable);
            let table_at = section.table_at.and_then(|at| u32::try_from(at).ok());
            self.write(out, code, &section.table, table_at);
            let Some(at) = section.table_at else { continue };
            // The section after this one must stay aligned to 32 bytes when this one is edited.
            if has_bv && section.processor != Processor::Lpac && (!self.lossless || at % 8 == 0) {
                out.push_str(".align 32\n");
            }
            out.push_str("jumptbl:\n");
            let mut rest = section.start.saturating_add(at);
            if keeps_table {
                out.push_str(".jumptbl\n");
                rest = rest.saturating_add(TABLE_LEN);
            }
            for word in words.get(rest..section.end).unwrap_or_default() {
                let _ = writeln!(out, "[{word:08x}]");
            }
        }
    }

    /// `table`: offsets of the packet handlers, which become labels. `table_at`: where the table stands.
    fn write(&self, out: &mut String, code: &[u32], table: &[u32], table_at: Option<u32>) {
        let generation = self.firmware.generation();
        let len = u32::try_from(code.len()).unwrap_or(u32::MAX);
        let (mut locals, mut functions) = (BTreeSet::new(), BTreeSet::new());
        for (at, &word) in (0u32..).zip(code) {
            let Some((insn, _)) = Insn::decode(word, generation) else { continue };
            match target(&insn, at, len) {
                Some(Label::Local(place)) => locals.insert(place),
                Some(Label::Function(place)) => functions.insert(place),
                Some(Label::Outside(_)) | None => continue,
            };
        }
        let mut entries: Vec<(u32, String)> = (0u8..)
            .zip(table)
            .map(|(opcode, &offset)| {
                let mut name = String::new();
                push_packet(&mut name, opcode, self.firmware, self.names);
                (offset, name)
            })
            .collect();
        entries.sort_by(|a, b| (a.0.cast_signed(), &a.1).cmp(&(b.0.cast_signed(), &b.1)));
        let mut entries = entries.into_iter().peekable();
        for (at, &word) in (0u32..).zip(code) {
            let prefix = |out: &mut String| {
                if self.verbose {
                    let _ = write!(out, "\t{at:04x}: {word:08x}  ");
                }
            };
            let is_entry = entries.peek().is_some_and(|&(offset, _)| offset == at);
            if at != 0 && (is_entry || functions.contains(&at)) {
                prefix(out);
                out.push('\n');
            }
            while let Some((_, name)) = entries.next_if(|&(offset, _)| offset == at) {
                prefix(out);
                let _ = writeln!(out, "{name}:");
            }
            for (kind, targets) in [("fxn", &functions), ("l", &locals)] {
                if targets.contains(&at) {
                    prefix(out);
                    let _ = writeln!(out, "{kind}{at}:");
                }
            }
            prefix(out);
            self.push_word(out, at, word, len, table_at);
            out.push('\n');
        }
    }

    fn push_word(&self, out: &mut String, at: u32, word: u32, len: u32, table_at: Option<u32>) {
        let (firmware, names) = (self.firmware, self.names);
        let Some((insn, decoded)) = Insn::decode(word, firmware.generation()) else {
            if table_at.is_some_and(|table| word == firmware.payload_nop(table)) {
                out.push_str("[#jumptbl]");
            } else {
                let _ = write!(out, "[{word:08x}]");
                push_register_comment(out, word, firmware, names);
            }
            return;
        };
        let label = target(&insn, at, len);
        if self.lossless && !keeps(&insn, word, label, firmware) {
            let _ = write!(out, "[{word:08x}]\t; ");
            push_insn(out, &decoded, label, firmware, names);
            return;
        }
        push_insn(out, &decoded, label, firmware, names);
        push_comment(out, &insn, firmware, names);
    }
}

/// Whether the text of an instruction gives its word back.
fn keeps(insn: &Insn, word: u32, label: Option<Label>, firmware: Firmware) -> bool {
    use super::insn::{AfucOp, InsnField};
    let decimal = matches!(insn.op, AfucOp::Swrite | AfucOp::Sread)
        && insn.has(InsnField::PreIncrement)
        && insn.get(InsnField::SqeOffset) > 9;
    insn.encode(firmware.generation()) == Ok(word) && !matches!(label, Some(Label::Outside(_))) && !decimal
}
