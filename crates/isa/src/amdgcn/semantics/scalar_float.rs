//! Floating-point operations of the scalar ALU, from gfx11.5 on: those of the vector ALU in one lane.

use super::vector_float as vf;
use super::{Op, ScalarIn};
use crate::amdgcn::opcode::{ConvertOp, FloatOp, MinmaxOp, ScalarFloatOp};

/// Defines a scalar operation by that of the vector ALU.
macro_rules! as_vector {
    ($op:expr) => {
        Op::Scalar(|m, s: ScalarIn| {
            let Op::Lane(lane) = $op else { return (0, s.scc) };
            (u64::from((lane.one)(m, s.a as u32, s.b as u32, s.d as u32)), s.scc)
        })
    };
}

/// The operation of a row.
pub(super) fn of(op: ScalarFloatOp) -> Op {
    match op {
        ScalarFloatOp::s_ceil_f16 => as_vector!(vf::convert(ConvertOp::v_ceil_f16)),
        ScalarFloatOp::s_ceil_f32 => as_vector!(vf::convert(ConvertOp::v_ceil_f32)),
        ScalarFloatOp::s_floor_f16 => as_vector!(vf::convert(ConvertOp::v_floor_f16)),
        ScalarFloatOp::s_floor_f32 => as_vector!(vf::convert(ConvertOp::v_floor_f32)),
        ScalarFloatOp::s_trunc_f16 => as_vector!(vf::convert(ConvertOp::v_trunc_f16)),
        ScalarFloatOp::s_trunc_f32 => as_vector!(vf::convert(ConvertOp::v_trunc_f32)),
        ScalarFloatOp::s_rndne_f16 => as_vector!(vf::convert(ConvertOp::v_rndne_f16)),
        ScalarFloatOp::s_rndne_f32 => as_vector!(vf::convert(ConvertOp::v_rndne_f32)),
        ScalarFloatOp::s_cvt_f16_f32 => as_vector!(vf::convert(ConvertOp::v_cvt_f16_f32)),
        ScalarFloatOp::s_cvt_f32_f16 => as_vector!(vf::convert(ConvertOp::v_cvt_f32_f16)),
        ScalarFloatOp::s_cvt_hi_f32_f16 => Op::Scalar(|m, s| {
            let Op::Lane(lane) = vf::convert(ConvertOp::v_cvt_f32_f16) else { return (0, s.scc) };
            (u64::from((lane.one)(m, s.a as u32 >> 16, 0, 0)), s.scc)
        }),
        ScalarFloatOp::s_cvt_f32_i32 => as_vector!(vf::convert(ConvertOp::v_cvt_f32_i32)),
        ScalarFloatOp::s_cvt_f32_u32 => as_vector!(vf::convert(ConvertOp::v_cvt_f32_u32)),
        ScalarFloatOp::s_cvt_i32_f32 => as_vector!(vf::convert(ConvertOp::v_cvt_i32_f32)),
        ScalarFloatOp::s_cvt_u32_f32 => as_vector!(vf::convert(ConvertOp::v_cvt_u32_f32)),
        ScalarFloatOp::s_cvt_pk_rtz_f16_f32 => as_vector!(vf::convert(ConvertOp::v_cvt_pkrtz_f16_f32)),
        ScalarFloatOp::s_add_f16 => as_vector!(vf::float(FloatOp::v_add_f16)),
        ScalarFloatOp::s_add_f32 => as_vector!(vf::float(FloatOp::v_add_f32)),
        ScalarFloatOp::s_sub_f16 => as_vector!(vf::float(FloatOp::v_sub_f16)),
        ScalarFloatOp::s_sub_f32 => as_vector!(vf::float(FloatOp::v_sub_f32)),
        ScalarFloatOp::s_mul_f16 => as_vector!(vf::float(FloatOp::v_mul_f16)),
        ScalarFloatOp::s_mul_f32 => as_vector!(vf::float(FloatOp::v_mul_f32)),
        ScalarFloatOp::s_fmac_f16 => as_vector!(vf::float(FloatOp::v_fmac_f16)),
        ScalarFloatOp::s_fmac_f32 => as_vector!(vf::float(FloatOp::v_fmac_f32)),
        ScalarFloatOp::s_fmaak_f32 => as_vector!(vf::float(FloatOp::v_fmaak_f32)),
        ScalarFloatOp::s_fmamk_f32 => as_vector!(vf::float(FloatOp::v_fmamk_f32)),
        ScalarFloatOp::s_min_f16 => as_vector!(vf::minmax(MinmaxOp::v_min_f16)),
        ScalarFloatOp::s_min_f32 => as_vector!(vf::minmax(MinmaxOp::v_min_f32)),
        ScalarFloatOp::s_max_f16 => as_vector!(vf::minmax(MinmaxOp::v_max_f16)),
        ScalarFloatOp::s_max_f32 => as_vector!(vf::minmax(MinmaxOp::v_max_f32)),
        ScalarFloatOp::s_minimum_f16 => as_vector!(vf::minmax(MinmaxOp::v_minimum_f16)),
        ScalarFloatOp::s_minimum_f32 => as_vector!(vf::minmax(MinmaxOp::v_minimum_f32)),
        ScalarFloatOp::s_maximum_f16 => as_vector!(vf::minmax(MinmaxOp::v_maximum_f16)),
        ScalarFloatOp::s_maximum_f32 => as_vector!(vf::minmax(MinmaxOp::v_maximum_f32)),
    }
}
