//! Inputs of pixel shaders: attributes, interpolated or of the provoking vertex, and what the hardware gives a pixel.
//!
//! Up to gfx10 an interpolation reads parameters in LDS. Later they are loaded into the lanes of a quad first: into any register where all lanes of the quad are
//! active (at the start of the shader, or outside of divergent constructs), and elsewhere into a linear one.

use super::{Selected, Selector};
use crate::abi::{Argument, PixelInput, PixelProlog};
use crate::ir::{Definition, Operand, PhysReg, Pseudo, RegClass};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_isa::amdgcn::texel::STONEY;
use unwedge_shader::ir::{Base, Inst, InterpAt, Modes, SlotAccess, SystemValue};

/// The codes of P0, P10 and P20 as the vertex of a move.
const VERTICES: [u32; 3] = [2, 0, 1];
/// First bits of the shading rates in x and y among what comes with a pixel.
const RATES: [u32; 2] = [2, 4];
/// The bit of Vulkan's rates for two pixels in x; that for two in y is the first one.
const TWO_IN_X: u32 = 4;
/// First bit and width of the sample among what comes with a pixel.
const SAMPLE: [u32; 2] = [8, 4];

const M0: Operand = Operand::reg(PhysReg::M0, RegClass::S1);

impl Selector<'_> {
    /// `m0` for interpolation.
    pub(in crate::select) fn start_pixels(&mut self) {
        if self.interface.attributes.is_empty() {
            return;
        }
        let mask = self.given(Argument::PrimitiveMask);
        let m0 = Definition::reg(PhysReg::M0, RegClass::S1);
        self.pseudo(Pseudo::ParallelCopy, &[m0], &[mask]);
    }

    /// The end of a prolog: inputs as the hardware or the state of the pipeline has them, in the registers in which the shader expects them. Helper lanes have them, too.
    pub(super) fn leave_pixels(&mut self) {
        let state = self.interface.pixel_prolog;
        let mask = self.program.lane_mask();
        let exec = Definition::reg(PhysReg::EXEC, mask);
        let started = self.make(Pseudo::ParallelCopy, mask, &[self.exec()]);
        let all = self.full_mask(true);
        self.pseudo(Pseudo::ParallelCopy, &[exec], &[all]);
        let mut values = Vec::new();
        for fetched in self.interface.fetched.clone() {
            let Argument::Pixel(input) = fetched.argument else { continue };
            let words = self.changed_input(input, state);
            values.extend((0..).zip(words).map(|(at, word)| (fetched.reg.advance(at * 4), word)));
        }
        let mut left = self.left.take().unwrap_or_default();
        let (mut definitions, mut operands) = (Vec::new(), Vec::new());
        for (reg, word) in values {
            let temp = self.program.make_temp(RegClass::V1);
            definitions.push(Definition::fixed(temp, RegClass::V1, reg));
            operands.push(word);
            left.push(Operand::fixed(temp, RegClass::V1, reg));
        }
        self.pseudo(Pseudo::ParallelCopy, &definitions, &operands);
        self.pseudo(Pseudo::ParallelCopy, &[exec], &[started]);
        self.left = Some(left);
    }

    /// The words of an input of the shader after a prolog.
    fn changed_input(&mut self, input: PixelInput, state: PixelProlog) -> Vec<Operand> {
        let own = self.pixel(state.source(input));
        let own = self.split(own, 1);
        let center = match state.source(input) {
            PixelInput::PerspectiveCentroid => PixelInput::PerspectiveCenter,
            PixelInput::LinearCentroid => PixelInput::LinearCenter,
            PixelInput::SampleCoverage if state.per_sample => {
                let sample = self.sample();
                let bit = self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[sample, Operand::c32(1)]);
                return vec![self.valu(Opcode::v_and_b32, RegClass::V1, &[bit, own[0]])];
            }
            _ => return own,
        };
        if !state.centroid_at_center {
            return own;
        }
        let center = self.pixel(center);
        let center = self.split(center, 1);
        let word = self.given(Argument::PrimitiveMask);
        let covered = [word, Operand::c32(PixelProlog::COVERED | 1 << 16)];
        let [_, covered] = self.salu_scc(Opcode::s_bfe_u32, RegClass::S1, &covered);
        let covered = self.bit_to_mask(covered);
        let choose = |(own, center): (Operand, Operand)| {
            self.valu(Opcode::v_cndmask_b32, RegClass::V1, &[own, center, covered])
        };
        own.into_iter().zip(center).map(choose).collect()
    }

    fn pixel(&self, input: PixelInput) -> Operand {
        let class = RegClass::vgpr(input.dwords());
        self.find_argument(Argument::Pixel(input)).unwrap_or(Operand::undef(class))
    }

    /// A system value of pixel shaders, by lanes; `None` if it is another one.
    pub(in crate::select) fn pixel_value(
        &mut self,
        inst: Inst,
        value: SystemValue,
    ) -> Option<Selected<Vec<Operand>>> {
        let lanes = match value {
            SystemValue::FragCoord => self.fragment_position(inst),
            SystemValue::FrontFacing => {
                let face = self.pixel(PixelInput::FrontFace);
                vec![self.valu_compare(Opcode::v_cmp_lg_u32, &[Operand::c32(0), face])]
            }
            SystemValue::SampleId => vec![self.sample()],
            SystemValue::SampleMaskIn => {
                let covered = self.pixel(PixelInput::SampleCoverage);
                if !self.shader.info.modes.has(Modes::SAMPLE_SHADING) {
                    vec![covered]
                } else {
                    let sample = self.sample();
                    let bit = self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[sample, Operand::c32(1)]);
                    vec![self.valu(Opcode::v_and_b32, RegClass::V1, &[bit, covered])]
                }
            }
            SystemValue::HelperInvocation => {
                let mask = self.program.lane_mask();
                vec![self.make(Pseudo::IsHelper, mask, &[Operand::c32(1)])]
            }
            SystemValue::ShadingRate if self.gfx >= Gfx::Gfx10_3 => vec![self.shading_rate()],
            SystemValue::PullModel => {
                let model = self.pixel(PixelInput::PullModel);
                self.split(model, 1)
            }
            SystemValue::SamplePositions => {
                vec![self.given(Argument::SamplePositions), Operand::c32(self.options.address_high)]
            }
            SystemValue::ViewIndex => vec![self.given(Argument::ViewIndex)],
            SystemValue::PrimitiveId | SystemValue::Layer | SystemValue::ViewportIndex => {
                let slot = value.fragment_slot()?;
                return Some(self.flat_lane(inst, slot, 0).map(|lane| vec![lane]));
            }
            _ => return None,
        };
        Some(Ok(lanes))
    }

    fn sample(&mut self) -> Operand {
        let packed = self.pixel(PixelInput::Ancillary);
        let [first, width] = SAMPLE.map(Operand::c32);
        self.valu(Opcode::v_bfe_u32, RegClass::V1, &[packed, first, width])
    }

    /// The rate as Vulkan has it. The hardware's rates are signed: 1 is two pixels, and those below zero, which are finer than a pixel, count as one pixel.
    fn shading_rate(&mut self) -> Operand {
        let v1 = RegClass::V1;
        let packed = self.pixel(PixelInput::Ancillary);
        let signs = self.valu(Opcode::v_lshrrev_b32, v1, &[Operand::c32(1), packed]);
        let coarse = self.valu(Opcode::v_bfi_b32, v1, &[signs, Operand::c32(0), packed]);
        let [_, y] = RATES.map(Operand::c32);
        let in_y = self.valu(Opcode::v_bfe_u32, v1, &[coarse, y, Operand::c32(1)]);
        let in_x = self.valu(Opcode::v_and_b32, v1, &[Operand::c32(TWO_IN_X), coarse]);
        self.valu(Opcode::v_or_b32, v1, &[in_x, in_y])
    }

    fn fragment_position(&mut self, inst: Inst) -> Vec<Operand> {
        let read = self.read[self.func.result(inst)];
        let inputs =
            [PixelInput::PositionX, PixelInput::PositionY, PixelInput::PositionZ, PixelInput::PositionW];
        let lane = |at: usize| read & 1 << at != 0;
        let mut lanes = Vec::new();
        for (at, input) in inputs.into_iter().enumerate() {
            lanes.push(match (lane(at), input) {
                (false, _) => Operand::undef(RegClass::V1),
                (true, PixelInput::PositionW) => {
                    let w = self.pixel(input);
                    self.valu(Opcode::v_rcp_f32, RegClass::V1, &[w])
                }
                (true, _) => self.pixel(input),
            });
        }
        lanes
    }

    /// Barycentric coordinates.
    pub(super) fn barycentric(&mut self, inst: Inst, at: InterpAt, linear: bool) -> Selected<()> {
        let Some(input) = PixelInput::barycentric(at, linear) else {
            return Err(self.unsupported(inst, Some(at.name())));
        };
        let pair = self.pixel(input);
        let lanes = self.split(pair, 1);
        self.define(self.func.result(inst), &lanes);
        Ok(())
    }

    /// Whether all lanes of a quad are active here if one is.
    fn parameters(&self) -> bool {
        let all_lanes = self.block.is_some_and(|block| self.program.blocks[block].top_level);
        self.gfx < Gfx::Gfx11 || all_lanes
    }

    /// The operand that names a component of an attribute.
    fn attribute(&self, inst: Inst, slot: u16, component: u32) -> Selected<Operand> {
        let number = self.interface.attribute(slot);
        let number = number.ok_or_else(|| self.unsupported(inst, Some("an input that is not numbered")))?;
        Ok(Operand::c32(number * 4 + component))
    }

    /// The parameters of a component in the lanes of each quad.
    fn load_parameters(&mut self, attribute: Operand) -> Operand {
        self.hw(Opcode::lds_param_load, RegClass::V1, &[attribute, M0])
    }

    /// A component where lanes of a quad may be inactive. Its parameters are loaded into a linear register, because they overwrite inactive lanes.
    fn interpolate_apart(&mut self, attribute: Operand, bits: u32, [i, j]: [Operand; 2]) -> Operand {
        let [linear] = self.linear_registers();
        // The result is written before the second coordinate is read.
        let j = Operand { late_kill: true, ..j };
        let operands = [linear, attribute, M0, Operand::c32(bits), i, j];
        self.make(Pseudo::Interpolate, RegClass::V1, &operands)
    }

    /// A component of the provoking vertex.
    fn flat_lane(&mut self, inst: Inst, slot: u16, component: u32) -> Selected<Operand> {
        if self.interface.vertex_attributes.contains(&slot) {
            return Err(
                self.unsupported(inst, Some("beside one that the shader interpolates at the same location"))
            );
        }
        self.vertex_lane(inst, slot, component, 0)
    }

    /// A component of one of the three vertices. Of an attribute that is not read by vertex, only that of the first one is as it was stored.
    fn vertex_lane(&mut self, inst: Inst, slot: u16, component: u32, vertex: u8) -> Selected<Operand> {
        let attribute = self.attribute(inst, slot, component)?;
        if self.gfx < Gfx::Gfx11 {
            let code = Operand::c32(VERTICES[usize::from(vertex)]);
            return Ok(self.hw(Opcode::v_interp_mov_f32, RegClass::V1, &[code, attribute, M0]));
        }
        // The lowering has moved these loads to the start.
        if !self.parameters() {
            return Err(self.unsupported(inst, Some("where lanes of the quad may be inactive")));
        }
        let parameters = self.load_parameters(attribute);
        Ok(self.in_quad(parameters, [vertex.into(); 4]))
    }

    /// Loads components of the provoking vertex, or of one that a constant chooses.
    pub(super) fn load_flat(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let func = self.func;
        let result = func.result(inst);
        let ty = func.ty(result);
        let vertex = access.vertex.then(|| func.const_bits(func.args(inst)[0]));
        let vertex = match vertex {
            None => None,
            Some(Some(number @ 0..3)) => Some(number as u8),
            Some(_) => return Err(self.unsupported(inst, Some("of a vertex that is not a constant"))),
        };
        if ty.base == Base::B64 {
            return Err(self.unsupported(inst, Some("of this width")));
        }
        let slot = self.slot_of(inst, access, access.vertex.into())?;
        let mut lanes = Vec::new();
        for lane in 0..u32::from(ty.lanes) {
            let component = u32::from(access.component) + lane;
            lanes.push(match vertex {
                Some(vertex) => self.vertex_lane(inst, slot, component, vertex)?,
                None => self.flat_lane(inst, slot, component)?,
            });
        }
        self.define(result, &lanes);
        Ok(())
    }

    /// Loads and interpolates components.
    pub(super) fn load_interpolated(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let func = self.func;
        let result = func.result(inst);
        let ty = func.ty(result);
        let half = ty.base == Base::B16;
        // Before gfx8 the hardware interpolates 32 bits only.
        if ty.base != Base::B32 && !(half && self.gfx >= Gfx::Gfx8) {
            return Err(self.unsupported(inst, Some("of this width")));
        }
        let slot = self.slot_of(inst, access, 1)?;
        if half != self.interface.half_attributes.contains(&slot) {
            return Err(self.unsupported(inst, Some("beside one of 16 bits at the same location")));
        }
        let coordinates = self.value(func.args(inst)[0]).to_vec();
        let [i, j] = [0, 1].map(|at| coordinates.get(at).copied().unwrap_or(Operand::undef(RegClass::V1)));
        let [i, j] = [i, j].map(|place| self.in_vgpr(place));
        let mut lanes = Vec::new();
        for lane in 0..u32::from(ty.lanes) {
            let attribute = self.attribute(inst, slot, u32::from(access.component) + lane)?;
            lanes.push(if half {
                self.interpolated_half(attribute, [i, j])
            } else if self.gfx < Gfx::Gfx11 {
                let first = self.hw(Opcode::v_interp_p1_f32, RegClass::V1, &[i, attribute, M0]);
                self.hw(Opcode::v_interp_p2_f32, RegClass::V1, &[j, attribute, first, M0])
            } else if !self.parameters() {
                self.interpolate_apart(attribute, 32, [i, j])
            } else {
                let parameters = self.load_parameters(attribute);
                let first = self.hw(Opcode::v_interp_p10_f32, RegClass::V1, &[parameters, i, parameters]);
                self.hw(Opcode::v_interp_p2_f32_vinterp, RegClass::V1, &[parameters, j, first])
            });
        }
        self.define(result, &lanes);
        Ok(())
    }

    /// A component of 16 bits, whose parameters are in the lower halves of words. Sums have 32 bits up to the last step.
    fn interpolated_half(&mut self, attribute: Operand, [i, j]: [Operand; 2]) -> Operand {
        use Opcode as O;
        let v1 = RegClass::V1;
        if self.gfx >= Gfx::Gfx11 {
            if !self.parameters() {
                return self.interpolate_apart(attribute, 16, [i, j]);
            }
            let parameters = self.load_parameters(attribute);
            let first = self.hw(O::v_interp_p10_f16_f32, v1, &[parameters, i, parameters]);
            return self.hw(O::v_interp_p2_f16_f32, v1, &[parameters, j, first]);
        }
        // An LDS of 16 banks does not give two parameters at once.
        let first = if self.program.gpu.version() == STONEY {
            let start = self.hw(O::v_interp_mov_f32, v1, &[Operand::c32(VERTICES[0]), attribute, M0]);
            self.hw(O::v_interp_p1lv_f16, v1, &[i, attribute, start, M0])
        } else {
            self.hw(O::v_interp_p1ll_f16, v1, &[i, attribute, M0])
        };
        let last = if self.gfx == Gfx::Gfx8 { O::v_interp_p2_legacy_f16 } else { O::v_interp_p2_f16 };
        self.hw(last, v1, &[j, attribute, first, M0])
    }
}
