//! `cargo xtask mutate [N] [--seed S] [--only KIND] [--like TEXT] [FILE…]`: N broken dumps, captures, images of Intel
//! contexts, texts of AMD GPUs and pieces of their assembly through every command, on two processes. KIND is dumps,
//! captures, contexts, i915, xe, amdgpu, amdisa, replay or browser.
//!
//! What is broken: synthetic dumps and captures of every generation, era and quirk, ones that are hostile by design,
//! compressed ones, contexts of every engine, and every FILE. For each the panics, the longest run, the highest peak of the
//! heap and the longest output are found; any of them above its bound makes the campaign fail. A seed gives the same dumps
//! every time. Before them come captures that cost much, only those whose names hold TEXT.

mod amd;
mod amdisa;
mod browser;
mod captures;
mod dumps;
mod intel;
mod judge;
mod replays;

use amd::Amdgpu;
use amdisa::Amdisa;
use browser::Browser;
use captures::Captures;
use dumps::Dumps;
use intel::{Contexts, Intel};
use judge::{Judge, Worst};
use peak_alloc::PeakAlloc;
use replays::Replays;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use unwedge::files::Input;
use unwedge_campaigns::replays::ExecutedCounts;
use unwedge_hw::Db;
use unwedge_testkit::{i915, i915_old, xe};

/// The heap of every campaign.
#[global_allocator]
pub(crate) static HEAP: PeakAlloc = PeakAlloc;

const DEFAULT: u64 = 100_000;
const WORKERS: u64 = 2;
/// One in so many inputs is a FILE's.
const FILES_SHARE: u64 = 16;
/// Bytes of texts that say one thing over and over.
const REPETITIVE: usize = 650_000;
const MAX_INPUT: u64 = 1 << 30;

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let mut campaign =
        Campaign { count: DEFAULT, seed: 1, files: Vec::new(), only: None, like: String::new() };
    let mut worker = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut number = || rest.next().and_then(|v| v.parse().ok()).ok_or(format!("{arg} takes a number"));
        match (arg.as_str(), arg.parse()) {
            ("--seed", _) => campaign.seed = number()?,
            ("--worker", _) => worker = Some(number()?),
            ("--only", _) => {
                let only = rest.next().and_then(|kind| Kind::ALL.into_iter().find(|k| k.name() == kind));
                campaign.only = Some(only.ok_or(
                    "--only takes dumps, captures, contexts, i915, xe, amdgpu, amdisa, replay or browser",
                )?);
            }
            ("--like", _) => campaign.like.clone_from(rest.next().ok_or("--like takes a part of a name")?),
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
    /// What the names of expensive captures hold.
    like: String,
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
    Amdisa,
    Replay,
    Browser,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Dumps,
        Kind::Captures,
        Kind::Contexts,
        Kind::I915,
        Kind::Xe,
        Kind::Amdgpu,
        Kind::Amdisa,
        Kind::Replay,
        Kind::Browser,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Dumps => "dumps",
            Kind::Captures => "captures",
            Kind::Contexts => "contexts",
            Kind::I915 => "i915",
            Kind::Xe => "xe",
            Kind::Amdgpu => "amdgpu",
            Kind::Amdisa => "amdisa",
            Kind::Replay => "replay",
            Kind::Browser => "browser",
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
        let mut executed = [0_u64; 3];
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
                // A hundred expensive captures take minutes before the first broken one.
                Some(("on", name)) => {
                    if io::stderr().is_terminal() {
                        eprintln!("{name}");
                    }
                }
                Some(("executed", counts)) => {
                    let counts = counts.split(' ').filter_map(|count| count.parse::<u64>().ok());
                    executed.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
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
        let [submits, ended, work] = executed;
        if submits > 0 {
            println!(
                "executed {submits} submits, {ended} to their end, with {work} draws, dispatches and blits"
            );
        }
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    }

    fn start(&self, worker: u64) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let numbers = [self.count.to_string(), "--seed".into(), self.seed.to_string()];
        let like = ["--like", &self.like];
        Command::new(program)
            .args(["mutate", "--worker", &worker.to_string()])
            .args(numbers)
            .args(self.only.iter().flat_map(|only| ["--only", only.name()]))
            .args(like)
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
        let (worst, executed) = (Worst::none(), ExecutedCounts::default());
        let mut judge = Judge { db: Rc::new(Db::builtin()), worst, executed };
        std::panic::set_hook(Box::new(|info| println!("panic: {info}")));
        let wanted = |kind: Kind| self.only.is_none_or(|only| only == kind);
        let replays = Replays::new(&captures);
        let browser = Browser::new();
        let (mut dumps, mut captures, contexts) =
            (Dumps::new(dumps), Captures::new(captures), Contexts::new());
        let of_intel = |variety: Vec<(String, Vec<u8>)>, files, what| Intel {
            synthetic: variety.into_iter().map(|(_, text)| text).collect(),
            files,
            what,
        };
        let made = [i915::variety(), i915_old::variety()].concat();
        let i915 = of_intel(made, i915_files, "i915");
        let xe = of_intel(xe::variety(), xe_files, "xe");
        let (amdgpu, amdisa) = (Amdgpu::new(), Amdisa::new());
        if wanted(Kind::Dumps) {
            dumps.repetitions(worker, &mut judge);
        }
        if wanted(Kind::Captures) {
            captures.expenses(worker, &self.like, &mut judge);
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
                Kind::Amdisa => amdisa.one(turn, seed, &mut judge),
                Kind::Replay => replays.one(turn, seed, &mut judge),
                Kind::Browser => browser.one(turn, seed, &mut judge),
            }
            if share.is_multiple_of(64) {
                println!("at {}", share + 1);
            }
        }
        for w in &judge.worst {
            println!("worst {w}");
        }
        let ExecutedCounts { submits, ended, work } = judge.executed;
        println!("executed {submits} {ended} {work}");
        Ok(())
    }
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    Ok(Input::open(path.as_ref(), MAX_INPUT).map_err(|e| e.to_string())?.bytes)
}

fn pick(from: &[Vec<u8>], i: u64) -> Option<&Vec<u8>> {
    from.get(i.checked_rem(from.len() as u64)? as usize)
}
