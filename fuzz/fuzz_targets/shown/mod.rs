//! A dump through a view, within the bounds that campaigns have: no panic, and no more output than the view may print.

use unwedge::files::Input;
use unwedge_campaigns::{View, show};
use unwedge_cli::dump::DumpFiles;
use unwedge_hw::Db;
use unwedge_testkit::count::ByteCounter;

/// Shows a dump in one of some views, by number.
pub fn shown(text: &[u8], views: &[View], which: u8) {
    const MOST: u64 = 64 << 20;
    thread_local!(static DB: Db = Db::builtin());
    let Some(&view) = views.get(usize::from(which) % views.len().max(1)) else { return };
    let Ok(input) = Input::read(text, "dump".to_owned(), text.len() as u64, MOST) else { return };
    let counter = ByteCounter::default();
    DB.with(|db| drop(show(view, &DumpFiles::of(input), db, &mut counter.clone())));
    let limit = view.limit(text.len() as u64);
    let bytes = counter.bytes();
    assert!(bytes <= limit, "{view:?}: {bytes} bytes, {limit} at most");
}
