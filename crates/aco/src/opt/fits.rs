//! Whether an instruction of an ALU can read its operands: vector registers, scalar registers, inline constants, literals.
//!
//! What an operand may be is in the instruction tables; how many scalar registers and literals an instruction reads is in the ISA documents: one before
//! gfx10, two since then, and literals in long encodings since then.

use crate::ir::shape::{self, Variants};
use crate::ir::{Operand, Source};
use crate::machine;
use unwedge_base::inline::InlineList;
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::{Class, Form, Format, Gfx, OperandSlot, Role, Type};

/// Whether an instruction can read operands, with modifiers that need the long encoding if `long`.
pub(super) fn fits(variants: &Variants, opcode: Opcode, operands: &[Operand], long: bool) -> bool {
    let row = opcode.row();
    if row.role == Role::Lanes {
        return false;
    }
    match row.format {
        Format::Sop1 | Format::Sop2 | Format::Sopc => scalar(variants, opcode, operands),
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 => vector(variants, opcode, operands, long),
        // Constants of mixed precision are others.
        Format::Vop3p if is_packed(variants, opcode) => vector(variants, opcode, operands, true),
        _ => false,
    }
}

/// Whether all sources are pairs of 16 bits.
fn is_packed(variants: &Variants, opcode: Opcode) -> bool {
    let pair = |slot: &OperandSlot| slot.ty.is_packed() && slot.ty.bits() == 32;
    variants.widest(opcode).is_some_and(|variant| shape::operands(variant).all(pair))
}

/// The constant, if it needs a literal as this operand.
pub(super) fn literal(variants: &Variants, slot: &OperandSlot, operand: &Operand) -> Option<u64> {
    operand.as_const().filter(|bits| machine::inline(variants.gpu(), slot.ty, *bits).is_none())
}

fn scalar(variants: &Variants, opcode: Opcode, operands: &[Operand]) -> bool {
    let Some(variant) = variants.widest(opcode) else { return false };
    let mut found = None;
    for (slot, operand) in shape::operands(variant).zip(operands) {
        if operand.as_const().is_none() {
            if operand.class.is_vgpr() {
                return false;
            }
            continue;
        }
        if !slot.class.takes_constants() {
            return false;
        }
        if let Some(bits) = literal(variants, slot, operand) {
            let wide = operand.class.bytes() > 4 || slot.ty.bits() > 32 && slot.ty != Type::Mask;
            if wide || slot.class == Class::SsrcInline || found.is_some_and(|other| other != bits) {
                return false;
            }
            found = Some(bits);
        }
    }
    true
}

fn vector(variants: &Variants, opcode: Opcode, operands: &[Operand], long: bool) -> bool {
    let Some(variant) = variants.widest(opcode) else { return false };
    let gfx10 = variants.gpu().generation() >= Gfx::Gfx10;
    let row = opcode.row();
    let mask = shape::operands(variant).position(|slot| slot.ty == Type::Mask);
    let short = !long
        && matches!(row.format, Format::Vop1 | Format::Vop2)
        && variants.variant(opcode, Form::E32).is_some()
        && mask.is_none()
        && shape::definitions(variant).count() == 1
        && operands.iter().skip(1).all(|operand| operand.class.is_vgpr() && operand.as_const().is_none());
    let slow = matches!(opcode, Opcode::v_lshlrev_b64 | Opcode::v_lshrrev_b64 | Opcode::v_ashrrev_i64);
    let limit = if gfx10 && !slow { 2 } else { 1 };
    let mut scalars = InlineList::<Source, 4>::new();
    let mut found = None;
    for (at, (slot, operand)) in shape::operands(variant).zip(operands).enumerate() {
        let constant = operand.as_const().is_some();
        if Some(at) == mask {
            if constant || operand.is_undef() {
                return false;
            }
            scalars.push(operand.source);
            continue;
        }
        if !constant && operand.class.is_vgpr() {
            continue;
        }
        if !slot.class.takes_constants() {
            return false;
        }
        if let Some(bits) = literal(variants, slot, operand) {
            let allowed = slot.class != Class::SrcInline && (gfx10 || short && at == 0);
            let wide = operand.class.bytes() > 4 || slot.ty.bits() > 32;
            if !allowed || wide || found.is_some_and(|other| other != bits) {
                return false;
            }
            found = Some(bits);
        } else if !constant && !operand.is_undef() && !scalars.contains(&operand.source) {
            scalars.push(operand.source);
        }
    }
    scalars.len() + usize::from(found.is_some()) <= limit
}
