//! Samples: texels of one or more levels, put together as a sampler says.

use super::cubic::CubicWeights;
use super::descriptor::{AVERAGE, LEAST, SamplerDescriptor};
use super::image::{Image, Texel};
use super::lod::{LevelOfDetail, footprint};
use super::{TexelMemory, TextureFault, TextureKind, border, cube};
use crate::texture::sampler::{MipFilter, Sampler, Tap, across_edge};
use unwedge_hw::adreno::format::Numeric;

/// What a sample asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// From 0 to 1 over the image, or texels; a direction for cubes.
    pub(crate) coordinates: [f32; 3],
    /// The layer of an array, or the cube; rounded to the nearest.
    pub(crate) layer: f32,
    /// What texels are compared with.
    pub(crate) reference: Option<f32>,
    /// Texels added to the place.
    pub(crate) offsets: [i32; 3],
    pub(crate) detail: LevelOfDetail,
}

/// An image with its sampler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sampled<'i> {
    pub(crate) image: &'i Image,
    pub(crate) sampler: &'i SamplerDescriptor,
    /// Address of the table of border colours.
    pub(crate) borders: u64,
    /// Weights of cubic filters, where the GPU has them.
    pub(crate) cubic: Option<CubicWeights>,
}

/// A sample of one layer or face.
struct Taps<'s> {
    sampled: Sampled<'s>,
    memory: &'s mut dyn TexelMemory,
    /// The layer, or the first face of the cube.
    layer: u32,
    /// The face, for cubes.
    face: Option<u32>,
    reference: Option<f32>,
    offsets: [i32; 3],
    border: Option<Texel>,
}

/// How texels of a level are put together.
#[derive(Clone, Copy)]
enum Filter {
    Nearest,
    Linear,
    Cubic(CubicWeights),
}

/// Components while they are put together.
type Sum = [f64; 4];

impl Sampled<'_> {
    /// A place and what it covers: the place on the face or in the image, the face, the footprint.
    fn resolve(&self, sample: &Sample) -> ([f64; 3], Option<u32>, super::lod::Footprint) {
        let direction = sample.coordinates.map(f64::from);
        let face = (self.image.kind == TextureKind::Cube).then(|| cube::project(direction));
        let footprint = footprint(self.image, self.sampler, direction, face.as_ref(), &sample.detail);
        let place = face.map_or(direction, |face| [face.s, face.t, 0.0]);
        (place, face.map(|face| face.face), footprint)
    }

    fn last_level(&self) -> u32 {
        self.image.levels.len().saturating_sub(1) as u32
    }

    fn layer(&self, layer: f32, face: Option<u32>) -> u32 {
        let faces = if face.is_some() { 6 } else { 1 };
        let last = (self.image.layers / faces).saturating_sub(1);
        // A NaN is the first one.
        (layer.round_ties_even().max(0.0) as u32).min(last) * faces + face.unwrap_or(0)
    }

    fn taps<'s>(&'s self, memory: &'s mut dyn TexelMemory, sample: &Sample, face: Option<u32>) -> Taps<'s> {
        Taps {
            sampled: *self,
            memory,
            layer: self.layer(sample.layer, face),
            face,
            reference: sample.reference.map(|reference| self.clamped(reference)),
            offsets: sample.offsets,
            border: None,
        }
    }

    /// A reference is within what the format can hold.
    fn clamped(&self, reference: f32) -> f32 {
        let float = self.image.format.channels().first().is_some_and(|channel| channel.bits == 32);
        if float { reference } else { reference.clamp(0.0, 1.0) }
    }

    /// A sample.
    pub(crate) fn sample(
        &self,
        memory: &mut dyn TexelMemory,
        sample: &Sample,
    ) -> Result<Texel, TextureFault> {
        if self.image.is_buffer() {
            return Err(TextureFault::NotEmulated("a sample of a buffer"));
        }
        let (place, face, footprint) = self.resolve(sample);
        let math = &self.sampler.sampler;
        let filter = self.filter(footprint.lambda)?;
        let (first, second, weight) = math.levels(footprint.level, self.last_level());
        let mut taps = self.taps(memory, sample, face);
        if self.image.numeric() != Numeric::Float {
            // Integers are not mixed.
            let texel = taps.nearest(first, place)?;
            return Ok(self.image.swizzled(texel));
        }
        let mut of_level = |level: u32| -> Result<Sum, TextureFault> {
            let steps = if math.is_anisotropic(footprint.lambda) { footprint.samples } else { 1 };
            let mut sum = Sum::default();
            for step in 1..=steps {
                let along = f64::from(step) / f64::from(steps + 1) - 0.5;
                let moved = |axis: usize| if steps > 1 { footprint.axis[axis] * along } else { 0.0 };
                let at = std::array::from_fn(|axis| place[axis] + moved(axis));
                let texel = match filter {
                    Filter::Nearest => floats(taps.nearest(level, at)?),
                    Filter::Linear => taps.linear(level, at)?,
                    Filter::Cubic(weights) => taps.cubic(&weights, level, at)?,
                };
                sum.iter_mut().zip(texel).for_each(|(sum, texel)| *sum += texel / f64::from(steps));
            }
            Ok(sum)
        };
        let near = of_level(first)?;
        let texel = if weight == 0 {
            near
        } else {
            let far = of_level(second)?;
            reduce(math.combine, [(near, 256 - weight), (far, weight)].into_iter().map(part_of_256))
        };
        Ok(self.image.swizzled(texel.map(|value| (value as f32).to_bits())))
    }

    /// The filter at a level of detail.
    fn filter(&self, lambda: f32) -> Result<Filter, TextureFault> {
        if !self.sampler.is_cubic(lambda) {
            let linear = self.sampler.sampler.is_linear(0, lambda);
            return Ok(if linear { Filter::Linear } else { Filter::Nearest });
        }
        match (self.cubic, self.image.kind) {
            (None, _) => Err(TextureFault::NotEmulated("a cubic filter on a GPU that has none")),
            (_, TextureKind::D3 | TextureKind::Cube) => {
                Err(TextureFault::NotEmulated("a cubic filter of a volume or cube"))
            }
            (Some(weights), _) => Ok(Filter::Cubic(weights)),
        }
    }

    /// One component of the four texels that a linear filter would take: those of the row below from left to right, then of the row above
    /// from right to left.
    pub(crate) fn gather(
        &self,
        memory: &mut dyn TexelMemory,
        sample: &Sample,
        component: usize,
    ) -> Result<Texel, TextureFault> {
        if matches!(self.image.kind, TextureKind::D3 | TextureKind::Buffer) {
            return Err(TextureFault::NotEmulated("a gather of a volume or buffer"));
        }
        let (place, face, _) = self.resolve(sample);
        let mut taps = self.taps(memory, sample, face);
        let (_, texels) = taps.square(0, place)?;
        let [above_left, above_right, below_left, below_right] =
            texels.map(|texel| self.image.swizzled(texel)[component & 3]);
        Ok([below_left, below_right, above_right, above_left])
    }

    /// The level that a sample would take, and the one that the coordinates ask for, with 8 bits after the point.
    pub(crate) fn level_of_detail(&self, sample: &Sample) -> (i32, i32) {
        let (.., footprint) = self.resolve(sample);
        let math = &self.sampler.sampler;
        let (level, _, _) = math.levels(footprint.level, self.last_level());
        let taken = match math.mip {
            MipFilter::Linear => footprint.level.clamp(0.0, self.last_level() as f32),
            MipFilter::Nearest | MipFilter::None => level as f32,
        };
        ((taken * 256.0) as i32, (footprint.raw * 256.0) as i32)
    }
}

impl Taps<'_> {
    fn math(&self) -> &Sampler {
        &self.sampled.sampler.sampler
    }

    /// The two texels of an axis and their weights.
    fn pair(&self, axis: usize, place: f64) -> [Tap; 2] {
        // The size only counts for modes that Adreno does not have.
        self.math().taps(axis, place, 1, true)
    }

    /// A place in texels of a level.
    fn scaled(&self, level: u32, place: [f64; 3]) -> [f64; 3] {
        let Some(level) = self.sampled.image.level(level) else { return place };
        if self.math().unnormalized {
            return place;
        }
        let size = [level.size.width, level.size.height, level.size.depth];
        std::array::from_fn(|axis| place[axis] * f64::from(size[axis]))
    }

    fn offset(&self, axis: usize) -> i64 {
        i64::from(self.offsets[axis])
    }

    /// The texel at a place, without any filter.
    fn nearest(&mut self, level: u32, place: [f64; 3]) -> Result<Texel, TextureFault> {
        let place = self.scaled(level, place);
        let at = std::array::from_fn(|axis| {
            let [(texel, _), _] = self.math().taps(axis, place[axis], 1, false);
            texel.saturating_add(self.offset(axis))
        });
        self.texel(level, at)
    }

    fn linear(&mut self, level: u32, place: [f64; 3]) -> Result<Sum, TextureFault> {
        let combine = self.math().combine;
        if self.sampled.image.kind != TextureKind::D3 {
            let (pairs, texels) = self.square(level, place)?;
            return Ok(reduce(combine, weighted(pairs, texels)));
        }
        let scaled = self.scaled(level, place);
        let pairs = [self.pair(0, scaled[0]), self.pair(1, scaled[1])];
        let mut taps = Vec::with_capacity(8);
        for (slice, weight) in self.pair(2, scaled[2]) {
            let texels = self.four(level, pairs, slice.saturating_add(self.offset(2)))?;
            let weight = f64::from(weight) / 256.0;
            taps.extend(weighted(pairs, texels).map(|(texel, of)| (texel, of * weight)));
        }
        Ok(reduce(combine, taps.into_iter()))
    }

    /// Four texels on each axis.
    fn cubic(&mut self, weights: &CubicWeights, level: u32, place: [f64; 3]) -> Result<Sum, TextureFault> {
        let scaled = self.scaled(level, place);
        let mut taps = [0, 1].map(|axis| {
            let [(texel, _), (_, weight)] = self.pair(axis, scaled[axis]);
            weights.taps(texel.saturating_add(self.offset(axis)), weight)
        });
        if self.sampled.image.kind == TextureKind::D1 {
            taps[1] = [(0, 1.0), (0, 0.0), (0, 0.0), (0, 0.0)];
        }
        let mut texels = Vec::with_capacity(16);
        for (y, of_row) in taps[1] {
            for (x, of_column) in taps[0] {
                texels.push((floats(self.texel(level, [x, y, 0])?), of_row * of_column));
            }
        }
        Ok(reduce(self.math().combine, texels.into_iter()))
    }

    /// The four texels around a place: above left, above right, below left, below right.
    fn square(&mut self, level: u32, place: [f64; 3]) -> Result<([[Tap; 2]; 2], [Texel; 4]), TextureFault> {
        let scaled = self.scaled(level, place);
        let mut pairs = [self.pair(0, scaled[0]), self.pair(1, scaled[1])];
        if self.sampled.image.kind == TextureKind::D1 {
            pairs[1] = [(0, 256), (1, 0)];
        }
        Ok((pairs, self.four(level, pairs, 0)?))
    }

    fn four(&mut self, level: u32, pairs: [[Tap; 2]; 2], z: i64) -> Result<[Texel; 4], TextureFault> {
        let [columns, rows] =
            [0, 1].map(|axis| pairs[axis].map(|(texel, _)| texel.saturating_add(self.offset(axis))));
        let size = self.sampled.image.level(level).map_or(1, |level| level.size.width);
        let seamless = self.face.filter(|_| !self.math().no_cube_wrap);
        let mut texels = [[0; 4]; 4];
        let mut corner = None;
        for (at, (column, row)) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().enumerate() {
            let (x, y) = (columns[column], rows[row]);
            texels[at] = match seamless {
                None => self.texel(level, [x, y, z])?,
                Some(face) => match across_edge(face, [x, y], size) {
                    Some((other, [column, row])) => {
                        let layer = self.layer - face + other;
                        self.compared_at(level, (column, row, layer))?
                    }
                    None => {
                        corner = Some(at);
                        [0; 4]
                    }
                },
            };
        }
        if let Some(corner) = corner {
            // A corner has no fourth texel: the mean of the other three is taken.
            let others =
                texels.iter().enumerate().filter(|(at, _)| *at != corner).map(|(_, texel)| floats(*texel));
            let mean = reduce(AVERAGE, others.map(|texel| (texel, 1.0 / 3.0)));
            texels[corner] = mean.map(|value| (value as f32).to_bits());
        }
        Ok(texels)
    }

    /// A texel, or what is there in its place.
    fn texel(&mut self, level: u32, at: [i64; 3]) -> Result<Texel, TextureFault> {
        let image = self.sampled.image;
        let Some(size) = image.level(level).map(|level| level.size) else { return Ok([0; 4]) };
        let faces = self.face.is_some();
        let wrapped = |axis: usize, size: u32| match faces {
            // A face that is not joined to others ends at its edge.
            true => Some(at[axis].clamp(0, i64::from(size.max(1)) - 1) as u32),
            false => self.math().wrapped(axis, at[axis], size, true),
        };
        let x = wrapped(0, size.width);
        let y = if image.kind == TextureKind::D1 { Some(0) } else { wrapped(1, size.height) };
        let z = if image.kind == TextureKind::D3 { wrapped(2, size.depth) } else { Some(self.layer) };
        match (x, y, z) {
            (Some(x), Some(y), Some(z)) => self.compared_at(level, (x, y, z)),
            _ => {
                let color = self.border()?;
                Ok(self.compared(color))
            }
        }
    }

    fn compared_at(&mut self, level: u32, place: (u32, u32, u32)) -> Result<Texel, TextureFault> {
        let level = level.min(self.sampled.image.levels.len().saturating_sub(1) as u32);
        let texel = self
            .sampled
            .image
            .sampled_texel(self.memory, level, place, self.sampled.sampler.chroma_linear)?
            .unwrap_or_default();
        Ok(self.compared(texel))
    }

    fn border(&mut self) -> Result<Texel, TextureFault> {
        if let Some(color) = self.border {
            return Ok(color);
        }
        let Sampled { image, sampler, borders, .. } = self.sampled;
        let color = border::color(image, self.memory, borders, sampler.border)?;
        self.border = Some(color);
        Ok(color)
    }

    /// What a comparison makes of a texel: 0 or 1 in the first component.
    fn compared(&self, texel: Texel) -> Texel {
        let Some(reference) = self.reference else { return texel };
        let holds = self.math().passes(reference, f32::from_bits(texel[0]));
        [if holds { 1f32 } else { 0.0 }.to_bits(), 0, 0, 1f32.to_bits()]
    }
}

fn floats(texel: Texel) -> Sum {
    texel.map(|value| f64::from(f32::from_bits(value)))
}

/// Texels of a square with their weights.
fn weighted(pairs: [[Tap; 2]; 2], texels: [Texel; 4]) -> impl Iterator<Item = (Sum, f64)> {
    let [[left, right], [above, below]] = pairs.map(|pair| pair.map(|(_, weight)| f64::from(weight) / 256.0));
    let weights = [left * above, right * above, left * below, right * below];
    texels.into_iter().map(floats).zip(weights)
}

fn part_of_256((texel, weight): (Sum, u32)) -> (Sum, f64) {
    (texel, f64::from(weight) / 256.0)
}

/// Texels put together: by their weights, or the least or greatest of them. Those without weight do not count.
fn reduce(combine: u8, texels: impl Iterator<Item = (Sum, f64)>) -> Sum {
    let mut result: Option<Sum> = None;
    for (texel, weight) in texels.filter(|(_, weight)| *weight != 0.0) {
        let texel = if combine == AVERAGE { texel.map(|value| value * weight) } else { texel };
        result = Some(match result {
            None => texel,
            Some(sum) => std::array::from_fn(|at| match combine {
                AVERAGE => sum[at] + texel[at],
                LEAST => sum[at].min(texel[at]),
                _ => sum[at].max(texel[at]),
            }),
        });
    }
    result.unwrap_or_default()
}
