//! Random valid shaders do the same after each pass as before.
//!
//! All operations on bits and floats, all types, variables with masks and indices, `if`, `block`, loops that end, breaks through
//! several levels. What would be undefined is kept defined: divisors, indices and bit fields are limited, variables start stored.

use super::support::{NotComparable, observe, same};
use unwedge_shader::ir::{
    Access, Base, BaseSet, Builder, Dim, FloatMode, Function, Inst, MemAccess, Op, Payload, Region,
    ResourceClass, ResourceData, Round, Rule, Shader, Space, Storage, SystemValue, Traits, Type, TypeNode,
    Value, Var, VarData, VarFlags,
};
use unwedge_shader::passes::{PASSES, standard};
use unwedge_shader::text::print;
use unwedge_shader::valid::validate;
use unwedge_testkit::mutate::Rng;

const BASES: [Base; 5] = [Base::B1, Base::B8, Base::B16, Base::B32, Base::B64];

/// Elements of every variable.
const ELEMENTS: u32 = 3;

/// A structured instruction that is open, and the types of its results.
#[derive(Clone)]
struct Target {
    inst: Inst,
    results: Vec<Type>,
}

struct Generator<'a> {
    rng: &'a mut Rng,
    func: &'a mut Function,
    /// Values that are visible here.
    values: Vec<Value>,
    vars: Vec<(Var, Type)>,
    targets: Vec<Target>,
    /// Instructions that may still be made.
    left: usize,
}

impl Generator<'_> {
    fn ty(&mut self) -> Type {
        let base = BASES[self.rng.below(BASES.len())];
        let lanes = [1, 1, 1, 2, 3, 4][self.rng.below(6)];
        Type::new(base, lanes).expect("a type")
    }

    fn constant(&mut self, region: Region, ty: Type) -> Value {
        let mut bits = || match self.rng.below(5) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << self.rng.below(ty.base.bits() as usize),
            _ => self.rng.next_u64(),
        };
        let bits: Vec<u64> = (0..ty.lanes).map(|_| bits()).collect();
        let mut builder = Builder::at_end(self.func, region);
        let lanes: Vec<Value> = bits.iter().map(|&bits| builder.constant(ty.base, bits)).collect();
        builder.vec(&lanes)
    }

    /// A visible value of a type, or a new constant.
    fn value(&mut self, region: Region, ty: Type) -> Value {
        let fits: Vec<Value> =
            self.values.iter().copied().filter(|&value| self.func.ty(value) == ty).collect();
        if fits.is_empty() || self.rng.below(8) == 0 {
            return self.constant(region, ty);
        }
        // Later ones more often.
        let at = self.rng.below(fits.len()).max(self.rng.below(fits.len()));
        fits[at]
    }

    fn alu(&mut self, region: Region) {
        let op = Op::ALL[self.rng.below(Op::ALL.len())];
        if !op.has(Traits::ELEMENTWISE) || matches!(op, Op::F2I | Op::F2U) {
            return;
        }
        let mut t = self.ty();
        let row = op.row();
        let sets = row.operands.iter().chain(&row.result).filter_map(|rule| match rule {
            Rule::T(set) => Some(*set),
            _ => None,
        });
        while !sets.clone().all(|set: BaseSet| set.has(t.base)) {
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
        self.keep_defined(region, op, &mut args, t);
        let exact = op.has(Traits::FLOAT) && self.rng.below(3) == 0;
        let mut builder = Builder::at_end(self.func, region);
        builder.exact = exact;
        let value = match row.operands.first() {
            Some(Rule::LanesOf(_)) => builder.convert(op, t.base, args[0]),
            _ => builder.alu(op, &args),
        };
        self.values.push(value);
    }

    fn keep_defined(&mut self, region: Region, op: Op, args: &mut [Value], t: Type) {
        let mut builder = Builder::at_end(self.func, region);
        match op {
            Op::UDiv | Op::UMod => {
                let one = builder.splat_constant(t, 1);
                args[1] = builder.alu(Op::IOr, &[args[1], one]);
            }
            Op::IDiv | Op::IRem | Op::IMod => {
                let divisor = 1 + self.rng.below(7) as u64;
                args[1] = builder.splat_constant(t, divisor);
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
    }

    fn shuffle(&mut self, region: Region) {
        let Some(&value) = self.rng.pick(&self.values) else { return };
        let ty = self.func.ty(value);
        let (lane, other) = (self.rng.below(ty.lanes.into()) as u8, self.ty());
        let scalar = self.value(region, ty.lane());
        let index = self.value(region, Type::B32);
        let mut builder = Builder::at_end(self.func, region);
        let made = match self.rng.below(5) {
            0 => builder.extract(value, lane),
            1 if ty.lanes > 1 => {
                let lanes: Vec<Value> = (0..ty.lanes).map(|lane| builder.extract(value, lane)).collect();
                builder.vec(&lanes)
            }
            2 if ty.lanes == 1 && ty.base != Base::Handle => builder.vec(&[value, scalar, value]),
            3 if ty.lanes > 1 => {
                let last = builder.u32(u32::from(ty.lanes) - 1);
                let index = builder.alu(Op::UMin, &[index, last]);
                builder.value(Op::ExtractDyn, Payload::None, &[value, index], ty.lane())
            }
            _ if ty.bits() == other.bits() && ty.base != Base::B1 && other.base != Base::B1 => {
                builder.bitcast(other, value)
            }
            _ => return,
        };
        self.values.push(made);
    }

    /// Loads or stores a variable, by a constant index or another one.
    fn variable(&mut self, region: Region) {
        let (var, ty) = self.vars[self.rng.below(self.vars.len())];
        let dynamic = self.rng.below(40) == 0;
        let index = if dynamic { Some(self.value(region, Type::B32)) } else { None };
        let (element, mask) = (self.rng.below(ELEMENTS as usize) as u32, self.rng.next_u64());
        let stored = (self.rng.below(2) == 0).then(|| self.value(region, ty));
        let mut builder = Builder::at_end(self.func, region);
        let index = match index {
            Some(index) => {
                let last = builder.u32(ELEMENTS - 1);
                builder.alu(Op::UMin, &[index, last])
            }
            None => builder.u32(element),
        };
        match stored {
            Some(value) => {
                let all = (1u64 << ty.lanes) - 1;
                let mask = if mask & 0x300 == 0 { mask & all } else { all };
                builder.inst(Op::StoreVar, Payload::Var(var, mask as u16), &[value, index], &[]);
            }
            None => {
                let value = builder.value(Op::LoadVar, Payload::Var(var, 0), &[index], ty);
                self.values.push(value);
            }
        }
    }

    fn operands(&mut self, region: Region, types: &[Type]) -> Vec<Value> {
        types.iter().map(|&ty| self.value(region, ty)).collect()
    }

    /// A region that ends by leaving an instruction: mostly the innermost one.
    fn arm(&mut self, region: Region) {
        let visible = self.values.len();
        self.body(region);
        let breakable: Vec<Target> = self.targets.clone();
        let at = if self.rng.below(5) == 0 { self.rng.below(breakable.len()) } else { breakable.len() - 1 };
        let target = &breakable[at];
        let args = self.operands(region, &target.results);
        Builder::at_end(self.func, region).break_(target.inst, &args);
        self.values.truncate(visible);
    }

    fn structured(&mut self, region: Region) {
        let results: Vec<Type> = (0..self.rng.below(3)).map(|_| self.ty()).collect();
        match self.rng.below(5) {
            0 | 1 => {
                let condition = self.value(region, Type::BOOL);
                let (inst, then, other) = Builder::at_end(self.func, region).if_(condition, &results);
                self.targets.push(Target { inst, results });
                self.arm(then);
                self.arm(other);
                self.leave(inst);
            }
            2 => {
                let (inst, body) = Builder::at_end(self.func, region).block(&results);
                self.targets.push(Target { inst, results });
                self.arm(body);
                self.leave(inst);
            }
            _ => self.counted_loop(region, results),
        }
    }

    fn leave(&mut self, inst: Inst) {
        self.targets.pop();
        self.values.extend_from_slice(self.func.results(inst));
    }

    /// A loop that ends after a few turns, with further parameters.
    fn counted_loop(&mut self, region: Region, results: Vec<Type>) {
        let types: Vec<Type> = (0..self.rng.below(3)).map(|_| self.ty()).collect();
        let mut args = self.operands(region, &types);
        let turns = 1 + self.rng.below(4) as u32;
        let mut builder = Builder::at_end(self.func, region);
        args.push(builder.u32(0));
        let (inst, body) = builder.loop_(&args, &results);
        let visible = self.values.len();
        self.values.extend_from_slice(self.func.params(body));
        let counter = *self.func.params(body).last().expect("the counter");
        let mut builder = Builder::at_end(self.func, body);
        let limit = builder.u32(turns);
        let more = builder.alu(Op::ULt, &[counter, limit]);
        let (check, then, other) = builder.if_(more, &[]);
        Builder::at_end(self.func, then).break_(check, &[]);
        let leaving = self.operands(other, &results);
        Builder::at_end(self.func, other).break_(inst, &leaving);
        self.targets.push(Target { inst, results });
        self.body(body);
        let mut next = self.operands(body, &types);
        let mut builder = Builder::at_end(self.func, body);
        let one = builder.u32(1);
        next.push(builder.alu(Op::IAdd, &[counter, one]));
        builder.continue_(inst, &next);
        self.values.truncate(visible);
        self.leave(inst);
    }

    fn body(&mut self, region: Region) {
        for _ in 0..2 + self.rng.below(10) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            match self.rng.below(20) {
                0..=9 => self.alu(region),
                10..=12 => self.shuffle(region),
                13..=16 => self.variable(region),
                17 | 18 if self.targets.len() < 5 => self.structured(region),
                _ => {
                    let ty = self.ty();
                    let value = self.constant(region, ty);
                    self.values.push(value);
                }
            }
        }
    }
}

fn random(rng: &mut Rng) -> Shader {
    let mut shader = Shader::default();
    shader.info.workgroup_size = [8, 1, 1];
    for mode in &mut shader.info.float_modes {
        let round = [Round::NearestEven, Round::Zero][rng.below(2)];
        *mode = FloatMode { round, flush: [None, Some(false), Some(true)][rng.below(3)], preserve: true };
    }
    let resource = shader.resources.push(ResourceData {
        name: String::new(),
        class: ResourceClass::StorageBuffer,
        set: 0,
        binding: 0,
        count: 1,
        access: Access::NONE,
        dim: Dim::D2,
        size: 0,
        attachment: None,
    });
    let mut vars = Vec::new();
    for number in 0..4 {
        let ty = Type::new(BASES[rng.below(BASES.len())], 1 + rng.below(4) as u32).expect("a type");
        let element = shader.types.push(TypeNode::Leaf(ty));
        let array = shader.types.push(TypeNode::Array { element, len: ELEMENTS });
        let var = shader.vars.push(VarData {
            name: String::new(),
            storage: if number % 2 == 0 { Storage::Function } else { Storage::Private },
            ty: array,
            location: None,
            component: 0,
            index: 0,
            builtin: None,
            flags: VarFlags::default(),
            capture: None,
        });
        vars.push((var, ty));
    }
    shader.add_function();
    let func = shader.entry_mut();
    let region = func.body();
    let mut builder = Builder::at_end(func, region);
    let index = builder.value(
        Op::SysVal,
        Payload::SysVal(SystemValue::LocalInvocationIndex),
        &[],
        SystemValue::LocalInvocationIndex.ty(),
    );
    let zero = builder.u32(0);
    let descriptor =
        builder.value(Op::Descriptor, Payload::Resource(resource, Access::NONE), &[zero], Type::HANDLE);
    let mem = Payload::Mem(MemAccess { space: Space::Storage, access: Access::NONE, align: 2 });
    let width = builder.u32(64);
    let start = builder.alu(Op::IMul, &[index, width]);
    let four = Type::new(Base::B32, 4).expect("a type");
    let loaded = builder.value(Op::Load, mem, &[descriptor, start], four);
    let mut generator = Generator {
        rng,
        func,
        values: vec![index, loaded],
        vars: vars.clone(),
        targets: Vec::new(),
        left: 120,
    };
    for (var, ty) in vars {
        for element in 0..ELEMENTS {
            let value = generator.value(region, ty);
            let mut builder = Builder::at_end(generator.func, region);
            let index = builder.u32(element);
            let all = (1u16 << ty.lanes) - 1;
            builder.inst(Op::StoreVar, Payload::Var(var, all), &[value, index], &[]);
        }
    }
    while generator.left > 0 {
        generator.body(region);
    }
    // The latest values are stored, folded into words.
    let values: Vec<Value> = generator.values.iter().rev().take(12).copied().collect();
    let mut builder = Builder::at_end(generator.func, region);
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
        builder.inst(Op::Store, mem, &[word, descriptor, at], &[]);
    }
    builder.return_(&[]);
    shader
}

#[test]
fn random_shaders_do_the_same_after_each_pass() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 50_000 } else { 400 };
    let seed = std::env::var("UNWEDGE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut compared = 0;
    for round in seed..seed + rounds {
        let shader = random(&mut Rng::new(round));
        validate(&shader).unwrap_or_else(|e| panic!("round {round}: {e}\n{}", print(&shader)));
        let before = match observe(&shader, round, 200_000) {
            Ok(before) => before,
            Err(NotComparable::Error(e)) => panic!("round {round}: {e}\n{}", print(&shader)),
            Err(NotComparable::Undefined(_)) => continue,
        };
        compared += 1;
        let all = [("standard", standard as fn(&mut Shader) -> bool)];
        for (name, run) in PASSES.iter().map(|pass| (pass.name, pass.run)).chain(all) {
            let mut changed = shader.clone();
            run(&mut changed);
            let texts = || format!("{}\nbefore:\n{}", print(&changed), print(&shader));
            validate(&changed).unwrap_or_else(|e| panic!("round {round}, {name}: {e}\n{}", texts()));
            let after = observe(&changed, round, 400_000)
                .unwrap_or_else(|e| panic!("round {round}, {name}: {e:?}\n{}", texts()));
            assert!(same(&before, &after), "round {round}, {name}:\n{}", texts());
        }
    }
    println!("{compared} of {rounds} compared");
    assert!(compared * 10 >= rounds * 9, "only {compared} of {rounds} are defined");
}
