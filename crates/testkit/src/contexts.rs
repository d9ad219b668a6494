//! Images of Intel contexts, and generators of broken ones.

use crate::mutate::Rng;

/// Dwords of a page.
const PAGE: usize = 1024;

/// An image around a register page: alone, or with a status page before it and some state behind.
pub fn context(registers: &[u32], seed: u64) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    let mut image = Vec::new();
    if rng.below(3) != 0 {
        image.resize(PAGE, 0);
    }
    image.extend_from_slice(registers);
    if rng.below(2) != 0 {
        image.extend((0..2 * PAGE).map(|_| rng.next_u64() as u32));
    }
    image
}

/// The image, broken by one to four changes that memory suffers.
pub fn mutate(image: &[u32], seed: u64) -> Vec<u32> {
    const FILLS: [u32; 5] = [0x5a5a_5a5a, 0x6b6b_6b6b, 0xdead_beef, u32::MAX, 0];
    let mut rng = Rng::new(seed ^ 0x5bd1_e995);
    let mut out = image.to_vec();
    for _ in 0..=rng.below(4) {
        let (at, length) = (rng.below(out.len()), rng.below(64) + 1);
        let end = (at + length).min(out.len());
        match rng.below(9) {
            0 => out.truncate(at),
            1 => {
                let fill = rng.pick(&FILLS).copied().unwrap_or(0);
                out[at..end].fill(fill);
            }
            2 => out[at..end].iter_mut().for_each(|w| *w = rng.next_u64() as u32),
            3 => {
                let to = rng.below(out.len() - (end - at) + 1);
                out.copy_within(at..end, to);
            }
            4 => {
                out.splice(at..at, [0; 3]);
            }
            5 => {
                out.drain(at..end);
            }
            6 => out.iter_mut().skip(at).take(1).for_each(|w| *w ^= 1 << rng.below(32)),
            7 => {
                let text = u32::from_le_bytes(*b"text");
                out[at..end].iter_mut().for_each(|w| *w = text ^ (rng.next_u64() as u32 & 0x0707_0707));
            }
            _ => out.rotate_right(at),
        }
    }
    out
}
