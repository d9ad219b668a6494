//! Claims of analyses: ranges contain the results of operations, and values that are not divergent are equal in all invocations. Aliasing
//! is tested by way of the passes that use it, in `memory` and `effects`.

use super::memory::{observe, random};
use unwedge_shader::analysis::divergence::Divergence;
use unwedge_shader::analysis::ranges::{Range, transfer};
use unwedge_shader::front::spirv::{Options, Reader, words};
use unwedge_shader::interp::BindingPoint;
use unwedge_shader::ir::{
    Access, Base, BaseSet, Builder, Inst, MemAccess, Op, Payload, ResourceClass, ResourceData, Rule, Scope,
    Shader, ShaderInfo, Space, Stage, Traits, Type,
};
use unwedge_shader::semantics::{Eval, eval};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;

const INTS: [Base; 4] = [Base::B8, Base::B16, Base::B32, Base::B64];

/// A few numbers, close together or anywhere, and a range that contains them.
fn numbers(base: Base, rng: &mut Rng) -> (Vec<u64>, Range) {
    let width = base.bits();
    let start = match rng.below(4) {
        0 => 0,
        1 => (1u64 << (width - 1)).wrapping_sub(rng.below(4) as u64),
        2 => u64::MAX - rng.below(20) as u64,
        _ => rng.next_u64(),
    };
    let spread = [1, 7, 100, u64::MAX][rng.below(4)];
    let step = [1, 1, 4, 16][rng.below(4)];
    let count = 1 + rng.below(6);
    let numbers: Vec<u64> = (0..count)
        .map(|_| start.wrapping_add((rng.next_u64() % spread).wrapping_mul(step)) & base.mask())
        .collect();
    let range = numbers.iter().map(|&bits| Range::constant(width, bits)).reduce(Range::union);
    (numbers.clone(), range.unwrap_or(Range::full(width)))
}

#[test]
fn ranges_contain_what_operations_compute() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 100_000 } else { 1_500 };
    let mut rng = Rng::new(9);
    let info = ShaderInfo::default();
    let ops = Op::ALL.iter().filter(|op| op.has(Traits::ELEMENTWISE) && !op.has(Traits::FLOAT));
    for &op in ops.filter(|op| !matches!(op, Op::FNeg | Op::FAbs)) {
        let row = op.row();
        for round in 0..rounds {
            let t = INTS[rng.below(4)];
            let source = INTS[rng.below(4)];
            let mut sets = Vec::new();
            for rule in row.operands {
                let base = match rule {
                    Rule::T(_) => t,
                    Rule::Lanes(base) => *base,
                    _ => source,
                };
                sets.push(if base == Base::B1 {
                    let bit = rng.below(2) as u64;
                    (vec![bit], Range::constant(1, bit))
                } else {
                    numbers(base, &mut rng)
                });
            }
            let ranges: Vec<Range> = sets.iter().map(|(_, range)| *range).collect();
            let converts = matches!(row.operands.first(), Some(Rule::LanesOf(_)));
            let mut env = Eval::new(t, &info);
            env.source = if converts { source } else { t };
            let width = match row.result {
                Some(Rule::Lanes(base)) => base.bits(),
                _ => t.bits(),
            };
            let result = transfer(op, width, &ranges);
            for _ in 0..12 {
                let args: Vec<u64> =
                    sets.iter().map(|(numbers, _)| numbers[rng.below(numbers.len())]).collect();
                let bits = eval(op, &env, &args).expect("an elementwise operation");
                assert!(
                    result.contains(bits),
                    "round {round}: {} of {t:?}: {args:x?} gives {bits:#x}, not in {result:x?} of {ranges:x?}",
                    op.name()
                );
            }
        }
    }
}

/// Adds a vote after each value that is claimed to be the same in the subgroup, and stores a word where it is not.
fn with_votes(shader: &Shader) -> (Shader, usize) {
    let mut checked = shader.clone();
    let data = ResourceData::new(ResourceClass::StorageBuffer, 7);
    let resource = checked.resources.push(ResourceData { set: 7, ..data });
    let divergence = Divergence::of(shader.entry(), Scope::Subgroup);
    let func = checked.entry_mut();
    let insts: Vec<Inst> = func.walk().collect();
    let mut votes = 0;
    for inst in insts {
        let values = func.results(inst).to_vec();
        for value in values {
            let ty = func.ty(value);
            let constant = func.const_lanes(value).is_some() || func.op(inst) == Op::Undef;
            if divergence.is_divergent(value) || !BaseSet::BITS.has(ty.base) || constant {
                continue;
            }
            let Some(next) = func.next(inst) else { continue };
            votes += 1;
            let mut builder = Builder::before(func, next);
            let mut same = None;
            for lane in 0..ty.lanes {
                let lane = builder.extract(value, lane);
                let vote = builder.alu(Op::VoteIEq, &[lane]);
                same = Some(match same {
                    Some(others) => builder.alu(Op::IAnd, &[others, vote]),
                    None => vote,
                });
            }
            let Some(same) = same else { continue };
            let (check, then, other) = builder.if_(same, &[]);
            Builder::at_end(builder.func, then).break_(check, &[]);
            let mut builder = Builder::at_end(builder.func, other);
            let zero = builder.u32(0);
            let descriptor = builder.value(
                Op::Descriptor,
                Payload::Resource(resource, Access::NONE),
                &[zero],
                Type::HANDLE,
            );
            let mem = Payload::Mem(MemAccess { space: Space::Storage, access: Access::VOLATILE, align: 2 });
            let word = builder.u32(0xdead_0000 + votes);
            builder.inst(Op::Store, mem, &[word, descriptor, zero], &[]);
            builder.break_(check, &[]);
        }
    }
    (checked, votes as usize)
}

fn check_divergence(name: &str, shader: &Shader) -> usize {
    let (checked, votes) = with_votes(shader);
    validate(&checked).unwrap_or_else(|e| panic!("{name}: {e}\n{}", print(&checked)));
    let Ok(observed) = observe(&checked, 3, 2_000_000) else { return 0 };
    let Some(words) = observed.memory.get(&BindingPoint { set: 7, binding: 7, index: 0 }) else { return 0 };
    let word = u32::from_le_bytes([words[0], words[1], words[2], words[3]]);
    assert!(word >> 16 != 0xdead, "{name}: value {} differs\n{}", word & 0xffff, print(&checked));
    votes
}

#[test]
fn values_that_are_not_divergent_are_the_same() {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 20_000 } else { 200 };
    let mut votes = 0;
    for round in 0..rounds {
        votes += check_divergence(&format!("round {round}"), &random(&mut Rng::new(round + 77)));
    }
    assert!(votes > 100, "only {votes} values are claimed to be the same");
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    let modules =
        ["amd/shaders/shaders.tar.gz", "cts-amber/spirv.tar.gz"].into_iter().flat_map(data::archive);
    for (number, (name, bytes)) in modules.filter(|(name, _)| name.ends_with(".spv")).enumerate() {
        let words = words(&bytes).expect("a module");
        if number % 4 != 0 || reader.read(&words, &Options::default(), &mut shader).is_err() {
            continue;
        }
        if shader.info.stage == Stage::Compute {
            check_divergence(&name, &shader);
        }
    }
}

/// A loop that invocations leave in different iterations, and perhaps continue from different places.
const LOOP: &str = r#"shader compute "main"
workgroup_size 64 1 1
sizes shared 0 scratch 0 push 0
fn f0 "main" () -> () {
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x2>
  %3: b32x3 = sysval<local_invocation_id>
  %4: b32 = extract<0> %3
  loop<L0> %0 (%5: b32) {
    %6: b1 = ult %4, %5
    if<L1> %6 {
      JUMP
    } else {
      break<L1>
    }
    %8: b1 = ult %1, %5
    if<L2> %8 {
      continue<L0> %2
    } else {
      break<L2>
    }
    %7: b32 = iadd %5, %1
    continue<L0> %7
  }
  return
}
"#;

#[test]
fn invocations_that_have_left_a_loop_do_not_make_its_parameters_divergent() {
    for (jump, divergent) in [("break<L0>", false), ("continue<L0> %2", true), ("continue<L0> %4", true)] {
        let mut shader = Shader::default();
        parse(&LOOP.replace("JUMP", jump), &mut shader).unwrap_or_else(|error| panic!("{error}"));
        validate(&shader).unwrap_or_else(|error| panic!("{error}"));
        let func = shader.entry();
        let body = func.walk().find_map(|inst| match (func.op(inst), func.payload(inst)) {
            (Op::Loop, Payload::Body(body)) => Some(body),
            _ => None,
        });
        let param = func.params(body.expect("a loop"))[0];
        assert_eq!(Divergence::of(func, Scope::Subgroup).is_divergent(param), divergent, "{jump}");
    }
}
