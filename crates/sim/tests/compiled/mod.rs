//! Kernels that LLVM compiled, with what they must give: `kernels/vectors.txt` and `kernels/cdna.txt`, which `cargo xtask kernel-vectors` makes, or the
//! file in `UNWEDGE_KERNELS`, made in the same way.

#![allow(dead_code, reason = "each test uses a part")]

use std::borrow::Cow;
use unwedge_isa::amdgcn::Gpu;
use unwedge_sim::amdgcn::{Dispatch, Initial, Outcome, Program, SimMemory, Timing, Trace, run};
use unwedge_testkit::pack::bytes;

/// Where the buffers are, the arguments, and the scratch that is accessed by a buffer.
const IN: u64 = 0x1_0000;
const OUT: u64 = 0x2_0000;
const ARGUMENTS: u64 = 0x3_0000;
const SCRATCH: u64 = 0x10_0000;

/// The lines of all kernels, and whether they are those of the tree.
pub fn lines() -> (Cow<'static, str>, bool) {
    match std::env::var_os("UNWEDGE_KERNELS") {
        Some(path) => (std::fs::read_to_string(path).expect("a file").into(), false),
        None => (
            concat!(include_str!("../kernels/vectors.txt"), "\n", include_str!("../kernels/cdna.txt")).into(),
            true,
        ),
    }
}

/// A kernel, ready to run.
pub struct Kernel {
    /// The GPU and features as they are written.
    pub name: String,
    /// The program it is compiled from.
    pub source: String,
    pub gpu: Gpu,
    pub code: Vec<u32>,
    pub lanes: u32,
    dispatch: Dispatch,
    scratch: u32,
    /// What both buffers hold at first, and the second at last.
    inputs: Vec<u8>,
    expected: Vec<u8>,
}

/// Every kernel of some lines, in turn.
pub fn each(text: &str, mut of: impl FnMut(&Kernel)) {
    let (mut inputs, mut expected, mut lanes, mut source) = (Vec::new(), Vec::new(), 64, "");
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.split_once(' ').expect("words") {
            ("x", rest) => inputs = bytes(&words(rest)),
            (">", rest) => {
                source = rest;
                lanes = rest.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("lanes");
            }
            ("=", rest) => expected = bytes(&words(rest)),
            _ => of(&Kernel {
                source: source.to_owned(),
                inputs: inputs.clone(),
                expected: expected.clone(),
                ..kernel(line, lanes)
            }),
        }
    }
}

fn words(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|word| u32::from_str_radix(word, 16).expect("hexadecimal")).collect()
}

fn kernel(line: &str, lanes: u32) -> Kernel {
    let (head, code) = line.split_once(" : ").expect("code");
    let mut parts = head.split(' ');
    let whole = parts.next().expect("a GPU");
    let (name, features) = whole.split_once('+').unwrap_or((whole, ""));
    let gpu = Gpu::new(name).and_then(|gpu| gpu.with_features(features)).expect("a GPU");
    let mut made = Dispatch { size: [lanes, 1, 1], ..Dispatch::default() };
    let (mut scratch, mut axes, mut packed) = (0, 1, false);
    for part in parts {
        let (key, value) = part.split_once('=').expect("a value");
        let number = || value.parse::<u32>().expect("a number");
        match key {
            "mode" => made.mode = u32::from_str_radix(value, 16).expect("hexadecimal"),
            "lds" => made.lds = number(),
            "scratch" => scratch = number(),
            "axes" => axes = number(),
            "packed" => packed = value == "1",
            "ttmp" => made.group_id_in_ttmp = value == "1",
            _ => {
                let (first, count) = key.split_once(':').expect("registers");
                let first: u16 = first.parse().expect("a number");
                let values: Vec<u32> = match value {
                    "arguments" => vec![ARGUMENTS as u32, (ARGUMENTS >> 32) as u32],
                    "scratch-buffer" => buffer(scratch, lanes).to_vec(),
                    "group" | "zero" => vec![0; count.parse().expect("a number")],
                    _ => Vec::new(),
                };
                made.scalars.extend((first..).zip(values));
            }
        }
    }
    made.scratch = scratch;
    if packed {
        made.vectors.push((0, Initial::PackedLocalIds));
    } else {
        made.vectors.extend((0..axes as u8).map(|axis| (axis, Initial::LocalId(axis))));
    }
    Kernel {
        name: whole.to_owned(),
        source: String::new(),
        gpu,
        code: words(code),
        lanes,
        dispatch: made,
        scratch: scratch * lanes,
        inputs: Vec::new(),
        expected: Vec::new(),
    }
}

/// A descriptor of scratch: lanes one after the other, in elements of four bytes.
fn buffer(scratch: u32, lanes: u32) -> [u32; 4] {
    [SCRATCH as u32, 1 << 31, scratch * lanes, 7 << 12 | 4 << 15 | 1 << 19 | 3 << 21 | 1 << 23]
}

impl Kernel {
    /// Whether the workgroup is one wave.
    pub fn is_one_wave(&self) -> bool {
        self.lanes <= self.gpu.lanes()
    }

    /// The kernel's code, or another in its place, as a program.
    pub fn program(&self, code: &[u32]) -> Program {
        Program::new(code, 0, self.gpu)
    }

    /// Runs a program as this kernel is run; what came of it, and the words of the second buffer that are not what they must be.
    pub fn run(
        &self,
        program: &Program,
        timing: Timing,
        trace: Option<&mut dyn FnMut(&Trace)>,
    ) -> (Outcome, Vec<usize>) {
        let mut memory = SimMemory::default();
        let arguments: Vec<u8> = [IN, OUT].iter().flat_map(|at| at.to_le_bytes()).collect();
        for (at, content) in [
            (IN, self.inputs.clone()),
            (OUT, self.inputs.clone()),
            (ARGUMENTS, [arguments, vec![0; 512]].concat()),
            (SCRATCH, vec![0; self.scratch as usize + 4]),
        ] {
            memory.map(at, content).expect("free");
        }
        let dispatch = Dispatch { timing, ..self.dispatch.clone() };
        let outcome = run(program, &mut memory, &dispatch, trace);
        let got = memory.get(OUT, self.expected.len()).expect("mapped");
        let differ = |at: &usize| got[4 * at..4 * at + 4] != self.expected[4 * at..4 * at + 4];
        (outcome, (0..self.expected.len() / 4).filter(differ).collect())
    }
}
