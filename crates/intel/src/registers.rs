//! Registers by the names that people and dumps call them, and by offset: those of the command tables, and those that a
//! context holds, as one.
//!
//! Never: what a value means for a hang.

use crate::lrc;
use unwedge_hw::intel::platform::{Engine, EngineClass, Version};
use unwedge_hw::intel::{IntelGpu, IntelType, IntelValue};
use unwedge_stream::intel::instdone;

/// What i915 calls the registers that every engine has, and their offset from its base; xe has names of the tables.
const PRINTED: [(&str, u32); 26] = [
    // Of the render engine, where it stands among the registers of the device.
    ("EIR", 0x0b0),
    ("RC PSMI", 0x050),
    ("RC_PSMI", 0x050),
    ("ACTHD_UDW", 0x05c),
    ("RING_DMA_FADD_UDW", 0x060),
    ("IPEIR", 0x064),
    ("INSTPS", 0x070),
    ("ACTHD", 0x074),
    ("ACTHD_LDW", 0x074),
    ("FADDR", 0x078),
    ("DMA_FADDR", 0x078),
    ("RING_DMA_FADD_LDW", 0x078),
    ("HWS", 0x080),
    ("ESR", 0x0b8),
    ("MODE", 0x09c),
    ("START", 0x038),
    ("HEAD", 0x034),
    ("TAIL", 0x030),
    ("CTL", 0x03c),
    ("RING_INSTPM", 0x0c0),
    ("BBADDR", 0x140),
    ("RING_BBADDR_LOW32", 0x140),
    ("RING_BBADDR_UP32", 0x168),
    ("RING_CCID", 0x180),
    ("GFX_MODE", 0x29c),
    ("RING_MODE_GEN7", 0x29c),
];

/// What i915 and its captures by the GuC call registers of the whole GPU, and where they are: a generation has one of those
/// with the same name, or none. Before gen8 the first is that of the render engine, laid out as the others are.
const OF_GPU: [(&str, u32); 8] = [
    ("FAULT_REG", 0x4094),
    ("RING_FAULT_REG", 0x4094),
    ("FAULT_REG", 0xcec4),
    ("RING_FAULT_REG", 0xcec4),
    ("GEN8_FAULT_TLB_DATA0", 0x4b10),
    ("GEN8_FAULT_TLB_DATA1", 0x4b14),
    ("GEN12_FAULT_TLB_DATA0", 0xceb8),
    ("GEN12_FAULT_TLB_DATA1", 0xcebc),
];

/// What i915 calls registers that have another name in the tables.
const OTHERWISE: [(&str, &str); 2] = [("ERROR", "GFX_ARB_ERROR_RPT"), ("ERR_INT", "GEN7_ERR_INT")];

/// A register.
#[derive(Clone, Copy)]
pub struct RegisterEntry(RegisterSource);

#[derive(Clone, Copy)]
enum RegisterSource {
    Context(lrc::registers::LrcRegister),
    Commands(unwedge_hw::intel::IntelRegisterDef),
}

/// Bits of a register that mean something of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegisterField {
    /// Its name.
    pub name: &'static str,
    /// Lowest bit.
    pub low: u32,
    /// Bits.
    pub width: u32,
    kind: FieldKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FieldKind {
    Number,
    Address,
    Typed(IntelType),
}

/// A register by name: of the tables, or as an error state prints it for an engine of this class.
pub fn named(version: Version, class: EngineClass, name: &str) -> Option<RegisterEntry> {
    let gpu = IntelGpu::of(version.major.into(), version.release.into());
    if let Some(register) = instdone::register(gpu, class, name) {
        return Some(RegisterEntry(RegisterSource::Commands(register)));
    }
    if let Some(&(_, offset)) = PRINTED.iter().find(|(printed, _)| *printed == name) {
        return of_engine(version, offset);
    }
    if let Some(register) =
        OF_GPU.iter().filter(|(printed, _)| *printed == name).find_map(|r| gpu.register(r.1))
    {
        return Some(RegisterEntry(RegisterSource::Commands(register)));
    }
    let context = lrc::registers::by_name(name).and_then(|offset| lrc::registers::at(offset, version));
    context
        .map(RegisterSource::Context)
        .or_else(|| gpu.register_named(name).map(RegisterSource::Commands))
        .map(RegisterEntry)
}

/// The same of a dump, where names may stand for other registers than in the tables.
pub fn printed(version: Version, class: EngineClass, name: &str) -> Option<RegisterEntry> {
    let gpu = IntelGpu::of(version.major.into(), version.release.into());
    let otherwise = || {
        let (_, name) = OTHERWISE.iter().find(|(printed, _)| *printed == name)?;
        gpu.register_named(name)
    };
    let of_device = instdone::register_of_device(gpu, name).or_else(otherwise);
    of_device.map(|r| RegisterEntry(RegisterSource::Commands(r))).or_else(|| named(version, class, name))
}

/// The register that every engine has at an offset from its base.
pub fn of_engine(version: Version, offset: u32) -> Option<RegisterEntry> {
    let gpu = IntelGpu::of(version.major.into(), version.release.into());
    let context = lrc::registers::at(offset, version).map(RegisterSource::Context);
    context.or_else(|| gpu.engine_register(offset).map(RegisterSource::Commands)).map(RegisterEntry)
}

/// The register at an offset in the space of the GPU: its own, or that of the engine whose base is nearest below.
pub fn at(version: Version, offset: u32) -> Option<(RegisterEntry, Option<Engine>)> {
    let gpu = IntelGpu::of(version.major.into(), version.release.into());
    if let Some(register) = gpu.register(offset) {
        return Some((RegisterEntry(RegisterSource::Commands(register)), None));
    }
    let engines = Engine::all(version);
    let based = engines.filter_map(|engine| Some((engine, engine.base(version)?)));
    let (engine, base) = based.filter(|(_, base)| *base <= offset).max_by_key(|(_, base)| *base)?;
    Some((of_engine(version, offset - base).filter(|_| offset - base < ENGINE)?, Some(engine)))
}

/// Bytes of registers that an engine has behind its base.
const ENGINE: u32 = 0x800;

/// Every register of a version: its own, and those of engines.
pub fn all(version: Version) -> impl Iterator<Item = RegisterEntry> {
    let gpu = IntelGpu::of(version.major.into(), version.release.into());
    let context = lrc::registers::all(version).map(RegisterSource::Context);
    context.chain(gpu.registers().map(RegisterSource::Commands)).map(RegisterEntry)
}

impl RegisterEntry {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            RegisterSource::Context(register) => register.name(),
            RegisterSource::Commands(register) => register.name(),
        }
    }

    /// Byte offset: in the space of the GPU, or from the base of an engine.
    pub fn offset(self) -> u32 {
        match self.0 {
            RegisterSource::Context(register) => register.offset(),
            RegisterSource::Commands(register) => register.offset(),
        }
    }

    /// Every engine has one of it.
    pub fn is_of_engine(self) -> bool {
        match self.0 {
            RegisterSource::Context(_) => true,
            RegisterSource::Commands(register) => register.is_of_engine(),
        }
    }

    /// Its length in dwords.
    pub fn dwords(self) -> u32 {
        match self.0 {
            RegisterSource::Context(_) => 1,
            RegisterSource::Commands(register) => register.dwords(),
        }
    }

    /// The upper half says which bits of the lower half a write changes.
    pub fn masked(self) -> bool {
        matches!(self.0, RegisterSource::Context(register) if register.masked())
    }

    /// The register, where its bits are 0 while units have something to do.
    pub fn done(self) -> Option<unwedge_hw::intel::IntelRegisterDef> {
        match self.0 {
            RegisterSource::Commands(register)
                if register.name().contains("INSTDONE") || register.name() == "GAM_DONE" =>
            {
                Some(register)
            }
            _ => None,
        }
    }

    /// Its fields, as the tables order them.
    pub fn fields(self) -> Vec<RegisterField> {
        match self.0 {
            RegisterSource::Context(register) => register
                .fields(0)
                .map(|f| RegisterField {
                    name: f.name,
                    low: f.bits.1.into(),
                    width: u32::from(f.bits.0.saturating_sub(f.bits.1)) + 1,
                    kind: if f.address { FieldKind::Address } else { FieldKind::Number },
                })
                .collect(),
            RegisterSource::Commands(register) => register
                .layout()
                .fields()
                .filter(|(name, ..)| !name.is_empty())
                .map(|(name, low, width, ty)| RegisterField { name, low, width, kind: FieldKind::Typed(ty) })
                .collect(),
        }
    }
}

impl RegisterField {
    /// Its bits of a value, shifted down.
    pub fn raw(&self, value: u64) -> u64 {
        let mask = if self.width >= 64 { u64::MAX } else { (1 << self.width) - 1 };
        value.checked_shr(self.low).unwrap_or(0) & mask
    }

    /// What they say.
    pub fn value(&self, value: u64) -> IntelValue {
        let raw = self.raw(value);
        match self.kind {
            FieldKind::Typed(ty) => ty.value(raw, self.low, self.width),
            FieldKind::Address => IntelValue::Address(raw.checked_shl(self.low).unwrap_or(0)),
            FieldKind::Number if self.width == 1 => IntelValue::Bool(raw != 0),
            FieldKind::Number => IntelValue::Uint(raw),
        }
    }

    /// The names of its values.
    pub fn names(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let names = match self.kind {
            FieldKind::Typed(ty) => ty.enumeration(),
            FieldKind::Address | FieldKind::Number => None,
        };
        names.into_iter().flat_map(|e| e.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TGL: Version = Version::new(12, 0);

    #[test]
    fn every_printed_name_is_a_register() {
        for version in [Version::new(8, 0), Version::new(9, 0), Version::new(11, 0), TGL, Version::new(20, 4)]
        {
            for (name, offset) in PRINTED {
                let found = named(version, EngineClass::Render, name).unwrap_or_else(|| panic!("{name}"));
                assert_eq!(found.offset(), offset, "{name}");
            }
            let gen12 = version.major >= 12;
            for (name, offset) in OF_GPU {
                let found = named(version, EngineClass::Render, name);
                let here = if gen12 { offset > 0xc000 } else { offset < 0xc000 };
                match (here, found) {
                    (true, found) => {
                        assert_eq!(found.map(RegisterEntry::offset), Some(offset), "{version} {name}")
                    }
                    (false, found) => assert!(found.is_none_or(|f| f.offset() != offset), "{version} {name}"),
                }
            }
        }
    }

    #[test]
    fn fields_of_both_tables() {
        let head = named(TGL, EngineClass::Copy, "HEAD").unwrap();
        assert_eq!((head.name(), head.offset()), ("RING_BUFFER_HEAD", 0x34));
        let offset = head.fields().into_iter().find(|f| f.name == "OFFSET").unwrap();
        assert_eq!(offset.value(0x0060_0124), IntelValue::Address(0x124));
        let fault = named(TGL, EngineClass::Render, "FAULT_REG").unwrap();
        assert_eq!(fault.offset(), 0xcec4);
        let kind = fault.fields().into_iter().find(|f| f.name == "Fault Type").unwrap();
        assert_eq!(kind.value(0b011), IntelValue::Enum(1, "Invalid PDE Fault"));
    }

    #[test]
    fn offsets_of_engines_and_of_the_gpu() {
        let (register, engine) = at(TGL, 0x2_2034).unwrap();
        assert_eq!((register.name(), engine.unwrap().to_string()), ("RING_BUFFER_HEAD", "bcs0".to_owned()));
        assert_eq!(at(TGL, 0xcec4).unwrap().0.name(), "FAULT_REG");
        assert!(at(TGL, 0x7f_fff0).is_none());
    }
}
