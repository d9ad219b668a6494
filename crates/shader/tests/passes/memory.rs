//! Random shaders with memory accesses, counted loops, subgroup operations and integers of all widths do the same after each pass, and
//! after several.
//!
//! Every invocation has bytes of its own in two buffers, in memory of the workgroup and in scratch, which it loads and stores at random
//! offsets and widths. Neighbours see each other's words between barriers.

use unwedge_shader::interp::RunError;
use unwedge_shader::ir::{
    Access, BarrierInfo, Base, Builder, Function, Inst, MemAccess, MemoryKinds, Modes, Op, Order, Payload,
    QuadDir, Region, ResourceClass, ResourceData, Rule, Scope, Shader, Space, SystemValue, Traits, Type,
    Value,
};
use unwedge_shader::passes::{PASSES, Pass};
use unwedge_shader::text::print;
use unwedge_shader::valid::validate;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::run::{NotComparable, Observed, Setup, same};

const BASES: [Base; 5] = [Base::B1, Base::B8, Base::B16, Base::B32, Base::B64];

/// Bytes of an invocation in each memory.
const BYTES: u32 = 64;
const INVOCATIONS: u32 = 8;

/// The most steps of a run.
const STEPS: u64 = 15_000;
/// How many times as many a run after passes may take: lowered divisions and reductions are loops.
const MORE_STEPS: u64 = 4096;

pub struct Maker<'a> {
    rng: &'a mut Rng,
    func: &'a mut Function,
    values: Vec<Value>,
    buffers: [Value; 2],
    /// First byte of the invocation.
    start: Value,
    index: Value,
    left: usize,
}

impl Maker<'_> {
    fn constant(&mut self, region: Region, ty: Type) -> Value {
        let mut lanes = Vec::new();
        for _ in 0..ty.lanes {
            let bits = match self.rng.below(5) {
                0 => 0,
                1 => 1 << self.rng.below(ty.base.bits() as usize),
                2 => u64::MAX,
                3 => self.rng.below(20) as u64,
                _ => self.rng.next_u64(),
            };
            lanes.push(Builder::at_end(self.func, region).constant(ty.base, bits));
        }
        Builder::at_end(self.func, region).vec(&lanes)
    }

    fn value(&mut self, region: Region, ty: Type) -> Value {
        let fits: Vec<Value> =
            self.values.iter().copied().filter(|&value| self.func.ty(value) == ty).collect();
        if fits.is_empty() || self.rng.below(8) == 0 {
            return self.constant(region, ty);
        }
        fits[self.rng.below(fits.len()).max(self.rng.below(fits.len()))]
    }

    fn ty(&mut self) -> Type {
        let base = BASES[self.rng.below(5)];
        Type::new(base, [1, 1, 1, 2, 3, 4][self.rng.below(6)]).expect("a type")
    }

    /// An operation on integers or booleans, or one of a few on floats.
    fn alu(&mut self, region: Region) {
        let op = Op::ALL[self.rng.below(Op::ALL.len())];
        let row = op.row();
        let float = op.has(Traits::FLOAT);
        if !op.has(Traits::ELEMENTWISE) || float && !matches!(op, Op::FAdd | Op::FMul | Op::FLt | Op::FMin) {
            return;
        }
        let t = loop {
            let t = self.ty();
            let fits = |rule: &Rule| !matches!(rule, Rule::T(set) if !set.has(t.base));
            if row.operands.iter().chain(&row.result).all(fits) {
                break t;
            }
        };
        let mut args = Vec::new();
        for rule in row.operands {
            let ty = match rule {
                Rule::T(_) => t,
                Rule::Lanes(base) => t.with_base(*base),
                _ => t.with_base(BASES[1 + self.rng.below(4)]),
            };
            args.push(self.value(region, ty));
        }
        let mut builder = Builder::at_end(self.func, region);
        match op {
            Op::UDiv | Op::UMod | Op::IDiv | Op::IRem | Op::IMod => {
                // Constants stay constants. Signed divisors are positive, and none is zero.
                let constants: Vec<Option<u64>> = (0..t.lanes)
                    .map(|lane| {
                        let value = builder.extract(args[1], lane);
                        builder.func.const_bits(value)
                    })
                    .collect();
                let minus_one = t.base.mask();
                let defined =
                    |bits: u64| bits != 0 && (bits != minus_one || matches!(op, Op::UDiv | Op::UMod));
                if !constants.iter().all(|bits| bits.is_some_and(defined)) {
                    let positive = builder.splat_constant(t, t.base.mask() >> 1);
                    let one = builder.splat_constant(t, 1);
                    let cut = builder.alu(Op::IAnd, &[args[1], positive]);
                    args[1] = builder.alu(Op::IOr, &[cut, one]);
                }
            }
            Op::BitfieldInsert | Op::UBitfieldExtract | Op::IBitfieldExtract => {
                let first = args.len() - 2;
                let limit = builder.splat_constant(t.with_base(Base::B32), u64::from(t.base.bits() / 2));
                for arg in &mut args[first..] {
                    *arg = builder.alu(Op::UMin, &[*arg, limit]);
                }
            }
            _ => {}
        }
        let value = match row.operands.first() {
            Some(Rule::LanesOf(_)) => builder.convert(op, t.base, args[0]),
            _ => builder.alu(op, &args),
        };
        self.values.push(value);
    }

    /// The operands of an access to bytes of the invocation, and what it says.
    fn address(&mut self, region: Region, ty: Type) -> (Vec<Value>, MemAccess) {
        let size = ty.base.bytes() * u32::from(ty.lanes);
        let step = ty.base.bytes();
        let slots = (BYTES - size) / step + 1;
        let offset = (self.rng.below(slots as usize) as u32 & !(self.rng.below(2) as u32)) * step;
        let space = [Space::Storage, Space::Storage, Space::Shared, Space::Scratch][self.rng.below(4)];
        let mut access = if self.rng.below(12) == 0 { Access::COHERENT } else { Access::NONE };
        if self.rng.below(20) == 0 {
            access = access.or(Access::VOLATILE);
        }
        let mut args = Vec::new();
        if space == Space::Storage {
            let number = self.rng.below(2);
            args.push(self.buffers[number]);
            if number == 1 {
                access = access.or(Access::RESTRICT);
            }
        }
        let dynamic = self.rng.below(6) == 0;
        let chosen = self.value(region, Type::B32);
        let start = if space == Space::Scratch { None } else { Some(self.start) };
        let mut builder = Builder::at_end(self.func, region);
        let offset = if dynamic {
            let mask = builder.u32((slots.next_power_of_two() / 2).max(1) - 1);
            let number = builder.alu(Op::IAnd, &[chosen, mask]);
            let step = builder.u32(step);
            builder.alu(Op::IMul, &[number, step])
        } else {
            builder.u32(offset)
        };
        args.push(match start {
            Some(start) => builder.alu(Op::IAdd, &[start, offset]),
            None => offset,
        });
        (args, MemAccess { space, access, align: step.trailing_zeros() as u8 })
    }

    fn memory_ty(&mut self) -> Type {
        Type::new(
            [Base::B8, Base::B16, Base::B32, Base::B32, Base::B64][self.rng.below(5)],
            1 + self.rng.below(4) as u32,
        )
        .expect("a type")
    }

    fn load(&mut self, region: Region) {
        let ty = self.memory_ty();
        let (args, mem) = self.address(region, ty);
        let value = Builder::at_end(self.func, region).value(Op::Load, Payload::Mem(mem), &args, ty);
        self.values.push(value);
    }

    fn store(&mut self, region: Region) {
        let ty = self.memory_ty();
        let (mut args, mem) = self.address(region, ty);
        args.insert(0, self.value(region, ty));
        Builder::at_end(self.func, region).inst(Op::Store, Payload::Mem(mem), &args, &[]);
    }

    fn branch(&mut self, region: Region, depth: usize) {
        let condition = self.value(region, Type::BOOL);
        let ty = self.ty();
        let (inst, then, other) = Builder::at_end(self.func, region).if_(condition, &[ty]);
        for arm in [then, other] {
            let visible = self.values.len();
            self.body(arm, depth + 1);
            let value = self.value(arm, ty);
            Builder::at_end(self.func, arm).break_(inst, &[value]);
            self.values.truncate(visible);
        }
        self.values.push(self.func.result(inst));
    }

    /// A loop whose counter is added to, shifted or multiplied, up or down, with its exit at the start or at the end.
    fn counted_loop(&mut self, region: Region, depth: usize) {
        let turns = 1 + self.rng.below(6) as u32;
        let form = self.rng.below(4);
        let ty = self.ty();
        let carried = self.value(region, ty);
        let mut builder = Builder::at_end(self.func, region);
        let start = builder.u32([0, turns, 1, 5][form]);
        let (inst, body) = builder.loop_(&[start, carried], &[ty]);
        let visible = self.values.len();
        self.values.extend_from_slice(self.func.params(body));
        let (counter, current) = (self.func.params(body)[0], self.func.params(body)[1]);
        let late = self.rng.below(2) == 0;
        if !late {
            self.exit(body, inst, (form, turns), counter, current);
        }
        self.body(body, depth + 1);
        if self.rng.below(3) == 0 {
            // Some invocations leave early, or continue early if that does not pass by the exit.
            let condition = self.value(body, Type::BOOL);
            let value = self.value(body, ty);
            let leaves = late || self.rng.below(2) == 0;
            let next = if leaves { None } else { Some(self.next(body, (form, turns), counter)) };
            let (check, then, other) = Builder::at_end(self.func, body).if_(condition, &[]);
            match next {
                Some(next) => Builder::at_end(self.func, then).continue_(inst, &[next, value]),
                None => Builder::at_end(self.func, then).break_(inst, &[value]),
            };
            Builder::at_end(self.func, other).break_(check, &[]);
        }
        let value = self.value(body, ty);
        if late {
            self.exit(body, inst, (form, turns), counter, value);
        }
        let next = self.next(body, (form, turns), counter);
        Builder::at_end(self.func, body).continue_(inst, &[next, value]);
        self.values.truncate(visible);
        self.values.push(self.func.result(inst));
    }

    fn next(&mut self, body: Region, (form, _): (usize, u32), counter: Value) -> Value {
        let mut builder = Builder::at_end(self.func, body);
        let one = builder.u32(1);
        match form {
            0 => builder.alu(Op::IAdd, &[counter, one]),
            1 => builder.alu(Op::ISub, &[counter, one]),
            2 => builder.alu(Op::IShl, &[counter, one]),
            _ => {
                let seven = builder.u32(7);
                builder.alu(Op::IMul, &[counter, seven])
            }
        }
    }

    fn exit(&mut self, body: Region, of: Inst, (form, turns): (usize, u32), counter: Value, value: Value) {
        let mut builder = Builder::at_end(self.func, body);
        let limit = builder.u32([turns, 0, 1 << turns, 5 * 7u32.pow(turns)][form]);
        let (condition, leaves) = match form {
            0 => (builder.alu(Op::ULt, &[counter, limit]), false),
            1 => (builder.alu(Op::IEq, &[counter, limit]), true),
            2 => (builder.alu(Op::UGe, &[counter, limit]), true),
            _ => (builder.alu(Op::INe, &[counter, limit]), false),
        };
        let (check, then, other) = builder.if_(condition, &[]);
        let (leaving, staying) = if leaves { (then, other) } else { (other, then) };
        Builder::at_end(self.func, leaving).break_(of, &[value]);
        Builder::at_end(self.func, staying).break_(check, &[]);
    }

    /// An operation over the subgroup, where all invocations execute it.
    fn subgroup(&mut self, region: Region) {
        let ty = self.ty();
        let value = self.value(region, ty);
        let number = self.rng.below(INVOCATIONS as usize) as u32;
        let integer = ty.base != Base::B1;
        let mut builder = Builder::at_end(self.func, region);
        let constant = builder.u32(number);
        let lane = builder.u32(number & 3);
        let reduced = if integer {
            [Op::IAdd, Op::UMin, Op::IMax, Op::IXor, Op::IMul][number as usize % 5]
        } else {
            [Op::IAnd, Op::IOr, Op::IXor][number as usize % 3]
        };
        let cluster = Payload::Reduce(reduced, [0, 0, 4, 2][self.rng.below(4)]);
        let whole = Payload::Reduce(reduced, 0);
        let xor = builder.u32(1 + number % 7);
        let (op, payload, args) = match self.rng.below(12) {
            0 => (Op::ReadFirst, Payload::None, vec![value]),
            1 => (Op::Broadcast, Payload::None, vec![value, constant]),
            2 => (Op::Shuffle, Payload::None, vec![value, constant]),
            3 => (Op::ShuffleXor, Payload::None, vec![value, xor]),
            4 => (Op::QuadBroadcast, Payload::None, vec![value, lane]),
            5 => (Op::QuadSwap, Payload::Quad(QuadDir::ALL[number as usize % 3]), vec![value]),
            6 | 7 => (Op::Reduce, cluster, vec![value]),
            8 => (Op::InclusiveScan, whole, vec![value]),
            9 => (Op::ExclusiveScan, whole, vec![value]),
            10 => (Op::VoteIEq, Payload::None, vec![value]),
            _ if ty == Type::BOOL => {
                [(Op::VoteAny, Payload::None, vec![value]), (Op::VoteAll, Payload::None, vec![value])]
                    [number as usize % 2]
                    .clone()
            }
            _ if ty.base == Base::B32 => {
                let ops = [Op::Ddx, Op::Ddy, Op::DdxFine, Op::DdyFine, Op::DdxCoarse, Op::DdyCoarse];
                (ops[number as usize % 6], Payload::None, vec![value])
            }
            _ => (Op::Elect, Payload::None, Vec::new()),
        };
        let result = match op {
            Op::VoteIEq | Op::VoteAny | Op::VoteAll | Op::Elect => Type::BOOL,
            _ => ty,
        };
        self.values.push(builder.value(op, payload, &args, result));
    }

    /// A word for a neighbour through memory of the workgroup.
    fn exchange(&mut self, region: Region) {
        let value = self.value(region, Type::B32);
        let neighbour = 1 + self.rng.below(INVOCATIONS as usize - 1) as u32;
        let kinds = MemoryKinds::SHARED.or(MemoryKinds::BUFFERS);
        let order = Order::ACQUIRE.or(Order::RELEASE);
        let barrier = BarrierInfo { execution: Scope::Workgroup, memory: Scope::Workgroup, order, kinds };
        let mem = Payload::Mem(MemAccess { space: Space::Shared, access: Access::NONE, align: 2 });
        let (start, index) = (self.start, self.index);
        let mut builder = Builder::at_end(self.func, region);
        builder.inst(Op::Store, mem, &[value, start], &[]);
        builder.inst(Op::Barrier, Payload::Barrier(barrier), &[], &[]);
        let neighbour = builder.u32(neighbour);
        let other = builder.alu(Op::IXor, &[index, neighbour]);
        let bytes = builder.u32(BYTES);
        let at = builder.alu(Op::IMul, &[other, bytes]);
        let seen = builder.value(Op::Load, mem, &[at], Type::B32);
        builder.inst(Op::Barrier, Payload::Barrier(barrier), &[], &[]);
        self.values.push(seen);
    }

    fn body(&mut self, region: Region, depth: usize) {
        for _ in 0..3 + self.rng.below(10) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            match self.rng.below(24) {
                0..=8 => self.alu(region),
                9..=12 => self.load(region),
                13..=17 => self.store(region),
                18 if depth < 3 => self.branch(region, depth),
                19 | 20 if depth < 3 => self.counted_loop(region, depth),
                21 if depth == 0 => self.exchange(region),
                22 | 23 if depth == 0 => self.subgroup(region),
                _ => {
                    let Some(&value) = self.rng.pick(&self.values) else { continue };
                    let lane = self.rng.below(self.func.ty(value).lanes.into()) as u8;
                    let lane = Builder::at_end(self.func, region).extract(value, lane);
                    self.values.push(lane);
                }
            }
        }
    }
}

/// A shader whose results are defined, except that a stored float may be any NaN.
pub fn random(rng: &mut Rng) -> Shader {
    let mut shader = Shader::default();
    shader.info.workgroup_size = [INVOCATIONS, 1, 1];
    shader.info.shared_size = INVOCATIONS * BYTES;
    shader.info.scratch_size = BYTES;
    shader.info.modes = Modes::LINEAR;
    for mode in &mut shader.info.float_modes {
        mode.preserve = true;
    }
    for binding in 0..2 {
        let access = if binding == 1 { Access::RESTRICT } else { Access::NONE };
        let data = ResourceData::new(ResourceClass::StorageBuffer, binding);
        shader.resources.push(ResourceData { access, ..data });
    }
    let resources: Vec<_> = shader.resources.keys().collect();
    shader.add_function();
    let func = shader.entry_mut();
    let region = func.body();
    let mut builder = Builder::at_end(func, region);
    let value = SystemValue::LocalInvocationIndex;
    let index = builder.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
    let zero = builder.u32(0);
    let mut descriptor = |number: usize| {
        builder.value(
            Op::Descriptor,
            Payload::Resource(resources[number], Access::NONE),
            &[zero],
            Type::HANDLE,
        )
    };
    let buffers = [descriptor(0), descriptor(1)];
    let width = builder.u32(BYTES);
    let start = builder.alu(Op::IMul, &[index, width]);
    let four = Type::new(Base::B32, 4).expect("a type");
    // Workgroup memory and scratch start undefined, so they are stored first.
    for offset in (0..BYTES).step_by(16) {
        let offset = builder.u32(offset);
        let at = builder.alu(Op::IAdd, &[start, offset]);
        let mem = |space| Payload::Mem(MemAccess { space, access: Access::NONE, align: 4 });
        let loaded = builder.value(Op::Load, mem(Space::Storage), &[buffers[0], at], four);
        builder.inst(Op::Store, mem(Space::Shared), &[loaded, at], &[]);
        builder.inst(Op::Store, mem(Space::Scratch), &[loaded, offset], &[]);
    }
    let mut maker = Maker { rng, func, values: vec![index, start], buffers, start, index, left: 90 };
    while maker.left > 0 {
        maker.body(region, 0);
    }
    let values: Vec<Value> = maker.values.iter().rev().take(12).copied().collect();
    let mut builder = Builder::at_end(maker.func, region);
    for (number, value) in values.into_iter().enumerate() {
        let ty = builder.func.ty(value);
        let lane = builder.extract(value, ty.lanes - 1);
        let word = match ty.base {
            Base::B1 => {
                let one = builder.u32(1);
                builder.alu(Op::Select, &[lane, one, zero])
            }
            Base::B32 => lane,
            _ => builder.convert(Op::U2U, Base::B32, lane),
        };
        let offset = builder.u32(number as u32 * 4);
        let at = builder.alu(Op::IAdd, &[start, offset]);
        let mem = Payload::Mem(MemAccess { space: Space::Storage, access: Access::NONE, align: 2 });
        builder.inst(Op::Store, mem, &[word, buffers[1], at], &[]);
    }
    builder.return_(&[]);
    shader
}

/// Runs a shader in one subgroup, which has all of its invocations.
pub fn observe(shader: &Shader, seed: u64, steps: u64) -> Result<Observed, NotComparable> {
    unwedge_testkit::shaders::run::observe(shader, &Setup { seed, subgroup_size: 32, steps })
}

#[test]
fn random_shaders_of_memory_do_the_same_after_passes() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 10_000 } else { 40 };
    let seed = std::env::var("UNWEDGE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut compared = 0;
    for round in seed..seed + rounds {
        let shader = random(&mut Rng::new(round));
        validate(&shader).unwrap_or_else(|e| panic!("round {round}: {e}\n{}", print(&shader)));
        let before = match observe(&shader, round, STEPS) {
            Ok(before) => before,
            Err(NotComparable::Error(RunError::Steps(_))) => continue,
            Err(NotComparable::Error(e)) => panic!("round {round}: {e}\n{}", print(&shader)),
            Err(NotComparable::Undefined(_)) => continue,
        };
        compared += 1;
        let mut rng = Rng::new(round);
        let mut sequences: Vec<Vec<&Pass>> = PASSES.iter().map(|pass| vec![pass]).collect();
        // Several in any order, each once: some make shaders much longer.
        for _ in 0..2 {
            let mut order: Vec<&Pass> = PASSES.iter().collect();
            for at in (1..order.len()).rev() {
                order.swap(at, rng.below(at + 1));
            }
            order.truncate(10);
            sequences.push(order);
        }
        for passes in sequences {
            let mut changed = shader.clone();
            let mut names = Vec::new();
            for pass in passes {
                names.push(pass.name);
                let before = changed.clone();
                (pass.run)(&mut changed);
                validate(&changed).unwrap_or_else(|e| {
                    panic!("round {round}, {names:?}: {e}\n{}\nbefore:\n{}", print(&changed), print(&before))
                });
            }
            let texts = || format!("{}\nbefore:\n{}", print(&changed), print(&shader));
            let after = observe(&changed, round, MORE_STEPS * STEPS)
                .unwrap_or_else(|e| panic!("round {round}, {names:?}: {e:?}\n{}", texts()));
            assert!(same(&before, &after), "round {round}, {names:?}:\n{}", texts());
        }
    }
    println!("{compared} of {rounds} compared");
    assert!(compared * 10 >= rounds * 8, "only {compared} of {rounds} are defined");
}
