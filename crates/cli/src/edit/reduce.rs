//! `unwedge reduce`: has candidates judged, and writes the best one. Never: makes candidates, which `edit::reduce` does.

use super::{CaptureFile, held};
use crate::args::{Global, Reduce};
use crate::bounded::CommandEnd;
use crate::database;
use crate::failure::{Failure, Outcome, complain};
use crate::packed::Packed;
use crate::progress::ProgressLine;
use crate::trial::TrialCommand;
use std::fs;
use std::io::Write;
use std::time::Duration;
use unwedge::edit::reduce::{ReduceError, reduce};
use unwedge_view::plural::counted;
use unwedge_view::replay::hang_signature;

/// Runs the command.
///
/// # Errors
/// [`Failure`] for a capture that cannot be read or does not show the fault, and results that cannot be written.
pub fn run(args: &Reduce, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let name = args.file.display().to_string();
    let file = CaptureFile::new(&args.file, global.max_size)?;
    let capture = held(file.open()?, &args.file, global.max_size)?;
    let command = match args.trials.command.is_empty() {
        true => None,
        false => Some(TrialCommand::new(
            &args.trials.command,
            "candidate.rd",
            Duration::from_secs(args.trials.timeout),
        )?),
    };
    let verdict = |bytes: &[u8]| hang_signature(bytes, args.trials.max_steps, &db, global.max_size);
    let wanted = if command.is_none() { verdict(&capture) } else { None };
    if let (None, None) = (&command, &wanted) {
        let message =
            "the virtual Adreno replays the capture without a hang or fault; name a command after `--`";
        return Err(Failure::Unusable(format!("{name}: {message}")));
    }
    let (mut line, mut tried, mut smallest) = (ProgressLine::default(), 0_u64, capture.len());
    let result = reduce(&capture, &db, args.tries, |candidate| {
        line.show(|| {
            format!("reducing {name}: {tried} tried, {}", counted(smallest as u64, "byte", "bytes"))
        });
        let shows = match &command {
            Some(command) => accepted(command, candidate, tried == 0)?,
            None => verdict(candidate) == wanted,
        };
        tried += 1;
        if shows && candidate.len() < smallest {
            smallest = candidate.len();
            // What was found is kept, however the reduction ends.
            if args.to.output.is_some() {
                written(args, candidate)?;
            }
        }
        Ok(shows)
    });
    drop(line);
    let reduction = result.map_err(|error| match error {
        ReduceError::NotInteresting => {
            let program =
                command.as_ref().map_or_else(|| "the virtual Adreno".to_owned(), TrialCommand::name);
            Failure::Unusable(format!("{name}: {program} does not show the fault with the capture itself"))
        }
        ReduceError::Predicate(failure) => failure,
    })?;
    written(args, &reduction.capture)?;
    let (from, to) = (reduction.from, reduction.capture.len());
    let percent = 100.0 * to as f64 / from.max(1) as f64;
    let tries = counted(reduction.tries as u64, "candidate", "candidates");
    let end = if reduction.limited { ", stopped by --tries" } else { "" };
    complain!(
        "{name}: {} reduced to {to} ({percent:.2} %), {tries} tried{end}",
        counted(from as u64, "byte", "bytes")
    );
    if let Some(signature) = wanted {
        complain!("{name}: the verdict is {signature}");
    }
    Ok(Outcome::of(&name, &reduction.diagnostics))
}

/// Whether the command exits with status 0 for a candidate.
fn accepted(command: &TrialCommand, candidate: &[u8], shown: bool) -> Result<bool, Failure> {
    let file = command.file();
    fs::write(file, candidate).map_err(|e| Failure::Write(file.display().to_string(), e))?;
    Ok(matches!(command.run(shown)?, CommandEnd::Exited(status) if status.success()))
}

fn written(args: &Reduce, capture: &[u8]) -> Result<(), Failure> {
    let mut packed = Packed::create(args.to.output.as_deref(), args.to.compress, &[&args.file])?;
    packed.write_all(capture).map_err(|e| Failure::Write("the reduced capture".to_owned(), e))?;
    packed.commit()
}
