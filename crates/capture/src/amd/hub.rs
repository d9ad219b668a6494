//! Which part of a GPU's memory hub faulted.

/// A VM hub, as far as registers differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmHub {
    /// Of the graphics core: `gfxhub0`; and what kernels print of chips with one hub.
    Graphics,
    /// Of display, video and the rest: `mmhub0`.
    Multimedia,
}

impl VmHub {
    /// By the name that kernels print.
    pub fn from_name(name: &str) -> VmHub {
        if name.starts_with("mmhub") { VmHub::Multimedia } else { VmHub::Graphics }
    }
}
