//! The shaders of a dump or of a submit: a list, and the code of each with the waves that are in it.
//!
//! Never: shaders that no packet, report or wave names.

use super::code::CODE_BYTES;
use super::{CodeSet, Row, RowLook, ShaderEntry};
use crate::asm::amd_shaders;
use crate::asm::shaders::{LoadedShader, ShaderSink, stage_name};
use crate::intel::IntelDump;
use crate::intel::streams::Unpacked;
use crate::plural::counted;
use crate::streams::Walkable;
use crate::words;
use std::collections::BTreeMap;
use unwedge_base::Generation;
use unwedge_capture::Dump;
use unwedge_hw::Db;
use unwedge_isa::eu::program;
use unwedge_postmortem::amd::shaders as amd_of;
use unwedge_postmortem::{CodeExcerpt, Fact, Report};
use unwedge_stream::intel::references::{Reference, ReferenceTarget, ReferenceWalk, Referenced};

/// Shaders of a list.
const MOST: usize = 4096;
/// Bytes of all kernels of a dump of Intel.
const KERNELS: usize = 8 << 20;

/// A shader that is listed, with what its code is made from.
pub(super) struct ListedShader {
    pub(super) entry: ShaderEntry,
    pub(super) source: ShaderSource,
}

/// Where the code of a shader comes from.
pub(super) enum ShaderSource {
    /// Dwords, and the instruction set.
    Words { words: Vec<u32>, address: u64, set: CodeSet },
    /// Lines that a report has.
    Rows(Vec<Row>),
    /// The file does not hold it.
    Missing(String),
}

impl ListedShader {
    pub(super) fn rows(&self) -> Vec<Row> {
        match &self.source {
            ShaderSource::Words { words, address, set } => set.rows(words, *address),
            ShaderSource::Rows(rows) => rows.clone(),
            ShaderSource::Missing(why) => vec![Row::of(why.clone(), RowLook::Loss)],
        }
    }
}

/// Those that a stream of Adreno loads.
pub(super) fn of_adreno(stream: &Walkable<'_>, generation: Generation, sink: &mut ShaderSink) {
    if let Some(events) = stream.events {
        sink.generation = generation;
        events(sink);
    }
}

/// What [`of_adreno`] found. `words` gives the dwords at an address.
pub(super) fn loaded(sink: ShaderSink, words: &dyn Fn(u64, usize) -> Option<Vec<u32>>) -> Vec<ListedShader> {
    let generation = sink.generation;
    let listed = |shader: LoadedShader| {
        let stage = shader.stage.map_or("unknown stage", stage_name);
        let length =
            shader.bytes.and_then(|bytes| usize::try_from(bytes).ok()).map(|bytes| bytes.min(CODE_BYTES));
        let held = length.and_then(|bytes| words(shader.iova, bytes / 4));
        let size = match shader.bytes {
            Some(bytes) => counted(bytes, "byte", "bytes").to_string(),
            None => "not in the file".to_owned(),
        };
        let source = match held {
            Some(words) => ShaderSource::Words { words, address: shader.iova, set: CodeSet::Ir3(generation) },
            None => ShaderSource::Missing("the file does not hold the code".to_owned()),
        };
        let title = format!("{stage:12}  {:#018x}  {size}", shader.iova);
        ListedShader { entry: ShaderEntry { title, marked: false }, source }
    };
    sink.shaders.into_values().map(listed).collect()
}

/// The code that a report shows, with its waves.
pub(super) fn of_report(report: &Report) -> Vec<ListedShader> {
    report.code.iter().take(MOST).map(excerpt).collect()
}

fn excerpt(code: &CodeExcerpt) -> ListedShader {
    let waves = counted(code.waves as u64, "wave", "waves");
    let title = format!("{}, {waves} (from {})", words::code_place(&code.place), code.source);
    let mut rows: Vec<Row> = Vec::new();
    for wait in &code.waits {
        let waves = counted(wait.waves as u64, "wave waits", "waves wait");
        rows.push(Row::of(
            format!("{waves} until {} is at most {}", wait.counter, wait.until),
            RowLook::Heading,
        ));
    }
    for line in &code.lines {
        let here = line.waves > 0 || line.iova.is_some() && line.iova == code.iova;
        let count = if line.waves > 0 { line.waves.to_string() } else { String::new() };
        let place = match (line.offset, line.iova) {
            (Some(offset), _) => format!("+{offset:#06x}"),
            (None, Some(iova)) => format!("{iova:#x}"),
            (None, None) => String::new(),
        };
        let mark = if here { ">" } else { " " };
        let look = if here { RowLook::Stop } else { RowLook::Plain };
        rows.push(Row::of(format!("{mark}{count:>4} {place:>10}  {}", line.text), look));
    }
    ListedShader { entry: ShaderEntry { title, marked: code.waves > 0 }, source: ShaderSource::Rows(rows) }
}

/// The shaders of a dump of AMD; none of others. `db` is that of [`Db::amd`].
pub(super) fn of_amd(dump: &Dump<'_>, db: &Db) -> Vec<ListedShader> {
    let Some(found) = amd_of(dump, db) else { return Vec::new() };
    let listed = |shader: unwedge_postmortem::amd::AmdShader| {
        let at = shader.address.map(|iova| format!("  {iova:#018x}")).unwrap_or_default();
        let waves = match shader.waves {
            0 => String::new(),
            waves => format!("  {}", counted(waves as u64, "wave", "waves")),
        };
        let bytes = counted(4 * shader.words.len() as u64, "byte", "bytes");
        let part = if shader.whole || shader.words.is_empty() { "" } else { " (a part)" };
        let title = format!("{:24}{at}  {bytes}{part}{waves}", amd_shaders::name(&shader));
        let marked = shader.waves > 0;
        let source = match found.gpu {
            _ if shader.words.is_empty() => {
                ShaderSource::Missing("the dump does not hold the code".to_owned())
            }
            None => ShaderSource::Missing("the dump does not tell its GPU: name it with --chip".to_owned()),
            Some(gpu) => {
                let (set, address) =
                    (CodeSet::Amd(amd_shaders::gpu_of(&shader, gpu)), shader.address.unwrap_or(0));
                ShaderSource::Words { words: shader.words, address, set }
            }
        };
        ListedShader { entry: ShaderEntry { title, marked }, source }
    };
    found.shaders.into_iter().take(MOST).map(listed).collect()
}

/// The kernels that the commands of a dump of Intel point to.
pub(super) fn of_intel(dump: IntelDump<'_, '_>, limit: usize) -> Vec<ListedShader> {
    let Some(mut unpacked) = Unpacked::of(dump, limit) else { return Vec::new() };
    let mut kernels = IntelKernels { found: BTreeMap::new(), left: KERNELS };
    for engine in 0..dump.engines().len() {
        // The visitor never fails.
        let _ = unpacked.each(engine, &mut |stream| {
            let mut walk = ReferenceWalk::new(stream.decoder.gpu, stream.spaces);
            for event in stream.events() {
                for reference in walk.see(&event) {
                    kernels.see(&walk, &reference, stream.eu);
                }
            }
            Ok(())
        });
    }
    kernels.found.into_values().collect()
}

/// Kernels by their addresses.
struct IntelKernels {
    found: BTreeMap<u64, ListedShader>,
    /// Bytes that may still be kept.
    left: usize,
}

impl IntelKernels {
    fn see(
        &mut self,
        walk: &ReferenceWalk<'_>,
        reference: &Reference,
        eu: Option<unwedge_isa::eu::Platform>,
    ) {
        match walk.resolve(reference) {
            Referenced::Kernel(words) => self.kernel(reference, Some(words), eu),
            Referenced::Absent => self.kernel(reference, None, eu),
            Referenced::States(states) => {
                // The descriptors of compute work name its kernels.
                for inner in states.iter().flat_map(|state| walk.of_state(state)) {
                    match walk.resolve(&inner) {
                        Referenced::Kernel(words) => self.kernel(&inner, Some(words), eu),
                        Referenced::Absent => self.kernel(&inner, None, eu),
                        _ => {}
                    }
                }
            }
            Referenced::Unknown | Referenced::Table(..) | Referenced::Held => {}
        }
    }

    fn kernel(
        &mut self,
        reference: &Reference,
        words: Option<&[u32]>,
        eu: Option<unwedge_isa::eu::Platform>,
    ) {
        let (ReferenceTarget::Kernel { stage, .. }, Some(address)) = (reference.target, reference.address)
        else {
            return;
        };
        if self.found.contains_key(&address) || self.found.len() >= MOST || self.left == 0 {
            return;
        }
        let (size, source) = match (words, eu) {
            (None, _) => {
                let why = "the dump does not hold the code".to_owned();
                ("not in the dump".to_owned(), ShaderSource::Missing(why))
            }
            (Some(_), None) => {
                let why = "the instruction set of this GPU is not known".to_owned();
                (String::new(), ShaderSource::Missing(why))
            }
            (Some(words), Some(platform)) => {
                let (bytes, extent) = program::kernel_in(platform, words, CODE_BYTES.min(self.left));
                self.left = self.left.saturating_sub(extent.length.max(1));
                let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
                let size = counted(extent.length as u64, "byte", "bytes").to_string();
                (size, ShaderSource::Words { words, address, set: CodeSet::Eu(platform) })
            }
        };
        let title = format!("{:16}  {address:#018x}  {size}", stage.name());
        self.found.insert(address, ListedShader { entry: ShaderEntry { title, marked: false }, source });
    }
}

/// Marks the instructions that evidence of a report is about, and their shaders.
pub(super) fn mark(listed: &mut [ListedShader], report: &Report) {
    let evidence = report.findings.iter().flat_map(|finding| &finding.evidence);
    let marked = evidence
        .filter(|evidence| matches!(&evidence.fact, Fact::Code { place, .. } if place.flag("marked")));
    for iova in marked.filter_map(|evidence| evidence.iova) {
        for shader in &mut *listed {
            if let ShaderSource::Words { words, address, .. } = &shader.source {
                let offset = iova.checked_sub(*address);
                shader.entry.marked |= offset.is_some_and(|offset| offset / 4 < words.len() as u64);
            }
        }
    }
}
