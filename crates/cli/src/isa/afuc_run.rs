//! `unwedge afuc run`: the emulated command processor, by commands that are typed or come from a script.

use crate::afuc_names::DbNames;
use crate::args::{AFUC_KEYS, AfucRun, Global, ProcessorArg};
use crate::database;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Output;
use std::io::{self, BufRead, IsTerminal, Write};
use unwedge_isa::afuc::emu::{self, Place, Processor, Stop, report};
use unwedge_isa::afuc::{Blob, Emulator, Firmware, Names, Space, disasm};

/// Instructions that `run` executes unless it is told a number.
const RUN_STEPS: u64 = 1_000_000;
/// Dwords that `dump` shows at most.
const DUMP_MOST: u64 = 1 << 16;

/// Runs the command. In a script a command that makes no sense ends it with a failure.
pub fn run(args: &AfucRun, global: &Global) -> Result<Outcome, Failure> {
    let input = Input::open(&args.file, global.max_size)?;
    let db = database::load(global)?;
    let names = DbNames::new(&db);
    let blob = Blob::new(&input.bytes);
    let unusable = |what: &str| Failure::Unusable(format!("{}: {what}", input.name));
    let firmware = args
        .gpuver
        .or(blob.firmware())
        .ok_or_else(|| unusable("no known firmware: name its id with --gpuver"))?;
    let processor = match args.processor {
        ProcessorArg::Sqe => Processor::Sqe,
        ProcessorArg::Bv => Processor::Bv,
        ProcessorArg::Lpac => Processor::Lpac,
    };
    let sections = disasm::sections(&blob.words, firmware, &names);
    let section = sections
        .iter()
        .find(|section| section.processor == processor)
        .ok_or_else(|| unusable("the firmware has no part for that processor"))?;
    let code = blob.words.get(section.start..).unwrap_or_default();
    let mut session = Session {
        emulator: Emulator::new(firmware, code, processor, &names),
        section,
        words: &blob.words,
        firmware,
        names: &names,
    };
    let mut out = Output::open(global, false);
    let script = match &args.script {
        Some(file) => Some(super::source(file, global)?.1),
        None if !args.commands.is_empty() => Some(args.commands.join("\n")),
        None => None,
    };
    let result = match script {
        Some(script) => session.script(&mut script.lines().map(|line| Ok(line.to_owned())), &mut out),
        None if io::stdin().is_terminal() => session.interactive(&mut out),
        None => session.script(&mut io::stdin().lock().lines(), &mut out),
    };
    out.finish()?;
    result.map(|()| Outcome::of(&input.name, &input.diagnostics))
}

struct Session<'s> {
    emulator: Emulator<'s>,
    section: &'s disasm::Section,
    words: &'s [u32],
    firmware: Firmware,
    names: &'s dyn Names,
}

/// Why a command was not done.
enum Trouble {
    Message(String),
    Output(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(e: io::Error) -> Trouble {
        Trouble::Output(e)
    }
}

impl From<emu::Fault> for Trouble {
    fn from(fault: emu::Fault) -> Trouble {
        Trouble::Message(fault.to_string())
    }
}

fn expected<T>(what: &str) -> Result<T, Trouble> {
    Err(Trouble::Message(format!("expected {what}: `help` lists the commands")))
}

impl Session<'_> {
    fn script(
        &mut self,
        lines: &mut dyn Iterator<Item = io::Result<String>>,
        out: &mut Output,
    ) -> Result<(), Failure> {
        for (number, line) in lines.enumerate() {
            let line = line.map_err(|e| Failure::Unusable(format!("the script: {e}")))?;
            match self.command(&line, out) {
                Ok(true) => {}
                // Writing is over; `finish` says why.
                Ok(false) | Err(Trouble::Output(_)) => return Ok(()),
                Err(Trouble::Message(message)) => {
                    return Err(Failure::Unusable(format!("command {}: `{line}`: {message}", number + 1)));
                }
            }
        }
        Ok(())
    }

    fn interactive(&mut self, out: &mut Output) -> Result<(), Failure> {
        let mut lines = io::stdin().lock().lines();
        loop {
            let prompted = self.here(0, out).and_then(|()| Ok(write!(out, "(afuc) ")?)).is_ok();
            let line = match lines.next() {
                Some(Ok(line)) if prompted && out.flush().is_ok() => line,
                _ => return Ok(()),
            };
            match self.command(&line, out) {
                Ok(true) => {}
                Ok(false) | Err(Trouble::Output(_)) => return Ok(()),
                Err(Trouble::Message(message)) => {
                    let _ = writeln!(out, "{message}");
                }
            }
        }
    }

    /// Does a command; `false` to stop.
    fn command(&mut self, line: &str, out: &mut Output) -> Result<bool, Trouble> {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["s" | "step", count @ ..] => {
                let count = optional(count)?.unwrap_or(1);
                self.go(count, out)?;
            }
            ["r" | "run", count @ ..] => {
                let count = optional(count)?.unwrap_or(RUN_STEPS);
                self.go(count, out)?;
            }
            ["b" | "break"] => {
                for pc in self.emulator.breakpoints() {
                    writeln!(out, "{pc:#06x}")?;
                }
            }
            ["b" | "break", pc] => {
                let Some(pc) = number(pc).and_then(|pc| u32::try_from(pc).ok()) else {
                    return expected("a PC");
                };
                let had = self.emulator.remove_breakpoint(pc);
                if !had && !self.emulator.add_breakpoint(pc) {
                    return expected("a PC inside the firmware");
                }
                writeln!(out, "{} {pc:#06x}", if had { "no breakpoint at" } else { "breakpoint at" })?;
            }
            ["d" | "dump"] => self.dump(out)?,
            ["d" | "dump", address, count @ ..] => {
                let Some(address) = number(address.trim_start_matches('*')) else {
                    return expected("an address");
                };
                let count = optional(count)?.unwrap_or(16).min(DUMP_MOST);
                for i in 0..count {
                    let place = Place::Memory(address.wrapping_add(4 * i));
                    self.print(place, out)?;
                }
            }
            ["p" | "print"] => self.here(4, out)?,
            ["p" | "print", place] => {
                let place = self.place(place)?;
                self.print(place, out)?;
            }
            ["w" | "write", place, value] => {
                let place = self.place(place)?;
                let Some(value) = number(value).and_then(|v| u32::try_from(v).ok()) else {
                    return expected("a value of 32 bits");
                };
                self.write(place, value)?;
            }
            ["packet", name, payload @ ..] => {
                let payload: Option<Vec<u32>> =
                    payload.iter().map(|word| number(word).and_then(|w| u32::try_from(w).ok())).collect();
                let Some(payload) = payload else { return expected("words of 32 bits") };
                let opcode = number(name).and_then(|n| u8::try_from(n).ok()).or(self.names.opcode(name));
                let register = || self.names.offset(self.firmware, Space::Gpu, name);
                let words = match (opcode.filter(|&opcode| opcode < 0x80), register()) {
                    (Some(opcode), _) => emu::packet7(opcode, &payload),
                    (None, Some(register)) => emu::packet4(register, &payload),
                    (None, None) => return expected("a packet's or a register's name"),
                };
                self.emulator.push(&words);
            }
            ["h" | "help", ..] => writeln!(out, "{AFUC_KEYS}")?,
            ["q" | "quit", ..] => return Ok(false),
            _ => return expected("a command"),
        }
        Ok(true)
    }

    /// Executes, then shows what changed and why it stopped.
    fn go(&mut self, steps: u64, out: &mut Output) -> Result<(), Trouble> {
        let stop = self.emulator.run(steps);
        let (log, dropped) = self.emulator.take_log();
        for (place, value) in report::changes(&log) {
            writeln!(out, "{}", report::place_line(place, value, self.firmware, self.names))?;
        }
        if dropped > 0 {
            writeln!(out, "… and {dropped} more accesses")?;
        }
        if stop != Stop::Steps {
            writeln!(out, "{stop}")?;
        }
        Ok(())
    }

    fn here(&self, context: u32, out: &mut Output) -> Result<(), Trouble> {
        let pc = self.emulator.pc();
        for line in disasm::around(self.words, self.section, self.firmware, self.names, pc, context) {
            for handler in &line.handlers {
                writeln!(out, "      {handler}:")?;
            }
            let mark = if line.offset == pc { '>' } else { ' ' };
            writeln!(out, "{mark} {:04x}  {:08x}  {}", line.offset, line.word, line.text)?;
        }
        Ok(())
    }

    fn dump(&self, out: &mut Output) -> Result<(), Trouble> {
        writeln!(out, "pc {:#06x} after {} instructions", self.emulator.pc(), self.emulator.steps())?;
        for register in 0..32 {
            let name = report::place_name(Place::Gpr(register), self.firmware, self.names);
            let end = if register % 4 == 3 { "\n" } else { "  " };
            write!(out, "{name:>9} {:08x}{end}", self.emulator.gpr(register))?;
        }
        for pc in self.emulator.call_stack() {
            writeln!(out, "returns to {pc:#06x}")?;
        }
        Ok(())
    }

    fn place(&self, text: &str) -> Result<Place, Trouble> {
        let named = |space, name: &str| {
            let offset = self.names.offset(self.firmware, space, name);
            offset.or(number(name).and_then(|n| u32::try_from(n).ok()))
        };
        let place = if text.starts_with('$') {
            (0..32)
                .map(Place::Gpr)
                .find(|&place| report::place_name(place, self.firmware, self.names) == text)
                .or_else(|| u32::from_str_radix(&text[1..], 16).ok().filter(|&n| n < 32).map(Place::Gpr))
        } else if let Some(name) = text.strip_prefix('@') {
            named(Space::Control, name).map(Place::Control)
        } else if let Some(name) = text.strip_prefix('%') {
            named(Space::Sqe, name).map(Place::Sqe)
        } else if let Some(address) = text.strip_prefix('*') {
            number(address).map(Place::Memory)
        } else {
            named(Space::Gpu, text).map(Place::Gpu)
        };
        place.map_or_else(|| expected("a register or an address"), Ok)
    }

    fn print(&self, place: Place, out: &mut Output) -> Result<(), Trouble> {
        let value = match place {
            Place::Gpr(register) => Some(self.emulator.gpr(register)),
            Place::Gpu(register) => Some(self.emulator.gpu(register)),
            Place::Control(offset) => self.emulator.control(offset),
            Place::Sqe(offset) => self.emulator.sqe(offset),
            Place::Pipe(offset) => self.emulator.pipe(offset),
            Place::Memory(address) => self.emulator.memory().read(address)?,
            Place::Table(entry) => self.emulator.packet_table().get(entry as usize).copied(),
        };
        writeln!(out, "{}", report::place_line(place, value, self.firmware, self.names))?;
        Ok(())
    }

    fn write(&mut self, place: Place, value: u32) -> Result<(), Trouble> {
        match place {
            Place::Gpr(register) => self.emulator.set_gpr(register, value),
            Place::Gpu(register) => self.emulator.write_gpu(register, value),
            Place::Control(offset) => self.emulator.write_control(offset, value)?,
            Place::Sqe(offset) => self.emulator.write_sqe(offset, value)?,
            Place::Memory(address) => self.emulator.memory_mut().write(address, value)?,
            Place::Pipe(_) | Place::Table(_) => return expected("a place that can be written"),
        }
        Ok(())
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// At most one number.
fn optional(words: &[&str]) -> Result<Option<u64>, Trouble> {
    match words {
        [] => Ok(None),
        [word] => number(word).map_or_else(|| expected("a number"), |n| Ok(Some(n))),
        _ => expected("one number"),
    }
}
