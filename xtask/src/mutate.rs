//! `cargo xtask mutate [N] [--seed S] [FILE…]`: N broken dumps through every command, on two processes.
//!
//! What is broken: synthetic dumps of every generation, era and quirk, dumps that are hostile by design, and every
//! FILE. For each the panics, the longest run, the highest peak of the heap and the longest output are found; any of
//! them above its bound makes the campaign fail. A seed gives the same dumps every time.

use peak_alloc::PeakAlloc;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use unwedge_base::Generation;
use unwedge_cli::input::Input;
use unwedge_cli::view::{self, View};
use unwedge_hw::Db;
use unwedge_testkit::devcore::{DevcoreBuilder, variety};
use unwedge_testkit::hostile::{hostile, repetitive};
use unwedge_testkit::mutate::mutate;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const DEFAULT: u64 = 100_000;
const WORKERS: u64 = 2;
/// Nothing takes more CPU time, for each MiB of input or part of it.
const SLOW: Duration = Duration::from_secs(1);
/// The heap never holds more than so many bytes per byte of input, the input itself included.
const HEAP_PER_BYTE: usize = 20;
/// What inputs of any size may take: register state and buffers for output do not shrink with the input.
const HEAP_FLOOR: usize = 4 << 20;
/// Each input is shown by every so many-th view, the next one by others.
const VIEWS_SHARE: usize = 4;
/// One in so many inputs is a FILE's.
const FILES_SHARE: u64 = 16;
/// Bytes of texts that say one thing over and over.
const REPETITIVE: usize = 650_000;
const MAX_INPUT: u64 = 1 << 30;

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut campaign = Campaign { count: DEFAULT, seed: 1, files: Vec::new() };
    let mut worker = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut number = || rest.next().and_then(|v| v.parse().ok()).ok_or(format!("{arg} takes a number"));
        match (arg.as_str(), arg.parse()) {
            ("--seed", _) => campaign.seed = number()?,
            ("--worker", _) => worker = Some(number()?),
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
}

impl Campaign {
    /// Starts the workers and puts together what they say.
    fn lead(&self) -> Result<(), String> {
        let started = Instant::now();
        let workers: Result<Vec<Child>, String> = (0..WORKERS).map(|i| self.start(i)).collect();
        let mut failures = Vec::new();
        let mut worst: Vec<Worst> = Worst::none();
        for (i, mut worker) in workers?.into_iter().enumerate() {
            let mut last = String::new();
            let lines = worker.stdout.take().map(|out| BufReader::new(out).lines());
            for line in lines.into_iter().flatten().map_while(Result::ok) {
                match line.split_once(' ') {
                    Some(("at", at)) => last = at.to_owned(),
                    Some(("worst", found)) => worst.iter_mut().for_each(|w| w.read(found)),
                    _ => {
                        println!("{line}");
                        failures.push(line);
                    }
                }
            }
            let status = worker.wait().map_err(|e| e.to_string())?;
            if !status.success() {
                failures.push(format!("worker {i} ended with {status} soon after seed {last}"));
            }
        }
        println!(
            "{} broken dumps from seed {}, {:.0} s: {} failures",
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
            .args(&self.files)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())
    }

    /// Every second input, or whatever this worker's share is.
    fn work(&self, worker: u64) -> Result<(), String> {
        let mut synthetic: Vec<Vec<u8>> = variety().into_iter().map(|(_, text)| text).collect();
        synthetic.extend(Generation::ALL.map(|g| DevcoreBuilder::complete(g).text()));
        let files = self.files.iter().map(|f| read(f)).collect::<Result<Vec<_>, _>>()?;
        let (db, views) = (Db::builtin(), View::all());
        let mut worst = Worst::none();
        std::panic::set_hook(Box::new(|info| println!("panic: {info}")));
        for (i, text) in repetitive(REPETITIVE).iter().enumerate().skip(worker as usize).step_by(2) {
            views.iter().for_each(|&view| judge(text, view, &db, &format!("repetition {i}"), &mut worst));
        }
        for i in (worker..self.count).step_by(WORKERS as usize) {
            let seed = self.seed.wrapping_mul(1 << 32).wrapping_add(i);
            let share = i / WORKERS;
            let (what, text) = match pick(&files, share / FILES_SHARE) {
                Some(file) if share.is_multiple_of(FILES_SHARE) => ("file", mutate(file, seed)),
                _ if share % 4 == 1 => ("hostile", hostile(seed)),
                _ if share % 4 == 2 => ("hostile", mutate(&hostile(seed), seed)),
                _ => ("synthetic", pick(&synthetic, share).map_or_else(Vec::new, |s| mutate(s, seed))),
            };
            let shown = views.iter().skip((i / 32) as usize % VIEWS_SHARE).step_by(VIEWS_SHARE);
            shown.for_each(|&view| judge(&text, view, &db, &format!("seed {seed}, {what}"), &mut worst));
            if share.is_multiple_of(64) {
                println!("at {seed}");
            }
        }
        for w in &worst {
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

/// Shows one view of an input, and says what is wrong with that.
fn judge(text: &[u8], view: View, db: &Db, what: &str, worst: &mut [Worst]) {
    match once(text, view, db) {
        Ok(once) => {
            for complaint in once.complaints(text.len(), view) {
                println!("{complaint} ({what}, {view:?})");
            }
            worst.iter_mut().for_each(|w| w.take(&once, what, text.len(), view));
        }
        Err(()) => println!("panicked ({what}, {view:?})"),
    }
}

/// CPU time of this process, which has one thread, so that other load of the machine does not count.
fn cpu_time() -> Duration {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// One view of one input.
struct Once {
    time: Duration,
    heap: usize,
    output: u64,
}

fn once(text: &[u8], view: View, db: &Db) -> Result<Once, ()> {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let started = cpu_time();
    let mut counter = Counter(0);
    catch_unwind(AssertUnwindSafe(|| {
        let input = Input::read(text, "dump".to_owned(), text.len() as u64, MAX_INPUT);
        // What cannot be used is said so: that is an answer, too.
        input.is_ok_and(|input| view::show(view, &input, db, &mut counter).is_ok())
    }))
    .map_err(drop)?;
    let heap = HEAP.peak_usage().saturating_sub(before);
    Ok(Once { time: cpu_time().saturating_sub(started), heap, output: counter.0 })
}

impl Once {
    fn complaints(&self, input: usize, view: View) -> Vec<String> {
        let mut out = Vec::new();
        if self.time >= SLOW * (input >> 20).max(1) as u32 {
            out.push(format!("slow: {:?} for {input} bytes", self.time));
        }
        if self.heap > HEAP_FLOOR.max(HEAP_PER_BYTE * input) {
            out.push(format!("memory: {} bytes for {input}", self.heap));
        }
        if self.output > view.limit(input as u64) {
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

    fn take(&mut self, once: &Once, what: &str, input: usize, view: View) {
        let value = (self.measure)(once, input);
        if value > self.value {
            self.value = value;
            self.told = format!("{} ({what}, {input} bytes, {view:?})", self.kind);
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

/// Counts bytes.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
