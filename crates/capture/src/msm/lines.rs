//! The line grammar: a dump as a sequence of lines, each with its bytes and its reading.
//!
//! Nothing is forgotten: the `raw` bytes of all lines, one after the other, are the input. Nothing fails: a line that
//! fits nowhere is [`LineKind::Other`], and reading goes on with the next. Never: what an entry as a whole says.
//! Facts: `adreno_show`, `a5xx_show` and `a6xx_show` of Linux 4.19 to 6.17.

use super::model::Blob;
pub use super::sections::MsmSection;
use std::borrow::Cow;
use std::io::BufRead;
use unwedge_base::Span;

/// The keys outside of sections, in the order in which kernels write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopKey {
    /// `kernel`
    Kernel,
    /// `module`
    Module,
    /// `time`
    Time,
    /// `comm`
    Comm,
    /// `cmdline`
    Cmdline,
    /// `gpu-initialized`
    GpuInitialized,
    /// `revision`
    Revision,
    /// `rbbm-status`
    RbbmStatus,
}

impl TopKey {
    /// Every key, in the order in which kernels write them.
    pub const ALL: [TopKey; 8] = [
        TopKey::Kernel,
        TopKey::Module,
        TopKey::Time,
        TopKey::Comm,
        TopKey::Cmdline,
        TopKey::GpuInitialized,
        TopKey::Revision,
        TopKey::RbbmStatus,
    ];

    /// As written in front of the colon.
    pub fn name(self) -> &'static str {
        match self {
            TopKey::Kernel => "kernel",
            TopKey::Module => "module",
            TopKey::Time => "time",
            TopKey::Comm => "comm",
            TopKey::Cmdline => "cmdline",
            TopKey::GpuInitialized => "gpu-initialized",
            TopKey::Revision => "revision",
            TopKey::RbbmStatus => "rbbm-status",
        }
    }

    /// The key with this name.
    pub fn from_name(name: &str) -> Option<TopKey> {
        TopKey::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct DevcoreLine<'a> {
    /// Where it stands, its end of line included.
    pub span: Span,
    /// Its bytes, its end of line included (absent at the end of a cut dump).
    pub raw: &'a [u8],
    /// The section it stands in. A heading stands in the section that it opens. `None` before the first section and
    /// in sections that are not known.
    pub section: Option<MsmSection>,
    /// Its reading.
    pub kind: LineKind<'a>,
}

impl<'a> DevcoreLine<'a> {
    /// The bytes without the end of line (`\n` or `\r\n`).
    pub fn text(&self) -> &'a [u8] {
        strip_newline(self.raw)
    }

    /// The bytes without indentation, dash of a list item, and end of line.
    pub fn content(&self) -> &'a [u8] {
        let text = skip_blanks(self.text());
        text.strip_prefix(b"- ").unwrap_or(text)
    }
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum LineKind<'a> {
    /// `---`, the first line.
    Marker,
    /// `key: value` of the dump as a whole.
    Top {
        /// The key.
        key: TopKey,
        /// What follows the colon and one blank.
        value: &'a [u8],
    },
    /// The heading of a section: `registers:`.
    Section(MsmSection),
    /// The heading of a section that is not known; [`DevcoreLine::section`] is `None` until the next heading.
    UnknownSection {
        /// The name, without its colon.
        name: &'a str,
    },
    /// `- { offset: 0x000840, value: 0x00800005 }`.
    Register {
        /// In bytes.
        offset: u32,
        /// Value.
        value: u32,
        /// Both numbers fit in 32 bits and the line ends as it should.
        exact: bool,
    },
    /// `data: !!ascii85 |`; the next line holds the data.
    DataHeader,
    /// The line below a data header.
    Data(Blob<'a>),
    /// `- key: value` or `- key=value`, at any indentation.
    ListItem {
        /// The key.
        key: &'a str,
        /// What follows the colon and one blank, or the equals sign.
        value: &'a [u8],
        /// Blanks in front.
        indent: usize,
    },
    /// `key: value` inside of a section.
    Field {
        /// The key.
        key: &'a str,
        /// What follows the colon and one blank.
        value: &'a [u8],
        /// Blanks in front.
        indent: usize,
    },
    /// Nothing of the above, or an empty line.
    Other,
}

/// Reads a dump line by line.
#[derive(Clone, Debug)]
pub struct DevcoreLines<'a> {
    text: &'a [u8],
    at: usize,
    section: Option<MsmSection>,
    below_data_header: bool,
}

impl<'a> DevcoreLines<'a> {
    /// From the start of a dump.
    pub fn new(text: &'a [u8]) -> DevcoreLines<'a> {
        DevcoreLines { text, at: 0, section: None, below_data_header: false }
    }

    fn classify(&mut self, raw: &'a [u8]) -> LineKind<'a> {
        let text = strip_newline(raw);
        let body = skip_blanks(text);
        let indent = text.len() - body.len();
        let kind = if std::mem::take(&mut self.below_data_header) && self.is_data(body, indent) {
            let start = self.at + indent;
            let span = Span::new(start, start + body.len());
            LineKind::Data(Blob { encoded: Cow::Borrowed(body), span, cut: !raw.ends_with(b"\n") })
        } else {
            self.classify_plain(body, indent)
        };
        match &kind {
            LineKind::Section(section) => self.section = Some(*section),
            LineKind::UnknownSection { .. } => self.section = None,
            LineKind::DataHeader => self.below_data_header = true,
            LineKind::ListItem { key, indent, .. } => self.resynchronize(key, *indent),
            _ => {}
        }
        kind
    }

    /// Ascii85 has no blanks, so that anything readable as something else was not meant as data.
    fn is_data(&self, body: &[u8], indent: usize) -> bool {
        if indent > 0 && !body.contains(&b' ') {
            return true;
        }
        match self.classify_plain(body, indent) {
            LineKind::Other => indent > 0 || !body.is_empty(),
            _ => false,
        }
    }

    fn classify_plain(&self, body: &'a [u8], indent: usize) -> LineKind<'a> {
        if let Some(item) = body.strip_prefix(b"-") {
            let item = skip_blanks(item);
            if item.first() == Some(&b'{') {
                return register(item).unwrap_or(LineKind::Other);
            }
            if body == b"---" {
                return LineKind::Marker;
            }
            return match split_key(item, true) {
                Some((key, value)) => LineKind::ListItem { key, value, indent },
                None => LineKind::Other,
            };
        }
        let Some((key, value)) = split_key(body, false) else { return LineKind::Other };
        if key == "data" && value.starts_with(b"!!ascii85") {
            return LineKind::DataHeader;
        }
        if let Some(key) = TopKey::from_name(key) {
            return LineKind::Top { key, value };
        }
        if value.is_empty()
            && let Some(section) = MsmSection::from_name(key)
        {
            return LineKind::Section(section);
        }
        if indent == 0 && value.is_empty() {
            return LineKind::UnknownSection { name: key };
        }
        LineKind::Field { key, value, indent }
    }

    /// A list item that opens entries of another section says that a heading is missing.
    fn resynchronize(&mut self, key: &str, indent: usize) {
        let Some(current) = self.section else { return };
        let Some(opened) = MsmSection::opened_by(key) else { return };
        let at_home = match current {
            MsmSection::FaultInfo | MsmSection::PageTables | MsmSection::VmLog => true,
            _ => opened == current,
        };
        if !at_home && indent <= 2 {
            self.section = Some(opened);
        }
    }
}

impl<'a> Iterator for DevcoreLines<'a> {
    type Item = DevcoreLine<'a>;

    fn next(&mut self) -> Option<DevcoreLine<'a>> {
        let rest = self.text.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        // A slice as a reader: this is where the standard library searches a byte fast, and it cannot fail.
        let len = (&mut &*rest).skip_until(b'\n').unwrap_or(rest.len());
        let raw = &rest[..len];
        let kind = self.classify(raw);
        let span = Span::new(self.at, self.at + len);
        self.at += len;
        Some(DevcoreLine { span, raw, section: self.section, kind })
    }
}

fn strip_newline(raw: &[u8]) -> &[u8] {
    let text = raw.strip_suffix(b"\n").unwrap_or(raw);
    text.strip_suffix(b"\r").unwrap_or(text)
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&c| c == b' ' || c == b'\t').count();
    &text[blanks..]
}

/// `key: value`, `key:`, and for list items `key=value` and `key:value` too.
fn split_key(text: &[u8], item: bool) -> Option<(&str, &[u8])> {
    let is_key = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'[' | b']');
    let len = text.iter().take(64).take_while(|c| is_key(c)).count();
    let key = text.get(..len).filter(|k| !k.is_empty())?;
    let key = std::str::from_utf8(key).ok()?;
    match &text[len..] {
        [b':'] => Some((key, &[])),
        [b':', b' ', value @ ..] => Some((key, value)),
        [b':', b'\t', value @ ..] => Some((key, value)),
        [b':' | b'=', value @ ..] if item => Some((key, value)),
        _ => None,
    }
}

/// From the brace on.
fn register<'a>(item: &[u8]) -> Option<LineKind<'a>> {
    let rest = skip_blanks(item.strip_prefix(b"{")?);
    let (offset, rest) = hex_prefix(skip_blanks(rest.strip_prefix(b"offset:")?))?;
    let rest = skip_blanks(rest.strip_prefix(b",").unwrap_or(rest));
    let (value, rest) = hex_prefix(skip_blanks(rest.strip_prefix(b"value:")?))?;
    let closed = skip_blanks(rest).starts_with(b"}");
    let fit = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let exact = closed && offset <= u64::from(u32::MAX) && value <= u64::from(u32::MAX);
    Some(LineKind::Register { offset: fit(offset), value: fit(value), exact })
}

/// A hexadecimal number, with or without 0x, and what follows it. Saturates.
fn hex_prefix(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")).unwrap_or(text);
    let mut value = 0u64;
    let mut len = 0;
    for &c in digits {
        let Some(digit) = char::from(c).to_digit(16) else { break };
        value = if value >> 60 == 0 { value << 4 | u64::from(digit) } else { u64::MAX };
        len += 1;
    }
    (len > 0).then(|| (value, &digits[len..]))
}

/// A number as a dump has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevcoreNumber {
    /// Its magnitude; the greatest there is when it does not fit.
    pub magnitude: u64,
    /// There is a minus in front.
    pub negative: bool,
    /// Nothing but the number stands there, and it fits in 64 bits.
    pub exact: bool,
}

impl DevcoreNumber {
    /// Reads the number at the start of a text: decimal, or hexadecimal after 0x. `None` without a digit.
    pub fn decimal(text: &[u8]) -> Option<DevcoreNumber> {
        let text = skip_blanks(text);
        if text.starts_with(b"0x") || text.starts_with(b"0X") {
            return DevcoreNumber::hex(text);
        }
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let len = digits.iter().take_while(|c| c.is_ascii_digit()).count();
        let mut magnitude = Some(0u64);
        for &c in &digits[..len] {
            magnitude = magnitude.and_then(|m| m.checked_mul(10)?.checked_add(u64::from(c - b'0')));
        }
        let exact = magnitude.is_some() && skip_blanks(&digits[len..]).is_empty();
        let magnitude = magnitude.unwrap_or(u64::MAX);
        (len > 0).then_some(DevcoreNumber { magnitude, negative: digits.len() < text.len(), exact })
    }

    /// Reads the hexadecimal number at the start of a text, with or without 0x. `None` without a digit.
    pub fn hex(text: &[u8]) -> Option<DevcoreNumber> {
        let (magnitude, rest) = hex_prefix(skip_blanks(text))?;
        let exact = skip_blanks(rest).is_empty() && magnitude < u64::MAX;
        Some(DevcoreNumber { magnitude, negative: false, exact })
    }

    /// As 32 bits: negative numbers as their two's complement (old kernels print fences signed), too large ones as
    /// the greatest there is. The flag says that nothing was lost.
    pub fn to_u32(self) -> (u32, bool) {
        match u32::try_from(self.magnitude) {
            Ok(m) if self.negative => (m.wrapping_neg(), self.exact && m <= 1 << 31),
            Ok(m) => (m, self.exact),
            Err(_) => (u32::MAX, false),
        }
    }

    /// As 64 bits, like [`DevcoreNumber::to_u32`].
    pub fn to_u64(self) -> (u64, bool) {
        if self.negative {
            (self.magnitude.wrapping_neg(), self.exact && self.magnitude <= 1 << 63)
        } else {
            (self.magnitude, self.exact)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Option<MsmSection>, LineKind<'_>)> {
        DevcoreLines::new(text.as_bytes()).map(|l| (l.section, l.kind)).collect()
    }

    #[test]
    fn lines_of_a_kernel() {
        let text = "---\nkernel: 5.8.0\nbos:\n  - iova: 0x0000000100000000\n    size: 4096\n    data: !!ascii85 |\n     z!!!!\"\nregisters:\n  - { offset: 0x000840, value: 0x00800005 }\n";
        let blob = Blob { encoded: Cow::Borrowed(b"z!!!!\""), ..Blob::default() };
        let (bos, registers) = (Some(MsmSection::Bos), Some(MsmSection::Registers));
        assert_eq!(
            kinds(text),
            [
                (None, LineKind::Marker),
                (None, LineKind::Top { key: TopKey::Kernel, value: b"5.8.0" }),
                (bos, LineKind::Section(MsmSection::Bos)),
                (bos, LineKind::ListItem { key: "iova", value: b"0x0000000100000000", indent: 2 }),
                (bos, LineKind::Field { key: "size", value: b"4096", indent: 4 }),
                (bos, LineKind::DataHeader),
                (bos, LineKind::Data(blob)),
                (registers, LineKind::Section(MsmSection::Registers)),
                (registers, LineKind::Register { offset: 0x840, value: 0x80_0005, exact: true }),
            ]
        );
    }

    #[test]
    fn no_byte_is_lost() {
        let text: &[u8] = b"---\r\n\xff\xfe\0\nbos:\n\n\n  - iova: 5\n    data: !!ascii85 |\nregisters:\n - {offset:4,value:zz";
        let joined: Vec<u8> = DevcoreLines::new(text).flat_map(|l| l.raw.to_vec()).collect();
        assert_eq!(joined, text);
    }

    #[test]
    fn a_header_without_data_does_not_swallow_the_next_line() {
        let k = kinds("bos:\n    data: !!ascii85 |\n  - iova: 0x1\n    data: !!ascii85 |\nregisters:\n");
        assert!(matches!(k[2].1, LineKind::ListItem { key: "iova", .. }));
        assert_eq!(k[4].1, LineKind::Section(MsmSection::Registers));
    }

    #[test]
    fn data_may_look_like_a_key() {
        let k = kinds("bos:\n    data: !!ascii85 |\n     size:\n    data: !!ascii85 |\n     -:z{!\n");
        assert!(matches!(k[2].1, LineKind::Data(_)));
        assert!(matches!(k[4].1, LineKind::Data(_)));
    }

    #[test]
    fn a_lost_heading_is_found_by_what_its_entries_start_with() {
        let k = kinds("bos:\n  - iova: 0x1\n  - regs-name: CP_ROQ\n    dwords: 4\n  - debugbus-block: X\n");
        let sections: Vec<_> = k.iter().map(|(s, _)| *s).collect();
        let bos = Some(MsmSection::Bos);
        let indexed = Some(MsmSection::IndexedRegisters);
        assert_eq!(sections, [bos, bos, indexed, indexed, Some(MsmSection::Debugbus)]);
    }

    #[test]
    fn numbers_saturate_and_say_so() {
        let n = |t: &[u8]| DevcoreNumber::decimal(t).map(DevcoreNumber::to_u32);
        assert_eq!(n(b"40"), Some((40, true)));
        assert_eq!(n(b"-1"), Some((u32::MAX, true)));
        assert_eq!(n(b"0x10"), Some((16, true)));
        assert_eq!(n(b"4294967296"), Some((u32::MAX, false)));
        assert_eq!(n(b"99999999999999999999999"), Some((u32::MAX, false)));
        assert_eq!(n(b"12abc"), Some((12, false)));
        assert_eq!(n(b"x"), None);
        assert_eq!(DevcoreNumber::hex(b"1000").map(DevcoreNumber::to_u64), Some((0x1000, true)));
        assert_eq!(
            DevcoreNumber::hex(b"0x11112222333344445").map(DevcoreNumber::to_u64),
            Some((u64::MAX, false))
        );
    }

    #[test]
    fn registers_in_any_dress() {
        let read = |t: &'static str| kinds(t).pop().unwrap().1;
        let same = LineKind::Register { offset: 0x840, value: 5, exact: true };
        assert_eq!(read("- { offset: 0x000840, value: 0x00000005 }"), same);
        assert_eq!(read("\t-  {offset:840 value:5}\r\n"), same);
        assert_eq!(
            read("  - { offset: 0x0840, value: 0x123456789 }"),
            LineKind::Register { offset: 0x840, value: u32::MAX, exact: false }
        );
        assert_eq!(read("  - { offset: 0x0840, value:"), LineKind::Other);
    }
}
