//! The terminal while the browser runs: raw mode, the alternate screen, keys, signals. It is as before after every way out: the end, an
//! error, a panic, a signal, and while the program is stopped.

use crate::failure::{Failure, Outcome};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, KeyCode, KeyEventKind, KeyModifiers, MouseButton,
    MouseEventKind,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stdout};
use std::sync::mpsc::Receiver;
use std::time::Duration;
use unwedge_tui::{App, Event, Key, Reaction, Theme};
use unwedge_view::browse::CaptureIndex;

/// How long a key is waited for until signals and the index are looked at.
const WAIT: Duration = Duration::from_millis(50);
/// Lines that a step of the wheel scrolls.
const WHEEL: i16 = 3;

/// Runs the browser until the user leaves it. `index` brings more of a capture.
pub(super) fn run(
    app: &mut App<'_>,
    theme: Theme,
    mouse: bool,
    index: Option<&Receiver<CaptureIndex>>,
) -> Result<Outcome, Failure> {
    restore_on_panic();
    let signals = Signals::watch().map_err(Failure::Output)?;
    let screen = Screen::enter(mouse).map_err(Failure::Output)?;
    let left = turns(app, theme, index, &signals, screen).map_err(Failure::Output)?;
    if let Some(signal) = left {
        signals.obey(signal);
    }
    Ok(Outcome::Complete)
}

/// Draws and reacts, until the end. Returns the signal that ended it.
fn turns(
    app: &mut App<'_>,
    theme: Theme,
    index: Option<&Receiver<CaptureIndex>>,
    signals: &Signals,
    mut screen: Screen,
) -> io::Result<Option<i32>> {
    // A new one draws everything. `Terminal::clear` asks the terminal for its cursor, which a slow one answers too late.
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    let mut draw = true;
    loop {
        if draw {
            terminal.draw(|frame| app.draw(frame, theme))?;
        }
        draw = false;
        let mut suspend = signals.stop_asked();
        if let Some(signal) = signals.end_asked() {
            return Ok(Some(signal));
        }
        // What is there is taken before anything is drawn again.
        let mut wait = if suspend { Duration::ZERO } else { WAIT };
        while event::poll(wait)? {
            wait = Duration::ZERO;
            match reaction(app, &event::read()?) {
                Reaction::None => {}
                Reaction::Draw => draw = true,
                Reaction::Quit => return Ok(None),
                Reaction::Suspend => suspend = true,
            }
        }
        while let Some(Ok(more)) = index.map(Receiver::try_recv) {
            draw |= app.extend(more) == Reaction::Draw;
        }
        if suspend {
            let mouse = screen.mouse;
            drop(screen);
            signals.stop();
            screen = Screen::enter(mouse)?;
            terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
            draw = true;
        } else if signals.continued() {
            // SIGSTOP stopped it, which cannot be caught.
            screen.again()?;
            terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
            draw = true;
        }
    }
}

/// What an event of the terminal does.
fn reaction(app: &mut App<'_>, event: &event::Event) -> Reaction {
    match event {
        event::Event::Key(key) if key.kind != KeyEventKind::Release => {
            self::key(key.code, key.modifiers).map_or(Reaction::None, |key| app.on(Event::Key(key)))
        }
        event::Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => app.on(Event::Click(mouse.column, mouse.row)),
            MouseEventKind::ScrollDown => app.on(Event::Wheel(WHEEL)),
            MouseEventKind::ScrollUp => app.on(Event::Wheel(-WHEEL)),
            _ => Reaction::None,
        },
        event::Event::Resize(..) => Reaction::Draw,
        _ => Reaction::None,
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => Key::Control(c.to_ascii_lowercase()),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => Key::BackTab,
        KeyCode::Tab => Key::Tab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::F(1) => Key::Char('h'),
        _ => return None,
    })
}

/// The screen of the browser; the one before comes back when this is dropped.
struct Screen {
    mouse: bool,
}

impl Screen {
    fn enter(mouse: bool) -> io::Result<Screen> {
        let screen = Screen { mouse };
        screen.again()?;
        Ok(screen)
    }

    fn again(&self) -> io::Result<()> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
        if self.mouse {
            execute!(io::stdout(), EnableMouseCapture)?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&mut io::stdout());
    }
}

/// Undoes all that [`Screen::again`] does, even if only part of it was done. Errors are ignored: the terminal may be closed.
fn restore(out: &mut Stdout) {
    let _ = execute!(out, DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// A panic of the browser's thread is reported on the screen from before.
fn restore_on_panic() {
    let report = std::panic::take_hook();
    let own = std::thread::current().id();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == own {
            restore(&mut io::stdout());
        }
        report(panic);
    }));
}

#[cfg(unix)]
pub(super) use unix::Signals;

#[cfg(unix)]
mod unix {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    use signal_hook::{flag, low_level};
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Signals that have come.
    pub(in super::super) struct Signals {
        end: Arc<AtomicUsize>,
        stop: Arc<AtomicBool>,
        continued: Arc<AtomicBool>,
    }

    impl Signals {
        pub(super) fn watch() -> io::Result<Signals> {
            let signals = Signals { end: Arc::default(), stop: Arc::default(), continued: Arc::default() };
            for signal in [SIGTERM, SIGHUP, SIGINT, SIGQUIT] {
                flag::register_usize(signal, Arc::clone(&signals.end), usize::try_from(signal).unwrap_or(0))?;
            }
            flag::register(SIGTSTP, Arc::clone(&signals.stop))?;
            flag::register(SIGCONT, Arc::clone(&signals.continued))?;
            Ok(signals)
        }

        pub(super) fn end_asked(&self) -> Option<i32> {
            i32::try_from(self.end.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
        }

        pub(super) fn stop_asked(&self) -> bool {
            self.stop.swap(false, Ordering::Relaxed)
        }

        pub(super) fn continued(&self) -> bool {
            self.continued.swap(false, Ordering::Relaxed)
        }

        /// Stops the process, and returns when it goes on.
        pub(super) fn stop(&self) {
            let _ = low_level::emulate_default_handler(SIGTSTP);
            self.continued();
        }

        /// Ends as the signal does by itself.
        pub(super) fn obey(&self, signal: i32) {
            let _ = low_level::emulate_default_handler(signal);
        }
    }
}

#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn watch() -> io::Result<Signals> {
        Ok(Signals)
    }

    fn end_asked(&self) -> Option<i32> {
        None
    }

    fn stop_asked(&self) -> bool {
        false
    }

    fn continued(&self) -> bool {
        false
    }

    fn stop(&self) {}

    fn obey(&self, _: i32) {}
}
