//! Edits of flow: regions cut short, one arm of an `if`, loops that run once, blocks replaced by their contents, results and parameters.

use super::Site;
use super::edit::{Removed, zero};
use crate::analysis::jumps::Jumps;
use crate::ir::{Function, Inst, Op, Payload, Region, RegionOwner, Value};
use crate::substitution::Substitution;
use std::collections::{BTreeMap, HashMap};
use unwedge_base::entity::Entity;

/// What [`cut`] does: removes everything in a region, or only makes its terminator simpler.
const WHOLE: usize = 0;
const END: usize = 1;

fn structured(func: &Function, op: Op) -> Vec<Inst> {
    func.walk().filter(|&inst| func.op(inst) == op).collect()
}

fn numbered(insts: Vec<Inst>) -> Vec<Site> {
    insts.into_iter().map(|inst| (inst.index(), 0)).collect()
}

/// Whether the terminator of a region is the simplest one: `return`, or `break` of its own instruction.
fn ends_plainly(func: &Function, region: Region) -> bool {
    func.last(region).is_some_and(|last| match func.owner(region) {
        RegionOwner::Function => func.op(last) == Op::Return,
        RegionOwner::Inst(owner) => {
            func.op(last) == Op::Break && func.payload(last) == Payload::Target(owner)
        }
    })
}

/// Regions that have more than a terminator, and those whose terminator may be simpler.
pub(super) fn regions(func: &Function) -> Vec<Site> {
    let inner = func.walk().flat_map(|inst| func.regions_of(inst).into_iter().flatten());
    let all: Vec<Region> = std::iter::once(func.body()).chain(inner).collect();
    let long = all.iter().filter(|&&region| func.first(region) != func.last(region));
    let long = long.map(|region| (region.index(), WHOLE));
    let odd = all.iter().filter(|&&region| !ends_plainly(func, region)).map(|region| (region.index(), END));
    long.chain(odd).collect()
}

/// Cuts regions short: they leave their instruction or function at once, with zeros.
pub(super) fn cut(func: &mut Function, sites: &[Site]) {
    for &(region, extent) in sites {
        let region = Region::new(region);
        while let Some(last) = func.last(region) {
            func.unlink(last);
            if extent == END {
                break;
            }
        }
        let (op, payload, types) = match func.owner(region) {
            RegionOwner::Function => (Op::Return, Payload::None, func.results.clone()),
            RegionOwner::Inst(owner) => {
                let types = func.results(owner).iter().map(|&value| func.ty(value)).collect();
                (Op::Break, Payload::Target(owner), types)
            }
        };
        let zeros: Vec<Value> = types.into_iter().map(|ty| zero(func, ty)).collect();
        let end = func.make_inst(op, payload, &zeros, &[]);
        func.append(region, end);
    }
}

/// Both arms of every `if`.
pub(super) fn ifs(func: &Function) -> Vec<Site> {
    let ifs = structured(func, Op::If);
    [0, 1].into_iter().flat_map(|arm| ifs.iter().map(move |inst| (inst.index(), arm))).collect()
}

/// Makes an `if` a `block` with one of its arms.
pub(super) fn keep_arm(func: &mut Function, sites: &[Site]) {
    let wanted: HashMap<usize, usize> = sites.iter().copied().collect();
    let mut removed = Removed::default();
    for inst in func.walk().collect::<Vec<_>>() {
        if removed.has(func, inst) {
            continue;
        }
        let (Some(arm), Payload::Arms(then, other)) = (wanted.get(&inst.index()), func.payload(inst)) else {
            continue;
        };
        let (kept, dropped) = if *arm == 0 { (then, other) } else { (other, then) };
        removed.region(dropped);
        func.replace_inst(inst, Op::Block, Payload::Body(kept), &[]);
    }
}

/// Every loop.
pub(super) fn loops(func: &Function) -> Vec<Site> {
    numbered(structured(func, Op::Loop))
}

/// Makes a loop a `block`: its continues become breaks with zeros.
pub(super) fn run_once(func: &mut Function, sites: &[Site]) {
    let jumps = Jumps::of(func);
    let mut substitution = Substitution::default();
    for inst in sites.iter().map(|site| Inst::new(site.0)) {
        let Payload::Body(body) = func.payload(inst) else { continue };
        let types: Vec<_> = func.results(inst).iter().map(|&value| func.ty(value)).collect();
        for jump in jumps.continues(inst) {
            let zeros: Vec<Value> = types.iter().map(|&ty| zero(func, ty)).collect();
            func.replace_inst(jump, Op::Break, Payload::Target(inst), &zeros);
        }
        for (&param, &start) in func.params(body).iter().zip(func.args(inst)) {
            substitution.replace(param, start);
        }
        func.replace_inst(inst, Op::Block, Payload::Body(body), &[]);
        func.retain_params(body, |_| false);
    }
    substitution.apply(func);
}

/// Every block, inner ones first.
pub(super) fn blocks(func: &Function) -> Vec<Site> {
    let mut blocks = structured(func, Op::Block);
    blocks.reverse();
    numbered(blocks)
}

/// Replaces a block by its contents, if its only `break` is at its end, or if it has none.
pub(super) fn unwrap(func: &mut Function, sites: &[Site]) {
    let jumps = Jumps::of(func);
    let mut substitution = Substitution::default();
    for inst in sites.iter().map(|site| Inst::new(site.0)) {
        let Payload::Body(body) = func.payload(inst) else { continue };
        let Some(last) = func.last(body).filter(|_| func.is_linked(inst)) else { continue };
        let breaks = jumps.breaks(inst).len();
        if breaks == 0 {
            // What follows is never reached.
            while let Some(next) = func.next(inst) {
                func.unlink(next);
            }
        } else if breaks == 1 && func.payload(last) == Payload::Target(inst) {
            for (&result, &value) in func.results(inst).iter().zip(func.args(last)) {
                substitution.replace(result, value);
            }
            func.unlink(last);
        } else {
            continue;
        }
        func.splice_before(inst, body);
        func.unlink(inst);
    }
    substitution.apply(func);
}

/// Results of blocks, `if`s and loops.
pub(super) fn results(func: &Function) -> Vec<Site> {
    let structured = func.walk().filter(|&inst| matches!(func.op(inst), Op::Block | Op::If | Op::Loop));
    structured
        .flat_map(|inst| (0..func.results(inst).len()).map(move |number| (inst.index(), number)))
        .collect()
}

/// The numbers that belong to each instruction.
fn by_inst(sites: &[Site]) -> BTreeMap<Inst, Vec<usize>> {
    let mut numbers: BTreeMap<Inst, Vec<usize>> = BTreeMap::new();
    for &(inst, number) in sites {
        numbers.entry(Inst::new(inst)).or_default().push(number);
    }
    numbers
}

/// Removes results; zeros take their place.
pub(super) fn drop_results(func: &mut Function, sites: &[Site]) {
    let jumps = Jumps::of(func);
    let mut substitution = Substitution::default();
    for (inst, numbers) in by_inst(sites) {
        for &number in &numbers {
            // An earlier edit may have removed results of the same instruction.
            let Some(&result) = func.results(inst).get(number) else { continue };
            let ty = func.ty(result);
            let zero = zero(func, ty);
            substitution.replace(result, zero);
        }
        let keep = |number: u32| !numbers.contains(&(number as usize));
        func.retain_results(inst, keep);
        jumps.breaks(inst).for_each(|jump| func.retain_args(jump, keep));
    }
    substitution.apply(func);
}

/// Parameters of loops.
pub(super) fn parameters(func: &Function) -> Vec<Site> {
    let loops = structured(func, Op::Loop).into_iter();
    loops.flat_map(|inst| (0..func.args(inst).len()).map(move |number| (inst.index(), number))).collect()
}

/// Removes parameters; the values that they start with take their place.
pub(super) fn drop_parameters(func: &mut Function, sites: &[Site]) {
    let jumps = Jumps::of(func);
    let mut substitution = Substitution::default();
    for (inst, numbers) in by_inst(sites) {
        let Payload::Body(body) = func.payload(inst) else { continue };
        for &number in &numbers {
            if let (Some(&param), Some(&start)) = (func.params(body).get(number), func.args(inst).get(number))
            {
                substitution.replace(param, start);
            }
        }
        let keep = |number: u32| !numbers.contains(&(number as usize));
        func.retain_params(body, keep);
        func.retain_args(inst, keep);
        jumps.continues(inst).for_each(|jump| func.retain_args(jump, keep));
    }
    substitution.apply(func);
}
