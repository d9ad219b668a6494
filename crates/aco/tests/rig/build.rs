//! Programs of graphics stages: a shader alone, or with its prolog or epilog in one code, as a driver joins them. The checker accepts each.

use super::recorded::Problem;
use unwedge_aco::abi::PixelProlog;
use unwedge_aco::graphics::VertexInput;
use unwedge_aco::parts::{compile_pixel_epilog, compile_pixel_prolog, compile_vertex_prolog};
use unwedge_aco::{CompileError, Compiled, Options, compile};
use unwedge_check::amdgcn::{Certainty, CheckFinding, CheckOptions, Rule, check_words};
use unwedge_isa::amdgcn::texel::{NumberFormat, TexelFormat};
use unwedge_shader::ir::Shader;

/// Denormals of 32 bits are kept, as the interpreter keeps them.
fn keeping_denormals(shader: &Shader) -> Shader {
    let mut shader = shader.clone();
    shader.info.float_modes[1].flush = Some(false);
    shader
}

fn refused(error: CompileError) -> Problem {
    ("compile", error.to_string())
}

/// Compiles a shader of a graphics stage.
pub fn build(shader: &Shader, options: &Options) -> Result<Compiled, Problem> {
    let mut shader = keeping_denormals(shader);
    let compiled = compile(&mut shader, options).map_err(refused)?;
    check(compiled, options)
}

/// Compiles a pixel shader and its epilog, one after the other in one code.
pub fn build_with_epilog(shader: &Shader, options: &Options) -> Result<Compiled, Problem> {
    let mut shader = keeping_denormals(shader);
    let mut main = options.clone();
    main.graphics.epilog = true;
    let mut compiled = compile(&mut shader, &main).map_err(refused)?;
    let interface = &compiled.args.interface;
    let epilog = compile_pixel_epilog(interface, compiled.float_mode, options).map_err(refused)?;
    compiled.code.words.extend(epilog.code.words);
    check(compiled, options)
}

/// Compiles a pixel shader, a prolog and an epilog, one after the other in one code.
pub fn build_with_pixel_prolog(
    shader: &Shader,
    options: &Options,
    state: PixelProlog,
) -> Result<Compiled, Problem> {
    let mut after = options.clone();
    after.graphics.prolog = true;
    let main = build_with_epilog(shader, &after)?;
    let prolog = compile_pixel_prolog(&main.args, main.float_mode, state, options).map_err(refused)?;
    let mut code = main.code;
    code.words.splice(0..0, prolog.code.words);
    let mut args = prolog.args;
    // Attributes are those of the shader.
    args.interface.attributes.clone_from(&main.args.interface.attributes);
    args.interface.half_attributes.clone_from(&main.args.interface.half_attributes);
    args.interface.vertex_attributes.clone_from(&main.args.interface.vertex_attributes);
    check(Compiled { code, args, ..main }, options)
}

/// Compiles a vertex shader and its prolog, one after the other in one code.
pub fn build_with_prolog(shader: &Shader, options: &Options) -> Result<Compiled, Problem> {
    let mut shader = keeping_denormals(shader);
    let mut main = options.clone();
    main.graphics.prolog = true;
    // The shader knows only whether an attribute is a float.
    for input in main.graphics.vertex_inputs.values_mut() {
        let integers = matches!(input.format.number(), NumberFormat::Uint | NumberFormat::Sint);
        let format = if integers { TexelFormat::of_name("32_32_32_32_UINT") } else { None };
        *input = VertexInput { format: format.unwrap_or(TexelFormat::FLOATS), ..VertexInput::floats(0) };
    }
    let mut compiled = compile(&mut shader, &main).map_err(refused)?;
    let prolog = compile_vertex_prolog(&compiled.args, compiled.float_mode, options).map_err(refused)?;
    compiled.code.words.splice(0..0, prolog.code.words);
    check(compiled, options)
}

fn check(compiled: Compiled, options: &Options) -> Result<Compiled, Problem> {
    let checked = CheckOptions { exports: true, ..CheckOptions::default() };
    let report = check_words(&compiled.code.words, &options.gpu, &checked);
    // A shader that never ends is compiled; it is not run.
    let wrong = |finding: &&CheckFinding| finding.level != Certainty::Speed && finding.rule != Rule::NoEnd;
    match report.findings.iter().find(wrong) {
        Some(finding) => Err(("check", format!("{finding:?}"))),
        None if report.complete => Ok(compiled),
        None => Err(("check", "the check is not complete".to_owned())),
    }
}
