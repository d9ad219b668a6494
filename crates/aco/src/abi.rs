//! What registers hold when a program starts.
//!
//! The order is that of the driver RADV for compute shaders without merged stages: two words of scratch, a word for each descriptor set,
//! push constants, workgroup counts, then what the hardware adds: the workgroup and the offset in scratch. Local ids are in vector registers, from gfx11 on
//! packed in one. From gfx12 on the workgroup ID is in `ttmp` registers. HSA kernels have other arguments (`kernel.rs`).

mod geometry;
mod graphics;
mod kernel;
mod registers;

use crate::compile::CompileError;
use crate::ir::PhysReg;
pub(crate) use geometry::{add_shared, chosen_together, vertex_reads};
pub(crate) use graphics::{CAPTURE_BYTES, COUNT_BYTES, Reads};
pub use graphics::{ColourOutput, DepthOutput, Interface, POINT_COORD_SLOT, PixelInput, PixelProlog};
pub(crate) use kernel::KERNARG_ALIGN;
pub use kernel::{CallingConvention, KernelArg, KernelArgKind, KernelArgs};
pub(crate) use registers::{RINGS_REGISTERS, names_registers};
use unwedge_base::entity::SecondaryMap;
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};
use unwedge_shader::ir::{
    AmdRegisters, Function, Op, Payload, ResourceClass, Shader, Space, SystemValue, Value,
};

/// An argument of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Argument {
    /// The address of the scratch descriptors: two words.
    RingOffsets,
    /// Of HSA kernels, up to gfx10.3: the descriptor of scratch memory, four words.
    ScratchDescriptor,
    /// Of HSA kernels: the address of the kernarg segment, two words.
    KernargSegment,
    /// The low word of the address of a descriptor set.
    DescriptorSet(u32),
    /// A word of the push constants.
    PushConstant(u32),
    /// The low word of the address of the push constants.
    PushConstants,
    /// How many workgroups there are along an axis.
    NumWorkgroups(u8),
    /// The workgroup along an axis.
    WorkgroupId(u8),
    /// The offset of the wave in scratch memory.
    ScratchOffset,
    /// The invocation in its workgroup along an axis.
    LocalId(u8),
    /// The invocation in its workgroup along all three axes, ten bits each.
    LocalIdsPacked,
    /// The low word of the address of the descriptors of vertex buffers.
    VertexBuffers,
    /// What is added to the number of the vertex.
    BaseVertex,
    /// What is added to the number of the instance.
    FirstInstance,
    /// The draw of an indirect draw.
    DrawIndex,
    /// The view of multiview.
    ViewIndex,
    /// The numbers of vertices and primitives in the workgroup of a primitive shader, and in its lowest 12 bits the position of the workgroup in the order of the draw.
    GroupInfo,
    /// How many lanes each part of a merged stage has, and the number of the wave.
    MergedWaveInfo,
    /// Where in the attribute ring the workgroup's parameters go.
    AttributeRing,
    /// The vertices of the primitive, as they are exported.
    Connectivity,
    /// Of a primitive shader that culls: what it culls, a word of [`CullState`](crate::culling::CullState).
    CullState,
    /// Of a primitive shader that culls: the scale of the viewport along x and y, then its translation, as floats.
    ViewportTransform(u8),
    /// The vertex.
    VertexId,
    /// The instance.
    InstanceId,
    /// The attribute at a location, which a prolog has loaded: four registers.
    Attribute(u32),
    /// Up to gfx10.3: the low word of the address of the descriptors of rings. Later that is [`Argument::RingOffsets`].
    Rings,
    /// The patch: of a tessellation control shader, or of an evaluation shader.
    PatchId,
    /// Of a tessellation control shader: the patch in its workgroup (8 bits), and the vertex of the patch (5 bits).
    RelativeIds,
    /// The vertex in its workgroup, of a vertex shader before tessellation, up to gfx10.3.
    RelativeVertex,
    /// The offset in the memory that control shaders leave patches in.
    OffchipOffset,
    /// The offset in the ring of tessellation factors.
    FactorOffset,
    /// How many patches the workgroup of a tessellation control shader has.
    PatchCount,
    /// A coordinate in the patch.
    TessU,
    /// The other coordinate in the patch.
    TessV,
    /// The patch of an evaluation shader, counted from the offset.
    RelativePatch,
    /// The offset of a wave in the ring before geometry shaders, up to gfx8.
    EsToGs,
    /// The offset of a wave in the ring after geometry shaders.
    GsToVs,
    /// The number of a wave of geometry shaders, for messages, up to gfx8.
    GsWaveId,
    /// Where vertices of the primitive of a geometry shader are: up to gfx8 one in each register, in dwords of the ring; then two of 16 bits, in dwords of LDS; on
    /// gfx12 three of 8 bits, 9 bits apart, in vertices, with an edge flag after each. Of a primitive shader without a geometry shader they are in vertices.
    VertexOffset(u8),
    /// The primitive of a geometry shader, or of a primitive shader that gives fragments its number: then provoking vertices belong to one primitive each (`NGG_DISABLE_PROVOK_REUSE`).
    GeometryPrimitive,
    /// The invocation of a geometry shader. Of a primitive shader without one, up to gfx11: from bit 8 on the edge flags of the primitive.
    GeometryInvocation,
    /// The LDS offset in bytes of emitted vertices of [`Interface::emitted_bytes`] each (16 bits), and the offset of [`Interface::count_bytes`] and one dword per vertex that count
    /// them (16 bits).
    EmittedLds,
    /// The low word of the address of the descriptors of the buffers that transform feedback writes. Primitive shaders capture nothing if all buffers have a size of zero.
    CaptureBuffers,
    /// Of a primitive shader that captures, on gfx12: the low word of the address of 96 bytes of state. For each of four buffers it holds the position of the next workgroup in the order of the draw
    /// (32 bits) and the number of bytes written (32 bits), then for each of four streams the numbers of primitives needed and written (64 bits each).
    CaptureState,
    /// Of a vertex shader that captures as a primitive shader, or that gives fragments the number of the primitive whose last vertex it has: the number of vertices of a primitive.
    PrimitiveVertices,
    /// Of a vertex shader on the stage VS: the primitive whose provoking vertex it has. The driver turns the reuse of vertices off (`VGT_PRIMITIVEID_EN`).
    VertexPrimitive,
    /// How many vertices of the wave are captured (7 bits from bit 16 on), and their stream (2 bits from bit 24 on).
    CaptureConfig,
    /// Where the first vertex of the wave is captured, counted in vertices.
    CaptureIndex,
    /// Where a buffer of transform feedback begins, in dwords.
    CaptureOffset(u8),
    /// Which quads begin a primitive, and where parameters are in LDS: what `m0` holds for interpolation.
    PrimitiveMask,
    /// The low word of the address of positions of samples in their pixel: 16 pairs of floats from 0 to 1. Those past the samples of a pixel are not read for any valid sample.
    SamplePositions,
    /// What the hardware gives a pixel.
    Pixel(PixelInput),
    /// What the registers of a shader that names them hold.
    Registers(AmdRegisters),
}

/// An argument and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgLocation {
    /// Which argument it is.
    pub argument: Argument,
    /// The first register.
    pub reg: PhysReg,
    /// How many registers.
    pub dwords: u8,
}

/// Arguments of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args {
    list: Vec<ArgLocation>,
    /// How the inputs and outputs of a graphics stage are numbered.
    pub interface: Interface,
    /// The kernarg segment, if this is an HSA kernel.
    pub kernel: Option<KernelArgs>,
    /// The axes of the workgroup ID that a compute shader reads, one bit each.
    pub workgroup_axes: u16,
}

/// How many scalar registers the hardware loads for the driver.
const USER_SGPRS: usize = 16;
/// How many words of push constants are in registers at most.
const INLINE_PUSH_WORDS: usize = 8;

impl Args {
    /// The arguments of a compute shader.
    ///
    /// # Errors
    ///
    /// [`CompileError::Arguments`] if there are too many.
    pub fn compute(shader: &Shader, gpu: &Gpu) -> Result<Args, CompileError> {
        let uses = Uses::of(shader);
        if uses.sets.len() > USER_SGPRS {
            return Err(CompileError::Arguments(uses.sets.len()));
        }
        let mut args = Args::default();
        let mut next = 0;
        args.add(Argument::RingOffsets, &mut next, 2);
        for set in &uses.sets {
            args.add(Argument::DescriptorSet(*set), &mut next, 1);
        }
        match &uses.push {
            Push::None => {}
            Push::Words(words) => {
                words.iter().for_each(|word| args.add(Argument::PushConstant(*word), &mut next, 1));
            }
            Push::Memory => args.add(Argument::PushConstants, &mut next, 1),
        }
        if uses.num_workgroups {
            (0..3).for_each(|axis| args.add(Argument::NumWorkgroups(axis), &mut next, 1));
        }
        if next > USER_SGPRS {
            return Err(CompileError::Arguments(next));
        }
        args.hardware(&uses, gpu.generation(), &mut next);
        Ok(args)
    }

    /// Adds the arguments that the hardware puts after the user registers of a compute shader.
    fn hardware(&mut self, uses: &Uses, generation: Gfx, next: &mut usize) {
        self.workgroup_axes = uses.workgroup_id & 7;
        let gfx12 = generation >= Gfx::Gfx12;
        for axis in (0..3).filter(|axis| uses.workgroup_id & 1 << axis != 0 && !gfx12) {
            self.add(Argument::WorkgroupId(axis), next, 1);
        }
        if generation < Gfx::Gfx11 {
            self.add(Argument::ScratchOffset, next, 1);
            for axis in 0..3 {
                let reg = PhysReg::vgpr(axis);
                self.list.push(ArgLocation { argument: Argument::LocalId(axis), reg, dwords: 1 });
            }
        } else {
            let (argument, reg) = (Argument::LocalIdsPacked, PhysReg::vgpr(0));
            self.list.push(ArgLocation { argument, reg, dwords: 1 });
        }
    }

    fn add(&mut self, argument: Argument, next: &mut usize, dwords: u8) {
        self.list.push(ArgLocation { argument, reg: PhysReg::of(Reg(*next as u16)), dwords });
        *next += usize::from(dwords);
    }

    /// All arguments, in the order of registers.
    pub fn iter(&self) -> impl Iterator<Item = &ArgLocation> {
        self.list.iter()
    }

    /// The arguments without those that are left out.
    pub(crate) fn without(&self, is_left_out: impl Fn(Argument) -> bool) -> Args {
        let list = self.list.iter().copied().filter(|location| !is_left_out(location.argument)).collect();
        Args { list, ..self.clone() }
    }

    /// Where an argument is.
    pub fn find(&self, argument: Argument) -> Option<&ArgLocation> {
        self.list.iter().find(|location| location.argument == argument)
    }
}

/// Which lanes of values are read, one bit each. Whatever takes a vector as a whole reads all.
pub(crate) fn lanes_read(func: &Function) -> SecondaryMap<Value, u16> {
    let mut lanes = SecondaryMap::default();
    for inst in func.walk() {
        for &arg in func.args(inst) {
            lanes[arg] |= match func.payload(inst) {
                Payload::Lane(lane) => 1 << (lane & 15),
                _ => u16::MAX,
            };
        }
    }
    lanes
}

enum Push {
    None,
    Words(Vec<u32>),
    Memory,
}

/// Which of its possible arguments a shader uses.
struct Uses {
    sets: Vec<u32>,
    push: Push,
    num_workgroups: bool,
    /// A bit for each axis.
    workgroup_id: u16,
}

impl Uses {
    /// What at least one of several shaders uses.
    fn of_all(shaders: &[&Shader]) -> Uses {
        let mut all = Uses { sets: Vec::new(), push: Push::None, num_workgroups: false, workgroup_id: 0 };
        for uses in shaders.iter().map(|shader| Uses::of(shader)) {
            all.sets.extend(uses.sets);
            all.push = match (all.push, uses.push) {
                (Push::None, push) | (push, Push::None) => push,
                (Push::Words(mut words), Push::Words(more)) => {
                    words.extend(more);
                    words.sort_unstable();
                    words.dedup();
                    if words.len() > INLINE_PUSH_WORDS { Push::Memory } else { Push::Words(words) }
                }
                _ => Push::Memory,
            };
            all.num_workgroups |= uses.num_workgroups;
            all.workgroup_id |= uses.workgroup_id;
        }
        all.sets.sort_unstable();
        all.sets.dedup();
        all
    }

    fn of(shader: &Shader) -> Uses {
        let func = shader.entry();
        let (mut sets, mut words, mut inline) = (Vec::new(), Vec::new(), true);
        let (mut num_workgroups, mut workgroup_id) = (false, 0);
        let lanes = lanes_read(func);
        for inst in func.walk() {
            match (func.op(inst), func.payload(inst)) {
                (_, Payload::Resource(resource, _)) => sets.push(shader.resources[resource].set),
                (_, Payload::SysVal(SystemValue::NumWorkgroups)) => num_workgroups = true,
                (_, Payload::SysVal(SystemValue::WorkgroupId | SystemValue::GlobalInvocationId)) => {
                    workgroup_id |= lanes[func.result(inst)];
                }
                (Op::Load, Payload::Mem(mem)) if mem.space == Space::Push => {
                    let ty = func.ty(func.result(inst));
                    let bytes = u64::from(ty.base.bits() / 8) * u64::from(ty.lanes);
                    match func.args(inst).first().and_then(|offset| func.const_bits(*offset)) {
                        Some(offset)
                            if offset + bytes <= 4096 && (offset % 4 == 0 || ty.base.bits() < 32) =>
                        {
                            words.extend((offset / 4..(offset + bytes).div_ceil(4)).map(|word| word as u32));
                        }
                        _ => inline = false,
                    }
                }
                _ => {}
            }
        }
        sets.sort_unstable();
        sets.dedup();
        words.sort_unstable();
        words.dedup();
        let push = if !inline || words.len() > INLINE_PUSH_WORDS {
            Push::Memory
        } else if words.is_empty() {
            Push::None
        } else {
            Push::Words(words)
        };
        Uses { sets, push, num_workgroups, workgroup_id }
    }
}

/// Whether descriptors of a class are those of images, of eight words.
pub(crate) fn is_image(class: ResourceClass) -> bool {
    use ResourceClass as C;
    matches!(class, C::SampledImage | C::StorageImage | C::InputAttachment | C::CombinedImageSampler)
}

/// The distance in bytes from one descriptor of an array to the next.
pub fn descriptor_bytes(class: ResourceClass) -> u32 {
    use ResourceClass as C;
    match class {
        C::UniformBuffer | C::StorageBuffer | C::Sampler | C::UniformTexelBuffer | C::StorageTexelBuffer => {
            16
        }
        C::StorageImage => 32,
        C::SampledImage | C::InputAttachment => 64,
        C::CombinedImageSampler => 96,
    }
}

/// Where the descriptors of a binding start in their set. Bindings follow each other in the order of their numbers, those of images at multiples of 32
/// bytes; a binding that the shader does not have counts as one buffer. `None` if it is too far, or if an array without a length is not the last.
pub fn descriptor_offset(shader: &Shader, set: u32, binding: u32) -> Option<u32> {
    let mut of_set: Vec<(u32, ResourceClass, u32)> = shader
        .resources
        .values()
        .filter(|data| data.set == set && data.binding <= binding)
        .map(|data| (data.binding, data.class, data.count))
        .collect();
    of_set.sort_by_key(|(number, class, _)| (*number, std::cmp::Reverse(descriptor_bytes(*class))));
    // Several variables may have one binding; it is as large as the largest.
    of_set.dedup_by_key(|(number, ..)| *number);
    let mut offset = 0u32;
    let mut next = 0;
    for (number, class, count) in of_set {
        offset = offset.checked_add((number - next).checked_mul(16)?)?;
        if is_image(class) {
            offset = offset.checked_next_multiple_of(32)?;
        }
        if number == binding {
            return Some(offset);
        }
        if count == 0 {
            return None;
        }
        offset = offset.checked_add(descriptor_bytes(class).checked_mul(count)?)?;
        next = number + 1;
    }
    None
}
