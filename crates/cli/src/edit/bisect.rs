//! `unwedge bisect`: runs trials, and keeps the record of a search in a file. Never: chooses trials, which `edit::bisect` does.

use super::{CaptureFile, failed};
use crate::args::{Bisect, Global};
use crate::bounded::CommandEnd;
use crate::database;
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use crate::progress::ProgressLine;
use crate::trial::TrialCommand;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;
use unwedge::base::hash::Fnv1a;
use unwedge::edit::bisect::{BisectEnd, BisectPlan, BisectSearch, BisectStep, BisectSubject, TrialVerdict};
use unwedge::edit::rewrite::AddressSpace;
use unwedge::hw::Db;
use unwedge_view::edit::bisected;
use unwedge_view::plural::counted;
use unwedge_view::replay::hang_signature;
use unwedge_view::value::address;

/// What is searched, and how a record calls it.
fn subject(args: &Bisect) -> Result<(BisectSubject, String), Failure> {
    if let Some(stomp) = args.stomping() {
        let (range, points) = (&stomp.range, &stomp.points);
        let name = format!("registers {:#x}..{:#x} {points:?}", range.start(), range.end());
        return Ok((BisectSubject::Registers(stomp), name));
    }
    if let Some(file) = &args.shaders {
        let named = |e: &dyn std::fmt::Display| Failure::Unusable(format!("{}: {e}", file.display()));
        let text = fs::read_to_string(file).map_err(|e| named(&e))?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let shaders: Result<Vec<u64>, String> = lines.filter(|line| !line.is_empty()).map(address).collect();
        let shaders = shaders.map_err(|e| named(&e))?;
        let name = format!("instructions of {shaders:x?}");
        return Ok((BisectSubject::Instructions(shaders), name));
    }
    Ok(match args.draws {
        true => (BisectSubject::Draws, "draws".to_owned()),
        false => (BisectSubject::Packets, "packets".to_owned()),
    })
}

/// What says whether a trial is bad.
enum Judge {
    Command(TrialCommand),
    /// The virtual Adreno: the signature of the capture itself.
    Sim {
        steps: u64,
        signature: Option<String>,
    },
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] for a capture that cannot be read, a command that cannot be started, and a record that is not of this search.
pub fn run(args: &Bisect, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let (subject, subject_name) = subject(args)?;
    let by_registers = matches!(subject, BisectSubject::Registers(_));
    let capture = CaptureFile::new(&args.file, global.max_size)?;
    let name = args.file.display().to_string();
    let space = AddressSpace::scan(capture.open()?);
    let (plan, diagnostics) = BisectPlan::new(subject, space, capture.open()?, &db, global.max_size)
        .map_err(|e| failed(&name, e))?;
    let outcome = Outcome::of(&name, &diagnostics);
    if plan.items().is_empty() {
        return Err(Failure::NotFound(format!("{name}: there is nothing to search")));
    }
    let judge = judge(args, &capture, by_registers, &db, global)?;
    let mut fingerprint = Fnv1a::default();
    io::copy(&mut capture.open()?, &mut FingerprintWriter(&mut fingerprint))?;
    let fresh = BisectSearch::new(&subject_name, fingerprint.value(), plan.items().len());
    let mut search = resumed(fresh, args.state.as_deref())?;
    let mut line = ProgressLine::default();
    let end = loop {
        let count = match search.next() {
            BisectStep::End(end) => break end,
            BisectStep::Try(count) => count,
        };
        line.show(|| {
            let left = counted(search.left() as u64, "item is", "items are");
            format!(
                "bisecting {name}: {} done, {left} left",
                counted(search.trials() as u64, "trial", "trials")
            )
        });
        let verdict =
            tried(&plan, count, &judge, &capture, by_registers, (&db, global), search.trials() == 0)?;
        search.learn(count, verdict);
        if let Some(state) = &args.state {
            record(state, &search.record()).map_err(|e| Failure::Write(state.display().to_string(), e))?;
        }
    };
    drop(line);
    let mut out = Output::open(global, false);
    // A failed write is remembered by the output, and reported by its `finish`.
    let _ = writeln!(out, "{}", bisected(end, &plan, &search, &db));
    out.finish()?;
    Ok(if matches!(end, BisectEnd::Culprit(_) | BisectEnd::Among(..)) { outcome } else { Outcome::Lost })
}

fn judge(
    args: &Bisect,
    capture: &CaptureFile,
    by_registers: bool,
    db: &Db,
    global: &Global,
) -> Result<Judge, Failure> {
    if !args.trials.command.is_empty() {
        let limit = Duration::from_secs(args.trials.timeout);
        return Ok(Judge::Command(TrialCommand::new(&args.trials.command, "trial.rd", limit)?));
    }
    let signature = hang_signature(capture.open()?, args.trials.max_steps, db, global.max_size);
    if signature.is_none() && !by_registers {
        let message =
            "the virtual Adreno replays the capture without a hang or fault; name a command after `--`";
        return Err(Failure::Unusable(format!("{}: {message}", args.file.display())));
    }
    Ok(Judge::Sim { steps: args.trials.max_steps, signature })
}

/// Makes a trial and has it judged.
fn tried(
    plan: &BisectPlan,
    count: usize,
    judge: &Judge,
    capture: &CaptureFile,
    by_registers: bool,
    (db, global): (&Db, &Global),
    first: bool,
) -> Result<TrialVerdict, Failure> {
    match judge {
        Judge::Command(command) => {
            let file = command.file();
            let written = |e: io::Error| Failure::Write(file.display().to_string(), e);
            let mut out = BufWriter::new(File::create(file).map_err(written)?);
            let made = plan.trial(count, capture.open()?, db, global.max_size, &mut out);
            made.map_err(|e| failed(&file.display().to_string(), e))?;
            out.flush().map_err(written)?;
            drop(out);
            let CommandEnd::Exited(status) = command.run(first)? else { return Ok(TrialVerdict::Bad) };
            let verdict = status.code().and_then(TrialVerdict::of_status);
            verdict.ok_or_else(|| {
                Failure::Unusable(format!("{} ended with {status}: the search stops", command.name()))
            })
        }
        Judge::Sim { steps, signature } => {
            let mut trial = Vec::new();
            let made = plan.trial(count, capture.open()?, db, global.max_size, &mut trial);
            made.map_err(|e| failed("trial", e))?;
            let same = hang_signature(&trial[..], *steps, db, global.max_size) == *signature;
            Ok(if same == by_registers { TrialVerdict::Good } else { TrialVerdict::Bad })
        }
    }
}

struct FingerprintWriter<'f>(&'f mut Fnv1a);

impl Write for FingerprintWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The search, from where its record ends.
fn resumed(fresh: BisectSearch, state: Option<&Path>) -> Result<BisectSearch, Failure> {
    let Some(state) = state else { return Ok(fresh) };
    match fs::read_to_string(state) {
        Ok(text) => {
            let search =
                fresh.resume(&text).map_err(|e| Failure::Unusable(format!("{}: {e}", state.display())))?;
            complain!(
                "{}: {} known",
                state.display(),
                counted(search.trials() as u64, "trial is", "trials are")
            );
            Ok(search)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(fresh),
        Err(e) => Err(Failure::Unusable(format!("{}: {e}", state.display()))),
    }
}

/// Writes a record whole, or leaves the one that was there.
fn record(state: &Path, text: &str) -> io::Result<()> {
    let mut draft = state.as_os_str().to_owned();
    draft.push(".part");
    let mut file = File::create(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, state)
}
