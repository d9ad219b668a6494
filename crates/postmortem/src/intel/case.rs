//! What an error state of i915 and a devcoredump of xe both tell, in one form.
//!
//! Never: judging it.

use super::device::active_head;
use crate::args::{Arg, Args};
use crate::head::ProcessIdentity;
use crate::report::{Evidence, Fact, FieldFact, Finding, Subject, Trust};
use crate::rules::Rule;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use unwedge_base::{Buffer, Memory, Span};
use unwedge_capture::SectionAbsence;
use unwedge_capture::i915::{ErrorState, RequestLine};
use unwedge_capture::intel::{
    DumpEngine, IntelRecord, IntelRegister, MemoryBlock, MemoryBlockKind, RingRegister,
};
use unwedge_capture::xe::XeDevcore;
use unwedge_hw::intel::IntelGpu;
use unwedge_hw::intel::platform::{self, EngineClass, IntelDriver, Platform, Version};
use unwedge_hw::intel::ring::HEAD_OFFSET;
use unwedge_stream::intel::commands::Decoder;
use unwedge_stream::intel::unpack::Wanted;
use unwedge_stream::intel::walk::Spaces;

/// Bytes of a block that are unpacked to see whether its end was captured.
const MOST_UNPACKED: usize = 32 << 20;

/// A dump.
pub(super) struct IntelCase<'c, 'a> {
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
    /// Which dump it is, for what only one driver records.
    pub(super) source: IntelSource<'c, 'a>,
    /// Addresses that were looked up and not found, with the engine; none for the device's table.
    pub(super) wanted: RefCell<Vec<Wanted>>,
}

/// The dump that a case is of.
#[derive(Clone, Copy)]
pub(super) enum IntelSource<'c, 'a> {
    /// An error state.
    I915(&'c ErrorState<'a>),
    /// A devcoredump of xe.
    Xe(&'c XeDevcore<'a>),
}

impl IntelSource<'_, '_> {
    /// Why something is not recorded of an engine, or of the device.
    pub(super) fn absence(self, unit: Option<&Unit<'_, '_>>, record: IntelRecord) -> SectionAbsence {
        match self {
            IntelSource::I915(dump) => dump.absence(unit.map(|unit| unit.dump), record),
            IntelSource::Xe(dump) => dump.absence(record),
        }
    }

    /// Bytes of the dump's text.
    pub(super) fn text_len(self) -> u64 {
        match self {
            IntelSource::I915(dump) => dump.text().len() as u64,
            IntelSource::Xe(dump) => dump.text().len() as u64,
        }
    }

    /// The kernel's release.
    pub(super) fn kernel(&self) -> Option<&str> {
        match self {
            IntelSource::I915(dump) => dump.field("Kernel"),
            IntelSource::Xe(dump) => dump.field("kernel"),
        }
    }
}

/// An engine of a dump.
pub(super) struct Unit<'c, 'a> {
    pub(super) dump: &'c DumpEngine<'a>,
    pub(super) id: Option<platform::Engine>,
    /// Whether the kernel holds it to be hung.
    pub(super) hung: Option<bool>,
    /// Whose context was on it.
    pub(super) process: Option<ProcessIdentity>,
    /// Requests that were handed to it, in their order.
    pub(super) requests: Vec<RequestLine>,
    /// How often work of that context was held to be guilty before.
    pub(super) guilty: Option<i64>,
    /// Where its batch starts and ends, if the dump says.
    pub(super) batch: Option<std::ops::Range<u64>>,
    /// Where its ring was captured, and how many bytes of it.
    pub(super) ring: Option<(u64, u64)>,
    pub(super) ppgtt: &'c Memory,
    /// Which address space that is.
    pub(super) space: usize,
    pub(super) decoder: OnceCell<Option<Decoder>>,
}

impl<'c> IntelCase<'c, '_> {
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

    /// Whether the end of a buffer was not captured.
    pub(super) fn is_cut(&self, buffer: &Buffer) -> bool {
        let block = self.blocks.iter().find(|b| b.address == Some(buffer.iova) && *b.name == *buffer.name);
        block.is_some_and(|block| self.captured_before_cut(block).is_some())
    }

    /// Dwords that were captured of a block, where its end was not.
    pub(super) fn captured_before_cut(&self, block: &MemoryBlock<'_>) -> Option<u64> {
        let lost = || block.captured_before_cut(MOST_UNPACKED);
        // A text that ends with the dump may end between two dwords.
        let ended =
            || self.ends_with(block).then(|| block.dwords(MOST_UNPACKED).unwrap_or_default().len() as u64);
        lost().or_else(ended)
    }

    /// Whether the dump ends in the text of a block: a kernel ends the line.
    pub(super) fn ends_with(&self, block: &MemoryBlock<'_>) -> bool {
        block.data.as_ref().is_some_and(|data| data.span.end >= self.source.text_len())
    }

    /// Asks for the memory at an address, should the dump hold it.
    pub(super) fn want(&self, unit: &Unit<'_, '_>, address: u64) {
        self.wanted.borrow_mut().push(Wanted::Either(unit.space, address));
    }

    /// Asks for the first buffer after an address, where it starts within so many bytes.
    pub(super) fn want_after(&self, unit: &Unit<'_, '_>, address: u64, within: u64) {
        self.wanted.borrow_mut().push(Wanted::After(unit.space, address, within));
    }

    /// Asks for all memory of an engine.
    pub(super) fn want_all(&self, unit: &Unit<'_, '_>) {
        self.wanted.borrow_mut().push(Wanted::All(unit.space));
    }

    /// The block that holds an address: what the dump calls it, where it starts, and how far into it the address is.
    pub(super) fn block_at(&self, unit: &Unit<'_, '_>, address: u64) -> Option<Args> {
        let found = unit.ppgtt.find(address).or_else(|| self.ggtt.find(address));
        if found.is_none() {
            self.want(unit, address);
        }
        found.map(|found| buffer(found, address))
    }
}

/// A block of memory, and how far into it an address is.
pub(super) fn buffer(block: &Buffer, address: u64) -> Args {
    Args::new()
        .with("block", Arg::Text(block.name.clone()))
        .with("base", Arg::Address(block.iova))
        .with("size", Arg::Value(block.size))
        .with("offset", Arg::Value(address.wrapping_sub(block.iova)))
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

    /// HEAD is at TAIL, or neither is in the dump.
    pub(super) fn has_read_all(&self) -> bool {
        let offset = |register| self.ring32(register).map(|value| value & HEAD_OFFSET);
        offset(RingRegister::Head) == offset(RingRegister::Tail)
    }

    /// Where it reads, as an address.
    pub(super) fn active_head(&self) -> Option<u64> {
        active_head(self.dump, self.ring, |address| self.ppgtt.find(address).is_some())
    }

    pub(super) fn class(&self) -> EngineClass {
        self.id.map_or(EngineClass::Render, |id| id.class)
    }

    /// Reads its commands.
    pub(super) fn decoder(&self, version: Option<Version>) -> Option<Decoder> {
        *self.decoder.get_or_init(|| version.map(|v| Decoder::new(v, self.class())))
    }

    /// Something read of it.
    pub(super) fn seen(&self, fact: Fact) -> Evidence {
        seen(&format!("engine {}", self.name()), fact, Some(self.dump.span))
    }

    /// Dwords of a command of it.
    pub(super) fn seen_command(&self, command: &CommandDwords, shown: usize) -> Evidence {
        let fact = Fact::Dwords {
            level: None,
            first: None,
            count: command.words.len() as u64,
            words: command.words.iter().take(shown).copied().collect(),
            packet: command.name.map(str::to_owned),
        };
        Evidence { iova: Some(command.address), ..self.seen(fact) }
    }

    /// A finding about it.
    pub(super) fn finding(&self, rule: Rule, trust: Trust) -> Finding {
        Finding::new(rule, trust, Subject::Engine(self.name()))
    }
}

/// A command of a stream, the first of its dwords.
#[derive(Clone, Debug)]
pub(super) struct CommandDwords {
    /// `None`: the tables have only its length.
    pub(super) name: Option<&'static str>,
    pub(super) address: u64,
    pub(super) words: Vec<u32>,
}

impl CommandDwords {
    pub(super) fn header(&self) -> u32 {
        self.words.first().copied().unwrap_or(0)
    }
}

/// Something read in a section.
pub(super) fn seen(section: &str, fact: Fact, span: Option<Span>) -> Evidence {
    Evidence { section: section.to_owned(), fact, iova: None, span }
}

/// A register's value.
pub(super) fn register(name: impl Into<Cow<'static, str>>, value: u64) -> Fact {
    Fact::Register { name: name.into(), value, fields: Vec::new() }
}

/// A register whose whole value has a name.
pub(super) fn named_register(name: &'static str, value: u64, meaning: Option<&'static str>) -> Fact {
    let field = |meaning: &'static str| FieldFact { name: name.into(), value, meaning: Some(meaning.into()) };
    Fact::Register { name: name.into(), value, fields: meaning.map(field).into_iter().collect() }
}

/// A field of a section.
pub(super) fn field(name: &'static str, value: impl Into<String>) -> Fact {
    Fact::Field { name: name.into(), value: Arg::Text(value.into()) }
}

/// Names that may be others in the next run.
pub(super) fn texts(names: impl IntoIterator<Item = String>) -> Vec<Arg> {
    names.into_iter().map(Arg::Text).collect()
}
