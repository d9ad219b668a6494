//! Barriers, subgroups, quads, derivatives, and operations that only some stages have.

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::Instr;
use super::translate::Translator;
use crate::ir::{
    BarrierInfo, Base, MemoryKinds, Op as IrOp, Order, Payload, QuadDir, Scope, SystemValue, Type, Value,
};
use spirv::{GroupOperation, MemorySemantics, Op};

impl Translator<'_> {
    /// Operations that invocations execute together; `false` if the instruction is something else.
    pub(super) fn group(&mut self, inst: Instr<'_>) -> Result<bool> {
        match inst.op {
            Op::ControlBarrier => {
                let info = self.barrier(Some(inst.word(1)?), inst.word(2)?, inst.word(3)?)?;
                self.write(IrOp::Barrier, Payload::Barrier(info), &[], &[])?;
            }
            Op::MemoryBarrier => {
                let info = self.barrier(None, inst.word(1)?, inst.word(2)?)?;
                self.write(IrOp::Barrier, Payload::Barrier(info), &[], &[])?;
            }
            Op::DPdx => self.unary(inst, IrOp::Ddx)?,
            Op::DPdy => self.unary(inst, IrOp::Ddy)?,
            Op::DPdxFine => self.unary(inst, IrOp::DdxFine)?,
            Op::DPdyFine => self.unary(inst, IrOp::DdyFine)?,
            Op::DPdxCoarse => self.unary(inst, IrOp::DdxCoarse)?,
            Op::DPdyCoarse => self.unary(inst, IrOp::DdyCoarse)?,
            Op::Fwidth | Op::FwidthFine | Op::FwidthCoarse => {
                let (x, y) = match inst.op {
                    Op::FwidthFine => (IrOp::DdxFine, IrOp::DdyFine),
                    Op::FwidthCoarse => (IrOp::DdxCoarse, IrOp::DdyCoarse),
                    _ => (IrOp::Ddx, IrOp::Ddy),
                };
                let value = self.operand(inst, 3)?;
                let (x, y) = (self.alu(x, &[value])?, self.alu(y, &[value])?);
                let (x, y) = (self.alu(IrOp::FAbs, &[x])?, self.alu(IrOp::FAbs, &[y])?);
                let width = self.alu(IrOp::FAdd, &[x, y])?;
                self.set_value(inst, width)?;
            }
            Op::DemoteToHelperInvocation => {
                self.write(IrOp::Demote, Payload::None, &[], &[])?;
            }
            Op::IsHelperInvocationEXT => {
                let value = self.alu(IrOp::IsHelper, &[])?;
                self.set_value(inst, value)?;
            }
            Op::EmitVertex | Op::EndPrimitive => self.stream(inst, 0)?,
            Op::EmitStreamVertex | Op::EndStreamPrimitive => {
                let stream = self.module.constant_bits(inst.word(1)?)?;
                self.stream(inst, stream.min(255) as u8)?;
            }
            Op::ReadClockKHR => {
                let scope = self.scope(inst.word(3)?)?;
                let pair = Type { base: Base::B32, lanes: 2 };
                let mut value = self.emit(IrOp::Clock, Payload::Scope(scope), &[], pair)?;
                let ty = self.result_leaf(inst)?;
                if ty == Type::B64 {
                    value = self.emit(IrOp::Bitcast, Payload::None, &[value], ty)?;
                }
                self.set_value(inst, value)?;
            }
            _ => return self.subgroup(inst),
        }
        Ok(true)
    }

    fn unary(&mut self, inst: Instr<'_>, op: IrOp) -> Result<()> {
        let value = self.operand(inst, 3)?;
        let value = self.alu(op, &[value])?;
        self.set_value(inst, value)
    }

    fn stream(&mut self, inst: Instr<'_>, stream: u8) -> Result<()> {
        let emits = matches!(inst.op, Op::EmitVertex | Op::EmitStreamVertex);
        let op = if emits { IrOp::EmitVertex } else { IrOp::EndPrimitive };
        self.write(op, Payload::Stream(stream), &[], &[])?;
        Ok(())
    }

    fn scope(&self, id: u32) -> Result<Scope> {
        Ok(match self.module.constant_bits(id)? {
            // The whole system is the device, as far as a shader can see.
            0 | 1 => Scope::Device,
            2 => Scope::Workgroup,
            3 => Scope::Subgroup,
            4 => Scope::Invocation,
            5 => Scope::QueueFamily,
            other => return unsupported(format!("scope {other}")),
        })
    }

    fn barrier(&self, execution: Option<u32>, memory: u32, semantics: u32) -> Result<BarrierInfo> {
        let bits = MemorySemantics::from_bits_truncate(self.module.constant_bits(semantics)? as u32);
        let mut order = Order::NONE;
        for (bit, flag) in [
            (MemorySemantics::ACQUIRE, Order::ACQUIRE),
            (MemorySemantics::RELEASE, Order::RELEASE),
            (MemorySemantics::ACQUIRE_RELEASE, Order::ACQUIRE.or(Order::RELEASE)),
            (MemorySemantics::SEQUENTIALLY_CONSISTENT, Order::ACQUIRE.or(Order::RELEASE)),
            (MemorySemantics::MAKE_AVAILABLE, Order::AVAILABLE),
            (MemorySemantics::MAKE_VISIBLE, Order::VISIBLE),
        ] {
            if bits.contains(bit) {
                order = order.or(flag);
            }
        }
        let mut kinds = MemoryKinds::NONE;
        for (bit, flag) in [
            (MemorySemantics::UNIFORM_MEMORY, MemoryKinds::BUFFERS),
            (MemorySemantics::CROSS_WORKGROUP_MEMORY, MemoryKinds::BUFFERS),
            (MemorySemantics::WORKGROUP_MEMORY, MemoryKinds::SHARED),
            (MemorySemantics::IMAGE_MEMORY, MemoryKinds::IMAGES),
            (MemorySemantics::OUTPUT_MEMORY, MemoryKinds::OUTPUTS),
        ] {
            if bits.contains(bit) {
                kinds = kinds.or(flag);
            }
        }
        let execution = execution.map_or(Ok(Scope::Invocation), |id| self.scope(id))?;
        Ok(BarrierInfo { execution, memory: self.scope(memory)?, order, kinds })
    }

    /// Operations of subgroups; `false` if the instruction is something else.
    fn subgroup(&mut self, inst: Instr<'_>) -> Result<bool> {
        let value = match inst.op {
            Op::GroupNonUniformElect => self.alu(IrOp::Elect, &[])?,
            Op::GroupNonUniformAll => self.vote(inst, IrOp::VoteAll, 4)?,
            Op::GroupNonUniformAny => self.vote(inst, IrOp::VoteAny, 4)?,
            Op::SubgroupAllKHR => self.vote(inst, IrOp::VoteAll, 3)?,
            Op::SubgroupAnyKHR => self.vote(inst, IrOp::VoteAny, 3)?,
            Op::GroupNonUniformAllEqual | Op::SubgroupAllEqualKHR => {
                let at = if inst.op == Op::SubgroupAllEqualKHR { 3 } else { 4 };
                let float = self.module.types.is_float(self.module.value_type(inst.word(at)?)?);
                self.vote(inst, if float { IrOp::VoteFEq } else { IrOp::VoteIEq }, at)?
            }
            Op::GroupNonUniformBallot => self.vote(inst, IrOp::Ballot, 4)?,
            Op::SubgroupBallotKHR => self.vote(inst, IrOp::Ballot, 3)?,
            Op::GroupNonUniformBroadcastFirst => self.vote(inst, IrOp::ReadFirst, 4)?,
            Op::SubgroupFirstInvocationKHR => self.vote(inst, IrOp::ReadFirst, 3)?,
            Op::GroupNonUniformBroadcast => self.shuffle(inst, IrOp::Broadcast, 4)?,
            Op::SubgroupReadInvocationKHR => self.shuffle(inst, IrOp::Broadcast, 3)?,
            Op::GroupNonUniformShuffle => self.shuffle(inst, IrOp::Shuffle, 4)?,
            Op::GroupNonUniformShuffleXor => self.shuffle(inst, IrOp::ShuffleXor, 4)?,
            Op::GroupNonUniformShuffleUp => self.shuffle(inst, IrOp::ShuffleUp, 4)?,
            Op::GroupNonUniformShuffleDown => self.shuffle(inst, IrOp::ShuffleDown, 4)?,
            Op::GroupNonUniformQuadBroadcast => self.shuffle(inst, IrOp::QuadBroadcast, 4)?,
            Op::GroupNonUniformRotateKHR => self.rotate(inst)?,
            Op::GroupNonUniformQuadSwap => {
                let value = self.operand(inst, 4)?;
                let dir = match self.module.constant_bits(inst.word(5)?)? {
                    0 => QuadDir::Horizontal,
                    1 => QuadDir::Vertical,
                    2 => QuadDir::Diagonal,
                    _ => return invalid("a neighbour in the quad does not exist"),
                };
                let ty = self.ty(value);
                self.emit(IrOp::QuadSwap, Payload::Quad(dir), &[value], ty)?
            }
            Op::GroupNonUniformInverseBallot => {
                let ballot = self.operand(inst, 4)?;
                self.alu(IrOp::InverseBallot, &[ballot])?
            }
            Op::GroupNonUniformBallotBitExtract => {
                let (ballot, lane) = (self.operand(inst, 4)?, self.operand(inst, 5)?);
                self.ballot_bit(ballot, lane)?
            }
            Op::GroupNonUniformBallotBitCount => self.ballot_count(inst)?,
            Op::GroupNonUniformBallotFindLSB => {
                let ballot = self.operand(inst, 4)?;
                self.ballot_find(ballot, true)?
            }
            Op::GroupNonUniformBallotFindMSB => {
                let ballot = self.operand(inst, 4)?;
                self.ballot_find(ballot, false)?
            }
            _ => {
                let Some(op) = reduction(inst.op) else { return Ok(false) };
                self.reduce(inst, op)?
            }
        };
        self.set_value(inst, value)?;
        Ok(true)
    }

    fn vote(&mut self, inst: Instr<'_>, op: IrOp, at: usize) -> Result<Value> {
        let value = self.operand(inst, at)?;
        self.alu(op, &[value])
    }

    fn shuffle(&mut self, inst: Instr<'_>, op: IrOp, at: usize) -> Result<Value> {
        let (value, lane) = (self.operand(inst, at)?, self.operand(inst, at + 1)?);
        let lane = self.convert(IrOp::U2U, Base::B32, lane)?;
        self.alu(op, &[value, lane])
    }

    fn invocation(&mut self) -> Result<Value> {
        self.emit(IrOp::SysVal, Payload::SysVal(SystemValue::SubgroupInvocation), &[], Type::B32)
    }

    /// Reads from the invocation that is this much further, wrapping around in the cluster.
    fn rotate(&mut self, inst: Instr<'_>) -> Result<Value> {
        let (value, delta) = (self.operand(inst, 4)?, self.operand(inst, 5)?);
        let lane = self.invocation()?;
        let size = match inst.words.get(6) {
            Some(&cluster) => self.value(cluster)?,
            None => self.emit(IrOp::SysVal, Payload::SysVal(SystemValue::SubgroupSize), &[], Type::B32)?,
        };
        let one = self.u32(1);
        let mask = self.alu(IrOp::ISub, &[size, one])?;
        let sum = self.alu(IrOp::IAdd, &[lane, delta])?;
        let within = self.alu(IrOp::IAnd, &[sum, mask])?;
        let outside = self.alu(IrOp::INot, &[mask])?;
        let start = self.alu(IrOp::IAnd, &[lane, outside])?;
        let from = self.alu(IrOp::IOr, &[start, within])?;
        self.alu(IrOp::Shuffle, &[value, from])
    }

    fn ballot_bit(&mut self, ballot: Value, lane: Value) -> Result<Value> {
        let (five, one, zero) = (self.u32(5), self.u32(1), self.u32(0));
        let word = self.alu(IrOp::UShr, &[lane, five])?;
        let word = self.alu(IrOp::ExtractDyn, &[ballot, word])?;
        let bit = self.alu(IrOp::UShr, &[word, lane])?;
        let bit = self.alu(IrOp::IAnd, &[bit, one])?;
        self.alu(IrOp::INe, &[bit, zero])
    }

    fn ballot_count(&mut self, inst: Instr<'_>) -> Result<Value> {
        let mut ballot = self.operand(inst, 5)?;
        let mask = match GroupOperation::from_u32(inst.word(4)?) {
            Some(GroupOperation::Reduce) => None,
            Some(GroupOperation::InclusiveScan) => Some(SystemValue::SubgroupLeMask),
            Some(GroupOperation::ExclusiveScan) => Some(SystemValue::SubgroupLtMask),
            _ => return unsupported("counts of ballots by clusters"),
        };
        if let Some(mask) = mask {
            let mask = self.emit(IrOp::SysVal, Payload::SysVal(mask), &[], mask.ty())?;
            ballot = self.alu(IrOp::IAnd, &[ballot, mask])?;
        }
        let counts = self.alu(IrOp::BitCount, &[ballot])?;
        self.horizontal(IrOp::IAdd, counts)
    }

    /// The number of the lowest or highest bit. SPIR-V leaves the result open if no bit is set.
    fn ballot_find(&mut self, ballot: Value, lowest: bool) -> Result<Value> {
        let zero = self.u32(0);
        let lanes: Vec<u8> = if lowest { (0..4).rev().collect() } else { (0..4).collect() };
        let mut result = None;
        for lane in lanes {
            let word = self.extract(ballot, lane)?;
            let bit = self.alu(if lowest { IrOp::FindLsb } else { IrOp::FindUMsb }, &[word])?;
            let base = self.u32(u32::from(lane) * 32);
            let bit = self.alu(IrOp::IAdd, &[bit, base])?;
            result = Some(match result {
                None => bit,
                Some(other) => {
                    let any = self.alu(IrOp::INe, &[word, zero])?;
                    self.alu(IrOp::Select, &[any, bit, other])?
                }
            });
        }
        result.ok_or(SpirvCause::Invalid("a ballot has no words"))
    }

    fn reduce(&mut self, inst: Instr<'_>, op: IrOp) -> Result<Value> {
        let value = self.operand(inst, 5)?;
        let (ir, cluster) = match GroupOperation::from_u32(inst.word(4)?) {
            Some(GroupOperation::Reduce) => (IrOp::Reduce, 0),
            Some(GroupOperation::InclusiveScan) => (IrOp::InclusiveScan, 0),
            Some(GroupOperation::ExclusiveScan) => (IrOp::ExclusiveScan, 0),
            Some(GroupOperation::ClusteredReduce) => {
                (IrOp::Reduce, self.module.constant_bits(inst.word(6)?)?)
            }
            _ => return unsupported("reductions by partitions"),
        };
        let cluster = u8::try_from(cluster).map_err(|_| SpirvCause::Limit("a cluster"))?;
        if cluster != 0 && !cluster.is_power_of_two() {
            return invalid("the size of a cluster is not a power of two");
        }
        let ty = self.ty(value);
        if crate::semantics::identity(op, ty.base).is_none() {
            return Err(SpirvCause::Types(inst.op));
        }
        self.emit(ir, Payload::Reduce(op, cluster), &[value], ty)
    }
}

fn reduction(op: Op) -> Option<IrOp> {
    Some(match op {
        Op::GroupNonUniformIAdd => IrOp::IAdd,
        Op::GroupNonUniformFAdd => IrOp::FAdd,
        Op::GroupNonUniformIMul => IrOp::IMul,
        Op::GroupNonUniformFMul => IrOp::FMul,
        Op::GroupNonUniformSMin => IrOp::IMin,
        Op::GroupNonUniformUMin => IrOp::UMin,
        Op::GroupNonUniformFMin => IrOp::FMin,
        Op::GroupNonUniformSMax => IrOp::IMax,
        Op::GroupNonUniformUMax => IrOp::UMax,
        Op::GroupNonUniformFMax => IrOp::FMax,
        Op::GroupNonUniformBitwiseAnd | Op::GroupNonUniformLogicalAnd => IrOp::IAnd,
        Op::GroupNonUniformBitwiseOr | Op::GroupNonUniformLogicalOr => IrOp::IOr,
        Op::GroupNonUniformBitwiseXor | Op::GroupNonUniformLogicalXor => IrOp::IXor,
        _ => return None,
    })
}
