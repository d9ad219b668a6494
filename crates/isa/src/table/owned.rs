//! A table made at run time from a description, for tests and for descriptions that are not compiled in.

use super::compile::{CompileError, Rows, compile};
use super::model::Isa;
use super::types::Table;
use std::borrow::Cow;

/// Owns the rows a [`Table`] reads.
#[derive(Clone, Debug)]
pub struct OwnedTable {
    rows: Rows,
    texts: Vec<Cow<'static, str>>,
}

impl OwnedTable {
    /// Compiles a description.
    ///
    /// # Errors
    /// What the description refers to and does not define, bits beyond a word, endless nesting.
    pub fn new(isa: &Isa) -> Result<OwnedTable, CompileError> {
        let mut rows = compile(isa)?;
        let texts = std::mem::take(&mut rows.texts).into_iter().map(Cow::Owned).collect();
        Ok(OwnedTable { rows, texts })
    }

    /// The table.
    pub fn table(&self) -> Table<'_> {
        let rows = &self.rows;
        Table {
            texts: &self.texts,
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
