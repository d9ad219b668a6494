//! What elementwise operations compute: bits of one lane in, bits of one lane out.
//!
//! Constant folding, algebraic rewriting and the interpreter use these functions and no others. Bits above the width of an operand are
//! zero, and those of the result are. Floats are computed by the soft floats of `isa`, or by the host where it gives the same bits.

mod float;
mod integer;

use crate::ir::{
    AtomicOp, Base, BaseSet, FloatMode, Function, Inst, Lanes, Op, Rule, ShaderInfo, Traits, Type, Value,
};

/// What a lane is computed by, beside its operands.
#[derive(Debug, Clone, Copy)]
pub struct Eval {
    /// The base of the type variable `T` of the operation's row.
    pub t: Base,
    /// The base of the operand that is converted; `t` for operations that convert nothing.
    pub source: Base,
    /// Float modes of 16, 32 and 64 bits.
    pub modes: [FloatMode; 3],
}

impl Eval {
    /// The environment of an operation on values of one base.
    pub fn new(t: Base, info: &ShaderInfo) -> Eval {
        Eval { t, source: t, modes: info.float_modes }
    }

    /// The environment of an elementwise instruction.
    pub fn of(func: &Function, inst: Inst, info: &ShaderInfo) -> Eval {
        let row = func.op(inst).row();
        let base = |value: Value| func.ty(value).base;
        let args = func.args(inst);
        let result = func.results(inst).first().map(|&value| base(value));
        let of_operand = row.operands.iter().position(|rule| matches!(rule, Rule::T(_)));
        let t = match (row.result, of_operand) {
            (Some(Rule::T(_)), _) => result,
            (_, Some(at)) => args.get(at).map(|&arg| base(arg)),
            _ => result,
        };
        let t = t.unwrap_or(Base::B32);
        let converts = matches!(row.operands.first(), Some(Rule::LanesOf(_)));
        let source = if converts { args.first().map_or(t, |&arg| base(arg)) } else { t };
        Eval { t, source, modes: info.float_modes }
    }

    /// The environment of an operation that keeps denormals of some of the widths 16, 32 and 64.
    #[must_use]
    pub fn keeping_denormals(mut self, widths: [bool; 3]) -> Eval {
        for (mode, _) in self.modes.iter_mut().zip(widths).filter(|(_, keeps)| *keeps) {
            mode.flush = Some(false);
        }
        self
    }

    fn mode(&self, base: Base) -> FloatMode {
        match base {
            Base::B16 => self.modes[0],
            Base::B64 => self.modes[2],
            _ => self.modes[1],
        }
    }
}

/// Computes one lane. `None` where the operation is not elementwise, or operands are missing.
pub fn eval(op: Op, env: &Eval, args: &[u64]) -> Option<u64> {
    if !op.has(Traits::ELEMENTWISE) || args.len() < op.row().operands.len() {
        return None;
    }
    if op == Op::Select {
        return Some(if args[0] & 1 != 0 { args[1] } else { args[2] });
    }
    let result = if op.has(Traits::FLOAT) || matches!(op, Op::FNeg | Op::FAbs) {
        float::eval(op, env, args)
    } else {
        integer::eval(op, env, args)
    };
    debug_assert!(result.is_some(), "{} has no meaning", op.name());
    result
}

/// Whether the doc comment of an operation defines its result for these operands. Where it does not, [`eval`] gives the bits that
/// folding uses, and the interpreter's result is poison.
pub fn is_defined(op: Op, env: &Eval, args: &[u64]) -> bool {
    let bits = env.t.bits().max(1);
    match op {
        Op::UDiv | Op::UMod => args[1] != 0,
        Op::IDiv | Op::IRem | Op::IMod => {
            let least = args[0] == 1 << (bits - 1);
            args[1] != 0 && !(least && args[1] == env.t.mask())
        }
        Op::UBitfieldExtract | Op::IBitfieldExtract => args[1] + args[2] <= bits.into(),
        Op::BitfieldInsert => args[2] + args[3] <= bits.into(),
        Op::F2I | Op::F2U => float::fits(op == Op::F2I, env, args[0]),
        _ => true,
    }
}

/// The operation by which an atomic operation computes the new value from the old one and its operand; `None` if it writes the operand.
pub fn atomic_op(op: AtomicOp) -> Option<Op> {
    Some(match op {
        AtomicOp::Exchange => return None,
        AtomicOp::Add => Op::IAdd,
        AtomicOp::IMin => Op::IMin,
        AtomicOp::IMax => Op::IMax,
        AtomicOp::UMin => Op::UMin,
        AtomicOp::UMax => Op::UMax,
        AtomicOp::And => Op::IAnd,
        AtomicOp::Or => Op::IOr,
        AtomicOp::Xor => Op::IXor,
        AtomicOp::FAdd => Op::FAdd,
        AtomicOp::FMin => Op::FMin,
        AtomicOp::FMax => Op::FMax,
    })
}

/// The value that an atomic operation writes if memory holds `old`.
pub fn atomic(op: AtomicOp, env: &Eval, old: u64, operand: u64) -> u64 {
    let Some(alu) = atomic_op(op) else { return operand };
    eval(alu, env, &[old, operand]).unwrap_or(operand)
}

/// The identity of an operation that reductions and scans use; `None` for others.
pub fn identity(op: Op, base: Base) -> Option<u64> {
    let sign = 1u64 << (base.bits().max(1) - 1);
    Some(match op {
        Op::IAdd | Op::IOr | Op::IXor | Op::UMax => 0,
        Op::IMul => 1,
        Op::IAnd | Op::UMin => base.mask(),
        Op::IMin => sign - 1,
        Op::IMax => sign,
        Op::FAdd if BaseSet::FLOAT.has(base) => sign,
        Op::FMul if BaseSet::FLOAT.has(base) => float::one(base),
        Op::FMin if BaseSet::FLOAT.has(base) => float::infinity(base),
        Op::FMax if BaseSet::FLOAT.has(base) => float::infinity(base) | sign,
        _ => return None,
    })
}

/// The lanes that a pure instruction makes of lanes of its operands: what constant folding computes. `None` where it is not pure,
/// where an operand has too few lanes, or where the result is not bits.
pub fn fold(func: &Function, inst: Inst, info: &ShaderInfo, args: &[Lanes]) -> Option<Lanes> {
    let op = func.op(inst);
    let ty = func.ty(*func.results(inst).first()?);
    if op.has(Traits::ELEMENTWISE) {
        let env = Eval::of(func, inst, info);
        let mut lanes = [0; Type::MAX_LANES];
        for (lane, out) in lanes[..ty.lanes as usize].iter_mut().enumerate() {
            let mut operands = [0; 4];
            for (operand, arg) in operands.iter_mut().zip(args) {
                *operand = *arg.get(lane)?;
            }
            *out = eval(op, &env, &operands[..args.len().min(4)])?;
        }
        return Lanes::new(&lanes[..ty.lanes as usize]);
    }
    match op {
        Op::Extract => {
            let crate::ir::Payload::Lane(lane) = func.payload(inst) else { return None };
            Lanes::new(&[*args.first()?.get(lane as usize)?])
        }
        Op::ExtractDyn => Lanes::new(&[*args.first()?.get(*args.get(1)?.first()? as usize)?]),
        Op::InsertDyn => {
            let mut lanes = *args.first()?;
            let lane = *args.get(2)?.first()? as usize;
            *lanes.get_mut(lane)? = *args.get(1)?.first()?;
            Some(lanes)
        }
        Op::Bitcast => bitcast(func.ty(*func.args(inst).first()?).base, ty, args.first()?),
        _ => None,
    }
}

/// Lanes of one width as lanes of another, the first one in the lowest bits. `None` where the sizes differ or lanes have no bits.
pub fn bitcast(from: Base, to: Type, lanes: &[u64]) -> Option<Lanes> {
    let (width, out) = (from.bits() as usize, to.base.bits() as usize);
    if width == 0 || out == 0 || width * lanes.len() != out * to.lanes as usize {
        return None;
    }
    let mut result = [0u64; Type::MAX_LANES];
    for bit in 0..width * lanes.len() {
        let value = lanes[bit / width] >> (bit % width) & 1;
        result[bit / out] |= value << (bit % out);
    }
    Lanes::new(&result[..to.lanes as usize])
}
