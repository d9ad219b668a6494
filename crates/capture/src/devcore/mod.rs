//! msm devcoredumps: `/sys/class/devcoredump/devcd*/data`, as kernels from 4.19 on write them.
//!
//! The format looks like YAML and is not. Two layers: [`lines`] reads the text line by line with a tolerant grammar and
//! forgets nothing; [`Devcore`] is the dump as a whole, built from those lines and written back from itself.

mod layout;
pub mod lines;
mod model;
mod read;
mod render;

pub use layout::Layout;
pub use model::*;

/// Whether the start of a file looks like a msm devcoredump. Looks at the first kilobyte only.
pub fn sniff(start: &[u8]) -> bool {
    let start = &start[..start.len().min(1024)];
    let mut marker = false;
    let mut keys = 0;
    for line in lines::Lines::new(start) {
        match line.kind {
            lines::LineKind::Marker => marker = true,
            lines::LineKind::Top { key: lines::TopKey::Revision, .. } => return true,
            lines::LineKind::Top { key: lines::TopKey::Module, value } if value.starts_with(b"msm") => {
                return true;
            }
            lines::LineKind::Top { .. } => keys += 1,
            lines::LineKind::Section(_) => return true,
            _ => {}
        }
    }
    keys >= 2 && marker
}

#[cfg(test)]
mod tests {
    #[test]
    fn sniffing() {
        assert!(super::sniff(b"---\nkernel: 5.8.0\nmodule: msm\n"));
        assert!(super::sniff(b"registers:\n  - { offset: 0x4, value: 0x5 }\n"));
        assert!(!super::sniff(b"---\nlayout: post\ntitle: about a hang\n"));
        assert!(!super::sniff(b"\x1f\x8b\x08\0\0"));
        assert!(!super::sniff(b""));
    }
}
