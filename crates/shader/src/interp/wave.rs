//! A subgroup: its state, and what one instruction does to it.

use super::flow::Open;
use super::image::Images;
use super::layout::Layout;
use super::memory::{
    AccessMode, BarrierCounts, BindingPoint, BufferView, Loaded, MAX_BYTES, Memory, Moment, Scratch, Target,
    Touched,
};
use super::registers::{Mask, Registers, first, invocations};
use super::report::{Finding, Report, RunError, Violation};
use super::slots::{SLOT_BYTES, Slots};
use super::stage::{InvocationInput, VertexOutput};
use super::{Limits, Options};
use crate::ir::{
    AtomicOp, Base, Func, Function, Inst, InterpAt, MemAccess, MemoryKinds, Op, Payload, Resource, Shader,
    Space, Stage, Storage, SystemValue, Traits, Type, TypeNode, Value, Var, VarFlags,
};
use crate::semantics::{self, Eval};
use unwedge_base::entity::Entity;

/// What all subgroups of a run share.
pub(super) struct Context<'a> {
    pub options: &'a Options,
    pub memory: Memory<'a>,
    pub images: &'a mut dyn Images,
    pub report: Report,
}

/// Where a subgroup is in its dispatch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WavePosition {
    pub workgroup: [u32; 3],
    /// The workgroup as one number.
    pub workgroup_index: u64,
    pub workgroups: [u32; 3],
    /// The subgroup in its workgroup.
    pub subgroup: u32,
    pub subgroups: u32,
}

/// Why a subgroup stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its turn is over.
    Slice,
    /// It waits at a barrier.
    Barrier(Func, Inst),
    /// No invocation is left.
    End,
}

/// A subgroup.
pub(super) struct Wave<'s> {
    pub shader: &'s Shader,
    pub layout: &'s Layout,
    pub position: WavePosition,
    /// Invocations of a subgroup; some may not exist.
    pub width: usize,
    pub func: Func,
    pub function: &'s Function,
    pub next: Option<Inst>,
    pub active: Mask,
    /// Invocations that have not ended.
    pub alive: Mask,
    /// Invocations that ended by `terminate`.
    pub terminated: Mask,
    pub helper: Mask,
    pub open: Vec<Open>,
    pub regs: Registers,
    pub scratch: Vec<Scratch>,
    /// What invocations are given.
    pub inputs: Vec<InvocationInput>,
    /// Interface slots that invocations stored.
    pub output_slots: Vec<Slots>,
    /// Vertices that geometry invocations emitted.
    pub vertices: Vec<Vec<VertexOutput>>,
    /// Host memory that these take, at most.
    pub vertex_bytes: u64,
    /// Barriers of the subgroup by what they ordered, see [`Moment`].
    pub barriers: BarrierCounts,
    pub workgroup_barriers: BarrierCounts,
    /// What barriers without execution ordered since the last one of the workgroup.
    pub fenced: MemoryKinds,
    pub moved: Vec<(u64, bool)>,
    /// As the option of this name says.
    pub extremes_keep_denormals: [bool; 3],
}

/// Host memory that an emitted vertex takes beside its outputs, at most.
const VERTEX_BYTES: u64 = 256;

/// Host memory that an output variable takes in a vertex beside its lanes, at most.
const VARIABLE_BYTES: u64 = 128;

/// Host memory that a lane of an output variable takes in a vertex.
const LANE_BYTES: u64 = size_of::<Option<u64>>() as u64;

/// Bytes of the host that a subgroup takes; an error past the limit.
pub(super) fn cost(shader: &Shader, layout: &Layout, width: usize, limits: &Limits) -> Result<u64, RunError> {
    let scratch = Scratch::cost(shader.info.scratch_size.into()).saturating_mul(width as u64);
    let cost = Registers::bytes(layout.slots, width).saturating_add(scratch);
    if cost > limits.memory { Err(RunError::Memory(limits.memory)) } else { Ok(cost) }
}

/// Making it, and running it.
impl<'s> Wave<'s> {
    /// A subgroup at the start of the entry point. The caller has checked its cost.
    pub fn new(
        shader: &'s Shader,
        layout: &'s Layout,
        position: WavePosition,
        width: usize,
        inputs: Vec<InvocationInput>,
    ) -> Wave<'s> {
        let function = shader.entry();
        let alive = first(inputs.len());
        let helper = inputs.iter().enumerate().filter(|(_, input)| input.helper);
        let scratch = (0..inputs.len()).map(|_| Scratch::new(shader.info.scratch_size as usize));
        let mut wave = Wave {
            shader,
            layout,
            position,
            width,
            func: Func::new(0),
            function,
            next: function.first(function.body()),
            active: alive,
            alive,
            terminated: 0,
            helper: helper.fold(0, |mask, (invocation, _)| mask | 1 << invocation),
            open: Vec::new(),
            regs: Registers::new(layout.slots, width),
            scratch: scratch.collect(),
            output_slots: vec![Slots::new(); inputs.len()],
            vertices: vec![Vec::new(); inputs.len()],
            vertex_bytes: 0,
            inputs,
            barriers: BarrierCounts::default(),
            workgroup_barriers: BarrierCounts::default(),
            fenced: MemoryKinds::NONE,
            moved: Vec::new(),
            extremes_keep_denormals: [false; 3],
        };
        wave.take_inputs();
        wave
    }

    fn take_inputs(&mut self) {
        for (invocation, input) in self.inputs.iter().enumerate() {
            for (&var, lanes) in &input.variables {
                if self.shader.vars.get(var).is_none() {
                    continue;
                }
                let (start, len) = self.layout.var(var);
                for (slot, &bits) in (start..start + len).zip(lanes) {
                    self.regs.set(slot, invocation, bits.unwrap_or(0), bits.is_none());
                }
            }
        }
    }

    /// Executes up to a number of instructions.
    pub fn run(&mut self, cx: &mut Context, slice: u32) -> Result<Stop, RunError> {
        for _ in 0..slice {
            while self.active == 0 {
                if !self.merge() {
                    return Ok(Stop::End);
                }
            }
            let Some(inst) = self.next else {
                // The region of a valid function ends with a terminator.
                self.active = 0;
                continue;
            };
            cx.report.steps += 1;
            if cx.report.steps > cx.options.limits.steps {
                return Err(RunError::Steps(cx.options.limits.steps));
            }
            self.next = self.function.next(inst);
            if self.execute(cx, inst)? {
                return Ok(Stop::Barrier(self.func, inst));
            }
        }
        Ok(Stop::Slice)
    }

    /// One instruction. Whether the subgroup waits now.
    fn execute(&mut self, cx: &mut Context, inst: Inst) -> Result<bool, RunError> {
        let op = self.function.op(inst);
        if op.has(Traits::ELEMENTWISE) {
            self.elementwise(inst);
            return Ok(false);
        }
        match op {
            Op::Const | Op::Undef | Op::Vec | Op::Extract | Op::ExtractDyn | Op::InsertDyn | Op::Bitcast => {
                self.move_lanes(inst);
            }
            Op::Block | Op::If | Op::Loop | Op::Call => self.structured(cx, inst),
            Op::Break | Op::Continue | Op::Return | Op::Terminate | Op::Unreachable => {
                self.terminator(cx, inst);
            }
            Op::Barrier => return self.barrier(cx, inst),
            Op::SysVal => self.system_value(inst)?,
            Op::IsHelper => {
                let result = self.slot(self.function.result(inst));
                for invocation in invocations(self.active) {
                    self.regs.set(result, invocation, (self.helper >> invocation & 1) as u64, false);
                }
            }
            Op::Demote => self.helper |= self.active,
            Op::Clock => {
                let result = self.slot(self.function.result(inst));
                for invocation in invocations(self.active) {
                    self.regs.set(result, invocation, cx.report.steps & 0xffff_ffff, false);
                    self.regs.set(result + 1, invocation, cx.report.steps >> 32, false);
                }
            }
            Op::Descriptor | Op::BufferSize => self.descriptor(cx, inst)?,
            Op::LoadVar | Op::StoreVar | Op::InterpVar => self.variable(cx, inst)?,
            Op::Load | Op::Store | Op::Atomic | Op::AtomicCompare => self.access_memory(cx, inst)?,
            Op::EmitVertex | Op::EndPrimitive => self.vertex(cx, inst)?,
            Op::ImageSample
            | Op::ImageGather
            | Op::ImageQueryLod
            | Op::ImageFetch
            | Op::ImageLoad
            | Op::ImageStore
            | Op::ImageAtomic
            | Op::ImageAtomicCompare
            | Op::ImageSize
            | Op::ImageLevels
            | Op::ImageSamples => self.image(cx, inst)?,
            Op::LoadSlot => self.load_slot(cx, inst)?,
            Op::StoreSlot => self.store_slot(cx, inst)?,
            Op::Barycentric => self.barycentric(inst)?,
            Op::LoadInterpolated => self.load_interpolated(cx, inst)?,
            Op::AmdRegister
            | Op::AmdDescriptor
            | Op::AmdLoadScalar
            | Op::AmdLoadBuffer
            | Op::AmdStoreBuffer
            | Op::AmdExport
            | Op::AmdSendMessage
            | Op::AmdLaneBelow
            | Op::AmdMaskedCount
            | Op::AmdPermuteLane16
            | Op::AmdDot4
            | Op::AmdCube
            | Op::AmdIntersectRay
            | Op::AmdPackHalf
            | Op::AmdPackUnorm
            | Op::AmdPackSnorm
            | Op::AmdMulZero
            | Op::AmdSin
            | Op::AmdCos
            | Op::AmdLoadTyped
            | Op::AmdConstants
            | Op::AmdAtomicAddGds
            | Op::AmdAppendShared
            | Op::AmdConsumeShared => return Err(RunError::Unsupported(op)),
            _ => self.subgroup(cx, inst)?,
        }
        Ok(false)
    }

    /// First slot of a value of the current function.
    pub fn slot(&self, value: Value) -> usize {
        self.layout.value(self.func, value)
    }

    /// Whether any lane of a value is poison.
    pub fn is_poison(&self, value: Value, invocation: usize) -> bool {
        let slot = self.slot(value);
        let lanes = usize::from(self.function.ty(value).lanes);
        (slot..slot + lanes).any(|slot| self.regs.is_poison(slot, invocation))
    }

    pub fn report(
        &self,
        cx: &mut Context,
        inst: Inst,
        violation: Violation,
        invocation: usize,
        address: u64,
    ) {
        cx.report.add(Finding {
            violation,
            func: self.func,
            inst,
            workgroup: self.position.workgroup,
            invocation: self.number(invocation),
            address,
            count: 1,
        });
    }

    /// An invocation's number in its workgroup.
    fn number(&self, invocation: usize) -> u32 {
        self.position.subgroup * self.width as u32 + invocation as u32
    }
}

/// Values.
impl Wave<'_> {
    /// The environment of an operation, by that of others.
    pub(super) fn environment(&self, op: Op, env: Eval) -> Eval {
        match op {
            Op::FMin | Op::FMax => env.keeping_denormals(self.extremes_keep_denormals),
            _ => env,
        }
    }

    /// The environment of an atomic operation.
    pub(super) fn atomic_environment(&self, op: AtomicOp, base: Base) -> Eval {
        let env = Eval::new(base, &self.shader.info);
        semantics::atomic_op(op).map_or(env, |op| self.environment(op, env))
    }

    fn elementwise(&mut self, inst: Inst) {
        let (function, op) = (self.function, self.function.op(inst));
        let env = self.environment(op, Eval::of(function, inst, &self.shader.info));
        let args = function.args(inst);
        let result = function.result(inst);
        let to = self.slot(result);
        let mut slots = [0; 4];
        for (slot, &arg) in slots.iter_mut().zip(args) {
            *slot = self.slot(arg);
        }
        let count = args.len().min(4);
        for lane in 0..usize::from(function.ty(result).lanes) {
            for invocation in invocations(self.active) {
                let mut operands = [0; 4];
                let mut poison = false;
                for (operand, &slot) in operands.iter_mut().zip(&slots[..count]) {
                    *operand = self.regs.bits(slot + lane, invocation);
                    poison |= self.regs.is_poison(slot + lane, invocation);
                }
                if op == Op::Select {
                    // What is not selected does not matter.
                    let selected = if operands[0] & 1 != 0 { slots[1] } else { slots[2] };
                    poison = self.regs.is_poison(slots[0] + lane, invocation)
                        || self.regs.is_poison(selected + lane, invocation);
                }
                let operands = &operands[..count];
                let bits = semantics::eval(op, &env, operands);
                poison |= bits.is_none() || !semantics::is_defined(op, &env, operands);
                self.regs.set(to + lane, invocation, bits.unwrap_or(0), poison);
            }
        }
    }

    fn move_slot(&mut self, from: usize, to: usize, invocation: usize) {
        let (bits, poison) = (self.regs.bits(from, invocation), self.regs.is_poison(from, invocation));
        self.regs.set(to, invocation, bits, poison);
    }

    fn move_lanes(&mut self, inst: Inst) {
        let (function, args) = (self.function, self.function.args(inst));
        let result = function.result(inst);
        let (ty, to) = (function.ty(result), self.slot(result));
        let from: Vec<usize> = args.iter().map(|&arg| self.slot(arg)).collect();
        for invocation in invocations(self.active) {
            match (function.op(inst), function.payload(inst)) {
                (Op::Const, Payload::Const(bits)) => self.regs.set(to, invocation, bits, false),
                (Op::Vec, _) => {
                    for (lane, &from) in from.iter().enumerate() {
                        self.move_slot(from, to + lane, invocation);
                    }
                }
                (Op::Extract, Payload::Lane(lane)) => {
                    self.move_slot(from[0] + usize::from(lane), to, invocation);
                }
                (Op::ExtractDyn, _) => {
                    let lanes = function.ty(args[0]).lanes;
                    match self.regs.defined(from[1], invocation).filter(|lane| *lane < lanes.into()) {
                        Some(lane) => self.move_slot(from[0] + lane as usize, to, invocation),
                        None => self.regs.set(to, invocation, 0, true),
                    }
                }
                (Op::InsertDyn, _) => {
                    let chosen =
                        self.regs.defined(from[2], invocation).filter(|lane| *lane < ty.lanes.into());
                    for lane in 0..usize::from(ty.lanes) {
                        match chosen {
                            Some(chosen) if chosen == lane as u64 => {
                                self.move_slot(from[1], to + lane, invocation);
                            }
                            Some(_) => self.move_slot(from[0] + lane, to + lane, invocation),
                            None => self.regs.set(to + lane, invocation, 0, true),
                        }
                    }
                }
                (Op::Bitcast, _) => self.bitcast(function.ty(args[0]), from[0], ty, to, invocation),
                _ => {
                    for lane in 0..usize::from(ty.lanes) {
                        self.regs.set(to + lane, invocation, 0, true);
                    }
                }
            }
        }
    }

    /// Poison in any bit of a lane makes the whole lane poison.
    fn bitcast(&mut self, source: Type, from: usize, ty: Type, to: usize, invocation: usize) {
        let (lanes, out) = (usize::from(source.lanes), usize::from(ty.lanes));
        let mut bits = [0; Type::MAX_LANES];
        for (lane, bits) in bits.iter_mut().enumerate().take(lanes) {
            *bits = self.regs.bits(from + lane, invocation);
        }
        let result = semantics::bitcast(source.base, ty, &bits[..lanes]);
        for lane in 0..out {
            // Lanes of either side that overlap: one is a multiple of the other.
            let first = lane * lanes / out;
            let last = ((lane + 1) * lanes).div_ceil(out).max(first + 1);
            let poison = (first..last).any(|lane| self.regs.is_poison(from + lane, invocation));
            let bits = result.as_ref().and_then(|result| result.get(lane).copied());
            self.regs.set(to + lane, invocation, bits.unwrap_or(0), poison || bits.is_none());
        }
    }

    fn system_value(&mut self, inst: Inst) -> Result<(), RunError> {
        let Payload::SysVal(value) = self.function.payload(inst) else { return Ok(()) };
        let result = self.function.result(inst);
        let to = self.slot(result);
        let mask = self.function.mask(result);
        for invocation in invocations(self.active) {
            let bits = self.given(value, invocation)?;
            for (lane, &bits) in bits.iter().enumerate().take(self.function.ty(result).lanes.into()) {
                self.regs.set(to + lane, invocation, u64::from(bits) & mask, false);
            }
        }
        Ok(())
    }

    /// A system value of an invocation.
    pub(super) fn given(&self, value: SystemValue, invocation: usize) -> Result<[u32; 4], RunError> {
        self.system_value_bits(value, invocation).ok_or(RunError::MissingSystemValue(value))
    }

    fn system_value_bits(&self, value: SystemValue, invocation: usize) -> Option<[u32; 4]> {
        let input = self.inputs.get(invocation)?;
        if let Some(&given) = input.system_values.get(&value) {
            return Some(given);
        }
        let size = self.shader.info.workgroup_size;
        let three = |[x, y, z]: [u32; 3]| [x, y, z, 0];
        let one = |number: u32| [number, 0, 0, 0];
        let ge = Mask::MAX << invocation;
        let exist = first(self.width);
        let mask = |mask: Mask| [0, 32, 64, 96].map(|shift| (mask >> shift) as u32);
        Some(match value {
            SystemValue::NumWorkgroups => three(self.position.workgroups),
            SystemValue::WorkgroupId => three(self.position.workgroup),
            SystemValue::WorkgroupSize => three(size),
            SystemValue::LocalInvocationId => three(input.local_id?),
            SystemValue::LocalInvocationIndex => {
                let [x, y, z] = input.local_id?;
                one(z.wrapping_mul(size[1]).wrapping_add(y).wrapping_mul(size[0]).wrapping_add(x))
            }
            SystemValue::GlobalInvocationId => {
                let local = input.local_id?;
                let global = |axis: usize| {
                    self.position.workgroup[axis].wrapping_mul(size[axis]).wrapping_add(local[axis])
                };
                [global(0), global(1), global(2), 0]
            }
            SystemValue::SubgroupSize => one(self.width as u32),
            SystemValue::SubgroupInvocation => one(invocation as u32),
            SystemValue::NumSubgroups => one(self.position.subgroups),
            SystemValue::SubgroupId => one(self.position.subgroup),
            SystemValue::SubgroupEqMask => mask(1 << invocation),
            SystemValue::SubgroupGeMask => mask(ge & exist),
            SystemValue::SubgroupGtMask => mask((ge << 1) & exist),
            SystemValue::SubgroupLeMask => mask(!(ge << 1)),
            SystemValue::SubgroupLtMask => mask(!ge),
            SystemValue::HelperInvocation => one(u32::from(input.helper)),
            // The interpreter has no device groups, multiview or layers.
            SystemValue::DeviceIndex | SystemValue::ViewIndex | SystemValue::Layer => one(0),
            _ => return None,
        })
    }
}

/// Variables.
impl Wave<'_> {
    fn variable(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let (function, op) = (self.function, self.function.op(inst));
        let args = function.args(inst);
        let (var, mask, path) = match function.payload(inst) {
            Payload::Var(var, _) if op == Op::LoadVar => (var, 0, args),
            Payload::Var(var, mask) => (var, mask, &args[1..]),
            // What the caller gives is interpolated already, at the place that the variable says.
            Payload::Interp(var, InterpAt::Pixel) if !self.is_interpolated_elsewhere(var) => (var, 0, args),
            Payload::Interp(var, at) => return self.interpolated(cx, inst, var, at),
            _ => return Err(RunError::Unsupported(op)),
        };
        let storage = self.shader.vars[var].storage;
        // The invocations of a patch share their outputs.
        let shared = storage == Storage::Output && self.shader.info.stage == Stage::TessControl;
        for invocation in invocations(self.active) {
            let element = self.element(cx, inst, var, path, invocation);
            let owner = if shared { 0 } else { invocation };
            if op != Op::StoreVar {
                let result = function.result(inst);
                for lane in 0..usize::from(function.ty(result).lanes) {
                    let bits = element.and_then(|slot| self.regs.defined(slot + lane, owner));
                    let to = self.slot(result) + lane;
                    self.regs.set(to, invocation, bits.unwrap_or(0), bits.is_none());
                }
                continue;
            }
            let Some(slot) = element else { continue };
            if storage == Storage::Output && self.helper >> invocation & 1 != 0 {
                continue;
            }
            let from = self.slot(args[0]);
            for lane in 0..usize::from(function.ty(args[0]).lanes) {
                if mask >> lane & 1 != 0 {
                    let bits = self.regs.defined(from + lane, invocation);
                    self.regs.set(slot + lane, owner, bits.unwrap_or(0), bits.is_none());
                }
            }
        }
        Ok(())
    }

    /// Whether a variable is interpolated at the centroid or sample unless an instruction says otherwise.
    fn is_interpolated_elsewhere(&self, var: Var) -> bool {
        self.shader.vars[var].flags.any(VarFlags::CENTROID.or(VarFlags::SAMPLE))
    }

    /// An input interpolated elsewhere than the variable says, as the caller gives it. Other points are not known.
    fn interpolated(&mut self, cx: &mut Context, inst: Inst, var: Var, at: InterpAt) -> Result<(), RunError> {
        if at.has_operand() {
            return Err(RunError::Interpolation(at));
        }
        let (function, result) = (self.function, self.function.result(inst));
        let start = self.layout.var(var).0;
        for invocation in invocations(self.active) {
            let element = self.element(cx, inst, var, function.args(inst), invocation);
            let given = self.inputs.get(invocation).and_then(|input| input.interpolated.get(&(var, at)));
            let given = given.ok_or(RunError::Interpolation(at))?;
            for lane in 0..usize::from(function.ty(result).lanes) {
                let bits = element.and_then(|slot| given.get(slot - start + lane).copied().flatten());
                let to = self.slot(result) + lane;
                self.regs.set(to, invocation, bits.unwrap_or(0), bits.is_none());
            }
        }
        Ok(())
    }

    /// First slot of the leaf that a path leads to.
    fn element(
        &self,
        cx: &mut Context,
        inst: Inst,
        var: Var,
        path: &[Value],
        invocation: usize,
    ) -> Option<usize> {
        let mut slot = self.layout.var(var).0 as u64;
        let mut ty = self.shader.vars[var].ty;
        for &index in path {
            let Some(index) = self.regs.defined(self.slot(index), invocation) else {
                self.report(cx, inst, Violation::PoisonAddress, invocation, 0);
                return None;
            };
            match &self.shader.types[ty] {
                TypeNode::Leaf(_) => return None,
                TypeNode::Array { element, len } => {
                    if index >= u64::from(*len) {
                        self.report(cx, inst, Violation::IndexOutOfBounds, invocation, index);
                        return None;
                    }
                    slot += index * self.layout.size(*element);
                    ty = *element;
                }
                TypeNode::Struct(members) => {
                    let before = members.get(..index as usize)?;
                    slot += before.iter().map(|&member| self.layout.size(member)).sum::<u64>();
                    ty = *members.get(index as usize)?;
                }
            }
        }
        Some(slot as usize)
    }

    /// Host memory that the outputs of an invocation take in a vertex, at most.
    fn output_bytes(&self, invocation: usize) -> u64 {
        let outputs = self.shader.vars.iter().filter(|(_, data)| data.storage == Storage::Output);
        let variables: u64 = outputs
            .map(|(var, _)| VARIABLE_BYTES + self.layout.var(var).1 as u64 * LANE_BYTES)
            .fold(0, u64::saturating_add);
        variables.saturating_add(self.output_slots[invocation].len() as u64 * SLOT_BYTES)
    }

    fn vertex(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let Payload::Stream(stream) = self.function.payload(inst) else { return Ok(()) };
        for invocation in invocations(self.active) {
            let ends = self.function.op(inst) == Op::EndPrimitive;
            let outputs = if ends { 0 } else { self.output_bytes(invocation) };
            self.vertex_bytes = self.vertex_bytes.saturating_add(VERTEX_BYTES).saturating_add(outputs);
            if self.vertex_bytes > cx.options.limits.memory {
                return Err(RunError::Memory(cx.options.limits.memory));
            }
            if ends {
                self.vertices[invocation].push(VertexOutput::EndPrimitive { stream });
                continue;
            }
            let variables = self.outputs(invocation);
            // Outputs are undefined after a vertex.
            let slots = std::mem::take(&mut self.output_slots[invocation]);
            self.vertices[invocation].push(VertexOutput::Vertex { stream, variables, slots });
            for (var, data) in self.shader.vars.iter() {
                if data.storage == Storage::Output {
                    let (start, len) = self.layout.var(var);
                    self.regs.make_poison(start..start + len, 1 << invocation);
                }
            }
        }
        Ok(())
    }
}

/// Memory.
impl Wave<'_> {
    fn descriptor(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let (function, arg) = (self.function, self.function.args(inst)[0]);
        let to = self.slot(function.result(inst));
        for invocation in invocations(self.active) {
            if let Payload::Resource(resource, _) = function.payload(inst) {
                let index = self.regs.defined(self.slot(arg), invocation);
                let handle = (resource.index() as u64) << 32 | index.unwrap_or(0) & 0xffff_ffff;
                self.regs.set(to, invocation, handle, index.is_none());
                continue;
            }
            let size = self.buffer(cx, inst, arg, invocation)?.map(|view| view.size.min(u32::MAX.into()));
            self.regs.set(to, invocation, size.unwrap_or(0), size.is_none());
        }
        Ok(())
    }

    /// The binding of a descriptor.
    pub(super) fn binding(
        &self,
        cx: &mut Context,
        inst: Inst,
        descriptor: Value,
        invocation: usize,
    ) -> Result<Option<BindingPoint>, RunError> {
        if self.function.ty(descriptor).base != Base::Handle {
            // Words of a descriptor are a machine's.
            return Err(RunError::Unsupported(self.function.op(inst)));
        }
        let Some(handle) = self.regs.defined(self.slot(descriptor), invocation) else {
            self.report(cx, inst, Violation::PoisonAddress, invocation, 0);
            return Ok(None);
        };
        let (resource, index) = (Resource::new((handle >> 32) as usize), handle as u32);
        let point = self.shader.resources.get(resource).and_then(|data| {
            let exists = data.count == 0 || index < data.count;
            exists.then_some(BindingPoint { set: data.set, binding: data.binding, index })
        });
        if point.is_none() {
            self.report(cx, inst, Violation::Unbound, invocation, index.into());
        }
        Ok(point)
    }

    fn buffer(
        &self,
        cx: &mut Context,
        inst: Inst,
        descriptor: Value,
        invocation: usize,
    ) -> Result<Option<BufferView>, RunError> {
        let Some(point) = self.binding(cx, inst, descriptor, invocation)? else { return Ok(None) };
        let view = cx.memory.bindings.buffers.get(&point).copied();
        if view.is_none() {
            self.report(cx, inst, Violation::Unbound, invocation, point.index.into());
        }
        Ok(view)
    }

    fn access_memory(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let (function, op) = (self.function, self.function.op(inst));
        let args = function.args(inst);
        let (Payload::Mem(mem) | Payload::Atomic(_, mem)) = function.payload(inst) else { return Ok(()) };
        let fixed = op.row().operands.len();
        for invocation in invocations(self.active) {
            let at = self.address(cx, inst, mem, &args[fixed..], invocation)?;
            match op {
                Op::Load => self.load(cx, inst, at, invocation),
                Op::Store => self.store(cx, inst, at, invocation),
                _ => self.atomic(cx, inst, at, invocation),
            }
        }
        Ok(())
    }

    /// Where an access goes; `None` where it goes nowhere, which is reported.
    fn address(
        &self,
        cx: &mut Context,
        inst: Inst,
        mem: MemAccess,
        operands: &[Value],
        invocation: usize,
    ) -> Result<Option<MemoryAddress>, RunError> {
        let Some((&address, descriptor)) = operands.split_last() else { return Ok(None) };
        let target = match (mem.space, descriptor.first()) {
            (Space::Uniform | Space::Storage, Some(&descriptor)) => {
                let Some(view) = self.buffer(cx, inst, descriptor, invocation)? else { return Ok(None) };
                Some(Target::Buffer(view))
            }
            (Space::Push, _) => Some(Target::Push),
            (Space::Shared, _) => Some(Target::Shared),
            (Space::Global, _) => Some(Target::Global),
            _ => None,
        };
        let Some(address) = self.regs.defined(self.slot(address), invocation) else {
            self.report(cx, inst, Violation::PoisonAddress, invocation, 0);
            return Ok(None);
        };
        if address & ((1 << mem.align.min(63)) - 1) != 0 {
            self.report(cx, inst, Violation::Misaligned, invocation, address);
        }
        let atomic = mem.access.has(crate::ir::Access::ATOMIC);
        Ok(Some(MemoryAddress { space: mem.space, target, address, atomic }))
    }

    pub(super) fn moment(&self, invocation: usize) -> Moment {
        Moment {
            workgroup: self.position.workgroup_index,
            subgroup: self.position.subgroup,
            invocation: self.number(invocation),
            workgroup_barriers: self.workgroup_barriers,
            subgroup_barriers: self.barriers,
        }
    }

    fn find_races(
        &self,
        cx: &mut Context,
        inst: Inst,
        at: MemoryAddress,
        len: usize,
        writes: bool,
        invocation: usize,
    ) {
        let Some(target) = at.target else { return };
        let mode = AccessMode { writes, atomic: at.atomic };
        let touched = Touched { target, address: at.address, len };
        if cx.memory.races(touched, mode, self.moment(invocation), &mut cx.report) {
            self.report(cx, inst, Violation::Race(at.space), invocation, at.address);
        }
    }

    fn load(&mut self, cx: &mut Context, inst: Inst, at: Option<MemoryAddress>, invocation: usize) {
        let result = self.function.result(inst);
        let (ty, to) = (self.function.ty(result), self.slot(result));
        let bytes = ty.base.bytes() as usize;
        if let Some(at) = at {
            self.find_races(cx, inst, at, bytes * usize::from(ty.lanes), false, invocation);
        }
        for lane in 0..usize::from(ty.lanes) {
            let lane_at = at.map(|at| at.lane(lane, bytes));
            let bits = lane_at.and_then(|at| self.load_bits(cx, inst, at, bytes, invocation));
            self.regs.set(to + lane, invocation, bits.unwrap_or(0), bits.is_none());
        }
    }

    /// `None` is poison.
    fn load_bits(
        &self,
        cx: &mut Context,
        inst: Inst,
        at: MemoryAddress,
        bytes: usize,
        invocation: usize,
    ) -> Option<u64> {
        let loaded = match at.target {
            Some(target) => cx.memory.load(target, at.address, bytes),
            None => self.scratch.get(invocation)?.load(at.address, bytes),
        };
        match loaded {
            Loaded::Bytes(bytes) => Some(u64::from_le_bytes(bytes)),
            Loaded::Undefined => None,
            Loaded::Outside => {
                self.report(cx, inst, Violation::OutOfBounds(at.space), invocation, at.address);
                cx.options.robust.then_some(0)
            }
        }
    }

    fn store_bits(
        &mut self,
        cx: &mut Context,
        inst: Inst,
        at: MemoryAddress,
        bits: u64,
        bytes: usize,
        invocation: usize,
    ) {
        let stored = &bits.to_le_bytes()[..bytes.min(MAX_BYTES)];
        let inside = match at.target {
            Some(target) => cx.memory.store(target, at.address, stored),
            None => self.scratch.get_mut(invocation).is_some_and(|scratch| scratch.store(at.address, stored)),
        };
        if !inside {
            self.report(cx, inst, Violation::OutOfBounds(at.space), invocation, at.address);
        }
    }

    /// Makes bytes of scratch memory undefined again.
    fn make_undefined(
        &mut self,
        cx: &mut Context,
        inst: Inst,
        at: MemoryAddress,
        len: usize,
        invocation: usize,
    ) {
        let scratch = self.scratch.get_mut(invocation);
        if !scratch.is_some_and(|scratch| scratch.make_undefined(at.address, len)) {
            self.report(cx, inst, Violation::OutOfBounds(at.space), invocation, at.address);
        }
    }

    fn store(&mut self, cx: &mut Context, inst: Inst, at: Option<MemoryAddress>, invocation: usize) {
        let value = self.function.args(inst)[0];
        let (ty, from) = (self.function.ty(value), self.slot(value));
        let Some(at) = at else { return };
        if self.helper >> invocation & 1 != 0 && at.target.is_some() {
            return;
        }
        // Only the invocation itself reads its scratch memory, so poison there is reported where it is used.
        if at.target.is_some() && self.is_poison(value, invocation) {
            self.report(cx, inst, Violation::PoisonStore, invocation, at.address);
        }
        let bytes = ty.base.bytes() as usize;
        self.find_races(cx, inst, at, bytes * usize::from(ty.lanes), true, invocation);
        for lane in 0..usize::from(ty.lanes) {
            if at.target.is_none() && self.regs.defined(from + lane, invocation).is_none() {
                self.make_undefined(cx, inst, at.lane(lane, bytes), bytes, invocation);
                continue;
            }
            let bits = self.regs.bits(from + lane, invocation);
            self.store_bits(cx, inst, at.lane(lane, bytes), bits, bytes, invocation);
        }
    }

    fn atomic(&mut self, cx: &mut Context, inst: Inst, at: Option<MemoryAddress>, invocation: usize) {
        let (function, args) = (self.function, self.function.args(inst));
        let ty = function.ty(args[0]);
        let result: Vec<usize> = function.results(inst).iter().map(|&value| self.slot(value)).collect();
        let compared = function.op(inst) == Op::AtomicCompare;
        let at = at.filter(|_| self.helper >> invocation & 1 == 0);
        let Some(at) = at.map(|at| MemoryAddress { atomic: true, ..at }) else {
            for slot in result {
                self.regs.set(slot, invocation, 0, true);
            }
            return;
        };
        let bytes = ty.base.bytes() as usize;
        self.find_races(cx, inst, at, bytes, true, invocation);
        let old = self.load_bits(cx, inst, at, bytes, invocation);
        let operand = self.regs.bits(self.slot(args[0]), invocation);
        let known = old.unwrap_or(0);
        let new = match function.payload(inst) {
            _ if compared => {
                if known == self.regs.bits(self.slot(args[1]), invocation) {
                    operand
                } else {
                    known
                }
            }
            Payload::Atomic(op, _) => {
                semantics::atomic(op, &self.atomic_environment(op, ty.base), known, operand)
            }
            _ => known,
        };
        let operands = if compared { &args[..2] } else { &args[..1] };
        let replaces = matches!(function.payload(inst), Payload::Atomic(AtomicOp::Exchange, _));
        let poison = operands.iter().any(|&value| self.is_poison(value, invocation))
            || old.is_none() && (compared || !replaces);
        if poison {
            self.report(cx, inst, Violation::PoisonStore, invocation, at.address);
        }
        self.store_bits(cx, inst, at, new, bytes, invocation);
        for slot in result {
            self.regs.set(slot, invocation, known, old.is_none());
        }
    }
}

/// The first byte of an access.
#[derive(Debug, Clone, Copy)]
struct MemoryAddress {
    space: Space,
    /// `None` is the scratch memory of the invocation.
    target: Option<Target>,
    address: u64,
    atomic: bool,
}

impl MemoryAddress {
    fn lane(self, lane: usize, bytes: usize) -> MemoryAddress {
        MemoryAddress { address: self.address.wrapping_add((lane * bytes) as u64), ..self }
    }
}
