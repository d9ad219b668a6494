//! Predication: which packets the stream itself skips.
//!
//! Facts: freedreno's adreno_pm4 register description. Memory that a predicate reads is taken as the dump holds it;
//! registers that no packet wrote, and everything only the GPU knows (visibility, on-chip memory), leave a predicate
//! unknown.

use crate::adreno::payload::{CondRegExec, RegCondition, RegTest, TestOperand};
use crate::adreno::state::threads;
use crate::adreno::walker::{AdrenoFrame, AdrenoWalker, Current};
use crate::adreno::{AdrenoOp, AdrenoSink, Exec, Registers, mode};

/// Conditions that hold up to some index of a stream, innermost last. Each includes the ones around it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Conditions {
    stack: [Condition; 8],
    depth: usize,
}

#[derive(Clone, Copy, Default)]
struct Condition {
    end: usize,
    exec: Exec,
    threads: u8,
}

impl Conditions {
    /// What applies to the packet at `index`, in a stream that is itself executed so.
    pub(crate) fn at(&mut self, index: usize, exec: Exec, threads: u8) -> (Exec, u8) {
        while self.depth > 0 {
            match self.stack.get(self.depth - 1) {
                Some(top) if index < top.end => return (top.exec, top.threads),
                _ => self.depth -= 1,
            }
        }
        (exec, threads)
    }

    fn push(&mut self, condition: Condition) {
        if let Some(slot) = self.stack.get_mut(self.depth) {
            *slot = condition;
            self.depth += 1;
        } else if let Some(top) = self.stack.last_mut() {
            // More conditions around one another than any driver writes: whether they hold is not tracked.
            top.end = top.end.max(condition.end);
            top.exec = Exec::Unknown;
        }
    }
}

fn bit(value: u32, position: u32) -> bool {
    value >> position & 1 != 0
}

impl AdrenoWalker<'_> {
    /// The registers that a packet reads.
    pub(crate) fn regs_read(&self, cx: &Current<'_>) -> &Registers {
        let thread =
            if cx.threads == threads::BV { crate::adreno::Thread::Bv } else { crate::adreno::Thread::Br };
        self.state.regs_for(thread)
    }

    /// Whether draws and dispatches execute now.
    pub(crate) fn draw_predicate(&self) -> Exec {
        let p = self.state.draw_predicate;
        if p.global && p.local { Exec::of(p.passes) } else { Exec::Always }
    }

    /// Whether work that an empty visibility stream skips is executed: only the GPU knows.
    pub(crate) fn visible(&self) -> Exec {
        let skipping = self.state.skip_ib2_global != 0 && self.state.skip_ib2_local != 0;
        if skipping && self.state.modes() & mode::GMEM != 0 { Exec::Unknown } else { Exec::Always }
    }

    /// CP_COND_REG_EXEC, CP_COND_EXEC: a condition over the dwords that follow.
    pub(crate) fn condition(
        &mut self,
        frame: &mut AdrenoFrame<'_>,
        cx: &Current<'_>,
        sink: &mut dyn AdrenoSink,
    ) {
        let (needed, dwords) = match cx.packet.op {
            AdrenoOp::CondExec if self.generation.is_64bit() => (6, cx.arg(5)),
            AdrenoOp::CondExec => (4, cx.arg(3)),
            _ => {
                let test = CondRegExec::parse(cx.args);
                (test.needed, test.dwords)
            }
        };
        if !self.has(cx, needed, sink) || !cx.applies {
            return;
        }
        let (exec, threads) = match cx.packet.op {
            AdrenoOp::CondExec => (Exec::of(self.memory_condition(cx)), cx.threads),
            _ => self.register_condition(cx),
        };
        frame.conditions.push(Condition {
            end: cx.next.saturating_add(dwords as usize),
            exec: cx.packet.exec.and(exec),
            threads,
        });
    }

    /// CP_COND_EXEC: one dword of memory is not 0, and another is below a reference.
    fn memory_condition(&self, cx: &Current<'_>) -> Option<bool> {
        if !self.generation.is_64bit() {
            return None;
        }
        let flag = self.memory.read(cx.arg64(0));
        let below = self.memory.read(cx.arg64(2)).map(|v| (v as i32) < cx.arg(4) as i32);
        match (flag, below) {
            (Some(0), _) | (_, Some(false)) => Some(false),
            (Some(_), Some(true)) => Some(true),
            _ => None,
        }
    }

    /// CP_COND_REG_EXEC, and the threads that go on.
    fn register_condition(&self, cx: &Current<'_>) -> (Exec, u8) {
        let holds = match CondRegExec::parse(cx.args).condition {
            RegCondition::Predicate(n) => self.state.predicates.get(usize::from(n)).copied().flatten(),
            RegCondition::Equal(a, b) => self.tested(cx, a).zip(self.tested(cx, b)).map(|(a, b)| a == b),
            RegCondition::EqualTo(a, value) => self.tested(cx, a).map(|a| a == value),
            RegCondition::Modes(_) if self.state.enable_mask == 0 => None,
            RegCondition::Modes(modes) => Some(modes & self.state.enable_mask != 0),
            RegCondition::Threads { br, bv } => {
                let bv = if bv { threads::BV } else { 0 };
                let br = if br { threads::BR } else { 0 };
                let going = cx.threads & (bv | br);
                let known = self.state.thread.map(|_| going != 0);
                return (Exec::of(known), if going == 0 { cx.threads } else { going });
            }
            RegCondition::Other => None,
        };
        (Exec::of(holds), cx.threads)
    }

    /// What a test reads, if that is known: on-chip memory is not.
    fn tested(&self, cx: &Current<'_>, operand: TestOperand) -> Option<u32> {
        match operand {
            TestOperand::Register(reg) => self.regs_read(cx).get(reg),
            TestOperand::OnChip(_) => None,
        }
    }

    /// CP_REG_TEST: latches a bit of a register, or predicate bits directly.
    pub(crate) fn reg_test(&mut self, cx: &Current<'_>) {
        let certain = cx.packet.exec != Exec::Unknown;
        match RegTest::parse(cx.args) {
            RegTest::Update { mask, values } => {
                for (predicate, i) in self.state.predicates.iter_mut().zip(0..).filter(|&(_, i)| bit(mask, i))
                {
                    *predicate = certain.then(|| bit(values, i));
                }
            }
            RegTest::Bit { operand, bit: position, predicate } => {
                let value = self.tested(cx, operand).filter(|_| certain);
                if let Some(predicate) = self.state.predicates.get_mut(usize::from(predicate)) {
                    *predicate = value.map(|value| bit(value, position));
                }
            }
        }
    }

    /// CP_DRAW_PRED_SET, CP_DRAW_PRED_ENABLE_GLOBAL, CP_DRAW_PRED_ENABLE_LOCAL.
    pub(crate) fn set_draw_predicate(&mut self, cx: &Current<'_>) {
        const FROM_MEMORY: u32 = 5;
        let word = cx.arg(0);
        let predicate = &mut self.state.draw_predicate;
        match cx.packet.op {
            AdrenoOp::DrawPredEnableLocal => predicate.local = bit(word, 0),
            AdrenoOp::DrawPredEnableGlobal => {
                predicate.global = bit(word, 0);
                if predicate.global {
                    predicate.local = true;
                    predicate.passes = Some(true);
                }
            }
            _ => {
                let value = self.memory.dwords(cx.arg64(1)).and_then(|d| d.get64(0));
                let tested =
                    value.filter(|_| word >> 4 & 0xf == FROM_MEMORY && cx.packet.exec != Exec::Unknown);
                predicate.passes = tested.map(|v| (v == 0) == bit(word, 8));
            }
        }
    }
}
