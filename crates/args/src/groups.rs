//! The groups that commands are listed in: by `unwedge --help`, by the man page, and by README.
//!
//! Never: what a command does, which its own entry in the table says.

use super::Cli;
use clap::{Command, CommandFactory};
use std::fmt::Write;

/// The groups with their commands, in the order in which they are listed.
pub const GROUPS: [(&str, &[&str]); 7] = [
    ("Diagnose", &["explain", "tui", "decode", "info", "watch", "bundle", "demo"]),
    (
        "Captures",
        &[
            "query",
            "diff",
            "replay",
            "lint",
            "breadcrumbs",
            "rd",
            "rddecompile",
            "rdcompile",
            "edit",
            "bisect",
            "reduce",
        ],
    ),
    ("Registers", &["regs", "lrc", "layout"]),
    ("Shaders", &["ir3", "ir2", "eu", "amd", "shader", "aco"]),
    ("Firmware", &["afuc"]),
    ("Drop-ins", &["crashdec", "cffdump", "afuc-disasm", "afuc-asm", "rddecompiler"]),
    ("Help", &["help", "man", "completions", "schema"]),
];

/// Columns of the names of commands in a list.
const NAMES: usize = 12;

/// The argument table, whose help lists the commands in their groups.
pub fn command() -> Command {
    let table = Cli::command();
    let groups = listed(&table);
    let usage = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n";
    let heading = table.get_styles().get_header();
    let template = format!("{usage}{groups}\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    table.help_template(template)
}

/// The commands of a group with what they do.
pub fn members<'c>(table: &'c Command, names: &'c [&str]) -> impl Iterator<Item = (&'c str, String)> {
    names.iter().filter_map(|name| {
        let about = table.find_subcommand(name)?.get_about()?;
        Some((*name, about.to_string()))
    })
}

/// The groups as text, one line a command.
fn listed(table: &Command) -> String {
    let (heading, literal) = (table.get_styles().get_header(), table.get_styles().get_literal());
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "\n{heading}{group}:{heading:#}");
        for (name, about) in members(table, names) {
            let _ = writeln!(text, "  {literal}{name:NAMES$}{literal:#}  {about}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_on_one_line() {
        let table = Cli::command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut all: Vec<&str> = table.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
        for (name, about) in GROUPS.iter().flat_map(|(_, names)| members(&table, names)) {
            assert!(2 + NAMES + 2 + about.chars().count() <= 80, "{name}: {about}");
            assert!(name.len() <= NAMES, "{name}");
            // The template takes braces for its own.
            assert!(!about.contains(['{', '}']), "{name}: {about}");
        }
    }

    #[test]
    fn readme_lists_every_command_in_its_group() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        let readme = std::fs::read_to_string(path).expect("README.md of the repository");
        for (group, names) in GROUPS.iter().filter(|(group, _)| *group != "Help") {
            let row = readme.lines().find(|line| line.starts_with(&format!("| {group} |")));
            let row = row.unwrap_or_else(|| panic!("no row of {group}"));
            for name in *names {
                assert!(row.contains(&format!("`{name}")), "{name} is not in the row of {group}");
            }
        }
    }
}
