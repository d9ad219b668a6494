//! Lowers integers of 8 and 16 bits to 32: takes any shader; afterwards no elementwise operation on integers has operands or a result of
//! the widths that the options name, except conversions of integers to and from 32 bits, and pairs if the back end has them. Floats of 16 bits, memory and flow keep their types.

use super::rewrite;
use crate::ir::{Base, Builder, Function, Inst, Op, Rule, Shader, Traits, Type, Value};

/// Which widths the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NarrowOptions {
    /// 8 bits.
    pub bits8: bool,
    /// 16 bits.
    pub bits16: bool,
    /// 16 bits, even in vectors of two lanes.
    pub pairs: bool,
}

/// Lowers integers of 8 and 16 bits.
pub fn lower_narrow(shader: &mut Shader, options: &NarrowOptions) -> bool {
    let options = *options;
    let lowered = move |base: Base| match base {
        Base::B8 => options.bits8,
        Base::B16 => options.bits16,
        _ => false,
    };
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let wants = |func: &Function, inst: Inst| {
            let op = func.op(inst);
            if !op.has(Traits::ELEMENTWISE) || matches!(op, Op::FNeg | Op::FAbs) {
                return false;
            }
            let of = |value: Value| lowered(func.ty(value).base);
            let base = |value: Value| func.ty(value).base;
            let (result, args) = (func.result(inst), func.args(inst));
            if !options.pairs && func.ty(result) == (Type { base: Base::B16, lanes: 2 }) {
                return false;
            }
            match op {
                // One side has 32 bits afterwards.
                Op::U2U | Op::I2I => {
                    (of(args[0]) && base(result) != Base::B32) || (of(result) && base(args[0]) != Base::B32)
                }
                Op::I2F | Op::U2F => of(args[0]),
                Op::F2I | Op::F2U => of(result),
                _ if op.has(Traits::FLOAT) => false,
                _ => of(result) || args.iter().any(|&arg| of(arg)),
            }
        };
        rewrite(func, wants, lower) | changed
    })
}

/// Whether operands are sign-extended.
fn is_signed(op: Op) -> bool {
    matches!(
        op,
        Op::IDiv
            | Op::IRem
            | Op::IMod
            | Op::IMin
            | Op::IMax
            | Op::ILt
            | Op::IGe
            | Op::IAbs
            | Op::IShr
            | Op::FindIMsb
            | Op::IMulHigh
    )
}

fn lower(func: &mut Function, inst: Inst) -> Option<Value> {
    let op = func.op(inst);
    let args = func.args(inst).to_vec();
    let result = func.ty(func.result(inst)).base;
    let mut b = Builder::before(func, inst);
    match op {
        Op::U2U | Op::I2I => {
            let from = b.func.ty(args[0]).base;
            if from == result {
                return Some(args[0]);
            }
            let word = b.convert(op, Base::B32, args[0]);
            return Some(b.convert(op, result, word));
        }
        Op::I2F | Op::U2F => {
            let word = b.convert(if op == Op::I2F { Op::I2I } else { Op::U2U }, Base::B32, args[0]);
            return Some(b.convert(op, result, word));
        }
        Op::F2I | Op::F2U => {
            let word = b.convert(op, Base::B32, args[0]);
            return Some(b.convert(Op::U2U, result, word));
        }
        _ => {}
    }
    // The base of the operands that the type variable stands for.
    let rules = op.row().operands;
    let narrow = rules.iter().zip(&args).find(|(rule, _)| matches!(rule, Rule::T(_))).map(|(_, &arg)| arg)?;
    let base = b.func.ty(narrow).base;
    let width = base.bits();
    let extend = if is_signed(op) { Op::I2I } else { Op::U2U };
    let mut words = Vec::new();
    for (rule, &arg) in rules.iter().zip(&args) {
        words.push(if matches!(rule, Rule::T(_)) { b.convert(extend, Base::B32, arg) } else { arg });
    }
    let count = b.u32(width);
    let value = match op {
        Op::IShl | Op::IShr | Op::UShr => {
            let mask = b.u32(width - 1);
            words[1] = b.alu(Op::IAnd, &[words[1], mask]);
            b.alu(op, &words)
        }
        Op::UMulHigh | Op::IMulHigh => {
            let product = b.alu(Op::IMul, &words);
            b.alu(if op == Op::UMulHigh { Op::UShr } else { Op::IShr }, &[product, count])
        }
        Op::UAddCarry => {
            let sum = b.alu(Op::IAdd, &words);
            b.alu(Op::UShr, &[sum, count])
        }
        Op::BitReverse => {
            let reversed = b.alu(Op::BitReverse, &words);
            let above = b.u32(32 - width);
            b.alu(Op::UShr, &[reversed, above])
        }
        _ => b.alu(op, &words),
    };
    Some(if b.func.ty(value).base == result { value } else { b.convert(Op::U2U, result, value) })
}
