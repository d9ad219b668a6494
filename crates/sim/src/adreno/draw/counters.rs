//! What is counted of draws: samples that pass, primitives of stream-out, and the statistics of the pipeline.
//!
//! Counts that a driver only sees as differences go on from the start of the machine.

use super::registers::Reg;
use crate::adreno::cp::ThreadId;
use crate::adreno::machine::AdrenoMachine;

/// A statistic of the pipeline, by the number of its RBBM_PRIMCTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statistic {
    Vertices = 0,
    Primitives = 1,
    VertexShaders = 2,
    HullPatches = 3,
    DomainShaders = 4,
    GeometryShaders = 5,
    GeometryPrimitives = 6,
    ClipIn = 7,
    ClipOut = 8,
    FragmentShaders = 9,
}

/// Statistics that draws add to.
const STATISTICS: usize = 10;

/// Primitives of a stream of stream-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamCount {
    /// Those that fit into their buffers.
    pub(crate) written: u64,
    /// All.
    pub(crate) generated: u64,
}

/// The counters of a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct DrawCounters {
    /// Samples that passed the tests of depth and stencil.
    pub(crate) samples: u64,
    pub(crate) streams: [StreamCount; 4],
    statistics: [u64; STATISTICS],
    /// Events started them: those of geometry, those of fragments.
    pub(crate) geometry_runs: bool,
    pub(crate) fragments_run: bool,
}

impl DrawCounters {
    pub(super) fn add(&mut self, statistic: Statistic, count: u64) {
        let runs =
            if statistic == Statistic::FragmentShaders { self.fragments_run } else { self.geometry_runs };
        if let Some(place) = self.statistics.get_mut(statistic as usize).filter(|_| runs) {
            *place = place.wrapping_add(count);
        }
    }
}

impl AdrenoMachine<'_> {
    /// Puts the statistics where the CP reads them.
    pub(super) fn show_counters(&mut self, id: ThreadId) {
        let Some(first) = self.draw_places.offset(Reg::Counters) else { return };
        for (n, value) in (0..).zip(self.counters.statistics) {
            self.write_register(id, first + 2 * n, value as u32);
            self.write_register(id, first + 2 * n + 1, (value >> 32) as u32);
        }
    }
}
