//! Addresses that no buffer of a capture uses: where streams go that have grown, and new buffers.
//!
//! Facts: kernel driver msm. An Adreno a6xx or a7xx gives user space the addresses from 4 GiB on, 4 GiB of them or, where the catalog
//! says so, 16 GiB (`adreno_private_address_space_size`); earlier ones 16 MiB to 4 GiB, an a2xx 16 MiB to 272 MiB. Never: reading streams.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use unwedge_base::Generation;
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
    /// Start and end of what is used; apart from one another.
    used: BTreeMap<u64, u64>,
    /// Starts of what is given to the current set alone.
    of_set: Vec<u64>,
    /// By window, an end above which there was no room when it was last looked for.
    ends: [Option<u64>; 2],
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
    /// What all buffers of a capture use.
    pub fn scan(capture: impl Read) -> AddressSpace {
        let mut reader = RdReader::new(capture).with_limit(RANGE_BYTES);
        let mut space = AddressSpace::default();
        while let Some(section) = reader.next() {
            if section.kind == RdSectionKind::GpuAddr
                && let Some(range) = section.range()
            {
                space.mark_used(range.iova, range.size.into());
            }
        }
        space
    }

    /// Nothing of this range is given.
    pub fn mark_used(&mut self, iova: u64, size: u64) {
        let (mut start, mut end) = (iova, iova.saturating_add(size));
        // Captures name the same buffers in every set.
        while let Some((&before, &stop)) =
            self.used.range(..=end).next_back().filter(|(_, stop)| **stop >= start)
        {
            self.used.remove(&before);
            (start, end) = (start.min(before), end.max(stop));
        }
        self.used.insert(start, end);
    }

    /// Takes `size` bytes that nothing uses, as high as they are to be had; `None` when the GPU's addresses are used up.
    pub fn take(&mut self, generation: Generation, size: u64) -> Option<u64> {
        let size = size.max(1).checked_next_multiple_of(PAGE)?;
        let windows = windows(generation).iter().zip(0..);
        let iova = windows.filter_map(|(window, index)| self.highest(*window, index, size)).next()?;
        self.used.insert(iova, iova + size);
        Some(iova)
    }

    /// The same until [`AddressSpace::end_set`].
    pub fn take_for_set(&mut self, generation: Generation, size: u64) -> Option<u64> {
        let iova = self.take(generation, size)?;
        self.of_set.push(iova);
        Some(iova)
    }

    /// The addresses after everything that is used of the GPU's user space, in the first part of it where there are any.
    pub(crate) fn rest(&self, generation: Generation) -> Option<Range<u64>> {
        windows(generation).iter().find_map(|&(low, high)| {
            let used = self.used.range(..high).next_back().map_or(low, |(_, &end)| end.max(low));
            let start = used.checked_add(GUARD)?.checked_next_multiple_of(PAGE)?;
            (start < high - GUARD).then_some(start..high - GUARD)
        })
    }

    /// What was given to a set alone is free again.
    pub fn end_set(&mut self) {
        for iova in self.of_set.drain(..) {
            self.used.remove(&iova);
        }
    }

    /// Room below what is used of a window, with a guard on each side.
    fn highest(&mut self, (low, high): (u64, u64), window: usize, size: u64) -> Option<u64> {
        let needed = size.checked_add(2 * GUARD)?;
        let mut end = self.ends.get(window).copied().flatten().unwrap_or(high);
        let below = self.used.range(..end).rev();
        for (&start, &stop) in below {
            if stop < end && end - stop.max(low).min(end) >= needed {
                break;
            }
            end = end.min(start);
        }
        if end.checked_sub(low)? < needed {
            return None;
        }
        *self.ends.get_mut(window)? = Some(end);
        Some((end - GUARD - size) & !(PAGE - 1)).filter(|iova| *iova >= low + GUARD)
    }
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
        while let Some(iova) = space.take(Generation::A6xx, 0x4000_0000) {
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

    #[test]
    fn the_rest_is_after_all_buffers() {
        let mut space = AddressSpace::default();
        assert_eq!(space.rest(Generation::A6xx), Some(0x1_0001_0000..0x1_ffff_0000));
        space.mark_used(0x1_1000_0000, 0x1234);
        space.mark_used(0x7_0000_0000, 0x1000);
        assert_eq!(space.rest(Generation::A6xx), Some(0x1_1001_2000..0x1_ffff_0000));
        space.mark_used(0x1_8000_0000, 0x8000_0000);
        assert_eq!(space.rest(Generation::A6xx), Some(0x2_0001_0000..0x4_ffff_0000));
        space.mark_used(0, 0xffff_ffff);
        assert_eq!(space.rest(Generation::A4xx), None);
    }

    #[test]
    fn what_a_set_was_given_the_next_one_is_given_again() {
        let mut space = AddressSpace::default();
        let kept = space.take(Generation::A6xx, 0x1000).unwrap();
        let first = space.take_for_set(Generation::A6xx, 0x5000).unwrap();
        assert!(first + 0x5000 + GUARD <= kept);
        space.end_set();
        assert_eq!(space.take_for_set(Generation::A6xx, 0x5000), Some(first));
        let more = space.take(Generation::A6xx, 0x1000).unwrap();
        space.end_set();
        let again = space.take_for_set(Generation::A6xx, 0x5000).unwrap();
        assert!(again != more && again != kept);
    }
}
