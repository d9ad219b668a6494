//! The emulator's state before each instruction, by commands.

use super::{number, scalar};
use crate::plural::counted;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use unwedge_isa::amdgcn::Reg;
use unwedge_sim::amdgcn::{Control, GroupState, Program, WaveStatus};

const HELP: &str = "\
step [COUNT]          execute instructions of whichever wave has its turn
next [COUNT]          the same, of this wave
continue              go on to a breakpoint, or to the end
break PLACE           stop where a wave comes to: an offset, an address, a label of the listing, a function
delete [PLACE]        forget a breakpoint, or all
breaks                list the breakpoints
print NAME            s4, v7, v7[3], exec, vcc, scc, m0, pc
memory ADDRESS [N]    dwords of memory
lds ADDRESS [N]       dwords of LDS
waves                 where the waves of this workgroup are
list [N]              the next instructions
quit                  end here
The first letters do; an empty line repeats the last command.
";

/// Dwords and lines that one command shows at most.
const MOST: u64 = 4096;

/// What is done until the next question.
enum Plan {
    Ask,
    /// So many more instructions, of one wave if it is named.
    Count(u64, Option<(u32, u32)>),
    Continue,
    End,
}

/// What is run.
pub struct Loaded {
    /// Its code.
    pub program: Program,
    /// Where its first word lies.
    pub base: u64,
    /// Functions of a code object in the order of a listing, with their offsets.
    pub functions: Vec<(String, u32)>,
}

/// The conversation.
pub struct Stepper<'p> {
    program: &'p Program,
    code: &'p Loaded,
    function: Option<&'p str>,
    lines: Box<dyn Iterator<Item = io::Result<String>> + 'p>,
    prompt: bool,
    out: &'p mut dyn Write,
    breaks: BTreeSet<u32>,
    plan: Plan,
    last: String,
}

impl<'p> Stepper<'p> {
    /// Commands come from `lines`, after a prompt if somebody types them. `function` is the one whose labels go without a
    /// number.
    pub fn new(
        code: &'p Loaded,
        function: Option<&'p str>,
        lines: Box<dyn Iterator<Item = io::Result<String>> + 'p>,
        prompt: bool,
        out: &'p mut dyn Write,
    ) -> Stepper<'p> {
        Stepper {
            program: &code.program,
            code,
            function,
            lines,
            prompt,
            out,
            breaks: BTreeSet::new(),
            plan: Plan::Ask,
            last: "step".to_owned(),
        }
    }

    /// Whether the next instruction is executed. At the end of the commands the run ends.
    pub fn ask(&mut self, state: &mut GroupState<'_, '_>) -> Control {
        let now = state.now();
        let here = (state.workgroup(), now.wave);
        match &mut self.plan {
            Plan::End => return Control::Stop,
            Plan::Count(left, of) if *left > 0 && of.is_none_or(|of| of == here) => {
                *left -= 1;
                return Control::Go;
            }
            Plan::Count(left, Some(_)) if *left > 0 && !self.breaks.contains(&now.at) => return Control::Go,
            Plan::Continue if !self.breaks.contains(&now.at) => return Control::Go,
            _ => self.plan = Plan::Ask,
        }
        let mut text = String::new();
        self.place(here.0, &now, &mut text);
        loop {
            if self.prompt {
                text.push_str("> ");
            }
            self.show(&text);
            text.clear();
            let Some(Ok(line)) = self.lines.next() else {
                self.plan = Plan::End;
                return Control::Stop;
            };
            if let Err(wrong) = self.command(&line, state, &mut text) {
                let _ = writeln!(text, "{wrong}");
            }
            match &mut self.plan {
                Plan::Ask => {}
                Plan::End => return Control::Stop,
                Plan::Count(left, _) => {
                    *left = left.saturating_sub(1);
                    self.show(&text);
                    return Control::Go;
                }
                Plan::Continue => {
                    self.show(&text);
                    return Control::Go;
                }
            }
        }
    }

    /// A failed write is for the owner of the output to remember.
    fn show(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
        let _ = self.out.flush();
    }

    /// A wave, and its next instruction.
    fn place(&self, workgroup: u32, stand: &WaveStatus, out: &mut String) {
        let instruction = self.program.text(stand.at);
        let instruction = instruction.as_deref().unwrap_or("(no instruction)");
        let _ = writeln!(
            out,
            "{workgroup}.{} {:#07x} exec {:016x}  {instruction}",
            stand.wave, stand.at, stand.exec
        );
    }

    fn command(
        &mut self,
        line: &str,
        state: &mut GroupState<'_, '_>,
        out: &mut String,
    ) -> Result<(), String> {
        let line = line.trim();
        let line = if line.is_empty() { self.last.clone() } else { line.to_owned() };
        self.last.clone_from(&line);
        let mut words = line.split_whitespace();
        let (name, first, second) = (words.next().unwrap_or_default(), words.next(), words.next());
        const NAMES: [&str; 13] = [
            "step", "next", "continue", "break", "delete", "breaks", "print", "memory", "lds", "waves",
            "list", "quit", "help",
        ];
        let name = match name {
            "x" => "memory",
            "backtrace" | "bt" => "waves",
            "?" => "help",
            _ => NAMES
                .into_iter()
                .find(|have| *have == name)
                .or_else(|| NAMES.into_iter().find(|have| have.starts_with(name)))
                .ok_or_else(|| format!("`{name}` is not a command: see help"))?,
        };
        let count = |word: Option<&str>, default: u64| match word {
            Some(word) => number(word).ok_or_else(|| format!("`{word}` is not a number")),
            None => Ok(default),
        };
        let now = state.now();
        match name {
            "step" => self.plan = Plan::Count(count(first, 1)?, None),
            "next" => self.plan = Plan::Count(count(first, 1)?, Some((state.workgroup(), now.wave))),
            "continue" => self.plan = Plan::Continue,
            "quit" => self.plan = Plan::End,
            "break" => {
                let at = self.offset(first.ok_or("where?")?)?;
                self.breaks.insert(at);
            }
            "delete" => match first {
                Some(place) => {
                    let at = self.offset(place)?;
                    if !self.breaks.remove(&at) {
                        return Err(format!("there is no breakpoint at {at:#x}"));
                    }
                }
                None => self.breaks.clear(),
            },
            "breaks" => {
                for at in &self.breaks {
                    let _ = writeln!(out, "{at:#07x}  {}", self.program.text(*at).unwrap_or_default());
                }
            }
            "print" => print(first.ok_or("what?")?, state, &now, out)?,
            "memory" | "lds" => {
                let address = count(first, 0)?;
                for n in 0..count(second, 4)?.min(MOST) {
                    let at = address.wrapping_add(4 * n);
                    let value = match name {
                        "lds" => u32::try_from(at).ok().and_then(|at| state.lds(at)),
                        _ => state.memory(at),
                    };
                    let value = value.map_or("--------".to_owned(), |value| format!("{value:08x}"));
                    let _ = writeln!(out, "{at:#x}: {value}");
                }
            }
            "waves" => {
                for stand in state.waves() {
                    self.place(state.workgroup(), &stand, out);
                    let what = match (stand.ended, stand.at_barrier) {
                        (true, _) => "ended",
                        (_, true) => "at a barrier",
                        _ => "runs",
                    };
                    let _ = writeln!(
                        out,
                        "    {what}, {} executed, {} under way",
                        counted(stand.steps, "instruction", "instructions"),
                        counted(stand.pending as u64, "access", "accesses")
                    );
                }
            }
            "list" => {
                let mut at = now.at;
                for _ in 0..count(first, 8)?.min(MOST) {
                    let Some((text, next)) = self.program.text(at).zip(self.program.following(at)) else {
                        break;
                    };
                    let mark = if self.breaks.contains(&at) { '*' } else { ' ' };
                    let _ = writeln!(out, "{mark}{at:#07x}  {text}");
                    at = next;
                }
            }
            _ => out.push_str(HELP),
        }
        Ok(())
    }

    /// The offset that a place is: an offset or address, `L…` of a listing, or a function's name with `+OFFSET`.
    fn offset(&self, place: &str) -> Result<u32, String> {
        let unknown = || format!("`{place}` is not a place in the code");
        let (name, more) = place.split_once('+').unwrap_or((place, "0"));
        let function = self.code.functions.iter().find(|(own, _)| own == name);
        let offset = match (function, place.strip_prefix('L').and_then(|label| self.label(label))) {
            (Some((_, start)), _) => number(more).ok_or_else(unknown)?.saturating_add((*start).into()),
            (_, Some(at)) => at,
            _ => {
                let at = number(place).ok_or_else(unknown)?;
                at.checked_sub(self.code.base).unwrap_or(at)
            }
        };
        let offset = u32::try_from(offset).map_err(|_| unknown())?;
        self.program.text(offset).map(|_| offset).ok_or_else(unknown)
    }

    /// The offset of a listing's label without its `L`: dwords from the begin of its function, whose number in the listing
    /// is said unless it is the first one, or the only one.
    fn label(&self, label: &str) -> Option<u64> {
        let functions = &self.code.functions;
        let (start, digits) = match label.split_once('_') {
            Some((number, digits)) => (functions.get(number.parse::<usize>().ok()?)?.1, digits),
            None => {
                let only = self.function.and_then(|wanted| functions.iter().find(|(name, _)| name == wanted));
                (only.or(functions.first()).map_or(0, |(_, start)| *start), label)
            }
        };
        let dwords = u64::from_str_radix(digits, 16).ok()?;
        Some(dwords.saturating_mul(4).saturating_add(start.into()))
    }
}

/// Hexadecimal digits, with `?` where bits are not known.
fn digits(value: u32, unknown: u32) -> String {
    (0..8)
        .rev()
        .map(|at| match unknown >> (4 * at) & 15 {
            0 => char::from_digit(value >> (4 * at) & 15, 16).unwrap_or('?'),
            _ => '?',
        })
        .collect()
}

fn print(name: &str, state: &GroupState<'_, '_>, now: &WaveStatus, out: &mut String) -> Result<(), String> {
    let unknown = || format!("`{name}` is not a register of this wave");
    if let Some(rest) = name.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        let (register, lane) = match rest.split_once('[') {
            Some((register, lane)) => (register, Some(lane.trim_end_matches(']'))),
            None => (rest, None),
        };
        let register: u8 = register.parse().map_err(|_| unknown())?;
        let (values, bits) = state.vector(register).ok_or_else(unknown)?;
        if let Some(lane) = lane {
            let lane: usize = lane.parse().map_err(|_| unknown())?;
            let value = values.get(lane).zip(bits.get(lane)).ok_or_else(unknown)?;
            let _ = writeln!(out, "{name} = {}", digits(*value.0, *value.1));
            return Ok(());
        }
        let shown: Vec<String> =
            values.iter().zip(&bits).map(|(value, bits)| digits(*value, *bits)).collect();
        let _ = writeln!(out, "{name} =");
        for (line, chunk) in shown.chunks(8).enumerate() {
            let _ = writeln!(out, "  {:2}: {}", line * 8, chunk.join(" "));
        }
        return Ok(());
    }
    let pair = |low: Reg| {
        let (low, high) = (state.scalar(low)?, state.scalar(Reg(low.0 + 1))?);
        Some(format!("{}_{}", digits(high.0, high.1), digits(low.0, low.1)))
    };
    let text = match name {
        "pc" => Some(format!("{:#x}", now.at)),
        "exec" => pair(Reg::EXEC),
        "vcc" => pair(Reg::VCC),
        "scc" => state
            .scalar(Reg::SCC)
            .map(|(value, bits)| if bits & 1 != 0 { "?".to_owned() } else { value.to_string() }),
        _ => {
            let reg = scalar(name).ok_or_else(unknown)?;
            state.scalar(Reg(reg)).map(|(value, bits)| digits(value, bits))
        }
    };
    let _ = writeln!(out, "{name} = {}", text.ok_or_else(unknown)?);
    Ok(())
}
