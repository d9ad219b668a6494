//! The program, as tests run it, and folders for its files.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use unwedge::base::Generation;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::intel::TestDevice;
use unwedge_testkit::{amdgpu, i915, xe};

/// Runs the program.
pub fn unwedge(args: &[&str], input: &[u8]) -> Output {
    unwedge_in(Path::new("."), args, input)
}

/// Runs the program in a folder.
pub fn unwedge_in(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    run(command().current_dir(folder).args(args), input)
}

/// The program, to be given arguments; nothing around it says how it should print or what it should read.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unwedge"));
    command.env_remove("RNN_PATH").env_remove("NO_COLOR").env_remove("PAGER");
    command.env_remove("COLUMNS");
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command, input: &[u8]) -> Output {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // A program that has what it needs, or stops on its options, does not read on.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the program ends");
    feeder.join().expect("the input is fed");
    output
}

/// Its exit status, standard output and standard error.
pub fn outcome(args: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    outcome_of(&unwedge(args, input))
}

/// The same of one that has run.
pub fn outcome_of(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The exit status.
pub fn status(output: &Output) -> i32 {
    output.status.code().expect("the program was killed")
}

/// Standard output, which is UTF-8.
pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

/// Standard error, which is UTF-8.
pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

/// The lines are in the text, one after the other.
#[track_caller]
pub fn has_lines(text: &str, lines: &str) {
    assert!(text.contains(lines), "not there:\n{lines}\nin\n{text}");
}

/// A folder that goes away with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    /// An empty one.
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("unwedge-test-{}-{n}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    /// One with files, whose names may have folders.
    pub fn of<N: AsRef<str>, B: AsRef<[u8]>>(files: &[(N, B)]) -> Folder {
        let folder = Folder::new();
        for (name, bytes) in files {
            folder.file(name.as_ref(), bytes.as_ref());
        }
        folder
    }

    /// Adds a file; its path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(&path, bytes).expect("files can be written");
        self.path(name)
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// The folder's own path.
    pub fn name(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }

    /// The names of what is in it.
    pub fn names(&self) -> Vec<String> {
        Folder::names_of(&self.0)
    }

    /// The names of what is in some folder.
    pub fn names_of(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder");
        let mut names: Vec<_> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the program in it: exit status, standard output, standard error.
    pub fn run(&self, args: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
        outcome_of(&unwedge_in(&self.0, args, input))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A dump of each kind of file.
pub fn dumps() -> Vec<(&'static str, Vec<u8>)> {
    let first = |dumps: Vec<(String, Vec<u8>)>| dumps.into_iter().next().expect("a dump").1;
    let full = amdgpu::texts().into_iter().find(|(name, _)| name == "V10 V7_1").expect("a dump with rings");
    vec![
        ("msm", DevcoreBuilder::complete(Generation::A6xx).text()),
        ("i915", first(i915::variety())),
        ("xe", xe::DevcoreBuilder::complete(TestDevice::named("bmg"), xe::XeEra::V6_14).text()),
        ("amdgpu", full.1),
    ]
}

/// What the program said.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
