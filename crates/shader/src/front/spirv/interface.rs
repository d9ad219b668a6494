//! The entry point: stage, execution modes, variables of the interface, bindings.

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::memory::{self, Binding, MEMORY_DECORATIONS};
use super::module::{EntryPoint, IdDef, Module, ModuleVar, NONE, instruction, model_name};
use super::translate::{Translator, ValKind};
use super::types::{SpvType, TypeRef};
use crate::ir::{
    Access, Dim, FloatMode, MAX_SLOT_INDEX, Modes, Primitive, ResourceClass, ResourceData, Round, Space,
    Spacing, Stage, Storage, SystemValue, TypeNode, VarData, VarFlags,
};
use spirv::{BuiltIn, Decoration, ExecutionMode, ExecutionModel, Op, StorageClass};

/// The stage of an execution model.
pub(super) fn stage(model: u32) -> Result<Stage> {
    Ok(match ExecutionModel::from_u32(model) {
        Some(ExecutionModel::Vertex) => Stage::Vertex,
        Some(ExecutionModel::TessellationControl) => Stage::TessControl,
        Some(ExecutionModel::TessellationEvaluation) => Stage::TessEval,
        Some(ExecutionModel::Geometry) => Stage::Geometry,
        Some(ExecutionModel::Fragment) => Stage::Fragment,
        Some(ExecutionModel::GLCompute) => Stage::Compute,
        _ => return unsupported(format!("execution model {}", model_name(model))),
    })
}

fn system_value(builtin: BuiltIn) -> Option<SystemValue> {
    use BuiltIn as B;
    use SystemValue as S;
    Some(match builtin {
        B::NumWorkgroups => S::NumWorkgroups,
        B::WorkgroupId => S::WorkgroupId,
        B::WorkgroupSize => S::WorkgroupSize,
        B::LocalInvocationId => S::LocalInvocationId,
        B::LocalInvocationIndex => S::LocalInvocationIndex,
        B::GlobalInvocationId => S::GlobalInvocationId,
        B::SubgroupSize => S::SubgroupSize,
        B::SubgroupLocalInvocationId => S::SubgroupInvocation,
        B::NumSubgroups => S::NumSubgroups,
        B::SubgroupId => S::SubgroupId,
        B::SubgroupEqMask => S::SubgroupEqMask,
        B::SubgroupGeMask => S::SubgroupGeMask,
        B::SubgroupGtMask => S::SubgroupGtMask,
        B::SubgroupLeMask => S::SubgroupLeMask,
        B::SubgroupLtMask => S::SubgroupLtMask,
        B::VertexIndex => S::VertexIndex,
        B::InstanceIndex => S::InstanceIndex,
        B::BaseVertex => S::BaseVertex,
        B::BaseInstance => S::BaseInstance,
        B::DrawIndex => S::DrawIndex,
        B::ViewIndex => S::ViewIndex,
        B::DeviceIndex => S::DeviceIndex,
        B::PrimitiveId => S::PrimitiveId,
        B::InvocationId => S::InvocationId,
        B::PatchVertices => S::PatchVertices,
        B::TessCoord => S::TessCoord,
        B::FragCoord => S::FragCoord,
        B::PointCoord => S::PointCoord,
        B::FrontFacing => S::FrontFacing,
        B::SampleId => S::SampleId,
        B::SamplePosition => S::SamplePosition,
        B::SampleMask => S::SampleMaskIn,
        B::HelperInvocation => S::HelperInvocation,
        B::Layer => S::Layer,
        B::ViewportIndex => S::ViewportIndex,
        B::FullyCoveredEXT => S::FullyCovered,
        B::ShadingRateKHR => S::ShadingRate,
        _ => return None,
    })
}

impl Translator<'_> {
    /// Reads the entry point and the variables.
    pub(super) fn interface(&mut self, point: &EntryPoint) -> Result<()> {
        let stage = stage(point.model)?;
        self.shader.info.stage = stage;
        self.shader.info.name = point.name.clone();
        self.execution_modes(point)?;
        let module = self.module;
        let mut shared_end = 0u32;
        let interface =
            self.words.get(point.interface.start as usize..point.interface.end as usize).unwrap_or(&[]);
        for var in &module.variables {
            self.at = var.at;
            // From version 1.4 on the interface lists everything that the entry point uses.
            let slots = [StorageClass::Input as u32, StorageClass::Output as u32].contains(&var.class);
            if (slots || module.version >= 0x1_0400) && !interface.contains(&var.id) {
                continue;
            }
            self.variable(var, stage, &mut shared_end)?;
        }
        self.shader.info.shared_size = shared_end;
        if stage == Stage::Fragment && self.runs_per_sample() {
            self.shader.info.modes = self.shader.info.modes.or(Modes::SAMPLE_SHADING);
        }
        for Binding { id, kind } in std::mem::take(&mut self.bindings) {
            self.set_global(id, kind);
        }
        self.workgroup_size_constant()
    }

    /// Whether the interface of a fragment shader asks for an invocation for each sample.
    fn runs_per_sample(&self) -> bool {
        let of_sample = |binding: &Binding| {
            let ValKind::SysVal { value, .. } = binding.kind else { return false };
            matches!(value, SystemValue::SampleId | SystemValue::SamplePosition)
        };
        let at_sample = |data: &VarData| data.storage == Storage::Input && data.flags.has(VarFlags::SAMPLE);
        self.bindings.iter().any(of_sample) || self.shader.vars.values().any(at_sample)
    }

    /// Stores the initial values of variables before everything else.
    pub(super) fn initializers(&mut self) -> Result<()> {
        let module = self.module;
        let mut clears = false;
        for var in &module.variables {
            let class = StorageClass::from_u32(var.class);
            if let Some(initializer) = var.initializer
                && self.is_bound(var.id)
                && matches!(
                    class,
                    Some(StorageClass::Private | StorageClass::Output | StorageClass::Workgroup)
                )
            {
                self.at = var.at;
                if class == Some(StorageClass::Workgroup) {
                    if self.module.constant(initializer)?.undefined || !self.is_null(initializer)? {
                        return unsupported("workgroup memory with an initial value that is not zero");
                    }
                    clears = true;
                    continue;
                }
                self.initialize(var.id, initializer)?;
            }
        }
        if clears { self.clear_shared() } else { Ok(()) }
    }

    fn is_null(&self, id: u32) -> Result<bool> {
        Ok(self.module.lanes[self.module.constant(id)?.lanes.clone()].iter().all(|&bits| bits == 0))
    }

    fn workgroup_size_constant(&mut self) -> Result<()> {
        let module = self.module;
        for (id, def) in module.ids.iter().enumerate() {
            let IdDef::Constant(index) = *def else { continue };
            let builtin = module.decoration(self.words, id as u32, Decoration::BuiltIn);
            if builtin == Some(BuiltIn::WorkgroupSize as u32) {
                let lanes = &module.lanes[module.constants[index as usize].lanes.clone()];
                let &[x, y, z] = lanes else {
                    return invalid("the workgroup's size has not three components");
                };
                self.shader.info.workgroup_size = [x as u32, y as u32, z as u32];
            }
        }
        Ok(())
    }

    fn execution_modes(&mut self, point: &EntryPoint) -> Result<()> {
        for &at in &self.module.modes {
            let inst = instruction(self.words, at)?;
            if inst.word(1)? != point.function {
                continue;
            }
            self.at = at;
            let Some(mode) = ExecutionMode::from_u32(inst.word(2)?) else {
                return unsupported(format!("execution mode {}", inst.word(2)?));
            };
            let by_id = inst.op == Op::ExecutionModeId;
            let module = self.module;
            let operand = |at: usize| -> Result<u32> {
                let word = inst.word(3 + at)?;
                if by_id { Ok(module.constant_bits(word)? as u32) } else { Ok(word) }
            };
            self.execution_mode(mode, &operand)?;
        }
        Ok(())
    }

    fn execution_mode(&mut self, mode: ExecutionMode, operand: &dyn Fn(usize) -> Result<u32>) -> Result<()> {
        use ExecutionMode as M;
        let stage = self.shader.info.stage;
        let info = &mut self.shader.info;
        let modes = match mode {
            M::LocalSize | M::LocalSizeId => {
                info.workgroup_size = [operand(0)?, operand(1)?, operand(2)?];
                return Ok(());
            }
            M::DenormPreserve
            | M::DenormFlushToZero
            | M::SignedZeroInfNanPreserve
            | M::RoundingModeRTE
            | M::RoundingModeRTZ => return float_mode(&mut info.float_modes, mode, operand(0)?),
            M::Invocations => {
                info.invocations = operand(0)?;
                return Ok(());
            }
            M::OutputVertices => {
                info.output_vertices = operand(0)?;
                return Ok(());
            }
            M::SpacingEqual | M::SpacingFractionalEven | M::SpacingFractionalOdd => {
                info.spacing = Some(match mode {
                    M::SpacingEqual => Spacing::Equal,
                    M::SpacingFractionalEven => Spacing::FractionalEven,
                    _ => Spacing::FractionalOdd,
                });
                return Ok(());
            }
            M::InputPoints
            | M::InputLines
            | M::InputLinesAdjacency
            | M::Triangles
            | M::InputTrianglesAdjacency
            | M::Quads
            | M::Isolines => {
                info.input_primitive = Some(match mode {
                    M::InputPoints => Primitive::Points,
                    M::InputLines => Primitive::Lines,
                    M::InputLinesAdjacency => Primitive::LinesAdjacency,
                    M::Triangles => Primitive::Triangles,
                    M::InputTrianglesAdjacency => Primitive::TrianglesAdjacency,
                    M::Quads => Primitive::Quads,
                    _ => Primitive::Isolines,
                });
                return Ok(());
            }
            M::OutputPoints | M::OutputLineStrip | M::OutputTriangleStrip => {
                info.output_primitive = Some(match mode {
                    M::OutputPoints => Primitive::Points,
                    M::OutputLineStrip => Primitive::Lines,
                    _ => Primitive::Triangles,
                });
                return Ok(());
            }
            M::OriginUpperLeft | M::VertexOrderCw => return Ok(()),
            M::VertexOrderCcw => Modes::COUNTERCLOCKWISE,
            M::PointMode => Modes::POINT_MODE,
            M::Xfb => Modes::CAPTURES,
            M::EarlyFragmentTests => Modes::EARLY_TESTS,
            M::EarlyAndLateFragmentTestsAMD => Modes::EARLY_AND_LATE,
            M::DepthReplacing => Modes::DEPTH_REPLACING,
            M::DepthGreater => Modes::DEPTH_GREATER,
            M::DepthLess => Modes::DEPTH_LESS,
            M::DepthUnchanged => Modes::DEPTH_UNCHANGED,
            M::PostDepthCoverage => Modes::POST_DEPTH_COVERAGE,
            M::DerivativeGroupQuadsKHR => Modes::QUADS,
            M::DerivativeGroupLinearKHR => Modes::LINEAR,
            // A hint that flow of a uniform subgroup stays together, which structured flow does anyway.
            M::SubgroupUniformControlFlowKHR | M::MaximallyReconvergesKHR => Modes::MAXIMAL_RECONVERGENCE,
            // Says what the stencil reference does; it is written all the same.
            M::StencilRefReplacingEXT => return Ok(()),
            other => return unsupported(format!("execution mode {other:?} of a {} shader", stage.name())),
        };
        info.modes = info.modes.or(modes);
        Ok(())
    }

    fn variable(&mut self, var: &ModuleVar, stage: Stage, shared_end: &mut u32) -> Result<()> {
        let module = self.module;
        let SpvType::Pointer { pointee, .. } = *module.types.get(var.ty) else {
            return invalid("a variable is not a pointer");
        };
        if pointee == NONE {
            return invalid("a variable points to nothing");
        }
        let ty = module.type_of(pointee)?;
        match StorageClass::from_u32(var.class) {
            Some(StorageClass::Uniform | StorageClass::StorageBuffer | StorageClass::UniformConstant) => {
                self.resource(var, ty)
            }
            Some(StorageClass::PushConstant) => {
                self.shader.info.push_size = self.shader.info.push_size.max(module.types.size(ty));
                let zero = self.u32(0);
                self.bytes_at(var, ty, Space::Push, zero, Access::READONLY)
            }
            Some(StorageClass::Workgroup) => self.shared(var, ty, shared_end),
            Some(StorageClass::Private) => {
                let data = self.var_data(var.id, Storage::Private);
                self.plain(var.id, ty, data)
            }
            Some(StorageClass::Input) => self.interface_variable(var, ty, stage, Storage::Input),
            Some(StorageClass::Output) => self.interface_variable(var, ty, stage, Storage::Output),
            // What uses a variable of another class is refused where it does.
            _ => Ok(()),
        }
    }

    fn bytes_at(
        &mut self,
        var: &ModuleVar,
        ty: TypeRef,
        space: Space,
        offset: crate::ir::Value,
        access: Access,
    ) -> Result<()> {
        let kind = ValKind::Mem { space, ty, matrix: None, lane_stride: 0, access, align: 4 };
        self.set_global_values(var.id, kind, &[offset]);
        Ok(())
    }

    fn shared(&mut self, var: &ModuleVar, ty: TypeRef, end: &mut u32) -> Result<()> {
        let explicit = matches!(self.module.types.get(ty), SpvType::Struct { block: true, .. });
        let size = self.module.types.size(ty);
        // Blocks with an explicit layout all start at 0.
        let start = if explicit { 0 } else { end.checked_next_multiple_of(16).unwrap_or(u32::MAX) };
        *end = (*end).max(start.saturating_add(size));
        if *end > 1 << 24 {
            return Err(SpirvCause::Limit("workgroup memory"));
        }
        let offset = self.u32(start);
        self.bytes_at(var, ty, Space::Shared, offset, Access::NONE)
    }

    /// The elements of an array of descriptors, or of arrays of them, and how many there are. Any other type is one element.
    fn descriptors(&self, ty: TypeRef) -> Result<(TypeRef, u32)> {
        let (mut inner, mut count) = (ty, 1u32);
        loop {
            match *self.module.types.get(inner) {
                SpvType::Array { element, len, .. } => {
                    count = count.checked_mul(len).ok_or(SpirvCause::Limit("an array of descriptors"))?;
                    inner = element;
                }
                SpvType::RuntimeArray { .. } => {
                    return unsupported("arrays of arrays of descriptors without a size");
                }
                _ => return Ok((inner, count)),
            }
        }
    }

    fn resource(&mut self, var: &ModuleVar, ty: TypeRef) -> Result<()> {
        let (module, words) = (self.module, self.words);
        let (inner, count) = match *module.types.get(ty) {
            SpvType::RuntimeArray { element, .. } => match self.descriptors(element)? {
                (_, 2..) => return unsupported("arrays without a size of arrays of descriptors"),
                (inner, _) => (inner, 0),
            },
            _ => self.descriptors(ty)?,
        };
        let mut dim = Dim::Buffer;
        let (mut size, mut access) = (0, Access::NONE);
        let class = match module.types.get(inner) {
            SpvType::Struct { buffer_block, members, id, .. } => {
                size = module.types.size(inner);
                let storage = *buffer_block || var.class == StorageClass::StorageBuffer as u32;
                // A buffer of which no member is written is not written.
                for (decoration, flag) in MEMORY_DECORATIONS {
                    let has = |m: usize| module.member_decoration(words, *id, m as u32, decoration).is_some();
                    if !members.is_empty() && (0..members.len()).all(has) {
                        access = access.or(flag);
                    }
                }
                if storage { ResourceClass::StorageBuffer } else { ResourceClass::UniformBuffer }
            }
            SpvType::Sampler => ResourceClass::Sampler,
            SpvType::SampledImage(image) if image.dim == Dim::Buffer => ResourceClass::UniformTexelBuffer,
            SpvType::SampledImage(image) => {
                dim = image.dim;
                ResourceClass::CombinedImageSampler
            }
            SpvType::Image(image) => {
                dim = image.dim;
                match (image.dim, image.sampled) {
                    (Dim::Subpass, _) => ResourceClass::InputAttachment,
                    (Dim::Buffer, 2) => ResourceClass::StorageTexelBuffer,
                    (Dim::Buffer, _) => ResourceClass::UniformTexelBuffer,
                    (_, 2) => ResourceClass::StorageImage,
                    _ => ResourceClass::SampledImage,
                }
            }
            // A uniform without a binding, as OpenGL has them.
            _ => return unsupported("a uniform that is not in a buffer"),
        };
        for (decoration, flag) in MEMORY_DECORATIONS {
            if module.is_decorated(var.id, decoration) {
                access = access.or(flag);
            }
        }
        if module.is_decorated(var.id, Decoration::Aliased) {
            // Another binding may write what this one does not.
            access = access.without(Access::READONLY);
        } else {
            access = access.or(Access::RESTRICT);
        }
        let get = |decoration| module.decoration(words, var.id, decoration);
        let resource = self.shader.resources.push(ResourceData {
            name: module.name(words, var.id),
            class,
            set: get(Decoration::DescriptorSet).unwrap_or(0),
            binding: get(Decoration::Binding).unwrap_or(0),
            count,
            access,
            dim,
            size,
            attachment: get(Decoration::InputAttachmentIndex),
        });
        self.bindings
            .push(Binding { id: var.id, kind: ValKind::Resource { resource, ty, nonuniform: false } });
        Ok(())
    }

    fn var_data(&mut self, id: u32, storage: Storage) -> VarData {
        let ty = self.leaf_node(crate::ir::Type::B32);
        VarData::new(self.module.name(self.words, id), storage, ty)
    }

    fn plain(&mut self, id: u32, ty: TypeRef, mut data: VarData) -> Result<()> {
        data.ty = self.type_node(ty)?;
        let var = self.shader.vars.push(data);
        self.bindings.push(Binding { id, kind: ValKind::Var { var, ty, lane: false } });
        Ok(())
    }

    fn interface_variable(
        &mut self,
        var: &ModuleVar,
        ty: TypeRef,
        stage: Stage,
        storage: Storage,
    ) -> Result<()> {
        let (module, words) = (self.module, self.words);
        let mut data = self.var_data(var.id, storage);
        decorate(module, words, var.id, NONE, &mut data)?;
        let output = storage == Storage::Output;
        let arrayed = !data.flags.has(VarFlags::PATCH)
            && match stage {
                Stage::TessControl => true,
                Stage::TessEval | Stage::Geometry => !output,
                _ => false,
            };
        if let Some(number) = module.decoration(words, var.id, Decoration::BuiltIn) {
            let Some(builtin) = BuiltIn::from_u32(number) else {
                return unsupported(format!("built-in {number}"));
            };
            data.builtin = memory::builtin(builtin, output);
            if data.builtin.is_none() {
                return match system_value(builtin) {
                    Some(value) if !output => {
                        let kind = ValKind::SysVal { value, ty, lane: false };
                        self.bindings.push(Binding { id: var.id, kind });
                        Ok(())
                    }
                    _ => unsupported(format!("built-in {builtin:?}")),
                };
            }
            if matches!(builtin, BuiltIn::TessLevelInner | BuiltIn::TessLevelOuter) {
                data.flags = data.flags.or(VarFlags::PATCH);
                return self.plain(var.id, ty, data);
            }
        }
        let inner = match module.types.get(ty) {
            SpvType::Array { element, .. } if arrayed => *element,
            _ => ty,
        };
        if arrayed {
            data.flags = data.flags.or(VarFlags::ARRAYED);
        }
        match module.types.get(inner) {
            SpvType::Struct { block: true, .. } => self.block(var, ty, inner, data),
            _ => self.plain(var.id, ty, data),
        }
    }

    /// A block of the interface: a variable for each member.
    fn block(&mut self, var: &ModuleVar, ty: TypeRef, inner: TypeRef, whole: VarData) -> Result<()> {
        let (module, words) = (self.module, self.words);
        let SpvType::Struct { id, members, .. } = module.types.get(inner) else { return Ok(()) };
        let first = self.shader.vars.next_key();
        let mut location = whole.location;
        // Types come first, so that the variables have numbers that follow each other.
        let mut nodes = Vec::new();
        for member in members {
            let node = self.type_node(member.ty)?;
            nodes.push(match *module.types.get(ty) {
                SpvType::Array { len, .. } => self.shader.types.push(TypeNode::Array { element: node, len }),
                _ => node,
            });
        }
        for (number, (member, node)) in members.iter().zip(nodes).enumerate() {
            let mut data = VarData { ty: node, location, component: 0, ..whole.clone() };
            decorate(module, words, *id, number as u32, &mut data)?;
            if let Some(builtin) = module.member_decoration(words, *id, number as u32, Decoration::BuiltIn) {
                let output = whole.storage == Storage::Output;
                let known = BuiltIn::from_u32(builtin).and_then(|b| memory::builtin(b, output));
                let Some(known) = known else {
                    return unsupported(format!("built-in {builtin} in a block of the interface"));
                };
                data.builtin = Some(known);
                data.location = None;
            }
            location = data.location.map(|at| at.saturating_add(self.locations(member.ty)));
            self.shader.vars.push(data);
        }
        self.bindings.push(Binding { id: var.id, kind: ValKind::IoBlock { first, ty } });
        Ok(())
    }

    /// How many locations a type takes.
    fn locations(&self, ty: TypeRef) -> u32 {
        let types = &self.module.types;
        match types.get(ty) {
            SpvType::Leaf { ty, .. } => 1 + u32::from(ty.bits() > 128),
            SpvType::Matrix { column, columns } => columns.saturating_mul(self.locations(*column)),
            SpvType::Array { element, len, .. } => len.saturating_mul(self.locations(*element)),
            SpvType::Struct { members, .. } => {
                members.iter().map(|m| self.locations(m.ty)).fold(0, u32::saturating_add)
            }
            _ => 1,
        }
    }
}

fn float_mode(modes: &mut [FloatMode; 3], mode: ExecutionMode, width: u32) -> Result<()> {
    let at = match width {
        16 => 0,
        32 => 1,
        64 => 2,
        _ => return invalid("floats do not have this width"),
    };
    let modes = &mut modes[at];
    match mode {
        ExecutionMode::DenormPreserve => modes.flush = Some(false),
        ExecutionMode::DenormFlushToZero => modes.flush = Some(true),
        ExecutionMode::SignedZeroInfNanPreserve => modes.preserve = true,
        ExecutionMode::RoundingModeRTZ => modes.round = Round::Zero,
        _ => modes.round = Round::NearestEven,
    }
    Ok(())
}

/// What decorations say about a variable, or of a member that becomes one.
fn decorate(module: &Module, words: &[u32], id: u32, member: u32, data: &mut VarData) -> Result<()> {
    let get = |decoration| module.member_decoration(words, id, member, decoration);
    if let Some(location) = get(Decoration::Location) {
        data.location = Some(location);
    }
    if let Some(component) = get(Decoration::Component) {
        data.component = component.min(3) as u8;
    }
    if let Some(index) = get(Decoration::Index).or(get(Decoration::Stream)) {
        if index > MAX_SLOT_INDEX.into() {
            return invalid("an index or a stream is more than 3");
        }
        data.index = index as u8;
    }
    for (decoration, flag) in [
        (Decoration::Flat, VarFlags::FLAT),
        (Decoration::NoPerspective, VarFlags::LINEAR),
        (Decoration::Centroid, VarFlags::CENTROID),
        (Decoration::Sample, VarFlags::SAMPLE),
        (Decoration::Patch, VarFlags::PATCH),
        (Decoration::Invariant, VarFlags::INVARIANT),
    ] {
        if get(decoration).is_some() {
            data.flags = data.flags.or(flag);
        }
    }
    if let (Some(buffer), Some(offset)) = (get(Decoration::XfbBuffer), get(Decoration::Offset)) {
        let stride = get(Decoration::XfbStride).unwrap_or(0);
        data.capture = Some((buffer.min(255) as u8, stride, offset));
        data.flags = data.flags.or(VarFlags::CAPTURED);
    }
    Ok(())
}
