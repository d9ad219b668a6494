//! What a linker does for one relocatable object: sections get addresses, and bytes that depend on them are filled in.
//! Never: several files.
//!
//! Facts: LLVM's `AMDGPUUsage`, "Relocation Records".

use std::borrow::Cow;
use unwedge_capture::code_object::{CodeObject, Relocation, Section, SectionKind};

/// Why an object cannot be laid out in memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// A relocation names a symbol that the object does not have.
    #[error("a relocation of no symbol")]
    NoSymbol,
    /// A relocation names a section that the object does not have.
    #[error("a relocation of no section")]
    NoSection,
    /// The symbol is in a section that is not loaded.
    #[error("{symbol} is in {section}, which is not loaded: link the file")]
    NotLoaded {
        /// The symbol.
        symbol: String,
        /// Its section.
        section: String,
    },
    /// The symbol is defined in another object.
    #[error("{0} is not defined: link the file with what defines it (ld.lld -shared)")]
    Undefined(String),
    /// The kind of relocation is not known.
    #[error("relocation {number} of {symbol} is not known: link the file")]
    UnknownRelocation {
        /// The kind's number.
        number: u32,
        /// The symbol.
        symbol: String,
    },
    /// The bytes to be filled in are past the end of their section.
    #[error("a relocation of {0} is not within its section")]
    OutsideSection(String),
}

/// Where the first section is laid.
const FIRST: u64 = 0x1000;
/// What every section's address is at least a multiple of.
const ALIGN: u64 = 0x100;
/// The most a section's alignment counts.
const MOST_ALIGN: u64 = 1 << 20;

fn is_loaded(section: &Section<'_>) -> bool {
    let kinds = [SectionKind::Code, SectionKind::ReadOnly, SectionKind::Data];
    kinds.contains(&section.kind) && !section.bytes.is_empty()
}

/// Lays out an object whose sections have no addresses, to be loaded `base` bytes after those it gets. A linked one stays.
///
/// # Errors
///
/// [`LinkError`] where a relocation needs what the object does not hold.
pub fn link(object: &mut CodeObject<'_>, base: u64) -> Result<(), LinkError> {
    if object.sections.iter().filter(|section| is_loaded(section)).any(|section| section.address != 0) {
        return Ok(());
    }
    let mut next = FIRST;
    for section in object.sections.iter_mut().filter(|section| is_loaded(section)) {
        section.address = next.next_multiple_of(section.align.clamp(1, MOST_ALIGN).max(ALIGN));
        next = section.address + section.bytes.len() as u64;
    }
    for symbol in &mut object.symbols {
        if let Some(section) = symbol.section.and_then(|at| object.sections.get(at)) {
            symbol.value = symbol.value.wrapping_add(section.address);
        }
    }
    // Addresses of symbols, of which code asks for the place.
    let mut table: Vec<usize> = Vec::new();
    let table_address = next.next_multiple_of(ALIGN);
    for relocation in std::mem::take(&mut object.relocations) {
        let loaded = object.sections.get(relocation.section).is_some_and(is_loaded);
        if loaded {
            apply(object, &relocation, base, &mut table, table_address)?;
        }
    }
    if !table.is_empty() {
        let address = |at: &usize| object.symbols.get(*at).map_or(0, |symbol| symbol.value);
        let bytes = table.iter().flat_map(|at| base.wrapping_add(address(at)).to_le_bytes()).collect();
        object.sections.push(Section {
            name: Cow::Borrowed(".got"),
            kind: SectionKind::ReadOnly,
            address: table_address,
            bytes: Cow::Owned(bytes),
            align: 8,
        });
    }
    Ok(())
}

/// Fills in the bytes of a relocation.
fn apply(
    object: &mut CodeObject<'_>,
    relocation: &Relocation,
    base: u64,
    table: &mut Vec<usize>,
    table_address: u64,
) -> Result<(), LinkError> {
    let kind = relocation.kind.name().unwrap_or("");
    if kind == "R_AMDGPU_NONE" {
        return Ok(());
    }
    let symbol = object.symbols.get(relocation.symbol).ok_or(LinkError::NoSymbol)?;
    let held = symbol.section.and_then(|at| object.sections.get(at));
    let shown = if symbol.name.is_empty() { "a section".into() } else { symbol.name.clone() };
    let value = match held {
        Some(section) if is_loaded(section) => symbol.value,
        Some(section) => {
            return Err(LinkError::NotLoaded {
                symbol: shown.into_owned(),
                section: section.name.to_string(),
            });
        }
        None => {
            return Err(LinkError::Undefined(shown.into_owned()));
        }
    };
    let section = object.sections.get_mut(relocation.section).ok_or(LinkError::NoSection)?;
    let target = value.wrapping_add_signed(relocation.addend);
    let place = section.address.wrapping_add(relocation.offset);
    let mut entry = || {
        let at = table.iter().position(|at| *at == relocation.symbol).unwrap_or_else(|| {
            table.push(relocation.symbol);
            table.len() - 1
        });
        table_address.wrapping_add(8 * at as u64).wrapping_add_signed(relocation.addend)
    };
    let absolute = base.wrapping_add(target);
    let distance = relocation.kind.distance(target.wrapping_sub(place));
    let (made, bytes) = match kind {
        _ if let Some(distance) = distance => (distance.into(), 4),
        "R_AMDGPU_ABS32_LO" | "R_AMDGPU_ABS32" => (absolute, 4),
        "R_AMDGPU_ABS32_HI" => (absolute >> 32, 4),
        "R_AMDGPU_ABS64" => (absolute, 8),
        "R_AMDGPU_REL64" => (target.wrapping_sub(place), 8),
        "R_AMDGPU_GOTPCREL" | "R_AMDGPU_GOTPCREL32_LO" => (entry().wrapping_sub(place), 4),
        "R_AMDGPU_GOTPCREL32_HI" => (entry().wrapping_sub(place) >> 32, 4),
        _ => {
            return Err(LinkError::UnknownRelocation {
                number: relocation.kind.0,
                symbol: shown.into_owned(),
            });
        }
    };
    let at = usize::try_from(relocation.offset).ok();
    let at = at.filter(|at| section.bytes.get(*at..).is_some_and(|rest| rest.len() >= bytes));
    let at = at.ok_or_else(|| LinkError::OutsideSection(shown.into_owned()))?;
    section.bytes.to_mut()[at..at + bytes].copy_from_slice(&made.to_le_bytes()[..bytes]);
    Ok(())
}
