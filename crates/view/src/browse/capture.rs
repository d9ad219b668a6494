//! A capture, browsed: an index of its submits at first, and of a submit what is alive for it when it is opened.
//!
//! Opening a submit reads the capture from the start of its list of buffers on. Registers count from the start of the submit: what
//! submits before it have written is not known here. Never: the capture as a whole in memory.

use super::dump::words_at;
use super::page::PageTables;
use super::registers::before;
use super::shaders::{self, ListedShader};
use super::{
    BufferContents, BufferEntry, CodeSet, Document, PageNode, RegisterGroup, Row, RowLook, ShaderEntry,
    StreamEntry, StreamPage,
};
use crate::around::{address_in_stream, work_in_stream};
use crate::asm::shaders::ShaderSink;
use crate::info::{FileContents, FileInfo};
use crate::plural::counted;
use crate::rd;
use crate::streams::{PacketDecoder, Walkable, with_submission};
use crate::{Style, info};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek, SeekFrom};
use unwedge_base::{Diagnostic, Generation};
use unwedge_capture::rd::{RdReader, RdSection, RdSectionKind, RdWriter};
use unwedge_hw::Db;
use unwedge_postmortem::ExcerptPacket;
use unwedge_stream::play::{Consumer, Player, Submission, SubmitChoice};

/// Submits that are listed.
const SUBMITS: usize = 1 << 18;
/// Sections that name a GPU and are kept.
const IDENTITIES: usize = 8;
/// Bytes of a payload that the index looks at.
const INDEXED: u64 = 4 << 10;
/// Streams that a search for an address walks beside the one that is open.
const SEARCHED: usize = 64;

/// A capture that is there as a whole.
pub trait SeekRead: Read + Seek {}

impl<T: Read + Seek> SeekRead for T {}

/// A submit of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitEntry {
    /// Its number.
    pub number: u32,
    /// Address and dwords of its stream.
    pub iova: u64,
    /// See `iova`.
    pub dwords: u32,
    /// The process, as the capture calls it.
    pub process: String,
    /// Where the list of its buffers begins, and where the submit ends.
    range: (u64, u64),
    /// Which submit of that list it is.
    nth: u32,
    /// Sections that name the GPU.
    identity: Vec<(RdSectionKind, Vec<u8>)>,
}

/// The work of a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmitWork {
    /// The submit.
    pub number: u32,
    /// The number that its first piece of work has.
    pub first: u32,
    /// How many pieces it starts.
    pub count: u32,
}

/// What whoever indexes a capture reports to its document.
#[derive(Clone, Debug)]
pub enum CaptureIndex {
    /// More submits.
    Submits(Vec<SubmitEntry>),
    /// The index is complete.
    End,
    /// What `info` says, and the numbers of work.
    Summary(String, Vec<SubmitWork>),
    /// The capture cannot be read further.
    Failed(String),
}

/// Finds the submits of a capture. `found` says whether more are wanted.
pub fn index(capture: impl Read, found: &mut dyn FnMut(SubmitEntry) -> bool) {
    let mut reader = RdReader::new(capture).with_limit(INDEXED).counting_zeros();
    let (mut identity, mut process): (Vec<(RdSectionKind, Vec<u8>)>, _) = (Vec::new(), String::new());
    let (mut group, mut nth, mut number, mut submitted) = (0, 0_u32, 0_u32, false);
    while let Some(section) = reader.next() {
        // As `LiveMemory` takes them: one that is cut does nothing.
        if section.kind != RdSectionKind::BufferContents && section.is_cut() {
            continue;
        }
        match section.kind {
            RdSectionKind::GpuId | RdSectionKind::ChipId => {
                let named = (section.kind, section.payload.to_vec());
                if !identity.contains(&named) && identity.len() < IDENTITIES {
                    identity.push(named);
                }
            }
            RdSectionKind::Cmd => process = String::from_utf8_lossy(section.text()).into_owned(),
            RdSectionKind::GpuAddr if std::mem::take(&mut submitted) => {
                (group, nth) = (section.span.start, 0)
            }
            RdSectionKind::CmdStreamAddr => {
                submitted = true;
                let this = (number, nth);
                (number, nth) = (number.saturating_add(1), nth.saturating_add(1));
                let Some(range) = section.range() else { continue };
                let entry = SubmitEntry {
                    number: this.0,
                    iova: range.iova,
                    dwords: range.size,
                    process: process.clone(),
                    range: (group, section.span.end),
                    nth: this.1,
                    identity: identity.clone(),
                };
                if number as usize > SUBMITS || !found(entry) {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// What `info` says of a capture, and the numbers of its work. Plays the capture as a whole.
pub fn summary(
    capture: impl Read,
    file: &FileInfo<'_>,
    lost: &[Diagnostic],
    db: &Db,
    max_alive: u64,
) -> (String, Vec<SubmitWork>) {
    let (capture, found) = rd::info::read(capture, db, max_alive);
    let diagnostics = [lost, &found].concat();
    let file = FileInfo { bytes: capture.bytes(), ..*file };
    let mut text = Vec::new();
    let contents = FileContents::Capture(&capture);
    // Writing to memory does not fail.
    let _ = info::text(&file, contents, &diagnostics, db, Style::default(), &mut text);
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let work = |(number, first, count): (u32, u64, u64)| SubmitWork {
        number,
        first: narrow(first),
        count: narrow(count),
    };
    (String::from_utf8_lossy(&text).into_owned(), capture.work().map(work).collect())
}

/// A capture.
pub struct CaptureDocument<'d> {
    name: String,
    capture: Box<dyn SeekRead + 'd>,
    tables: PageTables<'d>,
    max_alive: u64,
    submits: Vec<SubmitEntry>,
    complete: bool,
    failed: Option<String>,
    summary: Option<String>,
    work: Vec<SubmitWork>,
    shaders: Vec<ListedShader>,
    generation: Option<Generation>,
}

impl<'d> CaptureDocument<'d> {
    /// A capture whose index comes by [`Document::extend`].
    pub fn new(
        name: &str,
        capture: Box<dyn SeekRead + 'd>,
        db: &'d Db,
        max_alive: u64,
    ) -> CaptureDocument<'d> {
        CaptureDocument {
            name: name.to_owned(),
            capture,
            tables: PageTables::new(db),
            max_alive,
            submits: Vec::new(),
            complete: false,
            failed: None,
            summary: None,
            work: Vec::new(),
            shaders: Vec::new(),
            generation: None,
        }
    }

    /// A capture that is indexed at once.
    pub fn indexed(name: &str, bytes: &'d [u8], db: &'d Db, max_alive: u64) -> CaptureDocument<'d> {
        let mut document = CaptureDocument::new(name, Box::new(Cursor::new(bytes)), db, max_alive);
        let mut submits = Vec::new();
        index(bytes, &mut |entry| {
            submits.push(entry);
            true
        });
        document.take_in(CaptureIndex::Submits(submits));
        document.take_in(CaptureIndex::End);
        let kind = unwedge_capture::FileKind::RdCapture;
        let (stored, compression) = (bytes.len() as u64, &[]);
        let (id, described) = (kind.id(), kind.describe());
        let file = FileInfo { name, kind: id, described, stored, bytes: stored, compression };
        let (text, work) = summary(bytes, &file, &[], db, max_alive);
        document.take_in(CaptureIndex::Summary(text, work));
        document
    }

    fn take_in(&mut self, more: CaptureIndex) {
        match more {
            CaptureIndex::Submits(submits) => self.submits.extend(submits),
            CaptureIndex::End => self.complete = true,
            CaptureIndex::Summary(text, work) => (self.summary, self.work) = (Some(text), work),
            CaptureIndex::Failed(why) => {
                self.complete = true;
                self.failed = Some(why);
            }
        }
    }

    fn entry(&self, number: u32) -> Option<&SubmitEntry> {
        let at = self.submits.binary_search_by_key(&number, |entry| entry.number).ok()?;
        self.submits.get(at)
    }

    /// Of a submit the capture from its list of buffers on, after what names the GPU.
    fn part(&mut self, number: u32) -> Option<(impl Read + use<'_, 'd>, SubmitEntry)> {
        let entry = self.entry(number)?.clone();
        let mut head = RdWriter::new(Vec::new());
        for (kind, payload) in &entry.identity {
            head.section(*kind, payload).ok()?;
        }
        let head = head.into_inner();
        let (start, end) = entry.range;
        self.capture.seek(SeekFrom::Start(start)).ok()?;
        let rest = (&mut self.capture).take(end.saturating_sub(start));
        Some((Cursor::new(head).chain(rest), entry))
    }

    /// Plays a submit, and hands it on to be walked.
    fn submit_with(&mut self, number: u32, then: &mut dyn FnMut(&Walkable<'_>)) {
        let db = self.tables.db;
        let max_alive = self.max_alive;
        let Some((part, entry)) = self.part(number) else { return };
        let nth = i32::try_from(entry.nth).unwrap_or(i32::MAX);
        let choice = SubmitChoice { submits: nth..=nth, compositors: true, ..SubmitChoice::default() };
        let mut opener = SubmitOpener { number, then, done: false };
        Player::new(choice, db, max_alive).play(part, &mut opener);
    }

    fn work_base(&self, number: u32) -> u32 {
        let at = self.work.binary_search_by_key(&number, |work| work.number);
        at.ok().and_then(|at| self.work.get(at)).map_or(0, |work| work.first)
    }

    /// The packet of a submit that has an address.
    fn find_in(&mut self, number: u32, iova: u64) -> Option<usize> {
        let mut found = None;
        self.submit_with(number, &mut |stream| {
            found = address_in_stream(stream, iova);
        });
        found
    }

    /// The submit that a view without a stream is about.
    fn open_submit(&self, stream: Option<u32>) -> Option<u32> {
        stream.or_else(|| self.submits.first().map(|entry| entry.number))
    }
}

/// Opens one submit.
struct SubmitOpener<'t> {
    number: u32,
    then: &'t mut dyn FnMut(&Walkable<'_>),
    done: bool,
}

impl<'d> Consumer<'d> for SubmitOpener<'_> {
    fn submit(&mut self, submission: Submission<'_, 'd>) {
        self.done = true;
        with_submission(submission, self.number, |stream| (self.then)(stream));
    }

    fn done(&self) -> bool {
        self.done
    }
}

/// The buffers of a part of a capture, with the place of their contents in it.
fn listed_buffers(part: impl Read, head: u64, start: u64) -> Vec<BufferEntry> {
    let mut reader = RdReader::new(part).with_limit(INDEXED).counting_zeros();
    let mut buffers: BTreeMap<u64, BufferEntry> = BTreeMap::new();
    let mut named: Option<u64> = None;
    while let Some(section) = reader.next() {
        match (section.kind, section.range()) {
            (RdSectionKind::GpuAddr, Some(range)) => {
                named = Some(range.iova);
                let (iova, size) = (range.iova, range.size.into());
                let entry = BufferEntry { iova, size, name: String::new(), held: false, source: 0 };
                buffers.entry(iova).or_insert(entry).size = size;
            }
            (RdSectionKind::BufferContents, _) => {
                if let Some(entry) = named.take().and_then(|iova| buffers.get_mut(&iova)) {
                    entry.held = true;
                    entry.source = section.span.start.saturating_sub(head).saturating_add(start);
                }
            }
            _ => {}
        }
    }
    buffers.into_values().collect()
}

impl Document for CaptureDocument<'_> {
    fn title(&self) -> String {
        let submits = counted(self.submits.len() as u64, "submit", "submits");
        let more = if self.complete { "" } else { " so far" };
        format!("{} — a capture, {submits}{more}", self.name)
    }

    fn has_verdict(&self) -> bool {
        false
    }

    fn extend(&mut self, more: CaptureIndex) {
        self.take_in(more);
    }

    fn verdict(&mut self) -> Vec<Row> {
        let mut rows =
            vec![Row::of("a capture of what was submitted: it does not say what hung", RowLook::Dim)];
        rows.push(Row::plain(String::new()));
        rows.extend(self.summary());
        rows
    }

    fn summary(&mut self) -> Vec<Row> {
        let mut rows = match (&self.summary, self.complete) {
            (Some(text), _) => Row::lines(text),
            (None, _) => vec![Row::of("the capture is being read …", RowLook::Dim)],
        };
        if let Some(why) = &self.failed {
            rows.push(Row::of(why.clone(), RowLook::Loss));
        }
        rows
    }

    fn streams(&mut self) -> Vec<StreamEntry> {
        let title = |entry: &SubmitEntry| {
            let process = match entry.process.is_empty() {
                true => String::new(),
                false => format!(" of {}", Row::plain(entry.process.clone()).text),
            };
            let dwords = counted(entry.dwords.into(), "dword", "dwords");
            format!("submit {}{process} at {:#x}, {dwords}", entry.number, entry.iova)
        };
        let entry =
            |entry: &SubmitEntry| StreamEntry { number: entry.number, title: title(entry), stopped: false };
        self.submits.iter().map(entry).collect()
    }

    fn page(&mut self, stream: u32, first: usize) -> Option<StreamPage> {
        let (mut page, base) = (None, self.work_base(stream));
        self.submit_with(stream, &mut |stream| page = Some(StreamPage::of(stream, first, base)));
        page
    }

    fn packet(&self, page: &StreamPage, node: &PageNode) -> ExcerptPacket {
        page.packet(node, &self.tables)
    }

    fn stop(&mut self) -> Option<(u32, (usize, usize))> {
        None
    }

    fn find(&mut self, iova: u64, stream: Option<u32>) -> Option<(u32, usize)> {
        let first = self.open_submit(stream)?;
        let others = self.submits.iter().map(|entry| entry.number).filter(|&number| number != first);
        let order: Vec<u32> = std::iter::once(first).chain(others.take(SEARCHED)).collect();
        order.into_iter().find_map(|number| Some((number, self.find_in(number, iova)?)))
    }

    fn find_work(&mut self, number: u32) -> Option<(u32, usize)> {
        // Numbers start again where a capture names another GPU.
        let has = |work: &&SubmitWork| number.checked_sub(work.first).is_some_and(|nth| nth < work.count);
        let work = *self.work.iter().find(has)?;
        let mut found = None;
        self.submit_with(work.number, &mut |stream| {
            found = work_in_stream(stream, number.saturating_sub(work.first));
        });
        Some((work.number, found?))
    }

    fn registers(&mut self, at: Option<(u32, usize)>) -> Vec<RegisterGroup> {
        let Some((number, packet)) = at else { return Vec::new() };
        let mut tables = PageTables::new(self.tables.db);
        let mut groups = Vec::new();
        self.submit_with(number, &mut |stream| groups.push(before(stream, packet, &mut tables)));
        groups
    }

    fn buffers(&mut self, stream: Option<u32>) -> Vec<BufferEntry> {
        let Some(number) = self.open_submit(stream) else { return Vec::new() };
        let Some((part, entry)) = self.part(number) else { return Vec::new() };
        let head = entry.identity.iter().map(|(_, payload)| 8 + payload.len() as u64).sum();
        listed_buffers(part, head, entry.range.0)
    }

    fn contents(&mut self, buffer: &BufferEntry, _: Option<u32>) -> Option<BufferContents> {
        if !buffer.held {
            return None;
        }
        self.capture.seek(SeekFrom::Start(buffer.source)).ok()?;
        let mut reader = RdReader::new(&mut self.capture).with_limit(self.max_alive).counting_zeros();
        let section: RdSection<'_> = reader.next()?;
        let mut contents = BufferContents::of_bytes(section.payload, buffer.iova);
        contents.size = section.length().min(buffer.size);
        Some(contents)
    }

    fn shaders(&mut self, stream: Option<u32>) -> Vec<ShaderEntry> {
        let Some(number) = self.open_submit(stream) else { return Vec::new() };
        let (mut listed, mut of) = (Vec::new(), None);
        self.submit_with(number, &mut |stream| {
            let PacketDecoder::Adreno(gpu) = stream.decoder else { return };
            let mut sink = ShaderSink { generation: gpu.generation(), shaders: BTreeMap::new() };
            of = Some(gpu.generation());
            shaders::of_adreno(stream, gpu.generation(), &mut sink);
            listed = shaders::loaded(sink, &|iova, most| words_at(stream.memory, iova, most));
        });
        self.generation = of.or(self.generation);
        self.shaders = listed;
        self.shaders.iter().map(|shader| shader.entry.clone()).collect()
    }

    fn code(&mut self, shader: usize) -> Vec<Row> {
        self.shaders.get(shader).map(ListedShader::rows).unwrap_or_default()
    }

    fn code_set(&self) -> Option<CodeSet> {
        self.generation.filter(|of| of.number() >= 3).map(CodeSet::Ir3)
    }
}
