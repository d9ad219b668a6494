//! Facts → tables: resolves everything for each generation and lays it out for look-ups in constant time.
//!
//! Runs in the build script for the built-in facts and at run time for a user's own rnndb XML. Never: I/O, panics on
//! contradictory facts (it notes them and reads the rest). Equal records are stored once, so that six generations cost
//! little more than one.

use crate::layout::{self, condition, device, enumeration, field, generation, header, kind, ty, value};
use crate::link::{Issues, Linked, VariantScope};
use crate::model::*;
use crate::place;
use std::collections::HashMap;
use unwedge_base::hash::Fnv1a;

/// Compiled tables.
pub struct DbTables {
    /// Records: little-endian 32-bit words.
    pub words: Vec<u8>,
    /// The string pool.
    pub strings: String,
    /// What could not be expressed.
    pub issues: Vec<FactsIssue>,
}

/// Compiles the facts of a vendor.
pub fn compile(facts: &DbFacts, family: &Family) -> DbTables {
    let mut issues = Issues::default();
    let mut store = TableStore::new();
    store.words.resize(header::SIZE as usize, 0);
    let mut records = Vec::new();
    for member in family.generations {
        records.extend(generation_record(facts, family, member, &mut store, &mut issues));
    }
    let generations = store.record(records);
    let mut devices = Vec::new();
    for row in &facts.devices {
        let mut pairs = Vec::new();
        for (key, value) in &row.properties {
            pairs.extend([store.string(key), store.string(value)]);
        }
        let at = store.record(pairs);
        let mut record = vec![0; device::SIZE as usize];
        let chip = row.chip_id;
        for (slot, value) in [
            (device::NAME, store.string(&row.name)),
            (device::GPU_ID, row.gpu_id),
            (device::CHIP_LOW, chip as u32),
            (device::CHIP_HIGH, (chip >> 32) as u32),
            (device::GENERATION, row.generation),
            (device::PROPERTIES, at),
            (device::PROPERTY_COUNT, row.properties.len() as u32),
        ] {
            set(&mut record, slot, value);
        }
        devices.extend(record);
    }
    let devices = store.record(devices);
    let strings = store.record(store.string_ends.clone());
    let (string_count, device_count) = (store.string_ends.len() as u32, facts.devices.len() as u32);
    for (slot, value) in [
        (header::MAGIC, layout::MAGIC),
        (header::STRINGS, strings),
        (header::STRING_COUNT, string_count),
        (header::GENERATIONS, generations),
        (header::DEVICES, devices),
        (header::DEVICE_COUNT, device_count),
    ] {
        set(&mut store.words, slot, value);
    }
    let mut words: Vec<u8> = store.words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut hash = Fnv1a::default();
    hash.add(&words);
    hash.add(store.pool.as_bytes());
    let hash = hash.value();
    // After the hash: the same facts hash the same, whatever release they came with.
    let version = store.pool.len() as u32;
    store.pool.push_str(&facts.version);
    let late: Vec<u8> = [hash as u32, (hash >> 32) as u32, version, facts.version.len() as u32]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    if let Some(slots) = words.get_mut(header::HASH as usize * 4..header::SIZE as usize * 4) {
        slots.copy_from_slice(&late);
    }
    DbTables { words, strings: store.pool, issues: issues.list }
}

fn set(record: &mut [u32], slot: u32, value: u32) {
    if let Some(word) = record.get_mut(slot as usize) {
        *word = value;
    }
}

/// How the facts of a vendor are told apart by generation.
pub struct Family {
    /// Its generations, in the order the tables have them.
    pub generations: &'static [FamilyMember],
    /// The enum that names packets by opcode.
    pub packets: &'static str,
}

/// A generation.
pub struct FamilyMember {
    /// The value of the enum `chip` that stands for it.
    pub variant: &'static str,
    /// Its register spaces: the file, and the domains in it that hold the registers, first one first.
    pub spaces: &'static [(&'static str, &'static [&'static str])],
    /// Files that only other files' domains need, beside the file of the first space.
    pub beside: &'static [&'static str],
}

const NONE: (&str, &[&str]) = ("", &[]);
const CONTROL: &str = "adreno_control_regs";
const PIPE: &str = "adreno_pipe_regs";
const OCMEM: &[&str] = &["ocmem"];

/// Adreno a2xx to a7xx.
pub const ADRENO: Family = Family {
    generations: &[
        FamilyMember { variant: "A2XX", spaces: &[("a2xx", &["A2XX", "AXXX"])], beside: OCMEM },
        FamilyMember { variant: "A3XX", spaces: &[("a3xx", &["A3XX", "AXXX"])], beside: OCMEM },
        FamilyMember { variant: "A4XX", spaces: &[("a4xx", &["A4XX"])], beside: OCMEM },
        FamilyMember {
            variant: "A5XX",
            spaces: &[
                ("a5xx", &["A5XX"]),
                NONE,
                (CONTROL, &["A5XX_CONTROL_REG"]),
                NONE,
                (PIPE, &["A5XX_PIPE_REG"]),
            ],
            beside: OCMEM,
        },
        FamilyMember {
            variant: "A6XX",
            spaces: &[
                ("a6xx", &["A6XX"]),
                ("a6xx_gmu", &["A6XX"]),
                (CONTROL, &["A6XX_CONTROL_REG"]),
                NONE,
                (PIPE, &["A6XX_PIPE_REG"]),
                (CONTROL, &["A6XX_SQE_REG"]),
            ],
            beside: OCMEM,
        },
        FamilyMember {
            variant: "A7XX",
            spaces: &[
                ("a6xx", &["A6XX"]),
                ("a6xx_gmu", &["A6XX"]),
                (CONTROL, &["A7XX_CONTROL_REG"]),
                (CONTROL, &["A7XX_GEN3_CONTROL_REG"]),
                (PIPE, &["A7XX_PIPE_REG"]),
                (CONTROL, &["A6XX_SQE_REG"]),
            ],
            beside: OCMEM,
        },
    ],
    packets: "adreno_pm4_type3_packets",
};

fn generation_record(
    facts: &DbFacts,
    family: &Family,
    member: &FamilyMember,
    store: &mut TableStore,
    issues: &mut Issues,
) -> Vec<u32> {
    let mut record = vec![0; generation::SIZE as usize];
    for (slot, (file, domains)) in member.spaces.iter().take(generation::SPACE_COUNT as usize).enumerate() {
        if file.is_empty() {
            continue;
        }
        let linked = Linked::new(facts, &[file], issues);
        let mut gpu = GpuCompiler::new(&linked, member.variant, store, issues);
        let domains: Vec<_> = domains.iter().filter_map(|name| linked.domain(name)).collect();
        let table = if domains.is_empty() { 0 } else { place::table(&mut gpu, &domains) };
        set(&mut record, generation::SPACES + slot as u32, table);
    }
    let (main, registers) = member.spaces.first().copied().unwrap_or(NONE);
    let mut roots = vec![main];
    roots.extend(member.beside);
    let linked = Linked::new(facts, &roots, issues);
    let mut gpu = GpuCompiler::new(&linked, member.variant, store, issues);

    let mut domains = Vec::new();
    for domain in linked.domains.iter().filter(|d| !registers.contains(&d.name)) {
        let scope = gpu.scope(None, domain.select, domain.name);
        if !scope.dead && gpu.condition(&scope).is_some() {
            let table = place::table(&mut gpu, &[domain]);
            domains.push((domain.name, table));
        }
    }
    let mut enums = Vec::new();
    for id in 0..linked.enums.len() {
        let at = gpu.enumeration(id, &VariantScope::default(), &[]);
        enums.extend(linked.enums.get(id).map(|def| (def.name, at)));
    }
    let packets = gpu.packets(family.packets);
    let (domains, domain_count) = store.directory(domains);
    let (enums, enum_count) = store.directory(enums);
    for (slot, value) in [
        (generation::PACKETS, packets),
        (generation::DOMAINS, domains),
        (generation::DOMAIN_COUNT, domain_count),
        (generation::ENUMS, enums),
        (generation::ENUM_COUNT, enum_count),
    ] {
        set(&mut record, slot, value);
    }
    record
}

/// Words and strings under construction.
pub struct TableStore {
    words: Vec<u32>,
    records: HashMap<Vec<u32>, u32>,
    pool: String,
    string_ends: Vec<u32>,
    string_ids: HashMap<String, u32>,
    selectors: HashMap<String, u32>,
    steps_left: usize,
    entries_left: usize,
    fields_left: usize,
}

/// Bounds on what contradictory or hostile facts can make of a small file; Adreno's take a twentieth of them.
const MAX_STEPS: usize = 600_000;
const MAX_ENTRIES: usize = 250_000;
const MAX_FIELDS: usize = 320_000;
const MAX_POOL: usize = 16 << 20;

impl TableStore {
    fn new() -> TableStore {
        let mut store = TableStore {
            words: Vec::new(),
            records: HashMap::new(),
            pool: String::new(),
            string_ends: Vec::new(),
            string_ids: HashMap::new(),
            selectors: HashMap::new(),
            steps_left: MAX_STEPS,
            entries_left: MAX_ENTRIES,
            fields_left: MAX_FIELDS,
        };
        // String 0 is the empty one: "none" where a string may be missing.
        store.string("");
        store
    }

    /// The id of a string.
    pub fn string(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.string_ids.get(text) {
            return id;
        }
        let id = self.string_ends.len() as u32;
        self.pool.push_str(text);
        self.string_ends.push(self.pool.len() as u32);
        self.string_ids.insert(text.to_string(), id);
        id
    }

    /// The text of a string's id.
    pub fn text(&self, id: u32) -> &str {
        let end = |id: u32| self.string_ends.get(id as usize).map_or(0, |&e| e as usize);
        let start = id.checked_sub(1).map_or(0, end);
        self.pool.get(start..end(id)).unwrap_or_default()
    }

    /// Stores a record, once.
    pub fn record(&mut self, record: Vec<u32>) -> u32 {
        if let Some(&at) = self.records.get(&record) {
            return at;
        }
        let at = self.words.len() as u32;
        self.words.extend(&record);
        self.records.insert(record, at);
        at
    }

    /// One step of placing registers; false when there were too many.
    pub fn spend_step(&mut self) -> bool {
        self.steps_left = self.steps_left.saturating_sub(1);
        self.steps_left != 0 && self.entries_left != 0
    }

    /// Room for one more entry.
    pub fn spend_entry(&mut self) -> bool {
        if self.pool.len() > MAX_POOL {
            self.entries_left = 0;
        }
        let room = self.entries_left != 0;
        self.entries_left = self.entries_left.saturating_sub(1);
        room
    }

    fn spend_fields(&mut self, count: usize) -> bool {
        let room = self.fields_left >= count;
        self.fields_left = self.fields_left.saturating_sub(count);
        room
    }

    fn selector(&mut self, name: &str) -> u32 {
        let next = self.selectors.len() as u32;
        *self.selectors.entry(name.to_string()).or_insert(next)
    }

    fn directory(&mut self, mut list: Vec<(&str, u32)>) -> (u32, u32) {
        list.sort();
        let count = list.len() as u32;
        let words = list.into_iter().flat_map(|(name, at)| [self.string(name), at]).collect();
        (self.record(words), count)
    }
}

/// Resolves definitions for one generation.
pub struct GpuCompiler<'a, 'm> {
    /// The definitions.
    pub linked: &'a Linked<'m>,
    /// Where records go.
    pub store: &'a mut TableStore,
    /// Contradictions.
    pub issues: &'a mut Issues,
    chip: Option<(usize, usize)>,
    bitsets: HashMap<usize, u32>,
    enums: HashMap<usize, u32>,
    open: Vec<String>,
}

const MAX_TYPE_DEPTH: usize = 8;
/// Enum values below this are indexed directly when that wastes little.
const MAX_DENSE: u64 = 4096;

impl<'a, 'm> GpuCompiler<'a, 'm> {
    fn new(linked: &'a Linked<'m>, variant: &str, store: &'a mut TableStore, issues: &'a mut Issues) -> Self {
        let chip = linked.enum_id("chip").and_then(|id| {
            let values = &linked.enums.get(id)?.values;
            Some((id, values.iter().position(|v| v.name.eq_ignore_ascii_case(variant))?))
        });
        GpuCompiler {
            linked,
            store,
            issues,
            chip,
            bitsets: HashMap::new(),
            enums: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// The scope of something inside `parent`.
    pub fn scope(
        &mut self,
        parent: Option<&VariantScope<'m>>,
        select: &'m Select,
        what: &str,
    ) -> VariantScope<'m> {
        self.linked.scope(parent, select, what, self.issues)
    }

    /// The condition record of a scope on this generation; `None` when it does not exist here.
    pub fn condition(&mut self, scope: &VariantScope<'m>) -> Option<u32> {
        if scope.dead {
            return None;
        }
        let mut tests = Vec::new();
        for (id, set) in &scope.sets {
            if let Some((chip, variant)) = self.chip
                && chip == *id
            {
                if !set.get(variant).copied().unwrap_or(true) {
                    return None;
                }
                continue;
            }
            let Some(def) = self.linked.enums.get(*id).filter(|def| def.name != "chip") else { continue };
            if !set.contains(&false) {
                continue;
            }
            if set.len() > 64 {
                self.issues.add(def.name, "only its first 64 values can select variants");
            }
            let mask = (0u64..).zip(set.iter().take(64)).fold(0, |m, (bit, &on)| m | (u64::from(on) << bit));
            tests.extend([self.store.selector(def.name), mask as u32, (mask >> 32) as u32]);
        }
        if tests.is_empty() {
            return Some(0);
        }
        let mut record = vec![tests.len() as u32 / condition::SIZE];
        record.extend(tests);
        Some(self.store.record(record))
    }

    /// The name of an enum's value on this generation, as an array index shows it.
    pub fn index_name(&mut self, name: &str, number: u64) -> Option<&'m str> {
        let def = self.linked.enums.get(self.linked.enum_id(name)?)?;
        let outer = self.scope(None, def.select, def.name);
        for value in def.values.iter().filter(|v| v.value == Some(number)) {
            let scope = self.scope(Some(&outer), &value.select, &value.name);
            if self.condition(&scope).is_some() {
                return Some(&value.name);
            }
        }
        None
    }

    fn packets(&mut self, names: &str) -> u32 {
        let names: Vec<u32> = (0..256)
            .map(|opcode| match self.index_name(names, opcode) {
                Some(name) => self.store.string(name),
                None => 0,
            })
            .collect();
        self.store.record(names)
    }

    /// The record of a type; the bitset or enum defined in place is part of it.
    pub fn ty(&mut self, spec: &'m TypeSpec, scope: &VariantScope<'m>, what: &str) -> u32 {
        let (mut spec_kind, mut payload, mut enum_name) = (kind::HEX, 0, None);
        let inline_name = match spec.name.as_deref() {
            Some(name) => name,
            None if !spec.fields.is_empty() => "bitfield",
            None if !spec.values.is_empty() => "enum",
            None if spec.low == 0 && spec.high == 0 => "boolean",
            None => "hex",
        };
        let named = spec.name.as_deref();
        if let Some(id) = named.and_then(|n| self.linked.enum_id(n)) {
            spec_kind = kind::ENUM;
            let inline = self.linked.enums.get(id).is_some_and(|def| def.inline);
            payload = if inline {
                self.enumeration(id, scope, &spec.values)
            } else {
                enum_name = named;
                self.enumeration(id, &VariantScope::default(), &[])
            };
        } else if let Some(id) = named.and_then(|n| self.linked.bitset_id(n)) {
            (spec_kind, payload) = self.bitset(id, spec, scope, what);
        } else if let Some(inner) = named.and_then(|n| self.linked.spectype(n)) {
            let label = format!("type {inline_name}");
            if self.enter(&label, what) {
                (spec_kind, payload) = (kind::ALIAS, self.ty(inner, &VariantScope::default(), inline_name));
                self.open.pop();
            }
        } else {
            spec_kind = match inline_name {
                "hex" => kind::HEX,
                "address" | "waddress" => kind::ADDRESS,
                "uint" => kind::UINT,
                "int" => kind::INT,
                "boolean" => kind::BOOLEAN,
                "float" => kind::FLOAT,
                "fixed" => kind::FIXED,
                "ufixed" => kind::UFIXED,
                "a3xx_regid" => kind::REGID,
                "enum" => kind::ENUM,
                "bitfield" => kind::BITSET,
                other => {
                    self.issues.add(what, format!("unknown type {other}"));
                    kind::HEX
                }
            };
            payload = match spec_kind {
                kind::FIXED | kind::UFIXED => spec.radix.unwrap_or(0).min(63) as u32,
                kind::ENUM => self.values("enum", &[(scope, &[]), (scope, &refs(&spec.values))]),
                kind::BITSET if self.enter("fields in place", what) => {
                    let at = self.fields(refs(&spec.fields), scope);
                    self.open.pop();
                    at
                }
                _ => 0,
            };
        }
        let mut selector = 0;
        if spec.addvariant {
            match enum_name {
                Some(name) => selector = self.store.selector(name) + 1,
                None => self.issues.add(what, "selects a variant, but is not an enum"),
            }
        }
        let mut record = vec![0; ty::SIZE as usize];
        let shr = spec.shr.min(63);
        for (slot, value) in [
            (ty::BITS, spec_kind | (spec.low.min(63) << 8) | (spec.high.min(63) << 16) | (shr << 24)),
            (ty::NAME, self.store.string(inline_name)),
            (ty::PAYLOAD, payload),
            (ty::SELECTOR, selector),
            (ty::ALIGN, spec.align.and_then(|a| u32::try_from(a).ok()).unwrap_or(0)),
        ] {
            set(&mut record, slot, value);
        }
        self.store.record(record)
    }

    /// Types may contain each other; this ends a circle, and nesting that explodes.
    fn enter(&mut self, label: &str, what: &str) -> bool {
        let circle = label != "fields in place" && self.open.iter().any(|open| open == label);
        if circle || self.open.len() >= MAX_TYPE_DEPTH {
            self.issues.add(what, "types nested too deeply or without end");
            return false;
        }
        self.open.push(label.to_string());
        true
    }

    fn bitset(&mut self, id: usize, spec: &'m TypeSpec, scope: &VariantScope<'m>, what: &str) -> (u32, u32) {
        let Some(def) = self.linked.bitsets.get(id) else { return (kind::HEX, 0) };
        if !def.inline
            && let Some(&at) = self.bitsets.get(&id)
        {
            return (kind::BITSET, at);
        }
        if !self.enter(&format!("bitset {}", def.name), what) {
            return (kind::HEX, 0);
        }
        let at = if def.inline {
            self.fields(spec.fields.iter().chain(def.fields.iter().copied()).collect(), scope)
        } else {
            let own = self.scope(None, def.select, def.name);
            let at = self.fields_in_order(&def.fields, &own);
            self.bitsets.insert(id, at);
            at
        };
        self.open.pop();
        (kind::BITSET, at)
    }

    /// Fields in place: those that select variants are decoded (and shown) before those they decide about, each
    /// changing places with the first that selects none.
    fn fields(&mut self, mut fields: Vec<&'m BitField>, scope: &VariantScope<'m>) -> u32 {
        for i in 0..fields.len() {
            let selects = |f: &&BitField| f.ty.addvariant;
            let other = fields.iter().take(i).position(|f| !selects(f));
            if let (true, Some(j)) = (fields.get(i).is_some_and(selects), other) {
                fields.swap(i, j);
            }
        }
        self.fields_in_order(&fields, scope)
    }

    fn fields_in_order(&mut self, fields: &[&'m BitField], scope: &VariantScope<'m>) -> u32 {
        let mut record = vec![0];
        for &bits in fields {
            if !self.store.spend_fields(1) {
                self.issues.add(&bits.name, "too many fields");
                break;
            }
            let own = self.scope(Some(scope), &bits.select, &bits.name);
            let Some(condition) = self.condition(&own) else { continue };
            let ty = self.ty(&bits.ty, &own, &bits.name);
            let name = self.store.string(&bits.name);
            record.extend([name, ty, condition, u32::from(is_placeholder(&bits.name))]);
        }
        let count = (record.len() - 1) as u32 / field::SIZE;
        set(&mut record, 0, count);
        self.store.record(record)
    }

    /// An enum's record: on its own, or (inline) copied into a user's scope after the user's own values.
    fn enumeration(&mut self, id: usize, user: &VariantScope<'m>, own_values: &'m [EnumValue]) -> u32 {
        let Some(def) = self.linked.enums.get(id) else { return 0 };
        if def.inline {
            if !self.store.spend_fields(def.values.len()) {
                self.issues.add(def.name, "too many values");
                return 0;
            }
            return self.values(def.name, &[(user, &refs(own_values)), (user, &def.values)]);
        }
        if let Some(&at) = self.enums.get(&id) {
            return at;
        }
        let scope = self.scope(None, def.select, def.name);
        let at = self.values(def.name, &[(&scope, &def.values)]);
        self.enums.insert(id, at);
        at
    }

    fn values(&mut self, name: &str, lists: &[(&VariantScope<'m>, &[&'m EnumValue])]) -> u32 {
        let mut records: Vec<u32> = Vec::new();
        let mut numbers: Vec<u64> = Vec::new();
        let mut conditional = false;
        // A variant is known by its name: the first value of that name counts.
        let mut variants: HashMap<String, u32> = HashMap::new();
        for (i, value) in lists.iter().flat_map(|(_, list)| list.iter()).enumerate() {
            variants.entry(value.name.to_ascii_lowercase()).or_insert(i as u32);
        }
        for (scope, list) in lists {
            for value in list.iter() {
                let own = self.scope(Some(scope), &value.select, &value.name);
                let (Some(number), Some(condition)) = (value.value, self.condition(&own)) else { continue };
                conditional |= condition != 0;
                numbers.push(number);
                let variant = variants.get(&value.name.to_ascii_lowercase()).copied().unwrap_or(0);
                let string = self.store.string(&value.name);
                records.extend([number as u32, (number >> 32) as u32, string, condition, variant]);
            }
        }
        let (mut dense, mut sorted) = (Vec::new(), Vec::new());
        if !conditional {
            let room = (numbers.len() as u64 * 4 + 16).min(MAX_DENSE);
            let dense_len = numbers.iter().filter(|&&n| n < room).max().map_or(0, |n| n + 1);
            dense = vec![0u32; dense_len as usize];
            for (i, &number) in numbers.iter().enumerate() {
                match dense.get_mut(usize::try_from(number).unwrap_or(usize::MAX)) {
                    Some(slot) if *slot == 0 => *slot = i as u32 + 1,
                    Some(_) => {}
                    None => sorted.push((number, i as u32)),
                }
            }
            sorted.sort();
            sorted.dedup_by_key(|(number, _)| *number);
        }
        debug_assert_eq!(records.len(), numbers.len() * value::SIZE as usize);
        let (dense_len, sorted_len) = (dense.len() as u32, sorted.len() as u32);
        let mut record = vec![0; enumeration::SIZE as usize];
        for (slot, value) in [
            (enumeration::NAME, self.store.string(name)),
            (enumeration::VALUES, self.store.record(records)),
            (enumeration::COUNT, numbers.len() as u32),
            (enumeration::DENSE, self.store.record(dense)),
            (enumeration::DENSE_LEN, dense_len),
            (enumeration::SORTED, self.store.record(sorted.into_iter().map(|(_, i)| i).collect())),
            (enumeration::SORTED_LEN, sorted_len),
            (enumeration::CONDITIONAL, u32::from(conditional)),
        ] {
            set(&mut record, slot, value);
        }
        self.store.record(record)
    }
}

fn refs<T>(list: &[T]) -> Vec<&T> {
    list.iter().collect()
}

/// `UNK` and a number: a field known to exist, of unknown meaning.
fn is_placeholder(name: &str) -> bool {
    name.strip_prefix("UNK").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}
