//! Scalar operations that LLVM's constant folder does not know, run as instructions, against models of them.
//!
//! A model is a second reading of AMD's ISA manuals in arithmetic of the host. Where `scc` or `exec` is not told it must stay.

mod numbers;
mod rig;

use numbers::{HALF, Numbers};
use std::cmp::Ordering;

/// What an instruction finds: `s[20:21]`, `s[22:23]`, `s[24:25]`, the condition code, `exec`.
#[derive(Clone, Copy, Debug)]
struct In {
    d: u64,
    a: u64,
    b: u64,
    scc: bool,
    exec: u64,
}

/// What it leaves in `s[20:21]`, the condition code and `exec`.
#[derive(PartialEq, Debug)]
struct Out {
    d: u64,
    scc: bool,
    exec: u64,
}

impl In {
    /// A result of 32 bits.
    fn low(self, value: u64) -> Out {
        self.all(self.d >> 32 << 32 | value & 0xffff_ffff)
    }

    fn all(self, d: u64) -> Out {
        Out { d, scc: self.scc, exec: self.exec }
    }

    /// A result that the condition code tells from zero.
    fn bits(self, d: u64) -> Out {
        self.all(d).scc(d != 0)
    }

    /// The old `exec` as the result, and a new one.
    fn save(self, exec: u64) -> Out {
        Out { d: self.exec, scc: exec != 0, exec }
    }

    /// As [`In::save`], in 32 bits.
    fn save_low(self, exec: u64) -> Out {
        let exec = exec & 0xffff_ffff;
        Out { scc: exec != 0, exec: self.exec >> 32 << 32 | exec, ..self.low(self.exec) }
    }

    /// The new `exec` as the result too.
    fn write_low(self, exec: u64) -> Out {
        let exec = exec & 0xffff_ffff;
        Out { scc: exec != 0, exec: self.exec >> 32 << 32 | exec, ..self.low(exec) }
    }

    /// Whether the order of two floats, of which denormals are zero, or of two halves is so.
    fn order(self, halves: bool, holds: fn(Option<Ordering>) -> bool) -> Out {
        let flush = |number: f32| if number.is_subnormal() { 0.0 } else { number };
        let [_, a, b] = if halves { self.halves() } else { self.floats().map(|x| flush(x).into()) };
        self.all(self.d).scc(holds(a.partial_cmp(&b)))
    }

    /// Sources of 32 bits.
    fn words(self) -> [u64; 3] {
        [self.d, self.a, self.b].map(|value| value & 0xffff_ffff)
    }

    fn floats(self) -> [f32; 3] {
        self.words().map(|bits| f32::from_bits(bits as u32))
    }

    fn halves(self) -> [f64; 3] {
        self.words().map(|bits| HALF.number(bits as u32 & 0xffff))
    }

    fn float(self, number: f32) -> Out {
        self.low(number.to_bits().into())
    }

    fn half(self, number: f64) -> Out {
        self.low(HALF.nearest(number).expect("in range").into())
    }
}

impl Out {
    fn scc(self, scc: bool) -> Out {
        Out { scc, ..self }
    }
}

/// An instruction of a GPU, what its sources are, and what it does.
type Model = (&'static str, &'static str, &'static str, fn(In) -> Out);

const OLD: &str = "gfx900";
const WAVE32: &str = "gfx1010";
const NEW: &str = "gfx1150";
const NEWEST: &str = "gfx1200";

const MODELS: &[Model] = &[
    (OLD, "s_mov_b32 s20, s22", "i", |i| i.low(i.a)),
    (OLD, "s_mov_b64 s[20:21], s[22:23]", "i", |i| i.all(i.a)),
    (OLD, "s_movk_i32 s20, 0x8001", "i", |i| i.low(-0x7fffi64 as u64)),
    (OLD, "s_cmov_b32 s20, s22", "i", |i| if i.scc { i.low(i.a) } else { i.all(i.d) }),
    (OLD, "s_cmov_b64 s[20:21], s[22:23]", "i", |i| i.all(if i.scc { i.a } else { i.d })),
    (OLD, "s_cmovk_i32 s20, 0xfff3", "i", |i| if i.scc { i.low(-13i64 as u64) } else { i.all(i.d) }),
    (OLD, "s_cselect_b32 s20, s22, s24", "i", |i| i.low(if i.scc { i.a } else { i.b })),
    (OLD, "s_cselect_b64 s[20:21], s[22:23], s[24:25]", "i", |i| i.all(if i.scc { i.a } else { i.b })),
    (OLD, "s_addk_i32 s20, 0x7654", "i", |i| {
        let (sum, over) = (i.d as i32).overflowing_add(0x7654);
        i.low(sum as u64).scc(over)
    }),
    (OLD, "s_addk_i32 s20, 0x8002", "i", |i| {
        let (sum, over) = (i.d as i32).overflowing_add(-0x7ffe);
        i.low(sum as u64).scc(over)
    }),
    (OLD, "s_mulk_i32 s20, 0x8002", "i", |i| i.low((i.d as i32).wrapping_mul(-0x7ffe) as u64)),
    (OLD, "s_addc_u32 s20, s22, s24", "i", |i| {
        let [_, a, b] = i.words();
        let sum = a + b + u64::from(i.scc);
        i.low(sum).scc(sum >> 32 != 0)
    }),
    (OLD, "s_subb_u32 s20, s22, s24", "i", |i| {
        let [_, a, b] = i.words();
        let difference = a.wrapping_sub(b).wrapping_sub(i.scc.into());
        i.low(difference).scc(difference >> 63 != 0)
    }),
    (OLD, "s_bfm_b64 s[20:21], s22, s24", "i", |i| i.all(((1 << (i.a & 63)) - 1) << (i.b & 63))),
    (OLD, "s_bitcmp0_b64 s[22:23], s24", "i", |i| i.all(i.d).scc(i.a >> (i.b & 63) & 1 == 0)),
    (OLD, "s_bitcmp1_b64 s[22:23], s24", "i", |i| i.all(i.d).scc(i.a >> (i.b & 63) & 1 == 1)),
    (OLD, "s_bitset0_b32 s20, s22", "i", |i| i.low(i.d & !(1 << (i.a & 31)))),
    (OLD, "s_bitset1_b32 s20, s22", "i", |i| i.low(i.d | 1 << (i.a & 31))),
    (OLD, "s_bitset0_b64 s[20:21], s22", "i", |i| i.all(i.d & !(1 << (i.a & 63)))),
    (OLD, "s_bitset1_b64 s[20:21], s22", "i", |i| i.all(i.d | 1 << (i.a & 63))),
    (OLD, "s_bcnt0_i32_b64 s20, s[22:23]", "i", |i| {
        i.low(i.a.count_zeros().into()).scc(i.a.count_zeros() != 0)
    }),
    (OLD, "s_ff0_i32_b64 s20, s[22:23]", "i", |i| {
        i.low(if i.a == u64::MAX { u64::MAX } else { i.a.trailing_ones().into() })
    }),
    (OLD, "s_or_b64 s[20:21], s[22:23], s[24:25]", "i", |i| i.bits(i.a | i.b)),
    (OLD, "s_orn2_b64 s[20:21], s[22:23], s[24:25]", "i", |i| i.bits(i.a | !i.b)),
    (OLD, "s_nand_b64 s[20:21], s[22:23], s[24:25]", "i", |i| i.bits(!(i.a & i.b))),
    (OLD, "s_nor_b64 s[20:21], s[22:23], s[24:25]", "i", |i| i.bits(!(i.a | i.b))),
    (OLD, "s_xnor_b64 s[20:21], s[22:23], s[24:25]", "i", |i| i.bits(!(i.a ^ i.b))),
    (OLD, "s_and_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(i.a & i.exec)),
    (OLD, "s_or_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(i.a | i.exec)),
    (OLD, "s_xor_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(i.a ^ i.exec)),
    (OLD, "s_andn2_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(i.a & !i.exec)),
    (OLD, "s_orn2_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(i.a | !i.exec)),
    (OLD, "s_nand_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(!(i.a & i.exec))),
    (OLD, "s_nor_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(!(i.a | i.exec))),
    (OLD, "s_xnor_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(!(i.a ^ i.exec))),
    (OLD, "s_andn1_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(!i.a & i.exec)),
    (OLD, "s_orn1_saveexec_b64 s[20:21], s[22:23]", "i", |i| i.save(!i.a | i.exec)),
    (OLD, "s_andn1_wrexec_b64 s[20:21], s[22:23]", "i", |i| {
        let new = !i.a & i.exec;
        Out { d: new, scc: new != 0, exec: new }
    }),
    (OLD, "s_andn2_wrexec_b64 s[20:21], s[22:23]", "i", |i| {
        let new = i.a & !i.exec;
        Out { d: new, scc: new != 0, exec: new }
    }),
    (WAVE32, "s_xor_saveexec_b32 s20, s22", "i", |i| i.save_low(i.a ^ i.exec)),
    (WAVE32, "s_orn2_saveexec_b32 s20, s22", "i", |i| i.save_low(i.a | !i.exec)),
    (WAVE32, "s_nand_saveexec_b32 s20, s22", "i", |i| i.save_low(!(i.a & i.exec))),
    (WAVE32, "s_nor_saveexec_b32 s20, s22", "i", |i| i.save_low(!(i.a | i.exec))),
    (WAVE32, "s_xnor_saveexec_b32 s20, s22", "i", |i| i.save_low(!(i.a ^ i.exec))),
    (WAVE32, "s_andn1_saveexec_b32 s20, s22", "i", |i| i.save_low(!i.a & i.exec)),
    (WAVE32, "s_orn1_saveexec_b32 s20, s22", "i", |i| i.save_low(!i.a | i.exec)),
    (WAVE32, "s_andn1_wrexec_b32 s20, s22", "i", |i| i.write_low(!i.a & i.exec)),
    (WAVE32, "s_andn2_wrexec_b32 s20, s22", "i", |i| i.write_low(i.a & !i.exec)),
    // Comparisons.
    (OLD, "s_cmp_eq_i32 s22, s24", "i", |i| i.all(i.d).scc(i.a as i32 == i.b as i32)),
    (OLD, "s_cmp_lg_i32 s22, s24", "i", |i| i.all(i.d).scc(i.a as i32 != i.b as i32)),
    (OLD, "s_cmp_gt_i32 s22, s24", "i", |i| i.all(i.d).scc(i.a as i32 > i.b as i32)),
    (OLD, "s_cmp_ge_i32 s22, s24", "i", |i| i.all(i.d).scc(i.a as i32 >= i.b as i32)),
    (OLD, "s_cmp_lt_i32 s22, s24", "i", |i| i.all(i.d).scc((i.a as i32) < i.b as i32)),
    (OLD, "s_cmp_le_i32 s22, s24", "i", |i| i.all(i.d).scc(i.a as i32 <= i.b as i32)),
    (OLD, "s_cmp_eq_u32 s22, s24", "i", |i| i.all(i.d).scc(i.a as u32 == i.b as u32)),
    (OLD, "s_cmp_lg_u32 s22, s24", "i", |i| i.all(i.d).scc(i.a as u32 != i.b as u32)),
    (OLD, "s_cmp_gt_u32 s22, s24", "i", |i| i.all(i.d).scc(i.a as u32 > i.b as u32)),
    (OLD, "s_cmp_ge_u32 s22, s24", "i", |i| i.all(i.d).scc(i.a as u32 >= i.b as u32)),
    (OLD, "s_cmp_lt_u32 s22, s24", "i", |i| i.all(i.d).scc((i.a as u32) < i.b as u32)),
    (OLD, "s_cmp_le_u32 s22, s24", "i", |i| i.all(i.d).scc(i.a as u32 <= i.b as u32)),
    (OLD, "s_cmp_eq_u64 s[22:23], s[24:25]", "i", |i| i.all(i.d).scc(i.a == i.b)),
    (OLD, "s_cmp_lg_u64 s[22:23], s[24:25]", "i", |i| i.all(i.d).scc(i.a != i.b)),
    (OLD, "s_cmpk_eq_i32 s22, 0xffff", "i", |i| i.all(i.d).scc(i.a as i32 == -1)),
    (OLD, "s_cmpk_lg_i32 s22, 0xffff", "i", |i| i.all(i.d).scc(i.a as i32 != -1)),
    (OLD, "s_cmpk_gt_i32 s22, 0xffff", "i", |i| i.all(i.d).scc(i.a as i32 > -1)),
    (OLD, "s_cmpk_ge_i32 s22, 0xffff", "i", |i| i.all(i.d).scc(i.a as i32 >= -1)),
    (OLD, "s_cmpk_lt_i32 s22, 0x1", "i", |i| i.all(i.d).scc((i.a as i32) < 1)),
    (OLD, "s_cmpk_le_i32 s22, 0x1", "i", |i| i.all(i.d).scc(i.a as i32 <= 1)),
    (OLD, "s_cmpk_eq_u32 s22, 0x1", "i", |i| i.all(i.d).scc(i.a as u32 == 1)),
    (OLD, "s_cmpk_lg_u32 s22, 0x1", "i", |i| i.all(i.d).scc(i.a as u32 != 1)),
    (OLD, "s_cmpk_gt_u32 s22, 0xffff", "i", |i| i.all(i.d).scc(i.a as u32 > 0xffff)),
    (OLD, "s_cmpk_ge_u32 s22, 0xffff", "i", |i| i.all(i.d).scc(i.a as u32 >= 0xffff)),
    (OLD, "s_cmpk_lt_u32 s22, 0xffff", "i", |i| i.all(i.d).scc((i.a as u32) < 0xffff)),
    (OLD, "s_cmpk_le_u32 s22, 0xffff", "i", |i| i.all(i.d).scc(i.a as u32 <= 0xffff)),
    (NEW, "s_cmp_lt_f32 s22, s24", "F", |i| i.order(false, |o| o == Some(Ordering::Less))),
    (NEW, "s_cmp_eq_f32 s22, s24", "F", |i| i.order(false, |o| o == Some(Ordering::Equal))),
    (NEW, "s_cmp_le_f32 s22, s24", "F", |i| {
        i.order(false, |o| matches!(o, Some(Ordering::Less | Ordering::Equal)))
    }),
    (NEW, "s_cmp_gt_f32 s22, s24", "F", |i| i.order(false, |o| o == Some(Ordering::Greater))),
    (NEW, "s_cmp_lg_f32 s22, s24", "F", |i| {
        i.order(false, |o| matches!(o, Some(Ordering::Less | Ordering::Greater)))
    }),
    (NEW, "s_cmp_ge_f32 s22, s24", "F", |i| {
        i.order(false, |o| matches!(o, Some(Ordering::Greater | Ordering::Equal)))
    }),
    (NEW, "s_cmp_o_f32 s22, s24", "F", |i| i.order(false, |o| o.is_some())),
    (NEW, "s_cmp_u_f32 s22, s24", "F", |i| i.order(false, |o| o.is_none())),
    (NEW, "s_cmp_nge_f32 s22, s24", "F", |i| {
        i.order(false, |o| !matches!(o, Some(Ordering::Greater | Ordering::Equal)))
    }),
    (NEW, "s_cmp_nlg_f32 s22, s24", "F", |i| {
        i.order(false, |o| !matches!(o, Some(Ordering::Less | Ordering::Greater)))
    }),
    (NEW, "s_cmp_ngt_f32 s22, s24", "F", |i| i.order(false, |o| o != Some(Ordering::Greater))),
    (NEW, "s_cmp_nle_f32 s22, s24", "F", |i| {
        i.order(false, |o| !matches!(o, Some(Ordering::Less | Ordering::Equal)))
    }),
    (NEW, "s_cmp_neq_f32 s22, s24", "F", |i| i.order(false, |o| o != Some(Ordering::Equal))),
    (NEW, "s_cmp_nlt_f32 s22, s24", "F", |i| i.order(false, |o| o != Some(Ordering::Less))),
    (NEW, "s_cmp_lt_f16 s22, s24", "H", |i| i.order(true, |o| o == Some(Ordering::Less))),
    (NEW, "s_cmp_eq_f16 s22, s24", "H", |i| i.order(true, |o| o == Some(Ordering::Equal))),
    (NEW, "s_cmp_le_f16 s22, s24", "H", |i| {
        i.order(true, |o| matches!(o, Some(Ordering::Less | Ordering::Equal)))
    }),
    (NEW, "s_cmp_gt_f16 s22, s24", "H", |i| i.order(true, |o| o == Some(Ordering::Greater))),
    (NEW, "s_cmp_lg_f16 s22, s24", "H", |i| {
        i.order(true, |o| matches!(o, Some(Ordering::Less | Ordering::Greater)))
    }),
    (NEW, "s_cmp_ge_f16 s22, s24", "H", |i| {
        i.order(true, |o| matches!(o, Some(Ordering::Greater | Ordering::Equal)))
    }),
    (NEW, "s_cmp_o_f16 s22, s24", "H", |i| i.order(true, |o| o.is_some())),
    (NEW, "s_cmp_u_f16 s22, s24", "H", |i| i.order(true, |o| o.is_none())),
    (NEW, "s_cmp_nge_f16 s22, s24", "H", |i| {
        i.order(true, |o| !matches!(o, Some(Ordering::Greater | Ordering::Equal)))
    }),
    (NEW, "s_cmp_nlg_f16 s22, s24", "H", |i| {
        i.order(true, |o| !matches!(o, Some(Ordering::Less | Ordering::Greater)))
    }),
    (NEW, "s_cmp_ngt_f16 s22, s24", "H", |i| i.order(true, |o| o != Some(Ordering::Greater))),
    (NEW, "s_cmp_nle_f16 s22, s24", "H", |i| {
        i.order(true, |o| !matches!(o, Some(Ordering::Less | Ordering::Equal)))
    }),
    (NEW, "s_cmp_neq_f16 s22, s24", "H", |i| i.order(true, |o| o != Some(Ordering::Equal))),
    (NEW, "s_cmp_nlt_f16 s22, s24", "H", |i| i.order(true, |o| o != Some(Ordering::Less))),
    // Floating point, in numbers whose results are no denormals.
    (NEW, "s_add_f32 s20, s22, s24", "f", |i| i.float(i.floats()[1] + i.floats()[2])),
    (NEW, "s_sub_f32 s20, s22, s24", "f", |i| i.float(i.floats()[1] - i.floats()[2])),
    (NEW, "s_mul_f32 s20, s22, s24", "f", |i| i.float(i.floats()[1] * i.floats()[2])),
    (NEW, "s_min_f32 s20, s22, s24", "f", |i| i.float(i.floats()[1].min(i.floats()[2]))),
    (NEW, "s_max_f32 s20, s22, s24", "f", |i| i.float(i.floats()[1].max(i.floats()[2]))),
    (NEWEST, "s_minimum_f32 s20, s22, s24", "f", |i| i.float(i.floats()[1].min(i.floats()[2]))),
    (NEWEST, "s_maximum_f32 s20, s22, s24", "f", |i| i.float(i.floats()[1].max(i.floats()[2]))),
    (NEW, "s_fmac_f32 s20, s22, s24", "f", |i| {
        let [d, a, b] = i.floats();
        i.float(a.mul_add(b, d))
    }),
    (NEW, "s_fmaak_f32 s20, s22, s24, 0x40490fdb", "f", |i| {
        i.float(i.floats()[1].mul_add(i.floats()[2], std::f32::consts::PI))
    }),
    (NEW, "s_fmamk_f32 s20, s22, 0x40490fdb, s24", "f", |i| {
        i.float(i.floats()[1].mul_add(std::f32::consts::PI, i.floats()[2]))
    }),
    (NEW, "s_ceil_f32 s20, s22", "f", |i| i.float(i.floats()[1].ceil())),
    (NEW, "s_floor_f32 s20, s22", "f", |i| i.float(i.floats()[1].floor())),
    (NEW, "s_trunc_f32 s20, s22", "f", |i| i.float(i.floats()[1].trunc())),
    (NEW, "s_rndne_f32 s20, s22", "f", |i| i.float(i.floats()[1].round_ties_even())),
    (NEW, "s_cvt_f32_i32 s20, s22", "i", |i| i.float(i.a as i32 as f32)),
    (NEW, "s_cvt_f32_u32 s20, s22", "i", |i| i.float(i.a as u32 as f32)),
    (NEW, "s_cvt_i32_f32 s20, s22", "f", |i| i.low(i.floats()[1] as i32 as u64)),
    (NEW, "s_cvt_u32_f32 s20, s22", "f", |i| i.low((i.floats()[1] as u32).into())),
    (NEW, "s_cvt_f16_f32 s20, s22", "f", |i| i.half(i.floats()[1].into())),
    (NEW, "s_cvt_f32_f16 s20, s22", "h", |i| i.float(i.halves()[1] as f32)),
    (NEW, "s_cvt_hi_f32_f16 s20, s22", "i", |i| {
        // Not of those that are no numbers.
        let high = HALF.number(i.a as u32 >> 16 & 0xffff);
        i.float(if high.is_nan() { f32::NAN } else { high as f32 })
    }),
    (NEW, "s_cvt_pk_rtz_f16_f32 s20, s22, s24", "f", |i| {
        let [_, a, b] = i.floats().map(|number| HALF.below(number.into()).expect("in range"));
        i.low(u64::from(a) | u64::from(b) << 16)
    }),
    (NEW, "s_add_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1] + i.halves()[2])),
    (NEW, "s_sub_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1] - i.halves()[2])),
    (NEW, "s_mul_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1] * i.halves()[2])),
    (NEW, "s_min_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1].min(i.halves()[2]))),
    (NEW, "s_max_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1].max(i.halves()[2]))),
    (NEWEST, "s_minimum_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1].min(i.halves()[2]))),
    (NEWEST, "s_maximum_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1].max(i.halves()[2]))),
    (NEW, "s_fmac_f16 s20, s22, s24", "h", |i| i.half(i.halves()[1] * i.halves()[2] + i.halves()[0])),
    (NEW, "s_ceil_f16 s20, s22", "h", |i| i.half(i.halves()[1].ceil())),
    (NEW, "s_floor_f16 s20, s22", "h", |i| i.half(i.halves()[1].floor())),
    (NEW, "s_trunc_f16 s20, s22", "h", |i| i.half(i.halves()[1].trunc())),
    (NEW, "s_rndne_f16 s20, s22", "h", |i| i.half(i.halves()[1].round_ties_even())),
];

/// Runs an instruction.
fn ran(gpu: &str, code: &str, i: In) -> Out {
    let wave64 = rig::gpu(gpu).wave64();
    let set = |n: u16, value: u64| {
        format!("s_mov_b32 s{n}, {:#x}\ns_mov_b32 s{}, {:#x}\n", value as u32, n + 1, value >> 32)
    };
    let exec = |high: &str, low: &str| if wave64 { format!("{low}\n{high}\n") } else { format!("{low}\n") };
    let before = exec(
        &format!("s_mov_b32 exec_hi, {:#x}", i.exec >> 32),
        &format!("s_mov_b32 exec_lo, {:#x}", i.exec as u32),
    );
    let after = exec("s_mov_b32 s31, exec_hi", "s_mov_b32 s30, exec_lo");
    let code = format!(
        "{}{}{}s_cmp_lg_u32 {}, 0\n{before}{code}\n{after}s_mov_b32 s20, s20\ns_mov_b32 s21, s21\ns_cselect_b32 s32, 1, 0",
        set(20, i.d),
        set(22, i.a),
        set(24, i.b),
        u8::from(i.scc)
    );
    let ran = rig::plain(gpu, &code).clean();
    let pair = |n: u16| u64::from(ran.s(n)) | u64::from(ran.s(n + 1)) << 32;
    let exec = if wave64 { pair(30) } else { u64::from(ran.s(30)) | i.exec >> 32 << 32 };
    Out { d: pair(20), scc: ran.s(32) != 0, exec }
}

#[test]
fn instructions_do_what_their_models_say() {
    let mut wrong = Vec::new();
    for (gpu, code, sources, model) in MODELS {
        let mut numbers = Numbers(code.len() as u64);
        for _ in 0..24 {
            let mut value = || match *sources {
                "f" => numbers.value("f32m") | numbers.next() << 32,
                "F" => numbers.value("f32"),
                "H" => numbers.value("f16"),
                "h" => numbers.value("f16m") | numbers.next() << 32,
                _ => numbers.value("i64"),
            };
            let (d, a, b, exec) = (value(), value(), value(), value());
            let b = if numbers.below(5) == 0 { a } else { b };
            let i = In { d, a, b, scc: numbers.below(2) != 0, exec };
            let (got, expected) = (ran(gpu, code, i), model(i));
            let nan = |bits: u64| bits & 0x7fff_ffff > 0x7f80_0000;
            if got != expected && !(nan(got.d) && nan(expected.d) && code.contains("f32_f16")) {
                wrong.push(format!("{gpu} {code}: {i:x?} gives {got:x?}, not {expected:x?}"));
                break;
            }
        }
    }
    eprintln!("{} instructions", MODELS.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// In waves of 32 lanes `vcc_hi` is a register like any other.
#[test]
fn vccz_is_of_the_lanes_there_are() {
    let code =
        "s_mov_b32 vcc_lo, 0\ns_mov_b32 vcc_hi, 1\ns_mov_b32 s20, 7\ns_cbranch_vccz 1\ns_mov_b32 s20, 8";
    for (gpu, left) in [("gfx1010", 7), ("gfx1100", 7), ("gfx1010+wavefrontsize64", 8), ("gfx900", 8)] {
        assert_eq!(rig::plain(gpu, code).s(20), left, "{gpu}");
    }
}
