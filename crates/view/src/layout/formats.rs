//! The formats that `unwedge layout` takes, with their numbers.

use super::write_columns;
use crate::json::{Heading, Hex};
use serde::Serialize;
use std::io::{self, Write};
use unwedge_hw::adreno::format::{Format, HardwareFormat};

/// The list for people.
///
/// # Errors
/// When `out` does not take it.
pub fn formats_text(out: &mut dyn Write) -> io::Result<()> {
    let number = |number: Option<HardwareFormat>| number.map_or("-".to_owned(), |n| format!("{:#x}", n.0));
    let heading = ["bytes", "block", "vertex", "texture", "render", "swap", "format", "vulkan"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for format in Format::all() {
        let (width, height) = format.block_size();
        rows.push(vec![
            format.block_bytes().to_string(),
            format!("{width}x{height}"),
            number(format.vertex_format()),
            number(format.texture_format()),
            number(format.render_format()),
            format.swap().name().to_owned(),
            format.name().to_owned(),
            format.vulkan_name().filter(|name| *name != format.name()).unwrap_or("").to_owned(),
        ]);
    }
    // The last column is not padded to the right.
    let longest = rows.iter().filter_map(|row| row.last()).map(String::len).max().unwrap_or(0);
    for row in &mut rows {
        if let Some(last) = row.last_mut() {
            *last = format!("{last:<longest$}");
        }
    }
    write_columns(&rows, out)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FormatJson {
    #[serde(rename = "type")]
    ty: &'static str,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    vulkan: Option<&'static str>,
    block_bytes: u32,
    block_width: u32,
    block_height: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    vertex_format: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    texture_format: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    render_format: Option<Hex>,
    swap: &'static str,
    srgb: bool,
}

/// The list as JSON lines.
///
/// # Errors
/// When `out` does not take it.
pub fn formats_json(out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Heading::of_plain_lines("unwedge.formats", super::SCHEMA))?;
    writeln!(out)?;
    let number = |number: Option<HardwareFormat>| number.map(|n| Hex::short(n.0.into()));
    for format in Format::all() {
        let (block_width, block_height) = format.block_size();
        let line = FormatJson {
            ty: "format",
            name: format.name(),
            vulkan: format.vulkan_name(),
            block_bytes: format.block_bytes(),
            block_width,
            block_height,
            vertex_format: number(format.vertex_format()),
            texture_format: number(format.texture_format()),
            render_format: number(format.render_format()),
            swap: format.swap().name(),
            srgb: format.is_srgb(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(())
}

crate::schema::shapes!(object: FormatJson);
