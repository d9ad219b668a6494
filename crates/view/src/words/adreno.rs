//! The words of rules over dumps of msm.

use super::{Words, what_is_written};
use crate::plural::{counted, ordinal};
use unwedge_check::ir3::facts::{RULES, RuleInfo};
use unwedge_postmortem::{AdrenoRule, AdviceId, Arg, Args, Finding, Report, Subject};

/// The words of a rule.
pub(super) fn words(report: &Report, f: &Finding, rule: AdrenoRule) -> Words {
    match rule {
        AdrenoRule::UnknownGpu => Words::new(
            "the GPU's generation: the dump has no revision this tool knows",
            "Registers and packets differ by generation; none can be named without it.",
        ),
        AdrenoRule::BackEndNotDraining => Words::new(
            "the back end is not draining: RB or CCU busy, no shader running, front end stalled upstream",
            "With SP and HLSQ idle, what RB and CCU still hold is earlier work, such as a blit, a resolve or a cache flush that does not finish.",
        ),
        AdrenoRule::FrontEndWaitsForMemory => Words::new(
            "the front end waits for memory: index, vertex or visibility data does not arrive",
            "PC, VFD or VPC have work and so has UCHE, and nothing downstream of them does.",
        ),
        AdrenoRule::FrontEndStuck => Words::new(
            "the front end is stuck: PC or VFD are busy and nothing downstream is",
            "The draw does not get past primitive and vertex fetch because of a bad draw initiator, index buffer, visibility stream or vertex layout.",
        ),
        AdrenoRule::ShadersWaitForTextures => Words::new(
            "shaders wait for textures: SP, TP and UCHE are busy",
            "Shader processors, texture units and the L2 cache all have work open, so memory does not answer a fetch, or a shader is very slow.",
        ),
        AdrenoRule::ShadersWaitForMemory => Words::new(
            "shaders wait for memory: SP, UCHE and the bus are busy",
            "Loads or stores are on their way through the L2 cache and are not answered.",
        ),
        AdrenoRule::ShaderProcessorsStuck => Words::new(
            "the shader processors are stuck: SP is busy with no memory access open",
            "A shader computes and never ends. It may be in an endless loop, at a barrier that not all waves reach, or waiting for a result that never comes.",
        ),
        AdrenoRule::RenderBackendsStuck => Words::new(
            "the render backends are stuck: only RB or CCU are busy",
            "All work is in the back end: a resolve, a cache flush, or writes that memory does not accept.",
        ),
        AdrenoRule::RasterizerStuck => Words::new(
            "the rasterizer is stuck: only TSE, RAS or LRZ are busy",
            "Primitives entered rasterization and no fragments leave it. Bad LRZ or scissor state can do that.",
        ),
        AdrenoRule::CacheWaitsForMemory => Words::new(
            "UCHE waits for memory: the L2 cache is busy and none of its clients is",
            "Memory does not complete a flush, an invalidation or a write-back.",
        ),
        AdrenoRule::SequencerWaits => Words::new(
            "HLSQ is busy with no shader running: it waits for state, constants or instructions",
            "The sequencer has work that it cannot hand to the shader processors.",
        ),
        AdrenoRule::CpWaitsOnAhb => Words::new(
            "the CP waits for a register access: it is master on the AHB bus and all other blocks are idle",
            "A register read or write of the CP is not answered, as by a block without clock or power, or at a bad register.",
        ),
        AdrenoRule::CpWaitsForMemory => Words::new(
            "the CP waits for memory: only the CP and the bus are busy",
            "A fetch of commands or a memory packet is not answered.",
        ),
        AdrenoRule::OnlyCpBusy => Words::new(
            "only the CP is busy; every downstream block is idle",
            "The rest of the GPU is idle and the CP is stuck. Look at the packet it stopped on.",
        ),
        AdrenoRule::NoBlockBusy => Words::new(
            "no block is busy: the GPU was idle when the dump was taken",
            "It finished late, was not given the work, or lost power. Compare the rings' pointers and fences.",
        ),
        AdrenoRule::BlitEngineBusy => Words::new(
            "the 2D engine is busy: a blit does not finish",
            "A2D has work and the shaders have none.",
        ),
        AdrenoRule::ShaderProcessorsBusy => {
            Words::new("the shader processors are busy", "Shaders are running or stuck.")
        }
        AdrenoRule::GpuNotInitialized => Words::new(
            "the GPU was not initialized when the dump was taken",
            "It did not come up, or was down again by then. What is missing was not read, and registers that are there may belong to a block without clocks.",
        ),
        AdrenoRule::GmuWatchdog => Words::new("the GMU's watchdog fired: its firmware stopped", ""),
        AdrenoRule::GmuFenceStoppedAccess => {
            Words::new("a register access was stopped at the GMU's fence", "")
        }
        AdrenoRule::GmuBusError => Words::new("an AHB bus error on the GMU's side", ""),
        AdrenoRule::GmuProcessorFault => Words::new("the GMU's processor reports a fault", ""),
        AdrenoRule::GmuFenceDroppedWrite => Words::new("a register write was dropped at the GMU's fence", ""),
        AdrenoRule::GmuMessageUnread => Words::new("the GMU has not read the kernel's last message", ""),
        AdrenoRule::HfiDroppedMessages => Words::new("an HFI queue dropped messages", ""),
        AdrenoRule::SmmuStalled => Words::new(
            "the IOMMU holds the GPU at a fault",
            "Whatever blocks are busy, a translation fault stalls their access.",
        ),
        AdrenoRule::FaultInfoEmpty => Words::new(
            "fault-info is there, but names no fault",
            "An address of zero without direction or type is not evidence of a page fault.",
        ),
        AdrenoRule::RegistersNotCaptured => Words::new(
            "registers",
            "Without them neither the position nor the state of the hardware is known.",
        ),
        AdrenoRule::RingNotCaptured => Words::new("the ring", "No stream can be walked."),
        AdrenoRule::RingDwordsNotCaptured => Words::new("the ring's contents", "No stream can be walked."),
        AdrenoRule::RegistersAllOnes => Words::new(
            "the GPU does not respond: its registers read as 0xffffffff",
            "It lost power or its clocks, or the bus does not reach it. No value of a register counts, and the place is that of the kernel's read pointer.",
        ),
        AdrenoRule::RegistersAllZero => Words::new(
            "registers (every one reads as 0, so none was read)",
            "The capture did not fill the memory for them. Neither the position nor the state of the hardware is known.",
        ),
        AdrenoRule::RingPositionNotCaptured => Words::new(
            "the read pointer of the ring",
            "How far the CP has read is unknown, so no stream can be walked.",
        ),
        AdrenoRule::RingContentsCut | AdrenoRule::BufferContentsCut => contents_cut(f),
        AdrenoRule::StreamLoops => stream_loops(f),
        AdrenoRule::CpStopped => cp_stopped(report, f),
        AdrenoRule::PoisonInStream => garbage_at_stop(f, true),
        AdrenoRule::NotAPacket => garbage_at_stop(f, false),
        AdrenoRule::UnknownOpcode => unknown_opcode(f),
        AdrenoRule::PacketPastEnd => packet_past_end(f),
        AdrenoRule::EarlierBadHeaders => earlier_bad_headers(f),
        AdrenoRule::ErrorInterrupt => error_interrupt(f),
        AdrenoRule::CpHwFault => cp_hw_fault(f),
        AdrenoRule::ProtectedRegister => protected_register(f),
        AdrenoRule::Ir3CodeMissesWait => {
            let register = f.args.text("register").unwrap_or("a register");
            let early = match (f.args.text("wait"), f.args.number("cycles")) {
                (Some(wait), _) => format!("without {wait}"),
                (None, cycles) => format!("{} too early", counted(cycles.unwrap_or(1), "cycle", "cycles")),
            };
            ir3_code(f, &format!("uses {register} {early}"))
        }
        AdrenoRule::Ir3CodeBreaksRule => {
            let is = ir3_check_rule(f).map_or("", |rule| rule.is);
            let register = f.args.text("register").map(|name| format!(" ({name})")).unwrap_or_default();
            ir3_code(f, &format!("is wrong: {is}{register}"))
        }
        AdrenoRule::IommuFaultNullPage => iommu_fault(
            f,
            "in the null page",
            &format!(
                "An address this low is a null pointer plus {:#x}: an unset descriptor or base.",
                f.args.number("iova").unwrap_or(0)
            ),
        ),
        AdrenoRule::IommuFaultNotAnAddress => iommu_fault(
            f,
            "which is not a GPU address",
            "It has more bits than GPU addresses have: garbage used as a pointer.",
        ),
        AdrenoRule::IommuFaultTrapRange => {
            iommu_fault(f, "in UCHE's trap range", "UCHE sends accesses out of bounds there.")
        }
        AdrenoRule::IommuFaultPermission => {
            iommu_fault(f, &into_buffer(f), "The buffer is mapped, but not for this kind of access.")
        }
        AdrenoRule::IommuFaultExternal => {
            iommu_fault(f, &into_buffer(f), "The translation succeeded and the memory refused the access.")
        }
        AdrenoRule::IommuFaultUnmappedBuffer => {
            iommu_fault(f, &into_buffer(f), "The buffer is listed, but was unmapped.")
        }
        AdrenoRule::IommuFaultListedBuffer => iommu_fault(
            f,
            &into_buffer(f),
            "The submit lists this buffer: it was mapped too late, unmapped too early, or only in part.",
        ),
        AdrenoRule::IommuFaultUseAfterFree => {
            iommu_fault(f, "in unmapped memory", "It was mapped once: use after free.")
        }
        AdrenoRule::IommuFaultOverrun => iommu_fault(
            f,
            &format!("{:#x} past the end of {}", distance(f), buffer(f)),
            "Closest to the end of that buffer: an overrun of it.",
        ),
        AdrenoRule::IommuFaultUnderrun => iommu_fault(
            f,
            &format!("{:#x} below {}", distance(f), buffer(f)),
            "Closest to the start of that buffer: an underrun of it.",
        ),
        AdrenoRule::IommuFaultBetweenBuffers => iommu_fault(
            f,
            "between the buffers of the submit",
            "A hole between buffers: a freed buffer's address, or one that the submit does not list.",
        ),
        AdrenoRule::IommuFaultOutside => iommu_fault(
            f,
            "outside of all buffers",
            "Far from every listed buffer: a wild pointer, or a buffer that the submit does not list.",
        ),
        AdrenoRule::IommuFaultNoBuffers => iommu_fault(
            f,
            "in unknown memory",
            "The dump lists no buffers, so the owner of that address is not known.",
        ),
        AdrenoRule::CpWaitsForValue => {
            let now = f.args.number("value").unwrap_or(0);
            let why = format!("The CP polls until the value is there; the dump has {now:#x}.");
            cp_waits_for_value(f, &format!("has {now:#x}"), &sentences(&[&why, &writers(f)]))
        }
        AdrenoRule::CpWaitsForItself => cp_waits_for_value(
            f,
            "it waits for itself",
            &sentences(&[
                "Only a packet after the wait writes there, and the CP does not reach it.",
                &now_there(f),
                &writers(f),
            ]),
        ),
        AdrenoRule::CpWaitsForWrongWrite => cp_waits_for_value(
            f,
            &format!("{:#x} is written there", written(f)),
            &sentences(&["That value cannot end the wait.", &now_there(f), &writers(f)]),
        ),
        AdrenoRule::CpAwaitedValueIsThere => cp_waits_for_value(
            f,
            &format!("has {:#x} now", f.args.number("value").unwrap_or(0)),
            "The awaited value is there in the dump: it came late, or the CP is past this packet.",
        ),
        AdrenoRule::CpWaitsForUnknownValue => {
            let why = "The CP polls until the value is there.";
            cp_waits_for_value(f, "value not in the dump", &sentences(&[why, &writers(f)]))
        }
        AdrenoRule::CpWaitsForQueuedEvent => cp_waits_for_value(
            f,
            "the event that writes it waits for earlier work",
            &sentences(&["The event is sent, but the work before it has not finished.", &writers(f)]),
        ),
        AdrenoRule::CpWaitsForWork => cp_waits_for(f, "earlier work to finish"),
        AdrenoRule::CpWaitsForRegisterWrites => cp_waits_for(f, "earlier register writes to land"),
        AdrenoRule::CpWaitsForWaits => cp_waits_for(f, "earlier waits to end"),
        AdrenoRule::GmuStartResult => gmu_start_result(f),
        AdrenoRule::GmuErrorMessage => gmu_error_message(f),
        AdrenoRule::GmuRefusedMessage => gmu_refused_message(f),
        AdrenoRule::BlitNotFinished => blit_not_finished(f),
        AdrenoRule::WorkMayBeRunning => work_may_be_running(f),
        AdrenoRule::WorkNotFinished => {
            let work = f.args.record("work").map(|args| work(args, true)).unwrap_or_default();
            let why = "The CP is past it, and the clusters wait for its register context to be free.";
            Words::new(format!("{work} has not finished"), sentences(&[why, &state(f)]))
        }
        AdrenoRule::QueuedWrites => queued_writes(f),
        AdrenoRule::WorkStarting => own_work(f, "the CP was starting"),
        AdrenoRule::WorkLastSent => own_work(f, "the last work sent was"),
        AdrenoRule::BvThreadAt => bv_thread_at(f),
        AdrenoRule::BvWaitsForValue => bv_waits_for_value(f),
        AdrenoRule::FenceNotRetired => Words::new(
            format!(
                "{} is read to its end and no block is busy, but fence {} is not retired",
                ring(f),
                oldest_fence(f)
            ),
            "The write of the fence or its interrupt was lost, or the dump was taken just before them.",
        ),
        AdrenoRule::SubmitsOpen => Words::new(submits_open(f), ""),
        AdrenoRule::SubmitsComplete => Words::new(
            format!("{}: all submits are complete", ring(f)),
            "The GPU finished before the dump was taken, or what hung is not a submit.",
        ),
        AdrenoRule::FencesNotCaptured => Words::new(format!("{}: fences are not in the dump", ring(f)), ""),
        AdrenoRule::OtherRingWaits => {
            Words::new(format!("{} also waits: {}", ring(f), open_submits(f)), OTHER_RING)
        }
        AdrenoRule::OtherRingUnread => {
            Words::new(format!("{} has commands that the CP has not read", ring(f)), OTHER_RING)
        }
        AdrenoRule::WritePointerNotSeen => write_pointer_not_seen(f),
        AdrenoRule::IbNotCaptured => ib_not_captured(f),
        AdrenoRule::SectionsNotCaptured => sections_not_captured(f),
    }
}

fn records(list: &[Arg]) -> impl Iterator<Item = &Args> {
    list.iter().filter_map(|arg| match arg {
        Arg::Record(record) => Some(record),
        _ => None,
    })
}

/// `draw 19 (CP_DRAW_INDX_OFFSET, DI_PT_TRILIST, 6 indices)`; the packet's name can be left out.
pub(super) fn work(args: &Args, packet: bool) -> String {
    let kind = args.text("kind").unwrap_or("work");
    let number = args.number("number").unwrap_or(0);
    let named = |key: &str, what: &str| match args.get(key)? {
        Arg::Name(name) => Some(name.to_string()),
        Arg::Value(value) => Some(format!("{what} {value:#x}")),
        _ => None,
    };
    let count = |key: &str| args.number(key).map(|n| format!("{n} {key}"));
    let parts = [
        args.text("packet").filter(|_| packet).map(str::to_owned),
        named("primitive", "primitive"),
        named("event", "event"),
        count("indices"),
        count("instances"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => format!("{kind} {number}"),
        false => format!("{kind} {number} ({})", parts.join(", ")),
    }
}

/// ` Its state: RB_MRT[0].BASE = 0x100000, …` for work that has state that is known.
fn state(f: &Finding) -> String {
    let one = |args: &Args| {
        let register = args.text("register").unwrap_or_default();
        match (args.text("format"), args.number("address")) {
            (Some(format), _) => format!("{register} = {format}"),
            (None, address) => format!("{register} = {:#x}", address.unwrap_or(0)),
        }
    };
    let state: Vec<String> = records(f.args.list("state")).map(one).collect();
    if state.is_empty() { String::new() } else { format!("Its state: {}.", state.join(", ")) }
}

/// Sentences with a blank in between; those that are empty are left out.
fn sentences(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

// ---- Where it hung ----

fn cp_stopped(report: &Report, f: &Finding) -> Words {
    let place = report.hang.as_ref().map(|hang| super::hang_place(report, hang)).unwrap_or_default();
    let packet = match (f.args.text("packet"), f.args.number("garbage")) {
        (Some(packet), _) if !f.args.flag("started") => {
            format!("the CP has read nothing of the ring; its first packet is {packet}")
        }
        (Some(packet), _) => packet.to_owned(),
        (None, Some(raw)) => format!("{raw:#010x} (not a valid packet)"),
        (None, None) if f.args.flag("reached") => "not a packet".to_owned(),
        (None, None) => "the packet there is not in the dump".to_owned(),
    };
    let of = f.args.record("work").map(|args| format!(" of {}", work(args, false)));
    let after = f.args.record("after").map(|args| format!(", after {}", work(args, true)));
    let of = of.or(after).unwrap_or_default();
    let pass = f.args.record("pass").map(|args| format!(" in {}", pass(args))).unwrap_or_default();
    let disagrees =
        "The SQE's current packet differs from the one the registers point to, so the place is doubtful.";
    let disagrees = f.args.flag("sqe_disagrees").then(|| disagrees.to_owned());
    let stray = f.args.record("stray").map(|args| {
        let (register, iova) = (args.text("register").unwrap_or_default(), args.number("iova").unwrap_or(0));
        format!("{register} = {iova:#x} is not a buffer that the ring calls, so the place may be another.")
    });
    let pointer = "No register was captured, so only the kernel's read pointer of the ring is known.";
    let pointer = f.args.flag("ring_pointer_only").then(|| pointer.to_owned());
    let why = [pointer, disagrees, stray].into_iter().flatten().collect::<Vec<_>>().join(" ");
    Words::new(format!("{place}: {packet}{of}{pass}"), why)
}

/// `sysmem`, `gmem, bin 2 (256,0…511,255)`
fn pass(args: &Args) -> String {
    let name = args.text("name").unwrap_or_default();
    let corners: Vec<u64> = args
        .list("scissor")
        .iter()
        .filter_map(|arg| match arg {
            Arg::Number(n) => Some(*n),
            _ => None,
        })
        .collect();
    match (args.number("bin"), &corners[..]) {
        (Some(bin), [x1, y1, x2, y2]) => format!("{name}, bin {bin} ({x1},{y1}…{x2},{y2})"),
        (Some(bin), _) => format!("{name}, bin {bin}"),
        (None, _) => name.to_owned(),
    }
}

// ---- Broken streams and error interrupts ----

fn garbage_at_stop(f: &Finding, deliberate: bool) -> Words {
    let raw = f.args.number("header").unwrap_or(0);
    let (title, cause) = match deliberate {
        true => (
            format!("poison value {raw:#010x} in the command stream stalled the CP"),
            "Tests, and allocators that poison memory, write this value.",
        ),
        false => (
            format!("the command stream is corrupt: the CP took {raw:#010x} for a packet header"),
            "The memory was overwritten or is stale, or an earlier packet has a wrong length.",
        ),
    };
    let where_seen = match (f.args.flag("agree"), f.args.flag("in_sqe")) {
        (true, _) => "The dword at the stop and the SQE's current packet header ($01) are the same.",
        (false, true) => "The SQE's current packet header ($01) has no valid type or parity.",
        (false, false) => "The dword at the stop has no valid type or parity.",
    };
    Words::new(title, sentences(&[where_seen, cause]))
}

fn unknown_opcode(f: &Finding) -> Words {
    let (raw, opcode) = (f.args.number("header").unwrap_or(0), f.args.number("opcode").unwrap_or(0));
    Words::new(
        format!("opcode {opcode:#04x} in the command stream is not an opcode of this GPU"),
        format!(
            "{raw:#010x} is a valid header, and the firmware has nothing to do for it: the packet is meant for \
             another GPU, or the stream is corrupt."
        ),
    )
}

fn packet_past_end(f: &Finding) -> Words {
    let packet = f.args.text("packet").unwrap_or("a packet");
    let (dwords, left) = (f.args.number("dwords").unwrap_or(0), f.args.number("left").unwrap_or(0));
    let stream = f.args.number("stream").unwrap_or(0);
    Words::new(
        format!("{packet} is longer than its stream: {dwords} dwords where {left} are left"),
        format!(
            "The packet that calls the stream at {stream:#x} has too small a size, or the header's count is wrong."
        ),
    )
}

fn earlier_bad_headers(f: &Finding) -> Words {
    let (count, raw) = (f.args.number("count").unwrap_or(0), f.args.number("header").unwrap_or(0));
    let at = f.args.number("iova").map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
    let headers = if count == 1 {
        format!("1 bad packet header before the stop, {raw:#010x}{at}")
    } else {
        format!("{count} bad packet headers before the stop, the last {raw:#010x}{at}")
    };
    Words::new(headers, "The CP got past them, or the stream was overwritten after it was read.")
}

/// What the flags of error interrupts mean.
const ERRORS: &[(&str, &str)] = &[
    ("CP_OPCODE_ERROR", "the CP met an operation its firmware does not know"),
    ("CP_UCODE_ERROR", "the CP firmware ran into an error"),
    ("CP_HW_FAULT_ERROR", "the CP hardware reports a fault"),
    ("CP_REGISTER_PROTECTION_ERROR", "the stream accessed a protected register"),
    ("CP_AHB_ERROR", "a register access failed on the AHB bus"),
    ("CP_VSD_PARITY_ERROR", "parity error in a visibility stream"),
    ("CP_ILLEGAL_INSTR_ERROR", "the CP executed an illegal firmware instruction"),
    ("CP_HW_ERROR", "the CP raised an error interrupt"),
    ("UCHE_OOB_ACCESS", "UCHE saw an access out of bounds"),
    ("UCHE_TRAP_INTR", "a shader accessed the trap address range"),
    ("RBBM_HANG_DETECT", "the hardware's own hang detector fired"),
    ("RBBM_ATB_BUS_OVERFLOW", "the trace bus overflowed"),
    ("TSBWRITEERROR", "a timestamp buffer write failed"),
    ("SWFUSEVIOLATION", "a feature that is fused off was used"),
];

fn error_interrupt(f: &Finding) -> Words {
    let error = f.args.text("error").unwrap_or_default();
    let meaning = ERRORS.iter().find(|(name, _)| *name == error).map_or("an error interrupt", |row| row.1);
    Words::new(format!("{meaning} ({})", f.args.text("flag").unwrap_or(error)), "")
}

fn cp_hw_fault(f: &Finding) -> Words {
    let value = f.args.number("value").unwrap_or(0);
    Words::new(format!("the CP hardware reports a fault: CP_HW_FAULT = {value:#x}"), "")
}

fn ir3_check_rule(f: &Finding) -> Option<&'static RuleInfo> {
    let name = f.args.text("check")?;
    RULES.iter().find(|rule| rule.name == name)
}

/// What is wrong at an instruction of a shader, and which made it so.
fn ir3_code(f: &Finding, wrong: &str) -> Words {
    let args = &f.args;
    let text = |name| args.text(name).unwrap_or("the end of the code");
    let mut why = Vec::new();
    if let Some(first) = args.number("first") {
        why.push(format!("because of {} at +{first:#x}", text("first_instruction")));
    }
    why.push("whether a wave was there is not known".to_owned());
    match (args.text("wait"), args.number("cycles"), ir3_check_rule(f).map_or("", |rule| rule.cure)) {
        (Some(wait), ..) => why.push(format!("fix: set {wait} on it, or on a nop before it")),
        (None, Some(cycles), _) => {
            why.push(format!("fix: {} of nops before it", counted(cycles, "cycle", "cycles")));
        }
        (None, None, "") => {}
        (None, None, cure) => why.push(format!("fix: {cure}")),
    }
    if let Some(more) = args.number("more") {
        why.push(format!("{more} more like it in this code: unwedge ir3 check shows all"));
    }
    let address = args.number("address").unwrap_or(0);
    let offset = args.number("offset").unwrap_or(0);
    let stage = args.text("stage").unwrap_or_default().replace('-', " ");
    let check = args.text("check").unwrap_or_default();
    let at = format!("the {stage} shader at {address:#x}+{offset:#x}");
    Words::new(format!("{} in {at} {wrong} (rule {check})", text("instruction")), why.join("; "))
}

fn protected_register(f: &Finding) -> Words {
    let access = if f.args.flag("read") { "read" } else { "wrote" };
    let register = f.args.text("register").unwrap_or_default();
    let title = format!("the stream {access} a register that it may not access: {register}");
    match f.args.record("origin") {
        Some(origin) => {
            let at = origin.number("iova").map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
            let packet = origin.text("packet").unwrap_or("the packet");
            Words::new(
                title,
                format!(
                    "CP_PROTECT_STATUS has the refused access; {packet}{at}, where the CP stopped, is one to this register."
                ),
            )
        }
        None => Words::new(
            title,
            "CP_PROTECT_STATUS keeps the last refused access, which may be older than this hang.",
        ),
    }
}

// ---- Faults of the IOMMU ----

/// What the units that kernels name as a fault's source read or write.
const SOURCES: &[(&str, &str)] = &[
    ("TP", "texture fetch"),
    ("VFD", "vertex fetch"),
    ("SP", "shader load, store or instruction fetch"),
    ("PC", "index or visibility stream fetch"),
    ("VPC", "stream-out"),
    ("HLSQ", "constant or state load"),
    ("CCU", "render target"),
    ("RB", "render target"),
    ("LRZ", "LRZ buffer"),
    ("VSC", "visibility stream"),
    ("CP", "command stream or memory packet"),
    ("CDP", "prefetch of draw state or constants"),
    ("UCHE", "access through UCHE"),
    ("FLAG", "flag buffer of a compressed surface"),
    ("GMU", "the GMU's firmware, not the stream"),
];

/// The source as the kernel names it, and what those units access: `TP|VFD (texture fetch or vertex fetch)`.
fn fault_source(f: &Finding) -> Option<String> {
    let source = f.args.text("source")?;
    let meaning = |arg: &Arg| match arg {
        Arg::Name(unit) => SOURCES.iter().find(|(name, _)| *name == &**unit).map(|(_, meaning)| *meaning),
        _ => None,
    };
    // A unit that is not known leaves the meaning open.
    let meanings: Option<Vec<&str>> = f.args.list("units").iter().map(meaning).collect();
    Some(match meanings.filter(|meanings| !meanings.is_empty()) {
        Some(meanings) => format!("{source} ({})", meanings.join(" or ")),
        None => source.to_owned(),
    })
}

fn buffer(f: &Finding) -> String {
    let Some(args) = f.args.record("buffer") else { return "a buffer".to_owned() };
    let name = args.text("name").map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let (start, end) = (args.number("start").unwrap_or(0), args.number("end").unwrap_or(0));
    format!("buffer {start:#x}…{end:#x}{name}")
}

fn distance(f: &Finding) -> u64 {
    f.args.number("distance").unwrap_or(0)
}

fn into_buffer(f: &Finding) -> String {
    format!("{:#x} into {}", distance(f), buffer(f))
}

/// A fault at a place of memory. What the VM log has of the address follows the reason.
fn iommu_fault(f: &Finding, place: &str, why: &str) -> Words {
    let iova = f.args.number("iova").unwrap_or(0);
    let log = f.args.text("vm_log");
    let history =
        log.map(|line| format!("The last entry of the VM log for it is: {line}.")).unwrap_or_default();
    let holder = f.args.text("holder").map(|holder| match f.args.number("holder_distance") {
        None | Some(0) => format!("{holder} holds exactly that address."),
        Some(distance) => format!("{holder} points {distance:#x} below it."),
    });
    let access = match (f.args.text("direction"), fault_source(f)) {
        (Some(direction), Some(unit)) => format!("{direction} by {unit}"),
        (Some(direction), None) => direction.to_owned(),
        (None, Some(unit)) => format!("access by {unit}"),
        (None, None) => "access".to_owned(),
    };
    let title = format!("IOMMU fault: {access} at {iova:#x}, {place}");
    let parts = [history, holder.unwrap_or_default(), fault_users(f), fault_neighbours(f)];
    let parts: Vec<&str> = std::iter::once(why).chain(parts.iter().map(String::as_str)).collect();
    Words::new(title, sentences(&parts))
}

/// What of the stream points at a faulting address.
fn fault_users(f: &Finding) -> String {
    let origin = f.args.record("origin");
    let gives = origin.map(|origin| {
        let at = origin.number("iova").map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
        let packet = origin.text("packet").unwrap_or("The packet");
        match origin.text("gives") {
            Some("stream") => format!("{packet}{at} calls a stream there."),
            Some("draw-state") => format!("{packet}{at} sets a draw-state group there."),
            Some("work") => format!("{packet}{at} started the work that is stalled."),
            _ => format!("{packet}{at}, where the CP stopped, accesses it."),
        }
    });
    // The packet at the stop is named once.
    let same = |writer: &&Args| origin.is_none_or(|origin| origin.number("iova") != writer.number("iova"));
    let writer = f.args.record("writer").filter(same).map(|writer| {
        let at = writer.number("iova").map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
        format!("{}{at} writes this address.", writer.text("packet").unwrap_or("A packet"))
    });
    let target = f.args.record("target").map(|target| {
        let register = target.text("register").unwrap_or("its target");
        let place = match target.number("distance") {
            None | Some(0) => "there".to_owned(),
            Some(distance) => format!("{distance:#x} below it"),
        };
        format!(
            "The last work with a target near it is {}, whose {register} is {place}.",
            work(target, false)
        )
    });
    gives.into_iter().chain(writer).chain(target).collect::<Vec<_>>().join(" ")
}

/// The buffers before and after a faulting address that is in none.
fn fault_neighbours(f: &Finding) -> String {
    let of = |key: &str| {
        let args = f.args.record(key)?;
        let name = args.text("name").map(|name| format!(" \"{name}\"")).unwrap_or_default();
        let start = args.number("start").unwrap_or(0);
        let size = args.number("size").unwrap_or(0);
        Some((format!("{start:#x}{name} ({size:#x} bytes)"), args.number("gap").unwrap_or(0)))
    };
    let before = of("before").map(|(buffer, gap)| format!("{buffer} ends {gap:#x} before it"));
    let after = of("after").map(|(buffer, gap)| format!("{buffer} starts {gap:#x} after it"));
    let both: Vec<String> = before.into_iter().chain(after).collect();
    if both.is_empty() { String::new() } else { format!("Buffer {}.", both.join("; ")) }
}

// ---- What the CP waits for ----

/// `[0x1000] & 0xff == 0x1`
fn wait(args: &Args) -> String {
    let operand = match (args.text("register"), args.number("iova"), args.number("on_chip")) {
        (Some(register), ..) => register.to_owned(),
        (None, Some(iova), _) => format!("[{iova:#x}]"),
        (None, None, at) => format!("on-chip {:#x}", at.unwrap_or(0)),
    };
    let mask = args.number("mask").map(|mask| format!(" & {mask:#x}")).unwrap_or_default();
    let relation = args.text("relation").unwrap_or("?");
    format!("{operand}{mask} {relation} {:#x}", args.number("reference").unwrap_or(0))
}

/// `CP_WAIT_REG_MEM waits for [0x1000] == 0x1`
pub(super) fn packet_wait(args: &Args) -> String {
    let packet = args.text("packet").unwrap_or("a packet");
    format!("{packet} waits for {}", args.record("waits_for").map(wait).unwrap_or_default())
}

/// Who could still write the awaited value.
fn writers(f: &Finding) -> String {
    let idle = f.args.flag("idle_downstream");
    let blocks = if idle { "All blocks downstream of the CP are idle." } else { "" };
    let writer = match f.args.record("writer") {
        Some(writer) => {
            let packet = writer.text("packet").unwrap_or("a packet");
            let at = writer.number("iova").map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
            let what = what_is_written(writer);
            match writer.text("order") {
                Some("later") => format!("{packet}{at}, after the wait, writes {what}."),
                Some("other-ring") => {
                    let ring = writer.number("ring").unwrap_or(0);
                    format!("{packet}{at} of ring {ring} writes {what}.")
                }
                Some(_) | None => format!("{packet}{at}, before the wait, writes {what}."),
            }
        }
        None if f.args.flag("no_writer") => {
            let shader = if idle { "" } else { "a shader, a blit, " };
            format!(
                "No packet in the dump writes this address, so only {shader}the CPU, another process or another queue could."
            )
        }
        None => String::new(),
    };
    sentences(&[blocks, &writer])
}

/// What memory holds of what is waited for.
fn now_there(f: &Finding) -> String {
    match f.args.number("value") {
        Some(now) => format!("The dump has {now:#x} there."),
        None => "The value there is not in the dump.".to_owned(),
    }
}

/// The value that the packet writes which a wait is about.
fn written(f: &Finding) -> u64 {
    f.args.record("writer").and_then(|writer| writer.number("written")).unwrap_or(0)
}

fn cp_waits_for_value(f: &Finding, value: &str, why: &str) -> Words {
    let packet = f.args.text("packet").unwrap_or("a packet");
    let wanted = f.args.record("waits_for").map(wait).unwrap_or_default();
    Words::new(format!("the CP waits in {packet} for {wanted}: {value}"), why)
}

fn cp_waits_for(f: &Finding, awaited: &str) -> Words {
    let packet = f.args.text("packet").unwrap_or("a packet");
    Words::new(format!("the CP waits in {packet} for {awaited}"), "The culprit is upstream of this packet.")
}

// ---- Work in flight ----

fn own_work(f: &Finding, verb: &str) -> Words {
    let work = f.args.record("work").map(|args| work(args, true)).unwrap_or_default();
    Words::new(format!("{verb} {work}"), state(f))
}

fn blit_not_finished(f: &Finding) -> Words {
    let state = || records(f.args.list("state"));
    let format = state().find_map(|register| register.text("format"));
    let target = state().find(|r| {
        r.number("address").is_some() && r.text("register").is_some_and(|name| name.contains("DST"))
    });
    let to = format.map(|format| format!(" to {format}")).unwrap_or_default();
    let at = target.and_then(|r| r.number("address")).map(|at| format!(" at {at:#x}")).unwrap_or_default();
    let number = f.args.record("work").and_then(|work| work.number("number")).unwrap_or(0);
    let packet = f.args.record("work").and_then(|work| work.text("packet")).unwrap_or("CP_BLIT");
    Words::new(
        format!("blit {number} ({packet}{to}{at}) never finished"),
        "The PS cluster has not taken the end of a 2D event, and this is the last blit that was sent.",
    )
}

fn work_may_be_running(f: &Finding) -> Words {
    let newest = f.args.record("work").map(|args| work(args, true)).unwrap_or_default();
    let pieces = match f.args.number("open") {
        None | Some(1) => "1 piece of earlier work".to_owned(),
        Some(n) => format!("{n} pieces of earlier work"),
    };
    let pending = match f.args.number("pending_waits") {
        None | Some(0) => String::new(),
        Some(n) => format!(" ({n} more sent, but still queued)"),
    };
    let why = format!("No CP_WAIT_FOR_IDLE after it is known to be complete{pending}.");
    let newest = if pieces.starts_with("1 ") { newest } else { format!("the newest is {newest}") };
    let title = format!("{pieces} may still be running: {newest}");
    Words::new(title, sentences(&[&why, &state(f)]))
}

fn bv_thread_at(f: &Finding) -> Words {
    let packet =
        f.args.text("packet").map(str::to_owned).unwrap_or_else(|| {
            format!("{:#010x} (not a valid packet)", f.args.number("header").unwrap_or(0))
        });
    let queued = f.args.number("queued").map(|n| format!("; {n} of its register writes are queued"));
    Words::new(
        format!("the BV thread is executing {packet}{}", queued.unwrap_or_default()),
        "BV runs ahead through the binning pass, or waits for BR.",
    )
}

fn bv_waits_for_value(f: &Finding) -> Words {
    let packet = f.args.text("packet").unwrap_or("a packet");
    let wanted = f.args.record("waits_for").map(wait).unwrap_or_default();
    let at = f.args.number("iova").map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
    let value = match f.args.number("value") {
        Some(value) => format!("it is {value:#x}"),
        None => "its value is not captured".to_owned(),
    };
    let places = match f.args.number("places") {
        None | Some(1) => String::new(),
        Some(n) => {
            format!("{n} packets fit the headers that its SQE remembers; this is the first that waits.")
        }
    };
    Words::new(
        format!("the BV thread waits in {packet}{at} for {wanted}: {value}"),
        sentences(&["What BR is at is not this packet: it has gone on, or waits for BV.", &places]),
    )
}

fn queued_writes(f: &Finding) -> Words {
    let empty = Args::new();
    let longest = f.args.record("longest").unwrap_or(&empty);
    let next = match (longest.text("next"), longest.number("value")) {
        (Some(register), Some(value)) => format!("{register} = {value:#x}"),
        _ => String::new(),
    };
    Words::new(
        format!(
            "{} register {} still queued; CLUSTER_{} is furthest behind ({}; next is {next})",
            f.args.number("total").unwrap_or(0),
            if f.args.number("total") == Some(1) { "write" } else { "writes" },
            longest.text("cluster").unwrap_or("?"),
            longest.number("queued").unwrap_or(0),
        ),
        "The cluster with the longest queue is usually the one that stalled.",
    )
}

// ---- The GMU ----

fn gmu_start_result(f: &Finding) -> Words {
    let result = f.args.number("result").unwrap_or(0);
    Words::new(format!("the GMU firmware's start result is {result:#x}"), "Its boot did not end as usual.")
}

fn gmu_error_message(f: &Finding) -> Words {
    let code = f.args.number("code").unwrap_or(0);
    Words::new(format!("the GMU sent an error message, code {code:#x}"), "")
}

fn gmu_refused_message(f: &Finding) -> Words {
    let (message, error) = (f.args.number("message").unwrap_or(0), f.args.number("error").unwrap_or(0));
    Words::new(format!("the GMU refused message {message} with error {error:#x}"), "")
}

// ---- Rings and fences ----

const OTHER_RING: &str = "It is not the ring the CP was reading: preempted, or not scheduled yet.";

fn ring(f: &Finding) -> String {
    match f.subject {
        Subject::Ring(id) => format!("ring {id}"),
        _ => "a ring".to_owned(),
    }
}

fn open_submits(f: &Finding) -> String {
    match f.args.number("open") {
        Some(1) => "1 submit pending".to_owned(),
        n => format!("{} submits pending", n.unwrap_or(0)),
    }
}

/// `ring 0: the CP is in the submit of fence 5425, 6th of 8 pending`
fn submits_open(f: &Finding) -> String {
    let open = f.args.number("open").unwrap_or(0);
    match (f.args.number("hung_fence"), f.args.number("nth")) {
        (Some(fence), Some(1)) if open == 1 => {
            format!("{}: the CP is in the submit of fence {fence}, the only one pending", ring(f))
        }
        (Some(fence), Some(nth)) => {
            format!(
                "{}: the CP is in the submit of fence {fence}, {} of {open} pending",
                ring(f),
                ordinal(nth)
            )
        }
        _ => format!("{}: {}, oldest fence {}", ring(f), open_submits(f), oldest_fence(f)),
    }
}

fn oldest_fence(f: &Finding) -> String {
    f.args.number("oldest_fence").map_or_else(|| "unknown".to_owned(), |n| n.to_string())
}

fn write_pointer_not_seen(f: &Finding) -> Words {
    let ring = match f.subject {
        Subject::Ring(id) => id,
        _ => 0,
    };
    let (given, written) = (f.args.number("given").unwrap_or(0), f.args.number("written").unwrap_or(0));
    Words::new(
        format!("ring {ring}: the write pointer of the CP is {given}, that of the kernel {written}"),
        "The last submits did not reach the hardware: the GPU lost power or its state, or the ring was being switched.",
    )
}

// ---- What is missing ----

fn ib_not_captured(f: &Finding) -> Words {
    let (level, base) = (f.args.text("level").unwrap_or("IB"), f.args.number("base").unwrap_or(0));
    Words::new(
        format!("the contents of {level} at {base:#x}"),
        "Its packets are unknown; the kernel dumps the buffers of the hung submit only.",
    )
}

/// Which sections are not there, with the reason where it matters: an absent fault says something only where the kernel
/// records faults.
fn sections_not_captured(f: &Finding) -> Words {
    let one = |args: &Args| {
        let name = args.text("section").unwrap_or_default();
        let since = args.text("since").unwrap_or("?");
        match (args.text("absence"), name == "fault-info") {
            (Some("dump-cut"), true) => {
                format!("{name} (unknown, the dump ends before it)")
            }
            (Some("dump-cut"), false) => format!("{name} (the dump ends before it)"),
            (Some("kernel-too-old"), true) => {
                format!(
                    "{name} (this kernel does not record IOMMU faults; Linux {since} is the first that does)"
                )
            }
            (Some("kernel-too-old"), false) => format!("{name} (since Linux {since})"),
            (Some("kernel-unknown"), true) => {
                format!("{name} (no IOMMU fault was recorded, or the kernel is older than Linux {since})")
            }
            (Some("kernel-unknown"), false) => format!("{name} (since Linux {since})"),
            (_, true) => format!("{name} (no IOMMU fault was recorded)"),
            (_, false) => name.to_owned(),
        }
    };
    let names: Vec<String> = records(f.args.list("sections")).map(one).collect();
    Words::new(names.join(", "), "")
}

/// Contents that end before they should, and the dword there that would be the next.
fn contents_cut(f: &Finding) -> Words {
    let contents = match f.args.number("base") {
        Some(base) => format!("the buffer at {base:#x}"),
        None => ring(f),
    };
    let captured = f.args.number("captured").unwrap_or(0);
    let last = f.args.number("dwords").unwrap_or(0).saturating_sub(1);
    let title = match f.args.flag("cut") {
        true => format!("dwords {captured}…{last} of {contents}, where the dump ends"),
        false => format!("dwords {captured}…{last} of {contents}, whose text is damaged there"),
    };
    let why = match f.args.number("stop") {
        Some(stop) => format!("The CP is at dword {stop}, which was not captured."),
        None => String::new(),
    };
    Words::new(title, why)
}

fn stream_loops(f: &Finding) -> Words {
    let packet = f.args.text("packet").unwrap_or("a packet");
    let at = f.args.number("from").map(|iova| format!(" at {iova:#x}")).unwrap_or_default();
    let target = f.args.number("target").unwrap_or(0);
    let why = match f.args.flag("chained") {
        true => "The chain leads back to a buffer that it has been through, and no packet in it ends it.",
        false => "The buffer is called from inside of itself, so the calls never return.",
    };
    Words::new(format!("endless loop: {packet}{at} goes back to {target:#x}"), why)
}

// ---- What to try next ----

/// Options of both drivers, as far as the advice has them: `TU_DEBUG=sysmem FD_MESA_DEBUG=sysmem`.
fn options(args: &Args) -> String {
    let turnip = args.text("turnip").map(|option| format!("TU_DEBUG={option}"));
    let freedreno = args.text("freedreno").map(|option| format!("FD_MESA_DEBUG={option}"));
    turnip.into_iter().chain(freedreno).collect::<Vec<_>>().join(" ")
}

/// What to do and what it will tell, for advice on Adreno.
pub(super) fn advice(id: AdviceId, args: &Args) -> Option<(String, String)> {
    let plain = |action: &str, reason: &str| (action.to_owned(), reason.to_owned());
    let option = |reason: &str| (options(args), reason.to_owned());
    Some(match id {
        AdviceId::DecodeAroundHang => {
            plain("unwedge decode FILE --around hang", "shows the packets and the state around the stop")
        }
        AdviceId::QueryWork => (
            format!(
                "unwedge query FILE '{}' --draw {}",
                args.text("registers").unwrap_or_default(),
                args.number("number").unwrap_or(0)
            ),
            "shows the state of the suspected work".to_owned(),
        ),
        AdviceId::CaptureHungSubmit => plain(
            "sudo cat /sys/kernel/debug/dri/0/hangrd > hang.rd",
            "captures the command stream as submitted, to see whether it was already corrupt",
        ),
        AdviceId::CaptureAllBuffers => plain(
            "echo Y | sudo tee /sys/module/msm/parameters/rd_full; sudo cat /sys/kernel/debug/dri/0/hangrd > hang.rd",
            "captures the submit with all its buffers, to find who made that address",
        ),
        AdviceId::CaptureEarlierSubmits => plain(
            "sudo cat /sys/kernel/debug/dri/0/rd > all.rd",
            "captures the submits before it: one of them should have written the awaited value",
        ),
        AdviceId::SerializeWork => match args.number("pieces") {
            Some(n) => (
                options(args),
                format!("serializes the work: narrows the range from {n} pieces of work to 1"),
            ),
            None => option("serializes the work, so that the stop is at the culprit"),
        },
        AdviceId::RenderToSysmem => {
            option("does it hang without tiling? separates GMEM, binning and resolves")
        }
        AdviceId::RenderToGmem => option("does it hang with tiling? this hang was in sysmem mode"),
        AdviceId::NoBinning => option("excludes the binning pass and its visibility streams"),
        AdviceId::NoLrz => option("excludes LRZ"),
        AdviceId::NoUbwc => option("excludes compressed render targets and their flag buffers"),
        AdviceId::NoBlitEngine => option("takes the 2D engine out of it"),
        AdviceId::ShaderOptimizationsOff => plain(
            "IR3_SHADER_DEBUG=nouboopt,nopreamble,nofp16",
            "excludes three shader optimizations; then bisect them",
        ),
        AdviceId::LongerHangcheck => plain(
            "echo 2000 > /sys/kernel/debug/dri/0/hangcheck_period_ms",
            "waits longer before the kernel calls it a hang: slow work ends, stuck work does not",
        ),
        _ => return None,
    })
}
