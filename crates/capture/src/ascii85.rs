//! The kernel's ascii85: five characters `!`–`u` for a dword, most significant first; `z` for a zero dword.
//!
//! No padding and no end mark: the text ends with its line. Never fails: what cannot be a character of the encoding
//! ends the text, and [`Ascii85Data`] says where. Facts: `include/linux/ascii85.h`.

/// What one byte is: a digit below 85, or one of the two marks.
const CLASS: [u8; 256] = {
    let mut table = [INVALID; 256];
    let mut digit = 0;
    while digit < 85 {
        table[b'!' as usize + digit] = digit as u8;
        digit += 1;
    }
    table[b'z' as usize] = ZERO;
    table
};
const INVALID: u8 = 0xff;
const ZERO: u8 = 0x80;

/// The result of [`decode`], with all that was odd about the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ascii85Data {
    /// The dwords.
    pub dwords: Vec<u32>,
    /// Bytes of text that were read; less than its length where a character outside the alphabet ended it.
    pub consumed: usize,
    /// Groups above 0xffffffff; they wrap, as they do in the tools that came before.
    pub overflows: usize,
    /// The last group has fewer than five characters; its digits count as they stand, without padding.
    pub partial: bool,
}

/// Decodes a text. Reads it up to the first character that has no place in it (a `z` inside a group counts as one).
pub fn decode(text: &[u8]) -> Ascii85Data {
    decode_up_to(text, usize::MAX)
}

/// Decodes the first so many dwords of a text, like [`decode`].
pub fn decode_up_to(text: &[u8], most: usize) -> Ascii85Data {
    // A dword takes five characters at most.
    let head = &text[..text.len().min(most.saturating_mul(5))];
    let mut dwords = Vec::with_capacity(decoded_len(head).min(most));
    let mut overflows = 0;
    let mut rest = text;
    while dwords.len() < most {
        match rest {
            [b'z', tail @ ..] => {
                dwords.push(0);
                rest = tail;
            }
            [a, b, c, d, e, tail @ ..] => {
                let digits = [a, b, c, d, e].map(|&c| CLASS[c as usize]);
                if digits.iter().fold(0, |all, d| all | d) & ZERO != 0 {
                    break;
                }
                let value = digits.iter().fold(0u64, |value, &d| value * 85 + u64::from(d));
                overflows += usize::from(value > u64::from(u32::MAX));
                dwords.push(value as u32);
                rest = tail;
            }
            _ => break,
        }
    }
    let tail = rest.iter().take(4).take_while(|&&c| CLASS[c as usize] < 85).count();
    let partial = tail > 0 && dwords.len() < most;
    let tail = if partial { tail } else { 0 };
    if partial {
        dwords.push(rest[..tail].iter().fold(0, |value, &c| value * 85 + u32::from(CLASS[c as usize])));
    }
    Ascii85Data { dwords, consumed: text.len() - rest.len() + tail, overflows, partial }
}

/// The number of dwords in a well-formed text; an upper bound for any other. At most the length of the text.
pub fn decoded_len(text: &[u8]) -> usize {
    let zeros = count_zeros(text);
    zeros + (text.len() - zeros).div_ceil(5)
}

/// The number of `z`. In chunks whose count fits in a byte, which the compiler makes vectors of.
fn count_zeros(text: &[u8]) -> usize {
    let count = |chunk: &[u8]| chunk.iter().fold(0u8, |n, &c| n + u8::from(c == b'z'));
    text.chunks(192).map(|chunk| usize::from(count(chunk))).sum()
}

/// Whether a text without invalid characters has a last group of fewer than five. Found without decoding.
pub fn ends_inside_a_group(text: &[u8]) -> bool {
    !(text.len() - count_zeros(text)).is_multiple_of(5)
}

/// Where the first byte stands that no ascii85 text may hold, if there is one. Much quicker than decoding.
pub fn first_invalid(text: &[u8]) -> Option<usize> {
    let valid = |c: u8| c.wrapping_sub(b'!') < 85 || c == b'z';
    let clean =
        text.chunks(256).take_while(|chunk| chunk.iter().fold(true, |all, &c| all & valid(c))).count();
    let from = clean * 256;
    text.get(from..)?.iter().position(|&c| !valid(c)).map(|at| from + at)
}

/// Appends the text of these dwords, as the kernel writes them.
pub fn encode_into(dwords: &[u32], out: &mut Vec<u8>) {
    for &dword in dwords {
        if dword == 0 {
            out.push(b'z');
            continue;
        }
        let mut group = [0; 5];
        let mut rest = dword;
        for c in group.iter_mut().rev() {
            *c = b'!' + (rest % 85) as u8;
            rest /= 85;
        }
        out.extend_from_slice(&group);
    }
}

/// The text of these dwords, as the kernel writes them.
pub fn encode(dwords: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(dwords.len());
    encode_into(dwords, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes_to_the_same() {
        let dwords = [0, 1, 84, 85, 0x7090_0001, u32::MAX, 0, 0x0000_8000];
        let text = encode(&dwords);
        assert_eq!(
            decode(&text),
            Ascii85Data { dwords: dwords.to_vec(), consumed: text.len(), ..Ascii85Data::default() }
        );
        assert_eq!(decoded_len(&text), dwords.len());
    }

    #[test]
    fn zero_is_a_z_and_one_is_five_characters() {
        assert_eq!(encode(&[0, 1, u32::MAX]), b"z!!!!\"s8W-!");
    }

    #[test]
    fn a_partial_group_counts_as_it_stands() {
        let d = decode(b"z!!\"");
        assert_eq!((d.dwords, d.partial, d.consumed), (vec![0, 1], true, 4));
    }

    #[test]
    fn a_strange_character_ends_the_text() {
        let d = decode(b"!!!!\"!!\x7f!!zzz");
        assert_eq!((d.dwords, d.consumed), (vec![1, 0], 7));
        let d = decode(b"!!z!!!!!!!");
        assert_eq!((d.dwords, d.consumed), (vec![0], 2), "z has no place inside a group");
        assert_eq!(first_invalid(&[b'!'; 200]), None);
        let mut long = vec![b'z'; 600];
        long[530] = b'w';
        assert_eq!(first_invalid(&long), Some(530));
        assert_eq!((decoded_len(&long[..530]), ends_inside_a_group(&long)), (530, true));
    }

    #[test]
    fn groups_above_32_bits_wrap_and_are_counted() {
        let d = decode(b"uuuuu");
        assert_eq!((d.dwords, d.overflows), (vec![(85u64.pow(5) - 1) as u32], 1));
    }
}
