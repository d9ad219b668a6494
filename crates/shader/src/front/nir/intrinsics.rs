//! Intrinsics that do not access memory: system values, arguments, barriers, subgroup operations.

use super::abi::{Argument, LOAD_RAY_TABLE, RAY_TABLE};
use super::error::{NirCause, Result, invalid, unsupported};
use super::memory::accesses_memory;
use super::parse::InstText;
use super::translate::Translator;
use crate::ir::{
    Access, BarrierInfo, Base, MemAccess, MemoryKinds, Op, Order, Payload, QuadDir, Scope, Space,
    SystemValue, Type, Value,
};

/// System values by their intrinsics.
const SYSTEM_VALUES: &[(&str, SystemValue)] = &[
    ("load_num_workgroups", SystemValue::NumWorkgroups),
    ("load_workgroup_id", SystemValue::WorkgroupId),
    ("load_workgroup_size", SystemValue::WorkgroupSize),
    ("load_local_invocation_id", SystemValue::LocalInvocationId),
    ("load_local_invocation_index", SystemValue::LocalInvocationIndex),
    ("load_global_invocation_id", SystemValue::GlobalInvocationId),
    ("load_subgroup_size", SystemValue::SubgroupSize),
    ("load_subgroup_invocation", SystemValue::SubgroupInvocation),
    ("load_num_subgroups", SystemValue::NumSubgroups),
    ("load_subgroup_id", SystemValue::SubgroupId),
];

/// Subgroup operations that the IR has, by their intrinsics.
const SUBGROUP: &[(&str, Op)] = &[
    ("elect", Op::Elect),
    ("vote_any", Op::VoteAny),
    ("vote_all", Op::VoteAll),
    ("vote_ieq", Op::VoteIEq),
    ("vote_feq", Op::VoteFEq),
    ("read_first_invocation", Op::ReadFirst),
    ("read_invocation", Op::Broadcast),
    ("shuffle", Op::Shuffle),
    ("shuffle_xor", Op::ShuffleXor),
    ("shuffle_up", Op::ShuffleUp),
    ("shuffle_down", Op::ShuffleDown),
    ("quad_broadcast", Op::QuadBroadcast),
];

/// Reductions and scans.
const REDUCTIONS: &[(&str, Op)] =
    &[("reduce", Op::Reduce), ("inclusive_scan", Op::InclusiveScan), ("exclusive_scan", Op::ExclusiveScan)];

/// What reductions combine with.
const COMBINE: &[(&str, Op)] = &[
    ("iadd", Op::IAdd),
    ("imul", Op::IMul),
    ("imin", Op::IMin),
    ("imax", Op::IMax),
    ("umin", Op::UMin),
    ("umax", Op::UMax),
    ("iand", Op::IAnd),
    ("ior", Op::IOr),
    ("ixor", Op::IXor),
    ("fadd", Op::FAdd),
    ("fmul", Op::FMul),
    ("fmin", Op::FMin),
    ("fmax", Op::FMax),
];

/// Directions of a swap in the quad.
const QUAD_SWAPS: &[(&str, QuadDir)] = &[
    ("quad_swap_horizontal", QuadDir::Horizontal),
    ("quad_swap_vertical", QuadDir::Vertical),
    ("quad_swap_diagonal", QuadDir::Diagonal),
];

/// Scopes of barriers.
const SCOPES: &[(&str, Scope)] = &[
    ("NONE", Scope::Invocation),
    ("INVOCATION", Scope::Invocation),
    ("SUBGROUP", Scope::Subgroup),
    ("WORKGROUP", Scope::Workgroup),
    ("QUEUE_FAMILY", Scope::QueueFamily),
    ("DEVICE", Scope::Device),
];

/// How barriers order memory.
const ORDERS: &[(&str, Order)] = &[
    ("NONE", Order::NONE),
    ("ACQ", Order::ACQUIRE),
    ("REL", Order::RELEASE),
    ("AVAILABLE", Order::AVAILABLE),
    ("VISIBLE", Order::VISIBLE),
];

/// Which memory barriers order.
const MODES: &[(&str, MemoryKinds)] = &[
    ("", MemoryKinds::NONE),
    ("0", MemoryKinds::NONE),
    ("ssbo", MemoryKinds::BUFFERS),
    ("ubo", MemoryKinds::BUFFERS),
    ("global", MemoryKinds::BUFFERS),
    ("shared", MemoryKinds::SHARED),
    ("image", MemoryKinds::IMAGES),
    ("shader_out", MemoryKinds::OUTPUTS),
];

/// The row of a table that has a name.
pub(super) fn lookup<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(row, _)| *row == name).map(|(_, value)| *value)
}

/// The row of a table that has a name; a name without a row is refused.
pub(super) fn named<T: Copy>(table: &[(&str, T)], key: &str, name: &str) -> Result<T> {
    lookup(table, name).map_or_else(|| unsupported(format!("{key}={name}")), Ok)
}

impl<'t> Translator<'_, 't> {
    /// An intrinsic, and its result if it has one.
    pub fn intrinsic(&mut self, inst: &InstText<'t>) -> Result<Option<Value>> {
        if let Some(result) = self.amd(inst)? {
            return Ok(result);
        }
        if let Some(result) = self.image(inst)? {
            return Ok(result);
        }
        if let Some(value) = self.lanes(inst)? {
            return Ok(Some(value));
        }
        if accesses_memory(inst.name) {
            return self.memory(inst);
        }
        let name = inst.name;
        if let Some(value) = lookup(SYSTEM_VALUES, name) {
            self.arity(inst, 0)?;
            return Ok(Some(self.system(value)));
        }
        match name {
            "load_scalar_arg_amd" | "load_vector_arg_amd" => return self.argument(inst).map(Some),
            LOAD_RAY_TABLE => return self.argument(inst).map(Some),
            "barrier" => return self.barrier(inst).map(|()| None),
            _ => {}
        }
        let args = self.operands(inst)?;
        if let Some(op) = lookup(SUBGROUP, name) {
            self.arity(inst, op.row().operands.len())?;
            return Ok(Some(self.build().alu(op, &args)));
        }
        if let Some(op) = lookup(REDUCTIONS, name) {
            self.arity(inst, 1)?;
            let combine =
                named(COMBINE, "reduction_op", self.program.text(inst, "reduction_op").unwrap_or(""))?;
            let cluster = self.program.index(inst, "cluster_size")?.unwrap_or(0);
            let Ok(cluster) = u8::try_from(cluster) else {
                return unsupported(format!("clusters of {cluster} invocations"));
            };
            let ty = self.func.ty(args[0]);
            return Ok(Some(self.build().value(op, Payload::Reduce(combine, cluster), &args, ty)));
        }
        if let Some(direction) = lookup(QUAD_SWAPS, name) {
            self.arity(inst, 1)?;
            let ty = self.func.ty(args[0]);
            return Ok(Some(self.build().value(Op::QuadSwap, Payload::Quad(direction), &args, ty)));
        }
        match (name, args.as_slice()) {
            ("optimization_barrier_vgpr_amd" | "optimization_barrier_sgpr_amd", &[value]) => Ok(Some(value)),
            ("as_uniform", &[value]) => Ok(Some(self.build().alu(Op::ReadFirst, &[value]))),
            ("is_helper_invocation" | "load_helper_invocation", &[]) => {
                Ok(Some(self.build().alu(Op::IsHelper, &[])))
            }
            ("shader_clock", &[]) => {
                let scope =
                    named(SCOPES, "memory_scope", self.program.text(inst, "memory_scope").unwrap_or(""))?;
                let pair = Type { base: Base::B32, lanes: 2 };
                Ok(Some(self.build().value(Op::Clock, Payload::Scope(scope), &[], pair)))
            }
            ("ballot" | "ballot_relaxed", &[condition]) => {
                let Some((_, ty)) = inst.def else { return invalid("a ballot has no result") };
                let ballot = self.build().alu(Op::Ballot, &[condition]);
                self.ballot_words(ballot, ty).map(Some)
            }
            ("mbcnt_amd", &[mask, sum]) => self.masked_count(mask, sum).map(Some),
            ("inverse_ballot", &[mask]) => self.inverse_ballot(mask).map(Some),
            ("first_invocation", &[]) => {
                let own = self.system(SystemValue::SubgroupInvocation);
                Ok(Some(self.build().alu(Op::ReadFirst, &[own])))
            }
            _ => unsupported(format!("@{name}")),
        }
    }

    /// Checks that an intrinsic has this many operands.
    pub fn arity(&self, inst: &InstText<'_>, wanted: usize) -> Result<()> {
        if inst.operands.len() == wanted {
            return Ok(());
        }
        invalid(format!("@{} has {} operands instead of {wanted}", inst.name, inst.operands.len()))
    }

    fn system(&mut self, value: SystemValue) -> Value {
        self.build().value(Op::SysVal, Payload::SysVal(value), &[], value.ty())
    }

    /// An argument, as its meaning says. Addresses of descriptor sets are not here because they are not values.
    fn argument(&mut self, inst: &InstText<'_>) -> Result<Value> {
        self.arity(inst, 0)?;
        let number = if inst.name == LOAD_RAY_TABLE {
            RAY_TABLE
        } else {
            self.program.index(inst, "base")?.unwrap_or(0)
        };
        match self.arguments.get(number) {
            Argument::Push(offset) => {
                let mem = MemAccess { space: Space::Push, access: Access::READONLY, align: 2 };
                let mut builder = self.build();
                let offset = builder.u32(offset);
                Ok(builder.value(Op::Load, Payload::Mem(mem), &[offset], Type::B32))
            }
            Argument::LocalId(component) => {
                let id = self.system(SystemValue::LocalInvocationId);
                Ok(self.build().extract(id, component))
            }
            Argument::LocalIdsPacked => {
                let id = self.system(SystemValue::LocalInvocationId);
                let mut builder = self.build();
                let mut packed = builder.extract(id, 0);
                for component in 1..3u8 {
                    let lane = builder.extract(id, component);
                    let shift = builder.u32(10 * u32::from(component));
                    let shifted = builder.alu(Op::IShl, &[lane, shift]);
                    packed = builder.alu(Op::IOr, &[packed, shifted]);
                }
                Ok(packed)
            }
            Argument::Register(registers) => self.register(inst, registers),
            Argument::DescriptorSet(_) => unsupported("the address of a descriptor set in a vector register"),
            Argument::Other => unsupported(format!("argument {number}, whose meaning is not known")),
        }
    }

    fn barrier(&mut self, inst: &InstText<'_>) -> Result<()> {
        self.arity(inst, 0)?;
        let text = |key| self.program.text(inst, key).unwrap_or("NONE");
        let scope = |key| named(SCOPES, key, text(key));
        let mut info = BarrierInfo {
            execution: scope("execution_scope")?,
            memory: scope("memory_scope")?,
            order: Order::NONE,
            kinds: MemoryKinds::NONE,
        };
        for order in text("mem_semantics").split('|') {
            info.order = info.order.or(named(ORDERS, "mem_semantics", order)?);
        }
        for mode in self.program.text(inst, "mem_modes").unwrap_or("0").split('|') {
            info.kinds = info.kinds.or(named(MODES, "mem_modes", mode)?);
        }
        self.build().inst(Op::Barrier, Payload::Barrier(info), &[], &[]);
        Ok(())
    }

    /// The words of a ballot in the form that a shader asks for.
    fn ballot_words(&mut self, ballot: Value, ty: Type) -> Result<Value> {
        let mut builder = self.build();
        match (ty.base, ty.lanes) {
            (Base::B32, 4) => Ok(ballot),
            (Base::B32, 1) => Ok(builder.extract(ballot, 0)),
            (Base::B64, 1) => {
                let (low, high) = (builder.extract(ballot, 0), builder.extract(ballot, 1));
                let both = builder.vec(&[low, high]);
                Ok(builder.bitcast(ty, both))
            }
            _ => unsupported(format!("a ballot of the type {ty}")),
        }
    }

    /// The bit of this invocation; false past the end of the mask.
    fn inverse_ballot(&mut self, mask: Value) -> Result<Value> {
        let ty = self.func.ty(mask);
        if !matches!(ty.base, Base::B32 | Base::B64) || ty.lanes != 1 {
            return unsupported(format!("a ballot of the type {ty}"));
        }
        let mut builder = self.build();
        let zero = builder.u32(0);
        let words = match ty.base {
            Base::B64 => {
                let both = builder.bitcast(Type { base: Base::B32, lanes: 2 }, mask);
                [builder.extract(both, 0), builder.extract(both, 1)]
            }
            _ => [mask, zero],
        };
        let ballot = builder.vec(&[words[0], words[1], zero, zero]);
        Ok(builder.alu(Op::InverseBallot, &[ballot]))
    }
}

impl Translator<'_, '_> {
    /// A sum, and the bits of a mask that belong to earlier invocations.
    fn masked_count(&mut self, mask: Value, sum: Value) -> Result<Value> {
        let ty = self.func.ty(mask);
        if !matches!(ty.base, Base::B32 | Base::B64) || ty.lanes != 1 {
            return unsupported(format!("a ballot of the type {ty}"));
        }
        let own = self.system(SystemValue::SubgroupInvocation);
        let mut builder = self.build();
        let one = builder.constant(ty.base, 1);
        let bit = builder.alu(Op::IShl, &[one, own]);
        let earlier = builder.alu(Op::ISub, &[bit, one]);
        // Past the mask all of its bits are earlier.
        let (width, all) = (builder.u32(ty.bits()), builder.constant(ty.base, u64::MAX));
        let inside = builder.alu(Op::ULt, &[own, width]);
        let earlier = builder.alu(Op::Select, &[inside, earlier, all]);
        let bits = builder.alu(Op::IAnd, &[mask, earlier]);
        let count = builder.alu(Op::BitCount, &[bits]);
        Ok(builder.alu(Op::IAdd, &[count, sum]))
    }
}

/// The error for a missing index.
pub(super) fn missing(inst: &InstText<'_>, key: &str) -> NirCause {
    NirCause::Invalid(format!("@{} has no {key}", inst.name))
}
