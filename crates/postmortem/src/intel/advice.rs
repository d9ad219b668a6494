//! What to try next: rules name what they advise; what a dump of this driver always advises comes after.

use super::case::{IntelCase, Unit};
use crate::args::Args;
use crate::report::{Advice, Finding};
use crate::rules::AdviceId;
use unwedge_capture::intel::MemoryBlockKind;
use unwedge_hw::intel::platform::{EngineClass, IntelDriver};

/// What helps whatever the findings are, as far as it is for this driver and engine.
const ALWAYS: [AdviceId; 4] = [
    AdviceId::IntelDebugCaptureAll,
    AdviceId::LibvaTrace,
    AdviceId::I915NextErrorState,
    AdviceId::XeWedgedMode,
];

/// What to try, the most telling first. `findings` are in their order of rank.
pub(super) fn advise(case: &IntelCase<'_, '_>, hung: &[&Unit<'_, '_>], findings: &[Finding]) -> Vec<Advice> {
    let by_rules = findings.iter().map(|finding| finding.rule.row().advice);
    let mut out: Vec<Advice> = Vec::new();
    for id in by_rules.flatten().copied().chain(ALWAYS) {
        if !out.iter().any(|advice| advice.id == id) && fits(id, case, hung) {
            out.push(Advice::new(id, Args::new()));
        }
    }
    out
}

/// Whether advice fits this driver and the engines that hang.
fn fits(id: AdviceId, case: &IntelCase<'_, '_>, hung: &[&Unit<'_, '_>]) -> bool {
    let any = |classes: &[EngineClass]| hung.iter().any(|unit| classes.contains(&unit.class()));
    match id {
        AdviceId::IntelDebugCaptureAll => {
            let batch = hung
                .iter()
                .any(|unit| case.blocks_of(unit, MemoryBlockKind::Batch).any(|b| b.data.is_some()));
            let mesa = any(&[EngineClass::Render, EngineClass::Compute, EngineClass::Copy]);
            !batch && mesa && case.driver == IntelDriver::I915
        }
        AdviceId::IntelDebugShaders => any(&[EngineClass::Render, EngineClass::Compute]),
        AdviceId::LibvaTrace => any(&[EngineClass::VideoDecode, EngineClass::VideoEnhance]),
        AdviceId::I915NextErrorState => case.driver == IntelDriver::I915,
        AdviceId::XeWedgedMode => case.driver == IntelDriver::Xe,
        _ => true,
    }
}
