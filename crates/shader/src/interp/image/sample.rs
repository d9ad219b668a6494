//! What sampling an image gives: level of detail, texels and their weights, over [`Images`].
//!
//! Weights and coordinates are floats of 64 bits, and the result is rounded once; machines have fewer bits. Derivatives are those
//! between neighbours of the quad. Filtering is isotropic. Facts: the chapter "Image Operations" of the Vulkan specification.

use super::format::TexelClass;
use super::{ImageCoordinates, Images, TexelRead};
use crate::interp::memory::BindingPoint;
use crate::ir::{Dim, ImageAccess, ImageFlags};

/// What happens past the edge of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wrap {
    /// The image repeats.
    Repeat,
    /// The image repeats, every other time mirrored.
    MirroredRepeat,
    /// The texel at the edge.
    #[default]
    ClampToEdge,
    /// The border colour.
    ClampToBorder,
    /// Mirrored once, then the texel at the edge.
    MirrorClampToEdge,
}

/// How a reference is compared with a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DepthCompare {
    /// Never true.
    Never,
    /// The reference is less.
    Less,
    /// They are equal.
    Equal,
    /// The reference is less or equal.
    LessEqual,
    /// The reference is greater.
    Greater,
    /// They differ.
    NotEqual,
    /// The reference is greater or equal.
    GreaterEqual,
    /// Always true.
    Always,
}

impl DepthCompare {
    fn holds(self, reference: f32, texel: f32) -> bool {
        match self {
            DepthCompare::Never => false,
            DepthCompare::Less => reference < texel,
            DepthCompare::Equal => reference == texel,
            DepthCompare::LessEqual => reference <= texel,
            DepthCompare::Greater => reference > texel,
            DepthCompare::NotEqual => reference != texel,
            DepthCompare::GreaterEqual => reference >= texel,
            DepthCompare::Always => true,
        }
    }
}

/// How the texels of a filter are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// Their weighted average.
    #[default]
    Average,
    /// The minimum of each component.
    Min,
    /// The maximum of each component.
    Max,
}

/// A sampler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Whether magnification is linear.
    pub mag_linear: bool,
    /// Whether minification is linear.
    pub min_linear: bool,
    /// Whether two levels are averaged.
    pub mip_linear: bool,
    /// What happens past the edge, for each coordinate.
    pub wrap: [Wrap; 3],
    /// Added to the level of detail.
    pub bias: f32,
    /// The least level of detail.
    pub min_lod: f32,
    /// The greatest level of detail.
    pub max_lod: f32,
    /// How references are compared.
    pub compare: Option<DepthCompare>,
    /// The border colour, as a shader sees it.
    pub border: [u64; 4],
    /// Whether coordinates count texels.
    pub unnormalized: bool,
    /// How the texels of a filter are combined.
    pub reduction: Reduction,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler {
            mag_linear: false,
            min_linear: false,
            mip_linear: false,
            wrap: [Wrap::default(); 3],
            bias: 0.0,
            min_lod: 0.0,
            max_lod: 1000.0,
            compare: None,
            border: [0; 4],
            unnormalized: false,
            reduction: Reduction::Average,
        }
    }
}

/// The level of detail as an instruction gives it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detail {
    /// The level.
    Level(f64),
    /// Derivatives of the coordinates in x and in y, and a bias. They are undefined if a neighbour is not active.
    Gradient(Option<[[f64; 3]; 2]>, f64),
}

/// A sampling operation of one invocation.
#[derive(Debug)]
pub(super) struct Sample<'a> {
    pub image: BindingPoint,
    pub access: &'a ImageAccess,
    pub sampler: Sampler,
    pub coordinates: [f64; 3],
    /// The layer; the cube in an array of cubes.
    pub layer: f64,
    pub offset: [i64; 3],
    pub reference: Option<f32>,
    pub detail: Detail,
    pub min_lod: Option<f64>,
}

/// A texel of a filter; `None` is the border.
#[derive(Debug, Clone, Copy)]
struct Tap {
    at: Option<ImageCoordinates>,
    weight: f64,
}

/// Coordinates in the face of a cube.
struct FaceCoordinates {
    face: u8,
    /// From 0 to 1.
    s: f64,
    t: f64,
}

/// Signed axes of a face: those of s, of t, and the major one.
const FACES: [[(usize, f64); 3]; 6] = [
    [(2, -1.0), (1, -1.0), (0, 1.0)],
    [(2, 1.0), (1, -1.0), (0, -1.0)],
    [(0, 1.0), (2, 1.0), (1, 1.0)],
    [(0, 1.0), (2, -1.0), (1, -1.0)],
    [(0, 1.0), (1, -1.0), (2, 1.0)],
    [(0, -1.0), (1, -1.0), (2, -1.0)],
];

fn face_of(direction: [f64; 3]) -> FaceCoordinates {
    let [x, y, z] = direction.map(f64::abs);
    // The last of the greatest axes wins.
    let axis = if z >= x && z >= y {
        2
    } else if y >= x {
        1
    } else {
        0
    };
    let face = axis * 2 + usize::from(direction[axis] < 0.0);
    let [s, t, major] = FACES[face].map(|(axis, sign)| direction[axis] * sign);
    let place = |coordinate: f64| if major > 0.0 { (coordinate / major + 1.0) / 2.0 } else { 0.5 };
    FaceCoordinates { face: face as u8, s: place(s), t: place(t) }
}

/// A derivative of a direction, on the face that the direction is on.
fn face_derivative(direction: [f64; 3], derivative: [f64; 3]) -> [f64; 3] {
    let axes = FACES[usize::from(face_of(direction).face)];
    let [s, t, major] = axes.map(|(axis, sign)| direction[axis] * sign);
    let [ds, dt, dm] = axes.map(|(axis, sign)| derivative[axis] * sign);
    let quotient =
        |a: f64, da: f64| if major > 0.0 { (major * da - a * dm) / (2.0 * major * major) } else { 0.0 };
    [quotient(s, ds), quotient(t, dt), 0.0]
}

/// Keeps texel coordinates far from the ends of 64 bits. A NaN becomes 0.
fn texel_number(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(-1e12, 1e12) }
}

fn mirror(at: i64) -> i64 {
    if at >= 0 { at } else { -1 - at }
}

/// The texel of an axis; `None` is the border.
fn wrapped(wrap: Wrap, at: i64, size: i64) -> Option<i64> {
    match wrap {
        Wrap::Repeat => Some(at.rem_euclid(size)),
        Wrap::MirroredRepeat => Some(size - 1 - mirror(at.rem_euclid(2 * size) - size)),
        Wrap::ClampToEdge => Some(at.clamp(0, size - 1)),
        Wrap::ClampToBorder => (0..size).contains(&at).then_some(at),
        Wrap::MirrorClampToEdge => Some(mirror(at).clamp(0, size - 1)),
    }
}

/// What a filter takes of one level.
#[derive(Clone, Copy)]
struct LevelFilter {
    level: u32,
    linear: bool,
    weight: f64,
    /// Four texels are gathered, so none of them may be an average.
    gathers: bool,
}

/// Levels, as a filter takes them.
struct Levels {
    linear: bool,
    /// A level and its weight.
    parts: [(u32, f64); 2],
}

impl Sample<'_> {
    fn dimensions(&self) -> usize {
        match self.access.dim {
            Dim::D1 | Dim::Buffer => 1,
            Dim::D2 | Dim::Subpass | Dim::Cube => 2,
            Dim::D3 => 3,
        }
    }

    fn size(&self, images: &mut dyn Images, level: u32) -> Option<[u32; 4]> {
        let size = images.size(self.image, self.access, level)?;
        size[..self.dimensions()].iter().all(|size| *size > 0).then_some(size)
    }

    /// The level of detail before it is clamped; `None` if it is undefined.
    fn computed_lod(&self, images: &mut dyn Images) -> Option<f64> {
        let (derivatives, bias) = match self.detail {
            Detail::Level(level) => return Some(level + f64::from(self.sampler.bias)),
            Detail::Gradient(derivatives, bias) => (derivatives?, bias),
        };
        let size = self.size(images, 0)?;
        let lengths = derivatives.map(|derivative| {
            let derivative = match self.access.dim {
                Dim::Cube => face_derivative(self.coordinates, derivative),
                _ => derivative,
            };
            let axes = derivative.iter().zip(size).take(self.dimensions());
            axes.map(|(derivative, size)| (derivative * f64::from(size)).powi(2)).sum::<f64>().sqrt()
        });
        Some(lengths[0].max(lengths[1]).log2() + bias + f64::from(self.sampler.bias))
    }

    fn clamped_lod(&self, lod: f64) -> f64 {
        let least = self.min_lod.unwrap_or(f64::NEG_INFINITY).max(self.sampler.min_lod.into());
        let lod = if lod.is_nan() { 0.0 } else { lod };
        lod.max(least).min(self.sampler.max_lod.into())
    }

    /// The level within the image: a whole one, or one between two.
    fn level(&self, lod: f64, count: u32) -> f64 {
        let level = lod.clamp(0.0, f64::from(count.saturating_sub(1)));
        if self.sampler.mip_linear { level } else { (level + 0.5).ceil() - 1.0 }
    }

    fn levels(&self, images: &mut dyn Images) -> Option<Levels> {
        let sampler = &self.sampler;
        let count = images.levels(self.image)?;
        let one_filter = sampler.mag_linear == sampler.min_linear;
        let lod = match self.computed_lod(images) {
            _ if sampler.unnormalized => 0.0,
            Some(lod) => self.clamped_lod(lod),
            // The level of detail does not matter.
            None if count == 1 && one_filter => 0.0,
            None => return None,
        };
        let linear = if lod <= 0.0 { sampler.mag_linear } else { sampler.min_linear };
        let level = self.level(lod, count);
        let (high, part) = (level.floor(), level.fract());
        Some(Levels { linear, parts: [(high as u32, 1.0 - part), (high as u32 + 1, part)] })
    }

    /// Layer of an array; the cube in an array of cubes.
    fn layer(&self, images: &mut dyn Images) -> Option<i64> {
        if !self.access.flags.has(ImageFlags::ARRAY) {
            return Some(0);
        }
        let size = self.size(images, 0)?;
        let last = i64::from(size[self.dimensions()]).checked_sub(1).filter(|last| *last >= 0)?;
        Some((texel_number(self.layer).round_ties_even() as i64).clamp(0, last))
    }

    fn coordinates_of(&self, texel: [i64; 3], face: Option<u8>, layer: i64, level: u32) -> ImageCoordinates {
        let texel = match (self.access.dim, face) {
            (Dim::Cube, Some(face)) => [texel[0], texel[1], face.into(), layer],
            (Dim::D3, _) => [texel[0], texel[1], texel[2], 0],
            (Dim::D1 | Dim::Buffer, _) => [texel[0], layer, 0, 0],
            _ => [texel[0], texel[1], layer, 0],
        };
        ImageCoordinates { texel, level, sample: 0 }
    }

    /// The texels of a level that a filter takes. Gathers take them in this order: the lower left, the lower right, the upper right,
    /// the upper left one, where down is the direction of greater coordinates.
    fn taps(&self, images: &mut dyn Images, filter: LevelFilter, taps: &mut Vec<Tap>) -> Option<()> {
        let LevelFilter { level, linear, .. } = filter;
        let size = self.size(images, level)?.map(i64::from);
        let layer = self.layer(images)?;
        let count = self.dimensions();
        let (face, places) = match self.access.dim {
            Dim::Cube => {
                let place = face_of(self.coordinates);
                (Some(place.face), [place.s, place.t, 0.0])
            }
            _ => (None, self.coordinates),
        };
        // The first texel of each axis, and the weight of the second one.
        let mut axes = [(0i64, 0.0); 3];
        for (axis, (first, part)) in axes.iter_mut().enumerate().take(count) {
            let scale = if self.sampler.unnormalized { 1.0 } else { size[axis] as f64 };
            let at = texel_number(places[axis] * scale) - if linear { 0.5 } else { 0.0 };
            *first = at.floor() as i64 + if face.is_none() { self.offset[axis] } else { 0 };
            *part = if linear { at - at.floor() } else { 0.0 };
        }
        const ORDER: [[i64; 3]; 8] =
            [[0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 1]];
        for corner in ORDER {
            let exists = |axis: usize| corner[axis] == 0 || linear && axis < count;
            if !(0..3).all(exists) {
                continue;
            }
            let mut part = filter.weight;
            let mut texel = [0; 3];
            for axis in 0..count {
                let (first, second) = axes[axis];
                texel[axis] = first + corner[axis];
                part *= if corner[axis] == 0 { 1.0 - second } else { second };
            }
            match face {
                Some(face) => {
                    let filter = LevelFilter { weight: part, ..filter };
                    self.cube_taps([texel[0], texel[1]], size[0], face, layer, filter, taps);
                }
                None => {
                    let mut at = Some([0; 3]);
                    for axis in 0..count {
                        let wrapped = wrapped(self.sampler.wrap[axis], texel[axis], size[axis]);
                        at = at.zip(wrapped).map(|(mut at, wrapped)| {
                            at[axis] = wrapped;
                            at
                        });
                    }
                    let at = at.map(|at| self.coordinates_of(at, None, layer, level));
                    taps.push(Tap { at, weight: part });
                }
            }
        }
        Some(())
    }

    /// The texel of a cube, which may be past one edge of its face. Past two edges it is the average of the three around the corner;
    /// a gather takes the one of the face.
    fn cube_taps(
        &self,
        texel: [i64; 2],
        size: i64,
        face: u8,
        layer: i64,
        filter: LevelFilter,
        taps: &mut Vec<Tap>,
    ) {
        let inside = |at: i64| (0..size).contains(&at);
        let clamped = [texel[0].clamp(0, size - 1), texel[1].clamp(0, size - 1)];
        let around = |[i, j]: [i64; 2]| {
            if inside(i) && inside(j) {
                return (face, [i, j, 0]);
            }
            // The direction of the texel's centre leads to the other face.
            let place = |at: i64| (2 * at + 1) as f64 / size as f64 - 1.0;
            let mut direction = [0.0; 3];
            for ((axis, sign), value) in FACES[usize::from(face)].into_iter().zip([place(i), place(j), 1.0]) {
                direction[axis] = value * sign;
            }
            let other = face_of(direction);
            let texel = |at: f64| ((at * size as f64).floor() as i64).clamp(0, size - 1);
            (other.face, [texel(other.s), texel(other.t), 0])
        };
        let mut push = |at: [i64; 2], weight: f64| {
            let (face, texel) = around(at);
            let at = Some(self.coordinates_of(texel, Some(face), layer, filter.level));
            taps.push(Tap { at, weight });
        };
        let weight = filter.weight;
        if inside(texel[0]) || inside(texel[1]) {
            push(texel, weight);
        } else if filter.gathers {
            push(clamped, weight);
        } else {
            push(clamped, weight / 3.0);
            push([texel[0], clamped[1]], weight / 3.0);
            push([clamped[0], texel[1]], weight / 3.0);
        }
    }

    /// A texel, compared if there is a reference; `None` if it is undefined.
    fn read(&self, images: &mut dyn Images, tap: &Tap, class: TexelClass) -> Option<[u64; 4]> {
        let texel = match &tap.at {
            None => self.sampler.border,
            Some(at) => match images.load(self.image, self.access, at) {
                TexelRead::Bits(texel) => texel,
                TexelRead::Undefined | TexelRead::Outside => return None,
            },
        };
        let Some(reference) = self.reference else { return Some(texel) };
        let reference = if class == TexelClass::Unorm { reference.clamp(0.0, 1.0) } else { reference };
        let holds = self.sampler.compare?.holds(reference, f32::from_bits(texel[0] as u32));
        Some([u64::from(f32::from(u8::from(holds)).to_bits()), 0, 0, 0])
    }

    /// The texels filtered; `None` if the result is undefined.
    pub fn filtered(&self, images: &mut dyn Images) -> Option<[u64; 4]> {
        let class = images.class(self.image)?;
        let levels = self.levels(images)?;
        let mut taps = Vec::new();
        for (level, weight) in levels.parts {
            if weight > 0.0 {
                // Integers are not filtered.
                let linear = levels.linear && class != TexelClass::Integer;
                self.taps(images, LevelFilter { level, linear, weight, gathers: false }, &mut taps)?;
            }
        }
        taps.retain(|tap| tap.weight > 0.0);
        if let [tap] = &taps[..] {
            return self.read(images, tap, class);
        }
        let mut sum: Option<[f64; 4]> = None;
        for tap in &taps {
            let texel = self.read(images, tap, class)?.map(|bits| f64::from(f32::from_bits(bits as u32)));
            let mut combined = sum.unwrap_or(match self.sampler.reduction {
                Reduction::Average => [0.0; 4],
                _ => texel,
            });
            for (sum, texel) in combined.iter_mut().zip(texel) {
                *sum = match self.sampler.reduction {
                    Reduction::Average => *sum + texel * tap.weight,
                    Reduction::Min => sum.min(texel),
                    Reduction::Max => sum.max(texel),
                };
            }
            sum = Some(combined);
        }
        sum.map(|sum| sum.map(|value| u64::from((value as f32).to_bits())))
    }

    /// One component of the four texels that a linear filter would take; `None` if one is undefined.
    pub fn gathered(&self, images: &mut dyn Images) -> Option<[u64; 4]> {
        let class = images.class(self.image)?;
        let level = match self.detail {
            Detail::Level(_) => self.levels(images)?.parts[0].0,
            Detail::Gradient(..) => 0,
        };
        let mut taps = Vec::new();
        self.taps(images, LevelFilter { level, linear: true, weight: 1.0, gathers: true }, &mut taps)?;
        let component = if self.reference.is_some() { 0 } else { usize::from(self.access.component & 3) };
        let mut out = [0; 4];
        for (out, tap) in out.iter_mut().zip(&taps) {
            *out = self.read(images, tap, class)?[component];
        }
        Some(out)
    }

    /// The level that is accessed, and the level of detail before it is clamped.
    pub fn queried(&self, images: &mut dyn Images) -> Option<[f64; 2]> {
        let count = images.levels(self.image)?;
        let lod = self.computed_lod(images)?;
        Some([self.level(self.clamped_lod(lod), count), lod])
    }
}
