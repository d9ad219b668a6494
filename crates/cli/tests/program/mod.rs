//! The program, as tests run it, and the folder of real files.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// What the program said.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Where real files are: `UNWEDGE_DATA`, by default `../shared/data` beside the workspace.
pub fn data() -> PathBuf {
    match std::env::var_os("UNWEDGE_DATA") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    }
}
