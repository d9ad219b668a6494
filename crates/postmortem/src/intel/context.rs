//! The image of the context that was on an engine, against the layout its hardware saves.

use super::case::{Case, Unit, finding};
use crate::prose::Finding;
use crate::report::{FindingKind, Trust};
use unwedge_capture::intel::{MemoryBlock, MemoryBlockKind};
use unwedge_intel::lrc::triage::{self, LrcRegion};
use unwedge_intel::lrc::{LrcImage, LrcLayout, LrcOwner, values};

/// Bytes of an image that are looked at: none has more.
const MOST: usize = 4 << 20;

/// Dwords of a register page that are too few to judge it by.
const FEW: usize = 16;

/// Checks the contexts of an engine.
pub(super) fn findings(case: &Case<'_, '_>, unit: &Unit<'_, '_>) -> Vec<Finding> {
    let (Some(version), Some(engine)) = (case.version, unit.id) else { return Vec::new() };
    let Ok(layout) = LrcLayout::of(LrcOwner { driver: case.driver, version, engine }) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for block in case.blocks_of(unit, MemoryBlockKind::HwContext) {
        if let Some(words) = block.dwords(MOST) {
            check(case, unit, block, &words, &layout, &mut findings);
        }
    }
    findings
}

fn check(
    case: &Case<'_, '_>,
    unit: &Unit<'_, '_>,
    block: &MemoryBlock<'_>,
    words: &[u32],
    layout: &LrcLayout,
    findings: &mut Vec<Finding>,
) {
    let image = LrcImage::of_dump(case.driver, words);
    let verified = layout.verify(image.registers());
    let name = unit.name();
    let base = block.address.unwrap_or(0) + 4096 * image.page() as u64;
    let section = format!("{} of {name}", block.name);
    let evidence = |what: String, dword: Option<usize>| crate::prose::Evidence {
        section: section.clone(),
        what,
        iova: dword.map(|d| base + 4 * d as u64),
        span: Some(block.span),
    };
    // A few dwords say nothing of what happened to the others.
    if verified.compared < FEW {
        return;
    }
    if let Some(first) = verified.differences.first() {
        let count = verified.differences.len();
        let seen = verified.differences.iter().take(4).map(|d| {
            evidence(
                format!("dword {:#x}: {:#010x}, expected {:#010x}", d.dword, d.found, d.expected),
                Some(d.dword),
            )
        });
        let seen: Vec<_> = seen.collect();
        let mut found = triage::triage(&image, layout, &verified);
        for memory in [case.ggtt, unit.ppgtt] {
            triage::name_copies(&mut found, &image, std::slice::from_ref(memory), block.address);
        }
        if found.iter().any(|f| matches!(f.what, LrcRegion::Overwritten { .. })) {
            case.want_all(unit);
        }
        let what: Vec<String> = found.iter().take(3).map(|f| describe(f.page, &f.dwords, &f.what)).collect();
        let blank = found.iter().any(|f| matches!(f.what, LrcRegion::Blank));
        let (title, trust) = if blank {
            (format!("the context of {name} was never saved, or its page was cleared"), Trust::Possible)
        } else {
            (
                format!("the context of {name} is corrupted at dword {:#x} ({count} places)", first.dword),
                if count >= 4 { Trust::Likely } else { Trust::Possible },
            )
        };
        let why = if what.is_empty() {
            "The registers an engine saves are always at the same places; these are not.".to_owned()
        } else {
            what.join("; ")
        };
        findings.push(finding(FindingKind::CorruptStream, trust, title, why, seen));
    }
    let odd = values::odd(image.registers(), layout);
    let odd: Vec<_> = odd.iter().filter(|o| !o.why.is_usual()).collect();
    if !odd.is_empty() && verified.differences.is_empty() {
        let seen = odd.iter().take(4).map(|o| {
            let register = unwedge_intel::lrc::registers::at(
                o.register,
                layout.target().map_or(unwedge_hw::intel::platform::Version::MAX, |t| t.version),
            );
            let register = register.map_or_else(|| format!("{:#x}", o.register), |r| r.name().to_owned());
            evidence(format!("{register} = {:#010x}: {}", o.value, o.why), Some(o.dword))
        });
        findings.push(finding(
            FindingKind::Progress,
            Trust::Possible,
            format!("values in the context of {name} that no driver sets"),
            "",
            seen.collect(),
        ));
    }
}

fn describe(page: usize, dwords: &std::ops::Range<usize>, what: &LrcRegion) -> String {
    let range = format!("page {page}, dwords {:#x} to {:#x}", dwords.start, dwords.end.saturating_sub(1));
    match what {
        LrcRegion::Blank => format!("{range}: all zeros"),
        LrcRegion::Fill { value, name } => {
            format!("{range}: filled with {value:#010x}{}", name.map_or(String::new(), |n| format!(", {n}")))
        }
        LrcRegion::Text(text) => format!("{range}: text, \"{text}\""),
        LrcRegion::CopyOfPage(other) => format!("{range}: a copy of page {other}"),
        LrcRegion::CopyOfMemory { name, address } => format!("{range}: a copy of {name} at {address:#x}"),
        LrcRegion::Shifted { by, .. } => format!("{range}: the layout, moved by {by} dwords"),
        LrcRegion::OtherContext(candidate) => {
            format!(
                "{range}: the context of {} on {}",
                candidate.target.engine,
                candidate.platforms.join(", ")
            )
        }
        LrcRegion::OtherBase(engine) => format!("{range}: registers of {engine}"),
        LrcRegion::Overwritten { differences } => {
            format!("{range}: overwritten ({differences} dwords differ)")
        }
    }
}
