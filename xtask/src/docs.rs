//! `cargo xtask docs [--check]`: writes the reference of rules and advice into `docs/explain.md`, from the tables of crate
//! `postmortem`; a test runs the check.
//!
//! Never: what stands outside of the markers, which is written by hand.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use unwedge_postmortem::{AdviceId, RULES, RuleRole, RuleRow, Vendors};

const BEGIN: &str = "<!-- from here on written by `cargo xtask docs` -->\n";
const END: &str = "<!-- end of what `cargo xtask docs` writes -->\n";

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => {
            let page = page()?;
            fs::write(path(), page).map_err(|e| format!("{}: {e}", path().display()))
        }
        [flag] if flag == "--check" => check(),
        _ => Err("usage: cargo xtask docs [--check]".into()),
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/explain.md")
}

fn read() -> Result<String, String> {
    fs::read_to_string(path()).map_err(|e| format!("{}: {e}", path().display()))
}

fn check() -> Result<(), String> {
    if read()? == page()? {
        Ok(())
    } else {
        Err("docs/explain.md does not have the rules as they are: run `cargo xtask docs`".into())
    }
}

/// The page with the tables as they are now.
fn page() -> Result<String, String> {
    let text = read()?;
    let markers = || "docs/explain.md has lost the markers of its written part".to_owned();
    let (head, rest) = text.split_once(BEGIN).ok_or_else(markers)?;
    let (_, tail) = rest.split_once(END).ok_or_else(markers)?;
    Ok(format!("{head}{BEGIN}{}{END}{tail}", reference()))
}

/// Every rule by vendor, then every advice.
fn reference() -> String {
    let mut out = String::new();
    let vendors = [
        ("Adreno", "dumps of msm", Vendors::ADRENO),
        ("AMD", "dumps of amdgpu, hang reports of RADV, output of umr", Vendors::AMD),
        ("Intel", "error states of i915, dumps of xe", Vendors::INTEL),
    ];
    for (name, dumps, vendor) in vendors {
        let rows: Vec<&RuleRow> = RULES.iter().filter(|row| row.vendors.contains(vendor)).collect();
        rules(&mut out, name, dumps, &rows);
    }
    out.push_str("\n### Advice\n\n| advice | what it does |\n|---|---|\n");
    for advice in AdviceId::ALL {
        let _ = writeln!(out, "| `{}` | {} |", advice.id(), advice.summary());
    }
    out.push('\n');
    out
}

/// The rules of a vendor: those that find something, the heaviest first, then those that name what is missing.
fn rules(out: &mut String, name: &str, dumps: &str, rows: &[&RuleRow]) {
    let (missing, mut found): (Vec<&RuleRow>, Vec<&RuleRow>) =
        rows.iter().copied().partition(|row| row.role == RuleRole::Absence);
    found.sort_by_key(|row| std::cmp::Reverse(row.weight));
    let _ = writeln!(out, "\n### Rules for {name}: {dumps}\n");
    out.push_str("| rule | kind | role | weight | meaning | advice |\n|---|---|---|---|---|---|\n");
    for row in found {
        let advice: Vec<String> = row.advice.iter().map(|advice| format!("`{}`", advice.id())).collect();
        let (id, kind, role, weight) = (row.id, row.kind.id(), role(row.role), row.weight);
        let (summary, advice) = (row.summary, advice.join(" "));
        let _ = writeln!(out, "| `{id}` | {kind} | {role} | {weight} | {summary} | {advice} |");
    }
    out.push_str("\nUnder `MISSING`:\n\n| rule | what is missing |\n|---|---|\n");
    for row in missing {
        let _ = writeln!(out, "| `{}` | {} |", row.id, row.summary);
    }
}

fn role(role: RuleRole) -> &'static str {
    match role {
        RuleRole::Position => "position",
        RuleRole::Cause => "cause",
        RuleRole::Clue => "clue",
        RuleRole::Observation => "observation",
        RuleRole::Context => "context",
        RuleRole::Record => "record",
        RuleRole::Absence => "absence",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_rule_as_it_is() {
        check().unwrap();
    }

    #[test]
    fn every_rule_and_advice_has_a_meaning_of_one_line() {
        let rules = RULES.iter().map(|row| (row.id, row.summary));
        let advice = AdviceId::ALL.iter().map(|advice| (advice.id(), advice.summary()));
        for (id, summary) in rules.chain(advice) {
            assert!(summary.ends_with('.') && !summary.contains(['\n', '|']), "{id}: {summary:?}");
        }
    }
}
