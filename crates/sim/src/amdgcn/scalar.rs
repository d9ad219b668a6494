//! The scalar ALU.

use super::fault::{FaultKind, Missing};
use super::machine::Machine;
use super::operand::{From, from};
use super::wave::Wave;
use unwedge_isa::amdgcn::model::{Class, Format, Trait, Type};
use unwedge_isa::amdgcn::semantics::{self, Op, ScalarIn};
use unwedge_isa::amdgcn::{Inst, Opcode, Operand, Reg};

/// A scalar operation with its operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScalarOp {
    op: Op,
    sources: [(From, Type); 3],
    dst: Option<(Reg, u8)>,
    reads_scc: bool,
    writes_scc: bool,
    /// Bits of the result are bits of the sources, or bitwise functions of some.
    bitwise: bool,
    /// It is an exclusive or, three of which swap registers.
    xor: bool,
}

/// What is known of a value, and why not all of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PartialValue {
    value: u64,
    unknown: u64,
    why: Missing,
}

/// The exclusive or of two values in a register. Another one with one of the values gives the other, however much of both is unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct XorOf {
    reg: Reg,
    dwords: u8,
    values: [PartialValue; 2],
    /// Where the second value is.
    second: Reg,
}

/// The two registers that an exclusive or reads.
fn both_registers(scalar: &ScalarOp) -> Option<[Reg; 2]> {
    match scalar.sources {
        [(From::Scalar(a), _), (From::Scalar(b), _), _] if a != b => Some([a, b]),
        _ => None,
    }
}

/// Follows an exclusive or: what is unknown of the result if it takes a value out of an earlier one, whose record then is of what is left.
fn take_out(wave: &mut Wave, scalar: &ScalarOp) -> Option<PartialValue> {
    let xor = wave.unknown.as_mut()?.xor.take()?;
    let read = both_registers(scalar)?;
    let (dst, dwords) = scalar.dst?;
    let same = read.contains(&xor.reg) && read.contains(&xor.second) && dwords == xor.dwords;
    let [first, second] = xor.values;
    let held = (wave.value(xor.second, dwords), wave.unknown_value(xor.second, dwords));
    let whole = wave.value(xor.reg, dwords) == first.value ^ second.value;
    if !same || !whole || held != (second.value, second.unknown) {
        return None;
    }
    if dst == xor.second {
        let left = XorOf { values: [second, first], ..xor };
        wave.unknown.as_mut()?.xor = Some(left);
    }
    Some(first)
}

/// Notes an exclusive or in the place of one of its sources.
fn note_xor(wave: &mut Wave, scalar: &ScalarOp, values: &[(u64, u64); 3]) {
    let (Some(read), Some((reg, dwords))) = (both_registers(scalar), scalar.dst) else { return };
    let Some(own) = read.iter().position(|source| *source == reg) else { return };
    let second = read[1 - own];
    let known =
        |at: usize| PartialValue { value: values[at].0, unknown: values[at].1, why: wave.why(read[at]) };
    let values = [known(own), known(1 - own)];
    if let Some(state) = &mut wave.unknown {
        state.xor = Some(XorOf { reg, dwords, values, second });
    }
}

impl ScalarOp {
    pub(super) fn new(inst: &Inst) -> Option<ScalarOp> {
        let op = semantics::of(inst)?;
        let mut sources = [(From::Const(0), Type::B32); 3];
        let mut count = 0;
        let mut dst = None;
        let mut added = None;
        for (slot, operand) in inst.written() {
            if slot.access.writes() {
                let Operand::Reg { reg, dwords, .. } = operand else { continue };
                dst = Some((reg, dwords));
                if slot.access.reads() {
                    added = Some((From::Scalar(reg), slot.ty));
                }
                continue;
            }
            let value = match operand {
                // Immediates are sign-extended, but for those compared without a sign.
                Operand::Imm(value) if slot.class == Class::Imm16 && slot.ty != Type::I16 => {
                    From::Const(u64::from(value as u16))
                }
                other => from(other, slot.ty)?,
            };
            *sources.get_mut(count)? = (value, slot.ty);
            count += 1;
        }
        if let Some(added) = added {
            // With an immediate the destination is the first source, else the last.
            if inst.row().format == Format::Sopk {
                sources[1] = sources[0];
                sources[0] = added;
            } else {
                sources[2] = added;
            }
        }
        let scc = |reads: bool| {
            inst.implicit().iter().any(|slot| {
                slot.reg == Reg::SCC.0 && if reads { slot.access.reads() } else { slot.access.writes() }
            })
        };
        let bitwise = inst.row().traits.has(Trait::Bitwise);
        let xor = matches!(inst.opcode(), Opcode::s_xor_b32 | Opcode::s_xor_b64);
        Some(ScalarOp { op, sources, dst, reads_scc: scc(true), writes_scc: scc(false), bitwise, xor })
    }
}

pub(super) fn exec(machine: &mut Machine<'_>, wave: &mut Wave, scalar: &ScalarOp) {
    let values = scalar.sources.map(|(from, ty)| wave.scalar_value(from, ty));
    let [(a, _), (b, _), (d, _)] = values;
    let unknown = wave.unknown.is_some()
        && (values.iter().any(|(_, unknown)| *unknown != 0)
            || scalar.reads_scc && wave.unknown_sreg(Reg::SCC) != 0);
    let mode = wave.float_mode(machine.gpu.generation());
    let taken = if scalar.xor { take_out(wave, scalar) } else { None };
    if scalar.xor && taken.is_none() && unknown {
        note_xor(wave, scalar, &values);
    }
    let input = ScalarIn { a, b, d, scc: wave.scc };
    match scalar.op {
        Op::Scalar(f) => {
            let (value, scc) = f(&mode, input);
            let (mut bits, mut scc_bits) = (0, 0);
            let mut why = Missing::Undefined;
            if unknown {
                why = why_scalar(wave, scalar);
                bits = u64::MAX;
                if scalar.bitwise {
                    bits = spread_bits(
                        &|a, b, d, scc| f(&mode, ScalarIn { a, b, d, scc }).0,
                        &values,
                        wave,
                        scalar,
                    );
                }
                if let Some(known) = taken {
                    (bits, why) = (known.unknown, known.why);
                }
                // A result that has a bit set for certain is not zero.
                let certain = scalar.bitwise && value & !bits != 0;
                scc_bits = u32::from(!certain && bits != 0);
            }
            if let Some((reg, dwords)) = scalar.dst {
                wave.set_value(reg, dwords, value, bits, why);
            }
            if scalar.writes_scc {
                set_scc(wave, scc, scc_bits);
            }
        }
        Op::Compare(f) => {
            let scc = f(&mode, a, b);
            set_scc(wave, scc, unknown.into());
        }
        Op::SaveExec(f) | Op::WriteExec(f) => {
            let wide = scalar.dst.is_none_or(|(_, dwords)| dwords > 1);
            let exec = wave.value(Reg::EXEC, if wide { 2 } else { 1 });
            let all = if wide { u64::MAX } else { u32::MAX.into() };
            let after = f(a, exec) & all;
            let dwords = if wide { 2 } else { 1 };
            let old = if matches!(scalar.op, Op::SaveExec(_)) { exec } else { after };
            // Unknown lanes that `exec` leaves out do not matter.
            let matters = (f(a ^ values[0].1, exec) ^ f(a, exec)) & all;
            if matters != 0 {
                let (reg, why) = match scalar.sources[0].0 {
                    From::Scalar(reg) => (reg, wave.why(reg)),
                    _ => (Reg::EXEC, Missing::Undefined),
                };
                machine.fault(wave, FaultKind::Control(reg, why));
            }
            if let Some((reg, dwords)) = scalar.dst {
                wave.set_value(reg, dwords, old, 0, Missing::Undefined);
            }
            wave.set_value(Reg::EXEC, dwords, after, 0, Missing::Undefined);
            set_scc(wave, after != 0, 0);
        }
        _ => machine.fault(wave, FaultKind::NoSemantics),
    }
    // What is unknown of the enabled lanes matters at once.
    if unknown && wave.unknown_value(Reg::EXEC, 2) != 0 {
        machine.fault(wave, FaultKind::Control(Reg::EXEC, wave.why(Reg::EXEC)));
        wave.set_value(Reg::EXEC, 2, wave.pair(Reg::EXEC), 0, Missing::Undefined);
    }
}

pub(super) fn set_scc(wave: &mut Wave, scc: bool, unknown: u32) {
    wave.scc = scc;
    if let Some(state) = &mut wave.unknown {
        state.scc = unknown;
    }
}

fn why_scalar(wave: &Wave, scalar: &ScalarOp) -> Missing {
    let found = scalar.sources.iter().find_map(|(from, ty)| match from {
        From::Scalar(reg) if wave.unknown_value(*reg, ty.dwords()) != 0 => Some(wave.why(*reg)),
        _ => None,
    });
    found.unwrap_or(Missing::Undefined)
}

/// Which bits of a bitwise result depend on unknown bits: those that change with them.
fn spread_bits(
    f: &dyn Fn(u64, u64, u64, bool) -> u64,
    values: &[(u64, u64); 3],
    wave: &Wave,
    scalar: &ScalarOp,
) -> u64 {
    let scc_unknown = scalar.reads_scc && wave.unknown_sreg(Reg::SCC) != 0;
    let with = |ones: u32, scc: bool| {
        let at = |n: usize| {
            let (value, unknown) = values[n];
            if ones >> n & 1 != 0 { value | unknown } else { value & !unknown }
        };
        f(at(0), at(1), at(2), scc)
    };
    let base = with(0, wave.scc);
    let mut bits = (1..8).fold(0, |bits, ones| bits | (with(ones, wave.scc) ^ base));
    if scc_unknown {
        bits |= with(0, !wave.scc) ^ base;
    }
    bits
}
