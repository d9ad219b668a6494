//! `unwedge`: why did the GPU hang?

mod crashdec;
mod text;

use std::ffi::OsString;
use std::io::{self, Read};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|a| a == "crashdec") {
        args.remove(0);
    }
    match drop_in(args) {
        Ok(status) => ExitCode::from(status),
        Err(e) => {
            eprintln!("unwedge: {e}");
            ExitCode::from(1)
        }
    }
}

fn drop_in(args: Vec<OsString>) -> io::Result<u8> {
    let arguments = match crashdec::parse_args(args) {
        Ok(arguments) => arguments,
        Err(usage) => {
            eprint!("{usage}\n{}", crashdec::USAGE);
            return Ok(2);
        }
    };
    let dump = match &arguments.file {
        Some(file) => std::fs::read(file)?,
        None => {
            let mut dump = Vec::new();
            io::stdin().lock().read_to_end(&mut dump)?;
            dump
        }
    };
    let db = unwedge_hw::Db::builtin();
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    match crashdec::run(&dump, &arguments.options, &db, &mut out, &mut err) {
        Ok(lost) => Ok(if lost { 3 } else { 0 }),
        Err(e) => Err(io::Error::other(e)),
    }
}
