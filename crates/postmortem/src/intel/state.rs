//! The state that an engine stopped in: base addresses, the shaders that are bound, the last work before the stop.

use super::case::{IntelCase, Unit};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact};
use unwedge_stream::intel::state::{Base, IntelState};

/// Shaders that are named.
const SHADERS: usize = 8;

/// The state before the stop; empty where nothing was set.
pub(super) fn evidence(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    state: &IntelState<'_>,
) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    if let Some((work, name)) = state.last_work().and_then(|work| Some((work, work.command.name()?))) {
        let last = Args::new().with("last_work", Arg::name(name)).with("address", Arg::Address(work.address));
        evidence.push(Evidence { iova: Some(work.address), ..unit.seen(Fact::Work(last)) });
    }
    let bases: Vec<Arg> = state
        .bases()
        .map(|(base, at)| {
            let name = base.name().trim_end_matches(" Base Address");
            Args::new().with("base", Arg::name(name)).with("address", Arg::Address(at.address)).into()
        })
        .collect();
    if !bases.is_empty() {
        evidence.push(unit.seen(Fact::Record(Args::new().with("base_addresses", bases))));
    }
    let pointers = state.pointers();
    let kernels = pointers.iter().filter(|p| p.base == Base::Instruction && p.offset != 0);
    for kernel in kernels.take(SHADERS) {
        let Some(name) = kernel.seen.command.name() else { continue };
        let pointer = Args::new()
            .with("kernel_of", Arg::name(name))
            .with("field", Arg::name(kernel.field.name))
            .with("offset", Arg::Value(kernel.offset))
            .with_some("address", kernel.address.map(Arg::Address))
            .with_some("buffer", kernel.address.and_then(|address| case.block_at(unit, address)));
        evidence.push(Evidence { iova: kernel.address, ..unit.seen(Fact::Record(pointer)) });
    }
    evidence
}
