//! The browser over an input in memory, with keys that a seed chooses. Never: a terminal.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Duration;
use unwedge::capture::{Dump, FileKind, sniff};
use unwedge::hw::Db;
use unwedge_tui::{App, Event, Key, Theme};
use unwedge_view::browse::{CaptureDocument, Document, DumpDocument, FileDocument};

/// What a key may take, however small the input: a stream is walked from its start.
pub const TIME_OF_KEY: Duration = Duration::from_millis(400);

/// Keys that move and open: they come more often than characters.
const KEYS: [Key; 17] = [
    Key::Enter,
    Key::Enter,
    Key::Tab,
    Key::BackTab,
    Key::Backspace,
    Key::Escape,
    Key::Up,
    Key::Down,
    Key::Down,
    Key::Left,
    Key::Right,
    Key::PageUp,
    Key::PageDown,
    Key::Home,
    Key::End,
    Key::Control('d'),
    Key::Control('u'),
];
/// Characters, the commands among them.
const CHARACTERS: &[u8] = b"jjjkkk  bgGnN/?:&sroxfF+-<>hqQ1234567890xabcdefA_ ";

/// The document of an input; summaries are of its kind alone.
pub fn with_document<R>(name: &str, bytes: &[u8], then: impl FnOnce(Box<dyn Document + '_>) -> R) -> R {
    let db = Db::builtin();
    let max_size = (bytes.len() as u64).saturating_mul(64).max(1 << 20);
    let kind = sniff(bytes);
    if kind == FileKind::RdCapture {
        return then(Box::new(CaptureDocument::indexed(name, bytes, &db, max_size)));
    }
    let summary = format!("{name}: {}", kind.describe());
    match Dump::read_file(kind, bytes) {
        Ok(dump) => then(Box::new(DumpDocument::new(name, &dump, &db, max_size, summary))),
        Err(_) => then(Box::new(FileDocument::new(name, kind, bytes, max_size, summary))),
    }
}

/// Numbers that a seed gives.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let high = usize::try_from(self.0 >> 33).unwrap_or(0);
        high.checked_rem(n).unwrap_or(0)
    }

    fn event(&mut self) -> Event {
        let cell = |chance: &mut Chance| u16::try_from(chance.below(140)).unwrap_or(0);
        match self.below(40) {
            0 => Event::Click(cell(self), cell(self)),
            1 => Event::Wheel(i16::try_from(self.below(9)).unwrap_or(0) - 4),
            2..=14 => Event::Key(KEYS[self.below(KEYS.len())]),
            _ => Event::Key(Key::Char(char::from(CHARACTERS[self.below(CHARACTERS.len())]))),
        }
    }
}

/// Browses an input: so many events, each followed by a screen of any size.
///
/// # Panics
/// When the browser does.
pub fn browse(name: &str, bytes: &[u8], seed: u64, events: usize) {
    with_document(name, bytes, |document| {
        let mut chance = Chance(seed);
        let mut app = App::new(document);
        let size = |chance: &mut Chance| {
            let side = |n: usize| u16::try_from(1 + n).unwrap_or(1);
            (side(chance.below(130)), side(chance.below(45)))
        };
        let (columns, rows) = size(&mut chance);
        let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
        for _ in 0..events {
            if chance.below(24) == 0 {
                let (columns, rows) = size(&mut chance);
                terminal.backend_mut().resize(columns, rows);
            }
            // Whoever leaves comes back: what was open is still there.
            app.on(chance.event());
            let Ok(_) = terminal.draw(|frame| app.draw(frame, Theme { colour: true }));
        }
    });
}
