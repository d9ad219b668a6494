//! What happened to a context's image: poison, text, a page or a shifted copy in its place, another engine's context.
//!
//! Everything here is inferred from patterns; each finding has the range it was seen in, and how much of it fits.

use super::commands::BATCH_END;
use super::image::{looks_like_registers, runs};
use super::layout::{LayoutCheck, LrcLayout, LrcOwner};
use super::tables::Builtin;
use super::{LrcImage, PAGE, PageDword};
use std::ops::Range;
use unwedge_base::Memory;
use unwedge_hw::intel::platform::{Engine, IntelDriver, Platform};

/// Values that memory is filled with, by whom.
const FILLS: [(u32, &str); 12] = [
    (0, "zeros"),
    (0x5a5a_5a5a, "slab in use, or the redzone of a context"),
    (0x6b6b_6b6b, "freed slab"),
    (0xa5a5_a5a5, "end of a slab object"),
    (0xaaaa_aaaa, "freed page"),
    (0xbbbb_bbbb, "redzone of a free slab object"),
    (0xcccc_cccc, "freed init memory, or redzone of a slab object"),
    (0xdead_beef, "0xdeadbeef"),
    (0xdead_dead, "0xdeaddead"),
    (0xbaad_f00d, "0xbaadf00d"),
    (0xcafe_babe, "0xcafebabe"),
    (0xffff_ffff, "reads from a device that is gone"),
];
/// Fills shorter than this say nothing, outside of what the layout has.
const LONG_FILL: usize = 8;
/// Engines save runs of ones.
const LONG_ONES: usize = 256;
/// Other values are a fill only where the layout has something else, and this often.
const REPEATED: usize = 8;
/// Differences with fewer dwords between them are of one overwrite.
const NEAR: usize = 8;
/// Bytes of text, and different ones among them.
const TEXT: usize = 16;
const LETTERS: usize = 6;
/// Text is shown up to here.
const TEXT_SHOWN: usize = 64;
/// A copy has so many dwords that are not zero, or matches so many of the layout's in a row.
const COPIED: usize = 8;
/// So many overwritten ranges are looked for in a dump's memory.
const LOOKED_FOR: usize = 8;
/// Of the layout's dwords, so many percent make a context somebody's.
const LIKELY: usize = 80;

/// Something that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LrcFinding {
    /// The page of the image.
    pub page: usize,
    /// The dwords of that page.
    pub dwords: Range<usize>,
    /// What lies there.
    pub what: LrcRegion,
}

/// What lies somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LrcRegion {
    /// The register page is empty: the context was never saved, or its page was cleared.
    Blank,
    /// One value over and over, with the name of what fills memory with it.
    Fill {
        /// The value.
        value: u32,
        /// Who is known to write it.
        name: Option<&'static str>,
    },
    /// Text, its beginning.
    Text(String),
    /// The same as in another page of the image, at the same place.
    CopyOfPage(usize),
    /// The same as in other memory of a dump.
    CopyOfMemory {
        /// What the dump calls it.
        name: String,
        /// Where it begins.
        address: u64,
    },
    /// The layout, moved: this dword should be so many dwords before.
    Shifted {
        /// Dwords towards the end.
        by: isize,
        /// Commands and registers in a row that are there.
        matched: usize,
    },
    /// Another context: of which engine, platforms and drivers.
    OtherContext(ContextCandidate),
    /// The layout fits, but the registers are another engine's: the hardware adds the base itself and does not care.
    OtherBase(Engine),
    /// Not what the layout has, and nothing known.
    Overwritten {
        /// How many dwords differ.
        differences: usize,
    },
}

impl LrcRegion {
    /// For JSON: stable, lower case.
    pub fn id(&self) -> &'static str {
        match self {
            LrcRegion::Blank => "blank",
            LrcRegion::Fill { .. } => "fill",
            LrcRegion::Text(_) => "text",
            LrcRegion::CopyOfPage(_) => "copy-of-page",
            LrcRegion::CopyOfMemory { .. } => "copy-of-memory",
            LrcRegion::Shifted { .. } => "shifted",
            LrcRegion::OtherContext(_) => "other-context",
            LrcRegion::OtherBase(_) => "other-base",
            LrcRegion::Overwritten { .. } => "overwritten",
        }
    }
}

/// Whose context an image may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextCandidate {
    /// One that has the layout: the oldest platform, the driver that is usual for it.
    pub target: LrcOwner,
    /// The table.
    pub table: &'static str,
    /// All platforms that have it, by their short names.
    pub platforms: Vec<&'static str>,
    /// The drivers that have it.
    pub drivers: Vec<IntelDriver>,
    /// Commands and registers that are as the layout has them.
    pub matched: usize,
    /// Those it has.
    pub of: usize,
}

impl ContextCandidate {
    /// It has nothing that the layout has not.
    pub fn is_exact(&self) -> bool {
        self.matched == self.of
    }
}

/// Whose context a register page may be, the likeliest first: what fits as well as the first is in one candidate with it, or
/// follows. Platforms that the drivers lay out alike are one candidate.
pub fn identify(page: &[u32]) -> Vec<ContextCandidate> {
    let mut candidates: Vec<ContextCandidate> = Vec::new();
    for platform in Platform::all() {
        for &driver in platform.drivers() {
            for engine in Engine::all(platform.version()) {
                let target = LrcOwner { driver, version: platform.version(), engine };
                enter(&mut candidates, target, platform, page);
            }
        }
    }
    candidates.retain(|c| c.matched * 100 >= c.of * LIKELY);
    // The share first; of those with the same, the one that says most.
    candidates.sort_by(|a, b| (b.matched * a.of).cmp(&(a.matched * b.of)).then(b.of.cmp(&a.of)));
    candidates
}

fn enter(candidates: &mut Vec<ContextCandidate>, target: LrcOwner, platform: &Platform, page: &[u32]) {
    let Some(table) = Builtin::of(target.driver, target.version, target.engine.class) else { return };
    let base = target.engine.base(target.version);
    let is_relative = |t: &LrcOwner| t.version.major >= 11;
    let same = candidates.iter_mut().find(|c| {
        c.table == table.name()
            && c.target.engine == target.engine
            && c.target.engine.base(c.target.version) == base
            && is_relative(&c.target) == is_relative(&target)
    });
    if let Some(same) = same {
        if !same.platforms.contains(&platform.name()) {
            same.platforms.push(platform.name());
        }
        if !same.drivers.contains(&target.driver) {
            same.drivers.push(target.driver);
        }
        return;
    }
    let Ok(layout) = LrcLayout::of(target) else { return };
    // Every bit counts here: engines are told apart by their bases.
    let matches = |(i, word, _): (usize, u32, u32)| page.get(i) == Some(&word);
    candidates.push(ContextCandidate {
        target,
        table: table.name(),
        platforms: vec![platform.name()],
        drivers: vec![target.driver],
        matched: layout.significant().filter(|&s| matches(s)).count(),
        of: layout.significant().count(),
    });
}

/// What happened to an image: `verified` is what its register page gave. Findings are in the order of the image.
pub fn triage(image: &LrcImage<'_>, layout: &LrcLayout, verified: &LayoutCheck) -> Vec<LrcFinding> {
    let page = image.registers();
    let mut findings = Vec::new();
    let start = page.get(..verified.compared).unwrap_or_default();
    if !verified.differences.is_empty() && start.iter().all(|&w| w == 0) {
        findings.push(LrcFinding { page: image.page(), dwords: 0..start.len(), what: LrcRegion::Blank });
        findings.extend(shift(image, layout, &|_| true));
    } else {
        whole(image, layout, verified, &mut findings);
    }
    for at in 0..image.pages() {
        fills(image, at, layout, &mut findings);
        texts(image, at, &mut findings);
        copies(image, at, &mut findings);
    }
    clusters(image, verified, &mut findings);
    findings.sort_by_key(|f| (f.page, f.dwords.start, f.dwords.end));
    findings
}

/// Another context, another engine, a shift: what concerns the register page as a whole.
fn whole(image: &LrcImage<'_>, layout: &LrcLayout, verified: &LayoutCheck, findings: &mut Vec<LrcFinding>) {
    let page = image.registers();
    let all = 0..verified.compared;
    if verified.differences.is_empty() {
        if let Some(engine) = other_base(page, layout) {
            findings.push(LrcFinding { page: image.page(), dwords: all, what: LrcRegion::OtherBase(engine) });
        }
        return;
    }
    let of = layout.significant().count();
    let fits = |&(i, word, mask): &(usize, u32, u32)| page.get(i).is_some_and(|w| (w ^ word) & mask == 0);
    let matched = layout.significant().filter(fits).count();
    let best = identify(page).into_iter().next();
    let best = best.filter(|b| b.matched * of > matched * b.of && explains(b, page, layout, verified));
    if let Some(best) = best {
        findings.push(LrcFinding { page: image.page(), dwords: all, what: LrcRegion::OtherContext(best) });
        return;
    }
    let over =
        |range: &Range<isize>| verified.differences.iter().any(|d| range.contains(&(d.dword as isize)));
    findings.extend(shift(image, layout, &over));
}

/// A context of the candidate's would differ where this one does. One that has less than the layout, as an older platform's,
/// fits whatever was overwritten behind its end.
fn explains(candidate: &ContextCandidate, page: &[u32], layout: &LrcLayout, verified: &LayoutCheck) -> bool {
    let Ok(other) = LrcLayout::of(candidate.target) else { return false };
    let inside = verified.differences.iter().filter(|d| d.dword < other.dwords());
    let (mut differences, mut explained) = (0, 0);
    for d in inside {
        differences += 1;
        explained += usize::from(match other.word(d.dword) {
            Some((_, PageDword::Value)) | None => true,
            Some((word, _)) => word == d.found,
        });
    }
    if explained * 100 < differences * LIKELY {
        return false;
    }
    let behind = verified.differences.iter().filter(|d| d.dword >= other.dwords()).map(|d| d.found);
    let one_value = behind.clone().skip(1).all(|found| Some(found) == behind.clone().next());
    let ends = page.get(other.dwords()).is_some_and(|w| w & !1 == BATCH_END);
    let fits = |&(i, word, mask): &(usize, u32, u32)| page.get(i).is_some_and(|w| (w ^ word) & mask == 0);
    let none_behind = !layout.significant().filter(|(i, ..)| *i >= other.dwords()).any(|s| fits(&s));
    behind.clone().next().is_none() || none_behind && (ends || !one_value)
}

/// The engine whose registers these are, where the hardware adds the base itself.
fn other_base(page: &[u32], layout: &LrcLayout) -> Option<Engine> {
    let (addressing, target) = (layout.addressing(), layout.target()?);
    addressing.relative?;
    let registers =
        (0..layout.dwords()).filter(|&i| matches!(layout.word(i), Some((_, PageDword::Register))));
    let mut bases = registers
        .filter_map(|i| Some(page.get(i)?.wrapping_sub(layout.word(i)?.0.wrapping_sub(addressing.base))));
    let base = bases.next().filter(|&base| base != addressing.base)?;
    if !bases.all(|other| other == base) {
        return None;
    }
    Engine::all(target.version).find(|engine| engine.base(target.version) == Some(base))
}

/// The longest part of the layout that lies elsewhere than it should, if that is `telling`.
fn shift(
    image: &LrcImage<'_>,
    layout: &LrcLayout,
    telling: &dyn Fn(&Range<isize>) -> bool,
) -> Option<LrcFinding> {
    let words = image.words();
    let origin = (image.page() * PAGE) as isize;
    let significant: Vec<(usize, u32, u32)> = layout.significant().collect();
    let reach = PAGE as isize;
    let mut best: Option<(usize, isize, Range<isize>)> = None;
    for by in (-reach..=reach).filter(|&by| by != 0) {
        let at = |i: usize| usize::try_from(origin + i as isize + by).ok().and_then(|i| words.get(i));
        let fits = |&(i, word, mask): &(usize, u32, u32)| at(i).is_some_and(|w| (w ^ word) & mask == 0);
        let (mut run, mut first) = (0, 0);
        for s in &significant {
            if !fits(s) {
                run = 0;
                continue;
            }
            if run == 0 {
                first = s.0 as isize;
            }
            run += 1;
            if best.as_ref().is_none_or(|(matched, ..)| run > *matched) {
                best = Some((run, by, first + by..s.0 as isize + by + 2));
            }
        }
    }
    let (matched, by, range) = best.filter(|(matched, _, range)| *matched >= COPIED && telling(range))?;
    // In dwords of the register page: what lies in front of it, or behind it, is cut off.
    let end = image.registers().len() as isize;
    let dwords = range.start.clamp(0, end) as usize..range.end.clamp(0, end) as usize;
    (!dwords.is_empty()).then_some(LrcFinding {
        page: image.page(),
        dwords,
        what: LrcRegion::Shifted { by, matched },
    })
}

/// Runs of one value.
fn fills(image: &LrcImage<'_>, at: usize, layout: &LrcLayout, findings: &mut Vec<LrcFinding>) {
    let page = image.nth(at);
    let registers = at == image.page();
    for dwords in runs(page, |a, b| a == b) {
        let value = page.get(dwords.start).copied().unwrap_or_default();
        let name = FILLS.iter().find(|(fill, _)| *fill == value).map(|(_, name)| *name);
        let needed = match (value, name) {
            // Zeros are what most of an image is: where they should not be, the differences say it.
            (0, _) => continue,
            (u32::MAX, _) => LONG_ONES,
            (_, Some(_)) => LONG_FILL,
            (_, None) if registers && dwords.start < layout.dwords() => REPEATED,
            (_, None) => continue,
        };
        if dwords.len() >= needed {
            findings.push(LrcFinding { page: at, dwords, what: LrcRegion::Fill { value, name } });
        }
    }
}

/// Runs of text.
fn texts(image: &LrcImage<'_>, at: usize, findings: &mut Vec<LrcFinding>) {
    let printable = |w: u32| w.to_le_bytes().iter().all(|b| matches!(b, b' '..=b'~' | b'\t' | b'\n'));
    let page = image.nth(at);
    for dwords in runs(page, |a, b| printable(a) && printable(b)) {
        if 4 * dwords.len() < TEXT {
            continue;
        }
        let words = page.get(dwords.clone()).unwrap_or_default();
        let bytes: Vec<u8> = words.iter().take(TEXT_SHOWN / 4).flat_map(|w| w.to_le_bytes()).collect();
        let mut letters: Vec<u8> = bytes.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
        letters.sort_unstable();
        letters.dedup();
        if letters.len() >= LETTERS {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            findings.push(LrcFinding { page: at, dwords, what: LrcRegion::Text(text) });
        }
    }
}

/// Pages that are the same as the register page.
fn copies(image: &LrcImage<'_>, at: usize, findings: &mut Vec<LrcFinding>) {
    let (page, registers) = (image.nth(at), image.registers());
    if at != image.page() && looks_like_registers(page) && page == registers {
        let dwords = 0..page.len();
        findings.push(LrcFinding { page: at, dwords, what: LrcRegion::CopyOfPage(image.page()) });
    }
}

/// Differences near each other that nothing explains: what lies there.
fn clusters(image: &LrcImage<'_>, verified: &LayoutCheck, findings: &mut Vec<LrcFinding>) {
    let page = image.registers();
    let of_page = findings.iter().filter(|f| f.page == image.page());
    let explained: Vec<Range<usize>> = of_page.map(|f| f.dwords.clone()).collect();
    let left = verified.differences.iter().map(|d| d.dword);
    let left: Vec<usize> = left.filter(|d| !explained.iter().any(|dwords| dwords.contains(d))).collect();
    // Of the cluster before: what a value filled may reach over the next clusters too.
    let mut end = 0;
    for cluster in left.chunk_by(|a, b| b - a <= NEAR) {
        let (Some(&first), Some(&last)) = (cluster.first(), cluster.last()) else { continue };
        if last < end {
            continue;
        }
        let dwords = first.max(end)..last + 1;
        let what = lies(image, &dwords).unwrap_or(LrcRegion::Overwritten { differences: cluster.len() });
        let dwords = match what {
            LrcRegion::Fill { value, .. } => {
                let from =
                    explained.iter().map(|e| e.end).filter(|&e| e <= dwords.start).fold(end, usize::max);
                let to = explained
                    .iter()
                    .map(|e| e.start)
                    .filter(|&s| s >= dwords.end)
                    .fold(page.len(), usize::min);
                grown(page, dwords, value, from..to)
            }
            _ => dwords,
        };
        end = dwords.end;
        findings.push(LrcFinding { page: image.page(), dwords, what });
    }
}

/// What lies in a part of the register page, if it is one value, or the same as in another page.
fn lies(image: &LrcImage<'_>, dwords: &Range<usize>) -> Option<LrcRegion> {
    let words = image.registers().get(dwords.clone())?;
    let &value = words.first()?;
    let name = FILLS.iter().find(|(fill, _)| *fill == value).map(|(_, name)| *name);
    if words.iter().all(|&w| w == value) && (name.is_some() || words.len() >= REPEATED) {
        return Some(LrcRegion::Fill { value, name });
    }
    let telling = words.iter().filter(|&&w| w != 0).count() >= COPIED;
    let same = |&other: &usize| image.nth(other).get(dwords.clone()) == Some(words);
    let others = (0..image.pages()).filter(|&other| other != image.page() && telling);
    others.into_iter().find(same).map(LrcRegion::CopyOfPage)
}

/// Looks for what overwrote an image in the memory of a dump, and names it in the findings. `own` is where the image lies.
pub fn name_copies(findings: &mut [LrcFinding], image: &LrcImage<'_>, memory: &[Memory], own: Option<u64>) {
    let unexplained = |f: &&mut LrcFinding| matches!(f.what, LrcRegion::Overwritten { .. });
    for finding in findings.iter_mut().filter(unexplained).take(LOOKED_FOR) {
        let Some(words) = image.nth(finding.page).get(finding.dwords.clone()) else { continue };
        if words.iter().filter(|&&w| w != 0).count() < COPIED {
            continue;
        }
        let own = own.map(|at| at + 4 * (finding.page * PAGE + finding.dwords.start) as u64);
        if let Some((name, address)) = memory.iter().find_map(|m| in_memory(words, m, own)) {
            finding.what = LrcRegion::CopyOfMemory { name: name.to_owned(), address };
        }
    }
}

/// Where these words are, but for the place they were taken from.
fn in_memory<'m>(words: &[u32], memory: &'m Memory, own: Option<u64>) -> Option<(&'m str, u64)> {
    let (at, rare) = words.iter().enumerate().max_by_key(|(_, w)| w.count_ones().min(w.count_zeros()))?;
    memory.buffers().iter().find_map(|buffer| {
        let held = buffer.contents.as_deref().unwrap_or_default();
        let starts =
            held.iter().enumerate().filter(|(_, w)| *w == rare).filter_map(|(i, _)| i.checked_sub(at));
        let mut same = starts.filter(|&i| held.get(i..).is_some_and(|rest| rest.starts_with(words)));
        let address = |i: usize| buffer.iova.wrapping_add(4 * i as u64);
        same.find(|&i| Some(address(i)) != own).map(|i| (buffer.name.as_str(), address(i)))
    })
}

/// The run of a value that a part of it belongs to, as far as it lies within some dwords.
fn grown(page: &[u32], part: Range<usize>, value: u32, within: Range<usize>) -> Range<usize> {
    let before = page.get(within.start..part.start).unwrap_or_default();
    let behind = page.get(part.end..within.end).unwrap_or_default();
    let before = before.iter().rev().take_while(|&&w| w == value).count();
    let behind = behind.iter().take_while(|&&w| w == value).count();
    part.start - before..part.end + behind
}
