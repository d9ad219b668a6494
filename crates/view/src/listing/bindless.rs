//! The descriptor sets that the bindless base registers point at (a6xx on), as listed with `--bindless`.

use super::CffText;
use unwedge_hw::Gpu;
use unwedge_stream::adreno::{AdrenoOp, AdrenoState, Draw, DrawKind};

/// Dwords of a descriptor.
const DESCRIPTOR: usize = 16;
/// Sets looked for; no generation has so many.
const SETS: u32 = 128;

/// The base registers of the sets, of graphics and of compute.
#[derive(Clone, Debug, Default)]
pub struct BaseRegisters([Vec<u32>; 2]);

impl BaseRegisters {
    pub fn new(gpu: Gpu<'_>) -> BaseRegisters {
        BaseRegisters(["SP_BINDLESS_BASE", "SP_CS_BINDLESS_BASE"].map(|array| {
            let set = |i| gpu.reg_offset(&format!("{array}[{i}].DESCRIPTOR")).filter(|&reg| reg != 0);
            (0..SETS).map_while(set).collect()
        }))
    }
}

impl CffText<'_, '_, '_> {
    /// The sets that a draw or dispatch can use. What a descriptor is for, only the shader knows: each is shown as
    /// everything that it can be.
    pub(super) fn bindless(&mut self, state: &AdrenoState, draw: &Draw<'_>, level: usize) {
        let compute = match (draw.kind, draw.packet.op) {
            (DrawKind::Draw, _) => false,
            (DrawKind::Dispatch, AdrenoOp::ExecCs | AdrenoOp::ExecCsIndirect) => true,
            _ => return,
        };
        self.text.level(level).str("draw[").dec(u64::from(draw.number)).str("] bindless descriptors").end();
        let BaseRegisters(bases) = &self.bases;
        let bases = bases[usize::from(compute)].clone();
        for (set, &first) in (0..).zip(&bases) {
            self.text.level(level + 1).str("set[").dec(u64::from(set)).str("]:").end();
            // cffdump adds the set to the register of that set once more: of set n it shows what set 2n points at.
            let reg = first + 2 * set;
            let Some(low) = state.regs.get(reg) else { continue };
            let iova = u64::from(low & !3) | u64::from(state.regs.raw(reg + 1)) << 32;
            self.set(iova, level);
        }
    }

    fn set(&mut self, iova: u64, level: usize) {
        let Some(contents) = self.memory_at(iova) else { return };
        let number = |this: &mut Self, what: &str, i: usize| {
            this.text.level(level + 1).str(what).byte(b'[').dec(i as u64).str("]:").end();
        };
        for i in 0..contents.len() / DESCRIPTOR {
            if self.text.ended().is_some() {
                return;
            }
            let descriptor = contents.skip(i * DESCRIPTOR).take(DESCRIPTOR);
            let at = Some(iova.wrapping_add(4 * (i * DESCRIPTOR) as u64));
            number(self, "UBO", i);
            if let Some(layout) = self.layouts.ubo {
                self.layout(layout, descriptor.take(2), level + 2);
            }
            number(self, "STORAGE/TEXEL/IMAGE", i);
            self.textures(descriptor, at, 1, level);
            number(self, "SAMPLER", i);
            self.samplers(descriptor, at, 1, true, level);
        }
    }
}
