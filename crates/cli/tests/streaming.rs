//! Captures as streams: cut anywhere they list what is there, and memory does not grow with their length.

use peak_alloc::PeakAlloc;
use std::io::{self, Read, Write};
use std::sync::Mutex;
use unwedge::capture::rd::RdReader;
use unwedge::hw::Db;
use unwedge_testkit::rd::{self, CaptureBuilder};
use unwedge_view::cffdump::{CffdumpOptions, Listing};

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
