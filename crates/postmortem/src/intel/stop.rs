//! Where an engine stopped: its ring and batch walked, ACTHD and IPEHR against the commands there.

use super::case::{CommandDwords, IntelCase, Unit, named_register, register};
use super::cycle::{self, BatchCycle};
use super::shaders::{self, WorkAtStop};
use super::{busy, state};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, HangPoint, LevelPosition, Trust};
use crate::rules::Rule;
use unwedge_capture::intel::{MemoryBlockKind, RingRegister};
use unwedge_hw::intel::ring::MAX_SIZE;
use unwedge_stream::intel::commands::{Command, Decoder};
use unwedge_stream::intel::position::{Agreement, CommandPos, Locator, Position};
use unwedge_stream::intel::ring::EngineRing;
use unwedge_stream::intel::state::{IntelState, IntelWorkKind};
use unwedge_stream::intel::walk::{EventKind, IntelEvent, IntelWalk, Space, canonical};

/// Dwords of command streams that are walked for one engine.
const BUDGET: u64 = 4 << 20;
/// Dwords of an unknown stretch that are shown.
const SHOWN: usize = 8;

/// What is known of where an engine stopped.
#[derive(Default)]
pub(super) struct IntelStop {
    pub(super) position: Option<Position>,
    /// Name and dwords of the command that is executed.
    pub(super) command: Option<CommandDwords>,
    /// Draws, dispatches and blits in the walk up to it, itself counted.
    pub(super) draws: u32,
    /// The last PIPE_CONTROL (or MI_FLUSH_DW) before it.
    pub(super) flush: Option<CommandDwords>,
    /// The pipeline that was selected last.
    pub(super) pipeline: Option<&'static str>,
    /// Dwords that are not valid commands, that the walk met: where, and the first of them.
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
    /// What was set before the stop.
    pub(super) state: Vec<Evidence>,
    /// The shaders and surfaces of the work at the stop.
    pub(super) work: WorkAtStop,
    /// A loop of batches that the stop is in.
    pub(super) cycle: Option<BatchCycle>,
}

/// The first dwords of a command.
fn dwords(command: &Command<'_>, address: u64) -> CommandDwords {
    CommandDwords { name: command.name(), address, words: command.words.iter().take(16).copied().collect() }
}

/// Walks what an engine had to execute. `None`: the generation is not known.
pub(super) fn locate(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Option<IntelStop> {
    let decoder = unit.decoder(case.version)?;
    let acthd = unit.active_head();
    if let Some(value) = unit.ring(RingRegister::Acthd) {
        // What is there says whether it is an address.
        case.block_at(unit, canonical(value));
    }
    let ipehr = unit.ring32(RingRegister::Ipehr);
    let mut best: Option<IntelStop> = None;
    for walk in starts(case, unit, decoder) {
        let mut stop = along(walk.1.clone(), acthd, ipehr, walk.0);
        if let Some(absent) = stop.absent {
            case.want(unit, absent);
        }
        if let Some(position) = stop.position {
            let place = position.executing.unwrap_or(position.at_acthd);
            stop.count_up_to(walk.1.clone(), place);
            stop.cycle = cycle::find(walk.1.clone()).filter(|cycle| cycle.holds(place.address));
            stop.work = shaders::at_stop(case, unit, decoder, walk.1.clone(), place);
            stop.state = state::evidence(unit, &IntelState::before(decoder.gpu, walk.1, place));
            stop.state.extend(stop.work.evidence(case, unit));
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
    let ring = unit.ring(RingRegister::Start).is_some_and(|start| start != 0);
    ring && unit.ring(RingRegister::Head).is_some() && unit.has_read_all()
}

/// Walks that may come by where the engine stands: its ring, its batch, then every buffer that holds ACTHD.
pub(super) fn starts<'m>(
    case: &'m IntelCase<'_, '_>,
    unit: &'m Unit<'_, '_>,
    decoder: Decoder,
) -> Vec<((bool, u64), IntelWalk<'m>)> {
    let spaces = case.spaces(unit);
    let mut walks = Vec::new();
    let block = case.blocks_of(unit, MemoryBlockKind::Ring).find_map(|block| block.address);
    let held = |start| case.ggtt.find(start).map(|block| block.size);
    if let Some(ring) = EngineRing::of(unit.dump, block, held).and_then(|ring| ring.at_work()) {
        walks.push(((true, ring.start), IntelWalk::ring(decoder, spaces, ring).with_budget(BUDGET)));
    }
    let mut batches: Vec<u64> = unit.batch.iter().map(|b| b.start).collect();
    batches.extend(case.blocks_of(unit, MemoryBlockKind::Batch).filter_map(|b| b.address));
    let at = unit.active_head();
    batches.extend(at.and_then(|at| unit.ppgtt.find(at)).map(|b| b.iova));
    batches.dedup();
    for address in batches {
        walks.push((
            (false, address),
            IntelWalk::batch(decoder, spaces, Space::Ppgtt, address).with_budget(BUDGET),
        ));
    }
    walks
}

/// Follows one walk and remembers what was met up to the stop.
fn along(walk: IntelWalk<'_>, acthd: Option<u64>, ipehr: Option<u32>, start: (bool, u64)) -> IntelStop {
    let mut locator = acthd.map(|acthd| Locator::new(acthd, None, ipehr));
    let mut stop = IntelStop { start: Some(start), ..IntelStop::default() };
    // What may turn out to be the command that is executed, by address.
    let mut recent: std::collections::VecDeque<CommandDwords> = std::collections::VecDeque::new();
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

fn remember(
    event: &IntelEvent<'_>,
    stop: &mut IntelStop,
    recent: &mut std::collections::VecDeque<CommandDwords>,
) {
    match &event.kind {
        EventKind::Command(command) => {
            let found = dwords(command, event.address);
            let name = found.name.unwrap_or_default();
            if IntelWorkKind::of(name).is_some() {
                stop.draws += 1;
            }
            if name.starts_with("PIPE_CONTROL") || name.starts_with("MI_FLUSH") {
                stop.flush = Some(found.clone());
            }
            if name == "PIPELINE_SELECT" {
                let selected = command.fields().find(|f| f.name == "Pipeline Selection");
                let value = selected.and_then(|f| f.value()?.number());
                stop.pipeline = value.map(|v| *["3D", "media", "GPGPU"].get(v as usize & 3).unwrap_or(&"?"));
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

impl IntelStop {
    /// What a walk meets up to a command of it, in place of what it meets up to ACTHD.
    fn count_up_to(&mut self, walk: IntelWalk<'_>, place: CommandPos) {
        let mut before = IntelStop::default();
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
        let IntelStop { draws, flush, pipeline, path, .. } = before;
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

    /// How deep the innermost batch is that it is in: 1 for one that the ring starts; `None` in the ring.
    fn level(&self) -> Option<u8> {
        let (level, _) = *self.path.last()?;
        Some(if matches!(self.start, Some((true, _))) { level } else { level + 1 })
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
            packet: self.command.as_ref().map(|c| match c.name {
                Some(name) => name.to_owned(),
                None => format!("a command {:#010x}", c.header()),
            }),
            header: None,
            iova: Some(place.address),
            draw: (self.draws > 0).then_some(self.draws),
            trust,
        })
    }
}

/// Where an engine stopped, for the verdict. `busy` is the finding on the units that are not done.
pub(super) fn verdict(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    busy: Option<&Finding>,
) -> Finding {
    let ipehr = unit.ring32(RingRegister::Ipehr);
    let named = ipehr.map(|ipehr| named_register("IPEHR", ipehr.into(), name_of(unit, case, ipehr)));
    let registers = [
        (RingRegister::Start, "START"),
        (RingRegister::Head, "HEAD"),
        (RingRegister::Tail, "TAIL"),
        (RingRegister::BbAddr, "BBADDR"),
    ];
    let ring = |(of, name)| Some(register(name, unit.ring(of)?));
    let acthd = ring((RingRegister::Acthd, "ACTHD"));
    let facts = acthd.into_iter().chain(named).chain(registers.into_iter().filter_map(ring));
    let found = match stop.position {
        Some(position) => at_command(case, unit, stop, &position, ipehr),
        None => nowhere(case, unit, stop),
    };
    found.with_some("busy", busy.map(busy::units)).seen(facts.map(|fact| unit.seen(fact)))
}

/// The command that an engine was executing, and how the registers agree with it.
fn at_command(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    position: &Position,
    ipehr: Option<u32>,
) -> Finding {
    let place = position.executing.unwrap_or(position.at_acthd);
    let name = stop.command.as_ref().and_then(|command| command.name);
    let zeros = stop.noops.filter(|_| place.header == 0);
    let ahead = match position.agreement {
        Agreement::Here => Some(0),
        Agreement::Before(bytes) => Some(bytes),
        Agreement::Nowhere | Agreement::Unknown => None,
    };
    let next = position.bytes_behind();
    unit.finding(Rule::EngineAtCommand, stop.trust())
        .with_some("command", name.filter(|_| zeros.is_none()).map(Arg::name))
        .with_some("noops", zeros.map(|count| Arg::Number(count.into())))
        .with("header", Arg::Value(place.header.into()))
        .with("address", Arg::Address(place.address))
        .with_some("buffer", case.block_at(unit, place.address))
        .with_some("level", stop.level().map(|level| Arg::Number(level.into())))
        .with_some("draws", Some(stop.draws).filter(|&n| n > 0).map(|n| Arg::Number(n.into())))
        .with_some("ipehr", ipehr.map(|value| Arg::Value(value.into())))
        .with_some("bytes_ahead", ahead.map(Arg::Number))
        .with_some("between", position.is_doubtful().then(|| Arg::Number(position.between())))
        .with_some("next_after", next.map(Arg::Number))
        .with_some("next_address", next.map(|bytes| Arg::Address(position.acthd.saturating_add(bytes))))
}

/// The name of a header: `not a valid command` where it starts none.
fn name_of(unit: &Unit<'_, '_>, case: &IntelCase<'_, '_>, header: u32) -> Option<&'static str> {
    let words = [header];
    match unit.decoder(case.version).and_then(|d| d.command(&words)) {
        Some(command) => command.name(),
        None => Some("not a valid command"),
    }
}

/// Where an engine stopped that no walk came by.
fn nowhere(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>, stop: &IntelStop) -> Finding {
    let trust = Trust::Possible;
    let Some(acthd) = unit.active_head() else {
        let head = unit.ring(RingRegister::Head).map(|head| Arg::Value(head & 0x1f_fffc));
        return unit.finding(Rule::EnginePositionMissing, trust).with_some("head", head);
    };
    if stop.drained {
        return unit.finding(Rule::EngineRingDrained, trust).with("read_to", Arg::Address(acthd));
    }
    match case.block_at(unit, acthd) {
        Some(buffer) if is_executed(case, unit, &buffer) => {
            unit.finding(Rule::EngineAtInvalidCommand, trust).with("buffer", buffer)
        }
        Some(buffer) => unit.finding(Rule::EngineInUnreachedBuffer, trust).with("buffer", buffer),
        None => unit.finding(Rule::EngineInMissingMemory, trust),
    }
    .with("acthd", Arg::Address(acthd))
}

/// Whether the kernel says that an engine executes a buffer, or its ring leads there.
fn is_executed(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>, buffer: &Args) -> bool {
    let (Some(base), Some(size)) = (buffer.number("base"), buffer.number("size")) else { return false };
    let holds = |address: u64| address.checked_sub(base).is_some_and(|offset| offset < size);
    if unit.batch.iter().any(|batch| holds(batch.start)) {
        return true;
    }
    let Some(decoder) = unit.decoder(case.version) else { return false };
    let mut of_ring = starts(case, unit, decoder).into_iter().filter(|((is_ring, _), _)| *is_ring);
    of_ring.any(|(_, mut walk)| walk.any(|event| event.space != Space::Ggtt && holds(event.address)))
}

/// Dwords of memory; `words` as far as they matter.
fn of_memory(count: u64, words: Vec<u32>) -> Fact {
    Fact::Dwords { level: None, first: None, count, words, packet: None }
}

/// A stream that is broken: dwords that are not valid commands, a stop in zeros, a way into memory that is not there.
pub(super) fn corrupt(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>, stop: &IntelStop) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(ipehr) = unit.ring32(RingRegister::Ipehr).filter(|&header| header != 0) {
        let decoder = unit.decoder(case.version);
        if decoder.is_some_and(|d| d.command(&[ipehr]).is_none()) {
            findings.push(
                unit.finding(Rule::HeaderNotCommand, Trust::Likely)
                    .with("header", Arg::Value(ipehr.into()))
                    .seen([unit.seen(register("IPEHR", ipehr.into()))]),
            );
        }
    }
    findings.extend(stop.cycle.as_ref().map(|cycle| cycle.finding(case, unit, stop)));
    findings.extend(stop.unknown.as_ref().map(|(address, words)| not_commands(case, unit, *address, words)));
    if let Some(count) = stop.noops.filter(|&n| n >= 16) {
        let from = stop.position.map(|position| position.at_acthd.address);
        let seen =
            from.map(|from| Evidence { iova: Some(from), ..unit.seen(of_memory(count.into(), Vec::new())) });
        findings.push(
            unit.finding(Rule::ZerosInStream, Trust::Likely)
                .with("dwords", Arg::Number(count.into()))
                .with_some("from", from.map(Arg::Address))
                .seen(seen),
        );
    }
    if let Some(absent) = stop.absent.filter(|_| stop.position.is_none()) {
        let near = unit.active_head().is_some_and(|acthd| acthd.abs_diff(absent) < 0x10_0000);
        let rule = match stop.start {
            Some((true, ring)) if absent.wrapping_sub(ring) <= u64::from(MAX_SIZE) => Rule::RingPartMissing,
            _ => Rule::BatchMissing,
        };
        findings.push(
            unit.finding(rule, Trust::Certain)
                .with("address", Arg::Address(absent))
                .with("acthd_is_near", near),
        );
    }
    findings
}

/// Dwords that a walk met and that are not valid commands.
fn not_commands(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>, address: u64, words: &[u32]) -> Finding {
    let buffer = case.block_at(unit, address);
    let section = buffer.as_ref().and_then(|buffer| buffer.text("block")).unwrap_or("memory").to_owned();
    let fact = of_memory(words.len() as u64, words.to_vec());
    let fill = fill(words);
    let (rule, trust) = match fill {
        Some(_) => (Rule::FillInStream, Trust::Likely),
        None => (Rule::DwordsNotCommands, Trust::Possible),
    };
    unit.finding(rule, trust)
        .with("address", Arg::Address(address))
        .with_some("fill", fill.map(Arg::name))
        .with_some("buffer", buffer)
        .seen([Evidence { section, fact, iova: Some(address), span: None }])
}

/// What memory is filled with.
fn fill(words: &[u32]) -> Option<&'static str> {
    let first = *words.first()?;
    if words.len() < 2 || !words.iter().all(|&word| word == first) {
        let is_text = |byte: u8| byte == 0 || byte == b'\n' || (0x20..0x7f).contains(&byte);
        let text = words.iter().flat_map(|word| word.to_le_bytes()).all(is_text);
        return (text && words.len() >= 4).then_some("text");
    }
    Some(match first {
        0xffff_ffff => "ones",
        0x6b6b_6b6b => "freed",
        0x5a5a_5a5a => "not-written",
        0xdead_beef => "deadbeef",
        0xcccc_cccc => "uninitialized",
        _ => "repeated",
    })
}
