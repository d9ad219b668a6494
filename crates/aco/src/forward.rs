//! Optimization after allocation: takes a machine program without waits, and leaves one that does the same with fewer instructions.
//!
//! A comparison with zero is removed if the instruction that computed the value left the answer in `scc`. If other instructions between them write
//! `scc`, that instruction moves down to the comparison. A DPP move is folded into the instruction that reads and overwrites its result. Never: looks
//! beyond a block; `scc` holds nothing between blocks.

use crate::machine::{MachineInst, MachineProgram};
use crate::opt::{LANE_MODS, moves_all, only_signs, swap_signs, swapped};
use unwedge_isa::amdgcn::effects::{self, Effects};
use unwedge_isa::amdgcn::model::{Form, Format, Mod, Type};
use unwedge_isa::amdgcn::{Gpu, Inst, Opcode, Operand, Reg, codec, tables};

/// How far back a value is looked for.
const REACH: usize = 16;

/// Removes comparisons and moves whose work other instructions do.
pub fn simplify(program: &mut MachineProgram) {
    let gpu = program.gpu;
    for block in &mut program.blocks {
        let mut code = BlockCode { insts: &mut block.insts, kept: 0, at: 0, moves_lanes: false };
        while code.at < code.insts.len() {
            if !remove_compare(&mut code, &gpu) && !fold_dpp_move(&mut code, &gpu) {
                code.keep_current();
            }
            code.at += 1;
        }
        let kept = code.kept;
        block.insts.truncate(kept);
    }
}

/// The instructions of a block: first those already processed and kept, then, from the current instruction on, those still to process. Instructions between are removed.
struct BlockCode<'a> {
    insts: &'a mut Vec<MachineInst>,
    /// The number of instructions kept so far.
    kept: usize,
    /// The index of the current instruction.
    at: usize,
    /// Some kept instruction moves lanes.
    moves_lanes: bool,
}

impl BlockCode<'_> {
    /// Keeps the current instruction.
    fn keep_current(&mut self) {
        let inst = &self.insts[self.at].inst;
        self.moves_lanes |= is_lane_move(inst);
        if self.kept != self.at {
            self.insts[self.kept] = self.insts[self.at];
        }
        self.kept += 1;
    }

    fn keep(&mut self, inst: MachineInst) {
        self.insts[self.kept] = inst;
        self.kept += 1;
    }

    /// The kept instructions within reach before the current one.
    fn before(&self) -> std::ops::Range<usize> {
        self.kept.saturating_sub(REACH)..self.kept
    }
}

/// Whether an instruction leaves in `scc` whether its result is not zero.
fn leaves_condition(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::s_and_b32
            | O::s_and_b64
            | O::s_or_b32
            | O::s_or_b64
            | O::s_xor_b32
            | O::s_xor_b64
            | O::s_andn2_b32
            | O::s_andn2_b64
            | O::s_orn2_b32
            | O::s_orn2_b64
            | O::s_nand_b32
            | O::s_nand_b64
            | O::s_nor_b32
            | O::s_nor_b64
            | O::s_xnor_b32
            | O::s_xnor_b64
            | O::s_not_b32
            | O::s_not_b64
            | O::s_lshl_b32
            | O::s_lshl_b64
            | O::s_lshr_b32
            | O::s_lshr_b64
            | O::s_ashr_i32
            | O::s_ashr_i64
            | O::s_bfe_u32
            | O::s_bfe_i32
            | O::s_bfe_u64
            | O::s_bfe_i64
            | O::s_bcnt1_i32_b32
            | O::s_bcnt1_i32_b64
    )
}

/// The register that a comparison compares with zero, its dwords, and whether it asks for zero.
fn compared_with_zero(inst: &Inst) -> Option<(Reg, u8, bool)> {
    use Opcode as O;
    let (dwords, zero) = match inst.opcode() {
        O::s_cmp_eq_u32 | O::s_cmp_eq_i32 => (1, true),
        O::s_cmp_lg_u32 | O::s_cmp_lg_i32 => (1, false),
        O::s_cmp_eq_u64 => (2, true),
        O::s_cmp_lg_u64 => (2, false),
        _ => return None,
    };
    let [a, b, ..] = inst.operands;
    let is_zero = |operand: &Operand| matches!(operand, Operand::Inline(128) | Operand::Literal(0));
    match (a, b) {
        (Operand::Reg { reg, .. }, other) | (other, Operand::Reg { reg, .. }) if is_zero(&other) => {
            Some((reg, dwords, zero))
        }
        _ => None,
    }
}

/// Returns whether the current comparison was removed because `scc` has its result already.
fn remove_compare(code: &mut BlockCode, gpu: &Gpu) -> bool {
    let Some((reg, dwords, zero)) = compared_with_zero(&code.insts[code.at].inst) else { return false };
    let effects_at = |place: usize| effects::of(&code.insts[place].inst, gpu);
    let writes =
        |effects: &Effects| (0..u16::from(dwords)).any(|number| effects.writes.has(Reg(reg.0 + number)));
    let Some(maker) = code.before().rev().find(|place| writes(&effects_at(*place))) else { return false };
    let made = code.insts[maker].inst;
    let whole = matches!(made.operands[0], Operand::Reg { reg: own, dwords: count, .. } if own == reg && count == dwords);
    if !leaves_condition(made.opcode()) || !whole {
        return false;
    }
    let own = effects_at(maker);
    let overwritten = (maker + 1..code.kept).find(|place| effects_at(*place).writes.has(Reg::SCC));
    if let Some(overwritten) = overwritten {
        let made = own.writes.without(&scc());
        let passes = |place: usize| {
            let between = effects_at(place);
            let answers = place <= overwritten && between.reads.has(Reg::SCC);
            !answers
                && !between.reads.meets(&made)
                && !between.writes.meets(&made)
                && !between.writes.meets(&own.reads)
        };
        if own.reads.has(Reg::SCC) || !(maker + 1..code.kept).all(passes) {
            return false;
        }
    }
    let Some(readers) = readers(code, gpu) else { return false };
    if zero {
        let flipped: Option<Vec<_>> =
            readers.iter().map(|place| Some((*place, flipped(&code.insts[*place].inst, gpu)?))).collect();
        let Some(flipped) = flipped else { return false };
        for (place, inst) in flipped {
            code.insts[place].inst = inst;
        }
    }
    if overwritten.is_some() {
        code.insts[maker..code.kept].rotate_left(1);
    }
    true
}

/// `scc` alone.
fn scc() -> effects::Regs {
    let mut regs = effects::Regs::default();
    regs.insert(Reg::SCC, 1);
    regs
}

/// The instructions that read the `scc` of the current one.
fn readers(code: &BlockCode, gpu: &Gpu) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for (place, inst) in code.insts.iter().enumerate().skip(code.at + 1) {
        let touched = effects::of(&inst.inst, gpu);
        if touched.reads.has(Reg::SCC) {
            found.push(place);
        }
        if touched.writes.has(Reg::SCC) {
            break;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The same for the opposite condition.
fn flipped(inst: &Inst, gpu: &Gpu) -> Option<Inst> {
    use Opcode as O;
    let mut new = *inst;
    match inst.opcode() {
        O::s_cselect_b32 | O::s_cselect_b64 => new.operands.swap(1, 2),
        O::s_cbranch_scc0 => new = with_opcode(inst, O::s_cbranch_scc1, inst.variant().form, gpu)?,
        O::s_cbranch_scc1 => new = with_opcode(inst, O::s_cbranch_scc0, inst.variant().form, gpu)?,
        _ => return None,
    }
    Some(new)
}

/// Another instruction with the same operands and modifiers.
fn with_opcode(inst: &Inst, opcode: Opcode, form: Form, gpu: &Gpu) -> Option<Inst> {
    let mut variants = crate::ir::shape::variants_of(opcode);
    let has = |variant: &tables::Variant| {
        variant.form == form && variant.second.is_none() && tables::has(variant, gpu)
    };
    let (number, variant) = variants.find(|(_, variant)| has(variant))?;
    if variant.slots.len() != inst.variant().slots.len() {
        return None;
    }
    let mut made = Inst::new(number)?;
    (made.operands, made.mods) = (inst.operands, inst.mods);
    Some(made)
}

/// Whether an instruction moves lanes of all rows and banks, and does nothing else.
fn is_lane_move(inst: &Inst) -> bool {
    inst.opcode() == Opcode::v_mov_b32 && moves_all(inst.variant().form, &inst.mods)
}

/// Returns whether a preceding DPP move was folded into the current instruction and removed.
fn fold_dpp_move(code: &mut BlockCode, gpu: &Gpu) -> bool {
    if !code.moves_lanes {
        return false;
    }
    let own = code.insts[code.at];
    let reader = own.inst;
    if !matches!(reader.row().format, Format::Vop1 | Format::Vop2)
        || !matches!(reader.variant().form, Form::E32 | Form::E64 | Form::Native)
    {
        return false;
    }
    let Operand::Reg { reg: result, dwords: 1, .. } = reader.operands[0] else { return false };
    let is = |operand: &Operand| matches!(operand, Operand::Reg { reg, dwords: 1, .. } if *reg == result);
    let source = match (is(&reader.operands[1]), is(&reader.operands[2])) {
        (true, false) => 1,
        (false, true) => 2,
        _ => return false,
    };
    let touches = |place: usize| {
        let effects = effects::of(&code.insts[place].inst, gpu);
        effects.reads.has(result) || effects.writes.has(result)
    };
    let Some(mover) = code.before().rev().find(|place| touches(*place)) else { return false };
    let lanes = code.insts[mover].inst;
    let Operand::Reg { reg: from, dwords: 1, .. } = lanes.operands[1] else { return false };
    if !is_lane_move(&lanes) || !is(&lanes.operands[0]) || from == result {
        return false;
    }
    let kept = (mover + 1..code.kept).all(|place| {
        let effects = effects::of(&code.insts[place].inst, gpu);
        !effects.writes.has(from) && !effects.writes.has(Reg::EXEC) && !effects.writes.has(Reg::EXEC_HI)
    });
    let Some(new) = with_lanes(&reader, source, &lanes, gpu).filter(|_| kept) else { return false };
    code.insts.copy_within(mover + 1..code.kept, mover);
    code.kept -= 1;
    code.keep(MachineInst { inst: new, ..own });
    true
}

/// An instruction that reads a source whose lanes another instruction has moved.
fn with_lanes(reader: &Inst, source: usize, lanes: &Inst, gpu: &Gpu) -> Option<Inst> {
    let mut inst = *reader;
    let mut mods = reader.mods;
    if !only_signs(&mods) {
        return None;
    }
    let mut opcode = reader.opcode();
    if source == 2 {
        opcode = swapped(opcode)?;
        inst.operands.swap(1, 2);
        swap_signs(&mut mods);
    }
    inst.operands[1] = lanes.operands[1];
    let signs = lanes.mods.has(Mod::Neg) || lanes.mods.has(Mod::Abs);
    if mods.get(Mod::Abs) & 1 == 0 {
        mods.set(Mod::Neg, mods.get(Mod::Neg) ^ lanes.mods.get(Mod::Neg));
        mods.set(Mod::Abs, mods.get(Mod::Abs) | lanes.mods.get(Mod::Abs));
    }
    for id in LANE_MODS {
        mods.set(id, lanes.mods.get(id));
    }
    inst.mods = mods;
    let vector = |operand: &Operand| matches!(operand, Operand::Reg { reg, .. } if reg.is_vgpr());
    let two = reader.row().format == Format::Vop2;
    let new = with_opcode(&inst, opcode, lanes.variant().form, gpu)?;
    let known = Mod::ALL.iter().all(|id| !mods.has(*id) || new.variant().has_mod(*id));
    // What takes 16 bits reads a half.
    let slots = &new.variant().slots;
    let whole = slots.iter().all(|slot| slot.ty.bits() != 16) && (!signs || slots[1].ty == Type::F32);
    let readable = known && whole && (!two || vector(&inst.operands[2]));
    (readable && codec::encode(&new, gpu).is_ok()).then_some(new)
}
