//! Cuts captures: some submits with the buffers they need into one capture (`trim`), or all into several (`split`).
//!
//! A capture is a sequence of sets: the sections that name buffers, then the submits that share them. A set is held
//! until its last submit is known, then what is wanted of it is written. Sections are copied, never made up. Never:
//! opening files.

mod frames;
mod merge;
mod select;

pub use merge::Merger;
pub use select::{Numbers, NumbersError};

use crate::adreno::Reach;
use crate::play::{Consumer, Player, Submission, SubmitChoice, SubmitWalk};
use frames::Frames;
use std::io::{self, Read, Write};
use unwedge_base::plural::counted;
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind, RdWriteError, RdWriter, without_zeros};
use unwedge_hw::Db;

/// Which submits are wanted, and of their buffers all or only those that they need.
#[derive(Clone, Debug)]
pub struct Choice {
    /// By their numbers, as cffdump counts them.
    pub submits: Option<Numbers>,
    /// By the numbers of their frames.
    pub frames: Option<Numbers>,
    /// What ends a frame.
    pub frame_end: Option<String>,
    /// All buffers of a set that a wanted submit belongs to.
    pub all_buffers: bool,
}

impl Choice {
    fn is_all(&self) -> bool {
        self.submits.is_none() && self.frames.is_none()
    }

    fn wants(&self, submit: u32, frame: u32) -> bool {
        let named = |numbers: &Option<Numbers>, n| numbers.as_ref().is_some_and(|numbers| numbers.contain(n));
        self.is_all() || named(&self.submits, submit) || named(&self.frames, frame)
    }

    /// Nothing is wanted from here on.
    fn is_over(&self, submit: u32, frame: u32) -> bool {
        let over =
            |numbers: &Option<Numbers>, n| numbers.as_ref().is_none_or(|numbers| numbers.end_before(n));
        !self.is_all() && over(&self.submits, submit) && over(&self.frames, frame)
    }
}

/// Where what is cut goes.
pub trait CutTarget {
    /// The capture that a set belongs to whose first wanted submit has this number, and whether it is a new one. A
    /// capture may end with a set without submits.
    ///
    /// # Errors
    /// The capture cannot be opened.
    fn open(&mut self, first: Option<u32>) -> io::Result<(&mut dyn Write, bool)>;
}

/// All that is cut goes into one capture.
#[derive(Debug)]
pub struct OneCapture<W> {
    out: W,
    begun: bool,
}

impl<W: Write> OneCapture<W> {
    /// A capture that nothing is written to yet.
    pub fn new(out: W) -> OneCapture<W> {
        OneCapture { out, begun: false }
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> CutTarget for OneCapture<W> {
    fn open(&mut self, _: Option<u32>) -> io::Result<(&mut dyn Write, bool)> {
        let new = !std::mem::replace(&mut self.begun, true);
        Ok((&mut self.out, new))
    }
}

/// What holding a section costs beside its payload, in bytes, for the limit.
const OVERHEAD: u64 = 128;

/// What was kept, of how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Submits.
    pub submits: u32,
    /// Buffers named.
    pub buffers: u64,
    /// Bytes of sections.
    pub bytes: u64,
}

/// A section that is held until it is known whether it is wanted.
struct Held {
    kind: RdSectionKind,
    /// Without the zeros at its end.
    payload: Vec<u8>,
    /// With them.
    length: usize,
    part: SectionPart,
}

/// What a section is to its set.
enum SectionPart {
    /// The name or contents of the buffer at this address.
    Buffer(u64),
    /// A submit.
    Submit {
        number: u32,
        wanted: bool,
    },
    Other,
}

/// A section that says something about what follows: the GPU, the process, or what a capture begins with.
struct Standing {
    held: Held,
    /// It is in the capture being written.
    written: bool,
    /// Said again in each capture.
    again: bool,
}

/// Cuts a capture. What it gets from a player it writes to a [`CutTarget`].
pub struct Cutter<T> {
    choice: Choice,
    target: T,
    frames: Frames,
    set: Vec<Held>,
    /// Addresses and sizes of the set's buffers.
    ranges: Vec<(u64, u64)>,
    named: Option<u64>,
    reach: Option<Reach>,
    /// Buffers that sections name besides those of the set, as far as `reach` does not know them.
    logs: Vec<u64>,
    /// What the set needs is not known: all is kept.
    unknown: bool,
    sets: u64,
    standing: Vec<Standing>,
    submits: u32,
    over: bool,
    failed: Option<RdWriteError>,
    seen: Tally,
    kept: Tally,
    /// Bytes held, and how many at most.
    held: u64,
    limit: u64,
    /// Bytes of sections beyond the limit.
    refused: u64,
}

impl<T: CutTarget> Cutter<T> {
    /// Cuts what is chosen into a target. Of a set no more than about so many bytes are held.
    pub fn new(choice: Choice, target: T, limit: u64) -> Cutter<T> {
        Cutter {
            frames: Frames::new(choice.frame_end.clone()),
            choice,
            target,
            set: Vec::new(),
            ranges: Vec::new(),
            named: None,
            reach: None,
            logs: Vec::new(),
            unknown: false,
            sets: 0,
            standing: Vec::new(),
            submits: 0,
            over: false,
            failed: None,
            seen: Tally::default(),
            kept: Tally::default(),
            held: 0,
            limit,
            refused: 0,
        }
    }

    /// Plays a capture into this. Returns what was lost of it.
    pub fn play(&mut self, capture: impl Read, db: &Db) -> Vec<Diagnostic> {
        let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
        let mut diagnostics = Player::new(choice, db, self.limit).play(capture, self);
        diagnostics.extend(self.lost());
        diagnostics
    }

    /// What could not be held.
    fn lost(&self) -> Option<Diagnostic> {
        (self.refused > 0).then(|| {
            let bytes = counted(self.refused, "byte is", "bytes are");
            let message = format!("{bytes} over what may be held at once, and left out");
            Diagnostic::loss(None, message)
        })
    }

    /// The capture has ended: the last set is written too. Gives the target back, and what the capture has and what
    /// was written of it.
    ///
    /// # Errors
    /// The first section or target that could not be written.
    pub fn end(mut self) -> (T, Result<(Tally, Tally), RdWriteError>) {
        self.end_set(true);
        let tallies = (self.seen, self.kept);
        (self.target, self.failed.map_or(Ok(tallies), Err))
    }

    /// No more submits use these buffers. What comes after the last submit belongs to the next set, if one follows.
    fn end_set(&mut self, last: bool) {
        let mut set = std::mem::take(&mut self.set);
        let behind =
            set.iter().rposition(|h| matches!(h.part, SectionPart::Submit { .. })).map_or(0, |i| i + 1);
        if !last {
            self.set = set.split_off(behind);
        }
        let wanted = match set.iter().any(|held| matches!(held.part, SectionPart::Submit { .. })) {
            true => set.iter().any(|held| matches!(held.part, SectionPart::Submit { wanted: true, .. })),
            false => self.choice.is_all() && !set.is_empty(),
        };
        if self.failed.is_none() {
            if wanted {
                self.write_set(set).unwrap_or_else(|e| self.failed = Some(e));
            } else {
                self.pass_set(set);
            }
        }
        self.ranges.clear();
        self.named = None;
        self.reach = None;
        self.logs = self.set.iter().filter_map(logs).collect();
        self.unknown = false;
        self.held = self.set.iter().map(cost).fold(0, u64::saturating_add);
        self.sets += 1;
        self.frames.end_set();
        self.over = self.choice.is_over(self.submits, self.frames.number());
    }

    /// Remembers what a set that is not written says about those that follow.
    fn pass_set(&mut self, set: Vec<Held>) {
        let mut head = self.sets == 0;
        for held in set {
            head &= matches!(held.part, SectionPart::Other);
            let stands = matches!(
                held.kind,
                RdSectionKind::Test | RdSectionKind::Cmd | RdSectionKind::GpuId | RdSectionKind::ChipId
            );
            if stands || head {
                self.stand(held, false);
            }
        }
    }

    fn stand(&mut self, held: Held, written: bool) {
        let again = matches!(held.kind, RdSectionKind::Cmd | RdSectionKind::GpuId | RdSectionKind::ChipId);
        if again || held.kind == RdSectionKind::Test {
            self.standing.retain(|s| s.held.kind != held.kind);
        }
        self.standing.push(Standing { held, written, again });
    }

    fn write_set(&mut self, set: Vec<Held>) -> Result<(), RdWriteError> {
        let numbers = set.iter().filter_map(|held| match held.part {
            SectionPart::Submit { number, wanted: true } => Some(number),
            _ => None,
        });
        let (out, new) = self.target.open(numbers.min())?;
        let mut writer = RdWriter::new(out);
        let said: Vec<RdSectionKind> =
            set.iter().take_while(|h| matches!(h.part, SectionPart::Other)).map(|h| h.kind).collect();
        for standing in &mut self.standing {
            standing.written &= !new;
            if !standing.written && !said.contains(&standing.held.kind) {
                write(&standing.held, &mut writer, &mut self.kept)?;
            }
            standing.written = true;
        }
        self.standing.retain(|s| s.again);
        let whole = self.choice.all_buffers || self.unknown;
        let mut stay = Vec::new();
        for held in set {
            let keep = match held.part {
                SectionPart::Other => true,
                SectionPart::Submit { wanted, .. } => wanted,
                SectionPart::Buffer(iova) => {
                    whole || self.reach.as_ref().is_some_and(|reach| reach.needs(iova))
                }
            };
            if keep {
                write(&held, &mut writer, &mut self.kept)?;
                self.kept.submits += u32::from(held.kind == RdSectionKind::CmdStreamAddr);
                self.kept.buffers += u64::from(held.kind == RdSectionKind::GpuAddr);
            }
            if matches!(held.kind, RdSectionKind::Cmd | RdSectionKind::GpuId | RdSectionKind::ChipId) {
                stay.push(held);
            }
        }
        stay.into_iter().for_each(|held| self.stand(held, true));
        Ok(())
    }

    /// Finds what a wanted submit needs.
    fn need(&mut self, walk: &mut SubmitWalk<'_, '_>) {
        let (gpu, memory) = (walk.gpu, walk.memory);
        let ranges = &self.ranges;
        let reach = self.reach.get_or_insert_with(|| Reach::new(gpu.generation(), ranges.iter().copied()));
        // From what the wanted submits before have left, as the listing of the cut capture will be.
        walk.run(&mut reach.watch(gpu));
        walk.reach(reach);
        self.logs.drain(..).for_each(|iova| reach.point(iova));
        reach.spread(memory);
        if !reach.is_complete() && !self.unknown {
            self.unknown = true;
            let message = "not all that the submit needs was found: all its buffers are kept";
            walk.tell(Severity::Note, message.to_owned());
        }
    }
}

/// What holding a section counts for, in bytes.
fn cost(held: &Held) -> u64 {
    OVERHEAD.saturating_add(held.payload.len() as u64)
}

/// The buffer that a section names besides those of its set.
fn logs(held: &Held) -> Option<u64> {
    if !matches!(held.part, SectionPart::Other) {
        return None;
    }
    let mut payload = held.payload.clone();
    payload.resize(held.length.min(16), 0);
    let span = Default::default();
    let claimed = payload.len() as u32;
    let section = RdSection { kind: held.kind, span, claimed, payload: &payload, zeros: 0 };
    match held.kind {
        RdSectionKind::ShaderLogBuffer | RdSectionKind::CpLogBuffer => {
            section.range().map(|range| range.iova)
        }
        RdSectionKind::WrBuffer => {
            Some(u64::from(section.dword(0)?) | u64::from(section.dword(1).unwrap_or(0)) << 32)
        }
        _ => None,
    }
}

fn write(held: &Held, writer: &mut RdWriter<&mut dyn Write>, kept: &mut Tally) -> Result<(), RdWriteError> {
    kept.bytes = kept.bytes.saturating_add(held.length as u64).saturating_add(8);
    let mut payload = std::borrow::Cow::Borrowed(&held.payload[..]);
    if held.length > payload.len() {
        payload.to_mut().resize(held.length, 0);
    }
    writer.section(held.kind, &payload)
}

impl<'d, T: CutTarget> Consumer<'d> for Cutter<T> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        if step == LiveStep::Forgotten {
            self.end_set(false);
            if self.over {
                return;
            }
        }
        let part = match section.kind {
            RdSectionKind::GpuAddr => {
                self.seen.buffers += 1;
                let range = section.range();
                self.ranges.extend(range.map(|range| (range.iova, range.size.into())));
                self.named = range.map(|range| range.iova);
                self.named.map_or(SectionPart::Other, SectionPart::Buffer)
            }
            RdSectionKind::BufferContents => self.named.map_or(SectionPart::Other, SectionPart::Buffer),
            RdSectionKind::CmdStreamAddr => {
                let number = self.submits;
                self.submits = self.submits.saturating_add(1);
                self.seen.submits = self.submits;
                SectionPart::Submit { number, wanted: self.choice.wants(number, self.frames.number()) }
            }
            _ => SectionPart::Other,
        };
        self.seen.bytes = section.span.end;
        let length = usize::try_from(section.length()).unwrap_or(usize::MAX);
        let payload = without_zeros(section.payload);
        let cost = OVERHEAD.saturating_add(payload.len() as u64);
        if self.held.saturating_add(cost) > self.limit {
            self.refused = self.refused.saturating_add(length as u64);
            return;
        }
        self.held = self.held.saturating_add(cost);
        let held = Held { kind: section.kind, payload: payload.to_vec(), length, part };
        self.logs.extend(logs(&held));
        self.set.push(held);
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let submit = submission.submit;
        let wanted = self.choice.wants(submit.number, self.frames.number());
        if !wanted && !self.frames.looks() {
            return;
        }
        match submission.open() {
            Ok(mut walk) => {
                if self.frames.looks() {
                    walk.look(&mut self.frames);
                }
                if wanted && !self.choice.all_buffers {
                    self.need(&mut walk);
                }
            }
            // Reported; what it needs is not known.
            Err(_) => self.unknown |= wanted,
        }
    }

    fn done(&self) -> bool {
        self.over || self.failed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_capture::rd::{MemoryRange, RdReader};
    use unwedge_hw::Db;
    use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};

    /// Captures in memory, a new one for each set.
    #[derive(Default)]
    struct Each(Vec<Vec<u8>>);

    impl CutTarget for Each {
        fn open(&mut self, _: Option<u32>) -> io::Result<(&mut dyn Write, bool)> {
            self.0.push(Vec::new());
            Ok((self.0.last_mut().expect("just pushed"), true))
        }
    }

    /// Refuses everything.
    struct Full;

    impl CutTarget for Full {
        fn open(&mut self, _: Option<u32>) -> io::Result<(&mut dyn Write, bool)> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    /// Sets of a stream that calls a buffer, which names a third.
    fn whole(gpu_id: u32, sets: u64) -> Vec<u8> {
        let mut writer = RdWriter::new(Vec::new());
        writer.section(RdSectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
        for set in 0..sets {
            let base = set << 16;
            let called = indirect_buffer(base | 0x1000, 4);
            let inner = [pkt4(0x8c17, &[base as u32 | 0x3000, 0]), pkt7(0x26, &[])].concat();
            for (iova, words) in [(0x1000, inner), (0x2000, called), (0x3000, vec![1]), (0x4000, vec![2])] {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let range = MemoryRange { iova: base | iova, size: bytes.len() as u32 };
                writer.range(RdSectionKind::GpuAddr, range, true).unwrap();
                writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
            }
            writer
                .range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: base | 0x2000, size: 4 }, true)
                .unwrap();
        }
        writer.into_inner()
    }

    fn all() -> Choice {
        Choice { submits: None, frames: None, frame_end: Some("end".to_owned()), all_buffers: false }
    }

    fn cut<T: CutTarget>(
        bytes: &[u8],
        choice: Choice,
        target: T,
    ) -> (T, Result<(Tally, Tally), RdWriteError>) {
        let limit = 1 << 24;
        let db = Db::builtin();
        let mut cutter = Cutter::new(choice, target, limit);
        let submits = SubmitChoice { compositors: true, ..SubmitChoice::default() };
        Player::new(submits, &db, 1 << 24).play(bytes, &mut cutter);
        cutter.end()
    }

    #[test]
    fn the_tally_is_of_what_is_written() {
        let bytes = whole(630, 3);
        let (each, tallies) = cut(&bytes, all(), Each::default());
        let (seen, kept) = tallies.unwrap();
        assert_eq!((seen.submits, seen.buffers, seen.bytes), (3, 12, bytes.len() as u64));
        assert_eq!((kept.submits, kept.buffers), (3, 9));
        assert_eq!(kept.bytes, each.0.iter().map(|part| part.len() as u64).sum::<u64>());
    }

    #[test]
    fn what_comes_after_the_last_wanted_submit_is_not_read() {
        let one = || Some(Numbers::parse("1").unwrap());
        let submits = Choice { submits: one(), ..all() };
        assert_eq!(cut(&whole(630, 100), submits, Each::default()).1.unwrap().0.submits, 2);
        let frames = Choice { frames: one(), ..all() };
        let (each, tallies) = cut(&whole(630, 100), frames, Each::default());
        assert_eq!(tallies.unwrap().0.submits, 100, "a text may come at any time");
        assert_eq!(each.0.len(), 0);
    }

    #[test]
    fn more_than_may_be_held_is_left_out_and_reported() {
        let db = Db::builtin();
        let bytes = whole(630, 3);
        for limit in [0, 1 << 8, 1 << 10, 1 << 14] {
            let mut cutter = Cutter::new(all(), Each::default(), limit);
            Player::new(SubmitChoice::default(), &db, 1 << 24).play(&bytes[..], &mut cutter);
            assert_eq!(cutter.lost().is_some(), limit < 1 << 14, "{limit}");
            assert!(cutter.held <= limit);
            assert!(cutter.end().1.is_ok());
        }
    }

    #[test]
    fn a_target_that_fails_ends_it() {
        assert!(matches!(cut(&whole(630, 3), all(), Full).1, Err(RdWriteError::Io(_))));
    }

    #[test]
    fn broken_captures_are_cut_as_far_as_they_go() {
        let mut seed = 1_u64;
        for gpu_id in [201, 330, 430, 530, 630, 740] {
            let intact = whole(gpu_id, 2);
            for round in 0..200 {
                let mut bytes = intact.clone();
                for _ in 0..1 + round % 4 {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = (seed >> 33) as usize % bytes.len();
                    bytes[at] ^= 1 << (seed >> 60 & 7);
                }
                if round % 3 == 0 {
                    bytes.truncate((seed >> 20) as usize % bytes.len());
                }
                let (each, tallies) = cut(&bytes, all(), Each::default());
                let (seen, kept) = tallies.unwrap();
                assert!(kept.submits <= seen.submits && kept.buffers <= seen.buffers);
                for part in &each.0 {
                    let mut reader = RdReader::new(&part[..]);
                    while reader.next().is_some() {}
                    assert!(reader.diagnostics().is_empty(), "{:?}", reader.diagnostics());
                    assert!(part.len() <= bytes.len());
                }
            }
        }
    }
}
