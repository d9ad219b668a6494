//! Which caches there are, what goes through which, and what events and packets do to them.

use super::line::LineReader;
use crate::adreno::space::Client;
use unwedge_base::Generation;
use unwedge_hw::Adreno;

/// A cache, or memory itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheUnit {
    /// No cache: the command processor, and what events write.
    Memory,
    /// The L2 cache: shaders, textures, vertex fetch, state, visibility streams, stream-out.
    Uche,
    /// The cache of constants and descriptors between shaders and UCHE (a740 and later).
    Cche,
    /// The colour cache: render targets, the 2D engine's destination and resolves.
    CcuColor,
    /// The cache of depth and stencil.
    CcuDepth,
}

impl CacheUnit {
    /// The name that the documents use.
    pub fn name(self) -> &'static str {
        match self {
            CacheUnit::Memory => "memory",
            CacheUnit::Uche => "UCHE",
            CacheUnit::Cche => "CCHE",
            CacheUnit::CcuColor => "CCU colour",
            CacheUnit::CcuDepth => "CCU depth",
        }
    }

    /// The cache that a client goes through.
    pub fn of(client: Client) -> CacheUnit {
        match client {
            Client::Cp => CacheUnit::Memory,
            Client::Sp | Client::Tp | Client::Vfd | Client::Pc | Client::Vpc | Client::Vsc => CacheUnit::Uche,
            Client::Ccu => CacheUnit::CcuColor,
            Client::CcuDepth => CacheUnit::CcuDepth,
        }
    }

    /// The event that writes its dirty lines back.
    pub fn clean_event(self, generation: Generation) -> Option<&'static str> {
        let a7xx = generation >= Generation::A7xx;
        Some(match (self, a7xx) {
            (CacheUnit::Memory | CacheUnit::Cche, _) => return None,
            (CacheUnit::Uche, false) => "CACHE_FLUSH_TS",
            (CacheUnit::Uche, true) => "CACHE_CLEAN",
            (CacheUnit::CcuColor, false) => "PC_CCU_FLUSH_COLOR_TS",
            (CacheUnit::CcuColor, true) => "CCU_CLEAN_COLOR",
            (CacheUnit::CcuDepth, false) => "PC_CCU_FLUSH_DEPTH_TS",
            (CacheUnit::CcuDepth, true) => "CCU_CLEAN_DEPTH",
        })
    }

    /// The event that drops its lines; of CCHE it is a packet.
    pub fn invalidate_event(self, generation: Generation) -> Option<&'static str> {
        let a7xx = generation >= Generation::A7xx;
        Some(match (self, a7xx) {
            (CacheUnit::Memory, _) => return None,
            (CacheUnit::Uche, false) => "CACHE_INVALIDATE",
            (CacheUnit::Uche, true) => "CACHE_INVALIDATE7",
            (CacheUnit::Cche, _) => CCHE_INVALIDATE,
            (CacheUnit::CcuColor, false) => "PC_CCU_INVALIDATE_COLOR",
            (CacheUnit::CcuColor, true) => "CCU_INVALIDATE_COLOR",
            (CacheUnit::CcuDepth, false) => "PC_CCU_INVALIDATE_DEPTH",
            (CacheUnit::CcuDepth, true) => "CCU_INVALIDATE_DEPTH",
        })
    }
}

/// A wait between a write and a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheWait {
    /// CP_WAIT_FOR_IDLE, or a wait for a value in memory: what events write back is in memory.
    Idle,
    /// CP_WAIT_MEM_WRITES: memory has what packets of the CP wrote.
    MemWrites,
}

impl CacheWait {
    /// The packet.
    pub fn packet(self) -> &'static str {
        match self {
            CacheWait::Idle => "CP_WAIT_FOR_IDLE",
            CacheWait::MemWrites => "CP_WAIT_MEM_WRITES",
        }
    }
}

/// The packet that drops the lines of CCHE.
pub(crate) const CCHE_INVALIDATE: &str = "CP_CCHE_INVALIDATE";

/// What the tag of a line in a CCU holds besides the address. The same bytes through two tags are two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CcuTag {
    /// Which attachment accesses it: a render target's number, or one of the constants of this type.
    pub attachment: u8,
    /// Its layer.
    pub layer: u16,
    /// Its number in `a6xx_format`.
    pub format: u8,
}

impl CcuTag {
    /// The attachment number of depth.
    pub const DEPTH: u8 = 8;
    /// The attachment number of a stencil image of its own.
    pub const STENCIL: u8 = 9;
    /// The attachment number of resolves and clears by BLIT events.
    pub const RESOLVE: u8 = 16;
}

/// How an access reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachePort {
    pub(crate) client: Client,
    /// Of clients that go through a CCU.
    pub(crate) tag: CcuTag,
    /// Flags of UBWC are read, of which zeros mean something.
    pub(crate) of_flags: bool,
}

impl CachePort {
    /// Through a CCU, for an attachment.
    pub(crate) fn attachment(client: Client, attachment: u8) -> CachePort {
        CachePort { client, tag: CcuTag { attachment, ..CcuTag::default() }, of_flags: false }
    }

    /// The same, in a layer.
    #[inline]
    pub(crate) fn in_layer(mut self, layer: u32) -> CachePort {
        self.tag.layer = layer as u16;
        self
    }

    /// The same, for flags of UBWC.
    #[inline]
    pub(crate) fn for_flags(mut self) -> CachePort {
        self.of_flags = true;
        self
    }

    /// Whether zeros that nobody wrote are as good as any: those of the flags of an attachment, which begin as the driver allocates them.
    /// What is sampled or copied must have been written.
    pub(super) fn keeps_zeros(self) -> bool {
        self.of_flags && matches!(self.client, Client::Ccu | Client::CcuDepth)
    }

    /// Who reads through it.
    pub(super) fn reader(self) -> LineReader {
        LineReader { id: self.id(), front_end: matches!(self.client, Client::Vfd | Client::Pc) }
    }

    /// The cache and the tag of its lines.
    pub(super) fn id(self) -> CacheId {
        let unit = CacheUnit::of(self.client);
        let tagged = matches!(unit, CacheUnit::CcuColor | CacheUnit::CcuDepth);
        CacheId { unit, tag: if tagged { self.tag } else { CcuTag::default() } }
    }
}

impl From<Client> for CachePort {
    fn from(client: Client) -> CachePort {
        CachePort { client, tag: CcuTag::default(), of_flags: false }
    }
}

/// A cache, with one value of its tags: accesses with the same one are coherent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CacheId {
    pub(super) unit: CacheUnit,
    pub(super) tag: CcuTag,
}

impl CacheId {
    pub(super) const UCHE: CacheId = CacheId::untagged(CacheUnit::Uche);
    pub(super) const CCHE: CacheId = CacheId::untagged(CacheUnit::Cche);

    const fn untagged(unit: CacheUnit) -> CacheId {
        CacheId { unit, tag: CcuTag { attachment: 0, layer: 0, format: 0 } }
    }

    pub(super) fn is_resolve(self) -> bool {
        self.unit == CacheUnit::CcuColor && self.tag.attachment == CcuTag::RESOLVE
    }

    /// The tag, where its lines have one.
    pub(super) fn shown_tag(self) -> Option<CcuTag> {
        matches!(self.unit, CacheUnit::CcuColor | CacheUnit::CcuDepth).then_some(self.tag)
    }
}

/// How much the caches of a GPU hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheSizes {
    /// Bytes of the colour cache; `None`: it is never full.
    pub ccu_color: Option<u64>,
    /// Bytes of the depth cache.
    pub ccu_depth: Option<u64>,
    /// There is a CCHE.
    pub has_cche: bool,
}

impl CacheSizes {
    /// Sizes of a CCU while draws go to memory, as the table of devices has them. That of UCHE is not public.
    pub(crate) fn of(adreno: Adreno<'_>) -> CacheSizes {
        let bytes = |name: &str| {
            let device = adreno.device?;
            let (units, each) = (device.number("num_ccu")?, device.number(name)?);
            u64::try_from(units.checked_mul(each)?).ok().filter(|bytes| *bytes > 0)
        };
        CacheSizes {
            ccu_color: bytes("a6xx.sysmem_per_ccu_color_cache_size"),
            ccu_depth: bytes("a6xx.sysmem_per_ccu_depth_cache_size"),
            has_cche: adreno.generation >= Generation::A7xx
                && adreno.device.is_some_and(|device| device.chip_id().parts()[..2] != WITHOUT_CCHE),
        }
    }
}

/// The first bytes of the chip ids of those a7xx that have no CCHE: a725 and a730.
const WITHOUT_CCHE: [u8; 2] = [7, 3];

/// What an event does to caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct CacheEvent {
    pub(super) clean: Option<CacheUnit>,
    /// Only lines that resolves wrote are cleaned.
    pub(super) resolves_only: bool,
    pub(super) invalidate: Option<CacheUnit>,
}

impl CacheEvent {
    /// The event that drops the lines of a cache.
    pub(crate) fn invalidate(unit: CacheUnit) -> CacheEvent {
        CacheEvent { invalidate: Some(unit), ..CacheEvent::default() }
    }

    /// By its name in `vgt_event_type`. Some events have the same number on a6xx and a7xx, and another name.
    pub(crate) fn of_name(name: &str, generation: Generation) -> CacheEvent {
        use CacheUnit::{CcuColor, CcuDepth, Uche};
        let a7xx = generation >= Generation::A7xx;
        let clean = |unit| CacheEvent { clean: Some(unit), ..CacheEvent::default() };
        let both = |unit| CacheEvent { clean: Some(unit), ..CacheEvent::invalidate(unit) };
        match name {
            "CACHE_FLUSH_TS" | "CACHE_CLEAN" => clean(Uche),
            "FLUSH_SO_0" | "FLUSH_SO_1" | "FLUSH_SO_2" | "FLUSH_SO_3" => clean(Uche),
            "CACHE_INVALIDATE" | "CACHE_INVALIDATE7" => CacheEvent::invalidate(Uche),
            "CACHE_FLUSH7" => both(Uche),
            "PC_CCU_FLUSH_COLOR_TS" | "CCU_FLUSH_COLOR" if a7xx => both(CcuColor),
            "PC_CCU_FLUSH_DEPTH_TS" | "CCU_FLUSH_DEPTH" if a7xx => both(CcuDepth),
            "PC_CCU_FLUSH_COLOR_TS" | "CCU_CLEAN_COLOR" => clean(CcuColor),
            "PC_CCU_RESOLVE_TS" | "CCU_RESOLVE_CLEAN" => {
                CacheEvent { resolves_only: true, ..clean(CcuColor) }
            }
            "PC_CCU_FLUSH_DEPTH_TS" | "CCU_CLEAN_DEPTH" => clean(CcuDepth),
            "PC_CCU_INVALIDATE_COLOR" | "CCU_INVALIDATE_COLOR" => CacheEvent::invalidate(CcuColor),
            "PC_CCU_INVALIDATE_DEPTH" | "CCU_INVALIDATE_DEPTH" => CacheEvent::invalidate(CcuDepth),
            _ => CacheEvent::default(),
        }
    }
}
