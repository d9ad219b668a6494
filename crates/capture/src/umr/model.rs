//! Waves, rings and registers as umr shows them.

use super::read::read;
use crate::amd::{AmdRegister, DwordContents};
use std::borrow::Cow;
use unwedge_base::{Diagnostic, GcVersion, Span};
use unwedge_hw::ChipOverride;

/// Text of umr.
#[derive(Clone, Debug, Default)]
pub struct UmrText<'a> {
    /// Waves, in the order of the text.
    pub waves: Vec<UmrWave<'a>>,
    /// umr found no wave (`No active waves!`), which is not the same as none being listed.
    pub no_waves: bool,
    /// Rings.
    pub rings: Vec<UmrRing<'a>>,
    /// Registers.
    pub registers: Vec<PrintedRegister<'a>>,
    /// Shaders that umr listed beside streams, or by their address.
    pub shaders: Vec<UmrShader<'a>>,
    /// Blocks of the GPU (`umr -lb`).
    pub blocks: Vec<UmrBlock<'a>>,
    /// Memory that umr read (`--vm-read`), where the text has the command beside the dump of it.
    pub memory: Vec<UmrMemory>,
    /// `[WARNING]: …`, `[ERROR]: …`, without the brackets' end of line.
    pub complaints: Vec<Cow<'a, str>>,
    /// How many lines say nothing that is known here; what is around umr's text is among them.
    pub other_lines: u64,
    /// What was malformed or lost.
    pub diagnostics: Vec<Diagnostic>,
    /// The GPU that it is taken to be of, whatever it says itself. No reader sets it.
    pub taken_as: Option<ChipOverride>,
}

/// A wave.
#[derive(Clone, Debug, Default)]
pub struct UmrWave<'a> {
    /// Where it runs.
    pub place: UmrWaveLocation,
    /// Its registers, names as written: `ixSQ_WAVE_STATUS`, or of older umr `pc_hi`, `WAVE_STATUS`.
    pub registers: Vec<AmdRegister<'a>>,
    /// Fields of registers that umr decoded.
    pub fields: Vec<UmrWaveField<'a>>,
    /// Scalar registers, by number.
    pub sgprs: DwordContents,
    /// Trap temporaries, by number.
    pub ttmps: DwordContents,
    /// Vector registers.
    pub vgprs: Vec<UmrVgpr>,
    /// The shader that umr found around the PC.
    pub shader: Option<ShaderMatch>,
    /// Registers as the stream had set them, where umr found the shader in one.
    pub shader_registers: Vec<PrintedRegister<'a>>,
    /// Instruction words around the PC.
    pub code: Vec<CodeWord<'a>>,
    /// umr warns that the values may be of several moments.
    pub tainted: bool,
    /// Where it is in the text.
    pub span: Span,
}

/// Where a wave runs. What the text does not say is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UmrWaveLocation {
    /// Shader engine.
    pub se: Option<u32>,
    /// Shader array (`sh`, from gfx10 on `sa`).
    pub sa: Option<u32>,
    /// Compute unit, from gfx10 on work group processor.
    pub cu: Option<u32>,
    /// SIMD.
    pub simd: Option<u32>,
    /// Wave slot.
    pub wave: Option<u32>,
    /// `cu` is a work group processor.
    pub wgp: bool,
}

/// A field of a register, decoded by umr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmrWaveField<'a> {
    /// The register as written.
    pub register: Cow<'a, str>,
    /// The field as written.
    pub name: Cow<'a, str>,
    /// Value.
    pub value: u32,
}

/// A vector register of all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmrVgpr {
    /// Number.
    pub number: u32,
    /// Values, from lane 0 on.
    pub lanes: Vec<u32>,
}

/// `(found shader at: 6@0x800120e26c00 of 1024 bytes)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaderMatch {
    /// Address space.
    pub vmid: u32,
    /// First byte.
    pub address: u64,
    /// Bytes.
    pub size: u32,
}

/// `pgm[6@0x800120e26c00 + 0x584 ] = 0xf0001108    image_load …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeWord<'a> {
    /// Address space.
    pub vmid: u32,
    /// Where the shader, or the stretch that umr guesses, begins.
    pub base: u64,
    /// Bytes from there.
    pub offset: u64,
    /// The dword.
    pub word: u32,
    /// umr's disassembly; `;;` for further dwords of an instruction.
    pub text: Cow<'a, str>,
    /// The PC stands here (`*`).
    pub at_pc: bool,
}

impl CodeWord<'_> {
    /// Its address.
    pub fn address(&self) -> u64 {
        self.base.wrapping_add(self.offset)
    }
}

impl UmrWave<'_> {
    /// A register by what follows `SQ_WAVE_` in its name: `STATUS`, `PC_LO`, `EXEC_HI`, `INST_DW0`, `HW_ID1`,
    /// `GPR_ALLOC`, `TRAPSTS`, `IB_STS`. Names of older umr are known.
    pub fn register(&self, name: &str) -> Option<u32> {
        self.registers.iter().find(|r| wave_register(&r.name).eq_ignore_ascii_case(name)).map(|r| r.value)
    }

    /// The program counter.
    pub fn pc(&self) -> Option<u64> {
        self.wide("PC_LO", "PC_HI")
    }

    /// Lanes that execute.
    pub fn exec(&self) -> Option<u64> {
        self.wide("EXEC_LO", "EXEC_HI")
    }

    /// Of gfx12 `STATUS` holds less than before: `STATE_PRIV` has the rest.
    pub fn status(&self) -> Option<u32> {
        self.register("STATUS")
    }

    /// First dword of the instruction.
    pub fn inst_dw0(&self) -> Option<u32> {
        self.register("INST_DW0")
    }

    /// Second dword of the instruction.
    pub fn inst_dw1(&self) -> Option<u32> {
        self.register("INST_DW1")
    }

    /// A field that umr decoded; register as for [`UmrWave::register`].
    pub fn field(&self, register: &str, name: &str) -> Option<u32> {
        let matches = |field: &&UmrWaveField<'_>| {
            wave_register(&field.register).eq_ignore_ascii_case(register)
                && field.name.eq_ignore_ascii_case(name)
        };
        self.fields.iter().find(matches).map(|field| field.value)
    }

    fn wide(&self, low: &str, high: &str) -> Option<u64> {
        Some(u64::from(self.register(high)?) << 32 | u64::from(self.register(low)?))
    }
}

/// The name of a wave's register without its prefix, as new umr spells it.
pub(super) fn wave_register(name: &str) -> &str {
    let name = name.strip_prefix("ix").unwrap_or(name);
    let name = name.strip_prefix("SQ_WAVE_").unwrap_or(name);
    const OLD: [(&str, &str); 8] = [
        ("WAVE_STATUS", "STATUS"),
        ("WAVE_INST_DW0", "INST_DW0"),
        ("WAVE_INST_DW1", "INST_DW1"),
        ("GPRALLOC", "GPR_ALLOC"),
        ("LDSALLOC", "LDS_ALLOC"),
        ("IBSTS", "IB_STS"),
        ("IBSTS2", "IB_STS2"),
        ("TRAP_STS", "TRAPSTS"),
    ];
    OLD.iter().find(|(old, _)| old.eq_ignore_ascii_case(name)).map_or(name, |(_, new)| new)
}

/// A ring (`umr -R gfx_0.0.0`, or with `-RS` as a stream of packets).
#[derive(Clone, Debug, Default)]
pub struct UmrRing<'a> {
    /// Name; a stream does not say it.
    pub name: Option<Cow<'a, str>>,
    /// The chip, which the path of a ring begins with.
    pub chip: Option<Cow<'a, str>>,
    /// Read pointer, in dwords.
    pub rptr: Option<u64>,
    /// Write pointer, in dwords.
    pub wptr: Option<u64>,
    /// The driver's write pointer, in dwords.
    pub driver_wptr: Option<u64>,
    /// Contents, by dword.
    pub contents: DwordContents,
    /// Of a stream the stretch of the ring that umr decoded, and IBs that it followed.
    pub ibs: Vec<UmrIb<'a>>,
    /// Where it is in the text.
    pub span: Span,
}

impl UmrRing<'_> {
    /// Whose packets it has, by the names that umr gives them.
    pub fn kind(&self) -> Option<UmrStreamKind> {
        self.ibs.iter().find_map(|ib| ib.kind)
    }
}

/// Whose packets a stream has, by the names that umr gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UmrStreamKind {
    /// The command processors of graphics and compute: `PKT3_…`.
    Pm4,
    /// A DMA engine: opcodes with sub-opcodes.
    Sdma,
    /// A user queue of HSA: `HSA_…`.
    Aql,
    /// The scheduler: `MES_…`.
    Mes,
    /// Packets of registers alone (`PKT0`), as decoders of video have them.
    Registers,
    /// A video engine: names of VCN, UVD and VCE.
    Video,
    /// A JPEG decoder.
    Jpeg,
    /// What a packet of a video engine points to.
    Message,
    /// Anything else.
    Other,
}

impl UmrStreamKind {
    pub(super) fn of(name: &str, sub_opcode: bool) -> UmrStreamKind {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        match name {
            _ if starts(&["PKT3"]) => UmrStreamKind::Pm4,
            _ if starts(&["HSA_"]) => UmrStreamKind::Aql,
            _ if starts(&["MES"]) => UmrStreamKind::Mes,
            _ if starts(&["PKTJ", "JPEG"]) => UmrStreamKind::Jpeg,
            _ if starts(&["PKT"]) => UmrStreamKind::Registers,
            _ if starts(&["VCN", "UVD", "VCE", "RENCODE", "RDECODE"]) => UmrStreamKind::Video,
            _ if starts(&["VPE", "UMSCH"]) => UmrStreamKind::Other,
            _ if sub_opcode => UmrStreamKind::Sdma,
            _ => UmrStreamKind::Other,
        }
    }
}

/// Where a packet begins that umr decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmrPacket {
    /// Which dword of the stream its header is.
    pub dword: u64,
    /// How many dwords follow, as umr counts them.
    pub dwords: u32,
}

/// `navi48.gfx1201 (12.0.1)`, of older umr without a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmrBlock<'a> {
    /// The chip.
    pub chip: Cow<'a, str>,
    /// The block, `gfx1201`.
    pub name: Cow<'a, str>,
}

/// A piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UmrMemory {
    /// Address space.
    pub vmid: u32,
    /// First byte.
    pub address: u64,
    /// Contents, by dword.
    pub contents: DwordContents,
}

/// A register write that umr printed by the register's name: `|---> gfx1101.regCB_BLEND_RED=0x0`. It does not print the
/// dword that says which register it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UmrRegWrite<'a> {
    /// Which dword of the stream has the value.
    pub dword: u64,
    /// The path, `gfx1101`.
    pub path: Cow<'a, str>,
    /// The register as written.
    pub name: Cow<'a, str>,
}

/// A shader that umr disassembled, with what the stream had set when it was found.
#[derive(Clone, Debug, Default)]
pub struct UmrShader<'a> {
    /// Address space.
    pub vmid: u32,
    /// First byte.
    pub address: u64,
    /// Its size in bytes, where the text has it.
    pub size: Option<u32>,
    /// `ES`, `COMPUTE`; of older umr a number.
    pub stage: Option<Cow<'a, str>>,
    /// Registers as the stream set them.
    pub registers: Vec<PrintedRegister<'a>>,
    /// Its words.
    pub code: Vec<CodeWord<'a>>,
    /// Where it is in the text.
    pub span: Span,
}

/// A stretch of packets that umr decoded.
#[derive(Clone, Debug, Default)]
pub struct UmrIb<'a> {
    /// Address space; 0 for the ring itself.
    pub vmid: u32,
    /// GPU address; of the ring itself the place in the ring, in bytes.
    pub iova: u64,
    /// Dwords, where the text says it.
    pub size: Option<u32>,
    /// Contents.
    pub contents: DwordContents,
    /// Whose packets they are; `None` where no packet is named.
    pub kind: Option<UmrStreamKind>,
    /// Registers that packets set, as far as umr names them.
    pub writes: Vec<UmrRegWrite<'a>>,
    /// Where packets begin. umr leaves out dwords of packets that it knows to be reserved, and the payload of `NOP`.
    pub packets: Vec<UmrPacket>,
    /// Where it is in the text.
    pub span: Span,
}

/// A register with its fields, as umr or Mesa print it.
#[derive(Clone, Debug, Default)]
pub struct PrintedRegister<'a> {
    /// Name without a path: `mmGRBM_STATUS`, `GRBM_STATUS`; an offset where the printer knew no name.
    pub name: Cow<'a, str>,
    /// The path in front of it (`gfx1030`).
    pub path: Option<Cow<'a, str>>,
    /// Value, where the line has it.
    pub value: Option<u32>,
    /// Fields.
    pub fields: Vec<PrintedField<'a>>,
    /// Where it is in the text.
    pub span: Span,
}

impl PrintedRegister<'_> {
    /// The chip, with whose name a path begins: `navi21.gfx1030.mmGRBM_STATUS`.
    pub fn chip_name(&self) -> Option<&str> {
        chip_in(self.path.as_deref()?)
    }

    /// The version of the graphics core, by the block in the path, `gfx1030`. That is not the name of a target: it has the
    /// numbers of the core's version, major, minor and revision.
    pub fn gc_version(&self) -> Option<GcVersion> {
        version_in(self.path.as_deref()?, "gfx")
    }
}

/// The chip in the path of a register: the part before the block.
fn chip_in(path: &str) -> Option<&str> {
    path.split_once('.').map(|(chip, _)| chip)
}

/// The version of a block in the path of a register: `gfx1101`, `mmhub302`; one digit each but for a major of two.
fn version_in(path: &str, block: &str) -> Option<GcVersion> {
    let numbered = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit());
    let digits = path.split('.').filter_map(|part| part.strip_prefix(block)).find(numbered)?;
    let (major, rest) = match digits.get(..1)? {
        "1" if digits.len() > 3 => digits.split_at_checked(2)?,
        _ => digits.split_at_checked(1)?,
    };
    let mut rest = rest.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()));
    let mut number = || rest.next().unwrap_or(Some(0));
    Some(GcVersion { major: major.parse().ok()?, minor: number()?, revision: number()? })
}

/// A field of a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedField<'a> {
    /// Name.
    pub name: Cow<'a, str>,
    /// Value as written: a number or a name.
    pub text: Cow<'a, str>,
    /// Value, where it is a number.
    pub value: Option<u32>,
}

/// The input is not text of umr.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not text of umr: no wave, ring or register was found")]
pub struct NotUmrText;

impl<'a> UmrText<'a> {
    /// Paths of registers: first of those that umr read, then of those that streams set.
    fn paths(&self) -> impl Iterator<Item = &str> {
        let of_shaders = self.shaders.iter().flat_map(|shader| &shader.registers);
        let of_waves = self.waves.iter().flat_map(|wave| &wave.shader_registers);
        let printed = self.registers.iter().chain(of_shaders).chain(of_waves);
        let ibs = self.rings.iter().flat_map(|ring| &ring.ibs);
        let written = ibs.flat_map(|ib| ib.writes.iter().map(|write| &*write.path));
        printed.filter_map(|register| register.path.as_deref()).chain(written)
    }

    /// Names of chips in the paths of registers (`navi21.gfx1030.mmGRBM_STATUS`) and rings, and of those whose blocks are listed.
    pub fn chip_names(&self) -> impl Iterator<Item = &str> {
        let rings = self.rings.iter().filter_map(|ring| ring.chip.as_deref());
        let blocks = self.blocks.first().map(|block| &*block.chip);
        self.paths().filter_map(chip_in).chain(rings).chain(blocks)
    }

    /// The version of a block, by the first name of it in a path of a register, or in the list of blocks: that of the graphics core
    /// is `gfx`, that of the memory hub of other engines `mmhub`.
    pub fn block_version(&self, block: &str) -> Option<GcVersion> {
        let listed = self.blocks.iter().map(|block| &*block.name);
        self.paths().chain(listed).find_map(|path| version_in(path, block))
    }

    /// The version of the graphics core.
    pub fn gc_version(&self) -> Option<GcVersion> {
        self.block_version("gfx")
    }

    /// Reads what umr printed, with anything around it. Anything malformed is skipped and reported in `diagnostics`.
    ///
    /// # Errors
    ///
    /// [`NotUmrText`] if no line has a form that umr prints.
    pub fn read(text: &'a [u8]) -> Result<UmrText<'a>, NotUmrText> {
        let (umr, recognized) = read(text);
        if recognized { Ok(umr) } else { Err(NotUmrText) }
    }

    /// The same of a text that is umr's by its name.
    pub(crate) fn read_any(text: &'a [u8]) -> UmrText<'a> {
        read(text).0
    }
}
