//! From text to instruction: a mnemonic, operands, modifiers; the first way to write the mnemonic that takes them all.

use super::modifiers::{self, Seen};
use super::operand::{self, Written};
use super::scan::Scan;
use super::{Symbols, accept, mem, rules, special};
use crate::amdgcn::inst::{Half, Inst, Mods, OPERANDS, Operand};
use crate::amdgcn::model::{Class, Form, Mod, Name, Variant};
use crate::amdgcn::{Gpu, tables};

/// Why a line is no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// No instruction has this mnemonic.
    #[error("no instruction of this name")]
    Mnemonic,
    /// The GPU has no instruction of this mnemonic.
    #[error("not an instruction of this GPU")]
    NotInstruction,
    /// Something else than an operand.
    #[error("that operand is not valid here")]
    Operand,
    /// Fewer operands than the instruction has.
    #[error("too few operands")]
    TooFew,
    /// More operands than the instruction has.
    #[error("too many operands")]
    TooMany,
    /// No modifier that this instruction has.
    #[error("not a modifier of this instruction")]
    Modifier,
    /// A modifier said twice.
    #[error("this modifier has already been said")]
    Twice,
    /// The value of a modifier is none of its names.
    #[error("not a value of this modifier")]
    ModifierValue,
    /// A comma is missing.
    #[error("expected a comma")]
    Comma,
    /// Message, operation and stream do not go together.
    #[error("not a message of this GPU, or not an operation or stream of this message")]
    Message,
    /// A name that is none of those that may stand there.
    #[error("not one of the names that may stand here")]
    Counter,
    /// `attr0.x` to `attr32.w`.
    #[error("not an attribute: attr0.x to attr32.w")]
    Attribute,
    /// No such export target.
    #[error("not an export target of this GPU")]
    Target,
    /// More scalar registers and literals than one instruction may read.
    #[error("more scalar registers and literals than the constant bus carries")]
    ConstantBus,
    /// Two literals that differ.
    #[error("only one literal can be encoded")]
    Literals,
    /// `src_lds_direct` in another place than the first source, or of a reversed instruction.
    #[error(
        "src_lds_direct may only be the first source, and not of shifts and subtractions that are reversed"
    )]
    LdsDirect,
    /// Halves of a dual instruction write registers of the same parity.
    #[error("one destination must be an even register and the other an odd one")]
    DualParity,
    /// Halves of a dual instruction read the same bank.
    #[error("both halves of a dual instruction read the same bank of vector registers")]
    DualBank,
    /// A form is asked for by the suffix, but not by modifiers.
    #[error("DPP needs `quad_perm`, `row_…` or `dpp8`")]
    NoLanes,
    /// A number that cannot be read, or a kind of number that may not stand there.
    #[error("not a number that may stand here")]
    Number,
    /// Too large or small for its field.
    #[error("the value is out of range")]
    Range,
    /// A symbol nobody knows.
    #[error("unknown symbol")]
    Symbol,
    /// Nested too deeply.
    #[error("nested too deeply")]
    Nesting,
    /// Division by zero.
    #[error("division by zero")]
    Division,
    /// A parenthesis is missing.
    #[error("expected a closing parenthesis")]
    Parenthesis,
    /// A bracket is missing.
    #[error("expected a closing bracket")]
    Bracket,
    /// A bar is missing.
    #[error("expected a closing vertical bar")]
    Bar,
    /// No such register.
    #[error("register index is out of range")]
    RegisterIndex,
    /// A register the GPU does not have.
    #[error("the register is not available on this GPU")]
    NotHere,
    /// Too many or too few registers.
    #[error("the operand needs another number of registers")]
    RegisterWidth,
    /// Pairs of scalar registers begin at even numbers, larger groups at multiples of four.
    #[error("invalid register alignment")]
    RegisterAlignment,
    /// No literal may stand there.
    #[error("a literal may not stand here")]
    Literal,
    /// Registers of a list do not follow each other.
    #[error("registers of a list must follow each other")]
    RegisterList,
    /// A modifier that the GPU does not have, or has already been said, or comes too late.
    #[error("this modifier is not valid here: modifiers have an order, and each is said once")]
    ModifierOrder,
    /// The offset does not fit this instruction on this GPU.
    #[error("the offset is out of range on this GPU")]
    Offset,
    /// What an atomic returns is written to a register only if it says so.
    #[error(
        "an atomic that names a destination must say that it returns (`glc`, from gfx12 `th:TH_ATOMIC_RETURN`)"
    )]
    MustReturn,
    /// The other way round.
    #[error("an atomic without a destination must not say `glc`")]
    MustNotReturn,
    /// `dmask` of a gather or an atomic.
    #[error("this `dmask` is not valid for gathers (one bit) or atomics (0x1, 0x3, 0xf)")]
    Dmask,
    /// Registers of data do not fit `dmask`, `d16`, `tfe`.
    #[error("the number of data registers does not match dmask, d16 and tfe")]
    ImageData,
    /// Registers of an address do not fit `dim`, `a16`.
    #[error("the number of address registers does not match the instruction, dim and a16")]
    ImageAddress,
    /// A temporal hint of another kind of instruction, or not of this scope.
    #[error("this temporal hint is not valid for the instruction and scope")]
    TemporalHint,
    /// `dim` is missing.
    #[error("this instruction must say `dim`")]
    MustDim,
    /// `gds` is missing.
    #[error("this instruction must say `gds`")]
    MustGds,
    /// `lds` is missing.
    #[error("this instruction must say `lds`")]
    MustLds,
}

/// A line that is no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {rule}")]
pub struct ParseError {
    /// Where, in characters from 1.
    pub column: usize,
    /// Which operand, counted from 0.
    pub operand: Option<u8>,
    /// Which rule it breaks.
    pub rule: Rule,
}

/// Which forms a suffix of the mnemonic allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
    Any,
    E32,
    E64,
    Sdwa,
    Dpp,
    E64Dpp,
}

impl Suffix {
    fn allows(self, form: Form) -> bool {
        match self {
            Suffix::Any => true,
            Suffix::E32 => form == Form::E32,
            Suffix::E64 => matches!(form, Form::E64 | Form::Native),
            Suffix::Sdwa => form == Form::Sdwa,
            Suffix::Dpp => matches!(form, Form::Dpp | Form::Dpp8),
            Suffix::E64Dpp => matches!(form, Form::E64Dpp | Form::E64Dpp8),
        }
    }
}

fn suffix(mnemonic: &str) -> (&str, Suffix) {
    let (length, suffix) = match mnemonic.as_bytes() {
        [.., b'_', b'e', b'3', b'2'] => (4, Suffix::E32),
        [.., b'_', b'e', b'6', b'4'] => (4, Suffix::E64),
        [.., b'_', b'e', b'6', b'4', b'_', b'd', b'p', b'p'] => (8, Suffix::E64Dpp),
        [.., b'_', b'd', b'p', b'p'] => (4, Suffix::Dpp),
        [.., b'_', b's', b'd', b'w', b'a'] => (5, Suffix::Sdwa),
        _ => (0, Suffix::Any),
    };
    (mnemonic.get(..mnemonic.len() - length).unwrap_or_default(), suffix)
}

/// Operands and modifiers of a line.
struct Line {
    operands: [Written; OPERANDS],
    count: usize,
    list: [u8; 13],
    seen: Seen,
    end: usize,
}

/// The instruction a line says. Nothing may follow it.
pub fn parse_line(text: &str, gpu: &Gpu, symbols: &dyn Symbols) -> Result<Inst, ParseError> {
    let mut scan = Scan::new(text);
    scan.space();
    let start = scan.at();
    let mnemonic = scan.name();
    scan.space();
    // No name of the table ends like a suffix.
    let (stem, suffix) = suffix(mnemonic);
    let known = match mnemonic.starts_with("v_dual_") {
        true => dual(mnemonic, text).map(|name| (name, Suffix::Any)),
        false => None,
    };
    let known = known.or_else(|| tables::name(stem.as_bytes()).map(|name| (name, suffix)));
    let (name, suffix) = known.ok_or_else(|| scan.error(start, Rule::Mnemonic))?;
    let candidates = || {
        name.variants
            .iter()
            .filter(|(_, columns)| columns & gpu.columns() != 0)
            .filter_map(|(at, _)| tables::variants().get(usize::from(*at)).map(|variant| (*at, variant)))
            .filter(move |(_, variant)| suffix.allows(variant.form) && gpu.meets(variant.need))
    };
    let Some((number, guide)) = candidates().next() else {
        return Err(scan.error(start, Rule::NotInstruction));
    };
    if tables::rows().get(usize::from(guide.row)).is_some_and(|row| row.format.is_memory()) {
        return mem::parse(&mut scan, number, gpu, symbols);
    }
    let line = operands(&mut scan, guide, gpu, symbols)?;
    let mut best: Option<ParseError> = None;
    for (number, variant) in candidates() {
        match assemble(number, variant, &line, gpu, &scan) {
            Ok(inst) => return Ok(inst),
            Err(error) => {
                if best.is_none_or(|best| error.operand > best.operand) {
                    best = Some(error);
                }
            }
        }
    }
    Err(best.unwrap_or_else(|| scan.error(start, Rule::NotInstruction)))
}

/// The mnemonic of a dual instruction: of both halves of a line.
fn dual(first: &str, text: &str) -> Option<&'static Name> {
    let (_, rest) = text.split_once("::")?;
    let second = rest.trim_start();
    let second = second.split([' ', '\t']).next()?;
    let mut both = [0u8; 64];
    let mut at = 0;
    for part in [first, "::", second] {
        both.get_mut(at..at + part.len())?.copy_from_slice(part.as_bytes());
        at += part.len();
    }
    tables::name(both.get(..at)?)
}

/// Reads operands and modifiers; `guide` says which operands have a syntax of their own.
fn operands(
    scan: &mut Scan<'_>,
    guide: &Variant,
    gpu: &Gpu,
    symbols: &dyn Symbols,
) -> Result<Line, ParseError> {
    let mut line = Line {
        operands: [Written::NONE; OPERANDS],
        count: 0,
        list: [0; 13],
        seen: Seen { mods: Mods::default(), set: 0 },
        end: 0,
    };
    let mut modifiers = false;
    while !scan.end() {
        let start = scan.at();
        let slot = guide.slots.get(line.count).filter(|_| line.count < usize::from(guide.written));
        let special = slot.filter(|slot| special::is_special(slot.class));
        let plain = if modifiers || special.is_some() { None } else { operand::plain(scan) };
        // A name before a colon is a modifier's.
        let plain = plain.filter(|_| scan.peek() != b':' || scan.peek_second() == b':');
        if plain.is_none() {
            scan.back_to(start);
            if (modifiers || line.count > 0 || guide.written == 0)
                && scan.peek().is_ascii_lowercase()
                && modifiers::parse(scan, gpu, symbols, guide, &mut line.seen)?
            {
                modifiers = true;
                scan.eat(b',');
                continue;
            }
            if modifiers {
                return Err(scan.here(Rule::Modifier));
            }
        }
        let Some(place) = line.operands.get_mut(line.count) else {
            return Err(scan.error(start, Rule::TooMany));
        };
        let written = match (plain, special) {
            (Some((reg, dwords)), _) => Ok(Written::register(reg, dwords, start)),
            (None, Some(slot)) => special::parse(scan, slot, gpu, symbols),
            (None, None) => operand::parse(scan, gpu, symbols, &mut line.list),
        };
        let operand = Some(line.count as u8);
        *place = written.map_err(|error| ParseError { operand, ..error })?;
        line.count += 1;
        if guide.second.is_some() && scan.peek() == b':' {
            scan.eat(b':');
            scan.eat(b':');
            scan.name();
            scan.space();
        } else if !scan.eat(b',') && slot.is_none_or(|slot| slot.class != Class::ExpTarget) {
            modifiers = true;
        }
    }
    line.end = scan.at();
    Ok(line)
}

/// The instruction of a variant with these operands and modifiers, or what it does not take.
fn assemble(
    number: u16,
    variant: &Variant,
    line: &Line,
    gpu: &Gpu,
    scan: &Scan<'_>,
) -> Result<Inst, ParseError> {
    let mut inst = Inst::new(number).ok_or_else(|| scan.error(0, Rule::NotInstruction))?;
    let written = usize::from(variant.written);
    let wrong = |operand: usize, rule: Rule| {
        let at = line.operands.get(operand).filter(|_| operand < line.count).map_or(line.end, |o| o.at);
        ParseError { operand: Some(operand as u8), ..scan.error(at, rule) }
    };
    if line.seen.set & !variant.mod_set != 0 {
        return Err(ParseError { operand: Some(0), ..scan.error(line.end, Rule::Modifier) });
    }
    if modifiers::needed(variant.form).is_some_and(|id| line.seen.set >> id as u8 & 1 == 0) {
        return Err(scan.error(line.end, Rule::NoLanes));
    }
    for slot in variant.mods {
        let given = line.seen.set >> slot.id as u8 & 1 != 0;
        let value = if given {
            let all: u32 =
                variant.mods.iter().filter(|m| m.id == slot.id).map(|m| m.mask).fold(0, |a, b| a | b);
            let value = line.seen.mods.get(slot.id);
            if value as u32 & !all & u32::MAX.unbounded_shr(32 - u32::from(slot.id.width().unsigned_abs()))
                != 0
            {
                return Err(scan.error(line.end, Rule::ModifierValue));
            }
            value
        } else {
            modifiers::default_of(slot.id, slot.mask, modifiers::is_mixed(variant))
        };
        if value & slot.mask as i32 != 0 {
            inst.mods.set(slot.id, inst.mods.get(slot.id) | value & slot.mask as i32);
        }
    }
    for (at, slot) in variant.slots.iter().take(written).enumerate() {
        let (Some(place), Some(operand)) = (inst.operands.get_mut(at), line.operands.get(at)) else { break };
        if at >= line.count {
            if slot.class == Class::Imm16Optional {
                *place = Operand::Imm(0);
                continue;
            }
            return Err(wrong(at, Rule::TooFew));
        }
        *place = accept::accept(slot, operand, gpu).map_err(|rule| wrong(at, rule))?;
        let signs = [(operand.neg, Mod::Neg), (operand.abs, Mod::Abs), (operand.sext, Mod::Sext)];
        for (_, id) in signs.iter().filter(|(given, _)| *given) {
            let bit = 1u32.unbounded_shl(slot.source.into());
            if slot.source > 2 || !variant.mods.iter().any(|m| m.id == *id && m.mask & bit != 0) {
                return Err(wrong(at, Rule::Modifier));
            }
            inst.mods.set(*id, inst.mods.get(*id) | bit as i32);
        }
        if let Operand::Reg { half: half @ Half::High, .. } = place
            && accept::half_is_selected(slot.class)
        {
            let bit = if slot.source < 3 { slot.source } else { 3 };
            inst.mods.set(Mod::OpSel, inst.mods.get(Mod::OpSel) | 1 << bit);
            *half = Half::Low;
        }
    }
    if line.count > written {
        return Err(wrong(written, Rule::TooMany));
    }
    inst.list = line.list;
    rules::check(&inst, gpu).map_err(|(operand, rule)| wrong(operand.into(), rule))?;
    Ok(inst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_in_a_suffix() {
        for name in tables::names() {
            assert_eq!(suffix(name.name), (name.name, Suffix::Any));
        }
    }
}
