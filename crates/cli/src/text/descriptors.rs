//! State that CP_LOAD_STATE loads: shaders, constants, samplers, textures, buffers.

use super::{CffText, Shader, disassemble, hex};
use unwedge_base::{Dwords, Generation};
use unwedge_hw::Domain;
use unwedge_pm4::{LoadState, StateSource, StateType};

/// OpenCL drivers load this many samplers and textures whatever they use; the first empty one ends the list then.
const ALWAYS_LOADED: usize = 16;

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
}

impl<'d> CffText<'_, '_, 'd> {
    pub(super) fn load_state(&mut self, load: &LoadState<'_>) {
        let level = self.level() + 1;
        let generation = self.gpu.generation();
        let Some(contents) = load.contents else { return };
        // State in the packet itself lies behind its header and its first two or three dwords.
        let inside = if self.is_64bit() { 4 * 4 } else { 3 * 4 };
        let packet = self.streams.last().and_then(|s| s.iova);
        let iova = load.iova.filter(|&iova| iova != 0).or(packet.map(|p| p.wrapping_add(inside)));
        let units = load.units as usize;
        let bindless = load.source == StateSource::Bindless;
        match load.ty {
            StateType::Shader => {
                let dwords = units * if generation >= Generation::A4xx { 32 } else { 8 };
                let code = contents.take(dwords);
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
            StateType::MipAddr => {
                for (i, address) in contents.take(units).iter().enumerate() {
                    self.text.level(level + 1);
                    if i < 10 {
                        self.text.byte(b' ');
                    }
                    self.text.dec(i as u64).str(": ").hex(u64::from(address), 8).end();
                }
            }
            StateType::Sampler => self.samplers(contents, iova, units, bindless, level),
            StateType::TexConst => self.textures(contents, iova, units, level),
            StateType::Ssbo0 => {
                let size = if generation >= Generation::A6xx { 16 } else { 4 };
                let run = Run { layout: self.layouts.ssbo[0], shown: size, stride: size, unused: 0 };
                self.descriptors(contents, iova, units, run, level);
            }
            StateType::Ssbo1 => {
                let run = Run { layout: self.layouts.ssbo[1], shown: 2, stride: 2, unused: 0 };
                self.descriptors(contents, iova, units, run, level);
            }
            StateType::Ssbo2 => {
                if generation == Generation::A5xx {
                    let run = Run { layout: self.layouts.ssbo[2], shown: 2, stride: 2, unused: 0 };
                    self.descriptors(contents, iova, units, run, level);
                }
            }
            StateType::Ubo => {
                let stride = if bindless { 16 } else { 2 };
                let run = Run { layout: self.layouts.ubo, shown: 2, stride, unused: 0 };
                self.descriptors(contents, iova, units, run, level);
            }
            StateType::Unknown2 => self.hex(contents.take(units * 2), iova, level + 1),
            StateType::Unknown => self.hex(contents.take(units), iova, level + 1),
        }
    }

    /// Samplers that registers point at (a5xx).
    pub(super) fn samplers_at(&mut self, iova: u64, count: u32, level: usize) {
        if let Some(contents) = self.memory_at(iova) {
            self.samplers(contents, Some(iova), count as usize, false, level);
        }
    }

    /// Texture descriptors that registers point at (a5xx).
    pub(super) fn textures_at(&mut self, iova: u64, count: u32, level: usize) {
        if let Some(contents) = self.memory_at(iova) {
            self.textures(contents, Some(iova), count as usize, level);
        }
    }

    fn samplers(
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
        let run = Run { layout: self.layouts.tex_samp, shown, stride, unused: 2 };
        self.descriptors(contents, iova, count, run, level);
    }

    fn textures(&mut self, contents: Dwords<'_>, iova: Option<u64>, count: usize, level: usize) {
        let size = match self.gpu.generation() {
            Generation::A2xx => return,
            Generation::A3xx => 4,
            Generation::A4xx => 8,
            Generation::A5xx => 12,
            _ => 16,
        };
        let run = Run { layout: self.layouts.tex_const, shown: size, stride: size, unused: 4 };
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
            let descriptor = contents.skip(at).take(run.shown);
            if descriptor.is_empty() || self.text.ended().is_some() {
                return;
            }
            if count == ALWAYS_LOADED && run.unused > 0 && descriptor.take(run.unused).iter().all(|d| d == 0)
            {
                return;
            }
            if let Some(layout) = run.layout {
                self.layout(layout, descriptor, level + 2);
            }
            self.hex(descriptor, iova.map(|a| a.wrapping_add(4 * at as u64)), level + 1);
        }
    }
}
