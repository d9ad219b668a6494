//! Memory as hex: rows of eight dwords with their address, and rows of four with their characters.

use super::TextOut;
use super::out::hex8;
use unwedge_base::Dwords;

/// Rows of eight dwords, each with its address and its offset. Rows of zeros are left out but for the first row of
/// all; a `*` stands for each run of them.
pub fn rows(
    text: &mut TextOut<'_>,
    dwords: Dwords<'_>,
    iova: Option<u64>,
    level: usize,
    wide: bool,
    highlight: bool,
) {
    let mut at = 0;
    let mut last_was_zero = true;
    while at < dwords.len() {
        let row = dwords.skip(at).take(8);
        let zero = at > 0 && row.stored().iter().all(|&d| d == 0);
        if zero && !last_was_zero {
            text.str("*").end();
        }
        last_was_zero = zero;
        if zero && at >= dwords.stored().len() {
            return;
        }
        if !zero {
            address(text, iova.map_or(0, |a| a.wrapping_add(4 * at as u64)), level, wide, highlight);
            text.hex(4 * at as u64, 4).byte(b':');
            let mut line = [b' '; 9 * 8];
            for (place, dword) in line.chunks_exact_mut(9).zip(row.iter()) {
                place[1..].copy_from_slice(&hex8(dword));
            }
            text.append(line.get(..9 * row.len()).unwrap_or(&line));
            text.end();
        }
        at += 8;
    }
}

/// Rows of eight floats.
pub fn floats(text: &mut TextOut<'_>, dwords: Dwords<'_>, iova: Option<u64>, level: usize, wide: bool) {
    for at in (0..dwords.len()).step_by(8) {
        address(text, iova.map_or(0, |a| a.wrapping_add(4 * at as u64)), level, wide, false);
        for (i, dword) in dwords.skip(at).take(8).iter().enumerate() {
            if i > 0 {
                text.byte(b' ');
            }
            text.float(dword);
        }
        text.end();
    }
}

fn address(text: &mut TextOut<'_>, iova: u64, level: usize, wide: bool, highlight: bool) {
    if highlight {
        text.str("\x1b[0;1;31m");
    }
    if wide {
        text.hex(iova, 16);
    } else {
        text.hex(iova & 0xffff_ffff, 8);
    }
    text.byte(b':').level(level);
    if highlight {
        text.str("\x1b[0m");
    }
}

const ROW_OF_ZEROS: &str = "00000000 00000000 00000000 00000000\t|................|";

/// A heading with the size in bytes, then rows of four dwords with their 16 characters.
pub fn hex_ascii(text: &mut TextOut<'_>, dwords: Dwords<'_>, bytes: u64, level: usize) {
    text.tabs(level).str("-----------------------------------------------").end();
    text.tabs(level).dec(bytes).str(" (0x").hex(bytes, 1).str(") bytes").end();
    let dwords = dwords.take(usize::try_from(bytes.div_ceil(4)).unwrap_or(usize::MAX));
    for at in (0..dwords.len()).step_by(4) {
        if text.ended().is_some() {
            return;
        }
        text.tabs(level).hex(4 * at as u64, 6).str(": ");
        let row = dwords.skip(at).take(4);
        if row.stored().is_empty() && row.len() == 4 {
            text.str(ROW_OF_ZEROS).end();
            continue;
        }
        for (i, dword) in row.iter().enumerate() {
            if i > 0 {
                text.byte(b' ');
            }
            text.hex(u64::from(dword), 8);
        }
        for _ in row.len()..4 {
            text.str("         ");
        }
        text.str("\t|");
        for byte in row.iter().flat_map(u32::to_le_bytes) {
            text.byte(if matches!(byte, 0x20..=0x7e) { byte } else { b'.' });
        }
        text.byte(b'|').end();
    }
}

#[cfg(test)]
mod tests {
    use super::super::out::tests::written;
    use super::*;

    #[test]
    fn runs_of_zeros_become_a_star() {
        let mut dwords = [0; 40];
        (dwords[8], dwords[39]) = (7, 9);
        let listed = written(|t| rows(t, Dwords::from(&dwords[..]), Some(0x1000), 0, true, false));
        let zeros = " 00000000".repeat(7);
        assert_eq!(
            listed,
            format!(
                "0000000000001000:\t0000: 00000000{zeros}\n0000000000001020:\t0020: 00000007{zeros}\n*\n\
                 0000000000001080:\t0080:{zeros} 00000009\n"
            )
        );
    }

    #[test]
    fn implied_zeros_cost_nothing() {
        let listed = written(|t| rows(t, Dwords::new(&[1], usize::MAX / 8), None, 1, false, false));
        assert_eq!(listed, format!("00000000:\t\t0000: 00000001{}\n*\n", " 00000000".repeat(7)));
    }

    #[test]
    fn characters_stand_beside_the_dwords() {
        let listed = written(|t| hex_ascii(t, Dwords::from(&[0x6c6c6548, 0xff00216f, 0, 1, 2][..]), 20, 1));
        assert_eq!(
            listed,
            "\t-----------------------------------------------\n\t20 (0x14) bytes\n\
             \t000000: 6c6c6548 ff00216f 00000000 00000001\t|Hello!..........|\n\
             \t000010: 00000002                           \t|....|\n"
        );
    }

    #[test]
    fn floats_come_in_rows_of_eight() {
        let listed = written(|t| floats(t, Dwords::new(&[0x3f80_0000], 9), Some(0x20), 0, false));
        assert_eq!(listed, format!("00000020:\t1.000000{}\n00000040:\t0.000000\n", " 0.000000".repeat(7)));
    }
}
