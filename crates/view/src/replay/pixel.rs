//! The history of a pixel: every fragment of it with what became of it, and what else wrote the images that it is in.
//!
//! Draws are at the pixel of the window; loads, stores and clears of GMEM and blits at its texels. What else changed a texel
//! is found by its bytes, from the first time on that a draw or GMEM touched it. Never: decides what a test computes.

use super::target::target_name;
use super::watches::is_draw;
use crate::json::{Heading, Hex};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use unwedge_hw::DbIdentity;
use unwedge_hw::adreno::format::Numeric;
use unwedge_sim::adreno::{
    AdrenoMachine, ColourWrite, DepthStencilWrite, FragmentEvent, FragmentOutputs, SampleTest, TargetImage,
    TargetName, TargetValue, WatchedBlit, WatchedResolve, WatchedWork, WindowPixel,
};
use unwedge_stream::adreno::AdrenoOp;

/// Version of the schema.
const SCHEMA: u32 = 1;
/// Events that are kept.
const MOST_EVENTS: usize = 1 << 16;
/// Fragments of one draw that are kept.
const MOST_FRAGMENTS: usize = 1 << 14;
/// Texels that are followed.
const MOST_TEXELS: usize = 1 << 10;

/// Which pixel, and of it what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PixelWanted {
    /// Column, row and layer.
    pub pixel: WindowPixel,
    /// Only this image.
    pub target: Option<TargetName>,
    /// Only events of these submits.
    pub submits: RangeInclusive<u32>,
}

/// What happened to a pixel.
#[derive(Serialize, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PixelHistory {
    x: u32,
    y: u32,
    layer: u32,
    events: Vec<PixelEvent>,
    /// What its texels hold at the end.
    values: Vec<FinalValue>,
    /// There was more than is kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// The submits and images that a history can be limited to.
    #[serde(skip)]
    there: PixelChoices,
}

/// The submits and images of a capture that a history can be limited to.
#[derive(Debug, Default)]
struct PixelChoices {
    /// First and last submit that was replayed.
    submits: Option<[u32; 2]>,
    /// One of those that are asked for was replayed.
    has_submit: bool,
    /// Images that draws of the submits that are asked for have.
    targets: BTreeSet<TargetName>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PixelJson<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    file: &'a str,
    #[serde(flatten)]
    history: &'a PixelHistory,
}

#[derive(Serialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PixelEvent {
    r#type: &'static str,
    set: u64,
    submit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    #[serde(flatten)]
    fragment: Option<PixelFragment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    writes: Vec<TexelWrite>,
}

#[derive(Serialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PixelFragment {
    primitive: u64,
    front: bool,
    /// Numbers of the samples that the primitive covers.
    covered: Vec<u32>,
    /// Those that the sample mask takes away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    masked: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<TestJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shaded: Vec<ShadedJson>,
}

#[derive(Serialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TestJson {
    sample: u32,
    /// Before the shader.
    early: bool,
    result: &'static str,
    z: f32,
    /// Before and after; `None` where a value is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<[Option<f32>; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stencil: Option<[Option<u8>; 2]>,
}

#[derive(Serialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShadedJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    sample: Option<u8>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    killed: bool,
    /// Samples that are left after the shader.
    left: Vec<u32>,
    /// Samples that alpha-to-coverage takes away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alpha_masked: Vec<u32>,
    colours: Vec<OutputJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stencil: Option<u8>,
}

#[derive(Serialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OutputJson {
    target: String,
    bits: [Hex; 4],
    floats: [f32; 4],
}

/// A texel, or a sample of it, that was written.
#[derive(Serialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TexelWrite {
    target: String,
    sample: u32,
    iova: Hex,
    /// It is in GMEM.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gmem: bool,
    /// Absent: not mapped or not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Texel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Texel>,
}

#[derive(Serialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FinalValue {
    target: String,
    sample: u32,
    iova: Hex,
    #[serde(flatten)]
    texel: Option<Texel>,
}

#[derive(Serialize, Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Texel {
    /// In their order in memory, as hexadecimal digits.
    bytes: String,
    value: TexelJson,
}

#[derive(Serialize, Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum TexelJson {
    Floats([f32; 4]),
    Unsigned([u32; 4]),
    Signed([i32; 4]),
    Depth(f32),
    Stencil(u8),
}

/// A texel that is followed.
struct KnownTexel {
    /// `None` for an image that no draw of the pixel has.
    target: Option<TargetName>,
    image: TargetImage,
    place: [u32; 4],
    bytes: Option<Vec<u8>>,
}

impl KnownTexel {
    /// What its image is called.
    fn name(&self) -> String {
        self.target.map_or_else(|| address_name(&self.image), target_name)
    }

    /// Whether it is to be shown where only some images are.
    fn is_shown(&self, wanted: Option<TargetName>) -> bool {
        wanted.is_none() || self.target == wanted
    }
}

/// An image that is none of a draw's, by its address.
fn address_name(image: &TargetImage) -> String {
    format!("{:#x}", image.iova())
}

/// What a write is of, before it is known how images are called.
struct PendingWrite {
    event: usize,
    write: usize,
}

/// Follows a pixel.
pub(super) struct PixelWatch {
    wanted: PixelWanted,
    set: u64,
    submit: u32,
    work: Option<(u64, u64)>,
    /// Fragments of the draw in work, and what they wrote.
    open: Vec<(PixelFragment, Vec<TexelWrite>)>,
    /// The one that events belong to.
    current: usize,
    /// By address.
    texels: BTreeMap<u64, KnownTexel>,
    /// What texels were before the resolve or blit in work.
    before: Vec<(u64, u32, Option<Vec<u8>>)>,
    history: PixelHistory,
    /// Writes of images that get their names at the end.
    unnamed: Vec<PendingWrite>,
    /// Blits of images that may turn out to be those of the pixel.
    blits: Vec<usize>,
}

fn samples(mask: u8) -> Vec<u32> {
    (0..8).filter(|n| mask >> n & 1 != 0).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn colour_json(components: [u32; 4], numeric: Numeric) -> TexelJson {
    match numeric {
        Numeric::Float => TexelJson::Floats(components.map(f32::from_bits)),
        Numeric::Uint => TexelJson::Unsigned(components),
        Numeric::Sint => TexelJson::Signed(components.map(|value| value as i32)),
    }
}

fn texel_of(image: &TargetImage, bytes: &[u8]) -> Texel {
    let value = match image.value_of(bytes) {
        TargetValue::Colour(components) => colour_json(components, image.numeric()),
        TargetValue::Depth(z) => TexelJson::Depth(z),
        TargetValue::Stencil(value) => TexelJson::Stencil(value),
    };
    Texel { bytes: hex(bytes), value }
}

impl PixelWatch {
    pub(super) fn new(wanted: PixelWanted) -> PixelWatch {
        let [x, y, layer] = wanted.pixel;
        PixelWatch {
            wanted,
            set: 0,
            submit: 0,
            work: None,
            open: Vec::new(),
            current: 0,
            texels: BTreeMap::new(),
            before: Vec::new(),
            history: PixelHistory { x, y, layer, ..PixelHistory::default() },
            unnamed: Vec::new(),
            blits: Vec::new(),
        }
    }

    fn records(&self) -> bool {
        self.wanted.submits.contains(&self.submit)
    }

    /// Whether an image's writes are to be shown.
    fn shows(&self, target: TargetName) -> bool {
        self.wanted.target.is_none_or(|wanted| wanted == target)
    }

    pub(super) fn wants(&self, pixel: WindowPixel) -> bool {
        pixel == self.wanted.pixel && self.records()
    }

    /// Adds an event: its place.
    fn push(
        &mut self,
        kind: &'static str,
        iova: Option<u64>,
        fragment: Option<PixelFragment>,
        writes: Vec<TexelWrite>,
    ) -> Option<usize> {
        if !self.records() {
            return None;
        }
        if self.history.events.len() >= MOST_EVENTS {
            self.history.more = true;
            return None;
        }
        let (set, submit) = (self.set, self.submit);
        let (work, packet) = self.work.unzip();
        let iova = iova.or(packet).map(Hex::wide);
        self.history.events.push(PixelEvent { r#type: kind, set, submit, work, iova, fragment, writes });
        Some(self.history.events.len() - 1)
    }

    pub(super) fn begin_submit(&mut self, machine: &AdrenoMachine<'_>, set: u64, submit: u32) {
        self.changes(machine, "other");
        (self.set, self.submit) = (set, submit);
        let there = &mut self.history.there;
        there.has_submit |= self.wanted.submits.contains(&submit);
        there.submits =
            Some(there.submits.map_or([submit; 2], |[first, last]| [first.min(submit), last.max(submit)]));
    }

    /// Takes down the images of a draw that was executed.
    fn add_targets(&mut self, machine: &AdrenoMachine<'_>, work: &WatchedWork) {
        if !self.records() || self.wanted.target.is_none() {
            return;
        }
        let image = |name| machine.stored_image(work.thread, name);
        let depth = image(TargetName::Depth).map(|image| image.iova());
        for name in (0..8).map(TargetName::Colour).chain([TargetName::Depth, TargetName::Stencil]) {
            // Where both are in one texel it is called depth.
            let is_there =
                image(name).is_some_and(|image| name != TargetName::Stencil || depth != Some(image.iova()));
            if is_there {
                self.history.there.targets.insert(name);
            }
        }
    }

    pub(super) fn end_submit(&mut self, machine: &AdrenoMachine<'_>) {
        // Those of a draw that stopped.
        self.flush();
        self.work = None;
        self.changes(machine, "other");
    }

    /// Texels that are not as they were when they were looked at last: an event, if there are any.
    fn changes(&mut self, machine: &AdrenoMachine<'_>, kind: &'static str) {
        let mut writes = Vec::new();
        for (&iova, known) in &mut self.texels {
            let now = known.image.raw(machine, known.place).ok();
            if now == known.bytes {
                continue;
            }
            let texel = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(|bytes| texel_of(&known.image, bytes));
            let (before, after) = (texel(&known.bytes), texel(&now));
            known.bytes = now;
            if known.is_shown(self.wanted.target) {
                let (target, sample) = (known.name(), known.place[3]);
                writes.push(TexelWrite { target, sample, iova: Hex::wide(iova), gmem: false, before, after });
            }
        }
        if !writes.is_empty() {
            self.push(kind, None, None, writes);
        }
    }

    /// Takes texels as they are: what changed them is told.
    fn refresh(&mut self, machine: &AdrenoMachine<'_>) {
        for known in self.texels.values_mut() {
            known.bytes = known.image.raw(machine, known.place).ok();
        }
    }

    /// Follows the texels of the pixel in an image in memory.
    fn follow(
        &mut self,
        machine: &AdrenoMachine<'_>,
        target: Option<TargetName>,
        image: &TargetImage,
        layer: u32,
    ) {
        let [x, y, _] = self.wanted.pixel;
        for sample in 0..image.samples() {
            let place = [x, y, layer, sample];
            let Some(iova) = image.address(place) else { continue };
            if self.texels.len() >= MOST_TEXELS && !self.texels.contains_key(&iova) {
                self.history.more = true;
                return;
            }
            let bytes = image.raw(machine, place).ok();
            self.texels.insert(iova, KnownTexel { target, image: image.clone(), place, bytes });
        }
    }

    pub(super) fn work(&mut self, machine: &AdrenoMachine<'_>, work: &WatchedWork, done: bool) {
        if !done {
            self.work = None;
            self.changes(machine, "other");
            self.work = Some((work.number, work.iova));
            return;
        }
        if is_draw(work.op) {
            self.add_targets(machine, work);
            if !self.open.is_empty() {
                let [.., layer] = self.wanted.pixel;
                // Where depth and stencil are in one texel it is called depth.
                let last = [TargetName::Stencil, TargetName::Depth];
                for name in (0..8).map(TargetName::Colour).chain(last) {
                    if let Some(image) = machine.stored_image(work.thread, name) {
                        self.follow(machine, Some(name), &image, layer);
                    }
                }
            }
            self.flush();
            self.refresh(machine);
        } else if work.op != AdrenoOp::Blit {
            self.changes(machine, "dispatch");
        }
        self.work = None;
    }

    /// The fragments of the draw in work become events.
    fn flush(&mut self) {
        for (fragment, writes) in std::mem::take(&mut self.open) {
            self.push("fragment", None, Some(fragment), writes);
        }
        self.current = 0;
    }

    pub(super) fn fragment(&mut self, event: &FragmentEvent<'_>) {
        match event {
            FragmentEvent::Covered { primitive, coverage, sample_mask, front } => {
                if self.open.len() >= MOST_FRAGMENTS {
                    self.history.more = true;
                    return;
                }
                let fragment = PixelFragment {
                    primitive: *primitive,
                    front: *front,
                    covered: samples(*coverage),
                    masked: samples(coverage & !sample_mask),
                    tests: Vec::new(),
                    shaded: Vec::new(),
                };
                self.current = self.open.len();
                self.open.push((fragment, Vec::new()));
            }
            FragmentEvent::Shaded { fragment, outputs, killed, coverage, alpha_coverage } => {
                let is_it = |(open, _): &(PixelFragment, Vec<TexelWrite>)| {
                    let shaded = open.shaded.iter().any(|shaded| shaded.sample == fragment.sample);
                    open.primitive == fragment.primitive && !shaded
                };
                // One that there was no room for is none of those that are kept.
                self.current = self.open.iter().position(is_it).unwrap_or(usize::MAX);
                if let Some((open, _)) = self.open.get_mut(self.current) {
                    let covered = open.covered.iter().fold(0, |mask, sample| mask | 1u8 << sample);
                    open.shaded.push(shaded(
                        outputs,
                        fragment.sample,
                        *killed,
                        *coverage,
                        covered & !alpha_coverage,
                    ));
                }
            }
            FragmentEvent::Tested { sample, test, z, write } => {
                if let Some((open, _)) = self.open.get_mut(self.current) {
                    let early = open.shaded.is_empty();
                    open.tests.push(tested(*sample, early, *test, *z, *write));
                }
            }
            FragmentEvent::Merged { sample, write } => {
                let target = TargetName::Colour(write.target as u8);
                let shows = self.shows(target);
                if let Some((_, writes)) = self.open.get_mut(self.current).filter(|_| shows) {
                    writes.push(merged(*sample, write));
                }
            }
        }
    }

    pub(super) fn resolve(&mut self, machine: &AdrenoMachine<'_>, resolve: &WatchedResolve, done: bool) {
        let [x, y, layer] = self.wanted.pixel;
        let [first, last] = resolve.outside.area();
        if !(first[0]..=last[0]).contains(&x) || !(first[1]..=last[1]).contains(&y) {
            return;
        }
        // GMEM has no layers: the image that is loaded and stored is one of them.
        let of_layer = |iova: Option<u64>| iova.is_some_and(|iova| self.texels.contains_key(&iova));
        if layer != 0 && !of_layer(resolve.outside.address([x, y, 0, 0])) {
            return;
        }
        if !done {
            self.changes(machine, "other");
        }
        let inside_written = resolve.loads || resolve.clears;
        let in_gmem = resolve.inside.in_gmem();
        let mut images: Vec<(&TargetImage, &'static str)> = Vec::new();
        if resolve.stores {
            images.push((&resolve.outside, "store"));
        }
        if inside_written {
            images.push((&resolve.inside, if resolve.loads { "load" } else { "clear" }));
        }
        if !done {
            self.before = images.iter().flat_map(|(image, _)| before(machine, image, [x, y])).collect();
            return;
        }
        let old = std::mem::take(&mut self.before);
        for (image, kind) in images {
            let writes = written(machine, image, [x, y], &old);
            self.unnamed_event(kind, Some(resolve.iova), writes, false);
        }
        if resolve.stores || !in_gmem {
            self.follow_if_new(machine, &resolve.outside);
        }
        self.refresh(machine);
    }

    /// Follows an image that GMEM was stored to, unless a draw has named it.
    fn follow_if_new(&mut self, machine: &AdrenoMachine<'_>, image: &TargetImage) {
        let [x, y, _] = self.wanted.pixel;
        let iova = image.address([x, y, 0, 0]);
        if iova.is_some_and(|iova| !self.texels.contains_key(&iova)) {
            self.follow(machine, None, image, 0);
        }
    }

    /// An event whose images get their names at the end.
    fn unnamed_event(
        &mut self,
        kind: &'static str,
        iova: Option<u64>,
        writes: Vec<TexelWrite>,
        is_blit: bool,
    ) {
        let count = writes.len();
        if let Some(event) = self.push(kind, iova, None, writes) {
            self.unnamed.extend((0..count).map(|write| PendingWrite { event, write }));
            if is_blit {
                self.blits.push(event);
            }
        }
    }

    pub(super) fn blit(&mut self, machine: &AdrenoMachine<'_>, blit: &WatchedBlit, done: bool) {
        let [x, y, _] = self.wanted.pixel;
        let [first, last] = blit.image.area();
        if !(first[0]..=last[0]).contains(&x) || !(first[1]..=last[1]).contains(&y) {
            if done {
                // Another texel of the same bytes.
                self.changes(machine, "blit");
            }
            return;
        }
        if !done {
            self.before = before(machine, &blit.image, [x, y]).collect();
            return;
        }
        let old = std::mem::take(&mut self.before);
        let writes = written(machine, &blit.image, [x, y], &old);
        let known = writes.iter().any(|write| self.texels.contains_key(&write.iova.value()));
        if known || self.changed(machine).is_none() {
            self.unnamed_event(if blit.fills { "fill" } else { "blit" }, None, writes, true);
        } else {
            self.changes(machine, "blit");
        }
        self.refresh(machine);
    }

    /// A texel that is not as it was.
    fn changed(&self, machine: &AdrenoMachine<'_>) -> Option<u64> {
        let mut texels = self.texels.iter();
        texels
            .find(|(_, known)| known.image.raw(machine, known.place).ok() != known.bytes)
            .map(|(iova, _)| *iova)
    }

    /// What happened, with the names of images.
    pub(super) fn finish(mut self, machine: Option<&AdrenoMachine<'_>>) -> PixelHistory {
        for PendingWrite { event, write } in &self.unnamed {
            let Some(write) = self.history.events.get_mut(*event).and_then(|e| e.writes.get_mut(*write))
            else {
                continue;
            };
            if let Some(known) = self.texels.get(&write.iova.value()) {
                write.target = known.name();
            }
        }
        let followed = |write: &TexelWrite| self.texels.contains_key(&write.iova.value());
        let wanted = self.wanted.target.map(target_name);
        let shown = |write: &TexelWrite| wanted.as_ref().is_none_or(|wanted| *wanted == write.target);
        let mut at = 0;
        self.history.events.retain(|event| {
            let is_blit = self.blits.binary_search(&at).is_ok();
            at += 1;
            let of_target = event.fragment.is_some() || event.writes.iter().any(shown);
            of_target && (!is_blit || event.writes.iter().any(followed))
        });
        if let Some(machine) = machine {
            let texels = self.texels.iter().filter(|(_, known)| known.is_shown(self.wanted.target));
            self.history.values = texels
                .map(|(&iova, known)| FinalValue {
                    target: known.name(),
                    sample: known.place[3],
                    iova: Hex::wide(iova),
                    texel: known
                        .image
                        .raw(machine, known.place)
                        .ok()
                        .map(|bytes| texel_of(&known.image, &bytes)),
                })
                .collect();
        }
        self.history
    }
}

fn before<'a>(
    machine: &'a AdrenoMachine<'_>,
    image: &'a TargetImage,
    [x, y]: [u32; 2],
) -> impl Iterator<Item = (u64, u32, Option<Vec<u8>>)> + 'a {
    (0..image.samples()).filter_map(move |sample| {
        let place = [x, y, 0, sample];
        Some((image.address(place)?, sample, image.raw(machine, place).ok()))
    })
}

fn written(
    machine: &AdrenoMachine<'_>,
    image: &TargetImage,
    at: [u32; 2],
    old: &[(u64, u32, Option<Vec<u8>>)],
) -> Vec<TexelWrite> {
    let texel = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| texel_of(image, bytes));
    before(machine, image, at)
        .map(|(iova, sample, now)| {
            let was = old.iter().find(|(old, of, _)| (*old, *of) == (iova, sample));
            TexelWrite {
                target: address_name(image),
                sample,
                iova: Hex::wide(iova),
                gmem: image.in_gmem(),
                before: texel(was.and_then(|(_, _, bytes)| bytes.as_ref())),
                after: texel(now.as_ref()),
            }
        })
        .collect()
}

fn shaded(
    outputs: &FragmentOutputs,
    sample: Option<u8>,
    killed: bool,
    coverage: u8,
    alpha_masked: u8,
) -> ShadedJson {
    let colour = |(target, bits): &(usize, [u32; 4])| OutputJson {
        target: target_name(TargetName::Colour(*target as u8)),
        bits: bits.map(Hex::dword),
        floats: bits.map(f32::from_bits),
    };
    ShadedJson {
        sample,
        killed,
        left: samples(if killed { 0 } else { coverage }),
        alpha_masked: samples(alpha_masked),
        colours: outputs.colours.iter().map(colour).collect(),
        depth: outputs.depth,
        mask: outputs.mask.map(Hex::dword),
        stencil: outputs.stencil,
    }
}

fn tested(sample: u32, early: bool, test: SampleTest, z: f32, write: DepthStencilWrite) -> TestJson {
    let result = match test {
        SampleTest::Passed => "passed",
        SampleTest::DepthBounds => "depth_bounds",
        SampleTest::Stencil => "stencil",
        SampleTest::Depth => "depth",
    };
    let DepthStencilWrite { depth, stencil, before_known } = write;
    let (depth, stencil) = (depth.map(|d| known(d, before_known)), stencil.map(|s| known(s, before_known)));
    TestJson { sample, early, result, z, depth, stencil }
}

/// Values before and after. Where the one before is not known, the one after is not known either if it is the same: nothing was
/// written.
fn known<T: PartialEq>([before, after]: [T; 2], before_known: bool) -> [Option<T>; 2] {
    let after_known = before_known || before != after;
    [Some(before).filter(|_| before_known), Some(after).filter(|_| after_known)]
}

fn merged(sample: u32, write: &ColourWrite<'_>) -> TexelWrite {
    let texel = |n: usize| {
        Some(Texel { bytes: hex(write.bytes[n]), value: colour_json(write.components[n], write.numeric) })
    };
    TexelWrite {
        target: target_name(TargetName::Colour(write.target as u8)),
        sample,
        iova: Hex::wide(write.iova),
        gmem: write.in_gmem,
        before: texel(0).filter(|_| write.before_known),
        after: texel(1),
    }
}

impl std::fmt::Display for Texel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (", self.bytes)?;
        match &self.value {
            TexelJson::Floats([r, g, b, a]) => write!(f, "{r} {g} {b} {a}")?,
            TexelJson::Unsigned([r, g, b, a]) => write!(f, "{r} {g} {b} {a}")?,
            TexelJson::Signed([r, g, b, a]) => write!(f, "{r} {g} {b} {a}")?,
            TexelJson::Depth(z) => write!(f, "{z}")?,
            TexelJson::Stencil(value) => write!(f, "{value}")?,
        }
        write!(f, ")")
    }
}

fn shown(texel: Option<&Texel>) -> String {
    texel.map_or_else(|| "unknown".to_owned(), Texel::to_string)
}

fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

fn list(samples: &[u32]) -> String {
    samples.iter().map(u32::to_string).collect::<Vec<String>>().join(" ")
}

impl PixelFragment {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for TestJson { sample, early, result, z, depth, stencil } in &self.tests {
            let when = if *early { "early" } else { "late" };
            let result = match *result {
                "passed" => "passed".to_owned(),
                failed => format!("failed ({})", failed.replace('_', " ")),
            };
            write!(out, "        sample {sample}: {when} tests of depth {z} {result}")?;
            if let Some([before, after]) = depth {
                write!(out, ", depth {} -> {}", or_unknown(*before), or_unknown(*after))?;
            }
            if let Some([before, after]) = stencil {
                write!(out, ", stencil {} -> {}", or_unknown(*before), or_unknown(*after))?;
            }
            writeln!(out)?;
        }
        if self.shaded.is_empty() {
            writeln!(out, "        not shaded")?;
        }
        for shaded in &self.shaded {
            let of = shaded.sample.map_or_else(String::new, |sample| format!(" of sample {sample}"));
            write!(out, "        shader{of}: ")?;
            if shaded.killed {
                writeln!(out, "killed")?;
                continue;
            }
            let colour = |OutputJson { target, floats: [r, g, b, a], bits }: &OutputJson| {
                format!("{target} = {r} {g} {b} {a} ({} {} {} {})", bits[0], bits[1], bits[2], bits[3])
            };
            let mut outputs: Vec<String> = shaded.colours.iter().map(colour).collect();
            outputs.extend(shaded.depth.map(|z| format!("depth = {z}")));
            outputs.extend(shaded.mask.map(|mask| format!("sample mask = {mask}")));
            outputs.extend(shaded.stencil.map(|value| format!("stencil reference = {value}")));
            write!(out, "{}", outputs.join(", "))?;
            if !shaded.alpha_masked.is_empty() {
                write!(out, "; alpha-to-coverage leaves out samples {}", list(&shaded.alpha_masked))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

impl PixelHistory {
    /// Says that the submit or the image that the history is limited to does not exist, and which ones do.
    pub fn not_there(&self, wanted: &PixelWanted) -> Option<String> {
        let PixelChoices { submits, has_submit, targets } = &self.there;
        let range = |first: u32, last: u32| match first == last {
            true => format!("submit {first}"),
            false => format!("submits {first} to {last}"),
        };
        if !has_submit {
            let asked = match wanted.submits.clone().into_inner() {
                (first, u32::MAX) => format!("submit from {first} on"),
                (first, last) if first == last => format!("submit {first}"),
                (first, last) => format!("submit from {first} to {last}"),
            };
            let there = submits.map_or("none was".to_owned(), |[first, last]| match first == last {
                true => format!("{} was", range(first, last)),
                false => format!("{} were", range(first, last)),
            });
            return Some(format!("no {asked} was replayed: {there}"));
        }
        let target = wanted.target.filter(|target| !targets.contains(target))?;
        let names: Vec<String> = targets.iter().map(|name| target_name(*name)).collect();
        let there = match names.is_empty() {
            true => "the draws have no images".to_owned(),
            false => format!("images of draws are {}", names.join(", ")),
        };
        Some(format!("no draw has {}: {there}", target_name(target)))
    }

    /// Whether nothing touched the pixel.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// As one JSON object of a file.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn json(&self, file: &str, database: &DbIdentity, out: &mut dyn Write) -> io::Result<()> {
        let heading = Heading::of_object("unwedge.pixel", SCHEMA, database);
        serde_json::to_writer(&mut *out, &PixelJson { heading, file, history: self })?;
        writeln!(out)
    }

    /// As text.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "  pixel {},{} of layer {}", self.x, self.y, self.layer)?;
        for event in &self.events {
            let PixelEvent { r#type, submit, work, iova, fragment, writes, .. } = event;
            write!(out, "\n  submit {submit}")?;
            if let Some(work) = work {
                let kind = if fragment.is_some() { "draw" } else { "work" };
                write!(out, "  {kind} {work}")?;
            }
            if let Some(iova) = iova {
                write!(out, "  {iova}")?;
            }
            match fragment {
                Some(fragment) => {
                    let side = if fragment.front { "front" } else { "back" };
                    write!(out, "  fragment of primitive {}, {side}, ", fragment.primitive)?;
                    write!(out, "samples {}", list(&fragment.covered))?;
                    if !fragment.masked.is_empty() {
                        write!(out, ", without {} by the sample mask", list(&fragment.masked))?;
                    }
                    writeln!(out)?;
                    fragment.text(out)?;
                }
                None if *r#type == "other" => writeln!(out, "  changed by the CPU, or by another packet")?,
                None => writeln!(out, "  {}", r#type)?,
            }
            for TexelWrite { target, sample, iova, gmem, before, after } in writes {
                let gmem = if *gmem { " in GMEM" } else { "" };
                let (before, after) = (shown(before.as_ref()), shown(after.as_ref()));
                writeln!(out, "        {target} sample {sample} at {iova}{gmem}: {before} -> {after}")?;
            }
        }
        if self.events.is_empty() {
            writeln!(out, "  nothing touched it")?;
        } else {
            writeln!(out, "\n  at the end")?;
        }
        for FinalValue { target, sample, iova, texel } in &self.values {
            writeln!(out, "        {target} sample {sample} at {iova}: {}", shown(texel.as_ref()))?;
        }
        if self.more {
            writeln!(out, "  there is more than is shown")?;
        }
        Ok(())
    }
}

crate::schema::shapes!(object: PixelJson<'_>);
