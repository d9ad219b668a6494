//! Code as a graph: reached instructions, blocks, where each goes on.
//!
//! Only what is reached from an entry is decoded, so that data behind code is no code. Targets of `s_setpc_b64` are
//! followed where they are proven: `s_getpc_b64` and constants added to it. Never: says what is wrong with registers.

use super::facts::Rule;
use super::op::{self, ProgramOp, TouchedRegs};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::codec;
use unwedge_isa::amdgcn::model::Class as SlotClass;
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::{Gpu, Inst, Operand, Reg, listing};

/// Instructions that follow each other.
#[derive(Debug, Clone)]
pub(super) struct BasicBlock {
    /// Indexes of operations.
    pub first: usize,
    pub end: usize,
    /// Blocks it goes on in.
    pub next: [Option<u32>; 2],
    /// Blocks that go on in it.
    pub before: Vec<u32>,
    /// Whether it goes on where it is not known.
    pub leaves: bool,
    /// The block behind a call: what is called comes back to it.
    pub comes_back: Option<u32>,
}

/// Something wrong with the shape: the rule, the dword, and the dword it is about.
pub(super) type ShapeProblem = (Rule, u32, Option<u32>);

#[derive(Debug, Default)]
pub(super) struct CheckedProgram {
    pub ops: Vec<ProgramOp>,
    pub touches: Vec<TouchedRegs>,
    pub blocks: Vec<BasicBlock>,
    pub problems: Vec<ShapeProblem>,
}

/// Room made for operations before any is read, at most.
const ROOM: usize = 4096;

/// No operation starts at this dword.
const NONE: u32 = u32::MAX;

/// Where control goes from an operation.
#[derive(Debug, Clone, Copy, Default)]
struct Exits {
    /// Behind it.
    falls: bool,
    target: Option<u32>,
    /// Somewhere unknown.
    leaves: bool,
}

/// What is known of a pair of scalar registers: an address relative to the code, in bytes.
#[derive(Clone, Copy)]
struct CodeAddress {
    reg: u16,
    bytes: i64,
}

struct CodeWalk<'a> {
    words: &'a [u32],
    gpu: &'a Gpu,
    /// Dwords that are not known.
    relocated: BTreeSet<u32>,
    /// Operation that starts at a dword.
    starts: Vec<u32>,
    program: CheckedProgram,
    /// The instruction that is looked at.
    inst: Inst,
    exits: Vec<Exits>,
    /// Dwords to go on at, the lowest first, so that code is mostly read in the order it lies in.
    todo: BinaryHeap<Reverse<u32>>,
    address: Option<CodeAddress>,
}

impl CheckedProgram {
    /// Reads what is reached from some dwords; those of them that are relocated, in bytes, are not known.
    pub fn read(words: &[u32], entries: &[u32], relocated: &[u32], gpu: &Gpu) -> CheckedProgram {
        let relocated = relocated.iter().map(|at| at / 4).collect();
        let Some(inst) = Inst::new(0) else { return CheckedProgram::default() };
        let room = words.len().min(ROOM);
        let mut walk = CodeWalk {
            words,
            gpu,
            relocated,
            starts: vec![NONE; words.len()],
            program: CheckedProgram {
                ops: Vec::with_capacity(room),
                touches: Vec::with_capacity(4 * room),
                ..CheckedProgram::default()
            },
            inst,
            exits: Vec::with_capacity(room),
            todo: entries.iter().copied().map(Reverse).collect(),
            address: None,
        };
        let mut leaders = entries.to_vec();
        while let Some(Reverse(at)) = walk.todo.pop() {
            walk.run(at, &mut leaders);
        }
        walk.finish(leaders)
    }

    /// The block that starts at a dword.
    pub fn entry(&self, dword: u32) -> Option<u32> {
        let op = self.ops.binary_search_by_key(&dword, |op| op.at).ok()?;
        let block = self.block_of(op);
        self.blocks.get(block).filter(|block| block.first == op)?;
        Some(block as u32)
    }

    pub fn regs(&self, op: &ProgramOp) -> &[TouchedRegs] {
        let first = op.touch_first as usize;
        self.touches.get(first..first + usize::from(op.touch_count)).unwrap_or_default()
    }

    pub fn block_ops(&self, block: &BasicBlock) -> &[ProgramOp] {
        self.ops.get(block.first..block.end).unwrap_or_default()
    }

    /// The block an operation is in.
    pub fn block_of(&self, op: usize) -> usize {
        self.blocks.partition_point(|block| block.end <= op)
    }
}

impl CodeWalk<'_> {
    /// Decodes from a dword on, until control does not go on behind.
    fn run(&mut self, mut at: u32, leaders: &mut Vec<u32>) {
        self.address = None;
        let mut from = None;
        loop {
            let Some(rest) = self.words.get(at as usize..).filter(|rest| !rest.is_empty()) else {
                if at as usize == self.words.len() {
                    if let Some(last) = from {
                        self.exits_of(last).leaves = true;
                    }
                    self.program.problems.push((Rule::RunsOff, at, None));
                } else {
                    self.program.problems.push((Rule::Outside, at, None));
                }
                return;
            };
            if self.starts[at as usize] != NONE {
                leaders.push(at);
                return;
            }
            let Some(dwords) = codec::decode_executed_into(rest, self.gpu, &mut self.inst) else {
                if let Some(last) = from {
                    self.exits_of(last).leaves = true;
                }
                self.program.problems.push((Rule::NotInstruction, at, None));
                return;
            };
            let number = self.program.ops.len();
            self.starts[at as usize] = number as u32;
            let op = op::of(&self.inst, at, dwords, self.gpu, &mut self.program.touches);
            let known = self.follow_address(&op);
            let exits = self.leave(&op, known);
            self.program.ops.push(op);
            self.exits.push(exits);
            if let Some(target) = exits.target {
                leaders.push(target);
                self.todo.push(Reverse(target));
            }
            if !exits.falls {
                return;
            }
            from = Some(number);
            at += u32::from(dwords);
            if op.ends_block() {
                leaders.push(at);
            }
        }
    }

    fn exits_of(&mut self, op: usize) -> &mut Exits {
        let exits = &mut self.exits[op];
        exits.falls = false;
        exits
    }

    /// Whether a part of it is not known.
    fn is_relocated(&self, op: &ProgramOp) -> bool {
        self.relocated.range(op.at..op.at + u32::from(op.dwords)).next().is_some()
    }

    fn leave(&mut self, op: &ProgramOp, known: Option<i64>) -> Exits {
        let relocated = self.is_relocated(op);
        let mut label = || {
            if relocated {
                return None;
            }
            let target = listing::target(&self.inst, op.at as usize, op.dwords.into());
            let target =
                target.and_then(|t| u32::try_from(t).ok()).filter(|t| (*t as usize) < self.words.len());
            if target.is_none() {
                self.program.problems.push((Rule::Outside, op.at, None));
            }
            target
        };
        match op.role {
            Role::End => Exits::default(),
            Role::Branch => {
                let target = label();
                Exits { target, leaves: target.is_none(), falls: false }
            }
            Role::CBranch | Role::CBranchVcc | Role::Subvector | Role::Call => {
                Exits { target: label(), falls: true, leaves: relocated }
            }
            Role::Fork => Exits { falls: true, leaves: true, target: None },
            Role::Return => Exits { leaves: true, ..Exits::default() },
            Role::SetPc | Role::SwapPc => {
                let target = known
                    .filter(|bytes| bytes % 4 == 0)
                    .and_then(|bytes| u32::try_from(bytes / 4).ok())
                    .filter(|t| (*t as usize) < self.words.len());
                Exits { falls: op.role == Role::SwapPc, leaves: target.is_none(), target }
            }
            _ => Exits { falls: true, ..Exits::default() },
        }
    }

    /// Follows an address made of the program counter; gives the one that is jumped to.
    fn follow_address(&mut self, op: &ProgramOp) -> Option<i64> {
        if op.role == Role::GetPc {
            if let Operand::Reg { reg, .. } = self.inst.operands[0] {
                self.address =
                    Some(CodeAddress { reg: reg.0, bytes: 4 * i64::from(op.at + u32::from(op.dwords)) });
            }
            return None;
        }
        let address = self.address?;
        if matches!(op.role, Role::SetPc | Role::SwapPc) {
            let jumps = self.inst.written().any(|(slot, operand)| {
                slot.access.reads() && matches!(operand, Operand::Reg { reg, .. } if reg.0 == address.reg)
            });
            return jumps.then_some(address.bytes);
        }
        let regs = &self.program.touches[op.touch_first as usize..];
        let touched = regs
            .iter()
            .find(|r| r.writes && r.reg < address.reg + 2 && r.reg + u16::from(r.dwords) > address.reg)?;
        let constant = constant(&self.inst).filter(|_| !self.is_relocated(op));
        let low = touched.reg == address.reg && touched.dwords == 1;
        self.address = match (op.opcode, constant) {
            (Opcode::s_add_u32 | Opcode::s_addc_u32 | Opcode::s_add_i32, Some(value)) if low => {
                Some(CodeAddress { bytes: address.bytes + i64::from(value as i32), ..address })
            }
            (Opcode::s_sub_u32 | Opcode::s_sub_i32, Some(value)) if low => {
                Some(CodeAddress { bytes: address.bytes - i64::from(value as i32), ..address })
            }
            // Of gfx12, where the program counter has 48 bits.
            (Opcode::s_sext_i32_i16, _) if touched.reg == address.reg + 1 => Some(address),
            (Opcode::s_bitset0_b32, Some(0)) if low => {
                Some(CodeAddress { bytes: address.bytes & !3, ..address })
            }
            (Opcode::s_addc_u32 | Opcode::s_subb_u32, Some(0 | u32::MAX))
                if touched.reg == address.reg + 1 =>
            {
                Some(address)
            }
            _ => None,
        };
        None
    }

    fn finish(mut self, mut leaders: Vec<u32>) -> CheckedProgram {
        let mut program = std::mem::take(&mut self.program);
        // Operations in the order of their addresses.
        let mut ops = std::mem::take(&mut program.ops);
        let mut exits = std::mem::take(&mut self.exits);
        if !ops.is_sorted_by_key(|op| op.at) {
            let mut order: Vec<u32> = (0..ops.len() as u32).collect();
            order.sort_unstable_by_key(|&n| ops[n as usize].at);
            ops = order.iter().map(|&n| ops[n as usize]).collect();
            exits = order.iter().map(|&n| exits[n as usize]).collect();
            for (number, op) in ops.iter().enumerate() {
                self.starts[op.at as usize] = number as u32;
            }
        }
        for pair in ops.windows(2) {
            if pair[0].at + u32::from(pair[0].dwords) > pair[1].at {
                program.problems.push((Rule::IntoMiddle, pair[1].at, Some(pair[0].at)));
            }
        }
        leaders.sort_unstable();
        leaders.dedup();
        let mut leads = leaders.iter().copied().peekable();
        let mut first = 0;
        let mut last_exits = Vec::new();
        for (number, (op, exits)) in ops.iter().zip(&exits).enumerate() {
            let behind = op.at + u32::from(op.dwords);
            while leads.next_if(|&l| l <= op.at).is_some() {}
            let adjacent = ops.get(number + 1).is_some_and(|next| next.at == behind);
            let splits = leads.peek().is_some_and(|&l| l <= behind);
            if op.ends_block() || !exits.falls || !adjacent || splits {
                let leaves = exits.leaves;
                program.blocks.push(BasicBlock {
                    first,
                    end: number + 1,
                    next: [None; 2],
                    before: Vec::new(),
                    leaves,
                    comes_back: None,
                });
                last_exits.push((*exits, behind));
                first = number + 1;
            }
        }
        let block_at = |program: &CheckedProgram, dword: u32| -> Option<u32> {
            let op = *self.starts.get(dword as usize)?;
            let block = program.blocks.partition_point(|b| b.first < op as usize);
            (op != NONE && program.blocks.get(block).is_some_and(|b| b.first == op as usize))
                .then_some(block as u32)
        };
        for (number, (exits, behind)) in last_exits.into_iter().enumerate() {
            let falls = if exits.falls { block_at(&program, behind) } else { None };
            let target = exits.target.and_then(|t| block_at(&program, t));
            let block = &mut program.blocks[number];
            let calls = ops.get(block.end - 1).is_some_and(ProgramOp::calls);
            // What is both called and come back to has no other state than that of the call.
            block.next = match (falls, target) {
                (Some(falls), Some(target)) if falls == target && calls => [None, Some(target)],
                (Some(falls), Some(target)) if falls == target => [Some(falls), None],
                ways => ways.into(),
            };
            block.comes_back = block.next[0].filter(|_| calls);
            for next in program.blocks[number].next.into_iter().flatten() {
                program.blocks[next as usize].before.push(number as u32);
            }
        }
        program.ops = ops;
        program.problems.sort_unstable_by_key(|(rule, at, _)| (*at, *rule));
        program.problems.dedup();
        program
    }
}

/// The constant among the sources.
fn constant(inst: &Inst) -> Option<u32> {
    inst.written().find_map(|(slot, operand)| match operand {
        Operand::Literal(value) => Some(value),
        Operand::Inline(code @ 128..=192) => Some(u32::from(code) - 128),
        Operand::Inline(code @ 193..=208) => Some(0u32.wrapping_sub(u32::from(code) - 192)),
        Operand::Imm(value) if slot.class == SlotClass::Imm16 => Some(value as u32),
        _ => None,
    })
}

/// Whether a register is one of those.
pub(super) fn covers(regs: TouchedRegs, reg: Reg) -> bool {
    regs.reg <= reg.0 && reg.0 < regs.reg + u16::from(regs.dwords)
}
