//! Images in memory as descriptors describe them, and shaders that sample them.
//!
//! Descriptors are composed here bit by bit, apart from the tables that the simulator reads them by.

use crate::assembled::assemble;
use unwedge_hw::Db;
use unwedge_hw::adreno::format::{ColorSwap, Format};
use unwedge_hw::adreno::layout::{ImageGpu, ImageLayout, ImageParams, TileMode};
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{Dispatch, Fault, Options, ShaderState, Timing, run};

pub const DESCRIPTORS: u64 = 0x10_0000;
pub const INPUT: u64 = 0x20_0000;
pub const OUTPUT: u64 = 0x30_0000;
pub const BORDERS: u64 = 0x40_0000;
pub const IMAGE: u64 = 0x100_0000;
/// Words that a fiber reads, and those it writes.
pub const INPUTS: usize = 16;

/// Numbers that look random: those of the program that recorded the vectors.
pub struct Lcg(pub u64);

impl Lcg {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    pub fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }
}

/// What an image is, as an API says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    D1,
    D1Array,
    D2,
    D2Array,
    D3,
    Cube,
    CubeArray,
}

impl Kind {
    pub fn named(name: &str) -> Kind {
        let kinds = [Kind::D1, Kind::D1Array, Kind::D2, Kind::D2Array, Kind::D3, Kind::Cube, Kind::CubeArray];
        let names = ["1d", "1da", "2d", "2da", "3d", "cube", "cubes"];
        kinds[names.iter().position(|of| *of == name).expect("a kind")]
    }

    pub fn is_array(self) -> bool {
        matches!(self, Kind::D1Array | Kind::D2Array | Kind::CubeArray)
    }

    pub fn is_cube(self) -> bool {
        matches!(self, Kind::Cube | Kind::CubeArray)
    }

    pub fn axes(self) -> usize {
        match self {
            Kind::D1 | Kind::D1Array => 1,
            Kind::D2 | Kind::D2Array => 2,
            _ => 3,
        }
    }

    fn code(self) -> u32 {
        match self {
            Kind::D1 | Kind::D1Array => 0,
            Kind::D2 | Kind::D2Array => 1,
            Kind::Cube | Kind::CubeArray => 2,
            Kind::D3 => 3,
        }
    }
}

pub fn image_gpu(name: &str) -> ImageGpu {
    ImageGpu::of(Db::builtin().identify_name(name).expect(name)).expect(name)
}

/// The image's layout, for layers or cubes as the kind has them.
pub fn layout(gpu: &ImageGpu, kind: Kind, params: ImageParams) -> ImageLayout {
    let mut params = params;
    params.layers *= if kind.is_cube() { 6 } else { 1 };
    params.is_3d = kind == Kind::D3;
    ImageLayout::new(gpu, &params).unwrap_or_else(|why| panic!("{params:?}: {why}"))
}

/// A texture descriptor.
pub fn texture(kind: Kind, layout: &ImageLayout, swizzle: [u32; 4]) -> [u32; 16] {
    let params = layout.params();
    let format = params.format;
    let first = layout.levels[0];
    let last = layout.levels[layout.levels.len() - 1];
    let base = IMAGE + first.offset;
    let swap = if layout.tile_mode == TileMode::Linear { format.swap() } else { ColorSwap::Wzyx };
    let depth = match kind {
        Kind::D3 => params.depth,
        _ if kind.is_cube() => params.layers / 6,
        _ => params.layers,
    };
    let stride = layout.layer_stride(&first);
    let mut words = [0; 16];
    words[0] = layout.tile_mode.code()
        | u32::from(format.is_srgb()) << 2
        | swizzle[0] << 4
        | swizzle[1] << 7
        | swizzle[2] << 10
        | swizzle[3] << 13
        | (params.levels - 1) << 16
        | params.samples.trailing_zeros() << 20
        | format.texture_format().expect("a texture format").0 << 22
        | swap.code() << 30;
    words[1] = params.width | params.height << 15;
    words[2] = (layout.pitch_align / 64).trailing_zeros() | (first.pitch as u32) << 7 | kind.code() << 29;
    words[3] =
        (stride >> 12) as u32 | u32::from(layout.tile_all) << 27 | u32::from(layout.flags.is_some()) << 28;
    if kind == Kind::D3 {
        words[3] |= ((last.slice_size >> 12) as u32 & 15) << 23;
    }
    words[4] = base as u32;
    words[5] = (base >> 32) as u32 | depth << 17;
    if layout.flags.is_some() {
        words[7] = IMAGE as u32;
    }
    words
}

/// A storage descriptor of one level.
pub fn storage(kind: Kind, layout: &ImageLayout, level: usize) -> [u32; 16] {
    let mut words = texture(if kind.is_cube() { Kind::D2Array } else { kind }, layout, [0; 4]);
    let size = layout.levels[level];
    let base = IMAGE + size.offset;
    words[0] = words[0] & !(0xf << 16 | 3) | size.tile_mode.code();
    words[1] = size.width | size.height << 15;
    words[2] = words[2] & !0x1fff_ff8f | (size.pitch as u32) << 7;
    words[3] = words[3] & 0xf800_0000 | (layout.layer_stride(&size) >> 12) as u32;
    words[4] = base as u32;
    let depth = if kind == Kind::D3 { size.depth } else { layout.params().layers };
    words[5] = (base >> 32) as u32 | depth << 17;
    words
}

/// A buffer of words.
pub fn words_buffer(at: u64, elements: u32) -> [u32; 16] {
    let mut words = [0; 16];
    (words[0], words[1], words[2]) = (0x4b << 22, elements, 4 << 29);
    (words[4], words[5]) = (at as u32, (at >> 32) as u32);
    words
}

/// Writes a texel or block.
pub fn put(bytes: &mut [u8], layout: &ImageLayout, level: u32, place: (u32, u32, u32), texel: &[u8]) {
    let addresser = layout.addresser(level).expect("a level");
    let first = layout.levels[0].offset;
    let at = addresser.checked_offset(place.0, place.1, place.2, 0).expect("inside") as usize;
    assert!(at as u64 >= first);
    match addresser.second_byte() {
        None => bytes[at..at + texel.len()].copy_from_slice(texel),
        Some(apart) => texel.iter().enumerate().for_each(|(n, byte)| bytes[at + n * apart as usize] = *byte),
    }
}

/// The border colours that Vulkan has, in every form that the table keeps.
pub fn borders() -> Vec<u8> {
    let mut table = vec![0; 6 * 128];
    for (entry, bytes) in table.chunks_mut(128).enumerate() {
        let integer = entry % 2 == 1;
        let color = [u32::from(entry > 3); 3].into_iter().chain([u32::from(entry > 1)]);
        for (at, one) in color.enumerate() {
            let mut write = |offset: usize, size: usize, value: u32| {
                bytes[offset + at * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
            };
            write(0, 4, if integer { one } else { one * 0x3f80_0000 });
            write(16, 2, one * 0xffff);
            write(24, 2, one * 0x7fff);
            write(32, 2, if integer { one } else { one * 0x3c00 });
            write(48, 1, one * 0xff);
            write(52, 1, one * 0x7f);
            write(64, 2, one * 0x3c00);
        }
        let [white, opaque] = [u32::from(entry > 3), u32::from(entry > 1)];
        let packed = |parts: [u32; 4]| -> u32 {
            let mut low = 0;
            let channels = [white, white, white, opaque].into_iter().zip(parts);
            channels.fold(0, |word, (one, bits)| {
                low += bits;
                word | ((one * ((1 << bits) - 1)) << (low - bits))
            })
        };
        bytes[40..42].copy_from_slice(&(packed([5, 6, 5, 0]) as u16).to_le_bytes());
        bytes[42..44].copy_from_slice(&(packed([5, 5, 5, 1]) as u16).to_le_bytes());
        bytes[44..46].copy_from_slice(&(packed([4; 4]) as u16).to_le_bytes());
        bytes[56..60].copy_from_slice(&packed([10, 10, 10, 2]).to_le_bytes());
        bytes[60..64].copy_from_slice(&(white * 0xff_ffff).to_le_bytes());
    }
    table
}

/// What a shader runs with: descriptors from the first set on, words for each fiber, and an image.
pub struct Bench<'b> {
    pub gpu_id: u32,
    pub gpu: &'b ImageGpu,
    /// At 0 and 1; at 2 and 3 are the words that the shader reads and writes.
    pub texture: [u32; 16],
    pub sampler: [u32; 16],
    pub image: Vec<u8>,
    pub inputs: Vec<[u32; INPUTS]>,
    pub timing: Timing,
}

impl Bench<'_> {
    /// Runs a shader whose words for each fiber are in `r4.x` to `r7.w`; what it leaves in `r8` of each, and memory.
    pub fn run(&self, operation: &str) -> Result<(Vec<[u32; 4]>, SimMemory), Fault> {
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let fibers = self.inputs.len();
        let mut memory = SimMemory::default();
        memory.map(IMAGE, self.image.clone()).expect("free");
        memory.map(INPUT, bytes(&self.inputs.concat())).expect("free");
        memory.map(OUTPUT, vec![0; 16 * fibers]).expect("free");
        memory.map(BORDERS, borders()).expect("free");
        let descriptors = [
            self.texture,
            self.sampler,
            words_buffer(INPUT, (INPUTS * fibers) as u32),
            words_buffer(OUTPUT, 4 * fibers as u32),
        ];
        memory.map(DESCRIPTORS, bytes(&descriptors.concat())).expect("free");
        let source = format!(
            "shl.b r1.x, r0.x, 4
            shl.b r1.y, r0.x, 2
            (rpt5)nop
            add.u r1.z, r1.x, 4
            add.u r1.w, r1.x, 8
            add.u r2.x, r1.x, 12
            (rpt5)nop
            ldib.b.untyped.1d.u32.4.imm.base0 r4.x, r1.x, 2
            ldib.b.untyped.1d.u32.4.imm.base0 r5.x, r1.z, 2
            ldib.b.untyped.1d.u32.4.imm.base0 r6.x, r1.w, 2
            ldib.b.untyped.1d.u32.4.imm.base0 r7.x, r2.x, 2
            (sy)(ss)nop
            {operation}
            (sy)(ss)nop
            (rpt5)nop
            stib.b.untyped.1d.u32.4.imm.base0 r8.x, r1.y, 3
            end"
        );
        let program = assemble(&source, self.gpu_id);
        let dispatch = Dispatch {
            state: ShaderState {
                bindless: vec![DESCRIPTORS | 3],
                borders: BORDERS,
                bank: self.gpu.bank,
                // The kernel's weights, where there are cubic filters.
                cubic: (self.gpu_id >= 650).then_some([0; 5]),
                sample_places: [[6, 2], [14, 6], [2, 10], [10, 14]],
                ..ShaderState::default()
            },
            local_size: [fibers as u32, 1, 1],
            local_id: Some(0),
            ..Dispatch::default()
        };
        run(&program, &dispatch, &mut memory, &Options { timing: self.timing, ..Options::default() })?;
        let word = |at: u64| memory.load(OUTPUT + 4 * at, 4).known().expect("known") as u32;
        let outputs = (0..fibers as u64).map(|fiber| [0, 1, 2, 3].map(|n| word(4 * fiber + n))).collect();
        Ok((outputs, memory))
    }
}

/// A format by its name.
pub fn format(name: &str) -> Format {
    Format::named(name).unwrap_or_else(|| panic!("{name}"))
}
