//! Dead code: removes instructions whose results nothing reads. Guarantees that the remaining ones have the same effects.

use super::carries::drop_carry;
use super::uses::Uses;
use crate::ir::shape::Variants;
use crate::ir::{Definition, Inst, Memory, Op, Payload, Program, Pseudo, Source};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::model::{Format, Role};

/// Whether instructions of a role do arithmetic in each lane, or in scalar registers, and nothing else.
pub(crate) fn computes(role: Role) -> bool {
    matches!(
        role,
        Role::Scalar
            | Role::ScalarFloat
            | Role::Integer
            | Role::Float
            | Role::Minmax
            | Role::Convert
            | Role::Transcendental
            | Role::Packed
            | Role::Compare
    )
}

/// Whether an instruction does nothing but define temporaries.
pub(crate) fn is_pure(program: &Program, inst: Inst) -> bool {
    let only_temps = program.definitions(inst).iter().all(|definition| {
        definition.temp.is_some() || definition.reg.is_some_and(|reg| reg.reg() == Reg::SCC)
    });
    only_temps
        && match program.op(inst) {
            Op::Pseudo(pseudo) => matches!(
                pseudo,
                Pseudo::Phi
                    | Pseudo::LinearPhi
                    | Pseudo::MaskPhi
                    | Pseudo::ParallelCopy
                    | Pseudo::CreateVector
                    | Pseudo::ExtractVector
                    | Pseudo::SplitVector
                    | Pseudo::Extract
                    | Pseudo::Insert
                    | Pseudo::AsUniform
            ),
            Op::Hw(opcode) => {
                let row = opcode.row();
                let computes = computes(row.role) || row.role == Role::Lanes;
                let constant = program.payload(inst) == Payload::Memory(Memory::CONSTANT);
                computes && !row.format.is_memory()
                    || row.format == Format::Vinterp
                    || row.format == Format::Smem && constant
            }
        }
}

/// Whether the result depends on which lanes are active, or on a register that is not a temporary.
pub(super) fn depends_on_block(program: &Program, inst: Inst) -> bool {
    let fixed = program.operands(inst).iter().any(|operand| operand.source == Source::Fixed);
    let lanes = match program.op(inst) {
        Op::Pseudo(pseudo) => pseudo == Pseudo::AsUniform,
        // Those read other lanes of the quad.
        Op::Hw(opcode) => opcode.row().role == Role::Lanes || opcode.row().format == Format::Vinterp,
    };
    fixed || lanes
}

/// Removes dead code. Phis that only read each other are not removed.
pub(super) fn remove(program: &mut Program, variants: &Variants, uses: &mut Uses) {
    uses.reset(program);
    let blocks: Vec<_> = program.blocks.keys().collect();
    let mut dead = vec![false; program.inst_count()];
    let mut any = false;
    let mut open: Vec<Inst> = Vec::new();
    for &block in &blocks {
        let insts = program.blocks[block].insts.iter();
        open.extend(insts.copied().filter(|inst| is_pure(program, *inst) && uses.is_unread(program, *inst)));
    }
    while let Some(inst) = open.pop() {
        if std::mem::replace(&mut dead[inst.index()], true) {
            continue;
        }
        any = true;
        for temp in program.operands(inst).iter().filter_map(|operand| operand.as_temp()) {
            uses.drop_one(temp);
            if let Some(source) = uses.definition(temp)
                && is_pure(program, source)
                && uses.is_unread(program, source)
            {
                open.push(source);
            }
        }
    }
    for block in blocks.into_iter().filter(|_| any) {
        let mut insts = std::mem::take(&mut program.blocks[block].insts);
        insts.retain(|inst| !dead[inst.index()]);
        for &inst in &insts {
            if let [_, Definition { temp: Some(carry), .. }] = *program.definitions(inst)
                && uses.count(carry) == 0
            {
                drop_carry(program, variants, inst);
            }
        }
        program.blocks[block].insts = insts;
    }
}
