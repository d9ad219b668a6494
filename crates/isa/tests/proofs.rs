//! What must hold of every compiled table: no bit pattern has two readings, and what decodes
//! encodes back.

use std::collections::HashMap;
use unwedge_isa::table::{DecodeFault, DecodedWord, IsaTable, Leaf, Root, generate};
use unwedge_isa::tables::{AFUC, IR3};

/// Table and the generations it knows.
const TABLES: [(&IsaTable<'static>, &[u32]); 2] = [(IR3, &[300, 400, 500, 600, 700]), (AFUC, &[5, 6, 7])];

fn each(mut check: impl FnMut(&IsaTable<'static>, Root, &[u32])) {
    for (table, generations) in TABLES {
        table.roots().for_each(|root| check(table, root, generations));
    }
}

fn exists(table: &IsaTable<'_>, leaf: Leaf, generation: u32) -> bool {
    let (min, max) = table.generations(leaf);
    (min..=max).contains(&generation)
}

/// The fields with bits that count in a word, with their values.
fn values<'t>(decoded: &DecodedWord<'t>) -> HashMap<&'t str, u64> {
    let fields = decoded.fields().filter(|(_, place)| place.is_some());
    fields.filter_map(|(name, _)| Some((name, decoded.field(name)?))).collect()
}

/// Some words have a bit that means nothing in one encoding and selects another (`ldib.b` has its offset where other
/// instructions have their opcode). They are refused.
#[test]
fn no_bit_pattern_has_two_readings() {
    let (mut pairs, mut refused) = (0, 0);
    each(|table, root, generations| {
        let leaves: Vec<Leaf> = table.leaves(root).collect();
        for (index, &a) in leaves.iter().enumerate() {
            for &b in leaves.iter().skip(index + 1) {
                let ((mask_a, value_a), (mask_b, value_b)) = (table.pattern(a), table.pattern(b));
                let together: Vec<u32> = generations
                    .iter()
                    .copied()
                    .filter(|&g| exists(table, a, g) && exists(table, b, g))
                    .collect();
                pairs += together.len();
                if together.is_empty() || (value_a ^ value_b) & mask_a & mask_b != 0 {
                    continue;
                }
                let (a_sound, b_sound) = (mask_a | table.ignored(a), mask_b | table.ignored(b));
                let told_apart = (value_a ^ value_b) & a_sound & b_sound != 0;
                assert!(told_apart, "{} and {} overlap", table.name(a), table.name(b));
                for generation in together {
                    assert!(table.decode(root, value_a | value_b, generation).is_none());
                    refused += 1;
                }
            }
        }
    });
    println!("{pairs} pairs of encodings, {refused} of them overlap in bits that mean nothing");
}

#[test]
fn the_tree_finds_what_a_search_finds() {
    each(|table, root, generations| {
        for from in table.leaves(root) {
            for word in generate::words(table, from, 11, 8) {
                for &generation in generations {
                    let matches = |&leaf: &Leaf| {
                        let (mask, value) = table.pattern(leaf);
                        word & mask == value && exists(table, leaf, generation)
                    };
                    let found: Vec<Leaf> = table.leaves(root).filter(matches).collect();
                    let decoded = table.decode(root, word, generation).map(|d| d.leaf());
                    assert_eq!(decoded, if found.len() == 1 { Some(found[0]) } else { None }, "{word:#x}");
                }
            }
        }
    });
}

#[test]
fn what_decodes_encodes_back() {
    let mut count = 0;
    each(|table, root, generations| {
        for leaf in table.leaves(root) {
            for &generation in generations.iter().filter(|&&g| exists(table, leaf, g)) {
                for word in generate::words(table, leaf, 7, 50) {
                    let decoded = table.decode(root, word, generation).unwrap();
                    assert_eq!(decoded.leaf(), leaf, "{word:#x}");
                    let faults = decoded.walk(&mut |_| {});
                    if faults.iter().any(|fault| matches!(fault, DecodeFault::Unexpected { .. })) {
                        continue;
                    }
                    let values = values(&decoded);
                    let back = table.encode(leaf, generation, &|name| values.get(name).copied()).unwrap();
                    // A bit that some other form of the instruction asserts means nothing in this one.
                    let known = decoded
                        .fields()
                        .filter_map(|(_, place)| place)
                        .fold(table.pattern(leaf).0, |known, (low, width)| known | ((1 << width) - 1) << low);
                    assert_eq!(back & known, word & known, "{} {word:#x} {values:?}", table.name(leaf));
                    let again = table.decode(root, back, generation).map(|d| d.leaf());
                    assert_eq!(again, Some(leaf), "{} {word:#x} {back:#x}", table.name(leaf));
                    count += 1;
                }
            }
        }
    });
    println!("{count} words");
}
