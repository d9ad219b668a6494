//! What the verbs print for an input in memory, and the most that they may print: for tests and campaigns over many inputs.
//!
//! Each view does what its verb does, without the process around it. Never: files, the terminal, a decision that a verb
//! makes.

pub mod amd;
pub mod amdisa;
pub mod breadcrumbs;
pub mod browser;
pub mod captures;
pub mod compiler;
pub mod contexts;
pub mod lints;
pub mod replays;
pub mod texts;

use std::io::{self, Write};
use unwedge::capture::Dump;
use unwedge::hw::Db;
use unwedge::postmortem::Report;
use unwedge_cli::dump::DumpFiles;
use unwedge_cli::failure::Failure;
use unwedge_cli::info;
use unwedge_view::around::Place;
use unwedge_view::intel::{self, IntelDump};
use unwedge_view::report::{self, ReportOptions};
use unwedge_view::{Style, around, crashdec, decode};

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// `crashdec`, and the text of `decode`.
    Listing(crashdec::CrashdecOptions),
    /// `explain`, as text or JSON.
    Explain {
        /// As JSON.
        json: bool,
    },
    /// `decode --json`.
    Json,
    /// `decode --around PLACE`, as text or JSON.
    Around {
        /// The place.
        place: Place,
        /// As JSON.
        json: bool,
    },
    /// `info`, as text or JSON.
    Info {
        /// As JSON.
        json: bool,
    },
    /// `lrc verify`, `lrc show` and `lrc diff` of the contexts of a dump, as text or JSON.
    Contexts {
        /// As JSON.
        json: bool,
    },
    /// `decode` of an error state of i915 or a devcoredump of xe, as text or JSON.
    Intel {
        /// As JSON.
        json: bool,
    },
}

impl View {
    /// Every view of a dump of i915 or xe.
    pub const OF_INTEL: [View; 11] = [
        View::Explain { json: false },
        View::Explain { json: true },
        View::Info { json: false },
        View::Info { json: true },
        View::Intel { json: false },
        View::Intel { json: true },
        View::Contexts { json: false },
        View::Contexts { json: true },
        View::Around { place: Place::Hang, json: false },
        View::Around { place: Place::Work(None, 0), json: true },
        View::Around { place: Place::Address(0x1_0010_0000), json: false },
    ];

    /// Every view of a dump of msm, the listing with several sets of options.
    pub fn all() -> Vec<View> {
        let plain = crashdec::CrashdecOptions::default();
        let summary = crashdec::CrashdecOptions { summary: true, ..plain };
        let everything =
            crashdec::CrashdecOptions { allregs: true, color: true, markers: true, verbose: true, ..plain };
        let listings = [plain, summary, everything].map(View::Listing);
        let others = [false, true].into_iter().flat_map(|json| {
            let around = |place| View::Around { place, json };
            let places = [Place::Hang, Place::Work(None, 0), Place::Address(0x1_0000_0000)].map(around);
            places.into_iter().chain([View::Explain { json }, View::Info { json }])
        });
        listings.into_iter().chain(others).chain([View::Json]).collect()
    }

    /// The most bytes that it prints for an input of so many.
    pub fn limit(self, input: u64) -> u64 {
        // The last piece of work is printed to its end.
        const OVER: u64 = 4 << 20;
        let (fixed, per_byte) = match self {
            View::Listing(_) => (crashdec::LENGTH, crashdec::LENGTH_PER_BYTE),
            View::Json | View::Around { .. } => {
                (unwedge_view::lines::LENGTH, unwedge_view::lines::LENGTH_PER_BYTE)
            }
            View::Intel { json: false } => (intel::text::LENGTH, intel::text::LENGTH_PER_BYTE),
            View::Intel { json: true } => (unwedge_view::lines::LENGTH, unwedge_view::lines::LENGTH_PER_BYTE),
            View::Contexts { .. } => (contexts::OUTPUT_FLOOR, contexts::OUTPUT_OF_DUMP_PER_BYTE),
            View::Explain { .. } | View::Info { .. } => (1 << 20, 16),
        };
        per_byte.saturating_mul(input).saturating_add(fixed).saturating_add(OVER)
    }
}

/// Prints one view of an input on `out`. The error is what the program says when it cannot use the input.
///
/// # Errors
/// What the program says when it cannot use the input.
pub fn show(view: View, files: &DumpFiles, db: &Db, out: &mut dyn Write) -> Result<(), String> {
    let style = Style { colour: false };
    let failed = |e: Failure| e.to_string();
    let (size, lost) = (files.size(), files.unpacking());
    let max_size = size.saturating_mul(64);
    if let View::Info { json } = view {
        return info::show(files, db, json, style, max_size, out).map(drop).map_err(failed);
    }
    let dump = files.read().map_err(failed)?;
    match (view, &dump, IntelDump::of(&dump)) {
        (View::Listing(options), Dump::Msm(dump), _) => {
            crashdec::run((files.bytes(), dump), &options, db, out, &mut io::sink());
        }
        (View::Json, Dump::Msm(dump), _) => drop(decode::json((dump, size), &lost, db, out)),
        (View::Explain { json }, dump, _) => {
            let report = around::explained(dump, db, max_size);
            print_report(&report, Some(&files.name), json, out);
        }
        (View::Around { place, json }, dump, _) => {
            let options = around::Options { json, style, max_size, context: None };
            around::dump((dump, size), &lost, place, options, db, out).map_err(|e| e.to_string())?;
        }
        (View::Intel { json: true }, _, Some(dump)) => {
            drop(intel::json::decode(dump, size, &lost, max_size, db, out));
        }
        (View::Intel { json: false }, _, Some(dump)) => {
            let options = intel::text::ListingOptions { max_size, style, all_fields: false };
            drop(intel::text::decode(dump, size, &lost, options, out));
        }
        (View::Contexts { json }, _, Some(dump)) => contexts::of_dump(dump, max_size, json, out)?,
        (View::Intel { .. } | View::Contexts { .. }, _, None) => {
            return Err("neither of i915 nor of xe".to_owned());
        }
        _ => return Err(files.not_of_msm().to_string()),
    }
    Ok(())
}

/// A report as wide as one that does not go to a terminal. A failed write is for the owner of `out` to remember.
fn print_report(found: &Report, file: Option<&str>, json: bool, out: &mut dyn Write) {
    let _ = match json {
        true => report::json(found, file, out),
        false => report::text(found, file, ReportOptions::default(), out),
    };
}
