//! The project's own format for instruction sets: one definition per line, nesting by indentation.
//!
//! ```text
//! enum swiz
//!   0 "x"
//! expr half = !{FULL}
//! bitset src size=8
//!   show "{HALF}r{GPR}.{SWIZ}"
//!   field 1:0 SWIZ swiz
//!   field 7:2 GPR uint
//!   derive HALF bool "h" = :half
//! bitset ldg.a from=cat6-ldg gens=600-699
//!   when {SHIFT} > 0
//!     show "…"
//!   bits 22 0
//!   assert 11 0
//!   field 21:14 SRC1 src with=SRC1_CONST:SRC_CONST,FULL
//! ```
//!
//! `"…"` encloses text, with `\"` and `\\`; a line that starts with `#` is a comment. An expression takes the rest of its
//! line: C's integer operators over `{FIELD}`, numbers and `GEN`, or `:name` for an `expr` line.
//!
//! Never: I/O, resolving names. Reading what [`write()`] wrote gives back the same description.

use super::model::*;
use std::fmt::Write;
use thiserror::Error;

/// Where and why a description does not read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: expected {expected}")]
pub struct IsaTextError {
    /// Line, from 1.
    pub line: usize,
    /// What should have stood there.
    pub expected: &'static str,
}

type Result<T> = std::result::Result<T, IsaTextError>;

/// Reads a description.
///
/// # Errors
///
/// [`IsaTextError`] with the first line that the grammar does not allow, and what was expected there.
pub fn read(text: &str) -> Result<Isa> {
    let mut isa = Isa::default();
    for (index, line) in text.lines().enumerate() {
        let body = line.trim_start();
        if body.is_empty() || body.starts_with('#') {
            continue;
        }
        let mut words = LineWords { rest: body, line: index + 1 };
        match line.len() - body.len() {
            0 => isa.items.push(item(&mut words)?),
            depth => match isa.items.last_mut() {
                Some(IsaItem::Enum(e)) if depth == 2 => {
                    let value = words.number()?;
                    e.values.push((value, words.quoted()?));
                }
                Some(IsaItem::Bitset(b)) if depth == 2 || depth == 4 => row(&mut words, b, depth == 4)?,
                _ => return words.fail("a definition to nest this line in"),
            },
        }
        words.end()?;
    }
    Ok(isa)
}

fn item(words: &mut LineWords<'_>) -> Result<IsaItem> {
    match words.word()? {
        "enum" => Ok(IsaItem::Enum(IsaEnum { name: words.word()?.to_owned(), values: Vec::new() })),
        "expr" => Ok(IsaItem::Expr { name: words.word()?.to_owned(), source: words.expr()? }),
        "bitset" => {
            let mut bitset = Bitset {
                name: words.word()?.to_owned(),
                cases: vec![BitsetCase::default()],
                ..Bitset::default()
            };
            while !words.rest.is_empty() {
                match words.key()? {
                    "from" => bitset.parent = Some(words.word()?.to_owned()),
                    "size" => bitset.size = Some(words.small()?),
                    "title" => bitset.title = Some(words.quoted()?),
                    "gens" => {
                        let range = words.word()?;
                        let Some((min, max)) = range.split_once('-') else {
                            return words.fail("a range of generations");
                        };
                        bitset.min = words.bound(min)?;
                        bitset.max = words.bound(max)?;
                    }
                    _ => return words.fail("from, size, title or gens"),
                }
            }
            Ok(IsaItem::Bitset(bitset))
        }
        _ => words.fail("enum, expr or bitset"),
    }
}

fn row(words: &mut LineWords<'_>, bitset: &mut Bitset, inner: bool) -> Result<()> {
    let word = words.word()?;
    let at = bitset.cases.len().saturating_sub(if inner { 2 } else { 1 });
    if word == "when" && !inner {
        let when = words.rest_of_line()?;
        bitset.cases.insert(at, BitsetCase { when: Some(when), ..BitsetCase::default() });
        return Ok(());
    }
    let line = words.line;
    let Some(case) = bitset.cases.get_mut(at).filter(|c| c.when.is_some() == inner) else {
        return Err(IsaTextError { line, expected: "a condition to nest this line in" });
    };
    match word {
        "show" => case.show = Some(words.quoted()?),
        "bits" | "assert" => {
            let (high, low) = words.range()?;
            let pattern = words.word()?.to_owned();
            let digits = if word == "bits" { "01x" } else { "01" };
            if pattern.len() as u64 != u64::from(high - low) + 1
                || !pattern.chars().all(|c| digits.contains(c))
            {
                return words.fail("one digit for each bit");
            }
            case.rows.push(match word {
                "bits" => CaseRow::Bits { low, high, pattern },
                _ => CaseRow::Assert { low, high, pattern },
            });
        }
        "field" => {
            let (high, low) = words.range()?;
            let mut field = words.field()?;
            while !words.rest.is_empty() {
                match words.key()? {
                    "with" => {
                        for param in words.word()?.split(',') {
                            let (name, inside) = param.split_once(':').unwrap_or((param, param));
                            field.params.push((name.to_owned(), inside.to_owned()));
                        }
                    }
                    "call" => field.call = words.word()? == "yes",
                    _ => return words.fail("with or call"),
                }
            }
            case.rows.push(CaseRow::Field { low, high, field });
        }
        "derive" => {
            let field = words.field()?;
            let mut width = None;
            if !words.rest.starts_with('=') {
                match words.key()? {
                    "width" => width = Some(words.small()?),
                    _ => return words.fail("width or an expression"),
                }
            }
            case.rows.push(CaseRow::Derived { width, field, source: words.expr()? });
        }
        _ => return words.fail("when, show, bits, assert, field or derive"),
    }
    Ok(())
}

struct LineWords<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> LineWords<'a> {
    fn fail<T>(&self, expected: &'static str) -> Result<T> {
        Err(IsaTextError { line: self.line, expected })
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (word, rest) = self.rest.split_at_checked(len).unwrap_or((self.rest, ""));
        self.rest = rest.trim_start();
        word
    }

    fn word(&mut self) -> Result<&'a str> {
        let len = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        match self.take(len) {
            "" => self.fail("a word"),
            word => Ok(word),
        }
    }

    /// The `key` of `key=value`; the value is next.
    fn key(&mut self) -> Result<&'a str> {
        match self.rest.split_once('=') {
            Some((key, rest)) if !key.contains(char::is_whitespace) => {
                self.rest = rest;
                Ok(key)
            }
            _ => self.fail("key=value"),
        }
    }

    fn quoted(&mut self) -> Result<String> {
        let Some(body) = self.rest.strip_prefix('"') else { return self.fail("a text in quotes") };
        let mut text = String::new();
        let mut chars = body.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = body.get(at + 1..).unwrap_or_default().trim_start();
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                _ => text.push(c),
            }
        }
        self.fail("a closing quote")
    }

    fn number(&mut self) -> Result<u64> {
        let word = self.word()?;
        let value = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => word.parse(),
        };
        value.or_else(|_| self.fail("a number"))
    }

    fn small(&mut self) -> Result<u32> {
        let value = self.number()?;
        u32::try_from(value).or_else(|_| self.fail("a small number"))
    }

    fn bound(&self, text: &str) -> Result<Option<u32>> {
        match text {
            "" => Ok(None),
            _ => text.parse().map(Some).or_else(|_| self.fail("a generation")),
        }
    }

    /// `HI:LO` or one bit.
    fn range(&mut self) -> Result<(u32, u32)> {
        let word = self.word()?;
        let (high, low) = word.split_once(':').unwrap_or((word, word));
        match (high.parse(), low.parse()) {
            (Ok(high), Ok(low)) if low <= high && high < 128 => Ok((high, low)),
            _ => self.fail("bits below 128, the highest first"),
        }
    }

    fn field(&mut self) -> Result<IsaField> {
        let name = self.word()?.to_owned();
        let ty = self.word()?.to_owned();
        let display = if self.rest.starts_with('"') { Some(self.quoted()?) } else { None };
        Ok(IsaField { name, ty, display, ..IsaField::default() })
    }

    fn expr(&mut self) -> Result<String> {
        match self.rest.strip_prefix('=') {
            Some(rest) => {
                self.rest = rest.trim_start();
                self.rest_of_line()
            }
            None => self.fail("= and an expression"),
        }
    }

    fn rest_of_line(&mut self) -> Result<String> {
        match self.take(self.rest.len()).trim_end() {
            "" => self.fail("an expression"),
            text => Ok(text.to_owned()),
        }
    }

    fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { self.fail("the end of the line") }
    }
}

/// Writes a description in the form [`read`] reads.
pub fn write(isa: &Isa) -> String {
    let mut out = String::new();
    for item in &isa.items {
        // Writing to a String cannot fail.
        let _ = match item {
            IsaItem::Enum(e) => write_enum(&mut out, e),
            IsaItem::Expr { name, source } => writeln!(out, "expr {name} = {source}"),
            IsaItem::Bitset(b) => write_bitset(&mut out, b),
        };
    }
    out
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn write_enum(out: &mut String, e: &IsaEnum) -> std::fmt::Result {
    writeln!(out, "enum {}", e.name)?;
    e.values.iter().try_for_each(|(value, text)| writeln!(out, "  {value} {}", quote(text)))
}

fn write_bitset(out: &mut String, b: &Bitset) -> std::fmt::Result {
    write!(out, "bitset {}", b.name)?;
    if let Some(parent) = &b.parent {
        write!(out, " from={parent}")?;
    }
    if let Some(size) = b.size {
        write!(out, " size={size}")?;
    }
    if let Some(title) = &b.title {
        write!(out, " title={}", quote(title))?;
    }
    if b.min.is_some() || b.max.is_some() {
        let bound = |b: Option<u32>| b.map(|b| b.to_string()).unwrap_or_default();
        write!(out, " gens={}-{}", bound(b.min), bound(b.max))?;
    }
    out.push('\n');
    for case in &b.cases {
        let indent = match &case.when {
            Some(when) => {
                writeln!(out, "  when {when}")?;
                "    "
            }
            None => "  ",
        };
        if let Some(show) = &case.show {
            writeln!(out, "{indent}show {}", quote(show))?;
        }
        for row in &case.rows {
            out.push_str(indent);
            write_row(out, row)?;
        }
    }
    Ok(())
}

fn write_row(out: &mut String, row: &CaseRow) -> std::fmt::Result {
    let range = |high: &u32, low: &u32| if high == low { high.to_string() } else { format!("{high}:{low}") };
    let display =
        |field: &IsaField| field.display.as_ref().map(|d| format!(" {}", quote(d))).unwrap_or_default();
    match row {
        CaseRow::Bits { low, high, pattern } => writeln!(out, "bits {} {pattern}", range(high, low)),
        CaseRow::Assert { low, high, pattern } => writeln!(out, "assert {} {pattern}", range(high, low)),
        CaseRow::Field { low, high, field } => {
            write!(out, "field {} {} {}{}", range(high, low), field.name, field.ty, display(field))?;
            for (index, (name, inside)) in field.params.iter().enumerate() {
                out.push_str(if index == 0 { " with=" } else { "," });
                out.push_str(name);
                if name != inside {
                    write!(out, ":{inside}")?;
                }
            }
            writeln!(out, "{}", if field.call { " call=yes" } else { "" })
        }
        CaseRow::Derived { width, field, source } => {
            write!(out, "derive {} {}{}", field.name, field.ty, display(field))?;
            if let Some(width) = width {
                write!(out, " width={width}")?;
            }
            writeln!(out, " = {source}")
        }
    }
}
