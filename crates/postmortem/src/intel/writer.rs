//! Which commands of a dump write a value to memory: who could still end a wait.
//!
//! Facts: the layouts, from Broadwell on, of the commands that write memory themselves. Never: what shaders and blits write.

use super::case::{IntelCase, Unit};
use super::stop::{self, IntelStop};
use crate::args::{Arg, Args};
use unwedge_hw::intel::platform::Version;
use unwedge_stream::intel::commands::Command;
use unwedge_stream::intel::walk::{EventKind, Space, canonical};

/// The layouts are those from this version on.
const FIRST: Version = Version::new(8, 0);

/// Where a writer is, seen from the command that waits. The order is that in which they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WriterOrder {
    /// After it in the same stream: it is never reached.
    Later,
    /// In the stream of another engine, which may still run.
    OtherEngine,
    /// Before it in the same stream.
    Earlier,
}

/// Which command writes the awaited memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryWriter {
    command: &'static str,
    address: u64,
    engine: String,
    order: WriterOrder,
}

impl MemoryWriter {
    pub(super) fn order(&self) -> WriterOrder {
        self.order
    }

    /// `command`, `address`, `engine`, `order`.
    pub(super) fn args(&self) -> Args {
        let order = match self.order {
            WriterOrder::Later => "later",
            WriterOrder::OtherEngine => "other-engine",
            WriterOrder::Earlier => "earlier",
        };
        Args::new()
            .with("command", Arg::name(self.command))
            .with("address", Arg::Address(self.address))
            .with("engine", Arg::name(self.engine.clone()))
            .with("order", Arg::name(order))
    }
}

/// The memory that a command writes by itself: its address, and whether it is through the global table.
fn written(command: &Command<'_>) -> Option<(u64, bool)> {
    let word = |i: usize| command.words.get(i).copied();
    let address = |i: usize| Some(canonical(u64::from(word(i + 1)?) << 32 | u64::from(word(i)? & !3)));
    let header = command.header();
    let ggtt = header >> 22 & 1 != 0;
    if command.name()?.starts_with("PIPE_CONTROL") {
        let flags = word(1)?;
        let writes = flags >> 14 & 3 != 0;
        return writes.then_some((address(2)?, flags >> 24 & 1 != 0));
    }
    if header >> 29 != 0 {
        return None;
    }
    match header >> 23 {
        // MI_STORE_DATA_IMM, MI_ATOMIC, MI_COPY_MEM_MEM
        0x20 | 0x2f | 0x2e => Some((address(1)?, ggtt)),
        // MI_STORE_REGISTER_MEM
        0x24 => Some((address(2)?, ggtt)),
        // MI_FLUSH_DW with an operation after the flush
        0x26 if header >> 14 & 3 != 0 => Some((address(1)?, word(1)? >> 2 & 1 != 0)),
        _ => None,
    }
}

/// The command that writes what an engine waits for, looked for in the streams of all engines; `Some(None)`: none does.
/// `None` before Broadwell, whose commands are not looked at.
pub(super) fn find(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    (awaited, ggtt): (u64, bool),
) -> Option<Option<MemoryWriter>> {
    find_any(case, unit, stop, &|address| address == awaited, ggtt)
}

/// The command that writes to a page.
pub(super) fn of_page(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    (page, ggtt): (u64, bool),
) -> Option<MemoryWriter> {
    find_any(case, unit, stop, &|address| address >> 12 == page >> 12, ggtt)?
}

fn find_any(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    is_there: &dyn Fn(u64) -> bool,
    ggtt: bool,
) -> Option<Option<MemoryWriter>> {
    if case.version? < FIRST {
        return None;
    }
    let waits_at = stop.command.as_ref()?.address;
    let mut found: Vec<MemoryWriter> = Vec::new();
    for of in &case.engines {
        let own = std::ptr::eq(of, unit);
        // Addresses of another address space are other memory.
        if !ggtt && of.space != unit.space {
            continue;
        }
        let Some(decoder) = of.decoder(case.version) else { continue };
        for (start, walk) in stop::starts(case, of, decoder) {
            if own && Some(start) != stop.start {
                continue;
            }
            let mut order = if own { WriterOrder::Earlier } else { WriterOrder::OtherEngine };
            for event in walk {
                let EventKind::Command(command) = event.kind else { continue };
                if own && event.address == waits_at {
                    order = WriterOrder::Later;
                }
                let Some((address, through_ggtt)) = written(&command) else { continue };
                let same = through_ggtt == ggtt || event.space == Space::Ggtt && ggtt;
                if same && is_there(address) {
                    let command = command.name().unwrap_or_default();
                    found.push(MemoryWriter { command, address: event.address, engine: of.name(), order });
                    break;
                }
            }
        }
    }
    Some(found.into_iter().min_by_key(MemoryWriter::order))
}
