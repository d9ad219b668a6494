//! `unwedge amd asm` and `unwedge amd disasm`; `amd check` and `amd run` are files of their own.

use super::amd_dump::{self, AmdInput, DumpShaders};
use super::amd_object;
use super::amd_target::{assembled, gpu, object_gpu, source_gpu};
use super::{batch, deliver, source};
use crate::args::{AmdAsm, AmdCommand, AmdDisasm, AmdEmit, AmdLoader, Global};
use crate::dump::refuse_dump;
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use std::io::Write;
use unwedge::capture::elf::{self, Loader, NotCodeObject};
use unwedge::isa::amdgcn::listing::{self, AmdListingOptions, ListingCounts};
use unwedge_view::asm::amd::{Emit, assembled_line, disassembled_line, list_object};
use unwedge_view::asm::{amd_shaders, hex};
use unwedge_view::plural::counted;

/// Runs the command.
pub(crate) fn run(command: &AmdCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        AmdCommand::Asm(args) if args.hex => asm_batch(args, global),
        AmdCommand::Asm(args) => asm(args, global),
        AmdCommand::Disasm(args) if args.hex => disasm_batch(args, global),
        AmdCommand::Disasm(args) => disasm(args, global),
        AmdCommand::Run(args) => super::amd_run::run(args, global),
        AmdCommand::Check(args) => super::amd_check::run(args, global),
    }
}

fn asm_batch(args: &AmdAsm, global: &Global) -> Result<Outcome, Failure> {
    let gpu = gpu(&args.target, None)?;
    batch(&args.file, global, &mut |line, reply| {
        assembled_line(line, &gpu, reply).map_err(|e| e.to_string())
    })?;
    Ok(Outcome::Complete)
}

fn disasm_batch(args: &AmdDisasm, global: &Global) -> Result<Outcome, Failure> {
    let gpu = gpu(&args.target, None)?;
    let mut words = Vec::new();
    batch(&args.file, global, &mut |line, reply| {
        disassembled_line(line, &gpu, &mut words, reply).map_err(|e| e.to_string())
    })?;
    Ok(Outcome::Complete)
}

fn asm(args: &AmdAsm, global: &Global) -> Result<Outcome, Failure> {
    let (name, text) = source(&args.file, global)?;
    let gpu = source_gpu(&args.target, text.as_bytes())?;
    let emit = match args.emit {
        AmdEmit::Raw => Emit::Raw,
        AmdEmit::Hex => Emit::Hex,
        AmdEmit::Elf => Emit::Object(match args.loader {
            AmdLoader::HsaV3 => Loader::Hsa(3),
            AmdLoader::HsaV4 => Loader::Hsa(4),
            AmdLoader::HsaV5 => Loader::Hsa(5),
            AmdLoader::HsaV6 => Loader::Hsa(6),
            AmdLoader::Pal => Loader::Pal,
            AmdLoader::Mesa => Loader::Mesa,
        }),
    };
    let bytes = assembled(&name, &text, &gpu, emit)?;
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}

fn disasm(args: &AmdDisasm, global: &Global) -> Result<Outcome, Failure> {
    let file = match amd_dump::open(&args.file, &args.target, global)? {
        AmdInput::Code(file) => file,
        AmdInput::Dump(shaders) => return disasm_dump(&shaders, args, global),
    };
    if args.shader.is_some() {
        return Err(Failure::Usage(format!("{}: --shader is for dumps, and this is code", file.input.name)));
    }
    refuse_dump(&file, "amd disasm")?;
    let (input, chosen) = amd_object::chosen(file.input, &args.target, args.object, global.max_size)?;
    let input = &input;
    // Opened when there is something to show.
    let mut out: Option<Output> = None;
    let mut write = |part: &str| {
        // A failed write is remembered, and reported by `finish`.
        let _ = out.get_or_insert_with(|| Output::open(global, true)).write_all(part.as_bytes());
    };
    let (counts, outcome) = disassembled(&input.name, &input.bytes, args, &mut write)?;
    if let Some(out) = out {
        out.finish()?;
    }
    Ok(decoded(&input.name, counts, outcome).or(chosen))
}

/// Says how much of code did not decode; if that is most of it, the result is of little worth.
fn decoded(name: &str, counts: ListingCounts, outcome: Outcome) -> Outcome {
    if counts.unknown == 0 {
        return outcome;
    }
    complain!(
        "{name}: {} not decode as instructions of this GPU",
        counted(counts.unknown as u64, "dword does", "dwords do")
    );
    if counts.unknown > counts.instructions { Outcome::Lost } else { outcome }
}

/// Lists the shaders of a dump, or one of them with its instructions.
fn disasm_dump(dump: &DumpShaders, args: &AmdDisasm, global: &Global) -> Result<Outcome, Failure> {
    if args.function.is_some() {
        let message = format!("{}: --function is for code objects; of a dump take --shader", dump.name);
        return Err(Failure::Usage(message));
    }
    let Some(number) = args.shader else {
        let mut out = Output::open(global, true);
        // A failed write is remembered, and reported by `finish`.
        let _ = amd_shaders::text(&dump.shaders, &mut out);
        out.finish()?;
        return Ok(Outcome::Complete);
    };
    let shader = dump.get(number)?;
    let gpu = dump.gpu_of(shader, &args.target)?;
    dump.say_guess();
    let options = AmdListingOptions { words: args.words, ..AmdListingOptions::default() };
    let mut out = Output::open(global, true);
    let mut write = |part: &str| drop(out.write_all(part.as_bytes()));
    let counts = listing::write_to(&shader.bytes(), &gpu, &options, &mut |_, _| (), &mut write);
    out.finish()?;
    if !shader.whole {
        let place = amd_shaders::place(shader);
        complain!("{}: {place}: a part of the code; its end is not in the dump", dump.name);
    }
    Ok(decoded(&dump.name, counts, Outcome::Complete))
}

/// The listing of a code object, or of bare code. What was lost is told on standard error.
///
/// # Errors
/// When the GPU is not known, the object is for another machine, or it has no such function.
pub fn disassembled(
    name: &str,
    bytes: &[u8],
    args: &AmdDisasm,
    write: &mut dyn FnMut(&str),
) -> Result<(ListingCounts, Outcome), Failure> {
    match elf::read(bytes) {
        Ok(object) => {
            let gpu = object_gpu(&args.target, &object)?;
            let outcome = Outcome::of(name, &object.diagnostics);
            let mut text = String::new();
            let counts = list_object(&object, &gpu, args.words, args.function.as_deref(), &mut text)
                .map_err(|e| Failure::NotFound(format!("{name}: {e}")))?;
            write(&text);
            Ok((counts, outcome))
        }
        Err(wrong @ NotCodeObject::OtherMachine(_)) => Err(Failure::Unusable(format!("{name}: {wrong}"))),
        Err(NotCodeObject::NotElf) => {
            if args.function.is_some() {
                return Err(Failure::Usage(format!("{name} is bare code: it names no functions")));
            }
            let gpu = gpu(&args.target, None)?;
            let options = AmdListingOptions { words: args.words, ..AmdListingOptions::default() };
            let read = hex::words(bytes, 8);
            let bytes = read.as_deref().unwrap_or(bytes);
            Ok((listing::write_to(bytes, &gpu, &options, &mut |_, _| (), write), Outcome::Complete))
        }
    }
}
