//! Edits of single instructions: removed, replaced by one of their operands, with simpler operands, constants and attributes.

use super::Site;
use super::edit::{Removed, is_constant, is_constant_value, zero, zero_results};
use crate::ir::{Access, Function, Inst, Op, Payload, Traits, Value};
use crate::substitution::Substitution;
use std::collections::{HashMap, HashSet};
use unwedge_base::entity::{Entity, SecondaryMap};

/// Everything but terminators and constants; users come first.
pub(super) fn removable(func: &Function) -> Vec<Site> {
    let removable = |&inst: &Inst| !func.op(inst).has(Traits::TERMINATOR) && !is_constant(func, inst);
    let mut sites: Vec<Site> = func.walk().filter(removable).map(|inst| (inst.index(), 0)).collect();
    sites.reverse();
    sites
}

/// Removes instructions with their regions. Zeros take the place of their results.
pub(super) fn remove(func: &mut Function, sites: &[Site]) {
    take_out(func, sites, |_, _| None);
}

/// Operands that have the type of the only result.
pub(super) fn forwards(func: &Function) -> Vec<Site> {
    let mut sites = Vec::new();
    for inst in func.walk().filter(|&inst| !func.op(inst).has(Traits::STRUCTURED)) {
        let &[result] = func.results(inst) else { continue };
        for (number, &arg) in func.args(inst).iter().enumerate() {
            if func.ty(arg) == func.ty(result) {
                sites.push((inst.index(), number));
            }
        }
    }
    sites.reverse();
    sites
}

/// Removes instructions. An operand takes the place of the result.
pub(super) fn forward(func: &mut Function, sites: &[Site]) {
    take_out(func, sites, |func, (inst, number)| func.args(Inst::new(inst)).get(number).copied());
}

fn take_out(func: &mut Function, sites: &[Site], instead: impl Fn(&Function, Site) -> Option<Value>) {
    let wanted: HashMap<usize, Site> = sites.iter().map(|&site| (site.0, site)).collect();
    let (mut removed, mut substitution) = (Removed::default(), Substitution::default());
    for inst in func.walk().collect::<Vec<_>>() {
        if removed.has(func, inst) {
            continue;
        }
        // An earlier edit may have made it a constant, which others now use as a zero.
        let site = wanted.get(&inst.index()).filter(|_| !is_constant(func, inst));
        let Some(&site) = site else { continue };
        removed.inst(inst);
        match (instead(func, site), func.results(inst)) {
            (Some(value), &[result]) => substitution.replace(result, value),
            _ => zero_results(func, inst, &mut substitution),
        }
        func.unlink(inst);
    }
    substitution.apply(func);
}

/// Instructions that are used by nothing, or only by others of the list; users come first.
pub(super) fn unused(func: &Function) -> Vec<Site> {
    let mut uses = SecondaryMap::<Value, u32>::default();
    let order: Vec<Inst> = func.walk().collect();
    for &inst in &order {
        for &arg in func.args(inst) {
            uses[arg] += 1;
        }
    }
    let mut sites = Vec::new();
    for &inst in order.iter().rev() {
        if func.is_removable(inst) && func.results(inst).iter().all(|&value| uses[value] == 0) {
            for &arg in func.args(inst) {
                uses[arg] -= 1;
            }
            sites.push((inst.index(), 0));
        }
    }
    sites
}

/// Removes instructions whose results are not used.
pub(super) fn drop_unused(func: &mut Function, sites: &[Site]) {
    for &(inst, _) in sites {
        func.unlink(Inst::new(inst));
    }
}

/// Operands that are not constant.
pub(super) fn operands(func: &Function) -> Vec<Site> {
    let mut sites = Vec::new();
    for inst in func.walk() {
        for (number, &arg) in func.args(inst).iter().enumerate() {
            if !is_constant_value(func, arg) {
                sites.push((inst.index(), number));
            }
        }
    }
    sites.reverse();
    sites
}

/// Zeros in place of operands.
pub(super) fn zero_operands(func: &mut Function, sites: &[Site]) {
    for &(inst, number) in sites {
        let inst = Inst::new(inst);
        let Some(&arg) = func.args(inst).get(number) else { continue };
        let ty = func.ty(arg);
        let zero = zero(func, ty);
        func.args_mut(inst)[number] = zero;
    }
}

/// Constants that are not zero, once for each of [`LESS`].
pub(super) fn constants(func: &Function) -> Vec<Site> {
    let nonzero = |&inst: &Inst| matches!(func.payload(inst), Payload::Const(bits) if bits != 0);
    let found: Vec<usize> = func.walk().filter(nonzero).map(Inst::index).collect();
    (0..LESS.len()).flat_map(|way| found.iter().map(move |&inst| (inst, way))).collect()
}

/// The ways to make a constant less: zero, one, half as many bits, one bit less.
const LESS: [fn(u64) -> u64; 4] =
    [|_| 0, |_| 1, |bits| bits >> ((64 - bits.leading_zeros()) / 2), |bits| bits >> 1];

/// Makes constants less.
pub(super) fn lower_constants(func: &mut Function, sites: &[Site]) {
    for &(inst, way) in sites {
        let inst = Inst::new(inst);
        if let Payload::Const(bits) = func.payload(inst) {
            func.set_payload(inst, Payload::Const(LESS[way](bits)));
        }
    }
}

/// One edit for all duplicate constants, if there are any.
pub(super) fn duplicates(func: &Function) -> Vec<Site> {
    let mut seen = HashSet::new();
    let constants = func.walk().filter(|&inst| func.op(inst) == Op::Const);
    let twice =
        constants.filter(|&inst| !seen.insert((func.ty(func.result(inst)), func.payload(inst)))).count();
    if twice == 0 { Vec::new() } else { vec![(0, 0)] }
}

/// Puts scalar constants at the start of the function, each once.
pub(super) fn share_constants(func: &mut Function, _: &[Site]) {
    let mut first = HashMap::new();
    let mut substitution = Substitution::default();
    for inst in func.walk().collect::<Vec<_>>() {
        if func.op(inst) != Op::Const {
            continue;
        }
        let result = func.result(inst);
        match first.get(&(func.ty(result), func.payload(inst))) {
            Some(&earlier) => {
                substitution.replace(result, earlier);
                func.unlink(inst);
            }
            None => {
                first.insert((func.ty(result), func.payload(inst)), result);
                func.unlink(inst);
                match func.first(func.body()) {
                    Some(start) => func.insert_before(start, inst),
                    None => func.append(func.body(), inst),
                }
            }
        }
    }
    substitution.apply(func);
}

fn plain(payload: Payload) -> Payload {
    let mut payload = payload;
    match &mut payload {
        Payload::Mem(mem) | Payload::Atomic(_, mem) => mem.access = Access::NONE,
        Payload::Image(image) | Payload::ImageAtomic(_, image) => image.access = Access::NONE,
        Payload::Resource(_, access) => *access = Access::NONE,
        _ => {}
    }
    payload
}

/// Instructions that are exact, or have access flags.
pub(super) fn attributes(func: &Function) -> Vec<Site> {
    let more = |&inst: &Inst| func.exact(inst) || plain(func.payload(inst)) != func.payload(inst);
    func.walk().filter(more).map(|inst| (inst.index(), 0)).collect()
}

/// Drops exactness and access flags.
pub(super) fn drop_attributes(func: &mut Function, sites: &[Site]) {
    for &(inst, _) in sites {
        let inst = Inst::new(inst);
        func.set_exact(inst, false);
        let payload = plain(func.payload(inst));
        func.set_payload(inst, payload);
    }
}
