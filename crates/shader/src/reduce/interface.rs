//! Edits of a shader as a whole: source positions, passes, functions, variables, bindings, types, names and modes.

use super::Site;
use super::edit::{zero, zero_results};
use crate::ir::{Function, Inst, Op, Payload, Resource, Shader, ShaderInfo, TypeId, TypeNode, Var};
use crate::passes::PASSES;
use crate::substitution::Substitution;
use unwedge_base::entity::{Entity, PrimaryMap};

fn numbered(count: usize) -> Vec<Site> {
    (0..count).rev().map(|number| (number, 0)).collect()
}

/// Whether an entity is among the sites.
fn is_named(sites: &[Site], entity: impl Entity) -> bool {
    sites.iter().any(|site| site.0 == entity.index())
}

/// Keeps the items of a map for which `keep` holds. The result has the new key of each of them.
fn retain<K: Entity, V: Clone>(
    map: &mut PrimaryMap<K, V>,
    mut keep: impl FnMut(K) -> bool,
) -> Vec<Option<K>> {
    let items: Vec<V> = map.values().cloned().collect();
    map.clear();
    items.into_iter().enumerate().map(|(old, item)| keep(K::new(old)).then(|| map.push(item))).collect()
}

/// Changes the payloads of all instructions.
fn change_payloads(shader: &mut Shader, change: impl Fn(Payload) -> Payload) {
    for func in shader.functions_mut() {
        for inst in func.walk().collect::<Vec<_>>() {
            let payload = change(func.payload(inst));
            if payload != func.payload(inst) {
                func.set_payload(inst, payload);
            }
        }
    }
}

/// One edit for all source positions.
pub(super) fn positions(shader: &Shader) -> Vec<Site> {
    if shader.locs.is_empty() && shader.files.is_empty() { Vec::new() } else { vec![(0, 0)] }
}

/// Drops source positions.
pub(super) fn drop_positions(shader: &mut Shader, _: &[Site]) {
    for func in shader.functions_mut() {
        for inst in func.walk().collect::<Vec<_>>() {
            func.set_loc(inst, None);
        }
    }
    shader.locs.clear();
    shader.files.clear();
}

/// Every pass.
pub(super) fn passes(_: &Shader) -> Vec<Site> {
    (0..PASSES.len()).map(|pass| (pass, 0)).collect()
}

/// Runs passes.
pub(super) fn run_pass(shader: &mut Shader, sites: &[Site]) {
    for &(pass, _) in sites {
        (PASSES[pass].run)(shader);
    }
}

/// Functions that are not called.
pub(super) fn functions(shader: &Shader) -> Vec<Site> {
    let mut called = vec![false; shader.functions().len()];
    for func in shader.functions() {
        for inst in func.walk() {
            if let Payload::Callee(callee) = func.payload(inst) {
                called[callee.index()] = true;
            }
        }
    }
    (1..called.len()).rev().filter(|&func| !called[func]).map(|func| (func, 0)).collect()
}

/// Removes functions.
pub(super) fn drop_functions(shader: &mut Shader, sites: &[Site]) {
    let all = shader.functions().to_vec();
    shader.truncate_functions(0);
    let mut numbers = vec![None; all.len()];
    for (old, function) in all.into_iter().enumerate() {
        if !sites.iter().any(|site| site.0 == old) {
            let func = shader.add_function();
            *shader.function_mut(func) = function;
            numbers[old] = Some(func);
        }
    }
    change_payloads(shader, |payload| match payload {
        Payload::Callee(func) => {
            numbers.get(func.index()).copied().flatten().map_or(payload, Payload::Callee)
        }
        other => other,
    });
}

/// Every variable.
pub(super) fn variables(shader: &Shader) -> Vec<Site> {
    numbered(shader.vars.len())
}

/// Removes variables with their loads and stores.
pub(super) fn drop_variables(shader: &mut Shader, sites: &[Site]) {
    let accesses = |func: &Function, inst: Inst| match func.payload(inst) {
        Payload::Var(var, _) | Payload::Interp(var, _) => is_named(sites, var),
        _ => false,
    };
    for func in shader.functions_mut() {
        let found: Vec<Inst> = func.walk().filter(|&inst| accesses(func, inst)).collect();
        let mut substitution = Substitution::default();
        for inst in found {
            zero_results(func, inst, &mut substitution);
            func.unlink(inst);
        }
        substitution.apply(func);
    }
    let vars = retain(&mut shader.vars, |var| !is_named(sites, var));
    let renamed = |var: Var| vars.get(var.index()).copied().flatten().unwrap_or(var);
    change_payloads(shader, |payload| match payload {
        Payload::Var(var, mask) => Payload::Var(renamed(var), mask),
        Payload::Interp(var, at) => Payload::Interp(renamed(var), at),
        other => other,
    });
}

/// What [`merge_bindings`] does: descriptors become undefined, or those of the first remaining binding of the class.
const UNDEFINED: usize = 0;
const FIRST: usize = 1;

/// Every binding.
pub(super) fn bindings(shader: &Shader) -> Vec<Site> {
    let ways = [UNDEFINED, FIRST].into_iter();
    ways.flat_map(|way| (0..shader.resources.len()).rev().map(move |number| (number, way))).collect()
}

/// Removes bindings.
pub(super) fn merge_bindings(shader: &mut Shader, sites: &[Site]) {
    let kept = |resource: Resource| !is_named(sites, resource);
    let class = |resource: Resource| shader.resources.get(resource).map(|data| data.class);
    let instead: Vec<Option<Resource>> = shader
        .resources
        .keys()
        .map(|resource| match sites.iter().find(|site| site.0 == resource.index()) {
            None => Some(resource),
            Some((_, FIRST)) => {
                shader.resources.keys().find(|&other| kept(other) && class(other) == class(resource))
            }
            Some(_) => None,
        })
        .collect();
    let numbers = retain(&mut shader.resources, kept);
    for func in shader.functions_mut() {
        let mut substitution = Substitution::default();
        for inst in func.walk().filter(|&inst| func.op(inst) == Op::Descriptor).collect::<Vec<_>>() {
            let Payload::Resource(resource, access) = func.payload(inst) else { continue };
            let other = instead.get(resource.index()).copied().flatten();
            match other.and_then(|other| numbers[other.index()]) {
                Some(other) => func.set_payload(inst, Payload::Resource(other, access)),
                None => {
                    let ty = func.ty(func.result(inst));
                    let undefined = zero(func, ty);
                    substitution.replace(func.result(inst), undefined);
                    func.unlink(inst);
                }
            }
        }
        substitution.apply(func);
    }
}

/// Edits of the declarations: unused types, names, then the fields of [`ShaderInfo`] that can be reset to their defaults.
pub(super) fn declarations(_: &Shader) -> Vec<Site> {
    numbered(DECLARATIONS.len())
}

/// Drops declarations.
pub(super) fn drop_declarations(shader: &mut Shader, sites: &[Site]) {
    for &(number, _) in sites {
        DECLARATIONS[number](shader);
    }
}

const DECLARATIONS: [fn(&mut Shader); 8] = [
    drop_types,
    |shader| shader.vars.values_mut().for_each(|var| var.name.clear()),
    |shader| shader.resources.values_mut().for_each(|resource| resource.name.clear()),
    |shader| shader.functions_mut().iter_mut().for_each(|func| func.name.clear()),
    |shader| shader.info.workgroup_size = ShaderInfo::default().workgroup_size,
    |shader| (shader.info.shared_size, shader.info.scratch_size, shader.info.push_size) = (0, 0, 0),
    |shader| shader.info.float_modes = ShaderInfo::default().float_modes,
    |shader| shader.info.modes = ShaderInfo::default().modes,
];

/// Removes types that no variable needs.
fn drop_types(shader: &mut Shader) {
    let mut used = vec![false; shader.types.len()];
    for var in shader.vars.values() {
        used[var.ty.index()] = true;
    }
    // Children come before their parents.
    for (id, node) in shader.types.iter().collect::<Vec<_>>().into_iter().rev() {
        if used[id.index()] {
            match node {
                TypeNode::Leaf(_) => {}
                TypeNode::Array { element, .. } => used[element.index()] = true,
                TypeNode::Struct(members) => members.iter().for_each(|member| used[member.index()] = true),
            }
        }
    }
    let types = retain(&mut shader.types, |id| used[id.index()]);
    let renamed = |id: TypeId| types.get(id.index()).copied().flatten().unwrap_or(id);
    for node in shader.types.values_mut() {
        match node {
            TypeNode::Leaf(_) => {}
            TypeNode::Array { element, .. } => *element = renamed(*element),
            TypeNode::Struct(members) => members.iter_mut().for_each(|member| *member = renamed(*member)),
        }
    }
    for var in shader.vars.values_mut() {
        var.ty = renamed(var.ty);
    }
}
