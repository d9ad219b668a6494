//! CP_EVENT_WRITE: events, and what is written when they are over.
//!
//! Work is done before its event. What events write goes to memory past all caches.

use super::{CpStop, Executed};
use crate::adreno::machine::{AdrenoMachine, WorkUnit};
use crate::adreno::space::Client;
use unwedge_base::Generation;
use unwedge_stream::adreno::AdrenoOp;

/// Events that do more than mark a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Statistics of stream-out are written.
    WritePrimitiveCounts,
    /// The offset of a stream-out buffer is written.
    FlushSo(u32),
    /// The number of samples that passed is written.
    ZpassDone,
    /// GMEM is loaded, stored or cleared.
    Blit,
    /// The buffer of LRZ is cleared.
    LrzClear,
    /// Statistics of geometry are counted, or no longer.
    CountGeometry(bool),
    /// Statistics of fragments are.
    CountFragments(bool),
    /// The others.
    Other,
}

impl Event {
    /// By its name in `vgt_event_type`.
    pub(crate) fn of_name(name: &str) -> Event {
        match name {
            "WRITE_PRIMITIVE_COUNTS" => Event::WritePrimitiveCounts,
            "FLUSH_SO_0" => Event::FlushSo(0),
            "FLUSH_SO_1" => Event::FlushSo(1),
            "FLUSH_SO_2" => Event::FlushSo(2),
            "FLUSH_SO_3" => Event::FlushSo(3),
            "ZPASS_DONE" => Event::ZpassDone,
            "START_PRIMITIVE_CTRS" => Event::CountGeometry(true),
            "STOP_PRIMITIVE_CTRS" => Event::CountGeometry(false),
            "START_FRAGMENT_CTRS" => Event::CountFragments(true),
            "STOP_FRAGMENT_CTRS" => Event::CountFragments(false),
            "BLIT" | "CCU_RESOLVE" => Event::Blit,
            "LRZ_CLEAR" => Event::LrzClear,
            _ => Event::Other,
        }
    }
}

impl AdrenoMachine<'_> {
    pub(super) fn event(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        if self.event_ahead(packet)? {
            return Ok(());
        }
        let word = packet.arg(0)?;
        // BV may go on while work of BR does not end.
        let stuck = self.working.filter(|_| self.ahead.is_some());
        self.working = stuck.or(Some(WorkUnit::Event((word & 0x7f) as u8)));
        self.execute_event(packet, word)?;
        self.working = stuck;
        self.mark_work(packet.thread, false);
        Ok(())
    }

    fn execute_event(&mut self, packet: &Executed<'_>, word: u32) -> Result<(), CpStop> {
        let wide = packet.op == AdrenoOp::EventWrite7;
        self.space.cache_event(self.cache_event_of((word & 0xff) as u8));
        match self.event_of((word & 0xff) as u8) {
            Event::WritePrimitiveCounts => {
                let iova = self.register_pair(packet.thread, self.places.stream_counts);
                let counts = self.counters.streams.iter().flat_map(|count| [count.written, count.generated]);
                for (n, count) in (0..).zip(counts.collect::<Vec<u64>>()) {
                    self.space.write(iova.saturating_add(8 * n), 8, count, Client::Cp)?;
                }
            }
            Event::FlushSo(n) => {
                let iova = self.register_pair(packet.thread, self.places.stream_flush[n as usize]);
                let offset = self.places.stream_offset[n as usize]
                    .map_or(0, |reg| self.read_register(packet.thread, reg));
                // a6xx writes dwords, a7xx bytes.
                let unit = if self.generation >= Generation::A7xx { 1 } else { 4 };
                self.write_dword(iova, offset / unit)?;
            }
            Event::ZpassDone => return self.sample_count(packet, wide),
            Event::Blit => {
                self.audit_work(packet.thread, packet.op, 0);
                self.resolve_event(packet.thread, packet.iova)?;
            }
            Event::LrzClear => self.clear_lrz(packet.thread),
            Event::CountGeometry(runs) => self.counters.geometry_runs = runs,
            Event::CountFragments(runs) => self.counters.fragments_run = runs,
            Event::Other => {}
        }
        if word >> 31 != 0 {
            self.interrupts += 1;
        }
        match wide {
            true => self.event_write7(packet, word),
            // Only events that are time stamps carry an address.
            false if packet.payload.len() >= 4 => Ok(self.write_dword(packet.arg64(1)?, packet.arg(3)?)?),
            false => Ok(()),
        }
    }

    fn event_write7(&mut self, packet: &Executed<'_>, word: u32) -> Result<(), CpStop> {
        self.clocks.bv_count += word >> 16 & 1;
        self.clocks.br_count += word >> 17 & 1;
        if word >> 27 & 1 == 0 {
            return Ok(());
        }
        let (value, size) = match word >> 20 & 7 {
            0 => (packet.arg(3)?.into(), 4),
            1 => (packet.arg64(3)?, 8),
            2 => (self.clocks.global.wrapping_add(self.clocks.local).into(), 4),
            3 => (self.always_on(), 8),
            _ => {
                let reg = packet.arg(3)? & 0x3_ffff;
                (self.read_register(packet.thread, reg).into(), 4)
            }
        };
        if word >> 24 & 1 == 0 {
            return Ok(self.space.write(packet.arg64(1)?, size, value, Client::Cp)?);
        }
        let at = packet.arg(1)? as usize;
        let words = [value as u32, (value >> 32) as u32];
        for (slot, word) in self.on_chip.iter_mut().skip(at).zip(&words[..size / 4]) {
            *slot = *word;
        }
        Ok(())
    }

    /// ZPASS_DONE: samples that passed so far.
    fn sample_count(&mut self, packet: &Executed<'_>, wide: bool) -> Result<(), CpStop> {
        const COUNT: u32 = 1 << 12;
        const END: u32 = 1 << 13;
        const ACCUMULATE: u32 = 1 << 14;
        let samples = self.counters.samples;
        let word = packet.arg(0)?;
        if !wide || word & (COUNT | END | ACCUMULATE) == 0 {
            let iova = self.register_pair(packet.thread, self.places.sample_count);
            return Ok(self.space.write(iova, 8, samples, Client::Cp)?);
        }
        let slot = packet.arg64(1)?;
        let (result, end) = (slot.saturating_add(8), slot.saturating_add(16));
        self.space.write(if word & END != 0 { end } else { slot }, 8, samples, Client::Cp)?;
        if word & ACCUMULATE != 0 {
            let [first, sum, last] = [slot, result, end].map(|iova| self.space.read(iova, 8, Client::Cp));
            let sum = sum?.wrapping_add(last?.wrapping_sub(first?));
            self.space.write(result, 8, sum, Client::Cp)?;
        }
        Ok(())
    }
}
