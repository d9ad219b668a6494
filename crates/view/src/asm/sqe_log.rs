//! What the emulated processor touched, as lines of text.
//!
//! The form is that of the emulator mode of Mesa's `afuc-disasm`: a line per register or dword changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use unwedge_isa::afuc::text::push_register;
use unwedge_isa::afuc::{AfucNames, Firmware, SqeSpace};
use unwedge_sim::adreno::sqe::{Access, Location};

/// The name of a location: `$02`, `CP_SCRATCH[0].REG`, `|NRT_ADDR`, `@IB_LEVEL`, `%SP`, or its number.
pub fn location_name(location: Location, firmware: Firmware, names: &dyn AfucNames) -> String {
    let named = |space, sigil: &str, offset: u32, digits: usize| match names.register(firmware, space, offset)
    {
        Some(name) => format!("{sigil}{name}"),
        None => format!("0x{offset:0digits$x}"),
    };
    match location {
        Location::Gpr(register) => {
            let mut out = String::new();
            push_register(&mut out, register, true);
            out
        }
        Location::Gpu(offset) => named(SqeSpace::Gpu, "", offset, 4),
        Location::Pipe(offset) => named(SqeSpace::Pipe, "|", offset, 3),
        Location::Control(offset) => named(SqeSpace::Control, "@", offset, 3),
        Location::Sqe(offset) => named(SqeSpace::Sqe, "%", offset, 3),
        Location::Memory(address) => format!("0x{address:016x}"),
        Location::Table(opcode) => {
            match u8::try_from(opcode).ok().and_then(|op| names.packet(firmware, op)) {
                Some(name) => name.into_owned(),
                None => format!("UNKN{opcode}"),
            }
        }
    }
}

/// One line for a value at a location, without its newline: `              GPR:  $02: 0000beef`.
pub fn line(location: Location, value: Option<u32>, firmware: Firmware, names: &dyn AfucNames) -> String {
    let kind = match location {
        Location::Gpr(_) => "GPR:  ",
        Location::Gpu(_) => "GPU:  ",
        Location::Pipe(_) => "PIPE: ",
        Location::Control(_) => "CTRL: ",
        Location::Sqe(_) => "SQE: ",
        Location::Memory(_) => "MEM:  ",
        Location::Table(_) => "TABLE: ",
    };
    let mut out = format!("              {kind}{}: ", location_name(location, firmware, names));
    let prefix = if matches!(location, Location::Memory(_)) { "0x" } else { "" };
    match value {
        Some(value) => {
            let _ = write!(out, "{prefix}{value:08x}");
        }
        None => out.push_str("unknown"),
    }
    out
}

/// What a log changed, each location once with its last value, in the order of the spaces: general, GPU, pipe, control and
/// SQE registers, memory, packet table.
pub fn changes(log: &[Access]) -> Vec<(Location, Option<u32>)> {
    let mut last: BTreeMap<Location, Option<u32>> = BTreeMap::new();
    for access in log.iter().filter(|access| access.write) {
        last.insert(access.location, access.value);
    }
    last.into_iter().collect()
}
