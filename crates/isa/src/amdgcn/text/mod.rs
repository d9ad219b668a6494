//! Instructions as text in LLVM's syntax, both ways.
//!
//! One line is one instruction: no labels, no directives, no comments. What names a symbol is asked of the caller
//! ([`Symbols`]). Where generations differ, the spelling is that of LLVM 19 for that GPU.

mod accept;
mod hints;
mod line;
mod mem;
mod mem_write;
mod modifiers;
mod named;
mod operand;
mod parse;
mod rules;
mod scan;
mod special;
mod swizzle;
mod write;

pub(super) use accept::is_literal;
pub(super) use line::{LOWER, LineBuf, UPPER, hexadecimal};
pub(super) use modifiers::{at_rest, tail};
pub use parse::{ParseError, ParseRule, parse_line};
pub(super) use rules::limit as scalar_limit;
pub use special::export_target;
pub(super) use special::write as special;
pub use write::write;
pub(super) use write::{inline, register, signed_dot, suffix_of, write_line};

use super::Gpu;
use super::inst::{Inst, Operand};
use super::model::{Mod, OperandSlot, Type};

/// What a symbol is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolValue {
    /// A number, as one written out.
    Absolute(i64),
    /// An address: always encoded as a literal, never as an inline constant.
    Address(i64),
}

/// What the text around a line knows.
pub trait Symbols {
    /// What a name stands for.
    fn symbol(&self, name: &str) -> Option<SymbolValue>;

    /// The address of the instruction itself: that of its first byte, to which branches are relative.
    fn here(&self) -> i64;
}

/// No symbols, at address 0.
impl Symbols for () {
    fn symbol(&self, _: &str) -> Option<SymbolValue> {
        None
    }

    fn here(&self) -> i64 {
        0
    }
}

/// Whether text can say an instruction: every value has a name, and no rule is broken.
pub(crate) fn can_say(inst: &Inst, gpu: &Gpu) -> bool {
    let kinds = rules::kinds(inst);
    let signs = inst.mods.get(Mod::Neg) | inst.mods.get(Mod::Abs);
    let named = |(slot, operand): (&OperandSlot, Operand)| match operand {
        Operand::Imm(value) => special::has_name(slot, value, gpu),
        // Written as an integer it has no sign.
        Operand::Literal(_) if slot.ty == Type::F64 => signs.unbounded_shr(slot.source.into()) & 1 == 0,
        _ => true,
    };
    modifiers::all_have_names(inst, gpu)
        && (!kinds.values && kinds.literals == 0 || inst.written().all(named))
        && rules::check_kinds(inst, &kinds, gpu).is_ok()
}

/// Bit `n`: modifier number `n` is among them.
const fn set_of(mods: &[Mod]) -> u64 {
    let (mut set, mut at) = (0, 0);
    while at < mods.len() {
        set |= 1 << mods[at] as u8;
        at += 1;
    }
    set
}

/// What an expression at the start of a text is worth, whether it is an address, and how many bytes it and the spaces after
/// it take.
///
/// # Errors
///
/// [`ParseError`] with the column, if the text does not start with an expression, a symbol is not defined, or
/// the value is a floating-point number.
pub fn expression(text: &str, symbols: &dyn Symbols) -> Result<(i64, bool, usize), ParseError> {
    let mut scan = scan::LineScan::new(text);
    scan.space();
    let at = scan.at();
    let value = scan.expression(symbols)?;
    if value.float {
        return Err(scan.error(at, ParseRule::Number));
    }
    Ok((value.value, value.address, scan.at()))
}
