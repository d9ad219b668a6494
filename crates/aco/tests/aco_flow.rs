//! Random shaders of structured flow: what the compiled code leaves in memory on the emulator is what the interpreter of the shader IR leaves.
//!
//! Constructs nest; lanes leave them and continue loops from any depth, by conditions that are uniform or not. Every value along
//! the way goes into what is stored. `UNWEDGE_SEEDS=N` tries seeds up to N.

mod rig;

use rig::{GPUS, OUTPUT, TABLE};
use unwedge_aco::abi::Argument;
use unwedge_aco::ir::shape::Variants;
use unwedge_aco::{Compiled, FRONT_PHASES, Limits, Masked, Options, UNREPAIRED_PHASES, finish, front, valid};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::interp::{self, BindingPoint, Bindings, MemoryImages, run_compute};
use unwedge_shader::ir::{
    Access, Base, Builder, Dim, Function, Inst, MemAccess, Op, Payload, Region, ResourceClass, ResourceData,
    Shader, Space, SystemValue, Type, Value,
};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::mutate::Rng;

const INVOCATIONS: u32 = 64;
const GROUPS: u32 = 2;
/// Words that an invocation owns.
const OWN: u32 = 16;
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
        const REDUCED: [Op; 9] = [
            Op::IAdd,
            Op::IMul,
            Op::IMin,
            Op::IMax,
            Op::UMin,
            Op::UMax,
            Op::IAnd,
            Op::IOr,
            Op::IXor,
        ];
        let reduced = REDUCED[self.rng.below(REDUCED.len())];
        let cluster = [0, 2, 4, 8, 16, 32][self.rng.below(6)];
        let words = Type::new(Base::B32, 4).expect("a type");
        let mut builder = Builder::at_end(self.func, region);
        let value = match self.rng.below(7) {
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

    /// Stores a word to one of those that the invocation owns.
    fn store(&mut self, region: Region, value: Value, number: u32) {
        let output = self.output;
        let own = self.own;
        let mut builder = Builder::at_end(self.func, region);
        let at = builder.u32(number * 4);
        let offset = builder.alu(Op::IAdd, &[own, at]);
        builder.inst(Op::Store, mem(Access::NONE), &[value, output, offset], &[]);
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
                _ => self.compute(region),
            }
        }
    }

    fn construct(&mut self, region: Region, op: Op) {
        if self.open.len() > 8 {
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
    ResourceData {
        name: String::new(),
        class: ResourceClass::StorageBuffer,
        set: 0,
        binding,
        count: 1,
        access,
        dim: Dim::Buffer,
        size: 0,
        attachment: None,
    }
}

fn random_shader(rng: &mut Rng) -> Shader {
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
        left: 60,
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

fn words(rng: &mut Rng) -> Vec<u8> {
    (0..INPUT_WORDS).flat_map(|_| (rng.below(9) as u32).to_le_bytes()).collect()
}

const OUTPUT_BYTES: usize = (INVOCATIONS * GROUPS * OWN * 4) as usize;

/// What the interpreter leaves.
fn interpreted(shader: &Shader, input: &[u8], wave64: bool) -> Vec<u8> {
    let mut bindings = Bindings::default();
    let point = |binding| BindingPoint { set: 0, binding, index: 0 };
    bindings.bind(point(0), input.to_vec());
    let memory = bindings.bind(point(1), vec![0; OUTPUT_BYTES]);
    let subgroup_size = if wave64 { 64 } else { 32 };
    let options = interp::Options { robust: true, subgroup_size, ..interp::Options::default() };
    let dispatch = interp::Dispatch::new([GROUPS, 1, 1]);
    let report = run_compute(shader, dispatch, &mut bindings, &mut MemoryImages::default(), &options);
    let report = report.unwrap_or_else(|e| panic!("{e}\n{}", print(shader)));
    assert!(report.findings.is_empty(), "{:?}\n{}", report.findings, print(shader));
    bindings.memory[memory].clone()
}

/// What the compiled shader leaves, or what is wrong with it.
fn executed(shader: &Shader, input: &[u8], gpu: Gpu, seed: u64) -> Result<Vec<u8>, String> {
    let options = Options::new(gpu);
    let variants = Variants::of(&gpu);
    let mut invalid = None;
    let mut watch = |phase: &'static str, program: &unwedge_aco::ir::Program| {
        if !FRONT_PHASES[..UNREPAIRED_PHASES].contains(&phase)
            && invalid.is_none()
            && let Err(violations) = valid::ir(program, &variants)
        {
            invalid = Some(format!("after {phase}: {}", violations[0].describe(program)));
        }
    };
    let mut shader = shader.clone();
    let result = front(&mut shader, &options, &mut watch);
    if let Some(invalid) = invalid {
        return Err(invalid);
    }
    let Masked { mut program, args, float_mode } = result.map_err(|e| e.to_string())?;
    let code = finish(&mut program, &Limits::of(&gpu)).map_err(|e| e.to_string())?;
    let report = check_words(&code.words, &gpu, &CheckOptions::default());
    if let Some(fault) = report.faults().next() {
        return Err(format!("checker: {fault:?}"));
    }
    let compiled = Compiled { code, args, float_mode };
    let set = |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
    let dispatch = Dispatch {
        groups: [GROUPS, 1, 1],
        size: [INVOCATIONS, 1, 1],
        timing: Timing::Adversarial { seed },
        ..rig::dispatch(&compiled, &gpu, set)
    };
    let mut memory = rig::memory(&options, input.to_vec(), OUTPUT_BYTES);
    rig::execute(&compiled.code, gpu, &mut memory, &dispatch)?;
    Ok(memory.get(OUTPUT, OUTPUT_BYTES).expect("mapped").to_vec())
}

#[test]
fn random_flow_does_what_the_interpreter_does() {
    let seeds = std::env::var("UNWEDGE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(150u64);
    let mut failures = Vec::new();
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let shader = random_shader(&mut rng);
        validate(&shader).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&shader)));
        let input = words(&mut rng);
        let wave64 = (seed as usize / GPUS.len()).is_multiple_of(2);
        let gpu = Gpu::new(GPUS[seed as usize % GPUS.len()]).expect("a GPU").with_wave64(wave64);
        let expected = interpreted(&shader, &input, gpu.wave64());
        let label = format!("seed {seed} {} wave{}", gpu.name(), if gpu.wave64() { 64 } else { 32 });
        match executed(&shader, &input, gpu, seed) {
            Ok(found) if found == expected => {}
            Ok(found) => {
                let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or_default() / 4;
                failures.push(format!(
                    "{label}: word {} of invocation {} differs",
                    at as u32 % OWN,
                    at as u32 / OWN
                ));
            }
            Err(what) => failures.push(format!("{label}: {what}")),
        }
    }
    let count = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{count} of {seeds} fail:\n{}", failures.join("\n"));
}

/// Every lane has a word of the input (`%14`), its number (`%10`), a place in the output (`%15`), and a number of iterations (`%16`) that
/// is not that of its neighbours.
const LANES_LEAVE: &str = r#"shader compute "main"
workgroup_size 64 1 1
sizes shared 0 scratch 0 push 0
resource r0 "" storage_buffer set 0 binding 0 count 1 size 0 dim buffer access readonly|restrict
resource r1 "" storage_buffer set 0 binding 1 count 1 size 0 dim buffer access restrict
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x2>
  %3: b32 = const<0x3>
  %6: b32 = const<0x6>
  %7: handle = descriptor<r0> %0
  %8: handle = descriptor<r1> %0
  %9: b32x3 = sysval<local_invocation_id>
  %10: b32 = extract<0> %9
  %11: b32x3 = sysval<global_invocation_id>
  %12: b32 = extract<0> %11
  %13: b32 = ishl %10, %2
  %14: b32 = load<storage align 4 access readonly|restrict> %7, %13
  %15: b32 = ishl %12, %6
  %16: b32 = iand %10, %3
  %17: b32 = u2f %10
  %20: b32 = loop<L0> %0 (%21: b32) {
    IN_THE_LOOP
    %22: b1 = ult %21, %16
    if<L1> %22 {
      break<L1>
    } else {
      WHERE_IT_IS_LEFT
      break<L0> %23
    }
    %24: b32 = iadd %21, %1
    continue<L0> %24
  }
  AFTER_IT
  %50: b32 = iadd %15, %1
  %51: b32 = iadd %50, %3
  store<storage align 4> %40, %8, %51
  return
}
"#;

/// Compares a shader with the interpreter on every GPU, in both sizes of the wave.
fn compare(text: &str) {
    let mut shader = Shader::default();
    parse(text, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    validate(&shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let input = words(&mut Rng::new(1));
    for name in GPUS {
        for wave64 in [true, false] {
            let expected = interpreted(&shader, &input, wave64);
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            let found =
                executed(&shader, &input, gpu, 1).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            assert!(
                found == expected,
                "{name}, wave64 {}: another result than the interpreter's\n{text}",
                gpu.wave64()
            );
        }
    }
}

/// A uniform value of the loop, and what floats are needed.
const FLOATS: &str = "%30: b32 = read_first %21\n%31: b32 = u2f %30\n%32: b32 = u2f %14\n";

/// A uniform value that a lane took along in its last iteration is not read again after the loop: its register has the value of a later iteration.
#[test]
fn lanes_leave_a_loop_with_the_uniform_values_of_their_iteration() {
    let pairs = [
        ("iand %30, %14", "ior %23, %10"),
        ("ixor %30, %14", "ixor %23, %10"),
        ("iadd %30, %14", "iadd %23, %10"),
        ("ishl %14, %30", "iadd %23, %10"),
        ("iadd %30, %14", "ishl %23, %2"),
        ("umin %30, %14", "umin %23, %10"),
        ("imax %30, %14", "imin %23, %10"),
        ("fmul %31, %32", "fadd %23, %17"),
    ];
    for (within, after) in pairs {
        let text = LANES_LEAVE
            .replace("IN_THE_LOOP", &format!("{FLOATS}%23: b32 = {within}"))
            .replace("WHERE_IT_IS_LEFT\n", "")
            .replace("AFTER_IT", &format!("%40: b32 = {}", after.replace("%23", "%20")));
        compare(&text);
    }
}

/// A comparison in a loop has the bits of the lanes of one iteration, so the same comparison after the loop is made again.
#[test]
fn a_comparison_after_a_loop_is_of_all_lanes() {
    let text = LANES_LEAVE
        .replace("IN_THE_LOOP\n", "")
        .replace(
            "WHERE_IT_IS_LEFT",
            "%30: b1 = ult %14, %2\n%23: b32 = select %30, %21, %14\nstore<storage align 4> %23, %8, %15",
        )
        .replace(
            "AFTER_IT",
            "%41: b1 = ult %14, %2\n%42: b32 = select %41, %10, %16\n%40: b32 = iadd %42, %20",
        );
    compare(&text);
}
