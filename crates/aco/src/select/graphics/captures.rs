//! Transform feedback by the stage VS: the first vertices of a wave are written to buffers before they are exported.
//!
//! The hardware counts vertices and looks at the size of buffers: [`Argument::CaptureConfig`] says how many vertices of the wave there is room for.

use super::slots::SlotPlace;
use super::{Selected, Selector};
use crate::abi::Argument;
use crate::captures::BUFFERS;
use crate::ir::{Operand, RegClass};
use unwedge_isa::amdgcn::Opcode;

/// Halves of [`Argument::CaptureConfig`]: first bit and width of the number of vertices, and of their stream.
const VERTICES: (u32, u32) = (16, 7);
pub(super) const STREAM_OF_WAVE: (u32, u32) = (24, 2);

impl Selector<'_> {
    /// Captures outputs of a stream.
    pub(super) fn capture_outputs(&mut self, stream: u8) -> Selected<()> {
        if !self.interface.captures.has_stream(stream) {
            return Ok(());
        }
        let count = self.field(Argument::CaptureConfig, VERTICES);
        let lanes = self.first_lanes(count);
        self.only_lanes(lanes, |selector| {
            let lane = selector.lane();
            let first = selector.given(Argument::CaptureIndex);
            let vertex = selector.vector_add(first, lane);
            for buffer in 0..BUFFERS as u8 {
                selector.capture_buffer(stream, buffer, vertex);
            }
            Ok(())
        })
    }

    fn capture_buffer(&mut self, stream: u8, buffer: u8, vertex: Operand) {
        let captures = &self.interface.captures;
        let stride = captures.strides[usize::from(buffer)];
        // Runs of dwords that follow each other.
        let mut runs: Vec<(u32, Vec<Option<Operand>>)> = Vec::new();
        for word in captures.part(stream, buffer) {
            let value = self.outputs.get(&(word.slot, stream));
            let value = value.and_then(|values| values[usize::from(word.component & 3)]);
            let value = value.filter(|value| !value.is_undef());
            match runs.last_mut() {
                Some((offset, run)) if *offset + run.len() as u32 * 4 == word.offset => run.push(value),
                _ => runs.push((word.offset, vec![value])),
            }
        }
        if runs.iter().all(|(_, run)| run.iter().all(Option::is_none)) {
            return;
        }
        let table = self.given(Argument::CaptureBuffers);
        let address = self.create(RegClass::S2, &[table, Operand::c32(self.options.address_high)]);
        let descriptor = self.table_descriptor(address, buffer.into());
        let begin = self.given(Argument::CaptureOffset(buffer));
        let begin = self.salu(Opcode::s_lshl_b32, RegClass::S1, &[begin, Operand::c32(2)]);
        let own = self.valu(Opcode::v_mul_lo_u32, RegClass::V1, &[vertex, Operand::c32(stride)]);
        let place = self.vector_add(begin, own);
        for (offset, run) in runs {
            self.store_ring(descriptor, SlotPlace::at(place, offset), Operand::c32(0), &run, 4);
        }
    }
}
