//! What the machine followed of a set, as findings.

use super::finding::{LintFinding, LintPacket};
use super::rules::LintRule;
use crate::args::{Arg, Args};
use std::collections::BTreeMap;
use unwedge_hw::Gpu;
use unwedge_hw::adreno::state_use::StateReader;
use unwedge_sim::adreno::{
    AuditPacket, CacheAuditReport, CacheReport, CacheUnit, CacheWait, CachedPacket, CcuChange, LostWrite,
    RegisterAuditReport, Replay, StaleRead, ThreadId, UnsetRegister, UnwrittenRead, WaitUse, WorkPosition,
};

/// Registers that a finding of redundant writes names.
const MOST_NAMED: usize = 5;
/// A submit that writes fewer values again is not worth a note.
const FEW_WRITES: u64 = 16;

/// What the machine followed of a set.
pub(super) struct SetFindings<'s> {
    pub(super) registers: RegisterAuditReport,
    memory: CacheAuditReport,
    caches: CacheReport,
    /// The sets of the machine's submits.
    sets: &'s [u64],
    /// Stale reads and lost writes up to here.
    pub(super) seen: (usize, usize),
    from: (usize, usize),
}

impl<'s> SetFindings<'s> {
    /// Takes it. `from` are the stale reads and lost writes of earlier sets.
    pub(super) fn take(replay: &mut Replay<'_>, sets: &'s [u64], from: (usize, usize)) -> SetFindings<'s> {
        let caches = replay.machine.space.cache_report();
        let seen = (caches.reads.len(), caches.lost.len());
        let memory = replay.machine.space.take_audit();
        let registers = replay.machine.take_register_audit();
        SetFindings { registers, memory, caches, sets, seen, from }
    }

    /// Whether there was more than is kept.
    pub(super) fn more(&self) -> bool {
        self.registers.more || self.memory.more || self.caches.more
    }

    /// All of them.
    pub(super) fn findings(&self, replay: &Replay<'_>) -> Vec<LintFinding> {
        let names = PacketNames { set: self, replay, gpu: replay.machine.gpu() };
        let mut out: Vec<LintFinding> = self.registers.unset.iter().map(|unset| names.unset(unset)).collect();
        let of_capture = self.memory.unwritten.iter().filter(|read| !names.is_of_kernel(read));
        out.extend(grouped(of_capture.map(|read| names.unwritten(read))));
        out.extend(self.caches.reads[self.from.0.min(self.seen.0)..].iter().map(|read| names.stale(read)));
        out.extend(self.caches.lost[self.from.1.min(self.seen.1)..].iter().map(|loss| names.lost(loss)));
        out.extend(self.registers.ccu.iter().map(|change| names.ccu(change)));
        out.extend(names.redundant());
        out.extend(names.needless_flushes());
        out.extend(names.needless_waits(&self.registers.waits));
        out
    }

    /// A packet as findings name it.
    pub(super) fn packet(&self, replay: &Replay<'_>, packet: AuditPacket) -> LintPacket {
        PacketNames { set: self, replay, gpu: replay.machine.gpu() }.audited(&packet)
    }
}

/// Reads of the same bytes as one finding, of the first that reads them.
fn grouped(findings: impl Iterator<Item = LintFinding>) -> Vec<LintFinding> {
    let mut out: Vec<(LintFinding, u64)> = Vec::new();
    let mut known: BTreeMap<(LintRule, Option<u64>, Option<u64>), usize> = BTreeMap::new();
    for finding in findings {
        let set = finding.reader.as_ref().map(|reader| reader.set);
        let next = out.len();
        let at = *known.entry((finding.rule, set, finding.args.number("address"))).or_insert(next);
        match out.get_mut(at) {
            Some((_, readers)) => *readers += 1,
            None => out.push((finding, 1)),
        }
    }
    let counted = |(finding, readers): (LintFinding, u64)| {
        let LintFinding { rule, reader, writer, expected, args } = finding;
        LintFinding { rule, reader, writer, expected, args: args.with("readers", Arg::Number(readers)) }
    };
    out.into_iter().map(counted).collect()
}

/// Names of packets, while their set is in memory.
struct PacketNames<'n, 's, 'd> {
    set: &'n SetFindings<'s>,
    replay: &'n Replay<'d>,
    gpu: Gpu<'d>,
}

impl PacketNames<'_, '_, '_> {
    fn packet(&self, packet: &CachedPacket, position: Option<WorkPosition>) -> LintPacket {
        let name = packet.opcode.map_or("register writes".to_owned(), |opcode| {
            let name = self.gpu.packet_name(opcode);
            let name = name.map_or_else(|| format!("opcode {opcode:#04x}"), str::to_owned);
            match self.event(packet.iova).filter(|_| name.starts_with("CP_EVENT_WRITE")) {
                Some(event) => format!("{name} {event}"),
                None => name,
            }
        });
        let at = (packet.submit as usize).checked_sub(1);
        LintPacket {
            set: at.and_then(|at| self.set.sets.get(at)).copied().unwrap_or(0),
            iova: packet.iova,
            name,
            thread: match packet.thread {
                ThreadId::Br => "BR",
                ThreadId::Bv => "BV",
            },
            position: position.map(|position| (position.work, position.pass)),
        }
    }

    fn event(&self, iova: u64) -> Option<&str> {
        let word = self.replay.machine.space.memory.load(iova.checked_add(4)?, 4).known()?;
        self.gpu.enumeration("vgt_event_type")?.name_of(word & 0x7f)
    }

    fn cached(&self, packet: &CachedPacket) -> LintPacket {
        self.packet(packet, self.set.memory.positions.get(packet).copied())
    }

    fn audited(&self, packet: &AuditPacket) -> LintPacket {
        self.packet(&packet.packet, Some(packet.position))
    }

    fn register(&self, reg: u32) -> Arg {
        Arg::name(self.gpu.reg(reg).map_or_else(|| format!("{reg:#x}"), |reg| reg.name().to_owned()))
    }

    fn unset(&self, unset: &UnsetRegister) -> LintFinding {
        let rule = if unset.previous.is_some() { LintRule::StaleRegister } else { LintRule::UnsetRegister };
        let by = match unset.by {
            StateReader::Draw | StateReader::DrawDirect => "draw",
            StateReader::Dispatch | StateReader::DispatchDirect | StateReader::DispatchRegisters => {
                "dispatch"
            }
            StateReader::Blit => "blit",
            StateReader::Resolve => "resolve",
        };
        LintFinding {
            writer: unset.previous.as_ref().map(|packet| self.audited(packet)),
            expected: unset.near.as_ref().map(|(_, packet)| self.audited(packet)),
            args: Args::new()
                .with("register", self.register(unset.reg))
                .with("offset", Arg::Value(unset.reg.into()))
                .with("by", Arg::name(by))
                .with("value", Arg::Value(unset.value.into()))
                .with("readers", Arg::Number(unset.readers))
                .with_some("near", unset.near.as_ref().map(|(reg, _)| self.register(*reg))),
            ..LintFinding::of(rule, self.audited(&unset.reader))
        }
    }

    /// The buffer of the capture that has an address.
    fn buffer(&self, address: u64) -> Option<(u64, u64)> {
        self.replay.buffers().find(|(iova, size)| (*iova..iova.saturating_add(*size)).contains(&address))
    }

    /// Whether a packet of the kernel's ring reads what is no buffer of the capture: the ring itself, or what the kernel has beside it.
    /// The kernel has written all of that.
    fn is_of_kernel(&self, read: &UnwrittenRead) -> bool {
        !read.in_gmem
            && self.buffer(read.reader.iova).is_none()
            && read.ranges.iter().all(|range| self.buffer(range.first).is_none())
    }

    fn unwritten(&self, read: &UnwrittenRead) -> LintFinding {
        let attachment = matches!(read.through, CacheUnit::CcuColor | CacheUnit::CcuDepth);
        let rule = match (read.in_gmem, attachment) {
            (true, _) => LintRule::UnwrittenGmem,
            (false, true) if read.by_event => LintRule::UnwrittenLoad,
            (false, true) => LintRule::UnwrittenAttachment,
            (false, false) => LintRule::UnwrittenRead,
        };
        let first = read.ranges.first();
        let buffer = first.and_then(|range| self.buffer(range.first));
        let near = first.and_then(|range| self.replay.machine.space.last_writer(*range));
        let ranges = read.ranges.iter().map(|range| {
            Arg::Record(
                Args::new().with("first", Arg::Address(range.first)).with("end", Arg::Address(range.end)),
            )
        });
        LintFinding {
            // Nothing had written it then: who wrote it since comes too late.
            writer: near.map(|near| self.cached(&near.packet)),
            args: Args::new()
                .with_some("address", first.map(|range| Arg::Address(range.first)))
                .with("bytes", Arg::Number(read.bytes))
                .with("through", Arg::name(read.through.name()))
                .with_some("buffer", buffer.map(|(iova, _)| Arg::Address(iova)))
                .with_some("buffer_size", buffer.map(|(_, size)| Arg::Number(size)))
                .with("ranges", ranges.collect::<Vec<Arg>>()),
            ..LintFinding::of(rule, self.cached(&read.reader))
        }
    }

    fn stale(&self, read: &StaleRead) -> LintFinding {
        let rule = match (read.dirty_in, read.stale_in) {
            (Some(_), _) => LintRule::MissingFlush,
            (None, Some(_)) => LintRule::MissingInvalidate,
            (None, None) => LintRule::MissingWait,
        };
        let generation = self.gpu.generation();
        let clean = read.dirty_in.and_then(|unit| unit.clean_event(generation));
        let invalidate = read.stale_in.and_then(|unit| unit.invalidate_event(generation));
        let missing = clean.into_iter().chain(invalidate).chain(read.wait.map(CacheWait::packet));
        let unit = |unit: CacheUnit| Arg::name(unit.name());
        let writer = self.cached(&read.writer);
        LintFinding {
            expected: Some(writer.clone()),
            writer: Some(writer),
            args: Args::new()
                .with("address", Arg::Address(read.iova))
                .with("bytes", Arg::Number(read.bytes))
                .with("through", unit(read.through))
                .with("written_through", unit(read.written_through))
                .with_some("dirty_in", read.dirty_in.map(unit))
                .with_some("stale_in", read.stale_in.map(unit))
                .with("missing", missing.map(Arg::name).collect::<Vec<Arg>>()),
            ..LintFinding::of(rule, self.cached(&read.reader))
        }
    }

    fn lost(&self, loss: &LostWrite) -> LintFinding {
        let missing = loss.dirty_in.clean_event(self.gpu.generation());
        let cleaner = loss.cleaner.as_ref().map(|packet| self.cached(packet));
        let writer = self.cached(&loss.writer);
        LintFinding {
            rule: LintRule::LostWrite,
            reader: cleaner,
            writer: Some(writer.clone()),
            expected: Some(writer),
            args: Args::new()
                .with("address", Arg::Address(loss.iova))
                .with("bytes", Arg::Number(loss.bytes))
                .with("written_through", Arg::name(loss.written_through.name()))
                .with("dirty_in", Arg::name(loss.dirty_in.name()))
                .with("missing", missing.into_iter().map(Arg::name).collect::<Vec<Arg>>()),
        }
    }

    fn ccu(&self, change: &CcuChange) -> LintFinding {
        let clean = change.dirty_in.and_then(|unit| unit.clean_event(self.gpu.generation()));
        let missing = clean.into_iter().chain(change.busy.then_some(CacheWait::Idle.packet()));
        LintFinding {
            args: Args::new()
                .with("register", Arg::name("RB_CCU_CNTL"))
                .with("before", Arg::Value(change.values[0].into()))
                .with("value", Arg::Value(change.values[1].into()))
                .with_some("dirty_in", change.dirty_in.map(|unit| Arg::name(unit.name())))
                .with("missing", missing.map(Arg::name).collect::<Vec<Arg>>()),
            ..LintFinding::of(LintRule::CcuInUse, self.audited(&change.packet))
        }
    }

    /// One for each submit that writes many values again.
    fn redundant(&self) -> Vec<LintFinding> {
        let of_submit = |(submit, writes): (&u32, &BTreeMap<u32, _>)| {
            let mut again: Vec<(u64, u32)> = Vec::new();
            let (mut all, mut redundant) = (0, 0);
            for (reg, of) in writes {
                let unwedge_sim::adreno::RegisterWrites { writes, redundant: same } = *of;
                (all, redundant) = (all + writes, redundant + same);
                if same > 0 {
                    again.push((same, *reg));
                }
            }
            if redundant < FEW_WRITES {
                return None;
            }
            again.sort_by_key(|(count, reg)| (std::cmp::Reverse(*count), *reg));
            let set = (*submit as usize).checked_sub(1).and_then(|at| self.set.sets.get(at)).copied();
            let named = again.iter().take(MOST_NAMED).map(|(count, reg)| {
                Arg::Record(
                    Args::new().with("register", self.register(*reg)).with("times", Arg::Number(*count)),
                )
            });
            let args = Args::new()
                .with("set", Arg::Number(set.unwrap_or(0)))
                .with("writes", Arg::Number(all))
                .with("redundant", Arg::Number(redundant))
                .with("registers", named.collect::<Vec<Arg>>());
            let rule = LintRule::RedundantState;
            Some(LintFinding { rule, reader: None, writer: None, expected: None, args })
        };
        self.set.registers.writes.iter().filter_map(of_submit).collect()
    }

    /// The kernel's own packets are not the driver's to change.
    fn is_of_stream(&self, packet: &CachedPacket) -> bool {
        self.replay.buffers().any(|(iova, size)| (iova..iova.saturating_add(size)).contains(&packet.iova))
    }

    fn needless_flushes(&self) -> Vec<LintFinding> {
        let events = self.set.memory.events.iter().filter(|event| event.needed == 0);
        let finding = |event: &unwedge_sim::adreno::CacheEventUse| LintFinding {
            args: Args::new().with("times", Arg::Number(event.times)),
            ..LintFinding::of(LintRule::NeedlessFlush, self.cached(&event.packet))
        };
        events.filter(|event| self.is_of_stream(&event.packet)).map(finding).collect()
    }

    fn needless_waits(&self, waits: &[WaitUse]) -> Vec<LintFinding> {
        let waits = waits.iter().filter(|wait| wait.needed == 0 && self.is_of_stream(&wait.packet.packet));
        let finding = |wait: &WaitUse| LintFinding {
            args: Args::new().with("times", Arg::Number(wait.times)),
            ..LintFinding::of(LintRule::NeedlessWait, self.audited(&wait.packet))
        };
        waits.map(finding).collect()
    }
}
