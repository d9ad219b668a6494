//! Flattens a description into rows: inheritance, overrides, derived fields and nested bitsets are resolved for each
//! encoding at each place it can stand, so that a reader only looks at bits of the word.
//!
//! The rules are those of Mesa's isaspec: a name is looked up in the overrides whose condition holds, in order, then in
//! the part without condition, then in what the bitset extends, then among the values handed in. While a condition is
//! computed, the fields of its own override count. Equal rows are stored once.
//!
//! Never: decoding.

use super::expr::{self, Binary, Expr};
use super::model::{Bitset, BitsetCase, CaseRow, Isa, IsaField, IsaItem};
use super::rows::*;
use super::{tree, types};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use thiserror::Error;

/// Why a description does not make a table.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CompileError {
    /// An expression does not parse.
    #[error("{owner}: {error}")]
    Expr {
        /// Where it stands.
        owner: String,
        /// What is wrong.
        error: expr::ExprError,
    },
    /// A name is not defined.
    #[error("{owner}: there is no {name}")]
    Unknown {
        /// Where it is used.
        owner: String,
        /// The name.
        name: String,
    },
    /// Bitsets contain or extend each other without end, or an expression nests too deep.
    #[error("{owner} nests too deep")]
    Depth {
        /// Where.
        owner: String,
    },
    /// Bits beyond the word, or a root without size.
    #[error("{owner}: bits beyond its size")]
    Size {
        /// Where.
        owner: String,
    },
}

type Result<T> = std::result::Result<T, CompileError>;

const MAX_DEPTH: usize = 12;

/// The rows of a table, owned.
#[derive(Clone, Debug, Default)]
pub struct TableRows {
    pub texts: Vec<String>,
    pub roots: Vec<RootRow>,
    pub nodes: Vec<DecodeNode>,
    pub picks: Vec<u32>,
    pub leaves: Vec<LeafRow>,
    pub scopes: Vec<Scope>,
    pub shows: Vec<ShowRow>,
    pub asserts: Vec<Assert>,
    pub pieces: Vec<TemplatePart>,
    pub cands: Vec<FieldCandidate>,
    pub fields: Vec<FieldRow>,
    pub names: Vec<NameRow>,
    pub enums: Vec<EnumRow>,
    pub values: Vec<ValueRow>,
    pub code: Vec<ExprOp>,
    pub renders: Vec<TextId>,
    pub tabulations: Vec<Tabulation>,
    pub truths: Vec<u64>,
}

/// Compiles a description.
pub fn compile(isa: &Isa) -> Result<TableRows> {
    let mut compiler = TableCompiler::new(isa)?;
    compiler.enums();
    compiler.roots()?;
    for root in 0..compiler.rows.roots.len() {
        compiler.alone(root)?;
    }
    Ok(compiler.rows)
}

/// Rows that are stored once, by content.
struct RowPool<T> {
    at: HashMap<Vec<T>, u32>,
}

impl<T: Clone + Eq + Hash> RowPool<T> {
    fn new() -> RowPool<T> {
        RowPool { at: HashMap::new() }
    }

    fn add(&mut self, rows: &mut Vec<T>, new: Vec<T>) -> RowSpan {
        let len = new.len() as u32;
        let at = *self.at.entry(new).or_insert_with_key(|new| {
            rows.extend(new.iter().cloned());
            rows.len() as u32 - len
        });
        RowSpan { at, len }
    }
}

/// Index of an expression; equal sources in different places are different conditions.
type ExprId = usize;

struct CasePart<'m> {
    when: Option<ExprId>,
    case: &'m BitsetCase,
    /// Of the derived rows, by row.
    derived: HashMap<usize, ExprId>,
}

/// A bitset and what it needs to be resolved.
struct Prepared<'m> {
    bitset: &'m Bitset,
    parent: Option<usize>,
    root: usize,
    parts: Vec<CasePart<'m>>,
    leaf: bool,
}

/// Where an encoding stands.
struct EncodingSite<'p> {
    bitset: usize,
    /// Its lowest bit in the word.
    base: u32,
    params: &'p [(String, String)],
    outer: Option<&'p EncodingSite<'p>>,
    depth: usize,
}

/// A field that a name may mean.
struct FieldMeaning<'p, 'm> {
    when: Option<ExprId>,
    place: &'p EncodingSite<'p>,
    owner: usize,
    row: &'m CaseRow,
    derived: Option<ExprId>,
}

struct TableCompiler<'m> {
    isa: &'m Isa,
    rows: TableRows,
    exprs: Vec<Expr>,
    bitsets: Vec<Prepared<'m>>,
    /// Bitset index of each root, and of its leaves.
    families: Vec<(usize, Vec<usize>)>,
    enums: HashMap<&'m str, u32>,
    texts: HashMap<String, TextId>,
    pool_code: RowPool<ExprOp>,
    pool_cands: RowPool<FieldCandidate>,
    pool_fields: RowPool<FieldRow>,
    pool_pieces: RowPool<TemplatePart>,
    pool_asserts: RowPool<Assert>,
    pool_shows: RowPool<ShowRow>,
    pool_names: RowPool<NameRow>,
    pool_scopes: RowPool<Scope>,
    pool_tabulations: RowPool<Tabulation>,
    pool_truths: RowPool<u64>,
}

impl<'m> TableCompiler<'m> {
    fn new(isa: &'m Isa) -> Result<TableCompiler<'m>> {
        let mut exprs = Vec::new();
        let mut named = HashMap::new();
        for item in &isa.items {
            if let IsaItem::Expr { name, source } = item {
                named.insert(name.as_str(), exprs.len());
                exprs.push(parse(name, source)?);
            }
        }
        let all: Vec<&Bitset> = isa
            .items
            .iter()
            .filter_map(|item| if let IsaItem::Bitset(b) = item { Some(b) } else { None })
            .collect();
        let mut by_name = HashMap::new();
        for (index, bitset) in all.iter().enumerate() {
            by_name.entry(bitset.name.as_str()).or_insert(index);
        }
        let mut bitsets: Vec<Prepared<'m>> = Vec::new();
        for bitset in &all {
            let parent = match &bitset.parent {
                Some(name) => Some(*by_name.get(name.as_str()).ok_or_else(|| unknown(bitset, name))?),
                None => None,
            };
            let mut parts = Vec::new();
            for case in &bitset.cases {
                let mut part = CasePart { when: None, case, derived: HashMap::new() };
                if let Some(source) = &case.when {
                    part.when = Some(reference(bitset, source, &named, &mut exprs)?);
                }
                for (index, row) in case.rows.iter().enumerate() {
                    if let CaseRow::Derived { source, .. } = row {
                        part.derived.insert(index, reference(bitset, source, &named, &mut exprs)?);
                    }
                }
                parts.push(part);
            }
            bitsets.push(Prepared { bitset, parent, root: 0, parts, leaf: true });
        }
        for index in 0..bitsets.len() {
            let mut root = index;
            for _ in 0..MAX_DEPTH {
                let Some(parent) = bitsets[root].parent else { break };
                bitsets[parent].leaf = false;
                root = parent;
            }
            if bitsets[root].parent.is_some() {
                return Err(CompileError::Depth { owner: bitsets[index].bitset.name.clone() });
            }
            bitsets[index].root = root;
        }
        let families = (0..bitsets.len())
            .filter(|&root| bitsets[root].parent.is_none())
            .map(|root| {
                (root, (0..bitsets.len()).filter(|&b| bitsets[b].leaf && bitsets[b].root == root).collect())
            })
            .collect();
        Ok(TableCompiler {
            isa,
            rows: TableRows::default(),
            exprs,
            bitsets,
            families,
            enums: HashMap::new(),
            texts: HashMap::new(),
            pool_code: RowPool::new(),
            pool_cands: RowPool::new(),
            pool_fields: RowPool::new(),
            pool_pieces: RowPool::new(),
            pool_asserts: RowPool::new(),
            pool_shows: RowPool::new(),
            pool_names: RowPool::new(),
            pool_scopes: RowPool::new(),
            pool_tabulations: RowPool::new(),
            pool_truths: RowPool::new(),
        })
    }

    fn text(&mut self, text: &str) -> TextId {
        if let Some(text) = self.texts.get(text) {
            return *text;
        }
        let new = TextId(self.rows.texts.len() as u32);
        self.rows.texts.push(text.to_owned());
        self.texts.insert(text.to_owned(), new);
        new
    }

    /// What problems call a bitset: Mesa marks what is no instruction with `#`.
    fn owner(&mut self, index: usize) -> TextId {
        let bitset = self.bitsets[index].bitset;
        let instruction = self.bitsets[self.bitsets[index].root].bitset.name == "instruction";
        let name = if instruction && self.bitsets[index].leaf {
            bitset.title.as_ref().unwrap_or(&bitset.name).clone()
        } else {
            format!("#{}", bitset.name.strip_suffix("-form").unwrap_or(&bitset.name))
        };
        self.text(&name)
    }

    fn enums(&mut self) {
        for item in &self.isa.items {
            let IsaItem::Enum(e) = item else { continue };
            let at = self.rows.values.len() as u32;
            for (value, text) in &e.values {
                let text = self.text(text);
                self.rows.values.push(ValueRow { value: *value, text });
            }
            self.enums.insert(&e.name, self.rows.enums.len() as u32);
            let name = self.text(&e.name);
            self.rows.enums.push(EnumRow { name, values: RowSpan { at, len: e.values.len() as u32 } });
        }
    }

    /// Roots, leaves and decode trees.
    fn roots(&mut self) -> Result<()> {
        for (index, (root, leaves)) in self.families.clone().into_iter().enumerate() {
            let bitset = self.bitsets[root].bitset;
            let width = bitset.size.filter(|s| (1..=128).contains(s));
            let width = width.ok_or_else(|| CompileError::Size { owner: bitset.name.clone() })?;
            let at = self.rows.leaves.len() as u32;
            for &leaf in &leaves {
                let row = self.leaf(leaf, index as u32, width)?;
                self.rows.leaves.push(row);
            }
            let node = tree::grow(
                self.rows.leaves.get(at as usize..).unwrap_or_default(),
                width,
                &mut self.rows.nodes,
                &mut self.rows.picks,
            );
            let name = self.text(&bitset.name);
            let leaves = RowSpan { at, len: leaves.len() as u32 };
            self.rows.roots.push(RootRow {
                name,
                width,
                node,
                leaves,
                scopes: 0,
                rendered: RowSpan { at: 0, len: 0 },
            });
        }
        Ok(())
    }

    fn chain(&self, bitset: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(bitset), |&b| self.bitsets[b].parent)
    }

    fn leaf(&mut self, index: usize, root: u32, width: u32) -> Result<LeafRow> {
        let (mut mask, mut value, mut ignored) = (0, 0, 0);
        let (mut min, mut max) = (None, None);
        for b in self.chain(index) {
            let bitset = self.bitsets[b].bitset;
            min = min.or(bitset.min);
            max = max.or(bitset.max);
            for row in bitset.cases.iter().filter(|c| c.when.is_none()).flat_map(|c| &c.rows) {
                let (low, high) = match row {
                    CaseRow::Bits { low, high, .. }
                    | CaseRow::Assert { low, high, .. }
                    | CaseRow::Field { low, high, .. } => (*low, *high),
                    CaseRow::Derived { .. } => continue,
                };
                if high >= width {
                    return Err(CompileError::Size { owner: bitset.name.clone() });
                }
                if let CaseRow::Bits { pattern, .. } = row {
                    for (bit, digit) in (low..=high).zip(pattern.bytes().rev()) {
                        let bit = 1u128 << bit;
                        match digit {
                            b'x' => ignored |= bit,
                            _ => mask |= bit,
                        }
                        if digit == b'1' {
                            value |= bit;
                        }
                    }
                }
            }
        }
        let bitset = self.bitsets[index].bitset;
        Ok(LeafRow {
            name: self.text(&bitset.name),
            title: self.text(bitset.title.as_ref().unwrap_or(&bitset.name)),
            owner: self.owner(index),
            root,
            mask: mask & !ignored,
            value,
            ignored,
            min: min.unwrap_or(0),
            max: max.unwrap_or(u32::MAX),
        })
    }

    fn alone(&mut self, root: usize) -> Result<()> {
        let scopes = self.scopes(root, 0, &[], None)?;
        self.rows.roots[root].scopes = scopes;
        Ok(())
    }

    /// The scopes of all leaves of a root at one place.
    fn scopes(
        &mut self,
        root: usize,
        base: u32,
        params: &[(String, String)],
        outer: Option<&EncodingSite<'_>>,
    ) -> Result<u32> {
        let depth = outer.map_or(0, |p| p.depth + 1);
        let first = self.rows.roots[root].leaves.at;
        let leaves = self.families[root].1.clone();
        let mut scopes = Vec::new();
        for (leaf, bitset) in (first..).zip(leaves) {
            if depth > MAX_DEPTH {
                return Err(CompileError::Depth { owner: self.bitsets[bitset].bitset.name.clone() });
            }
            let place = EncodingSite { bitset, base, params, outer, depth };
            scopes.push(self.scope(leaf, &place)?);
        }
        Ok(self.pool_scopes.add(&mut self.rows.scopes, scopes).at)
    }

    fn scope(&mut self, leaf: u32, place: &EncodingSite<'_>) -> Result<Scope> {
        let mut shows = Vec::new();
        let mut names = BTreeMap::new();
        // Conditions that do not hold where a later template is shown.
        let mut refuted = Vec::new();
        for owner in self.chain(place.bitset).collect::<Vec<_>>() {
            for index in 0..self.bitsets[owner].parts.len() {
                let part = &self.bitsets[owner].parts[index];
                let (when, case) = (part.when, part.case);
                for row in &case.rows {
                    if let CaseRow::Field { field, .. } | CaseRow::Derived { field, .. } = row {
                        names.insert(field.name.as_str(), ());
                    }
                }
                let mut asserts = Vec::new();
                for row in &case.rows {
                    if let CaseRow::Assert { low, high, pattern } = row {
                        let at = bit(place.base + low, &case_owner(self.bitsets[owner].bitset))?;
                        asserts.push(Assert {
                            owner: self.owner(owner),
                            low: *low as u8,
                            high: *high as u8,
                            at,
                            value: pattern.bytes().fold(0, |value, b| value << 1 | u128::from(b == b'1')),
                        });
                    }
                }
                if case.show.is_none() && asserts.is_empty() {
                    continue;
                }
                let when = self.condition(place, when)?;
                let asserts = self.pool_asserts.add(&mut self.rows.asserts, asserts);
                let parts = match &case.show {
                    Some(template) => Some(self.template(template, place, &refuted, when)?),
                    None => None,
                };
                shows.push(ShowRow { when, asserts, parts });
                if parts.is_some() {
                    refuted.push(when);
                }
            }
        }
        let shows = self.pool_shows.add(&mut self.rows.shows, shows);
        let mut rows = Vec::new();
        for name in names.into_keys() {
            let cands = self.cands(place, name, &[], NONE)?;
            rows.push(NameRow { name: self.text(name), cands });
        }
        let names = self.pool_names.add(&mut self.rows.names, rows);
        Ok(Scope { leaf, shows, names })
    }

    /// The pieces of a template that is shown when `when` holds and none of `refuted` does.
    fn template(
        &mut self,
        template: &str,
        place: &EncodingSite<'_>,
        refuted: &[u32],
        when: u32,
    ) -> Result<RowSpan> {
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((literal, field)) = rest.split_once('{') {
            if !literal.is_empty() {
                pieces.push(TemplatePart::Literal(self.text(literal)));
            }
            let (field, after) = field.split_once('}').unwrap_or((field, ""));
            let (name, align) = field.split_once(":align=").unwrap_or((field, ""));
            if let Ok(column) = align.parse() {
                pieces.push(TemplatePart::Align(column));
            }
            match name {
                "" => {}
                "NAME" => pieces.push(TemplatePart::Name),
                _ => {
                    let cands = self.cands(place, name, refuted, when)?;
                    pieces.push(TemplatePart::Field { name: self.text(name), cands });
                }
            }
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(TemplatePart::Literal(self.text(rest)));
        }
        let pieces = self.gather(pieces);
        Ok(self.pool_pieces.add(&mut self.rows.pieces, pieces))
    }

    /// Shortens the way to fields that count always, and past runs of those that show nothing when their bits are 0.
    fn gather(&self, pieces: Vec<TemplatePart>) -> Vec<TemplatePart> {
        let mut out: Vec<TemplatePart> = Vec::new();
        // Where the run starts, and its bits.
        let mut run: Option<(usize, u64)> = None;
        for piece in pieces {
            let (piece, silent) = self.shorten(piece);
            if let (Some(mask), Some((_, bits))) = (silent, &mut run) {
                *bits |= mask;
            } else if let Some(mask) = silent {
                run = Some((out.len(), mask));
            } else {
                close_run(&mut out, run.take());
            }
            out.push(piece);
        }
        close_run(&mut out, run);
        out
    }

    /// The piece, and the bits that are 0 when it shows nothing, if there are any.
    fn shorten(&self, piece: TemplatePart) -> (TemplatePart, Option<u64>) {
        let TemplatePart::Field { name, cands } = piece else { return (piece, None) };
        let (1, Some(&FieldCandidate { when: NONE, field })) =
            (cands.len, self.rows.cands.get(cands.at as usize))
        else {
            return (piece, None);
        };
        let plain = TemplatePart::Plain { name, field };
        let Some(row) = self.rows.fields.get(field as usize).filter(|row| row.code == NONE) else {
            return (plain, None);
        };
        let silent = match row.ty {
            FieldType::Bool(Some(_)) | FieldType::Offset | FieldType::Uoffset => true,
            FieldType::Enum(index) => self.rows.enums.get(index as usize).is_some_and(|e| {
                let zero =
                    self.rows.values.get(e.values.at as usize).filter(|v| e.values.len > 0 && v.value == 0);
                zero.is_some_and(|v| self.rows.texts.get(v.text.0 as usize).is_some_and(String::is_empty))
            }),
            _ => false,
        };
        let mask = (silent && row.low + row.width < 64).then(|| ((1 << row.width) - 1) << row.low);
        match row.ty {
            FieldType::Bool(Some(text)) if row.width == 1 => {
                (TemplatePart::Flag { name, low: row.low, text }, mask)
            }
            _ => (plain, mask),
        }
    }

    /// What a name may mean at a place, most particular first. True: the last one holds without condition.
    fn meanings<'p>(
        &self,
        place: &'p EncodingSite<'p>,
        name: &str,
        assumed: Option<ExprId>,
        out: &mut Vec<FieldMeaning<'p, 'm>>,
    ) -> bool {
        for owner in self.chain(place.bitset) {
            for part in &self.bitsets[owner].parts {
                let found = part.case.rows.iter().enumerate().find(|(_, row)| match row {
                    CaseRow::Field { field, .. } | CaseRow::Derived { field, .. } => field.name == name,
                    _ => false,
                });
                let Some((index, row)) = found else { continue };
                let when = part.when.filter(|when| Some(*when) != assumed);
                out.push(FieldMeaning {
                    when,
                    place,
                    owner,
                    row,
                    derived: part.derived.get(&index).copied(),
                });
                if when.is_none() {
                    return true;
                }
            }
        }
        let param = place.params.iter().find(|(_, inside)| inside == name);
        match (param, place.outer) {
            (Some((outside, _)), Some(outer)) => self.meanings(outer, outside, assumed, out),
            _ => false,
        }
    }

    fn cands(
        &mut self,
        place: &EncodingSite<'_>,
        name: &str,
        refuted: &[u32],
        holds: u32,
    ) -> Result<RowSpan> {
        let mut meanings = Vec::new();
        self.meanings(place, name, None, &mut meanings);
        let mut cands = Vec::new();
        for meaning in &meanings {
            let when = self.condition(meaning.place, meaning.when)?;
            if when != NONE && refuted.contains(&when) {
                continue;
            }
            let when = if when == holds { NONE } else { when };
            let field = self.field(meaning)?;
            let field = self.pool_fields.add(&mut self.rows.fields, vec![field]).at;
            cands.push(FieldCandidate { when, field });
            if when == NONE {
                break;
            }
        }
        Ok(self.pool_cands.add(&mut self.rows.cands, cands))
    }

    fn field(&mut self, meaning: &FieldMeaning<'_, 'm>) -> Result<FieldRow> {
        let owner_name = case_owner(self.bitsets[meaning.owner].bitset);
        let (low, width, code, field) = match meaning.row {
            CaseRow::Field { low, high, field } => (meaning.place.base + low, high - low + 1, NONE, field),
            CaseRow::Derived { width, field, .. } => {
                let code = self.condition(meaning.place, meaning.derived)?;
                (0, width.unwrap_or(64).clamp(1, 64), code, field)
            }
            CaseRow::Bits { .. } | CaseRow::Assert { .. } => {
                return Err(CompileError::Size { owner: owner_name });
            }
        };
        let low8 = bit(low, &owner_name)?;
        bit(low + width - 1, &owner_name)?;
        Ok(FieldRow {
            name: self.text(&field.name),
            owner: self.owner(meaning.place.bitset),
            low: low8,
            width: width as u8,
            code,
            ty: self.ty(field, meaning, low)?,
        })
    }

    fn ty(&mut self, field: &IsaField, meaning: &FieldMeaning<'_, 'm>, low: u32) -> Result<FieldType> {
        let display = field.display.as_ref().map(|d| self.text(d));
        Ok(match field.ty.as_str() {
            "uint" => FieldType::Uint,
            "int" => FieldType::Int,
            "hex" => FieldType::Hex,
            "offset" => FieldType::Offset,
            "uoffset" => FieldType::Uoffset,
            "float" => FieldType::Float,
            "bool" => FieldType::Bool(display),
            "bool_inv" => FieldType::BoolInv(display),
            "branch" => FieldType::Branch { call: field.call },
            "absbranch" => FieldType::AbsBranch { call: field.call },
            "custom" => FieldType::Custom,
            name => match self.enums.get(name) {
                Some(index) => FieldType::Enum(*index),
                None => {
                    let root = self.families.iter().position(|f| self.bitsets[f.0].bitset.name == name);
                    let owner = self.bitsets[meaning.owner].bitset;
                    let root = root.ok_or_else(|| unknown(owner, name))?;
                    let scopes = self.scopes(root, low, &field.params, Some(meaning.place))?;
                    FieldType::Bitset { root: root as u32, scopes }
                }
            },
        })
    }

    /// The code of an expression at a place; `NONE` when there is none.
    fn condition(&mut self, place: &EncodingSite<'_>, expr: Option<ExprId>) -> Result<u32> {
        let Some(expr) = expr else { return Ok(NONE) };
        let mut code = self.code(place, expr, place.depth, &mut Vec::new())?;
        code.push(ExprOp::End);
        if deepest(&code) > MAX_STACK {
            return Err(CompileError::Depth { owner: case_owner(self.bitsets[place.bitset].bitset) });
        }
        let code = match self.tabulate(&code) {
            Some(index) => vec![ExprOp::Tabulated(index), ExprOp::End],
            None => code,
        };
        Ok(self.pool_code.add(&mut self.rows.code, code).at)
    }

    /// Tabulates an expression over few bits; `None` when it is not one, or a single comparison.
    fn tabulate(&mut self, code: &[ExprOp]) -> Option<u32> {
        let mut spans: Vec<(u8, u8)> = Vec::new();
        for op in code {
            match *op {
                ExprOp::Bits { low, width } | ExprOp::Compare { low, width, .. }
                    if !spans.contains(&(low, width)) =>
                {
                    spans.push((low, width));
                }
                ExprOp::Generation | ExprOp::Absent { .. } => return None,
                _ => {}
            }
        }
        let total: u8 = spans.iter().map(|s| s.1).fold(0, u8::saturating_add);
        let beyond = spans.iter().any(|(low, width)| low + width > 64);
        if code.len() < 3 || beyond || spans.is_empty() || spans.len() > MAX_SPANS || total > MAX_TABULATED {
            return None;
        }
        let mut truths = vec![0u64; 1usize.max(1 << total.saturating_sub(6))];
        for index in 0..1u64 << total {
            let (mut word, mut rest) = (0, index);
            for &(low, width) in &spans {
                word |= u128::from(rest & ((1 << width) - 1)) << low;
                rest >>= width;
            }
            match types::run(code, word, 0, &mut |_, _, _| 0) {
                value @ 0..=1 => truths[(index >> 6) as usize] |= value << (index & 63),
                _ => return None,
            }
        }
        let mut place = 0;
        let mut parts = [(0, 0, 0); MAX_SPANS];
        for (part, (low, width)) in parts.iter_mut().zip(spans) {
            *part = (low, (1u16 << width) - 1, place);
            place += width;
        }
        let values = self.pool_truths.add(&mut self.rows.truths, truths).at;
        Some(
            self.pool_tabulations
                .add(&mut self.rows.tabulations, vec![Tabulation { spans: parts, values }])
                .at,
        )
    }

    fn code(
        &mut self,
        place: &EncodingSite<'_>,
        expr: ExprId,
        depth: usize,
        open: &mut Vec<ExprId>,
    ) -> Result<Vec<ExprOp>> {
        if open.contains(&expr) {
            return Ok(vec![ExprOp::Push(0)]);
        }
        open.push(expr);
        let tree = self.exprs[expr].clone();
        let code = self.steps(place, &tree, expr, depth, open);
        open.pop();
        code
    }

    fn steps(
        &mut self,
        place: &EncodingSite<'_>,
        tree: &Expr,
        expr: ExprId,
        depth: usize,
        open: &mut Vec<ExprId>,
    ) -> Result<Vec<ExprOp>> {
        Ok(match tree {
            Expr::Number(value) => vec![ExprOp::Push(*value)],
            Expr::Generation => vec![ExprOp::Generation],
            Expr::Not(inner) => {
                let mut code = self.steps(place, inner, expr, depth, open)?;
                match code[..] {
                    [ExprOp::Bits { low, width }] => {
                        code = vec![ExprOp::Compare { low, width, op: Binary::Eq, with: 0 }]
                    }
                    _ => code.push(ExprOp::Not),
                }
                code
            }
            Expr::Binary(op, left, right) => {
                let mut code = self.steps(place, left, expr, depth, open)?;
                let right = self.steps(place, right, expr, depth, open)?;
                match (&code[..], &right[..]) {
                    (&[ExprOp::Bits { low, width }], &[ExprOp::Push(with)]) => {
                        code = vec![ExprOp::Compare { low, width, op: *op, with }];
                    }
                    _ => {
                        code.extend(right);
                        code.push(ExprOp::Binary(*op));
                    }
                }
                code
            }
            Expr::Field(name) => {
                let mut meanings = Vec::new();
                let complete = self.meanings(place, name, Some(expr), &mut meanings);
                let mut code = Vec::new();
                if !complete {
                    let up = depth.saturating_sub(place.depth) as u8;
                    code.push(ExprOp::Absent { name: self.text(name), expr: expr as u16, up });
                }
                for meaning in meanings.iter().rev() {
                    let owner = case_owner(self.bitsets[meaning.owner].bitset);
                    let value = match (meaning.row, meaning.derived) {
                        (CaseRow::Field { low, high, .. }, _) => vec![ExprOp::Bits {
                            low: bit(meaning.place.base + low, &owner)?,
                            width: (high - low + 1).min(64) as u8,
                        }],
                        (_, Some(derived)) => self.code(meaning.place, derived, depth, open)?,
                        _ => vec![ExprOp::Push(0)],
                    };
                    let Some(when) = meaning.when else {
                        code = value;
                        continue;
                    };
                    let rest = std::mem::replace(&mut code, self.code(meaning.place, when, depth, open)?);
                    code.push(ExprOp::SkipUnless(value.len() as u16 + 1));
                    code.extend(value);
                    code.push(ExprOp::Skip(rest.len() as u16));
                    code.extend(rest);
                }
                code
            }
        })
    }
}

fn parse(owner: &str, source: &str) -> Result<Expr> {
    expr::parse(source).map_err(|error| CompileError::Expr { owner: owner.to_owned(), error })
}

/// `:name`, or an expression of its own.
fn reference(
    bitset: &Bitset,
    source: &str,
    named: &HashMap<&str, ExprId>,
    exprs: &mut Vec<Expr>,
) -> Result<ExprId> {
    match source.strip_prefix(':') {
        Some(name) => named.get(name).copied().ok_or_else(|| unknown(bitset, name)),
        None => {
            exprs.push(parse(&bitset.name, source)?);
            Ok(exprs.len() - 1)
        }
    }
}

fn close_run(out: &mut Vec<TemplatePart>, run: Option<(usize, u64)>) {
    if let Some((at, mask)) = run {
        let count = (out.len() - at) as u32;
        if count > 1 {
            out.insert(at, TemplatePart::Silent { mask, count });
        }
    }
}

fn unknown(bitset: &Bitset, name: &str) -> CompileError {
    CompileError::Unknown { owner: bitset.name.clone(), name: name.to_owned() }
}

fn case_owner(bitset: &Bitset) -> String {
    bitset.name.clone()
}

fn bit(at: u32, owner: &str) -> Result<u8> {
    match u8::try_from(at) {
        Ok(at) if at < 128 => Ok(at),
        _ => Err(CompileError::Size { owner: owner.to_owned() }),
    }
}

/// How many values the code may have on the stack at once.
fn deepest(code: &[ExprOp]) -> usize {
    let (mut now, mut most) = (0usize, 0);
    for op in code {
        match op {
            ExprOp::Push(_)
            | ExprOp::Bits { .. }
            | ExprOp::Compare { .. }
            | ExprOp::Generation
            | ExprOp::Absent { .. } => now += 1,
            ExprOp::Binary(_) | ExprOp::SkipUnless(_) => now = now.saturating_sub(1),
            // What follows is the other way to the same value.
            ExprOp::Skip(_) => now = now.saturating_sub(1),
            ExprOp::Not | ExprOp::Tabulated(_) | ExprOp::End => {}
        }
        most = most.max(now);
    }
    most
}
