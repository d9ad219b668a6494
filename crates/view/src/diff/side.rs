//! One of the two things that are compared: where it is, and its submits, one after another.

use super::{Opened, Selector};
use crate::decode::stretches;
use crate::query::lost_messages;
use crate::streams::{Family, RegisterSet, Streams, intel_names};
use crate::{ViewError, device};
use std::sync::mpsc::SyncSender;
use unwedge_base::{Diagnostic, Generation};
use unwedge_capture::msm::Devcore;
use unwedge_capture::rd::{LiveStep, RdSection};
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::{Db, Gpu};
use unwedge_postmortem::adreno::{AdrenoCase, hang};
use unwedge_stream::compare::{Record, Recorder};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use unwedge_stream::query::{Draws, StepDraws};

/// What comes from a side while it is read.
pub enum SideEvent {
    /// The GPU of what follows.
    Gpu(Family),
    /// A submit that is wanted.
    Submit(Box<Record>),
}

/// Reads a side and tells what is wanted of it; ends early when nobody listens any more. Returns what was lost.
pub fn read(
    opened: Opened<'_>,
    selector: &Selector,
    once: bool,
    db: &Db,
    max_alive: u64,
    out: SyncSender<SideEvent>,
) -> Result<Vec<Diagnostic>, ViewError> {
    match opened {
        Opened::Capture(mut stream) => {
            let mut tape =
                Tape { selector, once, out, draws: None, generation: None, looks: LOOKS, ended: false };
            let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
            let mut diagnostics = Player::new(choice, db, max_alive).play(&mut stream, &mut tape);
            diagnostics.extend(stream.diagnostics());
            Ok(diagnostics)
        }
        Opened::Files { files, kind, diagnostics } => {
            let parts: Vec<DumpPart<'_>> =
                files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
            let read = Dump::read_as(kind, &parts)?;
            dump(selector, once, (&read, &diagnostics), db, max_alive, &out)
        }
        Opened::Dump { dump: read, lost } => dump(selector, once, (read, lost), db, max_alive, &out),
    }
}

/// Records the streams of a dump of any driver.
fn dump(
    selector: &Selector,
    once: bool,
    (read, lost): (&Dump<'_>, &[Diagnostic]),
    db: &Db,
    max_size: u64,
    out: &SyncSender<SideEvent>,
) -> Result<Vec<Diagnostic>, ViewError> {
    if let Dump::Msm(dump) = read {
        return devcore(selector, once, (dump, lost), db, out);
    }
    let facts = Db::amd();
    let mut streams = Streams::of(read, &facts, max_size).ok_or(ViewError::UnknownGpu)?;
    let mut diagnostics = [lost, read.diagnostics()].concat();
    let family = streams.family();
    if out.send(SideEvent::Gpu(family)).is_err() {
        return Ok(diagnostics);
    }
    let names;
    let set = match family {
        Family::Intel(version) => {
            names = intel_names(version);
            RegisterSet::Intel(&names)
        }
        Family::Amd(gfx) => RegisterSet::Amd(facts.amd_gpu(gfx)),
        Family::Adreno(_) => return Err(ViewError::UnknownGpu),
    };
    let mut walked = false;
    let mut looks = None;
    streams.each(&mut |stream| {
        walked = true;
        if !selector.wants(stream.number) {
            return true;
        }
        let mut draws = StepDraws::new(Recorder::of_registers(&set, false, selector.draw));
        let looks = looks.get_or_insert_with(|| unwedge_stream::budget(stream.memory));
        draws.visitor.begin(stream.number, stream.memory, *looks);
        stream.walk(&mut draws);
        for (severity, message) in lost_messages(std::mem::take(&mut draws.lost)) {
            let message = format!("ring {}, {}: {message}", stream.number, stream.name);
            diagnostics.push(Diagnostic { severity, span: None, message });
        }
        let (mut record, left) = draws.visitor.end(stream.memory);
        record.name.clone_from(&stream.name);
        *looks = left;
        let Some(record) = selector.keep(record) else { return true };
        out.send(SideEvent::Submit(record)).is_ok() && selector.draw.is_none()
    });
    if walked { Ok(diagnostics) } else { Err(ViewError::NoStreams) }
}

/// Records the submits of a capture.
struct Tape<'a, 'd> {
    selector: &'a Selector,
    once: bool,
    out: SyncSender<SideEvent>,
    draws: Option<Draws<'d, Recorder<'d>>>,
    generation: Option<Generation>,
    /// Dwords of shaders and loaded state that may still be looked at.
    looks: u64,
    ended: bool,
}

/// Dwords of shaders and loaded state that may be looked at, whatever the length of the capture.
const LOOKS: u64 = 1 << 24;
/// More of them for each byte of it.
const LOOKS_PER_BYTE: u64 = 16;

impl Selector {
    fn wants(&self, submit: u32) -> bool {
        self.submit.is_none_or(|wanted| wanted == submit)
    }

    /// The record, unless the wanted draw is not in it.
    fn keep(&self, record: Record) -> Option<Box<Record>> {
        (self.draw.is_none() || !record.draws.is_empty()).then(|| Box::new(record))
    }
}

impl<'d> Consumer<'d> for Tape<'_, 'd> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.looks = self.looks.saturating_add(LOOKS_PER_BYTE.saturating_mul(section.span.len()));
        if step == LiveStep::Forgotten
            && let Some(draws) = &mut self.draws
        {
            draws.forget_buffers();
        }
    }

    fn identity(&mut self, _identity: Identity, gpu: Option<Gpu<'d>>) {
        let Some(gpu) = gpu else { return };
        if self.generation != Some(gpu.generation()) {
            self.generation = Some(gpu.generation());
            self.ended |= self.out.send(SideEvent::Gpu(Family::Adreno(gpu.generation()))).is_err();
            self.draws = None;
        }
        match &mut self.draws {
            Some(draws) => {
                draws.restart(gpu);
                draws.visitor.restart();
            }
            None => {
                let recorder = Recorder::new(gpu, true, self.selector.draw);
                self.draws = Some(Draws::new(gpu, true, self.once, recorder));
            }
        }
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let number = submission.submit.number;
        if self.selector.submit.is_some_and(|last| number > last) {
            self.ended = true;
            return;
        }
        let Ok(mut walk) = submission.open() else { return };
        let Some(draws) = &mut self.draws else { return };
        let wanted = self.selector.wants(number);
        if wanted {
            draws.visitor.begin(number, walk.memory, self.looks);
        }
        walk.run(draws);
        for (severity, message) in lost_messages(std::mem::take(&mut draws.lost)) {
            walk.tell(severity, message);
        }
        if !wanted {
            return;
        }
        let (record, looks) = draws.visitor.end(walk.memory);
        self.looks = looks;
        if let Some(record) = self.selector.keep(record) {
            self.ended |= self.out.send(SideEvent::Submit(record)).is_err() || self.selector.draw.is_some();
        }
    }

    fn done(&self) -> bool {
        self.ended
    }
}

/// Records the rings of a dump of msm.
fn devcore(
    selector: &Selector,
    once: bool,
    (dump, lost): (&Devcore<'_>, &[Diagnostic]),
    db: &Db,
    out: &SyncSender<SideEvent>,
) -> Result<Vec<Diagnostic>, ViewError> {
    let mut diagnostics = [lost, &dump.diagnostics].concat();
    let gpu = device::gpu(dump, db).ok_or(ViewError::UnknownGpu)?;
    if out.send(SideEvent::Gpu(Family::Adreno(gpu.generation()))).is_err() {
        return Ok(diagnostics);
    }
    let case = AdrenoCase::new(dump, gpu);
    let mut budget = unwedge_stream::adreno::budget(&case.memory);
    let mut looks = budget;
    for stretch in stretches(&case, hang::locate(&case).as_ref()) {
        if !selector.wants(stretch.ring.id) {
            continue;
        }
        let mut draws = Draws::new(gpu, false, once, Recorder::new(gpu, false, selector.draw));
        draws.visitor.begin(stretch.ring.id, &case.memory, looks);
        stretch.walk(&case, &mut budget, &mut draws);
        for (severity, message) in lost_messages(std::mem::take(&mut draws.lost)) {
            let message = format!("ring {}: {message}", stretch.ring.id);
            diagnostics.push(Diagnostic { severity, span: Some(stretch.ring.span), message });
        }
        let (record, left) = draws.visitor.end(&case.memory);
        looks = left;
        if let Some(record) = selector.keep(record)
            && (out.send(SideEvent::Submit(record)).is_err() || selector.draw.is_some())
        {
            break;
        }
    }
    Ok(diagnostics)
}
