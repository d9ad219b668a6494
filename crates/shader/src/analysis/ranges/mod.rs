//! Range analysis: unsigned and signed bounds of the lanes of values, and known bits.
//!
//! Takes any shader. A value whose bits are defined is within its [`Range`] in every lane and invocation. Ranges come from constants,
//! system values, operations and conditions: in an arm of an `if`, and after an `if` whose other arm does not reach its end, the
//! compared values are bounded by the comparison. Parameters of loops take two walks: the first assumes nothing about them, the second
//! assumes the union of the values that enter and continue the loop in the first.

mod transfer;

pub use transfer::{Range, decide, transfer};

use crate::ir::{Base, Function, Inst, Op, Payload, Region, ShaderInfo, SystemValue, Traits, Value};
use unwedge_base::entity::SecondaryMap;

/// The range of a lane of a system value.
fn system_value(info: &ShaderInfo, value: SystemValue, lane: Option<u8>) -> Range {
    let size = info.workgroup_size.map(u64::from);
    let dimension = |lane: Option<u8>| match lane {
        Some(lane) => size.get(usize::from(lane)).copied().unwrap_or(u64::MAX),
        None => size.iter().copied().max().unwrap_or(u64::MAX),
    };
    let invocations = size.iter().fold(1u64, |product, size| product.saturating_mul(*size));
    let below = |count: u64| Range::unsigned(32, 0, count.saturating_sub(1));
    match value {
        SystemValue::LocalInvocationId => below(dimension(lane)),
        SystemValue::LocalInvocationIndex => below(invocations),
        SystemValue::WorkgroupSize => match lane {
            Some(lane) => Range::constant(32, size.get(usize::from(lane)).copied().unwrap_or(0)),
            None => Range::unsigned(32, 0, dimension(None)),
        },
        SystemValue::SubgroupSize => Range::unsigned(32, 1, 128),
        SystemValue::SubgroupInvocation => below(128),
        SystemValue::SubgroupId => below(invocations),
        _ => Range::full(32),
    }
}

/// The depth to which conditions are followed.
const MAX_CONDITION_DEPTH: usize = 4;

/// The ranges of the values of a function at the current instruction of a walk.
#[derive(Debug, Default)]
pub struct Ranges {
    current: SecondaryMap<Value, Option<Range>>,
    /// Entries of `current` before conditions refined them, restored at the end of a region.
    log: Vec<(Value, Option<Range>)>,
    /// By result of a structured instruction: the union of the operands of its breaks.
    leaving: SecondaryMap<Value, Option<Range>>,
    /// Which structured instructions were left so far.
    left: SecondaryMap<Inst, bool>,
    /// By parameter of a loop: the union of its starts and the operands of continues, of this walk (`starting`) and the last one.
    starting: SecondaryMap<Value, Option<Range>>,
    params: SecondaryMap<Value, Option<Range>>,
}

impl Ranges {
    /// Walks a function and calls `visit` for each instruction with the ranges that hold before it.
    pub fn walk(func: &Function, info: &ShaderInfo, visit: &mut dyn FnMut(&Ranges, Inst)) {
        let mut ranges = Ranges::default();
        if func.walk().any(|inst| func.op(inst) == Op::Loop) {
            ranges.region(func, info, func.body(), &mut |_, _| {});
            ranges.params = std::mem::take(&mut ranges.starting);
            ranges.leaving = SecondaryMap::default();
            ranges.left = SecondaryMap::default();
        }
        ranges.region(func, info, func.body(), visit);
    }

    /// The range of a value.
    pub fn of(&self, func: &Function, value: Value) -> Range {
        self.current[value].unwrap_or_else(|| Range::full(func.ty(value).base.bits()))
    }

    /// The constant result of the instruction that the walk is at, if its range has one number only.
    pub fn decided(&self, func: &Function, info: &ShaderInfo, inst: Inst) -> Option<u64> {
        self.result(func, info, inst)?.number()
    }

    /// The depth of regions is limited, and so is the recursion.
    fn region(
        &mut self,
        func: &Function,
        info: &ShaderInfo,
        region: Region,
        visit: &mut dyn FnMut(&Ranges, Inst),
    ) {
        let mark = self.log.len();
        for inst in func.insts(region) {
            visit(self, inst);
            match (func.op(inst), func.payload(inst)) {
                (Op::If, Payload::Arms(then, other)) => self.arms(func, info, inst, [then, other], visit),
                (Op::Loop, Payload::Body(body)) => {
                    for (number, &param) in func.params(body).iter().enumerate() {
                        let start = self.of(func, func.args(inst)[number]);
                        self.starting[param] =
                            Some(self.starting[param].map_or(start, |range| range.union(start)));
                        self.current[param] = self.params[param];
                    }
                    self.region(func, info, body, visit);
                }
                (Op::Block, Payload::Body(body)) => self.region(func, info, body, visit),
                (Op::Break, Payload::Target(target)) => {
                    self.left[target] = true;
                    for (&result, &arg) in func.results(target).iter().zip(func.args(inst)) {
                        let range = self.of(func, arg);
                        self.leaving[result] =
                            Some(self.leaving[result].map_or(range, |other| other.union(range)));
                    }
                }
                (Op::Continue, Payload::Target(target)) => {
                    if let Payload::Body(body) = func.payload(target) {
                        for (&param, &arg) in func.params(body).iter().zip(func.args(inst)) {
                            let range = self.of(func, arg);
                            self.starting[param] =
                                Some(self.starting[param].map_or(range, |other| other.union(range)));
                        }
                    }
                }
                _ => {
                    if let [result] = *func.results(inst) {
                        self.current[result] = self.result(func, info, inst);
                    }
                }
            }
            if func.op(inst).has(Traits::STRUCTURED) {
                for &result in func.results(inst) {
                    self.current[result] = self.leaving[result];
                }
            }
        }
        for (value, before) in self.log.drain(mark..).rev() {
            self.current[value] = before;
        }
    }

    fn arms(
        &mut self,
        func: &Function,
        info: &ShaderInfo,
        inst: Inst,
        arms: [Region; 2],
        visit: &mut dyn FnMut(&Ranges, Inst),
    ) {
        let condition = func.args(inst)[0];
        let mut reaches = [false; 2];
        for (number, arm) in arms.into_iter().enumerate() {
            let mark = self.log.len();
            self.left[inst] = false;
            self.assume(func, condition, number == 0, 0);
            self.region(func, info, arm, visit);
            for (value, before) in self.log.drain(mark..).rev() {
                self.current[value] = before;
            }
            reaches[number] = self.left[inst];
        }
        match reaches {
            [true, false] => self.assume(func, condition, true, 0),
            [false, true] => self.assume(func, condition, false, 0),
            _ => {}
        }
    }

    fn refine(&mut self, func: &Function, value: Value, range: Range) {
        let before = self.of(func, value);
        let refined = before.intersection(range);
        if refined != before {
            self.log.push((value, self.current[value].replace(refined)));
        }
    }

    /// Refines ranges by a condition that is known to be true or false.
    fn assume(&mut self, func: &Function, condition: Value, holds: bool, depth: usize) {
        self.refine(func, condition, Range::constant(1, holds.into()));
        let Some(inst) = func.def_inst(condition) else { return };
        if depth == MAX_CONDITION_DEPTH || func.ty(condition).lanes != 1 {
            return;
        }
        match (func.op(inst), func.args(inst)) {
            (Op::INot, &[a]) => self.assume(func, a, !holds, depth + 1),
            (Op::IAnd, &[a, b]) if holds => {
                [a, b].into_iter().for_each(|value| self.assume(func, value, true, depth + 1));
            }
            (Op::IOr, &[a, b]) if !holds => {
                [a, b].into_iter().for_each(|value| self.assume(func, value, false, depth + 1));
            }
            (Op::ULt | Op::UGe | Op::ILt | Op::IGe | Op::IEq | Op::INe, &[a, b])
                if func.ty(a).base != Base::Handle =>
            {
                self.compared(func, func.op(inst), a, b, holds);
            }
            _ => {}
        }
    }

    fn compared(&mut self, func: &Function, op: Op, a: Value, b: Value, holds: bool) {
        let (of_a, of_b) = (self.of(func, a), self.of(func, b));
        let width = of_a.width;
        let full = Range::full(width);
        let less = matches!(op, Op::ULt | Op::ILt) == holds;
        let (for_a, for_b) = match op {
            Op::ULt | Op::UGe if less => (
                Range::unsigned(width, 0, of_b.umax.saturating_sub(1)),
                Range::unsigned(width, of_a.umin.saturating_add(1), u64::MAX),
            ),
            Op::ULt | Op::UGe => {
                (Range::unsigned(width, of_b.umin, u64::MAX), Range::unsigned(width, 0, of_a.umax))
            }
            Op::ILt | Op::IGe if less => (
                Range::signed(width, i64::MIN, of_b.smax.saturating_sub(1)),
                Range::signed(width, of_a.smin.saturating_add(1), i64::MAX),
            ),
            Op::ILt | Op::IGe => {
                (Range::signed(width, of_b.smin, i64::MAX), Range::signed(width, i64::MIN, of_a.smax))
            }
            _ if (op == Op::IEq) == holds => (of_b, of_a),
            _ => match (of_a.number(), of_b.number()) {
                // Not equal to the first or last number of the range.
                (_, Some(number)) if number == of_a.umin && number < full.umax => {
                    (Range::unsigned(width, number + 1, u64::MAX), full)
                }
                (_, Some(number)) if number == of_a.umax && number > 0 => {
                    (Range::unsigned(width, 0, number - 1), full)
                }
                _ => (full, full),
            },
        };
        self.refine(func, a, for_a);
        self.refine(func, b, for_b);
    }

    /// The range of the result of an instruction without regions.
    fn result(&self, func: &Function, info: &ShaderInfo, inst: Inst) -> Option<Range> {
        let result = func.result(inst);
        let width = func.ty(result).base.bits();
        if width == 0 {
            return None;
        }
        let args = func.args(inst);
        let of = |value: Value| self.of(func, value);
        Some(match (func.op(inst), func.payload(inst)) {
            (Op::Const, Payload::Const(bits)) => Range::constant(width, bits),
            (Op::SysVal, Payload::SysVal(value)) if width == 32 => system_value(info, value, None),
            (Op::Extract, Payload::Lane(lane)) => match func.def_inst(args[0]).map(|def| func.payload(def)) {
                Some(Payload::SysVal(value)) if width == 32 => system_value(info, value, Some(lane)),
                _ => of(args[0]),
            },
            (Op::Vec, _) => args.iter().map(|&arg| of(arg)).reduce(Range::union)?,
            (Op::ExtractDyn, _) => of(args[0]),
            (Op::InsertDyn, _) => of(args[0]).union(of(args[1])),
            (op, _) if op.has(Traits::ELEMENTWISE) && !op.has(Traits::FLOAT) && args.len() <= 4 => {
                if args.iter().any(|&arg| func.ty(arg).base == Base::Handle) {
                    return None;
                }
                let mut ranges = [Range::full(1); 4];
                for (range, &arg) in ranges.iter_mut().zip(args) {
                    *range = of(arg);
                }
                transfer(op, width, &ranges[..args.len()])
            }
            (op, _) if op.is_subgroup_move() => of(args[0]),
            _ => return None,
        })
    }
}
