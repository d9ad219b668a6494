//! What two sides of a comparison are, and what came of it. Never: comparing; that is `unwedge_view::diff`'s.

use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_hw::Db;
use unwedge_view::ViewError;
use unwedge_view::diff::{self, Compared, DiffOptions, Selector, Side, SideError};

/// Which part of an input is compared: all of it by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffPlace {
    /// Only this submit; of a dump this ring.
    pub submit: Option<u32>,
    /// Only this draw.
    pub draw: Option<u32>,
}

/// What is compared, and how it is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffQuestion {
    /// Which part of the first input.
    pub a: DiffPlace,
    /// Which part of the second input: a draw, a submit or all, as of the first.
    pub b: DiffPlace,
    /// A buffer that runs for each tile is taken once for each mode.
    pub once: bool,
    /// JSON lines instead of text.
    pub json: bool,
}

/// What came of a comparison, beside its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences {
    /// Something differs.
    pub differs: bool,
    /// Not all was compared: a submit has too many draws, writes or shaders. [`Differences::notes`] say which.
    pub cut: bool,
    /// What to say beside the result.
    pub notes: Vec<String>,
    /// What was lost of each side.
    pub lost: [Vec<Diagnostic>; 2],
}

/// Opens a side, on a thread of its own.
pub(crate) type Open<'a, 'd> = &'a (dyn Fn() -> Result<diff::Opened<'d>, ViewError> + Sync + 'a);

/// Compares two inputs, by their names.
pub(crate) fn run<'d>(
    [(name_a, open_a), (name_b, open_b)]: [(&str, Open<'_, 'd>); 2],
    question: DiffQuestion,
    shown: DiffOptions,
    db: &Db,
    max_alive: u64,
    out: &mut dyn Write,
) -> Result<Differences, ViewError> {
    let of = |name: &str, place: DiffPlace| Selector {
        name: name.to_owned(),
        submit: place.submit,
        draw: place.draw,
    };
    let (a, b) = (of(name_a, question.a), of(name_b, question.b));
    if a.level() != b.level() {
        return Err(ViewError::UnlikeSides);
    }
    let sides =
        [Side { selector: &a, open: Box::new(open_a) }, Side { selector: &b, open: Box::new(open_b) }];
    let Compared { differs, cut, absent, notes, sides } = diff::compare(sides, shown, db, max_alive, out);
    let [of_a, of_b] = sides.map(|side| {
        side.map_err(|error| match error {
            SideError::Open(e) | SideError::View(e) => e,
        })
    });
    let lost = [of_a?, of_b?];
    if absent {
        return Err(ViewError::Absent(notes.join("; ")));
    }
    Ok(Differences { differs, cut, notes, lost })
}
