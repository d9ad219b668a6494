//! Where the listings show shaders.
//!
//! The same code is shown again and again, for each draw and each tile: its listing is made once and remembered.

use super::{CffText, TextOut};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use unwedge_base::{Dwords, Generation};
use unwedge_isa::{ir2, ir3};
use unwedge_stream::adreno::Stage;

/// What kind of code to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shader {
    /// ir3 (a3xx on); with counts of its instructions and registers behind it.
    Ir3 {
        /// Counts after the listing.
        stats: bool,
    },
    /// a2xx vertex code.
    Ir2Vertex,
    /// a2xx fragment code.
    Ir2Fragment,
}

/// How cffdump's files of a stage's ir3 code end. It makes none of the stages of tessellation.
fn extension(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::Vertex => Some("vo3"),
        Stage::Geometry => Some("go3"),
        Stage::Fragment => Some("fo3"),
        Stage::Compute => Some("co3"),
        Stage::TessControl | Stage::TessEval => None,
    }
}

impl CffText<'_, '_, '_> {
    /// Hands a shader of a3xx on to whoever takes them.
    pub(super) fn hand_on_ir3(&mut self, stage: Option<Stage>, code: Dwords<'_>) {
        if let Some(extension) = stage.and_then(extension) {
            self.hand_on(extension, code);
        }
    }

    /// Hands a shader to whoever takes them.
    pub(super) fn hand_on(&mut self, extension: &'static str, code: Dwords<'_>) {
        if let Some(take) = &mut self.shaders {
            take(extension, code);
        }
    }
}

/// Bytes of text that are allowed for each dword of shaders in all: streams can point at the same code again and again,
/// and disassembling is the dearest thing a listing does.
pub const TEXT_PER_DWORD: u64 = 64;
/// Dwords shown of one shader. Shaders of real programs are far shorter; what lies behind them may be a whole buffer of
/// zeros.
const LONGEST: usize = 1 << 20;
/// So many dwords that are read for their text cost as much as one that is shown.
const READ: u64 = 4;
/// The same of those that may be code and lie behind it: they are searched for branches into it.
const BEHIND: u64 = 16;

/// Shows a shader, with its words. `code` may go on behind it.
pub fn disassemble(
    text: &mut TextOut<'_>,
    code: Dwords<'_>,
    shader: Shader,
    generation: Generation,
    level: usize,
) {
    if text.is_muted() {
        return;
    }
    let cut = code.len() > LONGEST;
    let code = code.take(LONGEST);
    let how = How { shader, generation, level, dwords: code.len(), cut };
    let mut listings = std::mem::take(&mut text.listings);
    let looking = if listings.has_place(code, how) { 1 } else { 1 + code.len() as u64 / BEHIND };
    if let Some(budget) = text.code_budget.checked_sub(looking) {
        let mut read = 0;
        let listing = listings.get(code, how, || {
            let listing;
            (listing, read) = self::listing(code, how);
            listing
        });
        let cost = listing.len() as u64 / TEXT_PER_DWORD + read as u64 / READ;
        text.code_budget = budget.saturating_sub(cost);
        text.bytes(listing);
    } else {
        text.level(level).str("; not shown: too much code in all").end();
    }
    text.listings = listings;
}

/// What the listing of some words depends on beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct How {
    shader: Shader,
    generation: Generation,
    level: usize,
    /// With the zeros that are not stored.
    dwords: usize,
    /// There is more of it.
    cut: bool,
}

/// Listings of code that has been shown.
#[derive(Debug, Default)]
pub struct Listings {
    /// Text by where the code lies: what lies behind a shader may be much, and is not looked at again.
    places: HashMap<(usize, How), Range<usize>>,
    /// By hash of code and [`How`]. Of two with the same hash, the later one stays.
    known: HashMap<u64, CachedListing>,
    words: Vec<u32>,
    text: Vec<u8>,
    /// One that is not remembered.
    last: Vec<u8>,
}

#[derive(Clone, Debug)]
struct CachedListing {
    how: How,
    words: Range<usize>,
    text: Range<usize>,
}

impl Listings {
    /// Bytes of code and text remembered; beyond that all is forgotten.
    const MOST: usize = 4 << 20;

    /// More dwords than this are not remembered by what they are, only by where they lie.
    const LONG: usize = 1 << 14;

    /// Other code may now lie where some lay that has been shown.
    pub(super) fn forget_places(&mut self) {
        self.places.clear();
    }

    fn has_place(&self, code: Dwords<'_>, how: How) -> bool {
        self.places.contains_key(&(place(code), how))
    }

    fn get(&mut self, code: Dwords<'_>, how: How, make: impl FnOnce() -> Vec<u8>) -> &[u8] {
        let place = (place(code), how);
        if let Some(text) = self.places.get(&place) {
            return self.text.get(text.clone()).unwrap_or_default();
        }
        let text = if code.stored().len() > Self::LONG {
            let text = make();
            if text.len() > Self::MOST / 4 {
                self.last = text;
                return &self.last;
            }
            self.keep(&[], &text).1
        } else {
            match self.by_words(code, how, make) {
                Some(text) => text,
                None => return &self.last,
            }
        };
        self.places.insert(place, text.clone());
        self.text.get(text).unwrap_or_default()
    }

    /// The listing of words that are few; `None` if it is not remembered, but the last one.
    fn by_words(
        &mut self,
        code: Dwords<'_>,
        how: How,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Option<Range<usize>> {
        let mut hasher = DefaultHasher::new();
        (how, code.stored()).hash(&mut hasher);
        let hash = hasher.finish();
        let same = |known: &&CachedListing| {
            known.how == how && self.words.get(known.words.clone()) == Some(code.stored())
        };
        if let Some(known) = self.known.get(&hash).filter(same) {
            return Some(known.text.clone());
        }
        let text = make();
        if 4 * code.stored().len() + text.len() > Self::MOST / 4 {
            self.last = text;
            return None;
        }
        let (words, text) = self.keep(code.stored(), &text);
        self.known.insert(hash, CachedListing { how, words, text: text.clone() });
        Some(text)
    }

    /// Keeps words and text; forgets everything else if that is too much. Returns where they are.
    fn keep(&mut self, words: &[u32], text: &[u8]) -> (Range<usize>, Range<usize>) {
        if 4 * (self.words.len() + words.len()) + self.text.len() + text.len() > Self::MOST {
            *self = Listings::default();
        }
        let place =
            (self.words.len()..self.words.len() + words.len(), self.text.len()..self.text.len() + text.len());
        self.words.extend_from_slice(words);
        self.text.extend_from_slice(text);
        place
    }
}

/// Where code lies in the memory of this process.
fn place(code: Dwords<'_>) -> usize {
    code.stored().as_ptr().addr()
}

/// The text, and how many dwords were read for it.
fn listing(code: Dwords<'_>, how: How) -> (Vec<u8>, usize) {
    let How { shader, generation, level, cut, .. } = how;
    let mut text = Vec::new();
    let (stage, read) = match shader {
        Shader::Ir3 { stats } => {
            let words: Vec<u64> = (0..code.len() / 2).filter_map(|i| code.get64(2 * i)).collect();
            let listing = ir3::Ir3ListingOptions { gpu_id: 100 * generation.number(), raw: true, level };
            let listed = ir3::disassemble(&words, &listing, &mut text);
            if stats {
                let words = words.get(..listed).unwrap_or(&words);
                ir3::Stats::of(words, listing.gpu_id).write(listing.gpu_id, level, &mut text);
            }
            (None, 2 * listed)
        }
        Shader::Ir2Vertex => (Some(ir2::ShaderStage::Vertex), code.len()),
        Shader::Ir2Fragment => (Some(ir2::ShaderStage::Fragment), code.len()),
    };
    if let Some(stage) = stage {
        let how = ir2::Ir2ListingOptions { stage, tabs: level + 1, words: true, complete: false };
        text = ir2::listing(code, &how).into_bytes();
    }
    if cut && read >= code.len() {
        text.extend_from_slice(b"; the rest is not shown: too long for a shader\n");
    }
    (text, read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_listings_are_those_of_the_code() {
        let how = |level| How {
            shader: Shader::Ir2Vertex,
            generation: Generation::A6xx,
            level,
            dwords: 2,
            cut: false,
        };
        let mut listings = Listings::default();
        let mut made = 0;
        let mut show = |words: &[u32], level| {
            listings.forget_places();
            let text = vec![words[0] as u8; 2 + level];
            let shown = listings.get(Dwords::from(words), how(level), || {
                made += 1;
                text.clone()
            });
            assert_eq!(shown, text);
        };
        for (words, level) in [([1, 2], 0), ([3, 2], 0), ([1, 2], 1), ([1, 2], 0), ([3, 2], 0)] {
            show(&words, level);
        }
        assert_eq!(made, 3);
    }

    #[test]
    fn much_code_is_remembered_by_its_place() {
        let words = vec![7; Listings::LONG + 2];
        let code = Dwords::from(&words[..]);
        let how = |level| How {
            shader: Shader::Ir2Vertex,
            generation: Generation::A6xx,
            level,
            dwords: words.len(),
            cut: false,
        };
        let mut listings = Listings::default();
        for (level, forget, known) in
            [(0, false, false), (0, false, true), (1, false, false), (1, true, false)]
        {
            if forget {
                listings.forget_places();
            }
            assert_eq!(listings.has_place(code, how(level)), known);
            let mut made = false;
            let shown = listings.get(code, how(level), || {
                made = true;
                vec![level as u8]
            });
            assert_eq!(shown, [level as u8]);
            assert_eq!(made, !known);
        }
        assert!(listings.words.is_empty());
    }

    #[test]
    fn little_is_remembered() {
        let how =
            How { shader: Shader::Ir2Vertex, generation: Generation::A6xx, level: 0, dwords: 1, cut: false };
        let mut listings = Listings::default();
        for i in 0..100_u32 {
            let text = vec![i as u8; Listings::MOST / if i % 10 == 0 { 3 } else { 8 }];
            listings.forget_places();
            assert!(listings.get(Dwords::from(&[i][..]), how, || text.clone()) == text, "listing {i}");
            assert!(listings.text.capacity() <= Listings::MOST);
        }
    }
}
