//! What a grid of workgroups is run with, and with which timing.

use super::common::OrderedState;

pub use crate::run::Timing;

/// The most workgroups of a grid that a command runs.
pub const MAX_GROUPS: u32 = 1 << 20;
/// The most instructions that a command executes in all workgroups of a grid together.
const MAX_STEPS: u64 = 1 << 36;
/// The most threads of a workgroup.
pub(super) const MAX_THREADS: u32 = 1024;

/// What a vector register holds when a wave begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initial {
    /// The same in all lanes.
    Value(u32),
    /// The lane's place in its workgroup along an axis.
    LocalId(u8),
    /// All three, of 10 bits each.
    PackedLocalIds,
}

/// What is run, and with which state waves begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Workgroups along each axis.
    pub groups: [u32; 3],
    /// Threads of a workgroup along each axis; more than 1,024 in all are a fault.
    pub size: [u32; 3],
    /// Offset of the first instruction in bytes.
    pub entry: u32,
    /// Scalar registers by number, as [`unwedge_isa::amdgcn::regs::Reg`] counts them.
    pub scalars: Vec<(u16, u32)>,
    /// Vector registers.
    pub vectors: Vec<(u8, Initial)>,
    /// Vector registers by the thread of the workgroup; zero past the end. A pipeline gives vertices and pixels so.
    pub threads_hold: Vec<(u8, Vec<u32>)>,
    /// Scalar registers by the wave of the workgroup; those of later waves have what [`Dispatch::scalars`] says. A pipeline gives the parts of merged stages so.
    pub waves_hold: Vec<(u16, Vec<u32>)>,
    /// The threads that run, if not all of the workgroup: lanes of pixels that nothing covers do not. Of each wave the same.
    pub exec: Option<u64>,
    /// Scalar registers that hold the workgroup's place.
    pub group_id: [Option<u16>; 3],
    /// The workgroup's place is in `ttmp9` and `ttmp7`, as on gfx12.
    pub group_id_in_ttmp: bool,
    /// Bytes of LDS of a workgroup.
    pub lds: u32,
    /// What every workgroup finds at the begin of its LDS: attributes, for example.
    pub lds_content: Vec<u8>,
    /// Bytes of GDS, which every workgroup finds zeroed.
    pub gds: u32,
    /// The turn and the streamout registers at the start of every workgroup.
    pub ordered: OrderedState,
    /// Bytes of scratch of a lane.
    pub scratch: u32,
    /// The MODE register.
    pub mode: u32,
    /// Instructions a workgroup may execute.
    pub steps: u64,
    /// Timing.
    pub timing: Timing,
    /// Threads of the host; the result is the same with any number.
    pub threads: usize,
}

impl Dispatch {
    /// The same dispatch, with `steps` limited so that all workgroups together execute no more than a command allows.
    #[must_use]
    pub fn bounded(self) -> Dispatch {
        let groups = self.groups.iter().fold(1u64, |all, axis| all.saturating_mul((*axis).into()));
        Dispatch { steps: self.steps.min(MAX_STEPS / groups.max(1)), ..self }
    }
}

impl Default for Dispatch {
    /// One workgroup of 64 threads in graphics mode, in plain timing, with ten million steps.
    fn default() -> Dispatch {
        Dispatch {
            groups: [1; 3],
            size: [64, 1, 1],
            entry: 0,
            scalars: Vec::new(),
            vectors: Vec::new(),
            threads_hold: Vec::new(),
            waves_hold: Vec::new(),
            exec: None,
            group_id: [None; 3],
            group_id_in_ttmp: false,
            lds: 0,
            lds_content: Vec::new(),
            gds: 0,
            ordered: OrderedState::default(),
            scratch: 0,
            mode: 0x1c0,
            steps: 10_000_000,
            timing: Timing::Plain,
            threads: 1,
        }
    }
}
