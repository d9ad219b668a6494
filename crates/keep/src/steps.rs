//! How one dump is kept: it is read to its end into a file of another name, which is made safe, gets its name, and the name is made
//! safe; only then the kernel may drop the dump. A dump that is kept already is found by its contents.
//!
//! Never: an acknowledgement after any step that failed.

use crate::name::{DumpStem, FileRole, KeptName, TempName};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Mutex, PoisonError};
use unwedge_base::hash::Fnv1a;

/// Bytes that are asked for at once. The kernel gives as many as it can; most give a page.
const BLOCK: usize = 1 << 20;
/// Bytes that tell what a node holds.
pub const HEAD: usize = 16 << 10;

/// A node, or a file, that a dump is read from.
pub trait DumpNode: Read {
    /// Lets the kernel drop the dump. `head` is how it began; where a node can get another dump in place of this
    /// one, it is compared before.
    ///
    /// # Errors
    /// When the dump may still be there, or another is.
    fn acknowledge(&mut self, head: &[u8]) -> io::Result<Acknowledged>;
}

/// The folder that dumps are kept in.
pub trait Disk {
    /// A file that is being written.
    type File: Write;
    /// Creates a file that is not there.
    ///
    /// # Errors
    /// When it is, or cannot be created.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Writes what is left of a file, and waits until it is on the medium.
    ///
    /// # Errors
    /// When it may not be there.
    fn finish(&self, file: Self::File) -> io::Result<()>;
    /// The names of all files.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Gives a file another name.
    ///
    /// # Errors
    /// When it has the old one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Deletes a file.
    ///
    /// # Errors
    /// When it is still there.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Waits until a file is on the medium.
    ///
    /// # Errors
    /// When it may not be there.
    fn sync(&self, name: &str) -> io::Result<()>;
    /// Waits until the names of files are on the medium.
    ///
    /// # Errors
    /// When they may not be there.
    fn sync_folder(&self) -> io::Result<()>;
    /// Opens what a file holds, decompressed.
    ///
    /// # Errors
    /// When it cannot be read.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read>>;
}

/// What a node holds, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// A crash dump of a GPU.
    Dump,
    /// A text that says that there is none.
    NoDump,
    /// Something else, such as the dump of a network card.
    Other,
}

/// Whether the kernel was asked to drop the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// The node was written to.
    Yes,
    /// There is nothing to drop: the file is in a folder, or the dump has expired.
    NotNeeded,
}

/// What is asked of [`keep`].
pub struct KeepRequest<'r> {
    /// The name of the file until it is complete.
    pub temporary: TempName,
    /// What its name is made of.
    pub naming: Naming<'r>,
    /// The head of the dump that was kept of this node before.
    pub known_head: Option<u64>,
    /// A dump of more bytes is not kept.
    pub max_bytes: u64,
    /// What first bytes are of.
    pub kind: &'r dyn Fn(&[u8]) -> HeadKind,
}

/// What the name of a kept dump is made of, beside its contents.
#[derive(Clone, Copy)]
pub struct Naming<'r> {
    /// The time in milliseconds since 1970.
    pub millis: u64,
    /// The extension of the compression of the disk's files.
    pub packing: &'r str,
    /// Held while a file gets its name, by all who keep dumps in one folder.
    pub lock: &'r Mutex<()>,
}

/// A step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepStep {
    /// Reading the node.
    Read,
    /// Creating or writing the file, or making it safe.
    Write,
    /// Giving it its name, or making that safe.
    Name,
}

impl fmt::Display for KeepStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeepStep::Read => "cannot read the dump",
            KeepStep::Write => "cannot write the dump to disk",
            KeepStep::Name => "cannot name the file of the dump",
        })
    }
}

/// How it ended.
#[derive(Debug)]
pub enum KeepEnd {
    /// The dump is safe in a file of this name.
    Kept {
        /// The file.
        name: String,
        /// Bytes of the dump.
        bytes: u64,
        /// The hash of its first bytes.
        head: u64,
        /// It was there before.
        known: bool,
        /// What came of the acknowledgement.
        acknowledged: io::Result<Acknowledged>,
    },
    /// The node has the head of the dump that was kept before.
    Unchanged,
    /// The node holds no dump.
    Empty,
    /// The node holds something else, with this hash of its first bytes.
    Other(u64),
    /// The dump has more bytes than may be kept, with this hash of its first bytes.
    TooLarge(u64),
    /// The kernel dropped the dump while it was read.
    Gone,
    /// A step failed; the dump is still the kernel's.
    Failed(KeepStep, io::Error),
}

/// Keeps the dump of a node.
pub fn keep<D: Disk>(node: &mut dyn DumpNode, disk: &D, request: &KeepRequest<'_>) -> KeepEnd {
    let mut block = vec![0; BLOCK];
    let head = match fill(node, &mut block[..HEAD]) {
        Ok(read) => block[..read].to_vec(),
        Err(error) => return read_failed(error),
    };
    let head_hash = Fnv1a::of(&head);
    match (request.kind)(&head) {
        _ if head.is_empty() => return KeepEnd::Empty,
        HeadKind::NoDump => return KeepEnd::Empty,
        _ if request.known_head == Some(head_hash) => return KeepEnd::Unchanged,
        HeadKind::Other => return KeepEnd::Other(head_hash),
        HeadKind::Dump => {}
    }
    let temporary = request.temporary.to_string();
    let copied = disk.create(&temporary).map_err(|error| KeepEnd::Failed(KeepStep::Write, error));
    let copied = copied.and_then(|file| copy(node, disk, file, &head, head_hash, &mut block, request));
    let end = copied.and_then(|contents| {
        let named = name(disk, &temporary, contents.hash, request.naming);
        named.map_err(|error| KeepEnd::Failed(KeepStep::Name, error)).map(|(name, known)| {
            let acknowledged = node.acknowledge(&head);
            KeepEnd::Kept { name, bytes: contents.bytes, head: head_hash, known, acknowledged }
        })
    });
    end.unwrap_or_else(|end| {
        // It may never have been created; what is left behind is found at the next start.
        let _ = disk.remove(&temporary);
        end
    })
}

/// The contents of a dump that was read.
#[derive(Clone, Copy)]
struct Contents {
    hash: u64,
    bytes: u64,
}

fn read_failed(error: io::Error) -> KeepEnd {
    // ENODEV, for which there is no `ErrorKind`: the kernel has dropped the dump.
    let gone = error.raw_os_error() == Some(19) || error.kind() == ErrorKind::NotFound;
    if gone { KeepEnd::Gone } else { KeepEnd::Failed(KeepStep::Read, error) }
}

/// Reads until a buffer is full or the source ends.
fn fill(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let (filled, result) = fill_until_error(source, buffer);
    result.map(|()| filled)
}

/// The same; what was read before an error counts.
fn fill_until_error(source: &mut dyn Read, buffer: &mut [u8]) -> (usize, io::Result<()>) {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}

/// Writes the head and the rest of a node to a file, and makes that safe.
fn copy<D: Disk>(
    node: &mut dyn DumpNode,
    disk: &D,
    mut file: D::File,
    head: &[u8],
    head_hash: u64,
    block: &mut [u8],
    request: &KeepRequest<'_>,
) -> Result<Contents, KeepEnd> {
    let write_failed = |error| KeepEnd::Failed(KeepStep::Write, error);
    let mut hash = Fnv1a::default();
    hash.add(head);
    let mut bytes = head.len() as u64;
    file.write_all(head).map_err(write_failed)?;
    loop {
        if bytes > request.max_bytes {
            return Err(KeepEnd::TooLarge(head_hash));
        }
        let read = match node.read(block) {
            Ok(0) => break,
            Ok(read) => &block[..read],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(read_failed(error)),
        };
        hash.add(read);
        bytes += read.len() as u64;
        file.write_all(read).map_err(write_failed)?;
    }
    disk.finish(file).map_err(write_failed)?;
    Ok(Contents { hash: hash.value(), bytes })
}

/// Gives a complete file its name, or finds the file that has the same contents. Its name, and whether it was there before.
fn name<D: Disk>(disk: &D, temporary: &str, hash: u64, naming: Naming<'_>) -> io::Result<(String, bool)> {
    let _held = naming.lock.lock().unwrap_or_else(PoisonError::into_inner);
    // Only names with this hash matter; there may be thousands of others.
    let of_hash = format!("{hash:016x}");
    let names = disk.names()?.into_iter().filter(|name| name.contains(&of_hash));
    let kept: Vec<(String, KeptName)> =
        names.filter_map(|name| KeptName::parse(&name).map(|kept| (name, kept))).collect();
    let is_dump = |kept: &KeptName| kept.role == FileRole::Dump;
    for (name, _) in kept.iter().filter(|(_, kept)| kept.stem.hash == hash && is_dump(kept)) {
        // One that is damaged does not count.
        if same(disk, temporary, name).unwrap_or(false) {
            // Whoever kept it may have been killed before it was safe.
            disk.sync(name)?;
            disk.sync_folder()?;
            disk.remove(temporary)?;
            return Ok((name.clone(), true));
        }
    }
    let mut stem = DumpStem { millis: naming.millis, hash };
    while kept.iter().any(|(_, kept)| kept.stem == stem) {
        stem.millis += 1;
    }
    let name = stem.pending(naming.packing);
    disk.rename(temporary, &name)?;
    disk.sync_folder()?;
    Ok((name, false))
}

/// Whether two files hold the same bytes.
fn same<D: Disk>(disk: &D, first: &str, second: &str) -> io::Result<bool> {
    let (mut first, mut second) = (disk.open(first)?, disk.open(second)?);
    let (mut a, mut b) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let (read_a, read_b) = (fill(&mut first, &mut a)?, fill(&mut second, &mut b)?);
        if a[..read_a] != b[..read_b] {
            return Ok(false);
        }
        if read_a == 0 {
            return Ok(true);
        }
    }
}

/// Names the incomplete file that a killed process left, if it holds the start of a dump, and deletes it otherwise. For dumps that the
/// kernel has dropped since, because a part is better than nothing. Returns the new name.
///
/// # Errors
/// When the file cannot be read, named or deleted.
pub fn adopt<D: Disk>(
    disk: &D,
    temporary: &str,
    naming: Naming<'_>,
    kind: &dyn Fn(&[u8]) -> HeadKind,
) -> io::Result<Option<String>> {
    let mut file = disk.open(temporary)?;
    let mut block = vec![0; BLOCK];
    let (mut hash, mut bytes, mut is_dump) = (Fnv1a::default(), 0, false);
    loop {
        // A compressed stream that breaks off ends with an error.
        let (read, result) = fill_until_error(&mut file, &mut block);
        if bytes == 0 {
            is_dump = kind(&block[..read.min(HEAD)]) == HeadKind::Dump;
        }
        if read == 0 || !is_dump {
            break;
        }
        hash.add(&block[..read]);
        bytes += read as u64;
        if result.is_err() {
            break;
        }
    }
    drop(file);
    if bytes == 0 {
        disk.remove(temporary)?;
        return Ok(None);
    }
    disk.sync(temporary)?;
    name(disk, temporary, hash.value(), naming).map(|(name, _)| Some(name))
}
