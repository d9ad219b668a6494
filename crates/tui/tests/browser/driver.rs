//! Types keys, and reads the screen.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use unwedge::capture::{Dump, FileKind, sniff};
use unwedge::hw::Db;
use unwedge_tui::{App, Event, Key, Reaction, Theme};
use unwedge_view::browse::{CaptureDocument, Document, DumpDocument, FileDocument};

/// Sizes of a terminal: the usual one, a large one, a small one.
pub const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 12)];

/// Memory of a dump is unpacked in proportion to this.
pub const MAX_SIZE: u64 = 256 << 20;

/// Hands on the document of a file.
pub fn with_document<R>(name: &str, bytes: &[u8], then: impl FnOnce(Box<dyn Document + '_>) -> R) -> R {
    let db = Db::builtin();
    let kind = sniff(bytes);
    if kind == FileKind::RdCapture {
        return then(Box::new(CaptureDocument::indexed(name, bytes, &db, MAX_SIZE)));
    }
    let summary = format!("{name}: {}", kind.describe());
    match Dump::read_file(kind, bytes) {
        Ok(dump) => then(Box::new(DumpDocument::new(name, &dump, &db, MAX_SIZE, summary))),
        Err(_) => then(Box::new(FileDocument::new(name, kind, bytes, MAX_SIZE, summary))),
    }
}

/// A browser on a screen that is looked at.
pub struct Driver<'d> {
    pub app: App<'d>,
    terminal: Terminal<TestBackend>,
    pub last: Reaction,
}

impl<'d> Driver<'d> {
    pub fn new(app: App<'d>, (columns, rows): (u16, u16)) -> Driver<'d> {
        let terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal in memory");
        let mut driver = Driver { app, terminal, last: Reaction::Draw };
        driver.draw();
        driver
    }

    pub fn draw(&mut self) {
        let theme = Theme { colour: true };
        self.terminal.draw(|frame| self.app.draw(frame, theme)).expect("drawn in memory");
    }

    pub fn resize(&mut self, (columns, rows): (u16, u16)) {
        self.terminal.backend_mut().resize(columns, rows);
        self.draw();
    }

    pub fn press(&mut self, key: Key) -> &mut Self {
        self.last = self.app.on(Event::Key(key));
        self.draw();
        self
    }

    /// Types keys: a line end is Enter, `\t` Tab, `\x08` Backspace, `\x1b` Escape.
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        for c in keys.chars() {
            self.press(match c {
                '\n' => Key::Enter,
                '\t' => Key::Tab,
                '\x08' => Key::Backspace,
                '\x1b' => Key::Escape,
                c => Key::Char(c),
            });
        }
        self
    }

    /// The rows of the screen, without blanks at their ends.
    pub fn screen(&self) -> Vec<String> {
        let buffer = self.terminal.backend().buffer();
        let area = buffer.area;
        let row = |y| {
            let cells = (0..area.width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..area.height).map(row).collect()
    }

    /// The row that is selected.
    pub fn selected(&self) -> String {
        use ratatui::style::Modifier;
        let buffer = self.terminal.backend().buffer();
        let rows = 2..buffer.area.height.saturating_sub(1);
        let mut rows = rows.filter(|&y| buffer[(0, y)].modifier.contains(Modifier::REVERSED));
        rows.next().map(|y| self.screen()[usize::from(y)].clone()).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        self.screen().join("\n")
    }

    pub fn status(&self) -> String {
        self.screen().last().cloned().unwrap_or_default()
    }
}
