//! `unwedge amd run`: machine code on the emulator.

use super::amd_check::bare;
use super::amd_target::{gpu, gpu_of};
use crate::args::{AmdRun, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use unwedge::capture::elf::{self, NotCodeObject};
use unwedge::files::Input;
use unwedge::isa::amdgcn::entry::KernelEntry;
use unwedge::isa::amdgcn::{Gfx, Gpu};
use unwedge::sim::amdgcn::{Dispatch, GroupState, Initial, Program, SimMemory, Timing, Trace, Watch, watch};
use unwedge::sim::hsa::{self, LaunchOptions};
use unwedge_view::asm;
use unwedge_view::asm::run::{self, MemoryDump};
use unwedge_view::asm::step::{Loaded, Stepper};
use unwedge_view::plural::counted;

/// Where code lies that says nothing of it.
const CODE: u64 = 0x7f00_0000_0000;
/// The MODE register of graphics: denormals of 16 and 64 bits, clamping of NaN.
const MODE: u32 = 0x1c0;
/// The most threads of a workgroup.
const THREADS: u32 = 1024;
/// The most bytes of scratch of a lane.
const SCRATCH: u32 = 1 << 20;

pub(super) fn usage(what: impl Into<String>) -> Failure {
    Failure::Usage(what.into())
}

/// A number: decimal, or hexadecimal after `0x`.
pub(super) fn number(text: &str) -> Result<u64, Failure> {
    asm::number(text).ok_or_else(|| usage(format!("`{text}` is not a number")))
}

fn small(text: &str) -> Result<u32, Failure> {
    u32::try_from(number(text)?).map_err(|_| usage(format!("`{text}` has more than 32 bits")))
}

/// Up to three numbers that are not 0 and whose product is not above another; those not said are 1.
fn axes(text: &str, most: u32, what: &str) -> Result<[u32; 3], Failure> {
    let mut all = [1; 3];
    for (at, part) in text.split(',').enumerate() {
        let place = all.get_mut(at).ok_or_else(|| usage(format!("`{text}` has more than three axes")))?;
        *place = small(part)?;
        if *place == 0 {
            return Err(usage(format!("`{text}`: an axis without any {what}")));
        }
    }
    let count = all.iter().try_fold(1u32, |count, n| count.checked_mul(*n)).filter(|count| *count <= most);
    count.map(|_| all).ok_or_else(|| usage(format!("`{text}`: there can be at most {most} {what}")))
}

/// Bytes of LDS that a workgroup can have.
fn lds_limit(gpu: &Gpu) -> u32 {
    if gpu.generation() == Gfx::Gfx6 { 1 << 15 } else { 1 << 16 }
}

/// The number of a scalar register.
fn scalar(name: &str) -> Result<u16, Failure> {
    asm::scalar(name).ok_or_else(|| usage(format!("`{name}` is not a scalar register")))
}

fn assignment(text: &str) -> Result<(&str, &str), Failure> {
    text.split_once('=').ok_or_else(|| usage(format!("`{text}` is not of the form REG=VALUE")))
}

fn vector(text: &str) -> Result<(u8, Initial), Failure> {
    let (name, value) = assignment(text)?;
    let register = name.strip_prefix('v').and_then(|digits| digits.parse::<u8>().ok());
    let register = register.ok_or_else(|| usage(format!("`{name}` is not a vector register")))?;
    Ok((
        register,
        match value {
            "local-id-x" => Initial::LocalId(0),
            "local-id-y" => Initial::LocalId(1),
            "local-id-z" => Initial::LocalId(2),
            "local-ids" => Initial::PackedLocalIds,
            _ => Initial::Value(small(value)?),
        },
    ))
}

fn dispatch(args: &AmdRun, gpu: &Gpu, global: &Global) -> Result<Dispatch, Failure> {
    let mut made = Dispatch {
        groups: axes(&args.groups, u32::MAX, "workgroups")?,
        size: axes(&args.size, THREADS, "threads of a workgroup")?,
        lds: match &args.lds {
            Some(text) => small(text)?,
            None => lds_limit(gpu),
        },
        lds_content: match &args.lds_data {
            Some(file) => Input::open(file, global.max_size)?.bytes.to_vec(),
            None => Vec::new(),
        },
        gds: 4096,
        scratch: small(&args.scratch)?,
        mode: args.mode.as_deref().map_or(Ok(MODE), small)?,
        steps: args.steps,
        timing: args.seed.map_or(Timing::Plain, |seed| Timing::Adversarial { seed }),
        threads: args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        group_id_in_ttmp: gpu.generation() >= Gfx::Gfx12,
        ..Dispatch::default()
    };
    for text in &args.sgpr {
        let (name, value) = assignment(text)?;
        made.scalars.push((scalar(name)?, small(value)?));
    }
    for text in &args.vgpr {
        made.vectors.push(vector(text)?);
    }
    if let Some(text) = &args.group_id {
        for (at, name) in text.split(',').enumerate() {
            let place = made.group_id.get_mut(at).ok_or_else(|| {
                usage(format!("`{text}`: the place of a workgroup has three registers at most"))
            })?;
            *place = Some(scalar(name)?);
        }
    }
    Ok(made)
}

fn memory(args: &AmdRun, global: &Global) -> Result<SimMemory, Failure> {
    let mut memory = SimMemory::default();
    for text in &args.buffer {
        let (address, bytes) = match (text.split_once('='), text.split_once(':')) {
            (Some((address, file)), _) => {
                (address, Input::open(Path::new(file), global.max_size)?.bytes.to_vec())
            }
            (None, Some((address, size))) => (address, zeros(number(size)?, global)?),
            _ => return Err(usage(format!("`{text}` is neither ADDRESS=FILE nor ADDRESS:BYTES"))),
        };
        memory.map(number(address)?, bytes).map_err(|e| usage(e.to_string()))?;
    }
    Ok(memory)
}

/// Whether a workgroup can have what the command line or the kernel asks for.
fn fits(asked: &Dispatch, gpu: &Gpu) -> Result<(), Failure> {
    for (bytes, most, what) in
        [(asked.lds, lds_limit(gpu), "of LDS"), (asked.scratch, SCRATCH, "of scratch for each lane")]
    {
        if bytes > most {
            let bytes = counted(bytes.into(), "byte", "bytes");
            return Err(usage(format!("{bytes} {what} asked for; there can be at most {most}")));
        }
    }
    Ok(())
}

/// Memory of zeros, of which none is taken from the machine before it is written.
fn zeros(size: u64, global: &Global) -> Result<Vec<u8>, Failure> {
    let fits = usize::try_from(size).ok().filter(|_| size <= global.max_size);
    let fits = fits.filter(|size| Vec::<u8>::new().try_reserve_exact(*size).is_ok());
    match fits {
        Some(size) => Ok(vec![0; size]),
        None => {
            Err(usage(format!("a buffer of {size} bytes is more than there is, or than --max-size allows")))
        }
    }
}

/// What is run, and in which state waves begin.
fn start(
    input: Input,
    args: &AmdRun,
    global: &Global,
    memory: &mut SimMemory,
) -> Result<(Loaded, Dispatch), Failure> {
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    let arguments = !args.arg.is_empty() || args.kernarg.is_some();
    let none =
        |name: &str| usage(format!("{name} is not an HSA kernel: set registers with --sgpr and --vgpr"));
    match elf::read(&input.bytes) {
        Ok(mut object) => {
            let gpu = gpu_of(&args.target, &object, &input.name)?;
            object.link(CODE).map_err(|why| Failure::Unusable(format!("{}: {why}", input.name)))?;
            let section = object
                .linked_section(args.function.as_deref())
                .ok_or_else(|| Failure::NotFound(format!("{}: there is no such function", input.name)))?;
            let base = CODE.wrapping_add(section.address);
            let code = |gpu: Gpu| Loaded {
                program: Program::new(&section.words, base, gpu),
                base,
                functions: section.functions.clone(),
            };
            let Some(descriptor) = section.descriptor else {
                if arguments {
                    return Err(none(&section.name));
                }
                hsa::map(&object, CODE, memory).map_err(|e| usage(e.to_string()))?;
                return Ok((code(gpu), Dispatch { entry: section.entry, ..dispatch(args, &gpu, global)? }));
            };
            // Options say more than the file.
            let start = object.start(&section.name, &gpu).filter(|_| args.target.features.is_none());
            let gpu = start.map_or(gpu, |start| start.mode(gpu));
            let entry = KernelEntry::of(&descriptor, &gpu);
            // What the command line says comes after what the kernel says.
            let said = dispatch(args, &gpu, global)?;
            let mut made =
                Dispatch { entry: section.entry, scalars: Vec::new(), vectors: Vec::new(), ..said.clone() };
            hsa::map(&object, CODE, memory).map_err(|e| usage(e.to_string()))?;
            let options = LaunchOptions {
                kernarg: match &args.kernarg {
                    Some(file) => {
                        let input = Input::open(Path::new(file), hsa::MAX_KERNARG as u64)?;
                        Some(input.bytes.to_vec())
                    }
                    None => None,
                },
                values: &args.arg,
                keep_lds: args.lds.is_some(),
                keep_mode: args.mode.is_some(),
            };
            let warnings = hsa::prepare(&object, &section.name, &entry, &gpu, &options, &mut made, memory)
                .map_err(|e| usage(e.to_string()))?;
            warnings.iter().for_each(|warning| complain!("{warning}"));
            made.scalars.extend(said.scalars);
            made.vectors.extend(said.vectors);
            for (place, said) in made.group_id.iter_mut().zip(said.group_id) {
                *place = said.or(*place);
            }
            Ok((code(gpu), made))
        }
        Err(wrong @ NotCodeObject::OtherMachine(_)) => {
            Err(Failure::Unusable(format!("{}: {wrong}", input.name)))
        }
        Err(NotCodeObject::NotElf) if arguments => Err(none(&input.name)),
        Err(NotCodeObject::NotElf) if args.function.is_some() => {
            Err(usage(format!("{} is bare code, without names: --function finds nothing in it", input.name)))
        }
        Err(NotCodeObject::NotElf) => {
            let gpu = gpu(&args.target, None)?;
            let bytes = bare(&input.bytes, &input.name, &gpu)?;
            let code = Loaded {
                program: Program::new(&words(&bytes), CODE, gpu),
                base: CODE,
                functions: Vec::new(),
            };
            Ok((code, dispatch(args, &gpu, global)?))
        }
    }
}

/// Memory to be shown or written afterwards.
fn dumped(args: &AmdRun, memory: &SimMemory) -> Result<Vec<MemoryDump>, Failure> {
    let mut all = Vec::new();
    for text in &args.dump {
        let (range, file) =
            text.split_once('=').map_or((text.as_str(), None), |(range, file)| (range, Some(file)));
        let (address, size) = range
            .split_once(':')
            .ok_or_else(|| usage(format!("`{range}` is not of the form ADDRESS:BYTES")))?;
        let (address, size) = (number(address)?, number(size)?);
        let bytes = usize::try_from(size).ok().and_then(|size| memory.get(address, size));
        let bytes = bytes.ok_or_else(|| Failure::NotFound(format!("{range} is not mapped")))?;
        match file {
            Some(file) => std::fs::write(file, bytes).map_err(|e| Failure::Write(file.to_owned(), e))?,
            None => all.push(MemoryDump::of(address, bytes)),
        }
    }
    Ok(all)
}

/// Runs the command.
pub fn run(args: &AmdRun, global: &Global) -> Result<Outcome, Failure> {
    let input = Input::open(&args.file, global.max_size)?;
    let mut memory = memory(args, global)?;
    let (code, dispatch) = start(input, args, global, &mut memory)?;
    let program = &code.program;
    fits(&dispatch, program.gpu())?;
    let mut out = Output::open(global, !args.step);
    // A failed write is remembered, and reported by `finish`.
    let result = if args.step {
        let mut stepper = stepper(&code, args, &mut out);
        let mut ask = |state: &mut GroupState<'_, '_>| stepper.ask(state);
        watch(program, &mut memory, &dispatch, Watch::Step(&mut ask))
    } else if args.trace && !args.json {
        let mut text = String::new();
        let mut tell = |trace: &Trace| {
            text.clear();
            run::traced(program, trace, &mut text);
            let _ = out.write_all(text.as_bytes());
        };
        watch(program, &mut memory, &dispatch, Watch::Trace(&mut tell))
    } else {
        watch(program, &mut memory, &dispatch, Watch::Nobody)
    };
    let shown = dumped(args, &memory)?;
    let _ = if args.json {
        run::json(program, &result, &shown, &mut out)
    } else {
        run::text(program, &result, args.trace, &shown, &mut out)
    };
    out.finish()?;
    Ok(if result.faults.is_empty() { Outcome::Complete } else { Outcome::Found })
}

/// Asks on standard input what to do next, unless the command line says it.
fn stepper<'a>(code: &'a Loaded, args: &'a AmdRun, out: &'a mut Output) -> Stepper<'a> {
    let own = args.commands.is_empty();
    let lines: Box<dyn Iterator<Item = io::Result<String>>> = match own {
        true => Box::new(io::stdin().lock().lines()),
        false => Box::new(args.commands.iter().map(|line| Ok(line.clone()))),
    };
    Stepper::new(code, args.function.as_deref(), lines, own && io::stdin().is_terminal(), out)
}
