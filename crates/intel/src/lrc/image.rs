//! A context's image in memory: which of its pages has the registers.

use super::PAGE;
use super::commands::LOAD;
use super::registers::offset;
use std::ops::Range;

/// The page that has the registers, where the status page is the first.
const USUAL: usize = 1;
/// Where it is in images that begin with it, or with the page shared with the GuC that some kernels had.
const UNUSUAL: [usize; 2] = [0, 2];

/// An image, as dwords.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    words: &'a [u32],
    page: usize,
}

impl<'a> Image<'a> {
    /// An image of a page or less is the register page. Of a longer one the second page is, unless another one looks like it
    /// and the second does not.
    pub fn new(words: &'a [u32]) -> Image<'a> {
        if words.len() <= PAGE {
            return Image { words, page: 0 };
        }
        let page = |page: usize| Image { words, page };
        let unusual = || UNUSUAL.into_iter().find(|&at| looks_like_registers(page(at).registers()));
        if looks_like_registers(page(USUAL).registers()) {
            return page(USUAL);
        }
        page(unusual().unwrap_or(USUAL))
    }

    /// The register page is this one.
    pub fn with_page(self, page: usize) -> Image<'a> {
        Image { page, ..self }
    }

    /// Which page has the registers.
    pub fn page(&self) -> usize {
        self.page
    }

    /// That page is where the hardware looks for it, as far as one knows.
    pub fn is_usual(&self) -> bool {
        self.page == USUAL || self.words.len() <= PAGE
    }

    /// The register page begins as all of them do: only then is it known to be the one, where there are several.
    pub fn is_recognized(&self) -> bool {
        self.words.len() <= PAGE || looks_like_registers(self.registers())
    }

    /// All of it.
    pub fn words(&self) -> &'a [u32] {
        self.words
    }

    /// How many pages it has, a part of one included.
    pub fn pages(&self) -> usize {
        self.words.len().div_ceil(PAGE)
    }

    /// A page; shorter where the image is cut, empty where it has none.
    pub fn nth(&self, page: usize) -> &'a [u32] {
        let start = page.saturating_mul(PAGE).min(self.words.len());
        self.words.get(start..self.words.len().min(start + PAGE)).unwrap_or_default()
    }

    /// The register page.
    pub fn registers(&self) -> &'a [u32] {
        self.nth(self.page)
    }

    /// The dwords from the register page on: the engine's other state follows it.
    pub fn state(&self) -> &'a [u32] {
        self.words.get(self.page.saturating_mul(PAGE)..).unwrap_or_default()
    }
}

/// Every table begins so: an MI_NOOP, a load, CTXT_SR_CTL.
pub(crate) fn looks_like_registers(page: &[u32]) -> bool {
    const OF_ALL_MASKS: u32 = 0x7ff;
    matches!(page, [_, command, register, ..]
        if command & 0xff80_0000 == LOAD && register & OF_ALL_MASKS == offset::CONTEXT_CONTROL)
}

/// Ranges of dwords that are of the same kind: `same` compares one with the one before it.
pub(crate) fn runs(words: &[u32], same: impl Fn(u32, u32) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let rest = words.get(start..).filter(|rest| !rest.is_empty())?;
        at += 1 + rest.windows(2).take_while(|pair| matches!(pair, [a, b] if same(*a, *b))).count();
        Some(start..at)
    })
}
