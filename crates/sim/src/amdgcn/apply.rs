//! Accesses to memory by the lanes of a wave: what is read or written where, and what becomes of it.

use super::fault::{Kind, Missing};
use super::machine::Machine;
use super::operand::splat;
use super::texel::{Halves, Texel};
use super::wave::{PRIVATE_APERTURE, SHARED_APERTURE, Wave, bits};
use crate::memory::Load;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::semantics::atomic::{Atomic, Kind as Width};
use unwedge_isa::amdgcn::semantics::{LANES, Lanes};

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    /// Global, LDS or scratch, by the address.
    Flat,
    Lds,
    Gds,
    Scratch,
}

/// One value of each lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// Whether it is relative to the second address.
    pub(super) second: bool,
    /// Bytes after the address.
    pub(super) offset: u32,
    pub(super) bytes: u8,
    /// Lanes for which it is within bounds: others read zero and write nothing.
    pub(super) valid: u64,
}

/// What is done.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Load,
    Store,
    /// Stores what LDS holds from an address on, four bytes for each lane.
    FromLds(u32),
    /// The operation, its width, whether the old value is returned, whether a value to compare follows the data.
    Atomic {
        atomic: Atomic,
        width: Width,
        returns: bool,
        compares: bool,
    },
}

/// How loaded values are put into registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Dwords,
    /// Extended from so many bytes.
    Extended {
        bytes: u8,
        signed: bool,
    },
    /// Into half of a register, the other half kept.
    Half {
        bytes: u8,
        signed: bool,
        high: bool,
    },
    /// By a format.
    Texel(Texel),
    /// Only into registers whose bit is set.
    Block(u32),
    /// Halves of registers, or bytes, exchanged among lanes: those of one lane go to one place of eight.
    Turned {
        halves: bool,
    },
}

impl Form {
    /// How many registers are written, where that does not follow from what is read.
    pub(super) fn registers(&self) -> Option<u16> {
        match self {
            Form::Texel(texel) => Some(texel.registers().into()),
            _ => None,
        }
    }

    /// Whether one of the registers is left as it was.
    pub(super) fn leaves(&self, number: usize) -> bool {
        matches!(self, Form::Block(mask) if mask >> (number & 31) & 1 == 0)
    }

    /// Which half of a register is written, if the other is kept.
    pub(super) fn half(&self) -> Option<bool> {
        match self {
            Form::Half { high, .. } => Some(*high),
            Form::Texel(texel) if texel.halves == Halves::High => Some(true),
            _ => None,
        }
    }
}

/// Where loaded values go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dst {
    None,
    Vgpr(u8),
    Scalar(Reg),
    /// LDS at an address, four bytes for each lane.
    Lds(u32),
}

/// An access of a wave.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// Offset of the instruction.
    pub(super) at: u32,
    pub(super) space: Space,
    pub(super) action: Action,
    pub(super) form: Form,
    pub(super) dst: Dst,
    pub(super) lanes: u64,
    pub(super) address: [u64; LANES],
    pub(super) second: Option<Box<[u64; LANES]>>,
    pub(super) pieces: Vec<Piece>,
    /// Dwords to be stored, in the order of pieces, then those to compare with.
    pub(super) data: Vec<Lanes>,
    /// What is unknown of them.
    pub(super) unknown: Vec<Lanes>,
}

impl Access {
    /// One whose values are there already, for so many registers.
    pub(super) fn made(at: u32, space: Space, dst: Dst, lanes: u64, registers: usize) -> Access {
        let piece = |n: usize| Piece { second: false, offset: 4 * n as u32, bytes: 4, valid: u64::MAX };
        Access {
            at,
            space,
            action: Action::Load,
            form: Form::Dwords,
            dst,
            lanes,
            address: [0; LANES],
            second: None,
            pieces: (0..registers).map(piece).collect(),
            data: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

/// What was read, and what of it is not known.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    pub(super) values: Vec<Lanes>,
    pub(super) unknown: Vec<Lanes>,
}

/// What a name says of a load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) load: bool,
    pub(super) form: Form,
    /// Bytes of memory.
    pub(super) bytes: u8,
}

/// The shape of `load_dwordx2`, `store_byte_d16_hi` and their like.
pub(super) fn shape(name: &str) -> Option<Shape> {
    let (load, rest) = match name.strip_prefix("load_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("store_")?),
    };
    let dwords = |n: u8| Some(Shape { load, form: Form::Dwords, bytes: 4 * n });
    let (kind, half) = match (rest.strip_suffix("_d16_hi"), rest.strip_suffix("_d16")) {
        (Some(kind), _) => (kind, Some(true)),
        (_, Some(kind)) => (kind, Some(false)),
        _ => (rest, None),
    };
    let (bytes, signed) = match kind {
        "dword" => return dwords(1),
        "dwordx2" => return dwords(2),
        "dwordx3" => return dwords(3),
        "dwordx4" => return dwords(4),
        "dwordx8" => return dwords(8),
        "dwordx16" => return dwords(16),
        "ubyte" | "byte" => (1, false),
        "sbyte" => (1, true),
        "ushort" | "short" => (2, false),
        "sshort" => (2, true),
        _ => return None,
    };
    let form = match half {
        Some(high) => Form::Half { bytes, signed, high },
        None => Form::Extended { bytes, signed },
    };
    Some(Shape { load, form, bytes })
}

impl Shape {
    /// How many registers it loads or stores.
    pub(super) fn dwords(&self) -> u8 {
        self.bytes.div_ceil(4)
    }

    /// Its pieces, valid for these lanes.
    pub(super) fn pieces(&self, valid: u64) -> Vec<Piece> {
        (0..u32::from(self.dwords()))
            .map(|n| Piece { second: false, offset: 4 * n, bytes: self.bytes.min(4), valid })
            .collect()
    }

    /// The value that is stored of a register.
    pub(super) fn stored(&self, value: u32) -> u32 {
        match self.form {
            Form::Half { high: true, .. } => value >> 16,
            _ => value,
        }
    }
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
        Form::Dwords | Form::Texel(_) | Form::Block(_) | Form::Turned { .. } => value,
        Form::Extended { bytes, signed } => extended(bytes, signed),
        Form::Half { bytes, signed, high: false } => old & 0xffff_0000 | extended(bytes, signed) & 0xffff,
        Form::Half { bytes, signed, high: true } => old & 0xffff | extended(bytes, signed) << 16,
    }
}

/// Memory of a workgroup or of a wave, and which of its bytes were written.
#[derive(Debug, Default, Clone)]
pub(super) struct Shared {
    pub(super) bytes: Vec<u8>,
    /// Empty if what is unknown is not asked for.
    pub(super) known: Vec<u8>,
}

impl Shared {
    /// Zeros; if asked for, none of them written.
    pub(super) fn new(size: usize, unknown: bool) -> Shared {
        Shared { bytes: vec![0; size], known: vec![0; if unknown { size } else { 0 }] }
    }

    pub(super) fn read(&self, address: u64, bytes: u8) -> (u64, u64) {
        let mut value = 0;
        let mut unknown = 0;
        for n in 0..u64::from(bytes) {
            let at = address as usize + n as usize;
            value |= u64::from(self.bytes.get(at).copied().unwrap_or(0)) << (8 * n);
            // What is beyond the end reads zero.
            unknown |= u64::from(self.known.get(at).map_or(0, |known| !known)) << (8 * n);
        }
        (value, unknown)
    }

    pub(super) fn write(&mut self, address: u64, bytes: u8, value: u64, unknown: u64) {
        for n in 0..u64::from(bytes) {
            let at = address as usize + n as usize;
            if let Some(place) = self.bytes.get_mut(at) {
                *place = (value >> (8 * n)) as u8;
            }
            if let Some(place) = self.known.get_mut(at) {
                *place = !(unknown >> (8 * n)) as u8;
            }
        }
    }
}

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

fn location(machine: &Machine<'_>, access: &Access, lane: usize, piece: &Piece, scratch: usize) -> Where {
    let base = match &access.second {
        Some(second) if piece.second => second[lane],
        _ => access.address[lane],
    };
    let address = base.wrapping_add(piece.offset.into());
    let lanes = if machine.gpu.wave64() { 64 } else { 32 };
    let own = scratch / lanes;
    // Every lane has its own bytes; what is beyond them is beyond scratch.
    let private = |offset: u64| match usize::try_from(offset) {
        Ok(offset) if offset + usize::from(piece.bytes) <= own => Where::Scratch(lane * own + offset),
        _ => Where::Scratch(usize::MAX),
    };
    match access.space {
        Space::Global => Where::Global(address),
        Space::Lds => Where::Lds(address),
        Space::Gds => Where::Gds(address),
        Space::Scratch => private(address),
        Space::Flat if address >> 32 == SHARED_APERTURE >> 32 => Where::Lds(address & 0xffff_ffff),
        Space::Flat if address >> 32 == PRIVATE_APERTURE >> 32 => private(address & 0xffff_ffff),
        Space::Flat => Where::Global(address),
    }
}

/// Up to eight bytes of mapped and known memory; what is neither is a fault.
pub(super) fn load(machine: &mut Machine<'_>, wave: &Wave, address: u64, bytes: u8) -> Option<u64> {
    match machine.view.read(address, bytes.into()) {
        Load::Known(value) => return Some(value),
        Load::Unknown => machine.fault(wave, Kind::UnknownMemory(address)),
        Load::Unmapped => machine.fault(wave, Kind::Unmapped { address, write: false }),
    }
    None
}

fn read_at(machine: &mut Machine<'_>, wave: &mut Wave, at: &Where, bytes: u8) -> (u64, u64) {
    match *at {
        Where::Global(address) => (load(machine, wave, address, bytes).unwrap_or(0), 0),
        Where::Lds(address) => machine.lds.read(address, bytes),
        Where::Gds(address) => machine.gds.read(address, bytes),
        Where::Scratch(at) => {
            if at == usize::MAX {
                machine.fault(wave, Kind::BeyondScratch);
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
                machine.fault(wave, Kind::Unmapped { address, write: true });
            }
        }
        Where::Lds(address) => machine.lds.write(address, bytes, value, unknown),
        Where::Gds(address) => machine.gds.write(address, bytes, value, unknown),
        Where::Scratch(at) => {
            if at == usize::MAX {
                return machine.fault(wave, Kind::BeyondScratch);
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
                        machine.fault(wave, Kind::Stored(Reg::LDS_DIRECT, Missing::UnwrittenMemory));
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
                    return machine.fault(wave, Kind::NoRegister);
                };
                let mut new = *values;
                for (lane, place) in new.iter_mut().enumerate() {
                    *place = formed(form, *place, old[lane]);
                }
                wave.set_lanes(at as u8, access.lanes, &new);
                if let Some(state) = &wave.unknown {
                    let before = state.v[at];
                    let mut unknown = read.unknown.get(n).copied().unwrap_or(splat(0));
                    for (lane, place) in unknown.iter_mut().enumerate() {
                        *place = formed(form, *place, before[lane]);
                    }
                    wave.set_unknown_lanes(at as u8, access.lanes, &unknown, Missing::UnwrittenMemory);
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
    let from = usize::from(first.index());
    let values = wave.v.get(from..from + usize::from(dwords));
    let Some(values) = values.filter(|_| first.is_vgpr()) else {
        machine.fault(wave, Kind::NoRegister);
        return None;
    };
    let unknown = wave.unknown.as_ref().map(|state| state.v[from..from + usize::from(dwords)].to_vec());
    Some((values.to_vec(), unknown.unwrap_or_default()))
}

/// Reports unknown values that are stored, but to LDS and scratch, which remember them.
pub(super) fn check_stored(machine: &mut Machine<'_>, wave: &Wave, access: &Access, first: Reg) {
    let remembers = matches!(access.space, Space::Lds | Space::Scratch);
    if remembers || matches!(access.action, Action::Load | Action::FromLds(_)) {
        return;
    }
    let mut stored = access.lanes;
    if access.space == Space::Flat {
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
                return machine.fault(wave, Kind::Stored(reg, wave.why(reg)));
            }
            dword += 1;
        }
    }
}

/// An address in a vector register: reports lanes that are not known.
pub(super) fn address_lanes(machine: &mut Machine<'_>, wave: &Wave, reg: Reg, lanes: u64) -> Lanes {
    let at = usize::from(reg.index());
    if let Some(unknown) = wave.unknown.as_ref().and_then(|state| state.v.get(at))
        && bits(lanes).any(|lane| unknown[lane] != 0)
    {
        machine.fault(wave, Kind::Address(reg, wave.why(reg)));
    }
    match wave.v.get(at) {
        Some(values) => *values,
        None => {
            machine.fault(wave, Kind::NoRegister);
            splat(0)
        }
    }
}

/// A scalar register that is part of an address.
pub(super) fn address_scalar(machine: &mut Machine<'_>, wave: &Wave, reg: Reg) -> u32 {
    if wave.unknown_sreg(reg) != 0 {
        machine.fault(wave, Kind::Address(reg, wave.why(reg)));
    }
    wave.sreg(reg)
}
