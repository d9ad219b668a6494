//! The packets of a set, in the order in which they are executed.

#![allow(dead_code, reason = "each test file uses its own part")]

use super::set::SubmitSet;
use unwedge_hw::{Db, Gpu};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, AdrenoWalker, Exec, Flow, WalkerOptions,
};

/// A packet that is surely executed.
#[derive(Clone, Debug)]
pub struct ListedPacket {
    pub iova: u64,
    pub op: AdrenoOp,
    /// The operation, `None` for register writes.
    pub opcode: Option<u8>,
    /// Header and payload.
    pub words: Vec<u32>,
    /// Inside a draw-state group.
    pub in_group: bool,
    /// IB level: 1 for the streams of the set.
    pub level: u8,
    /// Where its stream starts, and its dwords.
    pub stream: (u64, u64),
    /// The packet that called its stream.
    pub caller: Option<u64>,
    /// Of a dispatch: the code, and the bindless descriptor sets.
    pub code: Option<u64>,
    pub descriptors: Vec<u64>,
}

impl ListedPacket {
    pub fn pair(&self, at: usize) -> Option<u64> {
        Some(u64::from(*self.words.get(at)?) | u64::from(*self.words.get(at + 1)?) << 32)
    }

    /// One past its last dword.
    pub fn end(&self) -> u64 {
        self.iova + 4 * self.words.len() as u64
    }
}

struct Lister<'g> {
    gpu: Gpu<'g>,
    packets: Vec<ListedPacket>,
    /// Kind, start, dwords and caller of the streams around.
    stack: Vec<(AdrenoStreamKind, u64, u64, Option<u64>)>,
    last: Option<u64>,
}

impl Lister<'_> {
    fn address(&self, state: &AdrenoState, name: &str) -> Option<u64> {
        let reg = self.gpu.reg_offset(name)?;
        Some(u64::from(state.regs.get(reg)?) | u64::from(state.regs.get(reg + 1)?) << 32)
    }
}

impl AdrenoSink for Lister<'_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::Packet(packet) => {
                self.last = packet.place.iova;
                let Some(iova) = packet.place.iova.filter(|_| packet.exec == Exec::Always) else {
                    return Flow::Continue;
                };
                let opcode = match packet.header {
                    AdrenoPacketHeader::Operation { opcode, .. } => Some(opcode),
                    _ => None,
                };
                let (kind, start, dwords, caller) =
                    self.stack.last().copied().unwrap_or((AdrenoStreamKind::Indirect, iova, 0, None));
                let dispatch = matches!(packet.op, AdrenoOp::ExecCs | AdrenoOp::ExecCsIndirect);
                let sets = (0..8).filter_map(|n| {
                    let name = format!("SP_CS_BINDLESS_BASE[{n}].DESCRIPTOR");
                    let hex = format!("SP_CS_BINDLESS_BASE[{n:#x}].DESCRIPTOR");
                    self.address(state, &name).or_else(|| self.address(state, &hex)).filter(|&base| base != 0)
                });
                self.packets.push(ListedPacket {
                    iova,
                    op: packet.op,
                    opcode,
                    words: packet.dwords.iter().collect(),
                    in_group: kind != AdrenoStreamKind::Indirect,
                    level: self.stack.len() as u8,
                    stream: (start, dwords),
                    caller,
                    code: self.address(state, "SP_CS_OBJ_START").filter(|_| dispatch),
                    descriptors: if dispatch { sets.map(|base| base & !3).collect() } else { Vec::new() },
                });
            }
            AdrenoEvent::Enter(stream) => {
                self.stack.push((stream.kind, stream.iova.unwrap_or(0), stream.claimed, self.last));
            }
            AdrenoEvent::Leave(_) => {
                self.stack.pop();
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// The packets that are surely executed, each where it is executed first.
pub fn packets(set: &SubmitSet, db: &Db) -> Vec<ListedPacket> {
    let gpu = db.gpu(set.adreno(db).generation);
    let memory = set.memory();
    let mut lister = Lister { gpu, packets: Vec::new(), stack: Vec::new(), last: None };
    for &(iova, dwords) in &set.streams {
        let Some(stream) = memory.dwords(iova) else { continue };
        lister.stack = vec![(AdrenoStreamKind::Indirect, iova, dwords.into(), None)];
        let options = WalkerOptions { linear: false, budget: 1 << 22 };
        AdrenoWalker::new(gpu, &memory, options).walk(stream.take(dwords as usize), Some(iova), &mut lister);
    }
    let mut seen = std::collections::BTreeSet::new();
    lister.packets.retain(|packet| seen.insert(packet.iova));
    lister.packets
}
