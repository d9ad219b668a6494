//! The shaders of a dump of an AMD GPU: what a report lists, what the streams start, what umr read around waves; each with
//! its code, as far as the dump holds it.
//!
//! Never: what is wrong in the code for the hang; that is `faults`.

use super::case::{AmdCase, engine_of};
use super::code::Decoder;
use super::evidence::program_place;
use super::faults::{CodeRange, code_ranges, is_about_shape};
use super::identity::identity_of_umr;
use super::stream::Walked;
use super::waves;
use crate::args::{Arg, Args};
use crate::head::GpuIdentity;
use crate::signature::ShaderHash;
use unwedge_capture::Dump;
use unwedge_check::amdgcn as check;
use unwedge_hw::Db;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::{Gpu, codec, listing};
use unwedge_stream::amd::Program;

/// Shaders that are listed.
const MOST: usize = 4096;

/// The shaders of a dump.
pub struct AmdShaders {
    /// What their code is for; `None` where the dump does not tell, or its instructions are not known.
    pub gpu: Option<Gpu>,
    /// The GPU follows from registers of waves, which several generations have.
    pub guessed: bool,
    /// Those that a report lists first, then those that streams start, then code around waves.
    pub shaders: Vec<AmdShader>,
}

/// A shader, or a part of one.
#[derive(Clone, Debug)]
pub struct AmdShader {
    /// Where it is: as [`crate::CodeExcerpt::place`].
    pub place: Args,
    /// Address of the first dword of `words`.
    pub address: Option<u64>,
    /// Its code; empty where the dump does not hold it.
    pub words: Vec<u32>,
    /// The code is there up to its end.
    pub whole: bool,
    /// Where it was read: `pipeline.log`, `waves`, the name of a buffer; empty for none.
    pub section: String,
    /// Waves that are in it.
    pub waves: usize,
    /// Lanes of its waves: 64 or not; `None` where nothing says.
    pub wave64: Option<bool>,
}

/// The shaders of a dump; `None` for one that is not of AMD. `db` is that of [`Db::amd`].
pub fn shaders(dump: &Dump<'_>, db: &Db) -> Option<AmdShaders> {
    let case = match dump {
        Dump::Amdgpu(dump) => AmdCase::of_dump(dump, db),
        Dump::Radv(report) => AmdCase::of_radv(report, db),
        Dump::Umr(text) => AmdCase::of_umr(text, db),
        Dump::Msm(_) | Dump::I915(_) | Dump::Xe(_) => return None,
    };
    let guessed = match dump {
        Dump::Umr(text) => matches!(identity_of_umr(text, db), GpuIdentity::Amd { by_registers: true, .. }),
        _ => false,
    };
    let programs = programs(&case);
    let ranges = code_ranges(&case, Decoder(case.gpu), &waves::stands(&case), &programs);
    let absent = |program: &&Program| {
        let address = program.address();
        !ranges.iter().any(|range| range.base.is_some() && range.base == address)
    };
    let absent: Vec<AmdShader> = programs.iter().filter(absent).map(AmdShader::absent).collect();
    let mut shaders: Vec<AmdShader> =
        ranges.into_iter().map(|range| AmdShader::of(range, case.gpu)).collect();
    shaders.extend(absent);
    shaders.truncate(MOST);
    Some(AmdShaders { gpu: case.gpu, guessed, shaders })
}

/// Shaders that registers point to where streams start work, each once.
fn programs(case: &AmdCase<'_>) -> Vec<Program> {
    let mut found: Vec<Program> = Vec::new();
    let mut add = |walked: Walked| {
        for program in walked.packets.into_iter().flat_map(|packet| packet.programs) {
            if found.len() < MOST && !found.contains(&program) {
                found.push(program);
            }
        }
    };
    for ring in &case.rings {
        if let Some(engine) = engine_of(ring.name) {
            add(Walked::ring(case, ring, engine));
        }
    }
    if let Some(engine) = case.loose_engine() {
        add(Walked::buffers(case, engine));
    }
    found
}

/// A hash of the code of the shader that most waves are in; `None` where no wave is in a shader, or the dump does not hold all of it.
pub(super) fn hash_of_waves(case: &AmdCase<'_>, ranges: &[CodeRange]) -> Option<ShaderHash> {
    // `max_by_key` takes the last of equal ones; the first is wanted.
    let most = ranges.iter().rev().max_by_key(|range| range.waves.len())?;
    if most.waves.is_empty() || most.place.flag("part") {
        return None;
    }
    let gpu = case.gpu?.with_wave64(most.wave64.unwrap_or(true));
    let end = length(&most.words, &gpu)?;
    ShaderHash::of(most.words.iter().copied().take(end))
}

/// Dwords up to the end of a program: the first `s_endpgm` that no branch before it leads past. `None` where there is none,
/// or a dword does not decode.
fn length(words: &[u32], gpu: &Gpu) -> Option<usize> {
    let (mut at, mut reached) = (0, 0);
    loop {
        let decoded = codec::decode_executed(words.get(at..)?, gpu)?;
        let dwords = usize::from(decoded.dwords).max(1);
        reached = reached.max(listing::target(&decoded.inst, at, dwords).unwrap_or(0));
        at += dwords;
        if decoded.inst.row().role == Role::End && reached < at {
            return Some(at);
        }
    }
}

impl AmdShader {
    fn of(range: CodeRange, gpu: Option<Gpu>) -> AmdShader {
        let CodeRange { place, base, mut words, mut whole, section, waves, wave64, .. } = range;
        let part = place.flag("part");
        if !whole && !part {
            // A buffer goes on after the shader.
            let gpu = gpu.map(|gpu| gpu.with_wave64(wave64.unwrap_or(true)));
            if let Some(end) = gpu.and_then(|gpu| length(&words, &gpu)) {
                words.truncate(end);
                whole = true;
            }
        }
        AmdShader { place, address: base, words, whole, section, waves: waves.len(), wave64 }
    }

    /// A shader whose code the dump does not hold.
    fn absent(program: &Program) -> AmdShader {
        let place = match program.address() {
            Some(address) => program_place(Some(program.stage.name()), address),
            None => Args::new().with("stage", Arg::name(program.stage.name())),
        };
        AmdShader {
            place,
            address: program.address(),
            words: Vec::new(),
            whole: false,
            section: String::new(),
            waves: 0,
            wave64: None,
        }
    }

    /// The bytes of its code.
    pub fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// What is wrong in its code. Of a part of a shader nothing is said of its end.
    pub fn check(&self, gpu: &Gpu) -> check::CheckReport {
        let mut report = check::check_words(&self.words, gpu, &check::CheckOptions::default());
        if !self.whole {
            report.findings.retain(|finding| !is_about_shape(finding.rule));
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_at_the_last_end_that_is_reached() {
        let gpu = Gpu::new("gfx1030").unwrap();
        let (nop, end, code_end) = (0xbf80_0000, 0xbf81_0000, 0xbf9f_0000);
        // s_cbranch_scc0 +2: past the first end.
        let branch = 0xbf84_0002;
        assert_eq!(length(&[nop, end, code_end, code_end], &gpu), Some(2));
        assert_eq!(length(&[branch, nop, end, nop, end, nop], &gpu), Some(5));
        assert_eq!(length(&[nop, nop], &gpu), None);
        assert_eq!(length(&[], &gpu), None);
    }
}
