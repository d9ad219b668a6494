//! `unwedge query`: values of registers at each draw of a capture or dump.
//!
//! Names and the condition are looked up once the GPU is known; from then on registers are read by offset, and nothing
//! is formatted that was not asked for. Never: what a draw or a pass is; that is `unwedge_stream::query`'s.

mod rows;

use crate::args::{self, Global};
use crate::capture::{self, Choice, Consumer, Identity, Opened, Player, Submission};
use crate::database;
use crate::decode::stretches;
use crate::failure::{Failure, Outcome, complain};
use crate::input::{Input, Stream};
use crate::output::Output;
use rows::{Rows, Style};
use std::io::Write;
use unwedge_base::{Diagnostic, Generation, Severity};
use unwedge_capture::devcore::Devcore;
use unwedge_capture::rd::{Section, Step};
use unwedge_hw::{Db, Gpu, Identity as DbIdentity, Selected};
use unwedge_postmortem::adreno::{Case, hang};
use unwedge_stream::query::{Draws, Expr, ExprError, Lost, Query, Scene, Visitor, When};

/// Runs the command.
pub fn run(args: &args::Query, global: &Global) -> Result<Outcome, Failure> {
    let question = Question::new(args)?;
    let db = database::load(global)?;
    let opened = capture::open_any(&args.file, global.max_size)?;
    let mut out = Output::open(global, false);
    let palette = out.style.palette();
    let result = match opened {
        Opened::Capture(mut stream) => {
            let answered = ask(&question, &mut stream, &db, global.max_size, palette, &mut out);
            answered.map(|answered| answered.tell(&stream.name))
        }
        Opened::Dump(input) => dump(&question, &input, &db, palette, &mut out),
    };
    out.finish()?;
    if result.is_ok() && args.format == args::FormatArg::Csv {
        complain!("{}", unwedge_view::device::database_line(db.identity()));
    }
    result
}

/// Answers about a capture in rows without colours.
pub fn capture(
    args: &args::Query,
    stream: &mut Stream,
    db: &Db,
    max_alive: u64,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let question = Question::new(args)?;
    ask(&question, stream, db, max_alive, unwedge_hw::Palette::default(), out).map(drop)
}

/// Answers a question about a capture.
fn ask(
    question: &Question<'_>,
    stream: &mut Stream,
    db: &Db,
    max_alive: u64,
    palette: unwedge_hw::Palette,
    out: &mut dyn Write,
) -> Result<Answered, Failure> {
    let style = question.style(palette, "submit");
    let choice = Choice { exe: question.args.process.clone(), compositors: true, ..Choice::default() };
    let mut asker = Asker::new(question, style, db.identity(), stream.live, out);
    let mut diagnostics = Player::new(choice, db, max_alive).play(&mut *stream, &mut asker);
    diagnostics.extend(stream.diagnostics());
    asker.finish(diagnostics)
}

/// What there is to say beside the rows.
struct Answered {
    notes: Vec<String>,
    diagnostics: Vec<Diagnostic>,
    left_out: u64,
}

impl Answered {
    /// Says it.
    fn tell(self, name: &str) -> Outcome {
        for note in &self.notes {
            complain!("{name}: {note}");
        }
        let outcome = Outcome::of(name, &self.diagnostics);
        for note in self.diagnostics.iter().filter(|d| d.severity == Severity::Note) {
            complain!("{name}: {note}");
        }
        tell_left_out(name, self.left_out);
        outcome
    }
}

/// What is asked, as far as it is understood without a GPU.
struct Question<'a> {
    args: &'a args::Query,
    condition: Option<Expr>,
}

impl<'a> Question<'a> {
    fn new(args: &'a args::Query) -> Result<Question<'a>, Failure> {
        let text = args.condition.as_deref();
        let condition = text.map(|text| Expr::parse(text).map_err(|e| pointed(text, &e))).transpose()?;
        Ok(Question { args, condition })
    }

    fn style(&self, palette: unwedge_hw::Palette, stream: &'static str) -> Style {
        let args::Query { format, values, unknown, .. } = *self.args;
        Style { palette, format, values, unknown, stream }
    }

    /// The registers that are asked for, on the first GPU there is.
    fn columns<'d>(&self, gpu: Gpu<'d>) -> Result<Vec<Selected<'d>>, Failure> {
        let mut columns = Vec::new();
        for name in &self.args.registers {
            columns.extend(gpu.select(name).map_err(|e| Failure::Usage(e.to_string()))?);
        }
        Ok(columns)
    }

    /// The question about a GPU. A register that it has not is unknown on it.
    fn bind<'d>(&self, gpu: Gpu<'d>, columns: Vec<Option<Selected<'d>>>) -> Result<Query<'d>, Failure> {
        let args = self.args;
        let mut query = Query::new(columns);
        query.submits = args.submit.clone().unwrap_or(query.submits);
        query.draws = args.draw.clone().unwrap_or(query.draws);
        query.passes.clone_from(&args.pass);
        query.when = match (args.written, args.changed) {
            (true, _) => When::Written,
            (_, true) => When::Changed,
            _ => When::Always,
        };
        query.unknown = args.unknown;
        if let Some(expr) = &self.condition {
            query.condition = Some(expr.bind(gpu).map_err(|e| pointed(expr.text(), &e))?);
        }
        Ok(query)
    }

    /// Nothing after this submit is asked for.
    fn last_submit(&self) -> u32 {
        self.args.submit.as_ref().map_or(u32::MAX, |range| *range.end())
    }
}

/// A mistake in a condition, with a mark below its place.
fn pointed(text: &str, error: &ExprError) -> Failure {
    let flat = text.replace(['\n', '\t', '\r'], " ");
    let before = flat.get(..error.start).map_or(0, |before| before.chars().count());
    let marked = flat.get(error.start..error.end).map_or(0, |marked| marked.chars().count()).max(1);
    let mark = format!("{:before$}{}", "", "^".repeat(marked));
    Failure::Usage(format!("--where: {error}\n    {flat}\n    {mark}"))
}

/// A draw goes in, a row comes out, if it is wanted.
struct Ask<'o, 'd> {
    query: Option<Query<'d>>,
    rows: Rows<'o, 'd>,
}

impl Visitor for Ask<'_, '_> {
    fn draw(&mut self, scene: &Scene<'_>) {
        if let Some(query) = &mut self.query
            && let Some(truth) = query.wants(scene)
        {
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
    failure: Option<Failure>,
    /// Rows are handed on after each submit.
    live: bool,
    ended: bool,
    /// Draws left out on the GPUs before.
    left_out: u64,
    notes: Vec<String>,
}

impl<'a, 'o, 'd> Asker<'a, 'o, 'd> {
    fn new(
        question: &'a Question<'a>,
        style: Style,
        db: &'a DbIdentity,
        live: bool,
        out: &'o mut dyn Write,
    ) -> Asker<'a, 'o, 'd> {
        Asker {
            question,
            db,
            names: Vec::new(),
            met: Vec::new(),
            ask: Some(Ask { query: None, rows: Rows::new(style, out) }),
            draws: None,
            failure: None,
            live,
            ended: false,
            left_out: 0,
            notes: Vec::new(),
        }
    }

    /// The GPU is known: looks names up. Returns why that cannot be, for the first GPU.
    fn meet(&mut self, gpu: Gpu<'d>) -> Result<(), Failure> {
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
                    self.notes.push(format!("{} has no {name}: unknown there", gpu.generation()));
                }
                columns
            }
        };
        let query = match (!refused).then(|| self.question.bind(gpu, columns.clone())) {
            None => None,
            Some(Ok(query)) => Some(query),
            Some(Err(failure)) if first => return Err(failure),
            Some(Err(failure)) => {
                self.notes.push(format!("draws of {} are left out: {failure}", gpu.generation()));
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
                &mut self.draws.insert(Draws::new(gpu, true, self.question.args.once, ask)).visitor
            }
        };
        self.left_out += ask.query.as_ref().map_or(0, |query| query.left_out);
        ask.query = query;
        ask.rows.columns(&self.names, &columns, gpu, self.db);
        Ok(())
    }

    /// What stands below the rows.
    fn finish(self, diagnostics: Vec<Diagnostic>) -> Result<Answered, Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let lost = diagnostics.iter().any(|d| d.severity == Severity::Loss);
        let left = |ask: &Ask<'_, '_>| ask.query.as_ref().map_or(0, |query| query.left_out);
        let left_out = self.left_out + self.draws.as_ref().map_or(0, |draws| left(&draws.visitor));
        if let Some(mut ask) = self.draws.map(|draws| draws.visitor).or(self.ask) {
            ask.rows.end(self.db, lost, left_out);
        }
        Ok(Answered { notes: self.notes, diagnostics, left_out })
    }
}

/// The condition was neither true nor false for some draws.
fn tell_left_out(name: &str, left_out: u64) {
    if left_out > 0 {
        complain!(
            "{name}: {left_out} draws are left out because the condition depends on registers that nothing has \
             written: --unknown lists them"
        );
    }
}

impl<'d> Consumer<'d> for Asker<'_, '_, 'd> {
    fn section(&mut self, _section: &Section<'_>, step: Step) {
        if step == Step::Forgotten
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
        for (severity, message) in told(std::mem::take(&mut draws.lost)) {
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
pub fn told(lost: Lost) -> Vec<(Severity, String)> {
    let Lost { missing, missing_in_all, skipped, too_deep, budget_spent } = lost;
    let shown = missing.len() as u64;
    let mut told: Vec<(Severity, String)> = missing
        .into_iter()
        .map(|(iova, dwords)| (Severity::Note, format!("could not find: {iova:016x} ({dwords})")))
        .collect();
    if missing_in_all > shown {
        told.push((Severity::Note, format!("and {} more", missing_in_all - shown)));
    }
    if skipped > 0 {
        told.push((Severity::Note, format!("{skipped} dwords of its streams are no packets")));
    }
    if too_deep > 0 {
        told.push((Severity::Loss, format!("{too_deep} buffers inside too many others are left out")));
    }
    if budget_spent {
        let message = "the command stream is too long, or its buffers call each other too often: the rest of it is \
                       left out";
        told.push((Severity::Loss, message.to_owned()));
    }
    told
}

/// Answers about a dump: the rings' streams as `decode` walks them.
fn dump(
    question: &Question<'_>,
    input: &Input,
    db: &Db,
    palette: unwedge_hw::Palette,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let dump = Devcore::read(&input.bytes)
        .map_err(|_| Failure::wrong_kind(input, unwedge_capture::sniff(&input.bytes)))?;
    let mut diagnostics: Vec<Diagnostic> = input.diagnostics.clone();
    diagnostics.extend(dump.diagnostics.iter().cloned());
    let gpu = unwedge_view::device::gpu(&dump, db).ok_or_else(|| {
        Failure::Unusable(format!(
            "{}: the GPU of the dump is not known: its streams are not decoded",
            input.name
        ))
    })?;
    let case = Case::new(&dump, gpu);
    let columns: Vec<Option<Selected<'_>>> = question.columns(gpu)?.into_iter().map(Some).collect();
    let names: Vec<String> = columns.iter().flatten().map(|column| column.name.clone()).collect();
    let mut ask = Ask {
        query: Some(question.bind(gpu, columns.clone())?),
        rows: Rows::new(question.style(palette, "ring"), out),
    };
    ask.rows.columns(&names, &columns, gpu, db.identity());
    let mut budget = unwedge_stream::adreno::budget(&case.memory);
    for stretch in stretches(&case, hang::locate(&case).as_ref()) {
        let mut draws = Draws::new(gpu, false, question.args.once, ask);
        draws.submit = stretch.ring.id;
        stretch.walk(&case, &mut budget, &mut draws);
        for (severity, message) in told(std::mem::take(&mut draws.lost)) {
            let message = format!("ring {}: {message}", stretch.ring.id);
            diagnostics.push(Diagnostic { severity, span: Some(stretch.ring.span), message });
        }
        ask = draws.visitor;
        if ask.rows.refused {
            break;
        }
    }
    let outcome = Outcome::of(&input.name, &diagnostics);
    let left_out = ask.query.as_ref().map_or(0, |query| query.left_out);
    ask.rows.end(db.identity(), outcome == Outcome::Lost, left_out);
    tell_left_out(&input.name, left_out);
    Ok(outcome)
}
