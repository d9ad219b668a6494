//! What the waves of a workgroup share beside memory: resources of GWS, registers of streamout, and whose turn it is.

/// A semaphore or barrier of GWS.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Resource {
    /// How often a semaphore may be taken, or how many more waves a barrier waits for.
    pub(super) count: u32,
    /// How often all that waited were let go.
    pub(super) released: u32,
}

/// The state by which workgroups take turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderedState {
    /// The number of the wave whose turn it is. `m0` has the number of a wave.
    pub turn: u16,
    /// Streamout registers: eight of 32 bits, then eight of 64.
    pub streamout: [u32; 24],
}

/// What the waves of a workgroup share beside memory.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) resources: [Resource; 64],
    pub(super) ordered: OrderedState,
    /// Counts changes that a wave may wait for.
    pub(super) changes: u64,
}

impl Default for Common {
    fn default() -> Common {
        Common { resources: [Resource::default(); 64], ordered: OrderedState::default(), changes: 0 }
    }
}

/// A wave that waits for a change.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waiting {
    /// The change after which it tries again.
    pub(super) since: Option<u64>,
    /// How often the resource had let waves go when it began to wait.
    pub(super) released: Option<u32>,
}

impl Common {
    /// Whether a wave waits, and nothing has changed since.
    pub(super) fn blocks(&self, waiting: &Waiting) -> bool {
        waiting.since == Some(self.changes)
    }
}
