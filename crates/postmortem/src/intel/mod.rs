//! Hangs of Intel GPUs: error states of i915 and devcoredumps of xe.
//!
//! Which engine hangs and whose work was on it; where it stands; what it waits for; which units are not done; faults; the
//! image of its context. Never: formatting.

mod advice;
mod busy;
mod case;
mod context;
mod device;
mod fault;
mod state;
mod stop;
mod wait;

use crate::head::{DriverIdentity, GpuIdentity, ProcessIdentity, some_text};
use crate::prose::Finding;
use crate::report::{FindingKind, Report, Trust};
use case::{Case, Unit, finding, list, seen};
pub use device::{Device, active_head, queue_engine};
pub use fault::fault_address;
use std::cell::{OnceCell, RefCell};

use unwedge_capture::intel::{MemoryBlock, MemoryBlockKind, RingRegister};
use unwedge_capture::{i915::ErrorState, xe::XeDevcore};
use unwedge_hw::DbIdentity;
use unwedge_hw::intel::platform::EngineClass;
use unwedge_stream::intel::unpack::{AddressSpaces, Wanted};

/// Explains an error state of i915.
pub fn explain_i915(dump: &ErrorState<'_>) -> Report {
    let mut memory = AddressSpaces::new(&dump.blocks, &dump.engines, memory_limit(dump.text().len()));
    let mut report = memory.settle(|memory| explain_i915_with(dump, memory));
    report.diagnostics = dump.diagnostics.iter().cloned().chain(memory.diagnostics()).collect();
    report
}

/// Bytes of an address space that are unpacked at most: so many, and so many for each byte of the dump.
const MEMORY: usize = 32 << 20;
/// See [`MEMORY`].
const MEMORY_PER_BYTE: usize = 8;

fn memory_limit(bytes: usize) -> usize {
    MEMORY.saturating_add(MEMORY_PER_BYTE.saturating_mul(bytes))
}

/// With what is unpacked; also what was missed.
fn explain_i915_with(dump: &ErrorState<'_>, memory: &AddressSpaces<'_, '_>) -> (Report, Vec<Wanted>) {
    let Device { driver, platform, version } = Device::of_i915(dump);
    let hang = dump.hang();
    let processes: Vec<_> = dump.processes().collect();
    let mut engines = Vec::new();
    for engine in &dump.engines {
        let id = engine.id();
        let context = dump.context(engine);
        let process = context.map(|c| format!("{} [{}]", c.name, c.pid)).or_else(|| {
            let found = processes.iter().find(|p| p.engine.is_some() && p.engine == engine.id());
            found.map(|p| format!("{} [{}]", p.name, p.pid))
        });
        let (space, ppgtt) = memory.ppgtt(engine);
        engines.push(Unit {
            dump: engine,
            id,
            hung: dump.hung(engine),
            process,
            guilty: context.and_then(|c| c.guilty),
            batch: dump.batch(engine),
            ppgtt,
            space,
            decoder: OnceCell::new(),
        });
    }
    mark_by_code(hang.map(|h| (h.generation, h.engines)), &mut engines);
    let span = dump.fields.iter().find(|f| f.key == "GPU HANG").map(|f| f.span);
    let case = Case {
        driver,
        platform,
        version,
        engines,
        registers: &dump.registers,
        blocks: &dump.blocks,
        ggtt: memory.ggtt(),
        wanted: RefCell::default(),
    };
    let mut report = Report {
        driver: DriverIdentity {
            name: Some("i915".to_owned()),
            linux: dump.field("Kernel").map(str::trim).and_then(some_text),
            mesa: None,
        },
        process: hang
            .and_then(|h| Some((h.process?, h.pid?)))
            .map(|(name, pid)| ProcessIdentity {
                name: Some(name.to_owned()),
                command_line: None,
                pid: Some(pid),
            })
            .unwrap_or_default(),
        ..Report::default()
    };
    let mut more = Vec::new();
    if let Some(hang) = hang {
        let reason = hang.reason.map_or(String::new(), |r| format!(": {r}"));
        more.push(finding(
            FindingKind::Progress,
            Trust::Certain,
            format!(
                "the kernel's code of this hang: {}:{:x}:{:08x}{reason}",
                hang.generation, hang.engines, hang.code
            ),
            "IPEHR xor INSTDONE of the engine: the same code twice is likely the same hang.",
            vec![seen("header", dump.field("GPU HANG").unwrap_or_default().to_owned(), span)],
        ));
    }
    if let Some(count) = dump.field("Reset count").filter(|c| c.trim() != "0") {
        more.push(finding(
            FindingKind::Progress,
            Trust::Certain,
            format!("{} resets before this one", count.trim()),
            "",
            vec![seen("header", format!("Reset count: {count}"), None)],
        ));
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
    let Device { driver, platform, version } = Device::of_xe(dump);
    let process = dump.process().map(|(name, pid)| match pid {
        Some(pid) => format!("{name} [{pid}]"),
        None => name.to_owned(),
    });
    let class = device::queue_class(dump);
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
                guilty: None,
                batch: dump.batches.first().map(|&b| b..b),
                ppgtt,
                space,
                decoder: OnceCell::new(),
            }
        })
        .collect();
    let case = Case {
        driver,
        platform,
        version,
        engines,
        registers: &[],
        blocks: &dump.blocks,
        ggtt: memory.ggtt(),
        wanted: RefCell::default(),
    };
    let mut report = Report {
        driver: DriverIdentity {
            name: Some("xe".to_owned()),
            linux: dump.field("kernel").map(str::trim).and_then(some_text),
            mesa: None,
        },
        process: dump
            .process()
            .map(|(name, pid)| ProcessIdentity { name: Some(name.to_owned()), command_line: None, pid })
            .unwrap_or_default(),
        ..Report::default()
    };
    let mut more = Vec::new();
    if let Some(reason) = dump.field("Reason") {
        let span = dump.fields.iter().find(|f| f.key == "Reason").map(|f| f.span);
        let evidence = vec![seen("header", format!("Reason: {reason}"), span)];
        more.push(finding(
            FindingKind::Progress,
            Trust::Certain,
            format!("the kernel says: {reason}"),
            "",
            evidence,
        ));
    }
    queues(dump, &mut more);
    vm(dump, &mut more);
    judge(&case, more, &mut report);
    (report, case.wanted.into_inner())
}

/// The queues that hang, and their jobs.
fn queues(dump: &XeDevcore<'_>, more: &mut Vec<Finding>) {
    for queue in &dump.queues {
        let name = queue.field("Name").map_or_else(|| "a queue".to_owned(), str::to_owned);
        let mut evidence = Vec::new();
        for key in ["Schedule State", "Flags", "Timeout", "Ref"] {
            if let Some(value) = queue.field(key) {
                evidence.push(seen("queue", format!("{key}: {value}"), Some(queue.span)));
            }
        }
        for context in &queue.contexts {
            for key in ["LRC Head", "LRC Tail", "Seqno", "Start seqno"] {
                if let Some(value) = context.field(key) {
                    evidence.push(seen("queue", format!("{key}: {value}"), Some(queue.span)));
                }
            }
        }
        let jobs: Vec<String> =
            queue.jobs.iter().map(|j| j.value.to_string()).filter(|v| !v.is_empty()).collect();
        let open =
            if jobs.is_empty() { String::new() } else { format!(", jobs not done: {}", list(&jobs, 3)) };
        let id = queue.guc_id.map_or(String::new(), |id| format!(" (GuC id {id})"));
        let title = format!("queue {name}{id} timed out{open}");
        more.push(finding(FindingKind::Progress, Trust::Certain, title, "", evidence));
    }
}

/// What could not be captured of the address space.
fn vm(dump: &XeDevcore<'_>, more: &mut Vec<Finding>) {
    let failed: Vec<String> = dump
        .blocks
        .iter()
        .filter(|b| b.kind == MemoryBlockKind::Vm)
        .filter_map(|b| Some(format!("{:#x} (error {})", b.address?, b.error?)))
        .collect();
    if !failed.is_empty() {
        let title = format!("{} buffers of the address space: {}", failed.len(), list(&failed, 3));
        more.push(finding(FindingKind::NotCaptured, Trust::Certain, title, "", Vec::new()));
    }
}

/// Engines the code of a hang names, where nothing else says which hang.
fn mark_by_code(code: Option<(u32, i64)>, engines: &mut [Unit<'_, '_>]) {
    if engines.iter().any(|u| u.hung == Some(true)) {
        return;
    }
    let Some((_, mask)) = code.filter(|(_, mask)| *mask > 0) else { return };
    // A mask of classes since 5.2, as user space numbers them: render, copy, video, video enhancement, compute.
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
fn judge(case: &Case<'_, '_>, more: Vec<Finding>, report: &mut Report) {
    report.gpu =
        GpuIdentity::Intel { platform: case.platform.map(|platform| platform.name()), version: case.version };
    report.database = DbIdentity {
        source: "built-in intel".to_owned(),
        version: String::new(),
        hash: format!("{:016x}", unwedge_hw::intel::hash()),
    };
    let mut findings = more;
    findings.extend(fault::findings(case));
    findings.extend(fault::errors(case));
    let hung: Vec<&Unit<'_, '_>> = suspects(case);
    let mut verdict = None;
    let mut first_stop = None;
    for unit in &hung {
        let stop = stop::locate(case, unit);
        findings.extend(busy::findings(case, unit));
        findings.extend(context::findings(case, unit));
        let Some(stop) = stop else { continue };
        let wait = wait::finding_of(case, unit, &stop);
        let corrupt = stop::corrupt(case, unit, &stop);
        let because = wait.as_ref().or_else(|| corrupt.iter().find(|f| f.trust >= Trust::Likely));
        let because = because.map(|f| f.title.clone()).unwrap_or_default();
        let told = stop::verdict(case, unit, &stop, &because);
        findings.extend(wait);
        findings.extend(corrupt);
        findings.extend(in_flight(unit, &stop));
        match verdict {
            None => {
                report.hang = stop.point(unit, told.trust);
                verdict = Some(told);
                first_stop = Some(stop);
            }
            // Another engine stands too: it is told of, and the first one's place is the report's.
            Some(_) => findings.push(Finding { kind: FindingKind::Suspect, ..told }),
        }
    }
    findings.extend(who(case, &hung));
    findings.sort_by_key(|f| std::cmp::Reverse(weight(f)));
    if let Some(verdict) = verdict {
        findings.insert(0, verdict);
    }
    findings.extend(missing(case, &hung));
    report.advice =
        advice::advise(case, &hung, first_stop.as_ref(), &findings).into_iter().map(Into::into).collect();
    report.findings = findings.into_iter().map(Into::into).collect();
}

/// The engines that hang: those the kernel says, or else those that have not read all there is.
fn suspects<'u, 'c, 'a>(case: &'u Case<'c, 'a>) -> Vec<&'u Unit<'c, 'a>> {
    let said: Vec<_> = case.engines.iter().filter(|u| u.hung == Some(true)).collect();
    if !said.is_empty() {
        return said;
    }
    let busy = |u: &&Unit<'_, '_>| {
        let offset = |r| u.ring32(r).map(|v| v & 0x001f_fffc);
        offset(RingRegister::Head) != offset(RingRegister::Tail)
    };
    let open: Vec<_> = case.engines.iter().filter(busy).collect();
    if open.is_empty() { case.engines.iter().take(1).collect() } else { open }
}

/// Whose work it was.
fn who(case: &Case<'_, '_>, hung: &[&Unit<'_, '_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for unit in hung {
        let Some(process) = &unit.process else { continue };
        let before = unit
            .guilty
            .filter(|&n| n > 0)
            .map_or(String::new(), |n| format!("; its work was held to be guilty {n} times"));
        findings.push(finding(
            FindingKind::Progress,
            if unit.hung == Some(true) { Trust::Certain } else { Trust::Possible },
            format!("{} runs {process}{before}", unit.name()),
            "",
            vec![unit.seen("the context on the engine")],
        ));
    }
    let others: Vec<String> = case
        .engines
        .iter()
        .filter(|u| !hung.iter().any(|h| std::ptr::eq(*h, *u)))
        .filter(|u| {
            let offset = |r| u.ring32(r).map(|v| v & 0x001f_fffc);
            offset(RingRegister::Head).is_some() && offset(RingRegister::Head) != offset(RingRegister::Tail)
        })
        .map(|u| u.name())
        .collect();
    if !others.is_empty() {
        findings.push(finding(
            FindingKind::Suspect,
            Trust::Guess,
            format!("{} not done either", list(&others, 6)),
            "HEAD is not at TAIL: they may wait for the engine that hangs, or it for them.",
            Vec::new(),
        ));
    }
    findings
}

/// What was set up or started before the stop.
fn in_flight(unit: &Unit<'_, '_>, stop: &stop::Stop) -> Option<Finding> {
    let mut evidence = Vec::new();
    if let Some(flush) = &stop.flush {
        let flags = flush.words.get(1).copied().unwrap_or(0);
        evidence
            .push(unit.seen(format!("the last {} at {:#x}: flags {flags:#010x}", flush.name, flush.address)));
    }
    if let Some(pipeline) = &stop.pipeline {
        evidence.push(unit.seen(format!("pipeline: {pipeline}")));
    }
    evidence.extend(stop.state.iter().map(|line| unit.seen(line.as_str())));
    if evidence.is_empty() || stop.draws == 0 && stop.state.is_empty() {
        return None;
    }
    let title = match stop.draws {
        0 => format!("{}: no draw, dispatch or blit before the stop", unit.name()),
        n => format!("{}: {n} draws, dispatches or blits on the way to the stop", unit.name()),
    };
    Some(finding(FindingKind::InFlight, stop.trust().min(Trust::Likely), title, "", evidence))
}

/// What the dump does not hold, and would help.
fn missing(case: &Case<'_, '_>, hung: &[&Unit<'_, '_>]) -> Vec<Finding> {
    let mut absent = Vec::new();
    if case.engines.is_empty() {
        absent.push("engines".to_owned());
    }
    if case.version.is_none() {
        absent.push("which GPU it is: commands and registers are not read".to_owned());
    }
    for unit in hung {
        let has = |kind| case.blocks_of(unit, kind).any(|b: &MemoryBlock<'_>| b.data.is_some());
        if !has(MemoryBlockKind::Ring) && !has(MemoryBlockKind::Batch) && !has(MemoryBlockKind::Vm) {
            absent.push(format!("ring and batch of {}", unit.name()));
        }
        if !has(MemoryBlockKind::HwContext) {
            absent.push(format!("the context of {}", unit.name()));
        }
    }
    let told = |title: String| finding(FindingKind::NotCaptured, Trust::Certain, title, "", Vec::new());
    absent.into_iter().map(told).collect()
}

/// How telling a finding is: what is likely comes first, then its kind counts.
fn weight(finding: &Finding) -> u32 {
    let kind = match finding.kind {
        FindingKind::HangPoint => 100,
        FindingKind::CpWait => 60,
        FindingKind::Fault => 55,
        FindingKind::CorruptStream => 50,
        FindingKind::ErrorInterrupt => 44,
        FindingKind::Suspect => 40,
        FindingKind::Busy => 36,
        FindingKind::InFlight => 20,
        FindingKind::Progress => 10,
        _ => 0,
    };
    if finding.trust >= Trust::Likely { 1000 + kind } else { kind }
}
