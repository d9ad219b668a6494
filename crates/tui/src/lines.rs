//! What a pane shows: lines that are made when they are on the screen.
//!
//! Every view is a [`Lines`]: fixed rows, the packets of a stream, registers, the contents of a buffer. Never: a cursor; that is the
//! pane's.

use std::collections::{BTreeMap, BTreeSet};
use unwedge_view::browse::{
    BrowseTarget, BufferContents, BufferEntry, BufferFormat, Document, NodeKind, PageNode, RegisterGroup,
    Row, RowLook, ShaderEntry, StreamEntry, StreamPage, packet_line, packet_rows,
};

/// What Enter does on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Goes to a place.
    Go(BrowseTarget),
    /// Opens a stream.
    OpenStream(u32),
    /// Opens the page of a stream that begins with a packet.
    OpenPage(u32, usize),
    /// Opens a buffer, by its number in the list.
    OpenBuffer(usize),
    /// Opens a shader, by its number in the list.
    OpenShader(usize),
    /// Unfolds or folds.
    Toggle,
}

/// Lines.
pub(crate) enum Lines {
    /// Fixed ones.
    Rows(Vec<Row>),
    /// The streams of the file.
    Streams(Vec<StreamEntry>),
    /// The packets of a stream.
    Packets(Box<PacketLines>),
    /// Registers, by groups.
    Registers(Box<RegisterLines>),
    /// The buffers of the file.
    Buffers(Vec<BufferEntry>),
    /// The contents of a buffer.
    Contents(Box<ContentLines>),
    /// The shaders of the file.
    Shaders(Vec<ShaderEntry>),
}

/// The packets of a stream, folded as the user has them.
pub(crate) struct PacketLines {
    pub(crate) title: String,
    pub(crate) page: StreamPage,
    /// The packets of the stop, where it is in this stream.
    pub(crate) stop: Option<(usize, usize)>,
    /// Streams that are folded, and packets whose fields are shown, by their nodes.
    folded: BTreeSet<u32>,
    fields: BTreeMap<u32, Vec<Row>>,
    shown: Vec<Shown>,
}

/// A line of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Before,
    Node(u32),
    Field(u32, u32),
    After,
}

impl PacketLines {
    pub(crate) fn new(title: String, page: StreamPage, stop: Option<(usize, usize)>) -> PacketLines {
        // A stream at whose packets nobody has looked is one line.
        let holds = |node: &PageNode, packet: usize| {
            let last =
                page.nodes.get((node.end as usize).saturating_sub(1)).map_or(node.packet, |last| last.packet);
            (node.packet..=last).contains(&packet)
        };
        let folds = |(_, node): &(usize, &PageNode)| {
            node.kind == NodeKind::Stream
                && node.depth > 0
                && !stop.is_some_and(|(first, _)| holds(node, first))
        };
        let folded = page.nodes.iter().enumerate().filter(folds).map(|(at, _)| at as u32).collect();
        let mut lines = PacketLines { title, page, stop, folded, fields: BTreeMap::new(), shown: Vec::new() };
        lines.arrange();
        lines
    }

    /// Lists the lines that are not folded away.
    fn arrange(&mut self) {
        self.shown.clear();
        if self.page.first > 1 {
            self.shown.push(Shown::Before);
        }
        let mut at = 0;
        while let Some(node) = self.page.nodes.get(at as usize) {
            self.shown.push(Shown::Node(at));
            let fields = self.fields.get(&at).map_or(0, Vec::len) as u32;
            self.shown.extend((0..fields).map(|field| Shown::Field(at, field)));
            at = if self.folded.contains(&at) { node.end.max(at + 1) } else { at + 1 };
        }
        if self.page.next.is_some() {
            self.shown.push(Shown::After);
        }
    }

    /// The packet of a line.
    pub(crate) fn packet(&self, line: usize) -> Option<usize> {
        match self.shown.get(line)? {
            Shown::Node(at) | Shown::Field(at, _) => {
                self.page.nodes.get(*at as usize).map(|node| node.packet)
            }
            Shown::Before | Shown::After => None,
        }
    }

    /// The line of a packet, after unfolding what it is in.
    pub(crate) fn reveal(&mut self, packet: usize) -> Option<usize> {
        let at = self.page.node_of(packet)? as u32;
        self.reveal_node(at)
    }

    fn reveal_node(&mut self, at: u32) -> Option<usize> {
        let around = |outer: &u32| {
            *outer < at && self.page.nodes.get(*outer as usize).is_some_and(|node| node.end > at)
        };
        let hiding: Vec<u32> = self.folded.iter().copied().filter(around).collect();
        for outer in &hiding {
            self.folded.remove(outer);
        }
        if !hiding.is_empty() {
            self.arrange();
        }
        self.shown.iter().position(|shown| *shown == Shown::Node(at))
    }

    /// Unfolds or folds a line. `open`: only the one of the two.
    fn toggle(&mut self, line: usize, open: Option<bool>, document: &dyn Document) -> bool {
        let Some(Shown::Node(at) | Shown::Field(at, _)) = self.shown.get(line).copied() else { return false };
        let Some(node) = self.page.nodes.get(at as usize) else { return false };
        let is_open = match node.kind {
            NodeKind::Stream => !self.folded.contains(&at),
            NodeKind::Packet => self.fields.contains_key(&at),
        };
        if open == Some(is_open) {
            return false;
        }
        match (node.kind, is_open) {
            (NodeKind::Stream, true) => drop(self.folded.insert(at)),
            (NodeKind::Stream, false) => drop(self.folded.remove(&at)),
            (NodeKind::Packet, true) => drop(self.fields.remove(&at)),
            (NodeKind::Packet, false) => {
                let rows = packet_rows(&document.packet(&self.page, node));
                if rows.is_empty() {
                    return false;
                }
                self.fields.insert(at, rows);
            }
        }
        self.arrange();
        true
    }

    /// Folds or unfolds all nested streams.
    fn fold_all(&mut self, fold: bool) {
        self.folded.clear();
        if fold {
            let streams =
                self.page.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Stream);
            self.folded.extend(streams.map(|(at, _)| at as u32));
        }
        self.arrange();
    }

    fn row(&self, line: usize, document: &dyn Document) -> Row {
        match self.shown.get(line) {
            None => Row::default(),
            Some(Shown::Before) => Row::of("… packets before: Enter shows them", RowLook::Dim),
            Some(Shown::After) => Row::of("… packets after: Enter shows them", RowLook::Dim),
            Some(Shown::Field(at, field)) => {
                let depth = self.page.nodes.get(*at as usize).map_or(0, |node| node.depth);
                let row = self.fields.get(at).and_then(|rows| rows.get(*field as usize));
                let mut row = row.cloned().unwrap_or_default();
                row.text.insert_str(0, &" ".repeat(20 + 2 * usize::from(depth.min(16))));
                row
            }
            Some(Shown::Node(at)) => {
                let Some(node) = self.page.nodes.get(*at as usize) else { return Row::default() };
                self.node(*at, node, document)
            }
        }
    }

    fn node(&self, at: u32, node: &PageNode, document: &dyn Document) -> Row {
        let last = match node.kind {
            NodeKind::Packet => node.packet,
            NodeKind::Stream => {
                let inside = self.page.nodes.get((node.end as usize).saturating_sub(1));
                inside.map_or(node.packet, |last| last.packet)
            }
        };
        let (mark, look) = match self.stop {
            Some((first, end)) if node.packet <= end && first <= last => {
                (if node.kind == NodeKind::Packet { '>' } else { ' ' }, RowLook::Stop)
            }
            Some((_, end)) if node.packet > end => (' ', RowLook::Dim),
            _ => (' ', RowLook::Plain),
        };
        let indent = "  ".repeat(usize::from(node.depth.min(16)));
        match node.kind {
            NodeKind::Stream => {
                let fold = if self.folded.contains(&at) { '+' } else { '-' };
                let look = if look == RowLook::Plain { RowLook::Heading } else { look };
                Row::of(format!("{mark}{:15} {indent}{fold} {}", "", self.page.stream_line(node)), look)
            }
            NodeKind::Packet => {
                let address = node.iova.map(|iova| format!("{iova:#014x}")).unwrap_or_default();
                let packet = document.packet(&self.page, node);
                let look = match (look, packet.word.is_some()) {
                    (RowLook::Plain, true) => RowLook::Loss,
                    (look, _) => look,
                };
                Row::of(format!("{mark}{address:15} {indent}  {}", packet_line(&packet)), look)
            }
        }
    }

    /// What is searched of a node: all of it, not what fits on a line.
    fn node_text(&self, at: usize, document: &dyn Document) -> String {
        let Some(node) = self.page.nodes.get(at) else { return String::new() };
        match node.kind {
            NodeKind::Stream => self.page.stream_line(node),
            NodeKind::Packet => {
                let packet = document.packet(&self.page, node);
                let mut text = packet_line(&packet);
                for value in packet.fields.iter().chain(&packet.registers) {
                    text.push(' ');
                    text.push_str(&value.name);
                    text.push(' ');
                    text.push_str(&value.text);
                }
                if let Some(iova) = node.iova {
                    text.push_str(&format!(" {iova:#x}"));
                }
                text
            }
        }
    }

    /// The line of the next node that matches, unfolded; from a line on, in a direction.
    fn search(&mut self, search: &Search<'_>, document: &dyn Document) -> Option<usize> {
        let count = self.page.nodes.len();
        let here = match self.shown.get(search.from) {
            Some(Shown::Node(at) | Shown::Field(at, _)) => *at as usize,
            Some(Shown::Before) => 0,
            Some(Shown::After) | None => count,
        };
        let found = match search.forward {
            true => (here + 1..count).find(|&at| search.matches(&self.node_text(at, document))),
            false => (0..here.min(count)).rev().find(|&at| search.matches(&self.node_text(at, document))),
        };
        self.reveal_node(found? as u32)
    }
}

/// Registers, as far as the filter leaves them.
pub(crate) struct RegisterLines {
    groups: Vec<RegisterGroup>,
    /// Group and register; `None` for the heading.
    shown: Vec<(u32, Option<u32>)>,
    pub(crate) filter: String,
}

impl RegisterLines {
    pub(crate) fn new(groups: Vec<RegisterGroup>) -> RegisterLines {
        let mut lines = RegisterLines { groups, shown: Vec::new(), filter: String::new() };
        lines.arrange();
        lines
    }

    pub(crate) fn set_filter(&mut self, filter: &str) {
        self.filter = filter.to_owned();
        self.arrange();
    }

    fn arrange(&mut self) {
        self.shown.clear();
        let filter = self.filter.to_lowercase();
        for (number, group) in (0..).zip(&self.groups) {
            let heading = self.shown.len();
            self.shown.push((number, None));
            for (at, row) in (0..).zip(&group.rows) {
                if filter.is_empty() || row.name.to_lowercase().contains(&filter) {
                    self.shown.push((number, Some(at)));
                }
            }
            if !filter.is_empty() && self.shown.len() == heading + 1 {
                self.shown.pop();
            }
        }
    }

    /// The line of a register of a name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let called = |name: &str, (group, row): &(u32, Option<u32>)| {
            let group = self.groups.get(*group as usize);
            let row = group.zip(*row).and_then(|(group, row)| group.rows.get(row as usize));
            row.is_some_and(|row| row.name.eq_ignore_ascii_case(name))
        };
        let exact = self.shown.iter().position(|shown| called(name, shown));
        // A block of a dump may have its name before that of its register.
        let bare = name.rsplit_once(['.', ' ']).map(|(_, bare)| bare);
        exact.or_else(|| bare.and_then(|bare| self.shown.iter().position(|shown| called(bare, shown))))
    }

    fn row(&self, line: usize) -> Row {
        let Some((number, at)) = self.shown.get(line) else { return Row::default() };
        let Some(group) = self.groups.get(*number as usize) else { return Row::default() };
        match at.and_then(|at| group.rows.get(at as usize)) {
            None => Row::of(format!("{} ({})", group.name, group.rows.len()), RowLook::Heading),
            Some(row) if row.value.is_empty() && row.meaning.is_empty() => {
                Row::plain(format!("  {}", row.name))
            }
            Some(row) => Row::plain(format!("  {:32} {:>10}  {}", row.name, row.value, row.meaning)),
        }
    }
}

/// The contents of a buffer.
pub(crate) struct ContentLines {
    pub(crate) title: String,
    pub(crate) contents: BufferContents,
    pub(crate) formats: Vec<BufferFormat>,
    pub(crate) format: usize,
    /// Lines of code, from a byte on.
    code: Vec<Row>,
    code_from: u64,
}

impl ContentLines {
    pub(crate) fn new(title: String, contents: BufferContents, formats: Vec<BufferFormat>) -> ContentLines {
        ContentLines { title, contents, formats, format: 0, code: Vec::new(), code_from: 0 }
    }

    pub(crate) fn format(&self) -> BufferFormat {
        self.formats.get(self.format).copied().unwrap_or(BufferFormat::Bytes)
    }

    /// The byte that a line begins with.
    pub(crate) fn offset(&self, line: usize) -> u64 {
        match BufferContents::line_bytes(&self.format()) {
            Some(bytes) => bytes.saturating_mul(line as u64),
            None => self.code_from,
        }
    }

    /// The line of a byte.
    pub(crate) fn line_of(&self, offset: u64) -> usize {
        let bytes = BufferContents::line_bytes(&self.format());
        bytes.map_or(0, |bytes| usize::try_from(offset / bytes).unwrap_or(usize::MAX))
    }

    /// Shows a format, from the byte of a line on. Returns the line.
    pub(crate) fn show(&mut self, format: usize, line: usize) -> usize {
        let offset = self.offset(line);
        self.format = format.min(self.formats.len().saturating_sub(1));
        if let BufferFormat::Code(set) = self.format() {
            self.code_from = offset / 4 * 4;
            self.code = self.contents.code(&set, self.code_from);
            return 0;
        }
        self.code = Vec::new();
        self.line_of(offset)
    }

    fn len(&self) -> usize {
        match self.format() {
            BufferFormat::Code(_) => self.code.len(),
            format => self.contents.lines(&format),
        }
    }

    fn row(&self, line: usize) -> Row {
        match self.format() {
            BufferFormat::Code(_) => self.code.get(line).cloned().unwrap_or_default(),
            format => Row::plain(self.contents.line(&format, line)),
        }
    }
}

/// What is searched for.
pub(crate) struct Search<'t> {
    pub(crate) text: &'t str,
    pub(crate) from: usize,
    pub(crate) forward: bool,
}

impl Search<'_> {
    /// As `less` and `tig` do: capital letters count where the text has some.
    fn matches(&self, line: &str) -> bool {
        match self.text.chars().any(char::is_uppercase) {
            true => line.contains(self.text),
            false => line.to_lowercase().contains(self.text),
        }
    }
}

impl Lines {
    pub(crate) fn len(&self) -> usize {
        match self {
            Lines::Rows(rows) => rows.len(),
            Lines::Streams(streams) => streams.len(),
            Lines::Packets(packets) => packets.shown.len(),
            Lines::Registers(registers) => registers.shown.len(),
            Lines::Buffers(buffers) => buffers.len(),
            Lines::Contents(contents) => contents.len(),
            Lines::Shaders(shaders) => shaders.len(),
        }
    }

    pub(crate) fn row(&self, line: usize, document: &dyn Document) -> Row {
        match self {
            Lines::Rows(rows) => rows.get(line).cloned().unwrap_or_default(),
            Lines::Streams(streams) => streams.get(line).map_or(Row::default(), |stream| {
                let (mark, look) = if stream.stopped { ('>', RowLook::Stop) } else { (' ', RowLook::Plain) };
                Row::of(format!("{mark}+ {}", stream.title), look)
            }),
            Lines::Packets(packets) => packets.row(line, document),
            Lines::Registers(registers) => registers.row(line),
            Lines::Buffers(buffers) => buffers.get(line).map_or(Row::default(), buffer_row),
            Lines::Contents(contents) => contents.row(line),
            Lines::Shaders(shaders) => shaders.get(line).map_or(Row::default(), |shader| {
                let (mark, look) = if shader.marked { ('>', RowLook::Stop) } else { (' ', RowLook::Plain) };
                Row::of(format!("{mark} {}", shader.title), look)
            }),
        }
    }

    /// What Enter does on a line.
    pub(crate) fn action(&self, line: usize, document: &dyn Document) -> Option<Action> {
        match self {
            Lines::Streams(streams) => streams.get(line).map(|stream| Action::OpenStream(stream.number)),
            Lines::Buffers(buffers) => buffers.get(line).map(|_| Action::OpenBuffer(line)),
            Lines::Shaders(shaders) => shaders.get(line).map(|_| Action::OpenShader(line)),
            Lines::Packets(packets) => match packets.shown.get(line)? {
                Shown::Before => {
                    let size = packets.page.nodes.len().max(1);
                    let first = packets.page.first.saturating_sub(size).max(1);
                    Some(Action::OpenPage(packets.page.stream, first))
                }
                Shown::After => packets.page.next.map(|next| Action::OpenPage(packets.page.stream, next)),
                Shown::Node(at) => {
                    let node = packets.page.nodes.get(*at as usize)?;
                    let calls = match node.kind {
                        NodeKind::Packet => document.packet(&packets.page, node).calls,
                        NodeKind::Stream => None,
                    };
                    Some(calls.map_or(Action::Toggle, |iova| Action::Go(BrowseTarget::Address(iova))))
                }
                Shown::Field(..) => packets.row(line, document).target.map(Action::Go),
            },
            Lines::Rows(_) | Lines::Registers(_) | Lines::Contents(_) => {
                self.row(line, document).target.map(Action::Go)
            }
        }
    }

    /// Unfolds or folds a line; `open`: only the one of the two. Returns whether something has changed.
    pub(crate) fn toggle(&mut self, line: usize, open: Option<bool>, document: &dyn Document) -> bool {
        match self {
            Lines::Packets(packets) => packets.toggle(line, open, document),
            _ => false,
        }
    }

    /// Folds or unfolds everything. The line that the packet of a line has then.
    pub(crate) fn fold_all(&mut self, line: usize, fold: bool) -> usize {
        let Lines::Packets(packets) = self else { return line };
        let packet = packets.packet(line);
        packets.fold_all(fold);
        let at = packet.and_then(|packet| {
            let shown = |shown: &Shown| match shown {
                Shown::Node(at) => packets.page.nodes.get(*at as usize).map(|node| node.packet),
                _ => None,
            };
            packets.shown.iter().rposition(|line| shown(line).is_some_and(|number| number <= packet))
        });
        at.unwrap_or(0)
    }

    /// The next line that matches.
    pub(crate) fn search(&mut self, search: &Search<'_>, document: &dyn Document) -> Option<usize> {
        if let Lines::Packets(packets) = self {
            return packets.search(search, document);
        }
        let hit = |line: &usize| search.matches(&self.row(*line, document).text);
        match search.forward {
            true => (search.from.saturating_add(1)..self.len()).find(hit),
            false => (0..search.from.min(self.len())).rev().find(hit),
        }
    }
}

fn buffer_row(buffer: &BufferEntry) -> Row {
    let held = if buffer.held { "" } else { "  (no contents)" };
    let end = buffer.iova.saturating_add(buffer.size);
    let look = if buffer.held { RowLook::Plain } else { RowLook::Dim };
    Row::of(format!("{:#014x} - {end:#014x} {:>10}  {}{held}", buffer.iova, buffer.size, buffer.name), look)
}
