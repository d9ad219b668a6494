//! What to try next.

use super::case::{Case, Unit};
use super::stop::Stop;
use crate::prose::{Advice, Finding};
use crate::report::FindingKind;
use unwedge_capture::intel::MemoryBlockKind;
use unwedge_hw::intel::platform::{EngineClass, IntelDriver};

/// What to try, the most telling first.
pub(super) fn advise(
    case: &Case<'_, '_>,
    hung: &[&Unit<'_, '_>],
    stop: Option<&Stop>,
    findings: &[Finding],
) -> Vec<Advice> {
    let mut advice = Vec::new();
    let mut add = |action: &str, reason: &str| {
        advice.push(Advice { action: action.to_owned(), reason: reason.to_owned() });
    };
    let has = |kind| findings.iter().any(|f| f.kind == kind);
    if stop.is_some_and(|s| s.position.is_some()) {
        add(
            "unwedge decode FILE",
            "lists the ring and the batch around the stop, with the state that was set",
        );
    }
    let batch = hung.iter().any(|u| case.blocks_of(u, MemoryBlockKind::Batch).any(|b| b.data.is_some()));
    let mesa = hung
        .iter()
        .any(|u| matches!(u.class(), EngineClass::Render | EngineClass::Compute | EngineClass::Copy));
    if !batch && mesa && case.driver == IntelDriver::I915 {
        add(
            "INTEL_DEBUG=capture-all",
            "Mesa then has all buffers of the application in the next error state, not only the batch",
        );
    }
    if has(FindingKind::CpWait) {
        add(
            "INTEL_DEBUG=sync",
            "waits after each submission: shows whether the work itself hangs, or what it waits for",
        );
    }
    if has(FindingKind::Fault) {
        add(
            "INTEL_DEBUG=bat,pc",
            "prints batches and why each PIPE_CONTROL is there: find who uses the address",
        );
    }
    let shades = hung.iter().any(|u| matches!(u.class(), EngineClass::Render | EngineClass::Compute));
    let video =
        hung.iter().any(|u| matches!(u.class(), EngineClass::VideoDecode | EngineClass::VideoEnhance));
    if video {
        add(
            "LIBVA_TRACE=trace.log",
            "libva then writes down what the player asks the video driver to decode: the stream, and the frame that hangs",
        );
    }
    if shades && has(FindingKind::Busy) {
        add(
            "INTEL_DEBUG=cs,fs,vs",
            "prints the shaders: look for loops without an end in those the state points at",
        );
    }
    match case.driver {
        IntelDriver::I915 => add(
            "cat /sys/class/drm/card0/error > next.error; echo 1 > /sys/class/drm/card0/error",
            "keeps the state of the next hang: the kernel holds only the first until it is cleared",
        ),
        IntelDriver::Xe => add(
            "echo 2 > /sys/kernel/debug/dri/0/wedged_mode",
            "leaves the device as it is after the next hang: its registers can be read, and nothing is reset",
        ),
    }
    advice
}
