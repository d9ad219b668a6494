//! The state that an engine stands in: base addresses, the shaders that are bound, the last work before the stop.

use super::case::{Case, Unit};
use unwedge_stream::intel::state::{Base, State};

/// Shaders that are named.
const SHADERS: usize = 8;

/// Lines on the state in front of the stop; empty where nothing was set.
pub(super) fn lines(case: &Case<'_, '_>, unit: &Unit<'_, '_>, state: &State<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((work, name)) = state.last_work().and_then(|work| Some((work, work.command.name()?))) {
        lines.push(format!("the last work before it: {name} at {:#x}", work.address));
    }
    let bases: Vec<String> = state
        .bases()
        .map(|(base, at)| format!("{} {:#x}", base.name().trim_end_matches(" Base Address"), at.address))
        .collect();
    if !bases.is_empty() {
        lines.push(format!("base addresses: {}", bases.join(", ")));
    }
    let pointers = state.pointers();
    let kernels = pointers.iter().filter(|p| p.base == Base::Instruction && p.offset != 0);
    for kernel in kernels.take(SHADERS) {
        let Some(name) = kernel.seen.command.name() else { continue };
        let place = match kernel.address {
            Some(address) => match case.block_at(unit, address) {
                Some((block, at)) => format!(" = {address:#x}, in {block} {:#x}+{at:#x}", address - at),
                None => format!(" = {address:#x}, not in the dump"),
            },
            None => ", and no instruction base address is set in this walk".to_owned(),
        };
        lines.push(format!("{name}, {}: {:#x}{place}", kernel.field.name, kernel.offset));
    }
    lines
}
