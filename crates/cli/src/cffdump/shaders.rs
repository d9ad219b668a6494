//! The files that `--dump-shaders` makes: the code of each shader shown, `0000.vo3`, `0001.fo3` and so on in the current
//! folder.
//!
//! Never: names from a capture, or writing through what is no plain file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use unwedge::base::Dwords;
use unwedge_view::cffdump;

/// Bytes written whatever the captures are.
const BYTES: u64 = 64 << 20;
/// Makes the files.
#[derive(Debug)]
pub struct ShaderFiles {
    folder: PathBuf,
    made: u32,
    /// Bytes that may still be written.
    left: u64,
    /// Why one could not be made.
    trouble: Option<String>,
}

impl ShaderFiles {
    /// Files in a folder; an empty path is the current one.
    pub fn new(folder: &Path) -> ShaderFiles {
        ShaderFiles { folder: folder.to_path_buf(), made: 0, left: BYTES, trouble: None }
    }
}

impl cffdump::ShaderFiles for ShaderFiles {
    fn allow(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
    }

    fn write(&mut self, extension: &str, code: Dwords<'_>) {
        let path = self.folder.join(format!("{:04}.{extension}", self.made));
        self.made = self.made.saturating_add(1);
        let bytes = (code.len() as u64).saturating_mul(4);
        let Some(left) = self.left.checked_sub(bytes) else {
            self.trouble.get_or_insert_with(|| format!("{}: too much code in all", path.display()));
            return;
        };
        self.left = left;
        if let Err(error) = write(&path, code) {
            self.trouble.get_or_insert_with(|| format!("{}: {error}", path.display()));
        }
    }

    fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }
}

fn write(path: &Path, code: Dwords<'_>) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something that is not a plain file is there already",
        ));
    }
    let mut file = BufWriter::new(File::create(path)?);
    for dword in code.iter() {
        file.write_all(&dword.to_le_bytes())?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_view::cffdump::ShaderFiles as _;

    #[test]
    fn files_are_numbered_and_nothing_else_is_written_to() {
        let folder = std::env::temp_dir().join(format!("unwedge-shaders-{}", std::process::id()));
        fs::create_dir_all(folder.join("0001.fo3")).unwrap();
        let mut files = ShaderFiles::new(&folder);
        files.write("vo3", Dwords::new(&[1, 0x203], 3));
        assert_eq!(files.trouble(), None);
        files.write("fo3", Dwords::new(&[1], 1));
        assert!(files.trouble().is_some_and(|told| told.contains("not a plain file")));
        files.write("co3", Dwords::new(&[], usize::MAX / 8));
        assert!(files.trouble().is_some_and(|told| told.contains("too much")));
        files.write("vo", Dwords::new(&[7], 1));
        assert_eq!(files.trouble(), None);
        let read = |name: &str| fs::read(folder.join(name)).ok();
        assert_eq!(read("0000.vo3").unwrap(), [1, 0, 0, 0, 3, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read("0003.vo").unwrap(), [7, 0, 0, 0]);
        assert_eq!(read("0002.co3"), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
