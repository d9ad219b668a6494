//! `unwedge shader`: shaders printed, validated, run, optimized and reduced.

mod reduce;

use crate::args::{
    Global, Packing, ShaderBindings, ShaderCommand, ShaderInput, ShaderOpt, ShaderRun, ShaderValidate,
};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use crate::packed::Packed;
use std::io::Write;
use std::path::Path;
use unwedge::files::Input;
use unwedge::shader::front::spirv::Options;
use unwedge::shader::front::{LoadError, ShaderFile, SourceText};
use unwedge::shader::interp::{Bindings, RunError};
use unwedge::shader::ir::Stage;
use unwedge::shader::text;
use unwedge_view::asm::launch::zeros;
use unwedge_view::shader::{
    BufferSource, OptimizationView, PrintRequest, PushRequest, RunRequest, RunView, ShaderRunError, Validity,
    ValidityView,
};

/// Runs the command.
pub fn run(command: &ShaderCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        ShaderCommand::Print(args) => print(args, global),
        ShaderCommand::Validate(args) => validate(args, global),
        ShaderCommand::Run(args) => execute(args, global),
        ShaderCommand::Opt(args) => optimize(args, global),
        ShaderCommand::Reduce(args) => reduce::run(args, global),
    }
}

fn options(args: &ShaderInput) -> Options {
    let specialization = args.spec.iter().map(|constant| (constant.id, constant.bits)).collect();
    Options { entry: args.entry.clone(), stage: args.stage, specialization, ..Options::default() }
}

fn unusable(name: &str, error: &LoadError) -> Failure {
    let message = format!("{name}: {error}");
    match error {
        LoadError::Specialization | LoadError::Arguments => Failure::Usage(message),
        LoadError::EntryPoint => Failure::NotFound(message),
        _ => Failure::Unusable(message),
    }
}

/// The file, in the form that it has.
fn file<'a>(input: &'a Input, args: &ShaderInput) -> Result<ShaderFile<'a>, LoadError> {
    let file = match args.language {
        Some(language) => ShaderFile::source(&input.name, &input.bytes, language)?,
        None => ShaderFile::named(&input.name, &input.bytes)?,
    };
    match &args.nir_arguments {
        Some(arguments) => file.with_arguments(arguments),
        None => Ok(file),
    }
}

pub(crate) fn load(
    args: &ShaderInput,
    global: &Global,
) -> Result<(String, unwedge::shader::ir::Shader), Failure> {
    load_file(&args.file, args, global)
}

/// The same of another file.
pub(crate) fn load_file(
    path: &Path,
    args: &ShaderInput,
    global: &Global,
) -> Result<(String, unwedge::shader::ir::Shader), Failure> {
    let input = Input::open(path, global.max_size)?;
    let shader = file(&input, args).and_then(|file| file.load(&options(args)));
    let shader = shader.map_err(|e| unusable(&input.name, &e))?;
    Ok((input.name, shader))
}

/// The shader, and the texts of its sources.
pub(crate) fn load_sourced(
    args: &ShaderInput,
    global: &Global,
) -> Result<(String, unwedge::shader::ir::Shader, Vec<SourceText>), Failure> {
    let input = Input::open(&args.file, global.max_size)?;
    let read = file(&input, args).and_then(|file| Ok((file.load(&options(args))?, file.source_texts())));
    let (shader, texts) = read.map_err(|e| unusable(&input.name, &e))?;
    Ok((input.name, shader, texts))
}

/// The graphics shaders of a file, one of each stage; any shader of a file that has none. Adds the texts of its sources.
pub(crate) fn load_stages(
    path: &Path,
    args: &ShaderInput,
    texts: &mut Vec<SourceText>,
    global: &Global,
) -> Result<Vec<unwedge::shader::ir::Shader>, Failure> {
    let input = Input::open(path, global.max_size)?;
    let refused = |e: LoadError| unusable(&input.name, &e);
    let file = file(&input, args).map_err(refused)?;
    texts.extend(file.source_texts());
    let points = file.entry_points().map_err(refused)?;
    let mut stages = Vec::new();
    for point in points.iter().filter(|point| args.entry.as_ref().is_none_or(|name| *name == point.name)) {
        stages.extend(point.stage.filter(|stage| *stage != Stage::Compute && !stages.contains(stage)));
    }
    if stages.is_empty() {
        return Ok(vec![file.load(&options(args)).map_err(refused)?]);
    }
    let load = |stage| file.load(&Options { stage: Some(stage), ..options(args) }).map_err(refused);
    stages.into_iter().map(load).collect()
}

fn print(args: &ShaderInput, global: &Global) -> Result<Outcome, Failure> {
    let (_, shader) = load(args, global)?;
    write_result(None, &text::print(&shader), global)?;
    Ok(Outcome::Complete)
}

/// Writes a shader to a file, which it replaces as a whole, or to standard output.
pub(crate) fn write_result(file: Option<&Path>, text: &str, global: &Global) -> Result<(), Failure> {
    if let Some(file) = file {
        let mut packed = Packed::create(Some(file), Some(Packing::None), &[])?;
        packed.write_all(text.as_bytes()).map_err(|e| Failure::Write(file.display().to_string(), e))?;
        return packed.commit();
    }
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(text.as_bytes());
    Ok(out.finish()?)
}

fn optimize(args: &ShaderOpt, global: &Global) -> Result<Outcome, Failure> {
    let (name, mut shader) = load(&args.input, global)?;
    let request = PrintRequest { after: &args.print_after, changed: args.print_changed };
    let view = OptimizationView::of(&mut shader, &args.passes, request);
    if args.json || request.is_any() {
        let mut out = Output::open(global, true);
        // A failed write is remembered, and reported by `finish`.
        let _ = if args.json { view.json(&mut out) } else { view.text(&mut out) };
        out.finish()?;
    }
    if args.output.is_some() || !(args.json || request.is_any()) {
        write_result(args.output.as_deref(), view.shader(), global)?;
    }
    Ok(match view.invalid() {
        None => Outcome::Complete,
        Some(invalid) => {
            complain!("{name}: {invalid}");
            Outcome::Found
        }
    })
}

fn validate(args: &ShaderValidate, global: &Global) -> Result<Outcome, Failure> {
    let input = Input::open(&args.input.file, global.max_size)?;
    let view = ValidityView::of(&input.name, file(&input, &args.input), &options(&args.input))
        .map_err(|e| unusable(&input.name, &e))?;
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    let _ = if args.json { view.json(&mut out) } else { view.text(&mut out) };
    out.finish()?;
    Ok(match view.validity() {
        Validity::Valid => Outcome::Complete,
        Validity::Unsupported => {
            complain!("{}: not everything could be checked", input.name);
            Outcome::Lost
        }
        Validity::Invalid => Outcome::Found,
    })
}

/// Buffers and push constants, as the command line gives them.
pub(crate) fn bound(args: &ShaderBindings, global: &Global) -> Result<Bindings, Failure> {
    let content = |file: &Path| Ok::<_, Failure>(Input::open(file, global.max_size)?.bytes.to_vec());
    let mut bound = Bindings::default();
    for buffer in &args.buffer {
        let bytes = match &buffer.source {
            BufferSource::File(file) => content(file)?,
            BufferSource::Zeros(size) => {
                zeros(*size, global.max_size).map_err(|e| Failure::Usage(e.to_string()))?
            }
        };
        if bound.buffers.contains_key(&buffer.point) {
            return Err(Failure::Usage("two buffers are given for one descriptor".to_owned()));
        }
        bound.bind(buffer.point, bytes);
    }
    bound.push = match &args.push {
        Some(PushRequest::Bytes(bytes)) => bytes.clone(),
        Some(PushRequest::File(file)) => content(file)?,
        None => Vec::new(),
    };
    Ok(bound)
}

fn execute(args: &ShaderRun, global: &Global) -> Result<Outcome, Failure> {
    let (name, mut shader) = load(&args.input, global)?;
    if let Some(passes) = &args.passes {
        let view = OptimizationView::of(&mut shader, passes, PrintRequest::default());
        if let Some(invalid) = view.invalid() {
            return Err(Failure::Unusable(format!("{name}: {invalid}")));
        }
    }
    let mut bound = bound(&args.bindings, global)?;
    let request = RunRequest {
        workgroups: args.bindings.groups,
        subgroup_size: args.subgroup,
        steps: args.steps,
        outputs: &args.out,
    };
    request.warnings(&shader, &bound).iter().for_each(|warning| complain!("{name}: {warning}"));
    let view = RunView::of(&shader, &mut bound, &request).map_err(|e| match e {
        ShaderRunError::Unbound(_) | ShaderRunError::Run(RunError::SubgroupSize(_)) => {
            Failure::Usage(e.to_string())
        }
        ShaderRunError::Run(_) => Failure::Unusable(format!("{name}: {e}")),
    })?;
    for (file, bytes) in request.files(&bound) {
        std::fs::write(file, bytes).map_err(|e| Failure::Write(file.display().to_string(), e))?;
    }
    let mut out = Output::open(global, true);
    // A failed write is remembered, and reported by `finish`.
    let _ = if args.json { view.json(&mut out) } else { view.text(&mut out) };
    out.finish()?;
    Ok(if view.report.findings.is_empty() { Outcome::Complete } else { Outcome::Found })
}
