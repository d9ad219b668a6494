//! An instruction as what it does and its fields, over the encodings of the instruction table.
//!
//! Names of the table's encodings and fields become types here; bits, generations and texts stay in the table. Never
//! knows what an instruction does.

use crate::table::Decoded;
use crate::tables::{AFUC, AFUC_INSTRUCTION};
use std::cell::Cell;

/// What an instruction does; two generations may encode the same one differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// A two-source operation on registers.
    Alu(Alu),
    /// A two-source operation whose second source is an immediate.
    AluImm(Alu),
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
pub enum Alu {
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
pub enum Field {
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

impl Field {
    const COUNT: usize = Field::Target as usize + 1;
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
const LEAVES: [(&str, Op); 61] = [
    ("add", Op::Alu(Alu::Add)),
    ("addhi", Op::Alu(Alu::AddHi)),
    ("addhii", Op::AluImm(Alu::AddHi)),
    ("addi", Op::AluImm(Alu::Add)),
    ("and", Op::Alu(Alu::And)),
    ("andi", Op::AluImm(Alu::And)),
    ("bfi", Op::Bfi),
    ("bic", Op::Alu(Alu::Bic)),
    ("bici", Op::AluImm(Alu::Bic)),
    ("bl", Op::Bl),
    ("breqb", Op::BreqBit),
    ("breqi", Op::BreqImm),
    ("brneb", Op::BrneBit),
    ("brnei", Op::BrneImm),
    ("call", Op::Call),
    ("clrbit", Op::ClrBit),
    ("cmp", Op::Alu(Alu::Cmp)),
    ("cmpi", Op::AluImm(Alu::Cmp)),
    ("cread", Op::Cread),
    ("cwrite", Op::Cwrite),
    ("iret", Op::Iret),
    ("ishr", Op::Alu(Alu::Ishr)),
    ("ishri", Op::AluImm(Alu::Ishr)),
    ("jumpa", Op::Jumpa),
    ("jumpr", Op::JumpReg),
    ("load", Op::Load),
    ("max", Op::Alu(Alu::Max)),
    ("maxi", Op::AluImm(Alu::Max)),
    ("min", Op::Alu(Alu::Min)),
    ("mini", Op::AluImm(Alu::Min)),
    ("movi", Op::MovImm),
    ("msb", Op::Msb),
    ("mul8", Op::Alu(Alu::Mul8)),
    ("mul8i", Op::AluImm(Alu::Mul8)),
    ("nop", Op::Nop),
    ("not", Op::Not),
    ("noti", Op::NotImm),
    ("or", Op::Alu(Alu::Or)),
    ("ori", Op::AluImm(Alu::Or)),
    ("ret", Op::Ret),
    ("rot", Op::Alu(Alu::Rot)),
    ("roti", Op::AluImm(Alu::Rot)),
    ("setbit", Op::Alu(Alu::SetBit)),
    ("setbiti", Op::SetBitImm),
    ("setsecure", Op::SetSecure),
    ("shl", Op::Alu(Alu::Shl)),
    ("shli", Op::AluImm(Alu::Shl)),
    ("sread", Op::Sread),
    ("sret", Op::Sret),
    ("store", Op::Store),
    ("sub", Op::Alu(Alu::Sub)),
    ("subhi", Op::Alu(Alu::SubHi)),
    ("subhii", Op::AluImm(Alu::SubHi)),
    ("subi", Op::AluImm(Alu::Sub)),
    ("swrite", Op::Swrite),
    ("ubfx", Op::Ubfx),
    ("ushr", Op::Alu(Alu::Ushr)),
    ("ushri", Op::AluImm(Alu::Ushr)),
    ("waitin", Op::Waitin),
    ("xor", Op::Alu(Alu::Xor)),
    ("xori", Op::AluImm(Alu::Xor)),
];

impl Op {
    /// What an encoding of the table does, by its name there.
    fn of(leaf: &str) -> Option<Op> {
        let at = LEAVES.binary_search_by(|&(name, _)| name.cmp(leaf)).ok();
        at.and_then(|at| LEAVES.get(at)).map(|&(_, op)| op)
    }

    /// The instructions that share a mnemonic, in the order of the table. None for `mov` and `jump`, which the table
    /// has as forms of others.
    pub fn with_mnemonic(mnemonic: &str) -> impl Iterator<Item = Op> {
        let leaves = AFUC.leaves(AFUC_INSTRUCTION);
        leaves.filter(move |&leaf| AFUC.mnemonic(leaf) == mnemonic).filter_map(|leaf| Op::of(AFUC.name(leaf)))
    }

    /// Its operands.
    pub fn syntax(self) -> Syntax {
        match self {
            Op::Alu(_) => Syntax::DstSrcSrc,
            Op::AluImm(_) => Syntax::DstSrcImm,
            Op::Not | Op::Msb => Syntax::DstSrc,
            Op::NotImm => Syntax::DstImm,
            Op::MovImm => Syntax::DstImmShift,
            Op::SetBitImm | Op::ClrBit => Syntax::DstSrcBit,
            Op::Ubfx | Op::Bfi => Syntax::DstSrcBitBit,
            Op::Store | Op::Cwrite | Op::Swrite => Syntax::SrcMem,
            Op::Load | Op::Cread | Op::Sread => Syntax::DstMem,
            Op::BrneImm | Op::BreqImm => Syntax::SrcImmBranch,
            Op::BrneBit | Op::BreqBit => Syntax::SrcBitBranch,
            Op::Call | Op::Bl => Syntax::Call,
            Op::Jumpa => Syntax::Absolute,
            Op::JumpReg => Syntax::Src,
            Op::SetSecure => Syntax::Secure,
            Op::Ret | Op::Iret | Op::Sret | Op::Waitin | Op::Nop => Syntax::Nothing,
        }
    }

    /// What a field of the table means in this instruction.
    fn field(self, name: &str) -> Option<Field> {
        let branches = matches!(self.syntax(), Syntax::SrcImmBranch | Syntax::SrcBitBranch);
        Some(match name {
            "REP" => Field::Rep,
            "XMOV" => Field::Xmov,
            "PEEK" => Field::Peek,
            "SDS" => Field::Sds,
            "DST" => Field::Dst,
            "SRC1" | "SRC" => Field::Src1,
            "SRC2" => Field::Src2,
            "RIMMED" => Field::RegImm,
            "SHIFT" => Field::Shift,
            "BIT" | "LO" => Field::Bit,
            "HI" => Field::High,
            "PREINCREMENT" => Field::PreIncrement,
            "TARGET" => Field::Target,
            "OFFSET" if branches => Field::Branch,
            "OFFSET" => Field::Base,
            "BASE" if matches!(self, Op::Swrite | Op::Sread) => Field::SqeOffset,
            "BASE" => Field::ControlOffset,
            "IMMED" if matches!(self, Op::Store | Op::Load) => Field::MemOffset,
            "IMMED" => Field::Imm,
            _ => return None,
        })
    }
}

/// An instruction: what it does, and its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// What it does.
    pub op: Op,
    fields: [u32; Field::COUNT],
}

/// An instruction that has no encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
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

impl Field {
    fn label(self) -> &'static str {
        match self {
            Field::Rep => "(rep)",
            Field::Xmov => "(xmov)",
            Field::Peek => "(peek)",
            Field::Sds => "(sds)",
            Field::PreIncrement => "`!`",
            Field::Dst | Field::Src1 | Field::Src2 | Field::Base => "a register",
            Field::Imm | Field::RegImm => "the immediate",
            Field::ControlOffset | Field::SqeOffset | Field::MemOffset => "the offset",
            Field::Shift => "the shift",
            Field::Bit | Field::High => "the bit number",
            Field::Branch => "the distance to the label",
            Field::Target => "the target",
        }
    }
}

impl Insn {
    /// The instruction without operands.
    pub fn new(op: Op) -> Insn {
        Insn { op, fields: [0; Field::COUNT] }
    }

    /// A field's value; 0 when the instruction does not have it. [`Field::Branch`] is sign-extended.
    pub fn get(&self, field: Field) -> u32 {
        self.fields.get(field as usize).copied().unwrap_or(0)
    }

    /// Whether a one-bit field is set.
    pub fn has(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// Sets a field.
    pub fn set(&mut self, field: Field, value: u32) {
        if let Some(slot) = self.fields.get_mut(field as usize) {
            *slot = value;
        }
    }

    /// The same instruction with a field set.
    #[must_use]
    pub fn with(mut self, field: Field, value: u32) -> Insn {
        self.set(field, value);
        self
    }

    /// What a word means on a generation, and how the table reads it; `None` when it is no instruction there. Bits
    /// without effect are ignored.
    pub fn decode(word: u32, generation: u32) -> Option<(Insn, Decoded<'static>)> {
        let decoded = AFUC.decode(AFUC_INSTRUCTION, u128::from(word), generation)?;
        let mut insn = Insn::new(Op::of(decoded.name())?);
        for (name, place) in decoded.fields() {
            let (Some((low, bits)), Some(field)) = (place, insn.op.field(name)) else { continue };
            let mut value = word.checked_shr(low).unwrap_or(0) & ones(bits);
            if field == Field::Branch && value > ones(bits.saturating_sub(1)) {
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
    pub fn encode(&self, generation: u32) -> Result<u32, EncodeError> {
        use crate::table::EncodeError as Refused;
        let name = LEAVES.iter().find(|&&(_, op)| op == self.op).map_or("", |&(name, _)| name);
        let leaf = AFUC.leaf(AFUC_INSTRUCTION, name, generation).ok_or(EncodeError::Absent(generation))?;
        let asked = Cell::new(0u32);
        let value = |name: &str| {
            let field = self.op.field(name)?;
            asked.set(asked.get() | 1 << field as u32);
            let value = self.get(field);
            let wide = i64::from(value.cast_signed()).cast_unsigned();
            Some(if field == Field::Branch { wide } else { u64::from(value) })
        };
        let word = AFUC.encode(leaf, generation, &value).map_err(|refused| match refused {
            Refused::Range { field, width, .. } => {
                let field = self.op.field(&field).unwrap_or(Field::Imm);
                EncodeError::TooLarge { name: field.label(), value: self.get(field), bits: width }
            }
            Refused::Missing { .. } | Refused::Generation { .. } => EncodeError::Absent(generation),
        })?;
        match FIELDS.iter().find(|&&field| asked.get() >> field as u32 & 1 == 0 && self.has(field)) {
            Some(field) => Err(EncodeError::NoField(field.label())),
            None => self.reaches(word, generation),
        }
    }

    /// A distance keeps its sign only where its highest bit says so.
    fn reaches(&self, word: u128, generation: u32) -> Result<u32, EncodeError> {
        let word = u32::try_from(word).map_err(|_| EncodeError::Absent(generation))?;
        if !self.has(Field::Branch) {
            return Ok(word);
        }
        let (insn, decoded) = Insn::decode(word, generation).ok_or(EncodeError::Absent(generation))?;
        if insn.get(Field::Branch) == self.get(Field::Branch) {
            return Ok(word);
        }
        let place = decoded.fields().find(|&(name, _)| self.op.field(name) == Some(Field::Branch));
        let bits = place.and_then(|(_, place)| place).map_or(0, |(_, bits)| bits);
        Err(EncodeError::TooLarge { name: Field::Branch.label(), value: self.get(Field::Branch), bits })
    }
}

fn ones(bits: u32) -> u32 {
    1u32.checked_shl(bits).unwrap_or(0).wrapping_sub(1)
}

const FIELDS: [Field; Field::COUNT] = [
    Field::Rep,
    Field::Xmov,
    Field::Peek,
    Field::Sds,
    Field::Dst,
    Field::Src1,
    Field::Src2,
    Field::Base,
    Field::Imm,
    Field::RegImm,
    Field::ControlOffset,
    Field::SqeOffset,
    Field::MemOffset,
    Field::PreIncrement,
    Field::Shift,
    Field::Bit,
    Field::High,
    Field::Branch,
    Field::Target,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::generate;

    #[test]
    fn the_names_are_sorted_and_are_those_of_the_table() {
        assert!(LEAVES.is_sorted_by(|a, b| a.0 < b.0));
        for leaf in AFUC.leaves(AFUC_INSTRUCTION) {
            assert!(Op::of(AFUC.name(leaf)).is_some(), "{}", AFUC.name(leaf));
        }
        for (name, op) in LEAVES {
            assert!((5..=7).any(|gen_| AFUC.leaf(AFUC_INSTRUCTION, name, gen_).is_some()), "{name}");
            assert_eq!(Op::of(name), Some(op));
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
                let op = Op::of(decoded.name()).expect("an instruction");
                let unknown =
                    decoded.fields().find(|&(name, place)| place.is_some() && op.field(name).is_none());
                assert_eq!(unknown, None, "{}", decoded.name());
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let wide = Insn::new(Op::AluImm(Alu::Shl)).with(Field::RegImm, 0x1000);
        assert_eq!(wide.encode(6).map(|word| word & 0xffff), Ok(0x1000));
        assert!(matches!(wide.encode(7), Err(EncodeError::TooLarge { bits: 12, .. })));
        assert_eq!(Insn::new(Op::Load).encode(5), Err(EncodeError::Absent(5)));
        let repeated = Insn::new(Op::Ret).with(Field::Rep, 1);
        assert_eq!(repeated.encode(6), Err(EncodeError::NoField("(rep)")));
        let far = Insn::new(Op::BreqBit).with(Field::Branch, 0x8000);
        assert!(matches!(far.encode(6), Err(EncodeError::TooLarge { bits: 16, .. })));
        let back = Insn::new(Op::BreqBit).with(Field::Branch, (-0x8000i32).cast_unsigned());
        assert!(back.encode(6).is_ok());
    }
}
