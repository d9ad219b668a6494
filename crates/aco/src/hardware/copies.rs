//! Copies that happen all at once become moves in an order that keeps every value.
//!
//! Copies to registers that no other copy reads come first; what is left are cycles. A cycle of scalar registers goes through a free register, or is
//! swapped by exclusive or if `scc` is free; vector registers are swapped.

use super::{Emitter, dword, phys, sgpr_to, vgpr_to};
use crate::error::FinishError;
use crate::ir::{Definition, Operand, PhysReg, RegClass};
use crate::machine;
use unwedge_isa::amdgcn::model::Type;
use unwedge_isa::amdgcn::{Opcode, Reg};

/// What is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopySource {
    Reg(u16),
    Const(u32),
}

/// A copy to one register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DwordCopy {
    pub to: u16,
    pub from: CopySource,
}

impl DwordCopy {
    fn is_done(&self) -> bool {
        self.from == CopySource::Reg(self.to)
    }

    fn source_reg(&self) -> Option<u16> {
        match self.from {
            CopySource::Reg(reg) => Some(reg),
            CopySource::Const(_) => None,
        }
    }
}

/// Makes the copies. `free`: a scalar register that may be overwritten; `scc`: it holds something.
pub(super) fn lower(
    emitter: &mut Emitter<'_>,
    mut copies: Vec<DwordCopy>,
    mut free: Option<u16>,
    scc: bool,
) -> Result<(), FinishError> {
    let touches_scc =
        copies.iter().any(|copy| copy.to == Reg::SCC.0 || copy.source_reg() == Some(Reg::SCC.0));
    let scc = scc || touches_scc;
    loop {
        copies.retain(|copy| !copy.is_done());
        let read = |copies: &[DwordCopy], reg: u16| copies.iter().any(|copy| copy.source_reg() == Some(reg));
        let ready = (0..copies.len())
            .filter(|at| !read(&copies, copies[*at].to))
            // Constants last, as no other copy waits for them.
            .min_by_key(|at| matches!(copies[*at].from, CopySource::Const(_)));
        if let Some(at) = ready {
            let copy = copies[at];
            let partner = pair(&copies, at).filter(|other| !read(&copies, copies[*other].to));
            match partner {
                Some(other) => {
                    double(emitter, copy, copies[other]);
                    copies.remove(at.max(other));
                    copies.remove(at.min(other));
                }
                None => {
                    single(emitter, copy);
                    copies.remove(at);
                }
            }
            continue;
        }
        let Some(&copy) = copies.first() else { return Ok(()) };
        let Some(from) = copy.source_reg() else { return Ok(()) };
        let vector = Reg(copy.to).is_vgpr();
        let scalar = copies.iter().find(|copy| !Reg(copy.to).is_vgpr() && copy.to != Reg::SCC.0);
        match (free, scalar) {
            _ if vector => swap_vector(emitter, copy.to, from),
            (Some(reg), Some(cycle)) => {
                // The value that is overwritten waits in the free register.
                let saved = cycle.to;
                single(emitter, DwordCopy { to: reg, from: CopySource::Reg(saved) });
                for other in copies.iter_mut().filter(|other| other.source_reg() == Some(saved)) {
                    other.from = CopySource::Reg(reg);
                }
                drain_cycle(emitter, &mut copies, saved);
                free = (!copies.iter().any(|other| other.source_reg() == Some(reg))).then_some(reg);
                continue;
            }
            (None, Some(_)) if !scc => swap_scalar(emitter, copy.to, from),
            _ => return Err(emitter.not_done("a cycle of scalar registers, none free, and scc in use")),
        }
        exchange(&mut copies, copy.to, from);
    }
}

/// After the value of a register was saved: makes the copies of its cycle.
fn drain_cycle(emitter: &mut Emitter<'_>, copies: &mut Vec<DwordCopy>, start: u16) {
    let mut to = start;
    while let Some(at) = copies.iter().position(|copy| copy.to == to) {
        if copies.iter().any(|copy| copy.source_reg() == Some(to)) {
            return;
        }
        let copy = copies.remove(at);
        single(emitter, copy);
        match copy.source_reg() {
            Some(next) => to = next,
            None => return,
        }
    }
}

/// After two registers were swapped: the first has its value, and what they held is in the other.
fn exchange(copies: &mut Vec<DwordCopy>, to: u16, from: u16) {
    copies.retain(|copy| !(copy.to == to && copy.from == CopySource::Reg(from)));
    for copy in copies {
        copy.from = match copy.from {
            CopySource::Reg(reg) if reg == to => CopySource::Reg(from),
            CopySource::Reg(reg) if reg == from => CopySource::Reg(to),
            other => other,
        };
    }
}

/// The copy that one instruction of 64 bits can make together with another one.
fn pair(copies: &[DwordCopy], at: usize) -> Option<usize> {
    let copy = copies[at];
    if Reg(copy.to).is_vgpr() || copy.to > Reg::EXEC_HI.0 || copy.to == Reg::M0.0 {
        return None;
    }
    let other = copies.iter().position(|other| other.to == copy.to ^ 1)?;
    let (low, high) = if copy.to & 1 == 0 { (copy, copies[other]) } else { (copies[other], copy) };
    let together = match (low.from, high.from) {
        (CopySource::Reg(a), CopySource::Reg(b)) => {
            a % 2 == 0 && b == a + 1 && !Reg(a).is_vgpr() && a < Reg::EXEC_HI.0 && a != Reg::M0.0
        }
        (CopySource::Const(a), CopySource::Const(b)) => {
            let bits = u64::from(b) << 32 | u64::from(a);
            (-16..=64).contains(&(bits as i64))
        }
        _ => false,
    };
    together.then_some(other)
}

fn double(emitter: &mut Emitter<'_>, a: DwordCopy, b: DwordCopy) {
    let (low, high) = if a.to & 1 == 0 { (a, b) } else { (b, a) };
    let from = match (low.from, high.from) {
        (CopySource::Const(low), CopySource::Const(high)) => {
            Operand::c64(u64::from(high) << 32 | u64::from(low))
        }
        (CopySource::Reg(reg), _) | (_, CopySource::Reg(reg)) => Operand::reg(phys(reg), RegClass::S2),
    };
    emitter.hw(Opcode::s_mov_b64, &[Definition::reg(phys(low.to), RegClass::S2)], &[from]);
}

fn single(emitter: &mut Emitter<'_>, copy: DwordCopy) {
    let from = match copy.from {
        CopySource::Reg(reg) => dword(reg),
        CopySource::Const(bits) => Operand::c32(bits),
    };
    if Reg(copy.to).is_vgpr() {
        match copy.from {
            CopySource::Const(bits)
                if !is_inline(emitter, bits) && is_inline(emitter, bits.reverse_bits()) =>
            {
                let to = [vgpr_to(copy.to)];
                emitter.hw(Opcode::v_bfrev_b32, &to, &[Operand::c32(bits.reverse_bits())]);
            }
            _ => emitter.vector_move(copy.to, from),
        }
        return;
    }
    let scc = Definition::reg(PhysReg::SCC, RegClass::S1);
    if copy.to == Reg::SCC.0 {
        emitter.hw(Opcode::s_cmp_lg_u32, &[scc], &[from, Operand::c32(0)]);
        return;
    }
    let to = [sgpr_to(copy.to)];
    match copy.from {
        CopySource::Reg(reg) if reg == Reg::SCC.0 => {
            let condition = Operand::reg(PhysReg::SCC, RegClass::S1);
            emitter.hw(Opcode::s_cselect_b32, &to, &[Operand::c32(1), Operand::c32(0), condition]);
        }
        CopySource::Const(bits)
            if !(-16..=64).contains(&(bits as i32)) && bits as i32 == i32::from(bits as i16) =>
        {
            emitter.hw(Opcode::s_movk_i32, &to, &[Operand::c32(bits & 0xffff)]);
        }
        CopySource::Const(bits) if !is_inline(emitter, bits) && is_inline(emitter, bits.reverse_bits()) => {
            emitter.hw(Opcode::s_brev_b32, &to, &[Operand::c32(bits.reverse_bits())]);
        }
        CopySource::Const(bits) if !is_inline(emitter, bits) && field(bits).is_some() => {
            let [count, first] = field(bits).unwrap_or_default().map(Operand::c32);
            emitter.hw(Opcode::s_bfm_b32, &to, &[count, first]);
        }
        _ => emitter.hw(Opcode::s_mov_b32, &to, &[from]),
    }
}

/// Whether a word needs no literal.
fn is_inline(emitter: &Emitter<'_>, bits: u32) -> bool {
    machine::inline(&emitter.program.gpu, Type::B32, bits.into()).is_some()
}

/// How many bits are set in a word, and from which on, if they follow each other.
fn field(bits: u32) -> Option<[u32; 2]> {
    let [count, first] = [bits.count_ones(), bits.trailing_zeros()];
    (bits != 0 && bits >> first == u32::MAX >> (32 - count)).then_some([count, first])
}

fn swap_vector(emitter: &mut Emitter<'_>, a: u16, b: u16) {
    if emitter.has(Opcode::v_swap_b32) {
        emitter.hw(Opcode::v_swap_b32, &[vgpr_to(a), vgpr_to(b)], &[dword(a), dword(b)]);
        return;
    }
    for (to, other) in [(a, b), (b, a), (a, b)] {
        emitter.hw(Opcode::v_xor_b32, &[vgpr_to(to)], &[dword(other), dword(to)]);
    }
}

fn swap_scalar(emitter: &mut Emitter<'_>, a: u16, b: u16) {
    for (to, other) in [(a, b), (b, a), (a, b)] {
        emitter.salu(Opcode::s_xor_b32, to, &[dword(other), dword(to)]);
    }
}
