//! Which blocks are busy, and what the combination means.
//!
//! The rules are data: flags of RBBM_STATUS that must be set, flags that must be clear, and the reading. The most specific
//! rule that fits speaks. Facts: the names of the flags and freedreno's description of the pipeline; readings are
//! inferences and trusted no further than that.

use unwedge_base::Generation;

use crate::adreno::case::Case;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};

/// One reading of a combination of flags. A flag given as `A|B` stands for any of these: names differ by generation.
struct Rule {
    from: Generation,
    to: Generation,
    /// Flags that must be set.
    set: &'static [&'static str],
    /// Flags that must be clear.
    clear: &'static [&'static str],
    title: &'static str,
    why: &'static str,
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
const RULES: &[Rule] = &[
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER, TEXTURE, CACHE],
        clear: &[],
        title: "shaders wait for textures: SP, TP and UCHE are busy",
        why: "Shader processors, texture units and the L2 cache all have work open: a fetch that memory does not answer, or a very slow shader.",
        trust: Trust::Possible,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER, CACHE, BUS],
        clear: &[],
        title: "shaders wait for memory: SP, UCHE and the bus are busy",
        why: "Loads or stores are on their way through the L2 cache and are not answered.",
        trust: Trust::Possible,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER],
        clear: &[TEXTURE, CACHE, BUS],
        title: "the shader processors are stuck: SP is busy with no memory access open",
        why: "A shader that computes and never ends: an endless loop, a barrier not all waves reach, or a wait for a result that never comes.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SHADER],
        clear: &[],
        title: "the shader processors are busy",
        why: "Shaders are running or stuck.",
        trust: Trust::Possible,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[FRONT, BACK],
        clear: &[SHADER, SEQUENCER, TEXTURE],
        title: "the back end does not drain: RB or CCU are busy, no shader runs, and the front end waits behind them",
        why: "With SP and HLSQ idle, what RB and CCU still hold is earlier work: a blit, resolve or cache flush that does not finish.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[FRONT, CACHE],
        clear: &[SHADER, BACK],
        title: "the front end waits for memory: index, vertex or visibility data does not arrive",
        why: "PC, VFD or VPC have work and so has UCHE, but nothing behind them.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[FETCH],
        clear: &[SHADER, BACK, RASTER],
        title: "the front end is stuck: PC or VFD are busy and nothing behind them is",
        why: "The draw does not get past primitive and vertex fetch: a bad draw initiator, index buffer, visibility stream or vertex layout.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[RASTER],
        clear: &[SHADER, BACK, FETCH],
        title: "the rasterizer is stuck: TSE, RAS or LRZ are busy alone",
        why: "Primitives entered rasterization and no fragments leave it; bad LRZ or scissor state can do that.",
        trust: Trust::Possible,
    },
    Rule {
        from: Generation::A5xx,
        to: Generation::A7xx,
        set: &[BLIT],
        clear: &[SHADER],
        title: "the 2D engine is busy: a blit does not finish",
        why: "A2D has work and the shaders have none.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[BACK],
        clear: &[SHADER, FETCH],
        title: "the render backends are stuck: RB or CCU are busy alone",
        why: "All work is in the back end: a resolve, a cache flush, or writes that memory does not take.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[CACHE],
        clear: &[SHADER, FRONT, BACK, TEXTURE],
        title: "UCHE waits for memory: the L2 cache is busy and none of its clients is",
        why: "A flush, an invalidation or a write-back that memory does not complete.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[SEQUENCER],
        clear: &[SHADER, FRONT],
        title: "HLSQ is busy with no shader running: it waits for state, constants or instructions",
        why: "The sequencer has work that it cannot hand to the shader processors.",
        trust: Trust::Possible,
    },
    Rule {
        from: Generation::A6xx,
        to: Generation::A7xx,
        set: &["CP_AHB_BUSY_CP_MASTER"],
        clear: BEHIND_CP,
        title: "the CP waits for a register access: it is master on the AHB bus and all other blocks are idle",
        why: "A register read or write by the CP that is not answered: a block without clock or power, or a bad register.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[CP, BUS],
        clear: BEHIND_CP,
        title: "the CP waits for memory: it and the bus are busy, all other blocks are idle",
        why: "A fetch of commands or a memory packet that is not answered.",
        trust: Trust::Likely,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[CP],
        clear: BEHIND_CP,
        title: "only the CP is busy: everything behind it has finished",
        why: "The hardware is idle; the CP itself does not get on. The packet at the stop is the one to look at.",
        trust: Trust::Certain,
    },
    Rule {
        from: Generation::A3xx,
        to: Generation::A7xx,
        set: &[],
        clear: &[CP, FRONT, RASTER, BACK, BLIT, SHADER, TEXTURE, CACHE, SEQUENCER],
        title: "no block is busy: the GPU was idle when the dump was taken",
        why: "Either it finished late, or it has not been given the work, or it lost power: compare the rings' pointers and fences.",
        trust: Trust::Likely,
    },
];

fn any_set(flags: &[&str], alternatives: &str) -> bool {
    alternatives.split('|').any(|name| flags.contains(&name))
}

/// What the busy flags mean. `None` if the dump does not have RBBM_STATUS.
pub fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut out = Vec::new();
    if let Some(stalled) = case.regs.field("RBBM_STATUS3", "SMMU_STALLED_ON_FAULT").filter(|&v| v != 0) {
        let evidence =
            vec![Evidence::new("registers", format!("RBBM_STATUS3.SMMU_STALLED_ON_FAULT = {stalled}"))];
        out.push(Finding {
            kind: FindingKind::Busy,
            trust: Trust::Certain,
            title: "the IOMMU holds the GPU at a fault".to_owned(),
            why: "Blocks are busy because a translation fault stalls their access, whatever they are."
                .to_owned(),
            evidence,
        });
    }
    out.extend(combination(case));
    out
}

/// The flags of RBBM_STATUS, from the registers; where those were not read, from the dump's head, unless it is zero,
/// as some kernels write for want of the value.
fn status<'a>(case: &Case<'a>) -> Option<(Vec<&'a str>, Evidence)> {
    if let Some(flags) = case.regs.flags("RBBM_STATUS") {
        return Some((flags, case.regs.flags_evidence("RBBM_STATUS")?));
    }
    let value = case.dump.rbbm_status.filter(|&v| v != 0)?;
    let evidence = Evidence::new("header", format!("rbbm-status: {value:#x}"));
    Some((case.regs.flags_of("RBBM_STATUS", value), evidence))
}

fn combination(case: &Case<'_>) -> Option<Finding> {
    let (flags, status) = status(case)?;
    let generation = case.gpu.generation();
    let rule = RULES.iter().find(|rule| {
        (rule.from..=rule.to).contains(&generation)
            && rule.set.iter().all(|f| any_set(&flags, f))
            && !rule.clear.iter().any(|f| any_set(&flags, f))
    })?;
    let mut evidence = vec![status];
    for name in ["RBBM_STATUS1", "RBBM_STATUS2", "RBBM_STATUS3"] {
        if case.regs.get(name).is_some_and(|v| v != 0) {
            evidence.extend(case.regs.evidence(name));
        }
    }
    Some(Finding {
        kind: FindingKind::Busy,
        trust: rule.trust,
        title: rule.title.to_owned(),
        why: rule.why.to_owned(),
        evidence,
    })
}

/// The CP and the blocks behind it are idle.
pub(crate) fn idle(case: &Case<'_>) -> Option<bool> {
    let (flags, _) = status(case)?;
    Some(!any_set(&flags, CP) && !BEHIND_CP.iter().any(|f| any_set(&flags, f)))
}

/// The GPU's blocks behind the CP are idle.
pub(crate) fn idle_behind_cp(case: &Case<'_>) -> Option<bool> {
    let (flags, _) = status(case)?;
    Some(!BEHIND_CP.iter().any(|f| any_set(&flags, f)))
}
