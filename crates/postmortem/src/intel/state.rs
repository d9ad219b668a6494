//! The state that an engine stopped in: base addresses, the last work before the stop.

use super::case::Unit;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact};
use unwedge_stream::intel::state::IntelState;

/// The state before the stop; empty where nothing was set.
pub(super) fn evidence(unit: &Unit<'_, '_>, state: &IntelState<'_>) -> Vec<Evidence> {
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
    evidence
}
