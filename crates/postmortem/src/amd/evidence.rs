//! Evidence of AMD GPUs: where it was read and what it says, as data.

use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact};
use unwedge_stream::amd::Program;

/// Evidence without an address or a place in the dump.
pub(super) fn evidence(section: impl Into<String>, fact: Fact) -> Evidence {
    Evidence { section: section.into(), fact, iova: None, span: None }
}

/// A field of a section.
pub(super) fn field(name: &'static str, value: Arg) -> Fact {
    Fact::Field { name: name.into(), value }
}

/// A range of addresses that a section lists.
pub(super) fn range(start: u64, end: u64) -> Args {
    Args::new().with("start", Arg::Address(start)).with("end", Arg::Address(end))
}

/// A shader that a report lists by name.
pub(super) fn listed_place(name: &str, start: Option<u64>) -> Args {
    let name = (!name.is_empty()).then(|| Arg::name(name.to_owned()));
    Args::new().with_some("shader", name).with_some("start", start.map(Arg::Address))
}

/// A shader that registers or umr point to, by its stage where that is known.
pub(super) fn program_place(stage: Option<&'static str>, start: u64) -> Args {
    Args::new().with_some("stage", stage.map(Arg::name)).with("start", Arg::Address(start))
}

/// The place this many bytes from the start of a shader.
pub(super) fn at_offset(place: Args, offset: u64) -> Args {
    place.with("offset", Arg::Value(offset))
}

/// A shader of the work that hangs. Drivers may set the upper bits of the address once, long before.
pub(super) fn program(program: &Program) -> Args {
    let stage = Args::new().with("stage", Arg::name(program.stage.name()));
    match program.address() {
        Some(address) => stage.with("start", Arg::Address(address)),
        None => stage.with("start_low", Arg::Value(u64::from(program.low) << 8)),
    }
}
