//! Writes the operations of ir3 as an enum: one variant for each name of the description.

use crate::table::IsaTable;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// `mov-immed` and its like are forms of one operation: the name ends before the dash.
fn operation(leaf: &str) -> &str {
    leaf.split('-').next().unwrap_or(leaf)
}

/// `mad.u16` is `MadU16`.
fn variant(operation: &str) -> String {
    let mut name = String::new();
    for word in operation.split(['.', '_']) {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.extend(letters);
    }
    name
}

/// The source of the enum and of its tables.
pub fn emit(table: &IsaTable<'_>) -> Option<String> {
    let root = table.root("instruction")?;
    let mut seen = BTreeSet::new();
    let mut order: Vec<(String, u32)> = Vec::new();
    let mut of_leaf = Vec::new();
    let mut first = None;
    for leaf in table.leaves(root) {
        first.get_or_insert(leaf.index());
        let name = operation(table.name(leaf)).to_owned();
        let category = (table.pattern(leaf).1 >> 61) as u32;
        of_leaf.push(variant(&name));
        if seen.insert(name.clone()) {
            order.push((name, category));
        }
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\npub enum Opcode {{"
    );
    for (name, _) in &order {
        let _ = writeln!(out, "{},", variant(name));
    }
    let _ = writeln!(
        out,
        "}}\nimpl Opcode {{\n/// All of them, in the order of the description.\npub const ALL: &'static [Opcode] = &["
    );
    for (name, _) in &order {
        let _ = writeln!(out, "Opcode::{},", variant(name));
    }
    let _ = writeln!(out, "];\n}}\nconst NAMES: &[(&str, u8)] = &[");
    for (name, category) in &order {
        let _ = writeln!(out, "({name:?}, {category}),");
    }
    let _ = writeln!(out, "];\nconst FIRST_LEAF: u32 = {};\nconst OF_LEAF: &[Opcode] = &[", first?);
    for name in &of_leaf {
        let _ = writeln!(out, "Opcode::{name},");
    }
    let _ = writeln!(out, "];");
    Some(out)
}
