//! The work that streams start.

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
