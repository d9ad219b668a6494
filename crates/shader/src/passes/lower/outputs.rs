//! Lowers outputs that are loaded or indexed: takes any shader; afterwards outputs are only stored, and all indices into them are constant.
//!
//! An output that the shader loads, or stores through an index that is not constant, becomes a private variable. What was stored in it
//! is written to the output at the end of the shader, and in a geometry shader before every vertex. It belongs before `variables` and
//! [`super::lower_io`].
//!
//! Left alone are tessellation control shaders, whose invocations share their outputs; variables that have too many leaves; and shaders that
//! end in so many places that there would be too many stores.

use crate::ir::{
    Builder, Func, Inst, Op, Payload, Shader, Stage, Storage, Type, TypeId, TypeNode, Value, Var, VarData,
};
use crate::passes::variables::leaf_counts;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_base::entity::{Entity, SecondaryMap};

/// The most leaves of an output that is lowered.
const MAX_LEAVES: u64 = 256;

/// The most stores that are written.
const MAX_STORES: usize = 1 << 14;

/// The most indices of a path.
const MAX_PATH: usize = 16;

/// A path to leaves: `None` is an index that is not constant.
type Pattern = Vec<Option<u64>>;

/// How an output is accessed.
#[derive(Debug, Default)]
struct OutputUse {
    /// Whether it is loaded or stored through an index that is not constant.
    lowers: bool,
    /// The lanes that are stored through each path.
    stores: BTreeMap<Pattern, u16>,
}

/// A leaf of an output that is stored.
#[derive(Debug)]
struct StoredLeaf {
    path: Vec<u32>,
    ty: Type,
    mask: u16,
}

/// Lowers outputs.
pub fn lower_outputs(shader: &mut Shader) -> bool {
    rewrite(shader, |used| used.lowers)
}

/// Lowers all outputs: each is stored only at the end of the shader, in a geometry shader only before every vertex.
pub fn collect_outputs(shader: &mut Shader) -> bool {
    rewrite(shader, |used| !used.stores.is_empty())
}

fn rewrite(shader: &mut Shader, wanted: impl Fn(&OutputUse) -> bool) -> bool {
    if shader.info.stage == Stage::TessControl {
        return false;
    }
    let counts = leaf_counts(shader);
    let mut lowered = Vec::new();
    for (var, used) in uses(shader).into_iter().filter(|(_, used)| wanted(used)) {
        let ty = shader.vars[var].ty;
        let mut leaves = Vec::new();
        if counts[ty] <= MAX_LEAVES && collect(shader, &counts, ty, &mut Vec::new(), &used, &mut leaves) {
            lowered.push((var, leaves));
        }
    }
    let ends = ends(shader);
    let leaves: usize = lowered.iter().map(|(_, leaves)| leaves.len()).sum();
    if lowered.is_empty() || leaves.saturating_mul(ends.len()) > MAX_STORES {
        return false;
    }
    let mut locals = SecondaryMap::<Var, Option<Var>>::default();
    for (var, _) in &lowered {
        let VarData { name, ty, .. } = shader.vars[*var].clone();
        let local = VarData::new(name, Storage::Private, ty);
        locals[*var] = Some(shader.vars.push(local));
    }
    for func in shader.functions_mut() {
        let accesses: Vec<Inst> = func.walk().collect();
        for inst in accesses {
            if let Payload::Var(var, mask) = func.payload(inst)
                && let Some(local) = locals[var]
            {
                func.set_payload(inst, Payload::Var(local, mask));
            }
        }
    }
    for (func, inst) in ends {
        let mut b = Builder::before(shader.function_mut(func), inst);
        for (var, leaves) in &lowered {
            let Some(local) = locals[*var] else { continue };
            for leaf in leaves {
                let path: Vec<Value> = leaf.path.iter().map(|&index| b.u32(index)).collect();
                let value = b.value(Op::LoadVar, Payload::Var(local, 0), &path, leaf.ty);
                let args: Vec<Value> = [value].into_iter().chain(path).collect();
                b.inst(Op::StoreVar, Payload::Var(*var, leaf.mask), &args, &[]);
            }
        }
    }
    true
}

fn uses(shader: &Shader) -> BTreeMap<Var, OutputUse> {
    let mut uses = BTreeMap::<Var, OutputUse>::new();
    for func in shader.functions() {
        for inst in func.walk() {
            let Payload::Var(var, mask) = func.payload(inst) else { continue };
            if shader.vars[var].storage != Storage::Output {
                continue;
            }
            let used = uses.entry(var).or_default();
            if func.op(inst) == Op::StoreVar {
                let path: Pattern =
                    func.args(inst)[1..].iter().map(|&index| func.const_bits(index)).collect();
                used.lowers |= path.contains(&None);
                *used.stores.entry(path).or_default() |= mask;
            } else {
                used.lowers = true;
            }
        }
    }
    uses
}

/// Collects the leaves of a type that are stored; `false` if one is too deep.
fn collect(
    shader: &Shader,
    counts: &SecondaryMap<TypeId, u64>,
    ty: TypeId,
    path: &mut Vec<u32>,
    used: &OutputUse,
    leaves: &mut Vec<StoredLeaf>,
) -> bool {
    if counts[ty] == 0 {
        return true;
    }
    if path.len() > MAX_PATH {
        return false;
    }
    let children: Box<dyn Iterator<Item = TypeId>> = match &shader.types[ty] {
        TypeNode::Leaf(ty) => {
            let fits = |pattern: &Pattern| {
                pattern
                    .iter()
                    .zip(&*path)
                    .all(|(index, &at)| index.is_none_or(|index| index == u64::from(at)))
            };
            let masks = used.stores.iter().filter(|(pattern, _)| fits(pattern)).map(|(_, mask)| mask);
            let mask = masks.fold(0, |all, mask| all | mask);
            if mask != 0 {
                leaves.push(StoredLeaf { path: path.clone(), ty: *ty, mask });
            }
            return true;
        }
        TypeNode::Array { element, len } => Box::new((0..*len).map(|_| *element)),
        TypeNode::Struct(members) => Box::new(members.iter().copied()),
    };
    for (index, child) in (0..).zip(children) {
        path.push(index);
        let fits = collect(shader, counts, child, path, used, leaves);
        path.pop();
        if !fits {
            return false;
        }
    }
    true
}

/// The instructions before which outputs are written: those that end the shader, or those that emit a vertex. A fragment that is
/// terminated has no outputs.
fn ends(shader: &Shader) -> BTreeSet<(Func, Inst)> {
    let stage = shader.info.stage;
    let mut ends = BTreeSet::new();
    for (number, func) in shader.functions().iter().enumerate() {
        let is_end = |op: Op| match op {
            Op::EmitVertex => true,
            Op::Return => stage != Stage::Geometry && number == 0,
            Op::Terminate => !matches!(stage, Stage::Geometry | Stage::Fragment),
            _ => false,
        };
        let insts = func.walk().filter(|&inst| is_end(func.op(inst)));
        ends.extend(insts.map(|inst| (Func::new(number), inst)));
    }
    ends
}
