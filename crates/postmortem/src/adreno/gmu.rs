//! The GMU: its registers, its messages with the kernel, and whether the GPU was up at all.
//!
//! Facts: register names of the database, freedreno's and the kernel's description of HFI queues and messages.

use unwedge_capture::msm::GmuBuffer;

use crate::adreno::case::Case;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

/// What firmware leaves in GMU_CM3_FW_INIT_RESULT once it is up: older ones a magic, newer ones a bit.
fn alive(result: u32) -> bool {
    result == 0xbabe_face || result & 0x1ff == 0x100
}

/// Message ids.
const MSG_ERROR: u32 = 100;
const MSG_ACK: u32 = 126;

/// What is wrong with the GMU, if anything.
pub fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    if case.dump.gpu_initialized == Some(0) {
        out.push(Finding {
            kind: FindingKind::Gmu,
            trust: Trust::Certain,
            title: "the GPU was not initialized when the dump was taken".to_owned(),
            why: "It did not come up, or was down again by then: what is not there was not read, and registers \
                  that are there may be of a block without clocks."
                .to_owned(),
            evidence: vec![Evidence::new("header", "gpu-initialized: 0")],
        });
    }
    out.extend(registers(case));
    if let Some(hfi) = &case.dump.gmu_hfi {
        out.extend(messages(hfi));
    }
    out
}

/// A register with bits that are errors.
struct Alarm {
    register: &'static str,
    bits: u32,
    title: &'static str,
    trust: Trust,
}

const ALARMS: &[Alarm] = &[
    Alarm {
        register: "GMU_AO_HOST_INTERRUPT_STATUS",
        bits: 1,
        title: "the GMU's watchdog bit: its firmware stopped",
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_AO_HOST_INTERRUPT_STATUS",
        bits: 1 << 3,
        title: "a register access was stopped at the GMU's fence",
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_AO_HOST_INTERRUPT_STATUS",
        bits: 1 << 5,
        title: "an AHB bus error on the GMU's side",
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_GMU2HOST_INTR_INFO",
        bits: 1 << 23,
        title: "the GMU's processor reports a fault",
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_AHB_FENCE_STATUS",
        bits: 3,
        title: "a register write was dropped at the GMU's fence",
        trust: Trust::Likely,
    },
];

fn registers(case: &Case<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for alarm in ALARMS {
        if case.gmu.get(alarm.register).is_some_and(|v| v & alarm.bits != 0) {
            out.push(Finding {
                kind: FindingKind::Gmu,
                trust: alarm.trust,
                title: alarm.title.to_owned(),
                why: String::new(),
                evidence: case.gmu.flags_evidence(alarm.register).into_iter().collect(),
            });
        }
    }
    if let Some(result) = case.gmu.get("GMU_CM3_FW_INIT_RESULT").filter(|&r| r != 0 && !alive(r)) {
        out.push(Finding {
            kind: FindingKind::Gmu,
            trust: Trust::Possible,
            title: format!("the GMU firmware's start result is {result:#x}"),
            why: "Its boot did not end as usual.".to_owned(),
            evidence: case.gmu.evidence("GMU_CM3_FW_INIT_RESULT").into_iter().collect(),
        });
    }
    out
}

/// Dwords of the queue table's header, and of each queue's.
const TABLE_DWORDS: usize = 6;
const QUEUE_DWORDS: usize = 12;
const MAX_QUEUES: usize = 8;

/// A message of a HFI queue.
struct Message<'h> {
    queue: usize,
    id: u32,
    payload: &'h [u32],
}

/// The last messages of each queue, by the history the kernel keeps.
fn recent_messages<'h>(hfi: &GmuBuffer<'_>, words: &'h [u32]) -> Vec<Message<'h>> {
    let mut out = Vec::new();
    for (queue, history) in hfi.history.iter().enumerate().take(MAX_QUEUES) {
        let Some(header) =
            words.get(TABLE_DWORDS + queue * QUEUE_DWORDS..).and_then(|w| w.get(..QUEUE_DWORDS))
        else {
            continue;
        };
        let (iova, dwords) = (u64::from(header[1]), header[3] as usize);
        let Some(base) = iova.checked_sub(hfi.iova).and_then(|offset| usize::try_from(offset / 4).ok())
        else {
            continue;
        };
        for &at in history {
            let Some(at) = usize::try_from(at).ok().filter(|&at| at < dwords) else { continue };
            let Some(&head) = base.checked_add(at).and_then(|at| words.get(at)) else { continue };
            let size = ((head >> 8) & 0xff) as usize;
            let start = base + at + 1;
            let end = start.saturating_add(size.saturating_sub(1)).min(words.len());
            out.push(Message { queue, id: head & 0xff, payload: words.get(start..end).unwrap_or_default() });
        }
    }
    out
}

fn messages(hfi: &GmuBuffer<'_>) -> Vec<Finding> {
    let words = hfi.data.as_ref().map(|d| d.decode()).unwrap_or_default();
    let mut out = Vec::new();
    for message in recent_messages(hfi, &words) {
        let error = match (message.id, message.payload) {
            (MSG_ERROR, [code, ..]) => format!("the GMU sent an error message, code {code:#x}"),
            (MSG_ACK, [request, error, ..]) if *error != 0 => {
                format!("the GMU refused message {} with error {error:#x}", request & 0xff)
            }
            _ => continue,
        };
        out.push(Finding {
            kind: FindingKind::Gmu,
            trust: Trust::Certain,
            title: error,
            why: String::new(),
            evidence: vec![Evidence {
                span: Some(hfi.span),
                ..Evidence::new("gmu-hfi", format!("queue {}, message {}", message.queue, message.id))
            }],
        });
    }
    for queue in 0..hfi.history.len().min(MAX_QUEUES) {
        let Some(header) =
            words.get(TABLE_DWORDS + queue * QUEUE_DWORDS..).and_then(|w| w.get(..QUEUE_DWORDS))
        else {
            continue;
        };
        let (read, write, dropped) = (header[10], header[11], header[5]);
        if dropped == 0 && (read == write || queue != 0) {
            continue;
        }
        let (title, trust) = match dropped {
            0 => ("the GMU has not read the kernel's last message", Trust::Likely),
            _ => ("a HFI queue dropped messages", Trust::Certain),
        };
        out.push(Finding {
            kind: FindingKind::Gmu,
            trust,
            title: title.to_owned(),
            why: String::new(),
            evidence: vec![Evidence {
                span: Some(hfi.span),
                ..Evidence::new(
                    "gmu-hfi",
                    format!("queue {queue}: read_index {read}, write_index {write}, dropped {dropped}"),
                )
            }],
        });
    }
    out
}
