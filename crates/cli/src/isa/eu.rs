//! `unwedge eu`; `eu check` says what code does that its GPU does not do as it is written.

use super::{deliver, source};
use crate::args::{EuAsm, EuCheck, EuCommand, EuDisasm, Global};
use crate::dump::{self, refuse_dump};
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::io::Write;
use unwedge::check::eu::{CheckOptions, Level, check as check_code};
use unwedge::isa::eu::Generation;
use unwedge_view::asm::eu::{self, EuText};
use unwedge_view::asm::eu_check::{self, CheckedEu, CheckedLines};
use unwedge_view::asm::hex;
use unwedge_view::plural::counted;

/// Runs the command.
pub(crate) fn run(command: &EuCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        EuCommand::Disasm(args) => disasm(args, global),
        EuCommand::Asm(args) => asm(args, global),
        EuCommand::Check(args) => check(args, global),
    }
}

fn disasm(args: &EuDisasm, global: &Global) -> Result<Outcome, Failure> {
    let input = Input::open(&args.file, global.max_size)?;
    let of = match (args.mesa, args.hex && !args.lossless) {
        (true, _) => EuText::Mesa,
        (false, true) => EuText::Reading,
        (false, false) => EuText::Lossless,
    };
    let (text, lost) = if args.hex {
        eu::lines_disassembled(args.platform, &String::from_utf8_lossy(&input.bytes), of)
    } else {
        let read = hex::prefixed_words(&input.bytes, 8);
        eu::disassembled(args.platform, read.as_deref().unwrap_or(&input.bytes), of)
    };
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(text.as_bytes());
    out.finish()?;
    if lost != 0 {
        let lost = counted(lost as u64, "instruction is not valid", "instructions are not valid");
        complain!("{}: {lost}", args.file.display());
    }
    Ok(if lost != 0 { Outcome::Lost } else { Outcome::Complete })
}

fn asm(args: &EuAsm, global: &Global) -> Result<Outcome, Failure> {
    let (name, text) = source(&args.file, global)?;
    if args.hex {
        let (text, failed) = eu::lines_assembled(args.platform, &text);
        deliver(text.as_bytes(), None, global)?;
        return if failed == 0 {
            Ok(Outcome::Complete)
        } else {
            Err(Failure::Source { name, errors: failed })
        };
    }
    let bytes = eu::assembled(args.platform, &text).map_err(|errors| {
        for text in errors.texts(&name) {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
        Failure::Source { name: name.clone(), errors: errors.count }
    })?;
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}

fn check(args: &EuCheck, global: &Global) -> Result<Outcome, Failure> {
    if args.platform.generation() > Generation::Xe2 {
        let name = args.platform.name();
        return Err(Failure::Usage(format!("eu check has no rules for {name}: it knows Gen8 to Xe2")));
    }
    let file = dump::open(&args.file, global.max_size)?.into_code(global.max_size)?;
    refuse_dump(&file, "eu check")?;
    let input = file.input;
    let shown = if args.all { Level::Note } else { args.deny.max(Level::Warning) };
    if args.hex {
        let checked = CheckedLines::of(args.platform, &String::from_utf8_lossy(&input.bytes));
        let mut out = Output::open(global, true);
        // A failed write is remembered, and reported by `finish`.
        let _ = match args.json {
            true => checked.json(shown, &mut out),
            false => checked.text(&input.name, shown, &mut out),
        };
        out.finish()?;
        for line in &checked.unread {
            complain!("{}:{line}: expected 8 or 16 bytes of an instruction", input.name);
        }
        return Ok(match (checked.has(args.deny), checked.unread.is_empty()) {
            (true, _) => Outcome::Found,
            (false, true) => Outcome::Complete,
            (false, false) => Outcome::Lost,
        });
    }
    let read = hex::prefixed_words(&input.bytes, 8);
    let bytes = read.as_deref().unwrap_or(&input.bytes);
    let options = CheckOptions { whole: args.whole, inputs: args.inputs };
    let report = check_code(args.platform, bytes, options);
    let code = CheckedEu { platform: args.platform, bytes, report: &report };
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let _ = match args.json {
        true => eu_check::json(&code, shown, &mut out),
        false => code.text(&input.name, shown, &mut out),
    };
    out.finish()?;
    let found = report.of_level(args.deny).next().is_some();
    if !report.complete {
        complain!("{}: too many ways through the code: not all were followed to their end", input.name);
    }
    Ok(match (found, report.complete) {
        (true, _) => Outcome::Found,
        (false, true) => Outcome::Complete,
        (false, false) => Outcome::Lost,
    })
}
