//! What objects of HSA v2 hold: headers before their kernels, and notes of their version, their GPU and their metadata.
//!
//! Facts: LLVM's `AMDGPUUsage` ("Code Object V2"), and the notes that LLVM 14 writes. Never: what a field of a header means.

use super::note::{ElfNote, notes};
use super::{CodeObject, ElfSectionKind, ElfSymbol, ElfSymbolKind, PROCESSORS};
use std::borrow::Cow;
use std::collections::HashMap;
use unwedge_isa::amdgcn::kernel_code::SIZE;

/// Owner of the notes.
const OWNER: &[u8] = b"AMD\0";
/// Type of the note of the version: two numbers.
const NT_VERSION: u32 = 1;
/// Type of the note of the GPU: sizes of two names, three numbers, the names.
const NT_ISA: u32 = 3;
/// Type of the note of metadata: YAML.
const NT_METADATA: u32 = 10;
/// Type of the note that names the GPU: `amdgcn-amd-amdhsa--gfx803`.
const NT_ISA_NAME: u32 = 11;

impl CodeObject<'_> {
    fn notes_of_v2(&self) -> impl Iterator<Item = ElfNote<'_>> {
        let sections = self.sections.iter().filter(|section| section.kind == ElfSectionKind::Note);
        sections.flat_map(|section| notes(&section.bytes)).filter(|note| note.owner == OWNER)
    }

    fn note_of_v2(&self, kind: u32) -> Option<&[u8]> {
        self.notes_of_v2().find(|note| note.kind == kind).map(|note| note.contents)
    }

    /// The version of an object of HSA v2 by its note, major and minor.
    pub fn hsa_v2_version(&self) -> Option<(u32, u32)> {
        let numbers = self.note_of_v2(NT_VERSION)?.as_chunks::<4>().0;
        let number = |at: usize| numbers.get(at).map(|bytes| u32::from_le_bytes(*bytes));
        Some((number(0)?, number(1)?))
    }

    /// The metadata of HSA v2, which is text.
    pub fn text_metadata(&self) -> Option<Cow<'_, str>> {
        let text = self.note_of_v2(NT_METADATA)?;
        Some(String::from_utf8_lossy(text.strip_suffix(b"\0").unwrap_or(text)))
    }

    /// The processor by notes, where `e_flags` do not name it: compilers before LLVM 7 left that out.
    pub(super) fn processor_of_notes(&self) -> Option<&'static str> {
        let known = |name: &str| PROCESSORS.iter().map(|p| p.name).find(|known| *known == name);
        let by_version = self.note_of_v2(NT_ISA).and_then(|note| {
            let number = |at: usize| note.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
            known(&format!("gfx{}{}{:x}", number(4)?, number(8)?, number(12)?))
        });
        by_version.or_else(|| {
            let name = std::str::from_utf8(self.note_of_v2(NT_ISA_NAME)?).ok()?;
            let processor = name.get(name.rfind("-gfx")? + 1..)?;
            known(processor.split(['+', ':', '\0']).next().unwrap_or_default())
        })
    }

    /// The headers of kernels of HSA v2 by name: 256 bytes each, of which `isa` knows the bits.
    pub(super) fn kernel_headers(&self) -> HashMap<&str, &[u8; SIZE]> {
        let mut all = HashMap::new();
        for symbol in self.symbols.iter().filter(|symbol| symbol.kind == ElfSymbolKind::HsaKernel) {
            if let Some(header) = self.kernel_header(symbol) {
                all.entry(&*symbol.name).or_insert(header);
            }
        }
        all
    }

    fn kernel_header(&self, symbol: &ElfSymbol<'_>) -> Option<&[u8; SIZE]> {
        let section = self.sections.get(symbol.section?)?;
        section.bytes.get(self.offset(section, symbol.value)?..)?.first_chunk()
    }
}
