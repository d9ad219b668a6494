//! A table made at run time from a description, for tests and for descriptions that are not compiled in.

use super::compile::{CompileError, Rows, compile};
use super::model::Isa;
use super::types::Table;

/// Owns the rows a [`Table`] reads.
#[derive(Clone, Debug)]
pub struct OwnedTable {
    rows: Rows,
}

impl OwnedTable {
    /// Compiles a description.
    ///
    /// # Errors
    /// What the description refers to and does not define, bits beyond a word, endless nesting.
    pub fn new(isa: &Isa) -> Result<OwnedTable, CompileError> {
        Ok(OwnedTable { rows: compile(isa)? })
    }

    /// The table.
    pub fn table(&self) -> Table<'_> {
        let rows = &self.rows;
        Table {
            strings: &rows.strings,
            roots: &rows.roots,
            nodes: &rows.nodes,
            picks: &rows.picks,
            leaves: &rows.leaves,
            scopes: &rows.scopes,
            shows: &rows.shows,
            asserts: &rows.asserts,
            pieces: &rows.pieces,
            cands: &rows.cands,
            fields: &rows.fields,
            names: &rows.names,
            enums: &rows.enums,
            values: &rows.values,
            code: &rows.code,
        }
    }
}
