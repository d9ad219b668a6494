//! Maintenance commands: `cargo xtask COMMAND`.

mod import;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("import-rnndb") => import::run(args.get(1..).unwrap_or_default()),
        _ => Err("usage: cargo xtask import-rnndb DIR [--devices CSV] [--version VERSION]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
