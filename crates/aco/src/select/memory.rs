//! Loads and stores of buffers, memory of the workgroup and push constants.

use super::banks::loads_scalar;
use super::{Selected, Selector};
use crate::abi::Argument;
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, PhysReg, RegClass};
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
use unwedge_shader::ir::{Access, Base, Inst, MemAccess, MemoryKinds, Op, Space, Value, ValueDef};

/// The largest immediate offset of a buffer instruction.
const MAX_BUFFER_OFFSET: u64 = 4095;
/// The largest immediate offset of an LDS instruction.
const MAX_LDS_OFFSET: u64 = 65535;
/// The size in bytes of the largest value: 16 lanes of 64 bits.
const MAX_VALUE_BYTES: u64 = 128;
/// The scope of gfx12 for accesses that the whole device sees.
const DEVICE_SCOPE: i32 = 2;

/// `m0`, which limits addresses in LDS up to gfx8.
pub(super) const LDS_LIMIT: Operand = Operand::reg(PhysReg::M0, RegClass::S1);

/// The largest offset in words of the first of two accesses of an LDS instruction.
const MAX_LDS_PAIR: u64 = 255;
/// The size of an LDS word in bytes.
const LDS_WORD: u64 = 4;
/// The alignment from which on pairs of words are accessed, as a power of two.
const LDS_PAIR_ALIGN: u8 = 2;

/// Words that one LDS instruction accesses.
struct LdsRun {
    words: u8,
    first: u64,
    /// Both offsets are in words then.
    second: Option<u64>,
}

impl LdsRun {
    fn set_offsets(&self, mods: &mut Mods) {
        match self.second {
            Some(second) => {
                mods.set(Mod::Offset0, self.first as i32);
                mods.set(Mod::Offset1, second as i32);
            }
            None => mods.set(Mod::Offset, self.first as i32),
        }
    }
}

impl Selector<'_> {
    /// An offset for a scalar load: a constant that fits, or a register.
    pub(super) fn smem_offset(&mut self, offset: Operand) -> Operand {
        let fits = offset.as_const().is_some_and(|bytes| match self.gfx {
            Gfx::Gfx6 | Gfx::Gfx7 => bytes % 4 == 0 && bytes <= 255 * 4,
            _ => bytes <= 0xf_ffff,
        });
        if fits { offset } else { self.in_sgpr(offset) }
    }

    /// A scalar load of memory that does not change.
    pub(super) fn smem(
        &mut self,
        opcode: Opcode,
        class: RegClass,
        base: Operand,
        offset: Operand,
    ) -> Operand {
        self.smem_as(opcode, class, [base, offset], (Mods::default(), Memory::CONSTANT))
    }

    /// A scalar load with modifiers, of memory that other waves may write.
    fn smem_as(
        &mut self,
        opcode: Opcode,
        class: RegClass,
        operands: [Operand; 2],
        (mods, memory): (Mods, Memory),
    ) -> Operand {
        let temp = self.program.make_temp(class);
        let definitions = [Definition::temp(temp, class)];
        let mut new = NewInst::hw(opcode, &definitions, &operands);
        (new.mods, new.payload) = (mods, Payload::Memory(memory));
        self.add(&new);
        Operand::temp(temp, class)
    }

    /// Selects a load.
    pub(super) fn load(&mut self, inst: Inst, mem: &MemAccess) -> Selected<()> {
        let func = self.func;
        let result = func.result(inst);
        let ty = func.ty(result);
        if ty.base == Base::B1 || ty.base == Base::Handle {
            return Err(self.unsupported(inst, Some("not a number")));
        }
        let scalar = !self.banks.is_vector(result) && loads_scalar(func, inst, mem, self.gfx);
        let words = match mem.space {
            Space::Push if self.divergence.is_divergent(func.args(inst)[0]) => {
                self.load_divergent_push(inst, mem)?
            }
            Space::Push if ty.base.bits() < 32 => self.load_narrow_push(inst)?,
            Space::Push => self.load_push(inst)?,
            Space::Uniform | Space::Storage if scalar => self.load_scalar_buffer(inst, mem.access)?,
            Space::Uniform | Space::Storage => self.load_buffer(inst, mem)?,
            Space::Shared => self.load_shared(inst, mem)?,
            Space::Scratch => self.load_scratch(inst)?,
            Space::Global if scalar => self.load_scalar_global(inst, mem)?,
            Space::Global => self.load_global(inst, mem),
        };
        let lanes: Vec<Operand> = if ty.base == Base::B64 && words.iter().all(|word| word.class.dwords() == 1)
        {
            let class = words.first().map_or(RegClass::V2, |word| word.class.resized(8));
            words.chunks(2).map(|pair| self.create(class, pair)).collect()
        } else {
            words
        };
        self.define(result, &lanes);
        Ok(())
    }

    pub(super) fn result_words(&self, inst: Inst) -> u32 {
        let ty = self.func.ty(self.func.result(inst));
        u32::from(ty.lanes) * ty.base.bits().div_ceil(32)
    }

    /// A scalar offset that is `bytes` bytes after another.
    fn bytes_after(&mut self, offset: Operand, bytes: u32) -> Operand {
        match offset.as_const() {
            Some(first) => Operand::c32((first as u32).wrapping_add(bytes)),
            None if bytes == 0 || offset.is_undef() => offset,
            None => self.salu(Opcode::s_add_u32, RegClass::S1, &[offset, Operand::c32(bytes)]),
        }
    }

    /// Push constants in memory: an address, and their offset from it.
    pub(super) fn push_memory(&mut self) -> Option<(Operand, u32)> {
        if let Some(place) = self.kernel_push() {
            return Some(place);
        }
        let low = self.find_argument(Argument::PushConstants)?;
        Some((self.create(RegClass::S2, &[low, Operand::c32(self.options.address_high)]), 0))
    }

    fn load_push(&mut self, inst: Inst) -> Selected<Vec<Operand>> {
        let offset = self.scalar(self.func.args(inst)[0]);
        let count = self.result_words(inst);
        if let Some((address, first)) = self.push_memory() {
            let offset = self.in_scalar(offset);
            let offset = self.bytes_after(offset, first);
            return self.load_scalar(inst, address, offset, count, Access::READONLY);
        }
        let first = offset.as_const().map(|offset| offset as u32 / 4);
        let words = (0..count).map(|word| {
            first.and_then(|first| self.find_argument(Argument::PushConstant(first.checked_add(word)?)))
        });
        words.collect::<Option<Vec<_>>>().ok_or_else(|| self.unsupported(inst, Some("push constants")))
    }

    /// Push constants of 8 and 16 bits: scalar loads move whole words, out of which they are shifted.
    fn load_narrow_push(&mut self, inst: Inst) -> Selected<Vec<Operand>> {
        let ty = self.func.ty(self.func.result(inst));
        let offset = self.scalar(self.func.args(inst)[0]);
        let offset = self.in_scalar(offset);
        let memory = self.push_memory();
        let mut lanes = Vec::new();
        for lane in 0..ty.lanes {
            let at = u32::from(lane) * ty.base.bytes();
            let byte = self.bytes_after(offset, at);
            // The shift takes the lowest five bits, which are those of the byte in its word.
            let (start, shift) = match byte.as_const() {
                Some(byte) => (Operand::c32(byte as u32 & !3), Operand::c32(byte as u32 % 4 * 8)),
                None => (
                    self.salu(Opcode::s_and_b32, RegClass::S1, &[byte, Operand::c32(!3)]),
                    self.salu(Opcode::s_lshl_b32, RegClass::S1, &[byte, Operand::c32(3)]),
                ),
            };
            let word = match (memory, start.as_const()) {
                (Some((address, first)), _) => {
                    let start = self.bytes_after(start, first);
                    self.load_scalar(inst, address, start, 1, Access::READONLY)?[0]
                }
                (None, Some(start)) => self
                    .find_argument(Argument::PushConstant(start as u32 / 4))
                    .ok_or_else(|| self.unsupported(inst, Some("push constants")))?,
                (None, None) => return Err(self.unsupported(inst, Some("push constants"))),
            };
            let value = self.salu(Opcode::s_lshr_b32, RegClass::S1, &[word, shift]);
            lanes.push(self.in_vgpr(value));
        }
        Ok(lanes)
    }

    fn load_scalar_buffer(&mut self, inst: Inst, access: Access) -> Selected<Vec<Operand>> {
        let args = self.func.args(inst);
        let (handle, offset) = (self.scalar(args[0]), self.scalar(args[1]));
        let handle = self.in_sgpr(handle);
        self.load_scalar(inst, handle, offset, self.result_words(inst), access)
    }

    /// Words by scalar loads, from an address or a buffer.
    pub(super) fn load_scalar(
        &mut self,
        inst: Inst,
        base: Operand,
        offset: Operand,
        count: u32,
        access: Access,
    ) -> Selected<Vec<Operand>> {
        use Opcode as O;
        let buffer = base.class.dwords() == 4;
        let (size, address, from_buffer) = match count {
            1 => (1, O::s_load_dword, O::s_buffer_load_dword),
            2 => (2, O::s_load_dwordx2, O::s_buffer_load_dwordx2),
            3 | 4 => (4, O::s_load_dwordx4, O::s_buffer_load_dwordx4),
            5..=8 => (8, O::s_load_dwordx8, O::s_buffer_load_dwordx8),
            9..=16 => (16, O::s_load_dwordx16, O::s_buffer_load_dwordx16),
            _ => return Err(self.unsupported(inst, Some("more than 16 words"))),
        };
        let offset = self.in_scalar(offset);
        if !buffer && count != size {
            // A longer load could read past the end of the memory.
            let first = size / 2;
            let mut words = self.load_scalar(inst, base, offset, first, access)?;
            let rest = self.bytes_after(offset, first * 4);
            words.extend(self.load_scalar(inst, base, rest, count - first, access)?);
            return Ok(words);
        }
        let offset = self.smem_offset(offset);
        let opcode = if buffer { from_buffer } else { address };
        let class = RegClass::sgpr(size as u8);
        let words = match access.has(Access::COHERENT) {
            true => {
                let memory = Memory { kinds: MemoryKinds::NONE, access, private: false };
                self.smem_as(opcode, class, [base, offset], (self.access_mods(access, true), memory))
            }
            false => self.smem(opcode, class, base, offset),
        };
        // Numbers of 64 bits stay together.
        let wide = self.func.ty(self.func.result(inst)).base == Base::B64 && size % 2 == 0 && buffer;
        let part = if wide { 2 } else { 1 };
        let mut parts = self.split(words, part);
        parts.truncate(count as usize / usize::from(part));
        Ok(parts)
    }

    /// The cache modifiers of an access: one that other waves see bypasses the caches that they do not share.
    pub(super) fn cache_mods(&self, mem: &MemAccess, load: bool) -> Mods {
        self.access_mods(mem.access, load)
    }

    /// The same, by how memory is accessed.
    pub(super) fn access_mods(&self, access: Access, load: bool) -> Mods {
        let mut mods = Mods::default();
        if access.any(Access::COHERENT.or(Access::VOLATILE).or(Access::ATOMIC)) {
            if self.gfx >= Gfx::Gfx12 {
                mods.set(Mod::Scope, DEVICE_SCOPE);
            } else {
                mods.set(Mod::Glc, 1);
                if load && matches!(self.gfx, Gfx::Gfx10 | Gfx::Gfx10_3) {
                    mods.set(Mod::Dlc, 1);
                }
            }
        }
        mods
    }

    /// Sets whether an atomic operation returns the old value.
    pub(super) fn set_returns(&self, mods: &mut Mods, returns: bool) {
        mods.set(Mod::Glc, 0);
        if returns {
            mods.set(if self.gfx >= Gfx::Gfx12 { Mod::Th } else { Mod::Glc }, 1);
        }
    }

    pub(super) fn memory(&self, mem: &MemAccess) -> Payload {
        let kinds = match mem.space {
            Space::Shared => MemoryKinds::SHARED,
            _ if mem.access.has(Access::READONLY) => MemoryKinds::NONE,
            _ => MemoryKinds::BUFFERS,
        };
        Payload::Memory(Memory { kinds, access: mem.access, private: false })
    }

    /// The address operands of a buffer instruction: vector address, descriptor, scalar offset; the constant offset.
    pub(super) fn buffer_address(&mut self, handle: Operand, offset: Operand) -> ([Operand; 3], u64) {
        let handle = self.in_sgpr(handle);
        let none = Operand::c32(0);
        match offset.as_const() {
            Some(bytes) if bytes <= MAX_BUFFER_OFFSET - MAX_VALUE_BYTES => {
                ([Operand::undef(RegClass::V1), handle, none], bytes)
            }
            _ => ([self.in_vgpr(offset), handle, none], 0),
        }
    }

    pub(super) fn buffer_mods(
        &self,
        mem: &MemAccess,
        load: bool,
        address: &[Operand; 3],
        offset: u64,
    ) -> Mods {
        let mut mods = self.cache_mods(mem, load);
        mods.set(Mod::Offen, i32::from(!address[0].is_undef()));
        mods.set(Mod::Offset, offset as i32);
        mods
    }

    fn load_buffer(&mut self, inst: Inst, mem: &MemAccess) -> Selected<Vec<Operand>> {
        use Opcode as O;
        let func = self.func;
        let (args, ty) = (func.args(inst), func.ty(func.result(inst)));
        let (handle, offset) = (self.scalar(args[0]), self.scalar(args[1]));
        let (address, first) = self.buffer_address(handle, offset);
        let narrow = match ty.base {
            Base::B8 => Some((O::buffer_load_ubyte, 1)),
            Base::B16 => Some((O::buffer_load_ushort, 2)),
            _ => None,
        };
        let wide = ty.base == Base::B64;
        let mut words = Vec::new();
        let mut load = |selector: &mut Self, opcode, dwords: u8, at: u64| {
            let class = RegClass::vgpr(dwords);
            let temp = selector.program.make_temp(class);
            let definitions = [Definition::temp(temp, class)];
            let mut new = NewInst::hw(opcode, &definitions, &address);
            new.mods = selector.buffer_mods(mem, true, &address, first + at);
            new.payload = selector.memory(mem);
            selector.add(&new);
            let parts = selector
                .split(Operand::temp(temp, class), if wide && dwords.is_multiple_of(2) { 2 } else { 1 });
            words.extend(parts);
        };
        if let Some((opcode, bytes)) = narrow {
            (0..u64::from(ty.lanes)).for_each(|lane| load(self, opcode, 1, lane * bytes));
            return Ok(words);
        }
        let mut at = 0;
        let count = self.result_words(inst);
        while at < count {
            let (dwords, opcode) = match count - at {
                1 => (1, O::buffer_load_dword),
                3 if self.gfx > Gfx::Gfx6 => (3, O::buffer_load_dwordx3),
                2 | 3 => (2, O::buffer_load_dwordx2),
                _ => (4, O::buffer_load_dwordx4),
            };
            load(self, opcode, dwords, u64::from(at) * 4);
            at += u32::from(dwords);
        }
        Ok(words)
    }

    /// Operands of an LDS instruction, whose last one is [`LDS_LIMIT`], as the GPU has them.
    pub(super) fn lds_operands<'o>(&self, operands: &'o [Operand]) -> &'o [Operand] {
        if self.gfx <= Gfx::Gfx8 {
            operands
        } else {
            operands.split_last().map_or(operands, |(_, rest)| rest)
        }
    }

    /// The address and the constant offset of an LDS instruction. From gfx7 on their sum wraps as in the shader.
    pub(super) fn lds_address(&mut self, offset: Value) -> (Operand, u64) {
        let (base, constant) = self.lds_parts(offset);
        (self.in_vgpr(base), constant)
    }

    /// The same for an access of `words` words. Accesses of pairs have short offset fields, so most of a large offset is added to the address, in
    /// steps that neighbouring accesses share.
    fn lds_words_address(&mut self, offset: Value, words: usize, align: u8) -> (Operand, u64) {
        let (base, constant) = self.lds_parts(offset);
        let pairs = words > 1 && align == LDS_PAIR_ALIGN && self.gfx >= Gfx::Gfx7;
        let last = (words as u64).saturating_sub(1);
        if !pairs || constant / LDS_WORD + last <= MAX_LDS_PAIR {
            return (self.in_vgpr(base), constant);
        }
        let most = MAX_LDS_PAIR + 1;
        let kept = Some(constant / LDS_WORD % most).filter(|kept| kept + last <= MAX_LDS_PAIR);
        let kept = kept.unwrap_or(0) * LDS_WORD;
        let excess = (constant - kept) as u32;
        let address = match base.as_const() {
            Some(bits) => self.in_vgpr(Operand::c32((bits as u32).wrapping_add(excess))),
            None => {
                let base = self.in_vgpr(base);
                self.vector_add(base, Operand::c32(excess))
            }
        };
        (address, kept)
    }

    /// The variable part of an LDS address, and the constant rest.
    fn lds_parts(&mut self, offset: Value) -> (Operand, u64) {
        let func = self.func;
        let (mut base, mut constant) = (offset, 0);
        while self.gfx >= Gfx::Gfx7
            && let ValueDef::Result(inst, _) = func.def(base)
            && func.op(inst) == Op::IAdd
            && let &[a, b] = func.args(inst)
            && let Some((rest, bits)) = [(a, b), (b, a)]
                .into_iter()
                .find_map(|(rest, other)| func.const_bits(other).map(|bits| (rest, bits)))
            && constant + bits <= MAX_LDS_OFFSET - MAX_VALUE_BYTES
        {
            (base, constant) = (rest, constant + bits);
        }
        let address = self.scalar(base);
        match address.as_const() {
            Some(bytes) if bytes + constant <= MAX_LDS_OFFSET - MAX_VALUE_BYTES => {
                (Operand::c32(0), bytes + constant)
            }
            _ => (address, constant),
        }
    }

    /// How many words from an offset on one LDS instruction accesses, with its offset and the second offset that it has. `align` is that of
    /// the address which is `done` bytes before.
    fn lds_run(&self, words: usize, at: u64, done: u64, align: u8) -> LdsRun {
        let pairs = at.is_multiple_of(LDS_WORD)
            && at / LDS_WORD < MAX_LDS_PAIR
            && align >= LDS_PAIR_ALIGN
            && self.gfx >= Gfx::Gfx7;
        match words {
            0 | 1 => LdsRun { words: 1, first: at, second: None },
            _ if align >= 3 && done.is_multiple_of(8) && self.gfx >= Gfx::Gfx7 => {
                LdsRun { words: 2, first: at, second: None }
            }
            _ if pairs => LdsRun { words: 2, first: at / LDS_WORD, second: Some(at / LDS_WORD + 1) },
            _ => LdsRun { words: 1, first: at, second: None },
        }
    }

    fn load_shared(&mut self, inst: Inst, mem: &MemAccess) -> Selected<Vec<Operand>> {
        use Opcode as O;
        let ty = self.func.ty(self.func.result(inst));
        let bytes = match ty.base {
            Base::B8 => 1,
            Base::B16 => 2,
            _ => 4,
        };
        let count = self.result_words(inst) as usize;
        let (address, first) = match bytes {
            4 => self.lds_words_address(self.func.args(inst)[0], count, mem.align),
            _ => self.lds_address(self.func.args(inst)[0]),
        };
        let mut words = Vec::new();
        while words.len() < count {
            let done = words.len() as u64 * bytes;
            let left = if bytes == 4 { count - words.len() } else { 1 };
            let run = self.lds_run(left, first + done, done, mem.align);
            let opcode = match (ty.base, run.words, run.second) {
                (Base::B8, ..) => O::ds_read_u8,
                (Base::B16, ..) => O::ds_read_u16,
                (_, 1, _) => O::ds_read_b32,
                (_, _, None) => O::ds_read_b64,
                _ => O::ds_read2_b32,
            };
            let class = RegClass::vgpr(run.words);
            let temp = self.program.make_temp(class);
            let (definitions, operands) = ([Definition::temp(temp, class)], [address, LDS_LIMIT]);
            let mut new = NewInst::hw(opcode, &definitions, self.lds_operands(&operands));
            run.set_offsets(&mut new.mods);
            new.payload = self.memory(mem);
            self.add(&new);
            words.extend(self.split(Operand::temp(temp, class), 1));
        }
        Ok(words)
    }

    /// Selects a store.
    pub(super) fn store(&mut self, inst: Inst, mem: &MemAccess) -> Selected<()> {
        let func = self.func;
        let args = func.args(inst);
        let ty = func.ty(args[0]);
        if ty.base == Base::B1 || ty.base == Base::Handle {
            return Err(self.unsupported(inst, Some("not a number")));
        }
        let mut words: Vec<Operand> = Vec::new();
        for lane in self.value(args[0]).to_vec() {
            if ty.base == Base::B64 { words.extend(self.words(lane)) } else { words.push(lane) }
        }
        match mem.space {
            Space::Storage => self.store_buffer(inst, mem, &words),
            Space::Shared => self.store_shared(inst, mem, &words),
            Space::Scratch => self.store_scratch(inst, &words)?,
            Space::Global => self.store_global(inst, mem, &words),
            _ => return Err(self.unsupported(inst, Some(mem.space.name()))),
        }
        Ok(())
    }

    fn store_buffer(&mut self, inst: Inst, mem: &MemAccess, words: &[Operand]) {
        use Opcode as O;
        let func = self.func;
        let args = func.args(inst);
        let (handle, offset) = (self.scalar(args[1]), self.scalar(args[2]));
        let (address, first) = self.buffer_address(handle, offset);
        let mut at = 0;
        while at < words.len() {
            let (count, bytes, opcode) = match (func.ty(args[0]).base, words.len() - at) {
                (Base::B8, _) => (1, 1, O::buffer_store_byte),
                (Base::B16, _) => (1, 2, O::buffer_store_short),
                (_, 1) => (1, 4, O::buffer_store_dword),
                (_, 3) if self.gfx > Gfx::Gfx6 => (3, 4, O::buffer_store_dwordx3),
                (_, 2 | 3) => (2, 4, O::buffer_store_dwordx2),
                _ => (4, 4, O::buffer_store_dwordx4),
            };
            let data = self.vector_data(&words[at..at + count]);
            let operands = [data, address[0], address[1], address[2]];
            let mut new = NewInst::hw(opcode, &[], &operands);
            new.mods = self.buffer_mods(mem, false, &address, first + (at * bytes) as u64);
            new.payload = self.memory(mem);
            self.add(&new);
            at += count;
        }
    }

    /// Words as one value in vector registers.
    pub(super) fn vector_data(&mut self, words: &[Operand]) -> Operand {
        let class = RegClass::vgpr(words.len() as u8);
        match words {
            [word] => {
                let word = self.in_vgpr(*word);
                // The data of a store is read, so it needs a register.
                if word.is_undef() { self.copy(class, Operand::c32(0)) } else { word }
            }
            _ => {
                let words: Vec<Operand> =
                    words.iter().map(|word| if word.is_undef() { Operand::c32(0) } else { *word }).collect();
                self.create(class, &words)
            }
        }
    }

    fn store_shared(&mut self, inst: Inst, mem: &MemAccess, words: &[Operand]) {
        use Opcode as O;
        let func = self.func;
        let args = func.args(inst);
        let base = func.ty(args[0]).base;
        let bytes = match base {
            Base::B8 => 1,
            Base::B16 => 2,
            _ => 4,
        };
        let (address, first) = match bytes {
            4 => self.lds_words_address(args[1], words.len(), mem.align),
            _ => self.lds_address(args[1]),
        };
        let mut at = 0;
        while at < words.len() {
            let left = if bytes == 4 { words.len() - at } else { 1 };
            let done = at as u64 * bytes;
            let run = self.lds_run(left, first + done, done, mem.align);
            let opcode = match (base, run.words, run.second) {
                (Base::B8, ..) => O::ds_write_b8,
                (Base::B16, ..) => O::ds_write_b16,
                (_, 1, _) => O::ds_write_b32,
                (_, _, None) => O::ds_write_b64,
                _ => O::ds_write2_b32,
            };
            let own = &words[at..at + usize::from(run.words)];
            let operands = match (own, run.second) {
                ([low, high], Some(_)) => {
                    let [low, high] = [low, high].map(|word| self.vector_data(std::slice::from_ref(word)));
                    vec![address, low, high, LDS_LIMIT]
                }
                _ => vec![address, self.vector_data(own), LDS_LIMIT],
            };
            let mut new = NewInst::hw(opcode, &[], self.lds_operands(&operands));
            run.set_offsets(&mut new.mods);
            new.payload = self.memory(mem);
            self.add(&new);
            at += usize::from(run.words);
        }
    }
}
