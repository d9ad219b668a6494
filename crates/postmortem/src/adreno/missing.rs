//! What the dump does not hold, and what therefore cannot be said.

use unwedge_base::Generation;

use crate::adreno::case::Case;
use crate::adreno::hang::Stop;
use crate::adreno::inflight::pool;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

/// What is absent: grave gaps one by one, the rest in one finding.
pub fn findings(case: &Case<'_>, stop: Option<&Stop>) -> Vec<Finding> {
    let mut out = Vec::new();
    let mut gap = |title: String, why: &str| {
        let evidence = Vec::<Evidence>::new();
        out.push(Finding {
            kind: FindingKind::NotCaptured,
            trust: Trust::Certain,
            title,
            why: why.to_owned(),
            evidence,
        });
    };
    let dump = case.dump;
    if case.regs.is_empty() {
        gap(
            "registers".to_owned(),
            "Without them neither the position nor the state of the hardware is known.",
        );
    }
    match stop {
        None => gap("the ring".to_owned(), "No stream can be walked."),
        Some(stop) => {
            if dump.rings.get(stop.ring).is_some_and(|r| r.data.is_none()) {
                gap("the ring's contents".to_owned(), "No stream can be walked.");
            }
            for level in ["IB1", "IB2"] {
                let base = case.regs.address(&format!("CP_{level}_BASE")).filter(|&b| b != 0);
                if let Some(base) = base.filter(|&b| case.memory.dwords(b).is_none()) {
                    let why =
                        "Its packets are unknown; the kernel dumps the buffers of the hung submit only.";
                    gap(format!("the contents of {level} at {base:#x}"), why);
                }
            }
        }
    }
    let a6xx = case.gpu.generation() >= Generation::A6xx;
    let rest: Vec<&str> = [
        (dump.fault.is_none(), "fault-info (no IOMMU fault was reported with this dump)"),
        (dump.bos.is_empty(), "bos"),
        (a6xx && case.sqe.is_none(), "CP_SQE_STAT"),
        (a6xx && pool(case).is_none(), "CP_MEMPOOL"),
        (a6xx && dump.registers_gmu.is_empty(), "registers-gmu"),
        (a6xx && dump.gmu_hfi.is_none(), "gmu-hfi"),
    ]
    .into_iter()
    .filter_map(|(absent, name)| absent.then_some(name))
    .collect();
    if !rest.is_empty() {
        gap(rest.join(", "), "");
    }
    out
}
