//! Copies of memory made by the CP after a draw: of its attachments, or of a range.
//!
//! What is drawn to GMEM is not in memory before it is resolved, and is not copied. Never: layouts of images, which stay as they are.

use super::packets;
use crate::rewrite::{RewriteError, SetEdit};
use std::collections::BTreeMap;
use unwedge_capture::rd::MemoryRange;
use unwedge_hw::Gpu;
use unwedge_stream::Registers;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoState, mode};

/// Colour attachments.
const COLOURS: u32 = 8;
/// Bytes copied by one packet at most.
const PART: u64 = 1 << 20;
/// Bytes of an attachment that are copied at most.
const MOST: u64 = 256 << 20;

/// What is copied after a draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpAfter {
    /// Number of the draw, dispatch, blit or event, as listings count.
    pub work: u32,
    /// Address and bytes; without, the attachments.
    pub range: Option<(u64, u64)>,
}

/// A copy that the capture makes when it is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCopy {
    /// After this draw, dispatch, blit or event.
    pub work: u32,
    /// `mrt0`, `depth`, `memory`
    pub name: String,
    /// What is copied.
    pub from: u64,
    /// Where the copy is.
    pub to: u64,
    /// Bytes.
    pub size: u64,
    /// Which set of the capture, from 0.
    pub set: u64,
}

/// A range to copy, found in the walk.
#[derive(Clone, Debug)]
struct Wanted {
    name: String,
    from: u64,
    size: u64,
}

/// Copies of a set.
#[derive(Debug, Default)]
pub(super) struct DumpPlan {
    /// By address of the packet of a draw.
    wanted: BTreeMap<u64, (u32, Vec<Wanted>)>,
    after: BTreeMap<u64, Vec<u32>>,
    /// Draws whose attachments are in GMEM.
    pub(super) in_gmem: Vec<u32>,
}

impl DumpPlan {
    pub(super) fn clear(&mut self) {
        self.wanted.clear();
        self.after.clear();
    }

    pub(super) fn after(&self, iova: u64) -> &[u32] {
        self.after.get(&iova).map_or(&[], Vec::as_slice)
    }

    /// Takes in what a walk meets.
    pub(super) fn watch(
        &mut self,
        dumps: &[DumpAfter],
        gpu: Gpu<'_>,
        state: &AdrenoState,
        event: &AdrenoEvent<'_>,
    ) {
        let AdrenoEvent::Draw(draw) = event else { return };
        let Some(iova) = draw.packet.place.iova else { return };
        for dump in dumps.iter().filter(|dump| dump.work == draw.number) {
            let ranges = match dump.range {
                Some((from, size)) => vec![Wanted { name: "memory".to_owned(), from, size }],
                None if state.modes() != mode::SYSMEM => {
                    self.in_gmem.push(dump.work);
                    continue;
                }
                None => attachments(gpu, state.current_regs()),
            };
            let entry = self.wanted.entry(iova).or_insert((dump.work, Vec::new()));
            entry.1.extend(ranges);
        }
    }

    /// Makes room for the copies. Returns what will be copied.
    pub(super) fn place(
        &mut self,
        set: &mut SetEdit<'_>,
        flush: &[u32],
    ) -> Result<Vec<MemoryCopy>, RewriteError> {
        let buffers = set.buffers();
        let mut copies = Vec::new();
        for (iova, (work, ranges)) in std::mem::take(&mut self.wanted) {
            let mut words = flush.to_vec();
            for Wanted { name, from, size } in ranges {
                let Some(size) = inside(&buffers, from, size) else { continue };
                let to = set.reserve(size)?;
                set.add_buffer_at(to, Vec::new(), size)?;
                for at in (0..size).step_by(PART as usize) {
                    let dwords = u32::try_from((size - at).min(PART) / 4).unwrap_or(0);
                    words.extend(packets::copy(set.gpu(), from + at, to + at, dwords).unwrap_or_default());
                }
                copies.push(MemoryCopy { work, name, from, to, size, set: set.number() });
            }
            self.after.insert(iova, words);
        }
        Ok(copies)
    }
}

/// As many whole dwords as are in a buffer from an address on.
fn inside(buffers: &[MemoryRange], from: u64, size: u64) -> Option<u64> {
    let end = |buffer: &MemoryRange| buffer.iova.saturating_add(buffer.size.into());
    let left = buffers
        .iter()
        .filter(|buffer| buffer.iova <= from && from < end(buffer))
        .map(|b| end(b) - from)
        .max()?;
    Some(left.min(size).min(MOST) & !3).filter(|size| *size > 0)
}

/// The images that a draw writes to, as far as the registers say how long they are.
fn attachments(gpu: Gpu<'_>, regs: &Registers) -> Vec<Wanted> {
    let value = |name: &str| gpu.reg_offset(name).and_then(|reg| regs.get(reg));
    let pair = |name: &str| {
        let reg = gpu.reg_offset(name)?;
        Some(u64::from(regs.get(reg)?) | u64::from(regs.get(reg + 1)?) << 32)
    };
    // Sizes count 64 bytes.
    let image = |name: String, base: &str, layer: &str| {
        let (from, size) = (pair(base)?, u64::from(value(layer)?) << 6);
        (from != 0 && size != 0).then_some(Wanted { name, from, size })
    };
    let count = value("RB_FS_OUTPUT_CNTL1").map_or(0, |word| word & 0xf).min(COLOURS);
    let colours = (0..count).filter_map(|n| {
        image(format!("mrt{n}"), &format!("RB_MRT[{n}].BASE"), &format!("RB_MRT[{n}].ARRAY_PITCH"))
    });
    let depth = image("depth".to_owned(), "RB_DEPTH_BUFFER_BASE", "RB_DEPTH_BUFFER_ARRAY_PITCH");
    colours.chain(depth).collect()
}
