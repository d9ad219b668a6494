//! Intrinsics that stand for instructions of AMD GPUs, and what a shader reads from registers when it starts.

use super::abi::{Argument, Arguments, LOAD_RAY_TABLE, MAX_ARGUMENTS, RAY_TABLE};
use super::error::{NirError, Result, invalid, unsupported};
use super::intrinsics::missing;
use super::parse::{self, InstText, Item};
use super::translate::{LOAD_PASSED, LOCATION, MERGED_WAVE, Translator};
use crate::ir::{
    Access, AmdBuffer, AmdExport, AmdInput, AmdNumber, AmdRegisters, AmdTyped, Base, MemAccess, Op, Payload,
    SlotAccess, SlotDir, Space, Stage, Type, Value,
};
use std::collections::BTreeMap;

/// The first scalar register with an argument: the driver passes the address of its rings in the registers before it.
const FIRST_SCALAR: u16 = 2;
/// The most words that one access to a buffer moves.
const WORDS_AT_ONCE: u8 = 4;
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
    /// the text. The value of an argument is what its registers hold, whatever that means.
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
            let table = inst.name == LOAD_RAY_TABLE;
            let is_argument = vector || table || inst.name == "load_scalar_arg_amd";
            let Some((_, ty)) = inst.def.filter(|_| is_argument) else {
                continue;
            };
            let number = program.index(inst, "base").map_err(|cause| cause.at(*line))?;
            let number = if table { RAY_TABLE } else { number.unwrap_or(0) };
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
                let Some((_, ty)) = inst.def else { return invalid("a load has no result") };
                Some(self.load_raw(inst, ty, &args)?)
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
                let mask = if self.func.ty(args[0]) == Type::B32 {
                    let zero = self.build().u32(0);
                    self.build().vec(&[args[0], zero])
                } else {
                    self.pair(args[0])?
                };
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
                self.arity(inst, 0)?;
                if self.program.stage == Some(Stage::Fragment) {
                    self.build().inst(Op::Demote, Payload::None, &[], &[]);
                } else {
                    let always = self.build().constant(Base::B1, 1);
                    self.end_if_true(always);
                }
                None
            }
            "terminate_if" | "demote_if" => {
                self.arity(inst, 1)?;
                let condition = self.operands(inst)?[0];
                self.end_if_true(condition);
                None
            }
            "load_shared2_amd" => {
                self.arity(inst, 1)?;
                let Some((_, ty)) = inst.def else { return invalid("a load has no result") };
                let offsets = self.two_offsets(inst, ty, &operands[0])?;
                let mem = self.shared(ty);
                let lanes =
                    offsets.map(|at| self.build().value(Op::Load, Payload::Mem(mem), &[at], ty.lane()));
                Some(self.build().vec(&lanes))
            }
            "store_shared2_amd" => {
                self.arity(inst, 2)?;
                let value = self.operand(&operands[0])?;
                let ty = self.func.ty(value);
                let offsets = self.two_offsets(inst, ty, &operands[1])?;
                let mem = self.shared(ty);
                for (lane, at) in (0..).zip(offsets) {
                    let component = self.build().extract(value, lane);
                    self.build().inst(Op::Store, Payload::Mem(mem), &[component, at], &[]);
                }
                None
            }
            "load_input_vertex" => {
                self.arity(inst, 2)?;
                let args = self.operands(inst)?;
                let Payload::Slot(slot) = self.attribute(inst)? else { return Ok(None) };
                let slot = SlotAccess { vertex: true, ..slot };
                Some(self.result(inst, Op::LoadSlot, Payload::Slot(slot), &args)?)
            }
            "bvh64_intersect_ray_amd" => {
                self.arity(inst, 6)?;
                let args = self.operands(inst)?;
                let descriptor = self.descriptor_of(args[0])?;
                let node = self.pair(args[1])?;
                let args = [descriptor, node, args[2], args[3], args[4], args[5]];
                Some(self.result(inst, Op::AmdIntersectRay, Payload::None, &args)?)
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
        let value = match ty.base {
            Base::B32 => value,
            Base::B16 => self.build().convert(Op::U2U, Base::B32, value),
            _ => return unsupported(format!("an output of the type {ty}")),
        };
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
        if !matches!(ty.base, Base::B16 | Base::B32) {
            return unsupported(format!("an input of the type {ty}"));
        }
        let mut components = Vec::new();
        for lane in 0..ty.lanes {
            let Some(var) = self.passed_on.component(location, first.saturating_add(lane)) else {
                return unsupported("an input that no shader before it leaves in registers");
            };
            components.push(self.build().value(Op::LoadVar, Payload::Var(var, 0), &[], Type::B32));
        }
        let value = self.build().vec(&components);
        Ok(if ty.base == Base::B16 { self.build().convert(Op::U2U, Base::B16, value) } else { value })
    }

    /// The name of a location without an index.
    fn slot_name(&self, inst: &InstText<'t>, index: &parse::Operand<'t>) -> Result<&'t str> {
        if self.program.constant(index.id) != Some(0) {
            return unsupported(format!("@{} with an index", inst.name));
        }
        // The number of locations follows the name.
        let text = self.program.text(inst, LOCATION);
        if text.is_some_and(|text| text.contains("high_16bits")) {
            return unsupported("an output in upper halves");
        }
        let location = text.and_then(|text| text.split(' ').next());
        location.ok_or_else(|| missing(inst, LOCATION))
    }

    /// Ends the invocation if a condition holds. In a fragment shader it becomes a helper.
    fn end_if_true(&mut self, condition: Value) {
        let is_fragment = self.program.stage == Some(Stage::Fragment);
        let (inst, then, other) = self.build().if_(condition, &[]);
        let outer = self.region;
        self.region = then;
        if is_fragment {
            self.build().inst(Op::Demote, Payload::None, &[], &[]);
            self.build().break_(inst, &[]);
        } else {
            self.build().inst(Op::Terminate, Payload::None, &[], &[]);
        }
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

    /// The two addresses of a pair of accesses to the memory of the workgroup: numbers of elements, or of 64 elements, from an offset on.
    fn two_offsets(
        &mut self,
        inst: &InstText<'t>,
        ty: Type,
        operand: &parse::Operand<'t>,
    ) -> Result<[Value; 2]> {
        if ty.lanes != 2 || !matches!(ty.base, Base::B32 | Base::B64) {
            return invalid(format!("@{} of the type {ty}", inst.name));
        }
        let offset = self.operand(operand)?;
        let far = matches!(self.program.text(inst, "st64"), Some("1" | "true"));
        let unit = u64::from(ty.base.bytes()) * if far { 64 } else { 1 };
        let first = self.small(inst, "offset0")?;
        let second = self.small(inst, "offset1")?;
        Ok([self.plus(offset, u64::from(first) * unit)?, self.plus(offset, u64::from(second) * unit)?])
    }

    /// An access to the memory of the workgroup, aligned as elements are.
    fn shared(&self, ty: Type) -> MemAccess {
        let align = ty.base.bytes().max(1).trailing_zeros() as u8;
        MemAccess { space: Space::Shared, access: Access::NONE, align }
    }

    /// A load from a buffer. Components of 64 bits are two words each.
    fn load_raw(&mut self, inst: &InstText<'t>, ty: Type, path: &[Value]) -> Result<Value> {
        let Payload::Buffer(buffer) = self.buffer(inst)? else { return invalid("a load without an access") };
        let words = Type::new(Base::B32, ty.bits() / 32);
        let Some(words) = words.filter(|words| words.bits() == ty.bits() && ty.base != Base::B1) else {
            return unsupported(format!("@{} of the type {ty}", inst.name));
        };
        let whole = ty;
        let mut lanes = Vec::new();
        for first in (0..words.lanes).step_by(WORDS_AT_ONCE.into()) {
            let count = (words.lanes - first).min(WORDS_AT_ONCE);
            let Some(offset) = buffer.offset.checked_add(u32::from(first) * 4) else {
                return invalid("the base of an access is too large");
            };
            let payload = Payload::Buffer(AmdBuffer { offset, ..buffer });
            let ty = Type { lanes: count, ..words };
            let value = self.build().value(Op::AmdLoadBuffer, payload, path, ty);
            if count == words.lanes {
                return Ok(self.build().bitcast(whole, value));
            }
            for lane in 0..count {
                lanes.push(self.build().extract(value, lane));
            }
        }
        let value = self.build().vec(&lanes);
        Ok(self.build().bitcast(whole, value))
    }

    /// A store to a buffer: each run of components that the mask names. Components of 64 bits are two words each.
    fn store_raw(&mut self, inst: &InstText<'t>) -> Result<()> {
        let operands = &self.program.operands[inst.operands.clone()];
        let mut value = self.operand(&operands[0])?;
        let path = self.buffer_path(&operands[1..])?;
        let ty = self.func.ty(value);
        let mask = self.program.text(inst, "wrmask").unwrap_or("");
        let named = |name: char| "xyzw".find(name).filter(|lane| *lane < usize::from(ty.lanes));
        let Some(mut bits) = mask.chars().try_fold(0u32, |bits, name| Some(bits | 1 << named(name)?)) else {
            return unsupported(format!("wrmask={mask}"));
        };
        if bits == 0 {
            return unsupported(format!("wrmask={mask}"));
        }
        let words = Type::new(Base::B32, ty.bits() / 32).filter(|words| words.bits() == ty.bits());
        let Some(words) = words.filter(|_| ty.base != Base::B1) else {
            return unsupported(format!("@{} of the type {ty}", inst.name));
        };
        if ty.base == Base::B64 {
            value = self.build().bitcast(words, value);
            bits = (0..u32::from(ty.lanes))
                .fold(0, |wide, lane| wide | ((bits >> lane & 1) * (3 << (2 * lane))));
        } else if ty.base != Base::B32 {
            return unsupported(format!("@{} of the type {ty}", inst.name));
        }
        let Payload::Buffer(buffer) = self.buffer(inst)? else { return invalid("a store without an access") };
        let mut lane = 0;
        while lane < words.lanes {
            let run = (bits >> lane).trailing_ones().min(WORDS_AT_ONCE.into()) as u8;
            if run > 0 {
                let stored: Vec<Value> =
                    (lane..lane + run).map(|at| self.build().extract(value, at)).collect();
                let Some(offset) = buffer.offset.checked_add(u32::from(lane) * 4) else {
                    return invalid("the base of an access is too large");
                };
                let payload = Payload::Buffer(AmdBuffer { offset, ..buffer });
                let part = if run == words.lanes { value } else { self.build().vec(&stored) };
                let args: Vec<Value> = std::iter::once(part).chain(path.iter().copied()).collect();
                self.build().inst(Op::AmdStoreBuffer, payload, &args, &[]);
            }
            lane += run.max(1);
        }
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
