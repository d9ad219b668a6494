//! A capture without the name of its process.

use super::lines::rewrite_text;
use super::names::{PrivateKind, Pseudonyms};
use crate::rd::{RdReader, RdSectionKind, RdWriteError, RdWriter};
use std::io::{Read, Write};
use unwedge_base::Diagnostic;

/// Copies a capture with a pseudonym for each process. All other sections are the same bytes; a section that is cut short is
/// written as long as it is. Returns what was lost of it.
///
/// # Errors
/// When `out` cannot be written to.
pub fn rewrite_capture(
    capture: impl Read,
    limit: u64,
    names: &mut Pseudonyms,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, RdWriteError> {
    let mut reader = RdReader::new(capture).with_limit(limit);
    let mut writer = RdWriter::new(out);
    while let Some(section) = reader.next() {
        match section.kind {
            RdSectionKind::Cmd => {
                let mut text = command(section.text(), names);
                text.push(0);
                writer.section(section.kind, &text)?;
            }
            RdSectionKind::Test => {
                let mut text = Vec::new();
                rewrite_text(section.text(), names, &mut text);
                text.push(0);
                writer.section(section.kind, &text)?;
            }
            kind => writer.section(kind, section.payload)?,
        }
    }
    Ok(reader.diagnostics().to_vec())
}

/// `name/4711: fence=12`, `name/4711`, or a name alone. The name may be a path.
fn command(text: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let slashes = text.iter().enumerate().filter(|(_, c)| **c == b'/').map(|(at, _)| at);
    // The last slash before a number, and nothing or a colon after that.
    let mut split = slashes.filter(|at| {
        let rest = text.get(at + 1..).unwrap_or_default();
        is_number(rest.split(|&c| c == b':').next().unwrap_or_default())
    });
    let (name, rest) = text.split_at(
        split
            .next_back()
            .unwrap_or_else(|| text.windows(2).position(|pair| pair == b": ").unwrap_or(text.len())),
    );
    let mut out = Vec::new();
    if !name.is_empty() {
        out.extend_from_slice(names.of(PrivateKind::Process, name).as_bytes());
    }
    rewrite_text(rest, names, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_of_a_capture_has_a_pseudonym() {
        let mut bytes = Vec::new();
        let mut writer = RdWriter::new(&mut bytes);
        for (kind, payload) in [
            (RdSectionKind::Test, &b"dEQP.case /home/alice\0"[..]),
            (RdSectionKind::Cmd, b"deqp-vk/4711: fence=12\0"),
            (RdSectionKind::BufferContents, b"deqp-vk stays in memory\0\0\0\0"),
            (RdSectionKind::Unknown(77), b"\x01\x02"),
        ] {
            writer.section(kind, payload).expect("memory");
        }
        let mut out = Vec::new();
        let lost =
            rewrite_capture(&bytes[..], 1 << 20, &mut Pseudonyms::default(), &mut out).expect("memory");
        assert!(lost.is_empty());
        let mut reader = RdReader::new(&out[..]);
        let mut payloads = Vec::new();
        while let Some(section) = reader.next() {
            payloads.push((section.kind, section.payload.to_vec()));
        }
        assert_eq!(payloads[0].1, b"dEQP.case /home/user-1\0");
        assert_eq!(payloads[1].1, b"process-1/4711: fence=12\0");
        assert_eq!(payloads[2], (RdSectionKind::BufferContents, b"deqp-vk stays in memory\0\0\0\0".to_vec()));
        assert_eq!(payloads[3], (RdSectionKind::Unknown(77), vec![1, 2]));
    }

    #[test]
    fn names_that_hold_slashes_and_colons() {
        let command =
            |text: &[u8]| String::from_utf8(command(text, &mut Pseudonyms::default())).expect("text");
        assert_eq!(command(b"/opt/a game/33: fence=1"), "process-1/33: fence=1");
        assert_eq!(command(b"c: d/33"), "process-1/33");
        assert_eq!(command(b"game"), "process-1");
        assert_eq!(command(b""), "");
    }
}
