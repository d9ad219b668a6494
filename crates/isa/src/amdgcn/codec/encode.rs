//! From instruction to words.

use super::decode::{decode_executed, empty_sources};
use super::{InstWords, mem};
use crate::amdgcn::inst::{Inst, Operand, RegHalf};
use crate::amdgcn::model::{Class, Encoding, EncodingLayout, Field, FieldBits, Mod, NO_OPCODE, OperandSlot};
use crate::amdgcn::{Gpu, Mods, Reg, regs, tables};

/// Why an instruction has no words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InstEncodeError {
    /// The GPU does not have it.
    #[error("not an instruction of this GPU")]
    NotHere,
    /// An operand, counted from 0, is nothing that can be encoded there.
    #[error("operand {0} cannot be encoded there")]
    Operand(u8),
    /// Two literals that differ.
    #[error("only one literal can be encoded")]
    Literals,
    /// A bit of [`Inst::unused`] has a meaning in this instruction, or is past its end.
    #[error("a bit of `unused` has a meaning here")]
    Unused,
}

/// Words being made.
pub(super) struct InstBuilder<'a> {
    /// The dwords of the encoding; no field lies across two of them.
    pub(super) words: [u32; 4],
    pub(super) literal: Option<u32>,
    pub(super) layout: &'a EncodingLayout,
    pub(super) gpu: &'a Gpu,
}

impl InstBuilder<'_> {
    /// Puts a value into a field; false if it has more bits than that.
    pub(super) fn put(&mut self, field: Field, value: u32) -> bool {
        let FieldBits { lsb, width } = self.layout.fields[field as usize];
        self.words[usize::from(lsb >> 5) & 3] |= value << (lsb & 31);
        u64::from(value) >> width == 0
    }

    fn literal(&mut self, value: u32) -> Result<(), InstEncodeError> {
        match self.literal {
            Some(other) if other != value => Err(InstEncodeError::Literals),
            _ => {
                self.literal = Some(value);
                Ok(())
            }
        }
    }

    /// The 9-bit code of a source.
    fn source(&mut self, operand: Operand) -> Result<Option<u32>, InstEncodeError> {
        Ok(match operand {
            Operand::Reg { reg, .. } => regs::code_of(reg, self.gpu.generation()).map(u32::from),
            Operand::Inline(code) => Some(code.into()),
            Operand::Literal(value) if self.layout.literal => {
                self.literal(value)?;
                Some(255)
            }
            _ => None,
        })
    }

    /// Puts the flag of a register's file if the layout has one. Returns the register's number.
    fn in_file(&mut self, flag: Field, n: u32, acc: u32) -> u32 {
        if self.layout.fields[flag as usize].width > 0 {
            self.put(flag, acc);
        }
        n
    }

    /// What a slot's field says of an operand; `None`: it cannot.
    fn value(&mut self, slot: &OperandSlot, operand: Operand) -> Result<Option<u32>, InstEncodeError> {
        let generation = self.gpu.generation();
        let reg = match operand {
            Operand::Reg { reg, half, .. } => {
                regs::code_of(reg, generation).map(|code| (u32::from(code), half))
            }
            _ => None,
        };
        let vector = reg.and_then(|(code, half)| Some((code.checked_sub(256)?, half)));
        let in_file = match operand {
            Operand::Reg { reg, .. } => regs::in_file(reg).map(|(n, acc)| (u32::from(n), u32::from(acc))),
            _ => None,
        };
        Ok(match slot.class {
            Class::Src
            | Class::Ssrc
            | Class::Ssrc32
            | Class::SsrcLds
            | Class::SrcSel
            | Class::SrcNamed
            | Class::Barrier => self.source(operand)?,
            Class::SrcLow => self.source(operand)?.filter(|code| *code < 256 + 128),
            Class::SrcHalf => match vector {
                Some((n, half)) if n < 128 => Some(256 + n + high(half)),
                Some(_) => None,
                None => self.source(operand)?,
            },
            Class::SrcMatrix => {
                self.source(operand)?.filter(|code| *code >= 256 || (128..249).contains(code))
            }
            Class::SrcInline | Class::SsrcInline => self.source(operand)?.filter(|code| *code != 255),
            Class::Vgpr | Class::VgprSel | Class::VgprNamed => vector.map(|(n, _)| n),
            Class::VgprNamedSrc => vector.map(|(n, _)| n + 256),
            Class::VgprLow => vector.map(|(n, _)| n).filter(|n| *n < 128),
            Class::VgprHalf => vector.filter(|(n, _)| *n < 128).map(|(n, half)| n + high(half)),
            Class::VgprSrc => reg.map(|(code, _)| code).filter(|code| *code >= 256 || *code == 254),
            Class::VgprLowSrc => vector.map(|(n, _)| n + 256).filter(|n| *n < 256 + 128),
            Class::VgprHalfSrc => vector.filter(|(n, _)| *n < 128).map(|(n, half)| 256 + n + high(half)),
            Class::VgprDual => vector.map(|(n, _)| n >> 1),
            Class::Agpr => in_file.filter(|(_, acc)| *acc == 1).map(|(n, _)| n),
            Class::AgprSrc => in_file.filter(|(_, acc)| *acc == 1).map(|(n, _)| 256 + n),
            Class::AccDst => in_file.map(|(n, acc)| self.in_file(Field::AccCd, n, acc)),
            Class::AccSrc | Class::AccSmall => {
                let flag = if slot.source == 0 { Field::Acc0 } else { Field::Acc1 };
                in_file.map(|(n, acc)| 256 + self.in_file(flag, n, acc))
            }
            Class::AccMatrix => match (in_file, operand) {
                (Some((n, acc)), _) => Some(256 + self.in_file(Field::AccCd, n, acc)),
                (None, operand) => self.source(operand)?.filter(|code| (128..254).contains(code)),
            },
            Class::SrcSdwa => match (vector, self.source(operand)?) {
                (Some((n, _)), _) => Some(n),
                (None, Some(code)) if code != 255 => {
                    self.put(if slot.source == 0 { Field::S0 } else { Field::S1 }, 1);
                    Some(code)
                }
                _ => None,
            },
            Class::SdwaSdst => match operand {
                Operand::Reg { reg: Reg::VCC, .. } => Some(0),
                _ => {
                    self.put(Field::Sd, 1);
                    reg.map(|(code, _)| code & 127)
                }
            },
            Class::Sreg => reg.map(|(code, _)| code).filter(|code| *code < 256),
            // Of codes above the field's width the low bits say it, if they say nothing else.
            Class::Sdst => {
                let width = self.layout.fields[slot.field as usize].width;
                reg.map(|(code, _)| code).filter(|code| *code < 256).map(|code| code & !(u32::MAX << width))
            }
            Class::SregPair => reg.map(|(code, _)| code >> 1),
            Class::SregQuad => reg.map(|(code, _)| code >> 2),
            Class::Fixed | Class::FixedOptional => match operand {
                Operand::Reg { reg, .. } if reg.0 == slot.reg => Some(0),
                _ => None,
            },
            Class::Attr => match operand {
                Operand::Imm(value) => {
                    self.put(Field::Chan, value as u32 & 3);
                    Some(value as u32 >> 2)
                }
                _ => None,
            },
            Class::ExpSrc => match operand {
                Operand::Off => Some(0),
                _ => vector.map(|(n, _)| n),
            },
            Class::SendMsgRtn => match operand {
                Operand::Imm(value) => u32::try_from(value).ok(),
                _ => None,
            },
            _ => match operand {
                Operand::Imm(value) => {
                    let width = self.layout.fields[slot.field as usize].width;
                    Some(value as u32 & u32::MAX.unbounded_shr(32 - u32::from(width)))
                }
                _ => None,
            },
        })
    }
}

/// The bit that says which half.
fn high(half: RegHalf) -> u32 {
    if half == RegHalf::High { 128 } else { 0 }
}

/// The words of an instruction on a GPU.
///
/// # Errors
///
/// [`InstEncodeError::NotHere`] if the GPU does not have the instruction, [`InstEncodeError::Operand`] for an
/// operand that its field cannot hold, [`InstEncodeError::Literals`] for two literals that differ,
/// [`InstEncodeError::Unused`] for unused bits that are used.
pub fn encode(inst: &Inst, gpu: &Gpu) -> Result<InstWords, InstEncodeError> {
    let mut words = encode_used(inst, gpu)?;
    if inst.has_unused_bits() {
        words.flip(&inst.unused);
        // Without these bits the words are the same then, though they may be read as the variant that names half registers.
        let same = decode_executed(words.as_slice(), gpu).is_some_and(|read| read.inst.unused == inst.unused);
        if !same {
            return Err(InstEncodeError::Unused);
        }
    }
    Ok(words)
}

/// As [`encode()`], with the bits that mean nothing as an assembler makes them.
fn encode_used(inst: &Inst, gpu: &Gpu) -> Result<InstWords, InstEncodeError> {
    let variant = inst.variant();
    let opcode = variant.opcodes[gpu.generation() as usize];
    if variant.columns & gpu.all_columns() == 0 || opcode == NO_OPCODE || !gpu.meets(variant.need) {
        return Err(InstEncodeError::NotHere);
    }
    let layout = tables::layout(variant.encoding, gpu).ok_or(InstEncodeError::NotHere)?;
    let mut maker = InstBuilder {
        words: [layout.value, layout.value >> 32, layout.high_value, layout.high_value >> 32]
            .map(|it| it as u32),
        literal: None,
        layout,
        gpu,
    };
    let op = layout.fields[Field::Op as usize].width;
    maker.put(Field::Op, u32::from(opcode) & !u32::MAX.unbounded_shl(op.into()));
    maker.put(Field::OpHi, u32::from(opcode) >> op);
    let mut follow = InstWords::default();
    if inst.row().format.is_memory() {
        mem::encode(&mut maker, inst, &mut follow)?;
        return Ok(words(&maker, follow));
    }
    let mut halves;
    let inst = if variant.encoding == Encoding::Exp && inst.mods.has(Mod::Compr) {
        halves = *inst;
        exp_halves(&mut halves);
        &halves
    } else {
        inst
    };
    for (at, (slot, operand)) in (0..).zip(inst.written()) {
        let wrong = InstEncodeError::Operand(at);
        if slot.class == Class::Imm32 {
            match operand {
                Operand::Literal(value) => maker.literal(value)?,
                _ => return Err(wrong),
            }
            continue;
        }
        let value = maker.value(slot, operand)?.ok_or(wrong)?;
        let fixed = matches!(slot.class, Class::Fixed | Class::FixedOptional);
        if !fixed && !maker.put(slot.field, value) {
            return Err(wrong);
        }
    }
    for slot in inst.implicit().iter().filter(|slot| slot.field != Field::None) {
        maker.put(slot.field, regs::code_of(Reg(slot.reg), gpu.generation()).unwrap_or_default().into());
    }
    for (field, value) in empty_sources(variant, layout, gpu) {
        maker.put(field, value);
    }
    let plain = inst.mods == Mods::default();
    for slot in variant.mods.iter() {
        if plain && !matches!(slot.id, Mod::En | Mod::Ones) && slot.field != Field::FiCode {
            continue;
        }
        let value = if slot.id == Mod::En {
            // The sources that are there.
            match inst.mods.get(Mod::Compr) {
                0 => (0..4)
                    .zip(inst.operands.iter().skip(1))
                    .fold(0, |en, (at, operand)| if *operand == Operand::Off { en } else { en | 1u32 << at }),
                _ => inst.mods.get(Mod::En) as u32,
            }
        } else if slot.id == Mod::Ones {
            slot.mask
        } else {
            inst.mods.get(slot.id) as u32 & slot.mask
        };
        match slot.field {
            Field::None => true,
            Field::FiCode => maker.put(slot.field, 1 + value),
            _ => maker.put(slot.field, value >> slot.shift),
        };
    }
    if let Some(literal) = maker.literal {
        follow.push(literal);
    }
    Ok(words(&maker, follow))
}

/// An export of halves is written with four sources, of which two and two are one; only two are encoded.
fn exp_halves(inst: &mut Inst) {
    let [_, a, b, c, d, ..] = inst.operands;
    let one = |first: Operand, second: Operand| if first == Operand::Off { second } else { first };
    inst.mods.set(
        Mod::En,
        (0..).zip([a, b, c, d]).fold(
            0,
            |en, (at, operand)| {
                if operand == Operand::Off { en } else { en | 1 << at }
            },
        ),
    );
    inst.operands[1..5].copy_from_slice(&[one(a, b), one(c, d), Operand::Off, Operand::Off]);
}

/// The words of an encoding and those after it.
fn words(maker: &InstBuilder<'_>, follow: InstWords) -> InstWords {
    let mut words = InstWords::default();
    for word in maker.words.iter().take(maker.layout.dwords.into()) {
        words.push(*word);
    }
    for word in follow.as_slice() {
        words.push(*word);
    }
    words
}
