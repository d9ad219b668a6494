//! A shader: its entry point's stage and modes, its variables, its bindings, its functions, its source positions.

use super::entities::{Func, Loc, Resource, TypeId, Var};
use super::function::Function;
use super::payload::{Access, Dim, flags, named};
use super::types::{Type, TypeNode};
use std::fmt;
use unwedge_base::entity::PrimaryMap;
use unwedge_isa::amdgcn::semantics::soft::Round;

named! {
    /// The stage of a pipeline.
    pub enum Stage {
        /// Vertex.
        Vertex "vertex",
        /// Tessellation control.
        TessControl "tess_control",
        /// Tessellation evaluation.
        TessEval "tess_eval",
        /// Geometry.
        Geometry "geometry",
        /// Fragment.
        Fragment "fragment",
        /// Compute.
        Compute "compute",
    }
}

named! {
    /// A value that the machine gives every invocation. Types are those of [`SystemValue::ty`].
    pub enum SystemValue {
        /// Workgroups of the dispatch.
        NumWorkgroups "num_workgroups",
        /// The workgroup.
        WorkgroupId "workgroup_id",
        /// The size of a workgroup.
        WorkgroupSize "workgroup_size",
        /// The invocation in its workgroup.
        LocalInvocationId "local_invocation_id",
        /// The same as one number.
        LocalInvocationIndex "local_invocation_index",
        /// The invocation in the dispatch.
        GlobalInvocationId "global_invocation_id",
        /// Invocations of a subgroup.
        SubgroupSize "subgroup_size",
        /// The invocation in its subgroup.
        SubgroupInvocation "subgroup_invocation",
        /// Subgroups of the workgroup.
        NumSubgroups "num_subgroups",
        /// The subgroup in its workgroup.
        SubgroupId "subgroup_id",
        /// The bit of this invocation.
        SubgroupEqMask "subgroup_eq_mask",
        /// Bits of this and later invocations.
        SubgroupGeMask "subgroup_ge_mask",
        /// Bits of later invocations.
        SubgroupGtMask "subgroup_gt_mask",
        /// Bits of this and earlier invocations.
        SubgroupLeMask "subgroup_le_mask",
        /// Bits of earlier invocations.
        SubgroupLtMask "subgroup_lt_mask",
        /// The vertex, with the first or base vertex added.
        VertexIndex "vertex_index",
        /// The instance, with the first instance added.
        InstanceIndex "instance_index",
        /// The base vertex.
        BaseVertex "base_vertex",
        /// The base instance.
        BaseInstance "base_instance",
        /// The draw of an indirect draw.
        DrawIndex "draw_index",
        /// The view of multiview.
        ViewIndex "view_index",
        /// The device of a group.
        DeviceIndex "device_index",
        /// The primitive.
        PrimitiveId "primitive_id",
        /// The invocation of a tessellation control or geometry shader.
        InvocationId "invocation_id",
        /// Vertices of the input patch.
        PatchVertices "patch_vertices",
        /// Where the vertex is in the patch.
        TessCoord "tess_coord",
        /// x, y, z of the fragment and 1/w.
        FragCoord "frag_coord",
        /// Where the fragment is in its point.
        PointCoord "point_coord",
        /// Whether the primitive faces the viewer.
        FrontFacing "front_facing",
        /// The sample that is shaded.
        SampleId "sample_id",
        /// Where that sample is in the pixel.
        SamplePosition "sample_position",
        /// Samples that are covered.
        SampleMaskIn "sample_mask_in",
        /// Whether the invocation started as a helper.
        HelperInvocation "helper_invocation",
        /// The layer that is rendered to.
        Layer "layer",
        /// The viewport.
        ViewportIndex "viewport_index",
        /// The address of the positions of samples in their pixel, low and high word: two floats for each sample, from 0 to 1.
        SamplePositions "sample_positions",
        /// Barycentric coordinates i and j in perspective, each divided by w, and 1/w, at the centre of the pixel.
        PullModel "pull_model",
        /// Whether the fragment's pixel is fully covered.
        FullyCovered "fully_covered",
        /// The shading rate.
        ShadingRate "shading_rate",
    }
}

impl SystemValue {
    /// Its type.
    pub const fn ty(self) -> Type {
        use SystemValue::*;
        let lanes = match self {
            NumWorkgroups | WorkgroupId | WorkgroupSize | LocalInvocationId | GlobalInvocationId
            | TessCoord | PullModel => 3,
            SubgroupEqMask | SubgroupGeMask | SubgroupGtMask | SubgroupLeMask | SubgroupLtMask
            | FragCoord => 4,
            PointCoord | SamplePosition | SamplePositions => 2,
            FrontFacing | HelperInvocation | FullyCovered => return Type::BOOL,
            _ => 1,
        };
        Type { base: super::types::Base::B32, lanes }
    }
}

named! {
    /// What an input or output of the fixed pipeline is.
    pub enum Builtin {
        /// Clip coordinates of the vertex.
        Position "position",
        /// Size of a point.
        PointSize "point_size",
        /// Distances to clip planes.
        ClipDistance "clip_distance",
        /// Distances to cull planes.
        CullDistance "cull_distance",
        /// The primitive, as an output or input of geometry.
        PrimitiveId "primitive_id",
        /// The layer, as an output.
        Layer "layer",
        /// The viewport, as an output.
        ViewportIndex "viewport_index",
        /// Outer tessellation levels.
        TessLevelOuter "tess_level_outer",
        /// Inner tessellation levels.
        TessLevelInner "tess_level_inner",
        /// Depth of the fragment.
        FragDepth "frag_depth",
        /// Stencil reference of the fragment.
        FragStencilRef "frag_stencil_ref",
        /// Samples that the fragment writes.
        SampleMask "sample_mask",
        /// The shading rate of the primitive.
        PrimitiveShadingRate "primitive_shading_rate",
    }
}

named! {
    /// Where a variable lives.
    pub enum Storage {
        /// For one call of the function. Undefined until it is stored.
        Function "function",
        /// For the invocation.
        Private "private",
        /// Written by the stage before.
        Input "input",
        /// Read by the stage after; tessellation control shaders read them too.
        Output "output",
    }
}

impl Storage {
    /// Whether it is an input or output of the stage.
    pub const fn is_interface(self) -> bool {
        matches!(self, Storage::Input | Storage::Output)
    }
}

flags! {
    /// What else is said about a variable of the interface.
    pub struct VarFlags: u16 {
        /// Not interpolated.
        FLAT "flat" = 1;
        /// Linear on the screen.
        LINEAR "linear" = 2;
        /// Interpolated at the centroid.
        CENTROID "centroid" = 4;
        /// Interpolated at each sample, which makes the shader run per sample.
        SAMPLE "sample" = 8;
        /// Belongs to the patch.
        PATCH "patch" = 16;
        /// Computed the same way in all shaders.
        INVARIANT "invariant" = 32;
        /// The outermost index of the type is the vertex.
        ARRAYED "arrayed" = 64;
        /// Captured by transform feedback.
        CAPTURED "captured" = 128;
    }
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarData {
    /// Its name in the source; may be empty.
    pub name: String,
    /// Where it lives.
    pub storage: Storage,
    /// What it holds.
    pub ty: TypeId,
    /// The location, of inputs and outputs that are not built in.
    pub location: Option<u32>,
    /// The first component of the location.
    pub component: u8,
    /// The second source of blending, or the vertex stream.
    pub index: u8,
    /// What it is if it is built in.
    pub builtin: Option<Builtin>,
    /// More.
    pub flags: VarFlags,
    /// Transform feedback: buffer, stride and offset in bytes.
    pub capture: Option<(u8, u32, u32)>,
}

impl VarData {
    /// A variable without a location, which is not built in.
    pub fn new(name: String, storage: Storage, ty: TypeId) -> VarData {
        VarData {
            name,
            storage,
            ty,
            location: None,
            component: 0,
            index: 0,
            builtin: None,
            flags: VarFlags::NONE,
            capture: None,
        }
    }
}

named! {
    /// What the descriptors of a binding are.
    pub enum ResourceClass {
        /// A uniform buffer.
        UniformBuffer "uniform_buffer",
        /// A storage buffer.
        StorageBuffer "storage_buffer",
        /// An image that is sampled or fetched.
        SampledImage "sampled_image",
        /// An image that is read and written.
        StorageImage "storage_image",
        /// A sampler.
        Sampler "sampler",
        /// An image with its sampler: both operands of a sampling operation are the same handle.
        CombinedImageSampler "combined_image_sampler",
        /// A texel buffer that is fetched.
        UniformTexelBuffer "uniform_texel_buffer",
        /// A texel buffer that is read and written.
        StorageTexelBuffer "storage_texel_buffer",
        /// An input attachment.
        InputAttachment "input_attachment",
    }
}

/// A binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceData {
    /// Its name in the source; may be empty.
    pub name: String,
    /// What its descriptors are.
    pub class: ResourceClass,
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// How many descriptors; 0 for an array without a size.
    pub count: u32,
    /// How it is accessed.
    pub access: Access,
    /// Of images: the shape.
    pub dim: Dim,
    /// Of buffers: bytes that the shader declares, without an array at the end that has no size.
    pub size: u32,
    /// Of input attachments: the index.
    pub attachment: Option<u32>,
}

impl ResourceData {
    /// One descriptor at a binding of set 0, without a name or a size, and accessed in any way; an image has two dimensions.
    pub fn new(class: ResourceClass, binding: u32) -> ResourceData {
        ResourceData {
            name: String::new(),
            class,
            set: 0,
            binding,
            count: 1,
            access: Access::NONE,
            dim: Dim::D2,
            size: 0,
            attachment: None,
        }
    }
}

/// How floats of one width behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatMode {
    /// How results are rounded.
    pub round: Round,
    /// Denormal operands and results become zeros of their sign. `None`: as the machine likes; the interpreter keeps them.
    pub flush: Option<bool>,
    /// Signs of zeros, infinities and NaNs are kept. Otherwise passes may assume that they do not matter.
    pub preserve: bool,
}

impl Default for FloatMode {
    fn default() -> Self {
        FloatMode { round: Round::NearestEven, flush: None, preserve: false }
    }
}

named! {
    /// Primitives of a geometry or tessellation shader.
    pub enum Primitive {
        /// Points.
        Points "points",
        /// Lines; of an output, strips of them.
        Lines "lines",
        /// Lines with neighbours.
        LinesAdjacency "lines_adjacency",
        /// Triangles; of an output, strips of them.
        Triangles "triangles",
        /// Triangles with neighbours.
        TrianglesAdjacency "triangles_adjacency",
        /// Quads, of tessellation.
        Quads "quads",
        /// Isolines, of tessellation.
        Isolines "isolines",
    }
}

named! {
    /// How edges are divided.
    pub enum Spacing {
        /// Into equal parts.
        Equal "equal",
        /// Into an even number of parts.
        FractionalEven "fractional_even",
        /// Into an odd number of parts.
        FractionalOdd "fractional_odd",
    }
}

flags! {
    /// Modes of execution.
    pub struct Modes: u16 {
        /// Fragment: depth and stencil tests come first.
        EARLY_TESTS "early_tests" = 1;
        /// Fragment: the depth is written.
        DEPTH_REPLACING "depth_replacing" = 2;
        /// Fragment: the depth only grows.
        DEPTH_GREATER "depth_greater" = 4;
        /// Fragment: the depth only shrinks.
        DEPTH_LESS "depth_less" = 8;
        /// Fragment: the depth does not change.
        DEPTH_UNCHANGED "depth_unchanged" = 16;
        /// Fragment: runs after coverage.
        POST_DEPTH_COVERAGE "post_depth_coverage" = 32;
        /// Fragment: runs per sample.
        SAMPLE_SHADING "sample_shading" = 64;
        /// Tessellation: triangles turn counterclockwise (else clockwise).
        COUNTERCLOCKWISE "counterclockwise" = 128;
        /// Tessellation: points instead of primitives.
        POINT_MODE "point_mode" = 256;
        /// Transform feedback is written.
        CAPTURES "captures" = 512;
        /// Derivatives of compute: quads of 2x2 invocations.
        QUADS "derivative_quads" = 1024;
        /// Derivatives of compute: quads of four invocations in a row.
        LINEAR "derivative_linear" = 2048;
        /// Early and late tests, as AMD's extension has them.
        EARLY_AND_LATE "early_and_late_tests" = 4096;
        /// Invocations reconverge at the latest where structured flow merges.
        MAXIMAL_RECONVERGENCE "maximal_reconvergence" = 8192;
        /// Subgroups are full.
        FULL_SUBGROUPS "full_subgroups" = 16384;
    }
}

/// What is said of the shader as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShaderInfo {
    /// The stage.
    pub stage: Stage,
    /// The entry point's name.
    pub name: String,
    /// Size of a workgroup.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub shared_size: u32,
    /// Bytes of scratch memory of an invocation.
    pub scratch_size: u32,
    /// Bytes of push constants that the shader declares.
    pub push_size: u32,
    /// Bytes of constants that the driver places after the code.
    pub constant_size: u32,
    /// Floats of 16, 32 and 64 bits.
    pub float_modes: [FloatMode; 3],
    /// Modes of execution.
    pub modes: Modes,
    /// Primitives that a geometry shader takes, or that a tessellation makes.
    pub input_primitive: Option<Primitive>,
    /// Primitives that a geometry shader makes.
    pub output_primitive: Option<Primitive>,
    /// How a tessellation divides edges.
    pub spacing: Option<Spacing>,
    /// The most vertices that a geometry shader emits, or vertices of an output patch.
    pub output_vertices: u32,
    /// Invocations of a geometry shader for one primitive.
    pub invocations: u32,
}

impl Default for ShaderInfo {
    fn default() -> Self {
        ShaderInfo {
            stage: Stage::Compute,
            name: String::new(),
            workgroup_size: [1; 3],
            shared_size: 0,
            scratch_size: 0,
            push_size: 0,
            constant_size: 0,
            float_modes: [FloatMode::default(); 3],
            modes: Modes::NONE,
            input_primitive: None,
            output_primitive: None,
            spacing: None,
            output_vertices: 0,
            invocations: 1,
        }
    }
}

impl ShaderInfo {
    /// Invocations of a workgroup.
    pub fn invocations(&self) -> u32 {
        self.workgroup_size.iter().fold(1, |all, size| all.saturating_mul(*size))
    }

    /// Whether derivatives within quads are defined: in fragment shaders, and in compute shaders that say how quads are formed.
    pub fn has_derivatives(&self) -> bool {
        self.stage == Stage::Fragment
            || self.stage == Stage::Compute && self.modes.any(Modes::QUADS.or(Modes::LINEAR))
    }

    /// How floats of a width behave; as IEEE 754 says for widths that have no floats.
    pub fn float_mode(&self, bits: u32) -> FloatMode {
        match bits {
            16 => self.float_modes[0],
            32 => self.float_modes[1],
            64 => self.float_modes[2],
            _ => FloatMode::default(),
        }
    }
}

/// A position in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourceLoc {
    /// Index into [`Shader::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// A shader with one entry point. [`Shader::clear`] keeps the memory of everything but names, so that a compiler reuses one.
#[derive(Debug, Clone, Default)]
pub struct Shader {
    /// The shader as a whole.
    pub info: ShaderInfo,
    /// Type trees of variables. Children come before parents.
    pub types: PrimaryMap<TypeId, TypeNode>,
    /// Variables.
    pub vars: PrimaryMap<Var, VarData>,
    /// Bindings.
    pub resources: PrimaryMap<Resource, ResourceData>,
    /// Names of source files.
    pub files: Vec<String>,
    /// Positions in the source.
    pub locs: PrimaryMap<Loc, SourceLoc>,
    functions: Vec<Function>,
    live: usize,
}

impl Shader {
    /// A shader of a stage whose entry point has no instructions.
    pub fn with_entry(stage: Stage, name: &str) -> Shader {
        let mut shader = Shader::default();
        shader.info.stage = stage;
        shader.info.name = name.to_owned();
        shader.add_function();
        shader
    }

    /// Makes it empty, as a new one, but keeps its memory.
    pub fn clear(&mut self) {
        self.info = ShaderInfo::default();
        self.types.clear();
        self.vars.clear();
        self.resources.clear();
        self.files.clear();
        self.locs.clear();
        self.live = 0;
    }

    /// Adds an empty function. The first one is the entry point, which has no parameters and no results.
    pub fn add_function(&mut self) -> Func {
        use unwedge_base::entity::Entity;
        match self.functions.get_mut(self.live) {
            Some(function) => function.clear(),
            None => self.functions.push(Function::default()),
        }
        self.live += 1;
        Func::new(self.live - 1)
    }

    /// The functions.
    pub fn functions(&self) -> &[Function] {
        &self.functions[..self.live]
    }

    /// The functions, for change.
    pub fn functions_mut(&mut self) -> &mut [Function] {
        &mut self.functions[..self.live]
    }

    /// The number of instructions in the regions of all functions; [`Function::inst_count`] also counts removed ones.
    pub fn instruction_count(&self) -> usize {
        self.functions().iter().map(|func| func.walk().count()).sum()
    }

    /// Keeps the first `count` functions: what inlining does when it is done.
    pub fn truncate_functions(&mut self, count: usize) {
        self.live = self.live.min(count);
    }

    /// A function.
    ///
    /// # Panics
    /// When the shader has no such function.
    pub fn function(&self, func: Func) -> &Function {
        use unwedge_base::entity::Entity;
        &self.functions()[func.index()]
    }

    /// A function, for change.
    ///
    /// # Panics
    /// When the shader has no such function.
    pub fn function_mut(&mut self, func: Func) -> &mut Function {
        use unwedge_base::entity::Entity;
        &mut self.functions_mut()[func.index()]
    }

    /// The entry point.
    ///
    /// # Panics
    /// When no function was added.
    pub fn entry(&self) -> &Function {
        &self.functions()[0]
    }

    /// The entry point, for change.
    ///
    /// # Panics
    /// When no function was added.
    pub fn entry_mut(&mut self) -> &mut Function {
        &mut self.functions_mut()[0]
    }
}
