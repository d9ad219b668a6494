//! Quotients and roots of 64 bits: steps of Newton from the approximations of the hardware, which have more than 26 correct bits. Quotients and square
//! roots are correctly rounded where the mode rounds to the nearest; reciprocals of square roots are off by at most two units in the last place.

use super::Selector;
use crate::ir::{Definition, FloatFreedom, NewInst, Operand, PhysReg, RegClass};
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};

const ONE: u64 = 0x3ff0_0000_0000_0000;
const HALF: u64 = 0x3fe0_0000_0000_0000;
/// 3/8, the third coefficient of the series of the inverse square root.
const THREE_EIGHTHS: u64 = 0x3fd8_0000_0000_0000;
/// 2^-767: below it, the remainder of a square would be a denormal.
const SMALL: u64 = 0x1000_0000_0000_0000;
/// Classes of zeros and positive infinity, as `v_cmp_class_f64` numbers them.
const ZEROS_AND_INFINITIES: u32 = 1 << 2 | 1 << 5 | 1 << 6 | 1 << 9;

impl Selector<'_> {
    /// The steps are those of one operation: none of them may be done in another way.
    fn steps<T>(&mut self, steps: impl FnOnce(&mut Self) -> T) -> T {
        let old = (self.exact, self.freedom);
        (self.exact, self.freedom) = (true, FloatFreedom::default());
        let result = steps(self);
        (self.exact, self.freedom) = old;
        result
    }

    fn double(&mut self, opcode: Opcode, operands: &[Operand]) -> Operand {
        self.valu(opcode, RegClass::V2, operands)
    }

    /// `a · b + c`, with signs of operands changed by a mask.
    fn fused(&mut self, operands: [Operand; 3], signs: i32) -> Operand {
        let mut mods = Mods::default();
        mods.set(Mod::Neg, signs);
        self.valu_with(Opcode::v_fma_f64, RegClass::V2, &operands, mods)
    }

    /// A source of a quotient, scaled so that no step overflows or loses bits, and the lanes whose result is scaled back.
    fn division_scaled(&mut self, source: Operand, denominator: Operand, numerator: Operand) -> [Operand; 2] {
        let mask = self.program.lane_mask();
        let (value, lanes) = (self.program.make_temp(RegClass::V2), self.program.make_temp(mask));
        let definitions =
            [Definition::temp(value, RegClass::V2), Definition::fixed(lanes, mask, PhysReg::VCC)];
        self.add(&NewInst::hw(Opcode::v_div_scale_f64, &definitions, &[source, denominator, numerator]));
        [Operand::temp(value, RegClass::V2), Operand::temp(lanes, mask)]
    }

    /// A quotient.
    pub(super) fn quotient64(&mut self, numerator: Operand, denominator: Operand) -> Operand {
        let [n, d] = [numerator, denominator].map(|operand| self.in_vgpr(operand));
        self.steps(|own| {
            let one = Operand::c64(ONE);
            let [divisor, _] = own.division_scaled(d, d, n);
            let [dividend, mut lanes] = own.division_scaled(n, d, n);
            if own.gfx == Gfx::Gfx6 {
                lanes = own.scaled_lanes([n, d], [dividend, divisor]);
            }
            let mut inverse = own.double(Opcode::v_rcp_f64, &[divisor]);
            for _ in 0..2 {
                let error = own.fused([divisor, inverse, one], 1);
                inverse = own.fused([inverse, error, inverse], 0);
            }
            let quotient = own.double(Opcode::v_mul_f64, &[dividend, inverse]);
            let rest = own.fused([divisor, quotient, dividend], 1);
            let operands = [rest, inverse, quotient, Operand { reg: Some(PhysReg::VCC), ..lanes }];
            let quotient = own.hw(Opcode::v_div_fmas_f64, RegClass::V2, &operands);
            own.double(Opcode::v_div_fixup_f64, &[quotient, d, n])
        })
    }

    /// The lanes whose result is scaled back: those in which one source is scaled, and the other is not. gfx6 does not give them with the scaled sources.
    fn scaled_lanes(&mut self, sources: [Operand; 2], scaled: [Operand; 2]) -> Operand {
        let mut same = [sources[0]; 2];
        for (at, (source, scaled)) in sources.into_iter().zip(scaled).enumerate() {
            let highs = [source, scaled].map(|value| self.words(value)[1]);
            same[at] = self.valu_compare(Opcode::v_cmp_eq_u32, &highs);
        }
        let opcode = self.sized(Opcode::s_xor_b32, Opcode::s_xor_b64);
        self.salu(opcode, self.program.lane_mask(), &same)
    }

    /// A square root: the root and half its inverse, refined together (Goldschmidt), then the root by its exact remainder, twice.
    pub(super) fn root64(&mut self, value: Operand) -> Operand {
        let v1 = RegClass::V1;
        let value = self.in_vgpr(value);
        self.steps(|own| {
            let half = Operand::c64(HALF);
            let small = own.copy(RegClass::S2, Operand::c64(SMALL));
            let is_small = own.valu_compare(Opcode::v_cmp_gt_f64, &[small, value]);
            let zero = Operand::c32(0);
            let up = own.in_vgpr(Operand::c32(256));
            let up = own.valu(Opcode::v_cndmask_b32, v1, &[zero, up, is_small]);
            let scaled = own.double(Opcode::v_ldexp_f64, &[value, up]);
            let inverse = own.double(Opcode::v_rsq_f64, &[scaled]);
            let root = own.double(Opcode::v_mul_f64, &[scaled, inverse]);
            let half_inverse = own.double(Opcode::v_mul_f64, &[inverse, half]);
            let error = own.fused([half_inverse, root, half], 1);
            let mut root = own.fused([root, error, root], 0);
            let half_inverse = own.fused([half_inverse, error, half_inverse], 0);
            for _ in 0..2 {
                let rest = own.fused([root, root, scaled], 1);
                root = own.fused([rest, half_inverse, root], 0);
            }
            let down = own.in_vgpr(Operand::c32(-128i32 as u32));
            let down = own.valu(Opcode::v_cndmask_b32, v1, &[zero, down, is_small]);
            let root = own.double(Opcode::v_ldexp_f64, &[root, down]);
            own.unless_special(inverse, scaled, root)
        })
    }

    /// One over a square root.
    pub(super) fn inverse_root64(&mut self, value: Operand) -> Operand {
        let value = self.in_vgpr(value);
        self.steps(|own| {
            let inverse = own.double(Opcode::v_rsq_f64, &[value]);
            let root = own.double(Opcode::v_mul_f64, &[value, inverse]);
            let error = own.fused([root, inverse, Operand::c64(ONE)], 1);
            let three_eighths = own.copy(RegClass::S2, Operand::c64(THREE_EIGHTHS));
            let series = own.fused([error, three_eighths, Operand::c64(HALF)], 0);
            let product = own.double(Opcode::v_mul_f64, &[inverse, error]);
            let refined = own.fused([product, series, inverse], 0);
            own.unless_special(inverse, inverse, refined)
        })
    }

    /// A value, or another one where the inverse root is infinite or zero.
    fn unless_special(&mut self, inverse: Operand, special: Operand, value: Operand) -> Operand {
        let classes = self.in_vgpr(Operand::c32(ZEROS_AND_INFINITIES));
        let is_special = self.valu_compare(Opcode::v_cmp_class_f64, &[inverse, classes]);
        let [special, value] = [special, value].map(|operand| self.words(operand));
        let words: Vec<Operand> = value
            .into_iter()
            .zip(special)
            .map(|(value, special)| {
                self.valu(Opcode::v_cndmask_b32, RegClass::V1, &[value, special, is_special])
            })
            .collect();
        self.create(RegClass::V2, &words)
    }
}
