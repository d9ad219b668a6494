//! JSON lines on their way out: the first line, lines of any record, diagnostics, and the last line.
//!
//! Never: what a record holds.

use crate::json::Heading;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_base::{Diagnostic, Severity};
use unwedge_hw::Db;

/// Version of the schema of the lines; docs/json-schema.md says what a change means.
const SCHEMA: u32 = 1;

/// What the first line says of any file.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Start<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    program: &'static str,
    kind: &'static str,
}

impl<'a> Start<'a> {
    /// Of a file of a kind, by the kind's id.
    pub fn of(kind: &'static str, db: &'a Db) -> Start<'a> {
        Start {
            heading: Heading::of_lines("unwedge.decode", SCHEMA, db.identity()),
            program: concat!("unwedge ", env!("CARGO_PKG_VERSION")),
            kind,
        }
    }
}

/// Longest JSON of a dump: so many bytes, and so many more per byte of the dump. Real dumps have some 8 bytes per byte.
pub const LENGTH: u64 = 16 << 20;
/// See [`LENGTH`].
pub const LENGTH_PER_BYTE: u64 = 64;

/// JSON lines on their way out. A failed write ends the output; the sink below remembers why.
pub struct Lines<'o> {
    buffer: Vec<u8>,
    out: &'o mut dyn Write,
    broken: bool,
    /// Bytes that may still be handed on, but for the last lines.
    left: u64,
}

impl<'o> Lines<'o> {
    const FULL: usize = 32 << 10;

    /// Lines about a dump of so many bytes: a few bytes of a hostile dump may stand for more than anybody can read.
    pub fn new(dump: u64, out: &'o mut dyn Write) -> Lines<'o> {
        let left = LENGTH.saturating_add(LENGTH_PER_BYTE.saturating_mul(dump));
        Lines { buffer: Vec::with_capacity(Lines::FULL * 2), out, broken: false, left }
    }

    /// So many more bytes may be handed on.
    pub fn allow(&mut self, bytes: u64) {
        if self.left > 0 {
            self.left = self.left.saturating_add(bytes);
        }
    }

    /// Hands everything on to whoever reads along.
    pub fn flush_out(&mut self) {
        self.hand_on();
        self.broken |= self.out.flush().is_err();
    }

    /// Whether further lines are pointless.
    pub fn ended(&self) -> bool {
        self.broken || self.too_long()
    }

    /// Whether lines are left out because there are too many.
    pub fn too_long(&self) -> bool {
        self.left == 0
    }

    /// Adds a line, unless there are too many.
    pub fn push(&mut self, record: &impl Serialize) {
        if !self.too_long() {
            self.push_last(record);
        }
    }

    /// Adds a line even if there are too many.
    pub fn push_last(&mut self, record: &impl Serialize) {
        if self.broken {
            return;
        }
        // Writing here does not fail, and no record has a map with keys that are not strings.
        if serde_json::to_writer(&mut *self, record).is_ok() {
            self.buffer.push(b'\n');
        }
    }

    /// Hands on what is buffered.
    pub fn hand_on(&mut self) {
        self.broken |= self.out.write_all(&self.buffer).is_err();
        self.left = self.left.saturating_sub(self.buffer.len() as u64);
        self.buffer.clear();
    }
}

/// Pieces of a line: one line may be larger than the buffer.
impl Write for Lines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    // Serializers write a few bytes at a time: this is where a listing spends its time.
    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= Lines::FULL {
            self.hand_on();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hand_on();
        Ok(())
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiagnosticLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    severity: &'static str,
    message: &'a str,
    #[serde(rename = "bytes", skip_serializing_if = "Option::is_none")]
    span: Option<[u64; 2]>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LinesEnd {
    #[serde(rename = "type")]
    ty: &'static str,
    lost: bool,
}

/// Diagnostics, and the last line: a stream without it was cut.
pub fn end(diagnostics: &[Diagnostic], lines: &mut Lines<'_>) {
    for d in diagnostics {
        lines.push_last(&DiagnosticLine {
            ty: "diagnostic",
            severity: severity(d.severity),
            message: &d.message,
            span: d.span.map(|s| [s.start, s.end]),
        });
    }
    lines.push_last(&LinesEnd { ty: "end", lost: diagnostics.iter().any(|d| d.severity == Severity::Loss) });
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Loss => "loss",
    }
}

crate::schema::shapes!(lines: Start<'_>, DiagnosticLine<'_>, LinesEnd);
