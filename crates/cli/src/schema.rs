//! `unwedge schema`: the JSON Schema of a command's output, or which commands have one.

use crate::args::{Global, SchemaArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use std::io::Write;
use unwedge_view::schema::{PUBLISHED, published};

/// Runs the command.
///
/// # Errors
/// When the command has no schema.
pub fn run(args: &SchemaArgs, global: &Global) -> Result<Outcome, Failure> {
    let mut out = Output::open(global, !args.command.is_empty());
    // A failed write is remembered by `out`, and reported by its `finish`.
    if args.command.is_empty() {
        for (verb, _) in PUBLISHED {
            let _ = writeln!(out, "{verb}");
        }
    } else {
        let verb = args.command.join(" ");
        let text = published(&verb).ok_or_else(|| {
            Failure::NotFound(format!(
                "no schema of `{verb}`: `unwedge schema` lists the commands that have one"
            ))
        })?;
        let _ = out.write_all(text.as_bytes());
    }
    out.finish()?;
    Ok(Outcome::Complete)
}
