//! One instruction as text, as Mesa's disassembler writes it.
//!
//! Never looks at a neighbour: labels are given by whoever knows the section.

use super::insn::{AfucOp, Insn, InsnField, Syntax};
use super::{AfucNames, Firmware, SqeSpace};
use crate::table::{DecodedWord, DisplayPart, FieldKind, Printer, print};
use std::fmt::Write as _;

/// Registers with a name of their own when read.
pub const SOURCES: [&str; 4] = ["$rem", "$memdata", "$regdata", "$data"];
/// Registers with a name of their own when written.
pub const DESTINATIONS: [&str; 4] = ["$rem", "$addr", "$usraddr", "$data"];

/// Number of `$sp`.
pub const SP: u32 = 0x1a;
/// Number of `$lr`.
pub const LR: u32 = 0x1b;
/// Number of `$rem`.
pub const REM: u32 = 0x1c;
/// Number of `$addr` written, `$memdata` read.
pub const ADDR: u32 = 0x1d;
/// Number of `$usraddr` written, `$regdata` read.
pub const USRADDR: u32 = 0x1e;
/// Number of `$data`.
pub const DATA: u32 = 0x1f;

/// Where a branch goes, as the section it stands in names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// `l12`.
    Local(u32),
    /// `fxn12`.
    Function(u32),
    /// Nowhere in the section: the raw distance or offset.
    Outside(i64),
}

/// A general register's own text: `$02`, `$rem`.
pub fn push_register(out: &mut String, register: u32, written: bool) {
    let special = if written { &DESTINATIONS } else { &SOURCES };
    match register {
        SP => out.push_str("$sp"),
        LR => out.push_str("$lr"),
        _ => match special.get(register.wrapping_sub(REM) as usize) {
            Some(name) => out.push_str(name),
            None => {
                let _ = write!(out, "${register:02x}");
            }
        },
    }
}

/// The instruction at `at` of a section's words as text with its comment, and its word; `None` past the end.
pub fn instruction(
    code: &[u32],
    at: u32,
    firmware: Firmware,
    names: &dyn AfucNames,
) -> Option<(u32, String)> {
    let word = *code.get(at as usize)?;
    let mut out = String::new();
    match Insn::decode(word, firmware.generation()) {
        Some((insn, decoded)) => {
            let len = u32::try_from(code.len()).unwrap_or(u32::MAX);
            push_insn(&mut out, &decoded, target(&insn, at, len), firmware, names);
            push_comment(&mut out, &insn, firmware, names);
        }
        None => {
            let _ = write!(out, "[{word:08x}]");
        }
    }
    Some((word, out))
}

/// A label's own text.
pub(super) fn push_label(out: &mut String, label: Label) {
    let _ = match label {
        Label::Local(at) => write!(out, "l{at}"),
        Label::Function(at) => write!(out, "fxn{at}"),
        Label::Outside(raw) => write!(out, "{raw}"),
    };
}

/// The place an instruction at `at` refers to: its kind, and the offset from the start of the section.
pub(super) fn target(insn: &Insn, at: u32, len: u32) -> Option<Label> {
    let relative = |distance: u32| {
        let place = at.wrapping_add(distance);
        if place < len { Label::Local(place) } else { Label::Outside(i64::from(distance.cast_signed())) }
    };
    let absolute = |inside: fn(u32) -> Label| {
        let place = insn.get(InsnField::Target);
        let signed = i64::from((place << 6).cast_signed() >> 6);
        if place < len { inside(place) } else { Label::Outside(signed) }
    };
    match insn.op.syntax() {
        Syntax::SrcImmBranch | Syntax::SrcBitBranch => Some(relative(insn.get(InsnField::Branch))),
        Syntax::Secure => Some(relative(3)),
        Syntax::Call => Some(absolute(Label::Function)),
        Syntax::Absolute => Some(absolute(Label::Local)),
        _ => None,
    }
}

/// Appends an instruction; `label` is what [`target`] says of it.
pub(super) fn push_insn(
    out: &mut String,
    decoded: &DecodedWord<'static>,
    label: Option<Label>,
    firmware: Firmware,
    names: &dyn AfucNames,
) {
    let mut text = Vec::new();
    // What is odd about an instruction is not for this text.
    print(decoded, &mut InsnText { label, firmware, names }, &mut text);
    out.push_str(&String::from_utf8_lossy(&text));
}

/// The parts of an instruction's text that need more than the word: labels and registers by name.
struct InsnText<'n> {
    label: Option<Label>,
    firmware: Firmware,
    names: &'n dyn AfucNames,
}

impl<'t> Printer<'t> for InsnText<'_> {
    fn part(&mut self, part: &DisplayPart<'t>, out: &mut Vec<u8>) -> bool {
        let DisplayPart::Field { name, value, kind, .. } = *part else { return false };
        let mut text = String::new();
        match (kind, self.label) {
            (FieldKind::Branch { .. } | FieldKind::AbsBranch { .. }, Some(label)) => {
                push_label(&mut text, label)
            }
            (FieldKind::Custom, _) => {
                let (space, sigil) =
                    if name == "SQEREG" { (SqeSpace::Sqe, '%') } else { (SqeSpace::Control, '@') };
                let offset = u32::try_from(value).unwrap_or(u32::MAX);
                let _ = match self.names.register(self.firmware, space, offset) {
                    Some(name) => write!(text, "{sigil}{name}"),
                    None => write!(text, "0x{offset:03x}"),
                };
            }
            _ => return false,
        }
        out.extend_from_slice(text.as_bytes());
        true
    }
}

/// Appends the comment behind an instruction: the register its immediate would be.
pub(super) fn push_comment(out: &mut String, insn: &Insn, firmware: Firmware, names: &dyn AfucNames) {
    if !matches!(insn.op, AfucOp::AluImm(_) | AfucOp::MovImm) {
        return;
    }
    let value = insn.get(InsnField::RegImm) << (insn.get(InsnField::Shift) & 31);
    if insn.get(InsnField::Dst) == ADDR && insn.get(InsnField::Shift) >= 16 {
        let register = value & !NO_INCREMENT;
        if register & 0xff_ffff == 0 {
            out.push_str("\t; ");
            match names.register(firmware, SqeSpace::Pipe, register >> 24) {
                Some(name) => {
                    let _ = write!(out, "|{name}");
                }
                None => {
                    let _ = write!(out, "0x{:03x}", register >> 24);
                }
            }
        }
    } else {
        push_register_comment(out, value, firmware, names);
    }
}

/// The bit of `$addr` that keeps it from advancing.
pub const NO_INCREMENT: u32 = 1 << 18;

/// Appends the name of the GPU register a value would be.
pub(super) fn push_register_comment(out: &mut String, value: u32, firmware: Firmware, names: &dyn AfucNames) {
    if value < 0x100 {
        return;
    }
    if let Some(name) = names.register(firmware, SqeSpace::Gpu, value) {
        let _ = write!(out, "\t; {name}");
    }
}
