//! Runs instructions over lanes with values of all kinds, and compares what each lane has then with a model.

use super::{BUFFER, dispatch, gpu, words};
use std::rc::Rc;
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};
use unwedge_sim::amdgcn::{Program, SimMemory, Timing, run};

/// One of each generation, in both wave sizes.
pub const GPUS: [&str; 16] = [
    "gfx600",
    "gfx700",
    "gfx803",
    "gfx900",
    "gfx906",
    "gfx1010",
    "gfx1010+wavefrontsize64",
    "gfx1011",
    "gfx1030",
    "gfx1030+wavefrontsize64",
    "gfx1100",
    "gfx1100+wavefrontsize64",
    "gfx1150",
    "gfx1150+wavefrontsize64",
    "gfx1200",
    "gfx1200+wavefrontsize64",
];

/// What `v10` to `v13` hold in each lane.
pub type Sources = [Vec<u32>; 4];

/// A value, and which of its bits are told: of a NaN not all are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    pub value: u32,
    pub told: u32,
}

impl From<u32> for Bits {
    fn from(value: u32) -> Bits {
        Bits { value, told: u32::MAX }
    }
}

/// What a lane's `v20` holds at last; `None`: what `v13` holds, which it held before.
pub type Model = Rc<dyn Fn(usize, &Sources) -> Option<Bits>>;

/// Lines of code that write `v20`, the lanes enabled for them, and what they do. `v14` is 0 and `v15` is 1.
pub struct Case {
    pub code: String,
    pub exec: u64,
    pub model: Model,
}

/// Numbers that are the same in every run.
pub fn random(seed: &str) -> impl FnMut() -> u64 + use<> {
    let mut state = seed.bytes().fold(0x9e37_79b9_7f4a_7c15, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (state ^ state >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 29
    }
}

/// A value: often a pair of halves or a float at the edges of their types.
fn value(bits: u64) -> u32 {
    const HALVES: [u16; 16] = [
        0, 0x8000, 1, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x4200, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555,
        0xb801, 0x5640,
    ];
    const FLOATS: [u32; 16] = [
        0,
        1 << 31,
        1,
        0x807f_ffff,
        0x0080_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x4049_0fdb,
        0x7f7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x3300_0000,
        0x387f_e000,
        0xc77f_e000,
        0x3eaa_aaab,
    ];
    let (a, b) = ((bits >> 8) as usize & 15, (bits >> 12) as usize & 15);
    match bits & 7 {
        0..3 => u32::from(HALVES[a]) | u32::from(HALVES[b]) << 16,
        3..5 => FLOATS[a],
        _ => (bits >> 32) as u32,
    }
}

/// What registers hold at first.
fn sources(seed: &str) -> Sources {
    let mut random = random(seed);
    std::array::from_fn(|_| (0..64).map(|_| value(random())).collect())
}

/// The MODE register that keeps denormals, and where clamping makes NaN zero.
pub const KEEP: u32 = 0x1f0;

/// Runs cases on a GPU in a mode and tells those that the model says otherwise of.
pub fn compare(name: &str, mode: u32, cases: &[Case]) -> Vec<String> {
    let parts = cases.chunks(256).enumerate();
    parts.flat_map(|(part, cases)| chunk(name, &format!("{name} {part}"), mode, cases)).collect()
}

fn chunk(name: &str, seed: &str, mode: u32, cases: &[Case]) -> Vec<String> {
    let gpu = gpu(name);
    let sources = sources(seed);
    let lanes = gpu.lanes() as usize;
    let mut code = prologue(gpu.generation());
    for case in cases {
        let all = exec(&gpu, u64::MAX);
        code += &format!(
            "{all}v_mov_b32 v20, v13\n{}{}\n{all}v_mov_b32 v21, v20\n",
            exec(&gpu, case.exec),
            case.code
        );
    }
    let program = Program::new(&words(&format!("{code}s_endpgm\n"), &gpu), 0, gpu);
    let bytes = sources.iter().flatten().flat_map(|word| word.to_le_bytes());
    let mut memory = SimMemory::default();
    memory.map(BUFFER, bytes.chain(std::iter::repeat_n(0, 0x1000 - 0x400)).collect()).expect("free");
    let mut left: Vec<Vec<u32>> = Vec::new();
    let mut dispatch = dispatch(&gpu, Timing::Plain);
    dispatch.mode = mode;
    let mut tell = |trace: &unwedge_sim::amdgcn::Trace| {
        left.extend(
            trace.writes.iter().filter(|(reg, _)| *reg == Reg::vgpr(21)).map(|(_, lanes)| lanes.clone()),
        );
    };
    let outcome = run(&program, &mut memory, &dispatch, Some(&mut tell));
    assert!(
        outcome.faults.is_empty(),
        "{name}: {:?} {:?}",
        outcome.faults,
        program.text(outcome.faults[0].at)
    );
    assert_eq!(left.len(), cases.len(), "{name}");
    let mut wrong = Vec::new();
    for (case, got) in cases.iter().zip(&left) {
        let expected = |lane: usize| (case.model)(lane, &sources).unwrap_or(sources[3][lane].into());
        let differs = |lane: usize| (got[lane] ^ expected(lane).value) & expected(lane).told != 0;
        if let Some(lane) = (0..lanes).find(|lane| differs(*lane)) {
            let [a, b, c, d] = sources.each_ref().map(|source| source[lane]);
            wrong.push(format!(
                "{name}: {}: exec {:x}, lane {lane} of {a:x} {b:x} {c:x} {d:x} has {:x}, not {:x}",
                case.code,
                case.exec,
                got[lane],
                expected(lane).value
            ));
        }
    }
    wrong
}

/// Fails if something is wrong; tells how much was compared.
pub fn report(what: &str, compared: usize, wrong: &[String]) {
    eprintln!("{what}: {compared} cases compared");
    wrong.iter().take(40).for_each(|line| eprintln!("{line}"));
    assert!(wrong.is_empty(), "{} of {compared}", wrong.len());
}

fn exec(gpu: &Gpu, lanes: u64) -> String {
    let low = format!("s_mov_b32 exec_lo, {:#x}\n", lanes as u32);
    if gpu.wave64() { format!("{low}s_mov_b32 exec_hi, {:#x}\n", lanes >> 32) } else { low }
}

/// Loads what registers hold.
fn prologue(generation: Gfx) -> String {
    let (load, zero, wait) = match generation {
        Gfx::Gfx12 => ("buffer_load_b32", "null", "s_wait_loadcnt 0"),
        Gfx::Gfx11 | Gfx::Gfx11_5 => ("buffer_load_b32", "0", "s_waitcnt vmcnt(0)"),
        _ => ("buffer_load_dword", "0", "s_waitcnt vmcnt(0)"),
    };
    let loads: String = (0..4)
        .map(|n| format!("{load} v{}, v30, s[0:3], {zero} offen offset:{}\n", 10 + n, 256 * n))
        .collect();
    format!("v_lshlrev_b32 v30, 2, v0\n{loads}{wait}\nv_mov_b32 v14, 0\nv_mov_b32 v15, 1\n")
}
