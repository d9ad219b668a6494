//! Code of the shaders that a capture runs, checked once each.
//!
//! Facts: `docs/ir3-check.md`. Never: runs code.

use super::convert::SetFindings;
use super::finding::LintFinding;
use super::rules::LintRule;
use crate::args::{Arg, Args};
use std::collections::BTreeSet;
use unwedge_check::Level;
use unwedge_check::ir3::{CheckFinding, CheckOptions, check};
use unwedge_isa::ir3;
use unwedge_sim::adreno::{AuditedCode, Replay};

/// Findings of one shader that are reported.
const MOST_FAULTS: usize = 8;
/// Different shaders that are checked.
const MOST_SHADERS: usize = 1 << 12;

/// The shaders that were checked.
#[derive(Default)]
pub(super) struct ShaderFindings {
    seen: BTreeSet<Vec<u64>>,
}

impl ShaderFindings {
    /// How many.
    pub(super) fn checked(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Checks the shaders of a set that were not checked before.
    pub(super) fn check(&mut self, replay: &Replay<'_>, set: &SetFindings<'_>) -> Vec<LintFinding> {
        let mut out = Vec::new();
        for code in &set.registers.code {
            let words = words(replay, code);
            if words.is_empty() || self.seen.len() >= MOST_SHADERS || !self.seen.insert(words.clone()) {
                continue;
            }
            out.extend(findings(replay, set, code, &words));
        }
        out
    }
}

/// The instructions at an address, as far as memory holds them.
fn words(replay: &Replay<'_>, code: &AuditedCode) -> Vec<u64> {
    let memory = &replay.machine.space.memory;
    let end = code.iova.saturating_add(code.size);
    let mut words: Vec<u64> =
        (code.iova..end).step_by(8).map_while(|at| memory.load(at, 8).known()).collect();
    // Code is padded with nops.
    while words.last() == Some(&0) {
        words.pop();
    }
    words
}

fn findings(
    replay: &Replay<'_>,
    set: &SetFindings<'_>,
    code: &AuditedCode,
    words: &[u64],
) -> Vec<LintFinding> {
    let gpu_id = replay.machine.shader_gpu();
    let report = check(words, gpu_id, &CheckOptions::default());
    let packet = set.packet(replay, code.packet);
    let text = |at: u32| {
        let mut line = Vec::new();
        ir3::write(*words.get(at as usize)?, gpu_id, &mut line);
        Some(String::from_utf8_lossy(&line).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let finding = |fault: &CheckFinding| {
        let rule = match fault.level {
            Level::Error => LintRule::ShaderError,
            Level::Warning => LintRule::ShaderWarning,
            Level::Note => LintRule::ShaderWaste,
        };
        let first = fault.first.filter(|first| *first != fault.at);
        LintFinding {
            args: Args::new()
                .with("check", Arg::name(fault.rule.info().name))
                .with("is", Arg::name(fault.rule.info().is))
                .with("stage", Arg::name(code.stage))
                .with("address", Arg::Address(code.iova))
                .with("instruction", Arg::Number(fault.at.into()))
                .with_some("text", text(fault.at).map(Arg::Text))
                .with_some("register", fault.register.map(|register| Arg::Text(register.to_string())))
                .with_some("first", first.map(|first| Arg::Number(first.into())))
                .with_some("first_text", first.and_then(text).map(Arg::Text)),
            ..LintFinding::of(rule, packet.clone())
        }
    };
    report.findings.iter().take(MOST_FAULTS).map(finding).collect()
}
