//! Subgroup operations that the lowering leaves: ballots, broadcasts, shuffles of words and quad operations.

use super::memory::LDS_LIMIT;
use super::{Selected, Selector};
use crate::ir::{Definition, NewInst, Operand, Payload, PhysReg, Pseudo, RegClass};
use crate::lower::has_shuffles;
use crate::stages::HardwareStage;
use unwedge_isa::amdgcn::model::{Form, Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{self as shader_ir, Base, Inst, Op, QuadDir, Value};

/// The DPP control by which each lane of a quad reads one of its lanes.
fn quad_lanes(lanes: [i32; 4]) -> i32 {
    lanes.iter().enumerate().fold(0, |all, (at, lane)| all | lane << (2 * at))
}

impl Selector<'_> {
    /// Selects a subgroup operation.
    pub(super) fn subgroup(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        // What ends vertices or makes helpers has no result, and comes here in stages that do neither.
        let (&[result], args) = (func.results(inst), func.args(inst)) else {
            return Err(self.unsupported(inst, None));
        };
        let op = func.op(inst);
        let lanes = match op {
            Op::Ballot => {
                let mask = self.mask_of(args[0]);
                let class = self.program.lane_mask();
                let exec = self.exec();
                let opcode = self.sized(Opcode::s_and_b32, Opcode::s_and_b64);
                let active = if self.all_active() && mask.as_temp().is_some() {
                    mask
                } else {
                    self.salu(opcode, class, &[mask, exec])
                };
                let mut words = self.split(active, 1);
                words.resize(4, Operand::c32(0));
                words
            }
            Op::InverseBallot => vec![self.inverse_ballot(args[0])],
            Op::Reduce | Op::InclusiveScan | Op::ExclusiveScan => vec![self.reduce(inst)?],
            Op::Elect if self.all_active() => {
                let class = self.program.lane_mask();
                vec![self.copy(class, Operand::constant(1, class))]
            }
            // The mask of the lowest active lane.
            Op::Elect => {
                let (class, exec) = (self.program.lane_mask(), self.exec());
                let (find, shift) = match self.program.gpu.wave64() {
                    true => (Opcode::s_ff1_i32_b64, Opcode::s_lshl_b64),
                    false => (Opcode::s_ff1_i32_b32, Opcode::s_lshl_b32),
                };
                let lowest = self.salu(find, RegClass::S1, &[exec]);
                vec![self.salu(shift, class, &[Operand::constant(1, class), lowest])]
            }
            Op::ReadFirst if func.ty(result).base == Base::B32 && func.ty(result).lanes == 1 => {
                let value = self.scalar(args[0]);
                match value.class.is_vgpr() {
                    true => vec![self.hw(Opcode::v_readfirstlane_b32, RegClass::S1, &[value])],
                    false => vec![value],
                }
            }
            Op::Broadcast if func.ty(result).base == Base::B32 && func.ty(result).lanes == 1 => {
                let [value, lane] = [self.scalar(args[0]), self.scalar(args[1])];
                if !value.class.is_vgpr() {
                    vec![value]
                } else {
                    // A number past the wave, for which the result is undefined, may not fit the instruction.
                    let last = self.program.gpu.lanes() - 1;
                    let lane = match lane.as_const() {
                        Some(lane) => Operand::c32(lane as u32 & last),
                        None => self.in_scalar(lane),
                    };
                    vec![self.hw(Opcode::v_readlane_b32, RegClass::S1, &[value, lane])]
                }
            }
            Op::Shuffle if func.ty(result).base == Base::B32 && func.ty(result).lanes == 1 => {
                let [value, lane] = [self.scalar(args[0]), self.scalar(args[1])];
                if !has_shuffles(&self.program.gpu) {
                    return Err(self.unsupported(inst, Some("on this GPU with this size of a wave")));
                }
                let address = self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[Operand::c32(2), lane]);
                let operands = [address, self.in_vgpr(value), LDS_LIMIT];
                vec![self.hw(Opcode::ds_bpermute_b32, RegClass::V1, self.lds_operands(&operands))]
            }
            Op::QuadBroadcast | Op::QuadSwap => vec![self.quad(inst)?],
            _ => return Err(self.unsupported(inst, None)),
        };
        self.define(result, &lanes);
        Ok(())
    }

    /// Whether all lanes of the wave execute the block.
    pub(super) fn all_active(&self) -> bool {
        let together = self.block.is_some_and(|block| self.program.blocks[block].top_level);
        together && self.program.whole_waves
    }

    /// Whether all lanes of each wave start, and none ends before the others.
    pub(super) fn whole_waves(&self) -> bool {
        let wave = self.program.gpu.lanes();
        let whole = self.shader.info.stage == shader_ir::Stage::Compute
            && self.shader.info.invocations().is_multiple_of(wave);
        // Merged stages enable all lanes when they start, and prologs of them those of vertices.
        let merged = !self.interface.prolog && self.interface.hardware.is_some_and(HardwareStage::is_merged);
        (whole || merged) && !self.shape.root_divergent
    }

    /// The lanes whose bits are set in the words of a ballot.
    fn inverse_ballot(&mut self, ballot: Value) -> Operand {
        use Opcode as O;
        let class = self.program.lane_mask();
        let words = self.value(ballot).to_vec();
        let own = &words[..usize::from(class.dwords()).min(words.len())];
        if !own.iter().any(|word| word.class.is_vgpr() && word.as_const().is_none()) {
            let bits = own.iter().rev().try_fold(0u64, |bits, word| Some(bits << 32 | word.as_const()?));
            return match bits {
                // Other constants of two words may need two literals.
                Some(bits) if bits <= 64 || class.dwords() == 1 => {
                    self.copy(class, Operand::constant(bits, class))
                }
                _ => self.create(class, own),
            };
        }
        let v1 = RegClass::V1;
        let lane = self.lane();
        let word = match own {
            [low, high] => {
                let upper = self.valu_compare(O::v_cmp_lt_u32, &[Operand::c32(31), lane]);
                self.choose(upper, *high, *low)
            }
            _ => own[0],
        };
        // Shifts take their number modulo 32.
        let shifted = self.valu(O::v_lshrrev_b32, v1, &[lane, word]);
        let bit = self.valu(O::v_and_b32, v1, &[Operand::c32(1), shifted]);
        self.valu_compare(O::v_cmp_lg_u32, &[Operand::c32(0), bit])
    }

    /// Linear vector registers, which instructions that write inactive lanes share; the program has as many as one of them needs.
    pub(super) fn linear_registers<const COUNT: usize>(&mut self) -> [Operand; COUNT] {
        let class = RegClass::linear_vgpr(1);
        while self.linear.len() < COUNT {
            let temp = self.program.make_temp(class);
            if let Some(first) = self.program.blocks.keys().next() {
                let definitions = [Definition::temp(temp, class)];
                let new = NewInst::pseudo(Pseudo::StartLinearVgpr, &definitions, &[]);
                self.program.insert(first, 1, &new);
            }
            self.linear.push(temp);
        }
        std::array::from_fn(|at| Operand::temp(self.linear[at], class))
    }

    /// A reduction of a value of 32 bits that is the same in all active lanes; not a product or a sum of floats.
    fn reduce_uniform(&mut self, op: Op, value: Operand) -> Operand {
        if value.is_undef() || !matches!(op, Op::IAdd | Op::IXor) {
            return value;
        }
        let exec = self.exec();
        let count = self.sized(Opcode::s_bcnt1_i32_b32, Opcode::s_bcnt1_i32_b64);
        let mut lanes = self.salu(count, RegClass::S1, &[exec]);
        if op == Op::IXor {
            lanes = self.salu(Opcode::s_and_b32, RegClass::S1, &[lanes, Operand::c32(1)]);
        }
        match value.as_const() {
            Some(1) => lanes,
            _ => self.salu(Opcode::s_mul_i32, RegClass::S1, &[lanes, value]),
        }
    }

    /// A reduction or scan of 32 bits.
    fn reduce(&mut self, inst: Inst) -> Selected<Operand> {
        let func = self.func;
        let (op, result) = (func.op(inst), func.result(inst));
        let shader_ir::Payload::Reduce(reduced, cluster) = func.payload(inst) else {
            return Err(self.unsupported(inst, None));
        };
        let wave = self.program.gpu.lanes();
        let cluster = if u32::from(cluster) >= wave { 0 } else { cluster };
        let value = self.scalar(func.args(inst)[0]);
        if op == Op::Reduce && cluster == 1 {
            return Ok(value);
        }
        let repeats = matches!(reduced, Op::IMul | Op::FMul | Op::FAdd);
        let uniform = !repeats && !self.divergence.is_divergent(func.args(inst)[0]);
        if op == Op::Reduce && cluster == 0 && uniform {
            let reduced = self.reduce_uniform(reduced, value);
            return Ok(if self.banks.is_vector(result) {
                self.in_vgpr(reduced)
            } else {
                self.in_scalar(reduced)
            });
        }
        let value = Operand { late_kill: true, ..self.in_vgpr(value) };
        let value = if value.is_undef() { self.copy(RegClass::V1, Operand::c32(0)) } else { value };
        let class = if op == Op::Reduce && cluster == 0 { RegClass::S1 } else { RegClass::V1 };
        let temp = self.program.make_temp(class);
        let mut definitions = vec![Definition::temp(temp, class)];
        let mut operands = vec![value];
        let mut scratch = |selector: &mut Self, class| {
            definitions.push(Definition::temp(selector.program.make_temp(class), class));
        };
        if self.all_active() {
            scratch(self, RegClass::V1);
            scratch(self, RegClass::V1);
        } else {
            operands.extend(self.linear_registers::<2>());
            scratch(self, self.program.lane_mask());
        }
        scratch(self, RegClass::S1);
        definitions.push(Definition::reg(PhysReg::SCC, RegClass::S1));
        // Sums of gfx8 leave a carry.
        if reduced == Op::IAdd && self.gfx == Gfx::Gfx8 {
            definitions.push(Definition::reg(PhysReg::VCC, self.program.lane_mask()));
        }
        // Operations that have an inverse become an inclusive scan from which the lane's own value is removed.
        let inverse = matches!(reduced, Op::IAdd | Op::IXor);
        let pseudo = match op {
            Op::Reduce => Pseudo::Reduce,
            Op::ExclusiveScan if !inverse => Pseudo::ExclusiveScan,
            _ => Pseudo::InclusiveScan,
        };
        let mut new = NewInst::pseudo(pseudo, &definitions, &operands);
        new.payload = Payload::Reduce(reduced, 32, cluster);
        self.add(&new);
        let whole = Operand::temp(temp, class);
        Ok(match (op, reduced) {
            // Without the lane itself.
            (Op::ExclusiveScan, Op::IXor) => self.valu(Opcode::v_xor_b32, class, &[whole, operands[0]]),
            (Op::ExclusiveScan, Op::IAdd) => self.vector_sub(whole, operands[0]),
            _ if self.banks.is_vector(result) => whole,
            _ => self.in_scalar(whole),
        })
    }

    /// Moves values within quads.
    fn quad(&mut self, inst: Inst) -> Selected<Operand> {
        let func = self.func;
        let (args, result) = (func.args(inst), func.result(inst));
        if func.ty(result).base != Base::B32 || func.ty(result).lanes != 1 {
            return Err(self.unsupported(inst, None));
        }
        let lanes = match func.payload(inst) {
            shader_ir::Payload::Quad(QuadDir::Horizontal) => [1, 0, 3, 2],
            shader_ir::Payload::Quad(QuadDir::Vertical) => [2, 3, 0, 1],
            shader_ir::Payload::Quad(QuadDir::Diagonal) => [3, 2, 1, 0],
            _ => match func.const_bits(args[1]) {
                Some(lane) if lane < 4 => [lane as i32; 4],
                _ => return Err(self.unsupported(inst, Some("a lane that is not a constant"))),
            },
        };
        let value = self.scalar(args[0]);
        Ok(if value.class.is_vgpr() { self.in_quad(value, lanes) } else { value })
    }

    /// A value with its lanes permuted within each quad.
    pub(super) fn in_quad(&mut self, value: Operand, lanes: [i32; 4]) -> Operand {
        let temp = self.program.make_temp(RegClass::V1);
        let definitions = [Definition::temp(temp, RegClass::V1)];
        let mut mods = Mods::default();
        let (operands, limited) = ([value], [value, LDS_LIMIT]);
        let mut new = if self.gfx < Gfx::Gfx8 {
            // Bit 15 selects quad permutation.
            mods.set(Mod::Offset, 0x8000 | quad_lanes(lanes));
            NewInst::hw(Opcode::ds_swizzle_b32, &definitions, &limited)
        } else {
            mods.set(Mod::DppCtrl, quad_lanes(lanes));
            mods.set(Mod::RowMask, 15);
            mods.set(Mod::BankMask, 15);
            mods.set(Mod::BoundCtrl, 1);
            NewInst { form: Form::Dpp, ..NewInst::hw(Opcode::v_mov_b32, &definitions, &operands) }
        };
        new.mods = mods;
        self.add(&new);
        Operand::temp(temp, RegClass::V1)
    }
}
