//! Assembly: where blocks are, how far branches go, and the words.
//!
//! Takes a machine program that is safe to execute. Guarantees words that the decoder reads back, and that no branch of gfx10 has the offset
//! that its hardware cannot execute. Never: changes which instructions there are, except for a NOP there, and islands of long branches.

mod islands;

use crate::error::FinishError;
use crate::ir::Block;
use crate::machine::{MachineProgram, plain};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::model::{Class, Format, Gfx};
use unwedge_isa::amdgcn::{Inst, Opcode, Operand, codec};

/// The offset of a branch that gfx10 cannot execute.
const BROKEN_OFFSET: i64 = 0x3f;

/// A placeholder for the distance from an instruction to the end of the code. It must not be an inline constant, so that it is encoded as a literal.
pub(crate) const UNKNOWN_DISTANCE: u32 = 0x7fff_ffff;

/// Words of a program, and where its blocks begin in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The words.
    pub words: Vec<u32>,
    /// By block: its first word.
    pub starts: Vec<usize>,
    /// By block: the words of each instruction.
    pub lengths: Vec<Vec<usize>>,
    /// How many instructions there are.
    pub instructions: usize,
}

/// Makes words.
///
/// # Errors
///
/// [`FinishError::TooFar`] for a branch beyond its field, [`FinishError::Encode`] for what has no encoding.
pub fn assemble(program: &mut MachineProgram) -> Result<Assembly, FinishError> {
    loop {
        let Layout { lengths, starts, words } = lay_out(program)?;
        if islands::shorten(program, &lengths, &starts) {
            continue;
        }
        let broken = broken_branches(program, &lengths, &starts)?;
        if broken.is_empty() {
            return write(program, lengths, starts, words);
        }
        for (block, at) in broken.into_iter().rev() {
            let nop = plain(Opcode::s_nop, &[Operand::Imm(0)], &program.gpu);
            let Some(nop) = nop else { return Err(FinishError::TooFar { block: Block::new(block) }) };
            program.blocks[block].insts.insert(at, nop);
        }
    }
}

/// The block that an instruction branches to.
pub(crate) fn target(inst: &Inst) -> Option<usize> {
    // Most instructions are of a format without labels.
    if !matches!(inst.row().format, Format::Sopp | Format::Sopk) {
        return None;
    }
    inst.written().find_map(|(slot, operand)| match operand {
        Operand::Imm(block) if slot.class == Class::Label => usize::try_from(block).ok(),
        _ => None,
    })
}

/// The instruction with an offset for its label.
pub(crate) fn with_offset(inst: &Inst, offset: i64) -> Inst {
    let mut made = *inst;
    for (at, (slot, _)) in inst.written().enumerate() {
        if slot.class == Class::Label {
            made.operands[at] = Operand::Imm(offset as i32);
        }
    }
    made
}

/// Where instructions are.
struct Layout {
    /// By block: the words of each instruction.
    lengths: Vec<Vec<usize>>,
    /// The first word of each block, and one past the last of all.
    starts: Vec<usize>,
    /// The words, with zero for each offset of a branch.
    words: Vec<u32>,
}

fn lay_out(program: &MachineProgram) -> Result<Layout, FinishError> {
    let mut layout = Layout {
        lengths: Vec::with_capacity(program.blocks.len()),
        starts: Vec::with_capacity(program.blocks.len() + 1),
        words: Vec::new(),
    };
    for block in &program.blocks {
        layout.starts.push(layout.words.len());
        let mut own = Vec::with_capacity(block.insts.len());
        for inst in &block.insts {
            let made = match target(&inst.inst) {
                Some(_) => encode(program, &with_offset(&inst.inst, 0), inst.from)?,
                None => encode(program, &inst.inst, inst.from)?,
            };
            own.push(made.as_slice().len());
            layout.words.extend_from_slice(made.as_slice());
        }
        layout.lengths.push(own);
    }
    layout.starts.push(layout.words.len());
    Ok(layout)
}

fn encode(
    program: &MachineProgram,
    inst: &Inst,
    from: Option<crate::ir::Inst>,
) -> Result<codec::InstWords, FinishError> {
    codec::encode(inst, &program.gpu).map_err(|source| FinishError::Encode {
        inst: from.unwrap_or(crate::ir::Inst::new(0)),
        name: inst.row().name,
        source,
    })
}

/// Branches of gfx10 with the broken offset, each as its block and the index after the branch.
fn broken_branches(
    program: &MachineProgram,
    lengths: &[Vec<usize>],
    starts: &[usize],
) -> Result<Vec<(usize, usize)>, FinishError> {
    let mut broken = Vec::new();
    for (number, block) in program.blocks.iter().enumerate() {
        let mut at = starts[number];
        for (place, inst) in block.insts.iter().enumerate() {
            at += lengths[number][place];
            let Some(target) = target(&inst.inst) else { continue };
            let too_far = FinishError::TooFar { block: Block::new(number) };
            let offset = offset(starts, target, at).ok_or(too_far)?;
            if i16::try_from(offset).is_err() {
                return Err(too_far);
            }
            if program.gpu.generation() == Gfx::Gfx10 && offset == BROKEN_OFFSET {
                broken.push((number, place + 1));
            }
        }
    }
    Ok(broken)
}

/// How many words after an instruction a block begins.
fn offset(starts: &[usize], target: usize, after: usize) -> Option<i64> {
    Some(*starts.get(target)? as i64 - after as i64)
}

/// Writes the offsets of branches.
fn write(
    program: &MachineProgram,
    lengths: Vec<Vec<usize>>,
    starts: Vec<usize>,
    mut words: Vec<u32>,
) -> Result<Assembly, FinishError> {
    let mut instructions = 0;
    let end = words.len();
    // The word after the last instruction that read the program counter.
    let mut from = None;
    for (number, block) in program.blocks.iter().enumerate() {
        let mut at = starts[number];
        for (inst, length) in block.insts.iter().zip(&lengths[number]) {
            let after = at + length;
            match inst.inst.opcode() {
                Opcode::s_getpc_b64 => from = Some(after),
                Opcode::s_add_u32 if words.get(after - 1) == Some(&UNKNOWN_DISTANCE) && *length == 2 => {
                    if let Some(start) = from.take() {
                        words[after - 1] = (end - start) as u32 * 4;
                    }
                }
                _ => {}
            }
            if let Some(target) = target(&inst.inst) {
                let offset = offset(&starts, target, after).unwrap_or_default();
                let made = encode(program, &with_offset(&inst.inst, offset), inst.from)?;
                let own = words.iter_mut().skip(at);
                own.zip(made.as_slice()).for_each(|(word, made)| *word = *made);
            }
            at = after;
            instructions += 1;
        }
    }
    Ok(Assembly { words, starts, lengths, instructions })
}
