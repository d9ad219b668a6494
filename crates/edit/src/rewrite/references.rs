//! The dwords of a packet that lead to other streams or count dwords of their own: where they are, and how they are changed.
//!
//! Facts: freedreno's adreno_pm4 register description, as `stream::adreno::payload` reads it. Never: finding streams.

use unwedge_base::{Dwords, Generation};
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::payload::{CondRegExec, GroupEntry, IndirectBuffer};

/// Dwords of an indirect buffer, and of an amble.
const IB_SIZE: u32 = 0xf_ffff;
/// Dwords of a draw-state group.
const GROUP_SIZE: u32 = 0xffff;
/// Dwords of each buffer of CP_FIXED_STRIDE_DRAW_TABLE, in the upper bits of its third dword.
const STRIDE_SHIFT: u32 = 20;
/// Dwords that a condition may cover.
const CONDITION_SIZE: u32 = 0xff_ffff;

/// Buffers of one size in a row, which a packet has executed one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamTable {
    pub(super) iova: u64,
    /// Dwords of each.
    pub(super) stride: u32,
    pub(super) count: u32,
}

fn pair(words: &[u32], at: usize) -> Option<u64> {
    Some(u64::from(*words.get(at)?) | u64::from(*words.get(at + 1)?) << 32)
}

fn put_pair(words: &mut [u32], at: usize, iova: u64) {
    for (slot, word) in words.iter_mut().skip(at).take(2).zip([iova as u32, (iova >> 32) as u32]) {
        *slot = word;
    }
}

/// The table that a packet names.
pub(super) fn table(op: AdrenoOp, payload: &[u32]) -> Option<StreamTable> {
    match op {
        AdrenoOp::StartBin => {
            let (count, stride) = (*payload.first()?, *payload.get(3)?);
            Some(StreamTable { iova: pair(payload, 1)?, stride, count })
        }
        AdrenoOp::FixedStrideDrawTable => {
            let (stride, count) = (*payload.get(2)? >> STRIDE_SHIFT, *payload.get(3)?);
            Some(StreamTable { iova: pair(payload, 0)?, stride, count })
        }
        _ => None,
    }
}

/// Makes a packet name its table at another place.
pub(super) fn put_table(op: AdrenoOp, payload: &mut [u32], iova: u64, stride: u32) {
    match op {
        AdrenoOp::StartBin => {
            put_pair(payload, 1, iova);
            if let Some(slot) = payload.get_mut(3) {
                *slot = stride;
            }
        }
        AdrenoOp::FixedStrideDrawTable => {
            put_pair(payload, 0, iova);
            if let Some(slot) = payload.get_mut(2) {
                *slot = *slot & ((1 << STRIDE_SHIFT) - 1) | stride << STRIDE_SHIFT;
            }
        }
        _ => {}
    }
}

/// Where a stream has gone: by address and dwords, the new address and dwords.
pub(super) type Moved<'m> = dyn Fn(u64, u64) -> Option<(u64, u32)> + 'm;

/// Makes a packet lead to where its streams have gone.
pub(super) fn follow(op: AdrenoOp, payload: &mut [u32], generation: Generation, moved: &Moved<'_>) {
    let wide = generation.is_64bit();
    match op {
        AdrenoOp::IndirectBuffer
        | AdrenoOp::IndirectBufferPfd
        | AdrenoOp::IndirectBufferChain
        | AdrenoOp::CondIndirectBufferPfe => {
            let Some(called) = IndirectBuffer::parse(Dwords::from(&*payload), generation) else { return };
            let Some((iova, dwords)) = moved(called.iova, called.size.into()) else { return };
            let last = IndirectBuffer::needed(generation) as usize - 1;
            if wide {
                put_pair(payload, 0, iova);
            } else if let Some(slot) = payload.first_mut() {
                *slot = iova as u32;
            }
            if let Some(slot) = payload.get_mut(last) {
                *slot = *slot & !IB_SIZE | dwords;
            }
        }
        AdrenoOp::SetDrawState => {
            let step = GroupEntry::dwords(generation);
            for entry in payload.chunks_exact_mut(step) {
                let set = match GroupEntry::parse(Dwords::from(&*entry), generation) {
                    GroupEntry::Set(_, set) | GroupEntry::LoadNow(_, set) => set,
                    GroupEntry::Disable(_) | GroupEntry::DisableAll => continue,
                };
                let Some((iova, dwords)) = moved(set.iova, set.count.into()) else { continue };
                if let Some(slot) = entry.first_mut() {
                    *slot = *slot & !GROUP_SIZE | dwords;
                }
                if wide {
                    put_pair(entry, 1, iova);
                } else if let Some(slot) = entry.get_mut(1) {
                    *slot = iova as u32;
                }
            }
        }
        AdrenoOp::SetAmble => sized(payload, 0, 2, IB_SIZE, moved),
        AdrenoOp::SetRenderMode => sized(payload, 6, 5, u32::MAX, moved),
        AdrenoOp::ComputeCheckpoint => {
            let size = if payload.len() == 8 { 7 } else { 4 };
            sized(payload, 5, size, u32::MAX, moved);
        }
        _ => {}
    }
}

/// An address at one dword, a size in some bits of another.
fn sized(payload: &mut [u32], address: usize, size: usize, mask: u32, moved: &Moved<'_>) {
    let (Some(iova), Some(word)) = (pair(payload, address), payload.get(size).copied()) else { return };
    let found = moved(iova, (word & mask).into()).or_else(|| moved(iova, (word & 0xffff).into()));
    let Some((iova, dwords)) = found else { return };
    put_pair(payload, address, iova);
    if let Some(slot) = payload.get_mut(size) {
        *slot = *slot & !mask | dwords;
    }
}

/// The payload dword that says how many of the dwords which follow a condition covers.
pub(super) fn condition(op: AdrenoOp, payload: &[u32], generation: Generation) -> Option<(usize, u32)> {
    let at = match op {
        AdrenoOp::CondExec if generation.is_64bit() => 5,
        AdrenoOp::CondExec => 3,
        AdrenoOp::CondRegExec => CondRegExec::parse(Dwords::from(payload)).needed as usize - 1,
        _ => return None,
    };
    let word = *payload.get(at)?;
    Some((at, if op == AdrenoOp::CondExec { word } else { word & CONDITION_SIZE }))
}

/// Changes that dword.
pub(super) fn put_condition(op: AdrenoOp, slot: &mut u32, dwords: u32) {
    *slot = if op == AdrenoOp::CondExec { dwords } else { *slot & !CONDITION_SIZE | dwords & CONDITION_SIZE };
}

/// The longest that a stream may become, by what leads to it.
pub(super) fn longest(kind: unwedge_stream::adreno::AdrenoStreamKind) -> usize {
    use unwedge_stream::adreno::AdrenoStreamKind as Kind;
    let dwords = match kind {
        Kind::Group { .. } => GROUP_SIZE,
        Kind::Amble => 0xffff,
        Kind::DrawTable { .. } => (1 << (32 - STRIDE_SHIFT)) - 1,
        _ => IB_SIZE,
    };
    dwords as usize
}
