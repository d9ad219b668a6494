//! The register spaces, and what touching a register does.
//!
//! Reads and writes by the firmware are logged; those by the caller ([`SqeEmulator::gpr`] and the like) are not, and have no
//! effect beside the value.

use super::log::{SqeFault, SqeLocation, SqeStop};
use super::{DataMode, DrawState, SqeEmulator, halves, pair};
use unwedge_isa::afuc::text::{ADDR, DATA, NO_INCREMENT, REM, USRADDR};

/// Bit of MEM_READ_ADDR_HI_PREEMPTION that puts the rest of it in place of the high half of the address.
const PRIVILEGED: u32 = 1 << 31;

impl SqeEmulator<'_> {
    /// A general register as it is; `$00` is 0. The queues keep what was last written to them.
    pub fn gpr(&self, register: u32) -> u32 {
        self.gprs.get(register as usize).copied().unwrap_or(0)
    }

    /// Sets a general register, without what writing `$addr`, `$usraddr` or `$data` would do.
    pub fn set_gpr(&mut self, register: u32, value: u32) {
        if let Some(slot) = self.gprs.get_mut(register as usize).filter(|_| register != 0) {
            *slot = value;
        }
    }

    /// A control register; `None` beyond them.
    pub fn control(&self, offset: u32) -> Option<u32> {
        self.control.get(offset as usize).copied()
    }

    /// Writes a control register, with all that does, unlogged: the packet table, GPU registers, draw states follow.
    ///
    /// # Errors
    ///
    /// [`SqeFault`] if the register does not exist, or what the write does faults: the packet table is full,
    /// a memory access is unaligned or one too many.
    pub fn write_control(&mut self, offset: u32, value: u32) -> Result<(), SqeFault> {
        let limit = std::mem::take(&mut self.log_limit);
        let dropped = self.log_dropped;
        let done = self.set_control(offset, value);
        (self.log_limit, self.log_dropped) = (limit, dropped);
        match done {
            Err(SqeStop::Fault(fault)) => Err(fault),
            _ => Ok(()),
        }
    }

    /// A register of the SQE itself; `None` beyond them.
    pub fn sqe(&self, offset: u32) -> Option<u32> {
        self.sqe.get(offset as usize).copied()
    }

    /// Sets a register of the SQE itself.
    ///
    /// # Errors
    ///
    /// [`SqeFault::NoRegister`] if there is no register at the offset.
    pub fn write_sqe(&mut self, offset: u32, value: u32) -> Result<(), SqeFault> {
        let register = self.sqe.get_mut(offset as usize).ok_or(SqeFault::NoRegister(offset))?;
        *register = value;
        Ok(())
    }

    /// A pipe register; `None` beyond them.
    pub fn pipe(&self, offset: u32) -> Option<u32> {
        self.pipe.get(offset as usize).copied()
    }

    /// A GPU register; 0 beyond those the emulator keeps.
    pub fn gpu(&self, offset: u32) -> u32 {
        self.gpu.get(offset as usize).copied().unwrap_or(0)
    }

    /// Sets a GPU register; nothing beyond those the emulator keeps.
    pub fn write_gpu(&mut self, offset: u32, value: u32) {
        if let Some(register) = self.gpu.get_mut(offset as usize) {
            *register = value;
        }
    }

    pub(super) fn control_at(&self, offset: u32) -> u32 {
        self.control(offset).unwrap_or(0)
    }

    pub(super) fn control_pair(&self, offset: u32) -> u64 {
        pair(self.control_at(offset), self.control_at(offset.saturating_add(1)))
    }

    pub(super) fn set_control_pair(&mut self, offset: u32, value: u64) -> Result<(), SqeStop> {
        let [low, high] = halves(value);
        self.set_control(offset, low)?;
        self.set_control(offset.saturating_add(1), high)
    }

    /// What `cread` reads.
    pub(super) fn read_control(&mut self, offset: u32) -> Result<u32, SqeStop> {
        let value = self.control(offset).ok_or(SqeStop::Fault(SqeFault::NoRegister(offset)))?;
        self.note(SqeLocation::Control(offset), false, Some(value));
        Ok(value)
    }

    /// What `cwrite` does, and everything that follows from it.
    pub(super) fn set_control(&mut self, offset: u32, value: u32) -> Result<(), SqeStop> {
        let register = self.control.get_mut(offset as usize);
        *register.ok_or(SqeStop::Fault(SqeFault::NoRegister(offset)))? = value;
        self.note(SqeLocation::Control(offset), true, Some(value));
        let special = &self.special;
        let is = |register: Option<u32>| register == Some(offset);
        if is(special.table_write) {
            let Some(at) = special.table_addr else { return Ok(()) };
            let index = self.control_at(at);
            let entry = self.table.get_mut(index as usize);
            *entry.ok_or(SqeStop::Fault(SqeFault::TableFull(index)))? = value;
            self.note(SqeLocation::Table(index), true, Some(value));
            self.set_control(at, index + 1)?;
        } else if is(special.reg_write) {
            let Some(at) = special.reg_write_addr else { return Ok(()) };
            // The high half holds flags, not address.
            let address = self.control_at(at);
            self.set_gpu(address & 0xffff, value)?;
            self.set_control(at, address & !0xffff | address.wrapping_add(1) & 0xffff)?;
        } else if is(special.bv_control) && self.firmware.generation() >= 7 {
            self.clear_sync(1)?;
        } else if is(special.lpac_control) && self.firmware.generation() >= 7 {
            self.clear_sync(2)?;
        } else if is(special.draw_state_set) {
            let group = value >> 24 & 0x1f;
            if let Some(state) = self.draw_states.get_mut(group as usize) {
                state.header = (value >> 20 & 7) << 16 | value & 0xffff;
            }
            if let Some(active) = special.draw_state_active {
                let mask = self.control_at(active);
                self.set_control(active, mask | 1 << group)?;
            }
        } else if let Some(word) =
            special.draw_state_set_base.and_then(|base| offset.checked_sub(base)).filter(|&w| w < 2)
        {
            self.set_draw_state_base(word, value);
        } else if is(special.draw_state_select) {
            self.select_draw_state(value)?;
        }
        Ok(())
    }

    /// Clears a bit of THREAD_SYNC, as the processor just started will: the firmware waits for that.
    fn clear_sync(&mut self, bit: u32) -> Result<(), SqeStop> {
        let Some(sync) = self.special.thread_sync else { return Ok(()) };
        let value = self.control_at(sync);
        self.set_control(sync, value & !(1 << bit))
    }

    fn select_draw_state(&mut self, group: u32) -> Result<(), SqeStop> {
        let group = (group & 0x1f) as usize;
        let special = &self.special;
        let (header, base) = (special.draw_state_header, special.draw_state_base);
        let (sds_base, sds_dwords) = (special.sds_base, special.sds_dwords);
        let before = (sds_base.map(|at| self.control_pair(at)), sds_dwords.map(|at| self.control_at(at)));
        if let Some(left) = self.draw_states.get_mut(self.selected_state) {
            left.sds_base = before.0.unwrap_or(left.sds_base);
            left.sds_dwords = before.1.unwrap_or(left.sds_dwords);
        }
        self.selected_state = group;
        let state: DrawState = self.draw_states.get(group).copied().unwrap_or_default();
        for (register, value) in [(header, state.header), (sds_dwords, state.sds_dwords)] {
            if let Some(register) = register {
                self.set_control(register, value)?;
            }
        }
        for (register, value) in [(base, pair(state.base[0], state.base[1])), (sds_base, state.sds_base)] {
            if let Some(register) = register {
                self.set_control_pair(register, value)?;
            }
        }
        Ok(())
    }

    /// Word `index` of the address of the draw state whose header was written last.
    pub(super) fn set_draw_state_base(&mut self, index: u32, value: u32) {
        let header = self.special.draw_state_set.map_or(0, |at| self.control_at(at));
        let group = (header >> 24 & 0x1f) as usize;
        let word = self.draw_states.get_mut(group).and_then(|state| state.base.get_mut(index as usize));
        if let Some(word) = word {
            *word = value;
        }
    }

    /// What `sread` reads.
    pub(super) fn read_sqe(&mut self, offset: u32) -> Result<u32, SqeStop> {
        let value = self.sqe(offset).ok_or(SqeStop::Fault(SqeFault::NoRegister(offset)))?;
        self.note(SqeLocation::Sqe(offset), false, Some(value));
        Ok(value)
    }

    /// What `swrite` does.
    pub(super) fn set_sqe(&mut self, offset: u32, value: u32) -> Result<(), SqeStop> {
        self.write_sqe(offset, value).map_err(SqeStop::Fault)?;
        self.note(SqeLocation::Sqe(offset), true, Some(value));
        Ok(())
    }

    fn set_gpu(&mut self, offset: u32, value: u32) -> Result<(), SqeStop> {
        self.write_gpu(offset, value);
        self.note(SqeLocation::Gpu(offset), true, Some(value));
        if self.special.lpac_sqe_control == Some(offset)
            && let Some(sync) = self.special.thread_sync
        {
            // LPAC, just started, will set this; the firmware waits for it.
            let synced = self.control_at(sync) | 1 << 1;
            self.set_control(sync, synced)?;
        }
        Ok(())
    }

    fn set_pipe(&mut self, offset: u32, value: u32) -> Result<(), SqeStop> {
        if let Some(register) = self.pipe.get_mut(offset as usize) {
            *register = value;
        }
        self.note(SqeLocation::Pipe(offset), true, Some(value));
        let special = &self.special;
        if let (Some(address), true) = (special.nrt_addr, special.nrt_data == Some(offset)) {
            let at = |offset: u32| self.pipe(offset).unwrap_or(0);
            let target = pair(at(address), at(address.saturating_add(1)));
            self.store(target & !3, value)?;
            // The low two bits keep the address from advancing.
            if target & 3 == 0 {
                let [low, high] = halves(target.wrapping_add(4));
                for (register, value) in [(address, low), (address.saturating_add(1), high)] {
                    if let Some(slot) = self.pipe.get_mut(register as usize) {
                        *slot = value;
                    }
                }
            }
        }
        Ok(())
    }

    /// What an instruction reads from a register. Reading `$data` takes a word of the packet.
    pub(super) fn read(&mut self, register: u32, peek: bool) -> Result<u32, SqeStop> {
        let value = match register {
            0 => 0,
            ADDR => self.read_memory_queue(peek)?,
            USRADDR => self.read_register_queue(peek),
            DATA => {
                let value = self.read_data(peek)?;
                if !peek {
                    let left = self.gpr(REM).saturating_sub(1);
                    self.set_gpr(REM, left);
                }
                value
            }
            _ => self.gpr(register),
        };
        self.note(SqeLocation::Gpr(register), false, Some(value));
        Ok(value)
    }

    fn read_memory_queue(&mut self, peek: bool) -> Result<u32, SqeStop> {
        let special = &self.special;
        let Some(at) = special.mem_read_addr else { return Ok(0) };
        let (dwords_at, high_at) = (special.mem_read_dwords, special.mem_read_high);
        let left = dwords_at.map_or(0, |at| self.control_at(at));
        let mut address = self.control_pair(at);
        let high = high_at.map_or(0, |at| self.control_at(at));
        let privileged = high & PRIVILEGED != 0;
        if privileged {
            address = pair(halves(address)[0], high & !PRIVILEGED);
        }
        if let (Some(dwords_at), true) = (dwords_at, left > 0 && !peek) {
            self.set_control(dwords_at, left - 1)?;
            let next = address.wrapping_add(4);
            if privileged {
                self.set_control(at, halves(next)[0])?;
            } else {
                self.set_control_pair(at, next)?;
            }
        }
        self.load(address)
    }

    fn read_register_queue(&mut self, peek: bool) -> u32 {
        let special = &self.special;
        let (Some(at), Some(dwords_at)) = (special.reg_read_addr, special.reg_read_dwords) else {
            // a5xx reads the register whose address is in `$addr`.
            let address = self.gpr(ADDR);
            if !peek {
                self.set_gpr(ADDR, address.wrapping_add(1));
            }
            return self.read_gpu(address & 0xffff);
        };
        let (address, left) = (self.control_at(at), self.control_at(dwords_at));
        if left > 0 && !peek {
            for (register, value) in [(dwords_at, left - 1), (at, address.wrapping_add(1))] {
                if let Some(slot) = self.control.get_mut(register as usize) {
                    *slot = value;
                }
            }
        }
        self.read_gpu(address)
    }

    fn read_gpu(&mut self, offset: u32) -> u32 {
        let value = self.gpu(offset);
        self.note(SqeLocation::Gpu(offset), false, Some(value));
        value
    }

    /// What an instruction's write to a register does.
    pub(super) fn write(&mut self, register: u32, value: u32) -> Result<(), SqeStop> {
        self.note(SqeLocation::Gpr(register), true, Some(value));
        match register {
            ADDR | USRADDR => {
                self.mode = if register == ADDR { DataMode::Addr } else { DataMode::UsrAddr };
                self.set_gpr(register, value);
                let pipe = value >> 24;
                if pipe != 0 && self.names.pipe_is_void(self.firmware, pipe) {
                    self.set_pipe(pipe, 0)?;
                }
            }
            DATA => {
                let holder = match self.mode {
                    DataMode::Addr => ADDR,
                    DataMode::UsrAddr => USRADDR,
                };
                let address = self.gpr(holder);
                let pipe = address >> 24;
                let step = if pipe != 0 { 1 << 24 } else { 1 };
                if address & NO_INCREMENT == 0 {
                    self.set_gpr(holder, address.wrapping_add(step));
                }
                if pipe != 0 {
                    self.set_pipe(pipe, value)?;
                } else {
                    self.set_gpu(address & (NO_INCREMENT - 1), value)?;
                }
            }
            _ => self.set_gpr(register, value),
        }
        Ok(())
    }
}
