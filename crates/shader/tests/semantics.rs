//! Semantics functions against the host's arithmetic, and tables against them.

use unwedge_shader::ir::{Base, BaseSet, Op, Rule, ShaderInfo, Traits, Type};
use unwedge_shader::semantics::{Eval, bitcast, eval, identity, is_defined};
use unwedge_testkit::mutate::Rng;

fn env(t: Base) -> Eval {
    Eval::new(t, &ShaderInfo::default())
}

fn samples(rng: &mut Rng) -> Vec<u64> {
    let mut samples = vec![0, 1, 2, 31, 32, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    samples.extend([
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x0000_0001,
        0x4f80_0000,
    ]);
    samples.extend((0..60).map(|_| rng.next_u64() & 0xffff_ffff));
    samples
}

#[test]
fn integers_are_those_of_the_host() {
    let all = samples(&mut Rng::new(1));
    for &a in &all {
        for &b in &all {
            let (x, y) = (a as u32, b as u32);
            let (sx, sy) = (x as i32, y as i32);
            let wide = i64::from(sx) * i64::from(sy);
            for (op, wanted) in [
                (Op::IAdd, x.wrapping_add(y)),
                (Op::ISub, x.wrapping_sub(y)),
                (Op::IMul, x.wrapping_mul(y)),
                (Op::IMulHigh, (wide >> 32) as u32),
                (Op::UMulHigh, ((a * b) >> 32) as u32),
                (Op::UDiv, x.checked_div(y).unwrap_or(0)),
                (Op::IDiv, if y == 0 { 0 } else { sx.wrapping_div(sy) as u32 }),
                (Op::IRem, if y == 0 { 0 } else { sx.wrapping_rem(sy) as u32 }),
                (Op::UAddCarry, x.overflowing_add(y).1.into()),
                (Op::USubBorrow, x.overflowing_sub(y).1.into()),
                (Op::IMin, sx.min(sy) as u32),
                (Op::UMax, x.max(y)),
                (Op::IShl, x.wrapping_shl(y)),
                (Op::IShr, sx.wrapping_shr(y) as u32),
                (Op::UShr, x.wrapping_shr(y)),
                (Op::ILt, (sx < sy).into()),
                (Op::UGe, (x >= y).into()),
            ] {
                assert_eq!(
                    eval(op, &env(Base::B32), &[a, b]),
                    Some(wanted.into()),
                    "{} {a:#x} {b:#x}",
                    op.name()
                );
            }
            assert_eq!(is_defined(Op::UDiv, &env(Base::B32), &[a, b]), y != 0);
        }
        let x = a as u32;
        assert_eq!(eval(Op::BitReverse, &env(Base::B32), &[a]), Some(x.reverse_bits().into()));
        assert_eq!(eval(Op::BitCount, &env(Base::B32), &[a]), Some(x.count_ones().into()));
        let msb = if x == 0 { u32::MAX } else { x.ilog2() };
        assert_eq!(eval(Op::FindUMsb, &env(Base::B32), &[a]), Some(msb.into()));
    }
    assert_eq!(eval(Op::IMod, &env(Base::B8), &[0xfd, 2]), Some(1), "-3 mod 2");
    assert_eq!(eval(Op::IMod, &env(Base::B8), &[3, 0xfe]), Some(0xff), "3 mod -2");
    assert_eq!(eval(Op::UBitfieldExtract, &env(Base::B32), &[0xabcd, 4, 8]), Some(0xbc));
    assert_eq!(eval(Op::IBitfieldExtract, &env(Base::B32), &[0xabcd, 4, 8]), Some(0xffff_ffbc));
    assert_eq!(eval(Op::BitfieldInsert, &env(Base::B32), &[0xffff_ffff, 0, 4, 8]), Some(0xffff_f00f));
    assert!(!is_defined(Op::BitfieldInsert, &env(Base::B32), &[0, 0, 30, 3]));
}

#[test]
fn floats_are_those_of_the_host() {
    let all = samples(&mut Rng::new(2));
    let same = |ours: Option<u64>, host: f32| {
        let ours = f32::from_bits(ours.expect("a result") as u32);
        ours.to_bits() == host.to_bits() || ours.is_nan() && host.is_nan()
    };
    for &a in &all {
        for &b in &all {
            let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            for (op, wanted) in [(Op::FAdd, x + y), (Op::FSub, x - y), (Op::FMul, x * y), (Op::FDiv, x / y)] {
                assert!(same(eval(op, &env(Base::B32), &[a, b]), wanted), "{} {x:e} {y:e}", op.name());
            }
            for (op, wanted) in [(Op::FEq, x == y), (Op::FNeu, x != y), (Op::FLt, x < y), (Op::FGe, x >= y)] {
                assert_eq!(
                    eval(op, &env(Base::B32), &[a, b]),
                    Some(wanted.into()),
                    "{} {x:e} {y:e}",
                    op.name()
                );
            }
            if x != y {
                assert!(same(eval(Op::FMin, &env(Base::B32), &[a, b]), x.min(y)), "min {x:e} {y:e}");
                assert!(same(eval(Op::FMax, &env(Base::B32), &[a, b]), x.max(y)), "max {x:e} {y:e}");
            }
        }
        let x = f32::from_bits(a as u32);
        assert!(same(eval(Op::FFloor, &env(Base::B32), &[a]), x.floor()));
        assert!(same(eval(Op::FRoundEven, &env(Base::B32), &[a]), x.round_ties_even()));
        assert!(same(eval(Op::FSqrt, &env(Base::B32), &[a]), x.sqrt()));
        assert!(same(eval(Op::I2F, &env(Base::B32), &[a]), a as u32 as i32 as f32));
        assert!(same(eval(Op::U2F, &env(Base::B32), &[a]), a as u32 as f32));
        assert_eq!(eval(Op::F2I, &env(Base::B32), &[a]), Some((x as i32 as u32).into()), "{x:e}");
        assert_eq!(eval(Op::F2U, &env(Base::B32), &[a]), Some((x as u32).into()), "{x:e}");
        let significand = eval(Op::FFrexpSig, &env(Base::B32), &[a]).expect("a result");
        let exponent = eval(Op::FFrexpExp, &env(Base::B32), &[a]).expect("a result");
        assert!(same(eval(Op::FLdexp, &env(Base::B32), &[significand, exponent]), x), "{x:e}");
    }
    let zeros = [0x8000_0000, 0];
    assert_eq!(eval(Op::FMin, &env(Base::B32), &zeros), Some(0x8000_0000));
    assert_eq!(eval(Op::FMax, &env(Base::B32), &zeros), Some(0));
}

/// Every elementwise operation has a meaning in every base that its row allows, and bits above the width stay clear.
#[test]
fn every_elementwise_operation_has_a_meaning() {
    let mut rng = Rng::new(3);
    for &op in Op::ALL.iter().filter(|op| op.has(Traits::ELEMENTWISE)) {
        for base in Base::ALL.into_iter().filter(|&base| BaseSet::FLOAT.has(base)) {
            for _ in 0..50 {
                let mut args = [0; 4];
                for (arg, rule) in args.iter_mut().zip(op.row().operands) {
                    // Counts have 32 bits, conditions one, in every base.
                    let base = if let Rule::Lanes(base) = *rule { base } else { base };
                    *arg = rng.next_u64() & base.mask();
                }
                let result = eval(op, &env(base), &args[..op.row().operands.len()]);
                let result = result.unwrap_or_else(|| panic!("{} has no meaning", op.name()));
                let mask = base.mask() | Base::B32.mask();
                assert_eq!(result & !mask, 0, "{} in {base:?}", op.name());
                if op.has(Traits::COMMUTATIVE) {
                    let mut swapped = args;
                    swapped.swap(0, 1);
                    let other = eval(op, &env(base), &swapped[..op.row().operands.len()]);
                    let nan = op.has(Traits::FLOAT) && other != Some(result);
                    // Which NaN it is depends on the order.
                    assert!(nan || other == Some(result), "{} is not commutative", op.name());
                }
            }
        }
    }
}

#[test]
fn identities_change_nothing() {
    let mut rng = Rng::new(4);
    for op in [Op::IAdd, Op::IMul, Op::IAnd, Op::IOr, Op::IXor, Op::IMin, Op::IMax, Op::UMin, Op::UMax] {
        for base in [Base::B8, Base::B16, Base::B32, Base::B64] {
            let identity = identity(op, base).expect("an identity");
            for _ in 0..100 {
                let bits = rng.next_u64() & base.mask();
                assert_eq!(eval(op, &env(base), &[identity, bits]), Some(bits), "{} in {base:?}", op.name());
            }
        }
    }
}

#[test]
fn bitcasts_keep_the_first_lane_lowest() {
    let halves = Type::new(Base::B16, 2).expect("a type");
    let lanes = bitcast(Base::B32, halves, &[0x1234_5678]).expect("lanes");
    assert_eq!(&lanes[..], &[0x5678, 0x1234]);
    let back = bitcast(Base::B16, Type::B32, &lanes).expect("lanes");
    assert_eq!(&back[..], &[0x1234_5678]);
}
