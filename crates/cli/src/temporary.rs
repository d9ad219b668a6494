//! A folder for files that other programs read or write. Never: one that stays.

use std::io;
use std::path::PathBuf;
use std::{env, fs, process};

/// A folder of our own that is removed at the end.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes the folder; fails where somebody else has made it. An error has the folder's name.
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
