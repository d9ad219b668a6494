//! Branches, barriers, messages, and what else steers a wave.

use super::decoded::DecodedInst;
use super::export;
use super::fault::{FaultKind, Missing};
use super::hwreg;
use super::machine::Machine;
use super::operand::{From, from};
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Class, Type};
use unwedge_isa::amdgcn::opcode::ControlOp;
use unwedge_isa::amdgcn::{Inst, Operand, Reg};

/// When a branch is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BranchCondition {
    Always,
    Never,
    /// A special register is this.
    Is(Reg, bool),
}

/// What steers a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowOp {
    /// Tells the rest of the GPU something.
    Message(u32),
    Branch(BranchCondition, i32),
    /// To an address, which may be saved.
    Jump {
        to: From,
        save: Option<Reg>,
    },
    /// Relative, the address saved.
    Call {
        by: i32,
        save: Reg,
    },
    GetPc(Reg),
    End,
    Barrier,
    /// gfx12: arrives, without waiting; whether the condition code says who was first.
    Signal {
        first: bool,
    },
    /// Nothing: barriers of which there is but one here.
    Nothing,
    RoundMode(u32),
    DenormMode(u32),
    /// `s_set_gpr_idx_on` and its kin: index, mode.
    GprIdxOn(From, u32),
    GprIdxMode(u32),
    GprIdxIdx(From),
    GprIdxOff,
    GetReg(Reg, u32),
    SetReg(u32, From),
    /// `s_subvector_loop_begin` and `_end`.
    SubvectorBegin(Reg, i32),
    SubvectorEnd(Reg, i32),
    /// Waves that a debugger or a trap handler would take over.
    Trap,
    Movrels {
        dst: Reg,
        src: Reg,
        dwords: u8,
    },
    Movreld {
        dst: Reg,
        src: From,
        dwords: u8,
    },
    /// The source and the destination by two parts of `m0`.
    Movrelsd2 {
        dst: Reg,
        src: Reg,
    },
    /// A message that answers: with the time, or with zero.
    Answer {
        dst: Reg,
        dwords: u8,
        time: bool,
    },
    /// `s_get_barrier_state`.
    BarrierState(Reg),
    /// Lanes of a mask go on elsewhere, the others here: the fewer first, the rest is put on the stack.
    Fork {
        mask: From,
        to: ForkTarget,
    },
    /// The end of both ways.
    Join(From),
}

/// Where a fork goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForkTarget {
    By(i32),
    To(From),
}

/// The lowest bit of the pointer of the stack of branches in MODE.
const CSP: u32 = 29;

/// The message that asks for the time (`MSG_RTN_GET_REALTIME`).
const GET_REALTIME: i32 = 131;

fn immediate(inst: &Inst) -> i32 {
    let found = inst.written().find_map(|(_, operand)| match operand {
        Operand::Imm(value) => Some(value),
        _ => None,
    });
    found.unwrap_or(0)
}

fn destination(inst: &Inst) -> Option<(Reg, u8)> {
    inst.written().find_map(|(slot, operand)| match operand {
        Operand::Reg { reg, dwords, .. } if slot.access.writes() => Some((reg, dwords)),
        _ => None,
    })
}

fn value(inst: &Inst) -> Option<From> {
    inst.written().find(|(slot, _)| slot.access.reads()).and_then(|(slot, operand)| from(operand, slot.ty))
}

fn register(inst: &Inst) -> Option<Reg> {
    inst.written().find_map(|(slot, operand)| match operand {
        Operand::Reg { reg, .. } if slot.access.reads() && !slot.access.writes() => Some(reg),
        _ => None,
    })
}

impl FlowOp {
    /// What an instruction does to the flow; `None`: its operands are none of those it has.
    pub(super) fn new(op: ControlOp, inst: &Inst) -> Option<FlowOp> {
        let is = |reg, value| Some(FlowOp::Branch(BranchCondition::Is(reg, value), immediate(inst)));
        match op {
            ControlOp::s_branch => Some(FlowOp::Branch(BranchCondition::Always, immediate(inst))),
            ControlOp::s_cbranch_scc0 => is(Reg::SCC, false),
            ControlOp::s_cbranch_scc1 => is(Reg::SCC, true),
            ControlOp::s_cbranch_vccz => is(Reg::VCCZ, true),
            ControlOp::s_cbranch_vccnz => is(Reg::VCCZ, false),
            ControlOp::s_cbranch_execz => is(Reg::EXECZ, true),
            ControlOp::s_cbranch_execnz => is(Reg::EXECZ, false),
            // Only a debugger sets what these test.
            ControlOp::s_cbranch_cdbgsys
            | ControlOp::s_cbranch_cdbguser
            | ControlOp::s_cbranch_cdbgsys_or_user
            | ControlOp::s_cbranch_cdbgsys_and_user => {
                Some(FlowOp::Branch(BranchCondition::Never, immediate(inst)))
            }
            ControlOp::s_setpc_b64 => Some(FlowOp::Jump { to: value(inst)?, save: None }),
            ControlOp::s_swappc_b64 => {
                Some(FlowOp::Jump { to: value(inst)?, save: Some(destination(inst)?.0) })
            }
            ControlOp::s_call_b64 => Some(FlowOp::Call { by: immediate(inst), save: destination(inst)?.0 }),
            ControlOp::s_getpc_b64 => Some(FlowOp::GetPc(destination(inst)?.0)),
            ControlOp::s_endpgm | ControlOp::s_endpgm_saved | ControlOp::s_endpgm_ordered_ps_done => {
                Some(FlowOp::End)
            }
            ControlOp::s_barrier | ControlOp::s_barrier_wait => Some(FlowOp::Barrier),
            ControlOp::s_barrier_signal => Some(FlowOp::Signal { first: false }),
            ControlOp::s_barrier_signal_isfirst => Some(FlowOp::Signal { first: true }),
            ControlOp::s_get_barrier_state => Some(FlowOp::BarrierState(destination(inst)?.0)),
            ControlOp::s_barrier_init
            | ControlOp::s_barrier_join
            | ControlOp::s_barrier_leave
            | ControlOp::s_wakeup_barrier => Some(FlowOp::Nothing),
            // Only in a mode of the dispatch that is not emulated.
            ControlOp::s_alloc_vgpr => None,
            ControlOp::s_round_mode => Some(FlowOp::RoundMode(immediate(inst) as u32 & 15)),
            ControlOp::s_denorm_mode => Some(FlowOp::DenormMode(immediate(inst) as u32 & 15)),
            ControlOp::s_set_gpr_idx_on => Some(FlowOp::GprIdxOn(value(inst)?, immediate(inst) as u32 & 15)),
            ControlOp::s_set_gpr_idx_mode => Some(FlowOp::GprIdxMode(immediate(inst) as u32 & 15)),
            ControlOp::s_set_gpr_idx_idx => Some(FlowOp::GprIdxIdx(value(inst)?)),
            ControlOp::s_set_gpr_idx_off => Some(FlowOp::GprIdxOff),
            ControlOp::s_getreg_b32 => Some(FlowOp::GetReg(destination(inst)?.0, immediate(inst) as u32)),
            ControlOp::s_setreg_b32 | ControlOp::s_setreg_imm32_b32 => {
                let mut operands = inst.written();
                let value = operands.find_map(|(slot, operand)| match operand {
                    Operand::Imm(_) if slot.class == Class::Hwreg => None,
                    other => from(other, slot.ty),
                });
                Some(FlowOp::SetReg(immediate(inst) as u32, value?))
            }
            ControlOp::s_subvector_loop_begin => {
                Some(FlowOp::SubvectorBegin(destination(inst)?.0, immediate(inst)))
            }
            ControlOp::s_subvector_loop_end => {
                Some(FlowOp::SubvectorEnd(destination(inst)?.0, immediate(inst)))
            }
            ControlOp::s_cbranch_g_fork => {
                let mut values = inst.written().map(|(slot, operand)| from(operand, slot.ty));
                Some(FlowOp::Fork { mask: values.next()??, to: ForkTarget::To(values.next()??) })
            }
            ControlOp::s_cbranch_i_fork => {
                let mask = inst.written().find_map(|(_, operand)| match operand {
                    Operand::Reg { reg, .. } => Some(From::Scalar(reg)),
                    _ => None,
                })?;
                Some(FlowOp::Fork { mask, to: ForkTarget::By(immediate(inst)) })
            }
            ControlOp::s_cbranch_join => Some(FlowOp::Join(value(inst)?)),
            ControlOp::s_trap | ControlOp::s_rfe_b64 | ControlOp::s_rfe_restore_b64 => Some(FlowOp::Trap),
            ControlOp::s_movrels_b32 | ControlOp::s_movrels_b64 => {
                let (dst, dwords) = destination(inst)?;
                Some(FlowOp::Movrels { dst, src: register(inst)?, dwords })
            }
            ControlOp::s_movreld_b32 | ControlOp::s_movreld_b64 => {
                let (dst, dwords) = destination(inst)?;
                Some(FlowOp::Movreld { dst, src: value(inst)?, dwords })
            }
            ControlOp::s_movrelsd_2_b32 => {
                Some(FlowOp::Movrelsd2 { dst: destination(inst)?.0, src: register(inst)? })
            }
            ControlOp::s_sendmsg_rtn_b32 | ControlOp::s_sendmsg_rtn_b64 => {
                let (dst, dwords) = destination(inst)?;
                Some(FlowOp::Answer { dst, dwords, time: immediate(inst) == GET_REALTIME })
            }
            ControlOp::s_sendmsg | ControlOp::s_sendmsghalt => {
                Some(FlowOp::Message(immediate(inst) as u32 & 0xffff))
            }
        }
    }
}

/// Goes on at an offset relative to the code's begin, if that is one.
fn jump(machine: &mut Machine<'_>, wave: &mut Wave, address: u64) {
    match address.checked_sub(machine.code_base).and_then(|offset| u32::try_from(offset).ok()) {
        Some(offset) => wave.pc = offset,
        None => machine.fault(wave, FaultKind::NotAnInstruction),
    }
}

fn relative(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, by: i32) {
    let target = i64::from(decoded.next) + i64::from(by) * 4;
    jump(machine, wave, machine.code_base.wrapping_add(target as u64));
}

/// Executes what steers a wave.
pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, flow: FlowOp) {
    let next = machine.code_base.wrapping_add(decoded.next.into());
    match flow {
        FlowOp::Nothing => {}
        FlowOp::Branch(when, by) => {
            let taken = match when {
                BranchCondition::Always => true,
                BranchCondition::Never => false,
                BranchCondition::Is(reg, value) => {
                    if wave.unknown_sreg(reg) != 0 {
                        machine.fault(wave, FaultKind::Control(reg, wave.why(reg)));
                    }
                    (wave.sreg(reg) != 0) == value
                }
            };
            if taken {
                relative(machine, wave, decoded, by);
            }
        }
        FlowOp::Jump { to, save } => {
            let (address, unknown) = wave.scalar_value(to, Type::B64);
            if let (From::Scalar(reg), true) = (to, unknown != 0) {
                machine.fault(wave, FaultKind::Control(reg, wave.why(reg)));
            }
            if let Some(save) = save {
                wave.set_value(save, 2, next, 0, Missing::Undefined);
            }
            jump(machine, wave, address);
        }
        FlowOp::Call { by, save } => {
            wave.set_value(save, 2, next, 0, Missing::Undefined);
            relative(machine, wave, decoded, by);
        }
        FlowOp::GetPc(dst) => wave.set_value(dst, 2, next, 0, Missing::Undefined),
        FlowOp::End => wave.ended = true,
        FlowOp::Barrier => wave.at_barrier = true,
        // A wave that signals and then waits does what a barrier does; who comes first is the first wave.
        FlowOp::Signal { first } => {
            if first {
                wave.scc = wave.id == 0;
                if let Some(state) = &mut wave.unknown {
                    state.scc = 0;
                }
            }
        }
        FlowOp::BarrierState(dst) => wave.set(dst, 0),
        FlowOp::RoundMode(mode) => wave.mode = wave.mode & !15 | mode,
        FlowOp::DenormMode(mode) => wave.mode = wave.mode & !0xf0 | mode << 4,
        FlowOp::GprIdxOn(..) | FlowOp::GprIdxMode(_) | FlowOp::GprIdxIdx(_) | FlowOp::GprIdxOff => {
            index_mode(wave, flow);
        }
        FlowOp::GetReg(dst, what) => {
            let value = hwreg::get(machine, wave, what);
            wave.set(dst, value);
        }
        FlowOp::SetReg(what, value) => {
            let (value, unknown) = wave.scalar_value(value, Type::B32);
            if let (From::Scalar(reg), true) = (value_source(&decoded.inst), unknown != 0) {
                machine.fault(wave, FaultKind::Control(reg, wave.why(reg)));
            }
            hwreg::set(machine, wave, what, value as u32);
        }
        FlowOp::SubvectorBegin(reg, by) => subvector_begin(machine, wave, decoded, reg, by),
        FlowOp::SubvectorEnd(reg, by) => subvector_end(machine, wave, decoded, reg, by),
        FlowOp::Trap => {
            machine.fault(wave, FaultKind::Undefined("a trap: there is no trap handler"));
            wave.ended = true;
        }
        FlowOp::Movrels { .. } | FlowOp::Movreld { .. } | FlowOp::Movrelsd2 { .. } => {
            move_relative(machine, wave, flow);
        }
        FlowOp::Fork { mask, to } => fork(machine, wave, decoded, mask, to),
        FlowOp::Join(saved) => join(machine, wave, saved),
        FlowOp::Message(code) => export::message(machine, wave, code),
        // The counters and names of a machine that is not there.
        FlowOp::Answer { dst, dwords, time } => {
            // Deterministic, and never the same twice.
            let answer = if time { wave.steps } else { 0 };
            wave.set_value(dst, dwords, answer, 0, Missing::Undefined);
        }
    }
}

/// Indexed access of vector registers: on, off, and by which index.
fn index_mode(wave: &mut Wave, flow: FlowOp) {
    match flow {
        FlowOp::GprIdxOn(index, mode) => {
            let (index, _) = wave.scalar_value(index, Type::B32);
            wave.set(Reg::M0, wave.sreg(Reg::M0) & !0xf0ff | index as u32 & 0xff | mode << 12);
            wave.gpr_idx = mode;
            wave.mode |= 1 << 27;
        }
        FlowOp::GprIdxMode(mode) => {
            wave.set(Reg::M0, wave.sreg(Reg::M0) & !0xf000 | mode << 12);
            wave.gpr_idx = mode;
        }
        FlowOp::GprIdxIdx(index) => {
            let (index, _) = wave.scalar_value(index, Type::B32);
            wave.set(Reg::M0, wave.sreg(Reg::M0) & !0xff | index as u32 & 0xff);
        }
        FlowOp::GprIdxOff => {
            wave.gpr_idx = 0;
            wave.mode &= !(1 << 27);
        }
        _ => {}
    }
}

/// Moves between scalar registers whose numbers `m0` is added to.
fn move_relative(machine: &mut Machine<'_>, wave: &mut Wave, flow: FlowOp) {
    match flow {
        FlowOp::Movrels { dst, src, dwords } => {
            let from = Reg(src.0.wrapping_add(wave.sreg(Reg::M0) as u16 & 0x7f));
            if from.0 + u16::from(dwords) > 108 {
                return machine.fault(wave, FaultKind::NoRegister);
            }
            let (value, unknown) = (wave.value(from, dwords), wave.unknown_value(from, dwords));
            wave.set_value(dst, dwords, value, unknown, wave.why(from));
        }
        FlowOp::Movreld { dst, src, dwords } => {
            let to = Reg(dst.0.wrapping_add(wave.sreg(Reg::M0) as u16 & 0x7f));
            if to.0 + u16::from(dwords) > 108 {
                return machine.fault(wave, FaultKind::NoRegister);
            }
            let ty = if dwords > 1 { Type::B64 } else { Type::B32 };
            let (value, unknown) = wave.scalar_value(src, ty);
            wave.set_value(to, dwords, value, unknown, Missing::Undefined);
        }
        FlowOp::Movrelsd2 { dst, src } => {
            let m0 = wave.sreg(Reg::M0);
            let from = Reg(src.0.wrapping_add(m0 as u16 & 0x7f));
            let to = Reg(dst.0.wrapping_add((m0 >> 16) as u16 & 0x7f));
            if from.0.max(to.0) > 107 {
                return machine.fault(wave, FaultKind::NoRegister);
            }
            wave.set_unknown(to, wave.sreg(from), wave.unknown_sreg(from), wave.why(from));
        }
        _ => {}
    }
}

/// Both ways of a branch: with lanes on both the one with fewer is taken first, and the other is put on the stack
/// in scalar registers, four for each entry: the lanes, then where they go on. MODE has the stack's pointer.
fn fork(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, mask: From, to: ForkTarget) {
    let next = machine.code_base.wrapping_add(decoded.next.into());
    let mut given = |wave: &Wave, from: From| {
        let (value, unknown) = wave.scalar_value(from, Type::B64);
        if let (From::Scalar(reg), true) = (from, unknown != 0) {
            machine.fault(wave, FaultKind::Control(reg, wave.why(reg)));
        }
        value
    };
    let mask = given(wave, mask);
    let target = match to {
        ForkTarget::To(from) => given(wave, from),
        ForkTarget::By(by) => next.wrapping_add((i64::from(by) * 4) as u64),
    };
    let exec = wave.pair(Reg::EXEC);
    let (pass, fail) = (mask & exec, !mask & exec);
    if pass == exec {
        return jump(machine, wave, target);
    }
    if fail == exec {
        return;
    }
    let (now, rest, later) =
        if fail.count_ones() < pass.count_ones() { (fail, pass, target) } else { (pass, fail, next) };
    let pointer = wave.mode >> CSP;
    let entry = Reg(pointer as u16 * 4);
    wave.set_value(entry, 2, rest, 0, Missing::Undefined);
    wave.set_value(Reg(entry.0 + 2), 2, later, 0, Missing::Undefined);
    if pointer == 7 {
        return machine.fault(wave, FaultKind::Undefined("a stack of branches with more than seven entries"));
    }
    wave.mode += 1 << CSP;
    wave.set_value(Reg::EXEC, 2, now, 0, Missing::Undefined);
    if now == pass {
        jump(machine, wave, target);
    }
}

/// Goes on with what a fork left for later, or behind the join if that has been done.
fn join(machine: &mut Machine<'_>, wave: &mut Wave, saved: From) {
    let from = saved;
    let (saved, unknown) = wave.scalar_value(from, Type::B32);
    if let (From::Scalar(reg), true) = (from, unknown != 0) {
        machine.fault(wave, FaultKind::Control(reg, wave.why(reg)));
    }
    let pointer = wave.mode >> CSP;
    if saved == u64::from(pointer) {
        return;
    }
    if pointer == 0 {
        return machine.fault(wave, FaultKind::Undefined("a join with an empty stack of branches"));
    }
    wave.mode -= 1 << CSP;
    let entry = Reg((pointer as u16 - 1) * 4);
    for reg in [entry, Reg(entry.0 + 2)] {
        if wave.unknown_value(reg, 2) != 0 {
            machine.fault(wave, FaultKind::Control(reg, wave.why(reg)));
        }
    }
    wave.set_value(Reg::EXEC, 2, wave.pair(entry), 0, Missing::Undefined);
    jump(machine, wave, wave.pair(Reg(entry.0 + 2)));
}

/// With both halves of a wave of 64 lanes enabled, first the lower one is run alone.
fn subvector_begin(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, reg: Reg, by: i32) {
    let (low, high) = (wave.sreg(Reg::EXEC), wave.sreg(Reg::EXEC_HI));
    match (low, high) {
        (0, 0) => relative(machine, wave, decoded, by),
        (0, _) => wave.set(reg, low),
        _ => {
            wave.set(reg, high);
            wave.set(Reg::EXEC_HI, 0);
        }
    }
}

/// After the lower half the upper one, then both.
fn subvector_end(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, reg: Reg, by: i32) {
    let (low, high, saved) = (wave.sreg(Reg::EXEC), wave.sreg(Reg::EXEC_HI), wave.sreg(reg));
    if high != 0 {
        wave.set(Reg::EXEC, saved);
    } else if saved == 0 {
        // The upper half had no lanes.
    } else {
        wave.set(Reg::EXEC_HI, saved);
        wave.set(reg, low);
        wave.set(Reg::EXEC, 0);
        relative(machine, wave, decoded, by);
    }
}

fn value_source(inst: &Inst) -> From {
    let found = inst.written().find_map(|(slot, operand)| match operand {
        Operand::Reg { reg, .. } if slot.access.reads() => Some(From::Scalar(reg)),
        _ => None,
    });
    found.unwrap_or(From::Const(0))
}
