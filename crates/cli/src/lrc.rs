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
use unwedge::hw::intel::platform::{Engine, IntelDriver, Platform, Version};
use unwedge::intel::lrc::diff::diff as differences;
use unwedge::intel::lrc::encoding::{self, TableSizes};
use unwedge::intel::lrc::tables::{self as builtin, Builtin};
use unwedge::intel::lrc::text::LrcTable;
use unwedge::intel::lrc::{LrcImage, LrcLayout, LrcLayoutError, LrcOwner};
use unwedge_view::intel::IntelDump;
use unwedge_view::lrc::contexts::{Context, Contexts};
use unwedge_view::lrc::verify::Verification;
use unwedge_view::lrc::{described, diff, likely, show, tables, title, verify};
use unwedge_view::plural::counted;
use unwedge_view::regs;

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
    for (i, context) in source.chosen(args.image.context.as_deref())?.into_iter().enumerate() {
        let image = image(context, args.image.page)?;
        let told = asked_layout(context, &args.target)?;
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
    let mut out = Output::open(global, true);
    let style = out.style;
    let mut wrong = false;
    for (i, context) in source.chosen(args.image.context.as_deref())?.into_iter().enumerate() {
        let Some(layout) = asked_layout(context, &args.target)? else {
            if !source.contexts.is_dump {
                return Err(unsaid());
            }
            let message =
                format!("{}: the dump does not say whose it is; --platform and --engine do", context.place());
            diagnostics.push(Diagnostic::loss(None, message));
            continue;
        };
        let mut found = Verification::of(image(context, args.image.page)?, layout);
        found.look_in(&source.contexts.memory, context.address);
        for missing in found.missing() {
            if missing != 0 {
                let missing =
                    counted(missing as u64, "dword of the registers is", "dwords of the registers are");
                let message = format!("{missing} missing: the image is cut");
                diagnostics.push(Diagnostic::loss(None, message));
            }
        }
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
    let context_a = a.only(first.filter(|_| a.contexts.is_dump))?;
    let context_b =
        b.only(args.context.get(1).map(String::as_str).or(first).filter(|_| b.contexts.is_dump))?;
    let (image_a, image_b) = (image(context_a, args.page)?, image(context_b, args.page)?);
    let layout = match asked_layout(context_a, &args.target)? {
        Some(layout) => Some(layout),
        None => asked_layout(context_b, &args.target)?.or_else(|| likely(&image_a)),
    };
    let mask = layout.as_ref().and_then(|l| l.addressing().relative).unwrap_or(u32::MAX);
    let changed = differences(image_a.registers(), image_b.registers(), mask);
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
    let target = given_target(&args.target)?;
    let layout = if args.indirect_ring_state {
        LrcLayout::of_indirect_ring_state(target).map_err(|e| Failure::Usage(e.to_string()))?
    } else {
        layout(target)?
    };
    let bytes: Vec<u8> = layout.expand().iter().flat_map(|w| w.to_le_bytes()).collect();
    deliver(&bytes, args.output.as_deref().unwrap_or(Path::new("-")), global)?;
    if args.output.is_some() {
        let count = builtin::pages(target.driver, target.version, target.engine.class);
        let of = count.map_or(String::new(), |count| {
            format!(" of a context of {}", counted(count as u64, "page", "pages"))
        });
        let dwords = counted(layout.dwords() as u64, "dword", "dwords");
        complain!("{}: the register page{of}, {dwords} of it", described(&layout));
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
        None => Builtin::all()
            .map(|t| LrcTable {
                name: t.name().to_owned(),
                drivers: t.drivers().iter().map(ToString::to_string).collect(),
                steps: t.steps(),
            })
            .collect(),
    };
    let names: Vec<&str> = found.iter().map(|t| t.name.as_str()).collect();
    let none = || match &args.table {
        Some(name) => format!("--table {name}: there are {}", names.join(", ")),
        None => "there is no table".to_owned(),
    };
    let wanted: Vec<&LrcTable> =
        found.iter().filter(|t| args.table.as_ref().is_none_or(|name| *name == t.name)).collect();
    let Some(first) = wanted.first() else { return Err(Failure::Unusable(none())) };
    if let Some(output) = &args.output {
        if wanted.len() > 1 {
            let message = format!("--output takes one table, choose with --table: {}", names.join(", "));
            return Err(Failure::Usage(message));
        }
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
        let is_image = said.platform.is_some() && said.engine.is_some();
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

    /// The contexts that are asked for: an engine's, or a number; all of them where nothing is.
    fn chosen(&self, which: Option<&str>) -> Result<Vec<&Context>, Failure> {
        let Some(which) = which else { return Ok(self.contexts.contexts.iter().collect()) };
        let by_number = which.parse::<usize>().ok().and_then(|n| self.contexts.contexts.get(n));
        let of_engine = |c: &&Context| c.title.split(',').next().is_some_and(|engine| engine == which);
        let chosen: Vec<_> = match by_number {
            Some(context) => vec![context],
            None => self.contexts.contexts.iter().filter(of_engine).collect(),
        };
        if chosen.is_empty() { Err(self.choice(&format!("--context {which}"))) } else { Ok(chosen) }
    }

    /// The one context that is asked for.
    fn only(&self, which: Option<&str>) -> Result<&Context, Failure> {
        match self.chosen(which)?[..] {
            [context] => Ok(context),
            _ => Err(self.choice("--context is missing")),
        }
    }

    fn choice(&self, what: &str) -> Failure {
        if !self.contexts.is_dump {
            return Failure::Usage(format!("{what}: {} is one context", self.name));
        }
        let list = self.contexts.contexts.iter().enumerate().map(|(i, c)| format!("{i} ({})", c.place()));
        Failure::Usage(format!("{what}: {} has {}", self.name, list.collect::<Vec<_>>().join(", ")))
    }
}

/// The image of a context, with its register page where it is asked for, else where the file says.
fn image(context: &Context, page: Option<usize>) -> Result<LrcImage<'_>, Failure> {
    context.image(page).map_err(|e| Failure::Usage(e.to_string()))
}

/// The layout of a context: as it was asked for, and where it was not, as the dump says. `None` where neither says, or the dump
/// says what cannot be.
fn asked_layout(context: &Context, args: &LrcTarget) -> Result<Option<LrcLayout>, Failure> {
    if args.platform.is_none() && args.engine.is_none() && args.driver.is_none() {
        return Ok(context.told_layout());
    }
    target(args, context.target)?.map(layout).transpose()
}

/// A platform as people write it: its version, and the driver that is usual for it.
fn platform(text: &str) -> Result<(Version, IntelDriver), Failure> {
    regs::chip::intel_platform(text).ok_or_else(|| {
        let known = Platform::all().iter().filter(|platform| platform.version() >= Version::new(8, 0));
        let names: Vec<&str> = known.map(Platform::name).collect();
        Failure::Usage(format!(
            "--platform {text}: expected one of {}, the PCI id of one of their chips (0x9a49), or a graphics version from \
             8.00 on (12.70)",
            names.join(", ")
        ))
    })
}

/// Whose context was asked for; where nothing was, or not all of it, `told` is what the file says.
fn target(args: &LrcTarget, told: Option<LrcOwner>) -> Result<Option<LrcOwner>, Failure> {
    let engine = args.engine.or(told.map(|t| t.engine));
    let (version, usual) = match (&args.platform, told) {
        (Some(name), _) => platform(name)?,
        (None, Some(told)) => (told.version, told.driver),
        (None, None) if args.engine.is_none() => return Ok(None),
        (None, None) => {
            return Err(Failure::Usage("--platform is missing: tgl, 0x9a49, 12.70".to_owned()));
        }
    };
    let Some(engine) = engine else {
        let engines: Vec<String> = Engine::all(version).map(|e| e.to_string()).collect();
        return Err(Failure::Usage(format!("--engine is missing: one of {}", engines.join(", "))));
    };
    Ok(Some(LrcOwner { driver: args.driver.unwrap_or(usual), version, engine }))
}

/// Whose context was asked for, which has to be said.
fn given_target(args: &LrcTarget) -> Result<LrcOwner, Failure> {
    target(args, None)?.ok_or_else(unsaid)
}

fn unsaid() -> Failure {
    Failure::Usage("whose context? --platform tgl --engine rcs0".to_owned())
}

/// The layout of an engine.
fn layout(target: LrcOwner) -> Result<LrcLayout, Failure> {
    LrcLayout::of(target).map_err(|e| {
        let engines: Vec<String> = Engine::all(target.version).map(|e| e.to_string()).collect();
        let hint = match e {
            LrcLayoutError::NoEngine { .. } => format!("; it has {}", engines.join(", ")),
            _ => String::new(),
        };
        Failure::Usage(format!("{e}{hint}"))
    })
}
