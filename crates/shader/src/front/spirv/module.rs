//! The module as it is written: instructions, ids, names, decorations, types, constants, functions.
//!
//! One pass over the words. It reads nothing of a function's body except where its blocks are.

use super::constants::{self, Constant};
use super::error::{Result, SpirvCause, SpirvError, invalid, unsupported};
use super::types::{SpvType, TypeRef, Types};
use spirv::{Decoration, ExecutionModel, Op};
use std::ops::Range;

/// No index.
pub(super) const NONE: u32 = u32::MAX;

/// What an id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdDef {
    None,
    Type(TypeRef),
    /// Number in [`Module::constants`].
    Constant(u32),
    /// Number in [`Module::variables`].
    Variable(u32),
    /// Number in [`Module::functions`].
    Function(u32),
    /// Number in [`Module::sets`].
    Set(u32),
    /// Word offset of an `OpString`.
    String(u32),
    /// A result in a function's body: the id of its type; of a label [`NONE`].
    Local(u32),
}

/// An extended instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtSet {
    Glsl,
    /// `NonSemantic.Shader.DebugInfo.100`.
    DebugInfo,
    /// Any other set without semantics.
    NonSemantic,
}

/// A decoration of an id or of a member of it.
#[derive(Debug, Clone, Copy)]
struct DecorationEntry {
    decoration: u32,
    /// The member; [`NONE`] for the whole.
    member: u32,
    /// Word offset of the first operand, and how many there are.
    operand: u32,
    operands: u32,
    next: u32,
}

/// A variable of the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleVar {
    pub(super) id: u32,
    /// The pointer type's number.
    pub(super) ty: TypeRef,
    pub(super) class: u32,
    pub(super) initializer: Option<u32>,
    pub(super) at: u32,
}

/// A block of a function.
#[derive(Debug, Clone)]
pub(super) struct BlockDef {
    pub(super) label: u32,
    /// Words of its instructions, without the label.
    pub(super) body: Range<u32>,
}

/// A function.
#[derive(Debug, Clone)]
pub(super) struct FunctionDef {
    pub(super) result: TypeRef,
    pub(super) params: Vec<(u32, TypeRef)>,
    /// Range of [`Module::blocks`].
    pub(super) blocks: Range<usize>,
    pub(super) at: u32,
}

/// An entry point.
#[derive(Debug, Clone)]
pub(super) struct EntryPoint {
    pub(super) model: u32,
    pub(super) function: u32,
    pub(super) name: String,
    pub(super) interface: Range<u32>,
    pub(super) at: u32,
}

/// A module.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) version: u32,
    pub(super) ids: Vec<IdDef>,
    names: Vec<(u32, u32)>,
    decoration_heads: Vec<u32>,
    decorations: Vec<DecorationEntry>,
    pub(super) types: Types,
    pub(super) constants: Vec<Constant>,
    /// Bits of the lanes of constants.
    pub(super) lanes: Vec<u64>,
    pub(super) variables: Vec<ModuleVar>,
    pub(super) functions: Vec<FunctionDef>,
    pub(super) blocks: Vec<BlockDef>,
    pub(super) entry_points: Vec<EntryPoint>,
    /// Word offsets of execution modes.
    pub(super) modes: Vec<u32>,
    pub(super) sets: Vec<ExtSet>,
    /// Ids and word offsets of extended instructions outside of functions: `DebugSource` is one.
    pub(super) debug_sources: Vec<(u32, u32)>,
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instr<'a> {
    pub(super) op: Op,
    /// Its words, the first one with opcode and length.
    pub(super) words: &'a [u32],
    pub(super) at: u32,
}

impl<'a> Instr<'a> {
    /// A word, from 1.
    #[inline]
    pub(super) fn word(&self, at: usize) -> Result<u32> {
        self.words.get(at).copied().ok_or(SpirvCause::Operands(self.op))
    }

    /// The words from one on.
    pub(super) fn rest(&self, at: usize) -> Result<&'a [u32]> {
        self.words.get(at..).ok_or(SpirvCause::Operands(self.op))
    }
}

/// Reads the instruction at an offset.
pub(super) fn instruction(words: &[u32], at: u32) -> Result<Instr<'_>> {
    let &first = words.get(at as usize).ok_or(SpirvCause::Truncated)?;
    let len = (first >> 16) as usize;
    let op = Op::from_u32(first & 0xffff).ok_or(SpirvCause::Opcode(first & 0xffff))?;
    if len == 0 {
        return Err(SpirvCause::Operands(op));
    }
    let words = words.get(at as usize..at as usize + len).ok_or(SpirvCause::Truncated)?;
    Ok(Instr { op, words, at })
}

/// A literal string, and how many words it has.
pub(super) fn string(words: &[u32]) -> Result<(String, usize)> {
    let mut bytes = Vec::new();
    for (index, word) in words.iter().enumerate() {
        for byte in word.to_le_bytes() {
            if byte == 0 {
                return Ok((String::from_utf8_lossy(&bytes).into_owned(), index + 1));
            }
            bytes.push(byte);
        }
    }
    invalid("a string does not end")
}

/// Whether the instruction has a result type and a result, in words 1 and 2.
pub(super) fn has_result(op: Op) -> bool {
    use Op::*;
    !matches!(
        op,
        Store
            | CopyMemory
            | CopyMemorySized
            | Branch
            | BranchConditional
            | Switch
            | Return
            | ReturnValue
            | Kill
            | Unreachable
            | TerminateInvocation
            | LoopMerge
            | SelectionMerge
            | Line
            | NoLine
            | Nop
            | ImageWrite
            | AtomicStore
            | ControlBarrier
            | MemoryBarrier
            | EmitVertex
            | EndPrimitive
            | EmitStreamVertex
            | EndStreamPrimitive
            | DemoteToHelperInvocation
            | Label
            | FunctionEnd
            | Name
            | MemberName
            | AssumeTrueKHR
            | BeginInvocationInterlockEXT
            | EndInvocationInterlockEXT
    )
}

impl Module {
    fn clear(&mut self) {
        self.ids.clear();
        self.names.clear();
        self.decoration_heads.clear();
        self.decorations.clear();
        self.types.clear();
        self.constants.clear();
        self.lanes.clear();
        self.variables.clear();
        self.functions.clear();
        self.blocks.clear();
        self.entry_points.clear();
        self.modes.clear();
        self.sets.clear();
        self.debug_sources.clear();
    }

    /// Reads a module into this one, whatever it held before. `specialize` gives the bits of specialization constants by number.
    pub(super) fn read(
        &mut self,
        words: &[u32],
        specialize: &dyn Fn(u32) -> Option<u64>,
    ) -> std::result::Result<(), SpirvError> {
        self.clear();
        let fail = |offset, cause| Err(SpirvError { offset, cause });
        let &[magic, version, _, bound, _, ..] = words else { return fail(0, SpirvCause::Truncated) };
        if magic != spirv::MAGIC_NUMBER {
            return fail(0, SpirvCause::Magic);
        }
        self.version = version;
        // A result has two words at least, but tools remove instructions and leave ids as they are.
        if bound as usize > words.len().saturating_mul(16).saturating_add(1024) {
            return fail(3, SpirvCause::BoundTooLarge(bound));
        }
        self.ids.resize(bound as usize, IdDef::None);
        self.decoration_heads.resize(bound as usize, NONE);
        let mut scan = Scan { words, specialize, function: None, block: None };
        let mut at = 5;
        while (at as usize) < words.len() {
            let step = instruction(words, at).and_then(|inst| {
                scan.instruction(self, inst)?;
                Ok(inst.words.len() as u32)
            });
            match step {
                Ok(len) => at += len,
                Err(cause) => return fail(at, cause),
            }
        }
        if scan.function.is_some() {
            return fail(at, SpirvCause::Invalid("the last function does not end"));
        }
        Ok(())
    }

    /// What an id is.
    #[inline]
    pub(super) fn id(&self, id: u32) -> Result<IdDef> {
        self.ids.get(id as usize).copied().ok_or(SpirvCause::Bound(id))
    }

    pub(super) fn define(&mut self, id: u32, def: IdDef) -> Result<()> {
        match self.ids.get_mut(id as usize) {
            Some(slot @ IdDef::None) => {
                *slot = def;
                Ok(())
            }
            Some(_) => invalid("an id is defined twice"),
            None => Err(SpirvCause::Bound(id)),
        }
    }

    /// The type that an id names.
    pub(super) fn type_of(&self, id: u32) -> Result<TypeRef> {
        match self.id(id)? {
            IdDef::Type(ty) => Ok(ty),
            IdDef::None => Err(SpirvCause::Undefined(id)),
            _ => Err(SpirvCause::Wrong { id, wanted: "a type" }),
        }
    }

    /// The constant that an id names.
    pub(super) fn constant(&self, id: u32) -> Result<&Constant> {
        match self.id(id)? {
            IdDef::Constant(index) => Ok(&self.constants[index as usize]),
            IdDef::None => Err(SpirvCause::Undefined(id)),
            _ => Err(SpirvCause::Wrong { id, wanted: "a constant" }),
        }
    }

    /// The bits of a constant scalar.
    pub(super) fn constant_bits(&self, id: u32) -> Result<u64> {
        let constant = self.constant(id)?;
        match self.lanes.get(constant.lanes.clone()) {
            Some(&[bits]) => Ok(bits),
            _ => Err(SpirvCause::Wrong { id, wanted: "a constant scalar" }),
        }
    }

    /// The type of a value.
    pub(super) fn value_type(&self, id: u32) -> Result<TypeRef> {
        match self.id(id)? {
            IdDef::Local(ty) if ty != NONE => self.type_of(ty),
            IdDef::Constant(index) => Ok(self.constants[index as usize].ty),
            IdDef::Variable(index) => Ok(self.variables[index as usize].ty),
            IdDef::None => Err(SpirvCause::Undefined(id)),
            _ => Err(SpirvCause::Wrong { id, wanted: "a value" }),
        }
    }

    /// Whether workgroup memory has an explicit layout: all of its variables are blocks, or none.
    pub(super) fn has_workgroup_blocks(&self) -> bool {
        self.variables.iter().filter(|var| var.class == spirv::StorageClass::Workgroup as u32).any(|var| {
            let SpvType::Pointer { pointee, .. } = *self.types.get(var.ty) else { return false };
            self.type_of(pointee)
                .is_ok_and(|ty| matches!(self.types.get(ty), SpvType::Struct { block: true, .. }))
        })
    }

    /// The name of an id; empty if it has none.
    pub(super) fn name(&self, words: &[u32], id: u32) -> String {
        let entry = self.names.iter().find(|(of, _)| *of == id);
        entry.and_then(|(_, at)| string(words.get(*at as usize..)?).ok()).map_or_else(String::new, |s| s.0)
    }

    fn entries(&self, id: u32) -> impl Iterator<Item = DecorationEntry> + '_ {
        let head = self.decoration_heads.get(id as usize).copied().unwrap_or(NONE);
        let entry = |at: u32| self.decorations.get(at as usize).copied();
        std::iter::successors(entry(head), move |last| entry(last.next))
    }

    /// The first operand of a decoration of an id; 0 if it has no operands.
    pub(super) fn decoration(&self, words: &[u32], id: u32, decoration: Decoration) -> Option<u32> {
        self.member_decoration(words, id, NONE, decoration)
    }

    /// The first operand of a decoration of a member; 0 if it has no operands.
    pub(super) fn member_decoration(
        &self,
        words: &[u32],
        id: u32,
        member: u32,
        decoration: Decoration,
    ) -> Option<u32> {
        let found = self.entries(id).find(|e| e.member == member && e.decoration == decoration as u32)?;
        Some(if found.operands == 0 { 0 } else { words.get(found.operand as usize).copied().unwrap_or(0) })
    }

    /// Whether an id has a decoration.
    #[inline]
    pub(super) fn is_decorated(&self, id: u32, decoration: Decoration) -> bool {
        self.entries(id).any(|e| e.member == NONE && e.decoration == decoration as u32)
    }

    fn decorate(&mut self, id: u32, member: u32, decoration: u32, operand: u32, operands: u32) -> Result<()> {
        let head = self.decoration_heads.get_mut(id as usize).ok_or(SpirvCause::Bound(id))?;
        let entry = DecorationEntry { decoration, member, operand, operands, next: *head };
        *head = self.decorations.len() as u32;
        self.decorations.push(entry);
        Ok(())
    }
}

/// The state of the pass.
struct Scan<'a> {
    words: &'a [u32],
    specialize: &'a dyn Fn(u32) -> Option<u64>,
    function: Option<FunctionDef>,
    block: Option<u32>,
}

impl Scan<'_> {
    fn instruction(&mut self, module: &mut Module, inst: Instr<'_>) -> Result<()> {
        if self.function.is_some() {
            return self.in_function(module, inst);
        }
        match inst.op {
            Op::Capability => capability(inst.word(1)?),
            Op::Extension
            | Op::MemoryModel
            | Op::Source
            | Op::SourceContinued
            | Op::SourceExtension
            | Op::MemberName
            | Op::ModuleProcessed
            | Op::Nop
            | Op::Line
            | Op::NoLine => Ok(()),
            Op::ExtInstImport => self.import(module, inst),
            Op::EntryPoint => {
                let (name, len) = string(inst.rest(3)?)?;
                let (start, end) = (inst.at + 3 + len as u32, inst.at + inst.words.len() as u32);
                module.entry_points.push(EntryPoint {
                    model: inst.word(1)?,
                    function: inst.word(2)?,
                    name,
                    interface: start..end.max(start),
                    at: inst.at,
                });
                Ok(())
            }
            Op::ExecutionMode | Op::ExecutionModeId => {
                inst.word(2)?;
                module.modes.push(inst.at);
                Ok(())
            }
            Op::String => module.define(inst.word(1)?, IdDef::String(inst.at)),
            Op::Name => {
                module.names.push((inst.word(1)?, inst.at + 2));
                Ok(())
            }
            Op::Decorate | Op::DecorateId | Op::DecorateString => {
                let operands = inst.rest(3)?.len() as u32;
                module.decorate(inst.word(1)?, NONE, inst.word(2)?, inst.at + 3, operands)
            }
            Op::MemberDecorate | Op::MemberDecorateString => {
                let operands = inst.rest(4)?.len() as u32;
                module.decorate(inst.word(1)?, inst.word(2)?, inst.word(3)?, inst.at + 4, operands)
            }
            Op::DecorationGroup => Ok(()),
            Op::GroupDecorate => {
                let group: Vec<_> = module.entries(inst.word(1)?).collect();
                for &target in inst.rest(2)? {
                    for e in &group {
                        module.decorate(target, NONE, e.decoration, e.operand, e.operands)?;
                    }
                }
                Ok(())
            }
            Op::GroupMemberDecorate => unsupported("OpGroupMemberDecorate"),
            Op::Variable => {
                let ty = module.type_of(inst.word(1)?)?;
                let (id, class) = (inst.word(2)?, inst.word(3)?);
                let initializer = inst.words.get(4).copied();
                let index = module.variables.len() as u32;
                module.define(id, IdDef::Variable(index))?;
                module.variables.push(ModuleVar { id, ty, class, initializer, at: inst.at });
                Ok(())
            }
            Op::Function => {
                let result = module.type_of(inst.word(1)?)?;
                let id = inst.word(2)?;
                inst.word(4)?;
                module.define(id, IdDef::Function(module.functions.len() as u32))?;
                let start = module.blocks.len();
                let params = Vec::new();
                self.function = Some(FunctionDef { result, params, blocks: start..start, at: inst.at });
                Ok(())
            }
            // Debug information between functions and constants.
            Op::ExtInst => {
                module.debug_sources.push((inst.word(2)?, inst.at));
                module.define(inst.word(2)?, IdDef::Local(inst.word(1)?))
            }
            op if SpvType::is_type(op) => super::types::define(module, self.words, inst),
            _ => constants::define(module, self.words, self.specialize, inst),
        }
    }

    fn import(&mut self, module: &mut Module, inst: Instr<'_>) -> Result<()> {
        let (name, _) = string(inst.rest(2)?)?;
        let set = match name.as_str() {
            "GLSL.std.450" => ExtSet::Glsl,
            "NonSemantic.Shader.DebugInfo.100" => ExtSet::DebugInfo,
            name if name.starts_with("NonSemantic.") => ExtSet::NonSemantic,
            name => return unsupported(format!("extended instruction set {name}")),
        };
        module.sets.push(set);
        module.define(inst.word(1)?, IdDef::Set(module.sets.len() as u32 - 1))
    }

    fn in_function(&mut self, module: &mut Module, inst: Instr<'_>) -> Result<()> {
        let Some(function) = &mut self.function else { return Ok(()) };
        match inst.op {
            Op::FunctionParameter => {
                let ty = module.type_of(inst.word(1)?)?;
                let id = inst.word(2)?;
                function.params.push((id, ty));
                module.define(id, IdDef::Local(inst.word(1)?))
            }
            Op::Label => {
                if self.block.is_some() {
                    return invalid("a block has no terminator");
                }
                let label = inst.word(1)?;
                self.block = Some(label);
                module.define(label, IdDef::Local(NONE))?;
                let start = inst.at + inst.words.len() as u32;
                module.blocks.push(BlockDef { label, body: start..start });
                Ok(())
            }
            Op::FunctionEnd => {
                if self.block.is_some() {
                    return invalid("a block has no terminator");
                }
                if let Some(mut function) = self.function.take() {
                    function.blocks.end = module.blocks.len();
                    module.functions.push(function);
                }
                Ok(())
            }
            Op::Line | Op::NoLine if self.block.is_none() => Ok(()),
            op => {
                if self.block.is_none() {
                    return invalid("an instruction is in no block");
                }
                if has_result(op) {
                    module.define(inst.word(2)?, IdDef::Local(inst.word(1)?))?;
                }
                if let Some(block) = module.blocks.last_mut() {
                    block.body.end = inst.at + inst.words.len() as u32;
                }
                if is_terminator(op) {
                    self.block = None;
                }
                Ok(())
            }
        }
    }
}

/// Whether an instruction ends a block.
pub(super) fn is_terminator(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Branch
            | BranchConditional
            | Switch
            | Return
            | ReturnValue
            | Kill
            | Unreachable
            | TerminateInvocation
            | IgnoreIntersectionKHR
            | TerminateRayKHR
            | EmitMeshTasksEXT
    )
}

/// Capabilities that change what a module means are refused by name; others become apparent in the instructions that need them.
fn capability(number: u32) -> Result<()> {
    use spirv::Capability as C;
    match C::from_u32(number) {
        None => unsupported(format!("capability {number}")),
        Some(
            refused @ (C::Kernel
            | C::Addresses
            | C::Linkage
            | C::CooperativeMatrixKHR
            | C::CooperativeMatrixNV
            | C::CooperativeVectorNV
            | C::RayTracingKHR
            | C::RayQueryKHR
            | C::MeshShadingEXT
            | C::MeshShadingNV
            | C::SparseResidency),
        ) => unsupported(format!("capability {refused:?}")),
        Some(_) => Ok(()),
    }
}

/// The stage of an execution model, by name.
pub(super) fn model_name(model: u32) -> String {
    ExecutionModel::from_u32(model).map_or_else(|| model.to_string(), |model| format!("{model:?}"))
}
