//! Visibility streams: the binning pass writes which draws and primitives touch which bin, drawing passes skip the others.
//!
//! Facts: VSC registers and packets as Mesa's Turnip uses them. The encoding inside a stream is hardware's own and not
//! public; here it is as follows, in dwords. The draw stream of a pipe has one dword for each draw packet: a bit for each
//! slot of the pipe in which something of the draw may be visible. The primitive stream has, for each draw packet that is
//! visible in some slot, the number of primitives, then for each of those slots from the lowest on a bit for each
//! primitive, by its number in its instance. What does not fit below the limit is not written, and the sizes go past the
//! limit: from there on everything is visible.
//!
//! Never: what a visible primitive covers exactly.

use super::lrz::LrzState;
use super::pipeline::BINNING;
use super::raster::{self, Primitive, RasterState};
use super::registers::{DrawRegisters, DrawStage, Reg};
use crate::adreno::cp::{CpStop, Executed, ThreadId};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{AddressSpace, Client, GpuFault};
use std::collections::BTreeMap;
use unwedge_hw::Gpu;
use unwedge_stream::adreno::{AdrenoOp, mode};

/// Pipes of the VSC.
const PIPES: usize = 32;
/// Slots of a pipe.
const SLOTS: u32 = 32;
/// Bytes of a dword.
const DWORD: u64 = 4;
/// In place of a number of primitives: those of all draws from here on are visible.
const EVERY: u32 = u32::MAX;
/// Bytes that the primitives of a draw packet may take in a pipe, whatever the limit is.
const MOST_BYTES: u64 = 16 << 20;
/// Addresses of the streams, in registers (a6xx) or given by CP_SET_PSEUDO_REG (a7xx).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamAddress {
    Draws,
    Sizes,
    Primitives,
}

impl StreamAddress {
    /// By its number in `pseudo_reg`.
    pub(crate) fn of_pseudo_register(number: u32) -> Option<StreamAddress> {
        Some(match number {
            8 => StreamAddress::Draws,
            9 => StreamAddress::Sizes,
            10 => StreamAddress::Primitives,
            _ => return None,
        })
    }
}

/// Registers of the VSC, where the GPU has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VscPlaces {
    bin_size: u32,
    pipes: u32,
    state: u32,
    /// By [`StreamAddress`].
    addresses: [u32; 3],
    draw_pitch: u32,
    primitive_pitch: u32,
    draw_sizes: u32,
    primitive_sizes: u32,
}

impl VscPlaces {
    pub(crate) fn new(gpu: Gpu<'_>) -> Option<VscPlaces> {
        let reg = |name: &str| gpu.reg_offset(name);
        let state = reg("VSC_STATE[0].REG")?;
        Some(VscPlaces {
            bin_size: reg("VSC_BIN_SIZE")?,
            pipes: reg("VSC_PIPE_CONFIG[0].REG")?,
            state,
            addresses: [
                reg("VSC_DRAW_STRM_ADDRESS")?,
                reg("VSC_DRAW_STRM_SIZE_ADDRESS")?,
                reg("VSC_PRIM_STRM_ADDRESS")?,
            ],
            draw_pitch: reg("VSC_DRAW_STRM_PITCH")?,
            primitive_pitch: reg("VSC_PRIM_STRM_PITCH")?,
            // The tables name them for a6xx only. Turnip polls the same offsets on a7xx.
            draw_sizes: reg("VSC_DRAW_STRM_SIZE[0].REG").unwrap_or(state + 0x40),
            primitive_sizes: reg("VSC_PRIM_STRM_SIZE[0].REG").unwrap_or(state + 0x20),
        })
    }
}

/// The streams of a bin, as far as draws have read them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinStreams {
    slot: u32,
    draws: u64,
    size: u64,
    primitives: u64,
    /// Bytes that were read of each.
    draws_read: u64,
    primitives_read: u64,
    /// A stream went past its limit.
    draws_end: bool,
    primitives_end: bool,
}

impl BinStreams {
    /// Of a slot: addresses of the draw stream, of its size, and of the primitive stream.
    pub(crate) fn new(slot: u32, draws: u64, size: u64, primitives: u64) -> BinStreams {
        BinStreams {
            slot: slot % SLOTS,
            draws,
            size,
            primitives,
            draws_read: 0,
            primitives_read: 0,
            draws_end: false,
            primitives_end: false,
        }
    }

    /// What they hold for the next draw, and the streams after it.
    fn next(&self, space: &AddressSpace, limits: [u64; 2]) -> Result<(DrawVisibility, BinStreams), GpuFault> {
        let mut after = *self;
        let dword = |iova: u64| Ok::<u32, GpuFault>(space.read(iova, 4, Client::Cp)? as u32);
        if self.draws_end {
            return Ok((DrawVisibility::All, after));
        }
        let end = self.draws_read + DWORD;
        let size = u64::from(dword(self.size)?);
        if end > limits[0] && size > limits[0] {
            after.draws_end = true;
            return Ok((DrawVisibility::All, after));
        }
        // Past the end of the stream nothing is visible.
        if end > size {
            return Ok((DrawVisibility::Hidden, after));
        }
        let slots = dword(self.draws.wrapping_add(self.draws_read))?;
        after.draws_read = end;
        let shown = slots >> self.slot & 1 != 0;
        let all = if shown { DrawVisibility::All } else { DrawVisibility::Hidden };
        if slots == 0 || self.primitives_end {
            return Ok((all, after));
        }
        let header = self.primitives.wrapping_add(self.primitives_read);
        let count = match self.primitives_read + DWORD > limits[1] {
            true => EVERY,
            false => dword(header)?,
        };
        if count == EVERY {
            after.primitives_end = true;
            return Ok((all, after));
        }
        let bytes = DWORD * u64::from(count.div_ceil(32));
        let of_slots = |slots: u32| DWORD + bytes * u64::from(slots.count_ones());
        after.primitives_read += of_slots(slots);
        let bits = header.wrapping_add(of_slots(slots & ((1u32 << self.slot) - 1)));
        let mask = PrimitiveMask { bits, count, base: 0 };
        Ok((if shown { DrawVisibility::Primitives(mask) } else { DrawVisibility::Hidden }, after))
    }
}

/// What a stream says of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawVisibility {
    All,
    Hidden,
    Primitives(PrimitiveMask),
}

/// Bits of the primitives of a draw packet in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrimitiveMask {
    bits: u64,
    count: u32,
    /// Primitives of the draws of the packet that were executed.
    base: u32,
}

/// A pipe as the binning pass writes it.
#[derive(Clone, Copy, Debug, Default)]
struct Pipe {
    /// Bytes of its streams, and of what did not fit.
    draws: u64,
    primitives: u64,
    primitives_end: bool,
}

/// Where the bins of a pipe are.
#[derive(Clone, Copy, Debug)]
struct PipeBins {
    number: usize,
    /// First bin, and how many there are across and down.
    first: [u32; 2],
    count: [u32; 2],
}

/// Primitives of the draw packet in work that touch bins.
#[derive(Clone, Debug, Default)]
struct Record {
    pipes: Vec<PipeBins>,
    /// Pixels of a bin.
    bin_size: [u32; 2],
    /// Primitives of the draws of the packet that were executed.
    base: u32,
    /// Bits of primitives, by pipe and slot.
    bits: BTreeMap<(usize, u32), Vec<u32>>,
    /// Dwords of the bits of a slot at most.
    most: usize,
    /// There are more.
    cut: bool,
}

impl Record {
    fn touch(&mut self, [x, y]: [u32; 2], number: u32) {
        let at = self.base.saturating_add(number);
        for pipe in &self.pipes {
            let (Some(x), Some(y)) = (x.checked_sub(pipe.first[0]), y.checked_sub(pipe.first[1])) else {
                continue;
            };
            let slot = y.saturating_mul(pipe.count[0]).saturating_add(x);
            if x >= pipe.count[0] || y >= pipe.count[1] || slot >= SLOTS {
                continue;
            }
            let words = self.bits.entry((pipe.number, slot)).or_default();
            let word = at as usize / 32;
            if word >= self.most {
                self.cut = true;
                continue;
            }
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (at % 32);
        }
    }

    /// The slots of a pipe in which something is visible.
    fn slots(&self, pipe: usize) -> u32 {
        self.bits.range((pipe, 0)..=(pipe, SLOTS)).fold(0, |slots, ((_, slot), _)| slots | 1 << slot)
    }
}

/// The visibility streams that are written, and what the draw packet in work reads of others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visibility {
    pipes: [Pipe; PIPES],
    record: Option<Record>,
    mask: Option<PrimitiveMask>,
}

/// How the primitives of a draw reach their bins.
pub(super) struct BinningState {
    raster: RasterState,
    viewport_is_view: bool,
    layer_is_view: bool,
    lrz: Option<LrzState>,
}

impl AdrenoMachine<'_> {
    /// A binning pass begins: its streams are empty.
    pub(crate) fn begin_binning(&mut self) {
        self.visibility = Visibility::default();
        let Some(places) = self.vsc_places else { return };
        for pipe in 0..PIPES as u32 {
            for first in [places.state, places.draw_sizes, places.primitive_sizes] {
                self.threads_write(first + pipe, 0);
            }
        }
    }

    /// Whether draws of a thread are those of a binning pass. Of threads that execute the same packets BR takes it.
    pub(crate) fn bins_draws(&self, id: ThreadId) -> bool {
        let thread = self.thread(id);
        thread.marker == Some(BINNING) && (id == ThreadId::Br || thread.alone)
    }

    /// An address of a stream, as a thread was given it.
    pub(crate) fn stream_address(&self, id: ThreadId, address: StreamAddress) -> u64 {
        let given = self.thread(id).stream_addresses[address as usize];
        given.unwrap_or_else(|| {
            self.register_pair(id, self.vsc_places.map(|places| places.addresses[address as usize]))
        })
    }

    fn stream_limits(&self, id: ThreadId) -> [u64; 2] {
        let limit = |pitch: u32| u64::from(self.read_register(id, pitch + 1));
        self.vsc_places.map_or([0; 2], |places| [places.draw_pitch, places.primitive_pitch].map(limit))
    }

    /// What the streams of the bin say of a packet, and the streams after it. `None`: it does not ask.
    pub(crate) fn draw_visibility(
        &self,
        packet: &Executed<'_>,
    ) -> Result<Option<(DrawVisibility, BinStreams)>, CpStop> {
        let thread = self.thread(packet.thread);
        // BV only bins.
        let Some(streams) = thread.bin.filter(|_| packet.thread == ThreadId::Br) else { return Ok(None) };
        let asks = asks_for_visibility(packet)? && !thread.shows_all && thread.modes == mode::GMEM;
        match asks {
            true => Ok(Some(streams.next(&self.space, self.stream_limits(packet.thread))?)),
            false => Ok(None),
        }
    }

    /// A draw packet is about to be executed.
    pub(crate) fn begin_draw_packet(
        &mut self,
        packet: &Executed<'_>,
        visible: Option<DrawVisibility>,
    ) -> Result<(), CpStop> {
        let id = packet.thread;
        self.visibility.mask = match visible {
            Some(DrawVisibility::Primitives(mask)) => Some(mask),
            _ => None,
        };
        let records = self.bins_draws(id) && asks_for_visibility(packet)?;
        self.visibility.record = if records { self.new_record(id) } else { None };
        Ok(())
    }

    fn new_record(&self, id: ThreadId) -> Option<Record> {
        let places = self.vsc_places?;
        let size = self.read_register(id, places.bin_size);
        let bin_size = [32 * (size & 0xff), 16 * (size >> 8 & 0x1ff)];
        let pipes: Vec<PipeBins> = (0..PIPES)
            .filter_map(|number| {
                let word = self.read_register(id, places.pipes + number as u32);
                let count = [word >> 20 & 0x3f, word >> 26];
                let first = [word & 0x3ff, word >> 10 & 0x3ff];
                (count[0] != 0 && count[1] != 0).then_some(PipeBins { number, first, count })
            })
            .collect();
        let most = (self.stream_limits(id)[1].min(MOST_BYTES) / DWORD) as usize;
        let some = bin_size[0] != 0 && bin_size[1] != 0 && !pipes.is_empty();
        some.then(|| Record { pipes, bin_size, most, ..Record::default() })
    }

    /// A draw packet was executed: the binning pass writes what its primitives touched.
    pub(crate) fn end_draw_packet(&mut self, id: ThreadId) -> Result<(), CpStop> {
        self.visibility.mask = None;
        let (Some(record), Some(places)) = (self.visibility.record.take(), self.vsc_places) else {
            return Ok(());
        };
        for pipe in &record.pipes {
            self.write_record(id, &places, &record, pipe.number)?;
        }
        Ok(())
    }

    fn write_record(
        &mut self,
        id: ThreadId,
        places: &VscPlaces,
        record: &Record,
        number: usize,
    ) -> Result<(), CpStop> {
        let limits = self.stream_limits(id);
        let slots = record.slots(number);
        let mut pipe = self.visibility.pipes[number];
        let stream = |machine: &Self, address, pitch: u32| {
            let pitch = u64::from(machine.read_register(id, pitch));
            machine.stream_address(id, address).wrapping_add(pitch * number as u64)
        };
        let draws = stream(self, StreamAddress::Draws, places.draw_pitch);
        if pipe.draws + DWORD <= limits[0] {
            self.space.write(draws.wrapping_add(pipe.draws), 4, slots.into(), Client::Vsc)?;
        }
        pipe.draws += DWORD;
        if slots != 0 {
            let primitives = stream(self, StreamAddress::Primitives, places.primitive_pitch);
            self.write_primitives(record, number, &mut pipe, primitives, limits[1])?;
        }
        self.visibility.pipes[number] = pipe;
        let reg = number as u32;
        let state = self.read_register(id, places.state + reg) | slots;
        let size = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        self.threads_write(places.state + reg, state);
        self.threads_write(places.draw_sizes + reg, size(pipe.draws));
        self.threads_write(places.primitive_sizes + reg, size(pipe.primitives));
        let sizes = self.stream_address(id, StreamAddress::Sizes).wrapping_add(DWORD * number as u64);
        Ok(self.space.write(sizes, 4, size(pipe.draws).into(), Client::Vsc)?)
    }

    fn write_primitives(
        &mut self,
        record: &Record,
        number: usize,
        pipe: &mut Pipe,
        stream: u64,
        limit: u64,
    ) -> Result<(), CpStop> {
        let slots = record.bits.range((number, 0)..=(number, SLOTS));
        // Primitives after the last one that is visible are not counted.
        let words = slots.clone().map(|(_, words)| words.len()).max().unwrap_or(0);
        let bytes = DWORD + DWORD * words as u64 * slots.clone().count() as u64;
        let at = stream.wrapping_add(pipe.primitives);
        let header_fits = pipe.primitives + DWORD <= limit;
        let fits = !record.cut && !pipe.primitives_end && pipe.primitives + bytes <= limit;
        let count = if fits { 32 * words as u32 } else { EVERY };
        if header_fits && !pipe.primitives_end {
            self.space.write(at, 4, count.into(), Client::Vsc)?;
        }
        if fits {
            self.spend(bytes / DWORD)?;
            let rows = slots.flat_map(|(_, bits)| (0..words).map(|n| bits.get(n).copied().unwrap_or(0)));
            for (n, word) in (1..).zip(rows) {
                self.space.write(at.wrapping_add(DWORD * n), 4, word.into(), Client::Vsc)?;
            }
        }
        pipe.primitives_end |= !fits;
        // What does not fit takes the size past the limit, which drivers poll.
        pipe.primitives = (pipe.primitives + bytes).max(if fits { 0 } else { limit + DWORD });
        Ok(())
    }

    /// State for the bins of a draw's primitives, where it is to be recorded.
    pub(super) fn binning_state(&mut self, id: ThreadId, last: DrawStage) -> Option<BinningState> {
        self.visibility.record.as_ref()?;
        let samples = 1 << (DrawRegisters { machine: self, thread: id }.get(Reg::RasterSamples) & 3).min(2);
        let lrz = self.lrz_state(id, samples);
        let registers = DrawRegisters { machine: self, thread: id };
        let discards = registers.get(Reg::RasterControl) & 4 != 0;
        (!discards).then(|| BinningState {
            raster: super::fragment_state::raster_state_of(&registers, last),
            viewport_is_view: registers.get(Reg::Setup) >> 19 & 1 != 0,
            layer_is_view: registers.get(Reg::Setup) >> 18 & 1 != 0,
            lrz,
        })
    }

    /// Takes down the bins that a primitive may touch, by its layer and viewport, and its number in its instance.
    pub(super) fn bin_primitive(
        &mut self,
        primitive: &Primitive,
        [layer, viewport]: [u32; 2],
        number: u32,
        view: u32,
        state: &BinningState,
    ) -> Result<(), CpStop> {
        let Some(mut record) = self.visibility.record.take() else { return Ok(()) };
        let layer = if state.layer_is_view { view } else { layer };
        let viewport = if state.viewport_is_view { view } else { viewport } as usize;
        let size = record.bin_size;
        let mut touch = |bin| record.touch(bin, number);
        let looked = raster::bins(&state.raster, viewport, primitive, size, &mut touch);
        self.visibility.record = Some(record);
        if let Some(lrz) = &state.lrz {
            self.write_lrz(lrz, &state.raster, viewport, layer, primitive)?;
        }
        self.spend(1 + looked)
    }

    /// Whether the stream of the bin leaves a primitive out, by its number in its instance.
    pub(super) fn hides_primitive(&self, number: u32) -> Result<bool, CpStop> {
        let Some(mask) = self.visibility.mask else { return Ok(false) };
        let at = mask.base.saturating_add(number);
        if at >= mask.count {
            return Ok(true);
        }
        let word = self.space.read(mask.bits.wrapping_add(DWORD * u64::from(at / 32)), 4, Client::Vsc)?;
        Ok(word >> (at % 32) & 1 == 0)
    }

    /// A draw of a packet had so many primitives in each instance.
    pub(super) fn count_primitives(&mut self, count: u32) {
        let Visibility { record, mask, .. } = &mut self.visibility;
        let bases =
            [record.as_mut().map(|record| &mut record.base), mask.as_mut().map(|mask| &mut mask.base)];
        bases.into_iter().flatten().for_each(|base| *base = base.saturating_add(count));
    }
}

/// Whether the initiator of a draw packet asks for the streams.
fn asks_for_visibility(packet: &Executed<'_>) -> Result<bool, CpStop> {
    const USE_VISIBILITY: u32 = 1;
    let draws = matches!(
        packet.op,
        AdrenoOp::DrawIndxOffset
            | AdrenoOp::DrawIndirect
            | AdrenoOp::DrawIndxIndirect
            | AdrenoOp::DrawIndirectMulti
            | AdrenoOp::DrawAuto
    );
    Ok(draws && packet.arg(0)? >> 8 & 3 == USE_VISIBILITY)
}
