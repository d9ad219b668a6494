//! `unwedge watch` under a kernel that makes dumps, drops them after a time and when they are acknowledged.
#![cfg(unix)]

#[path = "watch/kernel.rs"]
mod kernel;
mod program;

use kernel::{DumpState, Kernel, kept};
use program::{Folder, command, outcome_of, text};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::i915;

/// Without any progress for so long, a test fails.
const PATIENCE: Duration = Duration::from_secs(60);
const FOREVER: Duration = Duration::from_secs(3600);

/// A dump with a number, and some bytes that do not compress.
fn dump(number: u32, dwords: u32) -> Vec<u8> {
    let noise: Vec<u32> = (1..=dwords).map(|n| (n ^ number << 16).wrapping_mul(2_654_435_761)).collect();
    let dump = DevcoreBuilder::a6xx().process("game", &format!("game --level {number}"));
    dump.bo(0x1_0000_0000, u64::from(dwords) * 4, "noise", &noise).text()
}

/// Arguments that watch a kernel.
fn arguments(kernel: &Kernel) -> Vec<String> {
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (sysfs, store) = (path(&kernel.sysfs()), path(&kernel.store()));
    ["watch", "--sysfs", &sysfs, "--store", &store, "--interval", "0.01s"].map(str::to_owned).to_vec()
}

/// The program while it runs; it is killed when a test fails.
struct Running {
    child: Child,
    errors: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    fn of(command: &mut Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut pipe = child.stderr.take().expect("a pipe");
        // A full pipe would stop the program.
        let errors = thread::spawn(move || {
            let mut errors = Vec::new();
            pipe.read_to_end(&mut errors).expect("standard error");
            errors
        });
        Running { child, errors: Some(errors) }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the program as systemd does; its standard error.
    fn terminate(mut self) -> String {
        signal(&self.child, "TERM");
        let status = self.child.wait().unwrap();
        let errors = text(&self.errors.take().map(|errors| errors.join().unwrap()).unwrap_or_default());
        assert_eq!(status.code(), Some(0), "{errors}");
        errors
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

fn start(kernel: &Kernel, more: &[&str]) -> Running {
    Running::of(command().args(arguments(kernel)).args(more))
}

fn once(kernel: &Kernel, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = command();
    outcome_of(&program::run(command.args(arguments(kernel)).arg("--once").args(more), b""))
}

#[track_caller]
fn wait_for(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a count. A slow machine is not an error: only a count that stays the same for long is.
#[track_caller]
fn wait_for_count(what: &str, wanted: usize, count: impl Fn() -> usize) {
    let (mut last, mut since) = (count(), Instant::now());
    while last != wanted {
        assert!(since.elapsed() < PATIENCE, "{what}: {last} of {wanted}");
        thread::sleep(Duration::from_millis(5));
        let now = count();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

/// Does something while the program is stopped, which sees the change as a whole.
fn frozen(child: &Child, change: impl FnOnce()) {
    signal(child, "STOP");
    let state = format!("/proc/{}/stat", child.id());
    wait_for("it is stopped", || fs::read_to_string(&state).unwrap().contains(") T "));
    change();
    signal(child, "CONT");
}

/// Each dump is kept once and whole, and nothing else is.
#[track_caller]
fn all_kept(kernel: &Kernel) {
    let (dumps, others) = kept(&kernel.store());
    assert!(others.is_empty(), "{others:?}");
    let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    dumps.into_iter().for_each(|dump| *counts.entry(dump).or_default() += 1);
    for (dump, state) in kernel.dumps() {
        let count = counts.remove(&dump).unwrap_or(0);
        assert_eq!(count, 1, "{state:?}");
    }
    assert!(counts.is_empty(), "{} dumps that the kernel did not make", counts.len());
    kernel.check();
}

#[test]
fn a_burst_is_kept_and_acknowledged_and_explained() {
    let dumps = if std::env::var_os("UNWEDGE_ALL").is_some() { 1000 } else { 100 };
    let kernel = Kernel::new(FOREVER);
    let child = start(&kernel, &[]);
    for number in 0..dumps {
        assert!(kernel.hang(number, &dump(number, 64)));
    }
    wait_for_count("acknowledged", dumps as usize, || kernel.count(DumpState::Acknowledged));
    child.terminate();
    all_kept(&kernel);
    // What was not explained yet is explained by the next process.
    let (code, _, errors) = once(&kernel, &[]);
    assert_eq!(code, Some(0), "{errors}");
    let names = Folder::names_of(&kernel.store());
    let explained =
        |end: &str| names.iter().filter(|name| name.contains("-adreno_a6xx_") && name.ends_with(end)).count();
    assert_eq!([".dump.gz", ".txt", ".json"].map(explained), [dumps as usize; 3], "{names:?}");
    let mode = |name: &String| fs::metadata(kernel.store().join(name)).unwrap().permissions().mode() & 0o777;
    assert!(names.iter().all(|name| mode(name) == 0o600), "files are for their owner alone");
}

#[test]
fn a_device_that_hangs_again_is_dumped_again_once_the_first_dump_is_kept() {
    let kernel = Kernel::new(FOREVER);
    assert!(kernel.hang(0, &dump(0, 16)));
    assert!(!kernel.hang(0, &dump(1, 16)), "one dump of a device at a time");
    let child = start(&kernel, &[]);
    for number in 2..6 {
        wait_for("the device is free", || kernel.hang(0, &dump(number, 16)));
    }
    wait_for("the last is acknowledged", || kernel.count(DumpState::Held) == 0);
    child.terminate();
    all_kept(&kernel);
}

#[test]
fn a_slow_dump_holds_back_no_other_and_is_finished_on_sigterm() {
    let kernel = Kernel::new(FOREVER);
    let slow = dump(0, 200_000);
    assert!(kernel.hang_slowly(0, &slow, Duration::from_millis(5)));
    let child = start(&kernel, &[]);
    for number in 1..20 {
        kernel.hang(number, &dump(number, 16));
    }
    wait_for("the others are acknowledged", || kernel.count(DumpState::Acknowledged) == 19);
    assert_eq!(kernel.count(DumpState::Held), 1, "the slow one is being read");
    child.terminate();
    wait_for("the kernel sees it", || kernel.count(DumpState::Held) == 0);
    all_kept(&kernel);
}

#[test]
fn dumps_expire_unread_only_while_nobody_watches() {
    let kernel = Kernel::new(Duration::from_millis(300));
    kernel.hang(0, &dump(0, 16));
    wait_for("the dump expires", || kernel.count(DumpState::Expired) == 1);
    let (code, _, errors) = once(&kernel, &[]);
    assert_eq!((code, kept(&kernel.store()).0.len()), (Some(0), 0), "{errors}");
}

#[test]
fn killed_at_any_moment_it_loses_nothing_and_keeps_nothing_twice() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 200 } else { 12 };
    let kernel = Kernel::new(FOREVER);
    let (mut random, mut number) = (20_u64, 0);
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut acknowledged_in_between = 0;
    for _ in 0..rounds {
        for _ in 0..4 {
            let dwords = [16, 16, 5_000, 40_000][next(4) as usize];
            number += u32::from(kernel.hang(next(6) as u32, &dump(number, dwords)));
        }
        let mut child = start(&kernel, &[]);
        thread::sleep(Duration::from_micros(next(120_000)));
        child.kill();
        kernel.settle();
        kernel.check();
        acknowledged_in_between = kernel.count(DumpState::Acknowledged);
    }
    assert!(acknowledged_in_between > 0, "it was never alive long enough");
    let (code, _, errors) = once(&kernel, &[]);
    assert_eq!(code, Some(0), "{errors}");
    kernel.settle();
    assert_eq!(kernel.count(DumpState::Held), 0);
    all_kept(&kernel);
}

/// Starts the program with its store on a small disk; `None` where the system does not let tests mount one.
fn start_on_small_disk(kernel: &Kernel, kilobytes: u32, more: &[&str]) -> Option<Running> {
    fs::create_dir_all(kernel.store()).unwrap();
    let script = format!("mount -t tmpfs -o size={kilobytes}k none \"$0\" && exec \"$@\"");
    let sandbox = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).arg(kernel.store());
        command
    };
    if !sandbox().arg("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no disk can be mounted here");
        return None;
    }
    let program = command().get_program().to_owned();
    let mut command = sandbox();
    command.arg(program).args(arguments(kernel)).args(more).env_remove("JOURNAL_STREAM");
    Some(Running::of(&mut command))
}

/// The names of kept dumps on the disk of a process.
fn on_disk(running: &Running, kernel: &Kernel) -> Vec<String> {
    let store = format!("/proc/{}/root{}", running.child.id(), kernel.store().display());
    let names = Folder::names_of(Path::new(&store)).into_iter();
    names.filter(|name| name.contains(".dump")).map(|name| format!("{store}/{name}")).collect()
}

/// The number of dumps that the kernel still holds. Its own check does not see a disk that only the program has mounted.
fn held(kernel: &Kernel) -> usize {
    kernel.count(DumpState::Held)
}

#[test]
fn with_a_full_disk_dumps_stay_with_the_kernel_until_there_is_room() {
    let kernel = Kernel::new(FOREVER);
    let Some(child) = start_on_small_disk(&kernel, 400, &[]) else { return };
    for number in 0..6 {
        kernel.hang(number, &dump(number, 20_000));
    }
    wait_for("the disk is full", || {
        let kept = on_disk(&child, &kernel).len();
        kept > 0 && held(&kernel) + kept == 6
    });
    thread::sleep(Duration::from_secs(1));
    let (waiting, kept) = (held(&kernel), on_disk(&child, &kernel));
    assert!(waiting > 0 && waiting + kept.len() == 6, "{waiting} are held, {kept:?} kept");
    // Somebody makes room, again and again.
    wait_for("all are kept", || {
        on_disk(&child, &kernel).iter().for_each(|file| {
            let _ = fs::remove_file(file);
        });
        held(&kernel) == 0
    });
    let errors = child.terminate();
    assert!(errors.contains("it stays with the kernel"), "{errors}");
}

#[test]
fn with_a_full_disk_and_a_budget_the_oldest_dumps_make_room() {
    let kernel = Kernel::new(FOREVER);
    let Some(child) = start_on_small_disk(&kernel, 400, &["--max-total", "1G"]) else { return };
    for number in 0..6 {
        kernel.hang(0, &dump(number, 20_000));
        wait_for("it is kept", || held(&kernel) == 0);
    }
    assert!(!on_disk(&child, &kernel).is_empty(), "never the newest");
    let errors = child.terminate();
    assert!(errors.contains("to make room"), "{errors}");
}

#[test]
fn a_budget_deletes_the_oldest_with_their_reports() {
    let kernel = Kernel::new(FOREVER);
    for number in 0..5 {
        kernel.hang(number, &dump(number, 16));
        let (code, _, errors) = once(&kernel, &[]);
        assert_eq!(code, Some(0), "{errors}");
    }
    kernel.settle();
    let stems = |names: &[String]| {
        let mut stems: Vec<String> =
            names.iter().filter(|name| *name != ".lock").map(|name| name[..37].to_owned()).collect();
        stems.dedup();
        stems
    };
    let before = Folder::names_of(&kernel.store());
    let size = before.iter().map(|name| fs::metadata(kernel.store().join(name)).unwrap().len()).sum::<u64>();
    let budget = (size * 7 / 10).to_string();
    let store = kernel.store();
    let dry = [
        "watch",
        "--dry-run",
        "--store",
        store.to_str().unwrap(),
        "--sysfs",
        "/nonexistent",
        "--max-total",
        &budget,
    ];
    let (code, out, _) = program::outcome(&dry, b"");
    assert_eq!((code, out.lines().count()), (Some(0), 6), "{out}");
    assert_eq!(Folder::names_of(&kernel.store()), before, "nothing is changed");
    kernel.hang(9, &dump(9, 16));
    let (code, _, errors) = once(&kernel, &["--max-total", &budget]);
    assert_eq!(code, Some(0), "{errors}");
    let after = Folder::names_of(&kernel.store());
    assert_eq!(stems(&before).len(), 5);
    assert_eq!(
        stems(&after)[..stems(&after).len() - 1],
        stems(&before)[6 - stems(&after).len()..],
        "{after:?}"
    );
    assert!(errors.contains("to make room"), "{errors}");
}

#[test]
fn the_error_state_of_i915_is_kept_and_cleared_again_and_again() {
    let kernel = Kernel::new(FOREVER);
    let card = kernel.sysfs().join("class/drm/card0");
    // A write to the kernel's file never shows in it: here it changes nothing but the time.
    let states: Vec<Vec<u8>> =
        i915::variety().into_iter().take(3).map(|(_, state)| [b"1\n", &state[..]].concat()).collect();
    let none = b"No error state collected\n";
    fs::create_dir_all(&card).unwrap();
    fs::create_dir_all(kernel.sysfs().join("class/drm/card0-HDMI-A-1")).unwrap();
    let error = card.join("error");
    fs::write(&error, none).unwrap();
    let child = start(&kernel, &[]);
    let written = || fs::metadata(&error).unwrap().modified().unwrap();
    for state in &states {
        let mut made = None;
        frozen(&child.child, || {
            fs::write(&error, state).unwrap();
            // Read before the program goes on, which may clear the file at once.
            made = Some(written());
            // Times of files have the steps of the kernel's clock.
            thread::sleep(Duration::from_millis(20));
        });
        wait_for("it is cleared", || Some(written()) != made);
        frozen(&child.child, || fs::write(&error, none).unwrap());
    }
    child.terminate();
    let (mut dumps, others) = kept(&kernel.store());
    assert!(others.is_empty(), "{others:?}");
    let mut expected = states;
    dumps.sort();
    expected.sort();
    assert!(dumps == expected, "{} kept", dumps.len());
}

#[test]
fn files_of_a_folder_are_kept_once_and_left_there() {
    let kernel = Kernel::new(FOREVER);
    let (dump, network) = (dump(0, 16), b"ATH10K-FW-DUMP\0\0\x01\0");
    let inbox = Folder::of(&[
        ("a.devcore", &dump[..]),
        ("a.devcore.gz", &unwedge_testkit::pack::gzip(&dump)),
        ("b", network),
    ]);
    let is_old = || {
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        for name in inbox.names() {
            fs::File::options().write(true).open(inbox.path(&name)).unwrap().set_modified(old).unwrap();
        }
    };
    let watch = || once(&kernel, &[inbox.name()]);
    let (code, _, errors) = watch();
    assert_eq!((code, kept(&kernel.store()).0.len()), (Some(3), 0), "they may still be written to");
    assert!(errors.contains("a.devcore: changed just now, left alone"), "{errors}");
    is_old();
    for _ in 0..2 {
        let (code, _, errors) = watch();
        assert_eq!((code, kept(&kernel.store()).0), (Some(0), vec![dump.clone()]), "{errors}");
    }
    assert_eq!(inbox.names(), ["a.devcore", "a.devcore.gz", "b"]);
}

#[test]
fn dumps_of_other_drivers_are_left_alone() {
    let kernel = Kernel::new(FOREVER);
    kernel.hang(0, b"ATH10K-FW-DUMP\0\0\x01\0");
    assert_eq!(once(&kernel, &[]).0, Some(0));
    kernel.settle();
    assert_eq!((kernel.count(DumpState::Held), kept(&kernel.store()).0.len()), (1, 0));
}

#[test]
fn a_dump_that_is_too_large_stays_with_the_kernel_and_the_status_says_so() {
    let kernel = Kernel::new(FOREVER);
    kernel.hang(0, &dump(0, 5000));
    let (code, _, errors) = once(&kernel, &["--max-size", "10K"]);
    assert!(code == Some(3) && errors.contains("larger than --max-size"), "{code:?}: {errors}");
    kernel.settle();
    assert_eq!((kernel.count(DumpState::Held), kept(&kernel.store()).0.len()), (1, 0));
}

#[test]
fn the_program_of_exec_gets_the_dump_and_its_verdict_for_a_bounded_time() {
    let (kernel, folder) = (Kernel::new(FOREVER), Folder::new());
    let script = |name: &str, body: &str| {
        let path = folder.file(name, format!("#!/bin/sh\n{body}\n").as_bytes());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let out = folder.path("out");
    let report = script(
        "report",
        &format!(
            "test -s \"$1\" && test -s \"$UNWEDGE_JSON\" && test \"$1\" = \"$UNWEDGE_DUMP\" && echo \"$2|$UNWEDGE_CAUSE\" > {out}"
        ),
    );
    kernel.hang(0, &dump(0, 16));
    let (code, _, errors) = once(&kernel, &["--exec", &report]);
    assert_eq!(code, Some(0), "{errors}");
    let said = fs::read_to_string(&out).expect("it was started");
    assert!(said.starts_with("adreno/a6xx/") && !said.ends_with("|\n"), "{said}");
    let endless = script("endless", "sleep 1000");
    kernel.hang(1, &dump(1, 16));
    let start = Instant::now();
    let (code, _, errors) = once(&kernel, &["--exec", &endless, "--exec-timeout", "0.2s"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("killed after 0.2 s") && start.elapsed() < PATIENCE, "{errors}");
}

#[test]
fn what_a_killed_process_left_is_adopted_where_the_dump_is_gone() {
    let kernel = Kernel::new(FOREVER);
    fs::create_dir_all(kernel.store()).unwrap();
    let whole = dump(0, 2000);
    let packed = unwedge_testkit::pack::gzip(&whole);
    let leave = |name: &str, bytes: &[u8]| fs::write(kernel.store().join(name), bytes).unwrap();
    // Devcd7 is gone, devcd1 is there.
    leave(".part-devcd7-99-0", &packed[..packed.len() / 2]);
    leave(".part-devcd1-99-1", &packed[..packed.len() / 2]);
    leave(".part-report-99-2", b"half a report");
    kernel.hang(0, &dump(1, 16));
    let (code, _, errors) = once(&kernel, &[]);
    assert_eq!(code, Some(0), "{errors}");
    let (dumps, others) = kept(&kernel.store());
    assert!(others.is_empty() && dumps.len() == 2, "{others:?}");
    assert!(dumps.iter().any(|part| part.len() > 1000 && whole.starts_with(part)));
    assert!(errors.contains("adopted"), "{errors}");
}

#[test]
fn one_process_has_a_store_and_the_journal_gets_levels() {
    let kernel = Kernel::new(FOREVER);
    let first = Running::of(command().args(arguments(&kernel)).env("JOURNAL_STREAM", "8:1"));
    wait_for("it has the folder", || kernel.store().join(".lock").exists());
    kernel.hang(0, &dump(0, 16));
    wait_for("it watches", || kernel.count(DumpState::Acknowledged) == 1);
    let (code, _, errors) = once(&kernel, &[]);
    assert!(code == Some(1) && errors.contains("another unwedge watch"), "{errors}");
    let errors = first.terminate();
    assert!(!errors.is_empty() && errors.lines().all(|line| line.starts_with('<')), "{errors}");
}
