//! Writes the tables as Rust source.

use super::{Tables, access, forms, opcodes, read};
use crate::amdgcn_facts::model::{
    COLUMNS, Class, ENCODINGS, EncodingLayout, GENS, Gfx, LayoutIndex, ModSlot, OperandSlot, name_hash,
};
use std::fmt::Write as _;

/// An index, or "none", of the emitted tables.
const NONE: u16 = u16::MAX;

/// Tables that cannot be emitted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two rows would be two readings of the same bits.
    #[error("{0} and {1} have the same opcode in {2:?}")]
    Opcode(String, String, Gfx),
    /// What a row does cannot be emitted.
    #[error("{0}: {1}")]
    Row(String, String),
    #[error(transparent)]
    Write(#[from] std::fmt::Error),
}

/// The source of all tables.
pub fn emit(tables: &Tables) -> Result<String, Error> {
    let mut out = String::new();
    let mut slot_lists = Vec::new();
    let mut mod_lists = Vec::new();
    let mut variants = String::new();
    for draft in &tables.drafts {
        let slots = place_of(&mut slot_lists, &draft.spec.slots);
        let mods = place_of(&mut mod_lists, &draft.spec.mods);
        let spec = &draft.spec;
        let written = spec.slots.iter().filter(|slot| slot.class != Class::Implicit).count();
        let mod_set = spec.mods.iter().fold(0u64, |set, m| set | 1 << m.id as u8);
        let forms::Spec { form, encoding, need, only_short, .. } = spec;
        let super::Draft { row, name, second, columns, opcodes, .. } = draft;
        writeln!(
            variants,
            "Variant {{ row: {row}, form: Form::{form:?}, encoding: Encoding::{encoding:?}, need: Need::{need:?}, \
             name: {name:?}, second: {second:?}, columns: {columns}, slots: SlotList {{ {slots} }}, written: {written}, \
             mods: ModList {{ {mods} }}, mod_set: {mod_set}, only_short: {only_short}, opcodes: {opcodes:?} }},"
        )?;
    }
    let slots: Vec<&OperandSlot> = slot_lists.iter().flatten().collect();
    writeln!(out, "pub(super) static SLOTS: [OperandSlot; {}] = [", slots.len())?;
    for OperandSlot { class, ty, field, access, source, reg } in slots {
        writeln!(
            out,
            "OperandSlot {{ class: Class::{class:?}, ty: Type::{ty:?}, field: Field::{field:?}, access: {access:?}, \
             source: {source}, reg: {reg} }},"
        )?;
    }
    let mods: Vec<&ModSlot> = mod_lists.iter().flatten().collect();
    writeln!(out, "];\npub(super) static MODS: [ModSlot; {}] = [", mods.len())?;
    for ModSlot { id, field, shift, mask } in mods {
        writeln!(
            out,
            "ModSlot {{ id: Mod::{id:?}, field: Field::{field:?}, shift: {shift}, mask: {mask} }},"
        )?;
    }
    writeln!(out, "];")?;
    writeln!(out, "pub(super) static VARIANTS: &[Variant] = &[\n{variants}];")?;
    writeln!(out, "pub(super) static ROWS: &[InstRow] = &[")?;
    for (row, opcode) in tables.rows.iter().zip(opcodes::opcodes(&tables.rows)) {
        let (name, format, unit, role) = (&row.name, row.format, row.unit, row.role);
        let (traits, operation) = (opcodes::traits(row), opcodes::operation(row, &opcode));
        let operation = operation.map_err(|what| Error::Row(name.clone(), what))?;
        let access = access::access(row).map_err(|what| Error::Row(name.clone(), what))?;
        writeln!(
            out,
            "InstRow {{ opcode: Opcode::{opcode}, name: {name:?}, format: Format::{format:?}, unit: Unit::{unit:?}, \
             role: Role::{role:?}, operation: {operation}, access: {access:?}, traits: {traits:?} }},"
        )?;
    }
    writeln!(out, "];\npub(super) static LAYOUTS: &[EncodingLayout] = &[")?;
    for EncodingLayout { encoding, dwords, literal, mask, value, high_mask, high_value, fields } in
        &tables.layouts
    {
        writeln!(
            out,
            "EncodingLayout {{ encoding: Encoding::{encoding:?}, dwords: {dwords}, literal: {literal}, mask: {mask}, \
             value: {value}, high_mask: {high_mask}, high_value: {high_value}, fields: {fields:?} }},"
        )?;
    }
    writeln!(out, "];")?;
    layouts(&mut out, tables)?;
    names(&mut out, tables)?;
    decoding(&mut out, tables)?;
    Ok(out)
}

/// Where a list is in the array of all of its kind.
fn place_of<T: PartialEq + Clone>(lists: &mut Vec<Vec<T>>, list: &[T]) -> String {
    let at = Tables::intern(lists, list);
    let first: usize = lists[..at].iter().map(Vec::len).sum();
    format!("first: {first}, count: {}", list.len())
}

/// By generation and encoding the layout; by generation and the top nine bits of the first dword what to try.
fn layouts(out: &mut String, tables: &Tables) -> std::fmt::Result {
    let none = LayoutIndex::MAX;
    let mut of = [[none; ENCODINGS]; GENS];
    for ((generation, encoding), at) in &tables.layout_of {
        of[*generation][*encoding] = *at as LayoutIndex;
    }
    writeln!(out, "pub(super) static LAYOUT_OF: [[LayoutIndex; ENCODINGS]; GENS] = {of:?};")?;
    let mut lists: Vec<Vec<LayoutIndex>> = Vec::new();
    let mut tries = vec![[0u8; 512]; GENS];
    for (generation, order) in tables.order.iter().enumerate() {
        for top in 0..512u32 {
            let list: Vec<LayoutIndex> = order
                .iter()
                .filter(|at| {
                    let layout = &tables.layouts[**at];
                    (u64::from(top << 23) ^ layout.value) & layout.mask & 0xff80_0000 == 0
                })
                .map(|at| *at as LayoutIndex)
                .collect();
            tries[generation][top as usize] = Tables::intern(&mut lists, &list) as u8;
        }
    }
    writeln!(out, "pub(super) static TRY_LISTS: &[&[LayoutIndex]] = &{lists:?};", lists = Borrowed(&lists))?;
    writeln!(out, "pub(super) static TRIES: [[u8; 512]; GENS] = {tries:?};")
}

/// Lists of lists as references.
struct Borrowed<'a, T>(&'a [Vec<T>]);

impl<T: std::fmt::Debug> std::fmt::Debug for Borrowed<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        for list in self.0 {
            write!(f, "&{list:?}, ")?;
        }
        f.write_str("]")
    }
}

/// Names with their variants, and a table of their hashes.
fn names(out: &mut String, tables: &Tables) -> std::fmt::Result {
    let size = (tables.names.len() * 2).next_power_of_two();
    let mut hashes = vec![NONE; size];
    writeln!(out, "pub(super) static NAMES: &[Mnemonic] = &[")?;
    for (at, (name, variants)) in tables.names.iter().enumerate() {
        let mut slot = name_hash(name.as_bytes()) as usize & (size - 1);
        while hashes[slot] != NONE {
            slot = (slot + 1) & (size - 1);
        }
        hashes[slot] = at as u16;
        writeln!(out, "Mnemonic {{ name: {name:?}, variants: &{variants:?} }},")?;
    }
    writeln!(out, "];\npub(super) static NAME_HASHES: [u16; {size}] = {hashes:?};")
}

/// By layout's encoding and column: from opcode to variant.
fn decoding(out: &mut String, tables: &Tables) -> Result<(), Error> {
    let mut lists: Vec<Vec<u16>> = vec![Vec::new()];
    let mut of = vec![[0u16; ENCODINGS]; COLUMNS];
    for (column, of) in of.iter_mut().enumerate() {
        let (generation, _) = read::column(column);
        for (encoding, number) in of.iter_mut().enumerate() {
            let mut list: Vec<u16> = Vec::new();
            for (at, draft) in tables.drafts.iter().enumerate() {
                if draft.spec.encoding as usize != encoding || draft.columns & 1 << column == 0 {
                    continue;
                }
                let opcode = usize::from(draft.opcodes[generation as usize]);
                if list.len() <= opcode {
                    list.resize(opcode + 1, NONE);
                }
                if list[opcode] != NONE {
                    let other = &tables.drafts[usize::from(list[opcode])].name;
                    return Err(Error::Opcode(other.clone(), draft.name.clone(), generation));
                }
                list[opcode] = at as u16;
            }
            *number = Tables::intern(&mut lists, &list) as u16;
        }
    }
    writeln!(out, "pub(super) static OPCODE_LISTS: &[&[u16]] = &{:?};", Borrowed(&lists))?;
    writeln!(out, "pub(super) static OPCODES: [[u16; ENCODINGS]; COLUMNS] = {of:?};")?;
    Ok(())
}
