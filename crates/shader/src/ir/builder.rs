//! Writes instructions at a position of a function.

use super::entities::{Inst, Loc, Region, Value};
use super::function::Function;
use super::op::{Op, Rule};
use super::payload::Payload;
use super::types::{Base, Type};

/// Where a builder writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// At the end of a region.
    End(Region),
    /// Before an instruction.
    Before(Inst),
}

/// Writes instructions at a position. Operand types are the caller's duty; the validator checks them.
#[derive(Debug)]
pub struct Builder<'f> {
    /// The function.
    pub func: &'f mut Function,
    /// Where instructions go.
    pub at: Position,
    /// Their source position.
    pub loc: Option<Loc>,
    /// Whether float arithmetic is exact.
    pub exact: bool,
}

impl<'f> Builder<'f> {
    /// Writes at the end of a region.
    pub fn at_end(func: &'f mut Function, region: Region) -> Builder<'f> {
        Builder { func, at: Position::End(region), loc: None, exact: false }
    }

    /// Writes before an instruction, with its source position and exactness.
    pub fn before(func: &'f mut Function, inst: Inst) -> Builder<'f> {
        let (loc, exact) = (func.loc(inst), func.exact(inst));
        Builder { func, at: Position::Before(inst), loc, exact }
    }

    /// Any instruction.
    pub fn inst(&mut self, op: Op, payload: Payload, args: &[Value], results: &[Type]) -> Inst {
        let inst = self.func.make_inst(op, payload, args, results);
        self.func.set_loc(inst, self.loc);
        if self.exact && op.has(super::op::Traits::FLOAT) {
            self.func.set_exact(inst, true);
        }
        match self.at {
            Position::End(region) => self.func.append(region, inst),
            Position::Before(before) => self.func.insert_before(before, inst),
        }
        inst
    }

    /// Any instruction with one result.
    pub fn value(&mut self, op: Op, payload: Payload, args: &[Value], ty: Type) -> Value {
        let inst = self.inst(op, payload, args, &[ty]);
        self.func.result(inst)
    }

    /// An operation whose result type follows from its operands and the table.
    ///
    /// # Panics
    /// When the table does not say the result type: conversions, loads, bit casts.
    pub fn alu(&mut self, op: Op, args: &[Value]) -> Value {
        let ty =
            result_type(self.func, op, args).unwrap_or_else(|| panic!("{} needs a result type", op.name()));
        self.value(op, Payload::None, args, ty)
    }

    /// A conversion of every lane to another base.
    pub fn convert(&mut self, op: Op, base: Base, arg: Value) -> Value {
        let ty = self.func.ty(arg).with_base(base);
        self.value(op, Payload::None, &[arg], ty)
    }

    /// A constant scalar; bits above the width are cut.
    pub fn constant(&mut self, base: Base, bits: u64) -> Value {
        self.value(Op::Const, Payload::Const(bits & base.mask()), &[], Type::scalar(base))
    }

    /// A constant of 32 bits.
    pub fn u32(&mut self, bits: u32) -> Value {
        self.constant(Base::B32, bits.into())
    }

    /// A constant boolean.
    pub fn bool(&mut self, value: bool) -> Value {
        self.constant(Base::B1, value.into())
    }

    /// A constant scalar, or the vector of it.
    pub fn splat_constant(&mut self, ty: Type, bits: u64) -> Value {
        let scalar = self.constant(ty.base, bits);
        self.splat(scalar, ty.lanes)
    }

    /// A vector of one scalar, or the scalar where `lanes` is 1.
    pub fn splat(&mut self, scalar: Value, lanes: u8) -> Value {
        if lanes == 1 {
            return scalar;
        }
        self.vec(&[scalar; Type::MAX_LANES][..lanes as usize])
    }

    /// An undefined value.
    pub fn undef(&mut self, ty: Type) -> Value {
        self.value(Op::Undef, Payload::None, &[], ty)
    }

    /// A vector of scalars; one scalar is itself.
    ///
    /// # Panics
    /// When there are no scalars, or more than a vector has.
    pub fn vec(&mut self, lanes: &[Value]) -> Value {
        if let [scalar] = lanes {
            return *scalar;
        }
        assert!(lanes.len() <= Type::MAX_LANES, "a vector of {} lanes", lanes.len());
        let ty = Type { base: self.func.ty(lanes[0]).base, lanes: lanes.len() as u8 };
        self.value(Op::Vec, Payload::None, lanes, ty)
    }

    /// A lane of a vector, or the scalar itself.
    pub fn extract(&mut self, vector: Value, lane: u8) -> Value {
        let ty = self.func.ty(vector);
        if ty.lanes == 1 {
            return vector;
        }
        if let Some(inst) = self.func.def_inst(vector)
            && self.func.op(inst) == Op::Vec
        {
            return self.func.args(inst)[lane as usize];
        }
        self.value(Op::Extract, Payload::Lane(lane), &[vector], ty.lane())
    }

    /// The same bits as another type; a value that has it already is itself.
    pub fn bitcast(&mut self, ty: Type, value: Value) -> Value {
        if self.func.ty(value) == ty { value } else { self.value(Op::Bitcast, Payload::None, &[value], ty) }
    }

    /// A `block` with an empty region: the instruction and its region.
    pub fn block(&mut self, results: &[Type]) -> (Inst, Region) {
        let body = self.func.add_region();
        (self.inst(Op::Block, Payload::Body(body), &[], results), body)
    }

    /// An `if` with empty regions: the instruction and its regions.
    pub fn if_(&mut self, condition: Value, results: &[Type]) -> (Inst, Region, Region) {
        let (then, other) = (self.func.add_region(), self.func.add_region());
        (self.inst(Op::If, Payload::Arms(then, other), &[condition], results), then, other)
    }

    /// A `loop` with an empty region whose parameters start as the operands: the instruction and its region.
    pub fn loop_(&mut self, args: &[Value], results: &[Type]) -> (Inst, Region) {
        let body = self.func.add_region();
        for &arg in args {
            let ty = self.func.ty(arg);
            self.func.add_param(body, ty);
        }
        (self.inst(Op::Loop, Payload::Body(body), args, results), body)
    }

    /// Leaves a structured instruction.
    pub fn break_(&mut self, target: Inst, args: &[Value]) -> Inst {
        self.inst(Op::Break, Payload::Target(target), args, &[])
    }

    /// Starts a loop again.
    pub fn continue_(&mut self, target: Inst, args: &[Value]) -> Inst {
        self.inst(Op::Continue, Payload::Target(target), args, &[])
    }

    /// Returns from the function.
    pub fn return_(&mut self, args: &[Value]) -> Inst {
        self.inst(Op::Return, Payload::None, args, &[])
    }
}

/// The type of a result, where the table and the operands say it.
pub fn result_type(func: &Function, op: Op, args: &[Value]) -> Option<Type> {
    let row = op.row();
    let variable = row.operands.iter().position(|rule| matches!(rule, Rule::T(_)));
    let t = variable.and_then(|at| args.get(at)).map(|&arg| func.ty(arg));
    match row.result? {
        Rule::T(_) => t,
        Rule::Lanes(base) => t.map(|t| t.with_base(base)),
        Rule::LaneOfT => t.map(Type::lane),
        Rule::Scalar(base) => Some(Type::scalar(base)),
        Rule::Quad => Some(Type { base: Base::B32, lanes: 4 }),
        Rule::Pair => Some(Type { base: Base::B32, lanes: 2 }),
        Rule::Any | Rule::LanesOf(_) => None,
    }
}
