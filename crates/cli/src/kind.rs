//! What a file is, by its content: for choosing a reader, and for messages about files that none reads.
//!
//! Facts: the first lines the kernels print, the section types of rd captures, file magics.

use unwedge_capture::i915::ErrorState;
use unwedge_capture::{amdgpu, xe};
use unwedge_view::intel::Dump;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A devcoredump of the msm driver.
    MsmDevcore,
    /// A command-stream capture of freedreno or Turnip (`.rd`).
    RdCapture,
    /// An error state of i915.
    I915ErrorState,
    /// What i915's error file reads as while there is no error state.
    NoErrorState,
    /// A devcoredump of xe.
    XeDevcore,
    /// A devcoredump of amdgpu.
    AmdgpuDevcore,
    /// A hang report of RADV: a folder, or one text.
    RadvReport,
    /// Waves, rings or registers as umr prints them.
    UmrText,
    /// An ELF file.
    Elf,
    /// Nothing.
    Empty,
    /// Text of some other kind.
    Text,
    /// Bytes of some other kind.
    Binary,
}

impl Kind {
    /// By the first kilobytes.
    pub fn sniff(bytes: &[u8]) -> Kind {
        let head = &bytes[..bytes.len().min(16 << 10)];
        if head.is_empty() {
            Kind::Empty
        } else if head.starts_with(b"\x7fELF") {
            Kind::Elf
        } else if xe::sniff(head) {
            Kind::XeDevcore
        } else if amdgpu::devcore::sniff(head) {
            Kind::AmdgpuDevcore
        } else if amdgpu::radv::sniff(head) {
            Kind::RadvReport
        } else if unwedge_capture::rd::sniff(head) {
            Kind::RdCapture
        } else if unwedge_capture::devcore::sniff(bytes) {
            Kind::MsmDevcore
        } else if unwedge_capture::i915::sniff(head) {
            Kind::I915ErrorState
        } else if head.trim_ascii().eq_ignore_ascii_case(b"no error state collected") {
            Kind::NoErrorState
        } else if amdgpu::umr::sniff(head) {
            Kind::UmrText
        } else if std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |t| !t.contains('\0')) {
            Kind::Text
        } else {
            Kind::Binary
        }
    }

    /// For JSON: stable, lower case.
    pub fn id(self) -> &'static str {
        match self {
            Kind::MsmDevcore => "msm-devcoredump",
            Kind::RdCapture => "rd-capture",
            Kind::I915ErrorState => "i915-error-state",
            Kind::NoErrorState => "i915-no-error-state",
            Kind::XeDevcore => "xe-devcoredump",
            Kind::AmdgpuDevcore => "amdgpu-devcoredump",
            Kind::RadvReport => "radv-report",
            Kind::UmrText => "umr-text",
            Kind::Elf => "elf",
            Kind::Empty => "empty",
            Kind::Text => "text",
            Kind::Binary => "binary",
        }
    }

    /// For messages, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            Kind::MsmDevcore => "a msm devcoredump",
            Kind::RdCapture => "a freedreno or Turnip command-stream capture (rd)",
            Kind::I915ErrorState => "an i915 error state",
            Kind::NoErrorState => "the error file of i915 while it holds no error state",
            Kind::XeDevcore => "a xe devcoredump",
            Kind::AmdgpuDevcore => "an amdgpu devcoredump",
            Kind::RadvReport => "a hang report of RADV",
            Kind::UmrText => "text of umr",
            Kind::Elf => "an ELF file",
            Kind::Empty => "an empty file",
            Kind::Text => "some other text",
            Kind::Binary => "some other binary file",
        }
    }
}

/// A dump of i915 or xe, if the bytes are one by their start.
pub fn intel_dump(bytes: &[u8]) -> Option<Dump<'_>> {
    match Kind::sniff(bytes) {
        Kind::I915ErrorState => ErrorState::read(bytes).ok().map(Dump::I915),
        Kind::XeDevcore => xe::Devcore::read(bytes).ok().map(Dump::Xe),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_content() {
        let xe = b"**** Xe Device Coredump ****\nkernel: 6.12\n";
        let i915 = b"GPU HANG: ecode 9:1:0x86dffffd, in game [1234]\nKernel: 5.4\n";
        let rd = [13u32, 4, 630, 2].map(u32::to_le_bytes).concat();
        for (bytes, kind) in [
            (&b"---\nkernel: 6.6.0\nmodule: msm\ntime: 1.0\n"[..], Kind::MsmDevcore),
            (xe, Kind::XeDevcore),
            (b"**** AMDGPU Device Coredump ****\nversion: 1\n", Kind::AmdgpuDevcore),
            (b"========== RADV GPU hang report ==========\n", Kind::RadvReport),
            (b"se0.sh0.cu1.simd0.wave2\n", Kind::UmrText),
            (i915, Kind::I915ErrorState),
            (b"rcs0 command stream:\n  START: 0x00001000\n", Kind::I915ErrorState),
            (b"\n**** VM state ****\n[1000].length: 0x1000\n", Kind::XeDevcore),
            (&rd, Kind::RdCapture),
            (b"\x7fELF\x02", Kind::Elf),
            (b"", Kind::Empty),
            (b"No error state collected\n", Kind::NoErrorState),
            (b"no error state collected\n", Kind::NoErrorState),
            (b"hello, world\n", Kind::Text),
            (b"\0\xff\0\xfe\0", Kind::Binary),
        ] {
            assert_eq!(Kind::sniff(bytes), kind, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
