//! The packets around a place of a capture, which is read once, submit by submit, up to the one that has the place.

use super::find::{Find, Target};
use super::state::Describing;
use super::{Found, Options, Place, Search, Surroundings, database};
use crate::lines::{Lines, Start, end};
use crate::streams::{PacketDecoder, RegisterSet, Walkable, with_submission};
use crate::{CaptureStream, ViewError};
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_hw::Db;
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
        with_submission(submission, number, |stream| self.look(stream));
    }

    fn done(&self) -> bool {
        self.found
    }
}

impl Looker<'_, '_> {
    fn look(&mut self, stream: &Walkable<'_>) {
        let PacketDecoder::Adreno(gpu) = stream.decoder else { return };
        if let Some(iova) = self.target.address() {
            self.search.near.see(stream.memory, iova);
        }
        let mut find = Find::new(&self.target, stream.base, 0, u64::MAX);
        stream.walk(&mut find);
        let (visit, visits) = find.finish();
        self.search.work.add(find.work);
        let Some(visit) = visit else { return };
        let shown = Surroundings {
            place: self.place,
            caller: false,
            found: Found { stream: stream.number, visit, visits, also_in: Vec::new() },
            suspect: None,
            describing: Describing::new(RegisterSet::Adreno(gpu)),
            options: self.options,
        };
        match self.options.json {
            true => shown.json(stream, self.lines),
            false => shown.text(stream, self.text),
        }
        self.found = true;
    }
}
