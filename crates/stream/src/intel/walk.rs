//! Walks rings and batches: commands in the order the engine would meet them, batches followed.
//!
//! What is not known is said, never guessed: memory that is not there, dwords that are no command. A header that no
//! command has is skipped dword by dword until one is found. Every walk ends: it has a budget of dwords, batches nest
//! [`MAX_LEVELS`] deep, and a chain that comes back to where it has been ends there.
//!
//! How batches nest, from the command streamer's documentation: MI_BATCH_BUFFER_START in a ring calls a batch, and its
//! MI_BATCH_BUFFER_END returns to the ring. In a batch it goes on elsewhere and never comes back (a chain), unless bit 22
//! asks for a second-level batch, which returns. Where a start is predicated, both ways are walked: the batch, then what
//! stands behind the command.
//!
//! Never: formatting, conclusions.

use super::commands::{Command, CommandType, Decoder};
use std::collections::HashSet;
use unwedge_base::Memory;

/// Calls nest less deeply than this, the ring included.
pub const MAX_LEVELS: usize = 8;

/// Dwords that a walk visits unless it is told otherwise: those of 256 MiB.
pub const DEFAULT_BUDGET: u64 = 64 << 20;

/// Where an address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// The global table: rings and what the kernel runs.
    Ggtt,
    /// The address space of the context.
    Ppgtt,
}

/// Memory as a dump holds it.
#[derive(Clone, Copy, Debug)]
pub struct Spaces<'m> {
    /// Through the global table.
    pub ggtt: &'m Memory,
    /// Through the context's.
    pub ppgtt: &'m Memory,
}

impl<'m> Spaces<'m> {
    /// What is known from an address to the end of its buffer; `None` when nothing is. Only what a dump really holds:
    /// zeros that a buffer implies behind its contents are not.
    pub fn words(&self, space: Space, address: u64) -> Option<&'m [u32]> {
        let memory = match space {
            Space::Ggtt => self.ggtt,
            Space::Ppgtt => self.ppgtt,
        };
        let words = memory.dwords(address)?.stored();
        (!words.is_empty() && address.is_multiple_of(4)).then_some(words)
    }
}

/// A stretch of a ring to walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingRange {
    /// Address of its first byte in the global table.
    pub start: u64,
    /// Its length in bytes.
    pub size: u32,
    /// Offset to start at, the head.
    pub from: u32,
    /// Offset to stop at, the tail: a smaller one than `from` is reached around the end. Where both are the same there is
    /// nothing to walk.
    pub to: u32,
}

/// Something on the way.
#[derive(Clone, Copy, Debug)]
pub struct IntelEvent<'m> {
    /// Address of the first dword it is about.
    pub address: u64,
    /// The space of the address.
    pub space: Space,
    /// Calls around it: 0 in a ring, or in the batch the walk started with.
    pub level: u8,
    /// What it is.
    pub kind: EventKind<'m>,
}

/// What is on the way.
#[derive(Clone, Copy, Debug)]
pub enum EventKind<'m> {
    /// A command.
    Command(Command<'m>),
    /// So many dwords of zero: MI_NOOP each.
    Noops(u32),
    /// Dwords that are no command.
    Unknown(&'m [u32]),
    /// The walk goes to a batch; `address` is that of its first dword.
    Enter(BatchEntry),
    /// The batch ends with the MI_BATCH_BUFFER_END at `address`; the walk returns to the caller, or ends.
    End,
    /// The dump does not hold the memory at `address`: what follows there is unknown.
    Absent,
    /// The walk has been at `address` in this batch before: a loop, followed no further.
    Loop,
    /// The batch at `address` is called too deeply to follow.
    TooDeep,
    /// The budget is used up; the walk ends.
    Budget,
}

/// How a batch is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    /// Address of the MI_BATCH_BUFFER_START; `None` where the walk starts.
    pub from: Option<u64>,
    /// It returns to its caller; otherwise it is the rest of the batch that it is entered from.
    pub returns: bool,
    /// Whether it is entered depends on a predicate. The walk goes on behind the command too.
    pub predicated: bool,
}

#[derive(Clone, Debug)]
struct BatchLevel<'m> {
    space: Space,
    address: u64,
    /// Known dwords from `address` on.
    words: &'m [u32],
    /// A ring: where it starts, its size, and bytes left to walk.
    ring: Option<(u64, u32, u32)>,
    /// Where chains of this level have led.
    visited: HashSet<u64>,
}

/// Iterator over the events of a walk.
#[derive(Clone, Debug)]
pub struct IntelWalk<'m> {
    decoder: Decoder,
    spaces: Spaces<'m>,
    levels: Vec<BatchLevel<'m>>,
    /// An event that follows the one just given, before the walk goes on.
    pending: Option<IntelEvent<'m>>,
    budget: u64,
    follow: bool,
}

impl<'m> IntelWalk<'m> {
    /// Of a ring.
    pub fn ring(decoder: Decoder, spaces: Spaces<'m>, ring: RingRange) -> IntelWalk<'m> {
        let size = ring.size & !3;
        let from = if ring.from < size { ring.from & !3 } else { 0 };
        let to = (ring.to & !3).min(size);
        let left = if to >= from { to - from } else { size - from + to };
        let address = ring.start.wrapping_add(u64::from(from));
        let level = BatchLevel {
            space: Space::Ggtt,
            address,
            words: spaces.words(Space::Ggtt, address).unwrap_or_default(),
            ring: Some((ring.start, size, left)),
            visited: HashSet::new(),
        };
        IntelWalk {
            decoder,
            spaces,
            levels: vec![level],
            pending: None,
            budget: DEFAULT_BUDGET,
            follow: true,
        }
    }

    /// Of a batch.
    pub fn batch(decoder: Decoder, spaces: Spaces<'m>, space: Space, address: u64) -> IntelWalk<'m> {
        let mut walk = IntelWalk {
            decoder,
            spaces,
            levels: Vec::new(),
            pending: None,
            budget: DEFAULT_BUDGET,
            follow: true,
        };
        let address = canonical(address);
        walk.levels.push(walk.level(space, address));
        let entry = BatchEntry { from: None, returns: false, predicated: false };
        walk.pending = Some(IntelEvent { address, space, level: 0, kind: EventKind::Enter(entry) });
        walk
    }

    /// Ends after so many dwords.
    pub fn with_budget(mut self, dwords: u64) -> IntelWalk<'m> {
        self.budget = dwords;
        self
    }

    /// Stays in the memory it starts in: no batch is entered, and a chain ends the walk of a batch.
    pub fn without_following(mut self) -> IntelWalk<'m> {
        self.follow = false;
        self
    }

    /// Dwords that the walk may still visit.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    fn level(&self, space: Space, address: u64) -> BatchLevel<'m> {
        let words = self.spaces.words(space, address).unwrap_or_default();
        BatchLevel { space, address, words, ring: None, visited: HashSet::from([address]) }
    }

    fn event(&self, address: u64, kind: EventKind<'m>) -> Option<IntelEvent<'m>> {
        let level = self.levels.len().saturating_sub(1) as u8;
        let space = self.levels.last().map_or(Space::Ggtt, |l| l.space);
        Some(IntelEvent { address, space, level, kind })
    }

    /// Goes `dwords` on in the innermost level.
    fn advance(&mut self, dwords: u32) {
        self.budget = self.budget.saturating_sub(dwords.into());
        if let Some(level) = self.levels.last_mut() {
            level.address = level.address.wrapping_add(u64::from(dwords) * 4);
            level.words = level.words.get(dwords as usize..).unwrap_or_default();
            if let Some((.., left)) = &mut level.ring {
                *left = left.saturating_sub(dwords.saturating_mul(4));
            }
        }
    }

    /// What a start of a batch does.
    fn start(&mut self, at: u64, command: &Command<'m>) {
        let Some((space, target)) = batch_start(&self.decoder, command) else { return };
        let header = command.header();
        let predicated = header >> 15 & 1 == 1 && self.decoder.gpu.number() >= 75;
        let second_level = header >> 22 & 1 == 1 && self.decoder.gpu.number() >= 75;
        let Some(level) = self.levels.last() else { return };
        let returns = level.ring.is_some() || second_level;
        let entry = BatchEntry { from: Some(at), returns, predicated };
        if !self.follow {
            if !returns && !predicated {
                self.levels.pop();
            }
            return;
        }
        if returns || predicated {
            if self.levels.len() >= MAX_LEVELS {
                self.pending = Some(IntelEvent {
                    address: target,
                    space,
                    level: self.levels.len() as u8,
                    kind: EventKind::TooDeep,
                });
                return;
            }
            self.levels.push(self.level(space, target));
            self.pending = self.event(target, EventKind::Enter(entry));
        } else {
            let next = self.level(space, target);
            let Some(level) = self.levels.last_mut() else { return };
            if level.visited.insert(target) {
                (level.space, level.address, level.words) = (next.space, next.address, next.words);
                self.pending = self.event(target, EventKind::Enter(entry));
            } else {
                self.pending = self.event(target, EventKind::Loop);
                self.levels.pop();
            }
        }
    }
}

/// Where an MI_BATCH_BUFFER_START goes; `None` when its address is cut.
pub fn batch_start(decoder: &Decoder, command: &Command<'_>) -> Option<(Space, u64)> {
    let low = u64::from(*command.words.get(1)? & !3);
    let high = if decoder.gpu.number() < 80 { 0 } else { u64::from(*command.words.get(2)?) };
    // Sandy Bridge and before have one table.
    let ppgtt = decoder.gpu.number() >= 70 && command.header() >> 8 & 1 == 1;
    Some((if ppgtt { Space::Ppgtt } else { Space::Ggtt }, canonical(high << 32 | low)))
}

/// Addresses have 48 bits; those above repeat bit 47, or not, and mean nothing.
pub fn canonical(address: u64) -> u64 {
    address & 0xffff_ffff_ffff
}

/// MI_BATCH_BUFFER_END.
fn is_end(header: u32) -> bool {
    header >> 23 == 0x0a
}

/// MI_BATCH_BUFFER_START.
fn is_start(header: u32) -> bool {
    header >> 23 == 0x31
}

impl<'m> Iterator for IntelWalk<'m> {
    type Item = IntelEvent<'m>;

    fn next(&mut self) -> Option<IntelEvent<'m>> {
        if let Some(event) = self.pending.take() {
            return Some(event);
        }
        let level = self.levels.last_mut()?;
        if let Some((start, size, left)) = level.ring {
            if left == 0 {
                self.levels.pop();
                return None;
            }
            if level.address.wrapping_sub(start) >= u64::from(size) {
                level.address = start;
                level.words = self.spaces.words(Space::Ggtt, start).unwrap_or_default();
            }
        }
        let (address, mut words) = (level.address, level.words);
        if let Some((start, size, left)) = level.ring {
            let to_end = u64::from(size).saturating_sub(address.wrapping_sub(start)).min(left.into());
            words = words.get(..(to_end / 4) as usize).unwrap_or(words);
        }
        if self.budget == 0 {
            let event = self.event(address, EventKind::Budget);
            self.levels.clear();
            return event;
        }
        if words.is_empty() {
            // Another buffer may follow where this one ends.
            match self.spaces.words(level.space, address) {
                Some(more) if level.ring.is_none() => {
                    level.words = more;
                    words = more;
                }
                _ => {
                    let event = self.event(address, EventKind::Absent);
                    self.levels.pop();
                    return event;
                }
            }
        }
        self.step(address, words)
    }
}

impl<'m> IntelWalk<'m> {
    /// What stands at `address`, where at least one dword is known.
    fn step(&mut self, address: u64, words: &'m [u32]) -> Option<IntelEvent<'m>> {
        let most = usize::try_from(self.budget).unwrap_or(usize::MAX);
        let zeros = words.iter().take(most).take_while(|&&word| word == 0).count() as u32;
        if zeros != 0 {
            let event = self.event(address, EventKind::Noops(zeros));
            self.advance(zeros);
            return event;
        }
        let Some(command) = self.decoder.command(words) else {
            let strange = |word: &&u32| self.decoder.command(std::slice::from_ref(*word)).is_none();
            let count = words.iter().take(most).take_while(strange).count();
            let event = self.event(address, EventKind::Unknown(words.get(..count)?));
            self.advance(count as u32);
            return event;
        };
        let event = self.event(address, EventKind::Command(command));
        let header = command.header();
        // A command goes on in the next buffer, but not around the end of a ring.
        let in_ring = self.levels.last().is_some_and(|l| l.ring.is_some());
        let here = command.words.len() as u32;
        self.advance(if in_ring { command.length.min(here) } else { command.length });
        if CommandType::of(header) == CommandType::Mi {
            if is_end(header) && !in_ring {
                self.pending = self.event(address, EventKind::End);
                self.levels.pop();
            } else if is_start(header) {
                self.start(address, &command);
            }
        }
        event
    }
}
