//! What a processor that stands still waits for, read from the instructions around its pc.
//!
//! A guess from the code alone: it knows no register's contents. The pc a dump holds is that of the instruction that
//! stalls or of the one behind it; both are looked at.

use super::disasm::Section;
use super::insn::{Field, Insn, Op};
use super::text::{ADDR, DATA, NO_INCREMENT, USRADDR};
use super::{Firmware, Names, Space};
use std::fmt::Write as _;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
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

impl Wait {
    /// It in words: `spins on control register @THREAD_SYNC`.
    pub fn describe(self, firmware: Firmware, names: &dyn Names) -> String {
        let mut out = String::new();
        let mut named = |what: &str, space, sigil, offset: u32| {
            let _ = match names.register(firmware, space, offset) {
                Some(name) => write!(out, "{what} {sigil}{name}"),
                None => write!(out, "{what} 0x{offset:03x}"),
            };
        };
        match self {
            Wait::Packet => out.push_str("waits for the next packet"),
            Wait::PacketData => out.push_str("waits for the rest of the packet"),
            Wait::Memory => out.push_str("waits for a memory read"),
            Wait::Registers => out.push_str("waits for a register read"),
            Wait::Control(offset) => named("spins on control register", Space::Control, '@', offset),
            Wait::Polling => out.push_str("spins on memory"),
            Wait::Pipe(offset) => named("waits for pipe register", Space::Pipe, '|', offset),
            Wait::Writes => out.push_str("waits for room for a register write"),
        }
        out
    }
}

/// Instructions a loop that only waits has at most.
const SPIN: u32 = 12;

/// What the processor waits for at an offset of a section's code; `None` when nothing there can wait.
pub fn waits_for(words: &[u32], section: &Section, firmware: Firmware, offset: u32) -> Option<Wait> {
    let code = section.code(words);
    let at = |offset: u32| {
        let word = *code.get(usize::try_from(offset).ok()?)?;
        Insn::decode(word, firmware.generation()).map(|(insn, _)| insn)
    };
    at(offset)?;
    spin(&at, offset).or_else(|| stall(&at, offset)).or_else(|| stall(&at, offset.checked_sub(1)?))
}

/// What the smallest loop around an offset looks at.
fn spin(at: &impl Fn(u32) -> Option<Insn>, offset: u32) -> Option<Wait> {
    let ends = offset.saturating_sub(1)..=offset.saturating_add(SPIN);
    let loops = ends.filter_map(|end| {
        let branch = at(end).filter(|insn| insn.has(Field::Branch))?;
        let start = end.checked_add_signed(branch.get(Field::Branch).cast_signed())?;
        // The delay slot is a part of the loop.
        let around = start <= offset && offset <= end.saturating_add(1);
        (around && start <= end && end - start < SPIN).then_some(start..=end.saturating_add(1))
    });
    let tightest = loops.min_by_key(|range| range.end() - range.start())?;
    tightest.filter_map(at).find_map(|insn| match insn.op {
        Op::Cread => Some(Wait::Control(insn.get(Field::ControlOffset))),
        Op::Load => Some(Wait::Polling),
        _ if reads(&insn, USRADDR) => Some(Wait::Registers),
        _ if reads(&insn, ADDR) => Some(Wait::Polling),
        _ => None,
    })
}

/// What the instruction at an offset can stall on.
fn stall(at: &impl Fn(u32) -> Option<Insn>, offset: u32) -> Option<Wait> {
    let insn = at(offset)?;
    let behind_waitin = offset.checked_sub(1).and_then(at).is_some_and(|before| before.op == Op::Waitin);
    let pipe = (insn.get(Field::RegImm) << insn.get(Field::Shift).min(31)) & !NO_INCREMENT;
    match insn.op {
        Op::Waitin => Some(Wait::Packet),
        _ if reads(&insn, DATA) && behind_waitin => Some(Wait::Packet),
        _ if reads(&insn, ADDR) => Some(Wait::Memory),
        _ if reads(&insn, USRADDR) => Some(Wait::Registers),
        _ if reads(&insn, DATA) => Some(Wait::PacketData),
        Op::MovImm if insn.get(Field::Dst) == ADDR && pipe >> 24 != 0 => Some(Wait::Pipe(pipe >> 24)),
        _ if insn.get(Field::Dst) == DATA => Some(Wait::Writes),
        _ => None,
    }
}

fn reads(insn: &Insn, register: u32) -> bool {
    [Field::Src1, Field::Src2, Field::Base].iter().any(|&field| insn.get(field) == register)
}
