//! Reads a capture as a stream, one section at a time. Never: more memory than the largest payload that is really there.

use super::{FILLER, HEADER, MAX_PAYLOAD, RdSection, RdSectionKind, header, without_zeros};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use unwedge_base::plural::counted;
use unwedge_base::{Diagnostic, Span};

/// Bytes asked for at once.
const PIECE: usize = 256 << 10;
/// Losses told one by one. A capture that has more is broken through and through.
const TOLD: usize = 64;

/// What is kept of the bytes that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    All,
    /// All but the zeros at the end, which are counted.
    CountZeros,
}

/// Reads the sections of a capture one after another. Ends where the source ends, or where no section can be;
/// [`RdReader::diagnostics`] then tells what was lost.
#[derive(Debug)]
pub struct RdReader<R> {
    source: BufReader<R>,
    payload: Vec<u8>,
    /// Longest payload that is kept.
    limit: u64,
    /// Zeros at the end of a payload are counted and not kept.
    counts_zeros: bool,
    /// Zeros of the section behind what is kept of its payload.
    zeros: u64,
    at: u64,
    ended: bool,
    diagnostics: Vec<Diagnostic>,
}

impl<R: Read> RdReader<R> {
    /// A reader at the start of a capture.
    pub fn new(source: R) -> RdReader<R> {
        RdReader {
            source: BufReader::with_capacity(PIECE, source),
            payload: Vec::new(),
            limit: u64::MAX,
            counts_zeros: false,
            zeros: 0,
            at: 0,
            ended: false,
            diagnostics: Vec::new(),
        }
    }

    /// Keeps no more than so many bytes of a payload; the others are passed over and count as lost.
    pub fn with_limit(mut self, bytes: u64) -> RdReader<R> {
        self.limit = bytes;
        self
    }

    /// Leaves the zeros at the end of a buffer's contents out of the payload; [`RdSection::zeros`] counts them. Captures hold
    /// buffers whole, and most of a large one is zero.
    pub fn counting_zeros(mut self) -> RdReader<R> {
        self.counts_zeros = true;
        self
    }

    /// The next section, valid until the next call.
    // An iterator cannot lend.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<RdSection<'_>> {
        if self.ended {
            return None;
        }
        let Some((number, claimed)) = self.header() else {
            self.ended = true;
            return None;
        };
        let start = self.at;
        self.at = start.saturating_add(HEADER as u64);
        let kind = RdSectionKind::from_number(number);
        if claimed > MAX_PAYLOAD {
            self.ended = true;
            self.lose(
                start,
                format!("a section of type {number} claims {claimed} bytes: the capture is not read on"),
            );
            return None;
        }
        self.payload.clear();
        let wanted = u64::from(claimed);
        let keep = match kind {
            RdSectionKind::BufferContents if self.counts_zeros => Keep::CountZeros,
            _ => Keep::All,
        };
        let kept = self.take(wanted.min(self.limit), keep);
        let passed =
            if kept == self.limit { self.take(wanted.saturating_sub(kept), Keep::Nothing) } else { 0 };
        let there = kept.saturating_add(passed);
        self.at = self.at.saturating_add(there);
        let section = format_args!("a section {} ({number})", kind.name()).to_string();
        if there < wanted {
            self.ended = true;
            self.lose(
                start,
                format!(
                    "the capture ends inside {section}, which has {there} of {}",
                    counted(claimed.into(), "byte", "bytes")
                ),
            );
        } else if kept < wanted {
            self.lose(start, format!("{section} is too long: {kept} of its {claimed} bytes are read"));
        }
        let span = Span { start, end: self.at };
        Some(RdSection { kind, span, claimed, payload: &self.payload, zeros: self.zeros })
    }

    /// Bytes of the capture read so far.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// What is wrong with the capture as far as it has been read.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Where the capture is read from.
    pub fn source(&self) -> &R {
        self.source.get_ref()
    }

    /// The next header that is no filler. `None` at the end.
    fn header(&mut self) -> Option<(u32, u32)> {
        loop {
            self.payload.clear();
            let there = self.take(HEADER as u64, Keep::All);
            if self.payload != FILLER {
                if there > 0 && there < HEADER as u64 {
                    let start = self.at;
                    self.at = self.at.saturating_add(there);
                    let there = counted(there, "byte", "bytes");
                    let message =
                        format!("the capture ends inside the header of a section, after {there} of it");
                    self.lose(start, message);
                }
                return header(&self.payload);
            }
            self.at = self.at.saturating_add(HEADER as u64);
        }
    }

    /// Reads up to so many bytes, and keeps what is asked for as the payload. Returns how many there were.
    fn take(&mut self, wanted: u64, keep: Keep) -> u64 {
        let (mut taken, mut zeros) = (0, 0);
        while taken < wanted {
            let bytes = match self.source.fill_buf() {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => {
                    self.fail(taken, e);
                    break;
                }
            };
            let here = bytes.len().min(usize::try_from(wanted - taken).unwrap_or(usize::MAX));
            if here == 0 {
                break;
            }
            let piece = bytes.get(..here).unwrap_or(bytes);
            match keep {
                Keep::Nothing => {}
                Keep::All => self.payload.extend_from_slice(piece),
                Keep::CountZeros => {
                    let used = without_zeros(piece);
                    if !used.is_empty() {
                        self.payload.resize(self.payload.len() + zeros, 0);
                        self.payload.extend_from_slice(used);
                        zeros = 0;
                    }
                    zeros += here - used.len();
                }
            }
            self.source.consume(here);
            taken += here as u64;
        }
        if keep != Keep::Nothing {
            self.zeros = zeros as u64;
        }
        taken
    }

    fn fail(&mut self, ahead: u64, error: io::Error) {
        self.ended = true;
        let at = self.at.saturating_add(ahead);
        let message = format!("the capture cannot be read any further: {error}");
        self.diagnostics.push(Diagnostic::loss(Span { start: at, end: at }, message));
    }

    fn lose(&mut self, start: u64, message: String) {
        if self.diagnostics.len() < TOLD {
            self.diagnostics.push(Diagnostic::loss(Span { start, end: self.at }, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::capture;
    use super::*;

    fn read(bytes: &[u8]) -> (Vec<(Span, usize, bool)>, usize) {
        let mut reader = RdReader::new(bytes);
        let mut sections = Vec::new();
        while let Some(section) = reader.next() {
            sections.push((section.span, section.payload.len(), section.is_cut()));
        }
        (sections, reader.diagnostics().len())
    }

    #[test]
    fn filler_between_sections_is_passed_over() {
        let bytes = [&[0xff; 16][..], &capture(), &[0xff; 8]].concat();
        let (sections, lost) = read(&bytes);
        assert_eq!((sections.len(), lost, sections[0].0.start), (6, 0, 16));
        assert!(super::super::sniff(&bytes));
    }

    #[test]
    fn a_capture_cut_anywhere_keeps_what_came_before() {
        let whole = capture();
        let mut starts: Vec<u64> = read(&whole).0.iter().map(|s| s.0.start).collect();
        starts.push(whole.len() as u64);
        for cut in 0..whole.len() {
            let (sections, lost) = read(&whole[..cut]);
            let intact = sections.iter().filter(|(.., is_cut)| !is_cut).count();
            assert_eq!(intact, starts.iter().filter(|&&s| s != 0 && s <= cut as u64).count(), "cut at {cut}");
            assert_eq!(lost, usize::from(!starts.contains(&(cut as u64))), "cut at {cut}");
        }
    }

    #[test]
    fn a_claimed_length_is_only_a_claim() {
        for claimed in [9_u32, 1 << 30, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let bytes = [&12_u32.to_le_bytes()[..], &claimed.to_le_bytes(), b"12345678"].concat();
            let (sections, lost) = read(&bytes);
            let kept: usize = sections.iter().map(|s| s.1).sum();
            assert_eq!((kept, lost), (if claimed > MAX_PAYLOAD { 0 } else { 8 }, 1));
        }
    }

    #[test]
    fn a_payload_beyond_the_limit_is_passed_over() {
        let zeros = io::repeat(0).take(1 << 24);
        let header = [&12_u32.to_le_bytes()[..], &(1_u32 << 24).to_le_bytes()].concat();
        let rest = capture();
        let mut reader = RdReader::new(header.chain(zeros).chain(&rest[..])).with_limit(1 << 16);
        let section = reader.next().unwrap();
        assert!(section.is_cut());
        assert_eq!(section.payload.len(), 1 << 16);
        assert_eq!(reader.next().unwrap().gpu_id(), Some(630));
        assert_eq!(reader.diagnostics().len(), 1);
        assert!(reader.payload.capacity() < 1 << 18);
    }

    #[test]
    fn zeros_at_the_end_of_contents_are_counted() {
        let contents = |length: usize, ones: &[usize]| {
            let mut payload = vec![0; length];
            ones.iter().for_each(|&at| payload[at] = 1);
            payload
        };
        for payload in [
            contents(3 * PIECE, &[]),
            contents(3 * PIECE, &[5]),
            contents(3 * PIECE + 7, &[0, 2 * PIECE + 1]),
            contents(3 * PIECE, &[3 * PIECE - 1]),
            contents(0, &[]),
        ] {
            let header = [&12_u32.to_le_bytes()[..], &(payload.len() as u32).to_le_bytes()].concat();
            let bytes = [&header[..], &payload, &capture()].concat();
            let mut reader = RdReader::new(&bytes[..]).counting_zeros();
            let section = reader.next().unwrap();
            let used = payload.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            assert_eq!(section.payload, &payload[..used]);
            assert_eq!((section.zeros, section.is_cut()), ((payload.len() - used) as u64, false));
            let mut whole = RdReader::new(&bytes[..]);
            assert_eq!(whole.next().unwrap().payload, payload);
            while let Some(section) = whole.next() {
                let here = reader.next().unwrap();
                assert_eq!(
                    (here.kind, here.span, here.is_cut()),
                    (section.kind, section.span, section.is_cut())
                );
                assert_eq!(here.payload.len() as u64 + here.zeros, section.payload.len() as u64);
            }
            assert_eq!(reader.next(), None);
            assert_eq!(reader.diagnostics().len(), 0);
            let cut = &bytes[..HEADER + payload.len().saturating_sub(1)];
            let is_cut = RdReader::new(cut).counting_zeros().next().is_some_and(|section| section.is_cut());
            assert_eq!(is_cut, !payload.is_empty());
        }
    }

    #[test]
    fn a_source_that_fails_ends_the_capture_with_a_loss() {
        struct FailingSource;
        impl Read for FailingSource {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(ErrorKind::InvalidData.into())
            }
        }
        let bytes = capture();
        let mut reader = RdReader::new(bytes.chain(FailingSource));
        let mut sections = 0;
        while reader.next().is_some() {
            sections += 1;
        }
        assert_eq!((sections, reader.diagnostics().len()), (6, 1));
        assert_eq!(reader.position(), capture().len() as u64);
    }
}
