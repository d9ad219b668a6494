//! The list of what goes into a bundle and what was taken out: for the user before it is written, and as README.txt in it.
//!
//! The list that is printed has the private names with their pseudonyms, README.txt only the numbers of them.

use super::{Bundle, BundleFile, BundledDump};
use crate::plural::counted;
use std::fmt::Write as _;
use std::io::{self, Write};
use unwedge_capture::FileKind;
use unwedge_capture::private::{PrivateKind, Pseudonym, Pseudonyms};

/// Names that are looked for in the files.
const SOUGHT: usize = 256;
/// Names of each kind that are printed.
const PRINTED: usize = 12;

/// What stays in a bundle whatever is taken out.
const STAYS: &str = "\
What is not taken out: registers, rings, contexts, the memory of the GPU's processors, sizes and addresses of buffers, process ids,
names of buffers, shaders, and contents of buffers that the verdict needs. Contents of such a buffer stay as a whole, with whatever
the application wrote there. Messages of the kernel log in forms that unwedge does not know keep the names in them.
";

impl Bundle<'_> {
    /// Writes what goes in and what was taken out. `files` are those of [`Bundle::finish`].
    ///
    /// # Errors
    /// Those of `out`.
    pub fn list(&self, files: &[BundleFile], out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "What goes in:")?;
        out.write_all(table(files).as_bytes())?;
        out.write_all(b"\n")?;
        out.write_all(self.taken_out(true).as_bytes())?;
        for (name, file) in &self.left {
            writeln!(out, "  still there: `{name}`, in {file}")?;
        }
        out.write_all(b"\n")?;
        out.write_all(STAYS.as_bytes())
    }

    /// What was taken out; with the names themselves, or without.
    fn taken_out(&self, named: bool) -> String {
        let mut out = String::from("What was taken out:\n");
        let before = out.len();
        for kind in PrivateKind::ALL {
            let replaced = |name: &Pseudonym<'_>| name.kind == kind && name.times > 0;
            let mut names: Vec<Pseudonym<'_>> = self.names.iter().filter(replaced).collect();
            if names.is_empty() {
                continue;
            }
            names.sort_by_key(|name| name.number);
            let times = counted(names.iter().map(|name| name.times).sum(), "time", "times");
            let (one, many) = describe(kind);
            let _ = writeln!(out, "  {}, replaced {times}", counted(names.len() as u64, one, many));
            for name in names.iter().take(PRINTED).filter(|_| named) {
                let text = String::from_utf8_lossy(name.text);
                let _ = writeln!(out, "    {}-{}: {}", kind.word(), name.number, text.escape_debug());
            }
            if named && names.len() > PRINTED {
                let _ = writeln!(out, "    and {} more", names.len() - PRINTED);
            }
        }
        for (number, dump) in self.dumps.iter().enumerate() {
            let of = if self.dumps.len() > 1 { format!(" of dump {}", number + 1) } else { String::new() };
            out.push_str(&contents(dump, &of));
        }
        if out.len() == before {
            out.push_str("  nothing\n");
        }
        out
    }
}

/// What became of the contents of buffers of a dump.
fn contents(dump: &BundledDump, of: &str) -> String {
    let mut out = String::new();
    let tally = dump.contents;
    let buffers = |count: usize| counted(count as u64, "buffer", "buffers");
    if tally.cut > 0 {
        let why = match dump.kind {
            FileKind::RdCapture => "no submit reaches them",
            _ => "the verdict is the same without them",
        };
        let bytes = counted(tally.cut_bytes, "byte", "bytes");
        let _ = writeln!(out, "  the contents of {}{of}, {bytes} of the file: {why}", buffers(tally.cut));
    }
    if tally.modules > 0 {
        let files = counted(tally.modules as u64, "file", "files");
        let _ = writeln!(out, "  {files}{of} with SPIR-V or of a kind that is not known");
    }
    if tally.kept > 0 {
        let bytes = counted(tally.kept_bytes, "byte", "bytes");
        let undecided = if tally.unfinished { ", some of which may not be needed" } else { "" };
        let _ = writeln!(out, "  (kept: the contents of {}{of}, {bytes}{undecided})", buffers(tally.kept));
    }
    out
}

fn describe(kind: PrivateKind) -> (&'static str, &'static str) {
    match kind {
        PrivateKind::Process => ("name of a process", "names of processes"),
        PrivateKind::Command => ("command line", "command lines"),
        PrivateKind::User => ("name of a user", "names of users"),
        PrivateKind::Host => ("name of a machine", "names of machines"),
        PrivateKind::Network => ("network address", "network addresses"),
        PrivateKind::Serial => ("serial number", "serial numbers"),
        PrivateKind::Account => ("account", "accounts"),
        PrivateKind::Ssid => ("name of a wireless network", "names of wireless networks"),
        PrivateKind::Device => ("name of a device", "names of devices"),
        PrivateKind::Path => ("file or folder of the audit", "files and folders of the audit"),
    }
}

fn table(files: &[BundleFile]) -> String {
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
    files.iter().fold(String::new(), |mut out, file| {
        let _ = writeln!(out, "  {:width$}  {:>11} bytes  {}", file.name, file.bytes.len(), file.about);
        out
    })
}

/// README.txt.
pub(super) fn readme(bundle: &Bundle<'_>, files: &[BundleFile], version: &str) -> String {
    let mut out = format!("A report of a GPU hang, packed by unwedge {version}.\n\n");
    for (number, dump) in bundle.dumps.iter().enumerate() {
        let of = if bundle.dumps.len() > 1 { format!("Dump {}", number + 1) } else { "The dump".to_owned() };
        let _ = writeln!(out, "{of} is {}.", dump.kind.describe());
        if let Some(signature) = &dump.signature {
            let _ = writeln!(out, "  signature: {signature}");
        }
        let _ = writeln!(out, "  register database: {}", dump.database);
    }
    let _ = write!(
        out,
        "\n`unwedge explain`, `decode`, `info` and every other command that takes a dump read this archive as it is.\n"
    );
    if bundle.dumps.len() > 1 {
        out.push_str("They read the first dump in it; unpack it with tar to read the others.\n");
    }
    let _ = write!(out, "\nWhat is in here:\n{}\n{}", table(files), bundle.taken_out(false));
    out.push_str(
        "\nA pseudonym such as `process-1` replaces the same name in all files of this archive. Names are numbered in the order in \
         which they come up.\n\n",
    );
    out.push_str(STAYS);
    out
}

/// Names that a file still has, each with the first file.
pub(super) fn left(names: &Pseudonyms, files: &[BundleFile]) -> Vec<(String, String)> {
    let sought = names.iter().filter(|name| {
        matches!(
            name.kind,
            PrivateKind::Process
                | PrivateKind::Command
                | PrivateKind::User
                | PrivateKind::Host
                | PrivateKind::Ssid
        ) && name.text.len() > 2
    });
    let found = sought.take(SOUGHT).filter_map(|name| {
        let file = files.iter().find(|file| has_word(&file.bytes, name.text))?;
        Some((String::from_utf8_lossy(name.text).escape_debug().to_string(), file.name.clone()))
    });
    found.collect()
}

/// Whether a text has a word of its own.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    let Some(&first) = word.first() else { return false };
    let apart = |c: Option<&u8>| c.is_none_or(|c| !c.is_ascii_alphanumeric());
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.iter().position(|&c| c == first)) {
        let start = from + at;
        if text.get(start..).is_some_and(|rest| rest.starts_with(word))
            && apart(start.checked_sub(1).and_then(|before| text.get(before)))
            && apart(text.get(start + word.len()))
        {
            return true;
        }
        from = start + 1;
    }
    false
}
