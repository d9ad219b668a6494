//! Facts of Intel's commands → tables: for each generation what it has itself and what it takes over from older ones.
//!
//! Equal records are stored once, so that thirteen generations cost little more than the differences between them.
//! Whatever contradicts itself is an error, for the facts are the project's own: two commands that one header could be
//! both of, a type without a definition, a name defined twice.

use super::layout::{enumeration, generation, header, instruction, item, kind, register, structure};
use super::model::{InstructionItem, IntelFile, IntelItem, ItemBody, LayoutElem};
use std::collections::{BTreeMap, HashMap};
use unwedge_base::hash::Fnv1a;

/// Compiled tables.
pub struct IntelTables {
    /// Records: little-endian 32-bit words.
    pub words: Vec<u8>,
    /// The string pool.
    pub strings: String,
}

/// Compiles all files. What is wrong is said in lines of `FILE:LINE: what`.
pub fn compile(files: &[IntelFile]) -> Result<IntelTables, Vec<String>> {
    let mut errors = Vec::new();
    let mut store = IntelStore::new();
    store.words.resize(header::SIZE as usize, 0);
    let mut numbers: Vec<u32> = files.iter().filter_map(|f| f.generation).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut records = Vec::new();
    for &number in &numbers {
        let view = GenerationView::new(files, number, &mut errors);
        records.extend(
            IntelCompiler { view: &view, store: &mut store, errors: &mut errors, open: Vec::new() }
                .generation(),
        );
    }
    for file in files.iter().filter(|f| f.generation.is_none()) {
        let missing = |name: &&String| !files.iter().any(|f| f.items.iter().any(|item| item.name == **name));
        for name in file.drops.iter().filter(missing) {
            errors.push(format!("{}: drops {name}, which nothing defines", file.name));
        }
        for typed in &file.typed {
            let mut items = files.iter().flat_map(|f| &f.items).filter(|item| item.name == typed.owner);
            if !items
                .any(|item| matches!(&item.body, ItemBody::Struct { elems, .. } if has(elems, &typed.field)))
            {
                errors.push(format!("{}:{}: {} has no {}", file.name, typed.line, typed.owner, typed.field));
            }
        }
    }
    let generations = store.record(records);
    let strings = store.record(store.string_ends.clone());
    for (slot, value) in [
        (header::STRINGS, strings),
        (header::GENERATIONS, generations),
        (header::GENERATION_COUNT, numbers.len() as u32),
    ] {
        set(&mut store.words, slot, value);
    }
    let bytes = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let mut hash = Fnv1a::default();
    hash.add(&bytes(&store.words));
    hash.add(store.pool.as_bytes());
    let hash = hash.value();
    set(&mut store.words, header::HASH, hash as u32);
    set(&mut store.words, header::HASH + 1, (hash >> 32) as u32);
    if errors.is_empty() {
        Ok(IntelTables { words: bytes(&store.words), strings: store.pool })
    } else {
        Err(errors)
    }
}

/// Whether a field of a name is in a layout.
fn has(elems: &[LayoutElem], field: &str) -> bool {
    elems.iter().any(|elem| match elem {
        LayoutElem::Field { name, .. } => name == field,
        LayoutElem::Group { elems, .. } => has(elems, field),
    })
}

fn set(record: &mut [u32], slot: u32, value: u32) {
    if let Some(word) = record.get_mut(slot as usize) {
        *word = value;
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DefinitionKind {
    Enum,
    Struct,
    Instruction,
    Register,
}

fn kind_of(item: &IntelItem) -> DefinitionKind {
    match item.body {
        ItemBody::Enum(_) => DefinitionKind::Enum,
        ItemBody::Struct { .. } => DefinitionKind::Struct,
        ItemBody::Instruction(_) => DefinitionKind::Instruction,
        ItemBody::Register { .. } => DefinitionKind::Register,
    }
}

type Definitions<'m> = BTreeMap<(DefinitionKind, &'m str), (&'m IntelFile, &'m IntelItem)>;

/// What one generation has.
struct GenerationView<'m> {
    number: u32,
    files: &'m [IntelFile],
    definitions: Definitions<'m>,
}

impl<'m> GenerationView<'m> {
    fn new(files: &'m [IntelFile], number: u32, errors: &mut Vec<String>) -> GenerationView<'m> {
        let mut definitions = Definitions::new();
        for file in files.iter().filter(|f| f.generation == Some(number)) {
            let mut chain = vec![file];
            while let Some(name) = chain.last().and_then(|f| f.import.as_ref()) {
                match files.iter().find(|f| f.name == *name) {
                    Some(next) if !chain.iter().any(|f| f.name == next.name) => chain.push(next),
                    _ => {
                        errors.push(format!("{}: cannot import {name}", file.name));
                        break;
                    }
                }
            }
            let mut flat = Definitions::new();
            for file in chain.into_iter().rev() {
                for name in &file.drops {
                    let before = flat.len();
                    flat.retain(|(_, have), _| have != name);
                    if flat.len() == before {
                        errors.push(format!("{}: drops {name}, which it does not import", file.name));
                    }
                }
                for item in &file.items {
                    flat.insert((kind_of(item), &item.name), (file, item));
                }
            }
            definitions.extend(flat);
        }
        for file in files.iter().filter(|f| f.generation.is_none()) {
            definitions.retain(|(_, have), _| !file.drops.iter().any(|name| name == have));
        }
        for file in files.iter().filter(|f| f.generation.is_none()) {
            for item in &file.items {
                let Some((first, last)) = item.generations else {
                    errors.push(format!("{}:{}: {} of which generations?", file.name, item.line, item.name));
                    continue;
                };
                if (first..=last).contains(&number)
                    && let Some((other, _)) = definitions.insert((kind_of(item), &item.name), (file, item))
                {
                    errors.push(format!(
                        "{}:{}: {} of {} defines {} too",
                        file.name,
                        item.line,
                        other.name,
                        tenths(number),
                        item.name
                    ));
                }
            }
        }
        GenerationView { number, files, definitions }
    }

    /// The type of a field whose values an enum of another file names.
    fn typed(&self, owner: &str, field: &str) -> Option<&'m str> {
        let mut all = self.files.iter().flat_map(|file| &file.typed);
        all.find(|typed| typed.owner == owner && typed.field == field).map(|typed| typed.ty.as_str())
    }

    fn of(&self, kind: DefinitionKind) -> impl Iterator<Item = (&'m str, &'m IntelFile, &'m IntelItem)> {
        self.definitions
            .iter()
            .filter(move |((have, _), _)| *have == kind)
            .map(|((_, name), (file, item))| (*name, *file, *item))
    }
}

fn tenths(number: u32) -> String {
    format!("{}.{}", number / 10, number % 10)
}

/// Words and strings under construction.
struct IntelStore {
    words: Vec<u32>,
    records: HashMap<Vec<u32>, u32>,
    pool: String,
    string_ends: Vec<u32>,
    string_ids: HashMap<String, u32>,
}

impl IntelStore {
    fn new() -> IntelStore {
        let mut store = IntelStore {
            words: Vec::new(),
            records: HashMap::new(),
            pool: String::new(),
            string_ends: Vec::new(),
            string_ids: HashMap::new(),
        };
        // String 0 is the empty one: "none" where a string may be missing.
        store.string("");
        store
    }

    fn string(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.string_ids.get(text) {
            return id;
        }
        let id = self.string_ends.len() as u32;
        self.pool.push_str(text);
        self.string_ends.push(self.pool.len() as u32);
        self.string_ids.insert(text.to_string(), id);
        id
    }

    /// Stores a record, once.
    fn record(&mut self, record: Vec<u32>) -> u32 {
        if let Some(&at) = self.records.get(&record) {
            return at;
        }
        let at = self.words.len() as u32;
        self.words.extend(&record);
        self.records.insert(record, at);
        at
    }
}

/// Structures and groups nest at most this deep; the reader's stack is a little deeper.
const MAX_DEPTH: usize = 10;

struct IntelCompiler<'a, 'm> {
    view: &'a GenerationView<'m>,
    store: &'a mut IntelStore,
    errors: &'a mut Vec<String>,
    open: Vec<&'m str>,
}

impl<'m> IntelCompiler<'_, 'm> {
    fn generation(&mut self) -> Vec<u32> {
        let view = self.view;
        let mut commands = Vec::new();
        for (name, file, def) in view.of(DefinitionKind::Instruction) {
            if let ItemBody::Instruction(it) = &def.body {
                let at = self.instruction(name, file, def, it);
                commands.push((name, it, at));
            }
        }
        self.check_opcodes(&commands);
        let mut structures = Vec::new();
        for (name, file, def) in view.of(DefinitionKind::Struct) {
            if let ItemBody::Struct { dwords, elems } = &def.body {
                self.open.push(name);
                let layout = self.layout(elems, file, def);
                self.open.pop();
                let name = self.store.string(name);
                structures.push(self.sized(
                    structure::SIZE,
                    &[(structure::NAME, name), (structure::DWORDS, *dwords), (structure::LAYOUT, layout)],
                ));
            }
        }
        let mut registers = Vec::new();
        for (name, file, def) in view.of(DefinitionKind::Register) {
            if let ItemBody::Register { offset, relative, dwords, elems } = &def.body {
                let layout = self.layout(elems, file, def);
                let name = self.store.string(name);
                let at = self.sized(
                    register::SIZE,
                    &[
                        (register::NAME, name),
                        (register::OFFSET, *offset),
                        (register::DWORDS, dwords & 0x7fff_ffff | u32::from(*relative) << 31),
                        (register::LAYOUT, layout),
                    ],
                );
                registers.push((*relative, *offset, at));
            }
        }
        let mut enums = Vec::new();
        for (name, _, def) in view.of(DefinitionKind::Enum) {
            if let ItemBody::Enum(values) = &def.body {
                enums.push(self.enumeration(name, values));
            }
        }
        let by_name: Vec<u32> = registers.iter().map(|&(.., at)| at).collect();
        registers.sort_by_key(|&(relative, offset, _)| (relative, offset));
        let absolute = registers.iter().filter(|(relative, ..)| !relative).count() as u32;
        let mi = self.slots(&commands, 64, 0xff80_0000, |i| i << 23);
        let blitter = self.slots(&commands, 128, 0xffc0_0000, |i| 2 << 29 | i << 22);
        let mut pages = Vec::new();
        for top in 0..256 {
            // MI commands and those of the blitter have tables of their own.
            let own = matches!(top >> 5, 0 | 2);
            pages.push(if own {
                0
            } else {
                self.slots(&commands, 256, 0xffff_0000, |i| top << 24 | i << 16)
            });
        }
        let instruction_count = commands.len() as u32;
        let (structure_count, register_count) = (structures.len() as u32, registers.len() as u32);
        let enum_count = enums.len() as u32;
        let slots = [
            (generation::NUMBER, view.number),
            (generation::MI, mi),
            (generation::BLITTER, blitter),
            (generation::OTHER, self.store.record(pages)),
            (generation::INSTRUCTIONS, self.store.record(commands.iter().map(|&(.., at)| at).collect())),
            (generation::INSTRUCTION_COUNT, instruction_count),
            (generation::STRUCTURES, self.store.record(structures)),
            (generation::STRUCTURE_COUNT, structure_count),
            (generation::REGISTERS, self.store.record(by_name)),
            (generation::REGISTER_COUNT, register_count),
            (generation::OFFSETS, self.store.record(registers.into_iter().map(|(.., at)| at).collect())),
            (generation::ABSOLUTE_COUNT, absolute),
            (generation::ENUMS, self.store.record(enums)),
            (generation::ENUM_COUNT, enum_count),
        ];
        let mut record = vec![0; generation::SIZE as usize];
        slots.into_iter().for_each(|(slot, value)| set(&mut record, slot, value));
        record
    }

    fn sized(&mut self, size: u32, slots: &[(u32, u32)]) -> u32 {
        let mut record = vec![0; size as usize];
        slots.iter().for_each(|&(slot, value)| set(&mut record, slot, value));
        self.store.record(record)
    }

    fn error(&mut self, file: &IntelFile, def: &IntelItem, what: String) {
        self.errors.push(format!("{}:{}: {}: {what}", file.name, def.line, def.name));
    }

    fn instruction(
        &mut self,
        name: &'m str,
        file: &'m IntelFile,
        def: &'m IntelItem,
        it: &'m InstructionItem,
    ) -> u32 {
        if it.matches & !it.mask != 0 || it.mask >> 29 != 7 {
            self.error(file, def, "its mask does not cover its opcode".to_string());
        }
        if it.dwords.is_none() && it.length.is_none() {
            self.error(file, def, "without a length".to_string());
        }
        let layout = self.layout(&it.elems, file, def);
        let name = self.store.string(name);
        self.sized(
            instruction::SIZE,
            &[
                (instruction::NAME, name),
                (instruction::MATCH, it.matches),
                (instruction::MASK, it.mask),
                (instruction::DWORDS, it.dwords.unwrap_or(0)),
                (instruction::LENGTH, it.length.map_or(0, |(high, bias)| high | bias << 8)),
                (instruction::ENGINES, it.engines),
                (instruction::LAYOUT, layout),
            ],
        )
    }

    /// No header is two commands of one engine, unless one of them is a special form of the other.
    fn check_opcodes(&mut self, commands: &[(&'m str, &'m InstructionItem, u32)]) {
        for (i, (name, a, _)) in commands.iter().enumerate() {
            for (other, b, _) in commands.iter().skip(i + 1) {
                let common = a.mask & b.mask;
                let special = a.mask != b.mask && (common == a.mask || common == b.mask);
                if (a.matches ^ b.matches) & common == 0 && a.engines & b.engines != 0 && !special {
                    let number = tenths(self.view.number);
                    self.errors.push(format!("{number}: one header is {name} and {other}"));
                }
            }
        }
    }

    /// For each of `count` values of the header's upper bits the commands it may be, special forms first.
    fn slots(
        &mut self,
        commands: &[(&'m str, &'m InstructionItem, u32)],
        count: u32,
        known: u32,
        header: impl Fn(u32) -> u32,
    ) -> u32 {
        let mut slots = Vec::new();
        for i in 0..count {
            let mut fitting: Vec<_> = commands
                .iter()
                .filter(|(_, it, _)| (it.matches ^ header(i)) & it.mask & known == 0)
                .collect();
            fitting.sort_by_key(|(_, it, _)| std::cmp::Reverse(it.mask.count_ones()));
            if fitting.is_empty() {
                slots.push(0);
                continue;
            }
            let mut list = vec![fitting.len() as u32];
            list.extend(fitting.iter().map(|(.., at)| *at));
            slots.push(self.store.record(list));
        }
        if slots.iter().all(|&slot| slot == 0) { 0 } else { self.store.record(slots) }
    }

    fn layout(&mut self, elems: &'m [LayoutElem], file: &'m IntelFile, def: &'m IntelItem) -> u32 {
        let mut record = vec![elems.len() as u32];
        for elem in elems {
            let slots = match elem {
                LayoutElem::Field { name, start, width, ty, values } => {
                    let plain = values.is_empty() && ty == "uint";
                    let named = self.view.typed(&def.name, name).filter(|_| plain);
                    let (kind, payload) = self.ty(named.unwrap_or(ty), values, *width, file, def);
                    [self.store.string(name), *start, *width, kind, payload]
                }
                LayoutElem::Group { start, count, bits, elems } => {
                    if self.open.len() >= MAX_DEPTH {
                        self.error(file, def, "groups nested too deeply".to_string());
                        continue;
                    }
                    self.open.push("");
                    let inner = self.layout(elems, file, def);
                    self.open.pop();
                    let group = self.store.record(vec![count.unwrap_or(0), inner]);
                    [0, *start, *bits, kind::GROUP, group]
                }
            };
            let mut words = vec![0; item::SIZE as usize];
            for (slot, value) in
                [item::NAME, item::START, item::WIDTH, item::KIND, item::PAYLOAD].into_iter().zip(slots)
            {
                set(&mut words, slot, value);
            }
            record.extend(words);
        }
        self.store.record(record)
    }

    fn ty(
        &mut self,
        ty: &'m str,
        values: &'m [(String, u64)],
        width: u32,
        file: &'m IntelFile,
        def: &'m IntelItem,
    ) -> (u32, u32) {
        let kind = match ty {
            "uint" => kind::UINT,
            "int" => kind::INT,
            "bool" => kind::BOOL,
            "float" => kind::FLOAT,
            "address" => kind::ADDRESS,
            "offset" => kind::OFFSET,
            "mbz" => kind::ZERO,
            "mbo" => kind::ONE,
            _ => {
                if let Some(fixed) = fixed(ty) {
                    return (fixed, 0);
                }
                return self.named(ty, file, def);
            }
        };
        if kind == kind::FLOAT && width != 32 {
            self.error(file, def, format!("a float of {width} bits"));
        }
        let names = if values.is_empty() { 0 } else { self.enumeration("", values) };
        (kind, names)
    }

    fn named(&mut self, ty: &'m str, file: &'m IntelFile, def: &'m IntelItem) -> (u32, u32) {
        let find = |kind| self.view.definitions.get(&(kind, ty)).copied();
        match (find(DefinitionKind::Struct), find(DefinitionKind::Enum)) {
            (Some((inner, body)), None) => {
                let ItemBody::Struct { elems, .. } = &body.body else { return (kind::UINT, 0) };
                if self.open.contains(&ty) || self.open.len() >= MAX_DEPTH {
                    self.error(file, def, format!("{ty} within {ty}, or structures nested too deeply"));
                    return (kind::UINT, 0);
                }
                self.open.push(ty);
                let at = self.layout(elems, inner, body);
                self.open.pop();
                (kind::STRUCT, at)
            }
            (None, Some((_, body))) => match &body.body {
                ItemBody::Enum(values) => (kind::UINT, self.enumeration(ty, values)),
                _ => (kind::UINT, 0),
            },
            _ => {
                self.error(file, def, format!("unknown type {ty}"));
                (kind::UINT, 0)
            }
        }
    }

    fn enumeration(&mut self, name: &str, values: &[(String, u64)]) -> u32 {
        let mut sorted: Vec<_> = values.iter().collect();
        sorted.sort_by_key(|(_, value)| *value);
        sorted.dedup_by_key(|(_, value)| *value);
        let mut record = vec![0; enumeration::VALUES as usize];
        for (text, value) in &sorted {
            let text = self.store.string(text);
            if u32::try_from(*value).is_err() {
                self.errors.push(format!("{name}: {value:#x} is no value of 32 bits"));
            }
            record.extend([*value as u32, text]);
        }
        let name = self.store.string(name);
        set(&mut record, enumeration::NAME, name);
        set(&mut record, enumeration::COUNT, sorted.len() as u32);
        self.store.record(record)
    }
}

/// `u4.8`, `s1.6`.
fn fixed(ty: &str) -> Option<u32> {
    let sign = if ty.starts_with('s') { kind::SFIXED } else { kind::UFIXED };
    let (whole, fraction) = ty.strip_prefix(['u', 's'])?.split_once('.')?;
    let (_, fraction): (u32, u32) = (whole.parse().ok()?, fraction.parse().ok()?);
    (fraction < 64).then_some(sign | fraction << 8)
}
