//! Joins the definitions of several files, and says for which variants each exists.
//!
//! Never: bits of values. The rules (who inherits a varset, that same-named definitions add up) are those of rnndb.

use crate::model::*;
use std::collections::{HashMap, HashSet};

/// Everything reachable from some files, by name.
#[derive(Default)]
pub struct Linked<'m> {
    /// Enums, in the order they appear.
    pub enums: Vec<EnumDef<'m>>,
    /// Bitsets.
    pub bitsets: Vec<BitsetDef<'m>>,
    /// Domains.
    pub domains: Vec<DomainDef<'m>>,
    enum_ids: HashMap<&'m str, usize>,
    bitset_ids: HashMap<&'m str, usize>,
    domain_ids: HashMap<&'m str, usize>,
    spectypes: HashMap<&'m str, &'m TypeSpec>,
    groups: HashMap<&'m str, Vec<&'m DomainElem>>,
}

/// An enum with the values of all its definitions.
pub struct EnumDef<'m> {
    /// Its name.
    pub name: &'m str,
    /// As in the model.
    pub inline: bool,
    /// Of the first definition.
    pub select: &'m Select,
    /// In order.
    pub values: Vec<&'m EnumValue>,
}

/// A bitset with the fields of all its definitions.
pub struct BitsetDef<'m> {
    /// Its name.
    pub name: &'m str,
    /// As in the model.
    pub inline: bool,
    /// Of the first definition.
    pub select: &'m Select,
    /// In order.
    pub fields: Vec<&'m BitField>,
}

/// A domain with what all its definitions hold.
pub struct DomainDef<'m> {
    /// Its name.
    pub name: &'m str,
    /// Bits per unit.
    pub width: u32,
    /// Of the first definition.
    pub select: &'m Select,
    /// In order.
    pub elems: Vec<&'m DomainElem>,
}

/// Contradictions found on the way, each once.
#[derive(Default)]
pub struct Issues {
    seen: HashSet<(String, String)>,
    /// In the order found.
    pub list: Vec<FactsIssue>,
}

impl Issues {
    const MOST: usize = 10_000;

    /// Notes one.
    pub fn add(&mut self, place: &str, what: impl Into<String>) {
        let what = what.into();
        if self.list.len() < Issues::MOST && self.seen.insert((place.to_string(), what.clone())) {
            self.list.push(FactsIssue { place: place.to_string(), what });
        }
    }
}

/// For which variants something exists.
#[derive(Clone, Debug, Default)]
pub struct VariantScope<'m> {
    prefix: Option<usize>,
    varset: Option<&'m str>,
    /// Per enum, which of its values (by position) it exists for.
    pub sets: Vec<(usize, Vec<bool>)>,
    /// No variant is left.
    pub dead: bool,
}

impl<'m> Linked<'m> {
    /// Links what is reachable from `roots`, by name of file.
    pub fn new(facts: &'m DbFacts, roots: &[&str], issues: &mut Issues) -> Linked<'m> {
        let files: HashMap<&str, &'m FactsFile> =
            facts.files.iter().rev().map(|f| (f.name.as_str(), f)).collect();
        let mut linked = Linked::default();
        let mut seen = HashSet::new();
        for root in roots {
            linked.file(&files, root, &mut seen, issues);
        }
        linked
    }

    fn file(
        &mut self,
        files: &HashMap<&str, &'m FactsFile>,
        root: &str,
        seen: &mut HashSet<&'m str>,
        issues: &mut Issues,
    ) {
        // An explicit stack: a chain of imports may be as long as the list of files.
        let mut open: Vec<std::slice::Iter<'m, FactsItem>> = Vec::new();
        let mut enter = |name: &str, open: &mut Vec<std::slice::Iter<'m, FactsItem>>| {
            if let Some(&file) = files.get(name).filter(|f| seen.insert(f.name.as_str())) {
                open.push(file.items.iter());
            }
        };
        enter(root, &mut open);
        while let Some(items) = open.last_mut() {
            match items.next() {
                None => {
                    open.pop();
                }
                Some(FactsItem::Import(name)) => enter(name, &mut open),
                Some(item) => self.define(item, issues),
            }
        }
    }

    fn define(&mut self, item: &'m FactsItem, issues: &mut Issues) {
        match item {
            FactsItem::Import(_) => {}
            FactsItem::Enum(en) => {
                let id = *self.enum_ids.entry(&en.name).or_insert(self.enums.len());
                if id == self.enums.len() {
                    let (name, select) = (en.name.as_str(), &en.select);
                    self.enums.push(EnumDef { name, inline: en.inline, select, values: Vec::new() });
                }
                if let Some(def) = self.enums.get_mut(id) {
                    if def.inline != en.inline || *def.select != en.select {
                        issues.add(&en.name, "defined twice, differently");
                    }
                    def.values.extend(&en.values);
                }
            }
            FactsItem::Bitset(set) => {
                let id = *self.bitset_ids.entry(&set.name).or_insert(self.bitsets.len());
                if id == self.bitsets.len() {
                    let (name, select) = (set.name.as_str(), &set.select);
                    self.bitsets.push(BitsetDef { name, inline: set.inline, select, fields: Vec::new() });
                }
                if let Some(def) = self.bitsets.get_mut(id) {
                    if def.inline != set.inline || *def.select != set.select {
                        issues.add(&set.name, "defined twice, differently");
                    }
                    def.fields.extend(&set.fields);
                }
            }
            FactsItem::Domain(domain) => {
                let id = *self.domain_ids.entry(&domain.name).or_insert(self.domains.len());
                if id == self.domains.len() {
                    let (name, select) = (domain.name.as_str(), &domain.select);
                    self.domains.push(DomainDef { name, width: domain.width, select, elems: Vec::new() });
                }
                if let Some(def) = self.domains.get_mut(id) {
                    if def.width != domain.width || *def.select != domain.select {
                        issues.add(&domain.name, "defined twice, differently");
                    }
                    def.elems.extend(&domain.elems);
                }
            }
            FactsItem::Group(group) => self.groups.entry(&group.name).or_default().extend(&group.elems),
            FactsItem::Spectype(spec) => {
                if self.spectypes.contains_key(spec.name.as_str()) {
                    issues.add(&spec.name, "type defined twice");
                } else {
                    self.spectypes.insert(&spec.name, &spec.ty);
                }
            }
        }
    }

    /// Position of an enum in `enums`.
    pub fn enum_id(&self, name: &str) -> Option<usize> {
        self.enum_ids.get(name).copied()
    }

    /// Position of a bitset in `bitsets`.
    pub fn bitset_id(&self, name: &str) -> Option<usize> {
        self.bitset_ids.get(name).copied()
    }

    /// A domain by name.
    pub fn domain(&self, name: &str) -> Option<&DomainDef<'m>> {
        self.domains.get(*self.domain_ids.get(name)?)
    }

    /// A named type.
    pub fn spectype(&self, name: &str) -> Option<&'m TypeSpec> {
        self.spectypes.get(name).copied()
    }

    /// The registers of a group.
    pub fn group(&self, name: &str) -> Option<&[&'m DomainElem]> {
        self.groups.get(name).map(Vec::as_slice)
    }

    /// The scope of something that stands inside `parent`.
    pub fn scope(
        &self,
        parent: Option<&VariantScope<'m>>,
        select: &'m Select,
        what: &str,
        issues: &mut Issues,
    ) -> VariantScope<'m> {
        let prefix = match select.prefix.as_deref() {
            None => parent.and_then(|p| p.prefix),
            Some("none") => None,
            Some(name) => self.enum_id(name),
        };
        let inherited = parent.and_then(|p| p.varset).filter(|_| prefix.is_none());
        let varset = select.varset.as_deref().or(inherited);
        let mut scope = VariantScope {
            prefix,
            varset,
            sets: parent.map(|p| p.sets.clone()).unwrap_or_default(),
            dead: false,
        };
        let Some(variants) = &select.variants else { return scope };
        let chosen = match varset {
            Some(name) => self.enum_id(name),
            None => prefix,
        };
        let Some((id, def)) = chosen.and_then(|id| Some((id, self.enums.get(id)?))) else {
            issues.add(what, format!("variants {variants} of no known enum"));
            return scope;
        };
        let named = self.named_variants(def, variants, what, issues);
        let at = scope.sets.iter().position(|(e, _)| *e == id).unwrap_or_else(|| {
            scope.sets.push((id, vec![true; def.values.len()]));
            scope.sets.len() - 1
        });
        if let Some((_, set)) = scope.sets.get_mut(at) {
            for (slot, named) in set.iter_mut().zip(named) {
                *slot &= named;
            }
            scope.dead = !set.contains(&true);
        }
        scope
    }

    /// Which values of `def` a list such as `A2XX A4XX-A5XX A7XX-` names. `FIRST:LAST` leaves the last one out.
    fn named_variants(
        &self,
        def: &EnumDef<'m>,
        variants: &str,
        what: &str,
        issues: &mut Issues,
    ) -> Vec<bool> {
        let count = def.values.len();
        let mut named = vec![false; count];
        let mut find = |name: &str| {
            let at = def.values.iter().position(|v| v.name == name);
            if at.is_none() {
                issues.add(what, format!("variant {name} is not in enum {}", def.name));
            }
            at
        };
        for range in variants.split(' ').filter(|r| !r.is_empty()) {
            let (first, end) = match range.split_once([':', '-']) {
                None => {
                    let at = find(range);
                    (at, at.map(|at| at + 1))
                }
                Some((first, last)) => {
                    let inclusive = usize::from(range.as_bytes().get(first.len()) == Some(&b'-'));
                    let start = if first.is_empty() { Some(0) } else { find(first) };
                    let end = if last.is_empty() { Some(count) } else { find(last).map(|at| at + inclusive) };
                    (start, end)
                }
            };
            if let (Some(first), Some(end)) = (first, end) {
                named.iter_mut().take(end).skip(first).for_each(|slot| *slot = true);
            }
        }
        named
    }
}
