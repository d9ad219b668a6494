//! What a replay watches of draws: pictures after draws and passes, counts of fragments, edges, the history of a pixel.
//!
//! Never: changes what is drawn.

use super::coverage::Coverage;
use super::image::TargetPicture;
use super::passes::{PassImageName, PendingClears, RenderPass};
use super::pixel::PixelWatch;
use super::target::{TargetDetail, TargetPng, picture, target_name};
use crate::plural::counted;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unwedge_sim::adreno::{
    AdrenoMachine, DrawWatch, FragmentEvent, TargetImage, TargetName, WatchedBlit, WatchedResolve,
    WatchedWork, WindowPixel,
};
use unwedge_stream::adreno::AdrenoOp;

/// Layers of an image that frames show.
const MOST_LAYERS: u32 = 64;

/// Remarks on pictures that are kept.
const MOST_REMARKS: usize = 64;

/// Pixels of the pictures that the passes of a submit leave.
const MOST_FRAME_PIXELS: u64 = 1 << 28;

/// A picture that a pass left.
pub struct FramePicture {
    /// What it is called, without an ending.
    pub name: String,
    /// The PNG file, or why there is none.
    pub png: Result<Vec<u8>, String>,
}

/// Whether work is a draw.
pub(super) fn is_draw(op: AdrenoOp) -> bool {
    op.is_work() && other_work(op).is_none()
}

/// The name of work that is not a draw.
fn other_work(op: AdrenoOp) -> Option<&'static str> {
    match op {
        AdrenoOp::Blit => Some("a blit"),
        op if op.is_dispatch() => Some("a dispatch"),
        _ => None,
    }
}

/// A picture after a draw.
#[derive(Debug)]
pub(super) struct PendingPicture {
    wanted: TargetPicture,
    /// Its place among all images that are asked for.
    at: usize,
    /// Its draw is of the pass in work.
    in_pass: bool,
    pub(super) png: Option<Result<Vec<u8>, String>>,
}

/// Everything that is watched.
#[derive(Default)]
pub(super) struct Watches {
    pub(super) pictures: Vec<PendingPicture>,
    /// Pictures of passes are wanted.
    pub(super) takes_frames: bool,
    /// Those of the submit in work.
    pub(super) frames: Vec<FramePicture>,
    pub(super) coverage: Option<Coverage>,
    pub(super) pixel: Option<PixelWatch>,
    /// Remarks on pictures: those with unknown pixels.
    pub(super) remarks: Vec<String>,
    pass: RenderPass,
    clears: PendingClears,
    passes: u32,
    /// Draws, dispatches and blits so far.
    works: u64,
    /// Pixels of the pictures of the submit in work.
    frame_pixels: u64,
    /// The greatest layer that the draw in work has shaded fragments of.
    layer: u32,
    set: u64,
    submit: u32,
}

impl Watches {
    pub(super) fn wants(&mut self, at: usize, wanted: TargetPicture) {
        self.pictures.push(PendingPicture { wanted, at, in_pass: false, png: None });
    }

    /// Whether nothing is watched.
    pub(super) fn is_idle(&self) -> bool {
        self.pictures.is_empty() && !self.takes_frames && self.coverage.is_none() && self.pixel.is_none()
    }

    /// Whether contents of images are shown.
    pub(super) fn shows_texels(&self) -> bool {
        !self.pictures.is_empty() || self.takes_frames || self.pixel.is_some()
    }

    /// A submit begins.
    pub(super) fn begin_submit(&mut self, machine: &AdrenoMachine<'_>, set: u64, submit: u32) {
        (self.set, self.submit, self.passes, self.frame_pixels) = (set, submit, 0, 0);
        if let Some(pixel) = &mut self.pixel {
            pixel.begin_submit(machine, set, submit);
        }
    }

    /// It ended, or stopped.
    pub(super) fn end_submit(&mut self, machine: &AdrenoMachine<'_>) {
        self.end_pass(machine);
        if let Some(pixel) = &mut self.pixel {
            pixel.end_submit(machine);
        }
    }

    /// The pictures in the order in which they were asked for; the place of each.
    pub(super) fn take_pictures(&mut self) -> Vec<(usize, Result<Vec<u8>, String>)> {
        let works = counted(self.works, "draw, dispatch or blit was", "draws, dispatches and blits were");
        let missing = |wanted: &TargetPicture| {
            Err(format!("draw {} was not executed: {works}, counted from 0", wanted.draw))
        };
        let all = std::mem::take(&mut self.pictures);
        all.into_iter().map(|p| (p.at, p.png.unwrap_or_else(|| missing(&p.wanted)))).collect()
    }

    fn tracks_passes(&self) -> bool {
        self.takes_frames || self.pictures.iter().any(|picture| picture.wanted.stored)
    }

    fn draw_done(&mut self, machine: &AdrenoMachine<'_>, work: &WatchedWork) {
        if self.tracks_passes() {
            if self.pass.is_of_another(machine, work) {
                self.end_pass(machine);
            }
            self.pass.add(machine, work, self.layer, &mut self.clears);
        }
        let layers = self.layer + 1;
        self.layer = 0;
        for pending in self.pictures.iter_mut().filter(|pending| pending.wanted.draw == work.number) {
            let TargetPicture { name, stored, detail, .. } = pending.wanted;
            match machine.rendered_image(work.thread, name) {
                Some(_) if stored => pending.in_pass = true,
                Some(image) => {
                    let png = layer_picture(machine, &image, image.area(), detail, layers);
                    pending.finish(png, &mut self.remarks);
                }
                None => pending.finish(Err("the draw has no such image".to_owned()), &mut self.remarks),
            }
        }
    }

    /// A blit or dispatch was executed. Pictures after it, if asked for, fail: only draws have them.
    fn other_done(&mut self, number: u64, name: &str) {
        for pending in self.pictures.iter_mut().filter(|pending| pending.wanted.draw == number) {
            let target = target_name(pending.wanted.name);
            pending.png = Some(Err(format!("{target} after draw {number}: {number} is {name}, not a draw")));
        }
    }

    /// A pass is over: what it left is in memory.
    fn end_pass(&mut self, machine: &AdrenoMachine<'_>) {
        let pass = std::mem::take(&mut self.pass);
        for pending in self.pictures.iter_mut().filter(|pending| pending.in_pass) {
            pending.in_pass = false;
            let image = pass.images.get(&PassImageName::Target(pending.wanted.name));
            let png = match image.map(|image| (image, pass.shown_area(image))) {
                Some((image, Some(area))) => {
                    layer_picture(machine, &image.image, area, pending.wanted.detail, image.layers)
                }
                Some((_, None)) => Err("its pass does not store it".to_owned()),
                None => Err("its pass has no such image".to_owned()),
            };
            pending.finish(png, &mut self.remarks);
        }
        if !self.takes_frames || pass.images.is_empty() {
            return;
        }
        let number = self.passes;
        self.passes += 1;
        for (name, image) in &pass.images {
            let name = match name {
                PassImageName::Target(name @ TargetName::Colour(_)) => target_name(*name),
                PassImageName::Target(TargetName::Depth | TargetName::Stencil) => continue,
                // Depth that is stored is not among the images of a pass without draws.
                PassImageName::Stored(iova) => format!("stored-{iova:#x}"),
            };
            let Some(area) = pass.shown_area(image) else { continue };
            for layer in 0..image.layers.min(MOST_LAYERS) {
                let detail = TargetDetail { layer, ..TargetDetail::default() };
                let layer = if image.layers > 1 { format!("-layer{layer}") } else { String::new() };
                let name =
                    format!("set{:03}-submit{:03}-pass{number:03}-{name}{layer}", self.set, self.submit);
                let [width, height] = [0, 1].map(|axis| u64::from(area[1][axis] - area[0][axis]) + 1);
                self.frame_pixels = self.frame_pixels.saturating_add(width * height);
                let png = match self.frame_pixels <= MOST_FRAME_PIXELS {
                    true => picture(machine, &image.image, area, detail),
                    false => Err("the pictures of this submit have too many pixels".to_owned()),
                };
                let png = png.map_err(|why| format!("{name}: {why}"));
                let png = png.map(|png| with_remark(&name, png, &mut self.remarks));
                self.frames.push(FramePicture { name, png });
            }
        }
    }
}

impl PendingPicture {
    /// Takes the picture, or why there is none.
    fn finish(&mut self, png: Result<TargetPng, String>, remarks: &mut Vec<String>) {
        let png = png.map_err(|why| about(&self.wanted, &why));
        let name = format!("{} after draw {}", target_name(self.wanted.name), self.wanted.draw);
        self.png = Some(png.map(|png| with_remark(&name, png, remarks)));
    }
}

/// The picture of a layer of an image, if it has that layer: as registers say, or as draws have written it.
fn layer_picture(
    machine: &AdrenoMachine<'_>,
    image: &TargetImage,
    area: [[u32; 2]; 2],
    detail: TargetDetail,
    drawn: u32,
) -> Result<TargetPng, String> {
    let (layer, layers) = (detail.layer, image.layers().max(drawn));
    if layer >= layers {
        let layers = counted(layers.into(), "layer", "layers");
        return Err(format!("it has no layer {layer}: it has {layers}, counted from 0"));
    }
    picture(machine, image, area, detail)
}

/// The PNG of a picture. Adds a remark where some of its pixels are unknown.
pub(super) fn with_remark(
    name: &str,
    TargetPng { png, unknown }: TargetPng,
    remarks: &mut Vec<String>,
) -> Vec<u8> {
    if unknown != 0 && remarks.len() < MOST_REMARKS {
        let pixels = counted(unknown, "pixel is", "pixels are");
        remarks.push(format!("{name}: {pixels} unknown and transparent: nothing has written GMEM there"));
    }
    png
}

/// Why there is no picture of a draw's image.
fn about(wanted: &TargetPicture, why: &str) -> String {
    format!("{} after draw {}: {why}", target_name(wanted.name), wanted.draw)
}

/// What the machine is given: it and the replay look at the same.
#[derive(Clone)]
pub(super) struct SharedWatches(Arc<Mutex<Watches>>);

impl SharedWatches {
    pub(super) fn new(watches: Watches) -> SharedWatches {
        SharedWatches(Arc::new(Mutex::new(watches)))
    }

    /// What is watched; the machine and the replay have it in turn.
    pub(super) fn lock(&self) -> MutexGuard<'_, Watches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DrawWatch for SharedWatches {
    fn work(&mut self, machine: &AdrenoMachine<'_>, work: &WatchedWork, done: bool) {
        let mut watches = self.lock();
        if let Some(coverage) = &mut watches.coverage {
            coverage.work(machine, work);
        }
        if let Some(pixel) = &mut watches.pixel {
            pixel.work(machine, work, done);
        }
        if done {
            watches.works = watches.works.max(work.number + 1);
            match other_work(work.op) {
                Some(name) => watches.other_done(work.number, name),
                None => watches.draw_done(machine, work),
            }
        }
    }

    fn resolve(&mut self, machine: &AdrenoMachine<'_>, resolve: &WatchedResolve, done: bool) {
        let mut watches = self.lock();
        if let Some(pixel) = &mut watches.pixel {
            pixel.resolve(machine, resolve, done);
        }
        if done && watches.tracks_passes() {
            let Watches { pass, clears, .. } = &mut *watches;
            if resolve.clears && resolve.inside.in_gmem() {
                clears.add(resolve);
            }
            if resolve.stores {
                pass.store(resolve, clears);
            }
        }
    }

    fn blit(&mut self, machine: &AdrenoMachine<'_>, blit: &WatchedBlit, done: bool) {
        if let Some(pixel) = &mut self.lock().pixel {
            pixel.blit(machine, blit, done);
        }
    }

    fn wants_outlines(&self) -> bool {
        self.lock().coverage.is_some()
    }

    fn outline(&mut self, corners: &[[f64; 2]]) {
        if let Some(coverage) = &mut self.lock().coverage {
            coverage.outline(corners);
        }
    }

    fn shades(&mut self, pixel: WindowPixel) {
        let mut watches = self.lock();
        if let Some(coverage) = &mut watches.coverage {
            coverage.shades(pixel);
        }
        watches.layer = watches.layer.max(pixel[2]);
    }

    fn wants_pixel(&self, pixel: WindowPixel) -> bool {
        self.lock().pixel.as_ref().is_some_and(|watch| watch.wants(pixel))
    }

    fn fragment(&mut self, _: WindowPixel, event: &FragmentEvent<'_>) {
        if let Some(pixel) = &mut self.lock().pixel {
            pixel.fragment(event);
        }
    }
}
