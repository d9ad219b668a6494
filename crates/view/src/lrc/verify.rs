//! `lrc verify`: where an image differs from its engine's layout, and what happened to it.

use super::{ContextName, described, load_name, place, register_name};
use crate::Style;
use crate::json::{Heading, Hex};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_base::{Diagnostic, Memory};
use unwedge_intel::lrc::triage::{LrcFinding, LrcRegion, name_copies, triage};
use unwedge_intel::lrc::values::{OddValue, odd};
use unwedge_intel::lrc::{
    LayoutCheck, LayoutDifference, LayoutMismatch, LrcImage, LrcLayout, PAGE, PageDword, registers, tables,
};

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;

/// An image beside the layout of its engine.
pub struct Verification<'a> {
    image: LrcImage<'a>,
    layout: LrcLayout,
    verified: LayoutCheck,
    findings: Vec<LrcFinding>,
    odd: Vec<OddValue>,
    ring: Option<JsonRingState>,
}

/// The page of an indirect ring state.
struct JsonRingState {
    page: usize,
    layout: LrcLayout,
    verified: LayoutCheck,
    odd: Vec<OddValue>,
}

/// The ring state of a context that says it has one of its own, behind its other pages.
fn ring(image: &LrcImage<'_>, layout: &LrcLayout) -> Option<JsonRingState> {
    const ENABLE: u32 = 1 << 4;
    let target = layout.target()?;
    let state = LrcLayout::of_indirect_ring_state(target).ok()?;
    let control = tables::positions(target.version, target.engine.class)
        .find(|p| p.register == registers::offset::CONTEXT_CONTROL)?;
    let enabled = image.registers().get(control.dword + 1)? & ENABLE != 0;
    let pages = tables::pages(target.driver, target.version, target.engine.class)?;
    // The status page is the one before the registers.
    let page = (image.page() + pages).checked_sub(1).filter(|_| enabled && image.pages() > 1)?;
    let words = image.nth(page);
    Some(JsonRingState { page, verified: state.verify(words), odd: odd(words, &state), layout: state })
}

impl<'a> Verification<'a> {
    /// Looks at an image.
    pub fn of(image: LrcImage<'a>, layout: LrcLayout) -> Verification<'a> {
        let verified = layout.verify(image.registers());
        let (findings, odd) = (triage(&image, &layout, &verified), odd(image.registers(), &layout));
        let ring = ring(&image, &layout);
        Verification { image, layout, verified, findings, odd, ring }
    }

    /// Looks for what overwrote the image in the memory of its dump.
    /// `address`: where the context lies.
    pub fn look_in(&mut self, memory: &[Memory], address: Option<u64>) {
        name_copies(&mut self.findings, &self.image, memory, address);
    }

    /// Whether a dword differs from the layout.
    pub fn differs(&self) -> bool {
        self.differences().next().is_some()
    }

    /// What the image does not have of the registers and of the ring state, because it is cut.
    pub fn losses(&self) -> impl Iterator<Item = Diagnostic> {
        let missing = [self.verified.missing, self.ring.as_ref().map_or(0, |r| r.verified.missing)];
        missing.into_iter().filter(|missing| *missing != 0).map(|missing| {
            let missing = counted(missing as u64, "dword of the registers is", "dwords of the registers are");
            Diagnostic::loss(None, format!("{missing} missing: the image is cut"))
        })
    }

    /// Whether there is something that only counts where one is strict.
    pub fn is_noted(&self) -> bool {
        !self.findings.is_empty()
            || self.notes().any(|(_, o)| !o.why.is_usual())
            || !self.verified.extra.is_empty()
    }

    /// The layout of a page.
    fn layout_of(&self, page: usize) -> &LrcLayout {
        self.ring.as_ref().filter(|r| r.page == page).map_or(&self.layout, |r| &r.layout)
    }

    /// Of both pages, with the page.
    fn differences(&self) -> impl Iterator<Item = (usize, &LayoutDifference)> {
        let ring = self.ring.iter().flat_map(|r| r.verified.differences.iter().map(|d| (r.page, d)));
        self.verified.differences.iter().map(|d| (self.image.page(), d)).chain(ring)
    }

    fn notes(&self) -> impl Iterator<Item = (usize, &OddValue)> {
        let ring = self.ring.iter().flat_map(|r| r.odd.iter().map(|o| (r.page, o)));
        self.odd.iter().map(|o| (self.image.page(), o)).chain(ring)
    }

    /// The dword of the image.
    fn byte(page: usize, dword: usize) -> usize {
        4 * (page * PAGE + dword)
    }

    /// What a dword would be: a command, a register by its name.
    fn means(&self, word: u32, role: Option<PageDword>, found: bool) -> String {
        match role {
            Some(PageDword::Command) if word & 0xff80_0000 == 0x1100_0000 => {
                format!("{word:#010x} ({})", load_name(word, word.wrapping_add(1) as usize % 256 / 2))
            }
            Some(PageDword::Register) => {
                let relative = self.layout.addressing().relative.is_some();
                match register_name(word, relative, Some(&self.layout)) {
                    Some(name) => format!("{word:#010x} ({name})"),
                    None => format!("{word:#010x}"),
                }
            }
            Some(PageDword::Skipped) if !found => "MI_NOOP".to_owned(),
            _ => format!("{word:#010x}"),
        }
    }
}

/// As text.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn text(found: &Verification<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}; {}", described(&found.layout), place(&found.image))?;
    if !found.image.is_recognized() {
        writeln!(out, "note: no page begins as registers do; --page says which one has them")?;
    } else if found.image.page() != found.image.usual_page() {
        let (page, usual) = (found.image.page(), found.image.usual_page());
        writeln!(out, "note: the registers are usually in page {usual}: page {page} looks like them")?;
    }
    for f in &found.findings {
        let bytes = Verification::byte(f.page, f.dwords.start)..Verification::byte(f.page, f.dwords.end);
        let place = format!(
            "page {}, dwords {:#05x}..{:#05x} (bytes {:#x}..{:#x})",
            f.page, f.dwords.start, f.dwords.end, bytes.start, bytes.end
        );
        writeln!(out, "{} {place}: {}", style.bold("FOUND"), said(&f.what))?;
    }
    for (page, d) in found.differences() {
        let role = found.layout_of(page).word(d.dword).map(|(_, role)| role);
        let (expected, word) = (found.means(d.expected, role, false), found.means(d.found, role, true));
        let byte = Verification::byte(page, d.dword);
        writeln!(
            out,
            "  page {page} dword {:#05x} (byte {byte:#x}): expected {expected}, found {word}",
            d.dword
        )?;
    }
    for dwords in &found.verified.extra {
        let (start, end) = (dwords.start, dwords.end);
        writeln!(out, "note: dwords {start:#05x}..{end:#05x}: a command that the table has not")?;
    }
    for (page, o) in found.notes() {
        let version = found.layout.target().map(|t| t.version);
        let name = version.and_then(|v| registers::at(o.register, v)).map_or("register", |r| r.name());
        writeln!(out, "note: page {page} dword {:#05x}: {name} = {:#010x}: {}", o.dword, o.value, o.why)?;
    }
    let verdict = match found.differences().count() {
        0 if found.verified.missing > 0 => {
            let compared = counted(found.verified.compared as u64, "dword is", "dwords are");
            format!("{compared} as expected, the rest is missing")
        }
        0 => {
            let compared = counted(found.verified.compared as u64, "dword", "dwords");
            format!("the layout is as expected: {compared} compared")
        }
        n => counted(n as u64, "dword differs", "dwords differ").to_string(),
    };
    writeln!(out, "{}", style.bold(&verdict))
}

/// A finding in words.
fn said(what: &LrcRegion) -> String {
    match what {
        LrcRegion::Blank => {
            "nothing but zeros: the context was never saved, or its page was cleared".to_owned()
        }
        LrcRegion::Fill { value, name: Some(name) } => format!("filled with {value:#010x}: {name}"),
        LrcRegion::Fill { value, name: None } => format!("filled with {value:#010x}"),
        LrcRegion::Text(text) => format!("text: {text:?}"),
        LrcRegion::CopyOfPage(page) => format!("the same as in page {page}"),
        LrcRegion::CopyOfMemory { name, address } => format!("the same as in {name} at {address:#x}"),
        LrcRegion::Shifted { by, matched } => {
            let (dwords, bytes) = (by.unsigned_abs(), 4 * by.unsigned_abs());
            let direction = if *by < 0 { "start" } else { "end" };
            format!(
                "registers as expected, but {} ({bytes} bytes) nearer to the {direction} \
                 ({matched} commands and registers in a row)",
                counted(dwords as u64, "dword", "dwords")
            )
        }
        LrcRegion::OtherContext(c) => {
            let drivers: Vec<String> = c.drivers.iter().map(ToString::to_string).collect();
            format!(
                "a context of {} of {} ({}, table {}): {} of {} commands and registers fit",
                c.target.engine,
                c.platforms.join(", "),
                drivers.join(" or "),
                c.table,
                c.matched,
                c.of
            )
        }
        LrcRegion::OtherBase(engine) => {
            format!("registers of {engine}: the layout is the same, and the hardware ignores the difference")
        }
        LrcRegion::Overwritten { differences } => {
            format!("overwritten, {}", counted(*differences as u64, "dword differs", "dwords differ"))
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Report<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextName>,
    page: usize,
    pages: usize,
    compared: usize,
    missing: usize,
    matches: bool,
    differences: Vec<JsonDifference>,
    findings: Vec<JsonFinding>,
    extra_commands: Vec<[usize; 2]>,
    odd_values: Vec<JsonOdd>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonDifference {
    page: usize,
    dword: usize,
    byte: usize,
    kind: &'static str,
    expected: Hex,
    found: Hex,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_register: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found_register: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonFinding {
    kind: &'static str,
    page: usize,
    dwords: [usize; 2],
    said: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shifted_by: Option<isize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_of_page: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copy_of_iova: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    platforms: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<usize>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct JsonOdd {
    kind: &'static str,
    page: usize,
    dword: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    register: Option<&'static str>,
    value: Hex,
    said: String,
}

/// As JSON.
///
/// # Errors
///
/// Those of `out`, if it cannot be written to.
pub fn json(found: &Verification<'_>, out: &mut dyn Write) -> io::Result<()> {
    let relative = found.layout.addressing().relative.is_some();
    let named = |d: &LayoutDifference, word: u32| match d.mismatch {
        LayoutMismatch::OtherRegister => register_name(word, relative, Some(&found.layout)),
        _ => None,
    };
    let differences = found.differences().map(|(page, d)| JsonDifference {
        page,
        dword: d.dword,
        byte: Verification::byte(page, d.dword),
        kind: d.mismatch.id(),
        expected: Hex::dword(d.expected),
        found: Hex::dword(d.found),
        expected_register: named(d, d.expected),
        found_register: named(d, d.found),
    });
    let findings = found.findings.iter().map(|f| {
        let mut finding = JsonFinding {
            kind: f.what.id(),
            page: f.page,
            dwords: [f.dwords.start, f.dwords.end],
            said: said(&f.what),
            value: None,
            shifted_by: None,
            copy_of_page: None,
            copy_of_iova: None,
            engine: None,
            platforms: Vec::new(),
            matched: None,
        };
        match &f.what {
            LrcRegion::Fill { value, .. } => finding.value = Some(Hex::dword(*value)),
            LrcRegion::CopyOfPage(page) => finding.copy_of_page = Some(*page),
            LrcRegion::CopyOfMemory { address, .. } => finding.copy_of_iova = Some(Hex::wide(*address)),
            LrcRegion::Shifted { by, matched } => {
                (finding.shifted_by, finding.matched) = (Some(*by), Some(*matched));
            }
            LrcRegion::OtherContext(c) => {
                finding.engine = Some(c.target.engine.to_string());
                finding.platforms.clone_from(&c.platforms);
                finding.matched = Some(c.matched);
            }
            LrcRegion::OtherBase(engine) => finding.engine = Some(engine.to_string()),
            LrcRegion::Blank | LrcRegion::Text(_) | LrcRegion::Overwritten { .. } => {}
        }
        finding
    });
    let version = found.layout.target().map(|t| t.version);
    let odd_values = found.notes().map(|(page, o)| JsonOdd {
        kind: o.why.id(),
        page,
        dword: o.dword,
        register: version.and_then(|v| registers::at(o.register, v)).map(|r| r.name()),
        value: Hex::dword(o.value),
        said: o.why.to_string(),
    });
    let report = Report {
        heading: Heading::of_plain_object("unwedge.lrc.verify", SCHEMA),
        context: ContextName::of(&found.layout),
        page: found.image.page(),
        pages: found.image.pages(),
        compared: found.verified.compared,
        missing: found.verified.missing,
        matches: found.differences().next().is_none(),
        differences: differences.collect(),
        findings: findings.collect(),
        extra_commands: found.verified.extra.iter().map(|d| [d.start, d.end]).collect(),
        odd_values: odd_values.collect(),
    };
    serde_json::to_writer(&mut *out, &report)?;
    writeln!(out)
}

crate::schema::shapes!(object: Report<'_>);
