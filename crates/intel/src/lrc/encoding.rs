//! The compact encoding of a context's registers, as both kernel drivers have it.
//!
//! A byte with bit 7 set skips that many dwords. Any other byte but 0 starts an MI_LOAD_REGISTER_IMM: bit 6 says that it is
//! posted, bits 5:0 count its registers. Each follows as its offset from the engine's base in dwords, seven bits a byte, the
//! high ones first, bit 7 set in all but the last byte. A byte 0 ends the table.

use thiserror::Error;

/// Bit of a byte that skips; bit of a byte that more of an offset follows.
const MORE: u8 = 1 << 7;
const POSTED: u8 = 1 << 6;
/// The longest skip.
pub const MAX_SKIP: u8 = MORE - 1;
/// The most registers of one MI_LOAD_REGISTER_IMM.
pub const MAX_REGISTERS: usize = POSTED as usize - 1;
/// Five bytes hold every offset of 32 bits.
const MAX_BYTES: u8 = 5;

/// A part of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableStep {
    /// Dwords that stay as they are: at most [`MAX_SKIP`].
    Skip(u8),
    /// An MI_LOAD_REGISTER_IMM.
    Load {
        /// With MI_LRI_FORCE_POSTED.
        posted: bool,
        /// From 1 to [`MAX_REGISTERS`] of them.
        registers: Vec<EncodedRegister>,
    },
}

/// A register by its offset, and how many bytes the encoding spends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedRegister {
    offset: u32,
    bytes: u8,
}

impl EncodedRegister {
    /// The register at an offset in bytes from the engine's base, encoded as short as possible: a byte below 0x200, two
    /// below 0x10000.
    ///
    /// # Errors
    ///
    /// [`TableEncodeError::Unaligned`] for an offset that is not a multiple of 4.
    pub fn new(offset: u32) -> Result<EncodedRegister, TableEncodeError> {
        if !offset.is_multiple_of(4) {
            return Err(TableEncodeError::Unaligned(offset));
        }
        let bits = 32 - (offset >> 2).leading_zeros();
        let bytes = bits.div_ceil(7).max(1) as u8;
        Ok(EncodedRegister { offset, bytes })
    }

    /// In bytes from the engine's base.
    pub fn offset(self) -> u32 {
        self.offset
    }
}

/// Why steps have no encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TableEncodeError {
    /// No dword begins there.
    #[error("register offset {0:#x} is not a multiple of 4")]
    Unaligned(u32),
    /// More than [`MAX_SKIP`] dwords.
    #[error("step {step}: skips {dwords} dwords, the most is {MAX_SKIP}: write several")]
    LongSkip {
        /// Which step, from 0.
        step: usize,
        /// What it skips.
        dwords: u8,
    },
    /// None, or more than [`MAX_REGISTERS`].
    #[error("step {step}: loads {registers} registers, possible are 1 to {MAX_REGISTERS}")]
    Registers {
        /// Which step, from 0.
        step: usize,
        /// How many it has.
        registers: usize,
    },
}

/// Why bytes are no table. All know the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TableDecodeError {
    /// No byte 0 where a step would start.
    #[error("byte {0}: the table ends without its 0")]
    Unterminated(usize),
    /// A load that says it has no registers.
    #[error("byte {0}: an MI_LOAD_REGISTER_IMM without registers")]
    NoRegisters(usize),
    /// A load that has fewer registers than it says.
    #[error("byte {0}: the table ends within an MI_LOAD_REGISTER_IMM")]
    Cut(usize),
    /// An offset of more than 32 bits, or of more bytes than those take.
    #[error("byte {0}: a register offset of more than 32 bits")]
    LongOffset(usize),
}

/// Steps to bytes, the ending 0 included.
///
/// # Errors
///
/// [`TableEncodeError::LongSkip`] for a skip of more than [`MAX_SKIP`] dwords,
/// [`TableEncodeError::Registers`] for a load of no registers or of more than [`MAX_REGISTERS`]; both name
/// the step.
pub fn encode(steps: &[TableStep]) -> Result<Vec<u8>, TableEncodeError> {
    let mut out = Vec::new();
    for (step, what) in steps.iter().enumerate() {
        match what {
            &TableStep::Skip(dwords) if dwords > MAX_SKIP => {
                return Err(TableEncodeError::LongSkip { step, dwords });
            }
            TableStep::Skip(dwords) => out.push(MORE | dwords),
            TableStep::Load { posted, registers } => {
                if registers.is_empty() || registers.len() > MAX_REGISTERS {
                    return Err(TableEncodeError::Registers { step, registers: registers.len() });
                }
                out.push(registers.len() as u8 | if *posted { POSTED } else { 0 });
                for register in registers {
                    let dwords = register.offset >> 2;
                    out.extend((1..register.bytes).rev().map(|at| MORE | (dwords >> (7 * at)) as u8));
                    out.push(dwords as u8 & !MORE);
                }
            }
        }
    }
    out.push(0);
    Ok(out)
}

/// Bytes to steps, and how many bytes the table takes: others may follow its 0.
///
/// Steps encode to the same bytes again, also where an offset is longer than it has to be.
///
/// # Errors
///
/// [`TableDecodeError`] with the byte: the bytes end before the 0 or within a load, a load has no registers,
/// or an offset has more than 32 bits.
pub fn decode(bytes: &[u8]) -> Result<(Vec<TableStep>, usize), TableDecodeError> {
    let mut steps = Vec::new();
    let mut at = 0;
    loop {
        let &byte = bytes.get(at).ok_or(TableDecodeError::Unterminated(at))?;
        let start = at;
        at += 1;
        if byte == 0 {
            return Ok((steps, at));
        }
        if byte & MORE != 0 {
            steps.push(TableStep::Skip(byte & !MORE));
            continue;
        }
        let count = usize::from(byte & !POSTED);
        if count == 0 {
            return Err(TableDecodeError::NoRegisters(start));
        }
        // Each takes a byte at least: what is claimed allocates nothing that is not there.
        let mut registers = Vec::with_capacity(count.min(bytes.len() - at));
        for _ in 0..count {
            let (register, end) = register(bytes, at)?;
            registers.push(register);
            at = end;
        }
        steps.push(TableStep::Load { posted: byte & POSTED != 0, registers });
    }
}

/// The register at a byte, and where the next one starts.
fn register(bytes: &[u8], start: usize) -> Result<(EncodedRegister, usize), TableDecodeError> {
    let mut dwords = 0u64;
    for length in 1..=MAX_BYTES {
        let at = start + usize::from(length) - 1;
        let &byte = bytes.get(at).ok_or(TableDecodeError::Cut(at))?;
        dwords = dwords << 7 | u64::from(byte & !MORE);
        if byte & MORE == 0 {
            let offset = u32::try_from(4 * dwords).map_err(|_| TableDecodeError::LongOffset(start))?;
            return Ok((EncodedRegister { offset, bytes: length }, at + 1));
        }
    }
    Err(TableDecodeError::LongOffset(start))
}

/// Bytes a table takes in this encoding, and in plain ones that spend a number of 16 or 32 bits on each skip, load, register
/// and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// In this encoding.
    pub compact: usize,
    /// With 16 bits for everything; none where an offset needs more.
    pub plain16: Option<usize>,
    /// With 32 bits for everything.
    pub plain32: usize,
    /// Of the dwords it stands for, skips included, the batch end not.
    pub expanded: usize,
}

impl TableSizes {
    /// Of steps that can be encoded.
    ///
    /// # Errors
    ///
    /// Those of [`encode`]: a step that has no encoding.
    pub fn of(steps: &[TableStep]) -> Result<TableSizes, TableEncodeError> {
        let compact = encode(steps)?.len();
        let mut sizes = TableSizes { compact, plain16: Some(2), plain32: 4, expanded: 0 };
        for step in steps {
            let (entries, dwords, fits) = match step {
                TableStep::Skip(dwords) => (1, usize::from(*dwords), true),
                TableStep::Load { registers, .. } => (
                    1 + registers.len(),
                    1 + 2 * registers.len(),
                    registers.iter().all(|r| r.offset <= u32::from(u16::MAX)),
                ),
            };
            sizes.plain16 = sizes.plain16.filter(|_| fits).map(|size| size + 2 * entries);
            sizes.plain32 += 4 * entries;
            sizes.expanded += 4 * dwords;
        }
        Ok(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(posted: bool, offsets: &[u32]) -> TableStep {
        TableStep::Load {
            posted,
            registers: offsets.iter().map(|&o| EncodedRegister::new(o).unwrap()).collect(),
        }
    }

    #[test]
    fn bytes_as_the_drivers_have_them() {
        let steps = [
            TableStep::Skip(1),
            load(true, &[0x244, 0x34, 0x1fc]),
            TableStep::Skip(13),
            load(false, &[0xfffc]),
        ];
        let bytes = [0x81, 0x43, 0x81, 0x11, 0x0d, 0x7f, 0x8d, 0x01, 0xff, 0x7f, 0];
        assert_eq!(encode(&steps).unwrap(), bytes);
        assert_eq!(decode(&bytes).unwrap(), (steps.to_vec(), bytes.len()));
        let sizes = TableSizes::of(&steps).unwrap();
        assert_eq!((sizes.compact, sizes.plain16, sizes.plain32), (11, Some(18), 36));
        assert_eq!(sizes.expanded, 4 * (1 + 7 + 13 + 3));
    }

    #[test]
    fn offsets_of_every_length() {
        for (offset, length) in
            [(0, 1), (0x1fc, 1), (0x200, 2), (0xfffc, 2), (0x1_0000, 3), (0x80_0000, 4), (0xffff_fffc, 5)]
        {
            let steps = [load(false, &[offset])];
            let bytes = encode(&steps).unwrap();
            assert_eq!(bytes.len(), 2 + length, "{offset:#x}");
            assert_eq!(decode(&bytes).unwrap().0, steps);
        }
        assert_eq!(TableSizes::of(&[load(false, &[0x1_0000])]).unwrap().plain16, None);
    }

    #[test]
    fn longer_than_needed_stays_so() {
        let bytes = [0x01, 0x80, 0x80, 0x0d, 0x80, 0];
        let (steps, length) = decode(&bytes).unwrap();
        assert_eq!((encode(&steps).unwrap(), length), (bytes.to_vec(), bytes.len()));
        let Some(TableStep::Load { registers, .. }) = steps.first() else { panic!() };
        assert_eq!(registers[0].offset(), 0x34);
    }

    #[test]
    fn what_follows_the_end_is_left() {
        assert_eq!(decode(&[0x81, 0, 80]).unwrap(), (vec![TableStep::Skip(1)], 2));
    }

    #[test]
    fn broken_bytes_say_where() {
        for (bytes, error) in [
            (&[][..], TableDecodeError::Unterminated(0)),
            (&[0x81], TableDecodeError::Unterminated(1)),
            (&[0x81, 0x40, 0], TableDecodeError::NoRegisters(1)),
            (&[0x02, 0x0d], TableDecodeError::Cut(2)),
            (&[0x01, 0x80], TableDecodeError::Cut(2)),
            (&[0x01, 0x84, 0x80, 0x80, 0x80, 0x00, 0], TableDecodeError::LongOffset(1)),
            (&[0x01, 0x80, 0x80, 0x80, 0x80, 0x80, 0], TableDecodeError::LongOffset(1)),
        ] {
            assert_eq!(decode(bytes), Err(error), "{bytes:x?}");
        }
    }

    #[test]
    fn what_has_no_encoding() {
        assert_eq!(EncodedRegister::new(0x35), Err(TableEncodeError::Unaligned(0x35)));
        assert_eq!(encode(&[TableStep::Skip(128)]), Err(TableEncodeError::LongSkip { step: 0, dwords: 128 }));
        assert_eq!(encode(&[load(false, &[])]), Err(TableEncodeError::Registers { step: 0, registers: 0 }));
        assert_eq!(
            encode(&[load(true, &[4; 64])]),
            Err(TableEncodeError::Registers { step: 0, registers: 64 })
        );
        assert!(encode(&[load(true, &[4; 63])]).is_ok());
    }
}
