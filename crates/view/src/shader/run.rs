//! What a compute shader did in the interpreter: findings, and buffers in hexadecimal.

use super::request::descriptor_name;
use crate::json::{Heading, Hex, HexWords};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Write};
use unwedge_shader::interp::{BindingPoint, Finding, Report, Violation};
use unwedge_shader::ir::{Shader, SourceLoc};
use unwedge_shader::text::Listing;

/// Version of the schema of the JSON object.
const SCHEMA: u32 = 1;
/// Words of a line.
const LINE: usize = 8;

/// A buffer to be shown after the run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BufferDump {
    set: u32,
    binding: u32,
    index: u32,
    size: usize,
    #[serde(serialize_with = "as_hex")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    words: Vec<u32>,
}

fn as_hex<S: serde::Serializer>(words: &[u32], s: S) -> Result<S::Ok, S::Error> {
    HexWords(words).serialize(s)
}

impl BufferDump {
    /// Of a buffer's bytes.
    pub(crate) fn of(point: BindingPoint, bytes: &[u8]) -> BufferDump {
        let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        let BindingPoint { set, binding, index } = point;
        BufferDump { set, binding, index, size: bytes.len(), words: bytes.chunks(4).map(word).collect() }
    }

    /// Lines of words; lines like the one before are left out, and the first of them is `*`.
    pub(crate) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let point = BindingPoint { set: self.set, binding: self.binding, index: self.index };
        let size = counted(self.size as u64, "byte", "bytes");
        writeln!(out, "buffer {}, {size}", descriptor_name(point))?;
        let (mut before, mut left_out) = (None, false);
        for (number, line) in self.words.chunks(LINE).enumerate() {
            if before == Some(line) && (number + 1) * LINE < self.words.len() {
                if !left_out {
                    writeln!(out, "*")?;
                }
                left_out = true;
                continue;
            }
            (before, left_out) = (Some(line), false);
            writeln!(out, "{:06x}: {}", number * LINE * 4, HexWords(line))?;
        }
        Ok(())
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FindingView<'a> {
    violation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<&'static str>,
    workgroup: [u32; 3],
    invocation: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    byte: Option<Hex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    count: u64,
    /// In words.
    said: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
}

/// What the address of a finding is.
enum Address {
    Byte,
    Index,
    Nothing,
}

/// The name in JSON, the words, and what the address is.
fn words(violation: Violation) -> (&'static str, String, Address) {
    match violation {
        Violation::PoisonBranch => ("poison_branch", "a condition is undefined".into(), Address::Nothing),
        Violation::PoisonAddress => {
            ("poison_address", "an address, index or descriptor is undefined".into(), Address::Nothing)
        }
        Violation::PoisonStore => ("poison_store", "an undefined value is stored".into(), Address::Byte),
        Violation::OutOfBounds(space) => {
            ("out_of_bounds", format!("access past the end of {} memory", space.name()), Address::Byte)
        }
        Violation::IndexOutOfBounds => {
            ("index_out_of_bounds", "index past the end of an array".into(), Address::Index)
        }
        Violation::ImageOutOfBounds => {
            ("image_out_of_bounds", "access to a texel that the image does not have".into(), Address::Nothing)
        }
        Violation::Unbound => ("unbound", "nothing is bound to the descriptor".into(), Address::Index),
        Violation::Misaligned => ("misaligned", "the address is not aligned".into(), Address::Byte),
        Violation::Race(space) => {
            let said = format!("race in {} memory: no barrier or atomics between two accesses", space.name());
            ("race", said, Address::Byte)
        }
        Violation::TexelRace => {
            let said = "race on a texel: no barrier or atomics between two accesses";
            ("texel_race", said.into(), Address::Nothing)
        }
        Violation::NonUniformBarrier => {
            ("non_uniform_barrier", "not all invocations reach the same barrier".into(), Address::Nothing)
        }
        Violation::NonUniformOperand => {
            let said = "an operand differs between invocations, which Vulkan does not allow here";
            ("non_uniform_operand", said.into(), Address::Nothing)
        }
        Violation::Unreachable => ("unreachable", "`unreachable` is reached".into(), Address::Nothing),
    }
}

impl<'a> FindingView<'a> {
    fn of(finding: &Finding, shader: &Shader, listing: &'a Listing) -> FindingView<'a> {
        let (violation, said, address) = words(finding.violation);
        let space = match finding.violation {
            Violation::OutOfBounds(space) | Violation::Race(space) => Some(space.name()),
            _ => None,
        };
        let line = listing.line(finding.func, finding.inst);
        let loc = shader.function(finding.func).loc(finding.inst).and_then(|loc| shader.locs.get(loc));
        FindingView {
            violation,
            space,
            workgroup: finding.workgroup,
            invocation: finding.invocation,
            byte: matches!(address, Address::Byte).then(|| Hex::short(finding.address)),
            index: matches!(address, Address::Index).then_some(finding.address),
            count: finding.count,
            said,
            line: line.map(|(number, _)| number),
            instruction: line.map(|(_, text)| text),
            source: loc.and_then(|loc| source(shader, *loc)),
        }
    }
}

/// `a.comp:12:3`
fn source(shader: &Shader, loc: SourceLoc) -> Option<String> {
    let file = shader.files.get(loc.file as usize)?;
    let column = if loc.column == 0 { String::new() } else { format!(":{}", loc.column) };
    Some(format!("{file}:{}{column}", loc.line))
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Ran<'a> {
    #[serde(flatten)]
    heading: Heading<'static>,
    entry: &'a str,
    workgroups: [u32; 3],
    steps: u64,
    races_incomplete: bool,
    findings: Vec<FindingView<'a>>,
    buffers: &'a [BufferDump],
}

/// A run that came to its end.
#[derive(Debug)]
pub struct RunView<'a> {
    /// The shader.
    pub(super) shader: &'a Shader,
    pub(super) workgroups: [u32; 3],
    /// What the interpreter reports.
    pub report: Report,
    pub(super) buffers: Vec<BufferDump>,
}

impl RunView<'_> {
    fn ran<'b>(&'b self, listing: &'b Listing) -> Ran<'b> {
        let findings = &self.report.findings;
        Ran {
            heading: Heading::of_plain_object("unwedge.shader-run", SCHEMA),
            entry: &self.shader.info.name,
            workgroups: self.workgroups,
            steps: self.report.steps,
            races_incomplete: self.report.races_incomplete,
            findings: findings.iter().map(|finding| FindingView::of(finding, self.shader, listing)).collect(),
            buffers: &self.buffers,
        }
    }

    /// Findings with their instructions, buffers, and a line that sums up.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let listing = Listing::new(self.shader);
        let ran = self.ran(&listing);
        for finding in &ran.findings {
            let [x, y, z] = finding.workgroup;
            write!(out, "workgroup {x},{y},{z}, invocation {}: {}", finding.invocation, finding.said)?;
            if let Some(byte) = finding.byte {
                write!(out, ", at byte {byte}")?;
            }
            if let Some(index) = finding.index {
                write!(out, ", index {index}")?;
            }
            if finding.count > 1 {
                write!(out, " ({} times)", finding.count)?;
            }
            writeln!(out)?;
            if let (Some(line), Some(text)) = (finding.line, finding.instruction) {
                let source = finding.source.as_ref().map(|source| format!("{source}, ")).unwrap_or_default();
                writeln!(out, "    {source}line {line}: {text}")?;
            }
        }
        for buffer in ran.buffers {
            buffer.text(out)?;
        }
        if ran.races_incomplete {
            writeln!(out, "races were not looked for in all memory: there is too much of it")?;
        }
        let workgroups: u64 = self.workgroups.iter().fold(1, |all, &n| all.saturating_mul(n.into()));
        writeln!(
            out,
            "{}: {}, {}, {}",
            ran.entry,
            counted(workgroups, "workgroup", "workgroups"),
            counted(ran.steps, "step", "steps"),
            counted(ran.findings.len() as u64, "finding", "findings")
        )
    }

    /// The same as a JSON object.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let listing = Listing::new(self.shader);
        serde_json::to_writer(&mut *out, &self.ran(&listing))?;
        writeln!(out)
    }
}

crate::schema::shapes!(object: Ran<'_>);
