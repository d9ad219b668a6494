//! Whether operands and definitions of an instruction are those of its row.

use super::Violations;
use crate::ir::shape::{self, Variants};
use crate::ir::{Inst, Op, Operand, PhysReg, Program, Pseudo, RegClass, Source};
use unwedge_isa::amdgcn::model::{Class, Form, Format, Gfx, Mod, OperandSlot, Trait, Type};
use unwedge_isa::amdgcn::tables::Variant;
use unwedge_isa::amdgcn::{self, Opcode, Reg};

pub(super) fn check(program: &Program, variants: &Variants, inst: Inst, violations: &mut Violations) {
    for operand in program.operands(inst) {
        let sound = operand.source != Source::Fixed || operand.reg.is_some();
        violations.require(sound, || "an operand without register".to_owned());
        let known = operand.as_const().is_none_or(|bits| fits(bits, operand.class));
        violations.require(known, || format!("the constant {operand} has too many bits"));
    }
    match program.op(inst) {
        Op::Hw(opcode) => hardware(program, variants, inst, opcode, violations),
        Op::Pseudo(pseudo) => sizes(program, inst, pseudo, violations),
    }
}

fn fits(bits: u64, class: RegClass) -> bool {
    class.bytes() >= 8 || bits >> (u32::from(class.bytes()) * 8) == 0
}

/// Rules for the sizes of operands of pseudo instructions.
fn sizes(program: &Program, inst: Inst, pseudo: Pseudo, violations: &mut Violations) {
    let operands = program.operands(inst);
    let definitions = program.definitions(inst);
    let sum = |classes: &mut dyn Iterator<Item = RegClass>| -> u32 {
        classes.map(|class| u32::from(class.bytes())).sum()
    };
    let read = sum(&mut operands.iter().map(|operand| operand.class));
    let written = sum(&mut definitions.iter().map(|definition| definition.class));
    match pseudo {
        Pseudo::CreateVector | Pseudo::SplitVector => {
            violations.require(read == written, || format!("{read} bytes become {written}"));
        }
        Pseudo::ParallelCopy => {
            let same = operands.len() == definitions.len()
                && operands.iter().zip(definitions).all(|(operand, definition)| {
                    operand.class.bytes() == definition.class.bytes()
                        && (operand.class.is_sgpr() || definition.class.is_vgpr())
                });
            violations.require(same, || "copies differ from their sources".to_owned());
        }
        Pseudo::Phi | Pseudo::LinearPhi | Pseudo::MaskPhi => {
            let [definition] = definitions else {
                violations.add("a phi defines one temporary");
                return;
            };
            let same = operands.iter().all(|operand| {
                operand.class.bytes() == definition.class.bytes()
                    && (operand.class.is_sgpr() || definition.class.is_vgpr())
            });
            violations.require(same, || "operands are of another class than the result".to_owned());
            let linear = definition.class.is_linear();
            let fits = match pseudo {
                Pseudo::Phi => !definition.class.is_vgpr() || !linear,
                // Its moves would leave out lanes that are not active.
                Pseudo::LinearPhi => linear && !definition.class.is_vgpr(),
                _ => definition.class == program.lane_mask(),
            };
            violations.require(fits, || format!("a phi of another kind than {}", definition.class));
        }
        Pseudo::ExtractVector => {
            let [vector, number] = operands else {
                violations.add("a vector and a number are expected");
                return;
            };
            let element = u64::from(written.max(1));
            let inside = number.as_const().is_some_and(|number| {
                number
                    .checked_add(1)
                    .and_then(|next| next.checked_mul(element))
                    .is_some_and(|end| end <= vector.class.bytes().into())
            });
            violations.require(inside, || "the element is not in the vector".to_owned());
        }
        _ => {}
    }
}

fn hardware(program: &Program, variants: &Variants, inst: Inst, opcode: Opcode, violations: &mut Violations) {
    let form = program[inst].form;
    let variant = if form == Form::Native { variants.widest(opcode) } else { variants.variant(opcode, form) };
    let Some(variant) = variant else {
        violations.add(format!("{} has no such instruction", program.gpu.name()));
        return;
    };
    let operands = program.operands(inst);
    let definitions = program.definitions(inst);
    // What memory instructions move, and whether they return it, their modifiers say.
    let memory = opcode.row().format.is_memory();
    let read = shape::operands(variant).count();
    // From gfx9 on, only accesses of the global data share read `m0`, which their rows do not have.
    let operands = match operands.split_at_checked(read) {
        Some((own, [m0])) if program[inst].mods.has(Mod::Gds) && m0.reg == Some(PhysReg::M0) => own,
        // The address of an image may be a list.
        Some((own, list)) if shape::image_address(variant, read).next().is_some() => {
            let registers =
                list.iter().all(|part| part.is_undef() || part.as_temp().is_some() && part.class.is_vgpr());
            violations.require(registers, || "a part of an address is not in vector registers".to_owned());
            own
        }
        _ => operands,
    };
    let written = shape::definitions(variant).count();
    let optional = shape::operands(variant).filter(|slot| slot.class == Class::Imm16Optional).count();
    violations.require((read - optional..=read).contains(&operands.len()), || {
        format!("{} operands, and {read} in the table", operands.len())
    });
    violations.require(written == definitions.len() || memory && definitions.len() < written, || {
        format!("{} definitions, and {written} in the table", definitions.len())
    });
    for (number, (operand, slot)) in operands.iter().zip(shape::operands(variant)).enumerate() {
        // The assembler takes the form that has a place for a literal.
        let short = (form == Form::Native).then(|| variants.variant(opcode, Form::E32)).flatten();
        let in_short = short.and_then(|short| shape::operands(short).nth(number));
        let fits =
            [Some(slot), in_short].into_iter().flatten().any(|slot| takes(program, opcode, slot, operand));
        violations.require(fits, || format!("operand {number} cannot be {operand}"));
        if !memory
            && let Some(bytes) = bytes(program, slot)
            && operand.as_const().is_none()
        {
            violations.require(bytes == operand.class.bytes(), || {
                format!("operand {number} has {} bytes, and {bytes} in the table", operand.class.bytes())
            });
        }
    }
    for (number, (definition, slot)) in definitions.iter().zip(shape::definitions(variant)).enumerate() {
        let vector = is_vector(slot.class);
        violations.require(vector.is_none_or(|vector| vector == definition.class.is_vgpr()), || {
            format!("definition {number} cannot be of class {}", definition.class)
        });
        if let (Class::Fixed | Class::FixedOptional | Class::Implicit, Some(reg)) =
            (slot.class, definition.reg)
        {
            violations.require(reg == PhysReg::of(Reg(slot.reg)), || {
                format!("definition {number} is in another register")
            });
        }
    }
    if matches!(
        opcode.row().format,
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p
    ) {
        constant_bus(program, inst, opcode, variant, violations);
    }
}

/// Bytes that a slot takes; `None` if modifiers or the instruction decide.
fn bytes(program: &Program, slot: &OperandSlot) -> Option<u8> {
    match slot.class {
        Class::Vgpr
        | Class::VgprSrc
        | Class::VgprLow
        | Class::Src
        | Class::SrcLow
        | Class::SrcInline
        | Class::Ssrc
        | Class::Sreg => {
            let bits = slot.ty.bits();
            if slot.ty == Type::Mask {
                Some(amdgcn::dwords(slot.ty, &program.gpu) * 4)
            } else {
                (bits >= 32).then_some((bits / 8) as u8)
            }
        }
        _ => None,
    }
}

/// Whether a slot is for vector registers alone, or for scalar ones alone.
fn is_vector(class: Class) -> Option<bool> {
    match class {
        Class::Vgpr
        | Class::VgprLow
        | Class::VgprHalf
        | Class::VgprSel
        | Class::VgprSrc
        | Class::VgprLowSrc
        | Class::VgprHalfSrc
        | Class::VgprDual
        | Class::ExpSrc
        | Class::Returned
        | Class::TfeData
        | Class::D16Data
        | Class::ImageData
        | Class::ImageAddr => Some(true),
        Class::Ssrc
        | Class::Ssrc32
        | Class::SsrcLds
        | Class::SsrcInline
        | Class::Sreg
        | Class::Sdst
        | Class::SregPair
        | Class::SregQuad
        | Class::SmemOffset
        | Class::BufferOffset
        | Class::GlobalBase
        | Class::ScratchBase
        | Class::SdwaSdst => Some(false),
        _ => None,
    }
}

/// The type that constants have in a slot. Those of mixed precision have 32 bits.
fn constant_type(opcode: Opcode, slot: &OperandSlot) -> Type {
    if opcode.row().traits.has(Trait::Mix) { Type::F32 } else { slot.ty }
}

/// Whether a slot takes an operand.
fn takes(program: &Program, opcode: Opcode, slot: &OperandSlot, operand: &Operand) -> bool {
    let ty = constant_type(opcode, slot);
    let constant = operand.as_const();
    match slot.class {
        Class::Imm16
        | Class::Imm16Optional
        | Class::Imm32
        | Class::Imm5
        | Class::Imm7
        | Class::Imm24
        | Class::Hwreg
        | Class::SendMsg
        | Class::SendMsgRtn
        | Class::Waitcnt
        | Class::Depctr
        | Class::WaitEvent
        | Class::DelayAlu
        | Class::GprIdx
        | Class::Label
        | Class::Version
        | Class::Attr
        | Class::InterpSlot
        | Class::ExpTarget => constant.is_some(),
        Class::Fixed | Class::FixedOptional | Class::Implicit => {
            constant.is_none() && operand.reg.is_none_or(|reg| reg == PhysReg::of(Reg(slot.reg)))
        }
        Class::Vgpr
        | Class::VgprLow
        | Class::VgprSrc
        | Class::VgprLowSrc
        | Class::VgprHalf
        | Class::VgprHalfSrc
        | Class::VgprSel
        | Class::TfeData
        | Class::D16Data
        | Class::ImageData
        | Class::ImageAddr => operand.is_undef() || constant.is_none() && operand.class.is_vgpr(),
        Class::Sreg | Class::SregPair | Class::SregQuad => {
            operand.is_undef() || constant.is_none() && operand.class.is_sgpr()
        }
        Class::Ssrc | Class::Ssrc32 | Class::SsrcLds => {
            constant.is_some() || operand.is_undef() || operand.class.is_sgpr()
        }
        Class::SsrcInline | Class::BufferOffset => match constant {
            Some(bits) => is_inline(program, bits, ty),
            None => operand.is_undef() || operand.class.is_sgpr(),
        },
        Class::SrcInline | Class::SrcMatrix => constant.is_none_or(|bits| is_inline(program, bits, ty)),
        _ => true,
    }
}

/// Whether a constant needs no literal in a place for a type.
fn is_inline(program: &Program, bits: u64, ty: Type) -> bool {
    let tau = program.gpu.generation() >= Gfx::Gfx8;
    let small = |value: i64| (-16..=64).contains(&value);
    match ty.bits() {
        16 => {
            let value = bits as u16;
            let floats = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400];
            small((value as i16).into()) || floats.contains(&value) || tau && value == 0x3118
        }
        64 => {
            let floats = [0.5f64, 1.0, 2.0, 4.0].map(f64::to_bits);
            small(bits as i64)
                || floats.contains(&(bits & !(1 << 63)))
                || tau && bits == 0x3fc4_5f30_6dc9_c882
        }
        _ if ty.is_packed() => {
            // The upper half of a float is zero.
            let halves = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
            small((bits as u32 as i32).into()) || ty == Type::PkF16 && halves.contains(&(bits as u32))
        }
        _ => {
            let value = bits as u32;
            let floats = [0.5f32, 1.0, 2.0, 4.0].map(f32::to_bits);
            small((value as i32).into())
                || floats.contains(&(value & !(1 << 31)))
                || tau && value == 0x3e22_f983
        }
    }
}

/// How many scalar values and literals an instruction of the vector ALU reads.
fn constant_bus(
    program: &Program,
    inst: Inst,
    opcode: Opcode,
    variant: &'static Variant,
    violations: &mut Violations,
) {
    let generation = program.gpu.generation();
    let limit = if generation >= Gfx::Gfx10 && !is_slow_shift(opcode) { 2 } else { 1 };
    let form = program[inst].form;
    // Until it is allocated a temporary has no register that could be the same.
    let mut scalars: Vec<(Source, Option<PhysReg>)> = Vec::new();
    let mut literals: Vec<u64> = Vec::new();
    for (operand, slot) in program.operands(inst).iter().zip(shape::operands(variant)) {
        match operand.source {
            Source::Const(bits)
                if !is_inline(program, bits, constant_type(opcode, slot)) && !literals.contains(&bits) =>
            {
                literals.push(bits);
            }
            Source::Const(_) | Source::Undef => {}
            _ if operand.class.is_sgpr() => {
                let key = (operand.source, operand.reg);
                if !scalars.contains(&key) {
                    scalars.push(key);
                }
            }
            _ => {}
        }
    }
    violations.require(literals.len() <= 1, || "two literals".to_owned());
    violations.require(scalars.len() + literals.len() <= limit, || {
        format!("reads {} scalar values, and may read {limit}", scalars.len() + literals.len())
    });
    let wide = matches!(opcode.row().format, Format::Vop3 | Format::Vop3p) || matches!(form, Form::E64);
    let allowed = literals.is_empty()
        || generation >= Gfx::Gfx10 && !matches!(form, Form::Sdwa | Form::Dpp | Form::Dpp8)
        || !wide && matches!(form, Form::Native | Form::E32);
    violations.require(allowed, || "a literal where the encoding has no place for it".to_owned());
}

/// Shifts of 64 bits read one scalar value in any generation.
fn is_slow_shift(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::v_lshlrev_b64 | Opcode::v_lshrrev_b64 | Opcode::v_ashrrev_i64)
}
