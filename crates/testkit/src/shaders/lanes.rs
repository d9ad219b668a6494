//! Random shaders of structured flow, in which lanes part and meet: constructs nest; lanes leave them and continue loops from any depth, by
//! conditions that are uniform or not, and compute together wherever they are. Every value along the way goes into what is stored. Invocations load, store and
//! change words that they own, by descriptors and by addresses.

use super::memory::COMMON_OPS;
use crate::mutate::Rng;
use unwedge_shader::interp::{self, BindingPoint, Bindings, MemoryImages, run_compute};
use unwedge_shader::ir::{
    Access, AtomicOp, Base, Builder, Dim, Function, Inst, MemAccess, Op, Payload, QuadDir, Region,
    ResourceClass, ResourceData, Shader, Space, SystemValue, Type, Value,
};
use unwedge_shader::text::print;

/// Invocations of a workgroup.
pub const INVOCATIONS: u32 = 64;
/// Workgroups.
pub const GROUPS: u32 = 2;
/// Words of the output that an invocation owns.
pub const OWN: u32 = 16;
/// The address of the output.
pub const OUTPUT: u64 = 0x2000_0000;
const INPUT_WORDS: u32 = 64;
const RESULTS: [Type; 2] = [Type::B32, Type::BOOL];

struct Generator<'a> {
    rng: &'a mut Rng,
    func: &'a mut Function,
    words: Vec<Value>,
    bits: Vec<Value>,
    /// Constructs that are open, with the counter of a loop.
    open: Vec<(Inst, Option<Value>)>,
    /// How many of them jumps leave alone: a loop with one exit is among them.
    closed: usize,
    output: Value,
    own: Value,
    left: usize,
    /// How many constructs may be open around another.
    deepest: usize,
}

fn mem(access: Access) -> Payload {
    Payload::Mem(MemAccess { space: Space::Storage, access, align: 2 })
}

impl Generator<'_> {
    fn word(&mut self) -> Value {
        *self.rng.pick(&self.words).expect("a word")
    }

    fn bit(&mut self) -> Value {
        *self.rng.pick(&self.bits).expect("a bit")
    }

    fn alu(&mut self, region: Region, op: Op, args: &[Value]) -> Value {
        Builder::at_end(self.func, region).alu(op, args)
    }

    fn compute(&mut self, region: Region) {
        let (a, b, bit) = (self.word(), self.word(), self.bit());
        match self.rng.below(11) {
            9 => self.subgroup(region, a, bit),
            0 => {
                let value = self.alu(region, Op::ULt, &[a, b]);
                self.bits.push(value);
            }
            1 => {
                let value = self.alu(region, Op::INot, &[bit]);
                self.bits.push(value);
            }
            2 => {
                let other = self.bit();
                let op = [Op::IAnd, Op::IOr, Op::IXor, Op::IEq][self.rng.below(4)];
                let value = self.alu(region, op, &[bit, other]);
                self.bits.push(value);
            }
            3 => {
                let value = self.alu(region, Op::Select, &[bit, a, b]);
                self.words.push(value);
            }
            _ => {
                let ops = [
                    Op::IAdd,
                    Op::ISub,
                    Op::IXor,
                    Op::IAnd,
                    Op::UMin,
                    Op::IMul,
                    Op::IShl,
                    Op::UShr,
                    Op::IMax,
                ];
                let op = ops[self.rng.below(ops.len())];
                let value = self.alu(region, op, &[a, b]);
                self.words.push(value);
            }
        }
    }

    /// What the lanes compute together.
    fn subgroup(&mut self, region: Region, a: Value, bit: Value) {
        const REDUCED: [Op; 9] =
            [Op::IAdd, Op::IMul, Op::IMin, Op::IMax, Op::UMin, Op::UMax, Op::IAnd, Op::IOr, Op::IXor];
        let reduced = REDUCED[self.rng.below(REDUCED.len())];
        let cluster = [0, 2, 4, 8, 16, 32][self.rng.below(6)];
        let words = Type::new(Base::B32, 4).expect("a type");
        let mut builder = Builder::at_end(self.func, region);
        let value = match self.rng.below(9) {
            7 => return self.moved(region, a),
            8 => {
                use SystemValue as V;
                const MASKS: [V; 5] = [
                    V::SubgroupEqMask,
                    V::SubgroupGeMask,
                    V::SubgroupGtMask,
                    V::SubgroupLeMask,
                    V::SubgroupLtMask,
                ];
                let mask = Payload::SysVal(MASKS[self.rng.below(MASKS.len())]);
                let mask = builder.value(Op::SysVal, mask, &[], words);
                builder.extract(mask, self.rng.below(2) as u8)
            }
            0 => builder.value(Op::InclusiveScan, Payload::Reduce(reduced, 0), &[a], Type::B32),
            1 => builder.value(Op::ExclusiveScan, Payload::Reduce(reduced, 0), &[a], Type::B32),
            2 => builder.value(Op::ReadFirst, Payload::None, &[a], Type::B32),
            3 => {
                let ballot = builder.value(Op::Ballot, Payload::None, &[bit], words);
                let value = builder.extract(ballot, 0);
                let bit = builder.alu(Op::InverseBallot, &[ballot]);
                self.bits.push(bit);
                value
            }
            4 => {
                let bit = builder.alu(Op::Elect, &[]);
                self.bits.push(bit);
                return;
            }
            _ => builder.value(Op::Reduce, Payload::Reduce(reduced, cluster), &[a], Type::B32),
        };
        self.words.push(value);
    }

    /// A word of another invocation, or a constant if that is not active.
    fn moved(&mut self, region: Region, a: Value) {
        let number = self.word();
        let (form, constant) = (self.rng.below(4), self.rng.below(4) as u32);
        let mut b = Builder::at_end(self.func, region);
        let own = b.value(Op::SysVal, Payload::SysVal(SystemValue::SubgroupInvocation), &[], Type::B32);
        let constant = b.u32(constant);
        let (source, value) = match form {
            0 => {
                let last = b.u32(63);
                let source = b.alu(Op::IAnd, &[number, last]);
                (source, b.value(Op::Shuffle, Payload::None, &[a, source], Type::B32))
            }
            1 => {
                let bit = b.u32(4);
                let distance = b.alu(Op::IShl, &[bit, constant]);
                let source = b.alu(Op::IXor, &[own, distance]);
                (source, b.value(Op::ShuffleXor, Payload::None, &[a, distance], Type::B32))
            }
            2 => {
                let (bits, direction) =
                    [(1, QuadDir::Horizontal), (2, QuadDir::Vertical), (3, QuadDir::Diagonal)]
                        [self.rng.below(3)];
                let bits = b.u32(bits);
                let source = b.alu(Op::IXor, &[own, bits]);
                (source, b.value(Op::QuadSwap, Payload::Quad(direction), &[a], Type::B32))
            }
            _ => {
                let quad = b.u32(!3);
                let quad = b.alu(Op::IAnd, &[own, quad]);
                let source = b.alu(Op::IOr, &[quad, constant]);
                (source, b.value(Op::QuadBroadcast, Payload::None, &[a, constant], Type::B32))
            }
        };
        let yes = b.bool(true);
        let active = b.value(Op::Ballot, Payload::None, &[yes], Type { base: Base::B32, lanes: 4 });
        let (five, one) = (b.u32(5), b.u32(1));
        let word = b.alu(Op::UShr, &[source, five]);
        let word = b.alu(Op::IAnd, &[word, one]);
        let word = b.value(Op::ExtractDyn, Payload::None, &[active, word], Type::B32);
        let bits = b.alu(Op::UShr, &[word, source]);
        let bit = b.alu(Op::IAnd, &[bits, one]);
        let is_active = b.alu(Op::IEq, &[bit, one]);
        let value = b.alu(Op::Select, &[is_active, value, constant]);
        self.words.push(value);
    }

    /// Stores a word to one of those that the invocation owns.
    fn store(&mut self, region: Region, value: Value, number: u32) {
        let output = self.output;
        let own = self.own;
        let mut builder = Builder::at_end(self.func, region);
        let at = builder.u32(number * 4);
        let offset = builder.alu(Op::IAdd, &[own, at]);
        builder.inst(Op::Store, mem(Access::NONE), &[value, output, offset], &[]);
    }

    /// Loads, stores or changes one of the words that the invocation owns, or two of them as one number.
    fn memory(&mut self, region: Region) {
        let (a, b, c) = (self.word(), self.word(), self.word());
        let (wide, global) = (self.rng.below(2) == 0, self.rng.below(3) != 0);
        let (choice, op) = (self.rng.below(5), COMMON_OPS.get(self.rng.below(COMMON_OPS.len() + 2)).copied());
        // Exchanges are twice as frequent as each of the others.
        let op = op.unwrap_or(AtomicOp::Exchange);
        let number = 2 * (1 + self.rng.below(OWN as usize / 2 - 1)) as u32;
        let (output, own) = (self.output, self.own);
        let ty = if wide { Type::B64 } else { Type::B32 };
        let words = Type { base: Base::B32, lanes: 2 };
        let mut builder = Builder::at_end(self.func, region);
        let offset = builder.u32(number * 4);
        let offset = builder.alu(Op::IAdd, &[own, offset]);
        let place = if global {
            let offset = builder.convert(Op::U2U, Base::B64, offset);
            let first = builder.constant(Base::B64, OUTPUT);
            vec![builder.alu(Op::IAdd, &[first, offset])]
        } else {
            vec![output, offset]
        };
        let value = |builder: &mut Builder<'_>, low: Value| match wide {
            true => {
                let pair = builder.vec(&[low, b]);
                builder.bitcast(Type::B64, pair)
            }
            false => low,
        };
        let space = if global { Space::Global } else { Space::Storage };
        let mem = MemAccess { space, access: Access::NONE, align: if wide { 3 } else { 2 } };
        let found = match choice {
            0 => {
                let args = [&[value(&mut builder, a)], &place[..]].concat();
                builder.inst(Op::Store, Payload::Mem(mem), &args, &[]);
                return;
            }
            1 => builder.value(Op::Load, Payload::Mem(mem), &place, ty),
            2 => {
                let args = [&[value(&mut builder, a), value(&mut builder, c)], &place[..]].concat();
                let payload = Payload::Atomic(AtomicOp::Exchange, mem);
                builder.value(Op::AtomicCompare, payload, &args, ty)
            }
            _ => {
                let args = [&[value(&mut builder, a)], &place[..]].concat();
                builder.value(Op::Atomic, Payload::Atomic(op, mem), &args, ty)
            }
        };
        if !wide {
            self.words.push(found);
            return;
        }
        let pair = builder.bitcast(words, found);
        let lanes = [0, 1].map(|lane| builder.extract(pair, lane));
        self.words.extend(lanes);
    }

    /// A jump to any construct that is open, or out of the function.
    fn jump(&mut self, region: Region) {
        if self.open.is_empty() || self.closed == 0 && self.rng.below(24) == 0 {
            let value = self.word();
            self.store(region, value, 1);
            Builder::at_end(self.func, region).return_(&[]);
            return;
        }
        // Mostly near.
        let last = self.open.len() - 1;
        let up = self.rng.below(3).min(self.rng.below(3)) + self.rng.below(2) * self.rng.below(2);
        let (target, counter) = self.open[last - up.min(last - self.closed)];
        let (word, bit) = (self.word(), self.bit());
        match counter {
            Some(counter) if self.rng.below(2) == 0 => {
                let mut builder = Builder::at_end(self.func, region);
                let one = builder.u32(1);
                let next = builder.alu(Op::IAdd, &[counter, one]);
                builder.continue_(target, &[next, word, bit]);
            }
            _ => {
                Builder::at_end(self.func, region).break_(target, &[word, bit]);
            }
        }
    }

    /// Fills a region and ends it.
    fn region(&mut self, region: Region) {
        let (words, bits) = (self.words.len(), self.bits.len());
        self.statements(region);
        self.jump(region);
        self.words.truncate(words);
        self.bits.truncate(bits);
    }

    fn statements(&mut self, region: Region) {
        for _ in 0..1 + self.rng.below(4) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            match self.rng.below(8) {
                0 => self.construct(region, Op::Block),
                1 | 2 => self.construct(region, Op::If),
                3 => self.construct(region, Op::Loop),
                4 => {
                    let (value, number) = (self.word(), 2 + self.rng.below(OWN as usize - 2) as u32);
                    self.store(region, value, number);
                }
                5 => self.memory(region),
                _ => self.compute(region),
            }
        }
    }

    fn construct(&mut self, region: Region, op: Op) {
        if self.open.len() > self.deepest {
            return;
        }
        let (word, bit) = (self.word(), self.bit());
        let mut builder = Builder::at_end(self.func, region);
        let inst = match op {
            Op::Block => {
                let (inst, body) = builder.block(&RESULTS);
                self.open.push((inst, None));
                self.region(body);
                inst
            }
            Op::If => {
                let (inst, then, other) = builder.if_(bit, &RESULTS);
                self.open.push((inst, None));
                self.region(then);
                self.region(other);
                inst
            }
            _ => {
                let zero = builder.u32(0);
                let (inst, body) = builder.loop_(&[zero, word, bit], &RESULTS);
                let [counter, value, flag] = *self.func.params(body) else { panic!("three parameters") };
                self.open.push((inst, Some(counter)));
                let (words, bits) = (self.words.len(), self.bits.len());
                self.words.extend([counter, value]);
                self.bits.push(flag);
                match self.rng.below(3) {
                    0 => self.single_exit(body, inst, counter),
                    _ => self.counted(body, inst, counter),
                }
                self.words.truncate(words);
                self.bits.truncate(bits);
                inst
            }
        };
        self.open.pop();
        let [word, bit] = *self.func.results(inst) else { panic!("two results") };
        self.words.push(word);
        self.bits.push(bit);
    }

    /// The body of a loop that is left in one place, before or after what it does, and by no jump in it.
    fn single_exit(&mut self, body: Region, inst: Inst, counter: Value) {
        let (limit, before) = (self.word(), self.rng.below(2) == 0);
        let closed = std::mem::replace(&mut self.closed, self.open.len());
        if !before {
            self.statements(body);
        }
        let (word, bit) = (self.word(), self.bit());
        let mut builder = Builder::at_end(self.func, body);
        let (one, three) = (builder.u32(1), builder.u32(3));
        let limit = builder.alu(Op::IAnd, &[limit, three]);
        let goes = builder.alu(Op::ULt, &[counter, limit]);
        let (check, then, other) = builder.if_(goes, &[]);
        Builder::at_end(self.func, then).break_(check, &[]);
        Builder::at_end(self.func, other).break_(inst, &[word, bit]);
        if before {
            self.statements(body);
        }
        let (word, bit) = (self.word(), self.bit());
        let mut builder = Builder::at_end(self.func, body);
        let next = builder.alu(Op::IAdd, &[counter, one]);
        builder.continue_(inst, &[next, word, bit]);
        self.closed = closed;
    }

    /// The body of a loop: it is left when the counter reaches a limit, which may differ between lanes.
    fn counted(&mut self, body: Region, inst: Inst, counter: Value) {
        let (limit, word, bit) = (self.word(), self.word(), self.bit());
        let mut builder = Builder::at_end(self.func, body);
        let three = builder.u32(3);
        let limit = builder.alu(Op::IAnd, &[limit, three]);
        let goes = builder.alu(Op::ULt, &[counter, limit]);
        let (check, then, other) = builder.if_(goes, &[]);
        Builder::at_end(self.func, then).break_(check, &[]);
        Builder::at_end(self.func, other).break_(inst, &[word, bit]);
        self.region(body);
    }
}

fn buffer(binding: u32, access: Access) -> ResourceData {
    ResourceData { access, dim: Dim::Buffer, ..ResourceData::new(ResourceClass::StorageBuffer, binding) }
}

/// A random shader: input at binding 0 of set 0, output at binding 1.
pub fn random(rng: &mut Rng) -> Shader {
    nested(rng, 60, 8)
}

/// A random shader with more constructs in each other, and so more masks that are needed at once.
pub fn random_deep(rng: &mut Rng) -> Shader {
    nested(rng, 120, 16)
}

fn nested(rng: &mut Rng, left: usize, deepest: usize) -> Shader {
    let mut shader = Shader::default();
    shader.info.workgroup_size = [INVOCATIONS, 1, 1];
    let input = shader.resources.push(buffer(0, Access::READONLY.or(Access::RESTRICT)));
    let output = shader.resources.push(buffer(1, Access::RESTRICT));
    let func = shader.add_function();
    let func = shader.function_mut(func);
    let body = func.body();
    let mut builder = Builder::at_end(func, body);
    let zero = builder.u32(0);
    let handles = [input, output].map(|r| {
        builder.value(Op::Descriptor, Payload::Resource(r, Access::NONE), &[zero], Type::scalar(Base::Handle))
    });
    let mut system = |value: SystemValue| {
        let vector = builder.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
        builder.extract(vector, 0)
    };
    let [group, local, global] =
        [SystemValue::WorkgroupId, SystemValue::LocalInvocationId, SystemValue::GlobalInvocationId]
            .map(&mut system);
    let bytes = builder.u32(OWN * 4);
    let own = builder.alu(Op::IMul, &[global, bytes]);
    // Words that are the same in all lanes, and words that differ.
    let four = builder.u32(2);
    let offset = builder.alu(Op::IShl, &[local, four]);
    let readonly = mem(Access::READONLY.or(Access::RESTRICT));
    let same = builder.value(Op::Load, readonly, &[handles[0], zero], Type::B32);
    let differs = builder.value(Op::Load, readonly, &[handles[0], offset], Type::B32);
    let seven = builder.u32(7);
    let bits = [(same, group), (differs, local), (local, seven), (group, seven)]
        .map(|(a, b)| builder.alu(Op::ULt, &[a, b]));
    let mut generator = Generator {
        rng,
        func,
        words: vec![zero, seven, group, local, same, differs],
        bits: bits.to_vec(),
        open: Vec::new(),
        closed: 0,
        output: handles[1],
        own,
        left,
        deepest,
    };
    while generator.left > 0 {
        generator.left -= 1;
        match generator.rng.below(4) {
            0 => generator.compute(body),
            1 => generator.construct(body, Op::Block),
            2 => generator.construct(body, Op::If),
            _ => generator.construct(body, Op::Loop),
        }
    }
    let (word, bit) = (generator.word(), generator.bit());
    let all = generator.words.clone();
    let mut sum = word;
    for value in all {
        sum = generator.alu(body, Op::IXor, &[sum, value]);
        sum = generator.alu(body, Op::IMul, &[sum, seven]);
    }
    let last = generator.alu(body, Op::Select, &[bit, sum, word]);
    generator.store(body, last, 0);
    Builder::at_end(generator.func, body).return_(&[]);
    shader
}

/// A random input.
pub fn input(rng: &mut Rng) -> Vec<u8> {
    (0..INPUT_WORDS).flat_map(|_| (rng.below(9) as u32).to_le_bytes()).collect()
}

/// Bytes of the output.
pub const OUTPUT_BYTES: usize = (INVOCATIONS * GROUPS * OWN * 4) as usize;

/// What the interpreter leaves in the output, with subgroups of 64 or of 32.
///
/// # Errors
///
/// What the interpreter does not execute, or finds.
pub fn interpreted(shader: &Shader, input: &[u8], wave64: bool) -> Result<Vec<u8>, String> {
    let mut bindings = Bindings::default();
    let point = |binding| BindingPoint { set: 0, binding, index: 0 };
    bindings.bind(point(0), input.to_vec());
    let memory = bindings.bind(point(1), vec![0; OUTPUT_BYTES]);
    bindings.addresses.insert(OUTPUT, memory);
    let subgroup_size = if wave64 { 64 } else { 32 };
    let options = interp::Options { robust: true, subgroup_size, ..interp::Options::default() };
    let dispatch = interp::Dispatch::new([GROUPS, 1, 1]);
    let report = run_compute(shader, dispatch, &mut bindings, &mut MemoryImages::default(), &options);
    let report = report.map_err(|e| format!("{e}\n{}", print(shader)))?;
    if !report.findings.is_empty() {
        return Err(format!("{:?}\n{}", report.findings, print(shader)));
    }
    Ok(bindings.memory[memory].clone())
}
