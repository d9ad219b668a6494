//! System values and descriptors: what comes from the arguments of the program.

use super::{Selected, Selector};
use crate::abi::{Argument, descriptor_bytes, descriptor_offset, is_image};
use crate::compile::CompileError;
use crate::ir::{Operand, PhysReg, Pseudo, RegClass};
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_isa::amdgcn::{Opcode, Reg};
use unwedge_shader::ir::{Inst, Resource, ResourceClass, Scope, Stage, SystemValue};

/// From gfx12 on, `ttmp9` has the workgroup along x, and `ttmp7` those along the other two axes, of 16 bits each.
const GROUP_X: PhysReg = PhysReg::of(Reg(Reg::TTMP0.0 + 9));
const GROUP_YZ: PhysReg = PhysReg::of(Reg(Reg::TTMP0.0 + 7));
/// Bytes from the descriptor of an image to that of its sampler.
const SAMPLER_AFTER_IMAGE: u32 = 64;

/// The message that asks for the time (`MSG_RTN_GET_REALTIME`).
const GET_REALTIME: u32 = 131;

impl Selector<'_> {
    /// The time of a clock: that of the device, or that of the shader core, which is the one of the device from gfx11 on. Each lane keeps what its wave has read.
    pub(super) fn clock(&mut self, inst: Inst, scope: Scope) -> Selected<()> {
        let device = matches!(scope, Scope::Device | Scope::QueueFamily);
        let time = match self.gfx {
            Gfx::Gfx6 | Gfx::Gfx7 if device => {
                return Err(self.unsupported(inst, Some("of the device, before gfx8")));
            }
            gfx if gfx >= Gfx::Gfx11 => {
                let message = Operand::c32(GET_REALTIME);
                self.hw(Opcode::s_sendmsg_rtn_b64, RegClass::sgpr(2), &[message])
            }
            _ if device => self.hw(Opcode::s_memrealtime, RegClass::sgpr(2), &[]),
            _ => self.hw(Opcode::s_memtime, RegClass::sgpr(2), &[]),
        };
        let words: Vec<Operand> = self.split(time, 1).into_iter().map(|word| self.in_vgpr(word)).collect();
        self.define(self.func.result(inst), &words);
        Ok(())
    }

    fn argument(&self, argument: Argument, class: RegClass) -> Operand {
        self.find_argument(argument).unwrap_or(Operand::undef(class))
    }

    /// An argument, if the program has it.
    pub(super) fn find_argument(&self, argument: Argument) -> Option<Operand> {
        self.args.get(&argument).map(|temp| Operand::temp(*temp, self.program.class(*temp)))
    }

    fn workgroup_id(&mut self, axis: u8) -> Operand {
        if self.gfx < Gfx::Gfx12 {
            return self.argument(Argument::WorkgroupId(axis), RegClass::S1);
        }
        let reg = if axis == 0 { GROUP_X } else { GROUP_YZ };
        let word = self.make(Pseudo::ParallelCopy, RegClass::S1, &[Operand::reg(reg, RegClass::S1)]);
        match axis {
            0 => word,
            1 => self.salu(Opcode::s_and_b32, RegClass::S1, &[word, Operand::c32(0xffff)]),
            _ => self.salu(Opcode::s_lshr_b32, RegClass::S1, &[word, Operand::c32(16)]),
        }
    }

    fn local_id(&mut self, axis: u8) -> Operand {
        let size = self.shader.info.workgroup_size;
        if size[usize::from(axis)] == 1 {
            return Operand::c32(0);
        }
        if self.gfx < Gfx::Gfx11 {
            return self.argument(Argument::LocalId(axis), RegClass::V1);
        }
        let packed = self.argument(Argument::LocalIdsPacked, RegClass::V1);
        if axis == 0 && size[1] == 1 && size[2] == 1 {
            return packed;
        }
        let field = [packed, Operand::c32(u32::from(axis) * 10), Operand::c32(10)];
        self.valu(Opcode::v_bfe_u32, RegClass::V1, &field)
    }

    /// The invocation in its workgroup as one number.
    fn local_index(&mut self) -> Operand {
        let [x, y, _] = self.shader.info.workgroup_size;
        let [mut index, second, third] = [0, 1, 2].map(|axis| self.local_id(axis));
        for (id, stride) in [(second, x), (third, x.wrapping_mul(y))] {
            if id.as_const() != Some(0) {
                let scaled = self.valu(Opcode::v_mul_lo_u32, RegClass::V1, &[id, Operand::c32(stride)]);
                index = self.vector_add(index, scaled);
            }
        }
        index
    }

    /// The number of the lane in its wave.
    pub(super) fn lane(&mut self) -> Operand {
        let all = Operand::c32(u32::MAX);
        let low = self.valu(Opcode::v_mbcnt_lo_u32_b32, RegClass::V1, &[all, Operand::c32(0)]);
        if !self.program.gpu.wave64() {
            return low;
        }
        self.valu(Opcode::v_mbcnt_hi_u32_b32, RegClass::V1, &[all, low])
    }

    pub(super) fn wave_size(&self) -> u32 {
        self.program.gpu.lanes()
    }

    /// Selects a system value.
    pub(super) fn system_value(&mut self, inst: Inst, value: SystemValue) -> Selected<()> {
        use SystemValue as V;
        let size = self.shader.info.workgroup_size;
        let result = self.func.result(inst);
        let read = self.read[result];
        let is_read = |axis: u8| read & 1 << axis != 0;
        let lanes: Vec<Operand> = match value {
            V::NumWorkgroups => (0..3)
                .map(|axis| match &self.kernel {
                    Some(_) if is_read(axis) => self.block_count(axis),
                    _ => self.argument(Argument::NumWorkgroups(axis), RegClass::S1),
                })
                .collect(),
            V::WorkgroupId => (0..3)
                .map(|axis| match is_read(axis) {
                    true => self.workgroup_id(axis),
                    false => Operand::undef(RegClass::S1),
                })
                .collect(),
            V::WorkgroupSize => size.map(Operand::c32).to_vec(),
            V::LocalInvocationId => (0..3).map(|axis| self.local_id(axis)).collect(),
            V::LocalInvocationIndex => vec![self.local_index()],
            V::GlobalInvocationId => (0..3)
                .map(|axis| {
                    if !is_read(axis) {
                        return Operand::undef(RegClass::V1);
                    }
                    let group = self.workgroup_id(axis);
                    let first = match size[usize::from(axis)] {
                        1 => group,
                        size => self.salu(Opcode::s_mul_i32, RegClass::S1, &[group, Operand::c32(size)]),
                    };
                    match self.local_id(axis) {
                        local if local.as_const() == Some(0) => first,
                        local => self.vector_add(first, local),
                    }
                })
                .collect(),
            V::SubgroupSize => vec![Operand::c32(self.wave_size())],
            V::SubgroupInvocation => vec![self.lane()],
            V::NumSubgroups => vec![Operand::c32(self.shader.info.invocations().div_ceil(self.wave_size()))],
            V::SubgroupId => {
                let index = self.local_index();
                let shift = Operand::c32(self.wave_size().trailing_zeros());
                let number = match index.as_const() {
                    Some(_) => Operand::c32(0),
                    None => self.valu(Opcode::v_lshrrev_b32, RegClass::V1, &[shift, index]),
                };
                vec![self.in_scalar(number)]
            }
            _ => match self.shader.info.stage {
                Stage::TessControl | Stage::TessEval | Stage::Geometry => match self.primitive_value(value) {
                    Some(lanes) => lanes,
                    None => return Err(CompileError::SystemValue(value)),
                },
                Stage::Vertex => match self.vertex_value(value) {
                    Some(lane) => vec![lane],
                    None => return Err(CompileError::SystemValue(value)),
                },
                Stage::Fragment => match self.pixel_value(inst, value) {
                    Some(lanes) => lanes?,
                    None => return Err(CompileError::SystemValue(value)),
                },
                _ => return Err(CompileError::SystemValue(value)),
            },
        };
        self.define(result, &lanes);
        Ok(())
    }

    /// The address of a descriptor set, and the offset of the descriptors of a binding in it.
    fn set_descriptors(&mut self, set: u32, binding: u32) -> Option<(Operand, u32)> {
        let low = self.find_argument(Argument::DescriptorSet(set))?;
        let first = descriptor_offset(self.shader, set, binding)?;
        Some((self.create(RegClass::S2, &[low, Operand::c32(self.options.address_high)]), first))
    }

    /// The descriptors of a resource: words of its set, or arguments of a kernel.
    pub(super) fn descriptor(&mut self, inst: Inst, resource: Resource) -> Selected<()> {
        let data = &self.shader.resources[resource];
        let (set, binding) = (data.set, data.binding);
        if let Some(buffer) = self.kernel_buffer(set, binding) {
            self.define(self.func.result(inst), &[buffer]);
            return Ok(());
        }
        let place = match &self.kernel {
            Some(_) => self.kernel_descriptors(set, binding).map(|address| (address, 0)),
            None => self.set_descriptors(set, binding),
        };
        let Some((address, first)) = place else { return Err(CompileError::Descriptor { set, binding }) };
        let size = descriptor_bytes(data.class);
        let index = self.func.args(inst).first().copied();
        let offset = match index.filter(|_| data.count != 1) {
            None => Operand::c32(first),
            Some(index) if self.divergence.is_divergent(index) => {
                return Err(self.unsupported(inst, Some("by an index that differs between lanes")));
            }
            Some(index) => match self.scalar(index) {
                index if index.is_undef() => Operand::c32(first),
                index => match index.as_const() {
                    Some(index) => Operand::c32((index as u32).wrapping_mul(size).wrapping_add(first)),
                    None => {
                        let scaled = self.salu(Opcode::s_mul_i32, RegClass::S1, &[index, Operand::c32(size)]);
                        self.salu(Opcode::s_add_u32, RegClass::S1, &[scaled, Operand::c32(first)])
                    }
                },
            },
        };
        let (eight, four) = (Opcode::s_load_dwordx8, Opcode::s_load_dwordx4);
        let parts: &[(u32, Opcode, u8)] = match data.class {
            ResourceClass::CombinedImageSampler => &[(0, eight, 8), (SAMPLER_AFTER_IMAGE, four, 4)],
            class if is_image(class) => &[(0, eight, 8)],
            _ => &[(0, four, 4)],
        };
        let mut lanes = Vec::new();
        for &(after, opcode, dwords) in parts {
            let place = match offset.as_const() {
                Some(bytes) => Operand::c32((bytes as u32).wrapping_add(after)),
                None if after == 0 => offset,
                None => self.salu(Opcode::s_add_u32, RegClass::S1, &[offset, Operand::c32(after)]),
            };
            let place = self.smem_offset(place);
            lanes.push(self.smem(opcode, RegClass::sgpr(dwords), address, place));
        }
        self.define(self.func.result(inst), &lanes);
        Ok(())
    }

    /// The size of a buffer: the third word of its descriptor, whose stride is 0.
    pub(super) fn buffer_size(&mut self, inst: Inst) -> Selected<()> {
        let handle = self.scalar(self.func.args(inst)[0]);
        let handle = self.in_sgpr(handle);
        let size = self.split(handle, 1).get(2).copied().unwrap_or(Operand::undef(RegClass::S1));
        self.define(self.func.result(inst), &[size]);
        Ok(())
    }
}
