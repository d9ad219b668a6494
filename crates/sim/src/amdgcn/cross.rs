//! Operations of the vector ALU that move data between lanes, or between lanes and scalar registers.

use super::fault::{FaultKind, Missing};
use super::lanes::{bits, splat};
use super::machine::Machine;
use super::operand::{From, from, number, vector};
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Mod, Type};
use unwedge_isa::amdgcn::opcode::LanesOp;
use unwedge_isa::amdgcn::semantics::{LANES, Lanes};
use unwedge_isa::amdgcn::{Inst, Operand, Reg, RegHalf};

/// What moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CrossLaneKind {
    ReadFirst,
    Read,
    Write,
    /// Counts the bits of a mask below the lane: in the lower or upper 32.
    Count {
        high: bool,
    },
    Swap,
    /// Halves of two registers are exchanged, or those of one: which is the upper one, of the destination and the source.
    SwapHalves {
        high: [bool; 2],
    },
    /// `v_permlane16`: within rows of 16, or from the other row of a pair.
    Permlane {
        other: bool,
        inactive: bool,
        zero: bool,
    },
    /// The same with a lane number of each lane.
    PermlaneVar {
        other: bool,
        inactive: bool,
        zero: bool,
    },
    Permlane64,
    /// Odd rows of so many lanes of the destination are exchanged with even ones of the source.
    SwapRows {
        rows: usize,
    },
    /// `m0` is added to the number of the source, of the destination, or of both.
    MoveRel {
        src: bool,
        dst: bool,
        two: bool,
    },
    SwapRel,
}

/// A move between lanes with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct CrossLaneOp {
    kind: CrossLaneKind,
    dst: Reg,
    sources: [From; 3],
}

impl CrossLaneOp {
    pub(super) fn new(op: LanesOp, inst: &Inst) -> Option<CrossLaneOp> {
        let select = inst.mods.get(Mod::OpSel);
        let (inactive, zero) = (select & 1 != 0, select & 2 != 0);
        let kind = match op {
            LanesOp::v_readfirstlane_b32 => CrossLaneKind::ReadFirst,
            LanesOp::v_readlane_b32 => CrossLaneKind::Read,
            LanesOp::v_writelane_b32 => CrossLaneKind::Write,
            LanesOp::v_mbcnt_lo_u32_b32 => CrossLaneKind::Count { high: false },
            LanesOp::v_mbcnt_hi_u32_b32 => CrossLaneKind::Count { high: true },
            LanesOp::v_swap_b32 => CrossLaneKind::Swap,
            LanesOp::v_swap_b16 => {
                let high = |at: usize| matches!(inst.operands[at], Operand::Reg { half: RegHalf::High, .. });
                CrossLaneKind::SwapHalves { high: [high(0), high(1)] }
            }
            LanesOp::v_permlane16_b32 => CrossLaneKind::Permlane { other: false, inactive, zero },
            LanesOp::v_permlanex16_b32 => CrossLaneKind::Permlane { other: true, inactive, zero },
            LanesOp::v_permlane16_var_b32 => CrossLaneKind::PermlaneVar { other: false, inactive, zero },
            LanesOp::v_permlanex16_var_b32 => CrossLaneKind::PermlaneVar { other: true, inactive, zero },
            LanesOp::v_permlane16_swap_b32 => CrossLaneKind::SwapRows { rows: 16 },
            LanesOp::v_permlane32_swap_b32 => CrossLaneKind::SwapRows { rows: 32 },
            LanesOp::v_permlane64_b32 => CrossLaneKind::Permlane64,
            LanesOp::v_movrels_b32 => CrossLaneKind::MoveRel { src: true, dst: false, two: false },
            LanesOp::v_movreld_b32 => CrossLaneKind::MoveRel { src: false, dst: true, two: false },
            LanesOp::v_movrelsd_b32 => CrossLaneKind::MoveRel { src: true, dst: true, two: false },
            LanesOp::v_movrelsd_2_b32 => CrossLaneKind::MoveRel { src: true, dst: true, two: true },
            LanesOp::v_swaprel_b32 => CrossLaneKind::SwapRel,
        };
        let mut dst = None;
        let mut sources = [From::Const(0); 3];
        let mut count = 0;
        for (slot, operand) in inst.written() {
            match operand {
                Operand::Reg { reg, .. } if slot.access.writes() && dst.is_none() => dst = Some(reg),
                other => {
                    *sources.get_mut(count)? = from(other, slot.ty)?;
                    count += 1;
                }
            }
        }
        Some(CrossLaneOp { kind, dst: dst?, sources })
    }
}

/// A register or constant in every lane, and what is unknown of it.
fn whole(wave: &Wave, from: From) -> (Lanes, Lanes) {
    match from {
        From::Vgpr(n) => {
            let unknown = wave.unknown.as_ref().and_then(|state| state.v.get(usize::from(n)).copied());
            (wave.v.get(usize::from(n)).copied().unwrap_or(splat(0)), unknown.unwrap_or(splat(0)))
        }
        other => {
            let (value, unknown) = wave.scalar_value(other, Type::B32);
            (splat(value as u32), splat(unknown as u32))
        }
    }
}

fn why_from(wave: &Wave, from: From) -> Missing {
    match from {
        From::Vgpr(n) => wave.why(vector(n)),
        From::Scalar(reg) => wave.why(reg),
        From::Const(_) => Missing::Undefined,
    }
}

fn put_vector(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    reg: Reg,
    lanes: u64,
    value: &(Lanes, Lanes),
    why: Missing,
) {
    if usize::from(number(reg)) >= wave.v.len() {
        return machine.fault(wave, FaultKind::NoRegister);
    }
    let n = number(reg);
    wave.set_lanes(n, lanes, &value.0);
    if wave.unknown.is_some() {
        wave.set_unknown_lanes(n, lanes, &value.1, why);
    }
}

/// The lane a scalar operand selects.
fn lane_number(machine: &mut Machine<'_>, wave: &Wave, from: From) -> usize {
    let (value, unknown) = wave.scalar_value(from, Type::B32);
    if let (From::Scalar(reg), true) = (from, unknown != 0) {
        machine.fault(wave, FaultKind::Address(reg, wave.why(reg)));
    }
    value as usize % machine.gpu.lanes() as usize
}

/// Counts the bits of a mask below each lane, in its lower or upper half, and adds.
fn count_below(first: &(Lanes, Lanes), added: &(Lanes, Lanes), high: bool) -> (Lanes, Lanes) {
    let (mut value, mut unknown) = (splat(0), splat(0));
    for lane in 0..LANES {
        let below = match (lane, high) {
            (..32, false) => !(u32::MAX << lane),
            (_, false) => u32::MAX,
            (..32, true) => 0,
            (_, true) => !(u32::MAX << (lane - 32)),
        };
        value[lane] = (first.0[lane] & below).count_ones().wrapping_add(added.0[lane]);
        if first.1[lane] & below != 0 || added.1[lane] != 0 {
            unknown[lane] = u32::MAX;
        }
    }
    (value, unknown)
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, cross: &CrossLaneOp) {
    let exec = wave.exec(&machine.gpu);
    let first = whole(wave, cross.sources[0]);
    let why = why_from(wave, cross.sources[0]);
    match cross.kind {
        CrossLaneKind::ReadFirst | CrossLaneKind::Read => {
            let lane = match cross.kind {
                CrossLaneKind::Read => lane_number(machine, wave, cross.sources[1]),
                // With no lane enabled the first one is read.
                _ if exec == 0 => 0,
                _ => exec.trailing_zeros() as usize,
            };
            wave.set_unknown(cross.dst, first.0[lane], first.1[lane], why);
        }
        CrossLaneKind::Write => {
            let lane = lane_number(machine, wave, cross.sources[1]);
            put_vector(machine, wave, cross.dst, 1 << lane, &first, why);
        }
        CrossLaneKind::Count { high } => {
            let counted = count_below(&first, &whole(wave, cross.sources[1]), high);
            put_vector(machine, wave, cross.dst, exec, &counted, why);
        }
        CrossLaneKind::Swap => {
            let From::Vgpr(n) = cross.sources[0] else { return machine.fault(wave, FaultKind::NoRegister) };
            let other = whole(wave, From::Vgpr(number(cross.dst)));
            let other_why = wave.why(cross.dst);
            put_vector(machine, wave, cross.dst, exec, &first, why);
            put_vector(machine, wave, vector(n), exec, &other, other_why);
        }
        CrossLaneKind::SwapHalves { high } => {
            let From::Vgpr(n) = cross.sources[0] else { return machine.fault(wave, FaultKind::NoRegister) };
            let other = whole(wave, From::Vgpr(number(cross.dst)));
            let other_why = wave.why(cross.dst);
            let [to_dst, to_source] = [0, 1].map(|half| if high[half] { 16 } else { 0 });
            let put = |old: &Lanes, to: u32, new: &Lanes, from: u32| -> Lanes {
                std::array::from_fn(|lane| old[lane] & !(0xffff << to) | (new[lane] >> from & 0xffff) << to)
            };
            let dst =
                (put(&other.0, to_dst, &first.0, to_source), put(&other.1, to_dst, &first.1, to_source));
            put_vector(machine, wave, cross.dst, exec, &dst, why);
            // Of one register the other half has just been written.
            let old = if vector(n) == cross.dst { &dst } else { &first };
            let source = (put(&old.0, to_source, &other.0, to_dst), put(&old.1, to_source, &other.1, to_dst));
            put_vector(machine, wave, vector(n), exec, &source, other_why);
        }
        CrossLaneKind::Permlane { other, inactive, zero } => {
            let low = wave.scalar_value(cross.sources[1], Type::B32);
            let high = wave.scalar_value(cross.sources[2], Type::B32);
            if low.1 | high.1 != 0 {
                let reg = if let From::Scalar(reg) = cross.sources[1] { reg } else { Reg::NULL };
                machine.fault(wave, FaultKind::Address(reg, wave.why(reg)));
            }
            let select = low.0 & 0xffff_ffff | high.0 << 32;
            let number = |lane: usize| (select >> (4 * (lane & 15))) as usize & 15;
            permute(machine, wave, cross.dst, &first, why, other, inactive, zero, number);
        }
        CrossLaneKind::PermlaneVar { other, inactive, zero } => {
            let numbers = whole(wave, cross.sources[1]);
            let number = |lane: usize| numbers.0[lane] as usize & 15;
            permute(machine, wave, cross.dst, &first, why, other, inactive, zero, number);
        }
        CrossLaneKind::SwapRows { rows } => {
            if exec != Wave::all(&machine.gpu) {
                machine.fault(
                    wave,
                    FaultKind::NotEmulated("an exchange of rows while not all lanes are enabled"),
                );
                return;
            }
            let From::Vgpr(n) = cross.sources[0] else { return machine.fault(wave, FaultKind::NoRegister) };
            let other = whole(wave, From::Vgpr(number(cross.dst)));
            let other_why = wave.why(cross.dst);
            let upper = |own: &Lanes, source: &Lanes| -> Lanes {
                std::array::from_fn(|lane| if lane & rows != 0 { source[lane - rows] } else { own[lane] })
            };
            let lower = |own: &Lanes, source: &Lanes| -> Lanes {
                std::array::from_fn(|lane| if lane & rows == 0 { source[lane + rows] } else { own[lane] })
            };
            let to_dst = (upper(&other.0, &first.0), upper(&other.1, &first.1));
            let to_source = (lower(&first.0, &other.0), lower(&first.1, &other.1));
            put_vector(machine, wave, cross.dst, exec, &to_dst, why);
            put_vector(machine, wave, vector(n), exec, &to_source, other_why);
        }
        CrossLaneKind::Permlane64 => {
            let turned = |lanes: &Lanes| std::array::from_fn(|lane| lanes[lane ^ 32]);
            if machine.gpu.wave64() {
                let value = (turned(&first.0), turned(&first.1));
                put_vector(machine, wave, cross.dst, exec, &value, why);
            }
        }
        CrossLaneKind::MoveRel { src, dst, two } => {
            let m0 = wave.sreg(Reg::M0);
            let to = if two { m0 >> 16 } else { m0 } as u16 & 0xff;
            let by = m0 as u16 & 0xff;
            let from = match cross.sources[0] {
                From::Vgpr(n) if src => {
                    let at = n + by;
                    if usize::from(at) >= wave.v.len() {
                        return machine.fault(wave, FaultKind::NoRegister);
                    }
                    From::Vgpr(at)
                }
                other => other,
            };
            let reg = if dst { Reg(cross.dst.0 + to) } else { cross.dst };
            let value = whole(wave, from);
            let why = why_from(wave, from);
            put_vector(machine, wave, reg, exec, &value, why);
        }
        CrossLaneKind::SwapRel => {
            let m0 = wave.sreg(Reg::M0);
            let From::Vgpr(n) = cross.sources[0] else { return machine.fault(wave, FaultKind::NoRegister) };
            let a = Reg(cross.dst.0 + (m0 >> 16) as u16 % 256);
            let b = Reg(256 + n + m0 as u16 % 256);
            if usize::from(number(a).max(number(b))) >= wave.v.len() {
                return machine.fault(wave, FaultKind::NoRegister);
            }
            let left = whole(wave, From::Vgpr(number(a)));
            let right = whole(wave, From::Vgpr(number(b)));
            let (left_why, right_why) = (wave.why(a), wave.why(b));
            put_vector(machine, wave, a, exec, &right, right_why);
            put_vector(machine, wave, b, exec, &left, left_why);
        }
    }
}

/// Moves within rows of 16 lanes. A disabled lane is read if that is said; else the lane reads zero, or is left alone.
#[allow(clippy::too_many_arguments, reason = "what the instruction says")]
fn permute(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    dst: Reg,
    source: &(Lanes, Lanes),
    why: Missing,
    other: bool,
    inactive: bool,
    zero: bool,
    number: impl Fn(usize) -> usize,
) {
    let exec = wave.exec(&machine.gpu);
    let (mut value, mut unknown, mut written) = (splat(0), splat(0), exec);
    for lane in bits(exec) {
        let row = lane & !15 ^ if other { 16 } else { 0 };
        let from = row | number(lane);
        if inactive || exec >> from & 1 != 0 {
            value[lane] = source.0[from];
            unknown[lane] = source.1[from];
        } else if !zero {
            written &= !(1 << lane);
        }
    }
    put_vector(machine, wave, dst, written, &(value, unknown), why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::local::LocalMemory;
    use crate::memory::{GroupView, SimMemory};
    use unwedge_isa::amdgcn::Gpu;

    /// A unit needs a machine and a wave, and neither a program nor a workgroup.
    #[test]
    fn moves_on_one_wave() {
        let memory = SimMemory::default();
        let gpu = Gpu::new("gfx1010").expect("a GPU of the table");
        let mut machine = Machine::new(gpu, 0, GroupView::new(&memory), 0, 0, 0);
        let mut wave = Wave::new(0, false, 2, LocalMemory::new(0, false));
        wave.set(Reg::EXEC, 0b1010);
        wave.v[0] = std::array::from_fn(|lane| 100 + lane as u32);
        wave.v[1] = splat(7);
        let first = CrossLaneOp { kind: CrossLaneKind::ReadFirst, dst: Reg(5), sources: [From::Vgpr(0); 3] };
        exec(&mut machine, &mut wave, &first);
        assert_eq!(wave.sreg(Reg(5)), 101);
        let swap = CrossLaneOp { kind: CrossLaneKind::Swap, dst: Reg::vgpr(1), sources: [From::Vgpr(0); 3] };
        exec(&mut machine, &mut wave, &swap);
        assert_eq!(
            (wave.v[1][..4].to_vec(), wave.v[0][..4].to_vec()),
            (vec![7, 101, 7, 103], vec![100, 7, 102, 7])
        );
        assert!(machine.faults.is_empty());
        let beyond =
            CrossLaneOp { kind: CrossLaneKind::Write, dst: Reg::vgpr(9), sources: [From::Const(1); 3] };
        exec(&mut machine, &mut wave, &beyond);
        assert!(matches!(&machine.faults[..], [fault] if fault.kind == FaultKind::NoRegister));
    }
}
