//! Memory instructions from text: operands whose number and width follow from modifiers, and the modifiers themselves.
//!
//! Modifiers come in the order they are printed in; only those of caching may be mixed. Facts: the syntax LLVM 19 takes.

use super::hints::{self, Hint};
use super::operand::{self, OperandSyntax};
use super::parse::{ParseError, ParseRule};
use super::scan::LineScan;
use super::swizzle;
use super::{Symbols, accept};
use crate::amdgcn::inst::{Inst, OPERANDS, Operand, RegHalf};
use crate::amdgcn::model::{Class, Field, Format, Gfx, Mod, ModSlot, OperandSlot, Trait, Traits, Type};
use crate::amdgcn::tables::Variant;
use crate::amdgcn::{Gpu, Reg, mem, regs, tables};

/// An operand before its slot is known.
#[derive(Debug, Clone, Copy)]
struct UnslottedOperand {
    kind: OperandSyntax,
    at: usize,
}

/// Registers of an image address that was written as a list: where each part begins and how many it has.
#[derive(Debug, Clone, Copy, Default)]
struct AddressList {
    starts: [u8; mem::LIST],
    widths: mem::AddressParts,
    count: usize,
}

/// What reading a line needs.
struct MemParser<'s, 'a> {
    scan: &'s mut LineScan<'a>,
    gpu: &'s Gpu,
    symbols: &'s dyn Symbols,
    list: AddressList,
    hint: Option<(usize, Hint)>,
    /// Which modifiers were said.
    seen: u64,
}

/// A parse error of an operand.
fn at_operand(error: ParseError, operand: usize) -> ParseError {
    ParseError { operand: Some(operand as u8), ..error }
}

/// The instruction of a variant, from what follows the mnemonic.
pub(super) fn parse(
    scan: &mut LineScan<'_>,
    number: u16,
    gpu: &Gpu,
    symbols: &dyn Symbols,
) -> Result<Inst, ParseError> {
    let start = scan.at();
    let mut inst = Inst::new(number).ok_or_else(|| scan.error(0, ParseRule::NotInstruction))?;
    let variant = inst.variant();
    if variant.has_mod(Mod::Format) {
        inst.mods.set(Mod::Format, hints::DEFAULT);
    }
    let mut parser = MemParser { scan, gpu, symbols, list: AddressList::default(), hint: None, seen: 0 };
    let mut given = [UnslottedOperand { kind: OperandSyntax::Off, at: start }; OPERANDS];
    let count = parser.operands(variant, &mut inst, &mut given)?;
    let end = parser.scan.at();
    parser.modifiers(variant, &mut inst)?;
    let slots = variant.slots.get(..usize::from(variant.written)).unwrap_or_default();
    let skip = match (slots.len().checked_sub(count), slots) {
        (Some(0), _) => 0,
        (Some(1), [first, ..]) if first.class == Class::Returned => 1,
        (Some(1), [first, ..]) if may_go_to_lds(first, variant) && inst.mods.has(Mod::Lds) => 1,
        (Some(1), [.., last]) if last.class == Class::SmemOffset => {
            given[count] = UnslottedOperand { kind: OperandSyntax::Special(0), at: end };
            0
        }
        (Some(_), _) => return Err(at_operand(parser.scan.error(end, ParseRule::TooFew), count)),
        (None, _) => return Err(at_operand(parser.scan.error(end, ParseRule::TooMany), slots.len())),
    };
    let places = inst.operands;
    let mut operands = places;
    for (at, (slot, place)) in slots.iter().zip(&mut operands).enumerate() {
        let Some(given) = at.checked_sub(skip).and_then(|at| given.get(at)) else { continue };
        *place = parser
            .operand(slot, given, &mut inst)
            .map_err(|rule| at_operand(parser.scan.error(given.at, rule), at))?;
    }
    inst.operands = operands;
    parser.check(&mut inst, skip == 1, start, &given)?;
    Ok(inst)
}

/// Whether a destination may be left out because what is loaded goes to LDS.
fn may_go_to_lds(slot: &OperandSlot, variant: &Variant) -> bool {
    matches!(slot.field, Field::Vdst | Field::Vdata) && variant.has_mod(Mod::Lds)
}

/// Modifiers of caching, which have no order among themselves.
fn is_caching(id: Mod) -> bool {
    matches!(id, Mod::Glc | Mod::Slc | Mod::Scc | Mod::Dlc | Mod::Th | Mod::Scope)
}

impl MemParser<'_, '_> {
    /// Reads operands; returns how many there are.
    fn operands(
        &mut self,
        variant: &Variant,
        inst: &mut Inst,
        given: &mut [UnslottedOperand; OPERANDS],
    ) -> Result<usize, ParseError> {
        let written = usize::from(variant.written);
        let mut count = 0;
        if written == 0 {
            return Ok(0);
        }
        let image = variant.slots.iter().any(|slot| slot.class == Class::ImageAddr);
        while !self.scan.end() {
            let at = self.scan.at();
            if count < written
                && let Some((reg, dwords)) = operand::plain(self.scan)
            {
                let kind = OperandSyntax::Reg { reg, dwords, half: RegHalf::Whole };
                given.get_mut(count).into_iter().for_each(|place| *place = UnslottedOperand { kind, at });
                count += 1;
                if self.scan.eat(b',') {
                    continue;
                }
                break;
            }
            if self.starts_modifier(variant) {
                // A format may stand before the scalar offset.
                let id = self.scan.name();
                self.scan.back_to(at);
                if count == 3 && matches!(id, "format" | "dfmt" | "nfmt") && written == 4 {
                    self.early_format(inst)?;
                    continue;
                }
                break;
            }
            let Some(place) = given.get_mut(count).filter(|_| count < written) else {
                return Err(at_operand(self.scan.here(ParseRule::TooMany), count));
            };
            let kind = if image && count == 1 && self.scan.peek() == b'[' {
                self.parts().map_err(|error| at_operand(error, count))?
            } else {
                let mut unused = [0; mem::LIST];
                let written = operand::parse(self.scan, self.gpu, self.symbols, &mut unused)
                    .map_err(|error| at_operand(error, count))?;
                if written.neg || written.abs || written.sext {
                    return Err(at_operand(self.scan.error(at, ParseRule::Operand), count));
                }
                written.kind
            };
            *place = UnslottedOperand { kind, at };
            count += 1;
            if !self.scan.eat(b',') {
                break;
            }
        }
        Ok(count)
    }

    /// Whether a modifier of this variant is next, which may be after a comma.
    fn starts_modifier(&mut self, variant: &Variant) -> bool {
        let at = self.scan.at();
        let name = self.scan.name();
        let legacy = matches!(name, "dfmt" | "nfmt");
        let format = tables::rows().get(usize::from(variant.row)).map_or(Format::Flat, |row| row.format);
        let own = |slot: &ModSlot| mem::name_of(slot.id, format, self.gpu) == name;
        let found = !name.is_empty() && (legacy || variant.mods.iter().any(own));
        self.scan.back_to(at);
        found
    }

    /// `[v0, v1, v[2:4]]`.
    fn parts(&mut self) -> Result<OperandSyntax, ParseError> {
        let start = self.scan.at();
        self.scan.eat(b'[');
        loop {
            let at = self.scan.at();
            let register = match operand::plain(self.scan) {
                Some((reg, dwords)) => Some((reg, dwords, RegHalf::Whole)),
                None => operand::register(self.scan, self.symbols)?,
            };
            let Some((reg, dwords, RegHalf::Whole)) = register.filter(|(reg, ..)| reg.is_vgpr()) else {
                return Err(self.scan.error(at, ParseRule::Operand));
            };
            let count = self.list.count;
            let (Some(first), Some(width)) =
                (self.list.starts.get_mut(count), self.list.widths.get_mut(count))
            else {
                return Err(self.scan.error(at, ParseRule::RegisterList));
            };
            (*first, *width) = (reg.index() as u8, dwords);
            self.list.count += 1;
            if !self.scan.eat(b',') {
                break;
            }
        }
        self.scan.expect(b']', ParseRule::Bracket)?;
        let list = &self.list;
        let follow =
            list.widths.iter().zip(list.starts).take(list.count).enumerate().all(|(at, (width, start))| {
                *width == 1 && usize::from(start) == usize::from(list.starts[0]) + at
            });
        // Where there are no lists, one is only another way to write registers that follow each other.
        if list.count == 1 || self.gpu.generation() < Gfx::Gfx10 {
            let dwords = if list.count == 1 { list.widths[0] } else { list.count as u8 };
            if list.count > 1 && !follow {
                return Err(self.scan.error(start, ParseRule::RegisterList));
            }
            return Ok(OperandSyntax::Reg { reg: Reg::vgpr(list.starts[0]), dwords, half: RegHalf::Whole });
        }
        Ok(OperandSyntax::List(list.count as u8))
    }

    /// What an operand is in its slot.
    fn operand(
        &self,
        slot: &OperandSlot,
        given: &UnslottedOperand,
        inst: &mut Inst,
    ) -> Result<Operand, ParseRule> {
        match slot.class {
            Class::Vgpr | Class::Returned | Class::TfeData | Class::D16Data => {
                self.data(slot, inst.row().traits, given, mem::data(slot, &inst.mods, self.gpu))
            }
            Class::ImageData => match mem::image_data(inst, self.gpu) {
                Some(dwords) => {
                    self.data(slot, inst.row().traits, given, dwords).map_err(|rule| match rule {
                        ParseRule::RegisterWidth => ParseRule::ImageData,
                        rule => rule,
                    })
                }
                None => Err(ParseRule::Dmask),
            },
            Class::ImageAddr => self.image_address(given, inst),
            Class::BufferAddr => match (mem::buffer_address(&inst.mods), given.kind) {
                (Some(0), OperandSyntax::Off) => Ok(Operand::Off),
                (Some(dwords), _) if dwords > 0 => self.vgpr(given, dwords),
                _ => Err(ParseRule::Operand),
            },
            Class::BufferOffset => self.buffer_offset(given, slot),
            Class::SregPair | Class::SregQuad | Class::Sreg | Class::Sdst => self.sgpr(given, slot),
            Class::Imm5 | Class::Imm7 => self.immediate(given, 0, mem::most(slot.class, self.gpu).into()),
            Class::Imm24 => self.immediate(given, -(1 << 23), (1 << 23) - 1),
            Class::SmemOffset => self.smem_offset(given, slot, inst),
            Class::GlobalAddr => Err(ParseRule::Operand),
            Class::GlobalBase | Class::ScratchBase => match given.kind {
                OperandSyntax::Off => Ok(Operand::Off),
                _ => self.sgpr(given, slot),
            },
            Class::ScratchAddr => match given.kind {
                OperandSyntax::Off => Ok(Operand::Off),
                _ => self.vgpr(given, 1),
            },
            _ => Err(ParseRule::Operand),
        }
        .or_else(|rule| match slot.class {
            // One register or two: which of them the base says.
            Class::GlobalAddr => self.vgpr(given, 2).or_else(|_| self.vgpr(given, 1)),
            _ => Err(rule),
        })
    }

    fn vgpr(&self, given: &UnslottedOperand, dwords: u8) -> Result<Operand, ParseRule> {
        match given.kind {
            OperandSyntax::Reg { reg, dwords: count, half: RegHalf::Whole } if reg.is_vgpr() => {
                accept::tuple(reg, count, dwords, self.gpu)
            }
            _ => Err(ParseRule::Operand),
        }
    }

    /// Registers of data, of either kind where both are one file.
    fn data(
        &self,
        slot: &OperandSlot,
        traits: Traits,
        given: &UnslottedOperand,
        dwords: u8,
    ) -> Result<Operand, ParseRule> {
        match given.kind {
            OperandSyntax::Reg { reg, dwords: count, half: RegHalf::Whole }
                if reg.is_agpr() && self.gpu.has_unified_vgprs() && mem::is_data(slot, traits) =>
            {
                accept::tuple(reg, count, dwords, self.gpu)
            }
            _ => self.vgpr(given, dwords),
        }
    }

    fn sgpr(&self, given: &UnslottedOperand, slot: &OperandSlot) -> Result<Operand, ParseRule> {
        let dwords = slot.ty.dwords();
        let OperandSyntax::Reg { reg, dwords: count, half: RegHalf::Whole } = given.kind else {
            return Err(ParseRule::Operand);
        };
        if reg.is_vgpr() {
            return Err(ParseRule::Operand);
        }
        let generation = self.gpu.generation();
        let null = reg == Reg::NULL && generation >= Gfx::Gfx10;
        let count = if null { dwords } else { count };
        if count != dwords {
            return Err(ParseRule::RegisterWidth);
        }
        let last = if null { reg } else { Reg(reg.0 + u16::from(dwords) - 1) };
        let here = [reg, last].into_iter().all(|reg| regs::code_of(reg, generation).is_some());
        match mem::scalar(slot, reg, dwords, self.gpu) {
            Err(mem::SgprRule::Kind) => Err(ParseRule::Operand),
            Err(mem::SgprRule::Alignment) => Err(ParseRule::RegisterAlignment),
            Err(mem::SgprRule::NotThere) => Err(ParseRule::NotHere),
            Ok(()) if here => Ok(Operand::reg(reg, dwords)),
            Ok(()) => Err(ParseRule::NotHere),
        }
    }

    fn buffer_offset(&self, given: &UnslottedOperand, slot: &OperandSlot) -> Result<Operand, ParseRule> {
        let gfx12 = self.gpu.generation() == Gfx::Gfx12;
        match given.kind {
            OperandSyntax::Value(_) if gfx12 => Err(ParseRule::Operand),
            OperandSyntax::Value(value) => match accept::constant(Type::B32, value, false, self.gpu)? {
                inline @ Operand::Inline(_) => Ok(inline),
                _ => Err(ParseRule::Operand),
            },
            OperandSyntax::Reg { reg: Reg::VCCZ | Reg::EXECZ, .. } if self.gpu.generation() >= Gfx::Gfx11 => {
                Err(ParseRule::NotHere)
            }
            OperandSyntax::Reg { reg, .. } if gfx12 && reg.0 >= Reg::SHARED_BASE.0 => Err(ParseRule::Operand),
            _ => self.sgpr(given, slot),
        }
    }

    fn immediate(&self, given: &UnslottedOperand, least: i64, most: i64) -> Result<Operand, ParseRule> {
        match given.kind {
            OperandSyntax::Value(value) if value.float => Err(ParseRule::Number),
            OperandSyntax::Value(value) if (least..=most).contains(&value.value) => {
                Ok(Operand::Imm(value.value as i32))
            }
            OperandSyntax::Value(_) => Err(ParseRule::Range),
            _ => Err(ParseRule::Operand),
        }
    }

    fn smem_offset(
        &self,
        given: &UnslottedOperand,
        slot: &OperandSlot,
        inst: &mut Inst,
    ) -> Result<Operand, ParseRule> {
        let generation = self.gpu.generation();
        let value = match given.kind {
            OperandSyntax::Special(value) => i64::from(value),
            OperandSyntax::Value(value) if value.float => return Err(ParseRule::Number),
            OperandSyntax::Value(value) => value.value,
            _ => return self.sgpr(given, slot),
        };
        if self.has_modifier(Mod::Offset) {
            return Err(ParseRule::Operand);
        }
        let (least, most) = mem::offsets(Format::Smem, mem::is_buffer(&inst.variant().slots), self.gpu);
        match value {
            value if (i64::from(least)..=i64::from(most)).contains(&value) => Ok(Operand::Imm(value as i32)),
            value if generation == Gfx::Gfx7 => {
                u32::try_from(value).map(Operand::Literal).map_err(|_| ParseRule::Offset)
            }
            _ => Err(ParseRule::Offset),
        }
    }

    fn image_address(&self, given: &UnslottedOperand, inst: &mut Inst) -> Result<Operand, ParseRule> {
        let gpu = self.gpu;
        if let OperandSyntax::List(count) = given.kind {
            let (parts, parts_count) = mem::image_parts(inst, gpu).ok_or(ParseRule::ImageAddress)?;
            if parts_count != usize::from(count) || parts != self.list.widths {
                return Err(ParseRule::ImageAddress);
            }
            inst.list = self.list.starts;
            return Ok(Operand::List(count));
        }
        let OperandSyntax::Reg { reg, dwords, half: RegHalf::Whole } = given.kind else {
            return Err(ParseRule::Operand);
        };
        if !reg.is_vgpr() {
            return Err(ParseRule::Operand);
        }
        if gpu.generation() < Gfx::Gfx10 {
            let (least, most) = mem::image_address_range(inst);
            let fits = (least..=most).contains(&dwords) || dwords == 8 && mem::eight_stand_for(most);
            return fits.then_some(Operand::reg(reg, dwords)).ok_or(ParseRule::ImageAddress);
        }
        let block = mem::image_block(inst, gpu).ok_or(ParseRule::ImageAddress)?;
        if gpu.generation() == Gfx::Gfx12 {
            let single = block == 1 && dwords == 1;
            inst.list[0] = reg.index() as u8;
            return single.then_some(Operand::reg(reg, 1)).ok_or(ParseRule::ImageAddress);
        }
        let fits = dwords == block || dwords == 8 && mem::eight_stand_for(block);
        fits.then_some(Operand::reg(reg, block)).ok_or(ParseRule::ImageAddress)
    }

    fn has_modifier(&self, id: Mod) -> bool {
        self.seen >> id as u8 & 1 != 0
    }

    /// Reads all modifiers.
    fn modifiers(&mut self, variant: &Variant, inst: &mut Inst) -> Result<(), ParseError> {
        let mut rank = 0;
        while !self.scan.end() {
            let at = self.scan.at();
            let name = match self.scan.name() {
                // The name of the offset of FLAT, global and scratch instructions in older assemblers.
                "inst_offset" if variant.encoding.is_flat() => "offset",
                name => name,
            };
            let format = inst.row().format;
            let own = |slot: &ModSlot, name: &str| mem::name_of(slot.id, format, self.gpu) == name;
            let find = |name: &str| variant.mods.iter().enumerate().find(|(_, slot)| own(slot, name));
            let can_be_off = |found: &(usize, &ModSlot)| {
                matches!(found.1.id, Mod::Glc | Mod::Slc | Mod::Scc | Mod::Dlc | Mod::Gds)
            };
            let (found, on) = match find(name) {
                Some(found) => (Some(found), true),
                None => (name.strip_prefix("no").and_then(find).filter(can_be_off), false),
            };
            let Some((place, slot)) = found else { return Err(self.scan.error(at, ParseRule::Modifier)) };
            let place = if is_caching(slot.id) {
                variant.mods.iter().position(|slot| is_caching(slot.id)).unwrap_or(place)
            } else {
                place
            };
            if place < rank || self.has_modifier(slot.id) {
                return Err(self.scan.error(at, ParseRule::ModifierOrder));
            }
            rank = place;
            self.seen |= 1 << slot.id as u8;
            let valued = matches!(
                slot.id,
                Mod::Offset
                    | Mod::Offset0
                    | Mod::Offset1
                    | Mod::Format
                    | Mod::Dmask
                    | Mod::Dim
                    | Mod::Th
                    | Mod::Scope
            );
            if !valued {
                self.scan.space();
                inst.mods.set(slot.id, on.into());
            } else {
                self.scan.expect(b':', ParseRule::Modifier)?;
                self.value(slot.id, at, inst)?;
            }
            self.scan.eat(b',');
        }
        let scope = inst.mods.get(Mod::Scope);
        match self.hint.filter(|(_, hint)| !hints::valid(*hint, scope, inst.row().traits)) {
            Some((at, _)) => Err(self.scan.error(at, ParseRule::TemporalHint)),
            None => Ok(()),
        }
    }

    fn value(&mut self, id: Mod, start: usize, inst: &mut Inst) -> Result<(), ParseError> {
        let at = self.scan.at();
        let value = match id {
            Mod::Format => self.format()?,
            Mod::Dim => {
                let word = self.scan.word();
                let name = word.strip_prefix("SQ_RSRC_IMG_").unwrap_or(word);
                let code = mem::DIM_NAMES.iter().position(|have| *have == name);
                code.ok_or_else(|| self.scan.error(at, ParseRule::ModifierValue))? as i32
            }
            Mod::Th => {
                let traits = inst.row().traits;
                let word = self.scan.word();
                let hint =
                    hints::hint(word, traits).ok_or_else(|| self.scan.error(at, ParseRule::TemporalHint))?;
                let width = self.width(inst, Field::Th);
                if hint.code >> width != 0 {
                    return Err(self.scan.error(at, ParseRule::TemporalHint));
                }
                self.hint = Some((start, hint));
                hint.code
            }
            Mod::Scope => {
                hints::scope(self.scan.word()).ok_or_else(|| self.scan.error(at, ParseRule::ModifierValue))?
            }
            Mod::Offset if inst.row().traits.has(Trait::Swizzle) => swizzle::parse(self.scan, self.symbols)?,
            _ => {
                let value = self.scan.expression(self.symbols)?;
                if value.float {
                    return Err(self.scan.error(at, ParseRule::Number));
                }
                let format = inst.row().format;
                let (least, most, rule) = match id {
                    Mod::Offset => {
                        let buffer = mem::is_buffer(&inst.variant().slots);
                        let (least, most) = mem::offsets(format, buffer, self.gpu);
                        (least, most, ParseRule::Offset)
                    }
                    Mod::Dmask => (0, 15, ParseRule::Range),
                    _ => (0, 255, ParseRule::Range),
                };
                if !(i64::from(least)..=i64::from(most)).contains(&value.value) {
                    return Err(self.scan.error(start, rule));
                }
                if id == Mod::Offset && format == Format::Smem && self.gpu.generation() < Gfx::Gfx10 {
                    inst.mods.set(Mod::Soe, 1);
                }
                value.value as i32
            }
        };
        inst.mods.set(id, value);
        Ok(())
    }

    fn width(&self, inst: &Inst, field: Field) -> u8 {
        let layout = tables::layout(inst.variant().encoding, self.gpu);
        layout.map_or(0, |layout| layout.fields[field as usize].width)
    }

    /// A number, or names in brackets.
    fn format(&mut self) -> Result<i32, ParseError> {
        let at = self.scan.at();
        if !self.scan.eat(b'[') {
            let value = self.scan.expression(self.symbols)?;
            let in_range = !value.float && (0..128).contains(&value.value);
            return if in_range {
                Ok(value.value as i32)
            } else {
                Err(self.scan.error(at, ParseRule::Range))
            };
        }
        let first = self.scan.word();
        let second = if self.scan.eat(b',') { Some(self.scan.word()) } else { None };
        self.scan.expect(b']', ParseRule::Bracket)?;
        hints::format(first, second, self.gpu).ok_or_else(|| self.scan.error(at, ParseRule::ModifierValue))
    }

    /// A format before the scalar offset, in the old syntax: `format:1,`, `dfmt:1, nfmt:2,`.
    fn early_format(&mut self, inst: &mut Inst) -> Result<(), ParseError> {
        let unified = self.gpu.generation() >= Gfx::Gfx10;
        loop {
            let at = self.scan.at();
            let name = self.scan.name();
            if !matches!(name, "format" | "dfmt" | "nfmt") {
                self.scan.back_to(at);
                return Ok(());
            }
            if unified != (name == "format") {
                return Err(self.scan.error(at, ParseRule::Modifier));
            }
            self.scan.expect(b':', ParseRule::Modifier)?;
            let place = self.scan.at();
            let value = self.format()?;
            let old = inst.mods.get(Mod::Format);
            let (value, limit) = match name {
                "dfmt" => (old & !15 | value & 15, value < 16),
                "nfmt" => (old & 15 | (value & 7) << 4, value < 8),
                _ => (value, true),
            };
            if !limit {
                return Err(self.scan.error(place, ParseRule::Range));
            }
            inst.mods.set(Mod::Format, value);
            self.scan.eat(b',');
        }
    }

    /// What no operand or modifier says alone.
    fn check(
        &mut self,
        inst: &mut Inst,
        skipped: bool,
        start: usize,
        given: &[UnslottedOperand; OPERANDS],
    ) -> Result<(), ParseError> {
        let (gpu, variant, traits) = (self.gpu, inst.variant(), inst.row().traits);
        let error = |rule: ParseRule| Err(self.scan.error(start, rule));
        if variant.has_mod(Mod::Dim) && !self.has_modifier(Mod::Dim) {
            return error(ParseRule::MustDim);
        }
        if traits.has(Trait::Msaa) && !mem::has_samples(inst) {
            return error(ParseRule::Samples);
        }
        if traits.has(Trait::GdsAlways) && !inst.mods.has(Mod::Gds) {
            return error(ParseRule::MustGds);
        }
        if traits.has(Trait::LdsAlways) && !inst.mods.has(Mod::Lds) {
            return error(ParseRule::MustLds);
        }
        if let Some(first) = variant.slots.first() {
            if first.class == Class::Returned && skipped == mem::returns(&inst.mods, gpu) {
                // From gfx12 on a hint that returns may stand without a destination only where it cannot be told.
                return error(if skipped { ParseRule::MustNotReturn } else { ParseRule::MustReturn });
            }
            if may_go_to_lds(first, variant) && !skipped && inst.mods.has(Mod::Lds) {
                return error(ParseRule::Modifier);
            }
        }
        if inst.mods.has(Mod::Lds) && inst.mods.has(Mod::Tfe) {
            return error(ParseRule::Modifier);
        }
        if mem::mixes_files(inst) {
            return error(ParseRule::RegisterFile);
        }
        let place = |class: Class| variant.slots.iter().position(|slot| slot.class == class);
        if let (Some(addr), Some(base)) = (place(Class::GlobalAddr), place(Class::GlobalBase)) {
            let needed = if inst.operands[base] == Operand::Off { 2 } else { 1 };
            if !matches!(inst.operands[addr], Operand::Reg { dwords, .. } if dwords == needed) {
                let at = addr
                    .checked_sub(skipped.into())
                    .and_then(|at| given.get(at))
                    .map_or(start, |given| given.at);
                return Err(at_operand(self.scan.error(at, ParseRule::RegisterWidth), addr));
            }
        }
        if let (Some(addr), Some(base)) = (place(Class::ScratchAddr), place(Class::ScratchBase)) {
            let (vector, scalar) = (inst.operands[addr] != Operand::Off, inst.operands[base] != Operand::Off);
            let neither = !vector && !scalar && mem::no_address(gpu).is_none();
            if !mem::free_scratch(gpu) && (vector && scalar || neither) {
                return Err(at_operand(self.scan.error(start, ParseRule::Operand), base));
            }
        }
        Ok(())
    }
}
