//! What a processor that stands still waits for, read from the instructions around its pc.
//!
//! A guess from the code alone: it knows no register's contents. The pc a dump holds is that of the instruction that
//! stalls or of the one behind it; both are looked at.

use super::disasm::FirmwareSection;
use super::insn::{AfucOp, Insn, InsnField};
use super::text::{ADDR, DATA, NO_INCREMENT, USRADDR};
use super::{AfucNames, Firmware, SqeSpace};
use std::fmt::Write as _;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqeWait {
    /// The next packet: the processor is idle, or starved.
    Packet,
    /// More words of the packet it works on.
    PacketData,
    /// Memory it has asked for through `$memdata`.
    Memory,
    /// Registers it has asked for through `$regdata`.
    Registers,
    /// A control register to change: it spins on it.
    Control(u32),
    /// Memory to change: it spins on it.
    Polling,
    /// A pipe register that takes its time, such as a wait for idle.
    Pipe(u32),
    /// Room in the queue of register writes.
    Writes,
}

impl SqeWait {
    /// It in words: `spins on control register @THREAD_SYNC`.
    pub fn describe(self, firmware: Firmware, names: &dyn AfucNames) -> String {
        let mut out = String::new();
        let mut named = |what: &str, space, sigil, offset: u32| {
            let _ = match names.register(firmware, space, offset) {
                Some(name) => write!(out, "{what} {sigil}{name}"),
                None => write!(out, "{what} 0x{offset:03x}"),
            };
        };
        match self {
            SqeWait::Packet => out.push_str("waits for the next packet"),
            SqeWait::PacketData => out.push_str("waits for the rest of the packet"),
            SqeWait::Memory => out.push_str("waits for a memory read"),
            SqeWait::Registers => out.push_str("waits for a register read"),
            SqeWait::Control(offset) => named("spins on control register", SqeSpace::Control, '@', offset),
            SqeWait::Polling => out.push_str("spins on memory"),
            SqeWait::Pipe(offset) => named("waits for pipe register", SqeSpace::Pipe, '|', offset),
            SqeWait::Writes => out.push_str("waits for room for a register write"),
        }
        out
    }
}

/// Instructions a loop that only waits has at most.
const SPIN: u32 = 12;

/// What the processor waits for at an offset of a section's code; `None` when nothing there can wait.
pub fn waits_for(
    words: &[u32],
    section: &FirmwareSection,
    firmware: Firmware,
    offset: u32,
) -> Option<SqeWait> {
    let code = section.code(words);
    let at = |offset: u32| {
        let word = *code.get(usize::try_from(offset).ok()?)?;
        Insn::decode(word, firmware.generation()).map(|(insn, _)| insn)
    };
    at(offset)?;
    spin(&at, offset).or_else(|| stall(&at, offset)).or_else(|| stall(&at, offset.checked_sub(1)?))
}

/// What the smallest loop around an offset looks at.
fn spin(at: &impl Fn(u32) -> Option<Insn>, offset: u32) -> Option<SqeWait> {
    let ends = offset.saturating_sub(1)..=offset.saturating_add(SPIN);
    let loops = ends.filter_map(|end| {
        let branch = at(end).filter(|insn| insn.has(InsnField::Branch))?;
        let start = end.checked_add_signed(branch.get(InsnField::Branch).cast_signed())?;
        // The delay slot is a part of the loop.
        let around = start <= offset && offset <= end.saturating_add(1);
        (around && start <= end && end - start < SPIN).then_some(start..=end.saturating_add(1))
    });
    let tightest = loops.min_by_key(|range| range.end() - range.start())?;
    tightest.filter_map(at).find_map(|insn| match insn.op {
        AfucOp::Cread => Some(SqeWait::Control(insn.get(InsnField::ControlOffset))),
        AfucOp::Load => Some(SqeWait::Polling),
        _ if reads(&insn, USRADDR) => Some(SqeWait::Registers),
        _ if reads(&insn, ADDR) => Some(SqeWait::Polling),
        _ => None,
    })
}

/// What the instruction at an offset can stall on.
fn stall(at: &impl Fn(u32) -> Option<Insn>, offset: u32) -> Option<SqeWait> {
    let insn = at(offset)?;
    let behind_waitin = offset.checked_sub(1).and_then(at).is_some_and(|before| before.op == AfucOp::Waitin);
    let pipe = (insn.get(InsnField::RegImm) << insn.get(InsnField::Shift).min(31)) & !NO_INCREMENT;
    match insn.op {
        AfucOp::Waitin => Some(SqeWait::Packet),
        _ if reads(&insn, DATA) && behind_waitin => Some(SqeWait::Packet),
        _ if reads(&insn, ADDR) => Some(SqeWait::Memory),
        _ if reads(&insn, USRADDR) => Some(SqeWait::Registers),
        _ if reads(&insn, DATA) => Some(SqeWait::PacketData),
        AfucOp::MovImm if insn.get(InsnField::Dst) == ADDR && pipe >> 24 != 0 => {
            Some(SqeWait::Pipe(pipe >> 24))
        }
        _ if insn.get(InsnField::Dst) == DATA => Some(SqeWait::Writes),
        _ => None,
    }
}

fn reads(insn: &Insn, register: u32) -> bool {
    [InsnField::Src1, InsnField::Src2, InsnField::Base].iter().any(|&field| insn.get(field) == register)
}
