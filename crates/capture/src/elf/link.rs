//! What a linker does with one relocatable object: sections get addresses, and bytes that depend on them are filled in.
//!
//! [`CodeObject::link`] does it for all that is loaded; [`CodeObject::relocated`] does as much as one section alone tells.
//! Never: several files. Facts: LLVM's `AMDGPUUsage`, "Relocation Records".

use super::{CodeObject, ElfRelocation, ElfSection, ElfSectionKind, RelocationKind};
use std::borrow::Cow;

/// Where the first section is laid.
const FIRST: u64 = 0x1000;
/// What every section's address is at least a multiple of.
const ALIGN: u64 = 0x100;
/// The most a section's alignment counts.
const MOST_ALIGN: u64 = 1 << 20;

/// Why an object cannot be linked by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// A relocation of a symbol that the object does not list.
    #[error("a relocation of no symbol")]
    NoSymbol,
    /// A relocation of a section that the object does not have.
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
    /// Another file defines the symbol.
    #[error("{symbol} is not defined: link the file with what defines it (ld.lld -shared)")]
    Undefined {
        /// The symbol.
        symbol: String,
    },
    /// The kind of relocation is not known here.
    #[error("relocation {} of {symbol} is not known: link the file", kind.0)]
    UnknownKind {
        /// Its kind.
        kind: RelocationKind,
        /// The symbol.
        symbol: String,
    },
    /// It has bytes that its section does not have.
    #[error("a relocation of {symbol} is not within its section")]
    OutOfSection {
        /// The symbol.
        symbol: String,
    },
}

/// Addresses of symbols that code looks up in a table: the global offset table.
struct OffsetTable {
    address: u64,
    /// Indices of symbols.
    symbols: Vec<usize>,
}

impl OffsetTable {
    /// The address of the entry that holds a symbol's address.
    fn entry(&mut self, symbol: usize) -> u64 {
        let at = self.symbols.iter().position(|at| *at == symbol).unwrap_or_else(|| {
            self.symbols.push(symbol);
            self.symbols.len() - 1
        });
        self.address.wrapping_add(8 * at as u64)
    }
}

impl ElfSection<'_> {
    /// Whether a loader puts its bytes into memory.
    pub fn is_loaded(&self) -> bool {
        let kinds = [ElfSectionKind::Code, ElfSectionKind::ReadOnly, ElfSectionKind::Data];
        kinds.contains(&self.kind) && !self.bytes.is_empty()
    }
}

/// Why relocations are not resolved before the object is loaded.
pub(super) enum ResolveError {
    Link(LinkError),
    /// The address of a symbol is needed.
    Address(String),
}

impl CodeObject<'_> {
    /// Fills in the bytes that depend on distances between sections, which have their addresses. Symbols keep their offsets.
    pub(super) fn resolve(&mut self) -> Result<(), ResolveError> {
        let offsets: Vec<u64> = self.symbols.iter().map(|symbol| symbol.value).collect();
        for symbol in &mut self.symbols {
            if let Some(section) = symbol.section.and_then(|at| self.sections.get(at)) {
                symbol.value = symbol.value.wrapping_add(section.address);
            }
        }
        for relocation in std::mem::take(&mut self.relocations) {
            let Some(section) = self.sections.get(relocation.section) else { continue };
            let unloaded = section.kind == ElfSectionKind::Unloaded;
            if !section.is_loaded() && !unloaded {
                continue;
            }
            let kind = relocation.kind.name().unwrap_or("");
            // Debug information has addresses as if the object were loaded at 0.
            if !unloaded && (kind.contains("_ABS") || kind.contains("_GOT")) {
                let symbol = self.symbols.get(relocation.symbol);
                return Err(ResolveError::Address(symbol.map_or_else(String::new, |s| s.name.to_string())));
            }
            let mut table = OffsetTable { address: 0, symbols: Vec::new() };
            self.apply(&relocation, 0, &mut table).map_err(ResolveError::Link)?;
        }
        for (symbol, offset) in self.symbols.iter_mut().zip(offsets) {
            symbol.value = offset;
        }
        Ok(())
    }

    /// Whether its loaded sections have addresses.
    pub fn is_linked(&self) -> bool {
        self.sections.iter().any(|section| section.is_loaded() && section.address != 0)
    }

    /// Lays out an object whose sections have no addresses, to be loaded `base` bytes after those it gets. An object that
    /// is linked stays as it is.
    ///
    /// # Errors
    /// When a symbol is not defined in a section that is loaded, or a relocation is of a kind that is not known.
    pub fn link(&mut self, base: u64) -> Result<(), LinkError> {
        if self.is_linked() {
            return Ok(());
        }
        let mut next = FIRST;
        for section in self.sections.iter_mut().filter(|section| section.is_loaded()) {
            section.address = next.next_multiple_of(section.align.clamp(1, MOST_ALIGN).max(ALIGN));
            next = section.address + section.bytes.len() as u64;
        }
        for symbol in &mut self.symbols {
            if let Some(section) = symbol.section.and_then(|at| self.sections.get(at)) {
                symbol.value = symbol.value.wrapping_add(section.address);
            }
        }
        let mut table = OffsetTable { address: next.next_multiple_of(ALIGN), symbols: Vec::new() };
        for relocation in std::mem::take(&mut self.relocations) {
            if self.sections.get(relocation.section).is_some_and(ElfSection::is_loaded) {
                self.apply(&relocation, base, &mut table)?;
            }
        }
        if !table.symbols.is_empty() {
            let address = |at: &usize| self.symbols.get(*at).map_or(0, |symbol| symbol.value);
            let words = table.symbols.iter().map(|at| base.wrapping_add(address(at)));
            let bytes = words.flat_map(u64::to_le_bytes).collect();
            self.sections.push(ElfSection {
                name: Cow::Borrowed(".got"),
                kind: ElfSectionKind::ReadOnly,
                address: table.address,
                bytes: Cow::Owned(bytes),
                align: 8,
            });
        }
        Ok(())
    }

    /// The bytes of a section with the distances filled in that the section alone tells, and where in it (in bytes) there
    /// are dwords that are not known before the object is linked. Of a linked object there are none.
    pub fn relocated(&self, section: usize) -> (Vec<u8>, Vec<u32>) {
        let Some(held) = self.sections.get(section) else { return Default::default() };
        let (mut bytes, mut unknown) = (held.bytes.to_vec(), Vec::new());
        if held.address != 0 {
            return (bytes, unknown);
        }
        for relocation in self.relocations.iter().filter(|relocation| relocation.section == section) {
            let Ok(at) = u32::try_from(relocation.offset) else { continue };
            let symbol = self.symbols.get(relocation.symbol).filter(|symbol| symbol.section == Some(section));
            let known = symbol.and_then(|symbol| {
                let target = symbol.value.wrapping_add_signed(relocation.addend);
                relocation.kind.distance(target.wrapping_sub(relocation.offset))
            });
            let place = bytes.get_mut(at as usize..).and_then(|rest| rest.first_chunk_mut::<4>());
            match (known, place) {
                (_, None) => {}
                (Some(distance), Some(place)) => *place = distance.to_le_bytes(),
                // Eight bytes at most.
                (None, Some(_)) => {
                    unknown.extend([at, at.saturating_add(4)].iter().take(relocation.kind.dwords()));
                }
            }
        }
        (bytes, unknown)
    }

    /// The addend of a relocation whose table has none: the bytes that it fills in have it.
    pub(super) fn addend_at(&self, section: usize, offset: u64, kind: RelocationKind) -> i64 {
        let rest = self.sections.get(section).zip(usize::try_from(offset).ok());
        let rest = rest.and_then(|(section, at)| section.bytes.get(at..)).unwrap_or_default();
        match kind.dwords() {
            1 => rest.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes).into()),
            _ => rest.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes)),
        }
    }

    /// Fills in the bytes of a relocation.
    fn apply(
        &mut self,
        relocation: &ElfRelocation,
        base: u64,
        table: &mut OffsetTable,
    ) -> Result<(), LinkError> {
        let kind = relocation.kind.name().unwrap_or("");
        if kind == "R_AMDGPU_NONE" {
            return Ok(());
        }
        let symbol = self.symbols.get(relocation.symbol).ok_or(LinkError::NoSymbol)?;
        let name = || match &*symbol.name {
            "" => "a section".to_owned(),
            name => name.to_owned(),
        };
        let value = match symbol.section.and_then(|at| self.sections.get(at)) {
            Some(section) if section.is_loaded() || section.kind == ElfSectionKind::Unloaded => symbol.value,
            Some(section) => {
                let section = section.name.clone().into_owned();
                return Err(LinkError::NotLoaded { symbol: name(), section });
            }
            None => return Err(LinkError::Undefined { symbol: name() }),
        };
        let section = self.sections.get_mut(relocation.section).ok_or(LinkError::NoSection)?;
        let target = value.wrapping_add_signed(relocation.addend);
        let place = section.address.wrapping_add(relocation.offset);
        let mut entry = || table.entry(relocation.symbol).wrapping_add_signed(relocation.addend);
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
            _ => return Err(LinkError::UnknownKind { kind: relocation.kind, symbol: name() }),
        };
        let at = usize::try_from(relocation.offset).ok();
        let at = at.filter(|at| section.bytes.get(*at..).is_some_and(|rest| rest.len() >= bytes));
        let at = at.ok_or_else(|| LinkError::OutOfSection { symbol: name() })?;
        section.bytes.to_mut()[at..at + bytes].copy_from_slice(&made.to_le_bytes()[..bytes]);
        Ok(())
    }
}
