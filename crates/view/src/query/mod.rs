//! `unwedge query`: values of registers at each draw of a capture or dump.
//!
//! Names and the condition are looked up once the GPU is known; from then on registers are read by offset, and nothing
//! is formatted that was not asked for. Never: what a draw or a pass is; that is `unwedge_stream::query`'s.

pub(crate) mod rows;
mod steps;

use crate::decode::stretches;
use crate::plural::counted;
use crate::{CaptureStream, ViewError, device};
pub(crate) use rows::{Asked, value_text};
use rows::{RowStyle, Rows};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::ops::RangeInclusive;
pub use steps::dump;
use unwedge_base::{Diagnostic, Generation, Severity};
use unwedge_capture::msm::Devcore;
use unwedge_capture::rd::{LiveStep, RdSection};
use unwedge_hw::{Db, DbIdentity, Gpu, Palette, Selected};
use unwedge_postmortem::adreno::{AdrenoCase, hang};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use unwedge_stream::query::{DrawChoice, DrawScene, Draws, Expr, Lost, Pass, Query, RegisterNames, Visitor};

/// A format of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A line for each register.
    #[default]
    Text,
    /// A line for each draw, with a line of names above.
    Csv,
    /// A JSON object for each draw.
    Ndjson,
}

/// What is printed of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueForm {
    /// Its bits, hexadecimal.
    Raw,
    /// What it means.
    #[default]
    Decoded,
}

/// What to ask, and how to print the answer.
#[derive(Clone, Debug, Default)]
pub struct QueryOptions {
    /// Names, fields after a name, patterns with `*` and `?`, or dword offsets; none lists the draws alone.
    pub registers: Vec<String>,
    /// Only draws for which this holds.
    pub condition: Option<String>,
    /// Only these submits; of a dump, these rings.
    pub submits: Option<RangeInclusive<u32>>,
    /// Only these draws.
    pub draws: Option<RangeInclusive<u32>>,
    /// Only draws of these passes; all, when there are none.
    pub passes: Vec<Pass>,
    /// Only submits of processes whose names begin so.
    pub process: Option<OsString>,
    /// At which draws rows are wanted.
    pub when: DrawChoice,
    /// Take a buffer that runs for each tile once for each mode.
    pub once: bool,
    /// Also draws for which the condition depends on registers that nothing has written.
    pub unknown: bool,
    /// The format of the rows.
    pub format: Format,
    /// What is printed of a value.
    pub values: ValueForm,
    /// Colours.
    pub palette: Palette,
}

/// Answers a question about a capture. A failed write is for the owner of `out` to remember.
///
/// # Errors
/// When the first GPU of the capture has no such register, or the condition cannot be asked of it.
pub fn capture(
    question: &Question<'_>,
    stream: &mut dyn CaptureStream,
    db: &Db,
    max_alive: u64,
    out: &mut dyn Write,
) -> Result<Answered, ViewError> {
    let style = question.style("submit");
    let choice =
        SubmitChoice { exe: question.options.process.clone(), compositors: true, ..SubmitChoice::default() };
    let mut asker = Asker::new(question, style, db.identity(), stream.live(), out);
    let mut diagnostics = Player::new(choice, db, max_alive).play(&mut *stream, &mut asker);
    diagnostics.extend(stream.diagnostics());
    asker.finish(diagnostics)
}

/// What there is to say beside the rows.
#[derive(Debug, Default)]
pub struct Answered {
    /// What other GPUs of the capture could not be asked.
    pub notes: Vec<Note>,
    /// What was lost or is unusual.
    pub diagnostics: Vec<Diagnostic>,
    /// Draws for which the condition was neither true nor false.
    pub left_out: u64,
    /// Rows that were shown.
    pub rows: u64,
    /// What was there to choose from.
    pub seen: DrawsSeen,
}

impl Answered {
    /// Why there are no rows, or fewer than somebody may expect.
    pub fn remark(&self) -> Option<String> {
        match (self.left_out, self.rows) {
            (0, 0) => Some(self.seen.to_string()),
            (0, _) => None,
            (left_out, _) => Some(format!(
                "{} left out because the condition depends on registers that nothing has written: --unknown lists {}",
                counted(left_out, "draw is", "draws are"),
                if left_out == 1 { "it" } else { "them" }
            )),
        }
    }
}

/// The draws that a question chose from, by pass.
#[derive(Clone, Debug, Default)]
pub struct DrawsSeen {
    /// Draws of each pass, by name; under no name those whose pass is not known.
    pub passes: BTreeMap<&'static str, u64>,
    /// Draws of each kind, by name.
    pub kinds: BTreeMap<&'static str, u64>,
}

impl DrawsSeen {
    fn count(&mut self, scene: &DrawScene<'_>) {
        *self.passes.entry(scene.pass.map_or("", Pass::name)).or_default() += 1;
        *self.kinds.entry(scene.draw.kind.name()).or_default() += 1;
    }
}

/// Why no row was shown: what there is instead.
impl fmt::Display for DrawsSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let draws = self.kinds.values().sum();
        if draws == 0 {
            return f.write_str("no draw matches: there are none");
        }
        write!(f, "no draw matches, of {}", counted(draws, "draw", "draws"))?;
        let listed = |counts: &BTreeMap<&'static str, u64>| -> Vec<String> {
            counts
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, n)| format!("{n} {name}"))
                .collect()
        };
        let (passes, kinds) = (listed(&self.passes), listed(&self.kinds));
        if !passes.is_empty() {
            write!(f, "; by pass: {}", passes.join(", "))?;
        }
        write!(f, "; by kind (--where 'draw.kind == {}'): {}", self.most_frequent(), kinds.join(", "))
    }
}

impl DrawsSeen {
    fn most_frequent(&self) -> &'static str {
        self.kinds.iter().max_by_key(|(_, count)| **count).map_or("draw", |(name, _)| *name)
    }
}

/// A GPU that cannot be asked all.
#[derive(Debug)]
pub enum Note {
    /// It has no such register.
    NoRegister {
        /// Of which GPU.
        generation: Generation,
        /// The register.
        name: String,
    },
    /// Its draws are left out.
    LeftOut {
        /// Of which GPU.
        generation: Generation,
        /// Why.
        why: ViewError,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NoRegister { generation, name } => write!(f, "{generation} has no {name}: unknown there"),
            Note::LeftOut { generation, why } => write!(f, "draws of {generation} are left out: {why}"),
        }
    }
}

/// What is asked, as far as it is understood without a GPU.
#[derive(Debug)]
pub struct Question<'a> {
    options: &'a QueryOptions,
    condition: Option<Expr>,
}

impl<'a> Question<'a> {
    /// Reads the condition.
    ///
    /// # Errors
    /// When the condition cannot be understood.
    pub fn new(options: &'a QueryOptions) -> Result<Question<'a>, ViewError> {
        let parse = |text: &String| {
            Expr::parse(text).map_err(|error| ViewError::Condition { text: text.clone(), error })
        };
        let condition = options.condition.as_ref().map(parse).transpose()?;
        Ok(Question { options, condition })
    }

    fn style(&self, stream: &'static str) -> RowStyle {
        let QueryOptions { format, values, unknown, palette, .. } = *self.options;
        RowStyle { palette, format, values, unknown, stream, named: false }
    }

    /// The registers that are asked for, on the first GPU there is.
    fn columns<'d>(&self, gpu: Gpu<'d>) -> Result<Vec<Selected<'d>>, ViewError> {
        let mut columns = Vec::new();
        for name in &self.options.registers {
            columns.extend(gpu.select(name)?);
        }
        Ok(columns)
    }

    /// The question about a GPU. A register that it has not is unknown on it.
    fn bind<'d>(
        &self,
        names: impl RegisterNames<'d>,
        columns: Vec<Option<Selected<'d>>>,
    ) -> Result<Query<'d>, ViewError> {
        let options = self.options;
        let mut query = Query::new(columns);
        query.submits = options.submits.clone().unwrap_or(query.submits);
        query.draws = options.draws.clone().unwrap_or(query.draws);
        query.passes.clone_from(&options.passes);
        query.when = options.when;
        query.unknown = options.unknown;
        if let Some(expr) = &self.condition {
            let refused = |error| ViewError::Condition { text: expr.text().to_owned(), error };
            query.condition = Some(expr.bind(names).map_err(refused)?);
        }
        Ok(query)
    }

    /// Nothing after this submit is asked for.
    fn last_submit(&self) -> u32 {
        self.options.submits.as_ref().map_or(u32::MAX, |range| *range.end())
    }
}

/// A draw goes in, a row comes out, if it is wanted.
struct Ask<'o, 'd> {
    query: Option<Query<'d>>,
    rows: Rows<'o, 'd>,
    shown: u64,
    seen: DrawsSeen,
}

impl<'o, 'd> Ask<'o, 'd> {
    fn new(query: Option<Query<'d>>, rows: Rows<'o, 'd>) -> Ask<'o, 'd> {
        Ask { query, rows, shown: 0, seen: DrawsSeen::default() }
    }

    /// What there is to say beside the rows.
    fn answered(self, left_out: u64, notes: Vec<Note>, diagnostics: Vec<Diagnostic>) -> Answered {
        Answered { notes, diagnostics, left_out, rows: self.shown, seen: self.seen }
    }
}

impl Visitor for Ask<'_, '_> {
    fn draw(&mut self, scene: &DrawScene<'_>) {
        self.seen.count(scene);
        if let Some(query) = &mut self.query
            && let Some(truth) = query.wants(scene)
        {
            self.shown += 1;
            self.rows.row(scene, truth, query.values());
        }
    }
}

/// A generation, and what it has of what is asked for.
struct Met<'d> {
    generation: Generation,
    columns: Vec<Option<Selected<'d>>>,
    /// The condition cannot be asked of it.
    refused: bool,
}

/// Answers about captures.
struct Asker<'a, 'o, 'd> {
    question: &'a Question<'a>,
    db: &'a DbIdentity,
    names: Vec<String>,
    met: Vec<Met<'d>>,
    ask: Option<Ask<'o, 'd>>,
    draws: Option<Draws<'d, Ask<'o, 'd>>>,
    failure: Option<ViewError>,
    /// Rows are handed on after each submit.
    live: bool,
    ended: bool,
    /// Draws left out on the GPUs before.
    left_out: u64,
    notes: Vec<Note>,
}

impl<'a, 'o, 'd> Asker<'a, 'o, 'd> {
    fn new(
        question: &'a Question<'a>,
        style: RowStyle,
        db: &'a DbIdentity,
        live: bool,
        out: &'o mut dyn Write,
    ) -> Asker<'a, 'o, 'd> {
        Asker {
            question,
            db,
            names: Vec::new(),
            met: Vec::new(),
            ask: Some(Ask::new(None, Rows::new(style, out))),
            draws: None,
            failure: None,
            live,
            ended: false,
            left_out: 0,
            notes: Vec::new(),
        }
    }

    /// The GPU is known: looks names up. Returns why that cannot be, for the first GPU.
    fn meet(&mut self, gpu: Gpu<'d>) -> Result<(), ViewError> {
        let first = self.draws.is_none();
        // GPUs may come by turns: what they have is looked up, and told, once.
        let known = self.met.iter().find(|met| met.generation == gpu.generation());
        let (new, refused) = (known.is_none(), known.is_some_and(|met| met.refused));
        let columns = match known {
            Some(met) => met.columns.clone(),
            None if first => {
                let columns = self.question.columns(gpu)?;
                self.names = columns.iter().map(|column| column.name.clone()).collect();
                columns.into_iter().map(Some).collect()
            }
            None => {
                let one = |name: &String| gpu.select(name).ok()?.into_iter().next();
                let columns: Vec<_> = self.names.iter().map(one).collect();
                for (name, _) in self.names.iter().zip(&columns).filter(|(_, column)| column.is_none()) {
                    self.notes.push(Note::NoRegister { generation: gpu.generation(), name: name.clone() });
                }
                columns
            }
        };
        let query = match (!refused).then(|| self.question.bind(gpu, columns.clone())) {
            None => None,
            Some(Ok(query)) => Some(query),
            Some(Err(failure)) if first => return Err(failure),
            Some(Err(failure)) => {
                self.notes.push(Note::LeftOut { generation: gpu.generation(), why: failure });
                None
            }
        };
        if new {
            let (generation, columns) = (gpu.generation(), columns.clone());
            self.met.push(Met { generation, columns, refused: query.is_none() });
        }
        let ask = match &mut self.draws {
            Some(draws) => {
                draws.restart(gpu);
                &mut draws.visitor
            }
            None => {
                let Some(ask) = self.ask.take() else { return Ok(()) };
                &mut self.draws.insert(Draws::new(gpu, true, self.question.options.once, ask)).visitor
            }
        };
        self.left_out += ask.query.as_ref().map_or(0, |query| query.left_out);
        ask.query = query;
        ask.rows.columns(&self.names, &asked(&columns), gpu.generation().name(), self.db);
        Ok(())
    }

    /// What stands below the rows.
    fn finish(self, diagnostics: Vec<Diagnostic>) -> Result<Answered, ViewError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let lost = diagnostics.iter().any(|d| d.severity == Severity::Loss);
        let left = |ask: &Ask<'_, '_>| ask.query.as_ref().map_or(0, |query| query.left_out);
        let left_out = self.left_out + self.draws.as_ref().map_or(0, |draws| left(&draws.visitor));
        if let Some(mut ask) = self.draws.map(|draws| draws.visitor).or(self.ask) {
            ask.rows.end(self.db, lost, left_out);
            return Ok(ask.answered(left_out, self.notes, diagnostics));
        }
        Ok(Answered { notes: self.notes, diagnostics, left_out, ..Answered::default() })
    }
}

impl<'d> Consumer<'d> for Asker<'_, '_, 'd> {
    fn section(&mut self, _section: &RdSection<'_>, step: LiveStep) {
        if step == LiveStep::Forgotten
            && let Some(draws) = &mut self.draws
        {
            draws.forget_buffers();
        }
    }

    fn identity(&mut self, _identity: Identity, gpu: Option<Gpu<'d>>) {
        if let Some(gpu) = gpu
            && let Err(failure) = self.meet(gpu)
        {
            self.failure = Some(failure);
        }
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let number = submission.submit.number;
        if number > self.question.last_submit() {
            self.ended = true;
            return;
        }
        if submission.hidden {
            return;
        }
        let Ok(mut walk) = submission.open() else { return };
        let Some(draws) = &mut self.draws else { return };
        draws.submit = number;
        walk.run(draws);
        for (severity, message) in lost_messages(std::mem::take(&mut draws.lost)) {
            walk.tell(severity, message);
        }
        let rows = &mut draws.visitor.rows;
        if self.live && rows.flush().is_err() {
            self.ended = true;
        }
        self.ended |= rows.refused;
    }

    fn done(&self) -> bool {
        self.ended || self.failure.is_some()
    }
}

/// What a walk could not follow, in words.
pub(crate) fn lost_messages(lost: Lost) -> Vec<(Severity, String)> {
    let Lost { missing, missing_in_all, skipped, too_deep, budget_spent } = lost;
    let shown = missing.len() as u64;
    let mut messages: Vec<(Severity, String)> = missing
        .into_iter()
        .map(|(iova, dwords)| (Severity::Note, format!("could not find: {iova:016x} ({dwords})")))
        .collect();
    if missing_in_all > shown {
        messages.push((Severity::Note, format!("and {} more", missing_in_all - shown)));
    }
    if skipped > 0 {
        messages.push((
            Severity::Note,
            format!(
                "{} not packets",
                counted(skipped, "dword of its streams is", "dwords of its streams are")
            ),
        ));
    }
    if too_deep > 0 {
        messages.push((
            Severity::Loss,
            format!(
                "{} left out",
                counted(too_deep, "buffer inside too many others is", "buffers inside too many others are")
            ),
        ));
    }
    if budget_spent {
        let message = "the command stream is too long, or its buffers call each other too often: the rest of it is \
                       left out";
        messages.push((Severity::Loss, message.to_owned()));
    }
    messages
}

/// Registers of Adreno, as they are shown.
fn asked<'d>(columns: &[Option<Selected<'d>>]) -> Vec<Option<Asked<'d>>> {
    columns.iter().map(|column| column.clone().map(Asked::of)).collect()
}

/// Answers a question about a dump of msm: the rings' streams as `decode` walks them.
fn devcore(
    question: &Question<'_>,
    dump: &Devcore<'_>,
    lost: &[Diagnostic],
    db: &Db,
    out: &mut dyn Write,
) -> Result<Answered, ViewError> {
    let mut diagnostics = lost.to_vec();
    diagnostics.extend(dump.diagnostics.iter().cloned());
    let gpu = device::gpu(dump, db).ok_or(ViewError::UnknownGpu)?;
    let case = AdrenoCase::new(dump, gpu);
    let columns: Vec<Option<Selected<'_>>> = question.columns(gpu)?.into_iter().map(Some).collect();
    let names: Vec<String> = columns.iter().flatten().map(|column| column.name.clone()).collect();
    let mut ask =
        Ask::new(Some(question.bind(gpu, columns.clone())?), Rows::new(question.style("ring"), out));
    ask.rows.columns(&names, &asked(&columns), gpu.generation().name(), db.identity());
    let mut budget = unwedge_stream::adreno::budget(&case.memory);
    for stretch in stretches(&case, hang::locate(&case).as_ref()) {
        let mut draws = Draws::new(gpu, false, question.options.once, ask);
        draws.submit = stretch.ring.id;
        stretch.walk(&case, &mut budget, &mut draws);
        for (severity, message) in lost_messages(std::mem::take(&mut draws.lost)) {
            let message = format!("ring {}: {message}", stretch.ring.id);
            diagnostics.push(Diagnostic { severity, span: Some(stretch.ring.span), message });
        }
        ask = draws.visitor;
        if ask.rows.refused {
            break;
        }
    }
    let lost = diagnostics.iter().any(|d| d.severity == Severity::Loss);
    let left_out = ask.query.as_ref().map_or(0, |query| query.left_out);
    ask.rows.end(db.identity(), lost, left_out);
    Ok(ask.answered(left_out, Vec::new(), diagnostics))
}
