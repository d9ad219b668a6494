//! Bits of the registers of a ring: RING_HEAD, RING_TAIL, RING_CTL, RING_START. Facts: the vendor's register descriptions,
//! `intel_engine_regs.h` of the kernel.

/// Bits of RING_HEAD that are the offset; above them it counts how often it wrapped.
pub const HEAD_OFFSET: u32 = 0x001f_fffc;
/// Bits of RING_TAIL that are the offset.
pub const TAIL_OFFSET: u32 = 0x001f_fff8;
/// Bits of RING_CTL that are the length of the ring in pages, less one.
pub const CTL_PAGES: u32 = 0x001f_f000;
/// Bit of RING_CTL that enables the ring.
pub const CTL_ENABLE: u32 = 1;
/// Bytes of a page. A ring starts at one.
pub const PAGE: u32 = 0x1000;
/// No ring is longer, in bytes.
pub const MAX_SIZE: u32 = 2 << 20;

/// Bytes of a ring by its RING_CTL, enabled or not.
pub const fn size(ctl: u32) -> u32 {
    (ctl & CTL_PAGES) + PAGE
}
