//! `unwedge shader reduce`: runs a command on each candidate. Never: chooses candidates, which `shader::reduce` does.

use super::{load, write_result};
use crate::args::{Global, ShaderReduce};
use crate::bounded::CommandEnd;
use crate::failure::{Failure, Outcome, complain};
use crate::progress::ProgressLine;
use crate::trial::TrialCommand;
use std::time::Duration;
use unwedge::shader::reduce::{ReduceError, reduce};
use unwedge::shader::text;
use unwedge_view::plural::counted;

/// Runs the command.
pub(super) fn run(args: &ShaderReduce, global: &Global) -> Result<Outcome, Failure> {
    let (name, shader) = load(&args.input, global)?;
    let limit = Duration::from_secs(args.timeout);
    let test = TrialCommand::new(&args.command, "shader.txt", limit)?;
    let (mut line, mut tried, mut smallest) = (ProgressLine::default(), 0_usize, shader.instruction_count());
    let result = reduce(&shader, args.tries, |candidate| {
        line.show(|| {
            let smallest = counted(smallest as u64, "instruction", "instructions");
            format!("reducing {name}: {tried} tried, {smallest}")
        });
        let text = text::print(candidate);
        // Errors on the shader itself show that the command does not work at all.
        let interesting = is_interesting(&test, &text, tried == 0)?;
        tried += 1;
        if interesting {
            smallest = candidate.instruction_count();
            if args.output.is_some() {
                write_result(args.output.as_deref(), &text, global)?;
            }
        }
        Ok(interesting)
    });
    drop(line);
    let reduction = result.map_err(|e| match e {
        ReduceError::NotInteresting => {
            let program = test.name();
            Failure::Unusable(format!(
                "{name}: {program} does not exit with status 0 within --timeout for the shader itself"
            ))
        }
        ReduceError::Predicate(failure) => failure,
    })?;
    if args.output.is_none() {
        write_result(None, &text::print(&reduction.shader), global)?;
    }
    let from = counted(shader.instruction_count() as u64, "instruction", "instructions");
    let tries = counted(reduction.tries as u64, "candidate", "candidates");
    let end = if reduction.limited { ", stopped by --tries" } else { "" };
    complain!("{name}: {from} reduced to {}, {tries} tried{end}", reduction.shader.instruction_count());
    Ok(Outcome::Complete)
}

/// Whether the command exits with status 0 for a shader. Its standard error is shown if `shown` is set.
fn is_interesting(test: &TrialCommand, text: &str, shown: bool) -> Result<bool, Failure> {
    let file = test.file();
    std::fs::write(file, text).map_err(|e| Failure::Write(file.display().to_string(), e))?;
    Ok(matches!(test.run(shown)?, CommandEnd::Exited(status) if status.success()))
}
