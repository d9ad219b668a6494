//! Turns the table's display templates round: what they print is what the rules read.

use super::grammar::{EnumId, Expr, ExprId, Grammar, Item, Op, Rule, Step, Target, Texts, Window, starts};
use crate::table::Table;
use crate::table::rows::{self, Assert, Cand, FieldRow, LeafRow, Piece, RootRow, Scope, Show, Span, Type};
use std::collections::HashMap;

/// Bits that Mesa's compiler sets and no text shows: encoding, field, value.
const UNSHOWN: [(&str, &str, u64); 4] =
    [("stg", "DST_OFF", 1), ("stg.a", "DST_OFF", 1), ("dsxpp.1", "TYPE", 1), ("dsypp.1", "TYPE", 1)];

/// Bit sets in bit sets that are followed.
const DEEPEST: usize = 8;

/// A table being turned round for one GPU: an instruction at a time, as they are asked for.
pub(super) struct Inversion {
    table: &'static Table<'static>,
    gpu_id: u32,
    pub grammar: Grammar,
    codes: HashMap<u32, ExprId>,
    enums: HashMap<u32, EnumId>,
}

/// Conditions that a rule is under.
type Conditions = Vec<(ExprId, bool)>;

impl Inversion {
    pub fn new(table: &'static Table<'static>, gpu_id: u32) -> Inversion {
        Inversion { table, gpu_id, grammar: Grammar::default(), codes: HashMap::new(), enums: HashMap::new() }
    }

    /// The names of the GPU's instructions, each with the index of an encoding that has it.
    pub fn names(&self) -> impl Iterator<Item = (&'static [u8], u32)> {
        let leaves =
            self.instructions().map_or(0..0, |root| root.leaves.at..root.leaves.at + root.leaves.len);
        leaves.filter(|&leaf| self.exists(self.table.leaves[leaf as usize])).flat_map(move |leaf| {
            let shows = self.scope(leaf).map_or(Span { at: 0, len: 0 }, |scope| scope.shows);
            let title = self.text(self.table.leaves[leaf as usize].title);
            let parts = part(self.table.shows, shows).iter().filter_map(|show| show.parts);
            parts.map(move |parts| (self.name(parts, title).as_bytes(), leaf))
        })
    }

    /// The name in a template.
    fn name(&self, parts: Span, title: &'static str) -> &'static str {
        let pieces = part(self.table.pieces, parts);
        if pieces.contains(&Piece::Name) {
            return title;
        }
        let word = |piece: &Piece| match *piece {
            Piece::Literal(text) => name_in(self.text(text)),
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
    pub fn rules(&mut self, name: &[u8], leaves: &[u32]) -> Vec<Rule> {
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
    fn forms(&mut self, leaves: Span, scopes: u32, base: u8, depth: usize) -> Vec<Rule> {
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
    fn form(&mut self, leaf: u32, scope: Scope, base: u8, depth: usize) -> Vec<Rule> {
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

    fn templates(&mut self, shows: Span, name: &'static str, depth: usize, rules: &mut Vec<Rule>) {
        // The ways of coming to a template past those before it: what does not hold, and what was checked on the way.
        let mut ways = vec![Rule::default()];
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
    fn settle(&self, rule: &mut Rule) {
        let Rule { conditions, fixed, value, .. } = rule;
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
    fn under(&self, way: &Rule, when: ExprId, holds: bool) -> Option<Rule> {
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

    fn checked(&self, rule: &mut Rule, show: Show) {
        for i in 0..show.asserts.len {
            let Assert { low, high, at, value, .. } = self.table.asserts[(show.asserts.at + i) as usize];
            let window = Window { low: at, width: high.saturating_sub(low).saturating_add(1) };
            rule.fixed |= window.mask();
            rule.value |= window.place(value as u64);
        }
    }

    fn pieces(&mut self, parts: Span, name: &'static str, under: &Conditions, depth: usize) -> Vec<Op> {
        let mut ops = Vec::new();
        for i in 0..parts.len {
            match self.table.pieces[(parts.at + i) as usize] {
                Piece::Literal(text) => ops.push(Op::Text(self.text(text).as_bytes().into())),
                Piece::Name => ops.push(Op::Name(name.as_bytes().into())),
                Piece::Align(_) => ops.push(Op::Text(b" "[..].into())),
                Piece::Silent { .. } => {}
                Piece::Flag { low, text, .. } => ops.push(Op::Flag {
                    text: self.text(text).as_bytes().into(),
                    target: Target::Bits(Window { low, width: 1 }),
                    inverted: false,
                }),
                Piece::Plain { field, .. } => {
                    ops.extend(self.value(self.table.fields[field as usize], depth))
                }
                Piece::Field { cands, .. } => ops.extend(self.field(cands, under, depth)),
            }
        }
        readable(ops)
    }

    /// What reads the first of the fields whose condition holds.
    fn field(&mut self, cands: Span, under: &Conditions, depth: usize) -> Option<Op> {
        let mut ways = vec![Rule { conditions: under.clone(), ..Rule::default() }];
        let mut rules: Vec<Rule> = Vec::new();
        for i in 0..cands.len {
            let Cand { when, field } = self.table.cands[(cands.at + i) as usize];
            let when = self.expr(when);
            let field = self.table.fields[field as usize];
            for way in &ways {
                if let Some(mut way) = self.under(way, when, true) {
                    let added = way.conditions.split_off(under.len());
                    let ops = self.value(field, depth).into_iter().collect();
                    let mut rule = Rule { ops, conditions: added, ..Rule::default() };
                    self.settle(&mut rule);
                    rules.push(rule);
                }
            }
            ways = ways.iter().filter_map(|way| self.under(way, when, false)).collect();
        }
        // Where none holds, nothing is printed.
        for mut way in ways {
            let mut rule = Rule { conditions: way.conditions.split_off(under.len()), ..Rule::default() };
            self.settle(&mut rule);
            rules.push(rule);
        }
        match &mut rules[..] {
            [only] if only.conditions.is_empty() && only.fixed == 0 => only.ops.pop(),
            rules if rules.iter().all(|rule| rule.ops.is_empty()) => None,
            _ => Some(self.one_of(rules)),
        }
    }

    fn value(&mut self, field: FieldRow, depth: usize) -> Option<Op> {
        let window = Window { low: field.low, width: field.width };
        let derived = (field.code != rows::NONE).then(|| self.expr(field.code));
        let constant = derived.and_then(|expr| self.grammar.expr(expr).constant());
        let bits = if matches!(field.ty, Type::Bool(_) | Type::BoolInv(_)) { 1 } else { field.width };
        let target = derived.map_or(Target::Bits(window), |expr| Target::Derived { expr, bits });
        let flag = |text: Option<rows::Text>, inverted: bool| match (text, constant) {
            (Some(text), Some(value)) => {
                ((value != 0) != inverted).then(|| Op::Text(self.text(text).as_bytes().into()))
            }
            (Some(text), None) => {
                let text = self.text(text).as_bytes().into();
                let fixes = derived.and_then(|expr| self.grammar.expr(expr).fixes(true));
                Some(match fixes {
                    Some((bits, set)) if bits.count_ones() == 1 => {
                        let window = Window { low: bits.trailing_zeros() as u8, width: 1 };
                        Op::Flag { text, target: Target::Bits(window), inverted: inverted != (set == 0) }
                    }
                    _ => Op::Flag { text, target, inverted },
                })
            }
            (None, _) => Some(Op::Unsigned(target)),
        };
        match field.ty {
            Type::Bool(text) => flag(text, false),
            Type::BoolInv(text) => flag(text, true),
            Type::Uint => Some(Op::Unsigned(target)),
            Type::Int => Some(Op::Signed(target)),
            Type::Hex => Some(Op::Hex(target)),
            Type::Float => Some(Op::Float(window)),
            Type::Offset | Type::Uoffset if constant == Some(0) => None,
            Type::Offset => Some(Op::Offset { target, signed: true, required: false }),
            Type::Uoffset => Some(Op::Offset { target, signed: false, required: false }),
            Type::Branch { .. } | Type::AbsBranch { .. } => Some(Op::Branch(window)),
            Type::Enum(of) => Some(Op::Enum { of: self.texts(of), target }),
            Type::Custom => None,
            Type::Bitset { root, scopes } => {
                let leaves = self.table.roots[root as usize].leaves;
                let mut rules = self.forms(leaves, scopes, field.low, depth + 1);
                for rule in &mut rules {
                    rule.ops = arranged(std::mem::take(&mut rule.ops), &self.grammar.enums);
                }
                if rules.iter().any(|rule| rule.ops.is_empty()) {
                    // That there is no offset is what the empty template says.
                    for rule in &mut rules {
                        if let [Op::Offset { required, .. }] = &mut rule.ops[..] {
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

    fn one_of(&self, mut rules: Vec<Rule>) -> Op {
        for rule in &mut rules {
            rule.starts = starts(&rule.ops, &self.grammar.enums);
        }
        Op::Any(rules.into())
    }

    fn unshown(&self, leaf: &str, names: Span) -> u64 {
        let mut bits = 0;
        for &(_, name, value) in UNSHOWN.iter().filter(|(of, ..)| *of == leaf) {
            let Some(row) = part(self.table.names, names).iter().find(|row| self.text(row.name) == name)
            else {
                continue;
            };
            if row.cands.len > 0 {
                let field = self.table.fields[self.table.cands[row.cands.at as usize].field as usize];
                bits |= Window { low: field.low, width: field.width }.place(value);
            }
        }
        bits
    }

    fn expr(&mut self, code: u32) -> ExprId {
        if let Some(&known) = self.codes.get(&code) {
            return known;
        }
        let always = [rows::Op::Push(1), rows::Op::End];
        let ops = if code == rows::NONE { &always } else { &self.table.code[code as usize..] };
        let steps = ops.iter().map_while(|op| match *op {
            rows::Op::Push(value) => Some(Step::Const(value)),
            rows::Op::Compare { low, width, op, with } => {
                Some(Step::Compare { window: Window { low, width }, op, with })
            }
            rows::Op::Bits { low, width } => Some(Step::Bits(Window { low, width })),
            rows::Op::Generation => Some(Step::Const(i64::from(self.gpu_id))),
            rows::Op::Tabulated(index) => self.table.tabulations.get(index as usize).map(|row| {
                let bits: u32 = row.spans.iter().map(|&(_, mask, _)| mask.count_ones()).sum();
                let count = 1usize.checked_shl(bits).unwrap_or(0).div_ceil(64);
                let from = row.values as usize;
                let truths = self.table.truths.get(from..from.saturating_add(count)).unwrap_or_default();
                Step::Tabulated { spans: row.spans, truths }
            }),
            rows::Op::Not => Some(Step::Not),
            rows::Op::Binary(op) => Some(Step::Binary(op)),
            rows::Op::SkipUnless(steps) => Some(Step::SkipUnless(steps)),
            rows::Op::Skip(steps) => Some(Step::Skip(steps)),
            rows::Op::Absent { .. } => Some(Step::Const(0)),
            rows::Op::End => None,
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

    fn texts(&mut self, of: u32) -> EnumId {
        if let Some(&known) = self.enums.get(&of) {
            return known;
        }
        let row = self.table.enums[of as usize];
        let values = &self.table.values[row.values.at as usize..(row.values.at + row.values.len) as usize];
        let mut texts: Vec<(Box<[u8]>, u64)> =
            values.iter().map(|value| (self.text(value.text).as_bytes().into(), value.value)).collect();
        texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let id = EnumId(self.grammar.enums.len() as u32);
        self.grammar.enums.push(Texts { texts });
        self.enums.insert(of, id);
        id
    }

    fn text(&self, text: rows::Text) -> &'static str {
        self.table.text(text)
    }
}

/// The rows of a span.
fn part<T>(rows: &[T], Span { at, len }: Span) -> &[T] {
    rows.get(at as usize..(at + len) as usize).unwrap_or_default()
}

/// How many values of a template are derived ones.
fn derived(ops: &[Op]) -> usize {
    let count = |op: &Op| match op {
        Op::Flag { target, .. }
        | Op::Unsigned(target)
        | Op::Enum { target, .. }
        | Op::Offset { target, .. } => usize::from(matches!(target, Target::Derived { .. })),
        Op::Any(rules) => rules.iter().map(|rule| derived(&rule.ops)).sum(),
        Op::Unordered(items) => items.iter().map(|item| derived(&item.ops)).sum(),
        _ => 0,
    };
    ops.iter().map(count).sum()
}

/// Numbers may be written in ways that are not printed: in decimal for hexadecimal, `- 5` for `+ -5`.
fn readable(ops: Vec<Op>) -> Vec<Op> {
    let mut readable: Vec<Op> = Vec::with_capacity(ops.len());
    for op in ops {
        let (cut, op) = match (readable.last(), op) {
            (Some(Op::Text(text)), Op::Hex(target)) if text.ends_with(b"0x") => (2, Op::Unsigned(target)),
            (Some(Op::Text(text)), Op::Signed(target)) if text.ends_with(b" + ") => {
                (3, Op::Offset { target, signed: true, required: false })
            }
            (Some(Op::Text(text)), Op::Unsigned(target)) if text.ends_with(b" + ") => {
                (3, Op::Offset { target, signed: false, required: false })
            }
            (_, op) => (0, op),
        };
        if let Some(Op::Text(text)) = readable.last_mut().filter(|_| cut > 0) {
            *text = text[..text.len() - cut].into();
        }
        readable.retain(|op| !matches!(op, Op::Text(text) if text.is_empty()));
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
fn named(mut ops: Vec<Op>) -> Vec<Op> {
    if ops.iter().any(|op| matches!(op, Op::Name(_))) {
        return ops;
    }
    let name = |op: &Op| match op {
        Op::Text(text) => std::str::from_utf8(text).ok().and_then(name_in).map(str::len),
        _ => None,
    };
    let Some((at, end)) = ops.iter().enumerate().find_map(|(at, op)| Some((at, name(op)?))) else {
        return Vec::new();
    };
    if let Op::Text(text) = ops.remove(at) {
        let (name, rest) = text.split_at(end);
        if !rest.is_empty() {
            ops.insert(at, Op::Text(rest.into()));
        }
        ops.insert(at, Op::Name(name.into()));
    }
    ops
}

/// Lets flags stand in any order: all before the name, and runs of modifiers after it.
fn arranged(ops: Vec<Op>, enums: &[Texts]) -> Vec<Op> {
    let name = ops.iter().position(|op| matches!(op, Op::Name(_))).unwrap_or(0);
    let mut rest = ops;
    let tail = rest.split_off(name);
    let mut arranged = Vec::new();
    if let Some(items) = flags(rest) {
        arranged.push(Op::Unordered(items.into()));
    }
    let mut run: Vec<Op> = Vec::new();
    for op in tail {
        match op {
            Op::Flag { ref text, .. } if matches!(text.first(), Some(b'.' | b'(')) => run.push(op),
            Op::Enum { of, .. } if enums[of.0 as usize].is_modifier() => run.push(op),
            op => {
                flush(&mut run, &mut arranged);
                arranged.push(op);
            }
        }
    }
    flush(&mut run, &mut arranged);
    arranged
}

fn flush(run: &mut Vec<Op>, into: &mut Vec<Op>) {
    match run.len() {
        0 | 1 => into.append(run),
        _ => {
            let items = run.drain(..).map(|op| Item { ops: [op].into(), required: false });
            into.push(Op::Unordered(items.collect()));
        }
    }
}

/// What stands before the name: flags, and bracketed texts with a number in them, which must be there.
fn flags(ops: Vec<Op>) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    let mut bracket: Vec<Op> = Vec::new();
    for op in ops {
        match op {
            Op::Text(text) if bracket.is_empty() && text.iter().all(|&b| b == b' ') => {}
            Op::Text(text) => {
                let closes = text.contains(&b')');
                bracket.push(Op::Text(text.trim_ascii_end().into()));
                if closes {
                    items.push(Item { ops: std::mem::take(&mut bracket).into(), required: true });
                }
            }
            op if bracket.is_empty() => items.push(Item { ops: [op].into(), required: false }),
            op => bracket.push(op),
        }
    }
    (!items.is_empty()).then_some(items)
}
