//! What was in flight: the packet the CP waits in, the draw it starts, the work before it that is not known to be done,
//! and the writes the clusters have not taken.

use unwedge_base::Generation;
use unwedge_hw::{DecodedValue, Variants};
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::Wait;
use unwedge_stream::adreno::{AdrenoOp, DrawKind};

use crate::adreno::busy::idle_behind_cp;
use crate::adreno::case::{AdrenoCase, register, seen};
use crate::adreno::corrupt::section_of;
use crate::adreno::hang::CpStop;
use crate::adreno::mempool::{self, Mempool, Queue, QueueEnd};
use crate::adreno::sqe::SqeStat;
use crate::adreno::trace::{TracedWork, header_of, packet_name};
use crate::adreno::unfinished::Unfinished;
use crate::adreno::wait;
use crate::adreno::writer;
use crate::args::{Arg, Args};
use crate::awaited::{WaitEnd, WriterOrder};
use crate::report::{Evidence, Fact, FieldFact, Finding, Subject, Trust};
use crate::rules::Rule;

/// Which pass of a frame a marker stands for.
pub fn pass_name(generation: Generation, marker: u32) -> Option<&'static str> {
    if generation >= Generation::A6xx {
        return Some(match marker & 0xf {
            1 => "sysmem",
            2 => "binning",
            3 => "gmem without visibility",
            4 | 5 | 7 => "gmem",
            6 => "gmem resolve",
            8 => "compute",
            0xc => "blit",
            _ => return None,
        });
    }
    Some(match marker {
        1 => "sysmem",
        2 => "binning",
        3 => "gmem",
        5 => "blit",
        _ => return None,
    })
}

/// A piece of work as data: its kind and number, its packet, and what it draws, as far as that is known.
pub fn work_args(case: &AdrenoCase<'_>, work: &TracedWork) -> Args {
    let named = |list: &str, value: Option<u32>| {
        value.map(|value| match case.gpu.enumeration(list).and_then(|e| e.name_of(u64::from(value))) {
            Some(name) => Arg::name(name.to_owned()),
            None => Arg::Value(u64::from(value)),
        })
    };
    Args::new()
        .with("kind", Arg::name(kind_name(work.kind)))
        .with("number", Arg::Number(u64::from(work.number)))
        .with("packet", Arg::name(work.packet.clone()))
        .with_some("primitive", named("pc_di_primtype", work.primitive))
        .with_some("event", named("vgt_event_type", work.event))
        .with_some("indices", work.count.map(|n| Arg::Number(n.into())))
        .with_some("instances", work.instances.filter(|&n| n > 1).map(|n| Arg::Number(n.into())))
}

fn kind_name(kind: DrawKind) -> &'static str {
    match kind {
        DrawKind::Draw => "draw",
        DrawKind::Dispatch => "dispatch",
        DrawKind::Blit => "blit",
        DrawKind::Event => "event",
    }
}

fn work_subject(work: &TracedWork) -> Subject {
    Subject::Work { kind: kind_name(work.kind), number: work.number }
}

/// In which pass, and which bin with its scissor. Bins count from 0.
pub fn pass_args(case: &AdrenoCase<'_>, stop: &CpStop) -> Option<Args> {
    let pass = pass_name(case.gpu.generation(), stop.scene.marker?)?;
    let bin = stop.scene.bins.checked_sub(1).filter(|_| pass.starts_with("gmem"));
    let scissor = bin.and(stop.scene.scissor);
    Some(
        Args::new()
            .with("name", Arg::name(pass))
            .with_some("bin", bin.map(|bin| Arg::Number(u64::from(bin))))
            .with_some("scissor", scissor.map(|s| Arg::List(s.iter().map(|&n| Arg::Number(n)).collect()))),
    )
}

/// The CP waits in the packet at the stop.
pub(super) fn cp_wait(
    case: &AdrenoCase<'_>,
    stop: &CpStop,
    unfinished: Option<&Unfinished<'_>>,
) -> Option<Finding> {
    let packet = stop.scene.packet.as_ref()?;
    let at = packet.iova;
    let subject = Subject::Packet { name: Some(packet.name.clone()), iova: at };
    let own = |wait: Option<Args>| {
        let args = Args::new()
            .with("packet", Arg::name(packet.name.clone()))
            .with_some("waits_for", wait.map(Arg::Record));
        Evidence { iova: at, ..seen(section_of(case, at), Fact::Record(args)) }
    };
    if let Some(parsed) = Wait::parse(packet.op, &packet.payload, case.gpu.generation()) {
        let wanted = wait::args(&parsed, case);
        let now = wait::now(&parsed, case);
        let source = now.map(|now| match parsed.operand {
            WaitOperand::Memory(iova) => {
                let words = vec![now];
                let fact = Fact::Dwords { level: None, first: None, count: 1, words, packet: None };
                Evidence { iova: Some(iova), ..seen(section_of(case, Some(iova)), fact) }
            }
            _ => seen("registers", register(wanted.text("register").unwrap_or_default(), u64::from(now))),
        });
        let writer = match parsed.operand {
            WaitOperand::Memory(iova) => writer::find(case, stop, Some(&parsed), iova),
            WaitOperand::Register(_) | WaitOperand::OnChip(_) => None,
        };
        let in_memory = matches!(parsed.operand, WaitOperand::Memory(_));
        // An event before the wait writes the value when the work before it is over.
        let by_event = matches!(&writer, Some(WaitEnd::Writer(write)) if write.order == WriterOrder::Earlier
            && write.ends == Some(true)
            && write.args.text("packet").is_some_and(|packet| packet.starts_with("CP_EVENT_WRITE")));
        let (rule, trust) = match (now.map(|now| parsed.accepts(now)), &writer) {
            (Some(true), _) => (Rule::CpAwaitedValueIsThere, Trust::Possible),
            _ if by_event && unfinished.is_some() => (Rule::CpWaitsForQueuedEvent, Trust::Likely),
            // A packet after the wait is never reached, so the stream holds itself up. Who else could write is not known.
            // One whose value is not known may write any other.
            (Some(false), Some(WaitEnd::Itself(later))) if later.ends == Some(true) => {
                (Rule::CpWaitsForItself, Trust::Certain)
            }
            (None, Some(WaitEnd::Itself(later))) if later.ends == Some(true) => {
                (Rule::CpWaitsForItself, Trust::Likely)
            }
            (_, Some(WaitEnd::WrongValue(_))) => (Rule::CpWaitsForWrongWrite, Trust::Likely),
            (Some(false), _) if in_memory => (Rule::CpWaitsForValue, Trust::Likely),
            (Some(false), _) => (Rule::CpWaitsForValue, Trust::Certain),
            (None, _) => (Rule::CpWaitsForUnknownValue, Trust::Likely),
        };
        let trust = trust.min(stop.point.trust.max(Trust::Possible));
        return Some(
            Finding::new(rule, trust, subject)
                .with("packet", Arg::name(packet.name.clone()))
                .with("waits_for", Arg::Record(wanted.clone()))
                .with_some("value", now.map(|now| Arg::Value(u64::from(now))))
                .with("idle_downstream", idle_behind_cp(case) == Some(true))
                .with("no_writer", writer == Some(WaitEnd::Nobody))
                .with_some("writer", writer.and_then(WaitEnd::writer).map(|w| Arg::Record(w.into_args())))
                .seen([own(Some(wanted))])
                .seen(source),
        );
    }
    let rule = match packet.op {
        AdrenoOp::WaitForIdle => Rule::CpWaitsForWork,
        AdrenoOp::WaitForMe => Rule::CpWaitsForRegisterWrites,
        AdrenoOp::RegToMem | AdrenoOp::MemToReg => Rule::CpWaitsForWaits,
        _ => return None,
    };
    Some(
        Finding::new(rule, stop.point.trust.min(Trust::Likely), subject)
            .with("packet", Arg::name(packet.name.clone()))
            .seen([own(None)]),
    )
}

/// Work that is not known to be finished: newest first, and the number of waits that are still queued.
pub struct OpenWork<'s> {
    /// The work, newest first.
    pub work: Vec<&'s TracedWork>,
    /// CP_WAIT_FOR_IDLE that the SQE has sent and the clusters have not executed.
    pub pending_waits: u32,
}

/// Work since the last CP_WAIT_FOR_IDLE that is known to be over; none if the hardware is idle.
pub fn open_work<'s>(stop: &'s CpStop, pool: Option<&Mempool>, case: &AdrenoCase<'_>) -> OpenWork<'s> {
    let pending = pool.map_or(0, |pool| pool.queues.iter().map(|q| waits_in(q, case)).max().unwrap_or(0));
    let since = stop.scene.waits.saturating_sub(pending);
    let idle = idle_behind_cp(case) == Some(true);
    let work = stop.scene.work.iter().rev().filter(|w| !idle && w.waits_before >= since).collect();
    OpenWork { work, pending_waits: pending }
}

fn waits_in(queue: &Queue, case: &AdrenoCase<'_>) -> u32 {
    let waits = queue.writes.iter().filter(|w| w.pipe && w.name(case.gpu).starts_with("WFI_PEND_DECR"));
    u32::try_from(waits.count()).unwrap_or(u32::MAX)
}

/// The draw the CP was starting, and its state; else the last work it sent, unless that is the first suspect.
pub fn own_draw(case: &AdrenoCase<'_>, stop: &CpStop, open: &OpenWork<'_>) -> Option<Finding> {
    let last = || stop.scene.work.back().filter(|w| open.work.first().is_none_or(|o| o.number != w.number));
    let work = stop.scene.own_work.as_ref().or_else(last)?;
    let (rule, trust) = match stop.scene.own_work.is_some() {
        true => (Rule::WorkStarting, stop.point.trust),
        false => (Rule::WorkLastSent, stop.point.trust.min(Trust::Likely)),
    };
    let finding = Finding::new(rule, trust, work_subject(work))
        .with("work", work_args(case, work))
        .with("state", state_args(case, work))
        .seen([work_evidence(case, work)]);
    Some(finding.seen(state_evidence(case, work)))
}

fn work_evidence(case: &AdrenoCase<'_>, work: &TracedWork) -> Evidence {
    Evidence { iova: work.iova, ..seen(section_of(case, work.iova), Fact::Work(work_args(case, work))) }
}

/// The registers that describe a piece of work: addresses whole, formats by name.
fn state_evidence(case: &AdrenoCase<'_>, work: &TracedWork) -> Vec<Evidence> {
    let fact = |&(reg, value): &(u32, u64)| {
        let entry = case.gpu.reg(reg)?;
        let ty = entry.ty()?;
        let name = entry.name().to_owned();
        if ty.is_address() {
            return (value != 0).then(|| register(name, value));
        }
        let DecodedValue::Fields(fields) = ty.decode(value, &mut Variants::default()) else { return None };
        let format = fields.iter().find_map(|f| match (f.name, &f.value) {
            ("COLOR_FORMAT" | "DEPTH_FORMAT", &DecodedValue::Enum(_, meaning)) => Some((f, meaning?)),
            _ => None,
        });
        let (field, meaning) = format.filter(|(_, meaning)| !meaning.ends_with("_NONE"))?;
        let field = FieldFact {
            name: field.name.to_owned().into(),
            value: field.raw,
            meaning: Some(meaning.to_owned().into()),
        };
        Some(Fact::Register { name: name.into(), value, fields: vec![field] })
    };
    work.state.iter().filter_map(fact).map(|fact| seen("state at the stop", fact)).collect()
}

/// The same registers, for the words: a record with the register and its address or format each.
fn state_args(case: &AdrenoCase<'_>, work: &TracedWork) -> Arg {
    let record = |e: Evidence| match e.fact {
        Fact::Register { name, value, fields } => {
            let args = Args::new().with("register", Arg::Name(name));
            Some(Arg::Record(match fields.into_iter().next().and_then(|field| field.meaning) {
                Some(format) => args.with("format", Arg::Name(format)),
                None => args.with("address", Arg::Address(value)),
            }))
        }
        _ => None,
    };
    Arg::List(state_evidence(case, work).into_iter().filter_map(record).collect())
}

/// Work before the stop that may be the culprit.
pub(super) fn suspects(
    case: &AdrenoCase<'_>,
    open: &OpenWork<'_>,
    pool: Option<&Mempool>,
    unfinished: Option<&Unfinished<'_>>,
) -> Option<Finding> {
    let blit_open = pool.and_then(|p| p.queue("PS")).is_some_and(|q| ends_blit(q, case));
    let culprit = open.work.iter().find(|w| blit_open && w.kind == DrawKind::Blit).or(open.work.first())?;
    let blit = blit_open && culprit.kind == DrawKind::Blit;
    let (rule, trust, culprit) = match (blit, unfinished) {
        (true, _) => (Rule::BlitNotFinished, Trust::Likely, *culprit),
        (false, Some(unfinished)) => (Rule::WorkNotFinished, unfinished.trust(), unfinished.work),
        (false, None) => (Rule::WorkMayBeRunning, Trust::Possible, *culprit),
    };
    let queue = blit.then(|| {
        let args = Args::new().with("cluster", Arg::name("PS")).with("next", Arg::name("CP_2D_EVENT_END"));
        seen("indexed-registers CP_MEMPOOL", Fact::Record(args))
    });
    let finding = Finding::new(rule, trust, work_subject(culprit))
        .with("work", work_args(case, culprit))
        .with("open", Arg::Number(open.work.len() as u64))
        .with("pending_waits", Arg::Number(u64::from(open.pending_waits)))
        .with("state", state_args(case, culprit))
        .seen(queue)
        .seen(open.work.iter().take(6).map(|w| work_evidence(case, w)));
    Some(finding.seen(state_evidence(case, culprit)))
}

/// The next write the queue holds ends a 2D event.
fn ends_blit(queue: &Queue, case: &AdrenoCase<'_>) -> bool {
    queue.writes.first().is_some_and(|w| w.name(case.gpu).starts_with("CP_2D_EVENT_END"))
}

/// The pool of queued writes, if the dump has it.
pub fn pool(case: &AdrenoCase<'_>) -> Option<(Mempool, Evidence)> {
    let (words, evidence) = case.indexed("CP_MEMPOOL").or_else(|| case.indexed("CP_MEM_POOL_DBG"))?;
    Some((mempool::parse(&words, case.gpu), evidence))
}

/// What the other command thread of a7xx (BV) was doing.
pub fn bv_thread(case: &AdrenoCase<'_>) -> Option<Finding> {
    let (words, source) = case.indexed("CP_BV_SQE_STAT")?;
    let stat = SqeStat::parse(&words)?;
    let packet = header_of(stat.header(), case.gpu.generation()).map(|h| packet_name(case.gpu, h));
    let pool = case.indexed("CP_BV_MEM_POOL_DBG").or_else(|| case.indexed("CP_BV_MEMPOOL"));
    let queued = pool.map(|(words, _)| mempool::parse_bv(&words).total()).filter(|&n| n > 0);
    let fact = Fact::Record(
        Args::new()
            .with("pc", Arg::Value(u64::from(stat.pc)))
            .with("header", Arg::Value(u64::from(stat.header()))),
    );
    Some(
        Finding::new(Rule::BvThreadAt, Trust::Likely, Subject::Block("BV".into()))
            .with_some("packet", packet.map(Arg::name))
            .with("header", Arg::Value(u64::from(stat.header())))
            .with_some("queued", queued.map(|n| Arg::Number(n as u64)))
            .seen([Evidence { fact, ..source }]),
    )
}

/// Writes that the clusters have not taken.
pub fn queued(case: &AdrenoCase<'_>, pool: &Mempool, source: &Evidence) -> Option<Finding> {
    let behind = pool.queues.iter().filter(|q| !q.writes.is_empty()).max_by_key(|q| q.writes.len())?;
    let args = |queue: &Queue| {
        let write = queue.writes.first();
        Args::new()
            .with("cluster", Arg::name(queue.cluster))
            .with("queued", Arg::Number(queue.writes.len() as u64))
            .with_some("next", write.map(|w| Arg::name(w.name(case.gpu))))
            .with_some("value", write.map(|w| Arg::Value(u64::from(w.value))))
    };
    let queues = pool.queues.iter().filter(|q| !q.writes.is_empty());
    let evidence: Vec<_> =
        queues.map(|queue| Evidence { fact: Fact::Record(args(queue)), ..source.clone() }).collect();
    let whole = pool.queues.iter().all(|q| q.end == QueueEnd::Whole || q.counted == 0 && q.writes.is_empty());
    let trust = if whole { Trust::Likely } else { Trust::Possible };
    Some(
        Finding::new(Rule::QueuedWrites, trust, Subject::Block(format!("CLUSTER_{}", behind.cluster).into()))
            .with("total", Arg::Number(pool.total() as u64))
            .with("longest", args(behind))
            .seen(evidence),
    )
}
