//! The register database: the built-in one, or rnndb XML of the user's own tree; and the GPU a dump is of.

use crate::args::Global;
use crate::failure::Failure;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use unwedge_base::Generation;
use unwedge_capture::devcore::{Devcore, Revision};
use unwedge_hw::{Db, Device, Gpu, Identity};

/// A file of a register database is never larger.
const MAX_XML: u64 = 64 << 20;

/// `register database: built-in mesa-25.0.7 (0123456789abcdef)`
pub fn line(identity: &Identity) -> String {
    let version = if identity.version.is_empty() { String::new() } else { format!(" {}", identity.version) };
    format!("register database: {}{version} ({})", identity.source, identity.hash)
}
