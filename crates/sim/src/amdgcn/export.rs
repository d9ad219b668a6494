//! Exports and messages: what waves tell the rest of the GPU. It is recorded, and has no effect.

use super::access::{Access, Dst, MemorySpace};
use super::apply::{self};
use super::counters::WaitCounter;
use super::decoded::DecodedInst;
use super::fault::FaultKind;
use super::issue;
use super::lanes::bits;
use super::machine::Machine;
use super::message::{MessageKind, WaveMessage};
use super::pending::Locks;
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Class, Mod};
use unwedge_isa::amdgcn::{Inst, Operand, Reg};

/// Exports and messages of a workgroup that are kept.
const KEPT: usize = 4096;
/// Exports are in order among themselves.
const IN_ORDER: u8 = 6;

/// An export with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExportOp {
    target: u8,
    sources: [Option<Reg>; 4],
    compressed: bool,
    done: bool,
    valid_mask: bool,
    row: bool,
}

impl ExportOp {
    pub(super) fn new(inst: &Inst) -> Option<ExportOp> {
        let mods = &inst.mods;
        let mut made = ExportOp {
            target: 0,
            sources: [None; 4],
            compressed: mods.has(Mod::Compr),
            done: mods.has(Mod::Done),
            valid_mask: mods.has(Mod::Vm),
            row: mods.has(Mod::RowEn),
        };
        let enabled = mods.get(Mod::En);
        let mut count = 0;
        for (slot, operand) in inst.written() {
            match (slot.class, operand) {
                (Class::ExpTarget, Operand::Imm(value)) => made.target = value as u8,
                (Class::ExpSrc, operand) => {
                    if let (Operand::Reg { reg, .. }, true) = (operand, enabled >> count & 1 != 0) {
                        *made.sources.get_mut(count)? = Some(reg);
                    }
                    count += 1;
                }
                _ => return None,
            }
        }
        Some(made)
    }
}

fn record(machine: &mut Machine<'_>, wave: &Wave, kind: MessageKind) {
    if machine.messages.len() < KEPT {
        let lanes = wave.exec(&machine.gpu);
        machine.messages.push(WaveMessage {
            workgroup: machine.number(),
            wave: wave.id,
            at: machine.offset(),
            lanes,
            kind,
        });
    }
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, decoded: &DecodedInst, export: &ExportOp) {
    let lanes = wave.exec(&machine.gpu);
    let mut values = [const { None }; 4];
    for (place, reg) in values.iter_mut().zip(export.sources) {
        let Some(reg) = reg else { continue };
        let at = usize::from(reg.index());
        let Some(held) = wave.v.get(at) else { return machine.fault(wave, FaultKind::NoRegister) };
        *place = Some(held.to_vec());
        let unknown = wave.unknown.as_ref().and_then(|state| state.v.get(at));
        if unknown.is_some_and(|unknown| bits(lanes).any(|lane| unknown[lane] != 0)) {
            machine.fault(wave, FaultKind::Stored(reg, wave.why(reg)));
        }
    }
    let row = export.row.then(|| apply::address_scalar(machine, wave, Reg::M0));
    let ExportOp { target, compressed, done, valid_mask, .. } = *export;
    record(machine, wave, MessageKind::Export { target, values, compressed, done, valid_mask, row });
    // Registers are read late: until the counter says so they must stay as they are.
    let access = Access::made(decoded.at, MemorySpace::Gds, Dst::None, 0, 0);
    let mut locks = Locks::new(WaitCounter::Exp);
    export.sources.into_iter().flatten().for_each(|reg| locks.add(reg, 1));
    issue::issue(machine, wave, access, &[(WaitCounter::Exp, IN_ORDER)], Some(locks));
}

pub(super) fn message(machine: &mut Machine<'_>, wave: &Wave, code: u32) {
    record(machine, wave, MessageKind::Message { code, m0: wave.sreg(Reg::M0) });
}
