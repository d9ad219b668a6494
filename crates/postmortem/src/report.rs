//! The result of a post-mortem. Serializers (text, JSON, later HTML) show exactly this.

use unwedge_base::Diagnostic;

/// How far to trust an inference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// One of several possibilities.
    Guess,
    /// Fits what is there, but other readings do too.
    Possible,
    /// Several independent pieces of the dump agree.
    Likely,
    /// The dump says it.
    Certain,
}

/// What a finding is about. New kinds may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// Where the command processor stopped.
    HangPoint,
    /// The command stream itself is broken.
    CorruptStream,
    /// A fault of the IOMMU or the GPU's own memory management.
    Fault,
    /// The CP waits for memory or a register.
    CpWait,
    /// Which blocks are busy and what that means.
    Busy,
    /// Code of a shader breaks a rule of the GPU.
    CodeFault,
    /// Earlier work that is not known to be done, and may be the culprit.
    Suspect,
    /// What the shaders or the draw in flight do.
    InFlight,
    /// Rings and fences.
    Progress,
    /// Register writes still queued for a cluster.
    QueuedWrites,
    /// The GMU.
    Gmu,
    /// An error interrupt the CP or the GPU raised.
    ErrorInterrupt,
    /// Something the dump does not hold.
    NotCaptured,
}

/// One piece of evidence: what was read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The section of the dump: `registers`, `ringbuffer 0`, `indexed-registers CP_SQE_STAT`.
    pub section: String,
    /// What it says: `CP_IB1_REM_SIZE = 0x5`.
    pub what: String,
    /// GPU address, where one is involved.
    pub iova: Option<u64>,
    /// Byte range of the dump, where it is known.
    pub span: Option<unwedge_base::Span>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// How sure it is.
    pub trust: Trust,
    /// One line, for the verdict.
    pub title: String,
    /// Why, in one or two sentences; may be empty.
    pub why: String,
    /// What was read to come to it.
    pub evidence: Vec<Evidence>,
}

/// Something to try next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// An environment variable setting or a command, ready to paste.
    pub action: String,
    /// What it will tell.
    pub reason: String,
}

/// One level of the hang point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelPosition {
    /// 0 ring, 1 IB1, 2 IB2, 3 draw state (SDS).
    pub level: u8,
    /// Address of the stream.
    pub base: u64,
    /// Dwords of the stream, where known.
    pub size: Option<u64>,
    /// Dword offsets the CP may have stopped in: the first not known to be executed, and the last it may have read.
    pub range: (u64, u64),
}

/// Where the CP stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HangPoint {
    /// Number of the ring, where rings have numbers.
    pub ring: Option<u32>,
    /// Name of the ring or engine, for drivers that have names for them: `gfx_0.0.0`, `rcs0`.
    pub ring_name: Option<String>,
    /// Position in the ring and in every IB that was active.
    pub levels: Vec<LevelPosition>,
    /// The packet there, `CP_WAIT_REG_MEM`, if it decodes.
    pub packet: Option<String>,
    /// Its address.
    pub iova: Option<u64>,
    /// Number of the draw (dispatch, blit, event) in flight, if any was started.
    pub draw: Option<u32>,
    /// How sure.
    pub trust: Trust,
}

/// Code around a place where waves stand, or where work that hangs starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeExcerpt {
    /// `Pixel Shader+0x8`, `the shader at 0x800120000000+0x8`.
    pub place: String,
    /// Address that waves stand at, or that the code starts at.
    pub iova: Option<u64>,
    /// Waves that stand there; 0 for the start of a shader.
    pub waves: usize,
    /// Where the words are from: `pipeline.log`, `waves`, the name of a buffer.
    pub source: String,
    /// What the waves wait for there.
    pub waits: Vec<CounterWait>,
    /// Instructions, in the order of the code.
    pub lines: Vec<CodeLine>,
}

/// An instruction of an excerpt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeLine {
    /// Its address, where one is known.
    pub iova: Option<u64>,
    /// Bytes from the start of the shader, where that is known.
    pub offset: Option<u64>,
    /// Its dwords.
    pub words: Vec<u32>,
    /// Its text; `.long 0x…` for what is no instruction.
    pub text: String,
    /// Waves that stand at it.
    pub waves: usize,
}

/// A counter that an instruction waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterWait {
    /// `vmcnt`, as the instruction names it.
    pub counter: String,
    /// What it may be for the wave to go on.
    pub until: u64,
    /// The lowest and the highest that waves have; `None` where none says.
    pub open: Option<(u64, u64)>,
    /// Waves that it holds back.
    pub waves: usize,
}

/// The verdict on a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `Adreno 630 (a6xx, 6.3.0.2)`.
    pub gpu: String,
    /// `msm, Linux 5.8.0-rc1-c630+`.
    pub kernel: String,
    /// `crashit: ./crashit IB1 4 5`.
    pub process: String,
    /// Which register database was used.
    pub database: String,
    /// Where the CP stopped, if the dump tells.
    pub hang: Option<HangPoint>,
    /// Findings, the most telling first.
    pub findings: Vec<Finding>,
    /// Code that waves stand in, most waves first.
    pub code: Vec<CodeExcerpt>,
    /// What to try next, the most telling first.
    pub advice: Vec<Advice>,
    /// What was malformed or lost in the input.
    pub diagnostics: Vec<Diagnostic>,
}

impl Trust {
    /// The word for people: `certain`, `likely`, `possible`, `guess`.
    pub fn word(self) -> &'static str {
        match self {
            Trust::Guess => "guess",
            Trust::Possible => "possible",
            Trust::Likely => "likely",
            Trust::Certain => "certain",
        }
    }
}

impl FindingKind {
    /// A stable identifier: `hang-point`, `corrupt-stream` …
    pub fn id(self) -> &'static str {
        match self {
            FindingKind::HangPoint => "hang-point",
            FindingKind::CorruptStream => "corrupt-stream",
            FindingKind::Fault => "fault",
            FindingKind::CpWait => "cp-wait",
            FindingKind::Busy => "busy",
            FindingKind::CodeFault => "code-fault",
            FindingKind::Suspect => "suspect",
            FindingKind::InFlight => "in-flight",
            FindingKind::Progress => "progress",
            FindingKind::QueuedWrites => "queued-writes",
            FindingKind::Gmu => "gmu",
            FindingKind::ErrorInterrupt => "error-interrupt",
            FindingKind::NotCaptured => "not-captured",
        }
    }
}

impl LevelPosition {
    /// `ring`, `IB1`, `IB2` or `SDS`.
    pub fn name(&self) -> &'static str {
        ["ring", "IB1", "IB2", "SDS"].get(usize::from(self.level)).copied().unwrap_or("IB3")
    }
}

impl HangPoint {
    /// The innermost level, the one the CP was reading.
    pub fn innermost(&self) -> Option<&LevelPosition> {
        self.levels.last()
    }

    /// `ring 0 › IB1 0x100000000+0x18`, `gfx_0.0.0 › IB1 0x100000000+0x18`; the offset is in bytes. With a range where
    /// the dump leaves one.
    pub fn place(&self) -> String {
        let ring = match (&self.ring_name, self.ring) {
            (Some(name), _) => name.clone(),
            (None, Some(id)) => format!("ring {id}"),
            (None, None) => "ring ?".to_owned(),
        };
        let Some(at) = self.innermost() else { return ring };
        let (first, last) = (at.range.0.saturating_mul(4), at.range.1.saturating_mul(4));
        let offset = match self.iova.and_then(|iova| iova.checked_sub(at.base)) {
            Some(offset) => format!("+{offset:#x}"),
            None if first == last => format!("+{first:#x}"),
            None => format!("+{first:#x}…{last:#x}"),
        };
        match at.level {
            // A ring with a name is known by it: where it lies is not in the dump.
            0 if self.ring_name.is_some() => format!("{ring}{offset}"),
            0 => format!("{ring} {:#x}{offset}", at.base),
            _ => format!("{ring} › {} {:#x}{offset}", at.name(), at.base),
        }
    }
}
