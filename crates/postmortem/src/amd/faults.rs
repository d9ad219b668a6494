//! Code that waves stand in, or that work which hangs starts, and what it does that the GPU does not do as it is written.
//!
//! The rules are a [`Checker`]'s. Here is which code a dump holds, how much of it, and how near to waves something wrong in it
//! is. Code that is not there from its start is read from the first dword from which an instruction starts at a wave; where its
//! end is not there, nothing is said of its shape.

use super::case::{Case, wave_field};
use super::code::Decoder;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_capture::amdgpu::radv::Shader;
use unwedge_capture::amdgpu::umr::Wave;
use unwedge_hw::amd::Gfx;
use unwedge_stream::amd::Program;

/// Checks code without running it.
pub trait Checker {
    /// What is wrong with code that is entered at its first dword, in the order of addresses. `whole`: its last dword is there,
    /// too.
    fn faults(&self, gfx: Gfx, wave64: bool, words: &[u32], whole: bool) -> Vec<CodeFault>;
}

/// Something wrong in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFault {
    /// The instruction at which it shows, in bytes from the start of the code.
    pub at: u64,
    /// The instruction that made it so.
    pub first: Option<u64>,
    /// Name of the rule that is broken.
    pub rule: &'static str,
    /// What is wrong, of the instruction at `at`: `uses v1 before vmcnt(0)`.
    pub what: String,
    /// What helps; may be empty.
    pub cure: &'static str,
}

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
    pub(super) umr: Option<&'c Wave<'c>>,
}

/// Code that a dump holds.
struct Piece {
    /// What its first dword is called: a shader, or an address.
    name: String,
    /// Address of the first dword.
    base: Option<u64>,
    words: Vec<u32>,
    whole: bool,
    section: String,
    /// Bytes from the first dword to each wave in it.
    waves: Vec<u64>,
    /// Lanes of its waves; `None`: not known.
    wave64: Option<bool>,
}

impl Piece {
    fn holds(&self, pc: u64) -> Option<u64> {
        let offset = pc.checked_sub(self.base?)?;
        (offset < 4 * self.words.len() as u64).then_some(offset)
    }

    fn place(&self, at: u64) -> String {
        format!("{}+{at:#x}", self.name)
    }
}

/// What is wrong in the code of waves and of work that hangs.
pub(super) fn findings(
    case: &Case<'_>,
    decoder: Decoder<'_>,
    checker: Option<&dyn Checker>,
    waves: &[Stands<'_>],
    programs: &[Program],
) -> Vec<Finding> {
    let (Some(checker), Some(gfx)) = (checker, decoder.gfx) else { return Vec::new() };
    let mut pieces: Vec<Piece> = case.shaders.iter().filter_map(|shader| listed(shader)).collect();
    pieces.extend(programs.iter().filter_map(|program| started(case, program)));
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
    // A bound pipeline has shaders that no wave runs.
    if pieces.iter().any(|piece| !piece.waves.is_empty()) {
        pieces.retain(|piece| !piece.waves.is_empty());
    }
    pieces.iter().take(MOST_PIECES).flat_map(|piece| told(piece, gfx, decoder, checker)).collect()
}

/// What is wrong in a piece, the nearest to its waves first.
fn told(piece: &Piece, gfx: Gfx, decoder: Decoder<'_>, checker: &dyn Checker) -> Vec<Finding> {
    let faults_of = |wave64| checker.faults(gfx, wave64, &piece.words, piece.whole);
    let known = if gfx < Gfx::Gfx10 { Some(true) } else { piece.wave64 };
    let wave64 = known.unwrap_or(true);
    let mut faults = faults_of(wave64);
    if known.is_none() {
        // What both sizes of waves break.
        let other = faults_of(false);
        faults.retain(|fault| other.contains(fault));
    }
    let distance = |fault: &CodeFault| {
        let places = || [Some(fault.at), fault.first].into_iter().flatten();
        piece.waves.iter().flat_map(|wave| places().map(|at| at.abs_diff(*wave))).min()
    };
    faults.sort_by_key(|fault| distance(fault).unwrap_or(u64::MAX));
    let more = faults.len().saturating_sub(MOST_FAULTS);
    let text = |at: u64| {
        let words = piece.words.get((at / 4) as usize..).unwrap_or_default();
        decoder.one(wave64, words).map_or("no instruction".to_owned(), |(text, _)| text)
    };
    let seen = |at: u64| {
        let words = piece.words.get((at / 4) as usize..).unwrap_or_default();
        let size = decoder.one(wave64, words).map_or(1, |(_, size)| size);
        let words: String = words.iter().take(size).map(|word| format!("{word:08x} ")).collect();
        Evidence {
            section: piece.section.clone(),
            what: format!("{}: {words} {}", piece.place(at), text(at)),
            iova: piece.base.and_then(|base| base.checked_add(at)),
            span: None,
        }
    };
    let mut out = Vec::new();
    for fault in faults.iter().take(MOST_FAULTS) {
        let near = distance(fault).is_some_and(|distance| distance <= NEAR);
        let mut why = Vec::new();
        if let Some(first) = fault.first {
            why.push(format!("{} at {} made it so", text(first), piece.place(first)));
        }
        why.push(match (near, piece.waves.len()) {
            (true, 1) => "a wave stands near".to_owned(),
            (true, n) => format!("{n} waves stand in this code, the nearest near"),
            (false, 0) => "whether a wave was there is not known".to_owned(),
            (false, _) => "no wave stands near".to_owned(),
        });
        if !fault.cure.is_empty() {
            why.push(format!("cure: {}", fault.cure));
        }
        out.push(Finding {
            kind: FindingKind::CodeFault,
            trust: if near { Trust::Likely } else { Trust::Possible },
            title: format!(
                "{} at {} {} (rule {})",
                text(fault.at),
                piece.place(fault.at),
                fault.what,
                fault.rule
            ),
            why: why.join("; "),
            evidence: [Some(fault.at), fault.first].into_iter().flatten().map(seen).collect(),
        });
    }
    if more > 0
        && let Some(last) = out.last_mut()
    {
        last.why.push_str(&format!("; {more} more like it in this code: unwedge amd check shows all"));
    }
    out
}

/// Lanes of a wave, where something says: 64 or not.
fn lanes(case: &Case<'_>, wave: &Stands<'_>) -> Option<bool> {
    if wave.exec.is_some_and(|exec| exec >> 32 != 0) {
        return Some(true);
    }
    Some(wave_field(case, wave.umr?, "IB_STS2", "WAVE64")? == 1)
}

/// A shader that a report lists, as far as it is without gaps.
fn listed(shader: &Shader<'_>) -> Option<Piece> {
    let mut words = Vec::new();
    let mut whole = true;
    for instruction in &shader.code {
        whole = instruction.offset == 4 * words.len() as u64 && words.len() <= MOST_DWORDS;
        if !whole {
            break;
        }
        words.extend_from_slice(&instruction.words);
    }
    let name =
        if shader.name.is_empty() { "the shader".to_owned() } else { shader.name.clone().into_owned() };
    let section = "pipeline.log".to_owned();
    (!words.is_empty()).then(|| Piece {
        name,
        base: shader.address(),
        words,
        whole,
        section,
        waves: Vec::new(),
        wave64: None,
    })
}

/// A shader of the work that hangs, where memory holds it.
fn started(case: &Case<'_>, program: &Program) -> Option<Piece> {
    let address = program.address()?;
    let words = memory(case, address);
    let name = format!("the {} at {address:#x}", program.stage.name());
    let section = case.memory.find(address).map(|buffer| buffer.name.clone()).unwrap_or_default();
    (!words.is_empty()).then(|| Piece {
        name,
        base: Some(address),
        words,
        whole: false,
        section: if section.is_empty() { "memory".to_owned() } else { section },
        waves: Vec::new(),
        wave64: None,
    })
}

fn memory(case: &Case<'_>, address: u64) -> Vec<u32> {
    let Some(dwords) = case.memory.find(address & !3).and_then(|buffer| buffer.dwords_at(address & !3))
    else {
        return Vec::new();
    };
    (0..MOST_DWORDS).map_while(|at| dwords.get(at)).collect()
}

/// What umr read around a wave.
fn beside(wave: &Stands<'_>, decoder: Decoder<'_>) -> Option<Piece> {
    let code = &wave.umr?.code;
    let pc = wave.pc? & !3;
    let at = code.iter().position(|word| word.address() == pc)?;
    let follows = |pair: &[unwedge_capture::amdgpu::umr::CodeWord<'_>]| {
        pair[0].address().checked_add(4) == Some(pair[1].address())
    };
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
            let name = format!("the shader at {first:#x}");
            let section = "waves".to_owned();
            let (waves, wave64) = (Vec::new(), None);
            Some(Piece { name, base: Some(first), words, whole, section, waves, wave64 })
        }
        None => part(&words, first, before, "waves".to_owned(), decoder),
    }
}

/// Dwords in front of a place in memory from which code is read.
const BEFORE: usize = 64;

/// What memory holds around a wave.
fn around(case: &Case<'_>, wave: &Stands<'_>, decoder: Decoder<'_>) -> Option<Piece> {
    let pc = wave.pc? & !3;
    let buffer = case.memory.find(pc)?;
    let before = usize::try_from(pc.checked_sub(buffer.iova)? / 4).ok()?.min(BEFORE);
    let first = pc.checked_sub(4 * before as u64)?;
    part(&memory(case, first), first, before, "memory".to_owned(), decoder)
}

/// Code of which the start is not there: from where an instruction starts at dword `at`.
fn part(words: &[u32], first: u64, at: usize, section: String, decoder: Decoder<'_>) -> Option<Piece> {
    let start = decoder.start_before(words, at)?;
    let base = first.checked_add(4 * start as u64)?;
    Some(Piece {
        name: format!("{base:#x}"),
        base: Some(base),
        words: words.get(start..)?.to_vec(),
        whole: false,
        section,
        waves: Vec::new(),
        wave64: None,
    })
}
