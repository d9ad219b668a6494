//! Lowerings: passes that a back end asks for, by options, because its machine does not have an operation. Each guarantees that what its
//! options name is not in the shader afterwards; what it makes instead gives the same bits wherever the operation is defined.

mod bounds;
mod derivatives;
mod division;
mod int64;
mod narrow;
mod offsets;
mod subgroups;
mod subgroups_reduce;

pub use bounds::lower_bounds;
pub use derivatives::lower_derivatives;
pub use division::{DivisionOptions, lower_division};
pub use int64::{Int64Options, lower_int64};
pub use narrow::{NarrowOptions, lower_narrow};
pub use offsets::lower_texel_offsets;
pub use subgroups::{SubgroupOptions, lower_subgroups};

use crate::ir::{Function, Inst, Op, Traits, Value};
use unwedge_base::entity::SecondaryMap;

/// Values that take the place of results, to be put in at the end of a pass.
#[derive(Debug, Default)]
struct Replacements {
    map: SecondaryMap<Value, Option<Value>>,
    any: bool,
}

impl Replacements {
    /// Removes an instruction whose result is another value now.
    fn replace(&mut self, func: &mut Function, inst: Inst, value: Value) {
        let result = func.result(inst);
        self.map[result] = Some(value);
        self.any = true;
        func.unlink(inst);
    }

    fn apply(self, func: &mut Function) {
        if self.any {
            func.replace_values(|value| {
                let mut value = value;
                while let Some(next) = self.map[value] {
                    value = next;
                }
                value
            });
        }
    }
}

/// Offers every instruction of a function to a lowering, and what it made of it again. The lowering writes before the instruction,
/// and gives the value that takes the place of the result; `None` if it leaves the instruction alone. Vectors that it wants as scalars
/// are split first.
fn rewrite(
    func: &mut Function,
    wants: impl Fn(&Function, Inst) -> bool,
    mut lower: impl FnMut(&mut Function, Inst) -> Option<Value>,
) -> bool {
    let mut replacements = Replacements::default();
    let mut next = func.first(func.body());
    while let Some(inst) = next {
        next = func.after(inst);
        if !wants(func, inst) {
            continue;
        }
        let (region, before) = (func.region(inst), func.prev(inst));
        let changed = if super::scalarize::split(func, inst) {
            true
        } else if let Some(value) = lower(func, inst) {
            replacements.replace(func, inst, value);
            true
        } else {
            false
        };
        if changed {
            replacements.any = true;
            next = match before {
                Some(before) => func.next(before),
                None => func.first(region),
            };
        }
    }
    let changed = replacements.any;
    replacements.apply(func);
    changed
}

/// Whether an instruction is elementwise, with one result.
fn is_elementwise(func: &Function, inst: Inst) -> bool {
    func.op(inst).has(Traits::ELEMENTWISE)
}

/// Whether an operation divides integers.
fn divides(op: Op) -> bool {
    matches!(op, Op::UDiv | Op::UMod | Op::IDiv | Op::IRem | Op::IMod)
}
