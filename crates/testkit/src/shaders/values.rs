//! Random values: constants, elementwise operations, vectors, and what a subgroup computes.

use super::generator::{BASES, Dialect, Generator, random_type};
use unwedge_shader::ir::{
    Base, BaseSet, Builder, Op, Payload, QuadDir, Region, Rule, SystemValue, Traits, Type, Value,
};
use unwedge_shader::semantics;

/// Bits of floats that are at an edge, by width.
fn float_edges(base: Base) -> &'static [u64] {
    match base {
        Base::B16 => &[0x3c00, 0xbc00, 0x7c00, 0xfe00, 0x0001, 0x8000, 0x5640, 0x7bff],
        Base::B32 => {
            &[0x3f80_0000, 0xbf80_0000, 0x7f80_0000, 0x7fc0_0001, 1, 0x8000_0000, 0x42c8_0000, 0x7f7f_ffff]
        }
        Base::B64 => &[
            0x3ff0_0000_0000_0000,
            0xbff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0x7ff8_0000_0000_0001,
            1,
            1 << 63,
            0x4059_0000_0000_0000,
            0x7fef_ffff_ffff_ffff,
        ],
        _ => &[0],
    }
}

/// 100 as a float.
fn hundred(base: Base) -> u64 {
    match base {
        Base::B16 => 0x5640,
        Base::B32 => 0x42c8_0000,
        _ => 0x4059_0000_0000_0000,
    }
}

/// Operations that a reduction takes, where they have an identity.
const REDUCTIONS: [Op; 13] = [
    Op::IAdd,
    Op::IMul,
    Op::IMin,
    Op::IMax,
    Op::UMin,
    Op::UMax,
    Op::IAnd,
    Op::IOr,
    Op::IXor,
    Op::FAdd,
    Op::FMul,
    Op::FMin,
    Op::FMax,
];

impl Generator<'_> {
    pub(super) fn ty(&mut self) -> Type {
        random_type(self.rng, self.plan.dialect)
    }

    pub(super) fn constant(&mut self, region: Region, ty: Type) -> Value {
        if ty.base == Base::Handle {
            let number = self.rng.below(2);
            return self.descriptor(region, number);
        }
        let mut bits = || match self.rng.below(6) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << self.rng.below(ty.base.bits() as usize),
            4 => *self.rng.pick(float_edges(ty.base)).unwrap_or(&0),
            _ => self.rng.next_u64(),
        };
        let bits: Vec<u64> = (0..ty.lanes).map(|_| bits()).collect();
        let mut builder = Builder::at_end(self.func, region);
        let lanes: Vec<Value> = bits.iter().map(|&bits| builder.constant(ty.base, bits)).collect();
        builder.vec(&lanes)
    }

    /// A visible value of a type, or a new constant.
    pub(super) fn value(&mut self, region: Region, ty: Type) -> Value {
        let fits: Vec<Value> =
            self.values.iter().copied().filter(|&value| self.func.ty(value) == ty).collect();
        if fits.is_empty() || self.rng.below(8) == 0 {
            return self.constant(region, ty);
        }
        // Later ones more often.
        let at = self.rng.below(fits.len()).max(self.rng.below(fits.len()));
        fits[at]
    }

    pub(super) fn operands(&mut self, region: Region, types: &[Type]) -> Vec<Value> {
        types.iter().map(|&ty| self.value(region, ty)).collect()
    }

    /// A vector or scalar of a constant.
    pub(super) fn splat(&mut self, region: Region, ty: Type, bits: u64) -> Value {
        Builder::at_end(self.func, region).splat_constant(ty, bits)
    }

    pub(super) fn op(&mut self, region: Region, op: Op, args: &[Value]) -> Value {
        Builder::at_end(self.func, region).alu(op, args)
    }

    pub(super) fn alu(&mut self, region: Region) {
        let op = Op::ALL[self.rng.below(Op::ALL.len())];
        if !op.has(Traits::ELEMENTWISE)
            || self.plan.dialect == Dialect::Spirv && !super::spirv::has_operation(op)
        {
            return;
        }
        let row = op.row();
        let sets = row.operands.iter().chain(&row.result).filter_map(|rule| match rule {
            Rule::T(set) => Some(*set),
            _ => None,
        });
        let fits = |ty: Type| sets.clone().all(|set: BaseSet| set.has(ty.base));
        let handles = self.plan.dialect == Dialect::Full && fits(Type::HANDLE) && self.rng.below(4) == 0;
        let mut t = if handles { Type::HANDLE } else { self.ty() };
        while !fits(t) {
            t = self.ty();
        }
        let mut args: Vec<Value> = Vec::new();
        for rule in row.operands {
            let ty = match rule {
                Rule::T(_) => t,
                Rule::Lanes(base) => t.with_base(*base),
                Rule::LanesOf(set) => loop {
                    let ty = t.with_base(BASES[self.rng.below(BASES.len())]);
                    if set.has(ty.base) {
                        break ty;
                    }
                },
                _ => return,
            };
            args.push(self.value(region, ty));
        }
        if self.plan.dialect == Dialect::Spirv && !super::spirv::has_types(op, t, self.func.ty(args[0])) {
            return;
        }
        self.keep_defined(region, op, &mut args, t);
        let mut builder = Builder::at_end(self.func, region);
        builder.exact = op.has(Traits::FLOAT) && self.rng.below(3) == 0;
        let value = match row.operands.first() {
            Some(Rule::LanesOf(_)) => builder.convert(op, t.base, args[0]),
            _ => builder.alu(op, &args),
        };
        self.values.push(value);
    }

    fn keep_defined(&mut self, region: Region, op: Op, args: &mut [Value], t: Type) {
        match op {
            Op::UDiv | Op::UMod => {
                let one = self.splat(region, t, 1);
                args[1] = self.op(region, Op::IOr, &[args[1], one]);
            }
            Op::IDiv | Op::IRem | Op::IMod => {
                let divisor = 1 + self.rng.below(7) as u64;
                args[1] = self.splat(region, t, divisor);
            }
            Op::BitfieldInsert | Op::UBitfieldExtract | Op::IBitfieldExtract => {
                let first = args.len() - 2;
                let limit = self.splat(region, t.with_base(Base::B32), u64::from(t.base.bits() / 2));
                for arg in &mut args[first..] {
                    *arg = self.op(region, Op::UMin, &[*arg, limit]);
                }
            }
            Op::IShl | Op::IShr | Op::UShr if self.plan.dialect == Dialect::Spirv => {
                let limit = self.splat(region, t.with_base(Base::B32), u64::from(t.base.bits() - 1));
                args[1] = self.op(region, Op::IAnd, &[args[1], limit]);
            }
            Op::F2I | Op::F2U => {
                // A NaN loses against the least number.
                let from = self.func.ty(args[0]);
                let least = if op == Op::F2U { 0 } else { hundred(from.base) | 1 << (from.base.bits() - 1) };
                let least = self.splat(region, from, least);
                let most = self.splat(region, from, hundred(from.base));
                let limited = self.op(region, Op::FMax, &[args[0], least]);
                args[0] = self.op(region, Op::FMin, &[limited, most]);
            }
            _ => {}
        }
    }

    /// An index that is less than a number.
    pub(super) fn index(&mut self, region: Region, below: u32) -> Value {
        if self.rng.below(3) != 0 {
            let number = self.rng.below(below as usize) as u32;
            return Builder::at_end(self.func, region).u32(number);
        }
        let index = self.value(region, Type::B32);
        let last = self.splat(region, Type::B32, u64::from(below) - 1);
        self.op(region, Op::UMin, &[index, last])
    }

    /// Vectors, their lanes, and bit casts.
    pub(super) fn shuffle(&mut self, region: Region) {
        let Some(&value) = self.rng.pick(&self.values) else { return };
        let ty = self.func.ty(value);
        if ty.base == Base::Handle {
            return;
        }
        let (lane, other) = (self.rng.below(ty.lanes.into()) as u8, self.ty());
        let scalar = self.value(region, ty.lane());
        let made = match self.rng.below(6) {
            0 => Builder::at_end(self.func, region).extract(value, lane),
            1 if ty.lanes > 1 => {
                let mut builder = Builder::at_end(self.func, region);
                let lanes: Vec<Value> = (0..ty.lanes).map(|lane| builder.extract(value, lane)).collect();
                builder.vec(&lanes)
            }
            2 if ty.lanes == 1 => Builder::at_end(self.func, region).vec(&[value, scalar, value]),
            3 if ty.lanes > 1 => {
                let index = self.index(region, ty.lanes.into());
                let mut builder = Builder::at_end(self.func, region);
                builder.value(Op::ExtractDyn, Payload::None, &[value, index], ty.lane())
            }
            4 if ty.lanes > 1 => {
                let index = self.index(region, ty.lanes.into());
                let mut builder = Builder::at_end(self.func, region);
                builder.value(Op::InsertDyn, Payload::None, &[value, scalar, index], ty)
            }
            _ if ty.bits() == other.bits() && ty.base != Base::B1 && other.base != Base::B1 => {
                Builder::at_end(self.func, region).bitcast(other, value)
            }
            _ => return,
        };
        self.values.push(made);
    }

    /// What the active invocations of a subgroup compute together.
    pub(super) fn subgroup(&mut self, region: Region) {
        let op = Op::ALL[self.rng.below(Op::ALL.len())];
        let ty = self.ty();
        let is_float = BaseSet::FLOAT.has(ty.base);
        let (payload, args, result) = match op {
            Op::Elect => (Payload::None, vec![], Type::BOOL),
            Op::VoteAny | Op::VoteAll => (Payload::None, vec![self.value(region, Type::BOOL)], Type::BOOL),
            Op::VoteIEq => (Payload::None, vec![self.value(region, ty)], Type::BOOL),
            Op::VoteFEq if is_float => (Payload::None, vec![self.value(region, ty)], Type::BOOL),
            Op::Ballot => {
                let words = Type::new(Base::B32, 4).expect("a type");
                (Payload::None, vec![self.value(region, Type::BOOL)], words)
            }
            Op::InverseBallot => {
                let words = Type::new(Base::B32, 4).expect("a type");
                (Payload::None, vec![self.value(region, words)], Type::BOOL)
            }
            Op::ReadFirst => (Payload::None, vec![self.value(region, ty)], ty),
            Op::Reduce | Op::InclusiveScan | Op::ExclusiveScan => {
                let reduced = REDUCTIONS[self.rng.below(REDUCTIONS.len())];
                let computes = matches!(reduced.row().operands, [Rule::T(set), ..] if set.has(ty.base));
                if !computes || semantics::identity(reduced, ty.base).is_none() {
                    return;
                }
                let cluster = if op == Op::Reduce { [0, 1, 2, 4][self.rng.below(4)] } else { 0 };
                (Payload::Reduce(reduced, cluster), vec![self.value(region, ty)], ty)
            }
            // What follows reads invocations that must be active.
            _ if !self.uniform => return,
            Op::Shuffle | Op::ShuffleXor | Op::Broadcast | Op::QuadBroadcast => {
                let number = if matches!(op, Op::Broadcast | Op::QuadBroadcast) {
                    let number = self.rng.below(4) as u64;
                    self.splat(region, Type::B32, number)
                } else {
                    self.index(region, 4)
                };
                (Payload::None, vec![self.value(region, ty), number], ty)
            }
            Op::ShuffleUp | Op::ShuffleDown => {
                let number = self.distance(region, op == Op::ShuffleDown);
                (Payload::None, vec![self.value(region, ty), number], ty)
            }
            Op::QuadSwap => {
                let dir = QuadDir::ALL[self.rng.below(QuadDir::ALL.len())];
                (Payload::Quad(dir), vec![self.value(region, ty)], ty)
            }
            Op::Ddx | Op::Ddy | Op::DdxFine | Op::DdyFine | Op::DdxCoarse | Op::DdyCoarse if is_float => {
                (Payload::None, vec![self.value(region, ty)], ty)
            }
            _ => return,
        };
        let value = Builder::at_end(self.func, region).value(op, payload, &args, result);
        self.values.push(value);
    }

    /// A distance to another invocation of the same four.
    fn distance(&mut self, region: Region, down: bool) -> Value {
        let wanted = self.value(region, Type::B32);
        let id = SystemValue::SubgroupInvocation;
        let id = Builder::at_end(self.func, region).value(Op::SysVal, Payload::SysVal(id), &[], Type::B32);
        let three = self.splat(region, Type::B32, 3);
        let mut most = self.op(region, Op::IAnd, &[id, three]);
        if down {
            most = self.op(region, Op::ISub, &[three, most]);
        }
        self.op(region, Op::UMin, &[wanted, most])
    }
}
