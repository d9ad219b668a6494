//! `unwedge replay`: executes a capture on the virtual Adreno.

use crate::args::{Global, MemoryArg, Replay};
use crate::database;
use crate::dump;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::packed::Packed;
use crate::progress::Progress;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use unwedge::sim::adreno::Loading;
use unwedge::stream::play::SubmitChoice;
use unwedge_view::CaptureStream;
use unwedge_view::json::Heading;
use unwedge_view::replay::{self, ReplayOptions, Replayed};

/// Version of the schema of `--json`.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct ReplayJson<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    file: &'a str,
    #[serde(flatten)]
    replayed: &'a Replayed,
}

/// Runs the command.
pub fn run(args: &Replay, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let stream = dump::open_capture(&args.file)?;
    let name = stream.name.clone();
    let what = format!("replaying {name}");
    let mut source = Progress::new(stream, what);
    let (replayed, mut diagnostics) = replay::replay(&mut source, &options(args), &db, global.max_size);
    diagnostics.splice(0..0, source.source().diagnostics());
    if replayed.submits() == 0 && diagnostics.is_empty() {
        return Err(Failure::NotFound(format!("{name}: no submit is chosen")));
    }
    for (dump, bytes) in args.dump_mem.iter().zip(&replayed.memory) {
        match bytes {
            Some(bytes) => write(&dump.file, bytes, &args.file)?,
            None => diagnostics.push(replay::absent(&dump.wanted)),
        }
    }
    let hang = replayed.hang.as_ref();
    let files = [
        (&args.devcoredump, hang.map(|hang| &hang.devcoredump)),
        (&args.hangrd, hang.map(|hang| &hang.hangrd)),
    ];
    for (file, bytes) in files.into_iter().filter_map(|(file, bytes)| Some((file.as_ref()?, bytes))) {
        match bytes {
            Some(bytes) => write(file, bytes, &args.file)?,
            None => diagnostics.push(replay::no_hang(&file.to_string_lossy())),
        }
    }
    let mut out = Output::open(global, !args.json);
    let style = out.style;
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = if args.json {
        let heading = Heading::of_object("unwedge.replay", SCHEMA, db.identity());
        let object = ReplayJson { heading, file: &name, replayed: &replayed };
        serde_json::to_writer(&mut out, &object).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        writeln!(out, "{}", style.bold(&name)).and_then(|()| replayed.text(style, &mut out))
    };
    out.finish()?;
    let outcome = Outcome::of(&name, &diagnostics);
    Ok(match outcome {
        Outcome::Complete if !replayed.is_complete() => Outcome::Found,
        outcome => outcome,
    })
}

fn options(args: &Replay) -> ReplayOptions {
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let submits = number(args.first)..=args.last.map_or(i32::MAX, number);
    ReplayOptions {
        choice: SubmitChoice { submits, exe: args.exe.clone(), compositors: true, one_gpu: false },
        loading: match args.memory {
            MemoryArg::Delta => Loading::Delta,
            MemoryArg::Snapshot => Loading::Snapshot,
        },
        steps: args.max_steps,
        wanted: args.dump_mem.iter().map(|dump| dump.wanted).collect(),
        dump: args.devcoredump.is_some() || args.hangrd.is_some(),
    }
}

fn write(file: &Path, bytes: &[u8], input: &Path) -> Result<(), Failure> {
    let mut packed = Packed::create(Some(file), None, &[input])?;
    packed.write_all(bytes).map_err(|e| Failure::Write(file.display().to_string(), e))?;
    packed.commit()
}
