//! Intrinsics that stand for instructions of AMD GPUs, and what a shader reads from registers when it starts.

use super::abi::{Argument, Arguments};
use super::error::{NirError, Result, invalid, unsupported};
use super::intrinsics::missing;
use super::parse::{self, InstText, Item};
use super::translate::{LOAD_PASSED, LOCATION, MERGED_WAVE, Translator};
use crate::ir::{
    Access, AmdBuffer, AmdExport, AmdInput, AmdNumber, AmdRegisters, AmdTyped, Base, MemAccess, Op, Payload,
    SlotAccess, SlotDir, Space, Type, Value,
};
use std::collections::BTreeMap;

/// The first scalar register with an argument: the driver passes the address of its rings in the registers before it.
const FIRST_SCALAR: u16 = 2;
/// Flags of exports.
const COMPRESSED: u64 = 1;
const DONE: u64 = 2;
const VALID: u64 = 4;
/// The word of a pair of words.
const PAIR: Type = Type { base: Base::B32, lanes: 2 };

/// The words of a descriptor of a buffer.
const QUAD: Type = Type { base: Base::B32, lanes: 4 };

/// Intrinsics that are one of the operations of AMD GPUs.
const SAME: &[(&str, Op)] = &[("lane_permute_16_amd", Op::AmdPermuteLane16)];

impl Arguments {
    /// The arguments of a text in registers, one after the other in the order of their numbers. The real order of the driver cannot be derived from
    /// the text. Every argument stands for the contents of its registers, whatever they mean.
    ///
    /// # Errors
    /// When the text is not valid.
    pub fn registers(text: &str) -> std::result::Result<Arguments, NirError> {
        let programs = parse::parse(text)?;
        let mut sizes: BTreeMap<u64, (bool, u16)> = BTreeMap::new();
        if programs.len() > 1 {
            sizes.insert(MERGED_WAVE, (false, 1));
        }
        let items = programs.iter().flat_map(|program| {
            program.items.iter().zip(&program.lines).map(move |(item, line)| (program, item, line))
        });
        for (program, item, line) in items {
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
            if at == 0 && !vector && words == FIRST_SCALAR {
                // That is the address of the rings.
                arguments.push(Argument::Register(AmdRegisters { vector, first: 0 }));
                continue;
            }
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

/// More arguments than there are registers are refused.
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
            "load_typed_buffer_amd" if hardware => {
                self.arity(inst, 4)?;
                let args = self.buffer_path(&operands[..4])?;
                let payload = self.typed(inst)?;
                Some(self.result(inst, Op::AmdLoadTyped, payload, &args)?)
            }
            "load_constant" if hardware => {
                self.arity(inst, 1)?;
                let offset = self.operand(&operands[0])?;
                let offset = self.plus(offset, self.program.index(inst, "base")?.unwrap_or(0))?;
                let Some((_, ty)) = inst.def else { return invalid("a load has no result") };
                let words = self.build().value(Op::AmdConstants, Payload::None, &[], QUAD);
                let descriptor = self.descriptor_of(words)?;
                let mem = MemAccess {
                    space: Space::Uniform,
                    access: Access::READONLY,
                    align: self.align(inst, ty.base)?,
                };
                Some(self.build().value(Op::Load, Payload::Mem(mem), &[descriptor, offset], ty))
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
            "store_output" if self.followed => {
                self.pass_output(inst)?;
                None
            }
            LOAD_PASSED => Some(self.passed_input(inst)?),
            "gds_atomic_add_amd" if hardware => {
                self.arity(inst, 3)?;
                let args = self.operands(inst)?;
                let offset = self.index_plus(inst, args[1])?;
                Some(self.result(inst, Op::AmdAtomicAddGds, Payload::None, &[args[0], offset, args[2]])?)
            }
            "shared_append_amd" | "shared_consume_amd" if hardware => {
                self.arity(inst, 0)?;
                let offset = self.build().u32(0);
                let offset = self.index_plus(inst, offset)?;
                let append = inst.name == "shared_append_amd";
                let op = if append { Op::AmdAppendShared } else { Op::AmdConsumeShared };
                Some(self.result(inst, op, Payload::None, &[offset])?)
            }
            // Coordinates as all lanes of a quad have them here. Where an access reads them, lanes may be inactive, so it takes their derivatives from here.
            "strict_wqm_coord_amd" if hardware => {
                self.arity(inst, 1)?;
                if self.program.index(inst, "base")?.unwrap_or(0) != 0 {
                    return unsupported("coordinates in whole-quad mode after other operands");
                }
                let coordinates = self.operands(inst)?[0];
                let gradients = [Op::Ddx, Op::Ddy].map(|op| self.build().alu(op, &[coordinates]));
                self.quad_coordinates.insert(coordinates, gradients);
                Some(coordinates)
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

    /// Components of an output that the same invocation of the next shader reads.
    fn pass_output(&mut self, inst: &InstText<'t>) -> Result<()> {
        self.arity(inst, 2)?;
        let operands = &self.program.operands[inst.operands.clone()];
        let value = self.operand(&operands[0])?;
        let location = self.slot_name(inst, &operands[1])?;
        let first = self.small(inst, "component")?;
        let mask = self.program.text(inst, "wrmask").ok_or_else(|| missing(inst, "wrmask"))?;
        let ty = self.func.ty(value);
        if ty.base != Base::B32 {
            return unsupported(format!("an output of the type {ty}"));
        }
        for (lane, name) in (0..ty.lanes).zip("xyzw".chars()) {
            let var = self.passed_on.component(location, first.saturating_add(lane));
            if let Some(var) = var.filter(|_| mask.contains(name)) {
                let mut builder = self.build();
                let component = builder.extract(value, lane);
                builder.inst(Op::StoreVar, Payload::Var(var, 1), &[component], &[]);
            }
        }
        Ok(())
    }

    /// An input that the same invocation of the previous shader has left.
    fn passed_input(&mut self, inst: &InstText<'t>) -> Result<Value> {
        self.arity(inst, 2)?;
        let operands = &self.program.operands[inst.operands.clone()];
        let location = self.slot_name(inst, &operands[1])?;
        let first = self.small(inst, "component")?;
        let Some((_, ty)) = inst.def else { return invalid("an input has no result") };
        if ty.base != Base::B32 {
            return unsupported(format!("an input of the type {ty}"));
        }
        let mut components = Vec::new();
        for lane in 0..ty.lanes {
            let Some(var) = self.passed_on.component(location, first.saturating_add(lane)) else {
                return unsupported("an input that no shader before it leaves in registers");
            };
            components.push(self.build().value(Op::LoadVar, Payload::Var(var, 0), &[], Type::B32));
        }
        Ok(self.build().vec(&components))
    }

    /// The name of a location without an index.
    fn slot_name(&self, inst: &InstText<'t>, index: &parse::Operand<'t>) -> Result<&'t str> {
        if self.program.constant(index.id) != Some(0) {
            return unsupported(format!("@{} with an index", inst.name));
        }
        // The number of locations follows the name.
        let location = self.program.text(inst, LOCATION).and_then(|text| text.split(' ').next());
        location.ok_or_else(|| missing(inst, LOCATION))
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
        // Zero means no bound.
        let most = self.program.index(inst, "arg_upper_bound_u32_amd")?.unwrap_or(0);
        let most = u32::try_from(most).ok().filter(|most| *most > 0).unwrap_or(u32::MAX);
        let registers = AmdInput { registers, most };
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

    /// The operands of an access: descriptor, two offsets, and the number of the element.
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

    /// A format such as `r8g8b8a8_unorm`, whose components have one width.
    fn typed(&self, inst: &InstText<'_>) -> Result<Payload> {
        let name = self.program.text(inst, "format").ok_or_else(|| missing(inst, "format"))?;
        let Payload::Buffer(buffer) = self.buffer(inst)? else {
            return unsupported(format!("format={name}"));
        };
        let (components, number) = name.split_once('_').unwrap_or((name, ""));
        let widths = components.split(|c: char| c.is_ascii_alphabetic()).skip(1);
        let widths: Vec<Option<u8>> = widths.map(|width| width.parse().ok()).collect();
        let (bits, lanes) = (widths.first().copied().flatten(), widths.len());
        let same = widths.iter().all(|width| *width == bits);
        match (bits, AmdNumber::from_name(number)) {
            (Some(bits @ (8 | 16 | 32)), Some(number)) if same && lanes <= 4 => {
                let align = self.align(inst, Base::B8)?;
                Ok(Payload::Typed(AmdTyped { buffer, lanes: lanes as u8, bits, number, align }))
            }
            _ => unsupported(format!("format={name}")),
        }
    }

    /// A store of the first components to a buffer.
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
