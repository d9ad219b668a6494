//! Operands of ir3 instructions: registers of each file, constants, immediates.
//!
//! Register numbers count components: `r1.y` is 5. Half registers are counted in halves of the file that both share.

use crate::table::DecodedWord;

/// Where an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// A register, 0 to 191 of a fiber or 192 to 223 (`r48.x` on) shared by a wave. [`Operand::NONE`] is none.
    Gpr(u8),
    /// A constant, by component.
    Const(u16),
    /// A register, so many components from the one that `a0.x` names.
    RelativeGpr(i16),
    /// A constant, so many components from the one that `a0.x` names.
    RelativeConst(i16),
    /// A constant that is written, so many components from the one that `a1.x` names.
    IndexedConst(u8),
    /// `a0.x` is 0, `a1.x` is 1.
    Address(u8),
    /// `p0.x` to `p0.w`.
    Predicate(u8),
    /// A value, in the operand's size; of a float its bits.
    Immediate(u32),
    /// A component of the output to a render target, `rt0.x` on: what `alias.rt` replaces.
    RenderTarget(u8),
}

/// An operand with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Where it is.
    pub kind: OperandKind,
    /// 16 bits.
    pub half: bool,
    /// `(neg)`, `(not)` of bitwise operations, or `!` of a predicate.
    pub negate: bool,
    /// `(abs)`.
    pub absolute: bool,
    /// `(r)`: the number steps with the repetitions.
    pub step: bool,
    /// `(last)`: its last use.
    pub last: bool,
    /// Components in a row.
    pub count: u8,
}

/// `r48.x`.
pub const FIRST_SHARED: u8 = 48 * 4;
/// `r55.w`.
pub const LAST_SHARED: u8 = 55 * 4 + 3;
const ADDRESS: u8 = 61 * 4;
const PREDICATE: u8 = 62 * 4;
/// `r63.x`: no register.
const NO_REGISTER: u8 = 63 * 4;

impl Operand {
    /// An operand without modifiers.
    pub const fn new(kind: OperandKind, half: bool) -> Operand {
        Operand { kind, half, negate: false, absolute: false, step: false, last: false, count: 1 }
    }

    /// `r63.x`: nothing is written.
    pub const NONE: Operand = Operand::new(OperandKind::Gpr(NO_REGISTER), false);

    /// Whether it is `r63.x`.
    pub fn is_none(&self) -> bool {
        matches!(self.kind, OperandKind::Gpr(NO_REGISTER..))
    }

    /// Whether it is a register that the fibers of a wave share.
    pub fn is_shared(&self) -> bool {
        matches!(self.kind, OperandKind::Gpr(FIRST_SHARED..=LAST_SHARED))
    }

    /// Whether it is the same for all fibers of a wave.
    pub fn is_uniform(&self) -> bool {
        use OperandKind::{Const, Immediate, IndexedConst};
        self.is_shared() || matches!(self.kind, Const(_) | IndexedConst(_) | Immediate(_))
    }

    /// With so many components.
    pub(super) const fn components(self, count: u8) -> Operand {
        Operand { count, ..self }
    }
}

/// What a register number of the encoding names.
pub(super) fn register(number: u8) -> OperandKind {
    match number {
        ADDRESS..PREDICATE => OperandKind::Address(number - ADDRESS),
        PREDICATE..NO_REGISTER => OperandKind::Predicate(number - PREDICATE),
        _ => OperandKind::Gpr(number),
    }
}

pub(super) fn signed(value: u64, bits: u32) -> i32 {
    ((value << (64 - bits)) as i64 >> (64 - bits)) as i32
}

/// The floats that instructions have numbers for, as 32 bits.
const FLOAT_TABLE: [f32; 12] = [
    0.0,
    0.5,
    1.0,
    2.0,
    std::f32::consts::E,
    std::f32::consts::PI,
    std::f32::consts::FRAC_1_PI,
    std::f32::consts::LN_2,
    std::f32::consts::LOG2_E,
    std::f32::consts::LOG10_2,
    std::f32::consts::LOG2_10,
    4.0,
];

/// An operand that is a nested bitset of the instruction. `None`: no form of it matches.
pub(super) fn nested(word: &DecodedWord<'_>, name: &str, half: bool) -> Option<Operand> {
    let form = word.nested(name)?;
    // A relative destination has the fields of both forms.
    let relative = form.name() == "cat1-dst" && form.field("OFFSET").is_some();
    let inner = ["SRC", "CONST", "DST", "REG"].into_iter().find_map(|name| form.nested(name));
    let inner = inner.filter(|_| !relative);
    let kind = kind(inner.as_ref().unwrap_or(&form), half)?;
    let flag = |name: &str| form.field(name).is_some_and(|bit| bit != 0);
    let modifiers = form.field("ABSNEG").unwrap_or(0);
    let kind = match kind {
        OperandKind::Gpr(number) if word.field(&format!("{name}_CONST")).is_some_and(|bit| bit != 0) => {
            OperandKind::Const(number.into())
        }
        kind => kind,
    };
    let half = half && !matches!(kind, OperandKind::Address(_) | OperandKind::Predicate(_));
    Some(Operand {
        negate: modifiers & 1 != 0,
        absolute: modifiers & 2 != 0,
        last: flag("LAST"),
        ..Operand::new(kind, half)
    })
}

fn kind(form: &DecodedWord<'_>, half: bool) -> Option<OperandKind> {
    let number = |high: u64| (high << 2 | form.field("SWIZ").unwrap_or(0)) as u16;
    // Of an immediate form both fields are there.
    if let Some(gpr) = form.field("GPR").filter(|_| form.field("IMMED").is_none()) {
        let plain = matches!(form.name(), "cat6-src" | "cat6-src-const-or-gpr");
        let number = number(gpr) as u8;
        return Some(if plain { OperandKind::Gpr(number) } else { register(number) });
    }
    if let Some(target) = form.field("RT") {
        return Some(OperandKind::RenderTarget(number(target) as u8));
    }
    if form.name() == "cat3-src-const-or-immed" {
        return Some(match form.field("IMMED") {
            Some(value) => OperandKind::Immediate(value as u32),
            None => OperandKind::Const(number(form.field("CONST")?)),
        });
    }
    if let Some(constant) = form.field("CONST") {
        return Some(OperandKind::Const(number(constant)));
    }
    if let Some(offset) = form.field("OFFSET") {
        let signed = signed(offset, 10) as i16;
        return match form.name() {
            "reg-relative-gpr" | "cat3-src-relative-gpr" => Some(OperandKind::RelativeGpr(signed)),
            "reg-relative-const" | "cat3-src-relative-const" => Some(OperandKind::RelativeConst(signed)),
            "cat1-dst" => Some(OperandKind::RelativeGpr(offset as i16)),
            "const-dst-imm" => Some(OperandKind::Const(offset as u16)),
            "const-dst-a1" => Some(OperandKind::IndexedConst(offset as u8)),
            _ => None,
        };
    }
    let value = form.field("IMMED")?;
    let value = match form.name() {
        "mulitsrc-immed" => signed(value, 11) as u32,
        "multisrc-immed-flut-full" | "multisrc-immed-flut-half" => {
            let value = FLOAT_TABLE.get(value as usize)?.to_bits();
            return Some(OperandKind::Immediate(if half {
                super::semantics::float::narrow(value, super::semantics::Round::Even)
            } else {
                value
            }));
        }
        _ => value as u32,
    };
    Some(OperandKind::Immediate(if half { value & 0xffff } else { value }))
}
