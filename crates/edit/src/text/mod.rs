//! A submit as text that is edited and assembled back, without a compiler; and as a program that writes it.
//!
//! `docs/editing.md` has the grammar. A text holds all sections of one submit: every buffer with its contents, its command
//! streams as packets, shaders as ir3 assembly, and the rest as data. Addresses in it are labels, so that what grows can be moved.
//! Never: a text that does not assemble to the sections it was made from; what has no better text is numbers.
//!
//! The register database names packets, operands, registers and fields; [`unwedge_isa`] writes and reads shaders.

mod cursor;
mod error;
mod expr;
mod link;
mod module;
mod packet;
mod parts;
mod plan;
mod program;
mod read;
mod read_packet;
mod regions;
mod value;
mod write;

pub use error::{TextError, TextProblem};
pub use module::Module;
pub use program::Language;
pub use write::TextOptions;

use parts::Parts;
use plan::Plan;
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use unwedge_base::Diagnostic;
use unwedge_base::plural::counted;
use unwedge_capture::rd::RdWriteError;
use unwedge_hw::Db;
use unwedge_isa::ir3::Faithful;
use unwedge_isa::ir3::asm::Assembler;
use unwedge_stream::cut::{Choice, Cutter, Numbers, OneCapture};
use write::TextWriter;

/// The first line of a text.
pub const MAGIC: &str = "unwedge-submit 1";

/// Bytes that a file begins with, of which a comment may be before the first line.
pub fn is_text(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !line.is_empty() && !line.starts_with(b";")) == Some(MAGIC.as_bytes())
}

/// Why a submit has no text.
#[derive(Debug, thiserror::Error)]
pub enum DecompileError {
    /// No submit has the number.
    #[error("no submit {number}: the capture has {}", counted((*.submits).into(), "submit", "submits"))]
    NoSubmit {
        /// The number.
        number: u32,
        /// Submits of the capture.
        submits: u32,
    },
    /// It cannot be held.
    #[error(transparent)]
    Cut(#[from] RdWriteError),
}

/// The sections of a submit: its capture, as `rd trim --all-buffers` cuts it.
///
/// # Errors
/// [`DecompileError`] if the capture has no submit of that number, or it cannot be held.
pub fn cut(
    capture: impl Read,
    number: u32,
    db: &Db,
    max_alive: u64,
) -> Result<(Vec<u8>, Vec<Diagnostic>), DecompileError> {
    let submits = Numbers::parse(&number.to_string()).ok();
    let choice = Choice { submits, frames: None, frame_end: None, all_buffers: true };
    let mut cutter = Cutter::new(choice, OneCapture::new(Vec::new()), max_alive);
    let diagnostics = cutter.play(capture, db);
    let (target, tallies) = cutter.end();
    let (seen, kept) = tallies?;
    match kept.submits {
        0 => Err(DecompileError::NoSubmit { number, submits: seen.submits }),
        _ => Ok((target.into_inner(), diagnostics)),
    }
}

/// A submit's text.
#[derive(Clone, Debug, Default)]
pub struct SubmitText {
    /// The text.
    pub text: String,
    /// What is shown as numbers because its text would assemble to other bytes: addresses.
    pub opaque: Vec<u64>,
    /// Why their text was refused, where it was.
    pub refused: Vec<TextError>,
}

/// The text of a capture of one submit, as [`cut`] gives it.
pub fn decompile(capture: &[u8], db: &Db, options: TextOptions) -> SubmitText {
    let parts = Parts::read(capture, db);
    let mut plan = Plan::new(&parts);
    let nothing = BTreeSet::new();
    write(&parts, &plan, options, &nothing);
    plan.name(&parts);
    let text = write(&parts, &plan, options, &nothing);
    if options.no_reg_bunch {
        return SubmitText { text, ..SubmitText::default() };
    }
    let (opaque, refused) = differing(&text, capture, &parts, &plan, db);
    if opaque.is_empty() {
        return SubmitText { text, ..SubmitText::default() };
    }
    plan.hide(&opaque);
    let text = write(&parts, &plan, options, &opaque);
    let same = compile(&text, db, None, u64::MAX).is_ok_and(|again| again == capture);
    let text = if same { text } else { write::plain(&parts) };
    SubmitText { text, opaque: opaque.into_iter().collect(), refused }
}

fn write(parts: &Parts<'_>, plan: &Plan, options: TextOptions, opaque: &BTreeSet<u64>) -> String {
    let shaders = parts.gpu.map(|gpu| (Faithful::new(gpu.shader), Assembler::new(gpu.shader)));
    let mut writer = TextWriter { parts, plan, options, opaque, shaders, out: String::new() };
    writer.write();
    writer.out
}

/// Streams and shaders that come back as other bytes, by address.
fn differing(
    text: &str,
    capture: &[u8],
    parts: &Parts<'_>,
    plan: &Plan,
    db: &Db,
) -> (BTreeSet<u64>, Vec<TextError>) {
    let (module, mut errors) = read::TextReader::read(text, db, u64::MAX);
    let linked = if errors.is_empty() {
        link::link(&module, None).map_err(|error| errors.push(error)).ok()
    } else {
        None
    };
    if linked.as_deref() == Some(capture) {
        return (BTreeSet::new(), errors);
    }
    // Of what could be linked, those that differ; otherwise all.
    let again = linked.map(|linked| Parts::read(&linked, db));
    let bytes = |parts: &Parts<'_>, start: u64, end: u64| {
        let buffers = parts.list.iter().filter_map(parts::Part::buffer);
        buffers.filter(|buffer| !buffer.copy).find_map(|buffer| buffer.bytes(start, end).map(<[u8]>::to_vec))
    };
    let differs = |region: &regions::Region| {
        again.as_ref().is_none_or(|again| {
            bytes(again, region.start, region.end) != bytes(parts, region.start, region.end)
        })
    };
    (plan.regions.iter().filter(|region| differs(region)).map(|region| region.start).collect(), errors)
}

/// Reads a text, which may make no more than `limit` bytes.
///
/// # Errors
/// Every error of the text.
pub fn read(text: &str, db: &Db, limit: u64) -> Result<Module, Vec<TextError>> {
    match read::TextReader::read(text, db, limit) {
        (module, errors) if errors.is_empty() => Ok(module),
        (_, errors) => Err(errors),
    }
}

/// The sections that a text describes. What outgrows its place moves to `free`, or, without that, to the addresses that the text
/// has for it.
///
/// # Errors
/// Every error of the text.
pub fn compile(
    text: &str,
    db: &Db,
    free: Option<&Range<u64>>,
    limit: u64,
) -> Result<Vec<u8>, Vec<TextError>> {
    let module = read(text, db, limit)?;
    module.link(free).map_err(|error| vec![error])
}

impl Module {
    /// The sections, with everything at its address.
    ///
    /// # Errors
    /// The first thing that has no address, or does not fit.
    pub fn link(&self, free: Option<&Range<u64>>) -> Result<Vec<u8>, TextError> {
        link::link(self, free)
    }

    /// A program that writes the sections.
    ///
    /// # Errors
    /// As [`link`](Module::link).
    pub fn program(&self, language: Language) -> Result<String, TextError> {
        program::write(self, language)
    }
}
