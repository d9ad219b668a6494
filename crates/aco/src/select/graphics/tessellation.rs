//! Tessellation. A control shader takes vertices from LDS and leaves patches in memory: a patch consists of its vertices and then its own slots. Outputs that
//! invocations read from each other, and tessellation levels, are in LDS, too, after the vertices that all patches of the workgroup take. At the end the first invocation of each patch writes the
//! factors. An evaluation shader loads from the patch.

use super::exports::ONE;
use super::slots::{Ring, SlotPlace};
use super::{Selected, Selector};
use crate::abi::Argument;
use crate::graphics::MemorySlots;
use crate::ir::{NewInst, Operand, Payload, Pseudo, RegClass};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::{
    BarrierInfo, Builtin, Inst, MemoryKinds, Primitive, Scope, SlotAccess, SlotDir, Stage, SystemValue,
};

/// First bit and width of the patch and of the vertex in [`Argument::RelativeIds`].
const PATCH: (u32, u32) = (0, 8);
const VERTEX: (u32, u32) = (8, 5);
/// The first dword of the factors of a workgroup, up to gfx8.
const FACTORS_FOLLOW: u32 = 0x8000_0000;

/// The dwords of the factors of a patch: from the outer levels, then the inner ones.
fn factors(primitive: Primitive) -> &'static [usize] {
    match primitive {
        Primitive::Quads => &[0, 1, 2, 3, 4, 5],
        // The number of lines comes first.
        Primitive::Isolines => &[1, 0],
        _ => &[0, 1, 2, 4],
    }
}

impl Selector<'_> {
    fn bits(&mut self, word: Operand, (first, width): (u32, u32)) -> Operand {
        self.valu(Opcode::v_bfe_u32, RegClass::V1, &[word, Operand::c32(first), Operand::c32(width)])
    }

    /// The patch, counted in its workgroup.
    fn relative_patch(&mut self) -> Operand {
        if self.shader.info.stage == Stage::TessEval {
            return self.given(Argument::RelativePatch);
        }
        let ids = self.given(Argument::RelativeIds);
        self.bits(ids, PATCH)
    }

    fn invocation(&mut self) -> Operand {
        let ids = self.given(Argument::RelativeIds);
        self.bits(ids, VERTEX)
    }

    /// A system value of tessellation and geometry shaders; `None` if it is another one.
    pub(in crate::select) fn primitive_value(&mut self, value: SystemValue) -> Option<Vec<Operand>> {
        let stage = self.shader.info.stage;
        Some(match value {
            SystemValue::ViewIndex => vec![self.given(Argument::ViewIndex)],
            SystemValue::PrimitiveId if stage == Stage::Geometry => {
                vec![self.given(Argument::GeometryPrimitive)]
            }
            SystemValue::PrimitiveId => vec![self.given(Argument::PatchId)],
            SystemValue::InvocationId if stage == Stage::Geometry => vec![self.geometry_invocation()],
            SystemValue::InvocationId => vec![self.invocation()],
            SystemValue::PatchVertices => vec![Operand::c32(self.options.graphics.patch_vertices)],
            SystemValue::TessCoord => {
                let [u, v] = [Argument::TessU, Argument::TessV].map(|argument| self.given(argument));
                let divided = self.shader.info.input_primitive.unwrap_or(self.options.graphics.tessellation);
                let third = match divided {
                    Primitive::Triangles => {
                        let rest = self.valu(Opcode::v_sub_f32, RegClass::V1, &[Operand::c32(ONE), u]);
                        self.valu(Opcode::v_sub_f32, RegClass::V1, &[rest, v])
                    }
                    _ => Operand::c32(0),
                };
                vec![u, v, third]
            }
            _ => return None,
        })
    }

    /// Adds the vertex of an access to a place.
    fn add_vertex(
        &mut self,
        inst: Inst,
        access: &SlotAccess,
        first: usize,
        place: SlotPlace,
        bytes: u32,
    ) -> SlotPlace {
        if !access.vertex {
            return place;
        }
        let vertex = self.scalar(self.func.args(inst)[first]);
        let vertex = self.scaled(vertex, bytes);
        SlotPlace { varying: self.sum(place.varying, vertex), ..place }
    }

    /// The place of an access in memory with patches; `None` if memory does not have it.
    fn patch_place(
        &mut self,
        inst: Inst,
        access: &SlotAccess,
        slots: &MemorySlots,
        first: usize,
        vertices: u32,
    ) -> Selected<Option<SlotPlace>> {
        let offset = first + usize::from(access.vertex);
        let Some(mut place) = self.slot_place(inst, access, slots, offset)? else { return Ok(None) };
        if access.patch {
            place.constant += vertices * slots.vertex_bytes();
        }
        let patch = self.relative_patch();
        let patch = self.scaled(patch, slots.patch_bytes(vertices));
        place.varying = self.sum(patch, place.varying);
        Ok(Some(self.add_vertex(inst, access, first, place, slots.vertex_bytes())))
    }

    /// The place of an access to the outputs of a control shader in LDS.
    fn shared_place(&mut self, inst: Inst, access: &SlotAccess, first: usize) -> Selected<Option<SlotPlace>> {
        let slots = self.interface.shared.clone();
        let vertices = self.shader.info.output_vertices;
        let Some(mut place) = self.patch_place(inst, access, &slots, first, vertices)? else {
            return Ok(None);
        };
        let begin = self.shared_begin();
        place.varying = self.sum(begin, place.varying);
        Ok(Some(place))
    }

    /// Where outputs of control shaders begin in LDS.
    fn shared_begin(&mut self) -> Operand {
        let bytes = self.inputs().vertex_bytes() * self.options.graphics.patch_vertices;
        let count = self.given(Argument::PatchCount);
        self.scaled(count, bytes)
    }

    /// What the shader takes from memory where the previous one left it. Both parts of a shader that culls are the same shader: the first passes only positions to the second.
    pub(super) fn inputs(&self) -> &MemorySlots {
        if self.part == 0 || self.interface.culls { &self.interface.inputs } else { &self.interface.passed }
    }

    /// Loads from a slot of a tessellation shader.
    pub(super) fn load_patch(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let count = self.slot_words(inst)?;
        let slots = self.inputs().clone();
        let vertices = self.options.graphics.patch_vertices;
        let words = match (self.shader.info.stage, access.dir) {
            (Stage::TessControl, SlotDir::Output) => {
                self.shared_place(inst, access, 0)?.map(|place| self.load_local(place, count))
            }
            (Stage::TessControl, _) => {
                let taken = MemorySlots { vertex: slots.vertex, patch: Vec::new() };
                let place = self.patch_place(inst, access, &taken, 0, vertices)?;
                place.map(|place| self.load_local(place, count))
            }
            _ => {
                let place = self.patch_place(inst, access, &slots, 0, vertices)?;
                let base = self.given(Argument::OffchipOffset);
                place.map(|place| self.load_ring(Ring::Patches, place, base, count, 4))
            }
        };
        self.define_slot(inst, words, count);
        Ok(())
    }

    /// Stores an output of a control shader.
    pub(super) fn store_patch(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let values = self.slot_values(inst)?;
        let slots = self.interface.outputs.clone();
        let vertices = self.shader.info.output_vertices;
        if let Some(place) = self.patch_place(inst, access, &slots, 1, vertices)? {
            let base = self.given(Argument::OffchipOffset);
            let descriptor = self.ring(Ring::Patches);
            self.store_ring(descriptor, place, base, &values, 4);
        }
        if let Some(place) = self.shared_place(inst, access, 1)? {
            self.store_local(place, &values);
        }
        Ok(())
    }

    /// A barrier of the invocations of a patch: outputs of the other invocations can be read after it.
    pub(in crate::select) fn patch_barrier(&mut self, mut info: BarrierInfo) {
        let local = matches!(info.memory, Scope::Invocation | Scope::Subgroup);
        if local {
            info.memory = Scope::Workgroup;
        }
        info.kinds = info.kinds.or(MemoryKinds::SHARED);
        let mut new = NewInst::pseudo(Pseudo::Barrier, &[], &[]);
        new.payload = Payload::Barrier(info);
        self.add(&new);
    }

    /// The end of a control shader: factors.
    pub(super) fn write_factors(&mut self) -> Selected<()> {
        self.local_barrier();
        let invocation = self.invocation();
        let first = self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32(0), invocation]);
        self.only_lanes(first, |selector| {
            selector.nearly_always();
            selector.write_patch_factors()
        })
    }

    fn write_patch_factors(&mut self) -> Selected<()> {
        let primitive = self.shader.info.input_primitive.unwrap_or(self.options.graphics.tessellation);
        let order = factors(primitive);
        let slots = self.interface.shared.clone();
        let vertices = self.shader.info.output_vertices;
        let patch = self.relative_patch();
        let begin = self.shared_begin();
        let mut levels = Vec::new();
        for (builtin, count) in [(Builtin::TessLevelOuter, 4), (Builtin::TessLevelInner, 2)] {
            let needed = order.iter().any(|at| (levels.len()..levels.len() + count).contains(at));
            let slot = builtin.slots().start;
            let words = match slots.offset(slot, true) {
                Some(at)
                    if needed
                        && self
                            .stores(&SlotAccess { patch: true, ..SlotAccess::of(SlotDir::Output, slot) }) =>
                {
                    let place = self.scaled(patch, slots.patch_bytes(vertices));
                    let varying = self.sum(begin, place);
                    let constant = vertices * slots.vertex_bytes() + at;
                    self.load_local(SlotPlace::at(varying, constant), count as u32)
                }
                _ => vec![Operand::c32(0); count],
            };
            levels.extend(words);
        }
        let values: Vec<Option<Operand>> = order.iter().map(|at| levels.get(*at).copied()).collect();
        let base = self.given(Argument::FactorOffset);
        let descriptor = self.ring(Ring::Factors);
        let before = if self.gfx <= Gfx::Gfx8 { 4 } else { 0 };
        let varying = self.scaled(patch, order.len() as u32 * 4);
        self.store_ring(descriptor, SlotPlace::at(varying, before), base, &values, 4);
        if before == 0 {
            return Ok(());
        }
        let first = self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32(0), patch]);
        self.only_lanes(first, |selector| {
            let place = SlotPlace::at(Operand::c32(0), 0);
            selector.store_ring(descriptor, place, base, &[Some(Operand::c32(FACTORS_FOLLOW))], 4);
            Ok(())
        })
    }
}
