//! `unwedge ir3`, `unwedge ir2`, `unwedge eu`, `unwedge afuc`, `unwedge amd`: instructions to text and back; and the drop-ins for Mesa's afuc tools.

pub(crate) mod afuc;
pub(crate) mod afuc_run;
pub mod amd;
pub(crate) mod amd_check;
mod amd_dump;
mod amd_object;
mod amd_run;
pub mod amd_target;
pub(crate) mod eu;
pub(crate) mod ir2;
pub(crate) mod ir3;

use crate::args::Global;
use crate::dump::Opened;
use crate::failure::Failure;
use crate::output::Output;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use unwedge::base::Generation;
use unwedge::capture::Dump;
use unwedge::files::Input;
use unwedge_view::asm::shader_code::ShaderCode;

/// A line of a batch is never longer.
const MAX_LINE: u64 = 64 << 10;

/// Bytes to a file, or to standard output unless that is a terminal.
pub(crate) fn deliver(bytes: &[u8], file: Option<&Path>, global: &Global) -> Result<(), Failure> {
    if let Some(path) = file {
        return std::fs::write(path, bytes).map_err(|e| Failure::Write(path.display().to_string(), e));
    }
    if std::io::stdout().is_terminal() && !std::str::from_utf8(bytes).is_ok_and(is_text) {
        let message = "the result is binary, and standard output is a terminal: name a file with -o";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(bytes);
    Ok(out.finish()?)
}

/// No control characters but those of white space.
fn is_text(text: &str) -> bool {
    text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'))
}

/// A source as text.
pub(crate) fn source(file: &Path, global: &Global) -> Result<(String, String), Failure> {
    let input = Input::open(file, global.max_size)?;
    match String::from_utf8(input.bytes) {
        Ok(text) => Ok((input.name, text)),
        Err(e) => Err(Failure::Unusable(unwedge_view::asm::not_text(
            &input.name,
            e.as_bytes(),
            e.utf8_error().valid_up_to(),
        ))),
    }
}

/// The code at an address of a dump or a capture, up to the end of its buffer, and the generation of the GPU. Of a capture
/// it is what the first submit has there that has anything. `unit`: what the address is a multiple of, in bytes, and what
/// has to be there at least.
fn code_at(opened: Opened, at: u64, unit: u64, global: &Global) -> Result<(Vec<u32>, Generation), Failure> {
    if !at.is_multiple_of(unit) {
        return Err(Failure::Usage(format!(
            "no shader starts at {at:#x}: it is not a multiple of {unit} bytes"
        )));
    }
    let (name, kind, code) = match opened {
        Opened::Dump(files) => {
            let Ok(Dump::Msm(dump)) = files.read() else { return Err(files.not_of_msm()) };
            (files.name.clone(), "dump", ShaderCode::of_dump(&dump, at, unit))
        }
        Opened::Capture(mut stream) => {
            let code = ShaderCode::of_capture(&mut stream, at, unit, global.max_size);
            (stream.name.clone(), "capture", code)
        }
    };
    let generation = code
        .generation
        .ok_or_else(|| Failure::NotFound(format!("{name}: the {kind} does not tell which GPU it is of")))?;
    let words = code.words.ok_or_else(|| {
        Failure::NotFound(format!("{name}: the {kind} does not hold the memory at {at:#x}"))
    })?;
    Ok((words, generation))
}

/// Appends the answer to a line, or says why there is none.
pub type Answer<'a> = dyn FnMut(&str, &mut Vec<u8>) -> Result<(), String> + 'a;

/// Answers each line of standard input or of a file with one line, as soon as there is one.
fn batch(file: &Path, global: &Global, answer: &mut Answer<'_>) -> Result<(), Failure> {
    let source: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::io::Cursor::new(Input::open(file, global.max_size)?.bytes))
    };
    let mut reader = BufReader::with_capacity(64 << 10, source);
    let mut out = Output::open(global, false);
    let (mut line, mut reply) = (Vec::new(), Vec::new());
    let mut ended = Ok(());
    loop {
        line.clear();
        reply.clear();
        match read_line(&mut reader, &mut line) {
            Ok(true) => {}
            Ok(false) => break,
            Err(e) => {
                ended = Err(Failure::Input(unwedge::files::InputError::Io(file.display().to_string(), e)));
                break;
            }
        }
        let more = line.last() == Some(&b'\n');
        let outcome = match std::str::from_utf8(&line) {
            _ if line.len() as u64 > MAX_LINE => Err("the line is too long".to_owned()),
            Ok(text) => answer(text.trim_end_matches(['\n', '\r']), &mut reply),
            Err(_) => Err("the line is not text in UTF-8".to_owned()),
        };
        if let Err(message) = outcome {
            reply.clear();
            reply.extend_from_slice(b"error: ");
            reply.extend(message.lines().next().unwrap_or_default().bytes());
        }
        reply.push(b'\n');
        if out.write_all(&reply).is_err() || !more {
            break;
        }
        // Whoever waits for an answer before asking again gets it.
        if reader.buffer().is_empty() && out.flush().is_err() {
            break;
        }
    }
    out.finish()?;
    ended
}

/// Reads a line with its end; of one that is too long only the beginning is kept. `false` at the end.
fn read_line(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut any = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = chunk.iter().position(|&b| b == b'\n');
        let taken = end.map_or(chunk.len(), |at| at + 1);
        if line.len() as u64 <= MAX_LINE {
            line.extend_from_slice(&chunk[..taken]);
        }
        reader.consume(taken);
        if end.is_some() {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            return Ok(true);
        }
    }
}
