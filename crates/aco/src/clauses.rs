//! Hard clauses: loads that follow each other are executed without those of other waves between them, from gfx10 on.
//!
//! Takes a machine program that is safe to execute. Guarantees the same instructions in the same order, with `s_clause` before groups that are likely
//! to access memory close together: those of one descriptor, and those without descriptors. Stores are grouped from gfx11 on. Nothing else
//! comes between the instructions of a group.

use crate::machine::{MachineInst, MachineProgram, plain};
use unwedge_isa::amdgcn::model::{Field, Format, Trait};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg};

/// The most instructions in a clause.
const LONGEST: usize = 32;

/// What the instructions of a clause have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClauseKey {
    memory: ClauseMemory,
    /// They return a result.
    loads: bool,
    /// The first register of their descriptor.
    descriptor: Option<Reg>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseMemory {
    /// Accesses by address or by descriptor.
    Scalar,
    Buffer,
    TypedBuffer,
    Image,
    /// Distinct from images without a sampler, from gfx11 on.
    Sampled,
    Flat,
    Global,
    Scratch,
}

fn key(inst: &Inst, gpu: &Gpu) -> Option<ClauseKey> {
    let row = inst.row();
    let memory = match row.format {
        Format::Smem => ClauseMemory::Scalar,
        Format::Mubuf => ClauseMemory::Buffer,
        Format::Mtbuf => ClauseMemory::TypedBuffer,
        Format::Vbuffer if row.name.starts_with("tbuffer") => ClauseMemory::TypedBuffer,
        Format::Vbuffer => ClauseMemory::Buffer,
        Format::Mimg | Format::Vimage | Format::Vsample => image(inst, gpu),
        Format::Flat => ClauseMemory::Flat,
        Format::Global => ClauseMemory::Global,
        Format::Scratch => ClauseMemory::Scratch,
        _ => return None,
    };
    let list = inst.written().any(|(_, operand)| matches!(operand, Operand::List(_)));
    // A list of addresses in a clause is a hazard of gfx10.
    if inst.variant().slots.is_empty() || list && gpu.generation() == Gfx::Gfx10 {
        return None;
    }
    let loads = inst.returns(gpu);
    if !loads && gpu.generation() < Gfx::Gfx11 || row.traits.has(Trait::ToLds) {
        return None;
    }
    let descriptor = inst.written().find_map(|(slot, operand)| match (slot.field, operand) {
        (Field::Sbase | Field::Srsrc, Operand::Reg { reg, dwords, .. }) if dwords > 2 => Some(reg),
        _ => None,
    });
    Some(ClauseKey { memory, loads, descriptor })
}

fn image(inst: &Inst, gpu: &Gpu) -> ClauseMemory {
    let sampled = inst.variant().slots.iter().any(|slot| slot.field == Field::Ssamp);
    if sampled && gpu.generation() >= Gfx::Gfx11 { ClauseMemory::Sampled } else { ClauseMemory::Image }
}

/// Inserts `s_clause`.
pub fn form(program: &mut MachineProgram) {
    let gpu = program.gpu;
    if gpu.generation() < Gfx::Gfx10 {
        return;
    }
    for block in &mut program.blocks {
        let same = |a: &MachineInst, b: &MachineInst| {
            let own = key(&a.inst, &gpu);
            own.is_some() && own == key(&b.inst, &gpu)
        };
        if !block.insts.windows(2).any(|pair| same(&pair[0], &pair[1])) {
            continue;
        }
        let insts = std::mem::take(&mut block.insts);
        block.insts.reserve(insts.len() + 4);
        for group in insts.chunk_by(same).flat_map(|group| group.chunks(LONGEST)) {
            if group.len() > 1 {
                let length = Operand::Imm(group.len() as i32 - 1);
                block.insts.extend(plain(Opcode::s_clause, &[length], &gpu));
            }
            block.insts.extend_from_slice(group);
        }
    }
}
