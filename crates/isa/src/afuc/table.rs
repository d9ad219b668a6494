//! Every afuc instruction: its bits, its fields, its text. Decoder, encoder, printer and proofs read this table only.
//!
//! Never knows what an instruction does. Facts: the machine-readable description of the encodings in Mesa 25.0.

use std::ops::RangeInclusive;

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

/// The bits of one field: which, lowest, highest.
pub type Place = (Field, u8, u8);

/// One encoding of one instruction.
#[derive(Debug)]
pub struct Row {
    /// What it does.
    pub op: Op,
    /// Its mnemonic.
    pub mnemonic: &'static str,
    /// Generations that have it.
    pub generations: RangeInclusive<u32>,
    /// Bits with a fixed value.
    pub mask: u32,
    /// Their value.
    pub value: u32,
    /// The other bits; those of no field have no effect.
    pub fields: &'static [Place],
    /// Operands, as in the text after the mnemonic.
    pub syntax: Syntax,
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

const REP: Place = (Field::Rep, 26, 26);
const SRC1: Place = (Field::Src1, 21, 25);
const DST: Place = (Field::Dst, 16, 20);

const ALU: &[Place] =
    &[REP, SRC1, (Field::Src2, 16, 20), (Field::Dst, 11, 15), (Field::Xmov, 9, 10), (Field::Peek, 8, 8)];
const ALU_1: &[Place] = &[REP, (Field::Src1, 16, 20), (Field::Dst, 11, 15), (Field::Xmov, 9, 10)];
const IMM_16: &[Place] = &[REP, SRC1, DST, (Field::RegImm, 0, 15)];
const IMM_12: &[Place] = &[REP, SRC1, DST, (Field::RegImm, 0, 11)];
const IMM_1: &[Place] = &[REP, DST, (Field::Imm, 0, 15)];
const MOVE: &[Place] = &[REP, (Field::Shift, 21, 25), DST, (Field::RegImm, 0, 15)];
const BIT: &[Place] = &[REP, SRC1, DST, (Field::Bit, 1, 5)];
const BIT_FIELD: &[Place] = &[REP, SRC1, DST, (Field::High, 5, 9), (Field::Bit, 0, 4)];
const BASE: Place = (Field::Base, 21, 25);
const STORED: Place = (Field::Src1, 16, 20);
const INCREMENT: Place = (Field::PreIncrement, 14, 14);
const MEM_STORE: &[Place] = &[REP, BASE, STORED, INCREMENT, (Field::MemOffset, 0, 11)];
const MEM_LOAD: &[Place] = &[REP, BASE, DST, INCREMENT, (Field::MemOffset, 0, 11)];
const CTRL_WRITE: &[Place] =
    &[REP, BASE, STORED, INCREMENT, (Field::Sds, 12, 13), (Field::ControlOffset, 0, 11)];
const CTRL_READ: &[Place] = &[REP, BASE, DST, INCREMENT, (Field::ControlOffset, 0, 11)];
const SQE_WRITE: &[Place] = &[REP, BASE, STORED, INCREMENT, (Field::SqeOffset, 0, 11)];
const SQE_READ: &[Place] = &[REP, BASE, DST, INCREMENT, (Field::SqeOffset, 0, 11)];
const BRANCH_IMM: &[Place] = &[SRC1, (Field::Imm, 16, 20), (Field::Branch, 0, 15)];
const BRANCH_BIT: &[Place] = &[SRC1, (Field::Bit, 16, 20), (Field::Branch, 0, 15)];
const TARGET: &[Place] = &[(Field::Target, 0, 25)];

const TOP_5: u32 = 0x1f << 27;
const TOP_6: u32 = 0x3f << 26;
const ALU_TOP: u32 = 0b10011 << 27;
const PACKED_TOP: u32 = 0b10010 << 27;
const PACKED_MASK: u32 = TOP_5 | 0xf << 12;
const FLAG: u32 = 1 << 15;
const MEM_MASK: u32 = TOP_5 | FLAG | 0x3 << 12;

const ANY: RangeInclusive<u32> = 5..=7;
const TO_5: RangeInclusive<u32> = 5..=5;
const TO_6: RangeInclusive<u32> = 5..=6;
const FROM_6: RangeInclusive<u32> = 6..=7;
const FROM_7: RangeInclusive<u32> = 7..=7;

const fn row(
    op: Op,
    mnemonic: &'static str,
    generations: RangeInclusive<u32>,
    bits: (u32, u32),
    fields: &'static [Place],
    syntax: Syntax,
) -> Row {
    Row { op, mnemonic, generations, mask: bits.0, value: bits.1, fields, syntax }
}

const fn alu(alu: Alu, mnemonic: &'static str, generations: RangeInclusive<u32>, code: u32) -> Row {
    row(Op::Alu(alu), mnemonic, generations, (TOP_5 | 0x1f, ALU_TOP | code), ALU, Syntax::DstSrcSrc)
}

const fn unary(op: Op, mnemonic: &'static str, generations: RangeInclusive<u32>, code: u32) -> Row {
    row(op, mnemonic, generations, (TOP_5 | 0x1f, ALU_TOP | code), ALU_1, Syntax::DstSrc)
}

const fn imm16(alu: Alu, mnemonic: &'static str, generations: RangeInclusive<u32>, code: u32) -> Row {
    row(Op::AluImm(alu), mnemonic, generations, (TOP_5, code << 27), IMM_16, Syntax::DstSrcImm)
}

const fn imm12(alu: Alu, mnemonic: &'static str, code: u32) -> Row {
    let bits = (PACKED_MASK, PACKED_TOP | code << 12);
    row(Op::AluImm(alu), mnemonic, FROM_7, bits, IMM_12, Syntax::DstSrcImm)
}

const fn mem(
    op: Op,
    mnemonic: &'static str,
    generations: RangeInclusive<u32>,
    top: u32,
    flag: u32,
    fields: &'static [Place],
) -> Row {
    let is_store = matches!(op, Op::Store | Op::Cwrite | Op::Swrite);
    let syntax = if is_store { Syntax::SrcMem } else { Syntax::DstMem };
    let mask = if matches!(op, Op::Cwrite) { TOP_5 | FLAG } else { MEM_MASK };
    row(op, mnemonic, generations, (mask, top << 27 | flag), fields, syntax)
}

const fn top6(op: Op, mnemonic: &'static str, code: u32, fields: &'static [Place], syntax: Syntax) -> Row {
    row(op, mnemonic, ANY, (TOP_6, code << 26), fields, syntax)
}

/// The instruction set.
pub static ROWS: &[Row] = &[
    alu(Alu::Add, "add", ANY, 0x01),
    alu(Alu::AddHi, "addhi", ANY, 0x02),
    alu(Alu::Sub, "sub", ANY, 0x03),
    alu(Alu::SubHi, "subhi", ANY, 0x04),
    alu(Alu::And, "and", ANY, 0x05),
    alu(Alu::Or, "or", ANY, 0x06),
    alu(Alu::Xor, "xor", ANY, 0x07),
    alu(Alu::Shl, "shl", TO_6, 0x09),
    alu(Alu::Shl, "shl", FROM_7, 0x12),
    alu(Alu::Ushr, "ushr", TO_6, 0x0a),
    alu(Alu::Ushr, "ushr", FROM_7, 0x13),
    alu(Alu::Ishr, "ishr", TO_6, 0x0b),
    alu(Alu::Ishr, "ishr", FROM_7, 0x14),
    alu(Alu::Rot, "rot", TO_6, 0x0c),
    alu(Alu::Rot, "rot", FROM_7, 0x15),
    alu(Alu::Mul8, "mul8", TO_6, 0x0d),
    alu(Alu::Mul8, "mul8", FROM_7, 0x0c),
    alu(Alu::Min, "min", TO_6, 0x0e),
    alu(Alu::Min, "min", FROM_7, 0x0a),
    alu(Alu::Max, "max", TO_6, 0x0f),
    alu(Alu::Max, "max", FROM_7, 0x0b),
    alu(Alu::Cmp, "cmp", TO_6, 0x10),
    alu(Alu::Cmp, "cmp", FROM_7, 0x0d),
    alu(Alu::Bic, "bic", FROM_7, 0x09),
    alu(Alu::SetBit, "setbit", FROM_7, 0x16),
    unary(Op::Not, "not", ANY, 0x08),
    unary(Op::Msb, "msb", TO_6, 0x14),
    unary(Op::Msb, "msb", FROM_7, 0x19),
    imm16(Alu::Add, "add", ANY, 0x01),
    imm16(Alu::AddHi, "addhi", ANY, 0x02),
    imm16(Alu::Sub, "sub", ANY, 0x03),
    imm16(Alu::SubHi, "subhi", ANY, 0x04),
    imm16(Alu::And, "and", ANY, 0x05),
    imm16(Alu::Or, "or", ANY, 0x06),
    imm16(Alu::Xor, "xor", ANY, 0x07),
    imm16(Alu::Shl, "shl", TO_6, 0x09),
    imm12(Alu::Shl, "shl", 0x2),
    imm16(Alu::Ushr, "ushr", TO_6, 0x0a),
    imm12(Alu::Ushr, "ushr", 0x3),
    imm16(Alu::Ishr, "ishr", TO_6, 0x0b),
    imm12(Alu::Ishr, "ishr", 0x4),
    imm16(Alu::Rot, "rot", TO_6, 0x0c),
    imm12(Alu::Rot, "rot", 0x5),
    imm16(Alu::Mul8, "mul8", TO_6, 0x0d),
    imm16(Alu::Mul8, "mul8", FROM_7, 0x0c),
    imm16(Alu::Min, "min", TO_6, 0x0e),
    imm16(Alu::Min, "min", FROM_7, 0x0a),
    imm16(Alu::Max, "max", TO_6, 0x0f),
    imm16(Alu::Max, "max", FROM_7, 0x0b),
    imm16(Alu::Cmp, "cmp", TO_6, 0x10),
    imm16(Alu::Cmp, "cmp", FROM_7, 0x0d),
    imm16(Alu::Bic, "bic", FROM_7, 0x09),
    row(Op::NotImm, "not", ANY, (TOP_5, 0x08 << 27), IMM_1, Syntax::DstImm),
    row(Op::MovImm, "mov", TO_6, (TOP_5, 0x11 << 27), MOVE, Syntax::DstImmShift),
    row(Op::MovImm, "mov", FROM_7, (TOP_5, 0x0e << 27), MOVE, Syntax::DstImmShift),
    row(Op::SetBitImm, "setbit", TO_6, (TOP_5 | 1, PACKED_TOP | 1), BIT, Syntax::DstSrcBit),
    row(Op::SetBitImm, "setbit", FROM_7, (PACKED_MASK | 1, PACKED_TOP | 6 << 12 | 1), BIT, Syntax::DstSrcBit),
    row(Op::ClrBit, "clrbit", TO_6, (TOP_5 | 1, PACKED_TOP), BIT, Syntax::DstSrcBit),
    row(Op::ClrBit, "clrbit", FROM_7, (PACKED_MASK | 1, PACKED_TOP | 6 << 12), BIT, Syntax::DstSrcBit),
    row(Op::Ubfx, "ubfx", FROM_7, (PACKED_MASK, PACKED_TOP | 7 << 12), BIT_FIELD, Syntax::DstSrcBitBit),
    row(Op::Bfi, "bfi", FROM_7, (PACKED_MASK, PACKED_TOP | 8 << 12), BIT_FIELD, Syntax::DstSrcBitBit),
    mem(Op::Store, "store", TO_5, 0x15, 0, MEM_STORE),
    mem(Op::Store, "store", FROM_6, 0x14, 0, MEM_STORE),
    mem(Op::Cwrite, "cwrite", TO_5, 0x15, FLAG, CTRL_WRITE),
    mem(Op::Cwrite, "cwrite", FROM_6, 0x15, 0, CTRL_WRITE),
    mem(Op::Swrite, "swrite", FROM_6, 0x15, FLAG, SQE_WRITE),
    mem(Op::Load, "load", FROM_6, 0x16, 0, MEM_LOAD),
    mem(Op::Cread, "cread", TO_5, 0x16, FLAG, CTRL_READ),
    mem(Op::Cread, "cread", FROM_6, 0x17, 0, CTRL_READ),
    mem(Op::Sread, "sread", FROM_6, 0x17, FLAG, SQE_READ),
    top6(Op::BrneImm, "brne", 0x30, BRANCH_IMM, Syntax::SrcImmBranch),
    top6(Op::BreqImm, "breq", 0x31, BRANCH_IMM, Syntax::SrcImmBranch),
    top6(Op::BrneBit, "brne", 0x32, BRANCH_BIT, Syntax::SrcBitBranch),
    top6(Op::BreqBit, "breq", 0x33, BRANCH_BIT, Syntax::SrcBitBranch),
    row(Op::Ret, "ret", ANY, (TOP_6 | 1 << 25, 0x34 << 26), &[], Syntax::Nothing),
    row(Op::Iret, "iret", ANY, (TOP_6 | 1 << 25, 0x34 << 26 | 1 << 25), &[], Syntax::Nothing),
    top6(Op::Call, "call", 0x35, TARGET, Syntax::Call),
    top6(Op::Waitin, "waitin", 0x36, &[], Syntax::Nothing),
    row(
        Op::JumpReg,
        "jump",
        FROM_7,
        (!0x1f, 0x37 << 26 | 0b110111 << 20),
        &[(Field::Src1, 0, 4)],
        Syntax::Src,
    ),
    row(Op::Sret, "sret", FROM_7, (!0, 0x37 << 26 | 0b110110 << 20), &[], Syntax::Nothing),
    top6(Op::Bl, "bl", 0x38, TARGET, Syntax::Call),
    row(Op::Jumpa, "jumpa", FROM_7, (TOP_6, 0x39 << 26), TARGET, Syntax::Absolute),
    top6(Op::SetSecure, "setsecure", 0x3b, &[], Syntax::Secure),
    row(Op::Nop, "nop", TO_5, (!(1 << 26), 0), &[REP], Syntax::Nothing),
    row(Op::Nop, "nop", FROM_6, (!(1 << 26), 1 << 24), &[REP], Syntax::Nothing),
];

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

    /// What a word means on a generation, and its row; `None` when it is no instruction there. Bits without effect are
    /// ignored.
    pub fn decode(word: u32, generation: u32) -> Option<(Insn, &'static Row)> {
        let row =
            ROWS.iter().find(|row| word & row.mask == row.value && row.generations.contains(&generation))?;
        let mut insn = Insn::new(row.op);
        for &(field, low, high) in row.fields {
            let bits = u32::from(high - low) + 1;
            let mut value = word >> low & ones(bits);
            if field == Field::Branch && value >> (bits - 1) == 1 {
                value |= !ones(bits);
            }
            insn.set(field, value);
        }
        Some((insn, row))
    }

    /// The word of the instruction. Bits without effect are 0.
    pub fn encode(&self, generation: u32) -> Result<u32, EncodeError> {
        let row = ROWS
            .iter()
            .find(|row| row.op == self.op && row.generations.contains(&generation))
            .ok_or(EncodeError::Absent(generation))?;
        let mut word = row.value;
        let mut left = self.fields;
        for &(field, low, high) in row.fields {
            let bits = u32::from(high - low) + 1;
            let value = std::mem::take(&mut left[field as usize]);
            let excess = if field == Field::Branch {
                let extended = (value << (32 - bits)).cast_signed() >> (32 - bits);
                extended.cast_unsigned() != value
            } else {
                value & !ones(bits) != 0
            };
            if excess {
                return Err(EncodeError::TooLarge { name: field.label(), value, bits });
            }
            word |= (value & ones(bits)) << low;
        }
        match FIELDS.iter().find(|&&field| left[field as usize] != 0) {
            Some(field) => Err(EncodeError::NoField(field.label())),
            None => Ok(word),
        }
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

    #[test]
    fn no_word_has_two_readings() {
        for generation in 5..=7 {
            let rows: Vec<&Row> = ROWS.iter().filter(|row| row.generations.contains(&generation)).collect();
            for (i, a) in rows.iter().enumerate() {
                for b in &rows[i + 1..] {
                    let common = a.mask & b.mask;
                    assert_ne!(a.value & common, b.value & common, "a{generation}xx: {a:?} and {b:?}");
                }
            }
        }
    }

    #[test]
    fn the_rows_are_well_formed() {
        for row in ROWS {
            assert_eq!(row.value & !row.mask, 0, "{row:?}");
            let mut taken = row.mask;
            for &(field, low, high) in row.fields {
                let bits = ones(u32::from(high - low) + 1) << low;
                assert_eq!(taken & bits, 0, "{row:?}: {field:?}");
                taken |= bits;
            }
            let same = ROWS.iter().filter(|other| other.op == row.op);
            let overlapping = same.filter(|other| {
                other.generations.start() <= row.generations.end()
                    && row.generations.start() <= other.generations.end()
            });
            assert_eq!(overlapping.count(), 1, "{row:?}");
        }
    }

    /// Every field of every row at 0, all ones, and patterns in between.
    #[test]
    fn every_instruction_decodes_back_to_itself() {
        for row in ROWS {
            for generation in row.generations.clone() {
                for pattern in [0, !0, 0x5555_5555, 0xaaaa_aaaa, 0x1234_5678, 0x8765_4321u32] {
                    let word = row.value | pattern & !row.mask;
                    let (insn, found) = Insn::decode(word, generation).expect("a reading");
                    assert!(std::ptr::eq(row, found));
                    let effective: u32 = row
                        .fields
                        .iter()
                        .map(|&(_, low, high)| ones(u32::from(high - low) + 1) << low)
                        .fold(row.mask, |all, bits| all | bits);
                    assert_eq!(insn.encode(generation), Ok(word & effective), "{row:?}");
                }
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
    }
}
