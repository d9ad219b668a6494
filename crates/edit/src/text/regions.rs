//! What a submit's memory is made of: its command streams and shaders, found by walking it.
//!
//! Walked as hardware does and as listing tools do: either goes where the other does not. Never: what a packet's operands mean.

use std::collections::BTreeMap;
use unwedge_base::{Generation, Memory};
use unwedge_capture::rd::Submit;
use unwedge_hw::Gpu;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoSink, AdrenoState, AdrenoStreamKind, AdrenoWalker, StateSource, StateType,
    WalkerOptions,
};
use unwedge_stream::{Flow, budget};

/// Bytes of a unit in which the length of shaders is given, from a5xx on.
pub(super) const SHADER_UNIT: u64 = 128;

/// What a stretch of memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RegionKind {
    /// A command stream.
    Stream,
    /// A draw-state group's command stream.
    Group,
    /// A shader.
    Shader,
}

/// A stretch of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: RegionKind,
}

/// The streams and shaders of a submit, by address, none over another.
pub(super) fn find(gpu: Gpu<'_>, memory: &Memory, submit: Submit) -> Vec<Region> {
    let mut finder =
        RegionFinder { gpu, found: BTreeMap::new(), starts: BTreeMap::new(), lengths: BTreeMap::new() };
    if let Some(stream) = memory.dwords(submit.iova) {
        let stream = stream.take(submit.dwords as usize);
        finder.add(submit.iova, stream.len() as u64 * 4, RegionKind::Stream);
        for linear in [false, true] {
            let mut walker = AdrenoWalker::new(gpu, memory, WalkerOptions { linear, budget: budget(memory) });
            walker.walk(stream, Some(submit.iova), &mut finder);
        }
    }
    let mut regions: Vec<Region> = Vec::new();
    // What begins inside another is part of it, and what begins at the same address as a longer one too.
    for ((start, kind), end) in finder.found {
        let region = Region { start, end, kind: kind_of(kind) };
        match regions.last_mut() {
            // The length of a shader is what a register says, which may be of another shader.
            Some(last) if last.end > start && last.kind == RegionKind::Shader && last.start < start => {
                last.end = start;
                regions.push(region);
            }
            Some(last) if last.end > start => {}
            _ => regions.push(region),
        }
    }
    regions
}

/// Streams are looked at before shaders where both begin at an address.
fn rank(kind: RegionKind) -> u8 {
    match kind {
        RegionKind::Stream => 0,
        RegionKind::Group => 1,
        RegionKind::Shader => 2,
    }
}

fn kind_of(rank: u8) -> RegionKind {
    match rank {
        0 => RegionKind::Stream,
        1 => RegionKind::Group,
        _ => RegionKind::Shader,
    }
}

struct RegionFinder<'d> {
    gpu: Gpu<'d>,
    /// By start and rank of the kind: the end of the longest.
    found: BTreeMap<(u64, u8), u64>,
    /// Where the shader of a stage begins, and its length in units, by the names of their registers.
    starts: BTreeMap<&'d str, u64>,
    lengths: BTreeMap<&'d str, u64>,
}

impl<'d> RegionFinder<'d> {
    fn add(&mut self, start: u64, bytes: u64, kind: RegionKind) {
        if bytes > 0 && start != 0 && start.is_multiple_of(4) {
            let end = self.found.entry((start, rank(kind))).or_default();
            *end = (*end).max(start.saturating_add(bytes));
        }
    }

    /// `SP_VS_OBJ_START` and `SP_VS_INSTRLEN` belong together.
    fn register(&mut self, state: &AdrenoState, reg: u32) {
        let Some(found) = self.gpu.reg(reg) else { return };
        let name: &'d str = found.name();
        let registers = state.current_regs();
        if let Some((stage, _)) = name.split_once("_OBJ_START") {
            let low = reg.saturating_sub(u32::from(found.dword() == 1 || name.ends_with("_HI")));
            let iova = u64::from(registers.raw(low)) | u64::from(registers.raw(low.saturating_add(1))) << 32;
            self.starts.insert(stage, iova);
        } else if let Some((stage, _)) = name.split_once("_INSTRLEN") {
            self.lengths.insert(stage, registers.raw(reg).into());
        }
    }
}

impl AdrenoSink for RegionFinder<'_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let wide = self.gpu.generation() >= Generation::A5xx;
        match event {
            AdrenoEvent::Enter(stream) => {
                let kind = match stream.kind {
                    AdrenoStreamKind::Embedded => return Flow::Continue,
                    AdrenoStreamKind::Group { .. } => RegionKind::Group,
                    _ => RegionKind::Stream,
                };
                if let Some(iova) = stream.iova {
                    self.add(iova, stream.dwords.len() as u64 * 4, kind);
                }
            }
            AdrenoEvent::LoadState(load)
                if load.ty == StateType::Shader && load.source == StateSource::Indirect =>
            {
                let bytes = u64::from(load.units) * u64::from(load.ty.unit(self.gpu.generation())) * 4;
                if let Some(iova) = load.iova.filter(|_| wide) {
                    self.add(iova, bytes, RegionKind::Shader);
                }
            }
            AdrenoEvent::RegWrite(write) if wide => self.register(state, write.reg),
            AdrenoEvent::Draw(_) if wide => {
                let starts: Vec<_> = self.starts.iter().map(|(&stage, &iova)| (stage, iova)).collect();
                for (stage, iova) in starts {
                    let units = self.lengths.get(stage).copied().unwrap_or(0);
                    self.add(iova, units.saturating_mul(SHADER_UNIT), RegionKind::Shader);
                }
            }
            _ => {}
        }
        Flow::Continue
    }
}
