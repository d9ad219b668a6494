//! Draw-state groups: pieces of command stream that wait for a draw.

use unwedge_stream::adreno::GroupState;

/// Groups of a thread.
const GROUPS: usize = 32;

/// A group.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    set: GroupState,
    /// It was set since it was executed last.
    dirty: bool,
}

/// The groups that CP_SET_DRAW_STATE has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    groups: [Group; GROUPS],
}

impl Groups {
    pub(crate) fn set(&mut self, id: u8, set: GroupState) {
        if let Some(group) = self.groups.get_mut(usize::from(id)) {
            *group = Group { set, dirty: set.count != 0 };
        }
    }

    pub(crate) fn forget(&mut self, id: u8) {
        if let Some(group) = self.groups.get_mut(usize::from(id)) {
            *group = Group::default();
        }
    }

    pub(crate) fn forget_all(&mut self) {
        self.groups = Default::default();
    }

    /// The first group that waits and is enabled in one of these modes. It waits no more.
    pub(crate) fn take(&mut self, modes: u8) -> Option<GroupState> {
        let group = self.groups.iter_mut().find(|group| group.dirty && group.set.enable_mask & modes != 0)?;
        group.dirty = false;
        Some(group.set)
    }
}
