//! `unwedge ir3`.

use super::{batch, code_at, deliver, source};
use crate::args::{Global, Ir3Asm, Ir3Check, Ir3Command, Ir3Disasm, Ir3Stats};
use crate::database;
use crate::dump::{self, Opened, refuse_dump};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use std::io::Write;
use std::path::Path;
use unwedge::base::Dwords;
use unwedge::capture::{Dump, FileKind};
use unwedge::check::ir3::{CheckOptions, Level, check as check_code};
use unwedge::isa::ir3::asm::Assembler;
use unwedge::isa::ir3::write;
use unwedge_view::asm::hex;
use unwedge_view::asm::ir3::{self, WordCounts};
use unwedge_view::asm::ir3_check::CheckedIr3;
use unwedge_view::asm::shaders::{self, LoadedShader};
use unwedge_view::plural::counted;

/// Runs the command.
pub(crate) fn run(command: &Ir3Command, global: &Global) -> Result<Outcome, Failure> {
    match command {
        Ir3Command::Disasm(args) if args.hex => disasm_batch(args, global),
        Ir3Command::Disasm(args) => disasm(args, global),
        Ir3Command::Asm(args) if args.hex => {
            let mut assembler = Assembler::new(args.r#gen);
            batch(&args.file, global, &mut |line, reply| {
                let word = assembler
                    .instruction(line)
                    .map_err(|e| format!("column {}: {}", e.at.column, e.problem))?;
                let digit = |shift: u32| b"0123456789abcdef"[(word >> shift) as usize & 15];
                reply.extend((0..16).rev().map(|at| digit(4 * at)));
                Ok(())
            })?;
            Ok(Outcome::Complete)
        }
        Ir3Command::Asm(args) => asm(args, global),
        Ir3Command::Stats(args) => stats(args, global),
        Ir3Command::Check(args) => check(args, global),
    }
}

fn no_generation() -> Failure {
    Failure::Usage("which GPU? name its generation with --gen".to_owned())
}

fn disasm_batch(args: &Ir3Disasm, global: &Global) -> Result<Outcome, Failure> {
    let gpu_id = args.r#gen.ok_or_else(no_generation)?;
    batch(&args.file, global, &mut |line, reply| {
        let word = hex::word(line).ok_or_else(|| "expected a hexadecimal word of 64 bits".to_owned())?;
        write(word, gpu_id, reply);
        Ok(())
    })?;
    Ok(Outcome::Complete)
}

fn disasm(args: &Ir3Disasm, global: &Global) -> Result<Outcome, Failure> {
    let opened = dump::open(&args.file, global.max_size)?;
    let mut shader_at = args.shader_at;
    if shader_at.is_none()
        && let Some(shaders) = shaders_of_dump(&opened, global)?
    {
        let Some(number) = args.shader else {
            let mut out = Output::open(global, true);
            // A failed write is remembered, and reported by `finish`.
            let _ = shaders::text(&shaders, &mut out);
            out.finish()?;
            return Ok(Outcome::Complete);
        };
        let shader = shaders.get(number).ok_or_else(|| {
            let there = counted(shaders.len() as u64, "shader", "shaders");
            Failure::NotFound(format!("{}: no shader {number}: there are {there}", args.file.display()))
        })?;
        shader_at = Some(shader.iova);
    }
    let code = Code::read(opened, args.r#gen, shader_at, global)?;
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let counts = if args.raw {
        let _ = ir3::listing(code.dwords(), code.gpu_id, &mut out);
        ir3::faithful(code.dwords().iter64(), code.gpu_id, &mut std::io::sink())
    } else {
        ir3::faithful(code.dwords().iter64(), code.gpu_id, &mut out)
    };
    out.finish()?;
    let outcome = code.outcome(&args.file);
    let Ok(WordCounts { words, unknown: unknown @ 1.. }) = counts else { return Ok(outcome) };
    complain!(
        "{}: {} of {} not decode as instructions of a{}xx",
        args.file.display(),
        unknown,
        counted(words as u64, "word does", "words do"),
        code.gpu_id / 100
    );
    // A few may be data; most of them are not code of this GPU.
    Ok(if 2 * unknown > words { Outcome::Lost } else { outcome })
}

/// The shaders that a dump of msm loads; `None` if the file is something else.
fn shaders_of_dump(opened: &Opened, global: &Global) -> Result<Option<Vec<LoadedShader>>, Failure> {
    let Opened::Dump(files) = opened else { return Ok(None) };
    if files.kind != FileKind::MsmDevcore {
        return Ok(None);
    }
    let Ok(Dump::Msm(dump)) = files.read() else { return Err(files.not_of_msm()) };
    let shaders = shaders::of_dump(&dump, &database::load(global)?);
    if shaders.is_empty() {
        return Err(Failure::Usage(format!(
            "{}: its command streams load no shader; name an address with --shader-at",
            files.name
        )));
    }
    Ok(Some(shaders))
}

/// The code of a shader.
struct Code {
    dwords: Vec<u32>,
    /// Bytes at the end that do not fill a word.
    left: usize,
    gpu_id: u32,
}

impl Code {
    fn read(
        opened: Opened,
        gpu: Option<u32>,
        shader_at: Option<u64>,
        global: &Global,
    ) -> Result<Code, Failure> {
        let Some(at) = shader_at else {
            let file = opened.into_code(global.max_size)?;
            refuse_dump(&file, "ir3 disasm")?;
            let (input, gpu_id) = (file.input, gpu.ok_or_else(no_generation)?);
            let bytes = hex::words(&input.bytes, 16).unwrap_or(input.bytes);
            let (words, rest) = bytes.as_chunks::<8>();
            let dwords = words.as_flattened().as_chunks().0.iter().map(|&dword| u32::from_le_bytes(dword));
            return Ok(Code { dwords: dwords.collect(), left: rest.len(), gpu_id });
        };
        let (mut dwords, generation) = code_at(opened, at, 8, global)?;
        let gpu_id = gpu.unwrap_or(100 * generation.number());
        // The buffer goes on after the shader.
        let length = ir3::length(Dwords::from(&dwords[..]), gpu_id);
        dwords.truncate(length);
        Ok(Code { dwords, left: 0, gpu_id })
    }

    fn dwords(&self) -> Dwords<'_> {
        Dwords::from(&self.dwords[..])
    }

    /// Bytes that do not fill a word are reported.
    fn outcome(&self, file: &Path) -> Outcome {
        if self.left == 0 {
            return Outcome::Complete;
        }
        let bytes = counted(
            self.left as u64,
            "byte at the end is not a whole word",
            "bytes at the end are not a whole word",
        );
        complain!("{}: {bytes}", file.display());
        Outcome::Lost
    }
}

fn stats(args: &Ir3Stats, global: &Global) -> Result<Outcome, Failure> {
    let opened = dump::open(&args.file, global.max_size)?;
    let code = Code::read(opened, args.r#gen, args.shader_at, global)?;
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    let _ = ir3::stats(code.dwords().iter64(), code.gpu_id, &mut out);
    out.finish()?;
    Ok(code.outcome(&args.file))
}

fn check(args: &Ir3Check, global: &Global) -> Result<Outcome, Failure> {
    let opened = dump::open(&args.file, global.max_size)?;
    let code = Code::read(opened, args.gpu, args.shader_at, global)?;
    let words: Vec<u64> = code.dwords().iter64().collect();
    let options =
        CheckOptions { inputs: args.inputs.as_ref().map(|lists| lists.concat()), constants: args.constlen };
    let report = check_code(&words, code.gpu_id, &options);
    let checked = CheckedIr3 { gpu_id: code.gpu_id, words: &words, report: &report };
    let shown = if args.all { Level::Note } else { args.deny.max(Level::Warning) };
    let name =
        if args.file.as_os_str() == "-" { "standard input".into() } else { args.file.to_string_lossy() };
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let _ = match args.json {
        true => checked.json(shown, &mut out),
        false => checked.text(&name, shown, &mut out),
    };
    out.finish()?;
    if !report.complete {
        complain!("{name}: too many ways through the code: not all were followed to their end");
    }
    if report.of_level(args.deny).next().is_some() {
        return Ok(Outcome::Found);
    }
    Ok(if report.complete { code.outcome(&args.file) } else { Outcome::Lost })
}

fn asm(args: &Ir3Asm, global: &Global) -> Result<Outcome, Failure> {
    let (name, text) = source(&args.file, global)?;
    let (program, errors) = Assembler::new(args.r#gen).assemble(&name, &text);
    for error in &errors {
        let _ = writeln!(std::io::stderr(), "{error}");
    }
    if !errors.is_empty() {
        return Err(Failure::Source { name, errors: errors.len() });
    }
    let mut bytes = Vec::with_capacity(8 * program.words.len());
    for word in &program.words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}
