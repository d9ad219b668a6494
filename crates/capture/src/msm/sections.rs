//! The sections of an msm devcoredump, one row each.
//!
//! The order of the rows is the order in which kernels write them. The line grammar, the reader, the writer and everything
//! that shows a dump or says what is missing from it ask this table. What an entry holds is a field of
//! [`Devcore`](super::Devcore). Facts: `adreno_show`, `a5xx_show` and `a6xx_show` of Linux 4.19 to 6.17.

use unwedge_base::Generation;

/// What is known of a section.
#[derive(Clone, Copy, Debug)]
pub struct SectionFacts {
    /// The heading, without its colon.
    pub name: &'static str,
    /// Another heading for it: the format document calls `bos` `bo`.
    pub alias: Option<&'static str>,
    /// The kernel that was the first to write it, `(6, 14)`; `None` for those that have been there from the start.
    pub since: Option<(u32, u32)>,
    /// Generations whose dumps have it, from the first to the last.
    pub generations: (Generation, Generation),
    /// The list item that opens an entry of it and of no other section.
    pub opened_by: Option<&'static str>,
    /// The key without which an entry is incomplete.
    pub required: Option<&'static str>,
    /// When kernels write the heading.
    pub heading: SectionHeading,
    /// It precedes `rbbm-status`.
    pub before_status: bool,
}

/// When kernels write the heading of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionHeading {
    /// Only with entries below it.
    WithEntries,
    /// With entries below it; from a6xx on always.
    AlwaysFromA6xx,
    /// Always, for those GPUs that have the section.
    Always,
}

const FIRST: Generation = Generation::A2xx;
const LAST: Generation = Generation::A7xx;

/// What rows leave out.
const ROW: SectionFacts = SectionFacts {
    name: "",
    alias: None,
    since: None,
    generations: (FIRST, LAST),
    opened_by: None,
    required: None,
    heading: SectionHeading::Always,
    before_status: false,
};

/// A row of a section that a6xx brought.
const A6XX: SectionFacts = SectionFacts { generations: (Generation::A6xx, LAST), ..ROW };

macro_rules! sections {
    ($($(#[$doc:meta])* $variant:ident = $row:expr;)*) => {
        /// A section that kernels write. Their order is that in which kernels write them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum MsmSection {
            $($(#[$doc])* $variant,)*
        }

        /// One row for each section.
        const FACTS: &[SectionFacts] = &[$($row),*];

        impl MsmSection {
            /// Every section, in the order in which kernels write them.
            pub const ALL: [MsmSection; FACTS.len()] = [$(MsmSection::$variant),*];
        }
    };
}

sections! {
    /// `fault-info`
    FaultInfo = SectionFacts {
        name: "fault-info",
        since: Some((5, 14)),
        heading: SectionHeading::WithEntries,
        before_status: true,
        ..ROW
    };
    /// `pgtable-fault-info`
    PageTables = SectionFacts {
        name: "pgtable-fault-info",
        since: Some((6, 14)),
        heading: SectionHeading::WithEntries,
        before_status: true,
        ..ROW
    };
    /// `vm-log`
    VmLog = SectionFacts {
        name: "vm-log",
        since: Some((6, 17)),
        before_status: true,
        ..ROW
    };
    /// `ringbuffer`
    Ringbuffer = SectionFacts {
        name: "ringbuffer",
        opened_by: Some("id"),
        required: Some("size"),
        ..ROW
    };
    /// `bos`
    Bos = SectionFacts {
        name: "bos",
        alias: Some("bo"),
        opened_by: Some("iova"),
        required: Some("size"),
        heading: SectionHeading::WithEntries,
        ..ROW
    };
    /// `gmu-log`
    GmuLog = SectionFacts {
        name: "gmu-log",
        required: Some("size"),
        ..A6XX
    };
    /// `gmu-hfi`
    GmuHfi = SectionFacts {
        name: "gmu-hfi",
        required: Some("size"),
        ..A6XX
    };
    /// `gmu-debug`
    GmuDebug = SectionFacts {
        name: "gmu-debug",
        required: Some("size"),
        ..A6XX
    };
    /// `registers`
    Registers = SectionFacts {
        name: "registers",
        heading: SectionHeading::AlwaysFromA6xx,
        ..ROW
    };
    /// `registers-hlsq`
    RegistersHlsq = SectionFacts {
        name: "registers-hlsq",
        generations: (Generation::A5xx, Generation::A5xx),
        heading: SectionHeading::WithEntries,
        ..ROW
    };
    /// `registers-gmu`
    RegistersGmu = SectionFacts {
        name: "registers-gmu",
        ..A6XX
    };
    /// `indexed-registers`
    IndexedRegisters = SectionFacts {
        name: "indexed-registers",
        opened_by: Some("regs-name"),
        required: Some("dwords"),
        ..A6XX
    };
    /// `shader-blocks`
    ShaderBlocks = SectionFacts {
        name: "shader-blocks",
        opened_by: Some("type"),
        ..A6XX
    };
    /// `clusters`
    Clusters = SectionFacts {
        name: "clusters",
        opened_by: Some("cluster-name"),
        ..A6XX
    };
    /// `debugbus`
    Debugbus = SectionFacts {
        name: "debugbus",
        opened_by: Some("debugbus-block"),
        required: Some("count"),
        ..A6XX
    };
}

impl MsmSection {
    /// Its row.
    pub fn facts(self) -> &'static SectionFacts {
        &FACTS[self as usize]
    }

    /// The heading, without its colon.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The section with this heading.
    pub fn from_name(name: &str) -> Option<MsmSection> {
        MsmSection::ALL.into_iter().find(|s| s.name() == name || s.facts().alias == Some(name))
    }

    /// The section that this list item opens an entry of, if it can be no other.
    pub(super) fn opened_by(key: &str) -> Option<MsmSection> {
        MsmSection::ALL.into_iter().find(|s| s.facts().opened_by == Some(key))
    }

    /// Whether kernels write it for this generation. For a GPU that is not known, they write what more than one
    /// generation has.
    pub fn is_written_for(self, generation: Option<Generation>) -> bool {
        let (first, last) = self.facts().generations;
        generation.map_or(first != last, |generation| (first..=last).contains(&generation))
    }

    /// Whether this section comes after that one in the text of a kernel.
    pub(super) fn follows(self, other: MsmSection) -> bool {
        self as u8 > other as u8
    }
}
