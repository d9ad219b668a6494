//! `unwedge layout`: where the bytes of an image are.

use crate::args::{Global, Layout};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use unwedge_view::layout::{self, LayoutRequest, LayoutView};

/// Runs the command.
pub fn run(args: &Layout, global: &Global) -> Result<Outcome, Failure> {
    let (true, Some(gpu), Some(format), Some(size)) = (!args.formats, &args.gpu, args.format, args.size)
    else {
        let mut out = Output::open(global, !args.json);
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = if args.json { layout::formats_json(&mut out) } else { layout::formats_text(&mut out) };
        out.finish()?;
        return Ok(Outcome::Complete);
    };
    let request = LayoutRequest {
        gpu: gpu.clone(),
        format,
        size,
        levels: args.levels,
        layers: args.layers,
        samples: args.samples,
        tile_mode: args.tile,
        ubwc: args.ubwc,
        is_3d: args.is_3d,
        is_mutable: args.mutable,
        pitch: args.pitch,
        offset: args.offset,
        texels: args.texel.clone(),
        bytes: args.at.clone(),
    };
    let view = LayoutView::of(&request).map_err(|e| Failure::Usage(e.to_string()))?;
    let mut out = Output::open(global, false);
    let style = out.style;
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = if args.json { view.json(&mut out) } else { view.text(style, &mut out) };
    out.finish()?;
    Ok(Outcome::Complete)
}
