//! Random shaders of arithmetic on vectors of 16 bits: invocations load pairs and single lanes, compute with them, exchange lanes, choose by comparisons, and store
//! vectors. Integers and floats do not become each other, because bits of NaNs may differ: what is stored is in two parts.

use super::lanes::{INVOCATIONS, OWN};
use crate::mutate::Rng;
use unwedge_shader::ir::{
    Access, Base, Builder, Dim, Function, MemAccess, Op, Payload, Region, ResourceClass, ResourceData,
    Shader, Space, SystemValue, Type, Value,
};

/// Halves of the output of an invocation that are floats; as many integers follow.
pub const FLOATS: usize = OWN as usize;
/// Bytes of the input that an invocation owns.
const OWN_INPUT: u32 = 16;
/// Bytes of a stored vector, and how many there are of floats, and of integers.
const SLOT: u32 = 8;
const SLOTS: u32 = OWN * 2 / SLOT;

const CONSTANTS: [u16; 16] =
    [0, 1, 3, 15, 64, 0x3c00, 0xbc00, 0x3800, 0x4000, 0x4200, 0x7bff, 0x8000, 0xffff, 0x0400, 0x3555, 0xfff0];

struct Generator<'a> {
    rng: &'a mut Rng,
    func: &'a mut Function,
    region: Region,
    floats: Vec<Value>,
    integers: Vec<Value>,
    conditions: Vec<Value>,
    input: Value,
    own_input: Value,
}

fn half(lanes: u8) -> Type {
    Type { base: Base::B16, lanes }
}

fn mem(space: Space, access: Access, align: u8) -> Payload {
    Payload::Mem(MemAccess { space, access, align })
}

impl Generator<'_> {
    fn b(&mut self) -> Builder<'_> {
        Builder::at_end(self.func, self.region)
    }

    /// A value with a number of lanes, which may be those of another one in another order.
    fn operand(&mut self, float: bool, lanes: u8) -> Value {
        if self.rng.below(5) == 0 {
            return self.constant(lanes);
        }
        let pool = if float { &self.floats } else { &self.integers };
        // Mostly recent ones.
        let back = self.rng.below(pool.len()).min(self.rng.below(pool.len()));
        let value = pool[pool.len() - 1 - back];
        let own = self.func.ty(value).lanes;
        if own == lanes && self.rng.below(4) > 0 {
            return value;
        }
        let chosen: Vec<u8> = (0..lanes).map(|_| self.rng.below(own.into()) as u8).collect();
        let mut b = self.b();
        let lanes: Vec<Value> = chosen.into_iter().map(|lane| b.extract(value, lane)).collect();
        b.vec(&lanes)
    }

    fn constant(&mut self, lanes: u8) -> Value {
        let same = self.rng.below(2) == 0;
        let first = CONSTANTS[self.rng.below(CONSTANTS.len())];
        let bits: Vec<u16> = (0..lanes)
            .map(|_| if same { first } else { CONSTANTS[self.rng.below(CONSTANTS.len())] })
            .collect();
        let mut b = self.b();
        let lanes: Vec<Value> = bits.into_iter().map(|bits| b.constant(Base::B16, bits.into())).collect();
        b.vec(&lanes)
    }

    fn load(&mut self, float: bool) {
        let lanes = 1 + self.rng.below(4) as u8;
        let aligned = lanes.is_multiple_of(2) && self.rng.below(4) > 0;
        let (step, align) = if aligned { (4, 2) } else { (2, 1) };
        let room = (OWN_INPUT - u32::from(lanes) * 2) / step;
        let first = self.rng.below(room as usize + 1) as u32 * step;
        let uniform = self.rng.below(5) == 0;
        let (input, own) = (self.input, self.own_input);
        let mut b = self.b();
        let mut offset = b.u32(first);
        if !uniform {
            offset = b.alu(Op::IAdd, &[own, offset]);
        }
        let access = Access::READONLY.or(Access::RESTRICT);
        let value = b.value(Op::Load, mem(Space::Storage, access, align), &[input, offset], half(lanes));
        self.push(float, value);
    }

    fn push(&mut self, float: bool, value: Value) {
        if float { self.floats.push(value) } else { self.integers.push(value) }
    }

    fn float(&mut self) {
        let lanes = 1 + self.rng.below(4) as u8;
        let [x, y, z] = [0; 3].map(|_| self.operand(true, lanes));
        let choice = self.rng.below(14);
        let mut b = self.b();
        let value = match choice {
            0 | 1 => b.alu(Op::FAdd, &[x, y]),
            2 => b.alu(Op::FSub, &[x, y]),
            3 | 4 => b.alu(Op::FMul, &[x, y]),
            5 | 6 => b.alu(Op::FFma, &[x, y, z]),
            7 => b.alu(Op::FMin, &[x, y]),
            8 => b.alu(Op::FMax, &[x, y]),
            9 => b.alu(Op::FNeg, &[x]),
            10 => b.alu(Op::FAbs, &[x]),
            11 => {
                let product = b.alu(Op::FMul, &[x, y]);
                b.alu(Op::FAdd, &[product, z])
            }
            12 => {
                let wide = [x, y].map(|value| b.convert(Op::F2F, Base::B32, value));
                let sum = b.alu(Op::FAdd, &wide);
                b.convert(Op::F2F, Base::B16, sum)
            }
            _ => {
                let less = b.alu(Op::FLt, &[x, y]);
                let chosen = b.alu(Op::Select, &[less, z, x]);
                self.conditions.push(less);
                chosen
            }
        };
        self.floats.push(value);
    }

    fn integer(&mut self) {
        let lanes = 1 + self.rng.below(4) as u8;
        let [x, y, z] = [0; 3].map(|_| self.operand(false, lanes));
        let (choice, count) = (self.rng.below(19), self.rng.below(18) as u64);
        let condition = self.conditions.last().copied();
        let mut b = self.b();
        let value = match choice {
            0 | 1 => b.alu(Op::IAdd, &[x, y]),
            2 => b.alu(Op::ISub, &[x, y]),
            3 => b.alu(Op::IMul, &[x, y]),
            4 => {
                let product = b.alu(Op::IMul, &[x, y]);
                b.alu(Op::IAdd, &[product, z])
            }
            5 => b.alu(Op::INeg, &[x]),
            6 => b.alu(Op::IMin, &[x, y]),
            7 => b.alu(Op::IMax, &[x, y]),
            8 => b.alu(Op::UMin, &[x, y]),
            9 => b.alu(Op::UMax, &[x, y]),
            10 => b.alu(Op::IAnd, &[x, y]),
            11 => b.alu(Op::IXor, &[x, y]),
            12 => b.alu(Op::INot, &[x]),
            13..=15 => {
                let op = [Op::IShl, Op::IShr, Op::UShr][choice - 13];
                let words = Type { base: Base::B32, lanes };
                let counts = if count > 15 {
                    b.convert(Op::U2U, Base::B32, y)
                } else {
                    b.splat_constant(words, count)
                };
                b.alu(op, &[x, counts])
            }
            16 => {
                let wide = [x, y].map(|value| b.convert(Op::I2I, Base::B32, value));
                let product = b.alu(Op::IMul, &wide);
                let count = b.splat_constant(Type { base: Base::B32, lanes }, count);
                let shifted = b.alu(Op::IShr, &[product, count]);
                b.convert(Op::U2U, Base::B16, shifted)
            }
            17 => {
                let bits = b.alu(Op::ULt, &[x, y]);
                let condition = match condition {
                    Some(other) if b.func.ty(other).lanes == lanes => other,
                    _ => bits,
                };
                b.alu(Op::Select, &[condition, z, x])
            }
            _ if lanes == 2 => {
                let words = [x, y].map(|value| b.bitcast(Type::B32, value));
                let sum = b.alu(Op::IAdd, &words);
                b.bitcast(half(2), sum)
            }
            _ => b.alu(Op::IOr, &[x, y]),
        };
        self.integers.push(value);
    }

    /// A loop that adds to a vector, or multiplies it, a few times.
    fn repeated(&mut self, float: bool) {
        let lanes = 2 + self.rng.below(3) as u8;
        let (first, step) = (self.operand(float, lanes), self.operand(float, lanes));
        let (times, op) = (1 + self.rng.below(3) as u32, self.rng.below(2));
        let mut b = self.b();
        let zero = b.u32(0);
        let (inst, body) = b.loop_(&[zero, first], &[half(lanes)]);
        let [counter, value] = *self.func.params(body) else { panic!("two parameters") };
        let mut b = Builder::at_end(self.func, body);
        let op = match (float, op) {
            (true, 0) => Op::FAdd,
            (true, _) => Op::FMul,
            (false, 0) => Op::IAdd,
            (false, _) => Op::IMul,
        };
        let made = b.alu(op, &[value, step]);
        let (one, limit) = (b.u32(1), b.u32(times));
        let next = b.alu(Op::IAdd, &[counter, one]);
        let goes = b.alu(Op::ULt, &[next, limit]);
        let (check, then, other) = b.if_(goes, &[]);
        Builder::at_end(self.func, then).break_(check, &[]);
        Builder::at_end(self.func, other).break_(inst, &[made]);
        Builder::at_end(self.func, body).continue_(inst, &[next, made]);
        let value = *self.func.results(inst).first().expect("a result");
        self.push(float, value);
    }

    /// Stores a vector in memory of the workgroup, and loads what another invocation of the subgroup's own has there.
    fn shared(&mut self, float: bool, local: Value) {
        let lanes = 2 * (1 + self.rng.below(2) as u8);
        let value = self.operand(float, lanes);
        let mut b = self.b();
        let eight = b.u32(SLOT);
        let offset = b.alu(Op::IMul, &[local, eight]);
        b.inst(Op::Store, mem(Space::Shared, Access::NONE, 2), &[value, offset], &[]);
        let loaded = b.value(Op::Load, mem(Space::Shared, Access::NONE, 2), &[offset], half(lanes));
        self.push(float, loaded);
    }
}

/// A random shader: input at binding 0 of set 0, output at binding 1.
pub fn random(rng: &mut Rng) -> Shader {
    let mut shader = Shader::default();
    shader.info.workgroup_size = [INVOCATIONS, 1, 1];
    shader.info.shared_size = INVOCATIONS * SLOT;
    let flush = (rng.below(4) == 0).then_some(true);
    // Otherwise passes may assume that infinities and NaNs do not occur, and results may differ from those of the interpreter.
    for mode in &mut shader.info.float_modes {
        mode.preserve = true;
    }
    (shader.info.float_modes[0].flush, shader.info.float_modes[2].flush) = (flush, flush);
    let buffer = |binding, access| {
        let data = ResourceData::new(ResourceClass::StorageBuffer, binding);
        ResourceData { access, dim: Dim::Buffer, ..data }
    };
    let resources = [buffer(0, Access::READONLY.or(Access::RESTRICT)), buffer(1, Access::RESTRICT)]
        .map(|data| shader.resources.push(data));
    let func = shader.add_function();
    let func = shader.function_mut(func);
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let zero = b.u32(0);
    let [input, output] = resources.map(|resource| {
        b.value(
            Op::Descriptor,
            Payload::Resource(resource, Access::NONE),
            &[zero],
            Type::scalar(Base::Handle),
        )
    });
    let [local, global] = [SystemValue::LocalInvocationId, SystemValue::GlobalInvocationId].map(|value| {
        let vector = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
        b.extract(vector, 0)
    });
    let bytes = b.u32(OWN_INPUT);
    let own_input = b.alu(Op::IMul, &[local, bytes]);
    let bytes = b.u32(OWN * 4);
    let own_output = b.alu(Op::IMul, &[global, bytes]);
    let mut generator = Generator {
        rng,
        func,
        region: body,
        floats: Vec::new(),
        integers: Vec::new(),
        conditions: Vec::new(),
        input,
        own_input,
    };
    for float in [true, true, false, false] {
        generator.load(float);
    }
    for _ in 0..12 + generator.rng.below(16) {
        let float = generator.rng.below(2) == 0;
        match generator.rng.below(16) {
            0 => generator.load(float),
            1 => generator.repeated(float),
            2 => generator.shared(float, local),
            _ if float => generator.float(),
            _ => generator.integer(),
        }
    }
    for slot in 0..2 * SLOTS {
        let float = slot < SLOTS;
        let lanes = 1 + generator.rng.below(4) as u8;
        let value = generator.operand(float, lanes);
        let align = if generator.rng.below(4) == 0 { 1 } else { 3 };
        let mut b = generator.b();
        let at = b.u32(slot * SLOT);
        let offset = b.alu(Op::IAdd, &[own_output, at]);
        b.inst(Op::Store, mem(Space::Storage, Access::NONE, align), &[value, output, offset], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

/// A random input: small integers, floats of many magnitudes, and any bits.
pub fn input(rng: &mut Rng) -> Vec<u8> {
    let mut half = || match rng.below(4) {
        0 => CONSTANTS[rng.below(CONSTANTS.len())],
        1 => rng.below(256) as u16,
        2 => 0x3000 | rng.next_u64() as u16 & 0x8fff,
        _ => rng.next_u64() as u16,
    };
    (0..INVOCATIONS * OWN_INPUT / 2).flat_map(|_| half().to_le_bytes()).collect()
}

/// The first half of the outputs of the workgroups that differs: its number among those of its invocation. All NaNs are equal.
pub fn difference(found: &[u8], expected: &[u8]) -> Option<usize> {
    let halves = |bytes: &[u8]| -> Vec<u16> {
        bytes.chunks_exact(2).map(|half| u16::from_le_bytes([half[0], half[1]])).collect()
    };
    let is_nan = |half: u16| half & 0x7fff > 0x7c00;
    let own = 2 * FLOATS;
    let differs = |(at, (a, b)): &(usize, (u16, u16))| {
        let float = at % own < FLOATS;
        a != b && !(float && is_nan(*a) && is_nan(*b))
    };
    halves(found).into_iter().zip(halves(expected)).enumerate().find(differs).map(|(at, _)| at)
}
