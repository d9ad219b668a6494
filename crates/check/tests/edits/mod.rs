//! What protects code, taken out of it or made weaker. Used by the emulator's tests, too.

use unwedge_check::amdgcn::facts::{COUNTERS, Depctr, SA_SDST, VA_SDST, VA_SSRC, VA_VCC, VA_VDST, VM_VSRC};
use unwedge_isa::amdgcn::codec::{self, Decoded};
use unwedge_isa::amdgcn::{Gpu, listing};

/// What is taken out: its name, and the dword.
pub fn protections(words: &[u32], gpu: &Gpu) -> Vec<(&'static str, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < words.len() {
        let Some(Decoded { inst, dwords }) = codec::decode(&words[at..], gpu) else { break };
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
pub fn is_padding(words: &[u32], gpu: &Gpu, at: usize) -> bool {
    let nops = words[at..].iter().take_while(|&&word| word == codec::NOP).count();
    let end = at + nops;
    let (mut from, mut found) = (0, false);
    while from < words.len() {
        let Some(Decoded { inst, dwords }) = codec::decode(&words[from..], gpu) else { break };
        found |= from >= end && listing::target(&inst, from, dwords.into()) == Some(end);
        from += usize::from(dwords);
    }
    nops > 0 && end.is_multiple_of(16) && found
}

/// The words without one, branches going where they went.
pub fn without(words: &[u32], gpu: &Gpu, gone: usize) -> Vec<u32> {
    let mut words = words.to_vec();
    let mut at = 0;
    while at < words.len() {
        let Some(Decoded { inst, dwords }) = codec::decode(&words[at..], gpu) else { break };
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

/// A protection that says less than it did.
pub struct Weaker {
    /// What became weaker, and by how much.
    pub what: String,
    /// The counter of which less is waited for.
    pub counter: Option<&'static str>,
    /// The first dword of the instruction.
    pub word: u32,
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
pub fn weaker(words: &[u32], gpu: &Gpu, name: &str, at: usize) -> Vec<Weaker> {
    let (word, on) = (words[at], |gens: u16| gens >> gpu.generation() as u16 & 1 != 0);
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
