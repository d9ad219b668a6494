//! Compiles `data/amd/check` into the tables the library includes.

#[allow(dead_code, reason = "only generations are needed")]
#[path = "../isa/src/amdgcn/model.rs"]
mod model;

use model::Gen;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

type Failure = Box<dyn Error>;

/// Slots and events in the order the library numbers them.
const SLOTS: [&str; 7] = ["memory", "exp", "local", "store", "sample", "bvh", "scalar"];

fn main() -> Result<(), Failure> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../data/amd/check");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../isa/src/amdgcn/model.rs");
    let mut out = String::new();
    for (file, compile) in [
        ("rules.txt", rules as fn(&str, &mut String) -> Result<(), Failure>),
        ("waits.txt", waits),
        ("depctr.txt", depctr),
    ] {
        let path = folder.join(file);
        println!("cargo::rerun-if-changed={}", path.display());
        let source = fs::read_to_string(&path)?;
        compile(&source, &mut out).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("amdgcn_check.rs"), out)?;
    Ok(())
}

/// Lines without comments.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    source.lines().map(|line| line.split('#').next().unwrap_or_default().trim_end()).filter(|l| !l.is_empty())
}

/// `6`, `8-906`: the bits of those generations.
fn gens(text: &str) -> Result<u16, Failure> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let number = |name| Gen::from_name(name).ok_or_else(|| format!("no generation {name}"));
    let (from, to) = (number(from)? as u16, number(to)? as u16);
    Ok((from..=to).fold(0, |set, g| set | 1 << g))
}

/// `snake_case` as the name of a variant.
fn camel(name: &str) -> String {
    name.split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect()
}

fn rules(source: &str, out: &mut String) -> Result<(), Failure> {
    struct Row {
        head: Vec<String>,
        said: Vec<(String, String)>,
    }
    let mut rows: Vec<Row> = Vec::new();
    for line in lines(source) {
        if let Some(head) = line.strip_prefix("rule ") {
            rows.push(Row { head: head.split_whitespace().map(str::to_owned).collect(), said: Vec::new() });
            continue;
        }
        let row = rows.last_mut().ok_or("a sentence without a rule")?;
        let line = line.trim();
        let (key, value) =
            line.split_once(": ").or(line.split_once(' ')).ok_or("a key without a sentence")?;
        row.said.push((key.to_owned(), value.to_owned()));
    }
    out.push_str("/// One thing the checker knows.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Rule {\n");
    for row in &rows {
        let about =
            row.said.iter().find(|(key, _)| key == "is" || key == "then").ok_or("a rule without words")?;
        writeln!(out, "/// `{}`: {}.\n{},", row.head[0], about.1.replace('[', "("), camel(&row.head[0]))?;
    }
    writeln!(
        out,
        "}}\n/// What each rule is, in the order of [`Rule`].\npub static RULES: [Info; {}] = [",
        rows.len()
    )?;
    for row in &rows {
        let [name, level, on, distance @ ..] = &row.head[..] else {
            return Err("a rule without generations".into());
        };
        let distance: u8 = distance.first().map_or(Ok(0), |n| n.parse())?;
        let said = |key: &str| row.said.iter().find(|(k, _)| k == key).map_or("", |(_, v)| v);
        let doubt = if said("doubt").is_empty() { 0 } else { gens(said("doubt"))? };
        for (key, _) in &row.said {
            if !["is", "first", "then", "cure", "source", "dispute", "doubt"].contains(&key.as_str()) {
                return Err(format!("{name}: no key {key}").into());
            }
        }
        writeln!(
            out,
            "Info {{ rule: Rule::{}, name: {name:?}, level: Level::{}, gens: {:#x}, doubt: {doubt:#x}, distance: {distance}, \
             first: {:?}, then: {:?}, cure: {:?}, source: {:?}, dispute: {:?} }},",
            camel(name),
            camel(level),
            gens(on)?,
            said("first"),
            if said("then").is_empty() { said("is") } else { said("then") },
            said("cure"),
            said("source"),
            said("dispute"),
        )?;
    }
    out.push_str("];\n");
    Ok(())
}

fn slot(name: &str) -> Result<usize, Failure> {
    SLOTS.iter().position(|s| *s == name).ok_or_else(|| format!("no slot {name}").into())
}

fn waits(source: &str, out: &mut String) -> Result<(), Failure> {
    let (mut counters, mut events) = (String::new(), String::new());
    let (mut count, mut event_count) = (0, 0);
    let mut orders: Vec<String> = vec!["-".to_owned()];
    let mut names: Vec<String> = Vec::new();
    for line in lines(source) {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["counter", on, name, of, instruction, bits] => {
                let mut list = Vec::new();
                for part in bits.split(',') {
                    let (from, to) = part.split_once('-').unwrap_or((part, part));
                    list.extend(from.parse::<u8>()?..=to.parse::<u8>()?);
                }
                count += 1;
                writeln!(
                    counters,
                    "Counter {{ gens: {:#x}, name: {name:?}, slot: {}, instruction: {instruction:?}, bits: &{list:?} }},",
                    gens(on)?,
                    slot(of)?
                )?;
            }
            ["event", on, name, of, order] => {
                let number = orders.iter().position(|o| o == order).unwrap_or_else(|| {
                    orders.push(order.to_owned());
                    orders.len() - 1
                });
                if !names.iter().any(|n| n == name) {
                    names.push(name.to_owned());
                }
                event_count += 1;
                writeln!(
                    events,
                    "Counts {{ gens: {:#x}, event: Event::{}, slot: {}, order: {number} }},",
                    gens(on)?,
                    camel(name),
                    slot(of)?
                )?;
            }
            _ => return Err(format!("not understood: {line}").into()),
        }
    }
    writeln!(
        out,
        "/// Where waits say how far they wait.\npub static COUNTERS: [Counter; {count}] = [\n{counters}];"
    )?;
    writeln!(out, "/// What counts where.\npub static COUNTS: [Counts; {event_count}] = [\n{events}];")?;
    out.push_str("/// What ends later than its instruction.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]\npub enum Event {\n");
    for name in &names {
        writeln!(out, "/// `{name}`.\n{},", camel(name))?;
    }
    out.push_str("}\n");
    Ok(())
}

fn depctr(source: &str, out: &mut String) -> Result<(), Failure> {
    for line in lines(source) {
        let mut words = line.split_whitespace();
        let mut next = || words.next().ok_or("a field without its bits");
        let (name, on) = (next()?, gens(next()?)?);
        let (low, width): (u32, u32) = (next()?.parse()?, next()?.parse()?);
        let about = words.collect::<Vec<_>>().join(" ");
        writeln!(
            out,
            "/// At 0: {about}.\npub const {}: Depctr = Depctr {{ gens: {on:#x}, mask: {:#x} }};",
            name.to_uppercase(),
            ((1u32 << width) - 1) << low
        )?;
    }
    Ok(())
}
