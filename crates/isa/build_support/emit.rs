//! Writes rows as Rust source: the static the library includes.

use crate::table::OwnedTable;
use crate::table::program::OwnedPrograms;
use std::fmt::Debug;

fn list<T: Debug>(name: &str, rows: &[T]) -> String {
    format!("{name}: &{rows:?},\n")
}

/// The source of one static.
pub fn emit(name: &str, table: &OwnedTable) -> String {
    let rows = &table.rows;
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
        "{instruction}pub(super) static {name}: IsaTable<'static> = IsaTable {{\ntexts: &[{texts}],\n{}}};\n",
        body.concat()
    )
}

/// The source of one static of programs. Their texts are in a file beside it.
pub fn programs(name: &str, texts: &str, programs: &OwnedPrograms) -> String {
    let body = [
        list("bounds", &programs.bounds),
        list("trees", &programs.trees),
        list("nodes", &programs.nodes),
        list("picks", &programs.picks),
        list("heads", &programs.heads),
        list("programs", &programs.programs),
        list("steps", &programs.steps),
        list("targets", &programs.targets),
        list("ways", &programs.ways),
        list("checks", &programs.checks),
    ];
    format!(
        "pub(super) static {name}: Programs<'static> = Programs {{\n{}texts: include_bytes!({texts:?}).as_chunks().0,\n}};\n",
        body.concat()
    )
}
