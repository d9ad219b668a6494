//! Reductions, scans and shuffles of a subgroup as loops, and the lowest active invocation.

use super::subgroups::{ballot, invocation, shuffle};
use crate::ir::{Builder, Op, Payload, SystemValue, Type, Value};
use crate::semantics;

/// The active invocations, one bit each.
fn active(b: &mut Builder) -> Value {
    let yes = b.bool(true);
    ballot(b, yes)
}

/// The number of the lowest active invocation.
pub(super) fn lowest_active(b: &mut Builder, words: u8) -> Value {
    let ballot = active(b);
    let words: Vec<Value> = (0..words.clamp(1, 4)).map(|word| b.extract(ballot, word)).collect();
    lowest_bit(b, &words)
}

/// The number of the lowest bit that is set in words, one of which is not zero.
pub(super) fn lowest_bit(b: &mut Builder, words: &[Value]) -> Value {
    let zero = b.u32(0);
    let mut lowest = None;
    for (word, &bits) in (0..4u8).zip(words).rev() {
        let first = b.alu(Op::FindLsb, &[bits]);
        let before = b.u32(32 * u32::from(word));
        let here = b.alu(Op::IAdd, &[first, before]);
        lowest = Some(match lowest {
            None => here,
            Some(later) => {
                let none = b.alu(Op::IEq, &[bits, zero]);
                b.alu(Op::Select, &[none, later, here])
            }
        });
    }
    lowest.unwrap_or(zero)
}

/// Writes a loop over the active invocations of the subgroup, which carries their bits and the result so far.
fn reduce_all(b: &mut Builder, reduced: Op, value: Value, count: u8) -> Option<Value> {
    let ballot = active(b);
    let mut words: Vec<Value> = (0..count.clamp(1, 4)).map(|word| b.extract(ballot, word)).collect();
    let ty = b.func.ty(value);
    // The invocation that does this is active, so there is a lowest one: the result starts with its value.
    let first = lowest_bit(b, &words);
    let start = b.value(Op::Broadcast, Payload::None, &[value, first], ty);
    clear_lowest(b, &mut words);
    words.push(start);
    let (inst, body) = b.loop_(&words, &[ty]);
    let loc = b.loc;
    let params = b.func.params(body).to_vec();
    let (&sum, words) = params.split_last()?;
    let mut words = words.to_vec();
    let mut b = Builder::at_end(b.func, body);
    b.loc = loc;
    let none = is_empty(&mut b, &words);
    let (check, then, other) = b.if_(none, &[]);
    Builder::at_end(b.func, then).break_(inst, &[sum]);
    Builder::at_end(b.func, other).break_(check, &[]);
    let number = lowest_bit(&mut b, &words);
    let theirs = b.value(Op::Broadcast, Payload::None, &[value, number], ty);
    b.exact = true;
    let combined = b.alu(reduced, &[sum, theirs]);
    b.exact = false;
    clear_lowest(&mut b, &mut words);
    words.push(combined);
    b.continue_(inst, &words);
    b.func.results(inst).first().copied()
}

/// Whether no bit of words is set.
pub(super) fn is_empty(b: &mut Builder, words: &[Value]) -> Value {
    let zero = b.u32(0);
    let mut rest = zero;
    for &word in words {
        rest = b.alu(Op::IOr, &[rest, word]);
    }
    b.alu(Op::IEq, &[rest, zero])
}

/// Writes a loop over the invocations that are read. All active invocations stay in it, because an invocation that has left could not be read. Each
/// takes the value of the invocation that it reads.
pub(super) fn shuffle_in_loop(b: &mut Builder, value: Value, from: Value, count: u8) -> Option<Value> {
    let ballot_of_all = active(b);
    let mut words: Vec<Value> = (0..count.clamp(1, 4)).map(|word| b.extract(ballot_of_all, word)).collect();
    let ty = b.func.ty(value);
    let nothing = b.constant(ty.base, 0);
    words.push(nothing);
    let (inst, body) = b.loop_(&words, &[ty]);
    let loc = b.loc;
    let params = b.func.params(body).to_vec();
    let (&taken, words) = params.split_last()?;
    let mut words = words.to_vec();
    let mut b = Builder::at_end(b.func, body);
    b.loc = loc;
    let none = is_empty(&mut b, &words);
    let (check, then, other) = b.if_(none, &[]);
    Builder::at_end(b.func, then).break_(inst, &[taken]);
    Builder::at_end(b.func, other).break_(check, &[]);
    let reader = lowest_bit(&mut b, &words);
    let source = b.value(Op::Broadcast, Payload::None, &[from, reader], Type::B32);
    let theirs = b.value(Op::Broadcast, Payload::None, &[value, source], ty);
    let same = b.alu(Op::IEq, &[from, source]);
    let taken = b.alu(Op::Select, &[same, theirs, taken]);
    let served = ballot(&mut b, same);
    // The number of the invocation to read may be undefined, and then it may equal none.
    clear_lowest(&mut b, &mut words);
    for (word, at) in words.iter_mut().zip(0..) {
        let served = b.extract(served, at);
        let others = b.alu(Op::INot, &[served]);
        *word = b.alu(Op::IAnd, &[*word, others]);
    }
    words.push(taken);
    b.continue_(inst, &words);
    b.func.results(inst).first().copied()
}

/// Clears the lowest bit that is set in words.
fn clear_lowest(b: &mut Builder, words: &mut [Value]) {
    let (zero, one) = (b.u32(0), b.u32(1));
    let mut done = None;
    for word in words {
        let less = b.alu(Op::ISub, &[*word, one]);
        let mut cleared = b.alu(Op::IAnd, &[*word, less]);
        let empty = b.alu(Op::IEq, &[*word, zero]);
        if let Some(before) = done {
            cleared = b.alu(Op::Select, &[before, *word, cleared]);
        }
        let own = b.alu(Op::INot, &[empty]);
        *word = cleared;
        done = Some(match done {
            Some(before) => b.alu(Op::IOr, &[before, own]),
            None => own,
        });
    }
}

/// Writes a loop over the invocations of the cluster or subgroup, which carries the result so far and whether there is any.
pub(super) fn lower_reduction(
    b: &mut Builder,
    op: Op,
    payload: Payload,
    value: Value,
    words: u8,
) -> Option<Value> {
    let Payload::Reduce(reduced, cluster) = payload else { return None };
    if op == Op::Reduce && cluster == 0 {
        return reduce_all(b, reduced, value, words);
    }
    let ty = b.func.ty(value);
    let identity = semantics::identity(reduced, ty.base)?;
    let words = active(b);
    let own = invocation(b);
    let zero = b.u32(0);
    let (start, count) = if cluster == 0 {
        let size = Payload::SysVal(SystemValue::SubgroupSize);
        (zero, b.value(Op::SysVal, size, &[], Type::B32))
    } else {
        let mask = b.u32(!(u32::from(cluster) - 1));
        (b.alu(Op::IAnd, &[own, mask]), b.u32(cluster.into()))
    };
    let nothing = b.bool(false);
    let identity = b.constant(ty.base, identity);
    let (inst, body) = b.loop_(&[zero, identity, nothing], &[ty]);
    let loc = b.loc;
    let [index, sum, any] = *b.func.params(body) else { return None };
    let mut b = Builder::at_end(b.func, body);
    b.loc = loc;
    let more = b.alu(Op::ULt, &[index, count]);
    let (check, then, other) = b.if_(more, &[]);
    Builder::at_end(b.func, then).break_(check, &[]);
    Builder::at_end(b.func, other).break_(inst, &[sum]);
    let number = b.alu(Op::IAdd, &[start, index]);
    let shifts = b.u32(5);
    let word = b.alu(Op::UShr, &[number, shifts]);
    // A ballot has four words: subgroups have up to 128 invocations.
    let last = b.u32(3);
    let word = b.alu(Op::IAnd, &[word, last]);
    let bits = b.value(Op::ExtractDyn, Payload::None, &[words, word], Type::B32);
    let bits = b.alu(Op::UShr, &[bits, number]);
    let one = b.u32(1);
    let bit = b.alu(Op::IAnd, &[bits, one]);
    let mut takes = b.alu(Op::IEq, &[bit, one]);
    if op != Op::Reduce {
        let before = if op == Op::InclusiveScan {
            b.alu(Op::UGe, &[own, number])
        } else {
            b.alu(Op::ULt, &[number, own])
        };
        takes = b.alu(Op::IAnd, &[takes, before]);
    }
    // Over the whole subgroup, all invocations read the same one.
    let theirs = if cluster == 0 {
        b.value(Op::Broadcast, Payload::None, &[value, number], ty)
    } else {
        shuffle(&mut b, value, number)
    };
    b.exact = true;
    let combined = b.alu(reduced, &[sum, theirs]);
    b.exact = false;
    let combined = b.alu(Op::Select, &[any, combined, theirs]);
    let sum = b.alu(Op::Select, &[takes, combined, sum]);
    let any = b.alu(Op::IOr, &[any, takes]);
    let index = b.alu(Op::IAdd, &[index, one]);
    b.continue_(inst, &[index, sum, any]);
    let results = b.func.results(inst);
    results.first().copied()
}
