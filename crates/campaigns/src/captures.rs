//! What the commands that take captures print for one in memory. Never: files, the terminal, other processes.

use clap::Parser;
use std::io::{self, Cursor};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use unwedge::edit::instrument::Instrumenter;
use unwedge::edit::rewrite::{AddressSpace, rewrite};
use unwedge::files::InputStream;
use unwedge::hw::Db;
use unwedge::stream::cut::Merger;
use unwedge_cli::args::{Cli, Command, Diff, Packing, RdCommand};
use unwedge_cli::failure::Failure;
use unwedge_cli::output::{Share, SharedOutput};
use unwedge_cli::packed::Packed;
use unwedge_cli::query as query_verb;
use unwedge_cli::{cffdump as program, dump, edit, rd};
use unwedge_view::cffdump::{self, Listing};
use unwedge_view::rd::{info, list};
use unwedge_view::{Style, around, decode, diff, query};

/// A command line: `-` is the capture, `other` the one it is compared with.
pub type Words = &'static [&'static str];

/// Command lines of everything that takes captures.
pub const ALL: [Words; 35] = [
    &["cffdump", "-"],
    &["cffdump", "-s", "--once", "-"],
    &["cffdump", "--unit-test", "-a", "--show-compositor", "-"],
    &["cffdump", "-sa", "--color", "-"],
    &["cffdump", "--textures", "--bindless", "-v", "-"],
    &["cffdump", "-D1", "-"],
    &["cffdump", "-F1", "--once", "-"],
    &["cffdump", "-q", "0x8010", "-q", "0x2080", "-"],
    &["cffdump", "--query-delta", "--once", "-q", "0x8010", "-"],
    &["cffdump", "--query-compare", "--query-written", "-q", "0x8010", "-"],
    &["cffdump", "--script", WATCHER, "-"],
    &["decode", "--json", "-"],
    &["decode", "--around=draw 5", "-"],
    &["decode", "--json", "--around=draw 0", "-"],
    &["decode", "--around=0x10000000", "-C", "3", "-"],
    &["info", "-"],
    &["info", "--json", "-"],
    &["rd", "cat", "-"],
    &["rd", "cat", "--json", "-"],
    &["rd", "trim", "--submits", "1", "-"],
    &["rd", "trim", "--submits", "0..2,5..", "--all-buffers", "-"],
    &["rd", "trim", "--frames", "0..1", "--frame-end", "frame", "-"],
    &["rd", "split", "-"],
    &["rd", "split", "--every", "3", "--compress", "zstd", "-"],
    &["rd", "merge", "--compress", "xz", "-", "other"],
    &["rd", "recompress", "--to", "gzip", "-"],
    &["query", "-"],
    &["query", "-", "--once", "--changed", "--format", "csv", "0x8010"],
    &["query", "-", "--written", "--values", "raw", "--format", "ndjson", "0x2080", "0x8010..0x8020"],
    &["query", "-", "--where", "draw.count > 2 && draw.index != 3", "--unknown"],
    &["diff", "-", "other"],
    &["diff", "--json", "--once", "-", "other"],
    &["diff", "--draw", "1", "-", "other"],
    &["edit", "--nop", "1..2", "--crash-at", "5", "--wfi-every", "1", "-"],
    &["edit", "--stomp", "0..0xffff", "--stomp-at", "cmdbuf,renderpass", "-"],
];

/// A script that is told of everything and looks at everything.
const WATCHER: &str = "
    local r = nil
    function start_cmdstream(name) io.write(name, '\\n') r = rnn.init('a630') end
    function draw(primtype, nindx)
      io.write(tostring(primtype), ' ', nindx, ' ', regs.val(0x8010), ' ', regs.lastval(0x2080), '\\n')
    end
    function A6XX_TEX_CONST(pkt, size) io.write(tostring(pkt[0].WIDTH), ' ', bos.size(pkt[4].BASE_LO), '\\n') end
    function CP_LOAD_STATE6_FRAG(pkt, size) io.write(tostring(pkt[0].STATE_TYPE), '\\n') end
    function start_submit() io.write('(') end
    function end_submit() io.write(')') end
    function finish() io.write('end\\n') end
";

/// The most bytes that a command line prints for a capture of so many.
pub fn limit(words: Words, capture: u64) -> u64 {
    // The last piece of work is printed to its end.
    const OVER: u64 = 4 << 20;
    let (fixed, per_byte) = match words {
        ["cffdump", ..] => (cffdump::LENGTH, cffdump::LENGTH_PER_BYTE),
        ["decode", ..] => (unwedge_view::lines::LENGTH, decode::LENGTH_PER_BYTE_OF_CAPTURE),
        ["rd", "trim" | "merge" | "recompress", ..] => (1 << 10, 2),
        // Each part names the GPU, and has a head of its own.
        ["rd", "split", ..] => (1 << 10, 16),
        // Packets are inserted around each piece of work, and registers written for each command buffer and pass.
        ["edit", ..] => (16 << 20, 1 << 8),
        // A row for each draw there is.
        ["query" | "diff", ..] => (16 << 20, 1 << 10),
        _ => (1 << 20, 32),
    };
    per_byte.saturating_mul(capture).saturating_add(fixed).saturating_add(OVER)
}

/// Does what a command line says. The error is what the program says when it cannot use the capture.
///
/// # Errors
///
/// The message of the program, if the command line or the capture cannot be used.
pub fn show(
    words: Words,
    capture: &Arc<[u8]>,
    other: &Arc<[u8]>,
    db: &Rc<Db>,
    max_alive: u64,
    out: &SharedOutput,
) -> Result<(), String> {
    Inputs { capture, other, db, max_alive, out }.run(words).map_err(|failure| failure.to_string())
}

/// What a command line is run with.
struct Inputs<'a> {
    capture: &'a Arc<[u8]>,
    /// The one it is compared or merged with.
    other: &'a Arc<[u8]>,
    db: &'a Rc<Db>,
    max_alive: u64,
    out: &'a SharedOutput,
}

fn open(bytes: &Arc<[u8]>) -> Result<InputStream, Failure> {
    dump::check_capture(InputStream::of(Cursor::new(Arc::clone(bytes)), "capture")?)
}

impl Inputs<'_> {
    fn writer(&self) -> Share {
        Share(Rc::clone(self.out))
    }

    fn run(&self, words: Words) -> Result<(), Failure> {
        let &Inputs { capture, db, max_alive, out, .. } = self;
        if let ["cffdump", rest @ ..] = words {
            return listing(rest, open(capture)?, db, max_alive, out);
        }
        let command = Cli::try_parse_from(["unwedge"].iter().chain(words));
        let command = command.map_err(|e| Failure::Usage(e.to_string()))?.command;
        let mut writer = self.writer();
        // A failed write is for the owner of `out` to remember.
        match command {
            Command::Decode(args) if args.around.is_some() => {
                let context = args.context.map(usize::from);
                let options = around::Options {
                    json: args.json,
                    style: Style { colour: false },
                    max_size: max_alive,
                    context,
                };
                let place = args.around.unwrap_or(around::Place::Hang);
                around::capture(&mut open(capture)?, place, options, db, &mut writer)
                    .map_err(|e| Failure::Unusable(e.to_string()))?;
            }
            Command::Decode(_) => {
                drop(decode::capture(&mut open(capture)?, db, max_alive, &mut writer));
            }
            Command::Info(args) => {
                let mut stream = open(capture)?;
                let (found, _) = info::read(&mut stream, db, max_alive);
                let _ = match args.json {
                    true => serde_json::to_writer(&mut writer, &found).map_err(io::Error::from),
                    false => found.text(Style { colour: false }, &mut writer),
                };
            }
            Command::Query(args) => {
                let options = query_verb::options(&args);
                let question = query::Question::new(&options).map_err(query_verb::usage)?;
                query::capture(&question, &mut open(capture)?, db, max_alive, &mut writer)
                    .map_err(query_verb::usage)?;
            }
            Command::Diff(args) => self.diff(&args)?,
            Command::Edit(args) => {
                let options = edit::options(&args)?;
                let space = AddressSpace::scan(open(capture)?);
                let mut editor = Instrumenter::new(&options);
                rewrite(open(capture)?, space, &mut editor, db, max_alive, &mut writer)
                    .map_err(|e| edit::failed("capture", e))?;
            }
            Command::Rd(args) => self.rd(args.command)?,
            _ => return Err(Failure::Usage("not a command for captures".to_owned())),
        }
        Ok(())
    }

    fn diff(&self, args: &Diff) -> Result<(), Failure> {
        let selectors = [&args.a, &args.b].map(|file| diff::Selector {
            name: file.to_string_lossy().into_owned(),
            submit: args.submit,
            draw: args.draw,
        });
        let (capture, other) = (self.capture, self.other);
        let of = |file: &std::ffi::OsStr| if file == "-" { capture } else { other };
        let opened = |file| open(of(file)).map(|stream| diff::Opened::Capture(Box::new(stream)));
        let (open_a, open_b) = (|| opened(&args.a), || opened(&args.b));
        let [a, b] = &selectors;
        let sides = [
            diff::Side { selector: a, open: Box::new(open_a) },
            diff::Side { selector: b, open: Box::new(open_b) },
        ];
        let options = diff::DiffOptions {
            once: args.once,
            one_input: args.a == args.b,
            json: args.json,
            ..diff::DiffOptions::default()
        };
        let compared = diff::compare(sides, options, self.db, self.max_alive, &mut self.writer());
        for side in compared.sides {
            match side {
                Ok(_) => {}
                Err(diff::SideError::Open(failure)) => return Err(failure),
                Err(diff::SideError::View(e)) => return Err(Failure::Unusable(e.to_string())),
            }
        }
        if compared.absent {
            return Err(Failure::NotFound("nothing to compare".to_owned()));
        }
        Ok(())
    }

    fn rd(&self, command: RdCommand) -> Result<(), Failure> {
        let &Inputs { capture, other, db, max_alive, out } = self;
        let mut writer = self.writer();
        match command {
            RdCommand::Cat(args) => {
                drop(list::list(open(capture)?, args.json, max_alive, &mut writer));
            }
            RdCommand::Trim(args) => {
                let trimmed = rd::trimmed(&args, open(capture)?, db, max_alive, &mut writer);
                trimmed.map_err(|e| Failure::Unusable(e.to_string()))?;
            }
            RdCommand::Split(args) => {
                let mut create = |path: &Path| {
                    Packed::over(&path.to_string_lossy(), Box::new(self.writer()), args.compress)
                };
                rd::parted(&args, "capture", open(capture)?, db, max_alive, &mut create)?;
            }
            RdCommand::Merge(args) => {
                let mut packed = packed(args.to.compress, out)?;
                let mut merger = Merger::default();
                for bytes in [capture, other] {
                    merger
                        .add(open(bytes)?, max_alive, &mut packed)
                        .map_err(|e| Failure::Unusable(e.to_string()))?;
                }
                packed.commit()?;
            }
            RdCommand::Recompress(args) => {
                let mut packed = packed(args.to, out)?;
                rd::copied(open(capture)?, &mut packed)?;
                packed.commit()?;
            }
            _ => return Err(Failure::Usage("not a command for one capture".to_owned())),
        }
        Ok(())
    }
}

fn packed(packing: Option<Packing>, out: &SharedOutput) -> Result<Packed, Failure> {
    Packed::over("the result", Box::new(Share(Rc::clone(out))), packing.unwrap_or(Packing::None))
}

/// `cffdump`, whose script, if there is one, is not in a file but among the words.
fn listing(
    words: &[&str],
    mut stream: InputStream,
    db: &Rc<Db>,
    max_alive: u64,
    out: &SharedOutput,
) -> Result<(), Failure> {
    let mut arguments = program::parse_args(words.iter().map(Into::into))
        .map_err(|refusal| Failure::Usage(refusal.to_string()))?;
    let colour = arguments.color == Some(true);
    let source = arguments.script.take();
    let load = |source: std::path::PathBuf| {
        let source = source.to_string_lossy();
        program::load_script("script", source.as_bytes(), db, colour, Rc::clone(out))
    };
    let script = match source.map(load).transpose() {
        Ok(script) => script,
        Err(ended) => return Result::from(ended).map(drop),
    };
    let mut listing = Listing::new(arguments.options, colour, db, max_alive)
        .with_script(script.as_ref().map(|script| script as _));
    listing.run("capture", &mut stream, false, &mut Share(Rc::clone(out)));
    drop(listing);
    script.map_or(Ok(()), program::Script::finish).or_else(|ended| Result::from(ended).map(drop))
}
