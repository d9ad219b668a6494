//! Which bits a text tells, and which of their values are alike.
//!
//! Two values of a field are alike when no condition and no derived field of the encoding tells them apart, whatever
//! the other bits are, and both are shown in the same manner, as numbers or not. If moreover each value has
//! its own text, the text tells the field's bits, and any value does in place of those that are alike.

use super::super::types::IsaTable;
use super::depends::reads;
use std::collections::HashMap;

/// Conditions over more bits are not looked into: what they read is not told.
const MOST_READ: u32 = 16;
/// Bits that an expression reads so few of at a time stay as they are: each value of theirs is of its own kind.
const FEW: u32 = 3;

/// What a text tells of the bits it is looked up by.
#[derive(Clone, Debug, Default)]
pub(super) struct TextDeps {
    /// The bits.
    pub bits: u64,
    /// Those of the value that stands for most.
    pub typical: u64,
    /// By value: it is not like most.
    pub special: Vec<bool>,
}

/// The bits of `value` at the places of `mask`, lowest first.
pub(super) fn spread(mut value: u64, mut mask: u64) -> u64 {
    let mut word = 0;
    while mask != 0 && value != 0 {
        let lowest = mask & mask.wrapping_neg();
        if value & 1 != 0 {
            word |= lowest;
        }
        value >>= 1;
        mask ^= lowest;
    }
    word
}

/// The bits at the places of `mask` as one number.
pub(super) fn gather(word: u64, mut mask: u64) -> u64 {
    let (mut value, mut place) = (0, 0);
    while mask != 0 {
        let lowest = mask & mask.wrapping_neg();
        value |= u64::from(word & lowest != 0) << place;
        place += 1;
        mask ^= lowest;
    }
    value
}

/// Finds what texts tell. Remembers which values conditions tell apart.
#[derive(Default)]
pub(super) struct Classes {
    /// By expression, bits and generation: for each value of the bits, the class it is in.
    known: HashMap<(u32, u64, u32), Vec<u32>>,
}

impl Classes {
    /// What `texts`, looked up by `bits`, tell where the expressions `codes` matter.
    pub fn text_deps(
        &mut self,
        table: &IsaTable<'_>,
        generation: u32,
        codes: &[u32],
        bits: u64,
        texts: &[Option<String>],
    ) -> TextDeps {
        let nothing = TextDeps { special: vec![false; texts.len()], ..TextDeps::default() };
        let few = |read: &u64| (1..=FEW).contains(&(read & bits).count_ones());
        let kept =
            codes.iter().map(|&code| reads(table, code)).filter(few).fold(0, |kept, read| kept | read & bits);
        let free = bits & !kept;
        // Words of one shape have the same bits in `kept`.
        let mut distinct: Vec<(u64, &str)> = Vec::new();
        for (value, text) in texts.iter().enumerate() {
            distinct.extend(text.as_deref().map(|text| (spread(value as u64, bits) & kept, text)));
        }
        distinct.sort_unstable();
        if free == 0 || distinct.windows(2).any(|pair| pair[0] == pair[1]) {
            return nothing;
        }
        let manner = |text: &Option<String>| match text.as_deref().map(|text| text.as_bytes().first()) {
            None => 0,
            Some(Some(b'0'..=b'9' | b'+' | b'-')) => 1,
            Some(_) => 2,
        };
        let mut classes: Vec<Vec<u32>> = texts.iter().map(|text| vec![manner(text)]).collect();
        for &code in codes {
            let read = reads(table, code);
            let shared = read & bits;
            if shared == 0 {
                continue;
            }
            if read.count_ones() > MOST_READ {
                return nothing;
            }
            let of = self
                .known
                .entry((code, shared, generation))
                .or_insert_with(|| apart(table, generation, code, read, shared));
            for (value, class) in classes.iter_mut().enumerate() {
                let part = gather(spread(value as u64, bits), shared);
                class.push(of.get(part as usize).copied().unwrap_or(0));
            }
        }
        let mut sizes: HashMap<&[u32], usize> = HashMap::new();
        classes.iter().for_each(|class| *sizes.entry(class).or_default() += 1);
        // The first of the largest.
        let most = sizes.values().copied().max().unwrap_or(0);
        let typical =
            classes.iter().position(|class| sizes.get(class.as_slice()) == Some(&most)).unwrap_or(0);
        let typical = spread(typical as u64, bits) & free;
        let special = classes.iter().enumerate().map(|(value, class)| {
            let like = gather(spread(value as u64, bits) & kept | typical, bits);
            classes.get(like as usize) != Some(class)
        });
        TextDeps { bits: free, typical, special: special.collect() }
    }
}

/// The class of each value of the bits `shared`: of one class are those for which the expression comes out alike,
/// whatever the rest of the bits it reads is.
fn apart(table: &IsaTable<'_>, generation: u32, code: u32, read: u64, shared: u64) -> Vec<u32> {
    let rest = read & !shared;
    let mut classes: HashMap<Vec<u64>, u32> = HashMap::new();
    (0..1u64 << shared.count_ones())
        .map(|value| {
            let outcomes = (0..1u64 << rest.count_ones()).map(|other| {
                let word = spread(value, shared) | spread(other, rest);
                table.evaluate(code, word.into(), generation, &mut |_, _, _| 0)
            });
            let next = classes.len() as u32;
            *classes.entry(outcomes.collect()).or_insert(next)
        })
        .collect()
}
