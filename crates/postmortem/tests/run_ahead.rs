//! The SQE goes on after work that does not end: what the dump has of it, and that `explain` names the work. What the driver
//! protects, too.

use unwedge_base::{Buffer, Memory};
use unwedge_hw::Db;
use unwedge_hw::adreno::mempool::QueuedWrite;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_postmortem::adreno::mempool::{self, QueueEnd};
use unwedge_postmortem::{Report, Rule, explain_msm};
use unwedge_sim::adreno::{AdrenoMachine, HangDump, Loading, Replay, RunEnd};
use unwedge_stream::adreno::header::AdrenoPacketHeader;

const STREAM: u64 = 0x1_0000_0000;
const CODE: u64 = 0x1_0010_0000;
const DATA: u64 = 0x1_0020_0000;
/// The kernel's ring.
const RING: u64 = 0x0001_0000_0000_1000;
const STEPS: u64 = 1 << 24;

struct Submit<'d> {
    db: &'d Db,
    gpu: &'static str,
    words: Vec<u32>,
    code: Vec<u32>,
}

fn halves(iova: u64) -> [u32; 2] {
    [iova as u32, (iova >> 32) as u32]
}

impl<'d> Submit<'d> {
    fn new(db: &'d Db, gpu: &'static str) -> Submit<'d> {
        Submit { db, gpu, words: Vec::new(), code: vec![0; 64] }
    }

    fn regs(&self) -> unwedge_hw::Gpu<'d> {
        self.db.gpu(self.db.identify_name(self.gpu).expect("a GPU").generation)
    }

    /// Address of the packet that comes next.
    fn here(&self) -> u64 {
        STREAM + 4 * self.words.len() as u64
    }

    fn packet(&mut self, header: AdrenoPacketHeader, payload: &[u32]) -> &mut Self {
        self.words.extend(header.encode(self.regs().generation()));
        self.words.extend(payload);
        self
    }

    fn op(&mut self, name: &str, payload: &[u32]) -> &mut Self {
        let gpu = self.regs();
        let opcode = (0..128).find(|&opcode| gpu.packet_name(opcode) == Some(name)).expect(name);
        self.packet(AdrenoPacketHeader::Operation { opcode, count: payload.len() as u32 }, payload)
    }

    fn write(&mut self, name: &str, values: &[u32]) -> &mut Self {
        let reg = self.regs().reg_offset(name).expect(name);
        self.packet(AdrenoPacketHeader::Registers { reg, count: values.len() as u32 }, values)
    }

    fn event(&mut self, event: u32, written: &[u32]) -> &mut Self {
        match self.gpu == "a740" {
            true => self
                .op("CP_EVENT_WRITE7", &[&[event | u32::from(!written.is_empty()) << 27], written].concat()),
            false => self.op("CP_EVENT_WRITE", &[&[event], written].concat()),
        }
    }

    fn shader(&mut self, source: &str) -> &mut Self {
        let mut assembler = Assembler::new(if self.gpu == "a740" { 740 } else { 630 });
        let words = source.lines().map(|line| assembler.instruction(line.trim()).expect(line));
        let words: Vec<u32> = words.flat_map(|word| [word as u32, (word >> 32) as u32]).collect();
        self.code[..words.len()].copy_from_slice(&words);
        self
    }

    /// A dispatch of a wave; the address of its packet.
    fn dispatch(&mut self) -> u64 {
        self.op("CP_SET_MARKER", &[8]);
        self.write("SP_CS_OBJ_START", &halves(CODE)).write("SP_CS_INSTRLEN", &[1]);
        self.write("HLSQ_CS_NDRANGE_0", &[1 | 63 << 2]);
        let at = self.here();
        self.op("CP_EXEC_CS", &[0, 1, 1, 1]);
        at
    }

    fn run(&self) -> (RunEnd, Option<HangDump>) {
        let buffer = |iova: u64, words: &[u32], name: &str| Buffer {
            iova,
            size: 0x1000,
            contents: Some(words.to_vec()),
            name: name.to_owned(),
        };
        let buffers =
            [(STREAM, &self.words, "stream"), (CODE, &self.code, "code"), (DATA, &vec![7; 16], "data")];
        let memory: Memory =
            buffers.map(|(iova, words, name)| buffer(iova, words, name)).into_iter().collect();
        let adreno = self.db.identify_name(self.gpu).expect("a GPU");
        let mut replay =
            Replay::new(AdrenoMachine::new(self.db, adreno).expect("a6xx or a7xx"), Loading::Snapshot);
        replay.dump_hang();
        let end = replay.submit(&memory, STREAM, self.words.len() as u32, STEPS);
        let last = replay.end();
        (if end == RunEnd::Done { last.unwrap_or(RunEnd::Done) } else { end }, replay.take_dump())
    }
}

fn explained<'d>(db: &'d Db, text: &'d [u8]) -> Report {
    explain_msm(&unwedge_capture::msm::Devcore::read(text).expect("a dump"), db)
}

/// What of a dump is looked at.
struct Dumped {
    text: Vec<u8>,
    pool: Vec<u32>,
}

fn dumped(dump: &HangDump) -> Dumped {
    let mut text = Vec::new();
    dump.core.write(&mut text);
    let core = unwedge_capture::msm::Devcore::read(&text).expect("a dump");
    let pool = core.indexed.iter().find(|block| block.name == "CP_MEMPOOL").expect("CP_MEMPOOL");
    let pool = pool.data.as_ref().map(|data| data.decode()).unwrap_or_default();
    Dumped { pool, text }
}

#[test]
fn what_comes_after_a_dispatch_that_does_not_end_is_queued() {
    let db = Db::builtin();
    for gpu in ["a630", "a660", "a740"] {
        let mut submit = Submit::new(&db, gpu);
        submit.shader("jump #0\nend");
        if gpu == "a740" {
            submit.op("CP_THREAD_CONTROL", &[1 | 1 << 27]);
        }
        let culprit = submit.dispatch();
        submit.write("GRAS_CL_VPORT[0].XOFFSET", &[1, 2, 3]);
        let [low, high] = halves(DATA);
        submit.event(4, &[low, high, 9]).event(0x31, &[]);
        submit.dispatch();
        let wait = submit.here();
        submit.op("CP_WAIT_REG_MEM", &[3 | 1 << 4, low, high, 9, u32::MAX, 16]);
        let (end, dump) = submit.run();
        let RunEnd::Stopped { .. } = &end else { panic!("{gpu}: {end:?}") };
        let dumped = dumped(&dump.expect("a dump"));
        let pool = mempool::parse(&dumped.pool, submit.regs());
        assert!(pool.queues.iter().all(|queue| queue.end == QueueEnd::Whole), "{gpu}: {pool:#?}");
        let names = |cluster: &str| -> Vec<String> {
            let queue = pool.queue(cluster).expect(cluster);
            queue.writes.iter().map(|write: &QueuedWrite| write.name(submit.regs())).collect()
        };
        // The first event started and waits for the dispatch to leave its context; the second dispatch has not started.
        assert_eq!(names("SP_PS").first().map(String::as_str), Some("CP_EVENT_END"), "{gpu}");
        let waiting = |command: &str| names("SP_PS").iter().filter(|name| *name == command).count();
        assert_eq!((waiting("HLSQ_DISPATCH_CMD"), waiting("CP_EVENT_START")), (1, 2), "{gpu}");
        assert_eq!(names("FE"), [""; 0], "{gpu}: there is room before GRAS");

        let report = explained(&db, &dumped.text);
        let cause = &report.findings[report.cause.expect("a cause").finding];
        let origin = cause.args.record("origin").expect("its origin");
        assert_eq!(
            (cause.rule, origin.number("iova")),
            (Rule::ShaderProcessorsStuck, Some(culprit)),
            "{gpu}"
        );
        assert_eq!(report.hang.as_ref().and_then(|hang| hang.iova), Some(wait), "{gpu}");
        let rules: Vec<Rule> = report.findings.iter().map(|finding| finding.rule).collect();
        assert!(
            rules.contains(&Rule::CpWaitsForQueuedEvent) && rules.contains(&Rule::WorkNotFinished),
            "{rules:?}"
        );
    }
}

#[test]
fn the_wait_for_idle_holds_what_comes_after_it() {
    let db = Db::builtin();
    let mut submit = Submit::new(&db, "a630");
    submit.shader("jump #0\nend");
    let culprit = submit.dispatch();
    submit.op("CP_WAIT_FOR_IDLE", &[]);
    submit.dispatch();
    let stop = submit.here();
    submit.op("CP_WAIT_FOR_ME", &[]).op("CP_NOP", &[1]);
    let (_, dump) = submit.run();
    let dumped = dumped(&dump.expect("a dump"));
    let pool = mempool::parse(&dumped.pool, submit.regs());
    let name = |cluster: &str, at: usize| {
        pool.queue(cluster).and_then(|q| q.writes.get(at)).map(|w| w.name(submit.regs()))
    };
    assert_eq!(name("PS", 0).as_deref(), Some("RBBM_WAIT_FOR_GPU_IDLE_CMD"));
    assert_eq!(name("FE", 0).as_deref(), Some("CP_EVENT_START"));
    let report = explained(&db, &dumped.text);
    assert_eq!(report.hang.as_ref().and_then(|hang| hang.iova), Some(stop), "the CP waits for the queues");
    let cause = &report.findings[report.cause.expect("a cause").finding];
    assert_eq!(cause.args.record("origin").and_then(|origin| origin.number("iova")), Some(culprit));
}

/// CP_INTERRUPT_STATUS, as a dump has it.
fn interrupts(submit: &Submit<'_>, dump: &HangDump) -> Option<u32> {
    let status = submit.regs().reg_offset("CP_INTERRUPT_STATUS").expect("a register");
    dump.core.registers.iter().find(|register| register.reg == status).map(|register| register.value)
}

/// A packet that the CP cannot execute raises the interrupt that the driver reports as an opcode error, in each thread that reaches it.
/// A hang raises none.
#[test]
fn an_opcode_error_is_an_interrupt() {
    let db = Db::builtin();
    for (gpu, flags) in [("a630", 1), ("a740", 1 | 1 << 13)] {
        let mut garbage = Submit::new(&db, gpu);
        garbage.words.extend([0x1234_5678, 0, 0]);
        let mut unknown = Submit::new(&db, gpu);
        let regs = unknown.regs();
        let opcode = (0..128).find(|&opcode| regs.packet_name(opcode).is_none()).expect("an unused opcode");
        unknown.packet(AdrenoPacketHeader::Operation { opcode, count: 1 }, &[0]);
        let mut endless = Submit::new(&db, gpu);
        endless.shader("jump #0\nend").dispatch();
        for (submit, flags) in [(garbage, flags), (unknown, flags), (endless, 0)] {
            let (end, dump) = submit.run();
            assert_eq!(interrupts(&submit, &dump.expect("a dump")), Some(flags), "{gpu}: {end:?}");
        }
    }
}

#[test]
fn an_access_to_a_protected_register_stops_the_stream() {
    let db = Db::builtin();
    for (gpu, read) in [("a630", false), ("a630", true), ("a740", false)] {
        let mut submit = Submit::new(&db, gpu);
        let base = submit.regs().reg_offset("CP_RB_BASE").expect("a register");
        submit.op("CP_NOP", &[1]);
        let at = submit.here();
        match read {
            true => submit.op("CP_REG_TO_MEM", &[&[base][..], &halves(DATA)].concat()),
            false => submit.write("CP_RB_BASE", &[1, 2]),
        };
        let (end, dump) = submit.run();
        let RunEnd::Stopped { stop, .. } = end else { panic!("{gpu}: {end:?}") };
        let (direction, status) = if read { ("READ", base | 1 << 20) } else { ("WRITE", base) };
        let said =
            format!("CP | protected mode error | {direction} | addr={base:#010x} | status={status:#010x}");
        assert!(stop.to_string().starts_with(&said), "{stop}");
        let dump = dump.expect("a dump");
        let dumped = dumped(&dump);
        // CP_REGISTER_PROTECTION_ERROR, of both threads where there are two.
        let flags = if gpu == "a740" { 1 << 4 | 1 << 16 } else { 1 << 4 };
        assert_eq!(interrupts(&submit, &dump), Some(flags), "{gpu}");
        let report = explained(&db, &dumped.text);
        let cause = &report.findings[report.cause.expect("a cause").finding];
        let origin = cause.args.record("origin").and_then(|origin| origin.number("iova"));
        assert_eq!((cause.rule, origin), (Rule::ProtectedRegister, Some(at)), "{gpu}");
    }
    let mut submit = Submit::new(&db, "a630");
    let status = submit.regs().reg_offset("RBBM_STATUS").expect("a register");
    submit.op("CP_REG_TO_MEM", &[&[status][..], &halves(DATA)].concat()).write("CP_SCRATCH[0].REG", &[5]);
    assert_eq!(submit.run().0, RunEnd::Done, "what may be read, and what is not protected");
}

/// On chips with privileged accesses only the ring may access the kernel's memory. On no chip may a unit write the ring.
#[test]
fn the_kernels_memory_has_rights() {
    // Where the GPU writes fences.
    const POINTERS: u64 = 0x0001_0000_0000_0000;
    let db = Db::builtin();
    let load = |iova: u64| {
        let [low, high] = halves(iova);
        format!(
            "mov.u32u32 r0.x, {low}\nmov.u32u32 r0.y, {high}\n(rpt5)nop\nldg.u32 r1.x, g[r0.x], 1\n(sy)nop\nend"
        )
    };
    let store = |iova: u64| load(iova).replace("ldg.u32 r1.x, g[r0.x], 1", "stg.u32 g[r0.x], r0.x, 1");
    for (gpu, privileged) in [("a630", false), ("a660", true), ("a740", true)] {
        // The access, whether it writes, and whether it is refused.
        for (iova, writes, refused) in [
            (POINTERS + 0xf00, false, privileged),
            (POINTERS + 0xf00, true, privileged),
            (RING + 0x7000, false, privileged),
            (RING + 0x7000, true, true),
        ] {
            let mut by_cp = Submit::new(&db, gpu);
            match writes {
                true => by_cp.op("CP_MEM_WRITE", &[&halves(iova)[..], &[1]].concat()),
                false => {
                    let copy = [&[0][..], &halves(DATA), &halves(iova)].concat();
                    by_cp.op("CP_MEM_TO_MEM", &copy)
                }
            };
            let mut by_shader = Submit::new(&db, gpu);
            by_shader.shader(&if writes { store(iova) } else { load(iova) }).dispatch();
            for (submit, client) in [(by_cp, "CP"), (by_shader, "SP")] {
                let case = format!("{gpu} {client} {iova:#x} {writes}");
                let (end, dump) = submit.run();
                assert_eq!(end != RunEnd::Done, refused, "{case}: {end:?}");
                let Some(fault) = dump.and_then(|dump| dump.core.fault) else { continue };
                assert_eq!((fault.iova, fault.kind.as_deref()), (Some(iova), Some("PERMISSION")), "{case}");
                assert!(fault.source.is_some_and(|source| source.ends_with(client)), "{case}");
            }
        }
    }
    let mut submit = Submit::new(&db, "a630");
    submit.op("CP_SMMU_TABLE_UPDATE", &[0x1234_0000, 1 << 16, 0, 0]).op("CP_NOP", &[1]);
    let fault = submit.run().1.and_then(|dump| dump.core.fault).expect("a fault");
    assert_eq!((fault.ttbr0, fault.kind.as_deref()), (Some(0x1234_0000), Some("TRANSLATION")));
}

#[test]
fn loops_that_end_are_not_taken_for_endless_ones() {
    let db = Db::builtin();
    for gpu in ["a630", "a740"] {
        let counts = "mov.u32u32 r0.x, 0
            mov.u32u32 r0.y, 20000
            (rpt5)nop
            add.u r0.x, r0.x, 1
            (rpt5)nop
            cmps.u.lt p0.x, r0.x, r0.y
            (rpt5)nop
            br p0.x, #-4
            end";
        for (source, ends) in [(counts, true), ("(rpt5)nop\n(rpt5)nop\njump #-2\nend", false)] {
            let mut submit = Submit::new(&db, gpu);
            submit.shader(source).dispatch();
            let (end, _) = submit.run();
            match end {
                RunEnd::Done if ends => {}
                RunEnd::Stopped { stop, .. } if !ends => {
                    assert!(stop.to_string().contains("an endless loop"), "{stop}");
                }
                end => panic!("{gpu}: {end:?}"),
            }
        }
    }
}

/// A buffer is called many times, as once for each bin. What is left of its caller shows which call the CP is in.
#[test]
fn one_of_many_calls_of_a_buffer_hangs() {
    let db = Db::builtin();
    let [low, high] = halves(DATA);
    for (gpu, calls, hanging) in [("a630", 10, 5), ("a630", 40, 2), ("a740", 40, 20), ("a630", 40, 39)] {
        let mut buffer = Submit::new(&db, gpu);
        buffer.op("CP_WAIT_REG_MEM", &[3 | 1 << 4, low, high, 7, u32::MAX, 16]).op("CP_NOP", &[1]);
        let mut submit = Submit::new(&db, gpu);
        submit.code[..buffer.words.len()].copy_from_slice(&buffer.words);
        let mut call = 0;
        for number in 0..calls {
            submit.op("CP_MEM_WRITE", &[low, high, if number == hanging { 9 } else { 7 }]);
            if number == hanging {
                call = submit.words.len() as u64;
            }
            let [code, code_high] = halves(CODE);
            submit.op("CP_INDIRECT_BUFFER", &[code, code_high, buffer.words.len() as u32]);
        }
        let (_, dump) = submit.run();
        let dumped = dumped(&dump.expect("a dump"));
        let report = explained(&db, &dumped.text);
        let hang = report.hang.expect("where it hangs");
        assert_eq!(hang.iova, Some(CODE), "{gpu}: call {hanging} of {calls}");
        let caller = hang.levels.iter().find(|level| level.base == STREAM).expect("the caller");
        assert!((caller.range.0..=caller.range.1).contains(&call), "{gpu}: {call} of {caller:?}");
    }
}
