//! The shaders that the command streams of an msm dump load: where they are, of which stage, how long.
//!
//! Never: shaders that no packet in the dump loads; nothing says where those begin.

use super::ir3;
use crate::decode::stretches;
use crate::device;
use std::collections::BTreeMap;
use std::io::{self, Write};
use unwedge_base::Generation;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::adreno::{AdrenoCase, hang};
use unwedge_stream::Flow;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoSink, AdrenoState, LoadState, Stage, StateSource, StateType, budget,
};

/// Dwords of a shader that are searched for its end.
const LONGEST: usize = 1 << 16;
/// Shaders that are listed.
const MOST: usize = 4096;

/// A shader of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedShader {
    /// Its address.
    pub iova: u64,
    /// The stage it is loaded for; `None` if the packet does not say.
    pub stage: Option<Stage>,
    /// Bytes up to its end; `None` where the dump does not hold it.
    pub bytes: Option<u64>,
}

/// Collects shaders by address.
pub(crate) struct ShaderSink {
    pub(crate) generation: Generation,
    pub(crate) shaders: BTreeMap<u64, LoadedShader>,
}

impl AdrenoSink for ShaderSink {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if let AdrenoEvent::LoadState(load) = event
            && let LoadState {
                ty: StateType::Shader, source: StateSource::Indirect, iova: Some(iova), ..
            } = load
            && self.shaders.len() < MOST
        {
            let generation = self.generation;
            self.shaders.entry(*iova).or_insert_with(|| LoadedShader {
                iova: *iova,
                stage: load.stage,
                bytes: load
                    .contents
                    .map(|code| 4 * ir3::length(code.take(LONGEST), 100 * generation.number()) as u64),
            });
        }
        Flow::Continue
    }
}

/// The shaders that a dump's command streams load, by address. None if its GPU is not known.
pub fn of_dump(dump: &Devcore<'_>, db: &Db) -> Vec<LoadedShader> {
    let Some(gpu) = device::gpu(dump, db) else { return Vec::new() };
    let case = AdrenoCase::new(dump, gpu);
    let mut sink = ShaderSink { generation: gpu.generation(), shaders: BTreeMap::new() };
    let mut budget = budget(&case.memory);
    for stretch in stretches(&case, hang::locate(&case).as_ref()) {
        stretch.walk(&case, &mut budget, &mut sink);
    }
    sink.shaders.into_values().collect()
}

/// A line for each shader, numbered from 0.
///
/// # Errors
/// When `out` does not take it.
pub fn text(shaders: &[LoadedShader], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:>6}  {:18}  {:12}  {:>8}", "number", "address", "stage", "bytes")?;
    for (number, shader) in shaders.iter().enumerate() {
        let stage = shader.stage.map_or("unknown", stage_name);
        let bytes = shader.bytes.map_or("not in the dump".to_owned(), |bytes| bytes.to_string());
        writeln!(out, "{number:>6}  {:#018x}  {stage:12}  {bytes:>8}", shader.iova)?;
    }
    Ok(())
}

pub(crate) fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Vertex => "vertex",
        Stage::TessControl => "tess control",
        Stage::TessEval => "tess eval",
        Stage::Geometry => "geometry",
        Stage::Fragment => "fragment",
        Stage::Compute => "compute",
    }
}
