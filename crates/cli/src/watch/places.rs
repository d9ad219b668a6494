//! Where dumps appear: the nodes of the kernel, or folders. Reads and acknowledges them.

use crate::args::Watch;
use crate::dump::kind_of_head;
use crate::failure::Failure;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use unwedge::base::hash::Fnv1a;
use unwedge::capture::FileKind;
use unwedge::files::{InputError, InputStream};
use unwedge_keep::steps::HEAD;
use unwedge_keep::{Acknowledged, DumpNode, HeadKind, NodeSource, SeenNode};

/// How long a file of a folder must have been left alone.
const SETTLED: Duration = Duration::from_secs(2);

/// What is watched.
pub struct Places {
    sysfs: PathBuf,
    folders: Vec<PathBuf>,
}

impl Places {
    /// Those of the options.
    ///
    /// # Errors
    /// When a folder cannot be watched.
    pub fn new(args: &Watch) -> Result<Places, Failure> {
        for folder in &args.folders {
            let name = folder.display();
            if !folder.is_dir() {
                return Err(Failure::Unusable(format!("{name}: not a folder")));
            }
            if folder.canonicalize().is_ok_and(|folder| args.store.canonicalize().is_ok_and(|s| s == folder))
            {
                return Err(Failure::Usage(format!(
                    "{name}: dumps cannot be kept in the folder that is watched"
                )));
            }
        }
        Ok(Places { sysfs: args.sysfs.clone(), folders: args.folders.clone() })
    }

    /// The nodes that are there, in the order in which they are to be read.
    pub fn scan(&self) -> Vec<SeenNode> {
        let mut nodes = Vec::new();
        if !self.folders.is_empty() {
            self.folders.iter().for_each(|folder| files_of(folder, &mut nodes));
            return nodes;
        }
        let mut add = |path: PathBuf, source| {
            if let Ok(meta) = path.metadata() {
                nodes.push(SeenNode { path, version: meta.ino(), source });
            }
        };
        let mut dumps: Vec<(u64, PathBuf)> = entries(&self.sysfs.join("class/devcoredump"))
            .filter_map(|(name, path)| Some((name.strip_prefix("devcd")?.parse().ok()?, path)))
            .collect();
        // The oldest expires first.
        dumps.sort();
        dumps.into_iter().for_each(|(_, path)| add(path.join("data"), NodeSource::Devcoredump));
        let is_card = |name: &str| {
            name.strip_prefix("card").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let cards = entries(&self.sysfs.join("class/drm")).filter(|(name, _)| is_card(name));
        let cards = cards.map(|(_, path)| path.join("error"));
        // Kernels before 3.6 have it in debugfs only.
        let debugfs = entries(&self.sysfs.join("kernel/debug/dri"));
        let debugfs = debugfs.map(|(_, path)| path.join("i915_error_state"));
        cards.chain(debugfs).for_each(|path| add(path, NodeSource::I915));
        nodes
    }

    /// Files of the folders that somebody may be writing to.
    pub fn unsettled(&self) -> Vec<PathBuf> {
        let files = self.folders.iter().flat_map(|folder| plain_files(folder));
        files.filter(|(_, meta)| !is_settled(meta)).map(|(path, _)| path).collect()
    }

    /// Whether a node of this label is there.
    pub fn has(&self, label: &str) -> bool {
        self.scan().iter().any(|node| unwedge_keep::TempName::label(&self::label(&node.path)) == label)
    }
}

/// What a node is called in names of files: `devcd3`, `card0`, the name of a file in a folder.
pub fn label(path: &Path) -> String {
    let last = path.file_name().unwrap_or_default();
    let parent = path.parent().and_then(Path::file_name).unwrap_or_default();
    let of_kernel = ["data", "error", "i915_error_state"].iter().any(|name| last == *name);
    if of_kernel { parent.to_string_lossy().into_owned() } else { last.to_string_lossy().into_owned() }
}

/// The names and paths of what is in a folder; nothing, if it is not there.
fn entries(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

/// The files of a folder, by name.
fn plain_files(folder: &Path) -> impl Iterator<Item = (PathBuf, Metadata)> + use<> {
    let mut files: Vec<(String, PathBuf)> =
        entries(folder).filter(|(name, _)| !name.starts_with('.')).collect();
    files.sort();
    let files = files.into_iter().filter_map(|(_, path)| Some((path.metadata().ok()?, path)));
    files.filter(|(meta, _)| meta.is_file()).map(|(meta, path)| (path, meta))
}

/// Whether nobody writes to a file any more.
fn is_settled(meta: &Metadata) -> bool {
    let age = meta.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_none_or(|age| age >= SETTLED)
}

/// The files of a folder that nobody writes to any more.
fn files_of(folder: &Path, nodes: &mut Vec<SeenNode>) {
    for (path, meta) in plain_files(folder).filter(|(_, meta)| is_settled(meta)) {
        let parts = [meta.ino(), meta.len(), meta.mtime() as u64, meta.mtime_nsec() as u64];
        let version = Fnv1a::of(&parts.map(u64::to_le_bytes).concat());
        nodes.push(SeenNode { path, version, source: NodeSource::Folder });
    }
}

/// What a node holds, by its first bytes.
pub fn head_kind(head: &[u8]) -> HeadKind {
    match kind_of_head(head) {
        FileKind::MsmDevcore
        | FileKind::I915ErrorState
        | FileKind::XeDevcore
        | FileKind::AmdgpuDevcore
        | FileKind::RadvReport => HeadKind::Dump,
        FileKind::NoErrorState | FileKind::Empty => HeadKind::NoDump,
        _ => HeadKind::Other,
    }
}

/// A node that is open.
pub struct FileNode {
    path: PathBuf,
    source: NodeSource,
    inode: u64,
    reader: Box<dyn Read>,
}

impl FileNode {
    /// Opens a node.
    ///
    /// # Errors
    /// When it cannot be opened, or is another one by now.
    pub fn open(node: &SeenNode) -> io::Result<FileNode> {
        let file = File::open(&node.path)?;
        let inode = file.metadata()?.ino();
        let reader: Box<dyn Read> = match node.source {
            // Others may have compressed it.
            NodeSource::Folder => Box::new(open_stream(&node.path)?),
            _ if inode != node.version => return Err(io::ErrorKind::NotFound.into()),
            _ => Box::new(file),
        };
        Ok(FileNode { path: node.path.clone(), source: node.source, inode, reader })
    }

    /// What kind of file it is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn kind(&mut self) -> io::Result<FileKind> {
        let mut head = Vec::new();
        self.reader.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        Ok(kind_of_head(&head))
    }

    /// Fails if the node does not begin as the dump that was read.
    fn check(&self, head: &[u8]) -> io::Result<()> {
        let mut now = Vec::new();
        File::open(&self.path)?.take(head.len() as u64).read_to_end(&mut now)?;
        if now != head {
            return Err(io::Error::other("it holds another error state by now"));
        }
        Ok(())
    }
}

impl Read for FileNode {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl DumpNode for FileNode {
    fn acknowledge(&mut self, head: &[u8]) -> io::Result<Acknowledged> {
        match self.source {
            NodeSource::Folder => return Ok(Acknowledged::NotNeeded),
            // Somebody else may have cleared it, and the next hang is there.
            NodeSource::I915 => self.check(head)?,
            NodeSource::Devcoredump => {}
        }
        let mut file = match OpenOptions::new().write(true).open(&self.path) {
            Ok(file) => file,
            // It has expired: there is nothing left to drop.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Acknowledged::NotNeeded),
            Err(error) => return Err(error),
        };
        if file.metadata()?.ino() != self.inode {
            return Ok(Acknowledged::NotNeeded);
        }
        file.write_all(b"1")?;
        Ok(Acknowledged::Yes)
    }
}

/// Opens a file, whose compression is undone.
///
/// # Errors
/// When it cannot be opened.
pub fn open_stream(path: &Path) -> io::Result<InputStream> {
    InputStream::open(path).map_err(|error| match error {
        InputError::Io(_, error) => error,
        error => io::Error::other(error.to_string()),
    })
}

/// When a file was last changed.
pub fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
