//! What keys and the mouse do: those of `less` and `tig`. Never: how it is done.

use crate::app::{App, View};
use crate::draw::{ROWS_ABOVE, tab_at};
use crate::event::{Key, Reaction};
use crate::lines::{Lines, Search};
use crate::prompt::{Prompt, PromptPurpose, PromptStep};

impl App<'_> {
    pub(crate) fn key(&mut self, key: Key) -> Reaction {
        self.message = None;
        if let Some(prompt) = &mut self.prompt {
            match prompt.key(key) {
                PromptStep::Typing => {}
                PromptStep::Cancelled => self.prompt = None,
                PromptStep::Entered => self.entered(),
            }
            return Reaction::Draw;
        }
        match key {
            Key::Control('c') | Key::Char('Q') => return Reaction::Quit,
            Key::Control('z') => return Reaction::Suspend,
            Key::Char('q') | Key::Escape => {
                let closed = self.help.take().is_some() || self.close();
                if !closed && key == Key::Char('q') {
                    return Reaction::Quit;
                }
            }
            Key::Char('h') => self.toggle_help(),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(View::ALL.len() - 1),
            Key::Char(digit @ '1'..='7') => {
                let number = digit as usize - '1' as usize;
                if let Some(view) = self.tabs().nth(number) {
                    self.show(view);
                }
            }
            Key::Enter => self.enter(),
            Key::Backspace => self.back(),
            Key::Char('/') => self.prompt = Some(Prompt::new(PromptPurpose::SearchForward)),
            Key::Char('?') => self.prompt = Some(Prompt::new(PromptPurpose::SearchBackward)),
            Key::Char(':') => self.prompt = Some(Prompt::new(PromptPurpose::Command)),
            Key::Char('&') => {
                self.show(View::Registers);
                self.prompt = Some(Prompt::new(PromptPurpose::Filter));
            }
            Key::Char('n') => self.search_again(false),
            Key::Char('N') => self.search_again(true),
            Key::Char('s') => {
                self.remember();
                self.go_to_stop();
            }
            Key::Char('r') => {
                self.remember();
                self.show(View::Registers);
            }
            Key::Char('x') => self.buffer_of_packet(),
            Key::Char('f') => self.format(1),
            Key::Char('F') => self.format(usize::MAX),
            key => self.movement(key),
        }
        Reaction::Draw
    }

    /// Keys that move, and that fold.
    fn movement(&mut self, key: Key) {
        let height = self.height;
        let is_tree = self.help.is_none() && matches!(self.current().lines, Lines::Packets(_));
        match key {
            Key::Right | Key::Left if is_tree => drop(self.toggle(Some(key == Key::Right))),
            Key::Char('o') => drop(self.toggle(None)),
            Key::Char('+' | '=') | Key::Char('-') => {
                let pane = self.current();
                let line = pane.lines.fold_all(pane.cursor, key == Key::Char('-'));
                pane.jump(line, height);
            }
            _ => {
                let pane = self.current();
                let half = (height / 2).max(1) as isize;
                match key {
                    Key::Char('j') | Key::Down => pane.step(1, height),
                    Key::Char('k') | Key::Up => pane.step(-1, height),
                    Key::Char(' ') | Key::PageDown | Key::Control('f') => pane.page(1, height),
                    Key::Char('b') | Key::PageUp | Key::Control('b') => pane.page(-1, height),
                    Key::Char('d') | Key::Control('d') => pane.step(half, height),
                    Key::Char('u') | Key::Control('u') => pane.step(-half, height),
                    Key::Char('g') | Key::Home => pane.select(0, height),
                    Key::Char('G') | Key::End => pane.select(usize::MAX, height),
                    Key::Char('>') | Key::Right => pane.sideways(true),
                    Key::Char('<') | Key::Left => pane.sideways(false),
                    _ => {}
                }
            }
        }
    }

    /// The view so many tabs on.
    fn turn(&mut self, by: usize) {
        let tabs: Vec<View> = self.tabs().collect();
        let at = tabs.iter().position(|view| *view == self.view).unwrap_or(0);
        let by = if by == 1 { 1 } else { tabs.len() - 1 };
        if let Some(view) = tabs.get((at + by) % tabs.len().max(1)) {
            self.show(*view);
        }
    }

    /// What was typed at the prompt.
    fn entered(&mut self) {
        let Some(prompt) = self.prompt.take() else { return };
        let height = self.height;
        match prompt.purpose {
            PromptPurpose::Command => self.command(&prompt.text),
            PromptPurpose::Filter => {
                let pane = self.current();
                if let Lines::Registers(registers) = &mut pane.lines {
                    registers.set_filter(&prompt.text);
                    pane.select(0, height);
                }
            }
            PromptPurpose::SearchForward | PromptPurpose::SearchBackward => {
                let forward = prompt.purpose == PromptPurpose::SearchForward;
                if !prompt.text.is_empty() {
                    self.search = Some((prompt.text, forward));
                }
                self.search_again(false);
            }
        }
    }

    fn search_again(&mut self, reverse: bool) {
        let Some((text, forward)) = self.search.clone() else {
            self.message = Some("nothing was searched for yet".to_owned());
            return;
        };
        let height = self.height;
        let forward = forward != reverse;
        let found = match &mut self.help {
            Some(help) => {
                let search = Search { text: &text, from: help.cursor, forward };
                help.lines.search(&search, &*self.document)
            }
            None => {
                let Some(pane) = self.views[App::place_of(self.view)].panes.last_mut() else { return };
                let search = Search { text: &text, from: pane.cursor, forward };
                pane.lines.search(&search, &*self.document)
            }
        };
        match found {
            Some(line) => self.current().jump(line, height),
            None => {
                let place = if forward { "after" } else { "before" };
                self.message = Some(format!("not found {place} this line: {text}"));
            }
        }
    }

    /// The buffer that the selected packet is in.
    fn buffer_of_packet(&mut self) {
        let Some(pane) = self.state_of(View::Streams).panes.last() else { return };
        let Lines::Packets(packets) = &pane.lines else { return };
        let packet = packets.packet(pane.cursor);
        let node = packet.and_then(|packet| packets.page.nodes.get(packets.page.node_of(packet)?));
        match node.and_then(|node| node.iova) {
            Some(iova) => {
                self.remember();
                self.go_to_buffer(iova);
            }
            None => self.message = Some("the packet has no address".to_owned()),
        }
    }

    /// The next format of the buffer that is open.
    fn format(&mut self, by: usize) {
        let height = self.height;
        let pane = self.current();
        let line = pane.top;
        if let Lines::Contents(contents) = &mut pane.lines {
            let count = contents.formats.len().max(1);
            let by = if by == 1 { 1 } else { count - 1 };
            let line = contents.show((contents.format + by) % count, line);
            (pane.cursor, pane.top) = (line, line);
            pane.settle(height);
        }
    }

    pub(crate) fn click(&mut self, column: u16, row: u16) -> Reaction {
        self.message = None;
        if row < ROWS_ABOVE {
            if let Some(view) = tab_at(self, column, row) {
                self.show(view);
            }
            return Reaction::Draw;
        }
        let height = self.height;
        let pane = self.current();
        let line = pane.top.saturating_add(usize::from(row - ROWS_ABOVE));
        if usize::from(row - ROWS_ABOVE) >= height || line >= pane.lines.len() {
            return Reaction::None;
        }
        match pane.cursor == line {
            true => self.enter(),
            false => pane.select(line, height),
        }
        Reaction::Draw
    }
}
