//! An HSA kernel on the emulator: its code object is loaded as by a runtime, and its arguments are in the kernarg segment.

use super::run::{ALIGNMENT, BUFFERS, EmulationError, EmulationStart, TABLE_LIMIT, descriptor, map_buffers};
use super::{CodeForm, CompileView, Options};
use unwedge_aco::abi::{KernelArgKind, KernelArgs, descriptor_bytes};
use unwedge_capture::elf;
use unwedge_isa::amdgcn::entry::KernelEntry;
use unwedge_shader::interp::{BindingPoint, Bindings};
use unwedge_shader::ir::ResourceClass;
use unwedge_sim::amdgcn::{Dispatch, Program, SimMemory};
use unwedge_sim::hsa::{self, LaunchOptions};

/// The address at which the object is loaded.
const OBJECT: u64 = 0x7f00_0000_0000;

/// A table of descriptors whose address is an argument.
fn table(
    (set, binding): (u32, u32),
    class: ResourceClass,
    bindings: &Bindings,
    buffers: &[u64],
    options: &Options,
) -> Result<Vec<u8>, EmulationError> {
    if !matches!(class, ResourceClass::UniformBuffer | ResourceClass::StorageBuffer) {
        return Err(EmulationError::of_class(class));
    }
    let mut table = Vec::new();
    let own = bindings.buffers.iter().filter(|(point, _)| (point.set, point.binding) == (set, binding));
    for (point, view) in own {
        let offset = point.index.checked_mul(descriptor_bytes(class)).filter(|offset| *offset < TABLE_LIMIT);
        let at = offset.ok_or(EmulationError::Descriptor(*point))? as usize;
        let words = descriptor(buffers[view.memory] + view.offset, view.size, options.gpu.generation());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        table.resize(table.len().max(at + bytes.len()), 0);
        table[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    // Without bound buffers, the table has one null descriptor.
    table.resize(table.len().max(descriptor_bytes(class) as usize), 0);
    Ok(table)
}

/// The bytes of the kernarg segment. Tables of descriptors are mapped from the address `next` on.
fn arguments(
    kernel: &KernelArgs,
    bindings: &Bindings,
    buffers: &[u64],
    options: &Options,
    memory: &mut SimMemory,
    mut next: u64,
) -> Result<Vec<u8>, EmulationError> {
    let mut segment = vec![0; kernel.size() as usize];
    for arg in kernel.iter() {
        let view = |set, binding| bindings.buffers.get(&BindingPoint { set, binding, index: 0 });
        let value = match arg.kind {
            KernelArgKind::Buffer { set, binding, .. } => {
                view(set, binding).map_or(0, |view| buffers[view.memory] + view.offset)
            }
            KernelArgKind::BufferSize { set, binding } => {
                view(set, binding).map_or(0, |view| view.size.min(u32::MAX.into()))
            }
            KernelArgKind::Descriptors { set, binding, class, .. } => {
                let table = table((set, binding), class, bindings, buffers, options)?;
                let address = next;
                next = (next + table.len() as u64 + ALIGNMENT).next_multiple_of(ALIGNMENT);
                memory.map(address, table)?;
                address
            }
            KernelArgKind::PushConstants => {
                let place = segment.iter_mut().skip(arg.offset as usize).take(arg.size as usize);
                place.zip(&bindings.push).for_each(|(place, byte)| *place = *byte);
                continue;
            }
            // `hsa::prepare` fills hidden arguments.
            KernelArgKind::BlockCount(_) => continue,
        };
        let place = segment.iter_mut().skip(arg.offset as usize).take(arg.size as usize);
        place.zip(value.to_le_bytes()).for_each(|(place, byte)| *place = byte);
    }
    Ok(segment)
}

/// Loads the code object of a kernel, and sets up its initial state.
pub(super) fn start(
    compiled: &CompileView,
    kernel: &KernelArgs,
    bindings: &Bindings,
    options: &Options,
    mut dispatch: Dispatch,
) -> Result<EmulationStart, EmulationError> {
    let mut memory = SimMemory::default();
    let (buffers, next) = map_buffers(bindings, &mut memory, BUFFERS)?;
    let segment = arguments(kernel, bindings, &buffers, options, &mut memory, next)?;
    let bytes = compiled.bytes(CodeForm::Shared)?;
    let object = elf::read(&bytes)?;
    let section = object.linked_section(None).ok_or(EmulationError::NoKernel)?;
    let descriptor = section.descriptor.ok_or(EmulationError::NoKernel)?;
    let gpu = object.start(&section.name, &options.gpu).map_or(options.gpu, |start| start.mode(options.gpu));
    let entry = KernelEntry::of(&descriptor, &gpu);
    hsa::map(&object, OBJECT, &mut memory)?;
    dispatch.entry = section.entry;
    let launch = LaunchOptions { kernarg: Some(segment), ..LaunchOptions::default() };
    hsa::prepare(&object, &section.name, &entry, &gpu, &launch, &mut dispatch, &mut memory)?;
    let program = Program::new(&section.words, OBJECT.wrapping_add(section.address), gpu);
    Ok(EmulationStart { memory, buffers, program, dispatch })
}
