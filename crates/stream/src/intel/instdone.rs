//! INSTDONE registers: which units are not done.
//!
//! A bit is set while its unit has nothing to do. Which bits a generation has stands in the tables; bits they do not name
//! say nothing. Facts on which register a dump means by a name: the print functions of i915 and xe.

use unwedge_hw::intel::{EngineClass, IntelGpu, IntelRegisterDef};

/// A unit that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Its bit.
    pub bit: u32,
    /// The field's name in the tables: `VS Done`.
    pub field: &'static str,
}

/// Put in front of names where the GuC captures registers: since when they are there.
const SINCE: [&str; 5] = ["GEN7_", "GEN8_", "GEN12_", "XEHPG_", "XEHP_"];

/// The INSTDONE register of a name as dumps print it, of an engine: `INSTDONE` is another on each. `None`: the tables have
/// none, or it is no INSTDONE register.
pub fn register(gpu: IntelGpu, engine: EngineClass, name: &str) -> Option<IntelRegisterDef> {
    let own = match engine {
        EngineClass::Render => "INSTDONE_1",
        // Compute engines have the geometry front end's streamer bits in a register of their own.
        EngineClass::Compute => "CCS_INSTDONE",
        EngineClass::Copy => "BCS_INSTDONE",
        EngineClass::VideoDecode => "VCS_INSTDONE",
        EngineClass::VideoEnhance => "VECS_INSTDONE",
        EngineClass::Gsc => return None,
    };
    let bare = SINCE.iter().find_map(|since| name.strip_prefix(since)).unwrap_or(name);
    let name = match bare {
        "INSTDONE" | "RING_INSTDONE" => own,
        // Up to Linux 3.6; on gen7 it is another register, of which nothing is known.
        "INSTDONE1" if engine == EngineClass::Render && gpu.register_named("SC_INSTDONE").is_none() => {
            "INSTDONE_2"
        }
        "GEOM_SVG_INSTDONE" | "INSTDONE_GEOM_SVG" => "INSTDONE_GEOM",
        "GEOM_SVGUNIT_INSTDONE" | "INSTDONE_GEOM_SVGUNIT" => "INSTDONE_GEOM",
        "SLICE_COMMON_INSTDONE" => "SC_INSTDONE",
        "SLICE_COMMON_INSTDONE_EXTRA" => "SC_INSTDONE_EXTRA",
        "SLICE_COMMON_INSTDONE_EXTRA2" => "SC_INSTDONE_EXTRA2",
        _ if is_one(bare) => bare,
        _ => return None,
    };
    gpu.register_named(name)
}

/// The same of a register among those of the device: before 4.9, i915 had the render engine's there, as `INSTDONE_0` to
/// `INSTDONE_3`.
pub fn register_of_device(gpu: IntelGpu, name: &str) -> Option<IntelRegisterDef> {
    let older = gpu.register_named("SC_INSTDONE").is_none();
    gpu.register_named(match (name, older) {
        ("INSTDONE_0", _) => "INSTDONE_1",
        ("INSTDONE_1", true) => "INSTDONE_2",
        ("INSTDONE_1", false) => "SC_INSTDONE",
        ("INSTDONE_2", false) => "SAMPLER_INSTDONE",
        ("INSTDONE_3", false) => "ROW_INSTDONE",
        _ => return None,
    })
}

/// Whether a dump means an INSTDONE register by a name, one that the tables have or not.
pub fn is_one(name: &str) -> bool {
    name.contains("INSTDONE")
}

/// The units that a value says are not done.
pub fn busy(register: IntelRegisterDef, value: u32) -> impl Iterator<Item = Busy> {
    register
        .layout()
        .fields()
        .filter(|(name, _, width, ty)| *width == 1 && ty.is_bool() && is_unit(name))
        .filter(move |(_, bit, ..)| *bit < 32 && value >> bit & 1 == 0)
        .map(|(field, bit, ..)| Busy { bit, field })
}

/// Bits of the value that the tables give no unit.
pub fn reserved(register: IntelRegisterDef) -> u32 {
    let units = register.layout().fields().filter(|(name, ..)| is_unit(name));
    !units.fold(0, |mask, (_, bit, ..)| mask | 1u32.checked_shl(bit).unwrap_or(0))
}

/// The bit is that of a unit, not of the ring it belongs to.
fn is_unit(field: &str) -> bool {
    !field.ends_with("Enable") && field != "Reserved"
}

impl Busy {
    /// The unit's name: `VS`.
    pub fn unit(&self) -> &'static str {
        let name = self.field;
        let cut = |suffix: &str| {
            let at = name.len().checked_sub(suffix.len())?;
            name.get(at..).filter(|end| end.eq_ignore_ascii_case(suffix))?;
            name.get(..at)
        };
        cut(" done").or_else(|| cut(" idle")).unwrap_or(name)
    }
}
