//! Code around a place: of the shaders that a report lists, of the words that umr read around a wave's program counter, of
//! memory that a dump holds. And what an instruction there waits for.
//!
//! # Folklore
//! - umr reads code around the program counter, not from a shader's start: what stands in front is decoded from the first
//!   word from which an instruction starts at the program counter.
//! - umr without LLVM prints words without text.

use super::case::{AmdCase, wave_field};
use crate::args::{Arg, Args};
use crate::report::{CodeLine, CounterWait};
use unwedge_capture::radv::RadvShader;
use unwedge_capture::umr::UmrWave;
use unwedge_hw::amd::Gfx;
use unwedge_isa::amdgcn::waits::Counter;
use unwedge_isa::amdgcn::{Gpu, Inst, Operand, codec, listing, text, waits as isa_waits};

/// Instructions that are shown in front of a place, and behind it.
const AROUND: usize = 4;
/// Dwords in front of a place from which decoding is tried.
const DWORDS_BEFORE: usize = 16;
/// The longest instruction, in dwords.
const LONGEST: usize = 6;

/// What instructions of a case are read with: the GPU they are for, where its instructions are known.
#[derive(Clone, Copy)]
pub(super) struct Decoder(pub(super) Option<Gpu>);

impl Decoder {
    /// The text of the instruction that words begin with, and how many it takes.
    pub(super) fn one(self, wave64: bool, words: &[u32]) -> Option<(String, usize)> {
        let gpu = self.0?.with_wave64(wave64);
        let decoded = codec::decode_executed(words, &gpu)?;
        let mut out = String::new();
        text::write(&decoded.inst, &gpu, &mut out);
        Some((out, usize::from(decoded.dwords)))
    }

    /// The instruction that words begin with.
    pub(super) fn instruction(self, wave64: bool, words: &[u32]) -> Option<Inst> {
        let gpu = self.0?.with_wave64(wave64);
        codec::decode_executed(words, &gpu).map(|decoded| decoded.inst)
    }

    /// The instruction that a line of another tool means.
    pub(super) fn instruction_of(self, wave64: bool, line: &str) -> Option<Inst> {
        text::parse_line(line, &self.0?.with_wave64(wave64), &()).ok()
    }

    /// The offset to which an instruction at an offset branches, both in bytes. `None`: it does not branch, or the GPU is not
    /// known.
    pub(super) fn branch_target(self, words: &[u32], offset: u64) -> Option<u64> {
        let decoded = codec::decode_executed(words, &self.0?)?;
        let role = decoded.inst.opcode().row().role;
        if !role.ends_block() || role.calls() {
            return None;
        }
        let at = usize::try_from(offset / 4).ok()?;
        listing::target(&decoded.inst, at, decoded.dwords.into())?.checked_mul(4)?.try_into().ok()
    }

    /// The first dword, of the longest way back, from which instructions follow each other up to one that starts at `at`.
    pub(super) fn start_before(self, words: &[u32], at: usize) -> Option<usize> {
        let reaches = |start: usize| {
            let mut here = start;
            while here < at {
                let Some((_, size)) = self.one(true, words.get(here..).unwrap_or_default()) else {
                    return false;
                };
                here += size.max(1);
            }
            here == at
        };
        self.one(true, words.get(at..)?)?;
        (at.saturating_sub(LONGEST * DWORDS_BEFORE)..=at).find(|start| reaches(*start))
    }

    /// Instructions around a place, of which one starts there: where they start, their dwords, and their text.
    fn run(self, wave64: bool, words: &[u32], at: usize) -> Vec<(usize, usize, Option<String>)> {
        self.run_from(wave64, words, at.saturating_sub(DWORDS_BEFORE), at, DWORDS_BEFORE + AROUND + 1)
    }

    /// The same from `first` on, or a few dwords behind it, and no more than `most` of them.
    fn run_from(
        self,
        wave64: bool,
        words: &[u32],
        first: usize,
        at: usize,
        most: usize,
    ) -> Vec<(usize, usize, Option<String>)> {
        let from = |start: usize| {
            let mut out = Vec::new();
            let mut here = start;
            while here < words.len() && out.len() < most {
                let (text, size) = match self.one(wave64, words.get(here..).unwrap_or_default()) {
                    Some((text, size)) => (Some(text), size.max(1)),
                    None => (None, 1),
                };
                out.push((here, size, text));
                here += size;
            }
            out
        };
        let starts_at =
            |run: &Vec<(usize, usize, Option<String>)>| run.iter().any(|(start, ..)| *start == at);
        (first..at.min(first + LONGEST)).map(from).find(starts_at).unwrap_or_else(|| from(at))
    }
}

/// The lines around one of them.
fn around(lines: Vec<CodeLine>, at: usize) -> Vec<CodeLine> {
    let first = at.saturating_sub(AROUND);
    lines.into_iter().skip(first).take(at - first + 1 + AROUND).collect()
}

/// Lines of a shader that a report lists.
pub(super) fn of_shader(
    shader: &RadvShader<'_>,
    offset: u64,
    wave64: bool,
    decoder: Decoder,
) -> Vec<CodeLine> {
    let behind = shader.code.partition_point(|i| i.offset <= offset);
    let Some(at) = behind.checked_sub(1) else { return Vec::new() };
    let base = shader.address();
    let first = at.saturating_sub(AROUND);
    let shown = shader.code.iter().skip(first).take(at - first + 1 + AROUND);
    shown
        .map(|i| CodeLine {
            iova: base.and_then(|base| base.checked_add(i.offset)),
            offset: Some(i.offset),
            words: i.words.clone(),
            text: match i.text.trim() {
                "" => text_of(&i.words, wave64, decoder),
                text => text.to_owned(),
            },
            waves: 0,
        })
        .collect()
}

/// Texts of all instructions that umr read around a wave's program counter, at the words they start with.
pub(super) fn texts(wave: &UmrWave<'_>, wave64: bool, decoder: Decoder) -> Vec<Option<String>> {
    let words: Vec<u32> = wave.code.iter().map(|word| word.word).collect();
    let at = wave.code.iter().position(|word| word.at_pc || Some(word.address()) == wave.pc());
    let mut out = vec![None; words.len()];
    for (start, _, text) in decoder.run_from(wave64, &words, 0, at.unwrap_or(0), words.len()) {
        if let Some(slot) = out.get_mut(start) {
            *slot = text;
        }
    }
    out
}

fn text_of(words: &[u32], wave64: bool, decoder: Decoder) -> String {
    let decoded = decoder.one(wave64, words).map(|(text, _)| text);
    decoded.unwrap_or_else(|| unknown(words.first().copied().unwrap_or(0)))
}

fn unknown(word: u32) -> String {
    format!(".long {word:#010x}")
}

/// Lines of what umr read around the program counter of a wave.
pub(super) fn of_wave(wave: &UmrWave<'_>, wave64: bool, decoder: Decoder) -> Vec<CodeLine> {
    let Some(at) = wave.code.iter().position(|word| word.at_pc || Some(word.address()) == wave.pc()) else {
        return Vec::new();
    };
    let start = wave.shader.map(|shader| shader.address);
    let line = |first: usize, size: usize, text: String| {
        let words = wave.code.get(first..first.saturating_add(size)).unwrap_or_default();
        let iova = words.first().map(|word| word.address());
        CodeLine {
            iova,
            offset: iova.zip(start).and_then(|(iova, start)| iova.checked_sub(start)),
            words: words.iter().map(|word| word.word).collect(),
            text,
            waves: 0,
        }
    };
    let said = |at: usize| wave.code.get(at).map_or("", |word| word.text.trim());
    if !matches!(said(at), "" | ";;") {
        let mut lines: Vec<CodeLine> = Vec::new();
        let (first, last) = (at.saturating_sub(3 * AROUND), (at + 3 * AROUND).min(wave.code.len()));
        let mut center = 0;
        for i in first..last {
            let continued = said(i) == ";;";
            if !continued || lines.is_empty() {
                let size = 1 + (i + 1..last).take_while(|&next| said(next) == ";;").take(LONGEST - 1).count();
                let text = if continued { String::new() } else { said(i).to_owned() };
                if i == at {
                    center = lines.len();
                }
                lines.push(line(i, size, text));
            }
        }
        return around(lines, center);
    }
    let first = at.saturating_sub(DWORDS_BEFORE);
    let last = (at + LONGEST * (AROUND + 1)).min(wave.code.len());
    let words: Vec<u32> =
        wave.code.get(first..last).unwrap_or_default().iter().map(|word| word.word).collect();
    let run = decoder.run(wave64, &words, at - first);
    let center = run.iter().position(|(start, ..)| *start == at - first).unwrap_or(0);
    let text = |word: usize, text: Option<String>| {
        text.unwrap_or_else(|| unknown(words.get(word).copied().unwrap_or(0)))
    };
    let lines =
        run.into_iter().map(|(start, size, said)| line(first + start, size, text(start, said))).collect();
    around(lines, center)
}

/// Lines of memory around an address, and the name of the buffer, where a dump holds it.
pub(super) fn of_memory(
    case: &AmdCase<'_>,
    pc: u64,
    wave64: bool,
    decoder: Decoder,
) -> Option<(Vec<CodeLine>, String)> {
    let buffer = case.memory.find(pc & !3)?;
    decoder.0?;
    let place = usize::try_from((pc & !3).checked_sub(buffer.iova)? / 4).ok()?;
    let first = place.saturating_sub(DWORDS_BEFORE);
    let dwords = buffer.dwords_at(buffer.iova.checked_add(4 * first as u64)?)?;
    let words: Vec<u32> = (0..place - first + LONGEST * (AROUND + 1)).map_while(|i| dwords.get(i)).collect();
    let run = decoder.run(wave64, &words, place - first);
    let center = run.iter().position(|(start, ..)| *start == place - first)?;
    let lines = run.into_iter().map(|(start, size, text)| {
        let own = words.get(start..(start + size).min(words.len())).unwrap_or_default();
        CodeLine {
            iova: buffer.iova.checked_add(4 * (first + start) as u64),
            offset: None,
            words: own.to_vec(),
            text: text.unwrap_or_else(|| unknown(own.first().copied().unwrap_or(0))),
            waves: 0,
        }
    });
    let name = if buffer.name.is_empty() { format!("IB at {:#x}", buffer.iova) } else { buffer.name.clone() };
    Some((around(lines.collect(), center), name))
}

/// Fields of `IB_STS` that hold a counter, after the counter's name, with the bit that each starts at: fields have grown.
const COUNTER_PARTS: [(&str, u32); 4] = [("", 0), ("_HI", 4), ("_BIT4", 4), ("_BIT5", 5)];

/// The counters of a generation, with the names that its instructions have for them.
fn counters(generation: Gfx) -> impl Iterator<Item = (Counter, &'static str)> {
    Counter::of(generation).filter_map(move |counter| Some((counter, counter.name_in(generation)?)))
}

/// What a counter of a wave is at, by its name; `None` where nothing says. `IB_STS` has `VM_CNT` of `vmcnt`.
fn open(case: &AmdCase<'_>, wave: &UmrWave<'_>, name: &str) -> Option<u64> {
    let field = format!("{}_CNT", name.strip_suffix("cnt")?.to_ascii_uppercase());
    let part = |(suffix, shift): (&str, u32)| {
        Some(wave_field(case, wave, "IB_STS", &format!("{field}{suffix}"))? << shift)
    };
    let [low, rest @ ..] = COUNTER_PARTS;
    Some(rest.into_iter().filter_map(part).fold(part(low)?, |value, part| value | part))
}

/// The counters of a wave that are not at zero. Of a GPU that is not known they may be those of any generation.
pub(super) fn open_counters(case: &AmdCase<'_>, wave: &UmrWave<'_>) -> Vec<Arg> {
    let own = case.amd.map(|amd| amd.gfx());
    let generations = Gfx::ALL.into_iter().filter(|generation| own.is_none_or(|own| own == *generation));
    let mut names: Vec<&str> = Vec::new();
    for (_, name) in generations.flat_map(counters) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |name| Some((name, open(case, wave, name).filter(|&n| n > 0)?));
    let record = |(name, n)| Args::new().with("counter", Arg::name(name)).with("value", Arg::Number(n));
    names.into_iter().filter_map(of).map(record).map(Arg::from).collect()
}

/// What an instruction waits for: `s_waitcnt vmcnt(0) & lgkmcnt(1)`, `s_waitcnt_vscnt null, 0x0`, `s_wait_loadcnt 0x0`. The
/// greatest number of a field does not wait.
fn awaited(inst: &Inst, generation: Gfx) -> Vec<(Counter, u64)> {
    let immediate = inst.written().find_map(|(_, operand)| match operand {
        Operand::Imm(value) => Some(value as u16),
        _ => None,
    });
    let Some(immediate) = immediate else { return Vec::new() };
    let fields = isa_waits::fields(inst.opcode(), generation);
    let wait = |wait: &isa_waits::WaitField| (wait.counter, wait.field.get(immediate), wait.field.most());
    let waits = fields.map(wait).filter(|(_, number, most)| number < most);
    waits.map(|(counter, number, _)| (counter, number.into())).collect()
}

/// What waves wait for at an instruction, counter by counter.
pub(super) fn waits(case: &AmdCase<'_>, waves: &[&UmrWave<'_>], inst: &Inst) -> Vec<CounterWait> {
    let Some(generation) = case.amd.map(|amd| amd.gfx()) else { return Vec::new() };
    let wait = |(counter, until): (Counter, u64)| {
        let name = counter.name_in(generation).unwrap_or_default();
        let mut range: Option<(u64, u64)> = None;
        let mut held = 0;
        for value in waves.iter().filter_map(|wave| open(case, wave, name)) {
            range = Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
            held += usize::from(value > until);
        }
        CounterWait { counter: name.to_owned(), until, open: range, waves: held }
    };
    awaited(inst, generation).into_iter().map(wait).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_on(generation: Gfx, line: &str) -> Vec<(&'static str, u64)> {
        let named = |(counter, n): (Counter, u64)| (counter.name_in(generation).unwrap_or_default(), n);
        let inst = Decoder(Gpu::from_gfx(generation)).instruction_of(true, line);
        awaited(&inst.expect("an instruction"), generation).into_iter().map(named).collect()
    }

    fn names(text: &str) -> Vec<(&'static str, u64)> {
        names_on(Gfx::Gfx10_3, text)
    }

    #[test]
    fn a_wait_of_two_counters() {
        let expected = [("dscnt", 2), ("loadcnt", 1)];
        assert_eq!(names_on(Gfx::Gfx12, "s_wait_loadcnt_dscnt 0x102"), expected);
        assert_eq!(names_on(Gfx::Gfx12, "s_wait_storecnt_dscnt 0x0"), [("dscnt", 0), ("storecnt", 0)]);
    }

    #[test]
    fn what_instructions_wait_for() {
        assert_eq!(names("s_waitcnt vmcnt(3) & lgkmcnt(0)"), [("vmcnt", 3), ("lgkmcnt", 0)]);
        assert_eq!(names("s_waitcnt expcnt(0)"), [("expcnt", 0)]);
        assert_eq!(names("s_waitcnt_vscnt null, 0x2"), [("vscnt", 2)]);
        assert_eq!(names_on(Gfx::Gfx12, "s_wait_loadcnt 0x0"), [("loadcnt", 0)]);
        assert_eq!(names("s_waitcnt_depctr 0xffe3"), []);
        assert_eq!(names("s_waitcnt 0x3f70"), [("vmcnt", 0)]);
        assert_eq!(names("v_mov_b32 v0, v1"), []);
    }

    /// Words of one dword each, but 2, which takes the next with it.
    #[test]
    fn instructions_start_at_the_place_itself() {
        let decoder = Decoder(Gpu::new("gfx1010").ok());
        // `s_nop 0`, and `s_mov_b32 s0` of a literal: the dword after it is not an instruction.
        let (one, two) = (0xbf80_0000, 0xbe80_03ff);
        let starts = |words: &[u32], at| -> Vec<usize> {
            decoder.run(true, words, at).into_iter().map(|(start, ..)| start).collect()
        };
        assert_eq!(starts(&[one, two, one, one], 3), [0, 1, 3]);
        // The first dword is the second one of an instruction that starts before.
        assert_eq!(starts(&[two, two, one, one], 1), [1, 3]);
        assert_eq!(starts(&[one], 0), [0]);
        assert_eq!(starts(&[], 0), [0; 0]);
    }
}
