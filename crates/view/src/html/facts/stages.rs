//! Which stages a GPU has, and which flags of its status registers say that one is busy.
//!
//! Facts: the names of the flags in the tables, and freedreno's and AMD's descriptions of the pipeline. A block that a GPU has no flag
//! for is not shown. Never: Intel's units; those are what INSTDONE has.

use super::{BlockFacts, StageFacts};

/// A block: its name, and its flags as they are called on different generations.
type Block = (&'static str, &'static [&'static str]);

/// The stages of Adreno, by RBBM_STATUS.
pub(super) const ADRENO: &[(&str, &[Block])] = &[
    (
        "Command processor",
        &[("CP", &["CP_BUSY", "CP_ME_BUSY", "CP_PFP_BUSY"]), ("AHB", &["CP_AHB_BUSY_CP_MASTER"])],
    ),
    (
        "Geometry",
        &[
            ("PC", &["PC_DCALL_BUSY", "PC_VSD_BUSY"]),
            ("VFD", &["VFD_BUSY", "VFDP_BUSY"]),
            ("TESS", &["TESS_BUSY"]),
            ("VPC", &["VPC_BUSY"]),
        ],
    ),
    (
        "Rasterizer",
        &[
            ("TSE", &["TSE_BUSY"]),
            ("RAS", &["RAS_BUSY"]),
            ("LRZ", &["LRZ_BUSY", "LRZ_BUZY"]),
            ("VSC", &["VSC_BUSY"]),
        ],
    ),
    ("Shaders", &[("HLSQ", &["HLSQ_BUSY"]), ("SP", &["SP_BUSY"]), ("TPL1", &["TPL1_BUSY"])]),
    (
        "Render backend",
        &[
            ("RB", &["RB_BUSY"]),
            ("CCU", &["CCU_BUSY", "CCUFCHE_BUSY"]),
            ("2D", &["A2D_BUSY", "A2D_DSP_BUSY"]),
        ],
    ),
    ("Memory", &[("UCHE", &["UCHE_BUSY"]), ("VBIF", &["VBIF_BUSY"])]),
];

/// The stages of AMD, by GRBM_STATUS and GRBM_STATUS2.
pub(super) const AMD: &[(&str, &[Block])] = &[
    (
        "Command processor",
        &[
            ("CP", &["CP_BUSY"]),
            ("CPG", &["CPG_BUSY"]),
            ("CPC", &["CPC_BUSY"]),
            ("CPF", &["CPF_BUSY"]),
            ("RLC", &["RLC_BUSY"]),
        ],
    ),
    (
        "Geometry",
        &[
            ("GE", &["GE_BUSY"]),
            ("VGT", &["VGT_BUSY"]),
            ("IA", &["IA_BUSY"]),
            ("WD", &["WD_BUSY"]),
            ("PA", &["PA_BUSY"]),
        ],
    ),
    ("Rasterizer", &[("SC", &["SC_BUSY"]), ("BCI", &["BCI_BUSY"])]),
    (
        "Shaders",
        &[("SPI", &["SPI_BUSY"]), ("SX", &["SX_BUSY"]), ("TA", &["TA_BUSY"]), ("GDS", &["GDS_BUSY"])],
    ),
    ("Render backend", &[("DB", &["DB_BUSY"]), ("CB", &["CB_BUSY"])]),
    (
        "Memory",
        &[
            ("TCP", &["TCP_BUSY"]),
            ("TC", &["TC_BUSY"]),
            ("RMI", &["RMI_BUSY"]),
            ("UTCL2", &["UTCL2_BUSY"]),
            ("EA", &["EA_BUSY"]),
        ],
    ),
];

/// The stages with the blocks that a GPU has. `flag` says whether a flag is set; `None` for one that the GPU does not have.
pub(super) fn stages(
    table: &'static [(&'static str, &'static [Block])],
    flag: impl Fn(&str) -> Option<bool>,
) -> Vec<StageFacts> {
    let block = |&(name, flags): &Block| {
        let known: Vec<bool> = flags.iter().filter_map(|name| flag(name)).collect();
        (!known.is_empty()).then(|| BlockFacts { name: name.into(), busy: known.contains(&true) })
    };
    let stage = |&(name, blocks): &(&'static str, &'static [Block])| {
        let blocks: Vec<BlockFacts> = blocks.iter().filter_map(block).collect();
        (!blocks.is_empty()).then_some(StageFacts { name, blocks })
    };
    table.iter().filter_map(stage).collect()
}
