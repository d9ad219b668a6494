//! What the draws of a submit had, kept as changes from draw to draw.

use crate::query::{Pass, Scene, Visitor};
use crate::{DrawKind, LoadState, Registers, Stage, StateType};
use std::collections::BTreeMap;
use std::ops::Range;
use unwedge_base::{Generation, Memory};
use unwedge_hw::{Gpu, Selected};

/// Changes of registers kept of one submit.
const MAX_CHANGES: usize = 1 << 22;
/// Draws, and pieces of loaded state, kept of one submit.
const MAX_DRAWS: usize = 1 << 18;
/// Dwords of a shader or of loaded state that are looked at.
const LONGEST: usize = 1 << 15;

/// A draw of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number in listings.
    pub number: u32,
    /// What it is.
    pub kind: DrawKind,
    /// Its pass, if that is known.
    pub pass: Option<Pass>,
    /// Primitive type, for draws.
    pub primitive: Option<u32>,
    /// Event number, for working events.
    pub event: Option<u32>,
    /// Number of indices or vertices, where the packet says it.
    pub count: Option<u32>,
    /// Number of instances, where the packet says it.
    pub instances: Option<u32>,
    pub(super) changes: Range<usize>,
    pub(super) loads: Range<usize>,
    /// Where the shader of each stage lies, and its dwords.
    pub(super) code: [Option<(u64, u32)>; STAGES.len()],
}

/// Contents, by their hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Equal for equal contents.
    pub hash: u64,
    /// Their length.
    pub dwords: u32,
}

/// State that CP_LOAD_STATE has loaded, by where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The stage, by its place in [`STAGES`]; `None` for state that stages share.
    pub stage: Option<u8>,
    /// The kind of state: number of its [`StateType`].
    pub ty: u8,
    /// First unit.
    pub dst: u32,
}

/// Stages, in the order of the pipeline.
pub const STAGES: [Stage; 6] =
    [Stage::Vertex, Stage::TessControl, Stage::TessEval, Stage::Geometry, Stage::Fragment, Stage::Compute];

/// The draws of a submit.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Its number.
    pub submit: u32,
    /// Its draws, in stream order.
    pub draws: Vec<Mark>,
    /// Address and size of each buffer that was alive, by address.
    pub buffers: Vec<(u64, u64)>,
    /// There was more than is kept.
    pub cut: bool,
    pub(super) changes: Vec<(u32, Option<u32>)>,
    pub(super) loads: Vec<(Slot, Option<Contents>)>,
    pub(super) code: BTreeMap<(u64, u32), Option<Contents>>,
}

/// Writes records down.
#[derive(Clone, Debug)]
pub struct Recorder<'d> {
    record: Record,
    /// Registers as the draws of the record so far have them.
    shadow: Registers,
    /// Registers may become unknown.
    exact: bool,
    /// Only the draw of this number.
    only: Option<u32>,
    generation: Generation,
    shaders: [Option<(Selected<'d>, Selected<'d>)>; STAGES.len()],
    /// Draws are not wanted now.
    idle: bool,
}

impl<'d> Recorder<'d> {
    /// Nothing written down yet. `linear` walks never make a register unknown. With `only`, of each submit at most the
    /// draw of this number.
    pub fn new(gpu: Gpu<'d>, linear: bool, only: Option<u32>) -> Recorder<'d> {
        let names = ["VS", "HS", "DS", "GS", "FS", "CS"];
        let field = |name: String| gpu.select_one(&name);
        let shaders = names.map(|stage| {
            let start = field(format!("SP_{stage}_OBJ_START"));
            let start = start.or_else(|| field(format!("SP_{stage}_OBJ_START_REG")));
            let length = field(format!("SP_{stage}_INSTRLEN"));
            let length = length.or_else(|| field(format!("SP_{stage}_LENGTH_REG.SHADERLENGTH")));
            start.zip(length)
        });
        Recorder {
            record: Record::default(),
            shadow: Registers::new(if gpu.generation().is_64bit() { 0x4_0000 } else { 0x8000 }),
            exact: !linear,
            only,
            generation: gpu.generation(),
            shaders,
            idle: true,
        }
    }

    /// A submit that is wanted begins.
    pub fn begin(&mut self, submit: u32) {
        self.record = Record { submit, ..Record::default() };
        self.idle = false;
    }

    /// The submit has been walked: what it had, with the buffers there were.
    pub fn end(&mut self, memory: &Memory) -> Record {
        self.idle = true;
        let mut record = std::mem::take(&mut self.record);
        record.buffers = memory.buffers().iter().map(|b| (b.iova, b.size)).collect();
        for (&(iova, dwords), contents) in &mut record.code {
            let words = memory.dwords(iova).map(|words| words.take(dwords as usize));
            let whole = words.filter(|words| words.len() == dwords as usize);
            *contents = whole.map(|words| hash(words.iter()));
        }
        record
    }

    fn change(&mut self, reg: u32, value: Option<u32>) {
        if self.shadow.get(reg) == value {
            return;
        }
        match value {
            Some(value) => self.shadow.set(reg, value),
            None => self.shadow.forget(reg),
        }
        if self.record.changes.len() < MAX_CHANGES {
            self.record.changes.push((reg, value));
        } else {
            self.record.cut = true;
        }
    }
}

/// FNV-1a over dwords.
fn hash(words: impl Iterator<Item = u32>) -> Contents {
    let mut contents = Contents { hash: 0xcbf2_9ce4_8422_2325, dwords: 0 };
    for word in words.take(LONGEST) {
        contents.hash = (contents.hash ^ u64::from(word)).wrapping_mul(0x0000_0100_0000_01b3);
        contents.dwords = contents.dwords.saturating_add(1);
    }
    contents
}

impl Visitor for Recorder<'_> {
    fn draw(&mut self, scene: &Scene<'_>) {
        let draw = scene.draw;
        if self.idle || self.only.is_some_and(|only| only != draw.number) {
            return;
        }
        if self.record.draws.len() >= MAX_DRAWS {
            self.record.cut = true;
            return;
        }
        // Of several with the number the last one counts, as in listings. State loaded before still holds.
        if self.only.is_some() {
            self.record.draws.clear();
        }
        let first = self.record.changes.len();
        let first_load = self.record.draws.last().map_or(0, |mark| mark.loads.end);
        let regs = scene.regs;
        // Submits before may have written anything.
        if self.record.draws.is_empty() || self.exact {
            let gone: Vec<u32> = self.shadow.iter_written().filter(|&reg| regs.get(reg).is_none()).collect();
            gone.into_iter().for_each(|reg| self.change(reg, None));
            regs.iter_written().for_each(|reg| self.change(reg, regs.get(reg)));
        } else {
            regs.iter_rewritten().for_each(|reg| self.change(reg, regs.get(reg)));
        }
        let unit = StateType::Shader.unit(self.generation);
        let code = self.shaders.each_ref().map(|shader| {
            let (start, length) = shader.as_ref()?;
            let get = |field: &Selected<'_>| {
                Some(field.read(|reg| regs.get(reg))? >> field.mask.trailing_zeros().min(63))
            };
            let iova = start.read(|reg| regs.get(reg))? & !0xf;
            let dwords = u32::try_from(get(length)?).ok()?.checked_mul(unit)?;
            (iova != 0 && dwords != 0).then_some((iova, dwords.min(LONGEST as u32)))
        });
        for key in code.iter().flatten() {
            self.record.code.entry(*key).or_default();
        }
        let from = if self.only.is_some() { 0 } else { first };
        self.record.draws.push(Mark {
            number: draw.number,
            kind: draw.kind,
            pass: scene.pass,
            primitive: draw.primitive,
            event: draw.event,
            count: draw.count,
            instances: draw.instances,
            changes: from..self.record.changes.len(),
            loads: first_load..self.record.loads.len(),
            code,
        });
    }

    fn load(&mut self, load: &LoadState<'_>) {
        if self.idle || (load.ty == StateType::Shader && self.shaders.iter().any(Option::is_some)) {
            return;
        }
        if self.record.loads.len() >= MAX_DRAWS {
            self.record.cut = true;
            return;
        }
        let dwords = u64::from(load.units).saturating_mul(load.ty.unit(self.generation).into());
        let dwords = usize::try_from(dwords).unwrap_or(usize::MAX).min(LONGEST);
        let contents = load.contents.map(|words| words.take(dwords)).filter(|words| words.len() == dwords);
        let stage = load.stage.and_then(|stage| STAGES.iter().position(|&s| s == stage));
        let slot = Slot { stage: stage.map(|s| s as u8), ty: load.ty as u8, dst: load.dst };
        self.record.loads.push((slot, contents.map(|words| hash(words.iter()))));
    }
}
