//! Compute tests of the conformance suite, and scripts of this file: compiled, executed on the emulator, their expectations hold.

mod rig;

use rig::scripts::Emulator;
use std::collections::BTreeMap;
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::ir::Shader;
use unwedge_shader::text;
use unwedge_shader::valid::validate;
use unwedge_testkit::amber::{self, AmberReason, Interpreter, Pipeline, read_shader};
use unwedge_testkit::data;

const GPUS: [&str; 4] = ["gfx900", "gfx1030", "gfx1100", "gfx1200"];

/// Why a script says nothing of the compiler: its expectations do not hold in the interpreter either, or its result is not determined.
fn not_determined(script: &amber::Script, modules: &BTreeMap<String, &[u8]>) -> Option<String> {
    let mut interpreter = Interpreter::new(modules);
    match script.run(&mut interpreter).map_err(|error| error.reason) {
        Err(AmberReason::Failed(what)) => Some(format!("in the interpreter, too: {what}")),
        _ => {
            let race = interpreter.findings.iter().find(|finding| finding.starts_with("Race"));
            race.map(|finding| format!("the interpreter reports {finding}"))
        }
    }
}

/// Descriptors of all kinds, in arrays and with offsets, a structure, and an image with several samples.
const DESCRIPTORS: &str = r#"
SHADER compute shader IR
shader compute "main"
workgroup_size 4 1 1
sizes shared 0 scratch 0 push 4
floats 16 nearest any
floats 32 nearest any
floats 64 nearest any
type t0 = b32
type t1 = b32x4
var v0 "i" function t0
var v1 "x" function t0
var v2 "colour" function t1
resource r0 "o" storage_buffer set 0 binding 1 count 2 size 0 dim buffer access restrict
resource r1 "u" uniform_buffer set 0 binding 0 count 1 size 4 dim buffer access restrict
resource r2 "t" uniform_texel_buffer set 0 binding 2 count 1 size 0 dim buffer access restrict
resource r3 "ms" combined_image_sampler set 1 binding 3 count 1 size 0 dim 2d access restrict
resource r4 "w" storage_texel_buffer set 0 binding 3 count 1 size 0 dim buffer access restrict
resource r5 "tex" sampled_image set 1 binding 0 count 1 size 0 dim 2d access restrict
resource r6 "s" sampler set 1 binding 1 count 2 size 0 dim buffer access restrict
resource r7 "both" combined_image_sampler set 1 binding 2 count 2 size 0 dim 2d access restrict
resource r8 "result" storage_image set 1 binding 4 count 1 size 0 dim 2d access restrict
resource r9 "items" storage_buffer set 2 binding 0 count 1 size 0 dim buffer access restrict
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x4>
  %3: b32 = const<0x3>
  %4: b32 = const<0x3f000000>
  %5: b32 = const<0x3e800000>
  %6: b32 = const<0x3f800000>
  %7: b32 = const<0x2>
  %8: b32 = const<0x20>
  %9: b32 = const<0x10>
  %10: b32 = const<0x40000000>
  %11: b32x3 = sysval<global_invocation_id>
  %12: b32 = extract<0> %11
  store_var<v0 mask 0x1> %12
  %13: b32 = load_var<v0 mask 0x0>
  %14: handle = descriptor<r1> %0
  %15: b32 = load<uniform align 16 access readonly|restrict> %14, %0
  %16: handle = descriptor<r2> %0
  %17: b32 = load_var<v0 mask 0x0>
  %18: b32x4 = image_fetch<buffer> %16, %17
  %19: b32 = extract<0> %18
  %20: b32 = imul %15, %19
  %21: b32 = load<push align 16 access readonly> %0
  %22: b32 = iadd %20, %21
  %23: handle = descriptor<r0> %0
  %24: b32 = imul %13, %2
  %25: b32 = load<storage align 4 access restrict> %23, %24
  %26: b32 = iadd %25, %22
  %27: handle = descriptor<r0> %0
  %28: b32 = imul %13, %2
  store<storage align 4 access restrict> %26, %27, %28
  %29: b32 = load_var<v0 mask 0x0>
  %30: handle = descriptor<r3> %0
  %31: b32 = load_var<v0 mask 0x0>
  %32: b32 = iand %31, %1
  %33: b32 = load_var<v0 mask 0x0>
  %34: b32 = ushr %33, %1
  %35: b32x2 = vec %32, %34
  %36: b32 = load_var<v0 mask 0x0>
  %37: b32x4 = image_fetch<2d flags sample|ms> %30, %35, %36
  %38: b32 = extract<0> %37
  %39: handle = descriptor<r0> %1
  %40: b32 = buffer_size %39
  %41: b32 = iadd %0, %0
  %42: b32 = isub %40, %41
  %43: b32 = udiv %42, %2
  %44: b32 = iadd %38, %43
  %45: handle = descriptor<r0> %1
  %46: b32 = imul %29, %2
  store<storage align 4 access restrict> %44, %45, %46
  %47: handle = descriptor<r4> %0
  %48: b32 = load_var<v0 mask 0x0>
  %49: handle = descriptor<r4> %0
  %50: b32 = load_var<v0 mask 0x0>
  %51: b32x4 = image_load<buffer format 33> %49, %50
  %52: b32 = extract<0> %51
  %53: b32 = imul %52, %3
  %54: b32x4 = vec %53, %53, %53, %53
  image_store<buffer format 33> %54, %47, %48
  %55: b32 = load_var<v0 mask 0x0>
  %56: b32 = u2f %55
  %57: b32 = fadd %56, %4
  %58: b32 = fmul %57, %5
  store_var<v1 mask 0x1> %58
  %59: handle = descriptor<r5> %0
  %60: handle = descriptor<r6> %0
  %61: b32 = load_var<v1 mask 0x0>
  %62: b32x2 = vec %61, %4
  %63: b32x4 = image_sample<2d flags lod> %59, %60, %62, %0
  store_var<v2 mask 0xf> %63
  %64: handle = descriptor<r5> %0
  %65: handle = descriptor<r6> %1
  %66: b32 = load_var<v1 mask 0x0>
  %67: b32 = fadd %66, %6
  %68: b32x2 = vec %67, %4
  %69: b32x4 = image_sample<2d flags lod> %64, %65, %68, %0
  %70: b32 = extract<1> %69
  %71: b32x4 = vec %70, %70, %70, %70
  store_var<v2 mask 0x2> %71
  %72: handle = descriptor<r7> %0
  %73: b32 = load_var<v1 mask 0x0>
  %74: b32x2 = vec %73, %4
  %75: b32x4 = image_sample<2d flags lod> %72, %72, %74, %0
  %76: b32 = extract<2> %75
  %77: handle = descriptor<r7> %1
  %78: b32 = load_var<v1 mask 0x0>
  %79: b32x2 = vec %78, %4
  %80: b32x4 = image_sample<2d flags lod> %77, %77, %79, %0
  %81: b32 = extract<3> %80
  %82: b32 = fadd %76, %81
  %83: b32x4 = vec %82, %82, %82, %82
  store_var<v2 mask 0x4> %83
  %84: handle = descriptor<r8> %0
  %85: b32 = load_var<v0 mask 0x0>
  %86: b32x2 = vec %85, %0
  %87: b32x4 = load_var<v2 mask 0x0>
  image_store<2d format 4> %87, %84, %86
  %88: b32 = load_var<v0 mask 0x0>
  %89: b32 = load_var<v0 mask 0x0>
  %90: handle = descriptor<r9> %0
  %91: b32 = imul %89, %8
  %92: b32 = iadd %91, %9
  %93: b32 = iadd %92, %2
  %94: b32 = load<storage align 4 access restrict> %90, %93
  %95: b32 = fmul %94, %10
  %96: handle = descriptor<r9> %0
  %97: b32 = imul %88, %8
  store<storage align 16 access restrict> %95, %96, %97
  %98: b32 = load_var<v0 mask 0x0>
  %99: b32 = load_var<v0 mask 0x0>
  %100: handle = descriptor<r9> %0
  %101: b32 = imul %99, %8
  %102: b32 = iadd %101, %2
  %103: b32 = load<storage align 4 access restrict> %100, %102
  %104: handle = descriptor<r3> %0
  %105: b32 = image_samples<2d flags ms> %104
  %106: b32 = iadd %103, %105
  %107: handle = descriptor<r9> %0
  %108: b32 = imul %98, %8
  %109: b32 = iadd %108, %2
  %110: b32 = iadd %109, %2
  store<storage align 4 access restrict> %106, %107, %110
  return
}
END

STRUCT item
  float scale
  uint32 counts[2]
  vec3<float> weights
END

BUFFER push DATA_TYPE uint32 DATA 5 END
BUFFER factors DATA_TYPE uint32 SIZE 64 SERIES_FROM 0 INC_BY 1
BUFFER first DATA_TYPE uint32 SIZE 4 FILL 0
BUFFER second DATA_TYPE uint32 SIZE 8 FILL 0
BUFFER expected DATA_TYPE uint32 DATA 74 138 202 266 END
BUFFER texels DATA_TYPE R8_UINT DATA 1 2 3 4 END
BUFFER words DATA_TYPE uint32 SIZE 4 SERIES_FROM 1 INC_BY 2
BUFFER items DATA_TYPE item DATA
  0 7 0 0.5 1.5 2.5
  0 8 0 0.5 2.5 2.5
  0 9 0 0.5 3.5 2.5
  0 10 0 0.5 4.5 2.5
END

IMAGE row FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 4 HEIGHT 1 DATA
  0 10 51 255  51 10 51 255  102 10 51 255  153 10 51 255
END
IMAGE other FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 4 HEIGHT 1 FILL 51
IMAGE reference FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 4 HEIGHT 1 DATA
  0 255 102 255  51 255 102 255  102 255 102 255  153 255 102 255
END
IMAGE samples FORMAT R32_UINT DIM_2D WIDTH 2 HEIGHT 2 SAMPLES 4 SERIES_FROM 0 INC_BY 1
IMAGE result FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 4 HEIGHT 1 FILL 0

SAMPLER nearest
SAMPLER white \
  ADDRESS_MODE_U clamp_to_border \
  BORDER_COLOR float_opaque_white

PIPELINE compute pipeline
  ATTACH shader
  BIND BUFFER push AS push_constant
  BIND BUFFER factors AS uniform_dynamic DESCRIPTOR_SET 0 BINDING 0 OFFSET 64 DESCRIPTOR_OFFSET 64 DESCRIPTOR_RANGE 16
  BIND BUFFER_ARRAY first second AS storage DESCRIPTOR_SET 0 BINDING 1
  BIND BUFFER texels AS uniform_texel_buffer DESCRIPTOR_SET 0 BINDING 2
  BIND BUFFER words AS storage_texel_buffer DESCRIPTOR_SET 0 BINDING 3
  BIND BUFFER row AS sampled_image DESCRIPTOR_SET 1 BINDING 0
  BIND SAMPLER_ARRAY nearest white DESCRIPTOR_SET 1 BINDING 1
  BIND BUFFER_ARRAY row other AS combined_image_sampler SAMPLER nearest nearest DESCRIPTOR_SET 1 BINDING 2
  BIND BUFFER samples AS combined_image_sampler SAMPLER nearest DESCRIPTOR_SET 1 BINDING 3
  BIND BUFFER result AS storage_image DESCRIPTOR_SET 1 BINDING 4
  BIND BUFFER items AS storage DESCRIPTOR_SET 2 BINDING 0
END

REPEAT 2
  RUN TIMED_EXECUTION pipeline 1 1 1
END

EXPECT first EQ_BUFFER expected
EXPECT second IDX 0 EQ 8 13 18 23 0 0 0 0
EXPECT words IDX 0 EQ 9 27 45 63
EXPECT result EQ_BUFFER reference
EXPECT result RMSE_BUFFER reference TOLERANCE 0.5
EXPECT result IDX 1 0 SIZE 1 1 EQ_RGBA 51 255 102 255
EXPECT items IDX 0 TOLERANCE 0.001 EQ 3 7 11 0.5 1.5 2.5 5 8 12
EXPECT items IDX 96 EQ 9 10 14
"#;

#[test]
fn compute_scripts_hold_on_the_emulator() {
    let Some(suite) = data::text("adreno/graphics/suite.csv") else { return };
    let Some(table) = data::text("cts-amber/spirv.csv") else { return };
    let drivers = data::text("amd/cts/baseline.csv.gz").unwrap_or_default();
    let archives = ["cts-amber/spirv.tar.gz", "amd/cts/spirv.tar.gz"]
        .map(|name| data::archive(name).into_iter().collect::<BTreeMap<_, _>>());
    let modules = amber::script_modules(&archives, [&table, &drivers]);
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let (mut passed, mut number, mut failures, mut undetermined) = (0, 0, Vec::new(), Vec::new());
    let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in data::rows(&suite) {
        if row["pipelines"] != "compute" {
            continue;
        }
        let name = &row["test"];
        let Some(own) = modules.get(name) else { continue };
        let Some(text) = data::text(&format!("cts-amber/{name}")) else { continue };
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let script = amber::parse(&text, &|file| data::text(&format!("cts-amber/{folder}/{file}")));
        number += 1;
        for (at, gpu) in GPUS.iter().enumerate() {
            // Each script on one GPU, in turn, unless all are wanted.
            if !all && number % GPUS.len() != at {
                continue;
            }
            let mut executor = Emulator {
                gpu: Gpu::new(gpu).expect("a GPU"),
                shader: &|pipeline| read_shader(own, pipeline),
            };
            let result = script.as_ref().map_err(Clone::clone).and_then(|script| script.run(&mut executor));
            let label = format!("{name} {gpu}");
            let mut fail = |what: String| {
                let why = script.as_ref().ok().and_then(|script| not_determined(script, own));
                match why {
                    Some(why) => undetermined.push(format!("{label}: {why}")),
                    None => failures.push(format!("{label}: {what}")),
                }
            };
            match result {
                Ok(()) => passed += 1,
                Err(e) => match e.reason {
                    AmberReason::Failed(_) => fail(e.to_string()),
                    AmberReason::Executor(what) if what.starts_with("emulator") => fail(what),
                    AmberReason::Unsupported(what)
                    | AmberReason::Syntax(what)
                    | AmberReason::Executor(what) => {
                        others.entry(what).or_default().push(label);
                    }
                },
            }
        }
    }
    for (reason, names) in &others {
        println!("  {} × {reason}: {}", names.len(), names[0]);
    }
    for script in &undetermined {
        println!("  {script}");
    }
    let refused: usize = others.values().map(Vec::len).sum();
    println!(
        "{passed} runs of scripts pass, {} fail, {refused} are refused, {} are not determined",
        failures.len(),
        undetermined.len()
    );
    assert!(passed > refused && passed > 20 * undetermined.len(), "most scripts run and are determined");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The script holds on all generations, and fails where an expectation is another.
#[test]
fn descriptors_of_all_kinds() {
    let parse = |text: &str| amber::parse(text, &|_| None).unwrap_or_else(|e| panic!("{e}"));
    let run = |script: &amber::Script, gpu: &str| {
        let read = |pipeline: &Pipeline| {
            let source = script.source(&pipeline.shader).ok_or("the script does not have the shader")?;
            let mut shader = Shader::default();
            text::parse(source, &mut shader).map_err(|e| e.to_string())?;
            validate(&shader).map_err(|e| e.to_string())?;
            Ok(shader)
        };
        script.run(&mut Emulator { gpu: Gpu::new(gpu).expect("a GPU"), shader: &read })
    };
    for gpu in rig::GPUS {
        run(&parse(DESCRIPTORS), gpu).unwrap_or_else(|e| panic!("{gpu}: {e}"));
    }
    for (from, to) in [
        ("DATA 74", "DATA 75"),
        ("23 0 0", "24 0 0"),
        ("RMSE_BUFFER reference", "RMSE_BUFFER other"),
        ("45 63", "45 64"),
        ("EQ_RGBA 51", "EQ_RGBA 52"),
        ("11 0.5", "10 0.5"),
        ("9 10 14", "9 10 15"),
    ] {
        let script = DESCRIPTORS.replacen(from, to, 1);
        assert_ne!(script, DESCRIPTORS, "{from}");
        let error = run(&parse(&script), GPUS[1]).err();
        let failed = error.as_ref().is_some_and(|e| matches!(e.reason, AmberReason::Failed(_)));
        assert!(failed, "{to}: {error:?}");
    }
}
