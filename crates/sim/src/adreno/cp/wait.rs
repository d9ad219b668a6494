//! Packets that wait: for memory, for registers, for the other thread.
//!
//! A sequential machine has done everything that a packet could have to wait for, except what another thread or the CPU
//! is to do.

use super::{CpStop, Executed, PacketEnd, ThreadId};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::Client;
use crate::adreno::{CpErrorKind, GpuFault};
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::{AdrenoOp, Wait};

/// What a7xx keeps on chip to let its threads wait for one another.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    pub(crate) global: u32,
    pub(crate) local: u32,
    pub(crate) bv_count: u32,
    pub(crate) br_count: u32,
    pub(crate) br_offset: u32,
}

impl AdrenoMachine<'_> {
    pub(super) fn wait(&mut self, packet: &Executed<'_>) -> Result<PacketEnd, CpStop> {
        let over = match packet.op {
            AdrenoOp::WaitRegMem | AdrenoOp::WaitMemGte => {
                let wait = Wait::parse(packet.op, packet.payload.stored(), self.generation)
                    .ok_or(packet.error(CpErrorKind::ShortPacket { opcode: packet.opcode }))?;
                wait.accepts(self.polled(packet.thread, wait.operand)?)
            }
            AdrenoOp::WaitTimestamp => self.timestamp_reached(packet)?,
            AdrenoOp::WaitRegEq => {
                self.read_register(packet.thread, packet.arg(0)?) & packet.arg(2)? == packet.arg(1)?
            }
            _ => self.count_operation(packet)?,
        };
        Ok(if over { PacketEnd::Done } else { PacketEnd::Waits })
    }

    /// CP_WAIT_FOR_IDLE: the clusters wait, the SQE goes on. Work that is done at once is over.
    pub(super) fn wait_for_idle(&mut self, id: ThreadId) {
        if let Some(queues) = self.ahead.as_deref_mut().filter(|_| id == ThreadId::Br) {
            queues.wait_for_idle();
            queues.advance();
        }
    }

    pub(super) fn polled(&self, id: ThreadId, operand: WaitOperand) -> Result<u32, GpuFault> {
        match operand {
            WaitOperand::Memory(iova) => self.space.read(iova, 4, Client::Cp).map(|value| value as u32),
            WaitOperand::Register(reg) => Ok(self.read_register(id, reg)),
            WaitOperand::OnChip(at) => Ok(self.on_chip_word(at)),
        }
    }

    /// CP_WAIT_TIMESTAMP: at least a number of 32 or 64 bits, or what the time stamps of the CP add up to.
    fn timestamp_reached(&self, packet: &Executed<'_>) -> Result<bool, CpStop> {
        let word = packet.arg(0)?;
        let on_chip = word >> 4 & 1 != 0;
        let wide = word & 3 == 1;
        let size = if wide { 8 } else { 4 };
        let value = match on_chip {
            true => {
                let at = packet.arg(1)?;
                let high = if wide { self.on_chip_word(at.saturating_add(1)) } else { 0 };
                u64::from(self.on_chip_word(at)) | u64::from(high) << 32
            }
            false => self.space.read(packet.arg64(1)?, size, Client::Cp)?,
        };
        Ok(match word & 3 {
            0 => value as u32 as i32 >= packet.arg(3)? as i32,
            1 => value >= packet.arg64(3)?,
            _ => value as u32 >= self.clocks.global.wrapping_add(self.clocks.local),
        })
    }

    /// CP_BV_BR_COUNT_OPS; whether the thread may go on.
    fn count_operation(&mut self, packet: &Executed<'_>) -> Result<bool, CpStop> {
        let clocks = &mut self.clocks;
        Ok(match packet.arg(0)? & 0xf {
            1 => {
                (clocks.bv_count, clocks.br_count, clocks.br_offset) = (0, 0, 0);
                true
            }
            2 => {
                clocks.br_offset = packet.arg(1)? & 0xffff;
                true
            }
            3 => clocks.bv_count > clocks.br_count,
            4 => clocks.br_count.saturating_add(clocks.br_offset) > clocks.bv_count,
            _ => true,
        })
    }

    pub(super) fn timestamp(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let word = packet.arg(0)?;
        match (packet.op, word >> 28) {
            (AdrenoOp::GlobalTimestamp, _) => self.clocks.global = word,
            (AdrenoOp::LocalTimestamp, _) => self.clocks.local = word,
            (_, 0) => (self.clocks.global, self.clocks.local) = (0, 0),
            (_, 1) => self.clocks.global = self.clocks.global.wrapping_add(word & 0xff),
            (_, 2) => self.clocks.local = self.clocks.local.wrapping_add(word & 0xff),
            _ => {}
        }
        Ok(())
    }

    /// CP_THREAD_CONTROL: which threads take the packets that follow, after they have met if it says so.
    pub(super) fn thread_control(&mut self, packet: &Executed<'_>) -> Result<PacketEnd, CpStop> {
        let word = packet.arg(0)?;
        if word >> 31 != 0 && !self.meet(packet.thread) {
            return Ok(PacketEnd::Waits);
        }
        let bit = match packet.thread {
            ThreadId::Br => 1,
            ThreadId::Bv => 2,
        };
        let thread = self.thread_mut(packet.thread);
        thread.selected = word & 3 & bit != 0;
        thread.alone = word & 3 == bit;
        Ok(PacketEnd::Done)
    }

    /// A thread comes to a place where threads meet; whether the others have been there.
    fn meet(&mut self, id: ThreadId) -> bool {
        let thread = self.thread_mut(id);
        if !thread.meets {
            thread.meets = true;
            thread.met += 1;
        }
        let met = thread.met;
        let together = self.threads.iter().all(|thread| thread.met >= met);
        self.thread_mut(id).meets = !together;
        together
    }
}
