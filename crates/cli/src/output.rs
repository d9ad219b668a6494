//! Results out: standard output behind one large buffer, or a pager; and whether to colour.
//!
//! With `--html` results are kept in memory, and written as a page when they are complete.
//!
//! A reader that goes away (a broken pipe, a pager that was quit) ends the output and is no error.

use crate::args::{Colour, Global};
use crate::html::PageListing;
use crate::pager::Pager;
use std::cell::RefCell;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::rc::Rc;
use unwedge_view::Style;

const BUFFER: usize = 64 << 10;

/// Results that a listing and a script write by turns.
pub type SharedOutput = Rc<RefCell<dyn Write>>;

/// One of those who write into shared results.
pub struct Share(pub SharedOutput);

impl Write for Share {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}

/// Where results go.
pub struct Output {
    sink: OutputSink,
    /// How they may style.
    pub style: Style,
    failed: Option<io::Error>,
}

enum OutputSink {
    Stdout(BufWriter<StdoutLock<'static>>),
    Pager(BufWriter<Pager>),
    Page(PageListing),
}

/// Columns that text is set for: those asked for, those of the environment variable COLUMNS, or those of the terminal, if
/// results go to one.
pub fn columns(asked: Option<u16>) -> Option<usize> {
    let of_environment = || std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|&columns| columns > 0);
    let of_terminal = || {
        let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(columns))
    };
    asked.map(usize::from).or_else(of_environment).or_else(of_terminal)
}

/// How what goes to standard output may look.
pub fn style(global: &Global) -> Style {
    let colour = match global.color {
        _ if global.no_color => false,
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        }
    };
    Style { colour }
}

impl Output {
    /// Standard output; through a pager when `page` is set and both ends are a terminal.
    pub fn open(global: &Global, page: bool) -> Output {
        let terminal = io::stdout().is_terminal();
        let Style { colour } = style(global);
        let pager = if page && terminal && !global.no_pager { Pager::start() } else { None };
        let sink = match pager {
            Some(pager) => OutputSink::Pager(BufWriter::with_capacity(BUFFER, pager)),
            None => OutputSink::Stdout(BufWriter::with_capacity(BUFFER, io::stdout().lock())),
        };
        Output { sink, style: Style { colour }, failed: None }
    }

    /// A page in the file of `--html`, if that is given; else as [`Output::open`]. `title` is the heading of the page.
    pub fn open_page(
        global: &Global,
        page: bool,
        html: Option<&Path>,
        title: impl FnOnce() -> String,
    ) -> Output {
        let Some(file) = html else { return Output::open(global, page) };
        let sink = OutputSink::Page(PageListing::new(file, title()));
        Output { sink, style: Style { colour: true }, failed: None }
    }

    /// Flushes, waits for the pager, and returns the first error of any write. A broken pipe is none.
    ///
    /// # Errors
    ///
    /// The first error of a write or of the flush, unless it is a broken pipe.
    pub fn finish(mut self) -> io::Result<()> {
        let flushed = self.flush();
        match self.sink {
            OutputSink::Pager(writer) => {
                // The pager reads until its input closes.
                let (pager, _unwritten) = writer.into_parts();
                pager.wait();
            }
            OutputSink::Page(listing) => listing.finish()?,
            OutputSink::Stdout(_) => {}
        }
        match self.failed.take().or(flushed.err()) {
            Some(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e),
            _ => Ok(()),
        }
    }

    fn inner(&mut self) -> &mut dyn Write {
        match &mut self.sink {
            OutputSink::Stdout(w) => w,
            OutputSink::Pager(w) => w,
            OutputSink::Page(w) => w,
        }
    }

    /// Remembers the first failure: callers in between may drop it.
    fn checked<T>(&mut self, action: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
        if let Some(e) = &self.failed {
            return Err(e.kind().into());
        }
        action(self.inner()).map_err(|e| {
            let kind = e.kind();
            self.failed = Some(e);
            kind.into()
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.checked(|w| w.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.checked(|w| w.flush())
    }
}
