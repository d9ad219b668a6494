//! Facts of Intel's commands, states and registers as `data/intel/*.cmds` state them.

/// One file.
#[derive(Debug, Default)]
pub struct IntelFile {
    /// Its name, without extension.
    pub name: String,
    /// Ten times the generation it describes; none where each definition names its own.
    pub generation: Option<u32>,
    /// The file it adds to, and what it does not take from it.
    pub import: Option<String>,
    /// Names not taken.
    pub drops: Vec<String>,
    /// Definitions.
    pub items: Vec<IntelItem>,
    /// Names of values for fields that have none of their own.
    pub typed: Vec<TypedField>,
}

/// A field of a structure of every generation, whose values an enum names.
#[derive(Clone, Debug)]
pub struct TypedField {
    /// The structure.
    pub owner: String,
    /// The field.
    pub field: String,
    /// The enum.
    pub ty: String,
    /// Line in its file, for messages.
    pub line: usize,
}

/// A definition.
#[derive(Clone, Debug)]
pub struct IntelItem {
    /// Name.
    pub name: String,
    /// Line in its file, for messages.
    pub line: usize,
    /// First and last generation (ten times), where the file is not of one.
    pub generations: Option<(u32, u32)>,
    /// What it is.
    pub body: ItemBody,
}

/// What is defined.
#[derive(Clone, Debug)]
pub enum ItemBody {
    /// Named values.
    Enum(Vec<(String, u64)>),
    /// A structure in memory or in a command.
    Struct {
        /// Length in dwords.
        dwords: u32,
        /// Fields.
        elems: Vec<LayoutElem>,
    },
    /// A command.
    Instruction(InstructionItem),
    /// A register.
    Register {
        /// Byte offset.
        offset: u32,
        /// It counts from the base of an engine.
        relative: bool,
        /// Length in dwords.
        dwords: u32,
        /// Fields.
        elems: Vec<LayoutElem>,
    },
}

/// A command.
#[derive(Clone, Debug)]
pub struct InstructionItem {
    /// The opcode.
    pub matches: u32,
    /// Bits of the header that belong to it.
    pub mask: u32,
    /// Usual length in dwords.
    pub dwords: Option<u32>,
    /// Highest bit of the length field, and what is added to it.
    pub length: Option<(u32, u32)>,
    /// Engines, as bits; all when nothing is said.
    pub engines: u32,
    /// Fields.
    pub elems: Vec<LayoutElem>,
}

/// A part of a layout.
#[derive(Clone, Debug)]
pub enum LayoutElem {
    /// A field.
    Field {
        /// Name.
        name: String,
        /// Lowest bit.
        start: u32,
        /// Bits.
        width: u32,
        /// Name of the type.
        ty: String,
        /// Names of values.
        values: Vec<(String, u64)>,
    },
    /// Elements one behind the other.
    Group {
        /// Lowest bit of the first.
        start: u32,
        /// How many; none: to the end of the command.
        count: Option<u32>,
        /// Bits of one.
        bits: u32,
        /// What is in each.
        elems: Vec<LayoutElem>,
    },
}
