//! The words of rules over dumps of amdgpu, reports of RADV and text of umr.

use super::{Words, what_is_written};
use crate::plural::{counted, ordinal};
use unwedge_check::amdgcn::Rule as Check;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::opcode::Opcode;
use unwedge_postmortem::{AdviceId, AmdRule, Arg, Args, Finding, Report, Subject};

/// The words of a rule.
pub(super) fn words(report: &Report, f: &Finding, rule: AmdRule) -> Words {
    match rule {
        AmdRule::JobTimedOut => job_timed_out(report, f),
        AmdRule::QueueHungAfterTracePoint => queue_hung_after_trace_point(f),
        AmdRule::DwordsNotPackets => dwords_not_packets(f),
        AmdRule::IbLoops => ib_loops(f),
        AmdRule::GpuvmFault | AmdRule::GpuvmPageNotMapped | AmdRule::GpuvmAccessNotPermitted => {
            gpuvm_fault(f, rule, "")
        }
        AmdRule::GpuvmKernelFault => gpuvm_fault(
            f,
            rule,
            "VMID 0 is the kernel's address space: the kernel driver or firmware made this access, not the application",
        ),
        AmdRule::GpuvmUseAfterFree => {
            gpuvm_fault(f, rule, "use after free: the page was in a buffer that has been destroyed")
        }
        AmdRule::GpuvmUnmappedRange => {
            gpuvm_fault(f, rule, "the page is in a sparse range that was unmapped")
        }
        AmdRule::GpuvmNoBuffer => gpuvm_fault(f, rule, "no buffer was ever at this address"),
        AmdRule::PacketWaitsForOtherQueue => packet_waits_for_other_queue(f),
        AmdRule::PacketWaitsForLaterWrite => packet_waits_for_later_write(f),
        AmdRule::PacketWaitsForEarlierWrite => packet_waits_for_earlier_write(f),
        AmdRule::PacketWaitsForWrongWrite => packet_waits_for_wrong_write(f),
        AmdRule::PacketAwaitedValueIsThere => waits(f, vec![value(f)]),
        AmdRule::PacketWaitsForRegister => packet_waits_for_register(f),
        AmdRule::MeWaitsForShaders => stall("the ME waits for shaders to end"),
        AmdRule::FenceWaitsForPipeline => stall("a fence waits for the pipeline to drain"),
        AmdRule::MeWaitsForComputeShaders => stall("the ME waits for compute shaders to end"),
        AmdRule::MeWaitsForPixelShaders => stall("the ME waits for pixel shaders to end"),
        AmdRule::CacheFlushWaitsForDraws => stall("a cache flush waits for draws to end"),
        AmdRule::CacheFlushWaitsForCaches => stall("a cache flush waits for caches to be clean"),
        AmdRule::RegisterContextsInUse => {
            stall("all register contexts are in use by draws that have not ended")
        }
        AmdRule::MeWaitsForMemoryRead => stall("the ME waits for memory it reads"),
        AmdRule::MeWaitsForRegisterRead => stall("the ME waits for a register it reads"),
        AmdRule::MeWaitsForMemoryWrite => stall("the ME waits for a write to arrive in memory"),
        AmdRule::RegisterViolation => stall("a packet touched a register it must not"),
        AmdRule::MeWaitsForConstantEngine => stall("the ME waits for the constant engine"),
        AmdRule::ConstantEngineWaitsForMe => stall("the constant engine waits for the ME"),
        AmdRule::AddressTranslationOpen => stall("an address translation is open"),
        AmdRule::MeWaitsForAtomic => stall("the ME or PFP waits for the result of an atomic operation"),
        AmdRule::FenceWriteNotConfirmed => stall("the write of a fence has not been confirmed by memory"),
        AmdRule::RegisterWritesBlocked => {
            stall("register writes of the command processor wait for the block that takes them")
        }
        AmdRule::MecWaitsForRegister => stall("a compute micro engine waits for a register it reads"),
        AmdRule::CpStallFlags => cp_stall_flags(f),
        AmdRule::CpPolls => stall("the command processor polls until a condition holds"),
        AmdRule::CodeMissesWait => code_misses_wait(f),
        AmdRule::CodeBreaksRule => code_breaks_rule(f),
        AmdRule::WavesWithErrors
        | AmdRule::WavesInLoop
        | AmdRule::WavesInUnlistedCode
        | AmdRule::WavesAtInstruction => waves(report, f),
        AmdRule::ShaderException => shader_exception(f),
        AmdRule::AddressWithoutBuffer => address_without_buffer(f),
        AmdRule::GrbmWorkDoesNotEnd => {
            busy_blocks(f, "draws or dispatches do not end: the command processor waits for them")
        }
        AmdRule::GrbmWorkWhilePolling => busy_blocks(f, "work is open while the command processor polls"),
        AmdRule::GrbmWorkOpen => busy_blocks(f, "draws or dispatches are open"),
        AmdRule::GrbmCpAlone => grbm_cp_alone(),
        AmdRule::GpuNotResponding => Words::new(
            "the GPU does not respond: its status registers read as 0xffffffff",
            "It is powered down or off the bus. The values of its registers say nothing about the blocks.",
        ),
        AmdRule::GrbmIdle => grbm_idle(),
        AmdRule::SdmaBusy => sdma_busy(f),
        AmdRule::NoWaves => no_waves(),
        AmdRule::WorkRunsShaders => work_runs_shaders(f),
        AmdRule::StoppedBetweenTracePoints => stopped_between_trace_points(f),
        AmdRule::PassedEveryTracePoint => passed_every_trace_point(f),
        AmdRule::EngineLastRead => engine_last_read(f),
        AmdRule::EngineRemembers => engine_remembers(f),
        AmdRule::JobsOpen | AmdRule::JobsEnded => jobs(f),
        AmdRule::VramLost => vram_lost(),
        AmdRule::AmdGenerationUnknown => Words::new(
            "the GPU's generation",
            "Registers and packets differ by generation; none can be named without it.",
        ),
        AmdRule::RingNotNamed => ring_not_named(f),
        AmdRule::RingContentsMissing => Words::new(
            super::not_captured(&f.args, "the ring's contents", "them", ""),
            "Its packets are unknown.",
        ),
        AmdRule::AmdRingContentsCut | AmdRule::IbContentsCut => contents_cut(f),
        AmdRule::VideoRingPackets => Words::new(
            "the packets of this ring",
            "They are for a video engine, whose packets this tool does not know.",
        ),
        AmdRule::CalledBuffersMissing => Words::new(
            super::not_captured(&f.args, "the buffers that the ring calls", "them", ""),
            "What the job did is not known.",
        ),
        AmdRule::NoFaultRecorded => {
            Words::new("a page fault: the status register is 0, none was recorded", "")
        }
        AmdRule::FaultsNotReported => {
            Words::new(super::not_captured(&f.args, "page faults", "them", "none is reported"), "")
        }
        AmdRule::GpuRegistersMissing => Words::new(
            super::not_captured(&f.args, "registers", "them", ""),
            "Which blocks are busy is not known.",
        ),
        AmdRule::GpuRegistersAllZero => {
            let count = f.args.number("registers").unwrap_or(0);
            Words::new(
                "registers (they read 0, so none was read)",
                format!("All {count} of them are 0. Which blocks are busy is not known."),
            )
        }
        AmdRule::WavesMissing => {
            Words::new("waves", "What shaders execute is not known; umr reads them while the GPU hangs.")
        }
    }
}

/// What is in a list, by name.
fn names(list: &[Arg]) -> impl Iterator<Item = &str> {
    list.iter().filter_map(|arg| match arg {
        Arg::Name(name) => Some(&**name),
        Arg::Text(text) => Some(&**text),
        _ => None,
    })
}

fn records(list: &[Arg]) -> impl Iterator<Item = &Args> {
    list.iter().filter_map(|arg| match arg {
        Arg::Record(record) => Some(record),
        _ => None,
    })
}

/// `1 wave is`, `3 waves are`
fn waves_are(count: u64) -> String {
    if count == 1 { "1 wave is".to_owned() } else { format!("{count} waves are") }
}

// ---- Where it hung ----

fn job_timed_out(report: &Report, f: &Finding) -> Words {
    let place = report.hang.as_ref().map(|hang| super::hang_place(report, hang)).unwrap_or_default();
    let packet = f.args.text("packet").map(str::to_owned);
    let packet = packet.or_else(|| Some(format!("unknown packet {:#010x}", f.args.number("header")?)));
    let packet = packet.map(|name| match (f.args.text("work"), f.args.number("called")) {
        (Some(work), _) => format!("{name} ({work} {})", f.args.number("number").unwrap_or(0)),
        (None, Some(called)) => {
            let dwords = f.args.number("called_dwords").unwrap_or(0);
            format!("{name} of {} at {called:#x}", counted(dwords, "dword", "dwords"))
        }
        (None, None) => name,
    });
    let after = trace_point(&f.args).map(|point| format!(" after {point}")).unwrap_or_default();
    let packet = match packet {
        Some(packet) => format!(": {packet}"),
        None if f.args.flag("ring_alone") => String::new(),
        None => ": the packet there is not known".to_owned(),
    };
    let drained = f.args.flag("drained") && !f.args.flag("ring_alone");
    let why = match (f.args.flag("no_registers"), f.args.flag("ring_alone"), drained) {
        (true, true, _) => "Neither registers nor the ring were captured, so only its name is known.",
        (true, false, _) => "No register was captured, so only the pointers of the ring are known.",
        (false, _, true) => "All of the ring was fetched, or the pointers are from after the reset.",
        (false, _, false) => "",
    };
    Words::new(format!("{place} timed out{after}{packet}"), why)
}

/// Contents that end before they should, and the dword there that would be the next.
fn contents_cut(f: &Finding) -> Words {
    let contents = match (&f.subject, f.args.number("base")) {
        (_, Some(base)) => format!("the IB at {base:#x}"),
        (Subject::Engine(name), None) => format!("the ring {name}"),
        _ => "the ring".to_owned(),
    };
    let captured = f.args.number("captured").unwrap_or(0);
    let last = f.args.number("dwords").unwrap_or(0).saturating_sub(1);
    let why = match f.args.number("stop") {
        Some(stop) => format!("The command processor is at dword {stop}, which was not captured."),
        None => String::new(),
    };
    Words::new(format!("dwords {captured}…{last} of {contents}"), why)
}

fn ring_not_named(f: &Finding) -> Words {
    let title = super::not_captured(&f.args, "the ring that timed out", "its name", "");
    let why = match f.args.text("absence") {
        None | Some("nothing-recorded") => {
            "Something other than a job made the kernel reset the GPU, or the name is lost."
        }
        Some(_) => "",
    };
    Words::new(title, why)
}

fn queue_hung_after_trace_point(f: &Finding) -> Words {
    let point = trace_point(&f.args).unwrap_or_default();
    let packet = f.args.text("packet").map(|packet| format!(": {packet}")).unwrap_or_default();
    Words::new(format!("a queue of the process hung after {point}{packet}"), "")
}

/// `trace point 2 (Main IB, dwords 0x4 to 0x10)`
fn trace_point(args: &Args) -> Option<String> {
    let (number, place) = (args.number("trace_point")?, args.record("trace_place")?);
    let stream = place.text("stream").unwrap_or_default();
    let dwords = match (place.number("first"), place.number("last")) {
        (Some(first), Some(last)) => format!(", dwords {first:#x} to {last:#x}"),
        _ => String::new(),
    };
    Some(format!("trace point {number} ({stream}{dwords})"))
}

fn dwords_not_packets(f: &Finding) -> Words {
    let dwords = f.args.number("dwords").unwrap_or(0);
    let at = match f.args.number("address") {
        Some(address) => format!("at {address:#x}"),
        None => format!("{:#x} dwords after the oldest of the ring", f.args.number("first").unwrap_or(0)),
    };
    let title = match dwords {
        1 => format!("1 dword {at} is not a valid packet"),
        n => format!("{n} dwords {at} are not valid packets"),
    };
    Words::new(title, "a command processor that reads them stops, or does something else")
}

fn ib_loops(f: &Finding) -> Words {
    let at = f.args.number("from").map(|from| format!(" at {from:#x}")).unwrap_or_default();
    let target = f.args.number("target").unwrap_or(0);
    let why = match f.args.flag("conditional") {
        true => "whether the packet is executed depends on a condition, which may end the loop",
        false => "the chain leads back to a buffer that it has been through, and no packet in it ends it",
    };
    Words::new(format!("endless loop: INDIRECT_BUFFER{at} chains back to {target:#x}"), why)
}

// ---- Page faults ----

/// What a client is, and what its accesses are for.
fn client(name: &str) -> Option<&'static str> {
    Some(match name {
        "TCP" => "a shader's vector memory or image access",
        "SQC (inst)" => "a shader's instruction fetch",
        "SQC (data)" => "a shader's scalar load, of a descriptor or constant",
        "SQG" => "the shader sequencer's own access",
        "CB" => "a colour attachment",
        "DB" => "a depth or stencil attachment",
        "CB/DB" => "a colour, depth or stencil attachment",
        "GE1" | "GE2" | "IA" | "WD" => "indices or parameters of a draw",
        "PA" => "the primitive assembler's own access",
        "CPF" => "the command processor's packet fetch",
        "CPG" => "an access of the graphics command processor itself",
        "CPC" => "an access of the compute command processor itself",
        "RLC" => "an access of the run list controller's firmware",
        "GCR" => "a cache operation",
        name if name.starts_with("SDMA") => "a DMA engine's access",
        _ => return None,
    })
}

/// What the page table entry lacks, from the names of its bits: `PTE not valid`.
fn page_table_entry(args: &Args) -> Option<String> {
    let list: Vec<&str> = names(args.list("pte")).collect();
    let has = |name: &str| list.contains(&name);
    let value = args
        .number("permission_faults")
        .map(|value| format!(" (permission faults {value:#x})"))
        .unwrap_or_default();
    if has("NOT_VALID") {
        return Some(format!("PTE not valid{value}"));
    }
    if has("PDE0") {
        return Some(format!("no page table at this address{value}"));
    }
    if has("OUT_OF_RANGE") {
        return Some(format!("address outside the page table's range{value}"));
    }
    let permissions =
        [("NOT_READABLE", "readable"), ("NOT_WRITABLE", "writable"), ("NOT_EXECUTABLE", "executable")];
    let lacking: Vec<&str> =
        permissions.into_iter().filter(|(name, _)| has(name)).map(|(_, word)| word).collect();
    (!lacking.is_empty()).then(|| format!("PTE valid, but not {}{value}", lacking.join(" or ")))
}

/// `read unmapped page 0x800102345000`, `write to page 0x800102345000, which is mapped and does not permit it`
fn access(f: &Finding, rule: AmdRule) -> String {
    let args = &f.args;
    let page = args.number("address").map_or("at an unknown address".to_owned(), |a| format!("{a:#x}"));
    let of = |unmapped: bool| match (args.get("write"), unmapped) {
        (Some(Arg::Flag(true)), true) => "wrote to unmapped page",
        (Some(Arg::Flag(true)), false) => "wrote to page",
        (Some(Arg::Flag(false)), true) => "read unmapped page",
        (Some(Arg::Flag(false)), false) => "read page",
        (_, true) => "accessed unmapped page",
        (_, false) => "accessed page",
    };
    let invalid = names(args.list("pte")).any(|name| ["NOT_VALID", "PDE0", "OUT_OF_RANGE"].contains(&name));
    match rule {
        AmdRule::GpuvmAccessNotPermitted => format!("{} {page} without permission", of(false)),
        _ => format!("{} {page}", of(invalid)),
    }
}

/// A fault; `memory` says what was there.
fn gpuvm_fault(f: &Finding, rule: AmdRule, memory: &str) -> Words {
    let args = &f.args;
    let hub = args.text("hub").unwrap_or("GPU");
    let by = match (args.text("client"), args.number("client_number")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(number)) => format!("client {number:#x}"),
        (None, None) => "an unknown client".to_owned(),
    };
    let whose =
        [args.number("vmid").map(|vmid| format!("VMID {vmid}")), args.text("process").map(str::to_owned)];
    let whose: Vec<String> = whose.into_iter().flatten().collect();
    let whose = if whose.is_empty() { String::new() } else { format!(" ({})", whose.join(", ")) };
    let mut why = Vec::new();
    why.extend((!memory.is_empty()).then(|| memory.to_owned()));
    why.extend(args.text("client").and_then(|name| Some(format!("{name} is {}", client(name)?))));
    why.extend(page_table_entry(args));
    why.extend(
        args.number("walker_error").map(|error| format!("the page table walk failed (WALKER_ERROR {error})")),
    );
    if args.flag("mapping_error") {
        why.push("MAPPING_ERROR is set".to_owned());
    }
    if args.flag("more_faults") {
        why.push("more faults followed, which the kernel does not record".to_owned());
    }
    if args.record("writer").is_some() {
        why.push(format!("{} is the last packet that writes to this page", writer(f)));
    }
    if let Some((start, end)) = args.record("buffer").and_then(range) {
        why.push(format!("the page is in an existing buffer, {}", sized(start, end)));
    }
    if let (Some((start, end)), Some(address)) =
        (args.record("nearest_buffer").and_then(range), args.number("address"))
    {
        let distance = address.saturating_sub(end);
        why.push(format!("{distance:#x} bytes past the end of the buffer {}", sized(start, end)));
    }
    if let Some(binding) = args.record("binding") {
        let state =
            if binding.flag("bound") { "is bound there" } else { "was bound there, and is unbound now" };
        let object = binding.number("object").unwrap_or(0);
        why.push(format!("{} {object:#x} {state}", binding.text("type").unwrap_or_default()));
    }
    Words::because(format!("{hub} page fault: {by} {}{whose}", access(f, rule)), why)
}

/// `0x800100000000 to 0x800100010000 (0x10000 bytes)`
fn sized(start: u64, end: u64) -> String {
    format!("{start:#x} to {end:#x} ({:#x} bytes)", end.saturating_sub(start))
}

fn range(args: &Args) -> Option<(u64, u64)> {
    Some((args.number("start")?, args.number("end")?))
}

// ---- Waits ----

/// `memory 0x1000 == 0x7`
fn condition(args: &Args) -> String {
    let (memory, number) = (args.number("memory"), args.number("register_offset").unwrap_or(0));
    if args.flag("semaphore") {
        return match memory {
            Some(memory) => format!("a semaphore at {memory:#x}"),
            None => "a semaphore".to_owned(),
        };
    }
    let operand = match (memory, args.text("register")) {
        (Some(memory), _) => format!("memory {memory:#x}"),
        (None, Some(register)) => format!("register {register}"),
        (None, None) => format!("register {number:#x}"),
    };
    let mask = args.number("mask").map(|mask| format!(" & {mask:#x}")).unwrap_or_default();
    let reference = args.number("reference").unwrap_or(0);
    match (args.text("comparison"), args.number("comparison_number")) {
        (Some(symbol), _) => format!("{operand}{mask} {symbol} {reference:#x}"),
        (None, number) => {
            format!("{operand}{mask}, comparison {} with {reference:#x}", number.unwrap_or(0))
        }
    }
}

fn waits(f: &Finding, mut why: Vec<String>) -> Words {
    let packet = match &f.subject {
        Subject::Packet { name: Some(name), .. } => name,
        _ => "a packet",
    };
    let condition = f.args.record("condition").map(condition).unwrap_or_default();
    why.retain(|part| !part.is_empty());
    Words::because(format!("{packet} waits until {condition}"), why)
}

/// `RELEASE_MEM at 0x800100100000+0x8`
fn writer(f: &Finding) -> String {
    let Some(args) = f.args.record("writer") else { return String::new() };
    let (name, dword) = (args.text("packet").unwrap_or_default(), args.number("dword").unwrap_or(0));
    match args.number("buffer") {
        Some(buffer) => format!("{name} at {buffer:#x}+{:#x}", dword.saturating_mul(4)),
        None => format!("{name} at dword {dword:#x} of the ring"),
    }
}

fn value(f: &Finding) -> String {
    match (f.args.number("value"), f.args.get("holds")) {
        (Some(value), Some(Arg::Flag(true))) => {
            format!("the dump has {value:#x} there, which it waits for: it may have gone on")
        }
        (Some(value), Some(_)) => format!("the dump has {value:#x} there"),
        _ => "the value there is not in the dump".to_owned(),
    }
}

/// `WRITE_DATA at 0x1000+0x28, before the wait, writes 0x3 to this address`
fn writes(f: &Finding) -> String {
    let Some(args) = f.args.record("writer") else { return String::new() };
    let order = match args.text("order") {
        Some("earlier") => ", before the wait,".to_owned(),
        Some("later") => ", after the wait,".to_owned(),
        _ => args.text("ring").map(|ring| format!(" of {ring}")).unwrap_or_default(),
    };
    format!("{}{order} writes {}", writer(f), what_is_written(args))
}

fn packet_waits_for_other_queue(f: &Finding) -> Words {
    let writer = match f.args.record("writer") {
        Some(_) => format!("{}, if that queue gets there", writes(f)),
        None => {
            "no packet in the dump writes it, so only a shader, the CPU or another queue could".to_owned()
        }
    };
    waits(f, vec![value(f), writer])
}

fn packet_waits_for_later_write(f: &Finding) -> Words {
    let words = waits(f, vec![value(f), writes(f), "the command processor does not reach that".to_owned()]);
    Words::new(format!("{}: it waits for itself", words.title), words.why)
}

fn packet_waits_for_earlier_write(f: &Finding) -> Words {
    waits(f, vec![value(f), writes(f)])
}

fn packet_waits_for_wrong_write(f: &Finding) -> Words {
    let words = waits(f, vec![value(f), format!("{}, which cannot end the wait", writes(f))]);
    let written = f.args.record("writer").and_then(|writer| writer.number("written"));
    let written = written.map(|value| format!(": {value:#x} is written there")).unwrap_or_default();
    Words::new(format!("{}{written}", words.title), words.why)
}

fn packet_waits_for_register(f: &Finding) -> Words {
    let value = f.args.number("value").map(|value| match f.args.flag("holds") {
        true => format!("the dump has {value:#x} there, which it waits for"),
        false => format!("the dump has {value:#x} there"),
    });
    waits(f, value.into_iter().collect())
}

/// What stalls the command processor; the title is all.
fn stall(title: &'static str) -> Words {
    Words::new(title, "")
}

fn cp_stall_flags(f: &Finding) -> Words {
    let flags: Vec<&str> = names(f.args.list("flags")).collect();
    let noun = if flags.len() == 1 { "flag" } else { "flags" };
    Words::new(format!("stall {noun} of the command processor: {}", flags.join(", ")), "")
}

// ---- Blocks ----

/// Blocks that are busy, and what that means.
fn busy_blocks(f: &Finding, why: &'static str) -> Words {
    let blocks: Vec<&str> = names(f.args.list("blocks")).collect();
    Words::new(format!("busy: {}", blocks.join(", ")), why)
}

fn grbm_idle() -> Words {
    Words::new(
        "no block is busy",
        "the job ended late, its interrupt was lost, or these registers are from after the reset",
    )
}

fn grbm_cp_alone() -> Words {
    Words::new(
        "only the command processor is busy",
        "no block downstream is busy: it waits for something outside the pipeline, or fetches what is not there",
    )
}

fn sdma_busy(f: &Finding) -> Words {
    let engine = match &f.subject {
        Subject::Engine(name) => name,
        _ => "a DMA engine",
    };
    let why = names(f.args.list("stalls")).filter_map(|field| {
        Some(match field {
            "SEM_REQ_STALL" => "it waits for a semaphore",
            "MC_RD_RET_STALL" => "it waits for memory it reads",
            "INT_REQ_STALL" => "its interrupt is not taken",
            "DELTA_RPTR_FULL" => "its read pointer cannot be written back",
            "INSIDE_IB" => "it reads an indirect buffer",
            _ => return None,
        })
    });
    Words::because(format!("{engine} is not idle"), why.map(str::to_owned))
}

// ---- Code ----

/// A place in code: `Pixel Shader+0x8`, `the PS at 0x800120000000+0x8`.
pub(super) fn code_place(place: &Args) -> String {
    let base = match (place.text("shader"), place.number("start")) {
        (Some(""), _) => "the shader".to_owned(),
        (Some(name), _) => name.to_owned(),
        (None, Some(start)) if place.flag("part") => format!("{start:#x}"),
        (None, Some(start)) => format!("the {} at {start:#x}", place.text("stage").unwrap_or("shader")),
        (None, None) => match place.number("pc") {
            Some(pc) => format!("{pc:#x}, in no shader that the report has"),
            None => "an unknown place".to_owned(),
        },
    };
    match place.number("offset") {
        Some(offset) => format!("{base}+{offset:#x}"),
        None => base,
    }
}

/// What is wrong at an instruction, and which made it so.
fn code(f: &Finding, wrong: &str) -> Words {
    let args = &f.args;
    let place = |name| args.record(name).map(code_place).unwrap_or_default();
    let text = |name| args.text(name).unwrap_or("a dword");
    let mut why = Vec::new();
    if args.record("first").is_some() {
        why.push(format!("because of {} at {}", text("first_instruction"), place("first")));
    }
    why.push(match (args.flag("near"), args.number("waves").unwrap_or(0)) {
        (true, 1) => "a wave is close to this place".to_owned(),
        (true, n) => format!("{n} waves are in this code, one of them close to this place"),
        (false, 0) => "whether a wave was there is not known".to_owned(),
        (false, _) => "no wave is near".to_owned(),
    });
    let check = args.text("check").unwrap_or_default();
    let cure = Check::named(check).map_or("", |rule| rule.info().cure);
    if !cure.is_empty() {
        why.push(format!("fix: {cure}"));
    }
    if let Some(more) = args.number("more") {
        why.push(format!("{more} more like it in this code: unwedge amd check shows all"));
    }
    why.extend(origin(args));
    let title = match check {
        "no_end" => format!("endless loop: no path from {} reaches s_endpgm", place("place")),
        "not_instruction" => format!("the code at {} can be reached and does not decode", place("place")),
        _ => format!("{} at {} {wrong} (rule {check})", text("instruction"), place("place")),
    };
    Words::because(title, why)
}

/// `pipeline 123456789abcdef0, SPIR-V in 0123456789.spv`
fn origin(args: &Args) -> Option<String> {
    let origin = args.record("origin")?;
    let pipeline = origin.text("pipeline").map(|hash| format!("pipeline {hash}"));
    let spirv = origin.text("spirv").map(|file| format!("SPIR-V in {file}"));
    Some(pipeline.into_iter().chain(spirv).collect::<Vec<_>>().join(", "))
}

fn code_misses_wait(f: &Finding) -> Words {
    let wait =
        format!("{}({})", f.args.text("counter").unwrap_or_default(), f.args.number("until").unwrap_or(0));
    let wrong = match f.args.text("registers") {
        Some(registers) => format!("uses {registers} without {wait}"),
        None => format!("goes on without {wait}"),
    };
    code(f, &wrong)
}

fn code_breaks_rule(f: &Finding) -> Words {
    let rule = f.args.text("check").and_then(Check::named);
    code(f, &format!("is wrong: {}", rule.map_or("", |rule| rule.info().then)))
}

// ---- Waves ----

/// What a wave does at an instruction, as far as the instruction alone says.
fn meaning(mnemonic: &str) -> Option<&'static str> {
    let opcode = Opcode::named(mnemonic)?;
    Some(match (opcode.row().role, opcode) {
        (Role::Wait | Role::WaitIdle, _) => "it waits for memory, exports or messages",
        (Role::Depctr, _) => "it waits for instructions before it",
        (_, Opcode::s_barrier | Opcode::s_barrier_wait) => {
            "it waits at a barrier for other waves of its group"
        }
        (_, Opcode::s_sleep | Opcode::s_sleep_var) => "it sleeps, as loops that poll do",
        (_, Opcode::s_sethalt) => "it halts itself",
        (Role::Trap, _) => "it traps",
        (Role::End, _) => "it is at its end",
        _ => return None,
    })
}

/// What a counter counts; its name, where nothing is known of it.
fn counter_subject(counter: &str) -> &str {
    match counter {
        "vmcnt" => "vector memory",
        "lgkmcnt" => "LDS, scalar memory or messages",
        "expcnt" => "exports",
        "vscnt" | "storecnt" => "stores to vector memory",
        "loadcnt" => "loads from vector memory",
        "samplecnt" => "samples of images",
        "bvhcnt" => "ray tracing",
        "dscnt" => "LDS",
        "kmcnt" => "scalar memory or messages",
        unknown => unknown,
    }
}

/// What waves wait for, by their counters.
fn counters(waits: &[Arg], waves: u64) -> Option<String> {
    if waits.is_empty() {
        return None;
    }
    let unknown = records(waits).any(|wait| wait.number("lowest").is_none());
    let open = records(waits).filter_map(|wait| {
        let counter = wait.text("counter")?;
        let (low, high) = (wait.number("lowest")?, wait.number("highest")?);
        let held = wait.number("waves").filter(|held| *held > 0)?;
        let shown = if low == high { low.to_string() } else { format!("{low}…{high}") };
        let until = wait.number("until")?;
        let of = if held < waves { format!(" in {held} of them") } else { String::new() };
        Some(format!("{} ({counter} is {shown} and has to be {until}{of})", counter_subject(counter)))
    });
    let open: Vec<String> = open.collect();
    Some(match (open.is_empty(), unknown) {
        (false, _) => format!("it waits for {}", open.join(" and ")),
        (true, false) => "what it waits for has arrived, so it is about to continue".to_owned(),
        (true, true) => {
            let names: Vec<&str> =
                records(waits).filter_map(|wait| wait.text("counter")).map(counter_subject).collect();
            format!("it waits for {}", names.join(" and "))
        }
    })
}

/// What a bit of a wave's state says is wrong.
fn error(register: &str, field: &str) -> &'static str {
    match (register, field) {
        (_, "EXCP_MEM_VIOL" | "MEM_VIOL") => "an access to memory failed",
        (_, "ILLEGAL_INST") => "the instruction does not exist",
        (_, "FATAL_HALT") => "an error halted it",
        (_, "ECC_ERR") => "a memory error was detected",
        ("STATUS", "TRAP") => "it is about to trap",
        (_, "UTC_ERROR") => "an address could not be translated",
        _ => "an error is set",
    }
}

fn waves(report: &Report, f: &Finding) -> Words {
    let args = &f.args;
    let count = args.number("waves").unwrap_or(0);
    let place = args.record("place").map(code_place).unwrap_or_default();
    let text = args.text("instruction").map(|text| format!(": {text}")).unwrap_or_default();
    let mut why = Vec::new();
    let mnemonic = || args.text("mnemonic").and_then(meaning).map(str::to_owned);
    why.extend(counters(args.list("waits"), count).or_else(mnemonic));
    if let (Some(start), Some(end)) = (args.number("loop_start"), args.number("loop_end")) {
        why.push(format!("inside the loop from +{start:#x} to +{end:#x}, which may be endless"));
    }
    match args.number("no_lanes") {
        None => {}
        Some(n) if n == count => why.push("no lane is active".to_owned()),
        Some(n) => why.push(format!("{n} of them with no lane on")),
    }
    for set in records(args.list("errors")) {
        let (register, field) =
            (set.text("register").unwrap_or_default(), set.text("field").unwrap_or_default());
        let words = error(register, field);
        why.push(match set.number("waves").unwrap_or(0) {
            n if n == count => format!("{words} ({register}.{field})"),
            1 => format!("{words} ({register}.{field} of 1 wave)"),
            n => format!("{words} ({register}.{field} of {n} waves)"),
        });
    }
    // Said once, with what is wrong in the code or with the first waves.
    let first = report.findings.iter().find(|other| other.args.record("origin").is_some());
    why.extend(origin(args).filter(|_| first.is_some_and(|first| std::ptr::eq(first, f))));
    if args.flag("tainted") {
        why.push("umr warns that waves ran while it read them".to_owned());
    }
    match args.number("other_places") {
        None => {}
        Some(1) => why.push("waves are at 1 other instruction, too".to_owned()),
        Some(n) => why.push(format!("waves are at {n} other instructions, too")),
    }
    Words::because(format!("{} at {place}{text}", waves_are(count)), why)
}

fn no_waves() -> Words {
    Words::new("no wave was running", "The command processor is not waiting for a shader.")
}

fn shader_exception(f: &Finding) -> Words {
    let place = f.args.record("place").map(code_place).unwrap_or_default();
    let text = f.args.text("instruction").map(|text| format!(": {text}")).unwrap_or_default();
    let mut why = vec!["RADV's trap handler caught it".to_owned()];
    why.extend(origin(&f.args));
    Words::because(format!("a shader raised an exception at {place}{text}"), why)
}

fn address_without_buffer(f: &Finding) -> Words {
    let packet = match &f.subject {
        Subject::Packet { name: Some(name), .. } => name,
        _ => "a packet",
    };
    let text = |name| f.args.text(name).unwrap_or_default();
    let address = f.args.number("address").unwrap_or(0);
    Words::new(
        format!("{} in {packet} is {}: {address:#x}", text("field"), text("problem")),
        "Mesa looked the address up in its list of buffers",
    )
}

fn work_runs_shaders(f: &Finding) -> Words {
    let shaders = records(f.args.list("shaders")).map(|shader| {
        let stage = shader.text("stage").unwrap_or_default();
        match (shader.number("start"), shader.number("start_low")) {
            (Some(start), _) => format!("{stage} at {start:#x}"),
            (None, low) => format!("{stage} at 0x??{:010x}", low.unwrap_or(0)),
        }
    });
    let shaders: Vec<String> = shaders.collect();
    let work = match &f.subject {
        Subject::Work { kind, number } => format!("{kind} {number}"),
        _ => "the work".to_owned(),
    };
    let why = "registers that the stream sets before it point to them";
    Words::new(format!("{work} runs {}", shaders.join(", ")), why)
}

// ---- Progress ----

fn stopped_between_trace_points(f: &Finding) -> Words {
    let commands: Vec<&str> = names(f.args.list("commands")).collect();
    let commands = if commands.is_empty() { String::new() } else { format!(": {}", commands.join(", ")) };
    let number = |name| f.args.number(name).unwrap_or(0);
    Words::new(
        format!(
            "the command processor passed trace point {} and not {}{commands}",
            number("trace_point"),
            number("next_trace_point")
        ),
        "the commands before the point that was passed have been read, but may not have ended",
    )
}

fn passed_every_trace_point(f: &Finding) -> Words {
    let point = f.args.number("trace_point").unwrap_or(0);
    Words::new(
        format!("the command processor passed every trace point, the last one being {point}"),
        "all commands were read: one of them does not end, or what follows them waits",
    )
}

/// What an engine remembers: names of packets, or the headers of those that have none.
fn remembered(f: &Finding) -> (String, Vec<String>) {
    let engine = match &f.subject {
        Subject::Block(name) if name.starts_with("MEC") => name.to_string(),
        Subject::Block(name) => format!("the {name}"),
        _ => "an engine".to_owned(),
    };
    let packets = f.args.list("packets").iter().map(|packet| match packet {
        Arg::Value(header) => format!("{header:#010x}"),
        other => super::value(other),
    });
    (engine, packets.collect())
}

/// `CP_ME_HEADER_DUMP ×8 = DISPATCH_DIRECT`
pub(super) fn packet_header(register: &str, header: u32, packet: Option<&str>, times: usize) -> String {
    let times = if times > 1 { format!(" ×{times}") } else { String::new() };
    match packet {
        Some(packet) => format!("{register}{times} = {packet}"),
        None => format!("{register}{times} = {header:#010x}"),
    }
}

fn engine_last_read(f: &Finding) -> Words {
    let (engine, packets) = remembered(f);
    let why = match f.args.flag("in_dump") {
        true => "which of those in the dump is not recorded",
        false => "its parameters are not in the dump",
    };
    Words::new(format!("{engine} last read {}", packets.join(", ")), why)
}

fn engine_remembers(f: &Finding) -> Words {
    let (engine, packets) = remembered(f);
    let why = "the newest is at one end of the list, but which end is not recorded";
    Words::new(format!("{engine} remembers {}", packets.join(", ")), why)
}

fn jobs(f: &Finding) -> Words {
    let ring = f.args.text("ring").unwrap_or_default();
    let open = f.args.number("open").unwrap_or(0);
    let oldest = f.args.number("oldest_fence").unwrap_or(0);
    let title = match (f.args.number("hung_fence"), f.args.number("nth")) {
        _ if open == 0 => format!("{ring}: every fence was signaled"),
        (Some(fence), Some(_)) if open == 1 => {
            format!("{ring}: the job at the stop has fence {fence}, the only one pending")
        }
        (Some(fence), Some(nth)) => {
            format!("{ring}: the job at the stop has fence {fence}, {} of {open} pending", ordinal(nth))
        }
        _ => format!("{ring}: {}, the oldest is {oldest}", counted(open, "fence pending", "fences pending")),
    };
    Words::new(title, "")
}

fn vram_lost() -> Words {
    Words::new(
        "the contents of VRAM were lost in the reset",
        "every process that used the GPU lost its buffers, not only this one",
    )
}

// ---- Evidence ----

/// `SE0 SA1 WGP2 SIMD0 wave 3: PC 0x800120000008, EXEC 0xffffffff, HALT, vmcnt 3`
pub(super) fn wave(args: &Args) -> String {
    let parts =
        [("SE", "se"), ("SA", "sa"), ("WGP", "wgp"), ("CU", "cu"), ("SIMD", "simd"), ("wave ", "wave")];
    let unit = |(shown, name): (&str, &str)| Some(format!("{shown}{}", args.number(name)?));
    let units: Vec<String> = parts.into_iter().filter_map(unit).collect();
    let units = if units.is_empty() { String::new() } else { format!("{}: ", units.join(" ")) };
    let value = |name| args.number(name).map_or("?".to_owned(), |value| format!("{value:#x}"));
    let bits = names(args.list("bits")).map(|bit| format!(", {bit}"));
    let counters = records(args.list("counters"))
        .filter_map(|counter| Some(format!(", {} {}", counter.text("counter")?, counter.number("value")?)));
    let state: String = bits.chain(counters).collect();
    format!("{units}PC {}, EXEC {}{state}", value("pc"), value("exec"))
}

/// `Pixel Shader+0x8: bf8cc07f  s_waitcnt lgkmcnt(0)`
pub(super) fn instruction(place: &Args, words: &[u32], text: Option<&str>) -> String {
    let words: String = words.iter().map(|word| format!("{word:08x} ")).collect();
    format!("{}: {words} {}", code_place(place), text.unwrap_or("not an instruction"))
}

// ---- Advice ----

/// What to do and what it will tell; `None` for advice of other drivers.
pub(super) fn advice(id: AdviceId, args: &Args) -> Option<(String, &'static str)> {
    let ring = args.text("ring").unwrap_or_default();
    let plain = |action: &str, reason| (action.to_owned(), reason);
    Some(match id {
        AdviceId::DecodeStreams => {
            plain("unwedge decode FILE", "shows every packet of the ring and of the buffers in the dump")
        }
        AdviceId::VulkanValidation => plain(
            "VK_LOADER_LAYERS_ENABLE='*validation*'",
            "shows which object was destroyed while the GPU still used it",
        ),
        AdviceId::RadvNoCompression => plain(
            "RADV_DEBUG=nodcc,nohiz,nofmask",
            "does it fault without compressed attachments? excludes their metadata",
        ),
        AdviceId::RadvHangReport => plain(
            "RADV_DEBUG=hang,syncshaders",
            "a Vulkan process leaves a report in ~/radv_dumps_*: command buffers, shaders, waves, freed buffers",
        ),
        AdviceId::AmdgpuNoRecovery => plain(
            "amdgpu.gpu_recovery=0",
            "on the kernel's command line: the GPU stays as it hung, for umr to read",
        ),
        AdviceId::UmrWaves => (
            format!("umr -O halt_waves,bits -wa {ring}"),
            "while it hangs: which instruction each shader is at",
        ),
        AdviceId::UmrRing => {
            (format!("umr -RS {ring}"), "while it hangs: the ring and every buffer that it calls")
        }
        AdviceId::AcoNoOptimizations => plain(
            "ACO_DEBUG=noopt,nosched",
            "if it still hangs without optimizations, suspect the shader, not the compiler",
        ),
        AdviceId::RadvSyncShaders => plain(
            "RADV_DEBUG=hang,syncshaders",
            "one command at a time: trace points then name the exact draw",
        ),
        AdviceId::UmrSetuid => plain(
            "sudo chmod u+s $(which umr)",
            "lets RADV ask umr for the waves at the next hang; makes umr run as root for everyone, u-s undoes it",
        ),
        AdviceId::RadvNoAsyncCompute => plain(
            "RADV_DEBUG=noasynccompute",
            "is it a wait between queues? a single queue cannot wait for another",
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_isa::amdgcn::model::Gfx;
    use unwedge_isa::amdgcn::waits::Counter;

    #[test]
    fn every_counter_of_every_generation_has_words() {
        for generation in Gfx::ALL {
            for counter in Counter::of(generation) {
                let name = counter.name_in(generation).expect("a counter of the generation");
                assert_ne!(counter_subject(name), name, "{generation:?}");
            }
        }
        assert_eq!(counter_subject("newcnt"), "newcnt");
    }

    #[test]
    fn instructions_that_waves_are_at() {
        assert_eq!(meaning("s_barrier_wait"), Some("it waits at a barrier for other waves of its group"));
        // gfx12's name of s_waitcnt_depctr.
        assert_eq!(meaning("s_wait_alu"), meaning("s_waitcnt_depctr"));
        assert_eq!(meaning("s_wait_loadcnt_dscnt"), meaning("s_waitcnt"));
        for other in ["v_mov_b32", "s_nop", "no_such_instruction", ""] {
            assert_eq!(meaning(other), None, "{other}");
        }
    }
}
