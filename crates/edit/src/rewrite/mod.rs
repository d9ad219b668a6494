//! Captures whose streams are rewritten: packet by packet, in every indirect buffer, draw-state group and chained buffer.
//!
//! A capture is read as a stream, one set of buffers at a time. When the last submit of a set is known, a [`StreamEditor`] says what
//! becomes of each packet: it stays, becomes a CP_NOP, is removed or replaced, or has others inserted around it. A stream of another
//! length goes to addresses that no buffer of the capture uses, and all that leads to it follows: submits, CP_INDIRECT_BUFFER and
//! its relatives, CP_SET_DRAW_STATE, tables of streams; counts of dwords (CP_COND_EXEC, CP_COND_REG_EXEC) cover what they covered. A
//! stream that is executed several times is rewritten once. What nothing changes comes out byte for byte.
//!
//! Never: opens files, executes. What it cannot know: addresses of streams that the GPU itself writes or computes lead to the streams as
//! they were, which are left in place.

mod layout;
mod references;
mod sections;
mod segments;
mod space;
mod tail;

pub use layout::nop;
pub(crate) use references::{condition, streams};
pub use segments::{StreamRange, WalkedSubmit};
pub use space::AddressSpace;

use layout::EditedStream;
use references::StreamTable;
use sections::HeldSet;
use segments::{PacketRecord, SetStreams, StreamCollector};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use tail::TailReader;
use unwedge_base::plural::counted;
use unwedge_base::{Diagnostic, Generation};
use unwedge_capture::rd::{LiveStep, MemoryRange, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoOp, AdrenoState, AdrenoStreamKind, operations};
use unwedge_stream::play::{Consumer, Player, Submission, SubmitChoice};

/// A payload is never that long.
const MAX_BUFFER: u64 = 1 << 30;
/// Dwords that the streams of a set may grow to in all.
const ROOM: usize = 1 << 27;
/// Dwords between the beginnings of moved streams: 64 bytes.
const ALIGN: usize = 16;

/// Why a capture is not rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The result cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The addresses of the GPU are used up.
    #[error("the GPU has no {0} bytes of unused addresses")]
    NoAddresses(u64),
    /// A buffer that no section can hold.
    #[error("a buffer of {0} bytes is too long for a capture")]
    TooLong(u64),
    /// What the editor was asked for is not possible.
    #[error("{0}")]
    Edit(String),
}

/// What becomes of a packet itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PacketChange {
    /// It stays.
    #[default]
    Keep,
    /// CP_NOP of the same length.
    Nop,
    /// It goes, and its stream becomes shorter.
    Remove,
    /// Other packets are in its place; fewer dwords are filled up with CP_NOP.
    Replace(Vec<u32>),
}

/// What becomes of a packet and its surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketEdit {
    /// Whole packets inserted before it. A condition (CP_COND_REG_EXEC) that begins to hold at the packet covers them; one that ends
    /// before it does not.
    pub before: Vec<u32>,
    /// The packet.
    pub packet: PacketChange,
    /// Whole packets inserted after it; a condition that covers the packet covers them.
    pub after: Vec<u32>,
}

impl PacketEdit {
    /// Others before it.
    pub fn insert_before(before: Vec<u32>) -> PacketEdit {
        PacketEdit { before, ..PacketEdit::default() }
    }

    /// Others after it.
    pub fn insert_after(after: Vec<u32>) -> PacketEdit {
        PacketEdit { after, ..PacketEdit::default() }
    }

    /// The packet alone is changed.
    pub fn change(packet: PacketChange) -> PacketEdit {
        PacketEdit { packet, ..PacketEdit::default() }
    }

    /// Nothing is changed.
    pub fn is_keep(&self) -> bool {
        self.before.is_empty() && self.after.is_empty() && self.packet == PacketChange::Keep
    }

    /// All packets stay at their places, for a packet of so many dwords.
    fn fits(&self, dwords: usize) -> bool {
        let longer = matches!(&self.packet, PacketChange::Replace(with) if with.len() > dwords);
        self.before.is_empty() && self.after.is_empty() && self.packet != PacketChange::Remove && !longer
    }
}

/// A packet that may be edited. Packets of a stream that is executed several times come once.
#[derive(Clone, Copy, Debug)]
pub struct StreamPacket<'p> {
    /// Address of its header.
    pub iova: u64,
    /// Its index in its stream, in dwords.
    pub index: usize,
    /// Its header.
    pub header: AdrenoPacketHeader,
    /// What the operation is.
    pub op: AdrenoOp,
    /// Header and payload.
    pub words: &'p [u32],
    /// The stream that it is in.
    pub stream: StreamRange,
    /// Number of the submit that executes it first, from 0 over the capture.
    pub submit: u32,
    /// Draws, dispatches, blits and working events before it, when it is first executed.
    pub draws_before: u32,
    /// Numbers of those that it starts, as listings count them: several where its stream is executed several times.
    pub works: &'p [u32],
    /// Render modes that it is executed in: bits of [`mode`](unwedge_stream::adreno::mode).
    pub modes: u8,
    /// What CP_SET_MARKER or CP_SET_RENDER_MODE said last, when it is first executed.
    pub marker: Option<u32>,
    /// How often it is executed, as far as the walk can tell.
    pub visits: u32,
}

impl StreamPacket<'_> {
    /// Everything after the header.
    pub fn payload(&self) -> &[u32] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// Says what becomes of packets.
pub trait StreamEditor {
    /// What the walk of a submit meets, with what packets have done before it. All submits of a set are walked before its packets are
    /// edited.
    fn watch(&mut self, _gpu: Gpu<'_>, _submit: u32, _state: &AdrenoState, _event: &AdrenoEvent<'_>) {}

    /// The submits of a set have been walked. Buffers may be added, memory changed, submits and buffers left out.
    ///
    /// # Errors
    /// What is asked for cannot be done; nothing more is written.
    fn begin_set(&mut self, _set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        Ok(())
    }

    /// What becomes of a packet.
    fn edit(&mut self, _packet: &StreamPacket<'_>) -> PacketEdit {
        PacketEdit::default()
    }

    /// All packets of a set have been edited; what is watched next is of another.
    fn end_set(&mut self) {}
}

/// Two editors at once: what the inner one inserts is next to the packet, what the outer one inserts around that. The inner one says
/// what becomes of the packet itself.
pub struct NestedEditors<'e> {
    /// Asked first.
    pub outer: &'e mut dyn StreamEditor,
    /// Asked second.
    pub inner: &'e mut dyn StreamEditor,
}

impl StreamEditor for NestedEditors<'_> {
    fn watch(&mut self, gpu: Gpu<'_>, submit: u32, state: &AdrenoState, event: &AdrenoEvent<'_>) {
        self.outer.watch(gpu, submit, state, event);
        self.inner.watch(gpu, submit, state, event);
    }

    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        self.outer.begin_set(set)?;
        self.inner.begin_set(set)
    }

    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        let (outer, inner) = (self.outer.edit(packet), self.inner.edit(packet));
        PacketEdit {
            before: [outer.before, inner.before].concat(),
            packet: if inner.packet == PacketChange::Keep { outer.packet } else { inner.packet },
            after: [inner.after, outer.after].concat(),
        }
    }

    fn end_set(&mut self) {
        self.outer.end_set();
        self.inner.end_set();
    }
}

/// A set of buffers and its submits, before their packets are edited.
pub struct SetEdit<'s> {
    gpu: Gpu<'s>,
    number: u64,
    held: &'s mut HeldSet,
    streams: &'s SetStreams,
    space: &'s mut AddressSpace,
    added: Vec<(MemoryRange, Vec<u32>)>,
    dropped_submits: Vec<usize>,
}

impl<'s> SetEdit<'s> {
    /// The GPU.
    pub fn gpu(&self) -> Gpu<'s> {
        self.gpu
    }

    /// Which set of the capture it is, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its submits that can be walked.
    pub fn submits(&self) -> &[WalkedSubmit] {
        &self.streams.submits
    }

    /// The stretches of memory that are walked as streams.
    pub fn streams(&self) -> &[StreamRange] {
        &self.streams.ranges
    }

    /// Address and size of its buffers.
    pub fn buffers(&self) -> Vec<MemoryRange> {
        self.held.buffers().collect()
    }

    /// Up to so many dwords of memory, as far as the buffer goes; none where the capture has no contents.
    pub fn words(&self, iova: u64, dwords: usize) -> Vec<u32> {
        self.held.words(iova, dwords)
    }

    /// Changes memory of the capture. False if not all of it is in buffers with contents. Packets that the editor sees afterwards are
    /// the changed ones.
    pub fn patch(&mut self, iova: u64, words: &[u32]) -> bool {
        self.held.patch(iova, words)
    }

    /// Adds a buffer to this set: `words`, and zeros up to `size` bytes. Returns its address, which later sets may use for others.
    ///
    /// # Errors
    /// The addresses are used up, or the buffer is too long.
    pub fn add_buffer(&mut self, words: Vec<u32>, size: u64) -> Result<u64, RewriteError> {
        let iova = take(self.space, self.gpu.generation(), size)?;
        self.add_buffer_at(iova, words, size)?;
        Ok(iova)
    }

    /// Takes addresses that nothing else in the capture will use, for buffers that several sets have.
    ///
    /// # Errors
    /// The addresses are used up.
    pub fn reserve(&mut self, size: u64) -> Result<u64, RewriteError> {
        if size > MAX_BUFFER {
            return Err(RewriteError::TooLong(size));
        }
        self.space.take(self.gpu.generation(), size).ok_or(RewriteError::NoAddresses(size))
    }

    /// Adds a buffer to this set at an address from [`SetEdit::reserve`].
    ///
    /// # Errors
    /// The buffer is too long.
    pub fn add_buffer_at(&mut self, iova: u64, words: Vec<u32>, size: u64) -> Result<(), RewriteError> {
        let size = size.max(4 * words.len() as u64).next_multiple_of(4);
        let short = u32::try_from(size).ok().filter(|_| size <= MAX_BUFFER);
        let size = short.ok_or(RewriteError::TooLong(size))?;
        self.added.push((MemoryRange { iova, size }, words));
        Ok(())
    }

    /// Leaves a submit out of the result.
    pub fn drop_submit(&mut self, submit: WalkedSubmit) {
        self.dropped_submits.push(submit.in_set);
    }

    /// Leaves out the buffers that are not wanted, names and contents.
    pub fn keep_buffers(&mut self, wanted: impl Fn(MemoryRange) -> bool) {
        self.held.keep_buffers(wanted);
    }
}

/// Addresses for this set alone.
fn take(space: &mut AddressSpace, generation: Generation, size: u64) -> Result<u64, RewriteError> {
    if size > MAX_BUFFER {
        return Err(RewriteError::TooLong(size));
    }
    space.take_for_set(generation, size).ok_or(RewriteError::NoAddresses(size))
}

/// What a rewrite came to.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// Submits that were walked.
    pub submits: u64,
    /// Packets that are not as they were.
    pub edited: u64,
    /// Streams that are at other addresses.
    pub moved: u64,
    /// Buffers that were added, those of moved streams included.
    pub added: u64,
    /// Bytes written.
    pub bytes: u64,
    /// What was lost of the capture, and edits that were not possible.
    pub diagnostics: Vec<Diagnostic>,
}

/// Rewrites a capture. `space` are the addresses that it uses: see [`AddressSpace::scan`]. No more than about `max_alive` bytes are held at
/// once.
///
/// # Errors
/// [`RewriteError`] if the result cannot be written, or the editor cannot do what it was asked for.
pub fn rewrite(
    capture: impl Read,
    space: AddressSpace,
    editor: &mut dyn StreamEditor,
    db: &Db,
    max_alive: u64,
    out: &mut dyn Write,
) -> Result<Rewritten, RewriteError> {
    let mut rewriter = Rewriter {
        editor,
        out,
        space,
        gpu: None,
        set: HeldSet::default(),
        streams: SetStreams::default(),
        submits_of_set: 0,
        sets: 0,
        end: 0,
        limit: max_alive,
        unheld: 0,
        result: Rewritten::default(),
        failed: None,
    };
    let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
    let mut capture = TailReader::new(capture);
    let mut diagnostics = Player::new(choice, db, max_alive).play(&mut capture, &mut rewriter);
    rewriter.end_set(true);
    let Rewriter { end, mut result, failed, out, unheld, .. } = rewriter;
    if let Some(error) = failed {
        return Err(error);
    }
    // What readers of captures make nothing of.
    result.bytes = result.bytes.saturating_add(capture.copy_from(end, out)?);
    if unheld > 0 {
        let message =
            format!("{} over what may be held at once are left out", counted(unheld, "byte", "bytes"));
        diagnostics.push(Diagnostic::loss(None, message));
    }
    diagnostics.append(&mut result.diagnostics);
    result.diagnostics = diagnostics;
    Ok(result)
}

struct Rewriter<'r, 'd> {
    editor: &'r mut dyn StreamEditor,
    out: &'r mut dyn Write,
    space: AddressSpace,
    gpu: Option<Gpu<'d>>,
    set: HeldSet,
    streams: SetStreams,
    submits_of_set: usize,
    sets: u64,
    /// One past the last section.
    end: u64,
    limit: u64,
    unheld: u64,
    result: Rewritten,
    failed: Option<RewriteError>,
}

impl<'d> Consumer<'d> for Rewriter<'_, 'd> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        if step == LiveStep::Forgotten {
            self.end_set(false);
        }
        let filler = section.span.start.saturating_sub(self.end);
        self.end = section.span.end;
        if self.set.bytes.saturating_add(section.payload.len() as u64) > self.limit {
            self.unheld = self.unheld.saturating_add(section.span.len());
            return;
        }
        self.set.push(section, filler);
        if section.kind == RdSectionKind::CmdStreamAddr {
            self.submits_of_set += 1;
        }
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let submit = submission.submit;
        let Ok(mut walk) = submission.open() else { return };
        let gpu = walk.gpu;
        self.gpu = Some(gpu);
        let in_set = self.submits_of_set.saturating_sub(1);
        let walked = WalkedSubmit { number: submit.number, in_set, iova: submit.iova, dwords: submit.dwords };
        let present =
            walk.memory.dwords(submit.iova).map_or(0, |dwords| dwords.len()).min(submit.dwords as usize);
        let mut collector = StreamCollector::new(&mut self.streams, self.editor, gpu, walked, present);
        walk.run(&mut collector);
        self.result.submits += 1;
    }

    fn done(&self) -> bool {
        self.failed.is_some()
    }
}

impl Rewriter<'_, '_> {
    /// No more submits use these buffers.
    fn end_set(&mut self, last: bool) {
        if self.failed.is_some() {
            return;
        }
        let mut set = std::mem::take(&mut self.set);
        if !last {
            self.set = set.split_after_submits();
        }
        let streams = std::mem::take(&mut self.streams);
        let edited = match self.gpu.filter(|_| !streams.submits.is_empty()) {
            Some(gpu) => self.edit_set(gpu, &mut set, &streams),
            None => Ok(()),
        };
        self.space.end_set();
        let written = edited.and_then(|()| Ok(set.write(last, self.out)?));
        match written {
            Ok(written) => self.result.bytes = self.result.bytes.saturating_add(written.bytes),
            Err(error) => self.failed = Some(error),
        }
        self.submits_of_set = 0;
        self.sets += 1;
    }

    fn edit_set(
        &mut self,
        gpu: Gpu<'_>,
        set: &mut HeldSet,
        streams: &SetStreams,
    ) -> Result<(), RewriteError> {
        let mut begun = SetEdit {
            gpu,
            number: self.sets,
            held: set,
            streams,
            space: &mut self.space,
            added: Vec::new(),
            dropped_submits: Vec::new(),
        };
        self.editor.begin_set(&mut begun)?;
        let SetEdit { mut added, dropped_submits, .. } = begun;
        let mut edits = StreamEdits::new(gpu, set, streams);
        edits.collect(self.editor);
        self.editor.end_set();
        let moved = edits.place(&mut self.space)?;
        edits.write(set, &moved, &mut added);
        edits.report(&mut self.result);
        let gone = streams.submits.iter().filter_map(|submit| {
            Some((submit.in_set, *moved.streams.get(&(submit.iova, submit.dwords.into()))?))
        });
        set.move_submits(&gone.collect());
        set.drop_submits(&dropped_submits.into_iter().collect());
        self.result.added += added.len() as u64;
        if !added.is_empty() {
            set.add_buffers(added, gpu.generation().is_64bit());
        }
        Ok(())
    }
}

/// Where streams have gone.
#[derive(Default)]
struct MovedStreams {
    /// From address and dwords to address and dwords.
    streams: BTreeMap<(u64, u64), (u64, u32)>,
    /// The same of tables: dwords are those of each row.
    tables: BTreeMap<StreamTable, (u64, u32)>,
    /// Address and dwords of the buffer that they are in.
    buffer: Option<(u64, usize)>,
    /// Index of a stream, where it begins in that buffer, and the dwords that it has there.
    rows: Vec<(usize, usize, usize)>,
}

/// The streams of a set with their edits.
struct StreamEdits<'e> {
    generation: Generation,
    ops: [AdrenoOp; 256],
    streams: &'e SetStreams,
    /// The dwords that streams had, by index.
    old: Vec<Vec<u32>>,
    /// Tables of which all rows are walked, with the indices of these.
    tables: BTreeMap<StreamTable, Vec<usize>>,
    edited: Vec<EditedStream>,
    refused: usize,
    /// Dwords that streams may still grow to.
    room: usize,
}

impl<'e> StreamEdits<'e> {
    fn new(gpu: Gpu<'_>, set: &HeldSet, streams: &'e SetStreams) -> StreamEdits<'e> {
        let (generation, ops) = (gpu.generation(), operations(gpu));
        let present = |range: &StreamRange| usize::try_from(range.dwords).unwrap_or(usize::MAX);
        let old: Vec<Vec<u32>> =
            streams.ranges.iter().map(|range| set.words(range.iova, present(range))).collect();
        let mut tables = BTreeMap::new();
        for table in old.iter().flat_map(|words| layout::tables(words, generation, &ops)) {
            if table.stride == 0 || tables.contains_key(&table) {
                continue;
            }
            let row = |n: u32| {
                let offset = 4 * u64::from(n) * u64::from(table.stride);
                let index = streams.find(table.iova.checked_add(offset)?, table.stride.into())?;
                old.get(index).is_some_and(|words| words.len() == table.stride as usize).then_some(index)
            };
            let rows: Vec<usize> = (0..table.count).map_while(row).collect();
            if rows.len() == table.count as usize {
                tables.insert(table, rows);
            }
        }
        StreamEdits { generation, ops, streams, old, tables, edited: Vec::new(), refused: 0, room: ROOM }
    }

    /// Asks the editor about every packet, once.
    fn collect(&mut self, editor: &mut dyn StreamEditor) {
        let in_tables: BTreeSet<usize> = self.tables.values().flatten().copied().collect();
        let mut known: BTreeMap<u64, PacketEdit> = BTreeMap::new();
        let mut asked: BTreeSet<u64> = BTreeSet::new();
        for (index, (&range, words)) in self.streams.ranges.iter().zip(&self.old).enumerate() {
            let row = matches!(range.kind, AdrenoStreamKind::Bin { .. } | AdrenoStreamKind::DrawTable { .. });
            // A row moves with all others of its table, or not at all.
            let whole = words.len() as u64 == range.dwords && (!row || in_tables.contains(&index));
            let mut edit = |at: usize, header: AdrenoPacketHeader| {
                let iova = range.iova.saturating_add(4 * at as u64);
                let Some(record) = self.streams.packets.get(&iova) else { return PacketEdit::default() };
                if asked.insert(iova) {
                    let words = words.get(at..at + 1 + header.count() as usize).unwrap_or_default();
                    let edit = editor.edit(&packet(range, at, header, words, record, &self.ops));
                    if !edit.is_keep() {
                        known.insert(iova, edit);
                    }
                }
                known.get(&iova).cloned().unwrap_or_default()
            };
            let most = references::longest(range.kind).min(self.room).max(words.len());
            let grown =
                whole.then(|| EditedStream::new(words, self.generation, Some(most), &mut edit)).flatten();
            let mut stream = match grown {
                Some(stream) => stream,
                None => EditedStream::in_place(words, self.generation, &mut edit),
            };
            self.room = self.room.saturating_sub(stream.words.len());
            stream.patch_conditions(self.generation, &self.ops);
            self.refused += stream.refused;
            self.edited.push(stream);
        }
    }

    fn is_moved(&self, index: usize) -> bool {
        self.edited.get(index).is_some_and(|stream| stream.words.len() != stream.old_len)
    }

    /// Gives the streams whose length has changed new addresses, and tables with such rows.
    fn place(&self, space: &mut AddressSpace) -> Result<MovedStreams, RewriteError> {
        let mut moved = MovedStreams::default();
        let length = |index: usize| self.edited.get(index).map_or(0, |stream| stream.words.len());
        let mut total = 0_usize;
        for index in (0..self.edited.len()).filter(|&index| self.is_moved(index)) {
            moved.rows.push((index, total, length(index)));
            total = total.saturating_add(length(index)).next_multiple_of(ALIGN);
        }
        let mut tables = Vec::new();
        for (table, rows) in &self.tables {
            if rows.iter().any(|&index| self.is_moved(index)) {
                let stride = rows.iter().map(|&index| length(index)).max().unwrap_or(0);
                tables.push((*table, total, stride));
                for &index in rows {
                    moved.rows.push((index, total, stride));
                    total = total.saturating_add(stride);
                }
                total = total.next_multiple_of(ALIGN);
            }
        }
        if moved.rows.is_empty() {
            return Ok(moved);
        }
        let iova = take(space, self.generation, 4 * total as u64)?;
        let placed =
            |at: usize, dwords: usize| (iova + 4 * at as u64, u32::try_from(dwords).unwrap_or(u32::MAX));
        for &(index, at, dwords) in &moved.rows {
            if let Some(range) = self.streams.ranges.get(index) {
                moved.streams.insert((range.iova, range.dwords), placed(at, dwords));
            }
        }
        moved.tables = tables.into_iter().map(|(table, at, stride)| (table, placed(at, stride))).collect();
        moved.buffer = Some((iova, total));
        Ok(moved)
    }

    /// Writes streams to their places: into the buffers they were in, or into the new one.
    fn write(&mut self, set: &mut HeldSet, moved: &MovedStreams, added: &mut Vec<(MemoryRange, Vec<u32>)>) {
        let stream = |iova: u64, dwords: u64| moved.streams.get(&(iova, dwords)).copied();
        let table = |table: StreamTable| moved.tables.get(&table).copied();
        for ((edited, range), old) in self.edited.iter_mut().zip(&self.streams.ranges).zip(&self.old) {
            if moved.buffer.is_some() {
                edited.patch_references(self.generation, &self.ops, &stream, &table);
            }
            if edited.words.len() == edited.old_len {
                for (at, (new, old)) in (range.iova..).step_by(4).zip(edited.words.iter().zip(old)) {
                    if new != old {
                        set.patch(at, &[*new]);
                    }
                }
            }
        }
        let Some((iova, dwords)) = moved.buffer else { return };
        let mut words = vec![0; dwords];
        for &(index, at, dwords) in &moved.rows {
            let (Some(place), Some(stream)) = (words.get_mut(at..at + dwords), self.edited.get(index)) else {
                continue;
            };
            let pad = nop(dwords - stream.words.len(), self.generation).unwrap_or_default();
            for (slot, word) in place.iter_mut().zip(stream.words.iter().chain(&pad)) {
                *slot = *word;
            }
        }
        let size = u32::try_from(4 * dwords).unwrap_or(u32::MAX);
        added.push((MemoryRange { iova, size }, words));
    }

    fn report(&self, result: &mut Rewritten) {
        result.edited += self.edited.iter().map(|stream| stream.edited as u64).sum::<u64>();
        result.moved += (0..self.edited.len()).filter(|&index| self.is_moved(index)).count() as u64;
        if self.streams.full {
            let message =
                "the streams of a set are too long to be rewritten whole: the last of them are as they were";
            result.diagnostics.push(Diagnostic::loss(None, message));
        }
        if self.refused > 0 {
            let edits = counted(self.refused as u64, "edit needs", "edits need");
            let message = format!("{edits} room in a stream that cannot be moved, and is left out");
            result.diagnostics.push(Diagnostic::loss(None, message));
        }
    }
}

fn packet<'p>(
    stream: StreamRange,
    index: usize,
    header: AdrenoPacketHeader,
    words: &'p [u32],
    record: &'p PacketRecord,
    ops: &[AdrenoOp; 256],
) -> StreamPacket<'p> {
    StreamPacket {
        iova: stream.iova.saturating_add(4 * index as u64),
        index,
        header,
        op: layout::operation(header, ops),
        words,
        stream,
        submit: record.submit,
        draws_before: record.draws_before,
        works: &record.works,
        modes: record.modes,
        marker: record.marker,
        visits: record.visits,
    }
}
