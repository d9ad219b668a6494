//! Writes rows as Rust source: the static the library includes.

use crate::table::OwnedTable;
use std::fmt::Debug;

/// The source of one static.
pub fn emit(name: &str, table: &OwnedTable) -> String {
    let rows = &table.rows;
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
        list("renders", &rows.renders),
        list("tabulations", &rows.tabulations),
        list("truths", &rows.truths),
    ];
    let texts: String = table.texts.iter().map(|text| format!("Cow::Borrowed({text:?}), ")).collect();
    let root = rows
        .roots
        .iter()
        .position(|root| table.texts.get(root.name.0 as usize).is_some_and(|name| name == "instruction"));
    let instruction =
        root.map_or_else(String::new, |at| format!("pub(super) const INSTRUCTION: Root = Root({at});\n"));
    format!(
        "{instruction}pub(super) static {name}: Table<'static> = Table {{\ntexts: &[{texts}],\n{}}};\n",
        body.concat()
    )
}
