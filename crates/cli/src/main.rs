//! `unwedge`.
mod crashdec;
mod text;

use std::io::{Read, Write};

fn main() {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let args = match crashdec::parse_args(args) {
        Ok(args) => args,
        Err(e) => {
            eprint!("{e}\n{}", crashdec::USAGE);
            std::process::exit(2);
        }
    };
    let mut dump = Vec::new();
    match &args.file {
        Some(f) => dump = std::fs::read(f).unwrap(),
        None => drop(std::io::stdin().read_to_end(&mut dump)),
    }
    let db = unwedge_hw::Db::builtin();
    let lost =
        crashdec::run(&dump, &args.options, &db, &mut std::io::stdout().lock(), &mut std::io::stderr());
    let _ = std::io::stdout().flush();
    std::process::exit(match lost {
        Ok(false) => 0,
        Ok(true) => 3,
        Err(_) => 1,
    });
}
