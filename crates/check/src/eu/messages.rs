//! Lengths of messages against what their descriptors ask for.
//!
//! Loads and stores of the load/store cache say how much data each channel has. Never: says anything of a descriptor that a
//! register holds.

use super::operands::Operation;
use unwedge_isa::eu::disasm::descriptors;
use unwedge_isa::eu::message::{is_lsc, second_length};
use unwedge_isa::eu::{File, Generation};

/// The typed functions have another layout.
const TYPED: u32 = 13;
const LOAD: u32 = 0;
const STORE: u32 = 4;

/// Whether a payload or response has another length than the descriptor asks for.
pub(super) fn differ_in_length(op: &Operation) -> bool {
    op.is_send()
        && op.generation >= Generation::Gen125
        && lengths(op).is_some_and(|(has, asked)| has != asked)
}

/// The registers of the data of a load or store, and how many its descriptor asks for.
fn lengths(op: &Operation) -> Option<(u32, u32)> {
    let of = descriptors(&op.inst, op.row);
    let descriptor = of.descriptor.filter(|_| is_lsc(&op.inst, of.function) && of.function != TYPED)?;
    let transposed = descriptor >> 15 & 1 != 0;
    let element: u32 = match descriptor >> 9 & 7 {
        2 => 4,
        3 => 8,
        // Bytes and words that have a dword each.
        4 | 5 if !transposed => 4,
        _ => return None,
    };
    let elements = [1u32, 2, 3, 4, 8, 16, 32, 64][(descriptor >> 12 & 7) as usize];
    let asked = if transposed {
        (elements * element).div_ceil(op.register_bytes())
    } else {
        (op.execution * element).div_ceil(op.register_bytes()) * elements
    };
    let has = match descriptor & 63 {
        // A load without a response is a prefetch.
        LOAD => Some(descriptor >> 20 & 31).filter(|returned| *returned != 0),
        STORE if op.source(1).file == File::Grf => of.extended.map(|d| second_length(&op.inst, d)),
        _ => None,
    }?;
    Some((has, asked))
}
