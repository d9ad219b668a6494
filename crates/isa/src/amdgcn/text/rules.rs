//! What an instruction may not say although each of its operands may: limits of scalar values and literals, banks of
//! registers.
//!
//! Facts: AMD's ISA manuals on the constant bus and on dual issue; where those are silent, what LLVM 19 rejects.

use super::parse::ParseRule;
use crate::amdgcn::inst::{Inst, Operand};
use crate::amdgcn::model::{Class, Form, Format, Mod, OperandSlot, Role, Trait, Type};
use crate::amdgcn::opcode::Opcode;
use crate::amdgcn::tables::InstRow;
use crate::amdgcn::{Gfx, Gpu, OPERANDS, Reg};

/// What is wrong: the operand, counted from 0, and the rule it breaks.
type BrokenRule = (u8, ParseRule);

/// `dst_sel:DWORD`.
const DWORD: i32 = 6;

/// What is among the operands of an instruction, as far as it is asked here: most rules are about what is rare.
#[derive(Default)]
pub(super) struct Kinds {
    /// How many literals.
    pub(super) literals: u8,
    /// How many scalar registers.
    scalars: u8,
    /// Values of fields.
    pub(super) values: bool,
    /// `src_vccz` or `src_execz`.
    zero_flags: bool,
    /// `src_lds_direct`.
    lds_direct: bool,
}

/// The kinds of an instruction's operands.
pub(super) fn kinds(inst: &Inst) -> Kinds {
    let mut kinds = Kinds::default();
    for operand in inst.operands.iter().take(inst.variant().written.into()) {
        match *operand {
            Operand::Reg { reg, .. } if !reg.is_vgpr() => {
                kinds.scalars += 1;
                kinds.zero_flags |= matches!(reg, Reg::VCCZ | Reg::EXECZ);
                kinds.lds_direct |= reg == Reg::LDS_DIRECT;
            }
            Operand::Literal(_) => kinds.literals += 1,
            Operand::Imm(_) => kinds.values = true,
            _ => {}
        }
    }
    kinds
}

/// Checks an instruction.
pub(super) fn check(inst: &Inst, gpu: &Gpu) -> Result<(), BrokenRule> {
    check_kinds(inst, &kinds(inst), gpu)
}

/// Checks an instruction of whose operands the kinds are known.
pub(super) fn check_kinds(inst: &Inst, kinds: &Kinds, gpu: &Gpu) -> Result<(), BrokenRule> {
    if kinds.literals > 1 {
        literals(inst)?;
    }
    old_halves(inst, gpu)?;
    if kinds.zero_flags {
        zero_flags(inst, gpu)?;
    }
    let row = inst.row();
    // gfx8: what is added to the destination is added to all of it.
    let part = inst.form() == Form::Sdwa && inst.mods.get(Mod::DstSel) != DWORD;
    if part && gpu.generation() == Gfx::Gfx8 && inst.variant().slots.first().is_some_and(|s| s.access.reads())
    {
        return Err((0, ParseRule::ModifierValue));
    }
    if row.format == Format::Sopk && row.role == Role::Wait && gpu.generation() >= Gfx::Gfx11 {
        let null = matches!(inst.operands[0], Operand::Reg { reg: Reg::NULL, .. });
        return if null { Ok(()) } else { Err((0, ParseRule::Operand)) };
    }
    if matches!(row.format, Format::Mai | Format::MaiScaled) {
        return files(inst);
    }
    if inst.form() == Form::Dpp && gpu.has_unified_vgprs() {
        wide_lanes(inst)?;
    }
    let Some(limit) = limit(row, gpu) else { return Ok(()) };
    // One is never too many.
    if usize::from(kinds.scalars + kinds.literals) + inst.implicit().len() > 1 {
        constant_bus(inst, limit.into())?;
    }
    if kinds.lds_direct {
        lds_direct(inst, gpu)?;
    }
    if row.format == Format::Vopd {
        dual(inst, gpu)?;
    }
    // A key of 16 bits is one of two in a register, of 8 bits one of four.
    if inst.mods.get(Mod::IndexKey) > i32::from(gpu.wave64()) * 2 + 1 {
        return Err((0, ParseRule::Range));
    }
    Ok(())
}

/// What has 64 bits is fetched from one lane of each row only.
fn wide_lanes(inst: &Inst) -> Result<(), BrokenRule> {
    let wide = inst.written().position(|(slot, _)| slot.ty.bits() == 64 && slot.ty != Type::Mask);
    let one_lane = (0x150..0x160).contains(&inst.mods.get(Mod::DppCtrl));
    match wide {
        Some(at) if !one_lane => Err((at as u8, ParseRule::ModifierValue)),
        _ => Ok(()),
    }
}

/// The result of a product of matrices and what is added to it are of one file.
fn files(inst: &Inst) -> Result<(), BrokenRule> {
    let mut file = None;
    for (at, (slot, operand)) in (0..).zip(inst.written()) {
        if let (Class::AccDst | Class::AccMatrix, Operand::Reg { reg, .. }) = (slot.class, operand)
            && *file.get_or_insert(reg.is_agpr()) != reg.is_agpr()
        {
            return Err((at, ParseRule::RegisterFile));
        }
    }
    Ok(())
}

/// Until gfx7 VOP3 has no constants for sources that are halves.
fn old_halves(inst: &Inst, gpu: &Gpu) -> Result<(), BrokenRule> {
    if gpu.generation() > Gfx::Gfx7 || inst.form() != Form::E64 {
        return Ok(());
    }
    let constant = |(_, (slot, operand)): &(u8, (&OperandSlot, Operand))| {
        slot.ty == Type::F16 && matches!(operand, Operand::Inline(_))
    };
    match (0..).zip(inst.written()).find(constant) {
        Some((at, _)) => Err((at, ParseRule::Literal)),
        None => Ok(()),
    }
}

/// All literals are one.
fn literals(inst: &Inst) -> Result<(), BrokenRule> {
    let mut first = None;
    for (at, (_, operand)) in (0..).zip(inst.written()) {
        if let Operand::Literal(value) = operand
            && *first.get_or_insert(value) != value
        {
            return Err((at, ParseRule::Literals));
        }
    }
    Ok(())
}

/// gfx11 has no `src_vccz` and `src_execz`. As LLVM has it, one with a sign passes.
fn zero_flags(inst: &Inst, gpu: &Gpu) -> Result<(), BrokenRule> {
    if gpu.generation() < Gfx::Gfx11 {
        return Ok(());
    }
    let signs = inst.mods.get(Mod::Neg) | inst.mods.get(Mod::Abs) | inst.mods.get(Mod::Sext);
    for (at, (slot, operand)) in (0..).zip(inst.written()) {
        if matches!(operand, Operand::Reg { reg: Reg::VCCZ | Reg::EXECZ, .. })
            && signs >> slot.source & 1 == 0
        {
            return Err((at, ParseRule::NotHere));
        }
    }
    Ok(())
}

/// How many scalar values an instruction may read, literals included. `None`: any.
pub(in crate::amdgcn) fn limit(row: &InstRow, gpu: &Gpu) -> Option<u8> {
    match row.format {
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vopd => {}
        _ => return None,
    }
    let shift = matches!(row.opcode, Opcode::v_lshlrev_b64 | Opcode::v_lshrrev_b64 | Opcode::v_ashrrev_i64);
    Some(if gpu.generation() < Gfx::Gfx10 || shift { 1 } else { 2 })
}

fn constant_bus(inst: &Inst, limit: usize) -> Result<(), BrokenRule> {
    let dual = inst.row().format == Format::Vopd;
    let mut read = [(Reg::NULL, 0u8); OPERANDS + 1];
    let mut count = 0;
    let mut literals = 0;
    let mut size = 0;
    let implicit = inst.implicit().iter().filter(|slot| slot.access.reads() && slot.reg != Reg::EXEC.0);
    let implicit = implicit.map(|slot| (OPERANDS as u8, *slot, Operand::reg(Reg(slot.reg), 0)));
    let written = (0..).zip(inst.written()).map(|(at, (slot, operand))| (at, *slot, operand));
    for (at, slot, operand) in implicit.chain(written) {
        match operand {
            Operand::Reg { reg, dwords, .. } if slot.access.reads() => {
                let scalar = !reg.is_vgpr() && reg != Reg::NULL && reg != Reg::LDS_DIRECT;
                // The lane of a write may come from m0 besides.
                if reg == Reg::M0 && slot.source == 1 && inst.opcode() == Opcode::v_writelane_b32 {
                    continue;
                }
                let fixed = matches!(slot.class, Class::Fixed | Class::FixedOptional | Class::Implicit);
                let key = (reg, if fixed { 0 } else { dwords });
                // vcc is one value, whether said or not; of dual instructions LLVM counts it twice.
                let either = |other: &(Reg, u8)| !dual && (other.1 == 0 || key.1 == 0);
                let same = |other: &(Reg, u8)| other.0 == reg && (other.1 == key.1 || either(other));
                if scalar && !read.iter().take(count).any(same) {
                    if let Some(place) = read.get_mut(count) {
                        *place = key;
                    }
                    count += 1;
                }
            }
            Operand::Literal(_) => {
                // Of another size it is another value.
                let bytes = (slot.ty.bits() / 8).max(4);
                literals = if literals == 0 || size == bytes { 1 } else { 2 };
                size = bytes;
            }
            _ => {}
        }
        if count + literals > limit {
            return Err((at.min(OPERANDS as u8 - 1), ParseRule::ConstantBus));
        }
    }
    Ok(())
}

/// Values from LDS come through the first source.
fn lds_direct(inst: &Inst, gpu: &Gpu) -> Result<(), BrokenRule> {
    let dual = inst.row().format == Format::Vopd;
    for (at, (slot, operand)) in (0..).zip(inst.written()) {
        if !matches!(operand, Operand::Reg { reg: Reg::LDS_DIRECT, .. }) {
            continue;
        }
        let reversed = inst.row().traits.has(Trait::Reversed) && !dual;
        let there = dual || gpu.generation() < Gfx::Gfx11;
        let wide = slot.ty.bits() > 32;
        if !there || wide || slot.source != 0 || reversed || inst.form() == Form::Sdwa {
            return Err((at, ParseRule::LdsDirect));
        }
    }
    Ok(())
}

/// Dual instructions write an even and an odd register, and their sources at the same place are of different banks.
fn dual(inst: &Inst, gpu: &Gpu) -> Result<(), BrokenRule> {
    /// Bits of a register's number that are its bank, by place: destination, sources.
    const BANKS: [u16; 4] = [1, 3, 3, 1];
    let variant = inst.variant();
    let Some((second, _, first_of_y)) = variant.second else { return Ok(()) };
    let moves = |row: u16| {
        crate::amdgcn::tables::rows()
            .get(usize::from(row))
            .is_some_and(|r| r.opcode == Opcode::v_dual_mov_b32)
    };
    let two_moves = gpu.generation() == Gfx::Gfx12 && moves(variant.row) && moves(second);
    let first_of_y_at = usize::from(first_of_y);
    // A destination that is added to is the third source.
    let half = |first: usize, end: usize| {
        let mut places = [Operand::None; BANKS.len()];
        for (place, operand) in places.iter_mut().zip(inst.operands.get(first..end).unwrap_or_default()) {
            *place = *operand;
        }
        if variant.slots.get(first).is_some_and(|slot| slot.access.reads()) {
            places[BANKS.len() - 1] = places[0];
        }
        places
    };
    let (x, y) = (half(0, first_of_y_at), half(first_of_y_at, usize::from(variant.written)));
    for (place, (x, y)) in x.iter().zip(&y).enumerate() {
        let (Operand::Reg { reg: x, .. }, Operand::Reg { reg: y, .. }) = (x, y) else { continue };
        let bank = BANKS.get(place).copied().unwrap_or_default();
        // gfx12 reads a register once for both halves.
        let shared = place > 0 && (two_moves || gpu.generation() == Gfx::Gfx12 && x == y);
        if !x.is_vgpr() || !y.is_vgpr() || shared || x.0 & bank != y.0 & bank {
            continue;
        }
        let rule = if place == 0 { ParseRule::DualParity } else { ParseRule::DualBank };
        return Err((first_of_y + place as u8, rule));
    }
    Ok(())
}
