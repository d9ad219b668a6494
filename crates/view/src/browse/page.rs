//! A part of a stream as nodes: packets, and the streams that they call. Bounded, whatever the stream: what does not fit is on the
//! next page. Never: text of a packet before it is asked for.

use crate::around::unit;
use crate::plural::counted;
use crate::streams::{PacketDecoder, RegisterSet, Walkable, typed};
use std::collections::HashMap;
use unwedge_base::{Dwords, Generation};
use unwedge_hw::amd::Gfx;
use unwedge_hw::{Db, Variants};
use unwedge_postmortem::{ExcerptPacket, PacketValue};
use unwedge_stream::amd::Engine;
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::registers::IntelNames;
use unwedge_stream::{
    Exec, Flow, PacketNames, PacketStep, Registers, Step, StepSink, StreamKind, StreamPos, StreamStep,
    TroubleKind, WorkKind,
};

/// Nodes of a page.
const NODES: usize = 1 << 16;
/// Dwords of packets that a page keeps.
const WORDS: usize = 1 << 20;
/// Register writes that a page keeps.
const WRITES: usize = 1 << 19;
/// Dwords of one packet that are kept.
const WORDS_OF_PACKET: usize = 1 << 10;
/// Dwords shown of a payload whose layout is not known.
const UNNAMED: usize = 8;
/// Dwords shown after those that have names: what a packet writes to memory.
const AFTER_NAMED: usize = 4;
/// Register writes of one packet that are kept.
const WRITES_OF_PACKET: usize = 256;

/// What names the packets of a page, without what it is looked up in.
#[derive(Clone, Copy, Debug)]
pub(super) enum PageDecoder {
    Adreno(Generation),
    Amd(Gfx, Engine),
    Intel(Decoder),
}

/// The tables that packets and registers are named from.
pub(super) struct PageTables<'d> {
    pub(super) db: &'d Db,
    pub(super) amd: Db,
    pub(super) intel: Option<IntelNames>,
}

impl<'d> PageTables<'d> {
    pub(super) fn new(db: &'d Db) -> PageTables<'d> {
        PageTables { db, amd: Db::amd(), intel: None }
    }

    /// Has the names of Intel's registers ready.
    pub(super) fn prepare(&mut self, decoder: PageDecoder) {
        if let PageDecoder::Intel(decoder) = decoder
            && self.intel.is_none()
        {
            self.intel = Some(IntelNames::new(decoder.gpu));
        }
    }

    fn decoder(&self, of: PageDecoder) -> PacketDecoder<'_> {
        match of {
            PageDecoder::Adreno(generation) => PacketDecoder::Adreno(self.db.gpu(generation)),
            PageDecoder::Amd(gfx, engine) => PacketDecoder::Amd(self.amd.amd_gpu(gfx), engine),
            PageDecoder::Intel(decoder) => PacketDecoder::Intel(decoder),
        }
    }

    pub(super) fn registers(&self, of: PageDecoder) -> Option<RegisterSet<'_>> {
        match of {
            PageDecoder::Adreno(generation) => Some(RegisterSet::Adreno(self.db.gpu(generation))),
            PageDecoder::Amd(gfx, _) => Some(RegisterSet::Amd(self.amd.amd_gpu(gfx))),
            PageDecoder::Intel(_) => self.intel.as_ref().map(RegisterSet::Intel),
        }
    }
}

pub(super) fn stored_decoder(decoder: PacketDecoder<'_>) -> PageDecoder {
    match decoder {
        PacketDecoder::Adreno(gpu) => PageDecoder::Adreno(gpu.generation()),
        PacketDecoder::Amd(amd, engine) => PageDecoder::Amd(amd.gfx(), engine),
        PacketDecoder::Intel(decoder) => PageDecoder::Intel(decoder),
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A packet, or dwords that are not a valid one.
    Packet,
    /// A nested stream, with the nodes up to [`PageNode::end`] inside.
    Stream,
}

/// A packet, or a nested stream.
#[derive(Clone, Debug)]
pub struct PageNode {
    /// What it is.
    pub kind: NodeKind,
    /// Streams that it is in, within the stream of the page.
    pub depth: u8,
    /// The number of the packet; of a stream that of the first packet in it.
    pub packet: usize,
    /// Its address.
    pub iova: Option<u64>,
    /// Nodes before this one are inside it: the next node that is not.
    pub end: u32,
    /// Header and payload, in dwords.
    pub dwords: u64,
    /// The work that it starts: the kind, and the number.
    pub work: Option<(WorkKind, u32)>,
    /// The stream that it calls and that the file does not hold.
    pub missing: Option<u64>,
    level: u8,
    index: u64,
    exec: Exec,
    /// Of a packet its name, of a stream why it is walked.
    name: Option<u32>,
    /// Where its dwords are, and how many are kept; none of what is not a valid packet.
    words: (u32, u32),
    writes: (u32, u32),
    more: u32,
    calls: Option<u64>,
    word: Option<u32>,
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub struct StreamPage {
    /// The stream.
    pub stream: u32,
    /// The number of its first packet.
    pub first: usize,
    /// Its nodes, in the order of the walk.
    pub nodes: Vec<PageNode>,
    /// The number of the first packet that is not on it, where there are more.
    pub next: Option<usize>,
    decoder: PageDecoder,
    names: Vec<String>,
    words: Vec<u32>,
    writes: Vec<(u32, u32)>,
}

impl StreamPage {
    /// Walks a stream, from the packet of a number on.
    pub(super) fn of(stream: &Walkable<'_>, first: usize, work_base: u32) -> StreamPage {
        let first = first.max(1);
        let mut builder = PageBuilder {
            decoder: stream.decoder,
            base: stream.base,
            work_base,
            page: StreamPage {
                stream: stream.number,
                first,
                nodes: Vec::new(),
                next: None,
                decoder: stored_decoder(stream.decoder),
                names: Vec::new(),
                words: Vec::new(),
                writes: Vec::new(),
            },
            interned: HashMap::new(),
            packets: 0,
            open: Vec::new(),
        };
        stream.walk(&mut builder);
        builder.finish()
    }

    pub(super) fn decoder(&self) -> PageDecoder {
        self.decoder
    }

    fn name(&self, node: &PageNode) -> Option<&str> {
        self.names.get(node.name? as usize).map(String::as_str)
    }

    /// The line of a nested stream.
    pub fn stream_line(&self, node: &PageNode) -> String {
        let kind = self.name(node).unwrap_or("IB");
        let at = node.iova.map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
        let size = match node.dwords {
            0 => String::new(),
            dwords => format!(", {}", counted(dwords, "dword", "dwords")),
        };
        let skipped = if node.exec == Exec::NotTaken { " (skipped by its predicate)" } else { "" };
        format!("{kind}{at}{size}{skipped}")
    }

    /// What a packet is and does, with all of its fields.
    pub(super) fn packet(&self, node: &PageNode, tables: &PageTables<'_>) -> ExcerptPacket {
        let (from, count) = (node.words.0 as usize, node.words.1 as usize);
        let words = self.words.get(from..from.saturating_add(count)).unwrap_or_default();
        let header = words.first().copied();
        let step = header.map(|header| PacketStep {
            place: StreamPos { level: node.level, iova: node.iova, index: node.index as usize },
            header,
            opcode: None,
            payload: Dwords::new(words.get(1..).unwrap_or_default(), words.len().saturating_sub(1)),
            exec: node.exec,
            names: &NoNames,
        });
        let mut fields = step.map(|step| tables.decoder(self.decoder).parts(&step)).unwrap_or_default();
        if header != Some(0) && node.writes.1 == 0 {
            let unnamed = self.unnamed(&fields, words.get(1..).unwrap_or_default());
            fields.extend(unnamed);
        }
        let (from, count) = (node.writes.0 as usize, node.writes.1 as usize);
        let writes = self.writes.get(from..from.saturating_add(count)).unwrap_or_default();
        let registers = tables.registers(self.decoder);
        let level = match node.level {
            0 => "ring".to_owned(),
            level => format!("level {level}"),
        };
        ExcerptPacket {
            level,
            iova: node.iova,
            index: node.index,
            mark: None,
            header,
            name: self.name(node).map(str::to_owned),
            dwords: node.dwords,
            executed: match node.exec {
                Exec::Always | Exec::Taken => Some(true),
                Exec::NotTaken => Some(false),
                Exec::Unknown => None,
            },
            fields,
            registers: writes.iter().filter_map(|write| written(registers?, *write)).collect(),
            more: node.more as usize,
            work: node.work.map(|(kind, number)| (kind.name(), number)),
            missing: node.missing,
            calls: node.calls,
            word: node.word,
        }
    }

    /// The first dwords of a payload that the tables do not name: of one without a layout, and after the last that has a name.
    fn unnamed(&self, fields: &[PacketValue], payload: &[u32]) -> Vec<PacketValue> {
        let last = fields.iter().filter_map(|field| Some((field.dword?, field.value))).max();
        let (first, most) = match (last, self.decoder) {
            (None, _) => (0, UNNAMED),
            // Dword 0 is the header, and a named value may have 64 bits.
            (Some((dword, value)), PageDecoder::Adreno(_)) => {
                (dword.saturating_add(u64::from(value > u64::from(u32::MAX))), AFTER_NAMED)
            }
            (Some(_), _) => return Vec::new(),
        };
        let words = payload.iter().skip(usize::try_from(first).unwrap_or(usize::MAX)).take(most);
        let value = |(i, word): (u64, &u32)| PacketValue {
            dword: Some(first.saturating_add(i).saturating_add(1)),
            value: (*word).into(),
            text: format!("{word:#x}"),
            ..PacketValue::default()
        };
        (0..).zip(words).map(value).collect()
    }

    /// The node of a packet; where it is not on the page, of the last packet before it.
    pub fn node_of(&self, packet: usize) -> Option<usize> {
        let is_later = |node: &PageNode| node.packet > packet;
        let before = self.nodes.partition_point(|node| !is_later(node));
        (0..before).rev().find(|&at| self.nodes[at].kind == NodeKind::Packet)
    }
}

/// A register that a packet writes; `None` for dwords of Intel's commands, which are shown by their fields.
fn written(registers: RegisterSet<'_>, (reg, value): (u32, u32)) -> Option<PacketValue> {
    let offset = registers.offset(reg)?;
    let value = u64::from(value);
    let (text, fields) = match registers.ty(reg) {
        Some(ty) => typed(ty, value, &mut Variants::default()),
        None => (format!("{value:#x}"), Vec::new()),
    };
    Some(PacketValue { name: registers.name(reg), offset: Some(offset), dword: None, value, text, fields })
}

/// Names are kept by the page.
struct NoNames;

impl PacketNames for NoNames {
    fn name_of(&self, _: &PacketStep<'_>) -> Option<&str> {
        None
    }
}

/// Makes nodes of the steps of a walk.
struct PageBuilder<'m> {
    decoder: PacketDecoder<'m>,
    base: u8,
    work_base: u32,
    page: StreamPage,
    interned: HashMap<String, u32>,
    packets: usize,
    /// The nested streams that the walk is in, with their nodes where these are on the page.
    open: Vec<(PageNode, Option<usize>)>,
}

impl PageBuilder<'_> {
    fn finish(mut self) -> StreamPage {
        let end = self.page.nodes.len() as u32;
        for (_, at) in std::mem::take(&mut self.open) {
            self.close(at, end);
        }
        self.page
    }

    fn close(&mut self, at: Option<usize>, end: u32) {
        if let Some(node) = at.and_then(|at| self.page.nodes.get_mut(at)) {
            node.end = end;
        }
    }

    fn intern(&mut self, name: String) -> u32 {
        if let Some(&known) = self.interned.get(&name) {
            return known;
        }
        let number = self.page.names.len() as u32;
        self.page.names.push(name.clone());
        self.interned.insert(name, number);
        number
    }

    /// The packet is on the page.
    fn is_on_page(&self) -> bool {
        self.packets >= self.page.first && self.page.next.is_none()
    }

    fn is_full(&self) -> bool {
        self.page.nodes.len() >= NODES || self.page.words.len() >= WORDS || self.page.writes.len() >= WRITES
    }

    fn push(&mut self, mut node: PageNode) -> usize {
        let at = self.page.nodes.len();
        node.end = at as u32 + 1;
        self.page.nodes.push(node);
        at
    }

    /// Streams that the page starts inside of have a node, too.
    fn push_open(&mut self) {
        for i in 0..self.open.len() {
            let Some((node, None)) = self.open.get(i) else { continue };
            let node = node.clone();
            let at = self.push(node);
            if let Some(open) = self.open.get_mut(i) {
                open.1 = Some(at);
            }
        }
    }

    fn start(&mut self, place: StreamPos, dwords: usize) {
        self.packets = self.packets.saturating_add(1);
        if !self.is_on_page() {
            return;
        }
        if self.is_full() {
            self.page.next = Some(self.packets);
            return;
        }
        self.push_open();
        let (words, writes) = (self.page.words.len() as u32, self.page.writes.len() as u32);
        self.push(PageNode {
            kind: NodeKind::Packet,
            depth: u8::try_from(self.open.len()).unwrap_or(u8::MAX),
            packet: self.packets,
            iova: place.iova,
            end: 0,
            dwords: dwords as u64,
            work: None,
            missing: None,
            level: place.level.saturating_add(self.base),
            index: place.index as u64,
            exec: Exec::Always,
            name: None,
            words: (words, 0),
            writes: (writes, 0),
            more: 0,
            calls: None,
            word: None,
        });
    }

    fn packet(&mut self, packet: &PacketStep<'_>) {
        if !self.is_on_page() {
            return;
        }
        let name = self.decoder.name(packet).map(|name| self.intern(name));
        let kept = packet.payload.iter().take(WORDS_OF_PACKET);
        let before = self.page.words.len();
        self.page.words.push(packet.header);
        self.page.words.extend(kept);
        let count = (self.page.words.len() - before) as u32;
        if let Some(node) = self.page.nodes.last_mut() {
            node.name = name;
            node.exec = packet.exec;
            node.words.1 = count;
        }
    }

    fn enter(&mut self, stream: &StreamStep<'_>) -> Flow {
        if self.page.next.is_some() {
            return Flow::Skip;
        }
        let called = match self.decoder {
            PacketDecoder::Adreno(_) | PacketDecoder::Amd(..) => "IB",
            PacketDecoder::Intel(_) => "batch",
        };
        let level = stream.level.saturating_add(self.base);
        let name = match stream.kind {
            StreamKind::Call => format!("{called}{level}"),
            StreamKind::Chain => format!("chained {called}{level}"),
            StreamKind::State => "state".to_owned(),
            StreamKind::Repeat => format!("repeated {called}"),
            StreamKind::Beside => format!("{called} beside"),
        };
        let name = Some(self.intern(name));
        if self.is_on_page()
            && let Some(node) = self.page.nodes.last_mut()
            && node.kind == NodeKind::Packet
            && matches!(stream.kind, StreamKind::Call | StreamKind::Chain)
        {
            node.calls = node.calls.or(stream.iova);
        }
        let node = PageNode {
            kind: NodeKind::Stream,
            depth: u8::try_from(self.open.len()).unwrap_or(u8::MAX),
            packet: self.packets.saturating_add(1),
            iova: stream.iova,
            end: 0,
            dwords: stream.claimed.unwrap_or(0),
            work: None,
            missing: None,
            level,
            index: 0,
            exec: stream.exec,
            name,
            words: (0, 0),
            writes: (0, 0),
            more: 0,
            calls: None,
            word: None,
        };
        let at = match self.is_on_page() && !self.is_full() {
            true => {
                self.push_open();
                Some(self.push(node.clone()))
            }
            false => None,
        };
        self.open.push((node, at));
        Flow::Continue
    }

    /// The packet that the steps are of, where it is on the page.
    fn current(&mut self) -> Option<&mut PageNode> {
        let packets = self.packets;
        if !self.is_on_page() {
            return None;
        }
        let mut nodes = self.page.nodes.iter_mut().rev();
        nodes.find(|node| node.kind == NodeKind::Packet).filter(|node| node.packet == packets)
    }

    fn write(&mut self, reg: u32, value: u32) {
        let at = self.page.writes.len() as u32;
        let Some(node) = self.current() else { return };
        if node.writes.1 == 0 {
            node.writes.0 = at;
        }
        // The writes of a packet are one range: those after state that it loads are only counted.
        if node.writes.1 as usize >= WRITES_OF_PACKET || node.writes.0 + node.writes.1 != at {
            node.more = node.more.saturating_add(1);
            return;
        }
        node.writes.1 += 1;
        self.page.writes.push((reg, value));
    }
}

impl StepSink for PageBuilder<'_> {
    fn step(&mut self, _: &Registers, step: &Step<'_>) -> Flow {
        if let Some((place, dwords)) = unit(step) {
            self.start(place, dwords);
        }
        match step {
            Step::Packet(packet) => self.packet(packet),
            Step::Enter(stream) => return self.enter(stream),
            Step::Leave(_) => {
                let end = self.page.nodes.len() as u32;
                if let Some((_, at)) = self.open.pop() {
                    self.close(at, end);
                }
            }
            Step::Missing(stream) => {
                if let Some(node) = self.current() {
                    node.missing = stream.iova;
                }
            }
            Step::Write(write) => self.write(write.reg, write.value),
            Step::Work(work) => {
                let number = work.number.saturating_add(self.work_base);
                if let Some(node) = self.current() {
                    node.work = Some((work.kind, number));
                }
            }
            Step::Trouble(trouble) => {
                if let TroubleKind::BadHeader { raw, .. } = trouble.kind
                    && let Some(node) = self.current()
                {
                    node.word = Some(raw);
                }
            }
            Step::Wait(_) => {}
        }
        Flow::Continue
    }
}
