//! Inputs of vertex shaders: numbers of vertices and instances.

use super::Selector;
use crate::abi::Argument;
use crate::ir::{Operand, RegClass};
use crate::stages::MergedWaveInfo;
use unwedge_isa::amdgcn::Opcode;
use unwedge_shader::ir::SystemValue;

impl Selector<'_> {
    /// An argument of the driver.
    pub(super) fn given(&self, argument: Argument) -> Operand {
        self.find_argument(argument).unwrap_or(Operand::undef(RegClass::S1))
    }

    /// Selects the vector registers of vertices: in a wave without a patch, they are in place of those of patches.
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
            SystemValue::PrimitiveId => self.find_argument(Argument::VertexPrimitive)?,
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
    pub(super) fn vertex_index(&mut self, instance: bool) -> Operand {
        let (number, first) = match instance {
            true => (Argument::InstanceId, Argument::FirstInstance),
            false => (Argument::VertexId, Argument::BaseVertex),
        };
        let (number, first) = (self.given(number), self.given(first));
        self.vector_add(first, number)
    }
}
