//! Whether commands are executed, what they write, and how a consumer steers a walk.

use crate::StreamPos;

/// Whether the hardware executes something, as far as the stream and the memory of the dump tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Exec {
    /// Nothing predicates it.
    #[default]
    Always,
    /// A predicate was evaluated and holds.
    Taken,
    /// A predicate was evaluated and fails: not executed.
    NotTaken,
    /// A predicate depends on what the dump does not hold.
    Unknown,
}

impl Exec {
    /// Both predicates have to hold.
    pub fn and(self, other: Exec) -> Exec {
        match (self, other) {
            (Exec::NotTaken, _) | (_, Exec::NotTaken) => Exec::NotTaken,
            (Exec::Unknown, _) | (_, Exec::Unknown) => Exec::Unknown,
            (Exec::Taken, _) | (_, Exec::Taken) => Exec::Taken,
            (Exec::Always, Exec::Always) => Exec::Always,
        }
    }

    /// A predicate's value, if it is known.
    pub(crate) fn of(holds: Option<bool>) -> Exec {
        match holds {
            Some(true) => Exec::Taken,
            Some(false) => Exec::NotTaken,
            None => Exec::Unknown,
        }
    }
}

/// A dword written to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegWrite {
    /// Register offset in dwords.
    pub reg: u32,
    /// The new value.
    pub value: u32,
    /// Where the value is in the stream.
    pub place: StreamPos,
    /// Whether the write is executed.
    pub exec: Exec,
}

/// Whether a walk goes into a buffer, or on to the next pass of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Flow {
    /// Go on.
    #[default]
    Continue,
    /// Leave this buffer out; that it is left is not reported then. Leave the other passes of this draw out.
    Skip,
}
