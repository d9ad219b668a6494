//! Integer operations of the vector ALU.

use super::Op;
use super::integer as int;
use super::lane::{lanes, u1, u2, u3};
use crate::amdgcn::opcode::IntegerOp;

/// `a + b + carry`, and whether it left 32 bits.
fn add_carry(clamp: bool, a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(carry);
    let over = sum >> 32 != 0;
    (if clamp && over { u32::MAX } else { sum as u32 }, over)
}

/// `a - b - borrow`, and whether it was negative.
fn sub_borrow(clamp: bool, a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let difference = i64::from(a) - i64::from(b) - i64::from(borrow);
    let under = difference < 0;
    (if clamp && under { 0 } else { difference as u32 }, under)
}

fn i(value: u32) -> i64 {
    i64::from(value as i32)
}

fn u(value: u32) -> i64 {
    i64::from(value)
}

fn i16(value: u32) -> i64 {
    i64::from(value as u16 as i16)
}

fn u16(value: u32) -> i64 {
    i64::from(value & 0xffff)
}

fn i24(value: u32) -> i64 {
    int::sext(value, 24).into()
}

fn u24(value: u32) -> i64 {
    i64::from(value & 0xff_ffff)
}

fn median<T: Ord>(a: T, b: T, c: T) -> T {
    let (least, most) = if a < b { (a, b) } else { (b, a) };
    least.max(most.min(c))
}

/// The operation of a row.
pub(super) fn of(op: IntegerOp) -> Op {
    match op {
        // One source.
        IntegerOp::v_mov_b32
        | IntegerOp::v_accvgpr_mov_b32
        | IntegerOp::v_accvgpr_read_b32
        | IntegerOp::v_accvgpr_write_b32 => {
            u1!(bits | a | a)
        }
        // A step of a shift register with feedback.
        IntegerOp::v_prng_b32 => u1!(|a| a << 1 ^ if a >> 31 != 0 { 197 } else { 0 }),
        IntegerOp::v_mov_b16 => u1!(bits | a | a & 0xffff),
        IntegerOp::v_not_b32 => u1!(bits | a | !a),
        IntegerOp::v_not_b16 => u1!(bits | a | !a & 0xffff),
        IntegerOp::v_bfrev_b32 => u1!(bits | a | a.reverse_bits()),
        IntegerOp::v_ffbh_u32 => u1!(steady | a | if a == 0 { u32::MAX } else { a.leading_zeros() }),
        IntegerOp::v_ffbl_b32 => u1!(steady | a | if a == 0 { u32::MAX } else { a.trailing_zeros() }),
        IntegerOp::v_ffbh_i32 => u1!(|a| int::leading_signs(a)),
        IntegerOp::v_cvt_i32_i16 => u1!(bits | a | i16(a) as u32),
        IntegerOp::v_cvt_u32_u16 => u1!(bits | a | a & 0xffff),
        IntegerOp::v_sat_pk_u8_i16 => u1!(|a| int::sat_pk_u8_i16(a)),

        // Sums with a carry.
        IntegerOp::v_add_co_u32 => Op::Carry(|m, a, b, _| add_carry(m.clamp, a, b, false)),
        IntegerOp::v_sub_co_u32 => Op::Carry(|m, a, b, _| sub_borrow(m.clamp, a, b, false)),
        IntegerOp::v_subrev_co_u32 => Op::Carry(|m, a, b, _| sub_borrow(m.clamp, b, a, false)),
        IntegerOp::v_addc_co_u32 => Op::Carry(|m, a, b, c| add_carry(m.clamp, a, b, c)),
        IntegerOp::v_subb_co_u32 => Op::Carry(|m, a, b, c| sub_borrow(m.clamp, a, b, c)),
        IntegerOp::v_subbrev_co_u32 => Op::Carry(|m, a, b, c| sub_borrow(m.clamp, b, a, c)),

        // Sums.
        IntegerOp::v_add_u32 => lanes!(Up, m, a, b, _c, int::unsigned(u(a) + u(b), 32, m.clamp)),
        IntegerOp::v_sub_u32 => lanes!(Up, m, a, b, _c, int::unsigned(u(a) - u(b), 32, m.clamp)),
        IntegerOp::v_subrev_u32 => lanes!(Up, m, a, b, _c, int::unsigned(u(b) - u(a), 32, m.clamp)),
        IntegerOp::v_add_i32 => lanes!(Up, m, a, b, _c, int::signed(i(a) + i(b), 32, m.clamp)),
        IntegerOp::v_sub_i32 => lanes!(Up, m, a, b, _c, int::signed(i(a) - i(b), 32, m.clamp)),
        IntegerOp::v_add_u16 => u2!(mode | m, a, b | int::unsigned(u16(a) + u16(b), 16, m.clamp)),
        IntegerOp::v_sub_u16 => u2!(mode | m, a, b | int::unsigned(u16(a) - u16(b), 16, m.clamp)),
        IntegerOp::v_subrev_u16 => u2!(mode | m, a, b | int::unsigned(u16(b) - u16(a), 16, m.clamp)),
        IntegerOp::v_add_i16 => u2!(mode | m, a, b | int::signed(i16(a) + i16(b), 16, m.clamp)),
        IntegerOp::v_sub_i16 => u2!(mode | m, a, b | int::signed(i16(a) - i16(b), 16, m.clamp)),
        IntegerOp::v_add3_u32 => u3!(up | a, b, c | a.wrapping_add(b).wrapping_add(c)),
        IntegerOp::v_lshl_add_u32 => u3!(up | a, b, c | (a << (b & 31)).wrapping_add(c)),
        IntegerOp::v_add_lshl_u32 => u3!(up | a, b, c | a.wrapping_add(b) << (c & 31)),
        IntegerOp::v_xad_u32 => u3!(up | a, b, c | (a ^ b).wrapping_add(c)),

        // Bits.
        IntegerOp::v_and_b32 => u2!(bits | a, b | a & b),
        IntegerOp::v_or_b32 => u2!(bits | a, b | a | b),
        IntegerOp::v_xor_b32 => u2!(bits | a, b | a ^ b),
        IntegerOp::v_xnor_b32 => u2!(bits | a, b | !(a ^ b)),
        IntegerOp::v_and_b16 => u2!(bits | a, b | a & b & 0xffff),
        IntegerOp::v_or_b16 => u2!(bits | a, b | (a | b) & 0xffff),
        IntegerOp::v_xor_b16 => u2!(bits | a, b | (a ^ b) & 0xffff),
        IntegerOp::v_and_or_b32 => u3!(bits | a, b, c | a & b | c),
        IntegerOp::v_or3_b32 => u3!(bits | a, b, c | a | b | c),
        IntegerOp::v_xor3_b32 => u3!(bits | a, b, c | a ^ b ^ c),
        IntegerOp::v_lshl_or_b32 => u3!(bits | a, b, c | a << (b & 31) | c),
        IntegerOp::v_bfi_b32 => u3!(bits | a, b, c | a & b | !a & c),
        IntegerOp::v_bfe_u32 => u3!(bits | a, b, c | int::bfe_u32(a, b, c)),
        IntegerOp::v_bfe_i32 => u3!(bits | a, b, c | int::bfe_i32(a, b, c)),
        IntegerOp::v_bfm_b32 => u2!(|a, b| !(u32::MAX << (a & 31)) << (b & 31)),
        IntegerOp::v_alignbit_b32 => {
            u3!(bits | a, b, c | ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32)
        }
        IntegerOp::v_alignbyte_b32 => {
            u3!(bits | a, b, c | ((u64::from(a) << 32 | u64::from(b)) >> ((c & 3) * 8)) as u32)
        }
        IntegerOp::v_perm_b32 => u3!(bits | a, b, c | int::perm(a, b, c)),
        IntegerOp::v_bcnt_u32_b32 => u2!(|a, b| a.count_ones().wrapping_add(b)),

        // Shifts.
        IntegerOp::v_lshlrev_b32 => u2!(bits | a, b | b << (a & 31)),
        IntegerOp::v_lshrrev_b32 => u2!(bits | a, b | b >> (a & 31)),
        IntegerOp::v_ashrrev_i32 => u2!(bits | a, b | (b as i32 >> (a & 31)) as u32),
        IntegerOp::v_lshl_b32 => u2!(bits | a, b | a << (b & 31)),
        IntegerOp::v_lshr_b32 => u2!(bits | a, b | a >> (b & 31)),
        IntegerOp::v_ashr_i32 => u2!(bits | a, b | (a as i32 >> (b & 31)) as u32),
        IntegerOp::v_lshlrev_b16 => u2!(bits | a, b | b << (a & 15) & 0xffff),
        IntegerOp::v_lshrrev_b16 => u2!(bits | a, b | (b & 0xffff) >> (a & 15)),
        IntegerOp::v_ashrrev_i16 => u2!(bits | a, b | (i16(b) >> (a & 15)) as u32 & 0xffff),
        IntegerOp::v_mov_b64 => Op::Wide(|_, a, _, _| a),
        IntegerOp::v_lshl_add_u64 => Op::Wide(|_, a, b, c| (a << (b & 7)).wrapping_add(c)),
        IntegerOp::v_lshlrev_b64 => Op::Shift { amount: 0, f: |_, a, b, _| b << (a & 63) },
        IntegerOp::v_lshrrev_b64 => Op::Shift { amount: 0, f: |_, a, b, _| b >> (a & 63) },
        IntegerOp::v_ashrrev_i64 => Op::Shift { amount: 0, f: |_, a, b, _| (b as i64 >> (a & 63)) as u64 },
        IntegerOp::v_lshl_b64 => Op::Shift { amount: 1, f: |_, a, b, _| a << (b & 63) },
        IntegerOp::v_lshr_b64 => Op::Shift { amount: 1, f: |_, a, b, _| a >> (b & 63) },
        IntegerOp::v_ashr_i64 => Op::Shift { amount: 1, f: |_, a, b, _| (a as i64 >> (b & 63)) as u64 },

        // Minimum, maximum, median.
        IntegerOp::v_min_u32 => u2!(|a, b| a.min(b)),
        IntegerOp::v_max_u32 => u2!(|a, b| a.max(b)),
        IntegerOp::v_min_i32 => u2!(|a, b| (a as i32).min(b as i32) as u32),
        IntegerOp::v_max_i32 => u2!(|a, b| (a as i32).max(b as i32) as u32),
        IntegerOp::v_min_u16 => u2!(|a, b| u16(a).min(u16(b)) as u32),
        IntegerOp::v_max_u16 => u2!(|a, b| u16(a).max(u16(b)) as u32),
        IntegerOp::v_min_i16 => u2!(|a, b| i16(a).min(i16(b)) as u32 & 0xffff),
        IntegerOp::v_max_i16 => u2!(|a, b| i16(a).max(i16(b)) as u32 & 0xffff),
        IntegerOp::v_min3_u32 => u3!(|a, b, c| a.min(b).min(c)),
        IntegerOp::v_max3_u32 => u3!(|a, b, c| a.max(b).max(c)),
        IntegerOp::v_med3_u32 => u3!(|a, b, c| median(a, b, c)),
        IntegerOp::v_min3_i32 => u3!(|a, b, c| i(a).min(i(b)).min(i(c)) as u32),
        IntegerOp::v_max3_i32 => u3!(|a, b, c| i(a).max(i(b)).max(i(c)) as u32),
        IntegerOp::v_med3_i32 => u3!(|a, b, c| median(i(a), i(b), i(c)) as u32),
        IntegerOp::v_min3_u16 => u3!(|a, b, c| u16(a).min(u16(b)).min(u16(c)) as u32),
        IntegerOp::v_max3_u16 => u3!(|a, b, c| u16(a).max(u16(b)).max(u16(c)) as u32),
        IntegerOp::v_med3_u16 => u3!(|a, b, c| median(u16(a), u16(b), u16(c)) as u32),
        IntegerOp::v_min3_i16 => u3!(|a, b, c| i16(a).min(i16(b)).min(i16(c)) as u32 & 0xffff),
        IntegerOp::v_max3_i16 => u3!(|a, b, c| i16(a).max(i16(b)).max(i16(c)) as u32 & 0xffff),
        IntegerOp::v_med3_i16 => u3!(|a, b, c| median(i16(a), i16(b), i16(c)) as u32 & 0xffff),
        IntegerOp::v_maxmin_u32 => u3!(|a, b, c| a.max(b).min(c)),
        IntegerOp::v_minmax_u32 => u3!(|a, b, c| a.min(b).max(c)),
        IntegerOp::v_maxmin_i32 => u3!(|a, b, c| i(a).max(i(b)).min(i(c)) as u32),
        IntegerOp::v_minmax_i32 => u3!(|a, b, c| i(a).min(i(b)).max(i(c)) as u32),

        // Products.
        IntegerOp::v_mul_lo_u32 | IntegerOp::v_mul_lo_i32 => u2!(up | a, b | a.wrapping_mul(b)),
        IntegerOp::v_mul_hi_u32 => u2!(|a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        IntegerOp::v_mul_hi_i32 => u2!(|a, b| ((i(a) * i(b)) >> 32) as u32),
        IntegerOp::v_mul_u32_u24 => u2!(mode | m, a, b | int::unsigned(u24(a) * u24(b), 32, m.clamp)),
        IntegerOp::v_mul_i32_i24 => u2!(mode | m, a, b | int::signed(i24(a) * i24(b), 32, m.clamp)),
        IntegerOp::v_mul_hi_u32_u24 => u2!(|a, b| ((u24(a) * u24(b)) >> 32) as u32),
        IntegerOp::v_mul_hi_i32_i24 => u2!(|a, b| ((i24(a) * i24(b)) >> 32) as u32),
        IntegerOp::v_mad_u32_u24 => {
            u3!(mode | m, a, b, c | int::unsigned(u24(a) * u24(b) + u(c), 32, m.clamp))
        }
        IntegerOp::v_mad_i32_i24 => u3!(mode | m, a, b, c | int::signed(i24(a) * i24(b) + i(c), 32, m.clamp)),
        IntegerOp::v_mul_lo_u16 => u2!(up | a, b | a.wrapping_mul(b) & 0xffff),
        IntegerOp::v_mad_u16 | IntegerOp::v_mad_legacy_u16 => {
            u3!(mode | m, a, b, c | int::unsigned(u16(a) * u16(b) + u16(c), 16, m.clamp))
        }
        IntegerOp::v_mad_i16 | IntegerOp::v_mad_legacy_i16 => {
            u3!(mode | m, a, b, c | int::signed(i16(a) * i16(b) + i16(c), 16, m.clamp))
        }
        IntegerOp::v_mad_u32_u16 => {
            u3!(mode | m, a, b, c | int::unsigned(u16(a) * u16(b) + u(c), 32, m.clamp))
        }
        IntegerOp::v_mad_i32_i16 => u3!(mode | m, a, b, c | int::signed(i16(a) * i16(b) + i(c), 32, m.clamp)),
        IntegerOp::v_mad_u64_u32 => Op::WideCarry(|m, a, b, c| {
            let sum = u128::from(a as u32 as u64 * (b as u32 as u64)) + u128::from(c);
            let over = sum >> 64 != 0;
            (if m.clamp && over { u64::MAX } else { sum as u64 }, over)
        }),
        IntegerOp::v_mad_i64_i32 => Op::WideCarry(|m, a, b, c| {
            let sum = i128::from(i(a as u32) * i(b as u32)) + i128::from(c as i64);
            let clamped = sum.clamp(i64::MIN.into(), i64::MAX.into());
            (if m.clamp { clamped as u64 } else { sum as u64 }, sum >> 64 & 1 != 0)
        }),

        // Bytes.
        IntegerOp::v_sad_u8 => {
            u3!(mode | m, a, b, c | int::unsigned(u(int::sad_u8(a, b, false)) + u(c), 32, m.clamp))
        }
        IntegerOp::v_sad_hi_u8 => {
            u3!(mode | m, a, b, c | int::unsigned(u(int::sad_u8(a, b, false) << 16) + u(c), 32, m.clamp))
        }
        IntegerOp::v_msad_u8 => {
            u3!(mode | m, a, b, c | int::unsigned(u(int::sad_u8(a, b, true)) + u(c), 32, m.clamp))
        }
        IntegerOp::v_sad_u16 => {
            u3!(mode | m, a, b, c | int::unsigned(u(int::sad_u16(a, b)) + u(c), 32, m.clamp))
        }
        // The distance of the unsigned numbers, not of the signed ones.
        IntegerOp::v_sad_u32 => u3!(mode | m, a, b, c | int::unsigned(u(a.abs_diff(b)) + u(c), 32, m.clamp)),
        IntegerOp::v_lerp_u8 => u3!(|a, b, c| int::lerp_u8(a, b, c)),
        IntegerOp::v_qsad_pk_u16_u8 => Op::Wide(|m, a, b, c| int::qsad_pk(a, b as u32, c, false, m.clamp)),
        IntegerOp::v_mqsad_pk_u16_u8 => Op::Wide(|m, a, b, c| int::qsad_pk(a, b as u32, c, true, m.clamp)),
        IntegerOp::v_mqsad_u32_u8 => Op::Quad(|m, a, b, c| int::mqsad_u32(a, b, c, m.clamp)),

        // Halves.
        IntegerOp::v_cvt_pk_i16_i32 => u2!(|a, b| {
            let half = |value: u32| (value as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff;
            half(a) | half(b) << 16
        }),
        IntegerOp::v_cvt_pk_u16_u32 => u2!(|a, b| a.min(0xffff) | b.min(0xffff) << 16),

        // What the interpreter knows the lane's bit for.
        IntegerOp::v_cndmask_b32 | IntegerOp::v_cndmask_b16 => Op::Select,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;
    use crate::amdgcn::semantics::{Mode, lane::LANES};

    fn eval(op: IntegerOp, a: u32, b: u32, c: u32) -> u32 {
        let Op::Lane(lane) = of(op) else { panic!("{op:?}") };
        let m = Mode::graphics(Gfx::Gfx9);
        let one = (lane.one)(&m, a, b, c);
        let mut all = [0; LANES];
        (lane.many)(&m, &mut all, &[a; LANES], &[b; LANES], &[c; LANES]);
        assert_eq!(all, [one; LANES]);
        one
    }

    #[test]
    fn v_sad_u32_is_the_unsigned_distance() {
        assert_eq!(eval(IntegerOp::v_sad_u32, -5i32 as u32, 0, 0), 4294967291);
    }

    #[test]
    fn v_bcnt_u32_b32_adds_its_second_source() {
        assert_eq!(eval(IntegerOp::v_bcnt_u32_b32, 0xf0f0, 0, 0), 8);
        assert_eq!(eval(IntegerOp::v_bcnt_u32_b32, 0xf0f0, 100, 0), 108);
    }

    #[test]
    fn shifts_take_the_low_bits_of_the_amount() {
        assert_eq!(eval(IntegerOp::v_lshlrev_b32, 33, 1, 0), 2);
        assert_eq!(eval(IntegerOp::v_alignbit_b32, 1, 0, 33), 0x8000_0000);
        assert_eq!(eval(IntegerOp::v_ashrrev_i16, 17, 0x8000, 0), 0xc000);
        assert_eq!(eval(IntegerOp::v_bfm_b32, 4, 8, 0), 0xf00);
    }

    #[test]
    fn carries() {
        let Op::Carry(f) = of(IntegerOp::v_addc_co_u32) else { panic!() };
        let m = Mode::graphics(Gfx::Gfx9);
        assert_eq!(f(&m, u32::MAX, 0, true), (0, true));
        let Op::Carry(f) = of(IntegerOp::v_subrev_co_u32) else { panic!() };
        assert_eq!(f(&m, 5, 3, true), (-2i32 as u32, true));
        assert_eq!(f(&Mode { clamp: true, ..m }, 5, 3, true), (0, true));
    }
}
