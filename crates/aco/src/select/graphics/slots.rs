//! Interface slots in memory: in LDS, in the rings of geometry shaders, and in the memory that patches are left in.
//!
//! Descriptors of rings are in a table, at 16 bytes times the number that [`Ring`] gives them. The driver makes them.

use super::{Selected, Selector, SlotValues};
use crate::abi::Argument;
use crate::graphics::MemorySlots;
use crate::ir::{Definition, Memory, NewInst, Operand, Payload, Pseudo, RegClass};
use crate::select::memory::LDS_LIMIT;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_shader::ir::{Access, BarrierInfo, Inst, MemoryKinds, Order, Scope, SlotAccess};

/// The largest immediate offset of a buffer instruction.
const MAX_BUFFER_OFFSET: u32 = 4095;
/// The largest immediate offset of an LDS instruction.
const MAX_LDS_OFFSET: u32 = 65535;
/// Bytes of a descriptor of a buffer.
const DESCRIPTOR: u32 = 16;

/// A ring: its number in the table of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::select) enum Ring {
    /// Vertices for geometry shaders, as they are written: lanes are 4 bytes apart, in groups of 64, and the hardware adds the lane.
    EsGsStore = 1,
    /// Vertices for geometry shaders, as they are read: plain bytes.
    EsGsLoad = 2,
    /// Vertices of geometry shaders, as they are read: plain bytes.
    GsVsLoad = 3,
    /// Vertices of geometry shaders, as they are written: lanes are 4 bytes apart, in groups of 16, and the hardware adds the lane; the program adds the stride.
    GsVsStore = 4,
    /// Tessellation factors.
    Factors = 5,
    /// Patches.
    Patches = 6,
}

/// Where a slot is: bytes that lanes may differ in, and constant ones.
#[derive(Debug, Clone, Copy)]
pub(in crate::select) struct SlotPlace {
    pub(super) varying: Operand,
    pub(super) constant: u32,
}

impl SlotPlace {
    pub(super) fn at(varying: Operand, constant: u32) -> SlotPlace {
        SlotPlace { varying, constant }
    }
}

/// Memory between stages.
const BETWEEN: Payload =
    Payload::Memory(Memory { kinds: MemoryKinds::OUTPUTS, access: Access::COHERENT, private: false });
/// LDS.
const LOCAL: Payload =
    Payload::Memory(Memory { kinds: MemoryKinds::SHARED, access: Access::NONE, private: false });

impl Selector<'_> {
    /// A number times a constant.
    pub(super) fn scaled(&mut self, number: Operand, factor: u32) -> Operand {
        if let Some(number) = number.as_const() {
            return Operand::c32((number as u32).wrapping_mul(factor));
        }
        if factor == 0 {
            return Operand::c32(0);
        }
        let factor = Operand::c32(factor);
        if number.class.is_sgpr() {
            return self.salu(Opcode::s_mul_i32, RegClass::S1, &[number, factor]);
        }
        self.valu(Opcode::v_mul_u32_u24, RegClass::V1, &[factor, number])
    }

    /// A sum of two numbers, each of which may be scalar or constant.
    pub(super) fn sum(&mut self, a: Operand, b: Operand) -> Operand {
        match (a.as_const(), b.as_const()) {
            (Some(a), Some(b)) => Operand::c32((a as u32).wrapping_add(b as u32)),
            (Some(0), _) => b,
            (_, Some(0)) => a,
            _ if a.class.is_sgpr() && b.class.is_sgpr() => {
                self.salu(Opcode::s_add_u32, RegClass::S1, &[a, b])
            }
            _ => self.vector_add(a, b),
        }
    }

    /// Where the slot of an access is in a vertex or patch, whose operands after the vertex are from `offset` on. `None`: memory does not have it.
    pub(super) fn slot_place(
        &mut self,
        inst: Inst,
        access: &SlotAccess,
        slots: &MemorySlots,
        offset: usize,
    ) -> Selected<Option<SlotPlace>> {
        let chosen = self.func.args(inst).get(offset).copied();
        let number = chosen.and_then(|value| self.func.const_bits(value));
        let component = u32::from(access.component) * 4;
        if let Some(number) = number {
            let slot = u16::try_from(number).ok().filter(|number| *number < access.count);
            let slot = slot.map_or(access.slot, |number| access.slot.wrapping_add(number));
            let place = slots.offset(slot, access.patch);
            return Ok(place.map(|place| SlotPlace::at(Operand::c32(0), place + component)));
        }
        let has = |number| slots.offset(access.slot.wrapping_add(number), access.patch).is_some();
        if !(0..access.count).any(has) {
            return Ok(None);
        }
        let first = slots.offset(access.slot, access.patch);
        let follow = (0..access.count).all(|number| {
            let place = slots.offset(access.slot.wrapping_add(number), access.patch);
            place
                .zip(first)
                .is_some_and(|(place, first)| place == first + u32::from(number) * MemorySlots::SLOT_BYTES)
        });
        let (Some(first), true, Some(chosen)) = (first, follow, chosen) else {
            return Err(self.unsupported(inst, Some("an index into slots that do not follow each other")));
        };
        let chosen = self.scalar(chosen);
        let varying = self.scaled(chosen, MemorySlots::SLOT_BYTES);
        Ok(Some(SlotPlace::at(varying, first + component)))
    }

    /// The descriptor of a ring.
    pub(super) fn ring(&mut self, ring: Ring) -> Operand {
        let table = match self.find_argument(Argument::Rings) {
            Some(low) => self.create(RegClass::S2, &[low, Operand::c32(self.options.address_high)]),
            None => self.find_argument(Argument::RingOffsets).unwrap_or(Operand::undef(RegClass::S2)),
        };
        self.table_descriptor(table, ring as u32)
    }

    /// The descriptor of a buffer in a table at an address.
    pub(super) fn table_descriptor(&mut self, table: Operand, number: u32) -> Operand {
        let at = self.smem_offset(Operand::c32(number.saturating_mul(DESCRIPTOR)));
        self.smem(Opcode::s_load_dwordx4, RegClass::sgpr(4), table, at)
    }

    /// Loads words of a ring, each word in one access if lanes are interleaved in the ring.
    pub(super) fn load_ring(
        &mut self,
        ring: Ring,
        place: SlotPlace,
        base: Operand,
        count: u32,
        stride: u32,
    ) -> Vec<Operand> {
        let descriptor = self.ring(ring);
        let mut words = Vec::new();
        while (words.len() as u32) < count {
            let (dwords, opcode) = match count - words.len() as u32 {
                1 => (1, Opcode::buffer_load_dword),
                _ if stride != 4 => (1, Opcode::buffer_load_dword),
                2 | 3 => (2, Opcode::buffer_load_dwordx2),
                _ => (4, Opcode::buffer_load_dwordx4),
            };
            let class = RegClass::vgpr(dwords);
            let temp = self.program.make_temp(class);
            let definitions = [Definition::temp(temp, class)];
            let (address, offset) = self.ring_address(place, words.len() as u32 * stride);
            let operands = [address, descriptor, base];
            let mut new = NewInst::hw(opcode, &definitions, &operands);
            new.mods = self.access_mods(Access::COHERENT, true);
            new.mods.set(Mod::Offen, i32::from(!address.is_undef()));
            new.mods.set(Mod::Offset, offset as i32);
            new.payload = BETWEEN;
            self.add(&new);
            words.extend(self.split(Operand::temp(temp, class), 1));
        }
        words
    }

    /// Stores components in a ring.
    pub(super) fn store_ring(
        &mut self,
        descriptor: Operand,
        place: SlotPlace,
        base: Operand,
        values: &[Option<Operand>],
        stride: u32,
    ) {
        let gfx6 = self.gfx == Gfx::Gfx6;
        for (first, count) in runs(values, |_, len| stride == 4 && len < if gfx6 { 2 } else { 4 }) {
            let words: Vec<Operand> =
                values[first..first + count].iter().filter_map(|value| *value).collect();
            let opcode = match count {
                1 => Opcode::buffer_store_dword,
                2 => Opcode::buffer_store_dwordx2,
                3 => Opcode::buffer_store_dwordx3,
                _ => Opcode::buffer_store_dwordx4,
            };
            let data = self.vector_data(&words);
            let (address, offset) = self.ring_address(place, first as u32 * stride);
            let operands = [data, address, descriptor, base];
            let mut new = NewInst::hw(opcode, &[], &operands);
            new.mods = self.access_mods(Access::COHERENT, false);
            new.mods.set(Mod::Offen, i32::from(!address.is_undef()));
            new.mods.set(Mod::Offset, offset as i32);
            new.payload = BETWEEN;
            self.add(&new);
        }
    }

    /// The vector address of a buffer instruction, and its immediate.
    fn ring_address(&mut self, place: SlotPlace, more: u32) -> (Operand, u32) {
        let constant = place.constant.wrapping_add(more);
        let fits = constant & MAX_BUFFER_OFFSET;
        let varying = self.sum(place.varying, Operand::c32(constant - fits));
        match varying.as_const() {
            Some(0) => (Operand::undef(RegClass::V1), fits),
            _ => (self.in_vgpr(varying), fits),
        }
    }

    /// The vector address of an LDS instruction, and its immediate.
    fn local_address(&mut self, place: SlotPlace, most: u32) -> (Operand, u32) {
        let (varying, constant) = if place.constant + most <= MAX_LDS_OFFSET {
            (place.varying, place.constant)
        } else {
            (self.sum(place.varying, Operand::c32(place.constant)), 0)
        };
        (self.in_vgpr(varying), constant)
    }

    fn local_operands<'o>(&self, operands: &'o [Operand]) -> &'o [Operand] {
        let last = if self.gfx <= Gfx::Gfx8 { 0 } else { 1 };
        &operands[..operands.len() - last]
    }

    /// Loads words of LDS.
    pub(super) fn load_local(&mut self, place: SlotPlace, count: u32) -> Vec<Operand> {
        let (address, constant) = self.local_address(place, count * 4);
        let aligned = place.constant.is_multiple_of(8);
        let mut words = Vec::new();
        while (words.len() as u32) < count {
            let at = words.len() as u32;
            let (dwords, opcode) = match count - at {
                2.. if aligned && at.is_multiple_of(2) => (2, Opcode::ds_read_b64),
                _ => (1, Opcode::ds_read_b32),
            };
            let class = RegClass::vgpr(dwords);
            let temp = self.program.make_temp(class);
            let (definitions, operands) = ([Definition::temp(temp, class)], [address, LDS_LIMIT]);
            let mut new = NewInst::hw(opcode, &definitions, self.local_operands(&operands));
            new.mods.set(Mod::Offset, (constant + at * 4) as i32);
            new.payload = LOCAL;
            self.add(&new);
            words.extend(self.split(Operand::temp(temp, class), 1));
        }
        words
    }

    /// Stores components in LDS.
    pub(super) fn store_local(&mut self, place: SlotPlace, values: &[Option<Operand>]) {
        let (address, constant) = self.local_address(place, values.len() as u32 * 4);
        let start = place.constant as usize / 4;
        for (first, count) in runs(values, |at, len| len == 1 && (start + at).is_multiple_of(2)) {
            let words: Vec<Operand> =
                values[first..first + count].iter().filter_map(|value| *value).collect();
            let opcode = if count == 2 { Opcode::ds_write_b64 } else { Opcode::ds_write_b32 };
            let data = self.vector_data(&words);
            self.local(opcode, address, data, constant + first as u32 * 4);
        }
    }

    /// An LDS instruction with data and without a result.
    pub(super) fn local(&mut self, opcode: Opcode, address: Operand, data: Operand, offset: u32) {
        let operands = [address, data, LDS_LIMIT];
        let mut new = NewInst::hw(opcode, &[], self.local_operands(&operands));
        new.mods.set(Mod::Offset, offset as i32);
        new.payload = LOCAL;
        self.add(&new);
    }

    /// Waits until all waves of the workgroup are here and have written LDS.
    pub(in crate::select) fn local_barrier(&mut self) {
        let info = BarrierInfo {
            execution: Scope::Workgroup,
            memory: Scope::Workgroup,
            order: Order::ACQUIRE.or(Order::RELEASE),
            kinds: MemoryKinds::SHARED,
        };
        let mut new = NewInst::pseudo(Pseudo::Barrier, &[], &[]);
        new.payload = Payload::Barrier(info);
        self.add(&new);
    }

    /// The components of a slot that were stored, of the outputs at the end.
    pub(super) fn stored_slot(&self, slot: u16) -> SlotValues {
        let stored = self.outputs.get(&(slot, 0)).copied().unwrap_or_default();
        stored.map(|value| value.filter(|value| !value.is_undef()))
    }

    /// Stores the outputs of a vertex in LDS.
    pub(super) fn store_vertex_local(&mut self, slots: &MemorySlots, vertex: Operand) {
        let address = self.scaled(vertex, slots.vertex_bytes());
        for (number, &slot) in (0..).zip(&slots.vertex) {
            let values = self.stored_slot(slot);
            self.store_local(SlotPlace::at(address, number * MemorySlots::SLOT_BYTES), &values);
        }
    }

    /// Stores the outputs of a vertex in the ring before geometry shaders.
    pub(super) fn store_vertex_ring(&mut self, slots: &MemorySlots) {
        let descriptor = self.ring(Ring::EsGsStore);
        let base = self.given(Argument::EsToGs);
        for (number, &slot) in (0..).zip(&slots.vertex) {
            let values = self.stored_slot(slot);
            // A lane has every 64th dword.
            for (component, value) in (0..).zip(&values) {
                let place = SlotPlace::at(Operand::c32(0), number * MemorySlots::SLOT_BYTES + component * 4);
                self.store_ring(descriptor, place, base, &[*value], 0);
            }
        }
    }
}

/// Runs of consecutive components that are stored together, each with its first component and length. `joins` says whether one more may join a run, given the place of its first one and its length.
fn runs(values: &[Option<Operand>], joins: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in values.iter().enumerate().filter(|(_, value)| value.is_some()) {
        match runs.last_mut() {
            Some((first, len)) if *first + *len == at && joins(*first, *len) => *len += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}
