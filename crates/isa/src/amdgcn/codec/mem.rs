//! Words of memory instructions: what stands in their fields depends on their modifiers.
//!
//! Bits no operand or modifier of an instruction uses are zero in it; other words are no instruction. Facts: the
//! encodings of AMD's ISA manuals, and of LLVM 19 where those do not say.

use super::InstWords;
use super::decode::InstReader;
use super::encode::{InstBuilder, InstEncodeError};
use crate::amdgcn::inst::{Inst, Operand};
use crate::amdgcn::mem;
use crate::amdgcn::model::{Class, Encoding, Field, Format, Gfx, Mod, OperandSlot, Trait, Traits};
use crate::amdgcn::{Gpu, Reg, regs};

/// Fields of rays that have one value.
const RAY: [(Field, u32); 3] = [(Field::Dmask, 15), (Field::Unorm, 1), (Field::R128, 1)];

/// Vector addresses of gfx12 images.
const VADDR: [Field; 5] = [Field::Vaddr0, Field::Vaddr1, Field::Vaddr2, Field::Vaddr3, Field::Vaddr4];

/// The format that untyped buffer instructions of gfx12 say.
const UNTYPED: u32 = 1;

/// Which GPUs state the format 1 in untyped buffer instructions.
fn is_untyped(inst: &Inst) -> bool {
    let variant = inst.variant();
    variant.encoding == Encoding::Vbuffer && !variant.has_mod(Mod::Format)
}

impl InstReader<'_> {
    fn vgpr(&mut self, field: Field, dwords: u8) -> Option<Operand> {
        let reg = Reg::vgpr(self.take(field) as u8);
        self.gpu.has_tuple(reg, dwords).then_some(Operand::reg(reg, dwords))
    }

    /// Registers of data: of the file that a flag selects, in layouts with one.
    fn data(&mut self, slot: &OperandSlot, traits: Traits, dwords: u8) -> Option<Operand> {
        let flag = self.layout.fields[Field::Acc as usize].width > 0;
        let operand = self.vgpr(slot.field, dwords)?;
        if flag && mem::is_data(slot, traits) && self.take(Field::Acc) != 0 {
            let Operand::Reg { reg, .. } = operand else { return None };
            return Some(Operand::reg(Reg::agpr(reg.index() as u8), dwords));
        }
        Some(operand)
    }

    fn sreg(&mut self, slot: &OperandSlot, scale: u32) -> Option<Operand> {
        let code = self.take(slot.field) << scale;
        scalar(slot, code, self.gpu)
    }
}

/// The registers a code stands for in a slot, if they may stand there.
fn scalar(slot: &OperandSlot, code: u32, gpu: &Gpu) -> Option<Operand> {
    let dwords = slot.ty.dwords();
    let code = u8::try_from(code).ok()?;
    let last = code.checked_add(dwords - 1)?;
    let reg = regs::scalar_of_code(code, gpu.generation())?;
    let end = reg.0 + u16::from(dwords) - 1;
    let there =
        reg == Reg::NULL || regs::scalar_of_code(last, gpu.generation()).is_some_and(|last| last.0 == end);
    (there && mem::scalar(slot, reg, dwords, gpu).is_ok()).then_some(Operand::reg(reg, dwords))
}

/// `src_vccz` and `src_execz`, which gfx11 no longer has.
fn zero_flag(code: u32) -> bool {
    [Reg::VCCZ, Reg::EXECZ].iter().any(|reg| u32::from(reg.0) == code)
}

fn signed(value: u32, width: u8) -> i32 {
    let shift = 32 - u32::from(width);
    (value << shift) as i32 >> shift
}

/// The operands and modifiers of a memory instruction, and how many dwords follow its encoding.
pub(super) fn decode(fields: &mut InstReader<'_>, words: &[u32], inst: &mut Inst) -> Option<u8> {
    let gpu = fields.gpu;
    let variant = inst.variant();
    let row = inst.row();
    let format = row.format;
    for slot in variant.mods.iter().filter(|slot| slot.id != Mod::Offset || format != Format::Smem) {
        let raw = fields.take(slot.field);
        let mut value = raw as i32;
        if slot.id == Mod::Offset {
            let (least, most) = mem::offsets(format, false, gpu);
            if least < 0 {
                value = signed(raw, fields.layout.fields[Field::Offset as usize].width);
            }
            if !(least..=most).contains(&value) {
                return None;
            }
        }
        inst.mods.set(slot.id, value);
    }
    // What must be said is among the modifiers.
    let silent = row.traits.has(Trait::GdsAlways) && !inst.mods.has(Mod::Gds)
        || row.traits.has(Trait::LdsAlways) && !inst.mods.has(Mod::Lds);
    if silent {
        return None;
    }
    if inst.mods.has(Mod::Lds) && inst.mods.has(Mod::Tfe) {
        return None;
    }
    if inst.row().traits.has(Trait::Msaa) && !mem::has_samples(inst) {
        return None;
    }
    if is_untyped(inst) && fields.take(Field::BufFormat) != UNTYPED && !fields.lenient {
        return None;
    }
    let mut more = 0;
    for (at, slot) in variant.slots.iter().take(usize::from(variant.written)).enumerate() {
        let operand = match slot.class {
            Class::Vgpr if slot.field == Field::Vdst && inst.mods.has(Mod::Lds) => Operand::None,
            Class::TfeData if inst.mods.has(Mod::Lds) => Operand::None,
            Class::Returned if !mem::returns(&inst.mods, gpu) => Operand::None,
            Class::Vgpr | Class::Returned | Class::TfeData | Class::D16Data => {
                fields.data(slot, row.traits, mem::data(slot, &inst.mods, gpu))?
            }
            Class::ImageData => fields.data(slot, row.traits, mem::image_data(inst, gpu)?)?,
            Class::ImageAddr => {
                let address = image_address(fields, words, inst)?;
                more = address.1;
                address.0
            }
            Class::BufferAddr => match mem::buffer_address(&inst.mods)? {
                0 => Operand::Off,
                count => fields.vgpr(slot.field, count)?,
            },
            Class::BufferOffset => match fields.take(slot.field) {
                code @ (128..=208 | 240..=248) => Operand::Inline(code as u8),
                code if gpu.generation() >= Gfx::Gfx11 && zero_flag(code) => return None,
                code => scalar(slot, code, gpu)?,
            },
            Class::SregPair => fields.sreg(slot, 1)?,
            Class::SregQuad => fields.sreg(slot, 2)?,
            Class::Sdst | Class::Sreg => fields.sreg(slot, 0)?,
            Class::Imm5 | Class::Imm7 => {
                let value = fields.take(slot.field) as i32;
                Operand::Imm((value <= mem::most(slot.class, gpu)).then_some(value)?)
            }
            Class::Imm24 => Operand::Imm(signed(fields.take(slot.field), 24)),
            Class::SmemOffset => {
                let (operand, literal) = smem_offset(fields, slot, inst)?;
                more = literal;
                operand
            }
            Class::GlobalAddr | Class::ScratchAddr | Class::GlobalBase | Class::ScratchBase => Operand::None,
            _ => return None,
        };
        *inst.operands.get_mut(at)? = operand;
    }
    if matches!(format, Format::Flat | Format::Global | Format::Scratch) {
        flat(fields, inst)?;
    }
    if mem::is_bvh(inst) && RAY.into_iter().any(|(field, value)| constant_ray(fields, field, value)) {
        return None;
    }
    (fields.lenient || fields.all_seen()).then_some(more)
}

/// Whether a field of a ray has another value than it must have.
fn constant_ray(fields: &mut InstReader<'_>, field: Field, value: u32) -> bool {
    fields.layout.fields[field as usize].width != 0 && fields.take(field) != value
}

/// The offset of a scalar memory instruction, and how many dwords it takes more.
fn smem_offset(fields: &mut InstReader<'_>, slot: &OperandSlot, inst: &mut Inst) -> Option<(Operand, u8)> {
    let gpu = fields.gpu;
    let generation = gpu.generation();
    let width = fields.layout.fields[Field::Offset as usize].width;
    let (least, most) = mem::offsets(Format::Smem, mem::is_buffer(&inst.variant().slots), gpu);
    let raw = fields.take(Field::Offset);
    let number = |raw: u32| {
        let value = if generation >= Gfx::Gfx9 { signed(raw, width) } else { raw as i32 };
        (least..=most).contains(&value).then_some(value)
    };
    if generation < Gfx::Gfx10 {
        let imm = fields.take(Field::Imm) != 0;
        let soe = fields.take(Field::Soe) != 0;
        return match (imm, soe) {
            (true, true) => {
                inst.mods.set(Mod::Soe, 1);
                inst.mods.set(Mod::Offset, number(raw)?);
                Some((fields.sreg(slot, 0)?, 0))
            }
            (true, false) => Some((Operand::Imm(number(raw)?), 0)),
            (false, true) => None,
            (false, false) if generation == Gfx::Gfx7 && raw == 255 => {
                let literal = fields.literal?;
                // What fits the field is not written as a literal.
                (literal > 255).then_some((Operand::Literal(literal), 1))
            }
            (false, false) => Some((scalar(slot, raw, gpu)?, 0)),
        };
    }
    let value = number(raw)?;
    let code = fields.take(Field::Soffset);
    let Operand::Reg { reg, .. } = scalar(slot, code, gpu)? else { return None };
    // Where only a register or only an immediate is said, the other is null or 0; both absent is `null` until gfx11.
    if reg == Reg::NULL && (value != 0 || generation == Gfx::Gfx12) {
        return Some((Operand::Imm(value), 0));
    }
    inst.mods.set(Mod::Offset, value);
    Some((Operand::reg(reg, 1), 0))
}

/// Address and base of a flat, global or scratch instruction.
fn flat(fields: &mut InstReader<'_>, inst: &mut Inst) -> Option<()> {
    let gpu = fields.gpu;
    let format = inst.row().format;
    let code = fields.take(Field::Saddr);
    let off = mem::no_base(format, gpu);
    let free = format == Format::Scratch && mem::free_scratch(gpu);
    let vector = if free { fields.take(Field::Sve) != 0 } else { code == off };
    let nowhere = format == Format::Scratch && mem::no_address(gpu) == Some(code);
    let slots = inst.variant().slots.iter();
    let mut based = false;
    for (place, slot) in inst.operands.iter_mut().zip(slots) {
        match slot.class {
            Class::GlobalBase | Class::ScratchBase => {
                based = true;
                *place = if code == off || nowhere { Operand::Off } else { scalar(slot, code, gpu)? };
            }
            Class::GlobalAddr => *place = fields.vgpr(slot.field, if code == off { 2 } else { 1 })?,
            Class::ScratchAddr if vector => *place = fields.vgpr(slot.field, 1)?,
            Class::ScratchAddr => *place = Operand::Off,
            _ => {}
        }
    }
    // Neither address is only said in one way.
    let neither = format == Format::Scratch && !vector && code == off;
    (based || code == off).then_some(()).filter(|()| !neither || free)
}

/// The address of an image, and how many dwords of registers follow.
fn image_address(fields: &mut InstReader<'_>, words: &[u32], inst: &mut Inst) -> Option<(Operand, u8)> {
    let gpu = fields.gpu;
    if gpu.generation() < Gfx::Gfx10 {
        let (least, _) = mem::image_address_range(inst);
        return Some((fields.vgpr(Field::Vaddr, least)?, 0));
    }
    if gpu.generation() == Gfx::Gfx12 {
        let (parts, count) = mem::image_parts(inst, gpu)?;
        for ((place, field), dwords) in inst.list.iter_mut().zip(VADDR).zip(parts).take(count) {
            fields.vgpr(field, dwords)?;
            *place = fields.take(field) as u8;
        }
        return Some((list(inst, count, parts), 0));
    }
    let more = fields.take(Field::Nsa);
    if more == 0 {
        return Some((fields.vgpr(Field::Vaddr, mem::image_block(inst, gpu)?)?, 0));
    }
    let (parts, count) = mem::image_parts(inst, gpu)?;
    if count < 2 || (count - 1).div_ceil(4) != more as usize {
        return None;
    }
    inst.list[0] = fields.take(Field::Vaddr) as u8;
    let dwords = usize::from(fields.layout.dwords);
    let bytes = words.get(dwords..dwords + more as usize)?.iter().flat_map(|word| word.to_le_bytes());
    for (at, byte) in (1..).zip(bytes) {
        match inst.list.get_mut(at).filter(|_| at < count) {
            Some(place) => *place = byte,
            None if byte == 0 => {}
            None => return None,
        }
    }
    let starts = inst.list.iter().zip(parts).take(count);
    let inside = starts.into_iter().all(|(start, part)| usize::from(*start) + usize::from(part) <= 256);
    inside.then_some((Operand::List(count as u8), more as u8))
}

/// A list, or the register that a list of one is.
fn list(inst: &Inst, count: usize, parts: mem::AddressParts) -> Operand {
    if count == 1 { Operand::reg(Reg::vgpr(inst.list[0]), parts[0]) } else { Operand::List(count as u8) }
}

/// Puts a memory instruction's operands and modifiers into their fields, and what follows into `words`.
pub(super) fn encode(
    maker: &mut InstBuilder<'_>,
    inst: &Inst,
    words: &mut InstWords,
) -> Result<(), InstEncodeError> {
    let variant = inst.variant();
    let format = inst.row().format;
    for slot in variant.mods.iter().filter(|slot| slot.id != Mod::Offset || format != Format::Smem) {
        let width = maker.layout.fields[slot.field as usize].width;
        let value = inst.mods.get(slot.id) as u32 & !u32::MAX.unbounded_shl(width.into());
        maker.put(slot.field, value);
    }
    let traits = inst.row().traits;
    if traits.has(Trait::GdsAlways) {
        maker.put(Field::Gds, 1);
    }
    if traits.has(Trait::LdsAlways) {
        maker.put(Field::Lds, 1);
    }
    if is_untyped(inst) {
        maker.put(Field::BufFormat, UNTYPED);
    }
    if mem::is_bvh(inst) {
        for (field, value) in RAY {
            if maker.layout.fields[field as usize].width != 0 {
                maker.put(field, value);
            }
        }
    }
    for (at, (slot, operand)) in (0u8..).zip(inst.written()) {
        let done = match slot.class {
            Class::ImageAddr => image_list(maker, inst, operand, words),
            Class::SmemOffset => put_smem_offset(maker, inst, operand, words),
            Class::GlobalBase | Class::ScratchBase => Some(()),
            _ => put(maker, slot, operand),
        };
        done.ok_or(InstEncodeError::Operand(at))?;
    }
    if matches!(format, Format::Flat | Format::Global | Format::Scratch) {
        put_flat(maker, inst).ok_or(InstEncodeError::Operand(0))?;
    }
    Ok(())
}

/// The code of a register or inline constant.
fn code(operand: Operand, gpu: &Gpu) -> Option<u32> {
    match operand {
        Operand::Reg { reg, .. } => regs::code_of(reg, gpu.generation()).map(u32::from),
        Operand::Inline(code) => Some(code.into()),
        _ => None,
    }
}

fn put(maker: &mut InstBuilder<'_>, slot: &OperandSlot, operand: Operand) -> Option<()> {
    let value = match (slot.class, operand) {
        (_, Operand::None) => return Some(()),
        (Class::BufferAddr | Class::ScratchAddr, Operand::Off) => return Some(()),
        (Class::Imm5 | Class::Imm7 | Class::Imm24, Operand::Imm(value)) => {
            let width = maker.layout.fields[slot.field as usize].width;
            value as u32 & !u32::MAX.unbounded_shl(width.into())
        }
        (Class::SregPair, operand) => code(operand, maker.gpu)? >> 1,
        (Class::SregQuad, operand) => code(operand, maker.gpu)? >> 2,
        (Class::Sdst | Class::Sreg | Class::BufferOffset, operand) => code(operand, maker.gpu)?,
        (_, Operand::Reg { reg, .. }) => {
            let (number, accumulation) = regs::in_file(reg)?;
            if accumulation && !maker.put(Field::Acc, 1) {
                return None;
            }
            number.into()
        }
        _ => return None,
    };
    maker.put(slot.field, value).then_some(())
}

fn put_smem_offset(
    maker: &mut InstBuilder<'_>,
    inst: &Inst,
    operand: Operand,
    words: &mut InstWords,
) -> Option<()> {
    let generation = maker.gpu.generation();
    let width = maker.layout.fields[Field::Offset as usize].width;
    let cut = |value: i32| value as u32 & !u32::MAX.unbounded_shl(width.into());
    let null = if generation >= Gfx::Gfx11 { 0x7c } else { 0x7d };
    let fits = match operand {
        Operand::Literal(value) if generation == Gfx::Gfx7 => {
            words.push(value);
            maker.put(Field::Offset, 255)
        }
        Operand::Imm(value) if generation < Gfx::Gfx10 => {
            maker.put(Field::Imm, 1) && maker.put(Field::Offset, cut(value))
        }
        Operand::Imm(value) => maker.put(Field::Soffset, null) && maker.put(Field::Offset, cut(value)),
        Operand::Reg { .. } if generation < Gfx::Gfx10 => {
            let code = code(operand, maker.gpu)?;
            if inst.mods.has(Mod::Soe) {
                let offset = cut(inst.mods.get(Mod::Offset));
                maker.put(Field::Imm, 1)
                    && maker.put(Field::Soe, 1)
                    && maker.put(Field::Soffset, code)
                    && maker.put(Field::Offset, offset)
            } else {
                maker.put(Field::Offset, code)
            }
        }
        Operand::Reg { .. } => {
            let code = code(operand, maker.gpu)?;
            maker.put(Field::Soffset, code) && maker.put(Field::Offset, cut(inst.mods.get(Mod::Offset)))
        }
        _ => false,
    };
    fits.then_some(())
}

fn put_flat(maker: &mut InstBuilder<'_>, inst: &Inst) -> Option<()> {
    let gpu = maker.gpu;
    let format = inst.row().format;
    let find = |classes: [Class; 2]| {
        inst.written().find(|(slot, _)| classes.contains(&slot.class)).map(|(_, operand)| operand)
    };
    let vector =
        find([Class::ScratchAddr, Class::ScratchAddr]).is_some_and(|operand| operand != Operand::Off);
    let base = find([Class::GlobalBase, Class::ScratchBase]).filter(|operand| *operand != Operand::Off);
    let saddr = match base {
        Some(base) => code(base, gpu)?,
        None if format == Format::Scratch && !vector && !mem::free_scratch(gpu) => mem::no_address(gpu)?,
        None => mem::no_base(format, gpu),
    };
    if format == Format::Scratch && mem::free_scratch(gpu) {
        maker.put(Field::Sve, vector.into());
    } else if vector && base.is_some() {
        return None;
    }
    maker.put(Field::Saddr, saddr).then_some(())
}

fn image_list(
    maker: &mut InstBuilder<'_>,
    inst: &Inst,
    operand: Operand,
    words: &mut InstWords,
) -> Option<()> {
    let count = match operand {
        Operand::Reg { reg, .. } if reg.is_vgpr() => {
            let field = if maker.gpu.generation() == Gfx::Gfx12 { Field::Vaddr0 } else { Field::Vaddr };
            return maker.put(field, reg.index().into()).then_some(());
        }
        Operand::List(count) => usize::from(count),
        _ => return None,
    };
    let list = inst.list.get(..count)?;
    if maker.gpu.generation() == Gfx::Gfx12 {
        return list
            .iter()
            .zip(VADDR)
            .all(|(number, field)| maker.put(field, (*number).into()))
            .then_some(());
    }
    let (first, rest) = list.split_first()?;
    let chunks = rest.chunks(4);
    let fits = maker.put(Field::Vaddr, (*first).into()) && maker.put(Field::Nsa, chunks.len() as u32);
    for chunk in chunks {
        let word = chunk.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        words.push(word);
    }
    fits.then_some(())
}
