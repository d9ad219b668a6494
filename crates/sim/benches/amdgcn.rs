//! How fast the emulator is: instructions times enabled lanes. `cargo bench -p unwedge-sim`.

use divan::Bencher;
use divan::counter::ItemsCount;
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::source::assemble;
use unwedge_sim::amdgcn::{Dispatch, Initial, Program, SimMemory, Timing, run};

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

/// A loop of loads, stores, LDS and scalar loads, each waited for.
const MEMORY: &str = "
s_movk_i32 s4, 0x40
v_lshlrev_b32_e32 v2, 2, v0
again:
s_load_dword s5, s[2:3], 0x0
global_load_dword v3, v2, s[2:3]
s_waitcnt vmcnt(0)
ds_write_b32 v2, v3
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v4, v2
s_waitcnt lgkmcnt(0)
v_add_u32_e32 v4, s5, v4
global_store_dword v2, v4, s[2:3]
s_sub_u32 s4, s4, 1
s_cmp_lg_u32 s4, 0
s_cbranch_scc1 again
s_endpgm
";

fn grid(bencher: Bencher<'_, '_>, code: &str, timing: Timing, threads: usize) {
    let gpu = Gpu::new("gfx900").expect("known");
    let made = assemble(code, &gpu);
    let bytes = &made.sections[0].bytes;
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let program = Program::new(&words, 0, gpu);
    let vectors = (0..10).map(|n| (n, Initial::LocalId(0))).collect();
    let scalars = vec![(2, 0x1_0000), (3, 0)];
    let (groups, size) = ([16, 1, 1], [256, 1, 1]);
    let dispatch =
        Dispatch { groups, size, scalars, vectors, lds: 1024, timing, threads, ..Dispatch::default() };
    let go = || {
        let mut memory = SimMemory::default();
        memory.map(0x1_0000, vec![1; 1024]).expect("free");
        run(&program, &mut memory, &dispatch, None)
    };
    let outcome = go();
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    bencher.counter(ItemsCount::new(outcome.lane_steps)).bench(go);
}

#[divan::bench(args = [1, 2])]
fn plain(bencher: Bencher<'_, '_>, threads: usize) {
    grid(bencher, CODE, Timing::Plain, threads);
}

#[divan::bench(args = [1, 2])]
fn adversarial(bencher: Bencher<'_, '_>, threads: usize) {
    grid(bencher, CODE, Timing::Adversarial { seed: 1 }, threads);
}

#[divan::bench]
fn memory_plain(bencher: Bencher<'_, '_>) {
    grid(bencher, MEMORY, Timing::Plain, 1);
}

#[divan::bench]
fn memory_adversarial(bencher: Bencher<'_, '_>) {
    grid(bencher, MEMORY, Timing::Adversarial { seed: 1 }, 1);
}
