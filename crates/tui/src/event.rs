//! What the user did, as data. Never: where it comes from.

/// A key, without what a terminal sends for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A character with Control.
    Control(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Tab with Shift.
    BackTab,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A key.
    Key(Key),
    /// A click on a cell: column and row, from 0.
    Click(u16, u16),
    /// The wheel, by lines: down is positive.
    Wheel(i16),
}

/// What the program has to do after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing has changed.
    None,
    /// Draw.
    Draw,
    /// Leave.
    Quit,
    /// Stop, as with Ctrl-Z.
    Suspend,
}
