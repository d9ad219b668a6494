//! A decoded word: its fields by name, and its display as parts.

use super::print::write_part;
use super::rows::*;
use super::types::{FieldKind, IsaTable, Leaf, bits, rows};

/// A word whose encoding is known.
#[derive(Clone, Copy, Debug)]
pub struct DecodedWord<'t> {
    pub(crate) table: &'t IsaTable<'t>,
    pub(crate) leaf: Leaf,
    pub(crate) scope: u32,
    /// Lowest bit of a nested bitset in the word.
    pub(crate) base: u8,
    pub(crate) word: u128,
    pub(crate) generation: u32,
}

/// One piece of a display, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayPart<'t> {
    /// Text of the template.
    Text(&'t str),
    /// The mnemonic stands here.
    Name(&'t str),
    /// A field's value stands here.
    Field {
        /// The field's name in the template that shows it.
        name: &'t str,
        /// Its bits, or the value of its expression, not sign-extended.
        value: u64,
        /// Bits of the field.
        width: u32,
        /// How it is shown.
        kind: FieldKind<'t>,
    },
    /// The display of a field that is itself a bitset begins.
    Enter {
        /// The field's name.
        name: &'t str,
        /// Its bits.
        value: u64,
        /// The form they have; absent when no pattern matches.
        leaf: Option<Leaf>,
    },
    /// It ends.
    Leave,
    /// Spaces up to this column.
    Align(u32),
    /// The template names a field that this word does not have.
    Missing(&'t str),
}

/// Something odd about a word that decodes all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeFault<'t> {
    /// Bits are set that mean nothing.
    Ignored {
        /// The encoding.
        owner: &'t str,
        /// The bits, in place.
        bits: u128,
    },
    /// Bits are not what the encoding asserts.
    Unexpected {
        /// The bitset that asserts.
        owner: &'t str,
        /// Highest bit, in the bitset.
        high: u8,
        /// Lowest one.
        low: u8,
        /// What the bits are.
        found: u128,
        /// What they should be.
        expected: u128,
    },
    /// An operand has no form that matches.
    NoForm {
        /// The bitset that contains it.
        owner: &'t str,
        /// Its field.
        field: &'t str,
        /// Its bits.
        bits: u128,
    },
    /// An expression or a template names a field that is not there.
    NoField(&'t str),
    /// The encoding has no template.
    NoDisplay(&'t str),
    /// The word matches two encodings, and so is neither.
    Conflict {
        /// The first of them in the description.
        first: &'t str,
        /// The next.
        second: &'t str,
    },
}

const MAX_FAULTS: usize = 4;

/// The first few faults of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeFaults<'t> {
    list: [Option<DecodeFault<'t>>; MAX_FAULTS],
}

impl<'t> DecodeFaults<'t> {
    /// Whether the word is sound.
    pub fn is_empty(&self) -> bool {
        self.list[0].is_none()
    }

    /// In order of appearance.
    pub fn iter(&self) -> impl Iterator<Item = DecodeFault<'t>> {
        self.list.iter().flatten().copied()
    }

    /// Without bits that mean nothing.
    pub fn without_ignored(&self) -> DecodeFaults<'t> {
        let mut rest = DecodeFaults::default();
        rest.extend(self.iter().filter(|fault| !matches!(fault, DecodeFault::Ignored { .. })));
        rest
    }

    /// Adds some; what comes after the fourth is dropped.
    pub(crate) fn extend(&mut self, faults: impl IntoIterator<Item = DecodeFault<'t>>) {
        faults.into_iter().for_each(|fault| self.push(fault));
    }

    /// Adds one; what comes after the fourth is dropped.
    #[cold]
    pub fn push(&mut self, fault: DecodeFault<'t>) {
        if let Some(free) = self.list.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(fault);
        }
    }
}

impl<'t> DecodedWord<'t> {
    /// The encoding.
    pub fn leaf(&self) -> Leaf {
        self.leaf
    }

    /// Its name in the description.
    pub fn name(&self) -> &'t str {
        self.table.name(self.leaf)
    }

    /// The whole word, also of a nested bitset.
    pub fn word(&self) -> u128 {
        self.word
    }

    /// The table it was decoded with.
    pub fn table(&self) -> &'t IsaTable<'t> {
        self.table
    }

    fn lookup(&self, name: &str) -> Option<&'t FieldRow> {
        let table = self.table;
        let names = rows(table.names, table.scopes.get(self.scope as usize)?.names);
        let at = names.binary_search_by(|row| table.text(row.name).cmp(name)).ok()?;
        let cands = rows(table.cands, names.get(at)?.cands);
        let cand =
            cands.iter().find(|cand| table.holds(cand.when, self.word, self.generation, &mut |_, _, _| 0))?;
        table.fields.get(cand.field as usize)
    }

    /// The value of a field of this word, derived or not, not sign-extended; overrides apply.
    pub fn field(&self, name: &str) -> Option<u64> {
        let field = self.lookup(name)?;
        Some(self.table.value(field, self.word, self.generation, &mut |_, _, _| 0))
    }

    /// A field that is itself a bitset, decoded.
    pub fn nested(&self, name: &str) -> Option<DecodedWord<'t>> {
        let field = self.lookup(name)?;
        let FieldType::Bitset { root, scopes } = field.ty else { return None };
        let (leaf, scope) = self.table.find(root, scopes, field.low, self.word, self.generation)?;
        Some(DecodedWord { leaf, scope, base: field.low, ..*self })
    }

    /// The fields that count in this word: name, lowest bit, bits; lowest bit and bits are absent for derived ones.
    pub fn fields(&self) -> impl Iterator<Item = (&'t str, Option<(u32, u32)>)> {
        let table = self.table;
        let names = table.scopes.get(self.scope as usize).map_or(RowSpan { at: 0, len: 0 }, |s| s.names);
        let this = *self;
        rows(table.names, names).iter().filter_map(move |row| {
            let name = table.text(row.name);
            let field = this.lookup(name)?;
            let place = (field.code == NONE).then(|| (u32::from(field.low), u32::from(field.width)));
            Some((name, place))
        })
    }

    /// Calls `sink` with each part of the display in order, nested bitsets between `Enter` and `Leave`.
    #[inline]
    pub fn walk(&self, sink: &mut impl FnMut(DisplayPart<'t>)) -> DecodeFaults<'t> {
        self.visit::<false>(sink)
    }

    /// The same; when `TEXT_ONLY`, fields that show nothing are left out, and a nested bitset may come as its text.
    #[inline]
    pub(crate) fn visit<const TEXT_ONLY: bool>(
        &self,
        sink: &mut impl FnMut(DisplayPart<'t>),
    ) -> DecodeFaults<'t> {
        let mut walker = Walker::<TEXT_ONLY, _> {
            table: self.table,
            word: self.word,
            generation: self.generation,
            sink,
            faults: DecodeFaults::default(),
            reported: [None; MAX_FAULTS],
            visits: 0,
            open: [0; MAX_OPEN],
        };
        if let Some(row) = self.table.leaf_row(self.leaf) {
            walker.ignored(row, self.base);
        }
        walker.scope(self.scope, 0);
        walker.faults
    }
}

/// Deepest nesting the compiler allows, and one more.
const MAX_OPEN: usize = 16;

struct Walker<'t, 's, const TEXT_ONLY: bool, S> {
    table: &'t IsaTable<'t>,
    word: u128,
    generation: u32,
    sink: &'s mut S,
    faults: DecodeFaults<'t>,
    /// Which expressions reported an absent field, by visit of a scope.
    reported: [Option<(u32, u16)>; MAX_FAULTS],
    visits: u32,
    /// The visits that are open, by depth.
    open: [u32; MAX_OPEN],
}

impl<'t, const TEXT_ONLY: bool, S: FnMut(DisplayPart<'t>)> Walker<'t, '_, TEXT_ONLY, S> {
    #[inline]
    fn ignored(&mut self, row: &LeafRow, base: u8) {
        let bits = self.word >> (base & 127) & row.ignored;
        if bits != 0 {
            self.faults.push(DecodeFault::Ignored { owner: self.table.text(row.owner), bits });
        }
    }

    #[inline]
    fn evaluate(&mut self, code: u32, depth: usize) -> u64 {
        let Walker { table, word, generation, faults, reported, open, .. } = self;
        table.evaluate(code, *word, *generation, &mut |name, expr, up| {
            let visit = open[depth.saturating_sub(usize::from(up)) % MAX_OPEN];
            if !reported.contains(&Some((visit, expr)))
                && let Some(free) = reported.iter_mut().find(|slot| slot.is_none())
            {
                *free = Some((visit, expr));
                faults.push(DecodeFault::NoField(table.text(name)));
            }
            0
        })
    }

    #[inline]
    fn holds(&mut self, when: u32, depth: usize) -> bool {
        when == NONE || self.evaluate(when, depth) != 0
    }

    fn scope(&mut self, scope: u32, depth: usize) {
        let table = self.table;
        let Some(scope) = table.scopes.get(scope as usize) else { return };
        self.visits += 1;
        self.open[depth % MAX_OPEN] = self.visits;
        for show in rows(table.shows, scope.shows) {
            if !self.holds(show.when, depth) {
                continue;
            }
            for assert in rows(table.asserts, show.asserts) {
                self.faults.extend(assert.fault(table, self.word));
            }
            if let Some(parts) = show.parts {
                let mut pieces = rows(table.pieces, parts).iter();
                while let Some(piece) = pieces.next() {
                    match *piece {
                        TemplatePart::Silent { mask, count } => {
                            if TEXT_ONLY && self.word as u64 & mask == 0 {
                                pieces.nth(count as usize - 1);
                            }
                        }
                        TemplatePart::Flag { name, low, text } => self.flag(name, low, text),
                        _ => self.piece(piece, scope, depth),
                    }
                }
                return;
            }
        }
        if let Some(row) = table.leaf_row(Leaf(scope.leaf)) {
            self.faults.push(DecodeFault::NoDisplay(table.text(row.owner)));
        }
    }

    #[inline]
    fn flag(&mut self, name: TextId, low: u8, text: TextId) {
        let value = bits(self.word, low, 1);
        if TEXT_ONLY {
            if value != 0 {
                (self.sink)(DisplayPart::Text(self.table.text(text)));
            }
            return;
        }
        let kind = FieldKind::Bool(Some(self.table.text(text)));
        (self.sink)(DisplayPart::Field { name: self.table.text(name), value, width: 1, kind });
    }

    #[inline]
    fn piece(&mut self, piece: &TemplatePart, scope: &Scope, depth: usize) {
        let table = self.table;
        match *piece {
            TemplatePart::Literal(text) => (self.sink)(DisplayPart::Text(table.text(text))),
            TemplatePart::Name => (self.sink)(DisplayPart::Name(table.mnemonic(Leaf(scope.leaf)))),
            TemplatePart::Align(column) => (self.sink)(DisplayPart::Align(column)),
            TemplatePart::Silent { .. } => {}
            TemplatePart::Flag { name, low, text } => self.flag(name, low, text),
            TemplatePart::Plain { name, field } => {
                if let Some(field) = table.fields.get(field as usize) {
                    self.field(name, field, scope, depth);
                }
            }
            TemplatePart::Field { name, cands } => {
                for cand in rows(table.cands, cands) {
                    if self.holds(cand.when, depth) {
                        if let Some(field) = table.fields.get(cand.field as usize) {
                            self.field(name, field, scope, depth);
                        }
                        return;
                    }
                }
                let name = table.text(name);
                self.faults.push(DecodeFault::NoField(name));
                (self.sink)(DisplayPart::Missing(name));
            }
        }
    }

    #[inline]
    fn field(&mut self, name: TextId, field: &FieldRow, scope: &Scope, depth: usize) {
        let table = self.table;
        let name = table.text(name);
        let value = match field.code {
            NONE => bits(self.word, field.low, field.width),
            code => self.evaluate(code, depth),
        };
        let FieldType::Bitset { root, scopes } = field.ty else {
            if let Some(kind) = table.kind(field.ty, value) {
                (self.sink)(DisplayPart::Field { name, value, width: u32::from(field.width), kind });
            }
            return;
        };
        if TEXT_ONLY {
            let rendered = table.roots.get(root as usize).map(|root| rows(table.renders, root.rendered));
            if let Some(text) = rendered.and_then(|texts| texts.get(value as usize)) {
                return (self.sink)(DisplayPart::Text(table.text(*text)));
            }
        }
        let found = table.find(root, scopes, field.low, self.word, self.generation);
        (self.sink)(DisplayPart::Enter { name, value, leaf: found.map(|f| f.0) });
        match found {
            Some((leaf, inner)) if depth + 1 < MAX_OPEN => {
                if let Some(row) = table.leaf_row(leaf) {
                    self.ignored(row, field.low);
                }
                self.scope(inner, depth + 1);
            }
            _ => {
                let owner = table.leaf_row(Leaf(scope.leaf)).map_or("", |row| table.text(row.owner));
                let bits = u128::from(value);
                self.faults.push(DecodeFault::NoForm { owner, field: table.text(field.name), bits });
            }
        }
        (self.sink)(DisplayPart::Leave);
    }
}

impl Assert {
    /// What is wrong about a word, if its bits are not as they should be.
    #[inline]
    pub(crate) fn fault<'t>(&self, table: &IsaTable<'t>, word: u128) -> Option<DecodeFault<'t>> {
        let found = u128::from(bits(word, self.at, self.high - self.low + 1));
        (found != self.value).then(|| DecodeFault::Unexpected {
            owner: table.text(self.owner),
            high: self.high,
            low: self.low,
            found,
            expected: self.value,
        })
    }
}

impl<'t> IsaTable<'t> {
    /// How a value of a type is shown; `None` for a nested bitset.
    #[inline]
    pub(crate) fn kind(&self, ty: FieldType, value: u64) -> Option<FieldKind<'t>> {
        Some(match ty {
            FieldType::Uint => FieldKind::Uint,
            FieldType::Int => FieldKind::Int,
            FieldType::Hex => FieldKind::Hex,
            FieldType::Offset => FieldKind::Offset,
            FieldType::Uoffset => FieldKind::Uoffset,
            FieldType::Float => FieldKind::Float,
            FieldType::Bool(text) => FieldKind::Bool(text.map(|t| self.text(t))),
            FieldType::BoolInv(text) => FieldKind::BoolInv(text.map(|t| self.text(t))),
            FieldType::Enum(index) => FieldKind::Enum { text: self.enum_text(index, value) },
            FieldType::Branch { call } => FieldKind::Branch { call },
            FieldType::AbsBranch { call } => FieldKind::AbsBranch { call },
            FieldType::Custom => FieldKind::Custom,
            FieldType::Bitset { .. } => return None,
        })
    }

    /// Appends the text of a piece of a template, as the printing of whole words does.
    pub(crate) fn write_piece(
        &self,
        piece: &TemplatePart,
        scope: &Scope,
        word: u128,
        generation: u32,
        out: &mut Vec<u8>,
    ) -> DecodeFaults<'_> {
        let start = out.len();
        let mut walker = Walker::<true, _> {
            table: self,
            word,
            generation,
            sink: &mut |part| write_part(&part, start, out),
            faults: DecodeFaults::default(),
            reported: [None; MAX_FAULTS],
            visits: 0,
            open: [0; MAX_OPEN],
        };
        walker.piece(piece, scope, 0);
        walker.faults
    }
}
