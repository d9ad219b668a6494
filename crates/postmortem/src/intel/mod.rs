//! Hangs of Intel GPUs: error states of i915 and devcoredumps of xe.
//!
//! Which engine hangs and whose work was on it; where it stopped; what it waits for; which units are not done; faults; the
//! image of its context. Never: formatting.

mod advice;
mod bound;
mod busy;
mod case;
mod context;
mod cycle;
mod device;
mod eu_code;
mod fault;
mod response;
mod shaders;
mod state;
mod stop;
mod wait;
mod writer;

use crate::absence;
use crate::args::{Arg, Args};
use crate::head::{DriverIdentity, GpuIdentity, ProcessIdentity, some_text};
use crate::report::{Evidence, Fact, Finding, Report, Subject, Trust};
use crate::rules::Rule;
use crate::verdict;
use case::{IntelCase, IntelSource, Unit, field, seen, texts};
pub use device::{IntelDevice, active_head, queue_engine};
pub use fault::fault_address;
use std::cell::{OnceCell, RefCell};

use unwedge_base::Memory;
use unwedge_capture::SectionAbsence;
use unwedge_capture::absence::kernel_version;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{DumpEngine, IntelRecord, MemoryBlock, MemoryBlockKind, RingRegister};
use unwedge_capture::xe::{XeDevcore, XeQueue};
use unwedge_hw::intel::platform::EngineClass;
use unwedge_stream::intel::unpack::{AddressSpaces, Wanted};

/// Explains an error state of i915.
pub fn explain_i915(dump: &ErrorState<'_>) -> Report {
    let mut memory = AddressSpaces::new(&dump.blocks, &dump.engines, memory_limit(dump.text().len()));
    let mut report = memory.settle(|memory| explain_i915_with(dump, memory));
    report.diagnostics = dump.diagnostics.iter().cloned().chain(memory.diagnostics()).collect();
    report
}

/// Blocks with missing contents that are reported.
const MAX_CUT: usize = 4;

/// Bytes of an address space that are unpacked at most: so many, and so many for each byte of the dump.
const MEMORY: usize = 32 << 20;
/// See [`MEMORY`].
const MEMORY_PER_BYTE: usize = 8;

fn memory_limit(bytes: usize) -> usize {
    MEMORY.saturating_add(MEMORY_PER_BYTE.saturating_mul(bytes))
}

/// With what is unpacked; also what was missed.
fn explain_i915_with(dump: &ErrorState<'_>, memory: &AddressSpaces<'_, '_>) -> (Report, Vec<Wanted>) {
    let IntelDevice { driver, platform, version } = IntelDevice::of_i915(dump);
    let hang = dump.hang();
    let processes: Vec<_> = dump.processes().collect();
    let mut engines = Vec::new();
    for engine in &dump.engines {
        let id = engine.id();
        let context = dump.context(engine);
        let process = context.map(|c| process(c.name, Some(c.pid))).or_else(|| {
            let found = processes.iter().find(|p| p.engine.is_some() && p.engine == engine.id());
            found.map(|p| process(p.name, Some(p.pid)))
        });
        let (space, ppgtt) = memory.ppgtt(engine);
        engines.push(Unit {
            dump: engine,
            id,
            hung: dump.hung(engine),
            process,
            requests: dump.ports(engine).collect(),
            guilty: context.and_then(|c| c.guilty),
            batch: dump.batch(engine),
            ring: captured_ring(&dump.blocks, engine, memory.ggtt()),
            ppgtt,
            space,
            decoder: OnceCell::new(),
        });
    }
    mark_by_code(hang.map(|h| h.engines), dump.field("Kernel").and_then(kernel_version), &mut engines);
    let span = dump.fields.iter().find(|f| f.key == "GPU HANG").map(|f| f.span);
    let case = IntelCase {
        driver,
        platform,
        version,
        engines,
        registers: &dump.registers,
        blocks: &dump.blocks,
        ggtt: memory.ggtt(),
        source: IntelSource::I915(dump),
        wanted: RefCell::default(),
    };
    let mut report = Report {
        driver: DriverIdentity {
            name: Some("i915".to_owned()),
            linux: dump.field("Kernel").map(str::trim).and_then(some_text),
            mesa: None,
        },
        taken_as: dump.taken_as.as_ref().map(|chip| chip.name.clone()),
        process: hang
            .and_then(|h| Some((h.process?, h.pid?)))
            .map(|(name, pid)| process(name, Some(pid)))
            .unwrap_or_default(),
        ..Report::default()
    };
    let mut more = Vec::new();
    if let Some(hang) = hang {
        let line = Fact::Line(dump.field("GPU HANG").unwrap_or_default().to_owned());
        more.push(
            Finding::new(Rule::KernelHangCode, Trust::Certain, Subject::Gpu)
                .with_some("generation", hang.generation.map(|generation| Arg::Number(generation.into())))
                .with("engines", Arg::Value(hang.engines as u64))
                .with("code", Arg::Value(hang.code.into()))
                .with_some("reason", hang.reason.map(|reason| Arg::Text(reason.to_owned())))
                .seen([seen("header", line, span)]),
        );
    }
    more.extend(busy::attention(dump));
    let resets = dump.field("Reset count").and_then(|count| count.trim().parse::<u64>().ok());
    if let Some(count) = resets.filter(|&count| count > 0) {
        let fact = Fact::Field { name: "Reset count".into(), value: Arg::Number(count) };
        more.push(
            Finding::new(Rule::EarlierResets, Trust::Certain, Subject::Gpu)
                .with("resets", Arg::Number(count))
                .seen([seen("header", fact, None)]),
        );
    }
    judge(&case, more, &mut report);
    (report, case.wanted.into_inner())
}

/// Explains a devcoredump of xe.
pub fn explain_xe(dump: &XeDevcore<'_>) -> Report {
    let mut memory = AddressSpaces::new(&dump.blocks, &dump.engines, memory_limit(dump.text().len()));
    let mut report = memory.settle(|memory| explain_xe_with(dump, memory));
    report.diagnostics = dump.diagnostics.iter().cloned().chain(memory.diagnostics()).collect();
    report
}

/// With what is unpacked; also what was missed.
fn explain_xe_with(dump: &XeDevcore<'_>, memory: &AddressSpaces<'_, '_>) -> (Report, Vec<Wanted>) {
    let IntelDevice { driver, platform, version } = IntelDevice::of_xe(dump);
    let process = dump.process().map(|(name, pid)| process(name, pid));
    let class = dump.queues.first().and_then(XeQueue::class);
    let engines: Vec<Unit<'_, '_>> = dump
        .engines
        .iter()
        .map(|engine| {
            let id = engine.id();
            // A queue hangs on an engine of its class; which one it was on, ACTHD tells.
            let (space, ppgtt) = memory.ppgtt(engine);
            let busy = engine.ring(RingRegister::Acthd).is_some_and(|a| a != 0);
            let hung = class.map(|class| id.is_some_and(|id| id.class == class) && busy);
            Unit {
                dump: engine,
                id,
                hung,
                process: process.clone().filter(|_| hung == Some(true)),
                requests: Vec::new(),
                guilty: None,
                batch: dump.batches.first().map(|&b| b..b),
                ring: None,
                ppgtt,
                space,
                decoder: OnceCell::new(),
            }
        })
        .collect();
    let case = IntelCase {
        driver,
        platform,
        version,
        engines,
        registers: &[],
        blocks: &dump.blocks,
        ggtt: memory.ggtt(),
        source: IntelSource::Xe(dump),
        wanted: RefCell::default(),
    };
    let mut report = Report {
        driver: DriverIdentity {
            name: Some("xe".to_owned()),
            linux: dump.field("kernel").map(str::trim).and_then(some_text),
            mesa: None,
        },
        taken_as: dump.taken_as.as_ref().map(|chip| chip.name.clone()),
        process: process.clone().unwrap_or_default(),
        ..Report::default()
    };
    let mut more = Vec::new();
    if let Some(reason) = dump.field("Reason") {
        let span = dump.fields.iter().find(|f| f.key == "Reason").map(|f| f.span);
        more.push(
            Finding::new(Rule::KernelReason, Trust::Certain, Subject::Gpu)
                .with("reason", Arg::Text(reason.to_owned()))
                .seen([seen("header", field("Reason", reason), span)]),
        );
    }
    queues(dump, &mut more);
    vm(dump, &mut more);
    judge(&case, more, &mut report);
    (report, case.wanted.into_inner())
}

/// Where the ring of an engine was captured, and how many bytes of it.
fn captured_ring(blocks: &[MemoryBlock<'_>], engine: &DumpEngine<'_>, ggtt: &Memory) -> Option<(u64, u64)> {
    let ring = |b: &&MemoryBlock<'_>| b.kind == MemoryBlockKind::Ring && b.is_of(engine);
    let start = blocks.iter().find(ring)?.address?;
    Some((start, ggtt.find(start).map_or(0, |buffer| buffer.size)))
}

/// A process by its name and number.
fn process(name: &str, pid: Option<i64>) -> ProcessIdentity {
    ProcessIdentity { name: Some(name.to_owned()), command_line: None, pid }
}

/// The queues that hang, and their jobs.
fn queues(dump: &XeDevcore<'_>, more: &mut Vec<Finding>) {
    for queue in &dump.queues {
        let read = |name: &'static str, value: Option<&str>| {
            value.map(|value| seen("queue", field(name, value), Some(queue.span)))
        };
        let mut evidence: Vec<Evidence> = ["Schedule State", "Flags", "Timeout", "Ref"]
            .into_iter()
            .filter_map(|key| read(key, queue.field(key)))
            .collect();
        for context in &queue.contexts {
            let keys = ["LRC Head", "LRC Tail", "Seqno", "Start seqno"];
            evidence.extend(keys.into_iter().filter_map(|key| read(key, context.field(key))));
        }
        let name = queue.field("Name");
        let hung_job = queue.hung_job();
        let jobs = queue.jobs.iter().map(|job| job.value.to_string()).filter(|job| !job.is_empty());
        more.push(
            Finding::new(
                Rule::QueueTimedOut,
                Trust::Certain,
                Subject::Context(name.unwrap_or_default().to_owned()),
            )
            .with_some("queue", name.map(|name| Arg::Text(name.to_owned())))
            .with_some("guc_id", queue.guc_id.map(|id| Arg::Number(id.into())))
            .with("jobs", texts(jobs))
            .with_some("hung_job", hung_job.map(|job| Arg::Number(job.seqno.into())))
            .with_some("nth", hung_job.map(|job| Arg::Number(job.nth)))
            .with_some("open", hung_job.map(|job| Arg::Number(job.open)))
            .seen(evidence),
        );
    }
}

/// What could not be captured of the address space.
fn vm(dump: &XeDevcore<'_>, more: &mut Vec<Finding>) {
    let failed = dump.blocks.iter().filter(|block| block.kind == MemoryBlockKind::Vm).filter_map(|block| {
        let error = block.error?;
        let args = Args::new().with("address", Arg::Address(block.address?));
        Some(args.with("error", Arg::Text(error.to_string())).into())
    });
    let failed: Vec<Arg> = failed.collect();
    if !failed.is_empty() {
        let finding = Finding::new(Rule::VmBuffersMissing, Trust::Certain, Subject::Dump);
        more.push(finding.with("buffers", failed));
    }
}

/// Engines the code of a hang names, where nothing else says which hang. Before `CLASSES_SINCE` it has a number, or a mask of numbers,
/// that the driver gave its engines, which has changed.
fn mark_by_code(code: Option<i64>, kernel: Option<(u32, u32)>, engines: &mut [Unit<'_, '_>]) {
    const CLASSES_SINCE: (u32, u32) = (5, 2);
    if engines.iter().any(|u| u.hung == Some(true)) || kernel.is_none_or(|kernel| kernel < CLASSES_SINCE) {
        return;
    }
    let Some(mask) = code.filter(|mask| *mask > 0) else { return };
    // A mask of classes, as user space numbers them: render, copy, video, video enhancement, compute.
    const CLASSES: [EngineClass; 5] = [
        EngineClass::Render,
        EngineClass::Copy,
        EngineClass::VideoDecode,
        EngineClass::VideoEnhance,
        EngineClass::Compute,
    ];
    let class = CLASSES.iter().enumerate().find(|(bit, _)| mask >> bit & 1 != 0).map(|(_, class)| *class);
    for unit in engines {
        if unit.id.is_some_and(|id| Some(id.class) == class) {
            unit.hung = Some(true);
        }
    }
}

/// Puts a report together.
fn judge(case: &IntelCase<'_, '_>, more: Vec<Finding>, report: &mut Report) {
    report.gpu =
        GpuIdentity::Intel { platform: case.platform.map(|platform| platform.name()), version: case.version };
    report.database = unwedge_hw::intel::identity();
    let mut findings = more;
    findings.extend(fault::findings(case));
    findings.extend(fault::errors(case));
    let hung: Vec<&Unit<'_, '_>> = suspects(case);
    let (mut verdict, mut silent) = (None, None);
    for unit in &hung {
        if let Some(found) = response::finding(unit) {
            // What such registers say of units, faults and places is nothing.
            findings.extend(context::findings(case, unit));
            silent.get_or_insert(found);
            continue;
        }
        let stop = stop::locate(case, unit);
        let busy = busy::finding(case, unit);
        findings.extend(busy.clone());
        findings.extend(context::findings(case, unit));
        let Some(stop) = stop else { continue };
        fault::name_writers(case, unit, &stop, &mut findings);
        stop.work.name_surfaces(&mut findings);
        findings.extend(stop.work.findings(case, unit));
        let stopped = stop::verdict(case, unit, &stop, busy.as_ref());
        findings.extend(wait::finding(case, unit, &stop, busy.as_ref()));
        findings.extend(stop::corrupt(case, unit, &stop));
        findings.extend(in_flight(unit, &stop));
        if verdict.is_none() {
            report.hang = stop.point(unit, stopped.trust);
            verdict = Some(stopped);
        } else {
            // The place of the first engine is the report's.
            findings.push(other_engine(stopped));
        }
    }
    // An engine with a position says more than one that does not answer.
    let verdict = match verdict {
        Some(verdict) => {
            findings.extend(silent);
            Some(verdict)
        }
        None => silent,
    };
    findings.extend(who(case, &hung));
    findings.extend(hung.iter().filter_map(|unit| requests(unit)));
    verdict::rank(&mut findings);
    if let Some(verdict) = verdict {
        findings.insert(0, verdict);
    }
    findings.extend(missing(case, &hung));
    report.advice = advice::advise(case, &hung, &findings);
    report.findings = findings;
    verdict::assign(report);
}

/// Where another engine stopped.
fn other_engine(stopped: Finding) -> Finding {
    let rule = Rule::OtherEngineStopped;
    Finding { rule, kind: rule.row().kind, ..stopped }
}

/// The engines that hang: those the kernel says, or else those that have not read all there is.
fn suspects<'u, 'c, 'a>(case: &'u IntelCase<'c, 'a>) -> Vec<&'u Unit<'c, 'a>> {
    let said: Vec<_> = case.engines.iter().filter(|u| u.hung == Some(true)).collect();
    if !said.is_empty() {
        return said;
    }
    let open: Vec<_> = case.engines.iter().filter(|u| !u.has_read_all()).collect();
    if !open.is_empty() {
        return open;
    }
    // Kernels up to 3.1 print no HEAD. They capture the batch of an engine that has work, and of no other.
    let captured = |kind| {
        let unread = case.engines.iter().filter(|u| u.ring(RingRegister::Head).is_none());
        unread.filter(|u| case.blocks_of(u, kind).next().is_some()).collect::<Vec<_>>()
    };
    let captured = [MemoryBlockKind::Batch, MemoryBlockKind::Ring].map(captured);
    let working = captured.into_iter().find(|engines| !engines.is_empty());
    working.unwrap_or_else(|| case.engines.iter().take(1).collect())
}

/// Whose work it was.
fn who(case: &IntelCase<'_, '_>, hung: &[&Unit<'_, '_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for unit in hung {
        let Some(process) = &unit.process else { continue };
        let trust = if unit.hung == Some(true) { Trust::Certain } else { Trust::Possible };
        let name = process.name.clone().unwrap_or_default();
        let shown = match process.pid {
            Some(pid) => format!("{name} [{pid}]"),
            None => name.clone(),
        };
        findings.push(
            unit.finding(Rule::EngineRunsProcess, trust)
                .with("process", Arg::Text(name))
                .with_some("pid", process.pid.and_then(|pid| Some(Arg::Number(u64::try_from(pid).ok()?))))
                .with_some("guilty", unit.guilty.and_then(|n| u64::try_from(n).ok()).map(Arg::Number))
                .seen([unit.seen(field("context", shown))]),
        );
    }
    let others = case.engines.iter().filter(|u| !hung.iter().any(|h| std::ptr::eq(*h, *u)));
    let others = others.filter(|u| u.ring(RingRegister::Head).is_some() && !u.has_read_all());
    let others: Vec<Arg> = others.map(|u| Arg::name(u.name())).collect();
    if !others.is_empty() {
        let finding = Finding::new(Rule::OtherEnginesNotDone, Trust::Guess, Subject::Gpu);
        findings.push(finding.with("engines", others));
    }
    findings
}

/// Which of the requests that were handed to an engine it was in: the first that is not done, for they are executed in order.
fn requests(unit: &Unit<'_, '_>) -> Option<Finding> {
    let open = || unit.requests.iter().filter(|request| !request.signaled);
    let first = open().next()?;
    let shown = unit.requests.iter().map(|request| {
        let args = Args::new()
            .with_some("context", request.context.map(Arg::Value))
            .with("seqno", Arg::Number(request.seqno.into()))
            .with("signaled", request.signaled);
        unit.seen(Fact::Record(args))
    });
    Some(
        unit.finding(Rule::RequestsPending, Trust::Likely)
            .with_some("context", first.context.map(Arg::Value))
            .with("seqno", Arg::Number(first.seqno.into()))
            .with("open", Arg::Number(open().count() as u64))
            .seen(shown),
    )
}

/// What was set up or started before the stop.
fn in_flight(unit: &Unit<'_, '_>, stop: &stop::IntelStop) -> Option<Finding> {
    let mut evidence = Vec::new();
    evidence.extend(stop.flush.as_ref().map(|flush| unit.seen_command(flush, 2)));
    evidence.extend(
        stop.pipeline
            .map(|pipeline| unit.seen(Fact::Field { name: "pipeline".into(), value: Arg::name(pipeline) })),
    );
    evidence.extend(stop.state.iter().cloned());
    if evidence.is_empty() || stop.draws == 0 && stop.state.is_empty() {
        return None;
    }
    let trust = stop.trust().min(Trust::Likely);
    let finding = match stop.draws {
        0 => unit.finding(Rule::StateBeforeStop, trust),
        n => unit.finding(Rule::WorkBeforeStop, trust).with("work", Arg::Number(n.into())),
    };
    Some(finding.with_some("shaders", stop.work.shaders()).seen(evidence))
}

/// What the dump does not hold, and would help.
fn missing(case: &IntelCase<'_, '_>, hung: &[&Unit<'_, '_>]) -> Vec<Finding> {
    let of_dump = |rule| Finding::new(rule, Trust::Certain, Subject::Dump);
    let why = |found: Finding, why: SectionAbsence| {
        let args = absence::of_kernel(found.args, why, case.source.kernel());
        Finding { args, ..found }
    };
    let mut absent = Vec::new();
    if case.engines.is_empty() {
        absent.push(of_dump(Rule::EnginesMissing));
    }
    if case.version.is_none() {
        absent.push(of_dump(Rule::IntelGenerationUnknown));
    }
    for unit in hung {
        let has = |kind| case.blocks_of(unit, kind).any(|b: &MemoryBlock<'_>| b.data.is_some());
        if !has(MemoryBlockKind::Ring) && !has(MemoryBlockKind::Batch) && !has(MemoryBlockKind::Vm) {
            let reason = case.source.absence(Some(unit), IntelRecord::Commands);
            absent.push(why(unit.finding(Rule::RingAndBatchMissing, Trust::Certain), reason));
        }
        // Before gen8 the command streamer saved no registers of itself, and what it saved has no layout here.
        let logical = case.version.is_none_or(|version| version.major >= 8);
        if logical && !has(MemoryBlockKind::HwContext) {
            let reason = case.source.absence(Some(unit), IntelRecord::ContextImage);
            absent.push(why(unit.finding(Rule::ContextMissing, Trust::Certain), reason));
        }
    }
    absent.extend(contents_cut(case, hung));
    absent.extend(fault::unrecorded(case).map(|(rule, reason)| why(of_dump(rule), reason)));
    absent
}

/// Blocks of the engines that hang whose end was not captured: the dump ends in them, or their text is damaged.
fn contents_cut(case: &IntelCase<'_, '_>, hung: &[&Unit<'_, '_>]) -> Vec<Finding> {
    let of_hung = |block: &&MemoryBlock<'_>| {
        let known = block.kind != MemoryBlockKind::Other && block.kind != MemoryBlockKind::GucLog;
        known && hung.iter().any(|unit| block.is_of(unit.dump))
    };
    let cut = case.blocks.iter().filter(of_hung).filter_map(|block| {
        let captured = case.captured_before_cut(block)?;
        let base = block.address?;
        let end = base.saturating_add(captured.saturating_mul(4));
        // How far it goes is not known; what is after its end and before the next block may be of it.
        let next = case.blocks.iter().filter_map(|b| b.address).filter(|&other| other > base).min();
        let lost = |address: u64| address >= end && next.is_none_or(|next| address < next);
        let acthd = hung.iter().filter_map(|unit| unit.active_head()).any(lost);
        Some(
            Finding::new(Rule::MemoryContentsCut, Trust::Certain, Subject::Memory(base))
                .with("block", Arg::Text(block.name.to_string()))
                .with("base", Arg::Address(base))
                .with("captured", Arg::Number(captured))
                .with("cut", case.ends_with(block))
                .with("acthd", acthd),
        )
    });
    cut.take(MAX_CUT).collect()
}
