//! `swizzle(…)`: the pattern by which `ds_swizzle_b32` exchanges lanes.
//!
//! Facts: AMD's ISA manuals, and LLVM 19 for the names of patterns. The names of LLVM 23 for rotations and Fourier transforms are
//! read, and written in its text where no other bits are set.

use super::Symbols;
use super::line::LineBuf;
use super::parse::{ParseError, ParseRule};
use super::scan::LineScan;

/// Each of four lanes takes one of these four.
const QUAD_PERM: i32 = 0x8000;

/// Lanes are rotated, left or right.
const ROTATE: i32 = 0xc000;
/// The bits of lane numbers are reversed.
const FFT: i32 = 0xe000;

/// Bits of a lane number.
const LANE: i32 = 31;

/// A pattern or a number, after `offset:`.
pub(super) fn parse(scan: &mut LineScan<'_>, symbols: &dyn Symbols) -> Result<i32, ParseError> {
    let at = scan.at();
    if scan.name() != "swizzle" {
        scan.back_to(at);
        let value = scan.expression(symbols)?;
        let fits = !value.float && (0..=0xffff).contains(&value.value);
        return if fits { Ok(value.value as i32) } else { Err(scan.error(at, ParseRule::Offset)) };
    }
    scan.space();
    scan.expect(b'(', ParseRule::ModifierValue)?;
    let at = scan.at();
    let mode = scan.word();
    let next = |scan: &mut LineScan<'_>, least: i64, most: i64| -> Result<i32, ParseError> {
        scan.expect(b',', ParseRule::ModifierValue)?;
        let at = scan.at();
        let value = scan.expression(symbols)?;
        let fits = !value.float && (least..=most).contains(&value.value);
        if fits { Ok(value.value as i32) } else { Err(scan.error(at, ParseRule::Range)) }
    };
    let power = |scan: &LineScan<'_>, at: usize, value: i32| {
        if value & (value - 1) == 0 { Ok(value) } else { Err(scan.error(at, ParseRule::Range)) }
    };
    let pattern = match mode {
        "QUAD_PERM" => {
            let mut pattern = QUAD_PERM;
            for lane in 0..4 {
                pattern |= next(scan, 0, 3)? << (2 * lane);
            }
            pattern
        }
        "BITMASK_PERM" => {
            scan.expect(b',', ParseRule::ModifierValue)?;
            let at = scan.at();
            let text = scan.quoted().filter(|text| text.len() == 5);
            let text = text.ok_or_else(|| scan.error(at, ParseRule::ModifierValue))?;
            let mut pattern = 0;
            for (letter, bit) in text.bytes().zip((0..5).rev()) {
                pattern |= match letter {
                    b'0' => 0,
                    b'1' => 1 << 5,
                    b'p' => 1,
                    b'i' => 1 | 1 << 10,
                    _ => return Err(scan.error(at, ParseRule::ModifierValue)),
                } << bit;
            }
            pattern
        }
        "BROADCAST" => {
            let size = next(scan, 2, 32)?;
            let size = power(scan, at, size)?;
            let lane = next(scan, 0, i64::from(size) - 1)?;
            (LANE - size + 1) | lane << 5
        }
        "SWAP" => {
            let size = next(scan, 1, 16)?;
            LANE | power(scan, at, size)? << 10
        }
        "REVERSE" => {
            let size = next(scan, 2, 32)?;
            LANE | (power(scan, at, size)? - 1) << 10
        }
        "ROTATE" => {
            let right = next(scan, 0, 1)?;
            ROTATE | right << 10 | next(scan, 0, 31)? << 5
        }
        "FFT" => FFT | next(scan, 0, 31)?,
        _ => return Err(scan.error(at, ParseRule::ModifierValue)),
    };
    scan.expect(b')', ParseRule::Parenthesis)?;
    Ok(pattern)
}

/// Appends a pattern, unless it is 0.
pub(super) fn write(pattern: i32, llvm23: bool, out: &mut LineBuf) {
    if pattern == 0 {
        return;
    }
    out.push_str(" offset:");
    let (and, or, xor) = (pattern & LANE, pattern >> 5 & LANE, pattern >> 10 & LANE);
    let mut call = |name: &str, values: &[i32]| {
        out.push_str("swizzle(");
        out.push_str(name);
        for value in values {
            out.push(b',');
            out.decimal(i64::from(*value));
        }
        out.push(b')');
    };
    let size = LANE - and + 1;
    if pattern & 0xff00 == QUAD_PERM {
        let lane = |n: i32| pattern >> (2 * n) & 3;
        call("QUAD_PERM", &[lane(0), lane(1), lane(2), lane(3)]);
    } else if llvm23 && pattern & !LANE == FFT {
        call("FFT", &[and]);
    } else if llvm23 && pattern & !(1 << 10 | LANE << 5) == ROTATE {
        call("ROTATE", &[xor & 1, or]);
    } else if pattern & QUAD_PERM != 0 {
        out.decimal(i64::from(pattern));
    } else if and == LANE && or == 0 && xor.count_ones() == 1 {
        call("SWAP", &[xor]);
    } else if and == LANE && or == 0 && xor > 0 && xor & (xor + 1) == 0 {
        call("REVERSE", &[xor + 1]);
    } else if size > 1 && size & (size - 1) == 0 && or < size && xor == 0 {
        call("BROADCAST", &[size, or]);
    } else if and & or != 0 || or & xor != 0 || xor & !and != 0 {
        // Another pattern has the same letters.
        out.decimal(i64::from(pattern));
    } else {
        out.push_str("swizzle(BITMASK_PERM,\"");
        for bit in (0..5).rev() {
            let of = |lane: i32| ((lane & and | or) ^ xor) >> bit & 1;
            out.push(match (of(0), of(LANE)) {
                (0, 0) => b'0',
                (0, _) => b'p',
                (_, 0) => b'i',
                _ => b'1',
            });
        }
        out.push_str("\")");
    }
}
