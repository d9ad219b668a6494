//! Intrinsics that stand for instructions of AMD GPUs, and what a shader reads from registers when it starts.

use super::abi::{Argument, Arguments};
use super::error::{NirError, Result, invalid, unsupported};
use super::intrinsics::missing;
use super::parse::{self, InstText, Item};
use super::translate::Translator;
use crate::ir::{AmdBuffer, AmdExport, AmdRegisters, Base, Op, Payload, SlotAccess, SlotDir, Type, Value};
use std::collections::BTreeMap;

/// The first scalar register with an argument: the driver gives the address of its rings in those before.
const FIRST_SCALAR: u16 = 2;
/// Flags of exports.
const COMPRESSED: u64 = 1;
const DONE: u64 = 2;
const VALID: u64 = 4;
/// The word of a pair of words.
const PAIR: Type = Type { base: Base::B32, lanes: 2 };

/// Intrinsics that are one of the operations of AMD GPUs.
const SAME: &[(&str, Op)] = &[("lane_permute_16_amd", Op::AmdPermuteLane16)];

impl Arguments {
    /// The arguments of a text in registers, one after the other in the order of their numbers. The driver's own order cannot be told from
    /// the text. What is read of each register is what it holds, whatever that means.
    ///
    /// # Errors
    /// When the text is not valid.
    pub fn registers(text: &str) -> std::result::Result<Arguments, NirError> {
        let program = parse::parse(text)?;
        let mut sizes: BTreeMap<u64, (bool, u16)> = BTreeMap::new();
        for (item, line) in program.items.iter().zip(&program.lines) {
            let Item::Inst(inst) = item else { continue };
            let vector = inst.name == "load_vector_arg_amd";
            let Some((_, ty)) = inst.def.filter(|_| vector || inst.name == "load_scalar_arg_amd") else {
                continue;
            };
            let number = program.index(inst, "base").map_err(|cause| cause.at(*line))?.unwrap_or(0);
            let size = sizes.entry(number).or_insert((vector, 0));
            size.1 = size.1.max(u16::from(ty.lanes) * (ty.base.bits().div_ceil(32) as u16));
        }
        let mut next = [FIRST_SCALAR, 0];
        let mut arguments = Vec::new();
        for (number, (vector, words)) in sizes {
            let Some(at) = usize::try_from(number).ok().filter(|at| *at < MAX_ARGUMENTS) else { continue };
            arguments.resize(at, Argument::Other);
            let first = &mut next[usize::from(vector)];
            arguments.push(Argument::Register(AmdRegisters { vector, first: *first }));
            *first += words;
        }
        Ok(Arguments(arguments))
    }

    /// Whether arguments are what registers hold.
    pub(super) fn are_registers(&self) -> bool {
        self.0.iter().any(|argument| matches!(argument, Argument::Register(_)))
    }
}

/// More arguments than registers are not read.
const MAX_ARGUMENTS: usize = 256;

impl<'t> Translator<'_, 't> {
    /// An intrinsic of AMD GPUs, and its result if it has one; `None` if it is another one.
    pub fn amd(&mut self, inst: &InstText<'t>) -> Result<Option<Option<Value>>> {
        let operands = &self.program.operands[inst.operands.clone()];
        let hardware = self.hardware;
        if let Some(op) = super::intrinsics::lookup(SAME, inst.name) {
            let args = self.operands(inst)?;
            self.arity(inst, op.row().operands.len())?;
            return Ok(Some(Some(self.build().value(op, Payload::None, &args, Type::B32))));
        }
        let result = match inst.name {
            "load_smem_amd" if hardware => {
                self.arity(inst, 2)?;
                let args = self.operands(inst)?;
                let address = self.pair(args[0])?;
                let offset = self.index_plus(inst, args[1])?;
                Some(self.result(inst, Op::AmdLoadScalar, Payload::None, &[address, offset])?)
            }
            "load_buffer_amd" if hardware => {
                self.arity(inst, 4)?;
                let args = self.buffer_path(&operands[..4])?;
                let payload = self.buffer(inst)?;
                Some(self.result(inst, Op::AmdLoadBuffer, payload, &args)?)
            }
            "store_buffer_amd" if hardware => {
                self.arity(inst, 5)?;
                self.store_raw(inst)?;
                None
            }
            "mbcnt_amd" if hardware => {
                self.arity(inst, 2)?;
                let args = self.operands(inst)?;
                let mask = self.pair(args[0])?;
                Some(self.build().value(Op::AmdMaskedCount, Payload::None, &[mask, args[1]], Type::B32))
            }
            "is_subgroup_invocation_lt_amd" => {
                self.arity(inst, 1)?;
                let args = self.operands(inst)?;
                let bit = self.small(inst, "base")?;
                Some(self.build().value(Op::AmdLaneBelow, Payload::Number(bit), &args, Type::BOOL))
            }
            "sendmsg_amd" => {
                self.arity(inst, 1)?;
                let args = self.operands(inst)?;
                let message = self.small(inst, "base")?;
                self.build().inst(Op::AmdSendMessage, Payload::Number(message), &args, &[]);
                None
            }
            "export_amd" => {
                self.arity(inst, 1)?;
                let args = self.operands(inst)?;
                let flags = self.program.index(inst, "flags")?.unwrap_or(0);
                let mask = self.program.text(inst, "wrmask").ok_or_else(|| missing(inst, "wrmask"))?;
                let export = AmdExport {
                    target: self.small(inst, "base")?,
                    enabled: mask.chars().filter_map(|c| "xyzw".find(c)).fold(0, |mask, at| mask | 1 << at),
                    compressed: flags & COMPRESSED != 0,
                    done: flags & DONE != 0,
                    valid: flags & VALID != 0,
                };
                self.build().inst(Op::AmdExport, Payload::Export(export), &args, &[]);
                None
            }
            "load_interpolated_input" => {
                self.arity(inst, 2)?;
                let args = self.operands(inst)?;
                let payload = self.attribute(inst)?;
                Some(self.result(inst, Op::LoadInterpolated, payload, &args)?)
            }
            "load_input" => {
                self.arity(inst, 1)?;
                let args = self.operands(inst)?;
                let payload = self.attribute(inst)?;
                Some(self.result(inst, Op::LoadSlot, payload, &args)?)
            }
            // Lanes that terminate do nothing that can be seen after it, as helpers.
            "terminate" | "demote" => {
                self.build().inst(Op::Demote, Payload::None, &[], &[]);
                None
            }
            "terminate_if" | "demote_if" => {
                self.arity(inst, 1)?;
                let condition = self.operands(inst)?[0];
                self.demote_if(condition);
                None
            }
            "ddx" | "ddy" => {
                self.arity(inst, 1)?;
                let args = self.operands(inst)?;
                let op = if inst.name == "ddx" { Op::Ddx } else { Op::Ddy };
                Some(self.build().alu(op, &args))
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    fn demote_if(&mut self, condition: Value) {
        let (inst, then, other) = self.build().if_(condition, &[]);
        let outer = self.region;
        self.region = then;
        self.build().inst(Op::Demote, Payload::None, &[], &[]);
        self.build().break_(inst, &[]);
        self.region = other;
        self.build().break_(inst, &[]);
        self.region = outer;
    }

    /// The descriptor that a value of words is.
    pub fn descriptor_of(&mut self, words: Value) -> Result<Value> {
        let ty = self.func.ty(words);
        if ty.base != Base::B32 || !matches!(ty.lanes, 4 | 8) {
            return unsupported(format!("a descriptor of the type {ty}"));
        }
        Ok(self.build().value(Op::AmdDescriptor, Payload::None, &[words], Type::HANDLE))
    }

    /// What registers hold.
    pub fn register(&mut self, inst: &InstText<'_>, registers: AmdRegisters) -> Result<Value> {
        let Some((_, ty)) = inst.def else { return invalid("an argument has no result") };
        if ty.base == Base::B32 {
            return Ok(self.build().value(Op::AmdRegister, Payload::Register(registers), &[], ty));
        }
        let words = Type::new(Base::B32, ty.bits().div_ceil(32)).filter(|words| words.bits() == ty.bits());
        let Some(words) = words else { return unsupported(format!("an argument of the type {ty}")) };
        let value = self.build().value(Op::AmdRegister, Payload::Register(registers), &[], words);
        Ok(self.build().bitcast(ty, value))
    }

    fn result(&mut self, inst: &InstText<'_>, op: Op, payload: Payload, args: &[Value]) -> Result<Value> {
        let Some((_, ty)) = inst.def else { return invalid(format!("@{} has no result", inst.name)) };
        Ok(self.build().value(op, payload, args, ty))
    }

    fn small(&self, inst: &InstText<'_>, key: &str) -> Result<u8> {
        let number = self.program.index(inst, key)?.unwrap_or(0);
        u8::try_from(number).or_else(|_| unsupported(format!("{key}={number}")))
    }

    fn pair(&mut self, value: Value) -> Result<Value> {
        match self.func.ty(value) {
            ty if ty == PAIR => Ok(value),
            Type { base: Base::B64, lanes: 1 } => Ok(self.build().bitcast(PAIR, value)),
            ty => unsupported(format!("an address or mask of the type {ty}")),
        }
    }

    fn index_plus(&mut self, inst: &InstText<'_>, offset: Value) -> Result<Value> {
        let base = self.program.index(inst, "base")?.unwrap_or(0);
        self.plus(offset, base)
    }

    /// Descriptor, two offsets, and the number of the element.
    fn buffer_path(&mut self, operands: &[parse::Operand<'t>]) -> Result<Vec<Value>> {
        let mut path = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            path.push(if at == 0 { self.descriptor(operand)? } else { self.operand(operand)? });
        }
        Ok(path)
    }

    fn buffer(&self, inst: &InstText<'_>) -> Result<Payload> {
        let base = self.program.index(inst, "base")?.unwrap_or(0);
        let Ok(offset) = u32::try_from(base) else { return unsupported(format!("base={base}")) };
        Ok(Payload::Buffer(AmdBuffer { offset, access: self.access(inst)? }))
    }

    /// A store to a buffer, of the first components alone.
    fn store_raw(&mut self, inst: &InstText<'t>) -> Result<()> {
        let operands = &self.program.operands[inst.operands.clone()];
        let mut value = self.operand(&operands[0])?;
        let path = self.buffer_path(&operands[1..])?;
        let lanes = self.func.ty(value).lanes;
        let mask = self.program.text(inst, "wrmask").unwrap_or("");
        if mask.is_empty() || !"xyzw".starts_with(mask) || mask.len() > usize::from(lanes) {
            return unsupported(format!("wrmask={mask}"));
        }
        if mask.len() < usize::from(lanes) {
            let stored: Vec<Value> =
                (0..mask.len() as u8).map(|lane| self.build().extract(value, lane)).collect();
            value = self.build().vec(&stored);
        }
        let payload = self.buffer(inst)?;
        let args: Vec<Value> = std::iter::once(value).chain(path).collect();
        self.build().inst(Op::AmdStoreBuffer, payload, &args, &[]);
        Ok(())
    }

    /// The slot of an attribute of a pixel: its number.
    fn attribute(&self, inst: &InstText<'_>) -> Result<Payload> {
        let slot = self.small(inst, "base")?;
        let component = self.small(inst, "component")?;
        Ok(Payload::Slot(SlotAccess {
            dir: SlotDir::Input,
            vertex: false,
            patch: false,
            component,
            slot: slot.into(),
            count: 1,
            index: 0,
        }))
    }
}
