//! Speed of the ir3 assembler, in instructions: over a shader like those compilers make, and over distinct lines.

use divan::counter::ItemsCount;
use std::collections::BTreeSet;
use unwedge_isa::ir3::{self, asm::Assembler};
use unwedge_isa::table::generate;
use unwedge_isa::tables::{IR3, IR3_INSTRUCTION};

fn main() {
    divan::main();
}

/// The instructions of a loop body, as a compiler mixes them.
const BODY: &str = "(sy)(ss)mov.f32f32 r1.x, c8.x
mov.u32u32 r0.w, 0
(rpt5)nop
cmps.f.lt p0.x, r1.x, c16.x
br p0.x, #12
(nop3) add.f r1.w, r2.x, (neg)r3.y
mad.f32 r1.y, (neg)c12.x, r1.x, c12.y
(rpt2)mul.f r4.x, (r)r1.x, (r)c3.x
and.b r0.x, r0.y, 31
sel.b32 r2.y, c38.y, r2.y, c38.z
cov.f32f16 hr0.x, r1.w
sam (f32)(xyzw)r1.x, r0.z, s#6, t#6
(sy)rcp r2.z, r0.w
isam.base0 (f32)(xyzw)r0.z, r0.x, s#0, t#1
stib.b.untyped.1d.u32.1.imm.base0 r2.y, r5.z+3, 4
ldg.f32 r0.w, g[r0.w+308], 1
stg.f32 g[r0.z+305], r8.y, 3
shl.b r2.x, r2.x, 2
add.u hr0.x, hr0.y, h(7)
end
";

const COPIES: usize = 1000;

#[divan::bench]
fn assemble(bencher: divan::Bencher<'_, '_>) {
    let source = BODY.repeat(COPIES);
    let count = source.lines().count();
    let mut assembler = Assembler::new(630);
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let (program, errors) = assembler.assemble("bench", &source);
        assert!(errors.is_empty(), "{}", errors[0]);
        program
    });
}

/// Distinct lines: words of the table with random fields, of the categories 1 to 4 or of all, as they are printed.
#[divan::bench(args = [(330, false), (630, false), (730, false), (330, true), (630, true), (730, true)])]
fn distinct(bencher: divan::Bencher<'_, '_>, (gpu_id, all): (u32, bool)) {
    let source = printed(gpu_id, all);
    let count = source.lines().count();
    let mut assembler = Assembler::new(gpu_id);
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let (program, errors) = assembler.assemble("bench", &source);
        assert!(errors.is_empty(), "{}", errors[0]);
        program
    });
}

/// Lines that the assembler takes.
fn printed(gpu_id: u32, all: bool) -> String {
    const WORDS: usize = 300;
    let mut assembler = Assembler::new(gpu_id);
    let mut lines = BTreeSet::new();
    for leaf in IR3.leaves(IR3_INSTRUCTION) {
        let category = IR3.pattern(leaf).1 >> 61;
        if !all && !(1..=4).contains(&category) {
            continue;
        }
        for word in generate::words(IR3, leaf, 2, WORDS) {
            let mut text = Vec::new();
            ir3::write(word as u64, gpu_id, &mut text);
            let text = String::from_utf8_lossy(&text);
            let text = text.split('\t').next().unwrap_or_default();
            if !text.starts_with("raw") && assembler.instruction(text).is_ok() {
                lines.insert((word.wrapping_mul(0x9e37_79b9_7f4a_7c15) as u64, text.to_string()));
            }
        }
    }
    lines.into_iter().map(|(_, line)| line + "\n").collect()
}

#[divan::bench]
fn new_assembler() -> Assembler {
    Assembler::new(630)
}
