//! One of the two things that are compared: where it is, and its submits, one after another.

use crate::capture::{Choice, Consumer, Identity, Opened, Player, Submission};
use crate::decode::stretches;
use crate::failure::Failure;
use crate::input::Input;
use crate::query::told;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use unwedge_base::{Diagnostic, Generation};
use unwedge_capture::devcore::Devcore;
use unwedge_capture::rd::{Section, Step};
use unwedge_hw::{Db, Gpu};
use unwedge_postmortem::adreno::{Case, hang};
use unwedge_stream::compare::{Record, Recorder};
use unwedge_stream::query::Draws;

/// What of which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The file.
    pub file: PathBuf,
    /// Only this submit; of a dump this ring.
    pub submit: Option<u32>,
    /// Only this draw.
    pub draw: Option<u32>,
}

/// How much is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Everything in a file.
    File,
    /// A submit.
    Submit,
    /// A draw.
    Draw,
}

impl Selector {
    /// `FILE`, `FILE:SUBMIT`, `FILE:SUBMIT.DRAW`, `FILE:.DRAW`; what begins with the colon is of `first`'s file. A file
    /// that is called so is meant before all else.
    pub fn parse(text: &OsStr, first: Option<&Path>) -> Selector {
        let whole = Selector { file: PathBuf::from(text), submit: None, draw: None };
        if Path::new(text).exists() {
            return whole;
        }
        let Some((file, place)) = text.to_str().and_then(|text| text.rsplit_once(':')) else { return whole };
        let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        let (submit, draw) = match place.split_once('.') {
            Some((submit, draw)) => (number(submit), draw.parse().ok().map(Some)),
            None => (place.parse().ok().map(Some), Some(None)),
        };
        let file = match (file, first) {
            ("", Some(first)) => first.to_path_buf(),
            _ => PathBuf::from(file),
        };
        match (submit, draw) {
            (Some(submit), Some(draw)) => Selector { file, submit, draw },
            _ => whole,
        }
    }

    /// How much it is.
    pub fn level(&self) -> Level {
        match (self.submit, self.draw) {
            (_, Some(_)) => Level::Draw,
            (Some(_), None) => Level::Submit,
            (None, None) => Level::File,
        }
    }
}

/// What a side tells while it is read.
pub enum Told {
    /// The GPU of what follows.
    Gpu(Generation),
    /// A submit that is wanted.
    Submit(Box<Record>),
}

/// Reads a side and tells what is wanted of it; ends early when nobody listens any more. Returns what was lost.
pub fn read(
    opened: Opened,
    selector: &Selector,
    once: bool,
    db: &Db,
    max_alive: u64,
    out: SyncSender<Told>,
) -> Result<Vec<Diagnostic>, Failure> {
    match opened {
        Opened::Capture(mut stream) => {
            let mut tape =
                Tape { selector, once, out, draws: None, generation: None, looks: LOOKS, ended: false };
            let choice = Choice { compositors: true, ..Choice::default() };
            let mut diagnostics = Player::new(choice, db, max_alive).play(&mut stream, &mut tape);
            diagnostics.extend(stream.diagnostics());
            Ok(diagnostics)
        }
        Opened::Dump(input) => dump(selector, once, &input, db, &out),
    }
}

/// Records the submits of a capture.
struct Tape<'a, 'd> {
    selector: &'a Selector,
    once: bool,
    out: SyncSender<Told>,
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
    fn section(&mut self, section: &Section<'_>, step: Step) {
        self.looks = self.looks.saturating_add(LOOKS_PER_BYTE.saturating_mul(section.span.len()));
        if step == Step::Forgotten
            && let Some(draws) = &mut self.draws
        {
            draws.forget_buffers();
        }
    }

    fn identity(&mut self, _identity: Identity, gpu: Option<Gpu<'d>>) {
        let Some(gpu) = gpu else { return };
        if self.generation != Some(gpu.generation()) {
            self.generation = Some(gpu.generation());
            self.ended |= self.out.send(Told::Gpu(gpu.generation())).is_err();
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
        for (severity, message) in told(std::mem::take(&mut draws.lost)) {
            walk.tell(severity, message);
        }
        if !wanted {
            return;
        }
        let (record, looks) = draws.visitor.end(walk.memory);
        self.looks = looks;
        if let Some(record) = self.selector.keep(record) {
            self.ended |= self.out.send(Told::Submit(record)).is_err() || self.selector.draw.is_some();
        }
    }

    fn done(&self) -> bool {
        self.ended
    }
}

/// Records the rings of a dump.
fn dump(
    selector: &Selector,
    once: bool,
    input: &Input,
    db: &Db,
    out: &SyncSender<Told>,
) -> Result<Vec<Diagnostic>, Failure> {
    let dump = Devcore::read(&input.bytes)
        .map_err(|_| Failure::wrong_kind(input, unwedge_capture::sniff(&input.bytes)))?;
    let mut diagnostics = input.diagnostics.clone();
    diagnostics.extend(dump.diagnostics.iter().cloned());
    let gpu = unwedge_view::device::gpu(&dump, db).ok_or_else(|| {
        Failure::Unusable(format!("{}: the GPU of the dump is not known: it cannot be compared", input.name))
    })?;
    if out.send(Told::Gpu(gpu.generation())).is_err() {
        return Ok(diagnostics);
    }
    let case = Case::new(&dump, gpu);
    let mut budget = unwedge_stream::adreno::budget(&case.memory);
    let mut looks = budget;
    for stretch in stretches(&case, hang::locate(&case).as_ref()) {
        if !selector.wants(stretch.ring.id) {
            continue;
        }
        let mut draws = Draws::new(gpu, false, once, Recorder::new(gpu, false, selector.draw));
        draws.visitor.begin(stretch.ring.id, &case.memory, looks);
        stretch.walk(&case, &mut budget, &mut draws);
        for (severity, message) in told(std::mem::take(&mut draws.lost)) {
            let message = format!("ring {}: {message}", stretch.ring.id);
            diagnostics.push(Diagnostic { severity, span: Some(stretch.ring.span), message });
        }
        let (record, left) = draws.visitor.end(&case.memory);
        looks = left;
        if let Some(record) = selector.keep(record)
            && (out.send(Told::Submit(record)).is_err() || selector.draw.is_some())
        {
            break;
        }
    }
    Ok(diagnostics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let parse = |text: &str| {
            let s = Selector::parse(OsStr::new(text), Some(Path::new("first.rd")));
            (s.file.to_string_lossy().into_owned(), s.submit, s.draw)
        };
        let check = |text: &str, file: &str, submit, draw| {
            assert_eq!(parse(text), (file.to_owned(), submit, draw), "{text}");
        };
        check("a.rd", "a.rd", None, None);
        check("a.rd:3", "a.rd", Some(3), None);
        check("a.rd:3.12", "a.rd", Some(3), Some(12));
        check("a.rd:.12", "a.rd", None, Some(12));
        check(":3", "first.rd", Some(3), None);
        check(":.12", "first.rd", None, Some(12));
        check("-:3", "-", Some(3), None);
        check("c:/a.rd", "c:/a.rd", None, None);
        check("a:b.rd", "a:b.rd", None, None);
        check("a.rd:3.", "a.rd:3.", None, None);
    }
}
