//! `unwedge query`: values of registers at each draw of a capture or dump.

use crate::args::{self, Global};
use crate::database;
use crate::decode::{not_for_captures, say_chip};
use crate::dump::{self, Opened};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use crate::pictures;
use unwedge::base::Severity;
use unwedge::stream::query::DrawChoice;
use unwedge_view::query::{self, Answered, Format, Note, QueryOptions, Question, ValueForm};
use unwedge_view::{ViewError, device};

/// Runs the command.
pub(crate) fn run(args: &args::Query, global: &Global) -> Result<Outcome, Failure> {
    if let Some(pixel) = args.pixel {
        return pictures::pixel(pixel, args, global);
    }
    let mut options = options(args);
    Question::new(&options).map_err(usage)?;
    let db = database::load(global)?;
    let opened = dump::open(&args.file, global.max_size)?;
    let mut out = Output::open(global, false);
    options.palette = out.style.palette();
    let question = Question::new(&options).map_err(usage)?;
    let mut database = db.identity().clone();
    let result = match opened {
        Opened::Capture(stream) if args.chip.is_some() => Err(not_for_captures(&stream.name)),
        Opened::Capture(mut stream) => query::capture(&question, &mut stream, &db, global.max_size, &mut out)
            .map(|answered| report(&stream.name, answered, true))
            .map_err(usage),
        Opened::Dump(files) => files.read_as(args.chip.as_ref()).and_then(|dump| {
            say_chip(&files.name, args.chip.as_ref());
            database = device::database(&dump, &db);
            query::dump(&question, &dump, &files.unpacking(), &db, global.max_size, &mut out)
                .map(|answered| report(&files.name, answered, false))
                .map_err(|e| match e {
                    ViewError::UnknownRegister(_)
                    | ViewError::NoRegister(_)
                    | ViewError::NoPasses(_)
                    | ViewError::Condition { .. } => usage(e),
                    ViewError::UnknownGpu => {
                        Failure::Unusable(format!("{}: {e}: its streams are not decoded", files.name))
                    }
                    e => Failure::Unusable(format!("{}: {e}", files.name)),
                })
        }),
    };
    out.finish()?;
    if result.is_ok() && args.format == args::FormatArg::Csv {
        complain!("{}", device::database_line(&database));
    }
    result
}

/// What the arguments ask, without colours.
pub fn options(args: &args::Query) -> QueryOptions {
    QueryOptions {
        registers: args.registers.clone(),
        condition: args.condition.clone(),
        submits: args.submit.clone(),
        draws: args.draw.clone(),
        passes: args.pass.clone(),
        process: args.process.clone(),
        when: match (args.written, args.changed) {
            (true, _) => DrawChoice::Written,
            (_, true) => DrawChoice::Changed,
            _ => DrawChoice::Always,
        },
        once: args.once,
        unknown: args.unknown,
        format: match args.format {
            args::FormatArg::Text => Format::Text,
            args::FormatArg::Csv => Format::Csv,
            args::FormatArg::Ndjson => Format::Ndjson,
        },
        values: match args.values {
            args::ValuesArg::Raw => ValueForm::Raw,
            args::ValuesArg::Decoded => ValueForm::Decoded,
        },
        ..QueryOptions::default()
    }
}

/// A question that makes no sense, named by the option it came from.
pub fn usage(error: ViewError) -> Failure {
    Failure::Usage(match error {
        ViewError::Condition { .. } => format!("--where: {error}"),
        error => error.to_string(),
    })
}

/// Says what there is to say beside the rows.
fn report(name: &str, answered: Answered, with_notes: bool) -> Outcome {
    let remark = answered.remark();
    let Answered { notes, diagnostics, .. } = answered;
    for note in notes {
        match note {
            Note::LeftOut { generation, why } => {
                complain!("{name}: draws of {generation} are left out: {}", usage(why));
            }
            note => complain!("{name}: {note}"),
        }
    }
    let outcome = Outcome::of(name, &diagnostics);
    for note in diagnostics.iter().filter(|d| with_notes && d.severity == Severity::Note) {
        complain!("{name}: {note}");
    }
    if let Some(remark) = remark {
        complain!("{name}: {remark}");
    }
    outcome
}
