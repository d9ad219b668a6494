//! Conversions of category 1.

use super::{Fibers, Round, float};
use crate::ir3::Type;

/// A float as an integer of so many bits: towards zero, the nearest there is, of NaN 0.
fn to_integer(bits: u32, to: Type) -> u32 {
    let value = f32::from_bits(float::flush(bits));
    match to {
        Type::U8 | Type::U8x32 => u32::from(value as u8),
        Type::U16 => u32::from(value as u16),
        Type::S16 => u32::from(value as i16 as u16),
        Type::S32 => value as i32 as u32,
        _ => value as u32,
    }
}

/// An integer as it is in 64 bits.
fn integer(bits: u32, from: Type) -> i64 {
    match from {
        // Signed, whatever the type is called.
        Type::U8 | Type::U8x32 => i64::from(bits as u8 as i8),
        Type::U16 => i64::from(bits & 0xffff),
        Type::S16 => i64::from(bits as u16 as i16),
        Type::S32 => i64::from(bits as i32),
        _ => i64::from(bits),
    }
}

/// Chooses what `mov` and `cov` do. The result is as wide as its register.
pub fn cat1<F: Fibers<1>>(from: Type, to: Type, round: Round, fibers: F) -> F::Out {
    let mask = if to.is_half() { 0xffff } else { u32::MAX };
    if from == to || !from.is_float() && !to.is_float() && from.bits() == to.bits() {
        return fibers.run(|[a]| a & mask);
    }
    match (from, to) {
        (Type::F32, Type::F16) => fibers.run(|[a]| float::narrow(a, round)),
        (Type::F16, Type::F32) => fibers.run(|[a]| float::widen(a)),
        (Type::F32, _) => fibers.run(|[a]| to_integer(a, to)),
        (Type::F16, _) => fibers.run(|[a]| to_integer(float::widen(a), to)),
        (_, Type::F32) => fibers.run(|[a]| (integer(a, from) as f32).to_bits()),
        (_, Type::F16) => {
            // To odd first: 64 bits of an integer are more than 32 of a float hold.
            fibers.run(|[a]| float::narrow((integer(a, from) as f32).to_bits(), Round::Even))
        }
        _ => fibers.run(|[a]| integer(a, from) as u32 & mask),
    }
}
