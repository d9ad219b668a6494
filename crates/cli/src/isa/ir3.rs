//! `unwedge ir3`.

use super::{batch, code_in_dump, deliver, source};
use crate::args::{Global, Ir3Asm, Ir3Command, Ir3Disasm, Ir3Stats};
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::io::Write;
use std::path::Path;
use unwedge_hw::Db;
use unwedge_isa::ir3::{self, Listing, Memo, Stats, WaveLimits, asm::Assembler};

/// Text is handed to the output in blocks of about so many bytes.
const BLOCK: usize = 32 << 10;

/// Runs the command.
pub fn run(command: &Ir3Command, global: &Global) -> Result<Outcome, Failure> {
    match command {
        Ir3Command::Disasm(args) if args.hex => disasm_batch(args, global),
        Ir3Command::Disasm(args) => disasm(args, global),
        Ir3Command::Asm(args) if args.hex => {
            let mut assembler = Assembler::new(args.r#gen);
            batch(&args.file, global, &mut |line, reply| {
                let word =
                    assembler.instruction(line).map_err(|e| format!("column {}: {}", e.column, e.problem))?;
                let digit = |shift: u32| b"0123456789abcdef"[(word >> shift) as usize & 15];
                reply.extend((0..16).rev().map(|at| digit(4 * at)));
                Ok(())
            })?;
            Ok(Outcome::Complete)
        }
        Ir3Command::Asm(args) => asm(args, global),
        Ir3Command::Stats(args) => stats(args, global),
    }
}

fn no_generation() -> Failure {
    Failure::Usage("which GPU? name its generation with --gen".to_owned())
}

fn disasm_batch(args: &Ir3Disasm, global: &Global) -> Result<Outcome, Failure> {
    let gpu_id = args.r#gen.ok_or_else(no_generation)?;
    let mut memo = Memo::default();
    batch(&args.file, global, &mut |line, reply| {
        let word = hex_word(line).ok_or_else(|| "expected a hexadecimal word of 64 bits".to_owned())?;
        memo.append(word, reply, |reply| ir3::write(word, gpu_id, reply));
        Ok(())
    })?;
    Ok(Outcome::Complete)
}

/// One to sixteen digits, with `0x` in front or without.
fn hex_word(line: &str) -> Option<u64> {
    let digits = line.trim_ascii().as_bytes();
    let digits = digits.strip_prefix(b"0x").or_else(|| digits.strip_prefix(b"0X")).unwrap_or(digits);
    if !(1..=16).contains(&digits.len()) {
        return None;
    }
    digits.iter().try_fold(0, |word, &digit| Some(word << 4 | u64::from(char::from(digit).to_digit(16)?)))
}

fn disasm(args: &Ir3Disasm, global: &Global) -> Result<Outcome, Failure> {
    let (words, gpu_id, left) = read(&args.file, args.r#gen, args.shader_at, global)?;
    let mut out = Output::open(global, true);
    if args.raw {
        let mut text = Vec::new();
        ir3::disassemble(&words, &Listing { gpu_id, raw: true, level: 0 }, &mut text);
        // A failed write is remembered, and reported by `finish`.
        let _ = out.write_all(&text);
    } else {
        faithful(&words, gpu_id, &mut out);
    }
    out.finish()?;
    if left != 0 {
        complain!("{}: {left} bytes at the end are no word", args.file.display());
        return Ok(Outcome::Lost);
    }
    Ok(Outcome::Complete)
}

/// The words of a shader, the GPU, and how many bytes at the end are no word.
fn read(
    file: &Path,
    gpu: Option<u32>,
    shader_at: Option<u64>,
    global: &Global,
) -> Result<(Vec<u64>, u32, usize), Failure> {
    match shader_at {
        Some(at) => {
            let (code, generation) = code_in_dump(file, at, 8, global)?;
            let gpu_id = gpu.unwrap_or(100 * generation.number());
            let pairs = code.as_chunks::<2>().0;
            let mut words: Vec<u64> =
                pairs.iter().map(|&[low, high]| u64::from(low) | u64::from(high) << 32).collect();
            // The buffer goes on behind the shader.
            let listing = Listing { gpu_id, raw: false, level: 0 };
            let length = ir3::disassemble(&words, &listing, &mut Vec::new());
            words.truncate(length);
            Ok((words, gpu_id, 0))
        }
        None => {
            let gpu_id = gpu.ok_or_else(no_generation)?;
            let input = Input::open(file, global.max_size)?;
            let (words, rest) = input.bytes.as_chunks::<8>();
            Ok((words.iter().map(|&w| u64::from_le_bytes(w)).collect(), gpu_id, rest.len()))
        }
    }
}

fn stats(args: &Ir3Stats, global: &Global) -> Result<Outcome, Failure> {
    let (words, gpu_id, left) = read(&args.file, args.r#gen, args.shader_at, global)?;
    let stats = Stats::of(&words, gpu_id);
    let mut text = Vec::new();
    stats.write(gpu_id, 0, &mut text);
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(&text);
    let _ = writeln!(
        out,
        "registers: {} full, {} half; constants: {} of four components",
        stats.full_registers(gpu_id),
        stats.half_registers(),
        stats.constants()
    );
    let db = Db::builtin();
    let device = db.devices().find(|device| device.gpu_id() == Some(gpu_id));
    let number = |name| device.and_then(|d| d.number(name)).and_then(|n| u32::try_from(n).ok());
    if let (Some(registers), Some(granularity), Some(most)) =
        (number("a6xx.reg_size_vec4"), number("wave_granularity"), number("max_waves"))
    {
        let limits = WaveLimits { registers, granularity, most };
        let [single, double] = [false, true].map(|double| stats.max_waves(gpu_id, limits, double));
        let _ = writeln!(out, "waves: at most {single}, of double size {double}");
    }
    out.finish()?;
    if left != 0 {
        complain!("{}: {left} bytes at the end are no word", args.file.display());
        return Ok(Outcome::Lost);
    }
    Ok(Outcome::Complete)
}

/// Text that assembles to the same words: where an instruction's text does not tell all its bits, the word itself with
/// the text behind it.
fn faithful(words: &[u64], gpu_id: u32, out: &mut Output) {
    let mut assembler = Assembler::new(gpu_id);
    let (mut memo, mut line, mut lines) = (Memo::default(), Vec::new(), Vec::with_capacity(2 * BLOCK));
    for &word in words {
        memo.append(word, &mut lines, |lines| {
            line.clear();
            ir3::write(word, gpu_id, &mut line);
            let text = String::from_utf8_lossy(&line);
            if assembler.instruction(&text).is_ok_and(|again| again == word) {
                lines.extend_from_slice(&line);
            } else {
                // Writing to a Vec cannot fail.
                let _ = write!(lines, "raw 0x{word:016X}\t; {text}");
            }
            lines.push(b'\n');
        });
        if lines.len() >= BLOCK {
            if out.write_all(&lines).is_err() {
                return;
            }
            lines.clear();
        }
    }
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(&lines);
}

fn asm(args: &Ir3Asm, global: &Global) -> Result<Outcome, Failure> {
    let (name, text) = source(&args.file, global)?;
    let (program, errors) = Assembler::new(args.r#gen).assemble(&name, &text);
    for error in &errors {
        let _ = writeln!(std::io::stderr(), "{error}");
    }
    if !errors.is_empty() {
        return Err(Failure::Source { name, mistakes: errors.len() });
    }
    let mut bytes = Vec::with_capacity(8 * program.words.len());
    for word in &program.words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}
