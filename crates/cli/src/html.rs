//! `--html OUT`: a page in a file, or on standard output.

use crate::failure::Failure;
use std::io::Write;
use std::path::Path;
use unwedge_view::html::{self, ListingPage};

/// Writes a page to a file; `-` is standard output.
pub fn write(file: &Path, page: &[u8]) -> Result<(), Failure> {
    if file.as_os_str() == "-" {
        let mut out = std::io::stdout().lock();
        return match out.write_all(page).and_then(|()| out.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        };
    }
    std::fs::write(file, page).map_err(|e| Failure::Write(file.display().to_string(), e))
}

/// Writes the page of a listing.
pub fn write_listing(file: &Path, title: &str, command: &str, text: &[u8]) -> Result<(), Failure> {
    let mut page = Vec::new();
    html::listing(ListingPage { title, command }, text, &mut page)?;
    write(file, &page)
}
