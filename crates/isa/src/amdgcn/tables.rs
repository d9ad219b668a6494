//! The compiled tables and how they are looked up.

use super::gpu::Gpu;
use super::model::{
    Access, COLUMNS, Columns, Encoding, EncodingLayout, Form, Format, GENS, LayoutIndex, Mod, ModSlot, Need,
    OperandSlot, Role, Traits, Unit, name_hash,
};
use super::opcode::{Opcode, Operation};
use std::ops::Deref;

#[rustfmt::skip]
#[allow(missing_docs, clippy::unreadable_literal, reason = "made by the build script")]
mod compiled {
    use super::{Mnemonic, InstRow, ModList, SlotList, Variant};
    use crate::amdgcn::model::{*, Access::*, Components::*, Direction::*, Element::*, Signedness::*};
    use crate::amdgcn::opcode::*;
    include!(concat!(env!("OUT_DIR"), "/amdgcn.rs"));
}

/// One row: an instruction of all generations.
#[derive(Debug, Clone, Copy)]
pub struct InstRow {
    /// Which.
    pub opcode: Opcode,
    /// The name that stands for it in all generations; each generation may have another ([`Variant::name`]).
    pub name: &'static str,
    /// Its family.
    pub format: Format,
    /// What executes it.
    pub unit: Unit,
    /// What it is for.
    pub role: Role,
    /// What it does, with the opcode among its like.
    pub operation: Operation,
    /// What it accesses, of the roles `memory` and `atomic`.
    pub access: Option<Access>,
    /// What it does beyond its operands.
    pub traits: Traits,
}

/// One way to write and encode a row.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// The row.
    pub row: u16,
    /// The way.
    pub form: Form,
    /// The layout of its bits.
    pub encoding: Encoding,
    /// What a GPU needs to have it.
    pub need: Need,
    /// Its name in these columns, without a suffix.
    pub name: &'static str,
    /// Of a dual instruction: row and name of the second half, and its first slot.
    pub second: Option<(u16, &'static str, u8)>,
    /// The columns it is in.
    pub columns: Columns,
    /// Operands: those written come first, in the order they are written.
    pub slots: SlotList,
    /// How many of [`Variant::slots`] are written.
    pub written: u8,
    /// Modifiers.
    pub mods: ModList,
    /// Bit `n`: modifier number `n` is among them.
    pub mod_set: u64,
    /// Of an `e32` form: there is no `e64` form of the same in these columns.
    pub only_short: bool,
    /// Opcode per generation.
    pub opcodes: [u16; GENS],
}

impl Variant {
    /// Whether it has a modifier.
    pub fn has_mod(&self, id: Mod) -> bool {
        self.mod_set >> id as u8 & 1 != 0
    }
}

/// Lists of the table's rows: a part of the one array that all lists of a kind are in. Thousands of addresses, which the loader
/// would have to relocate, are two numbers each.
macro_rules! list {
    ($(#[$about:meta])* $name:ident of $element:ident in $all:ident) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub struct $name {
            first: u16,
            count: u8,
        }

        impl Deref for $name {
            type Target = [$element];

            #[inline]
            fn deref(&self) -> &[$element] {
                let first = usize::from(self.first);
                compiled::$all.get(first..first + usize::from(self.count)).unwrap_or_default()
            }
        }
    };
}

list! {
    /// Operands of a variant.
    SlotList of OperandSlot in SLOTS
}
list! {
    /// Modifiers of a variant.
    ModList of ModSlot in MODS
}

/// A mnemonic and what it may mean.
#[derive(Debug, Clone, Copy)]
pub struct Mnemonic {
    /// The mnemonic, without a suffix.
    pub name: &'static str,
    /// Variants in the order they are tried, with the columns in which they have this name.
    pub variants: &'static [(u16, Columns)],
}

/// Every row of the table.
pub fn rows() -> &'static [InstRow] {
    compiled::ROWS
}

/// Every way to write a row, by its number.
pub fn variants() -> &'static [Variant] {
    compiled::VARIANTS
}

/// Whether a GPU has a variant.
pub fn has(variant: &Variant, gpu: &Gpu) -> bool {
    variant.columns & gpu.columns() != 0 && gpu.meets(variant.need)
}

/// Whether a GPU that does not name halves of registers executes a variant that does.
pub fn has_halves(variant: &Variant, gpu: &Gpu) -> bool {
    gpu.halves_column().is_some_and(|column| variant.columns >> column & 1 != 0) && gpu.meets(variant.need)
}

/// Every mnemonic, in the order of the alphabet.
pub fn names() -> &'static [Mnemonic] {
    compiled::NAMES
}

/// A mnemonic, without a suffix.
pub fn name(name: &[u8]) -> Option<&'static Mnemonic> {
    let size = compiled::NAME_HASHES.len();
    let mut slot = name_hash(name) as usize % size;
    loop {
        let found = compiled::NAMES.get(usize::from(*compiled::NAME_HASHES.get(slot)?))?;
        if found.name.as_bytes() == name {
            return Some(found);
        }
        slot = (slot + 1) % size;
    }
}

/// The layout of an encoding in a GPU's generation.
pub fn layout(encoding: Encoding, gpu: &Gpu) -> Option<&'static EncodingLayout> {
    let at = compiled::LAYOUT_OF.get(gpu.generation() as usize)?.get(encoding as usize)?;
    compiled::LAYOUTS.get(usize::from(*at))
}

/// Numbers of the layouts that a dword may begin.
pub(super) fn tries(first: u32, gpu: &Gpu) -> &'static [LayoutIndex] {
    compiled::TRIES
        .get(gpu.generation() as usize)
        .and_then(|tries| tries.get(first as usize >> 23))
        .and_then(|list| compiled::TRY_LISTS.get(usize::from(*list)))
        .copied()
        .unwrap_or_default()
}

/// Layouts by the numbers that tries name, those of a GPU's generation.
pub(super) fn layouts_in_order(gpu: &Gpu) -> impl Iterator<Item = Option<&'static EncodingLayout>> {
    let own = compiled::LAYOUT_OF.get(gpu.generation() as usize);
    (0..).zip(compiled::LAYOUTS).map(move |(at, layout)| own?.contains(&at).then_some(layout))
}

/// Layouts that two dwords may begin, in the order they are tried.
pub fn layouts_of(first: u32, second: u32, gpu: &Gpu) -> impl Iterator<Item = &'static EncodingLayout> {
    let both = u64::from(second) << 32 | u64::from(first);
    tries(first, gpu)
        .iter()
        .filter_map(|at| compiled::LAYOUTS.get(usize::from(*at)))
        .filter(move |layout| both & layout.mask == layout.value)
}

/// The number of the variant that an opcode stands for.
pub fn variant_of(encoding: Encoding, opcode: u32, gpu: &Gpu) -> Option<u16> {
    variant_in(gpu.column(), encoding, opcode)
}

/// The number of the variant that an opcode stands for in a column.
pub(super) fn variant_in(column: usize, encoding: Encoding, opcode: u32) -> Option<u16> {
    let list = *compiled::OPCODES.get(column)?.get(encoding as usize)?;
    let found = *compiled::OPCODE_LISTS.get(usize::from(list))?.get(opcode as usize)?;
    (found != u16::MAX).then_some(found)
}

const _: () = assert!(COLUMNS <= 32 && GENS < COLUMNS && compiled::LAYOUTS.len() < LayoutIndex::MAX as usize);
