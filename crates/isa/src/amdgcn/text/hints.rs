//! Names that are values of modifiers: formats of typed buffers, temporal hints, scopes. The names of formats are `hw`'s.
//!
//! Facts: AMD's ISA manuals, and the names LLVM 19 prints per generation.

use super::line::LineBuf;
use crate::amdgcn::Gpu;
use crate::amdgcn::model::{Trait, Traits};
use unwedge_hw::amd::formats;

/// The format that is not written.
pub(super) const DEFAULT: i32 = 1;

/// Appends a buffer format, unless it is the one that is not written.
pub(super) fn write_format(format: i32, gpu: &Gpu, out: &mut LineBuf) {
    if format == DEFAULT {
        return;
    }
    out.push_str(" format:");
    let code = format as usize & 127;
    if let Some(names) = formats::unified_buffer(gpu.generation()) {
        match names.get(code) {
            Some(name) => {
                out.push_str("[BUF_FMT_");
                out.push_str(name);
                out.push(b']');
            }
            None => out.decimal(code as i64),
        }
        return;
    }
    let (data, number) = (code & 15, code >> 4);
    out.push(b'[');
    if data != 1 {
        out.push_str("BUF_DATA_FORMAT_");
        out.push_str(formats::BUFFER_DATA[data]);
    }
    if data != 1 && number != 0 {
        out.push(b',');
    }
    if number != 0 {
        out.push_str("BUF_NUM_FORMAT_");
        out.push_str(formats::buffer_number(number as u32, gpu.generation()));
    }
    out.push(b']');
}

/// A format by the names in its brackets; `None`: the GPU has none of these names.
pub(super) fn format(first: &str, second: Option<&str>, gpu: &Gpu) -> Option<i32> {
    if let Some(name) = first.strip_prefix("BUF_FMT_") {
        let names = formats::unified_buffer(gpu.generation()).filter(|_| second.is_none())?;
        return names.iter().position(|have| *have == name).map(|code| code as i32);
    }
    let (mut data, mut number) = (None, None);
    for name in [Some(first), second].into_iter().flatten() {
        if let Some(name) = name.strip_prefix("BUF_DATA_FORMAT_") {
            let code = formats::BUFFER_DATA.iter().position(|have| *have == name)?;
            if data.replace(code).is_some() {
                return None;
            }
        } else {
            let name = name.strip_prefix("BUF_NUM_FORMAT_")?;
            let code =
                (0..8usize).find(|code| formats::buffer_number(*code as u32, gpu.generation()) == name)?;
            if number.replace(code).is_some() {
                return None;
            }
        }
    }
    let (data, number) = (data.unwrap_or(1), number.unwrap_or(0));
    match formats::unified_buffer(gpu.generation()) {
        None => Some((data | number << 4) as i32),
        // The unified format is named as both together.
        Some(_) if data == 0 => (number == 0).then_some(0),
        Some(names) => {
            let parts = (formats::BUFFER_DATA[data], formats::buffer_number(number as u32, gpu.generation()));
            let same = |name: &&str| {
                name.strip_prefix(parts.0).and_then(|rest| rest.strip_prefix('_')) == Some(parts.1)
            };
            names.iter().position(same).map(|code| code as i32)
        }
    }
}

/// Names of scopes, by code.
const SCOPES: [&str; 4] = ["CU", "SE", "DEV", "SYS"];

/// The scope of the whole system, where a hint means something else.
const SYSTEM: i32 = 3;

/// Hints of loads; the fourth is another in the scope of the system.
const LOAD: [&str; 7] = ["RT", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT"];

/// Hints of stores, likewise.
const STORE: [&str; 8] = ["RT", "NT", "HT", "RT_WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"];

/// Hints of atomics, by the names that LLVM takes.
const ATOMIC: [(&str, i32); 7] = [
    ("RT", 0),
    ("RETURN", 1),
    ("RT_RETURN", 1),
    ("NT", 2),
    ("NT_RETURN", 3),
    ("CASCADE_RT", 4),
    ("CASCADE_NT", 6),
];

/// In all but the scope of the system, the hint that says to bypass there.
const BYPASS: i32 = 3;

/// Appends a temporal hint and a scope, unless they say nothing. LLVM 23 has another name for one.
pub(super) fn write_hint(th: i32, scope: i32, traits: Traits, llvm23: bool, out: &mut LineBuf) {
    if th != 0 {
        out.push_str(" th:");
        if traits.has(Trait::Atomic) {
            out.push_str("TH_ATOMIC_");
            match (th, scope) {
                (1..=3, _) => out.push_str(["", "RETURN", "NT", "NT_RETURN"][th as usize]),
                (4, 2..) => out.push_str("CASCADE_RT"),
                (6, 2..) => out.push_str("CASCADE_NT"),
                _ => out.hex(th as u64),
            }
        } else {
            let store = traits.has(Trait::Store);
            let name = if store { STORE.get(th as usize) } else { LOAD.get(th as usize) };
            match name {
                None => out.hex(th as u64),
                Some(name) => {
                    out.push_str(if store { "TH_STORE_" } else { "TH_LOAD_" });
                    out.push_str(match name {
                        _ if th == BYPASS && scope == SYSTEM => "BYPASS",
                        &"RT_WB" if llvm23 => "WB",
                        name => name,
                    });
                }
            }
        }
    }
    if scope != 0 {
        out.push_str(" scope:SCOPE_");
        out.push_str(SCOPES[scope as usize & 3]);
    }
}

/// A hint as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hint {
    /// Its code.
    pub(super) code: i32,
    /// Written as bypassing, which it does in the scope of the system only.
    pub(super) bypass: bool,
}

/// A temporal hint by its name; `None`: instructions of this kind have none of that name.
pub(super) fn hint(name: &str, traits: Traits) -> Option<Hint> {
    let plain = |code: i32| Hint { code, bypass: false };
    // Loads have no name for the last.
    if name == "0x7" && !traits.has(Trait::Atomic) && !traits.has(Trait::Store) {
        return Some(plain(7));
    }
    if name == "TH_DEFAULT" {
        return Some(plain(0));
    }
    if traits.has(Trait::Atomic) {
        let name = name.strip_prefix("TH_ATOMIC_")?;
        if let Some(code) = name.strip_prefix("0x").and_then(|code| code.parse().ok()) {
            return (4..8).contains(&code).then_some(plain(code));
        }
        return ATOMIC.iter().find(|(have, _)| *have == name).map(|(_, code)| plain(*code));
    }
    let (name, names): (_, &[&str]) = if traits.has(Trait::Store) {
        (name.strip_prefix("TH_STORE_")?, &STORE)
    } else {
        (name.strip_prefix("TH_LOAD_")?, &LOAD)
    };
    if name == "BYPASS" {
        return Some(Hint { code: BYPASS, bypass: true });
    }
    // LLVM 23's name of the fourth.
    let name = if name == "WB" && traits.has(Trait::Store) { "RT_WB" } else { name };
    names.iter().position(|have| *have == name).map(|code| plain(code as i32))
}

/// Whether a hint may stand with a scope. LLVM takes the code of an atomic that returns and is not temporal for a bypass;
/// the hardware does not.
pub(super) fn valid(hint: Hint, scope: i32, traits: Traits) -> bool {
    traits.has(Trait::Atomic) || hint.code != BYPASS || hint.bypass == (scope == SYSTEM)
}

/// A scope by its name.
pub(super) fn scope(name: &str) -> Option<i32> {
    let name = name.strip_prefix("SCOPE_")?;
    SCOPES.iter().position(|have| *have == name).map(|code| code as i32)
}
