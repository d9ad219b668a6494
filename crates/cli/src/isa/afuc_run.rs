//! `unwedge afuc run`: the emulated command processor, by commands that are typed or come from a script.

use crate::args::{AfucRun, Global, ProcessorArg};
use crate::database;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Output;
use std::io::{self, BufRead, IsTerminal, Write};
use unwedge::isa::afuc::DbNames;
use unwedge::isa::afuc::{FirmwareBlob, Processor};
use unwedge::sim::adreno::sqe::{self, SqeEmulator};
use unwedge_view::asm::sqe_session::Session;

/// Runs the command.
pub(crate) fn run(args: &AfucRun, global: &Global) -> Result<Outcome, Failure> {
    let input = Input::open(&args.file, global.max_size)?;
    let db = database::load(global)?;
    let names = DbNames::new(&db);
    let blob = FirmwareBlob::new(&input.bytes);
    let unusable = |what: &str| Failure::Unusable(format!("{}: {what}", input.name));
    let firmware = args
        .gpuver
        .or(blob.firmware())
        .ok_or_else(|| unusable("no known firmware: name its id with --gpuver"))?;
    let processor = match args.processor {
        ProcessorArg::Sqe => Processor::Sqe,
        ProcessorArg::Bv => Processor::Bv,
        ProcessorArg::Lpac => Processor::Lpac,
    };
    let sections = sqe::sections(&blob.words, firmware, &names);
    let section = sections
        .iter()
        .find(|section| section.processor == processor)
        .ok_or_else(|| unusable("the firmware has no part for that processor"))?;
    let code = blob.words.get(section.start..).unwrap_or_default();
    let mut session = Session::new(SqeEmulator::new(firmware, code, processor, &names));
    let script = match &args.script {
        Some(file) => Some(super::source(file, global)?.1),
        None if !args.commands.is_empty() => Some(args.commands.join("\n")),
        None => None,
    };
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    match script {
        Some(script) => drive(&mut session, script.as_bytes(), false, &mut out),
        None => drive(&mut session, io::stdin().lock(), io::stdin().is_terminal(), &mut out),
    }
    .or_else(|e| {
        if e.kind() == io::ErrorKind::InvalidData { Err(unusable("a command is not UTF-8")) } else { Ok(()) }
    })?;
    out.finish()?;
    Ok(Outcome::of(&input.name, &input.diagnostics))
}

/// Does what the lines say, with a prompt where somebody types them.
fn drive(session: &mut Session<'_>, lines: impl BufRead, prompt: bool, out: &mut Output) -> io::Result<()> {
    let mut lines = lines.lines();
    let mut text = String::new();
    loop {
        if prompt {
            text.clear();
            session.show_next(&mut text);
            write!(out, "{text}> ")?;
            out.flush()?;
        }
        let Some(line) = lines.next().transpose()? else { return Ok(()) };
        text.clear();
        let go_on = session.command(&line, &mut text);
        out.write_all(text.as_bytes())?;
        out.flush()?;
        if !go_on {
            return Ok(());
        }
    }
}
