//! The commands of a context image, as far as a context is made of them: walked one by one, registers told.
//!
//! Never: what commands are that load no registers; that is [`unwedge_stream::intel::commands`]'s.

use std::ops::Range;
use unwedge_stream::intel::commands::{CommandType, length_by_type};

/// MI_LOAD_REGISTER_IMM, without its length.
pub const LOAD: u32 = 0x22 << 23;
/// MI_LOAD_REGISTER_IMM: wait until each write is done.
pub const LOAD_FORCE_POSTED: u32 = 1 << 12;
/// MI_LOAD_REGISTER_IMM and _MEM: offsets are relative to the engine's base.
pub const LOAD_RELATIVE: u32 = 1 << 19;
/// MI_BATCH_BUFFER_END.
pub const BATCH_END: u32 = 0x0a << 23;
const LOAD_MEMORY: u32 = 0x29;
const LOAD_REGISTER: u32 = 0x2a;
/// Registers lie below this.
const MMIO_END: u32 = 0x80_0000;

/// The MI_LOAD_REGISTER_IMM of so many registers, without flags.
pub fn load(registers: usize) -> u32 {
    // A byte holds the length of every table's loads: 2 · 63 - 1 at most.
    LOAD | (2 * registers as u32).wrapping_sub(1) & 0xff
}

/// What a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LrcImageCommandKind {
    /// MI_NOOP.
    Noop,
    /// MI_LOAD_REGISTER_IMM with this number of registers.
    Load(usize),
    /// MI_BATCH_BUFFER_END: the image ends.
    End,
    /// Some other command, as long as its type says.
    Other,
    /// No command: it has no such type, or is longer than what is there.
    Unknown,
}

/// A command of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LrcImageCommand {
    /// Its dwords.
    pub dwords: Range<usize>,
    /// Its first dword.
    pub header: u32,
    /// What it is.
    pub kind: LrcImageCommandKind,
}

/// A register an image loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedRegister {
    /// The dword of its offset.
    pub dword: usize,
    /// The offset as it stands there.
    pub offset: u32,
    /// Its value; none where the image is cut.
    pub value: Option<u32>,
    /// The offset is relative to the engine's base.
    pub relative: bool,
}

/// Walks the commands of an image up to and including its end. What is no command takes a dword.
pub fn walk(words: &[u32]) -> impl Iterator<Item = LrcImageCommand> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let at = next?;
        let rest = words.get(at..).filter(|rest| !rest.is_empty())?;
        let (kind, length) = command(rest);
        next = (kind != LrcImageCommandKind::End).then_some(at + length);
        Some(LrcImageCommand { dwords: at..at + length, header: rest.first().copied()?, kind })
    })
}

/// The registers an image loads, up to its end.
pub fn registers(words: &[u32]) -> impl Iterator<Item = SavedRegister> {
    walk(words).flat_map(move |command| command.registers(words))
}

impl LrcImageCommand {
    /// The registers it loads.
    pub fn registers(self, words: &[u32]) -> impl Iterator<Item = SavedRegister> {
        let relative = self.header & LOAD_RELATIVE != 0;
        let start = if matches!(self.kind, LrcImageCommandKind::Load(_)) {
            self.dwords.start + 1
        } else {
            self.dwords.end
        };
        (start..self.dwords.end).step_by(2).filter_map(move |dword| {
            let value = words.get(dword + 1).copied();
            Some(SavedRegister { dword, offset: *words.get(dword)?, value, relative })
        })
    }
}

/// What stands at the start of `words`, and its length: never 0, never more than there is.
fn command(words: &[u32]) -> (LrcImageCommandKind, usize) {
    let Some(&header) = words.first() else { return (LrcImageCommandKind::Unknown, 1) };
    let opcode = header >> 23 & 0x3f;
    let kind = match CommandType::of(header) {
        CommandType::Mi if header == 0 => LrcImageCommandKind::Noop,
        CommandType::Mi if opcode == BATCH_END >> 23 => LrcImageCommandKind::End,
        CommandType::Mi if opcode == LOAD >> 23 => {
            // A load that is cut off, or of half a register, has the registers that are there.
            let length = ((header & 0xff) as usize + 2).min(words.len());
            return (LrcImageCommandKind::Load(length / 2), length);
        }
        CommandType::Mi | CommandType::Blitter | CommandType::Pipeline | CommandType::Barrier => {
            LrcImageCommandKind::Other
        }
        CommandType::Other => LrcImageCommandKind::Unknown,
    };
    match length_by_type(header).map(|length| length as usize) {
        Some(length) if length <= words.len() => (kind, length),
        _ => (LrcImageCommandKind::Unknown, 1),
    }
}

/// The length of the whole command at the start of a gap that hardware may have saved there: one that loads registers, fits,
/// and names possible ones.
pub(crate) fn extra_command(gap: &[u32]) -> Option<usize> {
    let header = *gap.first()?;
    let opcode = header >> 23;
    let length = (header & 0xff) as usize + 2;
    let body = gap.get(1..length)?;
    let possible = |register: &u32| register.is_multiple_of(4) && (4..MMIO_END).contains(register);
    let fits = match opcode {
        _ if opcode == LOAD >> 23 => {
            length % 2 == 1
                && header & 0x007e_6f00 & !LOAD_RELATIVE == 0
                && body.iter().step_by(2).all(possible)
        }
        LOAD_MEMORY => length == 4 && body.first().is_some_and(possible),
        LOAD_REGISTER => length == 3 && body.iter().all(possible),
        _ => false,
    };
    fits.then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(words: &[u32]) -> Vec<(LrcImageCommandKind, Range<usize>)> {
        walk(words).map(|c| (c.kind, c.dwords)).collect()
    }

    #[test]
    fn an_image_is_walked_to_its_end() {
        let words = [
            0,
            load(2) | LOAD_FORCE_POSTED,
            0x2244,
            1,
            0x2034,
            2,
            0x1490_8002,
            0x20a8,
            0x1000,
            0,
            BATCH_END | 1,
            7,
        ];
        assert_eq!(
            kinds(&words),
            [
                (LrcImageCommandKind::Noop, 0..1),
                (LrcImageCommandKind::Load(2), 1..6),
                (LrcImageCommandKind::Other, 6..10),
                (LrcImageCommandKind::End, 10..11),
            ]
        );
        let saved: Vec<(usize, u32, Option<u32>)> =
            registers(&words).map(|s| (s.dword, s.offset, s.value)).collect();
        assert_eq!(saved, [(2, 0x2244, Some(1)), (4, 0x2034, Some(2))]);
    }

    #[test]
    fn what_is_cut_or_no_command_ends_nothing() {
        assert_eq!(kinds(&[load(3), 0x2244, 1, 0x2034]), [(LrcImageCommandKind::Load(2), 0..4)]);
        assert_eq!(registers(&[load(3), 0x2244, 1, 0x2034]).last().unwrap().value, None);
        assert_eq!(
            kinds(&[0xdead_beef, 0x7900_00ff, 0]),
            [
                (LrcImageCommandKind::Unknown, 0..1),
                (LrcImageCommandKind::Unknown, 1..2),
                (LrcImageCommandKind::Noop, 2..3)
            ]
        );
        assert_eq!(kinds(&[]), []);
    }

    #[test]
    fn only_what_hardware_saves_is_a_command_in_a_gap() {
        assert_eq!(extra_command(&[load(1), 0x2358, 0, 0]), Some(3));
        assert_eq!(extra_command(&[load(1) | LOAD_RELATIVE | LOAD_FORCE_POSTED, 0x358, 0]), Some(3));
        for gap in [
            &[load(2), 0x2358, 0][..],
            &[load(1), 0x2359, 0],
            &[LOAD, 0x2358],
            &[1, 0],
            &[0x5a5a_5a5a; 9],
            &[],
        ] {
            assert_eq!(extra_command(gap), None, "{gap:x?}");
        }
    }
}
