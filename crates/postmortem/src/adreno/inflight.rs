//! What was in flight: the packet the CP waits in, the draw it starts, the work before it that is not known to be done,
//! and the writes the clusters have not taken.

use unwedge_base::Generation;
use unwedge_hw::{Value, Variants};
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::Wait;
use unwedge_stream::adreno::{DrawKind, Op};

use crate::adreno::busy::idle_behind_cp;
use crate::adreno::case::Case;
use crate::adreno::corrupt::section_of;
use crate::adreno::hang::Stop;
use crate::adreno::mempool::{self, Mempool, Queue, QueueEnd};
use crate::adreno::sqe::SqeStat;
use crate::adreno::trace::{Work, header_of, packet_name};
use crate::adreno::wait;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

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

/// A piece of work in words: `draw 19 (CP_DRAW_INDX_OFFSET, DI_PT_TRILIST, 6 indices)`; its packet's name can be left
/// out.
pub fn work_words(case: &Case<'_>, work: &Work, packet: bool) -> String {
    let kind = match work.kind {
        DrawKind::Draw => "draw",
        DrawKind::Dispatch => "dispatch",
        DrawKind::Blit => "blit",
        DrawKind::Event => "event",
    };
    let mut parts: Vec<String> = packet.then(|| work.packet.clone()).into_iter().collect();
    if let Some(primitive) = work.primitive {
        let name = case.gpu.enumeration("pc_di_primtype").and_then(|e| e.name_of(u64::from(primitive)));
        parts.push(name.map_or_else(|| format!("primitive {primitive:#x}"), str::to_owned));
    }
    if let Some(event) = work.event {
        let name = case.gpu.enumeration("vgt_event_type").and_then(|e| e.name_of(u64::from(event)));
        parts.push(name.map_or_else(|| format!("event {event:#x}"), str::to_owned));
    }
    if let Some(count) = work.count {
        parts.push(format!("{count} indices"));
    }
    if let Some(instances) = work.instances.filter(|&n| n > 1) {
        parts.push(format!("{instances} instances"));
    }
    match parts.is_empty() {
        true => format!("{kind} {}", work.number),
        false => format!("{kind} {} ({})", work.number, parts.join(", ")),
    }
}

/// In which pass, and which bin: `sysmem`, `gmem, bin 2 (256,0…511,255)`. Bins count from 0.
pub fn pass_words(case: &Case<'_>, stop: &Stop) -> Option<String> {
    let pass = pass_name(case.gpu.generation(), stop.scene.marker?)?;
    let bin = stop.scene.bins.checked_sub(1).filter(|_| pass.starts_with("gmem"));
    Some(match (bin, stop.scene.scissor) {
        (Some(bin), Some([x1, y1, x2, y2])) => format!("{pass}, bin {bin} ({x1},{y1}…{x2},{y2})"),
        (Some(bin), None) => format!("{pass}, bin {bin}"),
        (None, _) => pass.to_owned(),
    })
}

/// The CP waits in the packet at the stop.
pub fn cp_wait(case: &Case<'_>, stop: &Stop) -> Option<Finding> {
    let packet = stop.scene.packet.as_ref()?;
    let at = packet.iova;
    let seen = |what: String| Evidence { iova: at, ..Evidence::new(section_of(case, at), what) };
    if let Some(wait) = Wait::parse(packet.op, &packet.payload, case.gpu.generation()) {
        let wanted = wait::describe(&wait, case);
        let mut evidence = vec![seen(format!("{} waits for {wanted}", packet.name))];
        let now = wait::now(&wait, case);
        if let Some(now) = now {
            let source = match wait.operand {
                WaitOperand::Memory(iova) => Evidence {
                    iova: Some(iova),
                    ..Evidence::new(section_of(case, Some(iova)), format!("[{iova:#x}] = {now:#x}"))
                },
                _ => Evidence::new("registers", format!("value in the dump {now:#x}")),
            };
            evidence.push(source);
        }
        let idle = idle_behind_cp(case) == Some(true);
        let hardware =
            if idle { " All blocks behind the CP are idle: nothing running will write it." } else { "" };
        let (what, why, trust) = match now.map(|now| (now, wait.accepts(now))) {
            Some((now, false)) => (
                format!("has {now:#x}"),
                format!("The CP polls until the value is there; the dump has {now:#x}.{hardware}"),
                Trust::Certain,
            ),
            Some((now, true)) => (
                format!("has {now:#x} now"),
                "The awaited value is there in the dump: it came late, or the CP is past this packet."
                    .to_owned(),
                Trust::Possible,
            ),
            None => (
                "value not in the dump".to_owned(),
                format!("The CP polls until the value is there.{hardware}"),
                Trust::Likely,
            ),
        };
        let title = format!("the CP waits in {} for {wanted}: {what}", packet.name);
        let trust = trust.min(stop.point.trust.max(Trust::Possible));
        return Some(Finding { kind: FindingKind::CpWait, trust, title, why, evidence });
    }
    let awaited = match packet.op {
        Op::WaitForIdle => "earlier work to finish",
        Op::WaitForMe => "earlier register writes to land",
        Op::RegToMem | Op::MemToReg => "earlier waits to end",
        _ => return None,
    };
    Some(Finding {
        kind: FindingKind::CpWait,
        trust: stop.point.trust.min(Trust::Likely),
        title: format!("the CP waits in {} for {awaited}", packet.name),
        why: "The culprit is in front of this packet.".to_owned(),
        evidence: vec![seen(packet.name.clone())],
    })
}

/// Work that is not known to be finished: newest first, and the number of waits that are still queued.
pub struct Open<'s> {
    /// The work, newest first.
    pub work: Vec<&'s Work>,
    /// CP_WAIT_FOR_IDLE that the SQE has sent and the clusters have not executed.
    pub pending_waits: u32,
}

/// Work since the last CP_WAIT_FOR_IDLE that is known to be over; none if the hardware is idle.
pub fn open_work<'s>(stop: &'s Stop, pool: Option<&Mempool>, case: &Case<'_>) -> Open<'s> {
    let pending = pool.map_or(0, |pool| pool.queues.iter().map(|q| waits_in(q, case)).max().unwrap_or(0));
    let since = stop.scene.waits.saturating_sub(pending);
    let idle = idle_behind_cp(case) == Some(true);
    let work = stop.scene.work.iter().rev().filter(|w| !idle && w.waits_before >= since).collect();
    Open { work, pending_waits: pending }
}

fn waits_in(queue: &Queue, case: &Case<'_>) -> u32 {
    let waits = queue.writes.iter().filter(|w| w.pipe && w.name(case.gpu).starts_with("WFI_PEND_DECR"));
    u32::try_from(waits.count()).unwrap_or(u32::MAX)
}

/// The draw the CP was starting, and its state; else the last work it sent, unless that is the first suspect.
pub fn own_draw(case: &Case<'_>, stop: &Stop, open: &Open<'_>) -> Option<Finding> {
    let last = || stop.scene.work.back().filter(|w| open.work.first().is_none_or(|o| o.number != w.number));
    let work = stop.scene.own_work.as_ref().or_else(last)?;
    let started = stop.scene.own_work.is_some();
    let mut evidence = vec![seen_work(case, work)];
    let state = state_words(case, work);
    evidence.extend(state.iter().map(|s| Evidence::new("state at the stop", s.clone())));
    let verb = if started { "the CP was starting" } else { "the last work sent was" };
    let title = format!("{verb} {}", work_words(case, work, true));
    let trust = if started { stop.point.trust } else { stop.point.trust.min(Trust::Likely) };
    let why = if state.is_empty() { String::new() } else { format!("Its state: {}.", state.join(", ")) };
    Some(Finding { kind: FindingKind::InFlight, trust, title, why, evidence })
}

fn seen_work(case: &Case<'_>, work: &Work) -> Evidence {
    Evidence { iova: work.iova, ..Evidence::new(section_of(case, work.iova), work_words(case, work, true)) }
}

/// The registers that describe a piece of work: `RB_MRT[0].BASE = 0x100000`. Addresses whole, formats by name.
fn state_words(case: &Case<'_>, work: &Work) -> Vec<String> {
    let word = |&(reg, value): &(u32, u64)| {
        let entry = case.gpu.reg(reg)?;
        let ty = entry.ty()?;
        if ty.is_address() {
            return (value != 0).then(|| format!("{} = {value:#x}", entry.name()));
        }
        let Value::Fields(fields) = ty.decode(value, &mut Variants::default()) else { return None };
        let name = fields.iter().find_map(|f| match (f.name, &f.value) {
            ("COLOR_FORMAT" | "DEPTH_FORMAT", &Value::Enum(_, name)) => name,
            _ => None,
        })?;
        (!name.ends_with("_NONE")).then(|| format!("{} = {name}", entry.name()))
    };
    work.state.iter().filter_map(word).collect()
}

/// Work before the stop that may be the culprit.
pub fn suspects(case: &Case<'_>, open: &Open<'_>, pool: Option<&Mempool>) -> Option<Finding> {
    let blit_open = pool.and_then(|p| p.queue("PS")).is_some_and(|q| ends_blit(q, case));
    let culprit = open.work.iter().find(|w| blit_open && w.kind == DrawKind::Blit).or(open.work.first())?;
    let mut evidence: Vec<_> = open.work.iter().take(6).map(|w| seen_work(case, w)).collect();
    let state = state_words(case, culprit);
    evidence.extend(state.iter().map(|s| Evidence::new("state at the stop", s.clone())));
    let state = if state.is_empty() { String::new() } else { format!(" Its state: {}.", state.join(", ")) };
    let (title, why, trust) = if blit_open && culprit.kind == DrawKind::Blit {
        evidence
            .insert(0, Evidence::new("indexed-registers CP_MEMPOOL", "CLUSTER_PS: CP_2D_EVENT_END is next"));
        (
            format!("{} before it has not finished", work_words(case, culprit, true)),
            format!(
                "The PS cluster has not taken the end of a 2D event, and this is the last blit sent.{state}"
            ),
            Trust::Likely,
        )
    } else {
        let pending = match open.pending_waits {
            0 => String::new(),
            n => format!(" ({n} more sent, but still queued)"),
        };
        (
            format!(
                "{} may still be running, the newest {}",
                pieces(open.work.len()),
                work_words(case, culprit, true)
            ),
            format!("No CP_WAIT_FOR_IDLE after it is known to be complete{pending}.{state}"),
            Trust::Possible,
        )
    };
    Some(Finding { kind: FindingKind::Suspect, trust, title, why, evidence })
}

fn pieces(n: usize) -> String {
    if n == 1 { "1 piece of earlier work".to_owned() } else { format!("{n} pieces of earlier work") }
}

/// The next write the queue holds ends a 2D event.
fn ends_blit(queue: &Queue, case: &Case<'_>) -> bool {
    queue.writes.first().is_some_and(|w| w.name(case.gpu).starts_with("CP_2D_EVENT_END"))
}

/// The pool of queued writes, if the dump has it.
pub fn pool(case: &Case<'_>) -> Option<(Mempool, Evidence)> {
    let (words, evidence) = case.indexed("CP_MEMPOOL").or_else(|| case.indexed("CP_MEM_POOL_DBG"))?;
    Some((mempool::parse(&words, case.gpu), evidence))
}

/// What the other command thread of a7xx (BV) was doing.
pub fn bv_thread(case: &Case<'_>) -> Option<Finding> {
    let (words, source) = case.indexed("CP_BV_SQE_STAT")?;
    let stat = SqeStat::parse(&words)?;
    let packet = header_of(stat.header(), case.gpu.generation()).map(|h| packet_name(case.gpu, h));
    let packet = packet.unwrap_or_else(|| format!("{:#010x} (no packet)", stat.header()));
    let what = format!("PC {:#x}, $01 = {:#010x}", stat.pc, stat.header());
    let pool = case.indexed("CP_BV_MEM_POOL_DBG").or_else(|| case.indexed("CP_BV_MEMPOOL"));
    let queued = pool.map(|(words, _)| mempool::parse_bv(&words).total()).filter(|&n| n > 0);
    let queued = queued.map(|n| format!("; {n} register writes of it are queued")).unwrap_or_default();
    Some(Finding {
        kind: FindingKind::InFlight,
        trust: Trust::Likely,
        title: format!("the BV thread has {packet} in work{queued}"),
        why: "BV runs ahead through the binning pass, or waits for BR.".to_owned(),
        evidence: vec![Evidence { what, ..source }],
    })
}

/// Writes that the clusters have not taken.
pub fn queued(case: &Case<'_>, pool: &Mempool, source: &Evidence) -> Option<Finding> {
    let behind = pool.queues.iter().filter(|q| !q.writes.is_empty()).max_by_key(|q| q.writes.len())?;
    let mut evidence = Vec::new();
    for queue in pool.queues.iter().filter(|q| !q.writes.is_empty()) {
        let what = format!(
            "CLUSTER_{}: {} queued, next {}",
            queue.cluster,
            queue.writes.len(),
            next_write(queue, case)
        );
        evidence.push(Evidence { what, ..source.clone() });
    }
    let whole = pool.queues.iter().all(|q| q.end == QueueEnd::Whole || q.counted == 0 && q.writes.is_empty());
    let title = format!(
        "{} register writes are queued; CLUSTER_{} is furthest behind ({}), next for it: {}",
        pool.total(),
        behind.cluster,
        behind.writes.len(),
        next_write(behind, case)
    );
    let why =
        "The stage with the longest queue is the one that does not get on; stages before it wait for it.";
    Some(Finding {
        kind: FindingKind::QueuedWrites,
        trust: if whole { Trust::Likely } else { Trust::Possible },
        title,
        why: why.to_owned(),
        evidence,
    })
}

fn next_write(queue: &Queue, case: &Case<'_>) -> String {
    queue.writes.first().map_or_else(String::new, |w| format!("{} = {:#x}", w.name(case.gpu), w.value))
}
