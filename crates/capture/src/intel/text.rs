//! Lines of text, and the numbers in them.

use super::RegisterIndex;
use std::io::BufRead;
use std::ops::Range;
use unwedge_base::Span;

/// A line of a dump.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntelLine<'a> {
    /// Where it stands, its end of line included.
    pub(crate) span: Span,
    /// Without its end of line.
    pub(crate) text: &'a [u8],
}

/// Takes a text apart at its line ends.
#[derive(Clone, Debug)]
pub(crate) struct IntelLines<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> IntelLines<'a> {
    pub(crate) fn new(text: &'a [u8]) -> IntelLines<'a> {
        IntelLines { text, at: 0 }
    }
}

impl<'a> Iterator for IntelLines<'a> {
    type Item = IntelLine<'a>;

    fn next(&mut self) -> Option<IntelLine<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        // A slice as a reader: this is where the standard library searches a byte fast, and it cannot fail.
        let len = (&mut &*rest).skip_until(b'\n').unwrap_or(rest.len());
        let raw = rest.get(..len)?;
        let text = raw.strip_suffix(b"\n").unwrap_or(raw);
        let span = Span::new(self.at, self.at + len);
        self.at += len;
        Some(IntelLine { span, text: text.strip_suffix(b"\r").unwrap_or(text) })
    }
}

/// Blanks and tabs in front are dropped.
pub(crate) fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&c| c == b' ' || c == b'\t').count();
    text.get(blanks..).unwrap_or_default()
}

/// Blanks and tabs at both ends are dropped.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let text = skip_blanks(text);
    let blanks = text.iter().rev().take_while(|&&c| c == b' ' || c == b'\t').count();
    text.get(..text.len() - blanks).unwrap_or_default()
}

/// What stands before and behind the first occurrence.
pub(crate) fn split_once<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let pos = text.windows(at.len()).position(|w| w == at)?;
    Some((text.get(..pos)?, text.get(pos + at.len()..)?))
}

/// What stands before and behind the last occurrence.
pub(crate) fn rsplit_once<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let pos = text.windows(at.len()).rposition(|w| w == at)?;
    Some((text.get(..pos)?, text.get(pos + at.len()..)?))
}

/// The digits of a hexadecimal number and what follows; `None` without a digit or with more than 16.
pub(crate) fn hex(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take(17).take_while(|c| c.is_ascii_hexdigit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if digits == 0 || digits > 16 {
        return None;
    }
    let value =
        number.iter().fold(0u64, |value, &c| value << 4 | u64::from(char::from(c).to_digit(16).unwrap_or(0)));
    Some((value, rest))
}

/// A hexadecimal number behind `0x`, and what follows.
pub(crate) fn hex_0x(text: &[u8]) -> Option<(u64, &[u8])> {
    hex(text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"))?)
}

/// A decimal number, negative ones too, and what follows; `None` where it does not fit.
pub(crate) fn decimal(text: &[u8]) -> Option<(i64, &[u8])> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let digits = unsigned.iter().take_while(|c| c.is_ascii_digit()).count();
    let (number, rest) = unsigned.split_at_checked(digits)?;
    if digits == 0 {
        return None;
    }
    let value =
        number.iter().try_fold(0i64, |value, &c| value.checked_mul(10)?.checked_add(i64::from(c - b'0')))?;
    Some((if unsigned.len() < text.len() { -value } else { value }, rest))
}

/// A number as a whole text: hexadecimal behind `0x`, else decimal.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let text = trim(text);
    let whole = |(value, rest): (u64, &[u8])| rest.is_empty().then_some(value);
    match hex_0x(text) {
        Some(found) => whole(found),
        None => decimal(text).and_then(|(value, rest)| whole((u64::try_from(value).ok()?, rest))),
    }
}

/// `NAME[0][1]: 0x…`, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct RegisterText<'a> {
    pub(crate) name: &'a str,
    pub(crate) index: RegisterIndex,
    pub(crate) value: u64,
    pub(crate) more: &'a [u8],
    /// Digits of the value in the text: of all of it, or of its high half.
    pub(crate) digits: Range<usize>,
    /// Digits of its low half, where it is written in two.
    pub(crate) low_digits: Option<Range<usize>>,
}

/// Reads the line of a register: its name has no small letter, its value stands behind `0x`.
pub(crate) fn register(line: &[u8]) -> Option<RegisterText<'_>> {
    let body = skip_blanks(line);
    let colon = body.iter().take(64).position(|&c| c == b':')?;
    let (key, rest) = body.split_at_checked(colon)?;
    let (name, index) = match key.iter().position(|&c| c == b'[') {
        Some(at) => (key.get(..at)?, brackets(key.get(at..)?)?),
        None => match key.strip_prefix(b"GTIER gt ").and_then(decimal) {
            Some((gt, b"")) => (key.get(..5)?, RegisterIndex::One(u16::try_from(gt).ok()?)),
            _ => (key, RegisterIndex::None),
        },
    };
    let plain = |c: &u8| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, b'_' | b' ');
    let unnamed = name.strip_prefix(b"REG-").and_then(hex_0x).is_some_and(|(_, rest)| rest.is_empty());
    if !unnamed && (name.is_empty() || !name.iter().all(plain) || name == b"PCI ID") {
        return None;
    }
    let value_text = skip_blanks(rest.strip_prefix(b":")?);
    let (first, rest) = hex_0x(value_text)?;
    let at = |from: &[u8]| line.len() - from.len();
    let digits = at(value_text) + 2..at(rest);
    // Behind the high half of ACTHD and FADDR eight bare digits follow, in BBADDR an underscore in between.
    let low = rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"_")).and_then(|text| {
        let (low, behind) = hex(text)?;
        (digits.len() == 8 && text.len() - behind.len() == 8).then_some((low, text, behind))
    });
    let (value, more, low_digits) = match low {
        Some((low, text, behind)) => (first << 32 | low, behind, Some(at(text)..at(behind))),
        None => (first, rest, None),
    };
    let name = std::str::from_utf8(name).ok()?;
    Some(RegisterText { name, index, value, more: trim(more), digits, low_digits })
}

/// `[0]`, `[ 0][ 1]`
fn brackets(text: &[u8]) -> Option<RegisterIndex> {
    let one = |text| {
        let (number, rest) = decimal(skip_blanks(text))?;
        Some((u16::try_from(number).ok()?, rest.strip_prefix(b"]")?))
    };
    let (first, rest) = one(text.strip_prefix(b"[")?)?;
    if rest.is_empty() {
        return Some(RegisterIndex::One(first));
    }
    let (second, rest) = one(rest.strip_prefix(b"[")?)?;
    rest.is_empty().then_some(RegisterIndex::Two(first, second))
}

/// `key: value`; the key ends at the first colon.
pub(crate) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let body = skip_blanks(line);
    let colon = body.iter().take(80).position(|&c| c == b':')?;
    let key = trim(body.get(..colon)?);
    (!key.is_empty()).then_some((key, trim(body.get(colon + 1..)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_as_kernels_write_them() {
        let read = |line: &'static str| {
            let r = register(line.as_bytes())?;
            Some((r.name, r.index, r.value, r.more))
        };
        assert_eq!(read("  CCID:  0x00000012"), Some(("CCID", RegisterIndex::None, 0x12, &b""[..])));
        assert_eq!(
            read("  HEAD:  0x00000c40 [0x00000bf8]"),
            Some(("HEAD", RegisterIndex::None, 0xc40, &b"[0x00000bf8]"[..]))
        );
        assert_eq!(
            read("  ACTHD: 0x0000ffff 00000004"),
            Some(("ACTHD", RegisterIndex::None, 0xffff_0000_0004, &b""[..]))
        );
        assert_eq!(
            read("  BBADDR: 0x00000001_00000004"),
            Some(("BBADDR", RegisterIndex::None, 0x1_0000_0004, &b""[..]))
        );
        assert_eq!(
            read("FAULT_TLB_DATA: 0x00000001 0x00000002"),
            Some(("FAULT_TLB_DATA", RegisterIndex::None, 1, &b"0x00000002"[..]))
        );
        assert_eq!(
            read("  ROW_INSTDONE[0][2]: 0x1"),
            Some(("ROW_INSTDONE", RegisterIndex::Two(0, 2), 1, &b""[..]))
        );
        assert_eq!(
            read("\tSC_INSTDONE[ 3]: 0xff"),
            Some(("SC_INSTDONE", RegisterIndex::One(3), 255, &b""[..]))
        );
        assert_eq!(read("GTIER gt 2: 0x7"), Some(("GTIER", RegisterIndex::One(2), 7, &b""[..])));
        assert_eq!(read("  RC PSMI: 0x7"), Some(("RC PSMI", RegisterIndex::None, 7, &b""[..])));
        assert_eq!(
            read("      REG-0x00002234:  0x7"),
            Some(("REG-0x00002234", RegisterIndex::None, 7, &b""[..]))
        );
        for line in [
            "PCI ID: 0x9a49",
            "Subplatform: 0x0",
            "  hung: 1",
            "  EIR: 1",
            "  [0]: 0x1",
            "A[1: 0x1",
            "X: 0x11112222333344445",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn lines_lose_no_byte() {
        let text = b"a\r\n\n\xff\nend";
        let lines: Vec<IntelLine<'_>> = IntelLines::new(text).collect();
        assert_eq!(lines.iter().map(|l| l.text).collect::<Vec<_>>(), [&b"a"[..], b"", b"\xff", b"end"]);
        assert!(lines.windows(2).all(|w| w[0].span.end == w[1].span.start));
        assert_eq!(lines.last().map(|l| l.span.end), Some(text.len() as u64));
    }
}
