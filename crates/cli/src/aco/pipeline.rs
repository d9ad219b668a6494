//! Pipelines of `unwedge aco compile`: all graphics shaders of the files, linked and compiled.

use super::{CompileFailure, form, note, print_asked};
use crate::args::{AcoCompile, AcoEmit, AcoPrint, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::isa::deliver;
use crate::output::Output;
use crate::shader::{load_stages, write_result};
use std::path::{Path, PathBuf};
use unwedge::shader::ir::Shader;
use unwedge_view::aco::{Options, PhaseRequest, PipelineView, SourceText, print_pipeline_phases};

/// All graphics shaders of the files, and the texts of their sources.
pub(super) fn load(args: &AcoCompile, global: &Global) -> Result<(Vec<Shader>, Vec<SourceText>), Failure> {
    let files = std::iter::once(&args.input.file).chain(&args.stages);
    let (mut shaders, mut texts) = (Vec::new(), Vec::new());
    for file in files {
        shaders.extend(load_stages(file, &args.input, &mut texts, global)?);
    }
    Ok((shaders, texts))
}

/// The file of a program: `shader.bin` is `shader.ps.bin` of the pixel shader.
fn file_of(file: &Path, hardware: &str) -> PathBuf {
    let hardware = hardware.to_ascii_lowercase();
    match file.extension() {
        Some(extension) => {
            let mut own = std::ffi::OsString::from(hardware);
            own.push(".");
            own.push(extension);
            file.with_extension(own)
        }
        None => file.with_extension(hardware),
    }
}

pub(super) fn compiled(
    args: &AcoCompile,
    (shaders, texts): (Vec<Shader>, Vec<SourceText>),
    options: &Options,
    global: &Global,
) -> Result<Outcome, CompileFailure> {
    let print = |request: &PhaseRequest| print_pipeline_phases(shaders.clone(), options, request);
    if print_asked(args, print, global)? {
        return Ok(Outcome::Complete);
    }
    let view = PipelineView::of(shaders, options)?.with_texts(&texts);
    if args.radv_debug.contains(&AcoPrint::Shaders) {
        note(&view.assembly()?);
    }
    for program in view.programs() {
        let (statistics, heading) = (program.statistics(), program.heading());
        if args.stats {
            complain!("{heading}:");
            statistics.to_string().lines().for_each(|line| complain!("  {line}"));
        }
        if options.passes.warnings {
            statistics.warnings().iter().for_each(|warning| complain!("{heading}: {warning}"));
        }
    }
    if !args.json || args.output.is_some() {
        write_code(args, &view, global)?;
    }
    if args.json {
        let mut out = Output::open(global, true);
        // A failed write is remembered, and reported by `finish`.
        let _ = view.json(&mut out);
        out.finish()?;
    }
    Ok(Outcome::Complete)
}

fn write_code(args: &AcoCompile, view: &PipelineView, global: &Global) -> Result<(), CompileFailure> {
    if args.emit == AcoEmit::Asm {
        write_result(args.output.as_deref(), &view.assembly()?, global)?;
        return Ok(());
    }
    let form = form(args.emit);
    let codes = view.programs().iter().map(|program| Ok((program, program.bytes(form)?)));
    let codes: Vec<_> = codes.collect::<Result<_, CompileFailure>>()?;
    let Some(file) = &args.output else {
        let message = "the code of a pipeline goes to a file for each hardware stage, so -o is needed";
        return Err(Failure::Usage(message.to_owned()).into());
    };
    for (program, code) in codes {
        deliver(&code, Some(&file_of(file, program.hardware().name())), global)?;
    }
    Ok(())
}
