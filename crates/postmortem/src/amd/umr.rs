//! What text of umr leaves out and the rest of it determines: the dword of a packet that selects the register to set, where umr
//! names the register; and the ring of a stream without a name.
//!
//! Never: a dword that nothing in the text determines.

use std::borrow::Cow;
use unwedge_capture::amd::{DwordContents, plain_name};
use unwedge_capture::umr::{UmrIb, UmrRing, UmrStreamKind};
use unwedge_hw::amd::{Amd, GcVersion, Gfx, RegBank};
use unwedge_stream::amd::{AmdPacketHeader, Engine};

/// The registers that a packet sets, if the dword after its header is the offset of the first.
fn bank(packet: &str) -> Option<RegBank> {
    Some(match packet {
        "SET_CONFIG_REG" => RegBank::Config,
        "SET_CONTEXT_REG" => RegBank::Context,
        "SET_SH_REG" => RegBank::Sh,
        "SET_UCONFIG_REG" => RegBank::Uconfig,
        _ => return None,
    })
}

/// The contents of a stream. Where umr left out the offset of a packet that sets registers, it follows from the name of the
/// first register that is set. The upper half of such a dword is zero in these packets.
pub fn umr_stream_contents<'i>(ib: &'i UmrIb<'_>, amd: Option<Amd<'_>>) -> Cow<'i, DwordContents> {
    let amd = amd.filter(|_| !ib.writes.is_empty() && ib.contents.whole().is_none());
    let Some(amd) = amd else { return Cow::Borrowed(&ib.contents) };
    let mut found = Vec::new();
    for write in &ib.writes {
        let Some(header) = write.dword.checked_sub(2) else { continue };
        if ib.contents.get(header + 1).is_some() {
            continue;
        }
        let packet = ib.contents.get(header).and_then(AmdPacketHeader::decode);
        let bank = packet.and_then(|packet| bank(packet.name(amd)?));
        let register = amd.register(plain_name(&write.name)).map(|register| register.offset());
        if let (Some(bank), Some(register)) = (bank, register)
            && let Some(offset) = register.checked_sub(bank.base()).filter(|offset| *offset <= 0xffff)
        {
            found.push((header + 1, offset));
        }
    }
    if found.is_empty() {
        return Cow::Borrowed(&ib.contents);
    }
    let there = ib.contents.runs().flat_map(|(start, dwords)| (start..).zip(dwords.iter().copied()));
    Cow::Owned(DwordContents::from_pairs(there.chain(found).collect()))
}

/// Dwords of a stream without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UmrRun<'i> {
    /// Where they are, in dwords.
    pub start: u64,
    /// The dwords.
    pub dwords: &'i [u32],
    /// They are in the middle of a packet, after a dword of it that umr left out.
    pub inside: bool,
}

/// A stream in stretches without a gap. umr leaves out dwords of packets; what is left of such a packet is a stretch of its own, for
/// no packet begins there.
pub fn umr_runs<'i>(ib: &'i UmrIb<'_>, contents: &'i DwordContents) -> impl Iterator<Item = UmrRun<'i>> {
    contents.runs().flat_map(|(start, dwords)| {
        let before = ib.packets.partition_point(|packet| packet.dword < start);
        let next = ib.packets.get(before).map_or(u64::MAX, |packet| packet.dword);
        let packet = before.checked_sub(1).and_then(|before| ib.packets.get(before));
        let end = packet.map_or(start, |packet| {
            packet.dword.saturating_add(1).saturating_add(packet.dwords.into()).min(next)
        });
        let inside = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(dwords.len());
        let (rest, packets) = dwords.split_at_checked(inside).unwrap_or((dwords, &[]));
        let rest = UmrRun { start, dwords: rest, inside: true };
        let packets = UmrRun { start: start.saturating_add(inside as u64), dwords: packets, inside: false };
        [rest, packets].into_iter().filter(|run| !run.dwords.is_empty())
    })
}

/// The generation of a GPU by the version of its memory hub, as the kernel's IP discovery pairs them: the text of an engine without
/// registers of graphics names no other.
pub(super) fn gfx_of_hub(hub: GcVersion) -> Option<Gfx> {
    Some(match (hub.major, hub.minor) {
        (1, 8) => Gfx::Gfx940,
        (1 | 9, _) => Gfx::Gfx9,
        (2, 0) => Gfx::Gfx10,
        (2, _) => Gfx::Gfx10_3,
        (3, 0) => Gfx::Gfx11,
        (3, _) => Gfx::Gfx11_5,
        (4, _) => Gfx::Gfx12,
        _ => return None,
    })
}

/// The engine that reads a stream, by the name of its ring or the packets that umr names. Without a name umr reads the ring of
/// graphics. `None` for engines other than command processors and DMA engines.
pub fn umr_stream_engine(ring: &UmrRing<'_>, kind: Option<UmrStreamKind>) -> Option<Engine> {
    let named = ring.name.as_deref().map(super::engine_of);
    match kind {
        Some(UmrStreamKind::Pm4) => named.flatten().filter(|e| *e != Engine::Sdma).or(Some(Engine::Gfx)),
        Some(UmrStreamKind::Sdma) => Some(Engine::Sdma),
        Some(_) => None,
        None => named.unwrap_or(Some(Engine::Gfx)),
    }
}

/// The engine that reads a stream, for listings: video engines and the scheduler, too.
pub fn umr_listed_engine(ring: &UmrRing<'_>, kind: Option<UmrStreamKind>) -> Option<Engine> {
    let named = ring.name.as_deref().and_then(super::listed_engine_of);
    match kind {
        Some(UmrStreamKind::Registers) => Some(Engine::VcnDecode),
        Some(UmrStreamKind::Video) => named.or(Some(Engine::Vcn)),
        // A buffer of parameters, which has no packets.
        Some(UmrStreamKind::Message) => None,
        Some(UmrStreamKind::Jpeg) => Some(Engine::Jpeg),
        Some(UmrStreamKind::Mes) => Some(Engine::Mes),
        Some(_) => umr_stream_engine(ring, kind),
        None => named.or_else(|| umr_stream_engine(ring, kind)),
    }
}

/// The name of a ring. A stream has none, but its packets show what kind of ring it is in.
pub fn umr_ring_name<'r>(ring: &'r UmrRing<'_>) -> &'r str {
    match (&ring.name, ring.kind()) {
        (Some(name), _) => name,
        (None, None | Some(UmrStreamKind::Pm4)) => "gfx",
        (None, Some(UmrStreamKind::Sdma)) => "sdma",
        (None, Some(UmrStreamKind::Aql)) => "user queue",
        (None, Some(UmrStreamKind::Mes)) => "mes",
        (None, Some(UmrStreamKind::Video | UmrStreamKind::Message | UmrStreamKind::Registers)) => "video",
        (None, Some(UmrStreamKind::Jpeg)) => "jpeg",
        (None, Some(UmrStreamKind::Other)) => "another engine's ring",
    }
}
