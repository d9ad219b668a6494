//! The binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    unwedge_cli::main()
}
