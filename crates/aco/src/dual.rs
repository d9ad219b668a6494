//! Dual instructions: two vector ALU instructions that are executed at once, in wave32 of gfx11 and later.
//!
//! Takes a machine program without waits. Guarantees the same results: both halves read before either writes. The second of a pair may come from a
//! little further down if nothing between uses its registers. The rules of the encoding: results in an even and an odd register, sources at the same
//! place in different banks, one literal, two scalar values. Facts: `data/amd/vopd.txt`, AMD's manuals of RDNA3 and RDNA4.

use crate::ir::shape::variants_of;
use crate::machine::{MachineInst, MachineProgram};
use unwedge_isa::amdgcn::effects::{self, Regs};
use unwedge_isa::amdgcn::model::{Form, Format, OperandSlot};
use unwedge_isa::amdgcn::tables::has;
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Mods, Opcode, Operand, Reg, codec};

/// How far down the second of a pair is looked for.
const WINDOW: usize = 6;
/// Vector registers are in banks by their number.
const BANKS: usize = 4;
/// The most scalar registers and literals in a pair.
const SCALARS: usize = 2;

/// An instruction and the half that it may become; the last three can only be second halves.
const HALVES: [(Opcode, Opcode); 16] = [
    (Opcode::v_fmac_f32, Opcode::v_dual_fmac_f32),
    (Opcode::v_fmaak_f32, Opcode::v_dual_fmaak_f32),
    (Opcode::v_fmamk_f32, Opcode::v_dual_fmamk_f32),
    (Opcode::v_mul_f32, Opcode::v_dual_mul_f32),
    (Opcode::v_add_f32, Opcode::v_dual_add_f32),
    (Opcode::v_sub_f32, Opcode::v_dual_sub_f32),
    (Opcode::v_subrev_f32, Opcode::v_dual_subrev_f32),
    (Opcode::v_mul_legacy_f32, Opcode::v_dual_mul_dx9_zero_f32),
    (Opcode::v_mov_b32, Opcode::v_dual_mov_b32),
    (Opcode::v_cndmask_b32, Opcode::v_dual_cndmask_b32),
    (Opcode::v_max_f32, Opcode::v_dual_max_f32),
    (Opcode::v_min_f32, Opcode::v_dual_min_f32),
    (Opcode::v_dot2c_f32_f16, Opcode::v_dual_dot2acc_f32_f16),
    (Opcode::v_add_u32, Opcode::v_dual_add_nc_u32),
    (Opcode::v_lshlrev_b32, Opcode::v_dual_lshlrev_b32),
    (Opcode::v_and_b32, Opcode::v_dual_and_b32),
];
const SECOND_ONLY: usize = 3;

/// Opcodes whose sources may change places.
const COMMUTATIVE: [Opcode; 7] = [
    Opcode::v_fmac_f32,
    Opcode::v_mul_f32,
    Opcode::v_add_f32,
    Opcode::v_max_f32,
    Opcode::v_min_f32,
    Opcode::v_add_u32,
    Opcode::v_and_b32,
];

/// An instruction as half of a pair: the opcode of the half, and its operands as they are written.
#[derive(Debug, Clone, Copy)]
struct Half {
    opcode: Opcode,
    second_only: bool,
    operands: [Operand; 4],
    count: usize,
    /// Where the two sources are, if they are vector registers.
    sources: [Option<Reg>; 2],
    target: Reg,
    reads_vcc: bool,
}

/// Makes pairs.
pub fn pair(program: &mut MachineProgram) {
    let gpu = program.gpu;
    if gpu.generation() < Gfx::Gfx11 || gpu.wave64() {
        return;
    }
    for block in &mut program.blocks {
        // Kept instructions from before `at` are compacted to the first `kept` elements.
        let insts = &mut block.insts;
        let (mut at, mut kept) = (0, 0);
        while at < insts.len() {
            let first = insts[at];
            let found = if halves(&first.inst).next().is_some() { partner(insts, at, &gpu) } else { None };
            insts[kept] = first;
            at += 1;
            if let Some((second, dual)) = found {
                (insts[kept].inst, insts[kept].paired) = (dual, insts[second].from);
                insts.copy_within(at..second, at + 1);
                at += 1;
            }
            kept += 1;
        }
        insts.truncate(kept);
    }
}

/// The partner of an instruction, and the pair.
fn partner(insts: &[MachineInst], at: usize, gpu: &Gpu) -> Option<(usize, Inst)> {
    let first = &insts[at].inst;
    let own = effects::of(first, gpu);
    let (mut reads, mut writes) = (Regs::default(), Regs::default());
    for (place, between) in insts.iter().enumerate().skip(at + 1).take(WINDOW) {
        let touched = effects::of(&between.inst, gpu);
        let moves = !touched.reads.meets(&writes) && !touched.writes.meets(&writes.either(&reads));
        let apart = !touched.reads.meets(&own.writes) && !touched.writes.meets(&own.writes);
        if moves
            && apart
            && let Some(dual) = dual(first, &between.inst, gpu)
        {
            return Some((place, dual));
        }
        // Nothing moves over what is not of an ALU.
        let format = between.inst.row().format;
        let scalar = matches!(format, Format::Sop1 | Format::Sop2 | Format::Sopc);
        let vector =
            matches!(format, Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vop3p | Format::Vopc);
        let exec = touched.writes.has(Reg::EXEC);
        if !scalar && !vector || exec {
            return None;
        }
        reads = reads.either(&touched.reads);
        writes = writes.either(&touched.writes);
    }
    None
}

/// The ways in which an instruction may be half of a pair.
fn halves(inst: &Inst) -> impl Iterator<Item = Half> + use<> {
    let plain = half(inst);
    let swapped = plain.and_then(|half| {
        let vectors = half.sources[1].is_some() && half.sources[0].is_some();
        let free = COMMUTATIVE.contains(&inst.opcode()) && vectors;
        let mut swapped = half;
        swapped.operands.swap(1, 2);
        swapped.sources.swap(0, 1);
        free.then_some(swapped)
    });
    // A copy is the sum with zero, which reads the register at the other place.
    let copied = plain.filter(|half| half.opcode == Opcode::v_dual_mov_b32).and_then(|half| {
        let source = half.sources[0]?;
        Some(Half {
            opcode: Opcode::v_dual_add_nc_u32,
            second_only: true,
            operands: [half.operands[0], Operand::Inline(128), half.operands[1], Operand::None],
            count: 3,
            sources: [None, Some(source)],
            ..half
        })
    });
    [plain, swapped, copied].into_iter().flatten()
}

fn half(inst: &Inst) -> Option<Half> {
    let variant = inst.variant();
    let place = HALVES.iter().position(|(opcode, _)| *opcode == inst.opcode())?;
    let short = matches!(variant.form, Form::Native | Form::E32);
    if !short || inst.mods != Mods::default() || matches!(inst.row().format, Format::Vop3) {
        return None;
    }
    let count = usize::from(variant.written);
    let mut operands = [Operand::None; 4];
    operands.get_mut(..count)?.copy_from_slice(&inst.operands[..count]);
    let vector = |operand: &Operand| match operand {
        Operand::Reg { reg, .. } if reg.is_vgpr() => Some(*reg),
        _ => None,
    };
    let target = vector(&operands[0])?;
    let literal = |operand: &Operand| matches!(operand, Operand::Literal(_));
    // A literal in the middle is not at the place of a source.
    let second = if inst.opcode() == Opcode::v_fmamk_f32 { 3 } else { 2 };
    let sources = [vector(&operands[1]), operands.get(second).filter(|o| !literal(o)).and_then(vector)];
    Some(Half {
        opcode: HALVES[place].1,
        second_only: place >= HALVES.len() - SECOND_ONLY,
        operands,
        count,
        sources,
        target,
        reads_vcc: inst.opcode() == Opcode::v_cndmask_b32,
    })
}

/// Two instructions as one, the first of which does not write what the second reads.
fn dual(first: &Inst, second: &Inst, gpu: &Gpu) -> Option<Inst> {
    for a in halves(first) {
        for b in halves(second) {
            // Both read before either writes, so that either may be written first.
            for (x, y) in [(&a, &b), (&b, &a)] {
                if let Some(made) = combine(x, y, gpu) {
                    return Some(made);
                }
            }
        }
    }
    None
}

fn combine(x: &Half, y: &Half, gpu: &Gpu) -> Option<Inst> {
    let odd = |reg: Reg| reg.index() % 2;
    if x.second_only || odd(x.target) == odd(y.target) {
        return None;
    }
    let bank = |reg: Reg| usize::from(reg.index()) % BANKS;
    let clash = x.sources.iter().zip(&y.sources).any(|pair| match pair {
        (Some(x), Some(y)) => bank(*x) == bank(*y),
        _ => false,
    });
    if clash {
        return None;
    }
    let (mut literals, mut scalars) = (Vec::new(), Vec::new());
    for half in [x, y] {
        for operand in &half.operands[1..half.count] {
            match operand {
                Operand::Literal(bits) if !literals.contains(bits) => literals.push(*bits),
                Operand::Reg { reg, .. } if !reg.is_vgpr() && !scalars.contains(reg) => scalars.push(*reg),
                _ => {}
            }
        }
        if half.reads_vcc && !scalars.contains(&Reg::VCC) {
            scalars.push(Reg::VCC);
        }
    }
    if literals.len() > 1 || literals.len() + scalars.len() > SCALARS {
        return None;
    }
    let is_pair =
        |second: &Option<(u16, &'static str, u8)>| second.is_some_and(|(row, ..)| row == y.opcode as u16);
    let number = variants_of(x.opcode).find(|(_, variant)| is_pair(&variant.second) && has(variant, gpu))?.0;
    let mut made = Inst::new(number)?;
    let slots: &[OperandSlot] = &made.variant().slots;
    if usize::from(made.variant().written) != x.count + y.count || slots.len() < x.count + y.count {
        return None;
    }
    made.operands[..x.count].copy_from_slice(&x.operands[..x.count]);
    made.operands[x.count..x.count + y.count].copy_from_slice(&y.operands[..y.count]);
    codec::encode(&made, gpu).ok().map(|_| made)
}
