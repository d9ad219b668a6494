//! Which commands of a dump write a value to memory: who could still end a wait.
//!
//! Facts: the layouts, from Broadwell on, of the commands that write memory themselves. Never: what shaders and blits write.

use super::case::{IntelCase, Unit};
use super::stop::{self, IntelStop};
use crate::args::{Arg, Args};
use crate::awaited::{AwaitedWrite, WaitEnd, WriterOrder};
use unwedge_hw::intel::platform::Version;
use unwedge_stream::intel::commands::Command;
use unwedge_stream::intel::walk::{EventKind, Space, canonical};

/// The layouts are those from this version on.
const FIRST: Version = Version::new(8, 0);

/// Memory that a command writes by itself.
struct CommandWrite {
    address: u64,
    /// Through the global table.
    ggtt: bool,
    /// The dwords that it writes, where the command holds them; else one whose value is not known.
    values: [Option<u32>; 2],
    dwords: u64,
}

impl CommandWrite {
    /// What a command writes; `None` for those that write no memory by themselves.
    fn of(command: &Command<'_>) -> Option<CommandWrite> {
        let word = |i: usize| command.words.get(i).copied();
        let address = |i: usize| Some(canonical(u64::from(word(i + 1)?) << 32 | u64::from(word(i)? & !3)));
        let header = command.header();
        let ggtt = header >> 22 & 1 != 0;
        let unknown = |address, ggtt| Some(CommandWrite { address, ggtt, values: [None; 2], dwords: 1 });
        let quad = |address, ggtt, at: usize| {
            Some(CommandWrite { address, ggtt, values: [word(at), word(at + 1)], dwords: 2 })
        };
        if command.name()?.starts_with("PIPE_CONTROL") {
            let flags = word(1)?;
            let (address, ggtt) = (address(2)?, flags >> 24 & 1 != 0);
            // After the flush it writes nothing, its data, a count or a clock.
            return match flags >> 14 & 3 {
                0 => None,
                1 => quad(address, ggtt, 4),
                _ => unknown(address, ggtt),
            };
        }
        if header >> 29 != 0 {
            return None;
        }
        match header >> 23 {
            // MI_STORE_DATA_IMM, of a dword or two
            0x20 => {
                let dwords = 1 + u64::from(header >> 21 & 1);
                let values = [word(3), word(4).filter(|_| dwords == 2)];
                Some(CommandWrite { address: address(1)?, ggtt, values, dwords })
            }
            // MI_ATOMIC, MI_COPY_MEM_MEM
            0x2f | 0x2e => unknown(address(1)?, ggtt),
            // MI_STORE_REGISTER_MEM
            0x24 => unknown(address(2)?, ggtt),
            // MI_FLUSH_DW: after the flush its data, or a clock
            0x26 => {
                let (address, ggtt) = (address(1)?, word(1)? >> 2 & 1 != 0);
                match header >> 14 & 3 {
                    0 => None,
                    1 => quad(address, ggtt, 3),
                    _ => unknown(address, ggtt),
                }
            }
            _ => None,
        }
    }

    /// What it writes to a dword: `None` where it does not write it.
    fn dword(&self, address: u64) -> Option<Option<u32>> {
        let at = address.checked_sub(self.address).filter(|at| at / 4 < self.dwords)?;
        Some(self.values.get(usize::try_from(at / 4).ok()?).copied().flatten())
    }

    fn is_in_page(&self, page: u64) -> bool {
        self.address >> 12 == page >> 12
    }
}

/// What is looked for.
#[derive(Clone, Copy)]
enum WriteTarget<'t> {
    /// A dword that is waited for, and whether a value ends the wait.
    Dword(u64, &'t dyn Fn(u32) -> bool),
    /// Any byte of a page.
    Page(u64),
}

/// The commands that write what an engine waits for, looked for in the streams of all engines. `ends` says whether a value
/// ends the wait. `None` before Broadwell, whose commands are not looked at.
pub(super) fn find(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    (awaited, ggtt): (u64, bool),
    ends: &dyn Fn(u32) -> bool,
) -> Option<WaitEnd> {
    find_any(case, unit, stop, WriteTarget::Dword(awaited, ends), ggtt)
}

/// The command that writes to a page: `command`, `address`, `engine`, `order`.
pub(super) fn of_page(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    (page, ggtt): (u64, bool),
) -> Option<Args> {
    Some(find_any(case, unit, stop, WriteTarget::Page(page), ggtt)?.writer()?.into_args())
}

/// Writes of one stream that are kept after the wait, or of another stream.
const MOST: usize = 64;

fn find_any(
    case: &IntelCase<'_, '_>,
    unit: &Unit<'_, '_>,
    stop: &IntelStop,
    target: WriteTarget<'_>,
    ggtt: bool,
) -> Option<WaitEnd> {
    if case.version? < FIRST {
        return None;
    }
    let waits_at = stop.command.as_ref()?.address;
    let mut found: Vec<AwaitedWrite> = Vec::new();
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
            let mut order = if own { WriterOrder::Earlier } else { WriterOrder::Elsewhere };
            let mut of_walk: Vec<AwaitedWrite> = Vec::new();
            for event in walk {
                let EventKind::Command(command) = event.kind else { continue };
                if own && event.address == waits_at {
                    order = WriterOrder::Later;
                }
                let Some(write) = CommandWrite::of(&command) else { continue };
                if write.ggtt != ggtt && !(event.space == Space::Ggtt && ggtt) {
                    continue;
                }
                let (value, ends) = match target {
                    WriteTarget::Dword(address, ends) => match write.dword(address) {
                        Some(value) => (value, value.map(ends)),
                        None => continue,
                    },
                    WriteTarget::Page(page) if write.is_in_page(page) => (None, None),
                    WriteTarget::Page(_) => continue,
                };
                if order == WriterOrder::Earlier {
                    // Only the newest counts.
                    of_walk.clear();
                }
                let word = match order {
                    WriterOrder::Later => "later",
                    WriterOrder::Elsewhere => "other-engine",
                    WriterOrder::Earlier => "earlier",
                };
                let args = Args::new()
                    .with("command", Arg::name(command.name().unwrap_or_default()))
                    .with("address", Arg::Address(event.address))
                    .with("engine", Arg::name(of.name()))
                    .with("order", Arg::name(word));
                of_walk.push(AwaitedWrite { order, args, value: value.map(u64::from), ends });
                if of_walk.len() >= MOST {
                    break;
                }
            }
            found.append(&mut of_walk);
        }
    }
    Some(WaitEnd::of(&found))
}
