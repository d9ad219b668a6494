//! One instruction as text, as Mesa's disassembler writes it.
//!
//! Never looks at a neighbour: labels are given by whoever knows the section.

use super::table::{Field, Insn, Row, Syntax};
use super::{Firmware, Names, Space};
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

pub(super) fn push_register(out: &mut String, register: u32, written: bool) {
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

/// A label's own text.
pub(super) fn push_label(out: &mut String, label: Label) {
    let _ = match label {
        Label::Local(at) => write!(out, "l{at}"),
        Label::Function(at) => write!(out, "fxn{at}"),
        Label::Outside(raw) => write!(out, "{raw}"),
    };
}

/// The place an instruction at `at` refers to: its kind, and the offset from the start of the section.
pub(super) fn target(insn: &Insn, row: &Row, at: u32, len: u32) -> Option<Label> {
    let relative = |distance: u32| {
        let place = at.wrapping_add(distance);
        if place < len { Label::Local(place) } else { Label::Outside(i64::from(distance.cast_signed())) }
    };
    let absolute = |inside: fn(u32) -> Label| {
        let place = insn.get(Field::Target);
        let signed = i64::from((place << 6).cast_signed() >> 6);
        if place < len { inside(place) } else { Label::Outside(signed) }
    };
    match row.syntax {
        Syntax::SrcImmBranch | Syntax::SrcBitBranch => Some(relative(insn.get(Field::Branch))),
        Syntax::Secure => Some(relative(3)),
        Syntax::Call => Some(absolute(Label::Function)),
        Syntax::Absolute => Some(absolute(Label::Local)),
        _ => None,
    }
}

/// Appends an instruction; `label` is what [`target`] says of it.
pub(super) fn push_insn(
    out: &mut String,
    insn: &Insn,
    row: &Row,
    label: Option<Label>,
    firmware: Firmware,
    names: &dyn Names,
) {
    use super::table::{Alu, Op};
    let get = |field| insn.get(field);
    if insn.has(Field::Rep) {
        out.push_str("(rep)");
    }
    for (field, word) in [(Field::Xmov, "xmov"), (Field::Sds, "sds")] {
        if insn.has(field) {
            let _ = write!(out, "({word}{})", get(field));
        }
    }
    if insn.has(Field::Peek) {
        out.push_str("(peek)");
    }
    let is_jump = insn.op == Op::BrneBit && get(Field::Src1) == 0 && get(Field::Bit) == 0;
    let is_move = insn.op == Op::Alu(Alu::Or) && get(Field::Src1) == 0;
    out.push_str(match (is_jump, is_move) {
        (true, _) => "jump",
        (_, true) => "mov",
        _ => row.mnemonic,
    });
    if row.syntax == Syntax::Nothing {
        return;
    }
    out.push(' ');
    let mut list = List { out, first: true };
    match row.syntax {
        Syntax::Nothing => {}
        Syntax::DstSrcSrc => {
            list.register(get(Field::Dst), true);
            if !is_move {
                list.register(get(Field::Src1), false);
            }
            list.register(get(Field::Src2), false);
        }
        Syntax::DstSrc => {
            list.register(get(Field::Dst), true);
            list.register(get(Field::Src1), false);
        }
        Syntax::DstSrcImm => {
            list.register(get(Field::Dst), true);
            list.register(get(Field::Src1), false);
            list.hex(get(Field::RegImm));
        }
        Syntax::DstImm => {
            list.register(get(Field::Dst), true);
            list.hex(get(Field::Imm));
        }
        Syntax::DstImmShift => {
            list.register(get(Field::Dst), true);
            list.hex(get(Field::RegImm));
            if insn.has(Field::Shift) {
                let _ = write!(list.out, " << {}", get(Field::Shift));
            }
        }
        Syntax::DstSrcBit | Syntax::DstSrcBitBit => {
            list.register(get(Field::Dst), true);
            list.register(get(Field::Src1), false);
            list.bit(get(Field::Bit));
            if row.syntax == Syntax::DstSrcBitBit {
                list.bit(get(Field::High));
            }
        }
        Syntax::SrcMem => {
            list.register(get(Field::Src1), false);
            push_address(list.next(), insn, firmware, names);
        }
        Syntax::DstMem => {
            list.register(get(Field::Dst), true);
            push_address(list.next(), insn, firmware, names);
        }
        Syntax::SrcImmBranch => {
            list.register(get(Field::Src1), false);
            list.hex(get(Field::Imm));
        }
        Syntax::SrcBitBranch => {
            if !is_jump {
                list.register(get(Field::Src1), false);
                list.bit(get(Field::Bit));
            }
        }
        Syntax::Src => list.register(get(Field::Src1), false),
        Syntax::Secure => list.next().push_str("$02"),
        Syntax::Call | Syntax::Absolute => {}
    }
    if let Some(label) = label {
        let out = list.next();
        out.push('#');
        push_label(out, label);
    }
}

/// `[$base + offset]!`.
fn push_address(out: &mut String, insn: &Insn, firmware: Firmware, names: &dyn Names) {
    use super::table::Op;
    out.push('[');
    push_register(out, insn.get(Field::Base), false);
    out.push_str(" + ");
    let increments = insn.has(Field::PreIncrement);
    let named = |out: &mut String, space, sigil, offset| match names.register(firmware, space, offset) {
        Some(name) => {
            out.push(sigil);
            out.push_str(&name);
        }
        None => {
            let _ = write!(out, "0x{offset:03x}");
        }
    };
    match insn.op {
        Op::Cwrite | Op::Cread if !increments => {
            named(out, Space::Control, '@', insn.get(Field::ControlOffset));
        }
        Op::Swrite | Op::Sread if !increments => named(out, Space::Sqe, '%', insn.get(Field::SqeOffset)),
        // Mesa's disassembler prints decimal digits after the 0x here.
        Op::Swrite | Op::Sread => {
            let _ = write!(out, "0x{}", insn.get(Field::SqeOffset));
        }
        Op::Cwrite | Op::Cread => {
            let _ = write!(out, "0x{:x}", insn.get(Field::ControlOffset));
        }
        _ => {
            let _ = write!(out, "0x{:x}", insn.get(Field::MemOffset));
        }
    }
    out.push(']');
    if increments {
        out.push('!');
    }
}

/// Appends the comment behind an instruction: the register its immediate would be.
pub(super) fn push_comment(out: &mut String, insn: &Insn, row: &Row, firmware: Firmware, names: &dyn Names) {
    if !row.fields.iter().any(|&(field, ..)| field == Field::RegImm) {
        return;
    }
    let value = insn.get(Field::RegImm) << (insn.get(Field::Shift) & 31);
    if insn.get(Field::Dst) == ADDR && insn.get(Field::Shift) >= 16 {
        let register = value & !NO_INCREMENT;
        if register & 0xff_ffff == 0 {
            out.push_str("\t; ");
            match names.register(firmware, Space::Pipe, register >> 24) {
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
pub(super) fn push_register_comment(out: &mut String, value: u32, firmware: Firmware, names: &dyn Names) {
    if value < 0x100 {
        return;
    }
    if let Some(name) = names.register(firmware, Space::Gpu, value) {
        let _ = write!(out, "\t; {name}");
    }
}

struct List<'o> {
    out: &'o mut String,
    first: bool,
}

impl List<'_> {
    fn next(&mut self) -> &mut String {
        if !std::mem::take(&mut self.first) {
            self.out.push_str(", ");
        }
        self.out
    }

    fn register(&mut self, register: u32, written: bool) {
        push_register(self.next(), register, written);
    }

    fn hex(&mut self, value: u32) {
        let _ = write!(self.next(), "0x{value:x}");
    }

    fn bit(&mut self, bit: u32) {
        let _ = write!(self.next(), "b{bit}");
    }
}
