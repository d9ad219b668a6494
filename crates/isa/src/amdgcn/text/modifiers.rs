//! Modifiers: `clamp`, `mul:2`, `quad_perm:[0,1,2,3]`.
//!
//! Those of memory instructions are read and written with their operands.

use super::Symbols;
use super::line::LineBuf;
use super::parse::{ParseError, ParseRule};
use super::scan::LineScan;
use crate::amdgcn::inst::{Inst, Mods};
use crate::amdgcn::model::{Encoding, Form, Format, Mod, OperandSlot, Trait};
use crate::amdgcn::tables::Variant;
use crate::amdgcn::{Gfx, Gpu, tables};

/// `dpp_ctrl` as it is written: where a kind of it begins, how many there are, the first number.
struct DppForm {
    name: &'static str,
    base: i32,
    first: i32,
    last: i32,
    since: Gfx,
    until: Gfx,
}

const fn lanes(name: &'static str, base: i32, first: i32, last: i32, since: Gfx, until: Gfx) -> DppForm {
    DppForm { name, base, first, last, since, until }
}

/// Kinds of `dpp_ctrl` but `quad_perm`: `base + n` for the number `n`.
const LANES: &[DppForm] = &[
    lanes("row_shl", 0x100, 1, 15, Gfx::Gfx8, Gfx::Gfx12),
    lanes("row_shr", 0x110, 1, 15, Gfx::Gfx8, Gfx::Gfx12),
    lanes("row_ror", 0x120, 1, 15, Gfx::Gfx8, Gfx::Gfx12),
    lanes("wave_shl", 0x12f, 1, 1, Gfx::Gfx8, Gfx::Gfx950),
    lanes("wave_rol", 0x133, 1, 1, Gfx::Gfx8, Gfx::Gfx950),
    lanes("wave_shr", 0x137, 1, 1, Gfx::Gfx8, Gfx::Gfx950),
    lanes("wave_ror", 0x13b, 1, 1, Gfx::Gfx8, Gfx::Gfx950),
    lanes("row_newbcast", 0x150, 0, 15, Gfx::Gfx90a, Gfx::Gfx950),
    lanes("row_share", 0x150, 0, 15, Gfx::Gfx10, Gfx::Gfx12),
    lanes("row_xmask", 0x160, 0, 15, Gfx::Gfx10, Gfx::Gfx12),
];

const ROW_MIRROR: i32 = 0x140;
const ROW_HALF_MIRROR: i32 = 0x141;
const ROW_BCAST15: i32 = 0x142;
const ROW_BCAST31: i32 = 0x143;

/// Whether a value of `dpp_ctrl` is written in a generation.
fn has_lanes(value: i32, generation: Gfx) -> bool {
    match value {
        ..0x100 | ROW_MIRROR | ROW_HALF_MIRROR => true,
        ROW_BCAST15 | ROW_BCAST31 => generation < Gfx::Gfx10,
        _ => LANES.iter().any(|lanes| {
            (lanes.first..=lanes.last).contains(&(value - lanes.base))
                && (lanes.since..=lanes.until).contains(&generation)
        }),
    }
}

/// Whether text has a name for the value of every modifier.
pub(super) fn all_have_names(inst: &Inst, gpu: &Gpu) -> bool {
    const NAMED: u64 =
        super::set_of(&[Mod::DppCtrl, Mod::DstSel, Mod::Src0Sel, Mod::Src1Sel, Mod::DstUnused]);
    inst.variant().mod_set & NAMED == 0
        || inst.variant().mods.iter().all(|slot| {
            let value = inst.mods.get(slot.id);
            match slot.id {
                Mod::DppCtrl => has_lanes(value, gpu.generation()),
                Mod::DstSel | Mod::Src0Sel | Mod::Src1Sel => (value as usize) < SELECTIONS.len(),
                Mod::DstUnused => (value as usize) < UNUSED.len(),
                _ => true,
            }
        })
}

/// Selections of SDWA, by value.
const SELECTIONS: &[&str] = &["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];

/// What SDWA does with the rest of the destination, by value.
const UNUSED: &[&str] = &["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"];

/// What a modifier is worth that is not written.
pub(super) fn default_of(id: Mod, mask: u32, mixed: bool) -> i32 {
    match id {
        // Of mixed precision: 32 bits.
        Mod::OpSelHi if mixed => 0,
        Mod::RowMask | Mod::BankMask => 15,
        Mod::OpSelHi | Mod::Ones => mask as i32,
        Mod::DstSel | Mod::Src0Sel | Mod::Src1Sel => 6,
        Mod::DstUnused => 2,
        _ => 0,
    }
}

/// What a modifier is worth that is not written, if that is ever so. `sources`: a bit for each.
pub(in crate::amdgcn) fn at_rest(id: Mod, sources: u32, variant: &Variant) -> Option<i32> {
    match id {
        Mod::Ones => Some(default_of(id, u32::MAX, false)),
        Mod::OpSelHi | Mod::NegLo | Mod::NegHi => Some(default_of(id, sources, is_mixed(variant))),
        _ => (WRITTEN >> id as u8 & 1 == 0).then_some(0),
    }
}

/// How many sources `op_sel` speaks of: a destination that is read is one.
fn selected(variant: &Variant) -> u32 {
    let is_source = |slot: &&OperandSlot| slot.source < 3 || (slot.access.reads() && slot.access.writes());
    let three = tables::rows()
        .get(usize::from(variant.row))
        .is_some_and(|row| row.traits.has(Trait::OpSelOfThree) && row.format == Format::Vop3);
    // Those of gfx12 have no `op_sel`, or have it of the sources there are.
    let three = three && variant.mods.iter().any(|slot| slot.id == Mod::OpSel && slot.mask & 4 != 0);
    if three { 3 } else { variant.slots.iter().filter(is_source).count() as u32 }
}

/// Whether sources of several widths are mixed, which `op_sel_hi` tells apart, or scales have bytes that it selects: then it
/// is 0 by default.
pub(super) fn is_mixed(variant: &Variant) -> bool {
    let has = |id: Mod| variant.has_mod(id);
    has(Mod::OpSelHi) && (has(Mod::Abs) || variant.encoding == Encoding::MaiScaled)
}

/// Whether a form is one only if a modifier says so, and which.
pub(super) fn needed(form: Form) -> Option<Mod> {
    match form {
        Form::Dpp | Form::E64Dpp => Some(Mod::DppCtrl),
        Form::Dpp8 | Form::E64Dpp8 => Some(Mod::Dpp8),
        _ => None,
    }
}

/// The most modifiers a line can have.
const MOST: usize = 24;

/// Modifiers that have been read.
#[derive(Default)]
pub(super) struct ReadModifiers {
    pub(super) mods: Mods,
    /// Bit `n`: modifier number `n` was written.
    pub(super) set: u64,
    /// Numbers of the modifiers, in the order they were written.
    order: [u8; MOST],
    count: usize,
}

impl ReadModifiers {
    pub(super) fn put(&mut self, id: Mod, value: i32) -> Result<(), ParseRule> {
        let bit = 1 << id as u8;
        if self.set & bit != 0 {
            return Err(ParseRule::Twice);
        }
        let width = id.width();
        let fits = match width {
            ..0 => value >> (width.unsigned_abs() - 1) == 0 || value >> (width.unsigned_abs() - 1) == -1,
            _ => value >> width == 0,
        };
        if !fits {
            return Err(ParseRule::Range);
        }
        self.set |= bit;
        self.mods.set(id, value);
        if let Some(place) = self.order.get_mut(self.count) {
            *place = id as u8;
            self.count += 1;
        }
        Ok(())
    }

    /// Whether they were written in the order in which a variant has them.
    pub(super) fn in_order_of(&self, variant: &Variant) -> bool {
        let place = |id: u8| variant.mods.iter().position(|slot| slot.id as u8 == id);
        self.order.get(..self.count).unwrap_or_default().is_sorted_by_key(|id| place(*id))
    }
}

/// `[a,b,c]`: at most `most` numbers that are below `limit`, `width` bits each, the first lowest.
fn list(
    scan: &mut LineScan<'_>,
    symbols: &dyn Symbols,
    most: u8,
    limit: i64,
    width: u32,
) -> Result<(i32, u8), ParseError> {
    scan.expect(b'[', ParseRule::Bracket)?;
    let mut value = 0;
    let mut count = 0u8;
    loop {
        let at = scan.at();
        let number = scan.expression(symbols)?.value;
        if !(0..limit).contains(&number) || count >= most {
            return Err(scan.error(at, ParseRule::Range));
        }
        value |= (number as i32) << (u32::from(count) * width);
        count += 1;
        if !scan.eat(b',') {
            break;
        }
    }
    scan.expect(b']', ParseRule::Bracket)?;
    Ok((value, count))
}

/// A number, from `least` to `most`.
pub(super) fn number(
    scan: &mut LineScan<'_>,
    symbols: &dyn Symbols,
    least: i64,
    most: i64,
) -> Result<i32, ParseError> {
    let at = scan.at();
    let value = scan.expression(symbols)?;
    match i32::try_from(value.value) {
        Ok(number) if !value.float && (least..=most).contains(&value.value) => Ok(number),
        _ => Err(scan.error(at, ParseRule::Range)),
    }
}

/// One of some names, or its number.
pub(super) fn one_of(
    scan: &mut LineScan<'_>,
    symbols: &dyn Symbols,
    names: &[&str],
) -> Result<i32, ParseError> {
    let at = scan.at();
    let name = scan.name();
    if let Some(found) = names.iter().position(|n| *n == name) {
        scan.space();
        return Ok(found as i32);
    }
    scan.back_to(at);
    if !scan.peek().is_ascii_digit() {
        return Err(scan.error(at, ParseRule::ModifierValue));
    }
    number(scan, symbols, 0, names.len() as i64 - 1)
}

/// Reads one modifier; false: what is next is none.
pub(super) fn parse(
    scan: &mut LineScan<'_>,
    gpu: &Gpu,
    symbols: &dyn Symbols,
    variant: &Variant,
    seen: &mut ReadModifiers,
) -> Result<bool, ParseError> {
    let start = scan.at();
    let name = scan.name();
    scan.space();
    let wrong = |rule: ParseRule| scan.error(start, rule);
    let flag = match name {
        "clamp" => Some(Mod::Clamp),
        "high" => Some(Mod::High),
        "done" => Some(Mod::Done),
        "vm" => Some(Mod::Vm),
        "compr" => Some(Mod::Compr),
        "row_en" => Some(Mod::RowEn),
        _ => None,
    };
    if let Some(id) = flag {
        return seen.put(id, 1).map(|()| true).map_err(wrong);
    }
    let fixed = match name {
        "row_mirror" => Some(ROW_MIRROR),
        "row_half_mirror" => Some(ROW_HALF_MIRROR),
        _ => None,
    };
    if let Some(value) = fixed {
        return seen.put(Mod::DppCtrl, value).map(|()| true).map_err(wrong);
    }
    if scan.peek() != b':' || scan.peek_second() == b':' {
        scan.back_to(start);
        return Ok(false);
    }
    scan.eat(b':');
    let (id, value) = valued(scan, gpu, symbols, variant, (name, start))?;
    seen.put(id, value).map(|()| true).map_err(|rule| scan.error(start, rule))
}

/// Reads what follows the colon of a modifier: `name` and where it begins.
fn valued(
    scan: &mut LineScan<'_>,
    gpu: &Gpu,
    symbols: &dyn Symbols,
    variant: &Variant,
    (name, start): (&str, usize),
) -> Result<(Mod, i32), ParseError> {
    let generation = gpu.generation();
    Ok(match name {
        "mul" => {
            let value = number(scan, symbols, 1, 4)?;
            match value {
                1 | 2 | 4 => (Mod::Omod, value >> 1),
                _ => return Err(scan.error(start, ParseRule::Range)),
            }
        }
        "div" => match number(scan, symbols, 1, 2)? {
            1 => (Mod::Omod, 0),
            _ => (Mod::Omod, 3),
        },
        "op_sel" | "op_sel_hi" | "neg_lo" | "neg_hi" => {
            let id = match name {
                "op_sel" => Mod::OpSel,
                "op_sel_hi" => Mod::OpSelHi,
                "neg_lo" => Mod::NegLo,
                _ => Mod::NegHi,
            };
            let (mut value, count) = list(scan, symbols, 4, 2, 1)?;
            if id == Mod::OpSel {
                // The destination's bit stands last, whatever the number of sources.
                let sources = selected(variant) as u8;
                if count > sources {
                    let dst = value >> sources & 1;
                    value = value & !(1 << sources) | dst << 3;
                }
            }
            (id, if id == Mod::OpSel { value } else { value & 7 })
        }
        "cbsz" => (Mod::Cbsz, number(scan, symbols, 0, 7)?),
        "abid" => (Mod::Abid, number(scan, symbols, 0, 15)?),
        "blgp" => (Mod::Blgp, number(scan, symbols, 0, 7)?),
        "neg" => (Mod::NegMatrix, list(scan, symbols, 3, 2, 1)?.0),
        "bitop3" => (Mod::Bitop3, number(scan, symbols, 0, 255)?),
        "byte_sel" => (Mod::ByteSel, number(scan, symbols, 0, 3)?),
        "index_key" => (Mod::IndexKey, number(scan, symbols, 0, 3)?),
        "dst_sel" => (Mod::DstSel, one_of(scan, symbols, SELECTIONS)?),
        "src0_sel" => (Mod::Src0Sel, one_of(scan, symbols, SELECTIONS)?),
        "src1_sel" => (Mod::Src1Sel, one_of(scan, symbols, SELECTIONS)?),
        "dst_unused" => (Mod::DstUnused, one_of(scan, symbols, UNUSED)?),
        "quad_perm" => (Mod::DppCtrl, list(scan, symbols, 4, 4, 2)?.0),
        "dpp8" => (Mod::Dpp8, list(scan, symbols, 8, 8, 3)?.0),
        "row_mask" => (Mod::RowMask, number(scan, symbols, 0, 15)?),
        "bank_mask" => (Mod::BankMask, number(scan, symbols, 0, 15)?),
        // Until gfx10 zero and one say the same: the name of the field is the wrong way round.
        "bound_ctrl" => {
            let value = number(scan, symbols, 0, 1)?;
            (Mod::BoundCtrl, if generation >= Gfx::Gfx11 { value } else { 1 })
        }
        "fi" => (Mod::Fi, number(scan, symbols, 0, 1)?),
        "row_bcast" => match number(scan, symbols, 15, 31)? {
            15 if generation < Gfx::Gfx10 => (Mod::DppCtrl, ROW_BCAST15),
            31 if generation < Gfx::Gfx10 => (Mod::DppCtrl, ROW_BCAST31),
            _ => return Err(scan.error(start, ParseRule::Range)),
        },
        "wait_exp" => (Mod::WaitExp, number(scan, symbols, 0, 7)?),
        "wait_vdst" => (Mod::WaitVdst, number(scan, symbols, 0, 15)?),
        "wait_va_vdst" => (Mod::WaitVaVdst, number(scan, symbols, 0, 15)?),
        "wait_vm_vsrc" => (Mod::WaitVmVsrc, number(scan, symbols, 0, 1)?),
        _ => match LANES.iter().find(|lanes| lanes.name == name) {
            Some(lanes) if (lanes.since..=lanes.until).contains(&generation) => {
                let value = number(scan, symbols, lanes.first.into(), lanes.last.into())?;
                (Mod::DppCtrl, lanes.base + value)
            }
            Some(_) => return Err(scan.error(start, ParseRule::NotHere)),
            None => return Err(scan.error(start, ParseRule::Modifier)),
        },
    })
}

/// Appends ` name:[0,1,…]` of the lowest bits of a value.
fn bits(name: &str, value: i32, count: u32, out: &mut LineBuf) {
    out.push(b' ');
    out.push_str(name);
    out.push_str(":[");
    for at in 0..count {
        if at > 0 {
            out.push(b',');
        }
        out.push(if value >> at & 1 != 0 { b'1' } else { b'0' });
    }
    out.push(b']');
}

/// Appends ` name:number`.
pub(super) fn named(name: &str, value: i32, out: &mut LineBuf) {
    out.push(b' ');
    out.push_str(name);
    out.push(b':');
    out.decimal(value.into());
}

/// Appends `dpp_ctrl`.
fn dpp_ctrl(value: i32, generation: Gfx, out: &mut LineBuf) {
    out.push(b' ');
    if value < 0x100 {
        out.push_str("quad_perm:[");
        for at in 0..4 {
            if at > 0 {
                out.push(b',');
            }
            out.decimal((value >> (2 * at) & 3).into());
        }
        out.push(b']');
        return;
    }
    match value {
        ROW_MIRROR => out.push_str("row_mirror"),
        ROW_HALF_MIRROR => out.push_str("row_half_mirror"),
        ROW_BCAST15 => out.push_str("row_bcast:15"),
        ROW_BCAST31 => out.push_str("row_bcast:31"),
        _ => {
            let kind = LANES.iter().find(|lanes| {
                (lanes.first..=lanes.last).contains(&(value - lanes.base))
                    && (lanes.since..=lanes.until).contains(&generation)
            });
            match kind {
                Some(lanes) => {
                    out.push_str(lanes.name);
                    out.push(b':');
                    out.decimal((value - lanes.base).into());
                }
                None => out.push_str("/* invalid dpp_ctrl value */"),
            }
        }
    }
}

/// Modifiers that may be written if they are 0.
const WRITTEN: u64 = super::set_of(&[
    Mod::DppCtrl,
    Mod::RowMask,
    Mod::BankMask,
    Mod::Dpp8,
    Mod::DstSel,
    Mod::Src0Sel,
    Mod::Src1Sel,
    Mod::DstUnused,
    Mod::WaitExp,
    Mod::WaitVdst,
    Mod::WaitVaVdst,
    Mod::WaitVmVsrc,
    Mod::OpSelHi,
    Mod::NegLo,
    Mod::NegHi,
]);

/// Appends the modifiers of an instruction that say something.
pub(super) fn write(inst: &Inst, gpu: &Gpu, out: &mut LineBuf) {
    let variant = inst.variant();
    let scaled = inst.row().format == Format::MaiScaled;
    if variant.mod_set & WRITTEN == 0 && inst.mods == Mods::default() {
        return;
    }
    for slot in variant.mods.iter() {
        let value = inst.mods.get(slot.id);
        if slot.shift != 0 {
            continue;
        }
        match slot.id {
            Mod::Neg | Mod::Abs | Mod::Sext | Mod::En | Mod::Ones | Mod::Halves => {}
            Mod::DppCtrl => dpp_ctrl(value, gpu.generation(), out),
            Mod::RowMask | Mod::BankMask => {
                out.push(b' ');
                out.push_str(slot.id.name());
                out.push(b':');
                out.hex(value as u64);
            }
            Mod::Dpp8 => {
                out.push_str(" dpp8:[");
                for at in 0..8 {
                    if at > 0 {
                        out.push(b',');
                    }
                    out.decimal((value >> (3 * at) & 7).into());
                }
                out.push(b']');
            }
            Mod::DstSel | Mod::Src0Sel | Mod::Src1Sel | Mod::DstUnused => {
                let names = if slot.id == Mod::DstUnused { UNUSED } else { SELECTIONS };
                out.push(b' ');
                out.push_str(slot.id.name());
                out.push(b':');
                out.push_str(names.get(value as usize).copied().unwrap_or("?"));
            }
            Mod::WaitExp | Mod::WaitVdst | Mod::WaitVaVdst | Mod::WaitVmVsrc => {
                named(slot.id.name(), value, out)
            }
            Mod::OpSel if value != 0 && slot.mask == 3 && inst.row().format == Format::Vop3 => {
                bits("op_sel", value, 2, out);
            }
            Mod::OpSel if value != 0 => {
                let sources = selected(variant);
                let row = inst.row();
                let dpp = variant.form == Form::E64Dpp || variant.form == Form::E64Dpp8;
                let compares = row.format == Format::Vopc && (dpp || row.traits.has(Trait::Cmpx));
                let has_dst = !matches!(row.format, Format::Vop3p | Format::MaiScaled) && !compares;
                let dst = value >> 3 & 1;
                let value = value & 7 | dst << sources;
                bits("op_sel", value, sources + u32::from(has_dst), out);
            }
            Mod::OpSelHi if scaled => bits("op_sel_hi", value, 3, out),
            Mod::OpSelHi | Mod::NegLo | Mod::NegHi => {
                let sources = variant.slots.iter().filter(|slot| slot.source < 3).count() as u32;
                if value != default_of(slot.id, !(u32::MAX << sources), is_mixed(variant)) {
                    bits(slot.id.name(), value, sources, out);
                }
            }
            _ if value == 0 => {}
            Mod::NegMatrix => bits("neg", value, 3, out),
            Mod::Bitop3 if value > 10 => {
                out.push_str(" bitop3:");
                out.hex(value as u64);
            }
            Mod::Omod | Mod::Clamp | Mod::High | Mod::Done | Mod::Vm | Mod::Compr | Mod::RowEn => {
                tail(slot.id, value, out);
            }
            Mod::ByteSel | Mod::IndexKey | Mod::BoundCtrl | Mod::Fi => named(slot.id.name(), value, out),
            _ => named(slot.id.name(), value, out),
        }
    }
}

/// Appends `omod` or a flag, if it says something.
pub(in crate::amdgcn) fn tail(id: Mod, value: i32, out: &mut LineBuf) {
    match (id, value) {
        (_, 0) => {}
        (Mod::Omod, 1) => out.push_str(" mul:2"),
        (Mod::Omod, 2) => out.push_str(" mul:4"),
        (Mod::Omod, _) => out.push_str(" div:2"),
        _ => {
            out.push(b' ');
            out.push_str(id.name());
        }
    }
}
