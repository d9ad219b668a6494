//! What atomic operations do to memory: `(old, data, compared)` to the new value, by the words of a mnemonic.

use super::Mode;
use super::float::Width;
use super::minmax;

/// An atomic operation on one value.
pub type Atomic = fn(&Mode, u64, u64, u64) -> u64;

/// Values of an atomic operation: how they are told from others of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
}

fn dec(old: u64, data: u64, mask: u64) -> u64 {
    if old == 0 || old > data { data } else { old.wrapping_sub(1) & mask }
}

/// Where zero wraps depends on the width.
macro_rules! both {
    ($kind:expr, |$old:ident, $data:ident| $small:expr, $wide:expr) => {
        match $kind {
            Kind::B32 => |_, $old, $data, _| $small,
            Kind::B64 => |_, $old, $data, _| $wide,
        }
    };
}

fn float(kind: Kind, greater: bool) -> Atomic {
    match (kind, greater) {
        (Kind::B32, false) => |m, old, data, _| minmax::number(&Width::F32, m, old, data, false),
        (Kind::B32, true) => |m, old, data, _| minmax::number(&Width::F32, m, old, data, true),
        (Kind::B64, false) => |m, old, data, _| minmax::number(&Width::F64, m, old, data, false),
        (Kind::B64, true) => |m, old, data, _| minmax::number(&Width::F64, m, old, data, true),
    }
}

fn pairs(width: &Width, m: &Mode, old: u64, data: u64) -> u64 {
    // Memory does not know that bit of the mode.
    let m = &Mode { saturate_16: false, ..*m };
    let half = |shift: u64| width.add(m, old >> shift & 0xffff, data >> shift & 0xffff);
    half(0) | half(16) << 16
}

/// The operation a mnemonic's row names: `global_atomic_add_x2`, `ds_max_rtn_i32`, `buffer_atomic_fmin`, `s_atomic_smax`,
/// `image_atomic_swap`, `ds_wrxchg_rtn_b32`.
pub fn find(name: &str) -> Option<(Atomic, Kind)> {
    let rest = match name.split_once("atomic_") {
        Some((_, rest)) => rest,
        None => name.strip_prefix("ds_")?,
    };
    let wide = ["_x2", "64"].iter().any(|end| rest.ends_with(end));
    let kind = if wide { Kind::B64 } else { Kind::B32 };
    let rest = rest.replace("_rtn", "").replace("_src2", "");
    let rest = rest.strip_suffix("_x2").unwrap_or(&rest);
    let float_type = rest.ends_with("_f32") || rest.ends_with("_f64") || rest.ends_with("_flt");
    let signed = rest.ends_with("_i32") || rest.ends_with("_i64");
    let word = if rest.starts_with("pk_") { rest } else { rest.split('_').next()? };
    let atomic: Atomic = match (word, kind) {
        ("swap" | "wrxchg" | "write", _) => |_, _, data, _| data,
        ("fcmpswap", Kind::B32) => |_, old, data, cmp| {
            if f32::from_bits(old as u32) == f32::from_bits(cmp as u32) { data } else { old }
        },
        ("fcmpswap", Kind::B64) => |_, old, data, cmp| {
            if f64::from_bits(old) == f64::from_bits(cmp) { data } else { old }
        },
        ("cmpst" | "cmpstore" | "cmpswap", Kind::B32) if float_type => |_, old, data, cmp| {
            if f32::from_bits(old as u32) == f32::from_bits(cmp as u32) { data } else { old }
        },
        ("cmpst" | "cmpstore" | "cmpswap", Kind::B64) if float_type => |_, old, data, cmp| {
            if f64::from_bits(old) == f64::from_bits(cmp) { data } else { old }
        },
        ("cmpst" | "cmpstore" | "cmpswap", _) => |_, old, data, cmp| if old == cmp { data } else { old },
        ("add", Kind::B32) if float_type => |m, old, data, _| Width::F32.add(m, old, data),
        ("add", Kind::B64) if float_type => |m, old, data, _| Width::F64.add(m, old, data),
        ("add", _) => {
            both!(kind, |old, data| u64::from((old as u32).wrapping_add(data as u32)), old.wrapping_add(data))
        }
        ("sub", _) if rest.contains("clamp") => |_, old, data, _| old.saturating_sub(data),
        ("csub", _) => |_, old, data, _| old.saturating_sub(data),
        ("sub", _) => {
            both!(kind, |old, data| u64::from((old as u32).wrapping_sub(data as u32)), old.wrapping_sub(data))
        }
        ("rsub", _) => {
            both!(kind, |old, data| u64::from((data as u32).wrapping_sub(old as u32)), data.wrapping_sub(old))
        }
        ("cond", _) => |_, old, data, _| if old >= data { old - data } else { old },
        ("and", _) => |_, old, data, _| old & data,
        ("or", _) => |_, old, data, _| old | data,
        ("xor", _) => |_, old, data, _| old ^ data,
        ("inc", _) => |_, old, data, _| if old >= data { 0 } else { old + 1 },
        ("dec", _) => both!(kind, |old, data| dec(old, data, 0xffff_ffff), dec(old, data, u64::MAX)),
        ("mskor", _) => |_, old, data, mask| old & !data | mask,
        ("wrap", _) => |_, old, data, add| {
            if old >= data { old - data } else { u64::from((old as u32).wrapping_add(add as u32)) }
        },
        ("fmin", _) => float(kind, false),
        ("fmax", _) => float(kind, true),
        ("min", _) if float_type => float(kind, false),
        ("max", _) if float_type => float(kind, true),
        ("smin", _) => both!(
            kind,
            |old, data| u64::from((old as i32).min(data as i32) as u32),
            (old as i64).min(data as i64) as u64
        ),
        ("smax", _) => both!(
            kind,
            |old, data| u64::from((old as i32).max(data as i32) as u32),
            (old as i64).max(data as i64) as u64
        ),
        ("min", _) if signed => both!(
            kind,
            |old, data| u64::from((old as i32).min(data as i32) as u32),
            (old as i64).min(data as i64) as u64
        ),
        ("max", _) if signed => both!(
            kind,
            |old, data| u64::from((old as i32).max(data as i32) as u32),
            (old as i64).max(data as i64) as u64
        ),
        ("umin" | "min", _) => |_, old, data, _| old.min(data),
        ("umax" | "max", _) => |_, old, data, _| old.max(data),
        ("pk_add_f16", _) => |m, old, data, _| pairs(&Width::F16, m, old, data),
        ("pk_add_bf16", _) => |m, old, data, _| pairs(&Width::BF16, m, old, data),
        _ => return None,
    };
    Some((atomic, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gen;

    fn eval(name: &str, old: u64, data: u64, cmp: u64) -> u64 {
        let (atomic, _) = find(name).unwrap_or_else(|| panic!("{name}"));
        atomic(&Mode::graphics(Gen::Gfx10), old, data, cmp)
    }

    #[test]
    fn by_name() {
        assert_eq!(eval("ds_add_u32", 0xffff_ffff, 2, 0), 1);
        assert_eq!(eval("ds_add_rtn_u64", 0xffff_ffff, 2, 0), 0x1_0000_0001);
        assert_eq!(eval("buffer_atomic_smin", 1, 0xffff_ffff, 0), 0xffff_ffff);
        assert_eq!(eval("global_atomic_umax_x2", 1, u64::MAX, 0), u64::MAX);
        assert_eq!(eval("ds_inc_u32", 5, 5, 0), 0);
        assert_eq!(eval("ds_dec_u32", 0, 5, 0), 5);
        assert_eq!(eval("ds_dec_u32", 6, 5, 0), 5);
        assert_eq!(eval("flat_atomic_cmpswap", 7, 9, 7), 9);
        assert_eq!(eval("ds_cmpst_f32", 0x8000_0000, 9, 0), 9);
        assert_eq!(eval("ds_rsub_u32", 2, 5, 0), 3);
        assert_eq!(eval("global_atomic_csub", 2, 5, 0), 0);
        assert_eq!(eval("ds_max_src2_f64", 0, 1f64.to_bits(), 0), 1f64.to_bits());
    }
}
