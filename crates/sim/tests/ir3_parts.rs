//! Small shaders, assembled here: what each instruction gives, and what timing does to those that do not wait.

mod assembled;

use assembled::assemble;
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{Dispatch, Fault, FaultKind, MemoryUnit, Options, ShaderState, Timing, run};

const GPU: u32 = 630;
const OUTPUT: u64 = 0x10_0000;
const DESCRIPTORS: u64 = 0x20_0000;
const INPUT: u64 = 0x30_0000;
const WORDS: usize = 256;

/// A descriptor of so many dwords of memory.
fn buffer(at: u64, elements: u32) -> [u32; 16] {
    let mut words = [0; 16];
    // FMT6_32_UINT; a buffer.
    (words[0], words[1], words[2]) = (0x4b << 22, elements, 4 << 29);
    (words[4], words[5]) = (at as u32, (at >> 32) as u32);
    words
}

fn memory() -> SimMemory {
    let mut memory = SimMemory::default();
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    memory.map(OUTPUT, vec![0xcd; 4 * WORDS]).expect("free");
    let input: Vec<u32> = (0..WORDS as u32).map(|at| at * 3 + 100).collect();
    memory.map(INPUT, bytes(&input)).expect("free");
    let descriptors = [buffer(INPUT, WORDS as u32), buffer(OUTPUT, WORDS as u32), [0; 16]];
    memory.map(DESCRIPTORS, bytes(&descriptors.concat())).expect("free");
    memory
}

fn dispatch() -> Dispatch {
    Dispatch {
        state: ShaderState {
            constants: vec![7, 0x4040_0000, 0, 0],
            bindless: vec![DESCRIPTORS | 3],
            ..ShaderState::default()
        },
        local_memory: 1024,
        local_id: Some(0),
        group_id: Some(192),
        ..Dispatch::default()
    }
}

/// Runs a shader of one workgroup of 64 fibers; it stores `r1.x` of each fiber.
fn outputs(source: &str, timing: Timing) -> Result<Vec<u32>, Fault> {
    let store = "\n(rpt5)nop\n(sy)(ss)nop\nstib.b.untyped.1d.u32.1.imm.base0 r1.x, r0.x, 1\nend";
    let program = assemble(&format!("{source}{store}"), GPU);
    let mut memory = memory();
    run(&program, &dispatch(), &mut memory, &Options { timing, ..Options::default() })?;
    let word = |at: u64| memory.load(OUTPUT + 4 * at, 4).known().expect("known") as u32;
    Ok((0..64).map(word).collect())
}

fn plain(source: &str) -> Vec<u32> {
    outputs(source, Timing::Plain).expect("no fault")
}

/// Whether some seed gives something else than plain timing.
fn fragile(source: &str) -> bool {
    let right = plain(source);
    (1..40).any(|seed| outputs(source, Timing::Adversarial { seed }).as_ref() != Ok(&right))
}

#[test]
fn arithmetic_of_each_category() {
    assert_eq!(plain("add.u r1.x, r0.x, c0.x")[5], 12);
    assert_eq!(plain("(rpt1)mov.u32u32 r1.x, 9\n(rpt5)nop\n(rpt1)add.u r1.x, (r)r1.x, r0.x")[3], 12);
    assert_eq!(plain("mov.f32f32 r2.x, c0.y\n(rpt2)nop\nmad.f32 r1.x, c0.y, r2.x, r2.x")[0], 12f32.to_bits());
    assert_eq!(plain("mov.f32f32 r2.x, c0.y\n(rpt5)nop\nrcp r1.x, r2.x")[0], (1.0f32 / 3.0).to_bits());
    // A half register is half of a full one.
    let halves = "mov.u32u32 r1.x, 0\n(rpt5)nop\nmov.u16u16 hr2.y, 5\nmov.u16u16 hr2.x, 6";
    assert_eq!(plain(halves)[0], 5 << 16 | 6);
    // A move to a shared register takes the first fiber's value.
    assert_eq!(
        plain("add.u r2.x, r0.x, 3\n(rpt5)nop\nmov.u32u32 r48.w, r2.x\n(ss)mov.u32u32 r1.x, r48.w")[9],
        3
    );
}

#[test]
fn fibers_part_and_meet() {
    let source = "mov.u32u32 r1.x, 1
        cmps.u.lt p0.x, r0.x, 10
        (rpt5)nop
        br !p0.x, #3
        add.u r1.x, r1.x, 10
        jump #2
        add.u r1.x, r1.x, 20
        (jp)nop
        (rpt5)nop
        add.u r1.x, r1.x, 100";
    let words = plain(source);
    assert_eq!((words[3], words[9], words[10], words[63]), (111, 111, 121, 121));
    // Each fiber goes round as often as its number says.
    let source = "mov.u32u32 r1.x, 0
        mov.u32u32 r2.x, 0
        (rpt5)nop
        add.u r1.x, r1.x, 2
        add.u r2.x, r2.x, 1
        (rpt5)nop
        cmps.u.le p0.x, r2.x, r0.x
        (rpt5)nop
        br p0.x, #-5
        (jp)nop";
    let words = plain(source);
    assert_eq!((words[0], words[7], words[63]), (2, 16, 128));
    let source =
        "mov.u32u32 r1.x, 1\ncmps.u.lt p0.x, r0.x, 4\n(rpt5)nop\npredt\n(ss)mov.u32u32 r1.x, 2\npredf
        mov.u32u32 r1.x, 3\nprede";
    let words = plain(source);
    assert_eq!((words[0], words[3], words[4]), (2, 2, 3));
}

#[test]
fn memory_of_each_kind() {
    assert_eq!(plain("ldib.b.untyped.1d.u32.1.imm.base0 r1.x, r0.x, 0")[2], 106);
    assert_eq!(plain("isam.base0.1d (u32)(x)r1.x, r0.x, s#0, t#0")[2], 106);
    // Past the end of a buffer there are zeros, and so there are of a null descriptor.
    let past = "add.u r2.x, r0.x, 255\n(rpt5)nop\nldib.b.untyped.1d.u32.1.imm.base0 r1.x, r2.x, 0";
    assert_eq!(plain(past)[..2], [100 + 255 * 3, 0]);
    assert_eq!(plain("ldib.b.untyped.1d.u32.1.imm.base0 r1.x, r0.x, 2")[0], 0);
    let local = "shl.b r2.x, r0.x, 2\n(rpt5)nop\nstl.u32 l[r2.x], r0.x, 1\nfence.r.w\n(ss)nop\n(sy)bar.g
        (sy)(ss)xor.b r2.x, r2.x, 4\n(rpt5)nop\nldl.u32 r1.x, l[r2.x], 1";
    assert_eq!(plain(local)[..4], [1, 0, 3, 2]);
    let global =
        format!("mov.u32u32 r2.x, {INPUT}\nmov.u32u32 r2.y, 0\n(rpt5)nop\nldg.u32 r1.x, g[r2.x+8], 1");
    assert_eq!(plain(&global)[0], 106);
    let add = "mov.u32u32 r2.x, 0\nmov.u32u32 r2.y, 3\n(rpt5)nop\nstl.u32 l[r2.x], r2.x, 1\n(ss)nop
        atomic.add.untyped.1d.u32.1.l r1.x, l[r2.x], r2.y";
    assert_eq!(plain(add)[63], 189);
}

#[test]
fn what_is_not_mapped_is_a_fault() {
    let source = "mov.u32u32 r2.x, 64\nmov.u32u32 r2.y, 9\n(rpt5)nop\nldg.u32 r1.x, g[r2.x], 1";
    let fault = outputs(source, Timing::Plain).expect_err("nothing is mapped there");
    let FaultKind::Memory(memory, unit) = &fault.kind else { panic!("{fault}") };
    assert_eq!((memory.address, *unit, fault.at), (0x9_0000_0040, MemoryUnit::Uche, 3));
    assert_eq!(
        fault.to_string(),
        "workgroup 0,0,0, wave 0, instruction 3: UCHE: read of 0x900000040, which is not mapped"
    );
}

/// Each pair: with what it has to wait for, and without.
#[test]
fn what_does_not_wait_breaks() {
    for (right, wrong) in [
        // A load and its reader.
        (
            "isam.base0.1d (u32)(x)r2.x, r0.x, s#0, t#0\n(sy)add.u r1.x, r2.x, 1",
            "isam.base0.1d (u32)(x)r2.x, r0.x, s#0, t#0\nadd.u r1.x, r2.x, 1",
        ),
        // A special function and its reader.
        (
            "mov.f32f32 r2.x, c0.y\n(rpt5)nop\nrcp r2.y, r2.x\n(ss)add.f r1.x, r2.y, r2.y",
            "mov.f32f32 r2.x, c0.y\n(rpt5)nop\nrcp r2.y, r2.x\nadd.f r1.x, r2.y, r2.y",
        ),
        // The source of a load is written before it is read.
        (
            "add.u r2.x, r0.x, 1\n(rpt5)nop\nisam.base0.1d (u32)(x)r1.x, r2.x, s#0, t#0\n(ss)mov.u32u32 r2.x, 0",
            "add.u r2.x, r0.x, 1\n(rpt5)nop\nisam.base0.1d (u32)(x)r1.x, r2.x, s#0, t#0\nmov.u32u32 r2.x, 0",
        ),
        // Three cycles from an ALU result to the ALU.
        (
            "add.u r2.x, r0.x, 1\n(rpt2)nop\nadd.u r1.x, r2.x, 1",
            "add.u r2.x, r0.x, 1\n(rpt1)nop\nadd.u r1.x, r2.x, 1",
        ),
        // Six to a branch.
        (
            "mov.u32u32 r1.x, 1\ncmps.u.lt p0.x, r0.x, 9\n(rpt5)nop\nbr p0.x, #2\nmov.u32u32 r1.x, 2\n(jp)nop",
            "mov.u32u32 r1.x, 1\ncmps.u.lt p0.x, r0.x, 9\n(rpt4)nop\nbr p0.x, #2\nmov.u32u32 r1.x, 2\n(jp)nop",
        ),
        // A shared register.
        (
            "mov.u32u32 r48.w, r0.x\n(ss)mov.u32u32 r1.x, r48.w",
            "mov.u32u32 r48.w, r0.x\nmov.u32u32 r1.x, r48.w",
        ),
    ] {
        assert!(!fragile(right), "{right}");
        assert!(fragile(wrong), "{wrong}");
    }
}

/// Every workgroup takes numbers from one counter, writes where they say and reads what another one wrote. Whatever the
/// number of threads, memory, statistics and faults are the same, also where steps run out.
#[test]
fn any_number_of_threads_gives_the_same() {
    let source = format!(
        "mov.u32u32 r1.x, {OUTPUT}\nmov.u32u32 r1.y, 0\nmov.u32u32 r2.x, 1
        (rpt5)nop\natomic.g.add.untyped.1d.u32.1.g r3.x, r1.x, r2.x\n(sy)and.b r3.x, r3.x, 127
        (rpt2)nop\nshl.b r3.x, r3.x, 2\n(rpt2)nop\nadd.u r1.x, r1.x, r3.x\n(rpt5)nop
        ldg.u32 r4.x, g[r1.x+4], 1\n(sy)add.u r4.x, r4.x, r48.x\n(rpt5)nop\nstg.u32 g[r1.x+4], r4.x, 1\nend"
    );
    let program = assemble(&source, GPU);
    let dispatch = Dispatch { groups: [40, 3, 1], group_id: Some(192), ..dispatch() };
    let go = |threads: usize, timing: Timing, steps: u64| {
        let mut memory = SimMemory::default();
        memory.map(OUTPUT, vec![0; 4 * WORDS]).expect("free");
        let result = run(&program, &dispatch, &mut memory, &Options { steps, timing, threads });
        (memory, result)
    };
    for timing in [Timing::Plain, Timing::Adversarial { seed: 5 }] {
        let all = go(1, timing, u64::MAX).1.expect("it ends").steps;
        for steps in [u64::MAX, all, all - 1, all / 2, all / 120 + 3, 5] {
            let one = go(1, timing, steps);
            assert_eq!(one.1.is_ok(), steps >= all);
            assert!(go(4, timing, steps) == one, "{timing:?}, {steps} steps");
        }
    }
}

/// Memory whose contents are not known costs nothing until it is written: a shader that writes a page with every fiber for ever
/// must not fill the host's.
#[test]
fn a_shader_that_writes_everywhere_is_stopped() {
    let source = "mov.u32u32 r1.x, 0\nmov.u32u32 r1.y, 16\nshl.b r2.x, r0.x, 12\n(rpt2)nop
        add.u r1.x, r1.x, r2.x\nmov.u32u32 r2.y, 1\n(rpt2)nop\nshl.b r2.y, r2.y, 18\n(rpt5)nop
        stg.u32 g[r1.x], r0.x, 1\n(ss)add.u r1.x, r1.x, r2.y\n(rpt5)nop\njump #-3\nend";
    let program = assemble(source, GPU);
    let go = |threads: usize| {
        let mut memory = SimMemory::default();
        memory.map_unknown(16 << 32, 1 << 32).expect("free");
        let dispatch = Dispatch { groups: [8, 1, 1], ..dispatch() };
        let fault = run(&program, &dispatch, &mut memory, &Options { threads, ..Options::default() });
        (fault.expect_err("it does not end"), memory.written_pages())
    };
    let (fault, pages) = go(1);
    assert_eq!((fault.kind.clone(), fault.group), (FaultKind::TooManyPages, [0, 0, 0]), "{fault}");
    assert!((1 << 15..1 << 16).contains(&pages), "{pages}");
    assert_eq!(go(3), (fault, pages));
}
