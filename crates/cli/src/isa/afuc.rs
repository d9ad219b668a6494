//! `unwedge afuc`, and the drop-ins for Mesa's afuc-disasm and afuc-asm.
//!
//! Facts: what the tools' usage texts say about their options.

use super::{afuc_run, deliver, source};
use crate::args::{AfucAsm, AfucCommand, AfucDisasm, AfucRun, Global, ProcessorArg};
use crate::database;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Output;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use unwedge::isa::afuc::{self, AfucNames, DbNames, Firmware, FirmwareBlob, asm, disasm};
use unwedge_view::asm::afuc::ColouredNames;

/// Runs the command.
pub(crate) fn run(command: &AfucCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        AfucCommand::Disasm(args) => disassemble(args, global),
        AfucCommand::Asm(AfucAsm { file, gpuver, output }) => {
            assemble(file, *gpuver, output.as_deref(), global)
        }
        AfucCommand::Run(args) => afuc_run::run(args, global),
    }
}

fn disassemble(args: &AfucDisasm, global: &Global) -> Result<Outcome, Failure> {
    let options = disasm::AfucDisasmOptions {
        firmware: args.gpuver,
        form: disasm::ListingForm::Exact,
        ..Default::default()
    };
    let input = Input::open(&args.file, global.max_size)?;
    let db = database::load(global)?;
    print(&input, &options, &DbNames::new(&db), Output::open(global, true))
}

fn print(
    input: &Input,
    options: &disasm::AfucDisasmOptions,
    names: &dyn AfucNames,
    mut out: Output,
) -> Result<Outcome, Failure> {
    let text = unwedge::sim::adreno::sqe::disassemble(&input.bytes, options, names)
        .map_err(|e| Failure::Unusable(format!("{}: {e}", input.name)))?;
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(text.as_bytes());
    out.finish()?;
    Ok(Outcome::of(&input.name, &input.diagnostics))
}

fn assemble(
    file: &Path,
    firmware: Option<Firmware>,
    output: Option<&Path>,
    global: &Global,
) -> Result<Outcome, Failure> {
    let (name, text) = source(file, global)?;
    let db = database::load(global)?;
    let options = asm::AfucAsmOptions { file: name.clone(), firmware };
    let bytes = afuc::assemble(&text, &options, &DbNames::new(&db)).map_err(|errors| {
        let _ = writeln!(std::io::stderr(), "{errors}");
        Failure::Source { name, errors: errors.list.len() }
    })?;
    deliver(&bytes, output, global)?;
    Ok(Outcome::Complete)
}

const DISASM_USAGE: &str = "Usage:\n\tafuc-disasm [-g ID] [-v] [-c] [-r] [-e] [-u] FILE\n\
    \t\t-c - register names in colour\n\
    \t\t-e - run the firmware instead: unwedge afuc run\n\
    \t\t-g - the firmware's id (hexadecimal), not the file's own\n\
    \t\t-r - the words in their order, no packet table\n\
    \t\t-u - leave out what differs from one place to another\n\
    \t\t-v - offsets and words too\n";
const ASM_USAGE: &str = "Usage:\n\tafuc-asm filename.asm filename.fw\n";

/// The usage, to whoever asked for it.
fn help(usage: &str, global: &Global) -> Result<Outcome, Failure> {
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(usage.as_bytes());
    out.finish()?;
    Ok(Outcome::Complete)
}

/// A firmware of another generation than the one named: its bootstrap routine would not find the packet tables.
fn of_generation(input: &Input, named: Firmware) -> Result<(), Failure> {
    match FirmwareBlob::new(&input.bytes).firmware() {
        Some(own) if own.generation() != named.generation() => Err(Failure::Unusable(format!(
            "{}: firmware of {own} ({:03x}), which does not run on {named} ({:03x})",
            input.name,
            own.id(),
            named.id()
        ))),
        _ => Ok(()),
    }
}

/// Mesa's afuc-disasm.
pub(crate) fn disasm_drop_in(args: &[OsString], global: &Global) -> Result<Outcome, Failure> {
    let mut options = disasm::AfucDisasmOptions::default();
    let (mut file, mut emulate, mut unit_test, mut colour) = (None::<PathBuf>, false, false, false);
    let misused = |complaint: &str| {
        let _ = write!(std::io::stderr(), "{complaint}{DISASM_USAGE}");
        Ok(Outcome::Misused)
    };
    let mut args = args.iter();
    let mut only_files = false;
    while let Some(arg) = args.next() {
        let text = arg.to_str().unwrap_or_default();
        if !only_files && text == "--" {
            only_files = true;
            continue;
        }
        if !only_files && text == "--help" {
            return help(DISASM_USAGE, global);
        }
        let Some(letters) = text.strip_prefix('-').filter(|letters| !only_files && !letters.is_empty())
        else {
            file.get_or_insert_with(|| PathBuf::from(arg));
            continue;
        };
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            match letter {
                'c' => colour = true,
                'e' => emulate = true,
                'r' => options.raw = true,
                'u' => unit_test = true,
                'v' => options.verbose = true,
                'g' => {
                    let joined = letters.as_str();
                    let value = if joined.is_empty() {
                        args.next().and_then(|value| value.to_str()).unwrap_or_default()
                    } else {
                        joined
                    };
                    let id = u32::from_str_radix(value.trim_start_matches("0x"), 16).ok();
                    options.firmware = id.and_then(Firmware::from_id);
                    if options.firmware.is_none() {
                        return misused(&format!("no firmware has the id '{value}'\n"));
                    }
                    break;
                }
                _ => return misused(&format!("invalid option -- '{letter}'\n")),
            }
        }
    }
    let Some(file) = file else { return misused("no file specified!\n") };
    if emulate {
        let run = AfucRun {
            file,
            gpuver: options.firmware,
            processor: ProcessorArg::Sqe,
            commands: Vec::new(),
            script: None,
        };
        return afuc_run::run(&run, global);
    }
    options.file = (!unit_test).then(|| file.display().to_string());
    let input = Input::open(&file, global.max_size)?;
    if let Some(named) = options.firmware.filter(|_| !options.raw) {
        of_generation(&input, named)?;
    }
    let db = database::load(global)?;
    let (names, out) = (DbNames::new(&db), Output::open(global, false));
    if colour {
        return print(&input, &options, &ColouredNames(names), out);
    }
    print(&input, &options, &names, out)
}

/// Mesa's afuc-asm.
pub(crate) fn asm_drop_in(args: &[OsString], global: &Global) -> Result<Outcome, Failure> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        return help(ASM_USAGE, global);
    }
    let [input, output] = args else {
        let _ = write!(std::io::stderr(), "{ASM_USAGE}");
        return Ok(Outcome::Misused);
    };
    assemble(Path::new(input), None, Some(Path::new(output)), global)
}
