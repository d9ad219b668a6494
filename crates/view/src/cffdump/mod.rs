//! `unwedge cffdump`: an rd capture as text, with the options and the lines of Mesa's cffdump.
//!
//! Lists each submit's command stream as a capture is played. Never: files, scripts, what a packet means. Where cffdump stops or crashes (a cut capture, a device it does not know) this goes on and says
//! so. The layout of the lines follows what cffdump of Mesa 25.0 prints.

use crate::listing::{
    self, Carry, CffText, MarkTarget, Marker, Query, QueryMode, Quiet, TextEnd, TextOut, Watch,
};
use crate::plural::counted;
use std::ffi::OsString;
use std::io::{Read, Write};
use unwedge_base::{Diagnostic, Dwords, Generation, Memory, Severity};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu, Palette, Variants};
use unwedge_stream::play::{Absent, Consumer, Identity, Player, Submission, SubmitChoice};

/// Longest listing of a capture: so many bytes, and so many more per byte of the capture so far. Buffers are shown for
/// each tile they run for.
pub const LENGTH: u64 = 256 << 20;
/// See [`LENGTH`].
pub const LENGTH_PER_BYTE: u64 = 1 << 10;

const RULE: &str = "############################################################";

/// What to list of captures, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CffdumpOptions {
    /// The first submit to show.
    pub start: i32,
    /// The last one.
    pub end: i32,
    /// The draw to show; -1 for all.
    pub draw: i32,
    /// Show only processes whose names begin so.
    pub exe: Option<OsString>,
    /// Show window systems too.
    pub show_compositor: bool,
    /// Registers at draws only.
    pub summary: bool,
    /// All registers at each draw.
    pub allregs: bool,
    /// Show a buffer that runs several times once for each mode.
    pub once: bool,
    /// Leave out what differs from run to run.
    pub unit_test: bool,
    /// CP_NOP payloads as markers; not an option of cffdump's.
    pub markers: bool,
    /// Contents of textures.
    pub textures: bool,
    /// Contents of bindless descriptors.
    pub bindless: bool,
    /// Registers to show at draws, instead of everything; by name or number.
    pub query: Vec<OsString>,
    /// At which draws.
    pub query_mode: QueryMode,
    /// Show queried registers of binning beside those of the passes that draw.
    pub query_compare: bool,
}

impl Default for CffdumpOptions {
    fn default() -> CffdumpOptions {
        CffdumpOptions {
            start: 0,
            end: 0x7ff_ffff,
            draw: -1,
            exe: None,
            show_compositor: false,
            summary: false,
            allregs: false,
            once: false,
            unit_test: false,
            markers: false,
            textures: false,
            bindless: false,
            query: Vec::new(),
            query_mode: QueryMode::All,
            query_compare: false,
        }
    }
}

/// A script that looks on while captures are listed: what runs it implements this. It writes where the listing goes.
pub trait Script: Watch {
    /// A capture begins.
    fn start_cmdstream(&self, name: &str);
    /// The GPU is known.
    fn identified(&self, generation: Generation);
    /// What the registers held counts as never written.
    fn reset(&self);
    /// A submit begins.
    fn start_submit(&self, memory: &Memory);
    /// A submit ends.
    fn end_submit(&self);
    /// A capture ends.
    fn end_cmdstream(&self);
}

/// Takes the code of each shader that is shown.
pub trait ShaderFiles {
    /// So many bytes more may be kept: each draw may show the same shaders, with all that follows them in their buffer.
    fn allow(&mut self, bytes: u64);
    /// Keeps a shader, under a name that ends in `extension`.
    fn write(&mut self, extension: &str, code: Dwords<'_>);
    /// Why one could not be kept since this was asked last.
    fn trouble(&mut self) -> Option<String>;
}

fn palette(colour: bool) -> Palette {
    if colour { listing::COLORS } else { Palette::default() }
}

/// Lists captures one after another; what the GPU remembers, the next capture begins with.
pub struct Listing<'d> {
    options: CffdumpOptions,
    palette: Palette,
    player: Player<'d>,
    generation: Option<Generation>,
    carry: Carry<'d>,
    shaders: Option<Box<dyn ShaderFiles + 'd>>,
    /// The registers asked for, once it is known of which GPU.
    query: Option<Query>,
    script: Option<&'d dyn Script>,
    /// What comes before the first packet belongs to no chosen draw. Counts as the last packet of the capture before did.
    muted: bool,
}

impl<'d> Listing<'d> {
    /// A listing with nothing known yet, that holds no more than about `max_alive` bytes of buffers.
    pub fn new(options: CffdumpOptions, colour: bool, db: &'d Db, max_alive: u64) -> Listing<'d> {
        let palette = palette(colour);
        let choice = SubmitChoice {
            submits: options.start..=options.end,
            exe: options.exe.clone(),
            compositors: options.show_compositor,
            one_gpu: true,
        };
        let muted = !matches!(options.draw, -1 | 0);
        let player = Player::new(choice, db, max_alive);
        Listing {
            options,
            palette,
            player,
            generation: None,
            carry: Carry::default(),
            shaders: None,
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

    /// The same, for a listing that is complete even where a capture submits a command stream that it does not hold, as
    /// cffdump sees it.
    pub fn with_absent_streams_as_notes(mut self) -> Self {
        self.player.tolerate_absent_streams();
        self
    }

    /// The same, with a script that looks on. It writes where the listing goes.
    pub fn with_script(mut self, script: Option<&'d dyn Script>) -> Self {
        self.script = script;
        self
    }

    /// The same, with something that takes the code of the shaders that are shown.
    pub fn with_shaders(mut self, shaders: Option<Box<dyn ShaderFiles + 'd>>) -> Self {
        self.shaders = shaders;
        self
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
        let mut text = TextOut::new(out, LENGTH);
        if let Some(query) = &self.query {
            print_queries(&self.options, query, &mut text);
        }
        if !self.options.unit_test {
            text.str("Reading ").str(name).str("...").end();
        }
        let quiet = self.script.is_some() || !self.options.query.is_empty();
        text.mute(!quiet && self.muted);
        text.hand_on_all();
        let Listing { options, palette, player, generation, carry, shaders, query, script, muted } = self;
        let (palette, script, lost) = (*palette, *script, Vec::new());
        let mut lister =
            Lister { options, palette, generation, carry, shaders, query, script, quiet, text, slow, lost };
        script.inspect(|script| script.start_cmdstream(name));
        let mut diagnostics = player.play(capture, &mut lister);
        let Lister { mut text, lost, .. } = lister;
        *muted = text.mute(false);
        text.hand_on_all();
        script.inspect(|script| script.end_cmdstream());
        diagnostics.extend(lost);
        text.finish();
        if text.ended() == Some(TextEnd::TooLong) {
            let message = "the listing is too long for a capture of this size: the rest is not shown";
            diagnostics.push(Diagnostic::loss(None, message));
        }
        diagnostics
    }
}

/// Which registers the words of the command line stand for.
fn print_queries(options: &CffdumpOptions, query: &Query, text: &mut TextOut<'_>) {
    for (word, &register) in options.query.iter().zip(&query.registers) {
        text.str("querystr: ").bytes(word.as_encoded_bytes()).str(" -> 0x").hex(register.into(), 1).end();
    }
}

/// Lists one capture.
struct Lister<'l, 'o, 'd> {
    options: &'l CffdumpOptions,
    palette: Palette,
    generation: &'l mut Option<Generation>,
    carry: &'l mut Carry<'d>,
    shaders: &'l mut Option<Box<dyn ShaderFiles + 'd>>,
    query: &'l mut Option<Query>,
    script: Option<&'l dyn Script>,
    /// Only queries, scripts, and what cffdump prints whatever it is asked for.
    quiet: bool,
    text: TextOut<'o>,
    slow: bool,
    lost: Vec<Diagnostic>,
}

impl<'d> Consumer<'d> for Lister<'_, '_, 'd> {
    fn begin(&mut self) {
        self.carry.variants = Variants::default();
        self.carry.forget_shown();
        self.script.inspect(|script| script.reset());
    }

    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        let allowed = section.span.len().saturating_mul(LENGTH_PER_BYTE);
        self.text.allow(allowed);
        if let Some(shaders) = self.shaders {
            shaders.allow(allowed);
        }
        let what = match section.kind {
            // Its text is lost with the rest of it.
            _ if section.is_cut() => return,
            RdSectionKind::Test => "test: ",
            RdSectionKind::VertexShader => "vertex shader:\n",
            RdSectionKind::FragmentShader => "fragment shader:\n",
            RdSectionKind::Cmd => "cmd: ",
            _ => {
                if step == LiveStep::Forgotten {
                    self.carry.forget_shown();
                }
                return;
            }
        };
        let wanted = match section.kind {
            RdSectionKind::Test => matches!(self.options.draw, -1 | 0),
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
        if !self.options.query.is_empty() {
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
        let register = |word: &OsString| {
            let found = word.to_str().and_then(|word| listing::register(gpu, word));
            if found.is_none() {
                let (word, generation) = (word.display(), gpu.generation());
                let message = format!("{generation} has no register {word}: it is not shown");
                self.lost.push(Diagnostic::loss(None, message));
            }
            found.unwrap_or(0)
        };
        let registers = self.options.query.iter().map(register).collect();
        let query = Query::new(gpu, registers, self.options.query_mode, self.options.query_compare);
        print_queries(self.options, &query, &mut self.text);
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
        let options = listing::ListingOptions {
            summary: self.options.summary,
            allregs: self.options.allregs,
            markers: self.options.markers,
            once: self.options.once,
            ambles: false,
            stats: true,
            textures: self.options.textures,
            bindless: self.options.bindless,
            draw: (self.options.draw != -1).then_some(self.options.draw),
            palette: self.palette,
        };
        let carry = std::mem::take(self.carry);
        let marker = Marker::new([MarkTarget::default(); 4]);
        let mut listing = CffText::new(&mut self.text, walk.gpu, walk.memory, options, marker, carry);
        let shaders = &mut *self.shaders;
        let wanted = shaders.is_some();
        let mut file = |extension: &str, code: Dwords<'_>| {
            if let Some(shaders) = shaders {
                shaders.write(extension, code);
            }
        };
        if wanted {
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
        if let Some(trouble) = self.shaders.as_mut().and_then(|shaders| shaders.trouble()) {
            walk.tell(Severity::Loss, format!("a shader could not be written to {trouble}"));
        }
        for (iova, dwords) in lost.missing {
            walk.tell(Severity::Note, format!("could not find: {iova:016x} ({dwords})"));
        }
        if lost.too_deep > 0 {
            let buffers = counted(lost.too_deep, "buffer", "buffers");
            let message = format!("{buffers} inside too many others: not shown");
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
    use unwedge_capture::rd::{MemoryRange, RdWriter};
    use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};

    /// A submit that calls a buffer, which calls itself.
    fn capture(gpu_id: u32) -> Vec<u8> {
        let mut writer = RdWriter::new(Vec::new());
        writer.section(RdSectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
        writer.section(RdSectionKind::Cmd, b"game/1\0").unwrap();
        let called = indirect_buffer(0x1000, 9);
        let inner = [pkt4(0x8c17, &[7]), called.clone(), pkt7(0x46, &[0x31]), pkt7(0x26, &[])].concat();
        for (iova, words) in [(0x1000, inner), (0x2000, called)] {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            writer
                .range(RdSectionKind::GpuAddr, MemoryRange { iova, size: bytes.len() as u32 }, true)
                .unwrap();
            writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
        }
        writer.range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: 0x2000, size: 4 }, true).unwrap();
        writer.into_inner()
    }

    #[test]
    fn broken_captures_are_listed_as_far_as_they_go() {
        let db = Db::builtin();
        for gpu_id in [201, 330, 430, 530, 630, 740] {
            let whole = capture(gpu_id);
            let mut listing = Listing::new(CffdumpOptions::default(), false, &db, 1 << 20);
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
            Listing::new(CffdumpOptions::default(), false, &db, 1 << 20).run("x", bytes, false, &mut out);
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
        let mut writer = RdWriter::new(Vec::new());
        writer.section(RdSectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer
            .range(RdSectionKind::GpuAddr, MemoryRange { iova: 0x1000, size: bytes.len() as u32 }, true)
            .unwrap();
        writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
        let stream = MemoryRange { iova: 0x1000, size: words.len() as u32 };
        writer.range(RdSectionKind::CmdStreamAddr, stream, true).unwrap();
        let capture = writer.into_inner();
        let options = |draw| CffdumpOptions { draw, ..CffdumpOptions::default() };
        for (draw, headings) in [(0, [true, false]), (1, [false, true]), (-1, [true, true])] {
            let mut listing = Listing::new(options(draw), false, &db, 1 << 20);
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
        let mut writer = RdWriter::new(Vec::new());
        writer.section(RdSectionKind::GpuId, &630_u32.to_le_bytes()).unwrap();
        writer.range(RdSectionKind::GpuAddr, MemoryRange { iova: 0x1000, size: u32::MAX }, true).unwrap();
        writer.section(RdSectionKind::BufferContents, &0x7026_8000_u32.to_le_bytes()).unwrap();
        writer
            .range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: 0x1000, size: u32::MAX }, true)
            .unwrap();
        let mut out = Vec::new();
        let mut listing = Listing::new(CffdumpOptions::default(), false, &db, 1 << 20);
        let told = listing.run("x", &writer.into_inner()[..], false, &mut out);
        assert!(told.iter().any(|d| d.message.contains("longer than its buffer")), "{told:?}");
    }
}
