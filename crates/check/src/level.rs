//! What a finding is worth, for instruction sets whose rules have one level for all GPUs.

/// What breaking a rule means. The worst is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// The result depends on timing, is not defined by the hardware, or the code is not valid.
    Error,
    /// It may be wrong: sources differ, or it depends on what is not in the code.
    Warning,
    /// To know; the code is right.
    Note,
}

impl Level {
    /// Every level.
    pub const ALL: [Level; 3] = [Level::Error, Level::Warning, Level::Note];

    /// `error`, `warning`, `note`
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}
