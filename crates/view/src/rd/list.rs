//! `unwedge rd cat`: the sections of a capture, one per line.

use crate::json::Hex;
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Read, Write};
use unwedge_base::{ChipId, Diagnostic};
use unwedge_capture::rd::{RdReader, RdSection, RdSectionKind};

/// A section, for people and programs.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SectionLine {
    offset: u64,
    #[serde(rename = "type")]
    number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    /// As its header says.
    bytes: u32,
    /// What is there of it, where that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    there: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iova: Option<Hex>,
    /// Of what is at that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dwords: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chip_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_bin: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Which submit it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<u32>,
}

/// Lists a capture. Returns what was lost of it.
pub fn list(capture: impl Read, json: bool, max: u64, out: &mut dyn Write) -> Vec<Diagnostic> {
    let mut reader = RdReader::new(capture).with_limit(max);
    let mut submits = 0;
    while let Some(section) = reader.next() {
        let line = SectionLine::of(&section, &mut submits);
        // A failed write is for the owner of `out` to remember.
        let written = if json { line.json(out) } else { line.text(out) };
        if written.is_err() {
            break;
        }
    }
    reader.diagnostics().to_vec()
}

impl SectionLine {
    fn of(section: &RdSection<'_>, submits: &mut u32) -> SectionLine {
        let kind = section.kind;
        let known = !matches!(kind, RdSectionKind::Unknown(_));
        let mut line = SectionLine {
            offset: section.span.start,
            number: kind.number(),
            name: known.then(|| kind.name()),
            bytes: section.claimed,
            there: section.is_cut().then_some(section.payload.len() as u64),
            ..SectionLine::default()
        };
        let range = section.range();
        match kind {
            RdSectionKind::GpuAddr | RdSectionKind::ShaderLogBuffer | RdSectionKind::CpLogBuffer => {
                line.iova = range.map(|range| Hex::wide(range.iova));
                line.size = range.map(|range| range.size);
            }
            RdSectionKind::CmdStreamAddr => {
                line.iova = range.map(|range| Hex::wide(range.iova));
                line.dwords = range.map(|range| range.size);
                line.submit = Some(*submits);
                *submits = submits.saturating_add(1);
            }
            RdSectionKind::GpuId => line.gpu_id = section.gpu_id(),
            RdSectionKind::ChipId => {
                line.chip_id = section.chip_id().map(|id| id.to_string());
                line.speed_bin = section.chip_id().and_then(ChipId::speed_bin);
            }
            RdSectionKind::Test
            | RdSectionKind::Cmd
            | RdSectionKind::VertexShader
            | RdSectionKind::FragmentShader => {
                line.text = Some(String::from_utf8_lossy(section.text()).into_owned());
            }
            _ => {}
        }
        line
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = self.name.map_or_else(|| format!("type {:#x}", self.number), str::to_owned);
        write!(out, "{:#012x}  {name:18} {:>10}", self.offset, self.bytes)?;
        if let Some(there) = self.there {
            write!(out, "  cut after {}", counted(there, "byte", "bytes"))?;
        }
        if let Some(submit) = self.submit {
            write!(out, "  [{submit}]")?;
        }
        if let Some(iova) = self.iova {
            write!(out, "  {iova}")?;
        }
        if let Some(size) = self.size {
            write!(out, "  {}", counted(size.into(), "byte", "bytes"))?;
        }
        if let Some(dwords) = self.dwords {
            write!(out, "  {}", counted(dwords.into(), "dword", "dwords"))?;
        }
        if let Some(gpu_id) = self.gpu_id {
            write!(out, "  {gpu_id}")?;
        }
        if let Some(chip_id) = &self.chip_id {
            write!(out, "  {chip_id}")?;
        }
        if let Some(bin) = self.speed_bin {
            write!(out, "  speed bin {bin}")?;
        }
        if let Some(text) = &self.text {
            write!(out, "  {:?}", text.lines().next().unwrap_or_default())?;
        }
        out.write_all(b"\n")
    }
}

crate::schema::shapes!(object: SectionLine);
