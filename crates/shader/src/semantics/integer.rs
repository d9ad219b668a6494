//! Integers and booleans.

use super::Eval;
use crate::ir::{Base, Op};

/// Sign-extends a lane.
pub(super) fn signed(base: Base, bits: u64) -> i64 {
    let unused = 64 - base.bits().max(1);
    (bits << unused) as i64 >> unused
}

pub(super) fn eval(op: Op, env: &Eval, args: &[u64]) -> Option<u64> {
    let t = env.t;
    let width = t.bits().max(1);
    let mask = t.mask();
    let a = args[0];
    let b = args.get(1).copied().unwrap_or(0);
    let (sa, sb) = (signed(t, a), signed(t, b));
    let count = (b as u32) & (width - 1);
    let result = match op {
        Op::IAdd => a.wrapping_add(b),
        Op::ISub => a.wrapping_sub(b),
        Op::IMul => a.wrapping_mul(b),
        Op::IMulHigh => ((i128::from(sa) * i128::from(sb)) >> width) as u64,
        Op::UMulHigh => ((u128::from(a) * u128::from(b)) >> width) as u64,
        Op::IDiv => {
            if sb == 0 {
                0
            } else {
                sa.wrapping_div(sb) as u64
            }
        }
        Op::UDiv => a.checked_div(b).unwrap_or(0),
        Op::IRem => {
            if sb == 0 {
                0
            } else {
                sa.wrapping_rem(sb) as u64
            }
        }
        Op::IMod => {
            let rem = if sb == 0 { 0 } else { sa.wrapping_rem(sb) };
            (if rem != 0 && (rem < 0) != (sb < 0) { rem + sb } else { rem }) as u64
        }
        Op::UMod => a.checked_rem(b).unwrap_or(0),
        Op::UAddCarry => u64::from(a > mask - b),
        Op::USubBorrow => u64::from(a < b),
        Op::INeg => a.wrapping_neg(),
        Op::IAbs => sa.wrapping_abs() as u64,
        Op::IMin => sa.min(sb) as u64,
        Op::IMax => sa.max(sb) as u64,
        Op::UMin => a.min(b),
        Op::UMax => a.max(b),
        Op::IAnd => a & b,
        Op::IOr => a | b,
        Op::IXor => a ^ b,
        Op::INot => !a,
        Op::IShl => a << count,
        Op::IShr => (sa >> count) as u64,
        Op::UShr => a >> count,
        Op::BitCount => return Some(a.count_ones().into()),
        Op::BitReverse => a.reverse_bits() >> (64 - width),
        Op::FindLsb => return Some(if a == 0 { MINUS_ONE } else { a.trailing_zeros().into() }),
        Op::FindUMsb => return Some(highest(a)),
        Op::FindIMsb => return Some(highest(if sa < 0 { !a & mask } else { a })),
        Op::BitfieldInsert => insert(width, a, b, args[2], args[3]),
        Op::UBitfieldExtract => extract(width, a, b, args[2]),
        Op::IBitfieldExtract => {
            let bits = extract(width, a, b, args[2]);
            let count = args[2].min(width.into()) as u32;
            if count == 0 { 0 } else { ((bits << (64 - count)) as i64 >> (64 - count)) as u64 }
        }
        Op::IEq => return Some((a == b).into()),
        Op::INe => return Some((a != b).into()),
        Op::ILt => return Some((sa < sb).into()),
        Op::IGe => return Some((sa >= sb).into()),
        Op::ULt => return Some((a < b).into()),
        Op::UGe => return Some((a >= b).into()),
        Op::I2I => signed(env.source, a) as u64,
        Op::U2U => a,
        _ => return None,
    };
    Some(result & mask)
}

/// -1 in 32 bits.
const MINUS_ONE: u64 = u32::MAX as u64;

fn highest(bits: u64) -> u64 {
    if bits == 0 { MINUS_ONE } else { (63 - bits.leading_zeros()).into() }
}

fn field(count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

fn insert(width: u32, base: u64, insert: u64, offset: u64, count: u64) -> u64 {
    if offset + count > width.into() || count == 0 {
        return base;
    }
    let field = field(count) << offset;
    base & !field | insert << offset & field
}

fn extract(width: u32, base: u64, offset: u64, count: u64) -> u64 {
    if offset + count > width.into() || count == 0 { 0 } else { base >> offset & field(count) }
}
