//! ALU operations: those that the IR has are in a table, the others are expressed by operations that it has.

use super::dots;
use super::error::{NirCause, Result, invalid, unsupported};
use super::parse::{InstText, Operand};
use super::texture::is_texture;
use super::translate::Translator;
use crate::ir::{Base, BaseSet, Builder, Op, Payload, Type, Value};

/// NIR's names of operations that the IR has.
const SAME: &[(&str, Op)] = &[
    ("iadd", Op::IAdd),
    ("isub", Op::ISub),
    ("imul", Op::IMul),
    ("imul_high", Op::IMulHigh),
    ("umul_high", Op::UMulHigh),
    ("idiv", Op::IDiv),
    ("udiv", Op::UDiv),
    ("irem", Op::IRem),
    ("imod", Op::IMod),
    ("umod", Op::UMod),
    ("uadd_carry", Op::UAddCarry),
    ("usub_borrow", Op::USubBorrow),
    ("ineg", Op::INeg),
    ("iabs", Op::IAbs),
    ("imin", Op::IMin),
    ("imax", Op::IMax),
    ("umin", Op::UMin),
    ("umax", Op::UMax),
    ("iand", Op::IAnd),
    ("ior", Op::IOr),
    ("ixor", Op::IXor),
    ("inot", Op::INot),
    ("ishl", Op::IShl),
    ("ishr", Op::IShr),
    ("ushr", Op::UShr),
    ("bit_count", Op::BitCount),
    ("bitfield_reverse", Op::BitReverse),
    ("find_lsb", Op::FindLsb),
    ("ufind_msb", Op::FindUMsb),
    ("ifind_msb", Op::FindIMsb),
    ("bitfield_insert", Op::BitfieldInsert),
    ("ubitfield_extract", Op::UBitfieldExtract),
    ("ibitfield_extract", Op::IBitfieldExtract),
    ("ieq", Op::IEq),
    ("ine", Op::INe),
    ("ilt", Op::ILt),
    ("ige", Op::IGe),
    ("ult", Op::ULt),
    ("uge", Op::UGe),
    ("fadd", Op::FAdd),
    ("fsub", Op::FSub),
    ("fmul", Op::FMul),
    ("ffma", Op::FFma),
    ("fdiv", Op::FDiv),
    ("fneg", Op::FNeg),
    ("fabs", Op::FAbs),
    ("fmin", Op::FMin),
    ("fmax", Op::FMax),
    ("ffloor", Op::FFloor),
    ("fceil", Op::FCeil),
    ("ftrunc", Op::FTrunc),
    ("fround_even", Op::FRoundEven),
    ("fsqrt", Op::FSqrt),
    ("frsq", Op::FRsqrt),
    ("fsin", Op::FSin),
    ("fcos", Op::FCos),
    ("fexp2", Op::FExp2),
    ("flog2", Op::FLog2),
    ("ldexp", Op::FLdexp),
    ("frexp_sig", Op::FFrexpSig),
    ("frexp_exp", Op::FFrexpExp),
    ("fquantize2f16", Op::FQuantizeF16),
    ("feq", Op::FEq),
    ("fneu", Op::FNeu),
    ("flt", Op::FLt),
    ("fge", Op::FGe),
    ("bcsel", Op::Select),
];

/// A float of 16 bits.
const HALF: Type = Type { base: Base::B16, lanes: 1 };

/// Prefix and suffix of a conversion; the width of the result is between them.
const CONVERSIONS: &[(&str, &str, Op)] = &[
    ("i2i", "", Op::I2I),
    ("u2u", "", Op::U2U),
    ("i2f", "", Op::I2F),
    ("u2f", "", Op::U2F),
    ("f2i", "", Op::F2I),
    ("f2u", "", Op::F2U),
    ("f2f", "", Op::F2F),
    ("f2f", "_rtne", Op::F2FRte),
    ("f2f", "_rtz", Op::F2FRtz),
];

/// The conversion with a name, and what it converts to.
fn conversion(name: &str) -> Option<(Op, Base)> {
    CONVERSIONS.iter().find_map(|(prefix, suffix, op)| {
        let bits = name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok()?;
        Some((*op, Base::from_bits(bits).filter(|base| *base != Base::B1)?))
    })
}

impl<'t> Translator<'_, 't> {
    /// An operand with its swizzle applied.
    pub fn operand(&mut self, operand: &Operand<'_>) -> Result<Value> {
        let value = self.value(operand.id)?;
        let Some(swizzle) = operand.swizzle else { return Ok(value) };
        let ty = self.func.ty(value);
        let names = if ty.lanes > 4 { "abcdefghijklmnop" } else { "xyzw" };
        let mut lanes = Vec::new();
        for name in swizzle.chars().take(Type::MAX_LANES + 1) {
            let Some(lane) = names.find(name).filter(|lane| *lane < usize::from(ty.lanes)) else {
                return invalid(format!("%{} has no component {name}", operand.id));
            };
            lanes.push(self.build().extract(value, lane as u8));
        }
        if Type::new(ty.base, lanes.len() as u32).is_none() {
            return invalid(format!("{} components are not a value", lanes.len()));
        }
        Ok(self.build().vec(&lanes))
    }

    /// The operands of an instruction.
    pub fn operands(&mut self, inst: &InstText<'t>) -> Result<Vec<Value>> {
        let program = self.program;
        program.operands[inst.operands.clone()].iter().map(|operand| self.operand(operand)).collect()
    }

    /// The value of an instruction other than an intrinsic.
    pub fn alu(&mut self, inst: &InstText<'t>) -> Result<Value> {
        let Some((_, ty)) = inst.def else { return Err(NirCause::Expected("a type")) };
        match inst.name {
            "load_const" => {
                let bits = &self.program.constants[inst.constants.clone()];
                let mut builder = self.build();
                let lanes: Vec<Value> = bits.iter().map(|bits| builder.constant(ty.base, *bits)).collect();
                return Ok(builder.vec(&lanes));
            }
            "undefined" => return Ok(self.build().undef(ty)),
            name if is_texture(name) => return self.texture(inst),
            _ => {}
        }
        let args = self.operands(inst)?;
        let hardware = self.hardware;
        let mut builder = self.build();
        builder.exact = inst.exact;
        let name = inst.name;
        if let Some((_, op)) = SAME.iter().find(|(same, _)| *same == name) {
            let wanted = op.row().operands.len();
            if args.len() != wanted {
                return invalid(format!("{name} has {} operands instead of {wanted}", args.len()));
            }
            return Ok(builder.alu(*op, &args));
        }
        if let (Some((op, base)), [arg]) = (conversion(name), args.as_slice()) {
            return Ok(builder.convert(op, base, *arg));
        }
        let is_vec = name.strip_prefix("vec").is_some_and(|lanes| lanes.parse() == Ok(args.len()));
        if is_vec && Type::new(Base::B32, args.len() as u32).is_some() {
            return Ok(builder.vec(&args));
        }
        match (name, args.as_slice()) {
            ("udot_4x8_uadd", [_, _, _]) if hardware => {
                return Ok(builder.value(Op::AmdDot4, Payload::None, &args, ty));
            }
            ("fsin_amd" | "fcos_amd", &[turns]) if ty == HALF || ty == Type::B32 => {
                let op = if name == "fsin_amd" { Op::AmdSin } else { Op::AmdCos };
                if builder.func.ty(turns) != ty {
                    return invalid(format!("{name} of another type than its result"));
                }
                let turns = if ty == HALF { builder.convert(Op::F2F, Base::B32, turns) } else { turns };
                let value = builder.value(op, Payload::None, &[turns], Type::B32);
                return Ok(if ty == HALF { builder.convert(Op::F2F, Base::B16, value) } else { value });
            }
            ("cube_amd", &[direction]) => {
                if builder.func.ty(direction) != (Type { base: Base::B32, lanes: 3 }) {
                    return invalid("cube_amd of another type than three words");
                }
                let lanes = [0, 1, 2].map(|lane| builder.extract(direction, lane));
                return Ok(builder.value(Op::AmdCube, Payload::None, &lanes, ty));
            }
            ("pack_half_2x16_rtz_split", [_, _]) if hardware => {
                return Ok(builder.value(Op::AmdPackHalf, Payload::None, &args, ty));
            }
            ("pack_unorm_2x16" | "pack_snorm_2x16", &[pair]) if hardware => {
                if builder.func.ty(pair) != (Type { base: Base::B32, lanes: 2 }) {
                    return invalid(format!("{name} of another type than two words"));
                }
                let lanes = [0, 1].map(|lane| builder.extract(pair, lane));
                let op = if name == "pack_unorm_2x16" { Op::AmdPackUnorm } else { Op::AmdPackSnorm };
                return Ok(builder.value(op, Payload::None, &lanes, ty));
            }
            ("fmulz", [_, _]) if hardware && ty == Type::B32 => {
                return Ok(builder.value(Op::AmdMulZero, Payload::None, &args, ty));
            }
            _ => {}
        }
        // What follows makes constants of the types of operands.
        if args.iter().any(|arg| !BaseSet::BITS.has(builder.func.ty(*arg).base)) {
            return invalid("an operand is not a number");
        }
        let value = match integer(&mut builder, name, &args, ty) {
            None => float(&mut builder, name, &args, ty),
            some => some,
        };
        let value = value.or_else(|| packing(&mut builder, name, &args, ty));
        let value = value.or_else(|| dots::parts(&mut builder, name, &args));
        match value {
            Some(value) => Ok(value),
            None => unsupported(format!("{name} with {} operands", args.len())),
        }
    }
}

/// Integer operations that the IR does not have.
fn integer(b: &mut Builder<'_>, name: &str, args: &[Value], ty: Type) -> Option<Value> {
    let base = b.func.ty(*args.first()?).base;
    Some(match (name, args) {
        ("mov", &[a]) => a,
        ("b2i1" | "b2i8" | "b2i16" | "b2i32" | "b2i64", &[a]) => {
            let (one, zero) = (b.splat_constant(ty, 1), b.splat_constant(ty, 0));
            b.alu(Op::Select, &[a, one, zero])
        }
        ("b2b1", &[a]) if base == Base::B1 => a,
        ("b2b1" | "i2b1", &[a]) => {
            let zero = b.splat_constant(b.func.ty(a), 0);
            b.alu(Op::INe, &[a, zero])
        }
        ("bitfield_select", &[mask, insert, other]) => {
            let inserted = b.alu(Op::IAnd, &[mask, insert]);
            let rest = b.alu(Op::INot, &[mask]);
            let rest = b.alu(Op::IAnd, &[rest, other]);
            b.alu(Op::IOr, &[inserted, rest])
        }
        ("ubfe" | "ibfe", &[value, offset, count]) => bit_field(b, name == "ibfe", value, offset, count),
        ("bfm", &[count, offset]) => {
            let ones = low_bits(b, count);
            b.alu(Op::IShl, &[ones, offset])
        }
        ("bitnz" | "bitz", &[value, bit]) => {
            let arg = b.func.ty(value);
            let one = b.splat_constant(arg, 1);
            let mask = b.alu(Op::IShl, &[one, bit]);
            let masked = b.alu(Op::IAnd, &[value, mask]);
            let zero = b.splat_constant(arg, 0);
            b.alu(if name == "bitnz" { Op::INe } else { Op::IEq }, &[masked, zero])
        }
        ("ufind_msb_rev" | "ifind_msb_rev", &[value]) => {
            let op = if name == "ufind_msb_rev" { Op::FindUMsb } else { Op::FindIMsb };
            let found = b.alu(op, &[value]);
            let arg = b.func.ty(found);
            let none = b.splat_constant(arg, u64::MAX);
            let last = b.splat_constant(arg, u64::from(base.bits().saturating_sub(1)));
            let reversed = b.alu(Op::ISub, &[last, found]);
            let is_none = b.alu(Op::IEq, &[found, none]);
            b.alu(Op::Select, &[is_none, none, reversed])
        }
        ("extract_u8" | "extract_i8" | "extract_u16" | "extract_i16", &[value, part]) => {
            let bits = if name.ends_with('8') { 8 } else { 16 };
            let signed = name.starts_with("extract_i");
            if let Some(part) = b.func.const_bits(part).filter(|_| base == Base::B32 && ty == Type::B32) {
                let first = (part as u32).wrapping_mul(bits) & 31;
                let op = match (signed, first + bits == 32) {
                    (false, false) => Op::UBitfieldExtract,
                    (true, false) => Op::IBitfieldExtract,
                    (false, true) => Op::UShr,
                    (true, true) => Op::IShr,
                };
                let (first, bits) = (b.u32(first), b.u32(bits));
                let operands = [value, first, bits];
                return Some(b.alu(op, &operands[..op.row().operands.len()]));
            }
            let shift = part_shift(b, part, bits);
            let shifted = b.alu(Op::UShr, &[value, shift]);
            let unused = u64::from(base.bits().saturating_sub(bits));
            let count = b.splat_constant(b.func.ty(shift), unused);
            let raised = b.alu(Op::IShl, &[shifted, count]);
            b.alu(if name.starts_with("extract_i") { Op::IShr } else { Op::UShr }, &[raised, count])
        }
        ("insert_u8" | "insert_u16", &[value, part]) => {
            let bits = if name.ends_with('8') { 8 } else { 16 };
            let mask = b.splat_constant(b.func.ty(value), (1 << bits) - 1);
            let low = b.alu(Op::IAnd, &[value, mask]);
            let shift = part_shift(b, part, bits);
            b.alu(Op::IShl, &[low, shift])
        }
        ("isign", &[a]) => {
            let ty = b.func.ty(a);
            let (least, most) = (b.splat_constant(ty, u64::MAX), b.splat_constant(ty, 1));
            let raised = b.alu(Op::IMax, &[a, least]);
            b.alu(Op::IMin, &[raised, most])
        }
        ("uadd_sat", &[x, y]) => {
            let sum = b.alu(Op::IAdd, &[x, y]);
            let wraps = b.alu(Op::ULt, &[sum, x]);
            let most = b.splat_constant(b.func.ty(x), u64::MAX);
            b.alu(Op::Select, &[wraps, most, sum])
        }
        ("usub_sat", &[x, y]) => {
            let difference = b.alu(Op::ISub, &[x, y]);
            let wraps = b.alu(Op::ULt, &[x, y]);
            let zero = b.splat_constant(b.func.ty(x), 0);
            b.alu(Op::Select, &[wraps, zero, difference])
        }
        ("umul24" | "umul24_relaxed", &[x, y]) => {
            let mask = b.splat_constant(b.func.ty(x), 0xff_ffff);
            let (x, y) = (b.alu(Op::IAnd, &[x, mask]), b.alu(Op::IAnd, &[y, mask]));
            b.alu(Op::IMul, &[x, y])
        }
        ("umin3" | "umax3" | "imin3" | "imax3" | "umed3" | "imed3", &[x, y, z]) => {
            let (least, most) =
                if name.starts_with('u') { (Op::UMin, Op::UMax) } else { (Op::IMin, Op::IMax) };
            of_three(b, name, [least, most], [x, y, z])
        }
        ("uabs_usub" | "uabs_isub", &[x, y]) => {
            let (least, most) = if name == "uabs_usub" { (Op::UMin, Op::UMax) } else { (Op::IMin, Op::IMax) };
            let (least, most) = (b.alu(least, &[x, y]), b.alu(most, &[x, y]));
            b.alu(Op::ISub, &[most, least])
        }
        ("b2b8" | "b2b16" | "b2b32", &[a]) if base == Base::B1 => {
            let (all, none) = (b.splat_constant(ty, ty.base.mask()), b.splat_constant(ty, 0));
            b.alu(Op::Select, &[a, all, none])
        }
        ("umad24" | "umad24_relaxed" | "imad24" | "imad24_relaxed", &[x, y, sum]) => {
            let product = integer(b, if name.starts_with('u') { "umul24" } else { "imul24" }, &[x, y], ty)?;
            b.alu(Op::IAdd, &[product, sum])
        }
        ("shfr" | "alignbyte_amd", &[high, low, count]) if ty == Type::B32 => {
            let words = b.vec(&[low, high]);
            let wide = b.bitcast(Type::B64, words);
            let mask = b.u32(if name == "shfr" { 31 } else { 3 });
            let mut count = b.alu(Op::IAnd, &[count, mask]);
            if name == "alignbyte_amd" {
                let three = b.u32(3);
                count = b.alu(Op::IShl, &[count, three]);
            }
            let shifted = b.alu(Op::UShr, &[wide, count]);
            b.convert(Op::U2U, Base::B32, shifted)
        }
        ("imul24" | "imul24_relaxed", &[x, y]) => {
            let eight = b.splat_constant(b.func.ty(x).with_base(Base::B32), 8);
            let mut low = |value| {
                let raised = b.alu(Op::IShl, &[value, eight]);
                b.alu(Op::IShr, &[raised, eight])
            };
            let (x, y) = (low(x), low(y));
            b.alu(Op::IMul, &[x, y])
        }
        _ => return None,
    })
}

/// The least, the most or the middle of three numbers, by the last letters of the name.
fn of_three(b: &mut Builder<'_>, name: &str, [least, most]: [Op; 2], [x, y, z]: [Value; 3]) -> Value {
    match name {
        name if name.ends_with("min3") || name.ends_with("max3") => {
            let op = if name.ends_with("min3") { least } else { most };
            let both = b.alu(op, &[x, y]);
            b.alu(op, &[both, z])
        }
        _ => {
            let (low, high) = (b.alu(least, &[x, y]), b.alu(most, &[x, y]));
            let middle = b.alu(least, &[high, z]);
            b.alu(most, &[low, middle])
        }
    }
}

/// The shift that brings a part of a value to its lowest bits.
fn part_shift(b: &mut Builder<'_>, part: Value, bits: u32) -> Value {
    let part = if b.func.ty(part).base == Base::B32 { part } else { b.convert(Op::U2U, Base::B32, part) };
    let log = b.splat_constant(b.func.ty(part), u64::from(bits.trailing_zeros()));
    b.alu(Op::IShl, &[part, log])
}

/// A mask of as many low bits as a count says; only the lowest five bits of the count are used.
fn low_bits(b: &mut Builder<'_>, count: Value) -> Value {
    let one = b.splat_constant(b.func.ty(count), 1);
    let power = b.alu(Op::IShl, &[one, count]);
    b.alu(Op::ISub, &[power, one])
}

/// AMD's bit fields: offset and count are taken modulo 32, and a field that reaches past the end is truncated.
fn bit_field(b: &mut Builder<'_>, signed: bool, value: Value, offset: Value, count: Value) -> Value {
    let ty = b.func.ty(count);
    if let (Some(offset), Some(count)) = (b.func.const_bits(offset), b.func.const_bits(count))
        && (offset & 31) + (count & 31) <= 32
        && ty == Type::B32
    {
        let (offset, count) = (b.u32(offset as u32 & 31), b.u32(count as u32 & 31));
        let op = if signed { Op::IBitfieldExtract } else { Op::UBitfieldExtract };
        return b.alu(op, &[value, offset, count]);
    }
    if !signed {
        let shifted = b.alu(Op::UShr, &[value, offset]);
        let mask = low_bits(b, count);
        return b.alu(Op::IAnd, &[shifted, mask]);
    }
    let (mask, width, zero) = (b.splat_constant(ty, 31), b.splat_constant(ty, 32), b.splat_constant(ty, 0));
    let (offset, count) = (b.alu(Op::IAnd, &[offset, mask]), b.alu(Op::IAnd, &[count, mask]));
    let available = b.alu(Op::ISub, &[width, offset]);
    let count = b.alu(Op::UMin, &[count, available]);
    let left = b.alu(Op::ISub, &[available, count]);
    let right = b.alu(Op::ISub, &[width, count]);
    let raised = b.alu(Op::IShl, &[value, left]);
    let lowered = b.alu(Op::IShr, &[raised, right]);
    let empty = b.alu(Op::IEq, &[count, zero]);
    b.alu(Op::Select, &[empty, zero, lowered])
}

/// The bits of a float of a width.
fn float_bits(base: Base, value: f32) -> Option<u64> {
    match base {
        // 0 and 1 alone are needed.
        Base::B16 => Some(if value == 0.0 { 0 } else { 0x3c00 }),
        Base::B32 => Some(value.to_bits().into()),
        Base::B64 => Some(f64::from(value).to_bits()),
        _ => None,
    }
}

/// The bits of infinity of a width.
fn infinity_bits(base: Base) -> Option<u64> {
    match base {
        Base::B16 => Some(0x7c00),
        Base::B32 => Some(f32::INFINITY.to_bits().into()),
        Base::B64 => Some(f64::INFINITY.to_bits()),
        _ => None,
    }
}

/// Float operations that the IR does not have.
fn float(b: &mut Builder<'_>, name: &str, args: &[Value], ty: Type) -> Option<Value> {
    let arg = b.func.ty(*args.first()?);
    Some(match (name, args) {
        ("b2f16" | "b2f32" | "b2f64", &[a]) => {
            let one = b.splat_constant(ty, float_bits(ty.base, 1.0)?);
            let zero = b.splat_constant(ty, 0);
            b.alu(Op::Select, &[a, one, zero])
        }
        ("frcp", &[a]) => {
            let one = b.splat_constant(arg, float_bits(arg.base, 1.0)?);
            b.alu(Op::FDiv, &[one, a])
        }
        ("fsat", &[a]) => {
            let one = b.splat_constant(arg, float_bits(arg.base, 1.0)?);
            let zero = b.splat_constant(arg, 0);
            let positive = b.alu(Op::FMax, &[a, zero]);
            b.alu(Op::FMin, &[positive, one])
        }
        ("fsign", &[a]) => {
            let one = float_bits(arg.base, 1.0)?;
            let sign = 1 << (arg.base.bits() - 1);
            let (zero, one, less) =
                (b.splat_constant(arg, 0), b.splat_constant(arg, one), b.splat_constant(arg, one | sign));
            let positive = b.alu(Op::FLt, &[zero, a]);
            let raised = b.alu(Op::Select, &[positive, one, a]);
            let not_negative = b.alu(Op::FGe, &[raised, zero]);
            b.alu(Op::Select, &[not_negative, raised, less])
        }
        ("ffract", &[a]) => {
            let floor = b.alu(Op::FFloor, &[a]);
            b.alu(Op::FSub, &[a, floor])
        }
        ("fmin3" | "fmax3" | "fmed3", &[x, y, z]) => of_three(b, name, [Op::FMin, Op::FMax], [x, y, z]),
        ("fcanonicalize", &[a]) => {
            let one = b.splat_constant(arg, float_bits(arg.base, 1.0)?);
            b.exact = true;
            b.alu(Op::FMul, &[a, one])
        }
        ("fisfinite", &[a]) => {
            let infinity = b.splat_constant(arg, infinity_bits(arg.base)?);
            let size = b.alu(Op::FAbs, &[a]);
            b.alu(Op::FLt, &[size, infinity])
        }
        ("f2b1", &[a]) => {
            let zero = b.splat_constant(arg, 0);
            b.alu(Op::FNeu, &[a, zero])
        }
        ("fpow", &[x, y]) => {
            let log = b.alu(Op::FLog2, &[x]);
            let product = b.alu(Op::FMul, &[log, y]);
            b.alu(Op::FExp2, &[product])
        }
        ("fltu" | "fgeu", &[x, y]) => {
            let opposite = b.alu(if name == "fltu" { Op::FGe } else { Op::FLt }, &[x, y]);
            b.alu(Op::INot, &[opposite])
        }
        ("fneo" | "fequ", &[x, y]) => {
            let (less, greater) = (b.alu(Op::FLt, &[x, y]), b.alu(Op::FLt, &[y, x]));
            let differ = b.alu(Op::IOr, &[less, greater]);
            if name == "fneo" { differ } else { b.alu(Op::INot, &[differ]) }
        }
        ("ford" | "funord", &[x, y]) => {
            let (x, y) = (b.alu(Op::FEq, &[x, x]), b.alu(Op::FEq, &[y, y]));
            let ordered = b.alu(Op::IAnd, &[x, y]);
            if name == "ford" { ordered } else { b.alu(Op::INot, &[ordered]) }
        }
        _ => return None,
    })
}

/// Values that are put together or taken apart.
fn packing(b: &mut Builder<'_>, name: &str, args: &[Value], ty: Type) -> Option<Value> {
    let parts = |base, lanes| Type { base, lanes };
    Some(match (name, args) {
        ("pack_64_2x32_split" | "pack_32_2x16_split", &[low, high]) => {
            let (low, high) = (b.extract(low, 0), b.extract(high, 0));
            let both = b.vec(&[low, high]);
            b.bitcast(ty, both)
        }
        ("pack_uint_2x16", &[a]) => {
            let (low, high) = (b.extract(a, 0), b.extract(a, 1));
            let most = b.u32(0xffff);
            let (low, high) = (b.alu(Op::UMin, &[low, most]), b.alu(Op::UMin, &[high, most]));
            let sixteen = b.u32(16);
            let high = b.alu(Op::IShl, &[high, sixteen]);
            b.alu(Op::IOr, &[low, high])
        }
        ("pack_sint_2x16", &[a]) => {
            let (least, most) = (b.u32(i32::from(i16::MIN) as u32), b.u32(i16::MAX as u32));
            let [low, high] = [0, 1].map(|lane| {
                let lane = b.extract(a, lane);
                let raised = b.alu(Op::IMax, &[lane, least]);
                b.alu(Op::IMin, &[raised, most])
            });
            let (mask, sixteen) = (b.u32(0xffff), b.u32(16));
            let (low, high) = (b.alu(Op::IAnd, &[low, mask]), b.alu(Op::IShl, &[high, sixteen]));
            b.alu(Op::IOr, &[low, high])
        }
        ("pack_64_2x32" | "pack_64_4x16" | "pack_32_2x16" | "pack_32_4x8", &[a]) => b.bitcast(ty, a),
        ("unpack_64_2x32" | "unpack_64_4x16" | "unpack_32_2x16" | "unpack_32_4x8", &[a]) => b.bitcast(ty, a),
        ("unpack_64_2x32_split_x" | "unpack_64_2x32_split_y", &[a]) => {
            let both = b.bitcast(parts(Base::B32, 2), a);
            b.extract(both, u8::from(name.ends_with('y')))
        }
        ("unpack_32_2x16_split_x" | "unpack_32_2x16_split_y", &[a]) => {
            let both = b.bitcast(parts(Base::B16, 2), a);
            b.extract(both, u8::from(name.ends_with('y')))
        }
        ("pack_half_2x16_split" | "pack_half_2x16_rtz_split", &[x, y]) => {
            let op = if name == "pack_half_2x16_split" { Op::F2F } else { Op::F2FRtz };
            let (x, y) = (b.extract(x, 0), b.extract(y, 0));
            let (x, y) = (b.convert(op, Base::B16, x), b.convert(op, Base::B16, y));
            let both = b.vec(&[x, y]);
            b.bitcast(ty, both)
        }
        ("unpack_half_2x16_split_x" | "unpack_half_2x16_split_y", &[a]) => {
            let both = b.bitcast(parts(Base::B16, 2), a);
            let half = b.extract(both, u8::from(name.ends_with('y')));
            b.convert(Op::F2F, Base::B32, half)
        }
        _ => return None,
    })
}
