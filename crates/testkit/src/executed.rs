//! Captures whose sections stay whole while what is executed of them is broken: packets, addresses, sizes, code of shaders.
//!
//! Deterministic: the arguments alone decide.

use crate::mutate::Rng;
use crate::pm4;
use unwedge_capture::rd::{RdReader, RdSectionKind, RdWriter};

/// A section that is taken apart.
struct Section {
    kind: RdSectionKind,
    words: Vec<u32>,
    /// Bytes after the last whole dword.
    rest: Vec<u8>,
}

/// Single submits of a capture with the buffers of their set, and what names the GPU before each.
pub fn submits(capture: &[u8]) -> Vec<Vec<u8>> {
    let (mut heads, mut set, mut sets) = (Vec::new(), Vec::new(), Vec::new());
    let mut submitted = false;
    let mut reader = RdReader::new(capture);
    while let Some(section) = reader.next() {
        let part = (section.kind, section.payload.to_vec());
        match section.kind {
            RdSectionKind::GpuId | RdSectionKind::ChipId | RdSectionKind::Cmd => heads.push(part),
            kind => {
                if std::mem::take(&mut submitted) && kind == RdSectionKind::GpuAddr {
                    sets.push(std::mem::take(&mut set));
                }
                submitted |= kind == RdSectionKind::CmdStreamAddr;
                set.push(part);
            }
        }
    }
    sets.push(set);
    heads.truncate(8);
    let write = |set: &Vec<(RdSectionKind, Vec<u8>)>| {
        let mut writer = RdWriter::new(Vec::new());
        // Memory takes everything.
        heads.iter().chain(set).for_each(|(kind, payload)| drop(writer.section(*kind, payload)));
        writer.into_inner()
    };
    sets.iter()
        .filter(|set| set.iter().any(|(kind, _)| *kind == RdSectionKind::CmdStreamAddr))
        .map(write)
        .collect()
}

/// The same capture with one to eight things broken that the GPU executes or reads.
pub fn mutate(capture: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ 0x2545_f491_4f6c_dd1d);
    let mut sections = Vec::new();
    let mut reader = RdReader::new(capture);
    while let Some(section) = reader.next() {
        let chunks = section.payload.chunks_exact(4);
        let rest = chunks.remainder().to_vec();
        let words =
            chunks.map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect();
        sections.push(Section { kind: section.kind, words, rest });
    }
    let addresses: Vec<[u32; 2]> = sections
        .iter()
        .filter(|section| section.kind == RdSectionKind::GpuAddr)
        .filter_map(|section| Some([*section.words.first()?, section.words.get(2).copied().unwrap_or(0)]))
        .collect();
    for _ in 0..=rng.below(8) {
        let wanted = match rng.below(12) {
            0 => RdSectionKind::GpuAddr,
            1 => RdSectionKind::CmdStreamAddr,
            _ => RdSectionKind::BufferContents,
        };
        let of_kind: Vec<usize> = (0..sections.len())
            .filter(|&n| sections[n].kind == wanted && !sections[n].words.is_empty())
            .collect();
        let Some(&at) = rng.pick(&of_kind) else { continue };
        break_words(&mut sections[at].words, wanted, &addresses, &mut rng);
    }
    let mut writer = RdWriter::new(Vec::new());
    for Section { kind, words, rest } in &sections {
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| word.to_le_bytes()).chain(rest.iter().copied()).collect();
        // As above.
        let _ = writer.section(*kind, &bytes);
    }
    writer.into_inner()
}

/// A dword that is not zero, if a few tries find one: most of a buffer is empty.
fn place(words: &[u32], rng: &mut Rng) -> usize {
    let tries: Vec<usize> = (0..32).map(|_| rng.below(words.len())).collect();
    tries.iter().copied().find(|&at| words[at] != 0).or(tries.first().copied()).unwrap_or(0)
}

fn break_words(words: &mut [u32], kind: RdSectionKind, addresses: &[[u32; 2]], rng: &mut Rng) {
    if kind != RdSectionKind::BufferContents {
        // Address or size, which follows it.
        let at = rng.below(words.len().min(3));
        words[at] = odd_number(words[at], rng);
        return;
    }
    let at = match rng.below(4) {
        0 => {
            let headers: Vec<usize> =
                (0..words.len()).filter(|&at| matches!(words[at] >> 28, 4 | 7)).take(4096).collect();
            rng.pick(&headers).copied().unwrap_or(0)
        }
        _ => place(words, rng),
    };
    match rng.below(8) {
        // Another packet, of the same length or of another one.
        0 => words[at] = pm4::pkt7(rng.below(0x80) as u32, &vec![0; rng.below(0x20)])[0],
        1 => {
            let count = (words[at] & 0x3fff) as usize;
            words[at] = pm4::pkt7(rng.below(0x80) as u32, &vec![0; count])[0];
        }
        2 => words[at] = pm4::pkt4(rng.below(0x1_0000) as u32, &vec![0; rng.below(0x10)])[0],
        // The address of something else, and near it.
        3 => {
            let [low, high] = rng.pick(addresses).copied().unwrap_or([0, 1]);
            let near = [0, 4, 0x1000, u32::MAX - 3][rng.below(4)];
            words[at] = low.wrapping_add(near);
            if let Some(next) = words.get_mut(at + 1) {
                *next = high;
            }
        }
        // A stretch is somewhere else, too: code in packets, packets in code.
        4 => {
            let (from, count) = (place(words, rng), 1 + rng.below(32));
            for n in 0..count {
                if from + n < words.len() && at + n < words.len() {
                    words[at + n] = words[from + n];
                }
            }
        }
        5 => words[at] ^= 1 << rng.below(32),
        6 => words[at] = rng.next_u64() as u32,
        _ => words[at] = odd_number(words[at], rng),
    }
}

/// A number at an edge, or near the one that it was.
fn odd_number(was: u32, rng: &mut Rng) -> u32 {
    let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0xffff, 0x1_0000];
    match rng.below(3) {
        0 => rng.pick(&edges).copied().unwrap_or(0),
        1 => was.wrapping_add(rng.below(9) as u32).wrapping_sub(4),
        _ => was ^ 1 << rng.below(32),
    }
}
