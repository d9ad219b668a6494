//! What the emulated processor touched, as lines of text.
//!
//! The form is that of the emulator mode of Mesa's `afuc-disasm`: a line per register or dword changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use unwedge_isa::afuc::text::push_register;
use unwedge_isa::afuc::{AfucNames, Firmware, SqeSpace};
use unwedge_sim::adreno::sqe::{SqeAccess, SqeLocation};

/// The name of a location: `$02`, `CP_SCRATCH[0].REG`, `|NRT_ADDR`, `@IB_LEVEL`, `%SP`, or its number.
pub fn location_name(location: SqeLocation, firmware: Firmware, names: &dyn AfucNames) -> String {
    let named = |space, sigil: &str, offset: u32, digits: usize| match names.register(firmware, space, offset)
    {
        Some(name) => format!("{sigil}{name}"),
        None => format!("0x{offset:0digits$x}"),
    };
    match location {
        SqeLocation::Gpr(register) => {
            let mut out = String::new();
            push_register(&mut out, register, true);
            out
        }
        SqeLocation::Gpu(offset) => named(SqeSpace::Gpu, "", offset, 4),
        SqeLocation::Pipe(offset) => named(SqeSpace::Pipe, "|", offset, 3),
        SqeLocation::Control(offset) => named(SqeSpace::Control, "@", offset, 3),
        SqeLocation::Sqe(offset) => named(SqeSpace::Sqe, "%", offset, 3),
        SqeLocation::Memory(address) => format!("0x{address:016x}"),
        SqeLocation::Table(opcode) => {
            match u8::try_from(opcode).ok().and_then(|op| names.packet(firmware, op)) {
                Some(name) => name.into_owned(),
                None => format!("UNKN{opcode}"),
            }
        }
    }
}

/// One line for a value at a location, without its newline: `              GPR:  $02: 0000beef`.
pub fn line(location: SqeLocation, value: Option<u32>, firmware: Firmware, names: &dyn AfucNames) -> String {
    let kind = match location {
        SqeLocation::Gpr(_) => "GPR:  ",
        SqeLocation::Gpu(_) => "GPU:  ",
        SqeLocation::Pipe(_) => "PIPE: ",
        SqeLocation::Control(_) => "CTRL: ",
        SqeLocation::Sqe(_) => "SQE: ",
        SqeLocation::Memory(_) => "MEM:  ",
        SqeLocation::Table(_) => "TABLE: ",
    };
    let mut out = format!("              {kind}{}: ", location_name(location, firmware, names));
    let prefix = if matches!(location, SqeLocation::Memory(_)) { "0x" } else { "" };
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
pub fn changes(log: &[SqeAccess]) -> Vec<(SqeLocation, Option<u32>)> {
    let mut last: BTreeMap<SqeLocation, Option<u32>> = BTreeMap::new();
    for access in log.iter().filter(|access| access.write) {
        last.insert(access.location, access.value);
    }
    last.into_iter().collect()
}
