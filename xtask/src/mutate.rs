//! `cargo xtask mutate [N] [--seed S] [--only KIND] [FILE…]`: N broken dumps, captures, images of Intel contexts and texts of
//! AMD GPUs through every command, on two processes. KIND is dumps, captures, contexts, i915, xe or amdgpu.
//!
//! What is broken: synthetic dumps and captures of every generation, era and quirk, ones that are hostile by design,
//! compressed ones, contexts of every engine, and every FILE. For each the panics, the longest run, the highest peak of the heap and the longest output are found; any of
//! them above its bound makes the campaign fail. A seed gives the same dumps every time.

use peak_alloc::PeakAlloc;
use std::cell::RefCell;
use std::fs;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use unwedge_base::Generation;
use unwedge_capture::rd::{Reader, SectionKind, Writer, without_zeros};
use unwedge_cli::input::Input;
use unwedge_cli::output::SharedOutput;
use unwedge_cli::view::amd::{self as amd_views, Given, View as AmdView};
use unwedge_cli::view::captures::{self as capture_views, Words};
use unwedge_cli::view::contexts as context_views;
use unwedge_cli::view::{self, View};
use unwedge_hw::Db;
use unwedge_intel::lrc::{Layout, Target, encoding};
use unwedge_intel::platform::{Engine, Platform};
use unwedge_testkit::amdgpu::{self, Gfx, RadvBuilder};
use unwedge_testkit::count::Counter;
use unwedge_testkit::devcore::{DevcoreBuilder, variety};
use unwedge_testkit::hostile::{hostile, repetitive};
use unwedge_testkit::mutate::mutate;
use unwedge_testkit::{captures, contexts, i915, pack, xe};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const DEFAULT: u64 = 100_000;
const WORKERS: u64 = 2;
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
/// Each dump is shown by every so many-th view, the next one by others.
const VIEWS_SHARE: usize = 4;
/// The same of captures.
const CAPTURE_VIEWS_SHARE: usize = 9;
/// One in so many inputs is a FILE's.
const FILES_SHARE: u64 = 16;
/// Bytes of texts that say one thing over and over.
const REPETITIVE: usize = 650_000;
/// Bytes of captures that do one thing over and over that costs much.
const EXPENSIVE: usize = 400_000;
/// Bytes that bombs unpack to.
const BOMB: usize = 32 << 20;
/// Bytes of a FILE's buffer that are kept where it ends in zeros anyway; a large file is mostly that.
const KEPT_ZEROS: usize = 256;
const MAX_INPUT: u64 = 1 << 30;

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut campaign = Campaign { count: DEFAULT, seed: 1, files: Vec::new(), only: None };
    let mut worker = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut number = || rest.next().and_then(|v| v.parse().ok()).ok_or(format!("{arg} takes a number"));
        match (arg.as_str(), arg.parse()) {
            ("--seed", _) => campaign.seed = number()?,
            ("--worker", _) => worker = Some(number()?),
            ("--only", _) => {
                let only = rest.next().and_then(|kind| Kind::ALL.into_iter().find(|k| k.name() == kind));
                campaign.only =
                    Some(only.ok_or("--only takes dumps, captures, contexts, i915, xe or amdgpu")?);
            }
            (_, Ok(count)) => campaign.count = count,
            _ => campaign.files.push(arg.clone()),
        }
    }
    match worker {
        Some(worker) => campaign.work(worker),
        None => campaign.lead(),
    }
}

struct Campaign {
    count: u64,
    seed: u64,
    files: Vec<String>,
    only: Option<Kind>,
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Dumps,
    Captures,
    Contexts,
    I915,
    Xe,
    Amdgpu,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::Dumps, Kind::Captures, Kind::Contexts, Kind::I915, Kind::Xe, Kind::Amdgpu];

    fn name(self) -> &'static str {
        match self {
            Kind::Dumps => "dumps",
            Kind::Captures => "captures",
            Kind::Contexts => "contexts",
            Kind::I915 => "i915",
            Kind::Xe => "xe",
            Kind::Amdgpu => "amdgpu",
        }
    }
}

impl Campaign {
    /// Starts the workers and puts together what they say.
    fn lead(&self) -> Result<(), String> {
        let started = Instant::now();
        let (said, sayings) = mpsc::channel();
        let mut listeners = Vec::new();
        for i in 0..WORKERS {
            let mut worker = self.start(i)?;
            let said = said.clone();
            listeners.push(thread::spawn(move || {
                let lines = worker.stdout.take().map(|out| BufReader::new(out).lines());
                for line in lines.into_iter().flatten().map_while(Result::ok) {
                    // Nobody stops listening before.
                    let _ = said.send((i, line));
                }
                worker.wait()
            }));
        }
        drop(said);
        let mut failures = Vec::new();
        let mut worst: Vec<Worst> = Worst::none();
        let mut at = vec![0_u64; listeners.len()];
        for (i, line) in sayings {
            match line.split_once(' ') {
                Some(("at", done)) => {
                    if let (Some(at), Ok(done)) = (at.get_mut(i as usize), done.parse()) {
                        *at = done;
                    }
                    if io::stderr().is_terminal() {
                        eprint!("\r{} of {}", at.iter().sum::<u64>(), self.count);
                    }
                }
                Some(("worst", found)) => worst.iter_mut().for_each(|w| w.read(found)),
                _ => {
                    println!("{line}");
                    failures.push(line);
                }
            }
        }
        for (listener, done) in listeners.into_iter().zip(at) {
            let ended = listener.join().map_err(|_| "a worker could not be listened to")?;
            let status = ended.map_err(|e| e.to_string())?;
            if !status.success() {
                failures.push(format!("a worker ended with {status} after {done} inputs"));
            }
        }
        println!(
            "{} broken inputs from seed {}, {:.0} s: {} failures",
            self.count,
            self.seed,
            started.elapsed().as_secs_f64(),
            failures.len()
        );
        for w in &worst {
            println!("worst {w}");
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }

    fn start(&self, worker: u64) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let numbers = [self.count.to_string(), "--seed".into(), self.seed.to_string()];
        Command::new(program)
            .args(["mutate", "--worker", &worker.to_string()])
            .args(numbers)
            .args(self.only.iter().flat_map(|only| ["--only", only.name()]))
            .args(&self.files)
            .stdout(Stdio::piped())
            // What the commands say there is not looked at; a panic comes by itself.
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())
    }

    /// Every second input, or whatever this worker's share is.
    fn work(&self, worker: u64) -> Result<(), String> {
        let files = self.files.iter().map(|f| read(f)).collect::<Result<Vec<_>, _>>()?;
        let parted = |files: Vec<Vec<u8>>, sniff: fn(&[u8]) -> bool| -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
            files.into_iter().partition(|file| sniff(file))
        };
        let (captures, files) = parted(files, unwedge_capture::rd::sniff);
        let (xe_files, files) = parted(files, unwedge_capture::xe::sniff);
        let (i915_files, dumps) = parted(files, unwedge_capture::i915::sniff);
        let mut judge = Judge { db: Rc::new(Db::builtin()), worst: Worst::none() };
        std::panic::set_hook(Box::new(|info| println!("panic: {info}")));
        let wanted = |kind: Kind| self.only.is_none_or(|only| only == kind);
        let (mut dumps, mut captures, contexts) =
            (Dumps::new(dumps), Captures::new(captures), Contexts::new());
        let of_intel = |variety: Vec<(String, Vec<u8>)>, files, what| Intel {
            synthetic: variety.into_iter().map(|(_, text)| text).collect(),
            files,
            what,
        };
        let i915 = of_intel(i915::variety(), i915_files, "i915");
        let xe = of_intel(xe::variety(), xe_files, "xe");
        let amdgpu = Amdgpu::new();
        if wanted(Kind::Dumps) {
            dumps.repetitions(worker, &mut judge);
        }
        if wanted(Kind::Captures) {
            captures.expenses(worker, &mut judge);
        }
        if wanted(Kind::I915) || wanted(Kind::Xe) {
            Intel::repetitions(worker, &mut judge);
        }
        for i in (worker..self.count).step_by(WORKERS as usize) {
            let seed = self.seed.wrapping_mul(1 << 32).wrapping_add(i);
            let share = i / WORKERS;
            // By turns, and each by itself as if there were no other.
            let (kind, turn) = match self.only {
                Some(only) => (only, share),
                None => (Kind::ALL[share as usize % Kind::ALL.len()], share / Kind::ALL.len() as u64),
            };
            match kind {
                Kind::Dumps => dumps.one(turn, seed, &mut judge),
                Kind::Captures => captures.one(turn, seed, &mut judge),
                Kind::Contexts => contexts.one(turn, seed, &mut judge),
                Kind::I915 => i915.one(turn, seed, &mut judge),
                Kind::Xe => xe.one(turn, seed, &mut judge),
                Kind::Amdgpu => amdgpu.one(turn, seed, &mut judge),
            }
            if share.is_multiple_of(64) {
                println!("at {}", share + 1);
            }
        }
        for w in &judge.worst {
            println!("worst {w}");
        }
        Ok(())
    }
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    Ok(Input::open(path.as_ref(), MAX_INPUT).map_err(|e| e.to_string())?.bytes)
}

fn pick(from: &[Vec<u8>], i: u64) -> Option<&Vec<u8>> {
    from.get(i.checked_rem(from.len() as u64)? as usize)
}

/// Broken dumps.
struct Dumps {
    synthetic: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
    views: Vec<View>,
}

impl Dumps {
    fn new(files: Vec<Vec<u8>>) -> Dumps {
        let mut synthetic: Vec<Vec<u8>> = variety().into_iter().map(|(_, text)| text).collect();
        synthetic.extend(Generation::ALL.map(|g| DevcoreBuilder::complete(g).text()));
        Dumps { synthetic, files, views: View::all() }
    }

    fn repetitions(&mut self, worker: u64, judge: &mut Judge) {
        for (i, text) in repetitive(REPETITIVE).iter().enumerate().skip(worker as usize).step_by(2) {
            self.views.iter().for_each(|&view| judge.dump(text, view, &format!("repetition {i}")));
        }
    }

    fn one(&mut self, share: u64, seed: u64, judge: &mut Judge) {
        let (what, text) = match pick(&self.files, share / FILES_SHARE) {
            Some(file) if share.is_multiple_of(FILES_SHARE) => ("file", mutate(file, seed)),
            _ if share % 4 == 1 => ("hostile", hostile(seed)),
            _ if share % 4 == 2 => ("hostile", mutate(&hostile(seed), seed)),
            _ => ("synthetic", pick(&self.synthetic, share).map_or_else(Vec::new, |s| mutate(s, seed))),
        };
        let shown = self.views.iter().skip((share / 16) as usize % VIEWS_SHARE).step_by(VIEWS_SHARE);
        shown.for_each(|&view| judge.dump(&text, view, &format!("seed {seed}, {what} dump")));
    }
}

/// Broken error states of i915, or devcoredumps of xe.
struct Intel {
    synthetic: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
    what: &'static str,
}

impl Intel {
    fn repetitions(worker: u64, judge: &mut Judge) {
        let texts = unwedge_testkit::intel::repetitive(REPETITIVE);
        for (i, text) in texts.iter().enumerate().skip(worker as usize).step_by(WORKERS as usize) {
            View::OF_INTEL
                .iter()
                .for_each(|&view| judge.dump(text, view, &format!("repetition {i} of Intel")));
        }
    }

    fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let (what, whole) = match pick(&self.files, share / FILES_SHARE) {
            Some(file) if share.is_multiple_of(FILES_SHARE) => ("file", Some(file)),
            _ => ("synthetic", pick(&self.synthetic, share)),
        };
        let text = whole.map_or_else(Vec::new, |whole| mutate(whole, seed));
        for view in View::OF_INTEL {
            judge.dump(&text, view, &format!("seed {seed}, {what} {}", self.what));
        }
    }
}

/// Broken captures.
struct Captures {
    synthetic: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
}

impl Captures {
    fn new(files: Vec<Vec<u8>>) -> Captures {
        let files = files.iter().map(|file| without_needless_zeros(file)).collect();
        Captures { synthetic: captures::variety(), files }
    }

    fn expenses(&mut self, worker: u64, judge: &mut Judge) {
        let expensive = captures::expensive(EXPENSIVE).into_iter();
        for (name, capture) in expensive.skip(worker as usize).step_by(WORKERS as usize) {
            let size = Size::of(&capture);
            let capture = Arc::from(capture);
            // What is compared with itself is read to its end.
            capture_views::ALL.iter().for_each(|words| judge.capture(&capture, &capture, words, size, &name));
        }
        let bombs = captures::bombs(BOMB).into_iter();
        for (name, bomb) in bombs.skip(worker as usize).step_by(WORKERS as usize) {
            let size = Size { unpacked: BOMB, held: bomb.len() };
            let bomb = Arc::from(bomb);
            capture_views::ALL.iter().for_each(|words| judge.capture(&bomb, &bomb, words, size, name));
        }
    }

    fn one(&mut self, share: u64, seed: u64, judge: &mut Judge) {
        let (what, whole) = match pick(&self.files, share / FILES_SHARE) {
            Some(file) if share.is_multiple_of(FILES_SHARE) => ("file", file.clone()),
            _ if share % 4 == 1 || share % 4 == 2 => ("hostile", captures::hostile(seed)),
            _ => ("synthetic", pick(&self.synthetic, share).cloned().unwrap_or_default()),
        };
        let (what, broken) = match share % 8 {
            1 | 5 => (what.to_owned(), whole.clone()),
            6 | 7 => {
                let pack = pack::ALL[(share / 8) as usize % pack::ALL.len()];
                // What is inside is whole, or broken as well.
                let inside = if share % 16 < 8 { whole.clone() } else { captures::mutate(&whole, seed) };
                (format!("packed {what}"), captures::mutate_bytes(&pack(&inside), seed))
            }
            _ => (what.to_owned(), captures::mutate(&whole, seed)),
        };
        let size = Size::of(&broken);
        let (broken, whole) = (Arc::from(broken), Arc::from(whole));
        let views = capture_views::ALL.iter();
        for words in views.skip((share / 16) as usize % CAPTURE_VIEWS_SHARE).step_by(CAPTURE_VIEWS_SHARE) {
            judge.capture(&broken, &whole, words, size, &format!("seed {seed}, {what} capture"));
        }
    }
}

/// Broken contexts.
struct Contexts {
    layouts: Vec<Layout>,
}

impl Contexts {
    /// Those of every engine.
    fn new() -> Contexts {
        let targets = Platform::all().iter().flat_map(|platform| {
            let (version, drivers) = (platform.version(), platform.drivers());
            let engines = Engine::all(version);
            engines
                .flat_map(move |engine| drivers.iter().map(move |&driver| Target { driver, version, engine }))
        });
        Contexts { layouts: targets.filter_map(|target| Layout::of(target).ok()).collect() }
    }

    fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let at = (share as usize).checked_rem(self.layouts.len());
        let Some(layout) = at.and_then(|at| self.layouts.get(at)) else { return };
        let whole = contexts::context(&layout.expand(), seed);
        judge.context(&contexts::mutate(&whole, seed), &whole, layout, &format!("seed {seed}, context"));
    }
}

/// The same capture, whose buffers do not end in more than a few zeros.
fn without_needless_zeros(capture: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(capture);
    let mut writer = Writer::new(Vec::new());
    while let Some(section) = reader.next() {
        let payload = match section.kind {
            SectionKind::BufferContents => {
                let kept = (without_zeros(section.payload).len() + KEPT_ZEROS).next_multiple_of(4);
                section.payload.get(..kept).unwrap_or(section.payload)
            }
            _ => section.payload,
        };
        // Memory takes everything.
        let _ = writer.section(section.kind, payload);
    }
    writer.into_inner()
}

/// How large an input is, for its limits.
#[derive(Clone, Copy)]
struct Size {
    /// For time and output.
    unpacked: usize,
    /// For the heap.
    held: usize,
}

impl Size {
    fn of(bytes: &[u8]) -> Size {
        let input = Input::read(bytes, "capture".to_owned(), bytes.len() as u64, MAX_INPUT);
        let unpacked = input.map_or(0, |input| input.bytes.len()).max(bytes.len());
        Size { unpacked, held: unpacked }
    }
}

/// What AMD GPUs leave, broken: texts, and folders in which one file is.
struct Amdgpu {
    texts: Vec<(String, Vec<u8>)>,
    folders: Vec<Vec<(String, Vec<u8>)>>,
}

impl Amdgpu {
    fn new() -> Amdgpu {
        Amdgpu {
            texts: amdgpu::texts(),
            folders: Gfx::ALL.map(|gfx| RadvBuilder::complete(gfx).members()).into(),
        }
    }

    fn one(&self, share: u64, seed: u64, judge: &mut Judge) {
        let at = |len: usize| (share / 4) as usize % len.max(1);
        if share % 4 == 3 {
            let Some(mut files) = self.folders.get(at(self.folders.len())).cloned() else { return };
            let broken = share as usize / 64 % files.len().max(1);
            if let Some((_, bytes)) = files.get_mut(broken) {
                *bytes = mutate(bytes, seed);
            }
            let what = format!("seed {seed}, amdgpu folder");
            AmdView::ALL.iter().for_each(|&view| judge.amdgpu(Given::Folder(&files), view, &what));
        } else if let Some((name, text)) = self.texts.get(at(self.texts.len())) {
            let (broken, what) = (mutate(text, seed), format!("seed {seed}, amdgpu {name}"));
            AmdView::ALL.iter().for_each(|&view| judge.amdgpu(Given::File(&broken), view, &what));
        }
    }
}

/// Finds what is wrong with what is shown, and the worst of it.
struct Judge {
    db: Rc<Db>,
    worst: Vec<Worst>,
}

impl Judge {
    fn dump(&mut self, text: &[u8], view: View, what: &str) {
        let db = Rc::clone(&self.db);
        let shown = once(|mut counter| {
            let input = Input::read(text, "dump".to_owned(), text.len() as u64, MAX_INPUT);
            // What cannot be used is said so: that is an answer, too.
            let _ = input.is_ok_and(|input| view::show(view, &input, &db, &mut counter).is_ok());
        });
        let limits = Limits {
            walk: Duration::ZERO,
            heap: heap(HEAP_PER_BYTE, text.len()),
            output: view.limit(text.len() as u64),
        };
        self.judge(shown, text.len(), &limits, what, &format!("{view:?}"));
    }

    fn amdgpu(&mut self, given: Given<'_>, view: AmdView, what: &str) {
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

    fn capture(&mut self, capture: &Arc<[u8]>, other: &Arc<[u8]>, words: Words, size: Size, what: &str) {
        let db = Rc::clone(&self.db);
        let shown = once(|counter| {
            let out: SharedOutput = Rc::new(RefCell::new(counter));
            let _ = capture_views::show(words, capture, other, &db, MAX_INPUT, &out);
        });
        let (more, walk) = match words {
            ["diff", ..] => (other.len(), 2 * WALK),
            ["rd", "merge", ..] => (other.len(), WALK),
            ["cffdump", "--script", ..] => (0, SCRIPTED),
            _ => (0, WALK),
        };
        let floor = if words.contains(&"xz") { HEAP_FLOOR_OF_XZ } else { 0 };
        let limits = Limits {
            walk,
            heap: heap(HEAP_PER_BYTE_OF_CAPTURE, size.held + more).max(floor),
            output: capture_views::limit(words, (size.unpacked + more) as u64),
        };
        self.judge(shown, size.unpacked + more, &limits, what, &words.join(" "));
    }

    fn context(&mut self, words: &[u32], whole: &[u32], layout: &Layout, what: &str) {
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
struct Once {
    time: Duration,
    heap: usize,
    output: u64,
}

fn once(show: impl FnOnce(Counter)) -> Result<Once, ()> {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let started = cpu_time();
    let counter = Counter::default();
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
struct Worst {
    kind: &'static str,
    measure: fn(&Once, usize) -> u64,
    value: u64,
    told: String,
}

impl Worst {
    fn none() -> Vec<Worst> {
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

    fn take(&mut self, once: &Once, what: &str, input: usize, view: &str) {
        let value = (self.measure)(once, input);
        if value > self.value {
            self.value = value;
            self.told = format!("{} ({what}, {input} bytes, {view})", self.kind);
        }
    }

    /// Takes what a worker says.
    fn read(&mut self, line: &str) {
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
