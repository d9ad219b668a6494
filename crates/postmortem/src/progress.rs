//! Rings and fences: what was submitted, what completed, what other rings did.

use crate::case::Case;
use crate::hang::{Stop, pointers};
use crate::report::{Evidence, Finding, FindingKind, Trust};

/// One finding for the hung ring, one for each other ring with something to say.
pub fn findings(case: &Case<'_>, stop: Option<&Stop>) -> Vec<Finding> {
    let hung = stop.map(|s| s.ring);
    let mut out = Vec::new();
    for (i, ring) in case.dump.rings.iter().enumerate() {
        let is_hung = hung == Some(i);
        // Fences are sequence numbers that wrap around.
        let open = ring.last_fence.zip(ring.retired_fence).map(|(last, done)| last.wrapping_sub(done) as i32);
        let unread = ring.rptr.zip(ring.wptr).map(|(r, w)| r != w);
        let name = format!("ring {}", ring.id);
        let (title, trust) = match (is_hung, open, unread) {
            (_, Some(n @ 1..), _) if is_hung => (
                format!(
                    "{name}: {}, the oldest is fence {}",
                    open_submits(n),
                    next_fence(ring.retired_fence)
                ),
                Trust::Certain,
            ),
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
            (true, Some(0)) => {
                "The hang is after the last fence, or the GPU finished before the dump was taken."
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
    out
}

fn open_submits(n: i32) -> String {
    if n == 1 { "1 submit is open".to_owned() } else { format!("{n} submits are open") }
}

fn next_fence(retired: Option<u32>) -> String {
    retired.map_or_else(|| "unknown".to_owned(), |r| r.wrapping_add(1).to_string())
}
