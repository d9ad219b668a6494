//! Which firmware a blob is: the id in its first dword, the GPU it means, and the words of its file.
//!
//! Never decodes an instruction. The ids are those Mesa's tools know.

use std::fmt;

/// Entries of the packet table.
pub const TABLE_LEN: usize = 0x80;

/// A known firmware, by the id in bits 12–23 of its first dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Firmware {
    /// PFP and ME of a5xx.
    A530,
    /// SQE of the first a6xx.
    A630,
    /// SQE of a650.
    A650,
    /// SQE of a660, with an LPAC processor.
    A660,
    /// SQE, BV and LPAC of a730.
    A730,
    /// SQE, BV and LPAC of a740.
    A740,
    /// SQE, BV and LPAC of gen70500 (X1-85).
    Gen70500,
    /// SQE, BV and LPAC of a750.
    A750,
}

impl Firmware {
    /// Every known firmware.
    pub const ALL: [Firmware; 8] = [
        Firmware::A530,
        Firmware::A630,
        Firmware::A650,
        Firmware::A660,
        Firmware::A730,
        Firmware::A740,
        Firmware::Gen70500,
        Firmware::A750,
    ];

    /// The id, such as 0x6ee.
    pub fn id(self) -> u32 {
        match self {
            Firmware::A530 => 0x5ff,
            Firmware::A630 => 0x6ee,
            Firmware::A650 => 0x6dc,
            Firmware::A660 => 0x6dd,
            Firmware::A730 => 0x730,
            Firmware::A740 => 0x740,
            Firmware::Gen70500 => 0x512,
            Firmware::A750 => 0x520,
        }
    }

    /// The firmware of an id.
    pub fn from_id(id: u32) -> Option<Firmware> {
        Firmware::ALL.into_iter().find(|firmware| firmware.id() == id)
    }

    /// The firmware whose first dword this is.
    pub fn from_version(version: u32) -> Option<Firmware> {
        Firmware::from_id(id_of(version))
    }

    /// Generation of the instruction set: 5, 6 or 7.
    pub fn generation(self) -> u32 {
        match self {
            Firmware::A530 => 5,
            Firmware::A630 | Firmware::A650 | Firmware::A660 => 6,
            Firmware::A730 | Firmware::A740 | Firmware::Gen70500 | Firmware::A750 => 7,
        }
    }

    /// A `nop` that carries `payload`, as the second dword of a firmware carries the offset of its packet table.
    pub fn payload_nop(self, payload: u32) -> u32 {
        if self.generation() < 6 { payload } else { 0x0100_0000 | payload }
    }
}

impl fmt::Display for Firmware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Firmware::A530 => "a530",
            Firmware::A630 => "a630",
            Firmware::A650 => "a650",
            Firmware::A660 => "a660",
            Firmware::A730 => "a730",
            Firmware::A740 => "a740",
            Firmware::Gen70500 => "gen70500",
            Firmware::A750 => "a750",
        })
    }
}

/// The id a first dword carries, known or not.
pub fn id_of(version: u32) -> u32 {
    version >> 12 & 0xfff
}

/// A firmware file cut into what the kernel sees of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareBlob {
    /// The dword the kernel strips before loading; `None` in a file shorter than that.
    pub stripped: Option<u32>,
    /// What is loaded: the version, the packet table's offset, instructions, tables.
    pub words: Vec<u32>,
    /// Bytes after the last whole dword, at most three.
    pub tail: Vec<u8>,
}

impl FirmwareBlob {
    /// Cuts a file. Never fails.
    pub fn new(bytes: &[u8]) -> FirmwareBlob {
        let (dwords, tail) = bytes.as_chunks::<4>();
        let mut words: Vec<u32> = dwords.iter().map(|&dword| u32::from_le_bytes(dword)).collect();
        let stripped = (!words.is_empty()).then(|| words.remove(0));
        FirmwareBlob { stripped, words, tail: tail.to_vec() }
    }

    /// The first dword the SQE sees.
    pub fn version(&self) -> Option<u32> {
        self.words.first().copied()
    }

    /// The firmware it says it is.
    pub fn firmware(&self) -> Option<Firmware> {
        self.version().and_then(Firmware::from_version)
    }
}

/// Which processor of the GPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Processor {
    /// The SQE; on a7xx the one that renders (BR).
    Sqe,
    /// The one that bins (a7xx).
    Bv,
    /// The one for low-priority compute (a660 on).
    Lpac,
}
