//! One consumer's steps of the streams of every vendor: what is met, what a query reads, what a comparison finds.

mod common;

use common::{cs, memory};
use std::fmt::Write as _;
use unwedge_base::{Buffer, Dwords, Generation, Memory};
use unwedge_hw::amd::{Amd, Gfx};
use unwedge_hw::intel::platform::{EngineClass, Version};
use unwedge_hw::{Db, Selected};
use unwedge_stream::amd::Engine;
use unwedge_stream::compare::{Comparer, PlainRegisters, Record, Recorder, Subject};
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::registers::REGISTERS;
use unwedge_stream::intel::walk::{IntelWalk, Space, Spaces};
use unwedge_stream::query::{DrawScene, Draws, Expr, Query, RegisterNames, StepDraws, Visitor};
use unwedge_stream::{Flow, Reach, Registers, Step, StepSink, adreno, amd, intel};

/// Writes steps down.
#[derive(Default)]
struct Log(String);

impl StepSink for Log {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        let out = &mut self.0;
        let _ = match step {
            Step::Enter(s) => write!(out, "{{{:?} {:#x} ", s.kind, s.iova.unwrap_or(0)),
            Step::Leave(_) => write!(out, "}} "),
            Step::Missing(s) => write!(out, "missing {:#x} ", s.iova.unwrap_or(0)),
            Step::Packet(p) => {
                write!(out, "{}.{} {}; ", p.place.level, p.place.index, p.name().unwrap_or("-"))
            }
            Step::Write(w) => {
                assert_eq!(regs.get(w.reg), Some(w.value), "the write is in the registers");
                write!(out, "={:#x} ", w.value)
            }
            Step::Work(w) => write!(out, "{} {} {:?} ", w.kind.name(), w.number, w.count),
            Step::Wait(w) => write!(out, "{:x?} {:?} {:#x} ", w.operand, w.relation, w.reference),
            Step::Trouble(t) => write!(out, "{:?} ", t.kind),
        };
        Flow::Continue
    }
}

/// A column's values at the pieces of work that are wanted.
struct Rows<'q, 'd> {
    query: &'q mut Query<'d>,
    rows: Vec<(u32, Vec<Option<u64>>)>,
}

impl Visitor for Rows<'_, '_> {
    fn draw(&mut self, scene: &DrawScene<'_>) {
        if self.query.wants(scene).is_some() {
            self.rows.push((scene.draw.number, self.query.values().to_vec()));
        }
    }
}

fn query<'d>(names: impl RegisterNames<'d>, columns: &[&str], condition: &str) -> Query<'d> {
    let select = |name: &&str| -> Selected<'d> { names.select(name).unwrap().remove(0).selected };
    let mut query = Query::new(columns.iter().map(select).map(Some).collect());
    query.condition = Some(Expr::parse(condition).unwrap().bind(names).unwrap());
    query
}

fn adreno_walk(stream: &[u32], held: &Memory, sink: &mut dyn adreno::AdrenoSink) {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    adreno::AdrenoWalker::new(gpu, held, adreno::WalkerOptions::default()).walk(
        Dwords::from(stream),
        None,
        sink,
    );
}

#[test]
fn steps_of_adreno() {
    let held = memory(&[(0x1000, &cs(Generation::A6xx).regs(0x8822, &[0x30]).draw(3).dwords)]);
    let wait = [0x13, 0x2000, 0, 5, 0xff, 0];
    let stream = cs(Generation::A6xx).ib(0x1000, 6).op("WAIT_REG_MEM", &wait).dwords;
    let db = Db::builtin();
    let mut steps = adreno::AdrenoSteps::new(db.gpu(Generation::A6xx), Log::default());
    adreno_walk(&stream, &held, &mut steps);
    assert_eq!(
        steps.sink.0.trim_end(),
        "0.0 CP_INDIRECT_BUFFER; {Call 0x1000 1.0 -; =0x30 1.2 CP_DRAW_INDX_OFFSET; draw 0 Some(3) } \
         0.4 CP_WAIT_REG_MEM; Memory(2000) Some(Equal) 0x5"
    );
}

#[test]
fn a_query_over_steps_is_one_over_events() {
    let stream = cs(Generation::A6xx).regs(0x8822, &[0x30]).draw(3).regs(0x8822, &[0x31]).draw(4).dwords;
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let ask = || query(gpu, &["RB_MRT[0].BUF_INFO"], "draw.count > 3");
    let (mut first, mut second) = (ask(), ask());
    let visitor = Rows { query: &mut first, rows: Vec::new() };
    let mut steps = adreno::AdrenoSteps::new(gpu, StepDraws::new(visitor));
    adreno_walk(&stream, &Memory::default(), &mut steps);
    let mut events = Draws::new(gpu, false, false, Rows { query: &mut second, rows: Vec::new() });
    adreno_walk(&stream, &Memory::default(), &mut events);
    assert_eq!(steps.sink.visitor.rows, [(1, vec![Some(0x31)])]);
    assert_eq!(steps.sink.visitor.rows, events.visitor.rows);
}

/// A packet by its name.
fn packet(amd: Amd<'_>, name: &str, payload: &[u32]) -> Vec<u32> {
    let opcode = (0..=255).find(|&opcode| amd.packet_name(opcode) == Some(name)).expect(name);
    let header =
        amd::AmdPacketHeader::Type3 { opcode, count: payload.len() as u32, predicate: false, compute: false };
    [&[header.encode().unwrap()], payload].concat()
}

fn amd_walk(amd: Amd<'_>, ring: &[u32], held: &Memory, sink: impl StepSink) {
    let mut steps = amd::AmdSteps::new(amd, Engine::Gfx, sink);
    amd::AmdWalker::new(amd, Engine::Gfx, held).walk(Dwords::from(ring), None, &mut steps);
}

struct Borrowed<'s, S>(&'s mut S);

impl<S: StepSink> StepSink for Borrowed<'_, S> {
    fn step(&mut self, regs: &Registers, step: &Step<'_>) -> Flow {
        self.0.step(regs, step)
    }
}

/// A ring that calls a buffer with two draws, each with its pixel shader.
fn amd_ring(amd: Amd<'_>, shaders: [u32; 2]) -> (Vec<u32>, Memory) {
    let draw = |shader| {
        let set = packet(amd, "SET_SH_REG", &[0x8, shader, 0]);
        [set, packet(amd, "DRAW_INDEX_AUTO", &[3, 2])].concat()
    };
    let buffer = [draw(shaders[0]), draw(shaders[1])].concat();
    let ring = packet(amd, "INDIRECT_BUFFER", &[0x1000, 0, buffer.len() as u32]);
    (ring, memory(&[(0x1000, &buffer)]))
}

#[test]
fn steps_of_amd() {
    let db = Db::amd();
    let amd = db.amd_gpu(Gfx::Gfx10_3);
    let (mut ring, held) = amd_ring(amd, [0x11, 0x22]);
    ring.extend(packet(amd, "WAIT_REG_MEM", &[0x13, 0x2000, 0, 5, 0xff, 4]));
    let mut log = Log::default();
    amd_walk(amd, &ring, &held, Borrowed(&mut log));
    assert_eq!(
        log.0.trim_end(),
        "0.0 INDIRECT_BUFFER; {Call 0x1000 1.0 SET_SH_REG; =0x11 =0x0 1.4 DRAW_INDEX_AUTO; draw 0 Some(3) \
         1.7 SET_SH_REG; =0x22 =0x0 1.11 DRAW_INDEX_AUTO; draw 1 Some(3) } \
         0.4 WAIT_REG_MEM; Memory(2000) Some(Equal) 0x5"
    );
}

#[test]
fn registers_of_amd_at_draws() {
    let db = Db::amd();
    let amd = db.amd_gpu(Gfx::Gfx10_3);
    let (ring, held) = amd_ring(amd, [0x11, 0x22]);
    let mut query = query(amd, &["SPI_SHADER_PGM_LO_PS", "CB_COLOR0_INFO"], "@SPI_SHADER_PGM_LO_PS == 0x22");
    let mut draws = StepDraws::new(Rows { query: &mut query, rows: Vec::new() });
    amd_walk(amd, &ring, &held, Borrowed(&mut draws));
    assert_eq!(draws.visitor.rows, [(1, vec![Some(0x22), None])]);
    assert_eq!(draws.lost.missing_in_all, 0);
    let mistake = RegisterNames::select(amd, "SPI_SHADER_PGM_LO_PX").unwrap_err().to_string();
    assert!(mistake.contains("SPI_SHADER_PGM_LO_PS"), "{mistake}");
}

/// What the draws of a walk have, compared: the registers that differ, and for how many draws.
fn differences(
    registers: usize,
    mut record: impl FnMut(u32, &mut StepDraws<Recorder<'static>>),
) -> Vec<(u32, u64)> {
    let facts = PlainRegisters(registers);
    let mut side = |number| {
        let held = Memory::default();
        let mut draws = StepDraws::new(Recorder::of_registers(&facts, false, None));
        draws.visitor.begin(number, &held, 0);
        record(number, &mut draws);
        draws.visitor.end(&held).0
    };
    let [a, b]: [Record; 2] = [side(0), side(1)];
    let compared = Comparer::new(facts, false).compare(&a, &b);
    let registers = compared.differences.iter().filter_map(|(subject, difference)| match subject {
        Subject::Register(reg) => Some((*reg, difference.draws)),
        _ => None,
    });
    registers.collect()
}

#[test]
fn what_differs_between_streams_of_amd() {
    let db = Db::amd();
    let amd = db.amd_gpu(Gfx::Gfx10_3);
    let found = differences(amd::REGISTERS, |side, draws| {
        let (ring, held) = amd_ring(amd, [0x11, 0x22 + side]);
        amd_walk(amd, &ring, &held, Borrowed(draws));
    });
    assert_eq!(found, [(amd.reg_offset("SPI_SHADER_PGM_LO_PS").unwrap(), 1)]);
}

const TGL: Version = Version::new(12, 0);

fn command(name: &str, rest: &[u32]) -> Vec<u32> {
    let decoder = Decoder::new(TGL, EngineClass::Render);
    let header = decoder.gpu.instruction_named(name).unwrap().header(rest.len() as u32 + 1).unwrap();
    [&[header], rest].concat()
}

fn batch(at: u64, commands: &[Vec<u32>]) -> (u64, Vec<u32>) {
    (at, [commands.concat(), command("MI_BATCH_BUFFER_END", &[])].concat())
}

fn held(buffers: Vec<(u64, Vec<u32>)>) -> Memory {
    let buffer = |(iova, words): (u64, Vec<u32>)| {
        let size = words.len() as u64 * 4;
        Buffer { iova, size, contents: Some(words), name: String::new() }
    };
    buffers.into_iter().map(buffer).collect()
}

fn intel_walk(ppgtt: &Memory, sink: &mut dyn StepSink) {
    let ggtt = Memory::default();
    let spaces = Spaces { ggtt: &ggtt, ppgtt };
    let decoder = Decoder::new(TGL, EngineClass::Render);
    intel::steps::IntelSteps::new(decoder, spaces)
        .walk(IntelWalk::batch(decoder, spaces, Space::Ppgtt, 0x1000), sink);
}

fn primitive(vertices: u32) -> Vec<u32> {
    command("3DPRIMITIVE", &[4, vertices, 0, 1, 0, 0])
}

fn pixel_shader(kernel: u32) -> Vec<u32> {
    let mut rest = [0; 11];
    rest[0] = kernel;
    command("3DSTATE_PS", &rest)
}

#[test]
fn steps_of_intel() {
    let call = {
        let mut words = command("MI_BATCH_BUFFER_START", &[0x2000, 0]);
        // A second-level batch of the context's address space.
        words[0] |= 1 << 22 | 1 << 8;
        words
    };
    let load = command("MI_LOAD_REGISTER_IMM", &[0x2580, 0x1_0001]);
    let mut semaphore = command("MI_SEMAPHORE_WAIT", &[7, 0x3000, 0]);
    semaphore[0] |= 4 << 12;
    let memory = held(vec![batch(0x1000, &[call, load, semaphore]), batch(0x2000, &[primitive(3)])]);
    let mut log = Log::default();
    intel_walk(&memory, &mut log);
    let shown = log.0.trim_end();
    assert!(shown.starts_with("0.0 MI_BATCH_BUFFER_START; {Call 0x2000 1.0 3DPRIMITIVE; "), "{shown}");
    assert!(shown.contains("=0x3 =0x0 =0x1 =0x0 =0x0 draw 0 Some(3) 1.7 MI_BATCH_BUFFER_END; } "), "{shown}");
    let rest = "0.3 MI_LOAD_REGISTER_IMM; =0x10001 0.6 MI_SEMAPHORE_WAIT; Memory(3000) Some(Equal) 0x7 \
                0.10 MI_BATCH_BUFFER_END;";
    assert!(shown.ends_with(rest), "{shown}");
}

#[test]
fn state_commands_of_intel_at_draws() {
    let load = command("MI_LOAD_REGISTER_IMM", &[0x2580, 0x1_0001]);
    let stream = [pixel_shader(0x40), primitive(3), load, pixel_shader(0x80), primitive(6)];
    let memory = held(vec![batch(0x1000, &stream)]);
    let names = intel::registers::IntelNames::new(Decoder::new(TGL, EngineClass::Render).gpu);
    let columns = ["3DSTATE_PS.KernelStartPointer0", "0x2580", "3DPRIMITIVE.VertexCountPerInstance"];
    let mut all = query(&names, &columns, "draw.count >= 3");
    let mut draws = StepDraws::new(Rows { query: &mut all, rows: Vec::new() });
    intel_walk(&memory, &mut draws);
    let expected = [(0, vec![Some(0x40), None, Some(3)]), (1, vec![Some(0x80), Some(0x1_0001), Some(6)])];
    assert_eq!(draws.visitor.rows, expected);
    let mut one = query(&names, &columns, "@3DSTATE_PS.KernelStartPointer0 == 0x80");
    let mut draws = StepDraws::new(Rows { query: &mut one, rows: Vec::new() });
    intel_walk(&memory, &mut draws);
    assert_eq!(draws.visitor.rows, expected[1..]);
    let mistake = (&names).select("3DSTATE_PS.KernelStartPointer9").unwrap_err().to_string();
    assert!(mistake.contains("KernelStartPointer0"), "{mistake}");
}

#[test]
fn what_differs_between_streams_of_intel() {
    let found = differences(REGISTERS, |side, draws| {
        let stream = [pixel_shader(0x40), primitive(3), pixel_shader(0x80 + 0x40 * side), primitive(6)];
        intel_walk(&held(vec![batch(0x1000, &stream)]), draws);
    });
    let names = intel::registers::IntelNames::new(Decoder::new(TGL, EngineClass::Render).gpu);
    let named: Vec<_> = found.iter().map(|&(reg, draws)| (names.name_of(reg), draws)).collect();
    assert_eq!(named, [("3DSTATE_PS[1]".to_owned(), 1)]);
}

/// Which of these addresses a walk needs.
fn needed(reach: &Reach, of: &[u64]) -> Vec<u64> {
    of.iter().copied().filter(|&iova| reach.needs(iova)).collect()
}

#[test]
fn what_streams_of_amd_lead_to() {
    let db = Db::amd();
    let amd = db.amd_gpu(Gfx::Gfx10_3);
    // Shaders are pointed to in units of 256 bytes.
    let (mut ring, held) = amd_ring(amd, [0x8000, 0x9000]);
    ring.extend(packet(amd, "WAIT_REG_MEM", &[0x13, 0x2000, 0, 5, 0xff, 4]));
    ring.extend(packet(amd, "SET_SH_REG", &[0x4c, 0x3000, 1]));
    let buffers = [0x1000, 0x2000, 0x4000, 0x80_0000, 0x90_0000, 0xa0_0000, 0x1_0000_3000];
    let mut reach = Reach::of_64bit(buffers.map(|iova| (iova, 0x100)));
    amd_walk(amd, &ring, &held, reach.watch_steps());
    assert_eq!(needed(&reach, &buffers), [0x1000, 0x2000, 0x80_0000, 0x90_0000, 0x1_0000_3000]);
    assert!(reach.is_complete());
}

#[test]
fn what_streams_of_intel_lead_to() {
    let mut bases = [0; 21];
    // Instruction Base Address, and that it is set.
    bases[9] = 0x10_0001;
    let stream = [command("STATE_BASE_ADDRESS", &bases), pixel_shader(0x4000), primitive(3)];
    let memory = held(vec![batch(0x1000, &stream)]);
    let buffers = [0x10_0000, 0x10_4000, 0x10_8000];
    let mut reach = Reach::of_64bit(buffers.map(|iova| (iova, 0x1000)));
    intel_walk(&memory, &mut reach.watch_steps());
    assert_eq!(needed(&reach, &buffers), [0x10_0000, 0x10_4000]);
}
