//! Images and typed buffers on every generation: what is at which address, what bounds do, what samples give.

use std::collections::HashMap;
use unwedge_isa::amdgcn::source::assemble;
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};
use unwedge_sim::amdgcn::{Dispatch, FaultKind, Initial, Outcome, Program, SimMemory, Timing, Trace, run};

const GPUS: [&str; 7] = ["gfx600", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1200"];
const BASE: u64 = 0x10_0000;
/// Where the image's descriptor stands in scalar registers, and the sampler's.
const RESOURCE: u16 = 8;
const SAMPLER: u16 = 16;

fn gpu(name: &str) -> Gpu {
    Gpu::new(name).expect("known")
}

fn program(code: &str, gpu: Gpu) -> Program {
    let made = assemble(code, &gpu);
    assert!(made.errors.is_empty(), "{}: {:?}\n{code}", gpu.name(), made.errors);
    let bytes = &made.sections[0].bytes;
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    Program::new(&words, 0, gpu)
}

struct Done {
    outcome: Outcome,
    memory: SimMemory,
    registers: HashMap<u16, Vec<u32>>,
}

impl Done {
    /// A lane's values of the registers from one on.
    fn lane(&self, lane: usize, first: u8, count: u8) -> Vec<u32> {
        (first..first + count).map(|n| self.registers[&Reg::vgpr(n).0][lane]).collect()
    }

    fn floats(&self, lane: usize, first: u8, count: u8) -> Vec<f32> {
        self.lane(lane, first, count).into_iter().map(f32::from_bits).collect()
    }
}

fn go(
    code: &str,
    gpu: Gpu,
    bytes: Vec<u8>,
    size: [u32; 3],
    scalars: &[(u16, &[u32])],
    vectors: &[(u8, u32)],
) -> Done {
    let program = program(code, gpu);
    let mut memory = SimMemory::default();
    memory.map(BASE, bytes).expect("free");
    let mut initial: Vec<(u8, Initial)> = (0..3).map(|axis| (axis, Initial::LocalId(axis))).collect();
    initial.extend(vectors.iter().map(|(reg, value)| (*reg, Initial::Value(*value))));
    let dispatch = Dispatch {
        size,
        scalars: scalars.iter().flat_map(|(first, words)| (*first..).zip(words.iter().copied())).collect(),
        vectors: initial,
        ..Dispatch::default()
    };
    let mut registers = HashMap::new();
    let mut tell = |trace: &Trace| {
        registers.extend(trace.writes.iter().map(|(reg, values)| (reg.0, values.clone())));
    };
    let outcome = run(&program, &mut memory, &dispatch, Some(&mut tell));
    Done { outcome, memory, registers }
}

/// An image to be described.
#[derive(Clone, Copy)]
struct Image {
    kind: u32,
    /// Data format and number format, as before gfx10.
    format: (u32, u32),
    size: [u32; 3],
    levels: u32,
    swizzle: u32,
    select: u32,
    pitch: u32,
}

const IDENTITY: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;
const LINEAR: Image =
    Image { kind: 9, format: (10, 4), size: [8, 4, 1], levels: 1, swizzle: 0, select: IDENTITY, pitch: 0 };

impl Image {
    fn code(&self, generation: Gfx) -> u32 {
        let (data, number) = self.format;
        let unified = |rgba8: u32| match (data, number) {
            (10, n) => rgba8 + n,
            (4, 7) => 22,
            (4, n) => 16 + n,
            (1, n) => 1 + n,
            _ => panic!("not used"),
        };
        match generation {
            Gfx::Gfx10 | Gfx::Gfx10_3 => unified(56),
            generation if generation >= Gfx::Gfx11 => unified(42),
            _ => data | number << 6,
        }
    }

    fn bytes(&self) -> u32 {
        if self.format.0 == 1 { 1 } else { 4 }
    }

    /// Texels from row to row of a linear image.
    fn pitch(&self, generation: Gfx) -> u32 {
        if generation >= Gfx::Gfx10 {
            return self.size[0].next_multiple_of(256 / self.bytes());
        }
        if self.pitch == 0 { self.size[0].next_multiple_of(64) } else { self.pitch }
    }

    fn words(&self, gpu: &Gpu) -> [u32; 8] {
        let generation = gpu.generation();
        let [width, height, depth] = self.size.map(|size| size - 1);
        let depth = if matches!(self.kind, 8 | 9 | 14) { 0 } else { depth };
        let last = self.levels - 1;
        let code = self.code(generation);
        let pitch = self.pitch(generation) - 1;
        let linear_index = if generation <= Gfx::Gfx8 && self.swizzle == 0 { 8 } else { self.swizzle };
        let base = (BASE >> 8) as u32;
        let third = self.select | linear_index << 20 | self.kind << 28;
        match generation {
            Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => {
                let layers = if matches!(self.kind, 11..=13 | 15) { depth } else { 0 };
                let words = [base, code << 20, width | height << 14, third | last << 16];
                let more = [depth | pitch << 13, layers << 13, 0, 0];
                [words, more].concat().try_into().expect("eight")
            }
            gfx if gfx.is_gfx9() => {
                let words = [base, code << 20, width | height << 14, third | last << 16];
                [words, [depth | pitch << 13, last << 28, 0, 0]].concat().try_into().expect("eight")
            }
            Gfx::Gfx12 => {
                let words = [
                    base,
                    last << 12 | code << 17 | (width & 3) << 30,
                    width >> 2 | height << 14,
                    third | last << 15,
                ];
                [words, [depth, 0, 0, 0]].concat().try_into().expect("eight")
            }
            _ => {
                let (mip, more) = if generation >= Gfx::Gfx11 { (last << 16, 0) } else { (0, last << 4) };
                let words = [
                    base,
                    mip | code << 20 | (width & 3) << 30,
                    width >> 2 | height << 14,
                    third | last << 16,
                ];
                [words, [depth, more, 0, 0]].concat().try_into().expect("eight")
            }
        }
    }

    /// Memory of a linear image, with a value for each texel of the first level.
    fn memory(&self, generation: Gfx, value: impl Fn(u32, u32, u32) -> u32) -> Vec<u8> {
        let pitch = self.pitch(generation);
        let mut bytes = vec![0xee; (pitch * self.size[1] * self.size[2] * self.bytes()) as usize];
        for z in 0..self.size[2] {
            for y in 0..self.size[1] {
                for x in 0..self.size[0] {
                    let at = (((z * self.size[1] + y) * pitch + x) * self.bytes()) as usize;
                    let value = value(x, y, z).to_le_bytes();
                    bytes[at..at + self.bytes() as usize].copy_from_slice(&value[..self.bytes() as usize]);
                }
            }
        }
        bytes
    }
}

/// The address and dimension of an instruction as a generation writes them.
fn address(generation: Gfx, first: u32, count: u32, dim: &str, arrayed: bool) -> (String, String) {
    let last = first + count - 1;
    let block = if count == 1 { format!("v{first}") } else { format!("v[{first}:{last}]") };
    match generation {
        generation if generation >= Gfx::Gfx12 && count > 1 => {
            let list: Vec<String> = (first..=last).map(|n| format!("v{n}")).collect();
            (format!("[{}]", list.join(", ")), format!("dim:SQ_RSRC_IMG_{dim}"))
        }
        generation if generation >= Gfx::Gfx10 => (block, format!("dim:SQ_RSRC_IMG_{dim}")),
        _ => (block, if arrayed { "da".to_owned() } else { String::new() }),
    }
}

fn unorm(generation: Gfx) -> &'static str {
    if generation >= Gfx::Gfx11 { "" } else { "unorm" }
}

fn texel(x: u32, y: u32, z: u32) -> u32 {
    x | y << 8 | z << 16 | 0xa5 << 24
}

#[test]
fn loads_of_every_dimension() {
    for name in GPUS {
        let gpu = gpu(name);
        let generation = gpu.generation();
        for (kind, dim, size, count, arrayed) in [
            (8, "1D", [8, 1, 1], 1, false),
            (9, "2D", [8, 4, 1], 2, false),
            (10, "3D", [8, 4, 2], 3, false),
            (13, "2D_ARRAY", [8, 4, 2], 3, true),
            (11, "CUBE", [4, 4, 6], 3, true),
        ] {
            let image = Image { kind, size, ..LINEAR };
            let (vaddr, dimension) = address(generation, 0, count, dim, arrayed);
            let more = match generation {
                generation if generation >= Gfx::Gfx10 => format!("{dimension} {}", unorm(generation)),
                _ => format!("unorm {dimension}"),
            };
            let code = format!("image_load v[4:7], {vaddr}, s[8:15] dmask:0xf {more}\ns_endpgm");
            // One more on each axis than there is, as far as 64 lanes reach.
            let grid = match count {
                1 => [9, 1, 1],
                2 => [9, 5, 1],
                _ if kind == 11 => [1, 4, 7],
                _ => [2, 4, 3],
            };
            let bytes = image.memory(generation, texel);
            let done = go(&code, gpu, bytes, grid, &[(RESOURCE, &image.words(&gpu))], &[]);
            assert!(done.outcome.faults.is_empty(), "{name} {dim}: {:?}", done.outcome.faults);
            let lanes = gpu.lanes();
            let threads: u32 = grid.iter().product();
            // The last wave's registers are what is left.
            let first = (threads - 1) / lanes * lanes;
            for thread in first..threads {
                let at = [thread % grid[0], thread / grid[0] % grid[1], thread / grid[0] / grid[1]];
                let inside = at.iter().zip(size).all(|(at, size)| *at < size);
                let expected = if inside { [at[0], at[1], at[2], 0xa5] } else { [0; 4] };
                assert_eq!(done.lane((thread - first) as usize, 4, 4), expected, "{name} {dim} {at:?}");
            }
        }
    }
}

/// Two layers and four samples, of which the last level is the logarithm: a plane of texels for each, samples within layers.
#[test]
fn samples_of_a_texel() {
    for name in GPUS {
        let gpu = gpu(name);
        let generation = gpu.generation();
        for (kind, dim, layers, count) in [(14, "2D_MSAA", 1, 3), (15, "2D_MSAA_ARRAY", 2, 4)] {
            let arrayed = layers > 1;
            let image = Image { kind, size: [8, 4, layers], levels: 3, ..LINEAR };
            let planes = Image { size: [8, 4, layers * 4], ..image };
            let more = |what: &str| match generation {
                generation if generation >= Gfx::Gfx10 => {
                    format!("dim:SQ_RSRC_IMG_{dim} {} {what}", unorm(generation))
                }
                _ => format!("unorm {} {what}", if arrayed { "da" } else { "" }),
            };
            // X, Y and the last coordinates: samples up to the first that is outside.
            let (vaddr, _) = address(generation, 8, count, dim, arrayed);
            let last = if arrayed { "v_mov_b32 v10, 1\nv_mov_b32 v11, v2" } else { "v_mov_b32 v10, v2" };
            let start = format!("v_mov_b32 v8, v0\nv_mov_b32 v9, v1\n{last}\n");
            let code = format!("{start}image_load v[4:7], {vaddr}, s[8:15] dmask:0xf {}\ns_endpgm", more(""));
            let bytes = planes.memory(generation, texel);
            let descriptor = [(RESOURCE, &image.words(&gpu)[..])];
            let done = go(&code, gpu, bytes.clone(), [2, 3, 5], &descriptor, &[]);
            assert!(done.outcome.faults.is_empty(), "{name} {dim}: {:?}", done.outcome.faults);
            for thread in 0..30 {
                let [x, y, sample] = [thread % 2, thread / 2 % 3, thread / 6];
                let plane = (layers - 1) * 4 + sample;
                let expected = if sample < 4 { [x, y, plane, 0xa5] } else { [0; 4] };
                assert_eq!(done.lane(thread as usize, 4, 4), expected, "{name} {dim} {x} {y} {sample}");
            }
            // What is stored to samples that the texel does not have is dropped.
            let code =
                format!("{start}image_store v[4:7], {vaddr}, s[8:15] dmask:0xf {}\ns_endpgm", more(""));
            let done = go(&code, gpu, bytes, [2, 3, 5], &descriptor, &[(4, 1), (5, 2), (6, 3), (7, 4)]);
            assert!(done.outcome.faults.is_empty(), "{name} {dim}: {:?}", done.outcome.faults);
            let first = (layers - 1) * 4;
            let after = planes.memory(generation, |x, y, plane| {
                if x < 2 && y < 3 && plane >= first { 0x0403_0201 } else { texel(x, y, plane) }
            });
            assert!(done.memory.get(BASE, after.len()) == Some(&after), "{name} {dim}");
        }
    }
}

#[test]
fn stores_and_atomics() {
    for name in GPUS {
        let gpu = gpu(name);
        let generation = gpu.generation();
        let image = Image { size: [8, 4, 1], ..LINEAR };
        let (vaddr, dimension) = address(generation, 0, 2, "2D", false);
        let code = format!(
            "image_store v[4:7], {vaddr}, s[8:15] dmask:0xf {dimension} {}\ns_endpgm",
            unorm(generation)
        );
        let before = image.memory(generation, |_, _, _| 0);
        let vectors = [(4, 1), (5, 2), (6, 300), (7, 4)];
        // Beyond the width nothing is written.
        let done = go(&code, gpu, before.clone(), [16, 2, 1], &[(RESOURCE, &image.words(&gpu))], &vectors);
        assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
        let after = image.memory(generation, |_, y, _| if y < 2 { 0x04ff_0201 } else { 0 });
        assert!(done.memory.get(BASE, after.len()) == Some(&after), "{name}");

        let counter = Image { format: (4, 4), size: [1, 1, 1], ..LINEAR };
        let returned = if generation >= Gfx::Gfx12 { "th:TH_ATOMIC_RETURN" } else { "glc" };
        let code = format!(
            "v_mov_b32 v0, 0\nv_mov_b32 v1, 0\nimage_atomic_add{} v4, {vaddr}, s[8:15] dmask:0x1 {dimension} {} {returned}\ns_endpgm",
            if generation >= Gfx::Gfx12 { "_uint" } else { "" },
            unorm(generation)
        );
        let bytes = counter.memory(generation, |_, _, _| 100);
        let done = go(&code, gpu, bytes, [16, 1, 1], &[(RESOURCE, &counter.words(&gpu))], &[(4, 3)]);
        assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
        assert_eq!(done.memory.get(BASE, 4), Some(&[148u8, 0, 0, 0][..]), "{name}");
        assert_eq!((0..3).map(|lane| done.lane(lane, 4, 1)[0]).collect::<Vec<_>>(), [100, 103, 106]);
    }
}

/// Wrapped, with filters: everything at once, as `sampler(wrap, linear, mip)`.
fn sampler(gpu: &Gpu, wrap: u32, linear: bool, mip: u32) -> [u32; 4] {
    let max_lod = if gpu.generation() >= Gfx::Gfx12 { 0x1fff << 13 } else { 0xfff << 12 };
    let filter = if linear { 1 << 20 | 1 << 22 | 1 << 24 } else { 1 << 24 };
    [wrap | wrap << 3 | wrap << 6, max_lod, filter | mip << 26, 0]
}

fn floats(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn samples() {
    for name in GPUS {
        let gpu = gpu(name);
        let generation = gpu.generation();
        let image = Image { format: (4, 7), size: [4, 2, 1], ..LINEAR };
        let bytes = image.memory(generation, |x, y, _| (10.0 * y as f32 + x as f32).to_bits());
        let (vaddr, dimension) = address(generation, 10, 2, "2D", false);
        let sample = |linear: bool, wrap: u32, at: [f32; 2]| {
            let code =
                format!("image_sample_lz v4, {vaddr}, s[8:15], s[16:19] dmask:0x1 {dimension}\ns_endpgm");
            let words = [(RESOURCE, &image.words(&gpu)[..]), (SAMPLER, &sampler(&gpu, wrap, linear, 0)[..])];
            let at = floats(&at);
            let done = go(&code, gpu, bytes.clone(), [1, 1, 1], &words, &[(10, at[0]), (11, at[1])]);
            assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
            done.floats(0, 4, 1)[0]
        };
        // Texel (2, 1), then half way between four, then a quarter.
        assert_eq!(sample(false, 2, [0.6, 0.75]), 12.0, "{name}");
        assert_eq!(sample(true, 2, [0.5, 0.5]), 6.5, "{name}");
        assert_eq!(sample(true, 2, [1.75 / 4.0, 0.25]), 1.25, "{name}");
        // Beyond the right edge: repeated, mirrored, the last, half a border, a border.
        let beyond = [0, 1, 2, 4, 6].map(|wrap| sample(true, wrap, [4.0 / 4.0, 0.25]));
        assert_eq!(beyond, [1.5, 3.0, 3.0, 1.5, 1.5], "{name}");
        let far = [0, 1, 2, 3, 6].map(|wrap| sample(false, wrap, [5.5 / 4.0, 0.25]));
        assert_eq!(far, [1.0, 2.0, 3.0, 3.0, 0.0], "{name}");

        let code =
            format!("image_gather4_lz v[4:7], {vaddr}, s[8:15], s[16:19] dmask:0x1 {dimension}\ns_endpgm");
        let words = [(RESOURCE, &image.words(&gpu)[..]), (SAMPLER, &sampler(&gpu, 2, false, 0)[..])];
        let at = floats(&[0.5, 0.5]);
        let done = go(&code, gpu, bytes.clone(), [1, 1, 1], &words, &[(10, at[0]), (11, at[1])]);
        assert_eq!(done.floats(0, 4, 4), [11.0, 12.0, 2.0, 1.0], "{name}: {:?}", done.outcome.faults);

        // Offset by one texel to the left, compared with 1.5: less or equal.
        let (vaddr, _) = address(generation, 10, 4, "2D", false);
        let code =
            format!("image_sample_c_lz_o v4, {vaddr}, s[8:15], s[16:19] dmask:0x1 {dimension}\ns_endpgm");
        let mut compare = sampler(&gpu, 2, true, 0);
        compare[0] |= 3 << 12;
        let words = [(RESOURCE, &image.words(&gpu)[..]), (SAMPLER, &compare[..])];
        let at = floats(&[1.5, 2.75 / 4.0, 0.25]);
        let vectors = [(10, 0x3f), (11, at[0]), (12, at[1]), (13, at[2])];
        let done = go(&code, gpu, bytes.clone(), [1, 1, 1], &words, &vectors);
        // A quarter of texel 2 passes, three quarters of texel 1 do not.
        assert_eq!(done.floats(0, 4, 1), [0.25], "{name}: {:?}", done.outcome.faults);
    }
}

#[test]
fn levels() {
    for name in ["gfx1010", "gfx1030", "gfx1100", "gfx1200"] {
        let gpu = gpu(name);
        let generation = gpu.generation();
        let image = Image { format: (4, 7), size: [8, 8, 1], levels: 4, ..LINEAR };
        // The smallest first, each row of 256 bytes.
        let mut bytes = Vec::new();
        for level in [3u32, 2, 1, 0] {
            for _ in 0..(8 >> level).max(1) {
                bytes.extend((0..64).flat_map(|_| (level as f32).to_le_bytes()));
            }
        }
        let (vaddr, dimension) = address(generation, 10, 3, "2D", false);
        let code = format!("image_sample_l v4, {vaddr}, s[8:15], s[16:19] dmask:0x1 {dimension}\ns_endpgm");
        let sample = |mip: u32, lod: f32| {
            let words = [(RESOURCE, &image.words(&gpu)[..]), (SAMPLER, &sampler(&gpu, 2, true, mip)[..])];
            let at = floats(&[0.3, 0.9, lod]);
            let vectors: Vec<(u8, u32)> = (10..).zip(at).collect();
            let done = go(&code, gpu, bytes.clone(), [1, 1, 1], &words, &vectors);
            assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
            done.floats(0, 4, 1)[0]
        };
        assert_eq!([0.0, 0.6, 2.0, 9.0].map(|lod| sample(1, lod)), [0.0, 1.0, 2.0, 3.0], "{name}");
        assert_eq!([0.0, 0.5, 2.25].map(|lod| sample(2, lod)), [0.0, 0.5, 2.25], "{name}");
        assert_eq!(sample(0, 2.0), 0.0, "{name}");

        let code = format!(
            "image_get_resinfo v[4:7], v0, s[8:15] dmask:0xf {dimension} {}\n\
             image_load_mip v8, {}, s[8:15] dmask:0x1 {dimension} {}\ns_endpgm",
            unorm(generation),
            vaddr.replace("10", "0").replace("11", "1").replace("12", "2"),
            unorm(generation)
        );
        let done = go(&code, gpu, bytes.clone(), [4, 1, 1], &[(RESOURCE, &image.words(&gpu))], &[(2, 1)]);
        assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
        assert_eq!(done.lane(0, 4, 4), [8, 8, 1, 4], "{name}");
        assert_eq!(done.lane(2, 4, 4), [2, 2, 1, 4], "{name}");
        assert_eq!(done.floats(3, 8, 1), [1.0], "{name}");
    }
}

/// The level follows from how far the lanes of a quad are apart.
#[test]
fn levels_by_derivatives() {
    let gpu = gpu("gfx1030");
    let image = Image { format: (4, 7), size: [8, 8, 1], levels: 4, ..LINEAR };
    let mut bytes = Vec::new();
    for level in [3u32, 2, 1, 0] {
        for _ in 0..(8 >> level).max(1) {
            bytes.extend((0..64).flat_map(|_| (level as f32).to_le_bytes()));
        }
    }
    let words = [(RESOURCE, &image.words(&gpu)[..]), (SAMPLER, &sampler(&gpu, 0, false, 1)[..])];
    for (step, level) in [(0.125, 0.0), (0.25, 1.0), (0.5, 2.0), (4.0, 3.0)] {
        let code = format!(
            "v_and_b32 v1, 1, v0\nv_lshrrev_b32 v2, 2, v0\nv_lshl_or_b32 v0, v2, 1, v1\n\
             v_cvt_f32_u32 v10, v0\nv_mul_f32 v10, {:#x}, v10\nv_mov_b32 v11, 0\n\
             image_sample v4, v[10:11], s[8:15], s[16:19] dmask:0x1 dim:SQ_RSRC_IMG_2D\n\
             image_get_lod v[5:6], v[10:11], s[8:15], s[16:19] dmask:0x3 dim:SQ_RSRC_IMG_2D\n\
             v_mov_b32 v12, {:#x}\nv_mov_b32 v13, 0\nv_mov_b32 v14, 0\nv_mov_b32 v15, 0\n\
             v_mov_b32 v16, 0\nv_mov_b32 v17, 0\n\
             image_sample_d v7, v[12:17], s[8:15], s[16:19] dmask:0x1 dim:SQ_RSRC_IMG_2D\ns_endpgm",
            f32::to_bits(step),
            f32::to_bits(step)
        );
        let done = go(&code, gpu, bytes.clone(), [32, 1, 1], &words, &[]);
        assert!(done.outcome.faults.is_empty(), "{:?}", done.outcome.faults);
        assert_eq!(done.floats(5, 4, 1), [level], "{step}");
        assert_eq!(done.floats(5, 7, 1), [level], "{step}");
        let raw = (step * 8.0).log2();
        // The accessed level, which the image has, and the computed one.
        assert_eq!(done.floats(5, 5, 2), [raw.clamp(0.0, 3.0), raw], "{step}");
    }
}

#[test]
fn cubes_are_sampled_across_edges() {
    for name in GPUS {
        let gpu = gpu(name);
        let generation = gpu.generation();
        // Every face has its number.
        let image = Image { kind: 11, format: (4, 7), size: [2, 2, 6], ..LINEAR };
        let bytes = image.memory(generation, |_, _, z| (z as f32).to_bits());
        let (vaddr, dimension) = address(generation, 10, 3, "CUBE", false);
        let da = if generation < Gfx::Gfx10 { "da" } else { "" };
        let code =
            format!("image_sample_lz v4, {vaddr}, s[8:15], s[16:19] dmask:0x1 {dimension} {da}\ns_endpgm");
        let words = [(RESOURCE, &image.words(&gpu)[..]), (SAMPLER, &sampler(&gpu, 2, true, 0)[..])];
        let sample = |at: [f32; 3]| {
            let vectors: Vec<(u8, u32)> = (10..).zip(floats(&at)).collect();
            let done = go(&code, gpu, bytes.clone(), [1, 1, 1], &words, &vectors);
            assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
            done.floats(0, 4, 1)[0]
        };
        assert_eq!(sample([1.5, 1.5, 3.0]), 3.0, "{name}");
        // On the edge between +Z and +X.
        assert_eq!(sample([2.0, 1.5, 4.0]), 2.0, "{name}");
        assert_eq!(sample([1.0, 1.5, 0.0]), 2.0, "{name}");
    }
}

/// Tilings that are known: one texel at a time, by hand.
#[test]
fn tilings() {
    for (name, swizzle, format, at, offset) in [
        // Tiles of 8 by 8: x0 y0 x1 y1 x2 y2.
        ("gfx600", 13, (4, 4), [3, 1], 4 * 7),
        ("gfx803", 13, (4, 4), [8, 0], 4 * 64),
        ("gfx803", 13, (4, 4), [0, 8], 4 * 64 * 2),
        ("gfx803", 9, (4, 4), [4, 1], 4 * (4 + 8)),
        // Blocks of 256 bytes, 4 KiB and 64 KiB: x0 x1 y0 y1 y2 x2 y3 x3 …
        ("gfx900", 1, (4, 4), [1, 2], 4 * (1 + 8)),
        ("gfx1010", 1, (4, 4), [8, 0], 256),
        ("gfx1030", 5, (4, 4), [8, 8], 4 * (64 + 128)),
        ("gfx1030", 9, (1, 4), [0, 16], 256),
    ] {
        let gpu = gpu(name);
        let image = Image { format, size: [16, 32, 1], swizzle, pitch: 16, ..LINEAR };
        let mut bytes = vec![0; 1 << 16];
        bytes[offset] = 77;
        let (vaddr, dimension) = address(gpu.generation(), 10, 2, "2D", false);
        let code = format!("image_load v4, {vaddr}, s[8:15] dmask:0x1 {dimension} unorm\ns_endpgm");
        let vectors = [(10, at[0]), (11, at[1])];
        let done = go(&code, gpu, bytes, [1, 1, 1], &[(RESOURCE, &image.words(&gpu))], &vectors);
        assert!(done.outcome.faults.is_empty(), "{name} {swizzle}: {:?}", done.outcome.faults);
        assert_eq!(done.lane(0, 4, 1), [77], "{name} {swizzle} {at:?}");
    }
}

#[test]
fn what_is_not_emulated_is_a_fault() {
    for name in GPUS {
        let gpu = gpu(name);
        let generation = gpu.generation();
        let (vaddr, dimension) = address(generation, 0, 2, "2D", false);
        let code =
            format!("image_load v4, {vaddr}, s[8:15] dmask:0x1 {dimension} {}\ns_endpgm", unorm(generation));
        let mut words = Image { swizzle: 27, ..LINEAR }.words(&gpu);
        let tiled = go(&code, gpu, vec![0; 4096], [1, 1, 1], &[(RESOURCE, &words)], &[]);
        assert_eq!(
            tiled.outcome.faults[0].kind,
            FaultKind::NotEmulated("the image's swizzle mode"),
            "{name}"
        );
        // Blocks, or a code that means nothing.
        words = LINEAR.words(&gpu);
        words[1] |= match generation {
            Gfx::Gfx12 => 0xff << 17,
            Gfx::Gfx11 | Gfx::Gfx11_5 => 0xff << 20,
            Gfx::Gfx10 | Gfx::Gfx10_3 => 0x1ff << 20,
            _ => 0x3f << 20,
        };
        let blocks = go(&code, gpu, vec![0; 4096], [1, 1, 1], &[(RESOURCE, &words)], &[]);
        assert_eq!(blocks.outcome.faults[0].kind, FaultKind::NotEmulated("the image's format"), "{name}");
        // Nothing: zeros.
        let null = go(&code, gpu, vec![0; 64], [1, 1, 1], &[(RESOURCE, &[0; 8])], &[]);
        assert!(null.outcome.faults.is_empty(), "{name}");
        assert_eq!(null.lane(0, 4, 1), [0], "{name}");
    }
}

#[test]
fn an_image_load_must_be_waited_for() {
    for (name, wait) in [("gfx900", "s_waitcnt vmcnt(0)"), ("gfx1200", "s_wait_loadcnt 0")] {
        for (wait, reported) in [(wait, false), ("s_nop 0", true)] {
            let gpu = gpu(name);
            let (vaddr, dimension) = address(gpu.generation(), 0, 2, "2D", false);
            let more = if gpu.generation() >= Gfx::Gfx12 { "" } else { "unorm" };
            let code = format!(
                "image_load v4, {vaddr}, s[8:15] dmask:0x1 {dimension} {more}\n{wait}\n\
                 image_store v4, {vaddr}, s[8:15] dmask:0x1 {dimension} {more}\ns_endpgm"
            );
            let program = program(&code, gpu);
            let mut memory = SimMemory::default();
            memory.map(BASE, LINEAR.memory(gpu.generation(), texel)).expect("free");
            let dispatch = Dispatch {
                size: [8, 4, 1],
                scalars: (RESOURCE..).zip(LINEAR.words(&gpu)).collect(),
                vectors: vec![(0, Initial::LocalId(0)), (1, Initial::LocalId(1))],
                timing: Timing::Adversarial { seed: 3 },
                ..Dispatch::default()
            };
            let outcome = run(&program, &mut memory, &dispatch, None);
            let found = outcome.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Stored(..)));
            assert_eq!(found, reported, "{name} {wait}: {:?}", outcome.faults);
        }
    }
}

/// One counter falls in the order of loads and samples, until gfx12 has one for each. Only among their own kind they write registers
/// in order.
#[test]
fn loads_and_samples_are_counted_in_one_order() {
    for name in ["gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1200"] {
        let gpu = gpu(name);
        let generation = gpu.generation();
        let image = Image { format: (4, 7), ..LINEAR };
        let (texel_at, dimension) = address(generation, 0, 2, "2D", false);
        let (point, _) = address(generation, 10, 2, "2D", false);
        let unorm = unorm(generation);
        let load =
            |reg: u8| format!("image_load v{reg}, {texel_at}, s[8:15] dmask:0x1 {dimension} {unorm}\n");
        let sample =
            |reg: u8| format!("image_sample_lz v{reg}, {point}, s[8:15], s[16:19] dmask:0x1 {dimension}\n");
        let missing = |begun: &str, wait: &str, stored: u8| {
            let store = format!("image_store v{stored}, {texel_at}, s[8:15] dmask:0x1 {dimension} {unorm}");
            let program = program(&format!("{begun}{wait}\n{store}\ns_endpgm"), gpu);
            let mut memory = SimMemory::default();
            memory.map(BASE, image.memory(generation, |x, y, _| ((x + y) as f32).to_bits())).expect("free");
            let words = [(RESOURCE, &image.words(&gpu)[..]), (SAMPLER, &sampler(&gpu, 2, false, 0)[..])];
            let dispatch = Dispatch {
                size: [8, 4, 1],
                scalars: words.iter().flat_map(|(at, w)| (*at..).zip(w.iter().copied())).collect(),
                vectors: vec![
                    (0, Initial::LocalId(0)),
                    (1, Initial::LocalId(1)),
                    (10, Initial::Value(0)),
                    (11, Initial::Value(0)),
                ],
                timing: Timing::Adversarial { seed: 3 },
                ..Dispatch::default()
            };
            let outcome = run(&program, &mut memory, &dispatch, None);
            let expected = outcome.faults.iter().all(|fault| matches!(fault.kind, FaultKind::Stored(..)));
            assert!(expected, "{name} {begun}{wait}: {:?}", outcome.faults);
            !outcome.faults.is_empty()
        };
        for (first, second) in [(load(4), sample(5)), (sample(4), load(5))] {
            let both = format!("{first}{second}");
            if generation < Gfx::Gfx12 {
                let stored = |reg| [2, 1, 0].map(|n| missing(&both, &format!("s_waitcnt vmcnt({n})"), reg));
                assert_eq!(stored(4), [true, false, false], "{name}: {both}");
                assert_eq!(stored(5), [true, true, false], "{name}: {both}");
            } else {
                let stored = ["s_wait_loadcnt 0", "s_wait_samplecnt 0"]
                    .map(|wait| [missing(&both, wait, 4), missing(&both, wait, 5)]);
                let of_load = if first == load(4) { [false, true] } else { [true, false] };
                assert_eq!(stored, [of_load, of_load.map(|is_missing| !is_missing)], "{name}: {both}");
            }
        }
    }
}

#[test]
fn typed_buffers() {
    for name in GPUS {
        let gpu = gpu(name);
        let generation = gpu.generation();
        // 8_8_8_8 UNORM, its components the other way round.
        let order = 7 | 6 << 3 | 5 << 6 | 4 << 9;
        let format = match generation {
            Gfx::Gfx10 | Gfx::Gfx10_3 => 56 << 12,
            generation if generation >= Gfx::Gfx11 => 42 << 12,
            _ => 10 << 15,
        };
        // There records are bytes.
        let records = if generation == Gfx::Gfx8 { 16 } else { 4 };
        let words = [BASE as u32, 4 << 16, records, order | format];
        let zero = if generation >= Gfx::Gfx12 { "null" } else { "0" };
        let named = match generation {
            generation if generation >= Gfx::Gfx10 => "format:[BUF_FMT_8_8_UINT]",
            _ => "format:[BUF_DATA_FORMAT_8_8,BUF_NUM_FORMAT_UINT]",
        };
        let tbuffer = format!("tbuffer_load_format_xy v[8:9], v0, s[8:11], {zero} {named} idxen");
        let code = format!(
            "buffer_load_format_xyzw v[4:7], v0, s[8:11], {zero} idxen\n{tbuffer}\n\
             v_add_f32 v12, 0.5, v4\nbuffer_store_format_x v12, v0, s[12:15], {zero} idxen\ns_endpgm"
        );
        let mut bytes: Vec<u8> = (0..32).map(|n| n * 3).collect();
        bytes.resize(256, 0xcc);
        // Another buffer of one component behind it.
        let single = match generation {
            generation if generation >= Gfx::Gfx10 => 1 << 12,
            _ => 1 << 15,
        };
        let other = [BASE as u32 + 64, 1 << 16, 3, IDENTITY | single];
        let scalars = [(RESOURCE, &words[..]), (12, &other[..])];
        let done = go(&code, gpu, bytes, [6, 1, 1], &scalars, &[]);
        assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
        let expected: Vec<f32> = [21, 18, 15, 12].map(|byte| f32::from(byte as u8) / 255.0).to_vec();
        assert_eq!(done.floats(1, 4, 4), expected, "{name}");
        assert_eq!(done.lane(2, 8, 2), [24, 27], "{name}");
        // Beyond the end: zeros, and nothing is stored.
        assert_eq!(done.lane(4, 4, 4), [0; 4], "{name}");
        assert_eq!(done.lane(5, 8, 2), [0; 2], "{name}");
        let stored =
            [9u8, 21, 33].map(|byte| ((f32::from(byte) / 255.0 + 0.5) * 255.0).round_ties_even() as u8);
        assert_eq!(
            done.memory.get(BASE + 64, 4),
            Some(&[stored[0], stored[1], stored[2], 0xcc][..]),
            "{name}"
        );
    }
}

/// Four dwords of a descriptor: what the other half would say is not read. Before gfx10 that is the pitch of rows.
#[test]
fn descriptors_of_four_dwords() {
    for name in ["gfx600", "gfx803", "gfx1010", "gfx1030"] {
        let gpu = gpu(name);
        let generation = gpu.generation();
        let (vaddr, dimension) = address(generation, 0, 2, "2D", false);
        let image = Image { size: [8, 8, 1], ..LINEAR };
        let mut words = image.words(&gpu);
        words[4..].fill(u32::MAX);
        let code = format!("image_load v[4:7], {vaddr}, s[8:15] dmask:0xf {dimension} unorm r128\ns_endpgm");
        let bytes = image.memory(generation, texel);
        let done = go(&code, gpu, bytes, [8, 8, 1], &[(RESOURCE, &words)], &[]);
        if generation <= Gfx::Gfx8 {
            let kinds: Vec<&FaultKind> = done.outcome.faults.iter().map(|fault| &fault.kind).collect();
            assert!(matches!(kinds[..], [FaultKind::NotEmulated(_)]), "{name}: {kinds:?}");
            continue;
        }
        assert!(done.outcome.faults.is_empty(), "{name}: {:?}", done.outcome.faults);
        // The last wave has the last rows.
        for lane in 0..32u32 {
            assert_eq!(done.lane(lane as usize, 4, 4), [lane % 8, 4 + lane / 8, 0, 0xa5], "{name} {lane}");
        }
    }
}
