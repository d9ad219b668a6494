//! The tables of the drivers, and facts that go with them.

use super::encoding::{self, TableStep};
use super::facts::{self, BuiltinTable, latest};
use super::registers;
use super::text::{self, LrcTable, TableTextError};
use unwedge_hw::intel::platform::{EngineClass, IntelDriver, Version};

/// A table of a kernel driver.
#[derive(Clone, Copy)]
pub struct Builtin(&'static BuiltinTable);

impl Builtin {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Builtin> {
        facts::TABLES.iter().map(Builtin)
    }

    /// By its name: `gen12_rcs`.
    pub fn by_name(name: &str) -> Option<Builtin> {
        Builtin::all().find(|t| t.name() == name)
    }

    /// What a driver takes for engines of a class.
    pub fn of(driver: IntelDriver, version: Version, class: EngineClass) -> Option<Builtin> {
        let ended = facts::ENDS.iter().any(|&(of, end)| of == driver && end <= version);
        let uses = facts::USES.iter().filter(|u| u.driver == driver && u.classes.contains(&class) && !ended);
        latest(uses.map(|u| (u.since, u.table)), version).and_then(|i| facts::TABLES.get(i)).map(Builtin)
    }

    /// The ring state of engines that do not have it in the register page.
    pub fn indirect_ring_state() -> Option<Builtin> {
        Builtin::by_name("xe2_indirect_ring_state")
    }

    /// As its driver calls it.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The drivers that have it, both the same.
    pub fn drivers(self) -> &'static [IntelDriver] {
        self.0.drivers
    }

    /// The compact encoding.
    pub fn bytes(self) -> &'static [u8] {
        self.0.bytes
    }

    /// What it consists of.
    pub fn steps(self) -> Vec<TableStep> {
        // The build encoded it.
        encoding::decode(self.0.bytes).map(|(steps, _)| steps).unwrap_or_default()
    }
}

/// Reads tables that people wrote, with the names of registers that this crate knows.
///
/// # Errors
///
/// [`TableTextError`] with the first line that is not of the grammar, names an unknown register, or has a
/// step without an encoding.
pub fn parse(text: &str) -> Result<Vec<LrcTable>, TableTextError> {
    text::parse(text, &registers::by_name)
}

/// Pages of a context: status page, register page, the engine's other state.
pub fn pages(driver: IntelDriver, version: Version, class: EngineClass) -> Option<usize> {
    let fitting = facts::PAGES.iter().filter(|(of, _, classes, _)| *of == driver && classes.contains(&class));
    latest(fitting.map(|&(_, since, _, pages)| (since, pages)), version)
}

/// The value RCS_INDIRECT_CTX_OFFSET has with an indirect context, as the drivers set it.
pub fn indirect_ctx_offset(version: Version) -> Option<u32> {
    latest(facts::INDIRECT_CTX_OFFSETS.iter().copied(), version).map(|lines| lines << 6)
}

/// The bits of a register's offset that count where MI_LOAD_REGISTER_IMM adds the engine's base itself.
pub fn relative_mask(version: Version, class: EngineClass) -> u32 {
    let fitting = facts::MASKS.iter().filter(|(_, classes, _)| classes.contains(&class));
    latest(fitting.map(|&(since, _, mask)| (since, mask)), version).unwrap_or(u32::MAX)
}

/// A register that has a fixed place in the register page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePosition {
    /// Its name.
    pub name: &'static str,
    /// Its offset from the engine's base.
    pub register: u32,
    /// The dword of its offset. Its value is in the next.
    pub dword: usize,
}

/// The registers that have a fixed place for engines of a class.
pub fn positions(version: Version, class: EngineClass) -> impl Iterator<Item = PagePosition> {
    let of_class =
        move || facts::POSITIONS.iter().filter(move |p| p.classes.contains(&class) && p.since <= version);
    of_class()
        .filter(move |p| of_class().all(|other| other.since <= p.since || other.name != p.name))
        .filter_map(|p| Some(PagePosition { name: p.name, register: p.register, dword: p.dword? }))
}
