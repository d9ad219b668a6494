//! Sampler descriptors, and what they make of coordinates: levels, texels and weights.
//!
//! Coordinates are rounded to 8 bits below a texel, weights of filters and between levels have 8 bits, as hardware has
//! them. Never: memory. Facts: Mesa's and ROCr's register descriptions, AMD's ISA manuals.

use unwedge_isa::amdgcn::{Gen, Gpu};

/// A sampler.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampler {
    wrap: [u8; 3],
    compare: u8,
    pub(super) unnormalized: bool,
    /// Points are chosen without rounding the coordinate first.
    truncate: bool,
    /// Each face of a cube for itself.
    pub(super) no_cube_wrap: bool,
    /// How taps are combined: 0 by weights, 1 the least, 2 the greatest.
    pub(super) combine: u8,
    pub(super) min_lod: f32,
    pub(super) max_lod: f32,
    pub(super) bias: f32,
    magnify: u8,
    minify: u8,
    depth: u8,
    pub(super) mip: u8,
    /// 0 transparent black, 1 opaque black, 2 opaque white, 3 a table's.
    pub(super) border: u8,
    pub(super) anisotropy: u8,
}

/// A texel on an axis, and its weight in 256ths.
pub(super) type Tap = (i64, u32);

impl Sampler {
    /// Reads four dwords.
    pub(super) fn new(w: [u32; 4], gpu: &Gpu) -> Sampler {
        let field = |word: usize, lsb: u32, width: u32| w[word] >> lsb & (u32::MAX >> (32 - width));
        let byte = |word: usize, lsb: u32, width: u32| field(word, lsb, width) as u8;
        let lod_bits = if gpu.generation() >= Gen::Gfx12 { 13 } else { 12 };
        let bias = (field(2, 0, 14) << 18) as i32 >> 18;
        Sampler {
            wrap: [byte(0, 0, 3), byte(0, 3, 3), byte(0, 6, 3)],
            anisotropy: byte(0, 9, 3),
            compare: byte(0, 12, 3),
            unnormalized: field(0, 15, 1) != 0,
            truncate: field(0, 27, 1) != 0,
            no_cube_wrap: field(0, 28, 1) != 0,
            combine: byte(0, 29, 2),
            min_lod: field(1, 0, lod_bits) as f32 / 256.0,
            max_lod: field(1, lod_bits, lod_bits) as f32 / 256.0,
            bias: bias as f32 / 256.0,
            magnify: byte(2, 20, 2),
            minify: byte(2, 22, 2),
            depth: byte(2, 24, 2),
            mip: byte(2, 26, 2),
            border: byte(3, 30, 2),
        }
    }

    /// Whether any axis may meet the border.
    pub(super) fn has_border(&self) -> bool {
        self.wrap.iter().any(|wrap| *wrap >= 4)
    }

    /// Whether an axis is filtered at a level of detail.
    pub(super) fn is_linear(&self, axis: usize, lod: f32) -> bool {
        let plane = (if lod <= 0.0 { self.magnify } else { self.minify }) & 1 != 0;
        match (axis, self.depth) {
            (2, 1) => false,
            (2, 2) => true,
            _ => plane,
        }
    }

    /// Whether more taps than those of two texels an axis are asked for.
    pub(super) fn is_anisotropic(&self, lod: f32) -> bool {
        self.anisotropy != 0 && (if lod <= 0.0 { self.magnify } else { self.minify }) & 2 != 0
    }

    /// The two taps on an axis for a coordinate in texels.
    pub(super) fn taps(&self, axis: usize, texels: f64, size: u32, linear: bool) -> [Tap; 2] {
        let texels = match self.wrap[axis] {
            // Never farther out than half of a border's texel.
            4 => texels.clamp(0.0, size.into()),
            5 => texels.clamp(-f64::from(size), size.into()),
            _ => texels,
        };
        if !linear {
            let at = if self.truncate { texels } else { (texels * 256.0).round_ties_even() / 256.0 };
            let at = at.floor() as i64;
            return [(at, 256), (at, 0)];
        }
        // What is too great for any image is cut, and NaN is zero.
        let fixed = ((texels - 0.5) * 256.0).round_ties_even() as i64;
        let weight = (fixed & 255) as u32;
        [(fixed >> 8, 256 - weight), ((fixed >> 8).saturating_add(1), weight)]
    }

    /// The texel that stands for one on an axis; `None`: the border.
    pub(super) fn wrapped(&self, axis: usize, at: i64, size: u32, linear: bool) -> Option<u32> {
        let size = i64::from(size);
        let mirrored_once = if at < 0 { -1 - at } else { at };
        let inside = |at: i64| (0..size).contains(&at).then_some(at);
        let found = match self.wrap[axis] {
            0 => Some(at.rem_euclid(size)),
            1 => {
                let at = at.rem_euclid(2 * size);
                Some(if at < size { at } else { 2 * size - 1 - at })
            }
            2 => Some(at.clamp(0, size - 1)),
            3 => Some(mirrored_once.clamp(0, size - 1)),
            4 if linear => inside(at),
            4 => Some(at.clamp(0, size - 1)),
            5 if linear => inside(mirrored_once),
            5 => Some(mirrored_once.clamp(0, size - 1)),
            6 => inside(at),
            _ => inside(mirrored_once),
        };
        found.map(|at| at as u32)
    }

    /// The level of detail after bias and limits; `least` is asked for by the image and by the instruction.
    pub(super) fn limited(&self, lod: f32, least: f32) -> f32 {
        let lod = if lod.is_nan() { 0.0 } else { lod };
        lod.max(self.min_lod.max(least)).min(self.max_lod)
    }

    /// Levels for a level of detail relative to the first that may be used, with the weight of the second in 256ths.
    pub(super) fn levels(&self, lod: f32, last: u32) -> (u32, u32, u32) {
        let lod = lod.clamp(0.0, last as f32);
        match self.mip {
            0 => (0, 0, 0),
            2 => {
                let fixed = (lod * 256.0) as u32;
                (fixed >> 8, ((fixed >> 8) + 1).min(last), fixed & 255)
            }
            _ => {
                let level = ((lod + 0.5) as u32).min(last);
                (level, level, 0)
            }
        }
    }

    /// Whether a reference passes the comparison with a texel.
    pub(super) fn passes(&self, reference: f32, texel: f32) -> bool {
        match self.compare {
            0 => false,
            1 => reference < texel,
            2 => reference == texel,
            3 => reference <= texel,
            4 => reference > texel,
            5 => reference != texel,
            6 => reference >= texel,
            _ => true,
        }
    }
}

/// The face of a cube and the texel on it that a texel beyond the edge of a face is; `None`: beyond a corner.
///
/// Faces in the order +X, -X, +Y, -Y, +Z, -Z, with the axes that `v_cubesc` and `v_cubetc` give them.
pub(super) fn across_edge(face: u32, at: [i64; 2], size: u32) -> Option<(u32, [u32; 2])> {
    let size = i64::from(size);
    let out = at.map(|c| !(0..size).contains(&c));
    if out == [false, false] {
        return Some((face, at.map(|c| c as u32)));
    }
    if out == [true, true] {
        return None;
    }
    // In units of half a texel from the face's centre, one texel beyond the edge at most.
    let [s, t] = at.map(|c| 2 * c.clamp(-1, size) + 1 - size);
    let edge = size;
    let [x, y, z] = match face {
        0 => [edge, -t, -s],
        1 => [-edge, -t, s],
        2 => [s, edge, t],
        3 => [s, -edge, -t],
        4 => [s, -t, edge],
        _ => [-s, -t, -edge],
    };
    // The coordinate that was beyond the edge names the face, and is at its edge now.
    let (face, s, t) = match (x.abs() > edge, y.abs() > edge) {
        (true, _) => (u32::from(x < 0), if x < 0 { z } else { -z }, -y),
        (_, true) => (2 + u32::from(y < 0), x, if y < 0 { -z } else { z }),
        _ => (4 + u32::from(z < 0), if z < 0 { -x } else { x }, -y),
    };
    let texel = |c: i64| ((c + size).div_euclid(2)).clamp(0, size - 1) as u32;
    Some((face, [texel(s), texel(t)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(wrap: u32, linear: bool) -> Sampler {
        let filter = if linear { 5 << 20 } else { 0 };
        Sampler::new([wrap, 0xfff << 12, filter, 0], &Gpu::new("gfx1030").expect("known"))
    }

    #[test]
    fn wraps() {
        let at = |wrap: u32, linear: bool| {
            let sampler = sampler(wrap, linear);
            [-5, -2, -1, 0, 3, 4, 5, 9].map(|at| sampler.wrapped(0, at, 4, linear).map_or(-1, i64::from))
        };
        assert_eq!(at(0, false), [3, 2, 3, 0, 3, 0, 1, 1]);
        assert_eq!(at(1, false), [3, 1, 0, 0, 3, 3, 2, 1]);
        assert_eq!(at(2, false), [0, 0, 0, 0, 3, 3, 3, 3]);
        assert_eq!(at(3, false), [3, 1, 0, 0, 3, 3, 3, 3]);
        assert_eq!(at(4, false), [0, 0, 0, 0, 3, 3, 3, 3]);
        assert_eq!(at(4, true), [-1, -1, -1, 0, 3, -1, -1, -1]);
        assert_eq!(at(6, true), [-1, -1, -1, 0, 3, -1, -1, -1]);
        assert_eq!(at(7, true), [-1, 1, 0, 0, 3, -1, -1, -1]);
    }

    #[test]
    fn taps() {
        let linear = sampler(2, true);
        // In the middle of a texel it has all the weight, between two each half.
        assert_eq!(linear.taps(0, 1.5, 4, true), [(1, 256), (2, 0)]);
        assert_eq!(linear.taps(0, 2.0, 4, true), [(1, 128), (2, 128)]);
        assert_eq!(linear.taps(0, 0.25, 4, true), [(-1, 64), (0, 192)]);
        // Weights have 8 bits.
        assert_eq!(linear.taps(0, 1.501, 4, true), [(1, 256), (2, 0)]);
        let point = sampler(2, false);
        assert_eq!(point.taps(0, 1.99, 4, false)[0], (1, 256));
        assert_eq!(point.taps(0, 1.999, 4, false)[0], (2, 256));
        let exact = sampler(2 | 1 << 27, false);
        assert_eq!(exact.taps(0, 1.999, 4, false)[0], (1, 256));
        assert_eq!(linear.taps(0, f64::NAN, 4, true)[0].0, 0);
    }

    #[test]
    fn levels_of_detail() {
        let mut sampler = sampler(0, true);
        assert_eq!(sampler.levels(1.7, 3), (0, 0, 0));
        sampler.mip = 1;
        assert_eq!([0.4, 0.5, 1.7, 9.0].map(|lod| sampler.levels(lod, 3).0), [0, 1, 2, 3]);
        sampler.mip = 2;
        assert_eq!(sampler.levels(1.75, 3), (1, 2, 192));
        assert_eq!(sampler.levels(9.0, 3), (3, 3, 0));
        sampler.min_lod = 1.0;
        assert_eq!(
            [-1.0, 2.0, 20.0, f32::NAN].map(|lod| sampler.limited(lod, 0.0)),
            [1.0, 2.0, 4095.0 / 256.0, 1.0]
        );
    }

    #[test]
    fn comparisons() {
        let pass = |code: u32| {
            let sampler = sampler(code << 12, false);
            [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)].map(|(reference, texel)| sampler.passes(reference, texel))
        };
        assert_eq!(pass(0), [false; 3]);
        assert_eq!(pass(1), [true, false, false]);
        assert_eq!(pass(2), [false, true, false]);
        assert_eq!(pass(3), [true, true, false]);
        assert_eq!(pass(4), [false, false, true]);
        assert_eq!(pass(5), [true, false, true]);
        assert_eq!(pass(6), [false, true, true]);
        assert_eq!(pass(7), [true; 3]);
    }

    /// Going over an edge and back comes to the texel one started at.
    #[test]
    fn edges_of_a_cube_meet() {
        const SIZE: u32 = 4;
        for face in 0..6 {
            for n in 0..i64::from(SIZE) {
                for (at, inner) in [([-1, n], [0, n]), ([4, n], [3, n]), ([n, -1], [n, 0]), ([n, 4], [n, 3])]
                {
                    let (other, [x, y]) = across_edge(face, at, SIZE).expect("no corner");
                    assert_ne!(other, face);
                    assert_ne!(other ^ 1, face, "opposite");
                    // One of the four neighbours beyond that texel is where it came from.
                    let (x, y) = (i64::from(x), i64::from(y));
                    let back = [[x - 1, y], [x + 1, y], [x, y - 1], [x, y + 1]]
                        .into_iter()
                        .any(|at| across_edge(other, at, SIZE) == Some((face, inner.map(|c| c as u32))));
                    assert!(back, "{face} {at:?} -> {other} {x} {y}");
                }
            }
            assert_eq!(across_edge(face, [-1, 4], SIZE), None);
        }
        // The right edge of +Z is the left edge of +X.
        assert_eq!(across_edge(4, [4, 1], SIZE), Some((0, [0, 1])));
    }
}
