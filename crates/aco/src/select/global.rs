//! Loads and stores of memory by 64-bit addresses: `global_*` from gfx9 on, `flat_*` on gfx7 and gfx8, buffer instructions without bounds on gfx6.
//!
//! Sums with a 32-bit number or a constant, which the lowering has split into words, are recognized and become the offset of the instruction. The
//! hardware adds in 64 bits, so this never changes an address.

use super::{Selected, Selector};
use crate::ir::{Definition, NewInst, Operand, RegClass};
use unwedge_hw::amd::formats;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Base, Inst, MemAccess, Op, Value, ValueDef};

/// The opcodes of one access in the encodings for global memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct GlobalOpcodes {
    pub buffer: Opcode,
    pub flat: Opcode,
    pub global: Opcode,
}

impl GlobalOpcodes {
    /// The opcode in the encoding of a generation.
    pub fn of(self, gfx: Gfx) -> Opcode {
        match gfx {
            Gfx::Gfx6 => self.buffer,
            Gfx::Gfx7 | Gfx::Gfx8 => self.flat,
            _ => self.global,
        }
    }
}

macro_rules! opcodes {
    ($buffer:ident $flat:ident $global:ident) => {
        GlobalOpcodes { buffer: Opcode::$buffer, flat: Opcode::$flat, global: Opcode::$global }
    };
}
pub(super) use opcodes;

const LOAD_BYTE: GlobalOpcodes = opcodes!(buffer_load_ubyte flat_load_ubyte global_load_ubyte);
const LOAD_SHORT: GlobalOpcodes = opcodes!(buffer_load_ushort flat_load_ushort global_load_ushort);
/// By the number of words, less one.
const LOADS: [GlobalOpcodes; 4] = [
    opcodes!(buffer_load_dword flat_load_dword global_load_dword),
    opcodes!(buffer_load_dwordx2 flat_load_dwordx2 global_load_dwordx2),
    opcodes!(buffer_load_dwordx3 flat_load_dwordx3 global_load_dwordx3),
    opcodes!(buffer_load_dwordx4 flat_load_dwordx4 global_load_dwordx4),
];
const STORE_BYTE: GlobalOpcodes = opcodes!(buffer_store_byte flat_store_byte global_store_byte);
const STORE_SHORT: GlobalOpcodes = opcodes!(buffer_store_short flat_store_short global_store_short);
const STORES: [GlobalOpcodes; 4] = [
    opcodes!(buffer_store_dword flat_store_dword global_store_dword),
    opcodes!(buffer_store_dwordx2 flat_store_dwordx2 global_store_dwordx2),
    opcodes!(buffer_store_dwordx3 flat_store_dwordx3 global_store_dwordx3),
    opcodes!(buffer_store_dwordx4 flat_store_dwordx4 global_store_dwordx4),
];

/// The operands of an address.
pub(super) struct GlobalAddress {
    /// A 64-bit address, or a 32-bit offset.
    vector: Operand,
    /// The base of the offset.
    base: Operand,
    /// The descriptor of all memory, for buffer instructions.
    descriptor: Operand,
    constant: u64,
}

/// The words of a 64-bit address; no upper one if that is zero.
#[derive(Clone, Copy)]
struct AddressWords {
    low: Value,
    high: Option<Value>,
}

impl Selector<'_> {
    /// The largest immediate offset of an instruction for global memory. Negative offsets are not used.
    fn most_global_offset(&self) -> u64 {
        match self.gfx {
            Gfx::Gfx7 | Gfx::Gfx8 => 0,
            Gfx::Gfx10 | Gfx::Gfx10_3 => 0x7ff,
            Gfx::Gfx12 => 0x7f_ffff,
            _ => 0xfff,
        }
    }

    fn address_words(&self, address: Value) -> Option<AddressWords> {
        let func = self.func;
        let cast = func.def_inst(address).filter(|inst| func.op(*inst) == Op::Bitcast)?;
        let vector = func.def_inst(func.args(cast)[0]).filter(|inst| func.op(*inst) == Op::Vec)?;
        let &[low, high] = func.args(vector) else { return None };
        (func.ty(low).base == Base::B32).then_some(AddressWords { low, high: Some(high) })
    }

    fn word_operands(&self, words: AddressWords) -> [Operand; 2] {
        [self.scalar(words.low), words.high.map_or(Operand::c32(0), |high| self.scalar(high))]
    }

    /// Splits an address into the two summands of its low word, one of which has the upper word, and the other is zero-extended.
    fn address_sum(&self, words: AddressWords) -> Option<([Value; 2], Option<Value>)> {
        let func = self.func;
        let operands = |value: Value, op: Op| match func.def(value) {
            ValueDef::Result(inst, _) if func.op(inst) == op => {
                let &[a, b] = func.args(inst) else { return None };
                Some([a, b])
            }
            _ => None,
        };
        let [a, b] = operands(words.low, Op::IAdd)?;
        let carries =
            |value| operands(value, Op::UAddCarry).is_some_and(|own| own == [a, b] || own == [b, a]);
        let high = words.high?;
        if carries(high) {
            return Some(([a, b], None));
        }
        let [x, y] = operands(high, Op::IAdd)?;
        let high = if carries(y) { x } else { Some(y).filter(|_| carries(x))? };
        Some(([a, b], Some(high)))
    }

    /// An address without the constants that are added to it, and their sum, as long as the sum stays within a limit for the last byte of the access and is a multiple of a unit.
    fn without_constants(&self, mut words: AddressWords, limit: u64, unit: u64) -> (AddressWords, u64) {
        let mut constant = 0;
        while let Some(([a, b], high)) = self.address_sum(words) {
            let found = [(a, b), (b, a)].into_iter().find_map(|(rest, other)| {
                let sum = constant + self.func.const_bits(other)?;
                (sum <= limit && sum.is_multiple_of(unit)).then_some((rest, sum))
            });
            let Some((low, sum)) = found else { break };
            (words, constant) = (AddressWords { low, high }, sum);
        }
        (words, constant)
    }

    /// The address of an access of `bytes` bytes.
    pub(super) fn global_address(&mut self, address: Value, bytes: u64) -> GlobalAddress {
        let none = Operand::undef(RegClass::S2);
        let mut made = GlobalAddress { vector: none, base: none, descriptor: none, constant: 0 };
        let uniform = |selector: &Self, value| !selector.divergence.is_divergent(value);
        let limit = self.most_global_offset().saturating_sub(bytes);
        let words = self.address_words(address).map(|words| self.without_constants(words, limit, 1));
        let mut base = None;
        if let Some((words, constant)) = words {
            made.constant = constant;
            let based = |([a, b], high): ([Value; 2], Option<Value>)| {
                let order = if uniform(self, a) { [a, b] } else { [b, a] };
                let scalar = uniform(self, order[0]) && high.is_none_or(|high| uniform(self, high));
                (scalar && !uniform(self, order[1])).then_some((order[0], high, order[1]))
            };
            let sum = self.address_sum(words).and_then(based);
            match sum.filter(|_| self.gfx >= Gfx::Gfx9) {
                Some((low, high, offset)) => {
                    base = Some(AddressWords { low, high });
                    let offset = self.scalar(offset);
                    made.vector = self.in_vgpr(offset);
                }
                None if uniform(self, words.low) && words.high.is_none_or(|high| uniform(self, high)) => {
                    base = Some(words);
                }
                None => {
                    let parts = self.word_operands(words);
                    made.vector = self.create(RegClass::V2, &parts);
                }
            }
        } else {
            let whole = self.scalar(address);
            if self.gfx >= Gfx::Gfx9 && uniform(self, address) {
                made.base = self.in_sgpr(whole);
            } else {
                made.vector = self.in_vgpr(whole);
            }
        }
        if let Some(base) = base {
            let parts = self.word_operands(base);
            let base = self.create(RegClass::S2, &parts);
            made.base = self.in_sgpr(base);
        }
        if self.gfx < Gfx::Gfx9 && !made.base.is_undef() {
            made.vector = self.in_vgpr(made.base);
            made.base = none;
        }
        if made.vector.is_undef() {
            let class = if made.base.is_undef() { RegClass::V2 } else { RegClass::V1 };
            made.vector = self.copy(class, Operand::constant(0, class));
        }
        made.descriptor = self.all_memory();
        made
    }

    /// The descriptor of all memory, where instructions need one.
    fn all_memory(&mut self) -> Operand {
        if self.gfx > Gfx::Gfx6 {
            return Operand::undef(RegClass::sgpr(4));
        }
        let format = formats::raw_buffer(self.gfx).unwrap_or_default();
        let words = [0, 0, u32::MAX, format].map(Operand::c32);
        self.create(RegClass::sgpr(4), &words)
    }

    /// The operands of an access, in the order of the table. In buffer instructions, the data of an atomic operation come last.
    pub(super) fn global_operands(
        &self,
        address: &GlobalAddress,
        data: Option<Operand>,
        atomic: bool,
    ) -> Vec<Operand> {
        match self.gfx {
            Gfx::Gfx6 => {
                let place = [address.vector, address.descriptor, Operand::c32(0)];
                let (before, after) = if atomic { (None, data) } else { (data, None) };
                before.into_iter().chain(place).chain(after).collect()
            }
            Gfx::Gfx7 | Gfx::Gfx8 => [address.vector].into_iter().chain(data).collect(),
            _ => [address.vector].into_iter().chain(data).chain([address.base]).collect(),
        }
    }

    pub(super) fn global_mods(&self, mut mods: Mods, address: &GlobalAddress, offset: u64) -> Mods {
        if self.gfx == Gfx::Gfx6 {
            mods.set(Mod::Addr64, 1);
        }
        let offset = address.constant + offset;
        if offset > 0 {
            mods.set(Mod::Offset, offset as i32);
        }
        mods
    }

    /// The address of a part of an access, where the instruction has no offset.
    fn global_part(&mut self, address: &GlobalAddress, offset: u64) -> Option<GlobalAddress> {
        if offset == 0 || self.most_global_offset() > 0 {
            return None;
        }
        let [low, high] = self.words(address.vector);
        let [low, carry] = self.valu_carry(Opcode::v_add_co_u32, &[Operand::c32(offset as u32), low]);
        let (zero, one) = (Operand::c32(0), Operand::c32(1));
        let carry = self.valu(Opcode::v_cndmask_b32, RegClass::V1, &[zero, one, carry]);
        let high = self.vector_add(high, carry);
        let vector = self.create(RegClass::V2, &[low, high]);
        Some(GlobalAddress { vector, ..*address })
    }

    /// Words of uniform memory that does not change, by scalar loads.
    pub(super) fn load_scalar_global(&mut self, inst: Inst, mem: &MemAccess) -> Selected<Vec<Operand>> {
        let address = self.func.args(inst)[0];
        let count = self.result_words(inst);
        // Offsets of gfx6 and gfx7 count words in eight bits.
        let limit = if self.gfx <= Gfx::Gfx7 { 0 } else { 0xf_ff00 };
        let (base, constant) = match self.address_words(address) {
            Some(words) => {
                // Scalar loads ignore the lowest two bits of the base and of the offset, each by itself.
                let (words, constant) = self.without_constants(words, limit, 4);
                let parts = self.word_operands(words);
                (self.create(RegClass::S2, &parts), constant)
            }
            None => (self.scalar(address), 0),
        };
        let base = self.in_sgpr(base);
        let mut words = Vec::new();
        while (words.len() as u32) < count {
            let left = (count - words.len() as u32).min(16);
            let own = 1 << left.ilog2();
            let offset = Operand::c32(constant as u32 + words.len() as u32 * 4);
            words.extend(self.load_scalar(inst, base, offset, own, mem.access)?);
        }
        Ok(words)
    }

    pub(super) fn load_global(&mut self, inst: Inst, mem: &MemAccess) -> Vec<Operand> {
        let bytes = u64::from(self.func.ty(self.func.result(inst)).bits().div_ceil(8));
        let address = self.global_address(self.func.args(inst)[0], bytes);
        self.load_at(inst, mem, &address)
    }

    /// Push constants at an offset that differs between lanes, from memory.
    pub(super) fn load_divergent_push(&mut self, inst: Inst, mem: &MemAccess) -> Selected<Vec<Operand>> {
        let Some((base, first)) = self.push_memory() else {
            return Err(self.unsupported(inst, Some("push constants")));
        };
        let offset = self.scalar(self.func.args(inst)[0]);
        let mut offset = self.in_vgpr(offset);
        if first > 0 {
            offset = self.vector_add(offset, Operand::c32(first));
        }
        let descriptor = self.all_memory();
        let address = if self.gfx >= Gfx::Gfx9 {
            GlobalAddress { vector: offset, base, descriptor, constant: 0 }
        } else {
            let [low, high] = self.words(base);
            let [low, carry] = self.valu_carry(Opcode::v_add_co_u32, &[low, offset]);
            let (zero, one) = (Operand::c32(0), Operand::c32(1));
            let carry = self.valu(Opcode::v_cndmask_b32, RegClass::V1, &[zero, one, carry]);
            let high = self.vector_add(carry, high);
            let vector = self.create(RegClass::V2, &[low, high]);
            GlobalAddress { vector, base: Operand::undef(RegClass::S2), descriptor, constant: 0 }
        };
        Ok(self.load_at(inst, mem, &address))
    }

    fn load_at(&mut self, inst: Inst, mem: &MemAccess, address: &GlobalAddress) -> Vec<Operand> {
        let narrow = match self.func.ty(self.func.result(inst)).base {
            Base::B8 => Some((LOAD_BYTE, 1)),
            Base::B16 => Some((LOAD_SHORT, 2)),
            _ => None,
        };
        let count = self.result_words(inst) as usize;
        let bytes = narrow.map_or(4, |(_, bytes)| bytes);
        let mut words = Vec::new();
        while words.len() < count {
            let run = if narrow.is_some() { 1 } else { self.global_run(count - words.len()) };
            let opcodes = narrow.map_or(LOADS[run - 1], |(opcodes, _)| opcodes);
            let offset = words.len() as u64 * bytes;
            let part = self.global_part(address, offset);
            let (address, offset) = part.as_ref().map_or((address, offset), |part| (part, 0));
            let class = RegClass::vgpr(run as u8);
            let temp = self.program.make_temp(class);
            let (definitions, operands) =
                ([Definition::temp(temp, class)], self.global_operands(address, None, false));
            let mut new = NewInst::hw(opcodes.of(self.gfx), &definitions, &operands);
            new.mods = self.global_mods(self.access_mods(mem.access, true), address, offset);
            new.payload = self.memory(mem);
            self.add(&new);
            words.extend(self.split(Operand::temp(temp, class), 1));
        }
        words
    }

    /// How many of the remaining words one instruction moves.
    fn global_run(&self, left: usize) -> usize {
        if left == 3 && self.gfx == Gfx::Gfx6 { 2 } else { left.min(4) }
    }

    pub(super) fn store_global(&mut self, inst: Inst, mem: &MemAccess, words: &[Operand]) {
        let args = self.func.args(inst);
        let narrow = match self.func.ty(args[0]).base {
            Base::B8 => Some((STORE_BYTE, 1)),
            Base::B16 => Some((STORE_SHORT, 2)),
            _ => None,
        };
        let bytes = narrow.map_or(4, |(_, bytes)| bytes);
        let address = self.global_address(args[1], words.len() as u64 * bytes);
        let mut at = 0;
        while at < words.len() {
            let run = if narrow.is_some() { 1 } else { self.global_run(words.len() - at) };
            let opcodes = narrow.map_or(STORES[run - 1], |(opcodes, _)| opcodes);
            let offset = at as u64 * bytes;
            let part = self.global_part(&address, offset);
            let (address, offset) = part.as_ref().map_or((&address, offset), |part| (part, 0));
            let data = self.vector_data(&words[at..at + run]);
            let operands = self.global_operands(address, Some(data), false);
            let mut new = NewInst::hw(opcodes.of(self.gfx), &[], &operands);
            new.mods = self.global_mods(self.access_mods(mem.access, false), address, offset);
            new.payload = self.memory(mem);
            self.add(&new);
            at += run;
        }
    }
}
