//! Packets that wait, and for what.

use super::{AmdPacketHeader, Engine, Packet};
use unwedge_hw::amd::{Amd, Gfx};

/// What a packet polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register, in dwords.
    Register(u32),
    /// Memory.
    Memory(u64),
}

/// A condition that the engine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What it polls.
    pub operand: Operand,
    /// How the polled value is compared with the reference: the number of the packet's field.
    pub function: u32,
    /// What it is compared with.
    pub reference: u64,
    /// The bits that count.
    pub mask: u64,
    /// A semaphore: it waits until another signals.
    pub semaphore: bool,
}

impl Wait {
    /// What the packet waits for; `None` for packets that do not wait.
    pub fn of(packet: &Packet<'_>, amd: Amd<'_>) -> Option<Wait> {
        match (packet.name(amd)?, packet.engine) {
            ("WAIT_REG_MEM" | "WAIT_REG_MEM64", Engine::Gfx | Engine::Compute) => Wait::reg_mem(packet, amd),
            ("MEM_SEMAPHORE", _) if packet.get(amd, "SEM_SEL") == Some(7) => {
                let address = packet.split_address(amd, "ADDR_LO", "ADDR_HI")?;
                Some(Wait::semaphore(address))
            }
            ("SDMA_POLL_REGMEM", _) => Wait::dma(packet, amd),
            ("SDMA_SEMAPHORE", _) if packet.get(amd, "SIGNAL") == Some(0) => {
                Some(Wait::semaphore(packet.get(amd, "ADDR")?))
            }
            _ => None,
        }
    }

    fn semaphore(address: u64) -> Wait {
        Wait {
            operand: Operand::Memory(address & !7),
            function: 4,
            reference: 0,
            mask: u64::MAX,
            semaphore: true,
        }
    }

    fn reg_mem(packet: &Packet<'_>, amd: Amd<'_>) -> Option<Wait> {
        // Operation 1 writes a register and polls another; all others poll what the first address says.
        let address = packet.get(amd, "POLL_ADDR")?;
        let memory = packet.get(amd, "MEM_SPACE") == Some(1);
        let writes = packet.get(amd, "OPERATION") == Some(1);
        let operand = match (memory, writes) {
            (true, _) => Operand::Memory(address & !3),
            (false, true) => Operand::Register((address >> 32) as u32 & 0x3_ffff),
            (false, false) => Operand::Register(address as u32 & 0x3_ffff),
        };
        Some(Wait {
            operand,
            function: packet.get32(amd, "FUNCTION")?,
            reference: packet.get(amd, "REFERENCE")?,
            mask: packet.get(amd, "MASK")?,
            semaphore: false,
        })
    }

    fn dma(packet: &Packet<'_>, amd: Amd<'_>) -> Option<Wait> {
        let address = packet.get(amd, "ADDR")?;
        let flushes = packet.get(amd, "HDP_FLUSH") == Some(1);
        let operand = match (packet.get(amd, "MEM_POLL") == Some(1), flushes) {
            (true, _) => Operand::Memory(address & !3),
            // Registers are named in bytes; a flush writes the second one and polls the first.
            (false, _) => Operand::Register((address as u32 >> 2) & 0x3_ffff),
        };
        Some(Wait {
            operand,
            function: packet.get32(amd, "FUNCTION")?,
            reference: packet.get(amd, "REFERENCE")?,
            mask: packet.get(amd, "MASK")?,
            semaphore: false,
        })
    }

    /// `==`, `>=`; `None` for numbers without a meaning.
    pub fn symbol(&self) -> Option<&'static str> {
        ["always", "<", "<=", "==", "!=", ">=", ">"].get(self.function as usize).copied()
    }

    /// Whether it would go on if the polled value were this; `None` when the comparison is not known.
    pub fn holds(&self, value: u64) -> Option<bool> {
        let value = value & self.mask;
        Some(match self.function {
            0 => true,
            1 => value < self.reference,
            2 => value <= self.reference,
            3 => value == self.reference,
            4 => value != self.reference,
            5 => value >= self.reference,
            6 => value > self.reference,
            _ => return None,
        })
    }

    /// The generation whose registers [`Operand::Register`] counts as the facts do. DMA engines of later generations
    /// may reach registers of other blocks by the same numbers.
    pub fn names_registers(packet: &Packet<'_>, gfx: Gfx) -> bool {
        !matches!(packet.header, AmdPacketHeader::Dma { .. }) || gfx < Gfx::Gfx9
    }
}
