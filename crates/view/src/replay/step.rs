//! A replay that stops before packets, draws or dispatches, and asks what to do.
//!
//! Never: a terminal; commands are lines that the caller reads from wherever they come.

use super::trace::{TracedPacket, packet_name, place};
use crate::asm::number;
use crate::json::Hex;
use std::io::{BufRead, Write};
use unwedge_hw::Gpu;
use unwedge_sim::Load;
use unwedge_sim::adreno::{AdrenoMachine, Onward, PacketChanges, PacketOutcome, PacketWatch, WatchedPacket};
use unwedge_stream::adreno::AdrenoOp;

/// Bytes of memory that one command shows.
const SHOWN: u64 = 4096;
/// Bytes of a command that are read; a longer one is none.
const LONGEST: u64 = 256;
/// What can be asked.
const HELP: &str = "  Enter  the next one\n  c      go on to the end\n  r REG  a register, by name or offset\n  \
                    x A L  memory: L bytes at address A\n  h      these commands\n  q      leave\n";

/// Before what a replay stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepUnit {
    /// Every packet of the capture's streams.
    Packet,
    /// Draws and blits.
    Draw,
    /// Dispatches of compute shaders.
    Dispatch,
}

impl StepUnit {
    fn stops_at(self, packet: &WatchedPacket) -> bool {
        // What the kernel writes into its ring is not of the capture.
        if !packet.taken || packet.level == 0 {
            return false;
        }
        let is_dispatch = packet.op.is_some_and(AdrenoOp::is_dispatch);
        match self {
            StepUnit::Packet => true,
            StepUnit::Draw => !is_dispatch && packet.op.is_some_and(AdrenoOp::is_work),
            StepUnit::Dispatch => is_dispatch,
        }
    }
}

/// Somebody who steps through a replay.
pub struct Stepper<'s> {
    unit: StepUnit,
    commands: &'s mut dyn BufRead,
    out: &'s mut dyn Write,
    /// Nothing more is asked.
    runs: bool,
    /// The packet in work was stopped at.
    shown: bool,
}

impl<'s> Stepper<'s> {
    /// Reads commands, one a line, until they end; then the replay goes on to its end. A failed write is for the owner of
    /// `out` to remember.
    pub fn new(unit: StepUnit, commands: &'s mut dyn BufRead, out: &'s mut dyn Write) -> Stepper<'s> {
        Stepper { unit, commands, out, runs: false, shown: false }
    }

    fn command(&mut self) -> Option<String> {
        let _ = self.out.write_all(b"> ").and_then(|()| self.out.flush());
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut *self.commands, LONGEST).read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim().to_owned()),
        }
    }

    fn register(&mut self, gpu: Gpu<'_>, machine: &AdrenoMachine<'_>, packet: &WatchedPacket, name: &str) {
        let offset = gpu.reg_offset(name).or_else(|| u32::try_from(number(name)?).ok());
        let _ = match offset {
            Some(reg) => {
                let value = Hex::dword(machine.read_register(packet.thread, reg));
                let name = gpu.reg(reg).map_or_else(String::new, |reg| format!(" {}", reg.name()));
                writeln!(self.out, "  {}{name} = {value}", Hex::offset(reg))
            }
            None => writeln!(self.out, "  there is no register {name}"),
        };
    }

    fn memory(&mut self, machine: &AdrenoMachine<'_>, iova: u64, size: u64) {
        let dwords = size.min(SHOWN).div_ceil(4);
        for row in (0..dwords).step_by(4) {
            let mut line = format!("  {}", Hex::wide(iova.wrapping_add(4 * row)));
            for n in row..dwords.min(row + 4) {
                let load = iova.checked_add(4 * n).map(|at| machine.space.memory.load(at, 4));
                line += &match load {
                    Some(Load::Known(word)) => format!(" {word:08x}"),
                    Some(Load::Unknown) => " unknown ".to_owned(),
                    Some(Load::Unmapped) | None => " unmapped".to_owned(),
                };
            }
            let _ = writeln!(self.out, "{line}");
        }
        if size > SHOWN {
            let _ = writeln!(self.out, "  no more than {SHOWN} bytes are shown");
        }
    }

    fn ask(&mut self, gpu: Gpu<'_>, machine: &AdrenoMachine<'_>, packet: &WatchedPacket) -> Onward {
        loop {
            let Some(command) = self.command() else {
                self.runs = true;
                let _ = writeln!(self.out);
                return Onward::Go;
            };
            let words: Vec<&str> = command.split_whitespace().collect();
            match words[..] {
                [] => return Onward::Go,
                ["c"] => {
                    self.runs = true;
                    return Onward::Go;
                }
                ["q"] => return Onward::Leave,
                ["r", name] => self.register(gpu, machine, packet, name),
                ["x", iova, size] if number(iova).is_some() && number(size).is_some() => {
                    self.memory(machine, number(iova).unwrap_or(0), number(size).unwrap_or(0));
                }
                ["h" | "help" | "?"] => {
                    let _ = self.out.write_all(HELP.as_bytes());
                }
                ["r" | "x", ..] => {
                    let _ = writeln!(
                        self.out,
                        "  r takes a register, x an address and a length: `h` lists commands"
                    );
                }
                _ => {
                    let _ = writeln!(self.out, "  there is no command {command}: `h` lists commands");
                }
            }
        }
    }
}

/// A stepper, at one submit.
pub(super) struct SubmitSteps<'a, 's, 'd> {
    pub(super) stepper: &'a mut Stepper<'s>,
    pub(super) gpu: Gpu<'d>,
    pub(super) submit: u32,
}

impl PacketWatch for SubmitSteps<'_, '_, '_> {
    fn wants_changes(&self) -> bool {
        self.stepper.shown
    }

    fn before(&mut self, machine: &AdrenoMachine<'_>, packet: &WatchedPacket) -> Onward {
        let stepper = &mut *self.stepper;
        stepper.shown = !stepper.runs && stepper.unit.stops_at(packet);
        if !stepper.shown {
            return Onward::Go;
        }
        let name = packet_name(self.gpu, packet).unwrap_or("not a packet");
        let _ = writeln!(stepper.out, "  {:>4} {}  {name}", self.submit, place(packet));
        stepper.ask(self.gpu, machine, packet)
    }

    fn after(
        &mut self,
        machine: &AdrenoMachine<'_>,
        packet: &WatchedPacket,
        outcome: PacketOutcome<'_>,
        changes: &PacketChanges,
    ) {
        if std::mem::take(&mut self.stepper.shown) {
            let traced = TracedPacket::new(self.gpu, self.submit, machine, packet, outcome, changes);
            let _ = traced.text(self.stepper.out);
        }
    }
}
