//! The IR: structured control flow over SSA values without types but their shape.
//!
//! Its meaning is in the doc comments: [`Op`] says what operations do, [`Function`] how control flows and where values are visible,
//! [`Type`] what a value is, [`Payload`] what an instruction says beside its operands, [`Shader`] what a shader is. `docs/shader-ir.md`
//! tells the whole on four pages.

/// The most regions within each other in what front ends and the parser make. It is bounded so that passes may recurse.
pub const MAX_DEPTH: usize = 500;

/// The most regions within each other after lowerings, which put checks and loops around what they replace.
pub const MAX_LOWERED_DEPTH: usize = MAX_DEPTH + 16;

mod builder;
mod entities;
mod function;
mod op;
mod payload;
mod shader;
mod slots;
mod types;

pub use builder::{Builder, Position, result_type};
pub use entities::{Func, Inst, Loc, Region, Resource, TypeId, Value, Var};
pub use function::{Function, Lanes, RegionOwner, ValueDef};
pub use op::{Op, OpRow, Rule, Traits};
pub use payload::{
    Access, AmdBuffer, AmdExport, AmdInput, AmdNumber, AmdRegisters, AmdTyped, AtomicOp, BarrierInfo, Dim,
    ImageAccess, ImageFlags, InterpAt, MemAccess, MemoryKinds, Order, Payload, PayloadForm, QuadDir, Scope,
    SlotAccess, SlotDir, Space,
};
pub use shader::{
    Builtin, FloatMode, Modes, Primitive, ResourceClass, ResourceData, Shader, ShaderInfo, SourceLoc,
    Spacing, Stage, Storage, SystemValue, VarData, VarFlags,
};
pub use slots::{
    FIRST_LOCATION_SLOT, MAX_ACCESS_SLOTS, MAX_SLOT_INDEX, SLOT_COMPONENTS, SlotLayout, VarSlots,
};
pub use types::{Base, BaseSet, Type, TypeNode};
pub use unwedge_isa::amdgcn::semantics::soft::Round;
