//! Culprits among many draws, packets, registers and instructions, found by bisection on the virtual Adreno.

#[path = "edited/replay.rs"]
mod replay;

use replay::{LIMIT, Replayed, edited};
use unwedge_base::Generation;
use unwedge_edit::bisect::{
    BisectEnd, BisectItem, BisectPlan, BisectSearch, BisectStep, BisectSubject, TrialVerdict,
};
use unwedge_edit::instrument::{Instrumentation, Instrumenter, Stomp, StompPoint};
use unwedge_edit::rewrite::AddressSpace;
use unwedge_hw::Db;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_sim::adreno::{Loading, RunEnd};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};
use unwedge_testkit::rd::CaptureBuilder;

const STEPS: u64 = 1 << 20;
const STREAM: u64 = 0x1_0000_0000;
const FENCE: u64 = 0x1_4000_0000;
const CODE: u64 = 0x1_5000_0000;
const DRAWS: u32 = 1000;

fn opcode(name: &str) -> u32 {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    u32::from((0..0x7f).find(|&opcode| gpu.packet_name(opcode) == Some(name)).expect("a packet"))
}

fn register(name: &str) -> u32 {
    let db = Db::builtin();
    db.gpu(Generation::A6xx).reg_offset(name).expect("a register")
}

/// Searches with the virtual Adreno; the end, the item, and how often it replayed.
fn search(bytes: &[u8], subject: BisectSubject) -> (BisectEnd, Option<BisectItem>, usize) {
    let db = Db::builtin();
    let space = AddressSpace::scan(bytes);
    let (plan, lost) = BisectPlan::new(subject, space, bytes, &db, LIMIT).expect("a plan");
    assert_eq!(lost, []);
    let mut search = BisectSearch::new("test", 0, plan.items().len());
    loop {
        match search.next() {
            BisectStep::End(end) => {
                let item = match end {
                    BisectEnd::Culprit(index) => plan.items().get(index).cloned(),
                    _ => None,
                };
                return (end, item, search.trials());
            }
            BisectStep::Try(count) => {
                let mut trial = Vec::new();
                plan.trial(count, bytes, &db, LIMIT, &mut trial).expect("a trial");
                let ended = Replayed::new(&trial, Loading::Snapshot, STEPS, &db);
                let bad = ended.ends.iter().any(|end| *end != RunEnd::Done);
                search.learn(count, if bad { TrialVerdict::Bad } else { TrialVerdict::Good });
            }
        }
    }
}

/// Dispatches of a shader that ends at once, in buffers that are called; the one with this number reads unmapped arguments.
fn dispatches(culprit: u32) -> Vec<u8> {
    let code: Vec<u32> = std::iter::once(Assembler::new(630).instruction("end").expect("end"))
        .flat_map(|word| [word as u32, (word >> 32) as u32])
        .chain([0; 62])
        .collect();
    let mut capture = CaptureBuilder::new(630, "dispatches\0").buffer(CODE, &code);
    let mut outer = Vec::new();
    for (part, first) in (0..DRAWS).step_by(100).enumerate() {
        let mut inner = Vec::new();
        for number in first..first + 100 {
            inner.extend(pkt4(register("SP_CS_OBJ_START"), &[CODE as u32, (CODE >> 32) as u32]));
            if number == culprit {
                inner.extend(pkt7(opcode("CP_EXEC_CS_INDIRECT"), &[0, 0xdead_0000, 7, 0]));
            } else {
                inner.extend(pkt7(opcode("CP_EXEC_CS"), &[0, 1, 1, 1]));
            }
        }
        let at = STREAM + 0x10_0000 * (part as u64 + 1);
        outer.extend(indirect_buffer(at, inner.len() as u32));
        capture = capture.buffer(at, &inner);
    }
    capture.buffer(STREAM, &outer).submit(STREAM, outer.len() as u32).bytes()
}

#[test]
fn a_culprit_among_a_thousand_draws_takes_twelve_replays_at_most() {
    for culprit in [0, 1, 499, 713, 999] {
        let (end, item, replays) = search(&dispatches(culprit), BisectSubject::Draws);
        let Some(BisectItem::Draw { works, .. }) = item else { panic!("{end:?}") };
        assert_eq!((works, end), (vec![culprit], BisectEnd::Culprit(culprit as usize)));
        assert!(replays <= 12, "{replays}");
    }
}

#[test]
fn a_packet_is_found() {
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let culprit = rng.below(300) as u64;
        let mut words = Vec::new();
        for number in 0..300 {
            if number == culprit {
                let [low, high] = [FENCE as u32, (FENCE >> 32) as u32];
                words.extend(pkt7(opcode("CP_WAIT_REG_MEM"), &[3 | 1 << 4, low, high, 77, u32::MAX, 16]));
            } else {
                words.extend(pkt4(0x8010 + number as u32 % 6, &[number as u32]));
            }
        }
        let at = STREAM + 0x1000;
        let outer = indirect_buffer(at, words.len() as u32);
        let bytes = CaptureBuilder::new(630, "packets\0")
            .buffer(STREAM, &outer)
            .buffer(at, &words)
            .buffer(FENCE, &[0; 16])
            .submit(STREAM, outer.len() as u32)
            .bytes();
        let (end, item, replays) = search(&bytes, BisectSubject::Packets);
        assert_eq!(item, Some(BisectItem::Packet { set: 0, iova: at + 8 * culprit }), "{end:?}");
        assert!(replays <= 12, "{replays}");
    }
}

/// A stream that begins a command buffer, and waits until a register is what nothing sets it to.
fn relies_on(reg: u32) -> Vec<u8> {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let usages = gpu.space(unwedge_hw::RegSpace::Gpu);
    let setup = usages.iter().filter(|r| r.usage() == Some("cmd") && r.offset() != reg).take(20);
    let mut words: Vec<u32> = setup.flat_map(|r| pkt4(r.offset(), &[0])).collect();
    // Polls the register until its bits are not all ones.
    words.extend(pkt7(opcode("CP_WAIT_REG_MEM"), &[4, reg, 0, u32::MAX, u32::MAX, 16]));
    CaptureBuilder::new(630, "stale\0").buffer(STREAM, &words).submit(STREAM, words.len() as u32).bytes()
}

#[test]
fn a_register_that_a_command_buffer_relies_on_takes_sixteen_replays_at_most() {
    let db = Db::builtin();
    let gpu = db.gpu(Generation::A6xx);
    let stomp =
        Stomp { range: 0xc00..=0xbe01, inverse: false, points: vec![StompPoint::CommandBuffer], first: None };
    let regs = stomp.registers(gpu);
    assert!(regs.len() > 100, "{}", regs.len());
    let mut rng = Rng::new(1);
    for _ in 0..6 {
        // Not one of those that the setup of the stream writes.
        let reg = regs[40 + rng.below(regs.len() - 40)];
        let bytes = relies_on(reg);
        let (end, item, replays) = search(&bytes, BisectSubject::Registers(stomp.clone()));
        assert_eq!(item, Some(BisectItem::Register(reg)), "{end:?}");
        assert!(replays <= 16, "{replays}");
        // The same register stomped alone shows it, all others do not.
        for (inverse, bad) in [(false, true), (true, false)] {
            let stomp = Stomp { range: reg..=reg, inverse, ..stomp.clone() };
            let options = Instrumentation { stomp: Some(stomp), ..Instrumentation::default() };
            let (out, _) = edited(&bytes, &mut Instrumenter::new(&options), &db).expect("written");
            let ended = Replayed::new(&out, Loading::Snapshot, STEPS, &db);
            assert_eq!(ended.ends.iter().any(|end| *end != RunEnd::Done), bad, "{reg:#x} {inverse}");
        }
    }
}

#[test]
fn an_instruction_is_found() {
    let mut assembler = Assembler::new(630);
    for culprit in [0, 5, 18] {
        let mut words: Vec<u64> = (0..20)
            .map(|index| if index == culprit { "jump #0" } else { "add.u r0.x, r0.x, r0.y" })
            .map(|line| assembler.instruction(line).expect(line))
            .collect();
        words.push(assembler.instruction("end").expect("end"));
        words.resize(32, 0);
        let code: Vec<u32> = words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]).collect();
        let stream = [
            pkt4(register("SP_CS_OBJ_START"), &[CODE as u32, (CODE >> 32) as u32]),
            // In units of 16.
            pkt4(register("SP_CS_INSTRLEN"), &[2]),
            pkt7(opcode("CP_EXEC_CS"), &[0, 1, 1, 1]),
        ]
        .concat();
        let bytes = CaptureBuilder::new(630, "shader\0")
            .buffer(STREAM, &stream)
            .buffer(CODE, &code)
            .submit(STREAM, stream.len() as u32)
            .bytes();
        let (end, item, _) = search(&bytes, BisectSubject::Instructions(vec![CODE]));
        let word = words[culprit];
        assert_eq!(item, Some(BisectItem::Instruction { shader: CODE, index: culprit, word }), "{end:?}");
    }
}
