//! Indirect buffers that lead back to themselves by chaining.
//!
//! Facts: INDIRECT_BUFFER with CHAIN goes on elsewhere and does not come back; a chain to a buffer that it has been through
//! never ends.

use super::evidence::evidence;
use super::position::AmdStop;
use super::stream::{Called, SeenPacket};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_stream::Exec;
use unwedge_stream::amd::{AmdStream, AmdStreamKind};

/// Buffers of one chain that are remembered.
const MAX_CHAIN: usize = 1 << 12;

/// A packet that chains back.
#[derive(Clone, Debug)]
pub(super) struct IbCycle {
    /// Where the packet is.
    from: Option<u64>,
    section: String,
    /// Where it goes to.
    target: u64,
    exec: Exec,
    /// The buffers that are executed over and over.
    buffers: Vec<Called>,
}

/// The chain of buffers at each level of a walk.
#[derive(Default)]
pub(super) struct ChainWatch {
    levels: Vec<Vec<Called>>,
}

impl ChainWatch {
    /// A watch of a walk that starts inside of this buffer.
    pub(super) fn inside(buffer: Called) -> ChainWatch {
        ChainWatch { levels: vec![vec![buffer]] }
    }

    /// A buffer is about to be walked, by the packet before. Says whether it was in the chain already.
    pub(super) fn enter(
        &mut self,
        stream: &AmdStream<'_>,
        called: Called,
        by: Option<&SeenPacket>,
    ) -> Option<IbCycle> {
        if stream.kind != AmdStreamKind::Chain {
            self.levels.push(vec![called]);
            return None;
        }
        let chain = self.levels.last_mut()?;
        if let Some(at) = chain.iter().position(|buffer| buffer.contains(stream.iova)) {
            return Some(IbCycle {
                from: by.and_then(|packet| packet.place.iova),
                section: by.map(SeenPacket::section).unwrap_or_default(),
                target: stream.iova,
                exec: stream.exec,
                buffers: chain.split_off(at),
            });
        }
        if chain.len() < MAX_CHAIN {
            chain.push(called);
        }
        None
    }

    /// A buffer has been walked.
    pub(super) fn leave(&mut self, stream: &AmdStream<'_>) {
        if stream.kind != AmdStreamKind::Chain {
            self.levels.pop();
        }
    }
}

impl IbCycle {
    /// The finding, unless the command processor is known to be in another buffer.
    pub(super) fn finding(&self, stop: Option<&AmdStop>) -> Option<Finding> {
        let level = stop.and_then(|stop| stop.point.levels.last()).filter(|level| level.level > 0);
        let within = level.map(|level| self.buffers.iter().any(|buffer| buffer.contains(level.base)));
        let trust = match (within, self.exec) {
            (Some(false), _) => return None,
            (Some(true), Exec::Always) => Trust::Likely,
            _ => Trust::Possible,
        };
        let fact = Args::new()
            .with("packet", Arg::name("INDIRECT_BUFFER"))
            .with("target", Arg::Address(self.target));
        let seen = Evidence { iova: self.from, ..evidence(self.section.clone(), Fact::Record(fact)) };
        let subject = Subject::Packet { name: Some("INDIRECT_BUFFER".to_owned()), iova: self.from };
        Some(
            Finding::new(Rule::IbLoops, trust, subject)
                .with_some("from", self.from.map(Arg::Address))
                .with("target", Arg::Address(self.target))
                .with("buffers", Arg::Number(self.buffers.len() as u64))
                .with("conditional", self.exec != Exec::Always)
                .seen([seen]),
        )
    }
}
