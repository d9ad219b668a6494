//! Waves: which shaders they execute, at which instruction, and what that says.
//!
//! # Folklore
//! - umr halts waves to read them: that they are halted says nothing.
//! - A wave whose program counter lies in no shader of the bound pipeline may belong to another queue, or to memory that
//!   was freed: both are seen.

use super::case::{AmdCase, wave_field};
use super::code::{self, Decoder};
use super::evidence::{at_offset, evidence, field, listed_place, program_place};
use super::faults::{self, Stands};
use crate::args::{Arg, Args};
use crate::report::{CodeExcerpt, CounterWait, Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_capture::radv::{AnnotatedWave, RadvShader, ShaderInstruction};
use unwedge_capture::umr::UmrWave;
use unwedge_hw::Db;
use unwedge_hw::amd::Gfx;
use unwedge_isa::amdgcn::{Gpu, Inst};
use unwedge_stream::amd::Program;

/// A wave, whoever listed it.
#[derive(Clone, Copy)]
struct Standing<'c> {
    pc: Option<u64>,
    exec: Option<u64>,
    inst: [Option<u32>; 2],
    umr: Option<&'c UmrWave<'c>>,
}

/// Waves at the same instruction.
struct WaveGroup<'c> {
    shader: Option<&'c RadvShader<'c>>,
    /// As [`CodeExcerpt::place`].
    place: Args,
    offset: Option<u64>,
    pc: Option<u64>,
    text: Option<String>,
    inst: Option<Inst>,
    waves: Vec<Standing<'c>>,
}

/// Findings about waves, and the code that they stand in. `programs`: shaders of the work that hangs, by the registers.
pub(super) fn findings(
    case: &AmdCase<'_>,
    decoder: Decoder,
    programs: &[Program],
) -> (Vec<Finding>, Vec<CodeExcerpt>) {
    let (mut out, mut listings) = (Vec::new(), Vec::new());
    out.extend(trap(case));
    let standing = standing(case);
    if standing.is_empty() {
        // A wave that raised an exception ended in the trap handler.
        if case.no_waves && out.is_empty() {
            let seen = evidence("umr_waves.log", Fact::Line("No active waves!".to_owned()));
            out.push(Finding::new(Rule::NoWaves, Trust::Likely, Subject::Gpu).seen([seen]));
        }
        return (out, listings);
    }
    let mut groups: Vec<WaveGroup<'_>> = Vec::new();
    for wave in standing {
        let group = group_of(case, wave, decoder, programs);
        match groups.iter_mut().find(|g| g.pc == group.pc && g.place == group.place) {
            Some(known) => known.waves.push(wave),
            None => groups.push(group),
        }
    }
    groups.sort_by_key(|g| std::cmp::Reverse(g.waves.len()));
    let more = groups.len().saturating_sub(MOST_GROUPS);
    for group in groups.iter().take(MOST_GROUPS) {
        let mut listing = listing(case, group, decoder);
        if let Some(inst) = &group.inst {
            let waves: Vec<&UmrWave<'_>> = group.waves.iter().filter_map(|wave| wave.umr).collect();
            listing.waits = code::waits(case, &waves, inst);
        }
        out.push(finding(case, group, &listing.waits, decoder));
        mark(&mut listing, &groups);
        if !listing.lines.is_empty() {
            listings.push(listing);
        }
    }
    if more > 0
        && let Some(last) = out.last_mut()
    {
        last.args = std::mem::take(&mut last.args).with("other_places", Arg::Number(more as u64));
    }
    (out, listings)
}

/// The code around waves: of the report, of umr, of memory.
fn listing(case: &AmdCase<'_>, group: &WaveGroup<'_>, decoder: Decoder) -> CodeExcerpt {
    let wave64 = group.waves.iter().any(|wave| is_wave64(case, wave));
    let of_report = || {
        let (shader, offset) = group.shader.zip(group.offset)?;
        Some((code::of_shader(shader, offset, wave64, decoder), "pipeline.log".to_owned()))
    };
    let of_umr = || {
        let wave = group.waves.iter().find_map(|wave| wave.umr)?;
        Some((code::of_wave(wave, wave64, decoder), "waves".to_owned()))
    };
    let of_memory = || code::of_memory(case, group.pc?, wave64, decoder);
    let some = |found: &(Vec<_>, String)| !found.0.is_empty();
    let found = of_report().filter(some).or_else(|| of_umr().filter(some)).or_else(of_memory);
    let (lines, source) = found.unwrap_or_default();
    CodeExcerpt {
        place: group.place.clone(),
        iova: group.pc,
        waves: group.waves.len(),
        source,
        waits: Vec::new(),
        lines,
    }
}

/// Notes at its lines how many waves stand there.
fn mark(listing: &mut CodeExcerpt, groups: &[WaveGroup<'_>]) {
    for line in listing.lines.iter_mut().filter(|line| line.iova.is_some()) {
        let here = groups.iter().filter(|group| group.pc == line.iova);
        line.waves = here.map(|group| group.waves.len()).sum();
    }
}

fn is_wave64(case: &AmdCase<'_>, wave: &Standing<'_>) -> bool {
    has_64_lanes(case, wave.exec, wave.umr)
}

/// Whether a wave has 64 lanes: before gfx10 all have; else as far as its state says.
fn has_64_lanes(case: &AmdCase<'_>, exec: Option<u64>, umr: Option<&UmrWave<'_>>) -> bool {
    if case.amd.is_none_or(|amd| amd.gfx() < Gfx::Gfx10) || exec.is_some_and(|exec| exec >> 32 != 0) {
        return true;
    }
    umr.is_some_and(|umr| wave_field(case, umr, "IB_STS2", "WAVE64") == Some(1))
}

/// Texts of the words that umr read around a wave's program counter, by the word that an instruction starts with. Words
/// that continue one, and those that are not an instruction, have no text. `gpu` is what the code is for.
pub fn wave_code(wave: &UmrWave<'_>, gfx: Option<Gfx>, db: &Db, gpu: Option<Gpu>) -> Vec<Option<String>> {
    let case = AmdCase::empty(gfx.map(|gfx| db.amd_gpu(gfx)), gpu);
    code::texts(wave, has_64_lanes(&case, wave.exec(), Some(wave)), Decoder(gpu))
}

/// Places that are reported one by one.
const MOST_GROUPS: usize = 4;

/// Those umr listed; if it did not, those RADV noted in its disassembly.
fn standing<'c>(case: &AmdCase<'c>) -> Vec<Standing<'c>> {
    if !case.waves.is_empty() {
        let of = |wave: &&'c UmrWave<'c>| Standing {
            pc: wave.pc(),
            exec: wave.exec(),
            inst: [wave.inst_dw0(), wave.inst_dw1()],
            umr: Some(*wave),
        };
        return case.waves.iter().map(of).collect();
    }
    let noted = |wave: &AnnotatedWave| Standing { pc: wave.pc, exec: wave.exec, inst: wave.inst, umr: None };
    let pipeline = case.radv.and_then(|radv| radv.pipeline.as_ref());
    let strangers = pipeline.into_iter().flat_map(|pipeline| &pipeline.strangers);
    case.shaders.iter().flat_map(|shader| &shader.waves).chain(strangers).map(noted).collect()
}

/// Where waves stand.
pub(super) fn stands<'c>(case: &AmdCase<'c>) -> Vec<Stands<'c>> {
    standing(case).iter().map(|wave| Stands { pc: wave.pc, exec: wave.exec, umr: wave.umr }).collect()
}

fn group_of<'c>(
    case: &AmdCase<'c>,
    wave: Standing<'c>,
    decoder: Decoder,
    programs: &[Program],
) -> WaveGroup<'c> {
    let within = |shader: &&'c RadvShader<'c>| {
        let start = shader.address()?;
        let offset = wave.pc?.checked_sub(start)?;
        (offset < shader.size()).then_some((*shader, offset))
    };
    let own = case.shaders.iter().find_map(within);
    let found = wave.umr.and_then(|w| w.shader);
    let (place, offset) = match (own, wave.pc, found) {
        (Some((shader, offset)), ..) => {
            (at_offset(listed_place(&shader.name, shader.address()), offset), Some(offset))
        }
        (None, Some(pc), Some(found)) if pc >= found.address => {
            let offset = pc - found.address;
            let program = programs.iter().find(|program| program.starts_at(found.address));
            let stage = program.map(|program| program.stage.name());
            (at_offset(program_place(stage, found.address), offset), Some(offset))
        }
        (None, Some(pc), _) => (Args::new().with("pc", Arg::Address(pc)), None),
        (None, None, _) => (Args::new(), None),
    };
    let listed = own.and_then(|(shader, offset)| instruction(shader, offset));
    let (text, inst) = standing_at(case, &wave, listed, decoder);
    let shader = own.map(|(shader, _)| shader);
    WaveGroup { shader, place, offset, pc: wave.pc, text, inst, waves: vec![wave] }
}

/// The instruction that a wave is at: as the report lists it, as umr printed it, else by its words.
fn standing_at(
    case: &AmdCase<'_>,
    wave: &Standing<'_>,
    listed: Option<&ShaderInstruction<'_>>,
    decoder: Decoder,
) -> (Option<String>, Option<Inst>) {
    let wave64 = is_wave64(case, wave);
    let beside = || wave.umr?.code.iter().find(|word| word.at_pc || Some(word.address()) == wave.pc);
    let printed = [listed.map(|i| i.text.trim()), beside().map(|word| word.text.trim())];
    let printed = printed.into_iter().flatten().find(|text| !text.is_empty() && *text != ";;");
    let own: Vec<u32> = wave.inst.iter().map_while(|word| *word).collect();
    let in_memory = || -> Vec<u32> {
        let word = |i: u64| case.memory.read((wave.pc? & !3).checked_add(4 * i)?);
        (0..6).map_while(word).collect()
    };
    if let Some(text) = printed {
        // What printed it may know the GPU better than the case does.
        let words = listed.map_or(&own, |i| &i.words);
        let inst = decoder.instruction_of(wave64, text).or_else(|| decoder.instruction(wave64, words));
        return (Some(text.to_owned()), inst);
    }
    let decode = |words: &[u32]| Some((decoder.one(wave64, words)?.0, decoder.instruction(wave64, words)));
    let decoded = decode(&own).or_else(|| decode(&in_memory()));
    decoded.map_or((None, None), |(text, inst)| (Some(text), inst))
}

fn instruction<'s, 'c>(shader: &'s RadvShader<'c>, offset: u64) -> Option<&'s ShaderInstruction<'c>> {
    let at = shader.code.binary_search_by_key(&offset, |i| i.offset).ok()?;
    shader.code.get(at)
}

/// The innermost loop around an offset: where its first instruction and its branch back are.
fn loop_around(shader: &RadvShader<'_>, offset: u64, decoder: Decoder) -> Option<(u64, u64)> {
    let back = shader.code.iter().filter(|i| i.offset >= offset).filter_map(|i| {
        let target = decoder.branch_target(&i.words, i.offset)?;
        (target <= offset).then_some((target, i.offset))
    });
    back.min_by_key(|(start, end)| end - start)
}

/// Bits of a wave's state that say what is wrong.
const ERRORS: [(&str, &str); 8] = [
    ("TRAPSTS", "EXCP_MEM_VIOL"),
    ("EXCP_FLAG_PRIV", "MEM_VIOL"),
    ("TRAPSTS", "ILLEGAL_INST"),
    ("EXCP_FLAG_PRIV", "ILLEGAL_INST"),
    ("STATUS", "FATAL_HALT"),
    ("STATUS", "ECC_ERR"),
    ("STATUS", "TRAP"),
    ("TRAPSTS", "UTC_ERROR"),
];

/// Bits of a wave's state that are evidence where they are set.
const STATE: [(&str, &str); 7] = [
    ("STATUS", "HALT"),
    ("STATE_PRIV", "HALT"),
    ("STATUS", "TRAP"),
    ("STATUS", "PRIV"),
    ("STATUS", "IN_BARRIER"),
    ("STATUS", "FATAL_HALT"),
    ("STATUS", "ECC_ERR"),
];

/// A wave as evidence: where it runs, where in the code it is, what its state says.
fn wave_evidence(case: &AmdCase<'_>, wave: &Standing<'_>) -> Evidence {
    let section = if wave.umr.is_some() { "waves" } else { "pipeline.log" };
    let mut args = Args::new();
    if let Some(umr) = wave.umr {
        let unit = if umr.place.wgp { "wgp" } else { "cu" };
        let place = &umr.place;
        let parts = [
            ("se", place.se),
            ("sa", place.sa),
            (unit, place.cu),
            ("simd", place.simd),
            ("wave", place.wave),
        ];
        for (name, number) in parts {
            args = args.with_some(name, number.map(|n| Arg::Number(n.into())));
        }
    }
    args = args.with_some("pc", wave.pc.map(Arg::Address)).with_some("exec", wave.exec.map(Arg::Value));
    if let Some(umr) = wave.umr {
        let set = |(register, name): &&(&str, &str)| wave_field(case, umr, register, name) == Some(1);
        let bits: Vec<Arg> = STATE.iter().filter(set).map(|(_, name)| Arg::name(*name)).collect();
        args = args.with("bits", bits).with("counters", code::open_counters(case, umr));
    }
    Evidence { iova: wave.pc, ..evidence(section, Fact::Wave(args)) }
}

/// Bits that say what is wrong, with the number of waves that have each.
fn errors(case: &AmdCase<'_>, group: &WaveGroup<'_>) -> Vec<Arg> {
    let error = |(register, name): &(&'static str, &'static str)| {
        let set = |wave: &&UmrWave<'_>| wave_field(case, wave, register, name) == Some(1);
        let waves = group.waves.iter().filter_map(|w| w.umr).filter(set).count();
        (waves > 0).then(|| {
            Args::new()
                .with("register", Arg::name(*register))
                .with("field", Arg::name(*name))
                .with("waves", Arg::Number(waves as u64))
                .into()
        })
    };
    ERRORS.iter().filter_map(error).collect()
}

fn wait_args(wait: &CounterWait) -> Arg {
    Args::new()
        .with("counter", Arg::name(wait.counter.clone()))
        .with("until", Arg::Number(wait.until))
        .with_some("lowest", wait.open.map(|(low, _)| Arg::Number(low)))
        .with_some("highest", wait.open.map(|(_, high)| Arg::Number(high)))
        .with("waves", Arg::Number(wait.waves as u64))
        .into()
}

fn finding(case: &AmdCase<'_>, group: &WaveGroup<'_>, waits: &[CounterWait], decoder: Decoder) -> Finding {
    let around = group.shader.zip(group.offset).and_then(|(shader, at)| loop_around(shader, at, decoder));
    let errors = errors(case, group);
    let rule = match (errors.is_empty(), around, group.shader) {
        (false, ..) => Rule::WavesWithErrors,
        (true, Some(_), _) => Rule::WavesInLoop,
        (true, None, None) => Rule::WavesInUnlistedCode,
        (true, None, Some(_)) => Rule::WavesAtInstruction,
    };
    let known = group.text.is_some() || group.shader.is_some();
    let trust = if known { Trust::Likely } else { Trust::Possible };
    let name = group.place.text("shader").map(str::to_owned);
    let subject = Subject::Shader { name, iova: group.place.number("start") };
    let no_lanes = group.waves.iter().filter(|w| w.exec == Some(0)).count();
    let tainted = group.waves.iter().filter_map(|w| w.umr).any(|wave| wave.tainted);
    let mnemonic = group.text.as_deref().and_then(|text| text.split_whitespace().next());
    let origin = group.shader.map(|shader| faults::origin(case, shader)).filter(|origin| !origin.is_empty());
    Finding::new(rule, trust, subject)
        .with("waves", Arg::Number(group.waves.len() as u64))
        .with("place", group.place.clone())
        .with_some("origin", origin)
        .with_some("mnemonic", mnemonic.map(|mnemonic| Arg::name(mnemonic.to_owned())))
        .with_some("instruction", group.text.clone().map(Arg::Text))
        .with_some("waits", (!waits.is_empty()).then(|| waits.iter().map(wait_args).collect::<Vec<_>>()))
        .with_some("loop_start", around.map(|(start, _)| Arg::Value(start)))
        .with_some("loop_end", around.map(|(_, end)| Arg::Value(end)))
        .with_some("no_lanes", (no_lanes > 0).then_some(Arg::Number(no_lanes as u64)))
        .with_some("errors", (!errors.is_empty()).then_some(errors))
        .with_some("tainted", tainted.then_some(true))
        .seen(group.waves.iter().take(3).map(|wave| wave_evidence(case, wave)))
}

/// A shader exception that RADV's trap handler caught.
fn trap(case: &AmdCase<'_>) -> Option<Finding> {
    let trap = case.radv?.trap.as_ref()?;
    let pc = trap.pc?;
    let shader = trap.shader.as_ref();
    let within = shader.and_then(|shader| Some((shader, pc.checked_sub(shader.address()?)?)));
    // The report of an exception does not name its shader; the pipeline does.
    let named = shader.and_then(|shader| faults::named_twin(case, shader));
    let name = named.or(shader).map(|shader| shader.name.clone().into_owned()).unwrap_or_default();
    let origin = named.map(|shader| faults::origin(case, shader)).filter(|origin| !origin.is_empty());
    let place = match within {
        Some((shader, offset)) => at_offset(listed_place(&name, shader.address()), offset),
        None => Args::new().with("pc", Arg::Address(pc)),
    };
    let text =
        within.and_then(|(shader, offset)| instruction(shader, offset)).map(|i| i.text.trim().to_owned());
    let name = (!name.is_empty()).then_some(name);
    let subject = Subject::Shader { name, iova: shader.and_then(RadvShader::address) };
    let seen = Evidence { iova: Some(pc), ..evidence("trap_handler.log", field("PC", Arg::Address(pc))) };
    Some(
        Finding::new(Rule::ShaderException, Trust::Certain, subject)
            .with("place", place)
            .with_some("origin", origin)
            .with_some("instruction", text.map(Arg::Text))
            .seen([seen]),
    )
}
