//! Compiles `cost.txt`: latencies, resources, and how often blocks are executed.

use super::read::gens;
use crate::amdgcn_facts::model::{Columns, Counter, Event, Resource, Unit};
use crate::table_text::lines;
use std::error::Error;
use std::fmt::Write as _;

type Failure = Box<dyn Error>;

fn number(text: &str) -> Result<u16, Failure> {
    text.parse().map_err(|_| format!("not a number: {text}").into())
}

/// The source of the table.
pub fn compile(source: &str, opcodes: &[String]) -> Result<String, Failure> {
    let (mut units, mut late, mut fast, mut halves, mut constants) =
        (String::new(), String::new(), String::new(), String::new(), String::new());
    for (line, text) in lines(source) {
        let failed = |what: &str| -> Failure { format!("line {line}: {what}: {text}").into() };
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["unit", of, unit, latency, ref used @ ..] => {
                let on = gens(of).ok_or_else(|| failed("generations"))?;
                let bits: Columns = on.iter().fold(0, |set, generation| set | 1 << *generation as u8);
                let unit = Unit::from_name(unit).ok_or_else(|| failed("an unknown unit"))?;
                let mut uses = String::new();
                for pair in used.chunks(2) {
                    let [resource, cycles] = *pair else { return Err(failed("a resource without cycles")) };
                    let resource =
                        Resource::from_name(resource).ok_or_else(|| failed("an unknown resource"))?;
                    write!(uses, "(Resource::{resource:?}, {}), ", number(cycles)?)?;
                }
                writeln!(
                    units,
                    "UnitCost {{ gens: {bits:#x}, unit: Unit::{unit:?}, latency: {}, uses: &[{uses}] }},",
                    number(latency)?
                )?;
            }
            ["fast_fma", ref versions @ ..] => {
                for version in versions {
                    let numbers: Vec<u16> = version.split('.').map(number).collect::<Result<_, _>>()?;
                    write!(fast, "{numbers:?}, ")?;
                }
            }
            ["both_halves", ref names @ ..] => {
                for name in names {
                    if !opcodes.iter().any(|opcode| opcode == name) {
                        return Err(failed(&format!("no instruction {name}")));
                    }
                    write!(halves, "Opcode::{name}, ")?;
                }
            }
            ["late", event, counter, latency] => {
                let event = Event::from_name(event).ok_or_else(|| failed("an unknown event"))?;
                let counter = Counter::from_name(counter).ok_or_else(|| failed("an unknown counter"))?;
                writeln!(late, "(Event::{event:?}, Counter::{counter:?}, {}),", number(latency)?)?;
            }
            ["constant", name, value] => {
                let value: f64 = value.parse().map_err(|_| failed("not a number"))?;
                let name = name.to_uppercase();
                writeln!(constants, "#[doc = \"`{name}`\"]\npub const {name}: f64 = {value:?};")?;
            }
            _ => return Err(failed("not understood")),
        }
    }
    Ok(format!(
        "pub(super) static UNITS: &[UnitCost] = &[\n{units}];\npub(super) static LATE: &[(Event, Counter, u16)] = &[\n{late}];\n\
         pub(super) static FAST_FMA: &[[u8; 3]] = &[{fast}];\npub(super) static BOTH_HALVES: &[Opcode] = &[{halves}];\n{constants}"
    ))
}
