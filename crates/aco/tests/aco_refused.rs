//! What the compiler refuses: programs for which the hardware has no room. Each is an error that names it, at once, and not a panic or a large allocation.

use unwedge_aco::stages::PipelineShape;
use unwedge_aco::{CompileError, Options, compile, compile_merged};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::nir;
use unwedge_shader::ir::{
    Access, AmdRegisters, Base, Builder, InterpAt, MemAccess, Op, Payload, Primitive, Shader, SlotAccess,
    SlotDir, Space, Stage, Type,
};

fn options(gpu: &str) -> Options {
    Options::new(Gpu::new(gpu).expect("a GPU"))
}

/// A shader that only returns.
fn empty(stage: Stage) -> Shader {
    let mut shader = Shader::with_entry(stage, "main");
    shader.info.input_primitive = Some(Primitive::Triangles);
    shader.info.output_primitive = Some(Primitive::Triangles);
    let func = shader.entry_mut();
    let body = func.body();
    Builder::at_end(func, body).return_(&[]);
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

/// A vertex has 32 parameters; distances to planes may be among them.
#[test]
fn parameters_have_a_limit() {
    const CLIP_DISTANCES: u16 = 2;
    for gpu in ["gfx803", "gfx1030", "gfx1100"] {
        for slots in [(32..64).collect::<Vec<u16>>(), (32..64).chain([CLIP_DISTANCES]).collect()] {
            let mut shader = empty(Stage::Vertex);
            let func = shader.entry_mut();
            let last = func.last(func.body()).expect("a return");
            let mut b = Builder::before(func, last);
            let (value, offset) = (b.u32(7), b.u32(0));
            for &slot in &slots {
                let output = SlotAccess::of(SlotDir::Output, slot);
                b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
            }
            let result = compile(&mut shader, &options(gpu));
            let refused = matches!(result, Err(CompileError::Interface(_)));
            assert_eq!((result.is_ok(), refused), (slots.len() == 32, slots.len() > 32), "{gpu}");
        }
    }
}

/// Operations of one stage are refused in every other, by name.
#[test]
fn operations_of_other_stages_are_named() {
    let bary = Payload::Bary(InterpAt::Pixel, false);
    let pair = Type { base: Base::B32, lanes: 2 };
    let cases = [
        (Op::Demote, Payload::None, None, Stage::Fragment),
        (Op::IsHelper, Payload::None, Some(Type::BOOL), Stage::Fragment),
        (Op::Barycentric, bary, Some(pair), Stage::Fragment),
        (Op::EmitVertex, Payload::Stream(0), None, Stage::Geometry),
        (Op::EndPrimitive, Payload::Stream(0), None, Stage::Geometry),
    ];
    for (op, payload, result, own) in cases {
        for stage in [Stage::Vertex, Stage::TessEval, Stage::Fragment, Stage::Compute] {
            for gpu in ["gfx600", "gfx900", "gfx1030", "gfx1200"] {
                let mut shader = empty(stage);
                let func = shader.entry_mut();
                let last = func.last(func.body()).expect("a return");
                let results: Vec<Type> = result.into_iter().collect();
                let mut b = Builder::before(func, last);
                let inst = b.inst(op, payload, &[], &results);
                // A result that is needed.
                if let Some(ty) = result {
                    let value = func.result(inst);
                    let mut b = Builder::before(func, last);
                    let (zero, one) = (b.u32(0), b.u32(1));
                    let word = |b: &mut Builder<'_>| b.alu(Op::Select, &[value, one, zero]);
                    let value = if ty == Type::BOOL { word(&mut b) } else { b.extract(value, 0) };
                    let address = b.constant(Base::B64, 0x10_0000);
                    let memory = MemAccess { space: Space::Global, access: Access::NONE, align: 2 };
                    b.inst(Op::Store, Payload::Mem(memory), &[value, address], &[]);
                }
                let compiled = compile(&mut shader, &options(gpu));
                if stage == own {
                    assert!(compiled.is_ok(), "{} in {stage:?} on {gpu}: {compiled:?}", op.name());
                    continue;
                }
                let error = compiled.expect_err("it is refused").to_string();
                assert!(error.contains(op.name()), "{} in {stage:?} on {gpu}: {error}", op.name());
            }
        }
    }
}

/// Compiles a compute shader of these sizes.
fn with_sizes(
    gpu: &str,
    workgroup_size: [u32; 3],
    shared_size: u32,
    scratch_size: u32,
) -> Result<(), CompileError> {
    let mut shader = empty(Stage::Compute);
    (shader.info.workgroup_size, shader.info.shared_size) = (workgroup_size, shared_size);
    shader.info.scratch_size = scratch_size;
    compile(&mut shader, &Options::new(Gpu::new(gpu).expect("a GPU"))).map(|_| ())
}

#[test]
fn workgroups_have_limits() {
    for size in [[1024, 1, 1], [16, 16, 4], [1; 3]] {
        assert_eq!(with_sizes("gfx1030", size, 0, 0), Ok(()));
    }
    for size in [[1025, 1, 1], [u32::MAX, 1, 1], [u32::MAX; 3], [1 << 16, 1 << 16, 1]] {
        let error = with_sizes("gfx1030", size, 0, 0).expect_err("it is refused");
        assert!(matches!(error, CompileError::Room { most: 1024, .. }), "{size:?}: {error}");
    }
    assert_eq!(with_sizes("gfx1030", [64, 0, 1], 0, 0), Err(CompileError::NoInvocations));
}

/// By GPU: bytes of LDS, and of scratch memory of an invocation.
#[test]
fn memory_of_workgroups_has_limits() {
    for (gpu, lds, scratch) in
        [("tahiti", 1 << 15, 0x1_fff0), ("gfx900", 1 << 16, 0x1_fff0), ("gfx1100", 1 << 16, 0x3_fff8)]
    {
        assert_eq!(with_sizes(gpu, [64, 1, 1], lds, scratch), Ok(()), "{gpu}");
        for (lds, scratch) in [(lds + 4, 0), (0, scratch + 4), (u32::MAX, 0), (0, u32::MAX - 3)] {
            let error = with_sizes(gpu, [64, 1, 1], lds, scratch).expect_err("it is refused");
            assert!(matches!(error, CompileError::Room { .. }), "{gpu} {lds} {scratch}: {error}");
        }
    }
}

/// A compute shader of NIR that loads one argument, in a register.
fn with_argument(vector: bool, first: u16) -> Result<(), CompileError> {
    let load = if vector { "@load_vector_arg_amd" } else { "@load_scalar_arg_amd" };
    let text = format!(
        "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
shared_size: 16
decl_function main () (entrypoint)

impl main {{
    con block b0:  // preds:
    div 32 %1 = {load} (base=0, arg_upper_bound_u32_amd=0)
    con 32 %2 = load_const (0x00000000)
    @store_shared (%1, %2) (base=0, wrmask=x, align_mul=4, align_offset=0)
    // succs: b99
    block b99:
}}

"
    );
    let argument = nir::Argument::Register(AmdRegisters { vector, first });
    let options = nir::Options { arguments: nir::Arguments(vec![argument]), file: "test.nir".to_owned() };
    let mut shader = Shader::default();
    nir::read(&text, &options, &mut shader).expect("the text is read");
    compile(&mut shader, &Options::new(Gpu::new("gfx1030").expect("a GPU"))).map(|_| ())
}

#[test]
fn arguments_are_in_registers_that_exist() {
    for (vector, first) in [(false, 5), (true, 3)] {
        assert_eq!(with_argument(vector, first).map_err(|error| error.to_string()), Ok(()));
    }
    for (vector, first) in [(false, 200), (false, u16::MAX), (true, 256), (true, u16::MAX)] {
        let error = with_argument(vector, first).expect_err("it is refused");
        assert!(matches!(error, CompileError::Registers(..)), "{vector} {first}: {error}");
    }
    // The address of the rings is there.
    for first in [0, 1] {
        let error = with_argument(false, first).expect_err("it is refused");
        assert!(matches!(error, CompileError::Overlap("scalar", _)), "{first}: {error}");
    }
}
