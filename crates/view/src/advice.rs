//! What to do with a file that a command does not take, by its kind: one table for each thing that commands take.

use unwedge_capture::FileKind;

/// For commands that take dumps.
pub fn instead_of_dump(kind: FileKind) -> &'static str {
    match kind {
        FileKind::RdCapture => "use `unwedge decode`, `query` or `rd info`",
        FileKind::Elf | FileKind::Bundle => "`unwedge amd disasm` and `amd check` read AMD code objects",
        FileKind::ToolText => "it is already decoded: give the dump or capture that it was made from",
        FileKind::NoErrorState => "no hang has been recorded since boot, or it was cleared",
        FileKind::I915ErrorState
        | FileKind::XeDevcore
        | FileKind::AmdgpuDevcore
        | FileKind::RadvReport
        | FileKind::UmrText
        | FileKind::MsmDevcore => "use `unwedge explain`, `decode` or `info`",
        FileKind::Folder | FileKind::Empty | FileKind::Text | FileKind::Binary => {
            "the kernel's dump is /sys/class/devcoredump/devcd*/data, i915's /sys/class/drm/card*/error"
        }
    }
}

/// For commands that take captures.
pub fn instead_of_capture(kind: FileKind) -> &'static str {
    match kind {
        FileKind::MsmDevcore
        | FileKind::I915ErrorState
        | FileKind::XeDevcore
        | FileKind::AmdgpuDevcore
        | FileKind::RadvReport
        | FileKind::UmrText => "`unwedge explain` reads crash dumps",
        _ => "captures are what FD_RD_DUMP=full and the kernel's debugfs file rd write",
    }
}

/// For commands that take bare code; `None` for what may be that.
pub fn instead_of_code(kind: FileKind) -> Option<&'static str> {
    match kind {
        FileKind::Elf
        | FileKind::Bundle
        | FileKind::Empty
        | FileKind::Text
        | FileKind::Binary
        | FileKind::Folder => None,
        FileKind::MsmDevcore => {
            Some("`unwedge ir3 disasm` lists its shaders, and --shader-at ADDRESS takes one")
        }
        FileKind::RdCapture => Some("`unwedge ir3 disasm --shader-at ADDRESS` takes a shader of it"),
        FileKind::ToolText => Some("give the dump or capture that it was made from"),
        _ => Some("`unwedge decode` shows what is in it"),
    }
}

/// Whether a file that lies in a folder of dumps may be one. Text may be a dump whose start is damaged.
pub fn may_be_dump(kind: FileKind) -> bool {
    match kind {
        FileKind::MsmDevcore
        | FileKind::I915ErrorState
        | FileKind::XeDevcore
        | FileKind::AmdgpuDevcore
        | FileKind::RadvReport
        | FileKind::UmrText
        | FileKind::Text => true,
        FileKind::RdCapture
        | FileKind::NoErrorState
        | FileKind::Elf
        | FileKind::Bundle
        | FileKind::Folder
        | FileKind::Empty
        | FileKind::ToolText
        | FileKind::Binary => false,
    }
}
