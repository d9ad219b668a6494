//! What the compiler refuses: programs for which the hardware has no room. Each is an error that names it, at once, and not a panic or a large allocation.

use unwedge_aco::stages::PipelineShape;
use unwedge_aco::{CompileError, Options, compile, compile_merged};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::nir;
use unwedge_shader::ir::{Primitive, Shader, Stage};

fn options(gpu: &str) -> Options {
    let mut options = Options::new(Gpu::new(gpu).expect("a GPU"));
    options.graphics.shape = PipelineShape::default().with(Stage::Vertex).with(Stage::TessControl);
    options
}

/// A shader that only returns.
fn empty(stage: Stage) -> Shader {
    let mut shader = Shader::default();
    shader.info.stage = stage;
    shader.info.name = "main".to_owned();
    shader.info.input_primitive = Some(Primitive::Triangles);
    shader.info.output_primitive = Some(Primitive::Triangles);
    shader.add_function();
    let func = shader.entry_mut();
    let body = func.body();
    unwedge_shader::ir::Builder::at_end(func, body).return_(&[]);
    shader
}

#[test]
fn vertices_have_a_limit() {
    for (stage, most) in [(Stage::TessControl, 32), (Stage::Geometry, 1024)] {
        for gpu in ["gfx803", "gfx1030"] {
            let mut options = options(gpu);
            options.graphics.shape = PipelineShape::default().with(Stage::Vertex).with(stage);
            let build = |vertices: u32| {
                let (mut first, mut second) = (empty(Stage::Vertex), empty(stage));
                second.info.output_vertices = vertices;
                match gpu {
                    "gfx803" => compile(&mut second, &options),
                    _ => compile_merged(&mut first, &mut second, &options),
                }
            };
            if let Err(error) = build(most) {
                panic!("{gpu} {stage:?}: {error}");
            }
            for vertices in [most + 1, 1 << 20, u32::MAX] {
                let error = build(vertices).expect_err("it is refused");
                assert!(matches!(error, CompileError::Interface(_)), "{gpu} {stage:?}: {error}");
            }
        }
    }
}

/// A compute shader of NIR that loads one argument, in a register.
fn with_argument(place: &str) -> Result<(), CompileError> {
    let vector = place.starts_with('v');
    let load = if vector { "@load_vector_arg_amd" } else { "@load_scalar_arg_amd" };
    let text = format!(
        "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
decl_function main () (entrypoint)

impl main {{
    con block b0:  // preds:
    div 32 %1 = {load} (base=0, arg_upper_bound_u32_amd=0)
    con 32 %2 = load_const (0x00000000)
    con 32 %3 = load_const (0x00000000)
    con 32x4 %4 = vec4 %2, %2, %2, %2
    @store_buffer_amd (%1, %4, %2, %3, %3) (base=0, wrmask=x, memory_modes=ssbo, access=none)
    // succs: b99
    block b99:
}}

"
    );
    let arguments = nir::Arguments::parse(&format!("arg0={place}")).expect("an argument");
    let options = nir::Options { arguments, file: "test.nir".to_owned() };
    let mut shader = Shader::default();
    nir::read(&text, &options, &mut shader).expect("the text is read");
    compile(&mut shader, &Options::new(Gpu::new("gfx1030").expect("a GPU"))).map(|_| ())
}

#[test]
fn arguments_are_in_registers_that_exist() {
    for place in ["s5:1", "v3:1"] {
        assert_eq!(with_argument(place).map_err(|error| error.to_string()), Ok(()), "{place}");
    }
    for place in ["s200:1", "s65535:1", "v256:1", "v65535:1"] {
        let error = with_argument(place).expect_err("it is refused");
        assert!(matches!(error, CompileError::Registers(..)), "{place}: {error}");
    }
}
