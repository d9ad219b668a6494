//! Lowerings: passes that a back end runs, with options, because its machine does not have an operation. Afterwards no operation that the
//! options name is in the shader; its replacement gives the same bits wherever the operation is defined.

mod atomics;
mod bounds;
mod derivatives;
mod division;
mod floats;
mod handles;
mod int64;
mod int64_float;
mod io;
mod locals;
mod narrow;
mod nonuniform;
mod offsets;
mod outputs;
mod subgroups;
mod subgroups_reduce;
mod textures;

pub use atomics::{AtomicTarget, lower_atomics};
pub use bounds::lower_bounds;
pub use derivatives::lower_derivatives;
pub use division::{DivisionOptions, lower_division};
pub use floats::{FloatOptions, lower_floats};
pub use handles::{HandleOptions, lower_handles};
pub use int64::{Int64Options, Int64Shifts, lower_int64};
pub use io::{lower_io, remove_unread_outputs};
pub use locals::lower_locals;
pub use narrow::{NarrowOptions, lower_narrow};
pub use nonuniform::lower_nonuniform;
pub use offsets::lower_texel_offsets;
pub use outputs::{collect_outputs, lower_outputs};
pub use subgroups::{Quads, Reductions, SubgroupOptions, lower_subgroups};
pub use textures::{TextureOptions, lower_textures};

use crate::ir::{Builder, Function, Inst, Loc, Op, Region, Value};
use crate::substitution::Substitution;

/// Writes at the end of a region, with a source position.
fn at_end(func: &mut Function, region: Region, loc: Option<Loc>) -> Builder<'_> {
    Builder { loc, ..Builder::at_end(func, region) }
}

/// Removes an instruction whose result is another value now.
fn replace(func: &mut Function, inst: Inst, value: Value, substitution: &mut Substitution) {
    substitution.replace(func.result(inst), value);
    func.unlink(inst);
}

/// Offers every instruction of a function to a lowering, then the instructions that it wrote. The lowering writes before the instruction
/// and returns the value that takes the place of the result, or `None` if it leaves the instruction alone. Operations on vectors are
/// split first where they work lane by lane.
fn rewrite(
    func: &mut Function,
    wants: impl Fn(&Function, Inst) -> bool,
    mut lower: impl FnMut(&mut Function, Inst) -> Option<Value>,
) -> bool {
    let mut substitution = Substitution::default();
    let mut changed = false;
    let mut next = func.first(func.body());
    while let Some(inst) = next {
        next = func.after(inst);
        if !wants(func, inst) {
            continue;
        }
        let (region, before) = (func.region(inst), func.prev(inst));
        if !super::scalarize::split(func, inst) {
            let Some(value) = lower(func, inst) else { continue };
            replace(func, inst, value, &mut substitution);
        }
        changed = true;
        next = match before {
            Some(before) => func.next(before),
            None => func.first(region),
        };
    }
    substitution.apply(func);
    changed
}

/// Whether an operation divides integers.
fn divides(op: Op) -> bool {
    matches!(op, Op::UDiv | Op::UMod | Op::IDiv | Op::IRem | Op::IMod)
}
