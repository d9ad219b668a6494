//! `unwedge layout`: where the bytes of an Adreno image are, as a table and as JSON.
//!
//! Never: computes a layout, which [`unwedge_hw::adreno::layout`] does.

pub(crate) mod formats;
mod request;

pub use formats::{formats_json, formats_text};
pub use request::{ImageSize, LayoutGpu, LevelCount, TexelRequest, byte_number, format, gpu, tile_mode};

use crate::Style;
use crate::json::{Heading, Hex};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use thiserror::Error;
use unwedge_base::Generation;
use unwedge_hw::adreno::format::{ColorSwap, Format, UbwcSupport};
use unwedge_hw::adreno::layout::{
    FlagLevel, ImageLayout, ImageParams, ImportedLayout, LayoutError, LevelLayout, TileMode, UbwcRefusal,
};

/// Version of the schema of the JSON; docs/json-schema.md says what a change means.
const SCHEMA: u32 = 1;

/// An image, as the command line asks for it.
#[derive(Clone, Debug)]
pub struct LayoutRequest {
    /// The GPU.
    pub gpu: LayoutGpu,
    /// The format.
    pub format: Format,
    /// The size of the first level.
    pub size: ImageSize,
    /// Levels.
    pub levels: LevelCount,
    /// Layers.
    pub layers: u32,
    /// Samples.
    pub samples: u32,
    /// The tile mode.
    pub tile_mode: TileMode,
    /// With UBWC.
    pub ubwc: bool,
    /// Three-dimensional even if there is one slice.
    pub is_3d: bool,
    /// Views have other formats.
    pub is_mutable: bool,
    /// Bytes from row to row, of an image that another program placed.
    pub pitch: Option<u32>,
    /// Bytes before the image, of one that another program placed.
    pub offset: u64,
    /// Texels to find.
    pub texels: Vec<TexelRequest>,
    /// Bytes to name the texels of.
    pub bytes: Vec<u64>,
}

/// Why there is nothing to show.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutViewError {
    /// There is no such image.
    #[error("{0}")]
    Layout(#[from] LayoutError),
    /// A texel is outside of its level.
    #[error("texel {texel} is not in level {level}, which has {size}")]
    Outside {
        /// As it was asked for.
        texel: String,
        /// Its level.
        level: u32,
        /// What the level has.
        size: String,
    },
    /// An offset without a pitch.
    #[error("--offset is of an image that another program placed: give its --pitch, too")]
    OffsetWithoutPitch,
}

/// A layout with the texels that were asked for.
pub struct LayoutView {
    gpu_name: String,
    layout: ImageLayout,
    texels: Vec<TexelAnswer>,
    bytes: Vec<ByteAnswer>,
}

/// Where a texel is.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TexelAnswer {
    level: u32,
    x: u32,
    y: u32,
    /// Slice or layer.
    z: u32,
    sample: u32,
    offset: Hex,
    /// Of the second channel, where it is apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_offset: Option<Hex>,
    /// Bytes of the texel's sample, or of the block.
    bytes: u32,
    /// The place in the block, of formats with blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_block: Option<[u32; 2]>,
}

/// What a byte belongs to.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ByteAnswer {
    offset: Hex,
    #[serde(flatten)]
    owner: ByteOwner,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "belongs_to", rename_all = "snake_case")]
enum ByteOwner {
    /// A texel, or a block by its first texel.
    Texel { level: u32, x: u32, y: u32, z: u32, sample: u32, byte: u32 },
    /// The flags of UBWC.
    Flags { level: Option<u32>, layer: u64 },
    /// Space between levels, layers or rows.
    Padding,
    /// Nothing: it is before or after the image.
    Outside,
    /// A level, but the order of its texels is not known.
    Unknown { level: u32 },
}

impl LayoutView {
    /// Computes the layout.
    ///
    /// # Errors
    /// When there is no such image, or it has no such texel.
    pub fn of(request: &LayoutRequest) -> Result<LayoutView, LayoutViewError> {
        let size = request.size;
        let import = match request.pitch {
            Some(pitch) => Some(ImportedLayout { offset: request.offset, pitch }),
            None if request.offset != 0 => return Err(LayoutViewError::OffsetWithoutPitch),
            None => None,
        };
        let mut params = ImageParams {
            depth: size.depth,
            layers: request.layers,
            samples: request.samples,
            tile_mode: request.tile_mode,
            ubwc: request.ubwc,
            is_3d: request.is_3d || size.depth > 1,
            is_mutable: request.is_mutable,
            import,
            ..ImageParams::new(request.format, size.width, size.height)
        };
        params.levels = match request.levels {
            LevelCount::Number(levels) => levels,
            LevelCount::All => params.full_levels(),
        };
        let layout = ImageLayout::new(&request.gpu.gpu, &params)?;
        let texels =
            request.texels.iter().map(|texel| texel_answer(&layout, texel)).collect::<Result<_, _>>()?;
        let bytes = request.bytes.iter().map(|&offset| byte_answer(&layout, offset)).collect();
        Ok(LayoutView { gpu_name: request.gpu.name.clone(), layout, texels, bytes })
    }

    /// For people.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let layout = &self.layout;
        let params = layout.params();
        let generation = layout.gpu().generation;
        let format = params.format;
        writeln!(
            out,
            "{}",
            style.bold(&format!("{} {} on {} ({})", format, image_size(params), self.gpu_name, generation))
        )?;
        let (block_width, block_height) = format.block_size();
        let texel = match format.block_size() {
            (1, 1) if params.samples > 1 => {
                format!(
                    "{} per texel with {}",
                    amount(layout.texel_bytes, "byte"),
                    amount(params.samples, "sample")
                )
            }
            (1, 1) => format!("{} per texel", amount(layout.texel_bytes, "byte")),
            _ => format!(
                "{} per block of {block_width} x {block_height} texels",
                amount(layout.texel_bytes, "byte")
            ),
        };
        let ubwc = if layout.flags.is_some() { " with UBWC" } else { "" };
        writeln!(out, "{}{ubwc}, {texel}", layout.tile_mode.name(generation))?;
        write!(out, "size {0} ({0:#x}), pitch aligned to {1}", layout.size, layout.pitch_align)?;
        match layout.base_align {
            Some(align) => writeln!(out, ", address aligned to {align}")?,
            None => writeln!(out)?,
        }
        if layout.layer_size > 0 && params.layers > 1 {
            writeln!(
                out,
                "{}, each {1} ({1:#x}) bytes from the next",
                amount(params.layers, "layer"),
                layout.layer_size
            )?;
        }
        if let Some(flags) = layout.flags {
            let (width, height) = flags.block;
            writeln!(
                out,
                "flags: one byte per {width} x {height} texels, {} per layer, {} in all, before the texels",
                amount(flags.layer_size, "byte"),
                amount(flags.size, "byte")
            )?;
        }
        writeln!(out)?;
        self.level_table(out)?;
        for note in self.notes() {
            writeln!(out, "\nnote: {note}")?;
        }
        self.answers_text(out)
    }

    /// Tiles of the image keep the channels of a texel apart.
    fn splits_channels(&self) -> bool {
        self.layout.splits_channels() && self.layout.tile_mode == TileMode::Tile3
    }

    fn level_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let layout = &self.layout;
        let params = layout.params();
        let slice = if params.is_3d { "slice" } else { "bytes" };
        let mut rows =
            vec![["level", "size", "offset", "pitch", "rows", slice, "tiling"].map(str::to_owned).to_vec()];
        if layout.flags.is_some() {
            rows[0].extend(["flags", "pitch", "rows", "bytes"].map(str::to_owned));
        }
        for (number, level) in layout.levels.iter().enumerate() {
            let mut row = vec![
                number.to_string(),
                level_size(level, params.is_3d),
                format!("{:#x}", level.offset),
                level.pitch.to_string(),
                level.rows.to_string(),
                level.slice_size.to_string(),
                level.tile_mode.name(layout.gpu().generation).to_owned(),
            ];
            if layout.flags.is_some() {
                row.extend(match (level.flags, layout.flag_offset(number as u32, 0)) {
                    (Some(FlagLevel { pitch, rows, size, .. }), Some(offset)) => {
                        [format!("{offset:#x}"), pitch.to_string(), rows.to_string(), size.to_string()]
                    }
                    _ => ["-", "", "", ""].map(str::to_owned),
                });
            }
            rows.push(row);
        }
        write_columns(&rows, out)
    }

    /// What the numbers do not say.
    fn notes(&self) -> Vec<String> {
        let layout = &self.layout;
        let params = layout.params();
        let format = params.format;
        let mut notes = Vec::new();
        match layout.ubwc_refusal {
            None => {}
            Some(UbwcRefusal::Narrow) => {
                notes.push("no UBWC: the image is less than 16 texels wide".to_owned())
            }
            Some(UbwcRefusal::VolumeLevels) => {
                notes.push(
                    "no UBWC: drivers do not use it for images of three dimensions with several levels"
                        .to_owned(),
                );
            }
            Some(UbwcRefusal::TexelBytes(bytes)) => {
                notes.push(format!("no UBWC: there is none for texels of {}", amount(bytes, "byte")));
            }
        }
        if layout.flags.is_some() {
            let what = match format.ubwc_support(layout.gpu(), params.samples) {
                UbwcSupport::Yes => None,
                UbwcSupport::No => Some("drivers do not use UBWC for this format on this GPU"),
                UbwcSupport::TurnipOnly => {
                    Some("of the drivers Turnip uses UBWC for this format, freedreno does not")
                }
                UbwcSupport::Planar => {
                    Some("drivers use UBWC for this format as a plane of a YUV image only")
                }
                UbwcSupport::UnsampledStencil => {
                    Some("drivers use UBWC for this format only if stencil is not sampled")
                }
            };
            notes.extend(what.map(str::to_owned));
        }
        if layout.tile_mode != params.tile_mode {
            notes.push(format!(
                "linear: the image is less than 16 texels wide, so {} is not used",
                params.tile_mode.name(layout.gpu().generation)
            ));
        }
        if self.splits_channels() {
            notes.push(
                "a tile keeps the two channels of a texel 64 bytes apart; --mutable keeps them together"
                    .to_owned(),
            );
        }
        if format.swap() != ColorSwap::Wzyx && layout.tile_mode != TileMode::Linear && !params.is_mutable {
            notes.push(format!(
                "tiled levels have the channels in the order RGBA, linear ones in that of the name (swap {})",
                format.swap().name()
            ));
        }
        notes
    }

    fn answers_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.texels.is_empty() || !self.bytes.is_empty() {
            writeln!(out)?;
        }
        let params = self.layout.params();
        let third = if params.is_3d { "slice" } else { "layer" };
        let place = |level: u32, x: u32, y: u32, z: u32, sample: u32| {
            let z = if params.is_3d || params.layers > 1 { format!(", {third} {z}") } else { String::new() };
            let sample = if params.samples > 1 { format!(", sample {sample}") } else { String::new() };
            format!("texel {x},{y}{z}{sample} of level {level}")
        };
        for texel in &self.texels {
            let name = place(texel.level, texel.x, texel.y, texel.z, texel.sample);
            write!(out, "{name}: offset {}, {}", texel.offset, amount(texel.bytes, "byte"))?;
            if let Some(second) = &texel.second_offset {
                write!(out, ", the second at {second}")?;
            }
            if let Some([x, y]) = texel.in_block {
                write!(out, ", {x},{y} in its block")?;
            }
            writeln!(out)?;
        }
        for ByteAnswer { offset, owner } in &self.bytes {
            let owner = match owner {
                ByteOwner::Texel { level, x, y, z, sample, byte } => {
                    format!("byte {byte} of {}", place(*level, *x, *y, *z, *sample))
                }
                ByteOwner::Flags { level: Some(level), layer } => {
                    format!("flags of level {level}, layer {layer}")
                }
                ByteOwner::Flags { level: None, layer } => format!("flags of layer {layer}, of no level"),
                ByteOwner::Padding => "not used".to_owned(),
                ByteOwner::Outside => "not in the image".to_owned(),
                ByteOwner::Unknown { level } => {
                    format!("level {level}; the order of its texels is not known")
                }
            };
            writeln!(out, "byte {offset}: {owner}")?;
        }
        Ok(())
    }

    /// One object.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let layout = &self.layout;
        let params = layout.params();
        let generation = layout.gpu().generation;
        let object = LayoutJson {
            heading: Heading::of_plain_object("unwedge.layout", SCHEMA),
            gpu: &self.gpu_name,
            generation,
            format: params.format.name(),
            width: params.width,
            height: params.height,
            depth: params.depth,
            layers: params.layers,
            samples: params.samples,
            is_3d: params.is_3d,
            tile_mode: layout.tile_mode.name(generation),
            tile_all: layout.tile_all,
            ubwc: layout.flags.is_some(),
            texel_bytes: layout.texel_bytes,
            pitch_align: layout.pitch_align,
            base_align: layout.base_align,
            layer_size: (!params.is_3d).then_some(layout.layer_size),
            flag_block: layout.flags.map(|flags| [flags.block.0, flags.block.1]),
            flag_layer_size: layout.flags.map(|flags| flags.layer_size),
            flags_size: layout.flags.map(|flags| flags.size),
            size: layout.size,
            levels: layout
                .levels
                .iter()
                .enumerate()
                .map(|(n, level)| level_json(layout, n as u32, level))
                .collect(),
            texels: &self.texels,
            bytes: &self.bytes,
            ubwc_refusal: layout.ubwc_refusal.map(|refusal| match refusal {
                UbwcRefusal::Narrow => "narrow",
                UbwcRefusal::VolumeLevels => "volume_levels",
                UbwcRefusal::TexelBytes(_) => "texel_bytes",
            }),
            ubwc_support: match params.format.ubwc_support(layout.gpu(), params.samples) {
                UbwcSupport::Yes => "yes",
                UbwcSupport::No => "no",
                UbwcSupport::TurnipOnly => "turnip_only",
                UbwcSupport::Planar => "planar",
                UbwcSupport::UnsampledStencil => "unsampled_stencil",
            },
            split_channels: self.splits_channels(),
        };
        serde_json::to_writer(&mut *out, &object)?;
        writeln!(out)
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LayoutJson<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    gpu: &'a str,
    #[serde(serialize_with = "generation_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    generation: Generation,
    format: &'a str,
    width: u32,
    height: u32,
    depth: u32,
    layers: u32,
    samples: u32,
    is_3d: bool,
    tile_mode: &'a str,
    tile_all: bool,
    ubwc: bool,
    texel_bytes: u32,
    pitch_align: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_align: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag_block: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag_layer_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags_size: Option<u64>,
    size: u64,
    levels: Vec<LevelJson>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    texels: &'a [TexelAnswer],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    bytes: &'a [ByteAnswer],
    #[serde(skip_serializing_if = "Option::is_none")]
    ubwc_refusal: Option<&'static str>,
    ubwc_support: &'static str,
    split_channels: bool,
}

fn generation_name<S: serde::Serializer>(generation: &Generation, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(generation.name())
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LevelJson {
    width: u32,
    height: u32,
    depth: u32,
    offset: u64,
    pitch: u64,
    rows: u32,
    slice_size: u64,
    tile_mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<FlagJson>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlagJson {
    offset: u64,
    pitch: u32,
    rows: u32,
    size: u64,
}

fn level_json(layout: &ImageLayout, number: u32, level: &LevelLayout) -> LevelJson {
    let flags = level.flags.zip(layout.flag_offset(number, 0));
    LevelJson {
        width: level.width,
        height: level.height,
        depth: level.depth,
        offset: level.offset,
        pitch: level.pitch,
        rows: level.rows,
        slice_size: level.slice_size,
        tile_mode: level.tile_mode.name(layout.gpu().generation),
        flags: flags.map(|(flags, offset)| FlagJson {
            offset,
            pitch: flags.pitch,
            rows: flags.rows,
            size: flags.size,
        }),
    }
}

/// `1024 x 1, 11 levels`
fn image_size(params: &ImageParams) -> String {
    let mut text = format!("{} x {}", params.width, params.height);
    if params.is_3d {
        text += &format!(" x {}", params.depth);
    }
    for (number, noun) in [(params.levels, "level"), (params.layers, "layer"), (params.samples, "sample")] {
        if number > 1 {
            text += &format!(", {}", amount(number, noun));
        }
    }
    text
}

fn level_size(level: &LevelLayout, is_3d: bool) -> String {
    let flat = format!("{} x {}", level.width, level.height);
    if is_3d { format!("{flat} x {}", level.depth) } else { flat }
}

/// A number with its noun, whose plural ends with s.
fn amount(count: impl Into<u64>, noun: &str) -> String {
    counted(count.into(), noun, &format!("{noun}s")).to_string()
}

/// Columns, right-aligned but for the tiling.
fn write_columns(rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    const TILING: usize = 6;
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = String::new();
        for (column, (text, width)) in row.iter().zip(&widths).enumerate() {
            if column > 0 {
                line += "  ";
            }
            line += &if column == TILING { format!("{text:<width$}") } else { format!("{text:>width$}") };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn texel_answer(layout: &ImageLayout, texel: &TexelRequest) -> Result<TexelAnswer, LayoutViewError> {
    let &TexelRequest { x, y, layer, sample, level } = texel;
    let at = layout.addresser(level)?;
    let (block_width, block_height) = layout.params().format.block_size();
    let outside = || {
        let levels = &layout.levels[level as usize];
        let third = if layout.params().is_3d { "slice" } else { "layer" };
        LayoutViewError::Outside {
            texel: format!("{x},{y},{layer},{sample}"),
            level,
            size: format!(
                "{} x {} texels, {}, {}",
                levels.width,
                levels.height,
                amount(at.layers(), third),
                amount(at.samples(), "sample")
            ),
        }
    };
    let inside = layout.levels.get(level as usize).is_some_and(|level| x < level.width && y < level.height);
    let offset = at
        .checked_offset(x / block_width, y / block_height, layer, sample)
        .filter(|_| inside)
        .ok_or_else(outside)?;
    let in_block = layout.params().format.is_block().then_some([x % block_width, y % block_height]);
    Ok(TexelAnswer {
        level,
        x,
        y,
        z: layer,
        sample,
        offset: Hex::short(offset),
        second_offset: at.second_byte().map(|second| Hex::short(offset + u64::from(second))),
        bytes: at.sample_bytes(),
        in_block,
    })
}

fn byte_answer(layout: &ImageLayout, offset: u64) -> ByteAnswer {
    let params = layout.params();
    let start = params.import.map_or(0, |import| import.offset);
    let flags = layout.flags.filter(|flags| offset >= start && offset - start < flags.size);
    let owner = if offset < start || offset >= layout.size {
        ByteOwner::Outside
    } else if let Some(flags) = flags {
        let (layer, rest) = ((offset - start) / flags.layer_size, (offset - start) % flags.layer_size);
        let level = layout.levels.iter().position(|level| {
            level.flags.is_some_and(|flags| rest >= flags.offset && rest - flags.offset < flags.size)
        });
        ByteOwner::Flags { level: level.map(|level| level as u32), layer }
    } else {
        texel_owner(layout, offset)
    };
    ByteAnswer { offset: Hex::short(offset), owner }
}

/// The texel of a byte after the flags.
fn texel_owner(layout: &ImageLayout, offset: u64) -> ByteOwner {
    let (block_width, block_height) = layout.params().format.block_size();
    for (number, level) in layout.levels.iter().enumerate() {
        let number = number as u32;
        match layout.addresser(number) {
            Ok(at) => {
                if let Some(place) = at.texel_at(offset) {
                    return ByteOwner::Texel {
                        level: number,
                        x: place.x * block_width,
                        y: place.y * block_height,
                        z: place.layer,
                        sample: place.sample,
                        byte: place.byte,
                    };
                }
            }
            Err(_) => {
                let stride = layout.layer_stride(level);
                let in_layer = offset.checked_sub(level.offset).and_then(|rest| rest.checked_rem(stride));
                if in_layer.is_some_and(|rest| rest < level.slice_size) {
                    return ByteOwner::Unknown { level: number };
                }
            }
        }
    }
    ByteOwner::Padding
}

crate::schema::shapes!(object: LayoutJson<'_>);
