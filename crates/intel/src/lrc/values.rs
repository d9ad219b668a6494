//! Values that no engine would have saved, in registers that say how a context runs.
//!
//! They are hints: a layout says that memory was overwritten, a value may as well be what a driver wrote. Facts: what i915
//! checks before it submits a context, how much of a ring it leaves free, and what bits the registers have.

use super::commands::{SavedRegister, registers};
use super::layout::{LrcLayout, LrcOwner};
use super::registers::offset;
use super::tables::{indirect_ctx_offset, positions};
use thiserror::Error;
use unwedge_hw::intel::platform::IntelDriver;
use unwedge_hw::intel::ring;

const PAGE_BYTES: u32 = 4096;
/// Bytes, a cache line, that drivers leave free between the tail and what the engine has yet to execute: a tail within them
/// below the head is one the head ran past.
const LEFT_FREE: u32 = 64;
const STOP_RINGS: u32 = 1 << 8;
const VALID: u32 = 1;
const INDIRECT_RING_STATE_ENABLE: u32 = 1 << 4;
/// Bits of a page-table entry below its address that xe sets in the root: present, writable, caching.
const XE_ROOT_FLAGS: u32 = 0x9b;
/// Physical addresses have 52 bits at most.
const UPPER_ADDRESS: u32 = 0x000f_ffff;

/// A value that is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OddValue {
    /// The dword of the value; of another register's offset, that one.
    pub dword: usize,
    /// The register's offset from the engine's base.
    pub register: u32,
    /// The value.
    pub value: u32,
    /// What is odd.
    pub why: OddReason,
}

/// What is odd about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OddReason {
    /// RING_BUFFER_CONTROL without its enable bit.
    #[error("the ring is disabled")]
    RingDisabled,
    /// As many pages as no driver takes.
    #[error("a ring of {0:#x} bytes: not a power of two")]
    RingSize(u32),
    /// The low bits of RING_BUFFER_START.
    #[error("the ring does not start at a page")]
    StartUnaligned,
    /// HEAD behind the end.
    #[error("the head {head:#x} is outside of the ring of {size:#x} bytes")]
    HeadOutside {
        /// Offset of the head.
        head: u32,
        /// Bytes of the ring.
        size: u32,
    },
    /// The low bits of RING_BUFFER_HEAD.
    #[error("the head is not at a dword")]
    HeadUnaligned,
    /// TAIL behind the end.
    #[error("the tail {tail:#x} is outside of the ring of {size:#x} bytes")]
    TailOutside {
        /// Offset of the tail.
        tail: u32,
        /// Bytes of the ring.
        size: u32,
    },
    /// Bits of RING_BUFFER_TAIL that are none of its offset.
    #[error("the tail is not at a quadword, or has bits above its offset")]
    TailUnaligned,
    /// HEAD above TAIL, nearer than any driver lets a full ring come.
    #[error(
        "the head {head:#x} is past the tail {tail:#x}, by less than what drivers leave free in a ring that wrapped"
    )]
    HeadPastTail {
        /// Offset of the head.
        head: u32,
        /// Offset of the tail.
        tail: u32,
    },
    /// HEAD above TAIL, as it is where the tail began again at the ring's start and the head has not yet.
    #[error("the head {head:#x} is past the tail {tail:#x}: the ring wrapped between them")]
    RingWrapped {
        /// Offset of the head.
        head: u32,
        /// Offset of the tail.
        tail: u32,
    },
    /// MI_MODE stops the ring.
    #[error("the ring is stopped")]
    RingStopped,
    /// The low bits of a page directory's address.
    #[error("the page directory is not at a page")]
    PdpUnaligned,
    /// The high bits of a page directory's address.
    #[error("the page directory is above 52 bits")]
    PdpHigh,
    /// A root of page tables that is not present.
    #[error("the page tables' root is not present")]
    RootNotPresent,
    /// An address that is needed is 0.
    #[error("valid, but its address is 0")]
    NoAddress,
    /// Behind the table, where the hardware saves a register that drivers count on to be there.
    #[error("the offset of another register: the hardware has this one's here")]
    OtherRegister,
    /// RCS_INDIRECT_CTX_OFFSET is not what the drivers set.
    #[error("the indirect context runs at {found:#x}, drivers have it at {usual:#x}")]
    IndirectOffset {
        /// What the register has.
        found: u32,
        /// What drivers set.
        usual: u32,
    },
}

impl OddReason {
    /// It is as likely in a context that is fine: worth a note, nothing to fail for.
    pub fn is_usual(self) -> bool {
        matches!(self, OddReason::RingWrapped { .. })
    }

    /// For JSON: stable, lower case.
    pub fn id(self) -> &'static str {
        match self {
            OddReason::RingDisabled => "ring-disabled",
            OddReason::RingSize(_) => "ring-size",
            OddReason::StartUnaligned => "start-unaligned",
            OddReason::HeadOutside { .. } => "head-outside",
            OddReason::HeadUnaligned => "head-unaligned",
            OddReason::TailOutside { .. } => "tail-outside",
            OddReason::TailUnaligned => "tail-unaligned",
            OddReason::HeadPastTail { .. } => "head-past-tail",
            OddReason::RingWrapped { .. } => "ring-wrapped",
            OddReason::RingStopped => "ring-stopped",
            OddReason::PdpUnaligned => "pdp-unaligned",
            OddReason::PdpHigh => "pdp-high",
            OddReason::RootNotPresent => "root-not-present",
            OddReason::NoAddress => "no-address",
            OddReason::OtherRegister => "other-register",
            OddReason::IndirectOffset { .. } => "indirect-offset",
        }
    }
}

/// The values of the registers of a page, as one asks for them.
struct PageValues {
    base: u32,
    mask: u32,
    saved: Vec<SavedRegister>,
}

impl PageValues {
    fn get(&self, register: u32) -> Option<(usize, u32)> {
        let fits = |s: &&SavedRegister| match s.relative {
            true => (s.offset ^ self.base.wrapping_add(register)) & self.mask == 0,
            false => s.offset == self.base.wrapping_add(register),
        };
        let saved = self.saved.iter().find(fits)?;
        Some((saved.dword + 1, saved.value?))
    }
}

/// What is odd in a register page, or in a page of ring state. `layout` says whose it is; of a table of one's own nothing is
/// known.
pub fn odd(page: &[u32], layout: &LrcLayout) -> Vec<OddValue> {
    let Some(target) = layout.target() else { return Vec::new() };
    let addressing = layout.addressing();
    let values = PageValues {
        base: addressing.base,
        mask: addressing.relative.unwrap_or(u32::MAX),
        saved: registers(page).collect(),
    };
    let mut out = Vec::new();
    let elsewhere = values
        .get(offset::CONTEXT_CONTROL)
        .is_some_and(|(_, v)| v & INDIRECT_RING_STATE_ENABLE != 0 && target.version.major >= 20);
    if !elsewhere {
        ring(&values, &mut out);
    }
    page_tables(&values, &target, &mut out);
    // What the table has, the layout's check looks at. A page may end before the hardware's registers do.
    if !layout.is_ring_state() {
        for place in positions(target.version, target.engine.class).filter(|p| p.dword >= layout.dwords()) {
            let (dword, register) = (place.dword, place.register);
            let value = page.get(dword).copied().unwrap_or(0);
            if value != 0 && (value ^ values.base.wrapping_add(register)) & values.mask != 0 {
                out.push(OddValue { dword, register, value, why: OddReason::OtherRegister });
            }
        }
    }
    let mut check = |register: u32, odd: &dyn Fn(u32) -> Option<OddReason>| {
        if let Some((dword, value)) = values.get(register)
            && let Some(why) = odd(value)
        {
            out.push(OddValue { dword, register, value, why });
        }
    };
    check(offset::MI_MODE, &|v| (v & STOP_RINGS != 0).then_some(OddReason::RingStopped));
    check(offset::BB_PER_CTX_PTR, &|v| (v & VALID != 0 && v < PAGE_BYTES).then_some(OddReason::NoAddress));
    check(offset::INDIRECT_CTX, &|v| (v != 0 && v & !0x3f == 0).then_some(OddReason::NoAddress));
    let indirect = values.get(offset::INDIRECT_CTX).is_some_and(|(_, v)| v & 0x3f != 0);
    if let Some(usual) = indirect_ctx_offset(target.version).filter(|_| indirect) {
        check(offset::INDIRECT_CTX_OFFSET, &|found| {
            (found != usual).then_some(OddReason::IndirectOffset { found, usual })
        });
    }
    out
}

fn ring(values: &PageValues, out: &mut Vec<OddValue>) {
    let mut odd = |register: u32, (dword, value): (usize, u32), why: OddReason| {
        out.push(OddValue { dword, register, value, why });
    };
    let [control, start, head, tail] =
        [offset::CONTROL, offset::START, offset::HEAD, offset::TAIL].map(|register| values.get(register));
    let size = control.map(|(_, v)| ring::size(v));
    if let Some(at) = control {
        if at.1 & ring::CTL_ENABLE == 0 {
            odd(offset::CONTROL, at, OddReason::RingDisabled);
        }
        if let Some(size) = size.filter(|size| !size.is_power_of_two()) {
            odd(offset::CONTROL, at, OddReason::RingSize(size));
        }
    }
    if let Some(at) = start.filter(|(_, v)| !v.is_multiple_of(PAGE_BYTES)) {
        odd(offset::START, at, OddReason::StartUnaligned);
    }
    // The head's high bits count how often it wrapped.
    let offset_of = |at: Option<(usize, u32)>, mask: u32| at.map(|(_, v)| v & mask);
    let (head_at, tail_at) = (offset_of(head, ring::HEAD_OFFSET), offset_of(tail, ring::TAIL_OFFSET));
    if let (Some(at), Some(head), Some(size)) = (head, head_at, size) {
        if head >= size {
            odd(offset::HEAD, at, OddReason::HeadOutside { head, size });
        } else if let Some(tail) = tail_at.filter(|&tail| tail < head) {
            let near = head - tail < LEFT_FREE;
            let (past, wrapped) =
                (OddReason::HeadPastTail { head, tail }, OddReason::RingWrapped { head, tail });
            odd(offset::HEAD, at, if near { past } else { wrapped });
        }
        if at.1 & 3 != 0 {
            odd(offset::HEAD, at, OddReason::HeadUnaligned);
        }
    }
    if let (Some(at), Some(tail), Some(size)) = (tail, tail_at, size) {
        if tail >= size {
            odd(offset::TAIL, at, OddReason::TailOutside { tail, size });
        }
        if at.1 & !ring::TAIL_OFFSET != 0 {
            odd(offset::TAIL, at, OddReason::TailUnaligned);
        }
    }
}

/// Up to gen12 there are four pointers to page directories, then the root of the page tables in the place of the first.
fn page_tables(values: &PageValues, target: &LrcOwner, out: &mut Vec<OddValue>) {
    let pointers = if target.version.major >= 20 { 1 } else { 4 };
    for n in 0..pointers {
        let register = offset::PDP0_LDW + 8 * n;
        if let Some((dword, value)) = values.get(register) {
            let flags = if target.driver == IntelDriver::Xe { XE_ROOT_FLAGS } else { 0 };
            let low = value % PAGE_BYTES;
            let why = if low & !flags != 0 {
                Some(OddReason::PdpUnaligned)
            } else if target.driver == IntelDriver::Xe && n == 0 && value != 0 && low & 1 == 0 {
                Some(OddReason::RootNotPresent)
            } else {
                None
            };
            out.extend(why.map(|why| OddValue { dword, register, value, why }));
        }
        let register = register + 4;
        if let Some((dword, value)) = values.get(register).filter(|(_, v)| v & !UPPER_ADDRESS != 0) {
            out.push(OddValue { dword, register, value, why: OddReason::PdpHigh });
        }
    }
}
