//! Every event of every submit of a capture as JSON lines, as the capture comes in. Never: more memory than what is
//! alive.

use super::stream::JsonSink;
use crate::CaptureStream;
use crate::json::{self, Hex};
use crate::lines::{Lines, Start, end};
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu};
use unwedge_stream::adreno::TroubleKind;
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};

/// JSON of a capture may be so many bytes long for each byte of it: buffers run once for each bin.
pub const LENGTH_PER_BYTE: u64 = 1 << 11;

/// Every event of a capture as a JSON line. Returns what was lost. A failed write is for the owner of `out` to remember.
pub fn capture(
    stream: &mut dyn CaptureStream,
    db: &Db,
    max_alive: u64,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let mut lines = Lines::new(0, out);
    lines.push(&Start::of("rd-capture", db));
    let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
    let slow = stream.live();
    let mut events = Events { lines, slow, lost: Vec::new() };
    let mut diagnostics = Player::new(choice, db, max_alive).play(&mut *stream, &mut events);
    let Events { mut lines, lost, .. } = events;
    diagnostics.splice(0..0, stream.diagnostics());
    diagnostics.extend(lost);
    if lines.too_long() {
        diagnostics.push(Diagnostic::loss(None, "the output is too long: the rest is not shown"));
    }
    end(&diagnostics, &mut lines);
    lines.hand_on();
    diagnostics
}

/// The GPU that what follows was submitted to.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GpuLine {
    #[serde(rename = "type")]
    ty: &'static str,
    #[serde(flatten)]
    gpu: json::JsonGpu,
}

/// A section that is not told by the lines of what it holds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SectionLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    kind: &'static str,
    number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    bytes: [u64; 2],
}

/// An address and a size: a buffer, or a log.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RangeLine {
    #[serde(rename = "type")]
    ty: &'static str,
    iova: Hex,
    size: u32,
}

/// The contents of the buffer named last.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ContentsLine {
    #[serde(rename = "type")]
    ty: &'static str,
    size: u64,
    bytes: [u64; 2],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SubmitLine<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<Cow<'a, str>>,
    iova: Hex,
    dwords: u32,
    /// With contents.
    buffers: usize,
    bytes: [u64; 2],
}

/// Writes the lines of a capture.
struct Events<'o> {
    lines: Lines<'o>,
    /// The capture may come slowly: what is there is handed on.
    slow: bool,
    lost: Vec<Diagnostic>,
}

impl<'d> Consumer<'d> for Events<'_> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.lines.allow(section.span.len().saturating_mul(LENGTH_PER_BYTE));
        let bytes = [section.span.start, section.span.end];
        let range =
            |ty| section.range().map(|range| RangeLine { ty, iova: Hex::wide(range.iova), size: range.size });
        let line = match section.kind {
            RdSectionKind::GpuAddr => {
                if step == LiveStep::Forgotten {
                    self.lines.push(&Plain { ty: "buffers-gone" });
                }
                range("buffer")
            }
            RdSectionKind::ShaderLogBuffer => range("shader-log-buffer"),
            RdSectionKind::CpLogBuffer => range("cp-log-buffer"),
            RdSectionKind::BufferContents => {
                let line = ContentsLine { ty: "contents", size: section.length(), bytes };
                return self.lines.push(&line);
            }
            // The lines of what they say come by themselves.
            RdSectionKind::CmdStreamAddr if matches!(step, LiveStep::Submit(_)) => return,
            RdSectionKind::GpuId | RdSectionKind::ChipId => return,
            _ => None,
        };
        if let Some(line) = line {
            return self.lines.push(&line);
        }
        let text = match section.kind {
            RdSectionKind::Test
            | RdSectionKind::Cmd
            | RdSectionKind::VertexShader
            | RdSectionKind::FragmentShader => Some(String::from_utf8_lossy(section.text())),
            _ => None,
        };
        let (kind, number) = (section.kind.name(), section.kind.number());
        self.lines.push(&SectionLine { ty: "section", kind, number, text, bytes });
    }

    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        let generation = gpu.map(|gpu| gpu.generation());
        let gpu = json::JsonGpu::of_identity(identity, generation);
        self.lines.push(&GpuLine { ty: "gpu", gpu });
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let (submit, live) = (submission.submit, submission.live);
        let process = live.process();
        self.lines.push(&SubmitLine {
            ty: "submit",
            number: submit.number,
            process: (!process.is_empty()).then(|| String::from_utf8_lossy(process)),
            iova: Hex::wide(submit.iova),
            dwords: submit.dwords,
            buffers: live.memory().buffers().len(),
            bytes: [submit.span.start, submit.span.end],
        });
        // What is not there is told by the player.
        if let Ok(mut walk) = submission.open() {
            let mut sink = JsonSink::new(walk.gpu, &mut self.lines);
            walk.run(&mut sink);
            if sink.spent && self.lost.is_empty() {
                let message = TroubleKind::BudgetSpent;
                let message = format!("submit {}: {}", submit.number, super::stream::trouble_text(message));
                self.lost.push(Diagnostic::loss(submit.span, message));
            }
        }
        if self.slow {
            self.lines.flush_out();
        }
    }

    fn done(&self) -> bool {
        self.lines.ended()
    }
}

/// A line that is only its type.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Plain {
    #[serde(rename = "type")]
    ty: &'static str,
}

crate::schema::shapes!(lines: GpuLine, SectionLine<'_>, RangeLine, ContentsLine, SubmitLine<'_>, Plain);
