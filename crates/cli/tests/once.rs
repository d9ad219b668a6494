//! Every verb opens and reads a file once: it takes a pipe by its name, as `<(zcat dump.gz)` of a shell is.

#![cfg(unix)]

mod program;

use program::{command, dumps, text};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use unwedge_testkit::{amdgpu, captures};

/// Above what a slow machine under load takes; who opens a pipe a second time waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// A named pipe that somebody writes into once.
struct Fifo(PathBuf);

impl Fifo {
    fn of(bytes: &[u8]) -> Fifo {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("unwedge-once-{}-{n}", std::process::id()));
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo is there");
        assert!(made.success());
        let (writer, bytes) = (path.clone(), bytes.to_vec());
        // Who has read enough goes away; what nobody opens waits until the test ends.
        std::thread::spawn(move || {
            if let Ok(mut pipe) = std::fs::File::create(writer) {
                let _ = pipe.write_all(&bytes);
            }
        });
        Fifo(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("a name in UTF-8")
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs the program to its end; `@` in the arguments are pipes with these contents, one after another.
fn run(args: &[&str], inputs: &[&[u8]]) -> Output {
    let pipes: Vec<Fifo> = inputs.iter().map(|bytes| Fifo::of(bytes)).collect();
    let mut names = pipes.iter().map(Fifo::name);
    let args: Vec<&str> =
        args.iter().map(|arg| if *arg == "@" { names.next().expect("a pipe") } else { *arg }).collect();
    let mut child = command()
        .args(&args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let id = child.id();
    let started = Instant::now();
    let (done, watched) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let drain = |mut pipe: Box<dyn std::io::Read + Send>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = pipe.read_to_end(&mut bytes);
                bytes
            })
        };
        let out = drain(Box::new(child.stdout.take().expect("a pipe")));
        let err = drain(Box::new(child.stderr.take().expect("a pipe")));
        while started.elapsed() < PATIENCE {
            if let Some(status) = child.try_wait().expect("the program can be waited for") {
                let [stdout, stderr] = [out, err].map(|pipe| pipe.join().expect("what it printed"));
                let _ = done.send(Some(Output { status, stdout, stderr }));
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let _ = child.wait();
        let _ = done.send(None);
    });
    let output = watched.recv().expect("an answer");
    reader.join().expect("no panic");
    output.unwrap_or_else(|| panic!("{args:?} (process {id}) waits for a pipe that it has read already"))
}

/// What is printed, which needs no more than that the input was read whole.
fn printed(args: &[&str], inputs: &[&[u8]], statuses: &[i32]) -> String {
    let output = run(args, inputs);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let status = output.status.code().expect("an exit status");
    assert!(statuses.contains(&status), "{args:?}: {status}: {err}");
    assert!(!out.is_empty(), "{args:?}: {err}");
    out
}

#[test]
fn a_dump_from_a_named_pipe() {
    let commands: [&[&str]; 11] = [
        &["explain", "@"],
        &["explain", "--json", "@"],
        &["explain", "--signature", "@"],
        &["info", "@"],
        &["info", "--json", "@"],
        &["decode", "@"],
        &["decode", "--json", "@"],
        &["decode", "--around", "hang", "@"],
        &["query", "@"],
        &["lrc", "show", "@"],
        &["lrc", "verify", "@"],
    ];
    for (kind, dump) in dumps() {
        for args in commands.iter().filter(|args| args[0] != "lrc" || matches!(kind, "i915" | "xe")) {
            // What was lost of a dump, or found in it, is told by an exit status of its own.
            printed(args, &[&dump], &[0, 3, 4]);
        }
        let differs = printed(&["diff", "@", "@"], &[&dump, &dump], &[0, 3]);
        assert!(!differs.contains("not a dump"), "{kind}: {differs}");
        printed(&["diff", "--draws", "--json", "@", "@"], &[&dump, &dump], &[0, 3]);
        printed(&["explain", "@", "@"], &[&dump, &dump], &[0, 3]);
    }
    let (_, dump) = &dumps()[0];
    printed(&["crashdec", "-f", "@"], &[dump], &[0, 3]);
    for verb in ["explain", "info", "decode", "query"] {
        let output = program::unwedge(&[verb, "/dev/stdin"], dump);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{verb}: {}", text(&output.stderr));
        assert!(!output.stdout.is_empty(), "{verb}");
    }
}

#[test]
fn a_capture_from_a_named_pipe() {
    let capture = captures::variety().remove(4);
    let commands: [&[&str]; 9] = [
        &["info", "@"],
        &["decode", "@"],
        &["decode", "--json", "@"],
        &["decode", "--around=draw 0", "@"],
        &["query", "@"],
        &["cffdump", "@"],
        &["rd", "info", "@"],
        &["rd", "cat", "@"],
        &["rd", "trim", "--submits", "0", "@"],
    ];
    for args in commands {
        printed(args, &[&capture], &[0, 3]);
    }
    for args in [&["diff", "@", "@"][..], &["diff", "--json", "--once", "@", "@"]] {
        printed(args, &[&capture, &capture], &[0, 3]);
    }
}

#[test]
fn code_from_a_named_pipe() {
    let words = 0x0300_0000_0000_0000_u64.to_le_bytes();
    printed(&["ir3", "disasm", "--gen", "6", "@"], &[&words], &[0]);
    printed(&["ir3", "stats", "--gen", "6", "@"], &[&words], &[0]);
    printed(&["ir2", "disasm", "@"], &[&[0; 12]], &[0, 3]);
    let amd = 0xbf81_0000_u32.to_le_bytes();
    printed(&["amd", "disasm", "--gpu", "gfx900", "@"], &[&amd], &[0]);
    printed(&["amd", "check", "--gpu", "gfx900", "--json", "@"], &[&amd], &[0]);
    printed(&["amd", "run", "--gpu", "gfx900", "--json", "@"], &[&amd], &[0]);
    let report = amdgpu::RadvBuilder::complete(amdgpu::Gfx::V10).text();
    printed(&["amd", "disasm", "@"], &[&report], &[0]);
    printed(&["amd", "check", "@"], &[&report], &[0, 4]);
}

#[test]
fn one_pipe_is_not_both_sides() {
    let (_, dump) = &dumps()[1];
    let pipe = Fifo::of(dump);
    for verb in [&["diff"][..], &["lrc", "diff"]] {
        let output = command().args(verb).args([pipe.name(), pipe.name()]).output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("can be read once"), "{}", text(&output.stderr));
    }
}
