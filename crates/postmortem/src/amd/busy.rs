//! Which blocks are busy, what the command processor waits for, and what that means together.

use super::case::{AmdCase, Reg, STATUS_REGISTERS};
use crate::args::Arg;
use crate::reads::RegisterReads;
use crate::report::{Evidence, Finding, Subject, Trust};
use crate::rules::Rule;

/// Blocks that work on draws and dispatches, by the fields of GRBM_STATUS.
const WORKERS: [&str; 14] = [
    "SPI_BUSY", "SX_BUSY", "TA_BUSY", "SC_BUSY", "PA_BUSY", "DB_BUSY", "CB_BUSY", "BCI_BUSY", "GE_BUSY",
    "VGT_BUSY", "WD_BUSY", "IA_BUSY", "GDS_BUSY", "TCP_BUSY",
];

/// Fields of the command processor's stall registers, and what each reports.
const STALLS: [(&str, Rule); 27] = [
    ("ME_WAITING_ON_PARTIAL_FLUSH", Rule::MeWaitsForShaders),
    ("EOPD_FIFO_NEEDS_SC_EOP_DONE", Rule::FenceWaitsForPipeline),
    ("QU_STALLED_ON_EOP_DONE_PULSE", Rule::FenceWaitsForPipeline),
    ("APPEND_RDY_WAIT_ON_CS_DONE", Rule::MeWaitsForComputeShaders),
    ("APPEND_RDY_WAIT_ON_PS_DONE", Rule::MeWaitsForPixelShaders),
    ("SURF_SYNC_NEEDS_IDLE_CNTXS", Rule::CacheFlushWaitsForDraws),
    ("SURF_SYNC_NEEDS_ALL_CLEAN", Rule::CacheFlushWaitsForCaches),
    ("GFX_CNTX_NOT_AVAIL_TO_ME", Rule::RegisterContextsInUse),
    ("ME_WAITING_ON_TC_READ_DATA", Rule::MeWaitsForMemoryRead),
    ("ME_WAITING_ON_REG_READ_DATA", Rule::MeWaitsForRegisterRead),
    ("ME_STALLED_ON_TC_WR_CONFIRM", Rule::MeWaitsForMemoryWrite),
    ("RCIU_HALTED_BY_REG_VIOLATION", Rule::RegisterViolation),
    ("RCIU_PRIV_VIOLATION", Rule::RegisterViolation),
    ("ME_WAIT_ON_CE_COUNTER", Rule::MeWaitsForConstantEngine),
    ("CE_WAITING_ON_DE_COUNTER", Rule::ConstantEngineWaitsForMe),
    ("UTCL1_WAITING_ON_TRANS", Rule::AddressTranslationOpen),
    ("GFX_UTCL1_WAITING_ON_TRANS", Rule::AddressTranslationOpen),
    ("CMP_UTCL1_WAITING_ON_TRANS", Rule::AddressTranslationOpen),
    ("ME_STALLED_ON_ATOMIC_RTN_DATA", Rule::MeWaitsForAtomic),
    ("PFP_STALLED_ON_ATOMIC_RTN_DATA", Rule::MeWaitsForAtomic),
    ("QU_STALLED_ON_EOP_DONE_WR_CONFIRM", Rule::FenceWriteNotConfirmed),
    ("EOPD_FIFO_NEEDS_WR_CONFIRM", Rule::FenceWriteNotConfirmed),
    ("RCIU_WAITING_ON_GRBM_FREE", Rule::RegisterWritesBlocked),
    ("RCIU_WAITING_ON_VGT_FREE", Rule::RegisterWritesBlocked),
    ("RCIU_WAITING_ON_GDS_FREE", Rule::RegisterWritesBlocked),
    ("MEC1_WAIT_ON_RCIU_READ", Rule::MecWaitsForRegister),
    ("MEC2_WAIT_ON_RCIU_READ", Rule::MecWaitsForRegister),
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
    pub(super) fn of(case: &AmdCase<'_>) -> Load {
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

/// Registers whose flags say what the command processor is stalled by.
const STALL_REGISTERS: [&str; 5] = [
    "CP_STALLED_STAT1",
    "CP_STALLED_STAT2",
    "CP_STALLED_STAT3",
    "CP_CPC_STALLED_STAT1",
    "CP_CPF_STALLED_STAT1",
];

/// Fields of the registers that say what stalls or polls, with the register. One that reads all ones was not read.
fn stalled<'a>(case: &'a AmdCase<'_>) -> Vec<(&'a Reg<'a>, &'a str)> {
    let regs = STALL_REGISTERS.into_iter().chain(["CP_BUSY_STAT"]).filter_map(|name| case.reg(name));
    let regs = regs.filter(|reg| reg.value != u32::MAX);
    regs.flat_map(|reg| case.set_fields(reg).into_iter().map(move |field| (reg, field))).collect()
}

/// Flags of stall registers that no rule reads: one finding, for they are what a developer looks at first.
fn other_flags(case: &AmdCase<'_>) -> Option<Finding> {
    let known = |flag: &str| STALLS.iter().any(|(name, _)| *name == flag);
    // A register that reads all ones was not read.
    let regs =
        STALL_REGISTERS.into_iter().filter_map(|name| case.reg(name)).filter(|reg| reg.value != u32::MAX);
    let (mut flags, mut seen) = (Vec::new(), Vec::new());
    for reg in regs {
        let own: Vec<&str> = case.set_fields(reg).into_iter().filter(|flag| !known(flag)).collect();
        if !own.is_empty() {
            seen.push(reg.evidence_with_all(&own));
            flags.extend(own.into_iter().map(|flag| Arg::name(flag.to_owned())));
        }
    }
    let found = Finding::new(Rule::CpStallFlags, Trust::Certain, Subject::Block("CP".into()));
    (!flags.is_empty()).then(|| found.with("flags", flags).seen(seen))
}

/// `SPI` of `SPI_BUSY`.
fn block_name(field: &'static str) -> Arg {
    Arg::name(field.strip_suffix("_BUSY").unwrap_or(field))
}

/// The device does not answer: its registers are all ones, and say nothing of blocks.
fn not_responding(case: &AmdCase<'_>) -> Option<Finding> {
    let silent = case.reads == RegisterReads::AllOnes;
    let found = || Finding::new(Rule::GpuNotResponding, Trust::Likely, Subject::Gpu);
    silent.then(|| found().seen(case.silent.0.iter().cloned()))
}

/// Findings about blocks.
pub(super) fn findings(case: &AmdCase<'_>) -> Vec<Finding> {
    if let Some(silent) = not_responding(case) {
        return vec![silent];
    }
    let load = Load::of(case);
    let mut out = Vec::new();
    out.extend(blocks(case, &load));
    for (field, rule) in STALLS {
        let Some((reg, _)) = stalled(case).into_iter().find(|(_, name)| *name == field) else { continue };
        // Several fields may say the same.
        if out.iter().any(|f: &Finding| f.rule == rule) {
            continue;
        }
        let register = Subject::Register(reg.name.to_owned().into());
        out.push(Finding::new(rule, Trust::Likely, register).seen([reg.evidence_with(field)]));
    }
    if load.polls {
        let seen = case.reg("CP_BUSY_STAT").map(Reg::evidence);
        out.push(Finding::new(Rule::CpPolls, Trust::Likely, Subject::Block("CP".into())).seen(seen));
    }
    out.extend(other_flags(case));
    out.extend(dma(case));
    out
}

/// What the status of all blocks means together.
fn blocks(case: &AmdCase<'_>, load: &Load) -> Option<Finding> {
    let status = || -> Vec<Evidence> {
        let regs = STATUS_REGISTERS.iter().filter_map(|name| case.reg(name));
        regs.filter(|reg| reg.value != 0).map(|reg| reg.evidence_with_all(&case.set_fields(reg))).collect()
    };
    if load.idle {
        let seen = case.reg("GRBM_STATUS").map(Reg::evidence);
        return Some(Finding::new(Rule::GrbmIdle, Trust::Possible, Subject::Gpu).seen(seen));
    }
    if !load.workers.is_empty() {
        let (rule, trust) = match (load.waits_for_work, load.polls) {
            (true, _) => (Rule::GrbmWorkDoesNotEnd, Trust::Likely),
            (false, true) => (Rule::GrbmWorkWhilePolling, Trust::Possible),
            (false, false) => (Rule::GrbmWorkOpen, Trust::Possible),
        };
        let workers: Vec<Arg> = load.workers.iter().map(|field| block_name(field)).collect();
        return Some(Finding::new(rule, trust, Subject::Gpu).with("blocks", workers).seen(status()));
    }
    let reg = case.reg("GRBM_STATUS")?;
    let alone = case.set_fields(reg).contains(&"CP_BUSY");
    let cp = Subject::Block("CP".into());
    alone.then(|| Finding::new(Rule::GrbmCpAlone, Trust::Likely, cp).seen(status()))
}

/// Fields of a DMA engine's status that say why it does not go on.
const DMA_STALLS: [&str; 5] =
    ["SEM_REQ_STALL", "MC_RD_RET_STALL", "INT_REQ_STALL", "DELTA_RPTR_FULL", "INSIDE_IB"];

/// DMA engines that are not idle.
fn dma(case: &AmdCase<'_>) -> Vec<Finding> {
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
            let stalls: Vec<Arg> =
                DMA_STALLS.into_iter().filter(|field| set.contains(field)).map(Arg::name).collect();
            let subject = Subject::Engine(engine(reg));
            let found = Finding::new(Rule::SdmaBusy, Trust::Possible, subject);
            Some(found.with("stalls", stalls).seen([reg.evidence()]))
        })
        .collect()
}
