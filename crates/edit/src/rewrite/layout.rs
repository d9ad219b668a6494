//! One stream with its edits: its new dwords, and what of it has to follow other streams.
//!
//! Never: where a stream goes.

use super::references::{self, Moved, StreamTable};
use super::{PacketChange, PacketEdit};
use unwedge_base::Generation;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// A packet of a stream.
#[derive(Clone, Copy, Debug)]
struct PacketSlot {
    /// Where its header was.
    old: usize,
    /// Where what is inserted before it begins.
    start: usize,
    /// Where it is now.
    body: usize,
    /// Dwords of it now, inserted ones left out.
    len: usize,
    /// Dwords that it had.
    old_len: usize,
}

/// A stream with its edits.
#[derive(Debug, Default)]
pub(super) struct EditedStream {
    /// The dwords that it has now.
    pub(super) words: Vec<u32>,
    /// The dwords that it had.
    pub(super) old_len: usize,
    slots: Vec<PacketSlot>,
    /// Edits that there was no room for.
    pub(super) refused: usize,
    /// Packets that are not as they were.
    pub(super) edited: usize,
}

/// What a packet header says, if the stream has one there and the packet ends inside it.
pub(super) fn packet_at(words: &[u32], at: usize, generation: Generation) -> Option<AdrenoPacketHeader> {
    let header = AdrenoPacketHeader::decode(*words.get(at)?, generation)?;
    (at + 1 + header.count() as usize <= words.len()).then_some(header)
}

/// What the operation of a packet is.
pub(super) fn operation(header: AdrenoPacketHeader, ops: &[AdrenoOp; 256]) -> AdrenoOp {
    match header {
        AdrenoPacketHeader::Operation { opcode, .. } => ops[usize::from(opcode)],
        _ => AdrenoOp::None,
    }
}

/// The tables that the packets of a stream name.
pub(super) fn tables(words: &[u32], generation: Generation, ops: &[AdrenoOp; 256]) -> Vec<StreamTable> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(header) = packet_at(words, at, generation) {
        let payload = words.get(at + 1..at + 1 + header.count() as usize).unwrap_or_default();
        found.extend(references::table(operation(header, ops), payload));
        at += 1 + payload.len();
    }
    found
}

/// CP_NOP.
const NOP: u8 = 0x10;

/// So many dwords that do nothing; `None` if the generation cannot say it.
pub fn nop(dwords: usize, generation: Generation) -> Option<Vec<u32>> {
    let mut out = Vec::new();
    let mut left = dwords;
    while left > 0 {
        let part = left.min(0x3fff);
        let count = u32::try_from(part - 1).ok()?;
        let header = match count {
            0 if !generation.is_64bit() => AdrenoPacketHeader::Padding,
            _ => AdrenoPacketHeader::Operation { opcode: NOP, count },
        };
        out.push(header.encode(generation)?);
        out.resize(out.len() + count as usize, 0);
        left -= part;
    }
    Some(out)
}

impl EditedStream {
    /// A stream and what becomes of each of its packets. What it ends with, if that is not packets, stays as it is. `None` if it would
    /// have more than `most` dwords; without `most` only edits are made that leave all packets at their places.
    pub(super) fn new(
        words: &[u32],
        generation: Generation,
        most: Option<usize>,
        edit: &mut dyn FnMut(usize, AdrenoPacketHeader) -> PacketEdit,
    ) -> Option<EditedStream> {
        let mut out = EditedStream { old_len: words.len(), ..EditedStream::default() };
        let mut at = 0;
        while let Some(header) = packet_at(words, at, generation) {
            let old_len = 1 + header.count() as usize;
            let old = words.get(at..at + old_len).unwrap_or_default();
            out.packet(at, old, edit(at, header), generation, most.is_some());
            at += old_len;
            if most.is_some_and(|most| out.words.len() > most) {
                return None;
            }
        }
        out.words.extend_from_slice(words.get(at..).unwrap_or_default());
        (most.is_none_or(|most| out.words.len() <= most)).then_some(out)
    }

    /// The same, with all packets at their places.
    pub(super) fn in_place(
        words: &[u32],
        generation: Generation,
        edit: &mut dyn FnMut(usize, AdrenoPacketHeader) -> PacketEdit,
    ) -> EditedStream {
        EditedStream::new(words, generation, None, edit).unwrap_or_default()
    }

    fn packet(&mut self, at: usize, old: &[u32], edit: PacketEdit, generation: Generation, grows: bool) {
        let mut edit = edit;
        if !grows && !edit.fits(old.len()) {
            self.refused += 1;
            let shorter = matches!(&edit.packet, PacketChange::Replace(with) if with.len() > old.len());
            let packet = if shorter { PacketChange::Keep } else { edit.packet };
            edit = PacketEdit { before: Vec::new(), packet, after: Vec::new() };
        }
        let start = self.words.len();
        self.words.extend_from_slice(&edit.before);
        let body = self.words.len();
        match &edit.packet {
            PacketChange::Keep => self.words.extend_from_slice(old),
            PacketChange::Nop => {
                self.words.extend(nop(old.len(), generation).unwrap_or_else(|| old.to_vec()));
            }
            PacketChange::Remove if grows => {}
            PacketChange::Remove => {
                self.words.extend(nop(old.len(), generation).unwrap_or_else(|| old.to_vec()));
            }
            PacketChange::Replace(with) => {
                self.words.extend_from_slice(with);
                // A shorter one leaves the place of the others where it is.
                let pad = old.len().saturating_sub(with.len());
                self.words.extend(nop(pad, generation).unwrap_or_default());
            }
        }
        let len = self.words.len() - body;
        self.words.extend_from_slice(&edit.after);
        self.edited += usize::from(!edit.is_keep());
        self.slots.push(PacketSlot { old: at, start, body, len, old_len: old.len() });
    }

    /// Where a dword is now that was at an index, which may be past the end. A packet's place is before what is inserted before it.
    fn place(&self, old: usize) -> usize {
        let after = self.slots.partition_point(|slot| slot.old <= old);
        let end = self.slots.last().map_or(0, |slot| slot.old + slot.old_len);
        if old >= end {
            return self.words.len().saturating_sub(self.old_len - end.min(self.old_len)) + (old - end);
        }
        match after.checked_sub(1).and_then(|index| self.slots.get(index)) {
            Some(slot) if slot.old == old => slot.start,
            Some(slot) => slot.body + (old - slot.old).min(slot.len),
            None => old,
        }
    }

    /// Counts of dwords cover what they covered, with what was inserted there.
    pub(super) fn patch_conditions(&mut self, generation: Generation, ops: &[AdrenoOp; 256]) {
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get(index).copied() else { continue };
            let Some((op, header)) = self.operation_of(slot, generation, ops) else { continue };
            let body = slot.body + 1..slot.body + 1 + header.count() as usize;
            let Some(payload) = self.words.get(body.clone()) else { continue };
            let Some((at, dwords)) = references::condition(op, payload, generation) else { continue };
            // What is inserted after the condition is covered, too.
            let from = slot.body + slot.len;
            let to = self.place((slot.old + slot.old_len).saturating_add(dwords as usize));
            let covered = if dwords == 0 { 0 } else { to.saturating_sub(from) };
            if let Some(word) = self.words.get_mut(body).and_then(|payload| payload.get_mut(at)) {
                references::put_condition(op, word, u32::try_from(covered).unwrap_or(u32::MAX));
            }
        }
    }

    fn operation_of(
        &self,
        slot: PacketSlot,
        generation: Generation,
        ops: &[AdrenoOp; 256],
    ) -> Option<(AdrenoOp, AdrenoPacketHeader)> {
        let header = packet_at(&self.words, slot.body, generation).filter(|_| slot.len > 0)?;
        Some((operation(header, ops), header))
    }

    /// Packets lead to where streams and tables have gone.
    pub(super) fn patch_references(
        &mut self,
        generation: Generation,
        ops: &[AdrenoOp; 256],
        moved: &Moved<'_>,
        moved_tables: &dyn Fn(StreamTable) -> Option<(u64, u32)>,
    ) {
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get(index).copied() else { continue };
            let Some((op, header)) = self.operation_of(slot, generation, ops) else { continue };
            let body = slot.body + 1..slot.body + 1 + header.count() as usize;
            let Some(payload) = self.words.get_mut(body) else { continue };
            references::follow(op, payload, generation, moved);
            if let Some((iova, stride)) = references::table(op, payload).and_then(moved_tables) {
                references::put_table(op, payload, iova, stride);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_hw::Db;
    use unwedge_stream::adreno::operations;
    use unwedge_testkit::pm4::{pkt4, pkt7};

    const COND_REG_EXEC: u32 = 0x47;

    fn inserting(words: &[u32], at: usize, before: usize, after: usize) -> Vec<u32> {
        let db = Db::builtin();
        let gpu = db.gpu(Generation::A6xx);
        let ops = operations(gpu);
        let mut edit = |offset: usize, _| match offset == at {
            true => PacketEdit {
                before: nop(before, Generation::A6xx).unwrap(),
                packet: PacketChange::Keep,
                after: nop(after, Generation::A6xx).unwrap(),
            },
            false => PacketEdit::default(),
        };
        let mut stream =
            EditedStream::new(words, Generation::A6xx, Some(1 << 20), &mut edit).expect("few dwords");
        stream.patch_conditions(Generation::A6xx, &ops);
        stream.words
    }

    /// A condition over two of three packets: (edited packet, dwords before and after, dwords covered).
    #[test]
    fn conditions_cover_what_is_inserted_between_what_they_covered() {
        let condition = pkt7(COND_REG_EXEC, &[1 << 28, 4]);
        let body = [pkt4(0x8010, &[1]), pkt4(0x8011, &[2])].concat();
        let words = [condition, body, pkt4(0x8012, &[3])].concat();
        for (at, before, after, covered) in [
            (0, 5, 0, 4),
            (0, 0, 5, 9),
            (3, 2, 0, 6),
            (3, 0, 3, 7),
            (5, 1, 0, 5),
            (5, 0, 6, 10),
            (7, 9, 9, 4),
        ] {
            let edited = inserting(&words, at, before, after);
            let first = if at == 0 { before } else { 0 };
            assert_eq!(edited.len(), words.len() + before + after);
            assert_eq!(edited[first + 2], covered, "{at}: {before} before, {after} after");
        }
    }

    #[test]
    fn a_condition_over_more_than_the_stream_covers_as_much_more() {
        let words = [pkt7(COND_REG_EXEC, &[1 << 28, 100]), pkt4(0x8010, &[1])].concat();
        assert_eq!(inserting(&words, 3, 2, 3)[2], 105);
        assert_eq!(inserting(&words, 3, 0, 0), words);
    }

    #[test]
    fn nops_have_the_length_that_is_asked_for() {
        for generation in [Generation::A2xx, Generation::A4xx, Generation::A6xx, Generation::A7xx] {
            for dwords in [0, 1, 2, 5, 0x3fff, 0x4000, 0x4001, 0x9000] {
                let words = nop(dwords, generation).unwrap();
                assert_eq!(words.len(), dwords);
                let mut at = 0;
                while at < words.len() {
                    at += 1 + packet_at(&words, at, generation).expect("a packet").count() as usize;
                }
                assert_eq!(at, dwords, "{generation}");
            }
        }
    }
}
