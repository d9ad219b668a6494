//! `unwedge aco bisect`: judges code by a command, or on the emulator. Never: chooses phases, which `view::aco::bisect` does.

use super::{failed, form, options, request};
use crate::args::{AcoBisect, Global};
use crate::bounded::CommandEnd;
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use crate::progress::ProgressLine;
use crate::shader::{bound, load, load_file};
use crate::trial::TrialCommand;
use std::io::Write;
use std::time::Duration;
use unwedge::shader::ir::Shader;
use unwedge_view::aco::bisect::{BisectResult, CodeVerdict, bisect, fill};
use unwedge_view::aco::{CompileView, EmulationView, Options};

/// The exit status of a command that cannot judge.
const SKIP: i32 = 125;

/// Runs the command.
pub(super) fn run(args: &AcoBisect, global: &Global) -> Result<Outcome, Failure> {
    let options = options(&args.codegen)?;
    let mut shaders = vec![load(&args.input, global)?];
    for file in &args.also {
        shaders.push(load_file(file, &args.input, global)?);
    }
    let trial = match args.command.is_empty() {
        true => None,
        false => Some(TrialCommand::new(&args.command, "code.co", Duration::from_secs(args.timeout))?),
    };
    let mut out = Output::open(global, true);
    let mut outcome = Outcome::Complete;
    for (name, shader) in &shaders {
        let (mut line, mut tried) = (ProgressLine::default(), 0_usize);
        let mut test = |options: &Options| {
            line.show(|| format!("{name}: {tried} tried"));
            tried += 1;
            // The messages of the command on the first code show whether it works at all.
            judge(args, name, shader, options, trial.as_ref(), tried == 1, global)
        };
        let result = bisect(shader, &options, &mut test)?;
        drop(line);
        let _ = write!(out, "{name}: {result}");
        match result {
            BisectResult::Good => {}
            BisectResult::Skip | BisectResult::NeededSkip => outcome = Outcome::Lost,
            BisectResult::Needed | BisectResult::Phase(_) => {
                outcome = Outcome::Found;
                break;
            }
        }
    }
    out.finish()?;
    Ok(outcome)
}

/// Compiles a shader and judges its code; how many changes combining made.
fn judge(
    args: &AcoBisect,
    name: &str,
    shader: &Shader,
    options: &Options,
    trial: Option<&TrialCommand>,
    shown: bool,
    global: &Global,
) -> Result<(CodeVerdict, u32), Failure> {
    let view = match CompileView::of(&mut shader.clone(), options) {
        Ok(view) => view,
        Err(error) => {
            if shown {
                complain!("{name}: {error}");
            }
            return Ok((CodeVerdict::Skip, 0));
        }
    };
    let verdict = match trial {
        Some(trial) => by_command(args, &view, trial, shown)?,
        None => {
            let mut bindings = bound(&args.emulation.bindings, global)?;
            fill(shader, &mut bindings, global.max_size).map_err(|error| {
                Failure::Unusable(format!(
                    "{name}: {error}; --buffer gives a smaller one, --max-size allows more"
                ))
            })?;
            let request = request(&args.emulation, true, &[]);
            let ran = EmulationView::of(shader, &view, options, &mut bindings, &request);
            let ran = ran.map_err(|error| failed(name, &error))?;
            match ran.not_compared() {
                Some(why) => {
                    if shown {
                        complain!("{name}: {why}");
                    }
                    CodeVerdict::Skip
                }
                None if ran.is_good() => CodeVerdict::Good,
                None => CodeVerdict::Bad,
            }
        }
    };
    Ok((verdict, view.combinations()))
}

fn by_command(
    args: &AcoBisect,
    view: &CompileView,
    trial: &TrialCommand,
    shown: bool,
) -> Result<CodeVerdict, Failure> {
    let bytes = view.bytes(form(args.emit)).map_err(|e| Failure::Unusable(e.to_string()))?;
    let file = trial.file();
    std::fs::write(file, bytes).map_err(|e| Failure::Write(file.display().to_string(), e))?;
    let status = match trial.run(shown)? {
        CommandEnd::Exited(status) => status.code(),
        _ => None,
    };
    match status {
        Some(0) => Ok(CodeVerdict::Good),
        Some(SKIP) => Ok(CodeVerdict::Skip),
        Some(status) if status > 127 => {
            let name = trial.name();
            Err(Failure::Unusable(format!("{name} exits with status {status}, which is not a verdict")))
        }
        // A command that is killed, by a signal or for its time, shows that the code is bad.
        Some(_) | None => Ok(CodeVerdict::Bad),
    }
}
