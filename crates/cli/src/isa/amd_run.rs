//! `unwedge amd run`: machine code on the emulator.

use super::amd_check::bare;
use super::amd_object;
use super::amd_target::{gpu_of, source_gpu};
use crate::args::{AmdRun, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use unwedge::capture::elf::{self, NotCodeObject};
use unwedge::files::Input;
use unwedge::sim::amdgcn::{GroupState, SimMemory, Trace, Watch, watch};
use unwedge::sim::hsa;
use unwedge_view::asm::launch::{
    DispatchSpec, RunOptionError, StartError, StartSpec, Started, WantedMemory, map_buffer,
};
use unwedge_view::asm::run::{self, MemoryDump};
use unwedge_view::asm::step::{Loaded, Stepper};

impl From<RunOptionError> for Failure {
    fn from(error: RunOptionError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        match error {
            StartError::NoFunction(_) => Failure::NotFound(error.to_string()),
            StartError::Link { .. } => Failure::Unusable(error.to_string()),
            error => Failure::Usage(error.to_string()),
        }
    }
}

/// The bytes of a file of no more than `limit` bytes.
fn bytes(file: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    Ok(Input::open(file, limit)?.bytes.to_vec())
}

fn memory(args: &AmdRun, global: &Global) -> Result<SimMemory, Failure> {
    let mut memory = SimMemory::default();
    for text in &args.buffer {
        map_buffer(text, &mut memory, global.max_size, |file| bytes(file, global.max_size))?;
    }
    Ok(memory)
}

/// What the command line says of the start, and what its files hold.
fn start_spec<'a>(name: &'a str, args: &'a AmdRun, global: &Global) -> Result<StartSpec<'a>, Failure> {
    let lds_content = args.lds_data.as_ref().map(|file| bytes(file, global.max_size)).transpose()?;
    let dispatch = DispatchSpec {
        groups: &args.groups,
        size: &args.size,
        lds: args.lds.as_deref(),
        lds_content: lds_content.unwrap_or_default(),
        scratch: &args.scratch,
        mode: args.mode.as_deref(),
        steps: args.emulator.steps,
        seed: args.emulator.seed,
        threads: args.emulator.threads(),
        scalars: &args.sgpr,
        vectors: &args.vgpr,
        group_id: args.group_id.as_deref(),
    };
    let kernarg = args.kernarg.as_ref().map(|file| bytes(file, hsa::MAX_KERNARG as u64)).transpose()?;
    Ok(StartSpec {
        name,
        function: args.function.as_deref(),
        dispatch,
        arguments: &args.arg,
        kernarg,
        keep_features: args.target.features.is_some(),
    })
}

/// What is run, and in which state waves begin.
fn start(input: &Input, args: &AmdRun, global: &Global, memory: &mut SimMemory) -> Result<Started, Failure> {
    let spec = start_spec(&input.name, args, global)?;
    let started = match elf::read(&input.bytes) {
        Ok(mut object) => {
            let gpu = gpu_of(&args.target, &object, &input.name)?;
            spec.object(&mut object, gpu, memory)?
        }
        Err(wrong @ NotCodeObject::OtherMachine(_)) => {
            return Err(Failure::Unusable(format!("{}: {wrong}", input.name)));
        }
        Err(NotCodeObject::NotElf) => {
            spec.check_bare()?;
            let gpu = source_gpu(&args.target, &input.bytes)?;
            spec.bare(&bare(&input.bytes, &input.name, &gpu)?, gpu)?
        }
    };
    started.warnings.iter().for_each(|warning| complain!("{warning}"));
    Ok(started)
}

/// Memory to be shown afterwards; what goes to files is written.
fn dumped(args: &AmdRun, memory: &SimMemory) -> Result<Vec<MemoryDump>, Failure> {
    let mut shown = Vec::new();
    for text in &args.dump {
        let wanted = WantedMemory::parse(text)?;
        let bytes = wanted.bytes(memory);
        let bytes = bytes.ok_or_else(|| Failure::NotFound(format!("{} is not mapped", wanted.range)))?;
        match wanted.file {
            Some(file) => std::fs::write(file, bytes).map_err(|e| Failure::Write(file.to_owned(), e))?,
            None => shown.push(MemoryDump::of(wanted.address, bytes)),
        }
    }
    Ok(shown)
}

/// Runs the command.
pub fn run(args: &AmdRun, global: &Global) -> Result<Outcome, Failure> {
    let input = Input::open(&args.file, global.max_size)?;
    let (input, chosen) = amd_object::chosen(input, &args.target, args.object, global.max_size)?;
    let mut memory = memory(args, global)?;
    let Started { code, dispatch, .. } = start(&input, args, global, &mut memory)?;
    let program = &code.program;
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
    Ok(if result.faults.is_empty() { chosen } else { Outcome::Found })
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
