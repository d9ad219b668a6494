//! What a stage leaves at its end: positions, parameters, colours, depth.
//!
//! The last export of a kind is marked as done. From gfx11 on parameters are stored in the attribute ring, and positions are exported after those
//! stores have completed.

use super::{Selected, Selector, SlotValues};
use crate::abi::{Argument, ColourOutput, DepthOutput};
use crate::compile::CompileError;
use crate::graphics::{HalfColour, TARGETS, TargetFormat};
use crate::ir::{Memory, NewInst, Operand, Payload, PhysReg, RegClass};
use crate::stages::HardwareStage;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Opcode, Reg};
use unwedge_shader::ir::{Access, Builtin, FIRST_LOCATION_SLOT, MemoryKinds, Stage};

/// Codes of targets.
const MRTZ: u32 = 8;
const NULL: u32 = 9;
const POSITION: u32 = 12;
const PARAMETER: u32 = 32;
/// The first of the two export targets for dual-source blending, from gfx11 on.
const BLEND_SOURCES: u32 = 21;
/// The even lanes of 32.
const EVEN_LANES: u32 = 0x5555_5555;
/// The bits of Vulkan's shading rates in x and y, and the first bits of those of the hardware.
const RATES: [(u32, u32); 2] = [(12, 2), (3, 4)];
/// Parameters of a vertex.
const PARAMETERS: usize = 32;
/// Distances to clip and cull planes that the hardware takes.
const DISTANCES: usize = 8;
/// The bits of 1.0.
pub(super) const ONE: u32 = 0x3f80_0000;
/// Where the descriptor of the attribute ring is among those of the rings, in bytes.
const ATTRIBUTE_RING: u32 = 7 * 16;
/// Bits of the register with the place in the attribute ring, which counts in units of 512 bytes.
const RING_OFFSET: (u32, u32) = (0x7fff, 9);
/// The stride of a descriptor is from bit 16 of its second word on.
const STRIDE: u32 = 16;

/// An export.
#[derive(Debug, Clone, Copy)]
pub(super) struct Export {
    target: u32,
    values: SlotValues,
    /// Components that are enabled.
    enabled: i32,
    compressed: bool,
}

impl Export {
    fn of(target: u32, values: SlotValues) -> Export {
        let enabled = values.iter().enumerate();
        let enabled = enabled.fold(0, |all, (at, value)| all | i32::from(value.is_some()) << at);
        Export { target, values, enabled, compressed: false }
    }

    /// An export of a position.
    pub(super) fn position(values: SlotValues) -> Export {
        Export::of(POSITION, values)
    }

    /// An export of one component.
    pub(super) fn one(target: u32, value: Operand) -> Export {
        Export::of(target, [Some(value), None, None, None])
    }
}

impl Selector<'_> {
    /// Writes exports one after the other. The one with the index `last` is marked as done; with `valid`, inactive lanes are not valid pixels.
    pub(super) fn export(&mut self, exports: &[Export], last: usize, valid: bool) {
        let exports: Vec<(Export, [Operand; 4])> =
            exports.iter().map(|export| (*export, self.export_sources(export))).collect();
        let before_gfx11 = self.gfx < Gfx::Gfx11;
        for (number, (export, sources)) in exports.iter().enumerate() {
            let operands = [Operand::c32(export.target), sources[0], sources[1], sources[2], sources[3]];
            let mut new = NewInst::hw(Opcode::exp, &[], &operands);
            // What is undefined is left as it is.
            let enabled = (0..4).filter(|at| {
                let source = if export.compressed { at / 2 } else { *at };
                !sources[source].is_undef()
            });
            let enabled = enabled.fold(0, |all, at| all | 1 << at);
            new.mods.set(Mod::En, enabled & export.enabled);
            new.mods.set(Mod::Done, i32::from(number == last));
            new.mods.set(Mod::Vm, i32::from(valid && number == last && before_gfx11));
            new.mods.set(Mod::Compr, i32::from(export.compressed && before_gfx11));
            self.add(&new);
        }
    }

    /// The registers of an export, before any export is written.
    fn export_sources(&mut self, export: &Export) -> [Operand; 4] {
        export.values.map(|value| {
            let value = value.filter(|value| !value.is_undef()).map(|value| self.in_vgpr(value));
            value.unwrap_or(Operand::undef(RegClass::V1))
        })
    }

    /// The end of a stage: exports, or stores for the next one.
    pub(in crate::select) fn export_outputs(&mut self) -> Selected<()> {
        use HardwareStage as H;
        let stage = self.shader.info.stage;
        if self.interface.prolog {
            match self.interface.hardware {
                Some(H::Ps) => self.leave_pixels(),
                _ => self.leave_attributes(),
            }
            return Ok(());
        }
        match self.interface.hardware.filter(|_| !self.interface.explicit) {
            Some(H::Ps) => return self.export_pixels(),
            Some(H::Hs | H::LsHs) if stage == Stage::TessControl => return self.write_factors(),
            Some(H::Ls | H::LsHs) => {
                let vertex = self.local_vertex();
                let slots = if self.passes_on() { &self.interface.passed } else { &self.interface.outputs };
                self.store_vertex_local(&slots.clone(), vertex);
            }
            Some(_) if stage == Stage::Geometry => {}
            Some(H::Ngg) if self.interface.culls && self.passes_on() => self.store_culled_position(),
            Some(H::EsGs | H::Ngg) if self.passes_on() => {
                let vertex = self.group_vertex();
                self.store_vertex_local(&self.interface.passed.clone(), vertex);
            }
            Some(H::Es) => self.store_vertex_ring(&self.interface.outputs.clone()),
            Some(H::Vs) => {
                self.capture_outputs(0)?;
                return self.export_vertex();
            }
            Some(H::Ngg) => {
                self.stage_captured();
                return self.export_vertex();
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether another shader follows in the program.
    fn passes_on(&self) -> bool {
        self.part + 1 < self.part_count
    }

    /// The vertex in its workgroup before tessellation.
    fn local_vertex(&mut self) -> Operand {
        match self.find_argument(Argument::RelativeVertex) {
            Some(vertex) => vertex,
            None => self.group_vertex(),
        }
    }

    fn output(&self, slot: u16, component: usize) -> Option<Operand> {
        self.outputs.get(&(slot, 0)).and_then(|values| values[component])
    }

    fn builtin(&self, builtin: Builtin) -> Option<Operand> {
        self.output(builtin.slots().start, 0)
    }

    pub(super) fn export_vertex(&mut self) -> Selected<()> {
        if self.interface.parameters.len() > PARAMETERS {
            return Err(CompileError::Interface("more than 32 outputs that fragments may read"));
        }
        if self.gfx >= Gfx::Gfx11 {
            self.store_parameters();
        }
        let mut positions = vec![self.position()];
        positions.extend(self.miscellaneous()?);
        let distances = self.distances()?;
        positions.extend(
            distances.chunks(4).map(|part| std::array::from_fn(|at| part.get(at).copied().flatten())),
        );
        let last = positions.len() - 1;
        let mut exports: Vec<Export> =
            (POSITION..).zip(positions).map(|(target, values)| Export::of(target, values)).collect();
        if self.gfx < Gfx::Gfx11 {
            let numbers = 0..self.interface.parameters.len();
            exports
                .extend(numbers.map(|number| Export::of(PARAMETER + number as u32, self.parameter(number))));
        }
        self.export(&exports, last, false);
        Ok(())
    }

    fn parameter(&self, number: usize) -> SlotValues {
        self.outputs.get(&(self.interface.parameters[number], 0)).copied().unwrap_or_default()
    }

    pub(super) fn position(&self) -> SlotValues {
        let stored = self.outputs.get(&(Builtin::Position.slots().start, 0)).copied();
        stored.unwrap_or([0, 0, 0, ONE].map(|bits| Some(Operand::c32(bits))))
    }

    /// Size of points, shading rate, layer and viewport.
    fn miscellaneous(&mut self) -> Selected<Option<SlotValues>> {
        let rate = match self.builtin(Builtin::PrimitiveShadingRate) {
            Some(_) if self.gfx < Gfx::Gfx10_3 => {
                return Err(CompileError::Interface("the shading rate of primitives, before gfx10.3,"));
            }
            rate => rate.map(|rate| self.shading_rate_of(rate)),
        };
        let size = self.builtin(Builtin::PointSize);
        let (layer, mut viewport) = (self.builtin(Builtin::Layer), self.builtin(Builtin::ViewportIndex));
        let mut third = layer;
        if self.gfx >= Gfx::Gfx9
            && let Some(number) = viewport.take()
        {
            let shifted = self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[Operand::c32(16), number]);
            third = Some(match layer {
                Some(layer) => self.valu(Opcode::v_or_b32, RegClass::V1, &[shifted, layer]),
                None => shifted,
            });
        }
        let values = [size, rate, third, viewport];
        Ok(values.iter().any(Option::is_some).then_some(values))
    }

    /// The hardware shading rate for one of Vulkan: two pixels in a direction are the coarsest.
    fn shading_rate_of(&mut self, rate: Operand) -> Operand {
        let v1 = RegClass::V1;
        let [x, y] = RATES.map(|(mask, bit)| {
            let wide = self.valu(Opcode::v_and_b32, v1, &[Operand::c32(mask), rate]);
            let wide = self.valu(Opcode::v_min_u32, v1, &[Operand::c32(mask & mask.wrapping_neg()), wide]);
            self.shifted_left(wide, bit - mask.trailing_zeros())
        });
        self.valu(Opcode::v_or_b32, v1, &[x, y])
    }

    /// Distances to clip planes, then to cull planes.
    fn distances(&self) -> Selected<Vec<Option<Operand>>> {
        let mut all = Vec::new();
        for builtin in [Builtin::ClipDistance, Builtin::CullDistance] {
            let slots = builtin.slots();
            let stored = slots.flat_map(|slot| (0..4).map(move |component| (slot, component)));
            let mut own: Vec<Option<Operand>> =
                stored.map(|(slot, component)| self.output(slot, component)).collect();
            let count = own.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            own.truncate(count);
            all.extend(own);
        }
        if all.len() > DISTANCES {
            return Err(CompileError::Interface("more than 8 distances to planes"));
        }
        Ok(all)
    }

    /// Stores parameters in the attribute ring: an element of the ring is a vertex.
    fn store_parameters(&mut self) {
        let count = self.interface.parameters.len();
        if count == 0 {
            return;
        }
        let rings = self.find_argument(Argument::RingOffsets).unwrap_or(Operand::undef(RegClass::S2));
        let at = self.smem_offset(Operand::c32(ATTRIBUTE_RING));
        let ring = self.smem(Opcode::s_load_dwordx4, RegClass::sgpr(4), rings, at);
        let mut words = self.split(ring, 1);
        let stride = Operand::c32((count as u32 * 16) << STRIDE);
        words[1] = self.salu(Opcode::s_or_b32, RegClass::S1, &[words[1], stride]);
        let ring = self.create(RegClass::sgpr(4), &words);
        let place = self.given(Argument::AttributeRing);
        let place = self.salu(Opcode::s_and_b32, RegClass::S1, &[place, Operand::c32(RING_OFFSET.0)]);
        let place = self.salu(Opcode::s_lshl_b32, RegClass::S1, &[place, Operand::c32(RING_OFFSET.1)]);
        let vertex = self.group_vertex();
        for number in 0..count {
            let values = self.parameter(number);
            let values =
                values.map(|value| value.filter(|value| !value.is_undef()).unwrap_or(Operand::c32(0)));
            let data = self.create(RegClass::vgpr(4), &values);
            let operands = [data, vertex, ring, place];
            let mut new = NewInst::hw(Opcode::buffer_store_dwordx4, &[], &operands);
            new.mods.set(Mod::Idxen, 1);
            new.mods.set(Mod::Offset, number as i32 * 16);
            if self.gfx >= Gfx::Gfx12 {
                new.mods.set(Mod::Scope, 2);
            } else {
                new.mods.set(Mod::Glc, 1);
            }
            let access = Access::COHERENT;
            new.payload = Payload::Memory(Memory { kinds: MemoryKinds::OUTPUTS, access, private: false });
            self.add(&new);
        }
        if self.gfx >= Gfx::Gfx12 {
            self.add(&NewInst::hw(Opcode::s_wait_storecnt, &[], &[Operand::c32(0)]));
        } else {
            let null = Operand::reg(PhysReg::of(Reg::NULL), RegClass::S1);
            self.add(&NewInst::hw(Opcode::s_waitcnt_vscnt, &[], &[null, Operand::c32(0)]));
        }
    }

    fn export_pixels(&mut self) -> Selected<()> {
        if self.options.graphics.epilog {
            if self.interface.colours.len() > TARGETS {
                return Err(CompileError::Interface("a colour output past the eighth"));
            }
            self.leave_colours();
            return Ok(());
        }
        let mut exports: Vec<Export> = self.depth().into_iter().collect();
        let first = self.outputs.get(&(FIRST_LOCATION_SLOT, 0)).copied();
        let second = self.outputs.get(&(FIRST_LOCATION_SLOT, 1)).copied();
        let swizzles = second.is_some() && self.gfx >= Gfx::Gfx11;
        for ((slot, index), values) in self.outputs.clone() {
            let Some(location) = slot.checked_sub(FIRST_LOCATION_SLOT) else { continue };
            let target = u32::from(location) + u32::from(index);
            if index > 0 && (location > 0 || self.outputs.contains_key(&(FIRST_LOCATION_SLOT + 1, 0))) {
                return Err(CompileError::Interface("a second source of blending beside another colour"));
            }
            let Some(format) = self.options.graphics.targets.get(target as usize) else {
                return Err(CompileError::Interface("a colour output past the eighth"));
            };
            if !swizzles || location > 0 {
                let half = self.is_half(location, index);
                exports.extend(self.colour(target, *format, values, half));
            }
        }
        if let Some(second) = second.filter(|_| swizzles) {
            let format = self.options.graphics.targets[0];
            let sources = [(first.unwrap_or_default(), 0), (second, 1)].map(|(values, index)| {
                let half = self.is_half(0, index);
                self.colour(0, format, values, half)
            });
            if let [Some(first), Some(second)] = sources {
                exports.extend(self.blend_sources(first.values, second.values));
            }
        }
        if exports.is_empty() {
            // Later GPUs do not have the null target.
            let target = if self.gfx >= Gfx::Gfx11 { 0 } else { NULL };
            exports.push(Export::of(target, [None; 4]));
        }
        self.export(&exports, exports.len() - 1, true);
        Ok(())
    }

    /// Exports of both sources of dual-source blending for gfx11 and later: the first target has the sources of even lanes, the second those of odd lanes, each with the
    /// first source in the even lane of a pair and the second one in the odd lane.
    fn blend_sources(&mut self, first: SlotValues, second: SlotValues) -> [Export; 2] {
        const SWAPPED: [i32; 4] = [1, 0, 3, 2];
        let v1 = RegClass::V1;
        let half = self.copy(RegClass::S1, Operand::c32(EVEN_LANES));
        let mask = self.program.lane_mask();
        let even = self.create(mask, &[half, half][..usize::from(mask.dwords())]);
        let mut exported = [SlotValues::default(); 2];
        for (at, sources) in first.into_iter().zip(second).enumerate() {
            if sources.0.is_none() && sources.1.is_none() {
                continue;
            }
            let [a, b] = [sources.0, sources.1].map(|source| {
                let source = source.filter(|source| !source.is_undef()).unwrap_or(Operand::c32(0));
                self.in_vgpr(source)
            });
            let [other_a, other_b] = [a, b].map(|source| self.in_quad(source, SWAPPED));
            exported[0][at] = Some(self.valu(Opcode::v_cndmask_b32, v1, &[other_b, a, even]));
            exported[1][at] = Some(self.valu(Opcode::v_cndmask_b32, v1, &[b, other_a, even]));
        }
        let [first, second] = exported;
        [Export::of(BLEND_SOURCES, first), Export::of(BLEND_SOURCES + 1, second)]
    }

    /// Keeps colours and the depth for the epilog, which finds them in vector registers. It exports the depth, too, because the last export has to say that it is the last, and the shader does not
    /// know whether any colour follows.
    fn leave_colours(&mut self) {
        let mut values: Vec<(u16, Operand)> = Vec::new();
        for (number, colour) in self.interface.colours.clone().into_iter().enumerate() {
            let slot = FIRST_LOCATION_SLOT.wrapping_add(colour.location);
            let own = self.outputs.get(&(slot, colour.index)).copied().unwrap_or_default();
            for (component, value) in (0..).zip(own) {
                values.extend(value.map(|value| (ColourOutput::register(number, component), value)));
            }
        }
        for output in DepthOutput::ALL {
            let register = output.register(self.interface.colours.len());
            values.extend(self.builtin(output.builtin()).map(|value| (register, value)));
        }
        let mut left = Vec::new();
        for (register, value) in values.into_iter().filter(|(_, value)| !value.is_undef()) {
            let value = self.in_vgpr(value);
            let reg = PhysReg::vgpr(register as u8);
            left.extend(value.as_temp().map(|temp| Operand::fixed(temp, RegClass::V1, reg)));
        }
        self.left = Some(left);
    }

    /// Depth, stencil reference and sample mask.
    fn depth(&mut self) -> Option<Export> {
        let [depth, stencil, samples] = DepthOutput::ALL.map(|output| self.builtin(output.builtin()));
        if depth.is_none() && stencil.is_none() && samples.is_none() {
            return None;
        }
        // gfx6 looks at the first component only to know whether there is anything.
        let first = depth.or((self.gfx == Gfx::Gfx6).then_some(Operand::c32(0)));
        Some(Export::of(MRTZ, [first, stencil, samples, None]))
    }

    /// Whether a colour has components of 16 bits.
    fn is_half(&self, location: u16, index: u8) -> bool {
        let mut colours = self.interface.colours.iter();
        colours.any(|colour| colour.half && (colour.location, colour.index) == (location, index))
    }

    /// Numbers of 16 bits in 32 bits.
    fn widened(&mut self, values: SlotValues, numbers: HalfColour) -> SlotValues {
        let v1 = RegClass::V1;
        values.map(|value| {
            let value = value.filter(|value| !value.is_undef())?;
            Some(match numbers {
                HalfColour::Float => self.valu(Opcode::v_cvt_f32_f16, v1, &[value]),
                HalfColour::Uint => self.valu(Opcode::v_and_b32, v1, &[Operand::c32(0xffff), value]),
                HalfColour::Sint => {
                    self.valu(Opcode::v_bfe_i32, v1, &[value, Operand::c32(0), Operand::c32(16)])
                }
            })
        })
    }

    /// A colour in the format of its attachment.
    fn colour(
        &mut self,
        target: u32,
        format: TargetFormat,
        values: SlotValues,
        half: bool,
    ) -> Option<Export> {
        use TargetFormat as F;
        let numbers = self.options.graphics.half_colours.get(target as usize).copied().unwrap_or_default();
        let values = match format {
            F::Abgr32 | F::R32 | F::Gr32 | F::Ar32 if half => self.widened(values, numbers),
            _ => values,
        };
        let [r, g, b, a] = values;
        let opcode = match format {
            TargetFormat::Absent => return None,
            TargetFormat::Abgr32 => return Some(Export::of(target, values)),
            TargetFormat::R32 => return Some(Export::of(target, [r, None, None, None])),
            TargetFormat::Gr32 => return Some(Export::of(target, [r, g, None, None])),
            TargetFormat::Ar32 if self.gfx >= Gfx::Gfx10 => {
                return Some(Export::of(target, [r, a, None, None]));
            }
            TargetFormat::Ar32 => return Some(Export::of(target, [r, None, None, a])),
            TargetFormat::Fp16 => Opcode::v_cvt_pkrtz_f16_f32,
            TargetFormat::Unorm16 => Opcode::v_cvt_pknorm_u16_f32,
            TargetFormat::Snorm16 => Opcode::v_cvt_pknorm_i16_f32,
            TargetFormat::Uint16 => Opcode::v_cvt_pk_u16_u32,
            TargetFormat::Sint16 => Opcode::v_cvt_pk_i16_i32,
        };
        let mut pack = |low: Option<Operand>, high: Option<Operand>| {
            if low.is_none() && high.is_none() {
                return None;
            }
            let parts =
                [low, high].map(|part| part.filter(|part| !part.is_undef()).unwrap_or(Operand::c32(0)));
            let normalized = matches!(format, TargetFormat::Unorm16 | TargetFormat::Snorm16);
            if half && !normalized {
                let word = self.join(&parts, 16, true);
                return Some(self.in_vgpr(word));
            }
            let parts = match half {
                true => parts.map(|part| self.valu(Opcode::v_cvt_f32_f16, RegClass::V1, &[part])),
                false => parts,
            };
            Some(self.valu(opcode, RegClass::V1, &parts))
        };
        let (low, high) = (pack(r, g), pack(b, a));
        Some(if self.gfx >= Gfx::Gfx11 {
            Export::of(target, [low, high, None, None])
        } else {
            let enabled = (i32::from(low.is_some()) * 3) | (i32::from(high.is_some()) * 12);
            Export { target, values: [low, high, None, None], enabled, compressed: true }
        })
    }
}
