//! The ways a row can be written: what a VOP2 row becomes as VOP3, with SDWA, with DPP, in each generation.

use super::read::{Cell, NamedHalves, Operand, SourceRow};
use crate::amdgcn_facts::model::{
    Class, Encoding, Field, Form, Format, Gfx, Mod, ModSlot, Need, OperandAccess, OperandSlot, Type,
};
use crate::amdgcn_facts::regs::Reg;

/// One way, in one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub name: String,
    pub form: Form,
    pub encoding: Encoding,
    pub opcode: u16,
    pub need: Need,
    /// Whether it is an `e32` form without an `e64` form of the same.
    pub only_short: bool,
    /// Those written come first.
    pub slots: Vec<OperandSlot>,
    pub mods: Vec<ModSlot>,
}

fn source_of(field: Field) -> u8 {
    match field {
        Field::Src0 | Field::Ssrc0 | Field::SrcX0 | Field::SrcY0 => 0,
        Field::Src1 | Field::Vsrc1 | Field::Ssrc1 | Field::VsrcX1 | Field::VsrcY1 => 1,
        Field::Src2 => 2,
        _ => OperandSlot::NO_SOURCE,
    }
}

pub fn slot(operand: &Operand, generation: Gfx) -> OperandSlot {
    let access = if operand.read { OperandAccess::READ } else { 0 }
        | if operand.written { OperandAccess::WRITE } else { 0 };
    OperandSlot {
        class: operand.class(generation).unwrap_or(Class::Implicit),
        ty: operand.ty(generation),
        field: operand.field,
        access: OperandAccess(access),
        source: source_of(operand.field),
        reg: operand.reg.unwrap_or_default(),
    }
}

/// A modifier whose whole value is one field.
pub fn whole(id: Mod, field: Field) -> ModSlot {
    ModSlot { id, field, shift: 0, mask: u32::MAX >> (32 - u32::from(id.width().unsigned_abs())) }
}

/// A modifier of which only some bits may be set.
fn part(id: Mod, field: Field, mask: u32) -> ModSlot {
    ModSlot { mask, ..whole(id, field) }
}

/// The dual instruction of two halves.
pub fn dual(x: (&SourceRow, &Cell), y: (&SourceRow, &Cell), generation: Gfx) -> (Spec, u8) {
    let half = |(row, cell): (&SourceRow, &Cell), second: bool| {
        let expand = Expand { row, cell, generation, halves: NamedHalves::None, format: Format::Vopd };
        let mut slots = expand.slots();
        for slot in &mut slots {
            slot.field = match (slot.field, second) {
                (Field::Vdst, false) => Field::VdstX,
                (Field::Vdst, true) => Field::VdstY,
                (Field::Src0, false) => Field::SrcX0,
                (Field::Src0, true) => Field::SrcY0,
                (Field::Src1, false) => Field::VsrcX1,
                (Field::Src1, true) => Field::VsrcY1,
                (field, _) => field,
            };
            slot.class = match slot.field {
                Field::VdstY => Class::VgprDual,
                Field::VsrcX1 | Field::VsrcY1 => Class::Vgpr,
                _ => slot.class,
            };
        }
        slots
    };
    let first = half(x, false);
    let written = first.iter().filter(|slot| slot.class != Class::Implicit).count() as u8;
    let slots = first.into_iter().chain(half(y, true)).collect();
    let expand = Expand { row: x.0, cell: x.1, generation, halves: NamedHalves::None, format: Format::Vopd };
    let mut spec = expand.spec(Form::Native, Encoding::Vopd, slots, Vec::new());
    spec.opcode |= y.1.opcode << 4;
    spec.need = Need::Wave32;
    (spec, written)
}

/// Every way to write `row` in a column.
pub fn specs(
    row: &SourceRow,
    cell: &Cell,
    generation: Gfx,
    halves: NamedHalves,
) -> Result<Vec<Spec>, String> {
    if row.format.is_memory() {
        return Ok(vec![super::mem::spec(row, cell, generation)]);
    }
    let expand = Expand { row, cell, generation, halves, format: cell.format.unwrap_or(row.format) };
    match expand.format {
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 => Ok(expand.vector()),
        Format::Vop3p => Ok(expand.packed()),
        _ => expand.native().map(|spec| vec![spec]),
    }
}

/// A row in a column.
struct Expand<'a> {
    row: &'a SourceRow,
    cell: &'a Cell,
    generation: Gfx,
    halves: NamedHalves,
    format: Format,
}

impl Expand<'_> {
    fn has(&self, flag: &str) -> bool {
        self.row.has(flag, self.generation)
    }

    /// Whether 16-bit operands name half registers.
    fn named(&self) -> bool {
        match self.halves {
            NamedHalves::None => false,
            NamedHalves::Some => self.has("t16"),
            NamedHalves::All => !self.has("-t16"),
        }
    }

    /// Makes an operand 16 bits wide that is wider where halves are not named.
    fn narrow(&self, slot: &mut OperandSlot) {
        if self.halves != NamedHalves::All || slot.class == Class::Implicit {
            return;
        }
        let flag = match slot.source {
            0 => "half0",
            // Its constants are those of floating point, although it is an integer.
            1 if self.has("low1") => return slot.ty = Type::F16,
            2 => "half2",
            OperandSlot::NO_SOURCE => "half_dst",
            _ => return,
        };
        if self.has(flag) {
            slot.ty = Type::B16;
        }
    }

    /// Whether an operand is 16 bits of a vector register.
    fn is_half(&self, slot: &OperandSlot) -> bool {
        slot.ty.bits() == 16 || self.has("low1") && slot.source == 1
    }

    /// The bits of a modifier that a row has: `FLAG` of all sources, or `FLAG=BITS`.
    fn masked(&self, flag: &str, sources: u32) -> Option<u32> {
        self.row.flags.iter().filter(|(_, of)| of.contains(&self.generation)).find_map(|(name, _)| match name
            .strip_prefix(flag)?
            .strip_prefix('=')
        {
            Some(bits) => bits.parse().ok(),
            None => (name == flag).then_some(sources),
        })
    }

    /// Slots of the operands there are in this generation.
    fn slots(&self) -> Vec<OperandSlot> {
        let there = |o: &&Operand| o.types.is_empty() || o.ty(self.generation) != Type::None;
        let mut slots: Vec<OperandSlot> =
            self.row.operands.iter().filter(there).map(|operand| slot(operand, self.generation)).collect();
        slots.iter_mut().for_each(|slot| self.narrow(slot));
        slots
    }

    fn spec(&self, form: Form, encoding: Encoding, slots: Vec<OperandSlot>, mods: Vec<ModSlot>) -> Spec {
        let (mut written, implicit): (Vec<OperandSlot>, Vec<OperandSlot>) =
            slots.into_iter().partition(|slot| slot.class != Class::Implicit);
        written.extend(implicit);
        Spec {
            name: self.cell.name.clone().unwrap_or_else(|| self.row.name.clone()),
            form,
            encoding,
            opcode: self.cell.opcode,
            need: self.cell.need,
            only_short: false,
            slots: written,
            mods,
        }
    }

    /// As the row says: modifiers are fields of the same name.
    fn native(&self) -> Result<Spec, String> {
        let encoding = Encoding::from_name(self.format.name());
        let encoding =
            encoding.ok_or_else(|| format!("{}: no encoding {}", self.row.name, self.format.name()))?;
        let mut mods = Vec::new();
        let none = self.format == Format::Vintrp;
        for (flag, _) in self.row.flags.iter().filter(|(_, of)| !none && of.contains(&self.generation)) {
            let id = Mod::from_name(flag).ok_or_else(|| format!("{}: no modifier {flag}", self.row.name))?;
            let field = match id {
                Mod::WaitVaVdst => Field::WaitVdst,
                Mod::WaitVmVsrc => Field::WaitVsrc,
                Mod::NegMatrix => Field::Blgp,
                _ => Field::from_name(flag).ok_or_else(|| format!("{}: no field {flag}", self.row.name))?,
            };
            // Those of scales are two bits.
            let scales = self.format == Format::MaiScaled && matches!(id, Mod::OpSel | Mod::OpSelHi);
            mods.push(if scales { part(id, field, 3) } else { whole(id, field) });
        }
        let form = match self.format {
            // Of an instruction that has VOP3 forms as well.
            Format::Vintrp if self.generation >= Gfx::Gfx8 => Form::E32,
            _ => Form::Native,
        };
        if self.format == Format::Vinterp {
            mods.push(part(Mod::Neg, Field::Neg, 7));
        }
        let mut slots = self.slots();
        if self.format == Format::Vinterp && self.halves == NamedHalves::All {
            for slot in slots.iter_mut().filter(|slot| slot.ty.bits() == 16) {
                slot.class = if slot.source < 3 { Class::VgprNamedSrc } else { Class::VgprNamed };
            }
        }
        Ok(self.spec(form, encoding, slots, mods))
    }

    /// Sources that take signs, as bits: those of `-` and `|…|`, and those of `sext(…)`.
    fn signed(&self, form: Form) -> (u32, u32) {
        let (mut float, mut int) = (0, 0);
        for operand in &self.row.operands {
            let source = match operand.field {
                Field::Vsrc if operand.class == Some(Class::Vgpr) && form == Form::E64 => 1,
                field => source_of(field),
            };
            if source > 2 {
                continue;
            }
            let ty = operand.ty(self.generation);
            let bit = 1 << source;
            let extends = match form {
                Form::Sdwa => true,
                Form::E64 | Form::Native => self.has("sext"),
                Form::Dpp => self.has("sext_e32"),
                _ => self.has("sext") || self.has("sext_dpp"),
            };
            let short = self.has("sext_e32") && form == Form::Dpp && !ty.is_float();
            let signs = self.masked("signs", 7).is_some_and(|bits| bits & bit != 0);
            if !short && ((ty.is_float() && !ty.is_packed()) || signs) {
                float |= bit;
            } else if extends {
                int |= bit;
            }
        }
        (float, int)
    }

    /// Whether the first operand is floating point.
    fn float_result(&self) -> bool {
        self.row.operands.first().is_some_and(|o| o.ty(self.generation).is_float())
    }

    /// Whether some value of the row has 64 bits.
    fn wide(&self) -> bool {
        self.row.operands.iter().any(|o| o.reg.is_none() && o.ty(self.generation).bits() >= 64)
    }

    /// The forms of VOP1, VOP2, VOPC and VOP3 rows.
    fn vector(&self) -> Vec<Spec> {
        let since = |generation: Gfx| self.generation >= generation;
        let mut out = Vec::new();
        let short = self.format != Format::Vop3;
        if short && !self.has("-e32") {
            out.push(self.short());
        }
        if !self.has("-e64") && (self.halves > NamedHalves::None || !self.has("half")) {
            let promoted = short || self.row.format == Format::Vintrp;
            out.push(self.long(if promoted { Form::E64 } else { Form::Native }));
        }
        let narrow = !self.wide();
        // From MI200 on what has 64 bits fetches from one lane of each row.
        let unified = self.generation.has_unified_vgprs();
        let dpp_wide = unified && short && self.format != Format::Vopc || self.has("+dpp");
        let source_only = self.has("sdwa_source") && self.generation < Gfx::Gfx10;
        if short
            && (narrow || source_only)
            && since(Gfx::Gfx8)
            && self.generation <= Gfx::Gfx10_3
            && !self.has("-sdwa")
        {
            out.push(self.sdwa());
        }
        let dpp = (narrow || dpp_wide) && since(Gfx::Gfx8) && !self.has("-dpp");
        let from = if self.format == Format::Vopc { Gfx::Gfx11 } else { Gfx::Gfx8 };
        if dpp && short && since(from) && !self.has("-e32_dpp") {
            out.push(self.dpp(Form::Dpp));
            if since(Gfx::Gfx10) {
                out.push(self.dpp(Form::Dpp8));
            }
        }
        if dpp && since(Gfx::Gfx11) && !self.has("-e64") && !self.has("-e64_dpp") {
            out.push(self.long(Form::E64Dpp));
            out.push(self.long(Form::E64Dpp8));
        }
        for spec in &mut out {
            self.optional(spec);
        }
        out
    }

    /// vcc may be left out where a short comparison writes it, or a short selection reads it.
    fn optional(&self, spec: &mut Spec) {
        let optional = match spec.form {
            Form::E32 => self.format == Format::Vopc || self.has("vcc?"),
            Form::Dpp | Form::Dpp8 => {
                self.format == Format::Vopc || self.has("vcc?") && self.generation >= Gfx::Gfx10
            }
            Form::Sdwa => self.has("vcc?") && self.generation >= Gfx::Gfx10,
            _ => false,
        };
        for slot in spec.slots.iter_mut().filter(|slot| optional && slot.class == Class::Fixed) {
            slot.class = Class::FixedOptional;
        }
    }

    /// Registers of 16-bit values in the short encodings from gfx11 on: of the lower half, or halves of them.
    fn low(&self, slot: &mut OperandSlot) {
        if self.generation < Gfx::Gfx11 || slot.class == Class::Implicit || !self.is_half(slot) {
            return;
        }
        let half = self.named() || self.has("half");
        slot.class = match slot.class {
            Class::Vgpr if half => Class::VgprHalf,
            Class::Vgpr => Class::VgprLow,
            Class::VgprSrc if half => Class::VgprHalfSrc,
            Class::VgprSrc => Class::VgprLowSrc,
            Class::Src if half => Class::SrcHalf,
            Class::Src => Class::SrcLow,
            other => other,
        };
    }

    /// `_e32`.
    fn short(&self) -> Spec {
        let encoding = match self.format {
            Format::Vop1 => Encoding::Vop1,
            Format::Vop2 => Encoding::Vop2,
            _ => Encoding::Vopc,
        };
        let mut slots = self.slots();
        for slot in &mut slots {
            if slot.field == Field::Src1 {
                slot.field = Field::Vsrc1;
                slot.class = match slot.class {
                    Class::Src | Class::VgprSrc => Class::Vgpr,
                    other => other,
                };
            }
            self.low(slot);
        }
        self.spec(Form::E32, encoding, slots, Vec::new())
    }

    /// `_dpp`.
    fn dpp(&self, form: Form) -> Spec {
        let encoding = match (self.format, form) {
            (Format::Vop1, Form::Dpp) => Encoding::Vop1Dpp,
            (Format::Vop1, _) => Encoding::Vop1Dpp8,
            (Format::Vop2, Form::Dpp) => Encoding::Vop2Dpp,
            (Format::Vop2, _) => Encoding::Vop2Dpp8,
            (_, Form::Dpp) => Encoding::VopcDpp,
            _ => Encoding::VopcDpp8,
        };
        let mut slots = self.slots();
        for slot in &mut slots {
            if slot.field == Field::Src1 {
                slot.field = Field::Vsrc1;
            }
            if matches!(slot.class, Class::Src | Class::VgprSrc) {
                slot.class = Class::Vgpr;
            }
            self.low(slot);
        }
        let mut mods = Vec::new();
        if form == Form::Dpp {
            let (float, int) = self.signed(form);
            for (source, neg, abs) in [(0, Field::Neg0, Field::Abs0), (1, Field::Neg1, Field::Abs1)] {
                if int >> source & 1 != 0 {
                    mods.push(ModSlot { id: Mod::Sext, field: neg, shift: source, mask: 1 << source });
                }
                if float >> source & 1 != 0 {
                    mods.push(ModSlot { id: Mod::Neg, field: neg, shift: source, mask: 1 << source });
                    mods.push(ModSlot { id: Mod::Abs, field: abs, shift: source, mask: 1 << source });
                }
            }
        }
        mods.extend(self.lanes(form));
        self.spec(form, encoding, slots, mods)
    }

    /// Modifiers of DPP.
    fn lanes(&self, form: Form) -> Vec<ModSlot> {
        match form {
            Form::Dpp | Form::E64Dpp => {
                let mut mods = vec![
                    whole(Mod::DppCtrl, Field::DppCtrl),
                    whole(Mod::RowMask, Field::RowMask),
                    whole(Mod::BankMask, Field::BankMask),
                    whole(Mod::BoundCtrl, Field::BoundCtrl),
                ];
                if self.generation >= Gfx::Gfx10 {
                    mods.push(whole(Mod::Fi, Field::Fi));
                }
                mods
            }
            Form::Dpp8 | Form::E64Dpp8 => {
                vec![whole(Mod::Dpp8, Field::LaneSel), whole(Mod::Fi, Field::FiCode)]
            }
            _ => Vec::new(),
        }
    }

    /// `_sdwa`.
    fn sdwa(&self) -> Spec {
        let encoding = match self.format {
            Format::Vop1 => Encoding::Vop1Sdwa,
            Format::Vop2 => Encoding::Vop2Sdwa,
            _ => Encoding::VopcSdwa,
        };
        let later = self.generation >= Gfx::Gfx9;
        let compares = self.format == Format::Vopc;
        let mut slots = self.slots();
        let mut sources = 0;
        let mut dst = false;
        for slot in &mut slots {
            if slot.source < 2 {
                sources = sources.max(slot.source + 1);
            }
            if slot.field == Field::Src1 {
                slot.field = Field::Vsrc1;
            }
            dst |= slot.field == Field::Vdst;
            slot.class = match slot.class {
                Class::Src if later => Class::SrcSdwa,
                Class::Src | Class::VgprSrc => Class::Vgpr,
                Class::Fixed if compares && later => {
                    slot.field = Field::Sdst;
                    Class::SdwaSdst
                }
                other => other,
            };
        }
        let (float, int) = self.signed(Form::Sdwa);
        let mut mods = Vec::new();
        let fields =
            [(0, Field::Neg0, Field::Abs0, Field::Sext0), (1, Field::Neg1, Field::Abs1, Field::Sext1)];
        for (source, neg, abs, sext) in fields {
            let mut push = |id, field| mods.push(ModSlot { id, field, shift: source, mask: 1 << source });
            if float >> source & 1 != 0 {
                push(Mod::Neg, neg);
                push(Mod::Abs, abs);
            }
            if int >> source & 1 != 0 {
                push(Mod::Sext, sext);
            }
        }
        let clamp = match compares {
            true => !later,
            false => sources > 0,
        };
        if clamp {
            mods.push(whole(Mod::Clamp, Field::Clamp));
        }
        if later && self.has("omod") && self.float_result() {
            mods.push(whole(Mod::Omod, Field::Omod));
        }
        if self.has("sdwa_source") {
            // All of the destination is written.
            mods.push(part(Mod::Ones, Field::DstSel, 6));
        } else if dst {
            mods.push(whole(Mod::DstSel, Field::DstSel));
            mods.push(whole(Mod::DstUnused, Field::DstUnused));
        }
        if sources > 0 {
            mods.push(whole(Mod::Src0Sel, Field::Src0Sel));
        }
        if sources > 1 {
            mods.push(whole(Mod::Src1Sel, Field::Src1Sel));
        }
        self.spec(Form::Sdwa, encoding, slots, mods)
    }

    /// VOP3, with or without DPP.
    fn long(&self, form: Form) -> Spec {
        let encoding = match form {
            Form::E64Dpp => Encoding::Vop3Dpp,
            Form::E64Dpp8 => Encoding::Vop3Dpp8,
            _ => Encoding::Vop3,
        };
        let dpp = matches!(form, Form::E64Dpp | Form::E64Dpp8);
        let half = self.named();
        let compares = self.format == Format::Vopc;
        let mut slots = self.slots();
        let mut has_sdst = false;
        let mut sources = 0u32;
        let mut any_half = false;
        for slot in &mut slots {
            if slot.field == Field::Vsrc {
                slot.field = Field::Src1;
                if slot.class == Class::Vgpr {
                    slot.class = Class::VgprSrc;
                    slot.source = 1;
                }
            }
            if slot.reg == Reg::VCC.0 && slot.class == Class::Fixed {
                (slot.class, slot.field) = match (slot.access.writes(), compares) {
                    (true, true) => (Class::Sdst, Field::Vdst),
                    (true, false) => (Class::Sdst, Field::Sdst),
                    (false, _) => (Class::Sreg, Field::Src2),
                };
                slot.reg = 0;
                has_sdst |= slot.field == Field::Sdst;
            }
            if compares && slot.class == Class::Implicit && slot.reg == Reg::EXEC.0 && slot.access.writes() {
                // From gfx10 on the mask goes nowhere else, and the field says so.
                if self.generation >= Gfx::Gfx10 {
                    slot.field = Field::Vdst;
                }
            }
            // Its constants are those of floating point, although it is an integer.
            if slot.source == 1 && self.has("float1") {
                slot.ty = Type::F16;
            }
            if slot.source < 3 {
                sources |= 1 << slot.source;
            }
            match (slot.field, slot.class) {
                (Field::Src0, Class::Src | Class::VgprSrc) if dpp => slot.class = Class::Vgpr,
                (Field::Src1, Class::Src) if dpp && self.generation == Gfx::Gfx11 => {
                    slot.class = Class::VgprSrc
                }
                (_, Class::Src) if dpp || self.generation < Gfx::Gfx10 => slot.class = Class::SrcInline,
                (_, Class::Ssrc) if self.generation < Gfx::Gfx10 => slot.class = Class::SsrcInline,
                _ => {}
            }
            if half && self.is_half(slot) {
                let all = self.halves == NamedHalves::All;
                slot.class = match slot.class {
                    Class::Vgpr if all => Class::VgprNamed,
                    Class::Vgpr => Class::VgprSel,
                    Class::Src | Class::SrcInline if all => Class::SrcNamed,
                    Class::VgprSrc if all => Class::VgprNamedSrc,
                    Class::Src => Class::SrcSel,
                    other => other,
                };
                any_half |= all;
            }
        }
        // A destination that is read is the third source.
        let reads = slots.iter().any(|slot| slot.field == Field::Vdst && slot.access.reads());
        let tied = if reads { 4 } else { 0 };
        let (float, int) = self.signed(form);
        let mut mods = Vec::new();
        let mut signs = |id, field, mask| {
            if mask != 0 {
                mods.push(part(id, field, mask));
            }
        };
        signs(Mod::Neg, Field::Neg, float);
        signs(Mod::Sext, Field::Neg, int);
        let unclamped = has_sdst && self.generation <= Gfx::Gfx7;
        signs(Mod::Abs, Field::Abs, if has_sdst || self.has("-abs") { 0 } else { float });
        if self.has("high") {
            mods.push(whole(Mod::High, Field::High));
        }
        if self.has("bitop3") {
            for (field, shift, mask) in [(Field::Neg, 0, 7), (Field::Abs, 3, 0x38), (Field::Omod, 6, 0xc0)] {
                mods.push(ModSlot { id: Mod::Bitop3, field, shift, mask });
            }
        }
        if any_half {
            let id = if self.has("unsaid_halves") { Mod::Halves } else { Mod::OpSel };
            let all = if compares { sources } else { sources | 8 };
            mods.push(part(id, Field::OpSel, self.masked("op_sel", all).unwrap_or(all)));
        } else if half && self.halves == NamedHalves::Some {
            mods.push(part(Mod::OpSel, Field::OpSel, sources | 8));
        } else if let Some(mask) = self.masked("op_sel", sources | tied | 8) {
            mods.push(part(Mod::OpSel, Field::OpSel, mask));
        }
        if self.has("swap_bound") {
            mods.push(whole(Mod::BoundCtrl, Field::SwapBound));
            mods.push(whole(Mod::Fi, Field::SwapFi));
        }
        if self.has("byte_sel") {
            mods.push(whole(Mod::ByteSel, Field::ByteSel));
        }
        if self.has("byte_sel_source") {
            // The two bits lie the other way round.
            mods.push(part(Mod::ByteSel, Field::ByteLow, 1));
            mods.push(ModSlot { id: Mod::ByteSel, field: Field::ByteHigh, shift: 1, mask: 2 });
        }
        if self.has("clamp") && (self.generation >= Gfx::Gfx8 || self.float_result()) {
            // Where the second destination lies in its bits it may be said, but is not encoded.
            mods.push(whole(Mod::Clamp, if unclamped { Field::None } else { Field::Clamp }));
        }
        if self.has("omod") {
            mods.push(whole(Mod::Omod, Field::Omod));
        }
        mods.extend(self.lanes(form));
        let mut spec = self.spec(form, encoding, slots, mods);
        spec.opcode += match (self.format, self.generation) {
            (Format::Vop2, _) => 0x100,
            (Format::Vop1, generation) if (Gfx::Gfx8..Gfx::Gfx10).contains(&generation) => 0x140,
            (Format::Vop1, _) => 0x180,
            _ => 0,
        };
        spec
    }

    /// VOP3P, with or without DPP.
    fn packed(&self) -> Vec<Spec> {
        let mut forms = vec![(Form::Native, Encoding::Vop3p)];
        if self.has("+dpp") && self.generation >= Gfx::Gfx11 {
            forms.push((Form::E64Dpp, Encoding::Vop3pDpp));
            forms.push((Form::E64Dpp8, Encoding::Vop3pDpp8));
        }
        forms
            .into_iter()
            .map(|(form, encoding)| {
                let dpp = form != Form::Native;
                let mut slots = self.slots();
                let mut sources = 0u32;
                for slot in &mut slots {
                    if slot.source < 3 {
                        sources |= 1 << slot.source;
                    }
                    match (slot.field, slot.class) {
                        (Field::Src0, Class::Src) if dpp => slot.class = Class::Vgpr,
                        (Field::Src1, Class::Src)
                            if dpp && (self.generation == Gfx::Gfx11 || self.has("mix")) =>
                        {
                            slot.class = Class::VgprSrc;
                        }
                        (Field::Src1 | Field::Src2, Class::Src) if dpp && self.has("dpp_vgpr") => {
                            slot.class = Class::VgprSrc;
                        }
                        (_, Class::Src) if dpp || self.generation < Gfx::Gfx10 => {
                            slot.class = Class::SrcInline
                        }
                        _ => {}
                    }
                }
                let mut mods = Vec::new();
                if self.has("mix") {
                    mods.push(part(Mod::Neg, Field::Neg, sources));
                    mods.push(part(Mod::Abs, Field::NegHi, sources));
                }
                if self.has("op_sel") {
                    mods.push(part(Mod::OpSel, Field::OpSel, sources));
                }
                // Bits of sources that are not there are set nevertheless.
                let high = if self.has("op_sel") { Mod::OpSelHi } else { Mod::Ones };
                let mix = self.has("mix");
                let (low, third) = if mix { (sources & 3, sources & 4) } else { (3, 4) };
                if high == Mod::OpSelHi && !mix && sources & 4 == 0 {
                    mods.push(part(Mod::OpSelHi, Field::OpSelHi, 3));
                    mods.push(ModSlot { id: Mod::Ones, field: Field::OpSelHi2, shift: 2, mask: 4 });
                } else {
                    mods.push(part(high, Field::OpSelHi, low));
                    mods.push(ModSlot { id: high, field: Field::OpSelHi2, shift: 2, mask: third });
                }
                if self.has("index_key") {
                    mods.push(whole(Mod::IndexKey, Field::IndexKey));
                }
                for (id, field) in [(Mod::NegLo, Field::Neg), (Mod::NegHi, Field::NegHi)] {
                    if let Some(mask) = self.masked(id.name(), sources) {
                        mods.push(part(id, field, mask));
                    }
                }
                if self.has("clamp") {
                    mods.push(whole(Mod::Clamp, Field::Clamp));
                }
                mods.extend(self.lanes(form));
                self.spec(form, encoding, slots, mods)
            })
            .collect()
    }
}
