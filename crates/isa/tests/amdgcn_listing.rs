//! Listings say of any words what the decoder and the text of one instruction say.

mod amdgcn;

use amdgcn::{GPUS, Numbers, gpu, instructions, variants};
use unwedge_isa::amdgcn::listing::{self, AmdListingOptions};
use unwedge_isa::amdgcn::{Gpu, codec, text};

/// The note on words whose unused bits are not zero.
const UNUSED: &str = " // bits that mean nothing are set";

/// What a listing of words should be, and where the lines of branches are.
fn expected(words: &[u32], gpu: &Gpu) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let mut line = "\t".to_owned();
        match codec::decode_executed(&words[at..], gpu) {
            Some(decoded) => {
                text::write(&decoded.inst, gpu, &mut line);
                at += usize::from(decoded.dwords);
                if listing::target(&decoded.inst, 1 << 20, 0).is_some() {
                    line.clear();
                }
            }
            None => {
                line = format!("\t.long 0x{:08x}", words[at]);
                at += 1;
            }
        }
        lines.push(line);
    }
    lines
}

/// Compares; branches only by their number.
fn compare(words: &[u32], gpu: &Gpu) {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut out = String::new();
    listing::write(&code, gpu, &AmdListingOptions::default(), &mut out, &mut |_, _| ());
    // A literal that could be an inline constant is listed as dwords, with the text after them.
    let own = |line: &str| {
        let line = line.trim_end_matches(UNUSED);
        line.split_once(" // ").map_or(line.to_owned(), |(_, text)| format!("\t{text}"))
    };
    let lines: Vec<String> = out.lines().filter(|line| line.starts_with('\t')).map(own).collect();
    let expected = expected(words, gpu);
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(expected.is_empty() || line == expected, "{}: {line}, not {expected}", gpu.name());
    }
    assert_eq!(lines.len(), expected.len(), "{}", gpu.name());
}

#[test]
fn listings_say_what_instructions_say() {
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        let mut numbers = Numbers(31);
        let mut words = Vec::new();
        for (number, _) in variants(&gpu) {
            for (_, own) in instructions(number, &gpu, &mut numbers, 60, 12) {
                words.extend(&own);
                // A neighbour of it: one bit is another.
                let first = words.len();
                words.extend(&own);
                let at = first + numbers.next(own.len() as u64) as usize;
                words[at] ^= 1 << numbers.next(32);
            }
        }
        compare(&words, &gpu);
        let any: Vec<u32> = (0..20_000).map(|_| numbers.next(1 << 32) as u32).collect();
        compare(&any, &gpu);
        // What ends in an instruction's midst.
        for length in 1..4 {
            any.chunks_exact(length).take(500).for_each(|words| compare(words, &gpu));
        }
    }
}
