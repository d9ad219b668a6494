//! Operations of NIR on all GPUs: compute shaders have the results of the interpreter, accesses to textures and instructions of some GPUs have the
//! instruction that belongs to them.

mod rig;

use rig::{GPUS, TABLE};
use unwedge_aco::abi::Argument;
use unwedge_aco::{Compiled, Options, compile};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::front::nir;
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch as ShaderDispatch, NoImages, Options as RunOptions, run_compute,
};
use unwedge_shader::ir::Shader;
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::mutate::Rng;

const INVOCATIONS: usize = 64;

/// %5, %6 and %7 are words of the input, and %50 is stored.
fn compute_text(body: &str) -> String {
    format!(
        "shader: MESA_SHADER_COMPUTE
workgroup_size: 64, 1, 1
shared_size: 1024
decl_var ssbo INTERP_MODE_NONE restrict readonly In #0 (~0, 0, 0)
decl_var ssbo INTERP_MODE_NONE restrict Out #1 (~0, 0, 1)
decl_function main () (entrypoint)

impl main {{
    con block b0:  // preds:
    con 32 %90 = @load_scalar_arg_amd (base=0, arg_upper_bound_u32_amd=0)
    con 32 %91 = load_const (0xffff8000)
    con 64 %92 = pack_64_2x32_split %90, %91
    con 32 %93 = load_const (0x00000000)
    con 32 %94 = load_const (0x00000010)
    con 32 %95 = load_const (0x00000002)
    con 32 %96 = load_const (0x00000100)
    con 32 %97 = load_const (0x00000200)
    con 32x4 %1 = @load_smem_amd (%92, %93) (align_mul=16, align_offset=0)
    con 32x4 %2 = @load_smem_amd (%92, %94) (align_mul=16, align_offset=0)
    div 32 %3 = @load_vector_arg_amd (base=1, arg_upper_bound_u32_amd=63)
    div 32 %4 = ishl %3, %95
    div 32 %8 = iadd %4, %96
    div 32 %9 = iadd %4, %97
    div 32 %5 = @load_ssbo (%1, %4) (access=readonly|reorderable, align_mul=4, align_offset=0)
    div 32 %6 = @load_ssbo (%1, %8) (access=readonly|reorderable, align_mul=4, align_offset=0)
    div 32 %7 = @load_ssbo (%1, %9) (access=readonly|reorderable, align_mul=4, align_offset=0)
    {body}
    @store_ssbo (%50, %2, %4) (wrmask=x, access=none, align_mul=4, align_offset=0)
    // succs: b99
    block b99:
}}

"
    )
}

fn read(text: &str, arguments: nir::Arguments) -> Shader {
    let options = nir::Options { arguments, file: "test.nir".to_owned() };
    let mut shader = Shader::default();
    nir::read(text, &options, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    shader
}

/// Sums and differences of `%22` and `%23`, which have 64 bits.
const WIDE_SUMS: [&str; 6] = [
    "64 %24 = iadd %22, %23",
    "64 %24 = isub %22, %23",
    "64 %25 = u2u64 %20\n    {d} 64 %24 = iadd %22, %25",
    "64 %25 = u2u64 %20\n    {d} 64 %24 = isub %23, %25",
    "64 %25 = iadd %22, %23\n    {d} 64 %24 = iadd %25, %22",
    "64 %25 = load_const (0x0000000180000001)\n    {d} 64 %24 = isub %22, %25",
];

/// Which of two words is chosen by a bit of a third one.
fn bit_choice(bit: u32, compare: &str, constant: u32) -> String {
    format!(
        "con 32 %20 = load_const ({:#010x})\n    con 32 %21 = load_const ({constant:#010x})\n    div 32 %22 = iand %5, %20\n    \
         div 1 %23 = {compare} %22, %21\n    div 32 %50 = bcsel %23, %6, %7",
        1u32 << bit
    )
}

/// The lower bits of one word above the upper bits of another.
const FUNNEL: &str = "con 32 %20 = load_const (0x0000001e)\n    div 32 %21 = ushr %6, %20\n    div 32 %22 = ishl %5, %95\n    \
     div 32 %50 = ior %21, %22";

/// Shifts of `%22`, whose words are not known, and of values with a word that is; how many instructions of 64 bits there are.
const WIDE_SHIFTS: [(&str, usize); 10] = [
    ("64 %24 = ishl %22, %95", 1),
    ("64 %24 = ushr %22, %95", 1),
    ("64 %24 = ishr %22, %95", 1),
    ("64 %24 = ishl %22, %30", 1),
    ("64 %24 = ushr %22, %30", 1),
    ("64 %24 = ishr %22, %30", 1),
    ("32 %25 = load_const (0x00000023)\n    {d} 64 %24 = ishr %22, %25", 0),
    ("64 %25 = u2u64 %20\n    {d} 64 %24 = ishl %25, %95", 0),
    (
        "64 %25 = load_const (0xffffffff00000000)\n    {d} 64 %26 = iand %22, %25\n    {d} 64 %24 = ishr %26, %95",
        0,
    ),
    (
        "32 %25 = load_const (0x0000001f)\n    {d} 64 %26 = pack_64_2x32_split %95, %21\n    {d} 64 %24 = ushr %26, %25",
        0,
    ),
];

/// The words of a sum or shift of 64 bits, whose operands are made of copies of the words of the input.
fn wide_sum(divergence: &str, copy: &str, sum: &str) -> String {
    let d = divergence;
    let sum = sum.replace("{d}", d);
    let [x, y, z] = ["%5", "%6", "%7"].map(|word| match copy {
        "mov" => format!("mov {word}"),
        _ => format!("{copy} ({word})"),
    });
    format!(
        "{d} 32 %20 = {x}\n    {d} 32 %21 = {y}\n    {d} 32 %30 = {z}\n    {d} 64 %22 = pack_64_2x32_split %20, %21\n    \
         {d} 64 %23 = pack_64_2x32_split %21, %30\n    {d} {sum}\n    {d} 32 %41 = unpack_64_2x32_split_x %24\n    \
         {d} 32 %42 = unpack_64_2x32_split_y %24\n    {d} 32 %43 = ishl %41, %95\n    div 32 %44 = ixor %43, %42\n    \
         div 32 %50 = ixor %44, %41"
    )
}

/// The code of a compute shader, as assembly.
fn compute_listing(body: &str, gpu: &str) -> String {
    let gpu = Gpu::new(gpu).expect("a GPU");
    let arguments = nir::Arguments(vec![nir::Argument::DescriptorSet(0), nir::Argument::LocalId(0)]);
    let compiled = compile(&mut read(&compute_text(body), arguments), &Options::new(gpu));
    rig::recorded::assembly(&compiled.unwrap_or_else(|error| panic!("{error}: {body}")), &gpu)
}

#[test]
fn carries_are_operands_of_sums() {
    // A scalar sum reads `scc` as one of two operands if the other word is zero.
    let counts = [("div", "mov", [1, 1, 1, 1, 2, 1]), ("con", "@read_first_invocation", [1, 1, 0, 0, 2, 1])];
    for (divergence, copy, counts) in counts {
        for (sum, count) in WIDE_SUMS.into_iter().zip(counts) {
            for name in GPUS {
                let listing = compute_listing(&wide_sum(divergence, copy, sum), name);
                let carries = ["_addc_", "_subb_", "_subbrev_", "_co_ci_u32"];
                let lines = listing.lines().filter(|line| carries.iter().any(|name| line.contains(name)));
                assert_eq!(lines.count(), count, "{name}: {sum}\n{listing}");
                assert!(!listing.contains("v_cndmask"), "{name}: {sum}\n{listing}");
            }
        }
    }
}

#[test]
fn words_are_shifted_together() {
    for name in GPUS {
        for (divergence, copy) in [("div", "mov"), ("con", "@read_first_invocation")] {
            for (shift, count) in WIDE_SHIFTS {
                let listing = compute_listing(&wide_sum(divergence, copy, shift), name);
                let shifts = ["_lsh", "_ashr"];
                let wide = |line: &&str| line.contains("64") && shifts.iter().any(|name| line.contains(name));
                assert_eq!(listing.lines().filter(wide).count(), count, "{name}: {shift}\n{listing}");
            }
        }
        let listing = compute_listing(FUNNEL, name);
        assert!(listing.contains("v_alignbit_b32"), "{name}: {listing}");
    }
}

/// Bits that are the class of an inline constant are tested by one instruction, and on gfx10 and later those of all classes but denormals. The select
/// reads the mask in either sense.
#[test]
fn bits_are_tested_as_classes() {
    for name in GPUS {
        let literals = Gpu::new(name).expect("a GPU").generation() >= Gfx::Gfx10;
        for bit in (0..12).chain([30, 31]) {
            let single = match bit {
                1 | 3 | 6 | 8 | 31 => true,
                0 | 2 | 5 | 9 => literals,
                _ => false,
            };
            let senses = [("ine", 0, single), ("ieq", 1 << bit, single), ("ieq", 0, single)];
            for (compare, constant, single) in senses {
                let listing = compute_listing(&bit_choice(bit, compare, constant), name);
                assert_eq!(listing.contains("v_and_b32"), !single, "{name}: {bit} {compare}\n{listing}");
            }
        }
    }
}

#[test]
fn compute_shaders_have_the_results_of_the_interpreter() {
    let three = |name: &str| format!("div 32 %50 = {name} %5, %6, %7");
    let mut bodies: Vec<String> = [
        "udot_4x8_uadd",
        "udot_4x8_uadd_sat",
        "sdot_4x8_iadd",
        "sdot_4x8_iadd_sat",
        "sudot_4x8_iadd",
        "sudot_4x8_iadd_sat",
        "udot_2x16_uadd",
        "udot_2x16_uadd_sat",
        "sdot_2x16_iadd",
        "sdot_2x16_iadd_sat",
        "msad_4x8",
        "shfr",
        "alignbyte_amd",
        "imed3",
        "umax3",
        "imad24",
    ]
    .map(three)
    .into();
    bodies.extend(
        [
            "div 32 %50 = iadd_sat %5, %6",
            "div 32 %50 = isub_sat %5, %6",
            "div 32 %50 = @quad_swizzle_amd (%5) (swizzle_mask=57)",
            "div 32 %50 = @quad_swizzle_amd (%5) (swizzle_mask=27)",
            "div 32 %50 = @masked_swizzle_amd (%5) (swizzle_mask=4191)",
            "div 32 %50 = @rotate (%5, %95) (cluster_size=8)",
            "div 32 %50 = @write_invocation_amd (%5, %94, %95)",
            "div 1 %20 = ult %5, %6\n    div 1 %21 = @quad_vote_any (%20)\n    div 1 %22 = @quad_vote_all (%20)\n    \
             div 32 %23 = b2i32 %21\n    div 32 %24 = b2i32 %22\n    div 32 %25 = ishl %24, %95\n    div 32 %50 = ior %23, %25",
            "div 32x2 %20 = vec2 %5, %6\n    @store_shared2_amd (%20, %4) (offset0=0, offset1=64, st64=0)\n    \
             div 32x2 %21 = @load_shared2_amd (%4) (offset0=64, offset1=0, st64=0)\n    div 32 %50 = isub %21.x, %21.y",
        ]
        .map(str::to_owned),
    );
    bodies.push(FUNNEL.to_owned());
    for bit in (0..12).chain([30, 31]) {
        for (compare, constant) in [("ine", 0), ("ieq", 0), ("ine", 1 << bit), ("ieq", 1 << bit), ("ieq", 64)]
        {
            bodies.push(bit_choice(bit, compare, constant));
        }
    }
    bodies.extend(WIDE_SUMS.map(|sum| wide_sum("div", "mov", sum)));
    bodies.extend(WIDE_SUMS.map(|sum| wide_sum("con", "@read_first_invocation", sum)));
    bodies.extend(WIDE_SHIFTS.map(|(shift, _)| wide_sum("div", "mov", shift)));
    bodies.extend(WIDE_SHIFTS.map(|(shift, _)| wide_sum("con", "@read_first_invocation", shift)));
    let mut rng = Rng::new(5);
    let edges = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x8000_8000, 0x7f80_ff01];
    for body in &bodies {
        let text = compute_text(body);
        let arguments = || nir::Arguments(vec![nir::Argument::DescriptorSet(0), nir::Argument::LocalId(0)]);
        let shader = read(&text, arguments());
        let input: Vec<u8> = (0..3 * INVOCATIONS)
            .map(
                |_| if rng.below(2) == 0 { edges[rng.below(edges.len())] } else { rng.below(1 << 32) as u32 },
            )
            .flat_map(u32::to_le_bytes)
            .collect();
        for name in GPUS {
            let gpu = Gpu::new(name).expect("a GPU");
            let mut bindings = Bindings::default();
            bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, input.clone());
            let out = bindings.bind(BindingPoint { set: 0, binding: 1, index: 0 }, vec![0; INVOCATIONS * 4]);
            let run_options = RunOptions { subgroup_size: gpu.lanes(), ..RunOptions::default() };
            let groups = ShaderDispatch::new([1, 1, 1]);
            run_compute(&shader, groups, &mut bindings, &mut NoImages, &run_options)
                .unwrap_or_else(|error| panic!("{error}: {body}"));
            let words = bindings.memory[out].chunks_exact(4);
            let wanted: Vec<u32> =
                words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
            let options = Options::new(gpu);
            let mut own = read(&text, arguments());
            let compiled =
                compile(&mut own, &options).unwrap_or_else(|error| panic!("{name}: {error}: {body}"));
            let mut memory = rig::memory(&options, input.clone(), INVOCATIONS * 4);
            let set =
                |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
            let dispatch = Dispatch {
                size: [INVOCATIONS as u32, 1, 1],
                timing: Timing::Adversarial { seed: 1 },
                ..rig::dispatch(&compiled, &gpu, set)
            };
            rig::execute(&compiled.code, gpu, &mut memory, &dispatch)
                .unwrap_or_else(|error| panic!("{name}: {error}: {body}"));
            assert_eq!(rig::output(&memory, INVOCATIONS), wanted, "{name}: {body}");
        }
    }
}

/// A shader with arguments in registers: %1 is an image, %2 a sampler or buffer, %3 to %6 are words of the invocation, %7 is an address, and %10
/// is exported.
fn fragment_text(declaration: &str, body: &str) -> String {
    format!(
        "shader: MESA_SHADER_FRAGMENT
clip_distance_array_size: 2
{declaration}decl_function main () (entrypoint)

impl main {{
    decl_var  INTERP_MODE_NONE none float local
    con block b0:  // preds:
    con 64 %7 = @load_scalar_arg_amd (base=1, arg_upper_bound_u32_amd=0)
    con 32 %9 = load_const (0x00000000)
    con 32x8 %1 = @load_smem_amd (%7, %9) (align_mul=32, align_offset=0)
    con 32x4 %2 = @load_smem_amd (%7, %9) (align_mul=16, align_offset=0)
    div 32 %3 = @load_vector_arg_amd (base=4, arg_upper_bound_u32_amd=0)
    div 32 %4 = @load_vector_arg_amd (base=5, arg_upper_bound_u32_amd=0)
    div 32 %5 = @load_vector_arg_amd (base=6, arg_upper_bound_u32_amd=0)
    div 32 %6 = @load_vector_arg_amd (base=7, arg_upper_bound_u32_amd=0)
    div 32x2 %11 = vec2 %3, %4
    div 32x3 %12 = vec3 %3, %4, %5
    {body}
    @export_amd (%10) (base=0, wrmask=xyzw, flags=6)
    // succs: b99
    block b99:
}}

"
    )
}

fn built(text: &str, gpu: &str) -> (Compiled, Gpu) {
    let gpu = Gpu::new(gpu).expect("a GPU");
    let arguments = nir::Arguments::registers(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut shader = read(text, arguments);
    let compiled = compile(&mut shader, &Options::new(gpu))
        .unwrap_or_else(|error| panic!("{}: {error}\n{text}", gpu.name()));
    (compiled, gpu)
}

const ARRAYS: &str = "decl_var uniform INTERP_MODE_NONE none sampler2DArray layers (~0, 0, 0)\n";
const CUBES: &str = "decl_var uniform INTERP_MODE_NONE none samplerCube cubes (~0, 0, 0)\n";

#[test]
fn accesses_have_the_instruction_of_their_shape() {
    let sample = "(texture_handle), %2 (sampler_handle)";
    let cases: &[(&str, String, &str, &str)] = &[
        ("", format!("div 32x4 %10 = (float32)tg4 %1 {sample}, %11 (coord), 2 (gather_component), 0 (texture), 0 (sampler)"), "image_gather4_lz", "2D"),
        ("", format!("div 32x4 %10 = (float32)txd %1 {sample}, %11 (coord), %11 (ddx), %11 (ddy), 0 (texture), 0 (sampler)"), "image_sample_d", "2D"),
        ("", format!("div 32x4 %10 = (float32)tex %1 {sample}, %12 (coord), 0 (texture), 0 (sampler)"), "image_sample", "3D"),
        (ARRAYS, format!("div 32x4 %10 = (float32)tex %1 {sample}, %12 (coord), 0 (texture), 0 (sampler)"), "image_sample", "2D_ARRAY"),
        ("", format!("div 32 %20 = fround_even %5\n    div 32x3 %21 = vec3 %3, %4, %20\n    div 32x4 %10 = (float32)txl %1 {sample}, %21 (coord), %6 (lod), 0 (texture), 0 (sampler)"), "image_sample_l", "2D_ARRAY"),
        ("", format!("div 32x4 %20 = cube_amd %12\n    div 32x3 %21 = vec3 %20.x, %20.y, %20.w\n    div 32x4 %10 = (float32)tex %1 {sample}, %21 (coord), 0 (texture), 0 (sampler)"), "image_sample", "CUBE"),
        (CUBES, format!("div 32x4 %10 = (float32)txb %1 {sample}, %12 (coord), %6 (bias), 0 (texture), 0 (sampler)"), "image_sample_b", "CUBE"),
        ("", format!("div 32x2 %20 = (float32)lod %1 {sample}, %11 (coord), 0 (texture), 0 (sampler)\n    div 32x4 %10 = vec4 %20.x, %20.y, %20.x, %20.y"), "image_get_lod", "2D"),
        ("", "div 32x4 %10 = (float32)txf_ms %1 (texture_handle), %11 (coord), %5 (ms_index), 0 (texture)".to_owned(), "image_load", "2D_MSAA"),
        ("", "div 32 %20 = (uint32)fragment_mask_fetch_amd %1 (texture_handle), %11 (coord), 0 (texture)\n    div 32x4 %10 = vec4 %20, %20, %20, %20".to_owned(), "image_load", "2D"),
        ("", "div 32 %20 = @bindless_image_atomic_swap (%1, %12, %9, %5, %6) (image_dim=3D, image_array=false, format=r32_uint, access=coherent, atomic_op=cmpxchg)\n    div 32x4 %10 = vec4 %20, %20, %20, %20".to_owned(), "image_atomic_cmpswap", "3D"),
    ];
    for (declaration, body, opcode, dim) in cases {
        let text = fragment_text(declaration, body);
        for name in GPUS {
            let (compiled, gpu) = built(&text, name);
            let listing = rig::recorded::assembly(&compiled, &gpu);
            let line = listing.lines().find(|line| line.contains(&format!("{opcode} ")));
            let line = line.unwrap_or_else(|| panic!("{name}: {opcode} is not in\n{listing}"));
            if gpu.generation() >= Gfx::Gfx10 {
                let shape = line.split("SQ_RSRC_IMG_").nth(1).unwrap_or("").split(' ').next().unwrap_or("");
                assert_eq!(shape, *dim, "{name}: {line}");
            }
        }
    }
}

#[test]
fn memory_and_rays_have_their_instructions() {
    let words = "div 32x4 %10 = vec4 %20, %20, %20, %20";
    let cases = [
        (format!("div 32 %20 = @load_global_amd (%7, %3) (base=8, access=none, align_mul=4, align_offset=0)\n    {words}"), "load_dword", &GPUS[..]),
        (format!("@store_global_amd (%3, %7, %4) (base=8, wrmask=x, access=none, align_mul=4, align_offset=0)\n    div 32 %20 = mov %3\n    {words}"), "store_dword", &GPUS[..]),
        (format!("div 32 %20 = @global_atomic_amd (%7, %3, %4) (base=0, atomic_op=umax)\n    {words}"), "atomic_umax", &GPUS[..]),
        (format!("div 32 %20 = @global_atomic_swap_amd (%7, %3, %4, %5) (base=0, atomic_op=cmpxchg)\n    {words}"), "atomic_cmpswap", &GPUS[..]),
        ("div 32x4 %20 = @load_buffer_amd (%2, %3, %9, %9) (base=0, mem_modes=0, access=none)\n    @store_buffer_amd (%20, %2, %4, %9, %9) (base=0, wrmask=xzw, mem_modes=0, access=none)\n    div 32x4 %10 = mov %20".to_owned(), "buffer_store_dwordx2", &GPUS[..]),
        ("div 64 %20 = pack_64_2x32_split %3, %4\n    div 32x4 %10 = @bvh64_intersect_ray_amd (%2, %20, %5, %12, %12, %12)".to_owned(), "image_bvh64_intersect_ray", &["gfx1030", "gfx1100", "gfx1201"][..]),
    ];
    for (body, opcode, gpus) in cases {
        let text = fragment_text("", &body);
        for name in gpus {
            let (compiled, gpu) = built(&text, name);
            let listing = rig::recorded::assembly(&compiled, &gpu);
            let older = opcode.replace("load_dword", "load_b32").replace("store_dwordx2", "store_b64");
            let older = older.replace("store_dword", "store_b32").replace("atomic_umax", "atomic_max_u32");
            let older = older.replace("cmpswap", "cmpswap_b32");
            let found = listing.contains(opcode) || listing.contains(&older);
            assert!(found, "{name}: {opcode} is not in\n{listing}");
        }
    }
}

/// By GPU: how many parts the list of an address has; 0 if it is a range of registers.
type AddressCounts<'a> = &'a [(&'a str, usize)];

/// Parts of an address are read where they are, even in another order, or copied as far as the GPU wants them to follow each other.
#[test]
fn addresses_of_images_need_not_be_consecutive() {
    let sample = "(texture_handle), %2 (sampler_handle)";
    let turned = format!(
        "div 32x2 %20 = vec2 %4, %3\n    div 32x4 %10 = (float32)tex %1 {sample}, %20 (coord), 0 (texture), 0 (sampler)"
    );
    let levels = format!(
        "div 32x3 %20 = vec3 %6, %4, %3\n    div 32x4 %10 = (float32)txd %1 {sample}, %20 (coord), %20 (ddx), %20 (ddy), 0 (texture), 0 (sampler)"
    );
    let ray = "div 64 %20 = pack_64_2x32_split %3, %6\n    div 32x3 %21 = vec3 %5, %4, %5\n    \
               div 32x4 %10 = @bvh64_intersect_ray_amd (%2, %20, %5, %12, %12, %21)";
    let cases: [(&str, &str, AddressCounts<'_>); 3] = [
        (
            &turned,
            "image_sample",
            &[("gfx900", 0), ("gfx1010", 2), ("gfx1030", 2), ("gfx1100", 2), ("gfx1201", 2)],
        ),
        (&levels, "image_sample_d", &[("gfx1010", 0), ("gfx1030", 9), ("gfx1100", 5), ("gfx1201", 4)]),
        (ray, "image_bvh64_intersect_ray", &[("gfx1030", 12), ("gfx1100", 5), ("gfx1201", 5)]),
    ];
    for (body, opcode, gpus) in cases {
        for &(name, parts) in gpus {
            let (compiled, gpu) = built(&fragment_text("", body), name);
            let listing = rig::recorded::assembly(&compiled, &gpu);
            let line = listing.lines().find(|line| line.contains(&format!("{opcode} ")));
            let line = line.unwrap_or_else(|| panic!("{name}: {opcode} is not in\n{listing}"));
            let list = line.split_once(", [").and_then(|(_, rest)| rest.split_once("], s"));
            let list: Vec<&str> = list.map(|(list, _)| list.split(", ").collect()).unwrap_or_default();
            assert_eq!(list.len(), parts, "{name}: {line}");
            let single = parts != 0 && list.iter().all(|part| !part.contains('['));
            assert_eq!(single, !listing.contains("mov_b32"), "{name}: {listing}");
        }
    }
}
