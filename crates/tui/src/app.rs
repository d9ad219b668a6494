//! The state: views, each with the panes that are open in it. Never: keys, drawing.

use crate::event::{Event, Reaction};
use crate::help;
use crate::lines::{ContentLines, Lines, PacketLines, RegisterLines};
use crate::pane::Pane;
use crate::prompt::Prompt;
use std::collections::VecDeque;
use unwedge_view::browse::{BufferFormat, CaptureIndex, Document, Row, RowLook};

/// Places that Backspace goes back through.
const HISTORY: usize = 64;

/// A view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Findings with their evidence.
    Verdict,
    /// Packets.
    Streams,
    /// Registers.
    Registers,
    /// Buffers.
    Buffers,
    /// Shaders.
    Shaders,
    /// What the file holds and lacks.
    File,
    /// Differences to a second file.
    Differences,
}

impl View {
    /// Every view, in the order of the tabs.
    pub const ALL: [View; 7] = [
        View::Verdict,
        View::Streams,
        View::Registers,
        View::Buffers,
        View::Shaders,
        View::File,
        View::Differences,
    ];

    /// What its tab says.
    pub fn name(self) -> &'static str {
        match self {
            View::Verdict => "Verdict",
            View::Streams => "Streams",
            View::Registers => "Registers",
            View::Buffers => "Buffers",
            View::Shaders => "Shaders",
            View::File => "File",
            View::Differences => "Diff",
        }
    }
}

/// Makes the differences to a second file, when they are first looked at.
pub type Differences<'d> = Box<dyn FnMut() -> Vec<Row> + 'd>;

/// What a view shows: a list, and what was opened from it.
#[derive(Default)]
pub(crate) struct ViewState {
    pub(crate) panes: Vec<Pane>,
    /// What the list was made for: it is made again for another.
    pub(crate) made_for: Option<(u32, usize)>,
}

/// Where the user was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    pub(crate) view: View,
    pub(crate) level: usize,
    pub(crate) line: usize,
    /// In a stream, the packet.
    pub(crate) packet: Option<(u32, usize)>,
}

/// The browser of one file.
pub struct App<'d> {
    pub(crate) document: Box<dyn Document + 'd>,
    pub(crate) differences: Option<Differences<'d>>,
    pub(crate) view: View,
    pub(crate) views: [ViewState; View::ALL.len()],
    pub(crate) history: VecDeque<Visit>,
    pub(crate) help: Option<Pane>,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) message: Option<String>,
    /// What is searched for, and in which direction.
    pub(crate) search: Option<(String, bool)>,
    /// Lines of a pane.
    pub(crate) height: usize,
    pub(crate) size: (u16, u16),
}

impl<'d> App<'d> {
    /// Shows a file: its verdict, or its streams where it has none.
    pub fn new(document: Box<dyn Document + 'd>) -> App<'d> {
        let mut app = App {
            document,
            differences: None,
            view: View::Verdict,
            views: Default::default(),
            history: VecDeque::new(),
            help: None,
            prompt: None,
            message: None,
            search: None,
            height: 20,
            size: (80, 24),
        };
        if !app.document.has_verdict() && !app.document.streams().is_empty() {
            app.view = View::Streams;
        }
        app.prepare();
        app
    }

    /// With a second file to compare with.
    #[must_use]
    pub fn with_differences(mut self, differences: Differences<'d>) -> App<'d> {
        self.differences = Some(differences);
        self
    }

    /// Starts with a view.
    #[must_use]
    pub fn starting_with(mut self, view: View) -> App<'d> {
        self.show(view);
        self
    }

    /// The views of this file.
    pub(crate) fn tabs(&self) -> impl Iterator<Item = View> + use<> {
        let differences = self.differences.is_some();
        View::ALL.into_iter().filter(move |view| differences || *view != View::Differences)
    }

    /// Takes in more of the index of a capture.
    pub fn extend(&mut self, more: CaptureIndex) -> Reaction {
        self.document.extend(more);
        for view in [View::Verdict, View::Streams, View::File] {
            let lines = self.list(view);
            let height = self.height;
            if let (Some(lines), Some(pane)) = (lines, self.state(view).panes.first_mut()) {
                pane.lines = lines;
                pane.settle(height);
            }
        }
        Reaction::Draw
    }

    /// Reacts to what the user did.
    pub fn on(&mut self, event: Event) -> Reaction {
        match event {
            Event::Key(key) => self.key(key),
            Event::Click(column, row) => self.click(column, row),
            Event::Wheel(lines) => {
                let height = self.height;
                self.current().scroll(lines.into(), height);
                Reaction::Draw
            }
        }
    }

    /// The place of a view in `views`, which has the order of [`View::ALL`].
    pub(crate) fn place_of(view: View) -> usize {
        View::ALL.iter().position(|of| *of == view).unwrap_or(0)
    }

    pub(crate) fn state(&mut self, view: View) -> &mut ViewState {
        &mut self.views[App::place_of(view)]
    }

    pub(crate) fn state_of(&self, view: View) -> &ViewState {
        &self.views[App::place_of(view)]
    }

    /// The pane that keys are for.
    pub(crate) fn current(&mut self) -> &mut Pane {
        if let Some(help) = &mut self.help {
            return help;
        }
        let state = &mut self.views[App::place_of(self.view)];
        if state.panes.is_empty() {
            state.panes.push(Pane::new(Lines::Rows(Vec::new())));
        }
        let last = state.panes.len() - 1;
        &mut state.panes[last]
    }

    /// The packet that is selected: that of the stream that is open.
    pub(crate) fn selected(&self) -> Option<(u32, usize)> {
        let pane = self.state_of(View::Streams).panes.last()?;
        match &pane.lines {
            Lines::Packets(packets) => {
                Some((packets.page.stream, packets.packet(pane.cursor).unwrap_or(packets.page.first)))
            }
            Lines::Streams(streams) => streams.get(pane.cursor).map(|stream| (stream.number, 1)),
            _ => None,
        }
    }

    /// The list of a view that does not depend on what is selected.
    fn list(&mut self, view: View) -> Option<Lines> {
        match view {
            View::Verdict => Some(Lines::Rows(self.document.verdict())),
            View::File => Some(Lines::Rows(self.document.summary())),
            View::Streams => {
                let streams = self.document.streams();
                // Of a file without streams, or a capture that is still read, what is known of it.
                let rows = streams.is_empty() && !self.document.has_verdict();
                Some(if rows { Lines::Rows(self.document.summary()) } else { Lines::Streams(streams) })
            }
            View::Registers | View::Buffers | View::Shaders | View::Differences => None,
        }
    }

    /// Makes the list of the current view, unless it is there.
    pub(crate) fn prepare(&mut self) {
        let view = self.view;
        let selected = self.selected();
        let wanted = match view {
            View::Registers => selected,
            View::Buffers | View::Shaders => selected.map(|(stream, _)| (stream, 0)),
            _ => None,
        };
        let state = self.state_of(view);
        if !state.panes.is_empty() && state.made_for == wanted {
            return;
        }
        let stream = selected.map(|(stream, _)| stream);
        let lines = match view {
            View::Registers => {
                Lines::Registers(Box::new(RegisterLines::new(self.document.registers(selected))))
            }
            View::Buffers => Lines::Buffers(self.document.buffers(stream)),
            View::Shaders => Lines::Shaders(self.document.shaders(stream)),
            View::Differences => {
                Lines::Rows(self.differences.as_mut().map(|make| make()).unwrap_or_default())
            }
            View::Verdict | View::File | View::Streams => self.list(view).unwrap_or(Lines::Rows(Vec::new())),
        };
        let lines =
            if lines.len() == 0 { Lines::Rows(vec![Row::of(nothing(view), RowLook::Dim)]) } else { lines };
        let height = self.height;
        let state = self.state(view);
        let before = state.panes.first().map(|pane| (pane.cursor, pane.top));
        let mut pane = Pane::new(lines);
        (pane.cursor, pane.top) = before.unwrap_or_default();
        pane.settle(height);
        state.panes = vec![pane];
        state.made_for = wanted;
    }

    /// Shows a view.
    pub(crate) fn show(&mut self, view: View) {
        if self.tabs().any(|of| of == view) {
            self.view = view;
            self.help = None;
            self.prepare();
        }
    }

    /// Opens lines from the list of the current view.
    pub(crate) fn open(&mut self, lines: Lines, line: usize) {
        let (view, height) = (self.view, self.height);
        let state = self.state(view);
        // What was opened before gives way: a page of packets is large.
        state.panes.truncate(1);
        let mut pane = Pane::new(lines);
        pane.jump(line, height);
        state.panes.push(pane);
    }

    /// Opens the part of a stream that a packet is in.
    pub(crate) fn open_packet(&mut self, stream: u32, packet: usize) -> bool {
        self.show(View::Streams);
        let height = self.height;
        if let Some(pane) = self.state(View::Streams).panes.last_mut()
            && let Lines::Packets(packets) = &mut pane.lines
            && packets.page.stream == stream
            && packet >= packets.page.first
            && packets.page.next.is_none_or(|next| packet < next)
        {
            let Some(line) = packets.reveal(packet) else { return false };
            pane.jump(line, height);
            return true;
        }
        // A jump far into a stream has some packets before it on the page.
        const BEFORE: usize = 4096;
        let first = if packet <= 2 * BEFORE { 1 } else { packet - BEFORE };
        self.open_page(stream, first, packet)
    }

    /// Opens the page of a stream that begins with a packet.
    pub(crate) fn open_page(&mut self, stream: u32, first: usize, packet: usize) -> bool {
        self.show(View::Streams);
        let Some(page) = self.document.page(stream, first) else {
            self.message = Some("the file does not hold this stream".to_owned());
            return false;
        };
        let stop = self.document.stop().filter(|(of, _)| *of == stream).map(|(_, packets)| packets);
        let title = self.document.streams().into_iter().find(|of| of.number == stream);
        let title = title.map(|stream| stream.title).unwrap_or_default();
        let mut packets = PacketLines::new(title, page, stop);
        let line = if packet > first { packets.reveal(packet).unwrap_or(0) } else { 0 };
        if packets.page.nodes.is_empty() {
            self.message = Some("the file does not hold the memory of this stream".to_owned());
        }
        self.open(Lines::Packets(Box::new(packets)), line);
        true
    }

    /// Opens a buffer of the list, at an address.
    pub(crate) fn open_buffer(&mut self, number: usize, iova: Option<u64>) {
        self.show(View::Buffers);
        let stream = self.selected().map(|(stream, _)| stream);
        let Some(Lines::Buffers(buffers)) = self.state(View::Buffers).panes.first().map(|pane| &pane.lines)
        else {
            return;
        };
        let Some(buffer) = buffers.get(number).cloned() else { return };
        if let Some(list) = self.state(View::Buffers).panes.first_mut() {
            list.select(number, 1);
        }
        let Some(contents) = self.document.contents(&buffer, stream) else {
            self.message =
                Some(format!("the file does not hold the contents of the buffer at {:#x}", buffer.iova));
            return;
        };
        let mut formats = BufferFormat::PLAIN.to_vec();
        formats.extend(self.document.code_set().map(BufferFormat::Code));
        let name = if buffer.name.is_empty() { "buffer" } else { &buffer.name };
        let title = format!("{name} at {:#x}", buffer.iova);
        let lines = ContentLines::new(title, contents, formats);
        let line = iova.map_or(0, |iova| lines.line_of(iova.saturating_sub(buffer.iova)));
        self.open(Lines::Contents(Box::new(lines)), line);
    }

    /// Remembers where the user is.
    pub(crate) fn remember(&mut self) {
        let view = self.view;
        let state = self.state_of(view);
        let Some(pane) = state.panes.last() else { return };
        let packet = match &pane.lines {
            Lines::Packets(packets) => {
                packets.packet(pane.cursor).map(|packet| (packets.page.stream, packet))
            }
            _ => None,
        };
        let visit = Visit { view, level: state.panes.len(), line: pane.cursor, packet };
        if self.history.back() != Some(&visit) {
            self.history.push_back(visit);
        }
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    /// Shows or hides the keys.
    pub(crate) fn toggle_help(&mut self) {
        self.help = match self.help {
            Some(_) => None,
            None => Some(Pane::new(Lines::Rows(help::rows()))),
        };
    }
}

/// What a view says that has nothing.
fn nothing(view: View) -> &'static str {
    match view {
        View::Verdict => "there is no verdict",
        View::Streams => "the file holds no command stream, or the GPU is not known",
        View::Registers => "the file holds no registers; of a capture, select a packet first",
        View::Buffers => "the file holds no buffers",
        View::Shaders => "no shaders; of a capture, those of the selected submit are listed",
        View::File => "nothing is known of the file",
        View::Differences => "nothing differs",
    }
}
