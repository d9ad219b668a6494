//! What to try next: rules name what they advise; what a dump of this driver always advises comes after.

use super::case::{IntelCase, Unit};
use crate::args::Args;
use crate::report::{Advice, Finding};
use crate::rules::{AdviceId, Rule};
use unwedge_capture::absence::kernel_version;
use unwedge_capture::intel::MemoryBlockKind;
use unwedge_hw::intel::platform::{EngineClass, IntelDriver};

/// What helps whatever the findings are, as far as it is for this driver and engine.
const ALWAYS: [AdviceId; 4] = [
    AdviceId::IntelDebugCaptureAll,
    AdviceId::LibvaTrace,
    AdviceId::I915NextErrorState,
    AdviceId::XeWedgedMode,
];

/// What makes options of the driver useless: a device that does not answer, and a wait that somebody else has to end.
const DRIVER_IS_OUT: [Rule; 6] = [
    Rule::EngineNotResponding,
    Rule::EngineRegistersZero,
    Rule::SemaphoreNotSignaled,
    Rule::SemaphoreValueIsThere,
    Rule::SemaphoreValueMissing,
    Rule::DisplayEventWait,
];

/// Options of Mesa.
const IS_OF_DRIVER: [AdviceId; 4] = [
    AdviceId::IntelDebugCaptureAll,
    AdviceId::IntelDebugSync,
    AdviceId::IntelDebugBatches,
    AdviceId::IntelDebugShaders,
];

/// The first Linux whose xe has `wedged_mode`.
const WEDGED_MODE: (u32, u32) = (6, 11);

/// What to try, the most telling first. `findings` are in their order of rank.
pub(super) fn advise(case: &IntelCase<'_, '_>, hung: &[&Unit<'_, '_>], findings: &[Finding]) -> Vec<Advice> {
    let of_driver = findings.iter().all(|finding| !DRIVER_IS_OUT.contains(&finding.rule));
    let by_rules = findings.iter().map(|finding| finding.rule.row().advice);
    let mut out: Vec<Advice> = Vec::new();
    for id in by_rules.flatten().copied().chain(ALWAYS) {
        let fits = fits(id, case, hung) && (of_driver || !IS_OF_DRIVER.contains(&id));
        if fits && !out.iter().any(|advice| advice.id == id) {
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
        AdviceId::XeWedgedMode => {
            let kernel = case.source.kernel().and_then(kernel_version);
            case.driver == IntelDriver::Xe && kernel.is_none_or(|kernel| kernel >= WEDGED_MODE)
        }
        _ => true,
    }
}
