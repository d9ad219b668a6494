//! `unwedge cffdump`: a rd capture as text, with the options and the lines of Mesa's cffdump.
//!
//! Lists each submit's command stream as a capture is played. Never: terminals,
//! what a packet means. Where cffdump stops or crashes (a cut capture, a device it does not know) this goes on and says
//! so. The layout of the lines follows what cffdump of Mesa 25.0 prints.

mod args;
#[cfg(feature = "lua")]
mod script;
#[cfg(not(feature = "lua"))]
#[path = "script/absent.rs"]
mod script;
mod shaders;

pub use args::{Arguments, Refusal, USAGE, parse_args};
pub use script::Script;

use crate::capture::{Absent, Choice, Consumer, Identity, Player, Submission};
use crate::cffdump::shaders::ShaderFiles;
use crate::failure::{Failure, Outcome};
use crate::output::SharedOutput;
use crate::text::{self, Carry, CffText, End, Marker, Query, Quiet, Target, Text, Watch};
use std::io::{Read, Write};
use std::path::Path;
use std::rc::Rc;
use unwedge_base::{Diagnostic, Dwords, Generation, Severity};
use unwedge_capture::rd::{Section, SectionKind, Step};
use unwedge_hw::{Db, Gpu, Palette, Variants};

/// Longest listing of a capture: so many bytes, and so many more per byte of the capture so far. Buffers are shown for
/// each tile they run for.
pub const LENGTH: u64 = 256 << 20;
/// See [`LENGTH`].
pub const LENGTH_PER_BYTE: u64 = 1 << 10;

const RULE: &str = "############################################################";

/// Why a script does not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// It has a mistake, or cannot be read.
    #[error("{0}")]
    Failed(String),
    /// It asked to, with this exit status.
    #[error("exit status {0}")]
    Exit(u8),
    /// Nobody takes what it writes.
    #[error("output is not taken")]
    Output,
}

impl From<Ended> for Result<Outcome, Failure> {
    fn from(ended: Ended) -> Result<Outcome, Failure> {
        match ended {
            Ended::Failed(message) => Err(Failure::Unusable(message)),
            Ended::Exit(status) => Ok(Outcome::Asked(status)),
            // The output remembers what is wrong with it.
            Ended::Output => Ok(Outcome::Complete),
        }
    }
}

/// Loads a script, which writes to `out` from here on.
pub fn open_script(path: &Path, db: &Rc<Db>, colour: bool, out: SharedOutput) -> Result<Script, Ended> {
    let name = path.to_string_lossy();
    let source = std::fs::read(path).map_err(|e| Ended::Failed(format!("{name}: {e}")))?;
    load_script(&name, &source, db, colour, out)
}

/// The same, from its source.
pub fn load_script(
    name: &str,
    source: &[u8],
    db: &Rc<Db>,
    colour: bool,
    out: SharedOutput,
) -> Result<Script, Ended> {
    Script::load(name, source, Rc::clone(db), palette(colour), out)
}

fn palette(colour: bool) -> Palette {
    if colour { text::COLORS } else { Palette::default() }
}

/// Lists captures one after another; what the GPU remembers, the next capture begins with.
pub struct Listing<'d> {
    args: Arguments,
    palette: Palette,
    player: Player<'d>,
    generation: Option<Generation>,
    carry: Carry<'d>,
    files: ShaderFiles,
    /// The registers asked for, once it is known of which GPU.
    query: Option<Query>,
    script: Option<Script>,
    /// What comes before the first packet belongs to no chosen draw. Counts as the last packet of the capture before did.
    muted: bool,
}

impl<'d> Listing<'d> {
    /// A listing with nothing known yet, that holds no more than about `max_alive` bytes of buffers.
    pub fn new(args: Arguments, colour: bool, db: &'d Db, max_alive: u64) -> Listing<'d> {
        let palette = palette(colour);
        let choice = Choice {
            submits: args.start..=args.end,
            exe: args.exe.clone(),
            compositors: args.show_compositor,
            one_gpu: true,
        };
        let muted = !matches!(args.draw, -1 | 0);
        let player = Player::new(choice, db, max_alive);
        let files = ShaderFiles::new(Path::new(""));
        Listing {
            args,
            palette,
            player,
            generation: None,
            carry: Carry::default(),
            files,
            query: None,
            script: None,
            muted,
        }
    }

    /// The same, for captures that need not be of one GPU.
    pub fn with_any_gpus(mut self) -> Self {
        self.player.follow_gpus();
        self
    }

    /// The same, with a script that looks on. It writes where the listing goes.
    pub fn with_script(mut self, script: Option<Script>) -> Self {
        self.script = script;
        self
    }

    /// The script wants no more captures.
    pub fn script_ended(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.over())
    }

    /// There are no more captures.
    pub fn finish(self) -> Result<(), Ended> {
        self.script.map_or(Ok(()), Script::finish)
    }

    /// Lists a capture that messages and the text call `name`; each submit at once if the capture may come slowly.
    /// Returns what was lost and left out.
    pub fn run(
        &mut self,
        name: &str,
        capture: impl Read,
        slow: bool,
        out: &mut dyn Write,
    ) -> Vec<Diagnostic> {
        let mut text = Text::new(out, LENGTH);
        if let Some(query) = &self.query {
            told_queries(&self.args, query, &mut text);
        }
        if !self.args.unit_test {
            text.str("Reading ").str(name).str("...").end();
        }
        let quiet = self.script.is_some() || !self.args.query.is_empty();
        text.mute(!quiet && self.muted);
        text.hand_on_all();
        let Listing { args, palette, player, generation, carry, files, query, script, muted } = self;
        let (palette, script, lost) = (*palette, script.as_ref(), Vec::new());
        let mut lister =
            Lister { args, palette, generation, carry, files, query, script, quiet, text, slow, lost };
        script.inspect(|script| script.start_cmdstream(name));
        let mut diagnostics = player.play(capture, &mut lister);
        let Lister { mut text, lost, .. } = lister;
        *muted = text.mute(false);
        text.hand_on_all();
        script.inspect(|script| script.end_cmdstream());
        diagnostics.extend(lost);
        text.finish();
        if text.ended() == Some(End::TooLong) {
            let message = "the listing is too long for a capture of this size: the rest is not shown";
            diagnostics.push(Diagnostic::loss(None, message));
        }
        diagnostics
    }
}

/// Which registers the words of the command line stand for.
fn told_queries(args: &Arguments, query: &Query, text: &mut Text<'_>) {
    for (word, &register) in args.query.iter().zip(&query.registers) {
        text.str("querystr: ").bytes(word.as_encoded_bytes()).str(" -> 0x").hex(register.into(), 1).end();
    }
}

/// Lists one capture.
struct Lister<'l, 'o, 'd> {
    args: &'l Arguments,
    palette: Palette,
    generation: &'l mut Option<Generation>,
    carry: &'l mut Carry<'d>,
    files: &'l mut ShaderFiles,
    query: &'l mut Option<Query>,
    script: Option<&'l Script>,
    /// Only queries, scripts, and what cffdump prints whatever it is asked for.
    quiet: bool,
    text: Text<'o>,
    slow: bool,
    lost: Vec<Diagnostic>,
}

impl<'d> Consumer<'d> for Lister<'_, '_, 'd> {
    fn begin(&mut self) {
        self.carry.variants = Variants::default();
        self.carry.forget_shown();
        self.script.inspect(|script| script.reset());
    }

    fn section(&mut self, section: &Section<'_>, step: Step) {
        let allowed = section.span.len().saturating_mul(LENGTH_PER_BYTE);
        self.text.allow(allowed);
        self.files.allow(allowed);
        let what = match section.kind {
            // Its text is lost with the rest of it.
            _ if section.is_cut() => return,
            SectionKind::Test => "test: ",
            SectionKind::VertexShader => "vertex shader:\n",
            SectionKind::FragmentShader => "fragment shader:\n",
            SectionKind::Cmd => "cmd: ",
            _ => {
                if step == Step::Forgotten {
                    self.carry.forget_shown();
                }
                return;
            }
        };
        let wanted = match section.kind {
            SectionKind::Test => matches!(self.args.draw, -1 | 0),
            _ => false,
        };
        if wanted || !self.quiet {
            self.text.str(what).bytes(section.text()).end();
        }
    }

    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        match identity {
            _ if self.quiet => {}
            Identity::GpuId(gpu_id) => self.text.str("gpu_id: ").dec(gpu_id.into()).end(),
            Identity::ChipId(chip_id) => self.text.str("chip_id: 0x").hex(chip_id.0, 1).end(),
        }
        let Some(gpu) = gpu else { return };
        let generation = gpu.generation();
        if self.generation.replace(generation).is_some_and(|before| before != generation) {
            *self.carry = Carry::default();
        }
        self.script.inspect(|script| script.identified(generation));
        self.begin();
        if !self.args.query.is_empty() {
            self.resolve(gpu);
        }
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let submit = submission.submit;
        if self.quiet {
            if !submission.hidden {
                self.list(submission);
            }
            if self.slow {
                self.text.finish();
            }
            return;
        }
        self.text.str(RULE).end();
        self.text.str("cmdstream[").dec(submit.number.into()).str("]: ").int(i64::from(submit.dwords as i32));
        self.text.str(" dwords").end();
        if !submission.hidden {
            self.list(submission);
        }
        self.text.str(RULE).end();
        self.text.str("vertices: 0").end();
        if self.slow {
            self.text.finish();
        }
    }

    fn done(&self) -> bool {
        self.text.ended().is_some() || self.script.is_some_and(|script| script.over())
    }
}

impl<'d> Lister<'_, '_, 'd> {
    /// Looks the registers asked for up.
    fn resolve(&mut self, gpu: Gpu<'d>) {
        let register = |word: &std::ffi::OsString| {
            let found = word.to_str().and_then(|word| text::register(gpu, word));
            if found.is_none() {
                let (word, generation) = (word.display(), gpu.generation());
                let message = format!("{generation} has no register {word}: it is not shown");
                self.lost.push(Diagnostic::loss(None, message));
            }
            found.unwrap_or(0)
        };
        let registers = self.args.query.iter().map(register).collect();
        let query = Query::new(gpu, registers, self.args.query_mode, self.args.query_compare);
        told_queries(self.args, &query, &mut self.text);
        *self.query = Some(query);
    }

    fn list(&mut self, submission: Submission<'_, 'd>) {
        self.text.hand_on_all();
        self.script.inspect(|script| script.start_submit(submission.live.memory()));
        self.walk(submission);
        self.text.hand_on_all();
        self.script.inspect(|script| script.end_submit());
    }

    fn walk(&mut self, submission: Submission<'_, 'd>) {
        let mut walk = match submission.open() {
            Ok(walk) => walk,
            Err(Absent::Gpu) => return,
            Err(Absent::Stream) => {
                let muted = self.text.mute(false);
                self.text.str("NULL cmd buffer!").end();
                self.text.mute(muted);
                return;
            }
        };
        let options = text::Options {
            summary: self.args.summary,
            allregs: self.args.allregs,
            markers: self.args.markers,
            once: self.args.once,
            ambles: false,
            stats: true,
            textures: self.args.textures,
            bindless: self.args.bindless,
            draw: (self.args.draw != -1).then_some(self.args.draw),
            palette: self.palette,
        };
        let carry = std::mem::take(self.carry);
        let marker = Marker::new([Target::default(); 4]);
        let mut listing = CffText::new(&mut self.text, walk.gpu, walk.memory, options, marker, carry);
        let files = &mut *self.files;
        let mut file = |extension: &str, code: Dwords<'_>| files.write(extension, code);
        if self.args.dump_shaders {
            listing.shaders_to(&mut file);
        }
        if self.quiet {
            let query = self.query.as_ref();
            walk.compare = query.is_some_and(|query| query.compare);
            listing = listing.quiet(Quiet { query, watch: self.script.map(|script| script as &dyn Watch) });
        }
        walk.run(&mut listing);
        let (carry, lost) = listing.finish();
        *self.carry = carry;
        if let Some(trouble) = self.files.trouble() {
            walk.tell(Severity::Loss, format!("a shader could not be written to {trouble}"));
        }
        for (iova, dwords) in lost.missing {
            walk.tell(Severity::Note, format!("could not find: {iova:016x} ({dwords})"));
        }
        if lost.too_deep > 0 {
            let message = format!("{} buffers inside too many others are not shown", lost.too_deep);
            walk.tell(Severity::Loss, message);
        }
        if lost.budget_spent {
            let message = "the command stream is too long, or its buffers call each other too often: the rest of \
                           the submit is not shown";
            walk.tell(Severity::Loss, message.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_capture::rd::{Range, Writer};
    use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};

    /// A submit that calls a buffer, which calls itself.
    fn capture(gpu_id: u32) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        writer.section(SectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
        writer.section(SectionKind::Cmd, b"game/1\0").unwrap();
        let called = indirect_buffer(0x1000, 9);
        let inner = [pkt4(0x8c17, &[7]), called.clone(), pkt7(0x46, &[0x31]), pkt7(0x26, &[])].concat();
        for (iova, words) in [(0x1000, inner), (0x2000, called)] {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            writer.range(SectionKind::GpuAddr, Range { iova, size: bytes.len() as u32 }, true).unwrap();
            writer.section(SectionKind::BufferContents, &bytes).unwrap();
        }
        writer.range(SectionKind::CmdStreamAddr, Range { iova: 0x2000, size: 4 }, true).unwrap();
        writer.into_inner()
    }

    #[test]
    fn broken_captures_are_listed_as_far_as_they_go() {
        let db = Db::builtin();
        for gpu_id in [201, 330, 430, 530, 630, 740] {
            let whole = capture(gpu_id);
            let mut listing = Listing::new(Arguments::default(), false, &db, 1 << 20);
            let mut seed = u64::from(gpu_id);
            for round in 0..400 {
                let mut bytes = whole.clone();
                for _ in 0..1 + round % 4 {
                    seed =
                        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = (seed >> 33) as usize % bytes.len();
                    bytes[at] ^= 1 << (seed >> 60 & 7);
                }
                bytes.truncate(if round % 3 == 0 {
                    (seed >> 20) as usize % bytes.len()
                } else {
                    bytes.len()
                });
                let mut out = Vec::new();
                listing.run("x", &bytes[..], false, &mut out);
                assert!(out.len() < 1 << 20, "{} bytes of text", out.len());
            }
        }
    }

    #[test]
    fn the_first_gpu_of_a_capture_is_that_of_all() {
        let db = Db::builtin();
        let one = capture(630);
        let listed = |bytes: &[u8]| {
            let mut out = Vec::new();
            Listing::new(Arguments::default(), false, &db, 1 << 20).run("x", bytes, false, &mut out);
            String::from_utf8(out).unwrap()
        };
        let (alone, mixed) = (listed(&one), listed(&[one.clone(), capture(740)].concat()));
        assert_eq!(mixed.matches("gpu_id:").count(), 1);
        let register = |text: &str| text.lines().find(|l| l.contains("(8c17)")).map(str::to_owned);
        let (_, second) = mixed.split_at(alone.len());
        assert!(register(&alone).is_some());
        assert_eq!(register(second), register(&alone));
    }

    #[test]
    fn the_draw_of_the_last_packet_counts_for_the_next_capture() {
        let db = Db::builtin();
        // A draw, and a packet behind it.
        let words = [pkt7(0x38, &[4, 1, 3]), pkt4(0x8c17, &[7])].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut writer = Writer::new(Vec::new());
        writer.section(SectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer.range(SectionKind::GpuAddr, Range { iova: 0x1000, size: bytes.len() as u32 }, true).unwrap();
        writer.section(SectionKind::BufferContents, &bytes).unwrap();
        let stream = Range { iova: 0x1000, size: words.len() as u32 };
        writer.range(SectionKind::CmdStreamAddr, stream, true).unwrap();
        let capture = writer.into_inner();
        let args = |draw| Arguments { draw, ..Arguments::default() };
        for (draw, headings) in [(0, [true, false]), (1, [false, true]), (-1, [true, true])] {
            let mut listing = Listing::new(args(draw), false, &db, 1 << 20);
            let found = [(); 2].map(|()| {
                let mut out = Vec::new();
                listing.run("x", &capture[..], false, &mut out);
                String::from_utf8(out).unwrap().contains("gpu_id: 630")
            });
            assert_eq!(found, headings, "-D {draw}");
        }
    }

    #[test]
    fn a_claimed_size_costs_nothing() {
        let db = Db::builtin();
        let mut writer = Writer::new(Vec::new());
        writer.section(SectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer.range(SectionKind::GpuAddr, Range { iova: 0x1000, size: u32::MAX }, true).unwrap();
        writer.section(SectionKind::BufferContents, &0x7026_8000_u32.to_le_bytes()).unwrap();
        writer.range(SectionKind::CmdStreamAddr, Range { iova: 0x1000, size: u32::MAX }, true).unwrap();
        let mut out = Vec::new();
        let mut listing = Listing::new(Arguments::default(), false, &db, 1 << 20);
        let told = listing.run("x", &writer.into_inner()[..], false, &mut out);
        assert!(told.iter().any(|d| d.message.contains("longer than its buffer")), "{told:?}");
    }
}
