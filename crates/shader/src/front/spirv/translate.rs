//! Translates functions: values and instructions. [`regions`] has their flow and calls.
//!
//! Calls are inlined, so pointers to variables remain names and never become values.

mod cases;
mod regions;

use super::Options;
use super::error::{Result, SpirvCause, SpirvError, invalid, unsupported};
use super::flow::Plan;
use super::memory::Binding;
use super::module::{IdDef, Instr, Module, instruction};
use super::types::{ImageType, MatrixLayout, TypeRef};
use crate::ir::{
    Access, BarrierInfo, Base, Function, Inst, Loc, MemAccess, MemoryKinds, Op as IrOp, Order, Payload,
    Region, Resource, Scope, Shader, SourceLoc, Space, Storage, SystemValue, Traits, Type, TypeId, TypeNode,
    Value, Var, VarData, result_type,
};
use crate::valid;
use spirv::{Decoration, Op};
use std::collections::HashMap;
use std::rc::Rc;
use unwedge_base::entity::Entity;

/// What an id is in the function that is translated.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValKind {
    /// A value: its leaves.
    Leaves,
    /// A pointer into a variable: the path, then the lane.
    Var { var: Var, ty: TypeRef, lane: bool },
    /// A pointer to bytes: the descriptor if the space has one, then the offset or address.
    Mem {
        space: Space,
        ty: TypeRef,
        matrix: Option<MatrixLayout>,
        lane_stride: u32,
        access: Access,
        align: u8,
    },
    /// A pointer to descriptors: the array index if there is one, and whether it is marked as not uniform.
    Resource { resource: Resource, ty: TypeRef, nonuniform: bool },
    /// A pointer to a system value: the lane.
    SysVal { value: SystemValue, ty: TypeRef, lane: bool },
    /// A pointer to a block of the interface: the vertex if there is one.
    IoBlock { first: Var, ty: TypeRef },
    /// A pointer to a texel: image, coordinates, sample.
    Texel { image: ImageType },
}

/// What an id is, with its values in the pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Val {
    pub(super) kind: ValKind,
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) stamp: u32,
}

const NO_VAL: Val = Val { kind: ValKind::Leaves, start: 0, len: 0, stamp: u32::MAX };
/// The stamp of ids that are visible in all functions.
const GLOBAL: u32 = u32::MAX - 1;

/// A call that is being inlined.
struct Frame {
    function: usize,
    plan: Rc<Plan>,
    block: usize,
    /// Block → the instruction that a `break` leaves to get there.
    breaks: Vec<Option<Inst>>,
    /// Block → its loop.
    loops: Vec<Option<Inst>>,
    /// What `return` leaves; the entry point returns.
    returns: Option<Inst>,
    stamp: u32,
    /// Variables of values that are used where they are not visible.
    escaped: HashMap<u32, Vec<Var>>,
}

/// Memory that is kept between shaders.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    vals: Vec<Val>,
    pool: Vec<Value>,
    constants: HashMap<(Base, u64), Value>,
}

/// Translates one entry point.
pub(super) struct Translator<'m> {
    pub(super) module: &'m Module,
    pub(super) words: &'m [u32],
    pub(super) shader: &'m mut Shader,
    pub(super) options: &'m Options,
    pub(super) bindings: Vec<Binding>,
    pub(super) at: u32,
    func: Function,
    region: Region,
    scratch: &'m mut Scratch,
    last_constant: Option<Inst>,
    frames: Vec<Frame>,
    plans: HashMap<usize, Rc<Plan>>,
    stamps: u32,
    loc: Option<Loc>,
    pub(super) exact: bool,
    depth: usize,
    /// Leaves that edges carry.
    moved: usize,
    region_depths: Vec<u16>,
    type_nodes: HashMap<TypeRef, TypeId>,
    leaf_nodes: HashMap<Type, TypeId>,
    files: HashMap<u32, u32>,
}

impl<'m> Translator<'m> {
    pub(super) fn new(
        module: &'m Module,
        words: &'m [u32],
        shader: &'m mut Shader,
        options: &'m Options,
        scratch: &'m mut Scratch,
    ) -> Self {
        scratch.vals.clear();
        scratch.vals.resize(module.ids.len(), NO_VAL);
        scratch.pool.clear();
        scratch.constants.clear();
        let entry = shader.add_function();
        let func = std::mem::take(shader.function_mut(entry));
        let region = func.body();
        Translator {
            module,
            words,
            shader,
            options,
            bindings: Vec::new(),
            at: 0,
            func,
            region,
            scratch,
            last_constant: None,
            frames: Vec::new(),
            plans: HashMap::new(),
            stamps: 0,
            loc: None,
            exact: false,
            depth: 0,
            moved: 0,
            region_depths: Vec::new(),
            type_nodes: HashMap::new(),
            leaf_nodes: HashMap::new(),
            files: HashMap::new(),
        }
    }

    /// Translates the entry point with a number.
    pub(super) fn run(mut self, entry: usize) -> std::result::Result<(), SpirvError> {
        let result = self.entry(entry);
        *self.shader.entry_mut() = std::mem::take(&mut self.func);
        result.map_err(|cause| SpirvError { offset: self.at, cause })
    }

    fn entry(&mut self, entry: usize) -> Result<()> {
        let point = &self.module.entry_points[entry];
        self.at = point.at;
        self.interface(point)?;
        let IdDef::Function(function) = self.module.id(point.function)? else {
            return Err(SpirvCause::Wrong { id: point.function, wanted: "a function" });
        };
        let Some(def) = self.module.functions.get(function as usize) else {
            return invalid("the entry point has no function");
        };
        if !def.params.is_empty() {
            return invalid("the entry point has parameters");
        }
        self.func.name = point.name.clone();
        let plan = self.plan(function as usize)?;
        self.push_frame(function as usize, plan, None);
        self.initializers()?;
        self.tree(0, Vec::new())?;
        self.frames.pop();
        Ok(())
    }
}

/// Instructions.
impl Translator<'_> {
    /// Writes an instruction and checks its types.
    pub(super) fn write(
        &mut self,
        op: IrOp,
        payload: Payload,
        args: &[Value],
        results: &[Type],
    ) -> Result<Inst> {
        if self.func.inst_count() >= self.options.max_insts {
            return Err(SpirvCause::Limit("the shader after inlining"));
        }
        let mut types = [Type::B32; 24];
        let Some(types) = types.get_mut(..args.len()) else {
            return Err(SpirvCause::Limit("an instruction"));
        };
        for (ty, &arg) in types.iter_mut().zip(args) {
            *ty = self.func.ty(arg);
        }
        if valid::fits(op, types, results).is_err() {
            return invalid("types of operands do not go together");
        }
        Ok(self.append(op, payload, args, results))
    }

    fn append(&mut self, op: IrOp, payload: Payload, args: &[Value], results: &[Type]) -> Inst {
        let inst = self.func.make_inst(op, payload, args, results);
        self.func.set_loc(inst, self.loc);
        if self.exact && op.has(Traits::FLOAT) {
            self.func.set_exact(inst, true);
        }
        self.func.append(self.region, inst);
        inst
    }

    /// An instruction with one result.
    pub(super) fn emit(&mut self, op: IrOp, payload: Payload, args: &[Value], ty: Type) -> Result<Value> {
        let inst = self.write(op, payload, args, &[ty])?;
        Ok(self.func.result(inst))
    }

    /// An operation whose result type the table says.
    pub(super) fn alu(&mut self, op: IrOp, args: &[Value]) -> Result<Value> {
        let ty = result_type(&self.func, op, args).ok_or(SpirvCause::Invalid("an operation has no type"))?;
        self.emit(op, Payload::None, args, ty)
    }

    /// A conversion to another base; a value that already has it stays as it is, unless it is rounded.
    pub(super) fn convert(&mut self, op: IrOp, base: Base, value: Value) -> Result<Value> {
        let ty = self.ty(value);
        if ty.base == base && matches!(op, IrOp::U2U | IrOp::I2I) {
            return Ok(value);
        }
        self.emit(op, Payload::None, &[value], ty.with_base(base))
    }

    /// A constant scalar, one for each base and bits, before everything else.
    pub(super) fn constant(&mut self, base: Base, bits: u64) -> Value {
        let bits = bits & base.mask();
        if let Some(&value) = self.scratch.constants.get(&(base, bits)) {
            return value;
        }
        let inst = self.func.make_inst(IrOp::Const, Payload::Const(bits), &[], &[Type::scalar(base)]);
        let body = self.func.body();
        match (self.last_constant, self.func.first(body)) {
            (Some(last), _) => self.func.insert_after(last, inst),
            (None, Some(first)) => self.func.insert_before(first, inst),
            (None, None) => self.func.append(body, inst),
        }
        self.last_constant = Some(inst);
        let value = self.func.result(inst);
        self.scratch.constants.insert((base, bits), value);
        value
    }

    pub(super) fn u32(&mut self, bits: u32) -> Value {
        self.constant(Base::B32, bits.into())
    }

    /// A constant float, as a vector where the type is one.
    pub(super) fn float_constant(&mut self, ty: Type, value: f64) -> Value {
        let bits = match ty.base {
            Base::B16 => half_bits(value),
            Base::B64 => value.to_bits(),
            _ => (value as f32).to_bits().into(),
        };
        let scalar = self.constant(ty.base, bits);
        self.splat(scalar, ty.lanes).unwrap_or(scalar)
    }

    pub(super) fn undefined(&mut self, ty: Type) -> Result<Value> {
        self.emit(IrOp::Undef, Payload::None, &[], ty)
    }

    /// A vector of one scalar; a vector stays as it is.
    pub(super) fn splat(&mut self, value: Value, lanes: u8) -> Result<Value> {
        if lanes == 1 || self.ty(value).lanes == lanes {
            return Ok(value);
        }
        if self.ty(value).lanes != 1 {
            return invalid("vectors of different sizes meet");
        }
        self.vec(&[value; Type::MAX_LANES][..lanes as usize])
    }

    /// A vector of scalars; a single scalar stays as it is.
    pub(super) fn vec(&mut self, lanes: &[Value]) -> Result<Value> {
        match lanes {
            [] => invalid("a vector has no components"),
            [scalar] => Ok(*scalar),
            [first, rest @ ..] => {
                let lane = self.ty(*first);
                let ty = Type::new(lane.base, lanes.len() as u32);
                let ty =
                    ty.ok_or(SpirvCause::Invalid("a vector has a number of components that does not exist"))?;
                if lane.lanes != 1 || rest.iter().any(|&other| self.ty(other) != lane) {
                    return invalid("components of a vector have different types");
                }
                self.emit(IrOp::Vec, Payload::None, lanes, ty)
            }
        }
    }

    /// A lane of a vector; a scalar stays as it is.
    pub(super) fn extract(&mut self, vector: Value, lane: u8) -> Result<Value> {
        let ty = self.ty(vector);
        if lane >= ty.lanes {
            return invalid("a component is past the end of a vector");
        }
        if ty.lanes == 1 {
            return Ok(vector);
        }
        if let Some(inst) = self.func.def_inst(vector)
            && self.func.op(inst) == IrOp::Vec
        {
            return Ok(self.func.args(inst)[lane as usize]);
        }
        self.emit(IrOp::Extract, Payload::Lane(lane), &[vector], ty.lane())
    }

    pub(super) fn ty(&self, value: Value) -> Type {
        self.func.ty(value)
    }

    pub(super) fn const_bits(&self, value: Value) -> Option<u64> {
        self.func.const_bits(value)
    }
}

fn half_bits(value: f64) -> u64 {
    use unwedge_isa::amdgcn::semantics::soft;
    soft::convert(soft::F64, soft::F16, value.to_bits(), soft::Env::IEEE)
}

/// Values of ids.
impl Translator<'_> {
    fn frame(&self) -> Result<&Frame> {
        self.frames.last().ok_or(SpirvCause::Invalid("an instruction is in no function"))
    }

    /// The values of an id.
    pub(super) fn values(&self, val: &Val) -> &[Value] {
        &self.scratch.pool[val.start as usize..(val.start + val.len) as usize]
    }

    pub(super) fn make(&mut self, kind: ValKind, values: &[Value]) -> Val {
        let start = self.scratch.pool.len() as u32;
        self.scratch.pool.extend_from_slice(values);
        let stamp = self.frames.last().map_or(GLOBAL, |frame| frame.stamp);
        Val { kind, start, len: values.len() as u32, stamp }
    }

    /// What an id is.
    pub(super) fn val(&mut self, id: u32) -> Result<Val> {
        let def = self.module.id(id)?;
        let val = self.scratch.vals[id as usize];
        match def {
            IdDef::Constant(index) => {
                if val.stamp == GLOBAL {
                    Ok(val)
                } else {
                    self.constant_val(id, index)
                }
            }
            IdDef::Variable(_) if val.stamp == GLOBAL => Ok(val),
            IdDef::Variable(_) => {
                unsupported("a variable of this storage class, or one that the interface does not list")
            }
            IdDef::Local(_) => {
                let frame = self.frame()?;
                if val.stamp != frame.stamp {
                    return Err(SpirvCause::Undefined(id));
                }
                match frame.plan.escaping.get(&id) {
                    Some(&def) if !frame.plan.is_within(frame.block, def) => self.reload(id, val),
                    _ => Ok(val),
                }
            }
            IdDef::None => Err(SpirvCause::Undefined(id)),
            _ => Err(SpirvCause::Wrong { id, wanted: "a value" }),
        }
    }

    fn constant_val(&mut self, id: u32, index: u32) -> Result<Val> {
        let module = self.module;
        let constant = &module.constants[index as usize];
        let mut types = Vec::new();
        module.types.leaf_types(constant.ty, &mut types)?;
        let mut at = constant.lanes.start;
        let mut leaves = Vec::with_capacity(types.len());
        // Vectors of constants come with the constants, and are visible everywhere.
        for ty in types {
            let lanes = &module.lanes[at..at + usize::from(ty.lanes)];
            at += usize::from(ty.lanes);
            if constant.undefined || ty.base == Base::Handle {
                leaves.push(self.at_start(IrOp::Undef, &[], ty));
                continue;
            }
            let scalars: Vec<Value> = lanes.iter().map(|&bits| self.constant(ty.base, bits)).collect();
            leaves.push(if let [scalar] = scalars[..] {
                scalar
            } else {
                self.at_start(IrOp::Vec, &scalars, ty)
            });
        }
        let val = Val { stamp: GLOBAL, ..self.make(ValKind::Leaves, &leaves) };
        self.scratch.vals[id as usize] = val;
        Ok(val)
    }

    fn at_start(&mut self, op: IrOp, args: &[Value], ty: Type) -> Value {
        let inst = self.func.make_inst(op, Payload::None, args, &[ty]);
        let body = self.func.body();
        match (self.last_constant, self.func.first(body)) {
            (Some(last), _) => self.func.insert_after(last, inst),
            (None, Some(first)) => self.func.insert_before(first, inst),
            (None, None) => self.func.append(body, inst),
        }
        self.last_constant = Some(inst);
        self.func.result(inst)
    }

    /// Whether a variable of the module is one of this entry point.
    pub(super) fn is_bound(&self, id: u32) -> bool {
        self.scratch.vals.get(id as usize).is_some_and(|val| val.stamp == GLOBAL)
    }

    /// Leaves of a value. A pointer to bytes is one.
    pub(super) fn leaves(&mut self, id: u32) -> Result<Vec<Value>> {
        let val = self.val(id)?;
        match val.kind {
            ValKind::Leaves => Ok(self.values(&val).to_vec()),
            ValKind::Mem { matrix: None, lane_stride: 0, .. } => Ok(self.values(&val).to_vec()),
            ValKind::Mem { .. } => unsupported("pointers into a matrix as values"),
            ValKind::Resource { .. } => {
                let val = self.buffer(val)?;
                Ok(self.values(&val).to_vec())
            }
            _ => unsupported("pointers to variables as values"),
        }
    }

    /// Where a pointer points to: descriptor and offset, or address.
    pub(super) fn address_leaves(&mut self, id: u32) -> Result<Vec<Value>> {
        let val = self.val(id)?;
        match val.kind {
            ValKind::Mem { .. } => Ok(self.values(&val).to_vec()),
            _ => self.leaves(id),
        }
    }

    /// The only leaf of a value.
    pub(super) fn value(&mut self, id: u32) -> Result<Value> {
        let val = self.val(id)?;
        match (val.kind, self.values(&val)) {
            (ValKind::Leaves, &[value]) => Ok(value),
            _ => Err(SpirvCause::Wrong { id, wanted: "a scalar or a vector" }),
        }
    }

    /// The scalar or vector that a word of an instruction names.
    pub(super) fn operand(&mut self, inst: Instr<'_>, at: usize) -> Result<Value> {
        self.value(inst.word(at)?)
    }

    /// A scalar of 32 bits for an index.
    pub(super) fn index_operand(&mut self, id: u32) -> Result<Value> {
        let value = self.value(id)?;
        if self.ty(value).lanes != 1 {
            return invalid("an index is not a scalar");
        }
        self.convert(IrOp::I2I, Base::B32, value)
    }

    pub(super) fn result_type(&self, inst: Instr<'_>) -> Result<TypeRef> {
        self.module.type_of(inst.word(1)?)
    }

    /// The result type, which is a scalar or a vector.
    pub(super) fn result_leaf(&self, inst: Instr<'_>) -> Result<Type> {
        let ty = self.result_type(inst)?;
        self.module.types.leaf(ty).ok_or(SpirvCause::Types(inst.op))
    }

    /// Sets the result of an instruction to what it is.
    pub(super) fn set(&mut self, id: u32, val: Val) -> Result<()> {
        let stamp = self.frame()?.stamp;
        let slot = self.scratch.vals.get_mut(id as usize).ok_or(SpirvCause::Bound(id))?;
        *slot = Val { stamp, ..val };
        self.escape(id, val)
    }

    pub(super) fn set_value(&mut self, inst: Instr<'_>, value: Value) -> Result<()> {
        self.set_leaves(inst, &[value])
    }

    /// Sets the result to a value with these leaves, which must be those of its type.
    pub(super) fn set_leaves(&mut self, inst: Instr<'_>, leaves: &[Value]) -> Result<()> {
        let ty = self.result_type(inst)?;
        self.check_leaves(ty, leaves, inst.op)?;
        let val = self.make(ValKind::Leaves, leaves);
        self.set(inst.word(2)?, val)
    }

    pub(super) fn check_leaves(&self, ty: TypeRef, leaves: &[Value], op: Op) -> Result<()> {
        if let (Some(ty), &[leaf]) = (self.module.types.leaf(ty), leaves) {
            return if self.ty(leaf) == ty { Ok(()) } else { Err(SpirvCause::Types(op)) };
        }
        let mut types = Vec::new();
        self.module.types.leaf_types(ty, &mut types)?;
        if types.iter().copied().eq(leaves.iter().map(|&leaf| self.ty(leaf))) {
            Ok(())
        } else {
            Err(SpirvCause::Types(op))
        }
    }

    pub(super) fn copy(&mut self, inst: Instr<'_>) -> Result<()> {
        let val = self.val(inst.word(3)?)?;
        let ty = self.result_type(inst)?;
        if let ValKind::Leaves = val.kind {
            let leaves = self.values(&val).to_vec();
            self.check_leaves(ty, &leaves, inst.op)?;
        }
        self.set(inst.word(2)?, val)
    }

    /// Stores a value that is used where it is not visible.
    fn escape(&mut self, id: u32, val: Val) -> Result<()> {
        if !self.frame()?.plan.escaping.contains_key(&id) {
            return Ok(());
        }
        let mut vars = Vec::new();
        for value in self.values(&val).to_vec() {
            let var = self.local(self.ty(value));
            self.write(IrOp::StoreVar, Payload::Var(var, mask_of(self.ty(value))), &[value], &[])?;
            vars.push(var);
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.escaped.insert(id, vars);
        }
        Ok(())
    }

    fn reload(&mut self, id: u32, val: Val) -> Result<Val> {
        let vars = self.frame()?.escaped.get(&id).cloned().ok_or(SpirvCause::Undefined(id))?;
        let mut values = Vec::with_capacity(vars.len());
        for (var, old) in vars.into_iter().zip(self.values(&val).to_vec()) {
            values.push(self.emit(IrOp::LoadVar, Payload::Var(var, 0), &[], self.ty(old))?);
        }
        Ok(self.make(val.kind, &values))
    }

    /// A variable of the function with one leaf.
    pub(super) fn local(&mut self, ty: Type) -> Var {
        let node = self.leaf_node(ty);
        self.shader.vars.push(VarData::new(String::new(), Storage::Function, node))
    }

    pub(super) fn leaf_node(&mut self, ty: Type) -> TypeId {
        if let Some(&node) = self.leaf_nodes.get(&ty) {
            return node;
        }
        let node = self.shader.types.push(TypeNode::Leaf(ty));
        self.leaf_nodes.insert(ty, node);
        node
    }

    /// The type tree of a variable.
    pub(super) fn type_node(&mut self, ty: TypeRef) -> Result<TypeId> {
        use super::types::SpvType;
        if let Some(&node) = self.type_nodes.get(&ty) {
            return Ok(node);
        }
        let module = self.module;
        let node = match module.types.get(ty) {
            SpvType::Leaf { ty, .. } => self.leaf_node(*ty),
            SpvType::Matrix { column, columns } => {
                let element = self.type_node(*column)?;
                self.shader.types.push(TypeNode::Array { element, len: *columns })
            }
            SpvType::Array { element, len, .. } => {
                let element = self.type_node(*element)?;
                self.shader.types.push(TypeNode::Array { element, len: *len })
            }
            SpvType::Struct { members, .. } => {
                let mut nodes = Vec::with_capacity(members.len());
                for member in members {
                    nodes.push(self.type_node(member.ty)?);
                }
                self.shader.types.push(TypeNode::Struct(nodes))
            }
            SpvType::Void | SpvType::Function | SpvType::RuntimeArray { .. } => {
                return invalid("a variable has a type without values");
            }
            _ => {
                let mut leaves = Vec::new();
                module.types.leaf_types(ty, &mut leaves)?;
                let nodes: Vec<TypeId> = leaves.into_iter().map(|leaf| self.leaf_node(leaf)).collect();
                if let [node] = nodes[..] { node } else { self.shader.types.push(TypeNode::Struct(nodes)) }
            }
        };
        self.type_nodes.insert(ty, node);
        Ok(node)
    }

    /// Makes a value of the module visible in all functions.
    pub(super) fn set_global(&mut self, id: u32, kind: ValKind) {
        self.set_global_values(id, kind, &[]);
    }

    /// The same, with values that are visible everywhere.
    pub(super) fn set_global_values(&mut self, id: u32, kind: ValKind, values: &[Value]) {
        let val = Val { stamp: GLOBAL, ..self.make(kind, values) };
        if let Some(slot) = self.scratch.vals.get_mut(id as usize) {
            *slot = val;
        }
    }
}

/// Zeroed workgroup memory.
impl Translator<'_> {
    /// Writes a loop in which the invocations of the workgroup clear its memory together, and waits for all of them.
    pub(super) fn clear_shared(&mut self) -> Result<()> {
        let info = &self.shader.info;
        let size = info.shared_size.next_multiple_of(4);
        let invocations = info.workgroup_size.iter().fold(1u32, |product, &n| product.saturating_mul(n));
        self.shader.info.shared_size = size;
        let index = SystemValue::LocalInvocationIndex;
        let index = self.emit(IrOp::SysVal, Payload::SysVal(index), &[], Type::B32)?;
        let (four, end, zero) = (self.u32(4), self.u32(size), self.u32(0));
        let step = self.u32(invocations.saturating_mul(4));
        let first = self.alu(IrOp::IMul, &[index, four])?;
        let outer = self.region;
        let body = self.add_region()?;
        let offset = self.func.add_param(body, Type::B32);
        let inst = self.append(IrOp::Loop, Payload::Body(body), &[first], &[]);
        self.region = body;
        let inside = self.alu(IrOp::ULt, &[offset, end])?;
        let (then, other) = (self.add_region()?, self.add_region()?);
        let branch = self.append(IrOp::If, Payload::Arms(then, other), &[inside], &[]);
        self.region = other;
        self.append(IrOp::Break, Payload::Target(inst), &[], &[]);
        self.region = then;
        let mem = MemAccess { space: Space::Shared, access: Access::NONE, align: 2 };
        self.write(IrOp::Store, Payload::Mem(mem), &[zero, offset], &[])?;
        self.append(IrOp::Break, Payload::Target(branch), &[], &[]);
        self.region = body;
        let next = self.alu(IrOp::IAdd, &[offset, step])?;
        self.append(IrOp::Continue, Payload::Target(inst), &[next], &[]);
        self.region = outer;
        let barrier = BarrierInfo {
            execution: Scope::Workgroup,
            memory: Scope::Workgroup,
            order: Order::ACQUIRE.or(Order::RELEASE),
            kinds: MemoryKinds::SHARED,
        };
        self.write(IrOp::Barrier, Payload::Barrier(barrier), &[], &[])?;
        Ok(())
    }
}

/// All lanes of a type.
pub(super) fn mask_of(ty: Type) -> u16 {
    ((1u32 << ty.lanes) - 1) as u16
}

/// Instructions.
impl Translator<'_> {
    fn instruction(&mut self, inst: Instr<'_>) -> Result<()> {
        self.check_moved()?;
        self.exact = super::module::has_result(inst.op)
            && self.module.is_decorated(inst.word(2)?, Decoration::NoContraction);
        match inst.op {
            Op::Nop | Op::SelectionMerge | Op::LoopMerge | Op::AssumeTrueKHR => Ok(()),
            Op::Line => self.line(inst.word(1)?, inst.word(2)?, inst.word(3)?),
            Op::NoLine => {
                self.loc = None;
                Ok(())
            }
            Op::FunctionCall => self.call(inst),
            Op::ExtInst => self.extended(inst),
            _ => {
                if self.arithmetic(inst)?
                    || self.composite(inst)?
                    || self.memory(inst)?
                    || self.image(inst)?
                    || self.group(inst)?
                {
                    return Ok(());
                }
                unsupported(format!("Op{:?}", inst.op))
            }
        }
    }

    /// Sets the source position.
    pub(super) fn line(&mut self, file: u32, line: u32, column: u32) -> Result<()> {
        let IdDef::String(at) = self.module.id(file)? else {
            return Err(SpirvCause::Wrong { id: file, wanted: "a string" });
        };
        let index = match self.files.get(&file) {
            Some(&index) => index,
            None => {
                let (name, _) = super::module::string(instruction(self.words, at)?.rest(2)?)?;
                self.shader.files.push(name);
                let index = self.shader.files.len() as u32 - 1;
                self.files.insert(file, index);
                index
            }
        };
        let loc = SourceLoc { file: index, line, column };
        if self.loc.is_none_or(|old| self.shader.locs[old] != loc) {
            self.loc = Some(self.shader.locs.push(loc));
        }
        Ok(())
    }

    pub(super) fn no_line(&mut self) {
        self.loc = None;
    }
}

/// A placeholder for arrays that are filled later.
pub(super) fn no_value() -> Value {
    Value::new(0)
}
