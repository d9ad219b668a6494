//! CDNA: distances in wait states between matrix instructions and what uses their registers, and other rules of these GPUs
//! about vector registers.
//!
//! Numbers are those of LLVM, and of AMD's manuals where these ask for less.

use super::super::operand::is_sdwa;
use super::distance::{Distances, Done};
use super::*;
use unwedge_isa::amdgcn::model::Field;
use unwedge_isa::amdgcn::semantics::mfma::Mfma;

/// Which products a matrix instruction makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatrixUnit {
    Xdl,
    Sgemm,
    Dgemm,
}

/// A matrix instruction.
#[derive(Debug, Clone, Copy)]
struct MatrixStep {
    unit: MatrixUnit,
    passes: u32,
    /// Registers that it adds to, and those it multiplies or has indices in.
    addend: Regs,
    factors: Regs,
    /// Those that it writes, as it wrote them.
    result: Regs,
}

/// What an instruction is to rules about vector registers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LanesRole {
    matrix: Option<MatrixStep>,
    /// A dot product.
    dot: Option<Opcode>,
    transcendental: bool,
    /// It writes a part of a register.
    part: bool,
    exec: bool,
    /// It moves an accumulation register to a vector register.
    from_acc: bool,
    /// Scalar registers that it reads as values.
    values: Regs,
}

/// Dot products of gfx9.
fn is_dot(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(opcode, O::v_dot2_f32_f16 | O::v_dot2_i32_i16 | O::v_dot2_u32_u16 | O::v_dot2c_f32_f16)
        || matches!(opcode, O::v_dot2c_i32_i16 | O::v_dot8c_i32_i4)
        || matches!(opcode, O::v_dot4_i32_i8 | O::v_dot4_u32_u8 | O::v_dot8_i32_i4 | O::v_dot8_u32_u4)
        || opcode == O::v_dot4c_i32_i8
}

/// Vector registers in some fields of an instruction.
fn in_fields(inst: &Inst, fields: &[Field]) -> Regs {
    let mut regs = Regs::default();
    for (slot, operand) in inst.written() {
        if let (true, Operand::Reg { reg, dwords, .. }) = (fields.contains(&slot.field), operand)
            && reg.lane_number().is_some()
        {
            regs.insert(reg, dwords);
        }
    }
    regs
}

/// Scalar registers that lanes of the vector ALU read as values.
fn scalar_values(inst: &Inst) -> Regs {
    let mask = inst.row().traits.has(Trait::ReadsMask);
    let mut regs = Regs::default();
    for (slot, operand) in inst.written() {
        let value = match slot.field {
            Field::Src0 | Field::Src1 | Field::Vsrc1 => true,
            Field::Src2 => !mask,
            _ => false,
        };
        if let (true, Operand::Reg { reg, dwords, .. }) = (value, operand)
            && reg.lane_number().is_none()
        {
            regs.insert(reg, dwords);
        }
    }
    regs
}

impl LanesRole {
    pub(super) fn of(inst: &Inst, gpu: &Gpu) -> LanesRole {
        if !gpu.has_agprs() {
            return LanesRole::default();
        }
        let row = inst.row();
        let sdwa = is_sdwa(inst.variant().encoding);
        let exec = inst.written().any(|(slot, operand)| {
            slot.access.writes() && matches!(operand, Operand::Reg { reg: Reg::EXEC, .. })
        });
        LanesRole {
            matrix: MatrixStep::of(inst, gpu.generation()),
            dot: is_dot(row.opcode).then_some(row.opcode),
            transcendental: row.unit.is_transcendental(),
            part: sdwa && inst.mods.get(Mod::DstSel) != 6 || inst.mods.get(Mod::OpSel) & 8 != 0,
            exec: exec || row.traits.has(Trait::Cmpx),
            from_acc: row.opcode == Opcode::v_accvgpr_read_b32,
            values: scalar_values(inst),
        }
    }

    pub(super) fn is_matrix(&self) -> bool {
        self.matrix.is_some()
    }
}

impl MatrixStep {
    fn of(inst: &Inst, generation: Gfx) -> Option<MatrixStep> {
        let mfma = Mfma::of_inst(inst, generation)?;
        let unit = match (mfma.is_dgemm(), mfma.is_xdl(generation)) {
            (true, _) => MatrixUnit::Dgemm,
            (_, true) => MatrixUnit::Xdl,
            _ => MatrixUnit::Sgemm,
        };
        let (addend, others) = if mfma.sparse {
            (Field::Vdst, vec![Field::Src0, Field::Src1, Field::Src2])
        } else {
            (Field::Src2, vec![Field::Src0, Field::Src1])
        };
        Some(MatrixStep {
            unit,
            passes: mfma.passes(generation).into(),
            addend: in_fields(inst, &[addend]),
            factors: in_fields(inst, &others),
            result: in_fields(inst, &[Field::Vdst]),
        })
    }

    /// Wait states until its result may be used by anything but the same kind of instruction.
    fn result_states(&self, generation: Gfx) -> u32 {
        match self.unit {
            MatrixUnit::Dgemm if self.passes == 4 => 6,
            MatrixUnit::Dgemm => self.passes + 3,
            MatrixUnit::Sgemm => self.passes + 2,
            MatrixUnit::Xdl if generation == Gfx::Gfx908 => 4,
            // On gfx950 it is one more, of which LLVM 23 does without the last of 20.
            MatrixUnit::Xdl if generation >= Gfx::Gfx950 && matches!(self.passes, 4 | 8) => self.passes + 4,
            MatrixUnit::Xdl => self.passes + 3,
        }
    }

    /// Wait states until a matrix instruction may add to its result.
    fn addend_states(&self, second: &MatrixStep, generation: Gfx) -> u32 {
        let same = second.addend == self.result;
        let newer = generation >= Gfx::Gfx940;
        match (self.unit, second.unit) {
            (MatrixUnit::Dgemm, MatrixUnit::Xdl) => 0,
            (MatrixUnit::Dgemm, _) if self.passes == 4 => {
                if same && second.passes != 4 {
                    0
                } else {
                    4
                }
            }
            (MatrixUnit::Dgemm, MatrixUnit::Dgemm) if same => 0,
            (MatrixUnit::Dgemm, _) => self.passes + 1,
            _ if same => 2 * u32::from(newer && self.passes == 2),
            (MatrixUnit::Sgemm, MatrixUnit::Xdl) => 0,
            (MatrixUnit::Sgemm, _) => self.passes,
            (MatrixUnit::Xdl, _) if generation == Gfx::Gfx908 => 2,
            (MatrixUnit::Xdl, MatrixUnit::Dgemm) if generation == Gfx::Gfx90a => self.passes + 1,
            (MatrixUnit::Xdl, _) if generation == Gfx::Gfx90a => self.passes,
            // Of gfx950 the manual and LLVM differ after two passes.
            (MatrixUnit::Xdl, unit) if self.passes == 2 && unit != MatrixUnit::Xdl => 3,
            (MatrixUnit::Xdl, _) => self.passes + 1 + u32::from(generation >= Gfx::Gfx950),
        }
    }
}

impl Distances {
    /// The latest matrix instruction that is too near and whose result, as far as nothing has overwritten it, is among registers.
    fn too_near(&self, regs: &Regs, states: impl Fn(&MatrixStep) -> u32) -> Option<u32> {
        let near = |done: &&Done| {
            done.lanes.matrix.is_some_and(|step| done.writes.meets(regs) && done.age < states(&step))
        };
        self.done.iter().rev().find(near).map(|done| done.at)
    }

    pub(super) fn of_cdna(
        &self,
        decoded: &DecodedInst,
        unit: Unit,
        lanes: LanesRole,
        generation: Gfx,
        found: &mut BrokenRules,
    ) {
        let effects = &decoded.effects;
        let (reads, writes) = (effects.reads.vector(), effects.writes.vector());
        let memory = matches!(unit, Unit::Vmem | Unit::Ds | Unit::Export);
        let opcode = decoded.inst.row().opcode;
        let of_unit =
            |unit: MatrixUnit, states: u32, step: &MatrixStep| if step.unit == unit { states } else { 0 };
        if generation == Gfx::Gfx908 && lanes.matrix.is_none() {
            self.accumulators(opcode, &reads, &writes, found);
        }
        let mut rule = |name: &'static str, first: Option<u32>| found.extend(first.map(|at| (name, at)));
        if let Some(second) = lanes.matrix {
            for (first, ab, c) in [
                (MatrixUnit::Xdl, "xdl_read_ab", "xdl_read_c"),
                (MatrixUnit::Sgemm, "sgemm_read_ab", "sgemm_read_c"),
                (MatrixUnit::Dgemm, "dgemm_read_ab", "dgemm_read_c"),
            ] {
                rule(
                    ab,
                    self.too_near(&second.factors, |step| {
                        of_unit(first, step.result_states(generation), step)
                    }),
                );
                for (name, same) in [(c, false), ("xdl_same_c", true)] {
                    let near = self.too_near(&second.addend, |step| {
                        let own = step.unit != MatrixUnit::Dgemm && step.result == second.addend;
                        let states = if own == same { step.addend_states(&second, generation) } else { 0 };
                        of_unit(first, states, step)
                    });
                    rule(name, near);
                }
            }
        } else if generation != Gfx::Gfx908 && (memory || unit == Unit::Valu) {
            let used = if memory { reads } else { reads.either(&writes) };
            for (first, name) in [
                (MatrixUnit::Xdl, "xdl_use"),
                (MatrixUnit::Sgemm, "sgemm_use"),
                (MatrixUnit::Dgemm, if memory { "dgemm_memory" } else { "dgemm_valu" }),
            ] {
                let states = |step: &MatrixStep| match step.unit {
                    MatrixUnit::Dgemm if memory => {
                        if step.passes == 4 {
                            9
                        } else {
                            18
                        }
                    }
                    _ => step.result_states(generation),
                };
                // LLVM asks for as many wait states as on gfx94x where gfx950 only writes the registers.
                if first == MatrixUnit::Dgemm && !memory && generation >= Gfx::Gfx950 {
                    let near = self.too_near(&reads, |step| of_unit(first, states(step), step));
                    let written =
                        |step: &MatrixStep| of_unit(first, step.result_states(generation).min(11), step);
                    rule(name, near.or_else(|| self.too_near(&writes, written)));
                    continue;
                }
                rule(name, self.too_near(&used, |step| of_unit(first, states(step), step)));
            }
        }
        if unit == Unit::Valu && lanes.matrix.is_none() && generation != Gfx::Gfx908 {
            let added = |done: &&Done| {
                done.lanes.matrix.is_some_and(|step| {
                    step.unit == MatrixUnit::Xdl && step.addend.meets(&writes) && done.age < step.passes - 1
                })
            };
            let first = self.done.iter().rev().find(added).map(|done| done.at);
            rule("xdl_war", first);
        }
        self.vector_results(decoded, unit, lanes, generation, found);
    }

    /// gfx908: rules about moves to and from accumulation registers.
    fn accumulators(&self, opcode: Opcode, reads: &Regs, writes: &Regs, found: &mut BrokenRules) {
        let mut rule = |name: &'static str, first: Option<u32>| found.extend(first.map(|at| (name, at)));
        match opcode {
            Opcode::v_accvgpr_read_b32 => {
                rule("acc_read_mfma", self.too_near(reads, |step| step.passes + 2));
            }
            Opcode::v_accvgpr_write_b32 => {
                rule("acc_write_mfma", self.too_near(writes, |step| step.passes - 1));
                let added = |done: &&Done| {
                    let step = done.lanes.matrix;
                    step.is_some_and(|s| s.addend.meets(writes) && done.age < s.passes.saturating_sub(3))
                };
                rule("acc_write_war", self.done.iter().rev().find(added).map(|done| done.at));
            }
            _ => {}
        }
    }

    /// The instruction of the vector ALU, less than two wait states ago, that wrote what is read and that a DGEMM instruction followed.
    fn before_dgemm(&self, reads: &Regs) -> Option<u32> {
        let mut lately = self.done.iter().rev().take_while(|done| done.age < 2);
        let is_dgemm = |done: &Done| done.lanes.matrix.is_some_and(|s| s.unit == MatrixUnit::Dgemm);
        lately.find(|done| is_dgemm(done))?;
        let wrote = |done: &&Done| {
            done.unit == Unit::Valu && !done.lanes.is_matrix() && done.writes.vector().meets(reads)
        };
        lately.find(wrote).map(|done| done.at)
    }

    /// Rules about what the vector ALU wrote and is used too soon.
    fn vector_results(
        &self,
        decoded: &DecodedInst,
        unit: Unit,
        lanes: LanesRole,
        generation: Gfx,
        found: &mut BrokenRules,
    ) {
        let effects = &decoded.effects;
        let (reads, writes) = (effects.reads.vector(), effects.writes.vector());
        let opcode = decoded.inst.row().opcode;
        let memory = matches!(unit, Unit::Vmem | Unit::Ds | Unit::Export);
        let (old, newer) = (generation == Gfx::Gfx908, generation >= Gfx::Gfx940);
        let mut rule = |name: &'static str, first: Option<u32>| found.extend(first.map(|at| (name, at)));
        let valu = |done: &Done| done.unit == Unit::Valu && !done.lanes.is_matrix();
        let to_acc = old && opcode == Opcode::v_accvgpr_write_b32;
        if lanes.is_matrix() || to_acc {
            rule("mfma_exec", self.within(4, |done| valu(done) && done.lanes.exec));
            let counts = |done: &Done| old || done.lanes.dot.is_none();
            let moved = |done: &Done| old && !done.writes.vector().is_empty() && writes_acc(done);
            let wrote = |done: &Done| valu(done) && counts(done) && !moved(done) && done.writes.meets(&reads);
            rule("mfma_valu_vgpr", self.within(2, wrote));
        }
        if old {
            let acc = |regs: Regs, states: u32| {
                self.within(states, |done| valu(done) && writes_acc(done) && done.writes.meets(&regs))
            };
            if let Some(step) = lanes.matrix {
                rule("acc_write_c", acc(step.addend, 1));
                rule("acc_write_read", acc(step.factors, 3));
            } else if opcode == Opcode::v_accvgpr_read_b32 {
                rule("acc_write_read", acc(reads, 3));
            } else if memory {
                let read = |done: &Done| done.lanes.from_acc && done.writes.meets(&reads);
                rule("acc_read_memory", self.within(2, read));
            }
            return;
        }
        if !lanes.is_matrix() && (unit == Unit::Valu || memory) {
            let factors = in_fields(&decoded.inst, &[Field::Src0, Field::Src1, Field::Vsrc1]);
            let wrote = |done: &Done| match done.lanes.dot {
                None => false,
                same if same == lanes.dot => done.writes.meets(&factors),
                _ => done.writes.meets(&reads) || unit == Unit::Valu && done.writes.meets(&writes),
            };
            rule("dot_use", self.within(3, wrote));
        }
        if matches!(opcode, Opcode::v_fma_f64 | Opcode::v_fmac_f64) {
            let dgemm = |done: &Done| done.lanes.matrix.is_some_and(|s| s.unit == MatrixUnit::Dgemm);
            rule("dgemm_fma", self.within(2, dgemm));
        }
        if generation == Gfx::Gfx90a && memory {
            rule("dgemm_between", self.before_dgemm(&reads));
        }
        if newer && unit == Unit::Valu && !lanes.is_matrix() {
            let scalar = |done: &Done| done.unit == Unit::Valu && done.writes.meets(&lanes.values);
            rule("valu_sgpr_valu", self.within(2, scalar));
            let lane = [Opcode::v_readlane_b32, Opcode::v_readfirstlane_b32];
            if lane.contains(&opcode) {
                rule("readlane_vgpr", self.within(1, |done| valu(done) && done.writes.meets(&reads)));
            }
            if lane.contains(&opcode) || opcode == Opcode::v_writelane_b32 {
                rule("exec_lane", self.within(4, |done| valu(done) && done.lanes.exec));
            }
            let uses = |done: &Done| done.writes.vector().meets(&reads);
            if !lanes.transcendental {
                rule("trans_use", self.within(1, |done| done.lanes.transcendental && uses(done)));
            }
            rule("dst_sel_use", self.within(1, |done| valu(done) && done.lanes.part && uses(done)));
        }
    }
}

/// Whether an instruction wrote accumulation registers.
fn writes_acc(done: &Done) -> bool {
    done.writes.iter().any(Reg::is_agpr)
}
