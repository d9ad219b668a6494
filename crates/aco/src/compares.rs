//! Comparisons of the vector ALU, from the instruction tables: found by what they compare, and with those that write `exec` in their place.

use std::sync::LazyLock;
use unwedge_isa::amdgcn::model::{Format, Relation, Trait, Type};
use unwedge_isa::amdgcn::{Opcode, Operation, tables};

/// A comparison that makes a lane mask.
struct Comparison {
    opcode: Opcode,
    /// What it compares, and how; `None` if it tests the class of a number.
    relation: Option<(Relation, Type)>,
    /// The comparison that writes `exec`.
    to_exec: Option<Opcode>,
}

/// In the order of the opcodes.
static COMPARISONS: LazyLock<Vec<Comparison>> = LazyLock::new(|| {
    let rows = || tables::rows().iter().filter(|row| row.format == Format::Vopc);
    let mut exec: Vec<(&str, Opcode)> =
        rows().filter_map(|row| Some((row.name.strip_prefix("v_cmpx_")?, row.opcode))).collect();
    exec.sort_unstable_by_key(|(name, _)| *name);
    let to_exec = |name: &str| {
        let name = name.strip_prefix("v_cmp_")?;
        let at = exec.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(exec[at].1)
    };
    let relation = |operation| match operation {
        Operation::Compare(relation, ty) => Some((relation, ty)),
        _ => None,
    };
    let comparison = |row: &tables::InstRow| Comparison {
        opcode: row.opcode,
        relation: relation(row.operation),
        to_exec: to_exec(row.name),
    };
    rows().filter(|row| !row.traits.has(Trait::Cmpx)).map(comparison).collect()
});

fn comparison(opcode: Opcode) -> Option<&'static Comparison> {
    let at = COMPARISONS.binary_search_by_key(&(opcode as u16), |own| own.opcode as u16).ok()?;
    COMPARISONS.get(at)
}

/// What an instruction compares, and how.
pub(crate) fn relation(opcode: Opcode) -> Option<(Relation, Type)> {
    comparison(opcode)?.relation
}

/// The instruction for a comparison.
pub(crate) fn opcode(relation: Relation, ty: Type) -> Option<Opcode> {
    let own = COMPARISONS.iter().find(|own| own.relation == Some((relation, ty)))?;
    Some(own.opcode)
}

/// The comparison that writes `exec` in place of one that makes a lane mask.
pub(crate) fn to_exec(opcode: Opcode) -> Option<Opcode> {
    comparison(opcode)?.to_exec
}
