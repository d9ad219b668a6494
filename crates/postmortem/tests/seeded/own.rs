//! Submits made from a seed: passes with draws and draw states, calls of other buffers, fences and waits for them, dispatches.

#![allow(dead_code, reason = "each test file uses its own part")]

use super::set::SubmitSet;
use unwedge_base::{Buffer, Generation};
use unwedge_hw::{Db, Gpu};
use unwedge_isa::ir3::asm::Assembler;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pm4::{pkt4, pkt7};

const IB1: u64 = 0x1_0000_0000;
const IB2: u64 = 0x1_0010_0000;
const STATES: u64 = 0x1_0020_0000;
const FENCES: u64 = 0x1_0030_0000;
const CODE: u64 = 0x1_0040_0000;
const DATA: u64 = 0x1_0050_0000;

const DESCRIPTORS: u64 = 0x1_0060_0000;

/// Copies a dword from the first buffer of a descriptor set to the second one.
const SHADER: &str = "mov.u32u32 r0.x, 0
    (rpt5)nop
    ldib.b.untyped.1d.u32.1.imm.base0 r1.x, r0.x, 0
    (rpt5)nop
    (sy)(ss)nop
    stib.b.untyped.1d.u32.1.imm.base0 r1.x, r0.x, 1
    end";
/// Dwords that the code is filled up to.
const CODE_DWORDS: usize = 64;
/// Dwords of each buffer that the shader knows.
const SHADER_DWORDS: u32 = 64;

/// The shader's code.
fn code(gpu_id: u32) -> Vec<u32> {
    let mut assembler = Assembler::new(gpu_id);
    let words = SHADER.lines().map(|line| assembler.instruction(line.trim()).expect(line));
    let mut code: Vec<u32> = words.flat_map(|word| [word as u32, (word >> 32) as u32]).collect();
    code.resize(CODE_DWORDS, 0);
    code
}

/// Descriptors of dwords in memory.
fn descriptors(moved: u64) -> Vec<u32> {
    let buffer = |iova: u64| {
        let mut words = [0; 16];
        // FMT6_32_UINT; a buffer.
        (words[0], words[1], words[2]) = (0x4b << 22, SHADER_DWORDS, 4 << 29);
        [words[4], words[5]] = halves(iova);
        words
    };
    [buffer(moved + DATA + 0x1000), buffer(moved + DATA + 0x1800)].concat()
}

struct Maker<'d> {
    gpu: Gpu<'d>,
    rng: Rng,
    fences: u32,
    /// Bytes that are added to all addresses.
    moved: u64,
    states: Vec<u32>,
}

fn halves(iova: u64) -> [u32; 2] {
    [iova as u32, (iova >> 32) as u32]
}

impl Maker<'_> {
    fn op(&self, name: &str, payload: &[u32]) -> Vec<u32> {
        let found = (0..=0x7f).find(|&opcode| self.gpu.packet_name(opcode) == Some(name));
        pkt7(found.expect(name).into(), payload)
    }

    fn reg(&self, name: &str, values: &[u32]) -> Vec<u32> {
        pkt4(self.gpu.reg_offset(name).expect(name), values)
    }

    fn value(&mut self) -> u32 {
        self.rng.next_u64() as u32
    }

    fn a7xx(&self) -> bool {
        self.gpu.generation() >= Generation::A7xx
    }

    /// An event that writes, and a wait for what it writes.
    fn fence(&mut self) -> [Vec<u32>; 2] {
        self.fences += 1;
        let [low, high] = halves(self.moved + FENCES + 16 * u64::from(self.fences));
        let value = 1 + (self.value() & 0xff);
        let event = match self.a7xx() {
            true => self.op("CP_EVENT_WRITE7", &[4 | 1 << 27, low, high, value]),
            false => self.op("CP_EVENT_WRITE", &[4, low, high, value]),
        };
        [event, self.op("CP_WAIT_REG_MEM", &[3 | 1 << 4, low, high, value, u32::MAX, 16])]
    }

    /// Registers that nothing depends on.
    fn state(&mut self) -> Vec<u32> {
        let count = 1 + self.rng.below(3);
        let values: Vec<u32> = (0..count).map(|_| self.value()).collect();
        self.reg("GRAS_CL_VPORT[0].XOFFSET", &values)
    }

    fn draw(&mut self) -> Vec<u32> {
        let count = 3 * (1 + self.rng.below(40) as u32);
        self.op("CP_DRAW_INDX_OFFSET", &[0x84, 1, count])
    }

    fn draw_states(&mut self) -> Vec<u32> {
        let mut payload = Vec::new();
        for id in 0..1 + self.rng.below(3) as u32 {
            let group = [self.state(), self.op("CP_NOP", &[7])].concat();
            let [low, high] = halves(self.moved + STATES + 4 * self.states.len() as u64);
            payload.extend([group.len() as u32 | 7 << 20 | id << 24, low, high]);
            self.states.extend(group);
        }
        self.op("CP_SET_DRAW_STATE", &payload)
    }

    fn dispatch(&mut self) -> Vec<u32> {
        let [low, high] = halves(self.moved + CODE);
        let [sets, sets_high] = halves(self.moved + (DESCRIPTORS | 3));
        let groups = [1 + self.rng.below(3) as u32, 1, 1];
        [
            self.op("CP_SET_MARKER", &[8]),
            self.reg("SP_CS_OBJ_START", &[low, high]),
            self.reg("SP_CS_INSTRLEN", &[1]),
            self.reg("HLSQ_CS_NDRANGE_0", &[1 | 63 << 2]),
            self.reg("SP_CS_BINDLESS_BASE[0].DESCRIPTOR", &[sets, sets_high]),
            self.op("CP_EXEC_CS", &[&[0][..], &groups].concat()),
        ]
        .concat()
    }

    /// A piece of a stream that ends by itself.
    fn piece(&mut self) -> Vec<u32> {
        let data = self.moved + DATA + 64 * self.rng.below(64) as u64;
        let [low, high] = halves(data);
        match self.rng.below(9) {
            0 => [self.draw_states(), self.draw()].concat(),
            1 => {
                let [event, wait] = self.fence();
                let between = self.draw();
                [event, between, wait].concat()
            }
            2 => self.dispatch(),
            3 => {
                let value = self.value();
                self.op("CP_MEM_WRITE", &[low, high, value])
            }
            4 => {
                let reg = self.gpu.reg_offset("GRAS_CL_VPORT[0].XOFFSET").expect("a register");
                self.op("CP_REG_TO_MEM", &[reg | 2 << 18, low, high])
            }
            5 => self.op("CP_WAIT_FOR_IDLE", &[]),
            6 => {
                let [from, from_high] = halves(self.moved + FENCES);
                self.op("CP_MEM_TO_MEM", &[0, low, high, from, from_high])
            }
            7 => [self.state(), self.draw()].concat(),
            _ => self.op("CP_NOP", &[1, 2, 3]),
        }
    }
}

fn buffer(iova: u64, words: Vec<u32>, name: &str) -> Buffer {
    let size = (4 * words.len() as u64).next_multiple_of(0x1000).max(0x1000);
    Buffer { iova, size, contents: Some(words), name: name.to_owned() }
}

/// A submit that is executed to its end.
pub fn submit(seed: u64, db: &Db) -> SubmitSet {
    submit_at(seed, 0, db)
}

/// The same with `moved` added to all addresses.
pub fn submit_at(seed: u64, moved: u64, db: &Db) -> SubmitSet {
    let mut rng = Rng::new(seed);
    let gpu = ["a630", "a740", "a660", "a618", "a730"][rng.below(5)];
    let generation = db.identify_name(gpu).expect("a GPU").generation;
    let mut maker = Maker { gpu: db.gpu(generation), rng, fences: 0, moved, states: Vec::new() };
    let mut ib1 = maker.op("CP_SET_MARKER", &[1]);
    if maker.a7xx() {
        // As Turnip does: BR alone, without concurrent binning.
        ib1.extend(maker.op("CP_THREAD_CONTROL", &[1 | 1 << 27]));
    }
    let mut inner = Vec::new();
    for n in 0..2 + maker.rng.below(4) as u64 {
        for _ in 0..maker.rng.below(4) {
            let piece = maker.piece();
            ib1.extend(piece);
        }
        let mut ib2 = Vec::new();
        for _ in 0..2 + maker.rng.below(7) {
            let piece = maker.piece();
            ib2.extend(piece);
        }
        let iova = moved + IB2 + 0x1_0000 * n;
        let [low, high] = halves(iova);
        let call = maker.op("CP_INDIRECT_BUFFER", &[low, high, ib2.len() as u32]);
        ib1.extend(call);
        inner.push(buffer(iova, ib2, "ib2"));
    }
    ib1.extend(maker.op("CP_WAIT_FOR_IDLE", &[]));
    let a7xx = maker.a7xx();
    let streams = vec![(moved + IB1, ib1.len() as u32)];
    let mut buffers = vec![
        buffer(moved + IB1, ib1, "ib1"),
        buffer(moved + STATES, maker.states.clone(), "states"),
        buffer(moved + FENCES, vec![0; 256], "fences"),
        buffer(moved + CODE, code(if a7xx { 740 } else { 630 }), "code"),
        buffer(moved + DESCRIPTORS, descriptors(moved), "descriptors"),
        buffer(moved + DATA, vec![0; 2048], "data"),
    ];
    buffers.extend(inner);
    SubmitSet { name: format!("own {seed:#x}"), gpu: gpu.to_owned(), buffers, streams }
}
