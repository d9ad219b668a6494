//! What `amd asm`, `amd disasm`, and `info` of code objects print, in memory. Never: files, the terminal, other processes; errors of a
//! source are printed on standard error, as the verbs do.

use std::io::Write;
use unwedge::capture::bundle::Bundle;
use unwedge::capture::elf::Loader;
use unwedge::isa::amdgcn::Gpu;
use unwedge_cli::args::{AmdDisasm, AmdTarget};
use unwedge_cli::isa::Answer;
use unwedge_cli::isa::amd::disassembled;
use unwedge_cli::isa::amd_target::assembled;
use unwedge_view::Style;
use unwedge_view::asm::amd::{Emit, assembled_line, disassembled_line};
use unwedge_view::info::objects::{ObjectSummary, table};

/// The most bytes that are unpacked of a file.
const UNPACKED: u64 = 1 << 24;
/// How many code objects of a file are disassembled.
const OBJECTS: u64 = 16;

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// `amd asm`
    Assemble,
    /// `amd asm --emit hex`
    AssembleHex,
    /// `amd asm --hex`
    AssembleLines,
    /// `amd disasm`
    Disassemble,
    /// `amd disasm --words`
    DisassembleWords,
    /// `amd disasm --hex`
    DisassembleLines,
    /// `info`, and `amd disasm` of every code object of a bundle, program or archive
    Objects,
}

impl View {
    /// Every view.
    pub const ALL: [View; 7] = [
        View::Assemble,
        View::AssembleHex,
        View::AssembleLines,
        View::Disassemble,
        View::DisassembleWords,
        View::DisassembleLines,
        View::Objects,
    ];

    /// The most bytes that it prints for an input of so many. Sources may ask for any number of bytes: the assembler stops
    /// at a size of its own.
    pub fn limit(self, input: u64) -> u64 {
        const ASSEMBLER: u64 = 1 << 30;
        match self {
            View::Assemble | View::AssembleHex => ASSEMBLER,
            // The same bytes may be in several of its objects.
            View::Objects => 64 * OBJECTS * input + (1 << 20),
            _ => 64 * input + (1 << 20),
        }
    }
}

/// Prints one view on `out`. The error is what the program says when it cannot use the input.
///
/// # Errors
///
/// The message of the program, if the source does not assemble or the object cannot be used.
pub fn show(view: View, bytes: &[u8], gpu: Gpu, out: &mut dyn Write) -> Result<(), String> {
    let text = || std::str::from_utf8(bytes).map_err(|e| e.to_string());
    let assemble = |emit| {
        let made = assembled("source", text()?, &gpu, emit);
        made.map_err(|failure| failure.to_string())
    };
    let printed = match view {
        View::Assemble => assemble(Emit::Object(Loader::Hsa(5)))?,
        View::AssembleHex => assemble(Emit::Hex)?,
        View::AssembleLines => {
            each_line(text()?, out, &mut |line, reply| {
                assembled_line(line, &gpu, reply).map_err(|e| e.to_string())
            });
            return Ok(());
        }
        View::DisassembleLines => {
            let mut words = Vec::new();
            each_line(text()?, out, &mut |line, reply| {
                disassembled_line(line, &gpu, &mut words, reply).map_err(|e| e.to_string())
            });
            return Ok(());
        }
        View::Objects => {
            let bundle = Bundle::read(bytes, UNPACKED).ok_or("holds no other files")?;
            let printed = table(&ObjectSummary::of_bundle(&bundle), Style { colour: false }, out);
            printed.map_err(|e| e.to_string())?;
            for entry in bundle.code_objects().take(OBJECTS as usize) {
                let args = disasm(AmdTarget { gpu: None, features: None }, false);
                let _ = disassembled(&entry.name(), bundle.bytes(entry), &args, &mut |part| {
                    let _ = out.write_all(part.as_bytes());
                });
            }
            return Ok(());
        }
        View::Disassemble | View::DisassembleWords => {
            let target = AmdTarget { gpu: Some(gpu.name().to_owned()), features: None };
            let args = disasm(target, view == View::DisassembleWords);
            let mut text = String::new();
            disassembled("code", bytes, &args, &mut |part| text.push_str(part))
                .map_err(|failure| failure.to_string())?;
            text.into_bytes()
        }
    };
    // A failed write is for the owner of `out` to remember.
    let _ = out.write_all(&printed);
    Ok(())
}

/// The options of `amd disasm` of a code object, or of bare code.
fn disasm(target: AmdTarget, words: bool) -> AmdDisasm {
    AmdDisasm { file: "-".into(), target, object: None, hex: false, words, shader: None, function: None }
}

fn each_line(text: &str, out: &mut dyn Write, answer: &mut Answer<'_>) {
    let mut reply = Vec::new();
    for line in text.lines() {
        reply.clear();
        if let Err(message) = answer(line, &mut reply) {
            reply.extend_from_slice(message.as_bytes());
        }
        reply.push(b'\n');
        let _ = out.write_all(&reply);
    }
}
