//! The dump or capture in an archive that `unwedge bundle` wrote, read as it comes. Headers are read by crate `tar`.
//!
//! An archive is hostile as any input: nothing is written, no path in it is followed, and no size is believed before its bytes are
//! there. Never: the other files of an archive.

use std::io::{self, BufRead, ErrorKind, Read};
use tar::{EntryType, Header};
use unwedge_view::bundle::{DUMP_NAMES, FOLDER};

/// Bytes of a header, and of what contents are padded to.
pub(super) const HEADER: usize = 512;
/// Files before the dump: an archive that somebody packed again has them in another order.
const MAX_BEFORE: usize = 64;
/// Bytes of such files.
const MAX_SKIPPED: u64 = 256 << 20;

/// Whether the first bytes may be those of a bundle.
pub(super) fn may_be(head: &[u8]) -> bool {
    !head.is_empty() && head.iter().zip(FOLDER.as_bytes()).all(|(a, b)| a == b)
}

/// Whether a file begins as a bundle does.
pub(super) fn sniff(head: &[u8]) -> bool {
    head.starts_with(FOLDER.as_bytes()) && head.get(..HEADER).and_then(header).is_some()
}

/// A header whose checksum is right.
fn header(bytes: &[u8]) -> Option<Header> {
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(bytes.get(..HEADER)?);
    let sum = |byte: &u8| u32::from(*byte);
    // The checksum counts itself as blanks.
    let (before, after) = (bytes.get(..148)?, bytes.get(156..HEADER)?);
    let sum: u32 = before.iter().chain(after).map(sum).sum::<u32>() + 8 * u32::from(b' ');
    (header.cksum().ok()? == sum).then_some(header)
}

/// Reads the dump in a bundle.
pub(super) struct BundledDump<R> {
    archive: R,
    /// Bytes of the dump to come; `None` before it was found.
    left: Option<u64>,
}

impl<R: BufRead> BundledDump<R> {
    pub(super) fn new(archive: R) -> BundledDump<R> {
        BundledDump { archive, left: None }
    }

    /// Goes to the first byte of the dump, whose size it returns.
    fn find(&mut self) -> io::Result<u64> {
        let mut skipped = 0_u64;
        for _ in 0..MAX_BEFORE {
            let mut bytes = [0; HEADER];
            self.archive.read_exact(&mut bytes).map_err(|e| match e.kind() {
                ErrorKind::UnexpectedEof => missing(),
                _ => e,
            })?;
            let Some(header) = header(&bytes) else { return Err(missing()) };
            let size = header.entry_size()?;
            let name = header.path_bytes();
            let file = name.rsplit(|&c| c == b'/').next().unwrap_or_default();
            let of_bundle = name.starts_with(FOLDER.as_bytes());
            if of_bundle
                && header.entry_type() == EntryType::Regular
                && DUMP_NAMES.iter().any(|name| name.as_bytes() == file)
            {
                return Ok(size);
            }
            let padded = size.checked_next_multiple_of(HEADER as u64).ok_or_else(missing)?;
            skipped = skipped.saturating_add(padded);
            if skipped > MAX_SKIPPED {
                break;
            }
            if io::copy(&mut self.archive.by_ref().take(padded), &mut io::sink())? < padded {
                return Err(missing());
            }
        }
        Err(missing())
    }
}

fn missing() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "there is no dump in it")
}

impl<R: BufRead> Read for BundledDump<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = match self.left {
            Some(left) => left,
            None => self.find()?,
        };
        self.left = Some(left);
        if left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let got = self.archive.read(buffer.get_mut(..most).unwrap_or_default())?;
        if got == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the archive ends in it"));
        }
        self.left = Some(left - got as u64);
        Ok(got)
    }
}
