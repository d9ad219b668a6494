//! Translates functions: values, blocks, calls.
//!
//! Calls are inlined, so pointers to variables stay names and never become values.

use super::Options;
use super::error::{Result, SpirvCause, SpirvError, invalid, unsupported};
use super::flow::{self, Plan};
use super::memory::Binding;
use super::module::{IdDef, Instr, Module, instruction};
use super::types::{ImageType, MatrixLayout, TypeRef};
use crate::ir::{
    Access, BarrierInfo, Base, Function, Inst, Loc, MAX_DEPTH, MemAccess, MemoryKinds, Op as IrOp, Order,
    Payload, Region, RegionOwner, Resource, Scope, Shader, SourceLoc, Space, Storage, SystemValue, Traits,
    Type, TypeId, TypeNode, Value, Var, VarData, VarFlags, result_type,
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
    /// A pointer to descriptors: the array index if there is one.
    Resource { resource: Resource, ty: TypeRef },
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
/// The stamp of what is visible in all functions.
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
    exact: bool,
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

    /// A conversion to another base; a value that has it is itself, unless it is rounded.
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

    /// A vector of one scalar; a vector is itself.
    pub(super) fn splat(&mut self, value: Value, lanes: u8) -> Result<Value> {
        if lanes == 1 || self.ty(value).lanes == lanes {
            return Ok(value);
        }
        if self.ty(value).lanes != 1 {
            return invalid("vectors of different sizes meet");
        }
        self.vec(&[value; Type::MAX_LANES][..lanes as usize])
    }

    /// A vector of scalars; one scalar is itself.
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

    /// A lane of a vector; a scalar is itself.
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

    /// The values of what an id is.
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
        self.shader.vars.push(VarData {
            name: String::new(),
            storage: Storage::Function,
            ty: node,
            location: None,
            component: 0,
            index: 0,
            builtin: None,
            flags: VarFlags::NONE,
            capture: None,
        })
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

/// Workgroup memory that starts with zeros.
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

/// Flow.
impl Translator<'_> {
    fn plan(&mut self, function: usize) -> Result<Rc<Plan>> {
        if let Some(plan) = self.plans.get(&function) {
            return Ok(plan.clone());
        }
        let def =
            self.module.functions.get(function).ok_or(SpirvCause::Invalid("a function does not exist"))?;
        self.at = def.at;
        let plan = Rc::new(Plan::new(self.module, self.words, def)?);
        self.plans.insert(function, plan.clone());
        Ok(plan)
    }

    fn push_frame(&mut self, function: usize, plan: Rc<Plan>, returns: Option<Inst>) {
        let count = plan.blocks.len();
        self.frames.push(Frame {
            function,
            plan,
            block: 0,
            breaks: vec![None; count],
            loops: vec![None; count],
            returns,
            stamp: self.stamps,
            escaped: HashMap::new(),
        });
        self.stamps += 1;
    }

    fn set_block(&mut self, block: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.block = block;
        }
    }

    fn set_break(&mut self, block: usize, inst: Inst) {
        if let Some(frame) = self.frames.last_mut() {
            frame.breaks[block] = Some(inst);
        }
    }

    fn phis(&self, plan: &Plan, block: usize) -> impl Iterator<Item = Result<Instr<'_>>> + use<'_> {
        let all = flow::instructions(self.words, &self.module.blocks[plan.blocks[block].block]);
        let lines = all.skip_while(|inst| matches!(inst, Ok(i) if matches!(i.op, Op::Line | Op::NoLine)));
        lines.take_while(|inst| !matches!(inst, Ok(i) if i.op != Op::Phi))
    }

    fn phi_types(&self, plan: &Plan, block: usize) -> Result<Vec<Type>> {
        let mut types = Vec::new();
        for phi in self.phis(plan, block) {
            let ty = self.result_type(phi?)?;
            self.module.types.leaf_types(ty, &mut types)?;
        }
        Ok(types)
    }

    /// Leaves of what the phis of a block are where control comes from another one.
    fn phi_args(&mut self, plan: &Plan, block: usize, from: usize) -> Result<Vec<Value>> {
        let label = self.module.blocks[plan.blocks[from].block].label;
        let mut args = Vec::new();
        for at in 0.. {
            let Some(phi) = self.phis(plan, block).nth(at).transpose()? else { break };
            let (words, ty) = (phi.rest(3)?.to_vec(), self.result_type(phi)?);
            let id = words.chunks_exact(2).find(|pair| pair[1] == label).map(|pair| pair[0]);
            let leaves = self.leaves(id.ok_or(SpirvCause::Invalid("a phi has no value for an edge"))?)?;
            self.check_leaves(ty, &leaves, Op::Phi)?;
            args.extend(leaves);
        }
        Ok(args)
    }

    fn bind_phis(&mut self, plan: &Plan, block: usize, values: &[Value]) -> Result<()> {
        let mut start = 0;
        for at in 0.. {
            let Some(phi) = self.phis(plan, block).nth(at).transpose()? else { break };
            let (id, ty) = (phi.word(2)?, self.result_type(phi)?);
            let end = start + self.module.types.leaves(ty) as usize;
            let val = self.make(ValKind::Leaves, &values[start..end]);
            self.set(id, val)?;
            start = end;
        }
        Ok(())
    }

    /// A region within the one that is written.
    fn add_region(&mut self) -> Result<Region> {
        let depth = self.region_depths.get(self.region.index()).copied().unwrap_or(0) + 1;
        if depth as usize >= MAX_DEPTH {
            return Err(SpirvCause::Limit("flow within flow"));
        }
        let region = self.func.add_region();
        self.region_depths.resize(region.index() + 1, 0);
        self.region_depths[region.index()] = depth;
        Ok(region)
    }

    fn open_block(&mut self, results: &[Type]) -> Result<(Inst, Region)> {
        let body = self.add_region()?;
        Ok((self.append(IrOp::Block, Payload::Body(body), &[], results), body))
    }

    /// Writes a block and everything that it dominates, up to a terminator of the region.
    fn tree(&mut self, at: usize, incoming: Vec<Value>) -> Result<()> {
        self.depth += 1;
        // A block may open two regions, and flow is not all there is.
        if self.depth > MAX_DEPTH / 2 {
            return Err(SpirvCause::Limit("flow within flow"));
        }
        let plan = self.frame()?.plan.clone();
        let block = &plan.blocks[at];
        let mut later = Vec::new();
        let mut incoming = incoming;
        if block.is_loop {
            // The first of those after the loop is where the loop itself is left to.
            for &to in block.after_loop.iter().skip(1).rev() {
                self.open(&plan, to, &mut later)?;
            }
            let first = block.after_loop.first();
            let results = first.map_or(Ok(Vec::new()), |&to| self.phi_types(&plan, to))?;
            let body = self.add_region()?;
            for &value in &incoming {
                let ty = self.ty(value);
                self.func.add_param(body, ty);
            }
            let inst = self.append(IrOp::Loop, Payload::Body(body), &incoming, &results);
            if let Some(frame) = self.frames.last_mut() {
                frame.loops[at] = Some(inst);
            }
            match first {
                Some(&to) => {
                    self.set_break(to, inst);
                    later.push((to, inst, self.region));
                }
                None => {
                    self.append(IrOp::Unreachable, Payload::None, &[], &[]);
                }
            }
            incoming = self.func.params(body).to_vec();
            self.region = body;
        }
        self.set_block(at);
        self.bind_phis(&plan, at, &incoming)?;
        self.code(&plan, at)?;
        self.end(&plan, at, &mut later)?;
        while let Some((to, inst, region)) = later.pop() {
            self.region = region;
            let results = self.func.results(inst).to_vec();
            self.tree(to, results)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Opens the `block` that is left to get to a block.
    fn open(&mut self, plan: &Plan, to: usize, later: &mut Vec<(usize, Inst, Region)>) -> Result<()> {
        let results = self.phi_types(plan, to)?;
        let outer = self.region;
        let (inst, body) = self.open_block(&results)?;
        self.set_break(to, inst);
        later.push((to, inst, outer));
        self.region = body;
        Ok(())
    }

    /// Instructions up to the terminator.
    fn code(&mut self, plan: &Plan, at: usize) -> Result<()> {
        for inst in flow::instructions(self.words, &self.module.blocks[plan.blocks[at].block]) {
            let inst = inst?;
            self.at = inst.at;
            if inst.at < plan.blocks[at].terminator && inst.op != Op::Phi {
                self.instruction(inst)?;
            }
        }
        Ok(())
    }

    /// The terminator, within what is left to get to the placed blocks.
    fn end(&mut self, plan: &Plan, at: usize, later: &mut Vec<(usize, Inst, Region)>) -> Result<()> {
        let block = &plan.blocks[at];
        let inst = instruction(self.words, block.terminator)?;
        let branches = inst.op == Op::BranchConditional;
        // An `if` is itself left to get to the first of them.
        for &to in block.placed.iter().skip(usize::from(branches)).rev() {
            self.open(plan, to, later)?;
        }
        self.at = inst.at;
        match inst.op {
            Op::Branch => self.edge(plan, at, block.successors[0])?,
            Op::BranchConditional => {
                let condition = self.operand(inst, 1)?;
                let merge = block.placed.first().copied();
                let results = merge.map_or(Ok(Vec::new()), |to| self.phi_types(plan, to))?;
                let (then, other) = (self.add_region()?, self.add_region()?);
                if self.ty(condition) != Type::BOOL {
                    return Err(SpirvCause::Types(inst.op));
                }
                let branch = self.append(IrOp::If, Payload::Arms(then, other), &[condition], &results);
                let outer = self.region;
                match merge {
                    Some(to) => {
                        self.set_break(to, branch);
                        later.push((to, branch, outer));
                    }
                    None => {
                        self.append(IrOp::Unreachable, Payload::None, &[], &[]);
                    }
                }
                self.region = then;
                self.edge(plan, at, block.successors[0])?;
                self.region = other;
                self.at = inst.at;
                self.edge(plan, at, block.successors[1])?;
                self.region = outer;
            }
            Op::Switch => self.switch(plan, at, inst)?,
            Op::Return | Op::ReturnValue => self.return_(inst)?,
            Op::Kill | Op::TerminateInvocation => {
                self.append(IrOp::Terminate, Payload::None, &[], &[]);
            }
            Op::Unreachable => {
                self.append(IrOp::Unreachable, Payload::None, &[], &[]);
            }
            op => return unsupported(format!("Op{op:?}")),
        }
        Ok(())
    }

    fn return_(&mut self, inst: Instr<'_>) -> Result<()> {
        let values = if inst.op == Op::ReturnValue { self.leaves(inst.word(1)?)? } else { Vec::new() };
        let frame = self.frame()?;
        let (returns, result) = (frame.returns, self.module.functions[frame.function].result);
        self.check_leaves(result, &values, inst.op)?;
        match returns {
            Some(target) => self.append(IrOp::Break, Payload::Target(target), &values, &[]),
            None if values.is_empty() => self.append(IrOp::Return, Payload::None, &[], &[]),
            None => return invalid("the entry point returns a value"),
        };
        Ok(())
    }

    fn switch(&mut self, plan: &Plan, at: usize, inst: Instr<'_>) -> Result<()> {
        let selector = self.operand(inst, 1)?;
        if self.ty(selector).lanes != 1 {
            return Err(SpirvCause::Types(inst.op));
        }
        let block = &plan.blocks[at];
        let cases = flow::switch_cases(self.module, inst)?;
        let default = block.successors[0];
        // One test for each target, in the order of their first literal.
        let mut targets: Vec<(usize, Vec<u64>)> = Vec::new();
        let mut position: HashMap<usize, usize> = HashMap::new();
        for ((literal, _), &to) in cases.iter().zip(&block.successors[1..]) {
            if to == default {
                continue;
            }
            let slot = *position.entry(to).or_insert(targets.len());
            if slot == targets.len() {
                targets.push((to, Vec::new()));
            }
            targets[slot].1.push(*literal);
        }
        let base = self.ty(selector).base;
        for (to, literals) in targets {
            let mut condition = None;
            for literal in literals {
                let literal = self.constant(base, literal);
                let equal = self.alu(IrOp::IEq, &[selector, literal])?;
                condition = Some(match condition {
                    None => equal,
                    Some(other) => self.alu(IrOp::IOr, &[other, equal])?,
                });
            }
            let Some(condition) = condition else { continue };
            let (then, other) = (self.add_region()?, self.add_region()?);
            let test = self.append(IrOp::If, Payload::Arms(then, other), &[condition], &[]);
            let outer = self.region;
            self.region = other;
            self.append(IrOp::Break, Payload::Target(test), &[], &[]);
            self.region = then;
            self.edge(plan, at, to)?;
            self.region = outer;
            self.set_block(at);
        }
        self.edge(plan, at, default)
    }

    /// Composites are copied leaf by leaf, and a module may copy large ones often.
    fn check_moved(&self) -> Result<()> {
        let moved = self.moved + self.scratch.pool.len();
        if moved > self.options.max_insts.saturating_mul(8) {
            return Err(SpirvCause::Limit("copies of composites"));
        }
        Ok(())
    }

    /// Whether the region that is written is within a structured instruction. It is not where declared merge blocks contradict the flow.
    fn encloses(&self, target: Inst) -> bool {
        let mut region = self.region;
        while let RegionOwner::Inst(owner) = self.func.owner(region) {
            if owner == target {
                return true;
            }
            region = self.func.region(owner);
        }
        false
    }

    /// Writes the way from a block to another one.
    fn edge(&mut self, plan: &Plan, from: usize, to: usize) -> Result<()> {
        self.set_block(from);
        let args = self.phi_args(plan, to, from)?;
        self.moved += args.len();
        self.check_moved()?;
        let not_structured = "flow that no regions express";
        if to <= from {
            let Some(target) = self.frame()?.loops[to].filter(|&target| self.encloses(target)) else {
                return unsupported(not_structured);
            };
            self.append(IrOp::Continue, Payload::Target(target), &args, &[]);
            return Ok(());
        }
        if !plan.blocks[to].is_placed {
            return self.tree(to, args);
        }
        let Some(target) = self.frame()?.breaks[to].filter(|&target| self.encloses(target)) else {
            return unsupported(not_structured);
        };
        self.append(IrOp::Break, Payload::Target(target), &args, &[]);
        Ok(())
    }

    fn call(&mut self, inst: Instr<'_>) -> Result<()> {
        let callee = inst.word(3)?;
        let IdDef::Function(function) = self.module.id(callee)? else {
            return Err(SpirvCause::Wrong { id: callee, wanted: "a function" });
        };
        let function = function as usize;
        if self.frames.iter().any(|frame| frame.function == function) {
            return invalid("a function calls itself");
        }
        let module = self.module;
        let Some(def) = module.functions.get(function) else { return invalid("a function does not exist") };
        if def.params.len() != inst.rest(4)?.len() {
            return invalid("a call has the wrong number of operands");
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH / 2 {
            return Err(SpirvCause::Limit("calls within calls"));
        }
        let mut args = Vec::new();
        for (&id, &(_, ty)) in inst.rest(4)?.iter().zip(&def.params) {
            let val = self.val(id)?;
            if let ValKind::Leaves = val.kind {
                let leaves = self.values(&val).to_vec();
                self.check_leaves(ty, &leaves, inst.op)?;
            }
            args.push(val);
        }
        let mut results = Vec::new();
        module.types.leaf_types(def.result, &mut results)?;
        let plan = self.plan(function)?;
        let outer = self.region;
        let (target, body) = self.open_block(&results)?;
        let (loc, at) = (self.loc, self.at);
        self.push_frame(function, plan, Some(target));
        self.region = body;
        for (val, &(id, _)) in args.into_iter().zip(&def.params) {
            self.set(id, val)?;
        }
        self.tree(0, Vec::new())?;
        self.frames.pop();
        self.region = outer;
        (self.loc, self.at) = (loc, at);
        self.depth -= 1;
        let leaves = self.func.results(target).to_vec();
        if leaves.is_empty() { Ok(()) } else { self.set_leaves(inst, &leaves) }
    }

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

/// A value for arrays that are filled later.
pub(super) fn no_value() -> Value {
    Value::new(0)
}
