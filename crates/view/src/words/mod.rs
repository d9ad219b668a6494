//! The sentences of reports: a title and a reason for every rule, the words of evidence and of advice.
//!
//! One function a rule, in the file of its vendor. The table below has no default arm: a rule without words does not
//! compile. Never: a decision; what the words say is in the finding.

mod adreno;
mod amd;
mod head;
mod intel;

pub use head::{database, driver, gpu, process};

use unwedge_postmortem::{
    Advice, Arg, Args, Evidence, Fact, FieldFact, Finding, HangPoint, LevelPosition, Report, Rule,
};

/// The words of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// One line, for the verdict.
    pub title: String,
    /// Why, in one or two sentences; may be empty.
    pub why: String,
}

impl Words {
    fn new(title: impl Into<String>, why: impl Into<String>) -> Words {
        Words { title: title.into(), why: why.into() }
    }
}

/// The words of a finding of a report.
pub fn finding(report: &Report, f: &Finding) -> Words {
    let Some(rule) = f.rule else { return Words::new(&*f.title, &*f.why) };
    match rule {
        // Adreno.
        Rule::UnknownGpu => Words::new(
            "the GPU's generation: the dump has no revision this tool knows",
            "Registers and packets differ by generation; none can be named without it.",
        ),
        Rule::BackEndNotDraining => Words::new(
            "the back end does not drain: RB or CCU are busy, no shader runs, and the front end waits for them",
            "With SP and HLSQ idle, what RB and CCU still hold is earlier work, such as a blit, a resolve or a cache flush that does not finish.",
        ),
        Rule::FrontEndWaitsForMemory => Words::new(
            "the front end waits for memory: index, vertex or visibility data does not arrive",
            "PC, VFD or VPC have work and so has UCHE, and nothing downstream of them does.",
        ),
        Rule::FrontEndStuck => Words::new(
            "the front end is stuck: PC or VFD are busy and nothing downstream is",
            "The draw does not get past primitive and vertex fetch because of a bad draw initiator, index buffer, visibility stream or vertex layout.",
        ),
        Rule::ShadersWaitForTextures => Words::new(
            "shaders wait for textures: SP, TP and UCHE are busy",
            "Shader processors, texture units and the L2 cache all have work open, so memory does not answer a fetch, or a shader is very slow.",
        ),
        Rule::ShadersWaitForMemory => Words::new(
            "shaders wait for memory: SP, UCHE and the bus are busy",
            "Loads or stores are on their way through the L2 cache and are not answered.",
        ),
        Rule::ShaderProcessorsStuck => Words::new(
            "the shader processors are stuck: SP is busy with no memory access open",
            "A shader computes and never ends. It may be in an endless loop, at a barrier that not all waves reach, or waiting for a result that never comes.",
        ),
        Rule::RenderBackendsStuck => Words::new(
            "the render backends are stuck: only RB or CCU are busy",
            "All work is in the back end: a resolve, a cache flush, or writes that memory does not accept.",
        ),
        Rule::RasterizerStuck => Words::new(
            "the rasterizer is stuck: only TSE, RAS or LRZ are busy",
            "Primitives entered rasterization and no fragments leave it. Bad LRZ or scissor state can do that.",
        ),
        Rule::CacheWaitsForMemory => Words::new(
            "UCHE waits for memory: the L2 cache is busy and none of its clients is",
            "Memory does not complete a flush, an invalidation or a write-back.",
        ),
        Rule::SequencerWaits => Words::new(
            "HLSQ is busy with no shader running: it waits for state, constants or instructions",
            "The sequencer has work that it cannot hand to the shader processors.",
        ),
        Rule::CpWaitsOnAhb => Words::new(
            "the CP waits for a register access: it is master on the AHB bus and all other blocks are idle",
            "A register read or write of the CP is not answered, as by a block without clock or power, or at a bad register.",
        ),
        Rule::CpWaitsForMemory => Words::new(
            "the CP waits for memory: only the CP and the bus are busy",
            "A fetch of commands or a memory packet is not answered.",
        ),
        Rule::OnlyCpBusy => Words::new(
            "only the CP is busy: everything downstream of it has finished",
            "The hardware is idle and the CP itself is stuck. The packet at the stop is the one to look at.",
        ),
        Rule::NoBlockBusy => Words::new(
            "no block is busy: the GPU was idle when the dump was taken",
            "It finished late, was not given the work, or lost power. Compare the rings' pointers and fences.",
        ),
        Rule::BlitEngineBusy => Words::new(
            "the 2D engine is busy: a blit does not finish",
            "A2D has work and the shaders have none.",
        ),
        Rule::ShaderProcessorsBusy => {
            Words::new("the shader processors are busy", "Shaders are running or stuck.")
        }
        Rule::GpuNotInitialized => Words::new(
            "the GPU was not initialized when the dump was taken",
            "It did not come up, or was down again by then. What is missing was not read, and registers that are there may belong to a block without clocks.",
        ),
        Rule::GmuWatchdog => Words::new("the GMU's watchdog fired: its firmware stopped", ""),
        Rule::GmuFenceStoppedAccess => Words::new("a register access was stopped at the GMU's fence", ""),
        Rule::GmuBusError => Words::new("an AHB bus error on the GMU's side", ""),
        Rule::GmuProcessorFault => Words::new("the GMU's processor reports a fault", ""),
        Rule::GmuFenceDroppedWrite => Words::new("a register write was dropped at the GMU's fence", ""),
        Rule::GmuMessageUnread => Words::new("the GMU has not read the kernel's last message", ""),
        Rule::HfiDroppedMessages => Words::new("a HFI queue dropped messages", ""),
        Rule::SmmuStalled => Words::new(
            "the IOMMU holds the GPU at a fault",
            "Whatever blocks are busy, a translation fault stalls their access.",
        ),
        Rule::FaultInfoEmpty => Words::new(
            "fault-info is there, but names no fault",
            "An address of zero without direction or type is not evidence of a page fault.",
        ),
        Rule::RegistersNotCaptured => Words::new(
            "registers",
            "Without them neither the position nor the state of the hardware is known.",
        ),
        Rule::RingNotCaptured => Words::new("the ring", "No stream can be walked."),
        Rule::RingDwordsNotCaptured => Words::new("the ring's contents", "No stream can be walked."),
        Rule::CpStopped => adreno::cp_stopped(report, f),
        Rule::PoisonInStream => adreno::garbage_at_stop(f, true),
        Rule::NotAPacket => adreno::garbage_at_stop(f, false),
        Rule::EarlierBadHeaders => adreno::earlier_bad_headers(f),
        Rule::ErrorInterrupt => adreno::error_interrupt(f),
        Rule::CpHwFault => adreno::cp_hw_fault(f),
        Rule::ProtectedRegister => adreno::protected_register(f),
        Rule::IommuFaultNullPage
        | Rule::IommuFaultNotAnAddress
        | Rule::IommuFaultTrapRange
        | Rule::IommuFaultPermission
        | Rule::IommuFaultExternal
        | Rule::IommuFaultUnmappedBuffer
        | Rule::IommuFaultListedBuffer
        | Rule::IommuFaultUseAfterFree
        | Rule::IommuFaultOverrun
        | Rule::IommuFaultUnderrun
        | Rule::IommuFaultBetweenBuffers
        | Rule::IommuFaultOutside
        | Rule::IommuFaultNoBuffers => adreno::iommu_fault(f, rule),
        Rule::CpWaitsForValue | Rule::CpAwaitedValueIsThere | Rule::CpWaitsForUnknownValue => {
            adreno::cp_waits_for_value(f, rule)
        }
        Rule::CpWaitsForWork => adreno::cp_waits_for(f, "earlier work to finish"),
        Rule::CpWaitsForRegisterWrites => adreno::cp_waits_for(f, "earlier register writes to land"),
        Rule::CpWaitsForWaits => adreno::cp_waits_for(f, "earlier waits to end"),
        Rule::GmuStartResult => adreno::gmu_start_result(f),
        Rule::GmuErrorMessage => adreno::gmu_error_message(f),
        Rule::GmuRefusedMessage => adreno::gmu_refused_message(f),
        Rule::BlitNotFinished => adreno::blit_not_finished(f),
        Rule::WorkMayBeRunning => adreno::work_may_be_running(f),
        Rule::QueuedWrites => adreno::queued_writes(f),
        Rule::WorkStarting => adreno::own_work(f, "the CP was starting"),
        Rule::WorkLastSent => adreno::own_work(f, "the last work sent was"),
        Rule::BvThreadAt => adreno::bv_thread_at(f),
        Rule::FenceNotRetired
        | Rule::SubmitsOpen
        | Rule::SubmitsComplete
        | Rule::FencesNotCaptured
        | Rule::OtherRingWaits
        | Rule::OtherRingUnread => adreno::ring_progress(f, rule),
        Rule::WritePointerNotSeen => adreno::write_pointer_not_seen(f),
        Rule::IbNotCaptured => adreno::ib_not_captured(f),
        Rule::SectionsNotCaptured => adreno::sections_not_captured(f),
        // AMD.
        Rule::JobTimedOut => amd::job_timed_out(report, f),
        Rule::QueueHungAfterTracePoint => amd::queue_hung_after_trace_point(report, f),
        Rule::DwordsNotPackets => amd::dwords_not_packets(f),
        Rule::GpuvmFault => amd::gpuvm_fault(f, ""),
        Rule::GpuvmUseAfterFree => {
            amd::gpuvm_fault(f, "the page is in a buffer that was destroyed: use after free")
        }
        Rule::GpuvmUnmappedRange => amd::gpuvm_fault(f, "the page is in a sparse range that was unmapped"),
        Rule::GpuvmNoBuffer => amd::gpuvm_fault(f, "no buffer was ever there"),
        Rule::PacketWaitsForOtherQueue => amd::packet_waits_for_other_queue(f),
        Rule::PacketWaitsForLaterWrite => amd::packet_waits_for_later_write(f),
        Rule::PacketWaitsForEarlierWrite => amd::packet_waits_for_earlier_write(f),
        Rule::PacketWaitsForRegister => amd::packet_waits_for_register(f),
        Rule::MeWaitsForShaders => amd::stall("the ME waits for shaders to end"),
        Rule::FenceWaitsForPipeline => amd::stall("a fence waits for the pipeline to drain"),
        Rule::MeWaitsForComputeShaders => amd::stall("the ME waits for compute shaders to end"),
        Rule::MeWaitsForPixelShaders => amd::stall("the ME waits for pixel shaders to end"),
        Rule::CacheFlushWaitsForDraws => amd::stall("a cache flush waits for draws to end"),
        Rule::CacheFlushWaitsForCaches => amd::stall("a cache flush waits for caches to be clean"),
        Rule::RegisterContextsInUse => {
            amd::stall("all register contexts are in use by draws that have not ended")
        }
        Rule::MeWaitsForMemoryRead => amd::stall("the ME waits for memory it reads"),
        Rule::MeWaitsForRegisterRead => amd::stall("the ME waits for a register it reads"),
        Rule::MeWaitsForMemoryWrite => amd::stall("the ME waits for a write to arrive in memory"),
        Rule::RegisterViolation => amd::stall("a packet touched a register it must not"),
        Rule::MeWaitsForConstantEngine => amd::stall("the ME waits for the constant engine"),
        Rule::ConstantEngineWaitsForMe => amd::stall("the constant engine waits for the ME"),
        Rule::AddressTranslationOpen => amd::stall("an address translation is open"),
        Rule::CpPolls => amd::stall("the command processor polls until a condition holds"),
        Rule::CodeMissesWait => amd::code_misses_wait(f),
        Rule::CodeBreaksRule => amd::code_breaks_rule(f),
        Rule::WavesWithErrors | Rule::WavesInLoop | Rule::WavesInUnlistedCode | Rule::WavesAtInstruction => {
            amd::waves(f)
        }
        Rule::ShaderException => amd::shader_exception(f),
        Rule::AddressWithoutBuffer => amd::address_without_buffer(f),
        Rule::GrbmWorkDoesNotEnd => {
            amd::busy_blocks(f, "draws or dispatches do not end: the command processor waits for them")
        }
        Rule::GrbmWorkWhilePolling => amd::busy_blocks(f, "work is open while the command processor polls"),
        Rule::GrbmWorkOpen => amd::busy_blocks(f, "draws or dispatches are open"),
        Rule::GrbmCpAlone => amd::grbm_cp_alone(),
        Rule::GrbmIdle => amd::grbm_idle(),
        Rule::SdmaBusy => amd::sdma_busy(f),
        Rule::NoWaves => amd::no_waves(),
        Rule::WorkRunsShaders => amd::work_runs_shaders(f),
        Rule::StoppedBetweenTracePoints => amd::stopped_between_trace_points(f),
        Rule::PassedEveryTracePoint => amd::passed_every_trace_point(f),
        Rule::EngineLastRead => amd::engine_last_read(f),
        Rule::EngineRemembers => amd::engine_remembers(f),
        Rule::JobsOpen | Rule::JobsEnded => amd::jobs(f),
        Rule::VramLost => amd::vram_lost(),
        Rule::AmdGenerationUnknown => Words::new(
            "the GPU's generation",
            "Registers and packets differ by generation; none can be named without it.",
        ),
        Rule::RingNotNamed => Words::new(
            "the ring that timed out",
            "Something other than a job made the kernel reset the GPU, or the name is lost.",
        ),
        Rule::RingContentsMissing => Words::new("the ring's contents", "Its packets are unknown."),
        Rule::VideoRingPackets => Words::new(
            "the packets of this ring",
            "They are for a video engine, whose packets this tool does not know.",
        ),
        Rule::CalledBuffersMissing => {
            Words::new("the buffers that the ring calls", "The kernel dumps them from Linux 6.19 on.")
        }
        Rule::NoFaultRecorded => Words::new("a page fault: the status register is 0, none was recorded", ""),
        Rule::FaultsNotReported => Words::new("page faults: none is reported", ""),
        Rule::GpuRegistersMissing => Words::new("registers", "Which blocks are busy is not known."),
        Rule::WavesMissing => {
            Words::new("waves", "What shaders execute is not known; umr reads them while the GPU hangs.")
        } // Intel.
    }
}

/// Where it hung: `ring 0 › IB1 0x100000000+0x18`, `gfx_0.0.0 › IB1 0x100000000+0x18`. The offset is in bytes; it is a range
/// where the dump leaves one.
pub fn hang_place(hang: &HangPoint) -> String {
    let ring = match (&hang.ring_name, hang.ring) {
        (Some(name), _) => name.clone(),
        (None, Some(id)) => format!("ring {id}"),
        (None, None) => "ring ?".to_owned(),
    };
    let Some(at) = hang.innermost() else { return ring };
    let (first, last) = (at.range.0.saturating_mul(4), at.range.1.saturating_mul(4));
    let offset = match hang.iova.and_then(|iova| iova.checked_sub(at.base)) {
        Some(offset) => format!("+{offset:#x}"),
        None if first == last => format!("+{first:#x}"),
        None => format!("+{first:#x}…{last:#x}"),
    };
    match at.level {
        // A ring with a name is known by it: where it lies is not in the dump.
        0 if hang.ring_name.is_some() => format!("{ring}{offset}"),
        0 => format!("{ring} {:#x}{offset}", at.base),
        _ => format!("{ring} › {} {:#x}{offset}", at.name(), at.base),
    }
}

/// The packet where it hung, or the dword there that is not one.
pub fn hang_packet(hang: &HangPoint) -> Option<String> {
    let header = || Some(format!("{:#010x} (not a valid packet)", hang.header?));
    hang.packet.clone().or_else(header)
}

/// Why it hung, in the titles of the strongest causes: for the reason of the hang point.
pub fn because(report: &Report) -> String {
    let causes = report.causes.iter().filter_map(|&i| report.findings.get(i));
    causes.take(2).map(|f| finding(report, f).title).collect::<Vec<_>>().join("; ")
}

/// Where code is: `Pixel Shader+0x8`, `the PS at 0x800120000000+0x8`.
pub fn code_place(place: &Args) -> String {
    amd::code_place(place)
}

/// What a piece of evidence says, in a few words: `CP_IB1_REM_SIZE = 0x5`.
pub fn evidence(e: &Evidence) -> String {
    match &e.fact {
        Fact::Register { name, value, fields } if fields.is_empty() => format!("{name} = {value:#x}"),
        Fact::Register { name, fields, .. } => match &fields[..] {
            [FieldFact { meaning: Some(meaning), .. }] => format!("{name} = {meaning}"),
            [FieldFact { name: field, value, meaning: None }] if *value != 1 => {
                format!("{name}.{field} = {value:#x}")
            }
            fields => format!("{name} = {}", fields.iter().map(field).collect::<Vec<_>>().join(" | ")),
        },
        Fact::Dwords { level, first, count, words, packet } => match (packet, first) {
            (Some(packet), Some(first)) => format!("{packet} at dword {first:#x}"),
            (Some(packet), None) => packet.clone(),
            (None, Some(first)) if !words.is_empty() => format!("from dword {first:#x}: {}", hex(words)),
            (None, None) if !words.is_empty() => match e.iova {
                Some(iova) => format!("[{iova:#x}] = {}", hex(words)),
                None => hex(words),
            },
            // A range that the CP is in; elsewhere the section says which stream it is.
            (None, Some(first)) => {
                match level.filter(|_| e.section == "position").and_then(LevelPosition::name_of) {
                    Some(level) => {
                        let the = if level == "ring" { "the " } else { "" };
                        format!("dwords {first}…{} of {the}{level}", first + count.saturating_sub(1))
                    }
                    None => format!("{count} dwords at dword {first:#x}"),
                }
            }
            (None, None) => format!("{count} dwords"),
        },
        Fact::Field { name, value: arg } => format!("{name}: {}", value(arg)),
        Fact::Record(args) if args.record("waits_for").is_some() => adreno::packet_wait(args),
        Fact::Work(args) if args.text("kind").is_some() => adreno::work(args, true),
        Fact::Record(args) | Fact::Work(args) => record(args),
        Fact::Buffer { size, name: Some(name) } => format!("{name}, {size:#x} bytes"),
        Fact::Buffer { size, name: None } => format!("{size:#x} bytes"),
        Fact::Code { place, words, text } => amd::instruction(place, words, text.as_deref()),
        Fact::Wave(args) => amd::wave(args),
        Fact::Line(line) => line.clone(),
        Fact::Absent { name, reason: Some(reason) } => format!("no {name}: {reason}"),
        Fact::Absent { name, reason: None } => format!("no {name}"),
        Fact::Prose(what) => what.clone(),
        _ => String::new(),
    }
}

/// Dwords in hexadecimal.
fn hex(words: &[u32]) -> String {
    words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" ")
}

/// A field of a register: its name where it is a bit, else with its value.
fn field(f: &FieldFact) -> String {
    match (&f.meaning, f.value) {
        (Some(meaning), _) => format!("{}({meaning})", f.name),
        (None, 1) => f.name.to_string(),
        (None, value) => format!("{}({value:#x})", f.name),
    }
}

/// Named values: `rptr 0x2, wptr 0x6`.
fn record(args: &Args) -> String {
    args.iter().map(|(name, arg)| format!("{name} {}", value(arg))).collect::<Vec<_>>().join(", ")
}

/// A value by itself.
fn value(arg: &Arg) -> String {
    match arg {
        Arg::Name(name) => name.to_string(),
        Arg::Text(text) => text.clone(),
        Arg::Number(n) => n.to_string(),
        Arg::Value(n) | Arg::Address(n) => format!("{n:#x}"),
        Arg::Flag(flag) => flag.to_string(),
        Arg::List(list) => list.iter().map(value).collect::<Vec<_>>().join(" "),
        Arg::Record(args) => record(args),
    }
}

/// What to do and what it will tell.
fn by_id(advice: &Advice) -> Option<(String, String)> {
    let id = advice.id?;
    let amd = || amd::advice(id, &advice.args).map(|(action, reason)| (action, reason.to_owned()));
    adreno::advice(id, &advice.args).or_else(amd)
}

/// What to do, ready to paste. `file` is what commands call the dump; without it they say FILE.
pub fn action(advice: &Advice, file: Option<&str>) -> String {
    let action = by_id(advice).map_or_else(|| advice.action.clone(), |(action, _)| action);
    match (file, action.split_once(" FILE")) {
        (Some(file), Some((before, after))) => format!("{before} {}{after}", quoted(file)),
        _ => action,
    }
}

/// A file's name as a shell takes it.
fn quoted(file: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@".contains(c);
    if !file.is_empty() && file.chars().all(plain) {
        file.to_owned()
    } else {
        format!("'{}'", file.replace('\'', r"'\''"))
    }
}

/// What it will tell.
pub fn reason(advice: &Advice) -> String {
    by_id(advice).map_or_else(|| advice.reason.clone(), |(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_postmortem::Args;

    #[test]
    fn advised_commands_name_the_file() {
        let named = |file| {
            let action = "unwedge decode FILE --around hang".to_owned();
            let advice = Advice { id: None, args: Args::new(), action, reason: String::new() };
            super::action(&advice, file)
        };
        assert_eq!(named(Some("a/crash.devcore.gz")), "unwedge decode a/crash.devcore.gz --around hang");
        assert_eq!(named(Some("it's here")), r"unwedge decode 'it'\''s here' --around hang");
        assert_eq!(named(None), "unwedge decode FILE --around hang");
    }
}
