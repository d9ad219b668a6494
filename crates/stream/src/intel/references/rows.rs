//! Which fields of commands and structures are pointers.
//!
//! Never: what is there.

use super::{BufferUse, ShaderStage};
use crate::intel::state::Base;
use BufferUse as Use;
use RowTarget::{BindingTable, Buffer, Kernel, Samplers, States};
use ShaderStage as Stage;

/// What a row leads to.
#[derive(Clone, Copy)]
pub(in crate::intel) enum RowTarget {
    /// A kernel of a stage.
    Kernel(ShaderStage),
    /// A binding table.
    BindingTable,
    /// Samplers.
    Samplers,
    /// Structures of this name.
    States(&'static str),
    /// A buffer.
    Buffer(BufferUse),
}

/// A field that points somewhere.
pub(in crate::intel) struct ReferenceRow {
    /// The command or structure; all whose name begins so where it ends with `*`.
    pub(super) owner: &'static str,
    /// The field; all whose name contains the rest where it begins with `*`, or begins so where it ends with `*`.
    pub(super) field: &'static str,
    /// What it counts from; `None` for an address.
    pub(super) base: Option<Base>,
    /// What is there.
    pub(super) target: RowTarget,
    /// A field of the same owner that has to be set for the pointer to count. Generations that do not have it always follow.
    pub(in crate::intel) flag: Option<&'static str>,
}

const fn row(
    owner: &'static str,
    field: &'static str,
    base: Option<Base>,
    target: RowTarget,
) -> ReferenceRow {
    ReferenceRow { owner, field, base, target, flag: None }
}

const INSTRUCTION: Option<Base> = Some(Base::Instruction);
const DYNAMIC: Option<Base> = Some(Base::DynamicState);
const SURFACE: Option<Base> = Some(Base::SurfaceState);
const GENERAL: Option<Base> = Some(Base::GeneralState);
const OBJECT: Option<Base> = Some(Base::IndirectObject);

/// Every field that points somewhere; the first row that fits holds.
pub(super) const ROWS: &[ReferenceRow] = &[
    // Kernels.
    row("3DSTATE_VS", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Vertex)),
    row("3DSTATE_HS", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Hull)),
    row("3DSTATE_DS", "*Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Domain)),
    row("3DSTATE_GS", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Geometry)),
    row("3DSTATE_PS", "*Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Pixel)),
    row("3DSTATE_WM", "*Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Pixel)),
    row("3DSTATE_TASK_SHADER", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Task)),
    row("3DSTATE_MESH_SHADER", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Mesh)),
    row("INTERFACE_DESCRIPTOR_DATA", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Compute)),
    row("COMPUTE_WALKER", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Compute)),
    row("EXECUTE_INDIRECT_DISPATCH", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Compute)),
    row("STATE_SIP", "System Instruction Pointer", INSTRUCTION, Kernel(Stage::SystemRoutine)),
    row("VS_STATE", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Vertex)),
    row("GS_STATE", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Geometry)),
    row("CLIP_STATE", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Clip)),
    row("SF_STATE", "Kernel Start Pointer", INSTRUCTION, Kernel(Stage::StripsFans)),
    row("WM_STATE", "*Kernel Start Pointer", INSTRUCTION, Kernel(Stage::Pixel)),
    // Binding tables and what is in them. Gen6 has flags for what of a command takes effect.
    row("3DSTATE_BINDING_TABLE_POINTERS", "Pointer to VS Binding Table", SURFACE, BindingTable)
        .if_set("VS Binding Table Change"),
    row("3DSTATE_BINDING_TABLE_POINTERS", "Pointer to GS Binding Table", SURFACE, BindingTable)
        .if_set("GS Binding Table Change"),
    row("3DSTATE_BINDING_TABLE_POINTERS", "Pointer to PS Binding Table", SURFACE, BindingTable)
        .if_set("PS Binding Table Change"),
    row("3DSTATE_BINDING_TABLE_POINTERS*", "Pointer to *", SURFACE, BindingTable),
    row("INTERFACE_DESCRIPTOR_DATA", "Binding Table Pointer", SURFACE, BindingTable),
    row("COMPUTE_WALKER", "Binding Table Pointer", SURFACE, BindingTable),
    row("EXECUTE_INDIRECT_DISPATCH", "Binding Table Pointer", SURFACE, BindingTable),
    row("RENDER_SURFACE_STATE", "Surface Base Address", None, Buffer(Use::Surface)),
    // Gen7 has the same bits for more than one thing.
    row("RENDER_SURFACE_STATE", "Auxiliary Surface Base Address", None, Buffer(Use::AuxSurface))
        .if_set("MCS Enable"),
    row("RENDER_SURFACE_STATE", "Clear Value Address", None, Buffer(Use::ClearColor)),
    // Samplers.
    row("3DSTATE_SAMPLER_STATE_POINTERS", "Pointer to VS Sampler State", DYNAMIC, Samplers)
        .if_set("VS Sampler State Change"),
    row("3DSTATE_SAMPLER_STATE_POINTERS", "Pointer to GS Sampler State", DYNAMIC, Samplers)
        .if_set("GS Sampler State Change"),
    row("3DSTATE_SAMPLER_STATE_POINTERS", "Pointer to PS Sampler State", DYNAMIC, Samplers)
        .if_set("PS Sampler State Change"),
    row("3DSTATE_SAMPLER_STATE_POINTERS*", "Pointer to *", DYNAMIC, Samplers),
    row("INTERFACE_DESCRIPTOR_DATA", "Sampler State Pointer", DYNAMIC, Samplers),
    row("COMPUTE_WALKER", "Sampler State Pointer", DYNAMIC, Samplers),
    row("EXECUTE_INDIRECT_DISPATCH", "Sampler State Pointer", DYNAMIC, Samplers),
    row("VS_STATE", "Sampler State Pointer", GENERAL, Samplers),
    row("GS_STATE", "Sampler State Pointer", GENERAL, Samplers),
    row("WM_STATE", "Sampler State Pointer", GENERAL, Samplers),
    row("SAMPLER_STATE", "Border Color Pointer", DYNAMIC, States("SAMPLER_BORDER_COLOR_STATE")),
    // Other states.
    row(
        "MEDIA_INTERFACE_DESCRIPTOR_LOAD",
        "Interface Descriptor Data Start Address",
        DYNAMIC,
        States("INTERFACE_DESCRIPTOR_DATA"),
    ),
    row("3DSTATE_VIEWPORT_STATE_POINTERS_CC", "CC Viewport Pointer", DYNAMIC, States("CC_VIEWPORT")),
    row(
        "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP",
        "SF Clip Viewport Pointer",
        DYNAMIC,
        States("SF_CLIP_VIEWPORT"),
    ),
    row("3DSTATE_VIEWPORT_STATE_POINTERS", "Pointer to CLIP_VIEWPORT", DYNAMIC, States("CLIP_VIEWPORT"))
        .if_set("CLIP Viewport State Change"),
    row("3DSTATE_VIEWPORT_STATE_POINTERS", "Pointer to SF_VIEWPORT", DYNAMIC, States("SF_VIEWPORT"))
        .if_set("SF Viewport State Change"),
    row("3DSTATE_VIEWPORT_STATE_POINTERS", "Pointer to CC_VIEWPORT", DYNAMIC, States("CC_VIEWPORT"))
        .if_set("CC Viewport State Change"),
    row("3DSTATE_SCISSOR_STATE_POINTERS", "Scissor Rect Pointer", DYNAMIC, States("SCISSOR_RECT")),
    row("3DSTATE_BLEND_STATE_POINTERS", "Blend State Pointer", DYNAMIC, States("BLEND_STATE"))
        .if_set("Blend State Pointer Valid"),
    row("3DSTATE_CC_STATE_POINTERS", "Pointer to BLEND_STATE", DYNAMIC, States("BLEND_STATE"))
        .if_set("BLEND_STATE Change"),
    row("3DSTATE_CC_STATE_POINTERS", "Color Calc State Pointer", DYNAMIC, States("COLOR_CALC_STATE"))
        .if_set("Color Calc State Pointer Valid"),
    row(
        "3DSTATE_CC_STATE_POINTERS",
        "Pointer to DEPTH_STENCIL_STATE",
        DYNAMIC,
        States("DEPTH_STENCIL_STATE"),
    )
    .if_set("DEPTH_STENCIL_STATE Change"),
    row(
        "3DSTATE_DEPTH_STENCIL_STATE_POINTERS",
        "Pointer to DEPTH_STENCIL_STATE",
        DYNAMIC,
        States("DEPTH_STENCIL_STATE"),
    ),
    row("3DSTATE_CPS_POINTERS", "Coarse Pixel Shading State Array Pointer", DYNAMIC, States("CPS_STATE")),
    row(
        "3DSTATE_SLICE_TABLE_STATE_POINTERS",
        "Slice Hash Table State Pointer",
        DYNAMIC,
        States("SLICE_HASH_TABLE"),
    ),
    row("3DSTATE_PIPELINED_POINTERS", "Pointer to VS State", GENERAL, States("VS_STATE")),
    row("3DSTATE_PIPELINED_POINTERS", "Pointer to GS State", GENERAL, States("GS_STATE")).if_set("GS Enable"),
    row("3DSTATE_PIPELINED_POINTERS", "Pointer to CLIP State", GENERAL, States("CLIP_STATE"))
        .if_set("Clip Enable"),
    row("3DSTATE_PIPELINED_POINTERS", "Pointer to SF State", GENERAL, States("SF_STATE")),
    row("3DSTATE_PIPELINED_POINTERS", "Pointer to WM State", GENERAL, States("WM_STATE")),
    row("3DSTATE_PIPELINED_POINTERS", "Pointer to Color Calc State", GENERAL, States("COLOR_CALC_STATE")),
    row("MEDIA_STATE_POINTERS", "Pointer to VLD State", GENERAL, States("VLD_STATE")).if_set("VLD Enable"),
    row("MEDIA_STATE_POINTERS", "Pointer to VFE State", GENERAL, States("VFE_STATE")),
    row("VFE_STATE", "Interface Descriptor Base Pointer", GENERAL, States("INTERFACE_DESCRIPTOR_DATA")),
    row("CLIP_STATE", "Clipper Viewport State Pointer", GENERAL, States("CLIP_VIEWPORT")),
    row("SF_STATE", "Setup Viewport State Offset", GENERAL, States("SF_VIEWPORT")),
    row("COLOR_CALC_STATE", "CC Viewport State Pointer", GENERAL, States("CC_VIEWPORT")),
    // Buffers.
    row("3DSTATE_VERTEX_BUFFERS", "Buffer Starting Address", None, Buffer(Use::Vertex)),
    row("3DSTATE_INDEX_BUFFER", "Buffer Starting Address", None, Buffer(Use::Index)),
    row("3DSTATE_CONSTANT_*", "Buffer", None, Buffer(Use::Constant)),
    row("3DSTATE_CONSTANT_ALL", "Pointer To Constant Buffer", None, Buffer(Use::Constant)),
    // Gen6.
    row("3DSTATE_CONSTANT_*", "Pointer to Constant Buffer 0", DYNAMIC, Buffer(Use::Constant))
        .if_set("Buffer 0 Valid"),
    row("3DSTATE_CONSTANT_*", "Pointer to Constant Buffer 1", None, Buffer(Use::Constant))
        .if_set("Buffer 1 Valid"),
    row("3DSTATE_CONSTANT_*", "Pointer to Constant Buffer 2", None, Buffer(Use::Constant))
        .if_set("Buffer 2 Valid"),
    row("3DSTATE_CONSTANT_*", "Pointer to Constant Buffer 3", None, Buffer(Use::Constant))
        .if_set("Buffer 3 Valid"),
    row("CONSTANT_BUFFER", "Buffer Starting Address", GENERAL, Buffer(Use::Constant)).if_set("Valid"),
    row("MEDIA_CURBE_LOAD", "CURBE Data Start Address", DYNAMIC, Buffer(Use::Curbe)),
    row("GPGPU_WALKER", "Indirect Data Start Address", OBJECT, Buffer(Use::IndirectData)),
    row("GPGPU_OBJECT", "Indirect Data Start Address", OBJECT, Buffer(Use::IndirectData)),
    row("MEDIA_OBJECT*", "Indirect Data Start Address", OBJECT, Buffer(Use::IndirectData)),
    row("COMPUTE_WALKER", "Indirect Data Start Address", GENERAL, Buffer(Use::IndirectData)),
    row("EXECUTE_INDIRECT_*", "Argument Buffer Start Address", None, Buffer(Use::IndirectArguments)),
    row("EXECUTE_INDIRECT_*", "Count Buffer Address", None, Buffer(Use::IndirectArguments)),
    row("3DSTATE_SO_BUFFER*", "Surface Base Address", None, Buffer(Use::StreamOut)),
    row("3DSTATE_DEPTH_BUFFER", "Surface Base Address", None, Buffer(Use::Depth)),
    row("3DSTATE_HIER_DEPTH_BUFFER", "Surface Base Address", None, Buffer(Use::Depth)),
    row("3DSTATE_STENCIL_BUFFER", "Surface Base Address", None, Buffer(Use::Depth)),
    row("3DSTATE_BTD", "Memory Backed Buffer Base Pointer", None, Buffer(Use::RayTracing)),
    row("3DSTATE_*", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
    row("MEDIA_VFE_STATE", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
    row("VFE_STATE", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
    row("VS_STATE", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
    row("GS_STATE", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
    row("CLIP_STATE", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
    row("SF_STATE", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
    row("WM_STATE", "Scratch Space Base Pointer", GENERAL, Buffer(Use::Scratch)),
];

impl ReferenceRow {
    const fn if_set(self, flag: &'static str) -> ReferenceRow {
        ReferenceRow { flag: Some(flag), ..self }
    }

    /// A command that does not set its flag leaves what an earlier one said: the pointer changes, or it stays.
    pub(super) fn stays(&self) -> bool {
        let states = matches!(self.target, BindingTable | Samplers | States(_));
        states
            && self.owner.starts_with("3DSTATE_")
            && self.flag.is_some_and(|flag| !flag.ends_with(" Enable"))
    }

    /// What it counts from on a generation, given as ten times its number. The states of gen4 and gen5 have General State Base
    /// for what later ones have bases of their own.
    pub(in crate::intel) fn base_on(&self, generation: u32) -> Option<Base> {
        match self.target {
            Kernel(_) if generation < 50 => GENERAL,
            _ if generation < 60 && self.base == DYNAMIC => GENERAL,
            _ => self.base,
        }
    }

    /// It is a row of this command or structure.
    pub(super) fn is_of(&self, owner: &str) -> bool {
        match self.owner.strip_suffix('*') {
            Some(start) => owner.starts_with(start),
            None => owner == self.owner,
        }
    }

    /// It is a row of this field.
    pub(super) fn has(&self, field: &str) -> bool {
        match (self.field.strip_prefix('*'), self.field.strip_suffix('*')) {
            (Some(part), _) => field.contains(part),
            (None, Some(start)) => field.starts_with(start),
            (None, None) => field == self.field,
        }
    }
}

/// The row of an offset to a kernel, a table or a state; `None` for an address, or what no row has. An offset to a buffer may be
/// unused, which other fields say.
pub(in crate::intel) fn row_of_offset(owner: &str, field: &str) -> Option<&'static ReferenceRow> {
    let row = ROWS.iter().find(|row| row.is_of(owner) && row.has(field))?;
    (!matches!(row.target, Buffer(_)) && row.base.is_some()).then_some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_hw::intel::IntelGpu;

    #[test]
    fn every_row_is_a_field_of_some_generation() {
        for row in ROWS {
            let has = |layout: unwedge_hw::intel::FieldLayout| {
                layout.values(&[0; 64], 64).any(|field| row.has(field.name))
            };
            let found = IntelGpu::all().any(|gpu| {
                let commands = gpu.instructions().filter(|found| row.is_of(found.name()));
                let structures = gpu.structures().filter(|found| row.is_of(found.name()));
                commands.map(|found| found.layout()).any(has)
                    || structures.map(|found| found.layout()).any(has)
            });
            assert!(found, "{}: {}", row.owner, row.field);
        }
    }

    #[test]
    fn every_flag_is_beside_the_field_of_its_row() {
        for row in ROWS {
            let Some(flag) = row.flag else { continue };
            let has = |layout: unwedge_hw::intel::FieldLayout| {
                let values = || layout.values(&[0; 64], 64);
                values().any(|field| row.has(field.name)) && values().any(|field| field.name == flag)
            };
            let found = IntelGpu::all().any(|gpu| {
                let commands = gpu.instructions().filter(|found| row.is_of(found.name()));
                let structures = gpu.structures().filter(|found| row.is_of(found.name()));
                commands.map(|found| found.layout()).any(has)
                    || structures.map(|found| found.layout()).any(has)
            });
            assert!(found, "{}: {flag}", row.owner);
        }
    }

    #[test]
    fn a_name_of_a_row_is_not_part_of_another_field() {
        for gpu in IntelGpu::all() {
            for command in gpu.instructions() {
                let rows: Vec<_> = ROWS.iter().filter(|row| row.is_of(command.name())).collect();
                for field in command.layout().values(&[0; 64], 64) {
                    let points = rows.iter().any(|row| row.has(field.name));
                    let counts = [" Length", " Count", " Change", " Valid", " Enable"];
                    let number = counts.iter().any(|end| field.name.ends_with(end));
                    assert!(!(points && number), "{}: {}", command.name(), field.name);
                }
            }
        }
    }

    #[test]
    fn every_structure_of_a_row_is_known() {
        for row in ROWS {
            if let States(name) = row.target {
                assert!(IntelGpu::all().any(|gpu| gpu.structure(name).is_some()), "{name}");
            }
        }
    }
}
