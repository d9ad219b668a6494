//! A GPU that hangs, without one: for demonstrations and examples.
//!
//! The case: the command processor of an Adreno 630 waits in an IB2, in CP_WAIT_REG_MEM, for a semaphore that nobody
//! signals. A capture of such a submit is made in memory and executed on the virtual Adreno, which hangs; the dump is the
//! one that its kernel leaves.

use unwedge_base::Generation;
use unwedge_capture::rd::{MemoryRange, RdSectionKind, RdWriteError, RdWriter};
use unwedge_hw::{Db, Gpu};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_view::replay::{HangFiles, ReplayOptions, replay};

const IB1: u64 = 0x0000_0001_0010_0000;
const IB2: u64 = 0x0000_0001_0010_1000;
const SEMAPHORE: u64 = 0x0000_0001_0020_0000;
const TARGET: u64 = 0x0000_0001_0040_0000;
const TARGET_SIZE: u32 = 0x1_0000;
/// What the semaphore must become.
const SIGNALLED: u32 = 2;
/// What it is.
const SEEN: u32 = 1;
/// Steps of the machine: far more than the submit takes.
const STEPS: u64 = 1 << 16;
/// Bytes of buffers that may be alive.
const MAX_ALIVE: u64 = 1 << 24;

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
    run(db).map(|files| files.devcoredump).unwrap_or_default()
}

/// Executes the capture; `None` if it does not hang, which a database of the user's own may bring about.
fn run(db: &Db) -> Option<HangFiles> {
    let capture = capture(db).ok()?;
    let options = ReplayOptions { dump: true, ..ReplayOptions::new(STEPS) };
    replay(&capture[..], &options, db, MAX_ALIVE).0.hang
}

/// The capture of the submit that hangs.
fn capture(db: &Db) -> Result<Vec<u8>, RdWriteError> {
    let gpu = db.gpu(Generation::A6xx);
    let [target_low, target_high] = halves(TARGET);
    let [semaphore_low, semaphore_high] = halves(SEMAPHORE);

    let mut ib2 = DemoStream { gpu, dwords: Vec::new() };
    ib2.write("RB_MRT[0].CONTROL", &[0x780]);
    ib2.write("RB_MRT[0].BUF_INFO", &[0x30]);
    ib2.write("RB_MRT[0].BASE", &[target_low, target_high]);
    ib2.op("CP_DRAW_INDX_OFFSET", &TRIANGLES);
    ib2.op("CP_EVENT_WRITE", &[0x1d, semaphore_low + 16, semaphore_high, 1]);
    // Poll memory until equal.
    ib2.op("CP_WAIT_REG_MEM", &[0x13, semaphore_low, semaphore_high, SIGNALLED, u32::MAX, 16]);
    ib2.op("CP_DRAW_INDX_OFFSET", &TRIANGLES);

    let [ib2_low, ib2_high] = halves(IB2);
    let mut ib1 = DemoStream { gpu, dwords: Vec::new() };
    ib1.op("CP_SET_MARKER", &[1]);
    ib1.op("CP_INDIRECT_BUFFER", &[ib2_low, ib2_high, ib2.dwords.len() as u32]);
    ib1.op("CP_WAIT_FOR_IDLE", &[]);

    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut writer = RdWriter::new(Vec::new());
    writer.section(RdSectionKind::GpuId, &630u32.to_le_bytes())?;
    writer.section(RdSectionKind::Cmd, b"demo\0")?;
    let target = vec![0; TARGET_SIZE as usize];
    let buffers = [
        (IB1, bytes(&ib1.dwords)),
        (IB2, bytes(&ib2.dwords)),
        (SEMAPHORE, bytes(&[SEEN; 8])),
        (TARGET, target),
    ];
    for (iova, contents) in buffers {
        let size = (contents.len() as u32).next_multiple_of(4096);
        writer.range(RdSectionKind::GpuAddr, MemoryRange { iova, size }, true)?;
        writer.section(RdSectionKind::BufferContents, &contents)?;
    }
    let size = ib1.dwords.len() as u32;
    writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: IB1, size }, true)?;
    Ok(writer.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_capture::msm::Devcore;
    use unwedge_postmortem::{FindingKind, explain_msm};
    use unwedge_sim::adreno::Loading;

    #[test]
    fn the_dump_reads_back_and_the_wait_is_found() {
        let db = Db::builtin();
        let written = hung_in_wait(&db);
        let dump = Devcore::read(&written).unwrap();
        assert_eq!(dump.diagnostics, []);
        assert_eq!((dump.rings.len(), dump.bos.len()), (1, 4));
        let event = dump.memory().read(SEMAPHORE + 16);
        assert_eq!(event, Some(1), "the packets before the wait were executed");
        let report = explain_msm(&dump, &db);
        let hang = report.hang.as_ref().expect("a hang point");
        assert_eq!(hang.packet.as_deref(), Some("CP_WAIT_REG_MEM"));
        assert_eq!(hang.levels.iter().map(|l| l.level).max(), Some(2), "{hang:?}");
        assert!(report.findings.iter().any(|f| f.kind == FindingKind::CpWait), "{:#?}", report.findings);
    }

    #[test]
    fn the_submit_that_hung_hangs_again() {
        let db = Db::builtin();
        let first = run(&db).expect("a hang");
        let options = ReplayOptions { loading: Loading::Snapshot, dump: true, ..ReplayOptions::new(STEPS) };
        let again = replay(&first.hangrd[..], &options, &db, MAX_ALIVE).0.hang.expect("a hang");
        let position = |text: &[u8]| {
            explain_msm(&Devcore::read(text).unwrap(), &db).hang.map(|hang| (hang.packet, hang.iova))
        };
        assert_eq!(position(&first.devcoredump), position(&again.devcoredump));
    }
}
