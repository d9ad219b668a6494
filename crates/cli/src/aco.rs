//! `unwedge aco`: shaders compiled for AMD GPUs.

mod bisect;
mod pipeline;

use crate::args::{AcoAbi, AcoCodegen, AcoCommand, AcoCompile, AcoEmit, AcoEmulation, AcoPrint, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::isa::{amd_target, deliver};
use crate::output::Output;
use crate::shader::{bound, load_sourced, write_result};
use std::io::{self, Write};
use unwedge::shader::interp::Bindings;
use unwedge::shader::ir::{Shader, Stage};
use unwedge_view::aco::{
    CallingConvention, CodeForm, CompileView, CompileViewError, EmulationError, EmulationRequest,
    EmulationView, GraphicsOptions, Limits, Options, Passes, PhaseRequest, SourceText, TARGETS,
    UnknownOption, VertexInput, phases, print_phases,
};
use unwedge_view::shader::{OutputRequest, RunRequest};

/// Runs the command.
pub fn run(command: &AcoCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        AcoCommand::Compile(args) => compile(args, global),
        AcoCommand::Bisect(args) => bisect::run(args, global),
    }
}

/// What the command line says of the code.
fn options(args: &AcoCodegen) -> Result<Options, Failure> {
    let gpu = amd_target::gpu(&args.target, None)?;
    let passes: Passes = args.aco_debug.parse().map_err(|e: UnknownOption| Failure::Usage(e.to_string()))?;
    let passes = Passes { combinations: args.max_combinations, ..passes };
    if args.color_formats.len().max(args.half_colors.len()) > TARGETS {
        return Err(Failure::Usage(format!("there are {TARGETS} attachments")));
    }
    let mut graphics = GraphicsOptions {
        legacy: args.nongg,
        culling: args.nggc,
        patch_vertices: args.patch_vertices,
        ..GraphicsOptions::default()
    };
    for (location, format) in (0..).zip(&args.vertex_formats) {
        let input = VertexInput { format: *format, ..VertexInput::floats(location) };
        graphics.vertex_inputs.insert(location, input);
    }
    graphics.targets[..args.color_formats.len()].copy_from_slice(&args.color_formats);
    graphics.half_colours[..args.half_colors.len()].copy_from_slice(&args.half_colors);
    let limits = Limits::of(&gpu).within(&gpu, args.max_sgprs, args.max_vgprs, args.min_waves);
    let convention = match args.abi {
        AcoAbi::Driver => CallingConvention::Driver,
        AcoAbi::Hsa => CallingConvention::Hsa,
    };
    Ok(Options { passes, graphics, limits, convention, lines: true, ..Options::new(gpu) })
}

fn form(emit: AcoEmit) -> CodeForm {
    match emit {
        AcoEmit::Asm => CodeForm::Assembly,
        AcoEmit::Code => CodeForm::Code,
        AcoEmit::Object => CodeForm::Object,
        AcoEmit::Shared => CodeForm::Shared,
    }
}

fn request<'a>(args: &AcoEmulation, compare: bool, outputs: &'a [OutputRequest]) -> EmulationRequest<'a> {
    EmulationRequest {
        workgroups: args.bindings.groups,
        steps: args.emulator.steps,
        seed: args.emulator.seed,
        threads: args.emulator.threads(),
        compare,
        outputs,
    }
}

fn failed(name: &str, error: &EmulationError) -> Failure {
    match error {
        EmulationError::Unbound(_) | EmulationError::Groups(_) => Failure::Usage(error.to_string()),
        error => Failure::Unusable(format!("{name}: {error}")),
    }
}

fn compile(args: &AcoCompile, global: &Global) -> Result<Outcome, Failure> {
    if !args.run && args.emulation.is_asked() {
        let options = "--groups, --buffer, --push, --steps, --seed and --threads";
        return Err(Failure::Usage(format!("{options} belong to --run")));
    }
    let options = options(&args.codegen)?;
    if args.pipeline || !args.stages.is_empty() {
        let shaders = pipeline::load(args, global)?;
        return outcome("pipeline", pipeline::compiled(args, shaders, &options, global));
    }
    let (name, shader, texts) = load_sourced(&args.input, global)?;
    let mut options = options;
    let stage = shader.info.stage;
    if args.parts && !matches!(stage, Stage::Vertex | Stage::Fragment) {
        return Err(Failure::Usage("--parts is for vertex and fragment shaders".to_owned()));
    }
    options.graphics.prolog = args.parts && stage == Stage::Vertex;
    options.graphics.epilog = args.parts && stage == Stage::Fragment;
    outcome(&name, compiled(args, &name, &shader, texts, &options, global))
}

/// What the command ends with.
fn outcome(name: &str, compiled: Result<Outcome, CompileFailure>) -> Result<Outcome, Failure> {
    match compiled {
        Err(CompileFailure::View(error @ CompileViewError::Phase(_))) => {
            let known: Vec<&str> = phases().collect();
            Err(Failure::Usage(format!("{error}; phases are {}", known.join(", "))))
        }
        Err(CompileFailure::View(error)) => {
            complain!("{name}: {error}");
            Ok(Outcome::Found)
        }
        Err(CompileFailure::Other(failure)) => Err(failure),
        Ok(outcome) => Ok(outcome),
    }
}

/// Why there is no code, or it is not written.
enum CompileFailure {
    View(CompileViewError),
    Other(Failure),
}

impl From<CompileViewError> for CompileFailure {
    fn from(error: CompileViewError) -> CompileFailure {
        CompileFailure::View(error)
    }
}

impl From<Failure> for CompileFailure {
    fn from(failure: Failure) -> CompileFailure {
        CompileFailure::Other(failure)
    }
}

impl From<io::Error> for CompileFailure {
    fn from(error: io::Error) -> CompileFailure {
        CompileFailure::Other(error.into())
    }
}

/// Writes a program to standard error. Nobody listening is no reason to fail.
fn note(program: &str) {
    let _ = io::stderr().write_all(program.as_bytes());
}

/// Prints programs after phases. Returns whether nothing else is made.
fn print_asked(
    args: &AcoCompile,
    print: impl Fn(&PhaseRequest) -> Result<String, CompileViewError>,
    global: &Global,
) -> Result<bool, CompileFailure> {
    let wanted = PhaseRequest { after: args.print_after.clone(), changed: args.print_changed };
    if wanted.is_any() {
        write_result(None, &print(&wanted)?, global)?;
        return Ok(true);
    }
    for (phase, asked) in [("select", AcoPrint::Preoptir), ("opt", AcoPrint::Shaders)] {
        if args.radv_debug.contains(&asked) {
            note(&print(&PhaseRequest { after: vec![phase.to_owned()], changed: false })?);
        }
    }
    Ok(false)
}

fn compiled(
    args: &AcoCompile,
    name: &str,
    shader: &Shader,
    texts: Vec<SourceText>,
    options: &Options,
    global: &Global,
) -> Result<Outcome, CompileFailure> {
    let print = |request: &PhaseRequest| print_phases(&mut shader.clone(), options, request);
    if print_asked(args, print, global)? {
        return Ok(Outcome::Complete);
    }
    let view = CompileView::of(&mut shader.clone(), options)?.with_texts(texts);
    if args.radv_debug.contains(&AcoPrint::Shaders) {
        note(&String::from_utf8_lossy(&view.bytes(CodeForm::Assembly)?));
    }
    let statistics = view.statistics();
    if args.stats {
        statistics.to_string().lines().for_each(|line| complain!("{line}"));
    }
    if options.passes.warnings {
        statistics.warnings().iter().for_each(|warning| complain!("{name}: {warning}"));
    }
    let alone = !(args.run || args.json);
    if alone || args.output.is_some() {
        let bytes = view.bytes(form(args.emit)).map_err(|error| match error {
            error @ CompileViewError::Assemble(_) => Failure::Unusable(format!("{name}: {error}")).into(),
            error => CompileFailure::View(error),
        })?;
        if args.emit == AcoEmit::Asm {
            write_result(args.output.as_deref(), &String::from_utf8_lossy(&bytes), global)?;
        } else {
            deliver(&bytes, args.output.as_deref(), global)?;
        }
    }
    if alone {
        return Ok(Outcome::Complete);
    }
    let ran = if args.run { Some(emulate(args, name, shader, &view, options, global)?) } else { None };
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let _ = match &ran {
        ran if args.json => view.json(ran.as_ref(), &mut out),
        Some(ran) => ran.text(&mut out),
        None => Ok(()),
    };
    out.finish()?;
    let Some(ran) = ran else { return Ok(Outcome::Complete) };
    let mut outcome = if ran.is_good() { Outcome::Complete } else { Outcome::Found };
    if let Some(why) = ran.not_compared() {
        complain!("{name}: not compared: {why}");
        outcome = outcome.or(Outcome::Lost);
    }
    Ok(outcome)
}

/// Runs the code, and writes the buffers that are wanted in files.
fn emulate(
    args: &AcoCompile,
    name: &str,
    shader: &Shader,
    view: &CompileView,
    options: &Options,
    global: &Global,
) -> Result<EmulationView, Failure> {
    let mut bindings: Bindings = bound(&args.emulation.bindings, global)?;
    let lanes = options.gpu.lanes();
    let declared = RunRequest {
        workgroups: args.emulation.bindings.groups,
        subgroup_size: lanes,
        steps: args.emulation.emulator.steps,
        outputs: &args.out,
    };
    declared.warnings(shader, &bindings).iter().for_each(|warning| complain!("{name}: {warning}"));
    let request = request(&args.emulation, args.compare, &args.out);
    let ran = EmulationView::of(shader, view, options, &mut bindings, &request);
    let ran = ran.map_err(|error| failed(name, &error))?;
    for (file, bytes) in declared.files(&bindings) {
        std::fs::write(file, bytes).map_err(|e| Failure::Write(file.display().to_string(), e))?;
    }
    Ok(ran)
}
