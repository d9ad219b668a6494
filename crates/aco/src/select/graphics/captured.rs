//! Transform feedback by primitive shaders, from gfx11 on. Vertices are in LDS, and each lane has a primitive. Primitives are written in their order in the workgroup, and workgroups
//! write in the order of the draw: [`Argument::GroupInfo`] has the position of the workgroup.
//!
//! The first wave reserves as many bytes of each buffer as the primitives of the workgroup need. If they do not all fit, it gives back the bytes of those that do not, because a primitive is written
//! to all buffers of its stream or to none. It stores in LDS where the workgroup may write in each buffer, and how many primitives of each stream fit; then all lanes
//! with such a primitive write its vertices.
//!
//! gfx11 counts in GDS registers. `ds_ordered_count` waits for the turn of the workgroup, and a later one passes the turn on. gfx12 counts in memory ([`Argument::CaptureState`]);
//! `global_atomic_ordered_add_b64` does nothing before it is the turn of the workgroup, so it is repeated until then.
//!
//! Facts: AMD's ISA manual of RDNA 3 (registers of GDS), Mesa's `ac_nir_lower_ngg` (bits of the offset, pairs in memory), AMD's LLPC (waits between the steps).

use super::primitive::GROUP_VERTICES;
use super::slots::SlotPlace;
use super::{Selected, Selector};
use crate::abi::{Argument, CAPTURE_BYTES};
use crate::captures::{BUFFERS, CapturedWord};
use crate::graphics::MemorySlots;
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, PhysReg, Pseudo, RegClass};
use crate::lower::geometry::stored_components;
use crate::stages::MergedWaveInfo;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::waits::{Counter, fields};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Access, MemoryKinds, Modes, Primitive, Stage};

/// The bits with the position of the workgroup in the order of the draw.
const ORDERED_ID: (u32, u32) = (0, 12);
/// Bits of the offset of `ds_ordered_count`: the turn of the wave ends, and the wave takes no other turn.
const RELEASE: u32 = 3 << 8;
/// The first of the GDS registers that count bytes written to each buffer, and the first of two registers for each stream: primitives needed, and primitives written.
const WRITTEN: u32 = 0;
const PRIMITIVES: u32 = 8;
/// The layout of [`Argument::CaptureState`]: the offset of the bytes written in a pair, the size of a pair, the offset of the two counts of primitives of each stream, and the size of a count.
const PAIR_WRITTEN: u32 = 4;
const PAIR_BYTES: u32 = 8;
const PAIR_COUNTS: u32 = BUFFERS as u32 * PAIR_BYTES;
const COUNT_BYTES: u32 = 8;
/// Dwords that one instruction stores.
const RUN: usize = 4;
/// Accesses that are coherent between all waves of the GPU.
const COUNTERS: Payload =
    Payload::Memory(Memory { kinds: MemoryKinds::OUTPUTS, access: Access::ATOMIC, private: false });

/// Primitives of a stream in a workgroup.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamPrimitives {
    pub(super) stream: u8,
    /// Lanes with a primitive.
    pub(super) lanes: Operand,
    /// The number of each lane's primitive.
    pub(super) number: Operand,
    /// The count of primitives.
    pub(super) count: Operand,
}

/// The space that the first wave reserves in a buffer.
struct Reservation {
    buffer: u8,
    stream: u8,
    /// The sizes in bytes of the buffer, and of a primitive.
    size: Operand,
    bytes: Operand,
    /// Bytes of all primitives.
    needed: Operand,
}

/// Components that are consecutive in a buffer and in LDS: their offsets and count.
struct CapturedRun {
    buffer: u32,
    local: u32,
    count: u32,
}

impl Selector<'_> {
    /// Bytes of LDS that hold captured outputs of vertices of a workgroup without a geometry shader.
    pub(super) fn captured_bytes(&self) -> u32 {
        let slots = self.interface.captures.slots(0);
        if slots.vertex.is_empty() { 0 } else { CAPTURE_BYTES + GROUP_VERTICES * slots.vertex_bytes() }
    }

    /// Stores the captured outputs of a vertex to LDS, at its end.
    pub(super) fn stage_captured(&mut self) {
        let slots = self.interface.captures.slots(0);
        if slots.vertex.is_empty() {
            return;
        }
        let bytes = self.captured_bytes();
        self.program.lds_bytes = self.program.lds_bytes.max(bytes.min(self.options.gpu.lds_bytes()));
        let vertex = self.group_vertex();
        let address = self.scaled(vertex, slots.vertex_bytes());
        for (number, &slot) in (0..).zip(&slots.vertex) {
            let values = self.stored_slot(slot);
            let place = SlotPlace::at(address, CAPTURE_BYTES + number * MemorySlots::SLOT_BYTES);
            self.store_local(place, &values);
        }
    }

    /// Captures the primitives of a workgroup without a geometry shader, after its vertices.
    pub(in crate::select) fn capture_group(&mut self) -> Selected<()> {
        let slots = self.interface.captures.slots(0);
        if slots.vertex.is_empty() {
            return Ok(());
        }
        let info = &self.shader.info;
        let primitive = info.input_primitive.unwrap_or(self.options.graphics.tessellation);
        let vertices = match primitive {
            _ if info.stage == Stage::Vertex => self.given(Argument::PrimitiveVertices),
            _ if info.modes.any(Modes::POINT_MODE) => Operand::c32(1),
            Primitive::Isolines => Operand::c32(2),
            _ => Operand::c32(3),
        };
        self.local_barrier();
        let own = self.field(Argument::MergedWaveInfo, MergedWaveInfo::SECOND);
        let lanes = self.first_lanes(own);
        let number = self.group_vertex();
        let count = self.field(Argument::GroupInfo, super::primitive::PRIMITIVES);
        let connectivity = self.connectivity_word();
        let (distance, bytes) = (self.corner_distance(), slots.vertex_bytes());
        let primitives = [(StreamPrimitives { stream: 0, lanes, number, count }, ())];
        self.capture_primitives(&primitives, vertices, |selector, (), corner| {
            let bits = [connectivity, Operand::c32(corner * distance), Operand::c32(distance - 1)];
            let vertex = selector.valu(Opcode::v_bfe_u32, RegClass::V1, &bits);
            selector.scaled(vertex, bytes)
        })
    }

    /// Captures the primitives of captured streams. `vertices` is the number of vertices of a primitive; `place` returns where in LDS a vertex is.
    pub(super) fn capture_primitives<T>(
        &mut self,
        streams: &[(StreamPrimitives, T)],
        vertices: Operand,
        mut place: impl FnMut(&mut Self, &T, u32) -> Operand,
    ) -> Selected<()> {
        let counts: Vec<(u8, Operand)> = streams.iter().map(|(own, _)| (own.stream, own.count)).collect();
        let first = self.is_first_wave();
        let mut selected = Ok(());
        self.only_if(first, |selector| selected = selector.reserve(&counts, vertices));
        selected?;
        self.local_barrier();
        for (primitives, of) in streams {
            let stream = primitives.stream;
            let written = self.written_primitives(stream);
            let fits = self.valu_compare(Opcode::v_cmp_gt_u32, &[written, primitives.number]);
            let lanes = self.both(fits, primitives.lanes);
            let mut targets = Vec::new();
            for buffer in self.interface.captures.buffers(stream) {
                let word = self.capture_word(buffer.into());
                let begin = self.load_local(word, 1)[0];
                let begin = self.in_scalar(begin);
                targets.push((buffer, self.capture_descriptor(buffer), begin));
            }
            let most = vertices.as_const().map_or(3, |count| count as u32);
            for corner in 0..most {
                let mut write = |selector: &mut Self| {
                    selector.only_lanes(lanes, |selector| {
                        let vertex = place(selector, of, corner);
                        for &(buffer, descriptor, begin) in &targets {
                            let stride = selector.interface.captures.strides[usize::from(buffer)];
                            let bytes = selector.scaled(vertices, stride);
                            let own = selector.valu(
                                Opcode::v_mul_u32_u24,
                                RegClass::V1,
                                &[bytes, primitives.number],
                            );
                            let begin = selector.vector_add(begin, own);
                            selector.write_vertex(
                                (stream, buffer),
                                vertex,
                                descriptor,
                                begin,
                                corner * stride,
                            );
                        }
                        Ok(())
                    })
                };
                if vertices.as_const().is_some() {
                    write(self)?;
                } else {
                    let has = self.salu_compare(Opcode::s_cmp_gt_u32, &[vertices, Operand::c32(corner)]);
                    let mut written = Ok(());
                    self.only_if(has, |selector| written = write(selector));
                    written?;
                }
            }
        }
        Ok(())
    }

    /// A dword that the first wave stores in LDS: by buffer, the offset at which the workgroup writes; after those, by stream, the number of primitives that it writes.
    fn capture_word(&mut self, number: u32) -> SlotPlace {
        let state = match self.shader.info.stage {
            Stage::Geometry => self.emitted_capture_state(),
            _ => SlotPlace::at(Operand::c32(0), 0),
        };
        SlotPlace::at(state.varying, state.constant + number * 4)
    }

    fn written_primitives(&mut self, stream: u8) -> Operand {
        let word = self.capture_word(BUFFERS as u32 + u32::from(stream));
        let written = self.load_local(word, 1)[0];
        self.in_scalar(written)
    }

    fn capture_descriptor(&mut self, buffer: u8) -> Operand {
        let table = self.given(Argument::CaptureBuffers);
        let address = self.create(RegClass::S2, &[table, Operand::c32(self.options.address_high)]);
        self.table_descriptor(address, buffer.into())
    }

    /// The captured components of a stream in a buffer, in runs that one instruction stores.
    fn captured_runs(&self, stream: u8, buffer: u8) -> Vec<Vec<CapturedRun>> {
        let captures = &self.interface.captures;
        let geometry = self.shader.info.stage == Stage::Geometry;
        let stored = if geometry { stored_components(self.func, stream) } else { Default::default() };
        let staged = captures.slots(stream);
        let local = |word: &CapturedWord| {
            let component = u32::from(word.component & 3);
            let is_stored = match geometry {
                true => stored.get(&word.slot).is_some_and(|all| all >> component & 1 != 0),
                false => self.stored_slot(word.slot)[component as usize].is_some(),
            };
            if !is_stored {
                return None;
            }
            let (slots, begin) = match geometry {
                true => (self.stream_slots(stream), self.interface.stream_offset(stream)),
                false => (&staged, CAPTURE_BYTES),
            };
            Some(begin + slots.offset(word.slot, false)? + component * 4)
        };
        let mut parts: Vec<Vec<CapturedRun>> = Vec::new();
        let (mut next, mut len) = (None, 0);
        for word in captures.part(stream, buffer) {
            let Some(local) = local(word) else { continue };
            if next != Some(word.offset) || len == RUN {
                parts.push(Vec::new());
                len = 0;
            }
            (next, len) = (Some(word.offset.wrapping_add(4)), len + 1);
            let Some(part) = parts.last_mut() else { continue };
            match part.last_mut() {
                Some(run) if run.local + run.count * 4 == local => run.count += 1,
                _ => part.push(CapturedRun { buffer: word.offset, local, count: 1 }),
            }
        }
        parts
    }

    /// Writes a vertex to a buffer.
    fn write_vertex(
        &mut self,
        (stream, buffer): (u8, u8),
        vertex: Operand,
        descriptor: Operand,
        begin: Operand,
        offset: u32,
    ) {
        for part in self.captured_runs(stream, buffer) {
            let Some(first) = part.first().map(|run| run.buffer) else { continue };
            let mut values = Vec::new();
            for run in part {
                let words = self.load_local(SlotPlace::at(vertex, run.local), run.count);
                values.extend(words.into_iter().map(Some));
            }
            let place = SlotPlace::at(begin, offset.wrapping_add(first));
            self.store_ring(descriptor, place, Operand::c32(0), &values, 4);
        }
    }

    /// The lanes of the first wave that count: from gfx12 on one for each buffer.
    fn counting_lanes(&mut self) -> Operand {
        let count = if self.gfx >= Gfx::Gfx12 { BUFFERS as u32 } else { 1 };
        self.first_lanes(Operand::c32(count))
    }

    /// Reserves space, in the first wave, and stores the dwords of [`Selector::capture_word`] in LDS.
    fn reserve(&mut self, streams: &[(u8, Operand)], vertices: Operand) -> Selected<()> {
        let mut buffers = Vec::new();
        let mut all = Operand::c32(0);
        for &(stream, count) in streams {
            for buffer in self.interface.captures.buffers(stream) {
                let descriptor = self.capture_descriptor(buffer);
                let size = self.split(descriptor, 1)[2];
                let stride = self.interface.captures.strides[usize::from(buffer)];
                let bytes = self.scaled(vertices, stride);
                let needed = self.salu(Opcode::s_mul_i32, RegClass::S1, &[count, bytes]);
                all = self.salu(Opcode::s_or_b32, RegClass::S1, &[size, all]);
                buffers.push(Reservation { buffer, stream, size, bytes, needed });
            }
        }
        let lanes = self.counting_lanes();
        self.only_lanes(lanes, |selector| {
            for &(stream, _) in streams {
                let word = selector.capture_word(BUFFERS as u32 + u32::from(stream));
                selector.store_local(word, &[Some(Operand::c32(0))]);
            }
            Ok(())
        })?;
        // Without buffers nothing is captured or counted.
        let bound = self.salu_compare(Opcode::s_cmp_lg_u32, &[all, Operand::c32(0)]);
        let mut selected = Ok(());
        self.only_if(bound, |selector| {
            let lanes = selector.counting_lanes();
            selected = selector.only_lanes(lanes, |selector| selector.reserve_bound(streams, &buffers));
        });
        selected
    }

    fn reserve_bound(&mut self, streams: &[(u8, Operand)], buffers: &[Reservation]) -> Selected<()> {
        let needed: Vec<(u8, Operand)> = buffers.iter().map(|own| (own.buffer, own.needed)).collect();
        let begins =
            if self.gfx >= Gfx::Gfx12 { self.reserve_memory(&needed) } else { self.reserve_gds(&needed) };
        let mut surplus = Vec::new();
        let mut counts = Vec::new();
        for &(stream, count) in streams {
            let mut written = count;
            for (own, begin) in buffers.iter().zip(&begins).filter(|(own, _)| own.stream == stream) {
                let fits = self.fitting_primitives(own, *begin);
                written = self.salu(Opcode::s_min_u32, RegClass::S1, &[written, fits]);
                let word = self.capture_word(own.buffer.into());
                self.store_local(word, &[Some(*begin)]);
            }
            let word = self.capture_word(BUFFERS as u32 + u32::from(stream));
            self.store_local(word, &[Some(written)]);
            let left = self.salu(Opcode::s_sub_u32, RegClass::S1, &[count, written]);
            for own in buffers.iter().filter(|own| own.stream == stream) {
                surplus.push((own.buffer, self.salu(Opcode::s_mul_i32, RegClass::S1, &[left, own.bytes])));
            }
            counts.push((stream, [count, written]));
        }
        let any = surplus.iter().fold(Operand::c32(0), |all, (_, bytes)| {
            self.salu(Opcode::s_or_b32, RegClass::S1, &[*bytes, all])
        });
        let any = self.salu_compare(Opcode::s_cmp_lg_u32, &[any, Operand::c32(0)]);
        if self.gfx >= Gfx::Gfx12 {
            self.only_if(any, |selector| selector.give_back_memory(&surplus));
            return self.count_in_memory(&counts);
        }
        self.only_if(any, |selector| {
            for &(buffer, bytes) in &surplus {
                selector.gds_register(Opcode::ds_sub_gs_reg_rtn, WRITTEN + u32::from(buffer), bytes);
            }
        });
        for (stream, counts) in counts {
            for (number, count) in (0..).zip(counts) {
                let register = PRIMITIVES + u32::from(stream) * 2 + number;
                self.gds_register(Opcode::ds_add_gs_reg_rtn, register, count);
            }
        }
        Ok(())
    }

    /// The number of primitives that fit in the rest of a buffer. If the primitives of the workgroup fit, any number that is not less than theirs.
    fn fitting_primitives(&mut self, own: &Reservation, begin: Operand) -> Operand {
        let (s1, v1) = (RegClass::S1, RegClass::V1);
        let used = self.salu(Opcode::s_min_u32, s1, &[begin, own.size]);
        let rest = self.salu(Opcode::s_sub_u32, s1, &[own.size, used]);
        // So the quotient is small, and its error is less than one.
        let rest = self.salu(Opcode::s_min_u32, s1, &[rest, own.needed]);
        let bytes = self.valu(Opcode::v_cvt_f32_u32, v1, &[own.bytes]);
        let inverse = self.valu(Opcode::v_rcp_iflag_f32, v1, &[bytes]);
        let dividend = self.valu(Opcode::v_cvt_f32_u32, v1, &[rest]);
        let quotient = self.valu(Opcode::v_mul_f32, v1, &[dividend, inverse]);
        let quotient = self.valu(Opcode::v_cvt_u32_f32, v1, &[quotient]);
        let quotient = self.in_scalar(quotient);
        let product = self.salu(Opcode::s_mul_i32, s1, &[quotient, own.bytes]);
        let remainder = self.salu(Opcode::s_sub_u32, s1, &[rest, product]);
        let negative = self.salu(Opcode::s_lshr_b32, s1, &[remainder, Operand::c32(31)]);
        let quotient = self.salu(Opcode::s_sub_u32, s1, &[quotient, negative]);
        let more = self.salu_compare(Opcode::s_cmp_ge_i32, &[remainder, own.bytes]);
        let more = self.hw(Opcode::s_cselect_b32, s1, &[Operand::c32(1), Operand::c32(0), more]);
        self.salu(Opcode::s_add_u32, s1, &[quotient, more])
    }

    /// Adds to the counts of buffers in GDS, in the order of workgroups. Returns the old counts.
    fn reserve_gds(&mut self, needed: &[(u8, Operand)]) -> Vec<Operand> {
        let group = self.field(Argument::GroupInfo, ORDERED_ID);
        let none = Operand::c32(0);
        self.gds(Opcode::ds_ordered_count, RegClass::V1, none, 0, group);
        self.wait_for_gds();
        let before: Vec<Operand> = needed
            .iter()
            .map(|(buffer, bytes)| {
                self.gds_register(Opcode::ds_add_gs_reg_rtn, WRITTEN + u32::from(*buffer), *bytes)
            })
            .collect();
        self.wait_for_gds();
        self.gds(Opcode::ds_ordered_count, RegClass::V1, none, RELEASE, group);
        before.into_iter().map(|count| self.in_scalar(count)).collect()
    }

    /// Adds to or subtracts from a GDS register. Returns its old low word.
    fn gds_register(&mut self, opcode: Opcode, register: u32, by: Operand) -> Operand {
        let before = self.gds(opcode, RegClass::V2, by, register * 4, Operand::c32(0));
        self.words(before)[0]
    }

    fn gds(&mut self, opcode: Opcode, class: RegClass, data: Operand, offset: u32, m0: Operand) -> Operand {
        let word = Operand::reg(PhysReg::M0, RegClass::S1);
        self.pseudo(Pseudo::ParallelCopy, &[Definition::reg(PhysReg::M0, RegClass::S1)], &[m0]);
        let temp = self.program.make_temp(class);
        let data = self.in_vgpr(data);
        let (definitions, operands) = ([Definition::temp(temp, class)], [data, word]);
        let mut new = NewInst::hw(opcode, &definitions, &operands);
        new.mods.set(Mod::Offset, offset as i32);
        new.payload = COUNTERS;
        self.add(&new);
        Operand::temp(temp, class)
    }

    fn wait_for_gds(&mut self) {
        let mut all = 0;
        for wait in fields(Opcode::s_waitcnt, self.gfx) {
            let local = wait.counter == Counter::Local;
            all |= wait.field.put(if local { 0 } else { wait.field.most() });
        }
        self.add(&NewInst::hw(Opcode::s_waitcnt, &[], &[Operand::c32(all.into())]));
    }

    /// The address of [`Argument::CaptureState`].
    fn capture_state(&mut self) -> Operand {
        let low = self.given(Argument::CaptureState);
        self.create(RegClass::S2, &[low, Operand::c32(self.options.address_high)])
    }

    /// A vector with the value of each buffer in the lane of that number.
    fn by_buffer(&mut self, values: &[(u8, Operand)]) -> Operand {
        let lane = self.lane();
        values.iter().fold(Operand::c32(0), |all, (buffer, value)| {
            let is_it = self.valu_compare(Opcode::v_cmp_eq_u32, &[Operand::c32((*buffer).into()), lane]);
            self.choose(is_it, *value, all)
        })
    }

    /// Adds to the counts of buffers in memory, in the order of workgroups. Returns the old counts.
    fn reserve_memory(&mut self, needed: &[(u8, Operand)]) -> Vec<Operand> {
        let group = self.field(Argument::GroupInfo, ORDERED_ID);
        let bytes = self.by_buffer(needed);
        let pair = [self.in_vgpr(group), self.in_vgpr(bytes)];
        let pair = self.create(RegClass::V2, &pair);
        let lane = self.lane();
        let place = self.scaled(lane, PAIR_BYTES);
        let state = self.capture_state();
        let mut before = None;
        self.repeat_until(
            |selector| {
                let opcode = Opcode::global_atomic_ordered_add_b64;
                let found = selector.state_atomic(opcode, place, pair, state, 0, Some(RegClass::V2));
                let [turn, count] = selector.words(found);
                before = Some(count);
                selector.salu_compare(Opcode::s_cmp_eq_u32, &[turn, group])
            },
            |selector| selector.add(&NewInst::hw(Opcode::s_sleep, &[], &[Operand::c32(1)])),
        );
        let before = before.unwrap_or(Operand::undef(RegClass::V1));
        let count = |(buffer, _): &(u8, Operand)| {
            self.hw(Opcode::v_readlane_b32, RegClass::S1, &[before, Operand::c32((*buffer).into())])
        };
        needed.iter().map(count).collect()
    }

    fn give_back_memory(&mut self, surplus: &[(u8, Operand)]) {
        let bytes = self.by_buffer(surplus);
        let back = self.vector_sub(Operand::c32(0), bytes);
        let lane = self.lane();
        let place = self.scaled(lane, PAIR_BYTES);
        let state = self.capture_state();
        self.state_atomic(Opcode::global_atomic_add, place, back, state, PAIR_WRITTEN, None);
    }

    /// Adds to the counts of primitives in memory.
    fn count_in_memory(&mut self, counts: &[(u8, [Operand; 2])]) -> Selected<()> {
        let lanes = self.first_lanes(Operand::c32(1));
        self.only_lanes(lanes, |selector| {
            let state = selector.capture_state();
            let none = selector.in_vgpr(Operand::c32(0));
            for (stream, counts) in counts {
                for (number, count) in (0..).zip(counts) {
                    let at = PAIR_COUNTS + (u32::from(*stream) * 2 + number) * COUNT_BYTES;
                    let count = selector.in_vgpr(*count);
                    let count = selector.create(RegClass::V2, &[count, none]);
                    selector.state_atomic(Opcode::global_atomic_add_x2, none, count, state, at, None);
                }
            }
            Ok(())
        })
    }

    fn state_atomic(
        &mut self,
        opcode: Opcode,
        place: Operand,
        data: Operand,
        state: Operand,
        offset: u32,
        returns: Option<RegClass>,
    ) -> Operand {
        let class = returns.unwrap_or(data.class);
        let temp = self.program.make_temp(class);
        let all = [Definition::temp(temp, class)];
        let definitions = if returns.is_some() { &all[..] } else { &[] };
        let operands = [place, data, state];
        let mut new = NewInst::hw(opcode, definitions, &operands);
        let mut mods: Mods = self.access_mods(Access::ATOMIC, false);
        mods.set(Mod::Th, i32::from(returns.is_some()));
        mods.set(Mod::Offset, offset as i32);
        (new.mods, new.payload) = (mods, COUNTERS);
        self.add(&new);
        if returns.is_some() { Operand::temp(temp, class) } else { Operand::undef(class) }
    }
}
