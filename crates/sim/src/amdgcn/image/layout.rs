//! Where a texel lies: linear images of all generations, and the simple tilings.
//!
//! Never a guess: what is not known is an error that says what. Facts: AMD's address library as Mesa and ROCr have it.
//! From gfx10 on the levels of a linear image stand one after the other from the smallest to the largest, their rows
//! padded to 256 bytes, sizes rounded up; slices have all levels each. Where levels of older generations lie, and how
//! levels of tiled images share blocks, is not known here.
//!
//! Hardware has several samples in tiled images only, in orders that are not known here. So that code that uses them can run, a linear image may
//! have them: each slice is then a plane for every sample, one after the other.

use super::descriptor::{Image, ImageType, Tiling};
use unwedge_isa::amdgcn::Gfx;

/// Bytes rows of linear images are padded to.
const ROW: u64 = 256;

/// Which bit of a coordinate an address bit is: X, then Y.
#[derive(Clone, Copy)]
enum Bit {
    X(u8),
    Y(u8),
}
use Bit::{X, Y};

/// The standard order within a block of 64 KiB, from the lowest bit above the texel's own bytes: for texels of 1, 2, 4, 8
/// and 16 bytes. A smaller block has the lower bits only.
const STANDARD: [&[Bit]; 5] = [
    &[X(0), X(1), X(2), X(3), Y(0), Y(1), Y(2), Y(3), Y(4), X(4), Y(5), X(5), Y(6), X(6), Y(7), X(7)],
    &[X(0), X(1), X(2), Y(0), Y(1), Y(2), X(3), Y(3), X(4), Y(4), X(5), Y(5), X(6), Y(6), X(7)],
    &[X(0), X(1), Y(0), Y(1), Y(2), X(2), Y(3), X(3), Y(4), X(4), Y(5), X(5), Y(6), X(6)],
    &[X(0), Y(0), Y(1), X(1), X(2), Y(2), X(3), Y(3), X(4), Y(4), X(5), Y(5), X(6)],
    &[Y(0), Y(1), X(0), X(1), Y(2), X(2), Y(3), X(3), Y(4), X(4), Y(5), X(5)],
];

/// The order within tiles of 8 by 8 that are not for displays.
const THIN: [Bit; 6] = [X(0), Y(0), X(1), Y(1), X(2), Y(2)];

/// The order within tiles of 8 by 8 for displays, by the size of texels.
const DISPLAY: [[Bit; 6]; 5] = [
    [X(0), X(1), X(2), Y(1), Y(0), Y(2)],
    [X(0), X(1), X(2), Y(0), Y(1), Y(2)],
    [X(0), X(1), Y(0), X(2), Y(1), Y(2)],
    [X(0), Y(0), X(1), X(2), Y(1), Y(2)],
    [Y(0), X(0), X(1), X(2), Y(1), Y(2)],
];

fn placed(order: &[Bit], x: u64, y: u64) -> u64 {
    order.iter().enumerate().fold(0, |all, (at, bit)| {
        let value = match *bit {
            X(n) => (x >> n) & 1,
            Y(n) => (y >> n) & 1,
        };
        all | (value << at)
    })
}

fn ceiled(size: u32, level: u32) -> u64 {
    let size = u64::from(size);
    size.div_ceil(1u64 << level).max(1)
}

/// Why a texel's place is not known.
pub(super) type Unknown = &'static str;

impl Image {
    /// The address of a texel: coordinates, with the layer or depth third, the sample, and the level counted from the first there is.
    pub(super) fn address(&self, at: [u32; 3], sample: u32, level: u32, bytes: u8) -> Result<u64, Unknown> {
        let [x, y, z] = at.map(u64::from);
        if self.samples > 1 && self.tiling != Tiling::Linear {
            return Err("several samples in a tiled image");
        }
        let z = z + if self.kind == ImageType::D3 { 0 } else { u64::from(self.first_layer) };
        let z = z * u64::from(self.samples) + u64::from(sample);
        let offset = match self.tiling {
            Tiling::Linear => self.linear(x, y, z, level, bytes.into())?,
            Tiling::Thin { display } => self.thin(x, y, z, level, bytes.into(), display)?,
            Tiling::Standard(log2) => self.standard(x, y, z, level, bytes.into(), log2)?,
            Tiling::Other => return Err("the image's swizzle mode"),
        };
        Ok(self.base.wrapping_add(offset))
    }

    fn linear(&self, x: u64, y: u64, z: u64, level: u32, bytes: u64) -> Result<u64, Unknown> {
        if self.generation < Gfx::Gfx10 {
            if level != 0 || z != 0 && self.most_level != 0 {
                return Err("levels of a linear image before gfx10");
            }
            let pitch = u64::from(self.pitch.unwrap_or(self.size[0]));
            return Ok(((z * u64::from(self.size[1]) + y) * pitch + x) * bytes);
        }
        let align = (ROW / bytes).max(1);
        let pitch = |level: u32| match self.pitch.filter(|_| level == 0) {
            Some(pitch) => u64::from(pitch),
            None => ceiled(self.size[0], level).next_multiple_of(align),
        };
        let rows = |level: u32| pitch(level) * ceiled(self.size[1], level);
        let most = self.most_level.max(level).min(16);
        let slice: u64 = (0..=most).map(rows).sum();
        let before: u64 = (level + 1..=most).map(rows).sum();
        Ok((z * slice + before + y * pitch(level) + x) * bytes)
    }

    fn thin(&self, x: u64, y: u64, z: u64, level: u32, bytes: u64, display: bool) -> Result<u64, Unknown> {
        if level != 0 || z != 0 && self.most_level != 0 {
            return Err("levels of a tiled image");
        }
        let order = match display {
            true => DISPLAY.get(bytes.trailing_zeros() as usize).ok_or("the size of the image's texels")?,
            false => &THIN,
        };
        let pitch = u64::from(self.pitch.unwrap_or(self.size[0])).next_multiple_of(8);
        let slice = pitch * u64::from(self.size[1]).next_multiple_of(8);
        let tile = (y / 8) * (pitch / 8) + x / 8;
        Ok((z * slice + tile * 64 + placed(order, x, y)) * bytes)
    }

    fn standard(&self, x: u64, y: u64, z: u64, level: u32, bytes: u64, log2: u32) -> Result<u64, Unknown> {
        if self.most_level != 0 || level != 0 {
            return Err("levels of a tiled image");
        }
        if !matches!(self.kind, ImageType::D2 | ImageType::D2Array | ImageType::Cube) {
            return Err("a tiled image of this kind");
        }
        let texel = bytes.trailing_zeros();
        let order = STANDARD.get(texel as usize).filter(|_| bytes.is_power_of_two());
        let order = order.ok_or("the size of the image's texels")?;
        let order = order.get(..(log2 - texel) as usize).ok_or("the size of the image's texels")?;
        let columns = order.iter().filter(|bit| matches!(bit, X(_))).count() as u32;
        let rows = order.len() as u32 - columns;
        let across = u64::from(self.size[0]).div_ceil(1 << columns);
        let down = u64::from(self.size[1]).div_ceil(1 << rows);
        let block = (z * down + (y >> rows)) * across + (x >> columns);
        Ok((block << log2) + placed(order, x, y) * bytes)
    }
}
