//! Operands as they are executed: where a value comes from, and what is done to it on the way.

use unwedge_isa::amdgcn::RegHalf;
use unwedge_isa::amdgcn::model::{Class, Encoding, Mod, OperandSlot, Trait, Type};
use unwedge_isa::amdgcn::{Inst, Opcode, Operand, Reg};

/// How many scalar registers have a number of their own.
pub(super) const SREGS: usize = 136;

/// The number of a vector or accumulation register; for a scalar register, a number that no such register has.
pub(super) fn number(reg: Reg) -> u16 {
    reg.lane_number().unwrap_or(i16::MAX as u16)
}

/// A vector register by its number.
pub(super) const fn vector(n: u16) -> Reg {
    Reg(Reg::VGPR0.0 + n)
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// By its number of all vector registers: accumulation registers are those from 256 on.
    Vgpr(u16),
    /// A scalar register, or a special one whose value the wave knows.
    Scalar(Reg),
    Const(u64),
}

/// Which part of a dword is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DwordPart {
    Whole,
    Byte(u8),
    Word(u8),
}

/// Halves of a packed source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) high: [bool; 2],
    pub(super) neg: [bool; 2],
}

/// A source of an operation on lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneSource {
    pub(super) from: From,
    /// Its width in bits, as the operation takes it.
    pub(super) bits: u16,
    pub(super) part: DwordPart,
    pub(super) sext: bool,
    pub(super) neg: bool,
    pub(super) abs: bool,
    pub(super) packed: Option<Packed>,
    /// Of mixed precision, 16 bits to be widened.
    pub(super) widen: bool,
}

impl LaneSource {
    /// No source: zero.
    pub(super) const NONE: LaneSource = LaneSource {
        from: From::Const(0),
        bits: 32,
        part: DwordPart::Whole,
        sext: false,
        neg: false,
        abs: false,
        packed: None,
        widen: false,
    };

    /// Whether it is a vector register as it is.
    pub(super) fn plain(&self) -> Option<u16> {
        match self.from {
            From::Vgpr(n)
                if self.part == DwordPart::Whole
                    && !self.neg
                    && !self.abs
                    && !self.widen
                    && !self.sext
                    && self.packed.is_none() =>
            {
                Some(n)
            }
            _ => None,
        }
    }

    /// Applies its modifiers to a value; `signs` leaves those of the sign out, as for bits that say what is unknown.
    #[inline]
    pub(super) fn modify(&self, value: u32, signs: bool) -> u32 {
        let mut value = match self.part {
            DwordPart::Whole => value,
            DwordPart::Byte(n) if self.sext => (value >> (n * 8)) as u8 as i8 as u32,
            DwordPart::Byte(n) => value >> (n * 8) & 0xff,
            DwordPart::Word(n) if self.sext => (value >> (n * 16)) as u16 as i16 as u32,
            DwordPart::Word(n) => value >> (n * 16) & 0xffff,
        };
        if let Some(packed) = self.packed {
            let half = |at: usize| {
                let bits = if packed.high[at] { value >> 16 } else { value & 0xffff };
                if packed.neg[at] && signs { bits ^ 0x8000 } else { bits }
            };
            return half(0) | half(1) << 16;
        }
        if self.widen && signs {
            value = widen(value);
        }
        if signs && (self.abs || self.neg) {
            let sign = if self.bits == 16 && !self.widen { 0x8000 } else { 1 << 31 };
            if self.abs {
                value &= !sign;
            }
            if self.neg {
                value ^= sign;
            }
        }
        value
    }
}

/// 16 bits of floating point as 32.
fn widen(value: u32) -> u32 {
    use unwedge_isa::amdgcn::semantics::soft;
    soft::convert(soft::F16, soft::F32, (value & 0xffff).into(), soft::Env::IEEE) as u32
}

/// The value of an inline constant for a type.
pub(super) fn inline(code: u8, ty: Type) -> u64 {
    let integer = match code {
        128..=192 => i64::from(code) - 128,
        193..=208 => 192 - i64::from(code),
        _ => return float(code, ty),
    };
    if ty.bits() >= 64 { integer as u64 } else { u64::from(integer as u32) }
}

fn float(code: u8, ty: Type) -> u64 {
    let value: f64 = match code {
        240 => 0.5,
        241 => -0.5,
        242 => 1.0,
        243 => -1.0,
        244 => 2.0,
        245 => -2.0,
        246 => 4.0,
        247 => -4.0,
        _ => 0.0,
    };
    let inverse = code == 248;
    match ty {
        Type::F16 | Type::B16 | Type::I16 | Type::U16 | Type::PkF16 => match code {
            248 => 0x3118,
            _ => {
                let bits = (value as f32).to_bits();
                // All of these have short fractions.
                let half = (bits >> 16 & 0x8000) | ((bits >> 23 & 0xff).wrapping_sub(112) & 0x1f) << 10;
                u64::from(if value == 0.0 { 0 } else { half })
            }
        },
        Type::Bf16 | Type::PkBf16 if inverse => 0x3e22,
        Type::Bf16 | Type::PkBf16 => u64::from((value as f32).to_bits() >> 16),
        _ if ty.bits() == 64 && ty != Type::PkF32 => {
            if inverse {
                0x3fc4_5f30_6dc9_c882
            } else {
                value.to_bits()
            }
        }
        _ => u64::from(if inverse { 0x3e22_f983 } else { (value as f32).to_bits() }),
    }
}

/// A literal for a type: of 64 bits of floating point the upper half, of signed integers sign-extended.
pub(super) fn literal(value: u32, ty: Type) -> u64 {
    match ty {
        Type::F64 => u64::from(value) << 32,
        Type::I64 => i64::from(value as i32) as u64,
        _ => value.into(),
    }
}

/// Where the value of an operand comes from.
pub(super) fn from(operand: Operand, ty: Type) -> Option<From> {
    Some(match operand {
        Operand::Reg { reg, .. } => reg.lane_number().map_or(From::Scalar(reg), From::Vgpr),
        Operand::Inline(code) => From::Const(inline(code, ty)),
        Operand::Literal(value) => From::Const(literal(value, ty)),
        Operand::Imm(value) => From::Const(value as u32 as u64),
        Operand::None | Operand::Off | Operand::List(_) => return None,
    })
}

/// Whether an encoding is a form with SDWA.
pub(super) fn is_sdwa(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::Vop1Sdwa | Encoding::Vop2Sdwa | Encoding::VopcSdwa)
}

/// Part of a dword by an SDWA selector.
pub(super) fn part(selector: i32) -> DwordPart {
    match selector {
        0..=3 => DwordPart::Byte(selector as u8),
        4 => DwordPart::Word(0),
        5 => DwordPart::Word(1),
        _ => DwordPart::Whole,
    }
}

/// A source operand of the vector ALU with the modifiers of its instruction.
pub(super) fn source(inst: &Inst, slot: &OperandSlot, operand: Operand) -> Option<LaneSource> {
    let from = from(operand, slot.ty)?;
    let mods = &inst.mods;
    let at = slot.source;
    let bit = |id: Mod| at < 3 && mods.get(id) >> at & 1 != 0;
    let mut source = LaneSource { from, bits: slot.ty.bits(), ..LaneSource::NONE };
    let encoding = inst.variant().encoding;
    if inst.row().traits.has(Trait::Mix) {
        source.neg = bit(Mod::Neg) || bit(Mod::NegLo);
        source.abs = bit(Mod::Abs) || bit(Mod::NegHi);
        source.bits = 32;
        if bit(Mod::OpSelHi) {
            source.widen = true;
            source.part = DwordPart::Word(u8::from(bit(Mod::OpSel)));
        }
        // A constant for 16 bits is one of 32 bits where the source is not widened.
        if let (Operand::Inline(code), false) = (operand, source.widen) {
            source.from = From::Const(inline(code, Type::F32));
        }
        return Some(source);
    }
    if matches!(encoding, Encoding::Vop3p | Encoding::Vop3pDpp | Encoding::Vop3pDpp8) {
        if slot.ty.is_packed() {
            let packed = Packed {
                high: [bit(Mod::OpSel), bit(Mod::OpSelHi)],
                neg: [bit(Mod::NegLo), bit(Mod::NegHi)],
            };
            if packed.high != [false, true] || packed.neg != [false; 2] {
                source.packed = Some(packed);
            }
        } else if slot.ty.is_float() {
            source.neg = bit(Mod::NegLo);
            source.abs = bit(Mod::NegHi);
        }
        return Some(source);
    }
    source.neg = bit(Mod::Neg);
    source.abs = bit(Mod::Abs);
    if is_sdwa(encoding) {
        let selector = match at {
            0 => Some(Mod::Src0Sel),
            1 => Some(Mod::Src1Sel),
            _ => None,
        };
        source.part = selector.map_or(DwordPart::Whole, |id| part(mods.get(id)));
        source.sext = bit(Mod::Sext);
        return Some(source);
    }
    let half = match operand {
        Operand::Reg { half, .. } => half,
        _ => RegHalf::Whole,
    };
    // The distance has 16 bits, although the text shows that on later GPUs only.
    let distance = at == 2 && matches!(inst.opcode(), Opcode::v_alignbit_b32 | Opcode::v_alignbyte_b32);
    let selects = slot.ty.bits() == 16 || distance;
    if selects && (half == RegHalf::High || bit(Mod::OpSel) && slot.class != Class::SrcHalf) {
        source.part = DwordPart::Word(1);
    }
    Some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants() {
        assert_eq!(inline(193, Type::B32), 0xffff_ffff);
        assert_eq!(inline(208, Type::B64), -16i64 as u64);
        assert_eq!(inline(242, Type::F32), 0x3f80_0000);
        assert_eq!(inline(242, Type::F64), 1f64.to_bits());
        let halves = [
            (240, 0x3800),
            (241, 0xb800),
            (242, 0x3c00),
            (243, 0xbc00),
            (244, 0x4000),
            (247, 0xc400),
            (248, 0x3118),
        ];
        for (code, bits) in halves {
            assert_eq!(inline(code, Type::F16), bits, "{code}");
        }
        assert_eq!(literal(0x3ff0_0000, Type::F64), 1f64.to_bits());
        assert_eq!(literal(u32::MAX, Type::I64), u64::MAX);
    }
}
