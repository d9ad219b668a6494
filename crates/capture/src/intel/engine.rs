//! Engines and their registers, under all names that kernels have had for them.
//!
//! Facts: the print functions of i915 (`i915_debugfs.c`, `i915_gpu_error.c`, `intel_guc_capture.c`) from Linux 2.6.31 and of xe
//! (`xe_hw_engine.c`, `xe_guc_capture.c`) from 6.8 on.

use super::KeyValue;
use std::borrow::Cow;
use std::fmt;
use unwedge_base::Span;
use unwedge_hw::intel::EngineClass;
use unwedge_hw::intel::platform::Engine as EngineId;

/// Which engine a kernel means by a name: `rcs0`, `rcs'0` (not seen by user space), `render` and `render ring` (before 4.13),
/// `Render` and `Video (BSD)` (before 3.2).
pub fn engine_id(name: &str) -> Option<EngineId> {
    let id = |class, instance| Some(EngineId { class, instance });
    match name.strip_suffix(" ring").unwrap_or(name) {
        "render" | "Render" => return id(EngineClass::Render, 0),
        "bsd" | "gen6 bsd" | "Video (BSD)" => return id(EngineClass::VideoDecode, 0),
        "bsd2" => return id(EngineClass::VideoDecode, 1),
        "blt" | "blitter" | "Blitter" => return id(EngineClass::Copy, 0),
        "vebox" | "video enhancement" => return id(EngineClass::VideoEnhance, 0),
        _ => {}
    }
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (class, instance) = name.split_at_checked(name.len() - digits)?;
    let class = match class.strip_suffix('\'').unwrap_or(class) {
        "gsccs" | "other" => EngineClass::Gsc,
        class => EngineClass::with_prefix(class)?,
    };
    id(class, instance.parse().ok()?)
}

/// What stands in brackets behind a register's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegisterIndex {
    /// Nothing.
    #[default]
    None,
    /// `[1]`
    One(u16),
    /// `[slice][subslice]`, on Xe `[group][instance]`.
    Two(u16, u16),
}

impl fmt::Display for RegisterIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterIndex::None => Ok(()),
            RegisterIndex::One(i) => write!(f, "[{i}]"),
            RegisterIndex::Two(i, j) => write!(f, "[{i}][{j}]"),
        }
    }
}

/// A register's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntelRegister<'a> {
    /// As written, without brackets: `SAMPLER_INSTDONE`.
    pub name: &'a str,
    /// What stands in brackets behind the name.
    pub index: RegisterIndex,
    /// Its value; of `ACTHD: 0xhhhhhhhh llllllll` both halves.
    pub value: u64,
    /// What follows the value on its line: `[0x00000000]` behind HEAD.
    pub more: &'a [u8],
    /// The line.
    pub span: Span,
}

/// Registers of an engine that every generation has, whatever a kernel calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RingRegister {
    /// Where the ring starts, in the GGTT.
    Start,
    /// Where the engine reads.
    Head,
    /// Where software writes.
    Tail,
    /// Size and state of the ring.
    Ctl,
    /// MI_MODE.
    MiMode,
    /// GFX_MODE.
    GfxMode,
    /// Where the status page stands.
    Hws,
    /// The address of the command that is being worked at, or what was fetched beyond it.
    Acthd,
    /// Error identity of the instruction parser (gen8 to gen12).
    Ipeir,
    /// The header of the command that is being worked at.
    Ipehr,
    /// Error status.
    Esr,
    /// Error identity.
    Eir,
    /// Error mask.
    Emr,
    /// Units that have nothing to do.
    Instdone,
    /// Where the batch buffer is read.
    BbAddr,
    /// State of the batch buffer.
    BbState,
    /// INSTPS.
    InstPs,
    /// INSTPM.
    InstPm,
    /// What the DMA engine fetches.
    DmaFaddr,
    /// RING_PSMI_CTL.
    Psmi,
    /// The last page fault of this engine.
    Fault,
    /// The context that is loaded.
    Ccid,
}

impl RingRegister {
    /// Every register.
    pub const ALL: [RingRegister; 22] = [
        RingRegister::Start,
        RingRegister::Head,
        RingRegister::Tail,
        RingRegister::Ctl,
        RingRegister::MiMode,
        RingRegister::GfxMode,
        RingRegister::Hws,
        RingRegister::Acthd,
        RingRegister::Ipeir,
        RingRegister::Ipehr,
        RingRegister::Esr,
        RingRegister::Eir,
        RingRegister::Emr,
        RingRegister::Instdone,
        RingRegister::BbAddr,
        RingRegister::BbState,
        RingRegister::InstPs,
        RingRegister::InstPm,
        RingRegister::DmaFaddr,
        RingRegister::Psmi,
        RingRegister::Fault,
        RingRegister::Ccid,
    ];

    /// The names that hold all of it, or the low half.
    fn names(self) -> &'static [&'static str] {
        match self {
            RingRegister::Start => &["START", "RING_START"],
            RingRegister::Head => &["HEAD", "RING_HEAD"],
            RingRegister::Tail => &["TAIL", "RING_TAIL"],
            RingRegister::Ctl => &["CTL", "RING_CTL"],
            RingRegister::MiMode => &["MODE", "RING_MI_MODE"],
            RingRegister::GfxMode => &["GFX_MODE", "RING_MODE", "RING_MODE_GEN7"],
            RingRegister::Hws => &["HWS", "RING_HWS_PGA"],
            RingRegister::Acthd => &["ACTHD", "ACTHD_LDW", "RING_ACTHD"],
            RingRegister::Ipeir => &["IPEIR", "RING_IPEIR"],
            RingRegister::Ipehr => &["IPEHR", "RING_IPEHR"],
            RingRegister::Esr => &["ESR", "RING_ESR"],
            RingRegister::Eir => &["RING_EIR"],
            RingRegister::Emr => &["RING_EMR"],
            RingRegister::Instdone => &["INSTDONE", "RING_INSTDONE"],
            RingRegister::BbAddr => &["BBADDR", "RING_BBADDR", "RING_BBADDR_LOW32"],
            RingRegister::BbState => &["BB_STATE", "RING_BBSTATE"],
            RingRegister::InstPs => &["INSTPS", "RING_INSTPS"],
            RingRegister::InstPm => &["INSTPM", "RING_INSTPM"],
            RingRegister::DmaFaddr => &["FADDR", "DMA_FADDR", "RING_DMA_FADD", "RING_DMA_FADD_LDW"],
            RingRegister::Psmi => &["RC PSMI", "RC_PSMI", "RING_PSMI_CTL"],
            RingRegister::Fault => &["FAULT_REG", "RING_FAULT_REG"],
            RingRegister::Ccid => &["CCID", "RING_CCID"],
        }
    }

    /// Whether this is the name of a register that every engine has.
    pub(crate) fn is_one(name: &str) -> bool {
        RingRegister::ALL.iter().any(|r| r.names().contains(&name) || r.high_names().contains(&name))
    }

    /// The names that hold the high half of a register that is 64 bits wide.
    fn high_names(self) -> &'static [&'static str] {
        match self {
            RingRegister::Start => &["RING_START_UDW"],
            RingRegister::Acthd => &["ACTHD_UDW", "RING_ACTHD_UDW"],
            RingRegister::BbAddr => &["RING_BBADDR_UP32", "RING_BBADDR_UDW"],
            RingRegister::DmaFaddr => &["RING_DMA_FADD_UDW"],
            _ => &[],
        }
    }
}

/// An engine of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpEngine<'a> {
    /// As written: `rcs0`, `render`.
    pub name: Cow<'a, str>,
    /// Registers in the order of the dump, those read by the GuC too.
    pub registers: Vec<IntelRegister<'a>>,
    /// Everything else that is said of it: `Capture_source`, `hung` …
    pub fields: Vec<KeyValue<'a>>,
    /// Where it stands.
    pub span: Span,
}

impl DumpEngine<'_> {
    /// Which engine it is, if the name says so.
    pub fn id(&self) -> Option<EngineId> {
        engine_id(&self.name)
    }

    /// The value of the first register with this name, as the dump writes it.
    pub fn register(&self, name: &str) -> Option<u64> {
        self.find(name).map(|r| r.value)
    }

    /// The first register with this name.
    pub fn find(&self, name: &str) -> Option<&IntelRegister<'_>> {
        self.registers.iter().find(|r| r.name == name)
    }

    /// The value of a register that every generation has, its halves put together.
    pub fn ring(&self, register: RingRegister) -> Option<u64> {
        let first = |names: &[&str]| names.iter().find_map(|name| self.register(name));
        let low = first(register.names())?;
        match first(register.high_names()) {
            Some(high) if low <= u64::from(u32::MAX) => Some(high << 32 | low),
            _ => Some(low),
        }
    }

    /// The value of a field.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|f| f.key == key).map(|f| f.value.as_ref())
    }
}
