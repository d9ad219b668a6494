//! What the emulated processor touched, as lines of text.
//!
//! The form is that of the emulator mode of Mesa's `afuc-disasm`: a line per register or dword changed.

use super::super::text::push_register;
use super::super::{Firmware, Names, Space};
use super::log::{Access, Place};
use std::fmt::Write as _;

/// The name of a place: `$02`, `CP_SCRATCH[0].REG`, `|NRT_ADDR`, `@IB_LEVEL`, `%SP`, or its number.
pub fn place_name(place: Place, firmware: Firmware, names: &dyn Names) -> String {
    let named = |space, sigil: &str, offset: u32, digits: usize| match names.register(firmware, space, offset)
    {
        Some(name) => format!("{sigil}{name}"),
        None => format!("0x{offset:0digits$x}"),
    };
    match place {
        Place::Gpr(register) => {
            let mut out = String::new();
            push_register(&mut out, register, true);
            out
        }
        Place::Gpu(offset) => named(Space::Gpu, "", offset, 4),
        Place::Pipe(offset) => named(Space::Pipe, "|", offset, 3),
        Place::Control(offset) => named(Space::Control, "@", offset, 3),
        Place::Sqe(offset) => named(Space::Sqe, "%", offset, 3),
        Place::Memory(address) => format!("0x{address:016x}"),
        Place::Table(opcode) => match u8::try_from(opcode).ok().and_then(|op| names.packet(firmware, op)) {
            Some(name) => name.into_owned(),
            None => format!("UNKN{opcode}"),
        },
    }
}

/// One line for a value at a place, without its newline: `              GPR:  $02: 0000beef`.
pub fn place_line(place: Place, value: Option<u32>, firmware: Firmware, names: &dyn Names) -> String {
    let kind = match place {
        Place::Gpr(_) => "GPR:  ",
        Place::Gpu(_) => "GPU:  ",
        Place::Pipe(_) => "PIPE: ",
        Place::Control(_) => "CTRL: ",
        Place::Sqe(_) => "SQE: ",
        Place::Memory(_) => "MEM:  ",
        Place::Table(_) => "TABLE: ",
    };
    let mut out = format!("              {kind}{}: ", place_name(place, firmware, names));
    let prefix = if matches!(place, Place::Memory(_)) { "0x" } else { "" };
    match value {
        Some(value) => {
            let _ = write!(out, "{prefix}{value:08x}");
        }
        None => out.push_str("unknown"),
    }
    out
}

/// What a log changed, each place once with its last value, in the order of the spaces: general, GPU, pipe, control and
/// SQE registers, memory, packet table.
pub fn changes(log: &[Access]) -> Vec<(Place, Option<u32>)> {
    let mut last: std::collections::BTreeMap<Place, Option<u32>> = std::collections::BTreeMap::new();
    for access in log.iter().filter(|access| access.write) {
        last.insert(access.place, access.value);
    }
    last.into_iter().collect()
}
