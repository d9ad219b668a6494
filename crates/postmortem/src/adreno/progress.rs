//! Rings and fences: what was submitted, what completed, what other rings did.

use crate::adreno::busy::idle;
use crate::adreno::case::Case;
use crate::adreno::hang::{Stop, pointers};
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

/// There is nothing left to do: the hung ring is read to its end, its fences are retired, and no block is known to be
/// busy.
pub fn finished(case: &Case<'_>, stop: &Stop) -> bool {
    let Some(ring) = case.dump.rings.get(stop.ring) else { return false };
    let retired = ring.last_fence.is_some() && ring.last_fence == ring.retired_fence;
    retired && ring.rptr == ring.wptr && stop.read_to_end && idle(case) != Some(false)
}

/// One finding for the hung ring, one for each other ring with something to say.
pub fn findings(case: &Case<'_>, stop: Option<&Stop>) -> Vec<Finding> {
    let hung = stop.map(|s| s.ring);
    let mut out = Vec::new();
    for (i, ring) in case.dump.rings.iter().enumerate() {
        // Without a known stop, any ring may be the hung one.
        let is_hung = hung.is_none_or(|hung| hung == i);
        // Fences are sequence numbers that wrap around.
        let open = ring.last_fence.zip(ring.retired_fence).map(|(last, done)| last.wrapping_sub(done) as i32);
        let unread = ring.rptr.zip(ring.wptr).map(|(r, w)| r != w);
        let name = format!("ring {}", ring.id);
        let idle = is_hung
            && unread == Some(false)
            && stop.is_some_and(|s| s.read_to_end)
            && idle(case) == Some(true);
        let (title, trust) = match (is_hung, open, unread) {
            (true, Some(1..), _) if idle => (
                format!(
                    "{name} is read to its end and no block is busy, but fence {} is not retired",
                    next_fence(ring.retired_fence)
                ),
                Trust::Certain,
            ),
            (_, Some(n @ 1..), _) if is_hung => (
                format!(
                    "{name}: {}, the oldest is fence {}",
                    open_submits(n),
                    next_fence(ring.retired_fence)
                ),
                Trust::Certain,
            ),
            (true, Some(0), _) if hung.is_none() => continue,
            (true, Some(0), _) => (format!("{name}: all submits are complete"), Trust::Certain),
            (true, ..) => (format!("{name}: fences are not in the dump"), Trust::Certain),
            (false, Some(n @ 1..), _) => (format!("{name} waits too: {}", open_submits(n)), Trust::Certain),
            (false, _, Some(true)) => (format!("{name} has commands the CP has not read"), Trust::Likely),
            (false, ..) => continue,
        };
        let fences = match (ring.last_fence, ring.retired_fence) {
            (Some(last), Some(done)) => format!("last-fence {last}, retired-fence {done}, "),
            _ => String::new(),
        };
        let evidence = Evidence {
            iova: Some(ring.iova),
            span: Some(ring.span),
            ..Evidence::new(format!("ringbuffer {}", ring.id), fences + &pointers(ring.rptr, ring.wptr))
        };
        let why = match (is_hung, open) {
            (true, Some(0)) => "The GPU finished before the dump was taken, or what hung is not a submit.",
            (true, Some(1..)) if idle => {
                "The write of the fence or its interrupt was lost, or the dump was taken just before them."
            }
            (true, None) => "",
            (false, _) => "It is not the ring the CP was reading: preempted, or not scheduled yet.",
            _ => "",
        };
        out.push(Finding {
            kind: FindingKind::Progress,
            trust,
            title,
            why: why.to_owned(),
            evidence: vec![evidence],
        });
    }
    out.extend(untold(case, stop));
    out
}

/// The CP was not told of all that the kernel wrote to the ring.
fn untold(case: &Case<'_>, stop: Option<&Stop>) -> Option<Finding> {
    let ring = case.dump.rings.get(stop?.ring).filter(|r| case.regs.address("CP_RB_BASE") == Some(r.iova))?;
    let (told, written) = (case.regs.get("CP_RB_WPTR")?, ring.wptr?);
    if told == written {
        return None;
    }
    let evidence = Evidence {
        iova: Some(ring.iova),
        span: Some(ring.span),
        ..Evidence::new(format!("ringbuffer {}", ring.id), pointers(ring.rptr, ring.wptr))
    };
    Some(Finding {
        kind: FindingKind::Progress,
        trust: Trust::Likely,
        title: format!("the CP was told to read ring {} up to {told}, the kernel wrote up to {written}", ring.id),
        why: "The last submits did not reach the hardware: the GPU lost power or its state, or the ring was being \
              switched."
            .to_owned(),
        evidence: case.regs.evidence("CP_RB_WPTR").into_iter().chain([evidence]).collect(),
    })
}

fn open_submits(n: i32) -> String {
    if n == 1 { "1 submit is open".to_owned() } else { format!("{n} submits are open") }
}

fn next_fence(retired: Option<u32>) -> String {
    retired.map_or_else(|| "unknown".to_owned(), |r| r.wrapping_add(1).to_string())
}
