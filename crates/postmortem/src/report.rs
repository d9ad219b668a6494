//! The result of a post-mortem. Serializers (text, JSON, later HTML) show exactly this.

use crate::args::{Arg, Args};
use crate::head::{DriverIdentity, GpuIdentity, ProcessIdentity};
use crate::packets::PacketExcerpt;
use crate::rules::{AdviceId, FindingKind, Rule};
use crate::signature::ShaderHash;
use crate::sqe_position::SqePosition;
use std::borrow::Cow;
use unwedge_base::{Diagnostic, Span};
use unwedge_capture::AbsentSection;
use unwedge_hw::DbIdentity;

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

/// What a finding is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// The GPU as a whole.
    #[default]
    Gpu,
    /// The dump itself.
    Dump,
    /// A ring by its number.
    Ring(u32),
    /// A ring, engine or queue by its name: `gfx_0.0.0`, `rcs0`.
    Engine(String),
    /// A packet or command.
    Packet {
        /// Its name, if it decodes.
        name: Option<String>,
        /// Its address, if known.
        iova: Option<u64>,
    },
    /// A draw, dispatch, blit or event.
    Work {
        /// `draw`, `dispatch`, `blit`, `event` …
        kind: &'static str,
        /// Its number in the stream.
        number: u32,
    },
    /// Memory at an address.
    Memory(u64),
    /// A hardware block, or several that are looked at together: `SP`, `CP`, `GMU`, `IOMMU`.
    Block(Cow<'static, str>),
    /// A register.
    Register(Cow<'static, str>),
    /// A shader, by the driver's name for it or its stage; and its address.
    Shader {
        /// `Pixel Shader`.
        name: Option<String>,
        /// Where its code starts.
        iova: Option<u64>,
    },
    /// A context of an engine.
    Context(String),
    /// The process whose work it was.
    Process(String),
    /// A section of the dump.
    Section(Cow<'static, str>),
}

/// One piece of evidence: where it was read, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The section of the dump: `registers`, `ringbuffer 0`, `indexed-registers CP_SQE_STAT`.
    pub section: String,
    /// What it says.
    pub fact: Fact,
    /// GPU address, where one is involved.
    pub iova: Option<u64>,
    /// Byte range of the dump, where it is known.
    pub span: Option<Span>,
}

/// What a piece of evidence says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A register or an element of an indexed register.
    Register {
        /// Its name.
        name: Cow<'static, str>,
        /// Its value.
        value: u64,
        /// Its fields that matter; empty where the whole value does.
        fields: Vec<FieldFact>,
    },
    /// The header of a packet in a register that remembers those that a micro engine read.
    PacketHeader {
        /// The register.
        register: Cow<'static, str>,
        /// The header.
        header: u32,
        /// The packet's name, if the generation has such a packet.
        packet: Option<String>,
        /// How often the dump lists it in a row: a FIFO that has been read out repeats its last entry.
        times: usize,
    },
    /// Dwords of a stream, a ring or a buffer.
    Dwords {
        /// 0 ring, 1 IB1, 2 IB2, 3 draw state; `None` for memory that is no stream.
        level: Option<u8>,
        /// Dword offset of the first from the start of the stream or block.
        first: Option<u64>,
        /// How many, which may be more than `words` has.
        count: u64,
        /// The dwords, as far as they matter.
        words: Vec<u32>,
        /// The packet or value that they are, if that is what matters.
        packet: Option<String>,
    },
    /// A field of a section: `last-fence`, `Reset count`.
    Field {
        /// Its name, as the dump has it.
        name: Cow<'static, str>,
        /// Its value.
        value: Arg,
    },
    /// Several things that one section says together, each by name.
    Record(Args),
    /// Work that the stream sent.
    Work(Args),
    /// A buffer that the dump lists.
    Buffer {
        /// Its size in bytes.
        size: u64,
        /// Its name, if it has one.
        name: Option<String>,
    },
    /// An instruction of a shader.
    Code {
        /// Where it is: as [`CodeExcerpt::place`].
        place: Args,
        /// Its dwords.
        words: Vec<u32>,
        /// Its text, if it is an instruction.
        text: Option<String>,
    },
    /// A wave: where it runs, where in the code it is, and what its state says.
    Wave(Args),
    /// A line of a log or report, as it is.
    Line(String),
    /// The dump does not hold this, and why.
    Absent {
        /// What is not there.
        name: Cow<'static, str>,
        /// The section it is, and why, where it is one.
        section: Option<AbsentSection>,
    },
}

/// A field of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFact {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its value, shifted down.
    pub value: u64,
    /// The name of that value, if it is of an enum.
    pub meaning: Option<Cow<'static, str>>,
}

/// What part a finding plays in its report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingRole {
    /// What hung and why.
    Cause,
    /// Where the command processor stopped.
    Position,
    /// It supports the cause, or shows what was in flight.
    Why,
    /// It is independent of the cause.
    Also,
    /// It was seen, and adds nothing to the cause.
    Aside,
    /// It names what the dump does not hold.
    Missing,
}

/// The finding that best explains a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerdictCause {
    /// Its position in [`Report::findings`].
    pub finding: usize,
    /// How sure it is that this is the cause: at most likely where the finding is only what was seen.
    pub trust: Trust,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that fired.
    pub rule: Rule,
    /// What it is about, coarsely: that of the rule.
    pub kind: FindingKind,
    /// What part it plays in its report.
    pub role: FindingRole,
    /// How sure it is.
    pub trust: Trust,
    /// What it is about, exactly.
    pub subject: Subject,
    /// What its words are made of.
    pub args: Args,
    /// What was read to come to it.
    pub evidence: Vec<Evidence>,
}

/// Something to try next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What to do.
    pub id: AdviceId,
    /// What its words are made of.
    pub args: Args,
}

impl Advice {
    /// Advice by its identifier.
    pub fn new(id: AdviceId, args: Args) -> Advice {
        Advice { id, args }
    }
}

impl Finding {
    /// A finding by a rule, about a subject.
    pub fn new(rule: Rule, trust: Trust, subject: Subject) -> Finding {
        Finding {
            rule,
            kind: rule.row().kind,
            role: FindingRole::Also,
            trust,
            subject,
            args: Args::default(),
            evidence: Vec::new(),
        }
    }

    /// Adds a value that its words are made of.
    #[must_use]
    pub fn with(mut self, name: &'static str, arg: impl Into<Arg>) -> Finding {
        self.args = self.args.with(name, arg);
        self
    }

    /// Adds a value if there is one.
    #[must_use]
    pub fn with_some(mut self, name: &'static str, arg: Option<impl Into<Arg>>) -> Finding {
        self.args = self.args.with_some(name, arg);
        self
    }

    /// Adds evidence.
    #[must_use]
    pub fn seen(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Finding {
        self.evidence.extend(evidence);
        self
    }
}

/// One level of the hang point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelPosition {
    /// 0 ring, 1 IB1, 2 IB2, 3 draw state (SDS).
    pub level: u8,
    /// Address of the stream; 0 of a ring whose address the dump does not have.
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
    /// The dword there, if it is not a valid packet.
    pub header: Option<u32>,
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
    /// Where it is: `shader` (the driver's name of it), `stage`, `start` (address of its code), `offset` (bytes from there),
    /// `pc`, as far as they are known. `part`: `start` is not the start of the shader.
    pub place: Args,
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
    /// The GPU.
    pub gpu: GpuIdentity,
    /// The driver, its kernel and Mesa.
    pub driver: DriverIdentity,
    /// The process whose work it was.
    pub process: ProcessIdentity,
    /// The GPU that the dump was taken to be of, as it was named; `None` where the dump tells.
    pub taken_as: Option<String>,
    /// Which register database was used.
    pub database: DbIdentity,
    /// Where the CP stopped, if the dump tells.
    pub hang: Option<HangPoint>,
    /// The finding that best explains the hang; `None` if none does.
    pub cause: Option<VerdictCause>,
    /// Where no finding explains the hang: the wait, shader or packet to look at first, as a position in `findings`.
    pub suspect: Option<usize>,
    /// Findings: the hang point first where it is known, then those that explain more before those that explain less.
    pub findings: Vec<Finding>,
    /// The findings that explain the hang and are at least likely, as positions in `findings`, the strongest first.
    pub causes: Vec<usize>,
    /// Code that waves stand in, most waves first.
    pub code: Vec<CodeExcerpt>,
    /// The code of the shaders of the work that does not end; `None` where that work is not known, or the dump does not hold
    /// all of its code.
    pub shader: Option<ShaderHash>,
    /// Packets around the stop, and around the suspected work where that is elsewhere; empty until they are filled in.
    pub packets: Vec<PacketExcerpt>,
    /// What to try next, the most telling first.
    pub advice: Vec<Advice>,
    /// Where the SQE of an Adreno was in its firmware, if that was looked up.
    pub sqe: Option<SqePosition>,
    /// What was malformed or lost in the input.
    pub diagnostics: Vec<Diagnostic>,
}

impl Trust {
    /// Every level, the strongest first.
    pub const ALL: [Trust; 4] = [Trust::Certain, Trust::Likely, Trust::Possible, Trust::Guess];

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

impl LevelPosition {
    /// A level of Adreno's streams: `ring`, `IB1`, `IB2`, `SDS`.
    pub fn name_of(level: u8) -> Cow<'static, str> {
        match level {
            0 => Cow::Borrowed("ring"),
            3 => Cow::Borrowed("SDS"),
            ib => Cow::Owned(format!("IB{ib}")),
        }
    }
}

impl FindingRole {
    /// A stable identifier: `cause`, `position`, `why`, `also`, `aside`, `missing`.
    pub fn id(self) -> &'static str {
        match self {
            FindingRole::Cause => "cause",
            FindingRole::Position => "position",
            FindingRole::Why => "why",
            FindingRole::Also => "also",
            FindingRole::Aside => "aside",
            FindingRole::Missing => "missing",
        }
    }
}

impl HangPoint {
    /// The innermost level, the one the CP was reading.
    pub fn innermost(&self) -> Option<&LevelPosition> {
        self.levels.last()
    }
}
