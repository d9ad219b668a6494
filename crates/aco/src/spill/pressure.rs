//! The maximum number of registers of a bank that a block needs at once.

use super::Flow;
use crate::ir::{Program, RegClass};
use crate::live::Liveness;
use unwedge_base::entity::Entity;

/// By block.
pub(super) fn by_block(program: &Program, live: &Liveness, flow: Flow) -> Vec<u32> {
    let size = |class: RegClass| u32::from(class.dwords());
    let mut most = Vec::with_capacity(program.blocks.len());
    let mut alive = vec![false; program.temp_count()];
    for (block, data) in program.blocks.iter() {
        let mut now = 0;
        for temp in live.live_out(block).filter(|temp| flow.has(program.class(*temp))) {
            alive[temp.index()] = true;
            now += size(program.class(temp));
        }
        let mut own = now;
        for &inst in data.insts.iter().rev() {
            let mut written = 0;
            for definition in program.definitions(inst).iter().filter(|definition| flow.has(definition.class))
            {
                let known = definition.temp.is_some_and(|temp| std::mem::take(&mut alive[temp.index()]));
                if known {
                    now -= size(definition.class)
                } else {
                    written += size(definition.class)
                }
                own = own.max(now + written + size(definition.class));
            }
            if !program.op(inst).is_phi() {
                for temp in flow.reads(program, inst) {
                    if !std::mem::replace(&mut alive[temp.index()], true) {
                        now += size(program.class(temp));
                    }
                }
            }
            own = own.max(now);
        }
        most.push(own);
        // The remaining values are alive at the start.
        live.live_in(block).for_each(|temp| alive[temp.index()] = false);
    }
    most
}
