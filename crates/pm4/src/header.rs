//! Packet headers.
//!
//! Facts: freedreno's adreno_pm4 register description and the headers of the kernel's msm driver.

/// A packet header, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Type 0 (a2xx–a4xx) and type 4 (a5xx on): `count` dwords to registers from `reg` on.
    Registers {
        /// First register, in dwords.
        reg: u32,
        /// Payload dwords.
        count: u32,
    },
    /// Type 3 (a2xx–a4xx) and type 7 (a5xx on): an operation.
    Operation {
        /// What to do, 7 or 8 bits.
        opcode: u8,
        /// Payload dwords.
        count: u32,
    },
    /// Type 2 (a2xx–a4xx): one dword of padding.
    Padding,
}
