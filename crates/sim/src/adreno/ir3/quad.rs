//! What the fibers of a quad, or of a cluster, ask of one another through the texture unit.
//!
//! A quad is four fibers in a row: the upper left pixel, the one to its right, and the two below. Derivatives are those of a row
//! or a column of it, also the ones that may be coarse.

use super::fault::FaultKind;
use super::group::Machine;
use super::results::Results;
use super::texture::TextureOp;
use super::wave::{FIBERS, Row};
use unwedge_isa::ir3::semantics::{Round, float};
use unwedge_isa::ir3::{Opcode, Operand};

pub(super) fn is_quad(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Dsx | Dsy
            | Dsxpp1
            | Dsypp1
            | BrcstActive
            | QuadShuffleBrcst
            | QuadShuffleHoriz
            | QuadShuffleVert
            | QuadShuffleDiag
    )
}

/// The difference of two fibers.
fn difference(values: &Row, from: usize, to: usize, half: bool) -> u32 {
    let value = |fiber: usize| {
        let bits = values.get(fiber).copied().unwrap_or(0);
        f32::from_bits(if half { float::widen(bits & 0xffff) } else { float::flush(bits) })
    };
    let bits = float::flush((value(to) - value(from)).to_bits());
    if half { float::narrow(bits, Round::Even) } else { bits }
}

pub(super) fn exec(machine: &Machine<'_>, op: &TextureOp<'_>, dst: &Operand) -> Result<Results, FaultKind> {
    let opcode = op.instruction.opcode;
    let half = op.instruction.srcs.get(0).is_some_and(|source| source.half);
    let mut indices = [0; FIBERS];
    if opcode == Opcode::QuadShuffleBrcst {
        op.row(machine, 1, 0, &mut indices)?;
    }
    let mut results = Results::default();
    let written = (0..4).filter(|component| op.access.mask >> component & 1 != 0);
    for (read, component) in written.enumerate() {
        let mut values = [0; FIBERS];
        op.row(machine, 0, read, &mut values)?;
        if opcode == Opcode::BrcstActive {
            broadcast(op, dst, component, &values, &mut results);
            continue;
        }
        let value = |fiber: usize| {
            let quad = fiber & !3;
            match opcode {
                Opcode::Dsx | Opcode::Dsxpp1 => difference(&values, fiber & !1, fiber | 1, half),
                Opcode::Dsy | Opcode::Dsypp1 => difference(&values, fiber & !2, fiber | 2, half),
                Opcode::QuadShuffleBrcst => values[quad + (indices[fiber] & 3) as usize],
                Opcode::QuadShuffleHoriz => values[fiber ^ 1],
                Opcode::QuadShuffleVert => values[fiber ^ 2],
                _ => values[fiber ^ 3],
            }
        };
        results.push(dst, component, op.exec, std::array::from_fn(value));
    }
    Ok(results)
}

/// `brcst.active`: the value of the last active fiber in the lower half of a cluster for the fibers of the upper half.
fn broadcast(op: &TextureOp<'_>, dst: &Operand, component: usize, values: &Row, results: &mut Results) {
    let size = usize::from(op.access.cluster).clamp(2, FIBERS);
    let mut row = [0; FIBERS];
    let mut mask = 0;
    for first in (0..FIBERS).step_by(size) {
        let middle = first + size / 2;
        let Some(from) = (first..middle).rev().find(|fiber| op.exec >> fiber & 1 != 0) else { continue };
        let upper = middle..(first + size).min(FIBERS);
        mask |= upper.clone().fold(0, |mask, fiber| mask | op.exec & 1 << fiber);
        row[upper].fill(values[from]);
    }
    results.push(dst, component, mask, row);
}
