//! The GMU: its registers, its messages with the kernel, and whether the GPU was up at all.
//!
//! Facts: register names of the database, [`unwedge_hw::adreno::hfi`].

use unwedge_capture::msm::GmuBuffer;
use unwedge_hw::adreno::hfi::{MSG_ACK, MSG_ERROR, MessageHeader, QueueHeader};

use crate::adreno::case::{AdrenoCase, field, seen};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;

/// What firmware leaves in GMU_CM3_FW_INIT_RESULT once it is up: older ones a magic, newer ones a bit.
fn alive(result: u32) -> bool {
    result == 0xbabe_face || result & 0x1ff == 0x100
}

/// What is wrong with the GMU, if anything.
pub fn findings(case: &AdrenoCase<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    if case.dump.gpu_initialized == Some(0) {
        let evidence = seen("header", field("gpu-initialized", Arg::Number(0)));
        out.push(Finding::new(Rule::GpuNotInitialized, Trust::Certain, Subject::Gpu).seen([evidence]));
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
    rule: Rule,
    trust: Trust,
}

const ALARMS: &[Alarm] = &[
    Alarm {
        register: "GMU_AO_HOST_INTERRUPT_STATUS",
        bits: 1,
        rule: Rule::GmuWatchdog,
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_AO_HOST_INTERRUPT_STATUS",
        bits: 1 << 3,
        rule: Rule::GmuFenceStoppedAccess,
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_AO_HOST_INTERRUPT_STATUS",
        bits: 1 << 5,
        rule: Rule::GmuBusError,
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_GMU2HOST_INTR_INFO",
        bits: 1 << 23,
        rule: Rule::GmuProcessorFault,
        trust: Trust::Certain,
    },
    Alarm {
        register: "GMU_AHB_FENCE_STATUS",
        bits: 3,
        rule: Rule::GmuFenceDroppedWrite,
        trust: Trust::Likely,
    },
];

fn gmu() -> Subject {
    Subject::Block("GMU".into())
}

fn registers(case: &AdrenoCase<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    for alarm in ALARMS {
        if case.gmu.get(alarm.register).is_some_and(|v| v & alarm.bits != 0) {
            let evidence = case.gmu.flags_evidence(alarm.register);
            out.push(Finding::new(alarm.rule, alarm.trust, gmu()).seen(evidence));
        }
    }
    if let Some(result) = case.gmu.get("GMU_CM3_FW_INIT_RESULT").filter(|&r| r != 0 && !alive(r)) {
        out.push(
            Finding::new(Rule::GmuStartResult, Trust::Possible, gmu())
                .with("result", Arg::Value(u64::from(result)))
                .seen(case.gmu.evidence("GMU_CM3_FW_INIT_RESULT")),
        );
    }
    out
}

/// Queues looked at; kernels make two.
const MAX_QUEUES: usize = 8;

/// A message of a HFI queue.
struct HfiMessage<'h> {
    queue: usize,
    id: u32,
    payload: &'h [u32],
}

/// The last messages of each queue, by the history the kernel keeps.
fn recent_messages<'h>(hfi: &GmuBuffer<'_>, words: &'h [u32]) -> Vec<HfiMessage<'h>> {
    let mut out = Vec::new();
    for (queue, history) in hfi.history.iter().enumerate().take(MAX_QUEUES) {
        let Some(header) = QueueHeader::read(words, queue) else { continue };
        let (iova, dwords) = (u64::from(header.iova), header.size as usize);
        let Some(base) = iova.checked_sub(hfi.iova).and_then(|offset| usize::try_from(offset / 4).ok())
        else {
            continue;
        };
        for &at in history {
            let Some(at) = usize::try_from(at).ok().filter(|&at| at < dwords) else { continue };
            let Some(&head) = base.checked_add(at).and_then(|at| words.get(at)) else { continue };
            let head = MessageHeader(head);
            let start = base + at + 1;
            let end = start.saturating_add((head.size() as usize).saturating_sub(1)).min(words.len());
            out.push(HfiMessage { queue, id: head.id(), payload: words.get(start..end).unwrap_or_default() });
        }
    }
    out
}

fn messages(hfi: &GmuBuffer<'_>) -> Vec<Finding> {
    let words = hfi.data.as_ref().map(|d| d.decode()).unwrap_or_default();
    let mut out = Vec::new();
    let here = |args: Args| Evidence { span: Some(hfi.span), ..seen("gmu-hfi", Fact::Record(args)) };
    for message in recent_messages(hfi, &words) {
        let finding = match (message.id, message.payload) {
            (MSG_ERROR, [code, ..]) => Finding::new(Rule::GmuErrorMessage, Trust::Certain, gmu())
                .with("code", Arg::Value(u64::from(*code))),
            (MSG_ACK, [request, error, ..]) if *error != 0 => {
                Finding::new(Rule::GmuRefusedMessage, Trust::Certain, gmu())
                    .with("message", Arg::Number(u64::from(MessageHeader(*request).id())))
                    .with("error", Arg::Value(u64::from(*error)))
            }
            _ => continue,
        };
        let args = Args::new()
            .with("queue", Arg::Number(message.queue as u64))
            .with("message", Arg::Number(u64::from(message.id)));
        out.push(finding.seen([here(args)]));
    }
    for queue in 0..hfi.history.len().min(MAX_QUEUES) {
        let Some(QueueHeader { read_index: read, write_index: write, dropped, .. }) =
            QueueHeader::read(&words, queue)
        else {
            continue;
        };
        if dropped == 0 && (read == write || queue != 0) {
            continue;
        }
        let (rule, trust) = match dropped {
            0 => (Rule::GmuMessageUnread, Trust::Likely),
            _ => (Rule::HfiDroppedMessages, Trust::Certain),
        };
        let args = Args::new()
            .with("queue", Arg::Number(queue as u64))
            .with("read_index", Arg::Number(u64::from(read)))
            .with("write_index", Arg::Number(u64::from(write)))
            .with("dropped", Arg::Number(u64::from(dropped)));
        out.push(Finding::new(rule, trust, gmu()).seen([here(args)]));
    }
    out
}
