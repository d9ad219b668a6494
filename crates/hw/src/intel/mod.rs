//! Intel GPUs: commands, structures, registers and enums of every generation from gen4 to Xe3, with their fields.
//!
//! The tables are compiled from `data/intel/*.cmds`; nothing is parsed, allocated or copied to look something up, and
//! what is found is `'static`. Every read is checked: a wrong reference reads as 0, never panics.
//!
//! Never: following batches, formatting for people.

mod engine_class;
#[allow(dead_code, reason = "what only the writer of the tables needs")]
mod layout;
pub mod platform;
pub mod ring;
mod values;

use crate::DbIdentity;
pub use engine_class::EngineClass;
use layout::{enumeration, generation, header, instruction, register, structure};
use std::fmt;
pub use values::{
    FieldLayout, FieldValue, IntelType, IntelValue, LayoutFields, LayoutItem, LayoutItems, LayoutValues,
};

static WORDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/intel.words"));
static STRINGS: &str = include_str!(concat!(env!("OUT_DIR"), "/intel.strings"));

#[inline]
fn word(at: u32) -> u32 {
    let at = at as usize * 4;
    match WORDS.get(at..at + 4) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => 0,
    }
}

fn string(id: u32) -> &'static str {
    let ends = word(header::STRINGS);
    let start = if id == 0 { 0 } else { word(ends + id - 1) };
    STRINGS.get(start as usize..word(ends + id) as usize).unwrap_or_default()
}

/// Hash of the tables' contents: the same for the same facts.
pub fn hash() -> u64 {
    u64::from(word(header::HASH)) | u64::from(word(header::HASH + 1)) << 32
}

/// Which tables these are.
pub fn identity() -> DbIdentity {
    DbIdentity {
        source: "built-in intel".to_owned(),
        version: String::new(),
        hash: format!("{:016x}", hash()),
    }
}

fn partition(count: u32, before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// What the tables know of one generation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IntelGpu {
    at: u32,
}

impl fmt::Debug for IntelGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.number())
    }
}

impl IntelGpu {
    /// The generation of a graphics version, `12.70` as `(12, 70)`: the newest that is not newer. Gen4 for anything older.
    pub fn of(major: u32, release: u32) -> IntelGpu {
        let number = major.saturating_mul(10).saturating_add(release.min(99) / 10);
        let count = word(header::GENERATION_COUNT);
        let newer = partition(count, |i| IntelGpu::nth(i).number() <= number);
        IntelGpu::nth(newer.saturating_sub(1))
    }

    /// Every generation, oldest first.
    pub fn all() -> impl Iterator<Item = IntelGpu> {
        (0..word(header::GENERATION_COUNT)).map(IntelGpu::nth)
    }

    fn nth(i: u32) -> IntelGpu {
        IntelGpu { at: word(header::GENERATIONS) + i * generation::SIZE }
    }

    /// Ten times the generation: 125 is 12.5, which is also 12.55 to 12.74; 200 is Xe2.
    pub fn number(self) -> u32 {
        word(self.at + generation::NUMBER)
    }

    fn slot(self, slot: u32) -> u32 {
        word(self.at + slot)
    }

    /// The command of a header. One that `engine` knows comes first; where no engine that has a command of this header is
    /// this one, it is the command of another.
    #[inline]
    pub fn instruction(self, header: u32, engine: EngineClass) -> Option<IntelInstruction> {
        let list = match header >> 29 {
            0 => word(self.slot(generation::MI) + (header >> 23 & 63)),
            2 => word(self.slot(generation::BLITTER) + (header >> 22 & 127)),
            _ => match word(self.slot(generation::OTHER) + (header >> 24)) {
                0 => 0,
                page => word(page + (header >> 16 & 255)),
            },
        };
        if list == 0 {
            return None;
        }
        let mut other = None;
        for i in 0..word(list) {
            let found = IntelInstruction { at: word(list + 1 + i) };
            if (header ^ found.slot(instruction::MATCH)) & found.slot(instruction::MASK) == 0 {
                if found.slot(instruction::ENGINES) & engine.bit() != 0 {
                    return Some(found);
                }
                other = other.or(Some(found));
            }
        }
        other
    }

    /// A command by name.
    pub fn instruction_named(self, name: &str) -> Option<IntelInstruction> {
        self.instructions_list().named(name, instruction::NAME).map(|at| IntelInstruction { at })
    }

    /// Every command, by name.
    pub fn instructions(self) -> impl Iterator<Item = IntelInstruction> {
        self.instructions_list().iter().map(|at| IntelInstruction { at })
    }

    fn instructions_list(self) -> NameList {
        NameList { at: self.slot(generation::INSTRUCTIONS), count: self.slot(generation::INSTRUCTION_COUNT) }
    }

    /// A structure by name, `RENDER_SURFACE_STATE`.
    pub fn structure(self, name: &str) -> Option<IntelStructure> {
        self.structures_list().named(name, structure::NAME).map(|at| IntelStructure { at })
    }

    /// Every structure, by name.
    pub fn structures(self) -> impl Iterator<Item = IntelStructure> {
        self.structures_list().iter().map(|at| IntelStructure { at })
    }

    fn structures_list(self) -> NameList {
        NameList { at: self.slot(generation::STRUCTURES), count: self.slot(generation::STRUCTURE_COUNT) }
    }

    /// A register by name.
    pub fn register_named(self, name: &str) -> Option<IntelRegisterDef> {
        self.registers_list().named(name, register::NAME).map(|at| IntelRegisterDef { at })
    }

    /// Every register, by name.
    pub fn registers(self) -> impl Iterator<Item = IntelRegisterDef> {
        self.registers_list().iter().map(|at| IntelRegisterDef { at })
    }

    fn registers_list(self) -> NameList {
        NameList { at: self.slot(generation::REGISTERS), count: self.slot(generation::REGISTER_COUNT) }
    }

    /// The register that has a dword at this byte offset.
    pub fn register(self, offset: u32) -> Option<IntelRegisterDef> {
        self.registers_from(0, self.slot(generation::ABSOLUTE_COUNT), offset)
    }

    /// The register that every engine has at this byte offset from its base.
    pub fn engine_register(self, offset: u32) -> Option<IntelRegisterDef> {
        let absolute = self.slot(generation::ABSOLUTE_COUNT);
        self.registers_from(absolute, self.slot(generation::REGISTER_COUNT), offset)
    }

    fn registers_from(self, first: u32, end: u32, offset: u32) -> Option<IntelRegisterDef> {
        let nth = |i: u32| IntelRegisterDef { at: word(self.slot(generation::OFFSETS) + i) };
        let after = first + partition(end.saturating_sub(first), |i| nth(first + i).offset() <= offset);
        let found = nth(after.checked_sub(1).filter(|&i| i >= first)?);
        (offset - found.offset() < found.dwords() * 4).then_some(found)
    }

    /// An enum by name.
    pub fn enumeration(self, name: &str) -> Option<IntelEnum> {
        self.enums_list().named(name, enumeration::NAME).map(|at| IntelEnum { at })
    }

    /// Every enum that has a name, by name.
    pub fn enumerations(self) -> impl Iterator<Item = IntelEnum> {
        self.enums_list().iter().map(|at| IntelEnum { at })
    }

    fn enums_list(self) -> NameList {
        NameList { at: self.slot(generation::ENUMS), count: self.slot(generation::ENUM_COUNT) }
    }
}

/// References to records, sorted by their names.
#[derive(Clone, Copy)]
struct NameList {
    at: u32,
    count: u32,
}

impl NameList {
    fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |i| word(self.at + i))
    }

    fn named(self, name: &str, slot: u32) -> Option<u32> {
        let text = |i: u32| string(word(word(self.at + i) + slot));
        let first = partition(self.count, |i| text(i) < name);
        (first < self.count && text(first) == name).then(|| word(self.at + first))
    }
}

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IntelInstruction {
    at: u32,
}

impl fmt::Debug for IntelInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instruction({})", self.name())
    }
}

impl IntelInstruction {
    #[inline]
    fn slot(self, slot: u32) -> u32 {
        word(self.at + slot)
    }

    /// Its name, `MI_BATCH_BUFFER_START`.
    pub fn name(self) -> &'static str {
        string(self.slot(instruction::NAME))
    }

    /// The opcode, and the bits of the header that belong to it.
    pub fn opcode(self) -> (u32, u32) {
        (self.slot(instruction::MATCH), self.slot(instruction::MASK))
    }

    /// The length in dwords that a header states, or that the command always has.
    #[inline]
    pub fn length(self, header: u32) -> u32 {
        match self.slot(instruction::LENGTH) {
            0 => self.slot(instruction::DWORDS).max(1),
            length => (header & ((2 << (length & 31)) - 1)) + (length >> 8 & 0xff),
        }
    }

    /// The length it usually has; `None` where there is no usual one.
    pub fn usual_length(self) -> Option<u32> {
        Some(self.slot(instruction::DWORDS)).filter(|&dwords| dwords != 0)
    }

    /// The header a command of this length starts with; `None` where the command cannot have that length.
    pub fn header(self, dwords: u32) -> Option<u32> {
        let opcode = self.slot(instruction::MATCH);
        match self.slot(instruction::LENGTH) {
            0 => (dwords == self.slot(instruction::DWORDS)).then_some(opcode),
            length => {
                let value = dwords.checked_sub(length >> 8 & 0xff)?;
                (value < 2 << (length & 31)).then_some(opcode | value)
            }
        }
    }

    /// The tables say that this engine executes it.
    pub fn is_of(self, engine: EngineClass) -> bool {
        self.slot(instruction::ENGINES) & engine.bit() != 0
    }

    /// Its fields, those of the opcode left out.
    pub fn layout(self) -> FieldLayout {
        FieldLayout::at(self.slot(instruction::LAYOUT))
    }
}

/// A structure in memory, or in a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntelStructure {
    at: u32,
}

impl IntelStructure {
    /// Its name.
    pub fn name(self) -> &'static str {
        string(word(self.at + structure::NAME))
    }

    /// Its length in dwords.
    pub fn dwords(self) -> u32 {
        word(self.at + structure::DWORDS)
    }

    /// Its fields.
    pub fn layout(self) -> FieldLayout {
        FieldLayout::at(word(self.at + structure::LAYOUT))
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntelRegisterDef {
    at: u32,
}

impl IntelRegisterDef {
    /// Its name.
    pub fn name(self) -> &'static str {
        string(word(self.at + register::NAME))
    }

    /// Byte offset in the MMIO space, or from the base of an engine.
    pub fn offset(self) -> u32 {
        word(self.at + register::OFFSET)
    }

    /// Every engine has one of it, at this offset from its base.
    pub fn is_of_engine(self) -> bool {
        word(self.at + register::DWORDS) >> 31 != 0
    }

    /// Its length in dwords.
    pub fn dwords(self) -> u32 {
        word(self.at + register::DWORDS) & 0x7fff_ffff
    }

    /// Its fields.
    pub fn layout(self) -> FieldLayout {
        FieldLayout::at(word(self.at + register::LAYOUT))
    }
}

/// Names of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntelEnum {
    at: u32,
}

impl IntelEnum {
    /// Its name; empty where it belongs to a single field.
    pub fn name(self) -> &'static str {
        string(word(self.at + enumeration::NAME))
    }

    /// The name of a value.
    pub fn name_of(self, value: u64) -> Option<&'static str> {
        let value = u32::try_from(value).ok()?;
        let count = word(self.at + enumeration::COUNT);
        let at = |i: u32| self.at + enumeration::VALUES + i * 2;
        let first = partition(count, |i| word(at(i)) < value);
        (first < count && word(at(first)) == value).then(|| string(word(at(first) + 1)))
    }

    /// Values and their names, by value.
    pub fn iter(self) -> impl Iterator<Item = (u32, &'static str)> {
        let at = move |i: u32| self.at + enumeration::VALUES + i * 2;
        (0..word(self.at + enumeration::COUNT)).map(move |i| (word(at(i)), string(word(at(i) + 1))))
    }
}
