//! `decode --around PLACE`: the packets around a place and the state there, of dumps of every driver and of captures; and
//! the packets that a report shows around its stop.
//!
//! Two walks of a stream: the first counts packets and finds the visits to the place, the second shows a window of them.
//! A buffer that is called several times is visited several times; the visit nearest to where the post-mortem says that
//! the engine stopped counts. Never: where it stopped; that is the post-mortem's.

mod capture;
mod excerpt;
mod find;
pub(crate) mod json;
mod near;
mod state;
mod text;
mod window;

pub use capture::capture;
pub use excerpt::explained;
pub(crate) use excerpt::state_at_stop;
pub(crate) use find::unit;
pub(crate) use json::{PartLine, WorkLine};
pub(crate) use state::StateValue;

use crate::lines::{Lines, Start, end};
use crate::streams::{Family, RegisterSet, Streams, Walkable, intel_names};
use crate::{Style, ViewError, decode, device};
use find::{Find, Target, Visit, WorkSeen};
use near::Near;
use state::{Describing, PlaceState};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_capture::Dump;
use unwedge_hw::{Db, DbIdentity};
use unwedge_postmortem::adreno::{AdrenoCase, hang};
use unwedge_postmortem::{Finding, FindingRole, PacketMark, Report, Subject, explain};
use unwedge_stream::WorkKind;
use window::{Item, Mark, Selection, Window};

/// Packets shown before the place.
const BEFORE: usize = 16;
/// Packets shown after it.
const AFTER: usize = 8;
/// Packets shown around suspected work that is elsewhere, before and after.
const BESIDE: (usize, usize) = (4, 2);
/// All streams of a dump together are searched as far as so many walks of one go: there may be thousands.
const WALKS: u64 = 4;
/// Packets shown of the place: more of them are the same ones over and over.
const MOST: usize = 64;

/// A place in the streams of a dump or capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the post-mortem says that the engine stopped.
    Hang,
    /// A piece of work by its number; of any kind for `draw`, as listings and `query --draw` number all work in one count.
    Work(Option<WorkKind>, u32),
    /// The packet that holds an address.
    Address(u64),
}

impl Place {
    /// `hang`, `draw 18`, `blit=18`, `0x100216174`
    pub fn parse(text: &str) -> Option<Place> {
        let text = text.trim();
        if text == "hang" {
            return Some(Place::Hang);
        }
        if let Some(hex) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            return u64::from_str_radix(hex, 16).ok().map(Place::Address);
        }
        let (kind, number) = text.split_once([' ', '='])?;
        let kind = WorkKind::ALL.into_iter().find(|of| of.name() == kind)?;
        let number = number.trim().parse().ok()?;
        Some(Place::Work(Some(kind).filter(|&kind| kind != WorkKind::Draw), number))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Hang => f.write_str("hang"),
            Place::Work(kind, number) => write!(f, "{} {number}", kind.map_or("draw", WorkKind::name)),
            Place::Address(iova) => write!(f, "{iova:#x}"),
        }
    }
}

/// How the window is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// As JSON lines instead of text.
    pub json: bool,
    /// How text may style.
    pub style: Style,
    /// Memory is unpacked in proportion to this.
    pub max_size: u64,
    /// Packets before and after the place; `None`: 16 and 8.
    pub context: Option<usize>,
}

impl Options {
    fn around(&self) -> (usize, usize) {
        self.context.map_or((BEFORE, AFTER), |packets| (packets, packets))
    }

    fn beside(&self) -> (usize, usize) {
        let (before, after) = self.around();
        (before.min(BESIDE.0), after.min(BESIDE.1))
    }
}

/// The packets around the hang of a dump: see [`dump`].
///
/// # Errors
/// When the dump does not tell where the GPU hung, or does not hold the stream.
pub fn hang(
    dump: &Dump<'_>,
    bytes: u64,
    lost: &[Diagnostic],
    options: Options,
    db: &Db,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, ViewError> {
    self::dump((dump, bytes), lost, Place::Hang, options, db, out)
}

/// The packets around a place of a dump of so many bytes. `lost` is what was lost of it before it got here, `db` the
/// database of Adreno. Returns what was lost. A failed write is for the owner of `out` to remember.
///
/// # Errors
/// When the dump does not tell where the GPU hung, does not hold the stream, or has no packet at the place.
pub fn dump(
    (dump, bytes): (&Dump<'_>, u64),
    lost: &[Diagnostic],
    place: Place,
    options: Options,
    db: &Db,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, ViewError> {
    let report = explain(dump, db);
    let target = match (place, &report.hang) {
        (Place::Hang, _) => Target::of_report(&report).ok_or_else(|| no_place(&report))?,
        (Place::Work(kind, number), point) => Target::of_work(kind, number, point.as_ref()),
        (Place::Address(iova), point) => Target::of_address(iova, point.as_ref()),
    };
    let suspect = suspect(&report).filter(|_| place == Place::Hang);
    let diagnostics = [lost, dump.diagnostics()].concat();
    with_streams(dump, db, options.max_size, |streams, registers| {
        let found = locate(streams, &target, 0);
        let caller = found.best.is_none() && place == Place::Hang;
        let mut callers = report.hang.iter().filter(|_| caller).flat_map(Target::callers);
        let best = match found.best {
            None => callers.find_map(|target| locate(streams, &target, 0).best),
            best => best,
        };
        let Some(found) = best else { return Err(Search { best: None, ..found }.error(place)) };
        let suspect = suspect.and_then(|target| locate_in(streams, &target, found.stream, 0));
        let suspect = suspect.filter(|suspect| !suspect.is_at(&found.visit));
        let shown =
            Surroundings { place, caller, found, suspect, describing: Describing::new(registers), options };
        if options.json {
            let mut lines = Lines::new(bytes, out);
            match dump {
                Dump::Msm(dump) => decode::header(dump, db, &mut lines),
                Dump::I915(_) | Dump::Xe(_) => lines.push(&Start::of(dump.kind().id(), db)),
                Dump::Amdgpu(_) | Dump::Radv(_) | Dump::Umr(_) => {
                    lines.push(&Start::of(dump.kind().id(), &Db::amd()));
                }
            }
            shown.each(streams, &mut |stream| shown.json(stream, &mut lines));
            end(&diagnostics, &mut lines);
            lines.hand_on();
        } else {
            shown.each(streams, &mut |stream| shown.text(stream, out));
            database(&device::database(dump, db), out);
        }
        Ok(())
    })
    .ok_or(ViewError::UnknownGpu)??;
    Ok(diagnostics)
}

/// The last line of text. A failed write is remembered by the output.
fn database(tables: &DbIdentity, out: &mut dyn Write) {
    let _ = writeln!(out, "{}", device::database_line(tables));
}

/// Why there is no stop to show: an engine of Intel that stopped in memory that was not captured, or nothing says where.
fn no_place(report: &Report) -> ViewError {
    let outside =
        |finding: &Finding| finding.role == FindingRole::Position && finding.args.number("acthd").is_some();
    if report.findings.iter().any(outside) { ViewError::NoStreamOfHang } else { ViewError::NoHang }
}

/// What the cause of a report is about, where that is work or a packet other than the one it stopped in.
fn suspect(report: &Report) -> Option<Target> {
    let finding = report.findings.get(report.cause?.finding)?;
    let point = report.hang.as_ref()?;
    match &finding.subject {
        Subject::Work { kind, number } => {
            let kind = WorkKind::ALL.into_iter().find(|of| of.name() == *kind)?;
            Some(Target::of_work(Some(kind), *number, Some(point)))
        }
        Subject::Packet { iova: Some(iova), .. } if point.iova != Some(*iova) => {
            Some(Target::of_address(*iova, Some(point)))
        }
        _ => None,
    }
}

/// Takes a stream, and the numbers of its packets between which it stopped.
pub(crate) type StreamVisit<'a> = dyn FnMut(&Walkable<'_>, Option<(usize, usize)>) + 'a;

/// Visits the streams of a dump in their order. With the one that the report has the stop in come the numbers of the first and
/// last packet of the stop, counted from 1 as [`find::unit`] counts.
pub(crate) fn each_stream(
    report: &Report,
    dump: &Dump<'_>,
    db: &Db,
    max_size: u64,
    visit: &mut StreamVisit<'_>,
) {
    with_streams(dump, db, max_size, |streams, _| {
        let target = Target::of_report(report);
        let found = target.and_then(|target| locate(streams, &target, 0).best);
        streams.each(&mut |stream| {
            let stop = found.as_ref().filter(|found| found.stream == stream.number);
            visit(stream, stop.map(|found| (found.visit.first, found.visit.last)));
            true
        });
    });
}

/// A stream by its number, and the numbers of the first and last packet of a place in it, counted from 1.
pub(crate) type PacketPlace = (u32, (usize, usize));

/// Where a report has the stop, among its streams.
pub(crate) fn stop_in(streams: &mut Streams<'_, '_>, report: &Report) -> Option<PacketPlace> {
    place_in(streams, &Target::of_report(report)?)
}

/// The packet at an address: the visit nearest to the stop.
pub(crate) fn address_in(streams: &mut Streams<'_, '_>, iova: u64, report: &Report) -> Option<PacketPlace> {
    place_in(streams, &Target::of_address(iova, report.hang.as_ref()))
}

/// The packet that starts a piece of work.
pub(crate) fn work_in(streams: &mut Streams<'_, '_>, number: u32, report: &Report) -> Option<PacketPlace> {
    place_in(streams, &Target::of_work(None, number, report.hang.as_ref()))
}

/// The first packet of one stream that holds an address.
pub(crate) fn address_in_stream(stream: &Walkable<'_>, iova: u64) -> Option<usize> {
    visit_in(stream, &Target::of_address(iova, None), 0).map(|visit| visit.first)
}

/// The packet of one stream that starts a piece of work.
pub(crate) fn work_in_stream(stream: &Walkable<'_>, number: u32) -> Option<usize> {
    visit_in(stream, &Target::of_work(None, number, None), 0).map(|visit| visit.first)
}

fn place_in(streams: &mut Streams<'_, '_>, target: &Target) -> Option<PacketPlace> {
    locate(streams, target, 0).best.map(|found| (found.stream, (found.visit.first, found.visit.last)))
}

/// Opens the streams of a dump; `None` where the GPU is not known.
fn with_streams<R>(
    dump: &Dump<'_>,
    db: &Db,
    max_size: u64,
    then: impl FnOnce(&mut Streams<'_, '_>, RegisterSet<'_>) -> R,
) -> Option<R> {
    if let Dump::Msm(dump) = dump {
        let gpu = device::gpu(dump, db)?;
        let case = AdrenoCase::new(dump, gpu);
        let stop = hang::locate(&case);
        return Some(then(&mut Streams::of_adreno(&case, stop.as_ref()), RegisterSet::Adreno(gpu)));
    }
    let facts = Db::amd();
    let mut streams = Streams::of(dump, &facts, max_size)?;
    match streams.family() {
        Family::Intel(version) => {
            let names = intel_names(version);
            Some(then(&mut streams, RegisterSet::Intel(&names)))
        }
        Family::Amd(gfx) => Some(then(&mut streams, RegisterSet::Amd(facts.amd_gpu(gfx)))),
        Family::Adreno(_) => None,
    }
}

/// A visit, and the stream it is in.
struct Found {
    stream: u32,
    visit: Visit,
    /// Visits in that stream.
    visits: u64,
    /// Other streams that have such a place.
    also_in: Vec<String>,
}

/// What a search of all streams gave.
#[derive(Default)]
struct Search {
    best: Option<Found>,
    work: WorkSeen,
    near: Near,
}

impl Search {
    /// Why nothing was found.
    fn error(self, place: Place) -> ViewError {
        match place {
            Place::Hang => ViewError::NoStreamOfHang,
            Place::Work(_, number) => {
                ViewError::NoSuchWork { place: place.to_string(), why: self.work.why_not(number) }
            }
            Place::Address(iova) => ViewError::NothingAt { iova, near: self.near.text(iova) },
        }
    }
}

/// The visit of a place: in streams of its ring before others, then the nearest to the stop. `context` are packets of the
/// visit's own buffer that it remembers before it.
fn locate(streams: &mut Streams<'_, '_>, target: &Target, context: usize) -> Search {
    let mut search = Search::default();
    let mut left = None;
    let mut best_key = None;
    let mut names: Vec<(u32, String)> = Vec::new();
    streams.each(&mut |stream| {
        if let Some(iova) = target.address() {
            search.near.see(stream.memory, iova);
        }
        let other = target.is_of_other_ring(stream);
        // A place in a ring is in one ring only.
        if target.is_in_ring() && other {
            return true;
        }
        let budget = || unwedge_stream::budget(stream.memory).saturating_mul(WALKS);
        let mut find = Find::new(target, stream.base, context, *left.get_or_insert_with(budget));
        (stream.walk)(&mut find);
        left = Some(find.left);
        let (visit, visits) = find.finish();
        search.work.add(find.work);
        let Some(visit) = visit else { return true };
        names.push((stream.number, stream.name.clone()));
        let key = (other, visit.distance);
        if best_key.is_none_or(|before| key < before) {
            best_key = Some(key);
            let also_in = Vec::new();
            search.best = Some(Found { stream: stream.number, visit, visits, also_in });
        }
        true
    });
    if let Some(best) = &mut search.best {
        names.retain(|(number, _)| *number != best.stream);
        best.also_in = names.into_iter().map(|(_, name)| name).collect();
    }
    search
}

/// The visit of a place in one stream.
fn locate_in(streams: &mut Streams<'_, '_>, target: &Target, number: u32, context: usize) -> Option<Visit> {
    let mut found = None;
    streams.each(&mut |stream| {
        if stream.number != number {
            return true;
        }
        found = visit_in(stream, target, context);
        false
    });
    found
}

fn visit_in(stream: &Walkable<'_>, target: &Target, context: usize) -> Option<Visit> {
    let mut find = Find::new(target, stream.base, context, u64::MAX);
    stream.walk(&mut find);
    find.finish().0
}

/// What is shown, and of which stream.
struct Surroundings<'d> {
    place: Place,
    /// Of the stop there is only what leads to it.
    caller: bool,
    found: Found,
    /// The work that the cause is about, in the same stream.
    suspect: Option<Visit>,
    describing: Describing<'d>,
    options: Options,
}

/// The packets that are marked. One of several that the engine may have stopped in can be what the cause is about.
fn marks(mark: Mark, visit: &Visit, suspect: Option<&Visit>) -> Vec<(Mark, (usize, usize))> {
    let suspect = suspect.map(|s| (Mark::Packet(PacketMark::Suspect), (s.first, s.last)));
    suspect.into_iter().chain([(mark, (visit.first, visit.last))]).collect()
}

/// A window and what is known of the place in it.
#[derive(Default)]
struct PlaceSeen {
    /// The first packet of the place.
    item: Option<Item>,
    state: Option<PlaceState>,
}

impl Surroundings<'_> {
    /// Hands on the stream that the place is in.
    fn each(&self, streams: &mut Streams<'_, '_>, visit: &mut dyn FnMut(&Walkable<'_>)) {
        streams.each(&mut |stream| {
            let wanted = stream.number == self.found.stream;
            if wanted {
                visit(stream);
            }
            !wanted
        });
    }

    /// What the place is called where it is marked.
    fn mark(&self) -> Mark {
        match (self.place, self.caller) {
            (Place::Hang, true) => Mark::Caller,
            (Place::Hang, false) => Mark::Packet(PacketMark::Stop),
            (Place::Work(..) | Place::Address(_), _) => Mark::Place,
        }
    }

    /// The places that are marked, by their packets.
    fn marks(&self) -> Vec<(Mark, (usize, usize))> {
        marks(self.mark(), &self.found.visit, self.suspect.as_ref())
    }

    /// First and last packet of the window around a visit.
    fn range(visit: &Visit, (before, after): (usize, usize)) -> (usize, usize) {
        let last = visit.last.min(visit.first.saturating_add(MOST)).saturating_add(after);
        (visit.first.saturating_sub(before), last)
    }

    /// The window around the place, and that around the suspect where it is not in the first.
    fn ranges(&self) -> Vec<(Mark, (usize, usize))> {
        let main = Self::range(&self.found.visit, self.options.around());
        let mut ranges = vec![(self.mark(), main)];
        if let Some(suspect) = &self.suspect
            && !(main.0..=main.1).contains(&suspect.first)
        {
            ranges.push((Mark::Packet(PacketMark::Suspect), Self::range(suspect, self.options.beside())));
        }
        ranges
    }

    /// Walks a window and hands its packets on. Returns what is known of the marked places in it.
    fn window(
        &self,
        stream: &Walkable<'_>,
        range: (usize, usize),
        visit: &mut dyn FnMut(&Item),
    ) -> BTreeMap<Mark, PlaceSeen> {
        let mut window = Window::new(stream, &self.describing, Selection::Range(range), self.marks(), visit);
        (stream.walk)(&mut window);
        window.finish()
    }
}
