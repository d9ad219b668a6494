//! Exports and messages of waves, as they are recorded.

/// MessageKind a wave told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveMessage {
    /// Number of the workgroup.
    pub workgroup: u32,
    /// Number of the wave in it.
    pub wave: u32,
    /// Offset of the instruction in bytes.
    pub at: u32,
    /// Lanes that were enabled.
    pub lanes: u64,
    /// MessageKind.
    pub kind: MessageKind,
}

/// What a wave gives to the rest of the GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageKind {
    /// Registers to a render target, a position, parameters.
    Export {
        /// The code of the target: [`super::Program::export_target`] has its name.
        target: u8,
        /// The registers that are enabled, one value for each lane.
        values: [Option<Vec<u32>>; 4],
        /// Pairs of values of 16 bits.
        compressed: bool,
        /// The last one of its kind.
        done: bool,
        /// Lanes that are not enabled are no longer pixels.
        valid_mask: bool,
        /// The row, where one is said.
        row: Option<u32>,
    },
    /// `s_sendmsg` and its like: the code, and `m0`.
    Message {
        /// MessageKind the instruction says.
        code: u32,
        /// The register `m0`.
        m0: u32,
    },
}
