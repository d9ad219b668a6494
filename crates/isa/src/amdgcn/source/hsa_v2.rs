//! Directives of HSA v2 only: the headers of kernels, the notes of version and GPU, and metadata as text.
//!
//! Facts: the notes that LLVM 14 writes, the last LLVM that reads these directives.

use super::statement::{LineRest, quoted};
use super::{SourcePass, SourceProblem, SourceSectionKind, SymbolKind};
use crate::amdgcn::kernel_code::KernelCodeBuilder;

/// The owner of the notes, with its zero byte.
const OWNER: &[u8; 4] = b"AMD\0";
/// Type of the note of the version.
const NT_VERSION: u32 = 1;
/// Type of the note of the GPU.
const NT_ISA: u32 = 3;
/// Type of the note of metadata.
const NT_METADATA: u32 = 10;
/// The end of metadata.
pub(super) const END_METADATA: &str = ".end_amd_amdgpu_hsa_metadata";

impl SourcePass<'_> {
    /// `.amd_kernel_code_t`
    pub(super) fn open_header(&mut self) {
        self.header = Some((KernelCodeBuilder::new(self.gpu), self.line));
    }

    /// A line between `.amd_kernel_code_t` and its end.
    pub(super) fn header_line(&mut self, line: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        if line.text == ".end_amd_kernel_code_t" {
            if let Some((header, _)) = self.header.take() {
                self.put(&header.finish());
            }
            return Ok(());
        }
        let Some((name, value)) = line.assignment() else {
            return Err((
                line.column,
                SourceProblem::Expected("a field, = and a value, or .end_amd_kernel_code_t"),
            ));
        };
        let (value, _) = self.whole_expression(value)?;
        match self.header.as_mut().map(|(header, _)| header.set(name, value)) {
            Some(Err(wrong)) => Err((line.column, SourceProblem::KernelCode(wrong))),
            _ => Ok(()),
        }
    }

    /// `.amdgpu_hsa_kernel name`
    pub(super) fn hsa_kernel(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        if rest.text.is_empty() {
            return Err((rest.column, SourceProblem::Expected("the name of a kernel")));
        }
        self.attrs.entry(rest.text.to_owned()).or_default().kind = Some(SymbolKind::HsaKernel);
        Ok(())
    }

    /// `.hsa_code_object_version major, minor`
    pub(super) fn hsa_version(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let [major, minor] = rest.parts()[..] else {
            return Err((rest.column, SourceProblem::Expected("two numbers")));
        };
        let (major, minor) = (self.word(major)?, self.word(minor)?);
        self.version = Some(major);
        self.note(NT_VERSION, &[major.to_le_bytes(), minor.to_le_bytes()].concat());
        Ok(())
    }

    /// `.hsa_code_object_isa major, minor, stepping, "vendor", "architecture"`, or nothing for the GPU of the file.
    pub(super) fn hsa_isa(&mut self, rest: LineRest<'_>) -> Result<(), (usize, SourceProblem)> {
        let own = self.gpu.version().map(u32::from);
        let ([major, minor, stepping], vendor, architecture) = match rest.parts()[..] {
            [] => (own, b"AMD".to_vec(), b"AMDGPU".to_vec()),
            [major, minor, stepping, vendor, architecture] => {
                let text = |part: LineRest<'_>| {
                    quoted(part.text).ok_or((part.column, SourceProblem::Expected("a text in quotes")))
                };
                let version = [self.word(major)?, self.word(minor)?, self.word(stepping)?];
                (version, text(vendor)?, text(architecture)?)
            }
            _ => {
                return Err((
                    rest.column,
                    SourceProblem::Expected("three numbers and two texts, or nothing"),
                ));
            }
        };
        let version = [major, minor, stepping];
        if version != own {
            let named = format!("gfx{major}{minor}{stepping:x}");
            return Err((rest.column, SourceProblem::OtherGpu(named, self.gpu.name())));
        }
        let mut note = Vec::new();
        for text in [&vendor, &architecture] {
            let size = text.len() as i64 + 1;
            let size = u16::try_from(size).map_err(|_| (rest.column, SourceProblem::Fits(size, 2)))?;
            note.extend(size.to_le_bytes());
        }
        version.iter().for_each(|number| note.extend(number.to_le_bytes()));
        for text in [vendor, architecture] {
            note.extend(text);
            note.push(0);
        }
        self.note(NT_ISA, &note);
        Ok(())
    }

    /// `.amd_amdgpu_hsa_metadata`
    pub(super) fn open_text_metadata(&mut self) {
        self.text_metadata = Some(String::new());
    }

    /// A line of metadata that is kept as its text, or its end.
    pub(super) fn text_metadata_line(&mut self, text: &str) {
        if text.trim() != END_METADATA {
            if let Some(kept) = self.text_metadata.as_mut() {
                kept.push_str(text.trim_end_matches('\r'));
                kept.push('\n');
            }
            return;
        }
        if let Some(kept) = self.text_metadata.take() {
            self.note(NT_METADATA, kept.as_bytes());
        }
    }

    fn word(&self, part: LineRest<'_>) -> Result<u32, (usize, SourceProblem)> {
        let (value, _) = self.whole_expression(part)?;
        u32::try_from(value).map_err(|_| (part.column, SourceProblem::Fits(value, 4)))
    }

    /// A note of AMD, in the section of notes.
    fn note(&mut self, kind: u32, contents: &[u8]) {
        let back = (self.section, self.previous);
        self.enter(".note", SourceSectionKind::Note);
        self.sections[self.section].align = 4;
        self.pad_to(4);
        let sizes = [OWNER.len() as u32, contents.len() as u32, kind];
        sizes.iter().for_each(|number| self.put(&number.to_le_bytes()));
        self.put(OWNER);
        self.put(contents);
        self.pad_to(4);
        (self.section, self.previous) = back;
    }
}
