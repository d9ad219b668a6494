//! Text that assembles to the same words.
//!
//! Not every text tells all bits of its word: a word may have bits set that mean nothing, or that the assembler would
//! choose otherwise. Whether it does is asked of the assembler, once for each shape of words (see
//! [`program`](crate::table::program)): words of one shape differ in bits that the text tells as they are.

use super::asm::Assembler;
use super::disasm::{write_raw, write_templates};
use crate::table::program::WriteOutcome;
use crate::tables::{IR3, IR3_PROGRAMS};

/// Slots for shapes, as a power of two.
const SLOT_BITS: u32 = 15;
/// What no unseen bits are: there are always some bits that select the instruction.
const NEVER: u64 = u64::MAX;
/// Bytes of `raw 0x0123456789ABCDEF`.
const RAW: usize = 22;

/// Writes words of one GPU so that the text, assembled, gives the same words.
pub struct Faithful {
    gpu_id: u32,
    assembler: Assembler,
    /// Shapes without their unseen bits, and what those have to be for the text to tell all; a new shape takes the slot
    /// of an old one.
    known: Vec<Option<(u64, u64)>>,
}

impl Faithful {
    /// For a GPU: 630, 730.
    pub fn new(gpu_id: u32) -> Faithful {
        Faithful { gpu_id, assembler: Assembler::new(gpu_id), known: vec![None; 1 << SLOT_BITS] }
    }

    /// Appends the text of an instruction as [`write`](super::write()) has it, without end of line. Where it does not
    /// tell all bits, the word itself with the text after it: `raw 0x0123456789ABCDEF\t; nop`. Returns whether the word is an
    /// instruction of the GPU.
    pub fn write(&mut self, word: u64, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let mut known = true;
        let faithful = match IR3_PROGRAMS.write(IR3, word, self.gpu_id, out) {
            WriteOutcome::Text { shape, unseen, faults } if faults.is_empty() => {
                let text = out.get(start..).unwrap_or_default();
                self.assembled_unseen(shape & !unseen, word, unseen, text) == word & unseen
            }
            WriteOutcome::Text { faults, .. } => {
                faults.without_ignored().write(u64::BITS, out);
                known = false;
                false
            }
            WriteOutcome::Odd => {
                write_templates(word, self.gpu_id, out);
                self.assemble(out.get(start..).unwrap_or_default()) == Some(word)
            }
            WriteOutcome::Unknown => {
                write_raw(word, out);
                known = false;
                true
            }
        };
        if !faithful {
            // Room for the word before the text.
            let mut before = Vec::with_capacity(RAW + 3);
            write_raw(word, &mut before);
            before.extend_from_slice(b"\t; ");
            out.splice(start..start, before);
        }
        known
    }

    /// What the unseen bits of words of this shape are if the text of one, `text`, is assembled; `NEVER` when other
    /// bits are different then.
    fn assembled_unseen(&mut self, shape: u64, word: u64, unseen: u64, text: &[u8]) -> u64 {
        let slot = (shape.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS)) as usize;
        if let Some(&Some((known, assembled))) = self.known.get(slot)
            && known == shape
        {
            return assembled;
        }
        let assembled = match self.assemble(text) {
            Some(again) if (again ^ word) & !unseen == 0 => again & unseen,
            _ => NEVER,
        };
        if let Some(slot) = self.known.get_mut(slot) {
            *slot = Some((shape, assembled));
        }
        assembled
    }

    fn assemble(&mut self, text: &[u8]) -> Option<u64> {
        self.assembler.instruction(std::str::from_utf8(text).ok()?).ok()
    }
}
