//! Arithmetic, logic, conversions, comparisons, and composites.

use super::error::{Result, SpirvCause, invalid, unsupported};
use super::module::Instr;
use super::translate::Translator;
use super::types::{SpvType, TypeRef};
use crate::ir::{Base, BaseSet, Op as IrOp, Payload, Type, Value};
use spirv::{Decoration, FPRoundingMode, Op};
use unwedge_base::entity::Entity;

/// How an instruction becomes one operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipe {
    pub(super) op: IrOp,
    /// The operands are swapped.
    pub(super) swap: bool,
    /// The boolean result is inverted.
    pub(super) negate: bool,
    /// The result's base is that of the result type, not of the operands.
    pub(super) converts: bool,
}

/// The operation of an elementwise instruction.
pub(super) fn recipe(op: Op) -> Option<Recipe> {
    let plain = |op| Recipe { op, swap: false, negate: false, converts: false };
    let swap = |op| Recipe { swap: true, ..plain(op) };
    let not = |op| Recipe { negate: true, ..plain(op) };
    let convert = |op| Recipe { converts: true, ..plain(op) };
    Some(match op {
        Op::SNegate => plain(IrOp::INeg),
        Op::FNegate => plain(IrOp::FNeg),
        Op::IAdd => plain(IrOp::IAdd),
        Op::FAdd => plain(IrOp::FAdd),
        Op::ISub => plain(IrOp::ISub),
        Op::FSub => plain(IrOp::FSub),
        Op::IMul => plain(IrOp::IMul),
        Op::FMul => plain(IrOp::FMul),
        Op::UDiv => plain(IrOp::UDiv),
        Op::SDiv => plain(IrOp::IDiv),
        Op::FDiv => plain(IrOp::FDiv),
        Op::UMod => plain(IrOp::UMod),
        Op::SRem => plain(IrOp::IRem),
        Op::SMod => plain(IrOp::IMod),
        Op::ShiftRightLogical => plain(IrOp::UShr),
        Op::ShiftRightArithmetic => plain(IrOp::IShr),
        Op::ShiftLeftLogical => plain(IrOp::IShl),
        Op::BitwiseOr | Op::LogicalOr => plain(IrOp::IOr),
        Op::BitwiseXor => plain(IrOp::IXor),
        Op::BitwiseAnd | Op::LogicalAnd => plain(IrOp::IAnd),
        Op::Not | Op::LogicalNot => plain(IrOp::INot),
        Op::BitReverse => plain(IrOp::BitReverse),
        Op::IEqual | Op::LogicalEqual | Op::PtrEqual => plain(IrOp::IEq),
        Op::INotEqual | Op::LogicalNotEqual | Op::PtrNotEqual => plain(IrOp::INe),
        Op::UGreaterThan => swap(IrOp::ULt),
        Op::SGreaterThan => swap(IrOp::ILt),
        Op::UGreaterThanEqual => plain(IrOp::UGe),
        Op::SGreaterThanEqual => plain(IrOp::IGe),
        Op::ULessThan => plain(IrOp::ULt),
        Op::SLessThan => plain(IrOp::ILt),
        Op::ULessThanEqual => swap(IrOp::UGe),
        Op::SLessThanEqual => swap(IrOp::IGe),
        Op::FOrdEqual => plain(IrOp::FEq),
        Op::FUnordNotEqual => plain(IrOp::FNeu),
        Op::FOrdLessThan => plain(IrOp::FLt),
        Op::FOrdGreaterThan => swap(IrOp::FLt),
        Op::FOrdGreaterThanEqual => plain(IrOp::FGe),
        Op::FOrdLessThanEqual => swap(IrOp::FGe),
        // Not ordered, or less: not (greater or equal).
        Op::FUnordLessThan => not(IrOp::FGe),
        Op::FUnordGreaterThan => Recipe { swap: true, ..not(IrOp::FGe) },
        Op::FUnordLessThanEqual => Recipe { swap: true, ..not(IrOp::FLt) },
        Op::FUnordGreaterThanEqual => not(IrOp::FLt),
        Op::Select => plain(IrOp::Select),
        Op::ConvertFToU => convert(IrOp::F2U),
        Op::ConvertFToS => convert(IrOp::F2I),
        Op::ConvertSToF => convert(IrOp::I2F),
        Op::ConvertUToF => convert(IrOp::U2F),
        Op::UConvert => convert(IrOp::U2U),
        Op::SConvert => convert(IrOp::I2I),
        Op::FConvert => convert(IrOp::F2F),
        Op::QuantizeToF16 => plain(IrOp::FQuantizeF16),
        _ => return None,
    })
}

impl Translator<'_> {
    /// Arithmetic; `false` if the instruction is something else.
    pub(super) fn arithmetic(&mut self, inst: Instr<'_>) -> Result<bool> {
        if let Some(recipe) = recipe(inst.op) {
            // What is true of a NaN must stay so, though other operations may assume that there is none.
            self.exact |= matches!(
                inst.op,
                Op::FUnordLessThan
                    | Op::FUnordGreaterThan
                    | Op::FUnordLessThanEqual
                    | Op::FUnordGreaterThanEqual
            );
            if matches!(inst.op, Op::PtrEqual | Op::PtrNotEqual)
                || inst.op == Op::Select && self.selects_composite(inst)?
            {
                self.leafwise(inst, recipe)?;
            } else {
                self.elementwise(inst, recipe)?;
            }
            return Ok(true);
        }
        match inst.op {
            Op::FRem | Op::FMod => self.float_remainder(inst)?,
            // Other operations may assume that NaN and infinity do not occur; tests for them may not.
            Op::IsNan => {
                self.exact = true;
                let x = self.operand(inst, 3)?;
                let result = self.alu(IrOp::FNeu, &[x, x])?;
                self.set_value(inst, result)?;
            }
            Op::IsInf => {
                self.exact = true;
                let x = self.operand(inst, 3)?;
                let magnitude = self.alu(IrOp::FAbs, &[x])?;
                let infinity = self.float_constant(self.ty(x), f64::INFINITY);
                let result = self.alu(IrOp::FEq, &[magnitude, infinity])?;
                self.set_value(inst, result)?;
            }
            Op::FOrdNotEqual | Op::FUnordEqual | Op::LessOrGreater => {
                let (a, b) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                let (less, greater) = (self.alu(IrOp::FLt, &[a, b])?, self.alu(IrOp::FLt, &[b, a])?);
                let mut result = self.alu(IrOp::IOr, &[less, greater])?;
                if inst.op == Op::FUnordEqual {
                    result = self.alu(IrOp::INot, &[result])?;
                }
                self.set_value(inst, result)?;
            }
            Op::Ordered | Op::Unordered => {
                self.exact = true;
                let (a, b) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                let (x, y) = (self.alu(IrOp::FNeu, &[a, a])?, self.alu(IrOp::FNeu, &[b, b])?);
                let mut result = self.alu(IrOp::IOr, &[x, y])?;
                if inst.op == Op::Ordered {
                    result = self.alu(IrOp::INot, &[result])?;
                }
                self.set_value(inst, result)?;
            }
            Op::BitCount => {
                let x = self.operand(inst, 3)?;
                let count = self.alu(IrOp::BitCount, &[x])?;
                let base = self.result_leaf(inst)?.base;
                let result = self.convert(IrOp::U2U, base, count)?;
                self.set_value(inst, result)?;
            }
            Op::BitFieldInsert | Op::BitFieldSExtract | Op::BitFieldUExtract => self.bitfield(inst)?,
            Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended => {
                let (a, b) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                let (low, high) = match inst.op {
                    Op::IAddCarry => (IrOp::IAdd, IrOp::UAddCarry),
                    Op::ISubBorrow => (IrOp::ISub, IrOp::USubBorrow),
                    Op::UMulExtended => (IrOp::IMul, IrOp::UMulHigh),
                    _ => (IrOp::IMul, IrOp::IMulHigh),
                };
                let parts = [self.alu(low, &[a, b])?, self.alu(high, &[a, b])?];
                self.set_leaves(inst, &parts)?;
            }
            Op::Any | Op::All => {
                let x = self.operand(inst, 3)?;
                let op = if inst.op == Op::Any { IrOp::IOr } else { IrOp::IAnd };
                let result = self.horizontal(op, x)?;
                self.set_value(inst, result)?;
            }
            Op::Dot => {
                let (a, b) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                let result = self.dot(a, b)?;
                self.set_value(inst, result)?;
            }
            Op::SDot | Op::UDot | Op::SUDot | Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => {
                self.integer_dot(inst)?;
            }
            Op::VectorTimesScalar => {
                let (vector, scalar) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                let lanes = self.ty(vector).lanes;
                let scalar = self.splat(scalar, lanes)?;
                let result = self.alu(IrOp::FMul, &[vector, scalar])?;
                self.set_value(inst, result)?;
            }
            Op::MatrixTimesScalar
            | Op::VectorTimesMatrix
            | Op::MatrixTimesVector
            | Op::MatrixTimesMatrix
            | Op::OuterProduct
            | Op::Transpose => self.matrix(inst)?,
            Op::Bitcast => self.bit_cast(inst)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn selects_composite(&mut self, inst: Instr<'_>) -> Result<bool> {
        let ty = self.result_type(inst)?;
        Ok(self.module.types.leaf(ty).is_none())
    }

    fn elementwise(&mut self, inst: Instr<'_>, recipe: Recipe) -> Result<()> {
        let mut args = [Value::new(0); 3];
        let count = recipe.op.row().operands.len();
        for (at, arg) in args[..count].iter_mut().enumerate() {
            *arg = self.operand(inst, 3 + at)?;
        }
        let ty = self.result_leaf(inst)?;
        if recipe.op == IrOp::Select && self.ty(args[0]).lanes != ty.lanes {
            args[0] = self.splat(args[0], ty.lanes)?;
        }
        if matches!(recipe.op, IrOp::IShl | IrOp::IShr | IrOp::UShr) {
            // Counts have 32 bits. What wider ones say beyond that is undefined anyway.
            args[1] = self.convert(IrOp::U2U, Base::B32, args[1])?;
        }
        if recipe.swap {
            args.swap(0, 1);
        }
        let op = if recipe.op == IrOp::F2F { self.rounding(inst, ty.base)? } else { recipe.op };
        let mut result =
            if recipe.converts { self.convert(op, ty.base, args[0])? } else { self.alu(op, &args[..count])? };
        if recipe.negate {
            result = self.alu(IrOp::INot, &[result])?;
        }
        if self.ty(result) != ty {
            return Err(SpirvCause::Types(inst.op));
        }
        self.set_value(inst, result)
    }

    fn rounding(&self, inst: Instr<'_>, _base: Base) -> Result<IrOp> {
        let mode = self.module.decoration(self.words, inst.word(2)?, Decoration::FPRoundingMode);
        match mode.map(FPRoundingMode::from_u32) {
            None => Ok(IrOp::F2F),
            Some(Some(FPRoundingMode::RTE)) => Ok(IrOp::F2FRte),
            Some(Some(FPRoundingMode::RTZ)) => Ok(IrOp::F2FRtz),
            Some(_) => unsupported("conversions rounded up or down"),
        }
    }

    /// Selects of composites and comparisons of pointers: leaf by leaf.
    fn leafwise(&mut self, inst: Instr<'_>, recipe: Recipe) -> Result<()> {
        if recipe.op == IrOp::Select {
            let condition = self.operand(inst, 3)?;
            let (a, b) = (self.leaves(inst.word(4)?)?, self.leaves(inst.word(5)?)?);
            if a.len() != b.len() {
                return Err(SpirvCause::Types(inst.op));
            }
            let mut parts = Vec::with_capacity(a.len());
            for (a, b) in a.into_iter().zip(b) {
                let condition = self.splat(condition, self.ty(a).lanes)?;
                parts.push(self.alu(IrOp::Select, &[condition, a, b])?);
            }
            return self.set_leaves(inst, &parts);
        }
        let (a, b) = (self.address_leaves(inst.word(3)?)?, self.address_leaves(inst.word(4)?)?);
        if a.len() != b.len() {
            return Err(SpirvCause::Types(inst.op));
        }
        let mut equal = self.constant(Base::B1, 1);
        // Offsets are compared first. A null pointer has an offset of its own and an undefined descriptor, which selects keep out of
        // the result.
        let mut is_null = self.constant(Base::B1, 0);
        for (a, b) in a.into_iter().zip(b).rev() {
            let part = self.alu(IrOp::IEq, &[a, b])?;
            if self.ty(a).base == Base::Handle {
                let null = self.alu(IrOp::Select, &[is_null, equal, part])?;
                equal = self.alu(IrOp::Select, &[equal, null, equal])?;
                continue;
            }
            if self.ty(a) == Type::B32 {
                let null = self.u32(u32::MAX);
                is_null = self.alu(IrOp::IEq, &[a, null])?;
            }
            equal = self.alu(IrOp::IAnd, &[equal, part])?;
        }
        if inst.op == Op::PtrNotEqual {
            equal = self.alu(IrOp::INot, &[equal])?;
        }
        self.set_value(inst, equal)
    }

    fn float_remainder(&mut self, inst: Instr<'_>) -> Result<()> {
        let (a, b) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
        let round = if inst.op == Op::FMod { IrOp::FFloor } else { IrOp::FTrunc };
        let quotient = self.alu(IrOp::FDiv, &[a, b])?;
        let whole = self.alu(round, &[quotient])?;
        let product = self.alu(IrOp::FMul, &[b, whole])?;
        let result = self.alu(IrOp::FSub, &[a, product])?;
        self.set_value(inst, result)
    }

    fn bitfield(&mut self, inst: Instr<'_>) -> Result<()> {
        let base = self.operand(inst, 3)?;
        let lanes = self.ty(base).lanes;
        let first = if inst.op == Op::BitFieldInsert { 5 } else { 4 };
        let mut counts = [Value::new(0); 2];
        for (at, count) in counts.iter_mut().enumerate() {
            let value = self.operand(inst, first + at)?;
            let value = self.convert(IrOp::U2U, Base::B32, value)?;
            *count = self.splat(value, lanes)?;
        }
        let [offset, count] = counts;
        let result = match inst.op {
            Op::BitFieldInsert => {
                let insert = self.operand(inst, 4)?;
                self.alu(IrOp::BitfieldInsert, &[base, insert, offset, count])?
            }
            Op::BitFieldSExtract => self.alu(IrOp::IBitfieldExtract, &[base, offset, count])?,
            _ => self.alu(IrOp::UBitfieldExtract, &[base, offset, count])?,
        };
        self.set_value(inst, result)
    }

    /// One operation over all lanes of a vector, first lane first.
    pub(super) fn horizontal(&mut self, op: IrOp, vector: Value) -> Result<Value> {
        let mut result = self.extract(vector, 0)?;
        for lane in 1..self.ty(vector).lanes {
            let next = self.extract(vector, lane)?;
            result = self.alu(op, &[result, next])?;
        }
        Ok(result)
    }

    /// The dot product of vectors, first lane first.
    pub(super) fn dot(&mut self, a: Value, b: Value) -> Result<Value> {
        let products = self.alu(IrOp::FMul, &[a, b])?;
        self.horizontal(IrOp::FAdd, products)
    }

    /// Dot products of integers, of which four may be packed in 32 bits. The product has the width of the result and wraps; adding the
    /// accumulator to it saturates.
    fn integer_dot(&mut self, inst: Instr<'_>) -> Result<()> {
        let accumulates = matches!(inst.op, Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat);
        let signed = match inst.op {
            Op::SDot | Op::SDotAccSat => [true, true],
            Op::UDot | Op::UDotAccSat => [false, false],
            _ => [true, false],
        };
        let packed = inst.words.get(if accumulates { 6 } else { 5 }).is_some();
        let ty = self.result_leaf(inst)?;
        if ty.lanes != 1 || !BaseSet::INT.has(ty.base) {
            return Err(SpirvCause::Types(inst.op));
        }
        let mut vectors = [Value::new(0); 2];
        for (at, (vector, signed)) in vectors.iter_mut().zip(signed).enumerate() {
            let mut value = self.operand(inst, 3 + at)?;
            if packed {
                if self.ty(value) != Type::B32 {
                    return Err(SpirvCause::Types(inst.op));
                }
                let bytes = Type { base: Base::B8, lanes: 4 };
                value = self.emit(IrOp::Bitcast, Payload::None, &[value], bytes)?;
            }
            if !BaseSet::INT.has(self.ty(value).base) {
                return Err(SpirvCause::Types(inst.op));
            }
            let extend = if signed { IrOp::I2I } else { IrOp::U2U };
            *vector = self.convert(extend, ty.base, value)?;
        }
        let products = self.alu(IrOp::IMul, &vectors)?;
        let mut result = self.horizontal(IrOp::IAdd, products)?;
        if accumulates {
            let accumulator = self.operand(inst, 5)?;
            if self.ty(accumulator) != ty {
                return Err(SpirvCause::Types(inst.op));
            }
            result = self.saturating_sum(result, accumulator, signed[0])?;
        }
        self.set_value(inst, result)
    }

    fn saturating_sum(&mut self, a: Value, b: Value, signed: bool) -> Result<Value> {
        let base = self.ty(a).base;
        let sum = self.alu(IrOp::IAdd, &[a, b])?;
        if !signed {
            let wraps = self.alu(IrOp::ULt, &[sum, a])?;
            let greatest = self.constant(base, base.mask());
            return self.alu(IrOp::Select, &[wraps, greatest, sum]);
        }
        // It wraps where both operands have the sign that the sum does not have.
        let (x, y) = (self.alu(IrOp::IXor, &[a, sum])?, self.alu(IrOp::IXor, &[b, sum])?);
        let both = self.alu(IrOp::IAnd, &[x, y])?;
        let zero = self.constant(base, 0);
        let wraps = self.alu(IrOp::ILt, &[both, zero])?;
        let negative = self.alu(IrOp::ILt, &[a, zero])?;
        let least = self.constant(base, 1 << (base.bits() - 1));
        let greatest = self.constant(base, base.mask() >> 1);
        let limit = self.alu(IrOp::Select, &[negative, least, greatest])?;
        self.alu(IrOp::Select, &[wraps, limit, sum])
    }

    fn matrix(&mut self, inst: Instr<'_>) -> Result<()> {
        let left = self.leaves(inst.word(3)?)?;
        let parts = match inst.op {
            Op::Transpose => self.transposed(&left)?,
            Op::MatrixTimesScalar => {
                let scalar = self.operand(inst, 4)?;
                let mut parts = Vec::new();
                for column in left {
                    let scalar = self.splat(scalar, self.ty(column).lanes)?;
                    parts.push(self.alu(IrOp::FMul, &[column, scalar])?);
                }
                parts
            }
            Op::OuterProduct => {
                let row = self.operand(inst, 4)?;
                let [column] = left[..] else { return Err(SpirvCause::Types(inst.op)) };
                let mut parts = Vec::new();
                for lane in 0..self.ty(row).lanes {
                    let scalar = self.extract(row, lane)?;
                    let scalar = self.splat(scalar, self.ty(column).lanes)?;
                    parts.push(self.alu(IrOp::FMul, &[column, scalar])?);
                }
                parts
            }
            Op::VectorTimesMatrix => {
                let [vector] = left[..] else { return Err(SpirvCause::Types(inst.op)) };
                let mut lanes = Vec::new();
                for column in self.leaves(inst.word(4)?)? {
                    lanes.push(self.dot(vector, column)?);
                }
                vec![self.vec(&lanes)?]
            }
            _ => {
                let mut parts = Vec::new();
                for column in self.leaves(inst.word(4)?)? {
                    parts.push(self.columns_times(&left, column)?);
                }
                parts
            }
        };
        self.set_leaves(inst, &parts)
    }

    /// A matrix times a vector.
    pub(super) fn columns_times(&mut self, columns: &[Value], vector: Value) -> Result<Value> {
        if columns.len() != usize::from(self.ty(vector).lanes) {
            return invalid("a matrix has not as many columns as a vector has components");
        }
        let mut sum = None;
        for (lane, &column) in columns.iter().enumerate() {
            let scalar = self.extract(vector, lane as u8)?;
            let scalar = self.splat(scalar, self.ty(column).lanes)?;
            let product = self.alu(IrOp::FMul, &[column, scalar])?;
            sum = Some(match sum {
                None => product,
                Some(sum) => self.alu(IrOp::FAdd, &[sum, product])?,
            });
        }
        sum.ok_or(SpirvCause::Invalid("a matrix has no columns"))
    }

    fn transposed(&mut self, columns: &[Value]) -> Result<Vec<Value>> {
        let rows = columns.first().map_or(0, |&column| self.ty(column).lanes);
        let mut parts = Vec::new();
        for row in 0..rows {
            let mut lanes = Vec::new();
            for &column in columns {
                lanes.push(self.extract(column, row)?);
            }
            parts.push(self.vec(&lanes)?);
        }
        Ok(parts)
    }

    fn bit_cast(&mut self, inst: Instr<'_>) -> Result<()> {
        let leaves = self.leaves(inst.word(3)?)?;
        let [value] = leaves[..] else { return unsupported("casts of pointers that are not addresses") };
        let ty = self.result_type(inst)?;
        let mut leaf = Vec::new();
        self.module.types.leaf_types(ty, &mut leaf)?;
        let [leaf] = leaf[..] else { return unsupported("casts to pointers that are not addresses") };
        let bits = |ty: Type| if ty.base == Base::B1 { 0 } else { ty.bits() };
        if bits(leaf) == 0 || bits(leaf) != bits(self.ty(value)) {
            return Err(SpirvCause::Types(inst.op));
        }
        let result = if self.ty(value) == leaf {
            value
        } else {
            self.emit(IrOp::Bitcast, Payload::None, &[value], leaf)?
        };
        self.set_value(inst, result)
    }

    /// Composites; `false` if the instruction is something else.
    pub(super) fn composite(&mut self, inst: Instr<'_>) -> Result<bool> {
        match inst.op {
            Op::CompositeConstruct => self.construct(inst)?,
            Op::CompositeExtract => {
                let id = inst.word(3)?;
                let (ty, leaves) = (self.module.value_type(id)?, self.leaves(id)?);
                let (ty, start, lane) = self.part(ty, inst.rest(4)?)?;
                let count = self.module.types.leaves(ty) as usize;
                let part = leaves.get(start..start + count).ok_or(SpirvCause::Types(inst.op))?.to_vec();
                match lane {
                    Some(lane) => {
                        let value = self.extract(part[0], lane)?;
                        self.set_value(inst, value)?;
                    }
                    None => self.set_leaves(inst, &part)?,
                }
            }
            Op::CompositeInsert => {
                let (object, id) = (self.leaves(inst.word(3)?)?, inst.word(4)?);
                let (ty, mut leaves) = (self.module.value_type(id)?, self.leaves(id)?);
                let (ty, start, lane) = self.part(ty, inst.rest(5)?)?;
                let count = self.module.types.leaves(ty) as usize;
                let part = leaves.get_mut(start..start + count).ok_or(SpirvCause::Types(inst.op))?;
                match (lane, &object[..]) {
                    (Some(lane), &[scalar]) => {
                        let vector = part[0];
                        leaves[start] = self.with_lane(vector, lane, scalar)?;
                    }
                    (None, _) if object.len() == count => part.copy_from_slice(&object),
                    _ => return Err(SpirvCause::Types(inst.op)),
                }
                self.set_leaves(inst, &leaves)?;
            }
            Op::VectorShuffle => {
                let (a, b) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                let (na, nb) = (u32::from(self.ty(a).lanes), u32::from(self.ty(b).lanes));
                let mut lanes = Vec::new();
                for &index in inst.rest(5)? {
                    lanes.push(match index {
                        u32::MAX => self.undefined(self.ty(a).lane())?,
                        _ if index < na => self.extract(a, index as u8)?,
                        _ if index - na < nb => self.extract(b, (index - na) as u8)?,
                        _ => return invalid("a component is past the end of both vectors"),
                    });
                }
                let value = self.vec(&lanes)?;
                self.set_value(inst, value)?;
            }
            Op::VectorExtractDynamic => {
                let (vector, index) = (self.operand(inst, 3)?, self.index_operand(inst.word(4)?)?);
                let value = self.alu(IrOp::ExtractDyn, &[vector, index])?;
                self.set_value(inst, value)?;
            }
            Op::VectorInsertDynamic => {
                let (vector, scalar) = (self.operand(inst, 3)?, self.operand(inst, 4)?);
                let index = self.index_operand(inst.word(5)?)?;
                let value = self.alu(IrOp::InsertDyn, &[vector, scalar, index])?;
                self.set_value(inst, value)?;
            }
            Op::CopyObject | Op::CopyLogical | Op::ExpectKHR => self.copy(inst)?,
            Op::Undef => {
                let ty = self.result_type(inst)?;
                let mut types = Vec::new();
                self.module.types.leaf_types(ty, &mut types)?;
                let mut leaves = Vec::new();
                for ty in types {
                    leaves.push(self.undefined(ty)?);
                }
                self.set_leaves(inst, &leaves)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn construct(&mut self, inst: Instr<'_>) -> Result<()> {
        let ty = self.result_type(inst)?;
        let mut parts = Vec::new();
        for &id in inst.rest(3)? {
            parts.extend(self.leaves(id)?);
        }
        if let SpvType::Leaf { ty, .. } = *self.module.types.get(ty) {
            // Vectors are made of scalars and vectors.
            let mut lanes = Vec::new();
            for part in parts {
                for lane in 0..self.ty(part).lanes {
                    lanes.push(self.extract(part, lane)?);
                }
            }
            if lanes.len() != usize::from(ty.lanes) {
                return Err(SpirvCause::Types(inst.op));
            }
            parts = vec![self.vec(&lanes)?];
        }
        self.set_leaves(inst, &parts)
    }

    /// A part of a composite: its type, its first leaf, and the lane if it is one of a vector.
    fn part(&self, ty: TypeRef, path: &[u32]) -> Result<(TypeRef, usize, Option<u8>)> {
        let (mut ty, mut start) = (ty, 0usize);
        for (at, &index) in path.iter().enumerate() {
            if let Some(leaf) = self.module.types.leaf(ty) {
                return match u8::try_from(index) {
                    Ok(lane) if lane < leaf.lanes && leaf.lanes > 1 && at + 1 == path.len() => {
                        Ok((ty, start, Some(lane)))
                    }
                    _ => invalid("a component is past the end of a vector"),
                };
            }
            let (part, leaf) = self.module.types.part(ty, index)?;
            ty = part;
            start += leaf as usize;
        }
        Ok((ty, start, None))
    }

    /// A vector with one lane replaced.
    pub(super) fn with_lane(&mut self, vector: Value, lane: u8, scalar: Value) -> Result<Value> {
        let mut lanes = Vec::new();
        for at in 0..self.ty(vector).lanes {
            lanes.push(if at == lane { scalar } else { self.extract(vector, at)? });
        }
        self.vec(&lanes)
    }
}
