//! Captures as streams: cut anywhere they list what is there, and memory does not grow with their length. Memory for dumps does
//! not grow with the sizes that they claim.

use peak_alloc::PeakAlloc;
use std::io::{self, Read, Write};
use std::sync::Mutex;
use unwedge::capture::msm::Devcore;
use unwedge::capture::rd::RdReader;
use unwedge::hw::Db;
use unwedge_testkit::count::ByteCounter;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::pm4::{indirect_buffer, pkt4};
use unwedge_testkit::rd::{self, CaptureBuilder};
use unwedge_view::cffdump::{CffdumpOptions, Listing};
use unwedge_view::crashdec::{self, CrashdecOptions};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// One test at a time counts the heap.
static ALONE: Mutex<()> = Mutex::new(());

const MAX_ALIVE: u64 = 1 << 20;

/// The text, and whether anything was lost.
fn list(capture: impl Read, out: &mut dyn Write) -> bool {
    let db = Db::builtin();
    let arguments = CffdumpOptions { unit_test: true, ..CffdumpOptions::default() };
    let lost = Listing::new(arguments, false, &db, MAX_ALIVE).run("capture", capture, false, out);
    !lost.is_empty()
}

/// The text of a cut capture is the beginning of the text of the whole: that of the sections which are whole. Only a cut
/// between sections loses nothing.
#[test]
fn a_cut_capture_is_listed_to_its_last_whole_section() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for gpu_id in [330, 630] {
        let whole = [rd::capture(gpu_id, 1), CaptureBuilder::new(gpu_id, "another").bytes()].concat();
        let mut all = Vec::new();
        assert!(!list(&whole[..], &mut all));
        let mut reader = RdReader::new(&whole[..]);
        let mut ends = vec![0];
        while let Some(section) = reader.next() {
            ends.push(section.span.end as usize);
        }
        let mut before = Vec::new();
        for cut in 0..whole.len() {
            let mut text = Vec::new();
            let lost = list(&whole[..cut], &mut text);
            assert_eq!(lost, !ends.contains(&cut), "cut at {cut}");
            if ends.contains(&cut) {
                assert!(text.starts_with(&before) && all.starts_with(&text), "cut at {cut}");
                before = text;
            } else {
                assert_eq!(text, before, "cut at {cut}");
            }
        }
    }
}

#[test]
fn memory_is_bounded_by_what_is_alive() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let capture = rd::capture(630, 4);
    let peak = |times: usize| {
        let mut input: Box<dyn Read> = Box::new(io::empty());
        for _ in 0..times {
            input = Box::new(input.chain(&capture[..]));
        }
        HEAP.reset_peak_usage();
        let before = HEAP.current_usage();
        assert!(!list(input, &mut io::sink()));
        HEAP.peak_usage() - before
    };
    let (once, often) = (peak(1), peak(20));
    assert!(often < once + once / 20, "{often} bytes for twenty, {once} for one");
}

#[test]
fn a_bomb_is_cut_to_what_may_be_alive() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let header = [12, 1 << 30].map(u32::to_le_bytes).concat();
    let good = rd::capture(630, 1);
    let bomb = header.chain(io::repeat(0).take(1 << 30)).chain(&good[..]);
    let mut text = Vec::new();
    HEAP.reset_peak_usage();
    assert!(list(bomb, &mut text), "what is passed over is a loss");
    assert!(HEAP.peak_usage() < 16 << 20, "{} bytes", HEAP.peak_usage());
    assert_eq!(
        String::from_utf8_lossy(&text).matches("vertices: 0").count(),
        1,
        "it goes on behind the bomb"
    );
}

#[test]
fn claimed_shaders_and_nameless_registers_take_no_memory() {
    const RING: u64 = 0x1_0000_0000;
    const STREAM: u64 = 0x2_0000_0000;
    const CODE: u64 = 0x3_0000_0000;
    const SP_VS_OBJ_START: u32 = 0xa81c;
    const SP_FS_OBJ_START: u32 = 0xa983;
    const CP_RB_BASE: u32 = 0x800;
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let mut stream = Vec::new();
    for (reg, code) in [(SP_VS_OBJ_START, CODE), (SP_FS_OBJ_START, CODE + 64)] {
        stream.extend(pkt4(reg, &[code as u32, (code >> 32) as u32]));
    }
    // Packets name 18 bits of a register.
    (0..0x4_0000 / 0x40).for_each(|at| stream.extend(pkt4(at * 0x40 + 0x3f, &[1])));
    let dump = DevcoreBuilder::a6xx()
        .ring(RING, &indirect_buffer(STREAM, stream.len() as u32))
        .bo(STREAM, 4 * stream.len() as u64, "stream", &stream)
        .bo(CODE, 64 << 20, "code", &[0, 1])
        .register64(CP_RB_BASE, RING)
        .text();
    let db = Db::builtin();
    let options = CrashdecOptions { lookback: 12, ..CrashdecOptions::default() };
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let mut shown = ByteCounter::default();
    let read = Devcore::read(&dump).unwrap();
    crashdec::run((&dump, &read), &options, &db, &mut shown, &mut io::sink());
    let heap = HEAP.peak_usage() - before;
    // Half a million instructions of the first shader, all of them `nop`.
    assert!(shown.bytes() > 16 << 20, "{} bytes of text", shown.bytes());
    assert!(heap < 4 << 20, "{heap} bytes for a dump of {}", dump.len());
}
