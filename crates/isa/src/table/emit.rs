//! Writes rows as Rust source: the static the library includes.

use super::compile::Rows;
use std::fmt::Debug;

/// The source of one static; `strings_file` is the file next to it that holds the pool of texts.
pub fn emit(name: &str, rows: &Rows, strings_file: &str) -> String {
    fn list<T: Debug>(name: &str, rows: &[T]) -> String {
        format!("{name}: &{rows:?},\n")
    }
    let body = [
        list("roots", &rows.roots),
        list("nodes", &rows.nodes),
        list("picks", &rows.picks),
        list("leaves", &rows.leaves),
        list("scopes", &rows.scopes),
        list("shows", &rows.shows),
        list("asserts", &rows.asserts),
        list("pieces", &rows.pieces),
        list("cands", &rows.cands),
        list("fields", &rows.fields),
        list("names", &rows.names),
        list("enums", &rows.enums),
        list("values", &rows.values),
        list("code", &rows.code),
    ];
    let root = rows.roots.iter().position(|root| {
        let name = root.name.at as usize..(root.name.at + root.name.len) as usize;
        rows.strings.get(name) == Some("instruction")
    });
    let instruction =
        root.map_or_else(String::new, |at| format!("pub(super) const INSTRUCTION: Root = Root({at});\n"));
    format!(
        "{instruction}pub(super) static {name}: Table<'static> = Table {{\nstrings: include_str!({strings_file:?}),\n{}}};\n",
        body.concat()
    )
}
