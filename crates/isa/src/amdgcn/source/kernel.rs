//! Kernel descriptors of a file: `.amdhsa_kernel NAME` to `.end_amdhsa_kernel`.

use super::statement::LineRest;
use super::{Relocation, SECTION_SPAN, SourcePass, SourceProblem, SymbolDef, SymbolKind};
use crate::amdgcn::descriptor::{DescriptorBuilder, DescriptorTarget, ENTRY, SIZE};

/// A descriptor that is being read.
pub(super) struct OpenKernel {
    name: String,
    builder: DescriptorBuilder,
    line: usize,
}

/// A descriptor in its section, of which only the distance to its code is missing.
pub(super) struct EmittedKernel {
    name: String,
    section: usize,
    offset: usize,
    line: usize,
}

impl SourcePass<'_> {
    pub(super) fn open_kernel(&mut self, rest: LineRest<'_>) {
        let builder = DescriptorBuilder::new(DescriptorTarget::of(self.gpu));
        self.kernel = Some(OpenKernel { name: rest.text.to_owned(), builder, line: self.line });
    }

    /// A directive between `.amdhsa_kernel` and its end.
    pub(super) fn kernel_directive(
        &mut self,
        name: &str,
        rest: LineRest<'_>,
    ) -> Result<(), (usize, SourceProblem)> {
        if name == ".end_amdhsa_kernel" {
            return self.close_kernel().map_err(|wrong| (1, wrong));
        }
        let directive = name.strip_prefix(".amdhsa_").unwrap_or_default();
        let (value, _) = self.whole_expression(rest)?;
        match self.kernel.as_mut().map(|kernel| kernel.builder.set(directive, value)) {
            Some(Err(wrong)) => Err((1, SourceProblem::Descriptor(wrong))),
            _ => Ok(()),
        }
    }

    fn close_kernel(&mut self) -> Result<(), SourceProblem> {
        let Some(kernel) = self.kernel.take() else { return Ok(()) };
        let (bytes, result) = match kernel.builder.finish() {
            Ok(bytes) => (bytes, Ok(())),
            Err(wrong) => ([0; SIZE], Err(SourceProblem::Descriptor(wrong))),
        };
        self.pad_to(SIZE as u64);
        let section = &mut self.sections[self.section];
        section.align = section.align.max(SIZE as u64);
        let offset = section.bytes.len();
        let value = self.section as i64 * SECTION_SPAN + offset as i64;
        let name = format!("{}.kd", kernel.name);
        self.define(&name, SymbolDef { value, address: true, line: kernel.line, variable: false }, 1);
        let attrs = self.attrs.entry(name).or_default();
        attrs.kind = Some(SymbolKind::Object);
        attrs.size = Some(SIZE as i64);
        attrs.global = true;
        self.put(&bytes);
        let placed = EmittedKernel { name: kernel.name, section: self.section, offset, line: kernel.line };
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
                self.error(1, SourceProblem::NoKernel(kernel.name));
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
