//! What the walk over a dump's lines knows so far, for everything that lists a part of the dump. Never: which section is next.

use super::{CrashdecOptions, DumpNotes};
use crate::listing::{COLORS, Carry, Pair, TextOut};
use unwedge_base::{Buffer, ChipId, Diagnostic, Generation, Memory, Span};
use unwedge_capture::msm::lines::MsmSection;
use unwedge_hw::adreno::hfi::HISTORY;
use unwedge_hw::{AdrenoDevice, Db, Gpu, Palette};
use unwedge_stream::adreno::Registers;

/// A ring, as `ringbuffer:` says.
#[derive(Clone, Debug, Default)]
pub struct CrashdecRing {
    pub id: u32,
    pub iova: u64,
    /// Dwords.
    pub rptr: u32,
    /// Dwords.
    pub wptr: u32,
    /// Bytes.
    pub size: u32,
}

/// Zeros at the ends of buffers that verbose listings show, in dwords over the whole dump. Dumps do not store them, so
/// that nothing but a claimed size says how many there are.
const ZEROS_SHOWN: u64 = 16 << 20;

/// Command streams that one listing may show.
const STREAMS: u32 = 4;

/// Times that a listing goes on to other sections after buffers. Dumps have one section of rings and one of buffers.
const BUFFER_RUNS: u32 = 32;

/// A dump being listed.
pub struct SectionsWalk<'r, 'o, 'd> {
    pub(super) text: &'r mut TextOut<'o>,
    pub(super) options: CrashdecOptions,
    pub(super) palette: Palette,
    pub(super) db: &'d Db,
    /// The GPU that the dump is taken to be of, whatever it says itself.
    pub(super) taken_as: Option<(u32, ChipId)>,
    pub(super) chip: Option<Chip<'d>>,
    /// Buffers with contents, up to the current section.
    pub(super) memory: Memory,
    /// Those of the current section.
    pub(super) buffers: Vec<Buffer>,
    pub(super) buffer_runs_left: u32,
    /// Dwords that command streams may still have; `None` before the first.
    pub(super) budget: Option<u64>,
    pub(super) rings: Vec<CrashdecRing>,
    /// Values of `registers:`; nothing counts as written by a packet.
    pub(super) registers: Registers,
    /// What listings of command streams leave behind; also what selector fields have chosen.
    pub(super) carry: Carry<'d>,
    pub(super) fault: Option<u64>,
    pub(super) entry: OpenSection,
    pub(super) zeros_left: u64,
    /// Command streams that may still be shown: one per revision, as dumps may be put together.
    pub(super) streams_left: u32,
    pub(super) stream_due: bool,
    pub(super) said: DumpNotes,
}

/// The GPU, as far as the dump says.
#[derive(Clone, Copy)]
pub struct Chip<'d> {
    pub(super) gpu: Gpu<'d>,
    pub(super) device: Option<AdrenoDevice<'d>>,
    pub(super) gpu_id: u32,
}

impl Chip<'_> {
    pub(super) fn generation(&self) -> Generation {
        self.gpu.generation()
    }
}

/// What the lines of the current section have said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenSection {
    pub(super) section: Option<MsmSection>,
    pub(super) iova: u64,
    /// Bytes of a buffer, dwords of anything else.
    pub(super) size: u64,
    pub(super) name: String,
    pub(super) pair: Pair,
    pub(super) history: Vec<[i32; HISTORY]>,
}

impl<'r, 'o, 'd> SectionsWalk<'r, 'o, 'd> {
    pub fn new(
        text: &'r mut TextOut<'o>,
        options: &CrashdecOptions,
        db: &'d Db,
        taken_as: Option<(u32, ChipId)>,
        said: DumpNotes,
    ) -> SectionsWalk<'r, 'o, 'd> {
        SectionsWalk {
            text,
            options: *options,
            palette: if options.color { COLORS } else { Palette::default() },
            db,
            taken_as,
            chip: None,
            memory: Memory::default(),
            buffers: Vec::new(),
            buffer_runs_left: BUFFER_RUNS,
            budget: None,
            rings: Vec::new(),
            registers: Registers::new(0),
            carry: Carry::default(),
            fault: None,
            entry: OpenSection::default(),
            zeros_left: ZEROS_SHOWN,
            streams_left: STREAMS,
            stream_due: false,
            said,
        }
    }

    pub(super) fn loss(&mut self, span: Option<Span>, message: impl Into<String>) {
        self.said.say(Diagnostic::loss(span, message));
    }

    pub(super) fn note(&mut self, message: String) {
        self.said.say(Diagnostic::note(None, message));
    }
}
