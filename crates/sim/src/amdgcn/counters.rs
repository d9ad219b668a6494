//! The counters that instructions wait for, and what waits say.

use unwedge_isa::amdgcn::model::{Class, Mod};
use unwedge_isa::amdgcn::{Gen, Inst, Operand};

/// A counter of instructions under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Counter {
    /// Vector memory: loads, and until gfx9 stores.
    Vm,
    /// LDS, GDS, scalar memory, messages.
    Lgkm,
    /// Exports, GDS, parameters in LDS; on gfx6 the data of stores.
    Exp,
    /// Stores of vector memory, from gfx10 on; gfx12 calls it `storecnt`.
    Vs,
    /// gfx12: loads of vector memory.
    Load,
    /// gfx12: image instructions with a sampler.
    Sample,
    /// gfx12: rays.
    Bvh,
    /// gfx12: LDS.
    Ds,
    /// gfx12: scalar memory and messages.
    Km,
}

impl Counter {
    /// Its name in assembly.
    pub const fn name(self) -> &'static str {
        match self {
            Counter::Vm => "vmcnt",
            Counter::Lgkm => "lgkmcnt",
            Counter::Exp => "expcnt",
            Counter::Vs => "vscnt",
            Counter::Load => "loadcnt",
            Counter::Sample => "samplecnt",
            Counter::Bvh => "bvhcnt",
            Counter::Ds => "dscnt",
            Counter::Km => "kmcnt",
        }
    }

    /// How many it counts: with so many under way the next one is issued only when one is done.
    pub const fn most(self, generation: Gen) -> u32 {
        match self {
            Counter::Exp | Counter::Bvh => 7,
            Counter::Km => 31,
            Counter::Vm if generation as u8 <= Gen::Gfx8 as u8 => 15,
            Counter::Lgkm if generation as u8 <= Gen::Gfx906 as u8 => 15,
            _ => 63,
        }
    }
}

/// What an instruction waits for: at most so many under way of a counter.
pub(super) fn waits(inst: &Inst, generation: Gen) -> Vec<(Counter, u32)> {
    let name = inst.row().name;
    let number = inst.written().find_map(|(slot, operand)| match operand {
        Operand::Imm(value) if slot.class != Class::Sreg => Some(value as u32),
        _ => None,
    });
    let n = number.unwrap_or(0);
    let field = |lsb: u32, width: u32| n >> lsb & !(u32::MAX << width);
    match name {
        "s_waitcnt" if generation >= Gen::Gfx11 => {
            vec![(Counter::Vm, field(10, 6)), (Counter::Exp, field(0, 3)), (Counter::Lgkm, field(4, 6))]
        }
        "s_waitcnt" => {
            let vm = if generation >= Gen::Gfx9 { field(0, 4) | field(14, 2) << 4 } else { field(0, 4) };
            let lgkm = if generation >= Gen::Gfx10 { field(8, 6) } else { field(8, 4) };
            // The greatest number a field says is no wait.
            let vm = if generation < Gen::Gfx9 && vm == 15 { u32::MAX } else { vm };
            let lgkm = if generation < Gen::Gfx10 && lgkm == 15 { u32::MAX } else { lgkm };
            vec![(Counter::Vm, vm), (Counter::Exp, field(4, 3)), (Counter::Lgkm, lgkm)]
        }
        "s_waitcnt_vmcnt" => vec![(Counter::Vm, n & 63)],
        "s_waitcnt_lgkmcnt" => vec![(Counter::Lgkm, n & 63)],
        "s_waitcnt_expcnt" => vec![(Counter::Exp, n & 7)],
        "s_waitcnt_vscnt" => vec![(Counter::Vs, n & 63)],
        "s_wait_loadcnt" => vec![(Counter::Load, n & 63)],
        "s_wait_storecnt" => vec![(Counter::Vs, n & 63)],
        "s_wait_samplecnt" => vec![(Counter::Sample, n & 63)],
        "s_wait_bvhcnt" => vec![(Counter::Bvh, n & 7)],
        "s_wait_expcnt" => vec![(Counter::Exp, n & 7)],
        "s_wait_dscnt" => vec![(Counter::Ds, n & 63)],
        "s_wait_kmcnt" => vec![(Counter::Km, n & 31)],
        "s_wait_loadcnt_dscnt" => vec![(Counter::Ds, field(0, 6)), (Counter::Load, field(8, 6))],
        "s_wait_storecnt_dscnt" => vec![(Counter::Ds, field(0, 6)), (Counter::Vs, field(8, 6))],
        "s_wait_idle" => all(generation).iter().map(|counter| (*counter, 0)).collect(),
        _ if inst.mods.has(Mod::WaitExp) || inst.variant().mod_set >> Mod::WaitExp as u8 & 1 != 0 => {
            vec![(Counter::Exp, inst.mods.get(Mod::WaitExp) as u32)]
        }
        _ => Vec::new(),
    }
}

/// Every counter of a generation.
pub(super) fn all(generation: Gen) -> &'static [Counter] {
    match generation {
        Gen::Gfx6 | Gen::Gfx7 | Gen::Gfx8 | Gen::Gfx9 | Gen::Gfx906 => {
            &[Counter::Vm, Counter::Lgkm, Counter::Exp]
        }
        Gen::Gfx12 => &[
            Counter::Load,
            Counter::Sample,
            Counter::Bvh,
            Counter::Vs,
            Counter::Ds,
            Counter::Km,
            Counter::Exp,
        ],
        _ => &[Counter::Vm, Counter::Lgkm, Counter::Exp, Counter::Vs],
    }
}
