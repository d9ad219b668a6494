//! A pane: lines, the one that is selected, and how far they are scrolled. Never: what the lines are.

use crate::lines::Lines;

/// Columns that one step sideways scrolls.
const STEP: usize = 8;
/// Columns that are scrolled at most.
const MOST: usize = 4096;

/// A pane.
pub(crate) struct Pane {
    pub(crate) lines: Lines,
    pub(crate) cursor: usize,
    pub(crate) top: usize,
    pub(crate) left: usize,
}

impl Pane {
    pub(crate) fn new(lines: Lines) -> Pane {
        Pane { lines, cursor: 0, top: 0, left: 0 }
    }

    /// Selects a line, and scrolls so that it is among `height` lines.
    pub(crate) fn select(&mut self, line: usize, height: usize) {
        let last = self.lines.len().saturating_sub(1);
        self.cursor = line.min(last);
        let height = height.max(1);
        if self.cursor < self.top {
            self.top = self.cursor;
        } else if self.cursor >= self.top.saturating_add(height) {
            self.top = self.cursor + 1 - height;
        }
    }

    /// Selects a line that is jumped to: a third of the screen is before it.
    pub(crate) fn jump(&mut self, line: usize, height: usize) {
        let last = self.lines.len().saturating_sub(1);
        self.cursor = line.min(last);
        let shown = (self.top..self.top.saturating_add(height.max(1))).contains(&self.cursor);
        if !shown {
            self.top = self.cursor.saturating_sub(height / 3);
        }
    }

    /// Moves the selection by lines.
    pub(crate) fn step(&mut self, by: isize, height: usize) {
        self.select(self.cursor.saturating_add_signed(by), height);
    }

    /// Scrolls by lines; the selection stays on the screen.
    pub(crate) fn scroll(&mut self, by: isize, height: usize) {
        let last = self.lines.len().saturating_sub(height.max(1));
        self.top = self.top.saturating_add_signed(by).min(last);
        let bottom = self.top.saturating_add(height.max(1)) - 1;
        self.cursor = self.cursor.clamp(self.top, bottom).min(self.lines.len().saturating_sub(1));
    }

    /// Scrolls by pages, and selects the line that is then at the same place.
    pub(crate) fn page(&mut self, by: isize, height: usize) {
        let lines = by.saturating_mul(height.saturating_sub(1).max(1) as isize);
        let before = self.top;
        self.scroll(lines, height);
        match self.top == before {
            true => self.step(lines, height),
            false => self.select(self.cursor, height),
        }
    }

    /// Scrolls sideways.
    pub(crate) fn sideways(&mut self, right: bool) {
        self.left = if right { (self.left + STEP).min(MOST) } else { self.left.saturating_sub(STEP) };
    }

    /// After lines have come or gone.
    pub(crate) fn settle(&mut self, height: usize) {
        self.select(self.cursor, height);
        self.top = self.top.min(self.lines.len().saturating_sub(1));
    }
}
