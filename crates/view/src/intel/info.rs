//! What is in a dump of i915 or xe: device, engines, captured memory, sections.

use super::{IntelDump, Origin, engine_name, kind_name, space_name};
use crate::Style;
use crate::json::Hex;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_capture::intel::RingRegister;

/// Rows of a table that people are shown.
const SHOWN: usize = 40;

/// What `info` says of a dump.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IntelSummary<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(flatten)]
    origin: Origin<'a>,
    engines: Vec<EngineSummary>,
    memory: Vec<MemorySummary<'a>>,
    sections: Vec<SectionSummary<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EngineSummary {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hung: Option<bool>,
    registers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    acthd: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipehr: Option<Hex>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MemorySummary<'a> {
    #[serde(skip_serializing_if = "String::is_empty")]
    engine: String,
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<i64>,
    /// Bytes of text.
    bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SectionSummary<'a> {
    name: &'a str,
    known: bool,
    entries: usize,
    offset: u64,
    bytes: u64,
}

impl<'a> IntelSummary<'a> {
    /// Of a dump.
    pub fn of(dump: IntelDump<'a, 'a>) -> IntelSummary<'a> {
        IntelSummary {
            gpu: dump.device(),
            origin: Origin::of(dump),
            engines: dump
                .engines()
                .iter()
                .map(|e| EngineSummary {
                    name: engine_name(&e.name),
                    hung: dump.hung(e),
                    registers: e.registers.len(),
                    acthd: e.ring(RingRegister::Acthd).map(Hex::wide),
                    ipehr: e.ring(RingRegister::Ipehr).map(|v| Hex::dword(v as u32)),
                })
                .collect(),
            memory: dump
                .blocks()
                .iter()
                .map(|b| MemorySummary {
                    engine: engine_name(&b.owner),
                    kind: kind_name(b.kind),
                    name: &b.name,
                    iova: b.address.map(Hex::wide),
                    space: space_name(b.space),
                    length: b.length,
                    held: b.data.is_some(),
                    error: b.error,
                    bytes: b.span.len(),
                })
                .collect(),
            sections: dump
                .sections()
                .iter()
                .map(|s| SectionSummary {
                    name: &s.name,
                    known: s.known,
                    entries: s.entries,
                    offset: s.span.start,
                    bytes: s.span.len(),
                })
                .collect(),
        }
    }

    /// For people.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let process = self.origin.process.map(|name| match self.origin.pid {
            Some(pid) => format!("{name} [{pid}]"),
            None => name.to_owned(),
        });
        let rows = [
            ("gpu", Some(self.gpu.as_deref().unwrap_or("not said"))),
            ("kernel", self.origin.kernel),
            ("time", self.origin.time),
            ("process", process.as_deref()),
            ("reason", self.origin.reason),
        ];
        for (key, value) in rows {
            if let Some(value) = value {
                writeln!(out, "  {key:9} {value}")?;
            }
        }
        let dash = |hex: Option<Hex>| hex.map_or("-".to_owned(), |hex| hex.to_string());
        writeln!(out, "\n  {}", style.bold("engine   state   registers  ACTHD               IPEHR"))?;
        for e in self.engines.iter().take(SHOWN) {
            let state = match e.hung {
                Some(true) => "hung",
                Some(false) => "-",
                None => "",
            };
            let (acthd, ipehr) = (dash(e.acthd), dash(e.ipehr));
            writeln!(out, "  {:8} {state:7} {:>9}  {acthd:18}  {ipehr}", e.name, e.registers)?;
        }
        more(self.engines.len(), out)?;
        writeln!(out, "\n  {}", style.bold("memory                    space  address                 text"))?;
        for m in self.memory.iter().take(SHOWN) {
            let name = format!("{} {}", m.engine, m.name);
            let note = match (m.error, m.held) {
                (Some(error), _) => format!("not readable: error {error}"),
                (None, false) => "no contents".to_owned(),
                (None, true) => String::new(),
            };
            let line = format!(
                "{:25} {:6} {:18} {:>9}  {note}",
                name.trim(),
                m.space.unwrap_or("-"),
                dash(m.iova),
                m.bytes
            );
            writeln!(out, "  {}", line.trim_end())?;
        }
        more(self.memory.len(), out)?;
        writeln!(out, "\n  {}", style.bold("section                   entries     bytes"))?;
        for s in self.sections.iter().take(SHOWN) {
            let note = if s.known { "" } else { "not known to unwedge" };
            let line = format!("{:25} {:>7} {:>9}  {note}", s.name, s.entries, s.bytes);
            writeln!(out, "  {}", line.trim_end())?;
        }
        more(self.sections.len(), out)
    }
}

fn more(count: usize, out: &mut dyn Write) -> io::Result<()> {
    match count.checked_sub(SHOWN + 1) {
        Some(rest) => writeln!(out, "  … and {} more", rest + 1),
        None => Ok(()),
    }
}
