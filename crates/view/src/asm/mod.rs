//! Instructions of every instruction set, and what checker and emulator find, as `afuc`, `ir2`, `ir3`, `eu` and `amd` show them.
//!
//! Never: reads a file, talks to a terminal.

pub mod afuc;
pub mod amd;
pub mod amd_shaders;
pub mod check;
mod errors;
pub mod eu;
pub mod eu_check;
pub mod hex;
pub mod ir2;
pub mod ir3;
pub mod ir3_check;
#[cfg(feature = "sim")]
pub mod launch;
#[cfg(feature = "sim")]
pub mod run;
pub mod shader_code;
pub mod shaders;
#[cfg(feature = "sim")]
pub mod sqe_log;
#[cfg(feature = "sim")]
pub mod sqe_session;
#[cfg(feature = "sim")]
pub mod step;

pub use errors::{AsmError, LineError, NoFunction, SourceError, SourceErrors, not_text};

use unwedge_check::Level;
use unwedge_isa::amdgcn::regs;

/// A level of a check's findings by its name, as options have it.
///
/// # Errors
/// When there is no such level.
pub fn level_of(name: &str) -> Result<Level, String> {
    Level::from_name(name).ok_or_else(|| format!("{name} is not error, warning or note"))
}

/// A number: decimal, or hexadecimal after `0x`.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The number of a scalar register of an AMD GPU.
pub fn scalar(name: &str) -> Option<u16> {
    let numbered = |prefix: &str| name.strip_prefix(prefix).and_then(|digits| digits.parse::<u16>().ok());
    match (numbered("s"), numbered("ttmp")) {
        (Some(n), _) if n < 106 => Some(n),
        (_, Some(n)) if n < 16 => Some(regs::Reg::TTMP0.0 + n),
        _ => regs::special(name).map(|reg| reg.0).filter(|n| *n < 136),
    }
}
