//! Addresses that no buffer of a capture uses: where streams go that have grown, and new buffers.
//!
//! Facts: kernel driver msm. An Adreno a6xx or a7xx gives user space the addresses from 4 GiB on, 4 GiB of them or, where the catalog
//! says so, 16 GiB (`adreno_private_address_space_size`); earlier ones 16 MiB to 4 GiB, an a2xx 16 MiB to 272 MiB. Never: reading streams.

use std::io::Read;
use unwedge_base::{Diagnostic, Generation};
use unwedge_capture::rd::{RdReader, RdSectionKind};

/// Unused bytes kept before and after each buffer, so that an overrun still faults.
const GUARD: u64 = 0x1_0000;
/// Buffers begin at pages.
const PAGE: u64 = 0x1000;
/// Longest payload that is read to learn addresses: that of `gpuaddr`.
const RANGE_BYTES: u64 = 16;

/// The address space of a capture: what its buffers use, and what has been given since.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Start and end of what is used, sorted, apart from one another.
    used: Vec<(u64, u64)>,
}

/// The addresses of a GPU's user space, best first.
fn windows(generation: Generation) -> &'static [(u64, u64)] {
    match generation {
        Generation::A2xx => &[(0x0100_0000, 0x10ff_0000)],
        Generation::A3xx | Generation::A4xx | Generation::A5xx => &[(0x0100_0000, 0xff00_0000)],
        _ => &[(0x1_0000_0000, 0x2_0000_0000), (0x2_0000_0000, 0x5_0000_0000)],
    }
}

impl AddressSpace {
    /// What all buffers of a capture use. Returns with it what was lost of the capture.
    pub fn scan(capture: impl Read) -> (AddressSpace, Vec<Diagnostic>) {
        let mut reader = RdReader::new(capture).with_limit(RANGE_BYTES);
        let mut ranges = Vec::new();
        while let Some(section) = reader.next() {
            if section.kind == RdSectionKind::GpuAddr
                && let Some(range) = section.range()
            {
                ranges.push((range.iova, range.iova.saturating_add(range.size.into())));
                // Captures name the same buffers in every set.
                if ranges.len() >= 1 << 16 {
                    ranges = merged(ranges);
                }
            }
        }
        (AddressSpace { used: merged(ranges) }, Vec::new())
    }

    /// Nothing of this range is given.
    pub fn mark_used(&mut self, iova: u64, size: u64) {
        let mut ranges = std::mem::take(&mut self.used);
        ranges.push((iova, iova.saturating_add(size)));
        self.used = merged(ranges);
    }

    /// Takes `size` bytes that nothing uses, as high as they are to be had; `None` when the GPU's addresses are used up.
    pub fn take(&mut self, generation: Generation, size: u64) -> Option<u64> {
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let iova = windows(generation).iter().find_map(|&window| self.highest(window, size))?;
        self.mark_used(iova, size);
        Some(iova)
    }

    fn highest(&self, (low, high): (u64, u64), size: u64) -> Option<u64> {
        let needed = size.checked_add(2 * GUARD)?;
        let mut end = high;
        for &(start, stop) in self.used.iter().rev() {
            if stop < end && end.saturating_sub(stop.max(low)) >= needed {
                break;
            }
            end = end.min(start);
        }
        let iova = end.checked_sub(size + GUARD)? & !(PAGE - 1);
        (iova >= low.checked_add(GUARD)? && !self.overlaps(iova - GUARD, size + GUARD)).then_some(iova)
    }

    fn overlaps(&self, iova: u64, size: u64) -> bool {
        let after = self.used.partition_point(|&(start, _)| start < iova.saturating_add(size));
        after.checked_sub(1).and_then(|index| self.used.get(index)).is_some_and(|&(_, stop)| stop > iova)
    }
}

fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::new();
    for (start, stop) in ranges {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(stop),
            _ => out.push((start, stop)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_unused_and_in_the_range_of_the_gpu() {
        let mut space = AddressSpace::default();
        space.mark_used(0x1_0000_0000, 0xff00_0000);
        space.mark_used(0x1_fff0_0000, 0x1000);
        let mut given = Vec::new();
        while let Some(iova) = space.take(Generation::A6xx, 0x40_0000_00) {
            given.push(iova);
        }
        assert!(!given.is_empty());
        for (at, &iova) in given.iter().enumerate() {
            assert!(iova >= 0x1_ff00_0000 && iova + 0x4000_0000 <= 0x5_0000_0000, "{iova:#x}");
            assert!(
                given
                    .iter()
                    .skip(at + 1)
                    .all(|&other| other + 0x4000_0000 <= iova || iova + 0x4000_0000 <= other)
            );
        }
        assert_eq!(space.take(Generation::A6xx, u64::MAX), None);
    }

    #[test]
    fn a_gap_between_buffers_is_found() {
        let mut space = AddressSpace::default();
        space.mark_used(0, 0x1000_0000);
        space.mark_used(0x1010_0000, 0xf000_0000);
        let iova = space.take(Generation::A4xx, 0x2000).unwrap();
        assert!(iova > 0x1000_0000 && iova + 0x2000 < 0x1010_0000, "{iova:#x}");
        assert_eq!(space.take(Generation::A4xx, 0x10_0000), None);
    }
}
