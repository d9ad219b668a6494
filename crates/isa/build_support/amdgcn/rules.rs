//! Compiles `check/rules.txt`: waits, hazards and what else is wrong in code.

use crate::table_text::{camel, lines};
use std::error::Error;
use std::fmt::Write as _;

type Failure = Box<dyn Error>;

struct RuleRow {
    head: Vec<String>,
    said: Vec<(String, String)>,
}

fn rows(source: &str) -> Result<Vec<RuleRow>, Failure> {
    let mut rows: Vec<RuleRow> = Vec::new();
    for (_, line) in lines(source) {
        if let Some(head) = line.strip_prefix("rule ") {
            rows.push(RuleRow {
                head: head.split_whitespace().map(str::to_owned).collect(),
                said: Vec::new(),
            });
            continue;
        }
        let row = rows.last_mut().ok_or("a sentence without a rule")?;
        let line = line.trim();
        let (key, value) =
            line.split_once(": ").or(line.split_once(' ')).ok_or("a key without a sentence")?;
        row.said.push((key.to_owned(), value.to_owned()));
    }
    Ok(rows)
}

/// The source of the table.
pub fn compile(source: &str) -> Result<String, Failure> {
    let mut out = String::new();
    let rows = rows(source)?;
    out.push_str("/// One thing the checker knows.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Rule {\n");
    for row in &rows {
        let about =
            row.said.iter().find(|(key, _)| key == "is" || key == "then").ok_or("a rule without words")?;
        writeln!(out, "/// `{}`: {}.\n{},", row.head[0], about.1.replace('[', "("), camel(&row.head[0]))?;
    }
    writeln!(
        out,
        "}}\n/// What each rule is, in the order of [`Rule`].\npub static RULES: [RuleInfo; {}] = [",
        rows.len()
    )?;
    for row in &rows {
        let [name, level, on, distance @ ..] = &row.head[..] else {
            return Err("a rule without generations".into());
        };
        let distance: u8 = distance.first().map_or(Ok(0), |n| n.parse())?;
        let said = |key: &str| row.said.iter().find(|(k, _)| k == key).map_or("", |(_, v)| v);
        let doubt = match said("doubt") {
            "" => "0".to_owned(),
            doubt => format!("generations({doubt:?})"),
        };
        let mut states = String::new();
        for (on, numbers) in row.said.iter().filter_map(|(key, v)| Some((key.strip_prefix("states ")?, v))) {
            let mut numbers: Vec<u8> =
                numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            if let [one] = numbers[..] {
                numbers = vec![one; 4];
            }
            let [_, _, _, _] = numbers[..] else { return Err(format!("{name}: one number or four").into()) };
            write!(states, "(generations({on:?}), {numbers:?}), ")?;
        }
        for (key, _) in row.said.iter().filter(|(key, _)| !key.starts_with("states ")) {
            if !["is", "first", "then", "cure", "source", "dispute", "doubt"].contains(&key.as_str()) {
                return Err(format!("{name}: no key {key}").into());
            }
        }
        writeln!(
            out,
            "RuleInfo {{ rule: Rule::{}, name: {name:?}, level: Certainty::{}, gens: generations({on:?}), doubt: {doubt}, distance: {distance}, states: &[{states}], \
             first: {:?}, then: {:?}, cure: {:?}, source: {:?}, dispute: {:?} }},",
            camel(name),
            camel(level),
            said("first"),
            if said("then").is_empty() { said("is") } else { said("then") },
            said("cure"),
            said("source"),
            said("dispute"),
        )?;
    }
    out.push_str("];\n");
    Ok(out)
}
