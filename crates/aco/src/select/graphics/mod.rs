//! Selection for graphics stages only: inputs, interpolation, exports, helpers. See [`crate::abi`] for the initial contents of registers.

mod attributes;
mod captured;
mod captures;
mod culling;
mod emitted;
mod exports;
mod geometry;
mod pixel;
mod primitive;
mod slots;
mod tessellation;
mod vertex;

use super::{Selected, Selector};
use crate::ir::{Operand, Pseudo, RegClass};
use std::collections::BTreeMap;
use unwedge_shader::ir::{Base, Inst, Op, Payload, SlotAccess, SlotDir, Stage};

/// Components of a slot that were stored.
pub(super) type SlotValues = [Option<Operand>; 4];

/// By slot and index: what is exported at the end.
pub(super) type OutputValues = BTreeMap<(u16, u8), SlotValues>;

impl Selector<'_> {
    /// Selects an operation that only graphics stages have; `None` if it is another one.
    pub(super) fn graphics(&mut self, inst: Inst) -> Option<Selected<()>> {
        let func = self.func;
        let stage = self.shader.info.stage;
        if stage == Stage::Compute {
            return None;
        }
        Some(match (func.op(inst), func.payload(inst)) {
            (Op::LoadSlot, Payload::Slot(access))
                if stage != Stage::TessControl && access.dir == SlotDir::Output && !self.stores(&access) =>
            {
                let lanes = u32::from(func.ty(func.result(inst)).lanes);
                self.define_slot(inst, None, lanes);
                Ok(())
            }
            (Op::LoadSlot, Payload::Slot(access))
                if stage == Stage::Vertex && !self.interface.inputs.vertex.is_empty() =>
            {
                self.load_copied(inst, &access)
            }
            (Op::LoadSlot, Payload::Slot(access))
                if stage == Stage::Vertex && access.dir == SlotDir::Input =>
            {
                self.load_attribute(inst, &access)
            }
            (Op::LoadSlot, Payload::Slot(access)) if stage == Stage::Fragment => {
                self.load_flat(inst, &access)
            }
            (Op::LoadSlot, Payload::Slot(access))
                if matches!(stage, Stage::TessControl | Stage::TessEval) =>
            {
                self.load_patch(inst, &access)
            }
            (Op::LoadSlot, Payload::Slot(access)) if stage == Stage::Geometry => {
                self.load_vertex(inst, &access)
            }
            (Op::StoreSlot, Payload::Slot(access)) if stage == Stage::TessControl => {
                self.store_patch(inst, &access)
            }
            (Op::StoreSlot, Payload::Slot(access)) if stage == Stage::Geometry => {
                self.store_emitted(inst, &access)
            }
            (Op::EmitVertex | Op::EndPrimitive, Payload::Stream(stream)) if stage == Stage::Geometry => {
                self.geometry_message(stream, func.op(inst) == Op::EndPrimitive);
                Ok(())
            }
            (Op::StoreSlot, Payload::Slot(access)) => self.store_output(inst, &access),
            _ if stage != Stage::Fragment => return None,
            (Op::LoadInterpolated, Payload::Slot(access)) => self.load_interpolated(inst, &access),
            (Op::Barycentric, Payload::Bary(at, linear)) => self.barycentric(inst, at, linear),
            (Op::Demote, _) => {
                self.pseudo(Pseudo::DemoteToHelper, &[], &[]);
                Ok(())
            }
            (Op::IsHelper, _) => {
                let mask = self.program.lane_mask();
                let helpers = self.make(Pseudo::IsHelper, mask, &[Operand::c32(0)]);
                self.define(func.result(inst), &[helpers]);
                Ok(())
            }
            _ => return None,
        })
    }

    /// The number of the slot of an access.
    fn slot_of(&self, inst: Inst, access: &SlotAccess, offset: usize) -> Selected<u16> {
        let func = self.func;
        let offset = func.args(inst).get(offset).and_then(|value| func.const_bits(*value));
        match offset {
            Some(offset) if offset < u64::from(access.count) => Ok(access.slot.wrapping_add(offset as u16)),
            Some(_) => Err(self.unsupported(inst, Some("past the end of an array"))),
            None => Err(self.unsupported(inst, Some("an index that is not a constant"))),
        }
    }

    /// Whether the shader stores a slot of an access anywhere.
    fn stores(&self, access: &SlotAccess) -> bool {
        let func = self.func;
        let slots = access.slot..access.slot.saturating_add(access.count);
        func.walk().any(|inst| match (func.op(inst), func.payload(inst)) {
            (Op::StoreSlot, Payload::Slot(own)) => {
                own.patch == access.patch
                    && own.slot < slots.end
                    && slots.start < own.slot.saturating_add(own.count)
            }
            _ => false,
        })
    }

    /// How many words a load from a slot in memory reads.
    fn slot_words(&self, inst: Inst) -> Selected<u32> {
        let ty = self.func.ty(self.func.result(inst));
        match ty.base {
            Base::B32 | Base::B16 | Base::B8 => Ok(ty.lanes.into()),
            _ => Err(self.unsupported(inst, Some("of this width"))),
        }
    }

    /// The result of a load from a slot. Without words, nothing stored to the slot.
    fn define_slot(&mut self, inst: Inst, words: Option<Vec<Operand>>, count: u32) {
        let words = words.unwrap_or_else(|| vec![Operand::undef(RegClass::V1); count as usize]);
        self.define(self.func.result(inst), &words);
    }

    /// The components of a store to a slot in memory, from the first one on.
    fn slot_values(&self, inst: Inst) -> Selected<Vec<Option<Operand>>> {
        let value = self.func.args(inst)[0];
        if !matches!(self.func.ty(value).base, Base::B32 | Base::B16 | Base::B8) {
            return Err(self.unsupported(inst, Some("of this width")));
        }
        Ok(self.value(value).iter().map(|lane| Some(*lane).filter(|lane| !lane.is_undef())).collect())
    }

    /// Records a store to an output: the value stored last is exported.
    fn store_output(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let func = self.func;
        let value = func.args(inst)[0];
        if self.frames_around() > 0 {
            return Err(self.unsupported(inst, Some("where not all lanes come")));
        }
        if access.vertex || access.patch {
            return Err(self.unsupported(inst, Some("of a vertex or patch")));
        }
        if !matches!(func.ty(value).base, Base::B32 | Base::B16 | Base::B8) {
            return Err(self.unsupported(inst, Some("of this width")));
        }
        let slot = self.slot_of(inst, access, 1)?;
        let lanes = self.value(value).to_vec();
        let stored = self.outputs.entry((slot, access.index)).or_default();
        for (place, lane) in stored.iter_mut().skip(access.component.into()).zip(lanes) {
            *place = Some(lane);
        }
        Ok(())
    }
}
