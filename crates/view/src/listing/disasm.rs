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

/// Bytes of a listing that are collected before they are handed on.
const PART: usize = 16 << 10;

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
        let cost = match listings.find(code, how) {
            Some(listing) => {
                listing.iter().for_each(|part| _ = text.bytes(part));
                length(listing) as u64 / TEXT_PER_DWORD
            }
            None => {
                let mut out = ListingOut::new(text, Listings::room(code));
                let read = list(code, how, &mut out);
                let cost = out.length as u64 / TEXT_PER_DWORD + read as u64 / READ;
                if let Some(listing) = out.kept {
                    listings.keep(code, how, listing);
                }
                cost
            }
        };
        text.code_budget = budget.saturating_sub(cost);
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

/// A listing on its way to the text, in parts: of code that goes on and on it is much longer than the code.
struct ListingOut<'a, 'o> {
    text: &'a mut TextOut<'o>,
    part: Vec<u8>,
    length: usize,
    /// All of it so far, unless that is more than there is room for.
    kept: Option<Vec<Box<[u8]>>>,
    /// Bytes of a listing that may be remembered.
    room: usize,
}

impl<'a, 'o> ListingOut<'a, 'o> {
    fn new(text: &'a mut TextOut<'o>, room: usize) -> ListingOut<'a, 'o> {
        ListingOut { text, part: Vec::new(), length: 0, kept: Some(Vec::new()), room }
    }

    /// After each line.
    fn end(&mut self) {
        if self.part.len() >= PART {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        self.text.bytes(&self.part);
        self.length += self.part.len();
        if self.length > self.room {
            self.kept = None;
        }
        if let Some(kept) = &mut self.kept {
            kept.push(self.part.as_slice().into());
        }
        self.part.clear();
    }
}

/// Bytes of a listing.
fn length(parts: &[Box<[u8]>]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// Listings of code that has been shown.
#[derive(Debug, Default)]
pub struct Listings {
    /// Listings by where the code lies: what follows a shader may be much, and is not looked at again.
    places: HashMap<(usize, How), Range<usize>>,
    /// By hash of code and [`How`]. Of two with the same hash, the later one stays.
    known: HashMap<u64, CachedListing>,
    /// Of all listings.
    parts: Vec<Box<[u8]>>,
    /// Bytes of code and text.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct CachedListing {
    how: How,
    words: Box<[u32]>,
    parts: Range<usize>,
}

impl Listings {
    /// Bytes of code and text remembered; beyond that all is forgotten.
    const MOST: usize = 2 << 20;

    /// More dwords than this are not remembered by what they are, only by where they lie.
    const LONG: usize = 1 << 14;

    /// Other code may now lie where some lay that has been shown.
    pub(super) fn forget_places(&mut self) {
        self.places.clear();
    }

    fn has_place(&self, code: Dwords<'_>, how: How) -> bool {
        self.places.contains_key(&(place(code), how))
    }

    /// Bytes that a listing of this code may have to be remembered.
    fn room(code: Dwords<'_>) -> usize {
        (Self::MOST / 4).saturating_sub(words(code).map_or(0, size_of_val))
    }

    /// A listing that is remembered.
    fn find(&mut self, code: Dwords<'_>, how: How) -> Option<&[Box<[u8]>]> {
        let place = (place(code), how);
        let parts = match self.places.get(&place) {
            Some(parts) => parts.clone(),
            None => {
                let words = words(code)?;
                let known = self.known.get(&hash(words, how))?;
                if known.how != how || *known.words != *words {
                    return None;
                }
                let parts = known.parts.clone();
                self.places.insert(place, parts.clone());
                parts
            }
        };
        self.parts.get(parts)
    }

    /// Remembers a listing; forgets everything else if that is too much.
    fn keep(&mut self, code: Dwords<'_>, how: How, listing: Vec<Box<[u8]>>) {
        let words = words(code);
        let bytes = words.map_or(0, size_of_val) + length(&listing);
        if self.bytes + bytes > Self::MOST {
            *self = Listings::default();
        }
        self.bytes += bytes;
        let parts = self.parts.len()..self.parts.len() + listing.len();
        self.parts.extend(listing);
        if let Some(words) = words {
            let listing = CachedListing { how, words: words.into(), parts: parts.clone() };
            self.known.insert(hash(words, how), listing);
        }
        self.places.insert((place(code), how), parts);
    }
}

/// Where code lies in the memory of this process.
fn place(code: Dwords<'_>) -> usize {
    code.stored().as_ptr().addr()
}

/// The words that a listing is remembered by, unless there are too many.
fn words(code: Dwords<'_>) -> Option<&[u32]> {
    (code.stored().len() <= Listings::LONG).then_some(code.stored())
}

fn hash(words: &[u32], how: How) -> u64 {
    let mut hasher = DefaultHasher::new();
    (how, words).hash(&mut hasher);
    hasher.finish()
}

/// Makes the listing. Returns how many dwords were read for it.
fn list(code: Dwords<'_>, how: How, out: &mut ListingOut<'_, '_>) -> usize {
    let How { shader, generation, level, cut, .. } = how;
    let read = match shader {
        Shader::Ir3 { stats } => {
            let gpu_id = 100 * generation.number();
            let mut listing = ir3::Ir3Listing::new(code, ir3::Ir3ListingOptions { gpu_id, raw: true, level });
            while listing.instruction(&mut out.part) {
                out.end();
            }
            if stats {
                ir3::Stats::of(code.iter64().take(listing.listed()), gpu_id).write(
                    gpu_id,
                    level,
                    &mut out.part,
                );
            }
            2 * listing.listed()
        }
        Shader::Ir2Vertex | Shader::Ir2Fragment => {
            let stage = match shader {
                Shader::Ir2Vertex => ir2::ShaderStage::Vertex,
                _ => ir2::ShaderStage::Fragment,
            };
            let how = ir2::Ir2ListingOptions { stage, tabs: level + 1, words: true, complete: false };
            // Of as many words as an instruction can address.
            out.part = ir2::listing(code, &how).into_bytes();
            code.len()
        }
    };
    if cut && read >= code.len() {
        out.part.extend_from_slice(b"; the rest is not shown: too long for a shader\n");
    }
    out.hand_on();
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(level: usize) -> How {
        How { shader: Shader::Ir2Vertex, generation: Generation::A6xx, level, dwords: 2, cut: false }
    }

    /// The remembered listing, or one made now; and whether it was remembered.
    fn get(listings: &mut Listings, words: &[u32], level: usize, made: &[u8]) -> (Vec<u8>, bool) {
        let code = Dwords::from(words);
        let found = listings.find(code, how(level)).map(<[Box<[u8]>]>::concat);
        let known = found.is_some();
        let text = found.unwrap_or_else(|| {
            listings.keep(code, how(level), vec![made.into()]);
            made.to_vec()
        });
        (text, known)
    }

    #[test]
    fn remembered_listings_are_those_of_the_code() {
        let mut listings = Listings::default();
        for (words, level, known) in
            [([1, 2], 0, false), ([3, 2], 0, false), ([1, 2], 1, false), ([1, 2], 0, true), ([3, 2], 0, true)]
        {
            listings.forget_places();
            let text = vec![words[0] as u8; 2 + level];
            assert_eq!(get(&mut listings, &words, level, &text), (text, known));
        }
    }

    #[test]
    fn much_code_is_remembered_by_its_place() {
        let words = vec![7; Listings::LONG + 2];
        let code = Dwords::from(&words[..]);
        let mut listings = Listings::default();
        for (level, forget, known) in
            [(0, false, false), (0, false, true), (1, false, false), (1, true, false)]
        {
            if forget {
                listings.forget_places();
            }
            assert_eq!(listings.has_place(code, how(level)), known);
            assert_eq!(get(&mut listings, &words, level, &[level as u8]), (vec![level as u8], known));
        }
        assert!(listings.known.is_empty());
    }

    #[test]
    fn little_is_remembered() {
        let mut listings = Listings::default();
        for i in 0..100_u32 {
            let text = vec![i as u8; Listings::MOST / 8];
            listings.forget_places();
            assert_eq!(get(&mut listings, &[i], 0, &text), (text, false), "listing {i}");
            assert!(length(&listings.parts) <= Listings::MOST);
        }
    }

    /// What is shown of code, and what is remembered of it.
    fn shown(code: Dwords<'_>, times: usize) -> (Vec<u8>, usize) {
        let mut out = Vec::new();
        let mut text = TextOut::new(&mut out, u64::MAX);
        for _ in 0..times {
            disassemble(&mut text, code, Shader::Ir3 { stats: false }, Generation::A6xx, 0);
            assert!(text.buffer().capacity() <= 1 << 18, "{} bytes wait", text.buffer().capacity());
        }
        text.finish();
        let remembered = length(&text.listings.parts);
        drop(text);
        (out, remembered)
    }

    #[test]
    fn claimed_code_is_shown_and_not_remembered() {
        // `nop` and nothing else.
        let (text, remembered) = shown(Dwords::new(&[], LONGEST + 2), 1);
        let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        assert_eq!(lines.len(), LONGEST / 2 + 2);
        assert_eq!(lines[LONGEST / 2 - 1], b":0:524287:524287[00000000x_00000000x] nop");
        assert_eq!(lines[LONGEST / 2], b"; the rest is not shown: too long for a shader");
        assert_eq!(remembered, 0);
    }

    #[test]
    fn a_remembered_listing_of_several_parts_is_shown_again() {
        let code = Dwords::new(&[], 4096);
        let (once, remembered) = shown(code, 1);
        assert!(once.len() > 2 * PART);
        assert_eq!(remembered, once.len());
        assert_eq!(shown(code, 3), (once.repeat(3), remembered));
    }
}
