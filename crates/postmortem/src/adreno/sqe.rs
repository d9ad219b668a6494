//! CP_SQE_STAT: what the microcontroller of the command processor was doing (a6xx on).
//!
//! Layout: dword 0 is the PC, dwords 1 to 32 are `$01` to `$20`. `$01` holds the header of the packet in work.
//! Dwords 36 to 38 repeat that header and the two taken before it: found in dumps whose stream is known, where
//! all three stand one after the other in front of the stop. Nothing else in the block has a known meaning, the
//! return addresses of the SQE's calls included: those are shown raw.

/// The block, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqeStat {
    /// Address of the current instruction in the firmware, in dwords.
    pub pc: u32,
    /// `$01` to `$20`, as many as the block holds.
    pub registers: Vec<u32>,
    /// `$01` is the newest of the headers that the block remembers, and so is surely a header.
    pub confirmed: bool,
    /// Headers of the packets taken before the current one, newest first; empty when not `confirmed`.
    pub previous: Vec<u32>,
    /// What stands behind the registers, as far as a kernel reads it.
    pub rest: Vec<u32>,
}

const REGISTERS: usize = 32;
const CURRENT_COPY: usize = 36;
/// Dwords kept from behind the registers: the kernel reads 51 dwords in all.
const REST: usize = 64;

impl SqeStat {
    /// Takes the dwords of CP_SQE_STAT apart; `None` if there is not even a PC and `$01`.
    pub fn parse(words: &[u32]) -> Option<SqeStat> {
        let (&pc, after) = words.split_first()?;
        let registers = after.get(..after.len().min(REGISTERS))?.to_vec();
        let current = *registers.first()?;
        let remembered = words.get(CURRENT_COPY..CURRENT_COPY + 3).unwrap_or_default();
        let confirmed = remembered.first() == Some(&current);
        let previous =
            remembered.iter().skip(1).copied().filter(|_| confirmed).take_while(|&h| h != 0).collect();
        let rest = words.iter().skip(REGISTERS + 1).take(REST).copied().collect();
        Some(SqeStat { pc, registers, confirmed, previous, rest })
    }

    /// `$01`: the header of the packet in work.
    pub fn header(&self) -> u32 {
        self.registers.first().copied().unwrap_or_default()
    }
}

/// Takes the dwords of CP_SQE_STAT apart.
pub fn parse(words: &[u32]) -> Option<SqeStat> {
    SqeStat::parse(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_header_and_the_two_before_it() {
        let mut words = vec![0; 51];
        words[0] = 0xc5;
        words[1] = 0xdead_d00d;
        words[0x20] = 7;
        words[36..39].copy_from_slice(&[0xdead_d00d, 0x7010_8000, 0x70e5_0001]);
        let stat = parse(&words).unwrap();
        assert_eq!((stat.pc, stat.header()), (0xc5, 0xdead_d00d));
        assert_eq!(stat.registers[31], 7, "$20 is the last register");
        assert_eq!(stat.previous, [0x7010_8000, 0x70e5_0001]);
        assert_eq!(stat.rest.len(), 51 - 33);
    }

    #[test]
    fn a_cut_block_keeps_what_is_there() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[1]), None);
        let stat = parse(&[1, 2, 3]).unwrap();
        assert_eq!((stat.registers.len(), stat.previous.len(), stat.rest.len()), (2, 0, 0));
    }

    #[test]
    fn headers_elsewhere_are_not_taken_for_history() {
        let mut words = vec![9; 51];
        words[1] = 1;
        let stat = parse(&words).unwrap();
        assert!(!stat.confirmed && stat.previous.is_empty());
    }
}
