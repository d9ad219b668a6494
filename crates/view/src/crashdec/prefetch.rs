//! Where the SQE was, as freedreno's crashdec finds it.
//!
//! How far back the SQE may be is a fact of [`unwedge_stream::adreno::read_ahead`]. Which calls come before is looked for as the
//! tool does it, so that its mark is in the same line: headers are read leniently and without following calls, only
//! CP_INDIRECT_BUFFERs that follow each other directly count, and what is not in the dump ends the search. The post-mortem
//! walks the stream instead.

use crate::listing::MarkTarget;
use std::collections::VecDeque;
use unwedge_base::{Dwords, Memory};
use unwedge_hw::Gpu;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::payload::IndirectBuffer;
use unwedge_stream::adreno::read_ahead::{READ_AHEAD, count_back};

/// Where to look for buffers.
pub struct Search<'s> {
    pub gpu: Gpu<'s>,
    pub memory: &'s Memory,
}

/// A buffer that a CP_INDIRECT_BUFFER calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    iova: u64,
    dwords: u32,
}

/// The calls in front of a position, nothing else between them, oldest first.
type Calls = VecDeque<Call>;

/// Moves the targets of IB1 and IB2 back from where the ROQ was to where the SQE was.
pub fn locate(search: &Search<'_>, ring: Dwords<'_>, mut targets: [MarkTarget; 4]) -> [MarkTarget; 4] {
    let mut in_ring = Calls::new();
    let [_, ib1, ib2, _] = &mut targets;
    let Some(last) = search.scan(&mut in_ring, ring, ib1) else { return targets };
    if ib2.rem == 0 {
        return targets;
    }
    // IB2s are read ahead over the end of an IB1, so the history goes on from one IB1 to the next.
    let mut in_ib1 = Calls::new();
    for (i, call) in in_ring.iter().enumerate() {
        let Some(dwords) = search.memory.dwords(call.iova).filter(|_| call.iova != 0) else { break };
        if search.scan(&mut in_ib1, dwords.take(call.dwords as usize), ib2).is_some() {
            // The SQE is in an IB2, so it may have passed calls in IB1 behind it: look for it from the first IB1 on.
            if let Some(first) = in_ring.front() {
                (ib1.base, ib1.rem) = (first.iova, first.dwords);
            }
            break;
        }
        if i == last {
            break;
        }
    }
    targets
}

impl Search<'_> {
    /// Looks for the call of the target's buffer. When it is found, and enough was called before it, the target becomes
    /// where the SQE was; returns which of the calls that is.
    fn scan(&self, calls: &mut Calls, stream: Dwords<'_>, target: &mut MarkTarget) -> Option<usize> {
        let mut at = 0;
        // Beyond what is stored there are zeros only.
        while at < stream.len().min(stream.stored().len()) {
            let raw = stream.get(at)?;
            match AdrenoPacketHeader::decode_lenient(raw) {
                Some(AdrenoPacketHeader::Operation { opcode, count })
                    if self.gpu.packet_name(opcode) == Some("CP_INDIRECT_BUFFER") =>
                {
                    let payload = stream.skip(at + 1);
                    if let Some(IndirectBuffer { iova, size: dwords }) =
                        IndirectBuffer::parse(payload, self.gpu.generation())
                    {
                        if calls.len() == READ_AHEAD {
                            calls.pop_front();
                        }
                        calls.push_back(Call { iova, dwords });
                        if iova == target.base {
                            return back(calls, target);
                        }
                    }
                    at += 1 + count as usize;
                    continue;
                }
                Some(header) if !matches!(header, AdrenoPacketHeader::Padding) => {
                    at += 1 + header.count() as usize
                }
                _ => {
                    at += 1;
                    while stream
                        .stored()
                        .get(at)
                        .is_some_and(|&raw| AdrenoPacketHeader::decode_parity(raw).is_none())
                    {
                        at += 1;
                    }
                }
            }
            calls.clear();
        }
        None
    }
}

/// Goes back over the calls by as many dwords as are left.
fn back(calls: &Calls, target: &mut MarkTarget) -> Option<usize> {
    let sizes = calls.iter().rev().map(|call| u64::from(call.dwords));
    let (back, left) = count_back(sizes, u64::from(target.rem))?;
    let index = calls.len().checked_sub(1 + back)?;
    *target = MarkTarget { base: calls.get(index)?.iova, rem: left as u32, found: true };
    Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(list: &[(u64, u32)]) -> Calls {
        list.iter().map(|&(iova, dwords)| Call { iova, dwords }).collect()
    }

    #[test]
    fn the_rest_may_reach_back_into_buffers_called_before() {
        let called = calls(&[(0x1000, 100), (0x2000, 10), (0x3000, 20)]);
        let at = |rem| MarkTarget { base: 0x3000, rem, found: false };
        for (rem, expected) in [(5, (2, 0x3000, 5)), (25, (1, 0x2000, 5)), (31, (0, 0x1000, 1))] {
            let mut target = at(rem);
            let index = back(&called, &mut target);
            assert_eq!(
                (index, target),
                (Some(expected.0), MarkTarget { base: expected.1, rem: expected.2, found: true })
            );
        }
        let mut target = at(500);
        assert_eq!((back(&called, &mut target), target), (None, at(500)), "more is left than was called");
    }
}
