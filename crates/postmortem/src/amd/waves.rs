//! Waves: which shaders they execute, at which instruction, and what that says.
//!
//! # Folklore
//! - umr halts waves to read them: that they are halted says nothing.
//! - A wave whose program counter lies in no shader of the bound pipeline may belong to another queue, or to memory that
//!   was freed: both are seen.

use super::case::{Case, wave_field};
use super::code::{self, Decoder, Disassembler};
use super::faults::Stands;
use crate::prose::{Evidence, Finding};
use crate::report::{CodeExcerpt, FindingKind, Trust};
use unwedge_capture::amdgpu::radv::{AnnotatedWave, Instruction, Shader};
use unwedge_capture::amdgpu::umr::Wave;
use unwedge_hw::Db;
use unwedge_hw::amd::Gfx;
use unwedge_stream::amd::Program;

/// A wave, whoever listed it.
#[derive(Clone, Copy)]
struct Standing<'c> {
    pc: Option<u64>,
    exec: Option<u64>,
    inst: [Option<u32>; 2],
    umr: Option<&'c Wave<'c>>,
}

/// Waves at the same instruction.
struct Group<'c> {
    shader: Option<&'c Shader<'c>>,
    /// Name of the shader and offset, or the address.
    place: String,
    offset: Option<u64>,
    pc: Option<u64>,
    text: Option<String>,
    waves: Vec<Standing<'c>>,
}

/// Findings about waves, and the code that they stand in. `programs`: shaders of the work that hangs, by the registers.
pub(super) fn findings(
    case: &Case<'_>,
    decoder: Decoder<'_>,
    programs: &[Program],
) -> (Vec<Finding>, Vec<CodeExcerpt>) {
    let (mut out, mut listings) = (Vec::new(), Vec::new());
    out.extend(trap(case));
    let standing = standing(case);
    if standing.is_empty() {
        if case.no_waves {
            out.push(Finding {
                kind: FindingKind::InFlight,
                trust: Trust::Likely,
                title: "no wave was running".to_owned(),
                why: "no shader is what the command processor waits for".to_owned(),
                evidence: vec![evidence("umr_waves.log", "No active waves!".to_owned(), None)],
            });
        }
        return (out, listings);
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
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
        let mut words = None;
        if let Some(text) = &group.text {
            let waves: Vec<&Wave<'_>> = group.waves.iter().filter_map(|wave| wave.umr).collect();
            (listing.waits, words) = code::waits(case, &waves, text);
        }
        out.push(finding(case, group, words));
        mark(&mut listing, &groups);
        if !listing.lines.is_empty() {
            listings.push(listing);
        }
    }
    if more > 0
        && let Some(last) = out.last_mut()
    {
        last.why.push_str(&format!("; waves stand at {more} other instructions, too"));
    }
    (out, listings)
}

/// The code around waves: of the report, of umr, of memory.
fn listing(case: &Case<'_>, group: &Group<'_>, decoder: Decoder<'_>) -> CodeExcerpt {
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
fn mark(listing: &mut CodeExcerpt, groups: &[Group<'_>]) {
    for line in listing.lines.iter_mut().filter(|line| line.iova.is_some()) {
        let here = groups.iter().filter(|group| group.pc == line.iova);
        line.waves = here.map(|group| group.waves.len()).sum();
    }
}

fn is_wave64(case: &Case<'_>, wave: &Standing<'_>) -> bool {
    has_64_lanes(case, wave.exec, wave.umr)
}

/// Whether a wave has 64 lanes: before gfx10 all have; else as far as its state says.
fn has_64_lanes(case: &Case<'_>, exec: Option<u64>, umr: Option<&Wave<'_>>) -> bool {
    if case.amd.is_none_or(|amd| amd.gfx() < Gfx::Gfx10) || exec.is_some_and(|exec| exec >> 32 != 0) {
        return true;
    }
    umr.is_some_and(|umr| wave_field(case, umr, "IB_STS2", "WAVE64") == Some(1))
}

/// Texts of the words that umr read around a wave's program counter, by the word that an instruction starts with. Words
/// that continue one, and those that are none, have no text.
pub fn wave_code(
    wave: &Wave<'_>,
    gfx: Option<Gfx>,
    db: &Db,
    disassembler: &dyn Disassembler,
) -> Vec<Option<String>> {
    let case = Case::empty(gfx.map(|gfx| db.amd_gpu(gfx)));
    let decoder = Decoder { disassembler: Some(disassembler), gfx };
    code::texts(wave, has_64_lanes(&case, wave.exec(), Some(wave)), decoder)
}

/// Places that are told one by one.
const MOST_GROUPS: usize = 4;

fn evidence(section: &str, what: String, iova: Option<u64>) -> Evidence {
    Evidence { section: section.to_owned(), what, iova, span: None }
}

/// Those umr listed; if it did not, those RADV noted in its disassembly.
fn standing<'c>(case: &Case<'c>) -> Vec<Standing<'c>> {
    if !case.waves.is_empty() {
        let of = |wave: &&'c Wave<'c>| Standing {
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
pub(super) fn stands<'c>(case: &Case<'c>) -> Vec<Stands<'c>> {
    standing(case).iter().map(|wave| Stands { pc: wave.pc, exec: wave.exec, umr: wave.umr }).collect()
}

fn group_of<'c>(
    case: &Case<'c>,
    wave: Standing<'c>,
    decoder: Decoder<'_>,
    programs: &[Program],
) -> Group<'c> {
    let within = |shader: &&'c Shader<'c>| {
        let start = shader.address()?;
        let offset = wave.pc?.checked_sub(start)?;
        (offset < shader.size()).then_some((*shader, offset))
    };
    let own = case.shaders.iter().find_map(within);
    let found = wave.umr.and_then(|w| w.shader);
    let (place, offset) = match (own, wave.pc, found) {
        (Some((shader, offset)), ..) => (format!("{}+{offset:#x}", shader.name), Some(offset)),
        (None, Some(pc), Some(found)) if pc >= found.address => {
            let offset = pc - found.address;
            let stage = programs.iter().find(|program| program.starts_at(found.address));
            let name = stage.map_or("shader", |program| program.stage.name());
            (format!("the {name} at {:#x}+{offset:#x}", found.address), Some(offset))
        }
        (None, Some(pc), _) => (format!("{pc:#x}, in no shader that the report has"), None),
        (None, None, _) => ("an unknown place".to_owned(), None),
    };
    let listed =
        own.and_then(|(shader, offset)| instruction(shader, offset)).map(|i| i.text.trim().to_owned());
    let beside = || {
        let code = wave.umr?.code.iter().find(|word| word.at_pc || Some(word.address()) == wave.pc)?;
        Some(code.text.trim().to_owned())
    };
    let decoded = || {
        let words: Vec<u32> = wave.inst.iter().map_while(|word| *word).collect();
        decoder.one(is_wave64(case, &wave), &words).map(|(text, _)| text)
    };
    let in_memory = || {
        let pc = wave.pc? & !3;
        let words: Vec<u32> = (0..6).map_while(|i| case.memory.read(pc.checked_add(4 * i)?)).collect();
        decoder.one(is_wave64(case, &wave), &words).map(|(text, _)| text)
    };
    let some = |text: &String| !text.is_empty() && text != ";;";
    let text = listed.filter(some).or_else(|| beside().filter(some)).or_else(decoded).or_else(in_memory);
    Group { shader: own.map(|(shader, _)| shader), place, offset, pc: wave.pc, text, waves: vec![wave] }
}

fn instruction<'s, 'c>(shader: &'s Shader<'c>, offset: u64) -> Option<&'s Instruction<'c>> {
    let at = shader.code.binary_search_by_key(&offset, |i| i.offset).ok()?;
    shader.code.get(at)
}

/// What an instruction that a wave stands at means.
fn meaning(text: &str) -> Option<&'static str> {
    let word = text.split_whitespace().next()?;
    Some(match word {
        "s_waitcnt_depctr" => "it waits for instructions before it",
        "s_barrier" | "s_barrier_wait" => "it waits at a barrier for other waves of its group",
        "s_sleep" | "s_sleep_var" => "it sleeps, as loops that poll do",
        "s_trap" => "it traps",
        "s_endpgm" => "it is at its end",
        "s_sethalt" => "it halts itself",
        word if word.starts_with("s_waitcnt") || word.starts_with("s_wait_") => {
            "it waits for memory, exports or messages"
        }
        _ => return None,
    })
}

/// The innermost loop around an offset: where its first instruction and its branch back stand.
fn loop_around(shader: &Shader<'_>, offset: u64) -> Option<(u64, u64)> {
    let back = shader.code.iter().filter_map(|i| {
        let name = i.text.split_whitespace().next()?;
        if !name.starts_with("s_branch") && !name.starts_with("s_cbranch") {
            return None;
        }
        // The lower half of a branch is how far it goes, in dwords behind it.
        let distance = i64::from(*i.words.first()? as u16 as i16).checked_mul(4)?;
        let target = i.offset.checked_add(4)?.checked_add_signed(distance)?;
        (target <= offset && offset <= i.offset).then_some((target, i.offset))
    });
    back.min_by_key(|(start, end)| end - start)
}

/// Bits of a wave's state that say what is wrong.
const ERRORS: [(&str, &str, &str); 8] = [
    ("TRAPSTS", "EXCP_MEM_VIOL", "an access to memory failed"),
    ("EXCP_FLAG_PRIV", "MEM_VIOL", "an access to memory failed"),
    ("TRAPSTS", "ILLEGAL_INST", "the instruction does not exist"),
    ("EXCP_FLAG_PRIV", "ILLEGAL_INST", "the instruction does not exist"),
    ("STATUS", "FATAL_HALT", "an error halted it"),
    ("STATUS", "ECC_ERR", "a memory error was detected"),
    ("STATUS", "TRAP", "it is about to trap"),
    ("TRAPSTS", "UTC_ERROR", "an address could not be translated"),
];

/// What else a wave's state says: bits that are set, and counters that are not at zero.
fn state(case: &Case<'_>, wave: &Wave<'_>) -> Vec<String> {
    let bits = [
        ("STATUS", "HALT"),
        ("STATE_PRIV", "HALT"),
        ("STATUS", "TRAP"),
        ("STATUS", "PRIV"),
        ("STATUS", "IN_BARRIER"),
        ("STATUS", "FATAL_HALT"),
        ("STATUS", "ECC_ERR"),
    ];
    let set = |(register, name): &(&str, &str)| wave_field(case, wave, register, name) == Some(1);
    let mut out: Vec<String> =
        bits.iter().filter(|bit| set(bit)).map(|(_, name)| (*name).to_owned()).collect();
    out.extend(code::open_counters(case, wave));
    out
}

/// `waits` is what the instruction waits for, in words.
fn finding(case: &Case<'_>, group: &Group<'_>, waits: Option<String>) -> Finding {
    let count = group.waves.len();
    let waves = if count == 1 { "1 wave stands".to_owned() } else { format!("{count} waves stand") };
    let text = group.text.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    let mut why = Vec::new();
    let mut suspect = group.shader.is_none();
    why.extend(waits.or_else(|| group.text.as_deref().and_then(meaning).map(str::to_owned)));
    if let Some((start, end)) = group.shader.zip(group.offset).and_then(|(s, at)| loop_around(s, at)) {
        why.push(format!("the loop from +{start:#x} to +{end:#x} is around it: it may not end"));
        suspect = true;
    }
    let no_lanes = group.waves.iter().filter(|w| w.exec == Some(0)).count();
    match no_lanes {
        0 => {}
        n if n == count => why.push("no lane is on".to_owned()),
        n => why.push(format!("{n} of them with no lane on")),
    }
    for (register, name, words) in ERRORS {
        let set = |wave: &&Wave<'_>| wave_field(case, wave, register, name) == Some(1);
        match group.waves.iter().filter_map(|w| w.umr).filter(set).count() {
            0 => continue,
            n if n == count => why.push(format!("{words} ({register}.{name})")),
            n => why.push(format!("{words} ({register}.{name} of {n} waves)")),
        }
        suspect = true;
    }
    if group.waves.iter().filter_map(|w| w.umr).any(|wave| wave.tainted) {
        why.push("umr warns that waves ran while it read them".to_owned());
    }
    let mut seen = Vec::new();
    for wave in group.waves.iter().take(3) {
        let place = wave.umr.map(|w| place_words(w)).unwrap_or_default();
        let pc = wave.pc.map_or("?".to_owned(), |pc| format!("{pc:#x}"));
        let exec = wave.exec.map_or("?".to_owned(), |exec| format!("{exec:#x}"));
        let section = if wave.umr.is_some() { "waves" } else { "pipeline.log" };
        let state = wave.umr.map_or_else(Vec::new, |umr| state(case, umr));
        let state: String = state.iter().map(|word| format!(", {word}")).collect();
        seen.push(evidence(section, format!("{place}PC {pc}, EXEC {exec}{state}"), wave.pc));
    }
    let known = group.text.is_some() || group.shader.is_some();
    Finding {
        kind: if suspect { FindingKind::Suspect } else { FindingKind::InFlight },
        trust: if known { Trust::Likely } else { Trust::Possible },
        title: format!("{waves} at {}{text}", group.place),
        why: why.join("; "),
        evidence: seen,
    }
}

/// `SE0 SA1 WGP2 SIMD0 wave 3: `
fn place_words(wave: &Wave<'_>) -> String {
    let place = &wave.place;
    let unit = if place.wgp { "WGP" } else { "CU" };
    let parts =
        [("SE", place.se), ("SA", place.sa), (unit, place.cu), ("SIMD", place.simd), ("wave ", place.wave)];
    let words: Vec<String> = parts.iter().filter_map(|(name, n)| Some(format!("{name}{}", (*n)?))).collect();
    if words.is_empty() { String::new() } else { format!("{}: ", words.join(" ")) }
}

/// A shader exception that RADV's trap handler caught.
fn trap(case: &Case<'_>) -> Option<Finding> {
    let trap = case.radv?.trap.as_ref()?;
    let pc = trap.pc?;
    let shader = trap.shader.as_ref();
    let place = shader.and_then(|shader| Some((shader, pc.checked_sub(shader.address()?)?)));
    let (at, text) = match place {
        Some((shader, offset)) => {
            let name = if shader.name.is_empty() { "the shader" } else { &*shader.name };
            let text = instruction(shader, offset).map(|i| format!(": {}", i.text.trim()));
            (format!("{name}+{offset:#x}"), text.unwrap_or_default())
        }
        None => (format!("{pc:#x}"), String::new()),
    };
    Some(Finding {
        kind: FindingKind::Suspect,
        trust: Trust::Certain,
        title: format!("a shader raised an exception at {at}{text}"),
        why: "RADV's trap handler caught it".to_owned(),
        evidence: vec![evidence("trap_handler.log", format!("PC={pc:#x}"), Some(pc))],
    })
}
