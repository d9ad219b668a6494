//! The table of instructions that do the work of two, by opcode. The instruction tables say which generations have them.

use unwedge_isa::amdgcn::Opcode;

/// An operand of the new instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The operand of the outer instruction that is not the inner one.
    Other,
    /// The first operand of the inner instruction.
    First,
    /// The second operand of the inner instruction.
    Second,
}

/// An instruction that reads the result of another, and one that does both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// The one that reads.
    pub outer: Opcode,
    /// Which of its operands the inner one may be, one bit each.
    pub at: u8,
    /// The one whose result it reads.
    pub inner: Opcode,
    /// The one that does both.
    pub both: Opcode,
    /// Its operands.
    pub operands: [Part; 3],
}

const EITHER: u8 = 0b11;
const SECOND: u8 = 0b10;

macro_rules! rules {
    ($($outer:ident $at:ident $inner:ident => $both:ident $a:ident $b:ident $c:ident;)+) => {
        &[$(Rule {
            outer: Opcode::$outer,
            at: $at,
            inner: Opcode::$inner,
            both: Opcode::$both,
            operands: [Part::$a, Part::$b, Part::$c],
        },)+]
    };
}

/// All rules. The first one that fits is taken.
#[rustfmt::skip]
const RULES: &[Rule] = rules! {
    v_or_b32 EITHER v_and_b32 => v_and_or_b32 First Second Other;
    v_or_b32 EITHER s_and_b32 => v_and_or_b32 First Second Other;
    v_or_b32 EITHER v_lshlrev_b32 => v_lshl_or_b32 Second First Other;
    v_or_b32 EITHER s_lshl_b32 => v_lshl_or_b32 First Second Other;
    v_or_b32 EITHER v_or_b32 => v_or3_b32 Other First Second;
    v_or_b32 EITHER s_or_b32 => v_or3_b32 Other First Second;
    v_xor_b32 EITHER v_xor_b32 => v_xor3_b32 Other First Second;
    v_xor_b32 EITHER s_xor_b32 => v_xor3_b32 Other First Second;
    v_add_u32 EITHER v_lshlrev_b32 => v_lshl_add_u32 Second First Other;
    v_add_u32 EITHER s_lshl_b32 => v_lshl_add_u32 First Second Other;
    v_add_u32 EITHER v_xor_b32 => v_xad_u32 First Second Other;
    v_add_u32 EITHER v_mul_u32_u24 => v_mad_u32_u24 First Second Other;
    v_add_u32 EITHER v_mul_i32_i24 => v_mad_i32_i24 First Second Other;
    v_add_u32 EITHER v_add_u32 => v_add3_u32 Other First Second;
    v_add_u32 EITHER s_add_u32 => v_add3_u32 Other First Second;
    v_lshlrev_b32 SECOND v_add_u32 => v_add_lshl_u32 First Second Other;
    v_lshlrev_b32 SECOND s_add_u32 => v_add_lshl_u32 First Second Other;
    v_min_u32 EITHER v_min_u32 => v_min3_u32 Other First Second;
    v_max_u32 EITHER v_max_u32 => v_max3_u32 Other First Second;
    v_min_i32 EITHER v_min_i32 => v_min3_i32 Other First Second;
    v_max_i32 EITHER v_max_i32 => v_max3_i32 Other First Second;
    v_min_u32 EITHER v_max_u32 => v_maxmin_u32 First Second Other;
    v_max_u32 EITHER v_min_u32 => v_minmax_u32 First Second Other;
    v_min_i32 EITHER v_max_i32 => v_maxmin_i32 First Second Other;
    v_max_i32 EITHER v_min_i32 => v_minmax_i32 First Second Other;
};

/// Rules by the opcode of the instruction that reads; those of one opcode in the order of the table.
static BY_OUTER: [Rule; RULES.len()] = {
    let mut rules = [RULES[0]; RULES.len()];
    let mut count = 0;
    while count < rules.len() {
        let mut at = count;
        while at > 0 && rules[at - 1].outer as u16 > RULES[count].outer as u16 {
            rules[at] = rules[at - 1];
            at -= 1;
        }
        rules[at] = RULES[count];
        count += 1;
    }
    rules
};

/// The rules for an instruction that reads.
pub(super) fn rules_of(outer: Opcode) -> &'static [Rule] {
    let start = BY_OUTER.partition_point(|rule| (rule.outer as u16) < outer as u16);
    let own = BY_OUTER.get(start..).unwrap_or_default();
    let count = own.iter().take_while(|rule| rule.outer == outer).count();
    &own[..count]
}

/// Clamps between constants, the smaller first, on GPUs without the rules above.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClampRule {
    /// The minimum.
    pub min: Opcode,
    /// The maximum.
    pub max: Opcode,
    /// The median of three.
    pub med: Opcode,
    /// Whether a constant is not more than another.
    pub ordered: fn(u32, u32) -> bool,
    /// Whether the upper bound is a zero, whose sign the median does not distinguish, or a denormal, which may be flushed to one.
    pub zero: fn(u32) -> bool,
}

/// Clamps.
pub(super) const CLAMPS: &[ClampRule] = &[
    ClampRule {
        min: Opcode::v_min_f32,
        max: Opcode::v_max_f32,
        med: Opcode::v_med3_f32,
        // Not zeros of both signs, whose order the median does not have.
        ordered: |low, high| f32::from_bits(low) < f32::from_bits(high),
        zero: |high| f32::from_bits(high).abs() < f32::MIN_POSITIVE,
    },
    ClampRule {
        min: Opcode::v_min_i32,
        max: Opcode::v_max_i32,
        med: Opcode::v_med3_i32,
        ordered: |low, high| low as i32 <= high as i32,
        zero: |_| false,
    },
    ClampRule {
        min: Opcode::v_min_u32,
        max: Opcode::v_max_u32,
        med: Opcode::v_med3_u32,
        ordered: |low, high| low <= high,
        zero: |_| false,
    },
    ClampRule {
        min: Opcode::v_min_f16,
        max: Opcode::v_max_f16,
        med: Opcode::v_med3_f16,
        ordered: |low, high| half_order(low).zip(half_order(high)).is_some_and(|(low, high)| low < high),
        zero: |high| high & 0x7fff < 0x400,
    },
    ClampRule {
        min: Opcode::v_min_i16,
        max: Opcode::v_max_i16,
        med: Opcode::v_med3_i16,
        ordered: |low, high| low as i16 <= high as i16,
        zero: |_| false,
    },
    ClampRule {
        min: Opcode::v_min_u16,
        max: Opcode::v_max_u16,
        med: Opcode::v_med3_u16,
        ordered: |low, high| low as u16 <= high as u16,
        zero: |_| false,
    },
];

/// The place of a float of 16 bits in the order of numbers, in which zeros are equal; `None` of a NaN.
fn half_order(bits: u32) -> Option<i32> {
    let magnitude = (bits & 0x7fff) as i32;
    let order = if bits & 0x8000 == 0 { magnitude } else { -magnitude };
    (magnitude <= 0x7c00).then_some(order)
}

/// The instruction that does the same with its two operands in the other order. Comparisons are not in the table.
pub(crate) fn swapped(opcode: Opcode) -> Option<Opcode> {
    use Opcode as O;
    Some(match opcode {
        O::v_add_f32
        | O::v_mul_f32
        | O::v_min_f32
        | O::v_max_f32
        | O::v_add_f16
        | O::v_mul_f16
        | O::v_min_f16
        | O::v_max_f16
        | O::v_min_i32
        | O::v_max_i32
        | O::v_min_u32
        | O::v_max_u32
        | O::v_and_b32
        | O::v_or_b32
        | O::v_xor_b32
        | O::v_add_u32
        | O::v_add_co_u32
        | O::v_mul_u32_u24 => opcode,
        O::v_sub_f32 => O::v_subrev_f32,
        O::v_subrev_f32 => O::v_sub_f32,
        O::v_sub_f16 => O::v_subrev_f16,
        O::v_subrev_f16 => O::v_sub_f16,
        O::v_sub_u32 => O::v_subrev_u32,
        O::v_subrev_u32 => O::v_sub_u32,
        O::v_sub_co_u32 => O::v_subrev_co_u32,
        O::v_subrev_co_u32 => O::v_sub_co_u32,
        _ => return None,
    })
}
