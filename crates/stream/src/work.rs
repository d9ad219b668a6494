//! The work that streams start.

use crate::StreamPos;

/// What kind of work starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkKind {
    /// A draw of any form, of meshes too.
    Draw,
    /// A dispatch of compute or task shaders.
    Dispatch,
    /// A copy or fill by an engine for that: CP_BLIT, the commands of blitters.
    Blit,
    /// An event that does work with the register state: BLIT (GMEM load, store, clear), LRZ_CLEAR of Adreno.
    Event,
}

impl WorkKind {
    /// Every kind.
    pub const ALL: [WorkKind; 4] = [WorkKind::Draw, WorkKind::Dispatch, WorkKind::Blit, WorkKind::Event];

    /// `dispatch`
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Draw => "draw",
            WorkKind::Dispatch => "dispatch",
            WorkKind::Blit => "blit",
            WorkKind::Event => "event",
        }
    }
}

/// A piece of work, as all vendors' packets describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamWork {
    /// Counts from 0 over the whole walk, as listings count.
    pub number: u32,
    /// What.
    pub kind: WorkKind,
    /// Where the packet that starts it is.
    pub place: StreamPos,
    /// Primitive type, as the packet of a draw has it.
    pub primitive: Option<u32>,
    /// Number of indices or vertices, where the packet says it.
    pub count: Option<u32>,
    /// Number of instances, where the packet says it.
    pub instances: Option<u32>,
    /// Event number, for [`WorkKind::Event`].
    pub event: Option<u32>,
    /// Address of indirect parameters.
    pub indirect: Option<u64>,
}
