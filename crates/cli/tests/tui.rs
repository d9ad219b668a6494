//! The browser on a real terminal: a pseudo terminal, and what a terminal shows of what is written to it.
#![cfg(unix)]

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use unwedge::base::Generation;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::{pack, pm4, rd};

/// A machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file that is removed.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Scratch {
        let path = std::env::temp_dir().join(format!("unwedge-tui-test-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a file");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The program on a terminal.
struct Session {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    input: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Everything that was written.
    written: Vec<u8>,
}

/// A side of a screen.
fn lines(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a screen has lines and columns")
}

impl Session {
    fn start(arguments: &[&str], (columns, rows): (u16, u16)) -> Session {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_unwedge"));
        command.arg("tui");
        command.args(arguments);
        Session::run(command, (columns, rows))
    }

    fn run(mut command: CommandBuilder, (columns, rows): (u16, u16)) -> Session {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo terminal");
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        let child = pair.slave.spawn_command(command).expect("the program");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let input = pair.master.take_writer().expect("a writer");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        let screen = vt100::Parser::new(lines(rows), lines(columns), 0);
        Session { child, master: pair.master, input, output, screen, written: Vec::new() }
    }

    fn keys(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).expect("typed");
        self.input.flush().expect("typed");
    }

    /// Takes in what is written within a time; `false` if nothing is.
    fn take(&mut self, wait: Duration) -> bool {
        match self.output.recv_timeout(wait) {
            Ok(bytes) => {
                self.screen.process(&bytes);
                self.written.extend(bytes);
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }

    fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen has a text.
    fn expect(&mut self, text: &str) {
        let start = Instant::now();
        while !self.text().contains(text) {
            self.take(Duration::from_millis(50));
            assert!(start.elapsed() < PATIENCE, "{text:?} does not come:\n{}", self.text());
        }
    }

    /// Waits for the end. Returns the exit status.
    fn end(mut self) -> (u32, Vec<u8>) {
        let start = Instant::now();
        loop {
            self.take(Duration::from_millis(20));
            if let Some(status) = self.child.try_wait().expect("a status") {
                while self.take(Duration::from_millis(200)) {}
                return (status.exit_code(), self.written);
            }
            assert!(start.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.process_id().expect("a process").to_string();
        let status = Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -{signal}");
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The alternate screen is left, the cursor is shown, the mouse is the terminal's.
fn assert_restored(written: &[u8]) {
    let last = |text: &str| written.windows(text.len()).rposition(|window| window == text.as_bytes());
    assert!(last("\x1b[?1049l") > last("\x1b[?1049h"), "the screen from before is back");
    assert!(last("\x1b[?25h") > last("\x1b[?25l"), "the cursor is shown");
    assert!(last("\x1b[?1000l") > last("\x1b[?1000h"), "the mouse is given back");
}

fn dump() -> Scratch {
    let bytes = DevcoreBuilder::complete(Generation::A6xx).process("testapp", "testapp").text();
    Scratch::new("dump.devcore", &bytes)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

#[test]
fn starts_searches_turns_resizes_and_quits() {
    let dump = dump();
    let mut session = Session::start(&[path(&dump.0)], (80, 24));
    session.expect("1 Verdict");
    session.expect("CAUSE");
    session.keys("/STOP\r");
    session.keys("\t");
    session.expect("ring 0");
    session.keys("3");
    session.expect("registers (");
    let size = PtySize { rows: 12, cols: 40, pixel_width: 0, pixel_height: 0 };
    session.master.resize(size).expect("resized");
    session.screen.screen_mut().set_size(lines(12), lines(40));
    session.expect("3Re");
    let quiet = session.written.len();
    while session.take(Duration::from_millis(300)) {}
    let after = session.written.len();
    while session.take(Duration::from_millis(400)) {}
    assert_eq!(after, session.written.len(), "nothing is drawn while nothing happens (from {quiet})");
    session.keys("q");
    let (status, written) = session.end();
    assert_eq!(status, 0);
    assert_restored(&written);
}

#[test]
fn a_compressed_capture_is_indexed_while_it_is_looked_at() {
    let capture = Scratch::new("capture.rd.gz", &pack::gzip(&rd::capture(630, 40)));
    let mut session = Session::start(&[path(&capture.0)], (100, 30));
    session.expect("submit 7 of synthetic");
    session.keys("6");
    session.expect("(40 submits)");
    session.keys("2\r");
    session.expect("IB2 at 0x10000000");
    session.keys("Q");
    let (status, written) = session.end();
    assert_eq!(status, 0);
    assert_restored(&written);
}

/// A capture of 100 MB: submits with buffers that are not zero.
fn large_capture() -> Vec<u8> {
    const SUBMITS: u32 = 16;
    const DWORDS: usize = 100_000_000 / 4 / SUBMITS as usize;
    let mut capture = rd::CaptureBuilder::new(630, "synthetic\0");
    for submit in 0..SUBMITS {
        let frame = pm4::pkt4(0x8010, &[submit, 2, 3]).repeat(2000);
        let stream = pm4::indirect_buffer(0x1000_0000, frame.len() as u32).repeat(4);
        let noise: Vec<u32> = (1..=DWORDS as u32).map(|i| i.wrapping_mul(0x9e37_79b9) | 1).collect();
        capture =
            capture.buffer(0x1000_0000, &frame).buffer(0x2000_0000, &stream).buffer(0x4000_0000, &noise);
        capture = capture.submit(0x2000_0000, stream.len() as u32);
    }
    capture.bytes()
}

/// The most memory that a process has had, in bytes.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}

#[test]
fn a_capture_of_100_mb_opens_at_once_and_stays_below_200_mb() {
    for packed in [false, true] {
        let bytes = large_capture();
        let stored = if packed { pack::gzip(&bytes) } else { bytes };
        let capture = Scratch::new(if packed { "large.rd.gz" } else { "large.rd" }, &stored);
        drop(stored);
        let start = Instant::now();
        let mut session = Session::start(&[path(&capture.0)], (80, 24));
        session.expect("submit 0 of synthetic");
        let opened = start.elapsed();
        session.keys("6");
        session.expect("(16 submits)");
        session.keys("2G\r");
        session.expect("IB2 at 0x10000000");
        session.keys("4G\r");
        session.expect("as bytes");
        let peak = session.child.process_id().and_then(peak_memory);
        println!("packed {packed}: the first screen after {opened:?}, at most {peak:?} bytes of memory");
        // What is measured is a build without optimization, on a machine under load.
        assert!(opened < Duration::from_secs(10), "{opened:?}");
        assert!(peak.is_none_or(|peak| peak < 200_000_000), "{peak:?}");
        session.keys("Q");
        assert_eq!(session.end().0, 0);
    }
}

/// The file comes from a pipe, keys from the terminal.
#[test]
fn standard_input_is_browsed() {
    let capture = Scratch::new("piped.rd", &rd::capture(630, 3));
    let mut command = CommandBuilder::new("sh");
    let line = "cat \"$1\" | \"$0\" tui -";
    command.args(["-c", line, env!("CARGO_BIN_EXE_unwedge"), path(&capture.0)]);
    let mut session = Session::run(command, (100, 30));
    session.expect("submit 2 of synthetic");
    session.keys("q");
    let (status, written) = session.end();
    assert_eq!(status, 0);
    assert_restored(&written);
}

#[test]
fn two_files_are_compared() {
    let (a, b) = (dump(), Scratch::new("other.devcore", &DevcoreBuilder::a7xx().text()));
    let mut session = Session::start(&[path(&a.0), path(&b.0)], (100, 30));
    session.expect("7 Diff");
    session.keys("7");
    session.expect("other.devcore");
    session.keys("Q");
    assert_eq!(session.end().0, 0);
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_before() {
    let dump = dump();
    let mut session = Session::start(&[path(&dump.0)], (80, 24));
    session.expect("CAUSE");
    session.signal("TERM");
    let (status, written) = session.end();
    assert_ne!(status, 0);
    assert_restored(&written);
}

#[test]
fn it_is_stopped_and_goes_on() {
    let dump = dump();
    let mut session = Session::start(&[path(&dump.0)], (80, 24));
    session.expect("CAUSE");
    session.keys("\x1a");
    let start = Instant::now();
    while !contains(&session.written, "\x1b[?1049l") {
        session.take(Duration::from_millis(50));
        assert!(start.elapsed() < PATIENCE, "it does not stop");
    }
    assert_restored(&session.written);
    session.written.clear();
    // The terminal is restored before the process stops, and a signal that arrives in between is lost. So it is sent again.
    let start = Instant::now();
    while !contains(&session.written, "\x1b[?1049h") {
        session.signal("CONT");
        session.take(Duration::from_millis(50));
        assert!(start.elapsed() < PATIENCE, "it does not go on");
    }
    session.expect("CAUSE");
    session.keys("q");
    let (status, written) = session.end();
    assert_eq!(status, 0);
    assert_restored(&written);
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let dump = dump();
    let mut command = Command::new(env!("CARGO_BIN_EXE_unwedge"));
    let output = command.args(["tui", path(&dump.0)]).stdin(Stdio::null()).output().expect("the program");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("needs a terminal") && said.contains("unwedge explain"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_cannot_be_opened_is_said_before_the_screen_is_taken() {
    let mut session = Session::start(&["/no/such/file"], (80, 24));
    let start = Instant::now();
    while session.take(Duration::from_millis(200)) || start.elapsed() < Duration::from_secs(1) {}
    let (status, written) = session.end();
    assert_eq!(status, 1);
    assert!(!contains(&written, "\x1b[?1049h"));
}
