//! Tests for NaNs beside comparisons of floats: one comparison that includes the test.

use super::combine::Combiner;
use crate::compares;
use crate::ir::{Inst, Op, Operand, Temp};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::{Relation, Type};

/// A comparison of floats.
#[derive(Debug, Clone, Copy)]
struct FloatCompare {
    relation: Relation,
    ty: Type,
    operands: [Operand; 2],
}

/// What a comparison says of NaNs, and of nothing else.
#[derive(Debug, Clone, Copy)]
struct NanTest {
    /// It holds where one of the values is a NaN; otherwise, where none is.
    unordered: bool,
    /// The values; twice the same if it is one.
    values: [Operand; 2],
}

/// The relation that also holds for NaNs.
fn with_nans(relation: Relation) -> Option<Relation> {
    use Relation as R;
    Some(match relation {
        R::Lt => R::Nge,
        R::Le => R::Ngt,
        R::Gt => R::Nle,
        R::Ge => R::Nlt,
        R::Eq => R::Nlg,
        R::Lg => R::Neq,
        _ => return None,
    })
}

/// The relation that holds in the same cases without NaNs.
fn without_nans(relation: Relation) -> Option<Relation> {
    use Relation as R;
    [R::Lt, R::Le, R::Gt, R::Ge, R::Eq, R::Lg].into_iter().find(|own| with_nans(*own) == Some(relation))
}

/// Whether a constant of a type is a NaN.
fn is_nan(bits: u64, ty: Type) -> bool {
    let infinity = match ty {
        Type::F16 => 0x7c00,
        Type::F32 => 0x7f80_0000,
        _ => 0x7ff0_0000_0000_0000,
    };
    bits & (u64::MAX >> (64 - ty.bits()) >> 1) > infinity
}

impl FloatCompare {
    fn nan_test(&self) -> Option<NanTest> {
        use Relation as R;
        let [a, b] = self.operands;
        let same = a.as_temp()? == b.as_temp()?;
        let unordered = match self.relation {
            R::U => true,
            R::O => false,
            R::Neq if same => true,
            R::Eq if same => false,
            _ => return None,
        };
        Some(NanTest { unordered, values: self.operands })
    }

    /// The values that may be NaNs, if constants are none.
    fn values(&self) -> Option<[Temp; 2]> {
        let [a, b] = self.operands;
        let number = |operand: Operand| operand.as_const().is_some_and(|bits| !is_nan(bits, self.ty));
        match (a.as_temp(), b.as_temp()) {
            (Some(a), Some(b)) => Some([a, b]),
            (Some(a), None) => number(b).then_some([a, a]),
            (None, Some(b)) => number(a).then_some([b, b]),
            (None, None) => None,
        }
    }
}

impl NanTest {
    /// Whether it tests these values, no less and no more.
    fn is_of(&self, [a, b]: [Temp; 2]) -> bool {
        let own = self.values.map(|value| value.as_temp());
        own == [Some(a), Some(b)] || own == [Some(b), Some(a)]
    }
}

impl Combiner<'_> {
    /// A comparison of floats that makes a mask which nothing else reads.
    fn float_compare(&self, mask: Operand) -> Option<FloatCompare> {
        let inner = self.only_source(mask)?;
        let Op::Hw(opcode) = self.program.op(inner) else { return None };
        let (relation, ty) = compares::relation(opcode)?;
        let &[a, b] = self.program.operands(inner) else { return None };
        ty.is_float().then_some(FloatCompare { relation, ty, operands: [a, b] })
    }

    /// The disjunction of a comparison and a test for NaNs, or the conjunction of one and a test that there are none; or of two tests.
    pub(super) fn ordering(&mut self, inst: Inst) -> bool {
        let either = match self.program.op(inst) {
            Op::Hw(Opcode::s_or_b32 | Opcode::s_or_b64) => true,
            Op::Hw(Opcode::s_and_b32 | Opcode::s_and_b64) => false,
            _ => return false,
        };
        let &[a, b] = self.program.operands(inst) else { return false };
        let mask = self.program.definitions(inst)[0].class == self.program.lane_mask();
        if !mask || self.more_is_read(inst) {
            return false;
        }
        let (Some(a), Some(b)) = (self.float_compare(a), self.float_compare(b)) else { return false };
        if a.ty != b.ty {
            return false;
        }
        let test = |compare: FloatCompare| compare.nan_test().filter(|test| test.unordered == either);
        let single = |test: NanTest| test.values[0].as_temp() == test.values[1].as_temp();
        let test_is_first = test(a).is_some();
        let (relation, operands) = match (test(a), test(b)) {
            (Some(a), Some(b)) if single(a) && single(b) => {
                (if either { Relation::U } else { Relation::O }, [a.values[0], b.values[0]])
            }
            (Some(test), None) | (None, Some(test)) => {
                let compare = if test_is_first { b } else { a };
                let relation = compare.relation;
                let both = if either { with_nans(relation) } else { without_nans(relation) };
                match both {
                    Some(both) if compare.values().is_some_and(|values| test.is_of(values)) => {
                        (both, compare.operands)
                    }
                    _ => return false,
                }
            }
            _ => return false,
        };
        let Some(opcode) = compares::opcode(relation, a.ty).filter(|opcode| self.variants.has(*opcode))
        else {
            return false;
        };
        if !self.fits(opcode, &operands, true) {
            return false;
        }
        self.become_op(inst, opcode, &operands);
        true
    }
}
