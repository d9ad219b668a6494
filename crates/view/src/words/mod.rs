//! The sentences of reports: a title and a reason for every rule, the words of evidence and of advice.
//!
//! One function a rule, in the file of its vendor, which has a table of its rules without a default arm: a rule without
//! words does not compile. Never: a decision; what the words say is in the finding.

pub mod absent;
mod adreno;
mod amd;
mod compare;
mod head;
mod intel;
#[cfg(feature = "sim")]
pub mod lint;

pub use compare::{aspect, aspect_name};
pub use head::{amd_gpu, database, driver, gpu, gpu_name, process};

use crate::plural::counted;
use unwedge_postmortem::{
    Advice, Arg, Args, Evidence, Fact, FieldFact, Finding, FindingKind, HangPoint, LevelPosition, Report,
    Rule, Trust, VendorRule,
};

/// The words of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// One line, for the verdict.
    pub title: String,
    /// Why, in whole sentences; may be empty.
    pub why: String,
}

impl Words {
    fn new(title: impl Into<String>, why: impl Into<String>) -> Words {
        Words { title: title.into(), why: sentence(&why.into()) }
    }

    /// With reasons that are a sentence each.
    fn because(title: impl Into<String>, why: impl IntoIterator<Item = String>) -> Words {
        let why: Vec<String> =
            why.into_iter().map(|part| sentence(&part)).filter(|s| !s.is_empty()).collect();
        Words { title: title.into(), why: why.join(" ") }
    }
}

/// A text with a capital letter and a full stop, as far as its first word is one of the language: `CP_NOP` and `v_mov_b32`
/// stay as they are.
fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let word = first.trim_end_matches([',', ':', ';', '.']).trim_end_matches("'s");
    let mut out = text.to_owned();
    if !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_lowercase())
        && let Some(letter) = out.get_mut(..1)
    {
        letter.make_ascii_uppercase();
    }
    if !text.is_empty() && !text.ends_with(['.', ':', '?', '!']) {
        out.push('.');
    }
    out
}

/// The words of a finding of a report.
pub fn finding(report: &Report, f: &Finding) -> Words {
    match f.rule.by_vendor() {
        VendorRule::Adreno(rule) => adreno::words(report, f, rule),
        VendorRule::Amd(rule) => amd::words(report, f, rule),
        VendorRule::Intel(rule) => intel::words(f, rule),
    }
}

/// What stands for the cause where no finding explains the hang: that it is not known, and what to look at first.
pub fn unknown_cause(report: &Report) -> String {
    let Some(suspect) = report.suspect.and_then(|at| report.findings.get(at)) else {
        return "not known: nothing in the dump explains the hang".to_owned();
    };
    let packet = report.hang.as_ref().and_then(|hang| hang.packet.clone());
    let packet = suspect.args.text("packet").or(suspect.args.text("command")).map(str::to_owned).or(packet);
    let stopped = match suspect.rule.by_vendor() {
        VendorRule::Intel(_) => "where the engine stopped",
        VendorRule::Adreno(_) | VendorRule::Amd(_) => "where the CP stopped",
    };
    let suspect = match (suspect.kind, packet) {
        (FindingKind::CpWait, Some(packet)) => format!("the wait of {packet}, {stopped}"),
        (FindingKind::CpWait, None) => format!("the wait {stopped}"),
        (FindingKind::InFlight | FindingKind::Suspect, _) => "the shader that the waves are in".to_owned(),
        (_, Some(packet)) => format!("{packet}, {stopped}"),
        (_, None) => "the packet at the stop".to_owned(),
    };
    format!("not known; nearest suspect: {suspect}")
}

/// What is not in a dump, and why: `page faults (kernel 6.8.0 does not record them; Linux 6.10 is the first that does)`.
/// `them` is the pronoun for it; `nothing` is said where the kernel could have recorded it.
fn not_captured(args: &Args, what: &str, them: &str, nothing: &str) -> String {
    let kernel =
        args.text("kernel").map_or_else(|| "this kernel".to_owned(), |kernel| format!("kernel {kernel}"));
    let since = args.text("since").unwrap_or("?");
    let why = match args.text("absence") {
        Some("dump-cut") => format!("unknown, the dump ends before {them}"),
        Some("kernel-too-old") => {
            format!("{kernel} does not record {them}; Linux {since} is the first that does")
        }
        Some("kernel-unknown") if nothing.is_empty() => {
            format!(
                "kernels before Linux {since} do not record {them}, and the dump does not name its kernel"
            )
        }
        Some("kernel-unknown") => format!("{nothing}, or the kernel is older than Linux {since}"),
        Some("never-written") => format!("the driver does not record {them}"),
        _ => nothing.to_owned(),
    };
    if why.is_empty() { what.to_owned() } else { format!("{what} ({why})") }
}

/// What a packet writes to awaited memory: `0x3 to this address`, or `this address` where the value is not known.
fn what_is_written(writer: &Args) -> String {
    match (writer.number("written"), writer.get("ends")) {
        (Some(value), Some(Arg::Flag(true))) => format!("{value:#x} to this address, which would end it"),
        (Some(value), _) => format!("{value:#x} to this address"),
        (None, _) => "this address".to_owned(),
    }
}

/// What a level of trust means.
pub fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Certain => "the dump states it",
        Trust::Likely => "several independent parts of the dump agree",
        Trust::Possible => "it fits, and so do other readings",
        Trust::Guess => "one of several possibilities",
    }
}

/// Where it hung: `ring 0 › IB1 0x100000000+0x18`, `rcs0 › batch1 0x100000000+0x18`. The offset is in bytes; it is a range
/// where the dump leaves one.
pub fn hang_place(report: &Report, hang: &HangPoint) -> String {
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
        level => format!("{ring} › {} {:#x}{offset}", report.gpu.level_name(level), at.base),
    }
}

/// What stands for the place where nothing says where the GPU stopped.
pub fn unknown_place(report: &Report) -> String {
    let has = |rules: &[Rule]| report.findings.iter().any(|f| rules.contains(&f.rule));
    let registers = [Rule::RegistersNotCaptured, Rule::GpuRegistersMissing, Rule::EnginesMissing];
    let ring = [Rule::RingNotCaptured, Rule::RingPositionNotCaptured, Rule::RingNotNamed];
    match (has(&registers), has(&ring)) {
        (true, true) => "not known: neither registers nor a position in a ring were captured",
        (true, false) => "not known: the registers were not captured",
        (false, _) => "the dump does not say where the GPU stopped",
    }
    .to_owned()
}

/// The packet where it hung, or the dword there that is not one.
pub fn hang_packet(hang: &HangPoint) -> Option<String> {
    let header = || Some(format!("{:#010x} (not a valid packet)", hang.header?));
    hang.packet.clone().or_else(header)
}

/// Where code is: `Pixel Shader+0x8`, `the PS at 0x800120000000+0x8`.
pub fn code_place(place: &Args) -> String {
    amd::code_place(place)
}

/// What a piece of evidence says, in a few words: `CP_IB1_REM_SIZE = 0x5`.
pub fn evidence(e: &Evidence) -> String {
    match &e.fact {
        Fact::Register { name, value, fields } if fields.is_empty() => format!("{name} = {value:#x}"),
        Fact::Register { name, value, fields } if name.contains("INSTDONE") => {
            intel::instdone(name, *value, fields)
        }
        Fact::Register { name, value, fields } => match &fields[..] {
            // The meaning is that of the whole value.
            [FieldFact { name: field, meaning: Some(meaning), .. }] if field == name => {
                format!("{name} = {value:#010x} ({meaning})")
            }
            [FieldFact { meaning: Some(meaning), .. }] => format!("{name} = {meaning}"),
            [FieldFact { name: field, value, meaning: None }] if *value != 1 => {
                format!("{name}.{field} = {value:#x}")
            }
            fields => format!("{name} = {}", fields.iter().map(field).collect::<Vec<_>>().join(" | ")),
        },
        Fact::PacketHeader { register, header, packet, times } => {
            amd::packet_header(register, *header, packet.as_deref(), *times)
        }
        Fact::Dwords { level, first, count, words, packet } => match (packet, first) {
            (Some(packet), Some(first)) => format!("{packet} at dword {first:#x}"),
            (Some(packet), None) => match e.iova.filter(|_| !words.is_empty()) {
                Some(iova) => intel::command(packet, iova, words),
                None => packet.clone(),
            },
            (None, Some(first)) if !words.is_empty() => format!("from dword {first:#x}: {}", hex(words)),
            (None, None) if !words.is_empty() => match e.iova {
                Some(iova) => format!("[{iova:#x}] = {}", hex(words)),
                None => hex(words),
            },
            // A range that the CP is in; elsewhere the section says which stream it is.
            (None, Some(first)) => {
                match level.filter(|_| e.section == "position").map(LevelPosition::name_of) {
                    Some(level) => {
                        let the = if level == "ring" { "the " } else { "" };
                        format!("dwords {first}…{} of {the}{level}", first + count.saturating_sub(1))
                    }
                    None => format!("{} at dword {first:#x}", counted(*count, "dword", "dwords")),
                }
            }
            (None, None) => counted(*count, "dword", "dwords").to_string(),
        },
        Fact::Field { name, value: arg } => format!("{name}: {}", value(arg)),
        Fact::Record(args) if args.record("waits_for").is_some() => adreno::packet_wait(args),
        Fact::Work(args) if args.text("kind").is_some() => adreno::work(args, true),
        Fact::Record(args) | Fact::Work(args) => intel::record(args).unwrap_or_else(|| record(args)),
        Fact::Buffer { size, name: Some(name) } => format!("{name}, {size:#x} bytes"),
        Fact::Buffer { size, name: None } => format!("{size:#x} bytes"),
        Fact::Code { place, words, text } => intel::instruction(place, text.as_deref())
            .unwrap_or_else(|| amd::instruction(place, words, text.as_deref())),
        Fact::Wave(args) => amd::wave(args),
        Fact::Line(line) => line.clone(),
        Fact::Absent { name, section: Some(section) } => format!("no {name}: {}", absent::meaning(*section)),
        Fact::Absent { name, section: None } => format!("no {name}"),
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
fn by_id(advice: &Advice) -> (String, String) {
    let id = advice.id;
    let amd = || amd::advice(id, &advice.args).map(|(action, reason)| (action, reason.to_owned()));
    let intel = || intel::advice(id).map(|(action, reason)| (action.to_owned(), reason.to_owned()));
    adreno::advice(id, &advice.args).or_else(amd).or_else(intel).unwrap_or_default()
}

/// What to do, ready to paste. `file` is what commands call the dump; without it they say FILE.
pub fn action(advice: &Advice, file: Option<&str>) -> String {
    let (action, _) = by_id(advice);
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
    by_id(advice).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_postmortem::AdviceId;

    #[test]
    fn advised_commands_name_the_file() {
        let advice = Advice::new(AdviceId::DecodeAroundHang, Args::new());
        let named = |file| action(&advice, file);
        assert_eq!(named(Some("a/crash.devcore.gz")), "unwedge decode a/crash.devcore.gz --around hang");
        assert_eq!(named(Some("it's here")), r"unwedge decode 'it'\''s here' --around hang");
        assert_eq!(named(None), "unwedge decode FILE --around hang");
    }
}
