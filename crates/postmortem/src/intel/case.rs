//! What an error state of i915 and a devcoredump of xe both tell, in one form.
//!
//! Never: judging it.

use super::device::active_head;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use std::cell::{OnceCell, RefCell};
use unwedge_base::{Memory, Span};
use unwedge_capture::intel::{DumpEngine, IntelRegister, MemoryBlock, MemoryBlockKind, RingRegister};
use unwedge_hw::intel::IntelGpu;
use unwedge_hw::intel::platform::{self, EngineClass, IntelDriver, Platform, Version};
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::unpack::Wanted;
use unwedge_stream::intel::walk::Spaces;

/// A dump.
pub(super) struct Case<'c, 'a> {
    pub(super) driver: IntelDriver,
    pub(super) platform: Option<&'static Platform>,
    /// Its graphics version, from the device or the dump.
    pub(super) version: Option<Version>,
    /// Engines that the dump says something of, the ones that hang first.
    pub(super) engines: Vec<Unit<'c, 'a>>,
    /// Registers of the device.
    pub(super) registers: &'c [IntelRegister<'a>],
    pub(super) blocks: &'c [MemoryBlock<'a>],
    pub(super) ggtt: &'c Memory,
    /// Addresses that were looked up and not found, with the engine; none for the device's table.
    pub(super) wanted: RefCell<Vec<Wanted>>,
}

/// An engine of a dump.
pub(super) struct Unit<'c, 'a> {
    pub(super) dump: &'c DumpEngine<'a>,
    pub(super) id: Option<platform::Engine>,
    /// Whether the kernel holds it to be hung.
    pub(super) hung: Option<bool>,
    /// Whose context was on it.
    pub(super) process: Option<String>,
    /// How often work of that context was held to be guilty before.
    pub(super) guilty: Option<i64>,
    /// Where its batch starts and ends, if the dump says.
    pub(super) batch: Option<std::ops::Range<u64>>,
    pub(super) ppgtt: &'c Memory,
    /// Which address space that is.
    pub(super) space: usize,
    pub(super) decoder: OnceCell<Option<Decoder>>,
}

impl<'c> Case<'c, '_> {
    pub(super) fn gpu(&self) -> Option<IntelGpu> {
        self.version.map(|v| IntelGpu::of(v.major.into(), v.release.into()))
    }

    /// Memory as an engine sees it.
    pub(super) fn spaces<'m>(&'m self, unit: &'m Unit<'_, '_>) -> Spaces<'m> {
        Spaces { ggtt: self.ggtt, ppgtt: unit.ppgtt }
    }

    /// The blocks of an engine of one kind; those without an owner are of all.
    pub(super) fn blocks_of(
        &self,
        unit: &Unit<'_, '_>,
        kind: MemoryBlockKind,
    ) -> impl Iterator<Item = &'c MemoryBlock<'c>> {
        let (blocks, name, id): (&'c [MemoryBlock<'_>], _, _) =
            (self.blocks, unit.dump.name.to_string(), unit.dump.id());
        blocks.iter().filter(move |b| b.kind == kind).filter(move |b| {
            b.owner.is_empty() || *b.owner == *name || b.engine().is_some() && b.engine() == id
        })
    }

    /// Asks for the memory at an address, should the dump hold it.
    pub(super) fn want(&self, unit: &Unit<'_, '_>, address: u64) {
        self.wanted.borrow_mut().push(Wanted::Either(unit.space, address));
    }

    /// Asks for all memory of an engine.
    pub(super) fn want_all(&self, unit: &Unit<'_, '_>) {
        self.wanted.borrow_mut().push(Wanted::All(unit.space));
    }

    /// The block that holds an address, and the offset in it.
    pub(super) fn block_at(&self, unit: &Unit<'_, '_>, address: u64) -> Option<(String, u64)> {
        let found = unit.ppgtt.find(address).or_else(|| self.ggtt.find(address));
        if found.is_none() {
            self.want(unit, address);
        }
        let found = found?;
        Some((found.name.clone(), address - found.iova))
    }
}

impl Unit<'_, '_> {
    /// `rcs0`, as the dump has it where the name says no engine.
    pub(super) fn name(&self) -> String {
        self.id.map_or_else(|| self.dump.name.to_string(), |id| id.to_string())
    }

    pub(super) fn ring(&self, register: RingRegister) -> Option<u64> {
        self.dump.ring(register)
    }

    pub(super) fn ring32(&self, register: RingRegister) -> Option<u32> {
        self.ring(register).map(|v| v as u32)
    }

    /// Where it reads, as an address.
    pub(super) fn active_head(&self) -> Option<u64> {
        active_head(self.dump, |address| self.ppgtt.find(address).is_some())
    }

    pub(super) fn class(&self) -> EngineClass {
        self.id.map_or(EngineClass::Render, |id| id.class)
    }

    /// Reads its commands.
    pub(super) fn decoder(&self, version: Option<Version>) -> Option<Decoder> {
        *self.decoder.get_or_init(|| version.map(|v| Decoder::new(v, self.class())))
    }

    /// That a register of it has a value.
    pub(super) fn seen(&self, what: impl Into<String>) -> Evidence {
        let (section, span) = (format!("engine {}", self.name()), Some(self.dump.span));
        Evidence { section, what: what.into(), iova: None, span }
    }
}

/// Something read outside of an engine.
pub(super) fn seen(section: &str, what: impl Into<String>, span: Option<Span>) -> Evidence {
    Evidence { section: section.to_owned(), what: what.into(), iova: None, span }
}

/// A finding.
pub(super) fn finding(
    kind: FindingKind,
    trust: Trust,
    title: impl Into<String>,
    why: impl Into<String>,
    evidence: Vec<Evidence>,
) -> Finding {
    Finding { kind, trust, title: title.into(), why: why.into(), evidence }
}

/// A list of names, cut where it gets long.
pub(super) fn list(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(most).filter(|&n| n > 0) {
        Some(more) => format!("{shown} and {more} more"),
        None => shown,
    }
}
