//! What atomic operations do to memory: `(old, data, compared)` to the new value.

use super::Mode;
use super::float::Width;
use super::minmax;
use crate::amdgcn::model::{AtomicOp, Trait};
use crate::amdgcn::opcode::Operation;
use crate::amdgcn::tables::InstRow;

/// An atomic operation on one value.
pub type Atomic = fn(&Mode, u64, u64, u64) -> u64;

/// How wide the values of an atomic operation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomicWidth {
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
            AtomicWidth::B32 => |_, $old, $data, _| $small,
            AtomicWidth::B64 => |_, $old, $data, _| $wide,
        }
    };
}

fn float(kind: AtomicWidth, greater: bool) -> Atomic {
    match (kind, greater) {
        (AtomicWidth::B32, false) => |m, old, data, _| minmax::number(&Width::F32, m, old, data, false),
        (AtomicWidth::B32, true) => |m, old, data, _| minmax::number(&Width::F32, m, old, data, true),
        (AtomicWidth::B64, false) => |m, old, data, _| minmax::number(&Width::F64, m, old, data, false),
        (AtomicWidth::B64, true) => |m, old, data, _| minmax::number(&Width::F64, m, old, data, true),
    }
}

fn pairs(width: &Width, m: &Mode, old: u64, data: u64) -> u64 {
    // Memory does not know that bit of the mode.
    let m = &Mode { saturate_16: false, ..*m };
    let half = |shift: u64| width.add(m, old >> shift & 0xffff, data >> shift & 0xffff);
    half(0) | half(16) << 16
}

/// An operation on values of 32 or 64 bits; `None`: it is not of this kind.
pub fn of(op: AtomicOp, kind: AtomicWidth) -> Option<Atomic> {
    let atomic: Atomic = match (op, kind) {
        (AtomicOp::Swap, _) => |_, _, data, _| data,
        (AtomicOp::Fcmpswap, AtomicWidth::B32) => |_, old, data, cmp| {
            if f32::from_bits(old as u32) == f32::from_bits(cmp as u32) { data } else { old }
        },
        (AtomicOp::Fcmpswap, AtomicWidth::B64) => |_, old, data, cmp| {
            if f64::from_bits(old) == f64::from_bits(cmp) { data } else { old }
        },
        (AtomicOp::Cmpswap, _) => |_, old, data, cmp| if old == cmp { data } else { old },
        (AtomicOp::Fadd, AtomicWidth::B32) => |m, old, data, _| Width::F32.add(m, old, data),
        (AtomicOp::Fadd, AtomicWidth::B64) => |m, old, data, _| Width::F64.add(m, old, data),
        (AtomicOp::Add, _) => {
            both!(kind, |old, data| u64::from((old as u32).wrapping_add(data as u32)), old.wrapping_add(data))
        }
        (AtomicOp::Csub, _) => |_, old, data, _| old.saturating_sub(data),
        (AtomicOp::Sub, _) => {
            both!(kind, |old, data| u64::from((old as u32).wrapping_sub(data as u32)), old.wrapping_sub(data))
        }
        (AtomicOp::Rsub, _) => {
            both!(kind, |old, data| u64::from((data as u32).wrapping_sub(old as u32)), data.wrapping_sub(old))
        }
        (AtomicOp::CondSub, _) => |_, old, data, _| if old >= data { old - data } else { old },
        (AtomicOp::And, _) => |_, old, data, _| old & data,
        (AtomicOp::Or, _) => |_, old, data, _| old | data,
        (AtomicOp::Xor, _) => |_, old, data, _| old ^ data,
        (AtomicOp::Inc, _) => |_, old, data, _| if old >= data { 0 } else { old + 1 },
        (AtomicOp::Dec, _) => both!(kind, |old, data| dec(old, data, 0xffff_ffff), dec(old, data, u64::MAX)),
        (AtomicOp::Mskor, _) => |_, old, data, mask| old & !data | mask,
        (AtomicOp::Wrap, _) => |_, old, data, add| {
            if old >= data { old - data } else { u64::from((old as u32).wrapping_add(add as u32)) }
        },
        (AtomicOp::Fmin, _) => float(kind, false),
        (AtomicOp::Fmax, _) => float(kind, true),
        (AtomicOp::Smin, _) => both!(
            kind,
            |old, data| u64::from((old as i32).min(data as i32) as u32),
            (old as i64).min(data as i64) as u64
        ),
        (AtomicOp::Smax, _) => both!(
            kind,
            |old, data| u64::from((old as i32).max(data as i32) as u32),
            (old as i64).max(data as i64) as u64
        ),
        (AtomicOp::Umin, _) => |_, old, data, _| old.min(data),
        (AtomicOp::Umax, _) => |_, old, data, _| old.max(data),
        (AtomicOp::PkAddF16, _) => |m, old, data, _| pairs(&Width::F16, m, old, data),
        (AtomicOp::PkAddBf16, _) => |m, old, data, _| pairs(&Width::BF16, m, old, data),
        (AtomicOp::Other, _) => return None,
    };
    Some(atomic)
}

/// Whether a row takes a second value.
pub fn has_second(row: &InstRow) -> bool {
    matches!(row.operation, Operation::Atomic(op) if op.has_second())
}

/// The operation of a row, and how wide its values are; `None`: it is not an atomic of this kind.
pub fn of_row(row: &InstRow) -> Option<(Atomic, AtomicWidth)> {
    let Operation::Atomic(op) = row.operation else { return None };
    let kind = if row.traits.has(Trait::X2) { AtomicWidth::B64 } else { AtomicWidth::B32 };
    Some((of(op, kind)?, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;
    use crate::amdgcn::opcode::Opcode;

    fn eval(opcode: Opcode, old: u64, data: u64, cmp: u64) -> u64 {
        let (atomic, _) = of_row(opcode.row()).unwrap_or_else(|| panic!("{opcode:?}"));
        atomic(&Mode::graphics(Gfx::Gfx10), old, data, cmp)
    }

    #[test]
    fn by_opcode() {
        assert_eq!(eval(Opcode::ds_add_u32, 0xffff_ffff, 2, 0), 1);
        assert_eq!(eval(Opcode::ds_add_rtn_u64, 0xffff_ffff, 2, 0), 0x1_0000_0001);
        assert_eq!(eval(Opcode::buffer_atomic_smin, 1, 0xffff_ffff, 0), 0xffff_ffff);
        assert_eq!(eval(Opcode::global_atomic_umax_x2, 1, u64::MAX, 0), u64::MAX);
        assert_eq!(eval(Opcode::ds_inc_u32, 5, 5, 0), 0);
        assert_eq!(eval(Opcode::ds_dec_u32, 0, 5, 0), 5);
        assert_eq!(eval(Opcode::ds_dec_u32, 6, 5, 0), 5);
        assert_eq!(eval(Opcode::flat_atomic_cmpswap, 7, 9, 7), 9);
        assert_eq!(eval(Opcode::ds_cmpst_f32, 0x8000_0000, 9, 0), 9);
        assert_eq!(eval(Opcode::ds_rsub_u32, 2, 5, 0), 3);
        assert_eq!(eval(Opcode::global_atomic_csub, 2, 5, 0), 0);
        assert_eq!(eval(Opcode::ds_max_src2_f64, 0, 1f64.to_bits(), 0), 1f64.to_bits());
    }
}
