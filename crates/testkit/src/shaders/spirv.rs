//! Writes a random shader as a SPIR-V module, so that the reader can be held to what the shader does.
//!
//! Values are unsigned integers and booleans, cast to floats around what computes with floats. Flow has the shape of the shader's: a
//! `block` is a branch, breaks and continues are branches to where they lead, so that flow which leaves several levels is for the
//! reader's structurizer (Vulkan would not take it). Never: anything that [`super::Dialect::Spirv`] does not have.

use spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl,
    GlslStd450Op, MAGIC_NUMBER, MemoryModel, Op as Spv, SelectionControl, StorageClass,
};
use std::collections::HashMap;
use unwedge_shader::ir::{
    AtomicOp, Base, Func, Function, Inst, Op, Payload, Region, Resource, Round, Shader, Space, Storage,
    SystemValue, Type, TypeId, TypeNode, Value, Var,
};

/// An instruction that computes what an operation does.
#[derive(Debug, Clone, Copy)]
enum Code {
    Core(Spv),
    Glsl(GlslStd450Op),
}

/// How an operation is written: its instruction, and whether operands and result are floats.
#[derive(Debug, Clone, Copy)]
struct Recipe {
    code: Code,
    floats: [bool; 2],
}

/// How an elementwise operation is written for a base.
fn recipe(op: Op, base: Base) -> Option<Recipe> {
    let int = |op| Some(Recipe { code: Code::Core(op), floats: [false, false] });
    let float = |op| Some(Recipe { code: Code::Core(op), floats: [true, true] });
    let compares = |op| Some(Recipe { code: Code::Core(op), floats: [true, false] });
    let glsl = |op| Some(Recipe { code: Code::Glsl(op), floats: [false, false] });
    let glsl_float = |op| Some(Recipe { code: Code::Glsl(op), floats: [true, true] });
    if base == Base::B1 {
        return match op {
            Op::IAnd => int(Spv::LogicalAnd),
            Op::IOr => int(Spv::LogicalOr),
            Op::IXor | Op::INe => int(Spv::LogicalNotEqual),
            Op::INot => int(Spv::LogicalNot),
            Op::IEq => int(Spv::LogicalEqual),
            Op::Select => int(Spv::Select),
            _ => None,
        };
    }
    match op {
        Op::Select => int(Spv::Select),
        Op::IAdd => int(Spv::IAdd),
        Op::ISub => int(Spv::ISub),
        Op::IMul => int(Spv::IMul),
        Op::IDiv => int(Spv::SDiv),
        Op::UDiv => int(Spv::UDiv),
        Op::IRem => int(Spv::SRem),
        Op::IMod => int(Spv::SMod),
        Op::UMod => int(Spv::UMod),
        Op::INeg => int(Spv::SNegate),
        Op::IAbs => glsl(GlslStd450Op::SAbs),
        Op::IMin => glsl(GlslStd450Op::SMin),
        Op::IMax => glsl(GlslStd450Op::SMax),
        Op::UMin => glsl(GlslStd450Op::UMin),
        Op::UMax => glsl(GlslStd450Op::UMax),
        Op::IAnd => int(Spv::BitwiseAnd),
        Op::IOr => int(Spv::BitwiseOr),
        Op::IXor => int(Spv::BitwiseXor),
        Op::INot => int(Spv::Not),
        Op::IShl => int(Spv::ShiftLeftLogical),
        Op::IShr => int(Spv::ShiftRightArithmetic),
        Op::UShr => int(Spv::ShiftRightLogical),
        Op::BitCount => int(Spv::BitCount),
        Op::BitReverse => int(Spv::BitReverse),
        Op::FindLsb => glsl(GlslStd450Op::FindILsb),
        Op::FindUMsb => glsl(GlslStd450Op::FindUMsb),
        Op::FindIMsb => glsl(GlslStd450Op::FindSMsb),
        Op::BitfieldInsert => int(Spv::BitFieldInsert),
        Op::UBitfieldExtract => int(Spv::BitFieldUExtract),
        Op::IBitfieldExtract => int(Spv::BitFieldSExtract),
        Op::IEq => int(Spv::IEqual),
        Op::INe => int(Spv::INotEqual),
        Op::ILt => int(Spv::SLessThan),
        Op::IGe => int(Spv::SGreaterThanEqual),
        Op::ULt => int(Spv::ULessThan),
        Op::UGe => int(Spv::UGreaterThanEqual),
        Op::FAdd => float(Spv::FAdd),
        Op::FSub => float(Spv::FSub),
        Op::FMul => float(Spv::FMul),
        Op::FDiv => float(Spv::FDiv),
        Op::FFma => glsl_float(GlslStd450Op::Fma),
        Op::FNeg => float(Spv::FNegate),
        Op::FAbs => glsl_float(GlslStd450Op::FAbs),
        Op::FMin => glsl_float(GlslStd450Op::NMin),
        Op::FMax => glsl_float(GlslStd450Op::NMax),
        Op::FFloor => glsl_float(GlslStd450Op::Floor),
        Op::FCeil => glsl_float(GlslStd450Op::Ceil),
        Op::FTrunc => glsl_float(GlslStd450Op::Trunc),
        Op::FRoundEven => glsl_float(GlslStd450Op::RoundEven),
        Op::FSqrt => glsl_float(GlslStd450Op::Sqrt),
        Op::FRsqrt => glsl_float(GlslStd450Op::InverseSqrt),
        Op::FSin => glsl_float(GlslStd450Op::Sin),
        Op::FCos => glsl_float(GlslStd450Op::Cos),
        Op::FExp2 => glsl_float(GlslStd450Op::Exp2),
        Op::FLog2 => glsl_float(GlslStd450Op::Log2),
        Op::FQuantizeF16 => float(Spv::QuantizeToF16),
        Op::FEq => compares(Spv::FOrdEqual),
        Op::FNeu => compares(Spv::FUnordNotEqual),
        Op::FLt => compares(Spv::FOrdLessThan),
        Op::FGe => compares(Spv::FOrdGreaterThanEqual),
        Op::I2I => int(Spv::SConvert),
        Op::U2U => int(Spv::UConvert),
        Op::I2F => Some(Recipe { code: Code::Core(Spv::ConvertSToF), floats: [false, true] }),
        Op::U2F => Some(Recipe { code: Code::Core(Spv::ConvertUToF), floats: [false, true] }),
        Op::F2I => compares(Spv::ConvertFToS),
        Op::F2U => compares(Spv::ConvertFToU),
        Op::F2F => float(Spv::FConvert),
        _ => None,
    }
}

/// Whether an operation can be written.
pub(super) fn has_operation(op: Op) -> bool {
    recipe(op, Base::B32).is_some()
}

/// Whether an operation can be written for a type, and the type of its first operand.
pub(super) fn has_types(op: Op, ty: Type, first: Type) -> bool {
    let only_words = matches!(
        op,
        Op::BitCount
            | Op::BitReverse
            | Op::FindLsb
            | Op::FindUMsb
            | Op::FindIMsb
            | Op::BitfieldInsert
            | Op::UBitfieldExtract
            | Op::IBitfieldExtract
            | Op::FQuantizeF16
    );
    let not_wide = matches!(op, Op::FSin | Op::FCos | Op::FExp2 | Op::FLog2);
    // A conversion in SPIR-V changes the width.
    let converts = matches!(op, Op::I2I | Op::U2U | Op::F2F);
    recipe(op, ty.base).is_some()
        && !(only_words && ty.base != Base::B32)
        && !(not_wide && ty.base == Base::B64)
        && !(converts && first.base == ty.base)
}

/// A type of the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum TypeKey {
    Void,
    Value(Type),
    Float(Type),
    Tree(TypeId),
    Pointer(u32, u32),
    Function(u32, Vec<u32>),
}

/// The module as words.
///
/// # Panics
/// When the shader has something that is not of the dialect.
pub fn module(shader: &Shader) -> Vec<u32> {
    let mut writer = Writer::new(shader);
    writer.glsl = writer.fresh();
    writer.functions = (0..shader.functions().len()).map(|_| writer.fresh()).collect();
    writer.memory();
    for func in shader.functions() {
        FunctionWriter::new(&mut writer, func).write();
    }
    writer.finish()
}

struct Writer<'s> {
    shader: &'s Shader,
    next: u32,
    glsl: u32,
    functions: Vec<u32>,
    types: HashMap<TypeKey, u32>,
    constants: HashMap<(Type, u64), u32>,
    /// Variables that are not those of a function.
    globals: HashMap<Var, u32>,
    system_values: HashMap<SystemValue, u32>,
    buffers: HashMap<Resource, u32>,
    shared: u32,
    interface: Vec<u32>,
    decorations: Vec<u32>,
    declarations: Vec<u32>,
    code: Vec<u32>,
}

fn push(out: &mut Vec<u32>, op: Spv, words: &[u32]) {
    crate::spirv::op(out, op as u32, words);
}

impl<'s> Writer<'s> {
    fn new(shader: &'s Shader) -> Self {
        Writer {
            shader,
            next: 1,
            glsl: 0,
            functions: Vec::new(),
            types: HashMap::new(),
            constants: HashMap::new(),
            globals: HashMap::new(),
            system_values: HashMap::new(),
            buffers: HashMap::new(),
            shared: 0,
            interface: Vec::new(),
            decorations: Vec::new(),
            declarations: Vec::new(),
            code: Vec::new(),
        }
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn declare(&mut self, op: Spv, words: &[u32]) {
        push(&mut self.declarations, op, words);
    }

    fn type_id(&mut self, key: &TypeKey) -> u32 {
        if let Some(&id) = self.types.get(key) {
            return id;
        }
        let scalar = |ty: &Type| Type::scalar(ty.base);
        let id = match key {
            TypeKey::Void => self.declared(Spv::TypeVoid, &[]),
            TypeKey::Value(ty) | TypeKey::Float(ty) if ty.lanes > 1 => {
                let lane = match key {
                    TypeKey::Float(_) => TypeKey::Float(scalar(ty)),
                    _ => TypeKey::Value(scalar(ty)),
                };
                let lane = self.type_id(&lane);
                self.declared(Spv::TypeVector, &[lane, ty.lanes.into()])
            }
            TypeKey::Value(Type { base: Base::B1, .. }) => self.declared(Spv::TypeBool, &[]),
            TypeKey::Value(ty) => self.declared(Spv::TypeInt, &[ty.base.bits(), 0]),
            TypeKey::Float(ty) => self.declared(Spv::TypeFloat, &[ty.base.bits()]),
            TypeKey::Tree(ty) => match &self.shader.types[*ty] {
                TypeNode::Leaf(ty) => return self.type_id(&TypeKey::Value(*ty)),
                TypeNode::Array { element, len } => {
                    let element = self.type_id(&TypeKey::Tree(*element));
                    let len = self.word(*len);
                    self.declared(Spv::TypeArray, &[element, len])
                }
                TypeNode::Struct(members) => {
                    let members: Vec<u32> =
                        members.iter().map(|ty| self.type_id(&TypeKey::Tree(*ty))).collect();
                    self.declared(Spv::TypeStruct, &members)
                }
            },
            TypeKey::Pointer(class, to) => self.declared(Spv::TypePointer, &[*class, *to]),
            TypeKey::Function(result, params) => {
                let words = [&[*result], params.as_slice()].concat();
                self.declared(Spv::TypeFunction, &words)
            }
        };
        self.types.insert(key.clone(), id);
        id
    }

    /// A declaration whose result comes first.
    fn declared(&mut self, op: Spv, words: &[u32]) -> u32 {
        let id = self.fresh();
        self.declare(op, &[&[id], words].concat());
        id
    }

    fn value_type(&mut self, ty: Type) -> u32 {
        self.type_id(&TypeKey::Value(ty))
    }

    fn pointer(&mut self, class: StorageClass, to: u32) -> u32 {
        self.type_id(&TypeKey::Pointer(class as u32, to))
    }

    fn constant(&mut self, ty: Type, bits: u64) -> u32 {
        if let Some(&id) = self.constants.get(&(ty, bits)) {
            return id;
        }
        let of = self.value_type(ty);
        let id = self.fresh();
        match ty.base {
            Base::B1 => {
                let op = if bits == 0 { Spv::ConstantFalse } else { Spv::ConstantTrue };
                self.declare(op, &[of, id]);
            }
            Base::B64 => self.declare(Spv::Constant, &[of, id, bits as u32, (bits >> 32) as u32]),
            _ => self.declare(Spv::Constant, &[of, id, bits as u32]),
        }
        self.constants.insert((ty, bits), id);
        id
    }

    fn word(&mut self, bits: u32) -> u32 {
        self.constant(Type::B32, bits.into())
    }

    fn decorate(&mut self, id: u32, decoration: Decoration, words: &[u32]) {
        push(&mut self.decorations, Spv::Decorate, &[&[id, decoration as u32], words].concat());
    }

    fn variable(&mut self, class: StorageClass, of: u32) -> u32 {
        let pointer = self.pointer(class, of);
        let id = self.fresh();
        self.declare(Spv::Variable, &[pointer, id, class as u32]);
        self.interface.push(id);
        id
    }

    /// Buffers, workgroup memory, private variables and system values.
    fn memory(&mut self) {
        let word = self.value_type(Type::B32);
        let array = self.declared(Spv::TypeRuntimeArray, &[word]);
        self.decorate(array, Decoration::ArrayStride, &[4]);
        let block = self.declared(Spv::TypeStruct, &[array]);
        self.decorate(block, Decoration::Block, &[]);
        push(&mut self.decorations, Spv::MemberDecorate, &[block, 0, Decoration::Offset as u32, 0]);
        let shader = self.shader;
        for (resource, data) in shader.resources.iter().take(2) {
            let id = self.variable(StorageClass::StorageBuffer, block);
            self.decorate(id, Decoration::DescriptorSet, &[data.set]);
            self.decorate(id, Decoration::Binding, &[data.binding]);
            self.buffers.insert(resource, id);
        }
        let len = self.word(shader.info.shared_size / 4);
        let shared = self.declared(Spv::TypeArray, &[word, len]);
        self.shared = self.variable(StorageClass::Workgroup, shared);
        for (var, data) in shader.vars.iter().filter(|(_, data)| data.storage == Storage::Private) {
            let of = self.type_id(&TypeKey::Tree(data.ty));
            let id = self.variable(StorageClass::Private, of);
            self.globals.insert(var, id);
        }
        let values = [
            (SystemValue::LocalInvocationIndex, BuiltIn::LocalInvocationIndex),
            (SystemValue::WorkgroupId, BuiltIn::WorkgroupId),
        ];
        for (value, built_in) in values {
            let of = self.value_type(value.ty());
            let id = self.variable(StorageClass::Input, of);
            self.decorate(id, Decoration::BuiltIn, &[built_in as u32]);
            self.system_values.insert(value, id);
        }
    }

    fn finish(self) -> Vec<u32> {
        let mut out = vec![MAGIC_NUMBER, 0x0001_0500, 0, self.next, 0];
        let capabilities = [
            Capability::Shader,
            Capability::Int8,
            Capability::Int16,
            Capability::Int64,
            Capability::Float16,
            Capability::Float64,
            Capability::DenormPreserve,
            Capability::DenormFlushToZero,
            Capability::SignedZeroInfNanPreserve,
            Capability::RoundingModeRTE,
            Capability::RoundingModeRTZ,
        ];
        for capability in capabilities {
            push(&mut out, Spv::Capability, &[capability as u32]);
        }
        let name = b"GLSL.std.450\0\0\0\0".chunks(4);
        let name: Vec<u32> = name.map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        push(&mut out, Spv::ExtInstImport, &[&[self.glsl], name.as_slice()].concat());
        let model = [AddressingModel::Logical as u32, MemoryModel::GLSL450 as u32];
        push(&mut out, Spv::MemoryModel, &model);
        let main = self.functions[0];
        let point = [ExecutionModel::GLCompute as u32, main, u32::from_le_bytes(*b"main"), 0];
        push(&mut out, Spv::EntryPoint, &[point.as_slice(), &self.interface].concat());
        let [x, y, z] = self.shader.info.workgroup_size;
        push(&mut out, Spv::ExecutionMode, &[main, ExecutionMode::LocalSize as u32, x, y, z]);
        for (number, mode) in self.shader.info.float_modes.iter().enumerate() {
            let mut say = |mode: ExecutionMode| {
                push(&mut out, Spv::ExecutionMode, &[main, mode as u32, 16 << number]);
            };
            match mode.flush {
                Some(true) => say(ExecutionMode::DenormFlushToZero),
                Some(false) => say(ExecutionMode::DenormPreserve),
                None => {}
            }
            if mode.preserve {
                say(ExecutionMode::SignedZeroInfNanPreserve);
            }
            say(if mode.round == Round::Zero {
                ExecutionMode::RoundingModeRTZ
            } else {
                ExecutionMode::RoundingModeRTE
            });
        }
        out.extend(self.decorations);
        out.extend(self.declarations);
        out.extend(self.code);
        out
    }
}

/// Where breaks or continues lead, and the values that they pass.
#[derive(Debug, Default)]
struct Edges {
    label: u32,
    from: Vec<(u32, Vec<u32>)>,
}

impl Edges {
    fn phi(&self, out: &mut Vec<u32>, ty: u32, result: u32, number: usize) {
        let mut words = vec![ty, result];
        for (block, values) in &self.from {
            words.extend([values[number], *block]);
        }
        push(out, Spv::Phi, &words);
    }
}

struct FunctionWriter<'w, 's> {
    writer: &'w mut Writer<'s>,
    func: &'s Function,
    values: HashMap<Value, u32>,
    locals: HashMap<Var, u32>,
    breaks: HashMap<Inst, Edges>,
    continues: HashMap<Inst, Edges>,
    /// Label of the block that is written.
    block: u32,
    code: Vec<u32>,
}

impl<'w, 's> FunctionWriter<'w, 's> {
    fn new(writer: &'w mut Writer<'s>, func: &'s Function) -> Self {
        FunctionWriter {
            writer,
            func,
            values: HashMap::new(),
            locals: HashMap::new(),
            breaks: HashMap::new(),
            continues: HashMap::new(),
            block: 0,
            code: Vec::new(),
        }
    }

    fn write(mut self) {
        let shader = self.writer.shader;
        let number = shader.functions().iter().position(|func| std::ptr::eq(func, self.func));
        let id = self.writer.functions[number.expect("a function of the shader")];
        let result = self.function_result(self.func);
        let params = self.func.params(self.func.body()).to_vec();
        let types: Vec<u32> = params.iter().map(|&value| self.value_type(value)).collect();
        let ty = self.writer.type_id(&TypeKey::Function(result, types.clone()));
        self.push(Spv::Function, &[result, id, FunctionControl::NONE.bits(), ty]);
        for (&param, of) in params.iter().zip(types) {
            let id = self.value(param);
            self.push(Spv::FunctionParameter, &[of, id]);
        }
        let label = self.writer.fresh();
        self.start_block(label);
        self.local_variables();
        self.region(self.func.body());
        self.push(Spv::FunctionEnd, &[]);
        self.writer.code.append(&mut self.code);
    }

    fn function_result(&mut self, func: &Function) -> u32 {
        match func.results.as_slice() {
            [] => self.writer.type_id(&TypeKey::Void),
            [ty] => self.writer.value_type(*ty),
            _ => panic!("a function has several results"),
        }
    }

    fn local_variables(&mut self) {
        let shader = self.writer.shader;
        for inst in self.func.walk() {
            let Payload::Var(var, _) = self.func.payload(inst) else { continue };
            if shader.vars[var].storage != Storage::Function || self.locals.contains_key(&var) {
                continue;
            }
            let of = self.writer.type_id(&TypeKey::Tree(shader.vars[var].ty));
            let pointer = self.writer.pointer(StorageClass::Function, of);
            let id = self.writer.fresh();
            self.push(Spv::Variable, &[pointer, id, StorageClass::Function as u32]);
            self.locals.insert(var, id);
        }
    }

    fn push(&mut self, op: Spv, words: &[u32]) {
        push(&mut self.code, op, words);
    }

    fn start_block(&mut self, label: u32) {
        self.push(Spv::Label, &[label]);
        self.block = label;
    }

    fn value(&mut self, value: Value) -> u32 {
        if let Some(&id) = self.values.get(&value) {
            return id;
        }
        let id = self.writer.fresh();
        self.values.insert(value, id);
        id
    }

    fn value_type(&mut self, value: Value) -> u32 {
        self.writer.value_type(self.func.ty(value))
    }

    fn operands(&mut self, inst: Inst) -> Vec<u32> {
        self.func.args(inst).iter().map(|&arg| self.value(arg)).collect()
    }

    /// An instruction with a type and a new result.
    fn computed(&mut self, op: Spv, ty: u32, words: &[u32]) -> u32 {
        let id = self.writer.fresh();
        self.push(op, &[&[ty, id], words].concat());
        id
    }

    /// Writes a region up to its terminator, or to a structured instruction that is never left.
    fn region(&mut self, region: Region) {
        let func = self.func;
        for inst in func.insts(region) {
            match func.op(inst) {
                Op::Block | Op::If | Op::Loop => {
                    self.structured(inst);
                    let edges = self.breaks.remove(&inst).unwrap_or_default();
                    self.start_block(edges.label);
                    if edges.from.is_empty() {
                        self.push(Spv::Unreachable, &[]);
                        return;
                    }
                    for (number, &result) in func.results(inst).iter().enumerate() {
                        let (ty, id) = (self.value_type(result), self.value(result));
                        edges.phi(&mut self.code, ty, id, number);
                    }
                }
                Op::Break | Op::Continue => self.jump(inst),
                Op::Return => match self.operands(inst).as_slice() {
                    [] => self.push(Spv::Return, &[]),
                    values => self.push(Spv::ReturnValue, values),
                },
                _ => self.inst(inst),
            }
        }
    }

    fn structured(&mut self, inst: Inst) {
        let (func, merge) = (self.func, self.writer.fresh());
        self.breaks.insert(inst, Edges { label: merge, from: Vec::new() });
        match func.payload(inst) {
            Payload::Arms(then, other) => {
                let condition = self.operands(inst)[0];
                let labels = [self.writer.fresh(), self.writer.fresh()];
                self.push(Spv::SelectionMerge, &[merge, SelectionControl::NONE.bits()]);
                self.push(Spv::BranchConditional, &[condition, labels[0], labels[1]]);
                for (label, arm) in labels.into_iter().zip([then, other]) {
                    self.start_block(label);
                    self.region(arm);
                }
            }
            Payload::Body(body) => {
                let label = self.writer.fresh();
                self.push(Spv::Branch, &[label]);
                if func.op(inst) == Op::Loop {
                    let first = (self.block, self.operands(inst));
                    self.continues.insert(inst, Edges { label, from: vec![first] });
                }
                self.start_block(label);
                // The phis of a loop are known when its body is written.
                let before = std::mem::take(&mut self.code);
                self.region(body);
                let written = std::mem::replace(&mut self.code, before);
                if let Some(edges) = self.continues.remove(&inst) {
                    for (number, &param) in func.params(body).iter().enumerate() {
                        let (ty, id) = (self.value_type(param), self.value(param));
                        edges.phi(&mut self.code, ty, id, number);
                    }
                }
                self.code.extend(written);
            }
            _ => {}
        }
    }

    fn jump(&mut self, inst: Inst) {
        let Payload::Target(target) = self.func.payload(inst) else { return };
        let values = self.operands(inst);
        let block = self.block;
        let edges = if self.func.op(inst) == Op::Break { &mut self.breaks } else { &mut self.continues };
        let edges = edges.get_mut(&target).expect("the target is open");
        edges.from.push((block, values));
        let label = edges.label;
        self.push(Spv::Branch, &[label]);
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let (op, payload) = (func.op(inst), func.payload(inst));
        match (op, payload) {
            (Op::Const, Payload::Const(bits)) => {
                let result = func.result(inst);
                let id = self.writer.constant(func.ty(result), bits);
                self.values.insert(result, id);
            }
            // Accesses name the buffer.
            (Op::Descriptor, _) => {}
            (Op::SysVal, Payload::SysVal(value)) => {
                let from = self.writer.system_values[&value];
                self.result_of(inst, Spv::Load, &[from]);
            }
            (Op::Vec, _) => {
                let lanes = self.operands(inst);
                self.result_of(inst, Spv::CompositeConstruct, &lanes);
            }
            (Op::Extract, Payload::Lane(lane)) => {
                let vector = self.operands(inst)[0];
                self.result_of(inst, Spv::CompositeExtract, &[vector, lane.into()]);
            }
            (Op::ExtractDyn | Op::InsertDyn | Op::Bitcast, _) => {
                let args = self.operands(inst);
                let op = match op {
                    Op::ExtractDyn => Spv::VectorExtractDynamic,
                    Op::InsertDyn => Spv::VectorInsertDynamic,
                    _ => Spv::Bitcast,
                };
                self.result_of(inst, op, &args);
            }
            (Op::LoadVar | Op::StoreVar, Payload::Var(var, mask)) => self.variable(inst, var, mask),
            (Op::Load | Op::Store, Payload::Mem(mem)) => self.memory(inst, mem.space),
            (Op::Atomic | Op::AtomicCompare, Payload::Atomic(atomic, mem)) => {
                self.atomic(inst, atomic, mem.space);
            }
            (Op::Barrier, _) => {
                let scope = self.writer.word(spirv::Scope::Workgroup as u32);
                let order = spirv::MemorySemantics::ACQUIRE_RELEASE
                    | spirv::MemorySemantics::UNIFORM_MEMORY
                    | spirv::MemorySemantics::WORKGROUP_MEMORY;
                let order = self.writer.word(order.bits());
                self.push(Spv::ControlBarrier, &[scope, scope, order]);
            }
            (Op::Call, Payload::Callee(callee)) => self.call(inst, callee),
            _ => self.elementwise(inst),
        }
    }

    fn result_of(&mut self, inst: Inst, op: Spv, words: &[u32]) {
        let result = self.func.result(inst);
        let (ty, id) = (self.value_type(result), self.value(result));
        self.push(op, &[&[ty, id], words].concat());
    }

    fn call(&mut self, inst: Inst, callee: Func) {
        use unwedge_base::entity::Entity;
        let shader = self.writer.shader;
        let ty = self.function_result(shader.function(callee));
        let id = match self.func.results(inst) {
            [] => self.writer.fresh(),
            results => self.value(results[0]),
        };
        let mut words = vec![ty, id, self.writer.functions[callee.index()]];
        words.extend(self.operands(inst));
        self.push(Spv::FunctionCall, &words);
    }

    fn elementwise(&mut self, inst: Inst) {
        let func = self.func;
        let (op, args, result) = (func.op(inst), func.args(inst), func.result(inst));
        // A comparison has the base of what it compares.
        let base = if op == Op::Select { func.ty(result).base } else { func.ty(args[0]).base };
        let recipe = recipe(op, base).unwrap_or_else(|| panic!("{} is not written", op.name()));
        let mut words = Vec::new();
        for &arg in args {
            let id = self.value(arg);
            words.push(if recipe.floats[0] {
                let ty = self.writer.type_id(&TypeKey::Float(func.ty(arg)));
                self.computed(Spv::Bitcast, ty, &[id])
            } else {
                id
            });
        }
        let ty = func.ty(result);
        let ty = if recipe.floats[1] { TypeKey::Float(ty) } else { TypeKey::Value(ty) };
        let of = self.writer.type_id(&ty);
        let id = if recipe.floats[1] { self.writer.fresh() } else { self.value(result) };
        match recipe.code {
            Code::Core(op) => self.push(op, &[&[of, id], words.as_slice()].concat()),
            Code::Glsl(op) => {
                let head = [of, id, self.writer.glsl, op as u32];
                self.push(Spv::ExtInst, &[head.as_slice(), &words].concat());
            }
        }
        if func.exact(inst) {
            self.writer.decorate(id, Decoration::NoContraction, &[]);
        }
        if recipe.floats[1] {
            self.result_of(inst, Spv::Bitcast, &[id]);
        }
    }

    fn variable(&mut self, inst: Inst, var: Var, mask: u16) {
        let func = self.func;
        let (class, root) = match self.locals.get(&var) {
            Some(&id) => (StorageClass::Function, id),
            None => (StorageClass::Private, self.writer.globals[&var]),
        };
        let args = self.operands(inst);
        if func.op(inst) == Op::LoadVar {
            let of = self.value_type(func.result(inst));
            let at = self.chain(class, root, of, &args);
            self.result_of(inst, Spv::Load, &[at]);
            return;
        }
        let ty = func.ty(func.args(inst)[0]);
        if mask == ((1u32 << ty.lanes) - 1) as u16 {
            let of = self.writer.value_type(ty);
            let at = self.chain(class, root, of, &args[1..]);
            self.push(Spv::Store, &[at, args[0]]);
            return;
        }
        let of = self.writer.value_type(ty.lane());
        for lane in (0..u32::from(ty.lanes)).filter(|lane| mask >> lane & 1 != 0) {
            let value = self.computed(Spv::CompositeExtract, of, &[args[0], lane]);
            let number = self.writer.word(lane);
            let path = [&args[1..], &[number]].concat();
            let at = self.chain(class, root, of, &path);
            self.push(Spv::Store, &[at, value]);
        }
    }

    fn chain(&mut self, class: StorageClass, root: u32, of: u32, path: &[u32]) -> u32 {
        if path.is_empty() {
            return root;
        }
        let pointer = self.writer.pointer(class, of);
        self.computed(Spv::AccessChain, pointer, &[&[root], path].concat())
    }

    /// Pointers to words of memory, from the operands that say where.
    fn words(&mut self, space: Space, at: &[Value], count: u32) -> Vec<u32> {
        let word = self.writer.value_type(Type::B32);
        let offset = self.value(at[at.len() - 1]);
        let two = self.writer.word(2);
        let first = self.computed(Spv::ShiftRightLogical, word, &[offset, two]);
        let (class, root) = if space == Space::Shared {
            (StorageClass::Workgroup, self.writer.shared)
        } else {
            let def = self.func.def_inst(at[0]).map(|def| self.func.payload(def));
            let Some(Payload::Resource(resource, _)) = def else { panic!("a buffer is not known") };
            (StorageClass::StorageBuffer, self.writer.buffers[&resource])
        };
        let zero = self.writer.word(0);
        (0..count)
            .map(|lane| {
                let lane = self.writer.word(lane);
                let index = self.computed(Spv::IAdd, word, &[first, lane]);
                let path = if class == StorageClass::Workgroup { vec![index] } else { vec![zero, index] };
                self.chain(class, root, word, &path)
            })
            .collect()
    }

    fn memory(&mut self, inst: Inst, space: Space) {
        let func = self.func;
        let word = self.writer.value_type(Type::B32);
        if func.op(inst) == Op::Load {
            let lanes = func.ty(func.result(inst)).lanes;
            let pointers = self.words(space, func.args(inst), lanes.into());
            if let [pointer] = pointers.as_slice() {
                self.result_of(inst, Spv::Load, &[*pointer]);
                return;
            }
            let loaded: Vec<u32> =
                pointers.into_iter().map(|pointer| self.computed(Spv::Load, word, &[pointer])).collect();
            self.result_of(inst, Spv::CompositeConstruct, &loaded);
            return;
        }
        let stored = func.args(inst)[0];
        let (value, lanes) = (self.value(stored), func.ty(stored).lanes);
        let pointers = self.words(space, &func.args(inst)[1..], lanes.into());
        for (lane, pointer) in pointers.into_iter().enumerate() {
            let lane = match lanes {
                1 => value,
                _ => self.computed(Spv::CompositeExtract, word, &[value, lane as u32]),
            };
            self.push(Spv::Store, &[pointer, lane]);
        }
    }

    fn atomic(&mut self, inst: Inst, atomic: AtomicOp, space: Space) {
        let func = self.func;
        let compares = func.op(inst) == Op::AtomicCompare;
        let args = self.operands(inst);
        let at = &func.args(inst)[if compares { 2 } else { 1 }..];
        let pointer = self.words(space, at, 1)[0];
        let scope = self.writer.word(spirv::Scope::Device as u32);
        let relaxed = self.writer.word(0);
        if compares {
            let words = [pointer, scope, relaxed, relaxed, args[0], args[1]];
            self.result_of(inst, Spv::AtomicCompareExchange, &words);
            return;
        }
        let op = match atomic {
            AtomicOp::Add => Spv::AtomicIAdd,
            AtomicOp::IMin => Spv::AtomicSMin,
            AtomicOp::IMax => Spv::AtomicSMax,
            AtomicOp::UMin => Spv::AtomicUMin,
            AtomicOp::UMax => Spv::AtomicUMax,
            AtomicOp::And => Spv::AtomicAnd,
            AtomicOp::Or => Spv::AtomicOr,
            AtomicOp::Xor => Spv::AtomicXor,
            _ => panic!("atomic {} is not written", atomic.name()),
        };
        self.result_of(inst, op, &[pointer, scope, relaxed, args[0]]);
    }
}
