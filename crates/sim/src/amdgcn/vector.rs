//! The vector ALU: lane by lane, with DPP, SDWA and halves of registers.

use super::fault::{FaultKind, Missing};
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::operand::{DwordPart, From, LaneSource, from, is_sdwa, part, source};
use super::wave::Wave;
use unwedge_isa::amdgcn::RegHalf;
use unwedge_isa::amdgcn::model::{Encoding, Mod, Type};
use unwedge_isa::amdgcn::semantics::{self, LANES, Lane, Lanes, Mode, Op};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg};

/// Which part of its register a result goes to, and what becomes of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultPart {
    Whole,
    /// Of 16 bits: whether the upper half, and whether the other is kept.
    Half(bool, bool),
    Byte(u8),
    /// SDWA: the part, and whether the rest is zero, the sign, or kept.
    Sdwa(DwordPart, i32),
}

/// Where a result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Vgpr(u16),
    Scalar(Reg),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dst {
    to: To,
    ty: Type,
    place: ResultPart,
}

/// Lanes that the first source comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dpp {
    /// The lane each lane reads; 255: none.
    lanes: [u8; LANES],
    /// Lanes that are written.
    written: u64,
    /// A lane whose source is not there reads zero; else it is not written.
    zero: bool,
    /// Disabled lanes are read as well.
    inactive: bool,
}

/// An operation on lanes with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct VectorOp {
    op: Op,
    pub(super) sources: [LaneSource; 3],
    dst: Option<Dst>,
    mask_in: Option<Reg>,
    mask_out: Option<Reg>,
    exec_out: bool,
    dpp: Option<Dpp>,
    clamp: bool,
    omod: u8,
    signs: u8,
    truth_table: u8,
}

/// A source that there is not.
static ZERO: Lanes = [0; LANES];

/// A result of every lane.
struct Made {
    result: Lanes,
    unknown: Option<Box<(Lanes, Missing)>>,
    enabled: u64,
}

fn dpp_lanes(ctrl: i32, wave64: bool) -> [u8; LANES] {
    let last = if wave64 { 64 } else { 32 };
    let mut lanes = [255u8; LANES];
    for lane in 0..last {
        let (row, at) = (lane & !15, lane & 15);
        let in_row = |n: i32| if (0..16).contains(&n) { Some(row + n) } else { None };
        let from = match ctrl {
            0..=0xff => Some(lane & !3 | ctrl >> (2 * (lane & 3)) & 3),
            0x101..=0x10f => in_row(at + (ctrl & 15)),
            0x111..=0x11f => in_row(at - (ctrl & 15)),
            0x121..=0x12f => Some(row + ((at - (ctrl & 15)) & 15)),
            0x130 => Some(lane + 1),
            0x134 => Some((lane + 1) % last),
            0x138 => Some(lane - 1),
            0x13c => Some((lane + last - 1) % last),
            0x140 => Some(row + 15 - at),
            0x141 => Some(lane & !7 | (7 - (lane & 7))),
            0x142 => Some(row - 1),
            0x143 => (lane >= 32).then_some(31),
            0x150..=0x15f => Some(row + (ctrl & 15)),
            0x160..=0x16f => Some(row + (at ^ ctrl & 15)),
            _ => None,
        };
        if let Some(from) = from.filter(|from| (0..last).contains(from)) {
            lanes[lane as usize] = from as u8;
        }
    }
    lanes
}

fn dpp(inst: &Inst, gpu: &Gpu) -> Option<Dpp> {
    let mods = &inst.mods;
    let mut written = u64::MAX;
    match inst.variant().encoding {
        Encoding::Vop1Dpp8
        | Encoding::Vop2Dpp8
        | Encoding::VopcDpp8
        | Encoding::Vop3Dpp8
        | Encoding::Vop3pDpp8 => {
            let select = mods.get(Mod::Dpp8);
            let mut lanes = [255u8; LANES];
            for (lane, place) in lanes.iter_mut().enumerate().take(gpu.lanes() as usize) {
                *place = (lane & !7) as u8 | (select >> (3 * (lane & 7)) & 7) as u8;
            }
            // A lane that is not there reads zero.
            Some(Dpp { lanes, written, zero: true, inactive: mods.has(Mod::Fi) })
        }
        Encoding::Vop1Dpp
        | Encoding::Vop2Dpp
        | Encoding::VopcDpp
        | Encoding::Vop3Dpp
        | Encoding::Vop3pDpp => {
            let (rows, banks) = (mods.get(Mod::RowMask), mods.get(Mod::BankMask));
            for lane in 0..LANES {
                if rows >> (lane / 16) & 1 == 0 || banks >> (lane / 4 % 4) & 1 == 0 {
                    written &= !(1 << lane);
                }
            }
            let lanes = dpp_lanes(mods.get(Mod::DppCtrl), gpu.wave64());
            Some(Dpp { lanes, written, zero: mods.has(Mod::BoundCtrl), inactive: mods.has(Mod::Fi) })
        }
        _ => None,
    }
}

/// An inline constant of floating point in a source of `v_pk_fmac_f16` from gfx11 on: it is both halves, as was measured
/// (llvm-project 94116).
fn both_halves(operand: Operand, from: From) -> From {
    match (operand, from) {
        (Operand::Inline(240..), From::Const(value)) => From::Const(value | value << 16),
        _ => from,
    }
}

impl VectorOp {
    pub(super) fn new(inst: &Inst, gpu: &Gpu) -> Option<VectorOp> {
        let op = semantics::of(inst)?;
        let mut made = VectorOp::empty(op, inst);
        let variant = inst.variant();
        let written = inst.written().map(|(slot, operand)| (*slot, operand));
        let implicit = inst.implicit().iter().map(|slot| (*slot, Operand::reg(Reg(slot.reg), 1)));
        let (mut count, mut added) = (0, None);
        for (slot, operand) in written.chain(implicit) {
            let reg = match operand {
                Operand::Reg { reg, .. } => Some(reg),
                _ => None,
            };
            // `v_div_fmas` reads vcc as a mask without saying so.
            let mask =
                slot.ty == Type::Mask || reg.is_some_and(|reg| reg == Reg::VCC && slot.reg == Reg::VCC.0);
            match (slot.access.reads(), slot.access.writes()) {
                (false, true) if slot.reg == Reg::EXEC.0 => made.exec_out = true,
                (false, true) if mask => made.mask_out = reg,
                (true, false) if mask => made.mask_in = reg,
                (true, false) if slot.reg == Reg::M0.0 => {}
                (reads, true) => {
                    let reg = reg?;
                    let to = reg.lane_number().map_or(To::Scalar(reg), To::Vgpr);
                    if reads {
                        added = Some((slot, operand));
                    }
                    made.dst = Some(Dst { to, ty: slot.ty, place: ResultPart::Whole });
                    made.dst.as_mut()?.place = place(inst, gpu, slot.ty, operand);
                }
                _ => {
                    let mut source = source(inst, &slot, operand)?;
                    if inst.opcode() == Opcode::v_pk_fmac_f16 && gpu.generation() >= Gfx::Gfx11 {
                        source.from = both_halves(operand, source.from);
                    }
                    *made.sources.get_mut(count)? = source;
                    count += 1;
                }
            }
        }
        if let Some((slot, operand)) = added {
            let mut plain = source(inst, &slot, operand)?;
            (plain.neg, plain.abs, plain.packed) = (false, false, None);
            if !matches!(made.dst?.place, ResultPart::Half(true, _)) {
                plain.part = DwordPart::Whole;
            }
            *made.sources.get_mut(count)? = plain;
        }
        made.select(inst);
        // Some have SDWA for their source alone.
        if variant.has_mod(Mod::DstSel)
            && let Some(dst) = &mut made.dst
        {
            dst.place = ResultPart::Sdwa(part(inst.mods.get(Mod::DstSel)), inst.mods.get(Mod::DstUnused));
        }
        made.dpp = dpp(inst, gpu);
        Some(made)
    }

    fn empty(op: Op, inst: &Inst) -> VectorOp {
        VectorOp {
            op,
            sources: [LaneSource::NONE; 3],
            dst: None,
            mask_in: None,
            mask_out: None,
            exec_out: false,
            dpp: None,
            clamp: inst.mods.has(Mod::Clamp),
            omod: inst.mods.get(Mod::Omod) as u8,
            signs: inst.mods.get(Mod::NegLo) as u8,
            truth_table: inst.mods.get(Mod::Bitop3) as u8,
        }
    }

    /// Parts of registers that instructions on numbers of 8 bits choose in ways of their own.
    fn select(&mut self, inst: &Inst) {
        let byte = inst.mods.get(Mod::ByteSel) as u8 & 3;
        let high = |bit: i32| inst.mods.get(Mod::OpSel) >> bit & 1 != 0;
        match inst.opcode() {
            // SDWA has chosen the part.
            Opcode::v_cvt_f32_fp8
            | Opcode::v_cvt_f32_bf8
            | Opcode::v_cvt_pk_f32_fp8
            | Opcode::v_cvt_pk_f32_bf8
                if is_sdwa(inst.variant().encoding) => {}
            Opcode::v_cvt_f32_fp8 | Opcode::v_cvt_f32_bf8 => self.sources[0].part = DwordPart::Byte(byte),
            Opcode::v_cvt_pk_f32_fp8 | Opcode::v_cvt_pk_f32_bf8 => {
                let named = matches!(inst.operands[1], Operand::Reg { half: RegHalf::High, .. });
                self.sources[0].part = DwordPart::Word(u8::from(high(0) || named));
            }
            Opcode::v_cvt_pk_fp8_f32
            | Opcode::v_cvt_pk_bf8_f32
            | Opcode::v_cvt_sr_f16_f32
            | Opcode::v_cvt_sr_bf16_f32 => {
                if let Some(dst) = &mut self.dst {
                    dst.place = ResultPart::Half(high(3), true);
                }
            }
            Opcode::v_cvt_sr_fp8_f32 | Opcode::v_cvt_sr_bf8_f32 => {
                if let Some(dst) = &mut self.dst {
                    // On gfx94x and gfx950 the last two bits of `op_sel` choose it.
                    dst.place = ResultPart::Byte(byte | inst.mods.get(Mod::OpSel) as u8 >> 2 & 3);
                }
            }
            Opcode::v_ashr_pk_i8_i32 | Opcode::v_ashr_pk_u8_i32 => {
                if let Some(dst) = &mut self.dst {
                    dst.place = ResultPart::Half(high(3), true);
                }
            }
            Opcode::v_fma_mixhi_f16 | Opcode::v_mad_mixhi_f16 => {
                if let Some(dst) = &mut self.dst {
                    dst.place = ResultPart::Half(true, true);
                }
            }
            _ => {}
        }
    }

    /// The halves of a dual instruction.
    pub(super) fn dual(inst: &Inst) -> Option<[VectorOp; 2]> {
        let (second, _, first_slot) = inst.variant().second?;
        let rows = unwedge_isa::amdgcn::tables::rows();
        let opcodes = [inst.opcode(), rows.get(usize::from(second))?.opcode];
        let mut halves = Vec::with_capacity(2);
        for (half, opcode) in opcodes.into_iter().enumerate() {
            let op = semantics::of_opcode(opcode)?;
            let mut made = VectorOp::empty(op, inst);
            let (mut count, mut added) = (0, None);
            for (at, (slot, operand)) in inst.written().enumerate() {
                if (at >= usize::from(first_slot)) != (half == 1) {
                    continue;
                }
                let value = from(operand, slot.ty)?;
                let plain = LaneSource { from: value, bits: slot.ty.bits(), ..LaneSource::NONE };
                if slot.access.writes() {
                    let From::Vgpr(n) = value else { return None };
                    made.dst = Some(Dst { to: To::Vgpr(n), ty: slot.ty, place: ResultPart::Whole });
                    if slot.access.reads() {
                        added = Some(plain);
                    }
                } else {
                    *made.sources.get_mut(count)? = plain;
                    count += 1;
                }
            }
            if let Some(added) = added {
                *made.sources.get_mut(count)? = added;
            }
            if matches!(op, Op::Select) {
                made.mask_in = Some(Reg::VCC);
            }
            halves.push(made);
        }
        halves.try_into().ok()
    }

    fn mode(&self, wave: &Wave, gpu: &Gpu) -> Mode {
        Mode {
            clamp: self.clamp,
            omod: self.omod,
            signs: self.signs,
            truth_table: self.truth_table,
            ..wave.float_mode(gpu.generation())
        }
    }

    /// With the registers that indexed access means.
    fn indexed(&self, wave: &Wave) -> VectorOp {
        let by = wave.sreg(Reg::M0) as u8;
        let mut moved = *self;
        for (at, source) in moved.sources.iter_mut().enumerate() {
            if let (From::Vgpr(n), true) = (source.from, wave.gpr_idx >> at & 1 != 0) {
                source.from = From::Vgpr(indexed(n, by));
            }
        }
        if let (Some(Dst { to: To::Vgpr(n), .. }), true) = (&mut moved.dst, wave.gpr_idx & 8 != 0) {
            *n = indexed(*n, by);
        }
        moved
    }
}

/// The register `by` registers after another, at most the last one. Accumulation registers are not indexed.
fn indexed(n: u16, by: u8) -> u16 {
    if n < 256 { (n + u16::from(by)).min(255) } else { n }
}

/// Where in its register a result goes.
fn place(inst: &Inst, gpu: &Gpu, ty: Type, operand: Operand) -> ResultPart {
    if ty.bits() != 16 {
        return ResultPart::Whole;
    }
    let keep = semantics::keeps_upper_half(inst, gpu.generation());
    match operand {
        Operand::Reg { half: RegHalf::High, .. } => ResultPart::Half(true, true),
        _ if inst.mods.get(Mod::OpSel) & 8 != 0 => ResultPart::Half(true, keep),
        _ => ResultPart::Half(false, keep),
    }
}

/// A register's dword with a result put in its place.
fn placed(place: ResultPart, old: u32, value: u32) -> u32 {
    match place {
        ResultPart::Whole => value,
        ResultPart::Half(false, keep) => value & 0xffff | if keep { old & 0xffff_0000 } else { 0 },
        ResultPart::Half(true, keep) => value << 16 | if keep { old & 0xffff } else { 0 },
        ResultPart::Byte(n) => old & !(0xff << (n * 8)) | (value & 0xff) << (n * 8),
        ResultPart::Sdwa(DwordPart::Whole, _) => value,
        ResultPart::Sdwa(part, unused) => {
            let (shift, width) = match part {
                DwordPart::Byte(n) => (u32::from(n) * 8, 8),
                DwordPart::Word(n) => (u32::from(n) * 16, 16),
                DwordPart::Whole => (0, 32),
            };
            let mask = (u32::MAX >> (32 - width)) << shift;
            let bits = value << shift & mask;
            match unused {
                2 => old & !mask | bits,
                1 => {
                    bits | if value >> (width - 1) & 1 != 0 {
                        !(mask | ((1u64 << shift) - 1) as u32)
                    } else {
                        0
                    }
                }
                _ => bits,
            }
        }
    }
}

/// One dword of a source in every lane. `wave` may be what is unknown of one.
pub(super) fn fetch(
    source: &LaneSource,
    dword: u8,
    v: &[Lanes],
    scalar: impl Fn(Reg) -> u32,
    signs: bool,
) -> Lanes {
    // A pair of 32 bits each: halves are whole dwords.
    if let (64, Some(packed)) = (source.bits, source.packed) {
        let half = usize::from(dword.min(1));
        let own = LaneSource { packed: None, ..*source };
        let mut lanes = fetch(&own, u8::from(packed.high[half]), v, scalar, signs);
        if packed.neg[half] && signs {
            lanes.iter_mut().for_each(|value| *value ^= 1 << 31);
        }
        return lanes;
    }
    // What is the same in all lanes is modified once.
    let uniform = match source.from {
        From::Vgpr(_) => None,
        From::Scalar(reg) => Some(scalar(Reg(reg.0 + u16::from(dword)))),
        From::Const(value) => Some(if signs { (value >> (32 * u32::from(dword))) as u32 } else { 0 }),
    };
    if let Some(value) = uniform {
        return splat(match (source.bits, dword) {
            (64, 1) if signs => LaneSource { bits: 32, ..*source }.modify(value, true),
            (64, _) => value,
            _ => source.modify(value, signs),
        });
    }
    let mut lanes = match source.from {
        From::Vgpr(n) => v.get(usize::from(n) + usize::from(dword)).copied().unwrap_or(splat(0)),
        _ => splat(0),
    };
    if source.plain().is_none() && (source.bits <= 32 || source.neg || source.abs) {
        if source.bits == 64 {
            // The sign of a double is in its upper dword.
            if dword == 1 && signs {
                let upper = LaneSource { bits: 32, ..*source };
                lanes.iter_mut().for_each(|value| *value = upper.modify(*value, true));
            }
        } else {
            lanes.iter_mut().for_each(|value| *value = source.modify(*value, signs));
        }
    }
    lanes
}

/// Which lanes an instruction computes.
fn enabled_lanes(machine: &Machine<'_>, wave: &Wave, dpp: &Option<Dpp>) -> u64 {
    let exec = wave.exec(&machine.gpu);
    let Some(dpp) = dpp else { return exec };
    let mut enabled = exec & dpp.written;
    if !dpp.zero {
        for (lane, from) in dpp.lanes.iter().enumerate() {
            let there = *from != 255 && (dpp.inactive || exec >> from & 1 != 0);
            enabled &= !(u64::from(!there) << lane);
        }
    }
    enabled
}

fn moved_lanes(machine: &Machine<'_>, wave: &Wave, dpp: &Dpp, lanes: &Lanes) -> Lanes {
    let exec = wave.exec(&machine.gpu);
    let mut moved = splat(0);
    for (place, from) in moved.iter_mut().zip(dpp.lanes) {
        if from != 255 && (dpp.inactive || exec >> from & 1 != 0) {
            *place = lanes[usize::from(from)];
        }
    }
    moved
}

/// A dword of a source, and what is unknown of it.
fn source_lanes(machine: &Machine<'_>, wave: &Wave, vector: &VectorOp, at: usize, dword: u8) -> Lanes {
    let lanes = fetch(&vector.sources[at], dword, &wave.v, |reg| wave.sreg(reg), true);
    match &vector.dpp {
        Some(dpp) if at == 0 => moved_lanes(machine, wave, dpp, &lanes),
        _ => lanes,
    }
}

fn unknown_source_lanes(
    machine: &Machine<'_>,
    wave: &Wave,
    vector: &VectorOp,
    at: usize,
    dword: u8,
) -> Option<Lanes> {
    let state = wave.unknown.as_ref()?;
    let read = match (vector.sources[at].bits, vector.sources[at].packed) {
        (64, Some(packed)) => u8::from(packed.high[usize::from(dword.min(1))]),
        _ => dword,
    };
    let known = match vector.sources[at].from {
        From::Vgpr(n) => wave.unknown_in(n, read) == 0,
        From::Scalar(reg) => wave.unknown_sreg(Reg(reg.0 + u16::from(read))) == 0,
        From::Const(_) => true,
    };
    if known {
        return None;
    }
    let lanes = fetch(&vector.sources[at], dword, &state.v, |reg| wave.unknown_sreg(reg), false);
    Some(match &vector.dpp {
        Some(dpp) if at == 0 => moved_lanes(machine, wave, dpp, &lanes),
        _ => lanes,
    })
}

/// Lanes in which some source has unknown bits, and why.
fn unknown_sources(machine: &Machine<'_>, wave: &Wave, vector: &VectorOp, enabled: u64) -> (u64, Missing) {
    let (mut lanes, mut why) = (0u64, Missing::Undefined);
    if wave.unknown.is_none() {
        return (0, why);
    }
    for (at, source) in vector.sources.iter().enumerate() {
        for dword in 0..source.bits.div_ceil(32).max(1) as u8 {
            let Some(unknown) = unknown_source_lanes(machine, wave, vector, at, dword) else { continue };
            let half = if source.bits == 16 { 0xffff } else { u32::MAX };
            let found =
                bits(enabled).filter(|lane| unknown[*lane] & half != 0).fold(0, |m, lane| m | 1 << lane);
            if found & !lanes != 0 {
                why = wave.why_source(source).1;
            }
            lanes |= found;
        }
    }
    (lanes, why)
}

/// A source of 32 bits: where it lies, if it is a register as the operation takes it; else made in `place`.
#[inline]
fn source_values<'w>(
    machine: &Machine<'_>,
    wave: &'w Wave,
    vector: &VectorOp,
    at: usize,
    place: &'w mut Option<Lanes>,
) -> &'w Lanes {
    let source = &vector.sources[at];
    if *source == LaneSource::NONE {
        return &ZERO;
    }
    let plain = source.plain().filter(|_| at > 0 || vector.dpp.is_none());
    match plain.and_then(|n| wave.v.get(usize::from(n))) {
        Some(lanes) => lanes,
        None => place.insert(source_lanes(machine, wave, vector, at, 0)),
    }
}

/// An operation in every lane, of sources of 32 bits.
#[inline]
fn compute(
    machine: &Machine<'_>,
    wave: &Wave,
    vector: &VectorOp,
    lane: &Lane,
    mode: &Mode,
    result: &mut Lanes,
) {
    let [mut first, mut second, mut third] = [None; 3];
    let a = source_values(machine, wave, vector, 0, &mut first);
    let b = source_values(machine, wave, vector, 1, &mut second);
    let c = source_values(machine, wave, vector, 2, &mut third);
    (lane.many)(mode, result, a, b, c);
}

/// The commonest case: a whole register made of what is known. Whether it was.
fn exec_in_place(machine: &Machine<'_>, wave: &mut Wave, vector: &VectorOp) -> bool {
    let (Op::Lane(lane), Some(Dst { to: To::Vgpr(n), place: ResultPart::Whole, ty })) =
        (&vector.op, vector.dst)
    else {
        return false;
    };
    let enabled = enabled_lanes(machine, wave, &vector.dpp);
    if usize::from(n) >= wave.v.len() || unknown_sources(machine, wave, vector, enabled).0 != 0 {
        return false;
    }
    let mode = vector.mode(wave, &machine.gpu);
    let mut result = ZERO;
    compute(machine, wave, vector, lane, &mode, &mut result);
    if (vector.clamp || vector.omod != 0) && ty.is_float() {
        result.iter_mut().for_each(|value| *value = mode.output(ty, (*value).into()) as u32);
    }
    wave.set_lanes(n, enabled, &result);
    wave.set_known_lanes(n, enabled);
    true
}

/// The result of an operation on lanes of 32 bits.
fn make(machine: &Machine<'_>, wave: &Wave, vector: &VectorOp) -> Option<Made> {
    let mode = vector.mode(wave, &machine.gpu);
    let enabled = enabled_lanes(machine, wave, &vector.dpp);
    let mut result = splat(0);
    let mut unknown = None;
    match vector.op {
        Op::Lane(lane) => {
            compute(machine, wave, vector, &lane, &mode, &mut result);
            let (some, why) = unknown_sources(machine, wave, vector, enabled);
            if some != 0 {
                let [a, b, c] = [0, 1, 2].map(|at| source_lanes(machine, wave, vector, at, 0));
                let [x, y, z] = [0, 1, 2]
                    .map(|at| unknown_source_lanes(machine, wave, vector, at, 0).unwrap_or(splat(0)));
                let mut spread = splat(0);
                for lane_at in bits(some) {
                    let (a, b, c) = (a[lane_at], b[lane_at], c[lane_at]);
                    let (x, y, z) = (x[lane_at], y[lane_at], z[lane_at]);
                    spread[lane_at] = super::shadow::spread(&lane, &mode, [a, b, c], [x, y, z]);
                }
                unknown = Some(Box::new((spread, why)));
            }
        }
        Op::Select => {
            let mask_reg = vector.mask_in?;
            let mask = wave.mask(mask_reg, &machine.gpu);
            let (a, b) =
                (source_lanes(machine, wave, vector, 0, 0), source_lanes(machine, wave, vector, 1, 0));
            for (lane, place) in result.iter_mut().enumerate() {
                *place = if mask >> lane & 1 != 0 { b[lane] } else { a[lane] };
            }
            if wave.unknown.is_some() {
                let unsure = wave.unknown_value(mask_reg, if machine.gpu.wave64() { 2 } else { 1 });
                let sources =
                    [0, 1].map(|at| unknown_source_lanes(machine, wave, vector, at, 0).unwrap_or(splat(0)));
                let (some, why) = unknown_sources(machine, wave, vector, enabled);
                let mut spread = splat(0);
                for lane in bits(enabled) {
                    let chosen = usize::from(mask >> lane & 1 != 0);
                    spread[lane] = sources[chosen][lane];
                    if unsure >> lane & 1 != 0 {
                        spread[lane] = a[lane] ^ b[lane] | sources[0][lane] | sources[1][lane];
                    }
                }
                let why = if unsure & enabled != 0 { wave.why(mask_reg) } else { why };
                if (some | unsure) & enabled != 0 {
                    unknown = Some(Box::new((spread, why)));
                }
            }
        }
        _ => return None,
    }
    let ty = vector.dst.map_or(Type::None, |dst| dst.ty);
    if (vector.clamp || vector.omod != 0) && ty.is_float() {
        result.iter_mut().for_each(|value| *value = mode.output(ty, (*value).into()) as u32);
    }
    Some(Made { result, unknown, enabled })
}

/// Writes a dword of a result, and what is unknown of it.
fn put(machine: &mut Machine<'_>, wave: &mut Wave, dst: &Dst, dword: u8, made: &Made) {
    match dst.to {
        To::Scalar(reg) => {
            let lane = made.enabled.trailing_zeros() as usize % LANES;
            let (value, unknown) = (made.result[lane], made.unknown.as_ref().map_or(0, |held| held.0[lane]));
            let why = made.unknown.as_ref().map_or(Missing::Undefined, |held| held.1);
            wave.set_unknown(Reg(reg.0 + u16::from(dword)), value, unknown, why);
        }
        To::Vgpr(n) => {
            let Some(n) = n.checked_add(dword.into()).filter(|n| usize::from(*n) < wave.v.len()) else {
                return machine.fault(wave, FaultKind::NoRegister);
            };
            let at = usize::from(n);
            if dst.place == ResultPart::Whole {
                wave.set_lanes(n, made.enabled, &made.result);
            } else {
                let old = wave.v[at];
                let mut new = old;
                for (lane, place) in new.iter_mut().enumerate() {
                    *place = placed(dst.place, old[lane], made.result[lane]);
                }
                wave.set_lanes(n, made.enabled, &new);
            }
            if let Some(state) = &wave.unknown {
                if made.unknown.is_none() && dst.place == ResultPart::Whole {
                    return wave.set_known_lanes(n, made.enabled);
                }
                let (mut unknown, why) = match &made.unknown {
                    Some(held) => **held,
                    None => (splat(0), Missing::Undefined),
                };
                if dst.place != ResultPart::Whole {
                    let old = state.v[at];
                    for (lane, place) in unknown.iter_mut().enumerate() {
                        *place = placed(dst.place, old[lane], *place);
                    }
                }
                wave.set_unknown_lanes(n, made.enabled, &unknown, why);
            }
        }
    }
}

/// Executes both halves of a dual instruction: both read before one writes.
pub(super) fn exec_dual(machine: &mut Machine<'_>, wave: &mut Wave, halves: &[VectorOp; 2]) {
    let made = [make(machine, wave, &halves[0]), make(machine, wave, &halves[1])];
    for (half, made) in halves.iter().zip(made) {
        match (half.dst, made) {
            (Some(dst), Some(made)) => put(machine, wave, &dst, 0, &made),
            _ => machine.fault(wave, FaultKind::NoSemantics),
        }
    }
}

/// Executes an operation on lanes.
pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, vector: &VectorOp) {
    if wave.gpr_idx != 0 {
        let moved = vector.indexed(wave);
        return exec_lanes(machine, wave, &moved);
    }
    exec_lanes(machine, wave, vector);
}

fn exec_lanes(machine: &mut Machine<'_>, wave: &mut Wave, vector: &VectorOp) {
    if exec_in_place(machine, wave, vector) {
        return;
    }
    if matches!(vector.op, Op::Lane(_) | Op::Select) {
        return match (vector.dst, make(machine, wave, vector)) {
            (Some(dst), Some(mut made)) => {
                // A scalar result is computed whatever lanes are enabled.
                if made.enabled == 0 && matches!(dst.to, To::Scalar(_)) {
                    made.enabled = 1;
                }
                put(machine, wave, &dst, 0, &made);
            }
            _ => machine.fault(wave, FaultKind::NoSemantics),
        };
    }
    exec_wide(machine, wave, vector);
}

/// A comparison of values of at most 32 bits, all of them known in the enabled lanes.
fn exec_compare(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    vector: &VectorOp,
    compare: fn(&Mode, u64, u64) -> bool,
) {
    let mode = vector.mode(wave, &machine.gpu);
    let enabled = enabled_lanes(machine, wave, &vector.dpp);
    let [mut first, mut second] = [None; 2];
    let a = source_values(machine, wave, vector, 0, &mut first);
    let b = source_values(machine, wave, vector, 1, &mut second);
    let mut mask = 0u64;
    for (lane, (a, b)) in a.iter().zip(b).enumerate() {
        mask |= u64::from(compare(&mode, (*a).into(), (*b).into())) << lane;
    }
    mask &= enabled;
    if let Some(reg) = vector.mask_out {
        wave.set_mask(reg, &machine.gpu, mask, 0, Missing::Undefined);
    }
    if vector.exec_out {
        wave.set_mask(Reg::EXEC, &machine.gpu, mask, 0, Missing::Undefined);
    }
}

/// What is unknown of a result of 64 bits (and of all dwords behind) in lanes where something of its sources is.
fn unknown_wide(
    machine: &Machine<'_>,
    wave: &Wave,
    vector: &VectorOp,
    sources: &[[Lanes; 2]; 3],
    unsure: u64,
) -> [Lanes; 2] {
    let mut unknown = [splat(0); 2];
    bits(unsure).for_each(|lane| unknown.iter_mut().for_each(|dword| dword[lane] = u32::MAX));
    let of =
        |at: usize, dword: u8| unknown_source_lanes(machine, wave, vector, at, dword).unwrap_or(splat(0));
    let masked = vector.mask_in.is_some() || vector.clamp;
    match vector.op {
        // The bits that are moved, if it is known how far.
        Op::Shift { amount, f } => {
            let mode = vector.mode(wave, &machine.gpu);
            let (far, near) = (usize::from(amount), usize::from(1 - amount));
            let (unknown_far, [low, high]) = (of(far, 0), [of(near, 0), of(near, 1)]);
            for lane in bits(unsure).filter(|lane| unknown_far[*lane] == 0) {
                let moved = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                let by = u64::from(sources[far][0][lane]);
                let (a, b) = if far == 0 { (by, moved) } else { (moved, by) };
                let all = f(&mode, a, b, 0);
                unknown[0][lane] = all as u32;
                unknown[1][lane] = (all >> 32) as u32;
            }
        }
        // A product and a sum: the lower dword is made of the lower ones.
        Op::WideCarry(_) if !masked && vector.dst.is_some_and(|dst| !dst.ty.is_float()) => {
            let low = [0, 1, 2].map(|at| of(at, 0));
            for lane in bits(unsure).filter(|lane| low.iter().all(|low| low[*lane] == 0)) {
                unknown[0][lane] = 0;
            }
        }
        // Pairs of singles: each is made of those in its own half, unless an operation moves them.
        Op::Wide(f) if vector.dst.is_some_and(|dst| dst.ty == Type::PkF32) && of_pairs(vector) => {
            let mode = vector.mode(wave, &machine.gpu);
            let one = u64::from(1f32.to_bits());
            if f(&mode, 0, 0, 0) >> 32 == f(&mode, one, one, one) >> 32 {
                for (dword, unknown) in (0..).zip(&mut unknown) {
                    let parts = [0, 1, 2].map(|at| of(at, dword));
                    for lane in bits(unsure).filter(|lane| parts.iter().all(|part| part[*lane] == 0)) {
                        unknown[lane] = 0;
                    }
                }
            }
        }
        _ => {}
    }
    unknown
}

/// Whether all sources are pairs of 32 bits, or constants.
fn of_pairs(vector: &VectorOp) -> bool {
    vector.sources.iter().all(|source| source.bits == 64 || matches!(source.from, From::Const(_)))
}

/// Operations with values of 64 bits, or with masks.
fn exec_wide(machine: &mut Machine<'_>, wave: &mut Wave, vector: &VectorOp) {
    if let Op::Compare(compare) = vector.op
        && vector.sources.iter().all(|source| source.bits <= 32)
        && unknown_sources(machine, wave, vector, enabled_lanes(machine, wave, &vector.dpp)).0 == 0
    {
        return exec_compare(machine, wave, vector, compare);
    }
    let mode = vector.mode(wave, &machine.gpu);
    let enabled = enabled_lanes(machine, wave, &vector.dpp);
    let sources: [[Lanes; 2]; 3] = std::array::from_fn(|at| {
        let low = source_lanes(machine, wave, vector, at, 0);
        let wide = vector.sources[at].bits > 32;
        [low, if wide { source_lanes(machine, wave, vector, at, 1) } else { splat(0) }]
    });
    let at = |n: usize, lane: usize| u64::from(sources[n][0][lane]) | u64::from(sources[n][1][lane]) << 32;
    let mask_in = vector.mask_in.map_or(0, |reg| wave.mask(reg, &machine.gpu));
    let mut results = [splat(0); 4];
    let mut mask_out = 0u64;
    let ty = vector.dst.map_or(Type::None, |dst| dst.ty);
    let mut dwords = ty.bits().div_ceil(32).max(1) as u8;
    for lane in bits(enabled) {
        let (a, b, c) = (at(0, lane), at(1, lane), at(2, lane));
        let bit = mask_in >> lane & 1 != 0;
        let (value, out) = match vector.op {
            Op::Wide(f) | Op::Shift { f, .. } => (f(&mode, a, b, c), false),
            Op::Carry(f) => {
                let (value, out) = f(&mode, a as u32, b as u32, bit);
                (value.into(), out)
            }
            Op::WideCarry(f) => f(&mode, a, b, c),
            Op::Compare(f) => (0, f(&mode, a, b)),
            Op::DivFmas(f) => (f(&mode, a, b, c, bit), false),
            Op::Quad(f) => {
                let From::Vgpr(n) = vector.sources[2].from else { continue };
                let third = std::array::from_fn(|at| wave.v.get(usize::from(n) + at).map_or(0, |v| v[lane]));
                let value = f(&mode, a, b as u32, third);
                for (place, value) in results.iter_mut().zip(value) {
                    place[lane] = value;
                }
                continue;
            }
            _ => (0, false),
        };
        let value =
            if (vector.clamp || vector.omod != 0) && ty.is_float() { mode.output(ty, value) } else { value };
        results[0][lane] = value as u32;
        results[1][lane] = (value >> 32) as u32;
        mask_out |= u64::from(out) << lane;
    }
    let (mut unsure, mut why) = unknown_sources(machine, wave, vector, enabled);
    if let (Some(reg), true) = (vector.mask_in, wave.unknown.is_some()) {
        let mask = wave.unknown_value(reg, if machine.gpu.wave64() { 2 } else { 1 }) & enabled;
        if mask != 0 {
            why = wave.why(reg);
        }
        unsure |= mask;
    }
    if let Some(dst) = &vector.dst {
        if matches!(vector.op, Op::Quad(_)) {
            dwords = 4;
        }
        let held =
            if unsure == 0 { [splat(0); 2] } else { unknown_wide(machine, wave, vector, &sources, unsure) };
        for dword in 0..dwords.min(4) {
            let unknown = held[usize::from(dword.min(1))];
            let made = Made {
                result: results[usize::from(dword)],
                unknown: (unsure != 0).then(|| Box::new((unknown, why))),
                enabled,
            };
            put(machine, wave, dst, dword, &made);
        }
    }
    if let Some(reg) = vector.mask_out {
        wave.set_mask(reg, &machine.gpu, mask_out, unsure, why);
    }
    if vector.exec_out {
        if unsure != 0 {
            let (reg, _) = vector
                .sources
                .iter()
                .map(|source| wave.why_source(source))
                .next()
                .unwrap_or((Reg::EXEC, why));
            machine.fault(wave, FaultKind::Control(reg, why));
        }
        wave.set_mask(Reg::EXEC, &machine.gpu, mask_out, 0, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_dpp() {
        assert_eq!(dpp_lanes(0x1b, true)[..8], [3, 2, 1, 0, 7, 6, 5, 4]);
        assert_eq!(dpp_lanes(0x101, true)[14..18], [15, 255, 17, 18]);
        assert_eq!(dpp_lanes(0x111, true)[15..18], [14, 255, 16]);
        assert_eq!(dpp_lanes(0x121, true)[15..18], [14, 31, 16]);
        assert_eq!(dpp_lanes(0x142, true)[..17], [[255; 16].as_slice(), &[15]].concat());
        assert_eq!(dpp_lanes(0x141, true)[..9], [7, 6, 5, 4, 3, 2, 1, 0, 15]);
        assert_eq!(dpp_lanes(0x161, false)[30..34], [31, 30, 255, 255]);
    }

    #[test]
    fn parts_of_a_register() {
        assert_eq!(placed(ResultPart::Half(true, true), 0x1111_2222, 0x3333), 0x3333_2222);
        assert_eq!(placed(ResultPart::Half(false, false), 0x1111_2222, 0x3333), 0x3333);
        assert_eq!(placed(ResultPart::Sdwa(DwordPart::Byte(1), 2), 0x1111_2222, 0x80), 0x1111_8022);
        assert_eq!(placed(ResultPart::Sdwa(DwordPart::Byte(1), 1), 0x1111_2222, 0x80), 0xffff_8000);
        assert_eq!(placed(ResultPart::Sdwa(DwordPart::Word(1), 0), 0x1111_2222, 0x80), 0x0080_0000);
    }
}
