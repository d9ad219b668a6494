//! A folder for files that other programs read or write. Never: one that stays.

use std::io;
use std::path::PathBuf;
use std::{env, fs, process};

/// A folder that is removed when this is dropped.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes the folder; fails if it already exists. The error has its path.
    pub fn new(purpose: &str) -> Result<TemporaryFolder, (String, io::Error)> {
        let folder = env::temp_dir().join(format!("unwedge-{purpose}-{}", process::id()));
        fs::create_dir(&folder).map_err(|e| (folder.display().to_string(), e))?;
        Ok(TemporaryFolder(folder))
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
