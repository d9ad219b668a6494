//! Placeholder until the text branch is merged.
mod args;
pub use args::{USAGE, parse_args};
use std::io::Write;
use unwedge_capture::devcore::NotDevcore;
use unwedge_hw::Db;
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    pub allregs: bool,
    pub color: bool,
    pub markers: bool,
    pub summary: bool,
    pub verbose: bool,
    pub lookback: u32,
}
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    NotDevcore(#[from] NotDevcore),
    #[error("cannot write the output: {0}")]
    Write(#[from] std::io::Error),
}
pub fn run(
    _d: &[u8],
    _o: &Options,
    _db: &Db,
    out: &mut dyn Write,
    _err: &mut dyn Write,
) -> Result<bool, Error> {
    writeln!(out, "text")?;
    Ok(false)
}
