//! Breaks dumps, in every way that was seen to break a tool and some more.
//!
//! Deterministic: text and seed alone decide.

/// A small generator of pseudo-random numbers (xorshift64*).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Any seed will do.
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next_u64() % n as u64) as usize }
    }

    /// One of these.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> Option<&'t T> {
        from.get(self.below(from.len()))
    }
}

/// One way to break a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The end is cut off, anywhere.
    Truncate,
    /// The end is cut off after a line.
    TruncateAtLine,
    /// Single bits flipped.
    FlipBits,
    /// A line stands elsewhere.
    MoveLine,
    /// A line stands there twice.
    DuplicateLine,
    /// A line is gone.
    DeleteLine,
    /// A number is another one.
    ChangeNumber,
    /// A number is as large as it gets, or larger.
    HugeNumber,
    /// Characters of a line of data are others, are gone, or are too many.
    BreakData,
    /// Two stretches between headings change places.
    SwapSections,
    /// Blanks in front of a line added or removed.
    ChangeIndent,
    /// Bytes in between.
    InsertBytes,
    /// A dump after the dump.
    Concatenate,
}

impl Mutation {
    /// Every mutation.
    pub const ALL: [Mutation; 13] = [
        Mutation::Truncate,
        Mutation::TruncateAtLine,
        Mutation::FlipBits,
        Mutation::MoveLine,
        Mutation::DuplicateLine,
        Mutation::DeleteLine,
        Mutation::ChangeNumber,
        Mutation::HugeNumber,
        Mutation::BreakData,
        Mutation::SwapSections,
        Mutation::ChangeIndent,
        Mutation::InsertBytes,
        Mutation::Concatenate,
    ];

    /// The text, broken in this way.
    pub fn apply(self, text: &[u8], rng: &mut Rng) -> Vec<u8> {
        let mut out = text.to_vec();
        match self {
            Mutation::Truncate => out.truncate(rng.below(text.len() + 1)),
            Mutation::TruncateAtLine => {
                let ends: Vec<usize> = (0..text.len()).filter(|&i| text[i] == b'\n').collect();
                out.truncate(rng.pick(&ends).map_or(0, |end| end + 1));
            }
            Mutation::FlipBits => {
                for _ in 0..=rng.below(16) {
                    let at = rng.below(out.len());
                    let bit = rng.below(8);
                    if let Some(byte) = out.get_mut(at) {
                        *byte ^= 1 << bit;
                    }
                }
            }
            Mutation::MoveLine | Mutation::DuplicateLine | Mutation::DeleteLine => {
                let mut lines: Vec<&[u8]> = text.split_inclusive(|&c| c == b'\n').collect();
                let from = rng.below(lines.len());
                let Some(&line) = lines.get(from) else { return out };
                if self != Mutation::DuplicateLine {
                    lines.remove(from);
                }
                if self != Mutation::DeleteLine {
                    lines.insert(rng.below(lines.len() + 1), line);
                }
                out = lines.concat();
            }
            Mutation::ChangeNumber | Mutation::HugeNumber => self.number(&mut out, rng),
            Mutation::BreakData => break_data(&mut out, rng),
            Mutation::SwapSections => {
                let mut sections = sections(text);
                let (a, b) = (rng.below(sections.len()), rng.below(sections.len()));
                if a < sections.len() && b < sections.len() {
                    sections.swap(a, b);
                }
                out = sections.concat();
            }
            Mutation::ChangeIndent => {
                let starts: Vec<usize> =
                    (0..text.len()).filter(|&i| i == 0 || text[i - 1] == b'\n').collect();
                let at = rng.pick(&starts).copied().unwrap_or(0);
                let blanks = text[at..].iter().take_while(|&&c| c == b' ').count();
                let new = [b' '; 12];
                out.splice(at..at + rng.below(blanks + 1), new[..rng.below(new.len())].iter().copied());
            }
            Mutation::InsertBytes => {
                let at = rng.below(out.len() + 1);
                let tokens: [&[u8]; 22] = [
                    b"\n",
                    b"\0",
                    b"\r\n",
                    b"\xff\xfe",
                    b"---\n",
                    b"bos:\n",
                    b"  - iova: ",
                    b"data: !!ascii85 |\n",
                    b"future-section:\n  - key: 1\n",
                    b"  - { offset: 0x",
                    b"\nrcs0 command stream:\n",
                    b"\nrcs0 --- ring = 0x00000000 00001000\n",
                    b"\n:",
                    b"\n00000000 :  deadbeef\n",
                    b"\n**** VM state ****\n",
                    b"\n[ffffffffffffff00].length: 0xffffffffffffffff\n",
                    b"\n[1000].data: ",
                    b"\nGuC ID: 1\n\tHW Context Desc: 0xffffffff\n",
                    b"ring name: ",
                    b"\nIP: gfx_v10_0\n",
                    b"0xffffffff",
                    b"\x1b[1;31m",
                ];
                let token = rng.pick(&tokens).copied().unwrap_or_default();
                out.splice(at..at, token.iter().copied());
            }
            Mutation::Concatenate => out.extend_from_slice(text),
        }
        out
    }

    fn number(self, out: &mut Vec<u8>, rng: &mut Rng) {
        let starts: Vec<usize> = (1..out.len())
            .filter(|&i| out[i].is_ascii_digit() && matches!(out[i - 1], b' ' | b'x' | b'-' | b'.'))
            .collect();
        let Some(&at) = rng.pick(&starts) else { return };
        let digits = out[at..].iter().take_while(|c| c.is_ascii_hexdigit()).count();
        let new: Vec<u8> = match (self, rng.below(4)) {
            (Mutation::HugeNumber, 0) => b"ffffffffffffffff".to_vec(),
            (Mutation::HugeNumber, 1) => b"4294967295".to_vec(),
            (Mutation::HugeNumber, 2) => b"2147483648".to_vec(),
            (Mutation::HugeNumber, _) => vec![b'9'; 40],
            (_, 0) => b"0".to_vec(),
            (_, 1) => b"-1".to_vec(),
            (_, 2) => Vec::new(),
            (_, _) => rng.below(100_000).to_string().into_bytes(),
        };
        out.splice(at..at + digits, new);
    }
}

/// The text, broken by one to four mutations.
pub fn mutate(text: &[u8], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut out = text.to_vec();
    for _ in 0..=rng.below(4) {
        let mutation = rng.pick(&Mutation::ALL).copied().unwrap_or(Mutation::Truncate);
        out = mutation.apply(&out, &mut rng);
    }
    out
}

fn break_data(out: &mut Vec<u8>, rng: &mut Rng) {
    // In front of data: of msm, of i915, of xe.
    let headers: [&[u8]; 4] = [b"!!ascii85 |\n", b"\n:", b"\n~", b"].data: "];
    let end_of_header = |i| headers.iter().find(|h| out[i..].starts_with(h)).map(|h| i + h.len());
    let starts: Vec<usize> = (0..out.len()).filter_map(end_of_header).collect();
    let Some(&start) = rng.pick(&starts) else { return };
    let len = out[start..].iter().take_while(|&&c| c != b'\n').count();
    let at = start + rng.below(len + 1);
    let end = (at + rng.below(8)).min(start + len);
    let new: &[u8] = match rng.below(6) {
        0 => b"",
        1 => b"w{}~",
        2 => b"uuuuuuuuuu",
        3 => b"zz",
        4 => b" \n ",
        _ => b"!!!!!z!!!!!!",
    };
    out.splice(at..end, new.iter().copied());
}

/// The stretches that start with a line without indentation.
fn sections(text: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> = (0..text.len())
        .filter(|&i| (i == 0 || text[i - 1] == b'\n') && text[i].is_ascii_alphabetic())
        .collect();
    starts.insert(0, 0);
    starts.push(text.len());
    starts.windows(2).map(|w| &text[w[0]..w[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_breaks_the_same_way() {
        let text = b"bos:\n  - iova: 0x1000\n    size: 16\n    data: !!ascii85 |\n     z!!!!\"\nregisters:\n";
        assert_eq!(mutate(text, 7), mutate(text, 7));
        let changed = (0..200).filter(|&seed| mutate(text, seed) != text).count();
        assert!(changed > 150, "{changed} of 200 seeds change the text");
    }

    #[test]
    fn nothing_to_break_is_no_trouble() {
        for seed in 0..500 {
            mutate(b"", seed);
            mutate(b"\n", seed);
        }
    }
}
