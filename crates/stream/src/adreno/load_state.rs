//! CP_LOAD_STATE of all generations: shaders, constants, textures and buffers handed to a stage.
//!
//! Facts: freedreno's adreno_pm4 register description, and which combinations of state block and state type
//! cffdump knows.

use crate::adreno::payload::LoadStateHeader;
use crate::adreno::walker::{AdrenoWalker, Current};
use crate::adreno::{AdrenoEvent, AdrenoSink, LoadState, Stage, StateSource, StateType};
use unwedge_base::Generation;

pub(crate) type LoadKind = (Option<Stage>, StateType);

/// a3xx: block, type.
fn kind_a3xx(block: u32, ty: u32) -> LoadKind {
    use Stage::{Fragment, Vertex};
    let stage = match block {
        0 | 4 => Vertex,
        2 | 6 => Fragment,
        _ => return (None, StateType::Unknown),
    };
    let ty = match (block, ty) {
        (0 | 2, 0) => StateType::Sampler,
        (0 | 2, 1) => StateType::TexConst,
        (4 | 6, 0) => StateType::Shader,
        (4 | 6, 1) => StateType::Constants,
        _ => return (None, StateType::Unknown),
    };
    (Some(stage), ty)
}

/// a4xx on: block, type. Blocks 0 to 5 are the textures of the six stages, 8 to 13 their shaders.
fn kind_a4xx(block: u32, ty: u32) -> LoadKind {
    use Stage::*;
    use StateType::*;
    const STAGES: [Stage; 6] = [Vertex, TessControl, TessEval, Geometry, Fragment, Compute];
    let stage = STAGES.get((block & 7) as usize).copied();
    match (block, ty) {
        (0..=5, 0) => (stage, Sampler),
        (0..=5, 1) => (stage, TexConst),
        (0..=5 | 8..=13, 2) => (stage, Ubo),
        (8..=13, 0) => (stage, Shader),
        (8..=13, 1) => (stage, Constants),
        (13, 3) => (stage, Ssbo0),
        (14 | 15, 0..=2) => {
            let owner = (block == 15).then_some(Compute);
            (owner, [Ssbo0, Ssbo1, Ssbo2].get(ty as usize).copied().unwrap_or(Unknown))
        }
        (6, 2) => (None, Ubo),
        (7, 1) => (None, Unknown2),
        _ => (None, Unknown),
    }
}

/// The stage and the kind of state of the first two payload dwords.
pub(crate) fn kind(first: u32, second: u32, generation: Generation) -> LoadKind {
    match generation {
        Generation::A2xx | Generation::A3xx => kind_a3xx(first >> 19 & 7, second & 3),
        Generation::A4xx | Generation::A5xx => kind_a4xx(first >> 18 & 0xf, second & 3),
        Generation::A6xx | Generation::A7xx => kind_a4xx(first >> 18 & 0xf, first >> 14 & 3),
    }
}

impl StateType {
    /// Dwords of a unit. Facts: what drivers write and cffdump shows for each.
    pub fn unit(self, generation: Generation) -> u32 {
        use Generation::{A3xx, A4xx, A5xx};
        match self {
            StateType::Shader if generation <= A3xx => 8,
            StateType::Shader => 32,
            StateType::Constants if generation <= A3xx => 2,
            StateType::Constants => 4,
            StateType::Sampler if generation <= A4xx => 2,
            StateType::Sampler => 4,
            StateType::TexConst if generation <= A3xx => 4,
            StateType::TexConst if generation == A4xx => 8,
            StateType::TexConst if generation == A5xx => 12,
            StateType::TexConst => 16,
            StateType::Ssbo0 if generation <= A5xx => 4,
            StateType::Ssbo0 => 16,
            StateType::Ssbo1 | StateType::Ssbo2 | StateType::Ubo | StateType::Unknown2 => 2,
            StateType::Unknown => 1,
        }
    }
}

impl AdrenoWalker<'_> {
    /// Reports what a CP_LOAD_STATE packet loads.
    pub(crate) fn load_state(&mut self, cx: &Current<'_>, sink: &mut dyn AdrenoSink) {
        let header_dwords = LoadStateHeader::dwords(self.generation);
        if !self.has(cx, header_dwords as u32, sink) || !cx.applies {
            return;
        }
        let linear = self.options.linear;
        let header = LoadStateHeader::parse(cx.args, self.generation);
        let LoadStateHeader { stage, ty, dst, .. } = header;
        // Listing tools know no state from a UBO, and read nine of the ten bits of the units.
        let source = match header.source {
            StateSource::Ubo if linear => StateSource::Direct,
            source => source,
        };
        let units = if linear { header.units & 0x1ff } else { header.units };
        let iova = match source {
            StateSource::Direct | StateSource::Ubo => None,
            StateSource::Indirect => Some(header.place & !3),
            StateSource::Bindless => self.bindless_address(cx, stage == Some(Stage::Compute)),
        };
        let inline = || Some(cx.args.skip(header_dwords));
        let contents = match (source, iova) {
            (StateSource::Direct, _) => inline(),
            // Listing tools take address 0 for "in the packet".
            (_, Some(0)) if linear => inline(),
            (_, iova) => iova.and_then(|iova| self.memory.dwords(iova)),
        };
        let load = LoadState { stage, ty, source, units, dst, iova, contents };
        // What is loaded is looked at.
        let loaded = units as usize * ty.unit(self.generation) as usize;
        let loaded = contents.map_or(0, |c| c.stored().len().min(loaded));
        if self.spend(loaded as u64, cx.packet.place, sink) {
            sink.event(&self.state, &AdrenoEvent::LoadState(load));
        }
    }

    /// A descriptor's address: one of the bindless base registers plus an offset in dwords.
    fn bindless_address(&self, cx: &Current<'_>, compute: bool) -> Option<u64> {
        let linear = self.options.linear;
        let regs = self.regs_read(cx);
        let read = |reg: u32| if linear { Some(regs.raw(reg)) } else { regs.get(reg) };
        let [graphics, dispatch] = if linear { self.facts.listed_bindless } else { self.facts.bindless };
        let base = if compute { dispatch } else { graphics }.or(linear.then_some(0))?;
        let word = cx.arg(1);
        let iova = if self.generation.is_64bit() {
            let reg = base.saturating_add((word >> 28) * 2);
            u64::from(read(reg)? & !3) | u64::from(read(reg.saturating_add(1))?) << 32
        } else {
            u64::from(read(base.saturating_add(word >> 28))? & !3)
        };
        Some(iova.wrapping_add(u64::from(word & 0xff_ffff) * 4))
    }
}
