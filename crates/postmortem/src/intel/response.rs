//! Whether the registers of an engine were read from a device that answers.
//!
//! A device that is off the bus or powered down reads as all ones; registers that were not read stay zero. Never: a guess from
//! one register; all that are looked at have to agree.

use super::case::{Unit, register};
use crate::args::Arg;
use crate::report::{Finding, Trust};
use crate::rules::Rule;
use unwedge_capture::intel::RingRegister;

/// Registers that cannot all be all ones, nor all zero, on an engine that hangs.
const WITNESSES: [(RingRegister, &str); 5] = [
    (RingRegister::Start, "START"),
    (RingRegister::Head, "HEAD"),
    (RingRegister::Tail, "TAIL"),
    (RingRegister::Acthd, "ACTHD"),
    (RingRegister::Ipehr, "IPEHR"),
];
/// So many of them at least have to be in the dump.
const MIN_WITNESSES: usize = 3;

/// Whether a register reads as one that does not answer.
pub(super) fn all_ones(value: u64) -> bool {
    value as u32 == u32::MAX && matches!((value >> 32) as u32, 0 | u32::MAX)
}

/// What the registers of an engine say where they say nothing of its work; `None` where they do. INSTDONE is all ones on an
/// engine that is idle, so it is no witness of that, but it is zero on none.
pub(super) fn finding(unit: &Unit<'_, '_>) -> Option<Finding> {
    let read = || WITNESSES.iter().filter_map(|&(of, name)| Some((name, unit.ring(of)?)));
    if read().count() < MIN_WITNESSES {
        return None;
    }
    let rule = if read().all(|(_, value)| all_ones(value)) {
        Rule::EngineNotResponding
    } else if read().all(|(_, value)| value == 0) && unit.ring(RingRegister::Instdone) == Some(0) {
        Rule::EngineRegistersZero
    } else {
        return None;
    };
    let facts = read().map(|(name, value)| unit.seen(register(name, value)));
    Some(unit.finding(rule, Trust::Likely).with("registers", Arg::Number(read().count() as u64)).seen(facts))
}
