//! Finds the visits of a walk to a place. Never: what is shown of them.

use crate::plural::counted;
use crate::streams::Walkable;
use std::collections::{BTreeMap, VecDeque};
use unwedge_postmortem::amd::traced_name;
use unwedge_postmortem::{FindingRole, HangPoint, LevelPosition, Report};
use unwedge_stream::{Flow, Registers, Step, StepSink, StreamPos, TroubleKind, WorkKind};

/// Levels that are told apart: ring, IB1, IB2, draw state.
const LEVELS: usize = 4;
/// What work the streams start.
#[derive(Default)]
pub(super) struct WorkSeen {
    /// Pieces of each kind.
    kinds: BTreeMap<&'static str, u64>,
    /// The highest number.
    last: Option<u32>,
    /// The kind that the work of the wanted number has.
    other_kind: Option<WorkKind>,
}

impl WorkSeen {
    fn see(&mut self, kind: WorkKind, number: u32) {
        *self.kinds.entry(kind.name()).or_default() += 1;
        self.last = self.last.max(Some(number));
    }

    /// Takes in that of another stream.
    pub(super) fn add(&mut self, other: WorkSeen) {
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
        self.last = self.last.max(other.last);
        self.other_kind = self.other_kind.or(other.other_kind);
    }

    /// Why there is no work of a number, for people.
    pub(super) fn why_not(&self, number: u32) -> String {
        if let Some(kind) = self.other_kind {
            return format!("{number} is a {}: --around '{} {number}'", kind.name(), kind.name());
        }
        let all = self.kinds.values().sum::<u64>();
        match self.last {
            None => "no command stream that was captured starts work".to_owned(),
            Some(last) if number < last => {
                "a predicate skips it, or no stream that is held starts it".to_owned()
            }
            Some(last) => {
                let kinds: Vec<String> =
                    self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
                let pieces = counted(all, "piece", "pieces");
                format!("the streams start {pieces} of work, up to number {last} ({})", kinds.join(", "))
            }
        }
    }
}

/// What is looked for.
pub(super) struct Target {
    /// The ring or engine, by its name.
    ring: Option<String>,
    /// The stop, from the ring inwards, but for the innermost level: the nearest visit counts.
    outer: Vec<LevelPosition>,
    /// The work that was in flight at the stop.
    draw: Option<u32>,
    spot: Spot,
}

/// A place within a stream.
#[derive(Clone, Copy)]
enum Spot {
    /// First and last dword in the ring.
    Ring(u64, u64),
    /// First and last address.
    Buffer(u64, u64),
    /// First and last dword of a stream that RADV wrote down, without the address.
    Traced(u64, u64),
    Work(Option<WorkKind>, u32),
}

impl Target {
    fn new(point: Option<&HangPoint>, spot: Spot) -> Target {
        let Some(point) = point else {
            return Target { ring: None, outer: Vec::new(), draw: None, spot };
        };
        let mut outer = point.levels.clone();
        outer.sort_by_key(|level| level.level);
        if outer.last().is_some_and(|level| level.level > 0) {
            outer.pop();
        }
        let number = point.ring.map(|ring| format!("ring {ring}"));
        Target { ring: point.ring_name.clone().or(number), outer, draw: point.draw, spot }
    }

    /// Where a report says that it stopped; `None` where nothing says.
    pub(super) fn of_report(report: &Report) -> Option<Target> {
        report.hang.as_ref().and_then(Target::of_hang).or_else(|| Target::of_trace(report))
    }

    /// The packets that lead to where it stopped, the innermost first.
    pub(super) fn callers(point: &HangPoint) -> impl Iterator<Item = Target> {
        let mut point = HangPoint { iova: None, ..point.clone() };
        point.levels.sort_by_key(|level| level.level);
        std::iter::from_fn(move || {
            point.levels.pop()?;
            Target::of_hang(&point)
        })
    }

    /// Between which trace points it stopped, of a report without its ring.
    fn of_trace(report: &Report) -> Option<Target> {
        let position = report.findings.iter().find(|finding| finding.role == FindingRole::Position)?;
        let place = position.args.record("trace_place")?;
        let spot = Spot::Traced(place.number("first")?, place.number("last")?);
        let ring = Some(traced_name(place.text("stream")?));
        Some(Target { ring, ..Target::new(None, spot) })
    }

    /// Where it stopped; `None` where nothing says.
    fn of_hang(point: &HangPoint) -> Option<Target> {
        let at = |base: u64, dword: u64| base.saturating_add(dword.saturating_mul(4));
        let spot = match (point.iova, point.levels.iter().max_by_key(|level| level.level)) {
            (Some(iova), _) => Spot::Buffer(iova, iova),
            (None, Some(level)) if level.level > 0 => {
                Spot::Buffer(at(level.base, level.range.0), at(level.base, level.range.1))
            }
            (None, Some(level)) => Spot::Ring(level.range.0, level.range.1),
            (None, None) => return None,
        };
        Some(Target::new(Some(point), spot))
    }

    pub(super) fn of_work(kind: Option<WorkKind>, number: u32, point: Option<&HangPoint>) -> Target {
        Target::new(point, Spot::Work(kind, number))
    }

    pub(super) fn of_address(iova: u64, point: Option<&HangPoint>) -> Target {
        Target::new(point, Spot::Buffer(iova, iova))
    }

    /// The address, of a place in a buffer.
    pub(super) fn address(&self) -> Option<u64> {
        match self.spot {
            Spot::Buffer(first, _) => Some(first),
            Spot::Ring(..) | Spot::Traced(..) | Spot::Work(..) => None,
        }
    }

    pub(super) fn is_in_ring(&self) -> bool {
        matches!(self.spot, Spot::Ring(..) | Spot::Traced(..))
    }

    /// The stream is of another ring or engine than the one that stopped.
    pub(super) fn is_of_other_ring(&self, stream: &Walkable<'_>) -> bool {
        let name = stream.engine.as_ref().unwrap_or(&stream.name);
        self.ring.as_ref().is_some_and(|ring| ring != name)
    }

    /// A packet of so many dwords is there.
    fn hits(&self, place: StreamPos, base: u8, dwords: usize) -> bool {
        let dwords = dwords.max(1) as u64;
        match self.spot {
            Spot::Buffer(first, last) => {
                place.iova.is_some_and(|at| at <= last && first < at.saturating_add(dwords.saturating_mul(4)))
            }
            Spot::Ring(first, last) => {
                let at = place.index as u64;
                let end = at.saturating_add(dwords);
                // Below the first where the ring wraps around in between.
                let inside =
                    if first <= last { at <= last && first < end } else { at <= last || first < end };
                place.level == 0 && base == 0 && inside
            }
            Spot::Traced(first, last) => {
                let at = place.index as u64;
                place.iova.is_none() && at <= last && first < at.saturating_add(dwords)
            }
            Spot::Work(..) => false,
        }
    }
}

/// What counts as one packet: a packet, or dwords that are none. Where it is, and its size in dwords.
pub(crate) fn unit(step: &Step<'_>) -> Option<(StreamPos, usize)> {
    match step {
        Step::Packet(packet) => Some((packet.place, packet.payload.len().saturating_add(1))),
        Step::Trouble(trouble) => match trouble.kind {
            TroubleKind::BadHeader { skipped, .. } => Some((trouble.place, skipped)),
            _ => None,
        },
        _ => None,
    }
}

/// How far a visit is from the stop: dwords from the packet of each level that leads there, from the ring inwards, and
/// pieces of work.
pub(super) type Distance = [u64; LEVELS + 1];

/// A run of packets at the place.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// Numbers of packets in the walk, from 1.
    pub(super) first: usize,
    pub(super) last: usize,
    /// The level of the first.
    pub(super) level: u8,
    pub(super) distance: Distance,
    /// Packets before it, of its own buffer and of those that lead there.
    pub(super) before: Vec<usize>,
}

impl Visit {
    /// It is the same packets.
    pub(super) fn is_at(&self, other: &Visit) -> bool {
        (self.first, self.last) == (other.first, other.last)
    }
}

/// Finds visits.
pub(super) struct Find<'t> {
    target: &'t Target,
    base: u8,
    context: usize,
    /// Dwords that may still be looked at: then no further stream is entered, and nothing found any more.
    pub(super) left: u64,
    packets: usize,
    /// Where the packet of each level is that is executed: the start of its stream, and dwords from there.
    at: [Option<(Option<u64>, u64)>; LEVELS],
    /// The newest packets of each level and those above it.
    recent: [VecDeque<usize>; LEVELS],
    /// The packet before.
    packet: Option<(StreamPos, usize)>,
    last_work: Option<u32>,
    current: Option<Visit>,
    best: Option<Visit>,
    visits: u64,
    /// What work there is.
    pub(super) work: WorkSeen,
}

impl<'t> Find<'t> {
    /// Nothing seen; of a visit, `context` packets before it are remembered.
    pub(super) fn new(target: &'t Target, base: u8, context: usize, left: u64) -> Find<'t> {
        Find {
            left,
            target,
            base,
            context,
            packets: 0,
            at: [None; LEVELS],
            recent: Default::default(),
            packet: None,
            last_work: None,
            current: None,
            best: None,
            visits: 0,
            work: WorkSeen::default(),
        }
    }

    /// The nearest visit, of equals the first; and how many there were.
    pub(super) fn finish(&mut self) -> (Option<Visit>, u64) {
        self.settle();
        (self.best.take(), self.visits)
    }

    /// The visit is over.
    fn settle(&mut self) {
        let Some(mut visit) = self.current.take() else { return };
        visit.distance[LEVELS] = match (self.target.draw, self.last_work) {
            (Some(draw), Some(last)) => u64::from(draw.abs_diff(last)),
            (Some(_), None) => u64::MAX,
            (None, _) => 0,
        };
        self.visits = self.visits.saturating_add(1);
        if self.best.as_ref().is_none_or(|best| visit.distance < best.distance) {
            self.best = Some(visit);
        }
    }

    fn start(&mut self, level: u8) {
        let mut distance = [0; LEVELS + 1];
        for outer in &self.target.outer {
            let Some(slot) = distance.get_mut(usize::from(outer.level)) else { continue };
            let at = self.at.get(usize::from(outer.level)).copied().flatten();
            *slot = match at {
                Some((base, _)) if outer.level > 0 && base != Some(outer.base) => u64::MAX,
                Some((_, at)) => {
                    let (first, last) = outer.range;
                    at.saturating_sub(last).max(first.saturating_sub(at))
                }
                None => u64::MAX,
            };
        }
        let recent = self.recent.get(usize::from(level).min(LEVELS - 1));
        let before = recent.into_iter().flatten().copied().filter(|&packet| packet < self.packets).collect();
        self.current = Some(Visit { first: self.packets, last: self.packets, level, distance, before });
    }

    fn unit(&mut self, place: StreamPos, dwords: usize) {
        self.packets = self.packets.saturating_add(1);
        let hit = self.target.hits(place, self.base, dwords);
        if !hit {
            self.settle();
        }
        let level = usize::from(place.level.saturating_add(self.base));
        let start = place.iova.and_then(|at| at.checked_sub((place.index as u64).saturating_mul(4)));
        for (number, at) in self.at.iter_mut().enumerate().skip(level) {
            *at = (number == level).then_some((start, place.index as u64));
        }
        if hit {
            match &mut self.current {
                Some(visit) => visit.last = self.packets,
                None => self.start(place.level),
            }
        }
        if self.context > 0 {
            for recent in self.recent.iter_mut().skip(usize::from(place.level)) {
                if recent.len() > self.context {
                    recent.pop_front();
                }
                recent.push_back(self.packets);
            }
        }
        self.packet = Some((place, dwords));
    }

    fn work(&mut self, kind: WorkKind, number: u32) {
        self.last_work = Some(number);
        self.work.see(kind, number);
        let Spot::Work(wanted, of_number) = self.target.spot else { return };
        if number != of_number {
            return;
        }
        if wanted.is_some_and(|wanted| wanted != kind) {
            self.work.other_kind = Some(kind);
            return;
        }
        let level = self.packet.map_or(0, |(place, _)| place.level);
        // Work is counted once, unless the count starts again.
        if self.best.is_none() && self.current.is_none() {
            self.start(level);
        }
    }
}

impl StepSink for Find<'_> {
    fn step(&mut self, _regs: &Registers, step: &Step<'_>) -> Flow {
        if self.left == 0 {
            return Flow::Skip;
        }
        if let Some((place, dwords)) = unit(step) {
            self.left = self.left.saturating_sub(dwords.max(1) as u64);
            self.unit(place, dwords);
        } else if let Step::Work(work) = step {
            self.work(work.kind, work.number);
        }
        Flow::Continue
    }
}
