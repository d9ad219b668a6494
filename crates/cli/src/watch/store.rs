//! The folder that dumps are kept in, which one process has at a time. Its files are for their owner alone.

use super::places::{Places, head_kind, modified, open_stream};
use super::{Journal, Level};
use crate::args::Packing;
use crate::failure::Failure;
use crate::packed::Packed;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use unwedge_keep::{Disk, KeptDump, Naming, TempName, adopt};

/// The file whose lock says that the folder is in use.
const LOCK: &str = ".lock";

/// The folder.
pub struct Store {
    folder: PathBuf,
    packing: Packing,
    naming: Mutex<()>,
    written: AtomicU64,
    journal: Journal,
    _lock: File,
}

impl Store {
    /// Opens a folder, which is created if it is not there.
    ///
    /// # Errors
    /// When it cannot be written to, or another process has it.
    pub fn open(folder: &Path, packing: Packing, journal: Journal) -> Result<Store, Failure> {
        let failed = |e| Failure::Write(folder.display().to_string(), e);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let lock = create(&folder.join(LOCK), false).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|e| match e {
            rustix::io::Errno::WOULDBLOCK => {
                Failure::Unusable(format!("{}: another unwedge watch keeps dumps there", folder.display()))
            }
            e => failed(e.into()),
        })?;
        let (naming, written) = (Mutex::new(()), AtomicU64::new(0));
        Ok(Store { folder: folder.to_owned(), packing, naming, written, journal, _lock: lock })
    }

    /// Deletes what a killed process left incomplete, if the dump is still there to be read again, and adopts it otherwise.
    pub fn tidy(&self, places: &Places) {
        for file in self.names().unwrap_or_default() {
            let Some(temporary) = TempName::parse(&file) else { continue };
            let path = self.path(&file);
            let result = if places.has(&temporary.label) {
                fs::remove_file(&path).map(|()| None)
            } else {
                adopt(self, &file, self.naming(modified(&path)), &head_kind)
            };
            match result {
                Ok(None) => {}
                Ok(Some(name)) => {
                    let message = format!("{name}: adopted, of {}; it may end early", temporary.label);
                    self.journal.say(Level::Warning, &message);
                }
                Err(error) => self.journal.say(Level::Warning, &format!("{file}: {error}")),
            }
        }
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The extension of compressed files.
    pub fn packing(&self) -> &'static str {
        self.packing.extension()
    }

    /// The name of a file that is to be written.
    pub fn temporary(&self, label: &str) -> TempName {
        TempName::new(label, (process::id(), self.written.fetch_add(1, Ordering::Relaxed)))
    }

    /// What the name of a dump of some time is made of.
    pub fn naming(&self, time: SystemTime) -> Naming<'_> {
        Naming { millis: millis(time), packing: self.packing(), lock: &self.naming }
    }

    /// The kept dumps, the oldest first.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn kept(&self) -> io::Result<Vec<KeptDump>> {
        Store::list(&self.folder)
    }

    /// The dumps that are kept in a folder, the oldest first.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn list(folder: &Path) -> io::Result<Vec<KeptDump>> {
        let entries = folder.read_dir()?.flatten();
        let files = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name, entry.metadata().ok()?.len()))
        });
        Ok(KeptDump::list(files))
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// When it is still there.
    pub fn delete(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    /// Writes a file beside the dumps; it has its name only when it is complete.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.path(&self.temporary("report").to_string());
        let written = create(&temporary, true).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, self.path(name))
        });
        written.inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }
}

/// Milliseconds since 1970.
pub fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Opens a file for its owner alone; `new`: one that is not there.
fn create(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    if new {
        options.create_new(true)
    } else {
        options.create(true).truncate(false)
    };
    options.open(path)
}

/// A dump that is being written.
pub struct PackedFile {
    packed: Packed,
    file: File,
}

impl Write for PackedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.packed.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.packed.flush()
    }
}

fn io_error(failure: Failure) -> io::Error {
    match failure {
        Failure::Write(_, error) | Failure::Output(error) => error,
        failure => io::Error::other(failure.to_string()),
    }
}

impl Disk for Store {
    type File = PackedFile;

    fn create(&self, name: &str) -> io::Result<PackedFile> {
        let file = create(&self.path(name), true)?;
        let packed = Packed::over(name, Box::new(file.try_clone()?), self.packing).map_err(io_error)?;
        Ok(PackedFile { packed, file })
    }

    fn finish(&self, file: PackedFile) -> io::Result<()> {
        file.packed.commit().map_err(io_error)?;
        file.file.sync_all()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = self.folder.read_dir()?;
        Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.delete(name)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        File::open(self.path(name))?.sync_all()
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(open_stream(&self.path(name))?))
    }
}
