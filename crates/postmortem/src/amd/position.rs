//! Where the command processor stopped: in which ring, buffer and packet.
//!
//! Three things tell, each alone only so much: the read pointer of the ring, the registers with the buffer that is being
//! fetched, and the headers that the micro engines saw last. Where they agree the place is likely.
//!
//! # Folklore
//! - The read pointer is where fetching got to: what is executed stands in front of it.
//! - Before Linux 7.1 rings are read when somebody reads the dump: pointers and contents are of after the reset.
//! - `CP_*_HEADER_DUMP` are FIFOs of the last eight headers; kernels list them eight times. In which order, nothing says:
//!   the order that fits the stream counts.

use super::case::{AmdCase, AmdRing, Reg};
use super::evidence::evidence;
use super::headers;
use super::stream::{Called, Walked};
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, HangPoint, LevelPosition, Trust};
use unwedge_capture::amdgpu::BankOwner;
use unwedge_stream::amd::{Engine, reduce};

/// Where it stopped.
pub(super) struct AmdStop {
    pub(super) point: HangPoint,
    pub(super) evidence: Vec<Evidence>,
    /// Index of the packet in [`Walked::packets`], where one is found.
    pub(super) at: Option<usize>,
    /// That packet was found by its header.
    pub(super) pinned: bool,
    /// Everything in the ring was fetched.
    pub(super) drained: bool,
    /// Nothing but the name of the ring is known.
    pub(super) bare: bool,
}

/// The buffer that registers say is being fetched.
struct Fetch {
    base: u64,
    /// Dwords from `base` on that are executed, where a register tells.
    read: Option<u64>,
    evidence: Vec<Evidence>,
}

/// Finds it.
pub(super) fn locate(case: &AmdCase<'_>, walked: &Walked) -> Option<AmdStop> {
    let ring = case.hung_ring();
    let name = case.hung.as_ref().map(|hung| hung.ring).or(ring.map(|ring| ring.name))?;
    let mut seen: Vec<Evidence> = case.hung.iter().map(|hung| hung.evidence.clone()).collect();
    let engine = case.engine();

    let pointers = ring.map(|ring| Pointers::of(ring));
    if let (Some(ring), Some(pointers)) = (ring, &pointers) {
        seen.extend(pointers.evidence(ring));
    }
    let drained = pointers.as_ref().is_some_and(|p| p.drained);
    let fetch = engine.and_then(|engine| fetched(case, engine, name));
    let buffer = fetch.as_ref().and_then(|fetch| find_buffer(walked, fetch.base));
    let pinned = engine.and_then(|engine| pin(case, walked, engine, buffer));

    let mut levels = Vec::new();
    let ring_packet = |at: u64| walked.packets.iter().rposition(|p| p.place.level == 0 && p.ring_at == at);
    let by_rptr = ring.zip(pointers.as_ref()).and_then(|(ring, p)| p.last_before(ring, walked));
    let (at, mut trust) = match (&pinned, buffer) {
        (Some(pin), _) => (Some(pin.at), if pin.strong { Trust::Likely } else { Trust::Possible }),
        (None, Some(_)) => (None, Trust::Possible),
        // A buffer that is not in the dump is called by the packet in front of the read pointer.
        (None, None) => (by_rptr, if drained { Trust::Guess } else { Trust::Possible }),
    };
    let is_pinned = pinned.is_some();
    if let Some(pin) = pinned {
        seen.extend(pin.evidence);
    }
    let packet = at.and_then(|at| walked.packets.get(at));
    let within = packet.and_then(|p| p.buffer).or(buffer.map(|(called, _)| called));
    let caller = match (packet, buffer) {
        (Some(packet), _) => Some(packet.ring_at),
        (None, Some((_, ring_at))) => Some(ring_at),
        (None, None) => pointers.as_ref().and_then(|p| p.rptr),
    };
    if let (Some(ring), Some(at)) = (ring, caller) {
        // The dump may hold less of a ring than it has.
        let held = Some(ring.contents.end()).filter(|&size| size != 0);
        let size = ring.size.or(ring.mask.map(|mask| u64::from(mask) + 1)).or(held);
        let last = ring_packet(at)
            .and_then(|i| walked.packets.get(i))
            .map_or(at, |p| at.saturating_add(p.len.saturating_sub(1) as u64));
        let range = if within.is_some() || packet.is_some() { (at, at) } else { (at, last) };
        levels.push(LevelPosition { level: 0, base: 0, size, range });
    }
    match (within, &fetch) {
        (Some(called), _) => {
            let offset = packet.map(|p| p.place.index as u64).or_else(|| {
                let fetch = fetch.as_ref()?;
                Some((fetch.base.checked_sub(called.iova)? / 4).saturating_add(fetch.read?))
            });
            let end = u64::from(called.dwords);
            let range = offset.map_or((0, end), |at| (at, at));
            levels.push(LevelPosition { level: called.level, base: called.iova, size: Some(end), range });
        }
        (None, Some(fetch)) if packet.is_none_or(|p| p.calls.is_some()) => {
            // The registers name a buffer that no packet in the dump calls.
            let at = fetch.read.unwrap_or(0);
            levels.push(LevelPosition { level: 1, base: fetch.base, size: None, range: (at, at) });
        }
        (None, _) => {}
    }
    if let Some(fetch) = fetch {
        seen.extend(fetch.evidence);
        if trust == Trust::Possible
            && within.is_some_and(|called| called.contains(fetch.base))
            && packet.is_some()
        {
            trust = Trust::Likely;
        }
    }
    let bare = levels.is_empty();
    if bare {
        // The kernel names the ring, and that is all.
        trust = if case.hung.is_some() { Trust::Certain } else { Trust::Guess };
    }
    let point = HangPoint {
        ring: None,
        ring_name: Some(name.to_owned()),
        levels,
        packet: packet.and_then(|p| p.name.clone()),
        header: None,
        iova: packet.and_then(|p| p.place.iova),
        draw: packet.and_then(|p| p.draw).map(|(number, _)| number),
        trust,
    };
    Some(AmdStop { point, evidence: seen, at, pinned: is_pinned, drained, bare })
}

/// Pointers of a ring, reduced to it.
struct Pointers {
    rptr: Option<u64>,
    wptr: Option<u64>,
    drained: bool,
}

impl Pointers {
    fn of(ring: &AmdRing<'_>) -> Pointers {
        let size = ring.contents.end().max(ring.size.unwrap_or(0));
        let of = |pointer: Option<u64>| reduce(pointer?, ring.mask, size);
        let (rptr, wptr) = (of(ring.rptr), of(ring.wptr));
        Pointers { rptr, wptr, drained: rptr.is_some() && rptr == wptr }
    }

    fn evidence(&self, ring: &AmdRing<'_>) -> Option<Evidence> {
        let pointers = Args::new()
            .with_some("rptr", self.rptr.map(Arg::Value))
            .with_some("wptr", self.wptr.map(Arg::Value));
        let seen = evidence(&*ring.section, Fact::Record(pointers));
        (self.rptr.is_some() || self.wptr.is_some()).then_some(Evidence { span: Some(ring.span), ..seen })
    }

    /// The last packet of the ring that was fetched and is no padding. `None` where the dword before the read pointer was
    /// not captured.
    fn last_before(&self, ring: &AmdRing<'_>, walked: &Walked) -> Option<usize> {
        let rptr = self.rptr?;
        let whole = ring.whole().is_some();
        if !whole && rptr.checked_sub(1).is_none_or(|last| ring.contents.get(last).is_none()) {
            return None;
        }
        let ring = || walked.packets.iter().enumerate().filter(|(_, p)| p.place.level == 0);
        // Packets are in order from the oldest: those up to the read pointer come first.
        let end = ring().position(|(_, p)| p.ring_at == rptr).filter(|_| !self.drained || !whole);
        let fetched = ring().take(end.unwrap_or(usize::MAX));
        fetched.filter(|(_, p)| !p.filler).last().map(|(i, _)| i)
    }
}

/// What registers say about the buffer that is fetched.
fn fetched(case: &AmdCase<'_>, engine: Engine, ring: &str) -> Option<Fetch> {
    match engine {
        Engine::Gfx => fetched_gfx(case),
        Engine::Compute => fetched_compute(case, ring),
        Engine::Sdma => fetched_dma(case, ring),
        Engine::Vcn | Engine::VcnDecode | Engine::Jpeg | Engine::Mes => None,
    }
}

fn fetched_gfx(case: &AmdCase<'_>) -> Option<Fetch> {
    for level in ["IB2", "IB1"] {
        let names =
            [format!("CP_{level}_BASE_LO"), format!("CP_{level}_BASE_HI"), format!("CP_{level}_BUFSZ")];
        let base = case.address(&names[0], &names[1]).map(|base| base & !3).filter(|&base| base != 0);
        // Without dwords that are left, the address is of a buffer that has been read.
        let left = case.reg(&names[2]).map(|reg| reg.value & 0xf_ffff);
        let (Some(base), true) = (base, left != Some(0)) else { continue };
        let evidence = names.iter().filter_map(|name| case.reg(name)).map(Reg::evidence).collect();
        return Some(Fetch { base, read: None, evidence });
    }
    None
}

/// The registers of the queue that a ring is: `comp_1.0.2` is micro engine 1, pipe 0, queue 2.
fn fetched_compute(case: &AmdCase<'_>, ring: &str) -> Option<Fetch> {
    let numbers = ring.rsplit_once('_').map_or(ring, |(_, numbers)| numbers);
    let mut numbers = numbers.rsplit('.').map(|n| n.parse::<u32>().ok());
    let (queue, pipe, me) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let own = |reg: &&Reg<'_>| match reg.place {
        Some(BankOwner::Compute { mec, pipe: p, queue: q, .. }) => (mec + 1, *p, *q) == (me, pipe, queue),
        _ => false,
    };
    let reg = |name: &str| case.all(name).find(own).map(|reg| (reg.value, reg.evidence()));
    let (low, low_seen) = reg("CP_HQD_IB_BASE_ADDR")?;
    let (high, high_seen) = reg("CP_HQD_IB_BASE_ADDR_HI")?;
    let base = (u64::from(low) | u64::from(high) << 32) & !3;
    let rptr = reg("CP_HQD_IB_RPTR");
    let evidence =
        [Some(low_seen), Some(high_seen), rptr.clone().map(|(_, seen)| seen)].into_iter().flatten().collect();
    let read = rptr.map(|(value, _)| u64::from(value & 0xf_ffff));
    (base != 0).then_some(Fetch { base, read, evidence })
}

/// Of DMA engines the names of registers changed: `SDMA0_GFX_IB_BASE_LO`, `SDMA0_QUEUE0_IB_BASE_LO`.
fn fetched_dma(case: &AmdCase<'_>, ring: &str) -> Option<Fetch> {
    let number: String = ring.trim_start_matches("sdma").chars().take_while(char::is_ascii_digit).collect();
    ["GFX", "QUEUE0"].into_iter().find_map(|queue| {
        let name = |suffix: &str| format!("SDMA{number}_{queue}_IB_{suffix}");
        let base = case.address(&name("BASE_LO"), &name("BASE_HI"))? & !3;
        let offset = case.reg(&name("OFFSET"));
        // In bytes, as all pointers of DMA engines are.
        let read = offset.map(|reg| u64::from(reg.value & 0x3f_fffc) / 4);
        let regs = [case.reg(&name("BASE_LO")), case.reg(&name("BASE_HI")), offset];
        let evidence = regs.into_iter().flatten().map(Reg::evidence).collect();
        (base != 0).then_some(Fetch { base, read, evidence })
    })
}

/// The buffer that holds this address, and the packet of the ring that led to it: of the newest that fits.
fn find_buffer(walked: &Walked, base: u64) -> Option<(Called, u64)> {
    let calls = walked.packets.iter().rev().filter_map(|p| Some((p.calls?, p.ring_at)));
    let held = walked.packets.iter().rev().filter_map(|p| Some((p.buffer?, p.ring_at)));
    calls.chain(held).find(|(called, _)| called.contains(base))
}

/// A packet found by its header.
struct Pin {
    at: usize,
    strong: bool,
    evidence: Vec<Evidence>,
}

/// Looks the headers that a micro engine remembers up in the stream.
fn pin(case: &AmdCase<'_>, walked: &Walked, engine: Engine, buffer: Option<(Called, u64)>) -> Option<Pin> {
    let names: &[&str] = match engine {
        Engine::Gfx => &["CP_ME_HEADER_DUMP", "CP_PFP_HEADER_DUMP"],
        Engine::Compute => &["CP_MEC_ME1_HEADER_DUMP", "CP_MEC_ME2_HEADER_DUMP"],
        Engine::Sdma | Engine::Vcn | Engine::VcnDecode | Engine::Jpeg | Engine::Mes => return None,
    };
    names.iter().find_map(|name| {
        let headers: Vec<u32> = case.all(name).map(|reg| reg.value).collect();
        let (at, run) = newest(&headers, walked, buffer)?;
        let evidence = headers::evidence(case, name);
        Some(Pin { at, strong: run >= 3, evidence })
    })
}

/// The one place where the stream has these headers in a row, in either order; with how many of them agree. `None` when
/// several places fit equally well.
fn newest(headers: &[u32], walked: &Walked, buffer: Option<(Called, u64)>) -> Option<(usize, usize)> {
    let packets: Vec<usize> = (0..walked.packets.len())
        .filter(|&i| {
            let packet = &walked.packets[i];
            let inside = buffer.is_none_or(|(called, _)| packet.buffer == Some(called));
            inside && !packet.filler
        })
        .collect();
    let forward: Vec<u32> = headers.iter().rev().copied().collect();
    let mut best: Option<(usize, usize)> = None;
    let mut ambiguous = false;
    for order in [&forward[..], headers] {
        // A FIFO that has been read out repeats its last entry.
        let mut order = order.to_vec();
        order.dedup();
        let Some(&last) = order.first().filter(|&&header| header != 0) else { continue };
        for (nth, &i) in packets.iter().enumerate() {
            if walked.packets[i].raw != last {
                continue;
            }
            let before = packets[..=nth].iter().rev().map(|&i| walked.packets[i].raw);
            let run = before.zip(&order).take_while(|(raw, header)| raw == *header).count();
            match best {
                Some((at, length)) if length > run || at == i => {}
                Some((_, length)) if length == run => ambiguous = true,
                _ => (best, ambiguous) = (Some((i, run)), false),
            }
        }
    }
    best.filter(|_| !ambiguous)
}

#[cfg(test)]
mod tests {
    use super::super::stream::SeenPacket;
    use super::*;
    use unwedge_stream::StreamPos;

    fn walked(raws: &[u32]) -> Walked {
        let packet = |(i, &raw): (usize, &u32)| SeenPacket {
            place: StreamPos { level: 0, iova: None, index: i },
            raw,
            len: 1,
            ring_at: i as u64,
            buffer: None,
            name: None,
            filler: false,
            wait: None,
            draw: None,
            programs: Vec::new(),
            trace: None,
            writes: None,
            fence: None,
            calls: None,
        };
        Walked { packets: raws.iter().enumerate().map(packet).collect(), ..Walked::default() }
    }

    #[test]
    fn headers_in_a_row_tell_the_place() {
        let stream = walked(&[1, 2, 3, 1, 2, 4, 5]);
        assert_eq!(newest(&[1, 2, 3], &stream, None), Some((2, 3)), "oldest first");
        assert_eq!(newest(&[4, 2, 1], &stream, None), Some((5, 3)), "newest first");
        assert_eq!(newest(&[5; 8], &stream, None), Some((6, 1)), "one header, listed eight times");
        assert_eq!(newest(&[1, 2], &stream, None), None, "in two places");
        assert_eq!(newest(&[0; 8], &stream, None), None, "nothing remembered");
        assert_eq!(newest(&[], &stream, None), None);
    }
}
