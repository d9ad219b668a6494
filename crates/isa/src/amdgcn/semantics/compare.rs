//! Comparisons: `v_cmp_*`, `v_cmpx_*`, `s_cmp_*` by relation and type.

use super::float::Width;
use super::{Mode, Op};
use crate::amdgcn::model::{Relation, Type};
use std::cmp::Ordering;

/// The ten classes of numbers that `class` instructions ask for.
pub fn is_class(width: &Width, bits: u64, mask: u32) -> bool {
    let format = width.format;
    let negative = bits & format.sign() != 0;
    let magnitude = bits & !format.sign();
    let class = if format.is_signalling(bits) {
        0
    } else if format.is_nan(bits) {
        1
    } else {
        let kind = if magnitude == format.infinity() {
            0
        } else if magnitude >> format.fraction != 0 {
            1
        } else if magnitude != 0 {
            2
        } else {
            3
        };
        if negative { 2 + kind } else { 9 - kind }
    };
    mask >> class & 1 != 0
}

/// How two numbers compare; `None` if one is NaN.
fn order(width: &Width, m: &Mode, a: u64, b: u64) -> Option<Ordering> {
    let mask = width.format.mask();
    let [a, b] = [a & mask, b & mask].map(|bits| width.input(m, bits));
    width.value(a).partial_cmp(&width.value(b))
}

/// As [`order`] in 32 bits.
#[inline(always)]
fn order_f32(m: &Mode, a: u64, b: u64) -> Option<Ordering> {
    let flush = |bits: u64| {
        let bits = bits as u32;
        f32::from_bits(if !m.denorm_in_32 && bits & 0x7f80_0000 == 0 { 0 } else { bits })
    };
    flush(a).partial_cmp(&flush(b))
}

/// Comparisons of one type: six relations of integers.
macro_rules! integers {
    ($relation:expr, $ty:ty) => {
        match $relation {
            Relation::F => Op::Compare(|_, _, _| false),
            Relation::Lt => Op::Compare(|_, a, b| (a as $ty) < b as $ty),
            Relation::Eq => Op::Compare(|_, a, b| a as $ty == b as $ty),
            Relation::Le => Op::Compare(|_, a, b| a as $ty <= b as $ty),
            Relation::Gt => Op::Compare(|_, a, b| a as $ty > b as $ty),
            Relation::Lg | Relation::Ne => Op::Compare(|_, a, b| a as $ty != b as $ty),
            Relation::Ge => Op::Compare(|_, a, b| a as $ty >= b as $ty),
            Relation::Tru => Op::Compare(|_, _, _| true),
            _ => return None,
        }
    };
}

/// Comparisons of one type: sixteen relations of numbers, by a function that orders them.
macro_rules! floats {
    ($relation:expr, $order:expr) => {
        match $relation {
            Relation::F => Op::Compare(|_, _, _| false),
            Relation::Lt => Op::Compare(|m, a, b| $order(m, a, b) == Some(Ordering::Less)),
            Relation::Eq => Op::Compare(|m, a, b| $order(m, a, b) == Some(Ordering::Equal)),
            Relation::Le => Op::Compare(|m, a, b| $order(m, a, b).is_some_and(Ordering::is_le)),
            Relation::Gt => Op::Compare(|m, a, b| $order(m, a, b) == Some(Ordering::Greater)),
            Relation::Lg => Op::Compare(|m, a, b| $order(m, a, b).is_some_and(Ordering::is_ne)),
            Relation::Ge => Op::Compare(|m, a, b| $order(m, a, b).is_some_and(Ordering::is_ge)),
            Relation::O => Op::Compare(|m, a, b| $order(m, a, b).is_some()),
            Relation::U => Op::Compare(|m, a, b| $order(m, a, b).is_none()),
            Relation::Nge => Op::Compare(|m, a, b| !$order(m, a, b).is_some_and(Ordering::is_ge)),
            Relation::Nlg => Op::Compare(|m, a, b| !$order(m, a, b).is_some_and(Ordering::is_ne)),
            Relation::Ngt => Op::Compare(|m, a, b| $order(m, a, b) != Some(Ordering::Greater)),
            Relation::Nle => Op::Compare(|m, a, b| !$order(m, a, b).is_some_and(Ordering::is_le)),
            Relation::Neq => Op::Compare(|m, a, b| $order(m, a, b) != Some(Ordering::Equal)),
            Relation::Nlt => Op::Compare(|m, a, b| $order(m, a, b) != Some(Ordering::Less)),
            Relation::Tru => Op::Compare(|_, _, _| true),
            _ => return None,
        }
    };
}

/// The comparison of a relation and a type; `None`: the type has no such relation. Those of gfx6 that signal do so only to
/// the trap handler.
pub(super) fn of(relation: Relation, ty: Type) -> Option<Op> {
    Some(match ty {
        Type::I16 => integers!(relation, i16),
        Type::U16 => integers!(relation, u16),
        Type::I32 => integers!(relation, i32),
        Type::U32 => integers!(relation, u32),
        Type::I64 => integers!(relation, i64),
        Type::U64 => integers!(relation, u64),
        Type::F16 if relation == Relation::Class => {
            Op::Compare(|_, a, b| is_class(&Width::F16, a & 0xffff, b as u32))
        }
        Type::F32 if relation == Relation::Class => Op::Compare(|_, a, b| is_class(&Width::F32, a, b as u32)),
        Type::F64 if relation == Relation::Class => Op::Compare(|_, a, b| is_class(&Width::F64, a, b as u32)),
        Type::F16 => floats!(relation, |m, a, b| order(&Width::F16, m, a, b)),
        Type::F32 => floats!(relation, order_f32),
        Type::F64 => floats!(relation, |m, a, b| order(&Width::F64, m, a, b)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;

    fn holds(relation: Relation, ty: Type, m: &Mode, a: u64, b: u64) -> bool {
        let Some(Op::Compare(f)) = of(relation, ty) else { panic!("{relation:?} {ty:?}") };
        f(m, a, b)
    }

    #[test]
    fn classes() {
        let bits = |value: f32| u64::from(value.to_bits());
        let numbers = [
            0x7f80_0001,
            0x7fc0_0000,
            bits(f32::NEG_INFINITY),
            bits(-1.0),
            0x8000_0001,
            bits(-0.0),
            0,
            1,
            bits(1.0),
            bits(f32::INFINITY),
        ];
        for (at, number) in numbers.into_iter().enumerate() {
            for class in 0..10 {
                assert_eq!(is_class(&Width::F32, number, 1 << class), class == at, "{number:#x}");
            }
        }
    }

    #[test]
    fn unordered_numbers() {
        let m = Mode::graphics(Gfx::Gfx10);
        let (one, nan) = (u64::from(1f32.to_bits()), 0x7fc0_0000);
        for (relation, holding) in [
            (Relation::Lt, false),
            (Relation::Lg, false),
            (Relation::O, false),
            (Relation::U, true),
            (Relation::Nge, true),
            (Relation::Nlg, true),
            (Relation::Neq, true),
            (Relation::Tru, true),
        ] {
            assert_eq!(holds(relation, Type::F32, &m, one, nan), holding, "{relation:?}");
        }
        // Denormals are equal to zero where they do not count.
        assert!(holds(Relation::Eq, Type::F32, &m, 1, 0x8000_0000));
        assert!(!holds(Relation::Eq, Type::F32, &Mode { denorm_in_32: true, ..m }, 1, 0x8000_0000));
        assert!(holds(Relation::Lt, Type::I32, &m, 0xffff_ffff, 0));
        assert!(holds(Relation::Gt, Type::F16, &m, 0x4000, 0x3c00));
    }
}
