//! Which blocks are busy, what the command processor waits for, and what that means together.

use super::case::{Case, Reg};
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

/// Blocks that work on draws and dispatches, by the fields of GRBM_STATUS.
const WORKERS: [&str; 14] = [
    "SPI_BUSY", "SX_BUSY", "TA_BUSY", "SC_BUSY", "PA_BUSY", "DB_BUSY", "CB_BUSY", "BCI_BUSY", "GE_BUSY",
    "VGT_BUSY", "WD_BUSY", "IA_BUSY", "GDS_BUSY", "TCP_BUSY",
];

/// What fields of the command processor's stall registers mean.
const STALLS: [(&str, &str); 18] = [
    ("ME_WAITING_ON_PARTIAL_FLUSH", "the ME waits for shaders to end"),
    ("EOPD_FIFO_NEEDS_SC_EOP_DONE", "a fence waits for the pipeline to drain"),
    ("QU_STALLED_ON_EOP_DONE_PULSE", "a fence waits for the pipeline to drain"),
    ("APPEND_RDY_WAIT_ON_CS_DONE", "the ME waits for compute shaders to end"),
    ("APPEND_RDY_WAIT_ON_PS_DONE", "the ME waits for pixel shaders to end"),
    ("SURF_SYNC_NEEDS_IDLE_CNTXS", "a cache flush waits for draws to end"),
    ("SURF_SYNC_NEEDS_ALL_CLEAN", "a cache flush waits for caches to be clean"),
    ("GFX_CNTX_NOT_AVAIL_TO_ME", "all register contexts are in use by draws that have not ended"),
    ("ME_WAITING_ON_TC_READ_DATA", "the ME waits for memory it reads"),
    ("ME_WAITING_ON_REG_READ_DATA", "the ME waits for a register it reads"),
    ("ME_STALLED_ON_TC_WR_CONFIRM", "the ME waits for a write to arrive in memory"),
    ("RCIU_HALTED_BY_REG_VIOLATION", "a packet touched a register it must not"),
    ("RCIU_PRIV_VIOLATION", "a packet touched a register it must not"),
    ("ME_WAIT_ON_CE_COUNTER", "the ME waits for the constant engine"),
    ("CE_WAITING_ON_DE_COUNTER", "the constant engine waits for the ME"),
    ("UTCL1_WAITING_ON_TRANS", "an address translation is open"),
    ("GFX_UTCL1_WAITING_ON_TRANS", "an address translation is open"),
    ("CMP_UTCL1_WAITING_ON_TRANS", "an address translation is open"),
];

/// What the registers say about who works and who waits.
pub(super) struct Load {
    /// Blocks that work on draws.
    pub(super) workers: Vec<&'static str>,
    /// Shaders, caches or the pipeline are waited for.
    pub(super) waits_for_work: bool,
    /// The command processor polls memory, a register or a semaphore.
    pub(super) polls: bool,
    /// Nothing is busy, and the registers are there to tell.
    pub(super) idle: bool,
}

impl Load {
    /// Reads it off the registers.
    pub(super) fn of(case: &Case<'_>) -> Load {
        let status = case.reg("GRBM_STATUS");
        let set = status.map(|reg| case.set_fields(reg)).unwrap_or_default();
        let set2 = case.reg("GRBM_STATUS2").map(|reg| case.set_fields(reg)).unwrap_or_default();
        let stalls = stalled(case);
        let has = |field: &str| stalls.iter().any(|(_, name)| *name == field);
        let polls = ["SEM_POLLING_FOR_PASS", "SEM_FAILED_AND_HOLDING"].iter().any(|f| has(f))
            || has("ME_WAITING_ON_REG_READ_DATA");
        let workers: Vec<&'static str> =
            WORKERS.into_iter().filter(|worker| set.contains(worker) || set2.contains(worker)).collect();
        let waits_for_work = STALLS.iter().take(8).any(|(field, _)| has(field));
        let busy = |fields: &[&str]| fields.iter().any(|f| f.ends_with("_BUSY") || *f == "GUI_ACTIVE");
        Load { idle: status.is_some() && !busy(&set) && !busy(&set2), workers, waits_for_work, polls }
    }
}

/// Fields of the registers that say what stalls, with the register.
fn stalled<'a>(case: &'a Case<'_>) -> Vec<(&'a Reg<'a>, &'a str)> {
    let names = [
        "CP_STALLED_STAT1",
        "CP_STALLED_STAT2",
        "CP_STALLED_STAT3",
        "CP_BUSY_STAT",
        "CP_CPC_STALLED_STAT1",
        "CP_CPF_STALLED_STAT1",
    ];
    let regs = names.into_iter().filter_map(|name| case.reg(name));
    regs.flat_map(|reg| case.set_fields(reg).into_iter().map(move |field| (reg, field))).collect()
}

/// `SPI, TA`
fn block_names(fields: &[&str]) -> String {
    fields.iter().map(|f| f.strip_suffix("_BUSY").unwrap_or(f)).collect::<Vec<_>>().join(", ")
}

/// Findings about blocks.
pub(super) fn findings(case: &Case<'_>) -> Vec<Finding> {
    let load = Load::of(case);
    let mut out = Vec::new();
    let evidence = |regs: &[&str]| -> Vec<Evidence> {
        regs.iter()
            .filter_map(|name| case.reg(name))
            .filter(|reg| reg.value != 0)
            .map(Reg::evidence)
            .collect()
    };
    let finding = |kind, trust, title: String, why: &str, evidence| Finding {
        kind,
        trust,
        title,
        why: why.to_owned(),
        evidence,
    };
    let status = [
        "GRBM_STATUS",
        "GRBM_STATUS2",
        "GRBM_STATUS_SE0",
        "GRBM_STATUS_SE1",
        "GRBM_STATUS_SE2",
        "GRBM_STATUS_SE3",
    ];
    if load.idle {
        let evidence = case.reg("GRBM_STATUS").map(Reg::evidence).into_iter().collect();
        let why = "the job ended late, its interrupt was lost, or these registers are of after the reset";
        out.push(finding(FindingKind::Busy, Trust::Possible, "no block is busy".to_owned(), why, evidence));
    } else if !load.workers.is_empty() {
        let (why, trust) = match (load.waits_for_work, load.polls) {
            (true, _) => {
                ("draws or dispatches do not end: the command processor waits for them", Trust::Likely)
            }
            (false, true) => ("work is open while the command processor polls", Trust::Possible),
            (false, false) => ("draws or dispatches are open", Trust::Possible),
        };
        let title = format!("busy: {}", block_names(&load.workers));
        out.push(finding(FindingKind::Busy, trust, title, why, evidence(&status)));
    } else if case.reg("GRBM_STATUS").is_some_and(|reg| case.set_fields(reg).contains(&"CP_BUSY")) {
        let title = "busy: the command processor alone".to_owned();
        let why = "no draw is open: it waits for something that is not the GPU's own work, or fetches what is not there";
        out.push(finding(FindingKind::Busy, Trust::Likely, title, why, evidence(&status)));
    }
    for (field, words) in STALLS {
        let Some((reg, _)) = stalled(case).into_iter().find(|(_, name)| *name == field) else { continue };
        if out.iter().any(|f: &Finding| f.title == words) {
            continue;
        }
        let seen = Evidence { what: format!("{} = {:#x} ({field})", reg.name, reg.value), ..reg.evidence() };
        out.push(finding(FindingKind::CpWait, Trust::Likely, words.to_owned(), "", vec![seen]));
    }
    if load.polls {
        let reg = case.reg("CP_BUSY_STAT").map(Reg::evidence).into_iter().collect();
        let title = "the command processor polls until a condition holds".to_owned();
        out.push(finding(FindingKind::CpWait, Trust::Likely, title, "", reg));
    }
    out.extend(dma(case));
    out
}

/// DMA engines that are not idle.
fn dma(case: &Case<'_>) -> Vec<Finding> {
    const STALLED: [(&str, &str); 4] = [
        ("SEM_REQ_STALL", "it waits for a semaphore"),
        ("MC_RD_RET_STALL", "it waits for memory it reads"),
        ("INT_REQ_STALL", "its interrupt is not taken"),
        ("DELTA_RPTR_FULL", "its read pointer cannot be written back"),
    ];
    let status =
        case.regs.iter().filter(|reg| reg.name.starts_with("SDMA") && reg.name.ends_with("STATUS_REG"));
    let engine = |reg: &Reg<'_>| {
        // `SDMA0_STATUS_REG`; where all engines have the same name, the instance tells them apart.
        let own = reg.name.trim_end_matches("_STATUS_REG");
        if own == "SDMA" { reg.section.clone() } else { own.to_owned() }
    };
    status
        .filter_map(|reg| {
            let set = case.set_fields(reg);
            if set.is_empty() || set.contains(&"IDLE") || reg.value == u32::MAX {
                return None;
            }
            let mut why: Vec<&str> =
                STALLED.iter().filter(|(f, _)| set.contains(f)).map(|(_, words)| *words).collect();
            if set.contains(&"INSIDE_IB") {
                why.push("it reads an indirect buffer");
            }
            Some(Finding {
                kind: FindingKind::Busy,
                trust: Trust::Possible,
                title: format!("{} is not idle", engine(reg)),
                why: why.join("; "),
                evidence: vec![reg.evidence()],
            })
        })
        .collect()
}
