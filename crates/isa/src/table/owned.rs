//! A table made at run time from a description, for tests and for descriptions that are not compiled in.

use super::compile::{CompileError, TableRows, compile};
use super::model::Isa;
use super::print::write_part;
use super::read::DisplayPart;
use super::rows::{RowSpan, TextId};
use super::types::{FieldKind, IsaTable, Root};
use std::borrow::Cow;

/// Owns the rows a [`IsaTable`] reads.
#[derive(Clone, Debug)]
pub struct OwnedTable {
    pub(crate) rows: TableRows,
    pub(crate) texts: Vec<Cow<'static, str>>,
}

/// Words of at most so many bits are rendered in advance.
const RENDERED_BITS: u32 = 8;

impl OwnedTable {
    /// Compiles a description.
    ///
    /// # Errors
    /// What the description refers to and does not define, bits beyond a word, endless nesting.
    pub fn new(isa: &Isa) -> Result<OwnedTable, CompileError> {
        let mut rows = compile(isa)?;
        let texts = std::mem::take(&mut rows.texts).into_iter().map(Cow::Owned).collect();
        let mut table = OwnedTable { rows, texts };
        table.render();
        Ok(table)
    }

    /// The table.
    pub fn table(&self) -> IsaTable<'_> {
        let rows = &self.rows;
        IsaTable {
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
            renders: &rows.renders,
            tabulations: &rows.tabulations,
            truths: &rows.truths,
        }
    }

    /// Fills in [`RootRow::rendered`](super::rows::RootRow::rendered).
    fn render(&mut self) {
        for index in 0..self.rows.roots.len() as u32 {
            let Some(texts) = self.texts_of(Root(index)) else { continue };
            let at = self.rows.renders.len() as u32;
            let len = texts.len() as u32;
            for text in texts {
                let known = self.texts.iter().position(|known| *known == text);
                self.rows.renders.push(TextId(known.unwrap_or(self.texts.len()) as u32));
                if known.is_none() {
                    self.texts.push(Cow::Owned(text));
                }
            }
            self.rows.roots[index as usize].rendered = RowSpan { at, len };
        }
    }

    /// The text of every word of a root; `None` when there are many, or they depend on where the word stands.
    fn texts_of(&self, root: Root) -> Option<Vec<String>> {
        let table = self.table();
        let width = table.width(root);
        let always = table.leaves(root).all(|leaf| table.generations(leaf) == (0, u32::MAX));
        if width > RENDERED_BITS || !always {
            return None;
        }
        let render = |word, generation| {
            let mut text = Vec::new();
            let mut common = true;
            let faults = table.decode(root, word, generation)?.walk(&mut |part| {
                common &= !matches!(
                    part,
                    DisplayPart::Align(_)
                        | DisplayPart::Field {
                            kind: FieldKind::Branch { .. } | FieldKind::AbsBranch { .. } | FieldKind::Custom,
                            ..
                        }
                );
                write_part(&part, 0, &mut text);
            });
            String::from_utf8(text).ok().filter(|_| common && faults.is_empty())
        };
        (0..1u128 << width)
            .map(|word| render(word, 0).filter(|text| render(word, u32::MAX).as_ref() == Some(text)))
            .collect()
    }
}
