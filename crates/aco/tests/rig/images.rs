//! Linear images with one level in the emulator's memory, and their descriptors. Each slice is a plane for every sample.

use unwedge_hw::amd::formats;
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::TexelFormat;

/// Bytes to a multiple of which rows are as long.
const ROW: u32 = 256;

/// An image of one to three dimensions.
#[derive(Debug, Clone)]
pub struct LinearImage {
    /// Where it is; a multiple of 256.
    pub base: u64,
    pub width: u32,
    pub height: u32,
    /// Slices of an image of three dimensions.
    pub depth: u32,
    /// One to three.
    pub dimensions: u8,
    /// Samples of a texel.
    pub samples: u32,
    /// Its format as Vulkan names it, such as `R8G8B8A8_UNORM`.
    pub format: String,
    pub texel_bytes: u32,
}

/// The components of a format of Vulkan, from the lowest bits up, and how its numbers are called.
fn components(format: &str) -> Option<(Vec<(char, u32)>, &str)> {
    let mut parts = format.split('_');
    let (layout, number, packed) = (parts.next()?, parts.next()?, parts.next());
    let starts = layout.char_indices().filter(|(_, letter)| letter.is_ascii_alphabetic());
    let mut all = Vec::new();
    for (at, letter) in starts {
        let bits: String = layout[at + 1..].chars().take_while(char::is_ascii_digit).collect();
        all.push((letter, bits.parse().ok()?));
    }
    if packed.is_some() {
        all.reverse();
    }
    Some((all, number))
}

/// A format as descriptors have it.
struct HardwareFormat<'f> {
    data: String,
    number: &'f str,
    /// What gives red, green, blue and alpha.
    select: u32,
}

fn hardware_format(format: &str) -> Option<HardwareFormat<'_>> {
    let (mut components, number) = components(format)?;
    // 64 bits are two components of 32.
    if let [('R', 64)] = components[..] {
        components = vec![('R', 32), ('G', 32)];
    }
    let number = if matches!(number, "SFLOAT" | "UFLOAT") { "FLOAT" } else { number };
    let bits: Vec<String> = components.iter().rev().map(|(_, bits)| bits.to_string()).collect();
    // 4 and up are the components, 0 and 1 these numbers.
    let select = |wanted: char| match (4u32..).zip(&components).find(|(_, (have, _))| *have == wanted) {
        Some((source, _)) => source,
        None => u32::from(wanted == 'A'),
    };
    let select = (0..).zip("RGBA".chars()).fold(0, |all, (at, wanted)| all | select(wanted) << (3 * at));
    Some(HardwareFormat { data: bits.join("_"), number, select })
}

/// The code of a format of images, and what gives its components. `None`: the GPU does not have the format.
pub(super) fn image_format(format: &str, generation: Gfx) -> Option<[u32; 2]> {
    let HardwareFormat { data, number, select } = hardware_format(format)?;
    let is_it = |code: &u32| formats::image(*code, generation) == Some((data.as_str(), number));
    Some([(0..1024).find(is_it)?, select])
}

/// A texel buffer of so many bytes. `None`: the GPU does not have the format.
pub fn texel_buffer(base: u64, bytes: usize, format: &str, generation: Gfx) -> Option<[u32; 4]> {
    let HardwareFormat { data, number, select } = hardware_format(format)?;
    let is_it = |code: &u32| formats::buffer(*code, generation) == Some((data.as_str(), number));
    let code = (0..256).find(is_it)?;
    let stride = TexelFormat::parse(format)?.bytes() as u32;
    let coded = match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => code << 12 | 1 << 24,
        generation if generation >= Gfx::Gfx11 => code << 12,
        _ => (code >> 4) << 12 | (code & 15) << 15,
    };
    let count = bytes as u32 / stride;
    let records = if generation == Gfx::Gfx8 { count * stride } else { count };
    Some([base as u32, (base >> 32) as u32 | stride << 16, records, select | coded])
}

impl LinearImage {
    fn pitch(&self) -> u32 {
        (self.width * self.texel_bytes).next_multiple_of(ROW)
    }

    /// Its descriptor. `None`: the GPU does not have the format.
    pub fn descriptor(&self, generation: Gfx) -> Option<[u32; 8]> {
        let [code, select] = image_format(&self.format, generation)?;
        let kind = match self.dimensions {
            1 => 8,
            3 => 10,
            _ if self.samples > 1 => 14,
            _ => 9,
        };
        let linear = if generation <= Gfx::Gfx8 { 8 } else { 0 };
        // The logarithm of the samples is the last level.
        let last = self.samples.ilog2();
        let third =
            select | last << if generation >= Gfx::Gfx12 { 15 } else { 16 } | linear << 20 | kind << 28;
        let [width, height, depth] = [self.width, self.height, self.depth].map(|size| size - 1);
        let first = (self.base >> 8) as u32;
        Some(match generation {
            generation if generation < Gfx::Gfx10 => {
                let pitch = self.pitch() / self.texel_bytes - 1;
                [first, code << 20, width | height << 14, third, depth | pitch << 13, 0, 0, 0]
            }
            Gfx::Gfx12 => {
                [first, code << 17 | (width & 3) << 30, width >> 2 | height << 14, third, depth, 0, 0, 0]
            }
            _ => [first, code << 20 | (width & 3) << 30, width >> 2 | height << 14, third, depth, 0, 0, 0],
        })
    }

    /// Bytes of its memory.
    pub fn bytes(&self) -> usize {
        (self.pitch() as usize) * (self.height * self.depth * self.samples) as usize
    }

    /// Where the texels of a script or of the interpreter are, in their order: slices, rows, texels, samples.
    fn places(&self) -> impl Iterator<Item = usize> {
        let texels = u64::from(self.width) * u64::from(self.height);
        (0..texels * u64::from(self.depth)).flat_map(move |number| {
            let (slice, rest) = (number / texels, number % texels);
            let (y, x) = (rest / u64::from(self.width), rest % u64::from(self.width));
            (0..u64::from(self.samples)).map(move |sample| {
                let row = (slice * u64::from(self.samples) + sample) * u64::from(self.height) + y;
                (row * u64::from(self.pitch()) + x * u64::from(self.texel_bytes)) as usize
            })
        })
    }

    /// Its memory, of texels that follow each other.
    pub fn with_pitch(&self, texels: &[u8]) -> Vec<u8> {
        let mut content = vec![0; self.bytes()];
        for (place, texel) in self.places().zip(texels.chunks_exact(self.texel_bytes as usize)) {
            content[place..place + texel.len()].copy_from_slice(texel);
        }
        content
    }

    /// The texels of its memory.
    pub fn without_pitch(&self, content: &[u8]) -> Vec<u8> {
        self.places().flat_map(|place| &content[place..place + self.texel_bytes as usize]).copied().collect()
    }
}
