//! Interpolation of attributes: `parameter · place + added`, where parameters are those of a primitive's vertices.
//!
//! Never: where parameters come from (LDS, or other lanes of the quad). Facts: AMD's ISA manuals. That the product is
//! rounded before the addition up to gfx9, as in `v_mad_f32`, is an assumption.

use super::Mode;
use super::float::{Width, fma_f32, mad_f32};
use super::soft::{self, Env, Round};
use crate::amdgcn::model::Gfx;
use crate::amdgcn::opcode::InterpOp;

/// A step of interpolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interp {
    /// Which parameter is multiplied: 1 for P10, 2 for P20.
    pub parameter: u8,
    /// Parameters have 16 bits.
    half_in: bool,
    /// What is added is a parameter, P0.
    first: bool,
    /// The result has 16 bits.
    half_out: bool,
    /// Towards zero in every mode.
    towards_zero: bool,
}

/// The step that a row computes; `None`: it only moves parameters.
pub fn of(op: InterpOp) -> Option<Interp> {
    let step = |parameter, half_in, half_out, towards_zero| {
        Some(Interp { parameter, half_in, first: parameter == 1, half_out, towards_zero })
    };
    match op {
        InterpOp::v_interp_p1_f32 | InterpOp::v_interp_p10_f32 => step(1, false, false, false),
        InterpOp::v_interp_p2_f32 | InterpOp::v_interp_p2_f32_vinterp => step(2, false, false, false),
        InterpOp::v_interp_p1ll_f16 | InterpOp::v_interp_p1lv_f16 | InterpOp::v_interp_p10_f16_f32 => {
            step(1, true, false, false)
        }
        InterpOp::v_interp_p2_f16 | InterpOp::v_interp_p2_legacy_f16 | InterpOp::v_interp_p2_f16_f32 => {
            step(2, true, true, false)
        }
        InterpOp::v_interp_p10_rtz_f16_f32 => step(1, true, false, true),
        InterpOp::v_interp_p2_rtz_f16_f32 => step(2, true, true, true),
        InterpOp::v_interp_mov_f32 | InterpOp::lds_param_load | InterpOp::lds_direct_load => None,
    }
}

impl Interp {
    /// Whether parameters have 16 bits.
    pub fn half_in(&self) -> bool {
        self.half_in
    }

    /// Whether the result has 16 bits.
    pub fn half_out(&self) -> bool {
        self.half_out
    }

    /// Computes it: the parameter, the place between vertices, what is added. Parameters of 16 bits are in the low half.
    pub fn compute(&self, mode: &Mode, parameter: u32, place: u32, added: u32) -> u32 {
        let mut mode = *mode;
        if self.towards_zero {
            (mode.round_32, mode.round_16_64) = (Round::Zero, Round::Zero);
        }
        let wide = |bits: u32, half: bool| match half {
            true => soft::convert(soft::F16, soft::F32, (bits & 0xffff).into(), Env::IEEE) as u32,
            false => bits,
        };
        let (parameter, added) = (wide(parameter, self.half_in), wide(added, self.half_in && self.first));
        let sum = if mode.generation >= Gfx::Gfx10 {
            fma_f32(&mode, parameter, place, added)
        } else {
            mad_f32(&mode, parameter, place, added)
        };
        if !self.half_out {
            return sum;
        }
        let env = Env { flush_in: false, ..Width::F16.env(&mode) };
        soft::convert(soft::F32, soft::F16, sum.into(), env) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps() {
        let mode = Mode::graphics(Gfx::Gfx11);
        let f = f32::to_bits;
        let compute = |op, a, b, c| of(op).unwrap_or_else(|| panic!("{op:?}")).compute(&mode, a, b, c);
        assert_eq!(compute(InterpOp::v_interp_p10_f32, f(2.0), f(0.25), f(1.0)), f(1.5));
        // 2, 0.25 and 1 in halves.
        assert_eq!(compute(InterpOp::v_interp_p10_f16_f32, 0x4000, f(0.25), 0x3c00), f(1.5));
        assert_eq!(compute(InterpOp::v_interp_p2_f16_f32, 0x4000, f(0.25), f(1.0)), 0x3e00);
        // A third: rounded up to the nearest, and down.
        assert_eq!(compute(InterpOp::v_interp_p2_f16_f32, 0x3c00, f(2.0 / 3.0), 0), 0x3955);
        assert_eq!(compute(InterpOp::v_interp_p2_f16_f32, 0x3c00, f(0.8), 0), 0x3a66);
        assert_eq!(compute(InterpOp::v_interp_p2_f16_f32, 0x3c00, f(0.6), 0), 0x38cd);
        assert_eq!(compute(InterpOp::v_interp_p2_rtz_f16_f32, 0x3c00, f(0.6), 0), 0x38cc);
    }
}
