//! `cargo xtask`: maintenance commands of the workspace.

mod bench_dump;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((command, rest)) if command == "bench-dump" => bench_dump::run(rest),
        _ => Err("usage: cargo xtask bench-dump FILE [--binary PATH]".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
