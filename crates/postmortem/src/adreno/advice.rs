//! What to try next. Options are those of freedreno's documentation; each is chosen for what the dump shows.

use unwedge_base::Generation;
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::DrawKind;
use unwedge_stream::adreno::Wait;

use crate::adreno::case::Case;
use crate::adreno::hang::Stop;

use crate::prose::{Advice, Finding};
use crate::report::{FindingKind, Trust};

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
pub fn driver(case: &Case<'_>) -> Driver {
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

/// An option of each driver that does the same.
struct Knob {
    turnip: &'static str,
    freedreno: &'static str,
    reason: &'static str,
    /// The first generation that has what it switches off.
    since: Generation,
}

impl Knob {
    fn advice(&self, driver: Driver) -> Option<Advice> {
        let (turnip, freedreno) =
            (format!("TU_DEBUG={}", self.turnip), format!("FD_MESA_DEBUG={}", self.freedreno));
        let action = match (driver, self.turnip, self.freedreno) {
            (Driver::Turnip, "", _) | (Driver::Freedreno, _, "") | (_, "", "") => return None,
            (Driver::Turnip, ..) | (Driver::Unknown, _, "") => turnip,
            (Driver::Freedreno, ..) | (Driver::Unknown, "", _) => freedreno,
            (Driver::Unknown, ..) => format!("{turnip} {freedreno}"),
        };
        Some(Advice { action, reason: self.reason.to_owned() })
    }
}

const SYSMEM: Knob = Knob {
    turnip: "sysmem",
    freedreno: "sysmem",
    reason: "does it hang without tiling? tells GMEM, binning and resolves apart",
    since: Generation::A2xx,
};
const GMEM: Knob = Knob {
    turnip: "gmem",
    freedreno: "gmem",
    reason: "does it hang with tiling? the hang is in the sysmem path now",
    since: Generation::A2xx,
};
const NOBIN: Knob = Knob {
    turnip: "nobin",
    freedreno: "nobin",
    reason: "excludes the binning pass and its visibility streams",
    since: Generation::A2xx,
};
const NOLRZ: Knob =
    Knob { turnip: "nolrz", freedreno: "nolrz", reason: "excludes LRZ", since: Generation::A5xx };
const NOUBWC: Knob = Knob {
    turnip: "noubwc",
    freedreno: "noubwc",
    reason: "excludes compressed render targets and their flag buffers",
    since: Generation::A5xx,
};
const NOBLIT: Knob = Knob {
    turnip: "",
    freedreno: "noblit",
    reason: "takes the 2D engine out of it",
    since: Generation::A5xx,
};

/// What to try next, the most telling first.
pub fn advise(case: &Case<'_>, stop: Option<&Stop>, findings: &[Finding], open: usize) -> Vec<Advice> {
    let driver = driver(case);
    let strong = |kind: FindingKind| findings.iter().any(|f| f.kind == kind && f.trust >= Trust::Possible);
    let sure = |kind: FindingKind| findings.iter().any(|f| f.kind == kind && f.trust >= Trust::Likely);
    let mut out = Vec::new();
    if stop.is_some_and(|s| !s.point.levels.is_empty()) {
        out.push(Advice {
            action: "unwedge decode FILE --around hang".to_owned(),
            reason: "shows the packets and the state around the stop".to_owned(),
        });
    }
    if strong(FindingKind::Gmu) && stop.is_none() {
        return out;
    }
    if sure(FindingKind::CorruptStream) {
        // The position is exact; flushing cannot narrow it.
        out.push(Advice {
            action: "cat /sys/kernel/debug/dri/0/hangrd > hang.rd".to_owned(),
            reason: "captures the submit as the kernel got it: was the stream broken already when it was submitted?"
                .to_owned(),
        });
        return out;
    }
    let waits_for_itself = sure(FindingKind::CpWait) && open == 0;
    if !waits_for_itself {
        let range = match open {
            0 | 1 => "serializes the work, so that the stop is at the culprit".to_owned(),
            n => format!("serializes the work: narrows the range from {n} pieces of work to 1"),
        };
        let knob =
            Knob { turnip: "flushall,syncdraw", freedreno: "flush", reason: "", since: Generation::A2xx };
        out.extend(knob.advice(driver).map(|a| Advice { reason: range, ..a }));
        let knobs = by_scene(stop).into_iter().filter(|knob| knob.since <= case.gpu.generation());
        out.extend(knobs.filter_map(|knob| knob.advice(driver)));
    }
    if findings.iter().any(|f| f.kind == FindingKind::Busy && f.title.contains("shader processors are")) {
        out.push(Advice {
            action: "IR3_SHADER_DEBUG=nouboopt,nopreamble,nofp16".to_owned(),
            reason: "excludes three shader optimizations; then bisect them".to_owned(),
        });
    }
    if strong(FindingKind::Fault) {
        out.push(Advice {
            action:
                "echo Y > /sys/module/msm/parameters/rd_full; cat /sys/kernel/debug/dri/0/hangrd > hang.rd"
                    .to_owned(),
            reason: "captures the submit with all its buffers, to find who made that address".to_owned(),
        });
    }
    if sure(FindingKind::CpWait) && waits_for_memory(case, stop) {
        out.push(Advice {
            action: "cat /sys/kernel/debug/dri/0/rd > all.rd".to_owned(),
            reason: "captures the submits before it: one of them should have written the awaited value"
                .to_owned(),
        });
    }
    out.truncate(5);
    out
}

/// What to try when everything was done by the time the dump was taken.
pub fn finished() -> Vec<Advice> {
    vec![Advice {
        action: "echo 2000 > /sys/kernel/debug/dri/0/hangcheck_period_ms".to_owned(),
        reason: "waits longer before the kernel calls it a hang: tells slow from stuck".to_owned(),
    }]
}

/// The packet at the stop waits for a value that a stream writes to memory.
fn waits_for_memory(case: &Case<'_>, stop: Option<&Stop>) -> bool {
    let packet = stop.and_then(|s| s.scene.packet.as_ref());
    let wait = packet.and_then(|p| Wait::parse(p.op, &p.payload, case.gpu.generation()));
    wait.is_some_and(|w| matches!(w.operand, WaitOperand::Memory(_)))
}

/// Options that the pass and the kind of work suggest.
fn by_scene(stop: Option<&Stop>) -> Vec<Knob> {
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
