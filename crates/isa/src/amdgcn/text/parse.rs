//! From text to instruction: a mnemonic, operands, modifiers; the first way to write the mnemonic that takes them all.

use super::modifiers::{self, ReadModifiers};
use super::operand::{self, OperandSyntax, SignedOperand};
use super::scan::LineScan;
use super::{Symbols, accept, mem, rules, special, write};
use crate::amdgcn::codec::name_halves;
use crate::amdgcn::inst::{Inst, OPERANDS, Operand, RegHalf, UnusedBits, dwords};
use crate::amdgcn::model::{Class, Columns, Encoding, Form, Format, Gfx, Mod, OperandSlot, Trait, Type};
use crate::amdgcn::tables::{Mnemonic, Variant};
use crate::amdgcn::{Gpu, Reg, codec, tables};

/// Why a line is no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseRule {
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
    #[error("this modifier is given twice")]
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
    #[error("not one of the names that are allowed here")]
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
    #[error("not a number that is allowed here")]
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
    /// Vector and accumulation registers where one flag is for all of them.
    #[error("these operands must all be vector registers or all be accumulation registers")]
    RegisterFile,
    /// No literal may stand there.
    #[error("a literal is not allowed here")]
    Literal,
    /// Registers of a list do not follow each other.
    #[error("registers of a list must follow each other")]
    RegisterList,
    /// A modifier that the GPU does not have, or has already been said, or comes too late.
    #[error("this modifier is not valid here: modifiers have an order, and each is given once")]
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
    /// `dim` of an instruction that loads samples.
    #[error("this instruction needs `dim:SQ_RSRC_IMG_2D_MSAA` or `dim:SQ_RSRC_IMG_2D_MSAA_ARRAY`")]
    Samples,
    /// `gds` is missing.
    #[error("this instruction must say `gds`")]
    MustGds,
    /// `lds` is missing.
    #[error("this instruction must say `lds`")]
    MustLds,
}

/// A line that is no instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {}", self.what())]
pub struct ParseError {
    /// Where, in characters from 1.
    pub column: usize,
    /// Which operand, counted from 0.
    pub operand: Option<u8>,
    /// Which rule it breaks.
    pub rule: ParseRule,
}

/// An operand and the rule it breaks, as text.
struct OperandError(Option<u8>, ParseRule);

impl std::fmt::Display for OperandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(operand) => write!(f, "operand {}: {}", operand + 1, self.1),
            None => self.1.fmt(f),
        }
    }
}

impl ParseError {
    /// The operand, counted from 1, and the rule: the message without its place.
    pub fn what(&self) -> impl std::fmt::Display {
        OperandError(self.operand, self.rule)
    }

    /// How far a line got before it was wrong: of several ways to read it the one that got furthest is told.
    fn rank(&self) -> u8 {
        match (self.operand, self.rule) {
            (Some(operand), _) => 2 + operand,
            (None, ParseRule::Modifier | ParseRule::ModifierOrder | ParseRule::ModifierValue) => 1,
            (None, _) => 0,
        }
    }
}

/// Which forms a suffix of the mnemonic allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MnemonicSuffix {
    Any,
    E32,
    E64,
    Sdwa,
    Dpp,
    E64Dpp,
}

impl MnemonicSuffix {
    fn allows(self, variant: &Variant) -> bool {
        let form = variant.form;
        let long = matches!(variant.encoding, Encoding::Vop3 | Encoding::Vop3p | Encoding::Vinterp);
        match self {
            MnemonicSuffix::Any => true,
            MnemonicSuffix::E32 => form == Form::E32 || form == Form::Native && !long,
            MnemonicSuffix::E64 => form == Form::E64 || form == Form::Native && long,
            MnemonicSuffix::Sdwa => form == Form::Sdwa,
            MnemonicSuffix::Dpp => matches!(form, Form::Dpp | Form::Dpp8),
            MnemonicSuffix::E64Dpp => matches!(form, Form::E64Dpp | Form::E64Dpp8),
        }
    }
}

fn suffix(mnemonic: &str) -> (&str, MnemonicSuffix) {
    let (length, suffix) = match mnemonic.as_bytes() {
        [.., b'_', b'e', b'3', b'2'] => (4, MnemonicSuffix::E32),
        [.., b'_', b'e', b'6', b'4'] => (4, MnemonicSuffix::E64),
        [.., b'_', b'e', b'6', b'4', b'_', b'd', b'p', b'p'] => (8, MnemonicSuffix::E64Dpp),
        [.., b'_', b'd', b'p', b'p'] => (4, MnemonicSuffix::Dpp),
        [.., b'_', b's', b'd', b'w', b'a'] => (5, MnemonicSuffix::Sdwa),
        _ => (0, MnemonicSuffix::Any),
    };
    (mnemonic.get(..mnemonic.len() - length).unwrap_or_default(), suffix)
}

/// Operands and modifiers of a line.
struct OperandLine {
    operands: [SignedOperand; OPERANDS],
    count: usize,
    list: [u8; 13],
    seen: ReadModifiers,
    end: usize,
}

/// The instruction of a line. Nothing may follow it but bits that mean nothing, `unused:[0x0,0x2000000]`.
///
/// # Errors
///
/// [`ParseError`] with the [`ParseRule`] that the line breaks and the column: an unknown mnemonic, operands or
/// modifiers that the instruction does not have on this GPU, values that do not fit, or text after the
/// instruction.
pub fn parse_line(text: &str, gpu: &Gpu, symbols: &dyn Symbols) -> Result<Inst, ParseError> {
    let Some(at) = text.find(UNUSED) else { return parse_used(text, gpu, symbols) };
    let (used, list) = text.split_at(at);
    let mut scan = LineScan::new(text);
    scan.back_to(at + UNUSED.len());
    let unused = unused_bits(&mut scan, list, symbols)?;
    Ok(Inst { unused, ..parse_used(used, gpu, symbols)? })
}

/// The text before the dwords of bits that mean nothing.
pub(super) const UNUSED: &str = " unused:[";

/// The dwords after [`UNUSED`], up to the end of the line.
fn unused_bits(scan: &mut LineScan<'_>, list: &str, symbols: &dyn Symbols) -> Result<UnusedBits, ParseError> {
    let mut bits = [0; 4];
    let count = list.split(',').count();
    for (at, place) in bits.iter_mut().take(count).enumerate() {
        let start = scan.at();
        let value = scan.expression(symbols)?;
        let dword = u32::try_from(value.value).ok().filter(|_| !value.float);
        *place = dword.ok_or_else(|| scan.error(start, ParseRule::Range))?;
        if at + 1 < count {
            scan.expect(b',', ParseRule::Comma)?;
        }
    }
    scan.expect(b']', ParseRule::Bracket)?;
    if scan.end() { Ok(bits) } else { Err(scan.here(ParseRule::Modifier)) }
}

/// The instruction of a line without bits that mean nothing.
fn parse_used(text: &str, gpu: &Gpu, symbols: &dyn Symbols) -> Result<Inst, ParseError> {
    let mut scan = LineScan::new(text);
    scan.space();
    let start = scan.at();
    let mnemonic = scan.name();
    scan.space();
    // No name of the table ends like a suffix.
    let (stem, suffix) = suffix(mnemonic);
    let known = match mnemonic.starts_with("v_dual_") {
        true => dual(mnemonic, text).map(|name| (name, MnemonicSuffix::Any)),
        false => None,
    };
    let known = known.or_else(|| tables::name(stem.as_bytes()).map(|name| (name, suffix)));
    let (name, suffix) = known.ok_or_else(|| scan.error(start, ParseRule::Mnemonic))?;
    let candidates_in = |of: Columns| {
        name.variants
            .iter()
            .filter(move |(_, columns)| columns & of != 0)
            .filter_map(|(at, _)| tables::variants().get(usize::from(*at)).map(|variant| (*at, variant)))
            .filter(move |(_, variant)| suffix.allows(variant) && gpu.meets(variant.need))
    };
    // Variants that name half registers are tried last.
    let others = gpu.all_columns() & !gpu.columns();
    let candidates = || candidates_in(gpu.columns()).chain(candidates_in(others));
    let Some((number, guide)) = candidates().next() else {
        return Err(scan.error(start, ParseRule::NotInstruction));
    };
    if tables::rows().get(usize::from(guide.row)).is_some_and(|row| row.format.is_memory()) {
        return mem::parse(&mut scan, number, gpu, symbols);
    }
    let line = operands(&mut scan, guide, gpu, symbols)?;
    let mut best: Option<ParseError> = None;
    for (number, variant) in candidates() {
        match assemble(number, variant, name, &line, gpu, &scan) {
            Ok(inst) => return Ok(inst),
            Err(error) => {
                if best.is_none_or(|best| error.rank() > best.rank()) {
                    best = Some(error);
                }
            }
        }
    }
    Err(best.unwrap_or_else(|| scan.error(start, ParseRule::NotInstruction)))
}

/// The mnemonic of a dual instruction: of both halves of a line.
fn dual(first: &str, text: &str) -> Option<&'static Mnemonic> {
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
    scan: &mut LineScan<'_>,
    guide: &Variant,
    gpu: &Gpu,
    symbols: &dyn Symbols,
) -> Result<OperandLine, ParseError> {
    let mut line = OperandLine {
        operands: [SignedOperand::NONE; OPERANDS],
        count: 0,
        list: [0; 13],
        seen: ReadModifiers::default(),
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
                return Err(scan.here(ParseRule::Modifier));
            }
        }
        let Some(place) = line.operands.get_mut(line.count) else {
            return Err(scan.error(start, ParseRule::TooMany));
        };
        let written = match (plain, special) {
            (Some((reg, dwords)), _) => Ok(SignedOperand::register(reg, dwords, start)),
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

/// Whether an instruction of this name has a form that takes a sign at a source.
fn takes_sign(name: &Mnemonic, gpu: &Gpu, id: Mod, source: u8) -> bool {
    name.variants.iter().filter_map(|(at, _)| tables::variants().get(usize::from(*at))).any(|variant| {
        tables::has(variant, gpu) && variant.mods.iter().any(|m| m.id == id && m.mask >> source & 1 != 0)
    })
}

/// gfx6 and gfx7: whether an addition with carry out is written by its later name. The short form then has vcc at the end as
/// well, the long one a vector register as the second source.
fn carry_by_later_name(variant: &Variant, name: &Mnemonic, gpu: &Gpu) -> bool {
    gpu.generation() <= Gfx::Gfx7
        && name.name != variant.name
        && variant.slots.get(1).is_some_and(|slot| slot.access.writes() && slot.ty == Type::Mask)
}

/// The instruction of a variant with these operands and modifiers, or what it does not take.
fn assemble(
    number: u16,
    variant: &Variant,
    name: &Mnemonic,
    line: &OperandLine,
    gpu: &Gpu,
    scan: &LineScan<'_>,
) -> Result<Inst, ParseError> {
    let mut inst = Inst::new(number).ok_or_else(|| scan.error(0, ParseRule::NotInstruction))?;
    let written = usize::from(variant.written);
    let wrong = |operand: usize, rule: ParseRule| {
        let at = line.operands.get(operand).filter(|_| operand < line.count).map_or(line.end, |o| o.at);
        ParseError { operand: Some(operand as u8), ..scan.error(at, rule) }
    };
    if line.seen.set & !variant.mod_set != 0 {
        return Err(scan.error(line.end, ParseRule::Modifier));
    }
    if modifiers::needed(variant.form).is_some_and(|id| line.seen.set >> id as u8 & 1 == 0) {
        return Err(scan.error(line.end, ParseRule::NoLanes));
    }
    if !line.seen.in_order_of(variant) {
        return Err(scan.error(line.end, ParseRule::ModifierOrder));
    }
    set_modifiers(&mut inst, variant, line).map_err(|rule| scan.error(line.end, rule))?;
    if write::signed_dot(inst.opcode()) == Some(name.name) {
        inst.mods.set(Mod::NegLo, inst.mods.get(Mod::NegLo) | write::BOTH_SIGNED);
    }
    let carry = carry_by_later_name(variant, name, gpu);
    let twice = carry && variant.form == Form::E32;
    if carry && !twice && !line.operands.get(3).is_some_and(SignedOperand::is_vector) {
        return Err(wrong(3, ParseRule::Operand));
    }
    if twice && line.count == written + 1 {
        let vcc = OperandSlot { class: Class::Fixed, ty: Type::Mask, reg: Reg::VCC.0, ..variant.slots[0] };
        accept::accept(&vcc, &line.operands[written], gpu).map_err(|rule| wrong(written, rule))?;
    } else if twice {
        return Err(wrong(line.count, ParseRule::TooFew));
    }
    let left_out = if line.count + 1 == written {
        variant.slots.iter().position(|slot| slot.class == Class::FixedOptional)
    } else {
        None
    };
    for (at, slot) in variant.slots.iter().take(written).enumerate() {
        if left_out == Some(at) {
            inst.operands[at] = Operand::reg(Reg(slot.reg), dwords(slot.ty, gpu));
            continue;
        }
        let from = at - usize::from(left_out.is_some_and(|out| out < at));
        let Some(operand) = line.operands.get(from).filter(|_| at < inst.operands.len()) else {
            break;
        };
        if from >= line.count {
            if slot.class == Class::Imm16Optional {
                inst.operands[at] = Operand::Imm(0);
                continue;
            }
            return Err(wrong(at, ParseRule::TooFew));
        }
        set_operand(&mut inst, at, operand, variant, name, gpu).map_err(|rule| wrong(at, rule))?;
    }
    if line.count > written + usize::from(twice) {
        return Err(wrong(written, ParseRule::TooMany));
    }
    inst.list = line.list;
    name_halves(&mut inst);
    rules::check(&inst, gpu).map_err(|(operand, rule)| wrong(operand.into(), rule))?;
    Ok(inst)
}

/// The modifiers of a line, and the defaults of those that it does not give.
fn set_modifiers(inst: &mut Inst, variant: &Variant, line: &OperandLine) -> Result<(), ParseRule> {
    // What lists of packed instructions say of sources that are not there is nothing.
    let sources = variant.slots.iter().filter(|slot| slot.source < 3).count() as u32;
    let packed = tables::rows().get(usize::from(variant.row)).is_some_and(|row| row.format == Format::Vop3p);
    for slot in variant.mods.iter() {
        let given = line.seen.set >> slot.id as u8 & 1 != 0;
        let value = if given {
            let all: u32 =
                variant.mods.iter().filter(|m| m.id == slot.id).map(|m| m.mask).fold(0, |a, b| a | b);
            let mut value = line.seen.mods.get(slot.id);
            if packed && matches!(slot.id, Mod::OpSel | Mod::OpSelHi | Mod::NegLo | Mod::NegHi) {
                value &= (1 << sources) - 1;
            }
            if value as u32 & !all & u32::MAX.unbounded_shr(32 - u32::from(slot.id.width().unsigned_abs()))
                != 0
            {
                return Err(ParseRule::ModifierValue);
            }
            value
        } else {
            modifiers::default_of(slot.id, slot.mask, modifiers::is_mixed(variant))
        };
        if value & slot.mask as i32 != 0 {
            inst.mods.set(slot.id, inst.mods.get(slot.id) | value & slot.mask as i32);
        }
    }
    Ok(())
}

/// The type of a matrix whose values have the size that a modifier selects.
fn small(size: i32) -> Type {
    match codec::small_dwords(size as u32) {
        4 => Type::B128,
        6 => Type::B192,
        _ => Type::B256,
    }
}

/// One operand, with its signs and its half.
fn set_operand(
    inst: &mut Inst,
    at: usize,
    operand: &SignedOperand,
    variant: &Variant,
    name: &Mnemonic,
    gpu: &Gpu,
) -> Result<(), ParseRule> {
    let slot = &variant.slots[at];
    let opcode = inst.opcode();
    let place = &mut inst.operands[at];
    let signs = [(operand.neg, Mod::Neg), (operand.abs, Mod::Abs), (operand.sext, Mod::Sext)];
    if let OperandSyntax::Value(value) = operand.kind
        && variant.form == Form::E32
        && slot.source <= 2
        && signs.iter().any(|(given, _)| *given)
    {
        // The short form has no signs: they are the constant's, if another form could have had them. Of a double
        // written as an integer they could be those of either.
        if slot.ty == Type::F64 && !value.float {
            return Err(ParseRule::Number);
        }
        let could = |id: Mod| takes_sign(name, gpu, id, slot.source);
        if signs.iter().any(|(given, id)| *given && !could(*id)) {
            return Err(ParseRule::Modifier);
        }
        let value = accept::with_signs(value, slot.ty, operand.neg, operand.abs);
        let plain = SignedOperand {
            kind: OperandSyntax::Value(value),
            neg: false,
            abs: false,
            sext: false,
            ..*operand
        };
        *place = accept::accept(slot, &plain, gpu)?;
        return Ok(());
    }
    if slot.class == Class::AccSmall {
        let size = inst.mods.get(if slot.source == 0 { Mod::Cbsz } else { Mod::Blgp });
        let slot = OperandSlot { ty: small(size), ..*slot };
        *place = accept::accept(&slot, operand, gpu)?;
        return Ok(());
    }
    let mut operand = *operand;
    let mut ty = slot.ty;
    if let OperandSyntax::Value(value) = &mut operand.kind {
        *value = accept::written(opcode, *value, gpu);
        // A value that does not fit in 16 bits is a literal, even if it is an inline constant in 32 bits.
        if opcode.row().traits.has(Trait::Mix) && !value.float && !accept::fits(value.value, 16) {
            (ty, value.literal) = (Type::B32, true);
        }
    }
    *place = accept::accept(&OperandSlot { ty, ..*slot }, &operand, gpu)?;
    for (_, id) in signs.iter().filter(|(given, _)| *given) {
        let bit = 1u32.unbounded_shl(slot.source.into());
        let constant = matches!(operand.kind, OperandSyntax::Value(_)) && variant.form == Form::E64;
        if *id == Mod::Sext && constant && takes_sign(name, gpu, Mod::Sext, slot.source) {
            // A constant is as wide as it is, where another form could extend a register.
            if !variant.mods.iter().any(|m| m.id == Mod::Sext) {
                continue;
            }
        }
        if slot.source > 2 || !variant.mods.iter().any(|m| m.id == *id && m.mask & bit != 0) {
            return Err(ParseRule::Modifier);
        }
        inst.mods.set(*id, inst.mods.get(*id) | bit as i32);
    }
    if let Operand::Reg { half: half @ RegHalf::High, .. } = place
        && let Some(id) = accept::half_modifier(slot.class, variant)
    {
        inst.mods.set(id, inst.mods.get(id) | 1 << codec::half_bit(slot));
        *half = RegHalf::Low;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_in_a_suffix() {
        for name in tables::names() {
            assert_eq!(suffix(name.name), (name.name, MnemonicSuffix::Any));
        }
    }
}
