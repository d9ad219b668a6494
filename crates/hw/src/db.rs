//! Reads compiled tables: the built-in ones, or those made from a user's XML.
//!
//! Nothing is parsed or allocated to look something up. Every read is checked: a wrong reference reads as 0, never
//! panics.

use crate::amd::{self, Amd, Gfx};
use crate::compile::{ADRENO, DbTables, compile};
use crate::layout::{self, condition, entry, enumeration, generation, header, table, value};
use crate::model::{DbFacts, FactsIssue};
use crate::rnndb::{Fetch, ImportError, import};
use crate::types::{ValueType, Variants};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;
use unwedge_base::Generation;

static BUILTIN_WORDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/adreno.words"));
static BUILTIN_STRINGS: &str = include_str!(concat!(env!("OUT_DIR"), "/adreno.strings"));
static AMD_WORDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/amd.words"));
static AMD_STRINGS: &str = include_str!(concat!(env!("OUT_DIR"), "/amd.strings"));

/// A register database: the built-in one, or one made from rnndb XML at run time.
pub struct Db {
    words: Cow<'static, [u8]>,
    pool: Cow<'static, str>,
    strings: u32,
    source: Option<String>,
    identity: OnceLock<DbIdentity>,
}

/// Which database decoded something. Every output of unwedge names it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DbIdentity {
    /// `built-in`, or the folder the XML came from.
    pub source: String,
    /// Version of the facts, such as `mesa-25.0.7`; empty when unknown.
    pub version: String,
    /// Hash of the tables' contents, 16 hex digits: the same for the same facts.
    pub hash: String,
}

impl fmt::Display for DbIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if !self.version.is_empty() {
            write!(f, " {}", self.version)?;
        }
        write!(f, " ({})", self.hash)
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Db").field(self.identity()).finish()
    }
}

impl Db {
    /// The compiled-in tables of AMD GPUs, for [`Db::amd_gpu`]. Costs nothing either.
    pub fn amd() -> Db {
        Db::new(Cow::Borrowed(AMD_WORDS), Cow::Borrowed(AMD_STRINGS), None)
    }

    /// The compiled-in tables of Adreno GPUs. Costs nothing: no parsing, no allocation.
    pub fn builtin() -> Db {
        Db::new(Cow::Borrowed(BUILTIN_WORDS), Cow::Borrowed(BUILTIN_STRINGS), None)
    }

    /// Compiles a folder of rnndb XML. `source` names it in [`DbIdentity`]; `fetch` gives the (uncompressed) bytes of a
    /// file by its name, `adreno/a6xx.xml` or `a6xx.xml`. Beside the database comes what it could not express. rnndb has
    /// no devices: those are the built-in ones.
    ///
    /// # Errors
    /// When a file that the others need is not there, or is not XML of this kind.
    pub fn from_rnndb(source: &str, fetch: &mut Fetch<'_>) -> Result<(Db, Vec<FactsIssue>), ImportError> {
        let (mut facts, mut issues) = import(fetch)?;
        facts.devices = Db::builtin().devices().map(|device| device.row()).collect();
        let (db, more) = Db::from_facts(source, &facts);
        issues.extend(more);
        Ok((db, issues))
    }

    /// A database of these facts of Adreno GPUs, with what could not be expressed.
    pub fn from_facts(source: &str, facts: &DbFacts) -> (Db, Vec<FactsIssue>) {
        let DbTables { words, strings, issues } = compile(facts, &ADRENO);
        (Db::new(Cow::Owned(words), Cow::Owned(strings), Some(source.to_string())), issues)
    }

    fn new(words: Cow<'static, [u8]>, pool: Cow<'static, str>, source: Option<String>) -> Db {
        let mut db = Db { words, pool, strings: 0, source, identity: OnceLock::new() };
        db.strings = db.word(header::STRINGS);
        debug_assert_eq!(db.word(header::MAGIC), layout::MAGIC);
        db
    }

    /// Which database this is.
    pub fn identity(&self) -> &DbIdentity {
        self.identity.get_or_init(|| {
            let hash = u64::from(self.word(header::HASH)) | (u64::from(self.word(header::HASH + 1)) << 32);
            let version = self.word(header::VERSION) as usize;
            let end = version + self.word(header::VERSION_LEN) as usize;
            DbIdentity {
                source: self.source.clone().unwrap_or_else(|| "built-in".to_string()),
                version: self.pool.get(version..end).unwrap_or_default().to_string(),
                hash: format!("{hash:016x}"),
            }
        })
    }

    /// The view of one GPU generation.
    pub fn gpu(&self, generation: Generation) -> Gpu<'_> {
        Gpu { view: self.view(generation.number().saturating_sub(2)), generation }
    }

    /// The view of one generation of a database made by [`Db::amd`].
    pub fn amd_gpu(&self, gfx: Gfx) -> Amd<'_> {
        Amd::new(self.view(amd::variant(gfx)), gfx)
    }

    /// The view of a generation by its place in the family.
    fn view(&self, index: u32) -> DbView<'_> {
        DbView { db: self, at: self.word(header::GENERATIONS) + index * generation::SIZE }
    }

    #[inline]
    pub(crate) fn word(&self, at: u32) -> u32 {
        let at = at as usize * 4;
        match self.words.get(at..at + 4) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => 0,
        }
    }

    #[inline]
    pub(crate) fn string(&self, id: u32) -> &str {
        let start = if id == 0 { 0 } else { self.word(self.strings + id - 1) };
        self.pool.get(start as usize..self.word(self.strings + id) as usize).unwrap_or_default()
    }

    pub(crate) fn holds(&self, at: u32, selected: &Variants) -> bool {
        if at == 0 {
            return true;
        }
        (0..self.word(at)).all(|i| {
            let test = at + 1 + i * condition::SIZE;
            let Some(variant) = selected.get(self.word(test + condition::SELECTOR)) else { return true };
            let half = if variant < 32 { condition::LOW } else { condition::HIGH };
            variant < 64 && self.word(test + half) >> (variant % 32) & 1 == 1
        })
    }

    /// Binary search in sorted records whose first word is a string.
    fn find(&self, list: u32, count: u32, size: u32, name: &str) -> Option<u32> {
        let at = |i: u32| list + i * size;
        let first = partition(count, |i| self.string(self.word(at(i))) < name);
        (first < count && self.string(self.word(at(first))) == name).then(|| at(first))
    }
}

fn partition(count: u32, before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The database as one generation sees it, whichever vendor's: what [`Gpu`] and [`Amd`] have in common.
#[derive(Clone, Copy, Debug)]
pub struct DbView<'d> {
    db: &'d Db,
    at: u32,
}

/// The database as one Adreno generation sees it.
#[derive(Clone, Copy, Debug)]
pub struct Gpu<'d> {
    view: DbView<'d>,
    generation: Generation,
}

impl<'d> Deref for Gpu<'d> {
    type Target = DbView<'d>;

    fn deref(&self) -> &DbView<'d> {
        &self.view
    }
}

/// An address space of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegSpace {
    /// The GPU's own registers (dword offsets).
    Gpu,
    /// The GMU's (a6xx on).
    Gmu,
    /// The CP's internal control registers (a5xx on). On a7xx, those of its first two generations.
    CpControl,
    /// The CP's internal control registers on the third a7xx generation (a750).
    CpControlGen3,
    /// The CP's pipe registers (a5xx on).
    CpPipe,
    /// The SQE's special registers (a6xx on).
    Sqe,
}

impl RegSpace {
    /// Every space.
    pub const ALL: [RegSpace; 6] = [
        RegSpace::Gpu,
        RegSpace::Gmu,
        RegSpace::CpControl,
        RegSpace::CpControlGen3,
        RegSpace::CpPipe,
        RegSpace::Sqe,
    ];

    /// What people call it.
    pub fn name(self) -> &'static str {
        layout::SPACES.get(self as usize).copied().unwrap_or_default()
    }
}

impl<'d> Gpu<'d> {
    /// Which generation this is a view of.
    pub fn generation(self) -> Generation {
        self.generation
    }

    /// One of its register spaces.
    pub fn space(self, space: RegSpace) -> Registers<'d> {
        self.view.registers(space as u32)
    }
}

impl<'d> DbView<'d> {
    pub(crate) fn db(self) -> &'d Db {
        self.db
    }

    /// A register space by its place in the record.
    pub(crate) fn registers(self, space: u32) -> Registers<'d> {
        let at = self.db.word(self.at + generation::SPACES + space);
        Registers { table: TableRef { db: self.db, at } }
    }

    /// The register whose dword is at this offset of the GPU's own space.
    pub fn reg(self, offset: u32) -> Option<Reg<'d>> {
        self.registers(0).at(offset)
    }

    /// Offset of a register of the GPU's own space by its full name, `RB_MRT[1].CONTROL` or `RB_MRT[0x1].CONTROL`.
    pub fn reg_offset(self, name: &str) -> Option<u32> {
        self.registers(0).offset_of(name)
    }

    /// Name of a packet by its opcode, `CP_NOP` or (AMD) `NOP`.
    pub fn packet_name(self, opcode: u8) -> Option<&'d str> {
        let names = self.db.word(self.at + generation::PACKETS);
        match self.db.word(names + u32::from(opcode)) {
            0 => None,
            id => Some(self.db.string(id)),
        }
    }

    /// A packet's payload layout, or a descriptor's (`A6XX_TEX_CONST`), by name; `None` too when it does not exist on
    /// this generation.
    pub fn domain(self, name: &str) -> Option<Domain<'d>> {
        let (list, count) = self.list(generation::DOMAINS, generation::DOMAIN_COUNT);
        let found = self.db.find(list, count, 2, name)?;
        Some(Domain { table: TableRef { db: self.db, at: self.db.word(found + 1) } })
    }

    /// Every packet layout and descriptor, by name.
    pub fn domains(self) -> impl Iterator<Item = Domain<'d>> {
        let (list, count) = self.list(generation::DOMAINS, generation::DOMAIN_COUNT);
        (0..count)
            .map(move |i| Domain { table: TableRef { db: self.db, at: self.db.word(list + i * 2 + 1) } })
    }

    /// An enum by name, as this generation sees it.
    pub fn enumeration(self, name: &str) -> Option<RegEnum<'d>> {
        let (list, count) = self.list(generation::ENUMS, generation::ENUM_COUNT);
        let found = self.db.find(list, count, 2, name)?;
        Some(RegEnum { db: self.db, at: self.db.word(found + 1) })
    }

    /// Every enum, by name.
    pub fn enumerations(self) -> impl Iterator<Item = RegEnum<'d>> {
        let (list, count) = self.list(generation::ENUMS, generation::ENUM_COUNT);
        (0..count).map(move |i| RegEnum { db: self.db, at: self.db.word(list + i * 2 + 1) })
    }

    fn list(self, list: u32, count: u32) -> (u32, u32) {
        (self.db.word(self.at + list), self.db.word(self.at + count))
    }
}

#[derive(Clone, Copy, Debug)]
struct TableRef<'d> {
    db: &'d Db,
    at: u32,
}

impl<'d> TableRef<'d> {
    #[inline]
    fn word(self, slot: u32) -> u32 {
        if self.at == 0 { 0 } else { self.db.word(self.at + slot) }
    }

    fn name(self) -> &'d str {
        if self.at == 0 { "" } else { self.db.string(self.word(table::NAME)) }
    }

    fn entry(self, index: u32) -> Reg<'d> {
        Reg { db: self.db, at: self.word(table::ENTRIES) + index * entry::SIZE }
    }

    /// Index of the first entry at `offset`.
    #[inline]
    fn first(self, offset: u32) -> Option<u32> {
        let step = |page: u32, len: u32, index: u32| {
            (index < len).then(|| self.db.word(page + index)).filter(|&found| found != 0)
        };
        let (root, root_len) = (self.word(table::ROOT), self.word(table::ROOT_LEN));
        if self.word(table::PAGED) == 0 {
            return step(root, root_len, offset).map(|entry| entry - 1);
        }
        let (leaf_span, middle_span) = (1 << table::LEAF_BITS, 1 << table::MIDDLE_BITS);
        let page = offset / leaf_span;
        let middle = step(root, root_len, page / middle_span)?;
        let leaf = step(middle, middle_span, page % middle_span)?;
        step(leaf, leaf_span, offset % leaf_span).map(|entry| entry - 1)
    }

    #[inline]
    fn at(self, offset: u32, selected: &Variants) -> Option<Reg<'d>> {
        let first = self.first(offset)?;
        let candidates = (first..self.word(table::COUNT)).map(|i| self.entry(i));
        candidates.take_while(|reg| reg.offset() == offset).find(|reg| {
            let condition = self.db.word(reg.at + entry::CONDITION);
            self.db.holds(condition, selected)
        })
    }

    fn offset_of(self, name: &str, selected: &Variants) -> Option<u32> {
        let name = canonical(name);
        let (names, count) = (self.word(table::NAMES), self.word(table::NAME_COUNT));
        let text = |i: u32| self.db.string(self.db.word(names + i * 3));
        let first = partition(count, |i| text(i) < name.as_ref());
        (first..count)
            .take_while(|&i| text(i) == name)
            .find(|&i| self.db.holds(self.db.word(names + i * 3 + 2), selected))
            .map(|i| self.db.word(names + i * 3 + 1))
    }

    fn iter(self) -> impl Iterator<Item = Reg<'d>> {
        (0..self.word(table::COUNT)).map(move |i| self.entry(i))
    }

    fn starting(self, prefix: &str) -> impl Iterator<Item = Reg<'d>> + use<'d, '_> {
        let (names, count) = (self.word(table::NAMES), self.word(table::NAME_COUNT));
        let text = move |i: u32| self.db.string(self.db.word(names + i * 3));
        let first = partition(count, |i| text(i) < prefix);
        (first..count).map_while(move |i| text(i).starts_with(prefix).then_some(i)).filter_map(move |i| {
            let entries = self.first(self.db.word(names + i * 3 + 1))?;
            (entries..self.word(table::COUNT)).map(|e| self.entry(e)).find(|reg| reg.name() == text(i))
        })
    }
}

/// `RB_MRT[01].CONTROL`, `RB_MRT[0x01].CONTROL` → `RB_MRT[0x1].CONTROL`, as the tables spell it.
fn canonical(name: &str) -> Cow<'_, str> {
    if !name.contains('[') {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 4);
    let mut rest = name;
    while let Some((before, inside, after)) =
        rest.split_once('[').and_then(|(before, tail)| tail.split_once(']').map(|(i, a)| (before, i, a)))
    {
        out.push_str(before);
        let hex = inside.strip_prefix("0x").or_else(|| inside.strip_prefix("0X"));
        let number = match hex {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => inside.parse(),
        };
        match number {
            Ok(0) => out.push_str("[0]"),
            Ok(n) => out.push_str(&format!("[{n:#x}]")),
            Err(_) => {
                out.push('[');
                out.push_str(inside);
                out.push(']');
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A register space.
#[derive(Clone, Copy, Debug)]
pub struct Registers<'d> {
    table: TableRef<'d>,
}

impl<'d> Registers<'d> {
    /// The register whose dword is at `offset`. Constant time.
    #[inline]
    pub fn at(self, offset: u32) -> Option<Reg<'d>> {
        const NOTHING: &Variants = &Variants::new();
        self.table.at(offset, NOTHING)
    }

    /// Offset of a register by its full name.
    pub fn offset_of(self, name: &str) -> Option<u32> {
        self.table.offset_of(name, &Variants::new())
    }

    /// Register dwords whose name begins so, by name: `RB_MRT[0x1].` finds the registers of an instance.
    pub fn starting(self, prefix: &str) -> impl Iterator<Item = Reg<'d>> + use<'d, '_> {
        self.table.starting(prefix)
    }

    /// Every register dword by offset.
    pub fn iter(self) -> impl Iterator<Item = Reg<'d>> {
        self.table.iter()
    }

    /// Registers (their low dwords) whose name matches a [`Pattern`], by offset.
    pub fn search(self, pattern: &str) -> impl Iterator<Item = Reg<'d>> {
        let pattern = Pattern::new(pattern);
        self.iter().filter(move |reg| pattern.matches(reg.name()) && reg.dword() == 0 && reg.ty().is_some())
    }
}

/// A pattern for names: a substring, or with `*` and `?` a pattern for the whole name; case does not count, and `[1]`
/// finds `[0x1]`.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    glob: bool,
}

impl Pattern {
    /// From what a person types.
    pub fn new(text: &str) -> Pattern {
        let text = canonical(text).to_ascii_uppercase();
        Pattern { glob: text.contains(['*', '?']), text }
    }

    /// The name fits.
    pub fn matches(&self, name: &str) -> bool {
        let name = name.to_ascii_uppercase();
        if self.glob { matches(self.text.as_bytes(), name.as_bytes()) } else { name.contains(&self.text) }
    }
}

/// Shell-like: `*` any text, `?` any byte.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || text.get(t) == Some(&c) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|&c| c == b'*')
}

/// One dword of a register (of a packet's payload, of a descriptor).
#[derive(Clone, Copy, Debug)]
pub struct Reg<'d> {
    db: &'d Db,
    at: u32,
}

impl<'d> Reg<'d> {
    /// Dword offset.
    pub fn offset(self) -> u32 {
        self.db.word(self.at + entry::OFFSET)
    }

    /// Full name as rnn prints it: `RB_MRT[0x1].CONTROL`, `CP_RB_BASE_HI`, `RBBM_PERFCTR_CP[0]+0x1`.
    pub fn name(self) -> &'d str {
        self.db.string(self.db.word(self.at + entry::NAME))
    }

    /// Which dword of the register this is: 0 is the low one.
    pub fn dword(self) -> u32 {
        self.db.word(self.at + entry::WIDTH) >> 8
    }

    /// Width of the register in bits, 32 or 64; 0 for a hole inside an array.
    pub fn width(self) -> u32 {
        self.db.word(self.at + entry::WIDTH) & 0xff
    }

    /// How to read its value; `None` for a hole inside an array.
    pub fn ty(self) -> Option<ValueType<'d>> {
        match self.db.word(self.at + entry::TYPE) {
            0 => None,
            at => Some(ValueType::new(self.db, at)),
        }
    }

    /// How drivers treat it, such as `cmd` (set once) or `rp_blit` (set per pass), when stated.
    pub fn usage(self) -> Option<&'d str> {
        match self.db.word(self.at + entry::USAGE) {
            0 => None,
            id => Some(self.db.string(id)),
        }
    }

    /// Appends the name, each part in its colour, as rnn does.
    pub fn write_name(self, palette: &crate::Palette, out: &mut Vec<u8>) {
        let high = self.dword() == 1 && self.ty().is_some_and(ValueType::is_address);
        crate::types::write_name(self.name(), high, palette, out);
    }
}

/// The layout of a packet's payload or of a descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Domain<'d> {
    table: TableRef<'d>,
}

impl<'d> Domain<'d> {
    /// `CP_LOAD_STATE6`.
    pub fn name(self) -> &'d str {
        self.table.name()
    }

    /// The entry at this dword, given what the fields decoded before have selected.
    pub fn at(self, index: u32, selected: &Variants) -> Option<Reg<'d>> {
        self.table.at(index, selected)
    }

    /// The entry at this dword if it is the same whatever is selected.
    pub fn fixed_at(self, index: u32) -> Option<Reg<'d>> {
        let first = self.table.entry(self.table.first(index)?);
        (first.db.word(first.at + entry::CONDITION) == 0).then_some(first)
    }

    /// Dword index of an entry by name.
    pub fn index_of(self, name: &str, selected: &Variants) -> Option<u32> {
        self.table.offset_of(name, selected)
    }

    /// Entries whose name begins so, by name.
    pub fn starting(self, prefix: &str) -> impl Iterator<Item = Reg<'d>> + use<'d, '_> {
        self.table.starting(prefix)
    }

    /// Every entry by dword; several for one dword where variants decide.
    pub fn iter(self) -> impl Iterator<Item = Reg<'d>> {
        self.table.iter()
    }
}

/// An enum.
#[derive(Clone, Copy, Debug)]
pub struct RegEnum<'d> {
    db: &'d Db,
    at: u32,
}

impl<'d> RegEnum<'d> {
    pub(crate) fn new(db: &'d Db, at: u32) -> RegEnum<'d> {
        RegEnum { db, at }
    }

    fn word(self, slot: u32) -> u32 {
        self.db.word(self.at + slot)
    }

    /// Which of its values exist depends on what is selected.
    pub(crate) fn is_conditional(self) -> bool {
        self.word(enumeration::CONDITIONAL) == 1
    }

    fn value(self, index: u32) -> u32 {
        self.word(enumeration::VALUES) + index * value::SIZE
    }

    fn number(self, value: u32) -> u64 {
        u64::from(self.db.word(value + value::LOW)) | (u64::from(self.db.word(value + value::HIGH)) << 32)
    }

    fn text(self, value: u32) -> &'d str {
        self.db.string(self.db.word(value + value::NAME))
    }

    /// Its own name; `enum` where it is defined in place.
    pub fn name(self) -> &'d str {
        self.db.string(self.word(enumeration::NAME))
    }

    /// The name of a value. Where variants of a packet decide, those that nothing has selected yet count.
    pub fn name_of(self, value: u64) -> Option<&'d str> {
        self.find(value, &Variants::new()).map(|(name, _)| name)
    }

    /// Name, and number as a variant.
    pub(crate) fn find(self, number: u64, selected: &Variants) -> Option<(&'d str, u32)> {
        let count = self.word(enumeration::COUNT);
        let found = if self.is_conditional() {
            (0..count).map(|i| self.value(i)).find(|&v| {
                self.number(v) == number && self.db.holds(self.db.word(v + value::CONDITION), selected)
            })?
        } else if number < u64::from(self.word(enumeration::DENSE_LEN)) {
            match self.db.word(self.word(enumeration::DENSE) + number as u32) {
                0 => return None,
                index => self.value(index - 1),
            }
        } else {
            let (list, len) = (self.word(enumeration::SORTED), self.word(enumeration::SORTED_LEN));
            let at = |i: u32| self.value(self.db.word(list + i));
            let first = partition(len, |i| self.number(at(i)) < number);
            if first >= len || self.number(at(first)) != number {
                return None;
            }
            at(first)
        };
        Some((self.text(found), self.db.word(found + value::VARIANT)))
    }

    /// The value of a name.
    pub fn value_of(self, name: &str) -> Option<u64> {
        self.iter().find(|(n, _)| *n == name).map(|(_, number)| number)
    }

    /// Names and values, in the order of the facts.
    pub fn iter(self) -> impl Iterator<Item = (&'d str, u64)> {
        (0..self.word(enumeration::COUNT)).map(move |i| {
            let value = self.value(i);
            (self.text(value), self.number(value))
        })
    }
}
