//! What to try next. Options are those of freedreno's documentation; each is chosen for what the dump shows.

use unwedge_base::Generation;
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::DrawKind;
use unwedge_stream::adreno::Wait;

use crate::adreno::case::AdrenoCase;
use crate::adreno::hang::CpStop;

use crate::args::{Arg, Args};
use crate::report::{Advice, Finding, HangPoint, Subject, Trust};
use crate::rules::{AdviceId, FindingKind, Rule, RuleRole};

/// Which driver made the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Turnip: Vulkan.
    Turnip,
    /// freedreno: OpenGL.
    Freedreno,
    /// The dump does not tell.
    Unknown,
}

const VULKAN: &[&str] = &["deqp-vk", "vk", "vulkan", "dxvk", "zink", "wine", "proton", "gfxr", "turnip"];
const OPENGL: &[&str] = &[
    "deqp-gles",
    "deqp-egl",
    "glmark",
    "es2gears",
    "glxgears",
    "glcts",
    "piglit",
    "xorg",
    "xwayland",
    "gnome-shell",
    "kwin",
    "mutter",
    "kmscube",
    "surfaceflinger",
    "chrome",
    "egl",
];

/// Guesses the driver from the process. Turnip starts at a6xx.
pub fn driver(case: &AdrenoCase<'_>) -> Driver {
    if case.gpu.generation() < Generation::A6xx {
        return Driver::Freedreno;
    }
    let process =
        [case.dump.comm.as_deref(), case.dump.cmdline.as_deref().and_then(|c| c.split_whitespace().next())];
    let process = process.into_iter().flatten().collect::<Vec<_>>().join(" ").to_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| process.contains(w));
    match (has(VULKAN), has(OPENGL)) {
        (true, false) => Driver::Turnip,
        (false, true) => Driver::Freedreno,
        _ => Driver::Unknown,
    }
}

/// An option of each driver that does the same; empty for a driver that has none.
struct Knob {
    id: AdviceId,
    turnip: &'static str,
    freedreno: &'static str,
    /// The first generation that has what it switches off.
    since: Generation,
}

impl Knob {
    /// The options that the drivers the dump leaves have.
    fn advice(&self, driver: Driver) -> Option<Advice> {
        let (turnip, freedreno) = match driver {
            Driver::Turnip => (self.turnip, ""),
            Driver::Freedreno => ("", self.freedreno),
            Driver::Unknown => (self.turnip, self.freedreno),
        };
        let option = |option: &'static str| (!option.is_empty()).then(|| Arg::name(option));
        let args = Args::new().with_some("turnip", option(turnip)).with_some("freedreno", option(freedreno));
        (!args.is_empty()).then(|| Advice::new(self.id, args))
    }
}

const SERIALIZE: Knob = Knob {
    id: AdviceId::SerializeWork,
    turnip: "flushall,syncdraw",
    freedreno: "flush",
    since: Generation::A2xx,
};
const SYSMEM: Knob =
    Knob { id: AdviceId::RenderToSysmem, turnip: "sysmem", freedreno: "sysmem", since: Generation::A2xx };
const GMEM: Knob =
    Knob { id: AdviceId::RenderToGmem, turnip: "gmem", freedreno: "gmem", since: Generation::A2xx };
const NOBIN: Knob =
    Knob { id: AdviceId::NoBinning, turnip: "nobin", freedreno: "nobin", since: Generation::A2xx };
const NOLRZ: Knob =
    Knob { id: AdviceId::NoLrz, turnip: "nolrz", freedreno: "nolrz", since: Generation::A5xx };
const NOUBWC: Knob =
    Knob { id: AdviceId::NoUbwc, turnip: "noubwc", freedreno: "noubwc", since: Generation::A5xx };
const NOBLIT: Knob =
    Knob { id: AdviceId::NoBlitEngine, turnip: "", freedreno: "noblit", since: Generation::A5xx };

/// The most that is advised.
const MOST: usize = 5;

/// What to try next, the most telling first: what rules advise, if it fits, and options that the scene suggests.
pub fn advise(
    case: &AdrenoCase<'_>,
    stop: Option<&CpStop>,
    findings: &[Finding],
    open: usize,
) -> Vec<Advice> {
    let strong = |kind: FindingKind| findings.iter().any(|f| f.kind == kind && f.trust >= Trust::Possible);
    let sure = |kind: FindingKind| findings.iter().any(|f| f.kind == kind && f.trust >= Trust::Likely);
    let mut out = Vec::new();
    // Of a stop that the dump does not hold there is nothing to show, unless it holds what leads there.
    let held = |point: &HangPoint| {
        (point.packet.is_some() || point.header.is_some()) && !point.levels.is_empty()
            || point.levels.len() > 1
    };
    let stop_is_held = stop.is_some_and(|stop| held(&stop.point));
    if stop_is_held {
        out.push(Advice::new(AdviceId::DecodeAroundHang, Args::new()));
    }
    // Work that a finding is about without suspecting it is at the stop, which the first advice shows.
    let suspects = |f: &&Finding| f.kind == FindingKind::Suspect || f.rule.row().role == RuleRole::Cause;
    out.extend(findings.iter().filter(suspects).find_map(|finding| query_work(case, finding)));
    if strong(FindingKind::Gmu) && stop.is_none() {
        return out;
    }
    // The position in a broken stream is exact; flushing cannot narrow it.
    let broken = sure(FindingKind::CorruptStream);
    let waits_for_itself = sure(FindingKind::CpWait) && open == 0;
    // Options of the driver change nothing about a GPU that did not run.
    let down = |f: &Finding| {
        let kind = matches!(f.kind, FindingKind::Gmu | FindingKind::Device);
        kind && f.trust >= Trust::Likely && f.rule.row().role == RuleRole::Cause
    };
    let idle = |f: &Finding| f.kind == FindingKind::Progress || f.rule == Rule::NoBlockBusy;
    let not_run = findings.iter().any(down) || findings.first().is_some_and(idle);
    if !broken && !waits_for_itself && !not_run {
        let driver = driver(case);
        let pieces = (open > 1).then_some(Arg::Number(open as u64));
        let serialize = SERIALIZE.advice(driver);
        out.extend(serialize.map(|a| Advice { args: a.args.with_some("pieces", pieces), ..a }));
        let knobs = by_scene(stop).into_iter().filter(|knob| knob.since <= case.gpu.generation());
        out.extend(knobs.filter_map(|knob| knob.advice(driver)));
    }
    for finding in findings {
        for &id in finding.rule.row().advice {
            let fits = match id {
                AdviceId::DecodeAroundHang => stop_is_held,
                AdviceId::CaptureHungSubmit => finding.trust >= Trust::Likely,
                _ if broken => false,
                AdviceId::CaptureEarlierSubmits => {
                    finding.trust >= Trust::Likely && waits_for_memory(case, stop)
                }
                _ => true,
            };
            if fits && out.iter().all(|advice: &Advice| advice.id != id) {
                out.push(Advice::new(id, Args::new()));
            }
        }
    }
    out.truncate(MOST);
    out
}

/// The state of a draw, dispatch or blit that a finding is about: its number counts over the hung ring.
fn query_work(case: &AdrenoCase<'_>, finding: &Finding) -> Option<Advice> {
    let Subject::Work { kind, number } = finding.subject else { return None };
    let registers = match kind {
        _ if case.gpu.generation() < Generation::A5xx => return None,
        "blit" => "RB_2D_*",
        "dispatch" => "SP_CS_*",
        "draw" => "RB_MRT[0].*",
        _ => return None,
    };
    let args = Args::new().with("registers", Arg::name(registers));
    Some(Advice::new(AdviceId::QueryWork, args.with("number", Arg::Number(number.into()))))
}

/// What to try when everything was done by the time the dump was taken.
pub fn finished() -> Vec<Advice> {
    vec![Advice::new(AdviceId::LongerHangcheck, Args::new())]
}

/// The packet at the stop waits for a value that a stream writes to memory.
fn waits_for_memory(case: &AdrenoCase<'_>, stop: Option<&CpStop>) -> bool {
    let packet = stop.and_then(|s| s.scene.packet.as_ref());
    let wait = packet.and_then(|p| Wait::parse(p.op, &p.payload, case.gpu.generation()));
    wait.is_some_and(|w| matches!(w.operand, WaitOperand::Memory(_)))
}

/// Options that the pass and the kind of work suggest.
fn by_scene(stop: Option<&CpStop>) -> Vec<Knob> {
    let Some(stop) = stop else { return Vec::new() };
    let mut knobs = Vec::new();
    let blit = stop.scene.work.iter().rev().take(8).any(|w| w.kind == DrawKind::Blit);
    match stop.scene.marker.map(|m| m & 0xf) {
        Some(1) => knobs.push(GMEM),
        Some(2) => knobs.extend([NOBIN, NOLRZ]),
        Some(3..=7) => knobs.extend([SYSMEM, NOLRZ]),
        _ => {}
    }
    if blit {
        knobs.extend([NOUBWC, NOBLIT]);
    }
    knobs
}
