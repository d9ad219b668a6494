//! `--html OUT`: a page in a file, or on standard output.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use unwedge_view::html::{self, LISTING_BYTES, ListingPage};

/// Writes a page to a file; `-` is standard output.
///
/// # Errors
///
/// Why it was not written, with the name of the file. A broken pipe is not an error.
pub fn write(file: &Path, page: &[u8]) -> io::Result<()> {
    if file.as_os_str() == "-" {
        let mut out = io::stdout().lock();
        return match out.write_all(page).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        };
    }
    std::fs::write(file, page).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", file.display())))
}

/// A listing that becomes a page. Bytes past what a page shows are counted, and not kept.
pub struct PageListing {
    file: PathBuf,
    title: String,
    text: Vec<u8>,
    more: u64,
}

impl PageListing {
    /// An empty one.
    pub fn new(file: &Path, title: String) -> PageListing {
        PageListing { file: file.to_path_buf(), title, text: Vec::new(), more: 0 }
    }

    /// Writes the page.
    ///
    /// # Errors
    ///
    /// Why it was not written.
    pub fn finish(self) -> io::Result<()> {
        let mut page = Vec::new();
        let listing = ListingPage { title: &self.title, text: &self.text, more: self.more };
        html::listing(listing, &mut page)?;
        write(&self.file, &page)
    }
}

impl Write for PageListing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let kept = bytes.len().min(LISTING_BYTES.saturating_sub(self.text.len()));
        self.text.extend_from_slice(&bytes[..kept]);
        self.more = self.more.saturating_add((bytes.len() - kept) as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
