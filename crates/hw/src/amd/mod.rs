//! AMD GPUs: the facts of `data/amd` as one graphics generation sees them.
//!
//! Registers of the GPU have offsets in dwords of its register space, as packets and debug interfaces use them; status
//! registers that dumps name are known by name alone. Never: walking packets, a dump's format.

use crate::db::{DbView, Domain, Reg};
use std::ops::Deref;

mod chip;
pub mod formats;

pub use chip::{AmdChip, product};
pub use unwedge_base::{GcVersion, Gfx, GfxTarget};

/// Ranges of registers that SET and LOAD packets count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegBank {
    /// Privileged on most generations.
    Config,
    /// Shaders' own.
    Sh,
    /// Kept per draw context.
    Context,
    /// What user mode may write (gfx7 on).
    Uconfig,
}

impl RegBank {
    /// Its first register, in dwords.
    pub fn base(self) -> u32 {
        match self {
            RegBank::Config => 0x2000,
            RegBank::Sh => 0x2c00,
            RegBank::Context => 0xa000,
            RegBank::Uconfig => 0xc000,
        }
    }
}

/// Whether a register, without its prefix, holds the header of a packet that a micro engine read: `CP_ME_HEADER_DUMP`. Kernels read it
/// several times, for it is the window of a FIFO.
pub fn holds_packet_header(register: &str) -> bool {
    register.starts_with("CP_") && register.ends_with("_HEADER_DUMP")
}

/// The facts of AMD GPUs as one generation sees them.
#[derive(Clone, Copy, Debug)]
pub struct Amd<'d> {
    view: DbView<'d>,
    gfx: Gfx,
}

impl<'d> Deref for Amd<'d> {
    type Target = DbView<'d>;

    fn deref(&self) -> &DbView<'d> {
        &self.view
    }
}

/// The number of a generation among those that the tables distinguish. Registers and packets of Vega 20,
/// MI100 and MI200 are those of gfx9, those of MI350 are those of MI300.
pub(crate) fn variant(gfx: Gfx) -> u32 {
    match gfx {
        Gfx::Gfx6 => 0,
        Gfx::Gfx7 => 1,
        Gfx::Gfx8 => 2,
        Gfx::Gfx9 | Gfx::Gfx906 | Gfx::Gfx908 | Gfx::Gfx90a => 3,
        Gfx::Gfx940 | Gfx::Gfx950 => 4,
        Gfx::Gfx10 => 5,
        Gfx::Gfx10_3 => 6,
        Gfx::Gfx11 => 7,
        Gfx::Gfx11_5 => 8,
        Gfx::Gfx12 => 9,
    }
}

impl<'d> Amd<'d> {
    pub(crate) fn new(view: DbView<'d>, gfx: Gfx) -> Amd<'d> {
        Amd { view, gfx }
    }

    /// Which generation this is a view of.
    pub fn gfx(self) -> Gfx {
        self.gfx
    }

    /// A register by name, without the prefix (`mm`, `reg`) that says how it is addressed.
    pub fn register(self, name: &str) -> Option<Reg<'d>> {
        [0, 1].into_iter().map(|space| self.view.registers(space)).find_map(|registers| {
            let offset = registers.offset_of(name)?;
            registers.at(offset)
        })
    }

    /// Every register that has an offset, by it.
    pub fn registers_of_gpu(self) -> impl Iterator<Item = Reg<'d>> {
        self.view.registers(0).iter()
    }

    /// Every register that dumps only name. What is its offset in the tables is only its place in a list.
    pub fn registers_by_name(self) -> impl Iterator<Item = Reg<'d>> {
        self.view.registers(1).iter()
    }

    /// The layout of a packet by its number in an enumeration of the tables: `vcn_packet`, `mes_packet`.
    pub fn packet_of(self, enumeration: &str, number: u32) -> Option<Domain<'d>> {
        self.view.domain(self.name_in(enumeration, number)?)
    }

    /// The name of a number in an enumeration of the tables.
    pub fn name_in(self, enumeration: &str, number: u32) -> Option<&'d str> {
        self.view.enumeration(enumeration)?.name_of(u64::from(number))
    }

    /// Name and layout of a packet of a DMA engine by its header. The name is that of the layout: `SDMA_POLL_REGMEM`,
    /// on gfx6 `SIDMA_COPY`.
    pub fn sdma_packet(self, header: u32) -> Option<Domain<'d>> {
        let name = match self.gfx {
            Gfx::Gfx6 => self.name_in("sidma_packet", header >> 28)?,
            _ => match self.name_in("sdma_packet", header & 0xffff)? {
                "SDMA_COPY_LINEAR" if header & 1 << 27 != 0 => "SDMA_COPY_BROADCAST_LINEAR",
                name => name,
            },
        };
        self.view.domain(name)
    }
}
