//! What templates depend on: bits of the word, expressions, generations.

use super::super::rows::*;
use super::super::types::{IsaTable, rows};
use std::collections::BTreeSet;

/// Bit sets in bit sets that are followed.
const DEEPEST: usize = 12;

/// The steps of an expression.
pub(super) fn steps<'t>(table: &IsaTable<'t>, code: u32) -> &'t [ExprOp] {
    let ops = if code == NONE { &[][..] } else { table.code.get(code as usize..).unwrap_or_default() };
    let len = ops.iter().position(|op| matches!(op, ExprOp::End)).unwrap_or(ops.len());
    ops.get(..len).unwrap_or_default()
}

/// The bits of a field.
pub(super) fn window(low: u8, width: u8) -> u64 {
    let ones = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    ones << (low & 63)
}

/// The bits of the word that an expression reads.
pub(super) fn reads(table: &IsaTable<'_>, code: u32) -> u64 {
    let bits = |op: &ExprOp| match *op {
        ExprOp::Bits { low, width } | ExprOp::Compare { low, width, .. } => window(low, width),
        ExprOp::Tabulated(index) => rows(table.tabulations, RowSpan { at: index, len: 1 })
            .iter()
            .flat_map(|row| row.spans)
            .fold(0, |bits, (low, mask, _)| bits | u64::from(mask) << (low & 63)),
        _ => 0,
    };
    steps(table, code).iter().fold(0, |all, op| all | bits(op))
}

/// Generations where something changes: an encoding comes or goes, or an expression compares with them.
pub(super) fn bounds(table: &IsaTable<'_>) -> Vec<u32> {
    let mut bounds = BTreeSet::from([0]);
    for row in table.leaves {
        bounds.extend([Some(row.min), row.max.checked_add(1)].into_iter().flatten());
    }
    for code in
        table.code.split(|op| matches!(op, ExprOp::End)).filter(|code| code.contains(&ExprOp::Generation))
    {
        for op in code {
            if let ExprOp::Push(value) = *op
                && let Ok(value) = u32::try_from(value)
            {
                bounds.extend([value, value.saturating_add(1)]);
            }
        }
    }
    bounds.into_iter().collect()
}

/// What a template depends on.
#[derive(Default)]
pub(super) struct TemplateDeps {
    /// Bits of the word.
    pub bits: u64,
    pub codes: BTreeSet<u32>,
    /// The generation matters.
    pub generation: bool,
}

impl TemplateDeps {
    pub fn scope(&mut self, table: &IsaTable<'_>, scope: u32, depth: usize) {
        let Some(scope) = table.scopes.get(scope as usize).filter(|_| depth < DEEPEST) else { return };
        for show in rows(table.shows, scope.shows) {
            self.code(table, show.when);
            for assert in rows(table.asserts, show.asserts) {
                self.bits |= window(assert.at, assert.high - assert.low + 1);
            }
            for piece in rows(table.pieces, show.parts.unwrap_or(RowSpan { at: 0, len: 0 })) {
                self.piece(table, piece, depth);
            }
        }
    }

    pub fn piece(&mut self, table: &IsaTable<'_>, piece: &TemplatePart, depth: usize) {
        match *piece {
            TemplatePart::Literal(_)
            | TemplatePart::Name
            | TemplatePart::Align(_)
            | TemplatePart::Silent { .. } => {}
            TemplatePart::Flag { low, .. } => self.bits |= window(low, 1),
            TemplatePart::Plain { field, .. } => self.field(table, field, depth),
            TemplatePart::Field { cands, .. } => {
                for cand in rows(table.cands, cands) {
                    self.code(table, cand.when);
                    self.field(table, cand.field, depth);
                }
            }
        }
    }

    fn field(&mut self, table: &IsaTable<'_>, field: u32, depth: usize) {
        let Some(field) = table.fields.get(field as usize) else { return };
        let FieldType::Bitset { root, scopes } = field.ty else {
            match field.code {
                NONE => self.bits |= window(field.low, field.width),
                code => self.code(table, code),
            }
            return;
        };
        let Some(root) = table.roots.get(root as usize) else { return };
        for (leaf, scope) in rows(table.leaves, root.leaves).iter().zip(scopes..) {
            self.bits |= (leaf.mask as u64) << (field.low & 63);
            self.generation |= (leaf.min, leaf.max) != (0, u32::MAX);
            self.scope(table, scope, depth + 1);
        }
    }

    fn code(&mut self, table: &IsaTable<'_>, code: u32) {
        if code != NONE {
            self.bits |= reads(table, code);
            self.codes.insert(code);
            self.generation |= steps(table, code).contains(&ExprOp::Generation);
        }
    }
}
