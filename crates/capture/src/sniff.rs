//! What a file is, by its content.
//!
//! For choosing a reader, and for messages about files that none reads. Never: by a file's name. Facts: the first lines
//! that kernels and drivers print, the section types of rd captures, magic numbers of files.

use crate::{amdgpu, bundle, i915, msm, radv, rd, umr, xe};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A devcoredump of the msm driver.
    MsmDevcore,
    /// A command-stream capture of freedreno or Turnip (`.rd`).
    RdCapture,
    /// An error state of i915.
    I915ErrorState,
    /// The text of i915's error file while there is no error state.
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
    /// A bundle of code objects of AMD GPUs, an archive, or an object or program of Windows.
    Bundle,
    /// A folder that is not a hang report of RADV.
    Folder,
    /// Nothing.
    Empty,
    /// What crashdec or cffdump printed of a dump or capture.
    ToolText,
    /// Text of some other kind.
    Text,
    /// Bytes of some other kind.
    Binary,
}

/// Bytes of a file that are looked at.
const SNIFFED: usize = 16 << 10;

/// What a file is, by its first kilobytes.
pub fn sniff(bytes: &[u8]) -> FileKind {
    let head = &bytes[..bytes.len().min(SNIFFED)];
    let text = || std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |t| !t.contains('\0'));
    if head.is_empty() {
        FileKind::Empty
    } else if head.starts_with(b"\x7fELF") {
        FileKind::Elf
    } else if bundle::sniff(head) {
        FileKind::Bundle
    } else if text() && is_tool_text(head) {
        FileKind::ToolText
    } else if head.starts_with(b"---\n") && msm::sniff(head) {
        // The others search all of the head, which costs more than reading a small dump's lines.
        FileKind::MsmDevcore
    } else if xe::sniff(head) {
        FileKind::XeDevcore
    } else if amdgpu::sniff(head) {
        FileKind::AmdgpuDevcore
    } else if radv::sniff(head) {
        FileKind::RadvReport
    } else if rd::sniff(head) {
        FileKind::RdCapture
    } else if msm::sniff(head) {
        FileKind::MsmDevcore
    } else if i915::sniff(head) {
        FileKind::I915ErrorState
    } else if head.trim_ascii().eq_ignore_ascii_case(b"no error state collected") {
        FileKind::NoErrorState
    } else if umr::sniff(head) {
        FileKind::UmrText
    } else if text() {
        FileKind::Text
    } else {
        FileKind::Binary
    }
}

/// Whether a text is what Mesa's crashdec or cffdump, or a stand-in for them, printed: crashdec repeats the first lines of
/// the dump and adds the chip id that it understood, cffdump heads each command stream.
fn is_tool_text(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    lines.any(|line| {
        line.starts_with(b"Got chip_id=0x") || line.starts_with(b"cmdstream[") && line.ends_with(b" dwords")
    })
}

impl FileKind {
    /// For JSON: stable, lower case.
    pub fn id(self) -> &'static str {
        match self {
            FileKind::MsmDevcore => "msm-devcoredump",
            FileKind::RdCapture => "rd-capture",
            FileKind::I915ErrorState => "i915-error-state",
            FileKind::NoErrorState => "i915-no-error-state",
            FileKind::XeDevcore => "xe-devcoredump",
            FileKind::AmdgpuDevcore => "amdgpu-devcoredump",
            FileKind::RadvReport => "radv-report",
            FileKind::UmrText => "umr-text",
            FileKind::Elf => "elf",
            FileKind::Bundle => "bundle",
            FileKind::Folder => "folder",
            FileKind::Empty => "empty",
            FileKind::ToolText => "tool-text",
            FileKind::Text => "text",
            FileKind::Binary => "binary",
        }
    }

    /// For messages, with its article.
    pub fn describe(self) -> &'static str {
        match self {
            FileKind::MsmDevcore => "an msm devcoredump",
            FileKind::RdCapture => "an rd capture (commands of freedreno or Turnip)",
            FileKind::I915ErrorState => "an i915 error state",
            FileKind::NoErrorState => "the error file of i915 while it holds no error state",
            FileKind::XeDevcore => "a xe devcoredump",
            FileKind::AmdgpuDevcore => "an amdgpu devcoredump",
            FileKind::RadvReport => "a hang report of RADV",
            FileKind::UmrText => "text of umr",
            FileKind::Elf => "an ELF file",
            FileKind::Bundle => "a bundle of code objects, an archive, or a program of Windows",
            FileKind::Folder => "a folder that is not a hang report of RADV",
            FileKind::Empty => "an empty file",
            FileKind::ToolText => "output of crashdec or cffdump",
            FileKind::Text => "some other text",
            FileKind::Binary => "some other binary file",
        }
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
            (&b"---\nkernel: 6.6.0\nmodule: msm\ntime: 1.0\n"[..], FileKind::MsmDevcore),
            (xe, FileKind::XeDevcore),
            (b"**** AMDGPU Device Coredump ****\nversion: 1\n", FileKind::AmdgpuDevcore),
            (b"========== RADV GPU hang report ==========\n", FileKind::RadvReport),
            (b"se0.sh0.cu1.simd0.wave2\n", FileKind::UmrText),
            (i915, FileKind::I915ErrorState),
            (b"rcs0 command stream:\n  START: 0x00001000\n", FileKind::I915ErrorState),
            (b"\n**** VM state ****\n[1000].length: 0x1000\n", FileKind::XeDevcore),
            (&rd, FileKind::RdCapture),
            (b"\x7fELF\x02", FileKind::Elf),
            (b"__CLANG_OFFLOAD_BUNDLE__", FileKind::Bundle),
            (b"CCOB\x02\0\x01\0", FileKind::Bundle),
            (b"CCOB\x20\0", FileKind::Binary),
            (b"!<arch>\n", FileKind::Bundle),
            (b"", FileKind::Empty),
            (b"No error state collected\n", FileKind::NoErrorState),
            (b"no error state collected\n", FileKind::NoErrorState),
            (
                b"---\nkernel: 6.6.0\nmodule: msm\nrevision: 630 (6.3.0.2)\nGot chip_id=0x6030002\n",
                FileKind::ToolText,
            ),
            (b"gpu_id: 630\ncmd: game/1: fence=1\n####\ncmdstream[0]: 1023 dwords\n", FileKind::ToolText),
            (b"hello, world\n", FileKind::Text),
            (b"\0\xff\0\xfe\0", FileKind::Binary),
        ] {
            assert_eq!(sniff(bytes), kind, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
