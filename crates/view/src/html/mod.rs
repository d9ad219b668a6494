//! Pages: reports and listings as one file of HTML that loads nothing, for people who did not take the dump.
//!
//! A page shows what the report, the facts of the dump and the listings hold. It is read without a script, on screens of any width, in
//! light and dark, on paper, and by a screen reader. Never: opens files, or repeats markup of a dump as markup.

mod charts;
mod explain;
pub(crate) mod facts;
mod listing;
pub(crate) mod markup;
pub(crate) mod page;
mod tree;

pub use explain::explain;
pub use listing::{LISTING_BYTES, ListingPage, listing};
