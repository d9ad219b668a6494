//! Images of scripts, and what is expected of their texels.

use super::elements::ElementType;
use super::values::{DataType, Layout, Tolerance};
use super::{AmberReason, MAX_BYTES};
use unwedge_shader::interp::{TexelClass, TexelFormat};

/// An image of a script. It has one level and one layer.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// The format as Vulkan names it, without `VK_FORMAT_`.
    pub format: String,
    /// One, two or three dimensions.
    pub dimensions: u8,
    /// Width, height and depth.
    pub size: [u32; 3],
    /// Samples of a texel.
    pub samples: u32,
    /// Its texels: slices, rows, texels, samples.
    pub bytes: Vec<u8>,
    /// Whether each texel is defined.
    pub defined: Vec<bool>,
}

/// The texels of a rectangle, which all have one colour.
#[derive(Debug, Clone)]
pub(super) struct ExpectColour {
    pub image: String,
    pub at: [u32; 2],
    pub size: [u32; 2],
    /// Components in units of 1/255; three or four.
    pub colour: Vec<f64>,
    pub tolerances: Vec<Tolerance>,
}

/// By how much a component may differ if the script does not say it.
const COLOUR_TOLERANCE: f64 = 0.002;

impl Image {
    /// The image of a line `IMAGE name …`, without these two words and those about its values, and the type of its texels as scripts write
    /// them, if they can. `None` if it has something that is not supported.
    pub(super) fn parse(mut words: &[&str]) -> Option<(Image, Option<ElementType>)> {
        let mut image = Image { size: [1; 3], samples: 1, ..Image::default() };
        let mut ty = None;
        while let [name, rest @ ..] = words {
            let number = || rest.first()?.parse().ok().filter(|number: &u32| *number > 0);
            match *name {
                "FORMAT" => {
                    image.format = (*rest.first()?).to_owned();
                    ty = DataType::of_format(rest.first()?);
                }
                "DATA_TYPE" => {
                    let of_texel = DataType { layout: Layout::Packed, ..DataType::parse(rest.first()?)? };
                    image.format = match DataType::of_format(rest.first()?) {
                        Some(_) => (*rest.first()?).to_owned(),
                        None => of_texel.format()?,
                    };
                    ty = Some(of_texel);
                }
                "DIM_1D" | "DIM_2D" | "DIM_3D" => image.dimensions = name.as_bytes()[4] - b'0',
                "WIDTH" => image.size[0] = number()?,
                "HEIGHT" => image.size[1] = number()?,
                "DEPTH" => image.size[2] = number()?,
                "SAMPLES" => image.samples = number()?,
                "MIP_LEVELS" if number()? == 1 => {}
                _ => return None,
            }
            words = if name.starts_with("DIM_") { rest } else { &rest[1..] };
        }
        let sizes = image.size.iter().chain([&image.samples]).map(|size| *size as usize);
        let texels = sizes.fold(1usize, usize::saturating_mul);
        let bytes = texels.saturating_mul(TexelFormat::parse(&image.format)?.bytes());
        if image.dimensions == 0 || bytes > MAX_BYTES {
            return None;
        }
        image.bytes = vec![0; bytes];
        image.defined = vec![false; texels];
        Some((image, ty.map(ElementType::from)))
    }

    /// Texels and samples.
    pub(super) fn count(&self) -> usize {
        self.defined.len()
    }

    /// Sets all texels. `false` if these are not as many bytes.
    pub(super) fn fill(&mut self, bytes: Vec<u8>) -> bool {
        let fits = bytes.len() == self.bytes.len();
        if fits {
            self.bytes = bytes;
            self.defined.fill(true);
        }
        fits
    }
}

/// Whether two images have the same texels.
pub(super) fn equal(a: &Image, b: &Image) -> Result<(), AmberReason> {
    if a.format != b.format || a.size != b.size || a.samples != b.samples {
        return Err(AmberReason::Failed("the images have different shapes".to_owned()));
    }
    all_defined(a, b)?;
    match a.bytes.iter().zip(&b.bytes).position(|(a, b)| a != b) {
        Some(at) => {
            Err(AmberReason::Failed(format!("byte {at} is {:#x}, not {:#x}", a.bytes[at], b.bytes[at])))
        }
        None => Ok(()),
    }
}

/// Whether two images have no undefined texel.
fn all_defined(a: &Image, b: &Image) -> Result<(), AmberReason> {
    if a.defined.iter().chain(&b.defined).all(|defined| *defined) {
        return Ok(());
    }
    Err(AmberReason::Failed("a texel is undefined".to_owned()))
}

/// The root of the mean squared difference of the components of two images.
pub(super) fn rmse(a: &Image, b: &Image) -> Result<f64, AmberReason> {
    let format = TexelFormat::parse(&a.format).filter(|format| format.class() != TexelClass::Integer);
    let Some(format) = format.filter(|_| a.format == b.format) else {
        return Err(AmberReason::Unsupported(format!("a difference of {} and {}", a.format, b.format)));
    };
    if a.bytes.len() != b.bytes.len() || a.bytes.is_empty() {
        return Err(AmberReason::Failed("the images have different sizes".to_owned()));
    }
    all_defined(a, b)?;
    let (mut sum, mut count) = (0.0, 0.0);
    let components = a.format.chars().filter(|letter| "RGBA".contains(*letter)).count().min(4);
    for (a, b) in a.bytes.chunks_exact(format.bytes()).zip(b.bytes.chunks_exact(format.bytes())) {
        let [a, b] =
            [a, b].map(|texel| format.decode(texel).map(|bits| f64::from(f32::from_bits(bits as u32))));
        for (a, b) in a.iter().zip(b).take(components) {
            // Amber compares bytes of normalized components.
            let scale = if format.class() == TexelClass::Unorm { 255.0 } else { 1.0 };
            sum += ((a - b) * scale).powi(2);
            count += 1.0;
        }
    }
    Ok((sum / count).sqrt())
}

/// Values of a component of 8 bits.
const LEVELS: usize = 256;

/// Compares the histograms of two images by Amber's "earth mover's distance" of each channel: the mean distance that values of a
/// component move from one histogram to the other, divided by the number of bins.
pub(super) fn equal_histograms(a: &Image, b: &Image, most: f64) -> Result<(), AmberReason> {
    if a.format != b.format || !a.format.ends_with("_UNORM") || a.format.matches('8').count() != 4 {
        return Err(AmberReason::Unsupported(format!("histograms of {} and {}", a.format, b.format)));
    }
    if a.bytes.len() != b.bytes.len() || a.bytes.is_empty() {
        return Err(AmberReason::Failed("the images have different sizes".to_owned()));
    }
    all_defined(a, b)?;
    let texels = a.bytes.len() as f64 / 4.0;
    for channel in 0..4 {
        let mut difference = [0.0; LEVELS];
        for (texels, sign) in [(&a.bytes, 1.0), (&b.bytes, -1.0)] {
            for texel in texels.chunks_exact(4) {
                difference[usize::from(texel[channel])] += sign;
            }
        }
        let moved = difference.iter().scan(0.0, |sum: &mut f64, count| {
            *sum += count;
            Some(sum.abs())
        });
        let distance = moved.sum::<f64>() / texels / LEVELS as f64;
        if distance > most {
            return Err(AmberReason::Failed(format!(
                "channel {channel} differs by {distance}, more than {most}"
            )));
        }
    }
    Ok(())
}

impl ExpectColour {
    /// Fails at the first texel of another colour.
    pub(super) fn check(&self, image: &Image) -> Result<(), AmberReason> {
        let format = TexelFormat::parse(&image.format).filter(|format| format.class() != TexelClass::Integer);
        let Some(format) = format.filter(|_| image.samples == 1 && !image.format.contains("SRGB")) else {
            return Err(AmberReason::Unsupported(format!(
                "a colour of {} with {} samples",
                image.format, image.samples
            )));
        };
        let [width, height, _] = image.size;
        for row in 0..self.size[1] {
            for column in 0..self.size[0] {
                let (x, y) = (self.at[0].saturating_add(column), self.at[1].saturating_add(row));
                let fail = |text: String| AmberReason::Failed(format!("{} at {x}, {y} {text}", self.image));
                if x >= width || y >= height {
                    return Err(fail("is outside the image".to_owned()));
                }
                let texel = (y as usize) * (width as usize) + x as usize;
                if !image.defined[texel] {
                    return Err(fail("is undefined".to_owned()));
                }
                let bytes = &image.bytes[texel * format.bytes()..(texel + 1) * format.bytes()];
                let components = format.decode(bytes).map(|bits| f64::from(f32::from_bits(bits as u32)));
                for (number, ((letter, expected), value)) in
                    "RGBA".chars().zip(&self.colour).zip(components).enumerate()
                {
                    let wanted = expected / 255.0;
                    let tolerance = match self.tolerances.as_slice() {
                        [] => COLOUR_TOLERANCE,
                        tolerances => {
                            let tolerance = &tolerances[number % tolerances.len()];
                            if tolerance.percent { wanted * tolerance.value / 100.0 } else { tolerance.value }
                        }
                    };
                    if (value - wanted).abs() > tolerance {
                        return Err(fail(format!("has {letter} {}, not {expected}", value * 255.0)));
                    }
                }
            }
        }
        Ok(())
    }
}
