//! A machine with memory for streams and data, and streams written packet by packet.

use unwedge_base::Generation;
use unwedge_hw::{Adreno, Db, Gpu};
use unwedge_sim::adreno::{AdrenoMachine, RunEnd, ThreadId};
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// Where the stream lies.
pub const STREAM: u64 = 0x1_0000_0000;
/// Where data lies: zeros, 64 KiB.
pub const DATA: u64 = 0x2_0000_0000;
/// A register that nothing reads.
pub const PLAIN: u32 = 0x8e01;

/// A stream that is being written.
pub struct Stream<'d> {
    pub gpu: Gpu<'d>,
    pub words: Vec<u32>,
}

pub fn low(iova: u64) -> u32 {
    iova as u32
}

pub fn high(iova: u64) -> u32 {
    (iova >> 32) as u32
}

impl<'d> Stream<'d> {
    pub fn new(db: &'d Db, generation: Generation) -> Stream<'d> {
        Stream { gpu: db.gpu(generation), words: Vec::new() }
    }

    /// An operation by its packet's name without CP_.
    pub fn op(&mut self, name: &str, payload: &[u32]) -> &mut Self {
        let name = format!("CP_{name}");
        let opcode = (0..128).find(|&opcode| self.gpu.packet_name(opcode) == Some(&name)).expect(&name);
        let header = AdrenoPacketHeader::Operation { opcode, count: payload.len() as u32 };
        self.words.extend(header.encode(self.gpu.generation()));
        self.words.extend_from_slice(payload);
        self
    }

    /// Writes registers.
    pub fn write(&mut self, reg: u32, values: &[u32]) -> &mut Self {
        let header = AdrenoPacketHeader::Registers { reg, count: values.len() as u32 };
        self.words.extend(header.encode(self.gpu.generation()));
        self.words.extend_from_slice(values);
        self
    }

    /// CP_MEM_WRITE of one dword to data.
    pub fn store(&mut self, offset: u64, value: u32) -> &mut Self {
        self.op("MEM_WRITE", &[low(DATA + offset), high(DATA + offset), value])
    }
}

pub fn machine(db: &Db, generation: Generation) -> AdrenoMachine<'_> {
    let name = if generation == Generation::A6xx { "a630" } else { "a740" };
    machine_of(db, db.identify_name(name).expect(name))
}

/// A machine that is a certain GPU.
pub fn machine_of<'d>(db: &'d Db, gpu: Adreno<'d>) -> AdrenoMachine<'d> {
    let mut machine = AdrenoMachine::new(db, gpu).expect("a6xx and later");
    machine.space.memory.map(DATA, vec![0; 0x1_0000]).unwrap();
    machine
}

/// Maps a stream, and executes it.
pub fn run(machine: &mut AdrenoMachine<'_>, words: &[u32]) -> RunEnd {
    machine.space.unmap(STREAM, 0x10_0000);
    machine.space.memory.map(STREAM, words.iter().flat_map(|word| word.to_le_bytes()).collect()).unwrap();
    machine.begin();
    machine.submit(STREAM, words.len() as u32);
    machine.run(10_000)
}

/// A dword of data.
pub fn data(machine: &AdrenoMachine<'_>, offset: u64) -> u32 {
    machine.space.memory.load(DATA + offset, 4).known().unwrap() as u32
}

/// A register of BR.
pub fn register(machine: &AdrenoMachine<'_>, reg: u32) -> u32 {
    machine.read_register(ThreadId::Br, reg)
}
