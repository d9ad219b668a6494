//! The dump of a hung GPU, made up: for demonstrations and examples.
//!
//! The case: an Adreno 630 whose command processor waits in IB1, in CP_WAIT_REG_MEM, for a semaphore that nobody signals.
//! The dump is built with the models and tables of the other crates.

use std::borrow::Cow;
use unwedge_base::{ChipId, Generation};
use unwedge_capture::msm::{Blob, Bo, Devcore, Indexed, RegisterValue, Revision, Ring};
use unwedge_hw::{Db, Gpu};
use unwedge_stream::adreno::header::AdrenoPacketHeader;

const RING: u64 = 0x0001_0000_0000_1000;
const FENCE: u64 = 0x0001_0000_0000_0040;
const IB1: u64 = 0x0000_0001_0010_0000;
const SEMAPHORE: u64 = 0x0000_0001_0020_0000;
const TARGET: u64 = 0x0000_0001_0040_0000;
/// What the semaphore must become.
const SIGNALLED: u32 = 2;
/// What it is.
const SEEN: u32 = 1;

/// RBBM_STATUS: the CP is busy, everything behind it is idle.
const STATUS: u32 = 0x0080_0005;

/// A command stream under construction.
struct DemoStream<'d> {
    gpu: Gpu<'d>,
    dwords: Vec<u32>,
}

impl DemoStream<'_> {
    /// An operation, by the packet's name. One that the database does not know is left out.
    fn op(&mut self, name: &str, payload: &[u32]) {
        if let Some(opcode) = (0..=0x7f).find(|opcode| self.gpu.packet_name(*opcode) == Some(name)) {
            self.packet(AdrenoPacketHeader::Operation { opcode, count: payload.len() as u32 }, payload);
        }
    }

    /// Register writes, by name. A register the database does not know is left out.
    fn write(&mut self, name: &str, values: &[u32]) {
        if let Some(reg) = self.gpu.reg_offset(name) {
            self.packet(AdrenoPacketHeader::Registers { reg, count: values.len() as u32 }, values);
        }
    }

    fn packet(&mut self, header: AdrenoPacketHeader, payload: &[u32]) {
        self.dwords.extend(header.encode(Generation::A6xx));
        self.dwords.extend(payload);
    }
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// A draw of a triangle list without an index buffer: initiator, instances, vertices.
const TRIANGLES: [u32; 3] = [0x0000_0084, 1, 3];

/// The dump as the kernel would write it. What `db` does not know of its registers and packets is not in it.
///
/// ```
/// use unwedge::{DumpPart, hw::Db, open};
/// let dump = unwedge::demo::hung_in_wait(&Db::builtin());
/// let opened = open(&[DumpPart { name: "devcore", bytes: &dump }])?;
/// assert_eq!(opened.explain().hang.and_then(|hang| hang.packet).as_deref(), Some("CP_WAIT_REG_MEM"));
/// # Ok::<(), unwedge::NotADump>(())
/// ```
pub fn hung_in_wait(db: &Db) -> Vec<u8> {
    let mut written = Vec::new();
    model(db).write(&mut written);
    written
}

/// The same as the model of its reader.
fn model(db: &Db) -> Devcore<'static> {
    let gpu = db.gpu(Generation::A6xx);
    let [target_low, target_high] = halves(TARGET);
    let [semaphore_low, semaphore_high] = halves(SEMAPHORE);

    let mut ib1 = DemoStream { gpu, dwords: Vec::new() };
    ib1.op("CP_SET_MARKER", &[1]);
    ib1.write("RB_MRT[0].CONTROL", &[0x780]);
    ib1.write("RB_MRT[0].BUF_INFO", &[0x30]);
    ib1.write("RB_MRT[0].BASE", &[target_low, target_high]);
    ib1.op("CP_DRAW_INDX_OFFSET", &TRIANGLES);
    ib1.op("CP_EVENT_WRITE", &[0x1d, semaphore_low + 16, semaphore_high, 1]);
    let stalled = ib1.dwords.len();
    // Poll memory until equal.
    ib1.op("CP_WAIT_REG_MEM", &[0x13, semaphore_low, semaphore_high, SIGNALLED, u32::MAX, 16]);
    let consumed = ib1.dwords.len();
    ib1.op("CP_DRAW_INDX_OFFSET", &TRIANGLES);
    ib1.op("CP_WAIT_FOR_IDLE", &[]);

    let [ib1_low, ib1_high] = halves(IB1);
    let [fence_low, fence_high] = halves(FENCE);
    let mut ring = DemoStream { gpu, dwords: Vec::new() };
    ring.op("CP_WAIT_FOR_IDLE", &[]);
    ring.op("CP_INDIRECT_BUFFER", &[ib1_low, ib1_high, ib1.dwords.len() as u32]);
    let called = ring.dwords.len();
    ring.op("CP_EVENT_WRITE", &[0x8000_0004, fence_low, fence_high, 8]);
    let wptr = ring.dwords.len() as u32;

    // The fetcher is done with both streams; what the SQE has not consumed waits in the ROQ. REM counts the dword in
    // work too.
    let remaining =
        |stream: &DemoStream<'_>, consumed: usize| ((stream.dwords.len() - consumed + 1) as u64) << 16;
    let mut registers = Vec::new();
    let mut set = |name: &str, value: u64| {
        let low = gpu.reg_offset(name).and_then(|offset| gpu.reg(offset));
        registers.extend(low.map(|r| RegisterValue { reg: r.offset(), value: value as u32 }));
        registers.extend(
            low.filter(|r| r.width() == 64)
                .map(|r| RegisterValue { reg: r.offset() + 1, value: (value >> 32) as u32 }),
        );
    };
    set("RBBM_STATUS", u64::from(STATUS));
    set("CP_RB_BASE", RING);
    set("CP_RB_RPTR", u64::from(wptr));
    set("CP_RB_WPTR", u64::from(wptr));
    set("CP_IB1_BASE", IB1);
    set("CP_IB1_REM_SIZE", 0);
    set("CP_IB1_DWORDS", ib1.dwords.len() as u64);
    set("CP_IB2_BASE", 0);
    set("CP_IB2_REM_SIZE", 0);
    set("CP_ROQ_AVAIL_RB", remaining(&ring, called));
    set("CP_ROQ_AVAIL_IB1", remaining(&ib1, consumed));
    set("CP_ROQ_AVAIL_IB2", 0);
    registers.sort_by_key(|r: &RegisterValue| r.reg);

    // The SQE's PC, then its registers from $01: the header of the packet at work.
    let mut sqe = vec![0u32; 51];
    sqe[0] = 0x2c1;
    sqe[1] = ib1.dwords[stalled];

    Devcore {
        kernel: text("6.6.0"),
        module: text("msm"),
        time: text("0.000000000"),
        comm: text("demo"),
        cmdline: text("unwedge demo"),
        revision: Some(Revision { gpu_id: 630, chip_id: ChipId::from_parts(6, 3, 0, 2) }),
        rbbm_status: Some(STATUS),
        rings: vec![Ring {
            id: 0,
            iova: RING,
            last_fence: Some(8),
            retired_fence: Some(7),
            rptr: Some(wptr),
            wptr: Some(wptr),
            size: Some(32768),
            data: Some(Blob::encode(&ring.dwords)),
            ..Ring::default()
        }],
        bos: vec![
            bo(IB1, 4096, "cmdstream", Some(&ib1.dwords)),
            bo(SEMAPHORE, 4096, "semaphores", Some(&[SEEN, 0, 0, 0, 1])),
            bo(TARGET, 0x40_0000, "render target", None),
        ],
        registers,
        indexed: vec![Indexed {
            name: Cow::Borrowed("CP_SQE_STAT"),
            dwords: sqe.len() as u32,
            data: Some(Blob::encode(&sqe)),
            ..Indexed::default()
        }],
        ..Devcore::default()
    }
}

fn text(value: &'static str) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(value))
}

fn bo(iova: u64, size: u64, name: &'static str, contents: Option<&[u32]>) -> Bo<'static> {
    Bo { iova, size, flags: Some(0), name: text(name), data: contents.map(Blob::encode), ..Bo::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_postmortem::{FindingKind, explain_msm};

    #[test]
    fn the_dump_reads_back_and_the_wait_is_found() {
        let db = Db::builtin();
        let written = hung_in_wait(&db);
        let dump = Devcore::read(&written).unwrap();
        assert_eq!(dump.diagnostics, []);
        assert_eq!((dump.rings.len(), dump.bos.len()), (1, 3));
        let report = explain_msm(&dump, &db);
        let hang = report.hang.as_ref().expect("a hang point");
        assert_eq!(hang.packet.as_deref(), Some("CP_WAIT_REG_MEM"));
        assert_eq!(hang.levels.iter().map(|l| l.level).max(), Some(1), "{hang:?}");
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::CpWait), "{:#?}", report.findings);
    }
}
