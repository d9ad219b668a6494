//! Where contexts come from: a file that is one, or a dump of i915 or xe that has some.

use super::layout;
use crate::args::{Global, LrcTarget};
use crate::failure::Failure;
use crate::input::Input;
use crate::kind::{Kind, intel_dump};
use std::path::Path;
use unwedge_base::{Diagnostic, Memory, Span};
use unwedge_capture::intel::BlockKind;
use unwedge_intel::lrc::{Image, Layout, Target};
use unwedge_intel::platform::Driver;
use unwedge_postmortem::intel::{engine_of_id, queue_engine};
use unwedge_view::intel::{Dump, memory_limit};

/// Longest hexadecimal dword.
const DIGITS: usize = 8;
/// Bytes of a context that are looked at: none has more.
const MOST: usize = 4 << 20;

/// A file that was read.
pub struct Source {
    /// Its name.
    pub name: String,
    /// What it has.
    pub contexts: Vec<Context>,
    /// What was lost.
    pub diagnostics: Vec<Diagnostic>,
    /// The memory of a dump, to look for what lies in a context.
    pub memory: Vec<Memory>,
    /// It is a dump, which says whose its contexts are.
    pub is_dump: bool,
}

/// A context.
pub struct Context {
    words: Vec<u32>,
    /// Whose dump it is from, where it is from one: that says what it begins with.
    driver: Option<Driver>,
    /// Whose it is, where the file says.
    target: Option<Target>,
    /// `rcs0, HW context`; empty for a file that is a context.
    pub title: String,
    /// Where it lies in the device's table.
    pub address: Option<u64>,
}

impl Source {
    /// Opens a file. Bytes are dwords; text of nothing but hexadecimal dwords is those. `said` is what was said of it.
    pub fn open(path: &Path, said: &LrcTarget, global: &Global) -> Result<Source, Failure> {
        // An image may begin as other files do: whose it is is said of an image, and what no image can be has text.
        let is_image = said.platform.is_some() && said.engine.is_some();
        let input = Input::open(path, global.max_size)?;
        match Kind::sniff(&input.bytes) {
            Kind::I915ErrorState | Kind::XeDevcore => Source::of_dump(&input, global.max_size),
            Kind::Empty => Err(Failure::Unusable(format!(
                "{}: empty: a context image has a page of 4096 bytes at least",
                input.name
            ))),
            Kind::Text | Kind::Binary => Ok(Source::of_image(input)),
            Kind::RdCapture | Kind::Elf if is_image => Ok(Source::of_image(input)),
            kind => Err(Failure::Unusable(format!(
                "{}: {}, neither a context image nor a dump of i915 or xe",
                input.name,
                kind.describe()
            ))),
        }
    }

    fn of_image(input: Input) -> Source {
        let Input { name, bytes, mut diagnostics, .. } = input;
        let words = match std::str::from_utf8(&bytes).ok().and_then(hexadecimal) {
            Some(words) => words,
            None => {
                let (words, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    let span = Span::new(bytes.len() - rest.len(), bytes.len());
                    let message = format!("{} bytes at the end are no dword", rest.len());
                    diagnostics.push(Diagnostic::loss(span, message));
                }
                words.iter().map(|&w| u32::from_le_bytes(w)).collect()
            }
        };
        let context = Context { words, driver: None, target: None, title: String::new(), address: None };
        Source { name, contexts: vec![context], diagnostics, memory: Vec::new(), is_dump: false }
    }

    /// Of a dump of i915 or xe.
    pub fn of_dump(input: &Input, max_size: u64) -> Result<Source, Failure> {
        let nothing = || Failure::Unusable(format!("{}: there is no context in this dump", input.name));
        let dump = intel_dump(&input.bytes).ok_or_else(nothing)?;
        let device = dump.graphics();
        let mut diagnostics = input.diagnostics.clone();
        diagnostics.extend(dump.diagnostics().iter().cloned());
        let mut contexts = Vec::new();
        for block in dump.blocks().iter().filter(|b| b.kind == BlockKind::HwContext) {
            let engine = match &dump {
                Dump::I915(_) => block.engine().map(engine_of_id),
                Dump::Xe(xe) => queue_engine(xe),
            };
            let Some(decoded) = block.data.as_ref().map(|data| data.decode(MOST)) else { continue };
            diagnostics.extend(decoded.diagnostic(&block.name, block.span));
            let owner = engine.map_or_else(|| block.owner.clone().into_owned(), |e| e.to_string());
            contexts.push(Context {
                driver: Some(device.driver),
                words: decoded.dwords,
                target: device.version.zip(engine).map(|(version, engine)| Target {
                    driver: device.driver,
                    version,
                    engine,
                }),
                title: if owner.is_empty() {
                    block.name.to_string()
                } else {
                    format!("{owner}, {}", block.name)
                },
                address: block.address,
            });
        }
        if contexts.is_empty() {
            return Err(nothing());
        }
        let limit = memory_limit(&dump, max_size);
        let memory = match &dump {
            Dump::I915(state) => vec![state.ggtt(limit).memory],
            Dump::Xe(xe) => vec![xe.ggtt(limit).memory, xe.ppgtt(limit).memory],
        };
        Ok(Source { name: input.name.clone(), contexts, diagnostics, memory, is_dump: true })
    }

    /// The contexts that are asked for: an engine's, or a number; all of them where nothing is.
    pub fn chosen(&self, which: Option<&str>) -> Result<Vec<&Context>, Failure> {
        let Some(which) = which else { return Ok(self.contexts.iter().collect()) };
        let by_number = which.parse::<usize>().ok().and_then(|n| self.contexts.get(n));
        let of_engine = |c: &&Context| c.title.split(',').next().is_some_and(|engine| engine == which);
        let chosen: Vec<_> = match by_number {
            Some(context) => vec![context],
            None => self.contexts.iter().filter(of_engine).collect(),
        };
        if chosen.is_empty() { Err(self.choice(&format!("--context {which}"))) } else { Ok(chosen) }
    }

    /// The one context that is asked for.
    pub fn only(&self, which: Option<&str>) -> Result<&Context, Failure> {
        match self.chosen(which)?[..] {
            [context] => Ok(context),
            _ => Err(self.choice("--context is missing")),
        }
    }

    fn choice(&self, what: &str) -> Failure {
        if !self.is_dump {
            return Failure::Usage(format!("{what}: {} is one context", self.name));
        }
        let list = self.contexts.iter().enumerate().map(|(i, c)| format!("{i} ({})", c.place()));
        Failure::Usage(format!("{what}: {} has {}", self.name, list.collect::<Vec<_>>().join(", ")))
    }
}

impl Context {
    /// `rcs0, HW context at 0x00200000`.
    pub fn place(&self) -> String {
        let at = self.address.map_or(String::new(), |at| format!(" at 0x{at:08x}"));
        format!("{}{at}", self.title)
    }

    /// The image, with its register page where it is asked for, else where the file says.
    pub fn image(&self, page: Option<usize>) -> Result<Image<'_>, Failure> {
        let image = match self.driver {
            Some(driver) => Image::of_dump(driver, &self.words),
            None => Image::new(&self.words),
        };
        let Some(page) = page else { return Ok(image) };
        if page >= image.pages().max(1) {
            let pages = image.pages().max(1) - 1;
            return Err(Failure::Usage(format!("--page {page}: the image has the pages 0 to {pages}")));
        }
        Ok(image.with_page(page))
    }

    /// Its layout: as it was asked for, and where it was not, as the dump says. `None` where neither says, or the dump
    /// says what cannot be.
    pub fn layout(&self, args: &LrcTarget) -> Result<Option<Layout>, Failure> {
        if args.platform.is_none() && args.engine.is_none() && args.driver.is_none() {
            return Ok(self.told_layout());
        }
        super::target(args, self.target)?.map(layout).transpose()
    }

    /// Its layout as the dump says.
    pub fn told_layout(&self) -> Option<Layout> {
        self.target.and_then(|target| Layout::of(target).ok())
    }
}

/// Dwords between blanks; what ends in a colon or stands in brackets is where they are.
fn hexadecimal(text: &str) -> Option<Vec<u32>> {
    let place = |token: &str| token.ends_with(':') || token.starts_with('[') && token.ends_with(']');
    let word = |token: &str| {
        let digits = token.strip_prefix("0x").unwrap_or(token);
        let fits = digits.len() <= DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit());
        fits.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    text.split_whitespace().filter(|token| !place(token)).map(word).collect()
}
