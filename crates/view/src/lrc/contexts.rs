//! Context images: a file that is one, or those of a dump of i915 or xe.
//!
//! Never: opens a file.

use crate::intel::{IntelDump, memory_limit};
use crate::plural::counted;
use thiserror::Error;
use unwedge_base::{Diagnostic, Memory, Span};
use unwedge_capture::intel::MemoryBlockKind;
use unwedge_hw::intel::platform::IntelDriver;
use unwedge_intel::lrc::{LrcImage, LrcLayout, LrcOwner};
use unwedge_postmortem::intel::queue_engine;

/// Longest hexadecimal dword.
const DIGITS: usize = 8;
/// Bytes of a context that are looked at: none has more.
const MOST: usize = 4 << 20;

/// The contexts of a file.
pub struct Contexts {
    /// In the order of the file.
    pub contexts: Vec<Context>,
    /// What was lost.
    pub diagnostics: Vec<Diagnostic>,
    /// The memory of a dump, to look for what lies in a context.
    pub memory: Vec<Memory>,
    /// Whether they are from a dump, which says whose they are.
    pub is_dump: bool,
}

/// A page that an image does not have.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("--page {page}: the image has the pages 0 to {last}")]
pub struct PageError {
    /// The page that was asked for.
    pub page: usize,
    /// The image's last page.
    pub last: usize,
}

/// A choice that is not one of the contexts of a file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ContextChoiceError {
    /// The file is one context.
    #[error("{choice}: {name} is one context")]
    IsOne {
        /// The choice.
        choice: String,
        /// What messages call the file.
        name: String,
    },
    /// The file has others.
    #[error("{choice}: {name} has {contexts}")]
    HasOthers {
        /// The choice.
        choice: String,
        /// What messages call the file.
        name: String,
        /// `0 (rcs0, HW context at 0x00200000), 1 (…)`.
        contexts: String,
    },
}

/// A context.
pub struct Context {
    words: Vec<u32>,
    /// Whose dump it is from, where it is from one: that says what it begins with.
    driver: Option<IntelDriver>,
    /// Whose it is, where the file says.
    pub target: Option<LrcOwner>,
    /// `rcs0, HW context`; empty for a file that is a context.
    pub title: String,
    /// Where it lies in the device's table.
    pub address: Option<u64>,
}

impl Contexts {
    /// A file that is one context. Bytes are dwords; text that is nothing but hexadecimal dwords is those.
    pub fn of_image(bytes: &[u8]) -> Contexts {
        let mut diagnostics = Vec::new();
        let words = match std::str::from_utf8(bytes).ok().and_then(hexadecimal) {
            Some(words) => words,
            None => {
                let (words, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    let span = Span::new(bytes.len() - rest.len(), bytes.len());
                    let bytes = counted(rest.len() as u64, "byte at the end is", "bytes at the end are");
                    let message = format!("{bytes} not a whole dword");
                    diagnostics.push(Diagnostic::loss(span, message));
                }
                words.iter().map(|&w| u32::from_le_bytes(w)).collect()
            }
        };
        let context = Context { words, driver: None, target: None, title: String::new(), address: None };
        Contexts { contexts: vec![context], diagnostics, memory: Vec::new(), is_dump: false }
    }

    /// Those of a dump of i915 or xe, which may have none. Of its memory so much is unpacked as `max_size` allows.
    pub fn of_dump(dump: IntelDump<'_, '_>, max_size: u64) -> Contexts {
        let device = dump.graphics();
        let mut diagnostics = dump.diagnostics().to_vec();
        let mut contexts = Vec::new();
        for block in dump.blocks().iter().filter(|b| b.kind == MemoryBlockKind::HwContext) {
            let engine = match dump {
                IntelDump::I915(_) => block.engine(),
                IntelDump::Xe(xe) => queue_engine(xe),
            };
            let Some(decoded) = block.data.as_ref().map(|data| data.decode(MOST)) else { continue };
            diagnostics.extend(decoded.diagnostic(&block.name, block.span));
            let owner = engine.map_or_else(|| block.owner.clone().into_owned(), |e| e.to_string());
            contexts.push(Context {
                driver: Some(device.driver),
                words: decoded.dwords,
                target: device.version.zip(engine).map(|(version, engine)| LrcOwner {
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
        let limit = memory_limit(dump.bytes(), max_size);
        let memory = match dump {
            IntelDump::I915(state) => vec![state.ggtt(limit).memory],
            IntelDump::Xe(xe) => vec![xe.ggtt(limit).memory, xe.ppgtt(limit).memory],
        };
        Contexts { contexts, diagnostics, memory, is_dump: true }
    }

    /// The contexts that are asked for: an engine's, or a number; all of them where nothing is. `name` is what messages call
    /// the file.
    ///
    /// # Errors
    /// When there is no such context.
    pub fn chosen(&self, which: Option<&str>, name: &str) -> Result<Vec<&Context>, ContextChoiceError> {
        let Some(which) = which else { return Ok(self.contexts.iter().collect()) };
        let by_number = which.parse::<usize>().ok().and_then(|n| self.contexts.get(n));
        let of_engine = |c: &&Context| c.title.split(',').next().is_some_and(|engine| engine == which);
        let chosen: Vec<_> = match by_number {
            Some(context) => vec![context],
            None => self.contexts.iter().filter(of_engine).collect(),
        };
        if chosen.is_empty() { Err(self.wrong(format!("--context {which}"), name)) } else { Ok(chosen) }
    }

    /// The one context that is asked for.
    ///
    /// # Errors
    /// When there is no such context, or more than one.
    pub fn only(&self, which: Option<&str>, name: &str) -> Result<&Context, ContextChoiceError> {
        match self.chosen(which, name)?[..] {
            [context] => Ok(context),
            _ => Err(self.wrong("--context is missing".to_owned(), name)),
        }
    }

    fn wrong(&self, choice: String, name: &str) -> ContextChoiceError {
        let name = name.to_owned();
        if !self.is_dump {
            return ContextChoiceError::IsOne { choice, name };
        }
        let list = self.contexts.iter().enumerate().map(|(i, c)| format!("{i} ({})", c.place()));
        ContextChoiceError::HasOthers { choice, name, contexts: list.collect::<Vec<_>>().join(", ") }
    }
}

impl Context {
    /// `rcs0, HW context at 0x00200000`.
    pub fn place(&self) -> String {
        let at = self.address.map_or(String::new(), |at| format!(" at 0x{at:08x}"));
        format!("{}{at}", self.title)
    }

    /// The image, with its register page where it is asked for, else where the file says.
    ///
    /// # Errors
    /// When the image does not have the page.
    pub fn image(&self, page: Option<usize>) -> Result<LrcImage<'_>, PageError> {
        let image = match self.driver {
            Some(driver) => LrcImage::of_dump(driver, &self.words),
            None => LrcImage::new(&self.words),
        };
        let Some(page) = page else { return Ok(image) };
        if page >= image.pages().max(1) {
            return Err(PageError { page, last: image.pages().max(1) - 1 });
        }
        Ok(image.with_page(page))
    }

    /// Its layout as the dump says.
    pub fn told_layout(&self) -> Option<LrcLayout> {
        self.target.and_then(|target| LrcLayout::of(target).ok())
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
