//! `unwedge tui`: opens the file, and runs the browser on the terminal. Never: what a key does; that is `unwedge_tui`'s.

mod capture;
mod terminal;

use crate::args::{self, Global};
use crate::database;
use crate::diff;
use crate::dump::{self, DumpFiles, Opened};
use crate::failure::{Failure, Outcome};
use crate::info;
use crate::output;
use std::io::IsTerminal;
use std::path::Path;
use unwedge::capture::FileKind;
use unwedge::hw::Db;
use unwedge::shader::front::ShaderFile;
use unwedge::shader::front::spirv::Options;
use unwedge::shader::text;
use unwedge_tui::{App, Theme};
use unwedge_view::Style;
use unwedge_view::browse::{Document, DumpDocument, FileDocument, Row, RowLook};

/// Runs the command.
pub fn run(args: &args::Tui, global: &Global) -> Result<Outcome, Failure> {
    if !std::io::stdout().is_terminal() {
        let message =
            "tui needs a terminal: `unwedge explain FILE` and `unwedge decode FILE` print to anything";
        return Err(Failure::Usage(message.to_owned()));
    }
    let twice =
        args.other.as_ref().is_some_and(|other| other.as_os_str() == "-" || args.file.as_os_str() == "-");
    if twice {
        return Err(Failure::Usage("standard input cannot be compared: name two files".to_owned()));
    }
    let db = database::load(global)?;
    match dump::open(&args.file, global.max_size)? {
        Opened::Capture(stream) if args.chip.is_some() => Err(crate::decode::not_for_captures(&stream.name)),
        Opened::Capture(stream) => capture::browse(stream, args, &db, global),
        Opened::Dump(files) => match files.read_as(args.chip.as_ref()) {
            Ok(read) => {
                let summary = summary(&files, &db, global);
                let document = DumpDocument::new(title(&files.name), &read, &db, global.max_size, summary);
                show(Box::new(document), args, &db, global)
            }
            Err(failure) if files.kind == FileKind::Folder || args.chip.is_some() => Err(failure),
            Err(_) => {
                let document = file(&files, &db, global);
                show(Box::new(document), args, &db, global)
            }
        },
    }
}

/// What the title calls a file: without its folders, so that there is room for what it is.
fn title(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// What `info` says of a file; of one that it does not take, what kind of file it is.
fn summary(files: &DumpFiles, db: &Db, global: &Global) -> String {
    let mut text = Vec::new();
    let style = Style { colour: false };
    match info::show(files, db, false, style, global.max_size, &mut text) {
        Ok(_) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => {
            let mut text = format!("{}: {}, {} bytes\n", files.name, files.kind.describe(), files.size());
            files.unpacking().iter().for_each(|lost| text.push_str(&format!("lost: {lost}\n")));
            text
        }
    }
}

/// A file that is not a dump.
fn file<'f>(files: &'f DumpFiles, db: &Db, global: &Global) -> FileDocument<'f> {
    let summary = summary(files, db, global);
    let bytes = files.bytes();
    let mut document = FileDocument::new(title(&files.name), files.kind, bytes, global.max_size, summary);
    if matches!(files.kind, FileKind::Binary | FileKind::Text)
        && let Ok(shader) = ShaderFile::named(&files.name, bytes)
        && let Ok(shader) = shader.load(&Options::default())
    {
        document.add_listing("shader, as the text of the IR", &text::print(&shader));
    }
    document
}

/// The browser of a document.
fn app<'d>(document: Box<dyn Document + 'd>, args: &'d args::Tui, db: &'d Db, global: &'d Global) -> App<'d> {
    let app = App::new(document);
    match &args.other {
        None => app,
        Some(other) => app.with_differences(Box::new(move || differences(&args.file, other, db, global))),
    }
}

fn differences(a: &Path, b: &Path, db: &Db, global: &Global) -> Vec<Row> {
    match diff::text(a, b, db, global) {
        Ok(text) => Row::lines(&text),
        Err(failure) => vec![Row::of(failure.to_string(), RowLook::Loss)],
    }
}

fn show<'d>(
    document: Box<dyn Document + 'd>,
    args: &'d args::Tui,
    db: &'d Db,
    global: &'d Global,
) -> Result<Outcome, Failure> {
    let mut app = app(document, args, db, global);
    terminal::run(&mut app, theme(global), !args.no_mouse, None)
}

/// Colours, unless the user or the environment has none.
fn theme(global: &Global) -> Theme {
    Theme { colour: output::style(global).colour }
}
