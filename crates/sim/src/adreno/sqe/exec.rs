//! What each instruction does.
//!
//! The order is the hardware's as far as known: sources, then the destination, then extra moves; a branch and the
//! dispatch of `waitin` take effect after the delay slot.

use super::log::{SqeFault, SqeStop};
use super::{Interrupted, SqeEmulator, pair};
use unwedge_isa::afuc::insn::{AfucOp, AluOp, Insn, InsnField};
use unwedge_isa::afuc::text::{ADDR, DATA, LR, REM};

/// What `cmp` gives: a bit for each relation that holds.
const GREATER: u32 = 0x00;
const EQUAL: u32 = 0x2b;
const LESS: u32 = 0x1e;

/// How an instruction changes the flow.
enum InsnFlow {
    /// The next one follows.
    Next,
    /// After the delay slot, execution goes on there.
    Branch(u32),
    /// The next packet is dispatched after the delay slot.
    Wait,
    /// Execution goes on there at once.
    Skip(u32),
    /// What was interrupted goes on as it was.
    Resume(Interrupted),
}

impl SqeEmulator<'_> {
    pub(super) fn execute(&mut self) -> Result<(), SqeStop> {
        let pc = self.pc;
        let word = *self.code.get(pc as usize).ok_or(SqeStop::Fault(SqeFault::OutsideCode(pc)))?;
        let generation = self.firmware.generation();
        let known =
            self.decoded.entry(word).or_insert_with(|| Insn::decode(word, generation).map(|(insn, _)| insn));
        let insn = match *known {
            Some(insn) => insn,
            // A `nop` with a payload.
            None if word >> 27 == 0 => Insn::new(AfucOp::Nop),
            None => return Err(SqeStop::Fault(SqeFault::Unknown { pc, word })),
        };
        let idle = insn.has(InsnField::Rep) && self.gpr(REM) == 0;
        let reads = if idle { 0 } else { self.data_reads(&insn) };
        if reads > 0 && self.bootstrapping {
            return Err(SqeStop::Booted);
        }
        if reads > 0 && !self.has_data(reads) {
            return Err(SqeStop::NeedsData);
        }
        self.steps = self.steps.saturating_add(1);
        let flow = if idle { InsnFlow::Next } else { self.repetition(&insn)? };
        if insn.has(InsnField::Rep) && self.gpr(REM) != 0 {
            return Ok(());
        }
        self.advance(flow)
    }

    /// One execution of an instruction, with what `(rep)` does to `$rem`.
    fn repetition(&mut self, insn: &Insn) -> Result<InsnFlow, SqeStop> {
        let before = self.gpr(REM);
        let flow = self.operate(insn)?;
        let is_counted = self.gpr(REM) != before;
        if insn.has(InsnField::Rep) && !is_counted {
            self.write(REM, before.saturating_sub(1))?;
        }
        Ok(flow)
    }

    fn advance(&mut self, flow: InsnFlow) -> Result<(), SqeStop> {
        if let InsnFlow::Resume(saved) = flow {
            self.pc = saved.pc;
            (self.branch, self.waiting) = (saved.branch, saved.waiting);
            return Ok(());
        }
        let follows = self.pc.wrapping_add(1);
        self.pc = self.branch.take().unwrap_or(match flow {
            InsnFlow::Skip(target) => target,
            _ => follows,
        });
        if let InsnFlow::Branch(target) = flow {
            self.branch = Some(target);
        }
        if std::mem::take(&mut self.waiting) {
            self.dispatch()?;
        }
        if matches!(flow, InsnFlow::Wait) {
            self.waiting = true;
            let handled = self.special.ib_end.and_then(|at| self.table.get(usize::from(at)));
            if handled.is_some_and(|&handler| handler != 0) {
                self.stream_ended = self.at_stream_end();
            } else {
                self.leave_ended_streams()?;
            }
            return Err(SqeStop::PacketDone);
        }
        Ok(())
    }

    /// Goes to the handler of the packet whose header is in `$01`.
    fn dispatch(&mut self) -> Result<(), SqeStop> {
        let (opcode, count) = if std::mem::take(&mut self.stream_ended) {
            (self.special.ib_end, 0)
        } else {
            let header = self.gpr(1);
            let odd = |value: u32, parity: u32| (value.count_ones() + parity) % 2 == 1;
            let bit = |at: u32| header >> at & 1;
            match header >> 28 {
                4 if odd(header & 0x7f, bit(7)) && odd(header >> 8 & 0x3_ffff, bit(27)) => {
                    // The handler sees the offset without the packet type above it.
                    self.set_gpr(1, header & 0x0fff_ffff);
                    (self.special.type4, header & 0x7f)
                }
                7 if odd(header & 0x3fff, bit(15)) && odd(header >> 16 & 0x7f, bit(23)) => {
                    (Some((header >> 16 & 0x7f) as u8), header & 0x3fff)
                }
                _ => return Err(SqeStop::Fault(SqeFault::BadHeader(header))),
            }
        };
        let handler = opcode.and_then(|opcode| self.table.get(usize::from(opcode)).copied());
        self.write(REM, count)?;
        self.pc = handler.unwrap_or(0);
        Ok(())
    }

    /// How many words of `$data` one execution takes (or looks at).
    fn data_reads(&self, insn: &Insn) -> usize {
        let is_data = |field| usize::from(insn.get(field) == DATA);
        let (first, second, base) =
            (is_data(InsnField::Src1), is_data(InsnField::Src2), is_data(InsnField::Base));
        match insn.op {
            AfucOp::Alu(_) => {
                let own = first + second;
                own + self.extra_moves(insn, own) * second
            }
            AfucOp::Not | AfucOp::Msb => first + self.extra_moves(insn, first) * first,
            AfucOp::Cwrite => base + first * (1 + insn.get(InsnField::Sds) as usize),
            _ => first + second + base,
        }
    }

    /// How many moves `(xmovN)` adds behind an instruction that takes `own` words of `$data` itself.
    fn extra_moves(&self, insn: &Insn, own: usize) -> usize {
        let left = self.gpr(REM) as usize;
        let own = own.max(usize::from(insn.has(InsnField::Rep)));
        (insn.get(InsnField::Xmov) as usize).min(left.saturating_sub(own))
    }

    fn operate(&mut self, insn: &Insn) -> Result<InsnFlow, SqeStop> {
        match insn.op {
            AfucOp::Alu(_)
            | AfucOp::AluImm(_)
            | AfucOp::Not
            | AfucOp::Msb
            | AfucOp::NotImm
            | AfucOp::MovImm
            | AfucOp::SetBitImm
            | AfucOp::ClrBit
            | AfucOp::Ubfx
            | AfucOp::Bfi => self.compute(insn)?,
            AfucOp::Store
            | AfucOp::Load
            | AfucOp::Cwrite
            | AfucOp::Cread
            | AfucOp::Swrite
            | AfucOp::Sread => self.access(insn)?,
            AfucOp::BrneImm
            | AfucOp::BreqImm
            | AfucOp::BrneBit
            | AfucOp::BreqBit
            | AfucOp::Call
            | AfucOp::Ret
            | AfucOp::Iret
            | AfucOp::Jumpa
            | AfucOp::Bl
            | AfucOp::JumpReg
            | AfucOp::Sret
            | AfucOp::Waitin
            | AfucOp::SetSecure => return self.transfer(insn),
            AfucOp::Nop => {}
        }
        Ok(InsnFlow::Next)
    }

    /// What computes a value of registers and immediates.
    fn compute(&mut self, insn: &Insn) -> Result<(), SqeStop> {
        let get = |field| insn.get(field);
        let dst = get(InsnField::Dst);
        match insn.op {
            AfucOp::Alu(alu) => {
                let own =
                    [InsnField::Src1, InsnField::Src2].iter().filter(|&&field| get(field) == DATA).count();
                let extra = self.extra_moves(insn, own);
                let peek = insn.has(InsnField::Peek);
                let a = self.read(get(InsnField::Src1), peek)?;
                let b = self.read(get(InsnField::Src2), peek)?;
                let value = self.alu(alu, a, b);
                self.write(dst, value)?;
                self.move_extra(dst, get(InsnField::Src2), extra)?;
            }
            AfucOp::Not | AfucOp::Msb => {
                let extra = self.extra_moves(insn, usize::from(get(InsnField::Src1) == DATA));
                let a = self.read(get(InsnField::Src1), false)?;
                let value = if insn.op == AfucOp::Not { !a } else { a.checked_ilog2().unwrap_or(0) };
                self.write(dst, value)?;
                self.move_extra(dst, get(InsnField::Src1), extra)?;
            }
            AfucOp::AluImm(alu) => {
                let a = self.read(get(InsnField::Src1), false)?;
                let value = self.alu(alu, a, get(InsnField::RegImm));
                self.write(dst, value)?;
            }
            AfucOp::NotImm => self.write(dst, !get(InsnField::Imm))?,
            AfucOp::MovImm => self.write(dst, get(InsnField::RegImm).wrapping_shl(get(InsnField::Shift)))?,
            AfucOp::SetBitImm | AfucOp::ClrBit => {
                let a = self.read(get(InsnField::Src1), false)?;
                let bit = 1u32.wrapping_shl(get(InsnField::Bit));
                self.write(dst, if insn.op == AfucOp::ClrBit { a & !bit } else { a | bit })?;
            }
            AfucOp::Ubfx => {
                let a = self.read(get(InsnField::Src1), false)?;
                self.write(dst, a.wrapping_shr(get(InsnField::Bit)) & field_mask(insn))?;
            }
            AfucOp::Bfi => {
                let a = self.read(get(InsnField::Src1), false)?;
                let old = self.gpr(dst);
                self.write(dst, old | (a & field_mask(insn)).wrapping_shl(get(InsnField::Bit)))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What reads and writes memory and the registers around the processor.
    fn access(&mut self, insn: &Insn) -> Result<(), SqeStop> {
        let get = |field| insn.get(field);
        let dst = get(InsnField::Dst);
        match insn.op {
            AfucOp::Store => {
                let address = self.memory_address(insn)?;
                let value = self.read(get(InsnField::Src1), false)?;
                self.store(address, value)?;
            }
            AfucOp::Load => {
                let address = self.memory_address(insn)?;
                let value = self.load(address)?;
                self.write(dst, value)?;
            }
            AfucOp::Cwrite => {
                let value = self.read(get(InsnField::Src1), false)?;
                let register = self.offset(insn, InsnField::ControlOffset)?;
                self.set_control(register, value)?;
                for index in 0..get(InsnField::Sds) {
                    let word = self.read(get(InsnField::Src1), false)?;
                    if self.special.draw_state_set == Some(register) {
                        self.set_draw_state_base(index, word);
                    }
                }
            }
            AfucOp::Cread => {
                let register = self.offset(insn, InsnField::ControlOffset)?;
                let value = self.read_control(register)?;
                self.write(dst, value)?;
            }
            AfucOp::Swrite => {
                let value = self.read(get(InsnField::Src1), false)?;
                let register = self.offset(insn, InsnField::SqeOffset)?;
                self.set_sqe(register, value)?;
            }
            AfucOp::Sread => {
                let register = self.offset(insn, InsnField::SqeOffset)?;
                let value = self.read_sqe(register)?;
                self.write(dst, value)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// What may go on elsewhere than after itself.
    fn transfer(&mut self, insn: &Insn) -> Result<InsnFlow, SqeStop> {
        let get = |field| insn.get(field);
        match insn.op {
            AfucOp::BrneImm | AfucOp::BreqImm | AfucOp::BrneBit | AfucOp::BreqBit => {
                let a = self.read(get(InsnField::Src1), false)?;
                let holds = match insn.op {
                    AfucOp::BrneImm => a != get(InsnField::Imm),
                    AfucOp::BreqImm => a == get(InsnField::Imm),
                    AfucOp::BrneBit => a.wrapping_shr(get(InsnField::Bit)) & 1 == 0,
                    _ => a.wrapping_shr(get(InsnField::Bit)) & 1 == 1,
                };
                if holds {
                    return Ok(InsnFlow::Branch(self.pc.wrapping_add(get(InsnField::Branch))));
                }
            }
            AfucOp::Call => {
                let (pointer, base) = self.stack()?;
                let depth = self.read_sqe(pointer)?;
                let full = SqeStop::Fault(SqeFault::StackFull);
                let slot = base.checked_add(depth).filter(|&slot| self.sqe(slot).is_some()).ok_or(full)?;
                self.set_sqe(slot, self.pc.wrapping_add(2))?;
                self.set_sqe(pointer, depth + 1)?;
                return Ok(InsnFlow::Branch(get(InsnField::Target)));
            }
            AfucOp::Ret => {
                let (pointer, base) = self.stack()?;
                let empty = SqeStop::Fault(SqeFault::StackEmpty);
                let depth = self.read_sqe(pointer)?.checked_sub(1).ok_or(empty)?;
                let slot = base.checked_add(depth).ok_or(SqeStop::Fault(SqeFault::StackFull))?;
                let target = self.read_sqe(slot)?;
                self.set_sqe(pointer, depth)?;
                return Ok(InsnFlow::Branch(target));
            }
            AfucOp::Iret => {
                let saved = self.interrupted.take().ok_or(SqeStop::Fault(SqeFault::NoInterrupt))?;
                return Ok(InsnFlow::Resume(saved));
            }
            AfucOp::Jumpa => return Ok(InsnFlow::Branch(get(InsnField::Target))),
            AfucOp::Bl => {
                self.write(LR, self.pc.wrapping_add(2))?;
                return Ok(InsnFlow::Branch(get(InsnField::Target)));
            }
            AfucOp::JumpReg => return Ok(InsnFlow::Branch(self.read(get(InsnField::Src1), false)?)),
            AfucOp::Sret => return Ok(InsnFlow::Branch(self.read(LR, false)?)),
            AfucOp::Waitin => return Ok(InsnFlow::Wait),
            AfucOp::SetSecure => {
                let mode = self.read(2, false)?;
                if self.secure_succeeds {
                    if let Some(register) = self.special.secure_mode {
                        self.set_control(register, mode)?;
                    }
                    return Ok(InsnFlow::Skip(self.pc.wrapping_add(3)));
                }
            }
            _ => {}
        }
        Ok(InsnFlow::Next)
    }

    fn alu(&mut self, alu: AluOp, a: u32, b: u32) -> u32 {
        match alu {
            AluOp::Add => {
                let (sum, carry) = a.overflowing_add(b);
                self.carry = u32::from(carry);
                sum
            }
            AluOp::AddHi => a.wrapping_add(b).wrapping_add(self.carry),
            AluOp::Sub => {
                let (difference, borrow) = a.overflowing_sub(b);
                self.carry = if borrow { u32::MAX } else { 0 };
                difference
            }
            AluOp::SubHi => a.wrapping_sub(b).wrapping_add(self.carry),
            AluOp::And => a & b,
            AluOp::Or => a | b,
            AluOp::Xor => a ^ b,
            AluOp::Shl => a.wrapping_shl(b),
            AluOp::Ushr => a.wrapping_shr(b),
            AluOp::Ishr => a.cast_signed().wrapping_shr(b).cast_unsigned(),
            AluOp::Rot => a.rotate_left(b & 31),
            AluOp::Mul8 => (a & 0xff) * (b & 0xff),
            AluOp::Min => a.min(b),
            AluOp::Max => a.max(b),
            AluOp::Cmp if a > b => GREATER,
            AluOp::Cmp if a == b => EQUAL,
            AluOp::Cmp => LESS,
            AluOp::Bic => a & !b,
            AluOp::SetBit => {
                let bit = (b >> 1) & 31;
                a & !(1 << bit) | (b & 1) << bit
            }
        }
    }

    /// The moves `(xmovN)` adds. Of three, the second goes where the instruction itself wrote.
    fn move_extra(&mut self, dst: u32, src: u32, count: usize) -> Result<(), SqeStop> {
        for index in 0..count {
            let value = self.read(src, false)?;
            if src != DATA {
                let left = self.gpr(REM).saturating_sub(1);
                self.write(REM, left)?;
            }
            match (count, index) {
                // Only the registers that stand for something outside are written again.
                _ if dst < ADDR => {}
                (3, 1) => self.write(dst, value)?,
                _ => self.write(DATA, value)?,
            }
        }
        Ok(())
    }

    /// The register an instruction addresses; with `!` the base becomes that.
    fn offset(&mut self, insn: &Insn, field: InsnField) -> Result<u32, SqeStop> {
        let base = insn.get(InsnField::Base);
        let register = self.read(base, false)?.wrapping_add(insn.get(field));
        if insn.has(InsnField::PreIncrement) {
            self.write(base, register)?;
        }
        Ok(register)
    }

    fn memory_address(&mut self, insn: &Insn) -> Result<u64, SqeStop> {
        let high_at = self.special.load_store_high.or(self.special.store_high);
        let high = high_at.map_or(0, |at| self.control_at(at));
        let base = insn.get(InsnField::Base);
        let low = self.read(base, false)?;
        let offset = insn.get(InsnField::MemOffset);
        if insn.has(InsnField::PreIncrement) {
            self.write(base, low.wrapping_add(offset))?;
        }
        Ok(pair(low, high).wrapping_add(u64::from(offset)))
    }

    /// The registers of the call stack: its depth, its first entry.
    fn stack(&self) -> Result<(u32, u32), SqeStop> {
        let registers = self.special.stack_pointer.zip(self.special.stack);
        registers.ok_or(SqeStop::Fault(SqeFault::StackFull))
    }
}

/// As many ones as the bit field of an instruction has bits; none when its ends are the wrong way round.
fn field_mask(insn: &Insn) -> u32 {
    let (low, high) = (insn.get(InsnField::Bit), insn.get(InsnField::High));
    match high.checked_sub(low) {
        Some(width) => u32::MAX >> (31 - width.min(31)),
        None => 0,
    }
}
