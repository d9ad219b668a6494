//! Primitive shaders (NGG) with a geometry shader. Its vertices are in LDS, with flags. After a barrier each lane looks at one of them; those that were
//! emitted are counted over the workgroup, and get numbers without gaps. Then each lane exports the vertex with its number, and the primitive that ends with
//! this vertex, or none.
//!
//! LDS has at [`Argument::EmittedLds`] the vertices, as many for each invocation as it may emit; then, at the place in the upper half, a dword for each wave with the number of vertices of those
//! before it, followed by their sum; and 64 bytes later, for each number, the vertex that has it. If streams are captured, the same counts of the primitives of each stream come before the numbers, and
//! the state of [`super::captured`].

use super::captured::StreamPrimitives;
use super::culling::{CORNERS, Corner};
use super::exports::Export;
use super::primitive::{PRIMITIVE, PRIMITIVES};
use super::slots::SlotPlace;
use super::{Selected, Selector};
use crate::abi::{Argument, COUNT_BYTES};
use crate::ir::{Operand, RegClass};
use crate::lower::geometry::{
    COMPLETES, EMITTED, IS_LEFT, IS_ODD, OTHER_STREAMS, VERTEX_FLAGS, primitive_vertices, stored_components,
};
use crate::stages::MergedWaveInfo;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::Builtin;

/// Halves of [`Argument::EmittedLds`].
const VERTICES: (u32, u32) = (0, 16);
const COUNTS: (u32, u32) = (16, 16);
/// The index of the vertex counts. The primitive counts of the streams follow.
pub(super) const VERTEX_COUNTS: u32 = 0;
/// How many waves a workgroup has.
const WAVES: (u32, u32) = (28, 4);
/// The null primitive.
pub(super) const NO_PRIMITIVE: u32 = 0x8000_0000;

/// The index of the primitive counts of a stream.
fn stream_counts(stream: u8) -> u32 {
    1 + u32::from(stream)
}

impl Selector<'_> {
    /// Where the vertices of the invocation are in LDS.
    pub(super) fn emitted_place(&mut self) -> Operand {
        let bytes = self.interface.emitted_bytes();
        let begin = self.field(Argument::EmittedLds, VERTICES);
        let thread = self.group_vertex();
        let own = self.scaled(thread, bytes * self.shader.info.output_vertices);
        self.sum(begin, own)
    }

    /// Where an emitted vertex is in LDS.
    fn emitted_vertex(&mut self, vertex: Operand) -> Operand {
        let bytes = self.interface.emitted_bytes();
        let begin = self.field(Argument::EmittedLds, VERTICES);
        let own = self.scaled(vertex, bytes);
        self.sum(begin, own)
    }

    /// The streams that are captured.
    fn captured_streams(&self) -> Vec<u8> {
        (0..=OTHER_STREAMS as u8).filter(|stream| self.interface.captures.has_stream(*stream)).collect()
    }

    /// Sets all counts to zero.
    pub(super) fn clear_counts(&mut self) -> Selected<()> {
        let thread = self.group_vertex();
        let few = self.valu_compare(Opcode::v_cmp_gt_u32, &[Operand::c32(COUNT_BYTES / 4), thread]);
        self.only_lanes(few, |selector| {
            let thread = selector.group_vertex();
            let streams = selector.captured_streams();
            for counts in [VERTEX_COUNTS].into_iter().chain(streams.into_iter().map(stream_counts)) {
                let place = selector.count_place(counts, thread);
                selector.store_local(place, &[Some(Operand::c32(0))]);
            }
            Ok(())
        })
    }

    fn count_place(&mut self, counts: u32, number: Operand) -> SlotPlace {
        let own = self.scaled(number, 4);
        if self.interface.culls {
            return SlotPlace::at(own, super::culling::COUNTS_OFFSET);
        }
        let begin = self.field(Argument::EmittedLds, COUNTS);
        SlotPlace::at(self.sum(begin, own), counts * COUNT_BYTES)
    }

    /// Where in LDS the first wave stores the transform feedback state that the other waves need.
    pub(super) fn emitted_capture_state(&mut self) -> SlotPlace {
        let begin = self.field(Argument::EmittedLds, COUNTS);
        SlotPlace::at(begin, stream_counts(OTHER_STREAMS as u8 + 1) * COUNT_BYTES)
    }

    /// The flags of an emitted vertex of a stream.
    fn emitted_flags(&mut self, vertex: Operand, stream: u8) -> Operand {
        let at = self.interface.outputs.offset(VERTEX_FLAGS, false).unwrap_or(0);
        let varying = self.emitted_vertex(vertex);
        let words = self.load_local(SlotPlace::at(varying, at + u32::from(stream) * 4), 1);
        words.first().copied().unwrap_or(Operand::c32(0))
    }

    /// What the workgroup does after its geometry shaders.
    pub(in crate::select) fn export_emitted(&mut self) -> Selected<()> {
        self.local_barrier();
        let thread = self.group_vertex();
        let invocations = self.field(Argument::GroupInfo, PRIMITIVES);
        let most = self.scaled(invocations, self.shader.info.output_vertices);
        let exists = self.valu_compare(Opcode::v_cmp_gt_u32, &[most, thread]);
        let read = self.choose(exists, thread, Operand::c32(0));
        let flags = self.emitted_flags(read, 0);
        let flags = self.choose(exists, flags, Operand::c32(0));
        let mut captured = Vec::new();
        for stream in self.captured_streams() {
            let flags = self.emitted_flags(read, stream);
            let flags = self.choose(exists, flags, Operand::c32(0));
            let lanes = self.has_flag(flags, COMPLETES);
            self.add_count(stream_counts(stream), lanes)?;
            captured.push((stream, flags, lanes));
        }
        let emitted = match self.interface.culls_emitted {
            true => self.cull_emitted(thread, flags, [read, exists])?,
            false => self.has_flag(flags, EMITTED),
        };
        let total = self.count_over_waves(emitted)?;
        self.capture_emitted(thread, &captured)?;
        let number = self.number_in_group(VERTEX_COUNTS, emitted);
        self.only_lanes(emitted, |selector| {
            let place = selector.numbered_place(number);
            selector.store_local(place, &[Some(thread)]);
            Ok(())
        })?;
        self.local_barrier();
        let first = self.is_first_wave();
        self.ask_for(first, total, total)?;
        let exports = self.valu_compare(Opcode::v_cmp_gt_u32, &[total, thread]);
        self.only_lanes(exports, |selector| selector.export_numbered(thread))
    }

    /// Captures the primitives of streams, each with the flags of its vertices and the lanes that have the last vertex of one.
    fn capture_emitted(&mut self, thread: Operand, streams: &[(u8, Operand, Operand)]) -> Selected<()> {
        if streams.is_empty() {
            return Ok(());
        }
        let mut primitives = Vec::new();
        for &(stream, flags, lanes) in streams {
            let counts = stream_counts(stream);
            let (count, number) = (self.total(counts), self.number_in_group(counts, lanes));
            primitives.push((StreamPrimitives { stream, lanes, number, count }, flags));
        }
        let vertices = primitive_vertices(self.shader.info.output_primitive);
        self.capture_primitives(&primitives, Operand::c32(vertices), |selector, flags, corner| {
            let vertex = selector.corner(thread, *flags, vertices, corner);
            selector.emitted_vertex(vertex)
        })
    }

    /// Clears [`COMPLETES`] in the flags of vertices that end a culled triangle. Returns the lanes with a vertex of a triangle that is not culled. The three vertices of such a
    /// triangle are consecutive among those lanes.
    fn cull_emitted(
        &mut self,
        thread: Operand,
        flags: Operand,
        [read, exists]: [Operand; 2],
    ) -> Selected<Operand> {
        let slots = &self.interface.outputs;
        let place = |slot| slots.offset(slot, false).unwrap_or(0);
        let (position, at) = (place(Builtin::Position.slots().start), place(VERTEX_FLAGS));
        let completes = self.has_flag(flags, COMPLETES);
        self.only_lanes(completes, |selector| {
            let vertices: [Operand; CORNERS] = std::array::from_fn(|corner| {
                let vertex = selector.corner(thread, flags, CORNERS as u32, corner as u32);
                selector.emitted_vertex(vertex)
            });
            let corners: [Corner; CORNERS] = vertices.map(|vertex| {
                [0, 1, 3].map(|component| {
                    let place = SlotPlace::at(vertex, position + component * 4);
                    selector.load_local(place, 1)[0]
                })
            });
            let culled = selector.culled(&corners);
            let left = selector.choose(culled, Operand::c32(0), Operand::c32(IS_LEFT));
            for vertex in vertices {
                selector.local(Opcode::ds_or_b32, vertex, left, at);
            }
            let kept = selector.choose(culled, Operand::c32(!COMPLETES), Operand::c32(u32::MAX));
            let own = selector.emitted_vertex(thread);
            selector.local(Opcode::ds_and_b32, own, kept, at);
            Ok(())
        })?;
        self.local_barrier();
        let flags = self.emitted_flags(read, 0);
        let flags = self.choose(exists, flags, Operand::c32(0));
        Ok(self.has_flag(flags, IS_LEFT))
    }

    /// The lanes whose flags include one.
    fn has_flag(&mut self, flags: Operand, flag: u32) -> Operand {
        let flag = self.valu(Opcode::v_and_b32, RegClass::V1, &[Operand::c32(flag), flags]);
        self.valu_compare(Opcode::v_cmp_lg_u32, &[Operand::c32(0), flag])
    }

    /// Counts lanes over the waves of the workgroup. Returns their sum.
    pub(super) fn count_over_waves(&mut self, lanes: Operand) -> Selected<Operand> {
        self.add_count(VERTEX_COUNTS, lanes)?;
        self.local_barrier();
        Ok(self.total(VERTEX_COUNTS))
    }

    /// The sum of counts over the workgroup.
    fn total(&mut self, counts: u32) -> Operand {
        let waves = self.field(Argument::MergedWaveInfo, WAVES);
        let total = self.count_place(counts, waves);
        let total = self.load_local(total, 1);
        self.in_scalar(total[0])
    }

    /// Adds the number of lanes to the numbers of the waves after this one, and to the sum.
    fn add_count(&mut self, counts: u32, emitted: Operand) -> Selected<()> {
        let count = self.sized(Opcode::s_bcnt1_i32_b32, Opcode::s_bcnt1_i32_b64);
        let count = self.salu(count, RegClass::S1, &[emitted]);
        let wave = self.field(Argument::MergedWaveInfo, MergedWaveInfo::WAVE);
        let waves = self.field(Argument::MergedWaveInfo, WAVES);
        let after = self.salu(Opcode::s_sub_u32, RegClass::S1, &[waves, wave]);
        let lane = self.lane();
        let waves = self.valu_compare(Opcode::v_cmp_gt_u32, &[after, lane]);
        self.only_lanes(waves, |selector| {
            let next = selector.salu(Opcode::s_add_u32, RegClass::S1, &[wave, Operand::c32(1)]);
            let lane = selector.lane();
            let number = selector.vector_add(next, lane);
            let place = selector.count_place(counts, number);
            let count = selector.in_vgpr(count);
            let address = selector.in_vgpr(place.varying);
            selector.local(Opcode::ds_add_u32, address, count, place.constant);
            Ok(())
        })
    }

    /// The numbers of lanes in the workgroup, among those that were counted.
    pub(super) fn number_in_group(&mut self, counts: u32, lanes: Operand) -> Operand {
        let wave = self.field(Argument::MergedWaveInfo, MergedWaveInfo::WAVE);
        let place = self.count_place(counts, wave);
        let before = self.load_local(place, 1)[0];
        let words = self.split(lanes, 1);
        let number = self.valu(Opcode::v_mbcnt_lo_u32_b32, RegClass::V1, &[words[0], before]);
        match words.get(1) {
            Some(high) => self.valu(Opcode::v_mbcnt_hi_u32_b32, RegClass::V1, &[*high, number]),
            None => number,
        }
    }

    /// Where the vertex with a number is recorded.
    pub(super) fn numbered_place(&mut self, number: Operand) -> SlotPlace {
        let place = self.count_place(VERTEX_COUNTS, number);
        SlotPlace::at(place.varying, place.constant + self.interface.count_bytes())
    }

    /// The first wave allocates space for vertices and primitives.
    pub(super) fn ask_for(&mut self, first: Operand, vertices: Operand, primitives: Operand) -> Selected<()> {
        // A workgroup without vertices hangs these GPUs.
        let never_none = self.gfx == Gfx::Gfx10;
        let mut exported = Ok(());
        self.only_if(first, |selector| {
            if !never_none {
                return selector.allocate(vertices, primitives);
            }
            let [least, none] = [1, 0].map(Operand::c32);
            let asked = [vertices, primitives]
                .map(|count| selector.salu(Opcode::s_max_u32, RegClass::S1, &[count, least]));
            selector.allocate(asked[0], asked[1]);
            let none = selector.salu_compare(Opcode::s_cmp_eq_u32, &[vertices, none]);
            selector.only_if(none, |selector| exported = selector.export_nothing());
        });
        exported
    }

    /// A vertex, and the null primitive.
    fn export_nothing(&mut self) -> Selected<()> {
        let lane = self.lane();
        let first = self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32(0), lane]);
        self.only_lanes(first, |selector| {
            selector.export(&[Export::one(PRIMITIVE, Operand::c32(NO_PRIMITIVE))], 0, false);
            selector.export(&[Export::position([Some(Operand::c32(0)); 4])], 0, false);
            Ok(())
        })
    }

    /// Exports the vertex with a number, and its primitive.
    fn export_numbered(&mut self, number: Operand) -> Selected<()> {
        let place = self.numbered_place(number);
        let vertex = self.load_local(place, 1)[0];
        let flags = self.emitted_flags(vertex, 0);
        let primitive = self.connectivity(number, flags);
        self.export(&[Export::one(PRIMITIVE, primitive)], 0, false);
        let slots = self.interface.outputs.clone();
        let varying = self.emitted_vertex(vertex);
        self.outputs.clear();
        for (slot, components) in stored_components(self.func, 0) {
            let Some(at) = slots.offset(slot, false) else { continue };
            for component in (0..4).filter(|component| components >> component & 1 != 0) {
                let word = self.load_local(SlotPlace::at(varying, at + component * 4), 1)[0];
                self.outputs.entry((slot, 0)).or_default()[component as usize] = Some(word);
            }
        }
        self.export_vertex()
    }

    /// A vertex of the primitive that ends with the vertex `last`. In a triangle with reversed winding, the two vertices are swapped that do not provoke: the second and
    /// the third, or the first and the second.
    fn corner(&mut self, last: Operand, flags: Operand, vertices: u32, place: u32) -> Operand {
        let back = Operand::c32(vertices - 1 - place);
        let vertex = if back.as_const() == Some(0) { last } else { self.vector_sub(last, back) };
        let last_provokes = self.options.graphics.last_vertex_provokes;
        let (up, down) = if last_provokes { (0, 1) } else { (1, 2) };
        if vertices != 3 || place != up && place != down {
            return vertex;
        }
        let odd = [flags, Operand::c32(IS_ODD.trailing_zeros()), Operand::c32(1)];
        let odd = self.valu(Opcode::v_bfe_u32, RegClass::V1, &odd);
        if place == up { self.vector_add(odd, vertex) } else { self.vector_sub(vertex, odd) }
    }

    /// The primitive that ends with a vertex.
    fn connectivity(&mut self, number: Operand, flags: Operand) -> Operand {
        let vertices = primitive_vertices(self.shader.info.output_primitive);
        let distance = if self.gfx >= Gfx::Gfx12 { 9 } else { 10 };
        let mut all = Operand::c32(0);
        for place in 0..vertices {
            let vertex = self.corner(number, flags, vertices, place);
            let shift = Operand::c32(place * distance);
            let shifted = self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[shift, vertex]);
            all = match place {
                0 => vertex,
                _ => self.valu(Opcode::v_or_b32, RegClass::V1, &[all, shifted]),
            };
        }
        let completes = self.has_flag(flags, COMPLETES);
        self.choose(completes, all, Operand::c32(NO_PRIMITIVE))
    }
}
