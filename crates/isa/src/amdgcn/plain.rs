//! Plain instructions straight from words to text: most of any code.
//!
//! An opcode becomes a plan when it is first met: its mnemonic, where its operands lie, which other bits must have which
//! values. Texts of operands are looked up by their codes. What a plan does not cover (memory, dual instructions, lanes,
//! rare registers, most modifiers) is not read here: [`super::codec`] and [`super::text`] can say everything, and a plan
//! says only what they would (tests compare).

use super::codec::{empty_sources, source_of};
use super::inst::{Operand, RegHalf, dwords};
use super::model::{Class, Encoding, EncodingLayout, Field, Form, Format, Gfx, Mod, OperandSlot, Role, Type};
use super::opcode::Opcode;
use super::tables::{InstRow, Variant};
use super::text::{self, LineBuf};
use super::{Gpu, Reg, regs, tables};
use std::sync::OnceLock;

/// Kinds of operands, by code.
mod kind {
    /// One of the lower half of vector registers, and one of the upper.
    pub const LOW: u8 = 1;
    pub const HIGH: u8 = 2;
    /// A scalar register.
    pub const SCALAR: u8 = 4;
    pub const INLINE: u8 = 8;
    pub const LITERAL: u8 = 16;
}

/// The longest text of an operand.
const TEXT: usize = 14;

/// What a code says: its text, how long that is, its kind. No kind: not a plain operand.
#[derive(Clone, Copy)]
struct CodeText {
    text: [u8; TEXT],
    length: u8,
    kind: u8,
}

/// All codes of one size: scalar registers and constants, then vector registers.
type CodeTexts = [CodeText; 512];

/// Sizes that have codes, in registers.
const SIZES: [u8; 6] = [1, 2, 3, 4, 8, 16];

/// The codes of a generation.
fn codes(gpu: &Gpu) -> &'static [CodeTexts; SIZES.len()] {
    static CODES: [OnceLock<Box<[CodeTexts; SIZES.len()]>>; Gfx::ALL.len()] =
        [const { OnceLock::new() }; Gfx::ALL.len()];
    CODES[gpu.generation() as usize].get_or_init(|| {
        let none = CodeText { text: [0; TEXT], length: 0, kind: 0 };
        let mut all = Box::new([[none; 512]; SIZES.len()]);
        let mut line = LineBuf::new();
        for (codes, size) in all.iter_mut().zip(SIZES) {
            for (code, code_text) in (0..).zip(codes.iter_mut()) {
                let Some(kind) = kind_of(code, size, gpu, &mut line) else { continue };
                let length = line.len();
                if let (true, Some(text)) = (length <= TEXT, line.room(0)) {
                    *code_text = CodeText { text: *text, length: length as u8, kind };
                }
            }
        }
        all
    })
}

/// The kind of a code of a size, its text in the line.
fn kind_of(code: u32, size: u8, gpu: &Gpu, line: &mut LineBuf) -> Option<u8> {
    line.forget(line.len());
    if code == 255 {
        return Some(kind::LITERAL);
    }
    match source_of(code, size, gpu)? {
        Operand::Inline(248) if size != 1 => None,
        Operand::Inline(code) => {
            text::inline(code, line);
            Some(kind::INLINE)
        }
        Operand::Reg { reg, dwords, .. } => {
            // Not on all GPUs of a generation, and what has rules of its own.
            let rare = (Reg::XNACK_MASK.0..256).contains(&reg.0);
            text::register(reg, dwords, RegHalf::Whole, line);
            let vector = if reg.index() < 128 { kind::LOW } else { kind::HIGH };
            (!rare).then_some(if reg.is_vgpr() { vector } else { kind::SCALAR })
        }
        _ => None,
    }
}

/// Where an operand lies.
#[derive(Clone, Copy)]
struct OperandBits {
    codes: &'static CodeTexts,
    shift: u8,
    mask: u16,
    /// Added to the field's value.
    base: u16,
    /// Kinds that may stand here; none: the value of a field, written as the slot says.
    kinds: u8,
    /// Kinds that count as scalar values read.
    counted: u8,
    /// Which source it is to signs.
    source: u8,
    slot: &'static OperandSlot,
}

/// The most operands of a plan.
const PLACES: usize = 5;

/// The longest mnemonic of a plan, with what stands around it.
const HEAD: usize = 32;

/// A modifier written behind the operands.
#[derive(Clone, Copy)]
struct Tail {
    id: Mod,
    shift: u8,
    mask: u8,
}

/// How the words of one opcode are written.
struct PlainPlan {
    head: [u8; HEAD],
    length: u8,
    opcode: Opcode,
    /// How many dwords, without a literal.
    dwords: u8,
    count: u8,
    /// How many scalar values may be read.
    scalars: u8,
    /// Bits that are the same in all plain instructions of this opcode.
    fixed: u64,
    value: u64,
    /// Bits of modifiers: usually none is set.
    set_bits: u64,
    /// Where signs lie, a bit per source; 64 and more: nowhere.
    neg: u8,
    abs: u8,
    tails: [Option<Tail>; 2],
    places: [OperandBits; PLACES],
}

/// What is known of an opcode.
const UNKNOWN: u16 = 0;
const NO_PLAN: u16 = 1;
const FIRST: u16 = 2;

/// A layout as far as it tells words and their opcode.
struct LayoutMatch {
    mask: u64,
    value: u64,
    op: (u8, u32),
    high: (u8, u8, u32),
    /// Where its opcodes begin.
    first: u32,
    layout: &'static EncodingLayout,
}

/// Plans of a GPU, made as they are asked for.
pub(super) struct PlainPlans {
    gpu: Gpu,
    ways: Vec<Option<LayoutMatch>>,
    /// By opcodes of the ways.
    known: Vec<u16>,
    plans: Vec<PlainPlan>,
}

impl PlainPlans {
    /// For a GPU.
    pub(super) fn new(gpu: &Gpu) -> PlainPlans {
        let mut first = 0;
        let ways = tables::layouts_in_order(gpu).map(|layout| {
            let layout = layout?;
            let [op, high] = [Field::Op, Field::OpHi].map(|field| layout.fields[field as usize]);
            let ones = |width: u8| !u32::MAX.unbounded_shl(width.into());
            let way = LayoutMatch {
                mask: layout.mask,
                value: layout.value,
                op: (op.lsb & 63, ones(op.width)),
                high: (high.lsb & 63, op.width & 31, ones(high.width)),
                first,
                layout,
            };
            first += 1 << (op.width + high.width).min(12);
            Some(way)
        });
        let ways = ways.collect();
        PlainPlans { gpu: *gpu, ways, known: vec![UNKNOWN; first as usize], plans: Vec::new() }
    }

    /// Appends the line of the instruction that words begin with, if it is plain: a tab and its text. Returns how many dwords
    /// it has; nothing is appended without.
    #[inline]
    pub(super) fn write(&mut self, words: &[u32], out: &mut LineBuf) -> Option<u8> {
        let [first, rest @ ..] = words else { return None };
        let second = rest.first().copied().unwrap_or_default();
        let both = u64::from(second) << 32 | u64::from(*first);
        let way = tables::tries(*first, &self.gpu)
            .iter()
            .filter_map(|at| self.ways.get(usize::from(*at))?.as_ref())
            .find(|way| both & way.mask == way.value)?;
        let low = (both >> way.op.0) as u32 & way.op.1;
        let opcode = low | ((both >> way.high.0) as u32 & way.high.2) << way.high.1;
        let place = (way.first + opcode) as usize;
        let known = match *self.known.get(place)? {
            UNKNOWN => self.learn(place, opcode, way.layout),
            known => known,
        };
        let plan = self.plans.get(usize::from(known.checked_sub(FIRST)?))?;
        if both & plan.fixed != plan.value {
            return None;
        }
        if both & plan.set_bits == 0 {
            plan.operands::<false>(both, words, &self.gpu, out)
        } else {
            plan.operands::<true>(both, words, &self.gpu, out)
        }
    }

    /// Makes the plan of an opcode, if it can have one. Returns what is known then.
    #[cold]
    fn learn(&mut self, place: usize, opcode: u32, layout: &'static EncodingLayout) -> u16 {
        let next = u16::try_from(self.plans.len()).ok().and_then(|count| count.checked_add(FIRST));
        let number = match (next, PlainPlan::new(opcode, layout, &self.gpu)) {
            (Some(number), Some(plan)) => {
                self.plans.push(plan);
                number
            }
            _ => NO_PLAN,
        };
        if let Some(known) = self.known.get_mut(place) {
            *known = number;
        }
        number
    }
}

/// Modifiers whose values may be other than at rest.
fn is_tail(id: Mod) -> bool {
    matches!(id, Mod::Clamp | Mod::Omod)
}

impl PlainPlan {
    fn new(opcode: u32, layout: &'static EncodingLayout, gpu: &Gpu) -> Option<PlainPlan> {
        let number = tables::variant_of(layout.encoding, opcode, gpu)?;
        let variant = tables::variants().get(usize::from(number))?;
        let row = tables::rows().get(usize::from(variant.row))?;
        let old = gpu.generation() <= Gfx::Gfx7;
        let other = row.format.is_memory()
            || layout.dwords > 2
            || !gpu.meets(variant.need)
            || variant.second.is_some()
            || matches!(variant.encoding, Encoding::Exp | Encoding::Vop3Dpp | Encoding::Vop3Dpp8)
            || row.format == Format::Sopk && row.role == Role::Wait
            || gpu.llvm23() && text::signed_dot(row.opcode).is_some()
            || empty_sources(variant, layout, gpu).next().is_some()
            // There the suffix depends on the operands, and some have no constants.
            || old && variant.form == Form::E64;
        if other {
            return None;
        }
        let (written, implicit) = variant.slots.split_at_checked(variant.written.into())?;
        let mut line = LineBuf::new();
        line.push(b'\t');
        line.push_str(variant.name);
        line.push_str(text::suffix_of(variant, row.format, gpu, false));
        if !written.is_empty() {
            line.push(b' ');
        }
        let length = line.len();
        let head = *line.room(0).filter(|_| length <= HEAD)?;
        let mut bits = UnclaimedBits { layout, free: 0, fixed: layout.mask, value: layout.value };
        let low = layout.fields[Field::Op as usize].width;
        bits.fix(Field::Op, opcode)?;
        bits.fix(Field::OpHi, opcode.unbounded_shr(low.into()))?;
        let mut places = [OperandBits::new(&OperandSlot::NOTHING, 0, gpu)?; PLACES];
        for (place, slot) in places.get_mut(..written.len())?.iter_mut().zip(written) {
            *place = OperandBits::of(slot, &mut bits, gpu)?;
        }
        for slot in implicit.iter().filter(|slot| slot.field != Field::None) {
            bits.fix(slot.field, regs::code_of(Reg(slot.reg), gpu.generation())?.into())?;
        }
        let mut plan = PlainPlan {
            head,
            length: length as u8,
            opcode: row.opcode,
            dwords: layout.dwords,
            count: written.len() as u8,
            scalars: scalars(variant, row, gpu),
            fixed: 0,
            value: 0,
            set_bits: 0,
            neg: u8::MAX,
            abs: u8::MAX,
            tails: [None; 2],
            places,
        };
        plan.modifiers(variant, &mut bits)?;
        let own = if layout.dwords > 1 { u64::MAX } else { u32::MAX.into() };
        (plan.fixed, plan.value) = (own & !bits.free, bits.value);
        Some(plan)
    }

    /// The bits of modifiers: at rest, or those of signs and tails.
    fn modifiers(&mut self, variant: &Variant, bits: &mut UnclaimedBits<'_>) -> Option<()> {
        let sources = variant.slots.iter().filter(|slot| slot.source < 3).count() as u32;
        for slot in variant.mods.iter() {
            let alone = variant.mods.iter().filter(|other| other.field == slot.field).count() == 1;
            let place = bits.layout.fields[slot.field as usize];
            let mask = slot.mask & !u32::MAX.unbounded_shl(place.width.into());
            let signs = matches!(slot.id, Mod::Neg | Mod::Abs);
            if slot.field == Field::FiCode {
                return None;
            } else if alone && slot.shift == 0 && (signs || is_tail(slot.id)) {
                self.set_bits |= bits.set_free(slot.field, mask)?;
                let tail = Tail { id: slot.id, shift: place.lsb, mask: mask as u8 };
                match slot.id {
                    Mod::Neg => self.neg = place.lsb,
                    Mod::Abs => self.abs = place.lsb,
                    _ => *self.tails.iter_mut().find(|tail| tail.is_none())? = Some(tail),
                }
                continue;
            }
            let rest = text::at_rest(slot.id, !(u32::MAX << sources), variant)?;
            bits.fix_more(slot.field, (rest as u32 & slot.mask).unbounded_shr(slot.shift.into()));
        }
        Some(())
    }

    /// Appends the line of words that have its fixed bits. `SAID`: modifiers are among them.
    #[inline(always)]
    fn operands<const SAID: bool>(
        &self,
        both: u64,
        words: &[u32],
        gpu: &Gpu,
        out: &mut LineBuf,
    ) -> Option<u8> {
        let (negs, abss) = if SAID {
            let bits = |shift: u8| both.checked_shr(shift.into()).unwrap_or_default() & 7;
            (bits(self.neg), bits(self.abs))
        } else {
            (0, 0)
        };
        let mut size = self.dwords;
        let mut scalars = 0;
        if words.len() < usize::from(size) {
            return None;
        }
        let start = out.len();
        let mut pen = Pen { room: out.room_for()?, at: 0 };
        pen.put(&self.head, self.length.into());
        for (at, place) in self.places.iter().take(self.count.into()).enumerate() {
            if at > 0 {
                pen.put(b", ", 2);
            }
            let field = (both >> place.shift) as u16 & place.mask;
            if place.kinds == 0 {
                let end = start + pen.at;
                out.end_at(end);
                text::special(place.slot, i32::from(field), gpu, out);
                let written = out.len() - start;
                out.cut(start);
                pen = Pen { room: out.room_for()?, at: written };
                continue;
            }
            let code_text = place.codes.get(usize::from(field | place.base))?;
            if code_text.kind & place.kinds == 0 {
                return None;
            }
            scalars += u8::from(code_text.kind & place.counted != 0);
            let abs = SAID && abss >> place.source & 1 != 0;
            if SAID {
                let neg = negs >> place.source & 1 != 0;
                if (neg && code_text.kind & kind::INLINE != 0) || code_text.kind & kind::LITERAL != 0 {
                    return None;
                }
                pen.put(b"-", neg.into());
                pen.put(b"|", abs.into());
            }
            if code_text.kind == kind::LITERAL {
                let value = *words.get(usize::from(self.dwords))?;
                if !text::is_literal(self.opcode, place.slot, value, gpu) {
                    return None;
                }
                pen.hex(value);
                size = self.dwords + 1;
            } else {
                pen.put(&code_text.text, code_text.length.into());
            }
            if SAID {
                pen.put(b"|", abs.into());
            }
        }
        if scalars > self.scalars {
            return None;
        }
        let end = start + pen.at;
        out.end_at(end);
        if SAID {
            for tail in self.tails.iter().flatten() {
                let value = (both >> tail.shift) as u8 & tail.mask;
                text::tail(tail.id, value.into(), out);
            }
        }
        Some(size)
    }
}

/// More than the bytes of a line, tails aside. Of the texts that slots say only the last of a line may be long.
const LINE: usize = 256;
const _: () = assert!(HEAD + PLACES * (TEXT + 4) < LINE / 2);

/// A line being written into room that is there.
struct Pen<'a> {
    room: &'a mut [u8; LINE],
    at: usize,
}

impl Pen<'_> {
    /// Appends the beginning of a piece.
    #[inline(always)]
    fn put<const N: usize>(&mut self, piece: &[u8; N], length: usize) {
        if let Some(place) = self.room.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = *piece;
            self.at += length;
        }
    }

    /// Appends a number in hexadecimal with `0x`.
    #[inline(always)]
    fn hex(&mut self, value: u32) {
        let (digits, count) = text::hexadecimal(value);
        self.put(b"0x", 2);
        self.put(&digits, count);
    }
}

impl OperandSlot {
    /// An operand that is not there.
    const NOTHING: OperandSlot = OperandSlot {
        class: Class::Implicit,
        ty: Type::None,
        field: Field::None,
        access: super::model::OperandAccess(0),
        source: OperandSlot::NO_SOURCE,
        reg: 0,
    };
}

impl OperandBits {
    fn new(slot: &'static OperandSlot, kinds: u8, gpu: &Gpu) -> Option<OperandBits> {
        let size = SIZES.iter().position(|size| *size == dwords(slot.ty, gpu).max(1))?;
        let counted = if slot.access.reads() { kind::SCALAR | kind::LITERAL } else { 0 };
        let source = slot.source.min(OperandSlot::NO_SOURCE);
        let codes = codes(gpu).get(size)?;
        Some(OperandBits { codes, shift: 0, mask: 0, base: 0, kinds, counted: counted & kinds, source, slot })
    }

    /// The place of a slot, whose bits are thereby free; `None`: none that plans have.
    fn of(slot: &'static OperandSlot, bits: &mut UnclaimedBits<'_>, gpu: &Gpu) -> Option<OperandBits> {
        use kind::{HIGH, INLINE, LITERAL, LOW, SCALAR};
        let literal = bits.layout.literal && (slot.ty.bits() != 16 || slot.class == Class::Ssrc32);
        let literal = if literal { LITERAL } else { 0 };
        let (kinds, base) = match slot.class {
            Class::Src => (LOW | HIGH | SCALAR | INLINE | literal, 0),
            Class::SrcLow => (LOW | SCALAR | INLINE | literal, 0),
            Class::SrcInline => (LOW | HIGH | SCALAR | INLINE, 0),
            Class::Ssrc | Class::Ssrc32 | Class::SsrcLds => (SCALAR | INLINE | literal, 0),
            Class::SsrcInline => (SCALAR | INLINE, 0),
            Class::Sreg | Class::Sdst => (SCALAR, 0),
            Class::Vgpr => (LOW | HIGH, 256),
            Class::VgprLow => (LOW, 256),
            Class::VgprSrc => (LOW | HIGH, 0),
            Class::VgprLowSrc => (LOW, 0),
            Class::Imm32 if slot.ty.bits() != 16 && !gpu.llvm23() => (LITERAL, 255),
            Class::Fixed | Class::FixedOptional => {
                (SCALAR, regs::code_of(Reg(slot.reg), gpu.generation()).filter(|code| *code < 255)?)
            }
            Class::Imm16
            | Class::Hwreg
            | Class::SendMsg
            | Class::Waitcnt
            | Class::Depctr
            | Class::WaitEvent
            | Class::DelayAlu => (0, 0),
            _ => return None,
        };
        let mut place = OperandBits::new(slot, kinds, gpu)?;
        place.base = base;
        if matches!(slot.class, Class::Fixed | Class::FixedOptional) {
            // Told with the opcode's own.
            place.counted = 0;
        } else if slot.class != Class::Imm32 {
            let field = bits.layout.fields[slot.field as usize];
            place.shift = field.lsb & 63;
            place.mask = !u16::MAX.unbounded_shl(field.width.into());
            bits.set_free(slot.field, place.mask.into())?;
        }
        Some(place)
    }
}

/// How many scalar values the operands of an instruction may be for certain.
fn scalars(variant: &Variant, row: &InstRow, gpu: &Gpu) -> u8 {
    let Some(limit) = text::scalar_limit(row, gpu) else { return u8::MAX };
    let own = variant.slots.iter().filter(|slot| {
        matches!(slot.class, Class::Fixed | Class::FixedOptional | Class::Implicit)
            && slot.access.reads()
            && slot.reg != Reg::EXEC.0
    });
    limit.saturating_sub(own.count() as u8)
}

/// The bits of an encoding as they are given away.
struct UnclaimedBits<'a> {
    layout: &'a EncodingLayout,
    free: u64,
    fixed: u64,
    value: u64,
}

impl UnclaimedBits<'_> {
    fn bits(&self, field: Field, value: u32) -> u64 {
        let place = self.layout.fields[field as usize];
        let value = value & !u32::MAX.unbounded_shl(place.width.into());
        u64::from(value).unbounded_shl(place.lsb.into())
    }

    /// Bits of a field may be any.
    fn set_free(&mut self, field: Field, mask: u32) -> Option<u64> {
        let bits = self.bits(field, mask);
        if (self.fixed | self.free) & bits != 0 {
            return None;
        }
        self.free |= bits;
        Some(bits)
    }

    /// A field has one value.
    fn fix(&mut self, field: Field, value: u32) -> Option<()> {
        let mask = self.bits(field, u32::MAX);
        if (self.fixed | self.free) & mask != 0 {
            return None;
        }
        self.fixed |= mask;
        self.value |= self.bits(field, value);
        Some(())
    }

    /// Bits of a field that several share are set.
    fn fix_more(&mut self, field: Field, value: u32) {
        self.value |= self.bits(field, value);
    }
}
