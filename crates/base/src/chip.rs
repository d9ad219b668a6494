//! Adreno chip ids and generations.

use std::fmt;

/// An Adreno generation: which register database and packet format apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Generation {
    /// a2xx: type 0/2/3 packets, 32-bit addresses.
    A2xx = 2,
    /// a3xx.
    A3xx = 3,
    /// a4xx.
    A4xx = 4,
    /// a5xx: the first with type 4/7 packets and 64-bit addresses.
    A5xx = 5,
    /// a6xx.
    A6xx = 6,
    /// a7xx: two command threads (BR, BV).
    A7xx = 7,
}

impl Generation {
    /// Every generation, oldest first.
    pub const ALL: [Generation; 6] = [
        Generation::A2xx,
        Generation::A3xx,
        Generation::A4xx,
        Generation::A5xx,
        Generation::A6xx,
        Generation::A7xx,
    ];

    /// The generation with this number (2 to 7).
    pub fn from_number(n: u32) -> Option<Generation> {
        Generation::ALL.get(n.checked_sub(2)? as usize).copied()
    }

    /// The generation of the GPU with this id (630; 0 is none) and chip id (0 is none). `None` for GPUs whose generation
    /// is not known here, a8xx among them: their registers must not be read as those of another one.
    pub fn of(gpu_id: u32, chip: ChipId) -> Option<Generation> {
        // The A702 is an a6xx in all but its number.
        if gpu_id == 702 || chip.0 as u32 & 0xffff_ff00 == 0x0700_0200 {
            return Some(Generation::A6xx);
        }
        let core = u32::from(chip.parts()[0]);
        // From a740 on the core number of the chip id has another meaning: 0x43 is a7xx, 0x44 is a8xx.
        let late = (core == 0x43).then_some(Generation::A7xx);
        Generation::from_number(gpu_id / 100).or_else(|| Generation::from_number(core)).or(late)
    }

    /// 2 for a2xx … 7 for a7xx.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// GPU addresses are 64 bits wide (a5xx on).
    pub fn is_64bit(self) -> bool {
        self >= Generation::A5xx
    }

    /// The name of the variant in the register database: `A6XX`.
    pub fn variant(self) -> &'static str {
        ["A2XX", "A3XX", "A4XX", "A5XX", "A6XX", "A7XX"][self as usize - 2]
    }

    /// The name people use: `a6xx`.
    pub fn name(self) -> &'static str {
        ["a2xx", "a3xx", "a4xx", "a5xx", "a6xx", "a7xx"][self as usize - 2]
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A chip id as the kernel reports it: core, major, minor and patch in one byte each; of newer chips the speed bin is
/// above them, from bit 32 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChipId(pub u64);

impl ChipId {
    /// From the four numbers of a dump's `revision:` line.
    pub fn from_parts(core: u8, major: u8, minor: u8, patch: u8) -> ChipId {
        ChipId(u64::from(u32::from_be_bytes([core, major, minor, patch])))
    }

    /// Core, major, minor, patch.
    pub fn parts(self) -> [u8; 4] {
        (self.0 as u32).to_be_bytes()
    }

    /// The speed bin, of chips that have one here.
    pub fn speed_bin(self) -> Option<u32> {
        Some((self.0 >> 32) as u32).filter(|&bin| bin != 0)
    }
}

impl fmt::Display for ChipId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [core, major, minor, patch] = self.parts();
        write!(f, "{core}.{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_of_gpus_that_no_table_has() {
        for (gpu_id, parts, generation) in [
            (702, [7, 0, 2, 0], Some(Generation::A6xx)),
            (702, [0; 4], Some(Generation::A6xx)),
            (0, [7, 0, 2, 1], Some(Generation::A6xx)),
            (0, [7, 0, 3, 0], Some(Generation::A7xx)),
            (699, [6, 9, 9, 0], Some(Generation::A6xx)),
            (0, [0x43, 9, 9, 9], Some(Generation::A7xx)),
            (0, [0x44, 5, 0, 0], None),
            (0, [8, 0, 0, 0], None),
            (0, [0; 4], None),
            (42, [0; 4], None),
        ] {
            let [core, major, minor, patch] = parts;
            let chip = ChipId::from_parts(core, major, minor, patch);
            assert_eq!(Generation::of(gpu_id, chip), generation, "{gpu_id} ({chip})");
        }
    }
}
