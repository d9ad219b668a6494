//! `data/adreno/formats.txt` as Rust source: the rows that `adreno::format` includes, and tables of the sRGB curve.
//!
//! Numbers of hardware formats are those of the enums in the register tables.

use crate::model::{FactsFile, FactsItem};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Numbers of hardware enums by name.
pub struct HardwareEnums(HashMap<String, u64>);

impl HardwareEnums {
    /// The values of every enum of these files.
    pub fn of(files: &[FactsFile]) -> HardwareEnums {
        let mut values = HashMap::new();
        for item in files.iter().flat_map(|file| &file.items) {
            let FactsItem::Enum(item) = item else { continue };
            for value in &item.values {
                if let Some(number) = value.value {
                    values.entry(value.name.clone()).or_insert(number);
                }
            }
        }
        HardwareEnums(values)
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        self.0.get(name).copied().ok_or_else(|| format!("{name} is not in the register tables"))
    }
}

/// The source of the table of formats.
pub fn compile(text: &str, enums: &HardwareEnums) -> Result<String, String> {
    let mut rows = String::new();
    let mut names = HashSet::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty())
    {
        let row = row(line, enums).map_err(|e| format!("{}: {e}", at + 1))?;
        let name = line.split_whitespace().next().unwrap_or_default();
        if !names.insert(name) {
            return Err(format!("{}: {name} twice", at + 1));
        }
        rows.push_str(&row);
    }
    Ok(format!(
        "/// Every format, as `data/adreno/formats.txt` has them.\nstatic ROWS: &[FormatRow] = &[\n{rows}];\n"
    ))
}

/// One line as a value of `FormatRow`.
fn row(line: &str, enums: &HardwareEnums) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let mut word = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
    let (name, channels, swizzle) = (word("the name")?, word("the channels")?, word("the swizzle")?);
    let mut uses = ["None".to_owned(), "None".to_owned(), "None".to_owned()];
    let (mut swap, mut space, mut depth) = ("WZYX", "Linear", "None".to_owned());
    let (mut ubwc, mut cast, mut blit, mut vulkan) = ("Never", "None".to_owned(), "None".to_owned(), None);
    for option in words {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            "srgb" => space = "Srgb",
            "zs" => space = "DepthStencil",
            "yuv" => space = "Yuv",
            "swap" => swap = value,
            "depth" => depth = format!("Some({})", enums.number(&format!("DEPTH6_{value}"))?),
            "ubwc" => ubwc = ubwc_rule(value)?,
            "cast" => {
                let (base, class) = value.split_once(':').ok_or("cast= wants BASE:CLASS")?;
                cast = format!("Some(({base:?}, CastClass::{}))", cast_class(class)?);
            }
            "blit" => blit = format!("Some({})", enums.number(&format!("R2D_{value}"))?),
            "vk" => vulkan = Some(if value.is_empty() { name } else { value }),
            _ if !key.is_empty() && key.chars().all(|c| "vtr".contains(c)) => {
                let number = enums.number(&format!("FMT6_{value}"))?;
                for (place, _) in "vtr".chars().enumerate().filter(|(_, c)| key.contains(*c)) {
                    uses[place] = format!("Some(HardwareFormat({number:#x}))");
                }
            }
            _ => return Err(format!("{option} is not an option")),
        }
    }
    let swap = match enums.number(swap)? {
        0 => "Wzyx",
        1 => "Wxyz",
        2 => "Zyxw",
        3 => "Xyzw",
        _ => return Err("a swap has two bits".to_owned()),
    };
    let [vertex, texture, render] = uses;
    let swizzle = self::swizzle(swizzle)?;
    let channels = self::channels(channels)?;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "    FormatRow {{ name: {name:?}, vulkan: {vulkan:?}, texel: {channels}, swizzle: [{swizzle}], space: ColorSpace::{space}, \
         vertex: {vertex}, texture: {texture}, render: {render}, swap: ColorSwap::{swap}, depth: {depth}, blit: {blit}, \
         ubwc: UbwcRule::{ubwc}, cast: {cast} }},"
    );
    Ok(text)
}

fn ubwc_rule(word: &str) -> Result<&'static str, String> {
    Ok(match word {
        "yes" => "Always",
        "turnip" => "TurnipOnly",
        "8bpp" => "EightBit",
        "a740" => "Compatible",
        "planar" => "Planar",
        "z24_msaa" => "DepthMultisampled",
        "z24_stencil" => "Stencil",
        _ => return Err(format!("ubwc={word} is not known")),
    })
}

fn cast_class(word: &str) -> Result<&'static str, String> {
    Ok(match word {
        "UNORM" => "Unorm",
        "SNORM" => "Snorm",
        "INT" => "Int",
        _ => return Err(format!("{word} is not a class of casts")),
    })
}

/// `x001` as four sources.
fn swizzle(word: &str) -> Result<String, String> {
    let source = |c: char| match c {
        'x' => Ok("Source::Channel(0)"),
        'y' => Ok("Source::Channel(1)"),
        'z' => Ok("Source::Channel(2)"),
        'w' => Ok("Source::Channel(3)"),
        '0' => Ok("Source::Zero"),
        '1' => Ok("Source::One"),
        '_' => Ok("Source::Absent"),
        _ => Err(format!("{word} is not a swizzle")),
    };
    let sources: Vec<&str> = word.chars().map(source).collect::<Result<_, String>>()?;
    if sources.len() != 4 {
        return Err(format!("{word} is not a swizzle"));
    }
    Ok(sources.join(", "))
}

/// `un8+un8` or the name of a codec, as a value of `TexelShape`.
fn channels(word: &str) -> Result<String, String> {
    let block = |codec: &str| Ok(format!("TexelShape::Block(BlockCodec::{codec})"));
    match word {
        "rgb9e5" => return Ok("TexelShape::SharedExponent".to_owned()),
        "422_gbgr" => return block("Gbgr422"),
        "422_bgrg" => return block("Bgrg422"),
        "bc1" => return block("Bc1"),
        "bc2" => return block("Bc2"),
        "bc3" => return block("Bc3"),
        "bc4_un" => return block("Bc4 { signed: false }"),
        "bc4_sn" => return block("Bc4 { signed: true }"),
        "bc5_un" => return block("Bc5 { signed: false }"),
        "bc5_sn" => return block("Bc5 { signed: true }"),
        "bc6h_uf" => return block("Bc6h { signed: false }"),
        "bc6h_sf" => return block("Bc6h { signed: true }"),
        "bc7" => return block("Bc7"),
        "etc1" => return block("Etc1"),
        "etc2_rgb" => return block("Etc2Rgb"),
        "etc2_rgba1" => return block("Etc2Rgba1"),
        "etc2_rgba" => return block("Etc2Rgba"),
        "eac_r_un" => return block("EacR { signed: false }"),
        "eac_r_sn" => return block("EacR { signed: true }"),
        "eac_rg_un" => return block("EacRg { signed: false }"),
        "eac_rg_sn" => return block("EacRg { signed: true }"),
        _ => {}
    }
    if let Some(size) = word.strip_prefix("astc:") {
        let (width, height) = size.split_once('x').ok_or_else(|| format!("{word} has no size"))?;
        let number = |text: &str| text.parse::<u8>().map_err(|e| format!("{word}: {e}"));
        return block(&format!("Astc {{ width: {}, height: {} }}", number(width)?, number(height)?));
    }
    let mut list = String::new();
    let mut shift = 0u32;
    for channel in word.split('+') {
        let digits =
            channel.find(|c: char| c.is_ascii_digit()).ok_or_else(|| format!("{channel} has no bits"))?;
        let (kind, bits) = channel.split_at(digits);
        let bits: u32 = bits.parse().map_err(|e| format!("{channel}: {e}"))?;
        let kind = match kind {
            "un" => "Unorm",
            "sn" => "Snorm",
            "ui" => "Uint",
            "si" => "Sint",
            "us" => "Uscaled",
            "ss" => "Sscaled",
            "f" => "Float",
            "fx" => "Fixed",
            "x" => "Unused",
            _ => return Err(format!("{channel} is not a channel")),
        };
        let _ = write!(list, "Channel {{ kind: ChannelKind::{kind}, shift: {shift}, bits: {bits} }}, ");
        shift += bits;
    }
    if shift == 0 || shift > 128 || !shift.is_multiple_of(8) {
        return Err(format!("{word} has {shift} bits"));
    }
    Ok(format!("TexelShape::Channels(&[{list}])"))
}

/// The sRGB curve for 8 bits: what each code is as a linear value, and for each code but 0 the least `f32` that is encoded as it.
pub fn srgb_tables() -> String {
    let to_linear = |s: f64| if s <= 0.04045 { s / 12.92 } else { ((s + 0.055) / 1.055).powf(2.4) };
    let mut text =
        String::from("/// Linear values of the codes, as bits of `f32`.\nstatic TO_LINEAR: [u32; 256] = [\n");
    for code in 0..256 {
        let _ = writeln!(text, "    {:#x},", (to_linear(f64::from(code) / 255.0) as f32).to_bits());
    }
    text.push_str(
        "];\n/// The least `f32` that is encoded as code 1 and up, as bits.\nstatic STEPS: [u32; 255] = [\n",
    );
    for code in 1..256 {
        let edge = to_linear((f64::from(code) - 0.5) / 255.0);
        let mut least = edge as f32;
        if f64::from(least) < edge {
            least = f32::from_bits(least.to_bits() + 1);
        }
        let _ = writeln!(text, "    {:#x},", least.to_bits());
    }
    text.push_str("];\n");
    text
}
