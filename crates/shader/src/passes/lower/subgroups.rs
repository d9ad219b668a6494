//! Lowers subgroup operations: takes any shader; afterwards none that the options name is left.
//!
//! The replacements need ballots, `broadcast` and (without `shuffles`) `shuffle` of scalars of 32 bits, and the invocation's number in the subgroup. Reductions and scans
//! become loops over the invocations in order, which skip inactive ones; a back end that knows that all are active can do better.

use super::rewrite;
use super::subgroups_reduce::{lower_reduction, lowest_active, shuffle_in_loop};
use crate::ir::{
    Base, Builder, Function, Inst, Op, Payload, QuadDir, Shader, SystemValue, Traits, Type, Value,
};

/// Which reductions and scans the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reductions {
    /// All.
    All,
    /// All but those of 32-bit integers and floats, which the back end combines in any order.
    Ordered {
        /// Whether the back end has scans.
        scans: bool,
        /// Whether the back end has those of floats.
        floats: bool,
    },
}

impl Reductions {
    fn has(self, func: &Function, inst: Inst) -> bool {
        let (Reductions::Ordered { scans, floats }, Payload::Reduce(reduced, _)) = (self, func.payload(inst))
        else {
            return true;
        };
        let integers = matches!(
            reduced,
            Op::IAdd | Op::IMul | Op::IMin | Op::IMax | Op::UMin | Op::UMax | Op::IAnd | Op::IOr | Op::IXor
        );
        let floats = floats && matches!(reduced, Op::FAdd | Op::FMul | Op::FMin | Op::FMax);
        let form = scans || func.op(inst) == Op::Reduce;
        !((integers || floats) && form && func.ty(func.result(inst)) == Type::B32)
    }
}

/// Which quad operations the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quads {
    /// All.
    All,
    /// `quad_broadcast` from an invocation that is not a constant.
    Indexed,
    /// None.
    None,
}

/// Which subgroup operations the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubgroupOptions {
    /// Moves of 64 bits, as two of 32; moves of 1, 8 and 16 bits, as one of 32; votes on equality of those.
    pub widths: bool,
    /// Votes, as ballots.
    pub votes: bool,
    /// `elect` and `read_first`, as ballots and broadcasts.
    pub first: bool,
    /// `shuffle_xor`, `shuffle_up` and `shuffle_down`, as shuffles.
    pub relative: bool,
    /// Quad operations, as shuffles: for machines whose quads are four consecutive invocations.
    pub quads: Quads,
    /// `shuffle`, as a loop over the invocations that are read.
    pub shuffles: bool,
    /// The masks of invocations before, after and at the invocation, as comparisons with its number.
    pub masks: bool,
    /// Reductions and scans, as loops.
    pub reductions: Reductions,
    /// `inverse_ballot`, as a test of a bit.
    pub inverse: bool,
    /// How many words of a ballot have bits of invocations, of four.
    pub words: u8,
}

impl SubgroupOptions {
    /// All operations.
    pub const ALL: SubgroupOptions = SubgroupOptions {
        widths: true,
        votes: true,
        first: true,
        relative: true,
        quads: Quads::All,
        shuffles: true,
        masks: true,
        reductions: Reductions::All,
        inverse: true,
        words: 4,
    };
}

/// Lowers subgroup operations.
pub fn lower_subgroups(shader: &mut Shader, options: &SubgroupOptions) -> bool {
    let options = *options;
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        rewrite(func, |func, inst| wants(func, inst, &options), |func, inst| lower(func, inst, &options))
            | changed
    })
}

fn wants(func: &Function, inst: Inst, options: &SubgroupOptions) -> bool {
    let op = func.op(inst);
    if let (Op::SysVal, Payload::SysVal(value)) = (op, func.payload(inst)) {
        return options.masks && is_mask(value);
    }
    if !op.has(Traits::CONVERGENT) {
        return false;
    }
    let width = options.widths && op.is_subgroup_move() && func.ty(func.result(inst)) != Type::B32;
    width
        || match op {
            Op::VoteAny | Op::VoteAll | Op::VoteIEq | Op::VoteFEq => options.votes,
            Op::Elect | Op::ReadFirst => options.first,
            Op::ShuffleXor | Op::ShuffleUp | Op::ShuffleDown => options.relative,
            Op::QuadBroadcast if options.quads == Quads::Indexed => {
                func.const_bits(func.args(inst)[1]).is_none()
            }
            Op::QuadBroadcast | Op::QuadSwap => options.quads == Quads::All,
            Op::Shuffle => options.shuffles,
            Op::InverseBallot => options.inverse,
            _ => op.is_reduction() && options.reductions.has(func, inst),
        }
}

fn lower(func: &mut Function, inst: Inst, options: &SubgroupOptions) -> Option<Value> {
    let (op, payload) = (func.op(inst), func.payload(inst));
    let args = func.args(inst).to_vec();
    let mut b = Builder::before(func, inst);
    if options.widths && op.is_subgroup_move() {
        let ty = b.func.ty(args[0]);
        if ty != Type::B32 {
            return Some(in_words(
                &mut b,
                ty,
                |b, word| {
                    let operands: Vec<Value> =
                        std::iter::once(word).chain(args[1..].iter().copied()).collect();
                    b.value(op, payload, &operands, Type::B32)
                },
                args[0],
            ));
        }
    }
    match op {
        Op::VoteAny | Op::VoteAll => Some(vote(&mut b, op == Op::VoteAll, args[0])),
        Op::VoteIEq | Op::VoteFEq => Some(vote_equal(&mut b, op, args[0], options.words)),
        Op::Elect => {
            let lowest = lowest_active(&mut b, options.words);
            let own = invocation(&mut b);
            Some(b.alu(Op::IEq, &[own, lowest]))
        }
        Op::ReadFirst => {
            let lowest = lowest_active(&mut b, options.words);
            let ty = b.func.ty(args[0]);
            Some(b.value(Op::Broadcast, Payload::None, &[args[0], lowest], ty))
        }
        Op::ShuffleXor | Op::ShuffleUp | Op::ShuffleDown => {
            let own = invocation(&mut b);
            let combine = match op {
                Op::ShuffleXor => Op::IXor,
                Op::ShuffleUp => Op::ISub,
                _ => Op::IAdd,
            };
            let from = b.alu(combine, &[own, args[1]]);
            Some(shuffle(&mut b, args[0], from))
        }
        Op::Shuffle => shuffle_in_loop(&mut b, args[0], args[1], options.words),
        Op::SysVal => {
            let Payload::SysVal(value) = payload else { return None };
            Some(mask_words(&mut b, value))
        }
        Op::QuadBroadcast => {
            let own = invocation(&mut b);
            let mask = b.u32(!3);
            let quad = b.alu(Op::IAnd, &[own, mask]);
            let from = b.alu(Op::IOr, &[quad, args[1]]);
            Some(shuffle(&mut b, args[0], from))
        }
        Op::QuadSwap => {
            let Payload::Quad(direction) = payload else { return None };
            let bits = match direction {
                QuadDir::Horizontal => 1,
                QuadDir::Vertical => 2,
                QuadDir::Diagonal => 3,
            };
            let own = invocation(&mut b);
            let bits = b.u32(bits);
            let from = b.alu(Op::IXor, &[own, bits]);
            Some(shuffle(&mut b, args[0], from))
        }
        Op::InverseBallot => {
            let own = invocation(&mut b);
            let (five, one) = (b.u32(5), b.u32(1));
            let word = b.alu(Op::UShr, &[own, five]);
            let word = b.value(Op::ExtractDyn, Payload::None, &[args[0], word], Type::B32);
            let bits = b.alu(Op::UShr, &[word, own]);
            let bit = b.alu(Op::IAnd, &[bits, one]);
            Some(b.alu(Op::IEq, &[bit, one]))
        }
        _ if op.is_reduction() => lower_reduction(&mut b, op, payload, args[0], options.words),
        _ => None,
    }
}

/// Whether a system value is a mask with a bit for each invocation.
fn is_mask(value: SystemValue) -> bool {
    use SystemValue as V;
    matches!(
        value,
        V::SubgroupEqMask | V::SubgroupGeMask | V::SubgroupGtMask | V::SubgroupLeMask | V::SubgroupLtMask
    )
}

/// The four words of a mask of invocations.
fn mask_words(b: &mut Builder, value: SystemValue) -> Value {
    use SystemValue as V;
    let own = invocation(b);
    let one = b.u32(1);
    let after = b.alu(Op::IAdd, &[own, one]);
    let size = b.value(Op::SysVal, Payload::SysVal(V::SubgroupSize), &[], Type::B32);
    let words: Vec<Value> = (0..4)
        .map(|word| match value {
            V::SubgroupLtMask => bits_below(b, own, word),
            V::SubgroupLeMask => bits_below(b, after, word),
            _ => {
                let (first, end) = match value {
                    V::SubgroupEqMask => (own, after),
                    V::SubgroupGeMask => (own, size),
                    _ => (after, size),
                };
                let (before, all) = (bits_below(b, first, word), bits_below(b, end, word));
                b.alu(Op::IXor, &[before, all])
            }
        })
        .collect();
    b.vec(&words)
}

/// The bits of a word that belong to invocations below a number.
fn bits_below(b: &mut Builder, number: Value, word: u32) -> Value {
    let (zero, one, ones) = (b.u32(0), b.u32(1), b.u32(u32::MAX));
    let (first, last) = (b.u32(32 * word), b.u32(32 * word + 31));
    // Shift counts are taken modulo 32.
    let bit = b.alu(Op::IShl, &[one, number]);
    let some = b.alu(Op::ISub, &[bit, one]);
    let none = b.alu(Op::UGe, &[first, number]);
    let all = b.alu(Op::ULt, &[last, number]);
    let bits = b.alu(Op::Select, &[none, zero, some]);
    b.alu(Op::Select, &[all, ones, bits])
}

/// The number of the invocation in the subgroup.
pub(super) fn invocation(b: &mut Builder) -> Value {
    b.value(Op::SysVal, Payload::SysVal(SystemValue::SubgroupInvocation), &[], Type::B32)
}

/// The value of another invocation.
pub(super) fn shuffle(b: &mut Builder, value: Value, from: Value) -> Value {
    let ty = b.func.ty(value);
    b.value(Op::Shuffle, Payload::None, &[value, from], ty)
}

/// Moves a scalar as one or two words.
fn in_words(
    b: &mut Builder,
    ty: Type,
    mut moved: impl FnMut(&mut Builder, Value) -> Value,
    value: Value,
) -> Value {
    match ty.base {
        Base::B1 => {
            let (zero, one) = (b.u32(0), b.u32(1));
            let word = b.alu(Op::Select, &[value, one, zero]);
            let word = moved(b, word);
            b.alu(Op::INe, &[word, zero])
        }
        Base::B64 => {
            let words = b.bitcast(Type { base: Base::B32, lanes: 2 }, value);
            let (lo, hi) = (b.extract(words, 0), b.extract(words, 1));
            let (lo, hi) = (moved(b, lo), moved(b, hi));
            let words = b.vec(&[lo, hi]);
            b.bitcast(Type::B64, words)
        }
        _ => {
            let word = b.convert(Op::U2U, Base::B32, value);
            let word = moved(b, word);
            b.convert(Op::U2U, ty.base, word)
        }
    }
}

/// The invocations where a condition is true, one bit each.
pub(super) fn ballot(b: &mut Builder, condition: Value) -> Value {
    b.value(Op::Ballot, Payload::None, &[condition], Type { base: Base::B32, lanes: 4 })
}

fn vote(b: &mut Builder, all: bool, condition: Value) -> Value {
    let asked = if all { b.alu(Op::INot, &[condition]) } else { condition };
    let words = ballot(b, asked);
    let mut any = b.extract(words, 0);
    for lane in 1..4 {
        let word = b.extract(words, lane);
        any = b.alu(Op::IOr, &[any, word]);
    }
    let zero = b.u32(0);
    b.alu(if all { Op::IEq } else { Op::INe }, &[any, zero])
}

/// Whether all lanes equal those of the first active invocation, in all active invocations.
fn vote_equal(b: &mut Builder, op: Op, value: Value, words: u8) -> Value {
    let ty = b.func.ty(value);
    let lowest = lowest_active(b, words);
    let mut equal = None;
    for lane in 0..ty.lanes {
        let own = b.extract(value, lane);
        let move_word =
            |b: &mut Builder, word| b.value(Op::Broadcast, Payload::None, &[word, lowest], Type::B32);
        let first = match ty.base {
            Base::B32 => move_word(b, own),
            _ => in_words(b, ty.lane(), move_word, own),
        };
        let same = b.alu(if op == Op::VoteIEq { Op::IEq } else { Op::FEq }, &[first, own]);
        equal = Some(match equal {
            Some(others) => b.alu(Op::IAnd, &[others, same]),
            None => same,
        });
    }
    match equal {
        Some(equal) => vote(b, true, equal),
        None => b.bool(true),
    }
}
