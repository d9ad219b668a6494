//! Helper lanes of pixel shaders: takes a program with exec masks; leaves it without `p_demote_to_helper` and `p_is_helper`.
//!
//! If quads work together, their helper lanes run from the start. The lanes that are not helpers are in a mask, which each demotion makes smaller.
//! Stores, atomic operations and exports are executed only by the lanes in it. Never: ends a program early.

use crate::ir::{Block, Definition, Inst, NewInst, Op, Operand, Payload, PhysReg, Program, Pseudo, RegClass};
use crate::linear_ssa::{FirstReached, LinearVar};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::{Format, Gfx, Role, Trait};
use unwedge_shader::ir::{Op as ShaderOp, Payload as ShaderPayload, Shader, SlotDir};

const SCC: Definition = Definition::reg(PhysReg::SCC, RegClass::S1);

/// Whether lanes of a lowered pixel shader read those of their quad: for derivatives, or from gfx11 on for parameters and dual-source blending.
pub(crate) fn needs_quads(shader: &Shader, generation: Gfx) -> bool {
    let func = shader.entry();
    func.walk().any(|inst| match (func.op(inst), func.payload(inst)) {
        (ShaderOp::QuadBroadcast | ShaderOp::QuadSwap, _) => true,
        (ShaderOp::ImageSample | ShaderOp::ImageGather | ShaderOp::ImageQueryLod, _) => true,
        (op, _) if op.is_derivative() => true,
        // The two sources of dual-source blending are exchanged between lanes.
        (_, ShaderPayload::Slot(access)) => {
            generation >= Gfx::Gfx11 && (access.dir == SlotDir::Input || access.index > 0)
        }
        (_, ShaderPayload::SysVal(value)) => generation >= Gfx::Gfx11 && value.fragment_slot().is_some(),
        _ => false,
    })
}

/// Lowers the operations on helpers. `quads`: helper lanes run, too.
pub(crate) fn insert(program: &mut Program, quads: bool) {
    let asks = |program: &Program, inst: Inst| {
        matches!(program.op(inst), Op::Pseudo(Pseudo::DemoteToHelper | Pseudo::IsHelper))
    };
    let asked = program.blocks.values().any(|data| data.insts.iter().any(|inst| asks(program, *inst)));
    if !quads && !asked {
        return;
    }
    let class = program.lane_mask();
    let mut helpers = Helpers {
        class,
        wave64: program.gpu.wave64(),
        exact: LinearVar::new(class, &FirstReached::of(program)),
        start: Operand::undef(class),
        quads,
    };
    helpers.begin(program);
    let blocks: Vec<Block> = program.blocks.keys().collect();
    let mut demoted = Vec::new();
    for &block in &blocks {
        let count = program.blocks[block].insts.iter();
        let count = count.filter(|inst| program.op(**inst).is(Pseudo::DemoteToHelper)).count();
        let results: Vec<Operand> =
            (0..count).map(|_| Operand::temp(program.make_temp(class), class)).collect();
        if let Some(last) = results.last() {
            helpers.exact.write(block, *last);
        }
        demoted.push(results);
    }
    for (block, results) in blocks.into_iter().zip(demoted) {
        helpers.block(program, block, results);
    }
    helpers.drop_start(program);
}

struct Helpers {
    class: RegClass,
    wave64: bool,
    /// The lanes that are not helpers.
    exact: LinearVar,
    /// The lanes that are not helpers at the start.
    start: Operand,
    /// Helper lanes run from the start.
    quads: bool,
}

/// Whether an instruction does something that helpers must not do.
fn has_effect(program: &Program, inst: Inst) -> bool {
    let Op::Hw(opcode) = program.op(inst) else { return program.op(inst).is(Pseudo::EndWithRegs) };
    let row = opcode.row();
    let private = matches!(program.payload(inst), Payload::Memory(memory) if memory.private);
    match row.format {
        Format::Exp => true,
        format if format.is_memory() && !private => {
            row.traits.has(Trait::Store) || row.traits.has(Trait::Atomic)
        }
        _ => false,
    }
}

impl Helpers {
    fn sized(&self, wave32: Opcode, wave64: Opcode) -> Opcode {
        if self.wave64 { wave64 } else { wave32 }
    }

    fn exec(&self) -> Operand {
        Operand::reg(PhysReg::EXEC, self.class)
    }

    fn to_exec(&self) -> Definition {
        Definition::reg(PhysReg::EXEC, self.class)
    }

    /// Saves the lanes that the program starts with, and enables those of their quads.
    fn begin(&mut self, program: &mut Program) {
        let first = Block::new(0);
        let temp = program.make_temp(self.class);
        self.start = Operand::temp(temp, self.class);
        let definitions = [Definition::temp(temp, self.class)];
        program.insert(first, 1, &NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &[self.exec()]));
        if self.quads {
            let opcode = self.sized(Opcode::s_wqm_b32, Opcode::s_wqm_b64);
            program.insert(first, 2, &NewInst::hw(opcode, &[self.to_exec(), SCC], &[self.exec()]));
        }
        self.exact.write(first, self.start);
    }

    /// Removes the copy of the starting lanes if nothing reads it.
    fn drop_start(&self, program: &mut Program) {
        let reads =
            |inst: &Inst| program.operands(*inst).iter().any(|operand| operand.source == self.start.source);
        if !program.blocks.values().any(|data| data.insts.iter().any(reads)) {
            program.blocks[Block::new(0)].insts.remove(1);
        }
    }

    /// Lowers a block; `results` are the masks after its demotions.
    fn block(&mut self, program: &mut Program, block: Block, results: Vec<Operand>) {
        let wanted = |inst: &Inst| {
            has_effect(program, *inst)
                || matches!(program.op(*inst), Op::Pseudo(Pseudo::DemoteToHelper | Pseudo::IsHelper))
        };
        if !program.blocks[block].insts.iter().any(wanted) {
            return;
        }
        let mut now = if block.index() == 0 { self.start } else { self.exact.at_start(program, block) };
        let mut results = results.into_iter();
        let insts = std::mem::take(&mut program.blocks[block].insts);
        let mut out = Vec::with_capacity(insts.len() + 4);
        let mut saved: Option<Operand> = None;
        for (at, &inst) in insts.iter().enumerate() {
            let effect = has_effect(program, inst);
            let waits = matches!(program.op(inst), Op::Hw(opcode) if opcode.row().role == Role::Wait);
            if let Some(all) = saved.filter(|_| !effect && !waits && !self.ends(program, &insts[at..])) {
                out.push(program.make_inst(&NewInst::pseudo(
                    Pseudo::ParallelCopy,
                    &[self.to_exec()],
                    &[all],
                )));
                saved = None;
            }
            // Without helpers at the start, only demotions make some.
            // Of helpers from the start the hardware drops what they export.
            let exports = matches!(program.op(inst), Op::Hw(opcode) if opcode.row().format == Format::Exp);
            let helpers = now != self.start || self.quads && !exports;
            if effect && helpers && saved.is_none() {
                let temp = program.make_temp(self.class);
                let definitions = [Definition::temp(temp, self.class), SCC, self.to_exec()];
                let opcode = self.sized(Opcode::s_and_saveexec_b32, Opcode::s_and_saveexec_b64);
                out.push(program.make_inst(&NewInst::hw(opcode, &definitions, &[now, self.exec()])));
                saved = Some(Operand::temp(temp, self.class));
            }
            match program.op(inst) {
                Op::Pseudo(Pseudo::DemoteToHelper) => {
                    let Some(result) = results.next() else { continue };
                    let Some(temp) = result.as_temp() else { continue };
                    let opcode = self.sized(Opcode::s_andn2_b32, Opcode::s_andn2_b64);
                    let definitions = [Definition::temp(temp, self.class), SCC];
                    out.push(program.make_inst(&NewInst::hw(opcode, &definitions, &[now, self.exec()])));
                    now = result;
                }
                Op::Pseudo(Pseudo::IsHelper) => {
                    let at_start = program.operands(inst).first().and_then(Operand::as_const) == Some(1);
                    let mask = if at_start { self.start } else { now };
                    let Some(result) = program.definitions(inst).first().copied() else { continue };
                    let opcode = self.sized(Opcode::s_not_b32, Opcode::s_not_b64);
                    out.push(program.make_inst(&NewInst::hw(opcode, &[result, SCC], &[mask])));
                }
                _ => out.push(inst),
            }
        }
        program.blocks[block].insts = out;
    }

    /// Whether only the end of the program or of the block follows, so `exec` is not read again.
    fn ends(&self, program: &Program, rest: &[Inst]) -> bool {
        rest.iter().all(|inst| match program.op(*inst) {
            Op::Pseudo(pseudo) => pseudo == Pseudo::LogicalEnd,
            Op::Hw(opcode) => opcode.row().role == Role::End,
        })
    }
}
