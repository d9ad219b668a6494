//! A text that was read: sections and blocks, in which what depends on addresses is still open.

use super::error::{TextError, TextProblem};
use super::expr::TermBits;
use std::collections::HashMap;
use std::ops::Range;
use unwedge_capture::rd::RdSectionKind;

/// A text that was read. It has no addresses yet but those that it states.
#[derive(Debug, Default)]
pub struct Module {
    /// Sections, in their order.
    pub(super) sections: Vec<ModuleSection>,
    /// Blocks: in the order of the text.
    pub(super) blocks: Vec<Block>,
    /// What labels are.
    pub(super) labels: HashMap<String, Label>,
    /// Addresses that are free.
    pub(super) room: Option<Range<u64>>,
    /// Addresses have 64 bits.
    pub(super) wide: bool,
}

impl ModuleSection {
    /// It submits a command stream. A section of this kind that has no address is kept as it is.
    pub(super) fn is_submit(&self) -> bool {
        matches!(self, ModuleSection::Submit { .. } | ModuleSection::Other(RdSectionKind::CmdStreamAddr, _))
    }
}

/// One section, or a buffer's two.
#[derive(Debug)]
pub(super) enum ModuleSection {
    /// As it is.
    Other(RdSectionKind, Vec<u8>),
    /// A buffer.
    Buffer(ModuleBuffer),
    /// The submit: address and dwords.
    Submit {
        /// Bytes, with open ones.
        address: OpenValue,
        /// Dwords.
        size: OpenValue,
        /// In the form of 64-bit addresses.
        wide: bool,
    },
}

/// A number of a line, with what is open.
#[derive(Debug)]
pub(super) struct OpenValue {
    /// Bits that are known.
    pub(super) bits: u64,
    /// Others.
    pub(super) terms: Vec<TermBits>,
    /// The line.
    pub(super) line: SourceLine,
}

/// What a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Unknown.
    Absent,
    /// So many bytes.
    Bytes(u64),
    /// So many bytes of the buffer that it is a part of.
    Copy(u64),
}

/// A buffer.
#[derive(Debug)]
pub(super) struct ModuleBuffer {
    /// Address.
    pub(super) iova: u64,
    /// Size that its section states.
    pub(super) size: u32,
    /// In the form of 64-bit addresses.
    pub(super) wide: bool,
    /// What it holds.
    pub(super) contents: Contents,
    /// Its blocks.
    pub(super) blocks: Range<usize>,
}

/// A line of the text.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceLine {
    /// From 1.
    pub(super) number: usize,
    /// As it is, if it has something that can still fail.
    pub(super) text: String,
}

impl SourceLine {
    /// An error at a byte of it.
    pub(super) fn error(&self, byte: usize, problem: TextProblem) -> TextError {
        TextError::new(self.number, byte, &self.text, problem)
    }
}

/// Bytes that stay together, and may have to move.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Its name; empty if it has none.
    pub(super) name: String,
    /// Where it is to be.
    pub(super) at: Option<u64>,
    /// What it holds; open bits are zero.
    pub(super) bytes: Vec<u8>,
    /// What is open.
    pub(super) fixups: Vec<Fixup>,
    /// What the bytes are, in their order.
    pub(super) rows: Vec<Row>,
    /// Where it begins.
    pub(super) line: SourceLine,
}

/// Bits of a block that depend on labels.
#[derive(Debug)]
pub(super) struct Fixup {
    /// Byte of the block where the value is.
    pub(super) offset: usize,
    /// Bytes of the value: 4 or 8.
    pub(super) width: usize,
    /// Which bits, of what.
    pub(super) bits: TermBits,
    /// End of the packet that it is in.
    pub(super) packet_end: usize,
    /// Where it is in the text.
    pub(super) line: SourceLine,
}

/// A stretch of a block: what a line of the text made.
#[derive(Debug)]
pub(super) struct Row {
    /// Up to this byte.
    pub(super) end: usize,
    /// What it is.
    pub(super) role: RowRole,
    /// The line's text.
    pub(super) text: String,
}

/// What a line made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowRole {
    /// A packet's header.
    Header,
    /// Anything else.
    Words,
}

/// What a label is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    /// What.
    pub(super) target: LabelTarget,
    /// The line that defines it.
    pub(super) line: usize,
}

/// What a label is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelTarget {
    /// An address, and bytes from there on.
    Buffer(u64, u64),
    /// A block, and a byte of it.
    Block(usize, usize),
}
