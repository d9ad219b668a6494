//! What to try next: options of amdgpu, RADV, ACO and umr. Rules name what they advise; what a dump of this source always
//! advises comes after.

use super::case::AmdCase;
use super::position::AmdStop;
use crate::args::{Arg, Args};
use crate::report::{Advice, Finding, Trust};
use crate::rules::FindingKind;
use crate::rules::{AdviceId, Rule};
use unwedge_stream::amd::Engine;

/// What helps whatever the findings are, as far as the dump does not have it.
const ALWAYS: [AdviceId; 6] = [
    AdviceId::RadvHangReport,
    AdviceId::AmdgpuNoRecovery,
    AdviceId::UmrWaves,
    AdviceId::UmrRing,
    AdviceId::RadvSyncShaders,
    AdviceId::UmrSetuid,
];

/// What to try next, the most telling first. `findings` are in their order of rank.
pub(super) fn advise(case: &AmdCase<'_>, stop: Option<&AmdStop>, findings: &[Finding]) -> Vec<Advice> {
    let counts = |f: &&Finding| f.kind == FindingKind::HangPoint || f.trust >= Trust::Possible;
    let by_rules = findings.iter().filter(counts).map(|f| (f.rule.row().advice, f));
    let by_rules = by_rules.flat_map(|(ids, finding)| ids.iter().map(move |id| (*id, Some(finding))));
    let always = ALWAYS.into_iter().map(|id| (id, None));
    let mut out: Vec<Advice> = Vec::new();
    for (id, finding) in by_rules.chain(always) {
        if out.iter().any(|advice| advice.id == id) || !fits(id, case, stop, finding, findings) {
            continue;
        }
        let ring = matches!(id, AdviceId::UmrWaves | AdviceId::UmrRing);
        let name = case.hung.as_ref().map_or("gfx_0.0.0", |hung| hung.ring);
        let args = Args::new().with_some("ring", ring.then(|| Arg::name(name.to_owned())));
        out.push(Advice::new(id, args));
    }
    out
}

/// Whether advice fits this dump. `finding` is the one whose rule advises it.
fn fits(
    id: AdviceId,
    case: &AmdCase<'_>,
    stop: Option<&AmdStop>,
    finding: Option<&Finding>,
    findings: &[Finding],
) -> bool {
    let graphics = matches!(case.engine(), None | Some(Engine::Gfx | Engine::Compute));
    match id {
        AdviceId::DecodeStreams => stop.is_some_and(|stop| !stop.point.levels.is_empty()),
        AdviceId::VulkanValidation => finding.is_some_and(is_use_after_free),
        // What was freed explains a fault better than compression does.
        AdviceId::RadvNoCompression => {
            finding.is_some_and(is_attachment) && !findings.iter().any(is_use_after_free)
        }
        AdviceId::AcoNoOptimizations => case.radv.is_some(),
        AdviceId::RadvHangReport | AdviceId::AmdgpuNoRecovery | AdviceId::UmrWaves | AdviceId::UmrRing => {
            case.radv.is_none() && graphics
        }
        AdviceId::RadvSyncShaders => case.radv.is_some_and(|radv| !radv.has_debug_option("syncshaders")),
        AdviceId::UmrSetuid => case.radv.is_some() && case.waves.is_empty() && !case.no_waves,
        _ => true,
    }
}

/// A fault at memory that an object was, and is not any more.
fn is_use_after_free(finding: &Finding) -> bool {
    let unbound = || finding.args.record("binding").is_some_and(|binding| !binding.flag("bound"));
    finding.rule == Rule::GpuvmUseAfterFree || (finding.kind == FindingKind::Fault && unbound())
}

/// A fault of the blocks that write attachments.
fn is_attachment(finding: &Finding) -> bool {
    finding.args.text("client").is_some_and(|client| ["CB", "DB", "CB/DB"].contains(&client))
}
