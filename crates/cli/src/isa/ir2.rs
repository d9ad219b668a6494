//! `unwedge ir2`.

use super::{code_in_dump, deliver, source};
use crate::args::{Global, Ir2Command, Ir2Disasm, StageArg};
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::io::Write;
use unwedge_base::{Dwords, Generation};
use unwedge_isa::ir2::{Listing, Stage, assemble, listing};

/// Runs the command.
pub fn run(command: &Ir2Command, global: &Global) -> Result<Outcome, Failure> {
    let args = match command {
        Ir2Command::Disasm(args) => return disasm(args, global),
        Ir2Command::Asm(args) => args,
    };
    let (name, text) = source(&args.file, global)?;
    let words = assemble(&text).map_err(|complaints| {
        let lines: Vec<&str> = text.lines().collect();
        for c in &complaints {
            let line = c.line.checked_sub(1).and_then(|at| lines.get(at)).copied().unwrap_or_default();
            let mark: String = line
                .chars()
                .take(c.column.saturating_sub(1))
                .map(|c| if c == '\t' { c } else { ' ' })
                .collect();
            let place = format_args!("{name}:{}:{}", c.line, c.column);
            let _ = writeln!(std::io::stderr(), "{place}: {}\n  {line}\n  {mark}^", c.message);
        }
        Failure::Source { name: name.clone(), mistakes: complaints.len() }
    })?;
    let bytes = if args.hex {
        words.iter().map(|word| format!("{word:08x}\n")).collect::<String>().into_bytes()
    } else {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    };
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}

fn disasm(args: &Ir2Disasm, global: &Global) -> Result<Outcome, Failure> {
    let mut left = 0;
    let mut foreign = false;
    let words = match args.shader_at {
        Some(at) => {
            let (code, generation) = code_in_dump(&args.file, at, 4, global)?;
            foreign = generation != Generation::A2xx;
            if foreign {
                complain!("{}: the dump is of {generation}, ir2 is of a2xx", args.file.display());
            }
            code
        }
        None => {
            let input = Input::open(&args.file, global.max_size)?;
            if args.hex {
                hex(&input)?
            } else {
                let (words, rest) = input.bytes.as_chunks::<4>();
                left = rest.len();
                words.iter().map(|&w| u32::from_le_bytes(w)).collect()
            }
        }
    };
    let how = Listing {
        stage: match args.stage {
            StageArg::Vertex => Stage::Vertex,
            StageArg::Fragment => Stage::Fragment,
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
        complain!("{}: {left} bytes at the end are no word", args.file.display());
    }
    // Of another instruction set, nothing in the listing is what it says.
    Ok(if foreign || left != 0 { Outcome::Lost } else { Outcome::Complete })
}

/// Words between blanks.
fn hex(input: &Input) -> Result<Vec<u32>, Failure> {
    let text = String::from_utf8_lossy(&input.bytes);
    let word = |word: &str| u32::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16);
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for part in line.split_whitespace() {
            words.push(word(part).map_err(|_| {
                let place = format!("{}: line {}", input.name, number + 1);
                Failure::Unusable(format!("{place}: expected hexadecimal words of 32 bits"))
            })?);
        }
    }
    Ok(words)
}
