//! The rules of algebraic rewriting, as data: a pattern, what replaces it, and when it holds.
//!
//! A pattern is an operation in parentheses, or a letter, or a number. Lower-case letters stand for any values, the same letter for the same
//! value; `P` and `Q` stand for constants that are powers of two in every lane, other capitals for any constants. A number is a constant with
//! this value in every lane; one with a point is a float. Operands of commutative operations match in either order.
//!
//! The test of this module evaluates both sides of each rule for all operand widths and float modes.

use crate::ir::Op;
use std::sync::OnceLock;
use unwedge_isa::amdgcn::semantics::soft;

/// When a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleClass {
    /// Always, bit for bit.
    Bits,
    /// For finite floats, except for the sign of zeros: where the float mode does not preserve signs of zeros, infinities and NaNs and does not flush denormals, and nothing
    /// that matches is exact.
    Numbers,
    /// Where no letter is a NaN, whatever the float mode and whether what matches is exact. Shaders test for NaNs by comparing a value with itself.
    Ordered,
}

/// A rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// What is replaced.
    pub find: &'static str,
    /// What replaces it.
    pub replace: &'static str,
    /// When it holds.
    pub class: RuleClass,
}

const fn bits(find: &'static str, replace: &'static str) -> Rule {
    Rule { find, replace, class: RuleClass::Bits }
}

const fn numbers(find: &'static str, replace: &'static str) -> Rule {
    Rule { find, replace, class: RuleClass::Numbers }
}

const fn ordered(find: &'static str, replace: &'static str) -> Rule {
    Rule { find, replace, class: RuleClass::Ordered }
}

/// Every rule. The first one that matches is applied.
pub const RULES: &[Rule] = &[
    // Integer sums and products.
    bits("(iadd a 0)", "a"),
    bits("(isub a 0)", "a"),
    bits("(isub a a)", "0"),
    bits("(isub 0 a)", "(ineg a)"),
    bits("(ineg (ineg a))", "a"),
    bits("(iadd a (ineg b))", "(isub a b)"),
    bits("(isub a (ineg b))", "(iadd a b)"),
    bits("(ineg (isub a b))", "(isub b a)"),
    bits("(iadd (isub a b) b)", "a"),
    bits("(isub (iadd a b) b)", "a"),
    bits("(isub a C)", "(iadd a (ineg C))"),
    bits("(iadd (iadd a C) D)", "(iadd a (iadd C D))"),
    bits("(isub C (iadd a D))", "(isub (isub C D) a)"),
    bits("(imul a 0)", "0"),
    bits("(imul a 1)", "a"),
    bits("(imul a -1)", "(ineg a)"),
    bits("(imul a P)", "(ishl a (find_lsb P))"),
    bits("(imul (imul a C) D)", "(imul a (imul C D))"),
    bits("(umul_high a 0)", "0"),
    bits("(umul_high a 1)", "0"),
    bits("(imul_high a 0)", "0"),
    bits("(udiv a 1)", "a"),
    bits("(udiv a P)", "(ushr a (find_lsb P))"),
    bits("(umod a 1)", "0"),
    bits("(umod a P)", "(iand a (isub P 1))"),
    bits("(idiv a 1)", "a"),
    bits("(irem a 1)", "0"),
    bits("(imod a 1)", "0"),
    bits("(iabs (iabs a))", "(iabs a)"),
    bits("(iabs (ineg a))", "(iabs a)"),
    bits("(imin a a)", "a"),
    bits("(imax a a)", "a"),
    bits("(umin a a)", "a"),
    bits("(umax a a)", "a"),
    bits("(umin a 0)", "0"),
    bits("(umax a 0)", "a"),
    bits("(umin a -1)", "a"),
    bits("(umax a -1)", "-1"),
    bits("(umin (umin a C) D)", "(umin a (umin C D))"),
    bits("(umax (umax a C) D)", "(umax a (umax C D))"),
    bits("(imin (imin a C) D)", "(imin a (imin C D))"),
    bits("(imax (imax a C) D)", "(imax a (imax C D))"),
    // Bits.
    bits("(iand a a)", "a"),
    bits("(ior a a)", "a"),
    bits("(ixor a a)", "0"),
    bits("(iand a 0)", "0"),
    bits("(ior a 0)", "a"),
    bits("(ixor a 0)", "a"),
    bits("(iand a -1)", "a"),
    bits("(ior a -1)", "-1"),
    bits("(ixor a -1)", "(inot a)"),
    bits("(inot (inot a))", "a"),
    bits("(iand a (inot a))", "0"),
    bits("(ior a (inot a))", "-1"),
    bits("(iand a (ior a b))", "a"),
    bits("(ior a (iand a b))", "a"),
    bits("(iand (iand a C) D)", "(iand a (iand C D))"),
    bits("(ior (ior a C) D)", "(ior a (ior C D))"),
    bits("(ixor (ixor a C) D)", "(ixor a (ixor C D))"),
    bits("(ixor (ixor a b) b)", "a"),
    bits("(iand (inot a) (inot b))", "(inot (ior a b))"),
    bits("(ior (inot a) (inot b))", "(inot (iand a b))"),
    bits("(ishl a 0)", "a"),
    bits("(ishr a 0)", "a"),
    bits("(ushr a 0)", "a"),
    bits("(ishl 0 a)", "0"),
    bits("(ishr 0 a)", "0"),
    bits("(ushr 0 a)", "0"),
    bits("(bit_reverse (bit_reverse a))", "a"),
    bits("(bitfield_insert a b c 0)", "a"),
    bits("(ubitfield_extract a b 0)", "0"),
    bits("(ibitfield_extract a b 0)", "0"),
    // Comparisons of integers.
    bits("(ieq a a)", "-1"),
    bits("(ine a a)", "0"),
    bits("(ilt a a)", "0"),
    bits("(ige a a)", "-1"),
    bits("(ult a a)", "0"),
    bits("(uge a a)", "-1"),
    bits("(ult a 0)", "0"),
    bits("(uge a 0)", "-1"),
    bits("(ult a 1)", "(ieq a 0)"),
    bits("(uge a 1)", "(ine a 0)"),
    bits("(ult 0 a)", "(ine a 0)"),
    bits("(uge 0 a)", "(ieq a 0)"),
    bits("(inot (ieq a b))", "(ine a b)"),
    bits("(inot (ine a b))", "(ieq a b)"),
    bits("(inot (ilt a b))", "(ige a b)"),
    bits("(inot (ige a b))", "(ilt a b)"),
    bits("(inot (ult a b))", "(uge a b)"),
    bits("(inot (uge a b))", "(ult a b)"),
    bits("(ieq (isub a b) 0)", "(ieq a b)"),
    bits("(ine (isub a b) 0)", "(ine a b)"),
    bits("(ieq (ixor a b) 0)", "(ieq a b)"),
    bits("(ine (ixor a b) 0)", "(ine a b)"),
    bits("(ieq (iadd a C) D)", "(ieq a (isub D C))"),
    bits("(ine (iadd a C) D)", "(ine a (isub D C))"),
    // Selects.
    bits("(select -1 a b)", "a"),
    bits("(select 0 a b)", "b"),
    bits("(select a b b)", "b"),
    bits("(select (inot a) b c)", "(select a c b)"),
    bits("(select a (select a b c) d)", "(select a b d)"),
    bits("(select a b (select a c d))", "(select a b d)"),
    bits("(iand (select a b 0) (select a c 0))", "(select a (iand b c) 0)"),
    // Floats, bit for bit.
    bits("(fneg (fneg a))", "a"),
    bits("(fabs (fabs a))", "(fabs a)"),
    bits("(fabs (fneg a))", "(fabs a)"),
    bits("(inot (feq a b))", "(fneu a b)"),
    bits("(inot (fneu a b))", "(feq a b)"),
    bits("(flt a a)", "0"),
    bits("(feq (fneg a) (fneg b))", "(feq a b)"),
    bits("(fneu (fneg a) (fneg b))", "(fneu a b)"),
    bits("(flt (fneg a) (fneg b))", "(flt b a)"),
    bits("(fge (fneg a) (fneg b))", "(fge b a)"),
    bits("(ffloor (ffloor a))", "(ffloor a)"),
    bits("(fceil (fceil a))", "(fceil a)"),
    bits("(ftrunc (ftrunc a))", "(ftrunc a)"),
    bits("(fround_even (fround_even a))", "(fround_even a)"),
    bits("(fquantize_f16 (fquantize_f16 a))", "(fquantize_f16 a)"),
    // Comparisons of floats that are no NaNs.
    ordered("(feq a a)", "-1"),
    ordered("(fneu a a)", "0"),
    ordered("(fge a a)", "-1"),
    ordered("(inot (flt a b))", "(fge a b)"),
    ordered("(inot (fge a b))", "(flt a b)"),
    // Floats, as numbers.
    numbers("(fadd a 0.0)", "a"),
    numbers("(fsub a 0.0)", "a"),
    numbers("(fsub 0.0 a)", "(fneg a)"),
    numbers("(fadd a (fneg b))", "(fsub a b)"),
    numbers("(fsub a (fneg b))", "(fadd a b)"),
    numbers("(fsub a a)", "0.0"),
    numbers("(fmul a 1.0)", "a"),
    numbers("(fmul a -1.0)", "(fneg a)"),
    numbers("(fmul a 0.0)", "0.0"),
    numbers("(fmul (fneg a) (fneg b))", "(fmul a b)"),
    numbers("(fmul a 2.0)", "(fadd a a)"),
    numbers("(fdiv a 1.0)", "a"),
    numbers("(ffma a 1.0 b)", "(fadd a b)"),
    numbers("(ffma a 0.0 b)", "b"),
    numbers("(ffma a b 0.0)", "(fmul a b)"),
    numbers("(ffma (fneg a) (fneg b) c)", "(ffma a b c)"),
    numbers("(fmin a a)", "a"),
    numbers("(fmax a a)", "a"),
];

/// A number of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal {
    /// An integer or boolean.
    Integer(i64),
    /// A float.
    Float(f64),
}

impl Literal {
    /// Its bits in a lane.
    pub fn bits(self, base: crate::ir::Base) -> u64 {
        use crate::ir::Base;
        match (self, base) {
            (Literal::Integer(number), base) => number as u64 & base.mask(),
            (Literal::Float(number), Base::B64) => number.to_bits(),
            (Literal::Float(number), Base::B16) => {
                soft::convert(soft::F64, soft::F16, number.to_bits(), soft::Env::IEEE)
            }
            (Literal::Float(number), _) => (number as f32).to_bits().into(),
        }
    }
}

/// A letter of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letter {
    /// Its number: a to h are 0 to 7, whatever their case.
    pub number: usize,
    /// Whether it is a constant.
    pub constant: bool,
    /// Whether it is a power of two in every lane.
    pub power: bool,
}

/// The most letters of a rule.
pub(super) const LETTERS: usize = 8;

/// A pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// A letter.
    Letter(Letter),
    /// A number.
    Literal(Literal),
    /// An operation.
    Op(Op, Vec<Pattern>),
}

impl Pattern {
    /// The pattern that a text is; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Pattern> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace();
        let pattern = Pattern::words(&mut words)?;
        words.next().is_none().then_some(pattern)
    }

    fn words<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Pattern> {
        let word = words.next()?;
        Pattern::word(word, words)
    }

    fn word<'t>(word: &str, words: &mut impl Iterator<Item = &'t str>) -> Option<Pattern> {
        if word == "(" {
            let op = Op::from_name(words.next()?)?;
            let mut operands = Vec::new();
            loop {
                match words.next()? {
                    ")" => break,
                    word => operands.push(Pattern::word(word, words)?),
                }
            }
            return (operands.len() == op.row().operands.len()).then_some(Pattern::Op(op, operands));
        }
        if word.contains('.') {
            return word.parse().ok().map(|number| Pattern::Literal(Literal::Float(number)));
        }
        if let Ok(number) = word.parse() {
            return Some(Pattern::Literal(Literal::Integer(number)));
        }
        let letter = word.bytes().next().filter(|_| word.len() == 1)?;
        let power = matches!(letter, b'P' | b'Q');
        let number = match letter {
            b'P' => 6,
            b'Q' => 7,
            other => usize::from(other.to_ascii_lowercase().checked_sub(b'a')?),
        };
        let constant = letter.is_ascii_uppercase();
        (number < LETTERS).then_some(Pattern::Letter(Letter { number, constant, power }))
    }
}

/// A rule whose patterns are parsed.
#[derive(Debug)]
pub(super) struct Parsed {
    pub find: Vec<Pattern>,
    pub replace: Pattern,
    pub class: RuleClass,
    /// What must define some operand.
    pub needs: OperandNeeds,
}

/// A set of operations. Some share a bit, so it may have more than was put into it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OpSet(u64);

impl OpSet {
    pub fn insert(&mut self, op: Op) {
        self.0 |= 1 << (op as u64 % 64);
    }
}

/// What a pattern requires of the operations of the instructions that define its operands: in each set, one is. An empty set requires nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperandNeeds([OpSet; 2]);

impl OperandNeeds {
    fn of(operands: &[Pattern]) -> OperandNeeds {
        let (mut constant, mut made) = (OpSet::default(), OpSet::default());
        let is_constant = |operand: &Pattern| match operand {
            Pattern::Letter(letter) => letter.constant,
            Pattern::Literal(_) => true,
            Pattern::Op(..) => false,
        };
        if operands.iter().any(is_constant) {
            constant.insert(Op::Const);
            constant.insert(Op::Vec);
        }
        let op = operands.iter().find_map(|operand| match operand {
            Pattern::Op(op, _) => Some(*op),
            _ => None,
        });
        if let Some(op) = op {
            made.insert(op);
        }
        OperandNeeds([constant, made])
    }

    /// Whether operands that these operations define may match.
    pub fn may_match(self, ops: OpSet) -> bool {
        self.0.iter().all(|needed| needed.0 == 0 || needed.0 & ops.0 != 0)
    }
}

/// The rules that start with an operation, in their order.
pub(super) fn rules_of(op: Op) -> &'static [Parsed] {
    static PARSED: OnceLock<Vec<Vec<Parsed>>> = OnceLock::new();
    let parsed = PARSED.get_or_init(|| {
        let mut parsed: Vec<Vec<Parsed>> = Op::ALL.iter().map(|_| Vec::new()).collect();
        for rule in RULES {
            if let (Some(Pattern::Op(op, find)), Some(replace)) =
                (Pattern::parse(rule.find), Pattern::parse(rule.replace))
                && let Some(list) = parsed.get_mut(op as usize)
            {
                let needs = OperandNeeds::of(&find);
                list.push(Parsed { find, replace, class: rule.class, needs });
            }
        }
        parsed
    });
    parsed.get(op as usize).map_or(&[], Vec::as_slice)
}
