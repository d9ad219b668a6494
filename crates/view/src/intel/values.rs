//! Values of fields of commands and registers, for people and as JSON.

use super::space_name;
use crate::json::{Hex, Scalar};
use serde::Serialize;
use std::fmt;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{AddressSpace, IntelRegister};
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_hw::intel::{FieldValue, IntelValue};
use unwedge_intel::registers;
use unwedge_postmortem::intel::fault_address;

/// A value for people.
pub struct ValueText(pub IntelValue);

impl fmt::Display for ValueText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // What is that large is bits more often than a number.
            IntelValue::Uint(n) if n > 0xffff => write!(f, "{n:#x}"),
            IntelValue::Uint(n) => write!(f, "{n}"),
            IntelValue::Int(n) => write!(f, "{n}"),
            IntelValue::Bool(b) => write!(f, "{b}"),
            IntelValue::Enum(n, name) => write!(f, "{n} ({name})"),
            IntelValue::Float(n) => write!(f, "{n}"),
            IntelValue::Address(n) | IntelValue::Offset(n) => write!(f, "0x{n:08x}"),
            IntelValue::NotZero(n) => write!(f, "{n:#x}, must be zero"),
            IntelValue::NotOne(n) => write!(f, "{n:#x}, must be one"),
            IntelValue::Wide | IntelValue::AsRequired | IntelValue::Struct => Ok(()),
        }
    }
}

/// Whether a value says nothing that its dword does not say as well: zero without a name, bits that are as they must be.
pub fn is_silent(value: IntelValue) -> bool {
    match value {
        IntelValue::Uint(0)
        | IntelValue::Int(0)
        | IntelValue::Bool(false)
        | IntelValue::Address(0)
        | IntelValue::AsRequired => true,
        IntelValue::Float(n) => n == 0.0,
        _ => false,
    }
}

/// The fields of a command that say something: those of its length and those that are zero do not. A structure is told
/// before its fields, if any of them is.
pub fn significant(
    fields: impl Iterator<Item = FieldValue>,
) -> impl Iterator<Item = (FieldValue, IntelValue)> {
    fields.filter_map(|field| {
        let value = field.value()?;
        let told = !field.name.is_empty() && field.name != "DWord Length" && !is_silent(value);
        told.then_some((field, value))
    })
}

/// All fields whose value is known, zero or not; bits that must have one value are left out where they have it.
pub fn with_value(
    fields: impl Iterator<Item = FieldValue>,
) -> impl Iterator<Item = (FieldValue, IntelValue)> {
    fields.filter_map(|field| {
        let value = field.value()?;
        (!field.name.is_empty() && value != IntelValue::AsRequired).then_some((field, value))
    })
}

/// A field of a command or register as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldLine {
    name: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    index: Vec<u32>,
    low: u32,
    high: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decoded: Option<Scalar>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    named: Option<&'static str>,
}

impl FieldLine {
    /// Of a command.
    pub fn of(field: &FieldValue, value: IntelValue) -> FieldLine {
        FieldLine {
            index: field.indices().to_vec(),
            depth: (field.depth != 0).then_some(field.depth),
            ..FieldLine::new(field.name, field.start, field.width, value)
        }
    }

    /// Of a register.
    pub fn new(name: &'static str, low: u32, width: u32, value: IntelValue) -> FieldLine {
        let decoded = match value {
            IntelValue::Uint(n) | IntelValue::Enum(n, _) => Some(Scalar::Uint(n)),
            IntelValue::Int(n) => Some(Scalar::Int(n)),
            IntelValue::Bool(b) => Some(Scalar::Bool(b)),
            IntelValue::Float(n) => Some(Scalar::Float(n)),
            IntelValue::Address(n) | IntelValue::Offset(n) => Some(Scalar::Hex(Hex::wide(n))),
            IntelValue::NotZero(n) | IntelValue::NotOne(n) => Some(Scalar::Hex(Hex::short(n))),
            IntelValue::AsRequired | IntelValue::Struct | IntelValue::Wide => None,
        };
        let named = match value {
            IntelValue::Enum(_, name) => Some(name),
            _ => None,
        };
        let high = low.saturating_add(width.saturating_sub(1));
        FieldLine { name, index: Vec::new(), low, high, depth: None, decoded, named }
    }
}

/// What a register of a dump says.
pub enum Meaning {
    /// Units that are not done.
    NotDone(Vec<&'static str>),
    /// Fields that are not zero.
    Fields(Vec<(registers::RegisterField, IntelValue)>),
    /// The command it is the header of.
    Command(&'static str),
    /// The address of a page fault, and whether it counts in the device's table.
    Fault(u64, bool),
}

impl Meaning {
    /// Of a register of a dump, among those that stand with it; `None` where nothing is known of it, or nothing set.
    pub fn of(
        version: Version,
        class: EngineClass,
        register: &IntelRegister<'_>,
        beside: &[IntelRegister<'_>],
    ) -> Option<Meaning> {
        let (name, value) = (register.name, register.value);
        let fault = |(low, high): (u32, u32)| {
            let (address, ggtt) = fault_address(low, high);
            (low != 0 || high != 0).then_some(Meaning::Fault(address, ggtt))
        };
        if name == "FAULT_TLB_DATA" {
            return ErrorState::fault_tlb_data_of(register).and_then(fault);
        }
        let register = registers::printed(version, class, name)?;
        let high = || {
            let name = name.strip_suffix('0').map(|stem| format!("{stem}1"))?;
            beside.iter().find(|r| r.name == name)
        };
        if register.name() == "FAULT_TLB_DATA0"
            && let Some(high) = high()
        {
            return fault((value as u32, high.value as u32));
        }
        if register.name().ends_with("IPEHR") {
            let header = [u32::try_from(value).ok()?];
            let decoder = unwedge_stream::intel::commands::Decoder::new(version, class);
            return decoder.command(&header)?.name().map(Meaning::Command);
        }
        if let (Some(done), Ok(value)) = (register.done(), u32::try_from(value)) {
            let busy: Vec<_> = unwedge_stream::intel::instdone::busy(done, value).map(|b| b.unit()).collect();
            return (!busy.is_empty()).then_some(Meaning::NotDone(busy));
        }
        fields_set(register, value)
    }

    /// As JSON.
    pub fn json(self) -> MeaningLine {
        let none = MeaningLine::default();
        match self {
            Meaning::NotDone(units) => MeaningLine { not_done: Some(units), ..none },
            Meaning::Fields(fields) => {
                let line = |(f, v): (registers::RegisterField, IntelValue)| {
                    FieldLine::new(f.name, f.low, f.width, v)
                };
                MeaningLine { fields: fields.into_iter().map(line).collect(), ..none }
            }
            Meaning::Command(name) => MeaningLine { command: Some(name), ..none },
            Meaning::Fault(address, ggtt) => {
                let space = if ggtt { AddressSpace::Ggtt } else { AddressSpace::Ppgtt };
                MeaningLine { address: Some(Hex::wide(address)), space: space_name(space), ..none }
            }
        }
    }
}

/// A register of the GuC by its offset, and what it says.
pub struct GucRegister {
    /// Its name.
    pub name: &'static str,
    /// Fields that are not zero.
    pub meaning: Option<Meaning>,
}

impl GucRegister {
    /// Of a value; `None` where no register is known at the offset.
    pub fn of(version: Version, offset: u32, value: u32) -> Option<GucRegister> {
        let (register, engine) = registers::at(version, offset)?;
        // What is an engine's is not the GuC's.
        if engine.is_some() || register.offset() != offset {
            return None;
        }
        Some(GucRegister { name: register.name(), meaning: fields_set(register, value.into()) })
    }
}

impl fmt::Display for GucRegister {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}", self.name)?;
        match &self.meaning {
            Some(meaning) => write!(f, "  {meaning}"),
            None => Ok(()),
        }
    }
}

/// The fields of a value that are not zero.
fn fields_set(register: registers::RegisterEntry, value: u64) -> Option<Meaning> {
    let fields = register.fields().into_iter().map(|f| (f, f.value(value)));
    let fields: Vec<_> = fields.filter(|(f, _)| f.raw(value) != 0).collect();
    (!fields.is_empty()).then_some(Meaning::Fields(fields))
}

/// What a register says, as JSON.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeaningLine {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_done: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meaning::NotDone(units) => write!(f, "not done: {}", units.join(", ")),
            Meaning::Fields(fields) => {
                for (i, (field, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    match value {
                        IntelValue::Bool(true) => write!(f, "{comma}{}", field.name)?,
                        value => write!(f, "{comma}{}: {}", field.name, ValueText(*value))?,
                    }
                }
                Ok(())
            }
            Meaning::Command(name) => f.write_str(name),
            Meaning::Fault(address, ggtt) => {
                write!(f, "address 0x{address:012x} ({})", if *ggtt { "ggtt" } else { "ppgtt" })
            }
        }
    }
}
