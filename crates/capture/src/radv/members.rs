//! The files of a report, and how one text is taken apart into them.

use crate::amd::text::TextLines;
use std::borrow::Cow;

/// A file of a report, or a part of a text that holds several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportMember<'a> {
    /// Name without its path: `trace.log`.
    pub name: &'a str,
    /// Contents.
    pub bytes: &'a [u8],
    /// Where it stands in the text that it is a part of; 0 for a file.
    pub offset: u64,
}

/// What a file of a report is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberKind {
    /// Text that holds several of these without saying which.
    Everything,
    /// `trace.log`: command streams and how far they got.
    Trace,
    /// `pipeline.log`: shaders of the bound pipeline, waves, descriptors.
    Pipeline,
    /// `umr_waves.log`
    UmrWaves,
    /// `umr_ring.log`
    UmrRing,
    /// `registers.log`
    Registers,
    /// `bo_ranges.log`
    BoRanges,
    /// `bo_history.log`
    BoHistory,
    /// `addr_binding_report.log`
    AddressBindings,
    /// `vm_fault.log`
    VmFault,
    /// `app_info.log`
    AppInfo,
    /// `gpu_info.log`
    GpuInfo,
    /// `dmesg.log`
    Dmesg,
    /// `trap_handler.log`: a shader exception that RADV's trap handler caught.
    TrapHandler,
    /// `shader_dump.log`: the shader of that exception.
    ShaderDump,
    /// `*.spv`: a SPIR-V module, named by its SHA-1.
    Spirv,
}

/// A file that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo<'a> {
    /// Name.
    pub name: Cow<'a, str>,
    /// What it is; `None` for files that reports are not known to have.
    pub kind: Option<MemberKind>,
    /// Where it stands in the text that it is a part of; 0 for a file.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// How many lines say nothing that is known here; of `dmesg.log` most are not about a hang.
    pub other_lines: u64,
}

impl MemberKind {
    /// Names of files, without their ending.
    const NAMES: [(&str, MemberKind); 14] = [
        ("trace", MemberKind::Trace),
        ("pipeline", MemberKind::Pipeline),
        ("umr_waves", MemberKind::UmrWaves),
        ("umr_ring", MemberKind::UmrRing),
        ("registers", MemberKind::Registers),
        ("bo_ranges", MemberKind::BoRanges),
        ("bo_history", MemberKind::BoHistory),
        ("addr_binding_report", MemberKind::AddressBindings),
        ("vm_fault", MemberKind::VmFault),
        ("app_info", MemberKind::AppInfo),
        ("gpu_info", MemberKind::GpuInfo),
        ("dmesg", MemberKind::Dmesg),
        ("trap_handler", MemberKind::TrapHandler),
        ("shader_dump", MemberKind::ShaderDump),
    ];

    /// By the name of a file: `trace.log`, `0123….spv`.
    pub fn from_name(name: &str) -> Option<MemberKind> {
        if name == EVERYTHING {
            return Some(MemberKind::Everything);
        }
        if name.ends_with(".spv") {
            return Some(MemberKind::Spirv);
        }
        let stem = name.strip_suffix(".log").unwrap_or(name);
        MemberKind::NAMES.iter().find(|(known, _)| *known == stem).map(|(_, kind)| *kind)
    }

    /// Whether its absence means something; a report often does without others.
    pub fn is_missed(self) -> bool {
        matches!(
            self,
            MemberKind::Trace
                | MemberKind::Pipeline
                | MemberKind::UmrWaves
                | MemberKind::UmrRing
                | MemberKind::BoHistory
                | MemberKind::VmFault
        )
    }

    /// The kinds of files whose absence means something, with the names of the files.
    pub fn expected() -> impl Iterator<Item = (MemberKind, String)> {
        let missed = MemberKind::NAMES.into_iter().filter(|(_, kind)| kind.is_missed());
        missed.map(|(stem, kind)| (kind, format!("{stem}.log")))
    }

    /// Names of the files of a report: what to look for in a folder, beside `*.spv`.
    pub fn file_names() -> impl Iterator<Item = String> {
        MemberKind::NAMES.iter().map(|(stem, _)| format!("{stem}.log"))
    }
}

/// How a text without parts is called.
const EVERYTHING: &str = "report";
/// What stands on both sides of the headings of parts.
const RULE: &str = "==========";

/// The parts of a text; the text as a whole if it has none.
pub(super) fn of_text(text: &[u8]) -> Vec<ReportMember<'_>> {
    let mut members: Vec<ReportMember<'_>> = Vec::new();
    let mut begin = |name: &'static str, start: usize, end: usize| {
        if let Some(last) = members.last_mut() {
            last.bytes = text.get(last.offset as usize..start).unwrap_or_default();
        }
        members.push(ReportMember { name, bytes: &[], offset: end as u64 });
    };
    for line in TextLines::new(text) {
        let name = line.text.trim().strip_prefix(RULE).and_then(|rest| rest.strip_suffix(RULE));
        let Some(name) = name.map(str::trim) else { continue };
        if let Some((known, _)) = MemberKind::NAMES.iter().find(|(known, _)| *known == name) {
            begin(known, line.span.start as usize, line.span.end as usize);
        }
    }
    match members.last_mut() {
        Some(last) => last.bytes = text.get(last.offset as usize..).unwrap_or_default(),
        None => members.push(ReportMember { name: EVERYTHING, bytes: text, offset: 0 }),
    }
    members
}

/// Whether the start of a file looks like a report that is one text.
pub(super) fn sniff(start: &[u8]) -> bool {
    const SIGNS: [&[u8]; 3] = [b"RADV GPU hang report", b"radv: GPU hang detected", b"radv: GPU hang report"];
    SIGNS.iter().any(|sign| start.windows(sign.len()).any(|w| w == *sign))
}
