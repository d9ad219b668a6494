//! Compiles `waits.txt`: which counters instructions wait for, and what counts in them.

use super::read::{SourceRow, gens};
use crate::amdgcn_facts::model::{Columns, Counter, Event, GENS, Gfx, Role};
use crate::table_text::lines;
use std::error::Error;
use std::fmt::Write as _;

type Failure = Box<dyn Error>;

/// Fields by generation, each as source.
type ByGeneration = [Vec<String>; GENS];

/// What is emitted.
#[derive(Default)]
struct Compiled {
    counters: String,
    events: String,
    depctr: String,
    /// Fields as the text has them: of `s_waitcnt` and of `s_waitcnt_depctr`.
    texts: [ByGeneration; 2],
    orders: Vec<String>,
    /// Opcodes with fields.
    waiting: Vec<String>,
}

/// `0-3,14-15` as runs of bits: lowest bit and width.
fn runs(text: &str) -> Result<Vec<(u8, u8)>, Failure> {
    let run = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u8, u8) = (from.parse()?, to.parse()?);
        let width =
            to.checked_sub(from).filter(|_| to < 16).ok_or("bits of an immediate are 0 to 15, ascending")?;
        Ok((from, width + 1))
    };
    text.split(',').map(run).collect()
}

fn generations(text: &str) -> Result<Vec<Gfx>, Failure> {
    gens(text).ok_or_else(|| format!("generations: {text}").into())
}

fn bits(generations: &[Gfx]) -> Columns {
    generations.iter().fold(0, |set, generation| set | 1 << *generation as u8)
}

/// The source of the table. `rows` have opcodes in the same order.
pub fn compile(source: &str, rows: &[SourceRow], opcodes: &[String]) -> Result<String, Failure> {
    let mut out = Compiled::default();
    for (line, text) in lines(source) {
        out.line(text, opcodes).map_err(|e| format!("line {line}: {e}"))?;
    }
    for (row, opcode) in rows.iter().zip(opcodes) {
        if (row.role == Role::Wait) != out.waiting.contains(opcode) {
            return Err(format!("{opcode}: the role `wait` and a line `counter` go together").into());
        }
    }
    Ok(out.source()?)
}

impl Compiled {
    fn line(&mut self, text: &str, opcodes: &[String]) -> Result<(), Failure> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["counter", of, name, counter, opcode, on] => {
                let of = generations(of)?;
                let counter = Counter::from_name(counter).ok_or("an unknown counter")?;
                if !opcodes.iter().any(|o| o == opcode) {
                    return Err(format!("no instruction {opcode}").into());
                }
                self.waiting.push(opcode.to_owned());
                let field = format!("ImmediateField {{ name: {name:?}, runs: &{:?} }}", runs(on)?);
                writeln!(
                    self.counters,
                    "WaitField {{ gens: {:#x}, counter: Counter::{counter:?}, opcode: Opcode::{opcode}, field: {field} }},",
                    bits(&of)
                )?;
                if opcode == "s_waitcnt" {
                    of.iter().for_each(|generation| self.texts[0][*generation as usize].push(field.clone()));
                }
            }
            ["event", of, event, counter, order] => {
                let event = Event::from_name(event).ok_or("an unknown event")?;
                let counter = Counter::from_name(counter).ok_or("an unknown counter")?;
                let order = match order {
                    "-" => 0,
                    name => {
                        let known = self.orders.iter().position(|o| o == name).unwrap_or_else(|| {
                            self.orders.push(name.to_owned());
                            self.orders.len() - 1
                        });
                        known + 1
                    }
                };
                writeln!(
                    self.events,
                    "CounterUse {{ gens: {:#x}, event: Event::{event:?}, counter: Counter::{counter:?}, order: {order} }},",
                    bits(&generations(of)?)
                )?;
            }
            ["depctr", written, of, name, on, ref about @ ..] => {
                let field = format!("ImmediateField {{ name: {name:?}, runs: &{:?} }}", runs(on)?);
                for generation in generations(written)? {
                    self.texts[1][generation as usize].push(field.clone());
                }
                writeln!(
                    self.depctr,
                    "/// At 0: {}.\npub const {}: DepctrField = DepctrField {{ gens: {:#x}, field: {field} }};",
                    about.join(" "),
                    name.trim_start_matches("depctr_").to_uppercase(),
                    bits(&generations(of)?)
                )?;
            }
            ["text", "s_waitcnt", of, "as", like] => {
                let like = Gfx::from_number(like).ok_or("an unknown generation")?;
                for generation in generations(of)? {
                    self.texts[0][generation as usize] = self.texts[0][like as usize].clone();
                }
            }
            _ => return Err(format!("not understood: {text}").into()),
        }
        Ok(())
    }

    fn source(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        let Compiled { counters, events, depctr, texts, .. } = self;
        writeln!(
            out,
            "/// Where waits have the numbers that they wait for.\npub static WAITS: &[WaitField] = &[\n{counters}];"
        )?;
        writeln!(out, "/// What counts where.\npub static COUNTED: &[CounterUse] = &[\n{events}];")?;
        writeln!(out, "{depctr}")?;
        for (name, fields) in ["WAITCNT", "DEPCTR"].into_iter().zip(texts) {
            let lists: String = fields.iter().map(|list| format!("&[{}],\n", list.join(", "))).collect();
            writeln!(out, "pub(crate) static {name}: [&[ImmediateField]; GENS] = [\n{lists}];")?;
        }
        Ok(out)
    }
}
