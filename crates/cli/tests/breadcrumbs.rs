//! Breadcrumbs from end to end: a capture replayed on the virtual Adreno sends them, a listener receives them, over a network that loses,
//! doubles and delays datagrams, and in a flood of others.

mod program;

use program::{Folder, command, outcome_of, text};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::Duration;
use unwedge_testkit::pm4;
use unwedge_testkit::rd::CaptureBuilder;

/// Draws of a submit, and how often the stream that has them is executed.
const DRAWS: u32 = 8;
const PASSES: usize = 4;

/// So many submits. A replay of three has fewer breadcrumbs than the buffer of a socket holds, so that none is lost.
fn capture(submits: u32) -> Vec<u8> {
    let mut capture = CaptureBuilder::new(630, "synthetic\0");
    for submit in 0..submits {
        let mut frame = Vec::new();
        for draw in 0..DRAWS {
            frame.extend(pm4::pkt4(0x8010, &[submit, draw]));
            frame.extend(pm4::pkt7(pm4::CP_DRAW_INDX_OFFSET, &[0x8004, 1, 3 * (draw + 1)]));
        }
        let stream = pm4::indirect_buffer(0x1000_0000, frame.len() as u32).repeat(PASSES);
        capture = capture.buffer(0x1000_0000, &frame).buffer(0x2000_0000, &stream);
        capture = capture.submit(0x2000_0000, stream.len() as u32);
    }
    capture.bytes()
}

/// A listener that runs, and the port that it has.
struct Listener {
    child: Child,
    errors: BufReader<ChildStderr>,
    port: u16,
}

impl Listener {
    fn start(more: &[&str]) -> Listener {
        let mut command = command();
        command.args(["breadcrumbs", "listen", "--port", "0"]).args(more);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let port = line.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Listener { child, errors, port: port.unwrap_or_else(|| panic!("{line}")) }
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Ends it as a terminal does; its standard output.
    fn interrupt(self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        self.output()
    }

    /// Waits for its end.
    fn output(mut self) -> String {
        let mut rest = String::new();
        let output = self.child.wait_with_output().unwrap();
        self.errors.read_to_string(&mut rest).unwrap();
        assert_eq!((output.status.code(), rest.as_str()), (Some(0), ""));
        text(&output.stdout)
    }
}

/// A replay with breadcrumbs: exit status, standard output, standard error.
fn replay(capture: &str, target: &str, more: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut command = command();
    command.args(["replay", capture]).args(more).env("TU_BREADCRUMBS", target);
    outcome_of(&program::run(&mut command, input))
}

/// The breadcrumbs of so many submits: two of each draw, in each pass.
fn expected(submits: u32) -> Vec<u32> {
    let of_pass = |submit: u32| 2 * DRAWS * submit + 1..=2 * DRAWS * (submit + 1);
    (0..submits).flat_map(|submit| (0..PASSES).flat_map(move |_| of_pass(submit))).collect()
}

/// The breadcrumbs that a listener printed.
fn received(out: &str) -> Vec<u32> {
    let numbers = out.lines().filter_map(|line| line.split_once(':')?.0.parse().ok());
    numbers.collect()
}

#[test]
fn every_breadcrumb_of_a_replay_comes_with_its_packet() {
    let folder = Folder::of(&[("a.rd", capture(2))]);
    let (capture, listener) =
        (folder.path("a.rd"), Listener::start(&["--capture", &folder.path("a.rd"), "--idle", "3s"]));
    let target = format!("127.0.0.1:{},break=-1:0", listener.port);
    let (code, out, errors) = replay(&capture, &target, &[], b"");
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{out}");
    let plain = program::outcome(&["replay", &capture], b"");
    assert_eq!(plain.0, Some(0));
    let out = listener.output();
    assert_eq!(received(&out), expected(2), "{out}");
    assert!(
        out.contains("1:0\tbefore CP_") && out.contains("\tafter CP_") && out.contains(", submit 1"),
        "{out}"
    );
    assert!(out.contains("1:3\tbefore CP_") && out.contains("executed again"), "{out}");
    assert!(out.contains("last breadcrumb 32, 4 hits: after CP_"), "{out}");
}

/// The variable may be there for Turnip: a device then replays as without it.
#[test]
fn a_device_takes_no_breadcrumbs_of_the_environment() {
    let folder = Folder::of(&[("a.rd", capture(1))]);
    let kgsl = ["--device", "kgsl"];
    let (_, _, errors) = replay(&folder.path("a.rd"), "127.0.0.1:9,break=-1:0", &kgsl, b"");
    assert!(!errors.contains("--breadcrumbs"), "{errors}");
    // The option counts, also where it says what the variable says.
    for port in [9, 10] {
        let option = format!("127.0.0.1:{port},break=-1:0");
        let target = ["--device", "kgsl", "--breadcrumbs", &option];
        let (code, _, errors) = replay(&folder.path("a.rd"), "127.0.0.1:9,break=-1:0", &target, b"");
        assert!(code == Some(2) && errors.contains("--breadcrumbs is for the virtual Adreno"), "{errors}");
    }
}

#[test]
fn the_gpu_stops_at_the_breakpoint_until_it_is_acknowledged() {
    let folder = Folder::of(&[("a.rd", capture(2))]);
    let capture = folder.path("a.rd");
    let target =
        |listener: &Listener, at: u32, hits: u32| format!("127.0.0.1:{},break={at}:{hits}", listener.port);
    // It waits as long as nobody answers.
    let listener = Listener::start(&["--idle", "3s"]);
    let mut waiting = command();
    waiting.args(["replay", &capture]).env("TU_BREADCRUMBS", target(&listener, 2, 0));
    let mut waiting =
        waiting.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(700));
    assert!(waiting.try_wait().unwrap().is_none(), "it waits at the breakpoint");
    let mut answers = waiting.stdin.take().unwrap();
    answers.write_all("no\n".as_bytes()).unwrap();
    answers.write_all("y\n".repeat(1000).as_bytes()).unwrap();
    drop(answers);
    let (code, _, errors) = outcome_of(&waiting.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("GPU is on breadcrumb 2, continue?"), "{errors}");
    // Breadcrumbs before the breakpoint are not sent.
    let from_two: Vec<u32> = expected(2).into_iter().filter(|number| *number >= 2).collect();
    assert_eq!(received(&listener.output()), from_two);
    // Without an answer the replay ends there.
    let listener = Listener::start(&["--idle", "3s"]);
    let (code, out, _) = replay(&capture, &target(&listener, 3, 0), &[], b"q\n");
    assert_eq!(code, Some(0));
    assert!(out.contains("left"), "{out}");
    assert_eq!(received(&listener.output()), [3]);
    // It asks once 31 was passed twice; the next one that is not smaller is 32, still in the second pass.
    let listener = Listener::start(&["--idle", "3s"]);
    let (code, _, errors) = replay(&capture, &target(&listener, 31, 2), &[], b"");
    assert!(code == Some(0) && errors.contains("GPU is on breadcrumb 32, continue?"), "{errors}");
    assert_eq!(received(&listener.output()), [31, 32, 31, 32]);
    // It is not passed so often.
    let listener = Listener::start(&["--idle", "3s"]);
    let (code, _, errors) = replay(&capture, &target(&listener, 31, 5), &[], b"");
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(received(&listener.output()), [31, 32].repeat(PASSES));
}

#[cfg(unix)]
#[test]
fn a_program_acknowledges_too() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::of(&[("a.rd", capture(2))]);
    let ack = folder
        .file("ack", format!("#!/bin/sh\necho $1 >> {}\ntest $1 -lt 4\n", folder.path("asked")).as_bytes());
    std::fs::set_permissions(&ack, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, out, errors) =
        replay(&folder.path("a.rd"), "127.0.0.1:9,break=2:0", &["--ack-command", &ack], b"");
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(out.contains("left"), "{out}");
    assert_eq!(std::fs::read_to_string(folder.path("asked")).unwrap(), "2\n3\n4\n");
}

#[test]
fn the_last_breadcrumb_of_a_hang_is_before_the_packet_that_hangs() {
    let folder = Folder::of(&[("a.rd", capture(3))]);
    let (capture, edited, crash) = (folder.path("a.rd"), folder.path("edited.rd"), folder.path("crash.rd"));
    let edit = |more: &[&str], out: &str| {
        let args = [&["edit", &capture, "--breadcrumbs"][..], more, &["-o", out]].concat();
        let (code, _, errors) = program::outcome(&args, b"");
        assert_eq!(code, Some(0), "{errors}");
        errors
    };
    // Of each submit the draws are edited, and two streams moved: theirs, and the one that calls it.
    let draws = 3 * DRAWS;
    let report = edit(&[], &edited);
    let counts = format!("{} breadcrumbs\n", 2 * draws);
    assert!(report.contains(&counts) && report.contains(&format!(": {draws} packets edited, ")), "{report}");
    assert!(!report.contains(" 0 streams moved") && !report.contains(" 0 buffers added"), "{report}");
    // Nobody listens: each is acknowledged.
    assert_eq!(program::outcome(&["replay", &edited], b"").0, Some(0));
    let twice = program::outcome(&["edit", &edited, "--breadcrumbs", "-o", &crash], b"");
    assert!(twice.0 == Some(1) && twice.2.contains("breadcrumbs already"), "{twice:?}");
    edit(&["--crash-at", "1"], &crash);
    let listener = Listener::start(&["--capture", &capture, "--idle", "3s"]);
    let (code, ..) = replay(&crash, &format!("127.0.0.1:{},break=-1:0", listener.port), &[], b"");
    assert_eq!(code, Some(4));
    let out = listener.output();
    // Breadcrumbs 1 and 2 are around the first draw; the second is never started. The next submits are.
    assert!(received(&out).starts_with(&[1, 2, 3]) && !received(&out).contains(&4), "{out}");
    assert!(out.contains("\n3:0\tbefore CP_") && out.contains("work 1\n"), "{out}");
}

#[test]
fn lost_doubled_and_late_breadcrumbs_are_reported() {
    let listener = Listener::start(&["--json", "--idle", "1s"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // 5 and 6 are lost, 3 is doubled, 8 is late.
    for number in [1_u32, 2, 3, 3, 4, 7, 9, 8, 10] {
        socket.send_to(&number.to_be_bytes(), listener.address()).unwrap();
    }
    let out = listener.output();
    let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    for (field, expected) in
        [("position", 10), ("received", 8), ("missing", 2), ("doubled", 1), ("late", 1), ("passes", 0)]
    {
        assert_eq!(report[field], expected, "{field}: {out}");
    }
    assert_eq!(report["gaps"], serde_json::json!([[5, 6]]));
}

/// The memory that a process has, in kilobytes.
fn resident(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    line.split_whitespace().nth(1).and_then(|size| size.parse().ok()).expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn a_flood_of_garbage_neither_ends_nor_grows_it() {
    let datagrams = if std::env::var_os("UNWEDGE_ALL").is_some() { 2_000_000 } else { 100_000 };
    let listener = Listener::start(&["--json"]);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(&1_u32.to_be_bytes(), listener.address()).unwrap();
    thread::sleep(Duration::from_millis(200));
    let before = resident(&listener.child);
    let others: Vec<UdpSocket> = (0..8).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let mut random = 1_u64;
    let mut bytes = [0; 64];
    for n in 0..datagrams {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = (random >> 32) as u32;
        bytes[..4].copy_from_slice(&word.to_be_bytes());
        // Any size from any of them; well-formed ones of the sender itself, too.
        let size = if n % 2 == 0 { 4 } else { word as usize % bytes.len() };
        let socket = if n % 4 == 0 { &sender } else { &others[word as usize % others.len()] };
        let _ = socket.send_to(&bytes[..size], listener.address());
    }
    thread::sleep(Duration::from_millis(500));
    let grown = resident(&listener.child).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KB more than {before}");
    let out = listener.interrupt();
    let report: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    let count = |field: &str| report[field].as_u64().unwrap_or(0);
    assert!(count("malformed") > 0 && count("foreign") > 0 && count("received") > 1, "{out}");
}
