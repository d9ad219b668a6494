//! Hangs of every driver, one dump for each cause: what the tests of signatures and of words go through.
//!
//! Where things are, and whose they are, is a [`HangRun`]: the same cause can hang twice, at other addresses and in another
//! process.

use crate::amdgpu::{AmdgpuBuilder, AmdgpuEra, Gfx, NOP, RadvBuilder, ShaderSpec, WaveSpec};
use crate::devcore::DevcoreBuilder;
use crate::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, pipe_control, pipe_control_write,
    primitive, semaphore_wait, store_data, stream,
};
use crate::intel_states::{self, TestStage, WorkStates};
use crate::pm4::{
    CP_DRAW_INDX_OFFSET, CP_EVENT_WRITE, CP_EXEC_CS, CP_INDIRECT_BUFFER_CHAIN, CP_MEM_WRITE, CP_NOP,
    CP_WAIT_FOR_IDLE, CP_WAIT_REG_MEM, indirect_buffer, pkt3, pkt4, pkt7,
};
use crate::{i915, xe};
use unwedge_base::Generation;
use unwedge_capture::intel::RingRegister;
use unwedge_hw::Db;

/// Where things are in one run, and whose they are.
#[derive(Clone, Copy, Debug)]
pub struct HangRun {
    /// The indirect buffer or batch.
    pub ib: u64,
    /// Memory that is waited for; 16 MiB around it are free.
    pub fence: u64,
    /// Name of the process.
    pub process: &'static str,
    /// Its number.
    pub pid: u32,
    /// The newest fence.
    pub fences: u32,
}

impl HangRun {
    /// Two runs that have nothing in common.
    pub const BOTH: [HangRun; 2] = [
        HangRun { ib: 0x1_0000_0000, fence: 0x1_0040_0000, process: "deqp-vk", pid: 4711, fences: 3 },
        HangRun { ib: 0x7_1234_0000, fence: 0x7_3000_1000, process: "vkcube", pid: 12, fences: 900 },
    ];
}

/// A dump: what hung, and its files.
#[derive(Clone, Debug)]
pub struct HangDump {
    /// What hung.
    pub name: String,
    /// Names and contents; several for a report of RADV.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Every cause, in one run.
pub fn hangs(run: HangRun) -> Vec<HangDump> {
    let file = |vendor: &'static str, name: &str, bytes: Vec<u8>| HangDump {
        name: format!("{vendor}: {name}"),
        files: vec![("dump".to_owned(), bytes)],
    };
    let mut all: Vec<HangDump> =
        adreno_hangs(run).into_iter().map(|(name, bytes)| file("msm", name, bytes)).collect();
    all.extend(amdgpu_hangs(run).into_iter().map(|(name, bytes)| file("amdgpu", name, bytes)));
    all.extend(i915_hangs(run).into_iter().map(|(name, bytes)| file("i915", name, bytes)));
    all.extend(xe_hangs(run).into_iter().map(|(name, bytes)| file("xe", name, bytes)));
    let radv = radv_hangs(run).into_iter();
    all.extend(radv.map(|(name, files)| HangDump { name: format!("radv: {name}"), files }));
    all
}

// ---- Adreno ----

const ADRENO_RING: u64 = 0x0001_0000_0000_1000;
const CACHE_FLUSH_TS: u32 = 4;
/// The CP is busy, nothing else is.
const ONLY_CP: u32 = 1 << 23 | 1 << 2;

/// An a6xx whose registers are set by name.
struct Adreno {
    db: Db,
    builder: DevcoreBuilder,
}

impl Adreno {
    fn offset(&self, name: &str) -> u32 {
        self.db.gpu(Generation::A6xx).reg_offset(name).unwrap_or(0)
    }

    fn set(mut self, name: &str, value: u32) -> Adreno {
        let offset = self.offset(name);
        self.builder = self.builder.replace(offset, value);
        self
    }

    fn set64(mut self, name: &str, value: u64) -> Adreno {
        let offset = self.offset(name);
        self.builder = self.builder.replace(offset, value as u32).replace(offset + 1, (value >> 32) as u32);
        self
    }

    fn with(mut self, change: impl FnOnce(DevcoreBuilder) -> DevcoreBuilder) -> Adreno {
        self.builder = change(self.builder);
        self
    }

    fn text(self) -> Vec<u8> {
        self.builder.text()
    }
}

/// An a6xx whose CP is at a packet of IB1: `header` is what the SQE has, one dword of IB1 is unread.
fn adreno(run: HangRun, ib1: &[u32], header: u32, status: u32) -> Adreno {
    let ring = [pkt7(CP_NOP, &[1]), indirect_buffer(run.ib, ib1.len() as u32), pkt7(CP_NOP, &[2])].concat();
    let mut sqe = vec![0u32; 51];
    (sqe[0], sqe[1], sqe[36]) = (0x123, header, header);
    let builder = DevcoreBuilder::a6xx()
        .process(run.process, run.process)
        .ring(ADRENO_RING, &ring)
        .with_ring(|r| {
            r.rptr = Some(6);
            (r.last_fence, r.retired_fence) = (Some(run.fences), Some(run.fences - 1));
        })
        .bo(run.ib, 4096, "ib1", ib1)
        .indexed("CP_SQE_STAT", &sqe);
    Adreno { db: Db::builtin(), builder }
        .set64("CP_RB_BASE", ADRENO_RING)
        .set("CP_RB_RPTR", ring.len() as u32)
        .set("CP_RB_WPTR", ring.len() as u32)
        .set("CP_ROQ_AVAIL_RB", 3 << 16)
        .set64("CP_IB1_BASE", run.ib)
        .set("CP_IB1_REM_SIZE", 0)
        .set("CP_IB1_DWORDS", ib1.len() as u32)
        .set("CP_ROQ_AVAIL_IB1", 2 << 16)
        .set("RBBM_STATUS", status)
}

fn adreno_draw() -> Vec<u32> {
    pkt7(CP_DRAW_INDX_OFFSET, &[0x0d84, 1, 6])
}

fn adreno_wait_packet(run: HangRun) -> Vec<u32> {
    pkt7(CP_WAIT_REG_MEM, &[3 | 1 << 4, run.fence as u32, (run.fence >> 32) as u32, 5, u32::MAX, 16])
}

/// A wait for 5 with packets before and after it, in memory that has another value.
fn adreno_wait_with(run: HangRun, before: &[u32], after: &[u32], value: u32) -> Vec<u8> {
    let wait = adreno_wait_packet(run);
    let ib1 = [&adreno_draw(), before, &wait, after, &pkt7(CP_NOP, &[])].concat();
    adreno(run, &ib1, wait[0], ONLY_CP)
        .set("CP_ROQ_AVAIL_IB1", (2 + after.len() as u32) << 16)
        .with(|b| b.bo(run.fence, 4096, "fences", &[value]))
        .text()
}

fn adreno_wait(run: HangRun) -> Adreno {
    let wait = adreno_wait_packet(run);
    adreno(run, &[adreno_draw(), wait.clone(), pkt7(CP_NOP, &[])].concat(), wait[0], ONLY_CP)
}

fn adreno_idle(run: HangRun, busy: u32) -> Adreno {
    let wait = pkt7(CP_WAIT_FOR_IDLE, &[]);
    adreno(run, &[adreno_draw(), wait.clone(), pkt7(CP_NOP, &[])].concat(), wait[0], ONLY_CP | busy)
}

fn adreno_garbage(run: HangRun, dword: u32) -> Vec<u8> {
    let nop = pkt7(CP_NOP, &[]);
    adreno(run, &[nop.clone(), vec![dword], nop].concat(), dword, ONLY_CP).text()
}

/// `ldib` into `r1.x`, `add.u` of it without `(sy)`, `end`.
const IR3_WITHOUT_WAIT: &[u32] = &[0x0061_8100, 0xc026_0004, 0x2001_0004, 0x4210_0004, 0, 0x0300_0000];
/// No instruction of any generation.
const IR3_NOT_CODE: &[u32] = &[u32::MAX, u32::MAX, 0, 0x0300_0000];

/// A dispatch of a shader that does not end, and a wait for its end.
fn adreno_shader(run: HangRun, code: &[u32]) -> Vec<u8> {
    let at = run.ib + 0x1000;
    let start = pkt4(adreno_idle(run, 0).offset("SP_CS_OBJ_START"), &[at as u32, (at >> 32) as u32]);
    let wait = pkt7(CP_WAIT_FOR_IDLE, &[]);
    let dispatch = pkt7(CP_EXEC_CS, &[0, 1, 1, 1]);
    let ib1 = [start, dispatch, wait.clone(), pkt7(CP_NOP, &[])].concat();
    let busy = ONLY_CP | 1 << 18 | 1 << 21;
    adreno(run, &ib1, wait[0], busy).with(|b| b.bo(at, 4096, "code", code)).text()
}

fn adreno_hangs(run: HangRun) -> Vec<(&'static str, Vec<u8>)> {
    let fault = |at: u64, dir: &str, kind: &str| {
        adreno_idle(run, 0).with(|b| b.bo(run.fence, 4096, "render target", &[1]).fault(at, dir, kind, "CCU"))
    };
    let fence = |value: u32| [run.fence as u32, (run.fence >> 32) as u32, value];
    let nop = pkt7(CP_NOP, &[1]);
    let jump = |packet: Vec<u32>| {
        let ib1 = [nop.clone(), packet].concat();
        adreno(run, &ib1, ib1[2], ONLY_CP).text()
    };
    // No packet of a6xx has this number; a wait takes six dwords of payload.
    let unknown = pkt7(0x7d, &[1]);
    let cut = pkt7(CP_WAIT_REG_MEM, &[0; 6])[0];
    let back = [run.ib as u32, (run.ib >> 32) as u32, 6];
    let silent = ["RBBM_STATUS", "CP_RB_BASE", "CP_RB_RPTR", "CP_RB_WPTR", "CP_IB1_BASE"];
    let scratch = adreno_idle(run, 0).offset("CP_SCRATCH[0].REG");
    let for_register = pkt7(CP_WAIT_REG_MEM, &[3, scratch, 0, 7, u32::MAX, 16]);
    let target = pkt4(adreno_idle(run, 0).offset("RB_2D_DST_INFO"), &[0x30, run.fence as u32, 0]);
    let blit = [target, pkt7(0x2c, &[3]), pkt7(CP_WAIT_FOR_IDLE, &[])].concat();
    vec![
        ("a wait for memory", adreno_wait(run).with(|b| b.bo(run.fence, 4096, "fences", &[3])).text()),
        ("a wait for memory that is not in the dump", adreno_wait(run).text()),
        ("a wait for itself", adreno_wait_with(run, &[], &pkt7(CP_MEM_WRITE, &fence(5)), 3)),
        (
            "a wait whose memory gets a wrong value",
            adreno_wait_with(run, &pkt7(CP_MEM_WRITE, &fence(3)), &[], 3),
        ),
        (
            "a wait whose memory gets a wrong value of an event",
            adreno_wait_with(
                run,
                &pkt7(CP_EVENT_WRITE, &[&[CACHE_FLUSH_TS][..], &fence(3)].concat()),
                &[],
                3,
            ),
        ),
        (
            "a wait whose value is there",
            adreno_wait(run).with(|b| b.bo(run.fence, 64, "fences", &[5])).text(),
        ),
        (
            "a wait for a register",
            adreno(run, &[for_register.clone(), nop.clone()].concat(), for_register[0], ONLY_CP)
                .set("CP_SCRATCH[0].REG", 3)
                .text(),
        ),
        ("a poisoned stream", adreno_garbage(run, 0xdead_d00d)),
        ("a corrupt stream", adreno_garbage(run, 0x1234_5678)),
        (
            "an opcode of another GPU",
            adreno(run, &[nop.clone(), unknown.clone()].concat(), unknown[0], ONLY_CP)
                .set("CP_ROQ_AVAIL_IB1", 1 << 16)
                .text(),
        ),
        (
            "a packet past the end of its stream",
            adreno(run, &[nop.clone(), vec![cut]].concat(), cut, ONLY_CP)
                .set("CP_ROQ_AVAIL_IB1", 1 << 16)
                .text(),
        ),
        ("a chain that leads back", jump(pkt7(CP_INDIRECT_BUFFER_CHAIN, &back))),
        ("a buffer that calls itself", jump(indirect_buffer(run.ib, 6))),
        ("stuck shaders", adreno_idle(run, 1 << 18 | 1 << 21).text()),
        ("memory that does not answer", adreno_idle(run, 1 << 17 | 1 << 4).text()),
        (
            "a 2D engine that is busy",
            adreno(run, &blit, pkt7(CP_WAIT_FOR_IDLE, &[])[0], ONLY_CP | 1 << 9 | 1 << 8).text(),
        ),
        ("the front end", adreno_idle(run, 1 << 15).text()),
        ("the back end", adreno_idle(run, 1 << 7).text()),
        ("a fault in a buffer", fault(run.fence + 16, "WRITE", "TRANSLATION").text()),
        ("a fault that permissions forbid", fault(run.fence + 16, "WRITE", "PERMISSION").text()),
        ("a fault that memory answered", fault(run.fence + 16, "READ", "EXTERNAL").text()),
        ("a fault past the end of a buffer", fault(run.fence + 0x1010, "WRITE", "TRANSLATION").text()),
        ("a fault before a buffer", fault(run.fence - 0x40, "WRITE", "TRANSLATION").text()),
        ("a fault between buffers", fault(run.ib + 0x20_0000, "WRITE", "TRANSLATION").text()),
        ("a fault in the null page", fault(0x18, "READ", "TRANSLATION").text()),
        ("a fault at garbage", fault(0xdead_beef_0000_0000, "READ", "TRANSLATION").text()),
        ("a protected register", adreno_idle(run, 0).set("CP_PROTECT_STATUS", 0x1234).text()),
        ("a shader without a wait", adreno_shader(run, IR3_WITHOUT_WAIT)),
        ("a shader that is not code", adreno_shader(run, IR3_NOT_CODE)),
        ("a GPU that never came up", adreno_idle(run, 0).with(|b| b.gpu_initialized(false)).text()),
        (
            "a GPU that does not answer",
            silent.into_iter().fold(adreno_idle(run, 0), |dump, name| dump.set(name, u32::MAX)).text(),
        ),
        ("a write pointer that the CP has not seen", adreno_idle(run, 0).set("CP_RB_WPTR", 2).text()),
    ]
}

// ---- AMD ----

fn amd_draw() -> Vec<u32> {
    pkt3(0x2d, &[3, 2])
}

fn amd_wait(run: HangRun) -> Vec<u32> {
    pkt3(0x3c, &[0x13, run.fence as u32, (run.fence >> 32) as u32, 7, u32::MAX, 4])
}

/// A graphics ring that calls an IB in which the ME is at the packet with this header.
fn amd(run: HangRun, ib: &[u32], header: u32, fault: u32) -> AmdgpuBuilder {
    let call = pkt3(0x3f, &[run.ib as u32, (run.ib >> 32) as u32, ib.len() as u32]);
    let ring = [pkt3(0x10, &[0, 0]), call].concat();
    let rptr = ring.len() as u64;
    let builder = AmdgpuBuilder::new(Gfx::V10)
        .era(AmdgpuEra::V7_1)
        .process(run.process, run.pid)
        .timeout("gfx_0.0.0")
        .fault("gfxhub", run.ib + 0x1000, fault)
        .register("GRBM_STATUS", 0xa000_0000)
        .register("CP_IB1_BASE_LO", run.ib as u32)
        .register("CP_IB1_BASE_HI", (run.ib >> 32) as u32)
        .register("CP_IB1_BUFSZ", ib.len() as u32)
        .ring("gfx_0.0.0", rptr, rptr + 2, &[ring, vec![NOP; 4]].concat())
        .ib(run.ib, ib);
    (0..8).fold(builder, |builder, _| builder.register("CP_ME_HEADER_DUMP", header))
}

fn amdgpu_hangs(run: HangRun) -> Vec<(&'static str, Vec<u8>)> {
    let waiting = |before: Vec<u32>, after: Vec<u32>| {
        let wait = amd_wait(run);
        amd(run, &[before, wait.clone(), after].concat(), wait[0], 0)
    };
    let write_of = |value: u32| pkt3(0x37, &[0x100, run.fence as u32, (run.fence >> 32) as u32, value]);
    let write = write_of(7);
    let release_of =
        |value: u32| pkt3(0x49, &[0x514, 1 << 29, run.fence as u32, (run.fence >> 32) as u32, value, 0, 0]);
    let broken = [vec![0x7fff_ffff; 5], amd_draw()].concat();
    let chain = pkt3(0x3f, &[run.ib as u32, (run.ib >> 32) as u32, 7 | 1 << 20 | 1 << 23]);
    let looping = [amd_draw(), chain].concat();
    let drawing = |fault: u32| amd(run, &amd_draw(), amd_draw()[0], fault);
    let for_register = pkt3(0x3c, &[3, 0x2000, 0, 7, u32::MAX, 4]);
    let poll = [8 | 3 << 28 | 1 << 31, run.fence as u32, (run.fence >> 32) as u32, 1, u32::MAX, 0x0fff_000a];
    let sdma =
        AmdgpuBuilder::new(Gfx::V10).timeout("sdma0").ring("sdma0", 6, 8, &[&poll[..], &[0; 10]].concat());
    let silent = |value: u32| {
        let names = ["GRBM_STATUS", "GRBM_STATUS2", "CP_STALLED_STAT3", "CP_IB1_BASE_LO"];
        let builder = AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0").process(run.process, run.pid);
        names.into_iter().fold(builder, |builder, name| builder.register(name, value)).text()
    };
    vec![
        ("a wait for another queue", waiting(amd_draw(), amd_draw()).text()),
        ("a wait for a later write", waiting(amd_draw(), write.clone()).text()),
        ("a wait for an earlier write", waiting(write, amd_draw()).text()),
        ("a wait for a later fence", waiting(amd_draw(), release_of(7)).text()),
        ("a wait whose memory gets a wrong value", waiting(write_of(6), amd_draw()).text()),
        ("a wait whose memory gets a wrong fence", waiting(release_of(6), amd_draw()).text()),
        ("a wait for a register", amd(run, &for_register, for_register[0], 0).text()),
        ("a poll of a DMA engine", sdma.text()),
        ("a page fault", drawing(0x0080_0831).text()),
        ("a page fault of the kernel", drawing(0x0000_0831).text()),
        ("a page fault without permission", drawing(0x0084_0840).text()),
        ("garbage", amd(run, &broken, amd_draw()[0], 0).text()),
        ("a chain that leads back", amd(run, &looping, looping[0], 0).text()),
        ("a stall", drawing(0).register("CP_STALLED_STAT3", 1 << 10).text()),
        ("a GPU that does not answer", silent(u32::MAX)),
    ]
}

type Files = Vec<(String, Vec<u8>)>;

fn radv_hangs(run: HangRun) -> Vec<(&'static str, Files)> {
    let new = || RadvBuilder::new(Gfx::V10).timeout("gfx_0.0.0", run.fences, run.fences + 2);
    let shader = ShaderSpec::waiting(Gfx::V10, "Pixel Shader", run.fence);
    let mut broken = shader.clone();
    broken.code = [
        (vec![0xf400_0100, 0xfa00_0000], "s_load_dword s4, s[0:1], null"),
        (vec![0x8005_0404], "s_add_u32 s5, s4, s4"),
        (vec![0xbf81_0000], "s_endpgm"),
    ]
    .map(|(words, text)| (words, text.to_owned()))
    .to_vec();
    let trace = [amd_draw(), pkt3(0x10, &[0xcafe_0001]), amd_draw(), pkt3(0x10, &[0xcafe_0002])].concat();
    vec![
        ("waves in a loop", new().shader(shader.clone()).waves(&WaveSpec::some(Gfx::V10)).members()),
        ("a wait that code misses", new().shader(broken).members()),
        ("an exception", RadvBuilder::new(Gfx::V10).shader(shader.clone()).trap(&shader, 8).members()),
        (
            "use after free",
            new().buffer(1000, run.ib, 0x10000, Some(2000)).fault(run.ib + 0x1000, 0x0080_0831).members(),
        ),
        (
            "an address without a buffer",
            new().buffer(1000, run.ib, 0x10000, None).fault(run.ib + 0x100_0000, 0x0080_0831).members(),
        ),
        ("trace points", RadvBuilder::new(Gfx::V10).trace(1, &[("Main IB", &trace)]).members()),
    ]
}

// ---- Intel ----

fn tgl() -> TestDevice {
    TestDevice::named("tgl")
}

/// The render engine in a batch that its ring started, `acthd` dwords into it.
fn intel(run: HangRun, batch: &[u32], acthd: usize, header: u32) -> EngineState {
    let ring = stream(&[&[0, 0], &batch_buffer_start(run.ib), &[0, 0, 0]]);
    EngineState::new("rcs0")
        .ring((run.ib >> 12 & 0xff) << 16 | 0x10_0000, &ring, 0x14, 0x20)
        .set(RingRegister::Acthd, run.ib + 4 * acthd as u64)
        .set(RingRegister::Ipehr, header.into())
        .set(RingRegister::Instdone, 0xffff_fffe)
        .batch(run.ib, batch)
        .process(run.process, run.pid as i32)
        .hung(1)
}

fn intel_waiting(run: HangRun, flag: Option<u32>) -> EngineState {
    let wait = semaphore_wait(run.fence, 5, tgl());
    let batch = stream(&[&pipe_control(1 << 20), &wait, &[MI_BATCH_BUFFER_END]]);
    let engine = intel(run, &batch, 6 + wait.len(), wait[0]);
    flag.map_or(engine.clone(), |value| engine.user(run.fence, &[value]))
}

/// The same wait with commands before and after it, in memory that has another value.
fn intel_waiting_with(run: HangRun, before: &[u32], after: &[u32]) -> EngineState {
    let wait = semaphore_wait(run.fence, 5, tgl());
    let batch = stream(&[before, &wait, after, &[MI_BATCH_BUFFER_END]]);
    intel(run, &batch, before.len() + wait.len(), wait[0]).user(run.fence, &[3])
}

/// An engine whose registers all read the same.
fn intel_same(run: HangRun, value: u64, instdone: u64) -> EngineState {
    let registers = [
        RingRegister::Start,
        RingRegister::Head,
        RingRegister::Tail,
        RingRegister::Ctl,
        RingRegister::Acthd,
        RingRegister::Ipehr,
        RingRegister::Fault,
    ];
    let engine = EngineState::new("rcs0").hung(1).process(run.process, run.pid as i32);
    let engine = registers.into_iter().fold(engine, |engine, register| engine.set(register, value));
    engine.set(RingRegister::Instdone, instdone).batch(run.ib, &[MI_BATCH_BUFFER_END])
}

fn i915_hangs(run: HangRun) -> Vec<(&'static str, Vec<u8>)> {
    let end = [MI_BATCH_BUFFER_END];
    let text = |engine: EngineState| i915::ErrorStateBuilder::new(tgl()).engine(engine).text();
    let at = |batch: &[u32], dword: usize| text(intel(run, batch, dword, batch[dword]));
    let drawing = || {
        let batch = stream(&[&primitive(3), &end]);
        intel(run, &batch, 0, batch[0])
    };
    let faulting = |address: u64| {
        let engine = drawing().user(run.fence, &[1; 1024]).set(RingRegister::Fault, 1);
        let builder = i915::ErrorStateBuilder::new(tgl()).engine(engine);
        builder.fault((address >> 12) as u32, (address >> 44) as u32 & 0xf).text()
    };
    let overwritten = |with: &[u32]| at(&stream(&[&store_data(run.ib, 1), with]), 4);
    let stalled = |before: &[u32], instdone: u64| {
        let flush = pipe_control(1 << 20);
        let engine = intel(run, &stream(&[before, &flush, &end]), before.len() + 4, flush[0]);
        text(engine.set(RingRegister::Instdone, instdone))
    };
    // The CS and the memory of vertices are not done; the CS alone.
    let (working, idle) = (0xffff_dffe, 0xffff_fffe);
    let running = |register: &str, value: u64| text(drawing().register(register, value));
    let elsewhere = EngineState::new("rcs0").hung(1).set(RingRegister::Ipehr, 0x7a00_0004);
    // The CS alone.
    let elsewhere = elsewhere.set(RingRegister::Instdone, 0xffff_fffe);
    let elsewhere = elsewhere.process(run.process, run.pid as i32);
    let zeros = stream(&[&store_data(run.ib, 1), &[0; 200]]);
    let dispatching = |code: Vec<u32>| {
        let states = (run.fence & !0xfff) + 0x1_0000_0000;
        let work = WorkStates::new(tgl(), TestStage::Compute, states, 0x1000).kernel(code);
        text(work.engine(run.ib).process(run.process, run.pid as i32))
    };
    let spoiled = |code: fn(TestDevice) -> Option<Vec<u32>>| code(tgl()).unwrap_or_default();
    let endless = [intel_states::kernel(tgl(), 3, false), vec![0; 64]].concat();
    vec![
        ("a semaphore nobody signals", text(intel_waiting(run, Some(3)))),
        (
            "a semaphore that waits for itself",
            text(intel_waiting_with(run, &pipe_control(1 << 20), &store_data(run.fence, 5))),
        ),
        (
            "a semaphore whose memory gets a wrong value",
            text(intel_waiting_with(run, &store_data(run.fence, 3), &[])),
        ),
        (
            "a semaphore whose memory gets a wrong value of a PIPE_CONTROL",
            text(intel_waiting_with(run, &pipe_control_write(run.fence, 3), &[])),
        ),
        ("a semaphore whose value is there", text(intel_waiting(run, Some(7)))),
        ("a semaphore whose memory is not in the dump", text(intel_waiting(run, None))),
        ("a wait for the display", at(&stream(&[&[0x03 << 23 | 1], &end]), 0)),
        ("a stall after a draw", stalled(&primitive(3), working)),
        ("a stall after a draw that is done", stalled(&primitive(3), idle)),
        ("a stall without work", stalled(&store_data(run.ib, 1), idle)),
        ("a batch that jumps to itself", at(&stream(&[&primitive(3), &batch_buffer_start(run.ib)]), 0)),
        ("a page fault past a buffer's end", faulting(run.fence + 0x1000)),
        ("a page fault before a buffer", faulting(run.fence - 0x1000)),
        ("a page fault inside a buffer", faulting(run.fence)),
        ("a page fault at zero", faulting(0x2000)),
        ("a page fault elsewhere", faulting(0x7fff_1234_5000)),
        ("ones in the batch", overwritten(&[u32::MAX; 20])),
        ("freed memory in the batch", overwritten(&[0x6b6b_6b6b; 20])),
        ("zeros in the batch", text(intel(run, &zeros, 100, 0))),
        ("a batch that is not in the dump", text(elsewhere.clone().set(RingRegister::Acthd, run.fence))),
        (
            "a buffer that no command leads to",
            text(elsewhere.set(RingRegister::Acthd, run.fence + 0x10).user(run.fence, &[1; 64])),
        ),
        ("a shader of zeros", dispatching(vec![0; 64])),
        ("a shader without an end", dispatching(endless)),
        ("a shader that misses a wait", dispatching(spoiled(intel_states::kernel_without_wait))),
        ("a shader that jumps out of its code", dispatching(spoiled(intel_states::kernel_that_jumps_out))),
        ("an error of the engine", text(drawing().set(RingRegister::Ipeir, 1))),
        ("shader threads that run", running("ROW_INSTDONE[0][1]", !(1 << 16) & 0xffff_ffff)),
        ("a sampler that is not done", running("SAMPLER_INSTDONE[0][1]", !(1 << 6) & 0xffff_ffff)),
        ("a device that does not answer", text(intel_same(run, 0xffff_ffff, 0xffff_ffff))),
        ("registers that were not read", text(intel_same(run, 0, 0))),
    ]
}

fn xe_hangs(run: HangRun) -> Vec<(&'static str, Vec<u8>)> {
    let device = TestDevice::named("lnl");
    let text = |engine: EngineState| xe::DevcoreBuilder::new(device).engine(engine).text();
    let back = stream(&[&primitive(3), &batch_buffer_start(run.ib)]);
    let end = [MI_BATCH_BUFFER_END];
    let flush = pipe_control(1 << 20);
    let stalled = stream(&[&primitive(3), &flush, &end]);
    let dispatching = |code: Vec<u32>| {
        let states = (run.fence & !0xfff) + 0x1_0000_0000;
        let work = WorkStates::new(device, TestStage::Compute, states, 0x1000).kernel(code);
        text(work.engine(run.ib).process(run.process, run.pid as i32))
    };
    let endless = [intel_states::kernel(device, 3, false), vec![0; 64]].concat();
    let overwritten = stream(&[&store_data(run.ib, 1), &[u32::MAX; 20]]);
    vec![
        ("a semaphore nobody signals", text(intel_waiting(run, Some(3)).set(RingRegister::Acthd, run.ib))),
        ("a batch that jumps to itself", text(intel(run, &back, 0, back[0]))),
        ("a stall after a draw", text(intel(run, &stalled, primitive(3).len() + 4, flush[0]))),
        ("ones in the batch", text(intel(run, &overwritten, 4, overwritten[4]))),
        ("a shader of zeros", dispatching(vec![0; 64])),
        ("a shader without an end", dispatching(endless)),
        (
            "a shader that misses a wait",
            dispatching(intel_states::kernel_without_wait(device).unwrap_or_default()),
        ),
        ("a device that does not answer", text(intel_same(run, 0xffff_ffff, 0xffff_ffff))),
    ]
}
