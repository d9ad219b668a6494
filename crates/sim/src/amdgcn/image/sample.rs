//! Samples and gathers: levels of detail, taps, comparisons, filters.
//!
//! Weights are exact in 8 bits and their sum is rounded once; hardware's own sums and its logarithm of derivatives are
//! not documented, so that the last bits of filtered values, and levels close to a border between two, may differ.

use super::super::apply;
use super::super::decoded::DecodedInst;
use super::super::fault::FaultKind;
use super::super::lanes::bits;
use super::super::machine::Machine;
use super::super::texel::Texel;
use super::super::wave::Wave;
use super::ImageOp;
use super::descriptor::{Image, ImageType};
use super::fields::{Coordinates, NOTHING};
use crate::texture::sampler::{Sampler, Tap, across_edge};
use unwedge_isa::amdgcn::model::{Trait, Traits};
use unwedge_isa::amdgcn::semantics::{LANES, Lanes};
use unwedge_isa::amdgcn::texel::{NumberFormat, TexelFormat};
use unwedge_isa::amdgcn::{Gfx, Reg};

/// Where the level of detail comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Differences between the lanes of a quad.
    Quad,
    Bias,
    Derivatives,
    Given,
    Zero,
}

/// What a sample does, and which parts its address has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampled {
    gather: bool,
    /// Only the level of detail is wanted.
    query: bool,
    compare: bool,
    offset: bool,
    /// Derivatives have 16 bits.
    short_derivatives: bool,
    /// The least level of detail is given.
    least: bool,
    detail: Detail,
}

impl Sampled {
    pub(super) fn new(traits: Traits) -> Sampled {
        let has = |id: Trait| traits.has(id);
        Sampled {
            gather: has(Trait::Gather4),
            query: has(Trait::Query),
            compare: has(Trait::DepthCompare),
            offset: has(Trait::TexelOffset),
            short_derivatives: has(Trait::G16),
            least: has(Trait::ClampLod),
            detail: match () {
                () if has(Trait::Bias) => Detail::Bias,
                () if has(Trait::Grad) => Detail::Derivatives,
                () if has(Trait::Level) => Detail::Given,
                () if has(Trait::LevelZero) => Detail::Zero,
                () => Detail::Quad,
            },
        }
    }
}

/// The parts of the address, in every lane.
struct Parts {
    offset: Lanes,
    bias: Lanes,
    reference: Lanes,
    /// By X, then by Y, along each axis.
    derivatives: [[Lanes; 3]; 2],
    coordinates: [Lanes; 3],
    /// The level of detail, or the least.
    level: Lanes,
}

/// What is the same for all taps of a lane.
struct Look<'a> {
    image: &'a Image,
    sampler: &'a Sampler,
    texel: Texel,
    /// What is compared with.
    reference: Option<f32>,
}

fn float(lanes: &Lanes, lane: usize) -> f32 {
    f32::from_bits(lanes[lane])
}

fn address_parts(
    machine: &mut Machine<'_>,
    wave: &Wave,
    access: &ImageOp,
    sampled: &Sampled,
    kind: ImageType,
    lanes: u64,
) -> Parts {
    let (mut fields, short) = (access.fields, access.short);
    let generation = machine.gpu.generation();
    // Differences are taken from whatever the other lanes of a quad hold.
    let mut part = |there: bool, machine: &mut Machine<'_>| {
        if there { fields.next(machine, wave, false, lanes) } else { NOTHING }
    };
    let offset = part(sampled.offset, machine);
    let bias = part(sampled.detail == Detail::Bias, machine);
    let reference = part(sampled.compare, machine);
    let bias =
        if short { bias.map(|bits| TexelFormat::HALF.load([bits & 0xffff, 0, 0, 0])[0]) } else { bias };
    let shape = Coordinates::of(access.dim, access.layered, kind);
    let axes = if !shape.y {
        1
    } else if shape.z && kind == ImageType::D3 {
        3
    } else {
        2
    };
    let mut derivatives = [[NOTHING; 3]; 2];
    if sampled.detail == Detail::Derivatives {
        let half = sampled.short_derivatives || short && generation < Gfx::Gfx10;
        for along in &mut derivatives {
            fields.align();
            for place in along.iter_mut().take(axes) {
                *place = fields.float(machine, wave, half, lanes);
            }
        }
        fields.align();
    }
    let mut coordinates = [NOTHING; 3];
    coordinates[0] = fields.float(machine, wave, short, lanes);
    if shape.y {
        coordinates[1] = fields.float(machine, wave, short, lanes);
    }
    if shape.z {
        coordinates[2] = fields.float(machine, wave, short, lanes);
    }
    let leveled = sampled.least || sampled.detail == Detail::Given;
    let level = if leveled { fields.float(machine, wave, short, lanes) } else { NOTHING };
    Parts { offset, bias, reference, derivatives, coordinates, level }
}

pub(super) fn exec(
    machine: &mut Machine<'_>,
    wave: &mut Wave,
    decoded: &DecodedInst,
    access: &ImageOp,
    sampled: &Sampled,
    image: Option<&Image>,
    lanes: u64,
) {
    let generation = machine.gpu.generation();
    let mut values = [[0u32; 4]; LANES];
    let mut texel = access.plain(TexelFormat::FLOATS);
    if sampled.gather {
        texel.mask = 15;
    }
    let Some(image) = image else {
        return super::return_values(machine, wave, decoded, access, &texel, &values, lanes, true);
    };
    let Some(first) = access.sampler else { return machine.fault(wave, FaultKind::NoSemantics) };
    let words = [0, 1, 2, 3].map(|n| apply::address_scalar(machine, wave, Reg(first.0 + n)));
    let sampler = super::descriptor::sampler(words, &machine.gpu);
    let format = image.format.unwrap_or(TexelFormat::INTEGERS);
    if image.kind.is_multisampled() {
        return machine.fault(wave, FaultKind::Undefined("a sample of an image with several samples"));
    }
    if sampler.border == 3 && sampler.has_border() {
        return machine.fault(wave, FaultKind::NotEmulated("a border colour from a table"));
    }
    if format.number().is_integer() {
        texel.format =
            if format.number() == NumberFormat::Sint { TexelFormat::SIGNED } else { TexelFormat::INTEGERS };
    }
    let parts = address_parts(machine, wave, access, sampled, image.kind, lanes);
    let unnormalized = access.unnormalized || sampler.unnormalized;
    for lane in bits(lanes) {
        let (raw, limited) = detail(&parts, sampled, image, &sampler, unnormalized, lane);
        let last = image.last_level.saturating_sub(image.base_level);
        if sampled.query {
            // The level that is accessed is one that the image has.
            values[lane] = [limited.clamp(0.0, last as f32).to_bits(), raw.to_bits(), 0, 0];
            continue;
        }
        if sampler.is_anisotropic(limited) && !sampled.gather {
            return machine.fault(wave, FaultKind::NotEmulated("an anisotropic filter"));
        }
        let reference = sampled.compare.then(|| {
            let value = float(&parts.reference, lane);
            // Against normalized depth only 0 to 1 counts.
            if format.number() == NumberFormat::Unorm { value.clamp(0.0, 1.0) } else { value }
        });
        let look =
            Look { image, sampler: &sampler, texel: access.texel(image, format, generation), reference };
        let at = SamplePoint {
            coordinates: std::array::from_fn(|n| float(&parts.coordinates[n], lane)),
            offset: [0, 8, 16].map(|lsb| (parts.offset[lane] << (26 - lsb)) as i32 >> 26),
            unnormalized,
        };
        let (level, next, weight) = sampler.levels(limited, last);
        let found = if sampled.gather {
            let component = access.mask.trailing_zeros().min(3) as usize;
            gathered(machine, wave, &look, &at, level, component)
        } else {
            let first = filtered(machine, wave, &look, &at, level, limited);
            if weight == 0 {
                first
            } else {
                let second = filtered(machine, wave, &look, &at, next, limited);
                let part = f64::from(weight) / 256.0;
                first.zip(second).map(|(a, b)| std::array::from_fn(|n| a[n] * (1.0 - part) + b[n] * part))
            }
        };
        let Some(found) = found else { return };
        values[lane] = found.map(|value| {
            if texel.format.number().is_integer() { value as i64 as u32 } else { (value as f32).to_bits() }
        });
    }
    super::return_values(machine, wave, decoded, access, &texel, &values, lanes, true);
}

/// A texel's R, G, B and A; `None`: it could not be read, and that was reported.
fn tap(
    machine: &mut Machine<'_>,
    wave: &Wave,
    look: &Look<'_>,
    at: Option<[u32; 3]>,
    level: u32,
) -> Option<[f64; 4]> {
    let image = look.image;
    let mut values = match (at, look.sampler.border) {
        (None, 1) => [0.0, 0.0, 0.0, 1.0],
        (None, 2) => [1.0; 4],
        (None, _) => [0.0; 4],
        (Some(at), _) => {
            let bytes = look.texel.format.bytes();
            let address = match image.address(at, 0, level + image.base_level, bytes) {
                Ok(address) => address,
                Err(what) => {
                    machine.fault(wave, FaultKind::NotEmulated(what));
                    return None;
                }
            };
            let mut words = [0u32; 4];
            for (n, place) in (0u64..).zip(&mut words).take(usize::from(bytes.div_ceil(4))) {
                let address = address.wrapping_add(4 * n);
                *place = apply::load(machine, wave, address, bytes.min(4))? as u32;
            }
            let number = look.texel.format.number();
            look.texel.choose(look.texel.format.load(words)).map(|bits| match number {
                NumberFormat::Sint => f64::from(bits as i32),
                NumberFormat::Uint => f64::from(bits),
                _ => f64::from(f32::from_bits(bits)),
            })
        }
    };
    if let Some(reference) = look.reference {
        let passes = look.sampler.passes(reference, values[0] as f32);
        values = [f64::from(u8::from(passes)), 0.0, 0.0, 0.0];
    }
    Some(values)
}

/// A texel by its number on each axis, wrapped.
fn wrapped_tap(
    machine: &mut Machine<'_>,
    wave: &Wave,
    look: &Look<'_>,
    at: [i64; 3],
    spot: &Spot,
    level: u32,
) -> Option<[f64; 4]> {
    let (image, sampler) = (look.image, look.sampler);
    let size = |axis: usize| image.extent(axis, level + image.base_level);
    if image.kind == ImageType::Cube && !sampler.no_cube_wrap {
        let (cube, face) = (spot.layer / 6, spot.layer % 6);
        let limit = i64::from(size(0));
        return match across_edge(face, [at[0], at[1]], size(0)) {
            Some((face, [x, y])) => {
                let layer = (cube * 6 + face).min(image.layers - 1);
                tap(machine, wave, look, Some([x, y, layer]), level)
            }
            // Beyond a corner there is no texel: the mean of the three around it.
            None => {
                let inner = [at[0].clamp(0, limit - 1), at[1].clamp(0, limit - 1)];
                let mut sum = [0.0; 4];
                for around in [inner, [at[0], inner[1]], [inner[0], at[1]]] {
                    let (face, [x, y]) = across_edge(face, around, size(0))?;
                    let layer = (cube * 6 + face).min(image.layers - 1);
                    let values = tap(machine, wave, look, Some([x, y, layer]), level)?;
                    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / 3.0);
                }
                Some(sum)
            }
        };
    }
    let mut texel = [0, 0, spot.layer];
    for axis in 0..image.kind.axes() {
        match sampler.wrapped(axis, at[axis], size(axis), spot.linear[axis]) {
            Some(at) => texel[axis] = at,
            None => return tap(machine, wave, look, None, level),
        }
    }
    tap(machine, wave, look, Some(texel), level)
}

/// A level's value at a place.
fn filtered(
    machine: &mut Machine<'_>,
    wave: &Wave,
    look: &Look<'_>,
    at: &SamplePoint,
    level: u32,
    lod: f32,
) -> Option<[f64; 4]> {
    let integers = look.texel.format.number().is_integer();
    let linear = std::array::from_fn(|axis| look.sampler.is_linear(axis, lod) && !integers);
    let spot = at.spot(look, level, linear);
    let (mut sum, mut combined) = ([0.0f64; 4], None);
    for which in 0..8usize {
        let taps: [Tap; 3] = std::array::from_fn(|axis| spot.taps[axis][which >> axis & 1]);
        let weight = taps.iter().map(|(_, weight)| f64::from(*weight) / 256.0).product::<f64>();
        if weight == 0.0 {
            continue;
        }
        let values = wrapped_tap(machine, wave, look, taps.map(|(at, _)| at), &spot, level)?;
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * weight);
        let so_far = combined.unwrap_or(values);
        combined = Some(std::array::from_fn(|n| match look.sampler.combine {
            1 => values[n].min(so_far[n]),
            _ => values[n].max(so_far[n]),
        }));
    }
    match (look.sampler.combine, combined) {
        (1 | 2, Some(combined)) => Some(combined),
        _ => Some(sum),
    }
}

/// One component of the four texels that a linear filter would take.
fn gathered(
    machine: &mut Machine<'_>,
    wave: &Wave,
    look: &Look<'_>,
    at: &SamplePoint,
    level: u32,
    component: usize,
) -> Option<[f64; 4]> {
    let spot = at.spot(look, level, [true; 3]);
    let component = if look.reference.is_some() { 0 } else { component };
    let mut values = [0.0; 4];
    for (place, [x, y]) in values.iter_mut().zip([[0, 1], [1, 1], [1, 0], [0, 0]]) {
        let at = [spot.taps[0][x].0, spot.taps[1][y].0, spot.taps[2][0].0];
        *place = wrapped_tap(machine, wave, look, at, &spot, level)?[component];
    }
    Some(values)
}

/// Where a lane samples.
struct SamplePoint {
    coordinates: [f32; 3],
    offset: [i32; 3],
    unnormalized: bool,
}

/// The texels around that place in a level.
struct Spot {
    taps: [[Tap; 2]; 3],
    linear: [bool; 3],
    layer: u32,
}

impl SamplePoint {
    fn spot(&self, look: &Look<'_>, level: u32, linear: [bool; 3]) -> Spot {
        let image = look.image;
        let mut taps = [[(0, 256), (0, 0)]; 3];
        for (axis, place) in taps.iter_mut().enumerate().take(image.kind.axes()) {
            let size = image.extent(axis, level + image.base_level);
            let mut at = f64::from(self.coordinates[axis]);
            if image.kind == ImageType::Cube {
                // From 1 to 2.
                at -= 1.0;
            }
            if !self.unnormalized {
                at *= f64::from(size);
            }
            *place = look.sampler.taps(axis, at, size, linear[axis]);
            for tap in place {
                tap.0 = tap.0.saturating_add(self.offset[axis].into());
            }
        }
        let whole = |value: f32| (f64::from(value).round_ties_even().max(0.0)) as u32;
        let layer = match image.kind {
            // Every cube of an array has eight numbers, six of them faces.
            ImageType::Cube => {
                let number = whole(self.coordinates[2]);
                (number / 8).saturating_mul(6).saturating_add((number % 8).min(5)).min(image.layers - 1)
            }
            kind if kind.is_array() => whole(self.coordinates[2]).min(image.layers - 1),
            _ => 0,
        };
        Spot { taps, linear, layer }
    }
}

/// The level of detail of a lane, and what limits make of it.
fn detail(
    parts: &Parts,
    sampled: &Sampled,
    image: &Image,
    sampler: &Sampler,
    unnormalized: bool,
    lane: usize,
) -> (f32, f32) {
    let slope = |by: usize, axis: usize| {
        if sampled.detail == Detail::Derivatives {
            return f64::from(float(&parts.derivatives[by][axis], lane));
        }
        let (quad, values) = (lane & !3, &parts.coordinates[axis]);
        f64::from(float(values, quad + 1 + by)) - f64::from(float(values, quad))
    };
    let from_slopes = || {
        let length = |by: usize| {
            (0..image.kind.axes())
                .map(|axis| {
                    let size =
                        if unnormalized { 1.0 } else { f64::from(image.extent(axis, image.base_level)) };
                    (slope(by, axis) * size).powi(2)
                })
                .sum::<f64>()
        };
        (length(0).max(length(1)).log2() / 2.0) as f32
    };
    let raw = match sampled.detail {
        Detail::Zero => return (0.0, 0.0),
        Detail::Given => float(&parts.level, lane) + sampler.bias,
        Detail::Bias => from_slopes() + float(&parts.bias, lane) + sampler.bias,
        Detail::Quad | Detail::Derivatives => from_slopes() + sampler.bias,
    };
    let own = image.min_lod - image.base_level as f32;
    let least = if sampled.least { float(&parts.level, lane).max(own) } else { own };
    (raw, sampler.limited(raw, least))
}
