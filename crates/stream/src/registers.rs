//! Registers as the commands of a walk leave them.
//!
//! Never: reading packets. What no packet wrote is unknown, not zero.

/// Registers per page.
const PAGE: usize = 256;
/// Words of a bit set over a page.
const WORDS: usize = PAGE / 64;

/// A run of registers, allocated when the first of them is written.
#[derive(Clone, Debug)]
struct Page {
    values: [u32; PAGE],
    /// Values at the draw before.
    last: [u32; PAGE],
    written: [u64; WORDS],
    rewritten: [u64; WORDS],
}

impl Page {
    const EMPTY: Page =
        Page { values: [0; PAGE], last: [0; PAGE], written: [0; WORDS], rewritten: [0; WORDS] };
}

/// Word and bit of a register in its page's bit sets.
fn position(reg: u32) -> (usize, u64) {
    let i = reg as usize % PAGE;
    (i / 64, 1 << (i % 64))
}

/// Positions of the set bits of some words.
fn ones<'a>(words: impl IntoIterator<Item = &'a u64>) -> impl Iterator<Item = usize> {
    words.into_iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let at = rest.trailing_zeros() as usize;
            rest &= rest.checked_sub(1)?;
            Some(i * 64 + at)
        })
    })
}

/// Registers of a GPU by their offset, with what was written and when. Unwritten registers are unknown.
#[derive(Clone, Debug)]
pub struct Registers {
    pages: Vec<Option<Box<Page>>>,
    /// One bit per page that may hold rewritten registers.
    touched: Vec<u64>,
}

impl Default for Registers {
    /// The register space of Adreno's a5xx on.
    fn default() -> Registers {
        Registers::new(0x4_0000)
    }
}

impl Registers {
    /// Nothing written; offsets from `len` (rounded up to 256) on do not exist. Memory is used as registers are.
    pub fn new(len: usize) -> Registers {
        let pages = len.div_ceil(PAGE);
        Registers { pages: vec![None; pages], touched: vec![0; pages.div_ceil(64)] }
    }

    fn page(&self, reg: u32) -> Option<&Page> {
        self.pages.get(reg as usize / PAGE)?.as_deref()
    }

    /// Writes a register. Offsets outside the register space are ignored.
    #[inline]
    pub fn set(&mut self, reg: u32, value: u32) {
        let index = reg as usize / PAGE;
        let Some(slot) = self.pages.get_mut(index) else { return };
        let page = slot.get_or_insert_with(|| Box::new(Page::EMPTY));
        let (word, bit) = position(reg);
        page.values[reg as usize % PAGE] = value;
        page.written[word] |= bit;
        page.rewritten[word] |= bit;
        self.touched[index / 64] |= 1 << (index % 64);
    }

    /// Makes a register unknown: something wrote it, but what is not known.
    pub fn forget(&mut self, reg: u32) {
        if let Some(Some(page)) = self.pages.get_mut(reg as usize / PAGE) {
            let (word, bit) = position(reg);
            page.written[word] &= !bit;
            page.rewritten[word] &= !bit;
        }
    }

    /// Makes every register unknown, as before the first packet; [`raw`](Registers::raw) keeps its values.
    pub fn reset(&mut self) {
        for page in self.pages.iter_mut().flatten() {
            **page = Page { values: page.values, ..Page::EMPTY };
        }
        self.touched.fill(0);
    }

    /// The value last written, if any packet wrote the register.
    pub fn get(&self, reg: u32) -> Option<u32> {
        let page = self.page(reg)?;
        let (word, bit) = position(reg);
        (page.written[word] & bit != 0).then(|| page.values[reg as usize % PAGE])
    }

    /// The value last written, 0 when none was: for listings that print it so.
    pub fn raw(&self, reg: u32) -> u32 {
        self.page(reg).map_or(0, |page| page.values[reg as usize % PAGE])
    }

    /// The value it had at the draw before, 0 when it had none: for listings that mark changes.
    pub fn previous(&self, reg: u32) -> u32 {
        self.page(reg).map_or(0, |page| page.last[reg as usize % PAGE])
    }

    /// Written since the last draw.
    pub fn rewritten(&self, reg: u32) -> bool {
        let (word, bit) = position(reg);
        self.page(reg).is_some_and(|page| page.rewritten[word] & bit != 0)
    }

    /// Registers written since the last draw, by offset.
    pub fn iter_rewritten(&self) -> impl Iterator<Item = u32> {
        ones(&self.touched).flat_map(|p| {
            let page = self.pages.get(p).and_then(Option::as_deref).unwrap_or(&Page::EMPTY);
            ones(&page.rewritten).map(move |i| (p * PAGE + i) as u32)
        })
    }

    /// Every register written so far, by offset.
    pub fn iter_written(&self) -> impl Iterator<Item = u32> {
        let pages = self.pages.iter().enumerate().filter_map(|(p, page)| Some((p, page.as_deref()?)));
        pages.flat_map(|(p, page)| ones(&page.written).map(move |i| (p * PAGE + i) as u32))
    }

    /// Nothing counts as rewritten any more, but no draw has been.
    pub fn forget_rewritten(&mut self) {
        for p in ones(&self.touched) {
            if let Some(Some(page)) = self.pages.get_mut(p) {
                page.rewritten = [0; WORDS];
            }
        }
        self.touched.fill(0);
    }

    /// A draw has been reported: its values become the [`previous`](Registers::previous) ones, and nothing counts as
    /// rewritten. Whoever keeps the registers of a walk does this after each piece of work that it has reported.
    pub fn mark_draw(&mut self) {
        self.mark_work(|_| true);
    }

    /// The same for some of the registers alone, as where a blit has registers of its own.
    pub fn mark_work(&mut self, takes: impl Fn(u32) -> bool) {
        for (first, pages) in (0..).step_by(64).zip(&mut self.touched) {
            for p in ones(&[*pages]) {
                let Some(Some(page)) = self.pages.get_mut(first + p) else { continue };
                let mut left = [0; WORDS];
                for i in ones(&page.rewritten) {
                    if takes(((first + p) * PAGE + i) as u32) {
                        page.last[i] = page.values[i];
                    } else {
                        left[i / 64] |= 1 << (i % 64);
                    }
                }
                page.rewritten = left;
                if left == [0; WORDS] {
                    *pages &= !(1 << p);
                }
            }
        }
    }
}
