//! The fixed point: what is pending at the start of each block, and what that breaks.

use super::exec::ExecState;
use super::facts::Rule;
use super::finding::{CheckFinding, WaitNeed};
use super::hazards::{HazardKind, Hazards};
use super::op::{ProgramOp, TouchedRegs, UnitClass, flag};
use super::partial;
use super::program::{BasicBlock, CheckedProgram};
use super::state::{EMPTY, EVERY, PendingEvent, PendingList, RegSet, both, first_of, unite};
use super::waits::{HALF, NO, SLOTS, SMEM_STORE, TIED, WaitValues, Waits, add_regs};
use super::{CheckOptions, EntryPreset, ProgramEntry};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::{Field, Role};
use unwedge_isa::amdgcn::waits::{COUNTED, Counter, Event, VA_VDST};
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};

/// Times a block is looked at before its state is condensed each time, and at all.
const VISITS_CONDENSE: u32 = 24;
const VISITS: u32 = 400;

/// What holds at a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FlowState {
    waits: PendingList,
    hazards: PendingList,
    /// Registers that may have been written: scalar, vector.
    written: [RegSet; 2],
    /// The instruction that set `exec` to 0, if on all paths.
    no_lane: Option<u32>,
    /// What else is known of `exec`.
    exec: ExecState,
    /// Counters in which code that is not followed may have left something, a bit each, and [`HAZARDS`].
    foreign: u8,
}

/// Of [`FlowState::foreign`]: code that is not followed may have left hazards.
const HAZARDS: u8 = 1 << SLOTS;

/// Every register of both files.
const ALL: [RegSet; 2] = [EVERY; 2];

/// States of one place that are kept apart, at most.
const APART: usize = 6;

/// The counter that what is missing would drain, and where.
fn drains(f: &CheckFinding) -> Option<(u32, &'static str)> {
    f.need.filter(|need| need.value == 0 && f.rule == Rule::Wait).map(|need| (f.at, need.counter))
}

fn is_spare(f: &CheckFinding) -> bool {
    matches!(f.rule, Rule::SpareWait | Rule::SpareNop)
}

/// Takes a state into those of a place; whether that changed anything.
fn take(have: &mut Vec<FlowState>, new: FlowState, condense: bool) -> bool {
    let full = have.len() >= APART && have.iter().all(|s| s.exec != new.exec);
    let exec = if full { ExecState::Any } else { new.exec };
    let Some(same) = have.iter_mut().find(|s| s.exec == exec) else {
        have.push(FlowState { exec, ..new });
        return true;
    };
    let changed = same.join(&new);
    if changed && condense {
        same.waits.condense();
        same.hazards.condense();
    }
    changed
}

impl FlowState {
    /// Behind a call. What the caller left pending is for what is called to wait for; what that leaves is not followed, and it may write
    /// any register.
    fn behind_call() -> FlowState {
        FlowState { written: ALL, foreign: u8::MAX, ..FlowState::default() }
    }

    fn join(&mut self, other: &FlowState) -> bool {
        let before = (self.written, self.no_lane, self.foreign);
        for (set, more) in self.written.iter_mut().zip(&other.written) {
            unite(set, more);
        }
        if self.no_lane != other.no_lane {
            self.no_lane = None;
        }
        self.foreign |= other.foreign;
        let changed = self.waits.join(&other.waits) | self.hazards.join(&other.hazards);
        changed || before != (self.written, self.no_lane, self.foreign)
    }
}

struct FlowAnalysis<'a> {
    program: &'a CheckedProgram,
    gpu: &'a Gpu,
    entries: &'a [ProgramEntry],
    /// Whether registers that nothing has written are looked for.
    preset: bool,
    options: &'a CheckOptions,
    waits: Waits,
    hazards: Hazards,
    partial: bool,
    /// Waits that are taken to stand before operations.
    cures: BTreeMap<u32, WaitValues>,
}

/// The latest LDS access that is pending where other waves are let go on.
fn before_barrier(op: &ProgramOp, state: &FlowState) -> Option<PendingEvent> {
    const SIGNALS: [Opcode; 3] =
        [Opcode::s_barrier, Opcode::s_barrier_signal, Opcode::s_barrier_signal_isfirst];
    if !SIGNALS.contains(&op.opcode) {
        return None;
    }
    let of_lds = |p: &&PendingEvent| COUNTED[usize::from(p.kind)].event == Event::Lds;
    state.waits.all.iter().filter(of_lds).min_by_key(|p| p.age).copied()
}

/// Times a program is followed again, until each wait that is told missing is missing with the others in place.
const AGAIN: usize = 8;

/// Follows a program; whether to its end.
pub(super) fn follow(
    program: &CheckedProgram,
    gpu: &Gpu,
    entries: &[ProgramEntry],
    options: &CheckOptions,
    findings: &mut Vec<CheckFinding>,
) -> bool {
    let hazards = Hazards::new(gpu, program, options.continues);
    let partial =
        gpu.wave64() && matches!(gpu.generation(), Gfx::Gfx11 | Gfx::Gfx11_5) && hazards.has_exec_writes;
    let preset = entries.iter().any(|entry| entry.preset.is_some());
    let cures = BTreeMap::new();
    let waits = Waits::new(gpu);
    let mut flow = FlowAnalysis { program, gpu, entries, preset, options, waits, hazards, partial, cures };
    let (mut found, complete) = flow.run();
    // A wait that is missing in a loop, or behind one way, is not known to be when what follows is first looked at, and cures
    // what is told there.
    for _ in 0..AGAIN {
        let cures = flow.needed(&found);
        if cures == flow.cures || !complete {
            findings.append(&mut found);
            return complete;
        }
        flow.cures = cures;
        (found, _) = flow.run();
    }
    flow.cures.clear();
    findings.append(&mut flow.run().0);
    complete
}

impl FlowAnalysis<'_> {
    /// The waits that findings ask for, by operation.
    fn needed(&self, findings: &[CheckFinding]) -> BTreeMap<u32, WaitValues> {
        let mut all: BTreeMap<u32, WaitValues> = BTreeMap::new();
        for f in findings {
            let op = self.program.ops.binary_search_by_key(&(f.at / 4), |op| op.at);
            let (Some(need), Ok(op)) = (f.need, op) else { continue };
            let slot = (0..SLOTS).find(|slot| self.waits.name(*slot) == need.counter);
            let wait_values = all.entry(op as u32).or_insert([NO; SLOTS]);
            if let Some(value) = slot.and_then(|slot| wait_values.get_mut(slot)) {
                *value = need.value.min(*value);
            }
        }
        all
    }

    /// What is broken, and whether everything was followed to its end.
    fn run(&self) -> (Vec<CheckFinding>, bool) {
        let mut findings = Vec::new();
        let blocks = &self.program.blocks;
        let mut states: Vec<Vec<FlowState>> = vec![Vec::new(); blocks.len()];
        let mut visits = vec![0u32; blocks.len()];
        let mut queued = vec![false; blocks.len()];
        let mut queue = BinaryHeap::new();
        let mut complete = true;
        for entry in self.entries {
            let Some(number) = self.program.entry(entry.at / 4) else { continue };
            take(&mut states[number as usize], self.start(entry), false);
            queue.push(Reverse(number));
            queued[number as usize] = true;
        }
        // What the last look at a block told: it saw all that may be pending there.
        let mut per_block: Vec<Vec<CheckFinding>> = vec![Vec::new(); blocks.len()];
        while let Some(Reverse(number)) = queue.pop() {
            let at = number as usize;
            queued[at] = false;
            visits[at] += 1;
            let block = &blocks[at];
            let Some(last) = self.program.block_ops(block).last() else { continue };
            per_block[at].clear();
            if visits[at] > VISITS {
                complete = false;
                continue;
            }
            for number in 0..states[at].len() {
                let mut state = states[at][number].clone();
                self.pass(block, &mut state, &mut per_block[at]);
                let ways =
                    if block.next[1].is_some() { state.exec.ways(last) } else { [Some(state.exec); 2] };
                let mut to = block.next.into_iter().zip(ways).filter_map(|(next, exec)| Some((next?, exec?)));
                let (first, second) = (to.next(), to.next());
                let mut go = |(next, exec): (u32, ExecState), state: FlowState| {
                    let (exec, state) = match block.comes_back {
                        Some(behind) if behind == next => (ExecState::Any, FlowState::behind_call()),
                        _ => (exec, state),
                    };
                    let to = next as usize;
                    let condense = visits[to] > VISITS_CONDENSE;
                    if take(&mut states[to], FlowState { exec, ..state }, condense) && !queued[to] {
                        queued[to] = true;
                        queue.push(Reverse(next));
                    }
                };
                if let (Some(first), Some(_)) = (first, second) {
                    go(first, state.clone());
                }
                if let Some(last) = second.or(first) {
                    go(last, state);
                }
            }
        }
        for (at, (mut per_block, states)) in per_block.into_iter().zip(&states).enumerate() {
            if visits[at] > VISITS {
                states.iter().for_each(|state| self.pass(&blocks[at], &mut state.clone(), &mut per_block));
            }
            // A wait is spare if it is on all paths.
            if states.len() > 1 {
                let spare: Vec<u32> = per_block.iter().filter(|f| is_spare(f)).map(|f| f.at).collect();
                let on_all = |at: u32| spare.iter().filter(|other| **other == at).count() % states.len() == 0;
                per_block.retain(|f| !is_spare(f) || on_all(f.at));
                // A wait for 0 that one of them needs is on the way of all.
                let drained: Vec<(u32, &str)> = per_block.iter().filter_map(drains).collect();
                let over = |f: &CheckFinding| {
                    let Some(need) = f.need else { return false };
                    drained.iter().any(|(at, counter)| {
                        let since = |first: u32| first >= *at && first < f.at;
                        *counter == need.counter && *at < f.at && !f.first.is_some_and(since)
                    })
                };
                per_block.retain(|f| !over(f));
            }
            findings.append(&mut per_block);
        }
        for finding in &mut findings {
            finding.path = self.path(finding, &states);
        }
        (findings, complete)
    }

    /// What holds where a program starts.
    fn start(&self, entry: &ProgramEntry) -> FlowState {
        let foreign = if entry.called { u8::MAX } else { 0 };
        let mut state = FlowState { written: ALL, foreign, ..FlowState::default() };
        if let Some(EntryPreset { sgprs, vgprs }) = entry.preset {
            let mut clear = |file: usize, from: u16, to: u16| {
                for reg in from.min(to)..to {
                    state.written[file][usize::from(reg / 64)] &= !(1 << (reg % 64));
                }
            };
            clear(0, sgprs, self.gpu.sgprs());
            clear(0, Reg::VCC.0, Reg::VCC.0 + 2);
            clear(1, vgprs, 256);
            clear(0, Reg::SCC.0, Reg::SCC.0 + 1);
        }
        state
    }

    /// Goes through a block, and tells what it breaks.
    fn pass(&self, block: &BasicBlock, state: &mut FlowState, findings: &mut Vec<CheckFinding>) {
        for (at, op) in self.program.block_ops(block).iter().enumerate() {
            let number = (block.first + at) as u32;
            let regs = self.program.regs(op);
            let wait_values = self.waits.wait_values(op);
            if op.role == Role::Nop {
                // Before a message it has a meaning of its own.
                let next = self.program.ops.get(number as usize + 1);
                let needed = state.hazards.all.iter().any(Hazards::counts_states)
                    || next.is_some_and(|next| next.role == Role::Message)
                    || self.options.exports;
                if !needed && state.foreign & HAZARDS == 0 {
                    findings.push(self.finding(Rule::SpareNop, op.at, None, 0));
                }
            }
            let mut spare = op.role == Role::Depctr
                && state.foreign & HAZARDS == 0
                && !(self.partial && VA_VDST.waited(op.imm as u16, self.gpu.generation()));
            if let Some(wait_values) = &wait_values {
                spare = op.role == Role::Wait && self.is_spare(wait_values, state);
                self.waits.wait(&mut state.waits, wait_values);
                let ended = wait_values.iter().enumerate().filter(|(_, value)| **value == 0);
                state.foreign &= !ended.fold(0, |ended, (slot, _)| ended | 1 << slot);
            }
            // A wait may cure hazards, too.
            let open = if spare { state.hazards.weight() } else { 0 };
            let no_lane = matches!(state.exec, ExecState::Zero(Some(_))) && op.is_masked();
            if let Some(p) = self.stored_there(op, regs, state) {
                let need = Some(WaitNeed { counter: self.waits.name(Counter::Local as usize), value: 0 });
                findings.push(CheckFinding { need, ..self.finding(Rule::SmemStoreLoad, op.at, Some(&p), 0) });
                state.waits.forget(|p| p.extra & SMEM_STORE != 0);
            }
            if let Some(p) = before_barrier(op, state) {
                let slot = COUNTED[usize::from(p.kind)].counter as usize;
                let need = Some(WaitNeed { counter: self.waits.name(slot), value: p.age });
                findings.push(CheckFinding { need, ..self.finding(Rule::LdsBarrier, op.at, Some(&p), 0) });
            }
            if let Some(needs) = self.waits.needs(&state.waits, op, regs, no_lane) {
                let mut wait = [NO; SLOTS];
                for (slot, need) in needs.iter().enumerate() {
                    let Some((value, p)) = need else { continue };
                    wait[slot] = *value;
                    let need = WaitNeed { counter: self.waits.name(slot), value: *value };
                    findings.push(self.missing_wait(op, p, need));
                }
                self.waits.wait(&mut state.waits, &wait);
                // The wait that is put before it takes a wait state, and cures what it cures.
            }
            if let Some(wait_values) = self.cures.get(&number) {
                self.waits.wait(&mut state.waits, wait_values);
            }
            self.hazards.step(
                &mut state.hazards,
                number,
                op,
                regs,
                wait_values.as_ref(),
                &mut |rule, p, missing| {
                    findings.push(self.finding(rule, op.at, Some(p), missing));
                },
            );
            if spare && open == state.hazards.weight() {
                findings.push(self.finding(Rule::SpareWait, op.at, None, 0));
            }
            self.missing_writes(op, number, regs, state, findings);
            self.waits.begin(&mut state.waits, number, op, regs);
            for r in regs.iter().filter(|r| self.preset && r.writes) {
                add_regs(&mut state.written[usize::from(r.is_vgpr())], *r);
            }
            if op.role == Role::Fork {
                // What runs before it goes on here may write anything.
                state.written = ALL;
            }
            state.exec = state.exec.after(op, regs);
            if op.has(flag::WRITES_EXEC) {
                state.no_lane = op.has(flag::ZERO).then_some(number);
            }
        }
        if block.leaves && self.options.continues {
            self.open_end(block, state, findings);
        }
    }

    /// The store of scalar memory through the same descriptor that a load follows.
    fn stored_there(&self, op: &ProgramOp, regs: &[TouchedRegs], state: &FlowState) -> Option<PendingEvent> {
        let load = op.class == UnitClass::Smem && op.has(flag::BUFFER) && !op.has(flag::STORE | flag::ATOMIC);
        if !load || self.gpu.generation() != Gfx::Gfx10 {
            return None;
        }
        let base = |regs: &[TouchedRegs]| regs.iter().find(|r| r.field == Field::Sbase).map(|r| r.reg);
        let stored = |p: &&PendingEvent| {
            let store = self.program.ops.get(p.op as usize);
            p.extra & SMEM_STORE != 0 && store.is_some_and(|s| base(self.program.regs(s)) == base(regs))
        };
        state.waits.all.iter().find(stored).copied()
    }

    /// What an instruction breaks that needs no second one to be pending.
    fn missing_writes(
        &self,
        op: &ProgramOp,
        number: u32,
        regs: &[TouchedRegs],
        state: &FlowState,
        findings: &mut Vec<CheckFinding>,
    ) {
        for r in regs.iter().filter(|r| self.preset && r.reads && !r.any) {
            let mut read = EMPTY;
            add_regs(&mut read, *r);
            let known = both(&read, &state.written[usize::from(r.is_vgpr())]);
            let absent: RegSet = std::array::from_fn(|i| read[i] & !known[i]);
            if let Some((reg, count)) = first_of(&absent) {
                let base = if r.is_vgpr() { Reg::VGPR0.0 } else { 0 };
                let regs = Some((Reg(base + reg), count));
                // Of what is written in part the rest may not matter: the upper half of a sum, parts of stored data.
                let rule = if known == EMPTY { Rule::Unwritten } else { Rule::UnwrittenPart };
                findings.push(CheckFinding { regs, ..self.finding(rule, op.at, None, 0) });
            }
        }
        if let Some(first) = state.no_lane {
            let lanes = op.is_vector()
                && !matches!(op.class, UnitClass::Exp | UnitClass::LdsDir)
                && !op.has(flag::READLANE | flag::READFIRST | flag::WRITELANE)
                && op.opcode != Opcode::v_nop;
            if lanes {
                let first = self.program.ops.get(first as usize).map(|first| first.at * 4);
                findings.push(CheckFinding { first, ..self.finding(Rule::NoLane, op.at, None, 0) });
            }
        }
        if self.partial
            && let Some(first) = partial::first_write(self.program, number as usize, self.gpu.generation())
        {
            let first = self.program.ops.get(first).map(|first| first.at * 4);
            findings
                .push(CheckFinding { first, ..self.finding(Rule::ValuPartialForwarding, op.at, None, 0) });
        }
        let dealloc = op.role == Role::Message && op.imm & 15 == 3 && self.gpu.generation() >= Gfx::Gfx11;
        if dealloc {
            let scratch = state.waits.all.iter().find(|p| {
                let store = self.program.ops.get(p.op as usize);
                store.is_some_and(|s| s.class == UnitClass::Scratch && s.has(flag::STORE))
            });
            if let Some(p) = scratch {
                findings.push(self.finding(Rule::ScratchDealloc, op.at, Some(p), 0));
            }
        }
    }

    /// Whether a wait says something, and nothing of it is pending.
    fn is_spare(&self, wait_values: &WaitValues, state: &FlowState) -> bool {
        let slot = |p: &PendingEvent| COUNTED[usize::from(p.kind)].counter as usize;
        let ended =
            state.waits.all.iter().any(|p| wait_values[slot(p)] != NO && p.age >= wait_values[slot(p)]);
        let asks = |slot: usize| wait_values[slot] != NO && self.waits.asks(slot, wait_values[slot]);
        let foreign = (0..SLOTS).any(|slot| asks(slot) && state.foreign >> slot & 1 != 0);
        (0..SLOTS).any(asks) && !ended && !foreign
    }

    /// What is pending where the code goes on elsewhere.
    fn open_end(&self, block: &BasicBlock, state: &FlowState, findings: &mut Vec<CheckFinding>) {
        let Some(last) = self.program.block_ops(block).last() else { return };
        let behind = if last.role == Role::SetPc { last.at } else { last.at + u32::from(last.dwords) };
        for p in &state.hazards.all {
            let rule = HazardKind::rule(p);
            let generation = self.gpu.generation();
            let distance = rule.info().distance_in(generation, p.extra);
            let over = distance > 0 && p.age >= distance;
            if HazardKind::stays_open(p) && rule.info().holds(generation) && !over {
                let level = rule.info().level;
                let open = Some(rule);
                findings.push(CheckFinding {
                    level,
                    open,
                    ..self.finding(Rule::OpenEnd, behind, Some(p), 0)
                });
            }
        }
    }

    fn missing_wait(&self, op: &ProgramOp, p: &PendingEvent, need: WaitNeed) -> CheckFinding {
        let mut used = EMPTY;
        for r in self.program.regs(op).iter().filter(|r| r.is_vgpr() == p.vector) {
            add_regs(&mut used, *r);
        }
        let base = if p.vector { Reg::VGPR0.0 } else { 0 };
        let regs = first_of(&both(&used, &p.regs)).map(|(reg, count)| (Reg(base + reg), count));
        let rule = match p.extra {
            extra if extra & HALF != 0 => Rule::FlatWait,
            extra if extra & TIED != 0 => Rule::HalfWait,
            _ => Rule::Wait,
        };
        CheckFinding { need: Some(need), regs, ..self.finding(rule, op.at, Some(p), 0) }
    }

    fn finding(&self, rule: Rule, at: u32, p: Option<&PendingEvent>, missing: u8) -> CheckFinding {
        let first = p.and_then(|p| self.program.ops.get(p.op as usize)).map(|op| op.at * 4);
        let level = rule.info().level;
        CheckFinding {
            rule,
            level,
            at: at * 4,
            first,
            path: Vec::new(),
            need: None,
            missing,
            regs: None,
            open: None,
        }
    }

    /// The shortest way through blocks from what made it so to where it shows, on which it stays pending.
    fn path(&self, finding: &CheckFinding, states: &[Vec<FlowState>]) -> Vec<u32> {
        let start = |block: usize| self.program.blocks[block].first;
        let find = |at: u32| self.program.ops.binary_search_by_key(&(at / 4), |op| op.at).ok();
        let (Some(second), Some(first)) = (find(finding.at), finding.first.and_then(find)) else {
            return Vec::new();
        };
        let (from, to) = (self.program.block_of(first), self.program.block_of(second));
        let byte = |block: usize| self.program.ops[start(block)].at * 4;
        if from == to && first < second {
            return vec![byte(from)];
        }
        // What is found backwards is pending nowhere.
        let pending = |block: usize| {
            finding.rule == Rule::ValuPartialForwarding
                || states[block]
                    .iter()
                    .any(|s| s.waits.all.iter().chain(&s.hazards.all).any(|p| p.op as usize == first))
        };
        let mut before: Vec<Option<u32>> = vec![None; self.program.blocks.len()];
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for next in self.program.blocks[at].next.into_iter().flatten() {
                let next = next as usize;
                if before[next].is_some() || !pending(next) {
                    continue;
                }
                before[next] = Some(at as u32);
                if next == to {
                    let mut path = vec![byte(to)];
                    let mut at = at;
                    while at != from {
                        path.push(byte(at));
                        at = before[at].unwrap_or(from as u32) as usize;
                    }
                    path.push(byte(from));
                    path.reverse();
                    return path;
                }
                queue.push_back(next);
            }
        }
        Vec::new()
    }
}
