//! The packets around a place of a capture, which is read once, submit by submit, up to the one that has the place.

use super::find::{Find, Target};
use super::state::Describing;
use super::{Found, Options, Place, Search, Surroundings, database};
use crate::lines::{Lines, Start, end};
use crate::streams::{PacketDecoder, RegisterSet, Walkable};
use crate::{CaptureStream, ViewError};
use std::cell::RefCell;
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_hw::Db;
use unwedge_stream::StepSink;
use unwedge_stream::adreno::{AdrenoSink, AdrenoSteps};
use unwedge_stream::play::{Consumer, Player, Submission, SubmitChoice};

/// The packets around a place of a capture. Returns what was lost up to there. A failed write is for the owner of `out` to
/// remember.
///
/// # Errors
/// When the capture has no packet at the place. That of a hang is not in a capture.
pub fn capture(
    stream: &mut dyn CaptureStream,
    place: Place,
    options: Options,
    db: &Db,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, ViewError> {
    let target = match place {
        Place::Hang => return Err(ViewError::CaptureHasNoHang),
        Place::Work(kind, number) => Target::of_work(kind, number, None),
        Place::Address(iova) => Target::of_address(iova, None),
    };
    let search = Search::default();
    let mut lines = Lines::new(u64::from(u32::MAX), &mut *out);
    let mut buffer = Vec::new();
    if options.json {
        lines.push(&Start::of("rd-capture", db));
    }
    let mut looker =
        Looker { place, target, options, search, lines: &mut lines, text: &mut buffer, found: false };
    let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
    let mut diagnostics = Player::new(choice, db, options.max_size).play(&mut *stream, &mut looker);
    let Looker { found, search, .. } = looker;
    diagnostics.splice(0..0, stream.diagnostics());
    if !found {
        return Err(search.error(place));
    }
    if options.json {
        end(&diagnostics, &mut lines);
        lines.hand_on();
    } else {
        drop(lines);
        // A failed write is remembered by the output.
        let _ = out.write_all(&buffer);
        database(db.identity(), out);
    }
    Ok(diagnostics)
}

/// Looks for the place in each submit.
struct Looker<'a, 'o> {
    place: Place,
    target: Target,
    options: Options,
    search: Search,
    lines: &'a mut Lines<'o>,
    text: &'a mut Vec<u8>,
    found: bool,
}

impl<'d> Consumer<'d> for Looker<'_, '_> {
    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let number = submission.submit.number;
        let Ok(walk) = submission.open() else { return };
        let (gpu, memory, mark) = (walk.gpu, walk.memory, walk.mark());
        if let Some(iova) = self.target.address() {
            self.search.near.see(memory, iova);
        }
        let walk = RefCell::new(walk);
        let events = &|sink: &mut dyn AdrenoSink| {
            // A sink never walks.
            if let Ok(mut walk) = walk.try_borrow_mut() {
                walk.rewind(&mark);
                walk.run(sink);
            }
        };
        let steps = &|sink: &mut dyn StepSink| events(&mut AdrenoSteps::new(gpu, SinkRef(sink)));
        let stream = Walkable {
            number,
            name: format!("submit {number}"),
            engine: None,
            memory,
            decoder: PacketDecoder::Adreno(gpu),
            // What is submitted is called by the kernel's ring.
            base: 1,
            walk: steps,
            events: Some(events),
        };
        let mut find = Find::new(&self.target, stream.base, 0, u64::MAX);
        (stream.walk)(&mut find);
        let (visit, visits) = find.finish();
        self.search.work.add(find.work);
        let Some(visit) = visit else { return };
        let shown = Surroundings {
            place: self.place,
            caller: false,
            found: Found { stream: number, visit, visits, also_in: Vec::new() },
            suspect: None,
            describing: Describing::new(RegisterSet::Adreno(gpu)),
            options: self.options,
        };
        match self.options.json {
            true => shown.json(&stream, self.lines),
            false => shown.text(&stream, self.text),
        }
        self.found = true;
    }

    fn done(&self) -> bool {
        self.found
    }
}

/// A sink that is borrowed.
struct SinkRef<'s>(&'s mut dyn StepSink);

impl StepSink for SinkRef<'_> {
    fn step(
        &mut self,
        regs: &unwedge_stream::Registers,
        step: &unwedge_stream::Step<'_>,
    ) -> unwedge_stream::Flow {
        self.0.step(regs, step)
    }
}
