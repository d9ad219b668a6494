//! `unwedge rd info`, and what `unwedge info` says about captures: GPU, processes, submits and what they start.

use crate::Style;
use crate::json::{self, Heading, Hex};
use crate::plural::counted;
use serde::Serialize;
use std::io::{self, Read, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, DbIdentity, Gpu};
use unwedge_stream::adreno::{AdrenoEvent, AdrenoSink, AdrenoState, DrawKind, Flow};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};

/// Version of the schema of the JSON object of a file.
const SCHEMA: u32 = 1;

/// What is in a capture.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capture {
    bytes: u64,
    gpus: Vec<json::JsonGpu>,
    processes: Vec<Process>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<String>,
    /// Lists of buffers that submits share.
    sets: u64,
    submits: Vec<SubmitSummary>,
    total: Started,
    sections: Vec<Sections>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    log_buffers: Vec<LogBuffer>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Process {
    /// `comm/pid`, as the kernel says it.
    name: String,
    submits: u64,
}

/// What the kernel writes between the name of a process and the fence of its submit.
const FENCE: &str = ": fence=";

/// Work that command streams start.
#[derive(Serialize, Default, Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Started {
    draws: u64,
    dispatches: u64,
    blits: u64,
    events: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SubmitSummary {
    number: u32,
    set: u64,
    process: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u32>,
    iova: Hex,
    dwords: u32,
    /// Buffers named, those of them with contents, and the bytes of these.
    buffers: u64,
    held: u64,
    held_bytes: u64,
    #[serde(flatten)]
    started: Started,
    /// Nested streams whose memory the capture does not hold.
    missing: u64,
    /// The command stream was walked.
    walked: bool,
    /// The number of its first piece of work, as listings count.
    #[serde(skip)]
    first_work: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Sections {
    #[serde(rename = "type")]
    number: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    count: u64,
    bytes: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LogBuffer {
    name: &'static str,
    iova: Hex,
    bytes: u32,
}

/// Kinds of section, processes and the like that are listed; captures have few, broken ones may have many.
const LISTED: usize = 4096;

/// Reads a capture.
pub fn read(capture: impl Read, db: &Db, max_alive: u64) -> (Capture, Vec<Diagnostic>) {
    let choice = SubmitChoice { compositors: true, ..SubmitChoice::default() };
    let mut counter = CaptureCounter::default();
    let diagnostics = Player::new(choice, db, max_alive).play(capture, &mut counter);
    (counter.capture, diagnostics)
}

/// Counts while a capture is played.
#[derive(Default)]
struct CaptureCounter {
    capture: Capture,
    process: Option<usize>,
    fence: Option<u32>,
    /// Of the current set: buffers, those with contents, their bytes.
    buffers: (u64, u64, u64),
    /// Pieces of work since the GPU was named.
    work: u64,
}

impl CaptureCounter {
    fn process(&mut self, name: &[u8]) -> usize {
        let name = String::from_utf8_lossy(name);
        let (name, fence) = match name.rsplit_once(FENCE) {
            Some((name, fence)) => (name.to_owned(), fence.trim().parse().ok()),
            None => (name.into_owned(), None),
        };
        self.fence = fence;
        let known = self.capture.processes.iter().position(|p| p.name == name);
        known.unwrap_or_else(|| {
            if self.capture.processes.len() < LISTED {
                self.capture.processes.push(Process { name, submits: 0 });
            }
            self.capture.processes.len().saturating_sub(1)
        })
    }

    fn count(&mut self, section: &RdSection<'_>) {
        let number = section.kind.number();
        let name = match section.kind {
            RdSectionKind::Unknown(_) => None,
            known => Some(known.name()),
        };
        let sections = &mut self.capture.sections;
        let known = sections.iter().position(|s| s.number == number).or_else(|| {
            sections.push(Sections { number, name, count: 0, bytes: 0 });
            (sections.len() <= LISTED).then(|| sections.len() - 1)
        });
        sections.truncate(LISTED);
        if let Some(sections) = known.and_then(|i| sections.get_mut(i)) {
            sections.count += 1;
            sections.bytes = sections.bytes.saturating_add(section.length());
        }
    }
}

impl<'d> Consumer<'d> for CaptureCounter {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.count(section);
        self.capture.bytes = section.span.end;
        if step == LiveStep::Forgotten {
            self.buffers = (0, 0, 0);
        }
        match section.kind {
            RdSectionKind::Test if self.capture.tests.len() < LISTED => {
                self.capture.tests.push(String::from_utf8_lossy(section.text()).into_owned());
            }
            RdSectionKind::Cmd => self.process = Some(self.process(section.text())),
            RdSectionKind::GpuAddr => {
                self.capture.sets += u64::from(self.buffers.0 == 0);
                self.buffers.0 += 1;
            }
            RdSectionKind::BufferContents => {
                self.buffers.1 += 1;
                self.buffers.2 = self.buffers.2.saturating_add(section.length());
            }
            RdSectionKind::ShaderLogBuffer | RdSectionKind::CpLogBuffer => {
                if let Some(range) = section.range().filter(|_| self.capture.log_buffers.len() < LISTED) {
                    let (name, iova) = (section.kind.name(), Hex::wide(range.iova));
                    self.capture.log_buffers.push(LogBuffer { name, iova, bytes: range.size });
                }
            }
            _ => {}
        }
    }

    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        if gpu.is_some() {
            self.work = 0;
        }
        if self.capture.gpus.len() < LISTED {
            let generation = gpu.map(|gpu| gpu.generation());
            self.capture.gpus.push(json::JsonGpu::of_identity(identity, generation));
        }
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let process = match self.process {
            Some(process) => process,
            None => self.process(b""),
        };
        if let Some(process) = self.capture.processes.get_mut(process) {
            process.submits += 1;
        }
        let submit = submission.submit;
        let mut work = SubmitCounts::default();
        let walked = submission.open().map(|mut walk| walk.run(&mut work)).is_ok();
        let (buffers, held, held_bytes) = self.buffers;
        self.capture.total.add(&work.started);
        let first_work = self.work;
        self.work = first_work.saturating_add(work.started.all());
        self.capture.submits.push(SubmitSummary {
            first_work,
            number: submit.number,
            set: self.capture.sets.saturating_sub(1),
            process,
            fence: self.fence,
            iova: Hex::wide(submit.iova),
            dwords: submit.dwords,
            buffers,
            held,
            held_bytes,
            started: work.started,
            missing: work.missing,
            walked,
        });
    }
}

impl Started {
    fn all(&self) -> u64 {
        self.draws.saturating_add(self.dispatches).saturating_add(self.blits).saturating_add(self.events)
    }

    fn add(&mut self, other: &Started) {
        self.draws += other.draws;
        self.dispatches += other.dispatches;
        self.blits += other.blits;
        self.events += other.events;
    }
}

/// Counts while a submit is walked.
#[derive(Default)]
struct SubmitCounts {
    started: Started,
    missing: u64,
}

impl AdrenoSink for SubmitCounts {
    fn event(&mut self, _: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::Draw(draw) => match draw.kind {
                DrawKind::Draw => self.started.draws += 1,
                DrawKind::Dispatch => self.started.dispatches += 1,
                DrawKind::Blit => self.started.blits += 1,
                DrawKind::Event => self.started.events += 1,
            },
            AdrenoEvent::Missing(_) => self.missing += 1,
            _ => {}
        }
        Flow::Continue
    }
}

/// A file that is a capture.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureFile<'a> {
    /// What messages call it.
    #[serde(rename = "file")]
    pub name: &'a str,
    /// Compressions that were undone, the outermost first.
    pub compression: Vec<&'static str>,
    /// What is in it.
    pub capture: &'a Capture,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CaptureObject<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    #[serde(flatten)]
    file: &'a CaptureFile<'a>,
}

impl CaptureFile<'_> {
    /// As text, below its name.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        let packed = match self.compression.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.compression.join(" of ")),
        };
        writeln!(out, "{}", style.bold(self.name))?;
        writeln!(out, "  {:9} {}{packed}", "size", counted(self.capture.bytes, "byte", "bytes"))?;
        self.capture.text(style, out)
    }

    /// As one JSON object.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn json(&self, database: &DbIdentity, out: &mut dyn Write) -> io::Result<()> {
        let heading = Heading::of_object("unwedge.rd", SCHEMA, database);
        serde_json::to_writer(&mut *out, &CaptureObject { heading, file: self })?;
        writeln!(out)
    }
}

impl Capture {
    /// Bytes of the capture, decompressed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The submits by their numbers, each with the number of its first piece of work and how many pieces it starts.
    pub fn work(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.submits.iter().map(|submit| (submit.number, submit.first_work, submit.started.all()))
    }

    /// The capture as text, below a headline.
    ///
    /// # Errors
    ///
    /// Those of `out`, if it cannot be written to.
    pub fn text(&self, style: Style, out: &mut dyn Write) -> io::Result<()> {
        for gpu in &self.gpus {
            writeln!(out, "  {:9} {gpu}", "gpu")?;
        }
        for process in &self.processes {
            let name = if process.name.is_empty() { "not said" } else { &process.name };
            writeln!(out, "  {:9} {name} ({})", "process", counted(process.submits, "submit", "submits"))?;
        }
        for test in &self.tests {
            writeln!(out, "  {:9} {test}", "test")?;
        }
        for log in &self.log_buffers {
            let bytes = counted(log.bytes.into(), "byte", "bytes");
            writeln!(out, "  {:9} {} at {}, {bytes}", "log", log.name, log.iova)?;
        }
        let heading = format!(
            "{:>6} {:>5}  {:18} {:>8} {:>8} {:>7} {:>10} {:>8} {:>11} {:>6}  process",
            "submit", "set", "iova", "dwords", "buffers", "held", "bytes", "draws", "dispatches", "blits"
        );
        writeln!(out, "\n  {}", style.bold(&heading))?;
        for s in &self.submits {
            let process = self.processes.get(s.process).map_or("", |p| &p.name);
            let work = match s.walked {
                true => format!(
                    "{:>8} {:>11} {:>6}",
                    s.started.draws,
                    s.started.dispatches,
                    s.started.blits.saturating_add(s.started.events)
                ),
                false => format!("{:>27}", "not walked"),
            };
            writeln!(
                out,
                "  {:>6} {:>5}  {} {:>8} {:>8} {:>7} {:>10} {work}  {process}",
                s.number, s.set, s.iova, s.dwords, s.buffers, s.held, s.held_bytes
            )?;
        }
        let t = &self.total;
        writeln!(
            out,
            "\n  {} over {}: {}, {}, {}",
            counted(self.submits.len() as u64, "submit", "submits"),
            counted(self.sets, "set of buffers", "sets of buffers"),
            counted(t.draws, "draw", "draws"),
            counted(t.dispatches, "dispatch", "dispatches"),
            counted(t.blits.saturating_add(t.events), "blit", "blits")
        )?;
        writeln!(out, "\n  {}", style.bold("section            type    count        bytes"))?;
        for s in &self.sections {
            let name = s.name.unwrap_or("not known");
            writeln!(out, "  {name:18} {:>4} {:>8} {:>12}", s.number, s.count, s.bytes)?;
        }
        Ok(())
    }
}

crate::schema::shapes!(object: CaptureObject<'_>);
