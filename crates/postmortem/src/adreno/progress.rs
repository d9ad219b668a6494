//! Rings and fences: what was submitted, what completed, what other rings did.

use crate::adreno::busy::idle;
use crate::adreno::case::{AdrenoCase, ring_evidence};
use crate::adreno::fences;
use crate::adreno::hang::CpStop;
use crate::args::Arg;
use crate::report::{Finding, Subject, Trust};
use crate::rules::Rule;

/// There is nothing left to do: the hung ring is read to its end, its fences are retired, and no block is known to be
/// busy.
pub fn finished(case: &AdrenoCase<'_>, stop: &CpStop) -> bool {
    let Some(ring) = case.dump.rings.get(stop.ring) else { return false };
    let retired = ring.last_fence.is_some() && ring.last_fence == ring.retired_fence;
    retired && ring.rptr == ring.wptr && stop.read_to_end && idle(case) != Some(false)
}

/// One finding for the hung ring, one for each other ring with something to say.
pub fn findings(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Vec<Finding> {
    let hung = stop.map(|s| s.ring);
    let mut out = Vec::new();
    for (i, ring) in case.dump.rings.iter().enumerate() {
        // Without a known stop, any ring may be the hung one.
        let is_hung = hung.is_none_or(|hung| hung == i);
        // Fences are sequence numbers that wrap around.
        let open = ring.last_fence.zip(ring.retired_fence).map(|(last, done)| last.wrapping_sub(done) as i32);
        let unread = ring.rptr.zip(ring.wptr).map(|(r, w)| r != w);
        let idle = is_hung
            && unread == Some(false)
            && stop.is_some_and(|s| s.read_to_end)
            && idle(case) == Some(true);
        let (rule, trust) = match (is_hung, open, unread) {
            (true, Some(1..), _) if idle => (Rule::FenceNotRetired, Trust::Certain),
            (true, Some(1..), _) => (Rule::SubmitsOpen, Trust::Certain),
            (true, Some(0), _) if hung.is_none() => continue,
            (true, Some(0), _) => (Rule::SubmitsComplete, Trust::Certain),
            (true, ..) => (Rule::FencesNotCaptured, Trust::Certain),
            (false, Some(1..), _) => (Rule::OtherRingWaits, Trust::Certain),
            (false, _, Some(true)) => (Rule::OtherRingUnread, Trust::Likely),
            (false, ..) => continue,
        };
        let next = ring.retired_fence.map(|r| Arg::Number(u64::from(r.wrapping_add(1))));
        // Which of them hangs; of another ring, or of one that is read to its end, nothing tells.
        let hung_fence = stop.filter(|_| rule == Rule::SubmitsOpen).and_then(|stop| fences::hung(case, stop));
        let number = |n: u32| Arg::Number(n.into());
        let finding = Finding::new(rule, trust, Subject::Ring(ring.id))
            .with_some("open", open.filter(|&n| n > 0).map(|n| Arg::Number(n.unsigned_abs().into())))
            .with_some("oldest_fence", next)
            .with_some("hung_fence", hung_fence.map(|(fence, _)| number(fence)))
            .with_some("nth", hung_fence.map(|(_, nth)| number(nth)));
        out.push(finding.seen([ring_evidence(ring)]));
    }
    out.extend(write_pointer_not_seen(case, stop));
    out
}

/// The CP has not been given all that the kernel wrote to the ring.
fn write_pointer_not_seen(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> Option<Finding> {
    let ring = case.dump.rings.get(stop?.ring).filter(|r| case.regs.address("CP_RB_BASE") == Some(r.iova))?;
    let (given, written) = (case.regs.get("CP_RB_WPTR")?, ring.wptr?);
    if given == written {
        return None;
    }
    let finding = Finding::new(Rule::WritePointerNotSeen, Trust::Likely, Subject::Ring(ring.id))
        .with("given", Arg::Number(u64::from(given)))
        .with("written", Arg::Number(u64::from(written)));
    Some(finding.seen(case.regs.evidence("CP_RB_WPTR")).seen([ring_evidence(ring)]))
}
