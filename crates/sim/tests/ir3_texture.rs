//! Texture instructions against what lavapipe made of the same images, samplers and coordinates.
//!
//! `texture/vectors.txt` was recorded by `contrib/texture-oracle/oracle.cpp`. Texels and coordinates follow from a seed, here as there.

mod assembled;
#[allow(dead_code, reason = "shared with the test of storage images")]
mod texture;

use std::collections::BTreeMap;
use texture::*;
use unwedge_hw::adreno::format::ColorSwap;
use unwedge_hw::adreno::layout::{ImageParams, TileMode};
use unwedge_sim::adreno::ir3::Timing;

const VECTORS: &str = include_str!("texture/vectors.txt");
const SAMPLES: usize = 12;

/// A line of the vectors.
struct Vector<'v> {
    line: &'v str,
    format: &'v str,
    kind: Kind,
    size: [u32; 3],
    levels: u32,
    layers: u32,
    operation: char,
    component: usize,
    /// Magnification, minification, between levels.
    filters: [u32; 3],
    wrap: [u32; 3],
    border: u32,
    compare: u32,
    reduction: u32,
    unnormalized: bool,
    bias: f32,
    limits: [f32; 2],
    swizzle: [u32; 4],
    seed: u64,
    words: Vec<[u32; 4]>,
}

fn digits<const N: usize>(text: &str) -> [u32; N] {
    let list: Vec<u32> = text.chars().map(|digit| digit.to_digit(10).expect("a digit")).collect();
    list.try_into().expect("digits")
}

fn vector(line: &str) -> Vector<'_> {
    let fields: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| fields[at].parse::<u32>().unwrap_or_else(|_| panic!("{line}: field {at}"));
    let float = |at: usize| fields[at].parse::<f32>().unwrap_or_else(|_| panic!("{line}: field {at}"));
    let words: Vec<u32> = fields[19]
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).expect("text"), 16).expect("a word"))
        .collect();
    Vector {
        line,
        format: fields[0],
        kind: Kind::named(fields[1]),
        size: [number(2), number(3), number(4)],
        levels: number(5),
        layers: number(6),
        operation: fields[7].chars().next().expect("an operation"),
        component: digits::<1>(&fields[7][1..])[0] as usize,
        filters: digits(fields[8]),
        wrap: digits(fields[9]),
        border: number(10),
        compare: number(11),
        reduction: number(12),
        unnormalized: number(13) != 0,
        bias: float(14),
        limits: [float(15), float(16)],
        swizzle: digits(fields[17]),
        seed: fields[18].parse().expect("a seed"),
        words: words.chunks(4).map(|words| words.try_into().expect("four")).collect(),
    }
}

/// A texel or block of the recorded image.
fn texel(random: &mut Lcg, format: &str, bytes: usize) -> Vec<u8> {
    let words = |count: usize, mut word: Box<dyn FnMut() -> u32>, size: usize| -> Vec<u8> {
        (0..count).flat_map(|_| word().to_le_bytes()[..size].to_vec()).collect()
    };
    match format {
        "R16G16B16A16_FLOAT" => {
            let mut next = || {
                let r = random.next();
                0x3000 | (r & 0x0fff) | (r >> 12 & 1) << 15
            };
            let list: Vec<u32> = (0..bytes / 2).map(|_| next()).collect();
            list.into_iter().flat_map(|word| (word as u16).to_le_bytes()).collect()
        }
        "R32G32B32A32_FLOAT" | "R32_FLOAT" => (0..bytes / 4)
            .flat_map(|_| {
                let r = random.next();
                (0x3e00_0000 | (r & 0x01ff_ffff) | (r >> 25 & 1) << 31).to_le_bytes()
            })
            .collect(),
        "R11G11B10_FLOAT" => {
            let word = random.next() & 0x7fdf_fbff;
            words(1, Box::new(move || word), 4)
        }
        "Z32_FLOAT" => ((random.next() & 0xffff) as f32 / 65536.0).to_le_bytes().to_vec(),
        _ => {
            let mut block: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
            if format == "BPTC_RGBA_UNORM" {
                block[0] |= 0x80;
            }
            block
        }
    }
}

impl Vector<'_> {
    fn smaller(&self, axis: usize, level: u32) -> u32 {
        (self.size[axis] >> level).max(1)
    }

    /// The numbers that every sample reads: four coordinates, level, reference, gradients, divisor.
    fn numbers(&self) -> Vec<[f32; 16]> {
        let mut random = Lcg(self.seed ^ 0x5555);
        let mut all = Vec::new();
        for _ in 0..SAMPLES {
            let mut out = [0f32; 16];
            let fetch = self.operation == 'f';
            let fetched = random.below(self.levels);
            for (axis, place) in out.iter_mut().enumerate().take(self.kind.axes()) {
                let size = self.size[axis];
                *place = if fetch {
                    random.below(self.smaller(axis, fetched)) as f32
                } else if self.kind.is_cube() {
                    let extra = [0.0, 1.0 / 8192.0, 3.0 / 16384.0][axis];
                    ((f64::from(random.below(2047)) * 2.0 + 1.0 - 2047.0) / 2048.0 + extra) as f32
                } else {
                    let texel = match self.unnormalized {
                        true => random.below(size + 4) as i32 - 2,
                        false => random.below(5 * size) as i32 - 2 * size as i32,
                    };
                    let part = 2 * random.below(8) as i32 + 1;
                    let place = f64::from(texel * 16 + part) / 16.0;
                    (if self.unnormalized { place } else { place / f64::from(size) }) as f32
                };
            }
            if self.kind.is_array() {
                let r = random.below(self.layers + 2);
                let part = random.below(3) as i32 - 1;
                out[3] =
                    if fetch { (r % self.layers) as f32 } else { (r as i32 - 1) as f32 + 0.25 * part as f32 };
            }
            out[4] = match fetch {
                true => fetched as f32,
                false => (2 * random.below(8 * (self.levels + 2)) + 1) as f32 / 16.0 - 1.0,
            };
            out[5] = random.below(64) as f32 / 64.0 + 1.0 / 128.0;
            out[6] = (1 + random.below(16)) as f32 / 8.0 / self.size[0] as f32;
            out[10] = (1 + random.below(16)) as f32 / 8.0 / self.size[1] as f32;
            out[12] = 0.5 + random.below(8) as f32 / 4.0;
            all.push(out);
        }
        all
    }

    /// Whether level and gradients of a comparison are gradients of zero, as the recorded shader has it.
    fn compares_by_gradients(&self) -> bool {
        self.operation == 'c' && matches!(self.kind, Kind::D2Array | Kind::Cube)
    }

    /// The registers of a sample: the first source from 0 on, the second from 12 on.
    fn registers(&self, numbers: &[f32; 16]) -> [u32; INPUTS] {
        let axes = self.kind.axes();
        let fetch = self.operation == 'f';
        let bits = |value: f32| if fetch { value as i32 as u32 } else { value.to_bits() };
        let divisor = if self.operation == 'p' { numbers[12] } else { 1.0 };
        let mut place: Vec<u32> = (0..axes).map(|axis| bits(numbers[axis] * divisor)).collect();
        if axes == 1 {
            place.push(if fetch { 0 } else { (0.5 * divisor).to_bits() });
        }
        let registers = place.len();
        if matches!(self.operation, 'c' | 'd') {
            place.push(numbers[5].to_bits());
        }
        if self.kind.is_array() {
            place.push(bits(numbers[3]));
        }
        if self.operation == 'p' {
            place.push(divisor.to_bits());
        }
        let mut out = [0; INPUTS];
        if self.operation == 'g' || self.compares_by_gradients() {
            place.resize(place.len().max(4), 0);
            let mut gradients = vec![0; 2 * registers];
            if self.operation == 'g' {
                gradients[0] = numbers[6].to_bits();
                if axes > 1 {
                    gradients[registers + 1] = numbers[10].to_bits();
                }
            }
            place.extend(gradients);
        }
        let mut second = Vec::new();
        if self.operation == 'o' {
            let offsets: [i32; 3] = if axes == 1 { [3, 0, 0] } else { [3, -2, 1] };
            second.extend(offsets.iter().take(registers).map(|offset| *offset as u32));
        }
        second.push(bits(numbers[4]));
        out[..place.len()].copy_from_slice(&place);
        out[12..12 + second.len()].copy_from_slice(&second);
        out
    }

    fn instruction(&self) -> String {
        let name = match self.operation {
            'g' => "samgq".to_owned(),
            'c' if self.compares_by_gradients() => "samgq".to_owned(),
            'f' => "isaml".to_owned(),
            't' | 'd' => format!("gather4{}", ['r', 'g', 'b', 'a'][self.component]),
            _ => "saml".to_owned(),
        };
        let flag = |holds: bool, flag: &'static str| if holds { flag } else { "" };
        let ty = match unwedge_hw::adreno::format::Format::named(self.format).map(|f| f.codec().numeric()) {
            Some(unwedge_hw::adreno::format::Numeric::Float) => "f32",
            Some(unwedge_hw::adreno::format::Numeric::Uint) => "u32",
            _ => "s32",
        };
        let second = flag(name == "saml" || name == "isaml", ", r7.x");
        format!(
            "{name}{}{}{}{}{}.base0 ({ty})(xyzw)r8.x, r4.x{second}, s#1, t#0",
            flag(self.kind.axes() == 3, ".3d"),
            flag(self.kind.is_array(), ".a"),
            flag(self.operation == 'o', ".o"),
            flag(self.operation == 'p', ".p"),
            flag(matches!(self.operation, 'c' | 'd'), ".s"),
        )
    }

    fn sampler(&self) -> [u32; 16] {
        let mut words = [0; 16];
        let fixed = |value: f32| (value * 256.0) as i32 as u32;
        words[0] = self.filters[2]
            | self.filters[0] << 1
            | self.filters[1] << 3
            | self.wrap[0] << 5
            | self.wrap[1] << 8
            | self.wrap[2] << 11
            | fixed(self.bias) << 19;
        words[1] = self.compare << 1
            | u32::from(self.unnormalized) << 5
            | fixed(self.limits[1]) << 8
            | fixed(self.limits[0]) << 20;
        words[2] = self.reduction | self.border << 7;
        words
    }

    /// The image in memory as a GPU has it.
    fn image(
        &self,
        gpu: &unwedge_hw::adreno::layout::ImageGpu,
        tile_mode: TileMode,
        ubwc: bool,
    ) -> ([u32; 16], Vec<u8>) {
        let mut params = ImageParams::new(format(self.format), self.size[0], self.size[1]);
        (params.depth, params.levels, params.layers) = (self.size[2], self.levels, self.layers);
        (params.tile_mode, params.ubwc) = (tile_mode, ubwc);
        let layout = layout(gpu, self.kind, params);
        let mut bytes = vec![0xa5; layout.size as usize];
        // Zeroed flags: nothing is compressed.
        bytes[..layout.flags.map_or(0, |flags| flags.size) as usize].fill(0);
        let mut random = Lcg(self.seed);
        let block = params.format.block_size();
        let layers = layout.params().layers;
        for level in 0..self.levels {
            let [w, h, d] = [0, 1, 2].map(|axis| self.smaller(axis, level));
            for layer in 0..layers.max(d) {
                for y in 0..h.div_ceil(block.1) {
                    for x in 0..w.div_ceil(block.0) {
                        let texel = texel(&mut random, self.format, params.format.block_bytes() as usize);
                        put(&mut bytes, &layout, level, (x, y, layer), &texel);
                    }
                }
            }
        }
        (texture(self.kind, &layout, self.swizzle), bytes)
    }

    /// How far a component may be from the recorded one, or `None`: bit for bit.
    fn tolerance(&self) -> Option<f32> {
        let format = format(self.format);
        if format.codec().numeric() != unwedge_hw::adreno::format::Numeric::Float {
            return None;
        }
        // What the texels of the format, as recorded, can differ by.
        let range = match self.format {
            "R32G32B32A32_FLOAT" | "R32_FLOAT" | "R16G16B16A16_FLOAT" => 4.0,
            "R8G8B8A8_SNORM" | "R11G11B10_FLOAT" => 2.0,
            "R9G9B9E5_FLOAT" => 65536.0,
            _ => 1.0,
        };
        let weights = self.kind.axes().min(3) as f32 + 1.0;
        // The recorded device has a polynomial for the sRGB curve, and 8 bits for colours of BC1 to BC3.
        let decoding = match self.format {
            name if name.starts_with("DXT") => 0.006,
            _ if format.is_srgb() => 0.0015,
            _ => 0.0,
        };
        // Its logarithm is a line between powers of two.
        let level = if self.filters[2] == 1 { 0.09 } else { 0.0 };
        Some(match self.operation {
            'f' | 't' | 'd' => decoding + range * f32::EPSILON,
            'g' => decoding + range * (weights / 512.0 + level),
            _ => decoding + range * weights / 512.0,
        })
    }
}

#[test]
fn samples_are_those_of_the_recorded_device() {
    let gpus = [(630, "a630"), (740, "a740")].map(|(id, name)| (id, image_gpu(name)));
    let mut largest: BTreeMap<String, f32> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut compared = 0;
    for (at, vector) in VECTORS.lines().filter(|line| !line.starts_with('#')).map(vector).enumerate() {
        let swaps = format(vector.format).swap() != ColorSwap::Wzyx;
        let modes: &[(TileMode, bool)] = match swaps {
            true => &[(TileMode::Linear, false)],
            false => &[(TileMode::Linear, false), (TileMode::Tile3, false), (TileMode::Tile3, true)],
        };
        for (which, (tile_mode, ubwc)) in modes.iter().enumerate() {
            let (gpu_id, gpu) = &gpus[(at + which) % 2];
            let (texture, image) = vector.image(gpu, *tile_mode, *ubwc);
            let timing = if which == 1 { Timing::Adversarial { seed: at as u64 } } else { Timing::Plain };
            let bench = Bench {
                gpu_id: *gpu_id,
                gpu,
                texture,
                sampler: vector.sampler(),
                image,
                inputs: vector.numbers().iter().map(|numbers| vector.registers(numbers)).collect(),
                timing,
            };
            let (outputs, _) =
                bench.run(&vector.instruction()).unwrap_or_else(|why| panic!("{}: {why}", vector.line));
            for (sample, (is, wanted)) in outputs.iter().zip(&vector.words).enumerate() {
                let components = if vector.operation == 'c' { 1 } else { 4 };
                for component in 0..components {
                    let (is, wanted) = (is[component], wanted[component]);
                    compared += 1;
                    let Some(tolerance) = vector.tolerance() else {
                        if is != wanted {
                            failures.push(format!(
                                "{sample}.{component}: {is:#x} {wanted:#x} {}",
                                &vector.line[..90.min(vector.line.len())]
                            ));
                        }
                        continue;
                    };
                    let (is, wanted) = (f32::from_bits(is), f32::from_bits(wanted));
                    let difference = (is - wanted).abs();
                    let key = format!(
                        "{} {:?} {:?} {}",
                        vector.operation, vector.filters, vector.kind, vector.format
                    );
                    let most = largest.entry(key).or_default();
                    *most = most.max(difference);
                    if difference.is_nan() || difference > tolerance {
                        failures.push(format!(
                            "{sample}.{component}: {is} {wanted} {}",
                            &vector.line[..90.min(vector.line.len())]
                        ));
                    }
                }
            }
        }
    }
    for (key, difference) in &largest {
        println!("{difference:e} {key}");
    }
    println!("{compared} components, {} differ", failures.len());
    for failure in failures.iter().take(2000) {
        println!("{failure}");
    }
    assert!(failures.is_empty());
}
