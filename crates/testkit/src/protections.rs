//! What protects AMD machine code, waits and `s_nop`, taken out of it or made weaker: for the tests of the checker and of the
//! emulator. Never: a judgement on what a protection is needed for.

use unwedge_isa::amdgcn::codec::{self, SizedInst};
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::{self, DepctrField, SA_SDST, VA_SDST, VA_SSRC, VA_VCC, VA_VDST, VM_VSRC};
use unwedge_isa::amdgcn::{Gpu, Opcode, listing};

/// What is taken out, and its dword.
pub fn protections(words: &[u32], gpu: &Gpu) -> Vec<(Opcode, usize)> {
    let (mut at, mut found) = (0, Vec::new());
    while at < words.len() {
        let Some(SizedInst { inst, dwords }) = codec::decode(&words[at..], gpu) else { break };
        let row = inst.row();
        if matches!(row.role, Role::Nop | Role::Depctr | Role::Wait) {
            found.push((row.opcode, at));
        }
        at += usize::from(dwords);
    }
    found
}

/// Dwords of a line of the instruction cache, where ACO lets loops begin.
pub const LINE: usize = 16;
/// Dwords that LLVM 23 aligns loops to on gfx950.
pub const LINE_GFX950: usize = 8;

/// Whether `s_nop`s from here on end at a multiple of `line` dwords, which a branch goes back to.
pub fn is_padding(words: &[u32], gpu: &Gpu, at: usize, line: usize) -> bool {
    let nops = words[at..].iter().take_while(|&&word| word == codec::NOP).count();
    let end = at + nops;
    let (mut from, mut found) = (0, false);
    while from < words.len() {
        let Some(SizedInst { inst, dwords }) = codec::decode(&words[from..], gpu) else { break };
        found |= from >= end && listing::target(&inst, from, dwords.into()) == Some(end);
        from += usize::from(dwords);
    }
    nops > 0 && end.is_multiple_of(line) && found
}

/// The words without one, branches going where they went.
pub fn without(words: &[u32], gpu: &Gpu, gone: usize) -> Vec<u32> {
    let mut words = words.to_vec();
    let mut at = 0;
    while at < words.len() {
        let Some(SizedInst { inst, dwords }) = codec::decode(&words[at..], gpu) else { break };
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
const FIELDS: [DepctrField; 6] = [SA_SDST, VA_VCC, VM_VSRC, VA_SSRC, VA_SDST, VA_VDST];

/// One field of a protection at a time: it waits for one more to be left, or not at all; `s_nop` for one state less.
pub fn weaker(words: &[u32], gpu: &Gpu, opcode: Opcode, at: usize) -> Vec<Weaker> {
    let word = words[at];
    let (high, immediate) = (word & 0xffff_0000, word as u16);
    let mut all = Vec::new();
    if opcode == Opcode::s_nop && word & 15 > 0 {
        all.push(Weaker { what: "one state less".to_owned(), counter: None, word: word - 1 });
    }
    for wait in waits::fields(opcode, gpu.generation()) {
        let (field, name) = (wait.field, wait.field.name);
        let (value, most) = (field.get(immediate), field.most());
        for (how, to) in [("one more", value + 1), ("not at all", most)] {
            if value < most && (how == "not at all" || to < most) {
                let word = high | u32::from(immediate & !field.mask() | field.put(to));
                all.push(Weaker { what: format!("{name} {how}"), counter: Some(name), word });
            }
        }
    }
    for depctr in FIELDS {
        let (name, mask) = (depctr.field.name.trim_start_matches("depctr_"), depctr.field.mask());
        if opcode == Opcode::s_waitcnt_depctr && depctr.waited(immediate, gpu.generation()) {
            let (lowest, mask) = (u32::from(mask & mask.wrapping_neg()), u32::from(mask));
            all.push(Weaker { what: format!("{name} not at all"), counter: None, word: word | mask });
            if lowest != mask {
                all.push(Weaker { what: format!("{name} one more"), counter: None, word: word | lowest });
            }
        }
    }
    all
}
