//! Plays rd captures: reads the sections, keeps what is alive, and hands each submit to a [`Consumer`] together with
//! what is needed to walk it.
//!
//! Every reader of captures goes through here. Memory is bounded by what is alive, not by the length of the capture.
//! Never: what is shown of a submit.

use crate::adreno::{AdrenoSink, AdrenoState, AdrenoWalker, Reach, WalkerOptions, budget};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::ops::RangeInclusive;
use unwedge_base::plural::counted;
use unwedge_base::{ChipId, Diagnostic, Dwords, Memory, Severity, Span};
use unwedge_capture::rd::{LiveMemory, LiveStep, RdReader, RdSection, RdSectionKind, Submit};
use unwedge_hw::{Db, Gpu};

/// Processes that are taken for window systems, by how their names begin; cffdump takes the same.
const COMPOSITORS: [&[u8]; 4] = [b"fdperf", b"chrome", b"surfaceflinger", b"X"];
/// Window systems counted apart in messages.
const COMPOSITORS_KEPT: usize = 16;
/// Diagnostics kept of each severity; the rest is counted. A capture may be endless.
const DIAGNOSTICS_KEPT: usize = 256;
/// Dwords that may be walked for each byte of a capture so far, in all its submits: what a buffer holds is walked for
/// each bin.
const WALK_PER_BYTE: u64 = 16;
/// Dwords that may be walked of any submit.
const WALK_EACH: u64 = 1 << 12;
/// Dwords that may be walked in all, whatever the length of the capture.
const WALK_ALL: u64 = 1 << 22;

/// Which submits are wanted.
#[derive(Clone, Debug)]
pub struct SubmitChoice {
    /// By number.
    pub submits: RangeInclusive<i32>,
    /// Only those of processes whose names begin so.
    pub exe: Option<OsString>,
    /// Those of window systems too.
    pub compositors: bool,
    /// All of a capture is taken to be of the GPU it names first.
    pub one_gpu: bool,
}

impl Default for SubmitChoice {
    fn default() -> SubmitChoice {
        SubmitChoice { submits: 0..=i32::MAX, exe: None, compositors: false, one_gpu: false }
    }
}

/// How a capture names its GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// `gpu_id`
    GpuId(u32),
    /// `chip_id`
    ChipId(ChipId),
}

impl Identity {
    /// What the device table calls it: `FD630`.
    pub fn name(self) -> Option<String> {
        let (gpu_id, chip_id) = match self {
            Identity::GpuId(gpu_id) => (gpu_id, ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        Db::builtin().device(gpu_id, chip_id).map(|device| device.name().to_owned())
    }
}

/// Does something with captures. Calls come in the order of the capture.
pub trait Consumer<'d> {
    /// A capture begins: nothing is written, draws count from 0.
    fn begin(&mut self) {}
    /// The next section has been read, and this is what it did to what is alive. The zeros at the end of a buffer's contents are
    /// not in its payload.
    fn section(&mut self, _section: &RdSection<'_>, _step: LiveStep) {}
    /// The capture names its GPU, and says by that what is submitted from here on: nothing is written again. `None`: a
    /// GPU that no database is there for.
    fn identity(&mut self, _identity: Identity, _gpu: Option<Gpu<'d>>) {}
    /// A submit that was chosen.
    fn submit(&mut self, submission: Submission<'_, 'd>);
    /// Nothing more is wanted.
    fn done(&self) -> bool {
        false
    }
}

/// Plays captures one after another; what the GPU remembers, the next capture begins with.
pub struct Player<'d> {
    choice: SubmitChoice,
    db: &'d Db,
    gpu: Option<Gpu<'d>>,
    state: Option<AdrenoState>,
    max_alive: u64,
    absent_stream: Severity,
}

impl<'d> Player<'d> {
    /// A player with nothing known yet, that holds no more than about `max_alive` bytes of buffers.
    pub fn new(choice: SubmitChoice, db: &'d Db, max_alive: u64) -> Player<'d> {
        Player { choice, db, gpu: None, state: None, max_alive, absent_stream: Severity::Loss }
    }

    /// Whatever was chosen, a capture may be of several GPUs.
    pub fn follow_gpus(&mut self) {
        self.choice.one_gpu = false;
    }

    /// A submit whose command stream is not in the capture is a note, not a loss: the capture itself was read whole.
    pub fn tolerate_absent_streams(&mut self) {
        self.absent_stream = Severity::Note;
    }

    /// Plays a capture. Returns what was lost and left out.
    pub fn play(&mut self, capture: impl Read, consumer: &mut dyn Consumer<'d>) -> Vec<Diagnostic> {
        let mut reader = RdReader::new(capture).with_limit(self.max_alive).counting_zeros();
        let mut live = LiveMemory::new().with_limit(self.max_alive);
        let mut diagnostics = PlayDiagnostics::default();
        let mut scene = CaptureScene { allowance: WALK_ALL, ..CaptureScene::default() };
        self.restart();
        consumer.begin();
        while let Some(section) = reader.next() {
            let step = live.take(&section);
            consumer.section(&section, step);
            scene.allowance =
                scene.allowance.saturating_add(WALK_PER_BYTE.saturating_mul(section.span.len()));
            match step {
                LiveStep::Process => scene.hidden = self.hides(live.process()),
                LiveStep::Identity => self.identify(&section, &mut scene, consumer, &mut diagnostics),
                LiveStep::Submit(submit) => {
                    let number = i32::try_from(submit.number).unwrap_or(i32::MAX);
                    if self.choice.submits.contains(&number) {
                        if scene.hidden && self.choice.exe.is_none() {
                            scene.hide(live.process());
                        }
                        consumer.submit(Submission {
                            submit,
                            hidden: scene.hidden,
                            live: &live,
                            gpu: self.gpu,
                            state: &mut self.state,
                            allowance: &mut scene.allowance,
                            diagnostics: &mut diagnostics,
                            absent_stream: self.absent_stream,
                        });
                    }
                }
                LiveStep::Nothing | LiveStep::Buffer | LiveStep::Forgotten => {}
            }
            if consumer.done() {
                break;
            }
        }
        reader.diagnostics().iter().cloned().chain(live.diagnostics()).for_each(|d| diagnostics.report(d));
        for (process, submits) in scene.compositors {
            let process = String::from_utf8_lossy(&process);
            let message = format!(
                "{}: --show-compositor shows {}",
                counted(
                    submits,
                    &format!("submit of {process} is not shown"),
                    &format!("submits of {process} are not shown")
                ),
                if submits == 1 { "it" } else { "them" }
            );
            diagnostics.report(Diagnostic::note(None, message));
        }
        diagnostics.finish()
    }

    fn hides(&self, process: &[u8]) -> bool {
        match &self.choice.exe {
            Some(exe) => !process.starts_with(exe.as_encoded_bytes()),
            None if self.choice.compositors => false,
            None => COMPOSITORS.iter().any(|name| process.starts_with(name)),
        }
    }

    /// The first identity of a capture counts, and, unless `one_gpu` is set, any that names another generation: captures may
    /// be concatenated.
    fn identify(
        &mut self,
        section: &RdSection<'_>,
        scene: &mut CaptureScene,
        consumer: &mut dyn Consumer<'d>,
        diagnostics: &mut PlayDiagnostics,
    ) {
        let identity = match section.kind {
            RdSectionKind::ChipId => section.chip_id().map(Identity::ChipId),
            _ => section.gpu_id().filter(|&id| id != 0).map(Identity::GpuId),
        };
        let Some(identity) = identity else { return };
        let (gpu_id, chip_id) = match identity {
            Identity::GpuId(gpu_id) => (gpu_id, ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        let known = self.db.identify(gpu_id, chip_id);
        let generation = known.map(|gpu| gpu.generation);
        let other = self.gpu.map(|gpu| gpu.generation()) != generation;
        if scene.identified && (self.choice.one_gpu || generation.is_none() || !other) {
            return;
        }
        let Some(generation) = generation else {
            let message = format!("no register database for gpu_id {gpu_id}, chip_id {chip_id}");
            diagnostics.report(Diagnostic::loss(section.span, message));
            consumer.identity(identity, None);
            return;
        };
        // A number that no device has as its GPU id, though one may have it in its name, says less than a chip id.
        let numbered = known.and_then(|gpu| gpu.device?.gpu_id()).is_some();
        if matches!(identity, Identity::ChipId(_)) || numbered {
            scene.identified = true;
        } else if std::mem::replace(&mut scene.guessed, true) && !other {
            return;
        }
        if other {
            self.state = None;
        }
        let gpu = self.db.gpu(generation);
        self.gpu = Some(gpu);
        self.restart();
        consumer.identity(identity, Some(gpu));
    }

    /// Forgets what was written; draws count from 0.
    fn restart(&mut self) {
        if let Some(state) = &mut self.state {
            state.regs.reset();
            state.draws = 0;
        }
    }
}

/// Where the playing of a capture is.
#[derive(Default)]
struct CaptureScene {
    identified: bool,
    /// Its number said no more than the generation.
    guessed: bool,
    hidden: bool,
    /// Dwords that may still be walked.
    allowance: u64,
    /// Submits of window systems that are not shown, by process.
    compositors: BTreeMap<Vec<u8>, u64>,
}

impl CaptureScene {
    fn hide(&mut self, process: &[u8]) {
        if let Some(submits) = self.compositors.get_mut(process) {
            *submits += 1;
        } else if self.compositors.len() < COMPOSITORS_KEPT {
            self.compositors.insert(process.to_vec(), 1);
        }
    }
}

/// What is wrong with a capture, within bounds.
#[derive(Default)]
struct PlayDiagnostics {
    losses: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
    more: u64,
}

impl PlayDiagnostics {
    fn report(&mut self, diagnostic: Diagnostic) {
        let kept = match diagnostic.severity {
            Severity::Loss => &mut self.losses,
            Severity::Note => &mut self.notes,
        };
        if kept.len() < DIAGNOSTICS_KEPT {
            kept.push(diagnostic);
        } else if diagnostic.severity == Severity::Loss {
            self.more += 1;
        }
    }

    fn finish(mut self) -> Vec<Diagnostic> {
        if self.more > 0 {
            self.losses.push(Diagnostic::loss(None, format!("{} more losses", self.more)));
        }
        self.losses.append(&mut self.notes);
        self.losses
    }
}

/// A submit, and what is alive for it.
pub struct Submission<'a, 'd> {
    /// The submit.
    pub submit: Submit,
    /// It is of a process that is not to be shown.
    pub hidden: bool,
    /// What is alive.
    pub live: &'a LiveMemory,
    gpu: Option<Gpu<'d>>,
    state: &'a mut Option<AdrenoState>,
    allowance: &'a mut u64,
    diagnostics: &'a mut PlayDiagnostics,
    absent_stream: Severity,
}

/// Why a submit cannot be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The capture has not named a GPU that is known.
    Gpu,
    /// Its command stream is not in the capture.
    Stream,
}

impl<'a, 'd> Submission<'a, 'd> {
    /// Finds the command stream. What is not there is reported.
    ///
    /// # Errors
    /// [`Absent`] when the GPU is not known, or the capture does not hold the stream.
    pub fn open(self) -> Result<SubmitWalk<'a, 'd>, Absent> {
        let Submit { iova, dwords, span, .. } = self.submit;
        let Some(gpu) = self.gpu else {
            self.diagnostics.report(Diagnostic::loss(span, "a submit before the GPU is known is not shown"));
            return Err(Absent::Gpu);
        };
        let memory = self.live.memory();
        let Some(stream) = memory.dwords(iova) else {
            let message = format!("the command stream at {iova:#x} is not in the capture");
            let severity = self.absent_stream;
            self.diagnostics.report(Diagnostic { severity, span: Some(span), message });
            return Err(Absent::Stream);
        };
        let stream = stream.take(dwords as usize);
        if stream.len() < dwords as usize {
            let message = format!(
                "the command stream at {iova:#x} is longer than its buffer: it has {} of {}",
                stream.len(),
                counted(dwords.into(), "dword", "dwords"),
            );
            self.diagnostics.report(Diagnostic::loss(span, message));
        }
        let Submission { state, allowance, diagnostics, .. } = self;
        Ok(SubmitWalk { gpu, memory, compare: false, iova, stream, span, state, allowance, diagnostics })
    }
}

/// What a walk of a submit starts from: see [`SubmitWalk::mark`].
#[derive(Clone, Debug)]
pub struct WalkMark {
    state: Option<AdrenoState>,
    allowance: u64,
}

/// A submit that can be walked.
pub struct SubmitWalk<'a, 'd> {
    /// The database view of the GPU.
    pub gpu: Gpu<'d>,
    /// The buffers.
    pub memory: &'a Memory,
    /// Compare what draw-state groups write in each pass.
    pub compare: bool,
    iova: u64,
    stream: Dwords<'a>,
    span: Span,
    state: &'a mut Option<AdrenoState>,
    allowance: &'a mut u64,
    diagnostics: &'a mut PlayDiagnostics,
}

impl SubmitWalk<'_, '_> {
    /// Walks the command stream as listing tools do, from the state that the submits before have left.
    pub fn run(&mut self, sink: &mut dyn AdrenoSink) {
        let budget = budget(self.memory).min(self.allowance.saturating_add(WALK_EACH));
        let options = WalkerOptions { linear: true, budget };
        let mut walker = AdrenoWalker::new(self.gpu, self.memory, options);
        if let Some(state) = self.state.take() {
            walker.state = state;
        }
        walker.compare = self.compare;
        walker.walk(self.stream, Some(self.iova), sink);
        *self.allowance = self.allowance.saturating_sub(budget.saturating_sub(walker.left()));
        *self.state = Some(std::mem::take(&mut walker.state));
    }

    /// What a walk starts from, to walk again from there.
    pub fn mark(&self) -> WalkMark {
        WalkMark { state: self.state.clone(), allowance: *self.allowance }
    }

    /// Goes back to where the submit has not been walked, or not so often.
    pub fn rewind(&mut self, mark: &WalkMark) {
        self.state.clone_from(&mark.state);
        *self.allowance = mark.allowance;
    }

    /// The same as if nothing had been before it, and without a trace in the submits after it.
    pub fn look(&mut self, sink: &mut dyn AdrenoSink) {
        let state = self.state.take();
        self.run(sink);
        *self.state = state;
    }

    /// Finds what the submit needs, as hardware walks it.
    pub fn reach(&mut self, reach: &mut Reach) {
        let budget = budget(self.memory).min(self.allowance.saturating_add(WALK_EACH));
        let dwords = u32::try_from(self.stream.len()).unwrap_or(u32::MAX);
        let left = reach.run_within(self.gpu, self.memory, self.iova, dwords, budget);
        *self.allowance = self.allowance.saturating_sub(budget.saturating_sub(left));
    }

    /// Notes something that was lost or is unusual about this submit.
    pub fn tell(&mut self, severity: Severity, message: String) {
        self.diagnostics.report(Diagnostic { severity, span: Some(self.span), message });
    }
}
