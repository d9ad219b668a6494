//! Arguments of HSA kernels: scalar loads from the kernarg segment.

use super::Selector;
use crate::abi::{Argument, KernelArgKind};
use crate::ir::{Operand, RegClass};
use unwedge_hw::amd::formats;
use unwedge_isa::amdgcn::Opcode;

impl Selector<'_> {
    /// The address of the segment, and the offset of an argument.
    fn kernel_argument(&self, is_wanted: impl Fn(KernelArgKind) -> bool) -> Option<(Operand, u32)> {
        let offset = self.kernel.as_ref()?.offset(is_wanted)?;
        Some((self.find_argument(Argument::KernargSegment)?, offset))
    }

    fn load_argument(&mut self, opcode: Opcode, dwords: u8, (segment, offset): (Operand, u32)) -> Operand {
        let offset = self.smem_offset(Operand::c32(offset));
        self.smem(opcode, RegClass::sgpr(dwords), segment, offset)
    }

    /// The number of workgroups along an axis.
    pub(super) fn block_count(&mut self, axis: u8) -> Operand {
        match self.kernel_argument(|kind| kind == KernelArgKind::BlockCount(axis)) {
            Some(place) => self.load_argument(Opcode::s_load_dword, 1, place),
            None => Operand::undef(RegClass::S1),
        }
    }

    /// The descriptor of a buffer whose address and size are arguments.
    pub(super) fn kernel_buffer(&mut self, set: u32, binding: u32) -> Option<Operand> {
        let (segment, address) = self.kernel_argument(|kind| match kind {
            KernelArgKind::Buffer { set: own, binding: number, .. } => (own, number) == (set, binding),
            _ => false,
        })?;
        let (_, size) = self.kernel_argument(|kind| kind == KernelArgKind::BufferSize { set, binding })?;
        // Two loads, whose results are allocated next to each other. The parts of a single load would be copied.
        let address = self.load_argument(Opcode::s_load_dwordx2, 2, (segment, address));
        let size = self.load_argument(Opcode::s_load_dword, 1, (segment, size));
        let config = Operand::c32(formats::raw_buffer(self.gfx).unwrap_or_default());
        Some(self.create(RegClass::sgpr(4), &[address, size, config]))
    }

    /// The address of the descriptors of a binding.
    pub(super) fn kernel_descriptors(&mut self, set: u32, binding: u32) -> Option<Operand> {
        let place = self.kernel_argument(|kind| match kind {
            KernelArgKind::Descriptors { set: own, binding: number, .. } => (own, number) == (set, binding),
            _ => false,
        })?;
        Some(self.load_argument(Opcode::s_load_dwordx2, 2, place))
    }

    /// The address of the kernarg segment, and the offset of push constants in it.
    pub(super) fn kernel_push(&self) -> Option<(Operand, u32)> {
        self.kernel_argument(|kind| kind == KernelArgKind::PushConstants)
    }
}
