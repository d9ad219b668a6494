//! Other readings of the same code, where the language of the shaders leaves the sign of a zero open.
//!
//! Vulkan asks for the sign of zeros only in shaders that declare `SignedZeroInfNanPreserve`; these do not. The reference
//! makes use of that in two ways, and gives other bits than arithmetic by IEEE 754 does:
//!
//! - it reads `x + 0.0` as `x`, which keeps a negative zero; the sum of zeros of both signs is positive. Where a compiler has
//!   fused a product with the sum, `a * b + 0.0` is `a * b` by the same reading;
//! - of zeros of both signs its minimum and maximum give the one that stands second (or first, where a compiler has swapped
//!   them); hardware orders them.
//!
//! A reading changes the code of every program in the same way and knows nothing of what must come out.

use unwedge_isa::amdgcn::{Gpu, listing, source};

/// What minima and maxima give of operands that are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Equal {
    /// As hardware orders zeros.
    Ordered,
    First,
    Second,
}

/// Readings of zeros, those with fewer differences from hardware first.
pub const READINGS: [Equal; 3] = [Equal::Ordered, Equal::Second, Equal::First];

/// Registers that no shader uses.
const MASK: [&str; 2] = ["s100", "s[100:101]"];
const SCRATCH: &str = "v250";

/// Whether an operand may hold a zero of either sign: the shaders keep what differs between lanes in vector registers.
fn vector(operand: &str) -> bool {
    operand.trim_start_matches(['-', '|']).starts_with('v')
}

/// A minimum or maximum of two operands.
fn choice(least: bool, equal: Equal, gpu: &Gpu, dst: &str, a: &str, b: &str) -> String {
    let relation = match (least, equal == Equal::First) {
        (true, false) => "lt",
        (true, true) => "le",
        (false, false) => "gt",
        (false, true) => "ge",
    };
    let mask = MASK[usize::from(gpu.wave64())];
    format!("v_cmp_{relation}_f32_e64 {mask}, {a}, {b}\nv_cndmask_b32_e64 {dst}, {b}, {a}, {mask}\n")
}

/// A line of code by a reading, if that is another one.
fn reading(line: &str, equal: Equal, gpu: &Gpu) -> Option<String> {
    let (name, rest) = line.trim().split_once(' ')?;
    // gfx12 has other names for minimum and maximum.
    let name = name.trim_end_matches("_e32").trim_end_matches("_e64").replace("_num_f32", "_f32");
    let operands: Vec<&str> = rest.split(", ").collect();
    // Modifiers of the result stand behind the last operand.
    let plain = !operands.last()?.contains(' ');
    Some(match (name.as_str(), operands.as_slice()) {
        ("v_add_f32", [dst, "0", x] | [dst, x, "0"]) | ("v_sub_f32", [dst, x, "0"]) => {
            format!("v_mul_f32_e64 {dst}, 1.0, {x}\n")
        }
        // The sum of zero and a negated value.
        ("v_sub_f32", [dst, "0", x]) => format!("v_mul_f32_e64 {dst}, -1.0, {x}\n"),
        ("v_mad_f32" | "v_fma_f32", [dst, a, b, "0"]) => format!("v_mul_f32_e64 {dst}, {a}, {b}\n"),
        ("v_min_f32" | "v_max_f32", [dst, a, b])
            if plain && equal != Equal::Ordered && vector(a) && vector(b) =>
        {
            choice(name == "v_min_f32", equal, gpu, dst, a, b)
        }
        ("v_min3_f32" | "v_max3_f32" | "v_maxmin_f32" | "v_minmax_f32", [dst, a, b, c])
            if plain && equal != Equal::Ordered && [a, b, c].into_iter().all(|x| vector(x)) =>
        {
            let [first, second] = match name.as_str() {
                "v_min3_f32" => [true, true],
                "v_max3_f32" => [false, false],
                "v_maxmin_f32" => [false, true],
                _ => [true, false],
            };
            let one = choice(first, equal, gpu, SCRATCH, a, b);
            one + &choice(second, equal, gpu, dst, SCRATCH, c)
        }
        _ => return None,
    })
}

/// The code by a reading.
pub fn read(words: &[u32], equal: Equal, gpu: &Gpu) -> Vec<u32> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut text = String::new();
    listing::write(&bytes, gpu, &listing::AmdListingOptions::default(), &mut text, &mut |_, _| {});
    let made: String =
        text.lines().map(|line| reading(line, equal, gpu).unwrap_or_else(|| format!("{line}\n"))).collect();
    let made = source::assemble(&made, gpu);
    assert!(made.errors.is_empty(), "{:?}", made.errors);
    let (dwords, _) = made.sections[0].bytes.as_chunks::<4>();
    dwords.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}
