//! Jumps: to an address, a packet, a register, the stop, and back. Never: what a key means.

use crate::app::{App, View, Visit};
use crate::lines::{Action, Lines};
use unwedge_view::around::Place;
use unwedge_view::browse::{BrowseTarget, BufferFormat, Row, RowLook};

impl App<'_> {
    /// Does what Enter does on the selected line.
    pub(crate) fn enter(&mut self) {
        let height = self.height;
        let view = self.view;
        if self.help.is_some() {
            return;
        }
        let line = self.current().cursor;
        let Some(pane) = self.state_of(view).panes.last() else { return };
        let Some(action) = pane.lines.action(line, &*self.document) else { return };
        if action != Action::Toggle {
            self.remember();
        }
        match action {
            Action::Toggle => drop(self.toggle(None)),
            Action::Go(target) => self.go(&target),
            Action::OpenStream(stream) => {
                let stop = self.document.stop().filter(|(of, _)| *of == stream);
                match stop {
                    Some((_, (first, _))) => drop(self.open_packet(stream, first)),
                    None => drop(self.open_page(stream, 1, 1)),
                }
            }
            Action::OpenPage(stream, first) => drop(self.open_page(stream, first, first)),
            Action::OpenBuffer(number) => self.open_buffer(number, None),
            Action::OpenShader(number) => {
                let rows = self.document.code(number);
                let rows =
                    if rows.is_empty() { vec![Row::of("no code is held", RowLook::Dim)] } else { rows };
                let marked = rows.iter().position(|row| row.look == RowLook::Stop).unwrap_or(0);
                self.open(Lines::Rows(rows), marked);
            }
        }
        self.current().settle(height);
    }

    /// Folds or unfolds the selected line; `open`: only the one of the two.
    pub(crate) fn toggle(&mut self, open: Option<bool>) -> bool {
        let (view, height) = (self.view, self.height);
        let Some(pane) = self.views[App::place_of(view)].panes.last_mut() else { return false };
        let changed = pane.lines.toggle(pane.cursor, open, &*self.document);
        pane.settle(height);
        changed
    }

    /// Goes to a place.
    pub(crate) fn go(&mut self, target: &BrowseTarget) {
        match target {
            BrowseTarget::Stop => self.go_to_stop(),
            BrowseTarget::Address(iova) => self.go_to_address(*iova),
            BrowseTarget::Work(number) => match self.document.find_work(*number) {
                Some((stream, packet)) => drop(self.open_packet(stream, packet)),
                None => self.message = Some(format!("no stream that is held starts work {number}")),
            },
            BrowseTarget::Register(name) => drop(self.go_to_register(name)),
            BrowseTarget::Shader(number) => {
                self.show(View::Shaders);
                let height = self.height;
                self.current().select(*number, height);
                self.enter();
            }
        }
    }

    pub(crate) fn go_to_stop(&mut self) {
        match self.document.stop() {
            Some((stream, (first, _))) => drop(self.open_packet(stream, first)),
            None => {
                self.message =
                    Some("nothing tells where the engine stopped, or its stream is not held".to_owned())
            }
        }
    }

    /// The packet at an address, else the buffer.
    fn go_to_address(&mut self, iova: u64) {
        let stream = self.selected().map(|(stream, _)| stream);
        if let Some((stream, packet)) = self.document.find(iova, stream) {
            self.open_packet(stream, packet);
            return;
        }
        self.go_to_buffer(iova);
    }

    /// The buffer at an address.
    pub(crate) fn go_to_buffer(&mut self, iova: u64) {
        let before = self.view;
        self.show(View::Buffers);
        let list = self.state_of(View::Buffers).panes.first().map(|pane| &pane.lines);
        let Some(Lines::Buffers(buffers)) = list else {
            self.show(before);
            self.message = Some(format!("nothing is known at {iova:#x}"));
            return;
        };
        let holds = |buffer: &unwedge_view::browse::BufferEntry| {
            iova.checked_sub(buffer.iova).is_some_and(|offset| offset < buffer.size.max(1))
        };
        let held = buffers.iter().position(|buffer| holds(buffer) && buffer.held);
        match held.or_else(|| buffers.iter().position(holds)) {
            Some(number) => self.open_buffer(number, Some(iova)),
            None => {
                let near = buffers.iter().rposition(|buffer| buffer.iova <= iova);
                let height = self.height;
                self.state(View::Buffers).panes.truncate(1);
                if let (Some(near), Some(pane)) = (near, self.state(View::Buffers).panes.first_mut()) {
                    pane.select(near, height);
                }
                self.message =
                    Some(format!("no packet and no buffer at {iova:#x}; the buffer before it is selected"));
            }
        }
    }

    /// A register by its name.
    pub(crate) fn go_to_register(&mut self, name: &str) -> bool {
        let before = self.view;
        self.show(View::Registers);
        let height = self.height;
        if let Some(pane) = self.state(View::Registers).panes.first_mut()
            && let Lines::Registers(registers) = &mut pane.lines
        {
            registers.set_filter("");
            if let Some(line) = registers.find(name) {
                pane.jump(line, height);
                return true;
            }
        }
        self.show(before);
        self.message = Some(format!("the file does not hold {name}"));
        false
    }

    /// Back to where the user was before the last jump; else out of what is open.
    pub(crate) fn back(&mut self) {
        let height = self.height;
        if let Some(visit) = self.history.pop_back() {
            let Visit { view, level, line, packet } = visit;
            self.show(view);
            if let Some((stream, packet)) = packet {
                self.open_packet(stream, packet);
                return;
            }
            let state = self.state(view);
            state.panes.truncate(level.max(1));
            if let Some(pane) = state.panes.last_mut() {
                pane.select(line, height);
            }
            return;
        }
        self.close();
    }

    /// Closes what is open; `false` where only the list is.
    pub(crate) fn close(&mut self) -> bool {
        let view = self.view;
        let state = self.state(view);
        if state.panes.len() < 2 {
            return false;
        }
        state.panes.pop();
        true
    }

    /// A command that was typed after the colon.
    pub(crate) fn command(&mut self, text: &str) {
        let text = text.trim();
        let height = self.height;
        if text.is_empty() {
            return;
        }
        if let Some(format) = text.strip_prefix("as ") {
            return self.show_as(format.trim());
        }
        if let Some(place) = Place::parse(text) {
            self.remember();
            return self.go(&match place {
                Place::Hang => BrowseTarget::Stop,
                Place::Work(_, number) => BrowseTarget::Work(number),
                Place::Address(iova) => BrowseTarget::Address(iova),
            });
        }
        if text.starts_with("0x") {
            self.message = Some(format!("{text} is not an address"));
            return;
        }
        if let Ok(line) = text.parse::<usize>() {
            self.remember();
            return self.current().jump(line.saturating_sub(1), height);
        }
        self.remember();
        if !self.go_to_register(text) {
            self.history.pop_back();
        }
    }

    /// Shows the buffer that is open in a format.
    fn show_as(&mut self, name: &str) {
        let height = self.height;
        let Some(format) = BufferFormat::by_name(name) else {
            self.message = Some(format!(
                "{name} is not a format: bytes, dwords, floats, text, ir3 a6xx, gfx1030, tgl …"
            ));
            return;
        };
        let pane = self.current();
        let line = pane.top;
        let Lines::Contents(contents) = &mut pane.lines else {
            self.message = Some("open a buffer first".to_owned());
            return;
        };
        let known = contents.formats.iter().position(|of| of.name() == format.name());
        let at = known.unwrap_or_else(|| {
            contents.formats.push(format);
            contents.formats.len() - 1
        });
        let line = contents.show(at, line);
        (pane.cursor, pane.top) = (line, line);
        pane.settle(height);
    }
}
