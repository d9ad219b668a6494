//! `unwedge eu`.

use super::{deliver, source};
use crate::args::{EuAsm, EuCommand, EuDisasm, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::io::Write;
use unwedge_view::asm::eu::{self, EuText};
use unwedge_view::asm::hex;
use unwedge_view::plural::counted;

/// Runs the command.
pub(crate) fn run(command: &EuCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        EuCommand::Disasm(args) => disasm(args, global),
        EuCommand::Asm(args) => asm(args, global),
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
