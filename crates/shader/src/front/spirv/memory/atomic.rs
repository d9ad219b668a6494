//! Atomic operations on variables, bytes and texels.

use super::super::error::Result;
use super::super::module::Instr;
use super::super::translate::{Translator, Val, ValKind};
use crate::ir::{Access, AtomicOp, ImageAccess, ImageFlags, Op as IrOp, Payload, Value};
use spirv::Op;

/// How atomic operations access memory.
const ATOMIC: Access = Access::ATOMIC.or(Access::COHERENT);

impl Translator<'_> {
    /// Atomic operations; `false` if the instruction is something else.
    pub(super) fn atomic(&mut self, inst: Instr<'_>) -> Result<bool> {
        let op = match inst.op {
            Op::AtomicLoad => {
                let val = self.pointer(inst.word(3)?)?;
                let ty = self.result_type(inst)?;
                if let ValKind::Texel { image } = val.kind {
                    let (args, payload) = self.texel(&val, image)?;
                    let leaf = self.result_leaf(inst)?;
                    let value = self.emit(IrOp::ImageLoad, Payload::Image(payload), &args, leaf)?;
                    self.set_value(inst, value)?;
                    return Ok(true);
                }
                let leaves = self.load(val, ty, (ATOMIC, None), true)?;
                self.set_leaves(inst, &leaves)?;
                return Ok(true);
            }
            Op::AtomicStore => {
                let (val, value) = (self.pointer(inst.word(1)?)?, self.operand(inst, 4)?);
                if let ValKind::Texel { image } = val.kind {
                    let (mut args, payload) = self.texel(&val, image)?;
                    args.insert(0, value);
                    self.write(IrOp::ImageStore, Payload::Image(payload), &args, &[])?;
                } else {
                    self.store(val, &[value], (ATOMIC, None))?;
                }
                return Ok(true);
            }
            Op::AtomicExchange | Op::AtomicCompareExchange => AtomicOp::Exchange,
            Op::AtomicIIncrement | Op::AtomicIDecrement | Op::AtomicIAdd | Op::AtomicISub => AtomicOp::Add,
            Op::AtomicSMin => AtomicOp::IMin,
            Op::AtomicUMin => AtomicOp::UMin,
            Op::AtomicSMax => AtomicOp::IMax,
            Op::AtomicUMax => AtomicOp::UMax,
            Op::AtomicAnd => AtomicOp::And,
            Op::AtomicOr => AtomicOp::Or,
            Op::AtomicXor => AtomicOp::Xor,
            Op::AtomicFAddEXT => AtomicOp::FAdd,
            Op::AtomicFMinEXT => AtomicOp::FMin,
            Op::AtomicFMaxEXT => AtomicOp::FMax,
            _ => return Ok(false),
        };
        let val = self.pointer(inst.word(3)?)?;
        let val = if let ValKind::Resource { .. } = val.kind { self.buffer(val)? } else { val };
        let leaf = self.result_leaf(inst)?;
        let mut args = Vec::new();
        match inst.op {
            Op::AtomicIIncrement => args.push(self.constant(leaf.base, 1)),
            Op::AtomicIDecrement => args.push(self.constant(leaf.base, u64::MAX)),
            Op::AtomicISub => {
                let value = self.operand(inst, 6)?;
                args.push(self.alu(IrOp::INeg, &[value])?);
            }
            Op::AtomicCompareExchange => args.extend([self.operand(inst, 7)?, self.operand(inst, 8)?]),
            _ => args.push(self.operand(inst, 6)?),
        }
        let compares = inst.op == Op::AtomicCompareExchange;
        let result = if let ValKind::Texel { image } = val.kind {
            let (texel, payload) = self.texel(&val, image)?;
            args.extend(texel);
            let ir = if compares { IrOp::ImageAtomicCompare } else { IrOp::ImageAtomic };
            self.emit(ir, Payload::ImageAtomic(op, payload), &args, leaf)?
        } else {
            let bytes = self.bytes(&val)?;
            let mut mem = Self::mem(&bytes, leaf.base, 0);
            mem.access = mem.access.or(ATOMIC).without(Access::READONLY);
            self.address(&bytes, 0, &mut args)?;
            let ir = if compares { IrOp::AtomicCompare } else { IrOp::Atomic };
            self.emit(ir, Payload::Atomic(op, mem), &args, leaf)?
        };
        self.set_value(inst, result)?;
        Ok(true)
    }

    /// Operands and payload of an access to a texel.
    fn texel(
        &mut self,
        val: &Val,
        image: super::super::types::ImageType,
    ) -> Result<(Vec<Value>, ImageAccess)> {
        let mut flags = image.flags();
        let mut args = self.values(val).to_vec();
        if image.multisampled {
            flags = flags.or(ImageFlags::SAMPLE);
        } else {
            args.truncate(2);
        }
        Ok((args, ImageAccess { dim: image.dim, flags, access: ATOMIC, component: 0, format: image.format }))
    }
}
