//! The image of the context that was on an engine, against the layout its hardware saves.

use super::case::{IntelCase, Unit};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Trust};
use crate::rules::Rule;
use unwedge_capture::intel::{MemoryBlock, MemoryBlockKind};
use unwedge_hw::intel::platform::Version;
use unwedge_intel::lrc::triage::{self, LrcRegion};
use unwedge_intel::lrc::{LrcImage, LrcLayout, LrcOwner, registers, values};

/// Bytes of an image that are looked at: none has more.
const MOST: usize = 4 << 20;

/// Dwords of a register page that are too few to judge it by.
const FEW: usize = 16;

/// Dwords that are evidence, and overwritten ranges that are reported.
const DWORDS: usize = 4;
const RANGES: usize = 3;

/// Checks the contexts of an engine.
pub(super) fn findings(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Vec<Finding> {
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
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    block: &MemoryBlock<'_>,
    words: &[u32],
    layout: &LrcLayout,
    findings: &mut Vec<Finding>,
) {
    let image = LrcImage::of_dump(case.driver, words);
    let verified = layout.verify(image.registers());
    let base = block.address.unwrap_or(0) + 4096 * image.page() as u64;
    let section = format!("{} of {}", block.name, unit.name());
    let evidence = |fact: Args, dword: usize| Evidence {
        section: section.clone(),
        fact: Fact::Record(fact),
        iova: Some(base + 4 * dword as u64),
        span: Some(block.span),
    };
    // A few dwords say nothing of what happened to the others.
    if verified.compared < FEW {
        return;
    }
    if let Some(first) = verified.differences.first() {
        let count = verified.differences.len();
        let seen = verified.differences.iter().take(DWORDS).map(|d| {
            let fact = Args::new()
                .with("dword", Arg::Value(d.dword as u64))
                .with("found", Arg::Value(d.found.into()))
                .with("expected", Arg::Value(d.expected.into()));
            evidence(fact, d.dword)
        });
        let mut damage = triage::triage(&image, layout, &verified);
        for memory in [case.ggtt, unit.ppgtt] {
            triage::name_copies(&mut damage, &image, std::slice::from_ref(memory), block.address);
        }
        if damage.iter().any(|f| matches!(f.what, LrcRegion::Overwritten { .. })) {
            case.want_all(unit);
        }
        let (rule, trust) = if damage.iter().any(|f| matches!(f.what, LrcRegion::Blank)) {
            (Rule::ContextNeverSaved, Trust::Possible)
        } else {
            (Rule::ContextCorrupted, if count >= 4 { Trust::Likely } else { Trust::Possible })
        };
        let ranges: Vec<Arg> = damage.iter().take(RANGES).map(|range| damaged(range).into()).collect();
        findings.push(
            unit.finding(rule, trust)
                .with("dword", Arg::Value(first.dword as u64))
                .with("dwords", Arg::Number(count as u64))
                .with("damage", ranges)
                .seen(seen),
        );
    }
    let odd = values::odd(image.registers(), layout);
    let odd: Vec<_> = odd.iter().filter(|o| !o.why.is_usual()).collect();
    if !odd.is_empty() && verified.differences.is_empty() {
        let seen = odd.iter().take(DWORDS).map(|o| {
            let version = layout.target().map_or(Version::MAX, |target| target.version);
            let register = registers::at(o.register, version)
                .map_or_else(|| format!("{:#x}", o.register), |register| register.name().to_owned());
            let fact = Args::new()
                .with("register", Arg::name(register))
                .with("value", Arg::Value(o.value.into()))
                .with("odd", Arg::name(o.why.id()))
                .with("reason", Arg::Text(o.why.to_string()));
            evidence(fact, o.dword)
        });
        findings.push(unit.finding(Rule::ContextOddValues, Trust::Possible).seen(seen));
    }
}

/// A range of a context that is not as it should be: `page`, `first` and `last` dword, `damage`, and what that has.
fn damaged(range: &triage::LrcFinding) -> Args {
    let args = Args::new()
        .with("page", Arg::Number(range.page as u64))
        .with("first", Arg::Value(range.dwords.start as u64))
        .with("last", Arg::Value(range.dwords.end.saturating_sub(1) as u64))
        .with("damage", Arg::name(range.what.id()));
    match &range.what {
        LrcRegion::Blank => args,
        LrcRegion::Fill { value, name } => {
            args.with("value", Arg::Value((*value).into())).with_some("fill", name.map(Arg::name))
        }
        LrcRegion::Text(text) => args.with("text", Arg::Text(text.clone())),
        LrcRegion::CopyOfPage(other) => args.with("other_page", Arg::Number(*other as u64)),
        LrcRegion::CopyOfMemory { name, address } => {
            args.with("block", Arg::Text(name.clone())).with("address", Arg::Address(*address))
        }
        LrcRegion::Shifted { by, .. } => {
            let (name, dwords) = if *by < 0 { ("towards_start", by) } else { ("towards_end", by) };
            args.with(name, Arg::Number(dwords.unsigned_abs() as u64))
        }
        LrcRegion::OtherContext(candidate) => {
            let platforms: Vec<Arg> = candidate.platforms.iter().map(|name| Arg::name(*name)).collect();
            args.with("engine", Arg::name(candidate.target.engine.to_string())).with("platforms", platforms)
        }
        LrcRegion::OtherBase(engine) => args.with("engine", Arg::name(engine.to_string())),
        LrcRegion::Overwritten { differences } => args.with("dwords", Arg::Number(*differences as u64)),
    }
}
