//! Arguments of a shader that names the registers which hold them, and that contains its own exports: the driver has lowered such a shader already.
//!
//! The driver's own arguments, which no operation reads, come first; what the hardware adds follows the last register that is named.

use super::graphics::half_attributes;
use super::{ArgLocation, Args, Argument, Interface, Uses};
use crate::compile::CompileError;
use crate::ir::PhysReg;
use crate::stages::HardwareStage;
use std::collections::BTreeMap;
use unwedge_shader::ir::{AmdInput, AmdRegisters, Function, Op, Payload, Shader, Stage};

/// How many registers have the address of the rings, and which.
const RINGS: usize = 2;
pub(crate) const RINGS_REGISTERS: AmdRegisters = AmdRegisters { vector: false, first: 0 };
/// Vector registers that an instruction can name.
const VECTORS: usize = 256;
/// The number of general scalar registers, before those with special meanings, such as `vcc` on some GPUs.
const SCALARS: usize = 102;

/// Whether a shader names the registers that hold its arguments, or exports by itself.
pub(crate) fn names_registers(func: &Function) -> bool {
    func.walk().any(|inst| matches!(func.op(inst), Op::AmdRegister | Op::AmdExport))
}

impl Args {
    /// The arguments of a shader that names registers; `None` if it does not.
    pub(super) fn registers(
        shader: &Shader,
        hardware: Result<HardwareStage, CompileError>,
        merged: Option<HardwareStage>,
    ) -> Result<Option<Args>, CompileError> {
        let func = shader.entry();
        let mut named: BTreeMap<(bool, u16), u8> = BTreeMap::new();
        if !names_registers(func) {
            return Ok(None);
        }
        let mut attributes = 0;
        for inst in func.walk() {
            match (func.op(inst), func.payload(inst)) {
                (Op::AmdRegister, Payload::Register(AmdInput { registers, .. })) => {
                    let dwords = named.entry((registers.vector, registers.first)).or_default();
                    *dwords = (*dwords).max(func.ty(func.result(inst)).lanes);
                }
                (_, Payload::Slot(access)) => attributes = attributes.max(access.slot.saturating_add(1)),
                _ => {}
            }
        }
        // A shader that was two which run merged.
        let hardware = hardware.or_else(|error| merged.ok_or(error));
        let mut args = Args::default();
        let mut next = 0;
        args.add(Argument::RingOffsets, &mut next, RINGS as u8);
        if named.get(&(RINGS_REGISTERS.vector, RINGS_REGISTERS.first)) == Some(&(RINGS as u8)) {
            // The shader reads the address of the rings itself.
            named.remove(&(RINGS_REGISTERS.vector, RINGS_REGISTERS.first));
        }
        let mut next_vector = 0;
        for ((vector, first), dwords) in named {
            let argument = Argument::Registers(AmdRegisters { vector, first });
            let end = usize::from(first) + usize::from(dwords);
            if usize::from(first) < if vector { next_vector } else { next } {
                return Err(CompileError::Overlap(if vector { "vector" } else { "scalar" }, first.into()));
            }
            if vector {
                next_vector = end;
                if end > VECTORS {
                    return Err(CompileError::Registers("vector", end - 1));
                }
                let reg = PhysReg::vgpr(first as u8);
                args.list.push(ArgLocation { argument, reg, dwords });
            } else {
                if end > SCALARS {
                    return Err(CompileError::Registers("scalar", end - 1));
                }
                next = usize::from(first);
                args.add(argument, &mut next, dwords);
            }
        }
        let uses = Uses::of(shader);
        for axis in (0..3).filter(|axis| uses.workgroup_id & 1 << axis != 0) {
            args.add(Argument::WorkgroupId(axis), &mut next, 1);
        }
        if shader.info.stage == Stage::Fragment {
            args.add(Argument::PrimitiveMask, &mut next, 1);
        }
        args.add(Argument::ScratchOffset, &mut next, 1);
        if next > SCALARS {
            return Err(CompileError::Registers("scalar", next - 1));
        }
        let compute = shader.info.stage == Stage::Compute;
        args.interface = Interface {
            hardware: if compute { None } else { Some(hardware?) },
            explicit: true,
            attributes: (0..attributes).collect(),
            half_attributes: half_attributes(func),
            ..Interface::default()
        };
        Ok(Some(args))
    }
}
