//! The emulator driven by lines of text: the keys of Mesa's emulator mode, with what they ask for on the same line.
//!
//! It reads and writes strings only; whoever has a terminal or a script passes the lines.

use super::sqe_log::{changes, line};
use std::fmt::Write as _;
use unwedge_base::Generation;
use unwedge_isa::afuc::{SqeSpace, asm, text};
use unwedge_sim::adreno::sqe::{SqeEmulator, SqeFault, SqeLocation, SqeStop};
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// What `h` prints.
pub const HELP: &str = "\
s [N]                 step N instructions (1), showing what each changes
r [N]                 run to the end of the packet, a breakpoint or a fault, at most N instructions (1000000)
b [OFFSET]            set or take back a breakpoint; alone: list them
d r                   dump the general registers
d s                   dump the SQE's registers and the call stack
d c|g|p REG           dump a control, GPU or pipe register, by name or offset
d m ADDRESS [N]       dump N dwords of memory (1)
d t                   dump the packet table
w r|s|c|g REG VALUE   write a general, SQE, control or GPU register
w m ADDRESS VALUE...  write dwords of memory
p NAME VALUE...       queue a packet, or a write to registers, with its payload
p @ADDRESS DWORDS     queue packets that are in memory
i                     preempt
h                     this help
q                     quit
An empty line repeats the last step or run. Numbers: 10, 0x10.
";

const RUN_STEPS: u64 = 1_000_000;
const MAX_DUMP: u64 = 4096;
const MAX_STEPS_SHOWN: u64 = 10_000;

/// Why a command is not done.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("no command `{0}`: h for help")]
    Command(String),
    #[error("expected {0}")]
    Usage(&'static str),
    #[error("`{0}` is not a number")]
    Number(String),
    #[error("{0:#x} is over 32 bits")]
    TooLarge(u64),
    #[error("no register `{0}`")]
    Register(String),
    #[error("no interrupt handler, or in one already")]
    Interrupt,
    #[error(transparent)]
    Fault(#[from] SqeFault),
}

const DUMP_USAGE: &str = "d r, d s, d t, d c REG, d g REG, d p REG or d m ADDRESS [N]";
const WRITE_USAGE: &str = "w r|s|c|g REG VALUE or w m ADDRESS VALUE...";
const PACKET_USAGE: &str = "p NAME VALUE... or p @ADDRESS DWORDS";

/// An emulator, and the last command that an empty line repeats.
pub struct Session<'n> {
    emulator: SqeEmulator<'n>,
    last: String,
}

impl<'n> Session<'n> {
    /// A session over an emulator as it stands.
    pub fn new(emulator: SqeEmulator<'n>) -> Session<'n> {
        Session { emulator, last: String::new() }
    }

    /// The emulator.
    pub fn emulator(&self) -> &SqeEmulator<'n> {
        &self.emulator
    }

    /// Appends the instruction that is next: `0012: 88020002  mov $02, 0x2`.
    pub fn show_next(&self, out: &mut String) {
        let pc = self.emulator.pc();
        let emulator = &self.emulator;
        let next = text::instruction(emulator.code(), pc, emulator.firmware(), emulator.names());
        let _ = match next {
            Some((word, text)) => writeln!(out, "\t{pc:04x}: {word:08x}  {text}"),
            None => writeln!(out, "\t{pc:04x}: beyond the firmware"),
        };
    }

    /// Does what a line says and appends what there is to show. False: the session is over.
    pub fn command(&mut self, line: &str, out: &mut String) -> bool {
        let repeated = self.last.clone();
        let line = if line.trim().is_empty() { repeated.as_str() } else { line };
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((&key, arguments)) = words.split_first() else { return true };
        let done = match key {
            "s" | "step" => self.step(arguments, out),
            "r" | "run" => self.run(arguments, out),
            "b" | "break" => self.breakpoint(arguments, out),
            "d" | "dump" => self.dump(arguments, out),
            "w" | "write" => self.write(arguments),
            "p" | "packet" => self.packet(arguments),
            "i" => self.emulator.interrupt().then_some(()).ok_or(Refusal::Interrupt),
            "h" | "help" => {
                out.push_str(HELP);
                Ok(())
            }
            "q" | "quit" => return false,
            _ => Err(Refusal::Command(key.to_string())),
        };
        if let Err(problem) = done {
            let _ = writeln!(out, "error: {problem}");
        } else if matches!(key, "s" | "step" | "r" | "run") {
            self.last = line.to_string();
        }
        true
    }

    fn step(&mut self, arguments: &[&str], out: &mut String) -> Result<(), Refusal> {
        let count = arguments.first().map_or(Ok(1), |text| number(text))?.min(MAX_STEPS_SHOWN);
        for _ in 0..count {
            self.emulator.take_log();
            self.show_next(out);
            let stop = self.emulator.step();
            let (log, _) = self.emulator.take_log();
            for (location, value) in changes(&log) {
                self.show(location, value, out);
            }
            if let Err(stop) = stop {
                self.show_stop(stop, out);
                break;
            }
        }
        Ok(())
    }

    fn run(&mut self, arguments: &[&str], out: &mut String) -> Result<(), Refusal> {
        let steps = arguments.first().map_or(Ok(RUN_STEPS), |text| number(text))?;
        let stop = self.emulator.run(steps.min(RUN_STEPS));
        self.emulator.take_log();
        self.show_stop(stop, out);
        self.show_next(out);
        Ok(())
    }

    fn show_stop(&self, stop: SqeStop, out: &mut String) {
        let _ = writeln!(out, "stopped: {stop}");
    }

    fn show(&self, location: SqeLocation, value: Option<u32>, out: &mut String) {
        out.push_str(&line(location, value, self.emulator.firmware(), self.emulator.names()));
        out.push('\n');
    }

    fn breakpoint(&mut self, arguments: &[&str], out: &mut String) -> Result<(), Refusal> {
        let Some(text) = arguments.first() else {
            for pc in self.emulator.breakpoints() {
                let _ = writeln!(out, "breakpoint at {pc:#x}");
            }
            return Ok(());
        };
        let pc = self.offset(text)?;
        let set = !self.emulator.remove_breakpoint(pc) && self.emulator.add_breakpoint(pc);
        let _ = writeln!(out, "{} breakpoint at {pc:#x}", if set { "set" } else { "removed" });
        Ok(())
    }

    /// An offset of code: a number, or a packet whose handler begins there.
    fn offset(&self, text: &str) -> Result<u32, Refusal> {
        if let Some(opcode) = self.emulator.names().opcode(text) {
            return Ok(self.emulator.packet_table().get(usize::from(opcode)).copied().unwrap_or(0));
        }
        narrow(number(text)?)
    }

    fn dump(&self, arguments: &[&str], out: &mut String) -> Result<(), Refusal> {
        let emulator = &self.emulator;
        match arguments {
            ["r"] => (0..32).for_each(|n| self.show(SqeLocation::Gpr(n), Some(emulator.gpr(n)), out)),
            ["s"] => {
                (0..16).for_each(|n| self.show(SqeLocation::Sqe(n), emulator.sqe(n), out));
                for pc in emulator.call_stack() {
                    let _ = writeln!(out, "              returns to {pc:#x}");
                }
            }
            ["t"] => {
                let set = (0u32..).zip(emulator.packet_table()).filter(|&(_, &entry)| entry != 0);
                set.for_each(|(opcode, &entry)| self.show(SqeLocation::Table(opcode), Some(entry), out));
            }
            ["c", register] => {
                let offset = self.register(SqeSpace::Control, register)?;
                self.show(SqeLocation::Control(offset), emulator.control(offset), out);
            }
            ["g", register] => {
                let offset = self.register(SqeSpace::Gpu, register)?;
                self.show(SqeLocation::Gpu(offset), Some(emulator.gpu(offset)), out);
            }
            ["p", register] => {
                let offset = self.register(SqeSpace::Pipe, register)?;
                self.show(SqeLocation::Pipe(offset), emulator.pipe(offset), out);
            }
            ["m", address] | ["m", address, _] => {
                let address = number(address)?;
                let count = arguments.get(2).map_or(Ok(1), |text| number(text))?.min(MAX_DUMP);
                for i in 0..count {
                    let address = address.wrapping_add(4 * i);
                    let value = emulator.memory().read(address)?;
                    self.show(SqeLocation::Memory(address), value, out);
                }
            }
            _ => return Err(Refusal::Usage(DUMP_USAGE)),
        }
        Ok(())
    }

    fn write(&mut self, arguments: &[&str]) -> Result<(), Refusal> {
        match arguments {
            ["r", register, value] => {
                let name = register.trim_start_matches('$');
                let register = asm::register(name).ok_or_else(|| Refusal::Register(register.to_string()))?;
                self.emulator.set_gpr(register, narrow(number(value)?)?);
            }
            ["s", register, value] => {
                let offset = self.register(SqeSpace::Sqe, register)?;
                self.emulator.write_sqe(offset, narrow(number(value)?)?)?;
            }
            ["c", register, value] => {
                let offset = self.register(SqeSpace::Control, register)?;
                self.emulator.write_control(offset, narrow(number(value)?)?)?;
            }
            ["g", register, value] => {
                let offset = self.register(SqeSpace::Gpu, register)?;
                self.emulator.write_gpu(offset, narrow(number(value)?)?);
            }
            ["m", address, values @ ..] if !values.is_empty() => {
                let address = number(address)?;
                for (i, value) in (0u64..).zip(values) {
                    let value = narrow(number(value)?)?;
                    self.emulator.memory_mut().write(address.wrapping_add(4 * i), value)?;
                }
            }
            _ => return Err(Refusal::Usage(WRITE_USAGE)),
        }
        Ok(())
    }

    fn packet(&mut self, arguments: &[&str]) -> Result<(), Refusal> {
        let Some((&name, rest)) = arguments.split_first() else {
            return Err(Refusal::Usage(PACKET_USAGE));
        };
        let payload: Vec<u32> =
            rest.iter().map(|text| number(text).and_then(narrow)).collect::<Result<_, _>>()?;
        let count = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if let Some(address) = name.strip_prefix('@') {
            let &[dwords] = payload.as_slice() else { return Err(Refusal::Usage(PACKET_USAGE)) };
            self.emulator.submit(number(address)?, dwords);
        } else if let Some(opcode) = self.emulator.names().opcode(name) {
            self.push(AdrenoPacketHeader::Operation { opcode, count }, &payload)?;
        } else {
            let offset = self.register(SqeSpace::Gpu, name)?;
            self.push(AdrenoPacketHeader::Registers { reg: offset, count }, &payload)?;
        }
        Ok(())
    }

    /// A packet for the emulator to read; the firmware it runs is that of a6xx or later.
    fn push(&mut self, header: AdrenoPacketHeader, payload: &[u32]) -> Result<(), Refusal> {
        let header = header.encode(Generation::A6xx).ok_or(Refusal::Usage(PACKET_USAGE))?;
        self.emulator.push(&[&[header], payload].concat());
        Ok(())
    }

    /// A register by its name, with or without the sign before it, or by its offset.
    fn register(&self, space: SqeSpace, text: &str) -> Result<u32, Refusal> {
        let name = text.trim_start_matches(['@', '%', '|']);
        match self.emulator.names().offset(self.emulator.firmware(), space, name) {
            Some(offset) => Ok(offset),
            None => number(name).and_then(narrow).map_err(|_| Refusal::Register(text.to_string())),
        }
    }
}

fn number(text: &str) -> Result<u64, Refusal> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| Refusal::Number(text.to_string()))
}

fn narrow(value: u64) -> Result<u32, Refusal> {
    u32::try_from(value).map_err(|_| Refusal::TooLarge(value))
}
