//! The HSA calling convention: registers hold the address of the kernarg segment, which holds the arguments.
//!
//! A binding of one buffer becomes two arguments, its address and its size. Descriptors of all other bindings are in memory, as in a descriptor set, and the argument is their address. Push
//! constants are one argument. Bindings that the shader declares but does not use also have arguments, so the layout does not depend on optimization. Facts: LLVM's `AMDGPUUsage`, "Initial Kernel
//! Execution State" and "Code Object Metadata". Never: kernel descriptors and metadata, which `object` writes.

use super::{Args, Argument, Push, Uses, names_registers};
use crate::compile::CompileError;
use std::collections::BTreeMap;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::{Access, ResourceClass, ResourceData, Shader, Stage};

/// What starts a program, and therefore where its arguments are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CallingConvention {
    /// A graphics driver, as RADV does.
    #[default]
    Driver,
    /// An HSA runtime. Only compute shaders are kernels.
    Hsa,
}

/// The meaning of an argument in the kernarg segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelArgKind {
    /// The address of a buffer, whose upper 16 bits are zero.
    Buffer {
        /// Set of the binding.
        set: u32,
        /// Number of the binding.
        binding: u32,
        /// How the shader accesses it.
        access: Access,
    },
    /// The size of that buffer in bytes.
    BufferSize {
        /// Set of the binding.
        set: u32,
        /// Number of the binding.
        binding: u32,
    },
    /// The address of the descriptors of a binding, which are [`descriptor_bytes`](super::descriptor_bytes) apart.
    Descriptors {
        /// Set of the binding.
        set: u32,
        /// Number of the binding.
        binding: u32,
        /// The class of the resources.
        class: ResourceClass,
        /// The number of descriptors; 0 for an array without a length.
        count: u32,
    },
    /// The push constants.
    PushConstants,
    /// The number of workgroups along an axis, a hidden argument that the runtime fills.
    BlockCount(u8),
}

/// An argument in the kernarg segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelArg {
    /// Its name.
    pub name: String,
    /// Its meaning.
    pub kind: KernelArgKind,
    /// Its offset in the segment, in bytes.
    pub offset: u32,
    /// Its size in bytes.
    pub size: u32,
}

/// The kernarg segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelArgs {
    list: Vec<KernelArg>,
    end: u32,
}

/// The largest size of the segment: the reach of the immediate offset of a scalar load on gfx8, and more than runtimes allocate.
const MAX_SEGMENT_BYTES: u32 = 1 << 20;
/// The alignment of the kernarg segment in bytes.
pub(crate) const KERNARG_ALIGN: u32 = 16;

impl KernelArgs {
    /// The arguments of a compute shader.
    fn of(shader: &Shader, uses: &Uses) -> Result<KernelArgs, CompileError> {
        let mut bindings: BTreeMap<(u32, u32), Vec<&ResourceData>> = BTreeMap::new();
        for data in shader.resources.values() {
            bindings.entry((data.set, data.binding)).or_default().push(data);
        }
        let mut args = KernelArgs::default();
        for ((set, binding), variables) in bindings {
            let named = variables.iter().map(|data| &data.name).find(|name| !name.is_empty());
            let name = named.cloned().unwrap_or_else(|| format!("set{set}_binding{binding}"));
            let is_buffer = |data: &&ResourceData| {
                data.count == 1
                    && matches!(data.class, ResourceClass::UniformBuffer | ResourceClass::StorageBuffer)
            };
            let Some(widest) = variables.iter().max_by_key(|data| super::descriptor_bytes(data.class)) else {
                continue;
            };
            if variables.iter().all(is_buffer) {
                // Only access flags that every variable of the binding has.
                let promised = |access: &Access| variables.iter().all(|data| data.access.has(*access));
                let promises = [Access::READONLY, Access::WRITEONLY].into_iter();
                let access = promises.filter(promised).fold(Access::NONE, Access::or);
                args.add(name.clone(), KernelArgKind::Buffer { set, binding, access }, 8, 16)?;
                args.add(name + ".size", KernelArgKind::BufferSize { set, binding }, 4, 4)?;
            } else {
                let (class, count) = (widest.class, widest.count);
                args.add(name, KernelArgKind::Descriptors { set, binding, class, count }, 8, 8)?;
            }
        }
        let push = match &uses.push {
            Push::None => 0,
            Push::Words(words) => words.last().map_or(0, |last| (last + 1) * 4),
            Push::Memory => 4,
        };
        let push = push.max(shader.info.push_size);
        if push > 0 {
            let size = push.checked_next_multiple_of(4).unwrap_or(u32::MAX);
            args.add("push_constants".to_owned(), KernelArgKind::PushConstants, size, 16)?;
        }
        if uses.num_workgroups {
            for (axis, letter) in (0..).zip(["x", "y", "z"]) {
                let name = format!("block_count_{letter}");
                args.add(name, KernelArgKind::BlockCount(axis), 4, 4)?;
            }
        }
        Ok(args)
    }

    fn add(&mut self, name: String, kind: KernelArgKind, size: u32, align: u32) -> Result<(), CompileError> {
        let offset = self.end.next_multiple_of(align);
        let end = u64::from(offset) + u64::from(size);
        if end > MAX_SEGMENT_BYTES.into() {
            return Err(CompileError::Room {
                what: "bytes of kernel arguments",
                asked: end,
                most: MAX_SEGMENT_BYTES.into(),
            });
        }
        self.end = end as u32;
        self.list.push(KernelArg { name, kind, offset, size });
        Ok(())
    }

    /// All arguments, in the order of their offsets.
    pub fn iter(&self) -> impl Iterator<Item = &KernelArg> {
        self.list.iter()
    }

    /// The size of the segment in bytes.
    pub fn size(&self) -> u32 {
        self.end
    }

    /// The offset of an argument.
    pub(crate) fn offset(&self, is_wanted: impl Fn(KernelArgKind) -> bool) -> Option<u32> {
        self.list.iter().find(|arg| is_wanted(arg.kind)).map(|arg| arg.offset)
    }
}

impl Args {
    /// The arguments in registers of an HSA kernel.
    pub(super) fn kernel(parts: &[&Shader], gpu: &Gpu) -> Result<Args, CompileError> {
        let generation = gpu.generation();
        if generation < Gfx::Gfx7 {
            return Err(CompileError::Convention("the GPU is older than gfx7"));
        }
        let [shader] = parts else { return Err(CompileError::Convention("merged stages are not kernels")) };
        if shader.info.stage != Stage::Compute {
            return Err(CompileError::Convention("only compute shaders are kernels"));
        }
        if names_registers(shader.entry()) {
            return Err(CompileError::Convention("the shader names the registers of its arguments"));
        }
        let uses = Uses::of(shader);
        let segment = KernelArgs::of(shader, &uses)?;
        let mut args = Args::default();
        let mut next = 0;
        if generation < Gfx::Gfx11 {
            args.add(Argument::ScratchDescriptor, &mut next, 4);
        }
        if segment.size() > 0 {
            args.add(Argument::KernargSegment, &mut next, 2);
        }
        args.hardware(&uses, generation, &mut next);
        args.kernel = Some(segment);
        Ok(args)
    }
}
