//! Accesses to memory by the lanes of a wave: what is read or written where, and what becomes of it.

use super::access::{Access, Action, Dst, Form, LaneValue, MemorySpace, Read};
use super::fault::{FaultKind, Missing};
use super::lanes::{PRIVATE_APERTURE, SHARED_APERTURE, bits, splat};
use super::machine::Machine;
use super::operand::number;
use super::texel::Texel;
use super::wave::Wave;
use crate::fault::MemoryFault;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::semantics::atomic::AtomicWidth as Width;
use unwedge_isa::amdgcn::semantics::{LANES, Lanes};

/// An address of a lane in the memory it means.
enum Where {
    Global(u64),
    Lds(u64),
    Gds(u64),
    /// Behind its end: the greatest number.
    Scratch(usize),
}

/// What was read, as a format puts it into registers.
fn converted(wave: &Wave, access: &Access, read: &Read, texel: &Texel) -> Read {
    let count = usize::from(texel.registers());
    let mut made = Read { values: vec![splat(0); count], unknown: Vec::new() };
    let valid = access.pieces.iter().fold(u64::MAX, |all, piece| all & piece.valid);
    let first = match access.dst {
        Dst::Vgpr(first) => usize::from(first),
        _ => usize::MAX,
    };
    for lane in bits(access.lanes) {
        let word = |all: &[Lanes], n: usize| all.get(n).map_or(0, |lanes| lanes[lane]);
        let words = (valid >> lane & 1 != 0).then(|| [0, 1, 2, 3].map(|n| word(&read.values, n)));
        let old = std::array::from_fn(|n| {
            first.checked_add(n).and_then(|at| wave.v.get(at)).map_or(0, |lanes| lanes[lane])
        });
        let values = texel.load(words, old);
        made.values.iter_mut().zip(values).for_each(|(place, value)| place[lane] = value);
        if read.unknown.iter().any(|lanes| lanes[lane] != 0) {
            made.unknown.resize(count, splat(0));
            made.unknown.iter_mut().for_each(|place| place[lane] = u32::MAX);
        }
    }
    made
}

/// The lane whose element a lane gets, and where: elements are halves of registers or bytes. Which element it is says the
/// lane's number in eight. As measured on a gfx1201: of halves those of the eight lanes around it, of bytes those of
/// two times four of sixteen.
fn turned_from(lane: usize, at: usize, halves: bool) -> usize {
    match halves {
        true => (lane & !7) + at,
        false => (lane & !15) + 8 * (at / 4) + 4 * (lane / 8 % 2) + at % 4,
    }
}

/// Eight elements of each lane, turned.
fn turned(read: &Read, halves: bool) -> Read {
    let (bits, each) = if halves { (16, 2) } else { (8, 4) };
    let element = |lanes: &[Lanes], lane: usize, at: usize| {
        let register = lanes.get(at / each).map_or(0, |register| register[lane]);
        register >> (bits * (at % each)) & ((1 << bits) - 1)
    };
    let all = |lanes: &[Lanes]| -> Vec<Lanes> {
        let word = |lane: usize, n: usize| {
            (0..each).fold(0, |word, at| {
                let from = turned_from(lane, n * each + at, halves);
                word | element(lanes, from, lane & 7) << (bits * at)
            })
        };
        (0..lanes.len().min(8 / each)).map(|n| std::array::from_fn(|lane| word(lane, n))).collect()
    };
    Read { values: all(&read.values), unknown: all(&read.unknown) }
}

/// The elements of 16 lanes, one after the other, are rows of 16, and each lane gets a column: as AMD's rocRoller tests it on gfx950.
fn columns(read: &Read, width: u8) -> Read {
    let width = usize::from(width);
    let all = |lanes: &[Lanes]| -> Vec<Lanes> {
        let items = lanes.len() * 32 / width;
        let element = |lane: usize, at: usize| {
            let from = at * width;
            let word = |n: usize| lanes.get(n).map_or(0, |register| u64::from(register[lane]));
            (word(from / 32) | word(from / 32 + 1) << 32) >> (from % 32) & ((1 << width) - 1)
        };
        let mut made = vec![splat(0); lanes.len()];
        for lane in 0..LANES {
            for at in 0..items {
                let number = 16 * at + lane % 16;
                let value = element(lane & !15 | (number / items), number % items);
                let to = at * width;
                made[to / 32][lane] |= (value << (to % 32)) as u32;
                if let Some(next) = made.get_mut(to / 32 + 1) {
                    next[lane] |= (value << (to % 32) >> 32) as u32;
                }
            }
        }
        made
    };
    Read { values: all(&read.values), unknown: all(&read.unknown) }
}

fn location(machine: &Machine<'_>, access: &Access, lane: usize, piece: &LaneValue, scratch: usize) -> Where {
    let base = match &access.second {
        Some(second) if piece.second => second[lane],
        _ => access.address[lane],
    };
    let address = base.wrapping_add(piece.offset.into());
    let lanes = machine.gpu.lanes() as usize;
    let own = scratch / lanes;
    // Every lane has its own bytes; what is beyond them is beyond scratch.
    let private = |offset: u64| match usize::try_from(offset) {
        Ok(offset) if offset + usize::from(piece.bytes) <= own => Where::Scratch(lane * own + offset),
        _ => Where::Scratch(usize::MAX),
    };
    match access.space {
        MemorySpace::Global => Where::Global(address),
        MemorySpace::Lds => Where::Lds(address),
        MemorySpace::Gds => Where::Gds(address),
        MemorySpace::Scratch => private(address),
        MemorySpace::Flat if address >> 32 == SHARED_APERTURE >> 32 => Where::Lds(address & 0xffff_ffff),
        MemorySpace::Flat if address >> 32 == PRIVATE_APERTURE >> 32 => private(address & 0xffff_ffff),
        MemorySpace::Flat => Where::Global(address),
    }
}

/// Up to eight bytes of mapped and known memory; what is neither is a fault.
pub(super) fn load(machine: &mut Machine<'_>, wave: &Wave, address: u64, bytes: u8) -> Option<u64> {
    match machine.view.read(address, bytes.into()).at(address) {
        Ok(value) => Some(value),
        Err(fault) => {
            machine.fault(wave, FaultKind::Memory(fault));
            None
        }
    }
}

fn read_at(machine: &mut Machine<'_>, wave: &mut Wave, at: &Where, bytes: u8) -> (u64, u64) {
    match *at {
        Where::Global(address) => (load(machine, wave, address, bytes).unwrap_or(0), 0),
        Where::Lds(address) => machine.lds.read(address, bytes),
        Where::Gds(address) => machine.gds.read(address, bytes),
        Where::Scratch(at) => {
            if at == usize::MAX {
                machine.fault(wave, FaultKind::BeyondScratch);
                return (0, 0);
            }
            wave.scratch.read(at as u64, bytes)
        }
    }
}

fn write_at(machine: &mut Machine<'_>, wave: &mut Wave, at: &Where, bytes: u8, value: u64, unknown: u64) {
    match *at {
        Where::Global(address) => {
            if !machine.view.write(address, bytes.into(), value) {
                machine.fault(wave, FaultKind::Memory(MemoryFault::unmapped_write(address)));
            }
        }
        Where::Lds(address) => machine.lds.write(address, bytes, value, unknown),
        Where::Gds(address) => machine.gds.write(address, bytes, value, unknown),
        Where::Scratch(at) => {
            if at == usize::MAX {
                return machine.fault(wave, FaultKind::BeyondScratch);
            }
            wave.scratch.write(at as u64, bytes, value, unknown);
        }
    }
}

/// Does what an access does to memory.
pub(super) fn perform(machine: &mut Machine<'_>, wave: &mut Wave, access: &Access) -> Read {
    let scratch = wave.scratch.bytes.len();
    let mut read = Read::default();
    match access.action {
        Action::Load => {
            for piece in &access.pieces {
                let dwords = usize::from(piece.bytes).div_ceil(4);
                let (mut values, mut unknown) = ([splat(0); 2], [splat(0); 2]);
                for lane in bits(access.lanes & piece.valid) {
                    let at = location(machine, access, lane, piece, scratch);
                    let (value, bits) = read_at(machine, wave, &at, piece.bytes);
                    for dword in 0..dwords.min(2) {
                        values[dword][lane] = (value >> (32 * dword)) as u32;
                        unknown[dword][lane] = (bits >> (32 * dword)) as u32;
                    }
                }
                read.values.extend_from_slice(&values[..dwords.min(2)]);
                if wave.unknown.is_some() {
                    read.unknown.extend_from_slice(&unknown[..dwords.min(2)]);
                }
            }
        }
        Action::Store => {
            let mut dword = 0;
            for piece in &access.pieces {
                let dwords = usize::from(piece.bytes).div_ceil(4);
                let get = |all: &[Lanes], lane: usize| {
                    let at = |n: usize| all.get(n).map_or(0, |lanes| u64::from(lanes[lane]));
                    at(dword) | if dwords > 1 { at(dword + 1) << 32 } else { 0 }
                };
                for lane in bits(access.lanes & piece.valid) {
                    let at = location(machine, access, lane, piece, scratch);
                    let (value, unknown) = (get(&access.data, lane), get(&access.unknown, lane));
                    write_at(machine, wave, &at, piece.bytes, value, unknown);
                }
                dword += dwords;
            }
        }
        Action::FromLds(from) => {
            for piece in &access.pieces {
                for lane in bits(access.lanes & piece.valid) {
                    let (value, unknown) = machine.lds.read(u64::from(from) + 4 * lane as u64, 4);
                    if unknown != 0 {
                        machine.fault(wave, FaultKind::Stored(Reg::LDS_DIRECT, Missing::UnwrittenMemory));
                    }
                    let at = location(machine, access, lane, piece, scratch);
                    write_at(machine, wave, &at, piece.bytes, value, 0);
                }
            }
        }
        Action::Atomic { atomic, width, returns, compares } => {
            let bytes = if width == Width::B64 { 8u8 } else { 4 };
            let dwords = usize::from(bytes / 4);
            let mode = wave.float_mode(machine.gpu.generation());
            let mut old = vec![splat(0); dwords * access.pieces.len()];
            let mut old_unknown = old.clone();
            for (number, piece) in access.pieces.iter().enumerate() {
                let of = |all: &[Lanes], lane: usize, from: usize| {
                    let at = |n: usize| all.get(n).map_or(0, |lanes| u64::from(lanes[lane]));
                    at(from) | if dwords > 1 { at(from + 1) << 32 } else { 0 }
                };
                let get = |lane, from| of(&access.data, lane, from);
                for lane in bits(access.lanes & piece.valid) {
                    let at = location(machine, access, lane, piece, scratch);
                    let (before, unsure) = read_at(machine, wave, &at, bytes);
                    let data = get(lane, number * dwords);
                    let compared =
                        if compares { get(lane, (number + access.pieces.len()) * dwords) } else { 0 };
                    let after = atomic(&mode, before, data, compared);
                    let given = of(&access.unknown, lane, number * dwords)
                        | of(&access.unknown, lane, (number + access.pieces.len()) * dwords);
                    // What was there may not matter, as in an exchange.
                    let matters = unsure != 0
                        && [0, u64::MAX, i64::MAX as u64, 1 << 63, 1 << 31, (1 << 31) - 1, !before]
                            .iter()
                            .any(|other| atomic(&mode, *other, data, compared) != after);
                    let unknown = if given != 0 || matters { u64::MAX } else { 0 };
                    write_at(machine, wave, &at, bytes, after, unknown);
                    for dword in 0..dwords {
                        old[number * dwords + dword][lane] = (before >> (32 * dword)) as u32;
                        old_unknown[number * dwords + dword][lane] = (unsure >> (32 * dword)) as u32;
                    }
                }
            }
            if returns {
                read.values = old;
                if wave.unknown.is_some() {
                    read.unknown = old_unknown;
                }
            }
        }
    }
    read
}

/// Puts what was read into registers.
pub(super) fn deliver(machine: &mut Machine<'_>, wave: &mut Wave, access: &Access, read: &Read) {
    if let Form::Texel(texel) = access.form {
        let (made, form) = (converted(wave, access, read, &texel), Form::Dwords);
        return deliver(machine, wave, &Access { form, ..access.clone() }, &made);
    }
    if let Form::Turned { halves } = access.form {
        let made = turned(read, halves);
        return deliver(machine, wave, &Access { form: Form::Dwords, ..access.clone() }, &made);
    }
    if let Form::Columns { bits } = access.form {
        let made = columns(read, bits);
        return deliver(machine, wave, &Access { form: Form::Dwords, ..access.clone() }, &made);
    }
    match access.dst {
        Dst::None => {}
        Dst::Lds(base) => {
            if let Some(values) = read.values.first() {
                for lane in bits(access.lanes) {
                    machine.lds.write(u64::from(base) + 4 * lane as u64, 4, values[lane].into(), 0);
                }
            }
        }
        Dst::Scalar(reg) => {
            for (n, values) in (0u16..).zip(&read.values) {
                let value = formed(access.form, values[0], 0);
                let dst = if reg == Reg::NULL { reg } else { Reg(reg.0 + n) };
                let unknown = read.unknown.get(usize::from(n)).map_or(0, |lanes| lanes[0]);
                wave.set_unknown(dst, value, unknown, Missing::UnwrittenMemory);
            }
        }
        Dst::Vgpr(first) => {
            for (n, values) in read.values.iter().enumerate().filter(|(n, _)| !access.form.leaves(*n)) {
                // Behind one that is kept in part stands what says whether memory was there.
                let form = if n == 0 { access.form } else { Form::Dwords };
                let at = usize::from(first) + n;
                let Some(old) = wave.v.get(at).copied() else {
                    return machine.fault(wave, FaultKind::NoRegister);
                };
                let mut new = *values;
                for (lane, place) in new.iter_mut().enumerate() {
                    *place = formed(form, *place, old[lane]);
                }
                wave.set_lanes(at as u16, access.lanes, &new);
                if let Some(state) = &wave.unknown {
                    let before = state.v[at];
                    let mut unknown = read.unknown.get(n).copied().unwrap_or(splat(0));
                    for (lane, place) in unknown.iter_mut().enumerate() {
                        *place = formed(form, *place, before[lane]);
                    }
                    wave.set_unknown_lanes(at as u16, access.lanes, &unknown, Missing::UnwrittenMemory);
                }
            }
        }
    }
}

/// Dwords of vector registers to be stored, with what is unknown of them.
pub(super) fn stored(
    machine: &mut Machine<'_>,
    wave: &Wave,
    first: Reg,
    dwords: u8,
) -> Option<(Vec<Lanes>, Vec<Lanes>)> {
    let from = usize::from(number(first));
    let values = wave.v.get(from..from + usize::from(dwords));
    let Some(values) = values else {
        machine.fault(wave, FaultKind::NoRegister);
        return None;
    };
    let unknown = wave.unknown.as_ref().map(|state| state.v[from..from + usize::from(dwords)].to_vec());
    Some((values.to_vec(), unknown.unwrap_or_default()))
}

/// Reports unknown values that are stored, but to LDS and scratch, which remember them.
pub(super) fn check_stored(machine: &mut Machine<'_>, wave: &Wave, access: &Access, first: Reg) {
    let remembers = matches!(access.space, MemorySpace::Lds | MemorySpace::Scratch);
    if remembers || matches!(access.action, Action::Load | Action::FromLds(_)) {
        return;
    }
    let mut stored = access.lanes;
    if access.space == MemorySpace::Flat {
        let own = [SHARED_APERTURE >> 32, PRIVATE_APERTURE >> 32];
        stored = bits(stored)
            .filter(|lane| !own.contains(&(access.address[*lane] >> 32)))
            .fold(0, |all, lane| all | 1 << lane);
    }
    let mut dword = 0;
    for piece in &access.pieces {
        let mask = if piece.bytes < 4 { (1u32 << (8 * u32::from(piece.bytes))) - 1 } else { u32::MAX };
        for _ in 0..piece.bytes.div_ceil(4) {
            let unknown = access.unknown.get(dword);
            let found =
                unknown.is_some_and(|lanes| bits(stored & piece.valid).any(|lane| lanes[lane] & mask != 0));
            if found {
                let reg = Reg(first.0 + dword as u16);
                return machine.fault(wave, FaultKind::Stored(reg, wave.why(reg)));
            }
            dword += 1;
        }
    }
}

/// An address in a vector register: reports lanes that are not known.
pub(super) fn address_lanes(machine: &mut Machine<'_>, wave: &Wave, reg: Reg, lanes: u64) -> Lanes {
    let at = usize::from(number(reg));
    if let Some(unknown) = wave.unknown.as_ref().and_then(|state| state.v.get(at))
        && bits(lanes).any(|lane| unknown[lane] != 0)
    {
        machine.fault(wave, FaultKind::Address(reg, wave.why(reg)));
    }
    match wave.v.get(at) {
        Some(values) => *values,
        None => {
            machine.fault(wave, FaultKind::NoRegister);
            splat(0)
        }
    }
}

/// A scalar register that is part of an address.
pub(super) fn address_scalar(machine: &mut Machine<'_>, wave: &Wave, reg: Reg) -> u32 {
    if wave.unknown_sreg(reg) != 0 {
        machine.fault(wave, FaultKind::Address(reg, wave.why(reg)));
    }
    wave.sreg(reg)
}

/// Values of a register in some lanes: what is not known of them is reported as stored.
pub(super) fn given(machine: &mut Machine<'_>, wave: &Wave, reg: Option<Reg>, lanes: u64) -> Option<Lanes> {
    let reg = reg?;
    let (values, unknown) = stored(machine, wave, reg, 1)?;
    if unknown.first().is_some_and(|unknown| bits(lanes).any(|lane| unknown[lane] != 0)) {
        machine.fault(wave, FaultKind::Stored(reg, wave.why(reg)));
    }
    values.first().copied()
}

/// A dword as a form puts it into a register.
fn formed(form: Form, value: u32, old: u32) -> u32 {
    let extended = |bytes: u8, signed: bool| match (bytes, signed) {
        (1, false) => value & 0xff,
        (1, true) => value as u8 as i8 as u32,
        (_, false) => value & 0xffff,
        (_, true) => value as u16 as i16 as u32,
    };
    match form {
        Form::Dwords | Form::Texel(_) | Form::Block(_) | Form::Turned { .. } | Form::Columns { .. } => value,
        Form::Extended { bytes, signed } => extended(bytes, signed),
        Form::Half { bytes, signed, high: false } => old & 0xffff_0000 | extended(bytes, signed) & 0xffff,
        Form::Half { bytes, signed, high: true } => old & 0xffff | extended(bytes, signed) << 16,
    }
}
