//! The grammar of the assembler: the table's display templates read backwards.
//!
//! What the disassembler prints from a field, the assembler reads into it; so a [`TemplateRule`] is one template with the
//! fields at their place in the word, and a field that is itself a bit set is a list of alternatives. Bits that no text
//! shows (precision, nop counts, descriptor modes …) follow from expressions that must come out as the text says: the
//! conditions and derived fields of the table. Nothing here knows an instruction.

use crate::table::binary;
use crate::table::expr::Binary;
use crate::table::rows::{MAX_SPANS, MAX_STACK};

/// Bits of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BitWindow {
    pub low: u8,
    pub width: u8,
}

impl BitWindow {
    /// As many ones as the window is wide.
    pub fn ones(self) -> u64 {
        if self.width >= 64 { u64::MAX } else { (1 << self.width) - 1 }
    }

    /// The window's bits in the word.
    pub fn mask(self) -> u64 {
        self.place(u64::MAX)
    }

    /// A value (its low bits) where the window lies.
    pub fn place(self, value: u64) -> u64 {
        (value & self.ones()).checked_shl(u32::from(self.low)).unwrap_or(0)
    }

    /// The value of the window's bits.
    pub fn take(self, word: u64) -> u64 {
        word.checked_shr(u32::from(self.low)).unwrap_or(0) & self.ones()
    }
}

/// Index of a condition or derived value in [`Grammar::exprs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ExprId(pub u32);

/// Index of an enum in [`Grammar::enums`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EnumId(pub u32);

/// Where a value that was read goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ValueTarget {
    /// Into these bits.
    Bits(BitWindow),
    /// Nowhere: this expression, cut to so many bits, must come out as the value.
    Derived { expr: ExprId, bits: u8 },
}

impl ValueTarget {
    /// Bits that the value may have.
    pub fn width(self) -> u8 {
        match self {
            ValueTarget::Bits(window) => window.width,
            ValueTarget::Derived { bits, .. } => bits,
        }
    }

    /// The bits of a number with a sign; if they do not hold it, the magnitudes of the least and the greatest number.
    pub fn signed(self, negative: bool, value: u64) -> Result<u64, (u64, u64)> {
        let ones = BitWindow { low: 0, width: self.width() }.ones();
        let half = ones / 2;
        // Words and halves may be written without a sign as well.
        let most = if matches!(self.width(), 16 | 32) { ones } else { half };
        match negative {
            true if value > half + 1 => Err((half + 1, most)),
            true => Ok(value.wrapping_neg() & ones),
            false if value > most => Err((half + 1, most)),
            false => Ok(value & ones),
        }
    }
}

/// A step of a template.
#[derive(Clone, Debug)]
pub(super) enum TemplateOp {
    /// Text that must stand there; a blank stands for any amount.
    Text(Box<[u8]>),
    /// The instruction's name: text that no letter, digit or underscore may follow.
    Name(Box<[u8]>),
    /// Text that stands there if the value is one (if `inverted`: zero).
    Flag { text: Box<[u8]>, target: ValueTarget, inverted: bool },
    /// A number without a sign.
    Unsigned(ValueTarget),
    /// A number with a sign.
    Signed(ValueTarget),
    /// The digits of a hexadecimal number; `0x` before them has been read.
    Hex(ValueTarget),
    /// A float of the window's width, 16 or 32.
    Float(BitWindow),
    /// `+5`, `-5` (if `signed`), or nothing for zero unless it is `required`; blanks may stand around the sign.
    Offset { target: ValueTarget, signed: bool, required: bool },
    /// A distance in instructions, or a label.
    Branch(BitWindow),
    /// One of the enum's texts, the longest that fits; or the number of a value that has none.
    Enum { of: EnumId, target: ValueTarget },
    /// One of these, the first that fits.
    Any(Box<[TemplateRule]>),
    /// These in any order.
    Unordered(Box<[UnorderedItem]>),
}

/// A part of [`TemplateOp::Unordered`].
#[derive(Clone, Debug)]
pub(super) struct UnorderedItem {
    pub ops: Box<[TemplateOp]>,
    /// It must stand there; otherwise it is one step that may match nothing.
    pub required: bool,
}

/// A template with what holds when it applies.
#[derive(Clone, Debug, Default)]
pub(super) struct TemplateRule {
    pub ops: Vec<TemplateOp>,
    /// Bits that are fixed, and their value.
    pub fixed: u64,
    pub value: u64,
    /// Conditions that hold, and those that do not: of the overrides.
    pub conditions: Vec<(ExprId, bool)>,
    /// Bits that are set where neither the text nor what follows from it says otherwise.
    pub unshown: u64,
    /// ASCII bytes that its text can start with, one bit each; all of them if it may be empty.
    pub starts: u128,
}

impl TemplateRule {
    /// Whether its text may start with this byte.
    pub fn may_start(&self, byte: u8) -> bool {
        starts_with(self.starts, byte)
    }

    /// The instruction's name, for looking the rule up.
    pub fn name(&self) -> &[u8] {
        let name = self.ops.iter().find_map(|op| match op {
            TemplateOp::Name(name) => Some(&**name),
            _ => None,
        });
        name.unwrap_or_default()
    }
}

impl TemplateOp {
    /// Bytes that what it reads can start with, and whether it may read nothing.
    pub fn starts(&self, enums: &[Texts]) -> (u128, bool) {
        const DIGITS: u128 = 0x3ff << b'0';
        match self {
            TemplateOp::Text(text) | TemplateOp::Name(text) => {
                text.iter().find(|&&b| b != b' ').map_or((0, true), |&b| (byte_bit(b), false))
            }
            TemplateOp::Flag { text, .. } => (text.first().map_or(0, |&b| byte_bit(b)), true),
            TemplateOp::Unsigned(_) => (DIGITS, false),
            TemplateOp::Signed(_) => (DIGITS | byte_bit(b'-'), false),
            TemplateOp::Hex(_) | TemplateOp::Float(_) | TemplateOp::Branch(_) => (u128::MAX, false),
            TemplateOp::Offset { required, .. } => (byte_bit(b'+') | byte_bit(b'-'), !required),
            TemplateOp::Enum { of, .. } => {
                let texts = enums.get(of.0 as usize).map_or(&[][..], |texts| &texts.texts);
                let starts =
                    texts.iter().filter_map(|(text, _)| text.first()).fold(DIGITS, |a, &b| a | byte_bit(b));
                (starts, texts.iter().any(|(text, _)| text.is_empty()))
            }
            TemplateOp::Any(rules) => (
                rules.iter().fold(0, |starts, rule| starts | rule.starts),
                rules.iter().any(|rule| rule.starts == u128::MAX),
            ),
            TemplateOp::Unordered(items) => {
                let starts = items.iter().filter_map(|item| item.ops.first()).map(|op| op.starts(enums).0);
                (starts.fold(0, |all, starts| all | starts), !items.iter().any(|item| item.required))
            }
        }
    }
}

pub(super) fn starts_with(starts: u128, byte: u8) -> bool {
    if byte < 128 { starts >> byte & 1 == 1 } else { starts == u128::MAX }
}

/// The bit of an ASCII byte.
fn byte_bit(byte: u8) -> u128 {
    1u128.checked_shl(u32::from(byte)).unwrap_or(0)
}

/// Bytes that a template's text can start with; all of them if it may be empty.
pub(super) fn starts(ops: &[TemplateOp], enums: &[Texts]) -> u128 {
    let mut all = 0;
    for op in ops {
        let (starts, empty) = op.starts(enums);
        all |= starts;
        if !empty {
            return all;
        }
    }
    u128::MAX
}

/// The texts of an enum, longest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    pub texts: Vec<(Box<[u8]>, u64)>,
}

/// An expression over bits of the word: steps of the table's own code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expr {
    pub steps: Vec<ExprStep>,
    /// Bits of the word that it reads.
    pub reads: u64,
}

impl Texts {
    /// Whether it is a bracketed word, or nothing for zero.
    pub fn is_modifier(&self) -> bool {
        self.texts
            .iter()
            .all(|(text, value)| if text.is_empty() { *value == 0 } else { text.starts_with(b"(") })
            && self.texts.iter().any(|(text, _)| text.is_empty())
    }
}

/// A step, on a stack of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExprStep {
    Const(i64),
    Bits(BitWindow),
    /// Bits compared with a constant.
    Compare {
        window: BitWindow,
        op: Binary,
        with: i64,
    },
    /// The whole expression: its value, 0 or 1, for each combination of the bits that it reads.
    Tabulated {
        /// Lowest bit, mask after shifting down, place in the index.
        spans: [(u8, u16, u8); MAX_SPANS],
        truths: &'static [u64],
    },
    Not,
    Binary(Binary),
    /// Takes a value; when it is 0, skips that many steps.
    SkipUnless(u16),
    Skip(u16),
}

impl Expr {
    pub fn new(steps: Vec<ExprStep>) -> Expr {
        let reads = steps.iter().fold(0, |reads, step| match step {
            ExprStep::Bits(window) | ExprStep::Compare { window, .. } => reads | window.mask(),
            ExprStep::Tabulated { spans, .. } => {
                spans.iter().fold(reads, |reads, &(low, mask, _)| reads | u64::from(mask) << (low & 63))
            }
            _ => reads,
        });
        Expr { steps, reads }
    }

    /// The value for a word. What the stack does not hold is zero.
    #[inline]
    pub fn eval(&self, word: u64) -> i64 {
        match self.steps[..] {
            [ExprStep::Bits(window)] => window.take(word) as i64,
            [ExprStep::Compare { window, op, with }] => binary(op, window.take(word) as i64, with),
            [ExprStep::Tabulated { spans, truths }] => tabulated(&spans, truths, word),
            _ => self.run(word),
        }
    }

    #[inline(never)]
    fn run(&self, word: u64) -> i64 {
        let mut stack = [0i64; MAX_STACK + 1];
        let mut depth = 0usize;
        let mut at = 0usize;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            let value = match *step {
                ExprStep::Const(value) => value,
                ExprStep::Bits(window) => window.take(word) as i64,
                ExprStep::Compare { window, op, with } => binary(op, window.take(word) as i64, with),
                ExprStep::Tabulated { spans, truths } => tabulated(&spans, truths, word),
                ExprStep::Not => {
                    depth = depth.saturating_sub(1);
                    i64::from(stack[depth] == 0)
                }
                ExprStep::Binary(op) => {
                    depth = depth.saturating_sub(2);
                    binary(op, stack[depth], stack[depth + 1])
                }
                ExprStep::SkipUnless(steps) => {
                    depth = depth.saturating_sub(1);
                    at += if stack[depth] == 0 { usize::from(steps) } else { 0 };
                    continue;
                }
                ExprStep::Skip(steps) => {
                    at += usize::from(steps);
                    continue;
                }
            };
            if depth >= MAX_STACK {
                return 0;
            }
            stack[depth] = value;
            depth += 1;
        }
        stack[depth.saturating_sub(1)]
    }

    /// The bits that are fixed, and their value, if it says no more than that.
    pub fn fixes(&self, holds: bool) -> Option<(u64, u64)> {
        const FEW: u32 = 3;
        if self.reads == 0 || self.reads.count_ones() > FEW {
            return None;
        }
        // Every subset of the bits, lowest first.
        let mut subset = 0u64;
        let mut only = None;
        loop {
            if (self.eval(subset) != 0) == holds {
                if only.is_some() {
                    return None;
                }
                only = Some((self.reads, subset));
            }
            subset = subset.wrapping_sub(self.reads) & self.reads;
            if subset == 0 {
                return only;
            }
        }
    }

    /// Its value if it reads no bits.
    pub fn constant(&self) -> Option<i64> {
        (self.reads == 0).then(|| self.eval(0))
    }
}

fn tabulated(spans: &[(u8, u16, u8); MAX_SPANS], truths: &[u64], word: u64) -> i64 {
    let at = spans
        .iter()
        .fold(0u64, |at, &(low, mask, place)| at | (word >> (low & 63) & u64::from(mask)) << (place & 63));
    truths.get((at >> 6) as usize).map_or(0, |truths| (truths >> (at & 63) & 1) as i64)
}

/// The value of the low `width` bits as two's complement.
pub(super) fn sign_extend(value: u64, width: u8) -> i64 {
    let unused = 64u32.saturating_sub(u32::from(width)).min(63);
    ((value << unused) as i64) >> unused
}

/// Everything the matcher reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Grammar {
    pub exprs: Vec<Expr>,
    pub enums: Vec<Texts>,
}

impl Grammar {
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }

    pub fn texts(&self, id: EnumId) -> &Texts {
        &self.enums[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(low: u8, width: u8) -> ExprStep {
        ExprStep::Bits(BitWindow { low, width })
    }

    #[test]
    fn expressions_read_the_bits_of_the_word() {
        let split = Expr::new(vec![
            bits(9, 5),
            ExprStep::Const(8),
            ExprStep::Binary(Binary::Shl),
            bits(32, 8),
            ExprStep::Binary(Binary::BitOr),
        ]);
        assert_eq!(split.eval(0x98 << 32 | 0x1f << 9), 0x1f98);
        assert_eq!(split.reads, 0xff << 32 | 0x1f << 9);
        assert_eq!(split.constant(), None);
    }

    #[test]
    fn a_skipped_step_has_no_effect() {
        let choose = Expr::new(vec![
            bits(0, 1),
            ExprStep::SkipUnless(2),
            ExprStep::Const(5),
            ExprStep::Skip(1),
            ExprStep::Const(7),
        ]);
        assert_eq!((choose.eval(1), choose.eval(0)), (5, 7));
    }

    #[test]
    fn negative_numbers() {
        assert_eq!(sign_extend(0x1f98, 13), -104);
        assert_eq!(sign_extend(0x0f98, 13), 0xf98);
        assert_eq!(sign_extend(u64::MAX, 64), -1);
    }
}
