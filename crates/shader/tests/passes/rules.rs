//! Both sides of every rule are evaluated: all bits of booleans and, for two operands, of 8 bits; special and random ones of the rest.

use unwedge_shader::ir::{Base, BaseSet, FloatMode, Op, Round, Rule, ShaderInfo, Traits};
use unwedge_shader::passes::{Letter, Pattern, RULES, RuleClass};
use unwedge_shader::semantics::{Eval, eval, is_defined};
use unwedge_testkit::mutate::Rng;

/// As many as a rule has at most.
const LETTERS: usize = 8;

/// Bases of the letters of a rule, for an operation whose type variable is `base` where nothing else says it.
#[derive(Default)]
struct Bases([Option<(Base, Letter)>; LETTERS]);

impl Bases {
    /// Whether a pattern can have a base.
    fn visit(&mut self, pattern: &Pattern, wanted: Base, free: Base) -> bool {
        match pattern {
            Pattern::Literal(_) => true,
            Pattern::Letter(letter) => {
                let known = self.0[letter.number].get_or_insert((wanted, *letter));
                known.0 == wanted
            }
            Pattern::Op(op, operands) => {
                let Some(t) = type_variable(*op, wanted, free) else { return false };
                let rules = op.row().operands;
                rules.iter().zip(operands).all(|(rule, operand)| match operand_base(rule, t) {
                    Some(base) => self.visit(operand, base, free),
                    None => false,
                })
            }
        }
    }
}

/// The type variable of an operation whose result has a base.
fn type_variable(op: Op, wanted: Base, free: Base) -> Option<Base> {
    let row = op.row();
    let set = row.operands.iter().find_map(|rule| match rule {
        Rule::T(set) => Some(*set),
        _ => None,
    });
    let t = match row.result? {
        Rule::T(_) => wanted,
        Rule::Lanes(base) if base == wanted => free,
        _ => return None,
    };
    set.unwrap_or(BaseSet::ANY).has(t).then_some(t).filter(|t| *t != Base::Handle)
}

fn operand_base(rule: &Rule, t: Base) -> Option<Base> {
    match rule {
        Rule::T(set) => set.has(t).then_some(t),
        Rule::Lanes(base) => Some(*base),
        _ => None,
    }
}

/// A pattern evaluated: its bits, and whether they are defined.
fn evaluate(
    pattern: &Pattern,
    wanted: Base,
    free: Base,
    values: &[u64; LETTERS],
    info: &ShaderInfo,
) -> (u64, bool) {
    match pattern {
        Pattern::Literal(literal) => (literal.bits(wanted), true),
        Pattern::Letter(letter) => (values[letter.number], true),
        Pattern::Op(op, operands) => {
            let t = type_variable(*op, wanted, free).expect("a type");
            let env = Eval::new(t, info);
            let (mut args, mut defined) = (Vec::new(), true);
            for (rule, operand) in op.row().operands.iter().zip(operands) {
                let base = operand_base(rule, t).expect("a base");
                let (bits, known) = evaluate(operand, base, free, values, info);
                args.push(bits);
                defined &= known;
            }
            defined &= is_defined(*op, &env, &args);
            (eval(*op, &env, &args).expect("an elementwise operation"), defined)
        }
    }
}

fn is_float(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Op(op, operands) => {
            op.has(Traits::FLOAT) || matches!(op, Op::FNeg | Op::FAbs) || operands.iter().any(is_float)
        }
        _ => false,
    }
}

/// Bits that are likely to make a difference.
fn special(base: Base, rng: &mut Rng) -> u64 {
    let random = rng.next_u64();
    let float = |number: f64| unwedge_shader::passes::Literal::Float(number).bits(base);
    let bits = base.bits();
    let value = match rng.below(12) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => 1 << (bits - 1),
        4 => (1 << (bits - 1)) - 1,
        5 if bits >= 16 => {
            float([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN][rng.below(9)])
        }
        6 if bits >= 16 => float((random as i32 as f64) / f64::from(1 << 20)),
        7 => random % 5,
        8 => (random % u64::from(bits)).wrapping_neg(),
        9 => 1 << (random % u64::from(bits)),
        // Denormals.
        10 => random % 1024,
        _ => random,
    };
    value & base.mask()
}

fn finite(base: Base, bits: u64) -> bool {
    let infinity = unwedge_shader::passes::Literal::Float(f64::INFINITY).bits(base);
    bits & infinity != infinity
}

fn is_nan(base: Base, bits: u64) -> bool {
    let infinity = unwedge_shader::passes::Literal::Float(f64::INFINITY).bits(base);
    bits & base.mask() >> 1 > infinity
}

fn is_zero(base: Base, bits: u64) -> bool {
    bits << 1 & base.mask() == 0
}

fn modes(class: RuleClass, float: bool) -> Vec<FloatMode> {
    if !float {
        return vec![FloatMode::default()];
    }
    let mut modes = Vec::new();
    for round in [Round::NearestEven, Round::Zero] {
        for flush in [None, Some(false), Some(true)] {
            let any_mode = class != RuleClass::Numbers;
            if any_mode || flush != Some(true) {
                modes.push(FloatMode { round, flush, preserve: any_mode });
            }
        }
    }
    modes
}

/// Compares both sides for one assignment of letters. Whether the rule said anything about it.
fn compare(
    rule: &unwedge_shader::passes::Rule,
    sides: &[Pattern; 2],
    (root, free): (Base, Base),
    values: &[u64; LETTERS],
    info: &ShaderInfo,
) -> bool {
    let (left, defined) = evaluate(&sides[0], root, free, values, info);
    if !defined {
        return false;
    }
    let (right, known) = evaluate(&sides[1], root, free, values, info);
    let float_result = root != Base::B1;
    let equal = left == right
        || rule.class == RuleClass::Numbers
            && float_result
            && (!finite(root, left) || is_zero(root, left) && is_zero(root, right));
    let mode = info.float_modes[0];
    assert!(
        known && equal,
        "{} -> {}: {left:#x} and {right:#x} ({known}) for {values:x?} of {free:?}, {mode:?}",
        rule.find,
        rule.replace
    );
    true
}

#[test]
fn both_sides_of_every_rule_are_the_same() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 200_000 } else { 2_000 };
    let mut rng = Rng::new(33);
    for rule in RULES {
        let parse = |text: &str| Pattern::parse(text).unwrap_or_else(|| panic!("{text} is not a pattern"));
        let sides = [parse(rule.find), parse(rule.replace)];
        let Pattern::Op(op, _) = &sides[0] else { panic!("{} is not an operation", rule.find) };
        let float = is_float(&sides[0]);
        let (mut tested, mut said) = (0, 0);
        let frees = [Base::B1, Base::B8, Base::B16, Base::B32, Base::B64];
        // The root may be a boolean that is computed from values of any base.
        let roots = frees.into_iter().flat_map(|free| match op.row().result {
            Some(Rule::Lanes(base)) => vec![(base, free)],
            _ if free == Base::B1 => vec![(free, free)],
            _ => vec![(free, free), (Base::B1, free)],
        });
        for (root, free) in roots {
            let mut bases = Bases::default();
            if !bases.visit(&sides[0], root, free) || (float && free.bits() < 16) {
                continue;
            }
            tested += 1;
            assert!(bases.visit(&sides[1], root, free), "{} has another type", rule.replace);
            let letters: Vec<(Base, Letter)> = bases.0.into_iter().flatten().collect();
            let bits: u32 = letters.iter().map(|(base, _)| base.bits()).sum();
            for mode in modes(rule.class, float) {
                let info = ShaderInfo { float_modes: [mode; 3], ..ShaderInfo::default() };
                let exhaustive = bits <= 16;
                let count = if exhaustive { 1 << bits } else { rounds };
                for round in 0..count as u64 {
                    let (mut values, mut from) = ([0; LETTERS], round);
                    for &(base, letter) in &letters {
                        values[letter.number] = if exhaustive {
                            let value = from & base.mask();
                            from >>= base.bits();
                            value
                        } else if letter.power {
                            1 << rng.below(base.bits() as usize)
                        } else {
                            special(base, &mut rng)
                        };
                    }
                    let power = |(_, letter): &(Base, Letter)| {
                        !letter.power || values[letter.number].is_power_of_two()
                    };
                    let number = |(base, letter): &(Base, Letter)| {
                        let bits = values[letter.number];
                        *base == Base::B1
                            || match rule.class {
                                RuleClass::Bits => true,
                                RuleClass::Numbers => finite(*base, bits),
                                RuleClass::Ordered => !is_nan(*base, bits),
                            }
                    };
                    if letters.iter().all(power) && letters.iter().all(number) {
                        said += usize::from(compare(rule, &sides, (root, free), &values, &info));
                    }
                }
            }
        }
        assert!(tested > 0 && said > 0, "{} was never tested", rule.find);
    }
    println!("{} rules", RULES.len());
}
