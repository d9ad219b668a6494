//! Finished shaders of a compiler that is right: the checker is silent, and sees what is taken out of them.

mod data;

use data::{Binary, Counts, binaries, bytes, shown};
use unwedge_check::amdgcn::facts::{COUNTERS, Depctr, SA_SDST, VA_SDST, VA_SSRC, VA_VCC, VA_VDST, VM_VSRC};
use unwedge_check::amdgcn::{Entry, Level, Options, Report, check};
use unwedge_isa::amdgcn::codec::{self, Decoded};
use unwedge_isa::amdgcn::listing;

fn report(words: &[u32], binary: &Binary) -> Report {
    let entries = vec![Entry { at: 0, preset: Some(binary.preset) }];
    check(&bytes(words), &binary.gpu, &Options { entries, ..Options::default() })
}

#[test]
fn silent() {
    let mut told = Counts::default();
    let (mut faults, mut examples) = (0, 0);
    let all = binaries();
    for binary in &all {
        let report = report(&binary.words, binary);
        assert!(report.complete, "{}", binary.name);
        for finding in &report.findings {
            let level = format!("{:?}", finding.level);
            told.add(format!("{level} {} {:?}", finding.rule.info().name, binary.gpu.generation()));
            if finding.level == Level::Error {
                faults += 1;
                examples += 1;
                if examples <= shown() {
                    println!("{}: {finding:?}", binary.name);
                }
            }
        }
    }
    println!("{} shaders, {faults} faults", all.len());
    told.show("told");
    assert_eq!(faults, 0);
}

/// What is taken out: its name, and the dword.
fn protections(binary: &Binary) -> Vec<(&'static str, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < binary.words.len() {
        let Some(Decoded { inst, dwords }) = codec::decode(&binary.words[at..], &binary.gpu) else { break };
        let name = inst.row().name;
        let depctr = name == "s_waitcnt_depctr";
        if name == "s_nop"
            || depctr
            || name.starts_with("s_waitcnt")
            || name.starts_with("s_wait_") && name.contains("cnt")
        {
            found.push((name, at));
        }
        at += usize::from(dwords);
    }
    found
}

/// Whether `s_nop`s from here on end where a line of the instruction cache begins, which a branch goes back to.
fn is_padding(binary: &Binary, at: usize) -> bool {
    let nops = binary.words[at..].iter().take_while(|&&word| word == codec::NOP).count();
    let end = at + nops;
    let (mut from, mut found) = (0, false);
    while from < binary.words.len() {
        let Some(Decoded { inst, dwords }) = codec::decode(&binary.words[from..], &binary.gpu) else { break };
        found |= from >= end && listing::target(&inst, from, dwords.into()) == Some(end);
        from += usize::from(dwords);
    }
    nops > 0 && end.is_multiple_of(16) && found
}

/// The words without one, branches going where they went.
fn without(binary: &Binary, gone: usize) -> Vec<u32> {
    let mut words = binary.words.clone();
    let mut at = 0;
    while at < words.len() {
        let Some(Decoded { inst, dwords }) = codec::decode(&words[at..], &binary.gpu) else { break };
        let size = usize::from(dwords);
        if let Some(target) = listing::target(&inst, at, size) {
            let moved = |place: usize| place as i64 - i64::from(place > gone);
            let distance = moved(target) - moved(at + size);
            words[at] = words[at] & 0xffff_0000 | u32::from(distance as i16 as u16);
        }
        at += size;
    }
    words.remove(gone);
    words
}

#[test]
fn taken_out() {
    let mut counts = Counts::default();
    let (mut needed, mut seen, mut there, mut examples) = (0, 0, 0, 0);
    for binary in binaries() {
        let whole = report(&binary.words, &binary);
        let spare: Vec<u32> =
            whole.findings.iter().filter(|f| f.level == Level::Speed).map(|f| f.at).collect();
        for (name, at) in protections(&binary) {
            let generation = binary.gpu.generation();
            if name == "s_nop" && is_padding(&binary, at) {
                counts.add(format!("{name} {generation:?}: before a loop that is aligned"));
                continue;
            }
            if spare.contains(&(4 * at as u32)) {
                counts.add(format!("{name} {generation:?}: told to be spare"));
                continue;
            }
            needed += 1;
            let report = report(&without(&binary, at), &binary);
            let place = 4 * at as u32;
            if report.findings.iter().any(|f| f.level == Level::Error) {
                seen += 1;
                let here = report
                    .faults()
                    .any(|f| f.at == place || f.path.iter().any(|p| *p <= place) && f.at >= place);
                there += usize::from(here);
                counts.add(format!("{name} {generation:?}: seen{}", if here { "" } else { " elsewhere" }));
            } else {
                counts.add(format!("{name} {generation:?}: not seen"));
                examples += 1;
                if examples <= shown() {
                    println!("{}: nothing without {name} at {place:#x}", binary.name);
                }
            }
        }
    }
    counts.show("taken out");
    println!("{needed} taken out, {seen} seen, {there} at their place");
    assert!(there * 1000 >= needed * 998);
}

/// A protection that says less than it did.
struct Weaker {
    /// What became weaker, and by how much.
    what: String,
    /// The counter of which less is waited for.
    counter: Option<&'static str>,
    /// The first dword of the instruction.
    word: u32,
}

/// Fields of `s_waitcnt_depctr`.
const FIELDS: [(&str, Depctr); 6] = [
    ("sa_sdst", SA_SDST),
    ("va_vcc", VA_VCC),
    ("vm_vsrc", VM_VSRC),
    ("va_ssrc", VA_SSRC),
    ("va_sdst", VA_SDST),
    ("va_vdst", VA_VDST),
];

/// One field of a protection at a time: it waits for one more to be left, or not at all; `s_nop` for one state less.
fn weaker(binary: &Binary, name: &str, at: usize) -> Vec<Weaker> {
    let (word, on) = (binary.words[at], |gens: u16| gens >> binary.gpu.generation() as u16 & 1 != 0);
    let mut all = Vec::new();
    if name == "s_nop" && word & 15 > 0 {
        all.push(Weaker { what: "one state less".to_owned(), counter: None, word: word - 1 });
    }
    for c in COUNTERS.iter().filter(|c| c.instruction == name && on(c.gens)) {
        let bits = || c.bits.iter().enumerate();
        let most = (1 << c.bits.len()) - 1;
        let value = bits().fold(0, |v, (to, from)| v | (word >> from & 1) << to);
        for (how, to) in [("one more", value + 1), ("not at all", most)] {
            if value < most && (how == "not at all" || to < most) {
                let clear = bits().fold(word, |word, (_, from)| word & !(1 << from));
                let word = bits().fold(clear, |word, (bit, from)| word | (to >> bit & 1) << from);
                all.push(Weaker { what: format!("{} {how}", c.name), counter: Some(c.name), word });
            }
        }
    }
    for (field, depctr) in FIELDS {
        let mask = u32::from(depctr.mask);
        if name == "s_waitcnt_depctr" && on(depctr.gens) && word & mask == 0 {
            let lowest = mask & mask.wrapping_neg();
            all.push(Weaker { what: format!("{field} not at all"), counter: None, word: word | mask });
            if lowest != mask {
                all.push(Weaker { what: format!("{field} one more"), counter: None, word: word | lowest });
            }
        }
    }
    all
}

#[test]
fn weakened() {
    let mut counts = Counts::default();
    let (mut needed, mut there, mut examples) = (0, 0, 0);
    for mut binary in binaries() {
        let whole = report(&binary.words, &binary);
        for (name, at) in protections(&binary) {
            for weaker in weaker(&binary, name, at) {
                let place = 4 * at as u32;
                let generation = binary.gpu.generation();
                let mut add = |how: &str| counts.add(format!("{name} {} {generation:?}: {how}", weaker.what));
                let spare = |f: &&unwedge_check::amdgcn::Finding| f.level == Level::Speed && f.at == place;
                if whole.findings.iter().any(|f| spare(&f)) {
                    add("told to be spare");
                    continue;
                }
                needed += 1;
                let was = std::mem::replace(&mut binary.words[at], weaker.word);
                let report = report(&binary.words, &binary);
                binary.words[at] = was;
                let here = report.faults().filter(|f| f.level == Level::Error).any(|f| {
                    let about = f.need.is_none_or(|need| weaker.counter.is_none_or(|c| c == need.counter));
                    about && f.at >= place && (f.at == place || f.path.iter().any(|p| *p <= place))
                });
                there += usize::from(here);
                add(if here { "seen" } else { "not seen" });
                if !here {
                    examples += 1;
                    if examples <= shown() {
                        println!("{}: nothing with {name} {} at {place:#x}", binary.name, weaker.what);
                    }
                }
            }
        }
    }
    counts.show("weakened");
    println!("{needed} weakened, {there} seen at their place");
    assert!(there * 1000 >= needed * 998);
}
