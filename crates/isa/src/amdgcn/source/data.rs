//! Directives: sections, symbols, data, alignment.

use super::statement::{LineRest, quoted};
use super::target::SourceTarget;
use super::{Metadata, MetadataLine};
use super::{SourcePass, SourceProblem, SourceSection, SourceSectionKind, SymbolKind};

/// Directives that change nothing here: they speak to debuggers and linkers.
const IGNORED: [&str; 16] = [
    ".warning",
    ".print",
    ".ident",
    ".local",
    ".weak",
    ".hidden",
    ".protected",
    ".internal",
    ".addrsig",
    ".addrsig_sym",
    ".amd_amdgpu_isa",
    ".p2alignl",
    ".cfi_sections",
    ".cfi_startproc",
    ".cfi_endproc",
    ".end",
];

impl SourcePass<'_> {
    /// A line that starts with a point.
    pub(super) fn directive(&mut self, line: LineRest<'_>) {
        let (name, rest) = line.word();
        let result = if self.kernel.is_some() {
            self.kernel_directive(name, rest)
        } else {
            self.known(name, line, rest)
        };
        if let Err((column, wrong)) = result {
            self.error(column, wrong);
        }
    }

    fn known(
        &mut self,
        name: &str,
        line: LineRest<'_>,
        rest: LineRest<'_>,
    ) -> Result<(), (usize, SourceProblem)> {
        match name {
            ".text" => self.enter(".text", SourceSectionKind::Code),
            ".data" => self.enter(".data", SourceSectionKind::Data),
            ".rodata" => self.enter(".rodata", SourceSectionKind::ReadOnly),
            ".bss" => self.enter(".bss", SourceSectionKind::Zeros),
            ".section" | ".pushsection" => return self.section(rest),
            ".previous" | ".popsection" => std::mem::swap(&mut self.section, &mut self.previous),
            ".byte" => return self.data(rest, 1),
            ".short" | ".hword" | ".2byte" | ".value" => return self.data(rest, 2),
            ".long" | ".int" | ".4byte" | ".word" => return self.data(rest, 4),
            ".quad" | ".8byte" => return self.data(rest, 8),
            ".ascii" => return self.strings(rest, false),
            ".asciz" | ".string" => return self.strings(rest, true),
            ".p2align" | ".align" | ".balign" => return self.align(name, rest),
            ".fill" => return self.repeat(rest),
            ".zero" | ".skip" | ".space" => return self.space(rest),
            ".org" => return self.org(rest),
            ".set" | ".equ" => return self.set(rest, true),
            ".equiv" => return self.set(rest, false),
            ".globl" | ".global" => {
                for name in rest.parts() {
                    self.attrs.entry(name.text.to_owned()).or_default().global = true;
                }
            }
            ".type" => return self.kind(rest),
            ".size" => return self.size(rest),
            ".file" => return self.source_file(rest),
            ".loc" => return self.source_line(rest),
            ".amdgcn_target" => return self.target(rest),
            ".amdhsa_code_object_version" => {
                let (value, _) = self.whole_expression(rest)?;
                self.version = u32::try_from(value).ok();
            }
            ".amdhsa_kernel" => self.open_kernel(rest),
            ".amdgpu_metadata" => self.metadata = Some(Vec::new()),
            ".amd_kernel_code_t" => self.open_header(),
            ".amdgpu_hsa_kernel" => return self.hsa_kernel(rest),
            ".hsa_code_object_version" => return self.hsa_version(rest),
            ".hsa_code_object_isa" => return self.hsa_isa(rest),
            ".amd_amdgpu_hsa_metadata" => self.open_text_metadata(),
            _ if IGNORED.contains(&name) => {}
            _ => return Err((line.column, SourceProblem::Directive(name.to_owned()))),
        }
        Ok(())
    }

    /// A line of metadata, or its end: YAML is not the assembler's language.
    pub(super) fn metadata_line(&mut self, text: &str) {
        let line = LineRest::new(text);
        if line.text != ".end_amdgpu_metadata" {
            let rows = self.metadata.as_mut();
            if let Some(rows) = rows.filter(|_| !matches!(line.text, "" | "---" | "...")) {
                let (indent, text) = (line.column - 1, line.text.to_owned());
                rows.push(MetadataLine { line: self.line, indent, text });
            }
            return;
        }
        let Some(rows) = self.metadata.take() else { return };
        let back = (self.section, self.previous);
        self.enter(".note", SourceSectionKind::Note);
        self.sections[self.section].align = 4;
        let offset = self.sections[self.section].bytes.len();
        self.blocks.push(Metadata { section: self.section, offset, lines: rows });
        (self.section, self.previous) = back;
    }

    pub(super) fn enter(&mut self, name: &str, kind: SourceSectionKind) {
        let found = self.sections.iter().position(|s| s.name == name);
        self.previous = self.section;
        self.section = found.unwrap_or_else(|| {
            self.sections.push(SourceSection { name: name.to_owned(), kind, bytes: Vec::new(), align: 1 });
            self.sections.len() - 1
        });
    }

    /// `.section name, "flags", @type`
    fn section(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let parts = rest.parts();
        let Some(name) = parts.first().filter(|p| !p.text.is_empty()) else {
            return Err((rest.column, SourceProblem::Expected("the name of a section")));
        };
        let name = name.text.trim_matches('"');
        let flags = parts.get(1).map_or("", |p| p.text);
        let is =
            |prefix: &str| name == prefix || name.strip_prefix(prefix).is_some_and(|r| r.starts_with('.'));
        let kind = match parts.get(2).map(|p| p.text) {
            Some("@nobits" | "%nobits") => SourceSectionKind::Zeros,
            Some("@note" | "%note") => SourceSectionKind::Note,
            _ if flags.contains('x') || is(".text") => SourceSectionKind::Code,
            _ if is(".note") => SourceSectionKind::Note,
            _ if flags.contains('w') || is(".data") => SourceSectionKind::Data,
            _ if is(".bss") => SourceSectionKind::Zeros,
            _ if parts.len() > 1 && !flags.contains('a') && name.starts_with(".debug_") => {
                SourceSectionKind::Unloaded
            }
            _ => SourceSectionKind::ReadOnly,
        };
        self.enter(name, kind);
        Ok(())
    }

    fn data(&mut self, rest: LineRest<'_>, size: u8) -> Result<(), (usize, SourceProblem)> {
        if rest.text.is_empty() {
            return Err((rest.column, SourceProblem::Expected("values")));
        }
        for part in rest.parts() {
            let (value, _) = self.whole_expression(part)?;
            let bits = 8 * u32::from(size);
            let fits = bits == 64 || value >> (bits - 1) == -1 || value >> bits == 0;
            if !fits {
                self.error(part.column, SourceProblem::Fits(value, size));
            }
            self.put(&value.to_le_bytes()[..usize::from(size)]);
        }
        Ok(())
    }

    fn strings(&mut self, rest: LineRest<'_>, zero: bool) -> Result<(), (usize, SourceProblem)> {
        for part in rest.parts() {
            let bytes =
                quoted(part.text).ok_or((part.column, SourceProblem::Expected("a text in quotes")))?;
            self.put(&bytes);
            if zero {
                self.put(&[0]);
            }
        }
        Ok(())
    }

    fn align(&mut self, name: &str, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let parts = rest.parts();
        let first = parts.first().copied().unwrap_or(rest);
        let (value, _) = self.whole_expression(first)?;
        let wanted = if name == ".p2align" {
            u32::try_from(value).ok().and_then(|p| 1u64.checked_shl(p))
        } else {
            u64::try_from(value).ok()
        };
        let align = wanted.filter(|a| a.is_power_of_two() && *a <= 1 << 16);
        let align = align.ok_or((first.column, SourceProblem::Expected("a power of two, up to 65536")))?;
        let with = match parts.get(1).filter(|p| !p.text.is_empty()) {
            Some(part) => Some(self.whole_expression(*part)?.0 as u8),
            None => None,
        };
        let section = &mut self.sections[self.section];
        section.align = section.align.max(align);
        let len = section.bytes.len() as u64;
        match with {
            Some(_) => self.fill(len.next_multiple_of(align) - len, with),
            None => self.pad_to(align),
        }
        Ok(())
    }

    /// `.fill count, size, value`
    fn repeat(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let parts = rest.parts();
        let mut values = [0, 1, 0];
        for (slot, part) in values.iter_mut().zip(&parts) {
            *slot = self.whole_expression(*part)?.0;
        }
        let [count, size, value] = values;
        let sized = usize::try_from(size).ok().filter(|s| *s <= 8);
        let (Ok(count), Some(size)) = (u64::try_from(count), sized) else {
            return Err((
                rest.column,
                SourceProblem::Expected("a count, a size of up to 8 bytes and a value"),
            ));
        };
        if count.saturating_mul(size as u64).saturating_add(self.total) > super::MAX_BYTES {
            self.total = super::MAX_BYTES + 1;
            return Ok(());
        }
        for _ in 0..count {
            self.put(&value.to_le_bytes()[..size]);
        }
        Ok(())
    }

    fn space(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let parts = rest.parts();
        let first = parts.first().copied().unwrap_or(rest);
        let (count, _) = self.whole_expression(first)?;
        let with = match parts.get(1) {
            Some(part) => self.whole_expression(*part)?.0 as u8,
            None => 0,
        };
        let count =
            u64::try_from(count).map_err(|_| (first.column, SourceProblem::Expected("a number of bytes")))?;
        self.fill(count, Some(with));
        Ok(())
    }

    fn org(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let (value, address) = self.whole_expression(rest)?;
        let base = if address { self.section as i64 * super::SECTION_SPAN } else { 0 };
        let len = self.sections[self.section].bytes.len() as u64;
        match u64::try_from(value.wrapping_sub(base)).ok().and_then(|to| to.checked_sub(len)) {
            Some(count) => self.fill(count, Some(0)),
            None => return Err((rest.column, SourceProblem::Behind(len))),
        }
        Ok(())
    }

    /// `.set name, value`; `.equiv` the same, for a name that is not there yet.
    fn set(&mut self, rest: LineRest<'_>, again: bool) -> Result<(), (usize, SourceProblem)> {
        match rest.parts()[..] {
            [name, value] if !name.text.is_empty() => match self.defined.get(name.text) {
                Some(old) if !again => {
                    return Err((name.column, SourceProblem::Again(name.text.to_owned(), old.line)));
                }
                _ => self.assign(name.text, value, name.column),
            },
            _ => return Err((rest.column, SourceProblem::Expected("a name, a comma and a value"))),
        }
        Ok(())
    }

    /// `.type name, @function`
    fn kind(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let parts = rest.parts();
        let kind = match parts.get(1).map(|p| p.text.trim_start_matches(['@', '%', '#'])) {
            Some("function" | "STT_FUNC") => SymbolKind::Function,
            Some("object" | "STT_OBJECT") => SymbolKind::Object,
            Some("notype") => SymbolKind::Label,
            _ => return Err((rest.column, SourceProblem::Expected("a name and @function or @object"))),
        };
        if let Some(name) = parts.first() {
            self.attrs.entry(name.text.to_owned()).or_default().kind = Some(kind);
        }
        Ok(())
    }

    /// `.size name, value`
    fn size(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        match rest.parts()[..] {
            [name, value] => {
                let (size, _) = self.whole_expression(value)?;
                self.attrs.entry(name.text.to_owned()).or_default().size = Some(size);
                Ok(())
            }
            _ => Err((rest.column, SourceProblem::Expected("a name, a comma and a size"))),
        }
    }

    /// `.amdgcn_target "amdgcn-amd-amdhsa--gfx1030:xnack+"`
    fn target(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        match SourceTarget::of_triple(rest.text) {
            Some(target) if target.processor == self.gpu.name() => {
                self.target = Some(target);
                Ok(())
            }
            target => {
                let processor = target.map_or_else(|| rest.text.to_owned(), |target| target.processor);
                Err((rest.column, SourceProblem::OtherGpu(processor, self.gpu.name())))
            }
        }
    }
}
