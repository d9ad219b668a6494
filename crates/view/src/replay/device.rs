//! Captures on a GPU of this machine: a set of buffers and its streams at once, as the driver was given them.
//!
//! All contents are loaded before each set, and taken away after it. Never: opens the device.

use super::replacement::{left_out, over};
use super::{EndKind, Replacement, ReplayOptions, Replayed, SubmitEnd};
use crate::json::Hex;
use std::io::Read;
use unwedge_base::{Diagnostic, Memory};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_device::{DeviceEnd, DeviceError, DeviceStream, SubmitDevice};
use unwedge_hw::{Db, Gpu};
use unwedge_stream::play::{Consumer, Identity, Player, Submission};

/// Replays a capture on a device. Of the options, those that say what is executed and which memory is wanted count. `driver` is what
/// the device's is called. Returns what came of it, and what was lost.
pub fn replay_on(
    device: &mut dyn SubmitDevice,
    driver: &'static str,
    capture: impl Read,
    options: &ReplayOptions,
    replacement: Option<Replacement<'_>>,
    db: &Db,
    max_alive: u64,
) -> (Replayed, Vec<Diagnostic>) {
    let memory = vec![None; options.wanted.len()];
    let mut runner = DeviceRunner {
        device,
        options,
        replacement,
        max_alive,
        result: Replayed { memory, device: Some(driver), ..Replayed::default() },
        sets: 0,
        fresh: true,
        pending: None,
        refused: None,
        diagnostics: Vec::new(),
    };
    let mut diagnostics = Player::new(options.choice.clone(), db, max_alive).play(capture, &mut runner);
    runner.end_set(true);
    runner.result.sets = runner.sets;
    diagnostics.append(&mut runner.diagnostics);
    if let Some(error) = &runner.refused {
        diagnostics.push(Diagnostic::loss(None, format!("{driver}: {error}")));
    } else {
        diagnostics.extend(runner.replacement.as_ref().and_then(Replacement::unused));
    }
    (runner.result, diagnostics)
}

/// What is given to the kernel at once.
struct PendingSet {
    memory: Memory,
    streams: Vec<DeviceStream>,
    /// The first of its rows.
    row: usize,
}

struct DeviceRunner<'r, 'p> {
    device: &'r mut dyn SubmitDevice,
    options: &'r ReplayOptions,
    replacement: Option<Replacement<'p>>,
    max_alive: u64,
    result: Replayed,
    sets: u64,
    /// The next address begins a set of buffers.
    fresh: bool,
    pending: Option<PendingSet>,
    /// Why nothing more is executed.
    refused: Option<DeviceError>,
    diagnostics: Vec<Diagnostic>,
}

impl DeviceRunner<'_, '_> {
    /// Executes what is pending.
    fn end_set(&mut self, last: bool) {
        let Some(pending) = self.pending.take().filter(|set| !set.streams.is_empty()) else { return };
        let outcome = self.execute(&pending, last);
        let cleared = self.device.clear();
        let end = match &outcome {
            Ok(DeviceEnd::Done) => EndKind::Done,
            Ok(DeviceEnd::Hung) => EndKind::Hung,
            Err(_) => EndKind::Error,
        };
        for row in self.result.submits.iter_mut().skip(pending.row) {
            row.end = end;
            row.why = outcome.as_ref().err().map(ToString::to_string);
        }
        self.refused = outcome.err().or(cleared.err());
    }

    fn execute(&mut self, pending: &PendingSet, last: bool) -> Result<DeviceEnd, DeviceError> {
        for buffer in pending.memory.buffers() {
            let words = buffer.contents.as_deref().unwrap_or_default();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.device.load(buffer.iova, buffer.size, &bytes)?;
        }
        let end = self.device.submit(&pending.streams)?;
        let set = self.sets.checked_sub(1);
        for (wanted, bytes) in self.options.wanted.iter().zip(&mut self.result.memory) {
            if wanted.set == set || wanted.set.is_none() && last {
                *bytes = self.device.read(wanted.iova, wanted.size)?;
            }
        }
        Ok(end)
    }
}

impl<'d> Consumer<'d> for DeviceRunner<'_, '_> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.end_set(false);
            self.sets += 1;
        }
    }

    fn identity(&mut self, identity: Identity, _: Option<Gpu<'d>>) {
        self.result.gpu = identity.name();
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        if submission.hidden || self.refused.is_some() {
            return;
        }
        let submit = submission.submit;
        let row = self.result.submits.len();
        let pending = self.pending.get_or_insert_with(|| PendingSet {
            memory: submission.live.memory().clone(),
            streams: Vec::new(),
            row,
        });
        let mut stream = (submit.iova, submit.dwords);
        let replacement = self.replacement.as_mut().filter(|replaced| replaced.submit == submit.number);
        if let Some(replacement) = replacement {
            let mut used: Vec<(u64, u64)> =
                pending.memory.buffers().iter().map(|buffer| (buffer.iova, buffer.size)).collect();
            used.sort_unstable();
            let space = Some(self.device.addresses());
            match replacement.read(space, used.into_iter(), self.max_alive, &mut self.diagnostics) {
                Ok(replaced) => {
                    pending.memory = over(std::mem::take(&mut pending.memory), &replaced.buffers);
                    stream = replaced.stream;
                }
                Err(why) => return self.diagnostics.push(left_out(submit.number, &why)),
            }
        }
        let (iova, dwords) = stream;
        pending.streams.push(DeviceStream { iova, size: dwords.saturating_mul(4) });
        self.result.submits.push(SubmitEnd {
            first_work: 0,
            number: submit.number,
            set: self.sets.saturating_sub(1),
            iova: Hex::wide(iova),
            dwords,
            end: EndKind::Dropped,
            work: 0,
            why: None,
            position: Vec::new(),
        });
    }

    fn done(&self) -> bool {
        self.refused.is_some()
    }
}
