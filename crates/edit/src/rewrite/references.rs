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

/// A stream that a packet leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamReference {
    /// Address of its first dword.
    pub(crate) iova: u64,
    /// Its dwords, as the packet has them.
    pub(crate) dwords: u64,
    /// Which dword of the payload has the address, or its lower half.
    pub(crate) address_at: usize,
    /// Which one has the dwords, in these bits.
    pub(crate) size_at: usize,
    size_bits: u32,
}

/// The streams that a packet leads to, without those of a [`table`].
pub(crate) fn streams(op: AdrenoOp, payload: &[u32], generation: Generation) -> Vec<StreamReference> {
    let sized = |address_at: usize, size_at: usize, size_bits: u32| {
        let (iova, word) = (pair(payload, address_at)?, *payload.get(size_at)?);
        let dwords = (word & size_bits).into();
        Some(StreamReference { iova, dwords, address_at, size_at, size_bits })
    };
    let one = match op {
        AdrenoOp::IndirectBuffer
        | AdrenoOp::IndirectBufferPfd
        | AdrenoOp::IndirectBufferChain
        | AdrenoOp::CondIndirectBufferPfe => {
            IndirectBuffer::parse(Dwords::from(payload), generation).map(|called| StreamReference {
                iova: called.iova,
                dwords: called.size.into(),
                address_at: 0,
                size_at: IndirectBuffer::needed(generation) as usize - 1,
                size_bits: IB_SIZE,
            })
        }
        AdrenoOp::SetDrawState => return groups(payload, generation),
        AdrenoOp::SetAmble => sized(0, 2, IB_SIZE),
        AdrenoOp::SetRenderMode => sized(6, 5, u32::MAX),
        AdrenoOp::ComputeCheckpoint => sized(5, if payload.len() == 8 { 7 } else { 4 }, u32::MAX),
        _ => None,
    };
    one.into_iter().collect()
}

/// The draw-state groups of CP_SET_DRAW_STATE.
fn groups(payload: &[u32], generation: Generation) -> Vec<StreamReference> {
    let step = GroupEntry::dwords(generation);
    let entries = payload.chunks_exact(step).zip((0..).step_by(step));
    let set = |(entry, at)| match GroupEntry::parse(Dwords::from(entry), generation) {
        GroupEntry::Set(_, set) | GroupEntry::LoadNow(_, set) => {
            let (iova, dwords) = (set.iova, set.count.into());
            Some(StreamReference { iova, dwords, address_at: at + 1, size_at: at, size_bits: GROUP_SIZE })
        }
        GroupEntry::Disable(_) | GroupEntry::DisableAll => None,
    };
    entries.filter_map(set).collect()
}

/// Where a stream has gone: by address and dwords, the new address and dwords.
pub(super) type Moved<'m> = dyn Fn(u64, u64) -> Option<(u64, u32)> + 'm;

/// Makes a packet lead to where its streams have gone.
pub(super) fn follow(op: AdrenoOp, payload: &mut [u32], generation: Generation, moved: &Moved<'_>) {
    for reference in streams(op, payload, generation) {
        let Some((iova, dwords)) = moved(reference.iova, reference.dwords) else { continue };
        if generation.is_64bit() {
            put_pair(payload, reference.address_at, iova);
        } else if let Some(slot) = payload.get_mut(reference.address_at) {
            *slot = iova as u32;
        }
        if let Some(slot) = payload.get_mut(reference.size_at) {
            *slot = *slot & !reference.size_bits | dwords;
        }
    }
}

/// The payload dword that says how many of the dwords which follow a condition covers.
pub(crate) fn condition(op: AdrenoOp, payload: &[u32], generation: Generation) -> Option<(usize, u32)> {
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
