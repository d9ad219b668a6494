//! A context's image in memory: which of its pages has the registers.

use super::PAGE;
use super::commands::LOAD;
use super::registers::offset;
use std::ops::Range;
use unwedge_hw::intel::platform::IntelDriver;

/// The page that has the registers, where the status page is the first.
const BEHIND_STATUS: usize = 1;
/// Where it is in images that begin with it, or with the page shared with the GuC that some kernels had.
const UNUSUAL: [usize; 2] = [0, 2];

/// An image, as dwords.
#[derive(Clone, Copy, Debug)]
pub struct LrcImage<'a> {
    words: &'a [u32],
    page: usize,
    /// The page that has the registers in an image of this origin.
    usual: usize,
}

impl<'a> LrcImage<'a> {
    /// One that says nothing of its origin: of a page or less, it is the register page. Of a longer one the second page is,
    /// unless another one looks like it and the second does not.
    pub fn new(words: &'a [u32]) -> LrcImage<'a> {
        if words.len() <= PAGE {
            LrcImage { words, page: 0, usual: 0 }
        } else {
            LrcImage::behind_status(words)
        }
    }

    /// What a dump holds, which may be cut anywhere: what xe calls HWCTX begins with the registers, what i915 calls HW
    /// context with the status page, or with what kernels had in front of it.
    pub fn of_dump(driver: IntelDriver, words: &'a [u32]) -> LrcImage<'a> {
        match driver {
            IntelDriver::Xe => LrcImage { words, page: 0, usual: 0 },
            IntelDriver::I915 => LrcImage::behind_status(words),
        }
    }

    fn behind_status(words: &'a [u32]) -> LrcImage<'a> {
        let page = |page: usize| LrcImage { words, page, usual: BEHIND_STATUS };
        let looks = |&at: &usize| looks_like_registers(page(at).registers());
        let found = [BEHIND_STATUS].into_iter().chain(UNUSUAL).find(looks);
        page(found.unwrap_or(BEHIND_STATUS))
    }

    /// The register page is this one.
    pub fn with_page(self, page: usize) -> LrcImage<'a> {
        LrcImage { page, ..self }
    }

    /// Which page has the registers; the image may be cut in front of it.
    pub fn page(&self) -> usize {
        self.page
    }

    /// Where it is in most images of this origin.
    pub fn usual_page(&self) -> usize {
        self.usual
    }

    /// It is known which page has the registers: all images of this origin have them there, or it begins as all register
    /// pages do. One that is cut in front of its register page has no page that could be another.
    pub fn is_recognized(&self) -> bool {
        let certain = self.usual == 0 && self.page == 0;
        certain || self.registers().is_empty() || looks_like_registers(self.registers())
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
