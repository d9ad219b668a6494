//! Two reports compared: which parts of the verdict are the same, and which blocks and findings only one of them has.
//!
//! Addresses, process numbers and counts differ between two runs of one hang; what differs in nothing else is alike.
//! Never: sentences, registers that no finding rests on.

use crate::args::Args;
use crate::report::{Fact, Finding, FindingRole, HangPoint, Report};
use crate::rules::FindingKind;
use std::collections::BTreeSet;

/// A part of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReportAspect {
    /// The finding that best explains the hang.
    Cause,
    /// Where the command processor stopped.
    Place,
    /// The packet there.
    Packet,
    /// The draw, dispatch or blit there.
    Work,
    /// Blocks that are busy.
    Busy,
    /// What the clusters have not taken (Adreno).
    Queues,
    /// Rings, fences and submits.
    Progress,
    /// The process.
    Process,
    /// The driver, its kernel and Mesa.
    Driver,
    /// The GPU.
    Gpu,
}

/// How two reports compare in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AspectState {
    /// Nothing differs.
    Same,
    /// Only values differ that differ between two runs of one hang.
    Alike,
    /// It is not the same.
    Differs,
    /// Neither report has it.
    Unknown,
}

/// What only one of two has, and what both have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetComparison {
    /// Of both.
    pub both: Vec<String>,
    /// Of the first alone.
    pub only_a: Vec<String>,
    /// Of the second alone.
    pub only_b: Vec<String>,
}

/// Two reports, compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportComparison {
    /// Each part, in the order in which it matters.
    pub aspects: Vec<(ReportAspect, AspectState)>,
    /// Whether the signatures are the same: the same thing went wrong.
    pub same_signature: bool,
    /// Busy blocks.
    pub busy: SetComparison,
    /// Findings besides those of the parts that the other report has none like, as positions in its findings.
    pub findings_only: [Vec<usize>; 2],
}

impl ReportAspect {
    /// Every part, in the order in which it matters.
    pub const ALL: [ReportAspect; 10] = [
        ReportAspect::Cause,
        ReportAspect::Place,
        ReportAspect::Packet,
        ReportAspect::Work,
        ReportAspect::Busy,
        ReportAspect::Queues,
        ReportAspect::Progress,
        ReportAspect::Process,
        ReportAspect::Driver,
        ReportAspect::Gpu,
    ];

    /// A stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            ReportAspect::Cause => "cause",
            ReportAspect::Place => "place",
            ReportAspect::Packet => "packet",
            ReportAspect::Work => "work",
            ReportAspect::Busy => "busy",
            ReportAspect::Queues => "queues",
            ReportAspect::Progress => "progress",
            ReportAspect::Process => "process",
            ReportAspect::Driver => "driver",
            ReportAspect::Gpu => "gpu",
        }
    }
}

impl AspectState {
    /// A stable identifier.
    pub fn id(self) -> &'static str {
        match self {
            AspectState::Same => "same",
            AspectState::Alike => "alike",
            AspectState::Differs => "differs",
            AspectState::Unknown => "unknown",
        }
    }

    /// Of two values, which are alike if `alike` of them is the same.
    fn of<T: PartialEq, K: PartialEq>(a: &T, b: &T, alike: impl Fn(&T) -> Option<K>) -> AspectState {
        if a == b {
            return AspectState::Same;
        }
        match (alike(a), alike(b)) {
            (Some(x), Some(y)) if x == y => AspectState::Alike,
            _ => AspectState::Differs,
        }
    }

    /// Of two values that may be unknown.
    fn of_some<T: PartialEq, K: PartialEq>(
        a: Option<&T>,
        b: Option<&T>,
        alike: impl Fn(&T) -> Option<K>,
    ) -> AspectState {
        match (a, b) {
            (None, None) => AspectState::Unknown,
            (Some(a), Some(b)) => AspectState::of(a, b, alike),
            _ => AspectState::Differs,
        }
    }
}

impl SetComparison {
    fn of(a: &BTreeSet<String>, b: &BTreeSet<String>) -> SetComparison {
        SetComparison {
            both: a.intersection(b).cloned().collect(),
            only_a: a.difference(b).cloned().collect(),
            only_b: b.difference(a).cloned().collect(),
        }
    }

    /// Nothing is of one alone.
    pub fn is_same(&self) -> bool {
        self.only_a.is_empty() && self.only_b.is_empty()
    }
}

impl ReportComparison {
    /// Compares two reports.
    pub fn of(a: &Report, b: &Report) -> ReportComparison {
        let busy = SetComparison::of(&a.busy_blocks(), &b.busy_blocks());
        ReportComparison {
            aspects: ReportAspect::ALL.map(|aspect| (aspect, state(aspect, a, b, &busy))).to_vec(),
            same_signature: a.signature() == b.signature(),
            busy,
            findings_only: [only(a, b), only(b, a)],
        }
    }

    /// Something differs, beyond what differs between two runs of one hang.
    pub fn differs(&self) -> bool {
        self.aspects.iter().any(|(_, state)| *state == AspectState::Differs)
            || !self.same_signature
            || self.findings_only.iter().any(|only| !only.is_empty())
    }
}

impl Report {
    /// The finding that best explains the hang.
    pub fn cause_finding(&self) -> Option<&Finding> {
        self.findings.get(self.cause?.finding)
    }

    /// Findings that say how far rings and fences are.
    pub fn progress_findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.kind == FindingKind::Progress)
    }

    /// The queues of clusters that are not empty: `cluster`, `queued`, `next` and its `value`.
    pub fn queues(&self) -> impl Iterator<Item = &Args> {
        let queued = self.findings.iter().filter(|finding| finding.kind == FindingKind::QueuedWrites);
        queued.flat_map(|finding| &finding.evidence).filter_map(|evidence| match &evidence.fact {
            Fact::Record(queue) => Some(queue),
            _ => None,
        })
    }

    /// Blocks that are busy or not done: the flags of the registers that findings on busy blocks rest on.
    fn busy_blocks(&self) -> BTreeSet<String> {
        let busy = self.findings.iter().filter(|finding| finding.kind == FindingKind::Busy);
        let facts = busy.flat_map(|finding| &finding.evidence).map(|evidence| &evidence.fact);
        let fields = facts.flat_map(|fact| match fact {
            Fact::Register { fields, .. } => &fields[..],
            _ => &[],
        });
        fields.filter(|field| field.meaning.is_none()).map(|field| field.name.to_string()).collect()
    }
}

fn state(aspect: ReportAspect, a: &Report, b: &Report, busy: &SetComparison) -> AspectState {
    let hangs = (a.hang.as_ref(), b.hang.as_ref());
    match aspect {
        ReportAspect::Cause => {
            let content = |report: &Report| {
                let cause = report.cause_finding()?;
                Some((cause.rule, cause.subject.clone(), cause.args.clone(), cause.signature()))
            };
            AspectState::of_some(content(a).as_ref(), content(b).as_ref(), |cause| Some(cause.3.clone()))
        }
        ReportAspect::Place => {
            AspectState::of_some(hangs.0.map(place).as_ref(), hangs.1.map(place).as_ref(), |place| {
                Some((place.ring, place.ring_name.clone(), place.streams.last().map(|stream| stream.0)))
            })
        }
        ReportAspect::Packet => {
            let packet = |hang: &HangPoint| {
                (hang.packet.is_some() || hang.header.is_some()).then(|| (hang.packet.clone(), hang.header))
            };
            let (a, b) = (hangs.0.and_then(packet), hangs.1.and_then(packet));
            AspectState::of_some(a.as_ref(), b.as_ref(), |_| None::<()>)
        }
        ReportAspect::Work => {
            let work = |hang: &HangPoint| hang.draw;
            let (a, b) = (hangs.0.and_then(work), hangs.1.and_then(work));
            AspectState::of_some(a.as_ref(), b.as_ref(), |_| None::<()>)
        }
        ReportAspect::Busy if busy.both.is_empty() && busy.is_same() => AspectState::Unknown,
        ReportAspect::Busy if busy.is_same() => AspectState::Same,
        ReportAspect::Busy => AspectState::Differs,
        ReportAspect::Queues => {
            let content = |report: &Report| {
                let queues: Vec<Args> = report.queues().cloned().collect();
                (!queues.is_empty()).then_some(queues)
            };
            // How much is queued, and values, differ between two runs.
            AspectState::of_some(content(a).as_ref(), content(b).as_ref(), |queues| {
                let next = |queue: &Args| {
                    let text = |key| queue.text(key).map(str::to_owned);
                    (text("cluster"), text("next"))
                };
                Some(queues.iter().map(next).collect::<Vec<_>>())
            })
        }
        ReportAspect::Progress => {
            let content = |report: &Report| {
                let all = report.progress_findings();
                let all: Vec<_> = all.map(|f| (f.rule, f.subject.clone(), f.args.clone())).collect();
                (!all.is_empty()).then_some(all)
            };
            AspectState::of_some(content(a).as_ref(), content(b).as_ref(), |all| {
                Some(all.iter().map(|(rule, ..)| *rule).collect::<Vec<_>>())
            })
        }
        ReportAspect::Process => {
            // The number of a process differs in every run.
            let content = |report: &Report| {
                let process = &report.process;
                let known = process.name.is_some() || process.command_line.is_some();
                known.then(|| (process.name.clone(), process.command_line.clone()))
            };
            AspectState::of_some(content(a).as_ref(), content(b).as_ref(), |process| process.0.clone())
        }
        ReportAspect::Driver => AspectState::of(&a.driver, &b.driver, |driver| driver.name.clone()),
        ReportAspect::Gpu => AspectState::of(&a.gpu, &b.gpu, |gpu| gpu.family()),
    }
}

/// Where a command processor stopped, without what it stopped at.
#[derive(PartialEq, Eq)]
struct StopPlace {
    ring: Option<u32>,
    ring_name: Option<String>,
    /// The streams, from the ring inwards: level, address, and the dwords it may have stopped in.
    streams: Vec<(u8, u64, (u64, u64))>,
    iova: Option<u64>,
}

fn place(hang: &HangPoint) -> StopPlace {
    StopPlace {
        ring: hang.ring,
        ring_name: hang.ring_name.clone(),
        streams: hang.levels.iter().map(|level| (level.level, level.base, level.range)).collect(),
        iova: hang.iova,
    }
}

/// Findings of a report, besides those of the compared parts, that the other has none like.
fn only(report: &Report, other: &Report) -> Vec<usize> {
    let compared = |finding: &Finding| {
        matches!(finding.role, FindingRole::Cause | FindingRole::Position | FindingRole::Missing)
            || matches!(finding.kind, FindingKind::Busy | FindingKind::QueuedWrites | FindingKind::Progress)
    };
    let there: BTreeSet<String> = other.findings.iter().map(Finding::signature).collect();
    let own = report.findings.iter().enumerate().filter(|(_, finding)| !compared(finding));
    own.filter(|(_, finding)| !there.contains(&finding.signature())).map(|(i, _)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arg;
    use crate::report::{Evidence, FieldFact, LevelPosition, Subject, Trust, VerdictCause};
    use crate::rules::Rule;

    fn finding(rule: Rule, role: FindingRole, address: u64) -> Finding {
        let finding = Finding::new(rule, Trust::Likely, Subject::Gpu).with("address", Arg::Address(address));
        Finding { role, ..finding }
    }

    fn busy(blocks: &[&'static str]) -> Finding {
        let fields = blocks.iter().map(|&name| FieldFact { name: name.into(), value: 1, meaning: None });
        let fact = Fact::Register { name: "RBBM_STATUS".into(), value: 1, fields: fields.collect() };
        let evidence = Evidence { section: "registers".to_owned(), fact, iova: None, span: None };
        finding(Rule::OnlyCpBusy, FindingRole::Why, 0).seen([evidence])
    }

    fn report(cause: Rule, address: u64, blocks: &[&'static str]) -> Report {
        Report {
            findings: vec![finding(cause, FindingRole::Cause, address), busy(blocks)],
            cause: Some(VerdictCause { finding: 0, trust: Trust::Likely }),
            ..Report::default()
        }
    }

    fn state_of(comparison: &ReportComparison, aspect: ReportAspect) -> AspectState {
        comparison.aspects.iter().find(|(of, _)| *of == aspect).unwrap().1
    }

    #[test]
    fn other_addresses_are_alike_and_other_causes_are_not() {
        let first = report(Rule::IommuFaultNullPage, 0x1000, &["CP_BUSY"]);
        let moved = report(Rule::IommuFaultNullPage, 0x2000, &["CP_BUSY"]);
        let other = report(Rule::NotAPacket, 0x1000, &["CP_BUSY", "SP_BUSY"]);
        let same = ReportComparison::of(&first, &first);
        assert_eq!(state_of(&same, ReportAspect::Cause), AspectState::Same);
        assert_eq!(state_of(&same, ReportAspect::Place), AspectState::Unknown);
        assert!(!same.differs());
        let run = ReportComparison::of(&first, &moved);
        assert_eq!(state_of(&run, ReportAspect::Cause), AspectState::Alike);
        assert!(!run.differs() && run.same_signature);
        let found = ReportComparison::of(&first, &other);
        assert_eq!(state_of(&found, ReportAspect::Cause), AspectState::Differs);
        assert!(found.differs() && !found.same_signature);
        assert_eq!(found.busy.only_b, ["SP_BUSY"]);
        assert_eq!(found.busy.both, ["CP_BUSY"]);
    }

    #[test]
    fn a_place_is_alike_in_the_same_level_of_the_same_ring() {
        let stopped = |level, base| {
            let levels = vec![LevelPosition { level, base, size: None, range: (1, 2) }];
            let (ring, ring_name, packet, header) = (Some(0), None, None, None);
            let (iova, draw, trust) = (None, None, Trust::Likely);
            let hang = HangPoint { ring, ring_name, levels, packet, header, iova, draw, trust };
            Report { hang: Some(hang), ..Report::default() }
        };
        let place = |a: &Report, b: &Report| state_of(&ReportComparison::of(a, b), ReportAspect::Place);
        let first = stopped(1, 0x1000);
        assert_eq!(place(&first, &stopped(1, 0x1000)), AspectState::Same);
        assert_eq!(place(&first, &stopped(1, 0x2000)), AspectState::Alike);
        assert_eq!(place(&first, &stopped(2, 0x1000)), AspectState::Differs);
        assert_eq!(place(&first, &Report::default()), AspectState::Differs);
    }

    #[test]
    fn a_finding_of_one_alone_is_named() {
        let first = report(Rule::NotAPacket, 0, &[]);
        let mut second = first.clone();
        second.findings.push(finding(Rule::CpHwFault, FindingRole::Also, 0));
        let found = ReportComparison::of(&first, &second);
        assert_eq!(found.findings_only, [vec![], vec![2]]);
        assert!(found.differs());
    }
}
