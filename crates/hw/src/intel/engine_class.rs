//! Classes of Intel engines, under the names of the tables and of the kernel. Never: what an engine executes.

/// A class of engines. Its members execute the same commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineClass {
    /// `rcs`: 3D, and compute where there is no engine of its own for it.
    Render,
    /// `ccs`.
    Compute,
    /// `bcs`, the blitter.
    Copy,
    /// `vcs`: video decoding and encoding.
    VideoDecode,
    /// `vecs`.
    VideoEnhance,
    /// `gsc`, the graphics security controller.
    Gsc,
}

impl EngineClass {
    /// All of them.
    pub const ALL: [EngineClass; 6] = [
        EngineClass::Render,
        EngineClass::Compute,
        EngineClass::Copy,
        EngineClass::VideoDecode,
        EngineClass::VideoEnhance,
        EngineClass::Gsc,
    ];

    /// What the command tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            EngineClass::Render => "render",
            EngineClass::Compute => "compute",
            EngineClass::Copy => "blitter",
            EngineClass::VideoDecode => "video",
            EngineClass::VideoEnhance => "enhance",
            EngineClass::Gsc => "gsc",
        }
    }

    /// What the names of its engines begin with.
    pub const fn prefix(self) -> &'static str {
        match self {
            EngineClass::Render => "rcs",
            EngineClass::Compute => "ccs",
            EngineClass::Copy => "bcs",
            EngineClass::VideoDecode => "vcs",
            EngineClass::VideoEnhance => "vecs",
            EngineClass::Gsc => "gsc",
        }
    }

    /// The class whose engines have names with this prefix.
    pub const fn with_prefix(prefix: &str) -> Option<EngineClass> {
        let mut i = 0;
        while i < EngineClass::ALL.len() {
            if same(EngineClass::ALL[i].prefix(), prefix) {
                return Some(EngineClass::ALL[i]);
            }
            i += 1;
        }
        None
    }

    /// The bit of the class in the command tables.
    pub(super) const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Whether two names are one, where `==` is not available.
pub(super) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
