//! Conditional execution: which packets the stream itself skips.

use super::{CpStop, Executed, ThreadId};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::Client;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_stream::adreno::payload::{CondRegExec, RegCondition, RegTest, TestOperand};

impl AdrenoMachine<'_> {
    pub(super) fn condition(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        let (holds, dwords) = if packet.op == AdrenoOp::CondExec {
            let (flag, counter) = (packet.arg64(0)?, packet.arg64(2)?);
            let flag = self.space.read(flag, 4, Client::Cp)?;
            let counter = self.space.read(counter, 4, Client::Cp)? as u32 as i32;
            (flag != 0 && counter < packet.arg(4)? as i32, packet.arg(5)?)
        } else {
            let test = CondRegExec::parse(packet.payload);
            packet.arg(test.needed as usize - 1)?;
            (self.register_condition(test.condition, packet.thread), test.dwords)
        };
        if let Some(frame) = self.thread_mut(packet.thread).frames.last_mut() {
            frame.condition(dwords, holds);
        }
        Ok(())
    }

    fn register_condition(&self, condition: RegCondition, id: ThreadId) -> bool {
        let thread = self.thread(id);
        match condition {
            RegCondition::Predicate(n) => thread.predicates >> n & 1 != 0,
            RegCondition::Equal(a, b) => self.tested(id, a) == self.tested(id, b),
            RegCondition::EqualTo(a, value) => self.tested(id, a) == value,
            RegCondition::Modes(modes) => modes & thread.modes != 0,
            RegCondition::Threads { br, bv } => match id {
                ThreadId::Br => br,
                ThreadId::Bv => bv,
            },
            // What hardware does is not known: the dwords are executed.
            RegCondition::Other => true,
        }
    }

    fn tested(&self, id: ThreadId, operand: TestOperand) -> u32 {
        match operand {
            TestOperand::Register(reg) => self.read_register(id, reg),
            TestOperand::OnChip(at) => self.on_chip_word(at),
        }
    }

    pub(super) fn register_test(&mut self, packet: &Executed<'_>) {
        match RegTest::parse(packet.payload) {
            RegTest::Update { mask, values } => {
                let predicates = &mut self.thread_mut(packet.thread).predicates;
                *predicates = *predicates & !mask | values & mask;
            }
            RegTest::Bit { operand, bit, predicate } => {
                let value = self.tested(packet.thread, operand) >> bit & 1;
                let predicates = &mut self.thread_mut(packet.thread).predicates;
                *predicates = *predicates & !(1 << predicate) | value << predicate;
            }
        }
    }

    pub(super) fn draw_predicate(&mut self, packet: &Executed<'_>) -> Result<(), CpStop> {
        const FROM_MEMORY: u32 = 5;
        let word = packet.arg(0)?;
        let passes = match packet.op {
            AdrenoOp::DrawPredSet if word >> 4 & 0xf == FROM_MEMORY => {
                let value = self.space.read(packet.arg64(1)?, 8, Client::Cp)?;
                Some((value == 0) == (word >> 8 & 1 != 0))
            }
            _ => None,
        };
        let on = word & 1 != 0;
        let predicate = &mut self.thread_mut(packet.thread).draw_predicate;
        match packet.op {
            AdrenoOp::DrawPredEnableLocal => predicate.local = on,
            AdrenoOp::DrawPredEnableGlobal => {
                predicate.global = on;
                if on {
                    predicate.local = true;
                    predicate.passes = true;
                }
            }
            _ => predicate.passes = passes.unwrap_or(predicate.passes),
        }
        Ok(())
    }

    /// Draws and dispatches of a thread are executed.
    pub(super) fn draws_execute(&self, id: ThreadId) -> bool {
        let predicate = self.thread(id).draw_predicate;
        !(predicate.global && predicate.local) || predicate.passes
    }
}
