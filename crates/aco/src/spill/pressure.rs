//! How many registers of a bank a block needs at once, at most.

use super::Flow;
use crate::ir::{Program, RegClass};
use crate::live::Liveness;
use unwedge_base::mix::MixSet;

/// By block.
pub(super) fn by_block(program: &Program, live: &Liveness, flow: Flow) -> Vec<u32> {
    let size = |class: RegClass| u32::from(class.dwords());
    let mut most = Vec::with_capacity(program.blocks.len());
    for (block, data) in program.blocks.iter() {
        let outs = live.live_out(block).filter(|temp| flow.has(program.class(*temp)));
        let mut alive: MixSet<_> = outs.collect();
        let mut now: u32 = alive.iter().map(|temp| size(program.class(*temp))).sum();
        let mut own = now;
        for &inst in data.insts.iter().rev() {
            let mut written = 0;
            for definition in program.definitions(inst).iter().filter(|definition| flow.has(definition.class))
            {
                let known = definition.temp.is_some_and(|temp| alive.remove(&temp));
                if known {
                    now -= size(definition.class)
                } else {
                    written += size(definition.class)
                }
                own = own.max(now + written + size(definition.class));
            }
            if !program.op(inst).is_phi() {
                for operand in program.operands(inst).iter().filter(|operand| flow.has(operand.class)) {
                    if operand.as_temp().is_some_and(|temp| alive.insert(temp)) {
                        now += size(operand.class);
                    }
                }
            }
            own = own.max(now);
        }
        most.push(own);
    }
    most
}
