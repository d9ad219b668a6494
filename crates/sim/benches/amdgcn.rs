//! How fast the emulator is: instructions times enabled lanes. `cargo bench -p unwedge-sim`.

use divan::Bencher;
use divan::counter::ItemsCount;
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::source::assemble;
use unwedge_sim::amdgcn::{Dispatch, Initial, Memory, Program, Timing, run};

fn main() {
    divan::main();
}

/// A loop of integer and floating-point arithmetic, and of comparisons.
const CODE: &str = "
s_movk_i32 s4, 0x200
again:
v_add_u32_e32 v1, v1, v0
v_mul_lo_u32 v2, v1, v0
v_xor_b32_e32 v3, v2, v1
v_cvt_f32_u32_e32 v4, v3
v_mul_f32_e32 v5, v4, v4
v_fma_f32 v6, v5, v4, v6
v_max_f32_e32 v7, v6, v5
v_cmp_lt_u32_e32 vcc, v3, v1
v_cndmask_b32_e32 v8, v7, v3, vcc
v_lshl_add_u32 v9, v8, 2, v1
s_sub_u32 s4, s4, 1
s_cmp_lg_u32 s4, 0
s_cbranch_scc1 again
s_endpgm
";

fn grid(bencher: Bencher<'_, '_>, timing: Timing, threads: usize) {
    let gpu = Gpu::new("gfx900").expect("known");
    let made = assemble(CODE, &gpu);
    let bytes = &made.sections[0].bytes;
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let program = Program::new(&words, 0, gpu);
    let vectors = (0..10).map(|n| (n, Initial::LocalId(0))).collect();
    let dispatch =
        Dispatch { groups: [16, 1, 1], size: [256, 1, 1], vectors, timing, threads, ..Dispatch::default() };
    let lanes = run(&program, &mut Memory::default(), &dispatch, None).lane_steps;
    bencher.counter(ItemsCount::new(lanes)).bench(|| run(&program, &mut Memory::default(), &dispatch, None));
}

#[divan::bench(args = [1, 2])]
fn plain(bencher: Bencher<'_, '_>, threads: usize) {
    grid(bencher, Timing::Plain, threads);
}

#[divan::bench]
fn adversarial(bencher: Bencher<'_, '_>) {
    grid(bencher, Timing::Adversarial { seed: 1 }, 1);
}
