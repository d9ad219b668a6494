//! Attributes of vertex shaders: elements of buffers, in the formats of the pipeline.
//!
//! Components of 32 bits are loaded as they are, others by typed instructions, which convert them to 32 bits. Where the shader has 16 bits, floats are
//! converted to that, and the lower half of integers is read. An element whose format the GPU does not have, such as three components of 8 or 16 bits, or that is
//! not aligned as the GPU requires, is loaded component by component.

use super::{Selected, Selector};
use crate::abi::Argument;
use crate::graphics::VertexInput;
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, PhysReg, Pseudo, RegClass};
use crate::stages::HardwareStage;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::texel::{NumberFormat, TexelFormat};
use unwedge_isa::amdgcn::{Gpu, Opcode};
use unwedge_shader::ir::{Base, FIRST_LOCATION_SLOT, Inst, SlotAccess};

/// The most that the immediate of a buffer instruction is.
const MAX_OFFSET: u32 = 4095 - 16;
/// -1.0, the least value of a normalized component.
const MINUS_ONE: u32 = 0xbf80_0000;
/// Codes of formats in typed instructions.
const FORMAT_CODES: u32 = 128;

/// The code of the format that satisfies a predicate.
fn format_code(gpu: &Gpu, is_it: impl Fn(&TexelFormat) -> bool) -> Option<u32> {
    (0..FORMAT_CODES).find(|code| TexelFormat::buffer(*code, gpu).is_some_and(|format| is_it(&format)))
}

/// How an element is loaded.
enum AttributeLoads {
    /// Dwords as they are.
    Dwords,
    /// As a whole, by a typed instruction with this code.
    Whole(u32),
    /// Component by component: the code, and bytes of a component.
    Single(u32, u32),
}

impl AttributeLoads {
    fn of(input: &VertexInput, gpu: &Gpu) -> Option<AttributeLoads> {
        let format = input.format;
        let bits = format.components();
        let generation = gpu.generation();
        if bits.iter().all(|width| matches!(width, 0 | 32)) {
            let plain =
                matches!(format.number(), NumberFormat::Float | NumberFormat::Uint | NumberFormat::Sint);
            return plain.then_some(AttributeLoads::Dwords);
        }
        let unit = u32::from(format.bytes()).min(4);
        let apart = generation == Gfx::Gfx6 || generation >= Gfx::Gfx10;
        let aligned = input.alignment.is_multiple_of(unit) && input.offset.is_multiple_of(unit);
        let whole = format_code(gpu, |own| *own == format).filter(|_| aligned || !apart);
        let equal = bits.iter().all(|width| *width == 0 || *width == bits[0]);
        let single = || {
            let one = [bits[0], 0, 0, 0];
            let code = format_code(gpu, |own| own.components() == one && own.number() == format.number());
            Some(AttributeLoads::Single(code.filter(|_| equal)?, u32::from(bits[0]) / 8))
        };
        whole.map(AttributeLoads::Whole).or_else(single)
    }
}

/// How numbers of 32 bits are divided by a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Division {
    /// By a shift.
    Shift(u32),
    /// The high word of the product with a factor, half of what is left added, and then a shift.
    Multiply(u32, u32),
}

impl Division {
    /// By a number that is not 0.
    fn by(divisor: u32) -> Division {
        if divisor.is_power_of_two() {
            return Division::Shift(divisor.trailing_zeros());
        }
        // The factor has 33 bits, the highest of which stands for what is added.
        let bits = u32::BITS - divisor.leading_zeros();
        let factor = ((1u64 << 32) * ((1u64 << bits) - u64::from(divisor))) / u64::from(divisor) + 1;
        Division::Multiply(factor as u32, bits - 1)
    }
}

/// Components that a format has.
fn present(format: TexelFormat) -> u32 {
    format.components().iter().filter(|width| **width != 0).count() as u32
}

impl Selector<'_> {
    /// Loads components of an attribute.
    pub(super) fn load_attribute(&mut self, inst: Inst, access: &SlotAccess) -> Selected<()> {
        let func = self.func;
        let result = func.result(inst);
        let ty = func.ty(result);
        if !matches!(ty.base, Base::B32 | Base::B16) {
            return Err(self.unsupported(inst, Some("an attribute of this width")));
        }
        let slot = self.slot_of(inst, access, usize::from(access.vertex))?;
        let Some(location) = slot.checked_sub(FIRST_LOCATION_SLOT).map(u32::from) else {
            return Err(self.unsupported(inst, Some("a built-in input")));
        };
        let first = usize::from(access.component);
        let end = (first + usize::from(ty.lanes)).min(4);
        let lanes = match self.find_argument(Argument::Attribute(location)) {
            Some(loaded) => self.split(loaded, 1),
            None => self.fetch_attribute(inst, location, end)?,
        };
        let mut lanes: Vec<Operand> = lanes.get(first..end).unwrap_or_default().to_vec();
        if ty.base == Base::B16 && self.vertex_input(location).is_float() {
            for lane in &mut lanes {
                *lane = self.valu(Opcode::v_cvt_f16_f32, RegClass::V1, &[*lane]);
            }
        }
        self.define(result, &lanes);
        Ok(())
    }

    fn vertex_input(&self, location: u32) -> VertexInput {
        let input = self.options.graphics.vertex_inputs.get(&location).copied();
        input.unwrap_or(VertexInput::floats(location))
    }

    /// The components of an attribute up to one, from memory.
    fn fetch_attribute(&mut self, inst: Inst, location: u32, end: usize) -> Selected<Vec<Operand>> {
        let input = self.vertex_input(location);
        if input.offset > MAX_OFFSET {
            return Err(self.unsupported(inst, Some("an attribute so far from the start of its element")));
        }
        let Some(loads) = AttributeLoads::of(&input, &self.program.gpu) else {
            return Err(self.unsupported(inst, Some("an attribute of a format that the GPU does not load")));
        };
        let table = self.given(Argument::VertexBuffers);
        let address = self.create(RegClass::S2, &[table, Operand::c32(self.options.address_high)]);
        let descriptor = self.table_descriptor(address, input.binding);
        let index = match input.divisor {
            None => self.vertex_index(false),
            Some(divisor) => self.instance_element(divisor),
        };
        let index = self.in_vgpr(index);
        // What changes places is loaded together.
        let wanted = if input.swapped { end.max(3) } else { end };
        let count = present(input.format).min(wanted as u32);
        let mut lanes = Vec::new();
        while (lanes.len() as u32) < count {
            let at = lanes.len() as u32;
            let (opcode, dwords, code, offset) = match loads {
                AttributeLoads::Dwords => {
                    let (dwords, opcode) = match count - at {
                        1 => (1, Opcode::buffer_load_dword),
                        3 if self.gfx > Gfx::Gfx6 => (3, Opcode::buffer_load_dwordx3),
                        2 | 3 => (2, Opcode::buffer_load_dwordx2),
                        _ => (4, Opcode::buffer_load_dwordx4),
                    };
                    (opcode, dwords, None, at * 4)
                }
                AttributeLoads::Whole(code) => {
                    let opcode = match count {
                        1 => Opcode::tbuffer_load_format_x,
                        2 => Opcode::tbuffer_load_format_xy,
                        3 => Opcode::tbuffer_load_format_xyz,
                        _ => Opcode::tbuffer_load_format_xyzw,
                    };
                    (opcode, count as u8, Some(code), 0)
                }
                AttributeLoads::Single(code, bytes) => {
                    (Opcode::tbuffer_load_format_x, 1, Some(code), at * bytes)
                }
            };
            let class = RegClass::vgpr(dwords);
            let temp = self.program.make_temp(class);
            let definitions = [Definition::temp(temp, class)];
            let operands = [index, descriptor, Operand::c32(0)];
            let mut new = NewInst::hw(opcode, &definitions, &operands);
            new.mods.set(Mod::Idxen, 1);
            new.mods.set(Mod::Offset, (input.offset + offset) as i32);
            if let Some(code) = code {
                new.mods.set(Mod::Format, code as i32);
            }
            new.payload = Payload::Memory(Memory::CONSTANT);
            self.add(&new);
            lanes.extend(self.split(Operand::temp(temp, class), 1));
        }
        let missing = [0, 0, 0, input.format.one()].map(Operand::c32);
        lanes.extend(missing.iter().skip(lanes.len()));
        if input.swapped {
            lanes.swap(0, 2);
        }
        if count == 4 && input.format.loads_unsigned_fourth(&self.program.gpu) {
            lanes[3] = self.sign_of_two_bits(lanes[3], input.format.number());
        }
        Ok(lanes)
    }

    /// The signed component of two bits that was loaded as an unsigned one.
    fn sign_of_two_bits(&mut self, loaded: Operand, number: NumberFormat) -> Operand {
        use Opcode as O;
        let v1 = RegClass::V1;
        let (bits, first) = match number {
            // The lowest bits of the exponents of 0, 1/3, 2/3 and 1 are 0, 1, 2 and 3.
            NumberFormat::Snorm => (loaded, 23),
            NumberFormat::Sscaled => (self.valu(O::v_cvt_u32_f32, v1, &[loaded]), 0),
            _ => (loaded, 0),
        };
        let value = self.valu(O::v_bfe_i32, v1, &[bits, Operand::c32(first), Operand::c32(2)]);
        match number {
            NumberFormat::Sint => value,
            NumberFormat::Sscaled => self.valu(O::v_cvt_f32_i32, v1, &[value]),
            _ => {
                let value = self.valu(O::v_cvt_f32_i32, v1, &[value]);
                self.valu(O::v_max_f32, v1, &[Operand::c32(MINUS_ONE), value])
            }
        }
    }

    /// The element of an instance: as many consecutive instances as the divisor share one.
    fn instance_element(&mut self, divisor: u32) -> Operand {
        let first = self.given(Argument::FirstInstance);
        if divisor == 0 {
            return first;
        }
        let instance = self.given(Argument::InstanceId);
        let quotient = match Division::by(divisor) {
            Division::Shift(0) => instance,
            Division::Shift(shift) => self.shifted_right(instance, shift),
            Division::Multiply(factor, shift) => {
                let high = self.valu(Opcode::v_mul_hi_u32, RegClass::V1, &[Operand::c32(factor), instance]);
                let rest = self.vector_sub(instance, high);
                let rest = self.shifted_right(rest, 1);
                let sum = self.vector_add(high, rest);
                self.shifted_right(sum, shift)
            }
        };
        self.vector_add(first, quotient)
    }

    fn shifted_right(&mut self, number: Operand, shift: u32) -> Operand {
        self.valu(Opcode::v_lshrrev_b32, RegClass::V1, &[Operand::c32(shift), number])
    }

    /// Enables the lanes of vertices in a prolog, where the hardware starts waves with other lanes enabled.
    pub(in crate::select) fn start_prolog(&mut self) {
        if !self.interface.hardware.is_some_and(HardwareStage::is_merged) {
            return;
        }
        let lanes = self.part_lanes();
        let exec = Definition::reg(PhysReg::EXEC, self.program.lane_mask());
        self.pseudo(Pseudo::ParallelCopy, &[exec], &[lanes]);
    }

    /// The end of a prolog: the registers of the shader as they were, and attributes.
    pub(super) fn leave_attributes(&mut self) {
        let mut left = self.left.take().unwrap_or_default();
        for fetched in self.interface.fetched.clone() {
            let Argument::Attribute(location) = fetched.argument else { continue };
            let slot = FIRST_LOCATION_SLOT.wrapping_add(location as u16);
            for (number, value) in (0..).zip(self.stored_slot(slot)) {
                let Some(value) = value else { continue };
                let value = self.in_vgpr(value);
                let reg = fetched.reg.advance(number * 4);
                left.extend(value.as_temp().map(|temp| Operand::fixed(temp, RegClass::V1, reg)));
            }
        }
        self.left = Some(left);
    }
}

#[cfg(test)]
mod tests {
    use super::Division;

    #[test]
    fn quotients_are_exact() {
        let edges = |number: u32| [number.wrapping_sub(1), number, number.wrapping_add(1)];
        for divisor in (1..100).chain([641, 0x7fff_ffff, 0x8000_0001, u32::MAX - 1, u32::MAX]) {
            let numbers = (0..200).chain((0..32).flat_map(|bit| edges(1 << bit))).chain(edges(u32::MAX));
            let multiples = (0..40).flat_map(|at| edges(divisor.wrapping_mul(at * 0x0101_0101)));
            for number in numbers.chain(multiples).chain(edges(u32::MAX / divisor * divisor)) {
                let quotient = match Division::by(divisor) {
                    Division::Shift(shift) => number >> shift,
                    Division::Multiply(factor, shift) => {
                        let high = ((u64::from(factor) * u64::from(number)) >> 32) as u32;
                        (high + ((number - high) >> 1)) >> shift
                    }
                };
                assert_eq!(quotient, number / divisor, "{number} / {divisor}");
            }
        }
    }
}
