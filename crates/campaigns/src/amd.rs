//! What `info`, `explain` and `decode` print for what an AMD GPU left, in memory. Never: files, the terminal, other processes.

use crate::print_report;
use std::io::Write;
use unwedge::files::Input;
use unwedge::hw::Db;
use unwedge_cli::dump::DumpFiles;
use unwedge_cli::failure::Failure;
use unwedge_cli::info;
use unwedge_view::Style;
use unwedge_view::amd::{self, AmdDump};
use unwedge_view::around::{self, Place};

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// `info`, as text or JSON.
    Info {
        /// As JSON.
        json: bool,
    },
    /// `explain`, as text or JSON.
    Explain {
        /// As JSON.
        json: bool,
    },
    /// `decode`, as text or JSON.
    Decode {
        /// As JSON.
        json: bool,
    },
    /// `decode --around PLACE`, as text or JSON.
    Around {
        /// The place.
        place: Place,
        /// As JSON.
        json: bool,
    },
}

/// What is given to the command.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// A file.
    File(&'a [u8]),
    /// The files of a folder: names and contents.
    Folder(&'a [(String, Vec<u8>)]),
}

impl View {
    /// Every view.
    pub const ALL: [View; 9] = [
        View::Info { json: false },
        View::Info { json: true },
        View::Explain { json: false },
        View::Explain { json: true },
        View::Decode { json: false },
        View::Decode { json: true },
        View::Around { place: Place::Hang, json: false },
        View::Around { place: Place::Work(None, 0), json: true },
        View::Around { place: Place::Address(0x8001_0010_0000), json: false },
    ];

    /// The most bytes that it prints for an input of so many.
    pub fn limit(self, input: u64) -> u64 {
        // The last piece of work is printed to its end.
        const OVER: u64 = 4 << 20;
        let (fixed, per_byte) = match self {
            View::Decode { json: true } | View::Around { .. } => {
                (unwedge_view::lines::LENGTH, unwedge_view::lines::LENGTH_PER_BYTE)
            }
            // A dword of a register can have many fields.
            View::Decode { json: false } => (1 << 20, 128),
            View::Info { .. } | View::Explain { .. } => (1 << 20, 24),
        };
        per_byte.saturating_mul(input).saturating_add(fixed).saturating_add(OVER)
    }
}

/// Prints one view on `out`. The error is what the program says when it cannot use the input.
///
/// # Errors
///
/// The message of the program, if the input is not what the view is of.
pub fn show(view: View, given: Given<'_>, db: &Db, out: &mut dyn Write) -> Result<(), String> {
    run(view, given, db, out).map_err(|failure| failure.to_string())
}

fn run(view: View, given: Given<'_>, db: &Db, out: &mut dyn Write) -> Result<(), Failure> {
    let input = |name: &str, bytes: &[u8]| Input::read(bytes, name.to_owned(), bytes.len() as u64, 1 << 30);
    let files = match given {
        Given::File(bytes) => DumpFiles::of(input("file", bytes)?),
        Given::Folder(files) => {
            let files = files.iter().map(|(name, bytes)| Ok((name.clone(), input(name, bytes)?)));
            DumpFiles::of_folder("folder".to_owned(), files.collect::<Result<_, Failure>>()?)
        }
    };
    let style = Style { colour: false };
    let read = files.read()?;
    let dump = AmdDump::of(&read).ok_or_else(|| files.not_a_dump())?;
    match view {
        View::Info { json } => drop(info::show(&files, db, json, style, 1 << 30, out)?),
        View::Explain { json } => {
            let report = around::explained(&read, db, 1 << 30);
            print_report(&report, None, json, out);
        }
        View::Decode { json: true } => {
            let compression = files.compression();
            amd::decode_json(&files.info(dump.kind(), &compression), dump, &files.unpacking(), out);
        }
        View::Around { place, json } => {
            let options = around::Options { json, style, max_size: 1 << 30, context: None };
            around::dump((&read, files.size()), &files.unpacking(), place, options, db, out)
                .map_err(|e| Failure::Unusable(e.to_string()))?;
        }
        // A failed write is for the owner of `out` to remember.
        View::Decode { json: false } => drop(amd::decode_text(dump, style, out)),
    }
    Ok(())
}
