//! Reciprocals, roots, exponentials, logarithms, sines.
//!
//! Not exact on hardware; here the value computed in 64 bits is rounded once.

use super::{Alu, Fibers, Opcode, Round, float};

#[inline(always)]
fn apply(alu: Alu, bits: u32, function: impl Fn(f64) -> f64) -> u32 {
    let wide = if alu.half { float::widen(bits) } else { float::flush(bits) };
    let value = function(f64::from(f32::from_bits(wide))) as f32;
    let bits = if value.is_nan() { 0x7fc0_0000 } else { float::flush(value.to_bits()) };
    if alu.half { float::narrow(bits, Round::Even) } else { bits }
}

pub(super) fn cat4<F: Fibers<1>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    Some(match alu.opcode {
        Rcp => fibers.run(|[a]| apply(alu, a, f64::recip)),
        Rsq | Hrsq => fibers.run(|[a]| apply(alu, a, |x| x.sqrt().recip())),
        Log2 | Hlog2 => fibers.run(|[a]| apply(alu, a, f64::log2)),
        Exp2 | Hexp2 => fibers.run(|[a]| apply(alu, a, f64::exp2)),
        Sin => fibers.run(|[a]| apply(alu, a, f64::sin)),
        Cos => fibers.run(|[a]| apply(alu, a, f64::cos)),
        Sqrt => fibers.run(|[a]| apply(alu, a, f64::sqrt)),
        _ => return None,
    })
}
