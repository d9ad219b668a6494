//! Render passes of a replay: which draws belong together, and what images they leave.
//!
//! A pass is the draws one after the other that have the same images. In GMEM it is those of all bins, until a bin comes
//! again, and the images that are stored. Never: takes pictures.

use std::collections::BTreeMap;
use unwedge_sim::adreno::{AdrenoMachine, TargetImage, TargetName, ThreadId, WatchedResolve, WatchedWork};

/// Images that a pass may have.
const MOST_IMAGES: usize = 64;
/// Bins that a pass may have.
const MOST_BINS: usize = 1 << 12;
/// Clears of GMEM that are kept until their pass is known.
const MOST_CLEARS: usize = 64;
/// Columns and rows that drivers align stores of GMEM to (Turnip: GMEM alignment of a6xx and a7xx). The render area may be smaller.
const STORE_ALIGNMENT: [u32; 2] = [16, 4];

/// An image of a pass: one of its draws', or one that GMEM was stored to and that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PassImageName {
    Target(TargetName),
    /// By its address.
    Stored(u64),
}

/// What is known of an image of a pass.
#[derive(Clone, Debug)]
pub(super) struct PassImage {
    /// As memory holds it.
    pub(super) image: TargetImage,
    /// What was rendered in memory, or stored.
    pub(super) area: Option<[[u32; 2]; 2]>,
    /// It was stored from GMEM.
    stored: bool,
    /// Layers that are known to be written, from the first.
    pub(super) layers: u32,
}

/// A pass so far.
#[derive(Debug, Default)]
pub(super) struct RenderPass {
    /// What tells it from others: addresses of the images of its draws.
    key: Option<Vec<(TargetName, u64)>>,
    in_gmem: bool,
    /// First pixels of the bins, the last one in work.
    bins: Vec<[u32; 2]>,
    pub(super) images: BTreeMap<PassImageName, PassImage>,
    /// The first and last draw.
    pub(super) draws: Option<[u64; 2]>,
    /// What viewports and clears of GMEM cover: the render area, as far as it is known.
    rendered: Option<[[u32; 2]; 2]>,
}

/// Clears of GMEM since the last draw or store, which may be of the pass of the next one.
#[derive(Debug, Default)]
pub(super) struct PendingClears(Vec<[[u32; 2]; 2]>);

impl PendingClears {
    /// GMEM is cleared.
    pub(super) fn add(&mut self, resolve: &WatchedResolve) {
        if self.0.len() < MOST_CLEARS {
            self.0.push(resolve.inside.area());
        }
    }
}

/// The names that draws may have images of.
const NAMES: [TargetName; 10] = [
    TargetName::Colour(0),
    TargetName::Colour(1),
    TargetName::Colour(2),
    TargetName::Colour(3),
    TargetName::Colour(4),
    TargetName::Colour(5),
    TargetName::Colour(6),
    TargetName::Colour(7),
    TargetName::Depth,
    TargetName::Stencil,
];

/// The images of the draw that the registers describe: in memory, and as they are rendered.
fn images(machine: &AdrenoMachine<'_>, id: ThreadId) -> Vec<(TargetName, TargetImage, TargetImage)> {
    let both = |name| Some((name, machine.stored_image(id, name)?, machine.rendered_image(id, name)?));
    NAMES.into_iter().filter_map(both).collect()
}

fn union(area: Option<[[u32; 2]; 2]>, other: [[u32; 2]; 2]) -> Option<[[u32; 2]; 2]> {
    let [first, last] = other;
    if first[0] > last[0] || first[1] > last[1] {
        return area;
    }
    Some(area.map_or(other, |[from, to]| {
        [[from[0].min(first[0]), from[1].min(first[1])], [to[0].max(last[0]), to[1].max(last[1])]]
    }))
}

impl RenderPass {
    /// A draw was executed: whether it begins another pass, which is for the caller to begin.
    pub(super) fn is_of_another(&self, machine: &AdrenoMachine<'_>, work: &WatchedWork) -> bool {
        let images = images(machine, work.thread);
        let (Some((_, _, rendered)), Some(key)) = (images.first(), &self.key) else { return false };
        let same = images.iter().map(|(name, stored, _)| (*name, stored.iova())).eq(key.iter().copied());
        if !same || rendered.in_gmem() != self.in_gmem {
            return true;
        }
        let bin = rendered.area()[0];
        let comes_again = self.bins.last() != Some(&bin) && self.bins.contains(&bin);
        self.in_gmem && comes_again
    }

    /// Clears that are pending belong to this pass.
    fn take_clears(&mut self, clears: &mut PendingClears) {
        for area in clears.0.drain(..) {
            self.rendered = union(self.rendered, area);
        }
    }

    /// The area of an image that a picture shows: without what was stored beyond the render area because stores are aligned.
    pub(super) fn shown_area(&self, image: &PassImage) -> Option<[[u32; 2]; 2]> {
        let [first, mut last] = image.area?;
        if let Some([_, rendered]) = self.rendered.filter(|_| image.stored) {
            for axis in 0..2 {
                let beyond = last[axis].saturating_sub(rendered[axis]);
                if beyond < STORE_ALIGNMENT[axis] && rendered[axis] >= first[axis] {
                    last[axis] -= beyond;
                }
            }
        }
        Some([first, last])
    }

    /// Takes a draw into the pass.
    pub(super) fn add(
        &mut self,
        machine: &AdrenoMachine<'_>,
        work: &WatchedWork,
        layer: u32,
        clears: &mut PendingClears,
    ) {
        let images = images(machine, work.thread);
        let Some((_, _, rendered)) = images.first() else { return };
        self.take_clears(clears);
        if let Some(viewports) = machine.viewport_area(work.thread) {
            self.rendered = union(self.rendered, viewports);
        }
        let rendered = rendered.clone();
        self.in_gmem = rendered.in_gmem();
        let bin = rendered.area()[0];
        if self.bins.last() != Some(&bin) && self.bins.len() < MOST_BINS {
            self.bins.push(bin);
        }
        self.key
            .get_or_insert_with(|| images.iter().map(|(name, stored, _)| (*name, stored.iova())).collect());
        self.draws = Some([self.draws.map_or(work.number, |[first, _]| first), work.number]);
        for (name, stored, _) in images {
            let area = stored.area();
            let in_memory = !rendered.in_gmem();
            if let Some(image) = self.image(PassImageName::Target(name), &stored) {
                image.layers = image.layers.max(layer.saturating_add(1));
                image.area = if in_memory { union(image.area, area) } else { image.area };
            }
        }
    }

    fn image(&mut self, name: PassImageName, image: &TargetImage) -> Option<&mut PassImage> {
        if self.images.len() >= MOST_IMAGES && !self.images.contains_key(&name) {
            return None;
        }
        Some(self.images.entry(name).or_insert_with(|| PassImage {
            image: image.clone(),
            area: None,
            stored: false,
            layers: 1,
        }))
    }

    /// Takes a store of GMEM into the pass.
    pub(super) fn store(&mut self, resolve: &WatchedResolve, clears: &mut PendingClears) {
        self.take_clears(clears);
        let (image, iova) = (&resolve.outside, resolve.outside.iova());
        let targets = self.images.iter().filter(|(name, _)| matches!(name, PassImageName::Target(_)));
        let of_draws: Vec<PassImageName> =
            targets.filter(|(_, known)| known.image.iova() == iova).map(|(name, _)| *name).collect();
        let names = if of_draws.is_empty() { vec![PassImageName::Stored(iova)] } else { of_draws };
        for name in names {
            if let Some(known) = self.image(name, image) {
                known.area = union(known.area, image.area());
                known.stored |= resolve.inside.in_gmem();
            }
        }
    }
}
