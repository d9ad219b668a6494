//! Graphics pipelines of scripts: what is attached and bound, fixed state, and draws.

use super::script::Lines;
use super::{AmberReason, Image, MAX_BYTES, Result, ScriptShaders};
use std::collections::BTreeMap;
use unwedge_shader::interp::TexelFormat;
use unwedge_shader::ir::Stage;

/// The size of attachments that a script does not give one.
const DEFAULT_SIZE: u32 = 250;

/// A shader of a graphics pipeline.
#[derive(Debug, Clone, Default)]
pub struct AttachedShader {
    /// Its name in the script.
    pub shader: String,
    /// The entry point.
    pub entry: Option<String>,
    /// Specialization constants: number and bits.
    pub specialization: Vec<(u32, u64)>,
}

/// The rectangle that clip coordinates are mapped to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Viewport {
    /// The upper left corner.
    pub at: [f64; 2],
    /// Width and height.
    pub size: [f64; 2],
    /// The depths of the near and the far plane.
    pub depth: [f64; 2],
}

/// The depth test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DepthState {
    /// Whether fragments are tested.
    pub test: bool,
    /// Whether their depth is written.
    pub write: bool,
    /// The comparison, as the script names it.
    pub compare: Option<String>,
    /// Whether depths are clamped instead of clipped.
    pub clamp: bool,
    /// Constant, clamp and slope of the bias.
    pub bias: Option<[f64; 3]>,
    /// The least and the greatest depth that passes.
    pub bounds: Option<[f64; 2]>,
}

/// The attachments, vertex data and fixed state of a graphics pipeline.
#[derive(Debug, Clone, Default)]
pub struct GraphicsState {
    /// Its shaders by stage.
    pub shaders: Vec<(Stage, AttachedShader)>,
    /// Images of colours by location.
    pub colours: BTreeMap<u32, String>,
    /// Images that colours are resolved to.
    pub resolves: Vec<String>,
    /// The image of depth and stencil.
    pub depth_stencil: Option<String>,
    /// Buffers of vertices by location.
    pub vertices: BTreeMap<u32, String>,
    /// The buffer of indices.
    pub indices: Option<String>,
    /// Sampled images by descriptor set and binding, with their samplers.
    pub sampled: BTreeMap<(u32, u32), (String, String)>,
    /// Texel buffers by descriptor set and binding.
    pub texel_buffers: BTreeMap<(u32, u32), String>,
    /// Width and height of attachments.
    pub size: Option<[u32; 2]>,
    /// The viewport; all of the attachments if there is none.
    pub viewport: Option<Viewport>,
    /// How polygons are drawn, if not filled.
    pub polygon_mode: Option<String>,
    /// Vertices of a patch.
    pub patch_vertices: Option<u32>,
    /// The depth test.
    pub depth: Option<DepthState>,
}

/// A draw.
#[derive(Debug, Clone, PartialEq)]
pub enum Draw {
    /// A rectangle in pixels.
    Rect {
        /// The upper left corner.
        at: [f64; 2],
        /// Width and height.
        size: [f64; 2],
    },
    /// Rectangles side by side.
    Grid {
        /// The upper left corner.
        at: [f64; 2],
        /// Width and height.
        size: [f64; 2],
        /// Columns and rows.
        cells: [u32; 2],
    },
    /// Vertices of the pipeline's buffers.
    Array {
        /// The topology, as the script names it.
        topology: String,
        /// Whether indices choose the vertices.
        indexed: bool,
        /// The first vertex or index.
        start: u32,
        /// How many; all of them if the script does not say.
        count: Option<u32>,
    },
    /// All attachments are set to the clear values.
    Clear {
        /// Red, green, blue and alpha in units of 1/255.
        colour: [f64; 4],
        /// The depth.
        depth: f64,
    },
}

/// The stage of a shader, as scripts name it.
pub(super) fn stage(name: &str) -> Option<Stage> {
    Some(match name {
        "vertex" => Stage::Vertex,
        "tessellation_control" => Stage::TessControl,
        "tessellation_evaluation" => Stage::TessEval,
        "geometry" => Stage::Geometry,
        "fragment" => Stage::Fragment,
        "compute" => Stage::Compute,
        _ => return None,
    })
}

impl GraphicsState {
    /// Reads a line of a graphics pipeline; `false` if it is not one of these.
    pub(super) fn line(
        &mut self,
        lines: &mut Lines<'_>,
        words: &[&str],
        shaders: &ScriptShaders,
    ) -> Result<bool> {
        match words {
            ["ATTACH", shader, options @ ..] => {
                let Some(&stage) = shaders.get(*shader) else {
                    return lines.fail(AmberReason::Syntax(format!("shader {shader} is not defined")));
                };
                let mut attached =
                    AttachedShader { shader: (*shader).to_owned(), ..AttachedShader::default() };
                lines.attach(options, &mut attached.entry, &mut attached.specialization)?;
                // A derived pipeline replaces the shader of the stage.
                self.shaders.retain(|(other, _)| *other != stage);
                self.shaders.push((stage, attached));
            }
            ["BIND", "BUFFER", name, "AS", "color", "LOCATION", location] => {
                self.colours.insert(lines.number(location)?, (*name).to_owned());
            }
            ["BIND", "BUFFER", name, "AS", "resolve"] => self.resolves.push((*name).to_owned()),
            ["BIND", "BUFFER", name, "AS", "depth_stencil"] => self.depth_stencil = Some((*name).to_owned()),
            [
                "BIND",
                "BUFFER",
                name,
                "AS",
                "combined_image_sampler",
                "SAMPLER",
                sampler,
                "DESCRIPTOR_SET",
                set,
                "BINDING",
                binding,
            ] => {
                let point = lines.binding(set, binding)?;
                self.sampled.insert(point, ((*name).to_owned(), (*sampler).to_owned()));
            }
            [
                "BIND",
                "BUFFER",
                name,
                "AS",
                "uniform_texel_buffer",
                "DESCRIPTOR_SET",
                set,
                "BINDING",
                binding,
            ] => {
                let point = lines.binding(set, binding)?;
                self.texel_buffers.insert(point, (*name).to_owned());
            }
            ["VERTEX_DATA", name, "LOCATION", location] => {
                self.vertices.insert(lines.number(location)?, (*name).to_owned());
            }
            ["INDEX_DATA", name] => self.indices = Some((*name).to_owned()),
            ["FRAMEBUFFER_SIZE", width, height] => {
                self.size = Some([lines.number(width)?, lines.number(height)?]);
            }
            ["VIEWPORT", x, y, "SIZE", width, height, rest @ ..] => {
                let depth = match rest {
                    [] => [0.0, 1.0],
                    ["MIN_DEPTH", least, "MAX_DEPTH", most] => [lines.number(least)?, lines.number(most)?],
                    _ => return Ok(false),
                };
                let at = [lines.number(x)?, lines.number(y)?];
                let size = [lines.number(width)?, lines.number(height)?];
                self.viewport = Some(Viewport { at, size, depth });
            }
            ["POLYGON_MODE", mode] => self.polygon_mode = Some((*mode).to_owned()),
            ["PATCH_CONTROL_POINTS", count] => self.patch_vertices = Some(lines.number(count)?),
            ["DEPTH"] => self.depth = Some(depth(lines)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The images of all attachments.
    fn attachments(&self) -> impl Iterator<Item = &String> {
        self.colours.values().chain(&self.resolves).chain(&self.depth_stencil)
    }

    /// Gives attachments that were declared without a size that of this pipeline.
    pub(super) fn size_attachments(
        &self,
        images: &mut BTreeMap<String, Image>,
    ) -> std::result::Result<(), AmberReason> {
        let [width, height] = self.size.unwrap_or([DEFAULT_SIZE; 2]);
        for name in self.attachments() {
            let Some(image) = images.get_mut(name) else {
                return Err(AmberReason::Syntax(format!("image {name} is not defined")));
            };
            if image.size[0] != 0 {
                continue;
            }
            let bytes = TexelFormat::parse(&image.format).map_or(0, |format| format.bytes());
            let texels = (width as usize).saturating_mul(height as usize);
            if bytes == 0 || texels.saturating_mul(bytes) > MAX_BYTES {
                return Err(AmberReason::Unsupported(format!("an attachment of {}", image.format)));
            }
            image.size = [width, height, 1];
            image.bytes = vec![0; texels * bytes];
            image.defined = vec![false; texels];
        }
        Ok(())
    }
}

fn switch(lines: &Lines<'_>, word: &str) -> Result<bool> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => lines.fail(AmberReason::Syntax(format!("{word} is neither on nor off"))),
    }
}

/// The lines of a depth test up to its end.
fn depth(lines: &mut Lines<'_>) -> Result<DepthState> {
    let mut state = DepthState::default();
    while let Some(words) = lines.next() {
        match words.as_slice() {
            ["END"] => return Ok(state),
            ["TEST", on] => state.test = switch(lines, on)?,
            ["WRITE", on] => state.write = switch(lines, on)?,
            ["CLAMP", on] => state.clamp = switch(lines, on)?,
            ["COMPARE_OP", name] => state.compare = Some((*name).to_owned()),
            ["BOUNDS", "min", least, "max", most] => {
                state.bounds = Some([lines.number(least)?, lines.number(most)?]);
            }
            ["BIAS", "constant", constant, "clamp", clamp, "slope", slope] => {
                state.bias = Some([lines.number(constant)?, lines.number(clamp)?, lines.number(slope)?]);
            }
            _ => return lines.unsupported(&words),
        }
    }
    lines.syntax(&["END is missing"])
}

fn pair(lines: &Lines<'_>, x: &str, y: &str) -> Result<[f64; 2]> {
    Ok([lines.number(x)?, lines.number(y)?])
}

impl Draw {
    /// The draw of a line `RUN pipeline …`, from the third word on; `None` if it is not a draw.
    pub(super) fn parse(lines: &Lines<'_>, words: &[&str]) -> Result<Option<Draw>> {
        Ok(Some(match words {
            ["DRAW_RECT", "POS", x, y, "SIZE", width, height] => {
                Draw::Rect { at: pair(lines, x, y)?, size: pair(lines, width, height)? }
            }
            ["DRAW_GRID", "POS", x, y, "SIZE", width, height, "CELLS", columns, rows] => Draw::Grid {
                at: pair(lines, x, y)?,
                size: pair(lines, width, height)?,
                cells: [lines.number(columns)?, lines.number(rows)?],
            },
            ["DRAW_ARRAY", "AS", topology, rest @ ..] => {
                let (indexed, rest) = match rest {
                    ["INDEXED", rest @ ..] => (true, rest),
                    _ => (false, rest),
                };
                let (start, count) = match rest {
                    [] => (0, None),
                    ["START_IDX", start] => (lines.number(start)?, None),
                    ["START_IDX", start, "COUNT", count] => {
                        (lines.number(start)?, Some(lines.number(count)?))
                    }
                    _ => return Ok(None),
                };
                Draw::Array { topology: (*topology).to_owned(), indexed, start, count }
            }
            _ => return Ok(None),
        }))
    }
}
