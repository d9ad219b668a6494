//! Which buffers a stream needs: each way of naming an address, and only those.

mod common;

use common::cs;
use unwedge_base::{Buffer, Generation, Memory};
use unwedge_hw::Db;
use unwedge_stream::adreno::{AdrenoWalker, Reach, WalkerOptions};

const A3XX: Generation = Generation::A3xx;
const A6XX: Generation = Generation::A6xx;

const STREAM: u64 = 0x21_0000_0000;
const OTHER: u64 = 0x22_0000_0000;
const FURTHER: u64 = 0x23_0000_0000;
const IDLE: u64 = 0x24_0000_0000;

/// Register writes.
fn regs(generation: Generation, reg: u32, values: &[u32]) -> Vec<u32> {
    cs(generation).regs(reg, values).dwords
}

/// A call of a buffer of a6xx.
fn call(iova: u64, dwords: u32) -> Vec<u32> {
    cs(A6XX).op("INDIRECT_BUFFER", &[iova as u32, (iova >> 32) as u32, dwords]).dwords
}

/// Which of the other buffers a stream needs, and whether that is all. `contents` is what is in the second one.
fn needed(generation: Generation, low: bool, stream: &[u32], contents: Option<&[u32]>) -> (Vec<u64>, bool) {
    let at = |iova: u64| if low { iova >> 8 } else { iova };
    let buffer = |iova: u64, contents: Option<&[u32]>| Buffer {
        iova: at(iova),
        size: 0x1000,
        contents: contents.map(<[u32]>::to_vec),
        name: String::new(),
    };
    let memory: Memory = [
        buffer(STREAM, Some(stream)),
        buffer(OTHER, contents),
        buffer(FURTHER, Some(&[1, 2, 3])),
        buffer(IDLE, Some(&[4])),
    ]
    .into_iter()
    .collect();
    let db = Db::builtin();
    let gpu = db.gpu(generation);
    let mut reach = Reach::new(generation, memory.buffers().iter().map(|b| (b.iova, b.size)));
    let mut walker =
        AdrenoWalker::new(gpu, &memory, WalkerOptions { linear: true, ..WalkerOptions::default() });
    let dwords = memory.dwords(at(STREAM)).expect("the stream").take(stream.len());
    walker.walk(dwords, Some(at(STREAM)), &mut reach.watch(gpu));
    reach.run(gpu, &memory, at(STREAM), stream.len() as u32);
    reach.spread(&memory);
    assert!(reach.needs(at(STREAM)), "the stream itself");
    let needed = [OTHER, FURTHER, IDLE].into_iter().filter(|&iova| reach.needs(at(iova))).collect();
    (needed, reach.is_complete())
}

fn wide(stream: &[u32]) -> Vec<u64> {
    needed(A6XX, false, stream, Some(&[9])).0
}

fn narrow(stream: &[u32]) -> Vec<u64> {
    needed(A3XX, true, stream, Some(&[9])).0
}

#[test]
fn nothing_is_needed_but_the_stream() {
    assert_eq!(wide(&regs(A6XX, 0x2100, &[1, 2, 3])), [0; 0]);
    assert_eq!(narrow(&regs(A3XX, 0x2100, &[1, 2, 3])), [0; 0]);
    assert_eq!(wide(&regs(A6XX, 0x2100, &[0x1000, 0x22])), [0; 0], "one past the end");
}

#[test]
fn addresses_in_registers() {
    assert_eq!(wide(&regs(A6XX, 0x2100, &[0x40, 0x22])), [OTHER]);
    assert_eq!(
        wide(&regs(A6XX, 0x2100, &[0xfff, 0x1234_0022 | 1 << 17])),
        [OTHER],
        "a size in the high bits"
    );
    let halves = [regs(A6XX, 0x2101, &[0x23]), regs(A6XX, 0x2100, &[0x80])].concat();
    assert_eq!(wide(&halves), [FURTHER], "the halves in packets of their own");
    assert_eq!(narrow(&regs(A3XX, 0x2100, &[0x2200_0ffc])), [OTHER]);
}

#[test]
fn addresses_that_are_shifted_in_their_registers() {
    let db = Db::builtin();
    let gpu = db.gpu(A3XX);
    let reg = gpu.reg_offset("RB_MRT[0].BUF_BASE").expect("a register of a3xx");
    let field = gpu.reg(reg).and_then(|reg| reg.ty()).expect("its type");
    let (_, base) = field.fields().find(|(_, f)| f.shr() > 0).expect("a shifted field");
    let value = (0x2200_0040_u32 >> base.shr()) << base.low();
    assert_ne!(value, 0x2200_0040);
    assert_eq!(narrow(&regs(A3XX, reg, &[value])), [OTHER]);
}

#[test]
fn addresses_in_packets_and_what_they_lead_to() {
    assert_eq!(wide(&cs(A6XX).op("MEM_WRITE", &[0x10, 0x22, 7]).dwords), [OTHER]);
    let (both, complete) = needed(A6XX, false, &call(OTHER, 3), Some(&regs(A6XX, 0x2100, &[0, 0x23])));
    assert_eq!((both, complete), (vec![OTHER, FURTHER], true), "a buffer that is called");
    let table = [7, 7, 0x10, 0x23, 7];
    assert_eq!(needed(A6XX, false, &regs(A6XX, 0x2100, &[0, 0x22]), Some(&table)).0, [OTHER, FURTHER]);
    let table = [7, 0x2300_0010, 7];
    assert_eq!(
        needed(A3XX, true, &cs(A3XX).op("NOP", &[0x2200_0000]).dwords, Some(&table)).0,
        [OTHER, FURTHER]
    );
}

#[test]
fn buffers_without_contents_are_needed_too() {
    assert_eq!(needed(A6XX, false, &regs(A6XX, 0x2100, &[0, 0x22]), None).0, [OTHER]);
}

#[test]
fn streams_that_cannot_be_followed_to_the_end_say_so() {
    let (needed, complete) = needed(A6XX, false, &call(OTHER, 4), Some(&call(OTHER, 4)));
    assert_eq!((needed, complete), (vec![OTHER], false), "a buffer that calls itself");
}

#[test]
fn buffers_over_one_another_go_together() {
    let ranges = [(0x1000, 0x100), (0x1080, 0x100), (0x1180, 0x10), (0x2000, 0)];
    let mut reach = Reach::new(A6XX, ranges);
    assert!(!reach.needs(0x1000));
    reach.point(0x1170);
    assert_eq!([0x1000, 0x1080, 0x1180, 0x2000].map(|iova| reach.needs(iova)), [true, true, false, false]);
    reach.point(0x2000);
    assert!(reach.needs(0x2000), "a buffer of no size can be pointed to");
    let empty: [(u64, u64); 0] = [];
    let mut nothing = Reach::new(A6XX, empty);
    nothing.point(0);
    assert!(!nothing.needs(0));
}
