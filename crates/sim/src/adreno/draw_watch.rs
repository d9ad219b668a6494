//! What may be watched of draws, blits and GMEM: the images that they write, and what becomes of the fragments of a pixel.
//!
//! A machine without a [`DrawWatch`] reports nothing and pays nothing. Never: changes what is drawn, decides what is worth
//! keeping.

use super::cp::ThreadId;
use super::draw::TargetImage;
use super::machine::AdrenoMachine;
use unwedge_stream::adreno::AdrenoOp;

/// A draw, dispatch or blit packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedWork {
    /// Its number among those of the machine, from 0: [`AdrenoMachine::work_done`] before it.
    pub number: u64,
    /// Who executes it.
    pub thread: ThreadId,
    /// Address of its packet.
    pub iova: u64,
    /// What its packet does.
    pub op: AdrenoOp,
}

/// A pixel of the window: column, row, layer.
pub type WindowPixel = [u32; 3];

/// How a sample left the tests of depth and stencil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleTest {
    /// It passed.
    Passed,
    /// The stored depth is outside of the depth bounds.
    DepthBounds,
    /// The stencil test failed.
    Stencil,
    /// The depth test failed.
    Depth,
}

/// What depth and stencil of a sample were before and after its tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthStencilWrite {
    /// Depth before and after, as the format has it; `None` without a depth image.
    pub depth: Option<[f32; 2]>,
    /// Stencil before and after; `None` where nothing stores it.
    pub stencil: Option<[u8; 2]>,
    /// Whether the values before are known: unknown is what GMEM holds where nothing has written it.
    pub before_known: bool,
}

/// A colour that reached a render target.
#[derive(Clone, Copy, Debug)]
pub struct ColourWrite<'w> {
    /// Number of the render target.
    pub target: usize,
    /// Address of the sample; inside of GMEM while a bin is rendered.
    pub iova: u64,
    /// It is in GMEM.
    pub in_gmem: bool,
    /// Whether values are bits of floats, signed or unsigned integers.
    pub numeric: unwedge_hw::adreno::format::Numeric,
    /// Bytes of the sample before and after.
    pub bytes: [&'w [u8]; 2],
    /// The same as components.
    pub components: [[u32; 4]; 2],
    /// Whether the values before are known: unknown is what GMEM holds where nothing has written it.
    pub before_known: bool,
}

/// What the fragment shader put out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FragmentOutputs {
    /// Number of a render target, and the bits of the colour for it.
    pub colours: Vec<(usize, [u32; 4])>,
    /// Depth.
    pub depth: Option<f32>,
    /// Sample mask.
    pub mask: Option<u32>,
    /// Stencil reference.
    pub stencil: Option<u8>,
}

/// A fragment of a draw, for as long as the draw goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentId {
    /// Its primitive, in the order in which the draw rasterizes them.
    pub primitive: u64,
    /// Its sample, when samples are shaded one by one.
    pub sample: Option<u8>,
}

/// What became of a fragment. Tests and colours belong to the fragment of the last [`FragmentEvent::Covered`] or
/// [`FragmentEvent::Shaded`] of their pixel.
#[derive(Clone, Debug)]
pub enum FragmentEvent<'e> {
    /// A primitive covers samples of the pixel.
    Covered {
        /// The primitive.
        primitive: u64,
        /// A bit for each sample that is covered and inside of the scissors.
        coverage: u8,
        /// A bit for each sample that the sample mask leaves.
        sample_mask: u8,
        /// The front of the primitive is seen.
        front: bool,
    },
    /// A sample was tested.
    Tested {
        /// Which.
        sample: u32,
        /// How it ended.
        test: SampleTest,
        /// Depth of the fragment.
        z: f32,
        /// What the tests changed.
        write: DepthStencilWrite,
    },
    /// The fragment shader ended.
    Shaded {
        /// Which fragment.
        fragment: FragmentId,
        /// What it put out.
        outputs: &'e FragmentOutputs,
        /// It was killed.
        killed: bool,
        /// Samples that are left after the output mask and alpha-to-coverage.
        coverage: u8,
        /// Samples that alpha-to-coverage leaves.
        alpha_coverage: u8,
    },
    /// A sample was merged into a render target.
    Merged {
        /// Which.
        sample: u32,
        /// Where, and what.
        write: ColourWrite<'e>,
    },
}

/// Loads, stores and clears of GMEM by one event.
#[derive(Clone, Debug)]
pub struct WatchedResolve {
    /// Address of its packet.
    pub iova: u64,
    /// GMEM is loaded from memory.
    pub loads: bool,
    /// GMEM is stored to memory.
    pub stores: bool,
    /// GMEM is cleared; memory without a bin.
    pub clears: bool,
    /// What is in GMEM; without a bin, the same as `outside`.
    pub inside: TargetImage,
    /// What is in memory.
    pub outside: TargetImage,
}

/// A blit of the 2D engine.
#[derive(Clone, Debug)]
pub struct WatchedBlit {
    /// It writes one colour.
    pub fills: bool,
    /// What it writes.
    pub image: TargetImage,
}

/// Looks on while draws are executed. What is called before the work is called with `done` false, after it with true.
/// Draws may be executed on another thread than that of the caller, one after the other.
pub trait DrawWatch: Send {
    /// A draw, dispatch or blit.
    fn work(&mut self, _machine: &AdrenoMachine<'_>, _work: &WatchedWork, _done: bool) {}

    /// An event that loads, stores or clears GMEM.
    fn resolve(&mut self, _machine: &AdrenoMachine<'_>, _resolve: &WatchedResolve, _done: bool) {}

    /// A blit, between the two calls for its packet.
    fn blit(&mut self, _machine: &AdrenoMachine<'_>, _blit: &WatchedBlit, _done: bool) {}

    /// Whether [`DrawWatch::outline`] is to be called.
    fn wants_outlines(&self) -> bool {
        false
    }

    /// A primitive is rasterized: its corners in pixels, in their order, after clipping. A line has two, a point one.
    fn outline(&mut self, _corners: &[[f64; 2]]) {}

    /// A fragment shader runs for a pixel.
    fn shades(&mut self, _pixel: WindowPixel) {}

    /// Whether [`DrawWatch::fragment`] is to be called for a pixel.
    fn wants_pixel(&self, _pixel: WindowPixel) -> bool {
        false
    }

    /// Something became of a fragment of a pixel.
    fn fragment(&mut self, _pixel: WindowPixel, _event: &FragmentEvent<'_>) {}
}

/// The place for somebody who watches draws.
#[derive(Default)]
pub(crate) struct WatchSlot(Option<Box<dyn DrawWatch>>);

impl WatchSlot {
    /// Whether nobody watches.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Who watches.
    pub(crate) fn get(&mut self) -> Option<&mut dyn DrawWatch> {
        match &mut self.0 {
            Some(watch) => Some(watch.as_mut()),
            None => None,
        }
    }
}

impl AdrenoMachine<'_> {
    /// Lets somebody watch draws, or nobody.
    pub fn watch_draws(&mut self, watch: Option<Box<dyn DrawWatch>>) {
        self.draw_watch = WatchSlot(watch);
    }

    /// Tracks bytes of GMEM that nothing has written, also where they are stored to memory: texels of images are unknown there.
    /// Call it before anything is executed. Every store to memory takes a slower path then, not only those to GMEM.
    pub fn track_undefined(&mut self) {
        self.tracks_undefined = true;
    }

    /// Tells whoever watches draws something that the machine is to be looked at for.
    pub(crate) fn tell_watch(&mut self, tell: impl FnOnce(&mut dyn DrawWatch, &AdrenoMachine<'_>)) {
        if let Some(mut watch) = self.draw_watch.0.take() {
            tell(watch.as_mut(), self);
            self.draw_watch.0 = Some(watch);
        }
    }
}
