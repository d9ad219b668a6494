//! A table and its look-ups: roots, leaves, the decode tree, expressions.

use super::expr::Binary;
use super::read::{DecodeFault, DecodedWord};
use super::rows::*;
use std::borrow::Cow;

/// A flattened description of one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct IsaTable<'t> {
    pub(crate) texts: &'t [Cow<'static, str>],
    pub(crate) roots: &'t [RootRow],
    pub(crate) nodes: &'t [DecodeNode],
    pub(crate) picks: &'t [u32],
    pub(crate) leaves: &'t [LeafRow],
    pub(crate) scopes: &'t [Scope],
    pub(crate) shows: &'t [ShowRow],
    pub(crate) asserts: &'t [Assert],
    pub(crate) pieces: &'t [TemplatePart],
    pub(crate) cands: &'t [FieldCandidate],
    pub(crate) fields: &'t [FieldRow],
    pub(crate) names: &'t [NameRow],
    pub(crate) enums: &'t [EnumRow],
    pub(crate) values: &'t [ValueRow],
    pub(crate) code: &'t [ExprOp],
    pub(crate) renders: &'t [TextId],
    pub(crate) tabulations: &'t [Tabulation],
    pub(crate) truths: &'t [u64],
}

/// A family of encodings of the same width with its own decode tree: `instruction`, or a source operand's forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Root(pub(crate) u32);

/// One encoding of a root: an instruction, or one form of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaf(pub(crate) u32);

impl Leaf {
    /// Its number in the table.
    pub(crate) fn index(self) -> u32 {
        self.0
    }
}

/// How a field's bits are read and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind<'t> {
    /// Decimal.
    Uint,
    /// Two's complement of the field's width, decimal.
    Int,
    /// Hexadecimal digits without prefix.
    Hex,
    /// Signed, always with its sign; zero shows nothing.
    Offset,
    /// `+N`; zero shows nothing.
    Uoffset,
    /// IEEE half (16 bits) or single (32 bits) precision.
    Float,
    /// Shows its text when set; `0` or `1` where it has none.
    Bool(Option<&'t str>),
    /// Shows its text when clear; the inverted bit where it has none.
    BoolInv(Option<&'t str>),
    /// A value of an enum; `text` is absent where the enum does not name the value.
    Enum {
        /// What the table calls the value.
        text: Option<&'t str>,
    },
    /// Signed distance in instructions from this one.
    Branch {
        /// It calls a function.
        call: bool,
    },
    /// Index of an instruction.
    AbsBranch {
        /// It calls a function.
        call: bool,
    },
    /// Shown by the instruction set's own code.
    Custom,
}

/// The rows of a span; none where the table is inconsistent.
#[inline]
pub(crate) fn rows<T>(all: &[T], span: RowSpan) -> &[T] {
    all.get(span.at as usize..span.at.saturating_add(span.len) as usize).unwrap_or_default()
}

/// `width` bits from `low` on, at most 64.
#[inline]
pub(crate) fn bits(word: u128, low: u8, width: u8) -> u64 {
    let value = if low < 64 && low + width <= 64 { word as u64 >> low } else { (word >> (low & 127)) as u64 };
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

/// `width` ones from `low` on.
pub(crate) fn ones(low: u8, width: u8) -> u128 {
    let all = if width >= 128 { u128::MAX } else { (1u128 << width) - 1 };
    all << (low & 127)
}

impl<'t> IsaTable<'t> {
    #[inline]
    pub(crate) fn text(&self, text: TextId) -> &'t str {
        self.texts.get(text.0 as usize).map_or("", |text| text)
    }

    #[inline]
    pub(crate) fn leaf_row(&self, leaf: Leaf) -> Option<&'t LeafRow> {
        self.leaves.get(leaf.0 as usize)
    }

    /// The root called `name`: `instruction` for instructions, `multisrc` and the like for operands.
    pub fn root(&self, name: &str) -> Option<Root> {
        self.roots.iter().position(|root| self.text(root.name) == name).map(|at| Root(at as u32))
    }

    /// All roots, in the order of the description.
    pub fn roots(&self) -> impl Iterator<Item = Root> + use<> {
        (0..self.roots.len() as u32).map(Root)
    }

    /// Bits of a word of `root`, at most 128.
    pub fn width(&self, root: Root) -> u32 {
        self.roots.get(root.0 as usize).map_or(0, |root| root.width)
    }

    /// All encodings of `root`, in the order of the description.
    pub fn leaves(&self, root: Root) -> impl Iterator<Item = Leaf> + use<> {
        let span = self.roots.get(root.0 as usize).map_or(RowSpan { at: 0, len: 0 }, |root| root.leaves);
        (span.at..span.at.saturating_add(span.len)).map(Leaf)
    }

    /// The encoding of `root` called `name` (`ldg.a`, `multisrc-gpr`) that exists in `generation`.
    pub fn leaf(&self, root: Root, name: &str, generation: u32) -> Option<Leaf> {
        self.leaves(root).find(|&leaf| {
            let (min, max) = self.generations(leaf);
            self.name(leaf) == name && (min..=max).contains(&generation)
        })
    }

    /// The root it belongs to.
    pub fn root_of(&self, leaf: Leaf) -> Root {
        Root(self.leaf_row(leaf).map_or(0, |row| row.root))
    }

    /// Its name in the description. Encodings of different generations may share one.
    pub fn name(&self, leaf: Leaf) -> &'t str {
        self.leaf_row(leaf).map_or("", |row| self.text(row.name))
    }

    /// What the display shows as its name; differs from `name` where two encodings share a mnemonic (`addi`, `add`).
    pub fn mnemonic(&self, leaf: Leaf) -> &'t str {
        self.leaf_row(leaf).map_or("", |row| self.text(row.title))
    }

    /// First and last generation it exists in.
    pub fn generations(&self, leaf: Leaf) -> (u32, u32) {
        self.leaf_row(leaf).map_or((1, 0), |row| (row.min, row.max))
    }

    /// The bits that select the encoding (1 in the first), and what they are (the second).
    pub fn pattern(&self, leaf: Leaf) -> (u128, u128) {
        self.leaf_row(leaf).map_or((0, 0), |row| (row.mask, row.value))
    }

    /// The bits that may be anything and mean nothing.
    pub fn ignored(&self, leaf: Leaf) -> u128 {
        self.leaf_row(leaf).map_or(0, |row| row.ignored)
    }

    /// Finds the encoding `word` is of, by decode tree; `None` where no pattern matches, or two do.
    #[inline]
    pub fn decode<'s>(&'s self, root: Root, word: u128, generation: u32) -> Option<DecodedWord<'s>> {
        let scopes = self.roots.get(root.0 as usize)?.scopes;
        let (leaf, scope) = self.find(root.0, scopes, 0, word, generation)?;
        Some(DecodedWord { table: self, leaf, scope, base: 0, word, generation })
    }

    /// The leaf that the bits from `base` on are of, and its scope among those from `scopes` on.
    #[inline]
    pub(crate) fn find(
        &self,
        root: u32,
        scopes: u32,
        base: u8,
        word: u128,
        generation: u32,
    ) -> Option<(Leaf, u32)> {
        let root = self.roots.get(root as usize)?;
        let word = word >> (base & 127);
        let mut node = self.nodes.get(root.node as usize)?;
        while let DecodeNode::Switch { low, bits: count, first } = *node {
            node = self.nodes.get(first as usize + bits(word, low, count) as usize)?;
        }
        let DecodeNode::Leaves { at, len } = *node else { return None };
        let mut found = None;
        for &pick in rows(self.picks, RowSpan { at, len }) {
            let row = self.leaves.get((root.leaves.at + pick) as usize)?;
            if word & row.mask == row.value && row.min <= generation && generation <= row.max {
                if found.is_some() {
                    return None;
                }
                found = Some((Leaf(root.leaves.at + pick), scopes + pick));
            }
        }
        found
    }

    /// Why a word does not decode, when it is that two encodings match.
    pub fn conflict(&self, root: Root, word: u128, generation: u32) -> Option<DecodeFault<'t>> {
        let mut matching = self
            .leaves(root)
            .filter_map(|leaf| self.leaf_row(leaf))
            .filter(|row| word & row.mask == row.value && row.min <= generation && generation <= row.max);
        let (first, second) = (matching.next()?, matching.next()?);
        Some(DecodeFault::Conflict { first: self.text(first.owner), second: self.text(second.owner) })
    }

    /// The value an enum of the description has under `text`.
    pub fn enum_value(&self, name: &str, text: &str) -> Option<u64> {
        let row = self.enums.iter().find(|row| self.text(row.name) == name)?;
        rows(self.values, row.values).iter().find(|v| self.text(v.text) == text).map(|v| v.value)
    }

    #[inline]
    pub(crate) fn enum_text(&self, index: u32, value: u64) -> Option<&'t str> {
        let values = rows(self.values, self.enums.get(index as usize)?.values);
        let dense = values.get(value as usize).filter(|row| row.value == value);
        dense.or_else(|| values.iter().find(|row| row.value == value)).map(|row| self.text(row.text))
    }

    /// Computes an expression; `absent` stands in for names that mean nothing here.
    #[inline(always)]
    pub(crate) fn evaluate(
        &self,
        code: u32,
        word: u128,
        generation: u32,
        absent: &mut impl FnMut(TextId, u16, u8) -> u64,
    ) -> u64 {
        let code = self.code.get(code as usize..).unwrap_or_default();
        match *code {
            [ExprOp::Compare { low, width, op, with }, ExprOp::End, ..] => {
                binary(op, bits(word, low, width) as i64, with) as u64
            }
            [ExprOp::Tabulated(index), ..] => self.tabulated(index, word),
            _ => run(code, word, generation, absent),
        }
    }

    #[inline]
    fn tabulated(&self, index: u32, word: u128) -> u64 {
        let Some(row) = self.tabulations.get(index as usize) else { return 0 };
        let word = word as u64;
        let at = row.spans.iter().fold(0u64, |at, &(low, mask, place)| {
            at | (word >> (low & 63) & u64::from(mask)) << (place & 63)
        });
        self.truths.get(row.values as usize + (at >> 6) as usize).map_or(0, |values| values >> (at & 63) & 1)
    }

    /// Whether a condition holds; the absent one does.
    #[inline]
    pub(crate) fn holds(
        &self,
        when: u32,
        word: u128,
        generation: u32,
        absent: &mut impl FnMut(TextId, u16, u8) -> u64,
    ) -> bool {
        when == NONE || self.evaluate(when, word, generation, absent) != 0
    }

    /// The bits of a field, or the value of its expression.
    #[inline]
    pub(crate) fn value(
        &self,
        field: &FieldRow,
        word: u128,
        generation: u32,
        absent: &mut impl FnMut(TextId, u16, u8) -> u64,
    ) -> u64 {
        match field.code {
            NONE => bits(word, field.low, field.width),
            code => self.evaluate(code, word, generation, absent),
        }
    }
}

/// Runs the steps of an expression.
#[inline(never)]
pub(crate) fn run(
    code: &[ExprOp],
    word: u128,
    generation: u32,
    absent: &mut impl FnMut(TextId, u16, u8) -> u64,
) -> u64 {
    let mut stack = [0i64; MAX_STACK];
    let mut top = 0usize;
    let mut at = 0usize;
    while let Some(op) = code.get(at) {
        at += 1;
        let value = match *op {
            ExprOp::Push(value) => value,
            ExprOp::Bits { low, width } => bits(word, low, width) as i64,
            ExprOp::Compare { low, width, op, with } => binary(op, bits(word, low, width) as i64, with),
            ExprOp::Generation => i64::from(generation),
            ExprOp::Absent { name, expr, up } => absent(name, expr, up) as i64,
            ExprOp::Not => {
                top = top.saturating_sub(1);
                i64::from(stack[top % MAX_STACK] == 0)
            }
            ExprOp::Binary(op) => {
                top = top.saturating_sub(2);
                binary(op, stack[top % MAX_STACK], stack[(top + 1) % MAX_STACK])
            }
            ExprOp::SkipUnless(count) => {
                top = top.saturating_sub(1);
                if stack[top % MAX_STACK] == 0 {
                    at += usize::from(count);
                }
                continue;
            }
            ExprOp::Skip(count) => {
                at += usize::from(count);
                continue;
            }
            ExprOp::Tabulated(_) | ExprOp::End => break,
        };
        stack[top % MAX_STACK] = value;
        top += 1;
    }
    stack[top.saturating_sub(1) % MAX_STACK] as u64
}

#[inline]
pub(crate) fn binary(op: Binary, a: i64, b: i64) -> i64 {
    match op {
        Binary::Or => i64::from(a != 0 || b != 0),
        Binary::And => i64::from(a != 0 && b != 0),
        Binary::BitOr => a | b,
        Binary::BitAnd => a & b,
        Binary::Eq => i64::from(a == b),
        Binary::Ne => i64::from(a != b),
        Binary::Le => i64::from(a <= b),
        Binary::Ge => i64::from(a >= b),
        Binary::Lt => i64::from(a < b),
        Binary::Gt => i64::from(a > b),
        Binary::Shl => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0),
        Binary::Shr => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)).unwrap_or(0),
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
    }
}
