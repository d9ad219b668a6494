//! Which blocks are busy, and what the combination means.
//!
//! The readings are data: flags of RBBM_STATUS that must be set, flags that must be clear, and the reading. The most specific
//! reading that fits counts. Facts: the names of the flags and freedreno's description of the pipeline; readings are
//! inferences and trusted no further than that.

use unwedge_base::Generation;

use crate::adreno::case::{AdrenoCase, field, seen};
use crate::adreno::unfinished::Unfinished;
use crate::args::Arg;
use crate::report::{Evidence, Finding, Subject, Trust};
use crate::rules::{Rule, RuleRole};

/// One reading of a combination of flags. A flag given as `A|B` stands for any of these: names differ by generation.
struct Reading {
    from: Generation,
    to: Generation,
    /// Flags that must be set.
    set: &'static [&'static str],
    /// Flags that must be clear.
    clear: &'static [&'static str],
    rule: Rule,
    trust: Trust,
}

const CP: &str = "CP_BUSY|CP_ME_BUSY|CP_PFP_BUSY";
const FRONT: &str = "PC_DCALL_BUSY|PC_VSD_BUSY|VFD_BUSY|VFDP_BUSY|VPC_BUSY|TESS_BUSY";
const FETCH: &str = "PC_DCALL_BUSY|PC_VSD_BUSY|VFD_BUSY|VFDP_BUSY";
const RASTER: &str = "TSE_BUSY|RAS_BUSY|LRZ_BUSY|LRZ_BUZY";
const BACK: &str = "RB_BUSY|CCU_BUSY|CCUFCHE_BUSY";
const BLIT: &str = "A2D_BUSY|A2D_DSP_BUSY";
const SHADER: &str = "SP_BUSY";
const TEXTURE: &str = "TPL1_BUSY";
const CACHE: &str = "UCHE_BUSY";
const BUS: &str = "VBIF_BUSY";
const SEQUENCER: &str = "HLSQ_BUSY";
/// Every block that works behind the CP.
const BEHIND_CP: &[&str] = &[FRONT, RASTER, BACK, BLIT, SHADER, TEXTURE, CACHE, SEQUENCER, "VSC_BUSY"];

/// Most specific first.
const READINGS: &[Reading] = &[
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER, TEXTURE, CACHE],
        clear: &[],
        rule: Rule::ShadersWaitForTextures,
        trust: Trust::Possible,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER, CACHE, BUS],
        clear: &[],
        rule: Rule::ShadersWaitForMemory,
        trust: Trust::Possible,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER],
        clear: &[TEXTURE, CACHE, BUS],
        rule: Rule::ShaderProcessorsStuck,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER],
        clear: &[],
        rule: Rule::ShaderProcessorsBusy,
        trust: Trust::Possible,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[FRONT, BACK],
        clear: &[SHADER, SEQUENCER, TEXTURE],
        rule: Rule::BackEndNotDraining,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[FRONT, CACHE],
        clear: &[SHADER, BACK],
        rule: Rule::FrontEndWaitsForMemory,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[FETCH],
        clear: &[SHADER, BACK, RASTER],
        rule: Rule::FrontEndStuck,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[RASTER],
        clear: &[SHADER, BACK, FETCH],
        rule: Rule::RasterizerStuck,
        trust: Trust::Possible,
    },
    Reading {
        from: Generation::A5xx,
        to: Generation::A7xx,
        set: &[BLIT],
        clear: &[SHADER],
        rule: Rule::BlitEngineBusy,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[BACK],
        clear: &[SHADER, FETCH],
        rule: Rule::RenderBackendsStuck,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[CACHE],
        clear: &[SHADER, FRONT, BACK, TEXTURE],
        rule: Rule::CacheWaitsForMemory,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SEQUENCER],
        clear: &[SHADER, FRONT],
        rule: Rule::SequencerWaits,
        trust: Trust::Possible,
    },
    Reading {
        from: Generation::A6xx,
        to: Generation::A7xx,
        set: &["CP_AHB_BUSY_CP_MASTER"],
        clear: BEHIND_CP,
        rule: Rule::CpWaitsOnAhb,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[CP, BUS],
        clear: BEHIND_CP,
        rule: Rule::CpWaitsForMemory,
        trust: Trust::Likely,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[CP],
        clear: BEHIND_CP,
        rule: Rule::OnlyCpBusy,
        trust: Trust::Certain,
    },
    Reading {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[],
        clear: &[CP, FRONT, RASTER, BACK, BLIT, SHADER, TEXTURE, CACHE, SEQUENCER],
        rule: Rule::NoBlockBusy,
        trust: Trust::Likely,
    },
];

fn any_set(flags: &[&str], alternatives: &str) -> bool {
    alternatives.split('|').any(|name| flags.contains(&name))
}

/// What the busy flags mean; nothing if the dump does not have RBBM_STATUS.
pub(super) fn findings(case: &AdrenoCase<'_>, unfinished: Option<&Unfinished<'_>>) -> Vec<Finding> {
    let stalled = case.regs.field("RBBM_STATUS3", "SMMU_STALLED_ON_FAULT").filter(|&v| v != 0);
    let stalled = stalled.map(|_| {
        Finding::new(Rule::SmmuStalled, Trust::Certain, Subject::Block("IOMMU".into()))
            .seen(case.regs.field_evidence("RBBM_STATUS3", "SMMU_STALLED_ON_FAULT"))
    });
    let origin = |finding: Finding| match finding.rule.row().role {
        RuleRole::Clue => finding.with_some("origin", unfinished.map(|work| Arg::Record(work.origin()))),
        _ => finding,
    };
    stalled.into_iter().chain(combination(case).map(origin)).collect()
}

/// The flags of RBBM_STATUS, from the registers; where those were not read, from the dump's head, unless it is zero,
/// as some kernels write for want of the value, or all ones, as a GPU without power reads.
fn status<'a>(case: &AdrenoCase<'a>) -> Option<(Vec<&'a str>, Evidence)> {
    if let Some(flags) = case.regs.flags("RBBM_STATUS") {
        return Some((flags, case.regs.flags_evidence("RBBM_STATUS")?));
    }
    let value = case.dump.rbbm_status.filter(|&v| v != 0 && v != u32::MAX)?;
    let evidence = seen("header", field("rbbm-status", Arg::Value(u64::from(value))));
    Some((case.regs.flags_of("RBBM_STATUS", value), evidence))
}

fn combination(case: &AdrenoCase<'_>) -> Option<Finding> {
    let (flags, status) = status(case)?;
    let generation = case.gpu.generation();
    let reading = READINGS.iter().find(|reading| {
        (reading.from..=reading.to).contains(&generation)
            && reading.set.iter().all(|f| any_set(&flags, f))
            && !reading.clear.iter().any(|f| any_set(&flags, f))
    })?;
    let more = ["RBBM_STATUS1", "RBBM_STATUS2", "RBBM_STATUS3"].into_iter();
    let more = more.filter(|name| case.regs.get(name).is_some_and(|v| v != 0));
    let evidence = more.filter_map(|name| case.regs.flags_evidence(name));
    let finding = Finding::new(reading.rule, reading.trust, Subject::Gpu);
    Some(finding.seen(std::iter::once(status).chain(evidence)))
}

/// The CP and the blocks behind it are idle.
pub(crate) fn idle(case: &AdrenoCase<'_>) -> Option<bool> {
    let (flags, _) = status(case)?;
    Some(!any_set(&flags, CP) && !BEHIND_CP.iter().any(|f| any_set(&flags, f)))
}

/// The GPU's blocks behind the CP are idle.
pub(crate) fn idle_behind_cp(case: &AdrenoCase<'_>) -> Option<bool> {
    let (flags, _) = status(case)?;
    Some(!BEHIND_CP.iter().any(|f| any_set(&flags, f)))
}
