//! An instruction as what it does and its fields, over the encodings of the instruction table.
//!
//! Names of the table's encodings and fields become types here; bits, generations and texts stay in the table. Never
//! knows what an instruction does.

use crate::table::DecodedWord;
use crate::tables::{AFUC, AFUC_INSTRUCTION};
use std::cell::Cell;

/// What an instruction does; two generations may encode the same one differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AfucOp {
    /// A two-source operation on registers.
    Alu(AluOp),
    /// A two-source operation whose second source is an immediate.
    AluImm(AluOp),
    /// Bitwise complement of a register.
    Not,
    /// Bitwise complement of an immediate.
    NotImm,
    /// Number of the highest set bit.
    Msb,
    /// An immediate, shifted left.
    MovImm,
    /// Sets one bit.
    SetBitImm,
    /// Clears one bit.
    ClrBit,
    /// Extracts a bit field.
    Ubfx,
    /// Inserts a bit field.
    Bfi,
    /// Writes memory.
    Store,
    /// Reads memory.
    Load,
    /// Writes a control register.
    Cwrite,
    /// Reads a control register.
    Cread,
    /// Writes a register of the SQE itself.
    Swrite,
    /// Reads a register of the SQE itself.
    Sread,
    /// Branches when a register differs from an immediate.
    BrneImm,
    /// Branches when a register equals an immediate.
    BreqImm,
    /// Branches when a bit is clear. Bit 0 of `$00`: always.
    BrneBit,
    /// Branches when a bit is set.
    BreqBit,
    /// Returns from `call`.
    Ret,
    /// Returns from the preemption interrupt.
    Iret,
    /// Calls, with the hardware's return stack.
    Call,
    /// Jumps to an absolute offset.
    Jumpa,
    /// Calls, with the return address in `$lr`.
    Bl,
    /// Jumps to the offset in a register.
    JumpReg,
    /// Returns from a function of compiled code.
    Sret,
    /// Dispatches the next packet.
    Waitin,
    /// Switches secure mode, and skips two instructions when that worked.
    SetSecure,
    /// Nothing.
    Nop,
}

/// Two-source operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the mnemonics")]
pub enum AluOp {
    Add,
    AddHi,
    Sub,
    SubHi,
    And,
    Or,
    Xor,
    Shl,
    Ushr,
    Ishr,
    Rot,
    Mul8,
    Min,
    Max,
    Cmp,
    Bic,
    SetBit,
}

/// A field of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InsnField {
    /// `(rep)`: again until `$rem` is 0.
    Rep,
    /// `(xmovN)`: up to N extra moves.
    Xmov,
    /// `(peek)`: queues are read without consuming.
    Peek,
    /// `(sdsN)`: N extra words go to the draw state.
    Sds,
    /// Register written.
    Dst,
    /// First or only register read; what stores write.
    Src1,
    /// Second register read.
    Src2,
    /// Register a memory or register offset starts from.
    Base,
    /// An immediate without a meaning of its own.
    Imm,
    /// An immediate that may be the offset of a GPU register.
    RegImm,
    /// Offset added to the base, of a control register.
    ControlOffset,
    /// Offset added to the base, of an SQE register.
    SqeOffset,
    /// Offset added to the base, in bytes of memory.
    MemOffset,
    /// `!`: the base becomes the address.
    PreIncrement,
    /// Left shift of an immediate.
    Shift,
    /// Number of a bit; lowest bit of a bit field.
    Bit,
    /// Highest bit of a bit field.
    High,
    /// Signed distance of a branch, in instructions.
    Branch,
    /// Offset of an instruction from the start of its section.
    Target,
}

impl InsnField {
    const COUNT: usize = InsnField::Target as usize + 1;
}

/// The operands of an instruction, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// None.
    Nothing,
    /// `$dst, $src1, $src2`.
    DstSrcSrc,
    /// `$dst, $src1`.
    DstSrc,
    /// `$dst, $src1, 0x10`.
    DstSrcImm,
    /// `$dst, 0x10`.
    DstImm,
    /// `$dst, 0x10 << 16`.
    DstImmShift,
    /// `$dst, $src1, b3`.
    DstSrcBit,
    /// `$dst, $src1, b3, b7`.
    DstSrcBitBit,
    /// `$src1, [$base + 0x10]`.
    SrcMem,
    /// `$dst, [$base + 0x10]`.
    DstMem,
    /// `$src1, 0x10, #label`.
    SrcImmBranch,
    /// `$src1, b3, #label`.
    SrcBitBranch,
    /// `#function`.
    Call,
    /// `#label`, absolute.
    Absolute,
    /// `$src1`.
    Src,
    /// `$02, #label`: the label is three instructions on.
    Secure,
}

/// The encodings of the table, each under every name it has there, and what they do.
const LEAVES: [(&str, AfucOp); 61] = [
    ("add", AfucOp::Alu(AluOp::Add)),
    ("addhi", AfucOp::Alu(AluOp::AddHi)),
    ("addhii", AfucOp::AluImm(AluOp::AddHi)),
    ("addi", AfucOp::AluImm(AluOp::Add)),
    ("and", AfucOp::Alu(AluOp::And)),
    ("andi", AfucOp::AluImm(AluOp::And)),
    ("bfi", AfucOp::Bfi),
    ("bic", AfucOp::Alu(AluOp::Bic)),
    ("bici", AfucOp::AluImm(AluOp::Bic)),
    ("bl", AfucOp::Bl),
    ("breqb", AfucOp::BreqBit),
    ("breqi", AfucOp::BreqImm),
    ("brneb", AfucOp::BrneBit),
    ("brnei", AfucOp::BrneImm),
    ("call", AfucOp::Call),
    ("clrbit", AfucOp::ClrBit),
    ("cmp", AfucOp::Alu(AluOp::Cmp)),
    ("cmpi", AfucOp::AluImm(AluOp::Cmp)),
    ("cread", AfucOp::Cread),
    ("cwrite", AfucOp::Cwrite),
    ("iret", AfucOp::Iret),
    ("ishr", AfucOp::Alu(AluOp::Ishr)),
    ("ishri", AfucOp::AluImm(AluOp::Ishr)),
    ("jumpa", AfucOp::Jumpa),
    ("jumpr", AfucOp::JumpReg),
    ("load", AfucOp::Load),
    ("max", AfucOp::Alu(AluOp::Max)),
    ("maxi", AfucOp::AluImm(AluOp::Max)),
    ("min", AfucOp::Alu(AluOp::Min)),
    ("mini", AfucOp::AluImm(AluOp::Min)),
    ("movi", AfucOp::MovImm),
    ("msb", AfucOp::Msb),
    ("mul8", AfucOp::Alu(AluOp::Mul8)),
    ("mul8i", AfucOp::AluImm(AluOp::Mul8)),
    ("nop", AfucOp::Nop),
    ("not", AfucOp::Not),
    ("noti", AfucOp::NotImm),
    ("or", AfucOp::Alu(AluOp::Or)),
    ("ori", AfucOp::AluImm(AluOp::Or)),
    ("ret", AfucOp::Ret),
    ("rot", AfucOp::Alu(AluOp::Rot)),
    ("roti", AfucOp::AluImm(AluOp::Rot)),
    ("setbit", AfucOp::Alu(AluOp::SetBit)),
    ("setbiti", AfucOp::SetBitImm),
    ("setsecure", AfucOp::SetSecure),
    ("shl", AfucOp::Alu(AluOp::Shl)),
    ("shli", AfucOp::AluImm(AluOp::Shl)),
    ("sread", AfucOp::Sread),
    ("sret", AfucOp::Sret),
    ("store", AfucOp::Store),
    ("sub", AfucOp::Alu(AluOp::Sub)),
    ("subhi", AfucOp::Alu(AluOp::SubHi)),
    ("subhii", AfucOp::AluImm(AluOp::SubHi)),
    ("subi", AfucOp::AluImm(AluOp::Sub)),
    ("swrite", AfucOp::Swrite),
    ("ubfx", AfucOp::Ubfx),
    ("ushr", AfucOp::Alu(AluOp::Ushr)),
    ("ushri", AfucOp::AluImm(AluOp::Ushr)),
    ("waitin", AfucOp::Waitin),
    ("xor", AfucOp::Alu(AluOp::Xor)),
    ("xori", AfucOp::AluImm(AluOp::Xor)),
];

impl AfucOp {
    /// What an encoding of the table does, by its name there.
    fn of(leaf: &str) -> Option<AfucOp> {
        let at = LEAVES.binary_search_by(|&(name, _)| name.cmp(leaf)).ok();
        at.and_then(|at| LEAVES.get(at)).map(|&(_, op)| op)
    }

    /// The instructions that share a mnemonic, in the order of the table. None for `mov` and `jump`, which the table
    /// has as forms of others.
    pub fn with_mnemonic(mnemonic: &str) -> impl Iterator<Item = AfucOp> {
        let leaves = AFUC.leaves(AFUC_INSTRUCTION);
        leaves
            .filter(move |&leaf| AFUC.mnemonic(leaf) == mnemonic)
            .filter_map(|leaf| AfucOp::of(AFUC.name(leaf)))
    }

    /// Its operands.
    pub fn syntax(self) -> Syntax {
        match self {
            AfucOp::Alu(_) => Syntax::DstSrcSrc,
            AfucOp::AluImm(_) => Syntax::DstSrcImm,
            AfucOp::Not | AfucOp::Msb => Syntax::DstSrc,
            AfucOp::NotImm => Syntax::DstImm,
            AfucOp::MovImm => Syntax::DstImmShift,
            AfucOp::SetBitImm | AfucOp::ClrBit => Syntax::DstSrcBit,
            AfucOp::Ubfx | AfucOp::Bfi => Syntax::DstSrcBitBit,
            AfucOp::Store | AfucOp::Cwrite | AfucOp::Swrite => Syntax::SrcMem,
            AfucOp::Load | AfucOp::Cread | AfucOp::Sread => Syntax::DstMem,
            AfucOp::BrneImm | AfucOp::BreqImm => Syntax::SrcImmBranch,
            AfucOp::BrneBit | AfucOp::BreqBit => Syntax::SrcBitBranch,
            AfucOp::Call | AfucOp::Bl => Syntax::Call,
            AfucOp::Jumpa => Syntax::Absolute,
            AfucOp::JumpReg => Syntax::Src,
            AfucOp::SetSecure => Syntax::Secure,
            AfucOp::Ret | AfucOp::Iret | AfucOp::Sret | AfucOp::Waitin | AfucOp::Nop => Syntax::Nothing,
        }
    }

    /// What a field of the table means in this instruction.
    fn field(self, name: &str) -> Option<InsnField> {
        let branches = matches!(self.syntax(), Syntax::SrcImmBranch | Syntax::SrcBitBranch);
        Some(match name {
            "REP" => InsnField::Rep,
            "XMOV" => InsnField::Xmov,
            "PEEK" => InsnField::Peek,
            "SDS" => InsnField::Sds,
            "DST" => InsnField::Dst,
            "SRC1" | "SRC" => InsnField::Src1,
            "SRC2" => InsnField::Src2,
            "RIMMED" => InsnField::RegImm,
            "SHIFT" => InsnField::Shift,
            "BIT" | "LO" => InsnField::Bit,
            "HI" => InsnField::High,
            "PREINCREMENT" => InsnField::PreIncrement,
            "TARGET" => InsnField::Target,
            "OFFSET" if branches => InsnField::Branch,
            "OFFSET" => InsnField::Base,
            "BASE" if matches!(self, AfucOp::Swrite | AfucOp::Sread) => InsnField::SqeOffset,
            "BASE" => InsnField::ControlOffset,
            "IMMED" if matches!(self, AfucOp::Store | AfucOp::Load) => InsnField::MemOffset,
            "IMMED" => InsnField::Imm,
            _ => return None,
        })
    }
}

/// An instruction: what it does, and its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// What it does.
    pub op: AfucOp,
    fields: [u32; InsnField::COUNT],
}

/// An instruction that has no encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsnEncodeError {
    /// The generation does not have it.
    #[error("a{0}xx does not have this instruction")]
    Absent(u32),
    /// A field is set that the instruction does not have.
    #[error("{0} cannot be used with this instruction")]
    NoField(&'static str),
    /// A field's value does not fit.
    #[error("{value:#x} does not fit: {name} has {bits} bits")]
    TooLarge {
        /// What does not fit.
        name: &'static str,
        /// The value.
        value: u32,
        /// Bits there are.
        bits: u32,
    },
}

impl InsnField {
    fn label(self) -> &'static str {
        match self {
            InsnField::Rep => "(rep)",
            InsnField::Xmov => "(xmov)",
            InsnField::Peek => "(peek)",
            InsnField::Sds => "(sds)",
            InsnField::PreIncrement => "`!`",
            InsnField::Dst | InsnField::Src1 | InsnField::Src2 | InsnField::Base => "a register",
            InsnField::Imm | InsnField::RegImm => "the immediate",
            InsnField::ControlOffset | InsnField::SqeOffset | InsnField::MemOffset => "the offset",
            InsnField::Shift => "the shift",
            InsnField::Bit | InsnField::High => "the bit number",
            InsnField::Branch => "the distance to the label",
            InsnField::Target => "the target",
        }
    }
}

impl Insn {
    /// The instruction without operands.
    pub fn new(op: AfucOp) -> Insn {
        Insn { op, fields: [0; InsnField::COUNT] }
    }

    /// A field's value; 0 when the instruction does not have it. [`InsnField::Branch`] is sign-extended.
    pub fn get(&self, field: InsnField) -> u32 {
        self.fields.get(field as usize).copied().unwrap_or(0)
    }

    /// Whether a one-bit field is set.
    pub fn has(&self, field: InsnField) -> bool {
        self.get(field) != 0
    }

    /// Sets a field.
    pub fn set(&mut self, field: InsnField, value: u32) {
        if let Some(slot) = self.fields.get_mut(field as usize) {
            *slot = value;
        }
    }

    /// The same instruction with a field set.
    #[must_use]
    pub fn with(mut self, field: InsnField, value: u32) -> Insn {
        self.set(field, value);
        self
    }

    /// What a word means on a generation, and how the table reads it; `None` when it is no instruction there. Bits
    /// without effect are ignored.
    pub fn decode(word: u32, generation: u32) -> Option<(Insn, DecodedWord<'static>)> {
        let decoded = AFUC.decode(AFUC_INSTRUCTION, u128::from(word), generation)?;
        let mut insn = Insn::new(AfucOp::of(decoded.name())?);
        for (name, place) in decoded.fields() {
            let (Some((low, bits)), Some(field)) = (place, insn.op.field(name)) else { continue };
            let mut value = word.checked_shr(low).unwrap_or(0) & ones(bits);
            if field == InsnField::Branch && value > ones(bits.saturating_sub(1)) {
                value |= !ones(bits);
            }
            insn.set(field, value);
        }
        Some((insn, decoded))
    }

    /// The word of the instruction. Bits without effect are 0.
    ///
    /// # Errors
    /// The generation does not have it; a field does not fit, or is set and not in the encoding.
    pub fn encode(&self, generation: u32) -> Result<u32, InsnEncodeError> {
        use crate::table::FieldEncodeError as Refused;
        let name = LEAVES.iter().find(|&&(_, op)| op == self.op).map_or("", |&(name, _)| name);
        let leaf =
            AFUC.leaf(AFUC_INSTRUCTION, name, generation).ok_or(InsnEncodeError::Absent(generation))?;
        let asked = Cell::new(0u32);
        let value = |name: &str| {
            let field = self.op.field(name)?;
            asked.set(asked.get() | 1 << field as u32);
            let value = self.get(field);
            let wide = i64::from(value.cast_signed()).cast_unsigned();
            Some(if field == InsnField::Branch { wide } else { u64::from(value) })
        };
        let word = AFUC.encode(leaf, generation, &value).map_err(|refused| match refused {
            Refused::Range { field, width, .. } => {
                let field = self.op.field(&field).unwrap_or(InsnField::Imm);
                InsnEncodeError::TooLarge { name: field.label(), value: self.get(field), bits: width }
            }
            Refused::Missing { .. } | Refused::Generation { .. } => InsnEncodeError::Absent(generation),
        })?;
        match FIELDS.iter().find(|&&field| asked.get() >> field as u32 & 1 == 0 && self.has(field)) {
            Some(field) => Err(InsnEncodeError::NoField(field.label())),
            None => self.reaches(word, generation),
        }
    }

    /// A distance keeps its sign only where its highest bit says so.
    fn reaches(&self, word: u128, generation: u32) -> Result<u32, InsnEncodeError> {
        let word = u32::try_from(word).map_err(|_| InsnEncodeError::Absent(generation))?;
        if !self.has(InsnField::Branch) {
            return Ok(word);
        }
        let (insn, decoded) = Insn::decode(word, generation).ok_or(InsnEncodeError::Absent(generation))?;
        if insn.get(InsnField::Branch) == self.get(InsnField::Branch) {
            return Ok(word);
        }
        let place = decoded.fields().find(|&(name, _)| self.op.field(name) == Some(InsnField::Branch));
        let bits = place.and_then(|(_, place)| place).map_or(0, |(_, bits)| bits);
        Err(InsnEncodeError::TooLarge {
            name: InsnField::Branch.label(),
            value: self.get(InsnField::Branch),
            bits,
        })
    }
}

fn ones(bits: u32) -> u32 {
    1u32.checked_shl(bits).unwrap_or(0).wrapping_sub(1)
}

const FIELDS: [InsnField; InsnField::COUNT] = [
    InsnField::Rep,
    InsnField::Xmov,
    InsnField::Peek,
    InsnField::Sds,
    InsnField::Dst,
    InsnField::Src1,
    InsnField::Src2,
    InsnField::Base,
    InsnField::Imm,
    InsnField::RegImm,
    InsnField::ControlOffset,
    InsnField::SqeOffset,
    InsnField::MemOffset,
    InsnField::PreIncrement,
    InsnField::Shift,
    InsnField::Bit,
    InsnField::High,
    InsnField::Branch,
    InsnField::Target,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::generate;

    #[test]
    fn the_names_are_sorted_and_are_those_of_the_table() {
        assert!(LEAVES.is_sorted_by(|a, b| a.0 < b.0));
        for leaf in AFUC.leaves(AFUC_INSTRUCTION) {
            assert!(AfucOp::of(AFUC.name(leaf)).is_some(), "{}", AFUC.name(leaf));
        }
        for (name, op) in LEAVES {
            assert!((5..=7).any(|gen_| AFUC.leaf(AFUC_INSTRUCTION, name, gen_).is_some()), "{name}");
            assert_eq!(AfucOp::of(name), Some(op));
        }
    }

    #[test]
    fn every_instruction_decodes_back_to_itself() {
        for leaf in AFUC.leaves(AFUC_INSTRUCTION) {
            let (first, last) = AFUC.generations(leaf);
            for generation in first.max(5)..=last.min(7) {
                for word in generate::words(AFUC, leaf, 1, 100) {
                    let word = u32::try_from(word).expect("32 bits");
                    let name = AFUC.name(leaf);
                    let Some((insn, decoded)) = Insn::decode(word, generation) else {
                        panic!("a{generation}xx {name}: {word:08x} has no reading, or two");
                    };
                    assert_eq!(decoded.leaf(), leaf, "a{generation}xx {word:08x}");
                    assert_eq!(insn.encode(generation), Ok(word), "a{generation}xx {name}: {insn:?}");
                }
            }
        }
    }

    #[test]
    fn every_field_of_the_table_has_a_meaning() {
        for leaf in AFUC.leaves(AFUC_INSTRUCTION) {
            let (first, last) = AFUC.generations(leaf);
            let word = generate::words(AFUC, leaf, 1, 0).next().expect("a word");
            for generation in [first.max(5), last.min(7)] {
                let decoded = AFUC.decode(AFUC_INSTRUCTION, word, generation).expect("a reading");
                let op = AfucOp::of(decoded.name()).expect("an instruction");
                let unknown =
                    decoded.fields().find(|&(name, place)| place.is_some() && op.field(name).is_none());
                assert_eq!(unknown, None, "{}", decoded.name());
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let wide = Insn::new(AfucOp::AluImm(AluOp::Shl)).with(InsnField::RegImm, 0x1000);
        assert_eq!(wide.encode(6).map(|word| word & 0xffff), Ok(0x1000));
        assert!(matches!(wide.encode(7), Err(InsnEncodeError::TooLarge { bits: 12, .. })));
        assert_eq!(Insn::new(AfucOp::Load).encode(5), Err(InsnEncodeError::Absent(5)));
        let repeated = Insn::new(AfucOp::Ret).with(InsnField::Rep, 1);
        assert_eq!(repeated.encode(6), Err(InsnEncodeError::NoField("(rep)")));
        let far = Insn::new(AfucOp::BreqBit).with(InsnField::Branch, 0x8000);
        assert!(matches!(far.encode(6), Err(InsnEncodeError::TooLarge { bits: 16, .. })));
        let back = Insn::new(AfucOp::BreqBit).with(InsnField::Branch, (-0x8000i32).cast_unsigned());
        assert!(back.encode(6).is_ok());
    }
}
