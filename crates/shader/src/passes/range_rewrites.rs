//! Range rewriting: takes any shader; afterwards no operation is left whose result [`crate::analysis::ranges`] determines: comparisons and
//! conditions that always or never hold, and minima, masks and remainders that change nothing. Signed divisions, remainders, right
//! shifts, comparisons and conversions of non-negative numbers become unsigned ones, for which more rules exist.

use super::folding::make_constant;
use crate::analysis::ranges::{Range, Ranges};
use crate::ir::{Base, Builder, Function, Inst, Op, Payload, Shader, ShaderInfo, Traits};
use crate::substitution::Substitution;

/// What an instruction becomes.
#[derive(Debug, Clone, Copy)]
enum Rewrite {
    /// A constant in every lane.
    Constant(u64),
    /// An operand takes the place of the result.
    Operand(usize),
    /// Another operation on the same operands.
    Op(Op),
    /// The condition of an `if` is a constant.
    Condition(bool),
}

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    let info = std::mem::take(&mut shader.info);
    let mut changed = false;
    for func in shader.functions_mut() {
        let mut rewrites = Vec::new();
        Ranges::walk(func, &info, &mut |ranges, inst| {
            if let Some(rewrite) = rewrite(func, &info, ranges, inst) {
                rewrites.push((inst, rewrite));
            }
        });
        if !rewrites.is_empty() {
            apply(func, &rewrites);
            changed = true;
        }
    }
    shader.info = info;
    changed
}

fn rewrite(func: &Function, info: &ShaderInfo, ranges: &Ranges, inst: Inst) -> Option<Rewrite> {
    let op = func.op(inst);
    let args = func.args(inst);
    if op == Op::If {
        let constant = func.const_bits(args[0]).is_some();
        let number = ranges.of(func, args[0]).number().filter(|_| !constant)?;
        return Some(Rewrite::Condition(number != 0));
    }
    let elementwise = op.has(Traits::ELEMENTWISE);
    let handles = args.iter().any(|&arg| func.ty(arg).base == Base::Handle);
    if !elementwise && op != Op::Extract || handles {
        return None;
    }
    let result = func.result(inst);
    let mut of = [Range::full(1); 4];
    for (range, &arg) in of.iter_mut().zip(args) {
        *range = ranges.of(func, arg);
    }
    if let Some(number) = ranges.decided(func, info, inst) {
        return Some(Rewrite::Constant(number));
    }
    let [a, b, ..] = &of;
    let binary = args.len() == 2;
    let operand = match op {
        Op::IAnd if binary && !a.zeros & !b.ones & func.mask(result) == 0 => 0,
        Op::IAnd if binary && !b.zeros & !a.ones & func.mask(result) == 0 => 1,
        Op::IOr if binary && !b.zeros & !a.ones & func.mask(result) == 0 => 0,
        Op::IOr if binary && !a.zeros & !b.ones & func.mask(result) == 0 => 1,
        Op::UMin | Op::UMax if a.umax <= b.umin => usize::from(op == Op::UMax),
        Op::UMin | Op::UMax if b.umax <= a.umin => usize::from(op == Op::UMin),
        Op::IMin | Op::IMax if a.smax <= b.smin => usize::from(op == Op::IMax),
        Op::IMin | Op::IMax if b.smax <= a.smin => usize::from(op == Op::IMin),
        Op::UMod if a.umax < b.umin => 0,
        Op::IAbs if a.is_non_negative() => 0,
        Op::Select => match a.number()? {
            0 => 2,
            _ => 1,
        },
        _ => return unsigned(op, a, b, binary).map(Rewrite::Op),
    };
    Some(Rewrite::Operand(operand))
}

/// The unsigned operation that gives the same result for non-negative numbers.
fn unsigned(op: Op, a: &Range, b: &Range, binary: bool) -> Option<Op> {
    if !a.is_non_negative() {
        return None;
    }
    match op {
        Op::IShr => Some(Op::UShr),
        Op::I2I => Some(Op::U2U),
        Op::I2F => Some(Op::U2F),
        _ if !binary || !b.is_non_negative() => None,
        Op::IDiv => Some(Op::UDiv),
        Op::IRem | Op::IMod => Some(Op::UMod),
        Op::ILt => Some(Op::ULt),
        Op::IGe => Some(Op::UGe),
        Op::IMulHigh => Some(Op::UMulHigh),
        _ => None,
    }
}

fn apply(func: &mut Function, rewrites: &[(Inst, Rewrite)]) {
    let mut operands = Substitution::default();
    for &(inst, rewrite) in rewrites {
        match rewrite {
            Rewrite::Constant(bits) => make_constant(func, inst, bits),
            Rewrite::Operand(number) => {
                operands.replace(func.result(inst), func.args(inst)[number]);
            }
            Rewrite::Op(op) => {
                let args = func.args(inst).to_vec();
                func.replace_inst(inst, op, Payload::None, &args);
            }
            Rewrite::Condition(holds) => {
                let condition = Builder::before(func, inst).bool(holds);
                func.set_args(inst, &[condition]);
            }
        }
    }
    operands.apply(func);
}
