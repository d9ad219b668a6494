//! Algebraic rewriting: takes any shader; afterwards instructions that a rule of [`super::rules::RULES`] matches are replaced as the rule says,
//! and a constant operand of a commutative operation is the second one.
//!
//! The function is walked once in the order of the text; an instruction is tried again after it changed, a few times.

use super::commutes;
use super::folding::{fold, make_constant};
use super::rules::{LETTERS, Letter, Literal, OpSet, Parsed, Pattern, RuleClass, rules_of};
use crate::ir::{Base, Builder, Function, Inst, Op, Payload, Rule, Shader, ShaderInfo, Traits, Type, Value};
use crate::semantics::Eval;
use unwedge_base::entity::SecondaryMap;

/// How often an instruction is rewritten at most.
const TRIES: usize = 4;

/// Runs the pass.
pub(super) fn run(shader: &mut Shader) -> bool {
    let info = std::mem::take(&mut shader.info);
    let mut values = SecondaryMap::<Value, Option<Value>>::default();
    let changed = shader.functions_mut().iter_mut().fold(false, |changed, func| {
        values.reset(func.value_count());
        function(func, &info, &mut values) | changed
    });
    shader.info = info;
    changed
}

fn function(func: &mut Function, info: &ShaderInfo, values: &mut SecondaryMap<Value, Option<Value>>) -> bool {
    let mut changed = false;
    let mut next = func.first(func.body());
    while let Some(inst) = next {
        next = func.after(inst);
        for arg in func.args_mut(inst) {
            if let Some(value) = values[*arg] {
                *arg = value;
                changed = true;
            }
        }
        for _ in 0..TRIES {
            if !func.op(inst).has(Traits::ELEMENTWISE) {
                break;
            }
            changed |= constant_second(func, inst, info);
            match rewrite(func, inst, info) {
                Rewritten::No => break,
                Rewritten::InPlace => changed = true,
                Rewritten::Value(value) => {
                    let result = func.result(inst);
                    values[result] = Some(value);
                    break;
                }
            }
        }
    }
    changed
}

fn constant_second(func: &mut Function, inst: Inst, info: &ShaderInfo) -> bool {
    let swaps = commutes(func.op(inst), info)
        && matches!(*func.args(inst), [a, b, ..] if func.is_constant(a) && !func.is_constant(b));
    if swaps {
        func.args_mut(inst).swap(0, 1);
    }
    swaps
}

/// What an instruction became.
enum Rewritten {
    No,
    /// Another instruction with the same result.
    InPlace,
    /// The result is an existing value.
    Value(Value),
}

fn rewrite(func: &mut Function, inst: Inst, info: &ShaderInfo) -> Rewritten {
    let rules = rules_of(func.op(inst));
    if rules.is_empty() {
        return Rewritten::No;
    }
    let mut ops = OpSet::default();
    for def in func.args(inst).iter().filter_map(|arg| func.def_inst(*arg)) {
        ops.insert(func.op(def));
    }
    for rule in rules.iter().filter(|rule| rule.needs.may_match(ops)) {
        let mut matcher = Matcher { func, info, letters: [None; LETTERS], exact: func.exact(inst) };
        if !matcher.operands(func.op(inst), func.args(inst), &rule.find) {
            continue;
        }
        let Matcher { letters, exact, .. } = matcher;
        let holds = match rule.class {
            RuleClass::Bits => true,
            RuleClass::Numbers => !exact && numbers_allowed(func, inst, info),
            RuleClass::Ordered => letters.iter().flatten().all(|value| is_number(func, *value, NUMBER_DEPTH)),
        };
        if !holds {
            continue;
        }
        return replace(func, inst, info, rule, &letters, exact);
    }
    Rewritten::No
}

/// Whether the float mode lets signs of zeros, infinities and NaNs change, and does not flush denormals.
fn numbers_allowed(func: &Function, inst: Inst, info: &ShaderInfo) -> bool {
    let arg = func.args(inst).first().and_then(|&arg| {
        // A negated comparison: the mode is that of what is compared.
        let def = func.def_inst(arg).filter(|_| func.ty(arg).base == Base::B1)?;
        Some(Eval::of(func, def, info).t)
    });
    let base = arg.unwrap_or(Eval::of(func, inst, info).t);
    let mode = info.float_mode(base.bits());
    !mode.preserve && mode.flush != Some(true)
}

/// How many instructions back the search for proof that a value is not a NaN goes.
const NUMBER_DEPTH: u32 = 3;

/// Whether no lane of a float can be a NaN.
fn is_number(func: &Function, value: Value, depth: u32) -> bool {
    if let Some(lanes) = func.const_lanes(value) {
        let base = func.ty(value).base;
        let infinity = Literal::Float(f64::INFINITY).bits(base);
        return base.bits() >= 16 && lanes.iter().all(|bits| bits & (base.mask() >> 1) <= infinity);
    }
    let Some(def) = func.def_inst(value).filter(|_| depth > 0) else { return false };
    let args = func.args(def);
    let number = |arg: &Value| is_number(func, *arg, depth - 1);
    match func.op(def) {
        Op::I2F | Op::U2F => true,
        // A NaN loses against a number.
        Op::FMin | Op::FMax => args.iter().any(number),
        Op::FNeg | Op::FAbs | Op::FFloor | Op::FCeil | Op::FTrunc | Op::FRoundEven | Op::Vec => {
            args.iter().all(number)
        }
        Op::Select => args.iter().skip(1).all(number),
        _ => false,
    }
}

struct Matcher<'a> {
    func: &'a Function,
    info: &'a ShaderInfo,
    letters: [Option<Value>; LETTERS],
    exact: bool,
}

impl Matcher<'_> {
    fn operands(&mut self, op: Op, args: &[Value], patterns: &[Pattern]) -> bool {
        let [a, b, rest @ ..] = args else {
            return args.iter().zip(patterns).all(|(&arg, pattern)| self.value(arg, pattern));
        };
        let before = (self.letters, self.exact);
        let swapped = commutes(op, self.info);
        for (a, b) in [(*a, *b), (*b, *a)].into_iter().take(1 + usize::from(swapped)) {
            let values = [a, b].into_iter().chain(rest.iter().copied());
            if values.zip(patterns).all(|(value, pattern)| self.value(value, pattern)) {
                return true;
            }
            (self.letters, self.exact) = before;
        }
        false
    }

    fn value(&mut self, value: Value, pattern: &Pattern) -> bool {
        match pattern {
            Pattern::Letter(letter) => self.letter(value, *letter),
            Pattern::Literal(literal) => is_literal(self.func, value, *literal),
            Pattern::Op(op, operands) => {
                let func = self.func;
                let Some(def) = func.def_inst(value).filter(|&def| func.op(def) == *op) else { return false };
                self.exact |= func.exact(def);
                self.operands(*op, func.args(def), operands)
            }
        }
    }

    fn letter(&mut self, value: Value, letter: Letter) -> bool {
        if let Some(known) = self.letters[letter.number] {
            return known == value;
        }
        if letter.constant {
            let Some(lanes) = self.func.const_lanes(value) else { return false };
            if letter.power && !lanes.iter().all(|bits| bits.is_power_of_two()) {
                return false;
            }
        }
        self.letters[letter.number] = Some(value);
        true
    }
}

fn is_literal(func: &Function, value: Value, literal: Literal) -> bool {
    let base = func.ty(value).base;
    func.const_lanes(value).is_some_and(|lanes| lanes.iter().all(|&bits| bits == literal.bits(base)))
}

fn replace(
    func: &mut Function,
    inst: Inst,
    info: &ShaderInfo,
    rule: &Parsed,
    letters: &[Option<Value>; LETTERS],
    exact: bool,
) -> Rewritten {
    let result = func.result(inst);
    let ty = func.ty(result);
    match &rule.replace {
        Pattern::Letter(letter) => letters[letter.number].map_or(Rewritten::No, Rewritten::Value),
        Pattern::Literal(literal) => {
            make_constant(func, inst, literal.bits(ty.base));
            Rewritten::InPlace
        }
        Pattern::Op(op, operands) => {
            let maker = Maker { inst, info, letters, exact };
            let Some((args, len)) = maker.operands(func, *op, operands, ty) else { return Rewritten::No };
            func.replace_inst(inst, *op, Payload::None, &args[..len]);
            func.set_exact(inst, exact && op.has(Traits::FLOAT));
            fold(func, inst, info);
            Rewritten::InPlace
        }
    }
}

/// Makes what replaces an instruction, before it.
struct Maker<'a> {
    inst: Inst,
    info: &'a ShaderInfo,
    letters: &'a [Option<Value>; LETTERS],
    exact: bool,
}

/// The most operands of an operation of a rule.
const OPERANDS: usize = 4;

impl Maker<'_> {
    /// The operands of an operation. `ty` is its type where none of them says it.
    fn operands(
        &self,
        func: &mut Function,
        op: Op,
        patterns: &[Pattern],
        ty: Type,
    ) -> Option<([Value; OPERANDS], usize)> {
        let mut made = [None; OPERANDS];
        for (value, pattern) in made.iter_mut().zip(patterns) {
            *value = match pattern {
                Pattern::Letter(letter) => Some(self.letters[letter.number]?),
                Pattern::Literal(_) => None,
                Pattern::Op(op, operands) => Some(self.op(func, *op, operands, ty)?),
            };
        }
        let rules = op.row().operands;
        let of_operand =
            rules.iter().zip(made).find_map(|(rule, value)| value.filter(|_| matches!(rule, Rule::T(_))));
        let t = of_operand.map_or(ty, |value| func.ty(value));
        let mut values = [func.result(self.inst); OPERANDS];
        for (number, pattern) in patterns.iter().enumerate() {
            values[number] = match (made[number], pattern, rules.get(number)?) {
                (Some(value), ..) => value,
                (None, Pattern::Literal(literal), rule) => {
                    let ty = match rule {
                        Rule::Lanes(base) => t.with_base(*base),
                        _ => t,
                    };
                    Builder::before(func, self.inst).splat_constant(ty, literal.bits(ty.base))
                }
                _ => return None,
            };
        }
        Some((values, patterns.len()))
    }

    fn op(&self, func: &mut Function, op: Op, patterns: &[Pattern], ty: Type) -> Option<Value> {
        let (args, len) = self.operands(func, op, patterns, ty)?;
        let mut builder = Builder::before(func, self.inst);
        builder.exact = self.exact;
        let value = builder.alu(op, &args[..len]);
        if let Some(inst) = func.def_inst(value) {
            fold(func, inst, self.info);
        }
        Some(value)
    }
}
