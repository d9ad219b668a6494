//! Turns the table's display templates round: what they print is what the rules read.

use super::grammar::{
    BitWindow, EnumId, Expr, ExprId, ExprStep, Grammar, TemplateOp, TemplateRule, Texts, UnorderedItem,
    ValueTarget, starts,
};
use crate::table::IsaTable;
use crate::table::rows::{
    self, Assert, FieldCandidate, FieldRow, FieldType, LeafRow, RootRow, RowSpan, Scope, ShowRow,
    TemplatePart,
};
use std::collections::HashMap;

/// Bits that Mesa's compiler sets and no text shows: encoding, field, value.
const UNSHOWN: [(&str, &str, u64); 4] =
    [("stg", "DST_OFF", 1), ("stg.a", "DST_OFF", 1), ("dsxpp.1", "TYPE", 1), ("dsypp.1", "TYPE", 1)];

/// Bit sets in bit sets that are followed.
const DEEPEST: usize = 8;

/// A table being turned round for one GPU: an instruction at a time, as they are asked for.
pub(super) struct Inversion {
    table: &'static IsaTable<'static>,
    gpu_id: u32,
    pub grammar: Grammar,
    codes: HashMap<u32, ExprId>,
    /// By enum, and how many of its values the field holds.
    enums: HashMap<(u32, usize), EnumId>,
}

/// Conditions that a rule is under.
type Conditions = Vec<(ExprId, bool)>;

impl Inversion {
    pub fn new(table: &'static IsaTable<'static>, gpu_id: u32) -> Inversion {
        Inversion { table, gpu_id, grammar: Grammar::default(), codes: HashMap::new(), enums: HashMap::new() }
    }

    /// The names of the GPU's instructions, each with the index of an encoding that has it.
    pub fn names(&self) -> impl Iterator<Item = (&'static [u8], u32)> {
        let leaves =
            self.instructions().map_or(0..0, |root| root.leaves.at..root.leaves.at + root.leaves.len);
        leaves.filter(|&leaf| self.exists(self.table.leaves[leaf as usize])).flat_map(move |leaf| {
            let shows = self.scope(leaf).map_or(RowSpan { at: 0, len: 0 }, |scope| scope.shows);
            let title = self.text(self.table.leaves[leaf as usize].title);
            let parts = part(self.table.shows, shows).iter().filter_map(|show| show.parts);
            parts.map(move |parts| (self.name(parts, title).as_bytes(), leaf))
        })
    }

    /// The name in a template.
    fn name(&self, parts: RowSpan, title: &'static str) -> &'static str {
        let pieces = part(self.table.pieces, parts);
        if pieces.contains(&TemplatePart::Name) {
            return title;
        }
        let word = |piece: &TemplatePart| match *piece {
            TemplatePart::Literal(text) => name_in(self.text(text)),
            _ => None,
        };
        pieces.iter().find_map(word).unwrap_or_default()
    }

    fn instructions(&self) -> Option<&'static RootRow> {
        self.table.roots.iter().find(|row| self.text(row.name) == "instruction")
    }

    fn scope(&self, leaf: u32) -> Option<Scope> {
        let root = self.instructions()?;
        self.table.scopes.get((root.scopes + (leaf - root.leaves.at)) as usize).copied()
    }

    fn exists(&self, leaf: LeafRow) -> bool {
        (leaf.min..=leaf.max).contains(&self.gpu_id)
    }

    /// The rules of the encodings that have a name, in the order to try.
    pub fn rules(&mut self, name: &[u8], leaves: &[u32]) -> Vec<TemplateRule> {
        let mut rules = Vec::new();
        for &leaf in leaves {
            rules.extend(self.scope(leaf).map(|scope| self.form(leaf, scope, 0, 0)).unwrap_or_default());
        }
        for rule in &mut rules {
            rule.ops = arranged(named(std::mem::take(&mut rule.ops)), &self.grammar.enums);
        }
        rules.retain(|rule| rule.name() == name);
        // Templates that say all outright are read with less effort.
        rules.sort_by_cached_key(|rule| derived(&rule.ops));
        rules
    }

    /// One rule per template of an operand's encodings, at bit `base` of the word.
    fn forms(&mut self, leaves: RowSpan, scopes: u32, base: u8, depth: usize) -> Vec<TemplateRule> {
        let mut rules = Vec::new();
        if depth > DEEPEST {
            return rules;
        }
        for i in 0..leaves.len {
            let scope = self.table.scopes[(scopes + i) as usize];
            if self.exists(self.table.leaves[(leaves.at + i) as usize]) {
                rules.extend(self.form(leaves.at + i, scope, base, depth));
            }
        }
        rules
    }

    /// One rule per template of an encoding.
    fn form(&mut self, leaf: u32, scope: Scope, base: u8, depth: usize) -> Vec<TemplateRule> {
        let leaf = self.table.leaves[leaf as usize];
        let mut rules = Vec::new();
        self.templates(scope.shows, self.text(leaf.title), depth, &mut rules);
        let unshown = self.unshown(self.text(leaf.name), scope.names);
        for rule in &mut rules {
            let fixed = (leaf.mask as u64).checked_shl(u32::from(base)).unwrap_or(0);
            let value = (leaf.value as u64).checked_shl(u32::from(base)).unwrap_or(0);
            rule.value = (rule.value & !fixed) | value;
            rule.fixed |= fixed;
            rule.unshown = unshown;
            self.settle(rule);
        }
        rules
    }

    fn templates(&mut self, shows: RowSpan, name: &'static str, depth: usize, rules: &mut Vec<TemplateRule>) {
        // The ways of coming to a template past those before it: what does not hold, and what was checked on the way.
        let mut ways = vec![TemplateRule::default()];
        for i in 0..shows.len {
            let show = self.table.shows[(shows.at + i) as usize];
            let when = self.expr(show.when);
            match show.parts {
                Some(parts) => {
                    for way in &ways {
                        if let Some(mut rule) = self.under(way, when, true) {
                            self.checked(&mut rule, show);
                            let conditions = rule.conditions.clone();
                            rule.ops = self.pieces(parts, name, &conditions, depth);
                            rules.push(rule);
                        }
                    }
                    ways = ways.iter().filter_map(|way| self.under(way, when, false)).collect();
                }
                None => {
                    let mut past = Vec::new();
                    for way in &ways {
                        if let Some(mut held) = self.under(way, when, true) {
                            self.checked(&mut held, show);
                            past.push(held);
                        }
                        past.extend(self.under(way, when, false));
                    }
                    ways = past;
                }
            }
        }
    }

    /// Turns conditions that only fix bits into fixed bits.
    fn settle(&self, rule: &mut TemplateRule) {
        let TemplateRule { conditions, fixed, value, .. } = rule;
        conditions.retain(|&(expr, holds)| match self.grammar.expr(expr).fixes(holds) {
            Some((bits, set)) if (*value ^ set) & *fixed & bits == 0 => {
                *fixed |= bits;
                *value |= set;
                false
            }
            _ => true,
        });
    }

    /// The way with one more condition; `None` if it cannot be.
    fn under(&self, way: &TemplateRule, when: ExprId, holds: bool) -> Option<TemplateRule> {
        let mut way = way.clone();
        match self.grammar.expr(when).constant() {
            Some(value) if (value != 0) != holds => return None,
            Some(_) => {}
            None => match way.conditions.iter().find(|(expr, _)| *expr == when) {
                Some(&(_, known)) if known != holds => return None,
                Some(_) => {}
                None => way.conditions.push((when, holds)),
            },
        }
        Some(way)
    }

    fn checked(&self, rule: &mut TemplateRule, show: ShowRow) {
        for i in 0..show.asserts.len {
            let Assert { low, high, at, value, .. } = self.table.asserts[(show.asserts.at + i) as usize];
            let window = BitWindow { low: at, width: high.saturating_sub(low).saturating_add(1) };
            rule.fixed |= window.mask();
            rule.value |= window.place(value as u64);
        }
    }

    fn pieces(
        &mut self,
        parts: RowSpan,
        name: &'static str,
        under: &Conditions,
        depth: usize,
    ) -> Vec<TemplateOp> {
        let mut ops = Vec::new();
        for i in 0..parts.len {
            match self.table.pieces[(parts.at + i) as usize] {
                TemplatePart::Literal(text) => ops.push(TemplateOp::Text(self.text(text).as_bytes().into())),
                TemplatePart::Name => ops.push(TemplateOp::Name(name.as_bytes().into())),
                TemplatePart::Align(_) => ops.push(TemplateOp::Text(b" "[..].into())),
                TemplatePart::Silent { .. } => {}
                TemplatePart::Flag { low, text, .. } => ops.push(TemplateOp::Flag {
                    text: self.text(text).as_bytes().into(),
                    target: ValueTarget::Bits(BitWindow { low, width: 1 }),
                    inverted: false,
                }),
                TemplatePart::Plain { field, .. } => {
                    ops.extend(self.value(self.table.fields[field as usize], depth))
                }
                TemplatePart::Field { cands, .. } => ops.extend(self.field(cands, under, depth)),
            }
        }
        readable(ops)
    }

    /// What reads the first of the fields whose condition holds.
    fn field(&mut self, cands: RowSpan, under: &Conditions, depth: usize) -> Option<TemplateOp> {
        let mut ways = vec![TemplateRule { conditions: under.clone(), ..TemplateRule::default() }];
        let mut rules: Vec<TemplateRule> = Vec::new();
        for i in 0..cands.len {
            let FieldCandidate { when, field } = self.table.cands[(cands.at + i) as usize];
            let when = self.expr(when);
            let field = self.table.fields[field as usize];
            for way in &ways {
                if let Some(mut way) = self.under(way, when, true) {
                    let added = way.conditions.split_off(under.len());
                    let ops = self.value(field, depth).into_iter().collect();
                    let mut rule = TemplateRule { ops, conditions: added, ..TemplateRule::default() };
                    self.settle(&mut rule);
                    rules.push(rule);
                }
            }
            ways = ways.iter().filter_map(|way| self.under(way, when, false)).collect();
        }
        // Where none holds, nothing is printed.
        for mut way in ways {
            let mut rule =
                TemplateRule { conditions: way.conditions.split_off(under.len()), ..TemplateRule::default() };
            self.settle(&mut rule);
            rules.push(rule);
        }
        match &mut rules[..] {
            [only] if only.conditions.is_empty() && only.fixed == 0 => only.ops.pop(),
            rules if rules.iter().all(|rule| rule.ops.is_empty()) => None,
            _ => Some(self.one_of(rules)),
        }
    }

    fn value(&mut self, field: FieldRow, depth: usize) -> Option<TemplateOp> {
        let window = BitWindow { low: field.low, width: field.width };
        let derived = (field.code != rows::NONE).then(|| self.expr(field.code));
        let constant = derived.and_then(|expr| self.grammar.expr(expr).constant());
        let bits =
            if matches!(field.ty, FieldType::Bool(_) | FieldType::BoolInv(_)) { 1 } else { field.width };
        let target = derived.map_or(ValueTarget::Bits(window), |expr| ValueTarget::Derived { expr, bits });
        let flag = |text: Option<rows::TextId>, inverted: bool| match (text, constant) {
            (Some(text), Some(value)) => {
                ((value != 0) != inverted).then(|| TemplateOp::Text(self.text(text).as_bytes().into()))
            }
            (Some(text), None) => {
                let text = self.text(text).as_bytes().into();
                let fixes = derived.and_then(|expr| self.grammar.expr(expr).fixes(true));
                Some(match fixes {
                    Some((bits, set)) if bits.count_ones() == 1 => {
                        let window = BitWindow { low: bits.trailing_zeros() as u8, width: 1 };
                        TemplateOp::Flag {
                            text,
                            target: ValueTarget::Bits(window),
                            inverted: inverted != (set == 0),
                        }
                    }
                    _ => TemplateOp::Flag { text, target, inverted },
                })
            }
            (None, _) => Some(TemplateOp::Unsigned(target)),
        };
        match field.ty {
            FieldType::Bool(text) => flag(text, false),
            FieldType::BoolInv(text) => flag(text, true),
            FieldType::Uint => Some(TemplateOp::Unsigned(target)),
            FieldType::Int => Some(TemplateOp::Signed(target)),
            FieldType::Hex => Some(TemplateOp::Hex(target)),
            FieldType::Float => Some(TemplateOp::Float(window)),
            FieldType::Offset | FieldType::Uoffset if constant == Some(0) => None,
            FieldType::Offset => Some(TemplateOp::Offset { target, signed: true, required: false }),
            FieldType::Uoffset => Some(TemplateOp::Offset { target, signed: false, required: false }),
            FieldType::Branch { .. } | FieldType::AbsBranch { .. } => Some(TemplateOp::Branch(window)),
            FieldType::Enum(of) => Some(TemplateOp::Enum { of: self.texts(of, target.width()), target }),
            FieldType::Custom => None,
            FieldType::Bitset { root, scopes } => {
                let leaves = self.table.roots[root as usize].leaves;
                let mut rules = self.forms(leaves, scopes, field.low, depth + 1);
                for rule in &mut rules {
                    rule.ops = arranged(std::mem::take(&mut rule.ops), &self.grammar.enums);
                }
                if rules.iter().any(|rule| rule.ops.is_empty()) {
                    // That there is no offset is what the empty template says.
                    for rule in &mut rules {
                        if let [TemplateOp::Offset { required, .. }] = &mut rule.ops[..] {
                            *required = true;
                        }
                    }
                }
                // Longer templates first: a shorter one may be the beginning of a longer one.
                rules.sort_by_key(|rule| std::cmp::Reverse(rule.ops.len()));
                Some(self.one_of(rules))
            }
        }
    }

    fn one_of(&self, mut rules: Vec<TemplateRule>) -> TemplateOp {
        for rule in &mut rules {
            rule.starts = starts(&rule.ops, &self.grammar.enums);
        }
        TemplateOp::Any(rules.into())
    }

    fn unshown(&self, leaf: &str, names: RowSpan) -> u64 {
        let mut bits = 0;
        for &(_, name, value) in UNSHOWN.iter().filter(|(of, ..)| *of == leaf) {
            let Some(row) = part(self.table.names, names).iter().find(|row| self.text(row.name) == name)
            else {
                continue;
            };
            if row.cands.len > 0 {
                let field = self.table.fields[self.table.cands[row.cands.at as usize].field as usize];
                bits |= BitWindow { low: field.low, width: field.width }.place(value);
            }
        }
        bits
    }

    fn expr(&mut self, code: u32) -> ExprId {
        if let Some(&known) = self.codes.get(&code) {
            return known;
        }
        let always = [rows::ExprOp::Push(1), rows::ExprOp::End];
        let ops = if code == rows::NONE { &always } else { &self.table.code[code as usize..] };
        let steps = ops.iter().map_while(|op| match *op {
            rows::ExprOp::Push(value) => Some(ExprStep::Const(value)),
            rows::ExprOp::Compare { low, width, op, with } => {
                Some(ExprStep::Compare { window: BitWindow { low, width }, op, with })
            }
            rows::ExprOp::Bits { low, width } => Some(ExprStep::Bits(BitWindow { low, width })),
            rows::ExprOp::Generation => Some(ExprStep::Const(i64::from(self.gpu_id))),
            rows::ExprOp::Tabulated(index) => self.table.tabulations.get(index as usize).map(|row| {
                let bits: u32 = row.spans.iter().map(|&(_, mask, _)| mask.count_ones()).sum();
                let count = 1usize.checked_shl(bits).unwrap_or(0).div_ceil(64);
                let from = row.values as usize;
                let truths = self.table.truths.get(from..from.saturating_add(count)).unwrap_or_default();
                ExprStep::Tabulated { spans: row.spans, truths }
            }),
            rows::ExprOp::Not => Some(ExprStep::Not),
            rows::ExprOp::Binary(op) => Some(ExprStep::Binary(op)),
            rows::ExprOp::SkipUnless(steps) => Some(ExprStep::SkipUnless(steps)),
            rows::ExprOp::Skip(steps) => Some(ExprStep::Skip(steps)),
            rows::ExprOp::Absent { .. } => Some(ExprStep::Const(0)),
            rows::ExprOp::End => None,
        });
        let expr = Expr::new(steps.collect());
        let exprs = &mut self.grammar.exprs;
        let at = exprs.iter().position(|known| *known == expr).unwrap_or_else(|| {
            exprs.push(expr);
            exprs.len() - 1
        });
        let id = ExprId(at as u32);
        self.codes.insert(code, id);
        id
    }

    /// The texts of an enum's values that a field of `width` bits holds.
    fn texts(&mut self, of: u32, width: u8) -> EnumId {
        let row = self.table.enums[of as usize];
        let values = &self.table.values[row.values.at as usize..(row.values.at + row.values.len) as usize];
        let most = BitWindow { low: 0, width }.ones();
        let values = values.iter().filter(|value| value.value <= most);
        let key = (of, values.clone().count());
        if let Some(&known) = self.enums.get(&key) {
            return known;
        }
        let mut texts: Vec<(Box<[u8]>, u64)> =
            values.map(|value| (self.text(value.text).as_bytes().into(), value.value)).collect();
        texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let id = EnumId(self.grammar.enums.len() as u32);
        self.grammar.enums.push(Texts { texts });
        self.enums.insert(key, id);
        id
    }

    fn text(&self, text: rows::TextId) -> &'static str {
        self.table.text(text)
    }
}

/// The rows of a span.
fn part<T>(rows: &[T], RowSpan { at, len }: RowSpan) -> &[T] {
    rows.get(at as usize..(at + len) as usize).unwrap_or_default()
}

/// How many values of a template are derived ones.
fn derived(ops: &[TemplateOp]) -> usize {
    let count = |op: &TemplateOp| match op {
        TemplateOp::Flag { target, .. }
        | TemplateOp::Unsigned(target)
        | TemplateOp::Enum { target, .. }
        | TemplateOp::Offset { target, .. } => usize::from(matches!(target, ValueTarget::Derived { .. })),
        TemplateOp::Any(rules) => rules.iter().map(|rule| derived(&rule.ops)).sum(),
        TemplateOp::Unordered(items) => items.iter().map(|item| derived(&item.ops)).sum(),
        _ => 0,
    };
    ops.iter().map(count).sum()
}

/// Numbers may be written in ways that are not printed: in decimal for hexadecimal, `- 5` for `+ -5`.
fn readable(ops: Vec<TemplateOp>) -> Vec<TemplateOp> {
    let mut readable: Vec<TemplateOp> = Vec::with_capacity(ops.len());
    for op in ops {
        let (cut, op) = match (readable.last(), op) {
            (Some(TemplateOp::Text(text)), TemplateOp::Hex(target)) if text.ends_with(b"0x") => {
                (2, TemplateOp::Unsigned(target))
            }
            (Some(TemplateOp::Text(text)), TemplateOp::Signed(target)) if text.ends_with(b" + ") => {
                (3, TemplateOp::Offset { target, signed: true, required: false })
            }
            (Some(TemplateOp::Text(text)), TemplateOp::Unsigned(target)) if text.ends_with(b" + ") => {
                (3, TemplateOp::Offset { target, signed: false, required: false })
            }
            (_, op) => (0, op),
        };
        if let Some(TemplateOp::Text(text)) = readable.last_mut().filter(|_| cut > 0) {
            *text = text[..text.len() - cut].into();
        }
        readable.retain(|op| !matches!(op, TemplateOp::Text(text) if text.is_empty()));
        readable.push(op);
    }
    readable
}

/// The name that a text starts with.
fn name_in(text: &str) -> Option<&str> {
    let end = text.bytes().position(|b| !super::matcher::is_word(b)).unwrap_or(text.len());
    text.starts_with(|c: char| c.is_ascii_alphabetic()).then(|| &text[..end])
}

/// Makes the name a step of its own where a template has it as text.
fn named(mut ops: Vec<TemplateOp>) -> Vec<TemplateOp> {
    if ops.iter().any(|op| matches!(op, TemplateOp::Name(_))) {
        return ops;
    }
    let name = |op: &TemplateOp| match op {
        TemplateOp::Text(text) => std::str::from_utf8(text).ok().and_then(name_in).map(str::len),
        _ => None,
    };
    let Some((at, end)) = ops.iter().enumerate().find_map(|(at, op)| Some((at, name(op)?))) else {
        return Vec::new();
    };
    if let TemplateOp::Text(text) = ops.remove(at) {
        let (name, rest) = text.split_at(end);
        if !rest.is_empty() {
            ops.insert(at, TemplateOp::Text(rest.into()));
        }
        ops.insert(at, TemplateOp::Name(name.into()));
    }
    ops
}

/// Lets flags stand in any order: all before the name, and runs of modifiers after it.
fn arranged(ops: Vec<TemplateOp>, enums: &[Texts]) -> Vec<TemplateOp> {
    let name = ops.iter().position(|op| matches!(op, TemplateOp::Name(_))).unwrap_or(0);
    let mut rest = ops;
    let tail = rest.split_off(name);
    let mut arranged = Vec::new();
    if let Some(items) = flags(rest) {
        arranged.push(TemplateOp::Unordered(items.into()));
    }
    let mut run: Vec<TemplateOp> = Vec::new();
    for op in tail {
        match op {
            TemplateOp::Flag { ref text, .. } if matches!(text.first(), Some(b'.' | b'(')) => run.push(op),
            TemplateOp::Enum { of, .. } if enums[of.0 as usize].is_modifier() => run.push(op),
            op => {
                flush(&mut run, &mut arranged);
                arranged.push(op);
            }
        }
    }
    flush(&mut run, &mut arranged);
    arranged
}

fn flush(run: &mut Vec<TemplateOp>, into: &mut Vec<TemplateOp>) {
    match run.len() {
        0 | 1 => into.append(run),
        _ => {
            let items = run.drain(..).map(|op| UnorderedItem { ops: [op].into(), required: false });
            into.push(TemplateOp::Unordered(items.collect()));
        }
    }
}

/// What stands before the name: flags, and bracketed texts with a number in them, which must be there.
fn flags(ops: Vec<TemplateOp>) -> Option<Vec<UnorderedItem>> {
    let mut items = Vec::new();
    let mut bracket: Vec<TemplateOp> = Vec::new();
    for op in ops {
        match op {
            TemplateOp::Text(text) if bracket.is_empty() && text.iter().all(|&b| b == b' ') => {}
            TemplateOp::Text(text) => {
                let closes = text.contains(&b')');
                bracket.push(TemplateOp::Text(text.trim_ascii_end().into()));
                if closes {
                    items.push(UnorderedItem { ops: std::mem::take(&mut bracket).into(), required: true });
                }
            }
            op if bracket.is_empty() => items.push(UnorderedItem { ops: [op].into(), required: false }),
            op => bracket.push(op),
        }
    }
    (!items.is_empty()).then_some(items)
}
