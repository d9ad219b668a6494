//! A folder for files that other programs read or write. Never: one that stays.

use std::io;
use std::path::PathBuf;
use std::{env, fs, process};

/// Names that are tried; another process with the same number may have left its folder.
const ATTEMPTS: u32 = 100;

/// A folder that is removed when this is dropped.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a folder that was not there before. The error has its path.
    pub fn new(purpose: &str) -> Result<TemporaryFolder, (String, io::Error)> {
        let mut attempt = 0;
        loop {
            let folder = env::temp_dir().join(format!("unwedge-{purpose}-{}-{attempt}", process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(TemporaryFolder(folder)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
                Err(e) => return Err((folder.display().to_string(), e)),
            }
        }
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
