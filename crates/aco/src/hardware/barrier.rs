//! Barriers: waits for memory, the barrier of the workgroup, invalidation of caches.
//!
//! Every counter of the memory that is ordered is waited for until it is 0; the phase that inserts waits drops those for which nothing is pending.

use super::Emitter;
use crate::error::FinishError;
use crate::ir::{Definition, NewInst, Operand, Payload, PhysReg, RegClass};
use unwedge_isa::amdgcn::model::Mod;
use unwedge_isa::amdgcn::waits::{Counter, fields};
use unwedge_isa::amdgcn::{Gfx, Mods, Opcode, Reg};
use unwedge_shader::ir::{BarrierInfo, MemoryKinds, Order, Scope};

/// The `scope` of gfx12 cache instructions that covers the device.
const SCOPE_DEVICE: i32 = 2;

impl Emitter<'_> {
    pub(super) fn barrier(&mut self) -> Result<(), FinishError> {
        let Payload::Barrier(info) = self.program.payload(self.inst) else {
            return Err(self.not_done("without a payload"));
        };
        let wide = matches!(info.memory, Scope::Workgroup | Scope::QueueFamily | Scope::Device);
        let orders = wide && !info.kinds.is_empty();
        if orders {
            // What accesses LDS counts in the counter of LDS, whatever else it counts in.
            let only_local = MemoryKinds::SHARED.has(info.kinds);
            self.wait_until_zero(|counter| match counter {
                Counter::Exp => false,
                counter => !only_local || counter == Counter::Local,
            });
        }
        if info.execution == Scope::Workgroup {
            if self.generation() >= Gfx::Gfx12 {
                self.hw(Opcode::s_barrier_signal, &[], &[Operand::c32(u32::MAX)]);
                self.hw(Opcode::s_barrier_wait, &[], &[Operand::c32(0xffff)]);
            } else {
                self.hw(Opcode::s_barrier, &[], &[]);
            }
        }
        let acquires = info.order.any(Order::ACQUIRE.or(Order::VISIBLE));
        if orders && acquires && !MemoryKinds::SHARED.has(info.kinds) {
            self.invalidate(info);
        }
        Ok(())
    }

    /// Waits until some counters are 0.
    pub(super) fn wait_until_zero(&mut self, is_ordered: impl Fn(Counter) -> bool) {
        let generation = self.generation();
        let waits = [
            Opcode::s_waitcnt,
            Opcode::s_waitcnt_vscnt,
            Opcode::s_wait_loadcnt,
            Opcode::s_wait_samplecnt,
            Opcode::s_wait_storecnt,
            Opcode::s_wait_dscnt,
            Opcode::s_wait_kmcnt,
            Opcode::s_wait_expcnt,
        ];
        for opcode in waits {
            if !self.has(opcode) {
                continue;
            }
            let mut immediate = 0;
            let mut counts = false;
            for wait in fields(opcode, generation) {
                let ordered = is_ordered(wait.counter);
                immediate |= wait.field.put(if ordered { 0 } else { wait.field.most() });
                counts |= ordered;
            }
            if !counts {
                continue;
            }
            let number = Operand::c32(immediate.into());
            if opcode == Opcode::s_waitcnt_vscnt {
                let null = Operand::reg(PhysReg::of(Reg::NULL), RegClass::S1);
                self.hw(opcode, &[], &[null, number]);
            } else {
                self.hw(opcode, &[], &[number]);
            }
        }
    }

    /// Loads after it see what others wrote before.
    fn invalidate(&mut self, info: BarrierInfo) {
        let device = info.memory != Scope::Workgroup;
        match self.generation() {
            Gfx::Gfx12 => {
                let mut mods = Mods::default();
                mods.set(Mod::Scope, if device { SCOPE_DEVICE } else { 1 });
                let none: &[Definition] = &[];
                let new = NewInst { mods, ..NewInst::hw(Opcode::global_inv, none, &[]) };
                let inst = self.program.make_inst(&new);
                self.out.push(inst);
            }
            generation if generation >= Gfx::Gfx10 => {
                if device {
                    self.hw(Opcode::buffer_gl1_inv, &[], &[]);
                }
                self.hw(Opcode::buffer_gl0_inv, &[], &[]);
            }
            // The waves of a workgroup share the cache.
            _ if device => self.hw(Opcode::buffer_wbinvl1, &[], &[]),
            _ => {}
        }
    }
}
