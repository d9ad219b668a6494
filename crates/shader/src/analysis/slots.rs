//! Which components of interface slots a shader reads or writes, for linking stages.
//!
//! Takes a shader whose interface was lowered to slots; variables that were not lowered are not in the result.

use crate::ir::{Op, Payload, Shader, SlotAccess, SlotDir, Stage};
use std::collections::BTreeMap;

/// A slot between two stages, or between a fragment shader and attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotKey {
    /// The slot.
    pub slot: u16,
    /// Whether it belongs to the patch or primitive.
    pub patch: bool,
    /// The second source of blending, or the stream of a geometry shader.
    pub index: u8,
}

/// Components of slots, a bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotMask(BTreeMap<SlotKey, u8>);

impl SlotMask {
    /// What a shader loads of its inputs or outputs. A fragment shader loads the primitive id, the layer and the viewport as system values,
    /// and the stage before may store them ([`crate::ir::SystemValue::fragment_slot`]).
    pub fn loaded(shader: &Shader, dir: SlotDir) -> SlotMask {
        let mut mask = SlotMask::of(shader, dir, |op| matches!(op, Op::LoadSlot | Op::LoadInterpolated));
        if shader.info.stage == Stage::Fragment && dir == SlotDir::Input {
            for func in shader.functions() {
                for inst in func.walk() {
                    if let Payload::SysVal(value) = func.payload(inst)
                        && let Some(slot) = value.fragment_slot()
                    {
                        *mask.0.entry(SlotKey { slot, patch: false, index: 0 }).or_default() |= 1;
                    }
                }
            }
        }
        mask
    }

    /// What a shader stores.
    pub fn stored(shader: &Shader) -> SlotMask {
        SlotMask::of(shader, SlotDir::Output, |op| op == Op::StoreSlot)
    }

    fn of(shader: &Shader, dir: SlotDir, wants: impl Fn(Op) -> bool) -> SlotMask {
        let mut mask = SlotMask::default();
        for func in shader.functions() {
            for inst in func.walk() {
                let (op, payload) = (func.op(inst), func.payload(inst));
                if let Payload::Slot(access) = payload
                    && wants(op)
                    && access.dir == dir
                {
                    let moved = if op == Op::StoreSlot { func.args(inst)[0] } else { func.result(inst) };
                    let ty = func.ty(moved);
                    mask.add(&access, u32::from(ty.lanes) * ty.lane_components());
                }
            }
        }
        mask
    }

    /// The components of an access.
    pub fn one(access: &SlotAccess, components: u32) -> SlotMask {
        let mut mask = SlotMask::default();
        mask.add(access, components);
        mask
    }

    /// Adds components of all slots that an access may choose.
    pub fn add(&mut self, access: &SlotAccess, components: u32) {
        let bits = ((1u32 << components.min(4)) - 1) << access.component.min(4);
        for slot in access.slot..=access.slot.saturating_add(access.count.saturating_sub(1)) {
            let key = SlotKey { slot, patch: access.patch, index: access.index };
            *self.0.entry(key).or_default() |= bits as u8 & 15;
        }
    }

    /// The components of a slot, a bit each.
    pub fn components(&self, key: SlotKey) -> u8 {
        self.0.get(&key).copied().unwrap_or(0)
    }

    /// Slots with any component, in order.
    pub fn iter(&self) -> impl Iterator<Item = (SlotKey, u8)> + '_ {
        self.0.iter().map(|(key, bits)| (*key, *bits))
    }

    /// The components that are not in another mask.
    pub fn without(&self, other: &SlotMask) -> SlotMask {
        let rest = self.iter().map(|(key, bits)| (key, bits & !other.components(key)));
        SlotMask(rest.filter(|(_, bits)| *bits != 0).collect())
    }
}
