//! Integer operations that take more than an expression.

/// Sign-extends the low `bits`, 1 to 32.
#[inline(always)]
pub(super) fn sext(value: u32, bits: u32) -> i32 {
    ((value << (32 - bits)) as i32) >> (32 - bits)
}

/// Clamps a sum of any size to the unsigned numbers of some bits if asked, else cuts it.
#[inline(always)]
pub(super) fn unsigned(value: i64, bits: u32, clamp: bool) -> u32 {
    let most = ((1u64 << bits) - 1) as i64;
    if clamp { value.clamp(0, most) as u32 } else { (value & most) as u32 }
}

/// As [`unsigned`], to the signed numbers.
#[inline(always)]
pub(super) fn signed(value: i64, bits: u32, clamp: bool) -> u32 {
    let most = (1i64 << (bits - 1)) - 1;
    let mask = ((1u64 << bits) - 1) as i64;
    (if clamp { value.clamp(-most - 1, most) & mask } else { value & mask }) as u32
}

/// Unsigned bits `offset…offset+width`.
#[inline(always)]
pub(super) fn bfe_u32(value: u32, offset: u32, width: u32) -> u32 {
    (value >> (offset & 31)) & !(u32::MAX << (width & 31))
}

/// As [`bfe_u32`], signed.
#[inline(always)]
pub(super) fn bfe_i32(value: u32, offset: u32, width: u32) -> u32 {
    let (offset, width) = (offset & 31, width & 31);
    if width == 0 {
        0
    } else if offset + width < 32 {
        sext(value >> offset, width) as u32
    } else {
        (value as i32 >> offset) as u32
    }
}

/// A step of a shift register with feedback.
#[inline(always)]
pub(super) fn prng(value: u32) -> u32 {
    value << 1 ^ if value >> 31 != 0 { 197 } else { 0 }
}

/// Each bit of the result is a bit of a truth table, numbered by the bits of the sources; that of the first source is the highest.
#[inline(always)]
pub(super) fn bitop3(table: u8, a: u32, b: u32, c: u32) -> u32 {
    (0..8).filter(|number| table >> number & 1 != 0).fold(0, |result, number| {
        let chosen = |source: u32, bit: u32| if number >> bit & 1 != 0 { source } else { !source };
        result | chosen(a, 2) & chosen(b, 1) & chosen(c, 0)
    })
}

/// Bytes of `a` (4 to 7) and `b` (0 to 3), or constants, by the bytes of `select`.
pub(super) fn perm(a: u32, b: u32, select: u32) -> u32 {
    let all = u64::from(a) << 32 | u64::from(b);
    let byte = |which: u32| match which {
        0..8 => (all >> (which * 8)) as u32 & 0xff,
        8..12 => ((all >> ((which - 8) * 16 + 15)) as u32 & 1) * 0xff,
        12 => 0,
        _ => 0xff,
    };
    (0..4).fold(0, |result, at| result | byte(select >> (at * 8) & 0xff) << (at * 8))
}

fn bytes(value: u32) -> [u32; 4] {
    value.to_le_bytes().map(u32::from)
}

/// The sum of the differences of bytes; `masked` leaves out those whose byte of `b` is zero.
pub(super) fn sad_u8(a: u32, b: u32, masked: bool) -> u32 {
    bytes(a).into_iter().zip(bytes(b)).filter(|(_, b)| !masked || *b != 0).map(|(a, b)| a.abs_diff(b)).sum()
}

/// The sum of the differences of halves.
pub(super) fn sad_u16(a: u32, b: u32) -> u32 {
    (a & 0xffff).abs_diff(b & 0xffff) + (a >> 16).abs_diff(b >> 16)
}

/// Four sums of differences at byte offsets 0 to 3, each added to a half of `c`.
pub(super) fn qsad_pk(a: u64, b: u32, c: u64, masked: bool, clamp: bool) -> u64 {
    (0..4).fold(0, |result, at| {
        let sum = sad_u8((a >> (8 * at)) as u32, b, masked) + (c >> (16 * at)) as u32 % 0x1_0000;
        result | u64::from(unsigned(sum.into(), 16, clamp)) << (16 * at)
    })
}

/// As [`qsad_pk`], masked, with sums of 32 bits.
pub(super) fn mqsad_u32(a: u64, b: u32, c: [u32; 4], clamp: bool) -> [u32; 4] {
    let mut at = 0;
    c.map(|addend| {
        let sum = i64::from(sad_u8((a >> (8 * at)) as u32, b, true)) + i64::from(addend);
        at += 1;
        unsigned(sum, 32, clamp)
    })
}

/// The average of each byte, rounded up where the byte of `c` is odd.
pub(super) fn lerp_u8(a: u32, b: u32, c: u32) -> u32 {
    let (a, b, c) = (bytes(a), bytes(b), bytes(c));
    (0..4).fold(0, |result, at| result | ((a[at] + b[at] + (c[at] & 1)) >> 1) << (8 * at))
}

/// How many leading bits are equal to the sign, or -1 if all are.
#[inline(always)]
pub(super) fn leading_signs(value: u32) -> u32 {
    let differing = value ^ ((value as i32) >> 31) as u32;
    if differing == 0 { u32::MAX } else { differing.leading_zeros() }
}

/// Two signed halves as bytes, within bounds.
pub(super) fn sat_pk_u8_i16(value: u32) -> u32 {
    let byte = |half: u32| (half as u16 as i16).clamp(0, 255) as u32;
    byte(value) | byte(value >> 16) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        assert_eq!(bfe_u32(0xabcd_1234, 8, 8), 0x12);
        assert_eq!(bfe_u32(0xabcd_1234, 8, 32), 0);
        assert_eq!(bfe_i32(0x0000_8000, 8, 8), 0xffff_ff80);
        assert_eq!(bfe_i32(0x8000_0000, 28, 8), 0xffff_fff8);
        assert_eq!(perm(0x7766_5544, 0x3322_1180, 0x0c0d_0400), 0x00ff_4480);
        assert_eq!(perm(0, 0x0000_8000, 0x0908_0000), 0x00ff_0000);
    }

    #[test]
    fn sums_of_differences() {
        assert_eq!(sad_u8(0x00ff_0000, 0xff00_0000, false), 510);
        assert_eq!(sad_u8(0x00ff_0001, 0xff00_0000, true), 255);
        assert_eq!(sad_u16(0x0001_ffff, 0xffff_0001), 0xfffe + 0xfffe);
        assert_eq!(qsad_pk(0x0000_00ff_0000_0000, 0, 0xffff, false, true), 0x00ff_00ff_00ff_ffff);
        assert_eq!(lerp_u8(0x0100_ff01, 0x0100_ff02, 0x0000_0001), 0x0100_ff02);
    }

    #[test]
    fn signs() {
        assert_eq!(leading_signs(0), u32::MAX);
        assert_eq!(leading_signs(u32::MAX), u32::MAX);
        assert_eq!(leading_signs(0x0000_ffff), 16);
        assert_eq!(leading_signs(0xffff_0000), 16);
        assert_eq!(signed(0x8000_0000, 32, true), 0x7fff_ffff);
        assert_eq!(unsigned(-5, 32, true), 0);
        assert_eq!(unsigned(-5, 32, false), 0xffff_fffb);
        assert_eq!(sat_pk_u8_i16(0x0100_ffff), 0xff00);
    }
}
