//! What a dump says about a wait of the CP: whether it shows the awaited value, and what that is.

use crate::adreno::case::AdrenoCase;
use crate::args::{Arg, Args};
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::Wait;

const RELATIONS: [&str; 7] = ["anything", "<", "<=", "==", "!=", ">=", ">"];

/// The value in the dump, if it has it.
pub fn now(wait: &Wait, case: &AdrenoCase<'_>) -> Option<u32> {
    match wait.operand {
        WaitOperand::Register(reg) => case.regs.at(reg),
        WaitOperand::Memory(iova) => case.memory.read(iova),
        WaitOperand::OnChip(_) => None,
    }
}

/// What is awaited: `register`, `iova` or `on_chip`; `mask` unless it is whole; `relation`; `reference`.
pub fn args(wait: &Wait, case: &AdrenoCase<'_>) -> Args {
    let args = match wait.operand {
        WaitOperand::Register(reg) => {
            let name = case.gpu.reg(reg).map_or_else(|| format!("{reg:#x}"), |r| r.name().to_owned());
            Args::new().with("register", Arg::name(name))
        }
        WaitOperand::Memory(iova) => Args::new().with("iova", Arg::Address(iova)),
        WaitOperand::OnChip(at) => Args::new().with("on_chip", Arg::Value(u64::from(at))),
    };
    let mask = Some(wait.mask).filter(|&mask| mask != u32::MAX);
    let relation = RELATIONS.get(usize::from(wait.function)).copied().unwrap_or("?");
    args.with_some("mask", mask.map(|mask| Arg::Value(u64::from(mask))))
        .with("relation", Arg::name(relation))
        .with("reference", Arg::Value(u64::from(wait.reference)))
}
