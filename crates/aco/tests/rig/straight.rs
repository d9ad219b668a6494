//! Programs in SSA form without branches: runs them with random arguments, and compares the stored results.

use super::translate::{CaseArgument, LANE_BYTES, PART_BYTES, PartResult};
use unwedge_aco::ir::Program;
use unwedge_aco::{Limits, finish};
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::model::Type;
use unwedge_sim::amdgcn::{Dispatch, SimMemory};

/// A random number generator: splitmix64.
pub struct Words(pub u64);

impl Words {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as u32
    }
}

/// Runs a program in SSA form. Returns what lanes store.
pub fn stored(program: &Program, mode: u8, arguments: &[CaseArgument], seed: u64) -> Result<Vec<u8>, String> {
    let gpu = program.gpu;
    let code = finish(&mut program.clone(), &Limits::of(&gpu)).map_err(|error| error.to_string())?;
    let lanes = gpu.lanes() as usize;
    let bytes = lanes * LANE_BYTES as usize;
    let mut memory = SimMemory::default();
    memory.map(super::OUTPUT, vec![0; bytes]).expect("free");
    let mut words = Words(seed);
    let mut dispatch = Dispatch {
        size: [lanes as u32, 1, 1],
        scalars: (0..).zip(super::descriptor(super::OUTPUT, bytes, gpu.generation())).collect(),
        threads_hold: vec![(0, (0..lanes as u32).map(|lane| lane * LANE_BYTES).collect())],
        mode: 0x100 | u32::from(mode),
        ..Dispatch::default()
    };
    for CaseArgument { reg, dwords, most, .. } in arguments {
        for number in 0..u16::from(*dwords) {
            let reg = Reg(reg.reg().0 + number);
            if reg.is_vgpr() {
                dispatch
                    .threads_hold
                    .push((reg.index() as u8, (0..lanes).map(|_| value(&mut words) & most).collect()));
            } else {
                dispatch.scalars.push((reg.0, value(&mut words) & most));
            }
        }
    }
    super::execute(&code, gpu, &mut memory, &dispatch)?;
    Ok(memory.get(super::OUTPUT, bytes).expect("mapped").to_vec())
}

/// A number as arguments have it: floats of 32 and 16 bits, small integers, signed zeros, infinities, NaNs, denormals.
pub fn value(words: &mut Words) -> u32 {
    const SPECIAL: [u32; 12] = [
        0,
        0x8000_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0001,
        0x0000_0001,
        0x807f_ffff,
        0x3f80_0000,
        0x7c00_8000,
        0xfc00_0001,
        0x7e00_3c00,
        0x3f00_0000,
    ];
    let word = words.next();
    match words.next() % 8 {
        0 => SPECIAL[word as usize % SPECIAL.len()],
        1 => word % 64,
        2 | 3 => ((word as i32 % 4096) as f32 / 256.0).to_bits(),
        4 => 0x3c00_3c00 ^ word & 0x8fff_8fff,
        _ => word,
    }
}

/// Whether a result is acceptable in place of the expected one.
pub fn allowed(part: &PartResult, got: u32, wanted: u32) -> bool {
    let (got, wanted, sign, infinity) = match part.ty {
        Type::F32 => (got, wanted, 1 << 31, 0x7f80_0000),
        Type::F16 => (got & 0xffff, wanted & 0xffff, 1 << 15, 0x7c00),
        _ => return got == wanted,
    };
    let is_nan = |bits: u32| bits & !sign > infinity;
    let is_zero = |bits: u32| bits & !sign == 0;
    got == wanted
        || part.freedom.nans && is_nan(got) && is_nan(wanted)
        || part.freedom.zeros && is_zero(got) && is_zero(wanted)
}

/// The stored words of a part, one for each lane.
pub fn part_words(bytes: &[u8], number: usize) -> Vec<u32> {
    let lanes = bytes.chunks_exact(LANE_BYTES as usize);
    lanes
        .map(|lane| {
            let at = number * PART_BYTES as usize;
            u32::from_le_bytes([lane[at], lane[at + 1], lane[at + 2], lane[at + 3]])
        })
        .collect()
}
