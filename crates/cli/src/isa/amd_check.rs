//! `unwedge amd check`: what machine code does that its GPU does not do as it is written.

use super::amd_dump::{self, AmdInput, DumpShaders};
use super::amd_object;
use super::amd_target::{assembled, gpu_of, source_gpu};
use crate::args::{AmdCheck, CheckLevel, Global};
use crate::dump::{CodeFile, refuse_dump};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use unwedge::capture::elf::{self, LoadedFunction, LoadedSection, NotCodeObject, SourceLines};
use unwedge::check::amdgcn::{Certainty, CheckOptions, EntryPreset, ProgramEntry, check as check_code};
use unwedge::isa::amdgcn::Gpu;
use unwedge::postmortem::amd::AmdShader;
use unwedge_view::asm::amd::Emit;
use unwedge_view::asm::amd_shaders;
use unwedge_view::asm::check::{self, CheckedCode, FindingText};
use unwedge_view::asm::hex;
use unwedge_view::plural::counted;

/// Where the findings go.
fn open(args: &AmdCheck, global: &Global) -> Output {
    let title = || format!("Check of {}", args.file.display());
    Output::open_page(global, true, args.html.as_deref(), title)
}

/// Runs the command.
pub(crate) fn run(args: &AmdCheck, global: &Global) -> Result<Outcome, Failure> {
    if let Some(entry) = args.entry.iter().find(|entry| *entry % 4 != 0) {
        return Err(Failure::Usage(format!(
            "no instruction begins at {entry:#x}: it is not a multiple of 4"
        )));
    }
    let file = match amd_dump::open(&args.file, &args.target, global)? {
        AmdInput::Code(file) => file,
        AmdInput::Dump(shaders) => return check_dump(&shaders, args, global),
    };
    if args.shader.is_some() {
        return Err(Failure::Usage(format!("{}: --shader is for dumps, and this is code", file.input.name)));
    }
    let (input, chosen) = amd_object::chosen(file.input, &args.target, args.object, global.max_size)?;
    let file = CodeFile { input, ..file };
    let input = &file.input;
    let mut outcome = chosen;
    let mut lines = SourceLines::default();
    let (gpu, codes) = match elf::read(&input.bytes) {
        Ok(object) => {
            lines = SourceLines::of(&object);
            outcome = outcome.or(Outcome::of(&input.name, &object.diagnostics));
            let gpu = gpu_of(&args.target, &object, &input.name)?;
            // Options say more than the file.
            let mode = args.target.features.is_none();
            let codes = object.loaded_sections(args.function.as_deref(), &gpu, mode);
            if codes.is_empty() {
                return Err(Failure::NotFound(match &args.function {
                    Some(wanted) => format!("{}: no function {wanted}", input.name),
                    None => format!("{}: no code", input.name),
                }));
            }
            (gpu, codes)
        }
        Err(wrong @ NotCodeObject::OtherMachine(_)) => {
            return Err(Failure::Unusable(format!("{}: {wrong}", input.name)));
        }
        Err(NotCodeObject::NotElf) => {
            if args.function.is_some() {
                return Err(Failure::Usage(format!("{} is bare code: it names no functions", input.name)));
            }
            let gpu = source_gpu(&args.target, &input.bytes)?;
            refuse_dump(&file, "amd check")?;
            let code = bare(&input.bytes, &input.name, &gpu)?;
            let (functions, unknown) = (Vec::new(), Vec::new());
            (gpu, vec![LoadedSection { section: 0, address: 0, code, unknown, functions, wave32: None }])
        }
    };
    let said = (args.sgprs.is_some() || args.vgprs.is_some())
        .then(|| EntryPreset { sgprs: args.sgprs.unwrap_or(gpu.sgprs()), vgprs: args.vgprs.unwrap_or(256) });
    let default = if args.entry.is_empty() { &[0][..] } else { &args.entry };
    let out = open(args, global);
    let (mut found, mut reports) = (false, Vec::new());
    for code in &codes {
        let of_object = |function: &LoadedFunction| {
            let set = function.start.and_then(|start| start.registers);
            let preset = set.map(|set| EntryPreset { sgprs: set.sgprs, vgprs: set.vgprs });
            ProgramEntry { at: function.at, preset: said.or(preset), called: function.called }
        };
        let given = if code.functions.is_empty() { default } else { &args.entry };
        let given = given.iter().map(|at| ProgramEntry { at: *at, preset: said, called: false });
        let options = CheckOptions {
            entries: given.chain(code.functions.iter().map(of_object)).collect(),
            continues: args.continues,
            exports: args.exports,
            relocated: code.unknown.clone(),
        };
        let report = check_code(&code.code, &code.mode(gpu), &options);
        found |= report.findings.iter().any(|f| f.level <= denied(args));
        if !report.complete {
            complain!("{}: too many ways through the code: not all were followed to their end", input.name);
            outcome = Outcome::Lost;
        }
        reports.push(report);
    }
    let names: Vec<Vec<(u32, String)>> = codes
        .iter()
        .map(|code| code.functions.iter().map(|function| (function.at, function.name.clone())).collect())
        .collect();
    let checked: Vec<CheckedCode<'_>> = codes
        .iter()
        .zip(&names)
        .zip(&reports)
        .map(|((code, functions), report)| CheckedCode {
            bytes: &code.code,
            address: code.address,
            functions,
            gpu: code.mode(gpu),
            lines: Some(lines.section(code.section)),
            report,
        })
        .collect();
    show(&checked, gpu, &input.name, args, out)?;
    Ok(if found { Outcome::Found } else { outcome })
}

/// The least level at which a finding is a failure.
fn denied(args: &AmdCheck) -> Certainty {
    match args.deny {
        CheckLevel::Error => Certainty::Error,
        CheckLevel::Warning => Certainty::Doubt,
        CheckLevel::Note => Certainty::Note,
    }
}

/// Prints what was found.
fn show(
    checked: &[CheckedCode<'_>],
    gpu: Gpu,
    file: &str,
    args: &AmdCheck,
    mut out: Output,
) -> Result<(), Failure> {
    let least = if args.all { Certainty::Note } else { denied(args) };
    // A failed write is remembered, and reported by `finish`.
    let _ = if args.json {
        check::json(checked, &gpu, least, &mut out)
    } else {
        let shown = FindingText { file, least, context: args.context, verbose: args.verbose };
        shown.legend(&mut out).and_then(|()| checked.iter().try_for_each(|code| code.text(&shown, &mut out)))
    };
    Ok(out.finish()?)
}

/// Checks the shaders of a dump, or one of them.
fn check_dump(dump: &DumpShaders, args: &AmdCheck, global: &Global) -> Result<Outcome, Failure> {
    if args.function.is_some() || !args.entry.is_empty() {
        let message =
            format!("{}: --function and --entry are for files of code; of a dump take --shader", dump.name);
        return Err(Failure::Usage(message));
    }
    let chosen: Vec<&AmdShader> = match args.shader {
        Some(number) => vec![dump.get(number)?],
        None => dump.shaders.iter().filter(|shader| !shader.words.is_empty()).collect(),
    };
    let Some(first) = chosen.first() else {
        let there = counted(dump.shaders.len() as u64, "shader", "shaders");
        return Err(Failure::NotFound(format!(
            "{}: the dump names {there} and holds the code of none",
            dump.name
        )));
    };
    let gpu = dump.gpu_of(first, &args.target)?;
    dump.say_guess();
    let mut codes = Vec::new();
    for shader in chosen {
        let gpu = dump.gpu_of(shader, &args.target)?;
        let functions = vec![(0, amd_shaders::place(shader))];
        codes.push((shader.bytes(), shader.address.unwrap_or(0), functions, gpu, shader.check(&gpu)));
    }
    let found = codes.iter().any(|(.., report)| report.findings.iter().any(|f| f.level <= denied(args)));
    let mut outcome = Outcome::Complete;
    if codes.iter().any(|(.., report)| !report.complete) {
        complain!("{}: too many ways through the code: not all were followed to their end", dump.name);
        outcome = Outcome::Lost;
    }
    let checked: Vec<CheckedCode<'_>> = codes
        .iter()
        .map(|(bytes, address, functions, gpu, report)| CheckedCode {
            bytes,
            address: *address,
            functions,
            gpu: *gpu,
            lines: None,
            report,
        })
        .collect();
    show(&checked, gpu, &dump.name, args, open(args, global))?;
    Ok(if found { Outcome::Found } else { outcome })
}

/// Bare code: dwords in hexadecimal, assembly, or the bytes themselves.
pub(super) fn bare(bytes: &[u8], name: &str, gpu: &Gpu) -> Result<Vec<u8>, Failure> {
    let Ok(source) = std::str::from_utf8(bytes) else { return Ok(bytes.to_vec()) };
    let printable = source.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'));
    if !printable || source.trim().is_empty() {
        return Ok(bytes.to_vec());
    }
    if let Some(code) = hex::words(source.as_bytes(), 8) {
        return Ok(code);
    }
    assembled(name, source, gpu, Emit::Raw)
}
