//! Instrumentation: captures with flushes, waits, stomped registers, other shaders, without some draws, or with a crash at one.
//!
//! Each option is an edit of [`rewrite`](crate::rewrite); all of them can be combined. Draws have the numbers that listings give them. Never:
//! executes.

mod dump;
mod packets;
mod shader;
mod stomp;

pub(crate) use packets::operation;

pub use dump::{DumpAfter, MemoryCopy};
pub use shader::ShaderReplacement;
pub(crate) use shader::gpu_id as shader_gpu_id;
pub use stomp::{Stomp, StompPoint, UNSAFE_REGISTERS, UnsafeRegister, unsafe_registers};

use crate::rewrite::{PacketChange, PacketEdit, RewriteError, SetEdit, StreamEditor, StreamPacket};
use dump::DumpPlan;
use shader::ShaderReferences;
use std::num::NonZeroU32;
use stomp::StompPlan;
use unwedge_hw::Gpu;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoState};
use unwedge_stream::cut::Numbers;

/// What a stream has in the place of a packet header to crash: it is not one on any generation.
const CRASH: u32 = 0xdead_beef;
/// Bytes that events write time stamps to.
const STAMPS: u64 = 0x1000;

/// What is done to a capture.
#[derive(Clone, Debug, Default)]
pub struct Instrumentation {
    /// Registers are filled with ones.
    pub stomp: Option<Stomp>,
    /// Caches are written back, dropped and waited for before and after each draw, dispatch, blit and working event.
    pub flush_all: bool,
    /// These draws, dispatches, blits and working events are CP_NOP.
    pub nop: Option<Numbers>,
    /// The GPU crashes at this one.
    pub crash_at: Option<u32>,
    /// CP_WAIT_FOR_IDLE after each so many of them.
    pub wait_every: Option<NonZeroU32>,
    /// Shaders are others.
    pub shaders: Vec<ShaderReplacement>,
    /// Memory is copied.
    pub dumps: Vec<DumpAfter>,
}

/// Why a capture is not instrumented.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstrumentError {
    /// Errors in a shader's assembly, one a line.
    #[error("{0}")]
    Assembly(String),
    /// A shader's memory is not in the capture.
    #[error("the capture does not hold the code of the shader at {0:#x}")]
    ShaderMemory(u64),
    /// The generation has no such packets.
    #[error("{what} is not known for {gpu}")]
    Generation {
        /// What was asked for.
        what: &'static str,
        /// `a4xx`
        gpu: String,
    },
}

impl From<InstrumentError> for RewriteError {
    fn from(error: InstrumentError) -> RewriteError {
        RewriteError::Edit(error.to_string())
    }
}

/// An editor that instruments.
#[derive(Debug)]
pub struct Instrumenter<'i> {
    options: &'i Instrumentation,
    stamps: Option<u64>,
    flush: Vec<u32>,
    wait: Vec<u32>,
    stomp: StompPlan,
    shaders: ShaderReferences,
    dump: DumpPlan,
    copies: Vec<MemoryCopy>,
    /// By index of the replacement, the sets where it was made, and where the shader is in the last of them.
    replaced: Vec<(u64, Option<u64>)>,
    works: u32,
}

impl<'i> Instrumenter<'i> {
    /// An editor for one capture.
    pub fn new(options: &'i Instrumentation) -> Instrumenter<'i> {
        Instrumenter {
            options,
            stamps: None,
            flush: Vec::new(),
            wait: Vec::new(),
            stomp: StompPlan::default(),
            shaders: ShaderReferences::default(),
            dump: DumpPlan::default(),
            copies: Vec::new(),
            replaced: vec![(0, None); options.shaders.len()],
            works: 0,
        }
    }

    /// The copies that the capture makes when it is executed.
    pub fn copies(&self) -> &[MemoryCopy] {
        &self.copies
    }

    /// Draws, dispatches, blits and working events that were met.
    pub fn works(&self) -> u32 {
        self.works
    }

    /// Draws of [`Instrumentation::dumps`] whose attachments are in GMEM, and not copied.
    pub fn in_gmem(&self) -> &[u32] {
        &self.dump.in_gmem
    }

    /// For each of [`Instrumentation::shaders`], in how many sets it was put in place, and where it is in the last of them.
    pub fn replaced(&self) -> &[(u64, Option<u64>)] {
        &self.replaced
    }

    fn prepare(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        let gpu = set.gpu();
        let unknown = |what| InstrumentError::Generation { what, gpu: gpu.generation().to_string() };
        if self.options.flush_all || !self.options.dumps.is_empty() {
            let stamps = match self.stamps {
                Some(stamps) => stamps,
                None => *self.stamps.insert(set.reserve(STAMPS)?),
            };
            set.add_buffer_at(stamps, Vec::new(), STAMPS)?;
            self.flush = packets::flush(gpu, stamps).ok_or_else(|| unknown("flushing all caches"))?;
        }
        if self.options.wait_every.is_some() {
            self.wait = packets::wait_for_idle(gpu).ok_or_else(|| unknown("waiting for idle"))?;
        }
        Ok(())
    }
}

impl StreamEditor for Instrumenter<'_> {
    fn watch(&mut self, gpu: Gpu<'_>, submit: u32, state: &AdrenoState, event: &AdrenoEvent<'_>) {
        if let Some(stomp) = &self.options.stomp {
            self.stomp.choose(stomp, gpu);
            self.stomp.watch(gpu, submit, state, event);
        }
        if !self.options.shaders.is_empty() {
            self.shaders.watch(gpu, event);
        }
        if let AdrenoEvent::Draw(draw) = event {
            self.works = self.works.max(draw.number.saturating_add(1));
            self.dump.watch(&self.options.dumps, gpu, state, event);
        }
    }

    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        self.prepare(set)?;
        for (replacement, (sets, place)) in self.options.shaders.iter().zip(&mut self.replaced) {
            if let Some(moved) = self.shaders.replace(replacement, set)? {
                *sets += 1;
                *place = Some(moved);
            }
        }
        self.copies.extend(self.dump.place(set, &self.flush)?);
        Ok(())
    }

    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        let mut edit = PacketEdit::insert_before(self.stomp.before(packet.iova).to_vec());
        if !packet.works.is_empty() {
            self.edit_work(packet, &mut edit);
        }
        edit.after.extend_from_slice(self.dump.after(packet.iova));
        edit.after.extend_from_slice(self.stomp.after(packet.iova));
        edit
    }

    fn end_set(&mut self) {
        self.stomp.clear();
        self.shaders.clear();
        self.dump.clear();
    }
}

impl Instrumenter<'_> {
    fn edit_work(&self, packet: &StreamPacket<'_>, edit: &mut PacketEdit) {
        let is = |wanted: u32| packet.works.contains(&wanted);
        if self.options.crash_at.is_some_and(is) {
            edit.packet = PacketChange::Replace([&[CRASH], packet.payload()].concat());
        } else if self
            .options
            .nop
            .as_ref()
            .is_some_and(|nop| packet.works.iter().any(|work| nop.contain(*work)))
        {
            edit.packet = PacketChange::Nop;
            return;
        }
        if self.options.flush_all {
            edit.before.extend_from_slice(&self.flush);
            edit.after.extend_from_slice(&self.flush);
        }
        if let Some(every) = self.options.wait_every
            && packet.works.iter().any(|work| work.wrapping_add(1).is_multiple_of(every.get()))
        {
            edit.after.extend_from_slice(&self.wait);
        }
    }
}
