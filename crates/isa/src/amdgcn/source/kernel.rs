//! Kernel descriptors of a file: `.amdhsa_kernel NAME` to `.end_amdhsa_kernel`.

use super::statement::Line;
use super::{Known, Pass, Relocation, SECTION_SPAN, SymbolKind, Wrong};
use crate::amdgcn::descriptor::{Builder, ENTRY, SIZE, Target};

/// A descriptor that is being read.
pub(super) struct Kernel {
    name: String,
    builder: Builder,
    line: usize,
}

/// A descriptor in its section, of which only the distance to its code is missing.
pub(super) struct Placed {
    name: String,
    section: usize,
    offset: usize,
    line: usize,
}

impl Pass<'_> {
    pub(super) fn open_kernel(&mut self, rest: Line<'_>) {
        let builder = Builder::new(Target::of(self.gpu));
        self.kernel = Some(Kernel { name: rest.text.to_owned(), builder, line: self.line });
    }

    /// A directive between `.amdhsa_kernel` and its end.
    pub(super) fn kernel_directive(&mut self, name: &str, rest: Line<'_>) -> Result<(), (usize, Wrong)> {
        if name == ".end_amdhsa_kernel" {
            return self.close_kernel().map_err(|wrong| (1, wrong));
        }
        let directive = name.strip_prefix(".amdhsa_").unwrap_or_default();
        let (value, _) = self.whole_expression(rest)?;
        match self.kernel.as_mut().map(|kernel| kernel.builder.set(directive, value)) {
            Some(Err(wrong)) => Err((1, Wrong::Descriptor(wrong))),
            _ => Ok(()),
        }
    }

    fn close_kernel(&mut self) -> Result<(), Wrong> {
        let Some(kernel) = self.kernel.take() else { return Ok(()) };
        let (bytes, result) = match kernel.builder.finish() {
            Ok(bytes) => (bytes, Ok(())),
            Err(wrong) => ([0; SIZE], Err(Wrong::Descriptor(wrong))),
        };
        self.pad_to(SIZE as u64);
        let section = &mut self.sections[self.section];
        section.align = section.align.max(SIZE as u64);
        let offset = section.bytes.len();
        let value = self.section as i64 * SECTION_SPAN + offset as i64;
        let name = format!("{}.kd", kernel.name);
        self.define(&name, Known { value, address: true, line: kernel.line, variable: false }, 1);
        let said = self.said.entry(name).or_default();
        said.kind = Some(SymbolKind::Object);
        said.size = Some(SIZE as i64);
        said.global = true;
        self.put(&bytes);
        let placed = Placed { name: kernel.name, section: self.section, offset, line: kernel.line };
        self.kernels.push(placed);
        result
    }

    /// Writes into each descriptor how far away its code is. That is known where both are in one section; otherwise it is
    /// left to who places the sections.
    pub(super) fn place_kernels(&mut self) {
        for kernel in std::mem::take(&mut self.kernels) {
            let code = self.defined.get(&kernel.name).filter(|known| known.address);
            let Some(code) = code.map(|known| known.value) else {
                self.line = kernel.line;
                self.error(1, Wrong::NoKernel(kernel.name));
                continue;
            };
            if code / SECTION_SPAN != kernel.section as i64 {
                let offset = kernel.offset + ENTRY;
                let addend = ENTRY as i64;
                self.relocations.push(Relocation {
                    section: kernel.section,
                    offset,
                    symbol: kernel.name,
                    addend,
                });
                continue;
            }
            let distance = code % SECTION_SPAN - kernel.offset as i64;
            let at = kernel.offset + ENTRY;
            if let Some(slot) = self.sections[kernel.section].bytes.get_mut(at..at + 8) {
                slot.copy_from_slice(&distance.to_le_bytes());
            }
        }
    }
}
