//! Reductions and scans of 32 bits over the lanes of a wave: trees of instructions that read other lanes, with DPP from gfx8 on, and with `ds_swizzle_b32` before.
//!
//! Where not all lanes are active, the tree is computed with all of them in linear vector registers, in which lanes that were not active have the
//! identity of the operation.

use super::{Emitter, dword, phys, sgpr_to, vgpr_to};
use crate::error::FinishError;
use crate::ir::{Definition, NewInst, Operand, Payload, PhysReg, Pseudo, RegClass};
use unwedge_isa::amdgcn::model::{Form, Mod};
use unwedge_isa::amdgcn::{Gfx, Mods, Opcode};
use unwedge_shader::ir::{Base, Op as ShaderOp};
use unwedge_shader::semantics;

/// Codes of `dpp_ctrl`.
const SWAP_PAIRS: i32 = 0b10_11_00_01;
const SWAP_IN_QUADS: i32 = 0b01_00_11_10;
const SAME_LANE: i32 = 0b11_10_01_00;
const ROW_SHIFT_RIGHT: i32 = 0x110;
const WAVE_SHIFT_RIGHT: i32 = 0x138;
const ROW_MIRROR: i32 = 0x140;
const ROW_HALF_MIRROR: i32 = 0x141;
const ROW_BROADCAST_15: i32 = 0x142;
const ROW_BROADCAST_31: i32 = 0x143;
/// The rows of 16 lanes that a step writes.
const ALL_ROWS: i32 = 0xf;
const ODD_ROWS: i32 = 0xa;
const UPPER_ROWS: i32 = 0xc;

/// What a reduction computes with.
struct Reduction {
    op: ShaderOp,
    vector: Opcode,
    /// `None` for floats.
    scalar: Option<Opcode>,
    /// The operand that leaves the other one as it is.
    identity: u32,
    /// The value of each lane so far.
    sum: u16,
    /// A second register.
    other: u16,
    wave64: bool,
}

fn opcodes(op: ShaderOp) -> Option<(Opcode, Option<Opcode>)> {
    use Opcode as O;
    Some(match op {
        ShaderOp::IAdd => (O::v_add_u32, Some(O::s_add_u32)),
        ShaderOp::IMul => (O::v_mul_lo_u32, Some(O::s_mul_i32)),
        ShaderOp::IMin => (O::v_min_i32, Some(O::s_min_i32)),
        ShaderOp::IMax => (O::v_max_i32, Some(O::s_max_i32)),
        ShaderOp::UMin => (O::v_min_u32, Some(O::s_min_u32)),
        ShaderOp::UMax => (O::v_max_u32, Some(O::s_max_u32)),
        ShaderOp::IAnd => (O::v_and_b32, Some(O::s_and_b32)),
        ShaderOp::IOr => (O::v_or_b32, Some(O::s_or_b32)),
        ShaderOp::IXor => (O::v_xor_b32, Some(O::s_xor_b32)),
        ShaderOp::FAdd => (O::v_add_f32, None),
        ShaderOp::FMul => (O::v_mul_f32, None),
        ShaderOp::FMin => (O::v_min_f32, None),
        ShaderOp::FMax => (O::v_max_f32, None),
        _ => return None,
    })
}

fn dpp(control: i32, rows: i32) -> Mods {
    let mut mods = Mods::default();
    mods.set(Mod::DppCtrl, control);
    mods.set(Mod::RowMask, rows);
    mods.set(Mod::BankMask, 0xf);
    mods
}

impl Emitter<'_> {
    fn number_of(&self, reg: PhysReg) -> u16 {
        (reg.index() / 4) as u16
    }

    fn with_mods(&mut self, opcode: Opcode, form: Form, mods: Mods, to: u16, operands: &[Operand]) {
        let definitions = [vgpr_to(to)];
        let new = NewInst { form, mods, ..NewInst::hw(opcode, &definitions, operands) };
        let inst = self.program.make_inst(&new);
        self.program[inst].loc = self.program[self.inst].loc;
        self.out.push(inst);
    }

    /// Lowers a reduction, or a scan over the lanes up to each lane or before it.
    pub(super) fn reduce(&mut self, pseudo: Pseudo) -> Result<(), FinishError> {
        let scan = pseudo != Pseudo::Reduce;
        let Payload::Reduce(op, 32, cluster) = self.program.payload(self.inst) else {
            return Err(self.not_done("of this width"));
        };
        let (Some((vector, scalar)), Some(identity)) = (opcodes(op), semantics::identity(op, Base::B32))
        else {
            return Err(self.not_done("of this operation"));
        };
        let older = self.generation() < Gfx::Gfx8;
        if scan && older {
            return Err(self.not_done("a scan without DPP"));
        }
        let (result, result_class) = self.definition(0)?;
        let (value, _) = self.reg_of(0)?;
        let (result, value) = (self.number_of(result), self.number_of(value));
        let linear = self.program.operands(self.inst).len() > 1;
        let wave64 = self.program.gpu.wave64();
        let (sum, other, spare) = if linear {
            let [(a, _), (b, _)] = [self.reg_of(1)?, self.reg_of(2)?];
            (self.number_of(a), self.number_of(b), self.definition(2)?.0)
        } else {
            let [(a, _), (b, _)] = [self.definition(1)?, self.definition(2)?];
            (self.number_of(a), self.number_of(b), self.definition(3)?.0)
        };
        let spare = self.number_of(spare);
        let tree = Reduction { op, vector, scalar, identity: identity as u32, sum, other, wave64 };
        let saved = if linear { Some(self.definition(1)?) } else { None };
        let mut from = value;
        if let Some((saved, class)) = saved {
            self.enable_all(&tree, saved, class, value);
            from = sum;
        } else if scan {
            self.vector_move(sum, dword(value));
            from = sum;
        }
        match (scan, older) {
            (true, _) => {
                self.scan_tree(&tree, spare);
                if pseudo == Pseudo::ExclusiveScan {
                    self.shift_lanes(&tree, spare);
                }
            }
            (false, true) => self.swizzle_tree(&tree, from, cluster),
            (false, false) => self.reduce_tree(&tree, from, cluster),
        }
        let whole = cluster == 0 && !scan;
        if whole {
            self.join_halves(&tree, result, spare);
        }
        if let Some((saved, class)) = saved {
            let exec = Definition::reg(PhysReg::EXEC, class);
            let opcode = if wave64 { Opcode::s_mov_b64 } else { Opcode::s_mov_b32 };
            self.hw(opcode, &[exec], &[Operand::reg(saved, class)]);
        }
        if !whole {
            debug_assert!(result_class.is_vgpr());
            let found = if pseudo == Pseudo::ExclusiveScan { other } else { sum };
            self.vector_move(result, dword(found));
        }
        Ok(())
    }

    /// Enables all lanes. Lanes that were inactive have the identity.
    fn enable_all(&mut self, tree: &Reduction, saved: PhysReg, class: RegClass, value: u16) {
        let opcode = if tree.wave64 { Opcode::s_or_saveexec_b64 } else { Opcode::s_or_saveexec_b32 };
        let exec = Definition::reg(PhysReg::EXEC, class);
        let definitions = [Definition::reg(saved, class), Definition::reg(PhysReg::SCC, RegClass::S1), exec];
        let all = Operand::constant(class.all_bits(), class);
        self.hw(opcode, &definitions, &[all, Operand::reg(PhysReg::EXEC, class)]);
        let mut first = Operand::c32(tree.identity);
        let variants = self.variants;
        if crate::machine::inline(variants.gpu(), unwedge_isa::amdgcn::model::Type::B32, tree.identity.into())
            .is_none()
        {
            self.vector_move(tree.sum, first);
            first = dword(tree.sum);
        }
        let operands = [first, dword(value), Operand::reg(saved, class)];
        self.hw(Opcode::v_cndmask_b32, &[vgpr_to(tree.sum)], &operands);
    }

    /// The sum of a lane's value and that in the second register.
    fn combine(&mut self, tree: &Reduction, a: Operand) {
        let (to, b) = ([vgpr_to(tree.sum)], dword(tree.other));
        if self.has(tree.vector) {
            self.hw(tree.vector, &to, &[a, b]);
        } else {
            // Sums leave a carry in `vcc`; this one does not: |a - 0| + b.
            self.hw(Opcode::v_sad_u32, &to, &[a, Operand::c32(0), b]);
        }
    }

    /// Combines each lane's value with that of another lane, in some rows. Lanes without another one keep theirs.
    fn step(&mut self, tree: &Reduction, from: u16, control: i32, rows: i32) {
        let mods = dpp(control, rows);
        let source = dword(from);
        if tree.vector == Opcode::v_add_u32 && !self.has(tree.vector) {
            self.with_carry(tree, mods, source);
            return;
        }
        if self.variants.variant(tree.vector, Form::Dpp).is_some() {
            self.with_mods(tree.vector, Form::Dpp, mods, tree.sum, &[source, source]);
            return;
        }
        let partial = rows != ALL_ROWS || (ROW_SHIFT_RIGHT..ROW_SHIFT_RIGHT + 16).contains(&control);
        if partial {
            self.vector_move(tree.other, Operand::c32(tree.identity));
        }
        self.with_mods(Opcode::v_mov_b32, Form::Dpp, mods, tree.other, &[source]);
        self.combine(tree, source);
    }

    /// A sum of gfx8, which leaves a carry in `vcc`.
    fn with_carry(&mut self, tree: &Reduction, mods: Mods, source: Operand) {
        let mask = self.program.lane_mask();
        let definitions = [vgpr_to(tree.sum), Definition::reg(PhysReg::VCC, mask)];
        let operands = [source, source];
        let new =
            NewInst { form: Form::Dpp, mods, ..NewInst::hw(Opcode::v_add_co_u32, &definitions, &operands) };
        let inst = self.program.make_inst(&new);
        self.program[inst].loc = self.program[self.inst].loc;
        self.out.push(inst);
    }

    /// The sum of each cluster in all of its lanes; of the whole wave in the last lane, or in the last lane of each half.
    fn reduce_tree(&mut self, tree: &Reduction, from: u16, cluster: u8) {
        let steps = [(2, SWAP_PAIRS), (4, SWAP_IN_QUADS), (8, ROW_HALF_MIRROR), (16, ROW_MIRROR)];
        let mut from = from;
        for (lanes, control) in steps {
            if cluster == 0 || lanes <= cluster {
                self.step(tree, from, control, ALL_ROWS);
                from = tree.sum;
            }
        }
        if cluster != 0 && cluster < 32 {
            return;
        }
        if self.generation() >= Gfx::Gfx10 {
            self.across_rows(tree, 0);
            self.combine(tree, dword(tree.sum));
        } else if cluster == 32 {
            self.swizzle(tree.sum, tree.other, 16);
            self.combine(tree, dword(tree.sum));
        } else {
            self.step(tree, tree.sum, ROW_BROADCAST_15, ODD_ROWS);
            self.step(tree, tree.sum, ROW_BROADCAST_31, UPPER_ROWS);
        }
    }

    /// The values of one lane of the other row of each pair of rows.
    fn across_rows(&mut self, tree: &Reduction, lane: u32) {
        // Four bits for each lane.
        let select = Operand::c32(lane.wrapping_mul(0x1111_1111));
        self.hw(Opcode::v_permlanex16_b32, &[vgpr_to(tree.other)], &[dword(tree.sum), select, select]);
    }

    fn swizzle(&mut self, from: u16, to: u16, distance: i32) {
        let mut mods = Mods::default();
        mods.set(Mod::Offset, 0x1f | distance << 10);
        // All instructions of LDS read `m0` there.
        let operands = [dword(from), Operand::reg(PhysReg::M0, RegClass::S1)];
        let operands = if self.generation() <= Gfx::Gfx8 { &operands[..] } else { &operands[..1] };
        self.with_mods(Opcode::ds_swizzle_b32, Form::Native, mods, to, operands);
    }

    /// The same as [`Self::reduce_tree`] before gfx8.
    fn swizzle_tree(&mut self, tree: &Reduction, from: u16, cluster: u8) {
        let mut from = from;
        for distance in [1u8, 2, 4, 8, 16] {
            if cluster == 0 || distance < cluster {
                self.swizzle(from, tree.other, distance.into());
                self.combine(tree, dword(from));
                from = tree.sum;
            }
        }
    }

    /// The sum of the wave in a scalar register.
    fn join_halves(&mut self, tree: &Reduction, result: u16, spare: u16) {
        let lane = |number: u32| [dword(tree.sum), Operand::c32(number)];
        if !tree.wave64 {
            self.hw(Opcode::v_readlane_b32, &[sgpr_to(result)], &lane(31));
            return;
        }
        self.hw(Opcode::v_readlane_b32, &[sgpr_to(result)], &lane(63));
        if matches!(self.generation(), Gfx::Gfx8 | Gfx::Gfx9 | Gfx::Gfx906) {
            return;
        }
        self.hw(Opcode::v_readlane_b32, &[sgpr_to(spare)], &lane(31));
        let operands = [dword(spare), dword(result)];
        match tree.scalar {
            Some(scalar) if tree.op == ShaderOp::IMul => self.hw(scalar, &[sgpr_to(result)], &operands),
            Some(scalar) => self.salu(scalar, result, &operands),
            None => {
                self.vector_move(tree.other, Operand::reg(phys(spare), RegClass::S1));
                self.combine(tree, dword(tree.sum));
                self.hw(Opcode::v_readlane_b32, &[sgpr_to(result)], &lane(63));
            }
        }
    }

    /// The sum of the values up to each lane.
    fn scan_tree(&mut self, tree: &Reduction, spare: u16) {
        for distance in [1, 2, 4, 8] {
            self.step(tree, tree.sum, ROW_SHIFT_RIGHT | distance, ALL_ROWS);
        }
        if self.generation() < Gfx::Gfx10 {
            self.step(tree, tree.sum, ROW_BROADCAST_15, ODD_ROWS);
            self.step(tree, tree.sum, ROW_BROADCAST_31, UPPER_ROWS);
            return;
        }
        self.across_rows(tree, 15);
        self.add_other(tree, ODD_ROWS);
        if tree.wave64 {
            self.hw(Opcode::v_readlane_b32, &[sgpr_to(spare)], &[dword(tree.sum), Operand::c32(31)]);
            self.vector_move(tree.other, Operand::reg(phys(spare), RegClass::S1));
            self.add_other(tree, UPPER_ROWS);
        }
    }

    /// Moves the values up by one lane, in the second register.
    fn shift_lanes(&mut self, tree: &Reduction, spare: u16) {
        self.vector_move(tree.other, Operand::c32(tree.identity));
        let in_rows = self.generation() >= Gfx::Gfx10;
        let control = if in_rows { ROW_SHIFT_RIGHT | 1 } else { WAVE_SHIFT_RIGHT };
        let mods = dpp(control, ALL_ROWS);
        self.with_mods(Opcode::v_mov_b32, Form::Dpp, mods, tree.other, &[dword(tree.sum)]);
        if !in_rows {
            return;
        }
        let last = if tree.wave64 { 48 } else { 16 };
        for first in (16..=last).step_by(16) {
            let before = [dword(tree.sum), Operand::c32(first - 1)];
            self.hw(Opcode::v_readlane_b32, &[sgpr_to(spare)], &before);
            let operands = [Operand::reg(phys(spare), RegClass::S1), Operand::c32(first), dword(tree.other)];
            self.hw(Opcode::v_writelane_b32, &[vgpr_to(tree.other)], &operands);
        }
    }

    /// Adds the second register in some rows.
    fn add_other(&mut self, tree: &Reduction, rows: i32) {
        let mods = dpp(SAME_LANE, rows);
        let operands = [dword(tree.other), dword(tree.sum)];
        if self.variants.variant(tree.vector, Form::Dpp).is_some() {
            self.with_mods(tree.vector, Form::Dpp, mods, tree.sum, &operands);
            return;
        }
        // The result is computed in all rows, and moved in those.
        self.hw(tree.vector, &[vgpr_to(tree.other)], &operands);
        self.with_mods(Opcode::v_mov_b32, Form::Dpp, mods, tree.sum, &[dword(tree.other)]);
    }
}
