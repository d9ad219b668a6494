//! One instruction: which, with which operands and modifiers. Small, copied freely, nothing on the heap.

use super::gpu::Gpu;
use super::model::{Form, Mod, OperandSlot, Type};
use super::opcode::Opcode;
use super::regs::Reg;
use super::tables::{self, InstRow, Variant};

/// The most operands an instruction is written with: those of a dual one.
pub const OPERANDS: usize = 8;

/// Which half of a register a 16-bit operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RegHalf {
    /// Not said: the whole register.
    #[default]
    Whole,
    /// `.l`.
    Low,
    /// `.h`.
    High,
}

/// An operand, in the order operands are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Operand {
    /// None: the place is empty.
    #[default]
    None,
    /// A register, or several from that one on.
    Reg {
        /// The first.
        reg: Reg,
        /// How many.
        dwords: u8,
        /// Which half of it.
        half: RegHalf,
    },
    /// An inline constant, by the code that encodes it: 128 to 208 are integers, 240 to 248 floating point.
    Inline(u8),
    /// A literal: the dword as it is encoded.
    Literal(u32),
    /// A value of a field: an immediate, an offset, a message, a hardware register.
    Imm(i32),
    /// `off`.
    Off,
    /// As many registers as that, their numbers in [`Inst::list`].
    List(u8),
}

impl Operand {
    /// Registers from `reg` on.
    pub const fn reg(reg: Reg, dwords: u8) -> Operand {
        Operand::Reg { reg, dwords, half: RegHalf::Whole }
    }
}

/// The values of all modifiers. Zero is: not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mods([u64; 4]);

/// Where each modifier's value lies: word, lowest bit.
const PLACES: [(u8, u8); Mod::ALL.len()] = {
    let mut places = [(0, 0); Mod::ALL.len()];
    let (mut word, mut bit, mut at) = (0, 0, 0);
    while at < Mod::ALL.len() {
        let width = Mod::ALL[at].width().unsigned_abs();
        if bit + width > 64 {
            word += 1;
            bit = 0;
        }
        places[at] = (word, bit);
        bit += width;
        at += 1;
    }
    assert!(word < 4);
    places
};

impl Mods {
    /// The value of a modifier.
    pub const fn get(&self, id: Mod) -> i32 {
        let (word, bit) = PLACES[id as usize];
        let width = id.width();
        let shift = 64 - width.unsigned_abs() as u32;
        let top = self.0[word as usize] << (shift - bit as u32);
        if width < 0 { (top as i64 >> shift) as i32 } else { (top >> shift) as i32 }
    }

    /// Sets a modifier; bits that do not fit are cut.
    pub const fn set(&mut self, id: Mod, value: i32) {
        let (word, bit) = PLACES[id as usize];
        let mask = (u64::MAX >> (64 - id.width().unsigned_abs() as u32)) << bit;
        let word = &mut self.0[word as usize];
        *word = *word & !mask | (value as u64) << bit & mask;
    }

    /// Whether a modifier's value is not zero.
    pub const fn has(&self, id: Mod) -> bool {
        self.get(id) != 0
    }
}

/// An instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inst {
    /// Number of its [`Variant`].
    pub(crate) variant: u16,
    /// Operands, in the order they are written.
    pub operands: [Operand; OPERANDS],
    /// Modifiers.
    pub mods: Mods,
    /// Numbers of the vector registers of an [`Operand::List`].
    pub list: [u8; 13],
    /// By dword, bits that mean nothing and differ from those that an assembler makes.
    pub unused: UnusedBits,
}

/// Bits of up to four dwords.
pub type UnusedBits = [u32; 4];

impl Inst {
    /// An instruction without operands and modifiers; `None`: no variant has that number.
    pub fn new(variant: u16) -> Option<Inst> {
        tables::variants().get(usize::from(variant))?;
        Some(Inst::empty(variant))
    }

    /// Makes it that of a variant that is there, without operands and modifiers.
    pub(super) fn clear(&mut self, variant: u16) {
        *self = Inst::empty(variant);
    }

    fn empty(variant: u16) -> Inst {
        Inst {
            variant,
            operands: [Operand::None; OPERANDS],
            mods: Mods::default(),
            list: [0; 13],
            unused: [0; 4],
        }
    }

    /// Whether some bits that mean nothing differ from those that an assembler makes.
    pub fn has_unused_bits(&self) -> bool {
        self.unused != [0; 4]
    }

    /// The number of its way to be written, in [`tables::variants`].
    pub fn number(&self) -> u16 {
        self.variant
    }

    /// Its way to be written.
    #[inline]
    pub fn variant(&self) -> &'static Variant {
        // Only `new` makes one, and only of a variant that is there.
        &tables::variants()[usize::from(self.variant)]
    }

    /// Its row of the table.
    #[inline]
    pub fn row(&self) -> &'static InstRow {
        &tables::rows()[usize::from(self.variant().row)]
    }

    /// Its opcode: which row of the table it is of.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        self.row().opcode
    }

    /// Its form.
    pub fn form(&self) -> Form {
        self.variant().form
    }

    /// Written operands with what the table says of them.
    #[inline]
    pub fn written(&self) -> impl Iterator<Item = (&'static OperandSlot, Operand)> {
        let variant = self.variant();
        let written = variant.slots.get(..usize::from(variant.written)).unwrap_or_default();
        written.iter().zip(&self.operands).map(|(slot, operand)| (slot, *operand))
    }

    /// Registers it reads or writes without saying so.
    pub fn implicit(&self) -> &'static [OperandSlot] {
        let variant = self.variant();
        variant.slots.get(usize::from(variant.written)..).unwrap_or_default()
    }
}

/// How many registers a value takes on a GPU.
pub fn dwords(ty: Type, gpu: &Gpu) -> u8 {
    match ty {
        Type::Mask => 1 + u8::from(gpu.wave64()),
        Type::Wave64 | Type::Wave128 | Type::Wave256 | Type::Wave512 => ty.dwords() >> u8::from(gpu.wave64()),
        _ => ty.dwords(),
    }
}
