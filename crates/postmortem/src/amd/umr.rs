//! What text of umr leaves out and the rest of it determines: the dword of a packet that selects the register to set, where umr
//! names the register; and the ring of a stream without a name.
//!
//! Never: a dword that nothing in the text determines.

use std::borrow::Cow;
use unwedge_capture::amd::{DwordContents, plain_name};
use unwedge_capture::umr::{UmrIb, UmrRing, UmrStreamKind};
use unwedge_hw::amd::{Amd, RegBank};
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
        (None, Some(UmrStreamKind::Video | UmrStreamKind::Registers)) => "video",
        (None, Some(UmrStreamKind::Jpeg)) => "jpeg",
        (None, Some(UmrStreamKind::Other)) => "another engine's ring",
    }
}
