//! State that CP_LOAD_STATE loads: shaders, constants, samplers, textures, buffers.

use super::{CffText, Shader, disassemble, hex};
use unwedge_base::{Dwords, Generation};
use unwedge_hw::Domain;
use unwedge_stream::adreno::{LoadState, StateSource, StateType};

/// OpenCL drivers load this many samplers and textures whatever they use; the first empty one ends the list then.
const ALWAYS_LOADED: usize = 16;

/// Dwords of the largest descriptor.
const LARGEST: usize = 16;

/// A run of equal descriptors.
#[derive(Clone, Copy)]
struct Run<'d> {
    layout: Option<Domain<'d>>,
    /// Dwords shown of each.
    shown: usize,
    /// Dwords from one to the next.
    stride: usize,
    /// Dwords that are all zero in an unused one; 0 when there is no telling.
    unused: usize,
    /// What it points at.
    target: DescriptorTarget,
}

/// The memory that a descriptor points at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DescriptorTarget {
    /// None, or not known where.
    None,
    /// The 32-bit address in this dword; the first 64 dwords of it.
    Near(usize),
    /// The 49-bit address from this dword on; all of it.
    Whole(usize),
    /// The 49-bit address from the first dword on, with the number of units of four dwords above it.
    Counted,
}

/// Dwords shown of a target whose size is not known.
const NEAR: usize = 64;

impl<'d> CffText<'_, '_, 'd> {
    pub(super) fn load_state(&mut self, load: &LoadState<'_>) {
        let level = self.level() + 1;
        let generation = self.gpu.generation();
        let Some(contents) = load.contents.filter(|_| !self.quiet || self.only.is_some()) else { return };
        // State in the packet itself lies behind its header and its first two or three dwords.
        let inside = if self.is_64bit() { 4 * 4 } else { 3 * 4 };
        let packet = self.streams.last().and_then(|s| s.iova);
        let iova = load.iova.filter(|&iova| iova != 0).or(packet.map(|p| p.wrapping_add(inside)));
        let units = load.units as usize;
        let run = |layout, size, target| Run { layout, shown: size, stride: size, unused: 0, target };
        let bindless = load.source == StateSource::Bindless;
        match load.ty {
            StateType::Shader => {
                let dwords = units * if generation >= Generation::A4xx { 32 } else { 8 };
                let code = contents.take(dwords);
                self.hand_on_ir3(load.stage, code);
                disassemble(
                    self.text,
                    code,
                    Shader::Ir3 { stats: self.options.stats },
                    generation,
                    level + 2,
                );
            }
            StateType::Constants => {
                let dwords = units * if generation >= Generation::A4xx { 4 } else { 2 };
                let constants = contents.take(dwords);
                hex::floats(self.text, constants, iova, level + 1, self.is_64bit());
                self.hex(constants, iova, level + 1);
            }
            StateType::Sampler => self.samplers(contents, iova, units, bindless, level),
            StateType::TexConst => self.textures(contents, iova, units, level),
            StateType::Ssbo0 => {
                let size = if generation >= Generation::A6xx { 16 } else { 4 };
                self.descriptors(
                    contents,
                    iova,
                    units,
                    run(self.layouts.ssbo[0], size, DescriptorTarget::None),
                    level,
                );
            }
            StateType::Ssbo1 => {
                self.descriptors(
                    contents,
                    iova,
                    units,
                    run(self.layouts.ssbo[1], 2, DescriptorTarget::None),
                    level,
                );
            }
            StateType::Ssbo2 => {
                // The tools show these of a5xx only, but what they point at of all.
                let shown = if generation == Generation::A5xx { 2 } else { 0 };
                let run = Run { stride: 2, ..run(self.layouts.ssbo[2], shown, DescriptorTarget::Whole(0)) };
                self.descriptors(contents, iova, units, run, level);
            }
            StateType::Ubo => {
                let stride = if bindless { 16 } else { 2 };
                let run = Run { stride, ..run(self.layouts.ubo, 2, DescriptorTarget::Counted) };
                self.descriptors(contents, iova, units, run, level);
            }
            StateType::Unknown2 => self.hex(contents.take(units * 2), iova, level + 1),
            StateType::Unknown => self.hex(contents.take(units), iova, level + 1),
        }
    }

    /// Samplers that registers point at (a5xx).
    pub(super) fn samplers_at(&mut self, iova: u64, count: u32, level: usize) {
        let count = number(count);
        if let Some(read) = self.read_at(iova, count.saturating_mul(LARGEST)) {
            self.samplers(read.dwords(), Some(iova), count, false, level);
        }
    }

    /// Texture descriptors that registers point at (a5xx).
    pub(super) fn textures_at(&mut self, iova: u64, count: u32, level: usize) {
        let count = number(count);
        if let Some(read) = self.read_at(iova, count.saturating_mul(LARGEST)) {
            self.textures(read.dwords(), Some(iova), count, level);
        }
    }

    pub(super) fn samplers(
        &mut self,
        contents: Dwords<'_>,
        iova: Option<u64>,
        count: usize,
        bindless: bool,
        level: usize,
    ) {
        let shown = match self.gpu.generation() {
            Generation::A2xx => return,
            Generation::A3xx | Generation::A4xx => 2,
            _ => 4,
        };
        let stride = if bindless { 16 } else { shown };
        let run =
            Run { layout: self.layouts.tex_samp, shown, stride, unused: 2, target: DescriptorTarget::None };
        self.descriptors(contents, iova, count, run, level);
    }

    pub(super) fn textures(&mut self, contents: Dwords<'_>, iova: Option<u64>, count: usize, level: usize) {
        let (size, target) = match self.gpu.generation() {
            Generation::A2xx => return,
            Generation::A3xx => (4, DescriptorTarget::None),
            Generation::A4xx => (8, DescriptorTarget::Near(4)),
            Generation::A5xx => (12, DescriptorTarget::Whole(4)),
            _ => (16, DescriptorTarget::Whole(4)),
        };
        let run = Run { layout: self.layouts.tex_const, shown: size, stride: size, unused: 4, target };
        self.descriptors(contents, iova, count, run, level);
    }

    fn descriptors(
        &mut self,
        contents: Dwords<'_>,
        iova: Option<u64>,
        count: usize,
        run: Run<'d>,
        level: usize,
    ) {
        for i in 0..count {
            let at = i.saturating_mul(run.stride);
            let whole = contents.skip(at).take(run.stride);
            let descriptor = whole.take(run.shown);
            if whole.is_empty() || self.text.ended().is_some() {
                return;
            }
            if count == ALWAYS_LOADED && run.unused > 0 && descriptor.take(run.unused).iter().all(|d| d == 0)
            {
                return;
            }
            if let Some(layout) = run.layout {
                self.layout(layout, descriptor, level + 2);
            }
            // cffdump shows what textures point at before their dwords, and what buffers do behind.
            let texture = run.unused > 0;
            if texture {
                self.target(run.target, whole, level.saturating_sub(1));
            }
            if !descriptor.is_empty() {
                self.hex(descriptor, iova.map(|a| a.wrapping_add(4 * at as u64)), level + 1);
            }
            if !texture {
                self.target(run.target, whole, level.saturating_sub(1));
            }
        }
    }

    fn target(&mut self, target: DescriptorTarget, descriptor: Dwords<'_>, level: usize) {
        if !self.options.textures || self.options.summary {
            return;
        }
        let dword = |i| descriptor.get(i).unwrap_or(0);
        let address = |i| u64::from(dword(i)) | u64::from(dword(i + 1) & 0x1_ffff) << 32;
        let (iova, dwords) = match target {
            DescriptorTarget::None => return,
            DescriptorTarget::Near(i) => (u64::from(dword(i) & !0x1f), NEAR),
            DescriptorTarget::Whole(i) => (address(i), usize::MAX),
            DescriptorTarget::Counted => (address(0), 4 * (dword(1) >> 17) as usize),
        };
        if let Some(there) = self.memory_at(iova) {
            let there = there.take(dwords);
            // Zeros make no text, but have to be looked at.
            self.text.charge(there.stored().len() as u64);
            self.hex(there, Some(iova), level);
        }
    }
}

/// How many descriptors a register says; it is read as a signed number, and there are none of a negative one.
fn number(count: u32) -> usize {
    usize::try_from(count as i32).unwrap_or(0)
}
