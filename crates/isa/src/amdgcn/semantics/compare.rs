//! Comparisons: `v_cmp_*`, `v_cmpx_*`, `s_cmp_*` by relation and type.

use super::float::Width;
use super::{Mode, Op};
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
            "f" => Op::Compare(|_, _, _| false),
            "lt" => Op::Compare(|_, a, b| (a as $ty) < b as $ty),
            "eq" => Op::Compare(|_, a, b| a as $ty == b as $ty),
            "le" => Op::Compare(|_, a, b| a as $ty <= b as $ty),
            "gt" => Op::Compare(|_, a, b| a as $ty > b as $ty),
            "lg" | "ne" => Op::Compare(|_, a, b| a as $ty != b as $ty),
            "ge" => Op::Compare(|_, a, b| a as $ty >= b as $ty),
            "tru" => Op::Compare(|_, _, _| true),
            _ => return None,
        }
    };
}

/// Comparisons of one type: sixteen relations of numbers, by a function that orders them.
macro_rules! floats {
    ($relation:expr, $order:expr) => {
        match $relation {
            "f" => Op::Compare(|_, _, _| false),
            "lt" => Op::Compare(|m, a, b| $order(m, a, b) == Some(Ordering::Less)),
            "eq" => Op::Compare(|m, a, b| $order(m, a, b) == Some(Ordering::Equal)),
            "le" => Op::Compare(|m, a, b| $order(m, a, b).is_some_and(Ordering::is_le)),
            "gt" => Op::Compare(|m, a, b| $order(m, a, b) == Some(Ordering::Greater)),
            "lg" => Op::Compare(|m, a, b| $order(m, a, b).is_some_and(Ordering::is_ne)),
            "ge" => Op::Compare(|m, a, b| $order(m, a, b).is_some_and(Ordering::is_ge)),
            "o" => Op::Compare(|m, a, b| $order(m, a, b).is_some()),
            "u" => Op::Compare(|m, a, b| $order(m, a, b).is_none()),
            "nge" => Op::Compare(|m, a, b| !$order(m, a, b).is_some_and(Ordering::is_ge)),
            "nlg" => Op::Compare(|m, a, b| !$order(m, a, b).is_some_and(Ordering::is_ne)),
            "ngt" => Op::Compare(|m, a, b| $order(m, a, b) != Some(Ordering::Greater)),
            "nle" => Op::Compare(|m, a, b| !$order(m, a, b).is_some_and(Ordering::is_le)),
            "neq" => Op::Compare(|m, a, b| $order(m, a, b) != Some(Ordering::Equal)),
            "nlt" => Op::Compare(|m, a, b| $order(m, a, b) != Some(Ordering::Less)),
            "tru" => Op::Compare(|_, _, _| true),
            _ => return None,
        }
    };
}

/// The comparison of a relation and a type.
fn relation(relation: &str, ty: &str) -> Option<Op> {
    Some(match ty {
        "i16" => integers!(relation, i16),
        "u16" => integers!(relation, u16),
        "i32" => integers!(relation, i32),
        "u32" => integers!(relation, u32),
        "i64" => integers!(relation, i64),
        "u64" => integers!(relation, u64),
        "f16" if relation == "class" => Op::Compare(|_, a, b| is_class(&Width::F16, a & 0xffff, b as u32)),
        "f32" if relation == "class" => Op::Compare(|_, a, b| is_class(&Width::F32, a, b as u32)),
        "f64" if relation == "class" => Op::Compare(|_, a, b| is_class(&Width::F64, a, b as u32)),
        "f16" => floats!(relation, |m, a, b| order(&Width::F16, m, a, b)),
        "f32" => floats!(relation, order_f32),
        "f64" => floats!(relation, |m, a, b| order(&Width::F64, m, a, b)),
        _ => return None,
    })
}

/// The comparison that a name says: `v_cmp_lt_f32`, `v_cmpsx_lt_f32`, `s_cmpk_lt_i32`. Those of gfx6 that signal do so only to
/// the trap handler.
pub(super) fn find(name: &str) -> Option<Op> {
    let prefixes = ["v_cmpsx_", "v_cmpx_", "v_cmps_", "v_cmp_", "s_cmpk_", "s_cmp_"];
    let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let (said, ty) = rest.split_once('_')?;
    relation(said, ty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gen;

    fn holds(name: &str, m: &Mode, a: u64, b: u64) -> bool {
        let Some(Op::Compare(f)) = find(name) else { panic!("{name}") };
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
        let m = Mode::graphics(Gen::Gfx10);
        let (one, nan) = (u64::from(1f32.to_bits()), 0x7fc0_0000);
        for (name, holding) in [
            ("lt", false),
            ("lg", false),
            ("o", false),
            ("u", true),
            ("nge", true),
            ("nlg", true),
            ("neq", true),
            ("tru", true),
        ] {
            assert_eq!(holds(&format!("v_cmp_{name}_f32"), &m, one, nan), holding, "{name}");
        }
        // Denormals are equal to zero where they do not count.
        assert!(holds("v_cmp_eq_f32", &m, 1, 0x8000_0000));
        assert!(!holds("v_cmp_eq_f32", &Mode { denorm_in_32: true, ..m }, 1, 0x8000_0000));
        assert!(holds("s_cmp_lt_i32", &m, 0xffff_ffff, 0));
        assert!(holds("v_cmp_gt_f16", &m, 0x4000, 0x3c00));
    }
}
