//! What only graphics stages have: inputs, interpolation, exports, quads, helpers. See [`crate::abi`] for what registers hold at the start.

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

use super::memory::LDS_LIMIT;
use super::{Selected, Selector};
use crate::ir::{Operand, Pseudo};
use std::collections::BTreeMap;
use unwedge_isa::amdgcn::model::{Form, Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Base, Inst, Op, Payload, QuadDir, SlotAccess, SlotDir, Stage};

use crate::ir::{Definition, NewInst, RegClass};

/// Components of a slot that were stored.
pub(super) type SlotValues = [Option<Operand>; 4];

/// By slot and index: what is exported at the end.
pub(super) type OutputValues = BTreeMap<(u16, u8), SlotValues>;

/// Which lane of a quad each of its lanes reads.
fn quad_lanes(lanes: [i32; 4]) -> i32 {
    lanes.iter().enumerate().fold(0, |all, (at, lane)| all | lane << (2 * at))
}

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
            (Op::EmitVertex | Op::EndPrimitive, Payload::Stream(stream)) => {
                self.geometry_message(stream, func.op(inst) == Op::EndPrimitive);
                Ok(())
            }
            (Op::LoadInterpolated, Payload::Slot(access)) => self.load_interpolated(inst, &access),
            (Op::Barycentric, Payload::Bary(at, linear)) => self.barycentric(inst, at, linear),
            (Op::StoreSlot, Payload::Slot(access)) => self.store_output(inst, &access),
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
            (Op::QuadBroadcast | Op::QuadSwap, payload) => self.quad(inst, payload),
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

    /// How many words a load from a slot in memory has.
    fn slot_words(&self, inst: Inst) -> Selected<u32> {
        let ty = self.func.ty(self.func.result(inst));
        match ty.base {
            Base::B32 | Base::B16 | Base::B8 => Ok(ty.lanes.into()),
            _ => Err(self.unsupported(inst, Some("of this width"))),
        }
    }

    /// The result of a load from a slot; nobody stored it if there are no words.
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

    /// Notes a store to an output: what is stored last is exported.
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

    /// Moves values within quads.
    fn quad(&mut self, inst: Inst, payload: Payload) -> Selected<()> {
        let func = self.func;
        let (args, result) = (func.args(inst), func.result(inst));
        if func.ty(result).base != Base::B32 || func.ty(result).lanes != 1 {
            return Err(self.unsupported(inst, None));
        }
        let lanes = match payload {
            Payload::Quad(QuadDir::Horizontal) => [1, 0, 3, 2],
            Payload::Quad(QuadDir::Vertical) => [2, 3, 0, 1],
            Payload::Quad(QuadDir::Diagonal) => [3, 2, 1, 0],
            _ => match func.const_bits(args[1]) {
                Some(lane) if lane < 4 => [lane as i32; 4],
                _ => return Err(self.unsupported(inst, Some("a lane that is not a constant"))),
            },
        };
        let value = self.scalar(args[0]);
        let moved = if value.class.is_vgpr() { self.in_quad(value, lanes) } else { value };
        self.define(result, &[moved]);
        Ok(())
    }

    /// A value of lanes of the quad.
    pub(super) fn in_quad(&mut self, value: Operand, lanes: [i32; 4]) -> Operand {
        let temp = self.program.make_temp(RegClass::V1);
        let definitions = [Definition::temp(temp, RegClass::V1)];
        let mut mods = Mods::default();
        let (operands, limited) = ([value], [value, LDS_LIMIT]);
        let mut new = if self.gfx < Gfx::Gfx8 {
            // Bit 15: a permutation of quads.
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
