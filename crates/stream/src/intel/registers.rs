//! The numbers that registers and the dwords of state commands have in [`Registers`](crate::Registers), and their names.
//!
//! What other vendors set by registers, Intel's commands say themselves: 3DSTATE_PS has the kernel of pixel shaders. So each
//! dword of the last command of a kind counts as a register: [`IntelNames`] selects its fields as `3DSTATE_PS.KernelStartPointer0`.
//! Never: values.

use crate::query::{Column, Mistake, RegisterNames};
use unwedge_hw::intel::{IntelGpu, IntelInstruction};
use unwedge_hw::{Pattern, RegEnum, Selected, near};

/// MMIO registers, by their offset in dwords, come first: so many numbers are theirs.
pub const MMIO: u32 = 0x20_0000;
/// Dwords of a command that count.
pub(super) const MAX_DWORDS: u32 = 256;
/// Commands of a generation.
const COMMANDS: u32 = 0x800;

/// One past the last number.
pub const REGISTERS: usize = (MMIO + COMMANDS * MAX_DWORDS) as usize;

/// The number of an MMIO register at this byte offset.
pub fn mmio(offset: u32) -> u32 {
    (offset / 4) % MMIO
}

/// Names of registers and of the fields of state commands, of one generation.
#[derive(Clone, Debug)]
pub struct IntelNames {
    gpu: IntelGpu,
    instructions: Vec<IntelInstruction>,
}

impl IntelNames {
    /// Of this generation.
    pub fn new(gpu: IntelGpu) -> IntelNames {
        IntelNames { gpu, instructions: gpu.instructions().take(COMMANDS as usize).collect() }
    }

    /// The number of the first dword of a command.
    pub fn number_of(&self, instruction: IntelInstruction) -> Option<u32> {
        let name = instruction.name();
        let ordinal = self.instructions.partition_point(|other| other.name() < name);
        // A name may be that of several forms of a command.
        let same = self.instructions.iter().enumerate().skip(ordinal).take_while(|(_, i)| i.name() == name);
        let (ordinal, _) = same.into_iter().find(|(_, other)| **other == instruction)?;
        Some(MMIO + ordinal as u32 * MAX_DWORDS)
    }

    /// What a number is of: `3DSTATE_PS[1]`, the name of a register, or its offset.
    pub fn name_of(&self, number: u32) -> String {
        match number.checked_sub(MMIO) {
            None => {
                let offset = number * 4;
                self.gpu.register(offset).map_or_else(|| format!("{offset:#x}"), |r| r.name().to_owned())
            }
            Some(number) => {
                let instruction = self.instructions.get((number / MAX_DWORDS) as usize);
                let name = instruction.map_or("?", |instruction| instruction.name());
                format!("{name}[{}]", number % MAX_DWORDS)
            }
        }
    }

    /// The fields of a command, by the names they have here: without spaces, elements of groups with their index.
    fn fields(&self, instruction: IntelInstruction) -> Vec<(String, Column<'static>)> {
        let Some(first) = self.number_of(instruction) else { return Vec::new() };
        let length = instruction.usual_length().unwrap_or(MAX_DWORDS).min(MAX_DWORDS);
        let zeros = [0; MAX_DWORDS as usize];
        let values = instruction.layout().values(zeros.get(..length as usize).unwrap_or_default(), length);
        let fields = values.filter(|f| f.ty.structure().is_none() && !f.name.is_empty() && f.width <= 64);
        let column = |f: unwedge_hw::intel::FieldValue| {
            let (dword, bit) = (f.start / 32, f.start % 32);
            let mask = (u64::MAX >> (64 - f.width)).checked_shl(bit)?;
            // Bits of a third dword do not fit.
            if bit + f.width > 64 {
                return None;
            }
            let mut name: String = f.name.chars().filter(|c| !c.is_whitespace()).collect();
            for index in f.indices() {
                name.push_str(&format!("[{index}]"));
            }
            let shift = if f.ty.is_address() || f.ty.is_offset() { 0 } else { bit };
            let high = (mask >> 32 != 0).then_some(first + dword + 1);
            let full = format!("{}.{name}", instruction.name());
            let selected = Selected { name: full, low: first + dword, high, mask, ty: None };
            Some((name, Column { selected, shift }))
        };
        fields.filter_map(column).collect()
    }
}

/// Columns that a pattern stands for: registers, and with a dot fields of commands.
fn select_pattern(names: &IntelNames, text: &str) -> Vec<Column<'static>> {
    let Some((command, field)) = text.split_once('.') else {
        let pattern = Pattern::new(text);
        let registers = names.gpu.registers().filter(|r| pattern.matches(r.name()));
        return registers.map(|r| whole(r.name(), mmio(r.offset()))).collect();
    };
    let (command, field) = (Pattern::new(command), Pattern::new(field));
    let commands = names.instructions.iter().filter(|i| command.matches(i.name()));
    let fields = commands.flat_map(|&i| names.fields(i));
    fields.filter(|(name, _)| field.matches(name)).map(|(_, column)| column).collect()
}

/// A dword.
fn whole(name: &str, number: u32) -> Column<'static> {
    let (name, mask) = (name.to_owned(), u64::from(u32::MAX));
    Column { selected: Selected { name, low: number, high: None, mask, ty: None }, shift: 0 }
}

impl RegisterNames<'static> for &IntelNames {
    /// `3DSTATE_PS.KernelStartPointer0`, `3DSTATE_PS` for all of its fields, `CS_CHICKEN1`, `0x2580` (in bytes), and
    /// patterns of registers and of fields.
    fn select(self, text: &str) -> Result<Vec<Column<'static>>, Mistake> {
        let unknown = |near: Vec<&str>| Mistake::NoRegister {
            name: text.to_owned(),
            near: near.into_iter().map(str::to_owned).collect(),
        };
        if text.contains(['*', '?']) {
            let found = select_pattern(self, text);
            return if found.is_empty() { Err(unknown(Vec::new())) } else { Ok(found) };
        }
        if let Some(found) = self.gpu.register_named(text) {
            return Ok(vec![whole(found.name(), mmio(found.offset()))]);
        }
        if let Some(offset) = text.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok()) {
            return Ok(vec![whole(text, mmio(offset))]);
        }
        let Some((command, field)) = text.split_once('.') else {
            let named = |i: &&IntelInstruction| i.name().eq_ignore_ascii_case(text);
            if let Some(&instruction) = self.instructions.iter().find(named) {
                let fields: Vec<Column<'static>> =
                    self.fields(instruction).into_iter().map(|(_, column)| column).collect();
                if !fields.is_empty() {
                    return Ok(fields);
                }
            }
            let names =
                self.gpu.registers().map(|r| r.name()).chain(self.instructions.iter().map(|i| i.name()));
            return Err(unknown(near(names, text)));
        };
        let Some(&instruction) = self.instructions.iter().find(|i| i.name().eq_ignore_ascii_case(command))
        else {
            return Err(unknown(near(self.instructions.iter().map(|i| i.name()), command)));
        };
        let fields = self.fields(instruction);
        match fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(field)) {
            Some((_, column)) => Ok(vec![column.clone()]),
            None => Err(unknown(near(fields.iter().map(|(name, _)| name.as_str()), field))),
        }
    }

    fn enumeration(self, _name: &str) -> Option<RegEnum<'static>> {
        None
    }
}
