//! Walking a command stream: register writes and draws behind an indirect buffer.

use divan::Bencher;
use divan::counter::BytesCount;
use unwedge_base::{Buffer, Dwords, Generation, Memory};
use unwedge_hw::Db;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoSink, AdrenoState, AdrenoWalker, Flow, WalkerOptions};

fn main() {
    divan::main();
}

const IB: u64 = 0x1_0000_0000;
const DRAWS: usize = 4096;

fn packet(stream: &mut Vec<u32>, header: AdrenoPacketHeader, payload: &[u32]) {
    stream.push(header.encode(Generation::A6xx).expect("a6xx has both packet types"));
    stream.extend_from_slice(payload);
}

/// Draws with 24 register writes each.
fn stream() -> Vec<u32> {
    let mut out = Vec::new();
    for draw in 0..DRAWS as u32 {
        for block in 0..3u32 {
            let values: Vec<u32> = (0..8).map(|i| draw * 31 + i).collect();
            packet(&mut out, AdrenoPacketHeader::Registers { reg: 0x8820 + 8 * block, count: 8 }, &values);
        }
        packet(&mut out, AdrenoPacketHeader::Operation { opcode: 0x38, count: 3 }, &[0x84, 1, 3]);
    }
    out
}

#[derive(Default)]
struct Count(usize);

impl AdrenoSink for Count {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        self.0 += usize::from(matches!(event, AdrenoEvent::Draw(_) | AdrenoEvent::RegWrite(_)));
        Flow::Continue
    }
}

#[divan::bench]
fn draws_in_an_ib(bencher: Bencher<'_, '_>) {
    let contents = stream();
    let size = contents.len();
    let mut memory = Memory::default();
    memory.add(Buffer { iova: IB, size: 4 * size as u64, contents: Some(contents), name: String::new() });
    let mut ring = Vec::new();
    let call = [IB as u32, (IB >> 32) as u32, size as u32];
    packet(&mut ring, AdrenoPacketHeader::Operation { opcode: 0x3f, count: 3 }, &call);
    let db = Db::builtin();
    bencher.counter(BytesCount::new(4 * size)).bench(|| {
        let mut sink = Count::default();
        let mut walker = AdrenoWalker::new(db.gpu(Generation::A6xx), &memory, WalkerOptions::default());
        walker.walk(Dwords::from(ring.as_slice()), None, &mut sink);
        assert_eq!(sink.0, 25 * DRAWS);
        sink.0
    });
}
