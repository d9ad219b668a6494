//! Makes programs of a table's templates.
//!
//! Pieces of a template whose text depends on few bits become tables of texts; conditions and forms of operands become
//! tables of programs. What fits neither is left to the templates.

use super::super::rows::*;
use super::super::tree;
use super::super::types::{IsaTable, Leaf, Root, rows};
use super::classes::{Classes, TextDeps, gather, spread};
use super::depends::{TemplateDeps, bounds, reads, steps, window};
use super::*;
use std::collections::HashMap;
use std::hash::Hash;

/// Bits a table of texts is looked up by, at most.
const TEXT_BITS: u32 = 11;
/// Tables of texts that follow each other become one while it has no more bits.
const JOINED_BITS: u32 = 7;
/// Bits a table of programs is looked up by, at most.
const PROGRAM_BITS: u32 = 14;

/// Owns the rows that [`Programs`] reads.
#[derive(Clone, Debug, Default)]
pub struct OwnedPrograms {
    pub(crate) bounds: Vec<u32>,
    pub(crate) trees: Vec<u32>,
    pub(crate) nodes: Vec<DecodeNode>,
    pub(crate) picks: Vec<u32>,
    pub(crate) heads: Vec<ProgramHead>,
    pub(crate) programs: Vec<LineProgram>,
    pub(crate) steps: Vec<LineStep>,
    pub(crate) targets: Vec<u16>,
    pub(crate) ways: Vec<ConditionalProgram>,
    pub(crate) checks: Vec<WordCheck>,
    pub(crate) texts: Vec<PackedText>,
}

impl OwnedPrograms {
    /// The programs of the words of `root`; `None` when they have more than 64 bits.
    pub fn new(table: &IsaTable<'_>, root: Root) -> Option<OwnedPrograms> {
        if table.width(root) > u64::BITS {
            return None;
        }
        let mut out = OwnedPrograms::default();
        let mut builder = ProgramBuilder::new(table, &mut out);
        for generation in bounds(table) {
            builder.generation(root, generation);
        }
        Some(out)
    }

    /// The programs.
    pub fn programs(&self) -> Programs<'_> {
        Programs {
            bounds: &self.bounds,
            trees: &self.trees,
            nodes: &self.nodes,
            picks: &self.picks,
            heads: &self.heads,
            programs: &self.programs,
            steps: &self.steps,
            targets: &self.targets,
            ways: &self.ways,
            checks: &self.checks,
            texts: &self.texts,
        }
    }
}

/// A part of a program before its steps are laid out.
#[derive(Clone)]
enum Atom {
    Text(String),
    Name,
    Texts(TextsByBits),
    Forms { bits: u64, targets: Vec<u16> },
    Ways(Vec<ConditionalProgram>),
    Field { field: u32, deps: u64 },
}

/// Texts by the values of bits; absent where the word is odd.
#[derive(Clone)]
struct TextsByBits {
    bits: u64,
    texts: Vec<Option<String>>,
    deps: TextDeps,
}

impl TextsByBits {
    /// The texts one after the other, `between` between them, when that makes a table that is not too large.
    fn join(&self, between: &str, next: &TextsByBits) -> Option<TextsByBits> {
        let bits = self.bits | next.bits;
        let most = JOINED_BITS.max(self.bits.count_ones()).max(next.bits.count_ones());
        let special = |deps: &TextDeps| deps.special.contains(&true);
        // A table has one mark for all its bits.
        let unlike =
            (special(&self.deps) && next.deps.bits != 0) || (special(&next.deps) && self.deps.bits != 0);
        if bits.count_ones() > most || runs(bits).is_none() || unlike {
            return None;
        }
        let mut texts = Vec::new();
        let mut deps = TextDeps {
            bits: self.deps.bits | next.deps.bits,
            typical: self.deps.typical | next.deps.typical,
            special: Vec::new(),
        };
        for value in 0..1u64 << bits.count_ones() {
            let word = spread(value, bits);
            let at = |part: &TextsByBits| gather(word, part.bits) as usize;
            let (a, b) = (at(self), at(next));
            let text = match (self.texts.get(a)?, next.texts.get(b)?) {
                (Some(a), Some(b)) => Some(format!("{a}{between}{b}")),
                _ => None,
            };
            if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT) {
                return None;
            }
            texts.push(text);
            deps.special.push(*self.deps.special.get(a)? || *next.deps.special.get(b)?);
        }
        Some(TextsByBits { bits, texts, deps })
    }
}

/// The runs of ones, when they are few enough for a step.
fn runs(mut bits: u64) -> Option<[(u8, u16, u8); MAX_RUNS]> {
    let mut runs = [(0, 0, 0); MAX_RUNS];
    let mut place = 0;
    for run in &mut runs {
        if bits == 0 {
            break;
        }
        let low = bits.trailing_zeros();
        let width = (bits >> low).trailing_ones().min(u16::BITS);
        let mask = window(0, width as u8);
        *run = (low as u8, mask as u16, place);
        place += width as u8;
        bits &= !(mask << low);
    }
    (bits == 0).then_some(runs)
}

/// Bits, and the texts for their values; absent where the word is odd.
type Tabulated = (u64, Vec<Option<String>>);

/// Rows that are stored once, by content.
struct ListPool<T>(HashMap<Vec<T>, u32>);

impl<T: Clone + Eq + Hash> ListPool<T> {
    fn add(&mut self, rows: &mut Vec<T>, new: Vec<T>) -> u32 {
        *self.0.entry(new).or_insert_with_key(|new| {
            let at = rows.len() as u32;
            rows.extend(new.iter().cloned());
            at
        })
    }
}

/// What a program depends on beside the scope: the expressions that matter in the encoding, and the generation if it
/// matters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ProgramContext {
    codes: usize,
    generation: Option<u32>,
}

struct ProgramBuilder<'t, 'o> {
    table: &'t IsaTable<'t>,
    out: &'o mut OwnedPrograms,
    generation: u32,
    /// The first of the heads of the class before.
    last: Option<usize>,
    context: ProgramContext,
    /// Expressions of contexts.
    codes: Vec<Vec<u32>>,
    classes: Classes,
    /// Bits and texts of pieces.
    tables: HashMap<(TemplatePart, Option<u32>), Option<Tabulated>>,
    scopes: HashMap<(u32, ProgramContext), u16>,
    programs: HashMap<LineProgram, u16>,
    pool_steps: ListPool<LineStep>,
    pool_targets: ListPool<u16>,
    pool_ways: ListPool<ConditionalProgram>,
    pool_checks: ListPool<WordCheck>,
    pool_texts: ListPool<PackedText>,
}

impl<'t, 'o> ProgramBuilder<'t, 'o> {
    fn new(table: &'t IsaTable<'t>, out: &'o mut OwnedPrograms) -> ProgramBuilder<'t, 'o> {
        ProgramBuilder {
            table,
            out,
            generation: 0,
            last: None,
            context: ProgramContext { codes: 0, generation: None },
            codes: Vec::new(),
            classes: Classes::default(),
            tables: HashMap::new(),
            scopes: HashMap::new(),
            programs: HashMap::new(),
            pool_steps: ListPool(HashMap::new()),
            pool_targets: ListPool(HashMap::new()),
            pool_ways: ListPool(HashMap::new()),
            pool_checks: ListPool(HashMap::new()),
            pool_texts: ListPool(HashMap::new()),
        }
    }

    /// Adds the encodings of a generation, if they are not those of the one before, and the tree that finds them.
    fn generation(&mut self, root: Root, generation: u32) {
        let Some(row) = self.table.roots.get(root.0 as usize) else { return };
        self.generation = generation;
        let first = self.out.heads.len() as u32;
        let mut leaves = Vec::new();
        for (leaf, scope) in (row.leaves.at..).zip(row.scopes..).take(row.leaves.len as usize) {
            let Some(row) = self.table.leaf_row(Leaf(leaf)) else { continue };
            if !(row.min..=row.max).contains(&generation) {
                continue;
            }
            leaves.push(*row);
            let (program, seen) = self.encoding(scope);
            let (mask, value, ignored) = (row.mask as u64, row.value as u64, row.ignored as u64);
            let text = self.table.mnemonic(Leaf(leaf)).as_bytes();
            let mut name = PackedName::default();
            name.iter_mut().zip(text).for_each(|(to, &byte)| *to = byte);
            let program = if text.len() < name.len() { program } else { ODD_PROGRAM };
            let others = self.out.heads.get(first as usize..).unwrap_or_default();
            let alike = others
                .iter()
                .find(|other| (other.program, other.mask, other.ignored) == (program, mask, ignored));
            self.out.heads.push(ProgramHead {
                mask,
                value,
                ignored,
                unseen: !(mask | seen),
                owner: row.owner,
                program,
                rename: alike.map_or(0, |other| other.value ^ value),
                name,
                name_len: text.len() as u8,
            });
        }
        let (before, new) = self.out.heads.split_at(first as usize);
        if self.last.is_some_and(|last| before.get(last..) == Some(new)) {
            return self.out.heads.truncate(first as usize);
        }
        self.last = Some(first as usize);
        let picks = self.out.picks.len();
        let node = tree::grow(&leaves, row.width, &mut self.out.nodes, &mut self.out.picks);
        self.out.picks.iter_mut().skip(picks).for_each(|pick| *pick += first);
        self.out.trees.push(node);
        self.out.bounds.push(generation);
    }

    /// The program of an encoding, and the bits that its text depends on.
    fn encoding(&mut self, scope: u32) -> (u16, u64) {
        let mut found = TemplateDeps::default();
        found.scope(self.table, scope, 0);
        let codes: Vec<u32> = found.codes.into_iter().collect();
        let known = self.codes.iter().position(|known| *known == codes);
        let index = known.unwrap_or_else(|| {
            self.codes.push(codes);
            self.codes.len() - 1
        });
        let generation = found.generation.then_some(self.generation);
        self.context = ProgramContext { codes: index, generation };
        (self.scope(scope), found.bits)
    }

    /// The program of a scope.
    fn scope(&mut self, scope: u32) -> u16 {
        let key = (scope, self.context);
        if let Some(&known) = self.scopes.get(&key) {
            return known;
        }
        let program = match self.displays(scope) {
            Some(atoms) => self.program(Vec::new(), atoms),
            None => ODD_PROGRAM,
        };
        self.scopes.insert(key, program);
        program
    }

    /// What a scope shows.
    fn displays(&mut self, scope: u32) -> Option<Vec<Atom>> {
        let table = self.table;
        let shows = rows(table.shows, table.scopes.get(scope as usize)?.shows);
        if let Some(&ShowRow { when: NONE, asserts: RowSpan { len: 0, .. }, parts: Some(parts) }) =
            shows.first()
        {
            return self.pieces(parts, scope);
        }
        let ways: Vec<(u32, bool)> = shows.iter().map(|show| (show.when, show.parts.is_some())).collect();
        let atom = self.choose(&ways, &mut |this, holding| {
            let mut checks = Vec::new();
            for &at in holding {
                let show = shows.get(at)?;
                checks.extend(rows(table.asserts, show.asserts).iter().copied().map(WordCheck::Bits));
                if let Some(parts) = show.parts {
                    let atoms = this.pieces(parts, scope)?;
                    return Some(this.program(checks, atoms));
                }
            }
            checks.push(WordCheck::NoDisplay(owner(table, scope)?));
            Some(this.program(checks, Vec::new()))
        })?;
        Some(vec![atom])
    }

    fn pieces(&mut self, parts: RowSpan, scope: u32) -> Option<Vec<Atom>> {
        let mut atoms = Vec::new();
        for piece in rows(self.table.pieces, parts) {
            atoms.extend(self.piece(piece, scope)?);
        }
        Some(atoms)
    }

    fn piece(&mut self, piece: &TemplatePart, scope: u32) -> Option<Vec<Atom>> {
        match *piece {
            TemplatePart::Literal(text) => return Some(vec![Atom::Text(self.table.text(text).to_owned())]),
            TemplatePart::Name => return Some(vec![Atom::Name]),
            TemplatePart::Silent { .. } => return Some(Vec::new()),
            TemplatePart::Align(_) => return None,
            TemplatePart::Flag { .. } | TemplatePart::Plain { .. } | TemplatePart::Field { .. } => {}
        }
        if let Some((bits, texts)) = self.tabulate(piece, scope) {
            if let (0, [text]) = (bits, &texts[..]) {
                return Some(vec![Atom::Text(text.clone()?)]);
            }
            let codes = self.codes.get(self.context.codes)?;
            let deps = self.classes.text_deps(self.table, self.generation, codes, bits, &texts);
            return Some(vec![Atom::Texts(TextsByBits { bits, texts, deps })]);
        }
        match *piece {
            TemplatePart::Plain { field, .. } => self.field(field, scope),
            TemplatePart::Field { name, cands } => {
                let cands = rows(self.table.cands, cands);
                let ways: Vec<(u32, bool)> = cands.iter().map(|cand| (cand.when, true)).collect();
                let atom = self.choose(&ways, &mut |this, holding| {
                    let cand = cands.get(*holding.first()?)?;
                    let atoms = this.piece(&TemplatePart::Plain { name, field: cand.field }, scope)?;
                    Some(this.program(Vec::new(), atoms))
                })?;
                Some(vec![atom])
            }
            _ => None,
        }
    }

    /// The text of a piece for each value of the bits it depends on; `None` when they are many, or a text is long.
    fn tabulate(&mut self, piece: &TemplatePart, scope: u32) -> Option<Tabulated> {
        let key = (*piece, self.context.generation);
        if let Some(known) = self.tables.get(&key) {
            return known.clone();
        }
        let mut found = TemplateDeps::default();
        found.piece(self.table, piece, 0);
        let bits = found.bits;
        let table = self.table;
        let made = table
            .scopes
            .get(scope as usize)
            .filter(|_| bits.count_ones() <= TEXT_BITS && runs(bits).is_some());
        let made = made.and_then(|scope| {
            // Programs tell of all but absent fields.
            let mut checked = false;
            let text = |value| {
                let mut text = Vec::new();
                let word = spread(value, bits).into();
                let faults = table.write_piece(piece, scope, word, self.generation, &mut text);
                checked |= faults.iter().any(|fault| !matches!(fault, DecodeFault::NoField(_)));
                String::from_utf8(text).ok().filter(|_| faults.is_empty())
            };
            let texts: Vec<Option<String>> = (0..1u64 << bits.count_ones()).map(text).collect();
            let fit = texts.iter().flatten().all(|text| text.len() <= MAX_TEXT);
            (fit && !checked).then_some((bits, texts))
        });
        self.tables.insert(key, made.clone());
        made
    }

    /// A field whose text no table holds.
    fn field(&mut self, index: u32, scope: u32) -> Option<Vec<Atom>> {
        let table = self.table;
        let field = table.fields.get(index as usize)?;
        let FieldType::Bitset { root, scopes } = field.ty else {
            if steps(table, field.code).iter().any(|op| matches!(op, ExprOp::Absent { .. })) {
                return None;
            }
            let bits = if field.code == NONE { window(field.low, field.width) } else { 0 };
            let plain = matches!(
                field.ty,
                FieldType::Uint
                    | FieldType::Int
                    | FieldType::Hex
                    | FieldType::Offset
                    | FieldType::Uoffset
                    | FieldType::Branch { .. }
            );
            let codes = self.codes.get(self.context.codes)?;
            let read = codes.iter().any(|&code| reads(table, code) & bits != 0);
            return Some(vec![Atom::Field { field: index, deps: if plain && !read { bits } else { 0 } }]);
        };
        let leaves = rows(table.leaves, table.roots.get(root as usize)?.leaves);
        let bits = leaves.iter().fold(0, |bits, leaf| bits | (leaf.mask as u64) << (field.low & 63));
        if bits.count_ones() > PROGRAM_BITS || runs(bits).is_none() {
            return None;
        }
        let owner = owner(table, scope)?;
        let none = WordCheck::NoForm { owner, field: field.name, low: field.low, width: field.width };
        let mut targets = Vec::new();
        for value in 0..1u64 << bits.count_ones() {
            let word = spread(value, bits).into();
            let target = match table.find(root, scopes, field.low, word, self.generation) {
                None => self.program(vec![none], Vec::new()),
                Some((leaf, inner)) => match table.leaf_row(leaf)? {
                    LeafRow { ignored: 0, .. } if bits == 0 => return self.displays(inner),
                    LeafRow { ignored: 0, .. } => self.scope(inner),
                    row => {
                        let check =
                            WordCheck::Ignored { owner: row.owner, low: field.low, bits: row.ignored as u64 };
                        match self.displays(inner) {
                            Some(atoms) => self.program(vec![check], atoms),
                            None => ODD_PROGRAM,
                        }
                    }
                },
            };
            targets.push(target);
        }
        Some(vec![Atom::Forms { bits, targets }])
    }

    /// Chooses by conditions, each with whether it ends the search. `make` gets those that hold, up to the end.
    fn choose(
        &mut self,
        ways: &[(u32, bool)],
        make: &mut dyn FnMut(&mut Self, &[usize]) -> Option<u16>,
    ) -> Option<Atom> {
        let table = self.table;
        let end = ways.iter().position(|way| *way == (NONE, true)).map_or(ways.len(), |at| at + 1);
        let ways = ways.get(..end)?;
        let bits = ways.iter().fold(0, |bits, way| bits | reads(table, way.0));
        if bits.count_ones() <= PROGRAM_BITS && runs(bits).is_some() {
            let mut made: HashMap<Option<Vec<usize>>, u16> = HashMap::new();
            let mut targets = Vec::new();
            for value in 0..1u64 << bits.count_ones() {
                let holding = holding(table, ways, spread(value, bits), self.generation);
                let target = match made.get(&holding) {
                    Some(&known) => known,
                    None => {
                        let new = holding.as_deref().and_then(|holding| make(self, holding));
                        *made.entry(holding).or_insert(new.unwrap_or(ODD_PROGRAM))
                    }
                };
                targets.push(target);
            }
            return Some(Atom::Forms { bits, targets });
        }
        let mut chosen = Vec::new();
        for (at, &(when, last)) in ways.iter().enumerate() {
            if !last || steps(table, when).iter().any(|op| matches!(op, ExprOp::Absent { .. })) {
                return None;
            }
            chosen.push(ConditionalProgram { when, program: make(self, &[at]).unwrap_or(ODD_PROGRAM) });
        }
        Some(Atom::Ways(chosen))
    }

    /// Lays out a program.
    fn program(&mut self, checks: Vec<WordCheck>, atoms: Vec<Atom>) -> u16 {
        let mut steps = Vec::new();
        let mut before = String::new();
        let mut table: Option<TextsByBits> = None;
        for atom in atoms {
            let atom = match atom {
                Atom::Text(text) => {
                    before.push_str(&text);
                    continue;
                }
                Atom::Texts(next) => match &table {
                    // `before` stands between the two.
                    Some(texts) => match texts.join(&before, &next) {
                        Some(joined) => {
                            table = Some(joined);
                            before.clear();
                            continue;
                        }
                        None => Atom::Texts(next),
                    },
                    None => Atom::Texts(next),
                },
                atom => atom,
            };
            if let Some(texts) = table.take() {
                self.texts(texts, &mut steps);
            }
            self.literal(&mut before, &mut steps);
            let mut step = LineStep { what: StepLookup::Nothing, ..EMPTY };
            match atom {
                Atom::Text(_) => {}
                Atom::Texts(texts) => {
                    table = Some(texts);
                    continue;
                }
                Atom::Name => step.what = StepLookup::Name,
                Atom::Forms { bits, targets } => {
                    step.runs = runs(bits).unwrap_or_default();
                    step.what = StepLookup::Forms(self.pool_targets.add(&mut self.out.targets, targets));
                }
                Atom::Ways(ways) => {
                    let len = ways.len() as u32;
                    step.what = StepLookup::Ways { at: self.pool_ways.add(&mut self.out.ways, ways), len };
                }
                Atom::Field { field, deps } => {
                    step.what = StepLookup::Field(field);
                    step.deps = deps;
                }
            }
            put(step, &mut steps);
        }
        if let Some(texts) = table.take() {
            self.texts(texts, &mut steps);
        }
        self.literal(&mut before, &mut steps);
        let len = steps.len() as u32;
        let at = self.pool_steps.add(&mut self.out.steps, steps);
        let steps = RowSpan { at, len };
        let (mut mask, mut value) = (0, 0);
        for check in &checks {
            match *check {
                WordCheck::Ignored { low, bits, .. } => mask |= bits << (low & 63),
                WordCheck::Bits(assert) => {
                    mask |= window(assert.at, assert.high - assert.low + 1);
                    value |= (assert.value as u64) << (assert.at & 63);
                }
                // No word is sound.
                WordCheck::NoForm { .. } | WordCheck::NoDisplay(_) => value = u64::MAX,
            }
        }
        let len = checks.len() as u32;
        let checks = RowSpan { at: self.pool_checks.add(&mut self.out.checks, checks), len };
        let program = LineProgram { mask, value, checks, steps };
        if let Some(&known) = self.programs.get(&program) {
            return known;
        }
        let Some(new) = u16::try_from(self.out.programs.len()).ok().filter(|&new| new != ODD_PROGRAM) else {
            return ODD_PROGRAM;
        };
        self.out.programs.push(program);
        self.programs.insert(program, new);
        new
    }

    /// Steps for a text that is always there; the next step may come with the last of them.
    fn literal(&mut self, before: &mut String, steps: &mut Vec<LineStep>) {
        for text in before.as_bytes().chunks(MAX_TEXT) {
            steps.push(LineStep { before: entry(text, 0), ..EMPTY });
        }
        before.clear();
    }

    fn texts(&mut self, texts: TextsByBits, steps: &mut Vec<LineStep>) {
        let entries = texts.texts.iter().zip(&texts.deps.special).map(|(text, &special)| match text {
            Some(text) => entry(text.as_bytes(), if special { SPECIAL } else { 0 }),
            None => entry(b"", ODD),
        });
        let first = self.pool_texts.add(&mut self.out.texts, entries.collect());
        let runs = runs(texts.bits).unwrap_or_default();
        put(
            LineStep {
                runs,
                deps: texts.deps.bits,
                typical: texts.deps.typical,
                what: if runs[1].1 == 0 { StepLookup::Run(first) } else { StepLookup::Runs(first) },
                ..EMPTY
            },
            steps,
        );
    }
}

const EMPTY: LineStep = LineStep {
    before: [0; MAX_TEXT + 1],
    runs: [(0, 0, 0); MAX_RUNS],
    deps: 0,
    typical: 0,
    what: StepLookup::Nothing,
};

/// Adds a step, together with the text before it if that is the last step.
fn put(step: LineStep, steps: &mut Vec<LineStep>) {
    match steps.last_mut() {
        Some(last) if last.what == StepLookup::Nothing => *last = LineStep { before: last.before, ..step },
        _ => steps.push(step),
    }
}

/// A text of at most [`MAX_TEXT`] bytes, with marks.
fn entry(text: &[u8], marks: u8) -> PackedText {
    let mut entry = [0; MAX_TEXT + 1];
    entry.iter_mut().zip(text).for_each(|(to, &byte)| *to = byte);
    entry[MAX_TEXT] = text.len() as u8 | marks;
    entry
}

/// What problems with a scope's encoding call it.
fn owner(table: &IsaTable<'_>, scope: u32) -> Option<TextId> {
    Some(table.leaf_row(Leaf(table.scopes.get(scope as usize)?.leaf))?.owner)
}

/// Which conditions hold for a word, up to the first that ends the search; `None` when one names an absent field.
fn holding(table: &IsaTable<'_>, ways: &[(u32, bool)], word: u64, generation: u32) -> Option<Vec<usize>> {
    let mut holding = Vec::new();
    for (at, &(when, last)) in ways.iter().enumerate() {
        let mut absent = false;
        let holds = table.holds(when, word.into(), generation, &mut |_, _, _| {
            absent = true;
            0
        });
        if absent {
            return None;
        }
        if holds {
            holding.push(at);
            if last {
                break;
            }
        }
    }
    Some(holding)
}
