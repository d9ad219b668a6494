//! What a sampler makes of coordinates: levels, texels and weights.
//!
//! Coordinates are rounded to 8 bits below a texel, weights of filters and between levels have 8 bits, as hardware has
//! them. Never: memory, a descriptor's bits.

/// Which texel stands for one outside the image. "Once" mirrors at zero only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrapMode {
    Repeat,
    Mirror,
    ClampToEdge,
    MirrorOnceToEdge,
    /// At most half a texel of border.
    ClampHalfBorder,
    MirrorOnceHalfBorder,
    ClampToBorder,
    MirrorOnceToBorder,
}

/// How a reference is compared with a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareFunc {
    Never,
    Less,
    Equal,
    LessEqual,
    Greater,
    NotEqual,
    GreaterEqual,
    Always,
}

/// How texels of a level are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TexelFilter {
    pub(crate) linear: bool,
    pub(crate) anisotropic: bool,
}

/// How levels are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MipFilter {
    /// The first level only.
    None,
    Nearest,
    Linear,
}

/// A sampler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampler {
    pub(crate) wrap: [WrapMode; 3],
    pub(crate) compare: CompareFunc,
    pub(crate) unnormalized: bool,
    /// Points are chosen without rounding the coordinate first.
    pub(crate) truncate: bool,
    /// Each face of a cube for itself.
    pub(crate) no_cube_wrap: bool,
    /// How taps are combined: 0 by weights, 1 the least, 2 the greatest.
    pub(crate) combine: u8,
    pub(crate) min_lod: f32,
    pub(crate) max_lod: f32,
    pub(crate) bias: f32,
    pub(crate) magnify: TexelFilter,
    pub(crate) minify: TexelFilter,
    /// Whether the third axis is filtered, if that differs from the other two.
    pub(crate) depth: Option<bool>,
    pub(crate) mip: MipFilter,
    /// 0 transparent black, 1 opaque black, 2 opaque white, 3 a table's.
    pub(crate) border: u8,
    pub(crate) anisotropy: u8,
}

/// A texel on an axis, and its weight in 256ths.
pub(crate) type Tap = (i64, u32);

impl Sampler {
    /// Whether any axis may meet the border.
    pub(crate) fn has_border(&self) -> bool {
        self.wrap.iter().any(|wrap| {
            !matches!(
                wrap,
                WrapMode::Repeat | WrapMode::Mirror | WrapMode::ClampToEdge | WrapMode::MirrorOnceToEdge
            )
        })
    }

    fn filter(&self, lod: f32) -> TexelFilter {
        if lod <= 0.0 { self.magnify } else { self.minify }
    }

    /// Whether an axis is filtered at a level of detail.
    pub(crate) fn is_linear(&self, axis: usize, lod: f32) -> bool {
        let plane = self.filter(lod).linear;
        match (axis, self.depth) {
            (2, Some(depth)) => depth,
            _ => plane,
        }
    }

    /// Whether more taps than those of two texels an axis are asked for.
    pub(crate) fn is_anisotropic(&self, lod: f32) -> bool {
        self.anisotropy != 0 && self.filter(lod).anisotropic
    }

    /// The two taps on an axis for a coordinate in texels.
    pub(crate) fn taps(&self, axis: usize, texels: f64, size: u32, linear: bool) -> [Tap; 2] {
        let texels = match self.wrap[axis] {
            // Never farther out than half of a border's texel.
            WrapMode::ClampHalfBorder => texels.clamp(0.0, size.into()),
            WrapMode::MirrorOnceHalfBorder => texels.clamp(-f64::from(size), size.into()),
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
    pub(crate) fn wrapped(&self, axis: usize, at: i64, size: u32, linear: bool) -> Option<u32> {
        let size = i64::from(size);
        let mirrored_once = if at < 0 { -1 - at } else { at };
        let inside = |at: i64| (0..size).contains(&at).then_some(at);
        let found = match self.wrap[axis] {
            WrapMode::Repeat => Some(at.rem_euclid(size)),
            WrapMode::Mirror => {
                let at = at.rem_euclid(2 * size);
                Some(if at < size { at } else { 2 * size - 1 - at })
            }
            WrapMode::ClampToEdge => Some(at.clamp(0, size - 1)),
            WrapMode::MirrorOnceToEdge => Some(mirrored_once.clamp(0, size - 1)),
            WrapMode::ClampHalfBorder if linear => inside(at),
            WrapMode::ClampHalfBorder => Some(at.clamp(0, size - 1)),
            WrapMode::MirrorOnceHalfBorder if linear => inside(mirrored_once),
            WrapMode::MirrorOnceHalfBorder => Some(mirrored_once.clamp(0, size - 1)),
            WrapMode::ClampToBorder => inside(at),
            WrapMode::MirrorOnceToBorder => inside(mirrored_once),
        };
        found.map(|at| at as u32)
    }

    /// The level of detail after bias and limits; `least` is asked for by the image and by the instruction.
    pub(crate) fn limited(&self, lod: f32, least: f32) -> f32 {
        let lod = if lod.is_nan() { 0.0 } else { lod };
        lod.max(self.min_lod.max(least)).min(self.max_lod)
    }

    /// Levels for a level of detail relative to the first that may be used, with the weight of the second in 256ths.
    pub(crate) fn levels(&self, lod: f32, last: u32) -> (u32, u32, u32) {
        let lod = lod.clamp(0.0, last as f32);
        match self.mip {
            MipFilter::None => (0, 0, 0),
            MipFilter::Linear => {
                let fixed = (lod * 256.0) as u32;
                (fixed >> 8, ((fixed >> 8) + 1).min(last), fixed & 255)
            }
            MipFilter::Nearest => {
                let level = ((lod + 0.5) as u32).min(last);
                (level, level, 0)
            }
        }
    }

    /// Whether a reference passes the comparison with a texel.
    pub(crate) fn passes(&self, reference: f32, texel: f32) -> bool {
        match self.compare {
            CompareFunc::Never => false,
            CompareFunc::Less => reference < texel,
            CompareFunc::Equal => reference == texel,
            CompareFunc::LessEqual => reference <= texel,
            CompareFunc::Greater => reference > texel,
            CompareFunc::NotEqual => reference != texel,
            CompareFunc::GreaterEqual => reference >= texel,
            CompareFunc::Always => true,
        }
    }
}

/// The face of a cube and the texel on it that a texel beyond the edge of a face is; `None`: beyond a corner.
///
/// Faces in the order +X, -X, +Y, -Y, +Z, -Z, with the axes that `v_cubesc` and `v_cubetc` give them.
pub(crate) fn across_edge(face: u32, at: [i64; 2], size: u32) -> Option<(u32, [u32; 2])> {
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

    fn sampler(wrap: WrapMode, linear: bool) -> Sampler {
        let filter = TexelFilter { linear, anisotropic: false };
        Sampler {
            wrap: [wrap, WrapMode::Repeat, WrapMode::Repeat],
            compare: CompareFunc::Never,
            unnormalized: false,
            truncate: false,
            no_cube_wrap: false,
            combine: 0,
            min_lod: 0.0,
            max_lod: 4095.0 / 256.0,
            bias: 0.0,
            magnify: filter,
            minify: filter,
            depth: None,
            mip: MipFilter::None,
            border: 0,
            anisotropy: 0,
        }
    }

    #[test]
    fn wraps() {
        let at = |wrap: WrapMode, linear: bool| {
            let sampler = sampler(wrap, linear);
            [-5, -2, -1, 0, 3, 4, 5, 9].map(|at| sampler.wrapped(0, at, 4, linear).map_or(-1, i64::from))
        };
        assert_eq!(at(WrapMode::Repeat, false), [3, 2, 3, 0, 3, 0, 1, 1]);
        assert_eq!(at(WrapMode::Mirror, false), [3, 1, 0, 0, 3, 3, 2, 1]);
        assert_eq!(at(WrapMode::ClampToEdge, false), [0, 0, 0, 0, 3, 3, 3, 3]);
        assert_eq!(at(WrapMode::MirrorOnceToEdge, false), [3, 1, 0, 0, 3, 3, 3, 3]);
        assert_eq!(at(WrapMode::ClampHalfBorder, false), [0, 0, 0, 0, 3, 3, 3, 3]);
        assert_eq!(at(WrapMode::ClampHalfBorder, true), [-1, -1, -1, 0, 3, -1, -1, -1]);
        assert_eq!(at(WrapMode::ClampToBorder, true), [-1, -1, -1, 0, 3, -1, -1, -1]);
        assert_eq!(at(WrapMode::MirrorOnceToBorder, true), [-1, 1, 0, 0, 3, -1, -1, -1]);
    }

    #[test]
    fn taps() {
        let linear = sampler(WrapMode::ClampToEdge, true);
        // In the middle of a texel it has all the weight, between two each half.
        assert_eq!(linear.taps(0, 1.5, 4, true), [(1, 256), (2, 0)]);
        assert_eq!(linear.taps(0, 2.0, 4, true), [(1, 128), (2, 128)]);
        assert_eq!(linear.taps(0, 0.25, 4, true), [(-1, 64), (0, 192)]);
        // Weights have 8 bits.
        assert_eq!(linear.taps(0, 1.501, 4, true), [(1, 256), (2, 0)]);
        let point = sampler(WrapMode::ClampToEdge, false);
        assert_eq!(point.taps(0, 1.99, 4, false)[0], (1, 256));
        assert_eq!(point.taps(0, 1.999, 4, false)[0], (2, 256));
        let exact = Sampler { truncate: true, ..point };
        assert_eq!(exact.taps(0, 1.999, 4, false)[0], (1, 256));
        assert_eq!(linear.taps(0, f64::NAN, 4, true)[0].0, 0);
    }

    #[test]
    fn levels_of_detail() {
        let mut sampler = sampler(WrapMode::Repeat, true);
        assert_eq!(sampler.levels(1.7, 3), (0, 0, 0));
        sampler.mip = MipFilter::Nearest;
        assert_eq!([0.4, 0.5, 1.7, 9.0].map(|lod| sampler.levels(lod, 3).0), [0, 1, 2, 3]);
        sampler.mip = MipFilter::Linear;
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
        let pass = |compare: CompareFunc| {
            let sampler = Sampler { compare, ..sampler(WrapMode::Repeat, false) };
            [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)].map(|(reference, texel)| sampler.passes(reference, texel))
        };
        assert_eq!(pass(CompareFunc::Never), [false; 3]);
        assert_eq!(pass(CompareFunc::Less), [true, false, false]);
        assert_eq!(pass(CompareFunc::Equal), [false, true, false]);
        assert_eq!(pass(CompareFunc::LessEqual), [true, true, false]);
        assert_eq!(pass(CompareFunc::Greater), [false, false, true]);
        assert_eq!(pass(CompareFunc::NotEqual), [true, false, true]);
        assert_eq!(pass(CompareFunc::GreaterEqual), [false, true, true]);
        assert_eq!(pass(CompareFunc::Always), [true; 3]);
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
