//! Where an engine stands: its ring and batch walked, ACTHD and IPEHR against the commands there.

use super::case::{Case, Unit, finding};
use super::state;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, HangPoint, LevelPosition, Trust};
use unwedge_capture::intel::{MemoryBlockKind, RingRegister};
use unwedge_stream::intel::commands::{Command, Decoder};
use unwedge_stream::intel::position::{Agreement, CommandPos, Locator, Position};
use unwedge_stream::intel::state::{State, Work};
use unwedge_stream::intel::walk::{Event, EventKind, Ring, Space, Walk, canonical};

/// Dwords of command streams that are walked for one engine.
const BUDGET: u64 = 4 << 20;
/// No ring is longer, in bytes.
const RING: u64 = 2 << 20;
/// Dwords of an unknown stretch that are shown.
const SHOWN: usize = 8;

/// What is known of where an engine stands.
#[derive(Default)]
pub(super) struct Stop {
    pub(super) position: Option<Position>,
    /// Name and dwords of the command that is executed.
    pub(super) command: Option<Found>,
    /// Draws, dispatches and blits in the walk up to it, itself counted.
    pub(super) draws: u32,
    /// The last PIPE_CONTROL (or MI_FLUSH_DW) in front of it.
    pub(super) flush: Option<Found>,
    /// The pipeline that was selected last.
    pub(super) pipeline: Option<String>,
    /// Dwords that are no command, that the walk met: where, and the first of them.
    pub(super) unknown: Option<(u64, Vec<u32>)>,
    /// Memory the walk wanted to go to, and the dump does not hold.
    pub(super) absent: Option<u64>,
    /// The walk met an end of the batch.
    pub(super) ended: bool,
    /// Zeros the engine stands in: how many in a row.
    pub(super) noops: Option<u32>,
    /// Where the walk started: a ring or a batch.
    pub(super) start: Option<(bool, u64)>,
    /// Batches that were entered on the way to the stop.
    pub(super) path: Vec<(u8, u64)>,
    /// The ring says that everything was read.
    pub(super) drained: bool,
    /// What was set in front of the stop, in words.
    pub(super) state: Vec<String>,
}

/// A command that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) words: Vec<u32>,
}

impl Found {
    fn of(command: &Command<'_>, address: u64) -> Found {
        let header = command.header();
        let name = command.name().map_or_else(|| format!("a command {header:#010x}"), str::to_owned);
        let words = command.words.iter().take(16).copied().collect();
        Found { name, address, words }
    }
}

/// Walks what an engine had to execute. `None`: the generation is not known.
pub(super) fn locate(case: &Case<'_, '_>, unit: &Unit<'_, '_>) -> Option<Stop> {
    let decoder = unit.decoder(case.version)?;
    let acthd = unit.active_head();
    if let Some(value) = unit.ring(RingRegister::Acthd) {
        // What is there says whether it is an address.
        case.block_at(unit, canonical(value));
    }
    let ipehr = unit.ring32(RingRegister::Ipehr);
    let mut best: Option<Stop> = None;
    for walk in starts(case, unit, decoder) {
        let mut stop = along(walk.1.clone(), acthd, ipehr, walk.0);
        if let Some(absent) = stop.absent {
            case.want(unit, absent);
        }
        if let Some(position) = stop.position {
            let place = position.executing.unwrap_or(position.at_acthd);
            stop.count_up_to(walk.1.clone(), place);
            stop.state = state::lines(case, unit, &State::before(walk.1, place));
        }
        let better = match &best {
            None => true,
            Some(old) => old.position.is_none() && stop.position.is_some(),
        };
        if better {
            best = Some(stop);
        }
        if best.as_ref().is_some_and(|s| s.position.is_some()) {
            break;
        }
    }
    let mut stop = best.unwrap_or_default();
    stop.drained = drained(unit);
    Some(stop)
}

/// HEAD has reached TAIL, of a ring that is there.
fn drained(unit: &Unit<'_, '_>) -> bool {
    if unit.ring(RingRegister::Start).is_none_or(|start| start == 0) {
        return false;
    }
    let offset = |r| unit.ring32(r).map(|v| v & 0x001f_fffc);
    matches!((offset(RingRegister::Head), offset(RingRegister::Tail)), (Some(h), Some(t)) if h == t)
}

/// Walks that may come by where the engine stands: its ring, its batch, then every buffer that holds ACTHD.
fn starts<'m>(
    case: &'m Case<'_, '_>,
    unit: &'m Unit<'_, '_>,
    decoder: Decoder,
) -> Vec<((bool, u64), Walk<'m>)> {
    let spaces = case.spaces(unit);
    let mut walks = Vec::new();
    let ring =
        (unit.ring(RingRegister::Start), unit.ring32(RingRegister::Head), unit.ring32(RingRegister::Tail));
    if let (Some(start), Some(head), Some(tail)) = ring {
        let start = start & !0xfff;
        let held = case.ggtt.find(start).map_or(0, |b| b.size);
        let size = unit.ring32(RingRegister::Ctl).map_or(0, |ctl| (ctl & 0x001f_f000) + 0x1000);
        let size = if size <= 0x1000 { held.min(1 << 21) as u32 } else { size };
        if held > 0 {
            // What the engine works at lies before HEAD: from the start of the request, which is not known, the walk
            // starts at the beginning of the page before it.
            let head = head & 0x001f_fffc;
            let from = head.saturating_sub(0x400) & !0x3f;
            let ring = Ring { start, size, from, to: tail & 0x001f_fff8 };
            walks.push(((true, start), Walk::ring(decoder, spaces, ring).with_budget(BUDGET)));
        }
    }
    let mut batches: Vec<u64> = unit.batch.iter().map(|b| b.start).collect();
    batches.extend(case.blocks_of(unit, MemoryBlockKind::Batch).filter_map(|b| b.address));
    let at = unit.active_head();
    batches.extend(at.and_then(|at| unit.ppgtt.find(at)).map(|b| b.iova));
    batches.dedup();
    for address in batches {
        walks.push((
            (false, address),
            Walk::batch(decoder, spaces, Space::Ppgtt, address).with_budget(BUDGET),
        ));
    }
    walks
}

/// Follows one walk and remembers what was met up to the stop.
fn along(walk: Walk<'_>, acthd: Option<u64>, ipehr: Option<u32>, start: (bool, u64)) -> Stop {
    let mut locator = acthd.map(|acthd| Locator::new(acthd, None, ipehr));
    let mut stop = Stop { start: Some(start), ..Stop::default() };
    // What may turn out to be the command that is executed, by address.
    let mut recent: std::collections::VecDeque<Found> = std::collections::VecDeque::new();
    for event in walk {
        if let Some(locator) = locator.as_mut() {
            locator.see(&event);
        }
        remember(&event, &mut stop, &mut recent);
        if locator.as_ref().is_some_and(Locator::is_done) {
            break;
        }
    }
    stop.position = locator.as_ref().and_then(Locator::position);
    let place = stop.position.map(|p| p.executing.unwrap_or(p.at_acthd));
    if let Some(place) = place {
        stop.command = recent.iter().rev().find(|f| f.address == place.address).cloned();
        if place.header == 0 {
            stop.noops = Some(place.length);
        }
    }
    stop
}

fn remember(event: &Event<'_>, stop: &mut Stop, recent: &mut std::collections::VecDeque<Found>) {
    match &event.kind {
        EventKind::Command(command) => {
            let found = Found::of(command, event.address);
            if Work::of(&found.name).is_some() {
                stop.draws += 1;
            }
            if found.name.starts_with("PIPE_CONTROL") || found.name.starts_with("MI_FLUSH") {
                stop.flush = Some(found.clone());
            }
            if found.name == "PIPELINE_SELECT" {
                let selected = command.fields().find(|f| f.name == "Pipeline Selection");
                let value = selected.and_then(|f| f.value()?.number());
                stop.pipeline =
                    value.map(|v| ["3D", "media", "GPGPU"].get(v as usize & 3).unwrap_or(&"?").to_string());
            }
            if recent.len() == 128 {
                recent.pop_front();
            }
            recent.push_back(found);
        }
        EventKind::Unknown(words) if stop.unknown.is_none() => {
            stop.unknown = Some((event.address, words.iter().take(SHOWN).copied().collect()));
        }
        EventKind::Enter(_) => {
            stop.path.retain(|(level, _)| *level < event.level);
            stop.path.push((event.level, event.address));
        }
        EventKind::End => stop.ended = true,
        EventKind::Absent if stop.absent.is_none() => stop.absent = Some(event.address),
        _ => {}
    }
}

impl Stop {
    /// What a walk meets up to a command of it, in place of what it meets up to ACTHD.
    fn count_up_to(&mut self, walk: Walk<'_>, place: CommandPos) {
        let mut before = Stop::default();
        let mut recent = std::collections::VecDeque::new();
        let mut commands = 0;
        for event in walk {
            let counts = matches!(event.kind, EventKind::Command(_) | EventKind::Noops(_));
            if counts && commands == place.index {
                let flush = before.flush.take();
                remember(&event, &mut before, &mut recent);
                before.flush = flush;
                break;
            }
            commands += u64::from(counts);
            remember(&event, &mut before, &mut recent);
        }
        let Stop { draws, flush, pipeline, path, .. } = before;
        (self.draws, self.flush, self.pipeline, self.path) = (draws, flush, pipeline, path);
    }

    /// How sure it is.
    pub(super) fn trust(&self) -> Trust {
        if self.position.is_some_and(|p| p.is_doubtful()) {
            return Trust::Possible;
        }
        match self.position.map(|p| p.agreement) {
            Some(Agreement::Here) => Trust::Certain,
            Some(Agreement::Before(_)) => Trust::Likely,
            Some(Agreement::Unknown) => Trust::Possible,
            Some(Agreement::Nowhere) | None => Trust::Guess,
        }
    }

    /// The hang point of a report.
    pub(super) fn point(&self, unit: &Unit<'_, '_>, trust: Trust) -> Option<HangPoint> {
        let position = self.position?;
        let place = position.executing.unwrap_or(position.at_acthd);
        let mut levels = Vec::new();
        let mut add = |level: u8, base: u64, inner: bool| {
            let dword = |at: u64| at.saturating_sub(base) / 4;
            let range = if inner { (dword(place.address), dword(place.address)) } else { (0, 0) };
            levels.push(LevelPosition { level, base, size: None, range });
        };
        if let Some((true, ring)) = self.start {
            add(0, ring, self.path.is_empty());
        }
        for (i, (level, base)) in self.path.iter().enumerate() {
            let level = if matches!(self.start, Some((true, _))) { *level } else { level + 1 };
            add(level, *base, i + 1 == self.path.len());
        }
        Some(HangPoint {
            ring: None,
            ring_name: Some(unit.name()),
            levels,
            packet: self.command.as_ref().map(|c| c.name.clone()),
            header: None,
            iova: Some(place.address),
            draw: (self.draws > 0).then_some(self.draws),
            trust,
        })
    }
}

/// Where an engine stands, for the verdict.
pub(super) fn verdict(case: &Case<'_, '_>, unit: &Unit<'_, '_>, stop: &Stop, because: &str) -> Finding {
    let name = unit.name();
    let acthd = unit.ring(RingRegister::Acthd);
    let ipehr = unit.ring32(RingRegister::Ipehr);
    let mut evidence: Vec<Evidence> = Vec::new();
    let mut add = |what: String| evidence.push(unit.seen(what));
    if let Some(acthd) = acthd {
        add(format!("ACTHD = {acthd:#x}"));
    }
    if let Some(ipehr) = ipehr {
        add(format!("IPEHR = {ipehr:#010x}{}", named(unit, case, ipehr)));
    }
    for (register, label) in [
        (RingRegister::Start, "START"),
        (RingRegister::Head, "HEAD"),
        (RingRegister::Tail, "TAIL"),
        (RingRegister::BbAddr, "BBADDR"),
    ] {
        if let Some(value) = unit.ring(register) {
            add(format!("{label} = {value:#x}"));
        }
    }
    let Some(position) = stop.position else {
        let (title, why) = nowhere(case, unit, stop, unit.active_head());
        return finding(FindingKind::HangPoint, Trust::Possible, title, join(&why, because), evidence);
    };
    let place = position.executing.unwrap_or(position.at_acthd);
    let what = match (&stop.command, stop.noops) {
        (_, Some(count)) if place.header == 0 => format!("{count} MI_NOOP in a row"),
        (Some(command), _) => command.name.clone(),
        (None, _) => format!("{:#010x}", place.header),
    };
    let buffer = case.block_at(unit, place.address).map_or_else(
        || format!("{:#x}", place.address),
        |(block, at)| format!("{block} {:#x}+{at:#x}", place.address - at),
    );
    let draw = if stop.draws > 0 {
        format!(", {} draws or dispatches into the walk", stop.draws)
    } else {
        String::new()
    };
    let title = format!("{name} › {buffer}: {what}{draw}");
    let why = match position.agreement {
        Agreement::Here => "the command at ACTHD has the header that IPEHR holds".to_owned(),
        Agreement::Before(bytes) if position.is_doubtful() => format!(
            "IPEHR may name this command, {bytes} bytes before ACTHD with {} commands between them",
            position.between()
        ),
        Agreement::Before(bytes) => {
            format!("IPEHR names the command {bytes} bytes before ACTHD: the streamer reads that far ahead")
        }
        Agreement::Nowhere if position.behind.is_some() => {
            format!(
                "no command at or before ACTHD has the header that IPEHR holds ({:#010x})",
                ipehr.unwrap_or(0)
            )
        }
        Agreement::Nowhere => format!(
            "nothing near ACTHD has the header that IPEHR holds ({:#010x}): memory was changed after it was read, or the \
             registers were read at another time",
            ipehr.unwrap_or(0)
        ),
        Agreement::Unknown => "IPEHR is not in the dump".to_owned(),
    };
    let why = match position.bytes_behind() {
        Some(bytes) => format!(
            "{why}; the next command with that header stands {bytes} bytes behind ACTHD, at {:#x}",
            position.acthd.saturating_add(bytes)
        ),
        None => why,
    };
    finding(FindingKind::HangPoint, stop.trust(), title, join(&why, because), evidence)
}

fn join(why: &str, because: &str) -> String {
    if because.is_empty() { why.to_owned() } else { format!("{because}; {why}") }
}

/// The name of a header.
fn named(unit: &Unit<'_, '_>, case: &Case<'_, '_>, header: u32) -> String {
    let words = [header];
    let command = unit.decoder(case.version).and_then(|d| d.command(&words));
    match command.map(|c| c.name()) {
        Some(Some(name)) => format!(" ({name})"),
        Some(None) => String::new(),
        None => " (no command)".to_owned(),
    }
}

/// What is to be said where no walk came by ACTHD.
fn nowhere(case: &Case<'_, '_>, unit: &Unit<'_, '_>, stop: &Stop, acthd: Option<u64>) -> (String, String) {
    let name = unit.name();
    let Some(acthd) = acthd else {
        return (format!("{name}: the dump does not say where it stands"), "ACTHD is not in it".to_owned());
    };
    if stop.drained {
        return (
            format!("{name} › ring: all of it was read, up to {acthd:#x}"),
            "HEAD is at TAIL: the streamer has nothing left to read; what it started, or what it waits for, is not done"
                .to_owned(),
        );
    }
    match case.block_at(unit, acthd) {
        Some((block, at)) => (
            format!("{name} › {block} {:#x}+{at:#x}: in a buffer that no command leads to", acthd - at),
            "neither the ring nor the batch jumps there, as far as the dump holds them".to_owned(),
        ),
        None => (
            format!("{name} › {acthd:#x}: memory that the dump does not hold"),
            "the batch that was executed was not captured, or the engine ran out of its buffers".to_owned(),
        ),
    }
}

/// A stream that is broken: dwords that are no command, a stop in zeros, a way into memory that is not there.
pub(super) fn corrupt(case: &Case<'_, '_>, unit: &Unit<'_, '_>, stop: &Stop) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = unit.name();
    if let Some(ipehr) = unit.ring32(RingRegister::Ipehr).filter(|&h| h != 0) {
        let decoder = unit.decoder(case.version);
        if decoder.is_some_and(|d| d.command(&[ipehr]).is_none()) {
            findings.push(finding(
                FindingKind::CorruptStream,
                Trust::Likely,
                format!("{name} was given {ipehr:#010x}, which is no command"),
                "The streamer stops at a header it does not know. The batch is broken, or the engine ran out of it.",
                vec![unit.seen(format!("IPEHR = {ipehr:#010x}"))],
            ));
        }
    }
    if let Some((address, words)) = &stop.unknown {
        let shown = words.iter().map(|w| format!("{w:08x}")).collect::<Vec<_>>().join(" ");
        let pattern = pattern(words).map_or(String::new(), |p| format!(": {p}"));
        findings.push(finding(
            FindingKind::CorruptStream,
            if pattern.is_empty() { Trust::Possible } else { Trust::Likely },
            format!("{name}: dwords that are no command at {address:#x}{pattern}"),
            "Commands were overwritten, or a length before them is wrong.",
            vec![Evidence {
                section: case.block_at(unit, *address).map_or_else(|| "memory".to_owned(), |b| b.0),
                what: shown,
                iova: Some(*address),
                span: None,
            }],
        ));
    }
    if let Some(count) = stop.noops.filter(|&n| n >= 16) {
        findings.push(finding(
            FindingKind::CorruptStream,
            Trust::Likely,
            format!("{name} runs through {count} MI_NOOP: zeros where commands should be"),
            "A batch without an end, or one whose memory was cleared or never written.",
            stop.position
                .map(|p| unit.seen(format!("ACTHD in the zeros from {:#x} on", p.at_acthd.address)))
                .into_iter()
                .collect(),
        ));
    }
    if let Some(absent) = stop.absent.filter(|_| stop.position.is_none()) {
        let known = unit.active_head().is_some_and(|a| a.abs_diff(absent) < 0x10_0000);
        findings.push(finding(
            FindingKind::NotCaptured,
            Trust::Certain,
            match stop.start {
                Some((true, ring)) if absent.wrapping_sub(ring) <= RING => {
                    format!("the ring of {name} from {absent:#x} on")
                }
                _ => format!("the batch at {absent:#x} that {name} goes to"),
            },
            if known { "ACTHD is near it." } else { "" },
            Vec::new(),
        ));
    }
    findings
}

/// What memory is known to be filled with.
fn pattern(words: &[u32]) -> Option<&'static str> {
    let first = *words.first()?;
    if words.len() < 2 || !words.iter().all(|&w| w == first) {
        let text = words
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .all(|b| b == 0 || b == b'\n' || (0x20..0x7f).contains(&b));
        return (text && words.len() >= 4).then_some("text");
    }
    Some(match first {
        0xffff_ffff => "all ones: memory or a device that is gone",
        0x6b6b_6b6b => "the kernel's poison for freed memory",
        0x5a5a_5a5a => "the kernel's poison for memory not written yet",
        0xdead_beef => "0xdeadbeef, written on purpose",
        0xcccc_cccc => "0xcc, the mark of uninitialized memory",
        _ => "one value over and over",
    })
}
