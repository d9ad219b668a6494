//! `unwedge demo`: builds the dump of a hung GPU and explains it.
//!
//! The case: an Adreno 630 whose command processor waits in IB1, in CP_WAIT_REG_MEM, for a semaphore that nobody
//! signals. The dump is built in memory with the models and tables of the other crates, written as a kernel would
//! write it, and read back like any other.

use crate::args::{self, Global};
use crate::database;
use crate::explain::{print_report, report_options};
use crate::failure::{Failure, Outcome};
use crate::input::InputError;
use crate::output::Output;
use std::borrow::Cow;
use std::io::Write;
use unwedge::base::{ChipId, Generation};
use unwedge::capture::Dump;
use unwedge::capture::msm::{Blob, Bo, Devcore, Indexed, RegisterValue, Revision, Ring};
use unwedge::hw::{Db, Gpu};
use unwedge::stream::adreno::header::AdrenoPacketHeader;
use unwedge_view::around;

const RING: u64 = 0x0001_0000_0000_1000;
const FENCE: u64 = 0x0001_0000_0000_0040;
const IB1: u64 = 0x0000_0001_0010_0000;
const SEMAPHORE: u64 = 0x0000_0001_0020_0000;
const TARGET: u64 = 0x0000_0001_0040_0000;
/// What commands in the report call the dump when it is not saved.
const UNSAVED: &str = "demo.devcore";
/// What the semaphore must become.
const SIGNALLED: u32 = 2;
/// What it is.
const SEEN: u32 = 1;

/// RBBM_STATUS: the CP is busy, everything behind it is idle.
const STATUS: u32 = 0x0080_0005;

/// Runs the command.
pub fn run(args: &args::Demo, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let mut text = Vec::new();
    hung_in_wait(&db).write(&mut text);
    if let Some(path) = &args.save {
        std::fs::write(path, &text).map_err(|e| InputError::Io(path.display().to_string(), e))?;
    }
    let dump =
        Devcore::read(&text).map_err(|_| Failure::Database("the demo's dump does not read back".into()))?;
    let mut report = unwedge::postmortem::explain_msm(&dump, &db);
    around::attach(&mut report, &Dump::Msm(Box::new(dump)), &db, global.max_size);
    let file = args.save.as_ref().map(|path| path.to_string_lossy());
    let mut out = Output::open(global, false);
    let options = report_options(out.style);
    // What the report advises to run takes a file.
    let advised = if args.json { None } else { Some(UNSAVED) };
    print_report(&report, file.as_deref().or(advised), args.json, options, &mut out);
    if file.is_none() && !args.json {
        // A failed write is remembered, and reported by `finish`.
        let _ = writeln!(out, "\n`unwedge demo --save {UNSAVED}` writes this dump to a file; run it first.");
    }
    out.finish()?;
    Ok(Outcome::of("demo", &report.diagnostics))
}

/// A command stream under construction.
struct DemoStream<'d> {
    gpu: Gpu<'d>,
    dwords: Vec<u32>,
}

impl DemoStream<'_> {
    /// An operation, by the packet's opcode.
    fn op(&mut self, opcode: u8, payload: &[u32]) {
        self.packet(AdrenoPacketHeader::Operation { opcode, count: payload.len() as u32 }, payload);
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

/// Opcodes of the packets used here; decoding looks their names up in the database.
mod opcode {
    pub const WAIT_FOR_IDLE: u8 = 0x26;
    pub const DRAW_INDX_OFFSET: u8 = 0x38;
    pub const WAIT_REG_MEM: u8 = 0x3c;
    pub const INDIRECT_BUFFER: u8 = 0x3f;
    pub const EVENT_WRITE: u8 = 0x46;
    pub const SET_MARKER: u8 = 0x65;
}

/// A draw of a triangle list without an index buffer: initiator, instances, vertices.
const TRIANGLES: [u32; 3] = [0x0000_0084, 1, 3];

/// The dump.
fn hung_in_wait(db: &Db) -> Devcore<'static> {
    let gpu = db.gpu(Generation::A6xx);
    let [target_low, target_high] = halves(TARGET);
    let [semaphore_low, semaphore_high] = halves(SEMAPHORE);

    let mut ib1 = DemoStream { gpu, dwords: Vec::new() };
    ib1.op(opcode::SET_MARKER, &[1]);
    ib1.write("RB_MRT[0].CONTROL", &[0x780]);
    ib1.write("RB_MRT[0].BUF_INFO", &[0x30]);
    ib1.write("RB_MRT[0].BASE", &[target_low, target_high]);
    ib1.op(opcode::DRAW_INDX_OFFSET, &TRIANGLES);
    ib1.op(opcode::EVENT_WRITE, &[0x1d, semaphore_low + 16, semaphore_high, 1]);
    let stalled = ib1.dwords.len();
    // Poll memory until equal.
    ib1.op(opcode::WAIT_REG_MEM, &[0x13, semaphore_low, semaphore_high, SIGNALLED, u32::MAX, 16]);
    let consumed = ib1.dwords.len();
    ib1.op(opcode::DRAW_INDX_OFFSET, &TRIANGLES);
    ib1.op(opcode::WAIT_FOR_IDLE, &[]);

    let [ib1_low, ib1_high] = halves(IB1);
    let [fence_low, fence_high] = halves(FENCE);
    let mut ring = DemoStream { gpu, dwords: Vec::new() };
    ring.op(opcode::WAIT_FOR_IDLE, &[]);
    ring.op(opcode::INDIRECT_BUFFER, &[ib1_low, ib1_high, ib1.dwords.len() as u32]);
    let called = ring.dwords.len();
    ring.op(opcode::EVENT_WRITE, &[0x8000_0004, fence_low, fence_high, 8]);
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
    use unwedge::postmortem::FindingKind;

    #[test]
    fn the_dump_reads_back_and_the_wait_is_found() {
        let db = Db::builtin();
        let built = hung_in_wait(&db);
        let mut written = Vec::new();
        built.write(&mut written);
        let dump = Devcore::read(&written).unwrap();
        assert_eq!(dump.diagnostics, []);
        assert_eq!((dump.rings.len(), dump.bos.len()), (1, 3));
        let report = unwedge::postmortem::explain_msm(&dump, &db);
        let hang = report.hang.as_ref().expect("a hang point");
        assert_eq!(hang.packet.as_deref(), Some("CP_WAIT_REG_MEM"));
        assert_eq!(hang.levels.iter().map(|l| l.level).max(), Some(1), "{hang:?}");
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::CpWait), "{:#?}", report.findings);
    }
}
