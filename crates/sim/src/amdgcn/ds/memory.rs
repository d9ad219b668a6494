//! Loads, stores and atomics of LDS and GDS.

use super::super::access::{Access, Action, Dst, Form, LaneValue, MemorySpace};
use super::super::apply;
use super::super::counters::WaitCounter;
use super::super::decoded::DecodedInst;
use super::super::fault::FaultKind;
use super::super::issue;
use super::super::lanes::{bits, splat};
use super::super::machine::Machine;
use super::super::operand::number;
use super::super::pending::{EXPORTS, GDS, LOCAL, Locks};
use super::super::wave::Wave;
use super::op::{DsKind, DsOp};
use super::result::{data, put};
use unwedge_isa::amdgcn::model::AtomicOp;
use unwedge_isa::amdgcn::semantics::{LANES, Lanes, Mode, atomic};
use unwedge_isa::amdgcn::{Gfx, Operand, Operation, Reg};

/// Each half is exchanged if its highest bit is set, which itself is not stored.
fn exchange_if(_: &Mode, old: u64, data: u64, _: u64) -> u64 {
    let half = |shift: u64| {
        let (old, data) = (old >> shift & 0xffff_ffff, data >> shift & 0xffff_ffff);
        (if data >> 31 != 0 { data & 0x7fff_ffff } else { old }) << shift
    };
    half(0) | half(32)
}

/// One or two values of each lane.
struct LaneValues {
    pieces: Vec<LaneValue>,
    at: [u64; LANES],
    second: Option<Box<[u64; LANES]>>,
}

impl LaneValues {
    /// So many bytes at the offset, or twice so many at two offsets that count elements, or `two` of them.
    fn new(ds: &DsOp, lanes: u64, base: &Lanes, bytes: u8, two: Option<u32>) -> LaneValues {
        let Some(scale) = two else {
            return LaneValues {
                pieces: dwords(bytes, false),
                at: addresses(lanes, base, ds.offset),
                second: None,
            };
        };
        let offset = |n: usize| ds.offsets[n] * scale * u32::from(bytes);
        let second = Some(Box::new(addresses(lanes, base, offset(1))));
        LaneValues { pieces: dwords(bytes, true), at: addresses(lanes, base, offset(0)), second }
    }

    /// The same, each value accessed at once.
    fn whole(ds: &DsOp, lanes: u64, base: &Lanes, bytes: u8, two: Option<u32>) -> LaneValues {
        let piece = |second| LaneValue { second, offset: 0, bytes, valid: u64::MAX };
        let pieces = if two.is_some() { vec![piece(false), piece(true)] } else { vec![piece(false)] };
        LaneValues { pieces, ..LaneValues::new(ds, lanes, base, bytes, two) }
    }
}

fn addresses(lanes: u64, base: &Lanes, offset: u32) -> [u64; LANES] {
    let mut at = [0u64; LANES];
    for lane in bits(lanes) {
        at[lane] = u64::from(base[lane].wrapping_add(offset));
    }
    at
}

/// The dwords of one value, or of two.
fn dwords(bytes: u8, two: bool) -> Vec<LaneValue> {
    let count = u32::from(bytes.div_ceil(4));
    let of = |second: bool| {
        (0..count).map(move |n| LaneValue { second, offset: 4 * n, bytes: bytes.min(4), valid: u64::MAX })
    };
    let mut all: Vec<LaneValue> = of(false).collect();
    if two {
        all.extend(of(true));
    }
    all
}

/// Leaves out what lies beyond the end of LDS.
fn limit(values: &mut LaneValues, lanes: u64, end: u32) {
    for piece in &mut values.pieces {
        let from = values.second.as_deref().filter(|_| piece.second).unwrap_or(&values.at);
        let last = |lane: usize| from[lane] + u64::from(piece.offset) + u64::from(piece.bytes);
        piece.valid &= bits(lanes).filter(|lane| last(*lane) <= end.into()).fold(0, |m, lane| m | 1 << lane);
    }
}

/// Loads, stores, and atomics on what they address.
pub(super) fn exec(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    ds: &DsOp,
    base: &Lanes,
) {
    let generation = machine.gpu.generation();
    let lanes = wave.exec(&machine.gpu);
    // Until gfx8 m0 says where LDS ends.
    let limited = matches!(ds.kind, DsKind::Load { .. } | DsKind::Store { .. } | DsKind::Atomic { .. });
    let end = (limited && generation <= Gfx::Gfx8 && !ds.gds)
        .then(|| apply::address_scalar(machine, wave, Reg::M0))
        .filter(|end| *end != u32::MAX);
    let Some((action, form, mut values, data)) = operation(machine, wave, decoded, ds, base) else { return };
    if let Form::Columns { .. } = form {
        columns(machine, wave, lanes, &values);
    }
    if let Some(end) = end {
        limit(&mut values, lanes, end);
    }
    let dst = match (ds.dst, action) {
        (_, Action::Store) | (None, _) => Dst::None,
        (Some(reg), _) => Dst::Vgpr(number(reg)),
    };
    let access = Access {
        at: decoded.at,
        space: if ds.gds { MemorySpace::Gds } else { MemorySpace::Lds },
        action,
        form,
        dst,
        lanes,
        address: values.at,
        second: values.second,
        pieces: values.pieces,
        data: data.0,
        unknown: data.1,
    };
    let counter = if generation >= Gfx::Gfx12 { WaitCounter::Ds } else { WaitCounter::Lgkm };
    // GDS reads its operands late, and counts that.
    let held = (ds.gds && generation <= Gfx::Gfx11_5).then(|| operands(decoded));
    let counters = [(counter, if ds.gds { GDS } else { LOCAL }), (WaitCounter::Exp, EXPORTS)];
    issue::issue(machine, wave, access, &counters[..1 + usize::from(held.is_some())], held);
}

/// Reports a load that transposes without all lanes, or from addresses that are not aligned to what is loaded (96 bits to 16 bytes).
fn columns(machine: &mut Machine<'_>, wave: &Wave, lanes: u64, values: &LaneValues) {
    if lanes != 0 && lanes != Wave::all(&machine.gpu) {
        machine.fault(wave, FaultKind::Undefined("a transposed load while not all lanes are enabled"));
    }
    let align = (4 * values.pieces.len() as u64).next_power_of_two();
    if bits(lanes).any(|lane| !values.at[lane].is_multiple_of(align)) {
        machine.fault(wave, FaultKind::Undefined("a transposed load at an address that is not aligned"));
    }
}

/// Registers that an instruction reads.
fn operands(decoded: &DecodedInst) -> Locks {
    let mut held = Locks::new(WaitCounter::Exp);
    for (slot, operand) in decoded.inst.written() {
        if let (true, Operand::Reg { reg, dwords, .. }) = (slot.access.reads(), operand) {
            held.add(reg, dwords);
        }
    }
    held
}

/// Dwords of registers, and what is not known of them.
type Data = (Vec<Lanes>, Vec<Lanes>);

/// What is done to which values, with which data; `None`: its registers are not there.
fn operation(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    ds: &DsOp,
    base: &Lanes,
) -> Option<(Action, Form, LaneValues, Data)> {
    let lanes = wave.exec(&machine.gpu);
    let none = (Vec::new(), Vec::new());
    Some(match ds.kind {
        DsKind::ExchangeIf => {
            let data = data(machine, wave, ds, 2, false)?;
            let mut values = LaneValues::whole(ds, lanes, base, 8, None);
            values.at = values.at.map(|at| at & 0xfff8);
            let (atomic, width) = (exchange_if as atomic::Atomic, atomic::AtomicWidth::B64);
            (Action::Atomic { atomic, width, returns: true, compares: false }, Form::Dwords, values, data)
        }
        DsKind::Load { form, bytes, two } => {
            (Action::Load, form, LaneValues::new(ds, lanes, base, bytes, two), none)
        }
        DsKind::Store { bytes, two, high } => {
            let mut data = data(machine, wave, ds, bytes.div_ceil(4), two.is_some())?;
            if high {
                data.0.iter_mut().chain(&mut data.1).flatten().for_each(|value| *value >>= 16);
            }
            (Action::Store, Form::Dwords, LaneValues::new(ds, lanes, base, bytes, two), data)
        }
        DsKind::Atomic { atomic, width, returns, compares, two } => {
            let bytes = if width == atomic::AtomicWidth::B64 { 8 } else { 4 };
            let mut data = data(machine, wave, ds, bytes / 4, compares || two.is_some())?;
            // Until gfx10 a comparison's first operand is what is compared with.
            let compared = [Operation::Atomic(AtomicOp::Cmpswap), Operation::Atomic(AtomicOp::Fcmpswap)];
            if machine.gpu.generation() < Gfx::Gfx11 && compared.contains(&decoded.inst.row().operation) {
                let half = data.0.len() / 2;
                data.0.rotate_left(half);
                if !data.1.is_empty() {
                    data.1.rotate_left(half);
                }
            }
            let values = LaneValues::whole(ds, lanes, base, bytes, two);
            (Action::Atomic { atomic, width, returns, compares }, Form::Dwords, values, data)
        }
        DsKind::AddTid { load } => {
            let m0 = apply::address_scalar(machine, wave, Reg::M0) & 0xffff;
            let mut at = [0u64; LANES];
            for lane in bits(lanes) {
                at[lane] = u64::from(m0 + ds.offset) + 4 * lane as u64;
            }
            let values = LaneValues { pieces: dwords(4, false), at, second: None };
            if load {
                (Action::Load, Form::Dwords, values, none)
            } else {
                (Action::Store, Form::Dwords, values, data(machine, wave, ds, 1, false)?)
            }
        }
        _ => return None,
    })
}

/// `ds_append` and `ds_consume`.
pub(super) fn append(machine: &mut Machine<'_>, wave: &mut Wave, ds: &DsOp, lanes: u64, add: bool) {
    let m0 = apply::address_scalar(machine, wave, Reg::M0);
    let place = u64::from(m0 >> 16).wrapping_add(ds.offset.into());
    let count = u64::from(lanes.count_ones());
    let memory = if ds.gds { &mut machine.gds } else { &mut machine.lds };
    let at = place as usize;
    let Some(bytes) = memory.bytes.get_mut(at..at + 4) else {
        return machine
            .fault(wave, FaultKind::Undefined("the counter lies beyond the memory of the workgroup"));
    };
    let before = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let after = if add { before.wrapping_add(count as u32) } else { before.wrapping_sub(count as u32) };
    bytes.copy_from_slice(&after.to_le_bytes());
    put(machine, wave, ds, lanes, &[splat(before)], &[splat(0)]);
}

/// The second operand is memory too: at an offset in bytes, or in dwords with a sign.
pub(super) fn from_memory(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    ds: &DsOp,
    base: &Lanes,
    atomic: atomic::Atomic,
    width: atomic::AtomicWidth,
) {
    let mode = wave.float_mode(machine.gpu.generation());
    let size = if width == atomic::AtomicWidth::B64 { 8usize } else { 4 };
    let get = |memory: &[u8], at: usize| {
        memory
            .get(at..at + size)
            .map(|bytes| bytes.iter().rev().fold(0u64, |v, byte| v << 8 | u64::from(*byte)))
    };
    for lane in bits(wave.exec(&machine.gpu)) {
        let at = base[lane] as usize;
        let distance = if ds.offset & 0x8000 != 0 {
            i64::from((ds.offset << 17) as i32 >> 17) * 4
        } else {
            i64::from(ds.offset) * 4
        };
        let other = (at as i64).wrapping_add(distance) as usize;
        let memory = if ds.gds { &mut machine.gds } else { &mut machine.lds };
        let (Some(before), Some(data)) = (get(&memory.bytes, at), get(&memory.bytes, other)) else {
            continue;
        };
        let after = atomic(&mode, before, data, 0).to_le_bytes();
        if let Some(place) = memory.bytes.get_mut(at..at + size) {
            place.copy_from_slice(&after[..size]);
        }
    }
}
