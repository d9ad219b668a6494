//! How fast ir3 code is interpreted: instructions, without `nop`, times fibers. `cargo bench -p unwedge-sim --bench ir3`.

use divan::Bencher;
use divan::counter::ItemsCount;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{Dispatch, Options, ShaderProgram, ShaderState, Timing, run};

fn main() {
    divan::main();
}

const GPU: u32 = 630;
const DESCRIPTORS: u64 = 0x20_0000;
const BUFFER: u64 = 0x30_0000;
/// Fibers of the grid: 16 groups of 256.
const FIBERS: u32 = 16 * 256;

/// A loop of integer and floating-point arithmetic in both sizes, of comparisons and of one special function, with
/// the waits and nops that it needs.
const ALU: &str = "
mov.u32u32 r7.x, 0
mov.u32u32 r1.x, r0.x
(rpt2)nop
again:
add.u r1.x, r1.x, r0.x
mov.u32u32 r2.w, 3
(rpt1)nop
mul.u24 r2.x, r1.x, r0.x
(rpt2)nop
xor.b r2.y, r2.x, r1.x
shl.b r2.z, r2.x, r2.w
(rpt1)nop
cov.u32f32 r3.x, r2.y
and.b r3.y, r2.z, c0.x
(rpt1)nop
mul.f r4.x, r3.x, c0.y
rcp r4.y, r3.x
cov.f32f16 hr12.x, r3.x
nop
mad.f32 r4.z, r4.x, r3.x, r4.x
(nop1) add.f hr12.y, hr12.x, hr12.x
max.f r4.w, r4.x, (neg)r3.x
cmps.u.lt r5.x, r2.y, r2.x
(rpt2)nop
sel.b32 r5.y, r4.w, r5.x, r2.y
(ss)add.f r5.z, r4.y, r4.z
(rpt1)nop
add.s r1.x, r5.y, r3.y
add.u r7.x, r7.x, 1
(rpt2)nop
cmps.u.lt p0.x, r7.x, c0.z
(rpt5)nop
br p0.x, #again
end
";

/// A loop of loads, local memory and stores, each waited for.
const MEMORY: &str = "
mov.u32u32 r7.x, 0
shl.b r2.x, r0.x, 2
(rpt5)nop
again:
add.u r7.x, r7.x, 1
ldib.b.untyped.1d.u32.1.imm.base0 r1.x, r0.x, 0
(sy)stl.u32 l[r2.x], r1.x, 1
(sy)(ss)bar.g
ldl.u32 r1.y, l[r2.x], 1
(ss)add.u r1.y, r1.x, r1.y
(rpt5)nop
stib.b.untyped.1d.u32.1.imm.base0 r1.y, r0.x, 0
cmps.u.lt p0.x, r7.x, c0.z
(rpt5)nop
br p0.x, #again
end
";

/// A descriptor of so many dwords of memory.
fn buffer(at: u64, elements: u32) -> [u32; 16] {
    let mut words = [0; 16];
    // FMT6_32_UINT; a buffer.
    (words[0], words[1], words[2]) = (0x4b << 22, elements, 4 << 29);
    (words[4], words[5]) = (at as u32, (at >> 32) as u32);
    words
}

/// The program, and how many instructions of its loop are not `nop`. `#again` is the distance to the line after
/// `again:`.
fn assemble(code: &str) -> (ShaderProgram, u64) {
    let mut assembler = Assembler::new(GPU);
    let mut words: Vec<u64> = Vec::new();
    let (mut again, mut counted) = (0, 0);
    for line in code.lines().filter(|line| !line.is_empty()) {
        if line == "again:" {
            (again, counted) = (words.len() as i64, 0);
            continue;
        }
        counted += u64::from(!line.ends_with("nop") && line != "end");
        let line = line.replace("#again", &format!("#{}", again - words.len() as i64));
        words.push(assembler.instruction(&line).expect("it assembles"));
    }
    (ShaderProgram::new(words, GPU), counted)
}

fn grid(bencher: Bencher<'_, '_>, (code, loops): (&str, u32), timing: Timing, threads: usize) {
    let (program, counted) = assemble(code);
    let dispatch = Dispatch {
        state: ShaderState {
            wave_size: 128,
            constants: vec![0xff, 0x3f00_0000, loops, 0],
            bindless: vec![DESCRIPTORS | 3],
            ..ShaderState::default()
        },
        groups: [FIBERS / 256, 1, 1],
        local_size: [256, 1, 1],
        local_memory: 1024,
        local_id: Some(0),
        ..Dispatch::default()
    };
    let options = Options { timing, threads, ..Options::default() };
    let go = || {
        let mut memory = SimMemory::default();
        memory.map(BUFFER, vec![1; 4 * FIBERS as usize]).expect("free");
        let descriptors: Vec<u8> =
            buffer(BUFFER, FIBERS).iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.map(DESCRIPTORS, descriptors).expect("free");
        run(&program, &dispatch, &mut memory, &options)
    };
    go().expect("no fault");
    bencher.counter(ItemsCount::new(counted * u64::from(loops) * u64::from(FIBERS))).bench(go);
}

#[divan::bench(args = [1, 2])]
fn plain(bencher: Bencher<'_, '_>, threads: usize) {
    grid(bencher, (ALU, 512), Timing::Plain, threads);
}

#[divan::bench(args = [1, 2])]
fn adversarial(bencher: Bencher<'_, '_>, threads: usize) {
    grid(bencher, (ALU, 512), Timing::Adversarial { seed: 1 }, threads);
}

#[divan::bench]
fn memory_plain(bencher: Bencher<'_, '_>) {
    grid(bencher, (MEMORY, 64), Timing::Plain, 1);
}

#[divan::bench]
fn memory_adversarial(bencher: Bencher<'_, '_>) {
    grid(bencher, (MEMORY, 64), Timing::Adversarial { seed: 1 }, 1);
}
