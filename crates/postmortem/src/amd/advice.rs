//! What to try next: options of amdgpu, RADV, ACO and umr, chosen for what the dump shows.

use super::case::Case;
use super::position::Stop;
use crate::prose::{Advice, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_stream::amd::Engine;

/// What to try next, the most telling first.
pub(super) fn advise(case: &Case<'_>, stop: Option<&Stop>, findings: &[Finding]) -> Vec<Advice> {
    let mut out: Vec<Advice> = Vec::new();
    let mut add = |action: &str, reason: &str| {
        out.push(Advice { action: action.to_owned(), reason: reason.to_owned() })
    };
    let has = |kind: FindingKind| findings.iter().any(|f| f.kind == kind && f.trust >= Trust::Possible);
    let says = |kind: FindingKind, words: &str| {
        findings.iter().any(|f| f.kind == kind && format!("{} {}", f.title, f.why).contains(words))
    };
    let ring = case.hung.as_ref().map_or("gfx_0.0.0", |hung| hung.ring);
    let graphics = matches!(case.engine(), None | Some(Engine::Gfx | Engine::Compute));

    if stop.is_some_and(|stop| !stop.point.levels.is_empty()) {
        add("unwedge decode FILE", "shows every packet of the ring, and of the buffers that are there");
    }
    if says(FindingKind::Fault, "use after free") || says(FindingKind::Fault, "unbound since") {
        add(
            "VK_LOADER_LAYERS_ENABLE='*validation*'",
            "tells which object was destroyed while the GPU still used it",
        );
    } else if says(FindingKind::Fault, "attachment") {
        add(
            "RADV_DEBUG=nodcc,nohiz,nofmask",
            "does it fault without compressed attachments? excludes their metadata",
        );
    }
    if case.radv.is_none() && graphics {
        add(
            "RADV_DEBUG=hang,syncshaders",
            "a Vulkan process leaves a report in ~/radv_dumps_*: command buffers, shaders, waves, freed buffers",
        );
        add(
            "amdgpu.gpu_recovery=0",
            "on the kernel's command line: the GPU stays as it hung, for umr to read",
        );
        add(
            &format!("umr -O halt_waves,bits -wa {ring}"),
            "while it hangs: which instruction each shader stands at",
        );
        add(&format!("umr -RS {ring}"), "while it hangs: the ring and every buffer that it calls");
    }
    if case.radv.is_some() {
        if has(FindingKind::Suspect) || says(FindingKind::InFlight, "wave") {
            add(
                "ACO_DEBUG=noopt,nosched",
                "does it hang without optimizations? tells the compiler and the shader apart",
            );
        }
        let debug = case.radv.and_then(|radv| radv.app.iter().find(|e| e.name.contains("debug options")));
        if debug.is_none_or(|entry| !entry.value.contains("syncshaders")) {
            add("RADV_DEBUG=hang,syncshaders", "one command at a time: trace points then tell the very draw");
        }
        if case.waves.is_empty() && !case.no_waves {
            add("sudo chmod u+s $(which umr)", "lets RADV ask umr for the waves the next time it hangs");
        }
    }
    if has(FindingKind::CpWait) && says(FindingKind::CpWait, "another queue or the CPU") {
        add(
            "RADV_DEBUG=noasynccompute",
            "is it a wait between queues? a single queue cannot wait for another",
        );
    }
    out
}
