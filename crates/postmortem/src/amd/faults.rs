//! Code that waves stand in, or that work which hangs starts, and what it does that the GPU does not do as it is written.
//!
//! The rules are those of `check`. Here is which code a dump holds, how much of it, and how near to waves something wrong in it
//! is. Code that is not there from its start is read from the first dword from which an instruction starts at a wave; where its
//! end is not there, nothing is said of its shape.

use super::case::{AmdCase, wave_field};
use super::code::Decoder;
use super::evidence::{at_offset, evidence, listed_place, program_place};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use std::collections::BTreeSet;
use unwedge_capture::radv::{MemberKind, RadvShader};
use unwedge_capture::umr::{CodeWord, UmrShader, UmrWave};
use unwedge_check::amdgcn as check;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_stream::amd::Program;

/// Dwords that are checked of one piece of code.
const MOST_DWORDS: usize = 1 << 14;
/// Pieces that are checked.
const MOST_PIECES: usize = 8;
/// Bytes around a wave within which something wrong bears on it.
const NEAR: u64 = 256;
/// Findings that are told of one piece.
const MOST_FAULTS: usize = 3;

/// Where a wave stands.
#[derive(Clone, Copy)]
pub(super) struct Stands<'c> {
    pub(super) pc: Option<u64>,
    pub(super) exec: Option<u64>,
    pub(super) umr: Option<&'c UmrWave<'c>>,
}

/// Code that a dump holds.
pub(super) struct CodeRange {
    /// Where its first dword is.
    pub(super) place: Args,
    /// Address of the first dword.
    pub(super) base: Option<u64>,
    pub(super) words: Vec<u32>,
    pub(super) whole: bool,
    pub(super) section: String,
    /// Bytes from the first dword to each wave in it.
    pub(super) waves: Vec<u64>,
    /// Lanes of its waves; `None`: not known.
    pub(super) wave64: Option<bool>,
    /// The pipeline and the SPIR-V that a report names for it.
    pub(super) origin: Args,
}

impl CodeRange {
    fn holds(&self, pc: u64) -> Option<u64> {
        let offset = pc.checked_sub(self.base?)?;
        (offset < 4 * self.words.len() as u64).then_some(offset)
    }

    fn place(&self, at: u64) -> Args {
        at_offset(self.place.clone(), at)
    }

    /// The instruction at a place, as data of a finding.
    fn instruction(&self, at: u64, decoder: Decoder) -> (Option<String>, Vec<u32>) {
        let words = self.words.get((at / 4) as usize..).unwrap_or_default();
        let (text, size) = decoder.one(self.is_wave64(), words).unzip();
        (text, words.iter().copied().take(size.unwrap_or(1)).collect())
    }

    fn evidence(&self, at: u64, decoder: Decoder) -> Evidence {
        let (text, words) = self.instruction(at, decoder);
        let fact = Fact::Code { place: self.place(at), words, text };
        let iova = self.base.and_then(|base| base.checked_add(at));
        Evidence { iova, ..evidence(&*self.section, fact) }
    }

    fn is_wave64(&self) -> bool {
        self.wave64.unwrap_or(true)
    }
}

/// What is wrong in the code of waves and of work that hangs.
pub(super) fn findings(case: &AmdCase<'_>, decoder: Decoder, pieces: &[CodeRange]) -> Vec<Finding> {
    let Some(gpu) = case.gpu else { return Vec::new() };
    // A bound pipeline has shaders that no wave runs.
    let entered = pieces.iter().any(|piece| !piece.waves.is_empty());
    let pieces = pieces.iter().filter(|piece| !entered || !piece.waves.is_empty());
    pieces.take(MOST_PIECES).flat_map(|piece| of_piece(piece, gpu, decoder)).collect()
}

/// The code that a dump holds: of shaders that a report lists, of programs, and around waves.
pub(super) fn code_ranges(
    case: &AmdCase<'_>,
    decoder: Decoder,
    waves: &[Stands<'_>],
    programs: &[Program],
) -> Vec<CodeRange> {
    let mut pieces: Vec<CodeRange> = Vec::new();
    for shader in &case.shaders {
        // RADV lists the shader of an exception a second time, without its name.
        if named_twin(case, shader).is_none() {
            pieces.extend(listed(case, shader));
        }
    }
    let mut known: BTreeSet<Option<u64>> = pieces.iter().map(|piece| piece.base).collect();
    for piece in case.umr_shaders.iter().filter_map(|shader| printed(shader)) {
        if known.insert(piece.base) {
            pieces.push(piece);
        }
    }
    for piece in programs.iter().filter_map(|program| started(case, program)) {
        if !pieces.iter().any(|known| known.base.is_some() && known.base == piece.base) {
            pieces.push(piece);
        }
    }
    for wave in waves {
        let Some(pc) = wave.pc else { continue };
        let known = pieces.iter().position(|piece| piece.holds(pc).is_some());
        let at = known.or_else(|| {
            let piece = beside(wave, decoder).or_else(|| around(case, wave, decoder))?;
            pieces.push(piece);
            Some(pieces.len() - 1)
        });
        let Some(piece) = at.and_then(|at| pieces.get_mut(at)) else { continue };
        if let Some(offset) = piece.holds(pc) {
            piece.waves.push(offset);
            piece.wave64 = piece.wave64.or(lanes(case, wave));
        }
    }
    if case.gpu.is_some_and(|gpu| gpu.generation() < Gfx::Gfx10) {
        pieces.iter_mut().for_each(|piece| piece.wave64 = Some(true));
    }
    pieces
}

/// Rules about the shape of code, which say nothing where its end is not there.
const SHAPE: [check::Rule; 6] = [
    check::Rule::NotInstruction,
    check::Rule::IntoMiddle,
    check::Rule::Outside,
    check::Rule::RunsOff,
    check::Rule::NoEnd,
    check::Rule::DeallocVgprsNop,
];

/// Whether a rule is about the shape of code.
pub(super) fn is_about_shape(rule: check::Rule) -> bool {
    SHAPE.contains(&rule)
}

/// What is wrong with a piece if its waves have this many lanes, in the order of addresses.
fn wrong(piece: &CodeRange, gpu: Gpu, wave64: bool) -> Vec<check::CheckFinding> {
    let report = check::check_words(&piece.words, &gpu.with_wave64(wave64), &check::CheckOptions::default());
    let wrong = |f: &check::CheckFinding| {
        f.level == check::Certainty::Error && (piece.whole || !is_about_shape(f.rule))
    };
    report.findings.into_iter().filter(wrong).collect()
}

/// What is wrong in a piece, the nearest to its waves first.
fn of_piece(piece: &CodeRange, gpu: Gpu, decoder: Decoder) -> Vec<Finding> {
    let mut faults = wrong(piece, gpu, piece.is_wave64());
    if piece.wave64.is_none() {
        // What both sizes of waves break.
        let same = |f: &check::CheckFinding| (f.at, f.first, f.rule, f.need, f.regs);
        let other = wrong(piece, gpu, false);
        faults.retain(|fault| other.iter().any(|other| same(other) == same(fault)));
    }
    let distance = |fault: &check::CheckFinding| {
        let places = || [Some(fault.at), fault.first].into_iter().flatten().map(u64::from);
        piece.waves.iter().flat_map(|wave| places().map(|at| at.abs_diff(*wave))).min()
    };
    faults.sort_by_key(|fault| distance(fault).unwrap_or(u64::MAX));
    let more = faults.len().saturating_sub(MOST_FAULTS);
    let mut out: Vec<Finding> = Vec::new();
    for fault in faults.iter().take(MOST_FAULTS) {
        let near = distance(fault).is_some_and(|distance| distance <= NEAR);
        out.push(finding(piece, fault, near, decoder));
    }
    if more > 0
        && let Some(last) = out.last_mut()
    {
        last.args = std::mem::take(&mut last.args).with("more", Arg::Number(more as u64));
    }
    out
}

fn finding(piece: &CodeRange, fault: &check::CheckFinding, near: bool, decoder: Decoder) -> Finding {
    let rule = if fault.need.is_some() { Rule::CodeMissesWait } else { Rule::CodeBreaksRule };
    let trust = if near { Trust::Likely } else { Trust::Possible };
    let at = u64::from(fault.at);
    let first = fault.first.map(u64::from);
    let shader = Subject::Shader { name: piece.place.text("shader").map(str::to_owned), iova: piece.base };
    Finding::new(rule, trust, shader)
        .with("check", Arg::name(fault.rule.info().name))
        .with("place", piece.place(at))
        .with_some("instruction", piece.instruction(at, decoder).0.map(Arg::Text))
        .with_some("registers", fault.regs.map(|(reg, count)| Arg::name(reg.run_name(count))))
        .with_some("counter", fault.need.map(|need| Arg::name(need.counter)))
        .with_some("until", fault.need.map(|need| Arg::Number(need.value.into())))
        .with_some("missing", (fault.missing > 0).then_some(Arg::Number(fault.missing.into())))
        .with_some("first", first.map(|first| piece.place(first)))
        .with_some(
            "first_instruction",
            first.and_then(|first| piece.instruction(first, decoder).0).map(Arg::Text),
        )
        .with_some("origin", (!piece.origin.is_empty()).then(|| piece.origin.clone()))
        .with("near", near)
        .with("waves", Arg::Number(piece.waves.len() as u64))
        .seen([Some(at), first].into_iter().flatten().map(|at| piece.evidence(at, decoder)))
}

/// Lanes of a wave, where something says: 64 or not.
fn lanes(case: &AmdCase<'_>, wave: &Stands<'_>) -> Option<bool> {
    if wave.exec.is_some_and(|exec| exec >> 32 != 0) {
        return Some(true);
    }
    Some(wave_field(case, wave.umr?, "IB_STS2", "WAVE64")? == 1)
}

/// A shader that a report lists, as far as it is without gaps.
fn listed(case: &AmdCase<'_>, shader: &RadvShader<'_>) -> Option<CodeRange> {
    let mut words = Vec::new();
    let mut whole = true;
    for instruction in &shader.code {
        whole = instruction.offset == 4 * words.len() as u64 && words.len() <= MOST_DWORDS;
        if !whole {
            break;
        }
        words.extend_from_slice(&instruction.words);
    }
    let section = "pipeline.log".to_owned();
    // Without waves the pipeline does not say where its shaders are; an exception does.
    let twin = || {
        case.shaders
            .iter()
            .find(|other| named_twin(case, other).is_some_and(|named| std::ptr::eq(named, shader)))
    };
    let base = shader.address().or_else(|| twin().and_then(|other| other.address()));
    (!words.is_empty()).then(|| CodeRange {
        place: listed_place(&shader.name, base),
        base,
        words,
        whole,
        section,
        waves: Vec::new(),
        wave64: None,
        origin: origin(case, shader),
    })
}

/// The shader of the bound pipeline that is listed again without a name: the one at its address, or the only one with its
/// code.
pub(super) fn named_twin<'c>(case: &AmdCase<'c>, shader: &RadvShader<'_>) -> Option<&'c RadvShader<'c>> {
    if !shader.name.is_empty() {
        return None;
    }
    let words = |shader: &RadvShader<'_>| -> Vec<u32> {
        shader.code.iter().flat_map(|i| i.words.iter().copied()).take(MOST_DWORDS).collect()
    };
    let code = words(shader);
    let named =
        || case.shaders.iter().copied().filter(|other| !other.name.is_empty() && words(other) == code);
    let address = shader.address();
    if let Some(at_address) = named().find(|other| other.address().is_some() && other.address() == address) {
        return Some(at_address);
    }
    let mut others = named().filter(|other| other.address().is_none() || address.is_none());
    others.next().filter(|_| others.next().is_none() && !code.is_empty())
}

/// `pipeline`: the hash of the bound pipeline; `spirv`: the file with the shader's module, where RADV left it.
pub(super) fn origin(case: &AmdCase<'_>, shader: &RadvShader<'_>) -> Args {
    let Some(report) = case.radv else { return Args::new() };
    let hash = report.pipeline.as_ref().and_then(|pipeline| pipeline.hash.as_deref());
    let file = shader.spirv.as_deref().map(|hash| format!("{hash}.spv"));
    let there = |file: &String| {
        let is = |name: &str| name == file || name.ends_with(&format!("/{file}"));
        report.members.iter().any(|member| member.kind == Some(MemberKind::Spirv) && is(&member.name))
    };
    Args::new()
        .with_some("pipeline", hash.map(|hash| Arg::Text(hash.to_owned())))
        .with_some("spirv", file.filter(there).map(Arg::Text))
}

/// A shader of the work that hangs, where memory holds it.
fn started(case: &AmdCase<'_>, program: &Program) -> Option<CodeRange> {
    let address = program.address()?;
    let words = memory(case, address);
    let section = case.memory.find(address).map(|buffer| buffer.name.clone()).unwrap_or_default();
    (!words.is_empty()).then(|| CodeRange {
        place: program_place(Some(program.stage.name()), address),
        base: Some(address),
        words,
        whole: false,
        section: if section.is_empty() { "memory".to_owned() } else { section },
        waves: Vec::new(),
        wave64: None,
        origin: Args::new(),
    })
}

fn memory(case: &AmdCase<'_>, address: u64) -> Vec<u32> {
    let Some(dwords) = case.memory.find(address & !3).and_then(|buffer| buffer.dwords_at(address & !3))
    else {
        return Vec::new();
    };
    (0..MOST_DWORDS).map_while(|at| dwords.get(at)).collect()
}

/// A shader that umr listed: its words from the first on, as far as none is missing.
fn printed(shader: &UmrShader<'_>) -> Option<CodeRange> {
    let code = shader.code.iter().take(MOST_DWORDS);
    let follows = |(at, word): (u64, &CodeWord<'_>)| (word.offset == 4 * at).then_some(word.word);
    let words: Vec<u32> = (0..).zip(code).map_while(follows).collect();
    let size = shader.size.map(|size| size as usize / 4);
    (!words.is_empty()).then(|| CodeRange {
        place: program_place(None, shader.address),
        base: Some(shader.address),
        whole: size.is_some_and(|size| words.len() >= size),
        words,
        section: "umr".to_owned(),
        waves: Vec::new(),
        wave64: None,
        origin: Args::new(),
    })
}

/// What umr read around a wave.
fn beside(wave: &Stands<'_>, decoder: Decoder) -> Option<CodeRange> {
    let code = &wave.umr?.code;
    let pc = wave.pc? & !3;
    let at = code.iter().position(|word| word.address() == pc)?;
    let follows = |pair: &[CodeWord<'_>]| pair[0].address().checked_add(4) == Some(pair[1].address());
    let before = code[..=at].windows(2).rev().take_while(|pair| follows(pair)).count();
    let behind = code[at..].windows(2).take_while(|pair| follows(pair)).count();
    let run = code.get(at - before..=at + behind)?;
    let first = run.first()?.address();
    let words: Vec<u32> = run.iter().take(MOST_DWORDS).map(|word| word.word).collect();
    let shader = wave.umr?.shader.filter(|shader| shader.address == first);
    match shader {
        Some(shader) => {
            let dwords = shader.size as usize / 4;
            let whole = dwords > 0 && words.len() >= dwords;
            let words = if whole { words.get(..dwords)?.to_vec() } else { words };
            let place = program_place(None, first);
            let section = "waves".to_owned();
            let (waves, wave64) = (Vec::new(), None);
            let origin = Args::new();
            Some(CodeRange { place, base: Some(first), words, whole, section, waves, wave64, origin })
        }
        None => part(&words, first, before, "waves".to_owned(), decoder),
    }
}

/// Dwords in front of a place in memory from which code is read.
const BEFORE: usize = 64;

/// What memory holds around a wave.
fn around(case: &AmdCase<'_>, wave: &Stands<'_>, decoder: Decoder) -> Option<CodeRange> {
    let pc = wave.pc? & !3;
    let buffer = case.memory.find(pc)?;
    let before = usize::try_from(pc.checked_sub(buffer.iova)? / 4).ok()?.min(BEFORE);
    let first = pc.checked_sub(4 * before as u64)?;
    part(&memory(case, first), first, before, "memory".to_owned(), decoder)
}

/// Code of which the start is not there: from where an instruction starts at dword `at`.
fn part(words: &[u32], first: u64, at: usize, section: String, decoder: Decoder) -> Option<CodeRange> {
    let start = decoder.start_before(words, at)?;
    let base = first.checked_add(4 * start as u64)?;
    Some(CodeRange {
        place: Args::new().with("part", true).with("start", Arg::Address(base)),
        base: Some(base),
        words: words.get(start..)?.to_vec(),
        whole: false,
        section,
        waves: Vec::new(),
        wave64: None,
        origin: Args::new(),
    })
}
