//! Where an engine stands: ACTHD and IPEHR against the commands of a walk.
//!
//! ACTHD is where the command streamer reads. It reads ahead of what it executes: IPEHR holds the header of the command
//! that is being executed, and that command often stands some dwords in front of ACTHD. Which command it is is thus found
//! by its header, at or before ACTHD; how sure that is is said.
//!
//! Never: formatting.

use super::walk::{EventKind, IntelEvent, Space};
use std::collections::VecDeque;
use unwedge_hw::intel::ring::HEAD_OFFSET;

/// Commands remembered in front of ACTHD.
const REMEMBERED: usize = 64;

/// The farthest that a command may stand in front of ACTHD to be the one of IPEHR, in bytes: what a streamer fetches ahead.
pub const FETCH_AHEAD: u64 = 512;

/// The farthest that a command may stand behind ACTHD to be the one of IPEHR, in bytes: registers are not read at once, and
/// what is fetched is a cache line.
pub const FETCH_BEHIND: u64 = 64;

/// Commands between the one of IPEHR and ACTHD, above which the two hardly belong together.
const FEW_BETWEEN: u64 = 2;

/// A command and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandPos {
    /// Address of its header.
    pub address: u64,
    /// The space of the address.
    pub space: Space,
    /// Calls around it.
    pub level: u8,
    /// Its header.
    pub header: u32,
    /// Its length in dwords.
    pub length: u32,
    /// Commands of the walk before it.
    pub index: u64,
}

/// How IPEHR fits what stands at ACTHD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// The command at ACTHD has this header.
    Here,
    /// An earlier command has: it is being executed, and the streamer has read so many bytes ahead.
    Before(u64),
    /// No command near has. The memory was changed, or the registers were read at another time.
    Nowhere,
    /// IPEHR is not known.
    Unknown,
}

/// Where an engine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Where the streamer reads.
    pub acthd: u64,
    /// The command in whose dwords ACTHD lies, or that ends at it.
    pub at_acthd: CommandPos,
    /// The command that IPEHR names: the one that is being executed.
    pub executing: Option<CommandPos>,
    /// How the two fit.
    pub agreement: Agreement,
    /// The next command behind ACTHD with the header of IPEHR, where the one at ACTHD has another.
    pub behind: Option<CommandPos>,
}

impl Position {
    /// Commands between the one that is being executed and the one at ACTHD, without these; 0 where they are one.
    pub fn between(&self) -> u64 {
        self.executing.map_or(0, |place| self.at_acthd.index.saturating_sub(place.index + 1))
    }

    /// How far behind ACTHD the next command with the header of IPEHR stands.
    pub fn bytes_behind(&self) -> Option<u64> {
        self.behind.map(|place| place.address.saturating_sub(self.acthd))
    }

    /// The command that IPEHR names is one of several that it may be: many stand between it and ACTHD, or another with its
    /// header is nearer.
    pub fn is_doubtful(&self) -> bool {
        let Agreement::Before(bytes) = self.agreement else { return false };
        let nearer = self.bytes_behind().is_some_and(|behind| behind < bytes);
        nearer || bytes > FETCH_BEHIND && self.between() > FEW_BETWEEN
    }
}

/// Registers of a ring, as they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingState {
    /// RING_START.
    pub start: u64,
    /// RING_HEAD, with its wrap count.
    pub head: u32,
    /// Bytes of the ring; 0 where that is not known.
    pub size: u32,
}

/// Where ACTHD points to. In a batch it holds an address; in the ring what HEAD holds, an offset with a count of wraps
/// above it: what both have in common above the offset, or that it is 0 on a ring that never wrapped, tells which.
/// `is_batch` says whether something that may be a batch is known to be at ACTHD's value.
pub fn active_head(acthd: u64, ring: RingState, is_batch: bool) -> u64 {
    const OFFSET: u64 = HEAD_OFFSET as u64;
    const WRAPS: u64 = 0xffff_ffff_ffe0_0000;
    let head = u64::from(ring.head);
    let same = (acthd ^ head) & !3 == 0;
    // HEAD may have moved on between the two reads.
    let near = (acthd ^ head) & WRAPS == 0 && ring.size != 0 && acthd & OFFSET < u64::from(ring.size);
    if ring.start != 0 && acthd != 0 && (same || near && !is_batch) {
        ring.start.wrapping_add(acthd & OFFSET)
    } else {
        acthd
    }
}

/// Watches a walk go by and finds where an engine stands.
#[derive(Clone, Debug)]
pub struct Locator {
    acthd: u64,
    space: Option<Space>,
    ipehr: Option<u32>,
    recent: VecDeque<CommandPos>,
    commands: u64,
    found: Option<Position>,
    /// The command of IPEHR, ending where ACTHD stands: it counts where nothing known follows.
    ended: Option<CommandPos>,
    /// Behind ACTHD there is nothing more to be seen.
    passed: bool,
}

impl Locator {
    /// For these registers; `space` is where ACTHD counts, if that is known.
    pub fn new(acthd: u64, space: Option<Space>, ipehr: Option<u32>) -> Locator {
        let acthd = super::walk::canonical(acthd);
        Locator {
            acthd,
            space,
            ipehr,
            recent: VecDeque::new(),
            commands: 0,
            found: None,
            ended: None,
            passed: false,
        }
    }

    /// The next event of the walk.
    pub fn see(&mut self, event: &IntelEvent<'_>) {
        // What comes next is at ACTHD, or nothing known is.
        self.passed |= self.ended.is_some() && self.found.is_none();
        let (header, length) = match event.kind {
            EventKind::Command(command) => (command.header(), command.length),
            EventKind::Noops(count) => (0, count),
            _ => return,
        };
        let place = CommandPos {
            address: event.address,
            space: event.space,
            level: event.level,
            header,
            length,
            index: self.commands,
        };
        self.commands += 1;
        self.follow(place);
        if self.space.is_none_or(|space| space == event.space) {
            let end = event.address.saturating_add(u64::from(length) * 4);
            if (event.address..end).contains(&self.acthd) {
                self.settle(place);
            } else if end == self.acthd && self.ipehr == Some(header) {
                self.ended = Some(place);
            }
        }
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(place);
    }

    /// Looks for the command of IPEHR behind ACTHD.
    fn follow(&mut self, place: CommandPos) {
        let Some(found) = self.found.as_mut().filter(|_| !self.passed) else { return };
        let near = place.space == found.at_acthd.space
            && place.address > self.acthd
            && place.address - self.acthd <= FETCH_BEHIND;
        let other = matches!(found.agreement, Agreement::Before(_) | Agreement::Nowhere);
        if near && other && self.ipehr == Some(place.header) {
            found.behind = Some(place);
        }
        self.passed = !near || !other || found.behind.is_some();
    }

    /// Nothing that follows can say more: the position is settled, and what is near behind it was seen.
    pub fn is_done(&self) -> bool {
        match self.found.map(|found| found.agreement) {
            Some(Agreement::Here | Agreement::Unknown) => true,
            Some(Agreement::Before(_)) | None => self.passed,
            Some(Agreement::Nowhere) => false,
        }
    }

    fn settle(&mut self, place: CommandPos) {
        let better = self.found.is_none_or(|p| p.agreement == Agreement::Nowhere);
        if !better {
            return;
        }
        let near = |p: &&CommandPos| {
            p.space == place.space && p.address <= self.acthd && self.acthd - p.address <= FETCH_AHEAD
        };
        let (executing, agreement) = match self.ipehr {
            None => (None, Agreement::Unknown),
            Some(header) if header == place.header => (Some(place), Agreement::Here),
            Some(header) => match self.recent.iter().rev().filter(near).find(|p| p.header == header) {
                Some(&earlier) => (Some(earlier), Agreement::Before(self.acthd - earlier.address)),
                None => (None, Agreement::Nowhere),
            },
        };
        self.passed = false;
        self.found =
            Some(Position { acthd: self.acthd, at_acthd: place, executing, agreement, behind: None });
    }

    /// Where the engine stands; `None` when the walk did not come by.
    pub fn position(&self) -> Option<Position> {
        let ended = self.ended.map(|place| Position {
            acthd: self.acthd,
            at_acthd: place,
            executing: Some(place),
            agreement: Agreement::Before(self.acthd - place.address),
            behind: None,
        });
        self.found.or(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_ring_acthd_is_the_head_and_in_a_batch_an_address() {
        let ring = RingState { start: 0x12_d000, head: 0x0620_58cc, size: 0x2_0000 };
        assert_eq!(active_head(0x0620_58cc, ring, false), 0x13_28cc);
        assert_eq!(active_head(0x0620_58c0, ring, false), 0x13_28c0, "the head has moved on");
        assert_eq!(active_head(0x0620_58c0, ring, true), 0x0620_58c0, "a batch is there");
        assert_eq!(active_head(0x0358_7010, ring, false), 0x0358_7010);
        assert_eq!(active_head(0x1_0620_58c0, ring, false), 0x1_0620_58c0);
        let fresh = RingState { start: 0x8000, head: 0x40, size: 0x4000 };
        assert_eq!(active_head(0x40, fresh, false), 0x8040);
        assert_eq!(active_head(0, fresh, false), 0);
        assert_eq!(active_head(0x40, RingState::default(), false), 0x40);
    }
}
