//! Questions about registers at draws: which draws, which values.
//!
//! [`Draws`] is a sink of Adreno's events, [`StepDraws`] one of any vendor's steps; they hand on draws with the registers at
//! hand. [`Query`] decides which of them are wanted and
//! reads the registers asked for, by offset. Never: formatting; what nothing has written is unknown (`None`), not 0.

pub mod expr;
mod names;
mod pass;

pub use expr::{Condition, Expr, ExprError, Mistake, Truth};
pub use pass::{Pass, PassTracker};

pub use names::{Column, RegisterNames};

use crate::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, Bin, BinPlace, LoadState, Once,
};
use crate::{Exec, Flow, Registers, Step, StepSink, StreamWork, TroubleKind};
use std::ops::RangeInclusive;
use unwedge_hw::{Gpu, Selected};

/// A draw, dispatch, blit or working event, and what holds there. Draws without vertices are none.
#[derive(Clone, Copy, Debug)]
pub struct DrawScene<'s> {
    /// The registers.
    pub regs: &'s Registers,
    /// The draw.
    pub draw: &'s StreamWork,
    /// Number of the submit; of a dump the ring.
    pub submit: u32,
    /// The pass of rendering, if it is known.
    pub pass: Option<Pass>,
    /// The bin, if anything has said which.
    pub bin: Option<Bin>,
}

/// What a walk could not follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Buffers that nothing holds: address and dwords of the first ones.
    pub missing: Vec<(u64, u64)>,
    /// All of those.
    pub missing_in_all: u64,
    /// Dwords that are no packets.
    pub skipped: u64,
    /// Streams inside too many others.
    pub too_deep: u64,
    /// The walk was given up.
    pub budget_spent: bool,
}

/// Missing buffers remembered one by one.
const MISSING_KEPT: usize = 16;

impl Lost {
    fn missing(&mut self, iova: Option<u64>, dwords: u64) {
        self.missing_in_all = self.missing_in_all.saturating_add(1);
        if self.missing.len() < MISSING_KEPT {
            self.missing.push((iova.unwrap_or(0), dwords));
        }
    }

    fn trouble(&mut self, kind: TroubleKind) {
        match kind {
            TroubleKind::BadHeader { skipped, .. } => {
                self.skipped = self.skipped.saturating_add(skipped as u64);
            }
            TroubleKind::TooDeep => self.too_deep = self.too_deep.saturating_add(1),
            TroubleKind::BudgetSpent => self.budget_spent = true,
            _ => {}
        }
    }
}

/// Receives draws.
pub trait Visitor {
    /// The next draw, in stream order.
    fn draw(&mut self, scene: &DrawScene<'_>);
    /// State that is loaded for the draws that follow.
    fn load(&mut self, _load: &LoadState<'_>) {}
}

impl<F: FnMut(&DrawScene<'_>)> Visitor for F {
    fn draw(&mut self, scene: &DrawScene<'_>) {
        self(scene);
    }
}

/// Hands the draws of walks on. Lives from one submit to the next.
pub struct Draws<'d, V> {
    /// Number of the submit that is walked.
    pub submit: u32,
    /// What could not be followed so far.
    pub lost: Lost,
    linear: bool,
    once: Option<Once>,
    pass: PassTracker<'d>,
    bins: BinPlace,
    /// Who receives them.
    pub visitor: V,
}

impl<'d, V: Visitor> Draws<'d, V> {
    /// Draws of walks that are linear or not; with `once`, a buffer that runs for each tile is walked once for each
    /// mode.
    pub fn new(gpu: Gpu<'d>, linear: bool, once: bool, visitor: V) -> Draws<'d, V> {
        let once = once.then(Once::default);
        Draws {
            submit: 0,
            lost: Lost::default(),
            linear,
            once,
            pass: PassTracker::new(gpu),
            bins: BinPlace::new(gpu),
            visitor,
        }
    }

    /// The submits that follow are of another GPU, or the state starts anew.
    pub fn restart(&mut self, gpu: Gpu<'d>) {
        self.pass = PassTracker::new(gpu);
        self.bins = BinPlace::new(gpu);
    }

    /// Other buffers may now lie where those were that have been walked.
    pub fn forget_buffers(&mut self) {
        if let Some(once) = &mut self.once {
            once.forget();
        }
    }
}

impl<V: Visitor> AdrenoSink for Draws<'_, V> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::Packet(packet)
                if matches!(packet.op, AdrenoOp::SetMarker | AdrenoOp::SetRenderMode)
                    && (self.linear || packet.exec != Exec::NotTaken) =>
            {
                self.pass.packet(packet);
            }
            // Draws of nothing only order what is around them.
            AdrenoEvent::Draw(draw) if draw.count != Some(0) => {
                let regs = state.current_regs();
                let pass = self.pass.now(regs);
                let draw = &StreamWork::from(draw);
                let scene = DrawScene { regs, draw, submit: self.submit, pass, bin: self.bins.bin(state) };
                self.visitor.draw(&scene);
            }
            AdrenoEvent::LoadState(load) => self.visitor.load(load),
            // The CP runs these when it switches contexts, not where the stream names them.
            AdrenoEvent::Enter(stream) if stream.kind == AdrenoStreamKind::Amble => return Flow::Skip,
            AdrenoEvent::Enter(stream)
                if self.once.as_mut().is_some_and(|once| once.repeated(state, stream)) =>
            {
                return Flow::Skip;
            }
            AdrenoEvent::Missing(stream) if stream.kind != AdrenoStreamKind::Amble && stream.claimed > 0 => {
                self.lost.missing(stream.iova, stream.claimed);
            }
            AdrenoEvent::Trouble(trouble) => self.lost.trouble(trouble.kind),
            _ => {}
        }
        Flow::Continue
    }
}

/// Hands the work of walks on, of any vendor. Lives from one stream to the next.
#[derive(Clone, Debug, Default)]
pub struct StepDraws<V> {
    /// Number of the stream that is walked: the ring, or the submit.
    pub submit: u32,
    /// What could not be followed so far.
    pub lost: Lost,
    /// Who receives it.
    pub visitor: V,
}

impl<V: Visitor> StepDraws<V> {
    /// Nothing walked yet.
    pub fn new(visitor: V) -> StepDraws<V> {
        StepDraws { submit: 0, lost: Lost::default(), visitor }
    }
}

impl<V: Visitor> StepSink for StepDraws<V> {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        match step {
            Step::Work(draw) => {
                let scene = DrawScene { regs, draw, submit: self.submit, pass: None, bin: None };
                self.visitor.draw(&scene);
            }
            Step::Missing(stream) => self.lost.missing(stream.iova, stream.claimed.unwrap_or(0)),
            Step::Trouble(trouble) => self.lost.trouble(trouble.kind),
            Step::Enter(_) | Step::Leave(_) | Step::Packet(_) | Step::Write(_) | Step::Wait(_) => {}
        }
        Flow::Continue
    }
}

/// At which of the draws that fit everything else values are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DrawChoice {
    /// At all of them.
    #[default]
    Always,
    /// Where one of the registers has been written since the draw before.
    Written,
    /// Where one of the values is another than at the draw that fitted before.
    Changed,
}

/// Which draws are wanted, and which registers of them.
#[derive(Clone, Debug)]
pub struct Query<'d> {
    /// What is read, in this order.
    pub columns: Vec<Option<Selected<'d>>>,
    /// Numbers of submits.
    pub submits: RangeInclusive<u32>,
    /// Numbers of draws.
    pub draws: RangeInclusive<u32>,
    /// Passes; none stands for all. A draw whose pass is not known is in none of them.
    pub passes: Vec<Pass>,
    /// What has to hold.
    pub condition: Option<Condition<'d>>,
    /// At which of these draws.
    pub when: DrawChoice,
    /// Draws for which the condition is unknown are wanted too.
    pub unknown: bool,
    /// Draws left out because the condition is unknown for them.
    pub left_out: u64,
    values: Vec<Option<u64>>,
    before: Option<Vec<Option<u64>>>,
}

impl<'d> Query<'d> {
    /// Every draw, with the values of these.
    pub fn new(columns: Vec<Option<Selected<'d>>>) -> Query<'d> {
        Query {
            values: vec![None; columns.len()],
            columns,
            submits: 0..=u32::MAX,
            draws: 0..=u32::MAX,
            passes: Vec::new(),
            condition: None,
            when: DrawChoice::Always,
            unknown: false,
            left_out: 0,
            before: None,
        }
    }

    /// What the condition is for a draw, if it is wanted; [`Query::values`] are then those of this draw.
    pub fn wants(&mut self, scene: &DrawScene<'_>) -> Option<Truth> {
        if !self.submits.contains(&scene.submit) || !self.draws.contains(&scene.draw.number) {
            return None;
        }
        if !self.passes.is_empty() && !scene.pass.is_some_and(|pass| self.passes.contains(&pass)) {
            return None;
        }
        let truth = self.condition.as_mut().map_or(Truth::True, |condition| condition.holds(scene));
        match truth {
            Truth::False => return None,
            Truth::Unknown if !self.unknown => {
                self.left_out = self.left_out.saturating_add(1);
                return None;
            }
            _ => {}
        }
        let written = |column: &Selected<'_>| column.dwords().any(|reg| scene.regs.rewritten(reg));
        if self.when == DrawChoice::Written && !self.columns.iter().flatten().any(written) {
            return None;
        }
        for (value, column) in self.values.iter_mut().zip(&self.columns) {
            *value = column.as_ref().and_then(|column| column.read(|reg| scene.regs.get(reg)));
        }
        if self.when == DrawChoice::Changed {
            if self.before.as_ref() == Some(&self.values) {
                return None;
            }
            self.before.get_or_insert_default().clone_from(&self.values);
        }
        Some(truth)
    }

    /// The values at the last draw that was wanted: the bits of each column in their places; `None` where they are not
    /// known.
    pub fn values(&self) -> &[Option<u64>] {
        &self.values
    }
}
