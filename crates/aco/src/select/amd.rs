//! Operations of the shader IR that stand for instructions: what registers hold at the start, descriptors as words, exports, messages.

use super::image::with_address;
use super::{Selected, Selector};
use crate::abi::{Argument, RINGS_REGISTERS};
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, PhysReg, Pseudo, RegClass};
use unwedge_hw::amd::formats;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_shader::ir::{
    Access, AmdBuffer, AmdExport, AmdInput, AmdTyped, Inst, MemoryKinds, Op, Payload as ShaderPayload,
};

/// The largest immediate offset of a buffer instruction.
const MAX_OFFSET: u32 = 4095;
/// The largest offset of an LDS instruction.
const MAX_LDS_OFFSET: u64 = 0xffff;
/// Where the operand of a bit-field extract has the width of the field.
const FIELD_WIDTH: u32 = 16;
/// The highest bit at which a count may be, so that bits below it do not choose the start of a field.
const MAX_COUNT_BIT: u8 = 10;

/// The components of a run of a buffer access, and where the run starts in bytes.
struct Run {
    dwords: u8,
    offset: u32,
}

impl Selector<'_> {
    /// Selects an operation that stands for an instruction; `None` if it is another one.
    pub(super) fn amd(&mut self, inst: Inst) -> Option<Selected<()>> {
        let func = self.func;
        let result = || func.result(inst);
        match (func.op(inst), func.payload(inst)) {
            (Op::AmdRegister, ShaderPayload::Register(AmdInput { registers, most })) => {
                let count = func.ty(result()).lanes;
                let class = if registers.vector { RegClass::vgpr(count) } else { RegClass::sgpr(count) };
                let named = self.find_argument(Argument::Registers(registers));
                let rings =
                    self.find_argument(Argument::RingOffsets).filter(|_| registers == RINGS_REGISTERS);
                let argument = named.or(rings);
                if let Some(temp) =
                    argument.filter(|own| own.class.dwords() == 1).and_then(|own| own.as_temp())
                    && most != u32::MAX
                {
                    self.program.argument_bounds.push((temp, most));
                }
                let lanes = self.split(argument.unwrap_or(Operand::undef(class)), 1);
                self.define(result(), &lanes[..lanes.len().min(count.into())]);
            }
            (Op::AmdDescriptor, _) => {
                let words = self.value(func.args(inst)[0]).to_vec();
                let descriptor = self.create(RegClass::sgpr(words.len() as u8), &words);
                self.define(result(), &[descriptor]);
            }
            (Op::AmdLoadScalar, _) => {
                let address = self.value(func.args(inst)[0]).to_vec();
                let address = self.create(RegClass::S2, &address);
                let count = u32::from(func.ty(result()).lanes);
                let offset = self.scalar(func.args(inst)[1]);
                let words = match self.load_scalar(inst, address, offset, count, Access::READONLY) {
                    Ok(words) => words,
                    Err(error) => return Some(Err(error)),
                };
                self.define(result(), &words);
            }
            (Op::AmdLoadBuffer, ShaderPayload::Buffer(buffer)) => self.load_elements(inst, &buffer),
            (Op::AmdStoreBuffer, ShaderPayload::Buffer(buffer)) => self.store_elements(inst, &buffer),
            (Op::AmdExport, ShaderPayload::Export(export)) => self.export_words(inst, &export),
            (Op::AmdSendMessage, ShaderPayload::Number(message)) => {
                let word = self.scalar(func.args(inst)[0]);
                self.send_message(message.into(), word);
            }
            (Op::AmdLaneBelow, ShaderPayload::Number(bit)) => {
                // The field is as wide as the count says; bits below the count are not among those that choose its start.
                if bit > MAX_COUNT_BIT {
                    return Some(Err(self.unsupported(inst, Some("a count in the upper bits of a word"))));
                }
                let shift = FIELD_WIDTH - u32::from(bit);
                let count = self.scalar(func.args(inst)[0]);
                let count = self.salu(Opcode::s_lshl_b32, RegClass::S1, &[count, Operand::c32(shift)]);
                let extract = self.sized(Opcode::s_bfe_u32, Opcode::s_bfe_u64);
                let (mask, all) = (self.program.lane_mask(), self.full_mask(true));
                let below = self.salu(extract, mask, &[all, count]);
                self.define(result(), &[below]);
            }
            (Op::AmdMaskedCount, _) => {
                let mask = self.value(func.args(inst)[0]).to_vec();
                let sum = self.scalar(func.args(inst)[1]);
                let word = |at: usize| mask.get(at).copied().unwrap_or(Operand::c32(0));
                let mut count = self.valu(Opcode::v_mbcnt_lo_u32_b32, RegClass::V1, &[word(0), sum]);
                if self.program.gpu.wave64() {
                    count = self.valu(Opcode::v_mbcnt_hi_u32_b32, RegClass::V1, &[word(1), count]);
                }
                self.define(result(), &[count]);
            }
            (Op::AmdPermuteLane16, _) if self.has(Opcode::v_permlane16_b32) => {
                let [value, low, high] = self.scalars(inst);
                let value = self.in_vgpr(value);
                let (low, mut high) = (self.in_scalar(low), self.in_scalar(high));
                if low.as_const().is_some() {
                    // An instruction has one literal.
                    high = self.in_sgpr(high);
                }
                let moved = self.valu(Opcode::v_permlane16_b32, RegClass::V1, &[value, low, high]);
                self.define(result(), &[moved]);
            }
            (Op::AmdDot4, _) => {
                let [x, y, sum] = self.scalars(inst);
                let sum = self.dot4(x, y, sum);
                self.define(result(), &[sum]);
            }
            (Op::AmdCube, _) => {
                let axes: [Operand; 3] = self.scalars(inst);
                let axes = axes.map(|axis| self.in_vgpr(axis));
                let opcodes =
                    [Opcode::v_cubetc_f32, Opcode::v_cubesc_f32, Opcode::v_cubema_f32, Opcode::v_cubeid_f32];
                let lanes = opcodes.map(|opcode| self.valu(opcode, RegClass::V1, &axes));
                self.define(result(), &lanes);
            }
            (Op::AmdIntersectRay, _) if self.has(Opcode::image_bvh64_intersect_ray) => {
                let args = func.args(inst).to_vec();
                let descriptor = self.scalar(args[0]);
                let descriptor = self.in_sgpr(descriptor);
                let parts: Vec<Vec<Operand>> =
                    args[1..].iter().map(|arg| self.value(*arg).to_vec()).collect();
                let address = self.ray_address(&parts);
                let temp = self.program.make_temp(RegClass::vgpr(4));
                let definitions = [Definition::temp(temp, RegClass::vgpr(4))];
                let opcode = Opcode::image_bvh64_intersect_ray;
                let operands = with_address(&[], &address, &[descriptor]);
                let mut new = NewInst::hw(opcode, &definitions, &operands);
                new.payload = Payload::Memory(Memory::CONSTANT);
                self.add(&new);
                let lanes = self.split(Operand::temp(temp, RegClass::vgpr(4)), 1);
                self.define(result(), &lanes);
            }
            (Op::AmdPackHalf, _) => {
                let operands: [Operand; 2] = self.scalars(inst);
                let both = self.valu(Opcode::v_cvt_pkrtz_f16_f32, RegClass::V1, &operands);
                self.define(result(), &[both]);
            }
            (op @ (Op::AmdPackUnorm | Op::AmdPackSnorm | Op::AmdMulZero), _) => {
                let operands: [Operand; 2] = self.scalars(inst);
                let opcode = match op {
                    Op::AmdPackUnorm => Opcode::v_cvt_pknorm_u16_f32,
                    Op::AmdPackSnorm => Opcode::v_cvt_pknorm_i16_f32,
                    _ => Opcode::v_mul_legacy_f32,
                };
                let value = self.valu(opcode, RegClass::V1, &operands);
                self.define(result(), &[value]);
            }
            (Op::AmdSin | Op::AmdCos, _) => {
                let [mut turns] = self.scalars(inst);
                // Older GPUs take 256 turns at most.
                if self.gfx < Gfx::Gfx9 {
                    turns = self.valu(Opcode::v_fract_f32, RegClass::V1, &[turns]);
                }
                let sine = func.op(inst) == Op::AmdSin;
                let opcode = if sine { Opcode::v_sin_f32 } else { Opcode::v_cos_f32 };
                let value = self.valu(opcode, RegClass::V1, &[turns]);
                self.define(result(), &[value]);
            }
            (Op::AmdLoadTyped, ShaderPayload::Typed(typed)) => {
                if let Err(error) = self.load_typed(inst, &typed) {
                    return Some(Err(error));
                }
            }
            (Op::AmdConstants, _) => {
                let address = self.program.make_temp(RegClass::S2);
                let definitions =
                    [Definition::temp(address, RegClass::S2), Definition::reg(PhysReg::SCC, RegClass::S1)];
                self.pseudo(Pseudo::ConstantAddress, &definitions, &[]);
                let address = self.split(Operand::temp(address, RegClass::S2), 1);
                let size = Operand::c32(self.shader.info.constant_size);
                let Some(word) = formats::raw_buffer(self.gfx) else {
                    return Some(Err(self.unsupported(inst, None)));
                };
                self.define(result(), &[address[0], address[1], size, Operand::c32(word)]);
            }
            (Op::AmdAtomicAddGds, _) if self.gfx < Gfx::Gfx11 => {
                let [value, offset, limit] = self.scalars(inst);
                let (value, offset) = (self.in_vgpr(value), self.in_vgpr(offset));
                let operands = [offset, value, self.in_m0(limit)];
                let before = self.program.make_temp(RegClass::V1);
                let definitions = [Definition::temp(before, RegClass::V1)];
                let mut new = match self.read[result()] {
                    0 => NewInst::hw(Opcode::ds_add_u32, &[], &operands),
                    _ => NewInst::hw(Opcode::ds_add_rtn_u32, &definitions, &operands),
                };
                new.mods.set(Mod::Gds, 1);
                new.payload = Payload::Memory(Memory::SHARED_ATOMIC);
                self.add(&new);
                let before = match self.read[result()] {
                    0 => Operand::undef(RegClass::V1),
                    _ => Operand::temp(before, RegClass::V1),
                };
                self.define(result(), &[before]);
            }
            // Older GPUs compare addresses with the limit in `m0`.
            (op @ (Op::AmdAppendShared | Op::AmdConsumeShared), _) if self.gfx >= Gfx::Gfx9 => {
                let offset = func.const_bits(func.args(inst)[0]);
                let Some(offset) = offset.filter(|offset| *offset <= MAX_LDS_OFFSET) else {
                    return Some(Err(self.unsupported(inst, Some("an offset that is not a constant"))));
                };
                let opcode = if op == Op::AmdAppendShared { Opcode::ds_append } else { Opcode::ds_consume };
                let before = self.program.make_temp(RegClass::V1);
                let definitions = [Definition::temp(before, RegClass::V1)];
                let operands = [self.in_m0(Operand::c32(0))];
                let mut new = NewInst::hw(opcode, &definitions, &operands);
                new.mods.set(Mod::Offset, offset as i32);
                new.payload = Payload::Memory(Memory::SHARED_ATOMIC);
                self.add(&new);
                self.define(result(), &[Operand::temp(before, RegClass::V1)]);
            }
            (Op::AmdAppendShared | Op::AmdConsumeShared | Op::AmdAtomicAddGds, _) => {
                return Some(Err(self.unsupported(inst, None)));
            }
            (Op::AmdPermuteLane16 | Op::AmdIntersectRay, _) => {
                return Some(Err(self.unsupported(inst, None)));
            }
            _ => return None,
        }
        Some(Ok(()))
    }

    /// A sum and the products of bytes, in one instruction or in three for each byte.
    fn dot4(&mut self, x: Operand, y: Operand, mut sum: Operand) -> Operand {
        if self.has(Opcode::v_dot4_u32_u8) {
            return self.valu(Opcode::v_dot4_u32_u8, RegClass::V1, &[x, y, sum]);
        }
        for byte in 0..4 {
            let place = [Operand::c32(8 * byte), Operand::c32(8)];
            let factors = [x, y].map(|word| {
                let word = self.in_vgpr(word);
                self.valu(Opcode::v_bfe_u32, RegClass::V1, &[word, place[0], place[1]])
            });
            sum = self.valu(Opcode::v_mad_u32_u24, RegClass::V1, &[factors[0], factors[1], sum]);
        }
        sum
    }

    /// A uniform value as the `m0` operand of an instruction. Several instructions can read one copy in `m0`.
    fn in_m0(&mut self, operand: Operand) -> Operand {
        let word = self.in_sgpr(operand);
        match word.as_temp() {
            Some(temp) => Operand::fixed(temp, RegClass::S1, PhysReg::M0),
            None => word,
        }
    }

    /// Sends a message with a word in `m0`.
    pub(super) fn send_message(&mut self, code: u32, word: Operand) {
        let operands = [Operand::c32(code), self.in_m0(word)];
        self.add(&NewInst::hw(Opcode::s_sendmsg, &[], &operands));
    }

    /// The address of an access to a buffer: vector operand, descriptor, scalar offset; its modifiers, and the offset that is left for the
    /// instruction. `bytes` is how much is accessed.
    fn element_address(
        &mut self,
        inst: Inst,
        first: usize,
        buffer: &AmdBuffer,
        bytes: u32,
    ) -> ([Operand; 3], [bool; 2], u32) {
        let args = self.func.args(inst);
        let [descriptor, own, common, element] = std::array::from_fn(|at| self.scalar(args[first + at]));
        let descriptor = self.in_sgpr(descriptor);
        let is_zero = |operand: &Operand| operand.is_undef() || operand.as_const() == Some(0);
        let mut offset = buffer.offset;
        let mut own = own;
        if let Some(bits) = own.as_const() {
            offset = offset.wrapping_add(bits as u32);
            own = Operand::c32(0);
        }
        if offset > MAX_OFFSET - bytes {
            // An access may take several instructions, whose offsets all have to fit.
            let kept = Some(offset & MAX_OFFSET).filter(|kept| *kept <= MAX_OFFSET - bytes).unwrap_or(0);
            let excess = offset - kept;
            own = match is_zero(&own) {
                true => Operand::c32(excess),
                false => self.vector_add(own, Operand::c32(excess)),
            };
            offset = kept;
        }
        let uses = [!is_zero(&element), !is_zero(&own)];
        let address = match uses {
            [false, false] => Operand::undef(RegClass::V1),
            [true, false] => self.in_vgpr(element),
            [false, true] => self.in_vgpr(own),
            [true, true] => self.create(RegClass::V2, &[element, own]),
        };
        let common = if is_zero(&common) { Operand::c32(0) } else { self.in_sgpr(common) };
        ([address, descriptor, common], uses, offset)
    }

    /// Sizes of the instructions that together access this many words.
    fn runs(&self, count: u8, offset: u32) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut at = 0;
        while at < count {
            let dwords = match count - at {
                3 if self.gfx == Gfx::Gfx6 => 2,
                left => left.min(4),
            };
            runs.push(Run { dwords, offset: offset + u32::from(at) * 4 });
            at += dwords;
        }
        runs
    }

    fn load_elements(&mut self, inst: Inst, buffer: &AmdBuffer) {
        let result = self.func.result(inst);
        let count = self.func.ty(result).lanes;
        let (address, uses, offset) = self.element_address(inst, 0, buffer, u32::from(count) * 4);
        let mut lanes = Vec::new();
        for run in self.runs(count, offset) {
            let opcode = match run.dwords {
                1 => Opcode::buffer_load_dword,
                2 => Opcode::buffer_load_dwordx2,
                3 => Opcode::buffer_load_dwordx3,
                _ => Opcode::buffer_load_dwordx4,
            };
            let class = RegClass::vgpr(run.dwords);
            let temp = self.program.make_temp(class);
            let definitions = [Definition::temp(temp, class)];
            let mut new = NewInst::hw(opcode, &definitions, &address);
            new.mods = self.access_mods(buffer.access, true);
            new.mods.set(Mod::Idxen, uses[0].into());
            new.mods.set(Mod::Offen, uses[1].into());
            new.mods.set(Mod::Offset, run.offset as i32);
            let constant = !buffer.access.any(Access::COHERENT.or(Access::VOLATILE));
            new.payload = if constant {
                Payload::Memory(Memory::CONSTANT)
            } else {
                Payload::Memory(Memory { kinds: MemoryKinds::OUTPUTS, access: buffer.access, private: false })
            };
            self.add(&new);
            lanes.extend(self.split(Operand::temp(temp, class), 1));
        }
        self.define(result, &lanes);
    }

    /// Components of an element that are converted. GPUs without unaligned loads load as many components at once as the alignment allows.
    fn load_typed(&mut self, inst: Inst, typed: &AmdTyped) -> Selected<()> {
        let result = self.func.result(inst);
        let count = self.func.ty(result).lanes;
        let bytes = u32::from(typed.bits / 8);
        let strict = self.gfx == Gfx::Gfx6 || self.gfx >= Gfx::Gfx10;
        let (address, uses, offset) = self.element_address(inst, 0, &typed.buffer, u32::from(count) * bytes);
        let mut lanes = Vec::new();
        while lanes.len() < usize::from(count) {
            let at = offset + lanes.len() as u32 * bytes;
            let left = count - lanes.len() as u8;
            // Alignment of the element, and of the offset in it.
            let align = if at == 0 { typed.align } else { typed.align.min(at.trailing_zeros() as u8) };
            let fits = |lanes: &u8| !strict || (u32::from(*lanes) * bytes).min(4) <= 1 << align;
            let format = |lanes: u8| formats::of_components(lanes, typed.bits, typed.number.name(), self.gfx);
            let found = (1..=left).rev().filter(fits).find_map(|wanted| {
                // No format has three components of 8 or 16 bits, so that of four is named, and three of them are loaded.
                let widened = if strict { wanted } else { 4 };
                Some((wanted, format(wanted).or_else(|| format(widened.max(wanted)))?))
            });
            let Some((loaded, format)) = found else {
                return Err(self.unsupported(inst, Some("a format of vertices")));
            };
            let opcode = match loaded {
                1 => Opcode::tbuffer_load_format_x,
                2 => Opcode::tbuffer_load_format_xy,
                3 => Opcode::tbuffer_load_format_xyz,
                _ => Opcode::tbuffer_load_format_xyzw,
            };
            let class = RegClass::vgpr(loaded);
            let temp = self.program.make_temp(class);
            let definitions = [Definition::temp(temp, class)];
            let mut new = NewInst::hw(opcode, &definitions, &address);
            new.mods = self.access_mods(typed.buffer.access, true);
            new.mods.set(Mod::Idxen, uses[0].into());
            new.mods.set(Mod::Offen, uses[1].into());
            new.mods.set(Mod::Offset, at as i32);
            new.mods.set(Mod::Format, format as i32);
            new.payload = Payload::Memory(Memory::CONSTANT);
            self.add(&new);
            lanes.extend(self.split(Operand::temp(temp, class), 1));
        }
        self.define(result, &lanes);
        Ok(())
    }

    fn store_elements(&mut self, inst: Inst, buffer: &AmdBuffer) {
        let words = self.value(self.func.args(inst)[0]).to_vec();
        let count = words.len() as u8;
        let (address, uses, offset) = self.element_address(inst, 1, buffer, u32::from(count) * 4);
        let mut words = &words[..];
        for run in self.runs(count, offset) {
            let (own, rest) = words.split_at(run.dwords.into());
            words = rest;
            let opcode = match run.dwords {
                1 => Opcode::buffer_store_dword,
                2 => Opcode::buffer_store_dwordx2,
                3 => Opcode::buffer_store_dwordx3,
                _ => Opcode::buffer_store_dwordx4,
            };
            let data = self.vector_data(own);
            let operands = [data, address[0], address[1], address[2]];
            let mut new = NewInst::hw(opcode, &[], &operands);
            new.mods = self.access_mods(buffer.access, false);
            new.mods.set(Mod::Idxen, uses[0].into());
            new.mods.set(Mod::Offen, uses[1].into());
            new.mods.set(Mod::Offset, run.offset as i32);
            new.payload = Payload::Memory(Memory {
                kinds: MemoryKinds::OUTPUTS,
                access: buffer.access,
                private: false,
            });
            self.add(&new);
        }
    }

    fn export_words(&mut self, inst: Inst, export: &AmdExport) {
        let words = self.value(self.func.args(inst)[0]).to_vec();
        let mut operands = [Operand::c32(export.target.into()); 5];
        let mut enabled = 0;
        for at in 0..4 {
            let source = if export.compressed { at / 2 } else { at };
            let word = words.get(source).copied().unwrap_or(Operand::undef(RegClass::V1));
            let exported = export.enabled >> at & 1 != 0 && !word.is_undef();
            enabled |= i32::from(exported) << at;
        }
        for (at, operand) in operands[1..].iter_mut().enumerate() {
            let components = if export.compressed { 3 << (2 * at) } else { 1 << at };
            let word = words.get(at).copied().filter(|_| enabled & components & 15 != 0);
            *operand = word.map_or(Operand::undef(RegClass::V1), |word| self.in_vgpr(word));
        }
        let before_gfx11 = self.gfx < Gfx::Gfx11;
        let mut new = NewInst::hw(Opcode::exp, &[], &operands);
        new.mods.set(Mod::En, enabled);
        new.mods.set(Mod::Done, export.done.into());
        new.mods.set(Mod::Vm, i32::from(export.valid && before_gfx11));
        new.mods.set(Mod::Compr, i32::from(export.compressed && before_gfx11));
        self.add(&new);
    }
}
