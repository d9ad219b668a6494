//! Reduction: large shaders become a few lines, with predicates on their operations, their structure and the findings of the interpreter.

use std::convert::Infallible;
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, Limits, NoImages, Options, Violation, run_compute,
};
use unwedge_shader::ir::{
    Access, Base, Builder, Function, Inst, MemAccess, Op, Payload, Region, RegionOwner, ResourceClass,
    ResourceData, Shader, Space, Storage, SystemValue, Type, TypeNode, Value, Var, VarData,
};
use unwedge_shader::reduce::{CANDIDATES_PER_TRY, ReduceError, Reduction, reduce};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::{Dialect, random};

const V4: Type = Type { base: Base::B32, lanes: 4 };
const STORAGE: Payload =
    Payload::Mem(MemAccess { space: Space::Storage, access: Access::COHERENT, align: 2 });

/// Writes a large shader: arithmetic on scalars and vectors, buffers, variables, `if`s and loops within each other.
struct Generator {
    rng: Rng,
    vars: Vec<Var>,
    descriptors: Vec<Value>,
    left: usize,
}

impl Generator {
    fn scalar(&mut self, values: &[Value]) -> Value {
        values[self.rng.below(values.len())]
    }

    fn compute(&mut self, func: &mut Function, region: Region, values: &mut Vec<Value>) {
        let (a, b) = (self.scalar(values), self.scalar(values));
        let mut builder = Builder::at_end(func, region);
        let value = match self.rng.below(6) {
            0 => builder.alu(Op::IAdd, &[a, b]),
            1 => builder.alu(Op::FMul, &[a, b]),
            2 => {
                let (v, w) = (builder.vec(&[a, b, a, a]), builder.vec(&[b, b, a, b]));
                let sum = builder.alu(Op::FAdd, &[v, w]);
                builder.extract(sum, self.rng.below(4) as u8)
            }
            3 => builder.u32(self.rng.below(1 << 20) as u32),
            4 => {
                let path = [builder.u32(self.rng.below(3) as u32)];
                let var = self.vars[self.rng.below(self.vars.len())];
                let whole = builder.splat(a, 4);
                builder.inst(Op::StoreVar, Payload::Var(var, 0xf), &[whole, path[0]], &[]);
                let loaded = builder.value(Op::LoadVar, Payload::Var(var, 0), &path, V4);
                builder.extract(loaded, 2)
            }
            _ => {
                let mask = builder.u32(0xfc);
                let at = builder.alu(Op::IAnd, &[a, mask]);
                let descriptor = self.descriptors[self.rng.below(self.descriptors.len())];
                builder.inst(Op::Store, STORAGE, &[b, descriptor, at], &[]);
                builder.value(Op::Load, STORAGE, &[descriptor, at], Type::B32)
            }
        };
        values.push(value);
    }

    fn flow(&mut self, func: &mut Function, region: Region, values: &mut Vec<Value>, depth: usize) {
        let (a, b) = (self.scalar(values), self.scalar(values));
        let visible = values.len();
        let results = [Type::B32, Type::B32];
        let inst = if self.rng.below(2) == 0 {
            let mut builder = Builder::at_end(func, region);
            let condition = builder.alu(Op::ULt, &[a, b]);
            let (inst, then, other) = builder.if_(condition, &results);
            for arm in [then, other] {
                self.body(func, arm, values, depth + 1);
                let args = [self.scalar(values), self.scalar(values)];
                Builder::at_end(func, arm).break_(inst, &args);
                values.truncate(visible);
            }
            inst
        } else {
            let mut builder = Builder::at_end(func, region);
            let start = builder.u32(0);
            let (inst, body) = builder.loop_(&[start, a], &results);
            let (counter, carried) = (func.params(body)[0], func.params(body)[1]);
            let mut builder = Builder::at_end(func, body);
            let turns = builder.u32(2);
            let more = builder.alu(Op::ULt, &[counter, turns]);
            let (check, then, other) = builder.if_(more, &[]);
            Builder::at_end(func, then).break_(check, &[]);
            Builder::at_end(func, other).break_(inst, &[counter, carried]);
            values.extend([counter, carried]);
            self.body(func, body, values, depth + 1);
            let next = self.scalar(values);
            let mut builder = Builder::at_end(func, body);
            let one = builder.u32(1);
            let counter = builder.alu(Op::IAdd, &[counter, one]);
            builder.continue_(inst, &[counter, next]);
            values.truncate(visible);
            inst
        };
        values.extend_from_slice(func.results(inst));
    }

    fn body(&mut self, func: &mut Function, region: Region, values: &mut Vec<Value>, depth: usize) {
        for _ in 0..3 + self.rng.below(9) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            if depth < 5 && self.rng.below(4) == 0 {
                self.flow(func, region, values, depth);
            } else {
                self.compute(func, region, values);
            }
        }
    }
}

fn resource(binding: u32) -> ResourceData {
    let data = ResourceData::new(ResourceClass::StorageBuffer, binding);
    ResourceData { name: format!("buffer{binding}"), ..data }
}

fn variable(number: usize, shader: &mut Shader) -> Var {
    let leaf = shader.types.push(TypeNode::Leaf(V4));
    let ty = shader.types.push(TypeNode::Array { element: leaf, len: 3 });
    shader.vars.push(VarData::new(format!("variable{number}"), Storage::Private, ty))
}

/// The loop of a large shader that has an addition at its end.
#[derive(Clone, Copy, PartialEq)]
enum Added {
    /// One of the least nesting, which runs twice.
    Outermost,
    /// One of the deepest nesting.
    Innermost,
}

/// A shader of about that many statements. `add` writes the addition; it gets the counter of the loop and a descriptor.
fn large(statements: usize, added: Added, add: impl Fn(&mut Builder<'_>, Value, Value)) -> Shader {
    let mut shader = Shader::default();
    shader.info.workgroup_size = [4, 1, 1];
    shader.info.name = "main".to_owned();
    let resources: Vec<_> = (0..4).map(|binding| shader.resources.push(resource(binding))).collect();
    let vars = (0..3).map(|number| variable(number, &mut shader)).collect();
    shader.add_function();
    let func = shader.entry_mut();
    let body = func.body();
    let mut builder = Builder::at_end(func, body);
    let index = SystemValue::LocalInvocationIndex;
    let index = builder.value(Op::SysVal, Payload::SysVal(index), &[], index.ty());
    let zero = builder.u32(0);
    let descriptors = resources
        .into_iter()
        .map(|r| builder.value(Op::Descriptor, Payload::Resource(r, Access::NONE), &[zero], Type::HANDLE))
        .collect();
    let mut generator = Generator { rng: Rng::new(3), vars, descriptors, left: statements };
    let mut values = vec![index, zero];
    while generator.left > 0 {
        generator.body(func, body, &mut values, 0);
    }
    Builder::at_end(func, body).return_(&[]);
    let loops = func.walk().filter(|&inst| func.op(inst) == Op::Loop);
    let chosen = match added {
        Added::Outermost => loops.min_by_key(|&inst| around(func, inst).count()),
        Added::Innermost => loops.max_by_key(|&inst| around(func, inst).count()),
    };
    let Some(Payload::Body(inner)) = chosen.map(|inst| func.payload(inst)) else {
        panic!("the generated shader has no loop")
    };
    let end = func.last(inner).expect("the terminator");
    let counter = func.params(inner)[0];
    add(&mut Builder::before(func, end), counter, generator.descriptors[2]);
    validate(&shader).expect("the shader is valid");
    shader
}

/// An instruction and its enclosing instructions, innermost first.
fn around(func: &Function, inst: Inst) -> impl Iterator<Item = Inst> + '_ {
    std::iter::successors(Some(inst), |&inst| match func.owner(func.region(inst)) {
        RegionOwner::Inst(owner) => Some(owner),
        RegionOwner::Function => None,
    })
}

/// The number of lines of the functions in the text, with braces.
fn lines(shader: &Shader) -> usize {
    print(shader).lines().skip_while(|line| !line.starts_with("fn ")).count()
}

/// Reduces with a predicate that does not fail, and checks every candidate.
fn reduced(shader: &Shader, interesting: impl Fn(&Shader) -> bool) -> Reduction {
    let checked = |candidate: &Shader| {
        validate(candidate).expect("candidates are valid");
        let (text, mut back) = (print(candidate), Shader::default());
        parse(&text, &mut back).expect("candidates are parsed again");
        assert_eq!(print(&back), text);
        Ok::<_, Infallible>(interesting(candidate))
    };
    let reduction = reduce(shader, usize::MAX, checked).expect("the shader is interesting");
    assert!(interesting(&reduction.shader) && !reduction.limited);
    println!(
        "{} to {} lines, {} tried:\n{}",
        lines(shader),
        lines(&reduction.shader),
        reduction.tries,
        print(&reduction.shader)
    );
    reduction
}

fn has(shader: &Shader, op: Op) -> bool {
    shader.functions().iter().any(|func| func.walk().any(|inst| func.op(inst) == op))
}

#[test]
fn one_operation_is_left_of_a_large_shader() {
    let shader = large(700, Added::Innermost, |builder, counter, _| {
        let root = builder.alu(Op::FSqrt, &[counter]);
        builder.alu(Op::IAdd, &[root, counter]);
    });
    assert!(lines(&shader) > 1_000, "{} lines", lines(&shader));
    let reduction = reduced(&shader, |shader| has(shader, Op::FSqrt));
    assert_eq!(
        print(&reduction.shader).lines().skip_while(|line| !line.starts_with("fn ")).collect::<Vec<_>>(),
        ["fn f0 \"\" () -> () {", "  %0: b32 = const<0x0>", "  %1: b32 = fsqrt %0", "  return", "}"]
    );
    assert!(reduction.shader.resources.is_empty() && reduction.shader.vars.is_empty());
    assert!(reduction.shader.types.is_empty());
}

#[test]
fn a_finding_of_the_interpreter_stays() {
    // A store past the end of the third buffer, in the second turn of a loop.
    let shader = large(300, Added::Outermost, |builder, counter, descriptor| {
        let far = builder.u32(0x1234_5000);
        let at = builder.alu(Op::IMul, &[counter, far]);
        builder.inst(Op::Store, STORAGE, &[counter, descriptor, at], &[]);
    });
    let out_of_bounds = |shader: &Shader| {
        let mut bindings = Bindings::default();
        for resource in shader.resources.values() {
            let point = BindingPoint { set: resource.set, binding: resource.binding, index: 0 };
            bindings.bind(point, vec![0; 256]);
        }
        let limits = Limits { steps: 60_000, memory: 1 << 24 };
        let options = Options { races: false, limits, ..Options::default() };
        let report = run_compute(shader, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, &options);
        report.is_ok_and(|report| {
            let store = |inst| shader.entry().op(inst) == Op::Store;
            let outside = |violation| violation == Violation::OutOfBounds(Space::Storage);
            report.findings.iter().any(|finding| outside(finding.violation) && store(finding.inst))
        })
    };
    assert!(lines(&shader) > 400);
    let reduction = reduced(&shader, out_of_bounds);
    assert!(lines(&reduction.shader) < 10, "{}", print(&reduction.shader));
    assert_eq!(reduction.shader.resources.len(), 1);
    assert_eq!(reduced(&shader, out_of_bounds).tries, reduction.tries);
}

#[test]
fn flow_that_matters_stays() {
    let shader = large(300, Added::Innermost, |builder, counter, _| {
        let three = builder.u32(3);
        let condition = builder.alu(Op::IEq, &[counter, three]);
        let (inst, then, other) = builder.if_(condition, &[]);
        Builder::at_end(builder.func, then).inst(Op::Demote, Payload::None, &[], &[]);
        for arm in [then, other] {
            Builder::at_end(builder.func, arm).break_(inst, &[]);
        }
    });
    // A `demote` directly in an `if`, within a loop that has both a `continue` and a `break`.
    let in_loop = |shader: &Shader| {
        let func = shader.entry();
        let jumps = |op, target| {
            func.walk().any(|inst| func.op(inst) == op && func.payload(inst) == Payload::Target(target))
        };
        func.walk().filter(|&inst| func.op(inst) == Op::Demote).any(|inst| {
            let around: Vec<Inst> = around(func, inst).collect();
            around.get(1).is_some_and(|&inst| func.op(inst) == Op::If)
                && around.iter().any(|&inst| {
                    func.op(inst) == Op::Loop && jumps(Op::Continue, inst) && jumps(Op::Break, inst)
                })
        })
    };
    let reduction = reduced(&shader, in_loop);
    assert!(lines(&reduction.shader) <= 16, "{}", print(&reduction.shader));
}

#[test]
fn vectors_lose_lanes_that_do_not_matter() {
    let mut text = "shader compute \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\n\
        floats 32 nearest any\nfn f0 \"\" () -> () {\n  %0: b32 = sysval<local_invocation_index>\n"
        .to_owned();
    text.push_str("  %1: b32x4 = vec %0, %0, %0, %0\n  %2: b32x4 = fsin %1\n  %3: b32x4 = fcos %2\n");
    text.push_str("  %4: b32 = extract<3> %3\n  %5: b32 = fexp2 %4\n  return\n}\n");
    let mut shader = Shader::default();
    parse(&text, &mut shader).expect("a shader");
    // The operations must use each other's results.
    let chain = |shader: &Shader| {
        let func = shader.entry();
        let from = |inst: Inst, op: Op| {
            let mut arg = func.args(inst)[0];
            while let Some(def) = func.def_inst(arg).filter(|&def| func.op(def) == Op::Extract) {
                arg = func.args(def)[0];
            }
            func.def_inst(arg).filter(|&def| func.op(def) == op)
        };
        let last = func.walk().find(|&inst| func.op(inst) == Op::FExp2);
        last.and_then(|inst| from(inst, Op::FCos)).and_then(|inst| from(inst, Op::FSin)).is_some()
    };
    let reduction = reduced(&shader, chain);
    let text = print(&reduction.shader);
    assert!(!text.contains("b32x") && !text.contains("extract"), "{text}");
    assert_eq!(lines(&reduction.shader), 7, "{text}");
}

#[test]
fn functions_go_and_constants_become_smaller() {
    let text = "shader compute \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\nfloats 32 nearest any\n\
        fn f0 \"main\" () -> () {\n  %0: b32 = const<0x12345678>\n  %1: b32 = call<f1> %0\n  %2: b32 = call<f2> %1\n  return\n}\n\
        fn f1 \"one\" (%0: b32) -> (b32) {\n  return %0\n}\n\
        fn f2 \"two\" (%0: b32) -> (b32) {\n  %1: b32 = const<0xabcd>\n  %2: b32 = imul %0, %1\n  return %2\n}\n";
    let mut shader = Shader::default();
    parse(text, &mut shader).expect("a shader");
    // The second function must be called with a constant of more than 8 bits.
    let reduction = reduced(&shader, |shader| {
        let func = shader.entry();
        func.walk().any(|inst| {
            func.op(inst) == Op::Call && func.const_bits(func.args(inst)[0]).is_some_and(|bits| bits > 0xff)
        })
    });
    assert_eq!(reduction.shader.functions().len(), 2, "{}", print(&reduction.shader));
    let func = reduction.shader.entry();
    let constant = func.walk().find_map(|inst| match func.payload(inst) {
        Payload::Const(bits) => Some(bits),
        _ => None,
    });
    assert!(constant.is_some_and(|bits| bits > 0xff && bits < 0x200), "{constant:x?}");
}

#[test]
fn reductions_end_whatever_the_predicate_answers() {
    for seed in 0..24 {
        let shader = random(&mut Rng::new(seed), Dialect::Full);
        let mut answers = Rng::new(seed + 1000);
        let (mut first, mut last) = (true, String::new());
        let reduction = reduce(&shader, 400, |candidate| {
            validate(candidate).expect("candidates are valid");
            let interesting = std::mem::take(&mut first) || answers.below(3) == 0;
            if interesting {
                last = print(candidate);
            }
            Ok::<_, Infallible>(interesting)
        });
        let reduction = reduction.expect("the shader itself is interesting");
        assert_eq!(print(&reduction.shader), last, "seed {seed}");
        assert!(lines(&reduction.shader) <= lines(&shader), "seed {seed}");
        let made = reduction.tries..=400 * CANDIDATES_PER_TRY;
        assert!(made.contains(&reduction.candidates), "seed {seed}: {} candidates", reduction.candidates);
    }
}

#[test]
fn uninteresting_shaders_are_refused_and_limits_hold() {
    let shader = large(100, Added::Innermost, |builder, counter, _| {
        builder.alu(Op::FSqrt, &[counter]);
    });
    let none = reduce(&shader, usize::MAX, |_| Ok::<_, Infallible>(false));
    assert_eq!(none.map(|_| ()), Err(ReduceError::NotInteresting));
    let mut seen = 0;
    let failing = reduce(&shader, usize::MAX, |_| {
        seen += 1;
        if seen < 4 { Ok(true) } else { Err("the command is gone") }
    });
    assert_eq!((failing.map(|_| ()), seen), (Err(ReduceError::Predicate("the command is gone")), 4));
    let limited = reduce(&shader, 5, |shader| Ok::<_, Infallible>(has(shader, Op::FSqrt))).expect("a result");
    assert!(limited.limited && limited.tries == 5 && has(&limited.shader, Op::FSqrt));
    // Without a try no candidate is made at all, valid or not.
    let none = reduce(&shader, 0, |_| Ok::<_, Infallible>(true)).expect("a result");
    assert_eq!((none.limited, none.tries, none.candidates), (true, 0, 0));
}
