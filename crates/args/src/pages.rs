//! Man pages and shell completions, from the argument table.
//!
//! Never: prints them, which the program and `cargo xtask dist` do.

use crate::groups;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

/// The completions of a shell.
pub fn completion_script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut groups::command(), "unwedge", &mut script);
    script
}

/// The man pages of the program and of every command, with the names of their files, for packages.
///
/// # Errors
/// When a page cannot be written to memory, which does not happen.
pub fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
        let name = command.get_display_name().unwrap_or("unwedge");
        pages.push((format!("{name}.1"), render(command)?));
        command.get_subcommands().try_for_each(|command| collect(command, pages))
    }
    let mut pages = Vec::new();
    collect(&built(), &mut pages)?;
    Ok(pages)
}

/// The completions of the shells that packages have a place for: the path below `/usr/share`, and the script.
pub fn completion_files() -> Vec<(&'static str, Vec<u8>)> {
    let places = [
        (Shell::Bash, "bash-completion/completions/unwedge"),
        (Shell::Zsh, "zsh/site-functions/_unwedge"),
        (Shell::Fish, "fish/vendor_completions.d/unwedge.fish"),
    ];
    places.map(|(shell, path)| (path, completion_script(shell))).into()
}

/// The argument table with the names of all commands filled in.
pub fn built() -> Command {
    let mut program = groups::command();
    program.build();
    program
}

/// The command that `path` names: a command and the command within it, as typed (`ir3 disasm`) or as its page is called
/// (`ir3-disasm`). `None` if it does not exist.
pub fn find<'c>(program: &'c Command, path: &[String]) -> Option<&'c Command> {
    let mut command = program;
    for name in path {
        let within = command.find_subcommand(name).or_else(|| {
            let (outer, inner) = name.split_once('-')?;
            command.find_subcommand(outer)?.find_subcommand(inner)
        });
        command = within?;
    }
    Some(command)
}

/// The man page of a command.
///
/// # Errors
/// When a page cannot be written to memory, which does not happen.
pub fn render(command: &Command) -> io::Result<Vec<u8>> {
    let title = command.get_display_name().unwrap_or("unwedge").to_owned();
    let version = format!("unwedge {}", env!("CARGO_PKG_VERSION"));
    // No date: the page is reproducible.
    let man =
        clap_mangen::Man::new(command.clone()).date("").source(version).title(title).manual("unwedge manual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_name() == "unwedge" {
        commands_in_groups(command).to_writer(&mut page)?;
    } else if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    if let Some(notes) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        sections(&notes.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// The commands in their groups, as sections of the program's page.
fn commands_in_groups(program: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["COMMANDS"]);
    for (group, names) in groups::GROUPS {
        roff.control("SS", [group]);
        for (name, about) in groups::members(program, names) {
            roff.control("TP", []);
            roff.text([bold(format!("unwedge-{name}")), roman("(1)")]);
            roff.text([roman(about)]);
        }
    }
    roff
}

/// Text whose headings end in a colon and whose examples and tables are indented, as sections of a page.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let (mut literal, mut headed) = (false, false);
    for line in text.lines() {
        let indented = line.starts_with(' ');
        let columns = indented || line.contains("  ");
        if literal && !columns {
            roff.control("fi", []);
            literal = false;
        }
        match line.strip_suffix(':') {
            _ if line.is_empty() => roff.control("PP", []),
            Some(heading) if !indented => {
                headed = true;
                roff.control("SH", [heading.to_uppercase().as_str()])
            }
            _ => {
                if !headed {
                    roff.control("SH", ["NOTES"]);
                    headed = true;
                }
                if columns && !literal {
                    roff.control("nf", []);
                    literal = true;
                }
                roff.text([roman(line)])
            }
        };
    }
    if literal {
        roff.control("fi", []);
    }
    roff
}
