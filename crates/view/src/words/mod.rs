//! The sentences of reports: a title and a reason for every rule, the words of evidence and of advice.
//!
//! One function a rule, in the file of its vendor. The table below has no default arm: a rule without words does not
//! compile. Never: a decision; what the words say is in the finding.

mod adreno;
mod amd;
mod head;
mod intel;

pub use head::{database, driver, gpu, process};

use unwedge_postmortem::{Advice, Arg, Args, Evidence, Fact, FieldFact, Finding, HangPoint, Report, Rule};

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
        Rule::UnknownGpu => adreno::unknown_gpu(),
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
    let header = || Some(format!("{:#010x} (no packet)", hang.header?));
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
        Fact::Register { name, fields, .. } => {
            format!("{name} = {}", fields.iter().map(field).collect::<Vec<_>>().join(" | "))
        }
        Fact::Dwords { first, count, packet, .. } => match (packet, first) {
            (Some(packet), Some(first)) => format!("{packet} at dword {first:#x}"),
            (Some(packet), None) => packet.clone(),
            (None, Some(first)) => format!("{count} dwords at dword {first:#x}"),
            (None, None) => format!("{count} dwords"),
        },
        Fact::Field { name, value: arg } => format!("{name}: {}", value(arg)),
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

/// What to do, ready to paste. `file` is what commands call the dump; without it they say FILE.
pub fn action(advice: &Advice, file: Option<&str>) -> String {
    let by_rule = advice.id.and_then(|id| amd::advice(id, &advice.args));
    let action = by_rule.map_or_else(|| advice.action.clone(), |(action, _)| action);
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
    let by_rule = advice.id.and_then(|id| amd::advice(id, &advice.args));
    by_rule.map_or_else(|| advice.reason.clone(), |(_, reason)| reason.to_owned())
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
