//! Texels of 64 bits, atomic operations on texels, and images chosen by an index that differs between lanes. Checks the images and buffers after
//! compiled code has run on the emulator, on every generation.

mod rig;

use rig::images::texel_buffer;
use rig::{GPUS, TABLE};
use unwedge_aco::abi::{Argument, descriptor_offset};
use unwedge_aco::{Options, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_hw::amd::formats;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::Shader;
use unwedge_shader::text::parse;
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::{Dispatch, SimMemory, Timing};
use unwedge_testkit::pack::bytes;

/// Texels in a row, and rows in an image.
const SIDE: u32 = 8;
/// The row pitch in bytes.
const ROW: u32 = 256;
/// Two images of 64 bits, one of floats, and an array of four of 32 bits.
const IMAGES: [u64; 7] =
    [0x1000_0000, 0x1100_0000, 0x1200_0000, 0x1400_0000, 0x1500_0000, 0x1600_0000, 0x1700_0000];
const TEXELS: u64 = 0x2000_0000;
const OUTPUT: u64 = 0x3000_0000;
/// Words that an invocation leaves in the output.
const OWN: u32 = 16;

const SHADER: &str = r#"shader compute "main"
workgroup_size 64 1 1
sizes shared 0 scratch 0 push 0
resource r0 "" storage_image set 0 binding 0 count 1 size 0 dim 2d access restrict
resource r1 "" storage_image set 0 binding 1 count 1 size 0 dim 2d access restrict
resource r2 "" storage_image set 0 binding 2 count 1 size 0 dim 2d access restrict
resource r3 "" storage_texel_buffer set 0 binding 3 count 1 size 0 dim buffer access restrict
resource r4 "" storage_image set 0 binding 4 count 4 size 0 dim 2d access restrict
resource r5 "" storage_buffer set 0 binding 8 count 1 size 0 dim buffer access restrict
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x7>
  %3: b32 = const<0x3>
  %4: handle = descriptor<r0> %0
  %5: handle = descriptor<r1> %0
  %6: handle = descriptor<r2> %0
  %7: handle = descriptor<r3> %0
  %9: handle = descriptor<r5> %0
  %10: b32x3 = sysval<local_invocation_id>
  %11: b32 = extract<0> %10
  %12: b32 = iand %11, %2
  %13: b32 = ushr %11, %3
  %14: b32x2 = vec %12, %13
  %15: b32x2 = vec %12, %0
  %16: b32 = const<0x40>
  %17: b32 = imul %11, %16
  %18: b64 = u2u %11
  %20: b64x4 = image_load<2d> %4, %14
  %21: b64 = extract<0> %20
  %22: b64 = extract<3> %20
  %23: b64x2 = vec %21, %22
  store<storage align 8> %23, %9, %17
  %24: b64 = iadd %21, %18
  %25: b64x4 = vec %24, %18, %18, %18
  image_store<2d> %25, %4, %14
  %26: b64 = image_atomic<add 2d> %18, %5, %15
  %27: b64 = const<0x100000009>
  %28: b64x4 = image_load<buffer> %7, %13
  %29: b64 = extract<0> %28
  %30: b32 = const<0x10>
  %31: b32 = iadd %17, %30
  store<storage align 8> %29, %9, %31
  %32: b32 = const<0x8>
  %33: b32 = iadd %11, %32
  %34: b64 = image_atomic_compare<exchange buffer> %18, %27, %7, %33
  %35: b32 = iadd %31, %32
  store<storage align 8> %34, %9, %35
  %36: b32 = u2f %11
  %37: b32 = image_atomic<fadd 2d> %36, %6, %15
  %38: b32 = image_atomic<fmax 2d> %36, %6, %14
  %40: b32 = iand %11, %3
  %41: handle = descriptor<r4 access nonuniform> %40
  %42: b32x4 = image_load<2d> %41, %14
  %43: b32 = extract<0> %42
  %44: b32 = iadd %35, %32
  store<storage align 4> %43, %9, %44
  %45: b32x4 = vec %11, %0, %0, %1
  image_store<2d> %45, %41, %14
  return
}
"#;

/// A linear image with `components` 32-bit components.
fn image(base: u64, components: u8, number: &str, generation: Gfx) -> [u32; 8] {
    let data = if components == 1 { "32" } else { "32_32" };
    let is_it = |code: &u32| formats::image(*code, generation) == Some((data, number));
    let code = (0..1024).find(is_it).expect("a format");
    let side = SIDE - 1;
    let linear = if generation <= Gfx::Gfx8 { 8 } else { 0 };
    let first = (base >> 8) as u32;
    let third = 4 | 5 << 3 | 6 << 6 | 7 << 9 | linear << 20 | 9 << 28;
    let pitch = ROW / 4 / u32::from(components);
    match generation {
        generation if generation < Gfx::Gfx10 => {
            [first, code << 20, side | side << 14, third, (pitch - 1) << 13, 0, 0, 0]
        }
        Gfx::Gfx12 => [first, code << 17 | (side & 3) << 30, side >> 2 | side << 14, third, 0, 0, 0, 0],
        _ => [first, code << 20 | (side & 3) << 30, side >> 2 | side << 14, third, 0, 0, 0, 0],
    }
}

fn word(memory: &SimMemory, address: u64) -> u32 {
    let bytes = memory.get(address, 4).expect("mapped");
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn pair(memory: &SimMemory, address: u64) -> u64 {
    u64::from(word(memory, address)) | u64::from(word(memory, address + 4)) << 32
}

/// The texels of an image before the dispatch, of 64 bits.
fn wide(x: u32, y: u32) -> u64 {
    u64::from(x * 1000 + y) | u64::from(y * 10 + x) << 32
}

fn rows(words: impl Fn(u32, u32) -> Vec<u32>) -> Vec<u8> {
    let mut all = vec![0; (ROW / 4 * SIDE) as usize];
    for y in 0..SIDE {
        for x in 0..SIDE {
            let texel = words(x, y);
            let at = (y * ROW / 4) as usize + x as usize * texel.len();
            all[at..at + texel.len()].copy_from_slice(&texel);
        }
    }
    bytes(&all)
}

#[test]
fn texels_of_64_bits_and_atomic_operations() {
    let mut shader = Shader::default();
    parse(SHADER, &mut shader).unwrap_or_else(|error| panic!("{error}"));
    validate(&shader).unwrap_or_else(|error| panic!("{error}"));
    for name in GPUS {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            let memory = run(&shader, gpu).unwrap_or_else(|error| panic!("{name}: {error}"));
            check(&memory, name);
        }
    }
}

fn run(shader: &Shader, gpu: Gpu) -> Result<SimMemory, String> {
    let options = Options::new(gpu);
    let generation = gpu.generation();
    let compiled = compile(&mut shader.clone(), &options).map_err(|error| error.to_string())?;
    let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
    if let Some(fault) = report.faults().next() {
        return Err(format!("checker: {fault:?}"));
    }
    let mut table = vec![0u32; 256];
    let mut put = |binding: u32, after: u32, descriptor: &[u32]| {
        let offset = descriptor_offset(shader, 0, binding).expect("a binding") + after;
        let at = offset as usize / 4;
        table[at..at + descriptor.len()].copy_from_slice(descriptor);
    };
    put(0, 0, &image(IMAGES[0], 2, "UINT", generation));
    put(1, 0, &image(IMAGES[1], 2, "UINT", generation));
    put(2, 0, &image(IMAGES[2], 1, "FLOAT", generation));
    put(3, 0, &texel_buffer(TEXELS, 2 * 64 * 8, "R32G32_UINT", generation).expect("a format"));
    for (number, base) in (0..).zip(&IMAGES[3..]) {
        put(4, 32 * number, &image(*base, 1, "UINT", generation));
    }
    put(8, 0, &rig::descriptor(OUTPUT, (64 * OWN * 4) as usize, generation));
    let mut memory = SimMemory::default();
    memory.map(u64::from(options.address_high) << 32 | TABLE, bytes(&table)).expect("free");
    let both = |value: u64| vec![value as u32, (value >> 32) as u32];
    let buffer: Vec<u32> = (0..2 * 64u64).flat_map(|at| both(1 << 32 | at)).collect();
    let mut contents = vec![
        (IMAGES[0], rows(|x, y| both(wide(x, y)))),
        (IMAGES[1], rows(|x, y| both(wide(x, y)))),
        (IMAGES[2], rows(|x, _| vec![(x as f32).to_bits()])),
        (TEXELS, bytes(&buffer)),
        (OUTPUT, vec![0; (64 * OWN * 4) as usize]),
    ];
    for (number, base) in (0u32..).zip(&IMAGES[3..]) {
        contents.push((*base, rows(|x, y| vec![number << 16 | x << 8 | y])));
    }
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
    rig::execute(&compiled.code, gpu, &mut memory, &dispatch)?;
    Ok(memory)
}

fn check(memory: &SimMemory, name: &str) {
    for lane in 0..64u32 {
        let (x, y) = (lane & 7, lane >> 3);
        let out = OUTPUT + u64::from(lane * OWN * 4);
        let texel = |base: u64, bytes: u32| base + u64::from(y * ROW + x * bytes);
        let found: Vec<u64> = (0..4).map(|at| pair(memory, out + 8 * at)).collect();
        let before = 1 << 32 | u64::from(lane + 8);
        assert_eq!(found, [wide(x, y), 1, 1 << 32 | u64::from(y), before], "{name} lane {lane}");
        assert_eq!(pair(memory, texel(IMAGES[0], 8)), wide(x, y) + u64::from(lane), "{name} lane {lane}");
        let number = lane & 3;
        let chosen = word(memory, out + 32);
        assert_eq!(chosen, number << 16 | x << 8 | y, "{name} lane {lane}");
        let base = IMAGES[3 + number as usize];
        assert_eq!(word(memory, texel(base, 4)), lane, "{name} lane {lane}");
        if y > 0 {
            let most = (lane as f32).max(x as f32).to_bits();
            assert_eq!(word(memory, texel(IMAGES[2], 4)), most, "{name} lane {lane}");
        }
    }
    // The comparison succeeds only for the second lane.
    let exchanged: Vec<u64> = (8..11).map(|at| pair(memory, TEXELS + 8 * at)).collect();
    assert_eq!(exchanged, [1 << 32 | 8, 1, 1 << 32 | 10], "{name}");
    for x in 0..SIDE {
        let sum: u32 = (0..8).map(|y| y * 8 + x).sum();
        let place = u64::from(x);
        let found = pair(memory, IMAGES[1] + place * 8);
        assert_eq!(found, wide(x, 0) + u64::from(sum), "{name}: the sum of column {x}");
        let found = word(memory, IMAGES[2] + place * 4);
        // The first row is added to, and then replaced by the maximum of the sum and the lane number, which is the sum.
        assert_eq!(found, ((x + sum) as f32).to_bits(), "{name}: the sum of floats of column {x}");
    }
}
