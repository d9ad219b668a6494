//! `unwedge lrc`: Intel context images. Never: what a layout is; that is `unwedge::intel::lrc`'s.

use crate::args::{
    Global, LrcCommand, LrcDecode, LrcDiff, LrcEncode, LrcExpand, LrcShow, LrcTarget, LrcVerify,
};
use crate::dump::{DumpFiles, is_read_once};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use std::io::Write;
use std::path::Path;
use unwedge::base::Diagnostic;
use unwedge::capture::FileKind;
use unwedge::files::Input;
use unwedge::intel::lrc::encoding::{self, TableSizes};
use unwedge::intel::lrc::{LrcImage, LrcLayout, tables as builtin};
use unwedge_view::intel::IntelDump;
use unwedge_view::lrc::contexts::{Context, ContextChoiceError, Contexts};
use unwedge_view::lrc::owner::{OwnerError, platform};
use unwedge_view::lrc::verify::Verification;
use unwedge_view::lrc::{diff, expanded, likely, show, tables, title, verify};
use unwedge_view::plural::counted;

impl From<OwnerError> for Failure {
    fn from(error: OwnerError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<ContextChoiceError> for Failure {
    fn from(error: ContextChoiceError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

/// Runs the command.
pub fn run(command: &LrcCommand, global: &Global) -> Result<Outcome, Failure> {
    match command {
        LrcCommand::Show(args) => show(args, global),
        LrcCommand::Verify(args) => verify(args, global),
        LrcCommand::Expand(args) => expand(args, global),
        LrcCommand::Diff(args) => diff(args, global),
        LrcCommand::Encode(args) => encode(args, global),
        LrcCommand::Decode(args) => decode(args, global),
    }
}

/// `lrc show`.
fn show(args: &LrcShow, global: &Global) -> Result<Outcome, Failure> {
    let source = ContextSource::open(&args.image.image, &args.target, global)?;
    let mut out = Output::open(global, true);
    for (i, context) in
        source.contexts.chosen(args.image.context.as_deref(), &source.name)?.into_iter().enumerate()
    {
        let image = image(context, args.image.page)?;
        let told = args.target.owner().layout(context)?;
        let guessed = told.is_none();
        let layout = told.or_else(|| likely(&image));
        let layout = layout.as_ref();
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = if args.json {
            show::json(&image, layout, args.all, &mut out)
        } else {
            title(context, i, &mut out)
                .and_then(|()| if guessed && layout.is_some() { write!(out, "looks like ") } else { Ok(()) })
                .and_then(|()| show::text(&image, layout, args.all, &mut out))
        };
    }
    out.finish()?;
    Ok(Outcome::of(&source.name, &source.contexts.diagnostics))
}

/// `lrc verify`.
fn verify(args: &LrcVerify, global: &Global) -> Result<Outcome, Failure> {
    let mut source = ContextSource::open(&args.image.image, &args.target, global)?;
    let mut diagnostics = std::mem::take(&mut source.contexts.diagnostics);
    let heading = || format!("Context image of {}", args.image.image.display());
    let mut out = Output::open_page(global, true, args.html.as_deref(), heading);
    let style = out.style;
    let mut wrong = false;
    for (i, context) in
        source.contexts.chosen(args.image.context.as_deref(), &source.name)?.into_iter().enumerate()
    {
        let Some(layout) = args.target.owner().layout(context)? else {
            if !source.contexts.is_dump {
                return Err(OwnerError::Unsaid.into());
            }
            let message =
                format!("{}: the dump does not say whose it is; --platform and --engine do", context.place());
            diagnostics.push(Diagnostic::loss(None, message));
            continue;
        };
        let mut found = Verification::of(image(context, args.image.page)?, layout);
        found.look_in(&source.contexts.memory, context.address);
        diagnostics.extend(found.losses());
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = if args.json {
            verify::json(&found, &mut out)
        } else {
            title(context, i, &mut out).and_then(|()| verify::text(&found, style, &mut out))
        };
        wrong |= found.differs() || args.strict && found.is_noted();
    }
    out.finish()?;
    let outcome = Outcome::of(&source.name, &diagnostics);
    Ok(if wrong { Outcome::Found } else { outcome })
}

/// `lrc diff`.
fn diff(args: &LrcDiff, global: &Global) -> Result<Outcome, Failure> {
    if args.a == args.b && args.a.as_os_str() == "-" {
        return Err(Failure::Usage("standard input can be one side only".to_owned()));
    }
    if args.a == args.b && is_read_once(&args.a) {
        let message = format!("{}: can be read once, so it can be one side only", args.a.display());
        return Err(Failure::Usage(message));
    }
    let (a, b) = (
        ContextSource::open(&args.a, &args.target, global)?,
        ContextSource::open(&args.b, &args.target, global)?,
    );
    let first = args.context.first().map(String::as_str);
    let context_a = a.contexts.only(first.filter(|_| a.contexts.is_dump), &a.name)?;
    let second = args.context.get(1).map(String::as_str).or(first);
    let context_b = b.contexts.only(second.filter(|_| b.contexts.is_dump), &b.name)?;
    let (image_a, image_b) = (image(context_a, args.page)?, image(context_b, args.page)?);
    let layout = match args.target.owner().layout(context_a)? {
        Some(layout) => Some(layout),
        None => args.target.owner().layout(context_b)?.or_else(|| likely(&image_a)),
    };
    let changed = diff::changed(&image_a, &image_b, layout.as_ref());
    let mut out = Output::open(global, true);
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = if args.json {
        diff::json(layout.as_ref(), &changed, &mut out)
    } else {
        diff::text(layout.as_ref(), &changed, &mut out)
    };
    out.finish()?;
    let lost = [a, b].iter().fold(false, |lost, opened| {
        lost | (Outcome::of(&opened.name, &opened.contexts.diagnostics) == Outcome::Lost)
    });
    Ok(match (args.exit_code && !changed.is_empty(), lost) {
        (true, _) => Outcome::Found,
        (false, true) => Outcome::Lost,
        (false, false) => Outcome::Complete,
    })
}

/// `lrc expand`.
fn expand(args: &LrcExpand, global: &Global) -> Result<Outcome, Failure> {
    let owner = args.target.owner().owner()?;
    let layout = match args.indirect_ring_state {
        true => LrcLayout::of_indirect_ring_state(owner).map_err(|e| Failure::Usage(e.to_string()))?,
        false => LrcLayout::of(owner).map_err(OwnerError::from)?,
    };
    let bytes: Vec<u8> = layout.expand().iter().flat_map(|w| w.to_le_bytes()).collect();
    deliver(&bytes, args.output.as_deref().unwrap_or(Path::new("-")), global)?;
    if args.output.is_some() {
        complain!("{}", expanded(&layout, owner));
    }
    Ok(Outcome::Complete)
}

/// Bytes to a file, or for `-` to standard output.
fn deliver(bytes: &[u8], file: &Path, global: &Global) -> Result<(), Failure> {
    if file.as_os_str() != "-" {
        return std::fs::write(file, bytes).map_err(|e| Failure::Write(file.display().to_string(), e));
    }
    let mut out = Output::open(global, false);
    // A failed write is remembered, and reported by `finish`.
    let _ = out.write_all(bytes);
    Ok(out.finish()?)
}

/// `lrc encode`.
fn encode(args: &LrcEncode, global: &Global) -> Result<Outcome, Failure> {
    let found = match &args.file {
        Some(file) => {
            let input = Input::open(file, global.max_size)?;
            let text = String::from_utf8(input.bytes)
                .map_err(|_| Failure::Unusable(format!("{}: expected tables as text", input.name)))?;
            builtin::parse(&text).map_err(|e| Failure::Unusable(format!("{}: {e}", input.name)))?
        }
        None => tables::of_drivers(),
    };
    let wanted = tables::named(&found, args.table.as_deref());
    let wanted = wanted.map_err(|e| Failure::Unusable(e.to_string()))?;
    if let Some(output) = &args.output {
        let [first] = wanted[..] else {
            let message = format!("--output takes one table, choose with --table: {}", tables::names(&found));
            return Err(Failure::Usage(message));
        };
        let bytes = encoding::encode(&first.steps).map_err(|e| Failure::Unusable(e.to_string()))?;
        deliver(&bytes, output, global)?;
        return Ok(Outcome::Complete);
    }
    let mut out = Output::open(global, true);
    for table in wanted {
        let bytes = encoding::encode(&table.steps).map_err(|e| Failure::Unusable(e.to_string()))?;
        let sizes = TableSizes::of(&table.steps).map_err(|e| Failure::Unusable(e.to_string()))?;
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = tables::listed(table, &bytes, &sizes, !args.list, &mut out);
    }
    out.finish()?;
    Ok(Outcome::Complete)
}

/// `lrc decode`.
fn decode(args: &LrcDecode, global: &Global) -> Result<Outcome, Failure> {
    let (version, _) = platform(&args.platform)?;
    let input = Input::open(&args.file, global.max_size)?;
    let (steps, length) =
        encoding::decode(&input.bytes).map_err(|e| Failure::Unusable(format!("{}: {e}", input.name)))?;
    let mut out = Output::open(global, true);
    // A failed write is remembered by `out`, and reported by its `finish`.
    let _ = tables::readable(&steps, version, &mut out);
    out.finish()?;
    let left = input.bytes.len() - length;
    if left != 0 {
        complain!("{}: {} the table", input.name, counted(left as u64, "byte follows", "bytes follow"));
    }
    Ok(if left == 0 { Outcome::Complete } else { Outcome::Lost })
}

/// A file that was read.
struct ContextSource {
    /// Its name.
    name: String,
    contexts: Contexts,
}

impl ContextSource {
    /// Opens a file. Bytes are dwords; text of nothing but hexadecimal dwords is those. `said` is what was said of it.
    fn open(path: &Path, said: &LrcTarget, global: &Global) -> Result<ContextSource, Failure> {
        // An image may begin as other files do: whose it is is said of an image, and what no image can be has text.
        let is_image = said.owner().is_whole();
        let files = DumpFiles::of(Input::open(path, global.max_size)?);
        let image = || ContextSource::of(&files, Contexts::of_image(files.bytes()));
        match files.kind {
            FileKind::I915ErrorState | FileKind::XeDevcore => ContextSource::of_dump(&files, global.max_size),
            FileKind::Empty => Err(Failure::Unusable(format!(
                "{}: empty: a context image has a page of 4096 bytes at least",
                files.name
            ))),
            FileKind::Text | FileKind::ToolText | FileKind::Binary => Ok(image()),
            FileKind::RdCapture | FileKind::Elf if is_image => Ok(image()),
            kind => Err(Failure::Unusable(format!(
                "{}: {}, neither a context image nor a dump of i915 or xe",
                files.name,
                kind.describe()
            ))),
        }
    }

    fn of_dump(files: &DumpFiles, max_size: u64) -> Result<ContextSource, Failure> {
        let dump = files.read().ok();
        let contexts = dump.as_ref().and_then(IntelDump::of).map(|dump| Contexts::of_dump(dump, max_size));
        let contexts = contexts
            .filter(|found| !found.contexts.is_empty())
            .ok_or_else(|| Failure::Unusable(format!("{}: there is no context in this dump", files.name)))?;
        Ok(ContextSource::of(files, contexts))
    }

    fn of(files: &DumpFiles, mut contexts: Contexts) -> ContextSource {
        contexts.diagnostics.splice(0..0, files.unpacking());
        ContextSource { name: files.name.clone(), contexts }
    }
}

/// The image of a context, with its register page where it is asked for, else where the file says.
fn image(context: &Context, page: Option<usize>) -> Result<LrcImage<'_>, Failure> {
    context.image(page).map_err(|e| Failure::Usage(e.to_string()))
}
