//! Images, samplers and texel buffers: compiled code on the emulator gives what the descriptors' texels are, on every generation.

mod rig;

use rig::images::texel_buffer;
use rig::{GPUS, TABLE};
use unwedge_aco::abi::{Argument, descriptor_offset};
use unwedge_aco::{Options, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::Shader;
use unwedge_shader::text::parse;
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::{Dispatch, SimMemory, Timing};
use unwedge_testkit::pack::bytes;

/// Texels of a row and rows of the images.
const SIDE: u32 = 8;
/// Texels from row to row: those of 256 bytes.
const PITCH: u32 = 64;
const IMAGES: [u64; 4] = [0x1000_0000, 0x1100_0000, 0x1200_0000, 0x1300_0000];
const TEXELS: u64 = 0x2000_0000;
const OUTPUT: u64 = 0x3000_0000;
/// Words that an invocation leaves in the output.
const OWN: u32 = 8;
/// Codes of formats: data and number of old GPUs, and the one number of later ones.
const UINT: [u32; 3] = [4, 4, 20];
const FLOAT: [u32; 3] = [4, 7, 22];

const SHADER: &str = r#"shader compute "main"
workgroup_size 64 1 1
sizes shared 0 scratch 0 push 0
resource r0 "" sampled_image set 0 binding 0 count 1 size 0 dim 2d access readonly
resource r1 "" storage_image set 0 binding 1 count 2 size 0 dim 2d access restrict
resource r2 "" uniform_texel_buffer set 0 binding 3 count 1 size 0 dim buffer access readonly
resource r3 "" combined_image_sampler set 0 binding 4 count 1 size 0 dim 2d access readonly
resource r4 "" storage_buffer set 0 binding 5 count 1 size 0 dim buffer access restrict
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x7>
  %3: b32 = const<0x3>
  %4: handle = descriptor<r0> %0
  %5: handle = descriptor<r1> %0
  %6: handle = descriptor<r1> %1
  %7: handle = descriptor<r2> %0
  %8: handle = descriptor<r3> %0
  %9: handle = descriptor<r4> %0
  %10: b32x3 = sysval<local_invocation_id>
  %11: b32 = extract<0> %10
  %12: b32 = iand %11, %2
  %13: b32 = ushr %11, %3
  %14: b32x2 = vec %12, %13
  %15: b32x4 = image_fetch<2d flags lod access readonly> %4, %14, %0
  %16: b32 = extract<0> %15
  %17: b32x2 = image_size<2d access readonly> %4, %0
  %18: b32 = extract<0> %17
  %19: b32 = extract<1> %17
  %20: b32 = iadd %16, %11
  %21: b32x4 = vec %20, %0, %0, %1
  image_store<2d> %21, %5, %14
  %22: b32x2 = vec %12, %0
  %23: b32 = image_atomic<add 2d> %11, %6, %22
  %24: b32x4 = image_fetch<buffer access readonly> %7, %13
  %25: b32 = extract<0> %24
  %26: b32 = const<0x3f000000>
  %27: b32 = const<0x3e000000>
  %28: b32 = u2f %12
  %29: b32 = fadd %28, %26
  %30: b32 = fmul %29, %27
  %31: b32 = u2f %13
  %32: b32 = fadd %31, %26
  %33: b32 = fmul %32, %27
  %34: b32x2 = vec %30, %33
  %35: b32x4 = image_sample<2d flags lod access readonly> %8, %8, %34, %0
  %36: b32 = extract<0> %35
  %37: b32 = image_levels<2d access readonly> %4
  %38: b32 = const<0x20>
  %39: b32 = imul %11, %38
  %40: b32x4 = vec %16, %18, %19, %25
  store<storage align 4> %40, %9, %39
  %41: b32 = const<0x10>
  %42: b32 = iadd %39, %41
  %43: b32x2 = vec %36, %37
  store<storage align 4> %43, %9, %42
  %44: b32 = const<0x8>
  %45: b32 = iadd %42, %44
  %46: b32x4 = image_load<2d> %5, %14
  %47: b32 = extract<0> %46
  store<storage align 4> %47, %9, %45
  return
}
"#;

/// A linear image of 32 bits a texel.
fn image(base: u64, format: [u32; 3], generation: Gfx) -> [u32; 8] {
    let side = SIDE - 1;
    let code = if generation >= Gfx::Gfx10 { format[2] } else { format[0] | format[1] << 6 };
    let linear = if generation <= Gfx::Gfx8 { 8 } else { 0 };
    let first = (base >> 8) as u32;
    let third = 4 | 5 << 3 | 6 << 6 | 7 << 9 | linear << 20 | 9 << 28;
    match generation {
        generation if generation < Gfx::Gfx10 => {
            [first, code << 20, side | side << 14, third, (PITCH - 1) << 13, 0, 0, 0]
        }
        Gfx::Gfx12 => [first, code << 17 | (side & 3) << 30, side >> 2 | side << 14, third, 0, 0, 0, 0],
        _ => [first, code << 20 | (side & 3) << 30, side >> 2 | side << 14, third, 0, 0, 0, 0],
    }
}

fn pixels(value: impl Fn(u32, u32) -> u32) -> Vec<u8> {
    let mut words = vec![0; (PITCH * SIDE) as usize];
    for y in 0..SIDE {
        for x in 0..SIDE {
            words[(y * PITCH + x) as usize] = value(x, y);
        }
    }
    bytes(&words)
}

fn word(memory: &SimMemory, base: u64, number: u32) -> u32 {
    let bytes = memory.get(base + u64::from(number) * 4, 4).expect("mapped");
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn table(shader: &Shader, gpu: &Gpu) -> Vec<u8> {
    let generation = gpu.generation();
    let mut words = vec![0u32; 256];
    let mut put = |binding: u32, after: u32, descriptor: &[u32]| {
        let offset = descriptor_offset(shader, 0, binding).expect("a binding") + after;
        let at = offset as usize / 4;
        words[at..at + descriptor.len()].copy_from_slice(descriptor);
    };
    put(0, 0, &image(IMAGES[0], UINT, generation));
    put(1, 0, &image(IMAGES[1], UINT, generation));
    put(1, 32, &image(IMAGES[2], UINT, generation));
    put(3, 0, &texel_buffer(TEXELS, SIDE as usize * 4, "R32_UINT", generation).expect("a format"));
    put(4, 0, &image(IMAGES[3], FLOAT, generation));
    // Nearest texels, clamped to the edge.
    put(4, 64, &[2 | 2 << 3 | 2 << 6, 0, 0, 0]);
    put(5, 0, &rig::descriptor(OUTPUT, (64 * OWN * 4) as usize, generation));
    bytes(&words)
}

#[test]
fn images_are_read_written_and_sampled() {
    let mut shader = Shader::default();
    parse(SHADER, &mut shader).unwrap_or_else(|error| panic!("{error}"));
    validate(&shader).unwrap_or_else(|error| panic!("{error}"));
    for name in GPUS {
        let gpu = Gpu::new(name).expect("a GPU");
        let options = Options::new(gpu);
        let compiled =
            compile(&mut shader.clone(), &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
        assert_eq!(report.faults().next(), None, "{name}");
        let mut memory = SimMemory::default();
        let high = u64::from(options.address_high) << 32;
        let contents = [
            (high | TABLE, table(&shader, &gpu)),
            (IMAGES[0], pixels(|x, y| x * 100 + y)),
            (IMAGES[1], pixels(|_, _| 0)),
            (IMAGES[2], pixels(|x, _| x)),
            (IMAGES[3], pixels(|x, y| (x as f32 + 0.25 * y as f32).to_bits())),
            (TEXELS, bytes(&(0..SIDE).map(|at| at * 3 + 1).collect::<Vec<u32>>())),
            (OUTPUT, vec![0; (64 * OWN * 4) as usize]),
        ];
        for (base, bytes) in contents {
            memory.map(base, bytes).expect("free");
        }
        let set = |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
        let dispatch = Dispatch {
            groups: [1; 3],
            size: [64, 1, 1],
            timing: Timing::Adversarial { seed: 3 },
            ..rig::dispatch(&compiled, &gpu, set)
        };
        rig::execute(&compiled.code, gpu, &mut memory, &dispatch).unwrap_or_else(|e| panic!("{name}: {e}"));
        for lane in 0..64 {
            let (x, y) = (lane & 7, lane >> 3);
            let fetched = x * 100 + y;
            let sampled = (x as f32 + 0.25 * y as f32).to_bits();
            let expected = [fetched, SIDE, SIDE, y * 3 + 1, sampled, 1, fetched + lane];
            let found: Vec<u32> = (0..7).map(|at| word(&memory, OUTPUT, lane * OWN + at)).collect();
            assert_eq!(found, expected, "{name} lane {lane}");
            assert_eq!(word(&memory, IMAGES[1], y * PITCH + x), fetched + lane, "{name} lane {lane}");
        }
        for x in 0..SIDE {
            let sum: u32 = (0..8).map(|y| y * 8 + x).sum();
            assert_eq!(word(&memory, IMAGES[2], x), x + sum, "{name}: the sum of column {x}");
        }
    }
}
