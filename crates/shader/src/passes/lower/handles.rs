//! Lowers handles that are chosen or compared: takes any shader; afterwards they are not operands or results of selects, of comparisons and of structured
//! instructions any more, except those that the options keep, handles of a machine's descriptors, and those that functions take or return.
//!
//! A chosen handle becomes two numbers: which of its possible bindings it has, and the index in that binding. An access through it chooses between the bindings by
//! the first number, and handles are equal if both numbers are. Indices are marked `nonuniform`, so [`super::lower_nonuniform`] makes loops of those that differ within a subgroup.

use super::at_end;
use super::nonuniform::{lowest_bit_of, reads_quad, set_derivatives};
use super::subgroups::ballot;
use crate::analysis::divergence::Divergence;
use crate::ir::{
    Access, Base, Builder, Function, Inst, Op, Payload, Region, Resource, ResourceClass, Scope, Shader, Type,
    Value, ValueDef,
};
use crate::substitution::{Substitution, last_of_chain};
use std::collections::BTreeMap;
use unwedge_base::entity::SecondaryMap;

/// Which chosen handles stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleOptions {
    /// Those of buffers that are the same in all invocations of a subgroup.
    pub uniform_buffers: bool,
}

/// Lowers chosen handles.
pub fn lower_handles(shader: &mut Shader, options: &HandleOptions) -> bool {
    let derivatives = shader.info.has_derivatives();
    let mut changed = false;
    for at in 0..shader.functions().len() {
        let Some(webs) = Webs::of(shader, &shader.functions()[at], options) else { continue };
        let func = &mut shader.functions_mut()[at];
        let numbers = pass_numbers(func, &webs);
        rewrite_accesses(func, &webs, &numbers, derivatives);
        remove_handles(func, &webs);
        changed = true;
    }
    changed
}

/// A binding, and what accesses through its descriptors may assume.
type Binding = (Resource, Access);

/// Handles that are chosen from each other.
#[derive(Debug, Default)]
struct Web {
    bindings: Vec<Binding>,
    /// It has handles without a binding.
    foreign: bool,
    /// A handle differs within a subgroup.
    divergent: bool,
    /// Handles are compared with each other.
    compared: bool,
}

/// The webs of a function that are lowered.
struct Webs {
    next: SecondaryMap<Value, Option<Value>>,
    /// By the last handle of the chain.
    webs: BTreeMap<Value, Web>,
}

/// Whether a value is a handle that a select or a structured instruction chooses.
fn is_chosen(func: &Function, value: Value) -> bool {
    func.ty(value).base == Base::Handle
        && match func.def(value) {
            ValueDef::Result(inst, _) => {
                matches!(func.op(inst), Op::Select | Op::Block | Op::If | Op::Loop)
            }
            ValueDef::Param(region, _) => region != func.body(),
            ValueDef::Removed => false,
        }
}

/// The two handles that an instruction compares.
fn compared(func: &Function, inst: Inst) -> Option<[Value; 2]> {
    let &[a, b] = func.args(inst) else { return None };
    let compares = matches!(func.op(inst), Op::IEq | Op::INe) && func.ty(a).base == Base::Handle;
    compares.then_some([a, b])
}

/// The values that an instruction passes on, each with what it becomes.
fn passed(func: &Function, inst: Inst) -> Vec<(Value, Value)> {
    let args = func.args(inst);
    let pairs = |to: &[Value]| args.iter().copied().zip(to.iter().copied()).collect();
    match (func.op(inst), func.payload(inst)) {
        (Op::Select, _) => args[1..].iter().map(|&arg| (arg, func.result(inst))).collect(),
        (Op::Break, Payload::Target(target)) => pairs(func.results(target)),
        (Op::Continue, Payload::Target(target)) => match func.payload(target) {
            Payload::Body(body) => pairs(func.params(body)),
            _ => Vec::new(),
        },
        (Op::Loop, Payload::Body(body)) => pairs(func.params(body)),
        _ => Vec::new(),
    }
}

impl Webs {
    fn of(shader: &Shader, func: &Function, options: &HandleOptions) -> Option<Webs> {
        let mut next = SecondaryMap::default();
        let mut handles = Vec::new();
        let mut comparisons = Vec::new();
        for inst in func.walk() {
            let compared = compared(func, inst);
            comparisons.extend(compared.map(|[a, _]| a));
            for (from, to) in passed(func, inst).into_iter().chain(compared.map(|[a, b]| (a, b))) {
                if func.ty(to).base == Base::Handle {
                    handles.extend([from, to]);
                    let (from, to) = (last_of_chain(&mut next, from), last_of_chain(&mut next, to));
                    if from != to {
                        next[from] = Some(to);
                    }
                }
            }
        }
        if handles.is_empty() {
            return None;
        }
        let divergence = Divergence::of(func, Scope::Subgroup);
        let mut webs: BTreeMap<Value, Web> = BTreeMap::new();
        for handle in handles {
            let web = webs.entry(last_of_chain(&mut next, handle)).or_default();
            web.divergent |= divergence.is_divergent(handle);
            match func.def_inst(handle).map(|inst| (func.op(inst), func.payload(inst))) {
                Some((Op::Descriptor, Payload::Resource(resource, access))) => {
                    let binding = (resource, access.without(Access::NONUNIFORM));
                    if !web.bindings.contains(&binding) {
                        web.bindings.push(binding);
                    }
                }
                Some((Op::Undef, _)) => {}
                _ => web.foreign |= !is_chosen(func, handle),
            }
        }
        for handle in comparisons {
            webs.entry(last_of_chain(&mut next, handle)).or_default().compared = true;
        }
        let is_buffer = |&(resource, _): &Binding| {
            shader.resources.get(resource).is_some_and(|data| {
                matches!(data.class, ResourceClass::UniformBuffer | ResourceClass::StorageBuffer)
            })
        };
        webs.retain(|_, web| {
            let uniform = !web.divergent && web.bindings.iter().all(is_buffer);
            !web.foreign && (web.compared || !(options.uniform_buffers && uniform))
        });
        (!webs.is_empty()).then_some(Webs { next, webs })
    }

    /// The web of a handle, if it is lowered.
    fn find(&self, value: Value) -> Option<&Web> {
        let mut last = value;
        while let Some(after) = self.next[last] {
            last = after;
        }
        self.webs.get(&last)
    }

    /// Whether a value is a chosen handle that is lowered.
    fn lowers(&self, func: &Function, value: Value) -> bool {
        is_chosen(func, value) && self.find(value).is_some()
    }
}

/// The two numbers of each handle of a web.
type Numbers = SecondaryMap<Value, Option<[Value; 2]>>;

/// Computes the numbers of handles where the handles are chosen.
fn pass_numbers(func: &mut Function, webs: &Webs) -> Numbers {
    let mut numbers = Numbers::default();
    let insts: Vec<Inst> = func.walk().collect();
    for &inst in &insts {
        for result in func.results(inst).to_vec() {
            if webs.lowers(func, result) && func.op(inst) != Op::Select {
                numbers[result] = Some([0; 2].map(|_| func.add_result(inst, Type::B32)));
            } else if webs.find(result).is_some() {
                numbers[result] = numbers_of_start(func, webs, inst);
            }
        }
        if let (Op::Loop, Payload::Body(body)) = (func.op(inst), func.payload(inst)) {
            for param in func.params(body).to_vec() {
                if webs.lowers(func, param) {
                    numbers[param] = Some([0; 2].map(|_| func.add_param(body, Type::B32)));
                }
            }
        }
    }
    for &inst in &insts {
        let pairs = passed(func, inst);
        if func.op(inst) == Op::Select {
            let result = func.result(inst);
            if !webs.lowers(func, result) {
                continue;
            }
            let &[condition, yes, no] = func.args(inst) else { continue };
            let (Some(yes), Some(no)) = (numbers[yes], numbers[no]) else { continue };
            let mut b = Builder::before(func, inst);
            numbers[result] = Some([0, 1].map(|at| b.alu(Op::Select, &[condition, yes[at], no[at]])));
            continue;
        }
        for (from, to) in pairs {
            if webs.lowers(func, to) {
                for number in numbers[from].into_iter().flatten() {
                    func.add_arg(inst, number);
                }
            }
        }
    }
    numbers
}

/// The numbers of a descriptor, or of an undefined handle.
fn numbers_of_start(func: &mut Function, webs: &Webs, inst: Inst) -> Option<[Value; 2]> {
    let web = webs.find(func.result(inst))?;
    match (func.op(inst), func.payload(inst)) {
        (Op::Descriptor, Payload::Resource(resource, access)) => {
            let binding = (resource, access.without(Access::NONUNIFORM));
            let which = web.bindings.iter().position(|own| *own == binding)?;
            let index = *func.args(inst).first()?;
            Some([Builder::before(func, inst).u32(which as u32), index])
        }
        (Op::Undef, _) => {
            let mut b = Builder::before(func, inst);
            Some([b.undef(Type::B32), b.undef(Type::B32)])
        }
        _ => None,
    }
}

/// A chosen handle that an access has, as one or several of its operands.
struct ChosenHandle {
    operands: Vec<usize>,
    bindings: Vec<Binding>,
    which: Value,
    index: Value,
}

impl ChosenHandle {
    /// The handle with its index at a binding.
    fn handle(&self, b: &mut Builder<'_>, number: usize, index: Value) -> Value {
        let Some(&(resource, access)) = self.bindings.get(number) else { return b.undef(Type::HANDLE) };
        let payload = Payload::Resource(resource, access.or(Access::NONUNIFORM));
        b.value(Op::Descriptor, payload, &[index], Type::HANDLE)
    }
}

fn rewrite_accesses(func: &mut Function, webs: &Webs, numbers: &Numbers, derivatives: bool) {
    let mut substitution = Substitution::default();
    for inst in func.walk().collect::<Vec<Inst>>() {
        if func.op(inst) == Op::Select || matches!(func.payload(inst), Payload::Target(_) | Payload::Body(_))
        {
            continue;
        }
        if let Some([a, b]) = compared(func, inst) {
            if let (Some(web), Some(a), Some(b)) = (webs.find(a), numbers[a], numbers[b]) {
                let equal = compare(func, inst, web, [a, b]);
                replace_results(func, inst, &[equal], &mut substitution);
            }
            continue;
        }
        let args = func.args(inst);
        let chosen = |(operand, &value): (usize, &Value)| {
            let [which, index] = numbers[value].filter(|_| webs.lowers(func, value))?;
            let bindings = webs.find(value)?.bindings.clone();
            let operands: Vec<usize> = (operand..args.len()).filter(|&at| args[at] == value).collect();
            let first = !args[..operand].contains(&value);
            first.then_some(ChosenHandle { operands, bindings, which, index })
        };
        let chosen: Vec<ChosenHandle> = args.iter().enumerate().filter_map(chosen).collect();
        if chosen.is_empty() {
            continue;
        }
        let several = chosen.iter().any(|chosen| chosen.bindings.len() > 1);
        let mut query = false;
        if derivatives && several && reads_quad(func, inst) {
            match func.payload(inst) {
                Payload::Image(image) if func.op(inst) == Op::ImageSample => {
                    set_derivatives(func, inst, image)
                }
                _ => query = true,
            }
        }
        rewrite_access(func, inst, &chosen, query, &mut substitution);
    }
    substitution.apply(func);
}

/// Whether the numbers of two handles are those of one descriptor, or, as the instruction asks, are not.
fn compare(func: &mut Function, inst: Inst, web: &Web, handles: [[Value; 2]; 2]) -> Value {
    let mut b = Builder::before(func, inst);
    let [first, second] = handles.map(|[which, index]| {
        // What accesses may assume does not matter here.
        let mut own = which;
        for (number, (resource, _)) in web.bindings.iter().enumerate() {
            let same = web.bindings.iter().position(|(other, _)| other == resource).unwrap_or(number);
            if same != number {
                let [number, same] = [number, same].map(|number| b.u32(number as u32));
                let condition = b.alu(Op::IEq, &[which, number]);
                own = b.alu(Op::Select, &[condition, same, own]);
            }
        }
        [own, index]
    });
    let [binding, index] = [0, 1].map(|at| b.alu(Op::IEq, &[first[at], second[at]]));
    let equal = b.alu(Op::IAnd, &[binding, index]);
    if b.func.op(inst) == Op::INe { b.alu(Op::INot, &[equal]) } else { equal }
}

/// Takes the handles of an access from their bindings, one handle after the other.
fn rewrite_access(
    func: &mut Function,
    inst: Inst,
    chosen: &[ChosenHandle],
    query: bool,
    substitution: &mut Substitution,
) {
    let Some((first, rest)) = chosen.split_first() else { return };
    let clones = match (first.bindings.len(), query) {
        (0 | 1, _) => {
            let handle = first.handle(&mut Builder::before(func, inst), 0, first.index);
            for &operand in &first.operands {
                func.args_mut(inst)[operand] = handle;
            }
            vec![inst]
        }
        (_, false) => choose(func, inst, first, substitution),
        (_, true) => query_all(func, inst, first, substitution),
    };
    for clone in clones {
        rewrite_access(func, clone, rest, query, substitution);
    }
}

/// The access with the handle at a binding.
fn clone_with(b: &mut Builder<'_>, inst: Inst, operands: &[usize], handle: Value) -> Inst {
    let (op, payload) = (b.func.op(inst), b.func.payload(inst));
    let mut args = b.func.args(inst).to_vec();
    for &operand in operands {
        args[operand] = handle;
    }
    let results: Vec<Type> = b.func.results(inst).iter().map(|&value| b.func.ty(value)).collect();
    b.inst(op, payload, &args, &results)
}

/// Writes the access for each binding, in arms, one of which each invocation takes. Returns these accesses.
fn choose(
    func: &mut Function,
    inst: Inst,
    chosen: &ChosenHandle,
    substitution: &mut Substitution,
) -> Vec<Inst> {
    let (loc, exact) = (func.loc(inst), func.exact(inst));
    let results: Vec<Type> = func.results(inst).iter().map(|&value| func.ty(value)).collect();
    let last = chosen.bindings.len() - 1;
    let mut clones = Vec::new();
    let mut checks: Vec<(Inst, Region)> = Vec::new();
    let mut inside = |func: &mut Function, region: Region| {
        let mut b = at_end(func, region, loc);
        b.exact = exact;
        let handle = chosen.handle(&mut b, clones.len(), chosen.index);
        clones.push(clone_with(&mut b, inst, &chosen.operands, handle));
        clones[clones.len() - 1]
    };
    for number in 0..last {
        let mut b = match checks.last() {
            Some(&(_, other)) => at_end(func, other, loc),
            None => Builder::before(func, inst),
        };
        let own = b.u32(number as u32);
        let condition = b.alu(Op::IEq, &[chosen.which, own]);
        let (check, then, other) = b.if_(condition, &results);
        let clone = inside(func, then);
        let found = func.results(clone).to_vec();
        at_end(func, then, loc).break_(check, &found);
        checks.push((check, other));
    }
    let Some(&(_, innermost)) = checks.last() else { return vec![inst] };
    let clone = inside(func, innermost);
    let mut found = func.results(clone).to_vec();
    for (check, other) in checks.into_iter().rev() {
        at_end(func, other, loc).break_(check, &found);
        found = func.results(check).to_vec();
    }
    replace_results(func, inst, &found, substitution);
    clones
}

/// Writes the query for each binding that some invocation has. All invocations execute each query, so that quads are complete: those with other bindings take the index of
/// one that has this one. Returns these queries.
fn query_all(
    func: &mut Function,
    inst: Inst,
    chosen: &ChosenHandle,
    substitution: &mut Substitution,
) -> Vec<Inst> {
    let loc = func.loc(inst);
    let ty = func.ty(func.result(inst));
    let mut clones = Vec::new();
    let mut b = Builder::before(func, inst);
    let mut found = b.undef(ty);
    for number in 0..chosen.bindings.len() {
        let mut b = Builder::before(func, inst);
        let own = b.u32(number as u32);
        let same = b.alu(Op::IEq, &[chosen.which, own]);
        let any = b.value(Op::VoteAny, Payload::None, &[same], Type::BOOL);
        let (check, then, other) = b.if_(any, &[ty]);
        let mut b = at_end(func, then, loc);
        let invocations = ballot(&mut b, same);
        let lowest = lowest_bit_of(&mut b, invocations);
        let theirs = b.value(Op::Broadcast, Payload::None, &[chosen.index, lowest], Type::B32);
        let index = b.alu(Op::Select, &[same, chosen.index, theirs]);
        let handle = chosen.handle(&mut b, number, index);
        let clone = clone_with(&mut b, inst, &chosen.operands, handle);
        clones.push(clone);
        let result = b.func.result(clone);
        let lanes: Vec<Value> = (0..ty.lanes)
            .map(|lane| {
                let (new, old) = (b.extract(result, lane), b.extract(found, lane));
                b.alu(Op::Select, &[same, new, old])
            })
            .collect();
        let combined = b.vec(&lanes);
        b.break_(check, &[combined]);
        at_end(func, other, loc).break_(check, &[found]);
        found = func.result(check);
    }
    replace_results(func, inst, &[found], substitution);
    clones
}

fn replace_results(func: &mut Function, inst: Inst, found: &[Value], substitution: &mut Substitution) {
    for (old, &new) in func.results(inst).to_vec().into_iter().zip(found) {
        substitution.replace(old, new);
    }
    func.unlink(inst);
}

/// Removes the handles that nothing reads now.
fn remove_handles(func: &mut Function, webs: &Webs) {
    let insts: Vec<Inst> = func.walk().collect();
    for &inst in &insts {
        if func.op(inst) == Op::Select {
            continue;
        }
        let pairs = passed(func, inst);
        let keep = |number: u32| match pairs.get(number as usize) {
            Some(&(_, to)) => !webs.lowers(func, to),
            None => true,
        };
        let kept: Vec<bool> = (0..func.args(inst).len() as u32).map(keep).collect();
        func.retain_args(inst, |number| kept[number as usize]);
    }
    for inst in insts {
        let lowered = |func: &Function, values: &[Value]| -> Vec<bool> {
            values.iter().map(|&value| webs.lowers(func, value)).collect()
        };
        if func.op(inst) == Op::Select {
            if webs.lowers(func, func.result(inst)) {
                func.unlink(inst);
            }
            continue;
        }
        let results = lowered(func, func.results(inst));
        if results.contains(&true) {
            func.retain_results(inst, |number| !results[number as usize]);
        }
        if let (Op::Loop, Payload::Body(body)) = (func.op(inst), func.payload(inst)) {
            let params = lowered(func, func.params(body));
            if params.contains(&true) {
                func.retain_params(body, |number| !params[number as usize]);
            }
        }
    }
}
