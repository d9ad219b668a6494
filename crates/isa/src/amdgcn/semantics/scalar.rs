//! Integer operations of the scalar ALU.

use super::integer as int;
use super::{Op, ScalarIn, ScalarOut};
use crate::amdgcn::opcode::ScalarOp;

/// A result of 32 bits whose condition code says whether it is not zero.
macro_rules! n32 {
    (|$s:ident| $e:expr) => {
        Op::Scalar(|_, $s: ScalarIn| {
            let value: u32 = $e;
            (value.into(), value != 0)
        })
    };
}

/// As `n32`, of 64 bits.
macro_rules! n64 {
    (|$s:ident| $e:expr) => {
        Op::Scalar(|_, $s: ScalarIn| {
            let value: u64 = $e;
            (value, value != 0)
        })
    };
}

/// A result of 32 bits, the condition code as it was.
macro_rules! k32 {
    (|$s:ident| $e:expr) => {
        Op::Scalar(|_, $s: ScalarIn| {
            let value: u32 = $e;
            (value.into(), $s.scc)
        })
    };
}

/// A result of 64 bits, the condition code as it was.
macro_rules! k64 {
    (|$s:ident| $e:expr) => {
        Op::Scalar(|_, $s: ScalarIn| ($e, $s.scc))
    };
}

fn a(s: ScalarIn) -> u32 {
    s.a as u32
}

fn b(s: ScalarIn) -> u32 {
    s.b as u32
}

/// A sum, and whether it left 32 bits.
fn add(a: u32, b: u32, carry: bool) -> ScalarOut {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

fn sub(a: u32, b: u32, borrow: bool) -> ScalarOut {
    let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
    (u64::from(difference as u32), difference < 0)
}

/// A sum, and whether it left the signed numbers of 32 bits.
fn add_signed(a: u32, b: u32) -> ScalarOut {
    let (sum, over) = (a as i32).overflowing_add(b as i32);
    (u64::from(sum as u32), over)
}

fn sub_signed(a: u32, b: u32) -> ScalarOut {
    let (difference, over) = (a as i32).overflowing_sub(b as i32);
    (u64::from(difference as u32), over)
}

/// A shifted first source and the second, and whether the sum left 32 bits.
fn shift_add(s: ScalarIn, by: u32) -> ScalarOut {
    let sum = (u64::from(a(s)) << by) + u64::from(b(s));
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

/// Bits `b[4:0]…+b[22:16]`.
fn bfe_u64(value: u64, what: u32) -> u64 {
    let (offset, width) = (what & 63, what >> 16 & 127);
    value >> offset & !u64::MAX.unbounded_shl(width)
}

fn bfe_i64(value: u64, what: u32) -> u64 {
    let (offset, width) = (what & 63, what >> 16 & 127);
    match width {
        0 => 0,
        64.. => (value as i64 >> offset) as u64,
        _ if offset + width >= 64 => (value as i64 >> offset) as u64,
        _ => ((value << (64 - offset - width)) as i64 >> (64 - width)) as u64,
    }
}

fn bfe_u32(value: u32, what: u32) -> u32 {
    let (offset, width) = (what & 31, what >> 16 & 127);
    value >> offset & !u32::MAX.unbounded_shl(width)
}

fn bfe_i32(value: u32, what: u32) -> u32 {
    let (offset, width) = (what & 31, what >> 16 & 127);
    if width == 0 {
        0
    } else if offset + width >= 32 {
        (value as i32 >> offset) as u32
    } else {
        int::sext(value >> offset, width) as u32
    }
}

/// Each group of four bits that has one set: `whole` sets all four, else the groups' bits stand together.
fn quads(value: u64, whole: bool) -> u64 {
    (0..16)
        .filter(|at| value >> (at * 4) & 15 != 0)
        .fold(0, |result, at| result | if whole { 15u64 << (at * 4) } else { 1 << at })
}

fn bitreplicate(value: u32) -> u64 {
    (0..32).fold(0, |result, at| result | (u64::from(value >> at & 1) * 3) << (2 * at))
}

fn half(value: u32, high: bool) -> u32 {
    if high { value >> 16 } else { value & 0xffff }
}

/// An index, or -1.
fn index(found: Option<u32>) -> u32 {
    found.unwrap_or(u32::MAX)
}

/// The operation of a row. Immediates of 16 bits come sign-extended as the second source; what an instruction adds to, or
/// compares with one, is the first.
pub(super) fn of(op: ScalarOp) -> Op {
    match op {
        ScalarOp::s_mov_b32 | ScalarOp::s_movk_i32 => k32!(|s| a(s)),
        ScalarOp::s_mov_b64 => k64!(|s| s.a),
        ScalarOp::s_cmov_b32 => k32!(|s| if s.scc { a(s) } else { s.d as u32 }),
        ScalarOp::s_cmovk_i32 => k32!(|s| if s.scc { b(s) } else { a(s) }),
        ScalarOp::s_cmov_b64 => k64!(|s| if s.scc { s.a } else { s.d }),
        ScalarOp::s_not_b32 => n32!(|s| !a(s)),
        ScalarOp::s_not_b64 => n64!(|s| !s.a),
        ScalarOp::s_wqm_b32 => n32!(|s| quads(a(s).into(), true) as u32),
        ScalarOp::s_wqm_b64 => n64!(|s| quads(s.a, true)),
        ScalarOp::s_quadmask_b32 => n32!(|s| quads(a(s).into(), false) as u32),
        ScalarOp::s_quadmask_b64 => n64!(|s| quads(s.a, false)),
        ScalarOp::s_brev_b32 => k32!(|s| a(s).reverse_bits()),
        ScalarOp::s_brev_b64 => k64!(|s| s.a.reverse_bits()),
        ScalarOp::s_bcnt0_i32_b32 => n32!(|s| a(s).count_zeros()),
        ScalarOp::s_bcnt0_i32_b64 => n32!(|s| s.a.count_zeros()),
        ScalarOp::s_bcnt1_i32_b32 => n32!(|s| a(s).count_ones()),
        ScalarOp::s_bcnt1_i32_b64 => n32!(|s| s.a.count_ones()),
        ScalarOp::s_ff0_i32_b32 => k32!(|s| index((a(s) != u32::MAX).then(|| a(s).trailing_ones()))),
        ScalarOp::s_ff0_i32_b64 => k32!(|s| index((s.a != u64::MAX).then(|| s.a.trailing_ones()))),
        ScalarOp::s_ff1_i32_b32 => k32!(|s| index((a(s) != 0).then(|| a(s).trailing_zeros()))),
        ScalarOp::s_ff1_i32_b64 => k32!(|s| index((s.a != 0).then(|| s.a.trailing_zeros()))),
        ScalarOp::s_flbit_i32_b32 => k32!(|s| index((a(s) != 0).then(|| a(s).leading_zeros()))),
        ScalarOp::s_flbit_i32_b64 => k32!(|s| index((s.a != 0).then(|| s.a.leading_zeros()))),
        ScalarOp::s_flbit_i32 => k32!(|s| int::leading_signs(a(s))),
        ScalarOp::s_flbit_i32_i64 => k32!(|s| {
            let differing = s.a ^ ((s.a as i64) >> 63) as u64;
            index((differing != 0).then(|| differing.leading_zeros()))
        }),
        ScalarOp::s_sext_i32_i8 => k32!(|s| int::sext(a(s), 8) as u32),
        ScalarOp::s_sext_i32_i16 => k32!(|s| int::sext(a(s), 16) as u32),
        ScalarOp::s_bitset0_b32 => k32!(|s| s.d as u32 & !(1 << (a(s) & 31))),
        ScalarOp::s_bitset1_b32 => k32!(|s| s.d as u32 | 1 << (a(s) & 31)),
        ScalarOp::s_bitset0_b64 => k64!(|s| s.d & !(1 << (s.a & 63))),
        ScalarOp::s_bitset1_b64 => k64!(|s| s.d | 1 << (s.a & 63)),
        ScalarOp::s_abs_i32 => n32!(|s| (a(s) as i32).unsigned_abs()),
        ScalarOp::s_bitreplicate_b64_b32 => k64!(|s| bitreplicate(a(s))),

        ScalarOp::s_add_u32 => Op::Scalar(|_, s| add(a(s), b(s), false)),
        ScalarOp::s_addc_u32 => Op::Scalar(|_, s| add(a(s), b(s), s.scc)),
        ScalarOp::s_sub_u32 => Op::Scalar(|_, s| sub(a(s), b(s), false)),
        ScalarOp::s_subb_u32 => Op::Scalar(|_, s| sub(a(s), b(s), s.scc)),
        ScalarOp::s_add_i32 | ScalarOp::s_addk_i32 => Op::Scalar(|_, s| add_signed(a(s), b(s))),
        ScalarOp::s_sub_i32 => Op::Scalar(|_, s| sub_signed(a(s), b(s))),
        ScalarOp::s_add_u64 => k64!(|s| s.a.wrapping_add(s.b)),
        ScalarOp::s_sub_u64 => k64!(|s| s.a.wrapping_sub(s.b)),
        ScalarOp::s_mul_u64 => k64!(|s| s.a.wrapping_mul(s.b)),
        ScalarOp::s_mul_i32 | ScalarOp::s_mulk_i32 => k32!(|s| a(s).wrapping_mul(b(s))),
        ScalarOp::s_mul_hi_u32 => k32!(|s| ((u64::from(a(s)) * u64::from(b(s))) >> 32) as u32),
        ScalarOp::s_mul_hi_i32 => k32!(|s| ((i64::from(a(s) as i32) * i64::from(b(s) as i32)) >> 32) as u32),
        ScalarOp::s_lshl1_add_u32 => Op::Scalar(|_, s| shift_add(s, 1)),
        ScalarOp::s_lshl2_add_u32 => Op::Scalar(|_, s| shift_add(s, 2)),
        ScalarOp::s_lshl3_add_u32 => Op::Scalar(|_, s| shift_add(s, 3)),
        ScalarOp::s_lshl4_add_u32 => Op::Scalar(|_, s| shift_add(s, 4)),
        ScalarOp::s_absdiff_i32 => n32!(|s| (a(s) as i32).wrapping_sub(b(s) as i32).unsigned_abs()),
        ScalarOp::s_min_i32 => {
            Op::Scalar(|_, s| (u64::from((a(s) as i32).min(b(s) as i32) as u32), (a(s) as i32) < b(s) as i32))
        }
        ScalarOp::s_max_i32 => {
            Op::Scalar(|_, s| (u64::from((a(s) as i32).max(b(s) as i32) as u32), a(s) as i32 >= b(s) as i32))
        }
        ScalarOp::s_min_u32 => Op::Scalar(|_, s| (a(s).min(b(s)).into(), a(s) < b(s))),
        ScalarOp::s_max_u32 => Op::Scalar(|_, s| (a(s).max(b(s)).into(), a(s) >= b(s))),
        ScalarOp::s_cselect_b32 => k32!(|s| if s.scc { a(s) } else { b(s) }),
        ScalarOp::s_cselect_b64 => k64!(|s| if s.scc { s.a } else { s.b }),
        ScalarOp::s_and_b32 => n32!(|s| a(s) & b(s)),
        ScalarOp::s_and_b64 => n64!(|s| s.a & s.b),
        ScalarOp::s_or_b32 => n32!(|s| a(s) | b(s)),
        ScalarOp::s_or_b64 => n64!(|s| s.a | s.b),
        ScalarOp::s_xor_b32 => n32!(|s| a(s) ^ b(s)),
        ScalarOp::s_xor_b64 => n64!(|s| s.a ^ s.b),
        ScalarOp::s_andn2_b32 => n32!(|s| a(s) & !b(s)),
        ScalarOp::s_andn2_b64 => n64!(|s| s.a & !s.b),
        ScalarOp::s_orn2_b32 => n32!(|s| a(s) | !b(s)),
        ScalarOp::s_orn2_b64 => n64!(|s| s.a | !s.b),
        ScalarOp::s_nand_b32 => n32!(|s| !(a(s) & b(s))),
        ScalarOp::s_nand_b64 => n64!(|s| !(s.a & s.b)),
        ScalarOp::s_nor_b32 => n32!(|s| !(a(s) | b(s))),
        ScalarOp::s_nor_b64 => n64!(|s| !(s.a | s.b)),
        ScalarOp::s_xnor_b32 => n32!(|s| !(a(s) ^ b(s))),
        ScalarOp::s_xnor_b64 => n64!(|s| !(s.a ^ s.b)),
        ScalarOp::s_lshl_b32 => n32!(|s| a(s) << (b(s) & 31)),
        ScalarOp::s_lshl_b64 => n64!(|s| s.a << (s.b & 63)),
        ScalarOp::s_lshr_b32 => n32!(|s| a(s) >> (b(s) & 31)),
        ScalarOp::s_lshr_b64 => n64!(|s| s.a >> (s.b & 63)),
        ScalarOp::s_ashr_i32 => n32!(|s| (a(s) as i32 >> (b(s) & 31)) as u32),
        ScalarOp::s_ashr_i64 => n64!(|s| (s.a as i64 >> (s.b & 63)) as u64),
        ScalarOp::s_bfm_b32 => k32!(|s| !(u32::MAX << (a(s) & 31)) << (b(s) & 31)),
        ScalarOp::s_bfm_b64 => k64!(|s| !(u64::MAX << (s.a & 63)) << (s.b & 63)),
        // The manuals of some generations say that these leave the condition code alone; they write it.
        ScalarOp::s_bfe_u32 => n32!(|s| bfe_u32(a(s), b(s))),
        ScalarOp::s_bfe_i32 => n32!(|s| bfe_i32(a(s), b(s))),
        ScalarOp::s_bfe_u64 => n64!(|s| bfe_u64(s.a, b(s))),
        ScalarOp::s_bfe_i64 => n64!(|s| bfe_i64(s.a, b(s))),
        ScalarOp::s_pack_ll_b32_b16 => k32!(|s| half(a(s), false) | half(b(s), false) << 16),
        ScalarOp::s_pack_lh_b32_b16 => k32!(|s| half(a(s), false) | half(b(s), true) << 16),
        ScalarOp::s_pack_hl_b32_b16 => k32!(|s| half(a(s), true) | half(b(s), false) << 16),
        ScalarOp::s_pack_hh_b32_b16 => k32!(|s| half(a(s), true) | half(b(s), true) << 16),
        ScalarOp::s_bitcmp0_b32 => Op::Compare(|_, a, b| a as u32 >> (b & 31) & 1 == 0),
        ScalarOp::s_bitcmp1_b32 => Op::Compare(|_, a, b| a as u32 >> (b & 31) & 1 == 1),
        ScalarOp::s_bitcmp0_b64 => Op::Compare(|_, a, b| a >> (b & 63) & 1 == 0),
        ScalarOp::s_bitcmp1_b64 => Op::Compare(|_, a, b| a >> (b & 63) & 1 == 1),

        // Those that read and write `exec`. The destination gets what `exec` was, or with `wrexec` what it becomes.
        ScalarOp::s_and_saveexec_b32 | ScalarOp::s_and_saveexec_b64 => Op::SaveExec(|s, exec| s & exec),
        ScalarOp::s_or_saveexec_b32 | ScalarOp::s_or_saveexec_b64 => Op::SaveExec(|s, exec| s | exec),
        ScalarOp::s_xor_saveexec_b32 | ScalarOp::s_xor_saveexec_b64 => Op::SaveExec(|s, exec| s ^ exec),
        ScalarOp::s_andn2_saveexec_b32 | ScalarOp::s_andn2_saveexec_b64 => Op::SaveExec(|s, exec| s & !exec),
        ScalarOp::s_orn2_saveexec_b32 | ScalarOp::s_orn2_saveexec_b64 => Op::SaveExec(|s, exec| s | !exec),
        ScalarOp::s_nand_saveexec_b32 | ScalarOp::s_nand_saveexec_b64 => Op::SaveExec(|s, exec| !(s & exec)),
        ScalarOp::s_nor_saveexec_b32 | ScalarOp::s_nor_saveexec_b64 => Op::SaveExec(|s, exec| !(s | exec)),
        ScalarOp::s_xnor_saveexec_b32 | ScalarOp::s_xnor_saveexec_b64 => Op::SaveExec(|s, exec| !(s ^ exec)),
        ScalarOp::s_andn1_saveexec_b32 | ScalarOp::s_andn1_saveexec_b64 => Op::SaveExec(|s, exec| !s & exec),
        ScalarOp::s_orn1_saveexec_b32 | ScalarOp::s_orn1_saveexec_b64 => Op::SaveExec(|s, exec| !s | exec),
        ScalarOp::s_andn1_wrexec_b32 | ScalarOp::s_andn1_wrexec_b64 => Op::WriteExec(|s, exec| !s & exec),
        ScalarOp::s_andn2_wrexec_b32 | ScalarOp::s_andn2_wrexec_b64 => Op::WriteExec(|s, exec| s & !exec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;
    use crate::amdgcn::semantics::Mode;

    fn eval(op: ScalarOp, a: u64, b: u64, scc: bool) -> ScalarOut {
        let Op::Scalar(f) = of(op) else { panic!("{op:?}") };
        f(&Mode::graphics(Gfx::Gfx9), ScalarIn { a, b, d: 0, scc })
    }

    #[test]
    fn s_bfe_writes_scc() {
        assert_eq!(eval(ScalarOp::s_bfe_u32, 0xff00, 8 | 8 << 16, false), (0xff, true));
        assert_eq!(eval(ScalarOp::s_bfe_u32, 0xff00, 8 << 16, true), (0, false));
        assert_eq!(eval(ScalarOp::s_bfe_i32, 0xff00, 8 | 8 << 16, false), (0xffff_ffff, true));
        assert_eq!(eval(ScalarOp::s_bfe_i64, 0x80 << 32, 32 | 8 << 16, false), (-128i64 as u64, true));
        assert_eq!(eval(ScalarOp::s_bfe_u64, u64::MAX, 60 | 8 << 16, false), (15, true));
    }

    #[test]
    fn carries_and_overflows() {
        assert_eq!(eval(ScalarOp::s_add_u32, 0xffff_ffff, 1, false), (0, true));
        assert_eq!(eval(ScalarOp::s_add_i32, 0x7fff_ffff, 1, false), (0x8000_0000, true));
        assert_eq!(eval(ScalarOp::s_subb_u32, 0, 0, true), (0xffff_ffff, true));
        assert_eq!(eval(ScalarOp::s_lshl4_add_u32, 0x1000_0000, 5, false), (5, true));
    }

    #[test]
    fn masks() {
        assert_eq!(eval(ScalarOp::s_wqm_b64, 0x10, 0, false), (0xf0, true));
        assert_eq!(eval(ScalarOp::s_quadmask_b32, 0x8010_0001, 0, false), (0b1010_0001, true));
        assert_eq!(eval(ScalarOp::s_bitreplicate_b64_b32, 0b101, 0, false), (0b110011, false));
        assert_eq!(eval(ScalarOp::s_ff1_i32_b32, 0, 0, false), (0xffff_ffff, false));
        let Op::SaveExec(f) = of(ScalarOp::s_andn1_saveexec_b64) else { panic!() };
        assert_eq!(f(0b0011, 0b0101), 0b0100);
    }
}
