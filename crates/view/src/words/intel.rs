//! The words of rules over dumps of i915 and xe.

use super::{Words, hex, what_is_written};
use crate::plural::ordinal;
use unwedge_check::eu::Rule as Check;
use unwedge_postmortem::{AdviceId, Arg, Args, FieldFact, Finding, IntelRule, Rule, Subject};

/// Units that are named.
const UNITS: usize = 12;
/// Engines that are named.
const ENGINES: usize = 6;
/// Jobs and buffers that are named.
const NAMED: usize = 3;

/// The words of a rule.
pub(super) fn words(f: &Finding, rule: IntelRule) -> Words {
    match rule {
        IntelRule::EngineAtCommand
        | IntelRule::EngineRingDrained
        | IntelRule::EngineInUnreachedBuffer
        | IntelRule::EngineAtInvalidCommand
        | IntelRule::EngineInMissingMemory
        | IntelRule::EnginePositionMissing
        | IntelRule::OtherEngineStopped => stopped(f),
        IntelRule::EngineNotResponding => Words::new(
            format!("{}: every register reads 0xffffffff, the device is not responding", engine(f)),
            "It is powered down or off the bus. The values of its registers say nothing about the work it had.",
        ),
        IntelRule::EngineRegistersZero => Words::new(
            format!("{}: every register reads 0, so none was read", engine(f)),
            "Not even INSTDONE has a bit set. The place of the hang and the state of the units are not known.",
        ),
        IntelRule::BatchLoops => batch_loops(f),
        IntelRule::OtherEnginesNotDone => other_engines_not_done(f),
        IntelRule::SemaphoreNotSignaled => semaphore(f, &writers(f, "The awaited value is not there.")),
        IntelRule::SemaphoreWaitsForItself => {
            let words =
                semaphore(f, &writers(f, "The CS does not reach the command that would end the wait."));
            Words::new(format!("{}: it waits for itself", words.title), words.why)
        }
        IntelRule::SemaphoreWrongWrite => {
            semaphore(f, &writers(f, "What the dump writes there cannot end the wait."))
        }
        IntelRule::SemaphoreValueIsThere => semaphore(
            f,
            "The wait was about to end, or the engine did not see the change because of a missing signal or a stale cache.",
        ),
        IntelRule::SemaphoreValueMissing => {
            semaphore(f, &writers(f, "Whether the value was written is not known."))
        }
        IntelRule::DisplayEventWait => Words::new(
            format!(
                "{} waits for an event of the display ({})",
                engine(f),
                f.args.text("command").unwrap_or("MI_WAIT_FOR_EVENT")
            ),
            "A vertical blank or scan line does not come because the pipe is off or the event is not enabled.",
        ),
        IntelRule::StallWaitsForWork => Words::new(
            format!("{}: a PIPE_CONTROL (CS stall) waits for the draw or dispatch before it", engine(f)),
            "It stalls the CS until all earlier work is done, so the draw or dispatch before it is what hangs.",
        ),
        IntelRule::StallWithUnitsIdle => flush(
            f,
            " (CS stall)",
            "INSTDONE says that the draws and dispatches before it are done: the flush itself does not end, or a unit that \
             INSTDONE does not show holds it up.",
        ),
        IntelRule::StallWithoutWork => flush(
            f,
            " (CS stall)",
            "It stalls the CS until all earlier work is done; there is no draw or dispatch before it in this walk.",
        ),
        IntelRule::FlushAtStop => {
            flush(f, "", "It flushes or invalidates caches; what comes before it may be what hangs.")
        }
        IntelRule::EuCodeZero => Words::new(
            format!("the code of {} is zero", shader(&f.args)),
            "Opcode 0 is illegal: the code was never written, was cleared, or the pointer is wrong.",
        ),
        IntelRule::EuCodeIllegal => Words::new(
            format!("{} has no end of thread before an illegal opcode", shader(&f.args)),
            format!("The first {} are code; no send with EOT is among them.", bytes(&f.args)),
        ),
        IntelRule::EuCodeWithoutEnd => Words::new(
            format!("the buffer of {} ends before the end of its thread", shader(&f.args)),
            format!(
                "There are {} of code up to the end of the buffer, without a send with EOT.",
                bytes(&f.args)
            ),
        ),
        IntelRule::EuCodeMissesWait => {
            let registers = f.args.text("registers").unwrap_or("a register");
            let wait = f.args.text("wait").unwrap_or("a wait");
            eu_code(f, &format!("uses {registers} without {wait}"))
        }
        IntelRule::EuCodeBreaksRule => {
            let is = eu_check_rule(f).map_or("", |rule| rule.info().is);
            eu_code(f, &format!("is wrong: {is}"))
        }
        IntelRule::EuCodeUnreadable => Words::new(
            format!("the kernel could not read the code of {}", shader(&f.args)),
            format!(
                "Its buffer failed with error {}: the memory may be gone.",
                f.args.text("error").unwrap_or("?")
            ),
        ),
        IntelRule::SurfacePastBuffer => {
            let buffer = f.args.record("buffer").map(at_base).unwrap_or_default();
            Words::new(
                format!(
                    "{} goes {:#x} bytes past the end of {buffer}",
                    memory_use(&f.args),
                    number(f, "past")
                ),
                "What it reads or writes there is of another buffer, or is not mapped.",
            )
        }
        IntelRule::SurfaceNotBound => Words::new(
            format!(
                "{} is in none of the {} buffers that the kernel lists as in use",
                memory_use(&f.args),
                number(f, "buffers")
            ),
            "Its buffer was freed, or the submit did not name it. The dump does not say whether the work used it.",
        ),
        IntelRule::PageFaultInBuffer => {
            let near = NearBuffer::of(f);
            page_fault(f, &format!("{:#x} bytes into {}, which the dump holds", near.offset, near.buffer))
        }
        IntelRule::PageFaultOverrun => {
            let near = NearBuffer::of(f);
            let place = match near.distance {
                0 => format!("at the end of {}", near.buffer),
                distance => format!("{distance:#x} bytes past the end of {}", near.buffer),
            };
            page_fault(f, &format!("{place}, so an access went past a buffer's end"))
        }
        IntelRule::PageFaultUnderrun => {
            let near = NearBuffer::of(f);
            page_fault(f, &format!("{:#x} bytes before {}", near.distance, near.buffer))
        }
        IntelRule::PageFaultBeyondCapture => {
            let near = NearBuffer::of(f);
            let place = format!("{:#x} bytes past the captured part of {}", near.distance, near.buffer);
            page_fault(f, &format!("{place}, whose end was not captured"))
        }
        IntelRule::PageFaultNull => page_fault(f, "next to 0: a pointer that was never set"),
        IntelRule::PageFaultOutside => page_fault(f, "in none of the buffers the dump holds"),
        IntelRule::PageFaultWithoutAddress => page_fault(f, ""),
        IntelRule::HeaderNotCommand => Words::new(
            format!("the CS of {} fetched {:#010x}, not a valid command", engine(f), number(f, "header")),
            "The CS halts at a header it does not know. The batch is broken, or the engine ran past its end.",
        ),
        IntelRule::FillInStream | IntelRule::DwordsNotCommands => dwords_not_commands(f),
        IntelRule::ZerosInStream => Words::new(
            format!(
                "{} is executing {} MI_NOOPs: the batch is zeros from here",
                engine(f),
                number(f, "dwords")
            ),
            "Its memory was never written or was cleared, or MI_BATCH_BUFFER_END is missing.",
        ),
        IntelRule::ContextNeverSaved => Words::new(
            format!("the context of {} was never saved, or its page was cleared", engine(f)),
            damage(f),
        ),
        IntelRule::ContextCorrupted => context_corrupted(f),
        IntelRule::DeviceErrorRegister => error_register(
            f,
            "The hardware recorded an error; the bits are those of the register of this name.",
        ),
        IntelRule::MemoryInterfaceError => {
            error_register(f, "The memory interface recorded an error: see the bits of ERROR_GEN6.")
        }
        IntelRule::EngineErrorRegister => {
            error_register(f, "The instruction parser or the engine raised an error.")
        }
        IntelRule::AllUnitsDone => Words::new(
            format!("all units of {} are idle", engine(f)),
            "Only the command streamer (CS) can be blocked; it waits for a semaphore or an event, or it is stuck.",
        ),
        IntelRule::UnknownUnitsNotDone => Words::new(
            format!(
                "{}: the units that are not done are not known ({})",
                engine(f),
                list(f.args.list("unknown_registers"), UNITS)
            ),
            "Some bits of registers whose bits are not known are not set; the units of all others are done.",
        ),
        IntelRule::OnlyStreamerNotDone => units(
            f,
            "Only the command streamer is not done: it waits for a semaphore, a flush or an event, or is stuck.",
        ),
        IntelRule::ShaderThreadsRun => unfinished(
            f,
            "shader threads do not end",
            "Shader threads are running. One may be in an endless loop, wait for a message without an answer, or be at a barrier that not all reach.",
        ),
        IntelRule::EuThreadsNeedAttention => eu_threads(f),
        IntelRule::SamplerNotDone => unfinished(
            f,
            "a sampler does not finish",
            "A sampler has work open: its surface or memory does not answer.",
        ),
        IntelRule::VertexFetchNotDone => unfinished(
            f,
            "vertex fetch does not finish",
            "Vertex fetch has work open: it waits for vertices, or for the stages downstream of it.",
        ),
        IntelRule::GeometryNotDone => unfinished(
            f,
            "the geometry pipeline does not drain",
            "The geometry pipeline is not empty: a stage in it is stuck.",
        ),
        IntelRule::MemoryArbiterNotDone => unfinished(
            f,
            "requests to memory do not complete",
            "The memory arbiter has requests open: memory, or a translation, does not answer.",
        ),
        IntelRule::UnitsNotDone => units(f, ""),
        IntelRule::WorkBeforeStop => work_before_stop(f),
        IntelRule::StateBeforeStop => {
            Words::new(format!("{}: no draw, dispatch or blit before the stop", engine(f)), "")
        }
        IntelRule::KernelHangCode => kernel_hang_code(f),
        IntelRule::KernelReason => {
            Words::new(format!("the kernel's reason: {}", f.args.text("reason").unwrap_or_default()), "")
        }
        IntelRule::EarlierResets => {
            Words::new(format!("{} before this one", count(number(f, "resets"), "reset", "resets")), "")
        }
        IntelRule::QueueTimedOut => queue_timed_out(f),
        IntelRule::RequestsPending => requests_pending(f),
        IntelRule::EngineRunsProcess => engine_runs_process(f),
        IntelRule::ContextOddValues => {
            Words::new(format!("values in the context of {} that no driver sets", engine(f)), "")
        }
        IntelRule::RingPartMissing => Words::new(
            format!("the ring of {} from {:#x} on", engine(f), number(f, "address")),
            acthd_is_near(f),
        ),
        IntelRule::BatchMissing => Words::new(
            format!("the batch at {:#x} that {} goes to", number(f, "address"), engine(f)),
            acthd_is_near(f),
        ),
        IntelRule::VmBuffersMissing => vm_buffers_missing(f),
        IntelRule::EnginesMissing => Words::new("engines", ""),
        IntelRule::IntelGenerationUnknown => {
            Words::new("which GPU it is: commands and registers are not read", "")
        }
        IntelRule::MemoryContentsCut => memory_contents_cut(f),
        IntelRule::RingAndBatchMissing => Words::new(
            super::not_captured(&f.args, &format!("ring and batch of {}", engine(f)), "them", ""),
            "",
        ),
        IntelRule::ContextMissing => {
            Words::new(super::not_captured(&f.args, &format!("the context of {}", engine(f)), "it", ""), "")
        }
        IntelRule::NoPageFaultRecorded => Words::new("a page fault: the fault registers hold none", ""),
        IntelRule::PageFaultRegistersMissing => Words::new(
            super::not_captured(
                &f.args,
                "page faults",
                "them",
                "no fault register of the dump says whether there was one",
            ),
            "",
        ),
    }
}

/// The engine that a finding is about.
fn engine(f: &Finding) -> &str {
    match &f.subject {
        Subject::Engine(name) => name,
        _ => "the GPU",
    }
}

fn number(f: &Finding, name: &str) -> u64 {
    f.args.number(name).unwrap_or(0)
}

/// The first names of a list, and how many more there are.
fn list(names: &[Arg], most: usize) -> String {
    let shown = names.iter().take(most).map(super::value).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(most).filter(|&n| n > 0) {
        Some(more) => format!("{shown} and {more} more"),
        None => shown,
    }
}

/// `1 draw`, `3 draws`
fn count(number: u64, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// `batch 0x100100000+0x18`
fn in_buffer(buffer: &Args) -> String {
    let offset = buffer.number("offset").unwrap_or(0);
    format!("{}+{offset:#x}", at_base(buffer))
}

/// `batch 0x100100000`
fn at_base(buffer: &Args) -> String {
    let base = buffer.number("base").unwrap_or(0);
    let name = buffer.text("block").unwrap_or("memory");
    // xe calls a buffer by its address.
    let name = if u64::from_str_radix(name, 16) == Ok(base) { "buffer" } else { name };
    format!("{name} {base:#x}")
}

// ---- Where it stopped ----

/// Where an engine stopped.
fn stopped(f: &Finding) -> Words {
    let (title, why) = match (f.args.number("address"), f.args.number("read_to"), f.args.number("acthd")) {
        (Some(address), ..) => (at_command(f, address), agreement(f)),
        (None, Some(read_to), _) => (
            format!("{} › ring: all of it was read, up to {read_to:#x}", engine(f)),
            "HEAD is at TAIL, so the CS has nothing left to read; work that it started is not done"
                .to_owned(),
        ),
        (None, None, Some(acthd)) => match f.args.record("buffer") {
            Some(buffer) if f.rule == Rule::EngineAtInvalidCommand => (
                format!("{} › {}: not at a valid command", engine(f), in_buffer(buffer)),
                "the engine executes this buffer, and what is there is not a command".to_owned(),
            ),
            Some(buffer) => (
                format!(
                    "{} › {}: in a buffer that no captured MI_BATCH_BUFFER_START points to",
                    engine(f),
                    in_buffer(buffer)
                ),
                "neither the ring nor the batch jumps there, as far as the dump holds them".to_owned(),
            ),
            None => (
                format!("{} › {acthd:#x}: memory that the dump does not hold", engine(f)),
                "the batch that was executed was not captured, or the engine ran out of its buffers"
                    .to_owned(),
            ),
        },
        (None, None, None) => (
            format!("{}: where it stopped is not in the dump", engine(f)),
            match f.args.number("head") {
                Some(head) => format!("ACTHD was not captured; only HEAD of the ring is known, {head:#x}"),
                None => "neither ACTHD nor HEAD of the ring was captured".to_owned(),
            },
        ),
    };
    Words::new(title, why)
}

/// `rcs0 › batch 0x100100000+0x18: MI_SEMAPHORE_WAIT, 1 draw or dispatch into the walk`
fn at_command(f: &Finding, address: u64) -> String {
    let command = match (f.args.number("noops"), f.args.text("command")) {
        (Some(noops), _) => format!("{noops} MI_NOOP in a row"),
        (None, Some(command)) => command.to_owned(),
        (None, None) => format!("{:#010x}", number(f, "header")),
    };
    let place = match (f.args.record("buffer"), f.args.number("level")) {
        // As the packets there name it.
        (Some(buffer), Some(level)) => {
            let (base, offset) = (buffer.number("base").unwrap_or(0), buffer.number("offset").unwrap_or(0));
            format!("batch{level} {base:#x}+{offset:#x}")
        }
        (Some(buffer), None) => in_buffer(buffer),
        (None, _) => format!("{address:#x}"),
    };
    let draws = f.args.number("draws").map(|n| {
        let draws = count(n, "draw or dispatch", "draws or dispatches");
        format!(", {draws} into the walk")
    });
    format!("{} › {place}: {command}{}", engine(f), draws.unwrap_or_default())
}

/// How IPEHR and ACTHD agree.
fn agreement(f: &Finding) -> String {
    let Some(ipehr) = f.args.number("ipehr") else { return "IPEHR is not in the dump".to_owned() };
    let next = f.args.number("next_after");
    let why = match (f.args.number("bytes_ahead"), f.args.number("between")) {
        (Some(0), _) => "IPEHR matches the command at ACTHD".to_owned(),
        (Some(bytes), Some(between)) => format!(
            "IPEHR may name this command, {bytes} bytes before ACTHD with {} between them",
            count(between, "command", "commands")
        ),
        (Some(bytes), None) => {
            format!("IPEHR matches the command {bytes} bytes before ACTHD (CS prefetch)")
        }
        (None, _) if next.is_some() => {
            format!("no command at or before ACTHD has the header that IPEHR holds ({ipehr:#010x})")
        }
        (None, _) => format!(
            "nothing near ACTHD has the header that IPEHR holds ({ipehr:#010x}): memory was changed after it was read, or the \
             registers were read at another time"
        ),
    };
    match next {
        Some(bytes) => format!(
            "{why}; the next command with that header is {bytes} bytes past ACTHD, at {:#x}",
            number(f, "next_address")
        ),
        None => why,
    }
}

fn other_engines_not_done(f: &Finding) -> Words {
    Words::new(
        format!("{} not done either", list(f.args.list("engines"), ENGINES)),
        "HEAD is not at TAIL: they may wait for the engine that hangs, or it for them.",
    )
}

// ---- What it waits for ----

fn semaphore(f: &Finding, why: &str) -> Words {
    let held = match f.args.number("value") {
        Some(value) if f.rule == Rule::SemaphoreValueIsThere => {
            format!("memory holds {value:#x} by now")
        }
        Some(value) => format!("memory holds {value:#x}"),
        None => "the dump does not hold it".to_owned(),
    };
    let waits = if f.args.flag("polls") { "polls" } else { "waits for a signal at" };
    let space = if f.args.flag("ggtt") { "GGTT " } else { "" };
    let relation = f.args.text("relation").unwrap_or("?");
    let (address, reference) = (number(f, "address"), number(f, "reference"));
    let title =
        format!("{} {waits} {space}{address:#x} until it is {relation} {reference:#x}; {held}", engine(f));
    Words::new(title, why)
}

/// What is known of the value, then who could still write it.
fn writers(f: &Finding, known: &str) -> String {
    let writer = match f.args.record("writer") {
        Some(writer) => {
            let command = writer.text("command").unwrap_or("a command");
            let at = writer.number("address").unwrap_or(0);
            let what = what_is_written(writer);
            match writer.text("order") {
                Some("later") => format!("{command} at {at:#x}, after the wait, writes {what}."),
                Some("other-engine") => {
                    let engine = writer.text("engine").unwrap_or("another engine");
                    format!("{command} at {at:#x} of {engine} writes {what}.")
                }
                Some(_) | None => format!("{command} at {at:#x}, before the wait, writes {what}."),
            }
        }
        None if f.args.flag("no_writer") => {
            "No command in the dump writes this address, so only a shader, the CPU, another process or another queue could."
                .to_owned()
        }
        None => String::new(),
    };
    format!("{known} {writer}").trim_end().to_owned()
}

/// A batch that jumps back to itself.
fn batch_loops(f: &Finding) -> Words {
    let place = f.args.record("buffer").map(|buffer| format!(" ({})", in_buffer(buffer))).unwrap_or_default();
    let title = format!(
        "{}: endless loop, MI_BATCH_BUFFER_START at {:#x} jumps back to {:#x}{place}",
        engine(f),
        number(f, "from"),
        number(f, "target")
    );
    let why = match f.args.flag("conditional") {
        true => "A conditional end or a predicate in the loop may end it.",
        false => "Nothing in the loop ends it, and the engine is in it.",
    };
    Words::new(title, why)
}

fn flush(f: &Finding, stall: &str, why: &str) -> Words {
    let flags = number(f, "flags");
    Words::new(format!("{} is at a PIPE_CONTROL with the flags {flags:#010x}{stall}", engine(f)), why)
}

// ---- Faults and errors ----

/// The buffer that a fault is next to, and how far it is.
struct NearBuffer {
    buffer: String,
    distance: u64,
    offset: u64,
}

impl NearBuffer {
    fn of(f: &Finding) -> NearBuffer {
        let near = f.args.record("near");
        let buffer = near.map(|near| match near.text("engine") {
            Some(engine) => format!("{} of {engine}", at_base(near)),
            None => at_base(near),
        });
        let number = |name: &str| near.and_then(|near| near.number(name)).unwrap_or(0);
        let size = near.and_then(|near| near.number("size")).filter(|&size| size > 0);
        let size = size.map(|size| format!(" ({size:#x} bytes)")).unwrap_or_default();
        NearBuffer {
            buffer: format!("{}{size}", buffer.unwrap_or_default()),
            distance: number("distance"),
            offset: number("offset"),
        }
    }
}

fn page_fault(f: &Finding, near: &str) -> Words {
    let of = match &f.subject {
        Subject::Engine(name) => format!(" of {name}"),
        _ => String::new(),
    };
    let space = match f.args.text("space") {
        Some("GGTT") => "the global table (GGTT)",
        _ => "the context's address space (PPGTT)",
    };
    let at = f.args.number("address").map(|address| format!(" at {address:#x} in {space}"));
    let named = |value: &str, name: &str, what: &str| {
        let value = f.args.number(value)?;
        Some(match f.args.text(name) {
            Some(name) => format!("{what} {value} ({name})"),
            None => format!("{what} {value}"),
        })
    };
    let numbers = [
        named("fault_type", "fault_type_name", "fault type"),
        f.args.number("source").map(|source| format!("source {source:#x}")),
        named("engine_id", "engine_id_name", "engine id"),
    ];
    let numbers: Vec<String> = numbers.into_iter().flatten().collect();
    let why = [
        Some(near.to_owned()).filter(|near| !near.is_empty()).map(|near| format!("the address is {near}")),
        f.args.record("surface").map(|used| match used.number("distance") {
            Some(distance) => format!("{} ends {distance:#x} bytes before it", memory_use(used)),
            None => format!("{} holds it", memory_use(used)),
        }),
        f.args.record("writer").map(|writer| {
            let command = writer.text("command").unwrap_or("a command");
            format!("{command} at {:#x} writes to this page", writer.number("address").unwrap_or(0))
        }),
        Some(numbers.join(", ")),
    ];
    Words::because(format!("page fault{of}{}", at.unwrap_or_default()), why.into_iter().flatten())
}

fn error_register(f: &Finding, why: &str) -> Words {
    let of = match &f.subject {
        Subject::Engine(name) => format!("{name}: "),
        _ => String::new(),
    };
    let register = f.args.text("register").unwrap_or_default();
    Words::new(format!("{of}{register} = {:#x}", number(f, "value")), why)
}

// ---- Broken streams and contexts ----

fn dwords_not_commands(f: &Finding) -> Words {
    let fill = f.args.text("fill").map(|name| format!(": {}", fill(name)));
    Words::new(
        format!(
            "{}: dwords at {:#x} are not valid commands{}",
            engine(f),
            number(f, "address"),
            fill.unwrap_or_default()
        ),
        "Commands were overwritten, or a length before them is wrong.",
    )
}

/// What memory is filled with, by the names that the rule has for it.
fn fill(name: &str) -> &str {
    match name {
        "ones" => "all ones, as memory or a device reads that is gone",
        "freed" => "the kernel's poison for freed memory",
        "not-written" => "the kernel's poison for memory not written yet",
        "deadbeef" => "0xdeadbeef, written on purpose",
        "uninitialized" => "0xcc, the mark of uninitialized memory",
        "repeated" => "one value over and over",
        name => name,
    }
}

fn context_corrupted(f: &Finding) -> Words {
    let places = count(number(f, "dwords"), "dword differs", "dwords differ");
    let title = format!("the context of {} is corrupted from dword {:#x} on", engine(f), number(f, "dword"));
    Words::new(format!("{title} ({places})"), damage(f))
}

/// What is wrong with the ranges of a context.
fn damage(f: &Finding) -> String {
    let ranges = f.args.list("damage").iter().filter_map(|range| match range {
        Arg::Record(range) => Some(damaged(range)),
        _ => None,
    });
    let ranges = ranges.collect::<Vec<_>>().join("; ");
    if ranges.is_empty() {
        return "The registers an engine saves are always at the same places; these are not.".to_owned();
    }
    ranges
}

fn damaged(range: &Args) -> String {
    let number = |name: &str| range.number(name).unwrap_or(0);
    let text = |name: &str| range.text(name).unwrap_or_default();
    let platforms = || range.list("platforms").iter().map(super::value).collect::<Vec<_>>().join(", ");
    let what = match text("damage") {
        "blank" => "all zeros".to_owned(),
        "fill" => match range.text("fill") {
            Some(name) => format!("filled with {:#010x}, {name}", number("value")),
            None => format!("filled with {:#010x}", number("value")),
        },
        "text" => format!("text, \"{}\"", text("text")),
        "copy-of-page" => format!("a copy of page {}", number("other_page")),
        "copy-of-memory" => format!("a copy of {} at {:#x}", text("block"), number("address")),
        "shifted" => match range.number("towards_start") {
            Some(dwords) => format!("the layout, moved {dwords} dwords towards the start"),
            None => format!("the layout, moved {} dwords towards the end", number("towards_end")),
        },
        "other-context" => format!("the context of {} on {}", text("engine"), platforms()),
        "other-base" => format!("registers of {}", text("engine")),
        "overwritten" => format!("overwritten ({} dwords differ)", number("dwords")),
        other => other.to_owned(),
    };
    format!("page {}, dwords {:#x} to {:#x}: {what}", number("page"), number("first"), number("last"))
}

// ---- Units ----

fn units(f: &Finding, why: &str) -> Words {
    Words::new(format!("{}: {} not done", engine(f), list(f.args.list("units"), UNITS)), why)
}

/// Units that are not done, as what that means.
fn unfinished(f: &Finding, what: &str, why: &str) -> Words {
    Words::new(format!("{}: {what} ({} not done)", engine(f), list(f.args.list("units"), UNITS)), why)
}

/// An INSTDONE register with the units that are not done.
pub(super) fn instdone(name: &str, value: u64, fields: &[FieldFact]) -> String {
    let units: Vec<Arg> = fields.iter().map(|field| Arg::Name(field.name.clone())).collect();
    format!("{name} = {value:#010x}: {}", list(&units, UNITS))
}

// ---- The way to the stop ----

fn work_before_stop(f: &Finding) -> Words {
    let work = count(number(f, "work"), "draw, dispatch or blit", "draws, dispatches or blits");
    Words::new(format!("{}: {work} on the way to the stop", engine(f)), shaders(f))
}

/// The shaders of the work at the stop, as a sentence; empty where none is known.
fn shaders(f: &Finding) -> String {
    let shaders = f.args.list("shaders").iter().filter_map(|shader| match shader {
        Arg::Record(args) => Some(self::shader(args)),
        _ => None,
    });
    let shaders: Vec<String> = shaders.take(NAMED * 2).collect();
    if shaders.is_empty() { String::new() } else { format!("The last of it runs {}.", shaders.join(", ")) }
}

/// `the SIMD16 fragment shader at 0x840`
fn shader(args: &Args) -> String {
    let at = args.number("address").map(|address| format!(" at {address:#x}")).unwrap_or_default();
    format!("the {}{at}", shader_name(args))
}

/// `SIMD16 fragment shader`
fn shader_name(args: &Args) -> String {
    let simd = args.number("simd").map(|simd| format!("SIMD{simd} ")).unwrap_or_default();
    format!("{simd}{}", args.text("stage").unwrap_or("shader"))
}

fn eu_check_rule(f: &Finding) -> Option<Check> {
    f.args.text("check").and_then(Check::named)
}

/// What is wrong at an instruction of a shader, and which made it so.
fn eu_code(f: &Finding, wrong: &str) -> Words {
    let args = &f.args;
    let text = |name| args.text(name).unwrap_or("the end of the code");
    let mut why = Vec::new();
    if let Some(first) = args.number("first") {
        why.push(format!("because of {} at +{first:#x}", text("first_instruction")));
    }
    why.push("whether a thread was there is not known".to_owned());
    match (args.text("wait"), eu_check_rule(f).map_or("", |rule| rule.info().cure)) {
        (Some(wait), _) => why.push(format!("fix: add {wait} to its options, or a sync with it before")),
        (None, "") => {}
        (None, cure) => why.push(format!("fix: {cure}")),
    }
    if let Some(more) = args.number("more") {
        why.push(format!("{more} more like it in this code: unwedge eu check shows all"));
    }
    let at = format!("{}+{:#x}", shader(args), args.number("offset").unwrap_or(0));
    let check = args.text("check").unwrap_or_default();
    Words::new(format!("{} in {at} {wrong} (rule {check})", text("instruction")), why.join("; "))
}

/// An instruction of a shader, marked where it is what a finding is about; `None` for those of other vendors.
pub(super) fn instruction(place: &Args, text: Option<&str>) -> Option<String> {
    let mark = if place.get("marked")? == &Arg::Flag(true) { '>' } else { ' ' };
    let offset = place.number("offset").unwrap_or(0);
    Some(format!("{mark} {:>7}  {}", format!("{offset:#x}"), text.unwrap_or("not an instruction")))
}

fn bytes(args: &Args) -> String {
    count(args.number("bytes").unwrap_or(0), "byte", "bytes")
}

/// `surface 1 of the fragment shader at 0x500000 (16x8 R8_UNORM)`
fn memory_use(args: &Args) -> String {
    let shape = args.text("shape").map(|shape| format!(" ({shape})")).unwrap_or_default();
    let at = args.number("address").unwrap_or(0);
    format!("{} at {at:#x}{shape}", args.text("use").unwrap_or("a buffer"))
}

/// A command with its dwords.
pub(super) fn command(name: &str, iova: u64, words: &[u32]) -> String {
    format!("{name} at {iova:#x}: {}", hex(words))
}

/// Records that have words of their own; `None` for others.
pub(super) fn record(args: &Args) -> Option<String> {
    let number = |name: &str| args.number(name);
    if let Some(work) = args.text("last_work") {
        return Some(format!("the last work before it: {work} at {:#x}", number("address")?));
    }
    if let Some(command) = args.text("kernel_of") {
        let place = match (number("address"), args.record("buffer")) {
            (Some(address), Some(buffer)) => format!(" = {address:#x}, in {}", in_buffer(buffer)),
            (Some(address), None) => format!(" = {address:#x}, not in the dump"),
            (None, _) => {
                let base = args.text("base").unwrap_or("base address");
                format!(", and no {} is set in this walk", base.to_lowercase())
            }
        };
        let pointer = format!("{command}, {}: {:#x}{place}", args.text("field")?, number("offset")?);
        let code = match number("bytes_to_end") {
            Some(left) => {
                let left = count(left, "byte", "bytes");
                format!(", not disassembled on this generation, {left} to the end of its buffer")
            }
            None => number("bytes").map(|_| format!(", {} of code", bytes(args))).unwrap_or_default(),
        };
        return Some(format!("{}: {pointer}{code}", shader_name(args)));
    }
    if args.text("use").is_some() {
        let bytes = number("bytes").map(|_| format!(", at least {}", bytes(args))).unwrap_or_default();
        let place = match args.record("buffer") {
            Some(buffer) => format!("in {}", in_buffer(buffer)),
            None => "not in the dump".to_owned(),
        };
        return Some(format!("{}{bytes}, {place}", memory_use(args)));
    }
    if let (Some(found), Some(expected)) = (number("found"), number("expected")) {
        return Some(format!("dword {:#x}: {found:#010x}, expected {expected:#010x}", number("dword")?));
    }
    if args.text("odd").is_some() {
        let (register, reason) = (args.text("register")?, args.text("reason")?);
        return Some(format!("{register} = {:#010x}: {reason}", number("value")?));
    }
    let bases = args.list("base_addresses").iter().filter_map(|base| match base {
        Arg::Record(base) => Some(format!("{} {:#x}", base.text("base")?, base.number("address")?)),
        _ => None,
    });
    let bases: Vec<String> = bases.collect();
    (!bases.is_empty()).then(|| format!("base addresses: {}", bases.join(", ")))
}

// ---- What the kernel reports ----

fn kernel_hang_code(f: &Finding) -> Words {
    let reason = f.args.text("reason").map(|reason| format!(": {reason}")).unwrap_or_default();
    let generation = f.args.number("generation").map(|n| format!("{n}:")).unwrap_or_default();
    let (engines, code) = (number(f, "engines"), number(f, "code"));
    Words::new(
        format!("kernel ecode {generation}{engines:x}:{code:08x}{reason}"),
        "The same ecode usually means the same hang.",
    )
}

fn eu_threads(f: &Finding) -> Words {
    let threads = f.args.list("threads").iter().take(NAMED).filter_map(|thread| {
        let Arg::Record(thread) = thread else { return None };
        let number = |name| thread.number(name).unwrap_or(0);
        Some(format!("subslice {} EU {} thread {}", number("subslice"), number("eu"), number("thread")))
    });
    let threads: Vec<String> = threads.collect();
    let waiting = number(f, "count");
    let more = if waiting > threads.len() as u64 { ", …" } else { "" };
    Words::new(
        format!(
            "{} attention: {}{more}",
            count(waiting, "EU thread needs", "EU threads need"),
            threads.join(", ")
        ),
        "An exception (a page fault, a breakpoint, an illegal instruction) stopped them in the system routine.",
    )
}

fn engine_runs_process(f: &Finding) -> Words {
    let process = f.args.text("process").unwrap_or_default();
    let pid = f.args.number("pid").map(|pid| format!(" [{pid}]")).unwrap_or_default();
    let guilty = f.args.number("guilty").filter(|&n| n > 0);
    let guilty =
        guilty.map(|n| format!("; context blamed for {}", count(n, "earlier hang", "earlier hangs")));
    Words::new(format!("{} runs {process}{pid}{}", engine(f), guilty.unwrap_or_default()), "")
}

/// `rcs0: request 1a:4 hangs, 1st of 2 pending`
fn requests_pending(f: &Finding) -> Words {
    let context = f.args.number("context").map(|context| format!("{context:x}:")).unwrap_or_default();
    let nth = match number(f, "open") {
        1 => "the only one pending".to_owned(),
        open => format!("1st of {open} pending"),
    };
    let title = format!("{} is in request {context}{}, {nth}", engine(f), number(f, "seqno"));
    Words::new(title, "An engine executes what was submitted to it in order.")
}

fn queue_timed_out(f: &Finding) -> Words {
    let queue = f.args.text("queue").map_or_else(|| "a queue".to_owned(), |name| format!("queue {name}"));
    let id = f.args.number("guc_id").map(|id| format!(" (GuC id {id})")).unwrap_or_default();
    if let (Some(job), Some(nth)) = (f.args.number("hung_job"), f.args.number("nth")) {
        let place = match number(f, "open") {
            1 => "the only one not done".to_owned(),
            open => format!("{} of {open} not done", ordinal(nth)),
        };
        return Words::new(format!("{queue}{id} timed out in job {job}, {place}"), "");
    }
    let jobs = f.args.list("jobs");
    let open =
        if jobs.is_empty() { String::new() } else { format!(", jobs not done: {}", list(jobs, NAMED)) };
    Words::new(format!("{queue}{id} timed out{open}"), "")
}

// ---- What is not in the dump ----

fn acthd_is_near(f: &Finding) -> &'static str {
    if f.args.flag("acthd_is_near") { "ACTHD is near it." } else { "" }
}

/// A block of memory whose end was not captured.
fn memory_contents_cut(f: &Finding) -> Words {
    let block = at_base(&f.args);
    let captured = number(f, "captured");
    let why = match f.args.flag("cut") {
        true => "the dump ends there",
        false => "its text is damaged there",
    };
    let acthd = if f.args.flag("acthd") { "ACTHD is in the part that was not captured." } else { "" };
    Words::new(format!("{block} from dword {captured} on ({why})"), acthd)
}

fn vm_buffers_missing(f: &Finding) -> Words {
    let buffers = f.args.list("buffers");
    let one = |buffer: &Arg| match buffer {
        Arg::Record(buffer) => {
            Some(Arg::Text(format!("{:#x} (error {})", buffer.number("address")?, buffer.text("error")?)))
        }
        _ => None,
    };
    let named: Vec<Arg> = buffers.iter().filter_map(one).collect();
    let count = count(buffers.len() as u64, "buffer", "buffers");
    Words::new(format!("{count} of the address space: {}", list(&named, NAMED)), "")
}

// ---- Advice ----

/// What to do and what it will tell.
pub(super) fn advice(id: AdviceId) -> Option<(&'static str, &'static str)> {
    Some(match id {
        AdviceId::DecodeEngineStreams => (
            "unwedge decode FILE",
            "lists the ring and the batch around the stop, with the state that was set",
        ),
        AdviceId::IntelDebugCaptureAll => (
            "INTEL_DEBUG=capture-all",
            "has Mesa put all buffers of the application into the next error state, not only the batch",
        ),
        AdviceId::IntelDebugSync => (
            "INTEL_DEBUG=sync",
            "waits after each submission: shows whether the work itself hangs, or what it waits for",
        ),
        AdviceId::IntelDebugBatches => (
            "INTEL_DEBUG=bat,pc",
            "prints batches and the reason of each PIPE_CONTROL, to find who uses the address",
        ),
        AdviceId::IntelDebugShaders => (
            "INTEL_DEBUG=cs,fs,vs",
            "prints the shaders: look for loops without an end in those the state points at",
        ),
        AdviceId::LibvaTrace => (
            "LIBVA_TRACE=trace.log",
            "has libva write down what the player asks the video driver to decode: the stream, and the frame that hangs",
        ),
        AdviceId::I915NextErrorState => (
            "echo 1 | sudo tee /sys/class/drm/card0/error",
            "clears this error so that the next hang is recorded; card0 may be card1",
        ),
        AdviceId::XeWedgedMode => (
            "echo 2 | sudo tee /sys/kernel/debug/dri/0/wedged_mode",
            "resets nothing after the next hang, so that registers can be read; dri/0 may be another number",
        ),
        _ => return None,
    })
}
