//! LDS and GDS, and moves between lanes that go through LDS.

use super::access::{self, Action, Dst, Form, Piece, Space};
use super::apply::{self};
use super::counters::Counter;
use super::decoded::DecodedInst;
use super::fault::FaultKind;
use super::issue;
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::pending::Locks;
use super::sync::{self, Sync};
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{AtomicOp, Mod};
use unwedge_isa::amdgcn::semantics::{LANES, Lanes, Mode, atomic};
use unwedge_isa::amdgcn::{Gen, Inst, Opcode, Operand, Operation, Reg};

/// What GDS counts, until gfx11, and what each is in order among.
pub(super) const GDS_COUNTERS: [(Counter, u8); 2] = [(Counter::Lgkm, 4), (Counter::Exp, 5)];

#[derive(Debug, Clone, Copy)]
enum DsKind {
    /// Loads: bytes of each piece, whether there are two, how far offsets are scaled.
    Load {
        form: Form,
        bytes: u8,
        two: Option<u32>,
    },
    Store {
        bytes: u8,
        two: Option<u32>,
        high: bool,
    },
    Atomic {
        atomic: atomic::Atomic,
        width: atomic::Kind,
        returns: bool,
        compares: bool,
        two: Option<u32>,
    },
    /// The second value is in memory, at an offset.
    FromMemory {
        atomic: atomic::Atomic,
        width: atomic::Kind,
    },
    Swizzle,
    Permute,
    Bpermute,
    /// A counter at `m0`, added to or subtracted from by how many lanes there are.
    Append {
        add: bool,
    },
    AddTid {
        load: bool,
    },
    Sync(Sync),
    /// `ds_condxchg32_rtn_b64`.
    ExchangeIf,
    /// `ds_bvh_stack_rtn_b32`.
    Stack,
}

/// An access with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct DsOp {
    what: DsKind,
    dst: Option<Reg>,
    pub(super) address: Option<Reg>,
    pub(super) data: [Option<Reg>; 2],
    pub(super) offset: u32,
    offsets: [u32; 2],
    gds: bool,
}

fn size(name: &str) -> u8 {
    match name {
        _ if name.ends_with("b128") => 16,
        _ if name.ends_with("b96") => 12,
        _ if name.ends_with("b64") => 8,
        _ if name.contains("16")
            && !name.contains("_u8")
            && !name.contains("_i8")
            && !name.contains("_b8") =>
        {
            2
        }
        _ if name.contains('8') => 1,
        _ => 4,
    }
}

impl DsOp {
    pub(super) fn new(inst: &Inst) -> Option<DsOp> {
        let name = inst.row().name;
        let rest = name.strip_prefix("ds_")?;
        let two = if rest.contains("2st64") {
            Some(64)
        } else if rest.starts_with("read2") || rest.starts_with("write2") || rest.starts_with("wrxchg2") {
            Some(1)
        } else {
            None
        };
        let half = rest.contains("_d16").then(|| rest.ends_with("_hi"));
        let what = match inst.opcode() {
            Opcode::ds_swizzle_b32 => DsKind::Swizzle,
            Opcode::ds_permute_b32 => DsKind::Permute,
            Opcode::ds_bpermute_b32 => DsKind::Bpermute,
            Opcode::ds_append => DsKind::Append { add: true },
            Opcode::ds_consume => DsKind::Append { add: false },
            Opcode::ds_read_addtid_b32 => DsKind::AddTid { load: true },
            Opcode::ds_write_addtid_b32 => DsKind::AddTid { load: false },
            Opcode::ds_condxchg32_rtn_b64 => DsKind::ExchangeIf,
            Opcode::ds_bvh_stack_rtn_b32 => DsKind::Stack,
            opcode if let Some(sync) = Sync::of(opcode) => DsKind::Sync(sync),
            _ if rest.contains("_src2_") => {
                let (atomic, width) = atomic::of_row(inst.row())?;
                DsKind::FromMemory { atomic, width }
            }
            _ if rest.starts_with("read") => {
                let bytes = if two.is_some() && rest.ends_with("64") { 8 } else { size(rest) };
                let signed = rest.contains("_i8") || rest.contains("_i16");
                let form = match (half, bytes) {
                    (Some(high), _) => {
                        let bytes = if rest.contains("_u8") || rest.contains("_i8") { 1 } else { 2 };
                        Form::Half { bytes, signed, high }
                    }
                    (None, 1 | 2) => Form::Extended { bytes, signed },
                    _ => Form::Dwords,
                };
                let bytes = if let Form::Half { bytes, .. } = form { bytes } else { bytes };
                DsKind::Load { form, bytes, two }
            }
            _ if rest.starts_with("write") => {
                let bytes = match rest {
                    _ if rest.starts_with("write_b8") => 1,
                    _ if rest.starts_with("write_b16") => 2,
                    _ if two.is_some() && rest.ends_with("64") => 8,
                    _ => size(rest),
                };
                DsKind::Store { bytes, two, high: half == Some(true) }
            }
            _ => {
                let (atomic, width) = atomic::of_row(inst.row())?;
                let compares = atomic::has_second(inst.row());
                DsKind::Atomic { atomic, width, returns: rest.contains("rtn"), compares, two }
            }
        };
        let mut access = DsOp {
            what,
            dst: None,
            address: None,
            data: [None; 2],
            offset: inst.mods.get(Mod::Offset) as u32 & 0xffff,
            offsets: [inst.mods.get(Mod::Offset0) as u32, inst.mods.get(Mod::Offset1) as u32],
            gds: inst.mods.has(Mod::Gds),
        };
        for (slot, operand) in inst.written() {
            let Operand::Reg { reg, .. } = operand else { continue };
            match slot.field.name() {
                "vdst" => access.dst = Some(reg),
                "addr" => access.address = Some(reg),
                "data0" => access.data[0] = Some(reg),
                "data1" => access.data[1] = Some(reg),
                _ => {}
            }
        }
        Some(access)
    }
}

/// Each half is exchanged if its highest bit is set, which itself is not stored.
fn exchange_if(_: &Mode, old: u64, data: u64, _: u64) -> u64 {
    let half = |shift: u64| {
        let (old, data) = (old >> shift & 0xffff_ffff, data >> shift & 0xffff_ffff);
        (if data >> 31 != 0 { data & 0x7fff_ffff } else { old }) << shift
    };
    half(0) | half(32)
}

/// The lane a lane reads by the pattern of `ds_swizzle_b32`.
fn swizzled(pattern: u32, lane: usize, generation: Gen) -> usize {
    let at = lane & 31;
    let mask = (pattern & 31) as usize;
    let from = match pattern {
        // For Fourier transforms: bits reversed, except those of the mask.
        0xe000.. if generation >= Gen::Gfx9 => {
            let reversed = ((at as u32).reverse_bits() >> 27) as usize;
            reversed >> mask.count_ones() | at & mask
        }
        // Rotation, of the lanes that the mask leaves.
        0xc000.. if generation >= Gen::Gfx9 => {
            let by = (pattern >> 5 & 31) as usize;
            let turned = if pattern & 0x400 == 0 { at + by } else { at + 32 - by } & 31;
            at & mask | turned & !mask
        }
        0x8000.. => at & !3 | (pattern >> (2 * (at & 3)) & 3) as usize,
        _ => (at & mask | (pattern >> 5 & 31) as usize) ^ (pattern >> 10 & 31) as usize,
    };
    lane & !31 | from
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, ds: &DsOp) {
    if let DsKind::Sync(sync) = ds.what {
        return sync::exec(machine, wave, decoded, ds, sync);
    }
    let generation = machine.gpu.generation();
    let lanes = wave.exec(&machine.gpu);
    let address = ds.address.map(|reg| match ds.what {
        DsKind::Swizzle | DsKind::Sync(_) => splat(0),
        _ => apply::address_lanes(machine, wave, reg, lanes),
    });
    let base = address.unwrap_or(splat(0));
    let dst = ds.dst.map_or(Dst::None, |reg| Dst::Vgpr(reg.index() as u8));
    let mut held = Locks::new(Counter::Exp);
    for (slot, operand) in decoded.inst.written().filter(|_| ds.gds) {
        if let (true, Operand::Reg { reg, dwords, .. }) = (slot.access.reads(), operand) {
            held.add(reg, dwords);
        }
    }
    // Until gfx8 m0 says where LDS ends.
    let end = match ds.what {
        DsKind::Load { .. } | DsKind::Store { .. } | DsKind::Atomic { .. }
            if generation <= Gen::Gfx8 && !ds.gds =>
        {
            apply::address_scalar(machine, wave, Reg::M0)
        }
        _ => u32::MAX,
    };
    let plain = |machine: &mut Machine<'_>,
                 wave: &mut Wave,
                 action,
                 form,
                 dst,
                 mut pieces: Vec<Piece>,
                 at: [u64; LANES],
                 second: Option<Box<[u64; LANES]>>,
                 data: (Vec<Lanes>, Vec<Lanes>)| {
        for piece in pieces.iter_mut().filter(|_| end != u32::MAX) {
            let from = second.as_deref().filter(|_| piece.second).unwrap_or(&at);
            let last = |lane: usize| from[lane] + u64::from(piece.offset) + u64::from(piece.bytes);
            piece.valid &=
                bits(lanes).filter(|lane| last(*lane) <= end.into()).fold(0, |m, lane| m | 1 << lane);
        }
        let access = access::Access {
            at: decoded.at,
            space: if ds.gds { Space::Gds } else { Space::Lds },
            action,
            form,
            dst,
            lanes,
            address: at,
            second,
            pieces,
            data: data.0,
            unknown: data.1,
        };
        let counter = if generation >= Gen::Gfx12 { Counter::Ds } else { Counter::Lgkm };
        // GDS reads its operands late, and counts that.
        let held = Some(held).filter(|_| ds.gds && generation <= Gen::Gfx11_5);
        let counters = [(counter, if ds.gds { 4 } else { 3 }), (Counter::Exp, 5)];
        issue::issue(machine, wave, access, &counters[..1 + usize::from(held.is_some())], held);
    };
    let single = |offset: u32| {
        let mut at = [0u64; LANES];
        for lane in bits(lanes) {
            at[lane] = u64::from(base[lane].wrapping_add(offset));
        }
        at
    };
    // Offsets of pairs count elements, or 64 of them.
    let pair = |bytes: u8, scale: u32| {
        let offset = |n: usize| ds.offsets[n] * scale * u32::from(bytes);
        (single(offset(0)), Some(Box::new(single(offset(1)))))
    };
    let pieces = |bytes: u8, two: bool| {
        let count = u32::from(bytes.div_ceil(4));
        let of = move |second: bool| {
            (0..count).map(move |n| Piece { second, offset: 4 * n, bytes: bytes.min(4), valid: u64::MAX })
        };
        let mut all: Vec<Piece> = of(false).collect();
        if two {
            all.extend(of(true));
        }
        all
    };
    match ds.what {
        DsKind::Sync(_) => {}
        DsKind::Stack => bvh_stack(machine, wave, ds, lanes, &base),
        DsKind::ExchangeIf => {
            let Some(data) = data(machine, wave, ds, 2, false) else { return };
            let piece = Piece { second: false, offset: 0, bytes: 8, valid: u64::MAX };
            let at = single(ds.offset).map(|at| at & 0xfff8);
            let (atomic, width) = (exchange_if as atomic::Atomic, atomic::Kind::B64);
            let action = Action::Atomic { atomic, width, returns: true, compares: false };
            plain(machine, wave, action, Form::Dwords, dst, vec![piece], at, None, data);
        }
        DsKind::Load { form, bytes, two } => {
            let (at, second) = two.map_or_else(|| (single(ds.offset), None), |scale| pair(bytes, scale));
            let pieces = pieces(bytes, two.is_some());
            plain(machine, wave, Action::Load, form, dst, pieces, at, second, (Vec::new(), Vec::new()));
        }
        DsKind::Store { bytes, two, high } => {
            let (at, second) = two.map_or_else(|| (single(ds.offset), None), |scale| pair(bytes, scale));
            let Some(mut data) = data(machine, wave, ds, bytes.div_ceil(4), two.is_some()) else { return };
            if high {
                data.0.iter_mut().chain(&mut data.1).flatten().for_each(|value| *value >>= 16);
            }
            plain(
                machine,
                wave,
                Action::Store,
                Form::Dwords,
                Dst::None,
                pieces(bytes, two.is_some()),
                at,
                second,
                data,
            );
        }
        DsKind::Atomic { atomic, width, returns, compares, two } => {
            let bytes = if width == atomic::Kind::B64 { 8 } else { 4 };
            let (at, second) = two.map_or_else(|| (single(ds.offset), None), |scale| pair(bytes, scale));
            let Some(mut data) = data(machine, wave, ds, bytes / 4, compares || two.is_some()) else {
                return;
            };
            // Until gfx10 a comparison's first operand is what is compared with.
            let compared = Operation::Atomic(AtomicOp::Cmpswap);
            let compared_float = Operation::Atomic(AtomicOp::Fcmpswap);
            if machine.gpu.generation() < Gen::Gfx11
                && [compared, compared_float].contains(&decoded.inst.row().operation)
            {
                let half = data.0.len() / 2;
                data.0.rotate_left(half);
                if !data.1.is_empty() {
                    data.1.rotate_left(half);
                }
            }
            let piece = |second| Piece { second, offset: 0, bytes, valid: u64::MAX };
            let all = if two.is_some() { vec![piece(false), piece(true)] } else { vec![piece(false)] };
            let action = Action::Atomic { atomic, width, returns, compares };
            plain(machine, wave, action, Form::Dwords, dst, all, at, second, data);
        }
        DsKind::FromMemory { atomic, width } => from_memory(machine, wave, ds, &base, atomic, width),
        DsKind::Append { add } => {
            let m0 = apply::address_scalar(machine, wave, Reg::M0);
            let place = u64::from(m0 >> 16).wrapping_add(ds.offset.into());
            let count = u64::from(lanes.count_ones());
            let memory = if ds.gds { &mut machine.gds } else { &mut machine.lds };
            let at = place as usize;
            let Some(bytes) = memory.bytes.get_mut(at..at + 4) else {
                return machine.fault(
                    wave,
                    FaultKind::Undefined("the counter lies beyond the memory of the workgroup"),
                );
            };
            let before = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let after =
                if add { before.wrapping_add(count as u32) } else { before.wrapping_sub(count as u32) };
            bytes.copy_from_slice(&after.to_le_bytes());
            put(machine, wave, ds, lanes, &[splat(before)], &[splat(0)]);
        }
        DsKind::AddTid { load } => {
            let m0 = apply::address_scalar(machine, wave, Reg::M0) & 0xffff;
            let mut at = [0u64; LANES];
            for lane in bits(lanes) {
                at[lane] = u64::from(m0 + ds.offset) + 4 * lane as u64;
            }
            if load {
                let none = (Vec::new(), Vec::new());
                plain(machine, wave, Action::Load, Form::Dwords, dst, pieces(4, false), at, None, none);
            } else {
                let Some(data) = data(machine, wave, ds, 1, false) else { return };
                plain(
                    machine,
                    wave,
                    Action::Store,
                    Form::Dwords,
                    Dst::None,
                    pieces(4, false),
                    at,
                    None,
                    data,
                );
            }
        }
        DsKind::Swizzle => {
            let Some(source) = ds.address.and_then(|reg| wave.v.get(usize::from(reg.index())).copied())
            else {
                return;
            };
            let unknown = unknown_of(wave, ds.address);
            let (mut value, mut bits_unknown) = (splat(0), splat(0));
            for lane in bits(lanes) {
                let from = swizzled(ds.offset, lane, generation);
                if lanes >> from & 1 != 0 {
                    (value[lane], bits_unknown[lane]) = (source[from], unknown[from]);
                }
            }
            put(machine, wave, ds, lanes, &[value], &[bits_unknown]);
        }
        DsKind::Permute | DsKind::Bpermute => {
            let Some(source) = ds.data[0].and_then(|reg| wave.v.get(usize::from(reg.index())).copied())
            else {
                return;
            };
            let unknown = unknown_of(wave, ds.data[0]);
            let (mut value, mut bits_unknown) = (splat(0), splat(0));
            // Waves of 64 lanes are two halves on gfx10 and gfx11.
            let halves = (Gen::Gfx10..Gen::Gfx12).contains(&generation) || !machine.gpu.wave64();
            let count = if halves { 32 } else { 64 };
            for lane in bits(lanes) {
                let half = if halves { lane & 32 } else { 0 };
                let other = half | ((base[lane].wrapping_add(ds.offset) / 4) as usize % count);
                match ds.what {
                    DsKind::Bpermute if lanes >> other & 1 != 0 => {
                        (value[lane], bits_unknown[lane]) = (source[other], unknown[other]);
                    }
                    DsKind::Permute => (value[other], bits_unknown[other]) = (source[lane], unknown[lane]),
                    _ => {}
                }
            }
            put(machine, wave, ds, lanes, &[value], &[bits_unknown]);
        }
    }
}

/// Pushes the nodes a ray has yet to visit, and gives the next one: of four the last, or what is popped. AMD's own
/// model of it in its ray tracing library says more than the manual: entries of 32 lanes stand together, nothing
/// is pushed if the last node visited is none of the four, and an empty stack gives the node that ends the search.
fn bvh_stack(machine: &mut Machine<'_>, wave: &mut Wave, ds: &DsOp, lanes: u64, base: &Lanes) {
    const INVALID: u32 = u32::MAX;
    const TERMINAL: u32 = u32::MAX - 1;
    let (Some(address), Some(last), Some(first)) = (ds.address, ds.data[0], ds.data[1]) else { return };
    let nodes: Vec<Option<Lanes>> =
        (0..4).map(|n| sync::given(machine, wave, Some(Reg(first.0 + n)), lanes)).collect();
    let [Some(a), Some(b), Some(c), Some(d)] = nodes[..] else { return };
    let Some(last) = sync::given(machine, wave, Some(last), lanes) else { return };
    let size = 8u32 << (ds.offset >> 12 & 3);
    let (mut next, mut unsure, mut moved) = (splat(INVALID), splat(0), *base);
    for lane in bits(lanes) {
        let (nodes, last) = ([a[lane], b[lane], c[lane], d[lane]], last[lane]);
        let start = u64::from(base[lane] >> 18) << 2;
        let mut index = base[lane] & 0x3_ffff;
        let place = |index: u32| start + (u64::from(index & (size - 1)) << 7);
        let mut valid = last == INVALID || nodes.contains(&last);
        for (at, node) in nodes.into_iter().enumerate() {
            valid &= last == INVALID || node != last;
            if !valid || node == INVALID {
                continue;
            }
            if at == 3 {
                next[lane] = node;
            } else {
                machine.lds.write(place(index), 4, node.into(), 0);
                index = (index + 1).min(0x3_ffff);
            }
        }
        if next[lane] == INVALID && index == 0 {
            next[lane] = TERMINAL;
        } else if next[lane] == INVALID {
            index -= 1;
            let (value, unknown) = machine.lds.read(place(index), 4);
            (next[lane], unsure[lane]) = (value as u32, unknown as u32);
            machine.lds.write(place(index), 4, INVALID.into(), 0);
        }
        moved[lane] = base[lane] & !0x3_ffff | index;
    }
    put(machine, wave, &DsOp { dst: Some(address), ..*ds }, lanes, &[moved], &[splat(0)]);
    wave.pending.share();
    put(machine, wave, ds, lanes, &[next], &[unsure]);
}

/// What a move between lanes gives: it counts as LDS, so that it has to be waited for.
pub(super) fn put(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    ds: &DsOp,
    lanes: u64,
    values: &[Lanes],
    unknown: &[Lanes],
) {
    let there = |reg: &Reg| usize::from(reg.index()) + values.len() <= wave.v.len();
    let Some(reg) = ds.dst.filter(there) else {
        return machine.fault(wave, FaultKind::NoRegister);
    };
    let dst = Dst::Vgpr(reg.index() as u8);
    let space = if ds.gds || matches!(ds.what, DsKind::Sync(_)) { Space::Gds } else { Space::Lds };
    let access = access::Access::made(machine.offset(), space, dst, lanes, values.len());
    let read = access::Read { values: values.to_vec(), unknown: unknown.to_vec() };
    if space == Space::Lds {
        let counter = if machine.gpu.generation() >= Gen::Gfx12 { Counter::Ds } else { Counter::Lgkm };
        return issue::ready(machine, wave, access, read, &[(counter, 3)]);
    }
    // GDS reads its operands late, and counts that.
    let mut held = Locks::new(Counter::Exp);
    for reg in [ds.address, ds.data[0]].into_iter().flatten() {
        held.add(reg, 1);
    }
    match wave.unknown {
        Some(_) => issue::defer_ready(machine, wave, access, read, &GDS_COUNTERS, Some(held)),
        None => apply::deliver(machine, wave, &access, &read),
    }
}

fn unknown_of(wave: &Wave, reg: Option<Reg>) -> Lanes {
    let state = wave.unknown.as_ref();
    reg.and_then(|reg| state?.v.get(usize::from(reg.index())).copied()).unwrap_or(splat(0))
}

fn data(
    machine: &mut Machine<'_>,
    wave: &Wave,
    ds: &DsOp,
    dwords: u8,
    both: bool,
) -> Option<(Vec<Lanes>, Vec<Lanes>)> {
    let mut all = apply::stored(machine, wave, ds.data[0]?, dwords)?;
    if both {
        let second = apply::stored(machine, wave, ds.data[1]?, dwords)?;
        all.0.extend(second.0);
        all.1.extend(second.1);
    }
    Some(all)
}

/// The second operand is memory too: at an offset in bytes, or in dwords with a sign.
fn from_memory(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    ds: &DsOp,
    base: &Lanes,
    atomic: atomic::Atomic,
    width: atomic::Kind,
) {
    let mode = wave.float_mode(machine.gpu.generation());
    let size = if width == atomic::Kind::B64 { 8usize } else { 4 };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swizzles() {
        // Pairs swapped, the first lane of eight broadcast, a quad reversed.
        assert_eq!(swizzled(0x041f, 5, Gen::Gfx8), 4);
        assert_eq!(swizzled(0x0018, 45, Gen::Gfx8), 40);
        assert_eq!(swizzled(0x801b, 33, Gen::Gfx8), 34);
        // Rotated by three.
        assert_eq!(swizzled(0xc060, 31, Gen::Gfx9), 2);
    }

    #[test]
    fn sizes_by_name() {
        for (name, bytes) in
            [("read_u8_d16_hi", 1), ("read_i16", 2), ("read_b96", 12), ("read_b32", 4), ("write_b128", 16)]
        {
            assert_eq!(size(name), bytes, "{name}");
        }
    }
}
