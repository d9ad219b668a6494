//! Where values and variables of a shader are in the registers of a subgroup. One slot is one lane of a value, of all invocations.

use super::RunError;
use crate::ir::{Func, Function, Payload, Shader, Storage, Type, TypeId, TypeNode, Value, Var};
use unwedge_base::entity::{Entity, PrimaryMap, SecondaryMap};

/// Where everything of a shader is. Functions are not recursive, so that each needs its values once.
#[derive(Debug)]
pub(super) struct Layout {
    values: Vec<Vec<u32>>,
    /// First slot and number of slots of each variable.
    vars: Vec<(usize, usize)>,
    /// Slots of each type.
    sizes: SecondaryMap<TypeId, u64>,
    /// Variables that start undefined when a function is called.
    locals: Vec<Vec<Var>>,
    /// All slots.
    pub slots: usize,
}

impl Layout {
    /// Lays out a shader. `most` is how many slots it may have.
    pub fn new(shader: &Shader, most: u64) -> Result<Layout, RunError> {
        let mut slots = 0u64;
        let mut values = Vec::new();
        for func in shader.functions() {
            let mut offsets = Vec::with_capacity(func.value_count());
            for index in 0..func.value_count() {
                offsets.push(slots as u32);
                slots += u64::from(func.ty(Value::new(index)).lanes);
            }
            values.push(offsets);
        }
        let sizes = type_sizes(&shader.types);
        let mut vars = Vec::with_capacity(shader.vars.len());
        for data in shader.vars.values() {
            let size = sizes[data.ty];
            vars.push((slots.min(most) as usize, size.min(most) as usize));
            slots = slots.saturating_add(size);
        }
        if slots > most.min(u64::from(u32::MAX)) {
            return Err(RunError::Memory(most));
        }
        let locals = shader.functions().iter().map(|func| locals(shader, func)).collect();
        Ok(Layout { values, vars, sizes, locals, slots: slots as usize })
    }

    /// First slot of a value.
    pub fn value(&self, func: Func, value: Value) -> usize {
        self.values[func.index()][value.index()] as usize
    }

    /// First slot of a variable and how many it has.
    pub fn var(&self, var: Var) -> (usize, usize) {
        self.vars[var.index()]
    }

    /// Slots of a type.
    pub fn size(&self, ty: TypeId) -> u64 {
        self.sizes[ty]
    }

    /// Variables that start undefined when a function is called.
    pub fn locals(&self, func: Func) -> &[Var] {
        &self.locals[func.index()]
    }
}

/// Slots of each type. Children come before parents.
fn type_sizes(types: &PrimaryMap<TypeId, TypeNode>) -> SecondaryMap<TypeId, u64> {
    let mut sizes = SecondaryMap::<TypeId, u64>::default();
    for (id, node) in types.iter() {
        sizes[id] = match node {
            TypeNode::Leaf(Type { lanes, .. }) => u64::from(*lanes),
            TypeNode::Array { element, len } => sizes[*element].saturating_mul((*len).into()),
            TypeNode::Struct(members) => {
                members.iter().fold(0u64, |sum, member| sum.saturating_add(sizes[*member]))
            }
        };
    }
    sizes
}

fn locals(shader: &Shader, func: &Function) -> Vec<Var> {
    let used = func.walk().filter_map(|inst| match func.payload(inst) {
        Payload::Var(var, _) => Some(var),
        _ => None,
    });
    let mut locals: Vec<Var> = used.filter(|var| shader.vars[*var].storage == Storage::Function).collect();
    locals.sort_unstable();
    locals.dedup();
    locals
}
