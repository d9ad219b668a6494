//! The end of a program that the code of another one follows: nothing is pending there, and no hazard is open.
//!
//! The phases that insert waits and resolve hazards look at one program only. So what may be open is closed here, by the largest distances of `data/amd/check/rules.txt` and the cures of
//! [`crate::hazards`]; waits for which nothing is pending are dropped. What cannot be closed is assumed to be open where the next program begins.

use super::Emitter;
use crate::ir::{Definition, Operand, PhysReg, RegClass};
use unwedge_isa::amdgcn::waits::{SA_SDST, VA_SDST, VA_VCC, VA_VDST, VM_VSRC};
use unwedge_isa::amdgcn::{Gfx, Opcode, Reg};

/// The operand of `s_nop` for the five wait states that no rule up to gfx9 exceeds.
const FAR: u32 = 4;

impl Emitter<'_> {
    pub(super) fn hand_over(&mut self) {
        self.wait_until_zero(|_| true);
        let null = PhysReg::of(Reg::NULL);
        match self.generation() {
            generation if generation < Gfx::Gfx10 => self.hw(Opcode::s_nop, &[], &[Operand::c32(FAR)]),
            Gfx::Gfx10 => {
                self.depctr(VM_VSRC.field.mask() | SA_SDST.field.mask());
                self.hw(Opcode::s_mov_b32, &[Definition::reg(null, RegClass::S1)], &[Operand::c32(0)]);
            }
            Gfx::Gfx10_3 => {}
            _ => {
                let fields = [VA_VDST, VA_SDST, VA_VCC, SA_SDST, VM_VSRC];
                self.depctr(fields.iter().fold(0, |mask, counted| mask | counted.field.mask()));
                // A comparison may have written `exec` before lanes are permuted.
                self.hw(Opcode::v_nop, &[], &[]);
            }
        }
    }

    /// Waits for what these bits of `s_waitcnt_depctr` stand for.
    fn depctr(&mut self, mask: u16) {
        self.hw(Opcode::s_waitcnt_depctr, &[], &[Operand::c32((!mask).into())]);
    }
}
