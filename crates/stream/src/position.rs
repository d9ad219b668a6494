//! Where something is in a command stream.

/// Where a dword is in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StreamPos {
    /// IB level: 0 ring, 1 IB1, 2 IB2, 3 IB3 or draw state inside IB2.
    pub level: u8,
    /// GPU address, if the stream lies in GPU memory.
    pub iova: Option<u64>,
    /// Dword index from the start of its stream.
    pub index: usize,
}
