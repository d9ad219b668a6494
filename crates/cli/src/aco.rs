//! `unwedge aco`: shaders compiled for AMD GPUs.

use crate::args::{AcoCommand, AcoCompile, AcoEmit, Global};
use crate::failure::{Failure, Outcome, complain};
use crate::isa::{amd_target, deliver};
use crate::shader::{load, write_result};
use unwedge_view::aco::{
    CodeForm, CompileView, CompileViewError, GraphicsOptions, Limits, Options, TARGETS, UnknownOption,
    phases, print_after,
};

/// Runs the command.
pub fn run(command: &AcoCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        AcoCommand::Compile(args) => compile(args, global),
    }
}

fn compile(args: &AcoCompile, global: &Global) -> Result<Outcome, Failure> {
    let gpu = amd_target::gpu(&args.target, None)?;
    let (name, mut shader) = load(&args.input, global)?;
    let passes = args.aco_debug.parse().map_err(|e: UnknownOption| Failure::Usage(e.to_string()))?;
    if args.color_formats.len() > TARGETS {
        return Err(Failure::Usage(format!("there are {TARGETS} attachments")));
    }
    let mut graphics = GraphicsOptions { legacy: args.nongg, ..GraphicsOptions::default() };
    graphics.targets[..args.color_formats.len()].copy_from_slice(&args.color_formats);
    let limits = Limits::of(&gpu).within(&gpu, args.max_sgprs, args.max_vgprs, args.min_waves);
    let options = Options { passes, graphics, limits, ..Options::new(gpu) };
    let done = match &args.print_after {
        Some(phase) => print_after(&mut shader, &options, phase).map(|text| (text, None)),
        None => CompileView::of(&mut shader, &options).map(|view| (String::new(), Some(view))),
    };
    let (text, view) = match done {
        Ok(done) => done,
        Err(error @ CompileViewError::Phase(_)) => {
            let known: Vec<&str> = phases().collect();
            return Err(Failure::Usage(format!("{error}; phases are {}", known.join(", "))));
        }
        Err(error) => {
            complain!("{name}: {error}");
            return Ok(Outcome::Found);
        }
    };
    let Some(view) = view else {
        write_result(None, &text, global)?;
        return Ok(Outcome::Complete);
    };
    if args.stats {
        view.to_string().lines().for_each(|line| complain!("{line}"));
    }
    let form = match args.emit {
        AcoEmit::Asm => CodeForm::Assembly,
        AcoEmit::Code => CodeForm::Code,
        AcoEmit::Object => CodeForm::Object,
    };
    let bytes = view.bytes(form).map_err(|e| Failure::Unusable(format!("{name}: {e}")))?;
    if form == CodeForm::Assembly {
        write_result(args.output.as_deref(), &String::from_utf8_lossy(&bytes), global)?;
        return Ok(Outcome::Complete);
    }
    deliver(&bytes, args.output.as_deref(), global)?;
    Ok(Outcome::Complete)
}
