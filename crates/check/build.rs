//! Compiles the rules of `data/intel/eu` into the table the library includes.

#[path = "build_support/table_text.rs"]
mod table_text;

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};
use table_text::{camel, lines};

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let data = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("data");
    let folder = env::var("OUT_DIR")?;
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build_support");
    let path = data.join("intel/eu/rules.txt");
    println!("cargo::rerun-if-changed={}", path.display());
    let mut out = String::new();
    eu_rules(&fs::read_to_string(&path)?, &mut out).map_err(|e| format!("{}: {e}", path.display()))?;
    fs::write(Path::new(&folder).join("eu_check.rs"), out)?;
    Ok(())
}

/// Rules of the EU: `rule NAME LEVEL GENERATIONS [low-power]`, then what is wrong and what helps.
fn eu_rules(source: &str, out: &mut String) -> Result<(), Failure> {
    let mut rows: Vec<(Vec<&str>, &str, &str)> = Vec::new();
    for (_, line) in lines(source) {
        if let Some(head) = line.strip_prefix("rule ") {
            rows.push((head.split_whitespace().collect(), "", ""));
            continue;
        }
        let row = rows.last_mut().ok_or("a sentence without a rule")?;
        match line.trim().split_once(": ") {
            Some(("is", text)) => row.1 = text,
            Some(("cure", text)) => row.2 = text,
            _ => return Err(format!("{line:?} is not a sentence with a key").into()),
        }
    }
    out.push_str("/// One thing the checker knows.\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Rule {\n");
    for (head, is, _) in &rows {
        if is.is_empty() {
            return Err(format!("{head:?}: a rule without words").into());
        }
        writeln!(out, "/// `{}`: {is}.\n{},", head[0], camel(head[0]))?;
    }
    writeln!(
        out,
        "}}\n/// What each rule is, in the order of [`Rule`].\npub static RULES: [RuleInfo; {}] = [",
        rows.len()
    )?;
    for (head, is, cure) in &rows {
        let [name, level, on, platforms @ ..] = &head[..] else {
            return Err(format!("{head:?}: a rule without generations").into());
        };
        let low_power = match platforms {
            [] => false,
            ["low-power"] => true,
            other => return Err(format!("{name}: {other:?} are not platforms").into()),
        };
        writeln!(
            out,
            "RuleInfo {{ rule: Rule::{}, name: {name:?}, level: Level::{}, generations: {on:?}, low_power: {low_power}, \
             is: {is:?}, cure: {cure:?} }},",
            camel(name),
            camel(level),
        )?;
    }
    out.push_str("];\n");
    Ok(())
}
