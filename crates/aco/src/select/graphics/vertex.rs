//! Inputs of vertex shaders: attributes from buffers, numbers of vertices and instances.

use super::{Selected, Selector};
use crate::abi::Argument;
use crate::graphics::VertexInput;
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, RegClass};
use crate::stages::MergedWaveInfo;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_shader::ir::{Base, FIRST_LOCATION_SLOT, Inst, SlotAccess, SystemValue};

/// Bytes of the descriptor of a buffer.
const DESCRIPTOR: u32 = 16;
/// The most that the immediate of a buffer instruction is.
const MAX_OFFSET: u32 = 4095 - 16;
/// The bits of 1.0.
const ONE: u32 = 0x3f80_0000;

impl Selector<'_> {
    /// An argument of the driver.
    pub(super) fn given(&self, argument: Argument) -> Operand {
        self.find_argument(argument).unwrap_or(Operand::undef(RegClass::S1))
    }

    /// Takes the vector registers of vertices from where they are: in a wave without a patch, in place of those of patches.
    pub(in crate::select) fn shift_local_vectors(&mut self) {
        let Some(word) = self.find_argument(Argument::MergedWaveInfo) else { return };
        let (first, width) = MergedWaveInfo::SECOND;
        let field = [word, Operand::c32(first | width << 16)];
        let [_, has_patches] = self.salu_scc(Opcode::s_bfe_u32, RegClass::S1, &field);
        let has_patches = self.bit_to_mask(has_patches);
        let places = [
            (Argument::PatchId, Argument::VertexId),
            (Argument::RelativeIds, Argument::RelativeVertex),
            (Argument::VertexId, Argument::InstanceId),
        ];
        let places = places.map(|(shifted, own)| (own, self.given(shifted), self.given(own)));
        for (argument, shifted, own) in places {
            let chosen = self.valu(Opcode::v_cndmask_b32, RegClass::V1, &[shifted, own, has_patches]);
            self.args.extend(chosen.as_temp().map(|temp| (argument, temp)));
        }
    }

    /// A system value of vertex shaders; `None` if it is another one.
    pub(in crate::select) fn vertex_value(&mut self, value: SystemValue) -> Option<Operand> {
        Some(match value {
            SystemValue::VertexIndex => self.vertex_index(false),
            SystemValue::InstanceIndex => self.vertex_index(true),
            SystemValue::BaseVertex => self.given(Argument::BaseVertex),
            SystemValue::BaseInstance => self.given(Argument::FirstInstance),
            SystemValue::DrawIndex => self.given(Argument::DrawIndex),
            SystemValue::ViewIndex => self.given(Argument::ViewIndex),
            _ => return None,
        })
    }

    /// The vertex or instance, with the first one added.
    fn vertex_index(&mut self, instance: bool) -> Operand {
        let (number, first) = match instance {
            true => (Argument::InstanceId, Argument::FirstInstance),
            false => (Argument::VertexId, Argument::BaseVertex),
        };
        let (number, first) = (self.given(number), self.given(first));
        self.vector_add(first, number)
    }

    /// Loads components of an attribute.
    pub(super) fn load_attribute(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let func = self.func;
        let result = func.result(inst);
        let ty = func.ty(result);
        if ty.base != Base::B32 {
            return Err(self.unsupported(inst, Some("an attribute of this width")));
        }
        let slot = self.slot_of(inst, access, usize::from(access.vertex))?;
        let Some(location) = slot.checked_sub(FIRST_LOCATION_SLOT).map(u32::from) else {
            return Err(self.unsupported(inst, Some("a built-in input")));
        };
        let first = u32::from(access.component);
        let end = first + u32::from(ty.lanes);
        let input = self.options.graphics.vertex_inputs.get(&location).copied();
        let input = input.unwrap_or(VertexInput {
            binding: location,
            offset: 0,
            components: 4,
            instanced: false,
            float: true,
        });
        if input.offset > MAX_OFFSET {
            return Err(self.unsupported(inst, Some("an attribute so far from the start of its element")));
        }
        let table = self.given(Argument::VertexBuffers);
        let address = self.create(RegClass::S2, &[table, Operand::c32(self.options.address_high)]);
        let at = self.smem_offset(Operand::c32(input.binding.saturating_mul(DESCRIPTOR)));
        let descriptor = self.smem(Opcode::s_load_dwordx4, RegClass::sgpr(4), address, at);
        let index = self.vertex_index(input.instanced);
        let index = self.in_vgpr(index);
        let present = end.min(input.components.into());
        let mut lanes = Vec::new();
        let mut component = first;
        while component < present {
            let part = self.attribute_part(&input, descriptor, index, component, present - component);
            component += part.len() as u32;
            lanes.extend(part);
        }
        for missing in component..end {
            let one = if input.float { ONE } else { 1 };
            lanes.push(Operand::c32(if missing == 3 { one } else { 0 }));
        }
        self.define(result, &lanes);
        Ok(())
    }

    /// Some of the next components of an attribute.
    fn attribute_part(
        &mut self,
        input: &VertexInput,
        descriptor: Operand,
        index: Operand,
        component: u32,
        count: u32,
    ) -> Vec<Operand> {
        let (dwords, opcode) = match count {
            1 => (1, Opcode::buffer_load_dword),
            3 if self.gfx > Gfx::Gfx6 => (3, Opcode::buffer_load_dwordx3),
            2 | 3 => (2, Opcode::buffer_load_dwordx2),
            _ => (4, Opcode::buffer_load_dwordx4),
        };
        let class = RegClass::vgpr(dwords);
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let operands = [index, descriptor, Operand::c32(0)];
        let mut new = NewInst::hw(opcode, &definitions, &operands);
        new.mods.set(Mod::Idxen, 1);
        new.mods.set(Mod::Offset, (input.offset + component * 4) as i32);
        new.payload = Payload::Memory(Memory::CONSTANT);
        self.add(&new);
        self.split(Operand::temp(temp, class), 1)
    }
}
