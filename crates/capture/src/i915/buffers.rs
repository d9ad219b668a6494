//! Lists of buffers that were bound: where they were and how large, without their contents. Kernels before 5.6.
//!
//! Facts: `print_error_buffers` of `i915_debugfs.c` and `i915_gpu_error.c`, Linux 2.6.34 to 5.5.

use crate::intel::collect::shown;
use crate::intel::text::{decimal, hex, skip_blanks, trim};
use std::borrow::Cow;
use unwedge_base::Span;

/// A line of such a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBuffer<'a> {
    /// Which list: `Active`, `Pinned`, `Active (rcs0)`.
    pub list: Cow<'a, str>,
    /// GPU address of the first byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Memory domains, request numbers, flags and tiling, as written.
    pub more: Cow<'a, str>,
    /// The line.
    pub span: Span,
}

/// A list of buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferList<'a> {
    /// Its name: `Active`, `Pinned`, `Active (rcs0)`. Each address space may have one of the same name.
    pub name: Cow<'a, str>,
    /// How many buffers its heading says there are.
    pub claimed: u64,
    /// How many were read.
    pub held: u64,
}

/// The name of a list and the count by its heading: `Active [2]:`, `  Pinned (global) [0]:`.
pub(super) fn heading(text: &[u8]) -> Option<(&[u8], u64)> {
    let name = trim(text).strip_suffix(b"]:")?;
    let digits = name.iter().rev().take_while(|c| c.is_ascii_digit()).count();
    let (name, count) = name.split_at_checked(name.len() - digits)?;
    let (count, _) = decimal(count)?;
    let name = trim(name.strip_suffix(b"[")?);
    let first = name.split(|&c| c == b' ').next()?;
    let known = matches!(first, b"Active" | b"Pinned" | b"Buffers");
    Some((name, u64::try_from(count).ok()?)).filter(|_| known)
}

/// `00000001_00100000     4096 41 00 …`, `08a33000   131072 0040 0000 …`
pub(super) fn entry<'a>(list: Cow<'a, str>, text: &'a [u8], span: Span) -> Option<ListedBuffer<'a>> {
    let (first, rest) = hex(skip_blanks(text))?;
    let (address, rest) = match rest.strip_prefix(b"_") {
        Some(low) => {
            let (low, rest) = hex(low)?;
            (first.checked_mul(1 << 32)? | low, rest)
        }
        None => (first, rest),
    };
    let (size, rest) = decimal(skip_blanks(rest.strip_prefix(b" ")?))?;
    Some(ListedBuffer { list, address, size: u64::try_from(size).ok()?, more: shown(trim(rest)), span })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_every_era() {
        assert_eq!(heading(b"Buffers [12]:"), Some((&b"Buffers"[..], 12)));
        assert_eq!(heading(b"  Active [1]:"), Some((&b"Active"[..], 1)));
        assert_eq!(heading(b"Active (render ring) [1]:"), Some((&b"Active (render ring)"[..], 1)));
        for text in [&b"Pipe [0]:"[..], b"Active []:", b"Active", b""] {
            assert_eq!(heading(text), None);
        }
        let read = |text: &'static [u8]| {
            let read = entry("Active".into(), text, Span::default())?;
            Some((read.address, read.size, read.more.into_owned()))
        };
        let old = b"  08a33000   131072 00000040 00000000 00001234 X dirty (name: 2) (fence: 3)";
        assert_eq!(
            read(old),
            Some((0x8a3_3000, 131_072, "00000040 00000000 00001234 X dirty (name: 2) (fence: 3)".into()))
        );
        let new = b"    00000001_00100000     4096 41 00 [ 05 00 ] 00 dirty LLC";
        assert_eq!(read(new), Some((0x1_0010_0000, 4096, "41 00 [ 05 00 ] 00 dirty LLC".into())));
        for text in [&b"  nothing"[..], b"  1000", b"  1000 -4 00", b"  ffffffffffff_0 1 00"] {
            assert_eq!(entry("Active".into(), text, Span::default()), None);
        }
    }
}
