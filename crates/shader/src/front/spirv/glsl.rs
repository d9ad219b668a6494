//! The extended instruction set `GLSL.std.450`, and debug information in an extended set.
//!
//! Functions that Vulkan lets inherit their precision are written as the formulas that they inherit it from. The arc tangent is a polynomial in the square
//! of its argument, fitted to `atan(x)/x` on [0, 1] with an error below 2^-25.

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::{ExtSet, IdDef, Instr};
use super::translate::{Translator, ValKind};
use crate::ir::{Access, Base, InterpAt, Op as IrOp, Payload, Storage, Type, Value};
use spirv::GlslStd450Op as G;

/// Coefficients of `atan(x)/x` in powers of `x²`.
const ATAN: [f64; 9] = [
    0.999999981789,
    -0.333330367093,
    0.199918720291,
    -0.14197797794,
    0.106183706367,
    -0.074568548253,
    0.04213762358,
    -0.015731249116,
    0.0027662835,
];

const DEBUG_LINE: u32 = 103;
const DEBUG_NO_LINE: u32 = 104;
pub(super) const DEBUG_SOURCE: u32 = 35;
pub(super) const DEBUG_SOURCE_CONTINUED: u32 = 102;

impl Translator<'_> {
    /// An extended instruction.
    pub(super) fn extended(&mut self, inst: Instr<'_>) -> Result<()> {
        let (set, number) = (inst.word(3)?, inst.word(4)?);
        let IdDef::Set(index) = self.module.id(set)? else {
            return Err(SpirvCause::Wrong { id: set, wanted: "an extended instruction set" });
        };
        match self.module.sets[index as usize] {
            ExtSet::NonSemantic => Ok(()),
            ExtSet::DebugInfo => self.debug(inst, number),
            ExtSet::Glsl => match G::from_u32(number) {
                Some(op) => self.glsl(inst, op),
                None => unsupported(format!("GLSL.std.450 instruction {number}")),
            },
        }
    }

    fn debug(&mut self, inst: Instr<'_>, number: u32) -> Result<()> {
        match number {
            DEBUG_LINE => {
                let line = self.module.constant_bits(inst.word(6)?)? as u32;
                let column = self.module.constant_bits(inst.word(8)?)? as u32;
                if let Some(file) = self.debug_source(inst.word(5)?) {
                    self.line(file, line, column)?;
                }
            }
            DEBUG_NO_LINE => self.no_line(),
            _ => {}
        }
        Ok(())
    }

    /// The string of a `DebugSource`.
    fn debug_source(&self, id: u32) -> Option<u32> {
        let at = self.module.debug_sources.iter().find(|(source, _)| *source == id)?.1;
        let words = self.words.get(at as usize..at as usize + 6)?;
        (words[4] == DEBUG_SOURCE).then_some(words[5])
    }

    fn glsl(&mut self, inst: Instr<'_>, op: G) -> Result<()> {
        let simple = match op {
            G::Round | G::RoundEven => IrOp::FRoundEven,
            G::Trunc => IrOp::FTrunc,
            G::FAbs => IrOp::FAbs,
            G::SAbs => IrOp::IAbs,
            G::Floor => IrOp::FFloor,
            G::Ceil => IrOp::FCeil,
            G::Sin => IrOp::FSin,
            G::Cos => IrOp::FCos,
            G::Exp2 => IrOp::FExp2,
            G::Log2 => IrOp::FLog2,
            G::Sqrt => IrOp::FSqrt,
            G::InverseSqrt => IrOp::FRsqrt,
            G::FMin | G::NMin => IrOp::FMin,
            G::FMax | G::NMax => IrOp::FMax,
            G::UMin => IrOp::UMin,
            G::SMin => IrOp::IMin,
            G::UMax => IrOp::UMax,
            G::SMax => IrOp::IMax,
            G::Fma => IrOp::FFma,
            _ => return self.glsl_formula(inst, op),
        };
        let count = simple.row().operands.len();
        let mut args = [super::translate::no_value(); 3];
        for (at, arg) in args[..count].iter_mut().enumerate() {
            *arg = self.operand(inst, 5 + at)?;
        }
        let value = self.alu(simple, &args[..count])?;
        self.set_value(inst, value)
    }

    fn glsl_formula(&mut self, inst: Instr<'_>, op: G) -> Result<()> {
        match op {
            G::Determinant => {
                let columns = self.leaves(inst.word(5)?)?;
                let rows = self.square(&columns)?;
                let value = self.determinant(&rows)?;
                return self.set_value(inst, value);
            }
            G::MatrixInverse => {
                let columns = self.leaves(inst.word(5)?)?;
                let rows = self.square(&columns)?;
                let inverse = self.inverse(&rows)?;
                return self.set_leaves(inst, &inverse);
            }
            G::Modf | G::ModfStruct | G::Frexp | G::FrexpStruct => return self.split(inst, op),
            G::InterpolateAtCentroid | G::InterpolateAtSample | G::InterpolateAtOffset => {
                return self.interpolate(inst, op);
            }
            _ => {}
        }
        let x = self.operand(inst, 5)?;
        let value = match op {
            G::Ldexp => {
                let mut exponent = self.operand(inst, 6)?;
                let ty = self.ty(exponent);
                if ty.base == Base::B64 {
                    // Past these, every float overflows or underflows; the upper half must not get lost.
                    let (least, most) =
                        (self.int_constant(ty, (-65536i64) as u64)?, self.int_constant(ty, 65536)?);
                    exponent = self.alu(IrOp::IMax, &[exponent, least])?;
                    exponent = self.alu(IrOp::IMin, &[exponent, most])?;
                }
                let exponent = self.convert(IrOp::I2I, Base::B32, exponent)?;
                self.alu(IrOp::FLdexp, &[x, exponent])?
            }
            G::FindILsb => self.alu(IrOp::FindLsb, &[x])?,
            G::FindSMsb => self.alu(IrOp::FindIMsb, &[x])?,
            G::FindUMsb => self.alu(IrOp::FindUMsb, &[x])?,
            G::SSign => {
                let ty = self.ty(x);
                let (one, minus) = (self.int_constant(ty, 1)?, self.int_constant(ty, u64::MAX)?);
                let most = self.alu(IrOp::IMin, &[x, one])?;
                self.alu(IrOp::IMax, &[most, minus])?
            }
            G::FClamp | G::NClamp => self.clamp(inst, x, IrOp::FMax, IrOp::FMin)?,
            G::UClamp => self.clamp(inst, x, IrOp::UMax, IrOp::UMin)?,
            G::SClamp => self.clamp(inst, x, IrOp::IMax, IrOp::IMin)?,
            G::Length | G::Distance | G::Cross | G::Normalize | G::FaceForward | G::Reflect | G::Refract => {
                self.geometric(inst, op, x)?
            }
            G::PackSnorm4x8
            | G::PackUnorm4x8
            | G::PackSnorm2x16
            | G::PackUnorm2x16
            | G::PackHalf2x16
            | G::PackDouble2x32 => self.pack(op, x)?,
            G::UnpackSnorm4x8
            | G::UnpackUnorm4x8
            | G::UnpackSnorm2x16
            | G::UnpackUnorm2x16
            | G::UnpackHalf2x16
            | G::UnpackDouble2x32 => self.unpack(op, x)?,
            _ => self.function(inst, op, x)?,
        };
        self.set_value(inst, value)
    }

    fn int_constant(&mut self, ty: Type, bits: u64) -> Result<Value> {
        let scalar = self.constant(ty.base, bits);
        self.splat(scalar, ty.lanes)
    }

    fn clamp(&mut self, inst: Instr<'_>, x: Value, max: IrOp, min: IrOp) -> Result<Value> {
        let (least, most) = (self.operand(inst, 6)?, self.operand(inst, 7)?);
        let value = self.alu(max, &[x, least])?;
        self.alu(min, &[value, most])
    }

    fn f(&mut self, like: Value, value: f64) -> Value {
        let ty = self.ty(like);
        self.float_constant(ty, value)
    }

    fn scale(&mut self, x: Value, by: f64) -> Result<Value> {
        let by = self.f(x, by);
        self.alu(IrOp::FMul, &[x, by])
    }

    /// The natural exponential.
    fn exp(&mut self, x: Value) -> Result<Value> {
        let scaled = self.scale(x, std::f64::consts::LOG2_E)?;
        self.alu(IrOp::FExp2, &[scaled])
    }

    /// The natural logarithm.
    fn log(&mut self, x: Value) -> Result<Value> {
        let log = self.alu(IrOp::FLog2, &[x])?;
        self.scale(log, std::f64::consts::LN_2)
    }

    /// Functions of floats, lane by lane.
    fn function(&mut self, inst: Instr<'_>, op: G, x: Value) -> Result<Value> {
        if !crate::ir::BaseSet::FLOAT.has(self.ty(x).base) {
            return Err(SpirvCause::Types(inst.op));
        }
        let (one, zero) = (self.f(x, 1.0), self.f(x, 0.0));
        Ok(match op {
            G::FSign => {
                let (minus, negative) = (self.f(x, -1.0), self.alu(IrOp::FLt, &[x, zero])?);
                let positive = self.alu(IrOp::FLt, &[zero, x])?;
                let other = self.alu(IrOp::Select, &[negative, minus, x])?;
                self.alu(IrOp::Select, &[positive, one, other])?
            }
            G::Fract => {
                let floor = self.alu(IrOp::FFloor, &[x])?;
                self.alu(IrOp::FSub, &[x, floor])?
            }
            G::Radians => self.scale(x, std::f64::consts::PI / 180.0)?,
            G::Degrees => self.scale(x, 180.0 / std::f64::consts::PI)?,
            G::Tan => {
                let (sin, cos) = (self.alu(IrOp::FSin, &[x])?, self.alu(IrOp::FCos, &[x])?);
                self.alu(IrOp::FDiv, &[sin, cos])?
            }
            G::Asin | G::Acos => {
                let (less, more) = (self.alu(IrOp::FSub, &[one, x])?, self.alu(IrOp::FAdd, &[one, x])?);
                let square = self.alu(IrOp::FMul, &[less, more])?;
                let root = self.alu(IrOp::FSqrt, &[square])?;
                if op == G::Asin { self.atan2(x, root)? } else { self.atan2(root, x)? }
            }
            G::Atan => self.atan2(x, one)?,
            G::Atan2 => {
                let other = self.operand(inst, 6)?;
                self.atan2(x, other)?
            }
            G::Exp => self.exp(x)?,
            G::Log => self.log(x)?,
            G::Pow => {
                let power = self.operand(inst, 6)?;
                let log = self.alu(IrOp::FLog2, &[x])?;
                let product = self.alu(IrOp::FMul, &[power, log])?;
                self.alu(IrOp::FExp2, &[product])?
            }
            G::Sinh | G::Cosh => {
                let negative = self.alu(IrOp::FNeg, &[x])?;
                let (up, down) = (self.exp(x)?, self.exp(negative)?);
                let both = self.alu(if op == G::Sinh { IrOp::FSub } else { IrOp::FAdd }, &[up, down])?;
                self.scale(both, 0.5)?
            }
            G::Tanh => {
                // Past this the quotient is 1 in 32 bits, and the exponential does not overflow in 16.
                let (least, most) = (self.f(x, -5.0 * 2.0), self.f(x, 5.0 * 2.0));
                let (least, most) = if self.ty(x).base == Base::B16 {
                    (self.f(x, -5.0), self.f(x, 5.0))
                } else {
                    (least, most)
                };
                let x = self.alu(IrOp::FMax, &[x, least])?;
                let x = self.alu(IrOp::FMin, &[x, most])?;
                let double = self.alu(IrOp::FAdd, &[x, x])?;
                let power = self.exp(double)?;
                let (up, down) = (self.alu(IrOp::FSub, &[power, one])?, self.alu(IrOp::FAdd, &[power, one])?);
                self.alu(IrOp::FDiv, &[up, down])?
            }
            G::Asinh => {
                let magnitude = self.alu(IrOp::FAbs, &[x])?;
                let square = self.alu(IrOp::FFma, &[x, x, one])?;
                let root = self.alu(IrOp::FSqrt, &[square])?;
                let sum = self.alu(IrOp::FAdd, &[magnitude, root])?;
                let log = self.log(sum)?;
                self.with_sign(log, x)?
            }
            G::Acosh => {
                let minus = self.f(x, -1.0);
                let square = self.alu(IrOp::FFma, &[x, x, minus])?;
                let root = self.alu(IrOp::FSqrt, &[square])?;
                let sum = self.alu(IrOp::FAdd, &[x, root])?;
                self.log(sum)?
            }
            G::Atanh => {
                let (up, down) = (self.alu(IrOp::FAdd, &[one, x])?, self.alu(IrOp::FSub, &[one, x])?);
                let quotient = self.alu(IrOp::FDiv, &[up, down])?;
                let log = self.log(quotient)?;
                self.scale(log, 0.5)?
            }
            G::FMix => {
                let (y, a) = (self.operand(inst, 6)?, self.operand(inst, 7)?);
                let rest = self.alu(IrOp::FSub, &[one, a])?;
                let (x, y) = (self.alu(IrOp::FMul, &[x, rest])?, self.alu(IrOp::FMul, &[y, a])?);
                self.alu(IrOp::FAdd, &[x, y])?
            }
            G::Step => {
                let value = self.operand(inst, 6)?;
                let below = self.alu(IrOp::FLt, &[value, x])?;
                self.alu(IrOp::Select, &[below, zero, one])?
            }
            G::SmoothStep => {
                let (edge, value) = (self.operand(inst, 6)?, self.operand(inst, 7)?);
                let (up, down) = (self.alu(IrOp::FSub, &[value, x])?, self.alu(IrOp::FSub, &[edge, x])?);
                let t = self.alu(IrOp::FDiv, &[up, down])?;
                let t = self.alu(IrOp::FMax, &[t, zero])?;
                let t = self.alu(IrOp::FMin, &[t, one])?;
                let (three, double) = (self.f(x, 3.0), self.scale(t, 2.0)?);
                let factor = self.alu(IrOp::FSub, &[three, double])?;
                let square = self.alu(IrOp::FMul, &[t, t])?;
                self.alu(IrOp::FMul, &[square, factor])?
            }
            other => return unsupported(format!("GLSL.std.450 {other:?}")),
        })
    }

    /// A magnitude with the sign of another value.
    fn with_sign(&mut self, magnitude: Value, sign: Value) -> Result<Value> {
        let ty = self.ty(magnitude);
        let bit = 1u64 << (ty.base.bits() - 1);
        let (bit, rest) = (self.int_constant(ty, bit)?, self.int_constant(ty, bit - 1)?);
        let sign = self.alu(IrOp::IAnd, &[sign, bit])?;
        let magnitude = self.alu(IrOp::IAnd, &[magnitude, rest])?;
        self.alu(IrOp::IOr, &[magnitude, sign])
    }

    fn atan2(&mut self, y: Value, x: Value) -> Result<Value> {
        let (one, zero) = (self.f(x, 1.0), self.f(x, 0.0));
        let (ax, ay) = (self.alu(IrOp::FAbs, &[x])?, self.alu(IrOp::FAbs, &[y])?);
        let (small, large) = (self.alu(IrOp::FMin, &[ax, ay])?, self.alu(IrOp::FMax, &[ax, ay])?);
        let equal = self.alu(IrOp::FEq, &[ax, ay])?;
        let quotient = self.alu(IrOp::FDiv, &[small, large])?;
        // Also where both are infinite.
        let t = self.alu(IrOp::Select, &[equal, one, quotient])?;
        let square = self.alu(IrOp::FMul, &[t, t])?;
        let mut sum = self.f(x, ATAN[ATAN.len() - 1]);
        for &coefficient in ATAN[..ATAN.len() - 1].iter().rev() {
            let coefficient = self.f(x, coefficient);
            sum = self.alu(IrOp::FFma, &[sum, square, coefficient])?;
        }
        let angle = self.alu(IrOp::FMul, &[sum, t])?;
        let (steep, quarter) = (self.alu(IrOp::FLt, &[ax, ay])?, self.f(x, std::f64::consts::FRAC_PI_2));
        let other = self.alu(IrOp::FSub, &[quarter, angle])?;
        let angle = self.alu(IrOp::Select, &[steep, other, angle])?;
        let (left, half) = (self.alu(IrOp::FLt, &[x, zero])?, self.f(x, std::f64::consts::PI));
        let other = self.alu(IrOp::FSub, &[half, angle])?;
        let angle = self.alu(IrOp::Select, &[left, other, angle])?;
        self.with_sign(angle, y)
    }

    fn geometric(&mut self, inst: Instr<'_>, op: G, x: Value) -> Result<Value> {
        let lanes = self.ty(x).lanes;
        Ok(match op {
            G::Length => self.length(x)?,
            G::Distance => {
                let y = self.operand(inst, 6)?;
                let difference = self.alu(IrOp::FSub, &[x, y])?;
                self.length(difference)?
            }
            G::Cross => {
                let y = self.operand(inst, 6)?;
                if lanes != 3 || self.ty(y).lanes != 3 {
                    return Err(SpirvCause::Types(inst.op));
                }
                let (xa, xb) = (self.turned(x, 1)?, self.turned(x, 2)?);
                let (ya, yb) = (self.turned(y, 2)?, self.turned(y, 1)?);
                let (left, right) = (self.alu(IrOp::FMul, &[xa, ya])?, self.alu(IrOp::FMul, &[xb, yb])?);
                self.alu(IrOp::FSub, &[left, right])?
            }
            G::Normalize => {
                let square = self.dot(x, x)?;
                let factor = self.alu(IrOp::FRsqrt, &[square])?;
                let factor = self.splat(factor, lanes)?;
                self.alu(IrOp::FMul, &[x, factor])?
            }
            G::FaceForward => {
                let (i, reference) = (self.operand(inst, 6)?, self.operand(inst, 7)?);
                let dot = self.dot(reference, i)?;
                let zero = self.f(dot, 0.0);
                let faces = self.alu(IrOp::FLt, &[dot, zero])?;
                let faces = self.splat(faces, lanes)?;
                let negative = self.alu(IrOp::FNeg, &[x])?;
                self.alu(IrOp::Select, &[faces, x, negative])?
            }
            G::Reflect => {
                let n = self.operand(inst, 6)?;
                let dot = self.dot(n, x)?;
                let double = self.scale(dot, 2.0)?;
                let double = self.splat(double, lanes)?;
                let product = self.alu(IrOp::FMul, &[double, n])?;
                self.alu(IrOp::FSub, &[x, product])?
            }
            _ => {
                let (n, eta) = (self.operand(inst, 6)?, self.operand(inst, 7)?);
                let eta = self.convert(IrOp::F2F, self.ty(x).base, eta)?;
                let dot = self.dot(n, x)?;
                let (one, zero) = (self.f(dot, 1.0), self.f(dot, 0.0));
                let square = self.alu(IrOp::FMul, &[dot, dot])?;
                let sine = self.alu(IrOp::FSub, &[one, square])?;
                let squared = self.alu(IrOp::FMul, &[eta, eta])?;
                let product = self.alu(IrOp::FMul, &[squared, sine])?;
                let k = self.alu(IrOp::FSub, &[one, product])?;
                let total = self.alu(IrOp::FLt, &[k, zero])?;
                let root = self.alu(IrOp::FSqrt, &[k])?;
                let factor = self.alu(IrOp::FFma, &[eta, dot, root])?;
                let (factor, eta) = (self.splat(factor, lanes)?, self.splat(eta, lanes)?);
                let (i, n) = (self.alu(IrOp::FMul, &[eta, x])?, self.alu(IrOp::FMul, &[factor, n])?);
                let refracted = self.alu(IrOp::FSub, &[i, n])?;
                let (total, zero) = (self.splat(total, lanes)?, self.splat(zero, lanes)?);
                self.alu(IrOp::Select, &[total, zero, refracted])?
            }
        })
    }

    fn length(&mut self, x: Value) -> Result<Value> {
        if self.ty(x).lanes == 1 {
            return self.alu(IrOp::FAbs, &[x]);
        }
        let square = self.dot(x, x)?;
        self.alu(IrOp::FSqrt, &[square])
    }

    /// A vector of three lanes, rotated down by a number of lanes.
    fn turned(&mut self, x: Value, by: u8) -> Result<Value> {
        let mut lanes = [x; 3];
        for (at, lane) in lanes.iter_mut().enumerate() {
            *lane = self.extract(x, (at as u8 + by) % 3)?;
        }
        self.vec(&lanes)
    }

    fn pack(&mut self, op: G, x: Value) -> Result<Value> {
        let (bits, signed) = match op {
            G::PackDouble2x32 => return self.emit(IrOp::Bitcast, Payload::None, &[x], Type::B64),
            G::PackHalf2x16 => {
                let halves = self.convert(IrOp::F2F, Base::B16, x)?;
                return self.bits_as(halves, Type::B32);
            }
            G::PackSnorm4x8 => (8, true),
            G::PackUnorm4x8 => (8, false),
            G::PackSnorm2x16 => (16, true),
            _ => (16, false),
        };
        let (least, one) = (self.f(x, if signed { -1.0 } else { 0.0 }), self.f(x, 1.0));
        let x = self.alu(IrOp::FMax, &[x, least])?;
        let x = self.alu(IrOp::FMin, &[x, one])?;
        let most = if signed { (1u32 << (bits - 1)) - 1 } else { (1 << bits) - 1 };
        let x = self.scale(x, most.into())?;
        let x = self.alu(IrOp::FRoundEven, &[x])?;
        let whole = self.convert(if signed { IrOp::F2I } else { IrOp::F2U }, Base::B32, x)?;
        let base = if bits == 8 { Base::B8 } else { Base::B16 };
        let narrow = self.convert(IrOp::U2U, base, whole)?;
        self.bits_as(narrow, Type::B32)
    }

    fn bits_as(&mut self, value: Value, ty: Type) -> Result<Value> {
        if self.ty(value).bits() != ty.bits() {
            return invalid("a packed value has the wrong size");
        }
        self.emit(IrOp::Bitcast, Payload::None, &[value], ty)
    }

    fn unpack(&mut self, op: G, x: Value) -> Result<Value> {
        let two = |base| Type { base, lanes: 2 };
        let (bits, signed) = match op {
            G::UnpackDouble2x32 => return self.bits_as(x, two(Base::B32)),
            G::UnpackHalf2x16 => {
                let halves = self.bits_as(x, two(Base::B16))?;
                return self.convert(IrOp::F2F, Base::B32, halves);
            }
            G::UnpackSnorm4x8 => (8, true),
            G::UnpackUnorm4x8 => (8, false),
            G::UnpackSnorm2x16 => (16, true),
            _ => (16, false),
        };
        let narrow = if bits == 8 { Type { base: Base::B8, lanes: 4 } } else { two(Base::B16) };
        let narrow = self.bits_as(x, narrow)?;
        let value = self.convert(if signed { IrOp::I2F } else { IrOp::U2F }, Base::B32, narrow)?;
        let most = if signed { (1u32 << (bits - 1)) - 1 } else { (1 << bits) - 1 };
        let most = self.f(value, most.into());
        let value = self.alu(IrOp::FDiv, &[value, most])?;
        if !signed {
            return Ok(value);
        }
        let least = self.f(value, -1.0);
        self.alu(IrOp::FMax, &[value, least])
    }

    /// `modf` and `frexp`: both results, or one stored through a pointer.
    fn split(&mut self, inst: Instr<'_>, op: G) -> Result<()> {
        let x = self.operand(inst, 5)?;
        let (main, second) = match op {
            G::Modf | G::ModfStruct => {
                let whole = self.alu(IrOp::FTrunc, &[x])?;
                let fraction = self.alu(IrOp::FSub, &[x, whole])?;
                // Infinity has no fraction.
                let (magnitude, infinity) = (self.alu(IrOp::FAbs, &[x])?, self.f(x, f64::INFINITY));
                let infinite = self.alu(IrOp::FEq, &[magnitude, infinity])?;
                let zero = self.f(x, 0.0);
                (self.alu(IrOp::Select, &[infinite, zero, fraction])?, whole)
            }
            _ => (self.alu(IrOp::FFrexpSig, &[x])?, self.alu(IrOp::FFrexpExp, &[x])?),
        };
        if matches!(op, G::ModfStruct | G::FrexpStruct) {
            return self.set_leaves(inst, &[main, second]);
        }
        let val = self.val(inst.word(6)?)?;
        self.store(val, &[second], (Access::NONE, None))?;
        self.set_value(inst, main)
    }

    /// Rows of lanes of a square matrix.
    fn square(&mut self, columns: &[Value]) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        for row in 0..columns.len() {
            let mut lanes = Vec::new();
            for &column in columns {
                if usize::from(self.ty(column).lanes) != columns.len() {
                    return invalid("a matrix is not square");
                }
                lanes.push(self.extract(column, row as u8)?);
            }
            rows.push(lanes);
        }
        if rows.is_empty() || rows.len() > 4 { invalid("a matrix is not square") } else { Ok(rows) }
    }

    /// The determinant. Three columns are expanded into six products, larger matrices along the first column; the order of additions
    /// matters for floats of 16 bits, whose tests allow one unit in the last place.
    fn determinant(&mut self, rows: &[Vec<Value>]) -> Result<Value> {
        let mut parts = Vec::with_capacity(rows.len());
        match rows {
            [row] => return Ok(row[0]),
            [first, second] => {
                let product = self.alu(IrOp::FMul, &[first[0], second[1]])?;
                let other = self.alu(IrOp::FMul, &[first[1], second[0]])?;
                return self.alu(IrOp::FSub, &[product, other]);
            }
            [_, _, _] => {
                for row in 0..3 {
                    let (next, last) = (&rows[(row + 1) % 3], &rows[(row + 2) % 3]);
                    let product = self.alu(IrOp::FMul, &[next[1], last[2]])?;
                    let product = self.alu(IrOp::FMul, &[rows[row][0], product])?;
                    let other = self.alu(IrOp::FMul, &[last[1], next[2]])?;
                    let other = self.alu(IrOp::FMul, &[rows[row][0], other])?;
                    parts.push(self.alu(IrOp::FSub, &[product, other])?);
                }
                let sum = self.alu(IrOp::FAdd, &[parts[1], parts[2]])?;
                return self.alu(IrOp::FAdd, &[parts[0], sum]);
            }
            _ => {}
        }
        for (at, row) in rows.iter().enumerate() {
            let minor = self.minor(rows, at, 0)?;
            parts.push(self.alu(IrOp::FMul, &[row[0], minor])?);
        }
        let [a, b, c, d] = parts[..] else { return Err(SpirvCause::Invalid("a matrix is not square")) };
        let (first, second) = (self.alu(IrOp::FSub, &[a, b])?, self.alu(IrOp::FSub, &[c, d])?);
        self.alu(IrOp::FAdd, &[first, second])
    }

    fn minor(&mut self, rows: &[Vec<Value>], row: usize, column: usize) -> Result<Value> {
        let keep = |skip: usize| move |&(at, _): &(usize, &Value)| at != skip;
        let rest: Vec<Vec<Value>> = rows
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != row)
            .map(|(_, lanes)| lanes.iter().enumerate().filter(keep(column)).map(|(_, &v)| v).collect())
            .collect();
        self.determinant(&rest)
    }

    /// The columns of the inverse: cofactors times one over the determinant.
    fn inverse(&mut self, rows: &[Vec<Value>]) -> Result<Vec<Value>> {
        let determinant = self.determinant(rows)?;
        let one = self.float_constant(self.ty(determinant), 1.0);
        let reciprocal = self.alu(IrOp::FDiv, &[one, determinant])?;
        let mut columns = Vec::new();
        for column in 0..rows.len() {
            let mut lanes = Vec::new();
            for row in 0..rows.len() {
                let mut cofactor = self.minor(rows, column, row)?;
                if (row + column) % 2 == 1 {
                    cofactor = self.alu(IrOp::FNeg, &[cofactor])?;
                }
                lanes.push(self.alu(IrOp::FMul, &[cofactor, reciprocal])?);
            }
            columns.push(self.vec(&lanes)?);
        }
        Ok(columns)
    }

    fn interpolate(&mut self, inst: Instr<'_>, op: G) -> Result<()> {
        let id = inst.word(5)?;
        let val = self.val(id)?;
        let ValKind::Var { var, ty, lane } = val.kind else {
            return Err(SpirvCause::Wrong { id, wanted: "a pointer to an input" });
        };
        if self.shader.vars[var].storage != Storage::Input {
            return Err(SpirvCause::Wrong { id, wanted: "a pointer to an input" });
        }
        let leaf = self.module.types.leaf(ty).ok_or(SpirvCause::Types(inst.op))?;
        let mut path = self.values(&val).to_vec();
        let index = if lane { path.pop() } else { None };
        let at = match op {
            G::InterpolateAtCentroid => InterpAt::Centroid,
            G::InterpolateAtSample => InterpAt::AtSample,
            _ => InterpAt::AtOffset,
        };
        let mut args = Vec::new();
        if at.has_operand() {
            args.push(self.operand(inst, 6)?);
        }
        args.extend(path);
        let mut value = self.emit(IrOp::InterpVar, Payload::Interp(var, at), &args, leaf)?;
        if let Some(index) = index {
            value = self.alu(IrOp::ExtractDyn, &[value, index])?;
        }
        self.set_value(inst, value)
    }
}
