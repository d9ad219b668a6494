//! What the draws of a submit had, kept as changes from draw to draw.

use crate::adreno::{LoadState, Stage, StateType};
use crate::compare::RegisterFacts;
use crate::query::{DrawScene, Pass, Visitor};
use crate::{Registers, WorkKind};
use std::collections::BTreeMap;
use std::ops::Range;
use unwedge_base::hash::Fnv1a;
use unwedge_base::{Dwords, Generation, Memory};
use unwedge_hw::{Gpu, Selected};

/// Draws, and pieces of loaded state, kept of one submit: so many, and one more for each dword that its buffers hold.
/// What is drawn for each of some dozens of bins fits.
const DRAWS: Share = Share { floor: 1 << 12, per_dword: 1, most: 1 << 18 };
/// Changes of registers kept of one submit.
const CHANGES: Share = Share { floor: 1 << 16, per_dword: 8, most: 1 << 22 };
/// Dwords of a shader or of loaded state that are looked at.
const LONGEST: usize = 1 << 15;

/// How much of something a submit may have.
struct Share {
    floor: u64,
    per_dword: u64,
    most: u64,
}

impl Share {
    fn of(&self, memory: &Memory) -> usize {
        let share = memory.stored().saturating_mul(self.per_dword).saturating_add(self.floor);
        usize::try_from(share.min(self.most)).unwrap_or(0)
    }
}

/// A draw of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its number in listings.
    pub number: u32,
    /// What it is.
    pub kind: WorkKind,
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
    pub(super) changes: Range<u32>,
    pub(super) loads: Range<u32>,
    /// Which of the record's sets of shaders.
    pub(super) shaders: u32,
}

/// A register, and what it became.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// With [`UNKNOWN`] if nobody can tell its value.
    reg: u32,
    value: u32,
}

/// No register space is as large.
const UNKNOWN: u32 = 1 << 31;

impl Change {
    fn new(reg: u32, value: Option<u32>) -> Change {
        let known = if value.is_some() { 0 } else { UNKNOWN };
        Change { reg: reg | known, value: value.unwrap_or(0) }
    }

    pub(super) fn reg(self) -> u32 {
        self.reg & !UNKNOWN
    }

    pub(super) fn value(self) -> Option<u32> {
        (self.reg & UNKNOWN == 0).then_some(self.value)
    }
}

/// Of each stage where its shader lies, and its dwords.
type Code = [Option<(u64, u32)>; STAGES.len()];

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
    /// Its name, where streams have names.
    pub name: String,
    /// Its draws, in stream order.
    pub draws: Vec<Mark>,
    /// Address and size of each buffer that was alive, by address.
    pub buffers: Vec<(u64, u64)>,
    /// There was more than is kept.
    pub cut: bool,
    pub(super) changes: Vec<Change>,
    pub(super) loads: Vec<(Slot, Option<Contents>)>,
    /// Sets of shaders that draws have, by stage.
    pub(super) shaders: Vec<[Option<Contents>; STAGES.len()]>,
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
    /// Of Adreno, whose shaders and loaded state count in units.
    generation: Option<Generation>,
    shaders: [Option<(Selected<'d>, Selected<'d>)>; STAGES.len()],
    /// Sets of shaders that draws of the record have, by where they lie.
    sets: BTreeMap<Code, u32>,
    /// What fits into the record.
    most_draws: usize,
    most_changes: usize,
    /// Dwords of contents that may still be looked at.
    looks: u64,
    /// Draws are not wanted now.
    idle: bool,
    /// Any register may be another than in the shadow, not only those written since the draw before.
    stale: bool,
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
        Recorder { generation: Some(gpu.generation()), shaders, ..Recorder::of_registers(&gpu, linear, only) }
    }

    /// The same of any vendor's GPU: what draws have but registers is not known.
    pub fn of_registers(facts: &dyn RegisterFacts, linear: bool, only: Option<u32>) -> Recorder<'d> {
        Recorder {
            record: Record::default(),
            shadow: Registers::new(facts.registers()),
            exact: !linear,
            only,
            generation: None,
            shaders: [const { None }; STAGES.len()],
            sets: BTreeMap::new(),
            most_draws: 0,
            most_changes: 0,
            looks: 0,
            idle: true,
            stale: true,
        }
    }

    /// The registers have been reset.
    pub fn restart(&mut self) {
        self.stale = true;
    }

    /// A submit that is wanted begins, with these buffers. Contents of so many dwords may be looked at: streams can
    /// point at the same ones again and again.
    pub fn begin(&mut self, submit: u32, memory: &Memory, looks: u64) {
        self.record = Record { submit, ..Record::default() };
        self.sets.clear();
        (self.most_draws, self.most_changes) = (DRAWS.of(memory), CHANGES.of(memory));
        self.looks = looks;
        self.idle = false;
    }

    /// The submit has been walked: what it had, and how many more dwords might have been looked at.
    pub fn end(&mut self, memory: &Memory) -> (Record, u64) {
        self.idle = true;
        self.record.buffers = memory.buffers().iter().map(|b| (b.iova, b.size)).collect();
        self.record.shaders = vec![[None; STAGES.len()]; self.sets.len()];
        let mut known: BTreeMap<(u64, u32), Option<Contents>> = BTreeMap::new();
        for (code, at) in std::mem::take(&mut self.sets) {
            let contents = code.map(|place| {
                let (iova, dwords) = place?;
                if let Some(contents) = known.get(&(iova, dwords)) {
                    return *contents;
                }
                let contents = self.contents(memory.dwords(iova), dwords as usize);
                known.insert((iova, dwords), contents);
                contents
            });
            if let Some(set) = self.record.shaders.get_mut(at as usize) {
                *set = contents;
            }
        }
        (std::mem::take(&mut self.record), self.looks)
    }

    fn change(&mut self, reg: u32, value: Option<u32>) {
        if self.shadow.get(reg) == value {
            return;
        }
        if self.record.changes.len() >= self.most_changes {
            self.record.cut = true;
            self.stale = true;
            return;
        }
        match value {
            Some(value) => self.shadow.set(reg, value),
            None => self.shadow.forget(reg),
        }
        self.record.changes.push(Change::new(reg, value));
    }

    /// The first so many of these words; `None` if there are less, or enough has been looked at.
    fn contents(&mut self, words: Option<Dwords<'_>>, dwords: usize) -> Option<Contents> {
        let words = words.map(|words| words.take(dwords)).filter(|words| words.len() == dwords)?;
        let Some(left) = self.looks.checked_sub(dwords as u64) else {
            self.record.cut = true;
            return None;
        };
        self.looks = left;
        Some(hash(words.iter()))
    }
}

/// FNV-1a over dwords.
fn hash(words: impl Iterator<Item = u32>) -> Contents {
    let (mut hash, mut dwords) = (Fnv1a::default(), 0u32);
    for word in words {
        hash.add_unit(word.into());
        dwords = dwords.saturating_add(1);
    }
    Contents { hash: hash.value(), dwords }
}

impl Visitor for Recorder<'_> {
    fn draw(&mut self, scene: &DrawScene<'_>) {
        let draw = scene.draw;
        if self.idle || self.only.is_some_and(|only| only != draw.number) {
            self.stale = true;
            return;
        }
        // Of several with the number the last one counts, as in listings. State loaded before still holds.
        if self.only.is_some() {
            self.record.draws.clear();
        }
        if self.record.draws.len() >= self.most_draws {
            self.record.cut = true;
            self.stale = true;
            return;
        }
        let first = self.record.changes.len();
        let first_load = self.record.draws.last().map_or(0, |mark| mark.loads.end);
        let regs = scene.regs;
        if std::mem::take(&mut self.stale) || self.exact {
            let gone: Vec<u32> = self.shadow.iter_written().filter(|&reg| regs.get(reg).is_none()).collect();
            gone.into_iter().for_each(|reg| self.change(reg, None));
            regs.iter_written().for_each(|reg| self.change(reg, regs.get(reg)));
        } else {
            regs.iter_rewritten().for_each(|reg| self.change(reg, regs.get(reg)));
        }
        let unit = self.generation.map_or(0, |generation| StateType::Shader.unit(generation));
        let code = self.shaders.each_ref().map(|shader| {
            let (start, length) = shader.as_ref()?;
            let get = |field: &Selected<'_>| {
                Some(field.read(|reg| regs.get(reg))? >> field.mask.trailing_zeros().min(63))
            };
            let iova = start.read(|reg| regs.get(reg))? & !0xf;
            let dwords = u32::try_from(get(length)?).ok()?.checked_mul(unit)?;
            (iova != 0 && dwords != 0).then_some((iova, dwords.min(LONGEST as u32)))
        });
        let next = self.sets.len() as u32;
        let shaders = *self.sets.entry(code).or_insert(next);
        let from = if self.only.is_some() { 0 } else { first };
        self.record.draws.push(Mark {
            number: draw.number,
            kind: draw.kind,
            pass: scene.pass,
            primitive: draw.primitive,
            event: draw.event,
            count: draw.count,
            instances: draw.instances,
            changes: from as u32..self.record.changes.len() as u32,
            loads: first_load..self.record.loads.len() as u32,
            shaders,
        });
    }

    fn load(&mut self, load: &LoadState<'_>) {
        if self.idle || (load.ty == StateType::Shader && self.shaders.iter().any(Option::is_some)) {
            return;
        }
        if self.record.loads.len() >= self.most_draws {
            self.record.cut = true;
            return;
        }
        let unit = self.generation.map_or(0, |generation| load.ty.unit(generation));
        let dwords = u64::from(load.units).saturating_mul(unit.into());
        let dwords = usize::try_from(dwords).unwrap_or(usize::MAX).min(LONGEST);
        let stage = load.stage.and_then(|stage| STAGES.iter().position(|&s| s == stage));
        let slot = Slot { stage: stage.map(|s| s as u8), ty: load.ty as u8, dst: load.dst };
        let contents = self.contents(load.contents, dwords);
        self.record.loads.push((slot, contents));
    }
}
