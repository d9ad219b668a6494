//! Packet headers: decoding, encoding, and finding the next one in a damaged stream.
//!
//! Types 0, 2 and 3 belong to a2xx–a4xx, types 4 and 7 to a5xx on, where odd parity over the count and over the
//! register or opcode tells a header from noise. Never: what a packet means.
//!
//! Facts: freedreno's adreno_pm4 register description and the headers of the kernel's msm driver.

use unwedge_base::{Dwords, Generation};
use unwedge_hw::Gpu;

/// A packet header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdrenoPacketHeader {
    /// Type 0 (a2xx–a4xx) and type 4 (a5xx on): `count` dwords to registers from `reg` on.
    Registers {
        /// First register, in dwords.
        reg: u32,
        /// Payload dwords.
        count: u32,
    },
    /// Type 3 (a2xx–a4xx) and type 7 (a5xx on): an operation.
    Operation {
        /// What to do, 7 bits.
        opcode: u8,
        /// Payload dwords.
        count: u32,
    },
    /// Type 2 (a2xx–a4xx): one dword of padding.
    Padding,
}

const TYPE2: u32 = 0x8000_0000;
const TYPE3: u32 = 0xc000_0000;
const TYPE4: u32 = 0x4000_0000;
const TYPE7: u32 = 0x7000_0000;

/// 1 when `value` has an even number of set bits: the bit that makes the total odd.
fn parity(value: u32) -> u32 {
    !value.count_ones() & 1
}

impl AdrenoPacketHeader {
    /// Reads a header as the command processor of `generation` does; `None` when it is none: a type the generation
    /// does not have, a reserved bit set, or wrong parity.
    #[inline]
    pub fn decode(raw: u32, generation: Generation) -> Option<AdrenoPacketHeader> {
        if !generation.is_64bit() {
            return AdrenoPacketHeader::decode_old(raw);
        }
        // Bit 26 of type 4 and bit 14 of type 7 are reserved.
        match raw >> 28 {
            0x4 if raw & 1 << 26 == 0 => AdrenoPacketHeader::decode_parity(raw),
            0x7 if raw & 1 << 14 == 0 => AdrenoPacketHeader::decode_parity(raw),
            _ => None,
        }
    }

    /// Reads a header of any type, as tools do that do not ask for the generation: zeros on a6xx are type 0 then.
    /// Reserved bits count for less: bit 26 of type 4 extends the register, bit 14 of type 7 is ignored.
    pub fn decode_lenient(raw: u32) -> Option<AdrenoPacketHeader> {
        AdrenoPacketHeader::decode_parity(raw).or_else(|| AdrenoPacketHeader::decode_old(raw))
    }

    /// Types 0, 2, 3.
    #[inline]
    fn decode_old(raw: u32) -> Option<AdrenoPacketHeader> {
        let count = (raw >> 16 & 0x3fff) + 1;
        match raw >> 30 {
            0 => Some(AdrenoPacketHeader::Registers { reg: raw & 0x7fff, count }),
            2 if raw == TYPE2 => Some(AdrenoPacketHeader::Padding),
            3 if raw & 0x80fe == 0 => Some(AdrenoPacketHeader::Operation { opcode: (raw >> 8) as u8, count }),
            _ => None,
        }
    }

    /// Reads a header of type 4 or 7, whatever the generation; `None` for one whose parity is wrong.
    pub fn decode_parity(raw: u32) -> Option<AdrenoPacketHeader> {
        match raw >> 28 {
            0x4 => {
                let (reg, count) = (raw >> 8 & 0x7_ffff, raw & 0x7f);
                let fits = raw >> 27 & 1 == parity(reg) && raw >> 7 & 1 == parity(count);
                fits.then_some(AdrenoPacketHeader::Registers { reg, count })
            }
            0x7 => {
                let (opcode, count) = (raw >> 16 & 0x7f, raw & 0x3fff);
                let fits =
                    raw >> 24 & 0xf == 0 && raw >> 23 & 1 == parity(opcode) && raw >> 15 & 1 == parity(count);
                fits.then_some(AdrenoPacketHeader::Operation { opcode: opcode as u8, count })
            }
            _ => None,
        }
    }

    /// The header dword; `None` when a number does not fit or the generation has no such packet.
    pub fn encode(self, generation: Generation) -> Option<u32> {
        let new = generation.is_64bit();
        match self {
            AdrenoPacketHeader::Registers { reg, count } if new => (reg < 1 << 18 && count < 1 << 7)
                .then(|| TYPE4 | parity(reg) << 27 | reg << 8 | parity(count) << 7 | count),
            AdrenoPacketHeader::Registers { reg, count } => {
                (reg < 1 << 15 && (1..=1 << 14).contains(&count)).then(|| (count - 1) << 16 | reg)
            }
            AdrenoPacketHeader::Operation { opcode, count } if new => {
                let op = u32::from(opcode);
                (op < 1 << 7 && count < 1 << 14)
                    .then(|| TYPE7 | parity(op) << 23 | op << 16 | parity(count) << 15 | count)
            }
            AdrenoPacketHeader::Operation { opcode, count } => {
                let op = u32::from(opcode);
                (op < 1 << 7 && (1..=1 << 14).contains(&count)).then(|| TYPE3 | (count - 1) << 16 | op << 8)
            }
            AdrenoPacketHeader::Padding => (!new).then_some(TYPE2),
        }
    }

    /// Payload dwords.
    pub fn count(self) -> u32 {
        match self {
            AdrenoPacketHeader::Registers { count, .. } | AdrenoPacketHeader::Operation { count, .. } => {
                count
            }
            AdrenoPacketHeader::Padding => 0,
        }
    }
}

/// Index of the first plausible packet at or after `from`: to start, or to go on, in a stream that is damaged or whose
/// packet boundaries are unknown.
///
/// A packet is plausible when its header is one of this generation, the database knows its opcode or first register,
/// it ends inside the stream, and enough of the packets that follow have headers too: none after an operation with
/// parity, one after a register write with parity (floating-point constants look like those), three without parity.
pub fn find_packet(stream: Dwords<'_>, from: usize, gpu: Gpu<'_>) -> Option<usize> {
    let generation = gpu.generation();
    let known = |header| match header {
        AdrenoPacketHeader::Registers { reg, count } => count > 0 && gpu.reg(reg).is_some(),
        AdrenoPacketHeader::Operation { opcode, .. } => gpu.packet_name(opcode).is_some(),
        AdrenoPacketHeader::Padding => false,
    };
    let plausible = |at: usize| {
        let header = stream
            .get(at)
            .and_then(|raw| AdrenoPacketHeader::decode(raw, generation))
            .filter(|&h| known(h))?;
        let followers = match header {
            _ if !generation.is_64bit() => 3,
            AdrenoPacketHeader::Operation { .. } => 0,
            _ => 1,
        };
        let mut next = after(at, header);
        for _ in 0..followers {
            if next >= stream.len() {
                break;
            }
            next = after(next, AdrenoPacketHeader::decode(stream.get(next)?, generation)?);
        }
        (next <= stream.len()).then_some(at)
    };
    // Implied zeros past the stored dwords are no packets of a5xx on, and no evidence of one before.
    (from..stream.stored().len()).find_map(plausible)
}

/// Where the packet after this one starts.
pub(crate) fn after(at: usize, header: AdrenoPacketHeader) -> usize {
    at.saturating_add(1).saturating_add(header.count() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Generation::*;

    const NOP: u8 = 0x10;

    #[test]
    fn headers_as_drivers_write_them() {
        let nop = AdrenoPacketHeader::Operation { opcode: NOP, count: 0 };
        assert_eq!(AdrenoPacketHeader::decode(0x7010_8000, A6xx), Some(nop));
        assert_eq!(nop.encode(A6xx), Some(0x7010_8000));
        let rmw = AdrenoPacketHeader::Registers { reg: 0x8c17, count: 1 };
        assert_eq!(AdrenoPacketHeader::decode(0x408c_1701, A6xx), Some(rmw));
        assert_eq!(
            AdrenoPacketHeader::decode(0xc001_3f00, A3xx),
            Some(AdrenoPacketHeader::Operation { opcode: 0x3f, count: 2 })
        );
        assert_eq!(
            AdrenoPacketHeader::decode(0x0001_2000, A2xx),
            Some(AdrenoPacketHeader::Registers { reg: 0x2000, count: 2 })
        );
        assert_eq!(AdrenoPacketHeader::decode(0x8000_0000, A4xx), Some(AdrenoPacketHeader::Padding));
    }

    #[test]
    fn a_generation_has_its_own_types_only() {
        for raw in [0, 0x8000_0000, 0xc000_1000] {
            assert_eq!(AdrenoPacketHeader::decode(raw, A6xx), None, "{raw:#x}");
            assert!(AdrenoPacketHeader::decode_lenient(raw).is_some(), "{raw:#x}");
            assert!(AdrenoPacketHeader::decode(raw, A3xx).is_some(), "{raw:#x}");
        }
        assert_eq!(AdrenoPacketHeader::decode(0x7010_8000, A4xx), None);
        assert_eq!(AdrenoPacketHeader::decode(0xdead_d00d, A6xx), None);
        assert_eq!(AdrenoPacketHeader::decode_lenient(0xdead_d00d), None);
        assert_eq!(AdrenoPacketHeader::Padding.encode(A5xx), None);
    }

    #[test]
    fn every_header_survives_encoding_and_no_flipped_bit_goes_unnoticed() {
        for generation in Generation::ALL {
            for count in [0, 1, 2, 5, 0x7f, 0x80, 0x3fff, 0x4000, 0x4001] {
                for what in [0, 1, 0x10, 0x7f, 0x80, 0x7fff, 0x8000, 0x3_ffff, 0x4_0000] {
                    let mut headers = vec![AdrenoPacketHeader::Registers { reg: what, count }];
                    headers.extend(
                        u8::try_from(what).map(|opcode| AdrenoPacketHeader::Operation { opcode, count }),
                    );
                    for header in headers {
                        let Some(raw) = header.encode(generation) else { continue };
                        assert_eq!(
                            AdrenoPacketHeader::decode(raw, generation),
                            Some(header),
                            "{generation} {raw:#x}"
                        );
                        for bit in (0..28).filter(|_| generation.is_64bit()) {
                            assert_eq!(
                                AdrenoPacketHeader::decode(raw ^ 1 << bit, generation),
                                None,
                                "{raw:#x} bit {bit}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_not_encoded() {
        assert_eq!(AdrenoPacketHeader::Registers { reg: 1, count: 0x80 }.encode(A6xx), None);
        assert_eq!(AdrenoPacketHeader::Registers { reg: 0x4_0000, count: 1 }.encode(A6xx), None);
        assert_eq!(AdrenoPacketHeader::Registers { reg: 0x8000, count: 1 }.encode(A4xx), None);
        assert_eq!(AdrenoPacketHeader::Operation { opcode: NOP, count: 0 }.encode(A4xx), None);
        assert_eq!(AdrenoPacketHeader::Operation { opcode: 0x80, count: 0 }.encode(A6xx), None);
    }
}
