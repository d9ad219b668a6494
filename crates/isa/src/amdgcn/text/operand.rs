//! Operands as they are written: registers, numbers, and the signs around them. What a slot makes of them is
//! [`super::accept`]'s.

use super::Symbols;
use super::parse::{ParseError, ParseRule};
use super::scan::{ExprValue, LineScan};
use crate::amdgcn::inst::RegHalf;
use crate::amdgcn::{Gpu, Reg, regs};

/// What an operand is, before a slot makes something of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OperandSyntax {
    Reg {
        reg: Reg,
        dwords: u8,
        half: RegHalf,
    },
    /// Vector registers that need not follow each other, in [`SignedOperand::list`].
    List(u8),
    Value(ExprValue),
    Off,
    /// The value of a field, read by [`super::special`].
    Special(i32),
}

/// An operand and the signs around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SignedOperand {
    pub(super) kind: OperandSyntax,
    pub(super) neg: bool,
    pub(super) abs: bool,
    pub(super) sext: bool,
    /// Where it begins.
    pub(super) at: usize,
}

impl SignedOperand {
    /// Whether it is vector registers.
    pub(super) fn is_vector(&self) -> bool {
        matches!(self.kind, OperandSyntax::Reg { reg, .. } if reg.is_vgpr())
    }

    pub(super) const NONE: SignedOperand =
        SignedOperand { kind: OperandSyntax::Off, neg: false, abs: false, sext: false, at: 0 };

    /// Registers without signs.
    pub(super) fn register(reg: Reg, dwords: u8, at: usize) -> SignedOperand {
        SignedOperand {
            kind: OperandSyntax::Reg { reg, dwords, half: RegHalf::Whole },
            at,
            ..SignedOperand::NONE
        }
    }
}

/// The number after a register's letter; `None`: that is no register.
fn index(name: &[u8]) -> Option<u16> {
    if name.is_empty() || name.len() > 3 {
        return None;
    }
    name.iter().try_fold(0u16, |n, byte| byte.is_ascii_digit().then(|| n * 10 + u16::from(byte - b'0')))
}

/// A register of a file: its first number, and how many may be named.
fn file(name: &[u8]) -> Option<(&[u8], u16, u16)> {
    match name {
        [b't', b't', b'm', b'p', rest @ ..] => Some((rest, Reg::TTMP0.0, 16)),
        [b'a', b'c', b'c', rest @ ..] => Some((rest, Reg::AGPR0.0, 256)),
        [b'a', rest @ ..] => Some((rest, Reg::AGPR0.0, 256)),
        [b'v', rest @ ..] => Some((rest, Reg::VGPR0.0, 256)),
        [b's', rest @ ..] => Some((rest, 0, 106)),
        _ => None,
    }
}

/// A numbered register in its plainest form, if that is next and there is one. Nothing is taken otherwise.
pub(super) fn plain(scan: &mut LineScan<'_>) -> Option<(Reg, u8)> {
    let start = scan.at();
    let (letter, first, last) = scan.plain_register()?;
    let (file, count) = if letter == b'v' { (Reg::VGPR0.0, 256) } else { (0, 106) };
    if last < first || last >= count || last - first >= 64 {
        scan.back_to(start);
        return None;
    }
    Some((Reg(file + first), (last - first + 1) as u8))
}

/// A register whose name is next, if it is one. Nothing is taken otherwise.
pub(super) fn register(
    scan: &mut LineScan<'_>,
    symbols: &dyn Symbols,
) -> Result<Option<(Reg, u8, RegHalf)>, ParseError> {
    let start = scan.at();
    let name = scan.name();
    let (stem, half) = match name.as_bytes() {
        [stem @ .., b'.', b'l'] => (stem, RegHalf::Low),
        [stem @ .., b'.', b'h'] => (stem, RegHalf::High),
        stem => (stem, RegHalf::Whole),
    };
    if let Some((rest, first, count)) = file(stem) {
        if let Some(number) = index(rest) {
            scan.space();
            if number >= count {
                return Err(scan.error(start, ParseRule::RegisterIndex));
            }
            return Ok(Some((Reg(first + number), 1, half)));
        }
        if rest.is_empty() && scan.peek() == b'[' {
            scan.eat(b'[');
            let from = scan.expression(symbols)?.value;
            let to = if scan.eat(b':') { scan.expression(symbols)?.value } else { from };
            scan.expect(b']', ParseRule::Bracket)?;
            if from < 0 || to < from || to >= i64::from(count) || to - from >= 64 {
                return Err(scan.error(start, ParseRule::RegisterIndex));
            }
            return Ok(Some((Reg(first + from as u16), (to - from + 1) as u8, half)));
        }
    }
    if let Some(reg) = regs::special(name) {
        scan.space();
        let pair = matches!(name, "vcc" | "exec" | "tba" | "tma" | "flat_scratch" | "xnack_mask");
        return Ok(Some((reg, 1 + u8::from(pair), RegHalf::Whole)));
    }
    scan.back_to(start);
    Ok(None)
}

/// `[s0,s1]`: registers that follow each other, or vector registers that need not.
fn list(
    scan: &mut LineScan<'_>,
    gpu: &Gpu,
    symbols: &dyn Symbols,
    out: &mut [u8; 13],
) -> Result<OperandSyntax, ParseError> {
    let start = scan.at();
    scan.eat(b'[');
    let mut first = None;
    let mut count = 0u8;
    let mut follow = true;
    loop {
        let at = scan.at();
        let Some((reg, dwords, half)) = register(scan, symbols)? else {
            return Err(scan.error(at, ParseRule::Operand));
        };
        let first = *first.get_or_insert(reg);
        follow &= reg.0 == first.0.saturating_add(count.into()) && dwords == 1;
        if half != RegHalf::Whole {
            return Err(scan.error(at, ParseRule::Operand));
        }
        if let Some(place) = out.get_mut(usize::from(count)).filter(|_| reg.is_vgpr()) {
            *place = reg.index() as u8;
        }
        count = count.saturating_add(1);
        if !scan.eat(b',') {
            break;
        }
    }
    scan.expect(b']', ParseRule::Bracket)?;
    let _ = gpu;
    let Some(reg) = first else { return Err(scan.error(start, ParseRule::Operand)) };
    if follow {
        let (reg, dwords) = match (reg, count) {
            (Reg::VCC | Reg::EXEC, 2) => (reg, 2),
            _ => (reg, count),
        };
        return Ok(OperandSyntax::Reg { reg, dwords, half: RegHalf::Whole });
    }
    if !reg.is_vgpr() || usize::from(count) > out.len() {
        return Err(scan.error(start, ParseRule::RegisterList));
    }
    Ok(OperandSyntax::List(count))
}

/// An operand that is no special one.
pub(super) fn parse(
    scan: &mut LineScan<'_>,
    gpu: &Gpu,
    symbols: &dyn Symbols,
    out: &mut [u8; 13],
) -> Result<SignedOperand, ParseError> {
    let mut written = SignedOperand { at: scan.at(), ..SignedOperand::NONE };
    if let Some((reg, dwords)) = plain(scan) {
        return Ok(SignedOperand::register(reg, dwords, written.at));
    }
    // A minus before something that is no number is a sign of its own.
    if scan.peek() == b'-' {
        let second = scan.peek_second();
        if second == b'|' || second.is_ascii_alphabetic() {
            let start = scan.at();
            scan.eat(b'-');
            written.neg = true;
            let at = scan.at();
            // What looks like a register is one, whatever symbols there may be.
            let symbol = plain(scan).is_none() && !matches!(register(scan, symbols), Ok(Some(_))) && {
                let name = scan.name();
                !name.is_empty() && symbols.symbol(name).is_some()
            };
            scan.back_to(at);
            if symbol {
                scan.back_to(start);
                written.neg = false;
            }
        }
    }
    let mut closing = 0u32;
    let (mut bar, mut literal) = (false, false);
    let start = scan.at();
    loop {
        let at = scan.at();
        if scan.peek() == b'|' && !bar && !written.abs {
            scan.eat(b'|');
            written.abs = true;
            bar = true;
            continue;
        }
        let name = scan.name();
        let open = scan.peek() == b'(' && !bar;
        match name {
            "neg" if open && !written.neg => written.neg = true,
            "abs" if open && !written.abs => written.abs = true,
            "sext" if open && !written.sext => written.sext = true,
            // LLVM 19 ignores it; later versions never make an inline constant of what is in it.
            "lit" if open && !literal => literal = true,
            _ => {
                scan.back_to(at);
                break;
            }
        }
        scan.eat(b'(');
        closing += 1;
        if closing > 4 {
            return Err(scan.here(ParseRule::Nesting));
        }
    }
    written.kind = if scan.peek() == b'[' {
        list(scan, gpu, symbols, out)?
    } else if let Some((reg, dwords, half)) = register(scan, symbols)? {
        OperandSyntax::Reg { reg, dwords, half }
    } else if bar || closing > 0 {
        let mut value = if bar { scan.primary(symbols, 8)? } else { scan.expression(symbols)? };
        value.literal |= literal;
        OperandSyntax::Value(value)
    } else {
        let at = scan.at();
        if scan.name() == "off" {
            scan.space();
            OperandSyntax::Off
        } else {
            scan.back_to(at);
            OperandSyntax::Value(scan.expression(symbols)?)
        }
    };
    if literal && !matches!(written.kind, OperandSyntax::Value(_)) {
        return Err(scan.error(start, ParseRule::Operand));
    }
    if bar {
        scan.expect(b'|', ParseRule::Bar)?;
    }
    for _ in 0..closing {
        scan.expect(b')', ParseRule::Parenthesis)?;
    }
    Ok(written)
}
