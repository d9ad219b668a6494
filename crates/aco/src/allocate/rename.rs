//! Removes phis that allocation made, and that turn out to merge a name with itself.

use super::blocks::NameUnion;
use crate::ir::{Program, Temp};
use unwedge_base::mix::MixMap;

/// Removes them, and renames their results.
pub(super) fn remove_trivial(program: &mut Program, unions: &[NameUnion]) {
    let mut names: MixMap<Temp, Temp> = MixMap::default();
    let resolve = |names: &MixMap<Temp, Temp>, mut temp: Temp| {
        while let Some(next) = names.get(&temp) {
            temp = *next;
        }
        temp
    };
    let mut changed = true;
    while changed {
        changed = false;
        for NameUnion { inst, name } in unions {
            if names.contains_key(name) {
                continue;
            }
            let mut other = None;
            let own_reg = program.definitions(*inst)[0].reg;
            let trivial = program.operands(*inst).iter().all(|operand| {
                let Some(temp) = operand.as_temp().map(|temp| resolve(&names, temp)) else { return false };
                temp == *name || operand.reg == own_reg && *other.get_or_insert(temp) == temp
            });
            if let (true, Some(other)) = (trivial, other) {
                names.insert(*name, other);
                changed = true;
            }
        }
    }
    if names.is_empty() {
        return;
    }
    for block in program.blocks.keys() {
        let mut insts = std::mem::take(&mut program.blocks[block].insts);
        insts.retain(|inst| {
            let single = program.definitions(*inst).first().and_then(|definition| definition.temp);
            !(program.op(*inst).is_phi() && single.is_some_and(|name| names.contains_key(&name)))
        });
        for &inst in &insts {
            for operand in program.operands_mut(inst) {
                if let Some(temp) = operand.as_temp() {
                    operand.source = crate::ir::Source::Temp(resolve(&names, temp));
                }
            }
        }
        program.blocks[block].insts = insts;
    }
}
