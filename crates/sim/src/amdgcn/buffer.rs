//! Buffers: addresses and bounds by a descriptor of four dwords.

use super::access::{self, AccessShape, Action, Dst, Form, LaneValue, MemorySpace};
use super::apply::{self};
use super::counters::WaitCounter;
use super::decoded::DecodedInst;
use super::fault::FaultKind;
use super::issue;
use super::lanes::{SCRATCH_BUFFER, bits, splat};
use super::machine::Machine;
use super::operand::{From, from, number};
use super::pending::{LOCAL, Locks, PLAIN, SAMPLES, UNORDERED};
use super::texel::Texel;
use super::typed::Typed;
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Access, Class, Direction, Mod, Trait};
use unwedge_isa::amdgcn::semantics::{LANES, Lanes, atomic};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Operand, Reg};

/// A buffer access with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferOp {
    action: Action,
    form: Form,
    shape: Option<AccessShape>,
    typed: Option<Typed>,
    data: Option<(Reg, u8)>,
    address: Option<Reg>,
    descriptor: Reg,
    soffset: From,
    offset: i32,
    idxen: bool,
    offen: bool,
    addr64: bool,
    lds: bool,
    /// A register follows that says whether the memory was there: zero.
    status: bool,
}

/// A descriptor.
struct Descriptor {
    base: u64,
    stride: u64,
    records: u64,
    /// Elements of an index stand apart: element size and how many indices are together.
    swizzle: Option<(u64, u64)>,
    add_tid: bool,
    /// How bounds are told from gfx10 on.
    select: u32,
}

impl Descriptor {
    fn new(words: [u32; 4], generation: Gfx) -> Descriptor {
        let [w0, w1, w2, w3] = words;
        let swizzled = if generation >= Gfx::Gfx11 { w1 >> 30 != 0 } else { w1 >> 31 != 0 };
        let index_stride = 8u64 << (w3 >> 21 & 3);
        let element = match generation {
            Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => 2u64 << (w3 >> 19 & 3),
            _ if generation >= Gfx::Gfx11 => [4, 4, 8, 16][(w1 >> 30) as usize & 3],
            _ => 4,
        };
        let add_tid = w3 >> 23 & 1 != 0;
        let mut stride = u64::from(w1 >> 16 & 0x3fff);
        // There the format's bits are more bits of the stride.
        if add_tid && (Gfx::Gfx8..Gfx::Gfx10).contains(&generation) {
            stride |= u64::from(w3 >> 15 & 15) << 14;
        }
        Descriptor {
            base: u64::from(w0) | u64::from(w1 & 0xffff) << 32,
            stride,
            records: w2.into(),
            swizzle: swizzled.then_some((element, index_stride)),
            add_tid,
            select: w3 >> 28 & 3,
        }
    }

    /// Offset from the base, without the scalar one.
    fn offset(&self, index: u64, offset: u64) -> u64 {
        match self.swizzle {
            None => index.wrapping_mul(self.stride).wrapping_add(offset),
            Some((element, count)) => (index / count)
                .wrapping_mul(self.stride)
                .wrapping_mul(count)
                .wrapping_add((offset / element).wrapping_mul(element * count))
                .wrapping_add(index % count * element + offset % element),
        }
    }

    /// Whether it is scratch as a runtime sets it up for buffer instructions.
    fn is_scratch(&self) -> bool {
        self.add_tid && self.swizzle.is_some() && self.base >> 32 == SCRATCH_BUFFER >> 32
    }

    /// An address in scratch as bytes of one lane, if it is that lane's.
    fn own(&self, address: u64, lane: usize) -> Option<u64> {
        let (element, count) = self.swizzle?;
        let at = address & u64::from(u32::MAX);
        (at / element % count == lane as u64).then(|| at / (element * count) * element + at % element)
    }

    /// Makes addresses in scratch bytes of each lane; whether all are the lane's own.
    fn make_own(&self, address: &mut [u64; LANES], lanes: u64) -> bool {
        bits(lanes).all(|lane| match self.own(address[lane], lane) {
            Some(own) => {
                address[lane] = own;
                true
            }
            None => false,
        })
    }

    /// Whether so many bytes are within bounds.
    fn inside(
        &self,
        generation: Gfx,
        index: u64,
        offset: u64,
        soffset: u64,
        bytes: u64,
        structured: bool,
    ) -> bool {
        if generation >= Gfx::Gfx10 {
            return match self.select {
                0 => {
                    index < self.records
                        && (self.stride == 0 || offset + bytes <= self.stride || self.swizzle.is_none())
                }
                1 => index < self.records,
                2 => self.records != 0,
                _ if self.swizzle.is_some() && self.stride != 0 => {
                    offset + bytes <= self.stride && index < self.records
                }
                _ => self.offset(index, offset).saturating_add(bytes) <= self.records,
            };
        }
        if generation == Gfx::Gfx8 || self.stride == 0 || !structured {
            let limit = self.records.saturating_sub(soffset);
            return self.offset(index, offset).saturating_add(bytes) <= limit;
        }
        index < self.records && (self.swizzle.is_none() || offset < self.stride)
    }
}

impl BufferOp {
    /// How many values of each lane are accessed, and the bytes of one.
    fn values(&self) -> (u8, u8) {
        match (self.action, self.shape) {
            (Action::Atomic { width: atomic::AtomicWidth::B64, .. }, _) => (1, 8),
            (Action::Atomic { .. }, shape) => (1, shape.map_or(4, |shape| shape.bytes.min(4))),
            (_, Some(shape)) => (shape.dwords(), shape.bytes.min(4)),
            _ => (1, 4),
        }
    }

    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<BufferOp> {
        let row = inst.row();
        let typed = Typed::new(inst, gpu);
        let access = row.access?;
        let shape = match access {
            Access::Value(_, element, _) => Some(AccessShape::from(element)),
            _ => None,
        };
        let from_lds = row.traits.has(Trait::LdsAlways);
        let action = match access {
            // Where in LDS is known when it is executed.
            Access::Value(Direction::Store, ..) if from_lds => Action::FromLds(0),
            Access::Value(direction, ..) | Access::Typed(direction, _) => direction.into(),
            _ => {
                let (atomic, width) = atomic::of_row(row)?;
                let returns = if inst.variant().has_mod(Mod::Th) {
                    inst.mods.get(Mod::Th) & 1 != 0
                } else {
                    inst.mods.has(Mod::Glc)
                };
                Action::Atomic { atomic, width, returns, compares: atomic::has_second(row) }
            }
        };
        let mut access = BufferOp {
            action,
            form: shape.map_or(Form::Dwords, |shape| shape.form),
            shape,
            typed,
            data: None,
            address: None,
            descriptor: Reg::NULL,
            soffset: From::Const(0),
            offset: inst.mods.get(Mod::Offset),
            idxen: inst.mods.has(Mod::Idxen),
            offen: inst.mods.has(Mod::Offen),
            addr64: inst.mods.has(Mod::Addr64),
            lds: inst.mods.has(Mod::Lds) && !from_lds || row.traits.has(Trait::ToLds),
            status: inst.mods.has(Mod::Tfe) && typed.is_none(),
        };
        if access.status && (access.lds || !matches!(action, Action::Load)) {
            return None;
        }
        for (slot, operand) in inst.written() {
            match (slot.class, operand) {
                (Class::BufferAddr, Operand::Reg { reg, .. }) => access.address = Some(reg),
                (Class::SregQuad, Operand::Reg { reg, .. }) => access.descriptor = reg,
                (Class::BufferOffset, other) => access.soffset = from(other, slot.ty)?,
                (_, Operand::Reg { reg, dwords, .. }) if reg.lane_number().is_some() => {
                    access.data = Some((reg, dwords))
                }
                (_, Operand::Reg { reg, .. }) => access.descriptor = reg,
                _ => {}
            }
        }
        Some(access)
    }
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, buffer: &BufferOp) {
    let generation = machine.gpu.generation();
    let lanes = wave.exec(&machine.gpu);
    let words = [0, 1, 2, 3].map(|n| apply::address_scalar(machine, wave, Reg(buffer.descriptor.0 + n)));
    let descriptor = Descriptor::new(words, generation);
    let soffset = match buffer.soffset {
        From::Scalar(reg) => apply::address_scalar(machine, wave, reg).into(),
        From::Const(value) => value & 0xffff_ffff,
        From::Vgpr(_) => 0,
    };
    let mut next = buffer.address;
    let mut take = |machine: &mut Machine<'_>, wanted: bool| {
        let reg = next.filter(|_| wanted)?;
        next = Some(Reg(reg.0 + 1));
        Some(apply::address_lanes(machine, wave, reg, lanes))
    };
    let index = take(machine, buffer.idxen);
    let voffset = take(machine, buffer.offen);
    let wide = [take(machine, buffer.addr64), take(machine, buffer.addr64)];
    let (count, bytes) = buffer.values();
    let mut valid = vec![0u64; usize::from(count)];
    let mut address = [0u64; LANES];
    let structured = buffer.idxen || descriptor.add_tid;
    let mut texel = None;
    if let Some(typed) = &buffer.typed {
        match typed.texel(words, &machine.gpu) {
            Some(found) => texel = Some(found),
            None => return machine.fault(wave, FaultKind::NotEmulated("the buffer's format")),
        }
    }
    let bytes = texel.map_or(bytes, |texel| texel.format.bytes());
    for lane in bits(lanes) {
        let mut at = index.map_or(0, |v| u64::from(v[lane]));
        if descriptor.add_tid {
            at += lane as u64;
        }
        let offset = i64::from(buffer.offset) + voffset.map_or(0, |v| i64::from(v[lane]));
        let offset = if offset < 0 { offset as u64 } else { offset as u64 & 0xffff_ffff };
        address[lane] = descriptor.base.wrapping_add(soffset).wrapping_add(descriptor.offset(at, offset));
        if let [Some(low), Some(high)] = &wide {
            address[lane] = address[lane].wrapping_add(u64::from(low[lane]) | u64::from(high[lane]) << 32);
        }
        for (n, valid) in valid.iter_mut().enumerate() {
            let inside = buffer.addr64
                || descriptor.inside(
                    generation,
                    at,
                    offset.saturating_add(4 * n as u64),
                    soffset,
                    bytes.into(),
                    structured,
                );
            *valid |= u64::from(inside) << lane;
        }
    }
    let space = if descriptor.is_scratch() { MemorySpace::Scratch } else { MemorySpace::Global };
    if space == MemorySpace::Scratch && !descriptor.make_own(&mut address, lanes) {
        return machine.fault(wave, FaultKind::NotEmulated("scratch of another lane"));
    }
    let untyped: Vec<LaneValue> = valid
        .iter()
        .enumerate()
        .map(|(n, valid)| LaneValue { second: false, offset: 4 * n as u32, bytes, valid: *valid })
        .collect();
    let mut pieces = texel.map_or(untyped, |texel| texel.pieces(valid.iter().fold(u64::MAX, |a, b| a & b)));
    if buffer.status {
        pieces.push(LaneValue { second: false, offset: 0, bytes: 4, valid: 0 });
    }
    let mut action = buffer.action;
    let mut in_lds =
        || (apply::address_scalar(machine, wave, Reg::M0) & 0xffff).wrapping_add(buffer.offset as u32);
    if let Action::FromLds(from) = &mut action {
        *from = in_lds();
    }
    let dst = if buffer.lds {
        Dst::Lds(in_lds())
    } else {
        buffer.data.map_or(Dst::None, |(reg, _)| Dst::Vgpr(number(reg)))
    };
    access_memory(
        machine,
        wave,
        decoded,
        MemoryAccess {
            space,
            action,
            form: texel.map_or(buffer.form, Form::Texel),
            shape: buffer.shape,
            dst,
            data: buffer.data.map(|(reg, _)| reg),
            lanes,
            address,
            pieces,
        },
    );
}

/// An access of the vector memory path, ready to be issued.
pub(super) struct MemoryAccess {
    pub(super) space: MemorySpace,
    pub(super) action: Action,
    pub(super) form: Form,
    pub(super) shape: Option<AccessShape>,
    pub(super) dst: Dst,
    /// The first register to be stored.
    pub(super) data: Option<Reg>,
    pub(super) lanes: u64,
    pub(super) address: [u64; LANES],
    pub(super) pieces: Vec<LaneValue>,
}

/// Registers as the dwords of memory that a format makes of them, and what of these is not known.
fn texel_data(texel: &Texel, data: &[Lanes], unknown: &[Lanes]) -> (Vec<Lanes>, Vec<Lanes>) {
    let dwords = usize::from(texel.format.bytes().div_ceil(4));
    let mut made = (vec![splat(0); dwords], vec![splat(0); if unknown.is_empty() { 0 } else { dwords }]);
    for lane in 0..LANES {
        let words = texel.store(std::array::from_fn(|n| data.get(n).map_or(0, |lanes| lanes[lane])));
        made.0.iter_mut().zip(words).for_each(|(place, word)| place[lane] = word);
        if unknown.iter().any(|lanes| lanes[lane] != 0) {
            made.1.iter_mut().for_each(|place| place[lane] = u32::MAX);
        }
    }
    made
}

/// The counter of an access of the vector memory path, and what it writes registers in order among.
pub(super) fn vector_counters(generation: Gfx, returns: bool, sampled: bool) -> (WaitCounter, u8) {
    let counter = match (generation, returns) {
        (Gfx::Gfx12, true) if sampled => WaitCounter::Sample,
        (Gfx::Gfx12, true) => WaitCounter::Load,
        (_, false) if generation >= Gfx::Gfx10 => WaitCounter::Vs,
        _ => WaitCounter::Vm,
    };
    (counter, if sampled && generation >= Gfx::Gfx10 { SAMPLES } else { PLAIN })
}

/// Issues an access of the vector memory path, with the counters of its generation.
pub(super) fn access_memory(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    memory: MemoryAccess,
) {
    let generation = machine.gpu.generation();
    let (mut data, mut unknown) = (Vec::new(), Vec::new());
    let returns = match memory.action {
        Action::Load => true,
        Action::Store | Action::FromLds(_) => false,
        Action::Atomic { returns, .. } => returns,
    };
    let mut locks = None;
    if !matches!(memory.action, Action::Load | Action::FromLds(_)) {
        let dwords: u8 = memory.pieces.iter().map(|piece| piece.bytes.div_ceil(4)).sum();
        let dwords = match (memory.action, memory.form) {
            (Action::Atomic { compares: true, .. }, _) => dwords * 2,
            (_, Form::Texel(texel)) => texel.data_registers(),
            _ => dwords,
        };
        let Some(first) = memory.data else { return machine.fault(wave, FaultKind::NoSemantics) };
        let Some(stored) = apply::stored(machine, wave, first, dwords) else { return };
        (data, unknown) = stored;
        if let Form::Texel(texel) = memory.form {
            (data, unknown) = texel_data(&texel, &data, &unknown);
        }
        if let Some(shape) = memory.shape {
            for lanes in data.iter_mut().chain(&mut unknown) {
                lanes.iter_mut().for_each(|value| *value = shape.stored(*value));
            }
        }
        // There a store's data is read late, and counted.
        if generation == Gfx::Gfx6 {
            let mut held = Locks::new(WaitCounter::Exp);
            held.add(first, dwords);
            locks = Some(held);
        }
    }
    let flat = memory.space == MemorySpace::Flat;
    let mut counters = vec![vector_counters(generation, returns, false)];
    if flat && generation < Gfx::Gfx10 {
        counters[0].1 = UNORDERED;
    }
    if flat {
        let shared = if generation >= Gfx::Gfx12 { WaitCounter::Ds } else { WaitCounter::Lgkm };
        let kind = if generation < Gfx::Gfx10 { UNORDERED } else { LOCAL };
        counters.push((shared, kind));
    }
    if locks.is_some() {
        counters.push((WaitCounter::Exp, PLAIN));
    }
    let access = access::Access {
        at: decoded.at,
        space: memory.space,
        action: memory.action,
        form: memory.form,
        dst: if returns { memory.dst } else { Dst::None },
        lanes: memory.lanes,
        address: memory.address,
        second: None,
        pieces: memory.pieces,
        data,
        unknown,
    };
    if let Some(first) = memory.data {
        apply::check_stored(machine, wave, &access, first);
    }
    issue::issue(machine, wave, access, &counters, locks);
}
