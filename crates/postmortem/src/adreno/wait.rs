//! What a dump says about a wait of the CP: whether it shows the awaited value, and the wait in words.

use crate::adreno::case::Case;
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::Wait;

const RELATIONS: [&str; 7] = ["anything", "<", "<=", "==", "!=", ">=", ">"];

/// The value in the dump, if it has it.
pub fn now(wait: &Wait, case: &Case<'_>) -> Option<u32> {
    match wait.operand {
        WaitOperand::Register(reg) => case.regs.at(reg),
        WaitOperand::Memory(iova) => case.memory.read(iova),
        WaitOperand::OnChip(_) => None,
    }
}

/// What is awaited, in words: `[0x1000] & 0xff == 0x1`.
pub fn describe(wait: &Wait, case: &Case<'_>) -> String {
    let place = match wait.operand {
        WaitOperand::Register(reg) => {
            case.gpu.reg(reg).map_or_else(|| format!("register {reg:#x}"), |r| r.name().to_owned())
        }
        WaitOperand::Memory(iova) => format!("[{iova:#x}]"),
        WaitOperand::OnChip(at) => format!("on-chip {at:#x}"),
    };
    let mask = if wait.mask == u32::MAX { String::new() } else { format!(" & {:#x}", wait.mask) };
    let relation = RELATIONS.get(usize::from(wait.function)).copied().unwrap_or("?");
    format!("{place}{mask} {relation} {:#x}", wait.reference)
}
