//! Packets that move numbers between registers, memory, scratch registers and on-chip memory, and those that do nothing
//! here.

use super::{CpStop, Executed, ThreadId};
use crate::adreno::caches::{CCHE_INVALIDATE, CacheEvent, CacheUnit, CacheWait};
use crate::adreno::machine::{AdrenoMachine, Note};
use crate::adreno::space::Client;
use crate::adreno::{CpErrorKind, DescriptorTable, GpuFault};
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::payload::{LoadStateHeader, RegRmw, RmwOperand};
use unwedge_stream::adreno::{AdrenoOp, Stage, StateSource, StateType, Wait};

const REG: u32 = 0x3_ffff;

/// Packets that change nothing a sequential machine without preemption and caches could tell.
const WITHOUT_EFFECT: [&str; 17] = [
    "CP_BOOTSTRAP_UCODE",
    "CP_CONTEXT_SWITCH",
    "CP_CONTEXT_SWITCH_YIELD",
    "CP_INTERRUPT",
    "CP_ME_INIT",
    "CP_NOP",
    "CP_PREEMPT_DISABLE",
    "CP_RECORD_PFP_TIMESTAMP",
    "CP_RESOURCE_LIST",
    "CP_SET_AMBLE",
    "CP_SET_MODE",
    "CP_SET_PROTECTED_MODE",
    "CP_SET_SECURE_MODE",
    "CP_SET_SUBDRAW_SIZE",
    "CP_SKIP_IB2_ENABLE_GLOBAL",
    "CP_SKIP_IB2_ENABLE_LOCAL",
    "CP_WAIT_FOR_ME",
];

impl AdrenoMachine<'_> {
    /// Packets that move data, and the rest.
    pub(super) fn move_data(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        match packet.op {
            AdrenoOp::MemWrite => self.memory_write(packet),
            AdrenoOp::MemToMem => self.memory_to_memory(packet),
            AdrenoOp::Memcpy => self.memory_copy(packet),
            AdrenoOp::RegToMem => self.register_to_memory(packet, 0),
            AdrenoOp::RegToMemOffsetReg => {
                let word = packet.arg(3)?;
                let reg = if word >> 19 & 1 != 0 { self.scratch(packet, word & REG)? } else { word & REG };
                self.register_to_memory(packet, self.read_register(packet.thread, reg))
            }
            AdrenoOp::RegToMemOffsetMem => {
                let offset = self.space.read(packet.arg64(3)?, 4, Client::Cp)?;
                self.register_to_memory(packet, offset as u32)
            }
            AdrenoOp::MemToReg => self.memory_to_register(packet),
            AdrenoOp::MemToScratchMem => self.memory_to_chip(packet),
            AdrenoOp::CondWrite5 => self.conditional_write(packet),
            AdrenoOp::RegRmw => self.read_modify_write(packet),
            AdrenoOp::RegWrite => {
                self.write_register(packet.thread, packet.arg(1)? & REG, packet.arg(2)?);
                Ok(())
            }
            AdrenoOp::ContextRegBunch => self.write_pairs(packet, 0),
            AdrenoOp::ContextRegBunch2 | AdrenoOp::NonContextRegBunch => self.write_pairs(packet, 2),
            AdrenoOp::ScratchWrite => self.scratch_write(packet),
            AdrenoOp::RegToScratch => self.register_to_scratch(packet),
            AdrenoOp::ScratchToReg => self.scratch_to_register(packet),
            AdrenoOp::SmmuTableUpdate => {
                let (low, high) = (packet.arg(0)?, packet.arg(1)?);
                self.ttbr0 = u64::from(low) | u64::from(high & 0xffff) << 32;
                self.space.other_table = self.process_table.is_some_and(|table| table != self.ttbr0);
                Ok(())
            }
            AdrenoOp::ResetContextState => {
                if packet.arg(0)? & 1 != 0 {
                    self.on_chip.fill(0);
                    self.clocks = Default::default();
                }
                Ok(())
            }
            _ => self.without_effect(packet),
        }
    }

    fn without_effect(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        if self.bin_packet(packet)? {
            return Ok(());
        }
        match self.gpu.packet_name(packet.opcode) {
            Some(CCHE_INVALIDATE) => {
                self.space.cache_event(CacheEvent::invalidate(CacheUnit::Cche));
                Ok(())
            }
            Some("CP_WAIT_MEM_WRITES") => {
                self.space.wait(CacheWait::MemWrites);
                Ok(())
            }
            Some(name) if WITHOUT_EFFECT.contains(&name) => Ok(()),
            Some(name) => {
                self.note(Note::PacketIgnored { name: name.to_owned() });
                Ok(())
            }
            None => Err(packet.error(CpErrorKind::Opcode { opcode: packet.opcode }).into()),
        }
    }

    // Memory

    fn memory_write(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let iova = packet.arg64(0)?;
        for (n, word) in (0..).zip(packet.payload.iter().skip(2)) {
            self.write_dword(iova.saturating_add(4 * n), word)?;
        }
        Ok(())
    }

    pub(super) fn write_dword(&mut self, iova: u64, word: u32) -> Result<(), GpuFault> {
        self.space.write(iova, 4, word.into(), Client::Cp)
    }

    /// CP_MEM_TO_MEM: the sum of up to three numbers, each of them negated if it is to be.
    fn memory_to_memory(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let word = packet.arg(0)?;
        if word >> 30 & 1 != 0 {
            self.space.wait(CacheWait::MemWrites);
        }
        let size = if word >> 29 & 1 != 0 { 8 } else { 4 };
        let mut sum = 0u64;
        for (n, at) in (0..3).zip((3..packet.payload.len()).step_by(2)) {
            let value = self.space.read(packet.arg64(at)?, size, Client::Cp)?;
            sum = if word >> n & 1 != 0 { sum.wrapping_sub(value) } else { sum.wrapping_add(value) };
        }
        Ok(self.space.write(packet.arg64(1)?, size, sum, Client::Cp)?)
    }

    fn memory_copy(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let (count, from, to) = (packet.arg(0)?, packet.arg64(1)?, packet.arg64(3)?);
        for n in 0..u64::from(count) {
            self.spend(1)?;
            let word = self.space.read(from.saturating_add(4 * n), 4, Client::Cp)?;
            self.write_dword(to.saturating_add(4 * n), word as u32)?;
        }
        Ok(())
    }

    /// CP_REG_TO_MEM and its relatives. Pairs of registers are numbers of 64 bits where the packet says so.
    fn register_to_memory(&mut self, packet: &Executed<'_>, offset: u32) -> Result<(), CpStop> {
        let word = packet.arg(0)?;
        let count = (word >> 18 & 0xfff).max(1);
        let (wide, accumulate) = (word >> 30 & 1 != 0, word >> 31 != 0);
        let mut iova = packet.arg64(1)?.saturating_add(offset.into());
        let (step, size) = if wide { (2, 8) } else { (1, 4) };
        for reg in (word & REG..).step_by(step).take(count as usize / step) {
            let low = u64::from(self.read_register(packet.thread, reg));
            let high = if wide { self.read_register(packet.thread, reg + 1) } else { 0 };
            let mut value = low | u64::from(high) << 32;
            if accumulate {
                value = value.wrapping_add(self.space.read(iova, size, Client::Cp)?);
            }
            self.space.write(iova, size, value, Client::Cp)?;
            iova = iova.saturating_add(size as u64);
        }
        Ok(())
    }

    fn memory_to_register(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let word = packet.arg(0)?;
        let (count, iova) = ((word >> 19 & 0x7ff).max(1), packet.arg64(1)?);
        let shift = if word >> 30 & 1 != 0 { 2 } else { 0 };
        for n in 0..count {
            let value = self.space.read(iova.saturating_add(4 * u64::from(n)), 4, Client::Cp)? as u32;
            self.write_register(packet.thread, (word & REG) + n, value << shift);
        }
        Ok(())
    }

    fn memory_to_chip(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let (count, at, iova) = (packet.arg(0)? & 0x3f, packet.arg(1)? & 0x3f, packet.arg64(2)?);
        for n in 0..count {
            let value = self.space.read(iova.saturating_add(4 * u64::from(n)), 4, Client::Cp)?;
            if let Some(slot) = self.on_chip.get_mut((at + n) as usize) {
                *slot = value as u32;
            }
        }
        Ok(())
    }

    /// CP_COND_WRITE5: the comparison is that of CP_WAIT_REG_MEM.
    fn conditional_write(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let wait = Wait::parse(AdrenoOp::WaitRegMem, packet.payload.stored(), self.generation)
            .ok_or(packet.error(CpErrorKind::ShortPacket { opcode: packet.opcode }))?;
        let (place, data) = (packet.arg64(5)?, packet.arg(7)?);
        let operand = match wait.operand {
            WaitOperand::Register(reg) => WaitOperand::Register(reg & REG),
            operand => operand,
        };
        if wait.accepts(self.polled(packet.thread, operand)?) {
            if packet.arg(0)? >> 8 & 1 != 0 {
                self.write_dword(place, data)?;
            } else {
                self.write_register(packet.thread, place as u32 & REG, data);
            }
        }
        Ok(())
    }

    // Registers

    fn write_pairs(&mut self, packet: &Executed<'_>, from: usize) -> Result<(), CpStop> {
        for i in (from..packet.payload.len()).step_by(2) {
            self.write_register(packet.thread, packet.arg(i)? & REG, packet.arg(i + 1)?);
        }
        Ok(())
    }

    fn read_modify_write(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        packet.arg(2)?;
        let rmw = RegRmw::parse(packet.payload, self.generation);
        let operand = |operand| match operand {
            RmwOperand::Number(number) => number,
            RmwOperand::Register(reg) => self.read_register(packet.thread, reg),
        };
        let dst = if rmw.scratch { self.scratch(packet, rmw.dst)? } else { rmw.dst };
        let old = self.read_register(packet.thread, dst);
        let (mask, with) = (operand(rmw.mask), operand(rmw.with));
        let value = rmw.value(Some(old), Some(mask), Some(with)).unwrap_or(old);
        self.write_register(packet.thread, dst, value);
        Ok(())
    }

    // Scratch registers

    /// The register behind a scratch register.
    fn scratch(&self, packet: &Executed<'_>, index: u32) -> Result<u32, CpStop> {
        let base = self.places.scratch.filter(|_| index < 8);
        Ok(base.map(|base| base + index).ok_or(packet.error(CpErrorKind::NoScratch { index }))?)
    }

    fn scratch_write(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let first = packet.arg(0)? >> 20 & 7;
        for (index, value) in (first..8).zip(packet.payload.iter().skip(1)) {
            self.write_register(packet.thread, self.scratch(packet, index)?, value);
        }
        Ok(())
    }

    fn register_to_scratch(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let word = packet.arg(0)?;
        for n in 0..=(word >> 24 & 7) {
            let value = self.read_register(packet.thread, (word & REG) + n);
            self.write_register(packet.thread, self.scratch(packet, (word >> 20 & 7) + n)?, value);
        }
        Ok(())
    }

    fn scratch_to_register(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let word = packet.arg(0)?;
        for n in 0..=(word >> 24 & 7) {
            let value = self.read_register(packet.thread, self.scratch(packet, (word >> 20 & 7) + n)?);
            self.write_register(packet.thread, (word & REG) + n, value);
        }
        Ok(())
    }

    // State of shaders

    /// CP_LOAD_STATE6: from the packet, from memory, from a descriptor set, or from a UBO.
    pub(super) fn load_state(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        if self.load_state_ahead(packet) {
            return Ok(());
        }
        let header = LoadStateHeader::parse(packet.payload, self.generation);
        let fragment = packet.op == AdrenoOp::LoadState6Frag;
        // Constants that stages share are counted in dwords.
        let shared = header.stage.is_none() && matches!(header.ty, StateType::Ssbo1 | StateType::Ssbo2);
        let size = if shared { header.units as usize } else { header.size(self.generation) };
        let iova = match header.source {
            // Drivers count units, and leave out dwords of the last one.
            StateSource::Direct => {
                let from = LoadStateHeader::dwords(self.generation);
                let words: Vec<u32> = packet.payload.iter().skip(from).take(size).collect();
                self.take_state(packet.thread, &header, fragment, &words);
                return Ok(());
            }
            StateSource::Indirect => header.place & !3,
            StateSource::Bindless => {
                let word = packet.arg(1)?;
                let compute = header.stage == Some(Stage::Compute);
                let base = self.descriptor_set(packet.thread, compute, word >> 28);
                base.wrapping_add(u64::from(word & 0xff_ffff) * 4)
            }
            StateSource::Ubo => {
                let word = packet.arg(1)?;
                let stage = header.stage.ok_or(packet.error(CpErrorKind::NoUbo { index: word >> 16 }))?;
                let ubo = self
                    .loaded(packet.thread)
                    .stage(stage)
                    .descriptor(DescriptorTable::Ubo, word as usize >> 16);
                let ubo = ubo.ok_or(packet.error(CpErrorKind::NoUbo { index: word >> 16 }))?;
                let base = u64::from(ubo[0]) | u64::from(ubo[1] & 0x1_ffff) << 32;
                base.wrapping_add(u64::from(word & 0xffff))
            }
        };
        if header.ty == StateType::Shader {
            return Ok(());
        }
        let mut words = Vec::with_capacity(size);
        for n in 0..size as u64 {
            words.push(self.space.read(iova.wrapping_add(4 * n), 4, Client::Sp)? as u32);
        }
        self.take_state(packet.thread, &header, fragment, &words);
        Ok(())
    }

    fn take_state(&mut self, id: ThreadId, header: &LoadStateHeader, fragment: bool, words: &[u32]) {
        if !self.loaded_mut(id).load(header, fragment, words) {
            self.note(Note::StateIgnored);
        }
    }
}
