//! Builds the dumps of GPUs whose stop is known, and looks findings up.

#![allow(dead_code, reason = "each test file uses a part")]

use unwedge_base::Generation;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::{AdviceId, Fact, Finding, FindingKind, Report, Rule, explain_msm};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::pm4::{
    CP_DRAW_INDX_OFFSET, CP_NOP, CP_SET_MARKER, CP_WAIT_REG_MEM, indirect_buffer, pkt7,
};

pub const RING: u64 = 0x0001_0000_0000_1000;
pub const IB1: u64 = 0x1_0000_0000;
pub const IB2: u64 = 0x1_0000_2000;
pub const FENCE: u64 = 0x1_0000_4000;

pub fn explain(builder: DevcoreBuilder) -> Report {
    let text = builder.text();
    let dump = Devcore::read(&text).expect("a dump");
    explain_msm(&dump, &Db::builtin())
}

pub fn find(report: &Report, kind: FindingKind) -> &Finding {
    report.findings.iter().find(|f| f.kind == kind).unwrap_or_else(|| panic!("no {kind:?} in {report:#?}"))
}

pub fn all_evidence(finding: &Finding) -> String {
    finding.evidence.iter().map(|e| format!("{}: {:?}\n", e.section, e.fact)).collect()
}

/// Sets registers by name.
pub trait Named {
    fn named(self, name: &str, value: u32) -> Self;
    fn named64(self, name: &str, value: u64) -> Self;
}

pub fn offset(generation: Generation, name: &str) -> u32 {
    Db::builtin().gpu(generation).reg_offset(name).unwrap_or_else(|| panic!("{name} on {generation}"))
}

impl Named for (Generation, DevcoreBuilder) {
    fn named(self, name: &str, value: u32) -> Self {
        (self.0, self.1.register(offset(self.0, name), value))
    }
    fn named64(self, name: &str, value: u64) -> Self {
        (self.0, self.1.register64(offset(self.0, name), value))
    }
}

/// Where an a6xx or a7xx stopped: dwords left unread at each level, and the SQE's current and previous headers.
pub struct At<'a> {
    pub ib1: (&'a [u32], usize),
    pub ib2: Option<(&'a [u32], usize)>,
    pub headers: [u32; 3],
}

/// A dump of an a6xx that stopped there. IB1 is called from the ring, IB2 (if any) from IB1 already.
pub fn stopped(at: At<'_>) -> (Generation, DevcoreBuilder) {
    let generation = Generation::A6xx;
    let ring = [pkt7(CP_NOP, &[1]), indirect_buffer(IB1, at.ib1.0.len() as u32), pkt7(CP_NOP, &[2])].concat();
    let mut sqe = vec![0u32; 51];
    sqe[0] = 0x123;
    sqe[1] = at.headers[0];
    sqe[36..39].copy_from_slice(&at.headers);
    let (unread, total) = (at.ib1.1 as u32, at.ib1.0.len() as u32);
    let builder = DevcoreBuilder::a6xx()
        .ring(RING, &ring)
        .with_ring(|r| r.rptr = Some(6))
        .bo(IB1, 4096, "ib1", at.ib1.0)
        .indexed("CP_SQE_STAT", &sqe);
    let mut dump = (generation, builder)
        .named64("CP_RB_BASE", RING)
        .named("CP_RB_RPTR", ring.len() as u32)
        .named("CP_RB_WPTR", ring.len() as u32)
        .named("CP_ROQ_AVAIL_RB", 3 << 16)
        .named64("CP_IB1_BASE", IB1)
        .named("CP_IB1_REM_SIZE", 0)
        .named("CP_IB1_DWORDS", total)
        .named("CP_ROQ_AVAIL_IB1", (unread + 1) << 16);
    if let Some((ib2, unread)) = at.ib2 {
        dump.1 = dump.1.bo(IB2, 4096, "ib2", ib2);
        dump = dump
            .named64("CP_IB2_BASE", IB2)
            .named("CP_IB2_REM_SIZE", 0)
            .named("CP_IB2_DWORDS", ib2.len() as u32)
            .named("CP_ROQ_AVAIL_IB2", (unread as u32 + 1) << 16);
    }
    dump
}

/// The CP is busy, nothing else is.
pub const ONLY_CP: u32 = 1 << 23 | 1 << 2;

pub fn wait_for_fence() -> Vec<u32> {
    pkt7(CP_WAIT_REG_MEM, &[3 | 1 << 4, FENCE as u32, (FENCE >> 32) as u32, 5, u32::MAX, 16])
}

pub fn draw() -> Vec<u32> {
    pkt7(CP_DRAW_INDX_OFFSET, &[0x0d84, 1, 6])
}

/// IB1: marker (sysmem), a draw, then a wait for a fence.
pub fn waiting() -> (Generation, DevcoreBuilder) {
    let ib1 = [pkt7(CP_SET_MARKER, &[1]), draw(), wait_for_fence(), pkt7(CP_NOP, &[0]), pkt7(CP_NOP, &[0])]
        .concat();
    let headers = [wait_for_fence()[0], draw()[0], pkt7(CP_SET_MARKER, &[1])[0]];
    stopped(At { ib1: (&ib1, 4), ib2: None, headers }).named("RBBM_STATUS", ONLY_CP)
}

/// The rules that fired, in order.
pub fn rules(report: &Report) -> Vec<Rule> {
    report.findings.iter().map(|f| f.rule).collect()
}

/// Whether a rule fired.
pub fn has(report: &Report, rule: Rule) -> bool {
    report.findings.iter().any(|f| f.rule == rule)
}

/// The finding by a rule.
pub fn by_rule(report: &Report, rule: Rule) -> &Finding {
    let found = report.findings.iter().find(|f| f.rule == rule);
    found.unwrap_or_else(|| panic!("no {rule:?} in {report:#?}"))
}

/// Whether the evidence has a register of this name and value.
pub fn saw_register(finding: &Finding, register: &str, expected: u64) -> bool {
    finding.evidence.iter().any(
        |e| matches!(&e.fact, Fact::Register { name, value, .. } if name == register && *value == expected),
    )
}

/// What is advised, in order.
pub fn advised(report: &Report) -> Vec<AdviceId> {
    report.advice.iter().map(|a| a.id).collect()
}
