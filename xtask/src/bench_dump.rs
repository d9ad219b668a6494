//! `cargo xtask bench-dump FILE`: times the release binary, as a whole process, on a dump.
//!
//! Wall time and the time to the first byte are taken here; CPU time and peak memory come from the kernel's account
//! of the child (proc(5)), read while the child is a zombie or, for its CPU time, as the growth of what this process
//! has waited for. Linux only.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of each command.
const RUNS: usize = 25;
/// CPU time comes in clock ticks: each sample covers this many processes.
const BATCH: u32 = 20;

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let [file, rest @ ..] = args else {
        return Err("usage: cargo xtask bench-dump FILE [--binary PATH]".into());
    };
    let binary = match rest {
        [] => build()?,
        [flag, path] if flag == "--binary" => PathBuf::from(path),
        _ => return Err(format!("what is {}?", rest.join(" "))),
    };
    let size = fs::metadata(file).map_err(|e| format!("{file}: {e}"))?.len();
    println!("{file}: {size} bytes, {}, {RUNS} runs each", binary.display());
    println!("times are min/median/max in ms; memory is heap and stack alone / resident peak in KiB");
    println!(
        "{:24} {:>20} {:>20} {:>20} {:>14} {:>12}",
        "", "wall", "first byte", "cpu", "memory", "output bytes"
    );
    for args in [&["decode"][..], &["crashdec", "-sf"], &["decode", "--json"], &["explain"], &["info"]] {
        let line: Vec<&str> = args.iter().copied().chain([file.as_str()]).collect();
        let mut wall = Samples::default();
        let mut first = Samples::default();
        let mut memory = Memory::default();
        let mut bytes = 0;
        for _ in 0..RUNS {
            let once = time(&binary, &line)?;
            wall.0.push(once.wall);
            first.0.push(once.first);
            memory = memory.max(once.memory);
            bytes = once.bytes;
        }
        let mut cpu = Samples::default();
        for _ in 0..RUNS.div_ceil(5) {
            cpu.0.push(cpu_time(&binary, &line)?);
        }
        println!(
            "{:24} {:>20} {:>20} {:>20} {:>14} {bytes:>12}",
            format!("unwedge {}", args.join(" ")),
            wall.summary(),
            first.summary(),
            cpu.summary(),
            format!("{} / {}", memory.own_kib, memory.peak_kib),
        );
    }
    Ok(())
}

fn build() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--locked", "--package", "unwedge-cli"])
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err("the release build failed".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target"), PathBuf::from);
    Ok(target.join("release").join("unwedge"))
}

#[derive(Default)]
struct Samples(Vec<Duration>);

impl Samples {
    fn summary(&mut self) -> String {
        self.0.sort_unstable();
        let ms = |i: usize| self.0.get(i).map_or(0.0, |d| d.as_secs_f64() * 1e3);
        let last = self.0.len().saturating_sub(1);
        format!("{:.2}/{:.2}/{:.2}", ms(0), ms(last / 2), ms(last))
    }
}

struct Once {
    wall: Duration,
    first: Duration,
    memory: Memory,
    bytes: u64,
}

/// Resident memory.
#[derive(Clone, Copy, Default)]
struct Memory {
    /// At its peak, with the pages of the program and its libraries that are shared with the file cache.
    peak_kib: u64,
    /// Heap and stack alone, whenever output arrived.
    own_kib: u64,
}

impl Memory {
    fn max(self, other: Memory) -> Memory {
        Memory { peak_kib: self.peak_kib.max(other.peak_kib), own_kib: self.own_kib.max(other.own_kib) }
    }
}

/// One run. Peak memory is read whenever output arrives: the last reading before the end counts.
fn time(binary: &Path, args: &[&str]) -> Result<Once, String> {
    let start = Instant::now();
    let mut child = Command::new(binary)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", binary.display()))?;
    let status = format!("/proc/{}/status", child.id());
    let mut stdout = child.stdout.take().ok_or("no standard output")?;
    let mut buffer = vec![0; 64 << 10];
    let mut once = Once { wall: Duration::ZERO, first: Duration::ZERO, memory: Memory::default(), bytes: 0 };
    loop {
        let n = stdout.read(&mut buffer).map_err(|e| e.to_string())?;
        if once.bytes == 0 {
            once.first = start.elapsed();
        }
        once.memory = once.memory.max(memory(&status));
        once.bytes += n as u64;
        if n == 0 {
            break;
        }
    }
    child.wait().map_err(|e| e.to_string())?;
    once.wall = start.elapsed();
    Ok(once)
}

fn memory(status: &str) -> Memory {
    let text = fs::read_to_string(status).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
        line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().unwrap_or(0)
    };
    Memory { peak_kib: field("VmHWM"), own_kib: field("RssAnon") }
}

/// CPU time of one run, user and system: what [`BATCH`] runs add to this process's account of its children.
fn cpu_time(binary: &Path, args: &[&str]) -> Result<Duration, String> {
    let before = children_ticks()?;
    for _ in 0..BATCH {
        Command::new(binary)
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|e| format!("{}: {e}", binary.display()))?;
    }
    // Linux reports ticks of 10 ms to user space whatever the kernel's own rate is.
    let ticks = children_ticks()?.saturating_sub(before);
    Ok(Duration::from_millis(10 * ticks) / BATCH)
}

/// cutime + cstime of this process.
fn children_ticks() -> Result<u64, String> {
    let stat = fs::read_to_string("/proc/self/stat").map_err(|e| format!("/proc/self/stat: {e}"))?;
    // The name, field 2, is in parentheses and may hold blanks; cutime and cstime are fields 16 and 17.
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2).map(|f| f.parse::<u64>().unwrap_or(0));
    Ok(ticks.sum())
}
