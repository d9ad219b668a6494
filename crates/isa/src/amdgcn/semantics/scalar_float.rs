//! Floating-point operations of the scalar ALU, from gfx11.5 on: those of the vector ALU in one lane.

use super::{Op, ScalarIn};

/// Defines a scalar operation by the vector ALU's of the same name: `d` says what the third source is.
macro_rules! as_vector {
    ($name:literal) => {
        Op::Scalar(|m, s: ScalarIn| {
            let Some(Op::Lane(lane)) = super::vector_float::find($name) else { return (0, s.scc) };
            (u64::from((lane.one)(m, s.a as u32, s.b as u32, s.d as u32)), s.scc)
        })
    };
}

/// The operation of a row.
pub(super) fn find(name: &str) -> Option<Op> {
    Some(match name {
        "s_ceil_f16" => as_vector!("v_ceil_f16"),
        "s_ceil_f32" => as_vector!("v_ceil_f32"),
        "s_floor_f16" => as_vector!("v_floor_f16"),
        "s_floor_f32" => as_vector!("v_floor_f32"),
        "s_trunc_f16" => as_vector!("v_trunc_f16"),
        "s_trunc_f32" => as_vector!("v_trunc_f32"),
        "s_rndne_f16" => as_vector!("v_rndne_f16"),
        "s_rndne_f32" => as_vector!("v_rndne_f32"),
        "s_cvt_f16_f32" => as_vector!("v_cvt_f16_f32"),
        "s_cvt_f32_f16" => as_vector!("v_cvt_f32_f16"),
        "s_cvt_hi_f32_f16" => Op::Scalar(|m, s| {
            let Some(Op::Lane(lane)) = super::vector_float::find("v_cvt_f32_f16") else { return (0, s.scc) };
            (u64::from((lane.one)(m, s.a as u32 >> 16, 0, 0)), s.scc)
        }),
        "s_cvt_f32_i32" => as_vector!("v_cvt_f32_i32"),
        "s_cvt_f32_u32" => as_vector!("v_cvt_f32_u32"),
        "s_cvt_i32_f32" => as_vector!("v_cvt_i32_f32"),
        "s_cvt_u32_f32" => as_vector!("v_cvt_u32_f32"),
        "s_cvt_pk_rtz_f16_f32" => as_vector!("v_cvt_pkrtz_f16_f32"),
        "s_add_f16" => as_vector!("v_add_f16"),
        "s_add_f32" => as_vector!("v_add_f32"),
        "s_sub_f16" => as_vector!("v_sub_f16"),
        "s_sub_f32" => as_vector!("v_sub_f32"),
        "s_mul_f16" => as_vector!("v_mul_f16"),
        "s_mul_f32" => as_vector!("v_mul_f32"),
        "s_fmac_f16" => as_vector!("v_fmac_f16"),
        "s_fmac_f32" => as_vector!("v_fmac_f32"),
        "s_fmaak_f32" => as_vector!("v_fmaak_f32"),
        "s_fmamk_f32" => as_vector!("v_fmamk_f32"),
        "s_min_f16" => as_vector!("v_min_f16"),
        "s_min_f32" => as_vector!("v_min_f32"),
        "s_max_f16" => as_vector!("v_max_f16"),
        "s_max_f32" => as_vector!("v_max_f32"),
        "s_minimum_f16" => as_vector!("v_minimum_f16"),
        "s_minimum_f32" => as_vector!("v_minimum_f32"),
        "s_maximum_f16" => as_vector!("v_maximum_f16"),
        "s_maximum_f32" => as_vector!("v_maximum_f32"),
        _ => return None,
    })
}
