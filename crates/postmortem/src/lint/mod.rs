//! Lint of captures: work that reads what was not set, written, flushed or waited for, and packets that nothing needs.
//!
//! A capture is executed on the virtual Adreno with its caches, which follows who has set each register and written each byte.
//! Never: what a finding means in words. Facts: [`LINT_RULES`] has the source of each rule.

mod convert;
mod finding;
mod rules;
mod shaders;

pub use finding::{LintCounts, LintFinding, LintPacket, LintReport};
pub use rules::{LINT_RULES, LintRule, LintRuleRow};

use crate::args::{Arg, Args};
use convert::SetFindings;
use shaders::ShaderFindings;
use std::io::Read;
use unwedge_base::{ChipId, Diagnostic};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{AdrenoMachine, Loading, Replay, RunEnd};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};

/// Findings that are kept.
const MOST_FINDINGS: usize = 1 << 14;

/// What is linted, and how much may be executed for it.
#[derive(Clone, Debug)]
pub struct LintOptions {
    /// Which submits.
    pub choice: SubmitChoice,
    /// Steps that a submit may take.
    pub steps: u64,
    /// Steps of one packet after which it is taken for one that never ends.
    pub hang_steps: u64,
}

impl LintOptions {
    /// Every submit.
    pub fn new(steps: u64) -> LintOptions {
        let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
        LintOptions { choice, steps, hang_steps: 1 << 28 }
    }
}

/// Lints a capture. Returns what was found, and what was lost of the capture.
pub fn lint(
    capture: impl Read,
    options: &LintOptions,
    db: &Db,
    max_alive: u64,
) -> (LintReport, Vec<Diagnostic>) {
    let mut run = LintRun {
        db,
        options,
        replay: None,
        report: LintReport::default(),
        shaders: ShaderFindings::default(),
        fresh: true,
        sets: 0,
        opened: Vec::new(),
        reads: 0,
        losses: 0,
        diagnostics: Vec::new(),
    };
    let mut diagnostics = Player::new(options.choice.clone(), db, max_alive).play(capture, &mut run);
    run.end_set();
    diagnostics.append(&mut run.diagnostics);
    run.report.counts.shaders = run.shaders.checked();
    (run.report, diagnostics)
}

struct LintRun<'r, 'd> {
    db: &'d Db,
    options: &'r LintOptions,
    replay: Option<Replay<'d>>,
    report: LintReport,
    shaders: ShaderFindings,
    /// The next address begins a set of buffers.
    fresh: bool,
    sets: u64,
    /// The set of each submit of the machine, from its first.
    opened: Vec<u64>,
    /// Stale reads and lost writes that were reported.
    reads: usize,
    losses: usize,
    diagnostics: Vec<Diagnostic>,
}

impl LintRun<'_, '_> {
    fn keep(&mut self, findings: Vec<LintFinding>) {
        let room = MOST_FINDINGS.saturating_sub(self.report.findings.len());
        self.report.more |= findings.len() > room;
        self.report.findings.extend(findings.into_iter().take(room));
    }

    /// Ends what the driver gave the kernel at once, and takes what was found in it.
    fn end_set(&mut self) {
        let Some(replay) = &mut self.replay else { return };
        if let Some(end) = replay.end().filter(|end| *end != RunEnd::Done) {
            let set = self.opened.last().copied().unwrap_or(0);
            let args = Args::new().with("set", Arg::Number(set)).with("why", Arg::Text(why(&end)));
            let (rule, reader) = (LintRule::NotJudged, None);
            let finding = LintFinding { rule, reader, writer: None, expected: None, args };
            self.keep(vec![finding]);
        }
        let Some(replay) = &mut self.replay else { return };
        let set = SetFindings::take(replay, &self.opened, (self.reads, self.losses));
        (self.reads, self.losses) = set.seen;
        let mut findings = set.findings(replay);
        findings.extend(self.shaders.check(replay, &set));
        self.report.more |= set.more();
        self.keep(findings);
    }
}

/// How a submit ended that was not executed to its end.
fn why(end: &RunEnd) -> String {
    match end {
        RunEnd::Stopped { stop, .. } => stop.to_string(),
        RunEnd::Hung => "it waits for what nothing writes".to_owned(),
        RunEnd::Budget => "it takes more steps than it may".to_owned(),
        RunEnd::Done | RunEnd::Dropped | RunEnd::Left => String::new(),
    }
}

impl<'d> Consumer<'d> for LintRun<'_, 'd> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.end_set();
            self.sets += 1;
        }
    }

    fn identity(&mut self, identity: Identity, _: Option<Gpu<'d>>) {
        self.end_set();
        (self.reads, self.losses) = (0, 0);
        self.opened.clear();
        let (gpu_id, chip_id) = match identity {
            Identity::GpuId(gpu_id) => (gpu_id, ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        let known = self.db.identify(gpu_id, chip_id);
        self.replay = known.and_then(|adreno| AdrenoMachine::new(self.db, adreno)).map(|mut machine| {
            machine.hang_steps = self.options.hang_steps;
            machine.enable_caches();
            machine.enable_audit();
            Replay::new(machine, Loading::Delta)
        });
        match &self.replay {
            Some(_) => self.report.gpu = identity.name(),
            None => {
                let message = "lint executes the capture on the virtual Adreno, which is an a6xx or an a7xx; the capture is of another GPU";
                self.diagnostics.push(Diagnostic::loss(None, message));
            }
        }
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let Some(replay) = self.replay.as_mut().filter(|_| !submission.hidden) else { return };
        let (submit, memory) = (submission.submit, submission.live.memory());
        let set = self.sets.saturating_sub(1);
        if self.opened.last() != Some(&set) {
            self.opened.push(set);
        }
        replay.load(memory);
        let before = replay.machine.work_done();
        replay.execute(memory, submit.iova, submit.dwords, self.options.steps, None);
        self.report.counts.submits += 1;
        self.report.counts.work += replay.machine.work_done() - before;
    }
}
