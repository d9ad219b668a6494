//! Joins captures. Sections are copied as they are.

use std::io::{Read, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::rd::{RdReader, RdSectionKind, RdWriteError, RdWriter};

/// Joins captures, one after another.
#[derive(Debug, Default)]
pub struct Merger {
    /// What names the GPU of the first.
    first: Option<(RdSectionKind, Vec<u8>)>,
}

impl Merger {
    /// The next capture. Returns what was lost of it.
    ///
    /// # Errors
    ///
    /// When `out` cannot be written to.
    pub fn add(
        &mut self,
        capture: impl Read,
        max_alive: u64,
        out: &mut dyn Write,
    ) -> Result<Vec<Diagnostic>, RdWriteError> {
        let mut reader = RdReader::new(capture).with_limit(max_alive);
        let mut writer = RdWriter::new(out);
        let mut identity = None;
        let mut nameless = false;
        while let Some(section) = reader.next() {
            match section.kind {
                RdSectionKind::GpuId | RdSectionKind::ChipId => {
                    identity.get_or_insert_with(|| (section.kind, section.payload.to_vec()));
                }
                RdSectionKind::CmdStreamAddr => nameless |= identity.is_none(),
                _ => {}
            }
            writer.section(section.kind, section.payload)?;
        }
        let mut diagnostics = reader.diagnostics().to_vec();
        if nameless {
            let message =
                "submits before the GPU is named: they are read as of the GPU of the capture before";
            diagnostics.push(Diagnostic::note(None, message));
        }
        match (&self.first, &identity) {
            (None, _) => self.first = identity,
            (Some(first), Some(other)) if first != other => {
                let message =
                    "another GPU than the first capture's, which some tools take for all of the result";
                diagnostics.push(Diagnostic::note(None, message));
            }
            _ => {}
        }
        Ok(diagnostics)
    }
}
