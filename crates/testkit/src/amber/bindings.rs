//! What pipelines bind to descriptors, and samplers.

use super::script::Lines;
use super::{AmberReason, Result};
use unwedge_shader::interp::{DepthCompare, Sampler, Wrap};

/// What the descriptors of a binding are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorKind {
    /// A uniform or storage buffer, also with a dynamic offset.
    Buffer,
    /// A uniform or storage texel buffer.
    TexelBuffer,
    /// A sampled or storage image.
    Image,
    /// An image with its sampler.
    CombinedImageSampler,
    /// A sampler.
    Sampler,
}

impl DescriptorKind {
    fn parse(name: &str) -> Option<DescriptorKind> {
        Some(match name {
            "storage" | "uniform" | "storage_dynamic" | "uniform_dynamic" => DescriptorKind::Buffer,
            "uniform_texel_buffer" | "storage_texel_buffer" => DescriptorKind::TexelBuffer,
            "sampled_image" | "storage_image" => DescriptorKind::Image,
            "combined_image_sampler" => DescriptorKind::CombinedImageSampler,
            _ => return None,
        })
    }
}

/// A descriptor of a binding, by names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// What it is.
    pub kind: DescriptorKind,
    /// The buffer or image; empty for a sampler.
    pub resource: String,
    /// The sampler, if it has one.
    pub sampler: Option<String>,
    /// The first byte of a buffer that is accessed.
    pub offset: usize,
    /// How many bytes are accessed; up to the end if it is not said.
    pub range: Option<usize>,
}

/// A descriptor as the executor gets it: numbers of buffers and images.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundDescriptor {
    /// A part of a buffer.
    Buffer {
        /// The buffer.
        buffer: usize,
        /// The first byte.
        offset: usize,
        /// How many bytes.
        size: usize,
    },
    /// The texels of a buffer.
    TexelBuffer {
        /// The buffer.
        buffer: usize,
        /// The format as Vulkan names it.
        format: String,
    },
    /// An image, perhaps with a sampler.
    Image {
        /// The image.
        image: usize,
        /// The sampler.
        sampler: Option<Sampler>,
    },
    /// A sampler.
    Sampler(Sampler),
}

/// Descriptor set, binding, and the descriptors.
pub(super) type Binding = ((u32, u32), Vec<Descriptor>);

/// Reads a line `BIND …` that is about descriptors; `None` if it is not.
pub(super) fn bind(lines: &Lines<'_>, words: &[&str]) -> Result<Option<Binding>> {
    let Some(set) = words.iter().position(|word| *word == "DESCRIPTOR_SET") else { return Ok(None) };
    let (what, rest) = words.split_at(set);
    let ["DESCRIPTOR_SET", set, "BINDING", binding, options @ ..] = rest else { return Ok(None) };
    let mut descriptors: Vec<Descriptor> = match what {
        ["BIND", "SAMPLER" | "SAMPLER_ARRAY", names @ ..] => {
            let sampler = |name: &&str| Descriptor {
                kind: DescriptorKind::Sampler,
                resource: String::new(),
                sampler: Some((*name).to_owned()),
                offset: 0,
                range: None,
            };
            names.iter().map(sampler).collect()
        }
        ["BIND", "BUFFER" | "BUFFER_ARRAY" | "IMAGE" | "IMAGE_ARRAY", names @ ..] => {
            let Some(at) = names.iter().position(|word| *word == "AS") else { return Ok(None) };
            let (names, kind) = names.split_at(at);
            let (kind, samplers) = match kind {
                ["AS", kind] => (kind, &[][..]),
                ["AS", kind, "SAMPLER", samplers @ ..] => (kind, samplers),
                _ => return Ok(None),
            };
            let Some(kind) = DescriptorKind::parse(kind) else { return Ok(None) };
            let needed = if kind == DescriptorKind::CombinedImageSampler { names.len() } else { 0 };
            if samplers.len() != needed {
                return lines.syntax(words);
            }
            let descriptor = |(number, name): (usize, &&str)| Descriptor {
                kind,
                resource: (*name).to_owned(),
                sampler: samplers.get(number).map(|name| (*name).to_owned()),
                offset: 0,
                range: None,
            };
            names.iter().enumerate().map(descriptor).collect()
        }
        _ => return Ok(None),
    };
    // Options have a value for each descriptor. Dynamic offsets come on top of those of the descriptors.
    let mut option = "";
    let mut number = 0;
    for word in options {
        if matches!(*word, "OFFSET" | "DESCRIPTOR_OFFSET" | "DESCRIPTOR_RANGE" | "BASE_MIP_LEVEL") {
            (option, number) = (word, 0);
            continue;
        }
        let Some(descriptor) = descriptors.get_mut(number) else { return lines.syntax(words) };
        match option {
            "OFFSET" | "DESCRIPTOR_OFFSET" => {
                descriptor.offset = descriptor.offset.saturating_add(lines.number(word)?);
            }
            "DESCRIPTOR_RANGE" => {
                descriptor.range = if *word == "-1" { None } else { Some(lines.number(word)?) }
            }
            "BASE_MIP_LEVEL" if *word == "0" => {}
            _ => return lines.unsupported(words),
        }
        number += 1;
    }
    Ok(Some((lines.binding(set, binding)?, descriptors)))
}

/// The border of floats and of integers: red, green and blue, and alpha.
fn border(name: &str) -> Option<[u64; 4]> {
    let (numbers, colour) = name.split_once('_')?;
    let one = match numbers {
        "float" => u64::from(1f32.to_bits()),
        "int" => 1,
        _ => return None,
    };
    Some(match colour {
        "transparent_black" => [0; 4],
        "opaque_black" => [0, 0, 0, one],
        "opaque_white" => [one; 4],
        _ => return None,
    })
}

/// The sampler that the words after its name describe.
pub(super) fn sampler(mut words: &[String]) -> std::result::Result<Sampler, AmberReason> {
    let unsupported = |word: &str| AmberReason::Unsupported(format!("a sampler with {word}"));
    let mut sampler = Sampler { wrap: [Wrap::Repeat; 3], max_lod: 1.0, ..Sampler::default() };
    let mut compares = false;
    let mut compare = DepthCompare::Never;
    while let Some((name, rest)) = words.split_first() {
        match name.as_str() {
            "NORMALIZED_COORDS" => {
                words = rest;
                continue;
            }
            "UNNORMALIZED_COORDS" => {
                sampler.unnormalized = true;
                words = rest;
                continue;
            }
            _ => {}
        }
        let (value, rest) = rest.split_first().ok_or_else(|| unsupported(name))?;
        let known = || unsupported(&format!("{name} {value}"));
        let linear = || match value.as_str() {
            "nearest" => Ok(false),
            "linear" => Ok(true),
            _ => Err(known()),
        };
        let number = || value.parse().map_err(|_| known());
        match name.as_str() {
            "MAG_FILTER" => sampler.mag_linear = linear()?,
            "MIN_FILTER" => sampler.min_linear = linear()?,
            "MIPMAP_MODE" => sampler.mip_linear = linear()?,
            "MIN_LOD" => sampler.min_lod = number()?,
            "MAX_LOD" => sampler.max_lod = number()?,
            "BORDER_COLOR" => sampler.border = border(value).ok_or_else(known)?,
            "COMPARE" => compares = value == "on",
            "COMPARE_OP" => {
                compare = match value.as_str() {
                    "never" => DepthCompare::Never,
                    "less" => DepthCompare::Less,
                    "equal" => DepthCompare::Equal,
                    "less_or_equal" => DepthCompare::LessEqual,
                    "greater" => DepthCompare::Greater,
                    "not_equal" => DepthCompare::NotEqual,
                    "greater_or_equal" => DepthCompare::GreaterEqual,
                    "always" => DepthCompare::Always,
                    _ => return Err(known()),
                };
            }
            "ADDRESS_MODE_U" | "ADDRESS_MODE_V" | "ADDRESS_MODE_W" => {
                let axis = usize::from(name.as_bytes()[name.len() - 1] - b'U');
                sampler.wrap[axis] = match value.as_str() {
                    "repeat" => Wrap::Repeat,
                    "mirrored_repeat" => Wrap::MirroredRepeat,
                    "clamp_to_edge" => Wrap::ClampToEdge,
                    "clamp_to_border" => Wrap::ClampToBorder,
                    "mirror_clamp_to_edge" => Wrap::MirrorClampToEdge,
                    _ => return Err(known()),
                };
            }
            _ => return Err(unsupported(name)),
        }
        words = rest;
    }
    sampler.compare = compares.then_some(compare);
    Ok(sampler)
}
