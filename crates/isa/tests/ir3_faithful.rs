//! Text that has to assemble to the same words: whether a word's text tells all its bits is remembered for words of its
//! shape, and must be what the assembler says of each.

use unwedge_isa::ir3::{self, Faithful, asm::Assembler};
use unwedge_isa::table::generate;
use unwedge_isa::tables::{IR3, IR3_INSTRUCTION};

const GPUS: [u32; 5] = [330, 420, 530, 630, 730];

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

struct Check {
    gpu_id: u32,
    faithful: Faithful,
    assembler: Assembler,
    /// Words whose text tells all bits, and others.
    count: [u64; 2],
}

impl Check {
    fn new(gpu_id: u32) -> Check {
        Check { gpu_id, faithful: Faithful::new(gpu_id), assembler: Assembler::new(gpu_id), count: [0; 2] }
    }

    fn word(&mut self, word: u64) {
        let mut text = Vec::new();
        ir3::write(word, self.gpu_id, &mut text);
        let text = String::from_utf8(text).unwrap();
        let tells = self.assembler.instruction(&text) == Ok(word);
        let expected = if tells { text } else { format!("raw 0x{word:016X}\t; {text}") };
        let mut line = Vec::new();
        self.faithful.write(word, &mut line);
        assert_eq!(String::from_utf8(line).unwrap(), expected, "{word:016x} {}", self.gpu_id);
        assert_eq!(self.assembler.instruction(&expected), Ok(word));
        self.count[usize::from(!tells)] += 1;
    }
}

/// Of every instruction, words with random fields, and with each a few that differ from it in few bits: those are of
/// its shape, or nearly.
#[test]
fn every_line_assembles_to_its_word() {
    let (words, variants) = if cfg!(debug_assertions) { (6, 6) } else { (150, 12) };
    for gpu_id in GPUS {
        let mut check = Check::new(gpu_id);
        let mut state = u64::from(gpu_id);
        for leaf in IR3.leaves(IR3_INSTRUCTION) {
            for word in generate::words(IR3, leaf, 3, words) {
                check.word(word as u64);
                for _ in 0..variants {
                    check.word(word as u64 ^ random(&mut state) & random(&mut state) & random(&mut state));
                }
            }
        }
        println!("{gpu_id}: {} as text, {} raw", check.count[0], check.count[1]);
        assert!(check.count.iter().all(|&count| count > 1000));
    }
}

/// The same words in another order, so that others are asked of first.
#[test]
fn the_order_of_words_does_not_matter() {
    let leaves: Vec<_> = IR3.leaves(IR3_INSTRUCTION).collect();
    let mut check = Check::new(630);
    for seed in (0..if cfg!(debug_assertions) { 5 } else { 200 }).rev() {
        for &leaf in leaves.iter().rev() {
            generate::words(IR3, leaf, seed, 2).for_each(|word| check.word(word as u64));
        }
    }
}

#[test]
fn a_word_whose_text_is_not_enough_is_raw() {
    let mut out = Vec::new();
    let mut faithful = Faithful::new(630);
    for word in [0, 1 << 43, 0xdead_beef_dead_beef, 0x4010_0007_6801_0008] {
        faithful.write(word, &mut out);
        out.push(b'\n');
    }
    let expected =
        "nop\nraw 0x0000080000000000\t; nop\nraw 0xDEADBEEFDEADBEEF\nadd.f r1.w, r2.x, (neg)(0.5)\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
