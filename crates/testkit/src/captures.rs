//! Captures that are broken, or made to cost much.
//!
//! Deterministic: the arguments alone decide.

use crate::hostile::Maker;
use crate::mutate::Rng;
use crate::pack;
use crate::pm4;
use crate::rd::{self, CaptureBuilder};
use unwedge_capture::rd::RdSectionKind;

/// A GPU of each generation.
pub const GPUS: [u32; 6] = [220, 330, 430, 530, 630, 740];

/// A whole capture for each generation.
pub fn variety() -> Vec<Vec<u8>> {
    GPUS.map(|gpu| rd::capture(gpu, 2)).into()
}

/// A section with its header.
const HEADER: usize = 8;

/// One way to break a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The end is cut off, anywhere.
    Truncate,
    /// The end is cut off behind a section.
    TruncateAtSection,
    /// Single bits flipped.
    FlipBits,
    /// A section stands elsewhere.
    MoveSection,
    /// A section stands there twice.
    DuplicateSection,
    /// A section is gone.
    DeleteSection,
    /// Two sections change places.
    SwapSections,
    /// A section claims to be of another length.
    ChangeLength,
    /// A section is of another kind.
    ChangeKind,
    /// A dword anywhere is another one.
    ChangeWord,
    /// A dword is as large as it gets.
    HugeWord,
    /// Bytes in between.
    InsertBytes,
    /// Another capture behind.
    Concatenate,
}

impl Mutation {
    /// Every mutation.
    pub const ALL: [Mutation; 13] = [
        Mutation::Truncate,
        Mutation::TruncateAtSection,
        Mutation::FlipBits,
        Mutation::MoveSection,
        Mutation::DuplicateSection,
        Mutation::DeleteSection,
        Mutation::SwapSections,
        Mutation::ChangeLength,
        Mutation::ChangeKind,
        Mutation::ChangeWord,
        Mutation::HugeWord,
        Mutation::InsertBytes,
        Mutation::Concatenate,
    ];

    /// Those that need no sections.
    pub const OF_BYTES: [Mutation; 5] = [
        Mutation::Truncate,
        Mutation::FlipBits,
        Mutation::ChangeWord,
        Mutation::HugeWord,
        Mutation::InsertBytes,
    ];

    /// The capture, broken in this way.
    pub fn apply(self, capture: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut out = capture.to_vec();
        let mut sections = sections(capture);
        let at = rng.below(sections.len());
        match self {
            Mutation::Truncate => out.truncate(rng.below(capture.len() + 1)),
            Mutation::TruncateAtSection => out = sections[..at].concat(),
            Mutation::FlipBits => {
                for _ in 0..=rng.below(16) {
                    let at = rng.below(out.len());
                    let bit = rng.below(8);
                    if let Some(byte) = out.get_mut(at) {
                        *byte ^= 1 << bit;
                    }
                }
            }
            Mutation::MoveSection | Mutation::DuplicateSection | Mutation::DeleteSection => {
                let Some(&section) = sections.get(at) else { return out };
                if self != Mutation::DuplicateSection {
                    sections.remove(at);
                }
                if self != Mutation::DeleteSection {
                    sections.insert(rng.below(sections.len() + 1), section);
                }
                out = sections.concat();
            }
            Mutation::SwapSections => {
                let other = rng.below(sections.len());
                if !sections.is_empty() {
                    sections.swap(at, other);
                }
                out = sections.concat();
            }
            Mutation::ChangeKind | Mutation::ChangeLength => {
                let start: usize = sections[..at].iter().map(|section| section.len()).sum();
                let word = match (self, rng.below(4)) {
                    (Mutation::ChangeKind, _) => rng.below(24) as u32,
                    (_, 0) => 0,
                    (_, 1) => u32::MAX,
                    (_, 2) => rng.below(64) as u32,
                    _ => rng.next_u64() as u32 >> rng.below(32),
                };
                let start = if self == Mutation::ChangeKind { start } else { start + 4 };
                put(&mut out, start, word);
            }
            Mutation::ChangeWord | Mutation::HugeWord => {
                for _ in 0..=rng.below(4) {
                    let word = match (self, rng.below(3)) {
                        (Mutation::HugeWord, shift) => u32::MAX >> shift,
                        (_, 0) => rng.below(256) as u32,
                        // An address that is written somewhere, perhaps of a buffer.
                        (_, 1) => word(&out, 4 * rng.below(out.len() / 4)),
                        _ => rng.next_u64() as u32,
                    };
                    let at = 4 * rng.below(out.len() / 4);
                    put(&mut out, at, word);
                }
            }
            Mutation::InsertBytes => {
                let at = rng.below(out.len() + 1);
                let bytes = [0_u8, 0xff, 1, 12, 3, 6][rng.below(6)];
                out.splice(at..at, vec![bytes; 1 + rng.below(16)]);
            }
            Mutation::Concatenate => {
                let other = rng.pick(&GPUS).copied().unwrap_or(630);
                out.extend(rd::capture(other, 1));
            }
        }
        out
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

fn put(bytes: &mut [u8], at: usize, word: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// The sections as their headers say; what is behind the last whole one is one more.
fn sections(mut capture: &[u8]) -> Vec<&[u8]> {
    let mut sections = Vec::new();
    while !capture.is_empty() {
        let length = (word(capture, 4) as usize).saturating_add(HEADER).min(capture.len());
        let (section, rest) = capture.split_at(length);
        sections.push(section);
        capture = rest;
    }
    sections
}

/// The capture, broken by one to four mutations.
pub fn mutate(capture: &[u8], seed: u64) -> Vec<u8> {
    some_of(&Mutation::ALL, capture, seed)
}

/// Any bytes, broken by one to four mutations that need no sections: a compressed capture.
pub fn mutate_bytes(bytes: &[u8], seed: u64) -> Vec<u8> {
    some_of(&Mutation::OF_BYTES, bytes, seed)
}

fn some_of(mutations: &[Mutation], bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        let mutation = rng.pick(mutations).copied().unwrap_or(Mutation::Truncate);
        out = mutation.apply(&out, &mut rng);
    }
    out
}

/// Captures that are small until they are unpacked: of `size` bytes, nearly all of them zeros of one buffer that is
/// there again and again.
pub fn bombs(size: usize) -> Vec<(&'static str, Vec<u8>)> {
    const BUFFER: usize = 64 << 10;
    let mut capture = CaptureBuilder::new(630, "bomb\0");
    for _ in 0..size / BUFFER {
        capture = capture.buffer(BUFFERS, &[0; BUFFER / 4]).submit(BUFFERS, 4);
    }
    let capture = capture.bytes();
    let packed = pack::gzip(&capture);
    vec![
        ("a gzip bomb in a gzip", pack::gzip(&packed)),
        ("a gzip bomb", packed),
        ("a zstd bomb", pack::zstd(&capture)),
        ("a xz bomb", pack::xz(&capture)),
    ]
}

/// A capture whose sections are whole and whose command streams are hostile: they call each other and themselves, count
/// to four billion, name memory that is elsewhere. Buffers overlap and claim sizes.
pub fn hostile(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ 0x6c62_272e_07bb_0142);
    let gpu = rng.pick(&GPUS).copied().unwrap_or(630);
    let wide = gpu >= 500;
    let first = if wide { 0x1_1000_0000 } else { 0x1000_0000 };
    let count = 1 + rng.below(12) as u64;
    let apart = [0x10_0000, 0x1000, 0x40, 4][rng.below(4)];
    let buffers: Vec<u64> = (0..count).map(|i| first + i * apart).collect();
    let mut maker = Maker { rng: &mut rng, wide, buffers: buffers.clone() };
    let mut capture = CaptureBuilder::new(gpu, "hostile\0");
    for _ in 0..1 + maker.rng.below(4) {
        match maker.rng.below(12) {
            0 => capture = capture.section(RdSectionKind::ChipId, &u64::from(maker.number()).to_le_bytes()),
            1 => {
                let other = maker.rng.pick(&GPUS).copied().unwrap_or(gpu);
                capture = capture.section(RdSectionKind::GpuId, &other.to_le_bytes());
            }
            2 => capture = capture.section(RdSectionKind::Cmd, &vec![b'n'; maker.rng.below(4096)]),
            3 => capture = capture.section(RdSectionKind::Test, b"\xff\xfe\x1b[31m\0"),
            _ => {}
        }
        for &iova in &buffers {
            let packets = maker.rng.below(48);
            let contents = maker.stream(packets);
            capture = match maker.rng.below(4) {
                0 => capture.claim(iova, maker.number(), &contents),
                _ => capture.buffer(iova, &contents),
            };
        }
        for _ in 0..1 + maker.rng.below(4) {
            let iova = maker.rng.pick(&buffers).copied().unwrap_or(first);
            let dwords = if maker.rng.below(2) == 0 { 1000 } else { maker.number() };
            capture = capture.submit(iova, dwords);
        }
    }
    capture.bytes()
}

/// Packets of a generation.
#[derive(Clone, Copy)]
struct Packets {
    wide: bool,
}

impl Packets {
    fn call(self, iova: u64, dwords: u32) -> Vec<u32> {
        match self.wide {
            true => pm4::indirect_buffer(iova, dwords),
            false => pm4::pkt3(pm4::CP_INDIRECT_BUFFER, &[iova as u32, dwords]),
        }
    }

    fn operation(self, opcode: u32, payload: &[u32]) -> Vec<u32> {
        if self.wide { pm4::pkt7(opcode, payload) } else { pm4::pkt3(opcode, payload) }
    }

    fn write(self, reg: u32, values: &[u32]) -> Vec<u32> {
        if self.wide { pm4::pkt4(reg, values) } else { pm4::pkt0(reg, values) }
    }

    fn draw(self) -> Vec<u32> {
        self.operation(pm4::CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3])
    }
}

const STREAM: u64 = 0x2000_0000;
const BUFFERS: u64 = 0x1000_0000;

/// Captures of about `size` bytes, each of which does one thing that costs much for its bytes, over and over.
pub fn expensive(size: usize) -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    for gpu in GPUS {
        for (name, make) in EXPENSIVE {
            let packets = Packets { wide: gpu >= 500 };
            let capture = make(CaptureBuilder::new(gpu, "expensive\0"), packets, size);
            out.push((format!("{name}, {gpu}"), capture.bytes()));
        }
    }
    out.push(("identities by turns".to_owned(), identities(size)));
    out
}

type Make = fn(CaptureBuilder, Packets, usize) -> CaptureBuilder;

const EXPENSIVE: [(&str, Make); 17] = [
    ("tiny submits, each with its buffer", |mut capture, p, size| {
        let draw = p.draw();
        for _ in 0..size / 72 {
            capture = capture.buffer(STREAM, &draw).submit(STREAM, draw.len() as u32);
        }
        capture
    }),
    ("submits with many buffers", |mut capture, p, size| {
        for _ in 0..size / (64 * 40) {
            for i in 0..64 {
                capture = capture.buffer(BUFFERS + i * 0x1000, &p.draw());
            }
            capture = capture.submit(BUFFERS, 4);
        }
        capture
    }),
    ("many submits that share many buffers", |mut capture, p, size| {
        for i in 0..size as u64 / 80 {
            capture = capture.buffer(BUFFERS + i * 0x1000, &p.draw());
        }
        for i in 0..size as u64 / 40 {
            capture = capture.submit(BUFFERS + i * 0x1000, 4);
        }
        capture
    }),
    ("buffers that overlap", |mut capture, p, size| {
        let contents = p.draw().repeat(16);
        for i in 0..size as u64 / 320 {
            capture = capture.buffer(BUFFERS + i * 4, &contents);
        }
        capture.submit(BUFFERS, 64)
    }),
    ("buffers without contents", |mut capture, _, size| {
        for i in 0..size as u64 / 20 {
            capture = capture.name(BUFFERS + i * 0x10, u32::MAX);
        }
        capture.submit(BUFFERS, 64)
    }),
    ("a buffer that calls itself", |mut capture, p, size| {
        let own = p.call(STREAM, 64);
        let stream = own.repeat(16);
        for _ in 0..size / (stream.len() * 4 + 48) {
            capture = capture.buffer(STREAM, &stream).submit(STREAM, stream.len() as u32);
        }
        capture
    }),
    ("buffers that call others many times", |mut capture, p, size| {
        let levels = 16;
        let calls = size / levels / 16;
        for level in 0..levels as u64 {
            let next = p.call(BUFFERS + (level + 1) * 0x100_0000, u32::MAX >> 12);
            capture = capture.buffer(BUFFERS + level * 0x100_0000, &next.repeat(calls));
        }
        capture.submit(BUFFERS, u32::MAX)
    }),
    ("every draw has many registers", |capture, p, size| {
        let mut stream = Vec::new();
        let registers = if p.wide { 0x8000_u32..0xc000 } else { 0x2000..0x2400 };
        for reg in registers.step_by(64) {
            stream.extend(p.write(reg, &[0x3f80_0001; 64]));
        }
        while stream.len() * 4 < size {
            stream.extend(p.draw());
        }
        capture.buffer(STREAM, &stream).submit(STREAM, stream.len() as u32)
    }),
    ("draws that all differ", |capture, p, size| {
        let mut stream = Vec::new();
        let reg = if p.wide { 0x8010 } else { 0x2080 };
        while stream.len() * 4 < size {
            stream.extend(p.write(reg, &[stream.len() as u32, !(stream.len() as u32)]));
            stream.extend(p.draw());
        }
        capture.buffer(STREAM, &stream).submit(STREAM, stream.len() as u32)
    }),
    ("state loaded from memory, over and over", |capture, p, size| {
        // Constants, textures, samplers and shaders by turns, as much of them as the word can say.
        let mut stream = Vec::new();
        for i in 0.. {
            let kind = [0x30_u32, 0x32, 0x34, 0x36][i % 4];
            let state = 0xffc0_0000 | (i as u32 & 0xf) << 18 | (i as u32 & 3) << 14;
            let address = BUFFERS as u32 | (i as u32 & 0x3ff) << 2;
            let payload = if p.wide { vec![state | 2 << 16, address, 0] } else { vec![state, address | 1] };
            stream.extend(p.operation(kind, &payload));
            stream.extend(p.draw());
            if stream.len() * 8 >= size {
                break;
            }
        }
        let contents: Vec<u32> = (0..size as u32 / 8).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        capture.buffer(BUFFERS, &contents).buffer(STREAM, &stream).submit(STREAM, stream.len() as u32)
    }),
    ("shaders everywhere in a large buffer, in many submits", |mut capture, p, size| {
        let noise: Vec<u32> = (0..size as u32 / 8).map(|i| i.wrapping_mul(0x9e37_79b9) >> 3).collect();
        let mut stream = Vec::new();
        for i in 0..size as u32 / 1024 {
            let address = BUFFERS as u32 + (i * 256) % (size as u32 / 2);
            for reg in [0x22d5, 0x22e1, 0xe5ac, 0xa81c, 0xa983, 0xa9b4] {
                if (reg > 0x7fff) <= p.wide {
                    stream.extend(p.write(reg, &[address, 0][..1 + usize::from(p.wide)]));
                }
            }
            stream.extend(p.draw());
        }
        capture = capture.buffer(BUFFERS, &noise).buffer(STREAM, &stream);
        for _ in 0..size / 80 {
            capture = capture.submit(STREAM, stream.len() as u32);
        }
        capture
    }),
    ("groups of state, each for every draw", |capture, p, size| {
        let group = p.write(if p.wide { 0x8010 } else { 0x2080 }, &[1; 64]);
        let mut stream = Vec::new();
        while stream.len() * 4 < size {
            let mut payload = Vec::new();
            for id in 0..31_u32 {
                payload.extend([id << 24 | 7 << 20 | group.len() as u32, BUFFERS as u32, 0]);
            }
            stream.extend(p.operation(0x43, &payload));
            for _ in 0..16 {
                stream.extend(p.draw());
            }
        }
        capture.buffer(BUFFERS, &group).buffer(STREAM, &stream).submit(STREAM, stream.len() as u32)
    }),
    ("large shaders that overlap, each for a draw", |mut capture, p, size| {
        let noise: Vec<u32> = (0..size as u32 / 8).map(|i| i.wrapping_mul(0x9e37_79b9) >> 3).collect();
        let mut stream = Vec::new();
        let lengths = [0x22df, 0x22ff, 0x22e5, 0x22ef, 0xa824, 0xab05];
        let starts = [0x22d5, 0x22e3, 0x22e1, 0x22eb, 0xa81c, 0xa983];
        for reg in lengths.into_iter().filter(|&reg| (reg > 0x7fff) == p.wide) {
            stream.extend(p.write(reg, &[size as u32 / 512]));
        }
        for i in 0..size as u32 / 200 {
            for reg in starts.into_iter().filter(|&reg| (reg > 0x7fff) == p.wide) {
                stream.extend(p.write(reg, &[BUFFERS as u32 + i * 16, 0][..1 + usize::from(p.wide)]));
            }
            stream.extend(p.draw());
        }
        capture = capture.buffer(BUFFERS, &noise).buffer(STREAM, &stream);
        for _ in 0..size / 320 {
            capture = capture.submit(STREAM, stream.len() as u32);
        }
        capture
    }),
    ("many registers, then many tiny submits", |mut capture, p, size| {
        let mut stream = Vec::new();
        let all = if p.wide { 0x400..0x3_ff00_u32 } else { 0x400..0x7f00 };
        for reg in all.step_by(64).take(size / 1024) {
            stream.extend(p.write(reg, &[0x3f80_0001; 64]));
        }
        stream.extend(p.draw());
        capture = capture.buffer(STREAM, &stream).submit(STREAM, stream.len() as u32);
        capture = capture.buffer(BUFFERS, &p.draw());
        for _ in 0..size / 40 {
            capture = capture.submit(BUFFERS, p.draw().len() as u32);
        }
        capture
    }),
    ("processes that all differ", |mut capture, _, size| {
        for i in 0..size / 40 {
            capture = capture.section(RdSectionKind::Cmd, format!("process-with-a-name/{i:08}").as_bytes());
            capture = capture.submit(STREAM, 0);
        }
        capture
    }),
    ("sections that all differ", |mut capture, _, size| {
        for i in 0..size / 8 {
            capture = capture.section(RdSectionKind::Unknown(0x100 + i as u32), &[]);
        }
        capture
    }),
    ("long texts", |mut capture, _, size| {
        for kind in
            [RdSectionKind::Test, RdSectionKind::Cmd, RdSectionKind::VertexShader, RdSectionKind::Unknown(99)]
        {
            capture = capture.section(kind, &vec![b'\x07'; size / 4]);
        }
        capture.submit(STREAM, 0)
    }),
];

/// Two GPUs by turns, each with a submit.
fn identities(size: usize) -> Vec<u8> {
    let mut capture = CaptureBuilder::new(630, "expensive\0");
    capture = capture.buffer(STREAM, &pm4::pkt7(pm4::CP_NOP, &[0]));
    for i in 0..size / 32 {
        let gpu: u32 = if i % 2 == 0 { 330 } else { 740 };
        capture = capture.section(RdSectionKind::GpuId, &gpu.to_le_bytes()).submit(STREAM, 2);
    }
    capture.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_capture::rd::{LiveMemory, LiveStep, RdReader};

    fn submits(capture: &[u8]) -> usize {
        let (mut reader, mut live, mut submits) = (RdReader::new(capture), LiveMemory::new(), 0);
        while let Some(section) = reader.next() {
            submits += usize::from(matches!(live.take(&section), LiveStep::Submit(_)));
        }
        assert!(reader.diagnostics().is_empty(), "{:?}", reader.diagnostics());
        submits
    }

    #[test]
    fn sections_of_hostile_captures_are_whole() {
        for seed in 0..200 {
            let capture = hostile(seed);
            assert_eq!(capture, hostile(seed));
            assert!(submits(&capture) > 0);
        }
        // Large enough for the least there can be of each: registers, a list of them, a draw.
        for (name, capture) in expensive(100_000) {
            let submitted = submits(&capture) > 0;
            assert!(submitted || name.starts_with("sections"), "{name}");
            assert!((50_000..400_000).contains(&capture.len()), "{name}: {}", capture.len());
        }
    }

    #[test]
    fn the_same_seed_breaks_the_same_way() {
        let capture = rd::capture(630, 1);
        assert_eq!(mutate(&capture, 7), mutate(&capture, 7));
        let changed = (0..200).filter(|&seed| mutate(&capture, seed) != capture).count();
        assert!(changed > 150, "{changed} of 200 seeds change the capture");
    }

    #[test]
    fn nothing_to_break_is_no_trouble() {
        for seed in 0..500 {
            for broken in [mutate, mutate_bytes] {
                broken(b"", seed);
                broken(b"\x03", seed);
            }
        }
    }
}
