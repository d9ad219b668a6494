//! The listing of a command stream as freedreno's tools print it: a consumer of the walker's events.
//!
//! Serves `crashdec` and, over captures, `cffdump`. Never: walking, files, deciding what is executed. The layout of the
//! lines follows what cffdump and crashdec of Mesa 25.0 print, so that scripts made for them keep working.

mod bindless;
mod descriptors;
mod disasm;
mod hex;
mod known;
mod marker;
mod names;
mod out;
mod packets;
mod query;
mod quiet;
mod registers;
mod shown;
mod summary;

pub use disasm::{Shader, disassemble};
pub use hex::hex_ascii;
pub use marker::{MarkTarget, Marker};
pub use out::{TextEnd, TextOut};
pub use query::{Query, QueryMode, register};
pub use quiet::{Quiet, Watch};
pub use registers::{Pair, RegisterPrinter};

use bindless::BaseRegisters;
use known::{KnownLayout, KnownRegisters};
use std::borrow::Cow;
use std::collections::HashMap;
use unwedge_base::{Dwords, Generation, Memory};
use unwedge_hw::{Domain, Gpu, Palette, RegEnum, RegSpace, Registers, Variants};
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, DrawStateGroup, Flow, NestedStream,
    Packet, RegWrite, Trouble, TroubleKind, mode,
};

/// The colours of freedreno's tools.
pub const COLORS: Palette = Palette {
    reset: "\x1b[0m",
    name: "\x1b[0;32m",
    number: "\x1b[0;33m",
    value: "\x1b[0;35m",
    flag: "\x1b[0;36m",
    packet: "\x1b[0;1;35m",
    error: "\x1b[0;1;31m",
};

/// What to show.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListingOptions {
    /// Leave single register writes out; show registers at draws only.
    pub summary: bool,
    /// Show all registers at each draw, not only those written since the draw before.
    pub allregs: bool,
    /// Show the payload of CP_NOP as text.
    pub markers: bool,
    /// Show a buffer that is called several times only once for each mode.
    pub once: bool,
    /// Show the buffers that CP_SET_AMBLE sets, which freedreno's tools leave out.
    pub ambles: bool,
    /// Show what each shader costs.
    pub stats: bool,
    /// Show the memory that texture and buffer descriptors point at.
    pub textures: bool,
    /// Show the descriptor sets that the bindless base registers point at, before each draw and dispatch.
    pub bindless: bool,
    /// Show only what belongs to the draw of this number.
    pub draw: Option<i32>,
    /// The escape sequences to use.
    pub palette: Palette,
}

impl ListingOptions {
    fn color(&self) -> bool {
        !self.palette.reset.is_empty()
    }
}

/// What could not be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Buffers that the stream refers to and the dump does not hold: address and dwords.
    pub missing: Vec<(u64, u64)>,
    /// Streams inside too many others.
    pub too_deep: u64,
    /// The streams are so long, or call each other so often, that the rest was left out.
    pub budget_spent: bool,
}

/// Missing buffers remembered one by one.
const MISSING_KEPT: usize = 64;

/// Takes the code of a shader, and how cffdump's files of such shaders end (`vo3`, …).
pub type TakeShader<'t> = &'t mut dyn FnMut(&'static str, Dwords<'_>);

/// Prints the events of a walk.
pub struct CffText<'t, 'o, 'd> {
    text: &'t mut TextOut<'o>,
    gpu: Gpu<'d>,
    memory: &'t Memory,
    options: ListingOptions,
    /// Where the command processor stopped.
    marker: Marker,
    layouts: Box<Layouts<'d>>,
    known: Box<KnownRegisters<'d>>,
    bases: BaseRegisters,
    streams: Vec<OpenStream>,
    carry: Carry<'d>,
    /// Draws shown at each IB level, since the stream of that level began.
    draws: [u32; LEVELS],
    /// The current packet belongs to a draw that is not the chosen one, or no packet is shown. What the tools print of it all the same is said
    /// [`aloud`](CffText::aloud).
    quiet: bool,
    shaders: Option<TakeShader<'t>>,
    lost: Lost,
    /// Show only what this asks for, and what the tools print all the same.
    only: Option<Quiet<'t>>,
    /// Writes of registers count, too, for that.
    hears_writes: bool,
}

/// What a listing remembers from one stream to the next.
#[derive(Default)]
pub struct Carry<'d> {
    /// What selector fields have chosen so far; they keep their choice from packet to packet.
    pub variants: Variants,
    /// A write to a register needs a CP_WAIT_FOR_IDLE first (a2xx, a3xx).
    needs_wfi: bool,
    /// Name of the render mode or marker, or its number.
    render_mode: Option<Cow<'d, str>>,
    thread: Option<&'d str>,
    skip_ib2_global: bool,
    skip_ib2_local: bool,
    /// Nesting of the scopes that Turnip marks with CP_NOP.
    scopes: i64,
    /// The low half of an address whose high half is a register of its own (a5xx).
    address_low: u32,
    /// Buffers that have been shown.
    shown: shown::ShownTexts,
    /// Layouts and registers, looked up once for all streams.
    looked_up: Option<(Box<Layouts<'d>>, Box<KnownRegisters<'d>>)>,
}

impl Carry<'_> {
    /// Other buffers may now lie where those were that have been shown.
    pub fn forget_shown(&mut self) {
        self.shown.clear();
    }
}

/// IB levels that can be told apart.
const LEVELS: usize = 5;

/// A stream being listed.
struct OpenStream {
    /// Nesting of the listing.
    level: usize,
    /// The current packet.
    op: AdrenoOp,
    /// It is a plain register write.
    plain: bool,
    /// Where it lies.
    iova: Option<u64>,
    /// Joins the halves of 64-bit registers that the current packet writes.
    pair: Pair,
    /// Whether the current packet is shown has been settled: by the groups it loads, which come before it.
    settled: bool,
    /// The scratch registers as they were before what the packet writes now, for packets that show them so.
    scratch: Option<[u32; 4]>,
}

impl OpenStream {
    fn at(level: usize) -> OpenStream {
        OpenStream {
            level,
            op: AdrenoOp::None,
            plain: true,
            iova: None,
            pair: Pair::default(),
            settled: false,
            scratch: None,
        }
    }
}

/// Dwords of memory, which may begin inside one of its own.
struct Read<'t> {
    words: Cow<'t, [u32]>,
    len: usize,
}

impl Read<'_> {
    fn dwords(&self) -> Dwords<'_> {
        Dwords::new(&self.words, self.len)
    }
}

/// Packet layouts and enums, looked up once.
struct Layouts<'d> {
    packets: Vec<(Option<&'d str>, Option<KnownLayout<'d>>)>,
    /// Of descriptors, by name.
    others: HashMap<&'d str, KnownLayout<'d>>,
    events: Option<RegEnum<'d>>,
    primitives: Option<RegEnum<'d>>,
    sources: Option<RegEnum<'d>>,
    tex_samp: Option<Domain<'d>>,
    tex_const: Option<Domain<'d>>,
    ubo: Option<Domain<'d>>,
    ssbo: [Option<Domain<'d>>; 3],
}

impl<'d> Layouts<'d> {
    fn new(gpu: Gpu<'d>) -> Layouts<'d> {
        let packet = |opcode: u8| {
            let name = gpu.packet_name(opcode);
            let layout = name.and_then(|name| match name {
                "CP_LOAD_STATE6_GEOM" | "CP_LOAD_STATE6_FRAG" => gpu.domain("CP_LOAD_STATE6"),
                _ => gpu.domain(name),
            });
            (name, layout.map(KnownLayout::new))
        };
        let [tex_samp, tex_const, ubo, ssbo0, ssbo1, ssbo2] = match gpu.generation() {
            Generation::A2xx => [""; 6],
            Generation::A3xx => ["A3XX_TEX_SAMP", "A3XX_TEX_CONST", "", "", "", ""],
            Generation::A4xx => ["A4XX_TEX_SAMP", "A4XX_TEX_CONST", "", "A4XX_SSBO_0", "A4XX_SSBO_1", ""],
            Generation::A5xx => {
                ["A5XX_TEX_SAMP", "A5XX_TEX_CONST", "A5XX_UBO", "A5XX_SSBO_0", "A5XX_SSBO_1", "A5XX_SSBO_2"]
            }
            Generation::A6xx | Generation::A7xx => {
                ["A6XX_TEX_SAMP", "A6XX_TEX_CONST", "A6XX_UBO", "A6XX_TEX_CONST", "", ""]
            }
        }
        .map(|name| gpu.domain(name));
        Layouts {
            packets: (0..=u8::MAX).map(packet).collect(),
            others: HashMap::new(),
            events: gpu.enumeration("vgt_event_type"),
            primitives: gpu.enumeration("pc_di_primtype"),
            sources: gpu.enumeration("pc_di_src_sel"),
            tex_samp,
            tex_const,
            ubo,
            ssbo: [ssbo0, ssbo1, ssbo2],
        }
    }
}

impl<'t, 'o, 'd> CffText<'t, 'o, 'd> {
    /// A listing of streams whose buffers are in `memory`, with a mark where `marker` says.
    pub fn new(
        text: &'t mut TextOut<'o>,
        gpu: Gpu<'d>,
        memory: &'t Memory,
        options: ListingOptions,
        marker: Marker,
        mut carry: Carry<'d>,
    ) -> CffText<'t, 'o, 'd> {
        text.listings.forget_places();
        let looked_up = carry.looked_up.take().filter(|(_, known)| known.fits(gpu, &options.palette));
        let (layouts, known) = looked_up.unwrap_or_else(|| {
            (Box::new(Layouts::new(gpu)), Box::new(KnownRegisters::new(gpu, options.palette)))
        });
        CffText {
            text,
            gpu,
            memory,
            options,
            marker,
            layouts,
            known,
            bases: if options.bindless { BaseRegisters::new(gpu) } else { BaseRegisters::default() },
            streams: vec![OpenStream::at(0)],
            carry,
            draws: [0; LEVELS],
            quiet: false,
            shaders: None,
            lost: Lost::default(),
            only: None,
            hears_writes: false,
        }
    }

    /// Hands the shaders that are shown to `take` too.
    pub fn shaders_to(&mut self, take: TakeShader<'t>) {
        self.shaders = Some(take);
    }

    /// What the listing of the next stream needs, and what could not be shown.
    pub fn finish(mut self) -> (Carry<'d>, Lost) {
        if self.only.is_some() {
            self.text.mute(false);
        }
        self.carry.looked_up = Some((self.layouts, self.known));
        (self.carry, self.lost)
    }

    fn level(&self) -> usize {
        self.streams.last().map_or(0, |s| s.level)
    }

    fn space(&self) -> Registers<'d> {
        self.gpu.space(RegSpace::Gpu)
    }

    fn is_64bit(&self) -> bool {
        self.gpu.generation().is_64bit()
    }

    /// Text that the tools print whatever draw is chosen.
    fn aloud<T>(&mut self, say: impl FnOnce(&mut Self) -> T) -> T {
        self.text.mute(false);
        let said = say(self);
        self.text.mute(self.quiet);
        said
    }

    fn hex(&mut self, dwords: Dwords<'_>, iova: Option<u64>, level: usize) {
        if self.quiet {
            return;
        }
        let highlight =
            self.marker.reached(iova.unwrap_or(0), dwords.len() as u64, self.text, self.options.color());
        hex::rows(self.text, dwords, iova, level, self.is_64bit(), highlight);
    }

    /// The dwords at an address, if the dump holds them: at most `n`.
    fn hex_at(&mut self, iova: u64, n: usize, level: usize) {
        if let Some(read) = self.read_at(iova, n) {
            self.hex(read.dwords().take(n), Some(iova), level);
        }
    }

    /// At most `n` dwords from any byte on.
    fn read_at(&self, iova: u64, n: usize) -> Option<Read<'t>> {
        let dwords = self.memory_at(iova)?;
        let shift = (iova & 3) as u32 * 8;
        if shift == 0 {
            return Some(Read { words: dwords.take(n).stored().into(), len: dwords.len().min(n) });
        }
        let stored = dwords.take(n.saturating_add(1)).stored();
        let above = stored.iter().skip(1).copied().chain([0]);
        let words = stored.iter().zip(above).map(|(low, high)| low >> shift | high << (32 - shift));
        Some(Read { words: words.take(n).collect(), len: dwords.len().min(n) })
    }

    fn memory_at(&self, iova: u64) -> Option<Dwords<'t>> {
        if iova == 0 { None } else { self.memory.dwords(iova) }
    }

    /// The payload's layout, one line per field group.
    fn layout(&mut self, layout: Domain<'d>, dwords: Dwords<'_>, level: usize) {
        if let Some(only) = self.only {
            self.tell(only, layout, dwords);
        }
        if self.quiet {
            return;
        }
        let Carry { variants, .. } = &mut self.carry;
        let known = self.layouts.others.entry(layout.name()).or_insert_with(|| KnownLayout::new(layout));
        known.write(dwords, level, &self.options.palette, variants, self.text);
    }

    /// The buffer has been shown in all modes that are on.
    fn repeated(&mut self, state: &AdrenoState, stream: &NestedStream<'_>) -> bool {
        // A comparison looks at each draw once, whatever the mode.
        let compare = self.only.and_then(|only| only.query).is_some_and(|query| query.compare);
        if !(self.options.once || compare) || !matches!(stream.kind, AdrenoStreamKind::Indirect) {
            return false;
        }
        let Some(buffer) = stream.iova.and_then(|iova| self.memory.find(iova)) else { return false };
        let offset = stream.iova.unwrap_or(0).wrapping_sub(buffer.iova);
        let modes = if compare { mode::ALL } else { state.modes() };
        self.carry.shown.again(buffer.iova, offset, modes)
    }

    /// Shows what belongs to the chosen draw only: packets that begin when so many draws have been.
    fn choose(&mut self, state: &AdrenoState) {
        let settled = self.streams.last_mut().is_some_and(|s| std::mem::replace(&mut s.settled, true));
        if let Some(draw) = self.options.draw.filter(|_| !settled) {
            self.quiet = i64::from(draw) != i64::from(state.draws);
            self.text.mute(self.quiet);
        }
    }

    /// The stream is not walked: it has been shown, or the tools show it only where they show its packet.
    fn skipped(&mut self, state: &AdrenoState, stream: &NestedStream<'_>) -> bool {
        match stream.kind {
            AdrenoStreamKind::Amble => !self.options.ambles,
            AdrenoStreamKind::Mode | AdrenoStreamKind::Embedded => self.quiet,
            _ => self.repeated(state, stream),
        }
    }

    fn enter(&mut self, stream: &NestedStream<'_>) {
        let level = self.level();
        let deeper = match stream.kind {
            AdrenoStreamKind::Indirect => self.call(stream),
            AdrenoStreamKind::Bin { index } => self.iteration("bin ", index, stream, level),
            AdrenoStreamKind::DrawTable { index } => self.iteration("draw ", index, stream, level),
            AdrenoStreamKind::Group { .. } => {
                self.hex(stream.dwords, stream.iova, level + 2);
                self.marker.descend();
                2
            }
            AdrenoStreamKind::Mode => {
                self.marker.descend();
                2
            }
            AdrenoStreamKind::Amble | AdrenoStreamKind::Embedded => 2,
        };
        if let Some(draws) = self.draws.get_mut(self.marker.level()) {
            *draws = 0;
        }
        self.streams.push(OpenStream::at(level + deeper));
    }

    /// A buffer that the hardware counts as an IB; returns how much deeper its listing is.
    fn call(&mut self, stream: &NestedStream<'_>) -> usize {
        self.marker.descend();
        self.marker.stream(stream.iova.unwrap_or(0), stream.claimed);
        1
    }

    /// One of several buffers that a packet runs in turn.
    fn iteration(&mut self, what: &str, index: u32, stream: &NestedStream<'_>, level: usize) -> usize {
        if !self.options.summary {
            self.text.level(level + 1).str(what).dec(u64::from(index)).end();
        }
        self.call(stream)
    }

    fn leave(&mut self, stream: &NestedStream<'_>) {
        if self.streams.len() > 1 {
            self.streams.pop();
        }
        match stream.kind {
            AdrenoStreamKind::Amble | AdrenoStreamKind::Embedded => {}
            AdrenoStreamKind::Mode => {
                self.marker.ascend();
                self.hex(stream.dwords, stream.iova, self.level() + 2);
            }
            _ => self.marker.ascend(),
        }
    }

    fn group(&mut self, group: &DrawStateGroup) {
        if group.set.count == 0 {
            return;
        }
        let level = self.level() + 1;
        let set = &group.set;
        self.text.level(level).str("group_id: ").dec(u64::from(group.id)).end();
        self.text.level(level).str("count: ").dec(u64::from(set.count)).end();
        self.text.level(level).str("addr: ").hex(set.iova, 16).end();
        self.text.level(level).str("flags: ").hex(u64::from(set.flags), 1).end();
        if self.gpu.generation() >= Generation::A6xx {
            self.text.level(level).str("enable_mask: 0x").hex(u64::from(set.enable_mask), 1).end();
            if !group.loaded {
                self.text.level(level).str("\tskipped!\n").end();
            }
        }
    }

    fn packet(&mut self, state: &AdrenoState, packet: &Packet<'_>) {
        let level = self.level();
        let plain = !matches!(packet.header, AdrenoPacketHeader::Operation { .. });
        let scratch = self.scratch_before(state, packet.op);
        if let Some(open) = self.streams.last_mut() {
            *open = OpenStream {
                level,
                op: packet.op,
                plain,
                iova: packet.place.iova,
                pair: Pair::default(),
                settled: true,
                scratch,
            };
        }
        match packet.header {
            AdrenoPacketHeader::Registers { reg, .. } if !self.options.summary => {
                self.text.level(level + 1).str("write ");
                self.known.write_name(reg, self.text);
                self.text.str(" (").hex(u64::from(reg), 4).str(")").end();
            }
            AdrenoPacketHeader::Registers { .. } => {}
            AdrenoPacketHeader::Padding if !self.options.summary => {
                self.text.level(level + 1).str("nop").end()
            }
            AdrenoPacketHeader::Padding => {}
            AdrenoPacketHeader::Operation { opcode, count } => {
                let (name, layout) = match self.layouts.packets.get_mut(usize::from(opcode)) {
                    Some((name, layout)) => (*name, layout.as_mut()),
                    None => (None, None),
                };
                let palette = &self.options.palette;
                self.text.byte(b'\t').level(level).str("opcode: ").str(palette.packet);
                self.text
                    .str(name.unwrap_or("(null)"))
                    .str(palette.reset)
                    .str(" (")
                    .hex(u64::from(opcode), 2);
                self.text.str(") (").dec(u64::from(count) + 1).str(" dwords)").end();
                if let Some(layout) = layout.filter(|_| !self.quiet) {
                    layout.write(packet.payload, level + 2, palette, &mut self.carry.variants, self.text);
                }
                self.operation(state, packet, level + 1);
            }
        }
    }

    fn packet_end(&mut self, packet: &Packet<'_>) {
        let shown = match packet.header {
            AdrenoPacketHeader::Registers { .. } => !self.options.summary,
            AdrenoPacketHeader::Operation { .. } => true,
            AdrenoPacketHeader::Padding => false,
        };
        if shown {
            self.hex(packet.dwords, packet.place.iova, self.level() + 1);
        }
        if let Some(open) = self.streams.last_mut() {
            (open.op, open.plain, open.settled) = (AdrenoOp::None, true, false);
        }
    }

    fn trouble(&mut self, trouble: &Trouble) {
        match trouble.kind {
            TroubleKind::BadHeader { raw, .. } => self.text.str("bad type! ").hex(u64::from(raw), 8).end(),
            TroubleKind::CutPacket { claimed, present } => {
                let missing = u64::from(claimed.saturating_sub(present));
                self.text.str("**** this ain't right!! dwords_left=-").dec(missing).end();
            }
            TroubleKind::RecursiveGroups => {
                self.text
                    .str("ERROR: nothing in draw state should trigger recursively loading groups!")
                    .end();
            }
            TroubleKind::TooDeep => self.lost.too_deep += 1,
            TroubleKind::BudgetSpent => self.lost.budget_spent = true,
            _ => {}
        }
    }

    fn missing(&mut self, stream: &NestedStream<'_>) {
        let told = matches!(
            stream.kind,
            AdrenoStreamKind::Indirect | AdrenoStreamKind::Bin { .. } | AdrenoStreamKind::DrawTable { .. }
        );
        if told && self.lost.missing.len() < MISSING_KEPT {
            self.lost.missing.push((stream.iova.unwrap_or(0), stream.claimed));
        }
    }
}

impl AdrenoSink for CffText<'_, '_, '_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if let Some(only) = self.only {
            // Most events are these, and most queries do not care.
            let heard = match event {
                AdrenoEvent::RegWrite(_) => self.hears_writes,
                AdrenoEvent::PacketEnd(_) | AdrenoEvent::Group(_) => false,
                _ => true,
            };
            return if heard { self.quiet_event(only, state, event) } else { Flow::Continue };
        }
        self.listed(state, event)
    }
}

impl CffText<'_, '_, '_> {
    fn listed(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if self.text.ended().is_some() {
            return Flow::Skip;
        }
        match event {
            AdrenoEvent::Enter(stream) if self.skipped(state, stream) => return Flow::Skip,
            AdrenoEvent::Packet(packet) => {
                self.choose(state);
                self.packet(state, packet);
            }
            AdrenoEvent::PacketEnd(packet) => self.packet_end(packet),
            AdrenoEvent::RegWrite(RegWrite { reg, value, .. }) => self.write(state, *reg, *value),
            AdrenoEvent::Enter(stream) => self.enter(stream),
            AdrenoEvent::Leave(stream) => self.leave(stream),
            AdrenoEvent::Missing(stream) => self.missing(stream),
            AdrenoEvent::Group(group) => {
                self.choose(state);
                self.group(group);
            }
            AdrenoEvent::LoadState(load) => self.load_state(load),
            AdrenoEvent::Draw(draw) => self.draw(state, draw),
            AdrenoEvent::Trouble(trouble) => {
                if matches!(trouble.kind, TroubleKind::BadHeader { .. }) {
                    self.choose(state);
                    if let Some(open) = self.streams.last_mut() {
                        open.settled = false;
                    }
                }
                self.aloud(|this| this.trouble(trouble));
            }
        }
        Flow::Continue
    }
}
