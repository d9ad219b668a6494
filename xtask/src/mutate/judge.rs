//! Shows inputs, and finds what is wrong with what is shown.

use super::captures::Size;
use super::{HEAP, MAX_INPUT};
use std::cell::RefCell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use unwedge::files::Input;
use unwedge_campaigns::amd::{self as amd_views, Given, View as AmdView};
use unwedge_campaigns::amdisa::{self, View as AmdisaView};
use unwedge_campaigns::browser;
use unwedge_campaigns::captures::{self as capture_views, Words};
use unwedge_campaigns::contexts as context_views;
use unwedge_campaigns::lints;
use unwedge_campaigns::replays::{self, ExecutedCounts};
use unwedge_campaigns::{View, show};
use unwedge_cli::dump::DumpFiles;
use unwedge_cli::output::SharedOutput;
use unwedge_hw::Db;
use unwedge_intel::lrc::{LrcLayout, encoding};
use unwedge_isa::amdgcn::Gpu;
use unwedge_testkit::count::ByteCounter;

/// Nothing takes more CPU time, for each MiB of input or part of it, and as much again for so many bytes of output.
const SLOW: Duration = Duration::from_secs(1);
/// See [`SLOW`].
const OUTPUT_OF_SLOW: u64 = 128 << 20;
/// What walking takes of a capture however small it is: its buffers may run for many tiles.
const WALK: Duration = Duration::from_secs(2);
/// The same where a script looks on.
const SCRIPTED: Duration = Duration::from_secs(10);
/// The heap never holds more than so many bytes per byte of input, the input itself included.
const HEAP_PER_BYTE: usize = 20;
/// The same of captures, whose small sections have a place each in lists and trees, and of texts of AMD GPUs, whose lines
/// have.
const HEAP_PER_BYTE_OF_CAPTURE: usize = 40;
/// What inputs of any size may take: register state and buffers for output do not shrink with the input.
const HEAP_FLOOR: usize = 4 << 20;
/// The same of what compresses as xz does: its dictionary, and tables to find things in it.
const HEAP_FLOOR_OF_XZ: usize = 64 << 20;

/// The same of the virtual Adreno: registers and their contexts, constants, waves, and the dump that a hang leaves.
const HEAP_FLOOR_OF_MACHINE: usize = 64 << 20;

/// The same of the browser: a page of packets, which a short stream that loops fills.
const HEAP_FLOOR_OF_BROWSER: usize = 64 << 20;
/// Keys that an input is browsed with.
const EVENTS: usize = 60;

/// Bytes that an assembler's source may ask for: what is made, its copy in a file, and both as text.
const ASSEMBLED: usize = 6 * (256 << 20);
/// The same by macros and repetitions.
const EXPANDED: usize = 64 << 20;

/// Finds what is wrong with what is shown, and the worst of it.
pub(super) struct Judge {
    pub(super) db: Rc<Db>,
    pub(super) worst: Vec<Worst>,
    /// How much of the captures was executed.
    pub(super) executed: ExecutedCounts,
}

impl Judge {
    pub(super) fn dump(&mut self, text: &[u8], view: View, what: &str) {
        let db = Rc::clone(&self.db);
        let shown = once(|mut counter| {
            let input = Input::read(text, "dump".to_owned(), text.len() as u64, MAX_INPUT);
            // What cannot be used is said so: that is an answer, too.
            let _ = input.is_ok_and(|input| show(view, &DumpFiles::of(input), &db, &mut counter).is_ok());
        });
        let limits = Limits {
            walk: Duration::ZERO,
            heap: heap(HEAP_PER_BYTE, text.len()),
            output: view.limit(text.len() as u64),
        };
        self.judge(shown, text.len(), &limits, what, &format!("{view:?}"));
    }

    pub(super) fn amdgpu(&mut self, given: Given<'_>, view: AmdView, what: &str) {
        let db = Rc::clone(&self.db);
        let shown = once(|mut counter| {
            let _ = amd_views::show(view, given, &db, &mut counter);
        });
        let size = match given {
            Given::File(bytes) => bytes.len(),
            Given::Folder(files) => files.iter().map(|(_, bytes)| bytes.len()).sum(),
        };
        let output = view.limit(size as u64);
        let limits = Limits { walk: Duration::ZERO, heap: heap(HEAP_PER_BYTE_OF_CAPTURE, size), output };
        self.judge(shown, size, &limits, what, &format!("{view:?}"));
    }

    pub(super) fn amdisa(&mut self, bytes: &[u8], gpu: Gpu, view: AmdisaView, what: &str) {
        let shown = once(|mut counter| {
            let _ = amdisa::show(view, bytes, gpu, &mut counter);
        });
        let has = |word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
        let assembles = matches!(view, AmdisaView::Assemble | AmdisaView::AssembleHex);
        // Sources may ask for as much as the assembler gives them, directly or by repetition.
        let asked = match assembles {
            true if [".fill", ".zero", ".org", ".space", ".skip"].into_iter().any(has) => ASSEMBLED,
            true if [".rept", ".irp", ".macro"].into_iter().any(has) => EXPANDED,
            _ => 0,
        };
        let limits = Limits {
            walk: if assembles { WALK } else { Duration::ZERO },
            heap: heap(HEAP_PER_BYTE_OF_CAPTURE, bytes.len()) + asked,
            output: view.limit(bytes.len() as u64),
        };
        self.judge(shown, bytes.len(), &limits, what, &format!("{view:?}"));
    }

    pub(super) fn capture(
        &mut self,
        capture: &Arc<[u8]>,
        other: &Arc<[u8]>,
        words: Words,
        size: Size,
        what: &str,
    ) {
        let db = Rc::clone(&self.db);
        let shown = once(|counter| {
            let out: SharedOutput = Rc::new(RefCell::new(counter));
            let _ = capture_views::show(words, capture, other, &db, MAX_INPUT, &out);
        });
        // `diff` walks both at once, each with register state of its own.
        let (more, walks, walk) = match words {
            ["diff", ..] => (other.len(), 2, 2 * WALK),
            ["rd", "merge", ..] => (other.len(), 1, WALK),
            ["cffdump", "--script", ..] => (0, 1, SCRIPTED),
            _ => (0, 1, WALK),
        };
        let floor = if words.contains(&"xz") { HEAP_FLOOR_OF_XZ } else { walks * HEAP_FLOOR };
        let limits = Limits {
            walk,
            heap: heap(HEAP_PER_BYTE_OF_CAPTURE, size.held + more).max(floor),
            output: capture_views::limit(words, (size.unpacked + more) as u64),
        };
        self.judge(shown, size.unpacked + more, &limits, what, &words.join(" "));
    }

    /// Executes a capture; `traced`: with every packet written down.
    pub(super) fn replay(&mut self, capture: &[u8], traced: bool, what: &str) {
        let db = Rc::clone(&self.db);
        let mut counts = ExecutedCounts::default();
        let shown = once(|mut counter| counts = replays::show(capture, traced, &db, MAX_INPUT, &mut counter));
        self.executed += counts;
        let limits = Limits {
            walk: replays::TIME,
            heap: heap(HEAP_PER_BYTE_OF_CAPTURE, capture.len()).max(HEAP_FLOOR_OF_MACHINE),
            output: replays::limit(capture.len() as u64),
        };
        self.judge(shown, capture.len(), &limits, what, if traced { "replay --trace" } else { "replay" });
    }

    /// Browses an input with keys that the seed chooses.
    pub(super) fn browser(&mut self, bytes: &[u8], seed: u64, what: &str) {
        let shown = once(|_| browser::browse("input", bytes, seed, EVENTS));
        let limits = Limits {
            walk: browser::TIME_OF_KEY * EVENTS as u32,
            heap: heap(HEAP_PER_BYTE_OF_CAPTURE, bytes.len()).max(HEAP_FLOOR_OF_BROWSER),
            output: 0,
        };
        self.judge(shown, bytes.len(), &limits, what, "tui");
    }

    /// Lints a capture.
    pub(super) fn lint(&mut self, capture: &[u8], what: &str) {
        let db = Rc::clone(&self.db);
        let shown = once(|mut counter| lints::show(capture, &db, MAX_INPUT, &mut counter));
        let limits = Limits {
            walk: lints::TIME,
            heap: heap(HEAP_PER_BYTE_OF_CAPTURE, capture.len()).max(2 * HEAP_FLOOR_OF_MACHINE),
            output: lints::limit(capture.len() as u64),
        };
        self.judge(shown, capture.len(), &limits, what, "lint");
    }

    pub(super) fn context(&mut self, words: &[u32], whole: &[u32], layout: &LrcLayout, what: &str) {
        let shown = once(|mut counter| {
            let _ = context_views::show(words, whole, layout, &mut counter);
            // A table of bytes of any kind.
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let _ = encoding::decode(&bytes).map(|(steps, length)| {
                assert!(encoding::encode(&steps).is_ok_and(|again| bytes.get(..length) == Some(&again)));
            });
        });
        let size = 4 * words.len();
        let output = context_views::limit(size as u64);
        let limits = Limits { walk: Duration::ZERO, heap: heap(HEAP_PER_BYTE, size), output };
        self.judge(shown, size, &limits, what, "lrc");
    }

    fn judge(&mut self, shown: Result<Once, ()>, size: usize, limits: &Limits, what: &str, view: &str) {
        let view = view.split('\n').next().unwrap_or_default();
        match shown {
            Ok(once) => {
                for complaint in once.complaints(size, limits) {
                    println!("{complaint} ({what}, {view})");
                }
                self.worst.iter_mut().for_each(|w| w.take(&once, what, size, view));
            }
            Err(()) => println!("panicked ({what}, {view})"),
        }
    }
}

/// CPU time of this process, so that other load of the machine does not count: to the nanosecond of the first thread,
/// and in ticks of them all.
fn cpu_time() -> (Duration, Duration) {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let first = read("/proc/self/schedstat");
    let first = Duration::from_nanos(first.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0));
    let all = read("/proc/self/stat");
    // Behind the name: user and system time stand 11 fields after the state.
    let fields = all.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    let ticks: u64 = fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    (first, Duration::from_millis(10 * ticks))
}

/// What one view of an input may take, beside what all may.
struct Limits {
    walk: Duration,
    /// Bytes.
    heap: usize,
    /// Bytes.
    output: u64,
}

/// What the heap may hold for an input of so many bytes.
fn heap(per_byte: usize, input: usize) -> usize {
    HEAP_FLOOR.max(per_byte.saturating_mul(input))
}

/// One view of one input.
pub(super) struct Once {
    time: Duration,
    heap: usize,
    output: u64,
}

fn once(show: impl FnOnce(ByteCounter)) -> Result<Once, ()> {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let started = cpu_time();
    let counter = ByteCounter::default();
    let output = counter.clone();
    catch_unwind(AssertUnwindSafe(|| show(counter))).map_err(drop)?;
    let ended = cpu_time();
    let time = ended.0.saturating_sub(started.0).max(ended.1.saturating_sub(started.1));
    Ok(Once { time, heap: HEAP.peak_usage().saturating_sub(before), output: output.bytes() })
}

impl Once {
    fn complaints(&self, input: usize, limits: &Limits) -> Vec<String> {
        let mut out = Vec::new();
        let shares = (input >> 20).max(1) as u64 + self.output / OUTPUT_OF_SLOW;
        if self.time >= limits.walk + SLOW * shares as u32 {
            out.push(format!("slow: {:?} for {input} bytes, {} bytes of output", self.time, self.output));
        }
        if self.heap > limits.heap {
            out.push(format!("memory: {} bytes for {input}", self.heap));
        }
        if self.output > limits.output {
            out.push(format!("output: {} bytes for {input}", self.output));
        }
        out
    }
}

/// The worst of one kind.
pub(super) struct Worst {
    kind: &'static str,
    measure: fn(&Once, usize) -> u64,
    value: u64,
    told: String,
}

impl Worst {
    pub(super) fn none() -> Vec<Worst> {
        let floor = |kind, measure| Worst { kind, measure, value: 0, told: String::new() };
        vec![
            floor("time/us", |once, _| once.time.as_micros() as u64),
            floor("heap/bytes", |once, _| once.heap as u64),
            floor("heap-of-large-input/percent", |once, input| {
                if input < HEAP_FLOOR / HEAP_PER_BYTE { 0 } else { (100 * once.heap / input) as u64 }
            }),
            floor("output/bytes", |once, _| once.output),
        ]
    }

    pub(super) fn take(&mut self, once: &Once, what: &str, input: usize, view: &str) {
        let value = (self.measure)(once, input);
        if value > self.value {
            self.value = value;
            self.told = format!("{} ({what}, {input} bytes, {view})", self.kind);
        }
    }

    /// Takes what a worker says.
    pub(super) fn read(&mut self, line: &str) {
        let Some((value, told)) = line.split_once(' ') else { return };
        if told.split(' ').next() == Some(self.kind) && value.parse().is_ok_and(|v: u64| v >= self.value) {
            self.value = value.parse().unwrap_or(0);
            told.clone_into(&mut self.told);
        }
    }
}

impl std::fmt::Display for Worst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.value, self.told)
    }
}
