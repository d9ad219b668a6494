//! Dumps made to cost much: command streams that call each other and themselves, loops with huge counts, buffers that
//! claim to be huge, state of any size.
//!
//! The text of such a dump is well formed: mutation breaks texts, this breaks what they mean.

use crate::devcore::DevcoreBuilder;
use crate::mutate::Rng;
use crate::pm4::{pkt0, pkt2, pkt3, pkt4, pkt7};
use unwedge_base::Generation;

const RING: u64 = 0x1_0000_0000;

/// What payloads of an operation look like.
#[derive(Clone, Copy)]
enum Payload {
    /// Address, dwords.
    Buffer,
    /// Something, address, dwords.
    Behind,
    /// Count, address, dwords.
    Bins,
    /// Address, stride, count.
    Table,
    /// Groups: word, address.
    Groups,
    /// Registers and values by turns.
    Pairs,
    /// A few numbers.
    Numbers,
    /// Many numbers.
    Many,
}

/// Opcode, and what comes with it. Some numbers are another operation on another generation.
const OPERATIONS: [(u32, Payload); 46] = [
    (0x3f, Payload::Buffer),
    (0x3f, Payload::Buffer),
    (0x3f, Payload::Buffer),
    (0x37, Payload::Buffer),
    (0x57, Payload::Buffer),
    (0x3a, Payload::Buffer),
    (0x50, Payload::Bins),
    (0x51, Payload::Numbers),
    (0x7f, Payload::Table),
    (0x43, Payload::Groups),
    (0x43, Payload::Groups),
    (0x55, Payload::Buffer),
    (0x30, Payload::Behind),
    (0x32, Payload::Behind),
    (0x34, Payload::Behind),
    (0x36, Payload::Behind),
    (0x22, Payload::Numbers),
    (0x24, Payload::Numbers),
    (0x28, Payload::Behind),
    (0x29, Payload::Behind),
    (0x2a, Payload::Many),
    (0x38, Payload::Numbers),
    (0x33, Payload::Numbers),
    (0x41, Payload::Behind),
    (0x2c, Payload::Numbers),
    (0x2b, Payload::Many),
    (0x2d, Payload::Many),
    (0x46, Payload::Numbers),
    (0x65, Payload::Numbers),
    (0x6c, Payload::Many),
    (0x6e, Payload::Many),
    (0x3d, Payload::Buffer),
    (0x3e, Payload::Behind),
    (0x42, Payload::Behind),
    (0x5c, Payload::Pairs),
    (0x5d, Payload::Pairs),
    (0x74, Payload::Many),
    (0x21, Payload::Numbers),
    (0x47, Payload::Numbers),
    (0x44, Payload::Many),
    (0x3c, Payload::Many),
    (0x10, Payload::Many),
    (0x17, Payload::Numbers),
    (0x4c, Payload::Numbers),
    (0x26, Payload::Numbers),
    (0x63, Payload::Numbers),
];

/// Registers that take the address of a shader, on one generation or another: SP_VS_OBJ_START and its like.
const SHADERS: [u32; 6] = [0x22d5, 0x22e1, 0xe5ac, 0xa81c, 0xa983, 0xa9b4];

/// Makes command streams that cost much.
pub(crate) struct Maker<'r> {
    pub(crate) rng: &'r mut Rng,
    pub(crate) wide: bool,
    /// Addresses that streams mention.
    pub(crate) buffers: Vec<u64>,
}

impl Maker<'_> {
    pub(crate) fn number(&mut self) -> u32 {
        let any = self.rng.next_u64() as u32;
        match self.rng.below(6) {
            0 => 0,
            1 => any & 0xf,
            2 => any & 0xfff,
            3 => u32::MAX >> (any & 0xf),
            4 => (any & 0xf) << 20 | any & 0xffff,
            _ => any,
        }
    }

    fn address(&mut self, out: &mut Vec<u32>) {
        let buffer = self.rng.pick(&self.buffers).copied().unwrap_or(0);
        let inside = if self.rng.below(4) == 0 { 4 * self.rng.below(64) as u64 } else { 0 };
        out.push((buffer + inside) as u32);
        if self.wide {
            out.push((buffer >> 32) as u32);
        }
    }

    fn payload(&mut self, payload: Payload) -> Vec<u32> {
        let mut out = Vec::new();
        match payload {
            Payload::Buffer => self.address(&mut out),
            Payload::Behind => {
                out.push(self.number());
                self.address(&mut out);
            }
            Payload::Bins => {
                out.push(self.number());
                self.address(&mut out);
                out.push(1 + self.rng.below(8) as u32);
            }
            Payload::Table => {
                self.address(&mut out);
                out.push((1 + self.rng.below(8) as u32) << 20);
            }
            Payload::Groups => {
                for id in 0..self.rng.below(32) as u32 {
                    out.push(id << 24 | 7 << 20 | self.rng.below(0x200) as u32 | (self.number() & 1) << 19);
                    self.address(&mut out);
                }
            }
            Payload::Pairs | Payload::Many => {
                for _ in 0..self.rng.below(32) {
                    if self.rng.below(4) == 0 { self.address(&mut out) } else { out.push(self.number()) }
                }
            }
            Payload::Numbers => {}
        }
        for _ in 0..self.rng.below(4) {
            out.push(self.number());
        }
        out
    }

    fn packet(&mut self) -> Vec<u32> {
        let reg = self.rng.below(if self.wide { 0x10000 } else { 0x5000 }) as u32;
        match self.rng.below(9) {
            8 => {
                let mut shader = Vec::new();
                self.address(&mut shader);
                let reg = self.rng.pick(&SHADERS).copied().unwrap_or(0);
                if self.wide { pkt4(reg, &shader) } else { pkt0(reg, &shader) }
            }
            0 => (0..self.rng.below(8)).map(|_| self.number()).collect(),
            1 if self.wide => pkt4(reg, &vec![1; 1 + self.rng.below(127)]),
            1 => pkt0(reg, &vec![1; 1 + self.rng.below(300)]),
            2 if !self.wide => pkt2(),
            // Headers whose payload is not there.
            2 => pkt7(0x10, &[0; 0x3ff0])[..1].to_vec(),
            3 if !self.wide => vec![0x3fff_0000 | reg],
            _ => {
                let (opcode, payload) = self.rng.pick(&OPERATIONS).copied().unwrap_or((0x10, Payload::Many));
                let payload = self.payload(payload);
                if self.wide { pkt7(opcode, &payload) } else { pkt3(opcode, &payload) }
            }
        }
    }

    /// So many packets.
    pub(crate) fn stream(&mut self, packets: usize) -> Vec<u32> {
        (0..packets).flat_map(|_| self.packet()).collect()
    }
}

/// The text of such a dump. The seed alone decides.
pub fn hostile(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ 0x6c62_272e_07bb_0142);
    let generation = rng.pick(&Generation::ALL).copied().unwrap_or(Generation::A6xx);
    let wide = generation.is_64bit();
    let count = 1 + rng.below(12) as u64;
    let first = if wide { 0x10_0000_0000 } else { 0x1000_0000 };
    let buffers: Vec<u64> = (0..count).map(|i| first + i * 0x10_0000).collect();
    let mut maker = Maker { rng: &mut rng, wide, buffers: buffers.clone() };

    let mut builder = DevcoreBuilder::of(generation);
    let rings = 1 + maker.rng.below(3);
    for i in 0..rings {
        let packets = 1 + maker.rng.below(24);
        let contents = maker.stream(packets);
        let base = if wide { RING } else { 0x2000_0000 };
        let iova = base + if maker.rng.below(4) == 0 { 0 } else { i as u64 * 0x8000 };
        builder = builder.ring(iova, &contents);
        if i == 0 {
            builder = builder.register64(0x800, base);
        }
        if maker.rng.below(4) == 0 {
            let (rptr, wptr, size) = (maker.number(), maker.number(), maker.number());
            builder = builder.with_ring(|r| (r.rptr, r.wptr, r.size) = (Some(rptr), Some(wptr), Some(size)));
        }
    }
    for &iova in &buffers {
        let packets = maker.rng.below(48);
        let contents = maker.stream(packets);
        let size = match maker.rng.below(4) {
            0 => u64::from(u32::MAX),
            1 => u64::from(maker.number()),
            _ => 4096,
        };
        builder = builder.bo(iova, size, "", &contents);
    }
    for name in ["CP_SQE_STAT", "CP_MEMPOOL", "CP_ROQ", "CP_UCODE_DBG_DATA"] {
        let len = [0, 40, 64, 0x2060][maker.rng.below(4)];
        let contents: Vec<u32> = (0..len).map(|_| maker.number()).collect();
        builder = builder.indexed(name, &contents);
    }
    let ib1 = buffers.first().copied().unwrap_or(0);
    let ib2 = buffers.last().copied().unwrap_or(0);
    let rest = maker.rng.below(64) as u32;
    // CP_RB_BASE, CP_IB1_BASE and its rest, CP_IB2_BASE of a6xx.
    builder
        .register64(0x928, ib1)
        .register(0x92a, rest)
        .register64(0x92b, ib2)
        .register(0x92d, rest / 2)
        .text()
}

/// Texts of about `size` bytes that say one thing over and over.
pub fn repetitive(size: usize) -> Vec<Vec<u8>> {
    let head = "---\nkernel: 6.6.0\nmodule: msm\nrevision: 630 (6.3.0.2)\n";
    let ring = "  - id: 0\n    iova: 0\n    last-fence: 1\n    rptr: 9\n    wptr: 8\n    size: 4294967295\n    \
                data: !!ascii85 |\n     zzzzz\n";
    let bo = "  - iova: 0x1\n    size: 4294967295\n    data: !!ascii85 |\n     z\n";
    let scattered = "bos:\n  - iova: 0x1\n    size: 64\n    data: !!ascii85 |\n     z\nregisters:\n  \
                     - { offset: 0x0, value: 0x1000 }\n";
    let block = |name: &str| {
        format!("indexed-registers:\n  - regs-name: {name}\n    dwords: 100000\n    data: !!ascii85 |\n     ")
    };
    let (stat, pool) = (block("CP_SQE_STAT"), block("CP_MEMPOOL"));
    let repeated = [
        ("ringbuffer:\n", ring),
        ("bos:\n", bo),
        ("bos:\n", "- iova:1\n"),
        ("bos:\n", " iova:1\n"),
        ("", scattered),
        ("registers:\n", "  - { offset: 0x2000, value: 0x1000 }\n"),
        ("registers:\n", "- {offset:4 value:1\n"),
        ("clusters:\n", "  - cluster-name: A\n    - context: 0\n"),
        ("shader-blocks:\n", "  - type: A\n    - bank: 1\n"),
        (
            "indexed-registers:\n",
            "  - regs-name: CP_MEMPOOL\n    dwords: 9\n    data: !!ascii85 |\n     zzzzz\n",
        ),
        ("gmu-hfi:\n", "    queue-history[1]: 1 2 3 4 5 6 7 8\n"),
        ("", "future:\n"),
        ("comm: ", "word "),
        ("cmdline: ", "x"),
        ("cmdline: ", "\u{feff}"),
        ("fault-info:\n", "  - iova=0000000000000001\n"),
        (&stat, "z"),
        (&pool, "s8W-!"),
        ("bos:\n  - iova: 0x1\n    size: 4294967295\n    data: !!ascii85 |\n     ", "z"),
    ];
    let repeat =
        |(before, text): (&str, &str)| [head, before, &text.repeat(size / text.len())].concat().into_bytes();
    repeated.into_iter().map(repeat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_capture::msm::Devcore;

    #[test]
    fn the_text_is_well_formed() {
        for seed in 0..200 {
            let text = hostile(seed);
            assert_eq!(text, hostile(seed));
            let dump = Devcore::read(&text).expect("a dump");
            assert!(!dump.bos.is_empty() && !dump.rings.is_empty());
        }
    }
}
