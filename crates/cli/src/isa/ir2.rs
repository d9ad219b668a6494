//! `unwedge ir2`.

use super::{code_at, deliver, source};
use crate::args::{Global, Ir2Command, Ir2Disasm, StageArg};
use crate::dump;
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::io::Write;
use unwedge::base::{Dwords, Generation};
use unwedge::isa::ir2::{Ir2ListingOptions, ShaderStage, listing};
use unwedge_view::asm::{hex, ir2};
use unwedge_view::plural::counted;

/// Runs the command.
pub(crate) fn run(command: &Ir2Command, global: &Global) -> Result<Outcome, Failure> {
    let args = match command {
        Ir2Command::Disasm(args) => return disasm(args, global),
        Ir2Command::Asm(args) => args,
    };
    let (name, text) = source(&args.file, global)?;
    let bytes = ir2::assembled(&text, args.hex).map_err(|errors| {
        for text in errors.texts(&name) {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
        Failure::Source { name: name.clone(), errors: errors.count }
    })?;
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}

fn disasm(args: &Ir2Disasm, global: &Global) -> Result<Outcome, Failure> {
    let mut left = 0;
    let mut foreign = false;
    let words = match args.shader_at {
        Some(at) => {
            let (code, generation) = code_at(dump::open(&args.file, global.max_size)?, at, 4, global)?;
            foreign = generation != Generation::A2xx;
            if foreign {
                complain!("{}: that is of {generation}, ir2 is of a2xx", args.file.display());
            }
            code
        }
        None => {
            let input = Input::open(&args.file, global.max_size)?;
            if args.hex {
                let text = String::from_utf8_lossy(&input.bytes);
                hex::short_words(&text).map_err(|line| {
                    let place = format!("{}: line {line}", input.name);
                    Failure::Unusable(format!("{place}: expected hexadecimal words of 32 bits"))
                })?
            } else {
                let read = hex::words(&input.bytes, 8);
                let (words, rest) = read.as_deref().unwrap_or(&input.bytes).as_chunks::<4>();
                left = rest.len();
                words.iter().map(|&w| u32::from_le_bytes(w)).collect()
            }
        }
    };
    let how = Ir2ListingOptions {
        stage: match args.stage {
            StageArg::Vertex => ShaderStage::Vertex,
            StageArg::Fragment => ShaderStage::Fragment,
        },
        tabs: 0,
        words: args.raw,
        // In a dump, other things follow the shader.
        complete: args.shader_at.is_none(),
    };
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(listing(Dwords::from(&words[..]), &how).as_bytes());
    out.finish()?;
    if left != 0 {
        let bytes = counted(
            left as u64,
            "byte at the end is not a whole word",
            "bytes at the end are not a whole word",
        );
        complain!("{}: {bytes}", args.file.display());
    }
    // Of another instruction set, nothing in the listing is what it says.
    Ok(if foreign || left != 0 { Outcome::Lost } else { Outcome::Complete })
}
