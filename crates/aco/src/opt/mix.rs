//! Mixed precision: products and sums of 32 bits that read or make floats of 16 bits, which `v_fma_mix_f32` and its like convert themselves.
//!
//! Bits stay the same, unless products and sums may be contracted: without contraction, fused operations do not become `v_mad_mix_f32`, which rounds
//! the product before it adds, and separate operations do not become `v_fma_mix_f32`. A product without a sum adds a negative zero, which changes nothing when rounding to nearest.

use super::combine::Combiner;
use super::parts::{HALVES, WORD};
use super::signs::{SignedValue, apply, only_signs};
use crate::ir::{Inst, Op, Operand};
use crate::machine;
use unwedge_isa::amdgcn::model::{Form, Gfx, Mod, Type};
use unwedge_isa::amdgcn::semantics::soft;
use unwedge_isa::amdgcn::{Mods, Opcode};

/// 1.0.
const ONE: u32 = 0x3f80_0000;

/// The instructions of mixed precision of a GPU.
#[derive(Debug, Clone, Copy)]
struct MixOpcodes {
    /// The instructions with a result of 32 bits, and of 16.
    wide: Opcode,
    half: Opcode,
    /// The product is not rounded before the sum.
    fused: bool,
}

/// An instruction as one of mixed precision.
#[derive(Debug, Clone)]
struct Mixed {
    operands: [Operand; 3],
    mods: Mods,
}

/// The bits of the 16-bit float with the same value as a 32-bit float, if there is one.
fn exact_half(bits: u32) -> Option<u32> {
    use soft::{Env, F16, F32, convert};
    let half = convert(F32, F16, bits.into(), Env::IEEE);
    (!f32::from_bits(bits).is_nan() && convert(F16, F32, half, Env::IEEE) == bits.into())
        .then_some(half as u32)
}

impl Combiner<'_> {
    /// The instructions of mixed precision, where they do what conversions do: denormals of 16 bits are kept, and numbers are rounded to the nearest.
    fn mix_opcodes(&self) -> Option<MixOpcodes> {
        use Opcode as O;
        if self.flushes_halves || !self.nearest {
            return None;
        }
        if self.variants.has(O::v_fma_mix_f32) {
            Some(MixOpcodes { wide: O::v_fma_mix_f32, half: O::v_fma_mixlo_f16, fused: true })
        } else if self.variants.has(O::v_mad_mix_f32) && self.flushes {
            Some(MixOpcodes { wide: O::v_mad_mix_f32, half: O::v_mad_mixlo_f16, fused: false })
        } else {
            None
        }
    }

    /// An instruction that makes 32 bits as one of mixed precision.
    fn mixed(&self, inst: Inst, mix: MixOpcodes) -> Option<Mixed> {
        use Opcode as O;
        let data = &self.program[inst];
        let Op::Hw(opcode) = data.op else { return None };
        let operands = self.program.operands(inst);
        if opcode == mix.wide {
            return Some(Mixed { operands: operands.try_into().ok()?, mods: data.mods });
        }
        let mut signs = data.mods;
        signs.set(Mod::Clamp, 0);
        if !matches!(data.form, Form::Native | Form::E64) || !only_signs(&signs) {
            return None;
        }
        let mut mods = data.mods;
        let (neg, abs) = (mods.get(Mod::Neg), mods.get(Mod::Abs));
        let operands = match (opcode, operands) {
            (O::v_mul_f32, &[a, b]) => {
                mods.set(Mod::Neg, neg | 4);
                [a, b, Operand::c32(0)]
            }
            (O::v_add_f32 | O::v_sub_f32 | O::v_subrev_f32, &[a, b]) => {
                let flipped = match opcode {
                    O::v_sub_f32 => 2,
                    O::v_subrev_f32 => 1,
                    _ => 0,
                };
                mods.set(Mod::Neg, (neg ^ flipped) << 1);
                mods.set(Mod::Abs, abs << 1);
                [Operand::c32(ONE), a, b]
            }
            (O::v_fma_f32, &[a, b, c]) if mix.fused || self.rounds_freely(inst) => [a, b, c],
            (O::v_mad_f32, &[a, b, c]) if !mix.fused => [a, b, c],
            _ => return None,
        };
        Some(Mixed { operands, mods })
    }

    /// Whether an instruction of mixed precision can read its operands.
    fn mix_fits(&self, mixed: &Mixed) -> bool {
        let gfx10 = self.variants.gpu().generation() >= Gfx::Gfx10;
        let (mut scalars, mut literals) = (Vec::new(), Vec::new());
        for operand in &mixed.operands {
            match operand.as_const() {
                Some(bits)
                    if machine::inline(self.variants.gpu(), Type::F32, bits).is_none()
                        && !literals.contains(&bits) =>
                {
                    literals.push(bits);
                }
                Some(_) => {}
                None if operand.is_undef() || operand.reg.is_some() => return false,
                None if operand.class.is_sgpr() && !scalars.contains(&operand.source) => {
                    scalars.push(operand.source);
                }
                None => {}
            }
        }
        let limit = if gfx10 { 2 } else { 1 };
        literals.len() <= usize::from(gfx10) && scalars.len() + literals.len() <= limit
    }

    /// Packs two literals that 16-bit floats represent exactly into the halves of one literal, so neither needs a register.
    pub(super) fn pack_literals(&mut self, inst: Inst) -> bool {
        if self.variants.gpu().generation() < Gfx::Gfx10 {
            return false;
        }
        let Some(mix) = self.mix_opcodes().filter(|mix| mix.fused) else { return false };
        let Some(mut mixed) = self.mixed(inst, mix).filter(|_| !self.is_sign_change(inst)) else {
            return false;
        };
        let literals: [Option<u64>; 3] = std::array::from_fn(|at| {
            let wide = mixed.mods.get(Mod::OpSelHi) >> at & 1 == 0;
            let bits = self.constant_of(mixed.operands[at]).filter(|_| wide)?;
            machine::inline(self.variants.gpu(), Type::F32, bits).is_none().then_some(bits)
        });
        let mut halves: Vec<(u64, u32)> = Vec::new();
        for bits in literals.into_iter().flatten() {
            if let Some(half) = exact_half(bits as u32)
                && halves.iter().all(|(other, _)| *other != bits)
            {
                halves.push((bits, half));
            }
        }
        let &[low, high, ..] = &halves[..] else { return false };
        let packed = low.1 | high.1 << 16;
        if machine::inline(self.variants.gpu(), Type::F32, packed.into()).is_some() {
            return false;
        }
        for (at, bits) in literals.into_iter().enumerate() {
            let Some((upper, _)) = (0..).zip([low.0, high.0]).find(|(_, own)| bits == Some(*own)) else {
                continue;
            };
            mixed.operands[at] = Operand::c32(packed);
            mixed.mods.set(Mod::OpSelHi, mixed.mods.get(Mod::OpSelHi) | 1 << at);
            mixed.mods.set(Mod::OpSel, mixed.mods.get(Mod::OpSel) | upper << at);
        }
        if !self.mix_fits(&mixed) {
            return false;
        }
        let (freedom, exact) = (self.program[inst].freedom, self.program[inst].exact);
        self.become_op(inst, mix.wide, &mixed.operands);
        let data = &mut self.program[inst];
        (data.mods, data.freedom, data.exact) = (mixed.mods, freedom, exact);
        true
    }

    /// Reads floats of 16 bits without a conversion before.
    pub(super) fn mix_inputs(&mut self, inst: Inst) -> bool {
        let Some(mix) = self.mix_opcodes() else { return false };
        let Some(mut mixed) = self.mixed(inst, mix).filter(|_| !self.is_sign_change(inst)) else {
            return false;
        };
        let (freedom, exact) = (self.program[inst].freedom, self.program[inst].exact);
        for at in 0..3 {
            if mixed.mods.get(Mod::OpSelHi) >> at & 1 != 0 {
                continue;
            }
            let Some(inner) = self.only_maker(mixed.operands[at]) else { continue };
            let data = &self.program[inner];
            // SDWA chooses a half.
            let chosen = data.mods.get(Mod::Src0Sel) - HALVES;
            let sdwa =
                data.form == Form::Sdwa && matches!(chosen, 0 | 1) && data.mods.get(Mod::DstSel) == WORD;
            let mut signs = data.mods;
            if sdwa {
                signs.set(Mod::Src0Sel, 0);
                signs.set(Mod::DstSel, 0);
            }
            let named = signs.get(Mod::OpSel) == 1;
            if named {
                signs.set(Mod::OpSel, 0);
            }
            let long = matches!(data.form, Form::Native | Form::E64) || sdwa;
            if data.op != Op::Hw(Opcode::v_cvt_f32_f16) || !long || !only_signs(&signs) {
                continue;
            }
            let upper = named || sdwa && chosen == 1;
            let signed = SignedValue {
                value: self.program.operands(inner)[0],
                negated: data.mods.has(Mod::Neg),
                absolute: data.mods.has(Mod::Abs),
            };
            if signed.value.as_temp().is_none() {
                continue;
            }
            let bit = 1 << at;
            apply(&mut mixed.mods, bit, signed);
            mixed.mods.set(Mod::OpSelHi, mixed.mods.get(Mod::OpSelHi) | bit);
            mixed.operands[at] = signed.value;
            let half = self.half_of_word(signed.value).filter(|_| !sdwa && !named);
            if let Some((word, _)) = half {
                mixed.operands[at] = word;
            }
            if half.map_or(upper, |(_, upper)| upper) {
                mixed.mods.set(Mod::OpSel, mixed.mods.get(Mod::OpSel) | bit);
            }
            if !self.mix_fits(&mixed) {
                return false;
            }
            self.become_op(inst, mix.wide, &mixed.operands);
            let data = &mut self.program[inst];
            (data.mods, data.freedom, data.exact) = (mixed.mods, freedom, exact);
            return true;
        }
        false
    }

    /// Makes a float of 16 bits without a conversion after.
    pub(super) fn mix_output(&mut self, inst: Inst) -> bool {
        let data = &self.program[inst];
        if data.op != Op::Hw(Opcode::v_cvt_f16_f32)
            || !matches!(data.form, Form::Native | Form::E64)
            || data.mods != Mods::default()
        {
            return false;
        }
        let Some(mix) = self.mix_opcodes() else { return false };
        let Some(inner) = self.only_maker(self.program.operands(inst)[0]) else { return false };
        let Some(mixed) = self.mixed(inner, mix).filter(|mixed| self.mix_fits(mixed)) else { return false };
        let freedom = data.freedom.and(self.program[inner].freedom);
        let exact = data.exact || self.program[inner].exact;
        self.become_op(inst, mix.half, &mixed.operands);
        let data = &mut self.program[inst];
        (data.mods, data.freedom, data.exact) = (mixed.mods, freedom, exact);
        true
    }

    /// Whether an instruction is free to round a product before it is added, or not to.
    fn rounds_freely(&self, inst: Inst) -> bool {
        self.program.contract && !self.program[inst].exact
    }

    /// Folds a product into a mixed-precision sum, if rounding allows it.
    pub(super) fn mix_sum(&mut self, inst: Inst) -> bool {
        let Some(mix) = self.mix_opcodes().filter(|mix| !mix.fused || self.rounds_freely(inst)) else {
            return false;
        };
        let data = &self.program[inst];
        let signs = match data.op {
            Op::Hw(Opcode::v_add_f32) => [0, 0],
            Op::Hw(Opcode::v_sub_f32) => [0, 1],
            Op::Hw(Opcode::v_subrev_f32) => [1, 0],
            _ => return false,
        };
        if !matches!(data.form, Form::Native | Form::E64) || !only_signs(&data.mods) {
            return false;
        }
        let (mods, freedom, exact) = (data.mods, data.freedom, data.exact);
        let operands = self.program.operands(inst).to_vec();
        for at in 0..2 {
            let Some(inner) = self.only_maker(operands[at]) else { continue };
            let data = &self.program[inner];
            let own = self.program.operands(inner);
            let alone = data.op == Op::Hw(mix.wide)
                && !data.mods.has(Mod::Clamp)
                && (!mix.fused || self.rounds_freely(inner))
                && own[2].is_const(0)
                && data.mods.get(Mod::Neg) & 4 != 0
                && mods.get(Mod::Abs) >> at & 1 == 0;
            if !alone {
                continue;
            }
            let mut mixed = Mixed { operands: [own[0], own[1], operands[1 - at]], mods: data.mods };
            let negated = |at: usize| signs[at] ^ mods.get(Mod::Neg) >> at & 1;
            mixed.mods.set(Mod::Neg, data.mods.get(Mod::Neg) & 3 ^ negated(at) | negated(1 - at) << 2);
            mixed.mods.set(Mod::Abs, data.mods.get(Mod::Abs) & 3 | (mods.get(Mod::Abs) >> (1 - at) & 1) << 2);
            if !self.mix_fits(&mixed) {
                continue;
            }
            let (freedom, exact) = (freedom.and(data.freedom), exact || data.exact);
            self.become_op(inst, mix.wide, &mixed.operands);
            let data = &mut self.program[inst];
            (data.mods, data.freedom, data.exact) = (mixed.mods, freedom, exact);
            return true;
        }
        false
    }
}
