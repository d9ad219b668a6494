//! The instructions of a GPU by name. What they look like is found out when one is first asked for.

use super::grammar::{Grammar, TemplateRule};
use super::invert::Inversion;
use super::plan::{Mix, Plan, SharedPlans};
use crate::tables::IR3;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// The instructions.
pub(super) struct Book {
    inversion: Inversion,
    common: SharedPlans,
    entries: Vec<MnemonicPlans>,
    /// Entries by the start of their name, longer names first.
    heads: HashMap<u64, Vec<u32>, BuildHasherDefault<Mix>>,
}

/// The instructions of one name.
struct MnemonicPlans {
    name: &'static [u8],
    /// Encodings that have a template with this name.
    leaves: Vec<u32>,
    forms: Option<Forms>,
}

/// How the instructions of one name are read.
pub(super) struct Forms {
    pub rules: Vec<TemplateRule>,
    pub plan: Plan,
}

impl Book {
    pub fn new(gpu_id: u32) -> Book {
        let inversion = Inversion::new(IR3, gpu_id);
        let mut entries: Vec<MnemonicPlans> = Vec::new();
        let mut heads: HashMap<u64, Vec<u32>, _> = HashMap::default();
        for (name, leaf) in inversion.names().filter(|(name, _)| !name.is_empty()) {
            let same: &mut Vec<u32> = heads.entry(head(name)).or_default();
            match same.iter().find(|&&at| entries[at as usize].name == name) {
                Some(&at) => {
                    let leaves = &mut entries[at as usize].leaves;
                    if leaves.last() != Some(&leaf) {
                        leaves.push(leaf);
                    }
                }
                None => {
                    let at = same.partition_point(|&at| entries[at as usize].name.len() >= name.len());
                    same.insert(at, entries.len() as u32);
                    entries.push(MnemonicPlans { name, leaves: vec![leaf], forms: None });
                }
            }
        }
        Book { inversion, common: SharedPlans::default(), entries, heads }
    }

    /// The instructions that a word of the text may be of, by the length of their name; the longest name first, the
    /// `nth` of them.
    #[inline]
    pub fn nth(&mut self, word: &[u8], nth: usize) -> Option<(&Grammar, &Forms, usize)> {
        let same = self.heads.get(&head(word))?;
        let entries = &self.entries;
        let at = *same.iter().filter(|&&at| entries[at as usize].starts(word)).nth(nth)? as usize;
        let entry = self.entries.get_mut(at)?;
        if entry.forms.is_none() {
            let rules = self.inversion.rules(entry.name, &entry.leaves);
            let plan = Plan::new(&self.inversion.grammar, &mut self.common, &rules);
            entry.forms = Some(Forms { rules, plan });
        }
        entry.forms.as_ref().map(|forms| (&self.inversion.grammar, forms, entry.name.len()))
    }
}

impl MnemonicPlans {
    /// Whether a word has this name, perhaps with modifiers behind it.
    #[inline]
    fn starts(&self, word: &[u8]) -> bool {
        word.starts_with(self.name) && word.get(self.name.len()).is_none_or(|&b| b == b'.')
    }
}

/// The first bytes of what stands before the first dot.
#[inline]
fn head(name: &[u8]) -> u64 {
    name.iter().take(8).take_while(|&&b| b != b'.').fold(0, |head, &b| head << 8 | u64::from(b))
}
