//! The walker of AMD streams: what it follows, keeps and reports, and that nothing in a stream makes it run away.

use std::fmt::Write as _;
use unwedge_base::{Buffer, Dwords, Memory};
use unwedge_hw::Db;
use unwedge_hw::amd::{Amd, Gfx};
use unwedge_stream::adreno::{Exec, Flow, TroubleKind};
use unwedge_stream::amd::*;

/// A stream being written, by names of packets.
struct Cs<'d> {
    amd: Amd<'d>,
    dwords: Vec<u32>,
}

fn cs(amd: Amd<'_>) -> Cs<'_> {
    Cs { amd, dwords: Vec::new() }
}

impl Cs<'_> {
    fn op(mut self, name: &str, payload: &[u32]) -> Self {
        let opcode = (0..=255).find(|&o| self.amd.packet_name(o) == Some(name));
        let opcode = opcode.unwrap_or_else(|| panic!("{} has no {name}", self.amd.gfx()));
        let header =
            AmdPacketHeader::Type3 { opcode, count: payload.len() as u32, predicate: false, compute: false };
        self.dwords.push(header.encode().unwrap());
        self.dwords.extend(payload);
        self
    }

    fn raw(mut self, dwords: &[u32]) -> Self {
        self.dwords.extend(dwords);
        self
    }

    fn ib(self, iova: u32, dwords: u32) -> Self {
        self.op("INDIRECT_BUFFER", &[iova, 0, dwords])
    }

    fn chain(self, iova: u32, dwords: u32) -> Self {
        self.op("INDIRECT_BUFFER", &[iova, 0, dwords | 1 << 20])
    }
}

fn memory(buffers: &[(u64, Vec<u32>)]) -> Memory {
    let buffer = |(iova, dwords): &(u64, Vec<u32>)| Buffer {
        iova: *iova,
        size: dwords.len() as u64 * 4,
        contents: Some(dwords.clone()),
        name: String::new(),
    };
    buffers.iter().map(buffer).collect()
}

/// Writes a walk down.
struct Log<'d>(Amd<'d>, String);

impl AmdSink for Log<'_> {
    fn event(&mut self, state: &AmdState, event: &AmdEvent<'_>) -> Flow {
        let Log(amd, out) = self;
        match event {
            AmdEvent::Packet(p) => {
                let at = p.place.index;
                let exec = if p.exec == Exec::Always { String::new() } else { format!(" {:?}", p.exec) };
                let _ = write!(out, "{}.{at} {}{exec}; ", p.place.level, p.name(*amd).unwrap_or("?"));
            }
            AmdEvent::RegWrite(w) => {
                let name = amd.reg(w.reg).map_or("?", |reg| reg.name());
                let kept = state.get(w.reg) == Some(w.value);
                let _ = write!(out, "{name}={:#x}{} ", w.value, if kept { "" } else { "(not kept)" });
            }
            AmdEvent::Enter(s) => {
                let _ = write!(out, "{{{:?} {:#x} ", s.kind, s.iova);
            }
            AmdEvent::Leave(_) => out.push_str("} "),
            AmdEvent::Missing(s) => {
                let _ = write!(out, "missing {:#x} ", s.iova);
            }
            AmdEvent::Draw(d) => {
                let _ = write!(out, "{} {} {:?} {:?} ", d.kind.name(), d.number, d.count, d.groups);
            }
            AmdEvent::Wait(_, w) => {
                let _ = write!(
                    out,
                    "wait {:x?} {} {:#x} & {:#x} ",
                    w.operand,
                    w.symbol().unwrap_or("?"),
                    w.reference,
                    w.mask
                );
            }
            AmdEvent::TracePoint(_, n) => {
                let _ = write!(out, "trace {n} ");
            }
            AmdEvent::Trouble(t) => {
                let _ = write!(out, "{:?} ", t.kind);
            }
        }
        Flow::Continue
    }
}

fn log(gfx: Gfx, engine: Engine, ring: impl Fn(Amd<'_>) -> Vec<u32>, buffers: &[(u64, Vec<u32>)]) -> String {
    let db = Db::amd();
    let amd = db.amd_gpu(gfx);
    let memory = memory(buffers);
    let mut log = Log(amd, String::new());
    let dwords = ring(amd);
    AmdWalker::new(amd, engine, &memory).walk(Dwords::from(&dwords[..]), None, &mut log);
    log.1.trim_end().to_owned()
}

fn gfx_log(gfx: Gfx, ring: impl Fn(Amd<'_>) -> Vec<u32>, buffers: &[(u64, Vec<u32>)]) -> String {
    log(gfx, Engine::Gfx, ring, buffers)
}

#[test]
fn registers_of_every_bank() {
    for gfx in Gfx::ALL {
        let shown = gfx_log(gfx, |amd: Amd<'_>| cs(amd).op("SET_SH_REG", &[0x8, 0x1234, 0x80]).dwords, &[]);
        assert_eq!(shown, "0.0 SET_SH_REG; SPI_SHADER_PGM_LO_PS=0x1234 SPI_SHADER_PGM_HI_PS=0x80", "{gfx}");
    }
    let pairs = |amd: Amd<'_>| cs(amd).op("SET_CONTEXT_REG_PAIRS", &[0x1ba, 1, 0x8, 2]).dwords;
    assert_eq!(
        gfx_log(Gfx::Gfx12, pairs, &[]),
        "0.0 SET_CONTEXT_REG_PAIRS; SPI_TMPRING_SIZE=0x1 DB_Z_READ_BASE=0x2"
    );
    let packed = |amd: Amd<'_>| cs(amd).op("SET_SH_REG_PAIRS_PACKED", &[2, 0x9 << 16 | 0x8, 5, 6]).dwords;
    assert_eq!(
        gfx_log(Gfx::Gfx11, packed, &[]),
        "0.0 SET_SH_REG_PAIRS_PACKED; SPI_SHADER_PGM_LO_PS=0x5 SPI_SHADER_PGM_HI_PS=0x6"
    );
    let write = |amd: Amd<'_>| cs(amd).op("WRITE_DATA", &[0, 0xc242, 0, 4]).dwords;
    assert_eq!(gfx_log(Gfx::Gfx9, write, &[]), "0.0 WRITE_DATA; VGT_PRIMITIVE_TYPE=0x4");
}

#[test]
fn buffers_are_called_and_chained() {
    let db = Db::amd();
    let amd = db.amd_gpu(Gfx::Gfx10_3);
    let second = cs(amd).op("DRAW_INDEX_AUTO", &[3, 2]).dwords;
    let first = cs(amd).op("NUM_INSTANCES", &[1]).chain(0x2000, second.len() as u32).dwords;
    let buffers = [(0x1000, first.clone()), (0x2000, second)];
    let shown = gfx_log(
        Gfx::Gfx10_3,
        |amd: Amd<'_>| cs(amd).ib(0x1000, first.len() as u32).ib(0x9000, 4).op("NOP", &[0xcafe_0007]).dwords,
        &buffers,
    );
    assert_eq!(
        shown,
        "0.0 INDIRECT_BUFFER; {Call 0x1000 1.0 NUM_INSTANCES; 1.2 INDIRECT_BUFFER; {Chain 0x2000 1.0 DRAW_INDEX_AUTO; \
         draw 0 Some(3) None } } 0.4 INDIRECT_BUFFER; missing 0x9000 0.8 NOP; trace 7"
    );
}

#[test]
fn buffers_that_call_each_other_end() {
    let db = Db::amd();
    let amd = db.amd_gpu(Gfx::Gfx9);
    let own = cs(amd).ib(0x1000, 4).dwords;
    let shown = gfx_log(Gfx::Gfx9, |amd: Amd<'_>| cs(amd).ib(0x1000, 4).dwords, &[(0x1000, own)]);
    assert!(shown.contains("TooDeep"), "{shown}");
    let own = cs(amd).chain(0x1000, 4).dwords;
    let shown = gfx_log(Gfx::Gfx9, |amd: Amd<'_>| cs(amd).ib(0x1000, 4).dwords, &[(0x1000, own)]);
    assert!(shown.contains("BudgetSpent") || shown.len() < 10_000_000);
}

#[test]
fn what_is_skipped_changes_nothing() {
    let buffers = [(0x4000, vec![0]), (0x5000, vec![1])];
    let stream = |flag: u32| {
        move |amd: Amd<'_>| {
            cs(amd)
                .op("COND_EXEC", &[flag, 0, 0, 3])
                .op("SET_SH_REG", &[8, 1])
                .op("SET_SH_REG", &[8, 2])
                .dwords
        }
    };
    let skipped = gfx_log(Gfx::Gfx10, stream(0x4000), &buffers);
    assert!(skipped.contains("0.5 SET_SH_REG NotTaken; SPI_SHADER_PGM_LO_PS=0x1(not kept)"), "{skipped}");
    assert!(skipped.ends_with("SPI_SHADER_PGM_LO_PS=0x2"), "{skipped}");
    assert!(gfx_log(Gfx::Gfx10, stream(0x5000), &buffers).contains("0.5 SET_SH_REG Taken; "));
    assert!(gfx_log(Gfx::Gfx10, stream(0x6000), &buffers).contains("0.5 SET_SH_REG Unknown; "));
}

#[test]
fn garbage_is_left_out() {
    let shown = gfx_log(
        Gfx::Gfx8,
        |amd: Amd<'_>| {
            cs(amd)
                .op("NOP", &[0])
                .raw(&[0, 0xdead_beef, 0x8000_0001])
                .op("PFP_SYNC_ME", &[0])
                .raw(&[0xc0ff_1000])
                .dwords
        },
        &[],
    );
    assert_eq!(
        shown,
        "0.0 NOP; BadHeader { raw: 0, skipped: 3, resynced: true } 0.5 PFP_SYNC_ME; 0.7 NOP; \
         CutPacket { claimed: 256, present: 0 }"
    );
    assert_eq!(
        gfx_log(Gfx::Gfx8, |amd: Amd<'_>| cs(amd).raw(&[0xffff_1000, 0x8000_0000]).dwords, &[]),
        "0.0 NOP; 0.1 ?;"
    );
}

#[test]
fn waits_say_what_they_wait_for() {
    let wait = |amd: Amd<'_>| cs(amd).op("WAIT_REG_MEM", &[0x13, 0x1004, 1, 7, 0xffff_ffff, 10]).dwords;
    let shown = gfx_log(Gfx::Gfx10_3, wait, &[]);
    assert_eq!(shown, "0.0 WAIT_REG_MEM; wait Memory(100001004) == 0x7 & 0xffffffff");
    let register = |amd: Amd<'_>| cs(amd).op("WAIT_REG_MEM", &[0x03, 0x2004, 0, 0, 0x8000_0000, 10]).dwords;
    assert_eq!(
        gfx_log(Gfx::Gfx10_3, register, &[]),
        "0.0 WAIT_REG_MEM; wait Register(2004) == 0x0 & 0x80000000"
    );
    let semaphore = |amd: Amd<'_>| cs(amd).op("MEM_SEMAPHORE", &[0x2000, 7 << 29]).dwords;
    assert!(gfx_log(Gfx::Gfx7, semaphore, &[]).contains("wait Memory(2000) !="));
    let signal = |amd: Amd<'_>| cs(amd).op("MEM_SEMAPHORE", &[0x2000, 6 << 29]).dwords;
    assert!(!gfx_log(Gfx::Gfx7, signal, &[]).contains("wait"));
    let dma = |_: Amd<'_>| vec![8 | 5 << 28 | 1 << 31, 0x40, 0, 9, 0xffff_ffff, 0];
    assert_eq!(
        log(Gfx::Gfx11, Engine::Sdma, dma, &[]),
        "0.0 SDMA_POLL_REGMEM; wait Memory(40) >= 0x9 & 0xffffffff"
    );
}

#[test]
fn compute_dispatches() {
    let stream = |amd: Amd<'_>| {
        cs(amd).op("DISPATCH_DIRECT", &[4, 5, 6, 0x45]).op("DISPATCH_INDIRECT", &[0x100, 0, 1]).dwords
    };
    assert_eq!(
        log(Gfx::Gfx11, Engine::Compute, stream, &[]),
        "0.0 DISPATCH_DIRECT; dispatch 0 None Some([4, 5, 6]) 0.5 DISPATCH_INDIRECT; dispatch 1 None None"
    );
}

#[test]
fn dma_packets_have_their_lengths() {
    // A copy, data, a called buffer, a fence; then a packet that does not exist.
    let stream = |count: u32| {
        move |_: Amd<'_>| {
            let mut s = vec![1, 255, 0, 0x1000, 0, 0x2000, 0];
            s.extend([2, 0x3000, 0, count, 0xaaaa, 0xbbbb]);
            s.extend([4, 0x7000, 0, 4, 0, 0]);
            s.extend([5, 0x40, 0, 0x11]);
            s.extend([0x77]);
            s
        }
    };
    let ib = [(0x7000, vec![6, 0, 0, 0])];
    let expect = "0.0 SDMA_COPY_LINEAR; 0.7 SDMA_WRITE_LINEAR; 0.13 SDMA_INDIRECT; {Call 0x7000 1.0 SDMA_TRAP; \
                  1.2 SDMA_NOP; 1.3 SDMA_NOP; } 0.19 SDMA_FENCE; BadHeader { raw: 119, skipped: 1, resynced: false }";
    assert_eq!(log(Gfx::Gfx8, Engine::Sdma, stream(2), &ib), expect);
    assert_eq!(log(Gfx::Gfx9, Engine::Sdma, stream(1), &ib), expect, "counts are one less from gfx9 on");
    assert_eq!(log(Gfx::Gfx12, Engine::Sdma, stream(1), &ib), expect);
    let old = |_: Amd<'_>| vec![0x3000_0010, 0, 0, 0, 0, 0x6000_0000, 0x40, 0, 1, 0x7000_0000, 0xf000_0000];
    assert_eq!(
        log(Gfx::Gfx6, Engine::Sdma, old, &[]),
        "0.0 SIDMA_COPY; 0.5 SIDMA_FENCE; 0.9 SIDMA_TRAP; 0.10 SIDMA_NOP;"
    );
}

#[test]
fn fields_cover_the_whole_payload() {
    let db = Db::amd();
    let amd = db.amd_gpu(Gfx::Gfx10_3);
    let dwords = cs(amd).op("WRITE_DATA", &[5 << 8, 0x1000, 2, 7, 8]).dwords;
    struct First(Option<Vec<(String, usize, u64)>>);
    impl AmdSink for First {
        fn event(&mut self, _: &AmdState, event: &AmdEvent<'_>) -> Flow {
            let db = Db::amd();
            let amd = db.amd_gpu(Gfx::Gfx10_3);
            if let AmdEvent::Packet(packet) = event {
                self.0 = Some(packet.fields(amd).map(|f| (f.name.to_owned(), f.dword, f.value)).collect());
                assert_eq!(packet.get(amd, "DST_SEL"), Some(5));
                assert_eq!(packet.get(amd, "NO_SUCH"), None);
            }
            Flow::Continue
        }
    }
    let memory = Memory::default();
    let mut first = First(None);
    AmdWalker::new(amd, Engine::Gfx, &memory).walk(Dwords::from(&dwords[..]), None, &mut first);
    let field = |name: &str, dword, value| (name.to_owned(), dword, value);
    assert_eq!(
        first.0.unwrap(),
        [field("0", 1, 0x500), field("DST_ADDR", 2, 0x2_0000_1000), field("", 4, 7), field("", 5, 8)]
    );
}

/// Counts what a walk does.
#[derive(Default)]
struct Count {
    packets: u64,
    troubles: u64,
    spent: bool,
}

impl AmdSink for Count {
    fn event(&mut self, _: &AmdState, event: &AmdEvent<'_>) -> Flow {
        match event {
            AmdEvent::Packet(_) => self.packets += 1,
            AmdEvent::Trouble(t) => {
                self.troubles += 1;
                self.spent |= matches!(t.kind, TroubleKind::BudgetSpent);
            }
            _ => {}
        }
        Flow::Continue
    }
}

#[test]
fn any_dwords_end_within_the_budget() {
    let db = Db::amd();
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 32) as u32
    };
    for gfx in Gfx::ALL {
        let amd = db.amd_gpu(gfx);
        for engine in [Engine::Gfx, Engine::Compute, Engine::Sdma] {
            for round in 0..60 {
                let mut buffers: Vec<(u64, Vec<u32>)> = Vec::new();
                for n in 1..4u64 {
                    let dwords = (0..64).map(|_| match (round % 3, random() % 8) {
                        (0, _) => random(),
                        // Headers that exist, addresses that are held.
                        (_, 0..3) => 3 << 30 | (random() % 6) << 16 | (random() & 0xff) << 8,
                        (_, 3) => (random() % 4) * 0x1000,
                        (_, 4) => 3 << 30 | 2 << 16 | 0x3f00,
                        (_, 5) => random() & 0x1f,
                        (_, 6) => 0,
                        _ => random(),
                    });
                    buffers.push((n * 0x1000, dwords.collect()));
                }
                let memory = memory(&buffers);
                let mut walker = AmdWalker::new(amd, engine, &memory);
                walker.budget = 20_000;
                let mut count = Count::default();
                walker.walk(Dwords::from(&buffers[0].1[..]), Some(0x1000), &mut count);
                assert!(count.packets + count.troubles > 0);
                assert!(count.packets <= 20_000);
            }
        }
    }
}
