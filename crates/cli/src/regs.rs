//! `unwedge regs`: looks registers, packets and enums up, and decodes values.

use crate::args::{self, Global, SpaceArg};
use crate::database;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use unwedge::hw::{Db, RegSpace};
use unwedge_view::regs::chip::intel_platform;
use unwedge_view::regs::{Answers, LookupError, amd, intel, questions};

/// Runs the command.
pub fn run(args: &args::Regs, global: &Global) -> Result<Outcome, Failure> {
    let usage = |e: LookupError| Failure::Usage(e.to_string());
    let questions = questions(&args.queries);
    // Every database has the built-in devices; that of a user is not needed to tell whose GPU it is.
    let devices = Db::builtin();
    let Some(chip) = devices.identify_name(&args.chip) else {
        let unknown = || {
            let examples = "a630, a6xx, FD630 or 6.3.0.2, of AMD's gfx1030, navi21 or 1002:73bf, of Intel's tgl, 0x9a49 or 12.70";
            Failure::Usage(format!("{}: not a known GPU; examples are {examples}", args.chip))
        };
        let facts = Db::amd();
        let amd = amd::amd_gpu(&args.chip, &facts);
        let platform = intel_platform(&args.chip);
        if args.space.is_some() && (amd.is_some() || platform.is_some()) {
            return Err(Failure::Usage("--space is for Adreno GPUs".to_owned()));
        }
        if let Some(gpu) = amd {
            let answers = amd::Answers::of(&facts, &gpu, &questions).map_err(usage)?;
            let mut out = Output::open(global, false);
            let style = out.style;
            // A failed write is remembered by `out`, and reported by its `finish`.
            let _ = if args.json { answers.json(&mut out) } else { answers.text(style, &mut out) };
            out.finish()?;
            return answers
                .missing()
                .map_or(Ok(Outcome::Complete), |message| Err(Failure::NotFound(message)));
        }
        let (version, _) = platform.ok_or_else(unknown)?;
        let answers = intel::Answers::of(version, &questions).map_err(usage)?;
        let mut out = Output::open(global, false);
        let style = out.style;
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = if args.json { answers.json(&mut out) } else { answers.text(style, &mut out) };
        out.finish()?;
        return answers.missing().map_or(Ok(Outcome::Complete), |message| Err(Failure::NotFound(message)));
    };
    let db = database::load(global)?;
    let spaces = match args.space {
        None => vec![RegSpace::Gpu, RegSpace::Gmu, chip.control(), RegSpace::CpPipe, RegSpace::Sqe],
        Some(SpaceArg::Gpu) => vec![RegSpace::Gpu],
        Some(SpaceArg::Gmu) => vec![RegSpace::Gmu],
        Some(SpaceArg::Control) => vec![chip.control()],
        Some(SpaceArg::Pipe) => vec![RegSpace::CpPipe],
        Some(SpaceArg::Sqe) => vec![RegSpace::Sqe],
    };
    let answers = Answers::of(&db, chip, &spaces, &questions).map_err(usage)?;
    let mut out = Output::open(global, false);
    let style = out.style;
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = if args.json { answers.json(&mut out) } else { answers.text(style, &mut out) };
    out.finish()?;
    answers.missing().map_or(Ok(Outcome::Complete), |message| Err(Failure::NotFound(message)))
}
