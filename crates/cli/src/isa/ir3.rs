//! `unwedge ir3`.

use super::{batch, code_in_dump, deliver, source};
use crate::args::{Global, Ir3Asm, Ir3Command, Ir3Disasm, Ir3Stats};
use crate::failure::{Failure, Outcome, complain};
use crate::input::Input;
use crate::output::Output;
use std::io::Write;
use std::path::Path;
use unwedge_hw::Db;
use unwedge_isa::ir3::{self, Faithful, Listing, Stats, WaveLimits, asm::Assembler};

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
    batch(&args.file, global, &mut |line, reply| {
        let word = hex_word(line).ok_or_else(|| "expected a hexadecimal word of 64 bits".to_owned())?;
        ir3::write(word, gpu_id, reply);
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
    let code = Code::read(&args.file, args.r#gen, args.shader_at, global)?;
    let mut out = Output::open(global, true);
    if args.raw {
        let mut text = Vec::new();
        let listing = Listing { gpu_id: code.gpu_id, raw: true, level: 0 };
        ir3::disassemble(&code.words().collect::<Vec<_>>(), &listing, &mut text);
        // A failed write is remembered, and reported by `finish`.
        let _ = out.write_all(&text);
    } else {
        faithful(&code, &mut out);
    }
    out.finish()?;
    Ok(code.outcome(&args.file))
}

/// The code of a shader.
struct Code {
    /// Words of eight bytes, the lowest byte first.
    bytes: Vec<u8>,
    gpu_id: u32,
}

impl Code {
    fn read(file: &Path, gpu: Option<u32>, shader_at: Option<u64>, global: &Global) -> Result<Code, Failure> {
        let Some(at) = shader_at else {
            let gpu_id = gpu.ok_or_else(no_generation)?;
            return Ok(Code { bytes: Input::open(file, global.max_size)?.bytes, gpu_id });
        };
        let (code, generation) = code_in_dump(file, at, 8, global)?;
        let gpu_id = gpu.unwrap_or(100 * generation.number());
        let bytes = code.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        let mut code = Code { bytes, gpu_id };
        // The buffer goes on behind the shader.
        let listing = Listing { gpu_id, raw: false, level: 0 };
        let length = ir3::disassemble(&code.words().collect::<Vec<_>>(), &listing, &mut Vec::new());
        code.bytes.truncate(8 * length);
        Ok(code)
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word))
    }

    /// Bytes that are no word are told of.
    fn outcome(&self, file: &Path) -> Outcome {
        let left = self.bytes.len() % 8;
        if left == 0 {
            return Outcome::Complete;
        }
        complain!("{}: {left} bytes at the end are no word", file.display());
        Outcome::Lost
    }
}

fn stats(args: &Ir3Stats, global: &Global) -> Result<Outcome, Failure> {
    let code = Code::read(&args.file, args.r#gen, args.shader_at, global)?;
    let gpu_id = code.gpu_id;
    let stats = Stats::of(&code.words().collect::<Vec<_>>(), gpu_id);
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
    Ok(code.outcome(&args.file))
}

/// Text that assembles to the same words.
fn faithful(code: &Code, out: &mut Output) {
    let mut writer = Faithful::new(code.gpu_id);
    let mut lines = Vec::with_capacity(2 * BLOCK);
    for word in code.words() {
        writer.write(word, &mut lines);
        lines.push(b'\n');
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
