//! What the CP executed before a packet, followed through calls.
//!
//! Never: which packet the CP is in; `hang.rs` compares these headers with those that the SQE remembers.

use std::collections::HashMap;

use unwedge_base::Dwords;
use unwedge_stream::adreno::Exec;

use crate::adreno::case::AdrenoCase;
use crate::adreno::trace::{Call, PacketInStream, packet_at};

/// Headers before a packet that are looked for; the SQE remembers fewer operations.
const MAX_EXECUTED: usize = 32;
/// Dwords of a stream that is followed: its packets are found from its first one on.
const MAX_DWORDS: u64 = 1 << 16;

/// The streams of a walk, by the calls that lead to them.
pub(super) struct Streams<'a, 'm> {
    case: &'a AdrenoCase<'m>,
    ring: Dwords<'a>,
    calls: &'a [Call],
    /// The call that is made from a dword of a stream.
    callees: HashMap<(Option<usize>, u64), usize>,
}

impl<'a, 'm> Streams<'a, 'm> {
    /// The streams that a stretch of the ring calls.
    pub(super) fn new(case: &'a AdrenoCase<'m>, ring: Dwords<'a>, calls: &'a [Call]) -> Streams<'a, 'm> {
        let made = calls.iter().enumerate().filter(|(_, call)| call.exec != Exec::NotTaken && call.size > 0);
        let callees = made.map(|(number, call)| ((call.parent, call.at), number)).collect();
        Streams { case, ring, calls, callees }
    }

    /// The stream of a call, or the ring; `None` if the dump does not hold it.
    pub(super) fn of(&self, call: Option<usize>) -> Option<Dwords<'a>> {
        let Some(call) = call else { return Some(self.ring) };
        let call = self.calls.get(call)?;
        Some(self.case.memory.dwords(call.iova)?.take(call.size as usize))
    }

    /// The packet that holds a dword of a stream, with those before it, newest first.
    fn packet(&self, call: Option<usize>, dword: u64) -> Option<PacketInStream> {
        let stream = self.of(call).filter(|_| dword < MAX_DWORDS)?;
        packet_at(stream, dword, self.case.gpu.generation())
    }

    /// The headers that were executed before a packet, latest first: those of `before`, which are before it in the stream of `call`, each
    /// call's after those of the stream it calls; with `follows_callers` then the packet that calls the stream, and those before
    /// that. They end where a stream is not in the dump, and after the packets of a stream that [`packet_at`] keeps if it has more.
    pub(super) fn executed_before(
        &self,
        call: Option<usize>,
        before: Vec<(u64, u32)>,
        follows_callers: bool,
    ) -> Vec<u32> {
        let (mut executed, mut call, mut before) = (Vec::new(), call, before);
        while self.add_executed(call, before, &mut executed) && follows_callers {
            let Some(callee) = call.and_then(|call| self.calls.get(call)) else { break };
            let Some(packet) = self.packet(callee.parent, callee.at) else { break };
            executed.push(packet.header);
            (call, before) = (callee.parent, packet.before);
        }
        executed
    }

    /// Adds headers of packets of a stream, latest first, with those of the streams they call. False: no more are known or wanted.
    fn add_executed(&self, call: Option<usize>, packets: Vec<(u64, u32)>, executed: &mut Vec<u32>) -> bool {
        // Those before the oldest one are not known, unless it begins the stream.
        let begins_stream = packets.last().is_none_or(|&(at, _)| at == 0);
        for (at, header) in packets {
            if let Some(&callee) = self.callees.get(&(call, at)) {
                let last = self.calls.get(callee).map_or(0, |call| call.size.saturating_sub(1));
                let Some(packet) = self.packet(Some(callee), last) else { return false };
                let mut packets = packet.before;
                packets.insert(0, (packet.at, packet.header));
                if !self.add_executed(Some(callee), packets, executed) {
                    return false;
                }
            }
            if executed.len() >= MAX_EXECUTED {
                return false;
            }
            executed.push(header);
        }
        begins_stream
    }
}
