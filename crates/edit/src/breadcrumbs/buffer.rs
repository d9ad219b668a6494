//! The buffer in which the GPU writes breadcrumbs and the CPU acknowledges them. It begins with a magic number, by which a replay finds it.

use unwedge_base::Memory;

/// How it begins.
const MAGIC: [u32; 4] = [
    u32::from_le_bytes(*b"unwe"),
    u32::from_le_bytes(*b"dge."),
    u32::from_le_bytes(*b"brea"),
    u32::from_le_bytes(*b"dc.1"),
];
/// Set in the word after the magic if the GPU waits for the CPU.
const WAITS: u32 = 1;
/// Where the dword is that the GPU writes, and the one that the CPU writes. Each has a cache line of its own.
const GPU: u64 = 0x80;
const CPU: u64 = 0x100;

/// The buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mailbox {
    iova: u64,
    /// The GPU waits after each breadcrumb until the CPU has written the same number.
    pub waits: bool,
}

impl Mailbox {
    /// Bytes of the buffer.
    pub const SIZE: u64 = 0x1000;

    /// One at an address; `None` if it does not fit there.
    pub fn at(iova: u64, waits: bool) -> Option<Mailbox> {
        iova.checked_add(Mailbox::SIZE)?;
        Some(Mailbox { iova, waits })
    }

    /// The one that a buffer with these contents is.
    pub fn read(iova: u64, words: &[u32]) -> Option<Mailbox> {
        let (magic, rest) = words.split_at_checked(MAGIC.len())?;
        let waits = rest.first()? & WAITS != 0;
        Mailbox::at(iova, waits).filter(|_| magic == MAGIC)
    }

    /// The one among the buffers of a capture.
    pub fn find(memory: &Memory) -> Option<Mailbox> {
        let of_buffer = |contents: &Option<Vec<u32>>, iova| Mailbox::read(iova, contents.as_deref()?);
        let large = memory.buffers().iter().filter(|buffer| buffer.size >= Mailbox::SIZE);
        large.filter_map(|buffer| of_buffer(&buffer.contents, buffer.iova)).next()
    }

    /// What the buffer begins with; zeros follow.
    pub fn words(self) -> Vec<u32> {
        let [a, b, c, d] = MAGIC;
        vec![a, b, c, d, if self.waits { WAITS } else { 0 }]
    }

    /// The address of the buffer.
    pub fn iova(self) -> u64 {
        self.iova
    }

    /// The address of the dword that the GPU writes.
    pub fn gpu(self) -> u64 {
        self.iova + GPU
    }

    /// The address of the dword that the CPU writes.
    pub fn cpu(self) -> u64 {
        self.iova + CPU
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_is_found_by_how_it_begins() {
        for waits in [false, true] {
            let mailbox = Mailbox::at(0x1000, waits).expect("it fits");
            assert_eq!(Mailbox::read(0x1000, &mailbox.words()), Some(mailbox));
        }
        let words = Mailbox::at(0, true).expect("it fits").words();
        assert_eq!(Mailbox::read(u64::MAX - 8, &words), None);
        assert_eq!(Mailbox::read(0, &words[..4]), None);
        assert_eq!(Mailbox::read(0, &[0; 8]), None);
    }
}
