//! Large shaders: each compiles, and what it computes on the emulator is what the test computes.

mod rig;

use rig::{TABLE, buffer_shader};
use std::cell::Cell;
use std::fmt::Write;
use unwedge_aco::abi::Argument;
use unwedge_aco::{Compiled, Options, compile};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::spirv::{self, Reader};
use unwedge_shader::ir::Shader;
use unwedge_shader::text::parse;
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::Dispatch;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::spirv::{Module, op};

const LANES: u32 = 64;

const VOID: u32 = 2;
const FUNCTION: u32 = 3;
const UINT: u32 = 4;
const UINT3: u32 = 5;
const BOOL: u32 = 6;
const ARRAY: u32 = 7;
const BLOCK: u32 = 8;
const BLOCK_PTR: u32 = 9;
const UINT_PTR: u32 = 10;
const UINT3_PTR: u32 = 11;
const ID_INPUT: u32 = 12;
const IN: u32 = 13;
const OUT: u32 = 14;
const ZERO: u32 = 15;
const THREE: u32 = 16;
const IDS: u32 = 17;
const ID: u32 = 18;
const IN_PTR: u32 = 19;
const X: u32 = 20;
const OUT_PTR: u32 = 21;
const ENTRY: u32 = 22;

/// A compute shader that loads a word of binding 0 (`X`).
fn module() -> Module {
    let mut types = Vec::new();
    op(&mut types, 71, &[ID_INPUT, 11, 28]);
    op(&mut types, 71, &[ARRAY, 6, 4]);
    op(&mut types, 71, &[BLOCK, 2]);
    op(&mut types, 72, &[BLOCK, 0, 35, 0]);
    for (buffer, binding) in [(IN, 0), (OUT, 1)] {
        op(&mut types, 71, &[buffer, 34, 0]);
        op(&mut types, 71, &[buffer, 33, binding]);
    }
    op(&mut types, 19, &[VOID]);
    op(&mut types, 33, &[FUNCTION, VOID]);
    op(&mut types, 21, &[UINT, 32, 0]);
    op(&mut types, 23, &[UINT3, UINT, 3]);
    op(&mut types, 20, &[BOOL]);
    op(&mut types, 29, &[ARRAY, UINT]);
    op(&mut types, 30, &[BLOCK, ARRAY]);
    op(&mut types, 32, &[BLOCK_PTR, 12, BLOCK]);
    op(&mut types, 32, &[UINT_PTR, 12, UINT]);
    op(&mut types, 32, &[UINT3_PTR, 1, UINT3]);
    op(&mut types, 59, &[UINT3_PTR, ID_INPUT, 1]);
    op(&mut types, 59, &[BLOCK_PTR, IN, 12]);
    op(&mut types, 59, &[BLOCK_PTR, OUT, 12]);
    op(&mut types, 43, &[UINT, ZERO, 0]);
    op(&mut types, 43, &[UINT, THREE, 3]);
    let mut code = Vec::new();
    op(&mut code, 54, &[VOID, 1, 0, FUNCTION]);
    op(&mut code, 248, &[ENTRY]);
    op(&mut code, 61, &[UINT3, IDS, ID_INPUT]);
    op(&mut code, 81, &[UINT, ID, IDS, 0]);
    op(&mut code, 65, &[UINT_PTR, IN_PTR, IN, ZERO, ID]);
    op(&mut code, 61, &[UINT, X, IN_PTR]);
    Module { types, code, bound: ENTRY + 1 }
}

/// What these tests write into a module.
trait Instructions {
    fn constant(&mut self, value: u32) -> u32;
    fn step(&mut self, from: u32, number: u32) -> u32;
    fn label(&mut self, label: u32);
    fn branch(&mut self, label: u32);
    fn read(self, value: u32) -> Shader;
}

impl Instructions for Module {
    fn constant(&mut self, value: u32) -> u32 {
        let id = self.id();
        op(&mut self.types, 43, &[UINT, id, value]);
        id
    }

    /// A number that follows from another one and that of the case.
    fn step(&mut self, from: u32, number: u32) -> u32 {
        let [product, sum] = [self.id(), self.id()];
        let number = self.constant(number);
        op(&mut self.code, 132, &[UINT, product, from, THREE]);
        op(&mut self.code, 128, &[UINT, sum, product, number]);
        sum
    }

    fn label(&mut self, label: u32) {
        op(&mut self.code, 248, &[label]);
    }

    fn branch(&mut self, label: u32) {
        op(&mut self.code, 249, &[label]);
    }

    /// Stores a value at the end.
    fn read(mut self, value: u32) -> Shader {
        op(&mut self.code, 65, &[UINT_PTR, OUT_PTR, OUT, ZERO, ID]);
        op(&mut self.code, 62, &[OUT_PTR, value]);
        op(&mut self.code, 253, &[]);
        let words = self.words(&[ID_INPUT], [LANES, 1, 1]);
        let mut shader = Shader::default();
        Reader::default()
            .read(&words, &spirv::Options::default(), &mut shader)
            .unwrap_or_else(|e| panic!("{e}"));
        validate(&shader).unwrap_or_else(|e| panic!("{e}"));
        shader
    }
}

fn step(from: u32, number: u32) -> u32 {
    from.wrapping_mul(3).wrapping_add(number)
}

/// What a target of a switch is.
#[derive(Clone, Default)]
struct Case {
    literals: Vec<u32>,
    is_default: bool,
    falls_through: bool,
}

struct Switch(Vec<Case>);

impl Switch {
    fn shader(&self) -> Shader {
        let mut module = module();
        let labels: Vec<u32> = self.0.iter().map(|_| module.id()).collect();
        let [merge, result] = [module.id(), module.id()];
        let default = self.0.iter().position(|case| case.is_default);
        let mut words = vec![X, default.map_or(merge, |at| labels[at])];
        for (case, &label) in self.0.iter().zip(&labels) {
            words.extend(case.literals.iter().flat_map(|&literal| [literal, label]));
        }
        op(&mut module.code, 247, &[merge, 0]);
        op(&mut module.code, 251, &words);
        let mut results = if default.is_none() { vec![X, ENTRY] } else { Vec::new() };
        let mut passed = None;
        for (number, case) in self.0.iter().enumerate() {
            let label = labels[number];
            module.label(label);
            let mut value = X;
            if let Some((from, before)) = passed.take() {
                value = module.id();
                op(&mut module.code, 245, &[UINT, value, X, ENTRY, from, before]);
            }
            let value = module.step(value, number as u32);
            if case.falls_through && number + 1 < labels.len() {
                passed = Some((value, label));
                module.branch(labels[number + 1]);
            } else {
                results.extend([value, label]);
                module.branch(merge);
            }
        }
        module.label(merge);
        op(&mut module.code, 245, &[&[UINT, result], &results[..]].concat());
        module.read(result)
    }

    fn expected(&self, x: u32) -> u32 {
        let by_literal = self.0.iter().position(|case| case.literals.contains(&x));
        let Some(first) = by_literal.or_else(|| self.0.iter().position(|case| case.is_default)) else {
            return x;
        };
        let mut value = x;
        for (number, case) in self.0.iter().enumerate().skip(first) {
            value = step(value, number as u32);
            if !case.falls_through {
                break;
            }
        }
        value
    }
}

fn compiled(shader: &Shader, gpu: Gpu) -> Compiled {
    compile(&mut shader.clone(), &Options::new(gpu)).unwrap_or_else(|e| panic!("{e}"))
}

fn gpus() -> [Gpu; 3] {
    ["gfx900", "gfx1030", "gfx1100"].map(|name| Gpu::new(name).expect("a GPU"))
}

/// Runs a shader with these inputs, and compares what invocations store.
#[track_caller]
fn check(shader: &Shader, input: &[u32], expected: impl Fn(u32) -> u32) {
    for gpu in gpus() {
        let compiled = compiled(shader, gpu);
        let set = |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
        let dispatch =
            Dispatch { groups: [1; 3], size: [LANES, 1, 1], ..rig::dispatch(&compiled, &gpu, set) };
        let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut memory = rig::memory(&Options::new(gpu), bytes, LANES as usize * 4);
        rig::execute(&compiled.code, gpu, &mut memory, &dispatch).unwrap_or_else(|e| panic!("{e}"));
        let wanted: Vec<u32> = input.iter().map(|&x| expected(x)).collect();
        assert_eq!(rig::output(&memory, LANES as usize), wanted, "{} {input:x?}", gpu.name());
    }
}

/// Checks a switch, with inputs that are literals or near one.
#[track_caller]
fn check_switch(switch: &Switch, rng: &mut Rng) {
    let literals: Vec<u32> = switch.0.iter().flat_map(|case| case.literals.iter().copied()).collect();
    let shader = switch.shader();
    let input: Vec<u32> = (0..LANES)
        .map(|_| match rng.below(8) {
            0 => (rng.below(1 << 16) << 16 | rng.below(1 << 16)) as u32,
            1 => u32::MAX,
            2 => rng.pick(&literals).expect("a literal").wrapping_add(1),
            _ => *rng.pick(&literals).expect("a literal"),
        })
        .collect();
    check(&shader, &input, |x| switch.expected(x));
}

#[test]
fn random_switches_do_what_they_say() {
    for seed in 0..rig::seed_count(40) {
        let mut rng = Rng::new(seed);
        let count = 10 + rng.below(40);
        let dense = rng.below(2) == 0;
        let mut literals: Vec<u32> = (0..count as u32 * 2)
            .map(|number| if dense { number } else { number.wrapping_mul(0x9e37_79b9) })
            .collect();
        if rng.below(2) == 0 {
            literals.push(u32::MAX);
        }
        let ordered = rng.below(3) > 0;
        let falls = rng.below(4);
        let mut cases = vec![Case::default(); count];
        for case in &mut cases {
            for _ in 0..1 + usize::from(rng.below(5) == 0) {
                let at = if ordered { 0 } else { rng.below(literals.len()) };
                case.literals.push(literals.remove(at));
            }
            case.falls_through = rng.below(4) < falls;
        }
        match rng.below(3) {
            0 => {}
            1 => cases[count - 1].is_default = true,
            _ => cases[rng.below(count)].is_default = true,
        }
        check_switch(&Switch(cases), &mut rng);
    }
}

#[test]
fn switches_of_4000_cases_are_compiled() {
    let mut rng = Rng::new(1);
    for falls in [0, 5, 4000] {
        let mut cases: Vec<Case> = (0..4000u32)
            .map(|number| Case {
                literals: vec![number * 7],
                is_default: false,
                falls_through: falls > 0 && (number + 1) % falls != 0,
            })
            .collect();
        cases[3999].is_default = true;
        check_switch(&Switch(cases), &mut rng);
    }
}

/// `else if` after `else if`.
#[test]
fn chains_of_200_conditions_are_compiled() {
    const COUNT: u32 = 200;
    let mut module = module();
    let mut merges = Vec::new();
    let mut at = ENTRY;
    for number in 0..COUNT {
        let [then, other, merge, equal] = [module.id(), module.id(), module.id(), module.id()];
        let literal = module.constant(number * 5);
        op(&mut module.code, 170, &[BOOL, equal, X, literal]);
        op(&mut module.code, 247, &[merge, 0]);
        op(&mut module.code, 250, &[equal, then, other]);
        module.label(then);
        let value = module.step(X, number);
        module.branch(merge);
        module.label(other);
        merges.push((merge, value, then));
        at = other;
    }
    let mut last = X;
    for (merge, value, then) in merges.into_iter().rev() {
        module.branch(merge);
        module.label(merge);
        let result = module.id();
        op(&mut module.code, 245, &[UINT, result, value, then, last, at]);
        (last, at) = (result, merge);
    }
    let shader = module.read(last);
    let input: Vec<u32> = (0..LANES).map(|lane| lane * 79).collect();
    check(&shader, &input, |x| if x % 5 == 0 && x / 5 < COUNT { step(x, x / 5) } else { x });
}

/// A shader with an invocation's word of the input (`%6`) and its offset (`%5`), which stores `%LAST` there.
fn text(last: &str, body: &str) -> Shader {
    let loaded = "  %0: b32 = const<0x0>\n  %1: b32 = const<0x4>\n  %2: handle = descriptor<r0> %0\n  \
        %3: handle = descriptor<r1> %0\n  %4: b32 = sysval<local_invocation_index>\n  %5: b32 = imul %4, %1\n  \
        %6: b32 = load<storage align 4 access readonly|restrict> %2, %5\n";
    let text = format!("{loaded}{body}  store<storage align 4> %{last}, %3, %5\n");
    let mut shader = Shader::default();
    parse(&buffer_shader(LANES, 0, &text), &mut shader).unwrap_or_else(|e| panic!("{e}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}"));
    shader
}

#[test]
fn a_block_of_100000_instructions_is_compiled() {
    let mut body = String::new();
    for number in 7..100_000 {
        let op = ["iadd", "imul", "ixor"][number % 3];
        writeln!(body, "  %{number}: b32 = {op} %{}, %{}", number - 1, number - 1 - number % 2)
            .expect("memory");
    }
    let shader = text("99999", &body);
    let input: Vec<u32> = (0..LANES).map(|lane| lane * 77 + 1).collect();
    check(&shader, &input, |x| {
        let mut values = [x, x];
        for number in 7..100_000usize {
            let [before, last] = values;
            let other = if number % 2 == 0 || number == 7 { last } else { before };
            let next = match number % 3 {
                0 => last.wrapping_add(other),
                1 => last.wrapping_mul(other),
                _ => last ^ other,
            };
            values = [last, next];
        }
        values[1]
    });
}

/// Values that are all loaded before one is used, so that most go to memory.
#[test]
fn values_that_are_alive_at_once_are_spilled() {
    const COUNT: usize = 3000;
    let mut body = String::new();
    for number in 0..COUNT {
        let op = ["iadd", "ixor"][number % 2];
        writeln!(body, "  %{}: b32 = {op} %{}, %{}", 7 + number, 6 + number, 6 + number / 2).expect("memory");
    }
    for number in 0..COUNT {
        writeln!(body, "  %{}: b32 = imul %{}, %{}", 7 + COUNT + number, 6 + COUNT + number, 7 + number)
            .expect("memory");
    }
    let shader = text(&(6 + 2 * COUNT).to_string(), &body);
    let input: Vec<u32> = (0..LANES).map(|lane| lane * 2 + 1).collect();
    check(&shader, &input, |x| {
        let mut values = vec![x];
        for number in 0..COUNT {
            let (last, other) = (values[number], values[number / 2]);
            values.push(if number % 2 == 0 { last.wrapping_add(other) } else { last ^ other });
        }
        values[1..].iter().fold(values[COUNT], |product, value| product.wrapping_mul(*value))
    });
}

/// More code than a branch reaches over, left from everywhere: where the lower bits of the value are the number of the place.
#[test]
fn early_exits_of_long_code_are_compiled() {
    const COUNT: u32 = 4000;
    const STEPS: u32 = 8;
    const MASK: u32 = 0xfff;
    // The mask is %7, and the result %8.
    let mut body = format!("  %7: b32 = const<{MASK:#x}>\n  %8: b32 = block<L0> {{\n");
    let mut last = 6;
    for number in 0..COUNT {
        let first = 9 + number * (STEPS + 3);
        writeln!(body, "  %{first}: b32 = const<{number:#x}>").expect("memory");
        for step in 0..STEPS {
            let (op, other) = if step % 2 == 0 { ("imul", 7) } else { ("iadd", first) };
            writeln!(body, "  %{}: b32 = {op} %{last}, %{other}", first + 1 + step).expect("memory");
            last = first + 1 + step;
        }
        let (label, masked, equal) = (number + 1, last + 1, last + 2);
        writeln!(
            body,
            "  %{masked}: b32 = iand %{last}, %7\n  %{equal}: b1 = ieq %{masked}, %{first}\n  \
             if<L{label}> %{equal} {{\n  break<L0> %{last}\n  }} else {{\n  break<L{label}>\n  }}"
        )
        .expect("memory");
    }
    writeln!(body, "  break<L0> %{last}\n  }}").expect("memory");
    let shader = text("8", &body);
    let input: Vec<u32> = (0..LANES).map(|lane| lane.wrapping_mul(0x9e37_79b9) | 1).collect();
    let exits = Cell::new(0);
    check(&shader, &input, |x| {
        let mut value = x;
        for number in 0..COUNT {
            for step in 0..STEPS {
                value = if step % 2 == 0 { value.wrapping_mul(MASK) } else { value.wrapping_add(number) };
            }
            if value & MASK == number {
                exits.set(exits.get() + 1);
                break;
            }
        }
        value
    });
    assert!((1..LANES * 3).contains(&exits.get()), "some lanes leave early: {}", exits.get());
}

/// Reductions of 16-bit floats, which are widened: the most of all lanes, again and again.
#[test]
fn thousands_of_reductions_are_compiled() {
    let mut body = String::from("  %7: b16 = u2f %6\n");
    for number in 8..3008 {
        writeln!(body, "  %{number}: b16 = reduce<fmax 0> %{}", number - 1).expect("memory");
    }
    body.push_str("  %3008: b32 = f2u %3007\n");
    let shader = text("3008", &body);
    // A wave has 32 or 64 of them.
    let input: Vec<u32> = (0..LANES).map(|lane| [3, 77, 500][lane as usize % 3]).collect();
    check(&shader, &input, |_| 500);
}
