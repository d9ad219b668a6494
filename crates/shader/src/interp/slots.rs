//! Interface slots: four lanes of 32 bits between two stages, which the caller gives and takes.
//!
//! Never: interpolation of attributes by anything but the barycentric coordinates that the caller gives.

use super::registers::invocations;
use super::wave::{Context, Wave};
use super::{RunError, Violation};
use crate::ir::{Base, Inst, Op, Payload, SlotAccess, SlotDir, Stage};
use crate::semantics::{self, Eval};
use std::collections::BTreeMap;

/// An interface slot of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InterfaceSlot {
    /// The slot, with the offset of the access.
    pub slot: u32,
    /// The vertex of the primitive; 0 where an access has none. Inputs that a fragment shader interpolates are of vertices 0 to 2.
    pub vertex: u32,
    /// Whether it belongs to the patch or primitive.
    pub patch: bool,
    /// The second source of blending, or the stream.
    pub index: u8,
}

/// The lanes of slots. `None` is undefined, and so is an absent slot.
pub type Slots = BTreeMap<InterfaceSlot, [Option<u32>; 4]>;

/// Host memory that a slot takes, at most.
pub(super) const SLOT_BYTES: u64 = 128;

impl Wave<'_> {
    fn slot_access(&self, inst: Inst) -> Result<SlotAccess, RunError> {
        match self.function.payload(inst) {
            Payload::Slot(access) => Ok(access),
            _ => Err(RunError::Unsupported(self.function.op(inst))),
        }
    }

    /// The slot of an access whose operands from `first` on are the vertex, if it has one, and the offset. `None` if they are poison or
    /// the offset is past the slots of the access, which is reported.
    fn interface_slot(
        &self,
        cx: &mut Context,
        inst: Inst,
        access: SlotAccess,
        first: usize,
        invocation: usize,
    ) -> Option<InterfaceSlot> {
        let number = |at: usize| {
            let value = *self.function.args(inst).get(at)?;
            Some(self.regs.defined(self.slot(value), invocation)? as u32)
        };
        let vertex = if access.vertex { number(first) } else { Some(0) };
        let Some((vertex, offset)) = vertex.zip(number(first + usize::from(access.vertex))) else {
            self.report(cx, inst, Violation::PoisonAddress, invocation, 0);
            return None;
        };
        if offset >= access.count.into() {
            self.report(cx, inst, Violation::IndexOutOfBounds, invocation, offset.into());
            return None;
        }
        let slot = u32::from(access.slot).checked_add(offset)?;
        Some(InterfaceSlot { slot, vertex, patch: access.patch, index: access.index })
    }

    /// The invocation that has the outputs of an invocation: those of a patch share them.
    fn output_owner(&self, invocation: usize) -> usize {
        if self.shader.info.stage == Stage::TessControl { 0 } else { invocation }
    }

    /// The slots that an access reads.
    fn slots_of(&self, access: SlotAccess, invocation: usize) -> Option<&Slots> {
        match access.dir {
            SlotDir::Input => Some(&self.inputs.get(invocation)?.slots),
            SlotDir::Output => self.output_slots.get(self.output_owner(invocation)),
        }
    }

    /// Lanes of a result, from the first lane of an access on: a lane of 64 bits is two lanes of the slot.
    fn set_lanes(&mut self, inst: Inst, invocation: usize, lanes: impl Fn(usize) -> Option<u32>) {
        let result = self.function.result(inst);
        let (ty, to) = (self.function.ty(result), self.slot(result));
        let mask = self.function.mask(result);
        for lane in 0..usize::from(ty.lanes) {
            let bits = if ty.base == Base::B64 {
                let halves = lanes(lane * 2).zip(lanes(lane * 2 + 1));
                halves.map(|(low, high)| u64::from(high) << 32 | u64::from(low))
            } else {
                lanes(lane).map(u64::from)
            };
            self.regs.set(to + lane, invocation, bits.unwrap_or(0) & mask, bits.is_none());
        }
    }

    pub(super) fn load_slot(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let access = self.slot_access(inst)?;
        for invocation in invocations(self.active) {
            let slot = self.interface_slot(cx, inst, access, 0, invocation);
            let slots = self.slots_of(access, invocation);
            let lanes = slot.zip(slots).and_then(|(slot, slots)| slots.get(&slot).copied());
            let first = usize::from(access.component);
            self.set_lanes(inst, invocation, |lane| *lanes?.get(first + lane)?);
        }
        Ok(())
    }

    pub(super) fn store_slot(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let access = self.slot_access(inst)?;
        let value = self.function.args(inst)[0];
        let (ty, from) = (self.function.ty(value), self.slot(value));
        for invocation in invocations(self.active) {
            if self.helper >> invocation & 1 != 0 {
                continue;
            }
            let Some(slot) = self.interface_slot(cx, inst, access, 1, invocation) else { continue };
            let owner = self.output_owner(invocation);
            let mut lanes = Vec::new();
            for lane in 0..usize::from(ty.lanes) {
                let bits = self.regs.defined(from + lane, invocation);
                lanes.push(bits.map(|bits| bits as u32));
                if ty.base == Base::B64 {
                    lanes.push(bits.map(|bits| (bits >> 32) as u32));
                }
            }
            let Some(slots) = self.output_slots.get_mut(owner) else { continue };
            if slots.len() as u64 >= cx.options.limits.memory / SLOT_BYTES / self.width as u64 {
                return Err(RunError::Memory(cx.options.limits.memory));
            }
            let stored = slots.entry(slot).or_default();
            for (stored, lane) in stored.iter_mut().skip(access.component.into()).zip(lanes) {
                *stored = lane;
            }
        }
        Ok(())
    }

    pub(super) fn barycentric(&mut self, inst: Inst) -> Result<(), RunError> {
        let op = self.function.op(inst);
        let Payload::Bary(at, linear) = self.function.payload(inst) else {
            return Err(RunError::Unsupported(op));
        };
        if at.has_operand() {
            return Err(RunError::Interpolation(at));
        }
        for invocation in invocations(self.active) {
            let given = self.inputs.get(invocation).and_then(|input| input.barycentrics.get(&(at, linear)));
            let given = *given.ok_or(RunError::Interpolation(at))?;
            self.set_lanes(inst, invocation, |lane| given.get(lane).copied());
        }
        Ok(())
    }

    pub(super) fn load_interpolated(&mut self, cx: &mut Context, inst: Inst) -> Result<(), RunError> {
        let access = self.slot_access(inst)?;
        let base = self.function.ty(self.function.result(inst)).base;
        let env = Eval::new(Base::B32, &self.shader.info);
        let eval = |op: Op, args: &[u64]| semantics::eval(op, &env, args);
        // Lanes of 16 bits are interpolated in 32.
        let (wide, narrow) =
            (Eval { source: base, ..env }, Eval { source: Base::B32, ..Eval::new(base, &self.shader.info) });
        let weights = self.slot(self.function.args(inst)[0]);
        for invocation in invocations(self.active) {
            let slot = self.interface_slot(cx, inst, SlotAccess { vertex: false, ..access }, 1, invocation);
            let slots = self.slots_of(access, invocation);
            let vertex = |vertex: u32| slots?.get(&InterfaceSlot { vertex, ..slot? }).copied();
            let vertices = [vertex(0), vertex(1), vertex(2)];
            let weights = [weights, weights + 1].map(|slot| self.regs.defined(slot, invocation));
            let first = usize::from(access.component);
            self.set_lanes(inst, invocation, |lane| {
                let lane = |vertex: usize| {
                    let bits = u64::from((*vertices[vertex]?.get(first + lane)?)?);
                    if base == Base::B16 {
                        semantics::eval(Op::F2F, &wide, &[bits & 0xffff])
                    } else {
                        Some(bits)
                    }
                };
                let (start, mut sum) = (lane(0)?, lane(0)?);
                for (vertex, weight) in [(1, weights[0]?), (2, weights[1]?)] {
                    let difference = eval(Op::FSub, &[lane(vertex)?, start])?;
                    sum = eval(Op::FFma, &[weight, difference, sum])?;
                }
                if base == Base::B16 {
                    sum = semantics::eval(Op::F2F, &narrow, &[sum])?;
                }
                Some(sum as u32)
            });
        }
        Ok(())
    }
}
